/* JSON at our own borders: strict in, canonical out.
 *
 * Reading refuses duplicate keys, trailing data, NULs, and anything deeper or larger than the
 * caller allows, and names line and column. The canonical form is RFC 8785 restricted to what our
 * formats use: integers only, keys sorted, no white space; so any JCS library re-derives our
 * digests. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"

enum { AQ_JSON_DEPTH = 64 };

/* `name` is what the message calls the input ("report.json", "jail answer"). */
int aq_json_parse(const char *text, size_t len, const char *name, json_t **ret, aq_err *err);

/* Appends the canonical form. Fails with -EDOM on a real number: our formats have none. */
int aq_json_canonical(const json_t *value, aq_buf *out);
int aq_json_digest(const json_t *value, aq_digest *ret);

/* Where the string that starts at `text[at]` ends: at its closing quote, or `len` without one. */
size_t aq_json_string_end(const char *text, size_t len, size_t at);
/* Appends `s` as a JSON string with quotes. Bytes that are not UTF-8 must have been quoted by
 * aq_text_quote before. */
void aq_json_string(aq_buf *out, const char *s);

/* Pretty form for people, ending in a newline. */
void aq_json_pretty(const json_t *value, aq_buf *out);

/* Shape checks for reading our own formats. The keys of `value` must be among the NULL-terminated
 * list that follows; the first unknown one is named in the error. */
int aq_json_only_keys(const json_t *value, const char *name, const char *const *keys, aq_err *err);
/* NULL when absent or of another type. */
const char *aq_json_str(const json_t *object, const char *key);
/* `fallback` when absent or of another type. */
int64_t aq_json_int(const json_t *object, const char *key, int64_t fallback);
