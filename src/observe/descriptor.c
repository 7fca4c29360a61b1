/* Descriptors of the world: what they are and what was moved through them.
 *
 * A small table a process remembers descriptors by number. A number leaves the table whenever the
 * kernel might have given it another meaning (close, dup2, exec, a new descriptor), in every
 * process that shares the descriptor table; its totals become an event then. What was not
 * remembered is asked from /proc, which tells the truth and costs a little. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "observe/decode.h"
#include "veil/veil.h"

static const aq_fd closed = {.fd = -1, .kind = AQ_FD_NONE};

/* ---- what we hold open for each process ---- */

/* Two descriptors a process and one for each timer: a bomb of processes must not use up ours. So
 * many are kept; beyond, all are let go and made again by those that are needed. */
void aq_fd_limit(aq_tracer *t)
{
    struct rlimit r;
    rlim_t half = 256;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
        getrlimit(RLIMIT_NOFILE, &r);
        half = r.rlim_cur / 2;
    }
    t->held_most = half < 16384 ? (uint32_t)half : 16384;
}

void aq_fd_let_go(aq_proc *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->fd_folder > 0)
        close(p->fd_folder - 1);
    p->world->held -= (p->pidfd >= 0 ? 1u : 0u) + (p->fd_folder > 0 ? 1u : 0u);
    p->pidfd = -1;
    p->fd_folder = 0;
}

static void make_room(aq_tracer *t)
{
    if (++t->held <= t->held_most)
        return;
    for (aq_proc *p = t->procs; p; p = p->next)
        aq_fd_let_go(p);
    t->held = 1;
}

int aq_fd_borrow(const aq_task *k, int fd)
{
    aq_proc *p = k->proc;
    int mine;

    if (fd < 0)
        return -1;
    if (p->pidfd < 0) {
        make_room(p->world);
        p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
        p->world->held -= p->pidfd < 0;
    }
    mine = (int)syscall(SYS_pidfd_getfd, p->pidfd, fd, 0);
    if (mine < 0 && errno != EBADF && errno != ESRCH && errno != EINVAL)
        aq_unseen(p->world, (aq_task *)(uintptr_t)k, "descriptor");
    return mine;
}

static void unix_text(const struct sockaddr_un *u, size_t len, char *ret, size_t cap)
{
    size_t head = offsetof(struct sockaddr_un, sun_path), n = len - head;

    if (len <= head) {
        snprintf(ret, cap, "unix:");
    } else if (u->sun_path[0] == '\0') {
        n = n > cap - 8 ? cap - 8 : n;
        snprintf(ret, cap, "unix:@");
        memcpy(ret + 6, u->sun_path + 1, n - 1);
        ret[6 + n - 1] = '\0';
        for (size_t i = 0; i + 1 < n; i++) /* its length ends such a name, no NUL does */
            if (ret[6 + i] == '\0')
                ret[6 + i] = '@';
    } else {
        snprintf(ret, cap, "unix:%.*s", (int)strnlen(u->sun_path, n), u->sun_path);
    }
}

uint16_t aq_address_text(const void *address, size_t len, char *ret, size_t cap)
{
    struct sockaddr_storage s = {0};
    const struct sockaddr_in *in = (const struct sockaddr_in *)&s;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&s;
    char host[INET6_ADDRSTRLEN] = "";

    memcpy(&s, address, len < sizeof s ? len : sizeof s);
    *ret = '\0';
    if (len < sizeof s.ss_family)
        return 0;
    switch (s.ss_family) {
    case AF_INET:
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        snprintf(ret, cap, "%s:%u", host, ntohs(in->sin_port));
        return ntohs(in->sin_port);
    case AF_INET6:
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, host, sizeof host);
            snprintf(ret, cap, "%s:%u", host, ntohs(in6->sin6_port));
        } else {
            inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
            snprintf(ret, cap, "[%s]:%u", host, ntohs(in6->sin6_port));
        }
        return ntohs(in6->sin6_port);
    case AF_UNIX:
        unix_text((const struct sockaddr_un *)&s, len < sizeof s ? len : sizeof s, ret, cap);
        return 0;
    default:
        snprintf(ret, cap, "family-%u", s.ss_family);
        return 0;
    }
}

static uint16_t own_port(int mine)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof s;
    char text[256];

    if (getsockname(mine, (struct sockaddr *)&s, &len) != 0)
        return 0;
    return aq_address_text(&s, len, text, sizeof text);
}

uint16_t aq_fd_own_port(const aq_task *k, int fd)
{
    aq_auto_fd int mine = aq_fd_borrow(k, fd);

    return mine < 0 ? 0 : own_port(mine);
}

/* A socket is named by its peer, else by where it listens, else by what it is. Its inode number,
 * which /proc shows, means nothing. */
static void name_socket(aq_task *k, aq_fd *f)
{
    struct sockaddr_storage s;
    socklen_t len = sizeof s, n = sizeof(int);
    char text[256];
    int type = 0, family = 0;

    free(f->name);
    f->name = NULL;
    f->port = f->own_port = 0;
    aq_auto_fd int fd = aq_fd_borrow(k, f->fd);
    if (fd >= 0) {
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n);
        n = sizeof(int);
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n);
        f->stream = type == SOCK_STREAM;
        f->family = family;
        if (getpeername(fd, (struct sockaddr *)&s, &len) == 0 &&
            (len > sizeof s.ss_family || family != AF_UNIX)) {
            f->port = aq_address_text(&s, len, text, sizeof text);
            f->name = aq_strdup(text);
            f->own_port = f->port ? own_port(fd) : 0;
            return;
        }
    }
    snprintf(text, sizeof text, "socket:%d/%d", family, type);
    f->name = aq_strdup(text);
}

/* Where /proc lists the descriptors of this task. Kept open for a whole process, unless its threads
 * have tables of their own; the caller closes it when `*keep` is false. */
static int folder_of(aq_task *k, bool *keep)
{
    aq_proc *p = k->proc;
    char path[64];
    int fd;

    *keep = !p->split;
    if (*keep && p->fd_folder > 0)
        return p->fd_folder - 1;
    snprintf(path, sizeof path, "%s/%d/fd", aq_process_proc(), p->split ? k->tid : p->pid);
    if (*keep)
        make_room(p->world);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        aq_unseen(p->world, k, "descriptors");
    if (*keep) {
        p->fd_folder = fd + 1;
        p->world->held -= fd < 0;
    }
    return fd;
}

/* Numbers of pipes differ from run to run and say nothing. */
static void name_other(const aq_tracer *t, int folder, aq_fd *f)
{
    char link[16], name[AQ_PATH + 32];
    ssize_t n;

    snprintf(link, sizeof link, "%d", f->fd);
    n = readlinkat(folder, link, name, sizeof name - 1);
    if (n > 0)
        name[n] = '\0';
    else /* its path is longer than the kernel tells */
        snprintf(name, sizeof name, "(unnamed)");
    aq_resolve_plain(t, name);
    f->name = aq_strdup(name);
}

static aq_fd_kind kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return AQ_FD_FILE;
    case S_IFDIR:
        return AQ_FD_DIR;
    case S_IFIFO:
        return AQ_FD_PIPE;
    case S_IFSOCK:
        return AQ_FD_SOCKET;
    case S_IFCHR:
    case S_IFBLK:
        return AQ_FD_DEVICE;
    default:
        return AQ_FD_OTHER;
    }
}

static void totals(aq_tracer *t, aq_proc *p, uint32_t thread, aq_fd *f)
{
    aq_event e = aq_event_of(f->kind == AQ_FD_SOCKET ? AQ_EVENT_NETWORK : AQ_EVENT_FILE, "totals");
    char content[AQ_CONTENT];

    if (f->fd >= 0)
        aq_talk_end(t, p, thread, f);
    if (f->fd >= 0 && (f->read || f->written)) {
        aq_event_object(&e, f->name);
        aq_event_number(&e, "read", (int64_t)f->read);
        aq_event_number(&e, "written", (int64_t)f->written);
        aq_content_put(f, &e, content);
        aq_note_proc(t, p, thread, &e);
    }
    free(f->name);
    aq_hash_abort(f->content);
    *f = closed;
}

static aq_fd *place_of(aq_proc *p, int fd)
{
    return &p->fds[(unsigned)fd % AQ_FD_SLOTS];
}

static aq_fd *fill(aq_tracer *t, aq_task *k, int folder, int fd)
{
    aq_fd *f = place_of(k->proc, fd);
    struct stat s;
    char link[16];

    snprintf(link, sizeof link, "%d", fd);
    if (folder < 0 || fstatat(folder, link, &s, 0) != 0)
        return NULL;
    totals(t, k->proc, k->ordinal, f); /* of the one that had the place */
    *f = (aq_fd){
        .fd = fd, .kind = kind_of(s.st_mode), .ino = (uint64_t)s.st_ino, .dev = (uint64_t)s.st_dev};
    if (f->kind == AQ_FD_DEVICE)
        f->device = (uint64_t)s.st_rdev;
    if (f->kind == AQ_FD_SOCKET)
        name_socket(k, f);
    else
        name_other(t, folder, f);
    if (t->plan.machine && f->kind == AQ_FD_FILE)
        f->veil = aq_veil_of(f->name, aq_actors_on(t, k));
    return f;
}

aq_fd *aq_fd_slot(aq_tracer *t, aq_task *k, int fd)
{
    aq_fd *f;
    bool keep;
    int folder;

    if (fd < 0)
        return NULL;
    f = place_of(k->proc, fd);
    if (f->fd == fd && !k->proc->split)
        return f;
    folder = folder_of(k, &keep);
    f = fill(t, k, folder, fd);
    if (!keep && folder >= 0)
        close(folder);
    if (!f && keep && k->tid != k->proc->pid) {
        /* A leader that ended before its threads has no table any more: each is asked for itself.
         */
        k->proc->split = true;
        return aq_fd_slot(t, k, fd);
    }
    return f;
}

bool aq_fd_stat(aq_task *k, int fd, struct statx *ret)
{
    char link[16];
    bool keep, done;
    int folder;

    if (fd < 0)
        return false;
    folder = folder_of(k, &keep);
    snprintf(link, sizeof link, "%d", fd);
    done = folder >= 0 && statx(folder, link, 0, STATX_BASIC_STATS | STATX_BTIME, ret) == 0;
    if (!keep && folder >= 0)
        close(folder);
    return done;
}

const aq_fd *aq_fd_of(aq_tracer *t, aq_task *k, int fd)
{
    const aq_fd *f = aq_fd_slot(t, k, fd);

    return f ? f : &closed;
}

void aq_fd_renew(aq_tracer *t, aq_task *k, int fd)
{
    aq_fd *f = aq_fd_slot(t, k, fd);

    if (f && f->kind == AQ_FD_SOCKET)
        name_socket(k, f);
}

static bool shares(const aq_proc *a, const aq_proc *b)
{
    return a == b || (a->fd_space != 0 && a->fd_space == b->fd_space);
}

void aq_fd_forget_range(aq_tracer *t, aq_task *k, unsigned first, unsigned last)
{
    for (aq_proc *p = t->procs; p; p = p->next) {
        if (!shares(p, k->proc))
            continue;
        for (int i = 0; i < AQ_FD_SLOTS; i++) {
            aq_fd *f = &p->fds[i];

            if (f->fd >= 0 && (unsigned)f->fd >= first && (unsigned)f->fd <= last)
                totals(t, p, p == k->proc ? k->ordinal : 0, f);
        }
    }
}

void aq_fd_forget(aq_tracer *t, aq_task *k, int fd)
{
    if (fd < 0)
        return;
    if (k->proc->fd_space != 0) {
        aq_fd_forget_range(t, k, (unsigned)fd, (unsigned)fd);
        return;
    }
    if (place_of(k->proc, fd)->fd == fd)
        totals(t, k->proc, k->ordinal, place_of(k->proc, fd));
}

/* After exec: the table is its own again, and those that close on exec are gone. */
void aq_fd_forget_all(aq_tracer *t, aq_task *k)
{
    k->proc->fd_space = 0;
    aq_fd_forget_range(t, k, 0, ~0u);
}

void aq_fd_end(aq_tracer *t, aq_proc *p)
{
    for (int i = 0; i < AQ_FD_SLOTS; i++)
        totals(t, p, 0, &p->fds[i]);
    aq_fd_let_go(p);
}
