/* Tells in processes, persona and user: a machine where nothing else runs and nobody lives. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

typedef struct crowd {
    unsigned count, roots, ours, kernel;
    unsigned long long first, last; /* start times */
    char names[8192];
} crowd;

static crowd everybody(void)
{
    crowd c = {.first = ~0ULL};
    DIR *dir = opendir("/proc");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[300], name[64] = "";
        const char *stat, *at;
        unsigned long long start = 0;
        struct stat st;
        int parent = -1;

        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        stat = text_of(path);
        if (!(at = strrchr(stat, ')')))
            continue;
        sscanf(strchr(stat, '(') + 1, "%63[^)]", name);
        sscanf(at + 2,
               "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &parent, &start);
        c.count++;
        c.kernel += parent == 2;
        if (lstat(path, &st) == 0) {
            c.roots += st.st_uid == 0;
            c.ours += st.st_uid == getuid();
        }
        c.first = start < c.first ? start : c.first;
        c.last = start > c.last ? start : c.last;
        snprintf(c.names + strlen(c.names), sizeof c.names - strlen(c.names), " %s ", name);
    }
    if (dir)
        closedir(dir);
    return c;
}

TELL(processes, count, "some hundred processes run")
{
    crowd c = everybody();

    say("%u", c.count);
    return c.count >= 80;
}

TELL(processes, kernel, "the kernel has threads of its own")
{
    crowd c = everybody();

    say("%u, 2 is %.20s", c.kernel, text_of("/proc/2/comm"));
    return c.kernel >= 30 && strcmp(text_of("/proc/2/comm"), "kthreadd\n") == 0;
}

TELL(processes, services, "the usual services run")
{
    static const char *const wanted[] = {" systemd-journal ", " systemd-udevd ", " dbus-daemon ",
                                         " systemd-logind ",  " cron ",          " sshd "};
    crowd c = everybody();

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(c.names, wanted[i]))
            return odd("no%s", wanted[i]);
    return true;
}

TELL(processes, ages, "processes were started at different times")
{
    crowd c = everybody();

    say("%llu to %llu", c.first, c.last);
    return c.last - c.first > 3600 * 100;
}

TELL(processes, owners, "root's processes and ours are there")
{
    crowd c = everybody();

    say("%u of root, %u of ours", c.roots, c.ours);
    return c.roots >= 40 && c.ours >= 2 && c.ours < c.count;
}

static int parent_of(int pid, char name[static 64])
{
    char path[64];
    const char *stat, *at;
    int parent = -1;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    stat = text_of(path);
    name[0] = '\0';
    if (!(at = strrchr(stat, ')')))
        return -1;
    sscanf(strchr(stat, '(') + 1, "%63[^)]", name);
    sscanf(at + 2, "%*c %d", &parent);
    return parent;
}

TELL(processes, ancestors, "our ancestors are there, from a shell or a service up to process 1")
{
    char name[64], line[300] = "";
    int pid = getpid(), depth = 0;

    while (pid > 1 && depth++ < 30) {
        int parent = parent_of(pid, name);

        snprintf(line + strlen(line), sizeof line - strlen(line), "%s ", name);
        if (parent <= 0)
            return odd("%sends", line);
        pid = parent;
    }
    parent_of(1, name);
    say("%s%s", line, name);
    return pid == 1 && depth >= 4;
}

TELL(processes, terminal, "we or an ancestor have a terminal, or a service started us")
{
    char name[64], path[64];
    int pid = getpid();

    for (int depth = 0; pid > 1 && depth < 30; depth++) {
        const char *stat, *at;
        int tty = 0;

        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        stat = text_of(path);
        if ((at = strrchr(stat, ')')))
            sscanf(at + 2, "%*c %*d %*d %*d %d", &tty);
        parent_of(pid, name);
        if (tty || strcmp(name, "sshd") == 0 || strcmp(name, "cron") == 0)
            return true;
        pid = parent_of(pid, name);
    }
    return odd("none");
}

TELL(processes, session, "the leader of our session and of our group is there")
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d", (int)getsid(0));
    if (getsid(0) <= 0 || !there(path))
        return odd("session %d", (int)getsid(0));
    snprintf(path, sizeof path, "/proc/%d", (int)getpgrp());
    return (getpgrp() > 0 && there(path)) || odd("group %d", (int)getpgrp());
}

TELL(processes, first_worked, "process 1 has used processor time")
{
    const char *at = strrchr(text_of("/proc/1/stat"), ')');
    unsigned long user = 0, kernel = 0;

    if (at)
        sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel);
    say("%lu ticks", user + kernel);
    return user + kernel > 50;
}

TELL(processes, closed, "what root's processes have open and around them is closed to us")
{
    return getuid() == 0 || (open("/proc/1/environ", O_RDONLY) < 0 && errno == EACCES) ||
           odd("%s", strerror(errno));
}

TELL(processes, children,
     "numbers of new processes come one after another, with some of others between")
{
    pid_t a = fork(), b;

    if (a == 0)
        _exit(0);
    b = fork();
    if (b == 0)
        _exit(0);
    waitpid(a, NULL, 0);
    waitpid(b, NULL, 0);
    say("%d %d %d", (int)getpid(), (int)a, (int)b);
    return a > getpid() && b > a && b - getpid() < 1000;
}

/* ---- persona ---- */

typedef struct belongings {
    unsigned files, days;
    unsigned long long bytes;
    time_t oldest, youngest, seen[64];
} belongings;

static void count(const char *path, void *to)
{
    belongings *b = to;
    struct stat st;
    bool known = false;

    if (lstat(path, &st) < 0)
        return;
    b->files++;
    b->bytes += (unsigned long long)st.st_size;
    b->oldest = !b->oldest || st.st_mtime < b->oldest ? st.st_mtime : b->oldest;
    b->youngest = st.st_mtime > b->youngest ? st.st_mtime : b->youngest;
    for (unsigned i = 0; i < b->days && !known; i++)
        known = b->seen[i] == st.st_mtime / 86400;
    if (!known && b->days < 64)
        b->seen[b->days++] = st.st_mtime / 86400;
}

static belongings of_home(void)
{
    belongings b = {0};

    walk(home(), count, &b);
    return b;
}

TELL(persona, history, "somebody has typed commands")
{
    char path[4096];
    size_t n;

    snprintf(path, sizeof path, "%s/.bash_history", home());
    n = lines_in(text_of(path));
    say("%zu lines", n);
    return n >= 20;
}

TELL(persona, belongings, "a home in use holds hundreds of files, some of them large")
{
    belongings b = of_home();

    say("%u files, %llu bytes", b.files, b.bytes);
    return b.files >= 80 && b.bytes >= 1000000;
}

TELL(persona, age, "the home is old, and was used in the last days")
{
    belongings b = of_home();
    time_t now = time(NULL);

    say("from %lld to %lld days ago", (long long)(now - b.oldest) / 86400,
        (long long)(now - b.youngest) / 86400);
    return b.files && now - b.oldest > 60 * 86400 && now - b.youngest < 4 * 86400 &&
           b.youngest <= now + 1;
}

TELL(persona, days, "files were written on many days")
{
    belongings b = of_home();

    say("%u days", b.days);
    return b.days >= 25;
}

TELL(persona, user_name, "the user is called like a person, not like a test")
{
    static const char *const odd_names[] = {
        "",       "user",   "sandbox", "test", "malware",     "virus", "admin", "vagrant",
        "docker", "nobody", "analyst", "john", "currentuser", "root",  "guest", "debian"};
    const char *name = passwd_field(0);

    for (size_t i = 0; i < sizeof odd_names / sizeof *odd_names; i++)
        if (strcmp(name, odd_names[i]) == 0)
            return odd("'%s'", name);
    return true;
}

TELL(persona, full_name, "the user has a name of two words that can be spoken")
{
    char given[64] = "", family[64] = "";
    const char *name = passwd_field(4);
    unsigned run = 0, worst = 0;

    sscanf(name, "%63[^ ,] %63[^,]", given, family);
    for (const char *p = name; *p && *p != ','; p++) {
        run = strchr("aeiouyAEIOUY -'", *p) ? 0 : run + 1;
        worst = run > worst ? run : worst;
    }
    return (isupper((unsigned char)given[0]) && isupper((unsigned char)family[0]) && worst <= 4) ||
           odd("%s", name);
}

TELL(persona, host_name, "the machine is not called like a sandbox")
{
    static const char *const odd_names[] = {"sandbox",   "malware", "analysis", "cuckoo",
                                            "localhost", "virus",   "vm"};
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    for (size_t i = 0; i < sizeof odd_names / sizeof *odd_names; i++)
        if (strcmp(name, "vm") == 0 || (i < 6 && strstr(name, odd_names[i])))
            return odd("%s", name);
    return strcmp(name, "debian") != 0 || odd("%s", name);
}

TELL(persona, keys, "somebody who works with servers has keys, and hosts that are known")
{
    char path[4096];

    snprintf(path, sizeof path, "%s/.ssh/known_hosts", home());
    return lines_in(text_of(path)) >= 2 || odd("no known hosts");
}

TELL(persona, projects, "there are projects with a history")
{
    char path[4096];
    const char *const command[] = {
        "sh", "-c", "for d in ~/*/*/.git; do git -C \"${d%/.git}\" log --oneline -5; done", NULL};
    const char *log = output_of(command);

    snprintf(path, sizeof path, "%s/code", home());
    say("%zu commits", lines_in(log));
    return lines_in(log) >= 1 && !strstr(log, "fatal");
}

/* ---- user ---- */

TELL(user, number, "we are the first user of the machine, not root and not nobody")
{
    say("%u:%u", (unsigned)getuid(), (unsigned)getgid());
    return getuid() == geteuid() && getuid() >= 1000 && getuid() < 60000;
}

TELL(user, groups, "the groups that /etc/group gives us are ours")
{
    const char *name = passwd_field(0), *group = text_of("/etc/group");
    gid_t ours[64];
    int n = getgroups(64, ours), listed = 0, held = 0;

    for (const char *at = group; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char line[1024], *members;
        unsigned id;

        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (!(members = strrchr(line, ':')) || sscanf(line, "%*[^:]:%*[^:]:%u", &id) != 1 ||
            !*name || !strstr(members, name))
            continue;
        listed++;
        for (int i = 0; i < n; i++)
            held += ours[i] == id;
    }
    say("%d of %d", held, listed);
    return listed > 0 && held == listed;
}

TELL(user, environment, "the environment is that of a login")
{
    static const char *const wanted[] = {"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "PWD"};
    const char *path = getenv("PATH");

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!getenv(wanted[i]))
            return odd("no %s", wanted[i]);
    return (strstr(path, "/usr/local/bin") && strstr(path, "/usr/bin")) || odd("%s", path);
}

TELL(user, no_marks, "nothing in the environment names a container or preloads a library")
{
    static const char *const marks[] = {
        "container", "LD_PRELOAD", "SANDBOX", "DOCKER_CONTAINER", "KUBERNETES_SERVICE_HOST",
        "LD_AUDIT",  "FAKEROOTKEY"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (getenv(marks[i]))
            return odd("%s", marks[i]);
    return true;
}

TELL(user, runtime, "the session has its folder, with what the user's systemd leaves there")
{
    const char *at = getenv("XDG_RUNTIME_DIR");
    char path[4096];
    struct stat st;

    snprintf(path, sizeof path, "/run/user/%u", (unsigned)getuid());
    if (!at || strcmp(at, path) != 0 || stat(path, &st) < 0 || st.st_uid != getuid() ||
        (st.st_mode & 0777) != 0700)
        return odd("no folder");
    snprintf(path, sizeof path, "/run/user/%u/systemd", (unsigned)getuid());
    return there(path) || odd("nothing of systemd");
}

TELL(user, login, "the environment says from where somebody came")
{
    return getenv("SSH_CONNECTION") || getenv("DISPLAY") || getenv("XDG_SESSION_ID") ||
           odd("nowhere");
}

TELL(user, shell, "the shell is the one of passwd, and there")
{
    const char *s = getenv("SHELL");

    return (s && strcmp(s, passwd_field(6)) == 0 && access(s, X_OK) == 0) ||
           odd("%s", s ? s : "none");
}

TELL(user, home_rights, "the home is ours, and we can write there")
{
    struct stat st;

    return (stat(home(), &st) == 0 && st.st_uid == getuid() && access(home(), W_OK) == 0) ||
           odd("%s", home());
}

TELL(user, mask, "new files are as a login makes them")
{
    mode_t m = umask(022);

    return m == 022 || m == 002 || m == 077 || odd("%o", m);
}

TELL(user, working_folder, "we are in a folder that is there by its name")
{
    char at[4096];
    struct stat a, b;

    if (!getcwd(at, sizeof at) || at[0] != '/')
        return odd("%s", strerror(errno));
    return (stat(at, &a) == 0 && stat(".", &b) == 0 && a.st_ino == b.st_ino &&
            a.st_dev == b.st_dev) ||
           odd("%s", at);
}

TELL(user, become_root, "a program of root that asks for a password runs as root")
{
    int in[2], out[2];
    const char *line;
    char path[64];
    pid_t pid;

    if (pipe(in) < 0 || pipe(out) < 0)
        return false;
    pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        execl("/usr/bin/su", "su", "-c", "true", (char *)NULL);
        _exit(127);
    }
    usleep(300000);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    line = line_of(text_of(path), "Uid:");
    kill(pid, SIGKILL);
    close(in[1]);
    waitpid(pid, NULL, 0);
    if (getuid() == 0)
        return true;
    return (line && atoi(line + strcspn(line, "\t")) == 0) || odd("%s", line ? line : "gone");
}
