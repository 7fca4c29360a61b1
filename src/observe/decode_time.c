/* Clocks, sleeps, timers and randomness as events. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/time.h>
#include <time.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { NS = 0, CLOCK = 1 };
#define SECOND 1000000000

static int64_t ns_of(int64_t s, int64_t ns)
{
    if (s < 0 || ns < 0 || ns >= SECOND)
        return 0;
    return s > INT64_MAX / SECOND - 1 ? INT64_MAX : s * SECOND + ns;
}

/* Whole seconds among the microseconds count where the kernel lets them. */
static int64_t ns_of_micro(int64_t s, int64_t us)
{
    if (us < 0 || __builtin_add_overflow(s, us / 1000000, &s))
        return 0;
    return ns_of(s, us % 1000000 * 1000);
}

static bool read_time(const aq_task *k, uint64_t at, int64_t *ret)
{
    struct timespec ts;

    if (!at || !aq_tracee_get(k, at, &ts, sizeof ts))
        return false;
    *ret = ns_of(ts.tv_sec, ts.tv_nsec);
    return true;
}

static int64_t until(const aq_tracer *t, int clock, int64_t deadline)
{
    int64_t now = (int64_t)aq_clock_now(t, clock);

    return deadline > now ? deadline - now : 0;
}

/* ---- sleeps ---- */

void aq_look_sleep(aq_tracer *t, aq_task *k)
{
    bool by_clock = k->nr == AQ_NR_clock_nanosleep;
    int clock = by_clock ? aq_arg_int(k, 0) : CLOCK_MONOTONIC;
    aq_look *l = aq_look_of(k);
    int64_t ns = 0;

    read_time(k, aq_regs_arg(k, by_clock ? 2 : 0), &ns);
    if (by_clock && (aq_arg_int(k, 1) & TIMER_ABSTIME))
        ns = until(t, clock, ns);
    l->number[NS] = (uint64_t)ns;
    l->number[CLOCK] = (uint64_t)clock;
}

void aq_note_sleep(aq_tracer *t, aq_task *k, long result)
{
    const aq_look *l = aq_look_of(k);
    aq_event e = aq_event_of(AQ_EVENT_CLOCK, "sleep");

    aq_event_number(&e, "ns", (int64_t)l->number[NS]);
    aq_event_number(&e, "clock", (int64_t)l->number[CLOCK]);
    if (k->nr == AQ_NR_clock_nanosleep && (aq_arg_int(k, 1) & TIMER_ABSTIME))
        aq_event_number(&e, "absolute", 1);
    e.result = result;
    aq_note(t, k, &e);
}

/* ---- waits with an end ---- */

static int64_t futex_wait(const aq_tracer *t, aq_task *k)
{
    int op = aq_arg_int(k, 1), base = op & FUTEX_CMD_MASK;
    int64_t ns = 0;

    if (base != FUTEX_WAIT && base != FUTEX_WAIT_BITSET && base != FUTEX_LOCK_PI)
        return 0;
    if (!read_time(k, aq_regs_arg(k, 3), &ns))
        return 0;
    if (base == FUTEX_WAIT)
        return ns;
    return until(
        t, op & FUTEX_CLOCK_REALTIME || base == FUTEX_LOCK_PI ? CLOCK_REALTIME : CLOCK_MONOTONIC,
        ns);
}

static int64_t milliseconds(int32_t ms)
{
    return ms > 0 ? (int64_t)ms * 1000000 : 0;
}

static int64_t wait_of(const aq_tracer *t, aq_task *k)
{
    struct timeval tv;
    int64_t ns = 0;

    switch (k->nr) {
    case AQ_NR_poll:
        return milliseconds(aq_arg_int(k, 2));
    case AQ_NR_epoll_wait:
    case AQ_NR_epoll_pwait:
        return milliseconds(aq_arg_int(k, 3));
    case AQ_NR_select:
        if (!aq_regs_arg(k, 4) || !aq_tracee_get(k, aq_regs_arg(k, 4), &tv, sizeof tv))
            return 0;
        return ns_of_micro(tv.tv_sec, tv.tv_usec);
    case AQ_NR_ppoll:
    case AQ_NR_rt_sigtimedwait:
        read_time(k, aq_regs_arg(k, 2), &ns);
        return ns;
    case AQ_NR_pselect6:
        read_time(k, aq_regs_arg(k, 4), &ns);
        return ns;
    case AQ_NR_epoll_pwait2:
    case AQ_NR_semtimedop:
        read_time(k, aq_regs_arg(k, 3), &ns);
        return ns;
    case AQ_NR_mq_timedsend:
    case AQ_NR_mq_timedreceive:
        return read_time(k, aq_regs_arg(k, 4), &ns) ? until(t, CLOCK_REALTIME, ns) : 0;
    case AQ_NR_futex:
        return futex_wait(t, k);
    default:
        return 0;
    }
}

void aq_look_wait(aq_tracer *t, aq_task *k)
{
    aq_look_of(k)->number[NS] = (uint64_t)wait_of(t, k);
}

/* A wait that ended by its time was a sleep. */
void aq_note_wait(aq_tracer *t, aq_task *k, long result)
{
    const aq_look *l = aq_look_of(k);
    aq_event e = aq_event_of(AQ_EVENT_CLOCK, "wait");
    bool queue = k->nr == AQ_NR_mq_timedsend || k->nr == AQ_NR_mq_timedreceive;
    long ran_out = k->nr == AQ_NR_futex || queue ? -ETIMEDOUT : 0;

    if (k->nr == AQ_NR_rt_sigtimedwait || k->nr == AQ_NR_semtimedop)
        ran_out = -EAGAIN;
    if (result != ran_out || l->number[NS] == 0)
        return;
    aq_event_number(&e, "ns", (int64_t)l->number[NS]);
    aq_event_text(&e, "call", k->row->name);
    e.result = result;
    aq_note(t, k, &e);
}

/* ---- clocks and timers ---- */

void aq_note_now(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_CLOCK, "now");
    int clock = CLOCK_REALTIME;

    if (k->nr == AQ_NR_clock_gettime)
        clock = aq_arg_int(k, 0);
    else if (k->nr == AQ_NR_times || k->nr == AQ_NR_sysinfo)
        clock = CLOCK_BOOTTIME;
    aq_event_number(&e, "clock", clock);
    aq_event_text(&e, "call", k->row->name);
    e.result = result < 0 && result >= -4095 ? result : 0;
    aq_note(t, k, &e);
}

void aq_look_timer(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    struct itimerval v;
    struct itimerspec s;
    int64_t ns = 0;

    (void)t;
    if (k->nr == AQ_NR_alarm) {
        ns = ns_of((uint32_t)aq_regs_arg(k, 0), 0);
    } else if (k->nr == AQ_NR_setitimer) {
        if (aq_regs_arg(k, 1) && aq_tracee_get(k, aq_regs_arg(k, 1), &v, sizeof v))
            ns = ns_of_micro(v.it_value.tv_sec, v.it_value.tv_usec);
    } else if (aq_tracee_get(k, aq_regs_arg(k, 2), &s, sizeof s)) {
        ns = ns_of(s.it_value.tv_sec, s.it_value.tv_nsec);
    }
    l->number[NS] = (uint64_t)ns;
}

void aq_note_timer(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_CLOCK, "timer");
    bool settime = k->nr == AQ_NR_timer_settime || k->nr == AQ_NR_timerfd_settime;

    aq_event_number(&e, "ns", (int64_t)aq_look_of(k)->number[NS]);
    if (settime && (aq_arg_int(k, 1) & TIMER_ABSTIME))
        aq_event_number(&e, "absolute", 1);
    aq_event_text(&e, "call", k->row->name);
    e.result = result;
    aq_note(t, k, &e);
}

void aq_note_random(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_ENTROPY, "getrandom");

    aq_entropy_given(t, k, result);
    aq_event_number(&e, "size", aq_arg_long(k, 1));
    aq_event_number(&e, "flags", aq_arg_int(k, 2));
    e.result = result;
    aq_note(t, k, &e);
}
