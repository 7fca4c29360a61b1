/* Facts of a machine; see machine.h. */
#include "model/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *aq_machine_fact(const aq_machine *m, const char *name)
{
    for (size_t i = 0; i < m->fact_count; i++)
        if (strcmp(m->facts[i].name, name) == 0)
            return m->facts[i].value;
    return NULL;
}

uint64_t aq_machine_number(const aq_machine *m, const char *name, uint64_t otherwise)
{
    const char *text = aq_machine_fact(m, name);
    char *end;
    uint64_t n;

    if (!text || *text < '0' || *text > '9')
        return otherwise;
    errno = 0;
    n = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' ? n : otherwise;
}

bool aq_machine_is(const aq_machine *m, const char *on)
{
    bool not = *on == '!';

    return !*on || (aq_machine_fact(m, on + not ) != NULL) != not ;
}

/* "2995.200": megahertz, with a fraction or without. */
uint64_t aq_machine_khz(const aq_machine *m)
{
    const char *text = aq_machine_fact(m, "cpu.mhz");
    uint64_t khz = 0, unit = 1000;
    bool fraction = false;

    for (; text && *text && unit > 0 && khz < 1000000000; text++) {
        if (*text == '.' && !fraction) {
            fraction = true;
            unit = 100;
            continue;
        }
        if (*text < '0' || *text > '9')
            break;
        khz = fraction ? khz + (uint64_t)(*text - '0') * unit
                       : khz * 10 + (uint64_t)(*text - '0') * 1000;
        if (fraction)
            unit /= 10;
    }
    return khz >= 1000 ? khz : 2000000;
}
