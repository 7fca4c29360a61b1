/* Preloaded into unpack_probe: swaps the file "target" for something else between the moment the
 * folder was listed and the moment the file is opened or read, as SWAP says. A race that a second
 * process would win once in a while is won here every time. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Offsets have 64 bits here as in the program, so that this openat is the C library's openat64. */
static int target = -1;

int openat(int dir, const char *path, int flags, ...);
ssize_t read(int fd, void *data, size_t len);

static int is(const char *what)
{
    const char *swap = getenv("SWAP");

    return swap && strcmp(swap, what) == 0;
}

static int open_swapped(int dir, const char *path, int flags, mode_t mode)
{
    int (*real)(int, const char *, int, ...) =
        (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64");
    int fd;

    if (strcmp(path, "target") != 0)
        return real(dir, path, flags, mode);
    if (!is("grow") && !is("shrink"))
        unlinkat(dir, path, 0);
    if ((is("fifo") && mkfifoat(dir, path, 0600) < 0) ||
        (is("folder") && mkdirat(dir, path, 0700) < 0) ||
        (is("link") && symlinkat("/etc/passwd", dir, path) < 0))
        abort();
    fd = real(dir, path, flags, mode);
    target = fd;
    return fd;
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    mode_t mode;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open_swapped(dir, path, flags, mode);
}

/* The size was looked at; now it changes. */
ssize_t read(int fd, void *data, size_t len)
{
    ssize_t (*real)(int, void *, size_t) =
        (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");

    if (fd == target && fd >= 0 && (is("grow") || is("shrink"))) {
        char path[64] = "/proc/self/fd/";
        size_t at = strlen(path);
        path[at++] = (char)('0' + fd / 10);
        path[at++] = (char)('0' + fd % 10);
        path[at] = 0;
        if (fd < 10)
            memmove(path + at - 2, path + at - 1, 2);
        target = -1;
        if (truncate(path, is("grow") ? 9000 : 100) < 0)
            abort();
    }
    return real(fd, data, len);
}
