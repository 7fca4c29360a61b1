/* Tells in the answers of system calls: what a filter, a tracer or another kernel would say. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

enum { STATMOUNT = 457, MSEAL = 462, LANDLOCK_CREATE = 444, FUTEX_WAIT2 = 455 };

/* The release as one number: 6.1 is 601. */
static int kernel(void)
{
    int a = 0, b = 0;

    sscanf(release(), "%d.%d", &a, &b);
    return 100 * a + b;
}

static bool refuses(const char *name, long r, int wanted)
{
    if (r == -1 && errno == wanted)
        return true;
    return odd("%s: %s", name, r == -1 ? strerror(errno) : "works");
}

TELL(calls, names, "uname names Linux, x86_64 and a build of Debian")
{
    struct utsname u = {0};

    uname(&u);
    return (strcmp(u.sysname, "Linux") == 0 && strcmp(u.machine, "x86_64") == 0 &&
            strstr(u.version, "Debian")) ||
           odd("%s", u.version);
}

TELL(calls, root_disk, "statfs of / is ext4 with blocks of 4096, of a disk's size")
{
    struct statfs fs;

    if (statfs("/", &fs) < 0)
        return odd("%s", strerror(errno));
    say("type %lx, %llu blocks of %ld, %llu files", (long)fs.f_type,
        (unsigned long long)fs.f_blocks, fs.f_bsize, (unsigned long long)fs.f_files);
    return fs.f_type == 0xef53 && fs.f_bsize == 4096 && fs.f_blocks > 2500000 &&
           fs.f_files > 600000;
}

TELL(calls, home_disk, "statfs of the home is that of the root")
{
    struct statfs a, b;

    if (statfs("/", &a) < 0 || statfs(home(), &b) < 0)
        return odd("%s", strerror(errno));
    return (a.f_type == b.f_type && a.f_blocks == b.f_blocks) ||
           odd("type %lx, %llu blocks", (long)b.f_type, (unsigned long long)b.f_blocks);
}

TELL(calls, loader_disk, "statfs of a partition to boot from is small, and none of the root")
{
    struct statfs root, fs;

    if (statfs("/", &root) < 0 || statfs("/boot/efi", &fs) < 0)
        return errno == ENOENT || odd("%s", strerror(errno));
    return fs.f_blocks < root.f_blocks / 4 ||
           odd("%llu blocks of %ld", (unsigned long long)fs.f_blocks, fs.f_bsize);
}

TELL(calls, message_queue, "a message queue can be made, in a file system of its own")
{
    struct mq_attr small = {.mq_maxmsg = 2, .mq_msgsize = 8};
    mqd_t q = mq_open("/probe", O_CREAT | O_EXCL | O_RDWR, 0600, &small);
    struct statfs fs;

    if (q < 0 || mq_send(q, "text", 4, 0) < 0)
        return odd("%s", strerror(errno));
    mq_close(q);
    mq_unlink("/probe");
    return (statfs("/dev/mqueue", &fs) == 0 && fs.f_type == 0x19800202) ||
           odd("/dev/mqueue: type %lx", (long)fs.f_type);
}

TELL(calls, processors, "we may run on as many processors as cpuinfo has")
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return odd("%s", strerror(errno));
    say("%d", CPU_COUNT(&set));
    return CPU_COUNT(&set) == cpus_in_cpuinfo();
}

TELL(calls, moves, "who asks for one processor is there then, by the call and by the instruction")
{
    cpu_set_t all;

    sched_getaffinity(0, sizeof all, &all);
    for (int i = 0; i < CPU_SETSIZE && i < 16; i++) {
        unsigned cpu = 9999;
        cpu_set_t one;

        if (!CPU_ISSET(i, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        if (sched_setaffinity(0, sizeof one, &one) < 0)
            return odd("%s", strerror(errno));
        syscall(SYS_getcpu, &cpu, NULL, NULL);
        if (cpu != (unsigned)i)
            return odd("%u, not %d", cpu, i);
    }
    return true;
}

TELL(calls, may_gain_rights, "prctl says that we may gain rights")
{
    int r = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);

    return r == 0 || odd("%d", r);
}

TELL(calls, no_filter, "prctl says that there is no filter")
{
    int r = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);

    return r == 0 || odd("%d", r);
}

TELL(calls, filter_needs_rights, "a user without no_new_privs installs no filter")
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {1, allow};

    return getuid() == 0 ||
           refuses("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), EACCES);
}

TELL(calls, own_filter, "a filter of our own works, with a listener too")
{
    struct sock_filter deny[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sync, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 123),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, deny};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return odd("no_new_privs is not kept");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return odd("%s", strerror(errno));
    return refuses("a filtered call", syscall(SYS_sync), 123);
}

TELL(calls, trace_me, "one may be traced once: the first request works, the second does not")
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
            _exit(1);
        _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 && errno == EPERM ? 0 : 2);
    }
    waitpid(pid, &status, 0);
    say("%d", WEXITSTATUS(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TELL(calls, trace_child, "a parent can trace its child")
{
    int status = 0;
    pid_t pid = fork();
    bool good;

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        _exit(7);
    }
    good = waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status) &&
           ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid &&
           WIFEXITED(status) && WEXITSTATUS(status) == 7;
    if (!good)
        kill(pid, SIGKILL);
    return good || odd("status %x: %s", status, strerror(errno));
}

TELL(calls, user_namespaces, "unshare does what the kernel's setting says")
{
    int allowed = atoi(text_of("/proc/sys/kernel/unprivileged_userns_clone"));
    long r;

    if (!there("/proc/sys/kernel/unprivileged_userns_clone"))
        return odd("no setting");
    r = syscall(SYS_unshare, CLONE_NEWUSER);
    return (allowed ? r == 0 : r < 0 && errno == EPERM) ||
           odd("%d: %s", allowed, r ? strerror(errno) : "works");
}

TELL(calls, ring, "io_uring works, or a setting says that it does not (6.6)")
{
    char params[120] = {0};
    long r = syscall(SYS_io_uring_setup, 1, params);

    if (r >= 0)
        return true;
    return (errno == EPERM && atoi(text_of("/proc/sys/kernel/io_uring_disabled")) > 0) ||
           odd("%s", strerror(errno));
}

TELL(calls, unknown, "a number of the future is no call")
{
    return refuses("600", syscall(600), ENOSYS);
}

TELL(calls, age, "calls exist that the release has, and no others")
{
    static const struct {
        int since, number;
        const char *name;
    } calls[] = {{511, 439, "faccessat2"},      {514, 448, "process_mrelease"},
                 {516, 449, "futex_waitv"},     {605, 451, "cachestat"},
                 {606, 452, "fchmodat2"},       {607, FUTEX_WAIT2, "futex_wait"},
                 {608, STATMOUNT, "statmount"}, {610, MSEAL, "mseal"}};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool known = syscall(calls[i].number, -1, -1, -1, -1, -1, -1) == 0 || errno != ENOSYS;

        if (known != (kernel() >= calls[i].since))
            return odd("%s %s", known ? "has" : "lacks", calls[i].name);
    }
    return true;
}

TELL(calls, landlock, "Landlock is of the release's age")
{
    static const struct {
        int since, version;
    } ages[] = {{513, 1}, {519, 2}, {602, 3}, {607, 4}, {610, 5}, {612, 6}, {615, 7}};
    int wanted = -1;
    long r = syscall(LANDLOCK_CREATE, NULL, 0, 1);

    for (size_t i = 0; i < sizeof ages / sizeof *ages; i++)
        if (kernel() >= ages[i].since)
            wanted = ages[i].version;
    say("%ld, wanted %d", r, wanted);
    return r == wanted;
}

TELL(calls, refusals, "what only root may do is not permitted, and not unknown")
{
    if (getuid() == 0)
        return true;
    return refuses("bpf", syscall(SYS_bpf, 0, NULL, 0), EPERM) &&
           refuses("init_module", syscall(SYS_init_module, "", 0, ""), EPERM) &&
           refuses("iopl", syscall(SYS_iopl, 3), EPERM) &&
           refuses("reboot", syscall(SYS_reboot, 0, 0, 0, 0), EPERM) &&
           refuses("mount", syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, 0), EPERM) &&
           refuses("swapon", syscall(SYS_swapon, "/", 0), EPERM) &&
           refuses("sethostname", syscall(SYS_sethostname, "x", 1), EPERM) &&
           refuses("acct", syscall(SYS_acct, NULL), EPERM) &&
           refuses("chroot", syscall(SYS_chroot, "/"), EPERM) &&
           refuses("settimeofday", syscall(SYS_settimeofday, &(struct timeval){1, 0}, NULL), EPERM);
}

TELL(calls, kernel_log, "dmesg is root's in Debian")
{
    char line[100];

    return getuid() == 0 || refuses("syslog", syscall(SYS_syslog, 3, line, sizeof line), EPERM);
}

TELL(calls, persona, "no persona switches anything off")
{
    int p = personality(0xffffffff);

    return p == 0 || odd("%x", p);
}

TELL(calls, performance, "counters of performance are closed by Debian's setting, which says so")
{
    char attr[128] = {0};
    int paranoid = atoi(text_of("/proc/sys/kernel/perf_event_paranoid"));

    attr[4] = (char)sizeof attr;
    if (getuid() == 0)
        return true;
    return (paranoid >= 3 && syscall(SYS_perf_event_open, attr, 0, -1, -1, 0) < 0 &&
            errno == EACCES) ||
           odd("%d, %s", paranoid, strerror(errno));
}

TELL(calls, keyring, "a login has a session keyring")
{
    long r = syscall(SYS_keyctl, 0 /* get its number */, -3 /* session */, 0);

    return r > 0 || odd("%s", strerror(errno));
}

TELL(calls, priority, "we run with plain priority")
{
    return (getpriority(PRIO_PROCESS, 0) == 0 && sched_getscheduler(0) == SCHED_OTHER) ||
           odd("%d", getpriority(PRIO_PROCESS, 0));
}

TELL(calls, old_calls, "a kernel of Debian takes calls of 32-bit programs")
{
    static const char code[] = {0x53,       (char)0xb8, 20,   0,         0, 0,
                                (char)0xcd, (char)0x80, 0x5b, (char)0xc3}; /* getpid by int 0x80 */
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int r;

    memcpy(at, code, sizeof code);
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    r = ((int (*)(void))at)();
    return r == getpid() || odd("%d", r);
}

TELL(calls, memory_files, "memory files can be made and executed")
{
    int fd = (int)syscall(SYS_memfd_create, "probe", 0);

    return (fd >= 0 && ftruncate(fd, 4096) == 0) || odd("%s", strerror(errno));
}

TELL(calls, handles, "files of ext4 have handles of their inode")
{
    struct {
        unsigned bytes;
        int type;
        unsigned char handle[64];
    } h = {.bytes = 64};
    struct stat st;
    unsigned inode;
    int mount;

    if (syscall(SYS_name_to_handle_at, AT_FDCWD, home(), &h, &mount, 0) < 0)
        return odd("%s", strerror(errno));
    stat(home(), &st);
    memcpy(&inode, h.handle, sizeof inode);
    return (h.type == 1 && inode == (unsigned)st.st_ino) || odd("type %d", h.type);
}

TELL(calls, first_process, "a user may not signal process 1, which is there")
{
    return getuid() == 0 || refuses("kill", kill(1, 0), EPERM);
}

TELL(calls, page_map, "what is written is there: mincore and smaps know a touched page")
{
    unsigned char in[1] = {0};
    char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    p[0] = 1;
    return (mincore(p, 4096, in) == 0 && in[0] & 1 &&
            strstr(text_of("/proc/self/smaps"), "Rss:")) ||
           odd("%s", strerror(errno));
}
