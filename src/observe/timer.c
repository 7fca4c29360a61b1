/* Timers of virtual time: interval timers, alarm, POSIX timers, and timer descriptors. They live
 * here and fire by a signal that we send, or, for a descriptor, by a count that we write into the
 * event descriptor that stands in its place. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "observe/internal.h"

enum { TIMERS = 1024, THREAD_ID = 4 /* SIGEV_THREAD_ID */, KCMP_SAME_FILE = 0, PEEKED = 32 };
static const uint64_t second = 1000000000;

typedef enum timer_kind { INTERVAL, POSIX, DESCRIPTOR } timer_kind;

typedef struct timer {
    timer_kind kind;
    uint32_t proc; /* ordinal of its owner; a descriptor belongs to whoever holds it */
    pid_t pid;
    int id; /* which interval timer, or the number of a POSIX timer */
    int clock;
    int signal, notify;
    pid_t tid; /* SIGEV_THREAD_ID: the one who gets the signal */
    uint64_t value;
    int fd;                   /* ours, of the event descriptor */
    uint64_t deadline, every; /* virtual; deadline 0: not armed */
    uint64_t overrun;
} timer;

struct aq_timers {
    timer row[TIMERS];
    size_t count;
    int next_id;
};

static struct aq_timers *timers_of(aq_tracer *t)
{
    if (!t->timers)
        t->timers = aq_alloc(sizeof *t->timers);
    return t->timers;
}

static timer *find(aq_tracer *t, const aq_proc *p, timer_kind kind, int id)
{
    struct aq_timers *all = t->timers;

    for (size_t i = 0; all && i < all->count; i++)
        if (all->row[i].kind == kind && all->row[i].proc == p->ordinal && all->row[i].id == id)
            return &all->row[i];
    return NULL;
}

static timer *add(aq_tracer *t, const aq_proc *p, timer_kind kind, int id)
{
    struct aq_timers *all = timers_of(t);
    timer *m;

    if (all->count == TIMERS)
        return NULL;
    m = &all->row[all->count++];
    *m = (timer){.kind = kind,
                 .proc = p->ordinal,
                 .pid = p->pid,
                 .id = id,
                 .fd = -1,
                 .clock = CLOCK_MONOTONIC};
    return m;
}

static void drop(aq_tracer *t, timer *m)
{
    if (m->fd >= 0)
        close(m->fd);
    *m = t->timers->row[--t->timers->count];
}

uint64_t aq_timer_next(const aq_tracer *t)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; t->timers && i < t->timers->count; i++)
        if (t->timers->row[i].deadline && t->timers->row[i].deadline < next)
            next = t->timers->row[i].deadline;
    return next;
}

static void send(const timer *m)
{
    siginfo_t s;

    if (m->kind == INTERVAL) {
        kill(m->pid, m->signal);
        return;
    }
    memset(&s, 0, sizeof s);
    s.si_signo = m->signal;
    s.si_code = SI_TIMER;
    s.si_timerid = m->id;
    s.si_overrun = (int)m->overrun;
    memcpy(&s.si_value, &m->value, sizeof m->value);
    if (m->notify == THREAD_ID)
        syscall(SYS_rt_tgsigqueueinfo, m->pid, m->tid, m->signal, &s);
    else if (m->notify == SIGEV_SIGNAL)
        syscall(SYS_rt_sigqueueinfo, m->pid, m->signal, &s);
}

/* Does its last signal still wait to be taken? A timer has one at a time; what it would send
 * further is counted. */
static bool still_waits(const aq_tracer *t, const timer *m)
{
    struct __ptrace_peeksiginfo_args args = {
        .flags = m->notify == THREAD_ID ? 0 : PTRACE_PEEKSIGINFO_SHARED, .nr = PEEKED};
    siginfo_t s[PEEKED];

    for (const aq_task *k = t->tasks; k; k = k->next) {
        long n;

        if (k->proc->ordinal != m->proc || k->state == AQ_TASK_RUNNING ||
            k->state == AQ_TASK_KERNEL || (m->notify == THREAD_ID && k->tid != m->tid))
            continue;
        n = ptrace(PTRACE_PEEKSIGINFO, k->tid, &args, s);
        for (long i = 0; i < n; i++)
            if (s[i].si_code == SI_TIMER && s[i].si_timerid == m->id)
                return true;
        return false;
    }
    return false;
}

/* Its signal is about to be delivered: with what it missed meanwhile. */
void aq_timer_delivers(aq_tracer *t, const aq_task *k, siginfo_t *s)
{
    const timer *m = s->si_code == SI_TIMER ? find(t, k->proc, POSIX, s->si_timerid) : NULL;

    if (!m || (uint64_t)s->si_overrun == m->overrun)
        return;
    s->si_overrun = m->overrun < INT32_MAX ? (int)m->overrun : INT32_MAX;
    ptrace(PTRACE_SETSIGINFO, k->tid, 0, s);
}

void aq_timer_fire(aq_tracer *t)
{
    for (;;) {
        timer *m = NULL;
        uint64_t times;

        for (size_t i = 0; t->timers && i < t->timers->count; i++) {
            timer *c = &t->timers->row[i];

            if (c->deadline && c->deadline <= t->clock && (!m || c->deadline < m->deadline))
                m = c;
        }
        if (!m)
            return;
        times = 1 + (m->every ? (t->clock - m->deadline) / m->every : 0);
        m->deadline = m->every ? m->deadline + times * m->every : 0;
        if (m->deadline > AQ_CLOCK_END)
            m->deadline = 0; /* never */
        if (m->kind == POSIX && still_waits(t, m)) {
            m->overrun += times;
        } else if (m->kind == DESCRIPTOR) {
            if (write(m->fd, &times, sizeof times) < 0)
                m->deadline = 0;
        } else {
            m->overrun = times - 1;
            send(m);
            t->signals = true;
        }
        t->activity++;
    }
}

void aq_timer_forget(aq_tracer *t, const aq_proc *p)
{
    for (size_t i = t->timers ? t->timers->count : 0; i-- > 0;) {
        timer *m = &t->timers->row[i];

        if (m->proc == p->ordinal && m->kind != DESCRIPTOR)
            drop(t, m);
    }
}

void aq_timer_free(aq_tracer *t)
{
    for (size_t i = 0; t->timers && i < t->timers->count; i++)
        if (t->timers->row[i].fd >= 0)
            close(t->timers->row[i].fd);
    free(t->timers);
    t->timers = NULL;
}

/* ---- setting and reading, in the four words (interval, value) that all of them use ---- */

static void spell(const aq_tracer *t, const timer *m, uint64_t unit, uint64_t out[4])
{
    uint64_t left = m && m->deadline > t->clock ? m->deadline - t->clock : 0;
    uint64_t every = m ? m->every : 0;

    out[0] = every / second, out[1] = every % second / unit;
    out[2] = left / second, out[3] = left % second / unit;
}

static int arm(aq_tracer *t, timer *m, const uint64_t in[4], uint64_t unit, bool absolute)
{
    if (in[1] >= second / unit || in[3] >= second / unit || in[0] > INT64_MAX / second ||
        in[2] > INT64_MAX / second)
        return -EINVAL;
    m->every = in[0] * second + in[1] * unit;
    m->deadline = 0;
    if (in[2] || in[3])
        m->deadline =
            aq_clock_deadline(t, m->clock, absolute, (int64_t)in[2], (int64_t)(in[3] * unit));
    return 0;
}

/* A moment of a clock that counts work; one that is over rings at once. */
static void from_now(uint64_t in[4], uint64_t used)
{
    uint64_t at = in[2] < INT64_MAX / second ? in[2] * second + in[3] : INT64_MAX, left;

    if (!at || in[3] >= second)
        return;
    left = at > used ? at - used : 1;
    in[2] = left / second, in[3] = left % second;
}

/* Gives the old setting, takes the new one. */
static aq_step exchange(aq_tracer *t, aq_task *k, timer *m, uint64_t new, uint64_t old,
                        uint64_t unit, bool absolute)
{
    uint64_t in[4], was[4], used;
    int r = 0;

    spell(t, m, unit, was);
    if (new) {
        if (!aq_tracee_get(k, new, in, sizeof in))
            return aq_answer(k, -EFAULT);
        if (absolute && aq_usage_clock(t, k, m->clock, &used)) {
            from_now(in, used);
            absolute = false;
        }
        r = arm(t, m, in, unit, absolute);
    }
    if (r == 0 && old && !aq_tracee_put(k, old, was, sizeof was))
        r = -EFAULT;
    return aq_answer(k, r);
}

static timer *interval(aq_tracer *t, aq_task *k, int which)
{
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
    timer *m = find(t, k->proc, INTERVAL, which);

    if (!m && (m = add(t, k->proc, INTERVAL, which)) != NULL)
        m->signal = signals[which];
    return m;
}

static aq_step try_interval(aq_tracer *t, aq_task *k)
{
    uint64_t which = (uint32_t)aq_regs_arg(k, 0), was[4];
    timer *m;

    if (k->nr == SYS_alarm) {
        m = interval(t, k, ITIMER_REAL);
        if (!m)
            return aq_answer(k, 0);
        spell(t, m, 1000, was);
        arm(t, m, (uint64_t[4]){0, 0, (uint32_t)which, 0}, 1000, false);
        return aq_answer(k, (long)(was[2] + (was[3] ? 1 : 0)));
    }
    if (which > ITIMER_PROF)
        return aq_answer(k, -EINVAL);
    m = interval(t, k, (int)which);
    if (!m)
        return aq_answer(k, -ENOMEM);
    if (k->nr == SYS_getitimer)
        return exchange(t, k, m, 0, aq_regs_arg(k, 1), 1000, false);
    return exchange(t, k, m, aq_regs_arg(k, 1), aq_regs_arg(k, 2), 1000, false);
}

/* ---- POSIX timers ---- */

static aq_step create_posix(aq_tracer *t, aq_task *k)
{
    struct {
        uint64_t value;
        int32_t signal, notify, tid;
    } e = {.signal = SIGALRM};
    int32_t id = timers_of(t)->next_id;
    int r = aq_clock_waits(t, k, (int)aq_regs_arg(k, 0));
    timer *m;

    if (r < 0)
        return aq_answer(k, r);
    e.value = (uint64_t)id;
    if (aq_regs_arg(k, 1) && !aq_tracee_get(k, aq_regs_arg(k, 1), &e, 20))
        return aq_answer(k, -EFAULT);
    if (e.signal < 1 || e.signal > 64)
        return aq_answer(k, -EINVAL);
    m = add(t, k->proc, POSIX, id);
    if (!m)
        return aq_answer(k, -EAGAIN);
    m->clock = (int)aq_regs_arg(k, 0);
    m->signal = e.signal, m->notify = e.notify, m->value = e.value;
    if (e.notify == THREAD_ID) {
        for (aq_task *q = t->tasks; q; q = q->next)
            if (q->proc == k->proc && aq_task_inner(q) == e.tid)
                m->tid = q->tid;
        if (!m->tid) {
            drop(t, m);
            return aq_answer(k, -EINVAL);
        }
    }
    if (!aq_tracee_put(k, aq_regs_arg(k, 2), &id, sizeof id)) {
        drop(t, m);
        return aq_answer(k, -EFAULT);
    }
    t->timers->next_id++;
    return aq_answer(k, 0);
}

static aq_step try_posix(aq_tracer *t, aq_task *k)
{
    timer *m = find(t, k->proc, POSIX, (int)aq_regs_arg(k, 0));

    if (!m)
        return aq_answer(k, -EINVAL);
    switch (k->nr) {
    case SYS_timer_settime:
        if (!aq_regs_arg(k, 2))
            return aq_answer(k, -EINVAL);
        return exchange(t, k, m, aq_regs_arg(k, 2), aq_regs_arg(k, 3), 1,
                        aq_regs_arg(k, 1) & TIMER_ABSTIME);
    case SYS_timer_gettime:
        return exchange(t, k, m, 0, aq_regs_arg(k, 1), 1, false);
    case SYS_timer_getoverrun:
        return aq_answer(k, (long)m->overrun);
    default:
        drop(t, m);
        return aq_answer(k, 0);
    }
}

/* ---- descriptors ---- */

static timer *by_descriptor(aq_tracer *t, aq_task *k, int fd)
{
    for (size_t i = 0; t->timers && i < t->timers->count; i++) {
        timer *m = &t->timers->row[i];

        if (m->kind == DESCRIPTOR && syscall(SYS_kcmp, getpid(), k->tid, KCMP_SAME_FILE,
                                             (unsigned long)m->fd, (unsigned long)fd) == 0)
            return m;
    }
    return NULL;
}

static aq_step try_descriptor(aq_tracer *t, aq_task *k)
{
    timer *m = by_descriptor(t, k, (int)aq_regs_arg(k, 0));
    uint64_t count;
    int flags;

    if (!m)
        return AQ_STEP_RUN; /* the kernel says what is wrong with it */
    if (k->nr == SYS_timerfd_gettime)
        return exchange(t, k, m, 0, aq_regs_arg(k, 1), 1, false);
    flags = fcntl(m->fd, F_GETFL);
    fcntl(m->fd, F_SETFL, flags | O_NONBLOCK); /* shared with the owner: only for one read */
    if (read(m->fd, &count, sizeof count) > 0)
        t->activity++;
    fcntl(m->fd, F_SETFL, flags);
    return exchange(t, k, m, aq_regs_arg(k, 2), aq_regs_arg(k, 3), 1,
                    aq_regs_arg(k, 1) & TFD_TIMER_ABSTIME);
}

static bool has_descriptor(int clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

aq_step aq_try_timer(aq_tracer *t, aq_task *k)
{
    switch (k->nr) {
    case SYS_alarm:
    case SYS_setitimer:
    case SYS_getitimer:
        return try_interval(t, k);
    case SYS_timer_create:
        return create_posix(t, k);
    case SYS_timerfd_create:
        if (!has_descriptor((int)aq_regs_arg(k, 0)) ||
            ((uint32_t)aq_regs_arg(k, 1) & ~(uint32_t)(TFD_NONBLOCK | TFD_CLOEXEC)))
            return AQ_STEP_RUN; /* the kernel says what is wrong with it */
        aq_regs_set_call(k, SYS_eventfd2);
        aq_regs_set_arg(k, 0, 0);
        return AQ_STEP_RUN;
    case SYS_timerfd_settime:
    case SYS_timerfd_gettime:
        return try_descriptor(t, k);
    default:
        return try_posix(t, k);
    }
}

aq_step aq_after_timer(aq_tracer *t, aq_task *k, long *result)
{
    timer *m;

    if (k->nr != SYS_timerfd_create || *result < 0 || !k->patched)
        return AQ_STEP_RUN;
    m = add(t, k->proc, DESCRIPTOR, -1);
    if (!m)
        return AQ_STEP_RUN;
    m->clock = (int)aq_regs_arg(k, 0);
    m->fd = aq_fd_borrow(k, (int)*result);
    if (m->fd < 0)
        drop(t, m);
    return AQ_STEP_RUN;
}
