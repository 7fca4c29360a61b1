/* Work budgets: what may be spent on one package, counted in work and never in time, so that the
 * same package gets the same answer on every machine. Running out is not an error of ours: the
 * stage records which budget ended and the verdict is at best INCONCLUSIVE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum aq_budget_kind {
#define AQ_BUDGET(id, name, limit, what) AQ_BUDGET_##id,
#include "base/budgets.def"
#undef AQ_BUDGET
    AQ_BUDGET_COUNT
} aq_budget_kind;

typedef struct aq_budget {
    uint64_t limit[AQ_BUDGET_COUNT];
    uint64_t spent[AQ_BUDGET_COUNT];
} aq_budget;

void aq_budget_init(aq_budget *b); /* the defaults of budgets.def */
/* Spends `n`; false once the limit is passed (the overdraft stays recorded, saturating). */
bool aq_budget_spend(aq_budget *b, aq_budget_kind kind, uint64_t n);
const char *aq_budget_name(aq_budget_kind kind); /* "unpacked-bytes" */
const char *aq_budget_what(aq_budget_kind kind); /* "bytes after unpacking" */
