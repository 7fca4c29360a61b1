/* Calls by which a program could touch the host through files that it may only read: the base and
 * large shared folders are the host's own inodes. A lock or lease there holds up the host's
 * processes and tells another world something; a watch tells what the host does; a core dump would
 * hand the program's memory to whoever collects them outside. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { MESSAGES = 1024 }; /* of one call, as the kernel has it */

/* What can be written inside is the world's own. */
static bool of_host(int fd)
{
    struct statfs fs;

    return fd >= 0 && fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY);
}

/* Nobody inside can change such a file, so a lock on it protects nothing: it is granted and not
 * taken. */
aq_step aq_try_file_lock(aq_tracer *t, aq_task *k)
{
    aq_auto_fd int fd = aq_fd_borrow(k, aq_arg_int(k, 0));

    return of_host(fd) ? aq_answer(k, 0) : aq_try_lock(t, k);
}

/* From here on signals come that nobody sends by a call. */
static bool asks_for_signals(const aq_task *k)
{
    switch (aq_arg_int(k, 1)) {
    case F_SETOWN:
    case F_SETOWN_EX:
    case F_SETSIG:
    case F_NOTIFY:
        return true;
    default:
        return aq_arg_int(k, 1) == F_SETFL && (aq_arg_int(k, 2) & O_ASYNC);
    }
}

/* Process 1 takes orders by signals, and the kernel asks nobody twice whether they may be sent. */
static bool signals_init(const aq_task *k)
{
    struct f_owner_ex owner = {0};

    if (aq_arg_int(k, 1) == F_SETOWN)
        return aq_arg_int(k, 2) == 1;
    return aq_arg_int(k, 1) == F_SETOWN_EX &&
           aq_tracee_get(k, aq_regs_arg(k, 2), &owner, sizeof owner) && owner.pid == 1 &&
           owner.type != F_OWNER_PGRP;
}

aq_step aq_try_fcntl(aq_tracer *t, aq_task *k)
{
    aq_auto_fd int fd = -1;

    t->unsent |= asks_for_signals(k);
    if (signals_init(k))
        return aq_refuse(k, EPERM, "signal.refused");
    /* A lease makes somebody else's open wait in the kernel, by the host's clock. */
    if (aq_arg_int(k, 1) == F_SETLEASE && aq_arg_int(k, 2) != F_UNLCK)
        return aq_refuse(k, EINVAL, "lease.refused");
    if (aq_look_of(k)->quiet)
        return AQ_STEP_GO;
    switch (aq_arg_int(k, 1)) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return aq_try_file_lock(t, k);
    case F_NOTIFY:
        fd = aq_fd_borrow(k, aq_arg_int(k, 0));
        return of_host(fd) ? aq_refuse(k, EACCES, "watch.refused") : AQ_STEP_RUN;
    default:
        return AQ_STEP_RUN;
    }
}

aq_step aq_try_watch(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    bool follow = !(aq_regs_arg(k, 2) & IN_DONT_FOLLOW);
    aq_auto_fd int fd = l->path_len ? aq_resolve_handle(t, k, AT_FDCWD, l->path, follow) : -1;

    return of_host(fd) ? aq_refuse(k, EACCES, "watch.refused") : AQ_STEP_RUN;
}

/* ---- sockets with a name in the file system ---- */

/* No namespace keeps them apart, a mount that cannot be written does not shut them, and Landlock
 * knows no right for them: whoever can name a socket of the host, in a root file system that was
 * given, could talk to whoever listens out there. Where we cannot follow a name, nobody goes. */
static bool names_host(aq_tracer *t, aq_task *k, uint64_t at, uint64_t len)
{
    const size_t head = offsetof(struct sockaddr_un, sun_path);
    char text[sizeof(struct sockaddr_un) + 1] = "";
    aq_auto_fd int fd = -1;
    sa_family_t family;

    if (len <= head || len > sizeof(struct sockaddr_un) || !aq_tracee_get(k, at, text, len))
        return false; /* the kernel finds the same */
    memcpy(&family, text, sizeof family);
    if (family != AF_UNIX || !text[head])
        return false;
    errno = 0;
    fd = aq_resolve_handle(t, k, AT_FDCWD, text + head, true);
    return fd < 0 ? errno != ENOENT && errno != ENOTDIR : of_host(fd);
}

bool aq_guard_peer(aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1), count = 1;
    struct mmsghdr one = {0};

    switch (k->nr) {
    case AQ_NR_connect:
        return names_host(t, k, at, (uint32_t)aq_regs_arg(k, 2));
    case AQ_NR_sendto:
        return names_host(t, k, aq_regs_arg(k, 4), (uint32_t)aq_regs_arg(k, 5));
    case AQ_NR_sendmmsg:
        count = (uint32_t)aq_regs_arg(k, 2);
        break;
    default:
        break;
    }
    for (uint64_t i = 0; i < count && i < MESSAGES; i++)
        if (aq_tracee_get(k, at + i * sizeof one, &one,
                          k->nr == AQ_NR_sendmmsg ? sizeof one : sizeof one.msg_hdr) &&
            names_host(t, k, (uint64_t)(uintptr_t)one.msg_hdr.msg_name, one.msg_hdr.msg_namelen))
            return true;
    return false;
}

/* The sandbox set the one limit at which the kernel also starts no collector of core dumps; with
 * any other it would, zero included. */
aq_step aq_try_limit(aq_tracer *t, aq_task *k)
{
    bool any = k->nr == AQ_NR_prlimit64;
    const struct rlimit none = {0};

    if (aq_arg_int(k, any ? 1 : 0) != RLIMIT_CORE || !aq_regs_arg(k, any ? 2 : 1))
        return aq_try_dull(t, k);
    if (any && aq_regs_arg(k, 3) && !aq_tracee_put(k, aq_regs_arg(k, 3), &none, sizeof none))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, 0);
}
