/* The face of the machine's network: what a program reads from netlink and asks by a few controls.
 * The answers are the kernel's own; what of them tells of us is rewritten (veil/netlink.c), by
 * whatever call they are read, and whatever cannot be rewritten is not shown. */
#include <errno.h>
#include <linux/ethtool.h>
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
#include "veil/veil.h"

enum { ANSWER = 1 << 18, VECTORS = 1024 };

/* ---- answers ---- */

/* Where one message was put. */
typedef struct buffers {
    struct iovec at[VECTORS];
    size_t count;
} buffers;

static bool take_list(const aq_task *k, uint64_t at, uint64_t count, buffers *b)
{
    b->count = count < VECTORS ? (size_t)count : VECTORS;
    return aq_tracee_get(k, at, b->at, b->count * sizeof *b->at);
}

static bool take_header(const aq_task *k, uint64_t at, buffers *b)
{
    struct msghdr h;

    return aq_tracee_get(k, at, &h, sizeof h) &&
           take_list(k, (uint64_t)(uintptr_t)h.msg_iov, h.msg_iovlen, b);
}

/* To or from the buffers of the task; returns how many bytes there are, `len` at most. */
static size_t move(const aq_task *k, const buffers *b, uint8_t *data, size_t len, bool put)
{
    size_t done = 0;

    for (size_t i = 0; i < b->count && done < len; i++) {
        uint64_t at = (uint64_t)(uintptr_t)b->at[i].iov_base;
        size_t n = b->at[i].iov_len < len - done ? b->at[i].iov_len : len - done;

        if (n > 0 &&
            (put ? !aq_tracee_put(k, at, data + done, n) : !aq_tracee_get(k, at, data + done, n)))
            break;
        done += n;
    }
    return done;
}

/* Lists of sockets, message by message; what is no whole message is left out. They get numbers as
 * they come, so that they are put in order before. */
static size_t rewrite_sockets(aq_tracer *t, uint8_t *in, size_t len, uint8_t *out)
{
    size_t at = 0, n = 0;
    struct nlmsghdr h;

    aq_face_order(in, len, SOCK_DIAG_BY_FAMILY);
    while (at + sizeof h <= len) {
        size_t whole;

        memcpy(&h, in + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > len - at)
            break;
        memcpy(out + n, in + at, h.nlmsg_len);
        whole = h.nlmsg_type == SOCK_DIAG_BY_FAMILY ? aq_face_socket(t, out + n, h.nlmsg_len)
                                                    : h.nlmsg_len;
        while (whole % NLMSG_ALIGNTO)
            out[n + whole++] = 0;
        n += whole;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    return n;
}

static size_t rewrite_routes(const uint8_t *in, size_t len, uint8_t *out)
{
    size_t n = aq_veil_netlink(in, len, out);

    aq_face_order(out, n, RTM_NEWNEIGH);
    return n;
}

/* An answer that is read, and who reads it. */
typedef struct reading {
    aq_tracer *t;
    aq_task *k;
    int protocol;
    buffers to;
} reading;

/* Of `len` bytes; returns how many there are now. What it does not fill any more is emptied. */
static size_t rewrite(reading *r, size_t len)
{
    size_t there = len < ANSWER ? len : ANSWER, n;
    aq_auto_free uint8_t *in = aq_alloc(there + 1), *out = aq_alloc(2 * there + 64);

    there = move(r->k, &r->to, in, there, false);
    if (there < sizeof(struct nlmsghdr))
        return len;
    n = r->protocol == NETLINK_ROUTE ? rewrite_routes(in, there, out)
                                     : rewrite_sockets(r->t, in, there, out);
    if (n > there) /* nobody has room for it */
        n = 0;
    memset(out + n, 0, there - n);
    move(r->k, &r->to, out, there, true);
    return there < len ? len : n; /* it asked how long it would be */
}

static int protocol_of(const aq_task *k, int fd)
{
    aq_auto_fd int mine = aq_fd_borrow(k, fd);
    int protocol = -1;
    socklen_t len = sizeof protocol;

    return mine >= 0 && getsockopt(mine, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 ? protocol
                                                                                        : -1;
}

static void rewrite_many(reading *r, uint64_t at, long count)
{
    for (long i = 0; i < count; i++, at += sizeof(struct mmsghdr)) {
        uint64_t place = at + offsetof(struct mmsghdr, msg_len);
        uint32_t len = 0;

        if (!take_header(r->k, at, &r->to) || !aq_tracee_get(r->k, place, &len, sizeof len))
            return;
        len = (uint32_t)rewrite(r, len);
        aq_tracee_put(r->k, place, &len, sizeof len);
    }
}

void aq_face_netlink(aq_tracer *t, aq_task *k, long *result)
{
    uint64_t at = aq_regs_arg(k, 1), len = aq_regs_arg(k, 2);
    reading r = {.t = t, .k = k};

    if (!t->plan.machine || *result <= 0 || aq_fd_of(t, k, aq_arg_int(k, 0))->family != AF_NETLINK)
        return;
    r.protocol = protocol_of(k, aq_arg_int(k, 0));
    if (r.protocol != NETLINK_ROUTE && r.protocol != NETLINK_SOCK_DIAG)
        return;
    switch (k->nr) {
    case SYS_recvmmsg:
        rewrite_many(&r, at, *result);
        return;
    case SYS_recvmsg:
        if (!take_header(k, at, &r.to))
            return;
        break;
    case SYS_readv:
    case SYS_preadv2:
        if (!take_list(k, at, len, &r.to))
            return;
        break;
    default:
        r.to.at[0] = (struct iovec){(void *)(uintptr_t)at, len};
        r.to.count = 1;
    }
    *result = (long)rewrite(&r, (size_t)*result);
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
    snprintf(d.version, sizeof d.version, "%s",
             fact(t, "net.version", fact(t, "kernel.release", "")));
    snprintf(d.bus_info, sizeof d.bus_info, "%s", fact(t, "net.bus", "0000:00:1f.6"));
    snprintf(d.fw_version, sizeof d.fw_version, "%s", fact(t, "net.firmware", ""));
    aq_tracee_put(k, at, &d, sizeof d);
    return AQ_STEP_RUN;
}
