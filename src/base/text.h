/* Text from strangers: decoding, quoting, folding, likeness.
 *
 * File names and messages of a package are bytes. Wherever they enter a report, an event or a
 * terminal they pass aq_text_quote first; then they are valid UTF-8 without control characters,
 * and the original bytes can still be told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

/* Decodes one code point at *p (before `end`) and advances; -1 on a malformed sequence, which
 * advances by one byte. Surrogates, overlong forms and values above U+10FFFF are malformed. */
int32_t aq_utf8_next(const unsigned char **p, const unsigned char *end);
void aq_utf8_add(aq_buf *out, uint32_t code);
bool aq_utf8_valid(const char *s, size_t len);

/* Appends `s` as valid UTF-8 on one line: malformed bytes, control characters, and characters that
 * reorder or hide text (bidi controls, zero-width, tags) as \xHH per byte, a backslash doubled.
 * Reversible by aq_text_unquote. */
void aq_text_quote(aq_buf *out, const char *s, size_t len);
int aq_text_unquote(aq_buf *out, const char *s, size_t len);
/* As above into an arena, at most `max` bytes, an ellipsis in place of the rest. */
const char *aq_text_quoted(aq_arena *a, const char *s, size_t len, size_t max);
void aq_text_quote_max(aq_buf *out, const char *s, size_t len, size_t max);

/* For text that claims to be quoted already: what aq_text_quote would have quoted becomes U+FFFD,
 * a backslash stays. */
const char *aq_text_printable(aq_arena *a, const char *s, size_t max);
void aq_text_printable_max(aq_buf *out, const char *s, size_t max);

/* Is this a character that is not seen, or that changes how others are seen? */
bool aq_text_hidden(int32_t code);

/* NFKC and full case folding, default-ignorable characters dropped: two names that fold alike are
 * one file on a case-insensitive or normalising file system. -EILSEQ if `s` is not UTF-8. */
int aq_text_fold(aq_buf *out, const char *s, size_t len);
/* The fold with look-alike characters replaced by their prototype (Unicode confusables): two
 * names with one skeleton look alike to a reader. */
int aq_text_skeleton(aq_buf *out, const char *s, size_t len);

/* Appends the path as Windows stores it: a backslash parts it as / does, dots and blanks at the end
 * of a part go, and what follows a colon is a stream of the file before it. */
void aq_text_windows(aq_buf *out, const char *path, size_t len);

/* Damerau-Levenshtein distance (adjacent transposition = 1) in bytes, or max + 1 as soon as it
 * must exceed `max`. Inputs are names of at most 256 bytes. */
size_t aq_text_distance(const char *a, const char *b, size_t max);
