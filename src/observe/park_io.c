/* Reads and writes that could wait: pipes, sockets, terminals, event descriptors. The descriptor is
 * borrowed and asked; when it is not ready the task is parked, still before its call. A large write
 * is made without blocking and goes on where it stopped, so that its reader gets its turn between.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "observe/internal.h"

enum {
    SMALL = 4096, /* a ready pipe takes this much without waiting */
    VECTORS = 1024,
};

static bool is_write(long nr)
{
    switch (nr) {
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
        return true;
    default:
        return false;
    }
}

/* Calls with flags of their own that forbid waiting. */
static bool never_waits(const aq_task *k)
{
    switch (k->nr) {
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
        return aq_regs_arg(k, 3) & MSG_DONTWAIT;
    case SYS_sendmsg:
    case SYS_recvmsg:
        return aq_regs_arg(k, 2) & MSG_DONTWAIT;
    default:
        return false;
    }
}

/* SO_RCVTIMEO and SO_SNDTIMEO are deadlines, too. */
static void socket_deadline(aq_tracer *t, aq_task *k, int fd, bool writes)
{
    struct timeval tv = {0};
    socklen_t len = sizeof tv;

    if (!k->timed &&
        getsockopt(fd, SOL_SOCKET, writes ? SO_SNDTIMEO : SO_RCVTIMEO, &tv, &len) == 0 &&
        (tv.tv_sec || tv.tv_usec))
        aq_park_until(k, t->clock + (uint64_t)tv.tv_sec * 1000000000 + (uint64_t)tv.tv_usec * 1000);
}

/* Bytes that a gather write has in all; large is all that matters. */
static uint64_t vector_bytes(const aq_task *k, uint64_t at, uint64_t count)
{
    uint64_t sum = 0, v[2];

    for (uint64_t i = 0; i < count && i < VECTORS && sum <= SMALL; i++)
        if (!aq_tracee_get(k, at + 16 * i, v, sizeof v) || __builtin_add_overflow(sum, v[1], &sum))
            break;
    return sum;
}

static uint64_t write_bytes(const aq_task *k)
{
    switch (k->nr) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_sendto:
        return aq_regs_arg(k, 2);
    case SYS_writev:
        return vector_bytes(k, aq_regs_arg(k, 1), aq_regs_arg(k, 2));
    default:
        return 0;
    }
}

/* The rest of a gather write: whole parts are skipped, the first one left is shortened in place
 * for this attempt. */
static bool skip_vectors(aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1), count = aq_regs_arg(k, 2), left = k->done;

    for (uint64_t i = 0; i < count && i < VECTORS; i++) {
        uint64_t v[2];

        if (!aq_tracee_get(k, at + 16 * i, v, sizeof v))
            return false;
        if (left < v[1]) {
            v[0] += left;
            v[1] -= left;
            if (!aq_tracee_save(k, at + 16 * i, sizeof v) ||
                !aq_tracee_put(k, at + 16 * i, v, sizeof v))
                return false;
            aq_regs_set_arg(k, 1, at + 16 * i);
            aq_regs_set_arg(k, 2, count - i);
            return true;
        }
        left -= v[1];
    }
    return false;
}

static void go_on(aq_task *k)
{
    if (k->done == 0)
        return;
    if (k->nr == SYS_writev) {
        skip_vectors(k);
        return;
    }
    aq_regs_set_arg(k, 1, aq_regs_arg(k, 1) + k->done);
    aq_regs_set_arg(k, 2, aq_regs_arg(k, 2) - k->done);
}

static aq_step park(aq_tracer *t, aq_task *k, int fd, aq_fd_kind kind, bool writes)
{
    if (kind == AQ_FD_SOCKET)
        socket_deadline(t, k, fd, writes);
    if (k->timed && (k->expired || k->deadline <= t->clock))
        return aq_answer(k, k->done ? (long)k->done : -EAGAIN);
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}

aq_step aq_try_io(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0);
    const aq_fd *what = aq_fd_of(t, k, fd);
    bool writes = is_write(k->nr);
    aq_auto_fd int mine = -1;
    struct pollfd p;
    int flags;

    if (what->kind == AQ_FD_NONE || what->kind == AQ_FD_FILE || what->kind == AQ_FD_DIR ||
        never_waits(k))
        return AQ_STEP_RUN;
    mine = aq_fd_borrow(k, fd);
    flags = mine < 0 ? O_NONBLOCK : fcntl(mine, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK))
        return AQ_STEP_RUN;
    p = (struct pollfd){.fd = mine, .events = writes ? POLLOUT : POLLIN};
    if (poll(&p, 1, 0) == 0)
        return park(t, k, mine, what->kind, writes);
    if (writes && (k->done || write_bytes(k) > SMALL)) {
        go_on(k);
        if (fcntl(mine, F_SETFL, flags | O_NONBLOCK) == 0)
            k->flip = fd;
    }
    return AQ_STEP_RUN;
}

static void unflip(aq_task *k)
{
    aq_auto_fd int mine = -1;
    int flags;

    if (k->flip < 0)
        return;
    mine = aq_fd_borrow(k, k->flip);
    k->flip = -1;
    flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
    if (flags >= 0)
        fcntl(mine, F_SETFL, flags & ~O_NONBLOCK);
}

aq_step aq_after_io(aq_tracer *t, aq_task *k, long *result)
{
    bool flipped = k->flip >= 0;

    unflip(k);
    if (!flipped) {
        aq_moved(t, *result);
        return AQ_STEP_RUN;
    }
    if (*result > 0)
        k->done += (uint64_t)*result;
    if ((*result > 0 && k->done < write_bytes(k)) || *result == -EAGAIN) {
        t->activity++; /* its reader has something to do */
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    if (k->done > 0)
        *result = (long)k->done;
    aq_moved(t, *result);
    return AQ_STEP_RUN;
}

/* cgroups do not see what stays in memory, so bytes are counted here. */
void aq_moved(aq_tracer *t, long result)
{
    if (result > 0)
        t->end.moved += (uint64_t)result;
}

aq_step aq_after_copy(aq_tracer *t, aq_task *k, long *result)
{
    (void)k;
    aq_moved(t, *result);
    return AQ_STEP_RUN;
}

aq_step aq_try_accept(aq_tracer *t, aq_task *k)
{
    return aq_try_io(t, k);
}

/* ---- connect: started without waiting, then watched ---- */

aq_step aq_try_connect(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0), flags, why = 0;
    aq_auto_fd int mine = aq_fd_borrow(k, fd);
    socklen_t len = sizeof why;
    struct pollfd p = {.fd = mine, .events = POLLOUT};

    if (mine < 0)
        return AQ_STEP_RUN;
    if (k->done) { /* under way */
        if (poll(&p, 1, 0) == 0)
            return park(t, k, mine, AQ_FD_SOCKET, true);
        getsockopt(mine, SOL_SOCKET, SO_ERROR, &why, &len);
        return aq_answer(k, -why);
    }
    flags = fcntl(mine, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK) && fcntl(mine, F_SETFL, flags | O_NONBLOCK) == 0)
        k->flip = fd;
    return AQ_STEP_RUN;
}

aq_step aq_after_connect(aq_tracer *t, aq_task *k, long *result)
{
    bool flipped = k->flip >= 0;

    unflip(k);
    if (!flipped || (*result != -EINPROGRESS && *result != -EAGAIN))
        return AQ_STEP_RUN;
    k->done = *result == -EINPROGRESS;
    aq_park(t, k, AQ_PARK_RETRY);
    k->seen = 0; /* a loopback handshake is over already */
    return AQ_STEP_PARKED;
}
