/* Opening a named pipe: its reader and its writer wait for each other. Nobody is left waiting in
 * the kernel for that.
 *
 * A writer's open is made without waiting, and again until a reader is there (ENXIO says that none
 * is). A reader waits before its call; meanwhile we hold the pipe open for reading in its stead, so
 * that a writer finds it, and what the writer wrote is kept even when it has gone again. Then the
 * call itself is made without waiting, and the descriptor is made a waiting one.
 *
 * Looking at every path before it is opened would cost; a world has named pipes only since one of
 * its programs made one (mknod is seen), or because the wall clock found somebody waiting in an
 * open: from then on every open is looked at. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "observe/disk.h"
#include "observe/reach.h"
#include "veil/devices.h"
#include "veil/veil.h"

static uint64_t flags_of(aq_task *k)
{
    return aq_look_of(k)->number[0]; /* aq_look_open */
}

/* A descriptor of ours for what the task would open, if that is a named pipe. */
static int find_pipe(aq_tracer *t, aq_task *k, struct stat *s)
{
    aq_look *l = aq_look_of(k);
    int fd;

    if (!l->path_read || !l->path_len)
        return -1;
    fd = aq_resolve_handle(t, k, l->dir, l->path, !(flags_of(k) & O_NOFOLLOW));
    if (fd >= 0 && (fstat(fd, s) != 0 || !S_ISFIFO(s->st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int reopen(int handle, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "%s/self/fd/%d", aq_process_proc(), handle);
    return open(path, flags | O_NONBLOCK | O_CLOEXEC);
}

/* Has the pipe a writer? Empty without one it is at its end. When there are bytes in it only a
 * writer that came after us and left tells: then there is a hang-up unless others are there. */
static bool has_writer(int hold)
{
    struct pollfd p = {.fd = hold, .events = POLLIN};
    int mine;
    char c;

    if (aq_io_poll(&p) == 0 || !(p.revents & POLLIN))
        return read(hold, &c, 1) < 0 && errno == EAGAIN;
    mine = reopen(hold, O_WRONLY);
    if (mine >= 0)
        close(mine);
    return aq_io_poll(&p) > 0 && !(p.revents & POLLHUP);
}

static void let_go(aq_task *k)
{
    if (k->hold >= 0)
        close(k->hold);
    k->hold = -1;
    k->met = false;
}

void aq_open_end(aq_task *k)
{
    let_go(k);
}

/* The call without waiting: O_NONBLOCK among its flags, wherever it has them. */
static bool without_waiting(aq_task *k)
{
    uint64_t flags = flags_of(k) | O_NONBLOCK;

    switch (k->nr) {
    case AQ_NR_creat:
        aq_regs_set_call(k, AQ_NR_open);
        aq_regs_set_arg(k, 2, aq_regs_arg(k, 1));
        aq_regs_set_arg(k, 1, flags);
        return true;
    case AQ_NR_open:
        aq_regs_set_arg(k, 1, flags);
        return true;
    case AQ_NR_openat:
        aq_regs_set_arg(k, 2, flags);
        return true;
    default:
        return aq_tracee_save(k, aq_regs_arg(k, 2), sizeof flags) &&
               aq_tracee_put(k, aq_regs_arg(k, 2), &flags, sizeof flags);
    }
}

/* A device of the machine that does not exist: nobody but root opens most of them. 0: it is none.
 */
static long refused(const aq_tracer *t, aq_task *k, const char *name)
{
    uint64_t flags = flags_of(k);
    aq_device device;

    if (aq_veil_of_host(name))
        return -ENOENT;
    if (strncmp(name, "/dev/", 5) != 0 || (flags & O_PATH))
        return 0;
    if (aq_veil_no_device(t->plan.machine, name) && !(flags & O_CREAT))
        return -ENOENT;
    if (!aq_veil_device(t->plan.machine, name, &device))
        return 0;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    return device.refusal && ((flags & O_ACCMODE) == O_RDONLY || (device.mode & 2))
               ? -device.refusal
               : -EACCES;
}

aq_step aq_try_open(aq_tracer *t, aq_task *k)
{
    uint64_t flags = flags_of(k);
    aq_auto_fd int handle = -1;
    struct stat s;
    long refusal;

    k->waits = false;
    aq_home_opening(t, k, flags);
    if (t->disk)
        aq_times_opening(t, k);
    aq_reach_look(t, k, aq_look_of(k)->path);
    aq_terminal_opening(t, k, aq_look_of(k)->path);
    if (t->disk && (refusal = refused(t, k, aq_look_of(k)->path)))
        return aq_answer(k, refusal);
    if (!t->named_pipes || (flags & (O_NONBLOCK | O_PATH | O_DIRECTORY)) ||
        (flags & O_ACCMODE) == O_RDWR)
        return AQ_STEP_RUN;
    handle = find_pipe(t, k, &s);
    if (handle < 0)
        return AQ_STEP_RUN;
    k->waits = true;
    if ((flags & O_ACCMODE) == O_RDONLY) {
        if (k->hold < 0)
            k->hold = reopen(handle, O_RDONLY);
        if (k->hold < 0)
            return AQ_STEP_RUN; /* it may not, and is told so */
        if (!k->met && !has_writer(k->hold)) {
            k->pipe[0] = (uint64_t)s.st_dev;
            k->pipe[1] = (uint64_t)s.st_ino;
            t->activity++; /* a writer may go on now */
            aq_park(t, k, AQ_PARK_RETRY);
            return AQ_STEP_PARKED;
        }
    }
    return without_waiting(k) ? AQ_STEP_RUN : aq_answer(k, -EFAULT);
}

/* A writer came: those who wait for one go on, even if it leaves before their turn. */
static void meet(aq_tracer *t, aq_task *k, int mine)
{
    struct stat s;

    if (fstat(mine, &s) != 0 || !S_ISFIFO(s.st_mode))
        return;
    for (aq_task *q = t->tasks; q; q = q->next)
        if (q != k && q->hold >= 0 && q->pipe[0] == (uint64_t)s.st_dev &&
            q->pipe[1] == (uint64_t)s.st_ino)
            q->met = true;
}

/* What was not there is now: it lies in /sys or at home, which are made at the first look. */
static bool finds_late(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    bool hardware = t->has_hardware, laid = t->laid;

    if ((hardware && (laid || !t->plan.lay)) || !t->plan.machine || !l->path_read ||
        aq_home_apart(l->path))
        return false;
    aq_resolve(t, k, l->dir, l->path, !(flags_of(k) & O_NOFOLLOW), l->name, sizeof l->name);
    return t->has_hardware != hardware || t->laid != laid;
}

aq_step aq_after_open(aq_tracer *t, aq_task *k, long *result)
{
    aq_auto_fd int mine = -1;
    int flags;

    if (*result == -ENOENT && finds_late(t, k)) {
        aq_park(t, k, AQ_PARK_RETRY);
        k->seen = 0; /* at once */
        return AQ_STEP_PARKED;
    }
    if (*result == -EACCES && t->disk && aq_look_of(k)->path_read) { /* by a link */
        aq_look *l = aq_look_of(k);
        long refusal;

        aq_resolve(t, k, l->dir, l->path, !(flags_of(k) & O_NOFOLLOW), l->name, sizeof l->name);
        if ((refusal = refused(t, k, l->name)))
            *result = refusal;
    }
    if (*result >= 0)
        aq_fd_forget(t, k, (int)*result); /* the number means something else now */
    if (*result >= 0 && t->disk) {
        const char *name = aq_fd_of(t, k, (int)*result)->name;

        aq_home_needed(t, name);
        aq_large_needed(t, k, name, false);
    }
    if (!t->named_pipes)
        return AQ_STEP_RUN;
    if (k->waits && *result == -ENXIO && (flags_of(k) & O_ACCMODE) == O_WRONLY) {
        aq_park(t, k, AQ_PARK_RETRY);
        return AQ_STEP_PARKED;
    }
    if (*result >= 0 && (k->waits || (flags_of(k) & O_ACCMODE) != O_RDONLY)) {
        mine = aq_fd_borrow(k, (int)*result);
        flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
        if (k->waits && flags >= 0)
            fcntl(mine, F_SETFL, flags & ~O_NONBLOCK);
        if (mine >= 0 && (flags_of(k) & O_ACCMODE) != O_RDONLY)
            meet(t, k, mine);
    }
    let_go(k);
    return AQ_STEP_RUN;
}
