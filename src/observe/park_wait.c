/* Calls that wait for children, locks and messages: made without waiting, and again after anything
 * happened. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "observe/internal.h"

enum { SEMBUF = 6, SEMBUFS = 20 };

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
    return AQ_STEP_RUN;
}

/* waitid says "nobody yet" by a number of zero in what it wrote. */
static bool nobody_yet(const aq_task *k, long result)
{
    uint64_t info = aq_regs_arg(k, 2);
    int32_t pid = 0;

    if (k->nr == SYS_wait4)
        return result == 0;
    return result == 0 && info && aq_tracee_get(k, info + 16, &pid, sizeof pid) && pid == 0;
}

aq_step aq_after_wait(aq_tracer *t, aq_task *k, long *result)
{
    if ((aq_regs_arg(k, options_at(k)) & WNOHANG) || !nobody_yet(k, *result))
        return AQ_STEP_RUN;
    return again(t, k);
}

/* ---- locks ---- */

aq_step aq_try_lock(aq_tracer *t, aq_task *k)
{
    (void)t;
    if (k->nr == SYS_flock)
        aq_regs_set_arg(k, 1, aq_regs_arg(k, 1) | LOCK_NB);
    else if (aq_regs_arg(k, 1) == F_SETLKW)
        aq_regs_set_arg(k, 1, F_SETLK);
    else if (aq_regs_arg(k, 1) == F_OFD_SETLKW)
        aq_regs_set_arg(k, 1, F_OFD_SETLK);
    return AQ_STEP_RUN;
}

aq_step aq_after_lock(aq_tracer *t, aq_task *k, long *result)
{
    uint64_t op = aq_regs_arg(k, 1);
    bool waits = k->nr == SYS_flock ? !(op & LOCK_NB) : op == F_SETLKW || op == F_OFD_SETLKW;

    if (!waits || (*result != -EAGAIN && *result != -EACCES))
        return AQ_STEP_RUN;
    return again(t, k);
}

/* ---- System V semaphores and messages ---- */

static bool semaphores_no_wait(aq_task *k, bool *waits)
{
    uint64_t at = aq_regs_arg(k, 1), count = aq_regs_arg(k, 2);
    unsigned char ops[SEMBUF * SEMBUFS];

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
    if (k->nr == SYS_semtimedop && aq_regs_arg(k, 3) &&
        aq_tracee_get(k, aq_regs_arg(k, 3), ts, sizeof ts) && ts[0] >= 0 && ts[1] >= 0)
        aq_park_until(k, aq_clock_deadline(t, 1, false, ts[0], ts[1]));
    if (semaphores_no_wait(k, &waits))
        k->done = waits; /* remembered for afterwards */
    return AQ_STEP_RUN;
}

aq_step aq_after_ipc(aq_tracer *t, aq_task *k, long *result)
{
    bool messages = k->nr == SYS_msgsnd || k->nr == SYS_msgrcv;
    bool waits = messages ? !(aq_regs_arg(k, flags_at(k)) & IPC_NOWAIT) : k->done;

    if (!waits || (*result != -EAGAIN && *result != -ENOMSG) || k->expired ||
        (k->timed && k->deadline <= t->clock))
        return AQ_STEP_RUN;
    return again(t, k);
}

aq_step aq_try_open(aq_tracer *t, aq_task *k)
{
    (void)t, (void)k;
    return AQ_STEP_RUN;
}
