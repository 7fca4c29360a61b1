/* Sockets that get an address or a peer. A connection is started without waiting and then watched;
 * where no answer comes it ends as the kernel's own would, on our clock. Ports that nobody named
 * follow from the seed, and what cannot be reached is refused here: the kernel would only find out
 * after a second of its own time. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "observe/decode.h"
#include "observe/reach.h"

enum {
    OUT = 1,         /* of a look: to the internet */
    WAY = 2,         /* of a look: how long that is */
    GIVE_UP_S = 127, /* six more greetings, each after twice the time */
    MESSAGES = 1024, /* that the kernel sends at once */
};

/* The address at `at` in the task; false when there is none that could be one. */
static bool get_address(const aq_task *k, uint64_t at, uint64_t len, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (!at || len < sizeof ret->ss_family)
        return false;
    return aq_tracee_get(k, at, ret, len < sizeof *ret ? (size_t)len : sizeof *ret);
}

/* ---- connect ---- */

static aq_step watch_connect(aq_tracer *t, aq_task *k, int mine)
{
    struct pollfd p = {.fd = mine, .events = POLLOUT};
    int why = 0;
    socklen_t len = sizeof why;

    if (aq_io_poll(&p) == 0) {
        if (aq_io_over(t, k, mine, true))
            return aq_answer(k, k->until && k->until == k->deadline ? -ETIMEDOUT : -EINPROGRESS);
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    getsockopt(mine, SOL_SOCKET, SO_ERROR, &why, &len);
    aq_reach_called(t, aq_look_of(k)->number[WAY], true);
    return aq_answer(k, -why);
}

/* What becomes of it before the kernel sees it: 0, or the answer. */
static int go_out(aq_tracer *t, aq_task *k, int mine)
{
    bool stream = aq_fd_of(t, k, aq_arg_int(k, 0))->stream;
    struct sockaddr_storage s;
    int r;

    aq_look_of(k)->number[OUT] = aq_look_of(k)->number[WAY] = 0;
    if (!t->plan.machine || !get_address(k, aq_regs_arg(k, 1), (uint32_t)aq_regs_arg(k, 2), &s))
        return 0;
    r = aq_reach_address(t, k, &s, stream);
    if (r < 0)
        return r;
    aq_look_of(k)->number[OUT] = (uint64_t)r;
    if (r > 0 && stream)
        aq_look_of(k)->number[WAY] = aq_reach_way(t, &s);
    if (s.ss_family == AF_INET || s.ss_family == AF_INET6)
        aq_reach_port(t, k, mine, true);
    return 0;
}

aq_step aq_try_connect(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0), flags, r;
    aq_auto_fd int mine = aq_fd_borrow(k, fd);

    if (mine < 0)
        return AQ_STEP_RUN;
    if (k->part) /* under way */
        return watch_connect(t, k, mine);
    if (aq_guard_peer(t, k))
        return aq_refuse(k, ECONNREFUSED, "socket.refused");
    r = go_out(t, k, mine);
    if (r < 0)
        return aq_answer(k, r);
    flags = fcntl(mine, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK))
        aq_io_flip(k, fd, mine, flags);
    return AQ_STEP_RUN;
}

aq_step aq_after_connect(aq_tracer *t, aq_task *k, long *result)
{
    bool flipped = aq_io_unflip(k);
    aq_auto_fd int mine = -1;

    k->until = 0;
    if (!flipped || (*result != -EINPROGRESS && *result != -EAGAIN)) {
        aq_reach_called(t, aq_look_of(k)->number[WAY], *result != -EINPROGRESS);
        return AQ_STEP_RUN;
    }
    mine = aq_fd_borrow(k, (int)aq_regs_arg(k, 0));
    if (aq_io_over(t, k, mine, true))
        return AQ_STEP_RUN;
    if (!k->timed && aq_look_of(k)->number[OUT]) {
        aq_park_until(k, aq_clock_deadline(t, 1, false, GIVE_UP_S, 0));
        k->until = k->deadline;
    }
    aq_park(t, k, AQ_PARK_RETRY);
    if (*result == -EINPROGRESS) {
        k->part = 1;
        k->seen = 0; /* a loopback handshake is over already */
    }
    return AQ_STEP_PARKED;
}

/* ---- bind, listen ---- */

/* A port of the system's choice is ours to choose. */
aq_step aq_try_bind(aq_tracer *t, aq_task *k)
{
    socklen_t len = (socklen_t)aq_regs_arg(k, 2);
    struct sockaddr_storage s;
    uint16_t port;
    aq_auto_fd int mine = -1;

    if (!t->plan.machine || !t->plan.reach || !get_address(k, aq_regs_arg(k, 1), len, &s) ||
        (s.ss_family != AF_INET && s.ss_family != AF_INET6) || len > sizeof s)
        return AQ_STEP_RUN;
    port = (uint16_t)aq_look_of(k)->number[0];
    if (port) {
        aq_reach_owns(t, k, port);
        return AQ_STEP_RUN;
    }
    mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    return mine < 0 ? AQ_STEP_RUN : aq_answer(k, aq_reach_bind(t, k, mine, &s, len, false));
}

aq_step aq_try_listen(aq_tracer *t, aq_task *k)
{
    aq_auto_fd int mine = t->plan.machine ? aq_fd_borrow(k, aq_arg_int(k, 0)) : -1;

    aq_reach_port(t, k, mine, false);
    return AQ_STEP_RUN;
}

/* ---- messages with an address ---- */

static int one_address(aq_tracer *t, aq_task *k, uint64_t at, uint64_t len, bool *any)
{
    struct sockaddr_storage s;
    int r;

    if (!get_address(k, at, len, &s) || (s.ss_family != AF_INET && s.ss_family != AF_INET6))
        return 0;
    *any = true;
    r = aq_reach_address(t, k, &s, false);
    if (r > 0)
        aq_reach_called(t, aq_reach_way(t, &s), false);
    return r;
}

/* One whose peer was named before. */
static void call_peer(aq_tracer *t, aq_task *k)
{
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));
    struct sockaddr_storage s = {0};
    socklen_t len = sizeof s;
    aq_auto_fd int mine = -1;

    if (f->kind != AQ_FD_SOCKET || f->stream || (f->family != AF_INET && f->family != AF_INET6))
        return;
    mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    if (mine >= 0 && getpeername(mine, (struct sockaddr *)&s, &len) == 0)
        aq_reach_called(t, aq_reach_way(t, &s), false);
}

/* Each message of many may go elsewhere. */
static int many_addresses(aq_tracer *t, aq_task *k, uint64_t at, uint64_t count, bool *any)
{
    int r = 0;

    for (uint64_t i = 0; i < count && i < MESSAGES && r >= 0; i++) {
        struct mmsghdr h;

        if (!aq_tracee_get(k, at + i * sizeof h, &h, sizeof h))
            break;
        r = one_address(t, k, (uint64_t)(uintptr_t)h.msg_hdr.msg_name, h.msg_hdr.msg_namelen, any);
    }
    return r;
}

/* 0, or what a message that is sent there is answered. */
int aq_reach_message(aq_tracer *t, aq_task *k)
{
    struct msghdr h;
    uint64_t at = aq_regs_arg(k, 1);
    bool any = false;
    int r = 0;

    if (!t->plan.machine)
        return 0;
    if (k->nr == SYS_sendto)
        r = one_address(t, k, aq_regs_arg(k, 4), (uint32_t)aq_regs_arg(k, 5), &any);
    else if (k->nr == SYS_sendmsg && aq_tracee_get(k, at, &h, sizeof h))
        r = one_address(t, k, (uint64_t)(uintptr_t)h.msg_name, h.msg_namelen, &any);
    else if (k->nr == SYS_sendmmsg)
        r = many_addresses(t, k, at, (uint32_t)aq_regs_arg(k, 2), &any);
    if (any && r >= 0) {
        aq_auto_fd int mine = aq_fd_borrow(k, aq_arg_int(k, 0));

        aq_reach_port(t, k, mine, true);
    } else if (!any) {
        call_peer(t, k);
    }
    return r < 0 ? r : 0;
}
