/* Bytes that move inside the kernel: sendfile, splice, tee, vmsplice. Both ends are asked and must
 * be ready; then the call is made without waiting. copy_file_range takes files only and never
 * waits.
 *
 * vmsplice would put the program's own pages into a pipe, and what was recorded could be changed
 * afterwards by writing into them. It is made as writev or readv, which copy. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "observe/decode.h"

typedef struct ends {
    int from, into, flags; /* which arguments; flags -1: it has none */
} ends;

static ends ends_of(long nr)
{
    return nr == SYS_sendfile ? (ends){1, 0, -1}
           : nr == SYS_tee    ? (ends){0, 1, 3}
                              : (ends){0, 2, 5};
}

static bool can_wait(const aq_fd *f)
{
    return f->kind != AQ_FD_NONE && f->kind != AQ_FD_FILE && f->kind != AQ_FD_DIR;
}

/* Is this end ready? An end that must not wait is always. `flip`: it is made so for this attempt.
 */
static bool ready(aq_tracer *t, aq_task *k, int fd, short events, bool flip)
{
    aq_auto_fd int mine = -1;
    struct pollfd p = {.events = events};
    int flags;

    if (!can_wait(aq_fd_of(t, k, fd)))
        return true;
    mine = aq_fd_borrow(k, fd);
    flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
    if (flags < 0)
        return true;
    if (flags & O_NONBLOCK) {
        k->waits = false;
        return true;
    }
    p.fd = mine;
    if (aq_io_poll(&p) == 0 && k->waits)
        return false;
    if (flip)
        aq_io_flip(k, fd, mine, flags);
    return true;
}

static int count_of(long nr)
{
    return nr == SYS_sendfile ? 3 : nr == SYS_splice ? 4 : 2;
}

static uint64_t wanted(const aq_task *k)
{
    return k->nr == SYS_vmsplice ? aq_vectors_bytes(k, aq_regs_arg(k, 1), aq_regs_arg(k, 2))
                                 : aq_at_once(aq_regs_arg(k, count_of(k->nr)));
}

/* As of a write (park_io.c): the world's own output takes what it may. False: that is nothing. */
static bool leave_words(aq_tracer *t, aq_task *k, int into)
{
    uint64_t left = aq_said_left(t, aq_fd_of(t, k, into)), want, count = aq_regs_arg(k, 2);

    if (left == UINT64_MAX || left >= (want = wanted(k) - k->done))
        return true;
    if (left == 0) {
        t->end.stop = AQ_STOP_SAID;
    } else if (k->nr == SYS_vmsplice) {
        aq_vectors_limit(k, left, aq_regs_arg(k, 1), &count);
        aq_regs_set_arg(k, 2, count);
    } else {
        aq_regs_set_arg(k, count_of(k->nr), left);
    }
    return left > 0;
}

static aq_step later(aq_tracer *t, aq_task *k)
{
    aq_io_unflip(k);
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}

static aq_step try_pages(aq_tracer *t, aq_task *k)
{
    int fd = (int)aq_regs_arg(k, 0);
    aq_auto_fd int mine = -1;
    bool reads;

    if (aq_fd_of(t, k, fd)->kind != AQ_FD_PIPE)
        return AQ_STEP_RUN; /* the kernel says what is wrong with it */
    mine = aq_fd_borrow(k, fd);
    reads = mine >= 0 && (fcntl(mine, F_GETFL) & O_ACCMODE) == O_RDONLY;
    if (!ready(t, k, fd, reads ? POLLIN : POLLOUT, true))
        return later(t, k);
    aq_regs_set_call(k, reads ? SYS_readv : SYS_writev);
    return reads || leave_words(t, k, fd) ? AQ_STEP_RUN : later(t, k);
}

aq_step aq_try_copy(aq_tracer *t, aq_task *k)
{
    ends e = ends_of(k->nr);
    const aq_fd *into;
    int flags = k->nr == SYS_vmsplice ? 3 : e.flags;

    k->waits = flags < 0 || !(aq_regs_arg(k, flags) & SPLICE_F_NONBLOCK);
    if (k->nr == SYS_vmsplice)
        return try_pages(t, k);
    /* Such a file can be read, and nothing else. */
    if (aq_fd_of(t, k, (int)aq_regs_arg(k, e.from))->veil ||
        aq_terminal_takes_no_copy(t, k, aq_fd_of(t, k, (int)aq_regs_arg(k, e.into))))
        return aq_answer(k, -EINVAL);
    if (!ready(t, k, (int)aq_regs_arg(k, e.from), POLLIN, false) ||
        !ready(t, k, (int)aq_regs_arg(k, e.into), POLLOUT, true))
        return later(t, k);
    if (aq_entropy_copy(t, k, (int)aq_regs_arg(k, e.from), (int)aq_regs_arg(k, e.into)))
        return AQ_STEP_RUN;
    into = aq_fd_of(t, k, (int)aq_regs_arg(k, e.into));
    if (k->nr == SYS_splice && into->kind == AQ_FD_SOCKET)
        aq_keep_piped(k, (int)aq_regs_arg(k, e.from));
    if (flags >= 0) /* a stream is not to wait for more, see aq_try_message */
        aq_regs_set_arg(k, flags,
                        (aq_regs_arg(k, flags) | SPLICE_F_NONBLOCK) &
                            ~(uint64_t)(into->stream ? SPLICE_F_MORE : 0));
    else if (k->done)
        aq_regs_set_arg(k, 3, aq_regs_arg(k, 3) - k->done);
    return leave_words(t, k, (int)aq_regs_arg(k, e.into)) ? AQ_STEP_RUN : later(t, k);
}

aq_step aq_after_bytes(aq_tracer *t, aq_task *k, long *result)
{
    (void)k;
    aq_moved(t, *result);
    return AQ_STEP_RUN;
}

/* sendfile goes on until all is sent; the kernel itself moves its offset. The others answer with
 * what they moved. */
aq_step aq_after_copy(aq_tracer *t, aq_task *k, long *result)
{
    bool all = k->nr == SYS_sendfile, flipped = aq_io_unflip(k) || k->part;
    int into = k->nr == SYS_vmsplice ? 0 : ends_of(k->nr).into;

    if (aq_said_all(t, k, (int)aq_regs_arg(k, into), *result, wanted(k) - k->done)) {
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    if (all && *result > 0)
        k->done += (uint64_t)*result;
    if (k->waits &&
        (*result == -EAGAIN || (all && flipped && *result > 0 && k->done < aq_regs_arg(k, 3)))) {
        bool moved = *result > 0;

        aq_park(t, k, AQ_PARK_RETRY);
        if (moved) {
            t->activity++;
            k->seen = 0; /* the end of the file is known only by another attempt */
        }
        return AQ_STEP_PARKED;
    }
    if (all && k->done)
        *result = (long)k->done;
    aq_moved(t, *result);
    return AQ_STEP_RUN;
}
