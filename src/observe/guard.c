/* Calls by which a program could slip out of our sight, or see us: answered here, by their
 * arguments. */
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "observe/internal.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

/* Reading the time stamp counter always traps, whatever a program asks for; what it asked for
 * decides what then happens (signals.c). */
aq_step aq_try_prctl(aq_tracer *t, aq_task *k)
{
    uint32_t mode = k->no_counter ? PR_TSC_SIGSEGV : PR_TSC_ENABLE;
    uint64_t value = aq_regs_arg(k, 1);

    switch ((int)aq_regs_arg(k, 0)) {
    case PR_SET_TSC:
        if ((uint32_t)value != PR_TSC_ENABLE && (uint32_t)value != PR_TSC_SIGSEGV)
            return aq_answer(k, -EINVAL);
        k->no_counter = (uint32_t)value == PR_TSC_SIGSEGV;
        return aq_answer(k, 0);
    case PR_GET_TSC:
        return aq_answer(k, aq_tracee_put(k, value, &mode, sizeof mode) ? 0 : -EFAULT);
    /* The kernel would hide its memory and its descriptors from us where we are an ordinary user.
     */
    case PR_SET_DUMPABLE:
        if (value > 1)
            return aq_answer(k, -EINVAL);
        k->proc->undumpable = value == 0;
        return aq_answer(k, 0);
    case PR_GET_DUMPABLE:
        return aq_answer(k, !k->proc->undumpable);
    case PR_SET_SECCOMP:
        k->proc->filtered = true;
        return aq_face_prctl(t, k);
    case PR_SET_SYSCALL_USER_DISPATCH:
        return aq_refuse(k, EINVAL, "dispatch.refused");
    default:
        return aq_face_prctl(t, k);
    }
}

/* A listener's verdict outranks ours: a program that answered its own notifications would run calls
 * that nobody sees. Other filters can only forbid. The kernel looks at half of the register. */
aq_step aq_try_seccomp(aq_tracer *t, aq_task *k)
{
    uint32_t operation = (uint32_t)aq_regs_arg(k, 0), action = 0;

    k->proc->filtered |=
        operation == SECCOMP_SET_MODE_FILTER || operation == SECCOMP_SET_MODE_STRICT;
    if (operation == SECCOMP_SET_MODE_FILTER &&
        (aq_regs_arg(k, 1) & SECCOMP_FILTER_FLAG_NEW_LISTENER))
        return aq_refuse(k, EBUSY, "listener.refused");
    if (operation == SECCOMP_GET_ACTION_AVAIL &&
        aq_tracee_get(k, aq_regs_arg(k, 2), &action, sizeof action) &&
        action == SECCOMP_RET_USER_NOTIF)
        return aq_answer(k, -EOPNOTSUPP);
    return aq_face_filter(t, k);
}

/* The kernel allows one tracer, and that is us. */
aq_step aq_try_ptrace(aq_tracer *t, aq_task *k)
{
    aq_step step = aq_refuse(k, EPERM, "ptrace.refused");

    return aq_face_traced(t, k) ? aq_answer(k, 0) : step; /* it is told so, and not done */
}
