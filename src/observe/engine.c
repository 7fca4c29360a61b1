/* The stop loop: resumes the one task whose turn it is, waits for its next stop, and carries out
 * what the table of calls says. See tracer.h for the theory.
 *
 * Invariants:
 *  E1  at most one task is AQ_TASK_RUNNING; all others are in a ptrace stop or wait in the kernel.
 *  E2  arguments are read only at an entry stop, and the call runs before any other task does.
 *  E3  a call that the table does not know, or refuses, was trapped by the kernel before we saw it.
 *  E4  every call of the world passes on_entry or on_trap once as a first attempt, and is counted.
 *
 * Why nobody can change an argument between our look and the kernel's: whoever could write into
 * that memory is a task of this world (a thread, a process with the same shared mapping or file,
 * one that writes /proc/PID/mem), and by E1 none runs between the stop at which we look and the
 * call itself. Whoever is not a task does not exist: io_uring and asynchronous I/O, userfaultfd and
 * foreign process_vm_writev are refused; no debugger can attach where we do. A call that waited is
 * made anew, after others ran, so everything is looked at again for each attempt
 * (aq_engine_attempt). Bytes that were sent are ours once the call has returned: vmsplice copies
 * (park_copy.c) and SO_ZEROCOPY is refused, so no page of the program is sent later than it was
 * read. A file that sendfile or splice sent can still be changed while it lies in the socket: there
 * the other side's record is the truth. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernel/process.h"
#include "observe/decode.h"
#include "observe/disk.h"
#include "observe/image.h"
#include "observe/reach.h"

enum {
    CALL_BYTES = 4096, /* that a call takes of the room at least: a page */
    TICK_MS = 10,      /* of the wall clock, while a task runs */
    BLOCKED_TICKS = 4, /* asleep inside a call, at each of them: a busy host is slow to wake us */
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP |
              PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
              PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC,
    ARCH = 0xc000003e,   /* AUDIT_ARCH_X86_64 */
    RESTART_FIRST = 512, /* the kernel's private codes: ERESTARTSYS … ERESTART_RESTARTBLOCK */
    RESTART_NOHAND = 514,
    RESTART_BLOCK = 516,
};

static uint64_t wall_ms(void)
{
    struct timespec ts;

    aq_process_clock(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ---- one call ---- */

static void finish(aq_tracer *t, aq_task *k, long result)
{
    const aq_decoder *d =
        k->row->treat == AQ_TREAT_REFUSE && !k->row->decoder ? &aq_decode_refusal : k->row->decoder;

    if (d && d->note)
        d->note(t, k, result);
    if (t->disk && result >= 0)
        aq_times_done(t, k, result);
    if ((result == -ENOSPC || result == -EDQUOT || (result == -EFBIG && !k->proc->short_files)) &&
        t->plan.full)
        t->plan.full(t->plan.arg, k->nr, (int)-result);
    k->row = NULL;
    k->trying = false;
    k->retry = k->timed = k->expired = k->masked = k->interrupted = false;
    k->rule = NULL;
    k->done = k->part = k->taken = 0;
    t->activity++;
}

void aq_engine_step(aq_tracer *t, aq_task *k, aq_step step)
{
    switch (step) {
    case AQ_STEP_RUN:
        k->state = AQ_TASK_READY;
        k->wants_exit = true;
        break;
    case AQ_STEP_GO:
        k->state = AQ_TASK_READY;
        k->wants_exit = false;
        finish(t, k, 0);
        break;
    case AQ_STEP_DONE:
        k->state = AQ_TASK_READY;
        k->wants_exit = false;
        k->at_exit = false;
        aq_tracee_restore(k);
        aq_regs_answer(k, k->answer);
        k->patched = false;
        finish(t, k, k->answer);
        break;
    case AQ_STEP_PARKED:
        aq_tracee_restore(k);
        k->dirty = k->patched = false;
        break;
    case AQ_STEP_AGAIN: /* of what follows an attempt only */
        break;
    }
}

void aq_engine_attempt(aq_tracer *t, aq_task *k)
{
    const aq_call_row *row = k->row;

    /* Others ran since the arguments were read. What a wait is called is fixed at its start. */
    if (k->retry && !k->again && row->decoder && row->decoder->look &&
        row->decoder->kind != AQ_EVENT_CLOCK)
        row->decoder->look(t, k);
    k->again = false;
    k->restart = k->interrupted ? aq_signals_restart(k) : 0;
    if (k->restart)
        aq_regs_set_call(k, SYS_pause);
    else if (k->interrupted)
        aq_signals_put_off(k);
    if (k->interrupted)
        aq_engine_step(t, k, AQ_STEP_RUN);
    else if (t->plan.machine && aq_actors_attempt(t, k) == AQ_STEP_DONE)
        aq_engine_step(t, k, AQ_STEP_DONE);
    else if (row->attempt)
        aq_engine_step(t, k, row->attempt(t, k));
    else
        aq_engine_step(t, k, row->decoder && row->decoder->note ? AQ_STEP_RUN : AQ_STEP_GO);
}

static void begin(aq_tracer *t, aq_task *k)
{
    aq_proc *p = k->proc;

    k->row = aq_call_row_of(k->nr);
    if (k->nr >= 0 && k->nr < AQ_CALL_NUMBERS && k->row->treat != AQ_TREAT_UNKNOWN)
        p->counts[k->nr]++;
    else
        p->unknown++;
    t->end.calls++;
    t->quantum++;
    aq_switch_begin(k);
    aq_clock_tick(t, k, k->nr, k->row->attempt == aq_try_time || k->row->attempt == aq_try_usage);
    if (t->plan.calls && t->end.calls > t->plan.calls)
        t->end.stop = AQ_STOP_CALLS;
    if (t->touched && t->plan.room &&
        t->end.calls * CALL_BYTES + t->end.moved - t->measured >= AQ_MEASURED) {
        t->measured = t->end.calls * CALL_BYTES + t->end.moved;
        if (t->plan.room(t->plan.arg) == 0)
            t->end.stop = AQ_STOP_FULL;
    }
    aq_recall_begin(t, k->nr);
    if (!t->touched && !aq_touches_nothing(k)) {
        t->touched = true;
        if (t->plan.touch)
            t->plan.touch(t->plan.arg);
        t->marks_known = false; /* there are more now */
    }
    if (t->touched)
        aq_home_begin(t, k);
}

/* A call that a signal interrupted and the kernel made again is the same one: its deadline stays.
 */
static bool same_call(const aq_task *k, const struct user_regs_struct *r)
{
    return k->row && k->retry && r->rip == k->in.rip && r->rsp == k->in.rsp &&
           r->orig_rax == k->in.orig_rax && r->rdi == k->in.rdi && r->rsi == k->in.rsi &&
           r->rdx == k->in.rdx && r->r10 == k->in.r10 && r->r8 == k->in.r8 && r->r9 == k->in.r9;
}

static void on_entry(aq_tracer *t, aq_task *k)
{
    struct user_regs_struct r;

    if (aq_regs_load(k, &r) != 0)
        return;
    if (!t->started) { /* our own child on its way to exec */
        k->in = r;
        k->nr = (long)r.orig_rax;
        k->wants_exit = false;
        if (k->nr == SYS_execve || k->nr == SYS_execveat) {
            k->row = aq_call_row_of(k->nr);
            aq_engine_step(t, k, aq_slide_exec(t, k));
        }
        return;
    }
    if (!same_call(k, &r)) {
        k->in = r;
        k->nr = (long)r.orig_rax;
        k->retry = k->again = k->timed = k->expired = k->masked = k->interrupted = false;
        k->dirty = k->patched = false;
        k->done = k->part = k->taken = 0;
        k->rule = NULL;
        if (k->hold >= 0)
            aq_open_end(k);
        begin(t, k);
        if (k->row->decoder && k->row->decoder->look)
            k->row->decoder->look(t, k);
    }
    aq_engine_attempt(t, k);
}

/* Did the kernel trap a call of this task because we refuse it? A program can send itself a SIGSYS
 * with any story in it, even while a true one is on its way, so what counts is where the task
 * stands: no call but a trapped one has such a number. Only the number -1 also means that there is
 * no call; then the signal must say so. */
static bool is_trapped(const aq_task *k, const struct user_regs_struct *r)
{
    struct __ptrace_syscall_info at = {0};
    long nr = (long)r->orig_rax;
    siginfo_t s;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, k->tid, sizeof at, &at) > 0 && at.arch != ARCH)
        return true;
    if (nr == -1)
        return ptrace(PTRACE_GETSIGINFO, k->tid, 0, &s) == 0 && s.si_code == 1 /* SYS_SECCOMP */ &&
               s.si_syscall == -1;
    return aq_call_row_of(nr)->treat == AQ_TREAT_REFUSE ||
           aq_call_row_of(nr)->treat == AQ_TREAT_UNKNOWN;
}

/* The kernel refused a call by itself; SIGSYS is how it tells. The task never sees the signal. */
static bool on_trap(aq_tracer *t, aq_task *k)
{
    struct __ptrace_syscall_info at = {0};
    const aq_decoder *d;
    struct user_regs_struct r;

    if (aq_regs_load(k, &r) != 0 || !is_trapped(k, &r))
        return false; /* sent by somebody, or of a filter that the program installed for itself */
    k->in = r;
    ptrace(PTRACE_GET_SYSCALL_INFO, k->tid, sizeof at, &at);
    k->nr = at.arch == ARCH ? (long)r.orig_rax : -1;
    k->retry = k->timed = k->dirty = k->patched = false;
    begin(t, k);
    d = k->row->decoder ? k->row->decoder : &aq_decode_refusal;
    if (d->look)
        d->look(t, k);
    k->rule = "syscall.refused";
    aq_engine_step(t, k, aq_answer(k, aq_face_refusal(t, k)));
    return true;
}

static void on_exit_stop(aq_tracer *t, aq_task *k)
{
    long result, given;

    errno = 0;
    result = ptrace(PTRACE_PEEKUSER, k->tid, offsetof(struct user, regs.rax), 0);
    if (errno != 0 || !k->row) {
        k->wants_exit = false;
        return;
    }
    aq_tracee_ran(k);
    if (result <= -RESTART_FIRST && result >= -RESTART_BLOCK) {
        aq_tracee_restore(k);
        aq_io_unflip(k);
        if (k->restart)
            result = -k->restart;
        /* A relative wait that is made again keeps the deadline that it had. */
        if (k->patched || result == -RESTART_BLOCK)
            aq_regs_restart(k, result == -RESTART_BLOCK ? -RESTART_NOHAND : result);
        aq_clock_left(t, k);
        aq_poll_left(t, k);
        k->interrupted = false;
        k->retry = true;
        k->patched = k->wants_exit = false;
        return;
    }
    given = result;
    if (k->row->after && !k->interrupted) {
        aq_step step = k->row->after(t, k, &result);

        if (step == AQ_STEP_PARKED) {
            aq_tracee_restore(k);
            aq_content_part(t, k);
            k->at_exit = true;
            k->patched = false;
            if (k->trying)
                aq_sched_vain(t, k);
            return;
        }
        if (step == AQ_STEP_AGAIN) {
            aq_tracee_restore(k);
            aq_regs_rewind(k);
            k->retry = k->again = true;
            k->patched = k->wants_exit = false;
            return;
        }
    }
    if (t->disk)
        result = aq_disk_result(k, result);
    aq_tracee_settle(k);
    if (k->patched || result != given)
        aq_regs_finish(k, result);
    k->patched = k->wants_exit = false;
    aq_edge_call(t, k, result);
    finish(t, k, result);
}

/* ---- births, programs, stops ---- */

static void on_birth(aq_tracer *t, aq_task *k, int event)
{
    unsigned long tid = 0;
    bool thread = k->flags & CLONE_THREAD;
    aq_proc *p;
    aq_task *child;
    int status;

    if (ptrace(PTRACE_GETEVENTMSG, k->tid, 0, &tid) != 0) {
        aq_unseen(t, k, "child");
        return;
    }
    p = thread ? k->proc : aq_proc_add(t, (pid_t)tid, k->proc);
    if (!thread && (k->flags & CLONE_VM))
        p->space = k->proc->space;
    child = aq_task_add(t, (pid_t)tid, p);
    child->flags = 0;
    child->no_counter = k->no_counter;
    aq_face_born(k, child);
    aq_decode_child(t, k, child);
    if (aq_engine_wait(child, &status) && (WIFEXITED(status) || WIFSIGNALED(status)))
        aq_task_bury(t, child, status), p = NULL;
    k->wants_exit = true;
    if (event != PTRACE_EVENT_VFORK || !p)
        return;
    if (!thread) /* for a thread nobody else can tell: it is found when it goes on */
        p->vforked = k;
    aq_regs_store(k);
    k->state = AQ_TASK_KERNEL;
    ptrace(PTRACE_SYSCALL, k->tid, 0, 0);
}

static void on_exec(aq_tracer *t, aq_task *k)
{
    unsigned long former = 0;
    pid_t tid = k->tid;
    aq_proc *p;
    int status;

    if (ptrace(PTRACE_GETEVENTMSG, k->tid, 0, &former) == 0)
        aq_task_exchange(t, k, (pid_t)former);
    p = k->proc;
    p->space = ++t->next_space;
    p->undumpable = false;
    p->vdso = 0;
    t->started = true;
    k->wants_exit = true;
    aq_fd_forget_all(t, k);
    aq_timer_forget(t, p);
    if (p->vforked) {
        aq_task *parent = p->vforked;

        p->vforked = NULL;
        if (aq_engine_wait(parent, &status))
            aq_engine_stopped(t, parent, status);
        if (aq_task_find(t, tid) != k)
            return; /* somebody killed them both, and it is buried */
    }
    aq_exec_done(t, k);
}

/* Job control: the task stays where it is until SIGCONT, which traps again. Its parent may wait for
 * either. */
static void on_event_stop(aq_tracer *t, aq_task *k, int sig)
{
    bool halts = sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
    bool ours = !halts && (k->looking || k->seeks);

    k->looking = false;
    t->signals |= !ours; /* the parent is told by one */
    if (halts) {
        t->activity++;
        k->state = AQ_TASK_HALTED;
        ptrace(PTRACE_LISTEN, k->tid, 0, 0);
    } else if (!ours) {
        t->activity++;
    } else if (k->seeks) {
        aq_switch_found(t, k);
    } else if (!k->row && k->state == AQ_TASK_READY) {
        aq_spin_look(t, k);
    }
}

/* What a stop means. Afterwards the task is ready, unless a handler decided otherwise. */
void aq_engine_stopped(aq_tracer *t, aq_task *k, int status)
{
    int sig = WSTOPSIG(status), event = status >> 16;

    if (WIFEXITED(status) || WIFSIGNALED(status)) {
        aq_task_bury(t, k, status);
        aq_task_reap_dying(t);
        return;
    }
    if (event == 0 && sig == SIGTRAP && aq_switch_hit(t, k))
        return;
    aq_switch_lift(k);
    k->entered = event == PTRACE_EVENT_SECCOMP;
    if (event != PTRACE_EVENT_STOP)
        k->ticks = 0;
    if (k->state != AQ_TASK_PARKED)
        k->state = AQ_TASK_READY;
    switch (event) {
    case PTRACE_EVENT_SECCOMP:
        on_entry(t, k);
        break;
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
        on_birth(t, k, event);
        break;
    case PTRACE_EVENT_EXEC:
        on_exec(t, k);
        break;
    case PTRACE_EVENT_VFORK_DONE:
        break;
    case PTRACE_EVENT_STOP:
        on_event_stop(t, k, sig);
        break;
    default:
        if (sig == (SIGTRAP | 0x80)) {
            on_exit_stop(t, k);
        } else {
            if (sig == SIGSYS && on_trap(t, k))
                break;
            aq_signals_stop(t, k, sig);
        }
    }
}

bool aq_engine_wait(const aq_task *k, int *status)
{
    pid_t r;

    while ((r = waitpid(k->tid, status, __WALL)) < 0 && errno == EINTR)
        continue;
    return r == k->tid;
}

void aq_engine_drain(aq_tracer *t)
{
    int status;
    pid_t tid;

    while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
        aq_task *k = aq_task_find(t, tid);

        if (!k)
            continue;
        t->activity++;
        aq_engine_stopped(t, k, status);
    }
}

/* Goes on to the next stop of a call that the task makes for us; false when it has ended. */
static bool next_stop(const aq_task *k, int *status)
{
    ptrace(PTRACE_SYSCALL, k->tid, 0, 0);
    return aq_engine_wait(k, status) && WIFSTOPPED(*status);
}

/* Entry, our filter, exit. Where a filter of the program itself forbids the call our own is not
 * heard, and a signal may come instead: whatever happens, it runs no step of its own. */
static bool run_call(aq_task *k, long *result, int *status)
{
    struct user_regs_struct r;
    int stops = 0;

    *result = -EFAULT;
    while (stops < 2) {
        if (!next_stop(k, status))
            return false;
        if (WSTOPSIG(*status) == (SIGTRAP | 0x80))
            stops++;
        else if (*status >> 16 != PTRACE_EVENT_SECCOMP)
            return true;
    }
    if (aq_regs_load(k, &r) == 0)
        *result = (long)r.rax;
    return true;
}

/* Runs one call in the name of a task that stands at the exit of a call, where only the task itself
 * can act (mapping, prctl). Signals wait meanwhile. */
bool aq_engine_inject(aq_task *k, uint64_t at, long nr, const uint64_t args[6], long *result,
                      int *status)
{
    static const unsigned char insn[2] = {0x0f, 0x05};
    struct user_regs_struct before, r;
    uint64_t all = ~0ULL, mask = 0;
    unsigned long word = 0, patched;

    *result = -EFAULT;
    errno = 0;
    if (aq_regs_load(k, &before) == 0 && !at)
        word = (unsigned long)ptrace(PTRACE_PEEKTEXT, k->tid, before.rip, 0);
    if (errno != 0 || ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) != 0)
        return true;
    patched = word;
    memcpy(&patched, insn, sizeof insn);
    r = before;
    r.rip = at ? at : before.rip;
    r.rax = (unsigned long long)nr;
    r.orig_rax = (unsigned long long)-1;
    r.rdi = args[0], r.rsi = args[1], r.rdx = args[2];
    r.r10 = args[3], r.r8 = args[4], r.r9 = args[5];
    ptrace(PTRACE_SETSIGMASK, k->tid, sizeof all, &all);
    if (!at)
        ptrace(PTRACE_POKETEXT, k->tid, before.rip, patched);
    ptrace(PTRACE_SETREGS, k->tid, 0, &r);
    if (!run_call(k, result, status))
        return false;
    if (!at)
        ptrace(PTRACE_POKETEXT, k->tid, before.rip, word);
    ptrace(PTRACE_SETREGS, k->tid, 0, &before);
    ptrace(PTRACE_SETSIGMASK, k->tid, sizeof mask, &mask);
    return true;
}

/* ---- the loop ---- */

static bool is_over(const aq_tracer *t)
{
    return t->end.stop == AQ_STOP_NONE && t->plan.over && t->plan.over(t->plan.arg);
}

/* The wall clock says that a task has run for a while without a stop. */
static void on_tick(aq_tracer *t, aq_task *k)
{
    /* Who is killed from outside of us: a leader is not reported before its threads are reaped. */
    aq_task_reap_dying(t);
    if (t->plan.wall_ms && wall_ms() - t->wall_start > t->plan.wall_ms)
        t->end.stop = AQ_STOP_WALL;
    if (t->plan
            .pump) /* output is passed on while it computes; that lets nobody go on (park_io.c) */
        t->plan.pump(t->plan.arg, 0);
    if (!k->wants_exit && is_over(t))
        t->end.stop = AQ_STOP_OVER;
    k->ticks++;
    k->asleep = k->ticks > 1 && k->wants_exit && aq_task_letter(k) == 'S' ? k->asleep + 1 : 0;
    if (k->asleep >= BLOCKED_TICKS) {
        k->asleep = 0;
        /* Nobody knew that it would wait: who runs next is the wall clock's doing. */
        aq_preempted(t, k, "call");
        t->named_pipes |= k->row && k->row->attempt == aq_try_open;
        k->state = AQ_TASK_KERNEL;
        t->running = NULL;
    } else if (!k->wants_exit) {
        aq_spin_tick(t, k);
    }
}

static void resume(aq_tracer *t, aq_task *k)
{
    int sig = k->signal;

    aq_regs_store(k);
    if (t->plan.schedule || k->count.most)
        aq_switch_resume(t, k);
    k->signal = 0;
    k->state = AQ_TASK_RUNNING;
    t->running = k;
    t->runs++;
    ptrace(k->wants_exit ? PTRACE_SYSCALL : PTRACE_CONT, k->tid, 0, sig);
}

/* Threads that die with this one must be reaped before the kernel reports it (exit_group, exec), so
 * whoever has news is heard while it ends. */
static bool ends_others(const aq_task *k)
{
    return k->proc->tasks > 1 && (k->nr == SYS_exit_group || k->nr == SYS_execve ||
                                  k->nr == SYS_execveat || k->nr == SYS_exit);
}

static void wait_running(aq_tracer *t)
{
    while (t->running && t->end.stop == AQ_STOP_NONE) {
        aq_task *k = t->running;
        bool all = ends_others(k);
        int status;
        pid_t tid = waitpid(all ? -1 : k->tid, &status, __WALL);

        if (tid < 0 && errno == EINTR) {
            on_tick(t, k);
            continue;
        }
        if (tid < 0) { /* nobody by that number: it cannot be there any more */
            aq_task_bury(t, k, SIGKILL);
            return;
        }
        if (tid != k->tid) {
            aq_task *other = aq_task_find(t, tid);

            if (other && (WIFEXITED(status) || WIFSIGNALED(status)))
                aq_task_bury(t, other, status);
            else if (other)
                t->running = NULL, aq_engine_stopped(t, other, status);
            continue;
        }
        t->running = NULL;
        aq_engine_stopped(t, k, status);
    }
}

/* A leader that ends alone is reported when its last thread has gone; nobody must wait for it. */
static bool ends_alone(const aq_task *k)
{
    return k->nr == SYS_exit && !k->row && k->tid == k->proc->pid && k->proc->tasks > 1;
}

/* The one that had the turn keeps it while it can run; a turn is a number of calls, not a time. */
static bool stays(const aq_tracer *t)
{
    return t->last && t->last->state == AQ_TASK_READY && t->quantum <= t->limit && !t->signals;
}

static void run_world(aq_tracer *t)
{
    while (t->tasks && t->end.stop == AQ_STOP_NONE) {
        aq_task *k = stays(t) ? t->last : aq_sched_next(t);

        t->last = k;
        if (!k) {
            if (t->tasks && !aq_sched_idle(t))
                t->end.stop = AQ_STOP_ASLEEP;
            if (t->plan.virtual_ns && t->clock > t->plan.virtual_ns)
                t->end.stop = AQ_STOP_TIME;
            if (t->plan.wall_ms && wall_ms() - t->wall_start > t->plan.wall_ms)
                t->end.stop = AQ_STOP_WALL;
            continue;
        }
        if (!aq_signals_still(t, k))
            continue;
        resume(t, k);
        if (ends_alone(k)) {
            k->state = AQ_TASK_ENDING;
            t->running = NULL;
            continue;
        }
        wait_running(t);
        if (is_over(t))
            t->end.stop = AQ_STOP_OVER;
        if (!t->vain && t->quantum > t->limit)
            t->turn++;
        t->vain = false;
        if (t->plan.moved_bytes && t->end.moved > t->plan.moved_bytes)
            t->end.stop = AQ_STOP_MOVED;
    }
}

static void on_look(int sig)
{
    (void)sig; /* its only work is to end a wait */
}

/* A timer of our own, with a signal that nobody else in the keeper uses. */
static void ticks(aq_tracer *t, bool on)
{
    struct sigaction sa = {.sa_handler = on_look}; /* no SA_RESTART: waits must end */
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct itimerspec every = {{0, TICK_MS * 1000000}, {0, TICK_MS * 1000000}};

    if (!on) {
        if (t->ticking)
            timer_delete(t->ticker);
        t->ticking = false;
        return;
    }
    sigaction(SIGRTMIN, &sa, NULL);
    t->ticking = timer_create(CLOCK_MONOTONIC, &e, &t->ticker) == 0;
    if (t->ticking)
        timer_settime(t->ticker, 0, &every, NULL);
}

static void pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        cpu = sched_getcpu();
    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

aq_tracer *aq_tracer_new(const aq_tracer_plan *plan, aq_recorder *rec)
{
    aq_tracer *t = aq_alloc(sizeof *t);

    t->plan = *plan;
    t->rec = rec;
    t->activity = 1;
    aq_image_prepare(t);
    if (plan->machine)
        aq_disk_new(t);
    return t;
}

int aq_tracer_attach(aq_tracer *t, pid_t first, aq_err *err)
{
    cpu_set_t set;

    aq_fd_limit(t);
    pin(t->plan.cpu);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        sched_setaffinity(first, sizeof set, &set);
    if (ptrace(PTRACE_SEIZE, first, 0, OPTIONS) != 0)
        return aq_fail_errno(err, "attach to process %d", first);
    t->first = first;
    t->running = aq_task_add(t, first, aq_proc_add(t, first, NULL));
    t->running->state = AQ_TASK_RUNNING;
    return 0;
}

/* Whoever still sleeps when the run is ended: that it wanted to, and for how long, is an act. */
static void tell_sleepers(aq_tracer *t)
{
    for (aq_task *k = t->tasks; k; k = k->next)
        if (k->state == AQ_TASK_PARKED && k->row && k->row->attempt == aq_try_sleep)
            k->row->decoder->note(t, k, -EINTR);
}

int aq_tracer_run(aq_tracer *t, aq_tracer_end *ret, aq_err *err)
{
    if (!t->first)
        return aq_fail(err, -EINVAL, "the tracer was attached to nothing");
    t->wall_start = wall_ms();
    ticks(t, true);
    wait_running(t);
    run_world(t);
    ticks(t, false);
    tell_sleepers(t);
    aq_task_kill_all(t);
    aq_decode_close(t);
    t->end.virtual_ns = t->clock;
    *ret = t->end;
    return 0;
}

void aq_tracer_free(aq_tracer *t)
{
    if (!t)
        return;
    if (t->tasks)
        aq_task_kill_all(t);
    aq_decode_close(t);
    aq_timer_free(t);
    aq_edge_free(t);
    free(t->vdso);
    aq_disk_free(t);
    aq_texts_free(t);
    aq_reach_free(t);
    aq_dumps_free(t);
    aq_recall_free(t);
    free(t);
}
