/* Namespaces; see namespace.h. */
#include "kernel/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Says which lock of the host it was, since the kernel's words do not. */
static int refused(aq_err *err, const char *what)
{
    const char *why = strerror(errno);

    if (errno == ENOSPC)
        why = "no more user namespaces are allowed here (sysctl user.max_user_namespaces, of the "
              "host or of the container that we are in)";
    else if (errno == EPERM)
        why = "the host or the container that we are in forbids it (sysctl "
              "kernel.unprivileged_userns_clone, AppArmor, a seccomp filter)";
    else if (errno == EUSERS)
        why = "user namespaces are nested too deep";
    else if (errno == EAGAIN)
        why = "the user has too many processes (ulimit -u, or a pids cgroup)";
    return aq_fail(err, -errno, "%s: %s", what, why);
}

pid_t aq_namespace_clone(uint64_t namespaces, int cgroup, int *pidfd, aq_err *err)
{
    int fd = -1;
    struct clone_args args = {
        .flags = namespaces | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)&fd,
        .exit_signal = SIGCHLD,
    };
    long pid;

    if (cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (unsigned)cgroup;
    }
    pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid < 0)
        return refused(err, "cannot make a process in new namespaces");
    if (pid > 0)
        *pidfd = fd;
    return (pid_t)pid;
}

static int write_at(pid_t pid, const char *name, const char *text, aq_err *err)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    aq_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    /* The kernel takes a map in one write or not at all. */
    if (fd < 0 && errno == ENOENT)
        return aq_fail(err, -ENOENT,
                       "cannot write %s of a new user namespace: this host shows us "
                       "no /proc of our pid namespace; mount one",
                       name);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return aq_fail_errno(err, "cannot write %s of a new user namespace", name);
    return 0;
}

int aq_namespace_map(pid_t pid, const aq_id_map *rows, size_t count, bool groups, aq_err *err)
{
    aq_auto_buf uids = {0}, gids = {0};
    int r = 0;

    for (size_t i = 0; i < count; i++) {
        aq_buf_addf(&uids, "%" PRIu32 " %" PRIu32 " 1\n", rows[i].inside, rows[i].user);
        aq_buf_addf(&gids, "%" PRIu32 " %" PRIu32 " 1\n", rows[i].inside, rows[i].group);
    }
    if (!groups)
        r = write_at(pid, "setgroups", "deny", err);
    if (r == 0)
        r = write_at(pid, "gid_map", aq_buf_str(&gids), err);
    return r < 0 ? r : write_at(pid, "uid_map", aq_buf_str(&uids), err);
}

int aq_namespace_enter_own(int more, aq_err *err)
{
    aq_id_map me = {.inside = 0, .user = geteuid(), .group = getegid()};

    if (unshare(CLONE_NEWUSER | more) < 0)
        return refused(err, "cannot make a user namespace");
    return aq_namespace_map(getpid(), &me, 1, false, err);
}

/* Calls `each` for every row of a map of our own; both maps have the form "inside outside count".
 */
static void read_map(const char *path, void (*each)(uint64_t first, uint64_t count, void *arg),
                     void *arg)
{
    aq_auto_buf text = {0};
    aq_err err;

    if (aq_read_file(AT_FDCWD, path, 1 << 16, &text, &err) < 0)
        return;
    for (const char *p = aq_buf_str(&text); *p;) {
        char *end;
        uint64_t first = strtoull(p, &end, 10);
        (void)strtoull(end, &end, 10);
        uint64_t count = strtoull(end, &end, 10);
        if (end == p)
            break;
        each(first, count, arg);
        p = end + (*end == '\n');
    }
}

typedef struct range {
    uint64_t first, count, found;
} range;

static void overlap(uint64_t first, uint64_t count, void *arg)
{
    range *r = arg;
    uint64_t from = first > r->first ? first : r->first;
    uint64_t to = first + count < r->first + r->count ? first + count : r->first + r->count;

    r->found += to > from ? to - from : 0;
}

static void longest(uint64_t first, uint64_t count, void *arg)
{
    range *r = arg;

    if (count > r->count)
        *r = (range){.first = first, .count = count};
}

/* What both maps know: they may differ, and an id of ours is a user and a group. */
uint32_t aq_namespace_ids(uint32_t first, uint32_t count)
{
    range users = {.first = first, .count = count}, groups = users;

    read_map("/proc/self/uid_map", overlap, &users);
    read_map("/proc/self/gid_map", overlap, &groups);
    return (uint32_t)(users.found < groups.found ? users.found : groups.found);
}

uint32_t aq_namespace_last_ids(uint32_t count)
{
    range r = {0};
    uint64_t first;

    read_map("/proc/self/uid_map", longest, &r);
    if (r.count <= count)
        return 0;
    first = r.first + r.count - count;
    return aq_namespace_ids((uint32_t)first, count) == count ? (uint32_t)first : 0;
}

int aq_namespace_cgroups(aq_err *err)
{
    return unshare(CLONE_NEWCGROUP) < 0 ? aq_fail_errno(err, "cannot make a cgroup namespace") : 0;
}

static int64_t seconds_to(clockid_t clock, uint64_t wanted)
{
    struct timespec now = {0};

    clock_gettime(clock, &now);
    return (int64_t)wanted - (int64_t)now.tv_sec;
}

int aq_namespace_clocks(uint64_t seconds, aq_err *err)
{
    char text[96];
    int len;

    if (unshare(CLONE_NEWTIME) < 0)
        return aq_fail_errno(err, "cannot make a time namespace");
    len = snprintf(text, sizeof text, "monotonic %" PRId64 " 0\nboottime %" PRId64 " 0\n",
                   seconds_to(CLOCK_MONOTONIC, seconds), seconds_to(CLOCK_BOOTTIME, seconds));
    aq_auto_fd int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)len) < 0)
        return aq_fail_errno(err, "cannot set the clocks of a time namespace");
    return 0;
}
