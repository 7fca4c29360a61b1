/* The lock: what the internet gives up before it hears the first hostile byte. It keeps its
 * sockets, which are of the world's network, and its memory; nothing can be opened, made, reached
 * or started any more. The order is that of the jail's lock, for the same reasons. */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "internet/internal.h"
#include "kernel/landlock.h"
#include "kernel/lockdown.h"
#include "kernel/process.h"

enum {
    NOBODY = 65534,
    OPEN_FILES = AQ_NET_CONNECTIONS + AQ_NET_SOCKETS + 64,
    CPU_SECONDS = 3600,
};

static const aq_call allowed[] = {
    {.nr = SYS_recvfrom},   {.nr = SYS_sendto},      {.nr = SYS_accept4},
    {.nr = SYS_shutdown},   {.nr = SYS_getsockname}, {.nr = SYS_getpeername},
    {.nr = SYS_setsockopt}, {.nr = SYS_getsockopt},  {.nr = SYS_epoll_ctl},
    {.nr = SYS_epoll_wait}, {.nr = SYS_epoll_pwait}, {SYS_getrandom, AQ_CALL_REFUSE, 0, ENOSYS},
};

/* The calendar looks for a time zone once. */
static void warm_up(void)
{
    time_t now = 0;
    struct tm tm;

    aq_lockdown_warm_up();
    gmtime_r(&now, &tm);
}

static int limits(aq_line_hello *ret, aq_err *err)
{
    const aq_lockdown_limits l = {AQ_NET_MEMORY, CPU_SECONDS, OPEN_FILES};
    bool has_memory;
    int r = aq_lockdown_limit(&l, &has_memory, err);

    ret->memory = has_memory;
    return r;
}

int aq_net_lock(aq_line_hello *ret, aq_err *err)
{
    int r;

    warm_up();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    ret->namespaces = aq_lockdown_namespaces();
    if ((r = aq_process_become(NOBODY, err)) < 0 || (r = aq_process_no_capabilities(err)) < 0 ||
        (r = aq_process_die_with_parent(err)) < 0 || (r = limits(ret, err)) < 0 ||
        (r = aq_process_no_new_privileges(err)) < 0)
        return r;
    if ((r = aq_landlock_deny_all(err)) < 0)
        return r;
    ret->landlock = (uint8_t)r;
    ret->seccomp = 1;
    return aq_lockdown_filter(allowed, sizeof allowed / sizeof *allowed, err);
}
