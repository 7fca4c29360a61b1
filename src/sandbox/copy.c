/* A folder of the host that a run may change is copied into its writable space: the host's own is
 * never touched, and what the run changed can be told by comparison. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/world.h"

enum { DEPTH = 64 };

typedef int visitor(int from, const char *name, const struct stat *st, int to, unsigned depth,
                    void *arg);

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Calls `each` for what is in the folder; what cannot be looked at is passed over, since the run
 * could not read it either. */
static int for_each(int from, int to, unsigned depth, visitor *each, void *arg)
{
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return errno == EACCES ? 0 : -errno;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        struct stat st;

        if (!is_dots(e->d_name) && fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            r = each(fd, e->d_name, &st, to, depth, arg);
    }
    closedir(dir);
    return r;
}

/* ---- size ---- */

typedef struct size {
    uint64_t bytes, entries;
    uint64_t bytes_most, entries_most;
} size;

static int measure(int from, const char *name, const struct stat *st, int to, unsigned depth,
                   void *arg)
{
    size *s = arg;

    s->entries++;
    if (S_ISREG(st->st_mode))
        s->bytes += (uint64_t)st->st_size;
    if (s->bytes > s->bytes_most || s->entries > s->entries_most || depth > DEPTH)
        return -EFBIG;
    if (S_ISDIR(st->st_mode)) {
        aq_auto_fd int fd = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? 0 : for_each(fd, to, depth + 1, measure, arg);
    }
    return 0;
}

bool aq_copy_fits(const char *folder, uint64_t bytes, uint64_t entries)
{
    aq_auto_fd int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    size s = {.bytes_most = bytes, .entries_most = entries};

    return fd >= 0 && for_each(fd, -1, 0, measure, &s) == 0;
}

bool aq_share_fits(const aq_share *s, const aq_limits *limits)
{
    aq_limits all = aq_limits_filled(limits);

    return aq_copy_fits(s->from, all.most[AQ_LIMIT_DISK] / 2, all.most[AQ_LIMIT_INODES] / 2);
}

/* ---- copying ---- */

/* Told at the end, with the first name. */
static void leave_out(aq_world *w, const char *name)
{
    if (w->held.left_out++ == 0)
        snprintf(w->held.left_out_first, sizeof w->held.left_out_first, "%s", name);
}

static int own(int to, const char *name, const struct stat *st, const aq_world *w)
{
    struct timespec times[2] = {st->st_atim, st->st_mtim};

    if (w->own_ids && fchownat(to, name, AQ_INSIDE_UID, AQ_INSIDE_UID, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_file(int from, const char *name, const struct stat *st, int to, aq_world *w)
{
    aq_auto_fd int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    aq_auto_fd int out = -1;
    ssize_t n;

    if (in < 0 && errno == EACCES) {
        leave_out(w, name);
        return 0;
    }
    if (in < 0)
        return -errno;
    out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                 (st->st_mode & 0777) | 0600);
    if (out < 0)
        return -errno;
    while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
        continue;
    return n < 0 ? -errno : 0;
}

static int copy_link(int from, const char *name, int to)
{
    char target[4096];
    ssize_t n = readlinkat(from, name, target, sizeof target - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    return symlinkat(target, to, name) < 0 ? -errno : 0;
}

static int copy_one(int from, const char *name, const struct stat *st, int to, unsigned depth,
                    void *arg)
{
    int r = 0;

    if (S_ISDIR(st->st_mode)) {
        aq_auto_fd int in = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        aq_auto_fd int out = -1;

        if (in < 0 || depth > DEPTH || faccessat(in, ".", R_OK | X_OK, AT_EACCESS) < 0)
            leave_out(arg, name);
        if (in < 0 || depth > DEPTH)
            return 0;
        if (mkdirat(to, name, (st->st_mode & 0777) | 0700) < 0)
            return -errno;
        out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = out < 0 ? -errno : for_each(in, out, depth + 1, copy_one, arg);
    } else if (S_ISREG(st->st_mode)) {
        r = copy_file(from, name, st, to, arg);
    } else if (S_ISLNK(st->st_mode)) {
        r = copy_link(from, name, to);
    } else {
        return 0; /* sockets, pipes and devices stay outside */
    }
    if (r == 0 && faccessat(to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        r = own(to, name, st, arg);
    return r;
}

int aq_copy_folder(aq_world *w, int from, int to, aq_err *err)
{
    int r = for_each(from, to, 0, copy_one, w);

    return r < 0 ? aq_fail(err, r, "cannot copy a shared folder: %s", strerror(-r)) : 0;
}
