/* Ways to hide an act, or to make us say something untrue; one by name. Each prints "name result"
 * where a negative result is an errno. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Asks for the address of "secret.test". */
static const char question[] = "\1\2\1\0\0\1\0\0\0\0\0\0\6secret\4test\0\0\1\0\1";

static void say(const char *name, long r)
{
    printf("%s %ld\n", name, r < 0 ? -(long)errno : r);
    fflush(stdout);
}

static struct sockaddr_in internet(const char *host, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

    inet_pton(AF_INET, host, &a.sin_addr);
    return a;
}

/* Memory that may be written only: the processor reads it all the same. */
static void unreadable(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *args = (uint64_t *)(page + 2048);
    struct sockaddr_in a = internet("198.51.100.7", 443);
    long p;

    strcpy(page, "/tmp/unreadable");
    memcpy(page + 1024, &a, sizeof a);
    args[0] = CLONE_UNTRACED, args[4] = SIGCHLD;
    mprotect(page, 4096, PROT_WRITE);
    say("mkdir", mkdir(page, 0755));
    say("connect", connect(socket(AF_INET, SOCK_STREAM, 0), (void *)(page + 1024), sizeof a));
    p = syscall(SYS_clone3, args, 88);
    if (p == 0)
        _exit(open("/etc/protocols", O_RDONLY) < 0);
    waitpid((pid_t)p, NULL, 0);
    args[0] = CLONE_NEWUSER;
    say("userns", syscall(SYS_clone3, args, 88));
    mprotect(page, 4096, PROT_NONE);
    say("nothing", mkdir(page, 0755));
}

/* The kernel looks at the lower half of the register. */
static void listener(void)
{
    struct sock_filter f[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {1, f};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    say("listener", syscall(SYS_seccomp, 0x100000000UL | SECCOMP_SET_MODE_FILTER,
                            SECCOMP_FILTER_FLAG_NEW_LISTENER, &p));
}

/* A filter forbids what we do in the name of a new program. */
static void filtered(uint32_t verdict)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, verdict), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {4, f};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
    execl("/bin/mkdir", "mkdir", "/tmp/filtered", (char *)NULL);
}

static void on_signal(int sig)
{
    (void)sig;
}

/* A signal that tells of a call that was never made. */
static void forged(void)
{
    siginfo_t s = {.si_signo = SIGSYS, .si_code = 1};

    signal(SIGSYS, on_signal);
    s.si_syscall = SYS_init_module, s.si_arch = 0xc000003e;
    say("forged", syscall(SYS_rt_sigqueueinfo, getpid(), SIGSYS, &s));
    s.si_syscall = SYS_rt_sigqueueinfo, s.si_arch = 0x40000003;
    say("forged32", syscall(SYS_rt_sigqueueinfo, getpid(), SIGSYS, &s));
}

/* One that hides a call that was made and refused. */
static void covered(void)
{
    siginfo_t s = {.si_signo = SIGSYS, .si_code = 1};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s.si_syscall = SYS_getpid, s.si_arch = 0xc000003e;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGSYS, &s);
    say("covered", syscall(SYS_swapoff, "/covered"));
}

static char path[64];

/* Makes the interrupted call again, with other flags, and never returns to the kernel's frame. */
static void again(int sig, siginfo_t *info, void *context)
{
    const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

    (void)sig, (void)info;
    strcpy(path, "/tmp/again");
    __asm__ volatile("mov %0, %%rsp\n\tmov %1, %%rbp\n\tmov $0x1a4, %%r10d\n\tjmp *%2"
                     :
                     : "r"(g[REG_RSP]), "r"(g[REG_RBP]), "r"(g[REG_RIP]), "a"((long)SYS_openat),
                       "D"(g[REG_RDI]), "S"(g[REG_RSI]), "d"((long)(O_WRONLY | O_CREAT))
                     : "memory", "r10");
}

static void restarted(void)
{
    struct sigaction sa = {.sa_sigaction = again, .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER};
    pid_t me = getpid();
    register long r10 __asm__("r10") = 0;
    long r;

    mkfifo("/tmp/pipe", 0644);
    strcpy(path, "/tmp/pipe");
    sigaction(SIGUSR1, &sa, NULL);
    if (fork() == 0) {
        usleep(1000);
        _exit(kill(me, SIGUSR1) != 0);
    }
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "0"((long)SYS_openat), "D"((long)AT_FDCWD), "S"(path), "d"((long)O_RDONLY),
                       "r"(r10)
                     : "memory", "rbx", "rcx", "r8", "r9", "r11", "r12", "r13", "r14", "r15");
    say("written", write((int)r, "x", 1));
}

/* A thread whose maker waits as for vfork; then its process becomes another program. */
static void vthread(void)
{
    static char stack[65536] __attribute__((aligned(16)));
    long r;

    __asm__ volatile(
        "syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\tmov $60, %%eax\n\txor %%edi, %%edi\n\t"
        "syscall\n1:"
        : "=a"(r)
        : "0"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK | CLONE_THREAD | CLONE_SIGHAND)),
          "S"(stack + sizeof stack - 64), "d"(0L)
        : "memory", "rcx", "r11");
    say("vthread", r > 0);
    execl("/bin/echo", "echo", "after", (char *)NULL);
}

/* An address without a family, a socket that is renamed behind our back, a name with a NUL. */
static void addresses(void)
{
    struct sockaddr_in a = internet("198.51.100.7", 53), b = internet("192.0.2.1", 9);
    struct sockaddr_un u = {.sun_family = AF_UNIX, .sun_path = "\0open\0hidden"};
    int s = socket(AF_INET, SOCK_DGRAM, 0), two;

    a.sin_family = AF_UNSPEC;
    say("unspec", sendto(s, question, sizeof question - 1, 0, (void *)&a, sizeof a));
    a = internet("203.0.113.5", 53);
    connect(s, (void *)&b, sizeof b);
    say("plain", write(s, "x", 1));
    two = dup(s);
    connect(two, (void *)&a, sizeof a);
    say("renamed", write(s, question, sizeof question - 1));
    say("abstract", bind(socket(AF_UNIX, SOCK_DGRAM, 0), (void *)&u, sizeof u.sun_family + 12));
}

/* Waits that end when nobody counts any more; and one whose seconds are given in microseconds. */
static void forever(void)
{
    struct itimerval every = {{INT64_MAX / 1000000000, 0}, {1, 0}};
    struct timeval hour = {0, 3600000000}, never = {INT64_MAX, 0};

    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &every, NULL);
    say("alarm", pause());
    say("hour", syscall(SYS_select, 0, NULL, NULL, NULL, &hour));
    say("never", select(0, NULL, NULL, NULL, &never));
}

/* Deeper than the kernel can name. */
static void deep(void)
{
    char name[251];
    int fd;

    memset(name, 'd', 250);
    name[250] = '\0';
    if (chdir("/tmp") != 0)
        return;
    for (int i = 0; i < 20; i++)
        if (mkdir(name, 0755) != 0 || chdir(name) != 0)
            return;
    fd = open("below", O_CREAT | O_WRONLY, 0644);
    say("deep", write(fd, "x", 1));
}

/* Thousands of vain attempts, then one that matters. */
static void flood(void)
{
    for (int i = 0; i < 11000; i++) {
        snprintf(path, sizeof path, "/tmp/none-%d", i);
        if (open(path, O_RDONLY) >= 0)
            return;
    }
    say("opened", open("/etc/hostname", O_RDONLY));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "unreadable") == 0)
        unreadable();
    else if (strcmp(name, "listener") == 0)
        listener();
    else if (strcmp(name, "filtered") == 0)
        filtered(SECCOMP_RET_ERRNO | EPERM);
    else if (strcmp(name, "trapped") == 0)
        filtered(SECCOMP_RET_TRAP);
    else if (strcmp(name, "killed") == 0)
        filtered(SECCOMP_RET_KILL_PROCESS);
    else if (strcmp(name, "forged") == 0)
        forged();
    else if (strcmp(name, "covered") == 0)
        covered();
    else if (strcmp(name, "restarted") == 0)
        restarted();
    else if (strcmp(name, "vthread") == 0)
        vthread();
    else if (strcmp(name, "addresses") == 0)
        addresses();
    else if (strcmp(name, "flood") == 0)
        flood();
    else if (strcmp(name, "forever") == 0)
        forever();
    else if (strcmp(name, "deep") == 0)
        deep();
    else
        return 2;
    return 0;
}
