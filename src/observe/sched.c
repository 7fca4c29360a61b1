/* Who runs next. Turns go round in the order of creation; a task gives its turn away when it waits,
 * yields, or has made AQ_QUANTUM calls. Nothing here looks at the wall clock: the order of turns is
 * a function of what the programs do. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "observe/internal.h"
#include "observe/reach.h"

enum { PATIENCE = 20 }; /* looks at a task in the kernel before time jumps without it */

void aq_park(aq_tracer *t, aq_task *k, aq_park_kind kind)
{
    k->state = AQ_TASK_PARKED;
    k->park = kind;
    k->retry = true;
    k->seen = t->activity;
}

void aq_park_until(aq_task *k, uint64_t deadline)
{
    if (!k->timed)
        k->deadline = aq_clock_late(k->proc->world, deadline);
    k->timed = true;
}

aq_step aq_answer(aq_task *k, long answer)
{
    k->answer = answer;
    return AQ_STEP_DONE;
}

aq_step aq_refuse(aq_task *k, int code, const char *rule)
{
    k->rule = rule;
    return aq_answer(k, -code);
}

void aq_wake(aq_tracer *t, aq_task *k, long answer)
{
    k->state = AQ_TASK_READY;
    aq_engine_step(t, k, aq_answer(k, answer));
}

/* Its deadline passed: a sleep ends well, a futex times out, anything else gets a last attempt. */
static void expire(aq_tracer *t, aq_task *k)
{
    k->expired = true;
    switch (k->park) {
    case AQ_PARK_SLEEP:
        aq_wake(t, k, 0);
        break;
    case AQ_PARK_FUTEX:
        aq_wake(t, k, -ETIMEDOUT);
        break;
    default:
        k->seen = 0;
        break;
    }
}

static void expire_all(aq_tracer *t)
{
    for (aq_task *k = t->tasks; k; k = k->next)
        if (k->state == AQ_TASK_PARKED && k->timed && !k->expired && k->deadline <= t->clock)
            expire(t, k);
}

/* The first in the order of turns that `can`; the list is in that order already, so the best is the
 * first one from `turn` on, or else the first of all. */
static aq_task *first_that(aq_tracer *t, bool (*can)(const aq_tracer *, const aq_task *))
{
    aq_task *before = NULL;

    for (aq_task *k = t->tasks; k; k = k->next) {
        if (!can(t, k))
            continue;
        if (k->serial >= t->turn)
            return k;
        if (!before)
            before = k;
    }
    return before;
}

static bool is_ready(const aq_tracer *t, const aq_task *k)
{
    (void)t;
    return k->state == AQ_TASK_READY;
}

static bool may_retry(const aq_tracer *t, const aq_task *k)
{
    if (k->state != AQ_TASK_PARKED)
        return false;
    return k->park == AQ_PARK_SPIN ? k->seen < t->runs
                                   : k->park == AQ_PARK_RETRY && k->seen < t->activity;
}

bool aq_sched_others(const aq_tracer *t, const aq_task *k)
{
    for (const aq_task *q = t->tasks; q; q = q->next)
        if (q != k && (is_ready(t, q) || may_retry(t, q)))
            return true;
    return false;
}

/* Tries what was parked. An attempt that ran already must be made again by the task itself. */
static void retry(aq_tracer *t, aq_task *k)
{
    if (k->park == AQ_PARK_SPIN) {
        aq_spin_again(t, k);
        return;
    }
    k->seen = t->activity;
    k->trying = true;
    memcpy(t->kept, (uint32_t[4]){t->turn, t->quantum, t->limit, t->seed}, sizeof t->kept);
    if (k->at_exit) {
        aq_regs_rewind(k);
        k->at_exit = false;
        k->wants_exit = false;
        k->state = AQ_TASK_READY;
        return;
    }
    aq_engine_attempt(t, k);
}

static bool may_go(const aq_tracer *t, const aq_task *k)
{
    return is_ready(t, k) || may_retry(t, k);
}

/* A program whose loop makes a number of calls that divides the length of a turn would always be
 * interrupted at the same place, perhaps one where it holds the lock that the others want. So turns
 * differ in length, in the same way in every run. */
void aq_sched_turn(aq_tracer *t)
{
    t->quantum = t->limit + 1;
}

/* How often a parked call is tried in vain depends on the host: on when its output was last passed
 * on, for one. So an attempt that changed nothing changes nothing here. */
void aq_sched_vain(aq_tracer *t, aq_task *k)
{
    k->trying = false;
    t->turn = t->kept[0], t->quantum = t->kept[1], t->limit = t->kept[2], t->seed = t->kept[3];
    t->vain = true;
}

/* The next moment at which something happens by itself. */
uint64_t aq_sched_moment(const aq_tracer *t)
{
    uint64_t next = aq_timer_next(t), internet = aq_reach_next(t);

    if (internet < next)
        next = internet;
    for (const aq_task *k = t->tasks; k; k = k->next)
        if (k->state == AQ_TASK_PARKED && k->timed && !k->expired && k->deadline < next)
            next = k->deadline;
    return next;
}

/* Normally the ready come before the parked, which spares vain attempts. When a turn has run out
 * the parked count as well: a task that never waits must not starve them. */
aq_task *aq_sched_next(aq_tracer *t)
{
    bool over = t->quantum > t->limit;

    if (over)
        aq_reach_step(t, aq_sched_moment(t));
    for (;;) {
        aq_task *k;

        aq_timer_fire(t);
        expire_all(t);
        if (t->signals || t->unsent)
            aq_signals_check(t);
        k = first_that(t, over ? may_go : is_ready);
        if (!k)
            k = first_that(t, may_retry);
        if (!k)
            return NULL;
        if (k->state == AQ_TASK_READY) {
            t->turn = k->serial;
            t->quantum = 0;
            t->limit = AQ_QUANTUM + (t->seed = t->seed * 1103515245 + 12345) / 65536 % AQ_QUANTUM;
            return k;
        }
        retry(t, k);
    }
}

bool aq_sched_due(const aq_tracer *t, uint64_t ns)
{
    return aq_sched_moment(t) <= t->clock + ns;
}

void aq_sched_jump(aq_tracer *t)
{
    uint64_t next = aq_sched_moment(t);

    if (next != UINT64_MAX && next > t->clock)
        t->clock = next;
}

static bool any_in(const aq_tracer *t, aq_task_state state)
{
    for (const aq_task *k = t->tasks; k; k = k->next)
        if (k->state == state)
            return true;
    return false;
}

/* Does somebody wait in the kernel for what may come by itself? A parent in vfork does not: its
 * child lets it go, and that is seen. */
static bool any_in_kernel(const aq_tracer *t)
{
    for (const aq_task *k = t->tasks; k; k = k->next) {
        const aq_proc *child = t->procs;

        if (k->state != AQ_TASK_KERNEL)
            continue;
        while (child && child->vforked != k)
            child = child->next;
        if (!child)
            return true;
    }
    return false;
}

static aq_task *any_connecting(const aq_tracer *t)
{
    for (aq_task *k = t->tasks; k; k = k->next)
        if (k->state == AQ_TASK_PARKED && k->row && k->row->attempt == aq_try_connect && k->part)
            return k;
    return NULL;
}

static int pump(aq_tracer *t, int timeout_ms)
{
    int r = t->plan.pump ? t->plan.pump(t->plan.arg, timeout_ms) : -1;

    if (r > 0)
        t->activity++;
    return r;
}

/* Everybody waits. What the outside still has for us comes first, without waiting; then time jumps
 * to the next moment; only when there is none is the outside waited for. */
bool aq_sched_idle(aq_tracer *t)
{
    uint64_t next = aq_sched_moment(t), before = t->activity;
    bool kernel = any_in_kernel(t);
    aq_task *connecting;

    aq_engine_drain(t);
    if (t->activity != before || any_in(t, AQ_TASK_READY))
        return true;
    if (pump(t, 0) > 0 || aq_reach_step(t, next))
        return true;
    next = aq_sched_moment(t); /* it may want another */
    if (t->typed > 0) { /* by a worker of the kernel: a key may be a signal, or come back as echo */
        t->typed--;
        t->activity++;
        usleep(1000);
        return true;
    }
    if (t->waking > 0 && any_in(t, AQ_TASK_HALTED)) { /* it must run a little to tell */
        t->waking--;
        usleep(100);
        return true;
    }
    if (kernel && t->patience++ < PATIENCE) { /* its wait is the kernel's: look again soon */
        if (pump(t, 1) < 0)
            usleep(200);
        return true;
    }
    t->patience = 0;
    if (next != UINT64_MAX) {
        if (next > t->clock)
            t->clock = next;
        return true;
    }
    connecting = any_connecting(t);
    if (connecting) { /* its answer comes by the kernel's own timers */
        aq_preempted(t, connecting, "connect");
        t->activity++;
        usleep(1000);
        return true;
    }
    return pump(t, 20) >= 0 || kernel;
}
