/* Reads and writes that could wait: pipes, sockets, terminals, event descriptors. The descriptor is
 * borrowed and asked; when it is not ready the task is parked, still before its call. A large write
 * is made without blocking and goes on where it stopped, so that its reader gets its turn between.
 * Messages of sockets are in park_message.c. */
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "observe/disk.h"
#include "observe/reach.h"

enum {
    SMALL = 4096, /* a ready pipe takes this much without waiting */
    VECTORS = 1024,
    CHUNK = 64, /* vectors that are read at once */
    MASTER = 2, /* /dev/ptmx */
    TYPED = 20, /* looks, a millisecond each */
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

/* ---- deadlines and descriptors, for all calls that wait for one ---- */

/* SO_RCVTIMEO and SO_SNDTIMEO are deadlines, too. */
static void socket_deadline(aq_tracer *t, aq_task *k, int fd, bool writes)
{
    struct timeval tv = {0};
    socklen_t len = sizeof tv;

    if (!k->timed &&
        getsockopt(fd, SOL_SOCKET, writes ? SO_SNDTIMEO : SO_RCVTIMEO, &tv, &len) == 0 &&
        (tv.tv_sec || tv.tv_usec))
        aq_park_until(k, aq_clock_deadline(t, 1, false, tv.tv_sec, tv.tv_usec * 1000));
}

bool aq_io_over(aq_tracer *t, aq_task *k, int mine, bool writes)
{
    socket_deadline(t, k, mine, writes); /* what is no socket says that it is none */
    return k->timed && (k->expired || k->deadline <= t->clock);
}

/* The kernel looks for signals even when it was told not to wait. A tick that comes meanwhile, and
 * on a busy host one does, must not be taken for an answer: a call would be made that waits. */
int aq_io_poll(struct pollfd *p)
{
    int n;

    do
        n = poll(p, 1, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

bool aq_io_flip(aq_task *k, int fd, int mine, int flags)
{
    if (fcntl(mine, F_SETFL, flags | O_NONBLOCK) != 0)
        return false;
    k->flip = fd;
    return true;
}

bool aq_io_unflip(aq_task *k)
{
    aq_auto_fd int mine = -1;
    int flags;

    if (k->flip < 0)
        return false;
    mine = aq_fd_borrow(k, k->flip);
    k->flip = -1;
    flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
    if (flags >= 0)
        fcntl(mine, F_SETFL, flags & ~O_NONBLOCK);
    return true;
}

static aq_step park(aq_tracer *t, aq_task *k, int mine, bool writes)
{
    if (aq_io_over(t, k, mine, writes))
        return aq_answer(k, k->done ? (long)k->done : -EAGAIN);
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}

/* ---- lists of buffers ---- */

uint64_t aq_vectors_bytes(const aq_task *k, uint64_t at, uint64_t count)
{
    struct iovec v[CHUNK];
    uint64_t sum = 0;

    for (uint64_t i = 0; i < count && i < VECTORS; i++) {
        uint64_t n = count - i < CHUNK ? count - i : CHUNK;

        if (i % CHUNK == 0 && !aq_tracee_get(k, at + sizeof *v * i, v, sizeof *v * n))
            break;
        if (__builtin_add_overflow(sum, v[i % CHUNK].iov_len, &sum))
            return AQ_MOST_AT_ONCE;
    }
    return aq_at_once(sum);
}

uint64_t aq_at_once(uint64_t bytes)
{
    return bytes < AQ_MOST_AT_ONCE ? bytes : AQ_MOST_AT_ONCE;
}

bool aq_vectors_skip(aq_task *k, uint64_t left, uint64_t *at, uint64_t *count)
{
    for (uint64_t i = 0; i < *count && i < VECTORS; i++) {
        uint64_t v[2], here = *at + 16 * i;

        if (!aq_tracee_get(k, here, v, sizeof v))
            return false;
        if (left < v[1]) {
            v[0] += left;
            v[1] -= left;
            if (left > 0 &&
                (!aq_tracee_save(k, here, sizeof v) || !aq_tracee_put(k, here, v, sizeof v)))
                return false;
            *at = here;
            *count -= i;
            return true;
        }
        left -= v[1];
    }
    return false;
}

void aq_vectors_limit(aq_task *k, uint64_t most, uint64_t at, uint64_t *count)
{
    uint64_t v[2];

    for (uint64_t i = 0; i < *count && i < VECTORS; i++) {
        uint64_t here = at + 16 * i;

        if (!aq_tracee_get(k, here, v, sizeof v))
            return;
        if (v[1] >= most) {
            *count = i + 1;
            if (v[1] > most && aq_tracee_save(k, here, sizeof v)) {
                v[1] = most;
                aq_tracee_put(k, here, v, sizeof v);
            }
            return;
        }
        most -= v[1];
    }
}

/* ---- reads and writes ---- */

static bool by_vectors(long nr)
{
    return nr == SYS_readv || nr == SYS_writev || nr == SYS_pwritev || nr == SYS_pwritev2;
}

static uint64_t write_bytes(const aq_task *k)
{
    if (by_vectors(k->nr))
        return aq_vectors_bytes(k, aq_regs_arg(k, 1), aq_regs_arg(k, 2));
    return aq_at_once(aq_regs_arg(k, 2));
}

/* The rest of what an earlier attempt began. */
static void go_on(aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1), count = aq_regs_arg(k, 2);

    if (k->done == 0)
        return;
    if (!by_vectors(k->nr)) {
        at += k->done;
        count -= k->done;
    } else if (!aq_vectors_skip(k, k->done, &at, &count)) {
        return;
    }
    aq_regs_set_arg(k, 1, at);
    aq_regs_set_arg(k, 2, count);
}

/* No more than so many bytes at once: to the internet what always fits, to a disk what it takes. */
static void limit(aq_task *k, uint64_t most)
{
    uint64_t at = k->patched ? k->regs.rsi : aq_regs_arg(k, 1);
    uint64_t count = k->patched ? k->regs.rdx : aq_regs_arg(k, 2), before = count;

    if (by_vectors(k->nr))
        aq_vectors_limit(k, most, at, &count);
    else if (count > most)
        count = most;
    if (count != before)
        aq_regs_set_arg(k, 2, count);
}

/* Flags of its own that forbid waiting. */
static bool never_waits(const aq_task *k)
{
    return (k->nr == SYS_preadv2 || k->nr == SYS_pwritev2) && (aq_regs_arg(k, 5) & RWF_NOWAIT);
}

static bool is_terminal(const aq_fd *what)
{
    return what->kind == AQ_FD_DEVICE &&
           (major(what->device) == TTYAUX_MAJOR ||
            (major(what->device) >= UNIX98_PTY_SLAVE_MAJOR &&
             major(what->device) < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT));
}

/* Only the call itself can tell whether it waits: a signalfd looks at the signals of whoever asks,
 * an eventfd may be too full for this number only, a socket that says that it is full still takes
 * what is small, a named pipe whose writer was gone before its reader had opened it tells no end,
 * and a terminal stops whoever reads in the background. */
static bool cannot_be_asked(const aq_tracer *t, const aq_fd *what, bool writes)
{
    return what->kind == AQ_FD_OTHER || (writes && what->kind == AQ_FD_SOCKET) ||
           (!writes && what->kind == AQ_FD_PIPE && t->named_pipes) ||
           (!writes && is_terminal(what));
}

/* How full our own end of its output is depends on when we last looked there. A write that could
 * tell finds it empty, as far as whoever reads outside takes it. */
static void make_room(const aq_tracer *t, const aq_task *k, int mine)
{
    struct pollfd p = {.fd = mine, .events = POLLOUT};

    if (write_bytes(k) <= SMALL && aq_io_poll(&p) > 0)
        return;
    while (t->plan.pump && t->plan.pump(t->plan.arg, 0) > 0)
        continue;
}

uint64_t aq_said_left(const aq_tracer *t, const aq_fd *what)
{
    for (int i = 0; i < 2 && t->plan.said_bytes && what->kind == AQ_FD_PIPE; i++)
        if (what->dev == t->plan.output[i].dev && what->ino == t->plan.output[i].ino)
            return t->plan.said_bytes - t->said;
    return UINT64_MAX;
}

bool aq_said_all(aq_tracer *t, aq_task *k, int fd, long result, uint64_t wanted)
{
    if (result <= 0 || aq_said_left(t, aq_fd_of(t, k, fd)) == UINT64_MAX)
        return false;
    t->said += (uint64_t)result;
    if (t->said < t->plan.said_bytes || (uint64_t)result >= wanted)
        return false;
    t->end.stop = AQ_STOP_SAID;
    return true;
}

/* What the world's own output may still take: the rest of a call that says more is cut off, and the
 * run ends with it. It is not told, since how much of it goes at once depends on who reads outside.
 * False: that is nothing. */
static bool leave_words(aq_tracer *t, aq_task *k, const aq_fd *what)
{
    uint64_t left = aq_said_left(t, what),
             wanted = left == UINT64_MAX ? 0 : write_bytes(k) - k->done;

    if (left < wanted && left > 0)
        limit(k, left);
    if (left < wanted && left == 0)
        t->end.stop = AQ_STOP_SAID; /* before it runs */
    return left >= wanted || left > 0;
}

/* A disk that is nearly full takes a part. What is kept for others is no room, though the kernel
 * has it. */
static void leave_room(aq_tracer *t, aq_task *k, const aq_fd *what)
{
    uint64_t left;

    if (!t->plan.room || !t->disk || write_bytes(k) <= AQ_MEASURED ||
        !aq_disk_in_space(t, k, what->dev))
        return;
    left = t->plan.room(t->plan.arg);
    if (left == 0)
        t->end.stop = AQ_STOP_FULL; /* before it runs */
    else if (left < write_bytes(k))
        limit(k, left);
}

aq_step aq_try_io(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0);
    const aq_fd *what = aq_fd_of(t, k, fd);
    bool writes = is_write(k->nr), out;
    aq_auto_fd int mine = -1;
    struct pollfd p;
    int flags;

    if (what->veil && !writes)
        return aq_texts_read(t, k, what);
    if (writes && what->kind == AQ_FD_FILE)
        leave_room(t, k, what);
    if (what->kind == AQ_FD_NONE || what->kind == AQ_FD_FILE || what->kind == AQ_FD_DIR)
        return AQ_STEP_RUN;
    if (!writes && aq_fd_is_random(what)) {
        aq_entropy_before(k);
        return AQ_STEP_RUN; /* it never waits */
    }
    if (writes && what->kind == AQ_FD_DEVICE && aq_terminal_write(t, k, what) == AQ_STEP_DONE)
        return AQ_STEP_DONE;
    if (!writes && what->family == AF_NETLINK && aq_dump_read(t, k, what) == AQ_STEP_DONE)
        return AQ_STEP_DONE;
    if (never_waits(k))
        return AQ_STEP_RUN;
    if (writes && what->device == makedev(TTYAUX_MAJOR, MASTER))
        t->typed = TYPED;
    if (aq_reach_reads(k) && aq_reach_is_out(t, what))
        return aq_reach_read(t, k);
    out = aq_reach_flow(t, what);
    mine = aq_fd_borrow(k, fd);
    flags = mine < 0 ? O_NONBLOCK : fcntl(mine, F_GETFL);
    if (writes && what->kind == AQ_FD_PIPE && mine >= 0)
        make_room(t, k, mine);
    if (flags < 0 || (flags & O_NONBLOCK)) {
        if (out)
            limit(k, AQ_FLOW_BYTES);
        return writes && !leave_words(t, k, what) ? park(t, k, mine, writes) : AQ_STEP_RUN;
    }
    if (cannot_be_asked(t, what, writes)) {
        if (writes)
            go_on(k);
        if (out)
            limit(k, AQ_FLOW_BYTES);
        aq_io_flip(k, fd, mine, flags);
        return AQ_STEP_RUN;
    }
    p = (struct pollfd){.fd = mine, .events = writes ? POLLOUT : POLLIN};
    if (aq_io_poll(&p) == 0)
        return park(t, k, mine, writes);
    if (out)
        limit(k, AQ_FLOW_BYTES);
    if (writes && (k->done || write_bytes(k) > SMALL)) {
        go_on(k);
        aq_io_flip(k, fd, mine, flags);
    }
    return writes && !leave_words(t, k, what) ? park(t, k, mine, writes) : AQ_STEP_RUN;
}

static bool over(aq_tracer *t, aq_task *k, bool writes)
{
    aq_auto_fd int mine = aq_fd_borrow(k, (int)aq_regs_arg(k, 0));

    return mine < 0 || aq_io_over(t, k, mine, writes);
}

aq_step aq_after_io(aq_tracer *t, aq_task *k, long *result)
{
    bool writes = is_write(k->nr);

    if (writes && aq_said_all(t, k, (int)aq_regs_arg(k, 0), *result, write_bytes(k) - k->done)) {
        aq_io_unflip(k);
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    if (!writes) {
        aq_face_netlink(t, k, result);
        aq_reach_heard(t, k, *result);
    }
    if (!aq_io_unflip(k)) {
        aq_moved(t, *result);
        return AQ_STEP_RUN;
    }
    if (writes && *result > 0)
        k->done += (uint64_t)*result;
    if ((*result == -EAGAIN && !over(t, k, writes)) ||
        (writes && *result > 0 && k->done < write_bytes(k))) {
        t->activity += *result > 0; /* its reader has something to do */
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
    if (result <= 0)
        return;
    t->end.moved += (uint64_t)result;
    aq_clock_moved(t, (uint64_t)result);
}

aq_step aq_try_accept(aq_tracer *t, aq_task *k)
{
    return aq_try_io(t, k);
}
