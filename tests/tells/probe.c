/* A program that looks for signs that it does not run on a real machine, as hostile programs do.
 * Prints a line for each tell: natural or shown, its name, what was seen, what a real machine says.
 * Each tell is looked for in a process of its own, so that one that crashes or hangs is one that
 * shows. Static, so that nothing that a loader does is needed; it never changes anything but files
 * of its own in /tmp. */
#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

extern const tell *const __start_tells[], *const __stop_tells[];

enum { TEXT = 1 << 20, TEXTS = 4, MOST_SECONDS = 20 };

static char seen[400];

__attribute__((format(printf, 1, 0))) static void keep(const char *format, va_list more)
{
    vsnprintf(seen, sizeof seen, format, more);
    for (char *p = seen; *p; p++)
        if ((unsigned char)*p < ' ')
            *p = ' ';
}

void say(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    keep(format, more);
    va_end(more);
}

bool odd(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    keep(format, more);
    va_end(more);
    return false;
}

static char *room(void)
{
    static char rooms[TEXTS][TEXT];
    static unsigned next;

    return rooms[next++ % TEXTS];
}

static const char *read_all(int fd)
{
    char *to = room();
    size_t have = 0;
    ssize_t n;

    while (have < TEXT - 1 && (n = read(fd, to + have, TEXT - 1 - have)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        have += (size_t)n;
    }
    to[have] = '\0';
    return to;
}

const char *text_of(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *text;

    if (fd < 0)
        return "";
    text = read_all(fd);
    close(fd);
    return text;
}

const char *line_of(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        char *line;
        size_t len;

        if (strncmp(at, word, n) != 0)
            continue;
        at += n;
        at += strspn(at, " \t:");
        len = strcspn(at, "\n");
        line = room();
        snprintf(line, TEXT, "%.*s", (int)len, at);
        while (len && (line[len - 1] == ' ' || line[len - 1] == '\t'))
            line[--len] = '\0';
        return line;
    }
    return NULL;
}

bool has_line(const char *text, const char *line_begin)
{
    return line_of(text, line_begin) != NULL;
}

size_t lines_in(const char *text)
{
    size_t n = 0;

    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

bool there(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

size_t entries_in(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t n = 0;

    for (struct dirent *e; dir && (e = readdir(dir));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (dir)
        closedir(dir);
    return n;
}

const char *link_of(const char *path)
{
    char *to = room();
    ssize_t n = readlink(path, to, 4095);

    to[n < 0 ? 0 : n] = '\0';
    return to;
}

const char *release(void)
{
    static struct utsname u;

    uname(&u);
    return u.release;
}

int64_t now_ns(int clock)
{
    struct timespec t = {0};

    syscall(SYS_clock_gettime, clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double uptime(void)
{
    return atof(text_of("/proc/uptime"));
}

const char *by_child(void (*act)(int fd))
{
    const char *text;
    int pair[2];
    pid_t pid;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return "";
    pid = fork();
    if (pid == 0) {
        close(pair[0]);
        act(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    text = read_all(pair[0]);
    close(pair[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return text;
}

static const char *const *to_run;

static void run_it(int fd)
{
    static const char *const with[] = {"/usr/bin", "/bin", "/usr/sbin", "/sbin"};
    char path[4096];
    int null = open("/dev/null", O_RDONLY);

    dup2(null, 0);
    dup2(fd, 1);
    dup2(fd, 2);
    if (strchr(to_run[0], '/'))
        execv(to_run[0], (char *const *)(uintptr_t)to_run);
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        snprintf(path, sizeof path, "%s/%s", with[i], to_run[0]);
        execv(path, (char *const *)(uintptr_t)to_run);
    }
    _exit(127);
}

const char *output_of(const char *const *command)
{
    to_run = command;
    return by_child(run_it);
}

const char *again(const char *what)
{
    static char self[4096];
    const char *command[] = {self, "--answer", what, NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n < 0)
        return "";
    self[n] = '\0';
    return output_of(command);
}

int cpus_in_cpuinfo(void)
{
    int n = 0;

    for (const char *at = text_of("/proc/cpuinfo"); (at = strstr(at, "processor\t:")); at++)
        n++;
    return n;
}

const guest *hypervisor(void)
{
    static const guest all[] = {
        {"KVMKVMKVM",
         "|QEMU|Amazon EC2|Google|OpenStack|DigitalOcean|Hetzner|KubeVirt|Red Hat|KVM|",
         "|virtio_net|e1000|e1000e|ena|gve|", "|QEMU|Amazon Elastic Block Store|nvme_card|"},
        {"VMwareVMware", "|VMware|", "|vmxnet3|e1000e|e1000|", "|VMware|"},
        {"Microsoft Hv", "|Microsoft|", "|hv_netvsc|mlx5_core|mana|", "|Msft|MSFT|Virtual Disk|"},
        {"XenVMMXenVMM", "|Xen|Amazon EC2|", "|vif|e1000|", "|QEMU|Xen|"},
    };
    static const guest other = {"unknown", "", "", ""};
    unsigned a = 0, b = 0, c = 0, d = 0;
    char name[13] = "";

    __get_cpuid(1, &a, &b, &c, &d);
    if (!(c >> 31))
        return NULL;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].signature, name) == 0)
            return &all[i];
    return &other;
}

bool has_one_of(const char *words, const char *text)
{
    char word[64];

    for (; *words && words[1]; words += strcspn(words + 1, "|") + 1) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(words + 1, "|"), words + 1);
        if (*word && strstr(text, word))
            return true;
    }
    return false;
}

const char *passwd_field(int number)
{
    const char *all = text_of("/etc/passwd");
    char id[32], *row = room();

    snprintf(id, sizeof id, ":x:%u:", (unsigned)getuid());
    for (const char *at = all; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        char *field = row;

        snprintf(row, TEXT, "%.*s", (int)strcspn(at, "\n"), at);
        if (!strstr(row, id) || strstr(row, id) != strchr(row, ':'))
            continue;
        while (number-- > 0 && field)
            field = strchr(field, ':') ? strchr(field, ':') + 1 : NULL;
        if (field)
            field[strcspn(field, ":")] = '\0';
        return field ? field : "";
    }
    return "";
}

const char *home(void)
{
    const char *h = getenv("HOME");

    return h ? h : "/nonexistent";
}

static void walk_to(const char *folder, int depth, void (*act)(const char *, void *), void *to)
{
    DIR *dir = depth ? opendir(folder) : NULL;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096];
        struct stat st;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= sizeof path)
            continue;
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
            walk_to(path, depth - 1, act, to);
        else
            act(path, to);
    }
    if (dir)
        closedir(dir);
}

void walk(const char *folder, void (*act)(const char *path, void *to), void *to)
{
    walk_to(folder, 8, act, to);
}

/* ---- the list ---- */

static bool look(const tell *t)
{
    int pair[2], status = 0;
    ssize_t n;
    pid_t pid;

    snprintf(seen, sizeof seen, "cannot look");
    if (pipe2(pair, O_CLOEXEC) < 0)
        return false;
    pid = fork();
    if (pid == 0) {
        bool natural;

        signal(SIGALRM, SIG_DFL);
        alarm(MOST_SECONDS);
        seen[0] = '\0';
        natural = t->natural();
        write(pair[1], seen, strlen(seen));
        _exit(natural ? 0 : 1);
    }
    close(pair[1]);
    n = read(pair[0], seen, sizeof seen - 1);
    seen[n < 0 ? 0 : n] = '\0';
    close(pair[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        say("died of signal %d", WTERMSIG(status));
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "--answer") == 0) {
        answer(argv[2]);
        return 0;
    }
    for (const tell *const *t = __start_tells; t < __stop_tells; t++) {
        char name[100];

        snprintf(name, sizeof name, "%s.%s", (*t)->group, (*t)->name);
        if (argc > 1 && strncmp(name, argv[1], strlen(argv[1])) != 0)
            continue;
        printf("%s\t%s", look(*t) ? "natural" : "shown", name);
        printf("\t%s\t%s\n", seen, (*t)->reason);
    }
    return 0;
}
