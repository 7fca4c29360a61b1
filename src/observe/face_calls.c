/* Calls that ask what the machine is and what the program may do there: answered with the facts of
 * the machine that does not exist, as the files of /proc are (face_proc.c), and with what the
 * program itself asked for. What holds it back in truth (the one CPU, the filter, no_new_privs, the
 * limits of the sandbox) stays as it is, and is not told.
 *
 * Where the plan has no machine every call here is the kernel's. */
#include <errno.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>
#include <sys/utsname.h>

#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "veil/veil.h"

enum {
    LIMITS = 16,
    GROUPS = 64,
    MASK = AQ_VEIL_CPUS / 8,
    LAST_CAPABILITY = 40,
    LANDLOCK_VERSION = 3,     /* of the machine's kernel */
    LANDLOCK_RIGHTS = 0x7fff, /* that it knows */
    LANDLOCK_ASK = 1,
};

/* What a process believes of itself; its children inherit it. */
struct aq_belief {
    bool no_new_privileges, traced;
    int filters;
    uint64_t limits[LIMITS][2];
};

static struct aq_belief *belief_of(const aq_tracer *t, aq_proc *p)
{
    if (!p->belief) {
        p->belief = aq_alloc(sizeof *p->belief);
        for (unsigned i = 0; i < LIMITS; i++)
            aq_veil_limit(t->plan.machine, i, p->belief->limits[i]);
    }
    return p->belief;
}

void aq_face_born(aq_task *parent, aq_task *child)
{
    const struct aq_belief *b = parent->proc->belief;

    aq_priority_born(parent, child);
    if (parent->cpus) {
        child->cpus = aq_alloc(MASK);
        memcpy(child->cpus, parent->cpus, MASK);
    }
    if (!b || child->proc == parent->proc || child->proc->belief)
        return;
    child->proc->belief = aq_alloc(sizeof *b);
    *child->proc->belief = *b;
    child->proc->belief->traced = false;
}

void aq_face_tell(aq_task *k, aq_proc *p, aq_veil_process *of)
{
    const struct aq_belief *b = p->belief;

    if (k) {
        of->cpus = k->cpus;
        of->nice = k->urgency.nice;
        of->policy = k->urgency.policy;
    }
    if (!b)
        return;
    of->no_new_privileges = b->no_new_privileges;
    of->filters = b->filters;
    of->limits = b->limits;
}

/* ---- the machine ---- */

static void name_part(char field[static 65], const char *text)
{
    snprintf(field, 65, "%s", text ? text : "");
}

static aq_step give_name(const aq_tracer *t, aq_task *k)
{
    const aq_machine *m = t->plan.machine;
    struct utsname u = {0};

    name_part(u.sysname, "Linux");
    name_part(u.nodename, aq_machine_fact(m, "host.name"));
    name_part(u.release, aq_machine_fact(m, "kernel.release"));
    name_part(u.version, aq_machine_fact(m, "kernel.version"));
    name_part(u.machine, "x86_64");
    name_part(u.domainname, "(none)");
    return aq_answer(k, aq_tracee_put(k, aq_regs_arg(k, 0), &u, sizeof u) ? 0 : -EFAULT);
}

static aq_step give_cpu(const aq_tracer *t, aq_task *k)
{
    uint32_t cpu = aq_veil_cpu(t->plan.machine, k->cpus, t->clock, 0), node = 0;

    if ((aq_regs_arg(k, 0) && !aq_tracee_put(k, aq_regs_arg(k, 0), &cpu, sizeof cpu)) ||
        (aq_regs_arg(k, 1) && !aq_tracee_put(k, aq_regs_arg(k, 1), &node, sizeof node)))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, 0);
}

static aq_step give_groups(const aq_tracer *t, aq_task *k)
{
    uint32_t groups[GROUPS];
    size_t count = aq_veil_groups(t->plan.machine, groups, GROUPS);
    int cap = aq_arg_int(k, 0);

    if (count > GROUPS)
        count = GROUPS;
    if (cap < 0 || (cap > 0 && (size_t)cap < count))
        return aq_answer(k, -EINVAL);
    if (cap > 0 && count > 0 &&
        !aq_tracee_put(k, aq_regs_arg(k, 1), groups, count * sizeof *groups))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, (long)count);
}

aq_step aq_try_machine(aq_tracer *t, aq_task *k)
{
    if (!t->plan.machine)
        return AQ_STEP_GO;
    switch (k->nr) {
    case AQ_NR_uname:
        return give_name(t, k);
    case AQ_NR_getcpu:
        return give_cpu(t, k);
    case AQ_NR_getgroups:
        return give_groups(t, k);
    default:
        return AQ_STEP_GO;
    }
}

/* All but the uptime, which usage.c has. */
void aq_face_sysinfo(const aq_tracer *t, struct sysinfo *s)
{
    const aq_veil_memory m = aq_veil_memory_of(t->plan.machine);
    const aq_veil_scene scene = {.machine = t->plan.machine, .tasks = t->alive};
    uint64_t loads[3];

    aq_veil_loads(loads);
    for (int i = 0; i < 3; i++)
        s->loads[i] = (loads[i] * 65536 + 99) / 100;
    s->totalram = m.total_kb * 1024;
    s->freeram = m.free_kb * 1024;
    s->sharedram = m.shared_kb * 1024;
    s->bufferram = m.buffers_kb * 1024;
    s->totalswap = s->freeswap = m.swap_kb * 1024;
    s->procs = (unsigned short)aq_veil_threads(&scene);
    s->totalhigh = s->freehigh = 0;
    s->mem_unit = 1;
}

/* ---- processors ---- */

/* Of this number, as tasks of the world see it; NULL: none of them. */
static aq_task *task_of(aq_tracer *t, aq_task *k, pid_t inner)
{
    if (inner == 0)
        return k;
    for (aq_task *q = t->tasks; q; q = q->next)
        if (aq_task_inner(q) == inner)
            return q;
    return NULL;
}

static aq_step get_affinity(aq_tracer *t, aq_task *k, const aq_task *q)
{
    uint64_t len = (uint32_t)aq_regs_arg(k, 1);
    unsigned cpus = aq_veil_cpus(t->plan.machine), bytes = (cpus + 63) / 64 * 8;
    uint8_t mask[MASK] = {0};

    if (len * 8 < cpus || len % 8 != 0)
        return aq_answer(k, -EINVAL);
    for (unsigned i = 0; i < cpus; i++)
        if (!q->cpus || (q->cpus[i / 8] >> i % 8 & 1))
            mask[i / 8] |= (uint8_t)(1u << i % 8);
    if (bytes > len)
        bytes = (unsigned)len;
    if (!aq_tracee_put(k, aq_regs_arg(k, 2), mask, bytes))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, (long)bytes);
}

static aq_step set_affinity(aq_tracer *t, aq_task *k, aq_task *q)
{
    uint64_t len = (uint32_t)aq_regs_arg(k, 1);
    unsigned cpus = aq_veil_cpus(t->plan.machine);
    uint8_t mask[MASK] = {0};
    bool any = false;

    if (len > MASK)
        len = MASK;
    if (len > 0 && !aq_tracee_get(k, aq_regs_arg(k, 2), mask, len))
        return aq_answer(k, -EFAULT);
    for (unsigned i = 0; i < MASK * 8; i++)
        if (i >= cpus)
            mask[i / 8] &= (uint8_t) ~(1u << i % 8);
        else
            any |= mask[i / 8] >> i % 8 & 1;
    if (!any)
        return aq_answer(k, -EINVAL);
    if (!q->cpus)
        q->cpus = aq_alloc(MASK);
    memcpy(q->cpus, mask, MASK);
    return aq_answer(k, 0);
}

/* All share one CPU, whatever they ask for. */
aq_step aq_try_affinity(aq_tracer *t, aq_task *k)
{
    bool set = k->nr == AQ_NR_sched_setaffinity;
    aq_task *q;

    if (!t->plan.machine)
        return set ? aq_answer(k, 0) : AQ_STEP_GO;
    q = task_of(t, k, aq_arg_int(k, 0));
    if (!q)
        return aq_answer(k, -ESRCH);
    return set ? set_affinity(t, k, q) : get_affinity(t, k, q);
}

/* ---- limits ---- */

typedef struct limit_call {
    int resource;
    uint64_t given, wanted; /* where the new one lies, where the old one goes; 0: none */
    aq_proc *target;
} limit_call;

static limit_call limit_of(aq_tracer *t, aq_task *k)
{
    limit_call c = {.resource = aq_arg_int(k, 0), .target = k->proc};

    if (k->nr == AQ_NR_getrlimit)
        c.wanted = aq_regs_arg(k, 1);
    else if (k->nr == AQ_NR_setrlimit)
        c.given = aq_regs_arg(k, 1);
    else {
        c.resource = aq_arg_int(k, 1);
        c.given = aq_regs_arg(k, 2);
        c.wanted = aq_regs_arg(k, 3);
        if (aq_arg_int(k, 0) != 0)
            c.target = aq_proc_inner(t, k, aq_arg_int(k, 0));
    }
    return c;
}

/* What the sandbox allows in truth: the second number of the row, whose columns are fixed. */
static uint64_t true_most(const aq_proc *p, int resource)
{
    enum { TITLE = 26, NUMBER = 21 };
    char path[64], line[160];
    uint64_t most = 0;
    FILE *f;

    snprintf(path, sizeof path, "%s/%d/limits", aq_process_proc(), p->pid);
    f = fopen(path, "re");
    for (int i = -1; f && i <= resource && fgets(line, sizeof line, f); i++)
        if (i == resource && strlen(line) > TITLE + NUMBER)
            most = line[TITLE + NUMBER] == 'u' ? UINT64_MAX
                                               : strtoull(line + TITLE + NUMBER, NULL, 10);
    if (f)
        fclose(f);
    return most;
}

/* A limit of the program's own: what it meets then is its own doing, not ours. */
static void own_limit(const limit_call *c, uint64_t new, uint64_t most)
{
    bool *own = c->resource == RLIMIT_FSIZE ? &c->target->short_files
                : c->resource == RLIMIT_CPU ? &c->target->short_work
                                            : NULL;

    if (own && new != most)
        *own = new < most;
}

/* The kernel gets as much of it as the sandbox allows; the program believes that it got all. */
static aq_step set_limit(aq_task *k, const limit_call *c, const uint64_t new[2])
{
    uint64_t most, v[2];

    if (c->resource == RLIMIT_CORE) /* aq_try_limit says why */
        return aq_answer(k, 0);
    most = true_most(c->target, c->resource);
    v[0] = new[0] < most ? new[0] : most;
    v[1] = new[1] < most ? new[1] : most;
    own_limit(c, new[0], most);
    if (!aq_tracee_save(k, c->given, sizeof v) || !aq_tracee_put(k, c->given, v, sizeof v))
        return aq_answer(k, -EFAULT);
    if (k->nr == AQ_NR_prlimit64)
        aq_regs_set_arg(k, 3, 0);
    return AQ_STEP_RUN;
}

aq_step aq_try_rlimit(aq_tracer *t, aq_task *k)
{
    limit_call c = limit_of(t, k);
    uint64_t new[2], (*own)[2];

    if (!t->plan.machine) {
        if (c.given && c.target && aq_tracee_get(k, c.given, new, sizeof new))
            own_limit(&c, new[0], true_most(c.target, c.resource));
        return k->nr == AQ_NR_getrlimit ? AQ_STEP_GO : aq_try_limit(t, k);
    }
    if (c.resource < 0 || c.resource >= LIMITS)
        return aq_answer(k, -EINVAL);
    if (!c.target)
        return AQ_STEP_RUN; /* the kernel says why not */
    own = &belief_of(t, c.target)->limits[c.resource];
    if (c.given && !aq_tracee_get(k, c.given, new, sizeof new))
        return aq_answer(k, -EFAULT);
    if (c.given && new[0] > new[1])
        return aq_answer(k, -EINVAL);
    if (c.given && new[1] > (*own)[1])
        return aq_answer(k, -EPERM);
    if ((c.wanted && !aq_tracee_put(k, c.wanted, *own, sizeof *own)) ||
        (k->nr == AQ_NR_getrlimit && !c.wanted))
        return aq_answer(k, -EFAULT);
    if (!c.given)
        return aq_answer(k, 0);
    memcpy(*own, new, sizeof new);
    return set_limit(k, &c, new);
}

aq_step aq_after_rlimit(aq_tracer *t, aq_task *k, long *result)
{
    if (t->plan.machine && limit_of(t, k).target)
        *result = 0;
    return AQ_STEP_RUN;
}

/* ---- what a process may do ---- */

static bool no_more_arguments(const aq_task *k, int from)
{
    for (int i = from; i < 5; i++)
        if (aq_regs_arg(k, i))
            return false;
    return true;
}

/* RUN: not for us. */
aq_step aq_face_prctl(aq_tracer *t, aq_task *k)
{
    enum { YOUNGEST = 70, OTHERS = 4096 }; /* names of four letters are above */
    uint64_t value = aq_regs_arg(k, 1);
    struct aq_belief *b;

    if (!t->plan.machine)
        return AQ_STEP_RUN;
    b = belief_of(t, k->proc);
    switch ((int)aq_regs_arg(k, 0)) {
    case PR_SET_NO_NEW_PRIVS:
        if (value != 1 || !no_more_arguments(k, 2))
            return aq_answer(k, -EINVAL);
        b->no_new_privileges = true;
        return aq_answer(k, 0);
    case PR_GET_NO_NEW_PRIVS:
        return aq_answer(k, no_more_arguments(k, 1) ? b->no_new_privileges : -EINVAL);
    case PR_GET_SECCOMP:
        return aq_answer(k, b->filters > 0 ? SECCOMP_MODE_FILTER : SECCOMP_MODE_DISABLED);
    case PR_SET_SECCOMP:
        if (value == SECCOMP_MODE_FILTER && !b->no_new_privileges)
            return aq_answer(k, -EACCES);
        return AQ_STEP_RUN;
    case PR_CAPBSET_READ:
        return aq_answer(k, value <= LAST_CAPABILITY ? 1 : -EINVAL);
    case PR_GET_SECUREBITS:
        return aq_answer(k, 0);
    default: /* some are younger than the machine's kernel */
        return aq_arg_int(k, 0) > YOUNGEST && aq_arg_int(k, 0) < OTHERS ? aq_answer(k, -EINVAL)
                                                                        : AQ_STEP_RUN;
    }
}

/* Without no_new_privs a filter needs a right that no user has. RUN: it may go on. */
aq_step aq_face_filter(aq_tracer *t, aq_task *k)
{
    if (t->plan.machine && (uint32_t)aq_regs_arg(k, 0) == SECCOMP_SET_MODE_FILTER &&
        !belief_of(t, k->proc)->no_new_privileges)
        return aq_answer(k, -EACCES);
    return AQ_STEP_RUN;
}

aq_step aq_after_filter(aq_tracer *t, aq_task *k, long *result)
{
    bool filter = k->nr == AQ_NR_prctl ? aq_arg_int(k, 0) == PR_SET_SECCOMP
                                       : (uint32_t)aq_regs_arg(k, 0) == SECCOMP_SET_MODE_FILTER;

    if (t->plan.machine && filter && *result >= 0)
        belief_of(t, k->proc)->filters++;
    return AQ_STEP_RUN;
}

/* A program that asks to be traced wants to know whether somebody does so already: it may, once. */
bool aq_face_traced(aq_tracer *t, aq_task *k)
{
    struct aq_belief *b;

    if (!t->plan.machine || aq_arg_long(k, 0) != PTRACE_TRACEME)
        return false;
    b = belief_of(t, k->proc);
    if (b->traced)
        return false;
    b->traced = true;
    return true;
}

/* Landlock of the machine's kernel knows less than ours may. */
aq_step aq_try_landlock(aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 0), len = aq_regs_arg(k, 1), rest = 0, rights = 0;

    if (!t->plan.machine)
        return k->nr == AQ_NR_landlock_restrict_self ? AQ_STEP_RUN : AQ_STEP_GO;
    if (k->nr == AQ_NR_landlock_restrict_self)
        return belief_of(t, k->proc)->no_new_privileges ? AQ_STEP_RUN : aq_answer(k, -EPERM);
    if ((uint32_t)aq_regs_arg(k, 2) == LANDLOCK_ASK && !at && !len)
        return aq_answer(k, LANDLOCK_VERSION);
    if (aq_regs_arg(k, 2) || len < sizeof rights || !aq_tracee_get(k, at, &rights, sizeof rights))
        return AQ_STEP_GO; /* the kernel finds the same */
    for (uint64_t i = sizeof rights; i < len && i < 64; i += sizeof rest)
        if (aq_tracee_get(k, at + i, &rest, sizeof rest) && rest)
            return aq_answer(k, -E2BIG);
    return rights & ~(uint64_t)LANDLOCK_RIGHTS ? aq_answer(k, -EINVAL) : AQ_STEP_GO;
}

/* Calls that are younger than the machine's kernel. */
aq_step aq_try_young(aq_tracer *t, aq_task *k)
{
    return t->plan.machine ? aq_answer(k, -ENOSYS) : AQ_STEP_RUN;
}

/* What a refused call says on the machine: its kernel has calls that we do not let through, with
 * settings or arguments that forbid them there as well. */
/* Anybody may read how the clock is kept: in step with others, by systemd-timesyncd. */
static long read_timex(const aq_tracer *t, aq_task *k, uint64_t at)
{
    enum { SECOND = 1000000000, SINGLE_READ = ADJ_OFFSET_SS_READ };
    uint64_t now = aq_clock_now(t, CLOCK_REALTIME);
    struct timex x;

    if (!aq_tracee_get(k, at, &x, sizeof x))
        return -EFAULT;
    if (x.modes != 0 && x.modes != SINGLE_READ)
        return -EPERM;
    x = (struct timex){.modes = x.modes,
                       .freq = -1187840,
                       .maxerror = 236500,
                       .status = STA_PLL | STA_NANO,
                       .constant = 7,
                       .precision = 1,
                       .tolerance = 32768000,
                       .time = {(time_t)(now / SECOND), (suseconds_t)(now % SECOND)},
                       .tick = 10000};
    return aq_tracee_put(k, at, &x, sizeof x) ? TIME_OK : -EFAULT;
}

/* Calls of 32-bit programs never reach the kernel. What only asks who one is needs none, and is
 * what whoever tries them out asks. */
static long answer_old(aq_task *k, long plain)
{
    enum { USER = 1000 };

    switch ((uint32_t)k->in.orig_rax) {
    case 20: /* getpid */
        return aq_inner_pid(k);
    case 224: /* gettid */
        return aq_task_inner(k);
    case 24:  /* getuid */
    case 47:  /* getgid */
    case 49:  /* geteuid */
    case 50:  /* getegid */
    case 199: /* the same, with larger numbers */
    case 200:
    case 201:
    case 202:
        return USER;
    case 158: /* sched_yield */
        return 0;
    default:
        return plain;
    }
}

long aq_face_refusal(const aq_tracer *t, aq_task *k)
{
    long plain = -(k->row->code ? k->row->code : ENOSYS);

    if (!t->plan.machine)
        return plain;
    switch (k->nr) {
    case -1:
        return answer_old(k, plain);
    case AQ_NR_io_uring_setup: /* kernel.io_uring_disabled says so, too */
        return -EPERM;
    case AQ_NR_io_uring_enter:
    case AQ_NR_io_uring_register:
        return -EBADF;
    case AQ_NR_futex_waitv: /* who means it, and not only asks, falls back to plain futexes */
        return aq_regs_arg(k, 1) - 1 < 128 && !aq_regs_arg(k, 2) ? plain : -EINVAL;
    case AQ_NR_set_mempolicy_home_node:
        return -EINVAL;
    case AQ_NR_cachestat:
        return -EBADF;
    case AQ_NR_map_shadow_stack:
        return -EOPNOTSUPP;
    case AQ_NR_adjtimex:
        return read_timex(t, k, aq_regs_arg(k, 0));
    case AQ_NR_clock_adjtime:
        return aq_arg_int(k, 0) == CLOCK_REALTIME ? read_timex(t, k, aq_regs_arg(k, 1)) : plain;
    case AQ_NR_keyctl:
        if (aq_arg_int(k, 0) == KEYCTL_GET_KEYRING_ID)
            return aq_arg_int(k, 1) == KEY_SPEC_SESSION_KEYRING ? AQ_VEIL_KEYRING : -ENOKEY;
        return plain;
    default:
        return plain;
    }
}
