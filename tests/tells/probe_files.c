/* Tells in files: what a machine that was installed and used has on its disk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <utmp.h>

#include "probe.h"

static bool none_of(const char *const *paths)
{
    for (; *paths; paths++)
        if (there(*paths))
            return odd("%s", *paths);
    return true;
}

static bool all_of(const char *const *paths)
{
    for (; *paths; paths++)
        if (!there(*paths))
            return odd("no %s", *paths);
    return true;
}

#define NONE_OF(...) none_of((const char *const[]){__VA_ARGS__, NULL})
#define ALL_OF(...)  all_of((const char *const[]){__VA_ARGS__, NULL})

TELL(files, docker, "only containers have /.dockerenv")
{
    return NONE_OF("/.dockerenv", "/.dockerinit");
}

TELL(files, containers,
     "only containers have /run/.containerenv, /run/systemd/container, /run/host")
{
    return NONE_OF("/run/.containerenv", "/run/systemd/container", "/run/host", "/dev/.lxc",
                   "/.flatpak-info", "/.singularity.d", "/dev/incus", "/dev/lxd");
}

TELL(files, guests, "no guest additions, agents or share drivers of a virtual machine")
{
    return NONE_OF("/dev/vboxguest", "/dev/vboxuser", "/dev/vmci", "/dev/virtio-ports",
                   "/dev/vport0p1", "/usr/bin/VBoxClient", "/usr/bin/vmtoolsd", "/usr/sbin/qemu-ga",
                   "/etc/qemu", "/dev/hyperv", "/dev/vsock_guest");
}

TELL(files, root_whole, "a Debian root has all of its usual folders")
{
    return ALL_OF("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt",
                  "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr",
                  "/var");
}

TELL(files, root_plain, "nothing lies in / that neither Debian nor an administrator puts there")
{
    static const char known[] = " bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc "
                                "root run sbin srv sys tmp usr var lost+found initrd.img "
                                "initrd.img.old vmlinuz vmlinuz.old swapfile swap.img data snap ";
    DIR *dir = opendir("/");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char word[300];

        snprintf(word, sizeof word, " %s ", e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !strstr(known, word))
            return odd("/%s", e->d_name);
    }
    return dir != NULL;
}

TELL(files, kernel_image, "the running kernel lies in /boot, with its config and initrd")
{
    static const char *const parts[] = {"vmlinuz", "config", "initrd.img", "System.map"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char path[300];

        snprintf(path, sizeof path, "/boot/%s-%s", parts[i], release());
        if (!there(path))
            return odd("no %s", path);
    }
    return true;
}

TELL(files, kernel_modules, "the running kernel has its modules in /lib/modules")
{
    char path[300];

    snprintf(path, sizeof path, "/lib/modules/%s/modules.dep", release());
    return there(path) || odd("no %s", path);
}

TELL(files, os_release, "os-release and debian_version say Debian 12")
{
    const char *os = text_of("/etc/os-release"), *version = text_of("/etc/debian_version");

    return (has_line(os, "VERSION_CODENAME=bookworm") && strncmp(version, "12", 2) == 0) ||
           odd("debian_version: %.20s", version);
}

TELL(files, fstab, "fstab has a row for / whose kind is the one that is mounted")
{
    const char *fstab = text_of("/etc/fstab"), *mounts = text_of("/proc/self/mounts");
    char kind[64] = "", mounted[64] = "";

    for (const char *at = fstab; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char line[512], where[256], what[64];

        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (line[0] != '#' && sscanf(line, "%*s %255s %63s", where, what) == 2 &&
            strcmp(where, "/") == 0)
            memcpy(kind, what, sizeof kind);
    }
    for (const char *at = mounts; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char where[256], what[64];

        if (sscanf(at, "%*s %255s %63s", where, what) == 2 && strcmp(where, "/") == 0)
            memcpy(mounted, what, sizeof mounted);
    }
    return (kind[0] && strcmp(kind, mounted) == 0) || odd("fstab %s, mounted %s", kind, mounted);
}

TELL(files, machine_id, "machine-id is 32 hex digits")
{
    const char *id = text_of("/etc/machine-id");

    return (strspn(id, "0123456789abcdef") == 32 && strspn(id, "0") < 32) || odd("%.40s", id);
}

TELL(files, host_name,
     "/etc/hostname, the call and /proc agree, and it is no number of a container")
{
    char name[256] = "";
    const char *file = text_of("/etc/hostname"), *proc = text_of("/proc/sys/kernel/hostname");
    size_t n;

    gethostname(name, sizeof name - 1);
    n = strlen(name);
    if (strncmp(file, name, n) != 0 || strncmp(proc, name, n) != 0)
        return odd("%.60s, %s, %.60s", file, name, proc);
    return !(n == 12 && strspn(name, "0123456789abcdef") == 12) || odd("%s", name);
}

TELL(files, hosts, "/etc/hosts names the machine")
{
    char name[256] = "";

    gethostname(name, sizeof name - 1);
    return strstr(text_of("/etc/hosts"), name) || odd("%s is not there", name);
}

TELL(files, resolver, "resolv.conf names a server, and none of an emulator's own network")
{
    const char *server = line_of(text_of("/etc/resolv.conf"), "nameserver");

    if (!server)
        return odd("no server");
    say("%s", server);
    return strcmp(server, "10.0.2.3") != 0;
}

TELL(files, passwd, "passwd has the system's users and a row for us with our home")
{
    size_t n = lines_in(text_of("/etc/passwd"));

    if (n < 18)
        return odd("%zu rows", n);
    return strcmp(passwd_field(5), home()) == 0 || odd("home %s, %s", passwd_field(5), home());
}

TELL(files, shadow, "/etc/shadow exists and a user cannot read it")
{
    int fd = open("/etc/shadow", O_RDONLY);

    if (fd >= 0)
        return getuid() == 0 || odd("readable");
    return errno == EACCES || odd("%s", strerror(errno));
}

TELL(files, packages, "the database of packages knows bash and what belongs to it")
{
    const char *status = text_of("/var/lib/dpkg/status");

    return (has_line(status, "Package: base-files") && there("/var/lib/dpkg/info/bash.list")) ||
           odd("%s", *status ? "no base-files" : "no /var/lib/dpkg/status");
}

static bool in_status(const char *words)
{
    static char line[4096];
    FILE *f = fopen("/var/lib/dpkg/status", "re");
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, words, strlen(words)) == 0;
    if (f)
        fclose(f);
    return found;
}

TELL(files, kernel_package, "the running kernel was installed by a package")
{
    char row[300];

    snprintf(row, sizeof row, "Package: linux-image-%s\n", release());
    return in_status(row) || odd("no %.*s", (int)strlen(row) - 1, row);
}

TELL(files, package_count, "a machine in use has some hundred packages")
{
    size_t n = entries_in("/var/lib/dpkg/info");

    say("%zu files of packages", n);
    return n > 500;
}

TELL(files, apt, "apt has sources and lists that were fetched")
{
    if (lines_in(text_of("/etc/apt/sources.list")) == 0 &&
        entries_in("/etc/apt/sources.list.d") == 0)
        return odd("no sources");
    return entries_in("/var/lib/apt/lists") > 2 || odd("no lists");
}

TELL(files, logs, "/var/log holds logs of the package manager, of logins and of the boot")
{
    size_t n = entries_in("/var/log");

    if (n < 8)
        return odd("%zu entries", n);
    return ALL_OF("/var/log/dpkg.log", "/var/log/wtmp", "/var/log/lastlog", "/var/log/apt");
}

TELL(files, wtmp, "wtmp has whole records, one of them of this boot")
{
    int fd = open("/var/log/wtmp", O_RDONLY);
    double boot = (double)time(NULL) - uptime();
    struct utmp u;
    ssize_t n = 0;
    int hits = 0;

    if (fd < 0)
        return odd("%s", strerror(errno));
    while ((n = read(fd, &u, sizeof u)) == sizeof u)
        hits +=
            u.ut_type == BOOT_TIME && u.ut_tv.tv_sec - boot < 120 && boot - u.ut_tv.tv_sec < 120;
    return (n == 0 && hits) || odd("%d boots, %zd bytes too many", hits, n);
}

TELL(files, utmp, "utmp says when the machine was started and who is here")
{
    int fd = open("/run/utmp", O_RDONLY), boots = 0, users = 0;
    struct utmp u;

    if (fd < 0)
        return odd("%s", strerror(errno));
    while (read(fd, &u, sizeof u) == sizeof u) {
        boots += u.ut_type == BOOT_TIME;
        users += u.ut_type == USER_PROCESS;
    }
    return (boots && users) || odd("%d boots, %d users", boots, users);
}

TELL(files, systemd, "systemd runs the machine: /run/systemd/system is there")
{
    return ALL_OF("/run/systemd/system", "/run/systemd/journal", "/etc/systemd/system");
}

TELL(files, buses, "the system's bus has its socket")
{
    struct stat st;

    return (stat("/run/dbus/system_bus_socket", &st) == 0 && S_ISSOCK(st.st_mode)) ||
           odd("no socket");
}

TELL(files, run, "/run holds what services leave there")
{
    size_t n = entries_in("/run");

    say("%zu entries", n);
    return n >= 15;
}

TELL(files, host_keys, "an SSH server has host keys, whose secret halves are root's")
{
    if (!there("/etc/ssh/ssh_host_ed25519_key.pub"))
        return odd("no public key");
    return access("/etc/ssh/ssh_host_ed25519_key", R_OK) < 0 && errno == EACCES;
}

TELL(files, cron, "cron has its table and folders")
{
    return ALL_OF("/etc/crontab", "/etc/cron.d", "/etc/cron.daily", "/etc/logrotate.d");
}

TELL(files, locale, "time zone and locale were chosen at installation")
{
    return ALL_OF("/etc/timezone", "/etc/localtime", "/etc/default/locale");
}

TELL(files, etc_full, "/etc has more than a hundred entries")
{
    size_t n = entries_in("/etc");

    say("%zu entries", n);
    return n > 100;
}

TELL(files, root_home, "/root is closed to users")
{
    struct stat st = {0};

    stat("/root", &st);
    return ((st.st_mode & 07777) == 0700 && (getuid() == 0 || access("/root", R_OK) < 0)) ||
           odd("mode %o", st.st_mode & 07777);
}

TELL(files, owners, "the system's files are root's; nobody owns none")
{
    static const char *const paths[] = {
        "/",        "/etc",  "/usr",     "/usr/bin/env", "/home", "/etc/os-release",
        "/var",     "/proc", "/proc/1",  "/dev/null",    "/tmp",  "/sys",
        "/dev/tty", "/run",  "/dev/shm", "/etc/passwd"};
    struct stat st;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (stat(paths[i], &st) == 0 && st.st_uid != 0)
            return odd("%s belongs to %u", paths[i], (unsigned)st.st_uid);
    return true;
}

TELL(files, root_inode, "the root of an ext4 file system has inode 2")
{
    struct stat st;

    stat("/", &st);
    say("%llu", (unsigned long long)st.st_ino);
    return st.st_ino == 2;
}

TELL(files, one_disk,
     "/, /usr, /etc, /var and the home lie on one disk, which is no unnamed device")
{
    const char *const paths[] = {"/usr", "/etc", "/var", home(), "/boot", "/opt"};
    struct stat root, st;

    stat("/", &root);
    if (major(root.st_dev) == 0)
        return odd("device 0:%u", minor(root.st_dev));
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (stat(paths[i], &st) < 0 || st.st_dev != root.st_dev)
            return odd("%s lies elsewhere", paths[i]);
    return true;
}

TELL(files, folder_sizes, "folders of ext4 have whole blocks")
{
    const char *const paths[] = {"/", "/etc", "/usr", "/var", "/home", home(), "/opt"};
    struct stat st;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (stat(paths[i], &st) < 0 || st.st_size < 4096 || st.st_size % 4096)
            return odd("%s has %lld bytes", paths[i], (long long)st.st_size);
    return true;
}

TELL(files, links, "a folder has as many links as folders in it, and two")
{
    const char *const paths[] = {"/usr", "/var", home()};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        DIR *dir = opendir(paths[i]);
        struct stat st, own;
        nlink_t n = 2;

        for (struct dirent *e; dir && (e = readdir(dir));)
            if (e->d_name[0] != '.' || (e->d_name[1] && strcmp(e->d_name, "..") != 0))
                n += fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                     S_ISDIR(st.st_mode);
        if (!dir || fstat(dirfd(dir), &own) < 0 || own.st_nlink != n)
            return odd("%s: %lu, not %lu", paths[i], (unsigned long)own.st_nlink, (unsigned long)n);
        closedir(dir);
    }
    return true;
}

TELL(files, listed_inodes, "a listing and stat give the same inode numbers")
{
    DIR *dir = opendir(home());

    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;

        if (strcmp(e->d_name, "..") == 0 ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        if (st.st_ino != e->d_ino)
            return odd("%s: %llu and %llu", e->d_name, (unsigned long long)e->d_ino,
                       (unsigned long long)st.st_ino);
    }
    return dir != NULL;
}

TELL(files, not_from_tomorrow, "no file is younger than the clock")
{
    static const char *const paths[] = {"/",        "/etc",  "/usr",  "/usr/bin",
                                        "/var",     "/tmp",  "/home", "/etc/passwd",
                                        "/usr/lib", "/proc", "/dev",  "/run"};
    time_t now = time(NULL);

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct stat st;

        if (stat(paths[i], &st) == 0 && (st.st_mtime > now + 1 || st.st_ctime > now + 1))
            return odd("%s by %lld s", paths[i], (long long)(st.st_mtime - now));
    }
    return true;
}

TELL(files, old_system, "the system was installed long ago: /etc/fstab or /lost+found say so")
{
    struct statx stx = {0};

    statx(AT_FDCWD, "/home", 0, STATX_BTIME | STATX_BASIC_STATS, &stx);
    if (!(stx.stx_mask & STATX_BTIME))
        return odd("no birth time");
    say("%lld days", (long long)((time(NULL) - stx.stx_btime.tv_sec) / 86400));
    return time(NULL) - stx.stx_btime.tv_sec > 7 * 86400;
}

TELL(files, devices, "/dev has disks, terminals, a log of the kernel and a clock")
{
    size_t n = entries_in("/dev");

    if (n < 100)
        return odd("%zu entries", n);
    return ALL_OF("/dev/kmsg", "/dev/tty1", "/dev/mem", "/dev/disk", "/dev/input", "/dev/rtc0");
}

TELL(files, tmp, "/tmp holds what services and sessions leave there")
{
    size_t n = entries_in("/tmp");

    say("%zu entries", n);
    return n >= 3;
}

TELL(files, stdio, "what stdin, stdout and stderr are called can be found under that name")
{
    for (int i = 0; i < 3; i++) {
        char path[64];
        const char *to;
        struct stat a, b;

        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        to = link_of(path);
        if (to[0] != '/')
            continue;
        if (fstat(i, &a) < 0 || stat(to, &b) < 0 || a.st_ino != b.st_ino)
            return odd("%d is %s", i, to);
    }
    return true;
}

TELL(files, writing_to_usr, "a user who writes to /usr is not permitted to; it is not read-only")
{
    if (mkdir("/usr/probe-of-tells", 0755) == 0) {
        rmdir("/usr/probe-of-tells");
        return getuid() == 0;
    }
    say("%s", strerror(errno));
    return errno == EACCES;
}

TELL(files, fresh_file,
     "a new file has the clock's time, the disk's device and a high inode number")
{
    char path[4096];
    struct stat st, place;
    int64_t before = now_ns(CLOCK_REALTIME), at;
    int fd;

    snprintf(path, sizeof path, "%s/.probe-of-tells", home());
    fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    if (fd < 0)
        return odd("%s", strerror(errno));
    fstat(fd, &st);
    stat(home(), &place);
    close(fd);
    unlink(path);
    at = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (at < before - 20000000 || at > before + 1000000000)
        return odd("time off by %lld ms", (long long)(at - before) / 1000000);
    return (st.st_dev == place.st_dev && st.st_ino > 1000) ||
           odd("inode %llu", (unsigned long long)st.st_ino);
}

TELL(files, extents, "files of ext4 say where they lie (FIEMAP)")
{
    char path[4096];
    struct fiemap map = {.fm_length = ~0ULL};
    int fd, r;

    snprintf(path, sizeof path, "%s/.profile", home());
    fd = open(path, O_RDONLY);
    r = fd < 0 ? -1 : ioctl(fd, FS_IOC_FIEMAP, &map);
    return (r == 0 && map.fm_mapped_extents > 0) || odd("%s", strerror(errno));
}

TELL(files, flags, "files of ext4 have flags: extents")
{
    char path[4096];
    unsigned long flags = 0;
    int fd, r;

    snprintf(path, sizeof path, "%s/.profile", home());
    fd = open(path, O_RDONLY);
    r = fd < 0 ? -1 : ioctl(fd, FS_IOC_GETFLAGS, &flags);
    return (r == 0 && flags & FS_EXTENT_FL) || odd("%s, %lx", r ? strerror(errno) : "", flags);
}

TELL(files, mtab, "/etc/mtab leads to /proc")
{
    return strstr(link_of("/etc/mtab"), "proc/self/mounts") != NULL || odd("no link");
}

TELL(files, setuid, "programs that change the user are there, and their file system lets them")
{
    struct statvfs fs;
    struct stat st;

    if (stat("/usr/bin/su", &st) < 0 || !(st.st_mode & S_ISUID))
        return odd("no su");
    return (statvfs("/usr/bin", &fs) == 0 && !(fs.f_flag & (ST_NOSUID | ST_RDONLY))) ||
           odd("flags %lx", fs.f_flag);
}
