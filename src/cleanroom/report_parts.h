/* What the files of the report share with one another and with nobody else. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/mem.h"

/* A string of the report, or `fallback` when it is absent, null or of another type. Never NULL
 * unless `fallback` is. */
const char *aq_part_str(const json_t *object, const char *key, const char *fallback);
/* The same two levels down: aq_part_at(report, "package", "name", "?"). */
const char *aq_part_at(const json_t *object, const char *outer, const char *key,
                       const char *fallback);
int64_t aq_part_int(const json_t *object, const char *outer, const char *key);

/* One sentence: why the verdict is what it is. */
void aq_part_reason(const json_t *report, aq_buf *out);
/* What the package is, in one sentence: "Agent Skill "x" 1.0, 12 files, 34 kB". */
void aq_part_what(const json_t *report, aq_buf *out);

/* A message as every face shows it: a capital at its start, no full stop at its end. */
void aq_part_sentence(aq_buf *out, const char *message);
/* Does the package have this run without anybody's asking: a hook, a script of its installation, a
 * server that its host starts? */
bool aq_part_automatic(const char *role);
/* "Runs by itself after a tool is used (PostToolUse: Edit|Write)", the command left out; `matcher`
 * may be NULL. */
void aq_part_starts(aq_buf *out, const char *role, const char *matcher);
/* "T2 (microVM) would be needed: it declares that it runs commands" */
void aq_part_tier(const json_t *report, aq_buf *out);
/* All findings, those beyond the list among them. */
uint64_t aq_part_findings(const json_t *report);
/* The number that more[] has for a rule, 0 without one. */
uint64_t aq_part_more(const json_t *report, const char *rule);

/* "1,234" and "1.2 MB" (powers of ten, no floating point, so the same everywhere). */
void aq_part_count(aq_buf *out, uint64_t n);
void aq_part_bytes(aq_buf *out, uint64_t n);
/* "1 file", "12 files" */
void aq_part_plural(aq_buf *out, uint64_t n, const char *one, const char *many);
/* Share of `part` in `whole` in whole percent; something is never 0, and not all is never 100. */
unsigned aq_part_percent(uint64_t part, uint64_t whole);

/* Appends one character of `s` as it may be shown to a person: control, hidden and reordering
 * characters become \u{…}, which no reader takes for the character itself. Returns the number of
 * bytes of `s` that were used, 0 at its end. */
size_t aq_part_show(aq_buf *out, const char *s);
