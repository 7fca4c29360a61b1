/* Says where things lie in its memory, one line each: a name and an address. With an argument it
 * says less and does something: "fail" tries to become a program that is not there, "deep" uses its
 * stack until it ends, "again" says that it is a second program, "filtered" is one under a filter
 * that kills whoever changes its limits or moves its memory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
static int initialised = 5, cleared;

static void say(const char *prefix, const char *name, uint64_t at)
{
    printf("%s%s %lx\n", prefix, name, at);
}

static bool same_file(const char *path, const char *from, const char *to)
{
    static char text[65536];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text);

    close(fd);
    return n == to - from && memcmp(text, from, (size_t)n) == 0;
}

static uint64_t field(const char *text, int number)
{
    const char *at = strrchr(text, ')');

    for (int i = 2; at && i < number; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* What /proc says of this program must be what it sees itself. */
static void agree(char **argv)
{
    static uint64_t vector[512], own[512];
    static char stat[4096];
    char **last = environ, *end;
    const uint64_t *at;
    int fd = open("/proc/self/auxv", O_RDONLY);
    ssize_t n = read(fd, vector, sizeof vector);
    uint64_t heap = (uint64_t)sbrk(0), local;

    close(fd);
    while (*last)
        last++;
    at = (const uint64_t *)(last + 1);
    memcpy(own, at, (size_t)n);
    printf("!vector %d\n", memcmp(vector, own, (size_t)n) == 0 && n % 16 == 0);
    end = last[-1] + strlen(last[-1]) + 1;
    printf("!environment %d\n", same_file("/proc/self/environ", environ[0], end));
    end = argv[0] + strlen(argv[0]) + 1;
    printf("!arguments %d\n", same_file("/proc/self/cmdline", argv[0], end));
    fd = open("/proc/self/stat", O_RDONLY);
    if (read(fd, stat, sizeof stat - 1) < 0)
        exit(2);
    close(fd);
    printf("!code %d\n", field(stat, 26) <= (uint64_t)agree && (uint64_t)agree < field(stat, 27));
    local = (uint64_t)&local;
    printf("!stack %d\n", local < field(stat, 28) && field(stat, 28) - local < 65536);
    printf("!data %d\n",
           field(stat, 45) <= (uint64_t)&initialised && (uint64_t)&initialised < field(stat, 46));
    printf("!heap %d\n", field(stat, 47) <= heap && heap - field(stat, 47) < 1 << 20);
    printf("!given %d\n",
           field(stat, 48) == (uint64_t)argv[0] && field(stat, 50) == (uint64_t)environ[0]);
    printf("!name %d\n", strcmp((const char *)getauxval(AT_EXECFN), argv[0]) == 0);
    printf("!platform %d\n", strcmp((const char *)getauxval(AT_PLATFORM), "x86_64") == 0);
}

static void places(const char *prefix, char **argv)
{
    uint64_t local = 0;
    void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *text = malloc(100), *large = malloc(1 << 20), *more = sbrk(1 << 20);

    memset(more, 1, 1 << 20);
    say(prefix, "code", (uint64_t)places);
    say(prefix, "data", (uint64_t)&initialised);
    say(prefix, "cleared", (uint64_t)&cleared);
    say(prefix, "stack", (uint64_t)&local);
    say(prefix, "arguments", (uint64_t)argv[0]);
    say(prefix, "heap", (uint64_t)text);
    say(prefix, "large", (uint64_t)large);
    say(prefix, "map", (uint64_t)map);
    say(prefix, "library", (uint64_t)getauxval(AT_SYSINFO_EHDR));
    say(prefix, "loader", (uint64_t)getauxval(AT_BASE));
    say(prefix, "random", (uint64_t)getauxval(AT_RANDOM));
    fflush(stdout);
}

/* Kills for: prctl, mremap. */
static void filter(void)
{
    const unsigned calls[] = {SYS_prctl, SYS_mremap};
    struct sock_filter code[2 * 2 + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    struct sock_fprog all = {sizeof code / sizeof *code, code};

    for (int i = 0; i < 2; i++) {
        code[1 + 2 * i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        code[2 + 2 * i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    code[5] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, 2, &all) != 0)
        exit(2);
}

/* Each level keeps what the next one uses: no compiler makes a loop of it. */
static int deep(int n, const volatile char *above)
{
    volatile char room[65536];

    room[0] = (char)n;
    if (n % 16 == 0)
        dprintf(1, "deep %d\n", n);
    return n > 4096 ? above[0] : deep(n + 1, room) + room[0] + above[0];
}

int main(int argc, char **argv)
{
    char *const again[] = {argv[0], (char[]){"again"}, NULL};
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "deep") == 0)
        return deep(1, "");
    if (strcmp(what, "filtered") == 0) {
        filter();
        execl("/bin/echo", "echo", "alive", NULL);
    }
    if (strcmp(what, "fail") == 0) {
        mkdir("/tmp/folder", 0700);
        execl("/tmp/folder", "folder", NULL);
        printf("folder %s\n", strerrorname_np(errno));
        close(open("/tmp/empty", O_CREAT | O_WRONLY, 0700));
        execl("/tmp/empty", "empty", NULL);
        printf("empty %s\n", strerrorname_np(errno));
        fflush(stdout);
        return deep(1, "");
    }
    if (argc == 1)
        agree(argv);
    places(argc == 1 ? "" : "again-", argv);
    if (argc == 1)
        execv(argv[0], again);
    return 0;
}
