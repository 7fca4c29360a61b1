/* Calls that are decided by a look at their arguments, and a few that need no kernel at all. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "observe/reach.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* As if the kernel were a little older: restartable sequences would depend on who else uses our
 * CPU. */
aq_step aq_try_absent(aq_tracer *t, aq_task *k)
{
    (void)t;
    return aq_answer(k, -ENOSYS);
}

/* Accepted without effect: flushing the host's disks, moving to another CPU than the one we share.
 */
aq_step aq_try_done(aq_tracer *t, aq_task *k)
{
    (void)t;
    return aq_answer(k, 0);
}

aq_step aq_try_unshare(aq_tracer *t, aq_task *k)
{
    const uint64_t own = CLONE_FILES | CLONE_FS | CLONE_SYSVSEM;

    if (aq_regs_arg(k, 0) & ~own)
        return aq_refuse(k, EPERM, "namespace.refused");
    /* The descriptor table is its own from here on. */
    if (aq_regs_arg(k, 0) & CLONE_FILES) {
        k->proc->split |= k->proc->tasks > 1;
        aq_fd_forget_all(t, k);
    }
    return AQ_STEP_RUN;
}

/* READ_IMPLIES_EXEC would make data executable without a call that says so. */
aq_step aq_try_personality(aq_tracer *t, aq_task *k)
{
    uint32_t persona = (uint32_t)aq_regs_arg(k, 0);

    (void)t;
    /* A question, too: that addresses are not random is the world's own doing. */
    if (persona == 0xffffffff || (persona & ~(uint32_t)ADDR_NO_RANDOMIZE) == PER_LINUX)
        return aq_answer(k, PER_LINUX);
    return aq_refuse(k, EPERM, "personality.refused");
}

/* Its own memory is no secret from a process, another's is. */
aq_step aq_try_process_vm(aq_tracer *t, aq_task *k)
{
    (void)t;
    if (aq_arg_int(k, 0) == aq_inner_pid(k))
        return AQ_STEP_RUN;
    return aq_refuse(k, EPERM, "memory.refused");
}

/* Typing on somebody's terminal is not ours to allow, whoever left it open. */
aq_step aq_try_ioctl(aq_tracer *t, aq_task *k)
{
    uint32_t request = (uint32_t)aq_regs_arg(k, 1);
    int owner = 0;
    long answer;

    if ((request == FIOSETOWN || request == SIOCSPGRP) &&
        aq_tracee_get(k, aq_regs_arg(k, 2), &owner, sizeof owner) && owner == 1)
        return aq_refuse(k, EPERM, "signal.refused"); /* as fcntl does (guard_host.c) */
    if (request == TIOCSTI || request == TIOCLINUX)
        return aq_refuse(k, EPERM, "terminal.refused");
    /* Whoever makes a terminal unlocks it. */
    t->unsent |= request == FIOASYNC || request == FIOSETOWN || request == SIOCSPGRP ||
                 request == TIOCSPTLCK;
    if (_IOC_TYPE(request) == 'R' && aq_entropy_control(t, k, request, &answer))
        return aq_answer(k, answer);
    if (request >= SIOCGIFNAME && request <= SIOCDEVPRIVATE + 15) /* any socket may be asked */
        aq_reach_network(t, k);
    return aq_try_dull(t, k);
}

/* What its look found dull needs no stop at its exit. */
aq_step aq_try_dull(aq_tracer *t, aq_task *k)
{
    (void)t;
    return aq_look_of(k)->quiet ? AQ_STEP_GO : AQ_STEP_RUN;
}
