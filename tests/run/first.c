/* Makes one call about one path and says what it saw: the first call of this program that could
 * tell what is in the writable places of a world. Linked statically, so that nobody asks before.
 *
 *   first CALL PATH
 *
 * Prints nothing but by one write at the end: the answer, as a number. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static long entries(const char *path)
{
    static char names[65536];
    int fd = open(path, O_RDONLY | O_DIRECTORY);

    return syscall(SYS_getdents64, fd, names, sizeof names);
}

static long ask(const char *call, const char *path)
{
    static struct statx sx;
    static struct statfs fs;
    static struct stat st;
    static char text[4096];
    char *argv[] = {(char *)path, NULL}; /* what a program is given cannot be constant */

    if (strcmp(call, "open") == 0)
        return open(path, O_RDONLY);
    if (strcmp(call, "up") == 0)
        return openat(open("/usr/lib", O_RDONLY | O_DIRECTORY), path, O_RDONLY);
    if (strcmp(call, "write") == 0)
        return open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (strcmp(call, "stat") == 0)
        return stat(path, &st) == 0 ? st.st_size : -1;
    if (strcmp(call, "statx") == 0)
        return statx(AT_FDCWD, path, 0, STATX_ALL, &sx) == 0 ? (long)sx.stx_size : -1;
    if (strcmp(call, "statfs") == 0)
        return statfs(path, &fs) == 0 ? (long)(fs.f_files - fs.f_ffree) : -1;
    if (strcmp(call, "access") == 0)
        return access(path, R_OK);
    if (strcmp(call, "readlink") == 0)
        return readlink(path, text, sizeof text);
    if (strcmp(call, "chdir") == 0)
        return chdir(path);
    if (strcmp(call, "list") == 0)
        return entries(path);
    if (strcmp(call, "mkdir") == 0)
        return mkdir(path, 0700);
    if (strcmp(call, "unlink") == 0)
        return unlink(path);
    if (strcmp(call, "watch") == 0)
        return inotify_add_watch(inotify_init1(0), path, IN_OPEN);
    if (strcmp(call, "exec") == 0)
        return execv(path, argv);
    return -1;
}

int main(int argc, char **argv)
{
    char line[64];
    long answer = argc == 3 ? ask(argv[1], argv[2]) : -1;
    int n = snprintf(line, sizeof line, "%ld %d\n", answer, answer < 0 ? errno : 0);

    return write(1, line, (size_t)n) == n ? 0 : 1;
}
