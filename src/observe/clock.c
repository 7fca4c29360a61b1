/* Virtual time. It moves a little with every call and jumps when everybody sleeps; the host's clock
 * decides nothing. All clocks of a world are this one, with another start. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "kernel/syscalls.h"
#include "observe/internal.h"

enum {
    TICK_NS = 300,      /* what one call takes, where there is no machine */
    PATIENT_READS = 64, /* reads of the clock in a row before it hurries */
    SHORT_NS = 190,     /* what a short call takes on a machine */
    COUNTER_NS = 11,    /* a read of the processor's counter */
    THOUGHT_NS = 2500,  /* at least, that a program does between two different calls */
    THOUGHTS = 16384,   /* and at most so much more */
    CALM_READS = 256,   /* on a machine, before the clock hurries */
    HURRY = 16,         /* further reads that add the time of one more */
    BYTES_NS = 8,       /* that are moved in one */
    SLACK_NS = 50000,   /* that a sleep may take longer */
    WAKE_NS = 8192,     /* and at most so much more until the sleeper runs */
    JIFFY_NS = 4000000, /* steps of the coarse clocks */
    NO_CLOCK = 10,      /* a number that the kernel gave to none that it still has */
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

/* Those that ring while the machine is suspended need a right that nobody here has. */
int aq_clock_waits(aq_tracer *t, aq_task *k, int id)
{
    uint64_t now;

    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_MONOTONIC:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
        return 0;
    case CLOCK_REALTIME_ALARM:
    case CLOCK_BOOTTIME_ALARM:
        return -EPERM;
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC_COARSE:
        return -EOPNOTSUPP;
    default:
        return is_cpu(id) && aq_usage_clock(t, k, id, &now) ? 0 : -EINVAL;
    }
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

static void add(aq_tracer *t, aq_task *k, uint64_t ns)
{
    t->clock += ns;
    k->cpu += ns;
    k->proc->cpu += ns;
}

static uint32_t cost_of(long nr)
{
    static const uint32_t costs[AQ_CALL_NUMBERS] = {
#define AQ_TICK(call, ns) [AQ_NR_##call] = ns,
#include "observe/ticks.def"
#undef AQ_TICK
    };

    if (nr == AQ_TICK_COUNTER)
        return COUNTER_NS;
    return nr >= 0 && nr < AQ_CALL_NUMBERS && costs[nr] ? costs[nr] : SHORT_NS;
}

/* No two calls take the same time on a machine; in two runs of one world they do. */
static uint32_t noise(aq_tracer *t)
{
    if (!t->noise) {
        memcpy(&t->noise, t->plan.machine->entropy, sizeof t->noise);
        t->noise |= 1;
    }
    t->noise ^= t->noise << 13;
    t->noise ^= t->noise >> 7;
    t->noise ^= t->noise << 17;
    return (uint32_t)(t->noise >> 32);
}

/* What a program computes without a call cannot be measured twice alike. But who makes one call
 * after a different one has done something in between, and takes some time for it; who makes the
 * same one again, or has just looked at the clock, is measuring. */
static uint64_t machine_ns(aq_tracer *t, aq_task *k, long nr, bool reads)
{
    uint64_t ns = cost_of(nr);

    ns += ns * (noise(t) & 63) / 256;
    if (k->reads > CALM_READS)
        ns *= 1 + (k->reads - CALM_READS) / HURRY;
    if (!reads && !k->looked && nr != k->before)
        ns += THOUGHT_NS + noise(t) % THOUGHTS;
    k->looked = reads;
    k->before = nr;
    return ns;
}

/* Whoever does nothing but read the clock waits for it: it runs faster then, so that the wait ends
 * after thousands of reads and not after millions. */
void aq_clock_tick(aq_tracer *t, aq_task *k, long nr, bool reads)
{
    k->reads = reads ? k->reads + 1 : 0;
    add(t, k,
        t->plan.machine ? machine_ns(t, k, nr, reads) : TICK_NS * (1 + k->reads / PATIENT_READS));
}

void aq_clock_moved(aq_tracer *t, uint64_t bytes)
{
    if (t->plan.machine && t->last)
        add(t, t->last, bytes / BYTES_NS);
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

uint64_t aq_clock_late(aq_tracer *t, uint64_t deadline)
{
    if (!t->plan.machine || deadline <= t->clock || deadline >= AQ_CLOCK_END)
        return deadline;
    return deadline + SLACK_NS + noise(t) % WAKE_NS;
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
        if (id > CLOCK_TAI || id == NO_CLOCK)
            return AQ_STEP_RUN; /* the kernel says what is wrong with it */
        now = aq_clock_now(t, id);
        if (t->plan.machine && (id == CLOCK_REALTIME_COARSE || id == CLOCK_MONOTONIC_COARSE))
            now -= now % JIFFY_NS;
        if (is_cpu(id) && !aq_usage_clock(t, k, id, &now))
            return aq_answer(k, -EINVAL);
        if (!aq_regs_arg(k, 1))
            return aq_answer(k, -EFAULT);
        return give_time(k, aq_regs_arg(k, 1), now / second, now % second);
    case SYS_clock_getres:
        if (!t->plan.machine || (id != CLOCK_REALTIME_COARSE && id != CLOCK_MONOTONIC_COARSE))
            return AQ_STEP_RUN;
        return give_time(k, aq_regs_arg(k, 1), 0, JIFFY_NS);
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
    int r;

    r = id == CLOCK_THREAD_CPUTIME_ID ? -EOPNOTSUPP : aq_clock_waits(t, k, id);
    if (r < 0)
        return aq_answer(k, r);
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
