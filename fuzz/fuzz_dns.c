/* DNS: any message is answered within the bounds of its transport, with the question in it, or not
 * at all. */
#include <stdlib.h>
#include <string.h>

#include "internet/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size, size_t max)
{
    static const aq_fact facts[] = {{"host.name", "pine"}, {"net.address", "10.0.2.15/24"}};
    static const char *const names[] = {"example.org", "*.example.net"};
    const aq_internet_world w = {.facts = facts, .fact_count = 2, .names = names, .name_count = 2};
    aq_auto_buf out = {0};
    aq_dns_asked asked;

    if (aq_dns_answer(&w, INT64_C(1700000000000000000), data, size, max, &asked, &out) < 0)
        return;
    if (out.len < 12 || out.len > (max == AQ_DNS_UDP ? 4096 : max) ||
        memcmp(out.data, data, 2) != 0 || !(out.data[2] & 0x80) ||
        strnlen(asked.name, sizeof asked.name) == sizeof asked.name || !asked.name[0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, AQ_DNS_UDP);
    check(data, size, AQ_DNS_TCP);
    return 0;
}
