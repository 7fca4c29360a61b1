/* The lock: everything that a jail's child gives up before it sees the first hostile byte.
 *
 * Order matters. Namespaces need the rights that becoming nobody takes away; changing identity
 * clears the death signal, so that one is set after; limits come late because loading libraries
 * needs room; no_new_privs precedes Landlock and seccomp, which need it; seccomp is last, because
 * it forbids all the rest. */
#include "jail/lock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/landlock.h"
#include "kernel/lockdown.h"
#include "kernel/process.h"

#if AQ_SANITIZED
#include <sanitizer/common_interface_defs.h>

/* Read by the sanitizers before main(). The child has no environment, so what must hold in it
 * stands here: a report ends it with a status that nothing else uses, and names places by module
 * and offset, because no symbolizer can be started there. ASAN_OPTIONS of a front overrides it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=" AQ_JAIL_SANITIZER_TEXT ":allocator_may_return_null=1:symbolize=0";
}

/* A report names the modules of its frames. Asked now, for a place that is in none of them, the
 * sanitizer reads all its lists; asked in the jail, the filter would kill it half-way. */
static void warm_up_sanitizer(void)
{
    char text[64] = "";

    __sanitizer_symbolize_pc(text, "%m", text, sizeof text);
}
#else
static void warm_up_sanitizer(void)
{
}
#endif

enum { OPEN_FILES = 256 };

static const aq_call allowed[] = {
    {.nr = SYS_pread64},   {.nr = SYS_pwrite64},     {.nr = SYS_lseek},
    {.nr = SYS_getrandom}, {.nr = SYS_gettimeofday},
};

static void warm_up(const aq_jail_job *job)
{
    aq_lockdown_warm_up();
    warm_up_sanitizer();
    if (job->warm)
        job->warm();
}

static int limits(const aq_jail_job *job, aq_jail_hello *ret, aq_err *err)
{
    const aq_lockdown_limits l = {job->memory, job->seconds, OPEN_FILES};
    bool has_memory;
    int r = aq_lockdown_limit(&l, &has_memory, err);

    ret->memory_limit = has_memory;
    return r;
}

/* Dies with the parent, also with one that was gone before the signal was asked for. */
static int die_with_parent(aq_err *err)
{
    struct pollfd p = {.fd = AQ_JAIL_SOCKET};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot ask for the death signal");
    if (poll(&p, 1, 0) < 0 || p.revents & (POLLHUP | POLLERR | POLLNVAL))
        return aq_fail(err, -EPIPE, "the parent is gone");
    return 0;
}

int aq_jail_lock_rights(const aq_jail_job *job, size_t fd_count, aq_jail_hello *ret, aq_err *err)
{
    int r = aq_process_close_from(AQ_JAIL_FIRST_FD + (unsigned)fd_count, err);

    *ret = (aq_jail_hello){0};
    if (r < 0)
        return r;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    warm_up(job);
    ret->namespaces = aq_lockdown_namespaces();
    if ((r = aq_process_become(AQ_JAIL_NOBODY, err)) < 0 ||
        (r = aq_process_no_capabilities(err)) < 0 || (r = die_with_parent(err)) < 0 ||
        (r = limits(job, ret, err)) < 0 || (r = aq_process_no_new_privileges(err)) < 0)
        return r;
    ret->capabilities = 1;
    ret->unprivileged = geteuid() != 0;
    r = aq_landlock_deny_all(err);
    if (r < 0)
        return r;
    ret->landlock = (uint8_t)r;
    return 0;
}

int aq_jail_lock(const aq_jail_job *job, size_t fd_count, aq_jail_hello *ret, aq_err *err)
{
    int r = aq_jail_lock_rights(job, fd_count, ret, err);

    if (r < 0)
        return r;
    ret->seccomp = 1;
    return aq_lockdown_filter(allowed, sizeof allowed / sizeof *allowed, err);
}
