/* Addresses; see address.h. */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int aq_net_range_parse(const char *text, aq_net_range *ret)
{
    char host[64];
    size_t n = strcspn(text, "/");
    aq_net_range r = {.six = memchr(text, ':', n) != NULL};
    long most, bits;
    char *end;

    if (n >= sizeof host)
        return -EINVAL;
    memcpy(host, text, n);
    host[n] = '\0';
    if (inet_pton(r.six ? AF_INET6 : AF_INET, host, r.address) != 1)
        return -EINVAL;
    most = bits = r.six ? 128 : 32;
    if (text[n] == '/') {
        bits = strtol(text + n + 1, &end, 10);
        if (text[n + 1] < '0' || text[n + 1] > '9' || *end || bits > most)
            return -EINVAL;
    }
    r.prefix = (uint8_t)bits;
    *ret = r;
    return 0;
}

/* The IPv4 address that an IPv6 one stands for, or itself. */
static aq_net_range plain(const aq_net_range *r)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    aq_net_range v = *r;

    if (r->six && memcmp(r->address, mapped, sizeof mapped) == 0) {
        v = (aq_net_range){.prefix = r->prefix > 96 ? (uint8_t)(r->prefix - 96) : 0};
        memcpy(v.address, r->address + 12, 4);
    }
    return v;
}

bool aq_net_range_holds(const aq_net_range *in, const aq_net_range *one)
{
    aq_net_range o = plain(one);
    size_t whole = in->prefix / 8;
    unsigned rest = in->prefix % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);

    if (in->six != o.six || memcmp(in->address, o.address, whole) != 0)
        return false;
    return rest == 0 || ((in->address[whole] ^ o.address[whole]) & mask) == 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int aq_mac_parse(const char *text, uint8_t ret[static 6])
{
    uint8_t mac[6];

    if (strlen(text) != 17)
        return -EINVAL;
    for (int i = 0; i < 6; i++) {
        int high = digit(text[3 * i]), low = digit(text[3 * i + 1]);

        if (high < 0 || low < 0 || (i < 5 && text[3 * i + 2] != ':'))
            return -EINVAL;
        mac[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret, mac, sizeof mac);
    return 0;
}
