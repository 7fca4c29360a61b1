/* Messages of sockets. Each call is made with MSG_DONTWAIT; where the kernel would have waited the
 * task is parked and makes it again. Asking the descriptor first would not do: an unconnected
 * datagram socket is always writable and still waits for room at the other side.
 *
 * What a blocking call does in one go may take several attempts here: a large send, a receive that
 * wants everything (MSG_WAITALL), many messages at once. `done` counts bytes, or whole messages of
 * the calls that move many; `part` the bytes of the message after them. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "observe/internal.h"
#include "observe/reach.h"

enum {
    IOV_AT = offsetof(struct msghdr, msg_iov),
    CONTROL_AT = offsetof(struct msghdr, msg_controllen),
    LEN_AT = offsetof(struct mmsghdr, msg_len),
    MANY = sizeof(struct mmsghdr),
};

static bool sends(long nr)
{
    return nr == SYS_sendto || nr == SYS_sendmsg || nr == SYS_sendmmsg;
}

static bool is_many(long nr)
{
    return nr == SYS_sendmmsg || nr == SYS_recvmmsg;
}

static int flags_at(long nr)
{
    return nr == SYS_sendmsg || nr == SYS_recvmsg ? 2 : 3;
}

static uint64_t flags_of(const aq_task *k)
{
    return aq_regs_arg(k, flags_at(k->nr));
}

static uint64_t header_bytes(const aq_task *k, uint64_t header)
{
    uint64_t v[2];

    return aq_tracee_get(k, header + IOV_AT, v, sizeof v) ? aq_vectors_bytes(k, v[0], v[1]) : 0;
}

/* ---- the rest of what earlier attempts began ---- */

/* The header for this attempt: without the buffers that are done with, and without control data,
 * which went with the first bytes. */
static bool shorten(aq_task *k, uint64_t header, uint64_t bytes)
{
    static const uint64_t none;
    uint64_t v[2];

    if (!aq_tracee_get(k, header + IOV_AT, v, sizeof v) || !aq_vectors_skip(k, bytes, &v[0], &v[1]))
        return false;
    if (sends(k->nr) && (!aq_tracee_save(k, header + CONTROL_AT, sizeof none) ||
                         !aq_tracee_put(k, header + CONTROL_AT, &none, sizeof none)))
        return false;
    return aq_tracee_save(k, header + IOV_AT, sizeof v) &&
           aq_tracee_put(k, header + IOV_AT, v, sizeof v);
}

static void go_on(aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1);

    if (is_many(k->nr)) {
        at += k->done * MANY;
        aq_regs_set_arg(k, 1, at);
        aq_regs_set_arg(k, 2, k->part ? 1 : (uint32_t)aq_regs_arg(k, 2) - k->done);
        if (k->part)
            shorten(k, at, k->part);
    } else if (k->done && (k->nr == SYS_sendto || k->nr == SYS_recvfrom)) {
        aq_regs_set_arg(k, 1, at + k->done);
        aq_regs_set_arg(k, 2, aq_regs_arg(k, 2) - k->done);
    } else if (k->done) {
        shorten(k, at, k->done);
    }
}

/* recvmmsg looks at its timeout only after a message came; so do we. */
static int take_timeout(aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 4);
    int64_t ts[2];

    if (k->nr != SYS_recvmmsg || !at)
        return 0;
    if (!aq_tracee_get(k, at, ts, sizeof ts))
        return -EFAULT;
    if (ts[0] < 0 || ts[1] < 0 || ts[1] >= 1000000000)
        return -EINVAL;
    if (!k->retry)
        k->until = aq_clock_deadline(t, 1, false, ts[0], ts[1]);
    aq_regs_set_arg(k, 4, 0);
    return 0;
}

/* A stream to the internet: no more at once than always fits. */
static void limit(aq_task *k)
{
    uint64_t at = k->patched ? k->regs.rsi : aq_regs_arg(k, 1);
    uint64_t len = k->patched ? k->regs.rdx : aq_regs_arg(k, 2), v[2], count;

    if (k->nr == SYS_sendto || k->nr == SYS_recvfrom) {
        if (len > AQ_FLOW_BYTES)
            aq_regs_set_arg(k, 2, AQ_FLOW_BYTES);
        return;
    }
    if (is_many(k->nr) || !aq_tracee_get(k, at + IOV_AT, v, sizeof v) ||
        aq_vectors_bytes(k, v[0], v[1]) <= AQ_FLOW_BYTES)
        return;
    count = v[1];
    aq_vectors_limit(k, AQ_FLOW_BYTES, v[0], &count);
    if (count != v[1] && aq_tracee_save(k, at + IOV_AT, sizeof v)) {
        v[1] = count;
        aq_tracee_put(k, at + IOV_AT, v, sizeof v);
    }
}

aq_step aq_try_message(aq_tracer *t, aq_task *k)
{
    uint64_t flags = flags_of(k), own = sends(k->nr) ? 0 : MSG_OOB | MSG_ERRQUEUE;
    int r;

    const aq_fd *what = aq_fd_of(t, k, (int)aq_regs_arg(k, 0));
    bool out;

    if (aq_reach_reads(k) && aq_reach_is_out(t, what))
        return aq_reach_read(t, k);
    if (!sends(k->nr) && what->family == AF_NETLINK && aq_dump_read(t, k, what) == AQ_STEP_DONE)
        return AQ_STEP_DONE;
    if (sends(k->nr) && (flags & MSG_FASTOPEN) && what->stream &&
        what->family != AF_UNIX) /* a connect by another name */
        return aq_refuse(k, EOPNOTSUPP, "fastopen.refused");
    out = aq_reach_flow(t, what);
    /* A stream that waits for more sends by the host's clock: here it never waits. */
    if (sends(k->nr) && (flags & MSG_MORE) && what->stream && what->family != AF_UNIX) {
        flags &= ~(uint64_t)MSG_MORE;
        aq_regs_set_arg(k, flags_at(k->nr), flags);
    }

    k->waits = !(flags & (MSG_DONTWAIT | own));
    if (!k->waits) {
        if (out)
            limit(k);
        return AQ_STEP_RUN;
    }
    r = take_timeout(t, k);
    if (r < 0)
        return aq_answer(k, r);
    aq_regs_set_arg(k, flags_at(k->nr), flags | MSG_DONTWAIT);
    go_on(k);
    if (out)
        limit(k);
    return AQ_STEP_RUN;
}

/* ---- what an attempt brought ---- */

/* Adds it to what is done. False: a message went in part only, or nothing came. */
static void count_many(aq_task *k, long result)
{
    uint64_t last = aq_regs_arg(k, 1) + (k->done + (uint64_t)result - 1) * MANY;
    uint32_t len = 0;

    aq_tracee_get(k, last + LEN_AT, &len, sizeof len);
    if (k->nr == SYS_sendmmsg && len + k->part < header_bytes(k, last)) {
        k->part += len;
        k->done += (uint64_t)result - 1;
        return;
    }
    if (k->part) { /* its length is that of all its pieces */
        len += (uint32_t)k->part;
        aq_tracee_put(k, last + LEN_AT, &len, sizeof len);
    }
    k->part = 0;
    k->done += (uint64_t)result;
}

static bool wants_more(aq_tracer *t, const aq_task *k)
{
    uint64_t flags = flags_of(k);

    switch (k->nr) {
    case SYS_sendto:
        return k->done < aq_at_once(aq_regs_arg(k, 2));
    case SYS_sendmsg:
        return k->done < header_bytes(k, aq_regs_arg(k, 1));
    case SYS_sendmmsg:
        return k->done < (uint32_t)aq_regs_arg(k, 2);
    case SYS_recvmmsg:
        return !(flags & MSG_WAITFORONE) && k->done < (uint32_t)aq_regs_arg(k, 2) &&
               !(aq_regs_arg(k, 4) && k->until <= t->clock);
    case SYS_recvfrom:
        return (flags & MSG_WAITALL) && !(flags & MSG_PEEK) &&
               k->done < aq_at_once(aq_regs_arg(k, 2));
    default:
        return (flags & MSG_WAITALL) && !(flags & MSG_PEEK) &&
               k->done < header_bytes(k, aq_regs_arg(k, 1));
    }
}

/* Does the descriptor itself forbid waiting, or is its time over? And where a message has borders
 * there is nothing to go on with. */
static bool may_wait(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0);
    aq_auto_fd int mine = aq_fd_borrow(k, fd);
    int flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);

    if (flags < 0 || (flags & O_NONBLOCK) || aq_io_over(t, k, mine, sends(k->nr)))
        return false;
    return is_many(k->nr) || k->done == 0 || aq_fd_of(t, k, fd)->stream;
}

long aq_message_done(aq_task *k)
{
    uint32_t len = (uint32_t)k->part;

    if (k->nr != SYS_sendmmsg || !k->part)
        return (long)k->done;
    aq_tracee_put(k, aq_regs_arg(k, 1) + k->done * MANY + LEN_AT, &len, sizeof len);
    return (long)k->done + 1;
}

aq_step aq_after_message(aq_tracer *t, aq_task *k, long *result)
{
    if (!k->waits) {
        if (!sends(k->nr)) {
            aq_face_netlink(t, k, result);
            aq_reach_heard(t, k, *result);
        }
        aq_face_stamps(t, k, *result);
        aq_moved(t, *result);
        return AQ_STEP_RUN;
    }
    if (*result > 0 && is_many(k->nr))
        count_many(k, *result);
    else if (*result > 0)
        k->done += (uint64_t)*result;
    if ((*result == -EAGAIN || (*result > 0 && wants_more(t, k))) && may_wait(t, k)) {
        bool moved = *result > 0;

        aq_park(t, k, AQ_PARK_RETRY);
        if (moved) {
            t->activity++; /* the other side has something to do */
            k->seen = 0;   /* and there may be more at once */
        }
        return AQ_STEP_PARKED;
    }
    if (k->done || k->part)
        *result = aq_message_done(k);
    if (!sends(k->nr)) {
        aq_face_netlink(t, k, result);
        aq_reach_heard(t, k, *result);
    }
    aq_face_stamps(t, k, *result);
    aq_moved(t, *result);
    return AQ_STEP_RUN;
}
