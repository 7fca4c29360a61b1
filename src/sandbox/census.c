/* Counting processes; see census.h. */
#include "sandbox/census.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { UTIME = 14, CSTIME = 17, THREADS = 20, RSS = 24, TICK_NS = 10000000, PAGE = 4096 };

/* Opens PID/NAME of that /proc and reads its beginning. */
static bool read_text(int proc, const char *pid, const char *name, char *text, size_t size)
{
    char path[48] = "";
    ssize_t n;

    memcpy(path, pid, strnlen(pid, 16));
    memcpy(path + strnlen(pid, 16), name, strlen(name));
    aq_auto_fd int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0; /* else it left in the meantime */
}

/* One line of numbers after the name, which may hold anything. Fields are numbered as in proc(5).
 */
static void count(int proc, const char *pid, aq_census *c)
{
    char text[1024], *p;

    if (!read_text(proc, pid, "/stat", text, sizeof text))
        return;
    p = strrchr(text, ')');
    for (int field = 2; p && field <= RSS; field++) {
        uint64_t value = field > 2 ? strtoull(p + 1, NULL, 10) : 0;
        if (field >= UTIME && field <= CSTIME)
            c->cpu_ns += value * TICK_NS;
        else if (field == THREADS && strcmp(pid, "1") != 0)
            c->tasks += value;
        else if (field == RSS)
            c->memory += value * PAGE;
        p = strchr(p + 1, ' ');
    }
}

/* The same, with pages that processes share divided among them; slow, so asked only when it
 * matters. */
static void count_shares(int proc, const char *pid, aq_census *c)
{
    char text[1024], *p;

    if (!read_text(proc, pid, "/smaps_rollup", text, sizeof text))
        return;
    p = strstr(text, "\nPss:");
    c->memory += p ? 1024 * strtoull(p + 5, NULL, 10) : 0;
}

static void each_process(int proc, void (*act)(int proc, const char *pid, aq_census *c),
                         aq_census *ret)
{
    _Alignas(struct dirent64) char names[8192];
    long n;

    *ret = (aq_census){0};
    if (proc < 0 || lseek(proc, 0, SEEK_SET) < 0)
        return;
    while ((n = syscall(SYS_getdents64, proc, names, sizeof names)) > 0)
        for (long at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(names + at);
            if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
                act(proc, e->d_name, ret);
            at += e->d_reclen;
        }
}

void aq_census_take(int proc, aq_census *ret)
{
    each_process(proc, count, ret);
}

uint64_t aq_census_memory(int proc)
{
    aq_census c;

    each_process(proc, count_shares, &c);
    return c.memory;
}

/* ---- memory files ---- */

enum { DESCRIPTORS = 4096, FILES = 1024 };

/* One look; a signal handler has one at a time. */
static struct {
    dev_t disk;
    unsigned left;
    ino_t seen[FILES]; /* a file that several hold counts once */
    size_t count;
} files;

static bool is_new(const struct stat *st)
{
    for (size_t i = 0; i < files.count; i++)
        if (files.seen[i] == st->st_ino)
            return false;
    if (files.count < FILES)
        files.seen[files.count++] = st->st_ino;
    return true;
}

static void count_file(int folder, const char *fd, aq_census *c)
{
    struct stat st;

    if (files.left == 0 || fd[0] < '0' || fd[0] > '9')
        return;
    files.left--;
    if (fstatat(folder, fd, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0 &&
        st.st_dev != files.disk && is_new(&st))
        c->memory += 512 * (uint64_t)st.st_blocks;
}

static void count_files(int proc, const char *pid, aq_census *c)
{
    _Alignas(struct dirent64) char names[2048];
    char path[32] = "";
    long n;

    memcpy(path, pid, strnlen(pid, 16));
    memcpy(path + strnlen(pid, 16), "/fd", 3);
    aq_auto_fd int folder = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0 && files.left &&
           (n = syscall(SYS_getdents64, folder, names, sizeof names)) > 0)
        for (long at = 0; at < n;) {
            const struct dirent64 *e = (const void *)(names + at);
            count_file(folder, e->d_name, c);
            at += e->d_reclen;
        }
}

uint64_t aq_census_files(int proc, dev_t disk)
{
    aq_census c;

    files.disk = disk;
    files.left = DESCRIPTORS;
    files.count = 0;
    each_process(proc, count_files, &c);
    return c.memory;
}
