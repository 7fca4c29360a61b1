/* Virtual time. It moves a little with every call and jumps when everybody sleeps; the host's clock
 * decides nothing. All clocks of a world are this one, with another start. */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "observe/internal.h"

enum {
    TICK_NS = 300,      /* what one call takes */
    PATIENT_READS = 64, /* reads of the clock in a row before it hurries */
};
static const uint64_t second = 1000000000, uptime_ns = 90061ULL * 1000000000;

static bool is_wall(int id)
{
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_REALTIME_ALARM ||
           id == CLOCK_TAI;
}

static bool is_cpu(int id)
{
    return id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID || id < 0;
}

uint64_t aq_clock_now(const aq_tracer *t, int id)
{
    const aq_machine *m = t->plan.machine;

    if (is_wall(id))
        return (uint64_t)(m ? m->start_ns : t->plan.start_ns) + t->clock;
    return is_cpu(id) ? t->clock : (m ? m->uptime_ns : uptime_ns) + t->clock;
}

/* The processor's counter: it runs at one rate since the machine was started. */
uint64_t aq_clock_counter(const aq_tracer *t)
{
    uint64_t khz = t->plan.machine ? aq_machine_khz(t->plan.machine) : 2000000;

    return (uint64_t)((unsigned __int128)aq_clock_now(t, CLOCK_MONOTONIC) * khz / 1000000);
}

/* Whoever does nothing but read the clock waits for it: it runs faster then, so that the wait ends
 * after thousands of reads and not after millions. */
void aq_clock_tick(aq_tracer *t, aq_task *k, bool reads)
{
    uint64_t ns;

    k->reads = reads ? k->reads + 1 : 0;
    ns = TICK_NS * (1 + k->reads / PATIENT_READS);
    t->clock += ns;
    k->cpu += ns;
    k->proc->cpu += ns;
}

uint64_t aq_clock_deadline(const aq_tracer *t, int id, bool absolute, int64_t s, int64_t ns)
{
    uint64_t at, now = absolute ? aq_clock_now(t, id) : 0;

    if (__builtin_mul_overflow((uint64_t)s, second, &at) ||
        __builtin_add_overflow(at, (uint64_t)ns, &at))
        return AQ_CLOCK_END;
    at = at > now ? at - now : 0;
    return __builtin_add_overflow(at, t->clock, &at) || at > AQ_CLOCK_END ? AQ_CLOCK_END : at;
}

static aq_step give_time(aq_task *k, uint64_t at, uint64_t seconds, uint64_t rest)
{
    uint64_t pair[2] = {seconds, rest};

    if (at && !aq_tracee_put(k, at, pair, sizeof pair))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, 0);
}

aq_step aq_try_time(aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 0), now;
    int id = (int)at;

    switch (k->nr) {
    case SYS_clock_gettime:
        if (id > CLOCK_TAI)
            return AQ_STEP_RUN; /* the kernel says what is wrong with it */
        now = aq_clock_now(t, id);
        if (is_cpu(id) && !aq_usage_clock(t, k, id, &now))
            return aq_answer(k, -EINVAL);
        if (!aq_regs_arg(k, 1))
            return aq_answer(k, -EFAULT);
        return give_time(k, aq_regs_arg(k, 1), now / second, now % second);
    case SYS_gettimeofday:
        now = aq_clock_now(t, CLOCK_REALTIME);
        return give_time(k, at, now / second, now % second / 1000);
    default: { /* time */
        uint64_t s = aq_clock_now(t, CLOCK_REALTIME) / second;

        if (at && !aq_tracee_put(k, at, &s, sizeof s))
            return aq_answer(k, -EFAULT);
        return aq_answer(k, (long)s);
    }
    }
}

aq_step aq_try_sleep(aq_tracer *t, aq_task *k)
{
    bool plain = k->nr == SYS_nanosleep;
    int id = plain ? CLOCK_MONOTONIC : (int)aq_regs_arg(k, 0);
    bool absolute = !plain && (aq_regs_arg(k, 1) & TIMER_ABSTIME);
    int64_t ts[2];

    if (id > CLOCK_TAI || id == CLOCK_THREAD_CPUTIME_ID || id == CLOCK_MONOTONIC_RAW)
        return AQ_STEP_RUN;
    if (!aq_tracee_get(k, aq_regs_arg(k, plain ? 0 : 2), ts, sizeof ts))
        return aq_answer(k, -EFAULT);
    if (ts[0] < 0 || ts[1] < 0 || ts[1] >= (int64_t)second)
        return aq_answer(k, -EINVAL);
    aq_park_until(k, aq_clock_deadline(t, id, absolute, ts[0], ts[1]));
    if (k->deadline <= t->clock)
        return aq_answer(k, 0);
    aq_park(t, k, AQ_PARK_SLEEP);
    return AQ_STEP_PARKED;
}

/* The kernel measured what was left of an interrupted sleep by its own clock. */
void aq_clock_left(aq_tracer *t, aq_task *k)
{
    bool plain = k->nr == SYS_nanosleep;
    uint64_t at = aq_regs_arg(k, plain ? 1 : 3);
    uint64_t left = k->deadline > t->clock ? k->deadline - t->clock : 0;
    uint64_t pair[2] = {left / second, left % second};

    if (k->row->attempt == aq_try_sleep && at && (plain || !(aq_regs_arg(k, 1) & TIMER_ABSTIME)))
        aq_tracee_put(k, at, pair, sizeof pair);
}

/* The turn goes to the next one who can run. */
aq_step aq_try_yield(aq_tracer *t, aq_task *k)
{
    aq_sched_turn(t);
    return aq_answer(k, 0);
}

int aq_clock_until(aq_tracer *t, aq_task *k, uint64_t at, int id, bool absolute)
{
    int64_t ts[2];

    if (!at)
        return 0;
    if (!aq_tracee_get(k, at, ts, sizeof ts))
        return -EFAULT;
    if (ts[0] < 0 || ts[1] < 0 || ts[1] >= 1000000000)
        return -EINVAL;
    aq_park_until(k, aq_clock_deadline(t, id, absolute, ts[0], ts[1]));
    return 0;
}
