/* The loopback device; see network.h. */
#include "kernel/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LOOPBACK = 1, REQUEST = 256, REQUESTS = 4 };

/* All requests go in one datagram: the kernel answers each, and one read collects the answers. */
typedef struct batch {
    _Alignas(struct nlmsghdr) unsigned char data[REQUESTS * REQUEST];
    size_t len;
    uint32_t count;
} batch;

static struct nlmsghdr *begin(batch *b, uint16_t type, uint16_t flags, const void *body, size_t len)
{
    struct nlmsghdr *h = (struct nlmsghdr *)(void *)(b->data + b->len);

    *h = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
                           .nlmsg_type = type,
                           .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
                           .nlmsg_seq = ++b->count};
    memcpy(NLMSG_DATA(h), body, len);
    return h;
}

static void attribute(struct nlmsghdr *h, uint16_t type, const void *value, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((unsigned char *)h + NLMSG_ALIGN(h->nlmsg_len));

    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), value, len);
    h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + RTA_ALIGN(a->rta_len));
}

static void end(batch *b, const struct nlmsghdr *h)
{
    b->len += NLMSG_ALIGN(h->nlmsg_len);
}

static void link_up(batch *b)
{
    struct ifinfomsg m = {.ifi_index = LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

    end(b, begin(b, RTM_NEWLINK, 0, &m, sizeof m));
}

static void add_address(batch *b, uint32_t address, uint8_t prefix)
{
    struct ifaddrmsg m = {.ifa_family = AF_INET, .ifa_prefixlen = prefix, .ifa_index = LOOPBACK};
    struct nlmsghdr *h = begin(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);

    attribute(h, IFA_LOCAL, &address, sizeof address);
    attribute(h, IFA_ADDRESS, &address, sizeof address);
    end(b, h);
}

/* A local route for every destination. Its preferred source keeps a socket from showing the
 * destination as its own address. */
static void add_route(batch *b, uint32_t source)
{
    struct rtmsg m = {.rtm_family = AF_INET,
                      .rtm_table = RT_TABLE_LOCAL,
                      .rtm_protocol = RTPROT_BOOT,
                      .rtm_scope = RT_SCOPE_HOST,
                      .rtm_type = RTN_LOCAL};
    struct nlmsghdr *h = begin(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);
    uint32_t device = LOOPBACK;

    attribute(h, RTA_OIF, &device, sizeof device);
    attribute(h, RTA_PREFSRC, &source, sizeof source);
    end(b, h);
}

/* Every request has its answer; the first refusal is told. */
static int read_answers(int fd, const batch *b, aq_err *err)
{
    static const char *const what[] = {"", "turn on the loopback device",
                                       "give the loopback device an address",
                                       "route all addresses to the loopback device"};
    _Alignas(struct nlmsghdr) unsigned char answer[4096];

    for (uint32_t seen = 0; seen < b->count;) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        unsigned left = n > 0 ? (unsigned)n : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return aq_fail_errno(err, "cannot read netlink's answer");
        for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            const struct nlmsgerr *e = NLMSG_DATA(h);
            if (h->nlmsg_type != NLMSG_ERROR)
                continue;
            seen++;
            if (e->error)
                return aq_fail(err, e->error, "cannot %s: %s",
                               what[h->nlmsg_seq < 4 ? h->nlmsg_seq : 0], strerror(-e->error));
        }
    }
    return 0;
}

int aq_network_local(uint32_t address, uint8_t prefix, aq_err *err)
{
    aq_auto_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    batch b = {.len = 0};
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "cannot make a netlink socket");
    link_up(&b);
    add_address(&b, htonl(address), prefix);
    add_route(&b, htonl(address));
    if (send(fd, b.data, b.len, 0) < 0)
        return aq_fail_errno(err, "cannot send to netlink");
    r = read_answers(fd, &b, err);
    if (r < 0)
        return r;
    r = ioctl(fd, SIOCGSKNS); /* without a /proc, which may be another's at this moment */
    return r < 0 ? aq_fail_errno(err, "cannot take hold of the network") : r;
}
