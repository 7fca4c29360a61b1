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
/* What nearly every package gets (not signed, attributes not given) says what a report rests on,
 * not what is odd about this package: the faces show it there and not among the findings. */
bool aq_part_basis(const json_t *finding);
/* All findings that a face lists, those beyond the list among them; `severity` NULL: any. */
uint64_t aq_part_findings(const json_t *report, const char *severity);
/* "5 findings: 2 review, 3 info (4 listed)" */
void aq_part_findings_title(const json_t *report, aq_buf *out);
/* What a stage's decision leaves open: "names compared with nothing"; empty when it is plain. */
void aq_part_stage_note(const json_t *report, const json_t *stage, aq_buf *out);
/* How many names the package's own was compared with, and what to do if with none. */
void aq_part_names(const json_t *report, aq_buf *out);
/* "none: nobody vouches for where these bytes came from" */
void aq_part_signature(const json_t *report, aq_buf *out);
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
