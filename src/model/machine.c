/* Facts of a machine; see machine.h. */
#include "model/machine.h"

#include <errno.h>
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
