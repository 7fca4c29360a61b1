/* Tells in /proc: what the kernel says of this process, of the first one and of the machine. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

static bool status_is(const char *word, const char *wanted)
{
    const char *line = line_of(text_of("/proc/self/status"), word);

    return (line && strcmp(line, wanted) == 0) || odd("%s", line ? line : "no such line");
}

static long long number_of(const char *path, const char *word)
{
    const char *line = line_of(text_of(path), word);

    return line ? atoll(line) : -1;
}

TELL(proc, first_name, "process 1 is systemd")
{
    const char *name = text_of("/proc/1/comm");

    return strcmp(name, "systemd\n") == 0 || odd("%s", name);
}

TELL(proc, first_command, "process 1 was started as /sbin/init or systemd")
{
    const char *c = text_of("/proc/1/cmdline");

    return strncmp(c, "/sbin/init", 10) == 0 || strstr(c, "systemd") || odd("%s", c);
}

TELL(proc, first_closed, "a user cannot look where process 1's program, files and namespaces lie")
{
    char to[256];

    if (getuid() == 0)
        return there("/proc/1/exe");
    return (readlink("/proc/1/exe", to, sizeof to) < 0 && errno == EACCES &&
            readlink("/proc/1/ns/pid", to, sizeof to) < 0 && errno == EACCES &&
            !opendir("/proc/1/fd") && errno == EACCES) ||
           odd("%s", strerror(errno));
}

TELL(proc, first_start, "process 1 was started in the first second")
{
    const char *stat = text_of("/proc/1/stat"), *at = strrchr(stat, ')');
    unsigned long long start = 99999;

    if (at)
        sscanf(at + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start);
    say("%llu ticks", start);
    return start < 500;
}

TELL(proc, first_cgroup, "process 1 is in init.scope")
{
    const char *c = text_of("/proc/1/cgroup");

    return strcmp(c, "0::/init.scope\n") == 0 || odd("%s", c);
}

TELL(proc, cgroup, "we are in a session or a service of systemd")
{
    const char *c = text_of("/proc/self/cgroup");

    return (lines_in(c) == 1 && strncmp(c, "0::/", 4) == 0 &&
            (strstr(c, ".scope") || strstr(c, ".service"))) ||
           odd("%s", c);
}

TELL(proc, tracer, "nobody traces us")
{
    return status_is("TracerPid:", "0");
}

TELL(proc, seccomp, "a login has no seccomp filter")
{
    return status_is("Seccomp:", "0");
}

TELL(proc, filters, "a login has no seccomp filter, by their number")
{
    return status_is("Seccomp_filters:", "0");
}

TELL(proc, new_privileges, "a login may gain rights")
{
    return status_is("NoNewPrivs:", "0");
}

TELL(proc, bounding_set, "no capability was taken from the bounding set")
{
    return status_is("CapBnd:", "000001ffffffffff");
}

TELL(proc, nested_pid, "we have one number in one pid namespace")
{
    const char *line = line_of(text_of("/proc/self/status"), "NSpid:");

    return (line && atoi(line) == getpid() && !strpbrk(line, "\t ")) || odd("%s", line ? line : "");
}

TELL(proc, cpus_allowed, "we may use every processor")
{
    const char *line = line_of(text_of("/proc/self/status"), "Cpus_allowed_list:");
    char wanted[32];

    snprintf(wanted, sizeof wanted, "0-%d", cpus_in_cpuinfo() - 1);
    return (line && strcmp(line, wanted) == 0) || odd("%s of %s", line ? line : "", wanted);
}

TELL(proc, id_maps, "user and group numbers are not mapped")
{
    unsigned long a = 1, b = 1, n = 0;
    const char *u = text_of("/proc/self/uid_map");

    sscanf(u, "%lu %lu %lu", &a, &b, &n);
    if (a || b || n != 4294967295UL || lines_in(u) != 1)
        return odd("%s", u);
    a = 1;
    sscanf(text_of("/proc/self/gid_map"), "%lu %lu %lu", &a, &b, &n);
    return !a && !b && n == 4294967295UL &&
           strncmp(text_of("/proc/self/setgroups"), "allow", 5) == 0;
}

static const char *root_mount(char kind[static 64])
{
    const char *at = text_of("/proc/self/mounts");
    static char from[256];

    from[0] = kind[0] = '\0';
    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char a[256], where[256], what[64];

        if (sscanf(at, "%255s %255s %63s", a, where, what) == 3 && strcmp(where, "/") == 0) {
            memcpy(from, a, sizeof from);
            memcpy(kind, what, 64);
        }
    }
    return from;
}

TELL(proc, root_mount, "the root is a disk's file system")
{
    char kind[64];
    const char *from = root_mount(kind);

    say("%s %s", from, kind);
    return strncmp(from, "/dev/", 5) == 0 &&
           (!strcmp(kind, "ext4") || !strcmp(kind, "xfs") || !strcmp(kind, "btrfs"));
}

TELL(proc, usual_mounts, "what systemd mounts is mounted")
{
    static const char *const wanted[] = {
        " /proc proc ",      " /sys sysfs ",     " /dev devtmpfs ",          " /run tmpfs ",
        " /dev/pts devpts ", " /dev/shm tmpfs ", " /sys/fs/cgroup cgroup2 ", " /run/lock tmpfs "};
    const char *mounts = text_of("/proc/self/mounts");

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(mounts, wanted[i]))
            return odd("no%s", wanted[i]);
    return true;
}

TELL(proc, no_strange_mounts, "no folder or file of the system is mounted by itself")
{
    const char *at = text_of("/proc/self/mountinfo");

    if (!*at)
        return odd("no mountinfo");
    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char root[256], where[256];

        if (sscanf(at, "%*d %*d %*s %255s %255s", root, where) == 2 && strcmp(root, "/") != 0)
            return odd("%s on %s", root, where);
    }
    return true;
}

TELL(proc, mounts_agree,
     "the three lists of mounts are of one length, and statfs of one mind with them")
{
    size_t a = lines_in(text_of("/proc/self/mounts")),
           b = lines_in(text_of("/proc/self/mountinfo")),
           c = lines_in(text_of("/proc/self/mountstats"));

    say("%zu %zu %zu", a, b, c);
    return a && a == b && b == c;
}

TELL(proc, mount_id, "a descriptor's mount is in the list")
{
    int fd = open("/etc/passwd", O_RDONLY);
    const char *id, *at;
    char path[64], begin[32];

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    id = line_of(text_of(path), "mnt_id:");
    if (!id)
        return odd("no number");
    snprintf(begin, sizeof begin, "%s ", id);
    at = text_of("/proc/self/mountinfo");
    return has_line(at, begin) || odd("%s", id);
}

TELL(proc, running, "who reads its own state runs")
{
    const char *stat = text_of("/proc/self/stat"), *at = strrchr(stat, ')');

    return (at && at[2] == 'R' && status_is("State:", "R (running)")) || odd("%.3s", at ? at : "");
}

TELL(proc, waiting_child, "a child that sleeps is asleep, not stopped by a tracer")
{
    pid_t pid = fork();
    const char *state, *where;
    char path[64];

    if (pid == 0) {
        pause();
        _exit(0);
    }
    usleep(30000);
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    state = line_of(text_of(path), "State:");
    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    where = text_of(path);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!state || state[0] != 'S')
        return odd("%s", state ? state : "");
    return !strstr(where, "ptrace") || odd("%s", where);
}

TELL(proc, switches, "calls that do not wait do not give up the processor")
{
    long long before = number_of("/proc/self/status", "voluntary_ctxt_switches:"), after;

    for (int i = 0; i < 300; i++)
        syscall(SYS_getppid);
    after = number_of("/proc/self/status", "voluntary_ctxt_switches:");
    say("%lld in 300 calls", after - before);
    return before >= 0 && after - before < 20;
}

TELL(proc, system_call, "the call that reads it is a read, by /proc/self/syscall")
{
    const char *s = text_of("/proc/self/syscall");

    return strncmp(s, "0 0x", 4) == 0 || (getuid() && !*s) || odd("%s", s);
}

TELL(proc, version, "version names the release, the builder and the compiler")
{
    const char *v = text_of("/proc/version");

    return (strstr(v, release()) && strstr(v, "gcc") && strstr(v, "debian")) || odd("%s", v);
}

TELL(proc, release_agrees, "uname and /proc/sys name one release, and it is one of Debian")
{
    const char *r = text_of("/proc/sys/kernel/osrelease");

    return (strncmp(r, release(), strlen(release())) == 0 && strstr(r, "-amd64")) || odd("%s", r);
}

TELL(proc, command_line, "the kernel was started by a boot loader with a root")
{
    const char *c = text_of("/proc/cmdline");

    return (strstr(c, "BOOT_IMAGE=") && strstr(c, "root=") && strstr(c, release())) ||
           odd("%.100s", c);
}

TELL(proc, hypervisor,
     "cpuinfo has the flag of a hypervisor where the processor has it, and only there")
{
    bool flag = strstr(text_of("/proc/cpuinfo"), " hypervisor");

    return flag == (hypervisor() != NULL) || odd("%s", flag ? "hypervisor" : "no hypervisor");
}

TELL(proc, processors_agree, "cpuinfo, stat, interrupts and /sys count the same processors")
{
    const char *stat = text_of("/proc/stat");
    int n = cpus_in_cpuinfo(), m = 0, k = 0;
    const char *interrupts;

    for (const char *at = stat; (at = strstr(at, "\ncpu")); at++)
        m++;
    interrupts = text_of("/proc/interrupts");
    for (const char *at = interrupts; (at = strstr(at, "CPU")) && at < strchr(interrupts, '\n');
         at++)
        k++;
    say("%d %d %d %ld", n, m, k, sysconf(_SC_NPROCESSORS_CONF));
    return n && n == m && n == k && n == sysconf(_SC_NPROCESSORS_CONF);
}

TELL(proc, many_processors,
     "a machine that somebody works at has four processors or more, a virtual one two")
{
    say("%d", cpus_in_cpuinfo());
    return cpus_in_cpuinfo() >= (hypervisor() && there("/sys/class/dmi/id/sys_vendor") ? 2 : 4);
}

TELL(proc, uptime, "the machine has been up for longer than it takes to start a sandbox")
{
    say("%.0f s", uptime());
    return uptime() > 3600;
}

TELL(proc, uptime_agrees, "uptime, CLOCK_BOOTTIME, sysinfo and btime agree")
{
    struct sysinfo s;
    double up = uptime(), boot = (double)now_ns(CLOCK_BOOTTIME) / 1e9;
    long long btime = number_of("/proc/stat", "btime");

    sysinfo(&s);
    say("%.1f %.1f %ld %lld", up, boot, s.uptime, (long long)time(NULL) - btime);
    return up - boot < 1 && boot - up < 1 && (double)s.uptime - up < 2 &&
           up - (double)s.uptime < 2 && (double)(time(NULL) - btime) - up < 3 &&
           up - (double)(time(NULL) - btime) < 3;
}

TELL(proc, load, "a hundred tasks or more, and the last number is ours or later")
{
    int running, all = 0, last = 0;

    sscanf(text_of("/proc/loadavg"), "%*f %*f %*f %d/%d %d", &running, &all, &last);
    say("%d tasks, last %d", all, last);
    return all >= 100 && last >= getpid();
}

TELL(proc, memory_agrees, "meminfo and sysinfo know the same memory, of four gigabytes or more")
{
    struct sysinfo s;
    long long kb = number_of("/proc/meminfo", "MemTotal:");

    sysinfo(&s);
    say("%lld kB, %llu", kb, (unsigned long long)s.totalram * s.mem_unit / 1024);
    return kb > 3500000 && (long long)(s.totalram * s.mem_unit / 1024) == kb;
}

TELL(proc, disks, "partitions and diskstats know the disk of the root")
{
    char kind[64];
    const char *from = root_mount(kind), *name = strrchr(from, '/');

    if (!name || !strstr(text_of("/proc/partitions"), name + 1))
        return odd("no %s in partitions", from);
    return strstr(text_of("/proc/diskstats"), name + 1) || odd("no %s in diskstats", from);
}

TELL(proc, swap, "there is some swap, or a table of it at least")
{
    return strncmp(text_of("/proc/swaps"), "Filename", 8) == 0;
}

TELL(proc, modules, "Debian's kernel has loaded many modules")
{
    size_t n = lines_in(text_of("/proc/modules"));

    say("%zu", n);
    return n > 50;
}

TELL(proc, file_systems, "the kernel knows ext4 and fuse")
{
    const char *f = text_of("/proc/filesystems");

    return (strstr(f, "\text4") && strstr(f, "fuse")) || odd("%zu", lines_in(f));
}

TELL(proc, kernel_names, "kallsyms is there, with addresses hidden")
{
    const char *k = text_of("/proc/kallsyms");

    return (strncmp(k, "0000000000000000 ", 17) == 0 || (getuid() == 0 && *k)) || odd("%.40s", k);
}

TELL(proc, boot_id, "the number of this boot stays")
{
    char first[64];

    snprintf(first, sizeof first, "%s", text_of("/proc/sys/kernel/random/boot_id"));
    return (strlen(first) == 37 &&
            strcmp(first, text_of("/proc/sys/kernel/random/boot_id")) == 0) ||
           odd("%s", first);
}

TELL(proc, login, "we logged in: loginuid and sessionid are set")
{
    const char *l = text_of("/proc/self/loginuid"), *s = text_of("/proc/self/sessionid");

    return (strtoul(l, NULL, 10) == getuid() && *s && strcmp(s, "4294967295") != 0) ||
           odd("%s, session %s", l, s);
}

TELL(proc, own_start, "we were started when we think")
{
    const char *stat = text_of("/proc/self/stat"), *at = strrchr(stat, ')');
    unsigned long long start = 0;
    double ago;

    if (at)
        sscanf(at + 2,
               "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &start);
    ago = uptime() - (double)start / (double)sysconf(_SC_CLK_TCK);
    say("%.2f s ago", ago);
    return ago >= -0.02 && ago < 60;
}

TELL(proc, map_device, "what is mapped lies on the device of the file, and has its inode")
{
    const char *exe = link_of("/proc/self/exe");
    unsigned long ma = 0, mi = 0;
    unsigned long long inode = 0;
    struct stat st;

    for (const char *at = text_of("/proc/self/maps"); *at;
         at += strcspn(at, "\n"), at += *at == '\n') {
        char line[4400];

        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (*exe && strstr(line, exe))
            sscanf(line, "%*s %*s %*s %lx:%lx %llu", &ma, &mi, &inode);
    }
    if (!inode || stat("/proc/self/exe", &st) < 0)
        return odd("%s is not mapped", exe);
    say("%lx:%lx and %x:%x, %llu and %llu", ma, mi, major(st.st_dev), minor(st.st_dev), inode,
        (unsigned long long)st.st_ino);
    return makedev(ma, mi) == st.st_dev && inode == st.st_ino;
}

TELL(proc, vdso, "the kernel's clock code is mapped, and auxv says where")
{
    const char *maps = text_of("/proc/self/maps");
    unsigned long at = getauxval(AT_SYSINFO_EHDR);
    char begin[40];

    snprintf(begin, sizeof begin, "\n%lx-", at);
    if (!at)
        return odd("not in auxv");
    return (strstr(maps, "[vdso]") && strstr(maps, "[vvar]") && strstr(maps, begin)) ||
           odd("not mapped");
}

TELL(proc, auxv_file, "/proc/self/auxv is what we were given")
{
    int fd = open("/proc/self/auxv", O_RDONLY);
    ElfW(auxv_t) all[64];
    ssize_t n = fd < 0 ? -1 : read(fd, all, sizeof all);

    for (ssize_t i = 0; i < n / (ssize_t)sizeof *all && all[i].a_type; i++)
        if (all[i].a_type != AT_EXECFN && all[i].a_type != AT_HWCAP &&
            getauxval(all[i].a_type) != all[i].a_un.a_val)
            return odd("row %lu", (unsigned long)all[i].a_type);
    return n > 0 || odd("cannot be read");
}

TELL(proc, limits, "limits are those of a login: 1024 files, core off, 8 MiB of stack")
{
    struct rlimit files, stack, core, cpu, size;

    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_STACK, &stack);
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_CPU, &cpu);
    getrlimit(RLIMIT_FSIZE, &size);
    say("files %lld/%lld stack %lld core %lld cpu %lld size %lld", (long long)files.rlim_cur,
        (long long)files.rlim_max, (long long)stack.rlim_cur, (long long)core.rlim_max,
        (long long)cpu.rlim_cur, (long long)size.rlim_cur);
    return files.rlim_cur == 1024 && files.rlim_max == 1048576 && stack.rlim_cur == 8 << 20 &&
           stack.rlim_max == RLIM_INFINITY && core.rlim_max == RLIM_INFINITY &&
           cpu.rlim_cur == RLIM_INFINITY && size.rlim_cur == RLIM_INFINITY;
}

TELL(proc, limits_file, "/proc/self/limits says the same as the call")
{
    const char *line = line_of(text_of("/proc/self/limits"), "Max open files");
    struct rlimit files;

    getrlimit(RLIMIT_NOFILE, &files);
    return (line && strtoull(line, NULL, 10) == files.rlim_cur) || odd("%s", line ? line : "");
}

TELL(proc, oom, "nobody said that we are to be killed first")
{
    const char *o = text_of("/proc/self/oom_score_adj");

    return strcmp(o, "0\n") == 0 || strcmp(o, "200\n") == 0 || strcmp(o, "100\n") == 0 ||
           odd("%s", o);
}

TELL(proc, namespaces, "we are in the machine's first namespaces")
{
    static const struct {
        const char *name, *to;
    } first[] = {{"pid", "pid:[4026531836]"},       {"user", "user:[4026531837]"},
                 {"uts", "uts:[4026531838]"},       {"ipc", "ipc:[4026531839]"},
                 {"cgroup", "cgroup:[4026531835]"}, {"time", "time:[4026531834]"}};

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        char path[64];

        snprintf(path, sizeof path, "/proc/self/ns/%s", first[i].name);
        if (strcmp(link_of(path), first[i].to) != 0)
            return odd("%s", link_of(path));
    }
    return true;
}

TELL(proc, namespace_inodes, "stat and the link of a namespace name one number")
{
    struct stat st;
    char name[64];

    if (stat("/proc/self/ns/pid", &st) < 0)
        return odd("%s", strerror(errno));
    snprintf(name, sizeof name, "pid:[%llu]", (unsigned long long)st.st_ino);
    return strcmp(name, link_of("/proc/self/ns/pid")) == 0 || odd("%s", name);
}

TELL(proc, time_offsets, "no clock of ours is shifted")
{
    const char *t = text_of("/proc/self/timens_offsets");
    long long a = 1, b = 1;

    sscanf(t, "monotonic %lld %*d\nboottime %lld", &a, &b);
    return (!a && !b) || odd("%s", t);
}

TELL(proc, randomised, "addresses are random by the kernel's own setting, and no persona says else")
{
    const char *p = text_of("/proc/self/personality");

    if (strcmp(text_of("/proc/sys/kernel/randomize_va_space"), "2\n") != 0)
        return odd("randomize_va_space");
    return !*p || strcmp(p, "00000000\n") == 0 || odd("personality %s", p);
}

TELL(proc, pid_max, "64-bit machines with systemd count to 4194304")
{
    const char *n = text_of("/proc/sys/kernel/pid_max");

    return strcmp(n, "4194304\n") == 0 || odd("%s", n);
}

TELL(proc, entropy_pool, "the pool is full: 256")
{
    const char *n = text_of("/proc/sys/kernel/random/entropy_avail");

    return strcmp(n, "256\n") == 0 || odd("%s", n);
}

TELL(proc, own_environment, "/proc/self/environ is our environment")
{
    const char *h = getenv("HOME"), *e = text_of("/proc/self/environ");

    return (h && *e) || odd("empty");
}

TELL(proc, whole, "/proc has its usual files")
{
    static const char *const wanted[] = {
        "buddyinfo",  "bus",      "consoles",    "crypto",   "devices", "dma",
        "driver",     "fb",       "iomem",       "ioports",  "irq",     "kcore",
        "key-users",  "keys",     "kmsg",        "locks",    "misc",    "mtrr",
        "net",        "pressure", "sched_debug", "softirqs", "sys",     "sysrq-trigger",
        "timer_list", "tty",      "vmallocinfo", "vmstat",   "zoneinfo"};
    unsigned missing = 0;
    const char *first = "";

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char path[64];

        snprintf(path, sizeof path, "/proc/%s", wanted[i]);
        if (!there(path) && strcmp(wanted[i], "sched_debug") != 0) {
            missing++;
            first = wanted[i];
        }
    }
    return missing <= 3 || odd("%u are missing, %s too", missing, first);
}

TELL(proc, sysctl, "settings of the kernel can be read: domain, swappiness, dmesg, userns")
{
    static const char *const wanted[] = {"kernel/dmesg_restrict",
                                         "vm/swappiness",
                                         "fs/file-max",
                                         "kernel/threads-max",
                                         "kernel/perf_event_paranoid",
                                         "kernel/unprivileged_userns_clone",
                                         "net/core/somaxconn",
                                         "kernel/yama/ptrace_scope",
                                         "kernel/core_pattern"};

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char path[96];

        snprintf(path, sizeof path, "/proc/sys/%s", wanted[i]);
        if (!there(path))
            return odd("no %s", path);
    }
    return true;
}
