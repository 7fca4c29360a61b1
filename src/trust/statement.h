/* Private to trust/: the in-toto statements that evidence carries.
 *
 * Two are always there and are functions of the document's facts (evidence.c) and of nothing else,
 * so a reader who has the facts re-derives the signed bytes. Further ones have content of their
 * own; the facts name each by type and digest, so none can be added, dropped or exchanged. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/mem.h"

#define AQ_INTOTO_TYPE "application/vnd.in-toto+json"

enum { AQ_STATEMENT_TESTS, AQ_STATEMENT_INDEX, AQ_STATEMENT_COUNT };

/* Canonical bytes of both statements; the facts were checked before. */
void aq_statements(const json_t *facts, aq_buf out[static AQ_STATEMENT_COUNT]);
/* Canonical bytes of one further statement about the same package. -EDOM when the predicate has no
 * canonical form. */
int aq_statement_further(const json_t *facts, const char *type, const json_t *predicate,
                         aq_buf *out);
/* Is the payload a statement of this type about the package of the facts? */
bool aq_statement_speaks_of(const json_t *payload, const json_t *facts, const char *type);
/* Does this version know what a further statement of that type means? */
bool aq_statement_known(const char *type);
/* PASSED, WARNED or FAILED; NULL for a verdict that does not exist. */
const char *aq_statement_result(const char *verdict);
/* Names the first place in which two values differ ("predicate.result"), or nothing when equal. */
void aq_json_difference(const json_t *a, const json_t *b, aq_buf *path);
