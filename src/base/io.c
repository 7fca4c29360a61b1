/* Whole reads and writes, and files that appear whole or not at all; see io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* At a place of the file, or where it stands when `at` is negative. */
static ssize_t read_from(int fd, void *data, size_t len, off_t at)
{
    size_t done = 0;

    while (done < len) {
        char *to = (char *)data + done;
        ssize_t n = at < 0 ? read(fd, to, len - done) : pread(fd, to, len - done, at + (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t aq_read_full(int fd, void *data, size_t len)
{
    return read_from(fd, data, len, -1);
}

ssize_t aq_pread_full(int fd, void *data, size_t len, off_t at)
{
    return at < 0 ? -EINVAL : read_from(fd, data, len, at);
}

int aq_write_full(int fd, const void *data, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = write(fd, (const char *)data + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return -EIO;
        done += (size_t)n;
    }
    return 0;
}

int aq_read_fd(int fd, const char *name, size_t max, aq_buf *out, aq_err *err)
{
    size_t start = out->len;

    for (;;) {
        size_t have = out->len - start;
        size_t want = have < 4096 ? 4096 : have;
        ssize_t n;

        aq_buf_reserve(out, want);
        n = aq_read_full(fd, out->data + out->len, want);
        if (n < 0)
            return aq_fail(err, (int)n, "cannot read %s: %s", name, strerror((int)-n));
        out->len += (size_t)n;
        out->data[out->len] = '\0';
        if (out->len - start > max)
            return aq_fail(err, -EFBIG, "%s is larger than the %zu bytes allowed", name, max);
        if ((size_t)n < want)
            return 0;
    }
}

int aq_read_file(int dirfd, const char *path, size_t max, aq_buf *out, aq_err *err)
{
    /* Not waiting: a FIFO would hold us for ever. */
    aq_auto_fd int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return aq_fail_errno(err, "cannot open %s", path);
    if (!S_ISREG(st.st_mode))
        return aq_fail(err, -EINVAL, "%s is not a regular file", path);
    return aq_read_fd(fd, path, max, out, err);
}

/* The folder of `name`, opened. */
static int open_parent(int dirfd, const char *name, aq_err *err)
{
    const char *slash = strrchr(name, '/');
    aq_auto_buf folder = {0};
    int fd;

    aq_buf_add(&folder, slash ? name : ".", slash ? (size_t)(slash - name) + 1 : 1);
    fd = openat(dirfd, aq_buf_str(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? aq_fail_errno(err, "cannot open the folder of %s", name) : fd;
}

/* Gives the unnamed file `fd` its name. A new name needs no other before; an existing one is
 * replaced through a fixed name beside it, so that a kill leaves at most that one, and the next
 * write takes it away. */
static int give_name(int fd, int folder, const char *base)
{
    char self[64], temp[300];
    int r = 0;

    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, folder, base, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    if (snprintf(temp, sizeof temp, ".%s.new", base) >= (int)sizeof temp)
        return -ENAMETOOLONG;
    for (int i = 0; i < 100; i++) {
        if (linkat(AT_FDCWD, self, folder, temp, AT_SYMLINK_FOLLOW) == 0) {
            r = renameat(folder, temp, folder, base) < 0 ? -errno : 0;
            /* Another writer may have put ours in place of its own: whole, and in order. */
            return r == -ENOENT ? 0 : r;
        }
        r = -errno;
        if (r != -EEXIST || (unlinkat(folder, temp, 0) < 0 && errno != ENOENT))
            return r;
    }
    return r;
}

/* For file systems without unnamed files. */
static int write_named(int folder, const char *base, const void *data, size_t len, mode_t mode)
{
    char temp[300];
    int r;

    if (snprintf(temp, sizeof temp, ".%s.%d.new", base, (int)getpid()) >= (int)sizeof temp)
        return -ENAMETOOLONG;
    aq_auto_fd int fd =
        openat(folder, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return -errno;
    r = aq_write_full(fd, data, len);
    if (r == 0 && (fdatasync(fd) < 0 || renameat(folder, temp, folder, base) < 0))
        r = -errno;
    if (r < 0)
        unlinkat(folder, temp, 0);
    return r;
}

static int write_in(int folder, const char *base, const void *data, size_t len, mode_t mode)
{
    aq_auto_fd int fd = openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    int r;

    if (fd < 0)
        return write_named(folder, base, data, len, mode);
    r = aq_write_full(fd, data, len);
    if (r == 0 && fdatasync(fd) < 0)
        r = -errno;
    return r < 0 ? r : give_name(fd, folder, base);
}

int aq_write_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
                  aq_err *err)
{
    const char *slash = strrchr(name, '/');
    aq_auto_fd int folder = open_parent(dirfd, name, err);
    int r;

    if (folder < 0)
        return folder;
    r = write_in(folder, slash ? slash + 1 : name, data, len, mode);
    if (r == 0 && fsync(folder) < 0)
        r = -errno;
    return r < 0 ? aq_fail(err, r, "cannot write %s: %s", name, strerror(-r)) : 0;
}

static int make_dirs(int dirfd, const char *path, mode_t mode, aq_err *err)
{
    char part[4096];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof part)
        return aq_fail(err, -ENAMETOOLONG, "%s: not a usable folder name", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdirat(dirfd, part, mode) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "cannot make folder %s", part);
    }
    return 0;
}

int aq_make_dirs(const char *path, aq_err *err)
{
    return make_dirs(AT_FDCWD, path, 0700, err);
}

int aq_make_dirs_at(int dirfd, const char *path, aq_err *err)
{
    return make_dirs(dirfd, path, 0755, err);
}

int aq_temp_fd(const char *dir, aq_err *err)
{
    char name[4096];
    int fd;

    if (!dir)
        dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system knows O_TMPFILE; a name that lives for one call is next best. */
    if (snprintf(name, sizeof name, "%s/aquarium.XXXXXX", dir) >= (int)sizeof name)
        return aq_fail(err, -ENAMETOOLONG, "%s: name too long", dir);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return aq_fail_errno(err, "cannot make a temporary file in %s", dir);
    unlink(name);
    return fd;
}

int aq_reopen_read_only(int fd, aq_err *err)
{
    char path[64];
    int ro;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ro = open(path, O_RDONLY | O_CLOEXEC);
    if (ro < 0)
        return aq_fail_errno(err, "cannot reopen a temporary file (is /proc mounted?)");
    return ro;
}

int64_t aq_now(void)
{
    return (int64_t)time(NULL);
}

static int64_t year_days(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 366 : 365;
}

/* By hand: gmtime_r reads the host's time zone from a file first, which a short run would feel. */
const char *aq_time_str(int64_t seconds, char buf[static AQ_TIME_LEN])
{
    static const int64_t month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30};
    int64_t days = seconds < 0 ? 0 : seconds / 86400, day = seconds < 0 ? 0 : seconds % 86400;
    int64_t length;
    int year = 1970, month = 0;

    for (; days >= year_days(year) && year < 9999; year++)
        days -= year_days(year);
    for (; month < 11; month++, days -= length) {
        length = month_days[month] + (month == 1 && year_days(year) == 366);
        if (days < length)
            break;
    }
    snprintf(buf, AQ_TIME_LEN, "%04d-%02d-%02dT%02d:%02d:%02dZ", year % 10000, month + 1,
             (int)(days > 30 ? 30 : days) + 1, (int)(day / 3600), (int)(day / 60 % 60),
             (int)(day % 60));
    return buf;
}

int aq_time_parse(const char *s, int64_t *ret)
{
    char back[AQ_TIME_LEN];
    struct tm tm = {0};
    const char *end = strptime(s, "%Y-%m-%dT%H:%M:%SZ", &tm);
    int64_t t;

    if (!end || *end)
        return -EINVAL;
    t = (int64_t)timegm(&tm);
    /* strptime forgives "2026-02-31" and missing zeros; the round trip does not. */
    if (strcmp(aq_time_str(t, back), s) != 0)
        return -EINVAL;
    *ret = t;
    return 0;
}
