/* Answers of the kernel's network, which a program may read in pieces of any size, become those of
 * another machine: never more than twice as long, always whole messages, and nothing in them that
 * says what the cable is. */
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include "veil/veil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *in = malloc(size + 1), *out = malloc(2 * size + 64);
    struct nlmsghdr h;
    size_t n, at = 0;

    if (!in || !out)
        abort();
    memcpy(in, data, size);
    in = realloc(in, size ? size : 1); /* exactly as long, so that reading past it is found */
    n = aq_veil_netlink(in, size, out);
    if (n > 2 * size + 64 || (size >= sizeof h && n < sizeof h))
        abort();
    while (at + sizeof h <= n) {
        memcpy(&h, out + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > n - at)
            abort();
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    if (at != n)
        abort();
    free(in);
    free(out);
    return 0;
}
