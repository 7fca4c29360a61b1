/* Signals. A parked task stands still in a stop, so the kernel cannot interrupt it: whenever a
 * signal may have been sent we look, and let whoever has one to take make its call for real. The
 * kernel then interrupts it at once and decides, as always, between a restart and EINTR. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "kernel/process.h"
#include "observe/internal.h"
#include "veil/veil.h"

enum { PEEKED = 64, WAKING = 20 };

static uint64_t bit(int sig)
{
    return sig >= 1 && sig <= 64 ? 1ULL << (sig - 1) : 0;
}

static uint64_t queued(const aq_task *k, bool shared)
{
    siginfo_t s[PEEKED];
    struct __ptrace_peeksiginfo_args args = {
        .off = 0, .flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0, .nr = PEEKED};
    long n = ptrace(PTRACE_PEEKSIGINFO, k->tid, &args, s);
    uint64_t set = 0;

    for (long i = 0; i < n; i++)
        set |= bit(s[i].si_signo);
    return set;
}

bool aq_signals_pending(const aq_task *k, uint64_t blocked, uint64_t *ret)
{
    *ret = (queued(k, false) | queued(k, true)) & ~blocked;
    return *ret != 0;
}

static uint64_t mask_of(const aq_task *k)
{
    uint64_t mask = 0;

    if (k->masked)
        return k->mask;
    ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask);
    return mask;
}

/* A signal for the whole process is taken by one task: a ready one takes it on its way, and only
 * when there is none is a parked one woken. */
static bool taken_by_another(const aq_tracer *t, const aq_task *k, uint64_t set)
{
    for (const aq_task *q = t->tasks; q; q = q->next)
        if (q != k && q->proc == k->proc &&
            (q->state == AQ_TASK_READY || q->state == AQ_TASK_RUNNING) && (set & ~mask_of(q)))
            return true;
    return false;
}

/* Has it done a part of its work already? */
static bool moved(const aq_task *k)
{
    return k->done || (k->part && k->nr == SYS_sendmmsg);
}

/* Does the call's own mask let a signal through that the task's does not? */
static bool let_through(const aq_task *k)
{
    uint64_t mask = 0, pending;

    return k->masked && ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) == 0 &&
           !aq_signals_pending(k, mask, &pending);
}

/* Calls that no kernel makes again, not even after a stop that nobody handled: a socket that gives
 * up after some time would not know how much of it is left. */
static bool ends_for_good(const aq_task *k)
{
    switch (k->nr) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_semop:
    case SYS_semtimedop:
        return !let_through(k);
    default:
        return k->timed && (k->row->attempt == aq_try_message || k->row->attempt == aq_try_io ||
                            k->row->attempt == aq_try_accept);
    }
}

static void dispositions(const aq_task *k, uint64_t *ignored, uint64_t *caught)
{
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof path, "%s/%d/status", aq_process_proc(), k->tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "SigIgn:", 7) == 0)
            *ignored = strtoull(line + 7, NULL, 16);
        else if (strncmp(line, "SigCgt:", 7) == 0)
            *caught = strtoull(line + 7, NULL, 16);
    }
    if (f)
        fclose(f);
}

uint64_t aq_signals_ignored(const aq_task *k)
{
    uint64_t ignored = 0, caught = 0;

    dispositions(k, &ignored, &caught);
    return ignored;
}

/* What is ignored ends no wait. The kernel keeps it for us all the same, since we trace. */
static bool has_effect(const aq_task *k, uint64_t set)
{
    const uint64_t quiet = bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH);
    uint64_t ignored = 0, caught = 0;

    dispositions(k, &ignored, &caught);
    return set & ~(ignored | (quiet & ~caught));
}

/* The kernel would wait by its own clock, and a moment of ours may be over there: then it would say
 * that the time is over, or not, as it is quick. So it makes another call that only a signal ends,
 * and what that ends with is what this call would have. */
int aq_signals_restart(const aq_task *k)
{
    enum { SYS = 512, NOINTR = 513, NOHAND = 514 };

    if (k->masked) /* only the call itself has that mask */
        return 0;
    if (k->proc->filtered) /* by the program itself, which did not expect another call */
        return 0;
    if (k->row->attempt == aq_try_sleep)
        return NOHAND;
    if (k->row->attempt == aq_try_futex)
        return k->futex_owned ? NOINTR : k->timed ? NOHAND : SYS;
    return k->row->attempt == aq_try_queue ? SYS : 0;
}

/* Where that cannot be, its moment is put off for the kernel, whose clock is not the world's. */
void aq_signals_put_off(aq_task *k)
{
    static const int64_t late[2] = {INT64_C(1) << 32, 0};
    int at = k->nr == SYS_nanosleep         ? 0
             : k->nr == SYS_clock_nanosleep ? 2
             : k->nr == SYS_futex           ? 3
                                            : 4;
    uint64_t scratch;

    if (!k->timed || (k->row->attempt != aq_try_sleep && k->row->attempt != aq_try_futex &&
                      k->row->attempt != aq_try_queue))
        return;
    scratch = aq_tracee_scratch(k, late, sizeof late);
    if (scratch)
        aq_regs_set_arg(k, at, scratch);
}

/* Does it answer at once when it is interrupted, with nothing left to the kernel's decision? */
static bool keeps(const aq_task *k)
{
    return k->park != AQ_PARK_SPIN && (moved(k) || ends_for_good(k));
}

static void interrupt(aq_tracer *t, aq_task *k)
{
    if (moved(k)) { /* what it has moved is its answer */
        aq_wake(t, k, aq_message_done(k));
        return;
    }
    if (k->park != AQ_PARK_SPIN && ends_for_good(k)) {
        aq_wake(t, k, -EINTR);
        return;
    }
    k->state = AQ_TASK_READY;
    if (k->park == AQ_PARK_SPIN) /* it is in no call: the signal comes when it goes on */
        return;
    k->interrupted = true;
    if (k->at_exit) { /* the attempt has run: tell the kernel that it was interrupted */
        bool ends = k->timed || k->row->after == aq_after_poll || k->row->after == aq_after_ipc;

        if (let_through(k)) { /* only inside of it: the call is made once more */
            aq_regs_rewind(k);
        } else {
            aq_regs_restart(k, ends ? -514 : -512);
            aq_poll_left(t, k);
            k->interrupted = false;
        }
        k->at_exit = k->wants_exit = false;
        k->signalled = true;
        t->activity++;
        return;
    }
    aq_engine_attempt(t, k);
}

/* A signal for the whole process goes to whoever runs first. Without it the kernel would let this
 * one wait, or hand it a code that is the kernel's own. */
bool aq_signals_still(aq_tracer *t, aq_task *k)
{
    bool halfway = k->signalled;
    uint64_t pending;

    if (!k->interrupted && !halfway)
        return true;
    k->signalled = false;
    if (aq_signals_pending(k, mask_of(k), &pending))
        return true;
    k->interrupted = false;
    if (halfway) {
        aq_regs_rewind(k);
        return true;
    }
    k->dirty = k->patched = false;
    aq_engine_attempt(t, k);
    return false;
}

void aq_signals_check(aq_tracer *t)
{
    t->signals = false;
    for (aq_task *k = t->tasks; k; k = k->next) {
        uint64_t blocked, own, shared;

        if (k->state != AQ_TASK_PARKED)
            continue;
        blocked = mask_of(k);
        own = queued(k, false) & ~blocked;
        shared = queued(k, true) & ~blocked;
        if ((own || (shared && !taken_by_another(t, k, shared))) &&
            (!keeps(k) || has_effect(k, own | shared)))
            interrupt(t, k);
    }
}

/* The one that it would be told by a call, too. */
static uint32_t processor(const aq_tracer *t, const aq_task *k)
{
    return t->plan.machine ? aq_veil_cpu(t->plan.machine, k->cpus, t->clock, 0) : 0;
}

/* A signal is about to be delivered. */
void aq_signals_stop(aq_tracer *t, aq_task *k, int sig)
{
    siginfo_t s;

    if (ptrace(PTRACE_GETSIGINFO, k->tid, 0, &s) != 0)
        memset(&s, 0, sizeof s);
    if (sig == SIGSEGV && s.si_code == SI_KERNEL && !k->no_counter) {
        aq_clock_tick(t, k, AQ_TICK_COUNTER, true);
        if (aq_regs_counter(k, aq_clock_counter(t), processor(t, k))) {
            aq_decode_counter(t, k);
            t->quantum++; /* it may do nothing else until another task lets it */
            return;
        }
    }
    if (sig == SIGXCPU && s.si_code == SI_KERNEL)
        aq_preempted(t, k, "limit");
    /* Sent after somebody else's: the call that was to be made for that one is made after this. */
    k->interrupted = k->signalled = false;
    aq_timer_delivers(t, k, &s);
    aq_decode_signal(t, k, &s);
    k->signal = sig;
}

/* ---- the calls ---- */

aq_step aq_after_kill(aq_tracer *t, aq_task *k, long *result)
{
    int at = k->nr == SYS_tgkill || k->nr == SYS_rt_tgsigqueueinfo ? 2 : 1;

    if (*result == 0) {
        t->signals = true;
        t->activity++;
        if ((int)aq_regs_arg(k, at) == SIGCONT)
            t->waking = WAKING;
        t->killing = true;
        aq_task_reap_dying(t);
        t->killing = false;
    }
    return AQ_STEP_RUN;
}

/* pause and rt_sigsuspend run only when a signal will end them; rt_sigtimedwait looks into the
 * queue. */
aq_step aq_try_signal_wait(aq_tracer *t, aq_task *k)
{
    uint64_t set = 0, pending;
    int64_t ts[2];

    if (k->nr == SYS_rt_sigtimedwait) {
        if (!aq_tracee_get(k, aq_regs_arg(k, 0), &set, sizeof set))
            return aq_answer(k, -EFAULT);
        if (aq_signals_pending(k, ~set, &pending))
            return AQ_STEP_RUN;
        if (aq_regs_arg(k, 2)) {
            if (!aq_tracee_get(k, aq_regs_arg(k, 2), ts, sizeof ts))
                return aq_answer(k, -EFAULT);
            aq_park_until(k, aq_clock_deadline(t, 1, false, ts[0], ts[1]));
        }
        if (k->expired || (k->timed && k->deadline <= t->clock))
            return aq_answer(k, -EAGAIN);
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    if (k->nr == SYS_rt_sigsuspend) {
        if (!aq_tracee_get(k, aq_regs_arg(k, 0), &k->mask, sizeof k->mask))
            return aq_answer(k, -EFAULT);
        k->masked = true;
    }
    if (aq_signals_pending(k, mask_of(k), &pending))
        return AQ_STEP_RUN;
    aq_park(t, k, AQ_PARK_SIGNAL);
    return AQ_STEP_PARKED;
}

aq_step aq_after_signal_wait(aq_tracer *t, aq_task *k, long *result)
{
    (void)t, (void)k, (void)result;
    return AQ_STEP_RUN;
}
