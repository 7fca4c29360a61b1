/* The lock: everything that a jail's child gives up before it sees the first hostile byte.
 *
 * Order matters. Namespaces need the rights that becoming nobody takes away; changing identity
 * clears the death signal, so that one is set after; limits come late because loading libraries
 * needs room; no_new_privs precedes Landlock and seccomp, which need it; seccomp is last, because
 * it forbids all the rest. */
#include "jail/lock.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/landlock.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"

#if AQ_JAIL_SANITIZED
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

enum {
    NAMESPACES = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP,
    OPEN_FILES = 256,
};

/* Descriptors can be used and memory had; nothing can be opened, made, reached or signalled.
 * newfstatat is not here although the C library's fstat() is made of it: it takes any path. */
static const aq_call allowed[] = {
    {.nr = SYS_read},
    {.nr = SYS_pread64},
    {.nr = SYS_sendmsg},
    {.nr = SYS_recvmsg},
    {.nr = SYS_close},
    {.nr = SYS_write},
    {.nr = SYS_pwrite64},
    {.nr = SYS_lseek},
    {.nr = SYS_fstat},
    {SYS_mmap, AQ_CALL_ALLOW_MASKED, 2, PROT_EXEC},
    {SYS_mprotect, AQ_CALL_ALLOW_MASKED, 2, PROT_EXEC},
    {.nr = SYS_munmap},
    {.nr = SYS_mremap},
    {.nr = SYS_brk},
    {.nr = SYS_madvise},
    {.nr = SYS_futex},
    {.nr = SYS_exit_group},
    {.nr = SYS_exit},
    {.nr = SYS_rt_sigreturn},
    {.nr = SYS_rt_sigprocmask},
    {.nr = SYS_clock_gettime},
    {.nr = SYS_gettimeofday},
    {.nr = SYS_getrandom},
    {.nr = SYS_getpid},
    {.nr = SYS_gettid},
    {.nr = SYS_sched_yield},
    /* Asked by libraries that would like to colour a terminal. */
    {SYS_ioctl, AQ_CALL_REFUSE, 0, ENOTTY},
#if AQ_JAIL_SANITIZED
    {.nr = SYS_sigaltstack},
#endif
};

static int compare_bytes(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* The C library's qsort asks for the size of memory on its first large use, and jansson reads a
 * random seed for its first object: both once, so both now. */
static void warm_up(const aq_jail_job *job)
{
    char letters[4096] = {0};

    qsort(letters, sizeof letters, 1, compare_bytes);
    json_decref(json_object());
    warm_up_sanitizer();
    if (job->warm)
        job->warm();
}

static int limits(const aq_jail_job *job, aq_jail_hello *ret, aq_err *err)
{
    int r = 0;

    if (!AQ_JAIL_SANITIZED) { /* a sanitizer reserves terabytes of addresses */
        r = aq_process_limit(RLIMIT_AS, job->memory, job->memory, err);
        ret->memory_limit = 1;
    }
    if (r == 0)
        r = aq_process_limit(RLIMIT_CPU, job->seconds, job->seconds + 1, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_CORE, 0, 0, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_FSIZE, 0, 0, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_MEMLOCK, 0, 0, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_NPROC, 0, 0, err);
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
    ret->namespaces =
        aq_process_unshare(geteuid() == 0 ? NAMESPACES : NAMESPACES | CLONE_NEWUSER) != 0;
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
    return aq_seccomp_apply(allowed, sizeof allowed / sizeof *allowed, err);
}
