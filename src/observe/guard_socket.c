/* Sockets: which kinds there are, and what may be asked of them. Some would make the host's kernel
 * load code for a program that only asks; some move bytes past the calls that are recorded; some
 * tell of the host what nothing else tells. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "observe/decode.h"
#include "observe/disk.h"
#include "observe/reach.h"

enum {
    MULTIPATH = 262, /* IPPROTO_MPTCP */
    KIND = 0xf,      /* of a socket's type; the rest are flags */
    FILTER_MOST = 4096,
    COOKIE_OF_NETWORK = 71, /* SO_NETNS_COOKIE */
    FIRST_NETWORK = 1,      /* what it says on a machine that has no other */
};

/* ---- which there are ---- */

/* What the kernel has no code for it asks the host's programs to load, whoever wants it. */
static aq_step try_internet(aq_tracer *t, aq_task *k)
{
    int kind = aq_arg_int(k, 1) & KIND;

    if (kind != SOCK_STREAM && kind != SOCK_DGRAM && kind != SOCK_RAW)
        return aq_refuse(k, ESOCKTNOSUPPORT, "family.refused");
    switch (aq_arg_int(k, 2)) {
    case 0:
    case IPPROTO_ICMP:
    case IPPROTO_TCP:
    case IPPROTO_UDP:
    case IPPROTO_ICMPV6:
    case IPPROTO_UDPLITE:
    case MULTIPATH:
        break;
    default:
        if (kind != SOCK_RAW) /* those only the mighty may have */
            return aq_refuse(k, EPROTONOSUPPORT, "family.refused");
    }
    aq_reach_network(t, k);
    return AQ_STEP_RUN;
}

static aq_step try_netlink(aq_tracer *t, aq_task *k)
{
    switch (aq_arg_int(k, 2)) {
    case NETLINK_SOCK_DIAG:
    case NETLINK_ROUTE:
    case NETLINK_AUDIT:
    case NETLINK_KOBJECT_UEVENT:
    case NETLINK_GENERIC:
        break;
    default:
        return aq_refuse(k, EPROTONOSUPPORT, "family.refused");
    }
    aq_reach_network(t, k);
    return AQ_STEP_RUN;
}

/* Only families that a network namespace holds. Others reach past it (vsock: the hypervisor of the
 * host) or have no use but to find old code in the kernel. */
aq_step aq_try_socket(aq_tracer *t, aq_task *k)
{
    switch (aq_arg_int(k, 0)) {
    case AF_INET:
    case AF_INET6:
        return try_internet(t, k);
    case AF_NETLINK:
        return try_netlink(t, k);
    case AF_PACKET:
        aq_reach_network(t, k);
        return AQ_STEP_RUN;
    case AF_UNIX:
        return AQ_STEP_RUN;
    default:
        return aq_refuse(k, EAFNOSUPPORT, "family.refused");
    }
}

/* ---- what is set ---- */

/* A filter looks at each message, and at what lies beside it: true chance, the processor, a hash
 * whose key is the host's. Whether a message passes would tell. */
static bool filter_tells(const aq_task *k, uint64_t at)
{
    static struct sock_filter code[FILTER_MOST];
    struct sock_fprog f;

    if (!aq_tracee_get(k, at, &f, sizeof f) || f.len > FILTER_MOST ||
        !aq_tracee_get(k, (uint64_t)(uintptr_t)f.filter, code, f.len * sizeof *code))
        return false; /* the kernel finds the same */
    for (unsigned i = 0; i < f.len; i++) {
        if (BPF_CLASS(code[i].code) != BPF_LD || BPF_MODE(code[i].code) != BPF_ABS)
            continue;
        switch (code[i].k - (uint32_t)SKF_AD_OFF) {
        case SKF_AD_RANDOM:
        case SKF_AD_CPU:
        case SKF_AD_RXHASH:
            return true;
        }
    }
    return false;
}

/* With SO_ZEROCOPY the kernel would send what lies in memory later, not what was recorded. */
static aq_step try_socket_option(aq_tracer *t, aq_task *k)
{
    switch (aq_arg_int(k, 2)) {
    case SO_ZEROCOPY:
        return aq_refuse(k, EOPNOTSUPP, "zerocopy.refused");
    case SO_ATTACH_FILTER:
    case SO_ATTACH_REUSEPORT_CBPF:
        return filter_tells(k, aq_regs_arg(k, 3)) ? aq_refuse(k, EINVAL, "filter.refused")
                                                  : AQ_STEP_RUN;
    case SO_LINGER:
        t->lingers = true;
        break;
    default:
        break;
    }
    if (t->plan.machine)
        aq_stamps_wanted(t, aq_arg_int(k, 2));
    return AQ_STEP_RUN;
}

/* What the machine's kernel controls streams by; in truth they have the plain one (net.c). */
static const char control[16] = "cubic";

/* What is held back until there is more the kernel sends after a fifth of a second of the host's.
 * So it is said to be held back, and sent at once: where a segment ends tells nobody anything. */
static aq_step try_cork(aq_tracer *t, aq_task *k)
{
    aq_fd *f = aq_fd_slot(t, k, aq_arg_int(k, 0));
    int value = 0;

    if (!f || f->kind != AQ_FD_SOCKET || !f->stream || f->family == AF_UNIX ||
        aq_arg_int(k, 4) < (int)sizeof value)
        return AQ_STEP_RUN; /* the kernel says why not */
    if (!aq_tracee_get(k, aq_regs_arg(k, 3), &value, sizeof value))
        return aq_answer(k, -EFAULT);
    f->corked = value != 0;
    return aq_answer(k, 0);
}

/* A connection that begins with its first bytes is made by a call that is no connect. */
static aq_step try_stream_option(aq_tracer *t, aq_task *k)
{
    char name[sizeof "cubic"] = "";

    if (aq_arg_int(k, 2) == TCP_CORK)
        return try_cork(t, k);

    if (aq_arg_int(k, 2) == TCP_FASTOPEN_CONNECT)
        return aq_refuse(k, EOPNOTSUPP, "fastopen.refused");
    if (t->plan.machine && aq_arg_int(k, 2) == TCP_CONGESTION &&
        aq_tracee_get(k, aq_regs_arg(k, 3), name, sizeof name - 1) && strcmp(name, control) == 0)
        return aq_answer(k, 0);
    return AQ_STEP_RUN;
}

aq_step aq_try_option(aq_tracer *t, aq_task *k)
{
    switch (aq_arg_int(k, 1)) {
    case SOL_SOCKET:
        return try_socket_option(t, k);
    case IPPROTO_TCP:
        return try_stream_option(t, k);
    default:
        return AQ_STEP_RUN;
    }
}

/* ---- what is asked ---- */

static bool tells(const aq_task *k)
{
    int option = aq_arg_int(k, 2);

    if (aq_arg_int(k, 1) == IPPROTO_TCP)
        return option == TCP_INFO || option == TCP_TIMESTAMP || option == TCP_CONGESTION ||
               option == TCP_CORK;
    return aq_arg_int(k, 1) == SOL_SOCKET &&
           (option == SO_COOKIE || option == COOKIE_OF_NETWORK || option == SO_INCOMING_CPU);
}

/* One of these is no question: it hands out what was received, past every call that receives. */
aq_step aq_try_sockopt(aq_tracer *t, aq_task *k)
{
    if (aq_arg_int(k, 1) == IPPROTO_TCP && aq_arg_int(k, 2) == TCP_ZEROCOPY_RECEIVE)
        return aq_refuse(k, ENOPROTOOPT, "zerocopy.refused");
    return t->plan.machine && tells(k) ? AQ_STEP_RUN : AQ_STEP_GO;
}

void aq_note_sockopt(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "option");

    if (!k->rule)
        return;
    aq_event_object(&e, aq_fd_of(t, k, aq_arg_int(k, 0))->name);
    aq_event_number(&e, "level", aq_arg_int(k, 1));
    aq_event_number(&e, "option", aq_arg_int(k, 2));
    e.result = result;
    aq_note(t, k, &e);
}

/* The kernel counts its sockets and networks, and those of the host with them. */
static uint64_t cookie(aq_tracer *t, aq_task *k)
{
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));

    return f->kind == AQ_FD_SOCKET ? aq_disk_anonymous(t, f->ino, NULL) : 0;
}

aq_step aq_after_sockopt(aq_tracer *t, aq_task *k, long *result)
{
    const int level = aq_arg_int(k, 1), option = aq_arg_int(k, 2);
    uint64_t value = 0;
    socklen_t len = 0;
    int cpu = -1;

    if (!t->plan.machine || *result < 0 || !aq_tracee_get(k, aq_regs_arg(k, 4), &len, sizeof len))
        return AQ_STEP_RUN;
    if (level == IPPROTO_TCP && option == TCP_INFO) {
        aq_face_connection(t, k, aq_regs_arg(k, 3), len);
        return AQ_STEP_RUN;
    }
    if (level == IPPROTO_TCP && option == TCP_CONGESTION) {
        aq_tracee_put(k, aq_regs_arg(k, 3), control, len < sizeof control ? len : sizeof control);
        return AQ_STEP_RUN;
    }
    if (level == IPPROTO_TCP && option == TCP_CORK)
        value = aq_fd_of(t, k, aq_arg_int(k, 0))->corked;
    else if (level == IPPROTO_TCP)
        value = aq_clock_now(t, CLOCK_MONOTONIC) / 1000000;
    else if (option == SO_COOKIE)
        value = cookie(t, k);
    else if (option == COOKIE_OF_NETWORK)
        value = FIRST_NETWORK;
    else if (aq_tracee_get(k, aq_regs_arg(k, 3), &cpu, sizeof cpu))
        value = (uint64_t)(int64_t)(cpu < 0 ? cpu : 0);
    aq_tracee_put(k, aq_regs_arg(k, 3), &value, len < sizeof value ? len : sizeof value);
    return AQ_STEP_RUN;
}
