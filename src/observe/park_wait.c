/* Calls that wait for children, locks and messages: made without waiting, and again after anything
 * happened. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "observe/internal.h"

enum { LOCK_CHAIN = 64, SEMBUF = 6, SEMBUFS = 1024, INFO_BYTES = 128, INFO_PID = 16 };

static aq_step again(aq_tracer *t, aq_task *k)
{
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}

/* ---- children ---- */

static int options_at(const aq_task *k)
{
    return k->nr == SYS_wait4 ? 2 : 3;
}

aq_step aq_try_wait(aq_tracer *t, aq_task *k)
{
    int at = options_at(k);

    (void)t;
    aq_regs_set_arg(k, at, aq_regs_arg(k, at) | WNOHANG);
    if (k->nr == SYS_waitid && !aq_regs_arg(k, 2)) { /* its answer is there only */
        static const char none[INFO_BYTES];

        k->part = aq_tracee_scratch(k, none, sizeof none);
        if (!k->part)
            return aq_answer(k, -EFAULT);
        aq_regs_set_arg(k, 2, k->part);
    }
    return AQ_STEP_RUN;
}

/* The child that was waited for; 0: nobody yet. waitid says it in what it wrote. */
static int32_t child_of(const aq_task *k, long result)
{
    uint64_t info = aq_regs_arg(k, 2);
    int32_t pid = 0;

    if (k->nr == SYS_wait4 || result < 0)
        return (int32_t)result;
    if (!aq_tracee_get(k, (info ? info : k->part) + INFO_PID, &pid, sizeof pid))
        return -1;
    return pid;
}

aq_step aq_after_wait(aq_tracer *t, aq_task *k, long *result)
{
    uint64_t options = aq_regs_arg(k, options_at(k));
    int32_t child = child_of(k, *result);

    if (child == 0 && !(options & WNOHANG))
        return again(t, k);
    if (child > 0)
        aq_usage_waited(t, k, child, aq_regs_arg(k, k->nr == SYS_wait4 ? 3 : 4),
                        !(options & WNOWAIT));
    return AQ_STEP_RUN;
}

/* ---- locks ---- */

aq_step aq_try_lock(aq_tracer *t, aq_task *k)
{
    (void)t;
    if (k->nr == SYS_flock)
        aq_regs_set_arg(k, 1, aq_regs_arg(k, 1) | LOCK_NB);
    else if ((int)aq_regs_arg(k, 1) == F_SETLKW)
        aq_regs_set_arg(k, 1, F_SETLK);
    else if ((int)aq_regs_arg(k, 1) == F_OFD_SETLKW)
        aq_regs_set_arg(k, 1, F_OFD_SETLK);
    return AQ_STEP_RUN;
}

static bool waits_for_lock(const aq_task *k)
{
    return k->row && k->nr == SYS_fcntl && (int)aq_regs_arg(k, 1) == F_SETLKW;
}

/* The process that has what this one wants; NULL when nobody of this world has. */
static const aq_proc *lock_holder(const aq_tracer *t, const aq_task *k)
{
    aq_auto_fd int mine = aq_fd_borrow(k, (int)aq_regs_arg(k, 0));
    const aq_proc *p = t->procs;
    struct flock want;

    if (mine < 0 || !aq_tracee_get(k, aq_regs_arg(k, 2), &want, sizeof want) ||
        fcntl(mine, F_GETLK, &want) != 0 || want.l_type == F_UNLCK)
        return NULL;
    while (p && p->pid != want.l_pid)
        p = p->next;
    return p;
}

/* Waits the holder for a lock, too, and whoever has that, until it is this process again? The
 * kernel would see that, but nobody waits there. */
static bool locks_in_circle(const aq_tracer *t, const aq_task *k)
{
    const aq_proc *p = lock_holder(t, k);

    for (int i = 0; p && i < LOCK_CHAIN; i++) {
        const aq_task *q = t->tasks;

        if (p == k->proc)
            return i > 0;
        while (q && (q->proc != p || q->state != AQ_TASK_PARKED || !waits_for_lock(q)))
            q = q->next;
        p = q ? lock_holder(t, q) : NULL;
    }
    return false;
}

aq_step aq_after_lock(aq_tracer *t, aq_task *k, long *result)
{
    int op = (int)aq_regs_arg(k, 1);
    bool waits = k->nr == SYS_flock ? !(op & LOCK_NB) : op == F_SETLKW || op == F_OFD_SETLKW;

    if (!waits || (*result != -EAGAIN && *result != -EACCES))
        return AQ_STEP_RUN;
    if (waits_for_lock(k) && locks_in_circle(t, k)) {
        *result = -EDEADLK;
        return AQ_STEP_RUN;
    }
    return again(t, k);
}

/* ---- System V semaphores and messages ---- */

static bool semaphores_no_wait(aq_task *k, bool *waits)
{
    uint64_t at = aq_regs_arg(k, 1), count = (uint32_t)aq_regs_arg(k, 2);
    static unsigned char ops[SEMBUF * SEMBUFS];

    if (count == 0 || count > SEMBUFS || !aq_tracee_get(k, at, ops, SEMBUF * count))
        return false;
    *waits = false;
    for (uint64_t i = 0; i < count; i++) {
        unsigned char *high = &ops[SEMBUF * i + 5];

        *waits |= !(*high & IPC_NOWAIT >> 8);
        *high |= IPC_NOWAIT >> 8;
    }
    return aq_tracee_save(k, at, SEMBUF * count) && aq_tracee_put(k, at, ops, SEMBUF * count);
}

static int flags_at(const aq_task *k)
{
    return k->nr == SYS_msgsnd ? 3 : 4;
}

aq_step aq_try_ipc(aq_tracer *t, aq_task *k)
{
    bool waits = true;
    int64_t ts[2];

    if (k->nr == SYS_msgsnd || k->nr == SYS_msgrcv) {
        aq_regs_set_arg(k, flags_at(k), aq_regs_arg(k, flags_at(k)) | IPC_NOWAIT);
        return AQ_STEP_RUN;
    }
    k->waits = false;
    if (k->nr == SYS_semtimedop && aq_regs_arg(k, 3) &&
        aq_tracee_get(k, aq_regs_arg(k, 3), ts, sizeof ts) && ts[0] >= 0 && ts[1] >= 0)
        aq_park_until(k, aq_clock_deadline(t, 1, false, ts[0], ts[1]));
    if (semaphores_no_wait(k, &waits))
        k->waits = waits;
    return AQ_STEP_RUN;
}

aq_step aq_after_ipc(aq_tracer *t, aq_task *k, long *result)
{
    bool messages = k->nr == SYS_msgsnd || k->nr == SYS_msgrcv;
    bool waits = messages ? !(aq_regs_arg(k, flags_at(k)) & IPC_NOWAIT) : k->waits;

    /* What went away while somebody waited for it has another name for that. */
    if (k->retry && *result == -EINVAL)
        *result = -EIDRM;
    if (!waits || (*result != -EAGAIN && *result != -ENOMSG) || k->expired ||
        (k->timed && k->deadline <= t->clock))
        return AQ_STEP_RUN;
    return again(t, k);
}

/* ---- POSIX message queues ---- */

/* A queue can be asked like a pipe. */
aq_step aq_try_queue(aq_tracer *t, aq_task *k)
{
    aq_auto_fd int mine = aq_fd_borrow(k, (int)aq_regs_arg(k, 0));
    struct pollfd p = {.fd = mine, .events = k->nr == SYS_mq_timedsend ? POLLOUT : POLLIN};
    int r = aq_clock_until(t, k, aq_regs_arg(k, 4), CLOCK_REALTIME, true);

    if (r < 0)
        return aq_answer(k, r);
    if (mine < 0 || (fcntl(mine, F_GETFL) & O_NONBLOCK) || aq_io_poll(&p) > 0)
        return AQ_STEP_RUN;
    if (k->timed && (k->expired || k->deadline <= t->clock))
        return aq_answer(k, -ETIMEDOUT);
    return again(t, k);
}
