/* poll, select and epoll: asked without a timeout, and asked again after anything happened, until
 * their deadline in virtual time. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "observe/reach.h"

/* A timeout that lies in memory: seconds and nanoseconds, or microseconds (`unit` 1000). */
static int pointed_deadline(aq_tracer *t, aq_task *k, uint64_t at, int64_t unit)
{
    int64_t v[2];

    if (!at)
        return 0;
    if (!aq_tracee_get(k, at, v, sizeof v))
        return -EFAULT;
    if (unit != 1 && v[1] >= 0 && !__builtin_add_overflow(v[0], v[1] / 1000000, &v[0]))
        v[1] %= 1000000; /* select takes seconds from either */
    if (v[0] < 0 || v[1] < 0 || v[1] >= 1000000000 / unit)
        return -EINVAL;
    aq_park_until(k, aq_clock_deadline(t, 1, false, v[0], v[1] * unit));
    return 0;
}

static void counted_deadline(aq_tracer *t, aq_task *k, int ms)
{
    if (ms >= 0)
        aq_park_until(k, aq_clock_deadline(t, 1, false, ms / 1000, ms % 1000 * 1000000LL));
}

/* The signal mask that holds during the call. */
static int own_mask(aq_task *k, uint64_t at, uint64_t size)
{
    k->masked = at && aq_tracee_get(k, at, &k->mask, sizeof k->mask);
    return !at ? 0 : size != sizeof k->mask ? -EINVAL : k->masked ? 0 : -EFAULT;
}

aq_step aq_try_poll(aq_tracer *t, aq_task *k)
{
    int r = 0;

    switch (k->nr) {
    case SYS_poll:
        counted_deadline(t, k, (int)aq_regs_arg(k, 2));
        aq_regs_set_arg(k, 2, 0);
        break;
    case SYS_ppoll: /* as poll: its timeout is a number */
        r = pointed_deadline(t, k, aq_regs_arg(k, 2), 1);
        r = r < 0 ? r : own_mask(k, aq_regs_arg(k, 3), aq_regs_arg(k, 4));
        aq_regs_set_call(k, SYS_poll);
        aq_regs_set_arg(k, 2, 0);
        break;
    case SYS_epoll_pwait2:
        r = pointed_deadline(t, k, aq_regs_arg(k, 3), 1);
        r = r < 0 ? r : own_mask(k, aq_regs_arg(k, 4), aq_regs_arg(k, 5));
        aq_regs_set_call(k, SYS_epoll_wait);
        aq_regs_set_arg(k, 3, 0);
        break;
    case SYS_epoll_pwait:
        r = own_mask(k, aq_regs_arg(k, 4), aq_regs_arg(k, 5));
        aq_regs_set_call(k, SYS_epoll_wait);
        __attribute__((fallthrough));
    default:
        counted_deadline(t, k, (int)aq_regs_arg(k, 3));
        aq_regs_set_arg(k, 3, 0);
        break;
    }
    return r < 0 ? aq_answer(k, r) : AQ_STEP_RUN;
}

/* The kernel empties the sets when it finds nothing; they are given back before the next attempt.
 */
aq_step aq_try_select(aq_tracer *t, aq_task *k)
{
    static const uint64_t zero[2];
    bool plain = k->nr == SYS_select;
    uint64_t timeout = aq_regs_arg(k, 4), n = (uint32_t)aq_regs_arg(k, 0), at;
    size_t len = (size_t)((n + 63) / 64 * 8);
    int r = pointed_deadline(t, k, timeout, plain ? 1000 : 1);

    if (r == 0 && !plain && aq_regs_arg(k, 5)) {
        uint64_t pair[2];

        r = aq_tracee_get(k, aq_regs_arg(k, 5), pair, sizeof pair) ? own_mask(k, pair[0], pair[1])
                                                                   : -EFAULT;
    }
    if (r < 0)
        return aq_answer(k, r);
    at = aq_tracee_scratch(k, zero, sizeof zero);
    if (!at)
        return aq_answer(k, -EFAULT);
    for (int i = 1; i <= 3; i++)
        if (aq_regs_arg(k, i) && len > 0)
            aq_tracee_save_answer(k, aq_regs_arg(k, i), len);
    if (!plain)
        aq_regs_set_call(k, SYS_select);
    aq_regs_set_arg(k, 4, at);
    return AQ_STEP_RUN;
}

/* These say how much of their time was left. */
static bool says_left(const aq_task *k)
{
    return k->nr == SYS_select || k->nr == SYS_pselect6 || k->nr == SYS_ppoll;
}

static void say_left(const aq_task *k, uint64_t left)
{
    uint64_t unit = k->nr == SYS_select ? 1000 : 1;
    uint64_t pair[2] = {left / 1000000000, left % 1000000000 / unit};

    if (says_left(k))
        aq_tracee_put(k, aq_regs_arg(k, k->nr == SYS_ppoll ? 2 : 4), pair, sizeof pair);
}

/* One that is interrupted says it, too; made again, it waits for what was left then. */
void aq_poll_left(aq_tracer *t, aq_task *k)
{
    if (!k->timed || k->row->after != aq_after_poll || !says_left(k))
        return;
    say_left(k, k->deadline > t->clock ? k->deadline - t->clock : 0);
    k->timed = false;
}

aq_step aq_after_poll(aq_tracer *t, aq_task *k, long *result)
{
    uint64_t left = k->timed && k->deadline > t->clock ? k->deadline - t->clock : 0;

    if (*result > 0) { /* who only looks has no time to wait for it, and sees it all the same */
        aq_reach_arrived(t, left > 0 ? k->deadline : 0);
        left = k->timed && k->deadline > t->clock ? k->deadline - t->clock : 0;
    }
    if (*result != 0 || k->expired || (k->timed && left == 0)) {
        if (k->timed && *result >= 0)
            say_left(k, left);
        return AQ_STEP_RUN;
    }
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}
