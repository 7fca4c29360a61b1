/* What a process can give up about itself; see process.h. */
#include "kernel/process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

int aq_process_no_capabilities(aq_err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, data) < 0)
        return aq_fail_errno(err, "cannot give up capabilities");
    return 0;
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
