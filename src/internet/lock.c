/* The lock: what the internet gives up before it hears the first hostile byte. It keeps its
 * sockets, which are of the world's network, and its memory; nothing can be opened, made, reached
 * or started any more. The order is that of the jail's lock, for the same reasons. */
#include <errno.h>
#include <jansson.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "internet/internal.h"
#include "kernel/landlock.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"

enum {
    NAMESPACES = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP,
    NOBODY = 65534,
    OPEN_FILES = AQ_NET_CONNECTIONS + AQ_NET_SOCKETS + 64,
    CPU_SECONDS = 3600,
};

static const aq_call allowed[] = {
    {.nr = SYS_read},
    {.nr = SYS_write},
    {.nr = SYS_recvfrom},
    {.nr = SYS_sendto},
    {.nr = SYS_recvmsg},
    {.nr = SYS_sendmsg},
    {.nr = SYS_accept4},
    {.nr = SYS_shutdown},
    {.nr = SYS_getsockname},
    {.nr = SYS_getpeername},
    {.nr = SYS_setsockopt},
    {.nr = SYS_getsockopt},
    {.nr = SYS_epoll_ctl},
    {.nr = SYS_epoll_wait},
    {.nr = SYS_epoll_pwait},
    {.nr = SYS_close},
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
    {.nr = SYS_getpid},
    {.nr = SYS_gettid},
    {.nr = SYS_sched_yield},
    {SYS_ioctl, AQ_CALL_REFUSE, 0, ENOTTY},
    {SYS_getrandom, AQ_CALL_REFUSE, 0, ENOSYS},
#if AQ_SANITIZED
    {.nr = SYS_sigaltstack},
#endif
};

static int compare_bytes(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

/* What libraries do on their first use: jansson's seed, the sorter's look at the memory, the
 * calendar's look for a time zone. */
static void warm_up(void)
{
    char letters[4096] = {0};
    time_t now = 0;
    struct tm tm;

    qsort(letters, sizeof letters, 1, compare_bytes);
    json_decref(json_object());
    gmtime_r(&now, &tm);
}

static int limits(aq_line_hello *ret, aq_err *err)
{
    int r = 0;

    if (!AQ_SANITIZED) {
        r = aq_process_limit(RLIMIT_AS, AQ_NET_MEMORY, AQ_NET_MEMORY, err);
        ret->memory = 1;
    }
    if (r == 0)
        r = aq_process_limit(RLIMIT_CPU, CPU_SECONDS, CPU_SECONDS + 1, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_FSIZE, 0, 0, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_MEMLOCK, 0, 0, err);
    if (r == 0)
        r = aq_process_limit(RLIMIT_NPROC, 0, 0, err);
    return r == 0 ? aq_process_no_core(err) : r;
}

int aq_net_lock(aq_line_hello *ret, aq_err *err)
{
    int r;

    warm_up();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    ret->namespaces =
        aq_process_unshare(geteuid() == 0 ? NAMESPACES : NAMESPACES | CLONE_NEWUSER) != 0;
    if ((r = aq_process_become(NOBODY, err)) < 0 || (r = aq_process_no_capabilities(err)) < 0 ||
        (r = aq_process_die_with_parent(err)) < 0 || (r = limits(ret, err)) < 0 ||
        (r = aq_process_no_new_privileges(err)) < 0)
        return r;
    if ((r = aq_landlock_deny_all(err)) < 0)
        return r;
    ret->landlock = (uint8_t)r;
    ret->seccomp = 1;
    return aq_seccomp_apply(allowed, sizeof allowed / sizeof *allowed, err);
}
