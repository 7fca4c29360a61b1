/* What a path means to a task at this moment: the name of the thing that the kernel would act on.
 *
 * Everything stands still while we look, so the answer is still right when the call runs. Things
 * are opened as bare handles (O_PATH), which acts on nothing. The world has one root for good:
 * chroot, pivot_root, setns and mounts are refused. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "observe/decode.h"
#include "veil/kernel.h"

enum {
    LINKS = 40,
    PROC_ROOT_INODE = 1,
    BUFFER = 2 * AQ_PATH,
    TEXT = (LINKS + 2) * (AQ_PATH + 32), /* a path, and what as many links add to it */
    TRIES = 12
};

void aq_proc_link(pid_t tid, const char *link, char *ret, size_t cap)
{
    char path[64];
    ssize_t n;

    snprintf(path, sizeof path, "%s/%d/%s", aq_process_proc(), tid, link);
    n = readlink(path, ret, cap - 1);
    ret[n > 0 ? n : 0] = '\0';
}

/* "pipe:[4711]", "socket:[4712]", "net:[4026532185]": the number is the host's. What the machine's
 * kernel left on the disk lies elsewhere than it seems. */
void aq_resolve_plain(const aq_tracer *t, char *name)
{
    char *bracket = *name == '/' ? NULL : strstr(name, ":[");

    if (bracket && bracket[2] >= '0' && bracket[2] <= '9')
        *bracket = '\0';
    if (t->plan.machine)
        aq_kernel_shown(name);
}

/* What one of our own descriptors is. */
static void handle_name(aq_tracer *t, int fd, char *ret, size_t cap)
{
    char link[32];
    ssize_t n;

    if (t->own == 0) {
        snprintf(link, sizeof link, "%s/self/fd", aq_process_proc());
        t->own = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC) + 1;
    }
    snprintf(link, sizeof link, "%d", fd);
    n = readlinkat(t->own - 1, link, ret, cap - 1);
    if (n > 0)
        ret[n] = '\0';
    else /* its path is longer than the kernel tells */
        snprintf(ret, cap, "(unnamed)");
    aq_resolve_plain(t, ret);
}

/* The last number of a line like "NStgid:\t4711\t5" in /proc/TID/status: the innermost namespace's.
 */
static pid_t inner_number(pid_t tid, const char *key)
{
    char path[64], text[2048];
    const char *line, *end;
    ssize_t n;

    snprintf(path, sizeof path, "%s/%d/status", aq_process_proc(), tid);
    aq_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    line = strstr(text, key);
    if (!line || !(end = strchr(line + 1, '\n')))
        return 0;
    while (end > line && end[-1] >= '0' && end[-1] <= '9')
        end--;
    return (pid_t)strtol(end, NULL, 10);
}

static pid_t proc_inner(aq_proc *p)
{
    if (p->inner == 0)
        p->inner = inner_number(p->pid, "\nNStgid:");
    return p->inner;
}

pid_t aq_inner_pid(aq_task *k)
{
    return proc_inner(k->proc);
}

pid_t aq_inner_number(const aq_task *k)
{
    return inner_number(k->tid, "\nNSpid:");
}

aq_proc *aq_proc_inner(aq_tracer *t, aq_task *k, pid_t inner)
{
    (void)k; /* one namespace in the whole world: new ones are refused */
    for (aq_proc *p = t->procs; inner > 0 && p; p = p->next)
        if (proc_inner(p) == inner)
            return p;
    return NULL;
}

int aq_resolve_root(aq_tracer *t, const aq_task *k)
{
    char path[64];
    int fd;

    if (t->root > 0)
        return t->root - 1;
    snprintf(path, sizeof path, "%s/%d/root", aq_process_proc(), k->tid);
    fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        t->root = fd + 1;
    return fd;
}

/* A name below our own /proc/PID is what /proc/self gave to us instead of the task. */
static bool is_ours(const char *name)
{
    char mine[32];
    int n;

    if (strncmp(name, "/proc/", 6) != 0)
        return false;
    n = snprintf(mine, sizeof mine, "/proc/%d", getpid());
    return strncmp(name, mine, (size_t)n) == 0 && (name[n] == '/' || name[n] == '\0');
}

static int open_in(int root, const char *path, int flags, unsigned resolve)
{
    struct open_how how = {
        .flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
        .resolve = (unsigned)RESOLVE_IN_ROOT | resolve,
    };

    return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

static int handle_of(int root, const char *path, bool follow)
{
    return open_in(root, path, follow ? 0 : O_NOFOLLOW, 0);
}

/* Nothing that could be missing itself. */
static bool is_dots(const char *part)
{
    return !*part || strcmp(part, ".") == 0 || strcmp(part, "..") == 0;
}

/* ---- the host's part of the world ---- */

static const char base_folder[] = "/usr";

static bool in_base(const char *name)
{
    const char *rest = name + sizeof base_folder - 1;

    return strncmp(name, base_folder, sizeof base_folder - 1) == 0 && (*rest == '/' || !*rest);
}

static bool mount_of(int fd, uint64_t *ret)
{
    struct statx s;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &s) != 0 || !(s.stx_mask & STATX_MNT_ID))
        return false;
    *ret = s.stx_mnt_id;
    return true;
}

/* Nothing inside can change it, and its rights are the same for a task and for us. What is mounted
 * in it is something else: a folder that was taken along may lie there. */
static bool has_base(aq_tracer *t, int root)
{
    aq_auto_fd int at = t->base == 0 ? handle_of(root, base_folder, true) : -1;
    struct statfs s;

    if (t->base == 0)
        t->base = at >= 0 && mount_of(at, &t->base_mount) && fstatfs(at, &s) == 0 &&
                          (s.f_flags & ST_RDONLY)
                      ? 1
                      : -1;
    return t->base > 0;
}

static bool is_base(aq_tracer *t, int root, int fd)
{
    uint64_t mount;

    return has_base(t, root) && mount_of(fd, &mount) && mount == t->base_mount;
}

static bool is_plain(const char *path)
{
    size_t len = strlen(path);

    return strstr(path, "//") == NULL && strstr(path, "/.") == NULL && path[len - 1] != '/';
}

/* The folder that a path in the base lies in, when no link is on the way; borrowed. */
static int folder_in_base(aq_tracer *t, int root, const char *path, size_t len)
{
    int fd = aq_recall_folder(t, path, len);
    char folder[AQ_PATH];

    if (fd >= 0 || len < sizeof base_folder - 1 || len >= sizeof folder)
        return fd;
    memcpy(folder, path, len);
    folder[len] = '\0';
    fd = open_in(root, folder, O_DIRECTORY, RESOLVE_NO_SYMLINKS);
    if (fd >= 0 && is_base(t, root, fd))
        aq_recall_keep_folder(t, folder, fd);
    else if (fd >= 0)
        close(fd), fd = -1;
    return fd;
}

/* A plain path in the base: one look is enough. */
static bool near(aq_tracer *t, int root, const char *path, bool follow, char *ret, size_t cap,
                 struct statx *what, aq_found *found)
{
    const char *last = strrchr(path, '/');
    struct statx s;
    int folder;

    if (!is_plain(path) || strlen(last) > 255)
        return false;
    folder = folder_in_base(t, root, path, (size_t)(last - path));
    if (folder < 0)
        return false;
    if (statx(folder, last + 1, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID,
              &s) != 0) {
        *found = AQ_FOUND_NOTHING;
        if (errno != ENOENT)
            return false;
    } else {
        *found = what ? AQ_FOUND_WHAT : AQ_FOUND_NAME;
        if ((follow && S_ISLNK(s.stx_mode)) || s.stx_mnt_id != t->base_mount)
            return false;
        if (what)
            *what = s;
    }
    snprintf(ret, cap, "%s", path);
    return true;
}

/* Programs look for files in many places, so what is missing must be quick, too: the nearest folder
 * that is there, and the rest as given. The first missing part must not be a link that leads to
 * nothing. */
static bool missing(aq_tracer *t, int root, const char *path, char *ret, size_t cap, bool *fixed)
{
    char folder[BUFFER], part[256], c;
    const char *slash = path + strlen(path);
    int tries = 0, fd = -1;

    while (fd < 0) {
        size_t len = (size_t)(slash - path), n;

        do
            slash--;
        while (slash > path && *slash != '/');
        n = len - (size_t)(slash - path) - 1;
        if (*slash != '/' || tries++ == TRIES || n >= sizeof part)
            return false;
        memcpy(part, slash + 1, n);
        part[n] = '\0';
        len = slash == path ? 1 : (size_t)(slash - path);
        memcpy(folder, path, len);
        folder[len] = '\0';
        fd = handle_of(root, folder, true);
        if (fd < 0 && errno != ENOENT)
            return false;
    }
    aq_auto_fd int at = fd;
    if (is_dots(part) || readlinkat(at, part, &c, 1) >= 0 || errno != ENOENT)
        return false;
    handle_name(t, at, folder, sizeof folder);
    if (is_ours(folder))
        return false;
    snprintf(ret, cap, "%s%s", strcmp(folder, "/") == 0 ? "" : folder, slash);
    *fixed = in_base(path) && in_base(ret) && is_base(t, root, at);
    return true;
}

/* `what`, where it is wanted: what it is, unless the task could be told something else. `fixed`:
 * it will be the same the next time. */
static bool fast(aq_tracer *t, int root, const char *path, bool follow, char *ret, size_t cap,
                 struct statx *what, aq_found *found, bool *fixed)
{
    aq_auto_fd int fd = handle_of(root, path, follow);

    *found = AQ_FOUND_NAME;
    *fixed = false;
    if (fd < 0) {
        if (errno != ENOENT || !missing(t, root, path, ret, cap, fixed))
            return false;
        if (*fixed)
            *found = AQ_FOUND_NOTHING;
        return true;
    }
    handle_name(t, fd, ret, cap);
    if (is_ours(ret))
        return false;
    *fixed = in_base(path) && in_base(ret) && is_base(t, root, fd);
    if (what && strncmp(ret, "/proc", 5) != 0 && *ret == '/' &&
        statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, what) == 0)
        *found = AQ_FOUND_WHAT;
    return true;
}

/* Where nothing changes a path means what it meant before (recall.c). */
static bool known(aq_tracer *t, int root, const char *path, bool follow, char *ret, size_t cap,
                  struct statx *what, aq_found *found)
{
    bool fixed;

    if (in_base(path) && aq_recall(t, path, follow, ret, cap, what, found))
        return true;
    fixed = in_base(path) && near(t, root, path, follow, ret, cap, what, found);
    if (!fixed && !fast(t, root, path, follow, ret, cap, what, found, &fixed))
        return false;
    if (fixed)
        aq_recall_keep(t, path, follow, ret, what, *found);
    return true;
}

/* ---- step by step, where the fast way fails: missing parts, /proc/self, magic links ---- */

typedef struct walk {
    int root, at; /* `at` is owned */
    pid_t tid, inner;
    int links;
    char *rest; /* in `text` */
} walk;

/* What is left of the path stands at its end, so that both ends of a walk cost nothing. It has room
 * for all that the kernel would follow: a path that we give up on has a wrong name in the record.
 */
static char text[TEXT];

static void go_to(walk *w, int fd)
{
    close(w->at);
    w->at = fd;
}

static bool same_place(int a, int b)
{
    struct statx x, y;

    return statx(a, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &x) == 0 &&
           statx(b, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &y) == 0 &&
           x.stx_ino == y.stx_ino && x.stx_mnt_id == y.stx_mnt_id;
}

static bool in_proc(int fd)
{
    struct statfs s;

    return fstatfs(fd, &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

static bool at_proc_root(int fd)
{
    struct stat s;

    return in_proc(fd) && fstat(fd, &s) == 0 && s.st_ino == PROC_ROOT_INODE;
}

static void set_rest(walk *w, const char *path)
{
    size_t len = strlen(path);

    w->rest = text + TEXT - 1 - len;
    memcpy(w->rest, path, len + 1);
}

/* Puts a link's target before the rest. */
static bool prepend(walk *w, const char *target)
{
    size_t len = strlen(target);

    if ((size_t)(w->rest - text) < len + 1)
        return false;
    if (*w->rest)
        *--w->rest = '/';
    w->rest -= len;
    memcpy(w->rest, target, len);
    return true;
}

static bool follow_link(walk *w, int link, const char *part)
{
    char target[AQ_PATH + 32];
    ssize_t n;

    if (++w->links > LINKS)
        return false;
    if (in_proc(w->at) && !at_proc_root(w->at)) {
        /* A magic link: only the kernel knows where it leads. */
        int fd = openat(w->at, part, O_PATH | O_CLOEXEC);

        if (fd < 0)
            return false;
        go_to(w, fd);
        return true;
    }
    /* These two mean the task, not us; from outside of its pid namespace they mean nothing at all.
     */
    if (at_proc_root(w->at) && strcmp(part, "self") == 0) {
        snprintf(target, sizeof target, "%d", w->inner);
    } else if (at_proc_root(w->at) && strcmp(part, "thread-self") == 0) {
        snprintf(target, sizeof target, "%d/task/%d", w->inner, inner_number(w->tid, "\nNSpid:"));
    } else {
        n = readlinkat(link, "", target, sizeof target - 1);
        if (n <= 0)
            return false;
        target[n] = '\0';
    }
    return prepend(w, target);
}

/* One part of the path. False: it leads no further, and `rest` still begins with it. */
static bool step(walk *w, bool follow)
{
    char part[256];
    size_t slashes = strspn(w->rest, "/"), len;
    struct stat s;
    bool last;

    /* Only at the start, or when a link put an absolute target here. */
    if (slashes > 0)
        go_to(w, fcntl(w->root, F_DUPFD_CLOEXEC, 0));
    w->rest += slashes;
    len = strcspn(w->rest, "/");
    if (len == 0 || len >= sizeof part)
        return false;
    memcpy(part, w->rest, len);
    part[len] = '\0';
    last = w->rest[len] == '\0';
    aq_auto_fd int fd = -1;
    if (strcmp(part, "..") == 0 && same_place(w->at, w->root))
        fd = fcntl(w->root, F_DUPFD_CLOEXEC, 0);
    else
        fd = openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) != 0)
        return false;
    w->rest += len;
    w->rest += strspn(w->rest, "/");
    if (S_ISLNK(s.st_mode) && (!last || follow)) {
        if (follow_link(w, fd, part))
            return true;
        prepend(w, part);
        return false;
    }
    go_to(w, aq_take_fd(fd));
    return true;
}

static void slow(aq_tracer *t, aq_task *k, int start, const char *path, bool follow, char *ret,
                 size_t cap)
{
    walk w = {.root = aq_resolve_root(t, k),
              .at = fcntl(start, F_DUPFD_CLOEXEC, 0),
              .tid = k->tid,
              .inner = aq_inner_pid(k)};
    char base[BUFFER];

    set_rest(&w, path);
    while (w.at >= 0 && *w.rest && step(&w, follow))
        continue;
    handle_name(t, w.at, base, sizeof base);
    if (*w.rest)
        snprintf(ret, cap, "%s/%s", strcmp(base, "/") == 0 ? "" : base, w.rest);
    else
        snprintf(ret, cap, "%s", base);
    if (w.at >= 0)
        close(w.at);
}

static void start_link(int dir, char *link, size_t cap)
{
    if (dir == AT_FDCWD)
        snprintf(link, cap, "cwd");
    else
        snprintf(link, cap, "fd/%d", dir);
}

bool aq_resolve_base(aq_tracer *t, const aq_task *k, int fd)
{
    return is_base(t, aq_resolve_root(t, k), fd);
}

int aq_resolve_handle(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow)
{
    char start[64], link[32];
    walk w = {.root = aq_resolve_root(t, k), .tid = k->tid, .inner = aq_inner_pid(k)};

    start_link(dir, link, sizeof link);
    snprintf(start, sizeof start, "%s/%d/%s", aq_process_proc(), k->tid,
             *path == '/' ? "root" : link);
    w.at = open(start, O_PATH | O_CLOEXEC);
    set_rest(&w, path);
    while (w.at >= 0 && *w.rest && (errno = ELOOP) && step(&w, follow))
        continue; /* errno: of what failed in the last step, ELOOP when it was we who gave up */
    if (w.at >= 0 && *w.rest) {
        close(w.at);
        w.at = -1;
    }
    return w.at;
}

/* A descriptor of a folder in the base: its name is for good. */
static bool name_of_folder(aq_tracer *t, aq_task *k, int root, int dir, char *ret, size_t cap)
{
    const aq_fd *f = dir >= 0 ? aq_fd_of(t, k, dir) : NULL;

    if (!f || t->strayed || f->kind != AQ_FD_DIR || !in_base(f->name) || root < 0 ||
        folder_in_base(t, root, f->name, strlen(f->name)) < 0)
        return false;
    snprintf(ret, cap, "%s", f->name);
    return true;
}

static aq_found resolve(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow, char *ret,
                        size_t cap, struct statx *what)
{
    char base[AQ_PATH + 32] = "", joined[BUFFER], link[32], start[64];
    int root = aq_resolve_root(t, k);
    bool absolute = *path == '/';
    aq_found found;

    start_link(dir, link, sizeof link);
    if (!absolute && !name_of_folder(t, k, root, dir, base, sizeof base)) {
        aq_proc_link(k->tid, link, base, sizeof base);
        if (t->plan.machine)
            aq_kernel_shown(base);
    }
    if (!absolute && !*base)
        snprintf(base, sizeof base, "(unnamed)");
    if (!*path) {
        snprintf(ret, cap, "%s", base);
        return AQ_FOUND_NAME;
    }
    snprintf(joined, sizeof joined, "%s%s%s", base, absolute ? "" : "/", path);
    if (root < 0) {
        snprintf(ret, cap, "%s", joined);
        return AQ_FOUND_NAME;
    }
    /* A folder that is gone has the name of another one, perhaps. */
    if (*joined == '/' && strstr(joined, "self") == NULL &&
        (absolute || !strstr(base, " (deleted)")) &&
        known(t, root, joined, follow, ret, cap, what, &found))
        return found;
    snprintf(start, sizeof start, "%s/%d/%s", aq_process_proc(), k->tid, absolute ? "root" : link);
    aq_auto_fd int at = open(start, O_PATH | O_CLOEXEC);
    if (at < 0)
        snprintf(ret, cap, "%s", joined);
    else
        slow(t, k, at, path, follow, ret, cap);
    return AQ_FOUND_NAME;
}

/* /sys is large, and few programs look into it: it is made when the first one does. */
bool aq_resolve_hardware(aq_tracer *t, const char *name)
{
    if (t->has_hardware || !t->plan.machine || strncmp(name, "/sys", 4) != 0 ||
        (name[4] != '/' && name[4] != '\0'))
        return false;
    t->has_hardware = true;
    if (t->plan.hardware)
        t->plan.hardware(t->plan.arg);
    return t->plan.hardware;
}

aq_found aq_resolve_stat(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow,
                         char *ret, size_t cap, struct statx *what)
{
    aq_found found = resolve(t, k, dir, path, follow, ret, cap, what);

    if (aq_home_needed(t, ret) || aq_resolve_hardware(t, ret))
        found = resolve(t, k, dir, path, follow, ret, cap, what);
    return found;
}

aq_found aq_resolve(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow, char *ret,
                    size_t cap)
{
    return aq_resolve_stat(t, k, dir, path, follow, ret, cap, NULL);
}
