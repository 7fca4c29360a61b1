/* Private to trust/: the in-toto statements that evidence carries.
 *
 * Both are functions of the document's facts (evidence.c) and of nothing else, so a reader who has
 * the facts re-derives the signed bytes; whatever is not in the facts cannot be signed. */
#pragma once

#include <jansson.h>

#include "base/mem.h"

#define AQ_INTOTO_TYPE "application/vnd.in-toto+json"

enum { AQ_STATEMENT_TESTS, AQ_STATEMENT_INDEX, AQ_STATEMENT_COUNT };

/* Canonical bytes of both statements; the facts were checked before. */
void aq_statements(const json_t *facts, aq_buf out[static AQ_STATEMENT_COUNT]);
/* PASSED, WARNED or FAILED; NULL for a verdict that does not exist. */
const char *aq_statement_result(const char *verdict);
/* Names the first place in which two values differ ("predicate.result"), or nothing when equal. */
void aq_json_difference(const json_t *a, const json_t *b, aq_buf *path);
