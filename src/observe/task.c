/* Tasks and processes of a world: who is there, in which order they came, and how they go. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "observe/decode.h"
#include "observe/reach.h"

aq_task *aq_task_find(aq_tracer *t, pid_t tid)
{
    for (aq_task *k = t->tasks; k; k = k->next)
        if (k->tid == tid)
            return k;
    return NULL;
}

/* The last number of the NSpid line: what the task itself calls its number. */
pid_t aq_task_inner(aq_task *k)
{
    char path[64], line[256];
    FILE *f;

    if (k->inner)
        return k->inner;
    k->inner = k->tid;
    snprintf(path, sizeof path, "%s/%d/status", aq_process_proc(), k->tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "NSpid:", 6) == 0) {
            k->inner = (pid_t)strtol(strrchr(line, '\t') + 1, NULL, 10);
            break;
        }
    if (f)
        fclose(f);
    return k->inner;
}

aq_proc *aq_proc_add(aq_tracer *t, pid_t pid, const aq_proc *parent)
{
    aq_proc *p = aq_alloc(sizeof *p);

    p->pid = pid;
    p->world = t;
    p->pidfd = -1;
    p->undumpable = parent && parent->undumpable;
    p->born = t->clock;
    p->vdso_bytes = parent ? parent->vdso_bytes : 0;
    if (parent)
        memcpy(p->stack_limit, parent->stack_limit, sizeof p->stack_limit);
    p->filtered = parent && parent->filtered;
    p->short_files = parent && parent->short_files;
    p->short_work = parent && parent->short_work;
    p->vdso = parent ? parent->vdso : 0;
    p->ordinal = t->next_proc++;
    p->parent = parent ? parent->ordinal : 0;
    p->space = ++t->next_space;
    if (parent && parent->exe)
        p->exe = aq_strdup(parent->exe);
    for (int i = 0; i < AQ_FD_SLOTS; i++)
        p->fds[i].fd = -1;
    p->next = t->procs;
    t->procs = p;
    t->end.processes++;
    return p;
}

static void free_proc(aq_tracer *t, aq_proc *p)
{
    aq_proc **at = &t->procs;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    for (int i = 0; i < AQ_FD_SLOTS; i++)
        free(p->fds[i].name);
    aq_fd_let_go(p);
    free(p->exe);
    free(p->belief);
    free(p);
}

/* New tasks go to the end of the list, which so stays in the order of serials. */
aq_task *aq_task_add(aq_tracer *t, pid_t tid, aq_proc *proc)
{
    aq_task *k = aq_alloc(sizeof *k);
    aq_task **at = &t->tasks;

    k->tid = tid;
    k->proc = proc;
    k->serial = t->next_serial++;
    k->ordinal = proc->threads++;
    k->flip = k->hold = -1;
    while (*at)
        at = &(*at)->next;
    *at = k;
    proc->tasks++;
    t->alive++;
    t->end.tasks++;
    return k;
}

static void unlink_task(aq_tracer *t, aq_task *k)
{
    aq_task **at = &t->tasks;

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    t->alive--;
    k->proc->tasks--;
    if (t->running == k)
        t->running = NULL;
    if (t->last == k)
        t->last = NULL;
    aq_open_end(k);
    while (k->saved_count > 0)
        free(k->saved[--k->saved_count].many);
    if (k->look)
        aq_buf_free(&k->look->sent);
    free(k->look);
    free(k->cpus);
    free(k->spin);
    free(k->entropy);
    aq_content_free(k);
    free(k);
}

/* A child's end lets its parent's wait go on, and may release one that waits in vfork. */
static void wake_vfork(aq_tracer *t, aq_proc *p)
{
    aq_task *parent = p->vforked;
    int status;

    p->vforked = NULL;
    if (!parent || parent->state != AQ_TASK_KERNEL)
        return;
    if (aq_engine_wait(parent, &status))
        aq_engine_stopped(t, parent, status);
}

void aq_task_bury(aq_tracer *t, aq_task *k, int status)
{
    aq_proc *p = k->proc;
    bool first = k->tid == t->first, joined = k->nr == SYS_exit && p->tasks > 1;
    uint32_t process = p->ordinal, thread = k->ordinal;

    for (aq_proc *q = t->procs; q; q = q->next)
        if (q->vforked == k)
            q->vforked = NULL;
    if (p->tasks == 1 && p->short_work && !t->killing && WIFSIGNALED(status) &&
        WTERMSIG(status) == SIGKILL)
        aq_preempted(t, k, "limit"); /* the kernel ended it when its time was used up */
    unlink_task(t, k);
    t->activity++;
    t->signals = true;
    if (first)
        t->end.status = status;
    aq_futex_changed(t, process, thread, joined);
    if (p->tasks > 0)
        return;
    aq_reach_ended(t);
    aq_decode_end(t, p, status);
    aq_edge_ended(t, p);
    aq_usage_end(t, p, status);
    aq_timer_forget(t, p);
    wake_vfork(t, p);
    free_proc(t, p);
}

char *aq_task_stat(pid_t tid, char text[static AQ_STAT])
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof path, "%s/%d/stat", aq_process_proc(), tid);
    aq_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, AQ_STAT - 1);
    text[n > 0 ? n : 0] = '\0';
    return strrchr(text, ')'); /* a name may hold anything, what follows it does not */
}

char aq_task_letter(const aq_task *k)
{
    char text[AQ_STAT];
    const char *state = aq_task_stat(k->tid, text);

    return (char)(state && state[1] == ' ' ? state[2] : 0);
}

/* ptrace refuses a stopped task that SIGKILL has woken: it is on its way out, and its status comes.
 * A leader comes last, since the kernel reports it after its threads. One that job control has
 * halted it refuses always; whoever does not stand still any more there has news. */
static bool dying(const aq_task *k)
{
    uint64_t mask;

    if (k->state == AQ_TASK_HALTED) {
        char state = aq_task_letter(k);

        return state != 't' && state != 'T';
    }
    return k->state != AQ_TASK_RUNNING && k->state != AQ_TASK_KERNEL &&
           ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) != 0 && errno == ESRCH;
}

static bool reap_one(aq_tracer *t, bool leaders)
{
    for (aq_task *k = t->tasks; k; k = k->next) {
        bool leader = k->tid == k->proc->pid;
        int status;

        if (leader != leaders || (leader && k->proc->tasks > 1) || !dying(k))
            continue;
        if (!aq_engine_wait(k, &status))
            aq_task_bury(t, k, SIGKILL);
        else if (WIFEXITED(status) || WIFSIGNALED(status))
            aq_task_bury(t, k, status);
        else
            aq_engine_stopped(t, k, status);
        return true;
    }
    return false;
}

void aq_task_reap_dying(aq_tracer *t)
{
    while (reap_one(t, false) || reap_one(t, true))
        continue;
}

void aq_task_exchange(aq_tracer *t, aq_task *k, pid_t former)
{
    aq_task *f = aq_task_find(t, former);

    if (!f || f == k)
        return;
    /* The thread that called exec goes on under the leader's number; what it was doing is its. */
    k->row = f->row;
    k->nr = f->nr;
    k->in = f->in;
    k->look = f->look;
    k->patched = f->patched;
    k->no_counter = f->no_counter;
    k->part = f->part;
    k->caller = f->ordinal;
    f->look = NULL;
    if (t->running == f)
        t->running = k;
    k->state = AQ_TASK_RUNNING;
    unlink_task(t, f);
}

/* Who is dead first is the host's doing: their ends are told in the order of the list. */
void aq_task_kill_all(aq_tracer *t)
{
    size_t left = 0;

    for (aq_proc *p = t->procs; p; p = p->next)
        kill(p->pid, SIGKILL);
    for (aq_task *k = t->tasks; k; k = k->next) {
        k->end = SIGKILL;
        left++;
    }
    while (left > 0) {
        int status;
        pid_t tid = waitpid(-1, &status, __WALL);
        aq_task *k;

        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            break;
        k = aq_task_find(t, tid);
        if (k && (WIFEXITED(status) || WIFSIGNALED(status))) {
            k->end = status;
            left--;
        } else {
            kill(tid, SIGKILL); /* a child that was born while we killed */
        }
    }
    while (t->tasks)
        aq_task_bury(t, t->tasks, t->tasks->end);
}
