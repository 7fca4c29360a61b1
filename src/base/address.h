/* Addresses of the internet protocol and ranges of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* An address, and how many of its leading bits name a network; bytes as on the wire. */
typedef struct aq_net_range {
    uint8_t address[16];
    uint8_t prefix;
    bool six; /* IPv6; else four bytes count */
} aq_net_range;

/* "10.0.2.15", "10.0.2.15/24", "fe80::1/64"; without a length all bits count. 0 or -EINVAL. */
int aq_net_range_parse(const char *text, aq_net_range *ret);
/* Does the address of `one` lie in the network of `in`? An IPv4 address in its IPv6 form counts as
 * the IPv4 address. */
bool aq_net_range_holds(const aq_net_range *in, const aq_net_range *one);
/* "3c:fd:fe:01:02:03"; 0 or -EINVAL. */
int aq_mac_parse(const char *text, uint8_t ret[static 6]);
