/* The face of the machine's network: eth0 is one end of a virtual cable, and the kernel tells so in
 * answers over netlink and in a few controls. They are rewritten: the other end, its namespace and
 * the kind of device are left out, how our routes differ from usual ones too. The answers are the
 * kernel's own; whatever does not look like one is left as it is. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "observe/face_net.h"

enum { ANSWER = 1 << 17, VECTORS = 64, LOOPBACK = 1, OPER_UP = 6 };

/* ---- attributes ---- */

typedef struct drops {
    const uint16_t *types;
    size_t count;
} drops;

static bool dropped(const drops *d, uint16_t type)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->types[i] == (type & NLA_TYPE_MASK))
            return true;
    return false;
}

/* A text attribute of a device that says what no such device has. */
static size_t put_text(uint8_t *out, uint16_t type, const char *text)
{
    struct rtattr a = {.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(strlen(text) + 1)};

    memset(out, 0, RTA_ALIGN(a.rta_len));
    memcpy(out, &a, sizeof a);
    memcpy(out + RTA_LENGTH(0), text, strlen(text));
    return RTA_ALIGN(a.rta_len);
}

/* What came and went: the same numbers as in /proc/net/dev (veil/files.def). When the kernel greets
 * its neighbours is its own affair. */
static void put_counts(uint8_t *out, size_t len, size_t width)
{
    static const uint64_t counts[] = {153877, 97415, 184290612, 14406358, 0, 0, 12, 0, 2119};

    memset(out, 0, len);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && (i + 1) * width <= len; i++)
        memcpy(out + i * width, &counts[i], width); /* the low bytes come first */
}

/* Copies attributes without those; returns the length. `out` may not overlap. */
static size_t copy_attributes(const uint8_t *in, size_t len, const drops *d, bool device,
                              bool address, uint8_t *out)
{
    size_t at = 0, n = 0;

    while (at + sizeof(struct rtattr) <= len) {
        struct rtattr a;
        size_t whole;

        memcpy(&a, in + at, sizeof a);
        if (a.rta_len < sizeof a || a.rta_len > len - at)
            break;
        whole = RTA_ALIGN(a.rta_len) < len - at ? RTA_ALIGN(a.rta_len) : len - at;
        if (device && a.rta_type == IFLA_QDISC) {
            n += put_text(out + n, IFLA_QDISC, "fq_codel");
        } else if (!dropped(d, a.rta_type)) {
            memcpy(out + n, in + at, whole);
            if (device && a.rta_type == IFLA_OPERSTATE)
                out[n + RTA_LENGTH(0)] = OPER_UP;
            if (device && (a.rta_type == IFLA_STATS || a.rta_type == IFLA_STATS64))
                put_counts(out + n + RTA_LENGTH(0), a.rta_len - RTA_LENGTH(0),
                           a.rta_type == IFLA_STATS ? 4 : 8);
            if (address && a.rta_type == IFA_FLAGS)
                out[n + RTA_LENGTH(0)] &= (uint8_t)~IFA_F_NODAD;
            n += whole;
        }
        at += whole;
    }
    return n;
}

/* ---- messages ---- */

static const uint16_t link_drops[] = {IFLA_LINK, IFLA_LINKINFO, IFLA_LINK_NETNSID, IFLA_XDP};
static const uint16_t route_drops[] = {RTA_METRICS};

/* One message of `len` bytes to `out`; returns its new length. */
static size_t rewrite(const uint8_t *in, size_t len, uint8_t *out)
{
    struct nlmsghdr h;
    size_t head;
    drops d = {0};
    bool device = false;

    memcpy(&h, in, sizeof h);
    switch (h.nlmsg_type) {
    case RTM_NEWLINK:
        head = NLMSG_LENGTH(sizeof(struct ifinfomsg));
        d = (drops){link_drops, sizeof link_drops / sizeof *link_drops};
        break;
    case RTM_NEWADDR:
        head = NLMSG_LENGTH(sizeof(struct ifaddrmsg));
        break;
    case RTM_NEWROUTE:
        head = NLMSG_LENGTH(sizeof(struct rtmsg));
        d = (drops){route_drops, sizeof route_drops / sizeof *route_drops};
        break;
    default:
        head = len;
    }
    head = NLMSG_ALIGN(head);
    if (head >= len) {
        memcpy(out, in, len);
        return len;
    }
    memcpy(out, in, head);
    if (h.nlmsg_type == RTM_NEWLINK) {
        struct ifinfomsg m;

        memcpy(&m, in + NLMSG_HDRLEN, sizeof m);
        device = m.ifi_index != LOOPBACK;
        if (device)
            m.ifi_flags |= IFF_RUNNING | 1 << 16 /* IFF_LOWER_UP */;
        memcpy(out + NLMSG_HDRLEN, &m, sizeof m);
    } else if (h.nlmsg_type == RTM_NEWADDR) {
        out[NLMSG_HDRLEN + offsetof(struct ifaddrmsg, ifa_flags)] &= (uint8_t)~IFA_F_NODAD;
    }
    len = head + copy_attributes(in + head, len - head, &d, device, h.nlmsg_type == RTM_NEWADDR,
                                 out + head);
    h.nlmsg_len = (uint32_t)len;
    memcpy(out, &h, sizeof h);
    return len;
}

/* One message of whichever protocol: others use the same numbers for something else. */
static size_t rewrite_one(aq_tracer *t, int protocol, const uint8_t *in, size_t len, uint8_t *out)
{
    struct nlmsghdr h;

    memcpy(&h, in, sizeof h);
    if (protocol == NETLINK_ROUTE && h.nlmsg_type != RTM_NEWNEIGH)
        return rewrite(in, len, out);
    memcpy(out, in, len);
    if (protocol == NETLINK_ROUTE)
        aq_face_neighbour(out, len);
    else if (h.nlmsg_type == SOCK_DIAG_BY_FAMILY)
        len = aq_face_socket(t, out, len);
    return len;
}

/* All messages of one answer. A little more room than they had: a text may be longer. */
static size_t rewrite_all(aq_tracer *t, int protocol, const uint8_t *in, size_t len, uint8_t *out,
                          size_t cap)
{
    size_t at = 0, n = 0;

    while (at + sizeof(struct nlmsghdr) <= len) {
        struct nlmsghdr h;
        size_t whole;

        memcpy(&h, in + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > len - at || n + h.nlmsg_len + 64 > cap)
            return 0;
        whole = rewrite_one(t, protocol, in + at, h.nlmsg_len, out + n);
        while (whole % NLMSG_ALIGNTO && n + whole < cap)
            out[n + whole++] = 0;
        n += whole;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    aq_face_order(out, n, protocol == NETLINK_ROUTE ? RTM_NEWNEIGH : SOCK_DIAG_BY_FAMILY);
    return at >= len ? n : 0;
}

/* The buffers of a receiving call. */
static size_t buffers(const aq_task *k, struct iovec *v)
{
    struct msghdr h;

    if (k->nr == SYS_recvfrom || k->nr == SYS_read) {
        v[0] = (struct iovec){(void *)(uintptr_t)aq_regs_arg(k, 1), aq_regs_arg(k, 2)};
        return 1;
    }
    if (k->nr != SYS_recvmsg || !aq_tracee_get(k, aq_regs_arg(k, 1), &h, sizeof h) ||
        h.msg_iovlen > VECTORS ||
        !aq_tracee_get(k, (uint64_t)(uintptr_t)h.msg_iov, v, h.msg_iovlen * sizeof *v))
        return 0;
    return h.msg_iovlen;
}

/* To or from the buffers of the task, `len` bytes in all. */
static bool move(const aq_task *k, const struct iovec *v, size_t count, uint8_t *data, size_t len,
                 bool put)
{
    for (size_t i = 0; i < count && len > 0; i++) {
        uint64_t at = (uint64_t)(uintptr_t)v[i].iov_base;
        size_t n = v[i].iov_len < len ? v[i].iov_len : len;

        if (put ? !aq_tracee_put(k, at, data, n) : !aq_tracee_get(k, at, data, n))
            return false;
        data += n;
        len -= n;
    }
    return len == 0;
}

static int protocol_of(const aq_task *k, int fd)
{
    aq_auto_fd int mine = aq_fd_borrow(k, fd);
    int protocol = -1;
    socklen_t len = sizeof protocol;

    return mine >= 0 && getsockopt(mine, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 ? protocol
                                                                                        : -1;
}

void aq_face_netlink(aq_tracer *t, aq_task *k, long *result)
{
    aq_auto_free uint8_t *in = NULL, *out = NULL;
    struct iovec v[VECTORS];
    size_t count, n, len;
    int protocol;

    if (!t->plan.machine || *result < (long)sizeof(struct nlmsghdr) || *result > ANSWER ||
        aq_fd_of(t, k, aq_arg_int(k, 0))->family != AF_NETLINK)
        return;
    protocol = protocol_of(k, aq_arg_int(k, 0));
    if (protocol != NETLINK_ROUTE && protocol != NETLINK_SOCK_DIAG)
        return;
    len = (size_t)*result;
    count = buffers(k, v);
    in = aq_alloc(len);
    out = aq_alloc(2 * len + 256);
    if (!move(k, v, count, in, len, false)) /* a part only, or none: it asked for the length */
        return;
    n = rewrite_all(t, protocol, in, len, out, 2 * len + 256);
    if (n > 0 && n <= len && move(k, v, count, out, n, true))
        *result = (long)n;
}

/* ---- controls ---- */

static const char *fact(const aq_tracer *t, const char *name, const char *otherwise)
{
    const char *value = aq_machine_fact(t->plan.machine, name);

    return value ? value : otherwise;
}

aq_step aq_after_ioctl(aq_tracer *t, aq_task *k, long *result)
{
    struct ethtool_drvinfo d;
    struct ifreq q;
    uint32_t command = 0;
    uint64_t at;

    if (t->plan.machine && *result >= 0)
        aq_face_stamp_control(t, k, (uint32_t)aq_regs_arg(k, 1));
    if (!t->plan.machine || (uint32_t)aq_regs_arg(k, 1) != SIOCETHTOOL || *result < 0 ||
        !aq_tracee_get(k, aq_regs_arg(k, 2), &q, sizeof q))
        return AQ_STEP_RUN;
    at = (uint64_t)(uintptr_t)q.ifr_data;
    if (!aq_tracee_get(k, at, &command, sizeof command) || command != ETHTOOL_GDRVINFO ||
        !aq_tracee_get(k, at, &d, sizeof d))
        return AQ_STEP_RUN;
    memset(d.driver, 0, sizeof d.driver);
    memset(d.version, 0, sizeof d.version);
    memset(d.bus_info, 0, sizeof d.bus_info);
    memset(d.fw_version, 0, sizeof d.fw_version);
    snprintf(d.driver, sizeof d.driver, "%s", fact(t, "net.driver", "e1000e"));
    snprintf(d.version, sizeof d.version, "%s", fact(t, "kernel.release", ""));
    snprintf(d.bus_info, sizeof d.bus_info, "%s", fact(t, "net.bus", "0000:00:1f.6"));
    snprintf(d.fw_version, sizeof d.fw_version, "%s", fact(t, "net.firmware", "0.5-4"));
    aq_tracee_put(k, at, &d, sizeof d);
    return AQ_STEP_RUN;
}
