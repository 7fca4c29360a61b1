/* What a process can give up about itself; see process.h. */
#include "kernel/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int aq_process_limit(int resource, uint64_t soft, uint64_t hard, aq_err *err)
{
    struct rlimit now, want = {.rlim_cur = soft, .rlim_max = hard};

    if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && now.rlim_max < hard)
        want.rlim_max = now.rlim_max;
    if (want.rlim_cur > want.rlim_max)
        want.rlim_cur = want.rlim_max;
    if (setrlimit((__rlimit_resource_t)resource, &want) < 0)
        return aq_fail_errno(err, "cannot set resource limit %d", resource);
    return 0;
}

int aq_process_no_core(aq_err *err)
{
    /* Less than any core has; and at one, unlike zero, the kernel starts no collector. */
    struct rlimit one = {1, 1};

    return setrlimit(RLIMIT_CORE, &one) == 0 ? 0 : aq_process_limit(RLIMIT_CORE, 0, 0, err);
}

int aq_process_close_from(unsigned first, aq_err *err)
{
    if (syscall(SYS_close_range, first, ~0u, 0) < 0)
        return aq_fail_errno(err, "cannot close inherited descriptors");
    return 0;
}

int aq_process_become(uint32_t id, aq_err *err)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
        return aq_fail_errno(err, "cannot become user %u", id);
    return 0;
}

static int set_capabilities(uint64_t bits)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].effective = data[i].permitted = (uint32_t)(bits >> 32 * i);
    return (int)syscall(SYS_capset, &head, data);
}

int aq_process_no_capabilities(aq_err *err)
{
    return aq_process_keep_capabilities(0, err);
}

int aq_process_unshare(int namespaces)
{
    return unshare(namespaces) == 0 ? namespaces : 0;
}

int aq_process_no_new_privileges(aq_err *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot set no_new_privs");
    return 0;
}

int aq_process_no_way_up(aq_err *err)
{
    unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
                           SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                           SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    for (int cap = 0; cap < 64; cap++)
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
            if (errno == EINVAL) /* past the last one that the kernel knows */
                break;
            return aq_fail_errno(err, "cannot empty the bounding set");
        }
    if (prctl(PR_SET_SECUREBITS, locked, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot lock the secure bits");
    return 0;
}

int aq_process_become_keeping(uint32_t id, uint64_t capabilities, aq_err *err)
{
    int r;

    if (geteuid() != 0)
        return 0;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot keep capabilities");
    if ((r = aq_process_become(id, err)) < 0)
        return r;
    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
    if (set_capabilities(capabilities) < 0)
        return aq_fail_errno(err, "cannot keep capabilities over the change to user %u", id);
    return 0;
}

bool aq_process_has_capabilities(uint64_t capabilities)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    uint64_t have = 0;

    if (syscall(SYS_capget, &head, data) < 0)
        return false;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        have |= (uint64_t)data[i].effective << 32 * i;
    return (have & capabilities) == capabilities;
}

int aq_process_keep_capabilities(uint64_t capabilities, aq_err *err)
{
    /* Nothing is left inheritable, and so nothing ambient. */
    if (set_capabilities(capabilities) < 0)
        return aq_fail_errno(err, "cannot give up capabilities");
    return 0;
}

int aq_process_trap_counter(aq_err *err)
{
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot trap the time stamp counter");
    return 0;
}

void aq_process_clock(clockid_t clock, struct timespec *ret)
{
    *ret = (struct timespec){0};
    syscall(SYS_clock_gettime, clock, ret);
}

static const char *proc = "/proc";

int aq_process_only_proc(aq_err *err)
{
    if (chdir("/proc") < 0 || chroot(".") < 0)
        return aq_fail_errno(err, "cannot leave the host's files");
    proc = "";
    return 0;
}

const char *aq_process_proc(void)
{
    return proc;
}

int aq_process_new_keyring(aq_err *err)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
        errno != EPERM)
        return aq_fail_errno(err, "cannot make a session keyring");
    return 0;
}

int aq_process_die_with_parent(aq_err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return aq_fail_errno(err, "cannot ask for the death signal");
    return 0;
}

void aq_process_spread(pid_t child, const cpu_set_t *all)
{
    int here = sched_getcpu();
    cpu_set_t set = *all;

    if (here < 0)
        return;
    CPU_CLR((size_t)here, &set);
    if (CPU_COUNT(&set) > 0 && sched_setaffinity(child, sizeof set, &set) == 0)
        sched_setaffinity(child, sizeof *all, all); /* it begins there, and may go elsewhere */
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

int aq_process_close_but(int *keep, size_t count, aq_err *err)
{
    unsigned from = 3;

    qsort(keep, count, sizeof *keep, compare_numbers);
    for (size_t i = 0; i < count; i++) {
        if (keep[i] < (int)from)
            continue;
        if ((unsigned)keep[i] > from &&
            syscall(SYS_close_range, from, (unsigned)keep[i] - 1, 0) < 0)
            return aq_fail_errno(err, "cannot close inherited descriptors");
        from = (unsigned)keep[i] + 1;
    }
    return aq_process_close_from(from, err);
}

void aq_process_forget_start(const char *name)
{
    aq_auto_fd int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    unsigned long long at[4] = {0}; /* start and end of the arguments, then of the environment */
    char text[2048], *p;
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    p = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; p && field < 51; field++) {
        p = strchr(p + 1, ' ');
        if (p && field >= 47)
            at[field - 47] = strtoull(p + 1, NULL, 10);
    }
    for (int i = 0; i < 4; i += 2)
        if (at[i] && at[i + 1] > at[i])
            memset((void *)(uintptr_t)at[i], 0, (size_t)(at[i + 1] - at[i]));
    if (at[0] && at[1] > at[0])
        snprintf((char *)(uintptr_t)at[0], (size_t)(at[1] - at[0]), "%s", name);
}
