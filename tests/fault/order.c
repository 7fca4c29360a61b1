/* Which changes are durable; see order.h. Every call that a writer of ours makes to change files is
 * known here; one that is not known would be missed, so the list is longer than what is used. */
#include "order.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096, PATH = 512 };

typedef struct identity {
    dev_t device;
    ino_t number;
} identity;

typedef struct pending {
    identity of; /* the file, or the folder that the name stands in */
    char name[PATH];
    bool used;
} pending;

struct order {
    pid_t child;
    order_each each;
    void *arg;
    pending files[MOST], names[MOST];
    /* The call that is going on, as it was entered. */
    struct user_regs_struct call;
    bool made;              /* it makes a file that was not there */
    const pending *leaving; /* the name that a rename takes away */
};

static const char *first(const pending *list, const pending *but)
{
    for (size_t i = 0; i < MOST; i++)
        if (list[i].used && &list[i] != but)
            return list[i].name;
    return NULL;
}

const char *order_file(const order *o)
{
    return first(o->files, NULL);
}

const char *order_name(const order *o)
{
    return first(o->names, o->leaving);
}

/* ---- the account ---- */

static bool same(identity a, identity b)
{
    return a.device == b.device && a.number == b.number;
}

static pending *find(pending *list, identity of, const char *name)
{
    for (size_t i = 0; i < MOST; i++)
        if (list[i].used && same(list[i].of, of) && (!name || strcmp(list[i].name, name) == 0))
            return &list[i];
    return NULL;
}

static void add(pending *list, identity of, const char *name, const char *known_as)
{
    if (find(list, of, name))
        return;
    for (size_t i = 0; i < MOST; i++)
        if (!list[i].used) {
            list[i].of = of;
            list[i].used = true;
            snprintf(list[i].name, sizeof list[i].name, "%s", known_as);
            return;
        }
    abort();
}

static void drop(pending *list, identity of, const char *name)
{
    pending *p;

    while ((p = find(list, of, name)))
        p->used = false;
}

/* ---- looking at the child ---- */

static bool look(const char *path, identity *ret, mode_t *mode)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return false;
    *ret = (identity){st.st_dev, st.st_ino};
    *mode = st.st_mode;
    return true;
}

static bool descriptor(const order *o, unsigned long long fd, identity *ret, mode_t *mode)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)o->child, (int)fd);
    return look(path, ret, mode);
}

static void name_of(const order *o, unsigned long long fd, char out[static PATH])
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)o->child, (int)fd);
    n = readlink(path, out, PATH - 1);
    out[n < 0 ? 0 : n] = '\0';
}

static void text(const order *o, unsigned long long address, char out[static PATH])
{
    struct iovec here = {out, PATH - 1}, there = {(void *)(uintptr_t)address, PATH - 1};
    size_t page = 4096 - address % 4096;
    ssize_t n = process_vm_readv(o->child, &here, 1, &there, 1, 0);

    if (n < 0 && page < PATH) { /* the text ends before a page that is not there */
        here.iov_len = there.iov_len = page;
        n = process_vm_readv(o->child, &here, 1, &there, 1, 0);
    }
    out[n < 0 ? 0 : n] = '\0';
}

/* A name in a folder: gives the folder, and the whole path as this process can reach it. */
static bool place(const order *o, unsigned long long fd, const char *path, identity *folder,
                  const char **base, char whole[static 2 * PATH])
{
    const char *slash = strrchr(path, '/');
    char parent[2 * PATH];
    mode_t mode;

    if (path[0] == '/')
        snprintf(whole, 2 * PATH, "%s", path);
    else if ((int)fd == AT_FDCWD)
        snprintf(whole, 2 * PATH, "/proc/%d/cwd/%s", (int)o->child, path);
    else
        snprintf(whole, 2 * PATH, "/proc/%d/fd/%d/%s", (int)o->child, (int)fd, path);
    snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(whole, '/') - whole + 1), whole);
    *base = slash ? slash + 1 : path;
    return look(parent, folder, &mode);
}

/* ---- calls ---- */

/* Where the names of a call stand: arguments of the descriptor and of the path. */
typedef struct names {
    bool known;
    unsigned long long fd, path, to_fd, to_path;
} names;

static names names_in(const struct user_regs_struct *r)
{
    unsigned long long here = (unsigned long long)AT_FDCWD;

    switch (r->orig_rax) {
    case SYS_open:
    case SYS_creat:
    case SYS_mkdir:
    case SYS_unlink:
    case SYS_rmdir:
        return (names){true, here, r->rdi, 0, 0};
    case SYS_openat:
    case SYS_mkdirat:
    case SYS_unlinkat:
        return (names){true, r->rdi, r->rsi, 0, 0};
    case SYS_rename:
    case SYS_link:
        return (names){true, here, r->rdi, here, r->rsi};
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_linkat:
        return (names){true, r->rdi, r->rsi, r->rdx, r->r10};
    default:
        return (names){0};
    }
}

static bool makes(const struct user_regs_struct *r)
{
    unsigned long long flags = r->orig_rax == SYS_openat ? r->rdx : r->rsi;

    if (r->orig_rax == SYS_creat)
        return true;
    return (r->orig_rax == SYS_open || r->orig_rax == SYS_openat) && (flags & O_CREAT);
}

static bool writes(unsigned long long call)
{
    switch (call) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_ftruncate:
    case SYS_fallocate:
        return true;
    default:
        return false;
    }
}

static void enter(order *o)
{
    const struct user_regs_struct *r = &o->call;
    names n = names_in(r);
    char path[PATH], whole[2 * PATH], to[PATH];
    const char *base = "";
    identity folder = {0}, file;
    mode_t mode;

    o->made = false;
    o->leaving = NULL;
    if (n.known) {
        text(o, n.path, path);
        if (place(o, n.fd, path, &folder, &base, whole))
            o->made = makes(r) && !look(whole, &file, &mode);
    }
    switch (r->orig_rax) {
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
        o->leaving = find(o->names, folder, base);
        text(o, n.to_path, to);
        o->each(o->arg, o, ORDER_RENAME, to);
        break;
    case SYS_unlink:
    case SYS_unlinkat:
        o->each(o->arg, o, ORDER_UNLINK, path);
        break;
    default:
        if (writes(r->orig_rax) && descriptor(o, r->rdi, &file, &mode) && S_ISFIFO(mode))
            o->each(o->arg, o, ORDER_TELL, "");
    }
}

static bool comes(const order *o)
{
    return o->made || o->call.orig_rax == SYS_mkdir || o->call.orig_rax == SYS_mkdirat;
}

static bool goes(unsigned long long call)
{
    return call == SYS_rename || call == SYS_renameat || call == SYS_renameat2 ||
           call == SYS_unlink || call == SYS_unlinkat || call == SYS_rmdir;
}

static void names_changed(order *o, const names *n)
{
    char path[PATH], whole[2 * PATH];
    const char *base;
    identity folder;

    text(o, n->path, path);
    if (place(o, n->fd, path, &folder, &base, whole)) {
        if (comes(o))
            add(o->names, folder, base, base);
        else if (goes(o->call.orig_rax))
            drop(o->names, folder, base);
    }
    if (!n->to_path)
        return;
    text(o, n->to_path, path);
    if (place(o, n->to_fd, path, &folder, &base, whole))
        add(o->names, folder, base, base);
}

static void leave(order *o, long long result)
{
    const struct user_regs_struct *r = &o->call;
    names n = names_in(r);
    char known_as[PATH];
    identity file;
    mode_t mode;

    if (result < 0)
        return;
    if (n.known)
        names_changed(o, &n);
    if (writes(r->orig_rax) && descriptor(o, r->rdi, &file, &mode) && S_ISREG(mode)) {
        name_of(o, r->rdi, known_as);
        add(o->files, file, NULL, known_as);
    }
    if ((r->orig_rax == SYS_fsync || r->orig_rax == SYS_fdatasync) &&
        descriptor(o, r->rdi, &file, &mode))
        drop(S_ISDIR(mode) ? o->names : o->files, file, NULL);
    if (r->orig_rax == SYS_sync || r->orig_rax == SYS_syncfs) {
        memset(o->files, 0, sizeof o->files);
        memset(o->names, 0, sizeof o->names);
    }
}

int order_watch(pid_t child, order_each each, void *arg)
{
    order *o = calloc(1, sizeof *o);
    struct user_regs_struct r;
    bool inside = false;
    int status, signal = 0;

    if (!o || waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL,
               (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0)
        abort();
    *o = (order){.child = child, .each = each, .arg = arg};
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)signal) < 0 ||
            waitpid(child, &status, 0) != child)
            abort();
        if (!WIFSTOPPED(status))
            break;
        signal = WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
        if (signal)
            continue;
        if (ptrace(PTRACE_GETREGS, child, NULL, &r) < 0)
            abort();
        inside = !inside;
        if (inside) {
            o->call = r;
            enter(o);
        } else {
            leave(o, (long long)r.rax);
        }
    }
    free(o);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
