/* Seccomp; see seccomp.h. */
#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/seccomp.h>

#include "kernel/callfilter.h"

static aq_call_verdict verdict_of(const aq_call *c)
{
    switch (c->rule) {
    case AQ_CALL_ALLOW:
        break;
    case AQ_CALL_ALLOW_MASKED:
        return (aq_call_verdict){SECCOMP_RET_ALLOW, c->mask, c->argument};
    case AQ_CALL_REFUSE:
        return (aq_call_verdict){.action = SECCOMP_RET_ERRNO | (c->mask & SECCOMP_RET_DATA)};
    }
    return (aq_call_verdict){.action = SECCOMP_RET_ALLOW};
}

int aq_seccomp_apply(const aq_call *calls, size_t count, aq_err *err)
{
    aq_call_verdict of[AQ_CALLFILTER_NUMBERS];
    aq_callfilter f;
    int r;

    for (size_t n = 0; n < AQ_CALLFILTER_NUMBERS; n++)
        of[n] = (aq_call_verdict){.action = SECCOMP_RET_KILL_PROCESS};
    for (size_t i = 0; i < count; i++) {
        if (calls[i].nr < 0 || calls[i].nr >= AQ_CALLFILTER_NUMBERS)
            return aq_fail(err, -EINVAL, "there is no system call %d", calls[i].nr);
        of[calls[i].nr] = verdict_of(&calls[i]);
    }
    r = aq_callfilter_make(of, AQ_CALLFILTER_NUMBERS, SECCOMP_RET_KILL_PROCESS, &f, err);
    return r < 0 ? r : aq_callfilter_install(&f, err);
}
