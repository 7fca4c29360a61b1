/* Threads that wait without a call: spinning until somebody else writes a word.
 *
 * Only one task runs at a time, so whoever spins spins for ever: nobody changes what it looks at.
 * The wall clock alone could end that, and then the place where it is interrupted would be chance.
 * So the clock only decides when to look, and what is looked for is a proof: the task is stepped
 * until all of its registers are what they were, then once round again while everything that it
 * could have written is compared. A machine that comes back to its whole state does so for ever;
 * nothing but another task, a signal or time can let it go on. It is parked at the one place of its
 * round that does not depend on when we looked, the lowest address, and everybody else has a turn.
 * When it is tried again it goes round once more: either it leaves the round, or it is parked
 * again.
 *
 * What computes for long and is no proven spin keeps its turn: it will make a call some time. Only
 * when others could run, or a moment has come, and it has had the plan's turn_ns of processor time,
 * is it made to give way (switch.c). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "observe/internal.h"

enum {
    STEPS = 1500,       /* instructions of one round, at most */
    XSTATE = 16384,     /* bytes of vector registers, at most */
    XSTATE_SET = 0x202, /* NT_X86_XSTATE */
    PAGE = 4096,
    AT_ONCE = 64,        /* pages that are read together */
    MOST_PAGES = 16384,  /* that it can write and has: 64 MiB are compared */
    MOST_ROOM = 1 << 20, /* pages of address space that are asked for */
    RIP_FLAGS = 0x10100, /* of eflags: trap and resume, which stepping itself sets */
    STEPPED = 2,         /* TRAP_TRACE */
    SCHEDULED = 8,       /* times as long a turn, in a run that has a schedule */
    ALARM = 6,           /* the part of a turn after which an alarm rings */
};
static const uint64_t LOOK_NS = 8000000, SHORT_NS = 50000000;

struct aq_spin {
    struct user_regs_struct at; /* where it is parked */
    uint32_t period;            /* instructions of a round */
};

/* ---- the state of a task ---- */

static bool same(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
    struct user_regs_struct x = *a, y = *b;

    x.eflags &= ~(unsigned long long)RIP_FLAGS;
    y.eflags &= ~(unsigned long long)RIP_FLAGS;
    return memcmp(&x, &y, sizeof x) == 0;
}

static uint64_t mixed(uint64_t h, uint64_t word)
{
    h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

typedef struct memory {
    const aq_task *task;
    int pagemap;
    uint64_t hash;
    size_t pages, room;
    bool whole;
} memory;

static bool take_pages(memory *m, uint64_t at, size_t count)
{
    static uint64_t data[AT_ONCE * PAGE / sizeof(uint64_t)];
    size_t len = count * PAGE;

    m->pages += count;
    if (m->pages > MOST_PAGES || aq_tracee_read(m->task, at, data, len) != (ssize_t)len)
        return m->whole = false;
    m->hash = mixed(m->hash, at);
    for (size_t i = 0; i < len / sizeof *data; i++)
        m->hash = mixed(m->hash, data[i]);
    return true;
}

/* Pages that nobody has touched are as they were. */
static bool take_mapping(const aq_mapping *map, void *arg)
{
    const uint64_t there = UINT64_C(3) << 62; /* present, or swapped out */
    uint64_t entries[AT_ONCE];
    memory *m = arg;

    if (!map->writable)
        return false;
    for (uint64_t at = map->from; at < map->to && m->whole; at += AT_ONCE * PAGE) {
        size_t count = (size_t)((map->to - at) / PAGE), run = 0;

        count = count < AT_ONCE ? count : AT_ONCE;
        m->room += count;
        if (m->room > MOST_ROOM ||
            pread(m->pagemap, entries, count * sizeof *entries,
                  (off_t)(at / PAGE * sizeof *entries)) != (ssize_t)(count * sizeof *entries)) {
            m->whole = false;
            break;
        }
        for (size_t i = 0; i <= count && m->whole; i++) {
            if (i < count && (entries[i] & there)) {
                run++;
                continue;
            }
            if (run)
                take_pages(m, at + (i - run) * PAGE, run);
            run = 0;
        }
    }
    return !m->whole;
}

/* A hash of all that it could have written; false when that is too much to be looked at. */
static bool state_of(const aq_task *k, uint64_t *ret)
{
    static uint64_t vectors[XSTATE / sizeof(uint64_t)];
    struct iovec v = {vectors, sizeof vectors};
    memory m = {.task = k, .whole = true};
    char path[64];

    snprintf(path, sizeof path, "%s/%d/pagemap", aq_process_proc(), k->tid);
    aq_auto_fd int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    m.pagemap = pagemap;
    if (pagemap < 0 || ptrace(PTRACE_GETREGSET, k->tid, XSTATE_SET, &v) != 0)
        return false;
    for (size_t i = 0; i < v.iov_len / sizeof *vectors; i++)
        m.hash = mixed(m.hash, vectors[i]);
    aq_tracee_maps(k, take_mapping, &m);
    *ret = m.hash;
    return m.whole;
}

/* ---- stepping ---- */

/* One instruction. False: something else happened, and was handed to the engine. */
static bool step(aq_tracer *t, aq_task *k, struct user_regs_struct *r)
{
    int status;
    siginfo_t s;
    pid_t tid;

    k->state = AQ_TASK_RUNNING;
    if (ptrace(PTRACE_SINGLESTEP, k->tid, 0, 0) != 0) {
        k->state = AQ_TASK_READY; /* it is being killed, and whoever waits for it hears that */
        return false;
    }
    while ((tid = waitpid(k->tid, &status, __WALL)) < 0 && errno == EINTR)
        aq_task_reap_dying(t);
    if (tid < 0) {
        aq_task_bury(t, k, SIGKILL);
        return false;
    }
    k->state = AQ_TASK_READY;
    if (WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP &&
        ptrace(PTRACE_GETSIGINFO, k->tid, 0, &s) == 0 && s.si_code == STEPPED)
        return aq_regs_load(k, r) == 0;
    aq_trap_close(k);
    aq_engine_stopped(t, k, status);
    return false;
}

/* Steps until the registers are what they were: a round, perhaps. 0: none, and it goes on from
 * where it is now. -1: it is the engine's again. */
static int find_period(aq_tracer *t, aq_task *k, const struct user_regs_struct *start)
{
    struct user_regs_struct r;

    for (int n = 1; n <= STEPS; n++) {
        if (!step(t, k, &r))
            return -1;
        if (r.rip == start->rip && same(&r, start))
            return n;
    }
    return 0;
}

/* Once round. 1: everything is as it was, and `lowest` is the place of the round that does not
 * depend on where it began. 0: it is no round, or not any more. -1: it is the engine's again. */
static int go_round(aq_tracer *t, aq_task *k, const struct user_regs_struct *start, uint32_t period,
                    struct user_regs_struct *lowest)
{
    struct user_regs_struct r = *start;
    uint64_t before, after;

    if (!state_of(k, &before))
        return 0;
    *lowest = *start;
    for (uint32_t n = 0; n < period; n++) {
        if (!step(t, k, &r))
            return -1;
        if (r.rip < lowest->rip || (r.rip == lowest->rip && memcmp(&r, lowest, sizeof r) < 0))
            *lowest = r;
    }
    return same(&r, start) && state_of(k, &after) && before == after;
}

static void park(aq_tracer *t, aq_task *k)
{
    k->state = AQ_TASK_PARKED;
    k->park = AQ_PARK_SPIN;
    k->seen = t->runs;
}

static void look(aq_tracer *t, aq_task *k)
{
    struct user_regs_struct start, lowest, r;
    int period, round;

    if (aq_regs_load(k, &start) != 0)
        return;
    period = find_period(t, k, &start);
    round = period > 0 ? go_round(t, k, &start, (uint32_t)period, &lowest) : period;
    if (round <= 0)
        return;
    r = start;
    for (int n = 0; n < period && !same(&r, &lowest); n++)
        if (!step(t, k, &r))
            return;
    if (!k->spin)
        k->spin = aq_alloc(sizeof *k->spin);
    *k->spin = (struct aq_spin){.at = r, .period = (uint32_t)period};
    park(t, k);
}

/* Proves that it spins, and parks it; otherwise it goes on. The task stands in a stop of ours,
 * between two instructions of its own. */
void aq_spin_look(aq_tracer *t, aq_task *k)
{
    pid_t tid = k->tid;

    if (!aq_trap_open(k))
        return;
    look(t, k);
    if (aq_task_find(t, tid) == k)
        aq_trap_close(k);
}

/* Something happened since: does it still spin? */
void aq_spin_again(aq_tracer *t, aq_task *k)
{
    struct user_regs_struct lowest;
    pid_t tid = k->tid;
    int round = aq_trap_open(k) ? go_round(t, k, &k->spin->at, k->spin->period, &lowest) : 0;

    if (aq_task_find(t, tid) == k)
        aq_trap_close(k);
    if (round > 0)
        park(t, k);
    else if (round == 0) /* it left its round, or all that it could write is too much now */
        k->state = AQ_TASK_READY;
}

/* ---- when to look ---- */

/* Processor time of the process; one task of it runs at a time. */
static uint64_t used(const aq_task *k)
{
    struct timespec ts = {0};

    aq_process_clock((clockid_t)(~(unsigned)k->proc->pid << 3 | 2), &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Could anything but itself let it go on: another task, or time? */
static bool could_wait(const aq_tracer *t)
{
    return t->alive > 1 || aq_sched_moment(t) != UINT64_MAX;
}

/* How long it may compute. A run that does not repeat anyway is made to go on; one with a schedule
 * still has all to gain, and what the schedule says of this task is close. */
static uint64_t patience(const aq_tracer *t, const aq_task *k)
{
    uint64_t turn = t->plan.turn_ns;

    if (t->end.preempted)
        return turn < SHORT_NS ? turn : SHORT_NS;
    return t->plan.schedule && !k->count.planned ? SCHEDULED * turn : turn;
}

/* An alarm or a sleeper waits for a moment that work alone does not bring (`jump`), or somebody
 * could run. */
static bool must_end(const aq_tracer *t, const aq_task *k, uint64_t ran, bool *jump)
{
    uint64_t least = patience(t, k),
             alarm = t->end.preempted || aq_timer_next(t) == UINT64_MAX ? least : least / ALARM;

    *jump = ran >= alarm && aq_sched_due(t, ran);
    return *jump || (ran >= least && aq_sched_others(t, k));
}

void aq_spin_tick(aq_tracer *t, aq_task *k)
{
    uint64_t now = used(k), ran;
    bool jump;

    if (k->ticks == 1) {
        k->spin_from = now;
        k->spin_next = LOOK_NS;
    }
    ran = now - k->spin_from;
    if (!could_wait(t))
        return;
    if (must_end(t, k, ran, &jump)) {
        aq_switch_seek(k, now, jump);
        return;
    }
    if (ran < k->spin_next || k->count.most)
        return;
    k->spin_next = 2 * ran;
    k->looking = true;
    ptrace(PTRACE_INTERRUPT, k->tid, 0, 0);
}
