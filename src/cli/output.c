/* Where output goes: standard output, a file that appears whole, or something that is no file and
 * is written into (a device, a FIFO, a descriptor). Nothing but a regular file is ever replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/cli.h"

/* The descriptor that a path names (/dev/fd/63, /dev/stdout), or -1. Opening such a path would give
 * another description of the same file, with its own offset: what was written before would be lost.
 */
static int descriptor_of(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && *digits && strlen(digits) < 8 &&
            strspn(digits, "0123456789") == strlen(digits))
            return (int)strtol(digits, NULL, 10); /* at most seven digits */
    }
    return -1;
}

bool aq_output_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0 || descriptor_of(path) == STDOUT_FILENO;
}

static int write_all(int fd, const char *name, const void *data, size_t len, aq_err *err)
{
    int r = aq_write_full(fd, data, len);

    if (r < 0 && r != -EPIPE) /* a reader that had seen enough is no error */
        return aq_fail(err, r, "cannot write to %s: %s", name, strerror(-r));
    return 0;
}

static int write_into(const char *path, const void *data, size_t len, aq_err *err)
{
    int n = descriptor_of(path);
    aq_auto_fd int fd =
        n >= 0 ? fcntl(n, F_DUPFD_CLOEXEC, 3) : open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return aq_fail_errno(err, "cannot write to %s", path);
    return write_all(fd, path, data, len, err);
}

int aq_put(const char *path, const void *data, size_t len, aq_err *err)
{
    aq_auto_free char *real = NULL;
    struct stat st, own;

    if (!path || strcmp(path, "-") == 0)
        return write_all(STDOUT_FILENO, "standard output", data, len, err);
    if (descriptor_of(path) >= 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return write_into(path, data, len, err);
    if (lstat(path, &own) == 0 && S_ISLNK(own.st_mode)) {
        real = realpath(path, NULL);
        if (!real)
            return aq_fail_errno(err, "cannot write to %s", path);
    }
    return aq_write_file(AT_FDCWD, real ? real : path, data, len, 0644, err);
}

int aq_put_json(const char *path, const json_t *value, aq_err *err)
{
    aq_auto_buf b = {0};

    aq_json_pretty(value, &b);
    return aq_put(path, b.data, b.len, err);
}

int aq_put_json_line(const json_t *value, aq_err *err)
{
    aq_auto_buf b = {0};

    if (aq_json_canonical(value, &b) < 0)
        return aq_fail(err, -EDOM, "the document has no canonical form");
    aq_buf_addc(&b, '\n');
    return aq_put("-", b.data, b.len, err);
}

bool aq_path_within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    while (n > 1 && folder[n - 1] == '/')
        n--;
    if (n == 1 && folder[0] == '/')
        return path[0] == '/';
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static int check_descriptor(const aq_command *c, const char *option, const char *path, int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return aq_say_usage(c, "--%s %.300s is not open for writing", option, path);
    return AQ_PARSE_RUN;
}

/* Something that is there and no regular file. */
static int check_special(const aq_command *c, const char *option, const char *path, mode_t mode)
{
    if (S_ISDIR(mode))
        return aq_say_usage(c, "--%s %.300s is a folder; name a file", option, path);
    if (!S_ISFIFO(mode) && !S_ISCHR(mode))
        return aq_say_usage(c, "--%s %.300s is a disk or a socket; nothing is written there",
                            option, path);
    if (access(path, W_OK) < 0)
        return aq_say_usage(c, "--%s %.300s: cannot write there: %s", option, path,
                            strerror(errno));
    return AQ_PARSE_RUN;
}

int aq_output_check(const aq_command *c, const char *option, const char *path, char **real)
{
    const char *slash;
    aq_auto_free char *target = NULL;
    aq_auto_free char *folder = NULL;
    aq_auto_buf parent = {0};
    struct stat st;

    *real = NULL;
    if (descriptor_of(path) >= 0)
        return check_descriptor(c, option, path, descriptor_of(path));
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return check_special(c, option, path, st.st_mode);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
        target = realpath(path, NULL);
        if (!target)
            return aq_say_usage(c, "--%s %.300s is a link to a file that is not there", option,
                                path);
        path = target;
    }
    slash = strrchr(path, '/');
    aq_buf_add(&parent, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    folder = realpath(aq_buf_str(&parent), NULL);
    if (!folder || access(folder, W_OK) < 0)
        return aq_say_usage(c, "--%s %.300s: cannot write there: %s", option, path,
                            strerror(errno));
    aq_buf_clear(&parent);
    aq_buf_addf(&parent, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, slash ? slash + 1 : path);
    *real = aq_buf_take(&parent);
    return AQ_PARSE_RUN;
}
