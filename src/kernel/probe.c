/* What this host's kernel offers; see probe.h. */
#include "kernel/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/landlock.h"

void aq_probe_add(aq_arena *a, aq_probe_list *l, const char *name, bool usable, const char *level,
                  const char *remedy)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        aq_probe_point *points = aq_arena_alloc(a, cap * sizeof *points);
        if (l->count)
            memcpy(points, l->points, l->count * sizeof *points);
        l->points = points;
        l->cap = cap;
    }
    l->points[l->count++] = (aq_probe_point){
        .name = name, .usable = usable, .level = level, .remedy = usable ? NULL : remedy};
}

/* Does `act` work? Tried in a child, so that nothing of it stays with us. */
static bool works_in_child(int (*act)(void))
{
    pid_t pid = fork();
    int status = 1;

    if (pid == 0)
        _exit(act() == 0 ? 0 : 1);
    if (pid < 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int try_user_namespace(void)
{
    return unshare(CLONE_NEWUSER);
}

static int try_all_namespaces(void)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
                CLONE_NEWUTS | CLONE_NEWCGROUP) == 0)
        return 0;
    /* Root without user namespaces is as good for this question. */
    return unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                   CLONE_NEWCGROUP);
}

static int try_time_namespace(void)
{
    if (unshare(CLONE_NEWUSER) < 0 && geteuid() != 0)
        return -1;
    return unshare(0x80 /* CLONE_NEWTIME */);
}

static int try_ptrace(void)
{
    pid_t pid = fork();
    int r;

    if (pid == 0) {
        pause();
        _exit(0);
    }
    r = pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 0 : -1;
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    return r;
}

static int try_tsc_trap(void)
{
    return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}

static bool seccomp_action(uint32_t action)
{
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

static void probe_seccomp(aq_arena *a, aq_probe_list *l)
{
    bool kill_process = seccomp_action(SECCOMP_RET_KILL_PROCESS);
    bool trace = seccomp_action(SECCOMP_RET_TRACE);

    aq_probe_add(a, l, "seccomp", kill_process && trace,
                 kill_process ? "filter, kill, trace" : NULL,
                 "run a kernel with CONFIG_SECCOMP_FILTER, and a container runtime that allows it");
}

static void probe_landlock(aq_arena *a, aq_probe_list *l)
{
    int abi = aq_landlock_abi();

    aq_probe_add(a, l, "landlock", abi > 0, abi > 0 ? aq_arena_printf(a, "ABI %d", abi) : NULL,
                 "boot with lsm=landlock,… on a kernel of 5.13 or later");
}

static const char *first_line(aq_arena *a, const char *path)
{
    aq_auto_buf b = {0};
    aq_err err;

    if (aq_read_file(AT_FDCWD, path, 1 << 16, &b, &err) < 0)
        return NULL;
    return aq_arena_strndup(a, aq_buf_str(&b), strcspn(aq_buf_str(&b), "\n"));
}

static bool file_mentions(const char *path, const char *word)
{
    aq_auto_buf b = {0};
    aq_err err;

    return aq_read_file(AT_FDCWD, path, 1 << 20, &b, &err) == 0 && strstr(aq_buf_str(&b), word);
}

/* A controller counts where we could use it: in the v2 tree, or mounted as v1. */
static void probe_controller(aq_arena *a, aq_probe_list *l, const char *name)
{
    const char *v2 = first_line(a, "/sys/fs/cgroup/cgroup.controllers");
    const char *hybrid = first_line(a, "/sys/fs/cgroup/unified/cgroup.controllers");
    const char *v1 = aq_arena_printf(a, "/sys/fs/cgroup/%s", name);
    const char *level = NULL;

    if ((v2 && strstr(v2, name)) || (hybrid && strstr(hybrid, name)))
        level = "v2";
    else if (access(v1, R_OK) == 0)
        level = "v1";
    aq_probe_add(a, l, aq_arena_printf(a, "cgroup.%s", name), level != NULL, level,
                 "mount cgroup v2 with this controller; without it rlimits are the weaker limit");
}

static void probe_kvm(aq_arena *a, aq_probe_list *l)
{
    aq_auto_fd int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    int version = fd >= 0 ? ioctl(fd, 0xAE00 /* KVM_GET_API_VERSION */, 0) : -1;

    aq_probe_add(a, l, "kvm", version == 12,
                 version == 12 ? "API 12; a guest was not booted" : NULL,
                 "enable virtualisation and access to /dev/kvm; else microVMs are emulated");
}

static void probe_program(aq_arena *a, aq_probe_list *l, const char *name, const char *remedy)
{
    const char *path = getenv("PATH");

    for (const char *p = path ? path : ""; *p;) {
        size_t n = strcspn(p, ":");
        const char *full = aq_arena_printf(a, "%.*s/%s", (int)n, p, name);
        if (n && access(full, X_OK) == 0) {
            aq_probe_add(a, l, name, true, full, NULL);
            return;
        }
        p += n + (p[n] == ':');
    }
    aq_probe_add(a, l, name, false, NULL, remedy);
}

void aq_probe_host(aq_arena *a, aq_probe_list *l)
{
    static const char *const controllers[] = {"memory", "pids", "cpu"};
    struct utsname u;

    if (uname(&u) == 0)
        aq_probe_add(a, l, "kernel", true, aq_arena_printf(a, "%s %s", u.release, u.machine), NULL);
    probe_landlock(a, l);
    probe_seccomp(a, l);
    aq_probe_add(a, l, "user-namespaces", works_in_child(try_user_namespace), NULL,
                 "sysctl kernel.unprivileged_userns_clone=1, or run as root");
    aq_probe_add(a, l, "namespaces", works_in_child(try_all_namespaces),
                 "mount pid net ipc uts cgroup", "run as root, or allow user namespaces");
    aq_probe_add(a, l, "time-namespace", works_in_child(try_time_namespace), NULL,
                 "run a kernel of 5.6 or later with CONFIG_TIME_NS");
    aq_probe_add(a, l, "ptrace", works_in_child(try_ptrace), NULL,
                 "sysctl kernel.yama.ptrace_scope=1 or lower, and a runtime that allows ptrace");
    aq_probe_add(a, l, "tsc-trap", works_in_child(try_tsc_trap), NULL,
                 "none: this CPU or hypervisor shows its time stamp counter");
    for (size_t i = 0; i < sizeof controllers / sizeof *controllers; i++)
        probe_controller(a, l, controllers[i]);
    aq_probe_add(a, l, "overlayfs", file_mentions("/proc/filesystems", "\toverlay\n"), NULL,
                 "modprobe overlay");
    probe_kvm(a, l);
    probe_program(a, l, "qemu-system-x86_64", "apt-get install qemu-system-x86 (for tier T2)");
    probe_program(a, l, "runsc", "install gVisor's runsc (optional, for its backend)");
    probe_program(a, l, "crun", "apt-get install crun (for the OCI backend)");
    probe_program(a, l, "firecracker", "install Firecracker (optional, for tier T2 with KVM)");
}
