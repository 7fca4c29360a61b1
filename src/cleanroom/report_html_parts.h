/* The parts of the HTML report that stand in files of their own. */
#pragma once

#include <jansson.h>

#include "base/mem.h"

/* Appends text from anywhere as text. */
void aq_html_esc(aq_buf *out, const char *text);
/* `open` and `close` are ours, `text` is anybody's. */
void aq_html_tag(aq_buf *out, const char *open, const char *text, const char *close);
void aq_html_place(aq_buf *out, const char *file, int64_t line);
/* `name` if it is one of the words that our style sheet knows, else "other". */
const char *aq_html_class(const char *name);

void aq_html_walk(aq_buf *out, const json_t *report);  /* the picture of the stages */
void aq_html_facts(aq_buf *out, const json_t *report); /* what it is, says, was checked, was not */
void aq_html_coverage(aq_buf *out, const json_t *report); /* coverage and provenance */

void aq_html_proof(aq_buf *out, const json_t *report); /* how to check it */

/* A SHA-256 in groups that wrap evenly; anything else as code. */
void aq_html_digest(aq_buf *out, const char *digest);
