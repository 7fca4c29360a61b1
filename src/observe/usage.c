/* Processor time and uptime, in virtual time: times, getrusage, sysinfo, what wait says of a child,
 * and the clocks of processes and threads. A task uses time by its calls only; sleeping costs
 * nothing, as it should. What else these calls tell of the host (page faults, switches, free
 * memory) differs from run to run and is made plain. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>

#include "observe/decode.h"

enum {
    HERTZ = 100,
    PER_THREAD = 4, /* bits of a clock's number, below that of its process */
    CLOCK_TYPE = 3,
    RSS_STEP = 256, /* KiB */
};
static const uint64_t second = 1000000000;

/* ---- processes that ended and were not waited for ---- */

void aq_usage_end(aq_tracer *t, const aq_proc *p, int status)
{
    t->ended[t->next_ended++ % AQ_ENDED] = (aq_ended){.inner = p->inner,
                                                      .ordinal = p->ordinal,
                                                      .status = status,
                                                      .cpu = p->cpu,
                                                      .children = p->children};
}

static aq_ended *ended(aq_tracer *t, pid_t inner)
{
    for (uint32_t i = 0; inner > 0 && i < AQ_ENDED; i++)
        if (t->ended[i].inner == inner)
            return &t->ended[i];
    return NULL;
}

const aq_ended *aq_usage_ended(const aq_tracer *t, pid_t inner)
{
    return ended((aq_tracer *)(uintptr_t)t, inner);
}

/* ---- structures ---- */

/* A part of it is the system's. */
static void split(uint64_t ns, uint64_t *user, uint64_t *system)
{
    *system = ns / 4;
    *user = ns - *system;
}

static struct timeval spelled(uint64_t ns)
{
    return (struct timeval){.tv_sec = (time_t)(ns / second),
                            .tv_usec = (suseconds_t)(ns % second / 1000)};
}

static bool put_usage(const aq_task *k, uint64_t at, uint64_t ns)
{
    struct rusage u;
    uint64_t user, system;

    if (!aq_tracee_get(k, at, &u, sizeof u))
        return false;
    split(ns, &user, &system);
    u = (struct rusage){.ru_utime = spelled(user),
                        .ru_stime = spelled(system),
                        .ru_maxrss = (u.ru_maxrss + RSS_STEP - 1) / RSS_STEP * RSS_STEP};
    u.ru_minflt = u.ru_maxrss / 4;
    return aq_tracee_put(k, at, &u, sizeof u);
}

static long put_info(const aq_tracer *t, const aq_task *k, uint64_t at)
{
    struct sysinfo s;

    if (!aq_tracee_get(k, at, &s, sizeof s))
        return -EFAULT;
    s.uptime = (long)(aq_clock_now(t, CLOCK_BOOTTIME) / second);
    s.loads[0] = 5243, s.loads[1] = 1966, s.loads[2] = 655; /* 0.08 0.03 0.01 */
    s.freeram = s.totalram / 2;
    s.bufferram = s.totalram / 16;
    s.sharedram = 0;
    s.freeswap = s.totalswap;
    s.procs = (unsigned short)(t->alive < 60000 ? t->alive + 1 : 60000);
    if (t->plan.machine)
        aq_face_sysinfo(t, &s);
    return aq_tracee_put(k, at, &s, sizeof s) ? 0 : -EFAULT;
}

static aq_step give_times(const aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 0), unit = second / HERTZ, user, system, v[4];

    split(k->proc->cpu, &user, &system);
    v[0] = user / unit, v[1] = system / unit;
    split(k->proc->children, &user, &system);
    v[2] = user / unit, v[3] = system / unit;
    if (at && !aq_tracee_put(k, at, v, sizeof v))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, (long)(aq_clock_now(t, CLOCK_BOOTTIME) / unit));
}

/* ---- the calls ---- */

aq_step aq_try_usage(aq_tracer *t, aq_task *k)
{
    return k->nr == SYS_times ? give_times(t, k) : AQ_STEP_RUN;
}

aq_step aq_after_usage(aq_tracer *t, aq_task *k, long *result)
{
    int who = aq_arg_int(k, 0);

    if (*result != 0)
        return AQ_STEP_RUN;
    if (k->nr == SYS_sysinfo)
        *result = put_info(t, k, aq_regs_arg(k, 0));
    else
        put_usage(k, aq_regs_arg(k, 1),
                  who == RUSAGE_CHILDREN ? k->proc->children
                  : who == RUSAGE_THREAD ? k->cpu
                                         : k->proc->cpu);
    return AQ_STEP_RUN;
}

/* A child was waited for: its time is its parent's now. */
void aq_usage_waited(aq_tracer *t, aq_task *k, pid_t child, uint64_t usage, bool reaped)
{
    aq_ended *e = ended(t, child);
    const aq_proc *p = e ? NULL : aq_proc_inner(t, k, child);
    uint64_t ns = e ? e->cpu + e->children : p ? p->cpu : 0;

    if (usage)
        put_usage(k, usage, ns);
    if (e && reaped) {
        aq_decode_waited(t, k, e);
        k->proc->children += ns;
        e->inner = 0;
    }
}

bool aq_usage_clock(aq_tracer *t, aq_task *k, int id, uint64_t *ret)
{
    pid_t number = ~(id >> 3);

    if (id == CLOCK_PROCESS_CPUTIME_ID || id == CLOCK_THREAD_CPUTIME_ID) {
        *ret = id == CLOCK_THREAD_CPUTIME_ID ? k->cpu : k->proc->cpu;
        return true;
    }
    if (id >= 0 || (id & CLOCK_TYPE) == CLOCK_TYPE)
        return false;
    if (number == 0) {
        *ret = id & PER_THREAD ? k->cpu : k->proc->cpu;
        return true;
    }
    for (aq_task *q = t->tasks; q; q = q->next)
        if (aq_task_inner(q) == number && (q->proc == k->proc || !(id & PER_THREAD))) {
            *ret = id & PER_THREAD ? q->cpu : q->proc->cpu;
            return true;
        }
    return false;
}
