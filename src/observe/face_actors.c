/* Processes that are not there: what a program sees of the machine's services and of the session
 * that started it (veil/actors.h), without a process for any of them.
 *
 * They are listed in /proc (face_list.c). A path that leads to one of them is turned to the same
 * file of process 1, which exists and which a user may look at no more than at them; the descriptor
 * is remembered under the name that was asked for, so that reading and asking about it answer for
 * the actor. So are files that only the machine's kernel has, and its modules (veil/kernel.h). A
 * descriptor that is inherited or duplicated loses that, and tells of process 1. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/syscalls.h"
#include "observe/disk.h"
#include "veil/actors.h"
#include "veil/kernel.h"

static const char proc[] = "/proc/";

/* Which argument is the path; -1: the call has none that matters here. */
static int path_argument(long nr)
{
    switch (nr) {
    case AQ_NR_open:
    case AQ_NR_stat:
    case AQ_NR_lstat:
    case AQ_NR_access:
    case AQ_NR_readlink:
    case AQ_NR_chdir:
    case AQ_NR_mkdir:
    case AQ_NR_statfs:
    case AQ_NR_getxattr:
    case AQ_NR_lgetxattr:
    case AQ_NR_listxattr:
    case AQ_NR_llistxattr:
        return 0;
    case AQ_NR_openat:
    case AQ_NR_openat2:
    case AQ_NR_mkdirat:
    case AQ_NR_newfstatat:
    case AQ_NR_statx:
    case AQ_NR_faccessat:
    case AQ_NR_faccessat2:
    case AQ_NR_readlinkat:
        return 1;
    default:
        return -1;
    }
}

/* Where the world's processes could not be given their numbers they have those of actors: then
 * there are none. */
bool aq_actors_on(aq_tracer *t, aq_task *k)
{
    if (t->actors == 0)
        t->actors = t->plan.machine && aq_inner_pid(k) >= AQ_VEIL_FIRST ? 1 : -1;
    return t->actors > 0;
}

static const aq_veil_actor *actor(aq_tracer *t, aq_task *k, int pid)
{
    const aq_veil_actor *a = pid > 1 && aq_actors_on(t, k) ? aq_veil_actor_of(pid) : NULL;

    return a && aq_veil_actor_on(t->plan.machine, a) ? a : NULL;
}

/* The whole of a path that is relative to /proc or to the folder of an actor. */
static bool whole_path(aq_tracer *t, aq_task *k, const aq_look *l, char *ret, size_t cap)
{
    const aq_fd *f;

    if (*l->path == '/') {
        snprintf(ret, cap, "%s", l->path);
        return strncmp(ret, proc, sizeof proc - 1) == 0;
    }
    if (l->dir == AT_FDCWD) {
        if (*l->path < '0' || *l->path > '9')
            return false;
        aq_proc_link(k->tid, "cwd", ret, cap);
        if (strcmp(ret, "/proc") != 0)
            return false;
        snprintf(ret, cap, "/proc/%s", l->path);
        return true;
    }
    f = aq_fd_of(t, k, l->dir);
    if (f->kind != AQ_FD_DIR || !f->name || strncmp(f->name, proc, 5) != 0)
        return false;
    return snprintf(ret, cap, "%s/%s", f->name, l->path) < (int)cap;
}

/* "/proc/671/task/671/stat" becomes "/proc/1/task/1/stat". */
static bool turn(const aq_veil_actor *a, const char *path, char *ret, size_t cap)
{
    const char *rest = path + sizeof proc - 1 + strlen(a->number);
    char task[32];
    size_t n = (size_t)snprintf(task, sizeof task, "/task/%d", a->pid);

    if ((*rest && *rest != '/') || strstr(rest, ".."))
        return false;
    if (strncmp(rest, task, n) == 0 && (rest[n] == '/' || !rest[n]))
        return snprintf(ret, cap, "/proc/1/task/1%s", rest + n) < (int)cap;
    return snprintf(ret, cap, "/proc/1%s", rest) < (int)cap;
}

/* Links of the user's own processes can be read. */
static bool gives_link(aq_task *k, const aq_veil_actor *a, const char *path)
{
    int at = k->nr == AQ_NR_readlinkat;
    const char *name = strrchr(path, '/');
    uint64_t room = (uint32_t)aq_regs_arg(k, at + 2);
    static const char exe[] = "/usr/bin/bash";
    size_t len = sizeof exe - 1;

    if ((k->nr != AQ_NR_readlink && k->nr != AQ_NR_readlinkat) || strcmp(a->comm, "bash") != 0 ||
        strcmp(name, "/exe") != 0)
        return false;
    len = len < room ? len : (size_t)room;
    aq_answer(k, aq_tracee_put(k, aq_regs_arg(k, at + 1), exe, len) ? (long)len : -EFAULT);
    return true;
}

/* Files that the machine's kernel has and this one may lack: then another one carries the name. */
static bool is_carried(aq_tracer *t, aq_task *k, const char *path)
{
    static const char *const names[] = {"modules", "sys/kernel/unprivileged_userns_clone",
                                        "sys/kernel/io_uring_disabled",
                                        "sys/kernel/yama/ptrace_scope"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path + sizeof proc - 1, names[i]) == 0)
            return faccessat(aq_resolve_root(t, k), path + 1, F_OK, 0) != 0;
    return false;
}

/* The kernel gets another path than the one that was asked for. */
static aq_step give(aq_task *k, int argument, const char *other, const char *asked)
{
    aq_look *l = aq_look_of(k);
    uint64_t to = aq_tracee_scratch(k, other, strlen(other) + 1);

    if (to) {
        aq_regs_set_arg(k, argument, to);
        k->alias = true;
        l->seen = false; /* that was another thing */
        if (asked != l->name)
            snprintf(l->name, sizeof l->name, "%s%s", strncmp(asked, "/lib/", 5) == 0 ? "/usr" : "",
                     asked);
    }
    return AQ_STEP_RUN;
}

/* A path with what it begins at. Most cannot lead to what the machine's kernel left on its disk:
 * those stay as they are. */
static const char *whole(aq_tracer *t, aq_task *k, const aq_look *l, char ret[static 2 * AQ_PATH])
{
    const aq_fd *f;

    if (*l->path == '/' || !(t->strayed || strstr(l->path, "lib") || strstr(l->path, "modules") ||
                             strstr(l->path, "linux-image-")))
        return l->path;
    *ret = '\0';
    if (l->dir == AT_FDCWD) {
        aq_proc_link(k->tid, "cwd", ret, AQ_PATH);
        aq_resolve_plain(t, ret);
    } else if ((f = aq_fd_of(t, k, l->dir))->kind == AQ_FD_DIR && f->name) {
        snprintf(ret, AQ_PATH, "%s", f->name);
    }
    snprintf(ret + strlen(ret), AQ_PATH, "/%.*s", AQ_PATH - 2, l->path);
    return ret;
}

/* What the machine's kernel left on its disk: it lies elsewhere, and nobody finds it there. */
static bool turn_kernel(aq_tracer *t, aq_task *k, aq_look *l, char *ret, size_t cap)
{
    char room[2 * AQ_PATH];
    const char *path = whole(t, k, l, room);

    if (aq_kernel_hidden(path, ret, cap))
        return true;
    if (!aq_kernel_elsewhere(path, ret, cap))
        return false;
    if (!*l->name)
        snprintf(l->name, sizeof l->name, "%s", path);
    return t->strayed = true;
}

/* What the host's kernel alone has in /proc. The folder that a path begins at may say so, or a way
 * that winds. */
static bool is_of_host(aq_tracer *t, aq_task *k, const aq_look *l, char *ret, size_t cap)
{
    static const char *const words[] = {"config.gz", "irq",   "ext4", "jbd2", "xfs",
                                        "nfsd",      "btrfs", "pci",  "scsi", "asound"};
    bool may_be = *l->path >= '0' && *l->path <= '9';

    for (size_t i = 0; i < sizeof words / sizeof *words && !may_be; i++)
        may_be = strstr(l->path, words[i]) != NULL;
    snprintf(ret, cap, "%s", l->name);
    if (may_be && !*ret)
        aq_resolve(t, k, l->dir, l->path, true, ret, cap);
    return aq_veil_of_host(ret);
}

aq_step aq_actors_attempt(aq_tracer *t, aq_task *k)
{
    int at = path_argument(k->nr);
    const aq_veil_actor *a;
    char path[2 * AQ_PATH], other[AQ_PATH + 64];
    aq_look *l;

    k->alias = false;
    if (at < 0 || !k->look)
        return AQ_STEP_RUN;
    l = aq_look_of(k);
    if (!l->path_read || !*l->path)
        return AQ_STEP_RUN;
    if (t->plan.machine && turn_kernel(t, k, l, other, sizeof other))
        return give(k, at, other, *l->name ? l->name : l->path);
    if (t->plan.machine && is_of_host(t, k, l, path, sizeof path)) /* as if it were not there */
        return give(k, at, "/proc/-", path);
    if (!whole_path(t, k, l, path, sizeof path))
        return AQ_STEP_RUN;
    a = aq_veil_actor_at(path);
    if (is_carried(t, k, path))
        snprintf(other, sizeof other, "/proc/version");
    else if (!a || !actor(t, k, a->pid) || !turn(a, path, other, sizeof other))
        return AQ_STEP_RUN;
    else if (gives_link(k, a, path))
        return AQ_STEP_DONE;
    return give(k, at, other, path);
}

/* The descriptor stands for what was asked for. */
void aq_actors_opened(aq_tracer *t, aq_task *k, int fd)
{
    aq_fd *f = aq_fd_slot(t, k, fd);

    k->alias = false;
    if (!f)
        return;
    free(f->name);
    f->name = aq_strdup(aq_look_of(k)->name);
    f->veil = f->kind == AQ_FD_FILE ? aq_veil_of(f->name, true) : NULL;
}

bool aq_actors_owner(const char *name, uint32_t *uid, uint32_t *gid)
{
    const aq_veil_actor *a = aq_veil_actor_at(name);

    if (!a)
        return false;
    *uid = a->uid;
    *gid = aq_veil_actor_group(a);
    return true;
}

/* The folder of its threads lists those of process 1: one of that number. */
const char *aq_actors_thread(const char *folder, const char *name)
{
    const aq_veil_actor *a = aq_veil_actor_at(folder);
    const char *slash = strrchr(folder, '/');

    return a && a->pid != 1 && strcmp(slash, "/task") == 0 && strcmp(name, "1") == 0 ? a->number
                                                                                     : NULL;
}

/* Signals reach nobody; a user may send them to his own. Process 1 is ours and hears orders by
 * signals: where nobody has an identity of its own the kernel would let anybody inside give one. */
static aq_step try_signal(aq_tracer *t, aq_task *k, int signal)
{
    const int target = aq_arg_int(k, 0);
    const aq_veil_actor *a = t->plan.machine ? actor(t, k, target) : NULL;

    if (!a && target != 1)
        return AQ_STEP_RUN;
    if (signal < 0 || signal > SIGRTMAX)
        return aq_answer(k, -EINVAL);
    return aq_answer(k, a && a->uid == 1000 ? 0 : -EPERM);
}

aq_step aq_try_kill(aq_tracer *t, aq_task *k)
{
    return try_signal(t, k, aq_arg_int(k, 1));
}

/* Of a thread; actors have one each. */
aq_step aq_try_tgkill(aq_tracer *t, aq_task *k)
{
    return aq_arg_int(k, 1) == aq_arg_int(k, 0) ? try_signal(t, k, aq_arg_int(k, 2)) : AQ_STEP_RUN;
}

int aq_actors_parent(const aq_proc *p)
{
    return p->world->actors > 0 && p->ordinal == 0 ? AQ_VEIL_SHELL : 0;
}

aq_step aq_try_parent(aq_tracer *t, aq_task *k)
{
    return aq_actors_on(t, k) && aq_actors_parent(k->proc) ? aq_answer(k, AQ_VEIL_SHELL)
                                                           : AQ_STEP_GO;
}
