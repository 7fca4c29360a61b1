/* Ways out of sight: every one must be seen or refused. Prints "name result" where a negative
 * result is an errno. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *name, long r)
{
    printf("%s %ld\n", name, r < 0 ? -(long)errno : r);
    fflush(stdout);
}

/* A filter whose listener would let calls run unseen. */
static void listener(void)
{
    uint32_t action = SECCOMP_RET_USER_NOTIF, other = SECCOMP_RET_ERRNO;
    struct sock_filter f[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {1, f};

    say("notify", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
    say("errno", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &other));
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    say("listener",
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p));
}

/* A child that asks not to be traced opens a file. */
static void untraced(void)
{
    uint64_t args[11] = {CLONE_UNTRACED, 0, 0, 0, SIGCHLD};
    long p = syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);

    if (p == 0)
        _exit(open("/etc/services", O_RDONLY) < 0);
    waitpid((pid_t)p, NULL, 0);
    say("untraced", p > 0);
    p = syscall(SYS_clone3, args, sizeof args);
    if (p == 0)
        _exit(open("/etc/protocols", O_RDONLY) < 0);
    waitpid((pid_t)p, NULL, 0);
    say("untraced3", p > 0);
    say("untraced3-kept", args[0] == CLONE_UNTRACED); /* it finds its own words again */
    args[0] = 0x80 /* CLONE_NEWTIME */;
    p = syscall(SYS_clone3, args, sizeof args);
    if (p == 0)
        _exit(0);
    say("newtime", p);
}

/* Clocks that need no call: the kernel's page of them, and the counter of the processor. */
static void quiet_clocks(void)
{
    const unsigned char *library = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    long ticking = 0, read = 0;

    for (int i = 1; library && i <= 4 * 4096; i++)
        ticking += library[-i] != 0;
    say("clock-pages", ticking);
    say("tsc-set", prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0));
    for (int i = 0; i < 100; i++)
        read += __builtin_ia32_rdtsc() > 0;
    say("tsc", read);
    say("tsc-wrong", prctl(PR_SET_TSC, 3, 0, 0, 0));
}

/* Calls that would go to a handler of the program's own instead of the kernel. */
static void dispatch(void)
{
    char selector = 0;

    say("dispatch", prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, 0, 0, &selector));
}

/* What is sent is what lay there when it was sent. */
static void zerocopy(void)
{
    int on = 1;

    say("zerocopy",
        setsockopt(socket(AF_INET, SOCK_STREAM, 0), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
}

/* Memory of a process that is not its own, written past all calls of that one. */
static void foreign_memory(void)
{
    char mine = 'x', own = 'y';
    struct iovec from = {&mine, 1}, to = {&own, 1};
    pid_t p = fork();

    if (p == 0) {
        sleep(10);
        _exit(own != 'y');
    }
    say("poke", process_vm_writev(p, &from, 1, &to, 1, 0));
    say("peek", process_vm_readv(p, &from, 1, &to, 1, 0));
    waitpid(p, NULL, 0);
    say("poke-own", process_vm_writev(getpid(), &from, 1, &to, 1, 0));
}

/* A program that is in no file. */
static void memory_program(void)
{
    int fd = memfd_create("hidden", 0), from = open("/bin/true", O_RDONLY);
    char buf[65536], *argv[] = {(char *)"hidden", NULL};
    ssize_t n;
    pid_t p;

    while ((n = read(from, buf, sizeof buf)) > 0)
        if (write(fd, buf, (size_t)n) != n)
            return;
    p = fork();
    if (p == 0) {
        syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH);
        _exit(1);
    }
    waitpid(p, NULL, 0);
    say("memfd", p > 0);
}

/* The loader runs a program that exec never names. */
static void loader(void)
{
    pid_t p = fork();

    if (p == 0) {
        execl("/lib64/ld-linux-x86-64.so.2", "ld.so", "/bin/true", NULL);
        _exit(1);
    }
    waitpid(p, NULL, 0);
    say("loader", p > 0);
}

/* The old entry into the kernel, with a number that means another call there. */
static void old_entry(void)
{
    long r;

    __asm__ volatile("int $0x80"
                     : "=a"(r)
                     : "0"(5L), "b"("/etc/passwd"), "c"(0), "d"(0)
                     : "memory");
    errno = (int)-r;
    say("int80", r < 0 ? -1 : r);
}

static void passed_descriptor(void)
{
    int s[2], fd;
    char control[CMSG_SPACE(sizeof(int))] = {0}, c = 'x';
    struct iovec v = {&c, 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *h = CMSG_FIRSTHDR(&m);

    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s) != 0)
        return;
    if (fork() == 0) {
        fd = open("/etc/os-release", O_RDONLY);
        h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(h), &fd, sizeof fd);
        _exit(sendmsg(s[0], &m, 0) < 0);
    }
    if (recvmsg(s[1], &m, 0) < 0)
        return;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    say("passed", read(fd, &c, 1));
    wait(NULL);
}

int main(void)
{
    untraced();
    memory_program();
    loader();
    passed_descriptor();
    quiet_clocks();
    dispatch();
    zerocopy();
    foreign_memory();
    say("traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
    say("io_uring", syscall(425, 8, NULL));
    say("userns", unshare(CLONE_NEWUSER));
    say("wx", mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                   0) == MAP_FAILED
                  ? -1
                  : 0);
    listener();
    old_entry();
    return 0;
}
