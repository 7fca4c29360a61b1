/* Switches in the middle of work that makes no call.
 *
 * Who computes keeps its turn. Only where somebody else could run, or a moment has come, and it
 * goes on for very long (spin.c), is it made to give way. When that is so the wall clock says, so
 * the run does not repeat. But the place is chosen with care: the task is stopped, a breakpoint of
 * the processor is laid where it stands, and it gives way when it has come there HITS times. A
 * place that it does not come to so often is no good, and another one is tried.
 *
 * What is recorded of that (the thread, its calls so far, the address) is the schedule of a later
 * run (model/schedule.h). There the breakpoint lies from that call on, the task gives way at the
 * same count, and no clock has a part in it. A schedule need not be right: whether a count is
 * reached follows from the program alone. Where it is not the task goes on, and either needs no
 * switch or gets one by the clock, which is recorded as ever.
 *
 * A program cannot tell. The registers of the breakpoint are the kernel's to read, no byte of the
 * program changes, and to look at a clock is a call. The one thing that could show is the signal
 * that a trap is: where a task blocks or ignores it the kernel would forget that, so it is let
 * through for as long as we count, and where that cannot be there is no counting. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "observe/internal.h"

enum {
    HITS = 64,
    TRIES = 8,      /* places that are tried before it gives way wherever it is */
    BREAKPOINT = 4, /* TRAP_HWBKPT */
    ADDRESS = 0,    /* numbers of debug registers */
    STATUS = 6,
    CONTROL = 7,
    HIT = 1, /* in STATUS: the first breakpoint */
    ON = 1,  /* in CONTROL: the first one, when the instruction is to be executed */
};
static const uint64_t TRY_NS = 20000000; /* of processor time for one place */
static const uint64_t TRAP = 1ULL << (SIGTRAP - 1);

/* ---- the signal of a trap ---- */

bool aq_trap_open(aq_task *k)
{
    uint64_t mask = 0, pending;

    if (ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) != 0 ||
        aq_signals_pending(k, ~TRAP, &pending) || (aq_signals_ignored(k) & TRAP))
        return false;
    if (mask & TRAP) {
        mask &= ~TRAP;
        k->trap_masked = ptrace(PTRACE_SETSIGMASK, k->tid, sizeof mask, &mask) == 0;
        return k->trap_masked;
    }
    return true;
}

void aq_trap_close(aq_task *k)
{
    uint64_t mask = 0;

    if (!k->trap_masked)
        return;
    k->trap_masked = false;
    if (ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) != 0)
        return;
    mask |= TRAP;
    ptrace(PTRACE_SETSIGMASK, k->tid, sizeof mask, &mask);
}

/* ---- the breakpoint ---- */

static bool put(const aq_task *k, int reg, unsigned long value)
{
    size_t at = offsetof(struct user, u_debugreg) + (size_t)reg * sizeof value;

    return ptrace(PTRACE_POKEUSER, k->tid, at, value) == 0;
}

static bool was_hit(const aq_task *k)
{
    size_t at = offsetof(struct user, u_debugreg) + STATUS * sizeof(unsigned long);
    siginfo_t s;
    long status;

    errno = 0;
    status = ptrace(PTRACE_PEEKUSER, k->tid, at, 0);
    return errno == 0 && (status & HIT) && ptrace(PTRACE_GETSIGINFO, k->tid, 0, &s) == 0 &&
           s.si_code == BREAKPOINT;
}

static bool lay(aq_tracer *t, aq_task *k)
{
    if (!aq_trap_open(k))
        return false;
    errno = 0;
    k->count.laid = put(k, ADDRESS, k->count.at) && put(k, STATUS, 0) && put(k, CONTROL, ON);
    if (k->count.laid)
        return true;
    aq_trap_close(k);
    if (k->count.planned && errno != ESRCH) /* the host's doing, not the program's */
        aq_preempted(t, k, "breakpoint");
    return false;
}

void aq_switch_lift(aq_task *k)
{
    if (!k->count.laid)
        return;
    put(k, CONTROL, 0);
    aq_trap_close(k);
    k->count.laid = false;
}

/* ---- the switch ---- */

static void give_way(aq_tracer *t, aq_task *k, bool placed)
{
    const aq_count *c = &k->count;
    aq_switch s = {.process = k->proc->ordinal,
                   .thread = k->ordinal,
                   .call = k->begun,
                   .at = c->at,
                   .hits = c->most,
                   .jump = c->jump};

    aq_switched(t, k, placed ? &s : NULL, c->planned);
    if (c->jump)
        aq_sched_jump(t);
    aq_sched_turn(t);
    t->activity++;
    k->scheduled += c->planned;
    k->count = (aq_count){0};
    k->ticks = k->tries = 0;
}

bool aq_switch_hit(aq_tracer *t, aq_task *k)
{
    if (!k->count.laid || !was_hit(k))
        return false;
    put(k, STATUS, 0);
    k->state = AQ_TASK_READY;
    if (++k->count.hits < k->count.most)
        return true;
    aq_switch_lift(k);
    give_way(t, k, true);
    return true;
}

/* ---- by the clock ---- */

void aq_switch_seek(aq_task *k, uint64_t now, bool jump)
{
    if (k->count.most && !k->count.planned && now - k->tried < TRY_NS)
        return; /* it may yet come there */
    k->tried = now;
    k->tries++;
    k->seeks = k->begun + 1;
    k->seeks_jump = jump;
    ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
}

void aq_switch_found(aq_tracer *t, aq_task *k)
{
    bool still = k->seeks == k->begun + 1 && !k->row && k->state == AQ_TASK_READY;
    struct user_regs_struct r;

    k->seeks = 0;
    if (!still)
        return;                       /* it made a call meanwhile */
    k->scheduled += k->count.planned; /* that place was no good */
    k->count = (aq_count){.jump = k->seeks_jump};
    if (k->tries <= TRIES && aq_regs_load(k, &r) == 0) {
        k->count.at = r.rip;
        k->count.most = HITS;
        if (lay(t, k))
            return;
    }
    give_way(t, k, false);
}

/* ---- by a schedule ---- */

static const aq_switch *next_row(const aq_tracer *t, aq_task *k)
{
    const aq_schedule *s = t->plan.schedule;

    for (; k->scheduled < s->count; k->scheduled++) {
        const aq_switch *row = &s->rows[k->scheduled];

        if (row->process == k->proc->ordinal && row->thread == k->ordinal && row->call >= k->begun)
            return row;
    }
    return NULL;
}

/* A breakpoint is laid outside of calls only: one may ask for the mask of signals. */
void aq_switch_resume(aq_tracer *t, aq_task *k)
{
    const aq_switch *row;

    if (k->count.laid || k->row || (!k->count.most && !t->plan.schedule))
        return;
    if (!k->count.most) {
        row = next_row(t, k);
        if (!row || row->call != k->begun)
            return;
        k->count = (aq_count){.at = row->at, .most = row->hits, .planned = true, .jump = row->jump};
    }
    if (k->entered) /* its call runs first */
        k->wants_exit = true;
    else if (!lay(t, k) && k->count.planned)
        k->scheduled++, k->count = (aq_count){0};
    else if (k->signal && k->trap_masked) /* the handler would keep the mask that is not its own */
        aq_switch_lift(k);
}

void aq_switch_begin(aq_task *k)
{
    k->begun++;
    k->tries = 0;
    k->count = (aq_count){0};
}
