/* What our readers of hostile bytes give up alike; see lockdown.h. */
#include "kernel/lockdown.h"

#include <errno.h>
#include <jansson.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitize.h"
#include "kernel/process.h"

enum {
    NAMESPACES = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP,
    CALLS_MOST = 64,
};

/* Descriptors can be used and memory had; nothing can be opened, made, reached or signalled.
 * newfstatat is not here although the C library's fstat() is made of it: it takes any path. */
static const aq_call always[] = {
    {.nr = SYS_read},
    {.nr = SYS_write},
    {.nr = SYS_recvmsg},
    {.nr = SYS_sendmsg},
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
    /* Asked by libraries that would like to colour a terminal. */
    {SYS_ioctl, AQ_CALL_REFUSE, 0, ENOTTY},
#if AQ_SANITIZED
    {.nr = SYS_sigaltstack},
#endif
};

static int compare_bytes(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

void aq_lockdown_warm_up(void)
{
    char letters[4096] = {0};

    qsort(letters, sizeof letters, 1, compare_bytes);
    json_decref(json_object());
}

bool aq_lockdown_namespaces(void)
{
    return aq_process_unshare(geteuid() == 0 ? NAMESPACES : NAMESPACES | CLONE_NEWUSER) != 0;
}

int aq_lockdown_limit(const aq_lockdown_limits *l, bool *has_memory, aq_err *err)
{
    const struct {
        int resource;
        uint64_t soft, hard;
    } all[] = {
        {RLIMIT_CPU, l->seconds, l->seconds + 1},
        {RLIMIT_NOFILE, l->open_files, l->open_files},
        {RLIMIT_FSIZE, 0, 0},
        {RLIMIT_MEMLOCK, 0, 0},
        {RLIMIT_NPROC, 0, 0},
    };
    int r = 0;

    *has_memory = !AQ_SANITIZED;
    if (*has_memory)
        r = aq_process_limit(RLIMIT_AS, l->memory, l->memory, err);
    for (size_t i = 0; i < sizeof all / sizeof *all && r == 0; i++)
        r = aq_process_limit(all[i].resource, all[i].soft, all[i].hard, err);
    return r == 0 ? aq_process_no_core(err) : r;
}

int aq_lockdown_filter(const aq_call *calls, size_t count, aq_err *err)
{
    aq_call all[CALLS_MOST];
    size_t common = sizeof always / sizeof *always;

    if (count > CALLS_MOST - common)
        return aq_fail(err, -E2BIG, "the list of calls is too long");
    memcpy(all, always, sizeof always);
    memcpy(all + common, calls, count * sizeof *calls);
    return aq_seccomp_apply(all, common + count, err);
}
