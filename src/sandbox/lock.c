/* The last lock of our own processes around a world: what each may still ask of the kernel. They
 * are ours, but the keeper reads what a hostile program says, so what it could be made to do is
 * bounded like a stranger's; see calls.def. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/sanitize.h"
#include "kernel/seccomp.h"
#include "kernel/syscalls.h"
#include "sandbox/world.h"

enum { K = AQ_OWN_KEEPER, I = AQ_OWN_INIT, W = AQ_OWN_WARDEN, F = AQ_OWN_FILLER };

static const struct {
    aq_call call;
    unsigned who;
} all[] = {
#define AQ_OWN_CALL(name, who, rule, argument, mask) {{AQ_NR_##name, rule, argument, mask}, who},
#include "sandbox/calls.def"
#undef AQ_OWN_CALL
};

int aq_lock(aq_own who, aq_err *err)
{
    aq_call calls[sizeof all / sizeof *all];
    size_t count = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].who & who)
            calls[count++] = all[i].call;
    return aq_seccomp_apply(calls, count, err);
}
