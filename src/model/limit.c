/* Limits of one run; see limit.h. */
#include "model/limit.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *what;
    uint64_t fallback;
} table[] = {
#define AQ_LIMIT(id, name, fallback, what) [AQ_LIMIT_##id] = {name, what, fallback},
#include "model/limits.def"
#undef AQ_LIMIT
};

const char *aq_limit_name(aq_limit l)
{
    return table[l].name;
}

const char *aq_limit_what(aq_limit l)
{
    return table[l].what;
}

uint64_t aq_limit_parse(aq_limit l, const char *text)
{
    static const char units[] = "KMGT";
    bool bytes = strncmp(table[l].what, "bytes", 5) == 0;
    char *end = NULL;
    uint64_t n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    const char *unit = n && bytes && *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;

    return n == 0 || n > UINT64_MAX >> shift || end[unit ? 1 : 0] ? 0 : n << shift;
}

aq_limits aq_limits_filled(const aq_limits *given)
{
    aq_limits l = {{0}};

    for (size_t i = 0; i < AQ_LIMITS; i++)
        l.most[i] = given && given->most[i] ? given->most[i] : table[i].fallback;
    return l;
}

bool aq_limit_by_clock(aq_limit l)
{
    return l == AQ_LIMIT_WALL_MS || l == AQ_LIMIT_CPU_NS || l == AQ_LIMIT_MEMORY;
}

int aq_limit_find(const char *name, size_t len)
{
    for (int i = 0; i < AQ_LIMITS; i++)
        if (strlen(aq_limit_name((aq_limit)i)) == len &&
            memcmp(aq_limit_name((aq_limit)i), name, len) == 0)
            return i;
    return -1;
}
