/* How urgent a task is: what nice, chrt and ionice show and set. Tasks inherit that from whoever
 * started us, and it would tell of him. Here everybody begins as on a machine that nobody has
 * tuned, and has what he asked for, as far as a user without rights may ask. The kernel is never
 * told: turns are the engine's, and how much the world may use of the host is for the host to say.
 *
 * Where the plan has no machine every call here is the kernel's. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "veil/actors.h"

enum {
    USER = 1000, /* of all tasks of the world */
    NICE_MOST = 19,
    NICE_LEAST = -20,
    RESET = 0x40000000, /* SCHED_RESET_ON_FORK, as part of a policy */
    DEADLINE = 6,
    RT_MOST = 99,
    ATTR_FIRST = 48, /* bytes of the first form of sched_attr, and of the machine's */
    ATTR = 56,
    ATTR_MOST = 4096,
    KEEP_POLICY = 8, /* flags of sched_attr */
    KEEP_PARAMS = 16,
    UTIL = 0x60,
    IO_SHIFT = 13,
    IO_NONE = 0,
    IO_URGENT = 1,
    IO_PLAIN = 2,
    IO_IDLE = 3,
    IO_LEVELS = 8,
    OF_TASK = 0, /* whom a priority is asked of; those of ioprio are one more */
    OF_GROUP = 1,
    OF_USER = 2,
};

struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t util_min, util_max;
};
_Static_assert(sizeof(struct attr) == ATTR, "as the kernel has it");

void aq_priority_born(const aq_task *parent, aq_task *child)
{
    child->urgency = parent->urgency;
    if (!parent->urgency.reset)
        return;
    child->urgency.reset = false;
    child->urgency.policy = SCHED_OTHER;
}

/* ---- whom ---- */

static aq_task *task_of(aq_tracer *t, aq_task *k, int inner)
{
    aq_task *q = inner == 0 ? k : t->tasks;

    while (q && inner != 0 && aq_task_inner(q) != inner)
        q = q->next;
    return q;
}

/* One of those who do nothing, and are as they were made. */
static const aq_veil_actor *actor_of(aq_tracer *t, aq_task *k, int inner)
{
    const aq_veil_actor *a = inner > 0 && aq_actors_on(t, k) ? aq_veil_actor_of(inner) : NULL;

    return a && aq_veil_actor_on(t->plan.machine, a) ? a : NULL;
}

/* The number of its group, as we see it. */
static int group_of(const aq_proc *p)
{
    char text[AQ_STAT];
    const char *end = aq_task_stat(p->pid, text);

    return end && strlen(end) > 4 ? (int)strtol(strchr(end + 4, ' ') ?: "0", NULL, 10) : 0;
}

typedef struct those {
    int which, who, group;
} those;

static those those_of(aq_tracer *t, aq_task *k, int which, int who)
{
    const aq_task *leader = which == OF_GROUP ? task_of(t, k, who) : NULL;

    return (those){which, who,
                   !leader    ? -1
                   : who == 0 ? group_of(k->proc)
                              : (int)leader->proc->pid};
}

static bool is_meant(const aq_task *k, const aq_task *q, const those *m)
{
    switch (m->which) {
    case OF_TASK:
        return m->who == 0 ? q == k : aq_task_inner((aq_task *)(uintptr_t)q) == m->who;
    case OF_GROUP:
        return m->group > 0 && group_of(q->proc) == m->group;
    default:
        return m->who == 0 || m->who == USER;
    }
}

/* ---- nice ---- */

static long get_nice(aq_tracer *t, aq_task *k, const those *m)
{
    int best = NICE_MOST + 1;

    for (const aq_task *q = t->tasks; q; q = q->next)
        if (q->urgency.nice < best && is_meant(k, q, m))
            best = q->urgency.nice;
    if ((m->which == OF_TASK && actor_of(t, k, m->who)) ||
        (m->which == OF_USER && (m->who == 0 || m->who == USER) && aq_actors_on(t, k)))
        best = best < 0 ? best : 0;
    return best > NICE_MOST ? -ESRCH : 20 - best;
}

/* Nobody becomes more urgent than he is. */
static long set_nice(aq_tracer *t, aq_task *k, const those *m, int nice)
{
    const aq_veil_actor *a = m->which == OF_TASK ? actor_of(t, k, m->who) : NULL;
    long result = -ESRCH;

    nice = nice < NICE_LEAST ? NICE_LEAST : nice > NICE_MOST ? NICE_MOST : nice;
    if (a)
        return a->uid != USER ? -EPERM : nice < 0 ? -EACCES : 0;
    for (aq_task *q = t->tasks; q; q = q->next) {
        if (!is_meant(k, q, m))
            continue;
        if (nice < q->urgency.nice) {
            result = -EACCES;
            continue;
        }
        q->urgency.nice = (int8_t)nice;
        if (result == -ESRCH)
            result = 0;
    }
    return result;
}

static long nice_call(aq_tracer *t, aq_task *k)
{
    those m = those_of(t, k, aq_arg_int(k, 0), aq_arg_int(k, 1));

    if (m.which < OF_TASK || m.which > OF_USER)
        return -EINVAL;
    return k->nr == AQ_NR_getpriority ? get_nice(t, k, &m) : set_nice(t, k, &m, aq_arg_int(k, 2));
}

/* ---- disks ---- */

/* What counts for a task that asked for nothing follows from how nice it is. */
static int io_effective(const aq_task *q)
{
    if (q->urgency.io >> IO_SHIFT != IO_NONE)
        return q->urgency.io;
    return (q->urgency.policy == SCHED_IDLE ? IO_IDLE : IO_PLAIN) << IO_SHIFT |
           (q->urgency.nice + 20) / 5;
}

static long get_io(aq_tracer *t, aq_task *k, const those *m)
{
    long best = -ESRCH;

    for (const aq_task *q = t->tasks; q; q = q->next) {
        long io = m->which == OF_TASK ? q->urgency.io : io_effective(q);

        if ((best < 0 || io < best) && is_meant(k, q, m))
            best = io;
    }
    return best < 0 && m->which == OF_TASK && actor_of(t, k, m->who) ? 0 : best;
}

static long set_io(aq_tracer *t, aq_task *k, const those *m, int io)
{
    int class = io >> IO_SHIFT & 7, level = io & (IO_LEVELS - 1);
    long result = -ESRCH;

    if (class > IO_IDLE || (class == IO_NONE && level != 0))
        return -EINVAL;
    if (class == IO_URGENT)
        return -EPERM;
    for (aq_task *q = t->tasks; q; q = q->next) {
        if (!is_meant(k, q, m))
            continue;
        q->urgency.io = (uint16_t)io;
        result = 0;
    }
    return result < 0 && m->which == OF_TASK && actor_of(t, k, m->who) ? -EPERM : result;
}

static long io_call(aq_tracer *t, aq_task *k)
{
    those m = those_of(t, k, aq_arg_int(k, 0) - 1, aq_arg_int(k, 1));

    if (m.which < OF_TASK || m.which > OF_USER)
        return -EINVAL;
    return k->nr == AQ_NR_ioprio_get ? get_io(t, k, &m) : set_io(t, k, &m, aq_arg_int(k, 2));
}

/* ---- policies ---- */

/* What the kernel checks for a user without rights. */
static long set_policy(aq_task *q, int policy, bool reset, uint32_t priority, int nice)
{
    struct aq_urgency *u = &q->urgency;
    bool urgent = policy == SCHED_FIFO || policy == SCHED_RR;

    if (policy < 0 || policy > DEADLINE || policy == 4 || priority > RT_MOST ||
        urgent != (priority != 0))
        return -EINVAL;
    if (urgent || policy == DEADLINE || (u->policy == SCHED_IDLE && policy != SCHED_IDLE) ||
        (u->reset && !reset) || (policy != SCHED_IDLE && nice < u->nice))
        return -EPERM;
    u->policy = (uint8_t)policy;
    u->reset = reset;
    if (policy != SCHED_IDLE)
        u->nice = (int8_t)nice;
    return 0;
}

/* It is given with its size, which may be larger than what the machine knows: zeros then. */
static long get_attr(aq_task *k, uint64_t at, struct attr *ret)
{
    uint32_t size = 0;
    char rest = 0;

    *ret = (struct attr){0};
    if (!aq_tracee_get(k, at, &size, sizeof size))
        return -EFAULT;
    size = size ? size : ATTR_FIRST;
    for (uint32_t i = ATTR; size <= ATTR_MOST && i < size; i++)
        if (!aq_tracee_get(k, at + i, &rest, 1))
            return -EFAULT;
        else if (rest)
            size = ATTR_MOST + 1;
    if (size < ATTR_FIRST || size > ATTR_MOST) {
        size = ATTR;
        return aq_tracee_put(k, at, &size, sizeof size) ? -E2BIG : -EFAULT;
    }
    return aq_tracee_get(k, at, ret, size < ATTR ? size : ATTR) ? 0 : -EFAULT;
}

static long set_attr(aq_task *k, aq_task *q)
{
    uint64_t at = aq_regs_arg(k, 1);
    struct attr a;
    long r;

    if (!at || aq_arg_int(k, 0) < 0 || aq_regs_arg(k, 2))
        return -EINVAL;
    if ((r = get_attr(k, at, &a)) < 0)
        return r;
    if ((int)a.policy < 0 || a.flags >= 0x80)
        return -EINVAL;
    if (a.flags & UTIL)
        return -EOPNOTSUPP;
    if (!q)
        return -ESRCH;
    if (a.flags & KEEP_POLICY)
        a.policy = q->urgency.policy;
    if (a.flags & KEEP_PARAMS)
        a.nice = q->urgency.nice, a.priority = 0;
    a.nice = a.nice < NICE_LEAST ? NICE_LEAST : a.nice > NICE_MOST ? NICE_MOST : a.nice;
    return set_policy(q, (int)a.policy, a.flags & 1, a.priority, a.nice);
}

static long tell_attr(aq_task *k, const aq_task *q)
{
    uint32_t size = (uint32_t)aq_regs_arg(k, 2);
    struct attr a = {.size = size < ATTR ? size : ATTR};

    if (!aq_regs_arg(k, 1) || aq_arg_int(k, 0) < 0 || size < ATTR_FIRST || size > ATTR_MOST ||
        aq_regs_arg(k, 3))
        return -EINVAL;
    if (q) {
        a.policy = q->urgency.policy;
        a.flags = q->urgency.reset;
        a.nice = q->urgency.nice;
    }
    return aq_tracee_put(k, aq_regs_arg(k, 1), &a, a.size) ? 0 : -EFAULT;
}

static long set_scheduler(aq_task *k, aq_task *q)
{
    bool all = k->nr == AQ_NR_sched_setscheduler;
    uint64_t at = aq_regs_arg(k, all ? 2 : 1);
    int policy = all ? aq_arg_int(k, 1) : 0;
    uint32_t priority;

    if (!at || aq_arg_int(k, 0) < 0 || policy < 0)
        return -EINVAL;
    if (!aq_tracee_get(k, at, &priority, sizeof priority))
        return -EFAULT;
    if (!q)
        return -ESRCH;
    return set_policy(q, all ? policy & ~RESET : q->urgency.policy,
                      all ? policy & RESET : q->urgency.reset, priority, q->urgency.nice);
}

/* What is asked of one of those who do nothing is answered as of a task that asked for nothing. */
static long policy_call(aq_tracer *t, aq_task *k)
{
    static const uint64_t none[2];
    aq_task *q = task_of(t, k, aq_arg_int(k, 0));
    const aq_veil_actor *a = q ? NULL : actor_of(t, k, aq_arg_int(k, 0));
    uint64_t at = aq_regs_arg(k, 1);

    switch (k->nr) {
    case AQ_NR_sched_setattr:
        return a ? -EPERM : set_attr(k, q);
    case AQ_NR_sched_setparam:
    case AQ_NR_sched_setscheduler:
        return a ? -EPERM : set_scheduler(k, q);
    default:
        break;
    }
    if (aq_arg_int(k, 0) < 0 || (!at && k->nr == AQ_NR_sched_getparam))
        return -EINVAL;
    if (!q && !a)
        return -ESRCH;
    switch (k->nr) {
    case AQ_NR_sched_getattr:
        return tell_attr(k, q);
    case AQ_NR_sched_getparam:
        return aq_tracee_put(k, at, none, sizeof(int)) ? 0 : -EFAULT;
    case AQ_NR_sched_getscheduler:
        return q ? q->urgency.policy | (q->urgency.reset ? RESET : 0) : 0;
    default: /* a turn of the machine's kernel is shorter than its ticks */
        return aq_tracee_put(k, at, none, sizeof none) ? 0 : -EFAULT;
    }
}

aq_step aq_try_priority(aq_tracer *t, aq_task *k)
{
    if (!t->plan.machine)
        return k->row->decoder ? AQ_STEP_RUN : AQ_STEP_GO;
    switch (k->nr) {
    case AQ_NR_getpriority:
    case AQ_NR_setpriority:
        return aq_answer(k, nice_call(t, k));
    case AQ_NR_ioprio_get:
    case AQ_NR_ioprio_set:
        return aq_answer(k, io_call(t, k));
    default:
        return aq_answer(k, policy_call(t, k));
    }
}
