/* Reserved addresses; see reserved.h. */
#include "model/reserved.h"

static const char *const rows[] = {
#define AQ_RESERVED(range, why) range,
#include "model/reserved.def"
#undef AQ_RESERVED
};

enum { COUNT = sizeof rows / sizeof *rows };

const aq_net_range *aq_reserved(size_t *count)
{
    static aq_net_range all[COUNT];
    static bool made;

    for (size_t i = 0; i < COUNT && !made; i++)
        if (aq_net_range_parse(rows[i], &all[i]) < 0)
            all[i] = (aq_net_range){.prefix = 32}; /* a test reads every row */
    made = true;
    *count = COUNT;
    return all;
}

size_t aq_reserved_though(const aq_machine *m, aq_net_range ret[static AQ_REACHABLE])
{
    const char *const texts[AQ_REACHABLE] = {aq_machine_fact(m, "net.address"),
                                             aq_machine_fact(m, "net.gateway"),
                                             aq_machine_fact(m, "net.resolver"), "169.254.169.254"};
    size_t count = 0;

    for (size_t i = 0; i < AQ_REACHABLE; i++)
        if (texts[i] && aq_net_range_parse(texts[i], &ret[count]) == 0) {
            ret[count].prefix = ret[count].six ? 128 : 32;
            count++;
        }
    return count;
}

bool aq_reserved_from(const aq_machine *m, const aq_net_range *address)
{
    aq_net_range though[AQ_REACHABLE];
    size_t count, exceptions = aq_reserved_though(m, though);
    const aq_net_range *all = aq_reserved(&count);
    bool found = false;

    for (size_t i = 0; i < count && !found; i++)
        found = aq_net_range_holds(&all[i], address);
    for (size_t i = 0; i < exceptions && found; i++)
        found = !aq_net_range_holds(&though[i], address);
    return found;
}
