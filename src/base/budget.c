/* Work budgets; see budget.h. */
#include "base/budget.h"

#include <stddef.h>

static const struct {
    const char *name, *what;
    uint64_t limit;
} table[AQ_BUDGET_COUNT] = {
#define AQ_BUDGET(id, name, limit, what) [AQ_BUDGET_##id] = {name, what, limit},
#include "base/budgets.def"
#undef AQ_BUDGET
};

void aq_budget_init(aq_budget *b)
{
    for (size_t i = 0; i < AQ_BUDGET_COUNT; i++) {
        b->limit[i] = table[i].limit;
        b->spent[i] = 0;
    }
}

bool aq_budget_spend(aq_budget *b, aq_budget_kind kind, uint64_t n)
{
    if (__builtin_add_overflow(b->spent[kind], n, &b->spent[kind]))
        b->spent[kind] = UINT64_MAX;
    return b->spent[kind] <= b->limit[kind];
}

const char *aq_budget_name(aq_budget_kind kind)
{
    return table[kind].name;
}

const char *aq_budget_what(aq_budget_kind kind)
{
    return table[kind].what;
}
