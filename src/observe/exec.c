/* New programs and births. What of a new program's memory must change is in image.c; births are
 * kept in our sight. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "observe/decode.h"
#include "observe/image.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP 0x200000000ULL
#endif

/* A program that its user may run and not read is kept from us by the kernel, unless we have rights
 * over its owner. It is not run: a direct call is refused (aq_try_exec), and where it is another's
 * interpreter it ends before its first instruction. */
static bool is_hidden(const aq_task *k, uint64_t sp)
{
    char c;

    return aq_tracee_read(k, sp, &c, 1) == -EPERM;
}

/* At the EXEC stop the new image is there and has not run. */
void aq_exec_done(aq_tracer *t, aq_task *k)
{
    struct user_regs_struct r;
    int status = SIGKILL; /* of one that is gone already */

    aq_decode_exec(t, k);
    if (aq_regs_load(k, &r) == 0)
        aq_image_seed(t, k, r.rsp);
    if (is_hidden(k, r.rsp)) {
        aq_unseen(t, k, "program");
        kill(k->proc->pid, SIGKILL);
    }
    k->dirty = k->patched = false;
    if (!aq_image_settle(t, k, r.rsp, &status)) {
        k->row = NULL;
        aq_engine_stopped(t, k, status);
        return;
    }
    k->row = NULL;
    k->retry = k->wants_exit = false;
    k->state = AQ_TASK_READY;
}

aq_step aq_try_exec(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    int dir = k->nr == SYS_execveat ? (int)aq_regs_arg(k, 0) : AT_FDCWD;
    aq_auto_fd int fd = -1;

    if (k->part > 0) /* under way */
        return aq_slide_exec(t, k);
    if (!aq_home_apart(l->path))
        aq_home_make(t);
    fd = l->path_len ? aq_resolve_handle(t, k, dir, l->path, true) : -1;
    if (fd < 0)
        return AQ_STEP_RUN;
    if (!aq_resolve_base(t, k, fd)) { /* it may name another, which the kernel opens */
        char name[2 * AQ_PATH];

        aq_home_make(t);
        aq_resolve(t, k, dir, l->path, true, name, sizeof name);
        aq_large_needed(t, k, name, false);
    }
    if (faccessat(fd, "", R_OK, AT_EMPTY_PATH | AT_EACCESS) != 0 && errno == EACCES &&
        faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
        return aq_refuse(k, EACCES, "unreadable.refused");
    return aq_slide_exec(t, k);
}

aq_step aq_try_exit(aq_tracer *t, aq_task *k)
{
    (void)t, (void)k;
    return AQ_STEP_GO;
}

/* ---- births ---- */

static const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                   CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

static aq_step take_flags(aq_tracer *t, aq_task *k, uint64_t flags)
{
    k->flags = flags;
    if (flags & (namespaces | CLONE_INTO_CGROUP))
        return aq_refuse(k, EPERM, "namespace.refused");
    if (t->plan.tasks && t->alive >= t->plan.tasks) {
        t->end.stop = AQ_STOP_TASKS;
        return aq_refuse(k, EAGAIN, "budget.tasks");
    }
    return AQ_STEP_RUN;
}

/* CLONE_UNTRACED would make a child that nobody watches: it is never handed to the kernel. */
aq_step aq_try_clone(aq_tracer *t, aq_task *k)
{
    uint64_t flags = 0, at = aq_regs_arg(k, 0);
    aq_step step;

    switch (k->nr) {
    case SYS_fork:
        return take_flags(t, k, 0);
    case SYS_vfork:
        return take_flags(t, k, CLONE_VM | CLONE_VFORK);
    case SYS_clone:
        step = take_flags(t, k, at & 0xffffffff);
        if (step == AQ_STEP_RUN && (at & CLONE_UNTRACED))
            aq_regs_set_arg(k, 0, at & ~(uint64_t)CLONE_UNTRACED);
        return step;
    default:
        if (!aq_tracee_get(k, at, &flags, sizeof flags))
            return AQ_STEP_RUN; /* the kernel finds the same */
        step = take_flags(t, k, flags);
        if (step == AQ_STEP_RUN && (flags & CLONE_NEWTIME))
            step = aq_refuse(k, EPERM, "namespace.refused");
        if (step == AQ_STEP_RUN && (flags & CLONE_UNTRACED)) {
            flags &= ~(uint64_t)CLONE_UNTRACED;
            if (!aq_tracee_save(k, at, sizeof flags) || !aq_tracee_put(k, at, &flags, sizeof flags))
                return aq_answer(k, -EFAULT);
        }
        return step;
    }
}
