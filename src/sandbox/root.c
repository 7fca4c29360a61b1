/* The root of a world: a memory file system with pieces of the host in it, all read-only, and one
 * more memory file system with a quota behind every writable place. base.def says what is there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/mount.h"
#include "sandbox/world.h"

enum {
    SEALED = AQ_MOUNT_READ_ONLY | AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES,
    DEVICE_SEALED = AQ_MOUNT_READ_ONLY | AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_EXEC,
    OPEN_SPACE = AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES,
};

static const char home[] = "/home/user"; /* in base.def; a plan may name another */

static const struct {
    aq_base_kind kind;
    const char *path, *text;
    bool rest;
} base[] = {
#define AQ_BASE(kind, path, text) {kind, path, text, false},
#define AQ_REST(kind, path, text) {kind, path, text, true},
#include "sandbox/base.def"
#undef AQ_BASE
#undef AQ_REST
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- listing ---- */

static int add(aq_root *root, aq_entry e, aq_err *err)
{
    if (root->count == AQ_ENTRIES)
        return aq_fail(err, -E2BIG, "more than %d entries in the root of a world", AQ_ENTRIES);
    e.mount = e.space = -1;
    e.home = e.kind == SPACE && strcmp(e.path, home) == 0;
    root->entry[root->count++] = e;
    return 0;
}

/* A link of the host is made again, a file or folder is shown, the rest is passed over. */
static int add_tree(aq_arena *a, aq_root *root, const char *from, const char *to, bool rest,
                    aq_err *err)
{
    char target[PATH_MAX];
    struct stat st;
    ssize_t n;

    if (lstat(from, &st) < 0)
        return 0;
    if (S_ISLNK(st.st_mode)) {
        n = readlink(from, target, sizeof target - 1);
        if (n < 0)
            return 0;
        return add(root,
                   (aq_entry){.kind = LINK,
                              .rest = rest,
                              .path = aq_arena_strdup(a, to),
                              .text = aq_arena_strndup(a, target, (size_t)n)},
                   err);
    }
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return 0;
    return add(root,
               (aq_entry){.kind = TREE,
                          .rest = rest,
                          .path = aq_arena_strdup(a, to),
                          .text = aq_arena_strdup(a, from),
                          .folder = S_ISDIR(st.st_mode)},
               err);
}

const char *aq_root_home(const aq_plan *plan)
{
    return plan->home ? plan->home : home;
}

bool aq_root_is_space(const aq_plan *plan, const char *path)
{
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) {
        const char *space = strcmp(base[i].path, home) == 0 ? aq_root_home(plan) : base[i].path;
        size_t n = strlen(space);

        if (base[i].kind == SPACE && strncmp(path, space, n) == 0 &&
            (path[n] == '/' || path[n] == '\0'))
            return true;
    }
    return false;
}

static const aq_plan_file *planned(const aq_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->file_count; i++)
        if (aq_files_in_root(&plan->files[i]) && strcmp(plan->files[i].path, path) == 0)
            return &plan->files[i];
    return NULL;
}

bool aq_root_is_point(const char *path)
{
    for (size_t i = 0; i < sizeof base / sizeof *base; i++)
        if (base[i].kind == POINT && strcmp(base[i].path, path) == 0)
            return true;
    return false;
}

/* Some only a world with a machine has: of a folder that was made when we were built. */
static int add_base(aq_arena *a, const aq_plan *plan, aq_root *root, aq_entry e, aq_err *err)
{
    struct stat st;

    if (e.kind == OURS && plan->tree) {
        e.text = aq_arena_printf(a, "%s%s", plan->tree, e.path);
        if (stat(e.text, &st) < 0 || !S_ISDIR(st.st_mode))
            return aq_fail_errno(err, "cannot open %s", e.text);
        e.kind = TREE;
        e.folder = true;
    }
    return (e.kind == POINT || e.kind == SOCKET) && !plan->tree ? 0 : add(root, e, err);
}

static int list_base(aq_arena *a, const aq_plan *plan, aq_root *root, aq_err *err)
{
    int r = 0;

    for (size_t i = 0; i < sizeof base / sizeof *base && r == 0; i++) {
        aq_entry e = {
            .kind = base[i].kind, .rest = base[i].rest, .path = base[i].path, .text = base[i].text};

        if (e.kind == DEVICE)
            e.text = e.path;
        r = e.kind == TREE ? add_tree(a, root, e.path, e.path, e.rest, err)
                           : add_base(a, plan, root, e, err);
    }
    return r;
}

/* What every world has of its own, whatever the root file system holds there. */
static bool made_by_us(const char *name)
{
    static const char *const ours[] = {"dev", "proc", "sys", "run", "tmp", "home", "root", NULL};

    for (const char *const *o = ours; *o; o++)
        if (strcmp(name, *o) == 0)
            return true;
    return false;
}

static int add_entries(aq_arena *a, aq_root *root, const char *folder, aq_err *err)
{
    DIR *dir = opendir(folder);
    int r = dir ? 0 : aq_fail_errno(err, "cannot open %s", folder);

    for (struct dirent *e; dir && r == 0 && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && !made_by_us(e->d_name))
            r = add_tree(a, root, aq_arena_printf(a, "%s/%s", folder, e->d_name),
                         aq_arena_printf(a, "/%s", e->d_name), false, err);
    if (dir)
        closedir(dir);
    return r;
}

static int list_rootfs(aq_arena *a, const aq_plan *plan, aq_root *root, aq_err *err)
{
    char real[PATH_MAX];
    int r;

    if (!realpath(plan->rootfs, real))
        return aq_fail_errno(err, "cannot open the root file system %s", plan->rootfs);
    r = add_entries(a, root, real, err);
    for (size_t i = 0; i < sizeof base / sizeof *base && r == 0; i++) {
        const char *path = base[i].path;
        const char *first = aq_arena_strndup(a, path + 1, strcspn(path + 1, "/"));
        aq_entry e = {.kind = base[i].kind,
                      .rest = base[i].rest,
                      .path = path,
                      .text = base[i].kind == DEVICE ? path : base[i].text};

        if (made_by_us(first))
            r = add_base(a, plan, root, e, err);
    }
    return r;
}

static int list_shares(aq_arena *a, const aq_plan *plan, aq_root *root, aq_err *err)
{
    aq_limits limits = aq_limits_filled(&plan->limits);
    char real[PATH_MAX];
    struct stat st;
    int r = 0;

    for (size_t i = 0; i < plan->share_count && r == 0; i++) {
        const aq_share *s = &plan->shares[i];
        if (s->to[0] != '/' || strstr(s->to, "/..") || !s->to[1])
            return aq_fail(err, -AQ_EPLAN, "%s is no place inside a world", s->to);
        if (!realpath(s->from, real) || stat(real, &st) < 0)
            return aq_fail_errno(err, "cannot show %s inside", s->from);
        r = add(root,
                (aq_entry){.kind = SHARE,
                           .path = s->to,
                           .text = aq_arena_strdup(a, real),
                           .folder = S_ISDIR(st.st_mode),
                           .copied = s->writable && S_ISDIR(st.st_mode) &&
                                     aq_copy_fits(real, limits.most[AQ_LIMIT_DISK] / 2,
                                                  limits.most[AQ_LIMIT_INODES] / 2)},
                err);
    }
    return r;
}

/* Does it lie in a folder where something is made when the program looks around? */
static bool among_rest(const char *path)
{
    size_t n = strcspn(path + 1, "/") + 1;

    for (size_t i = 0; i < sizeof base / sizeof *base; i++)
        if (base[i].rest && strncmp(base[i].path, path, n) == 0 &&
            (base[i].path[n] == '/' || base[i].path[n] == '\0'))
            return n > 1;
    return false;
}

/* Must all be there from the start? What is shown of the host, and where the program begins, is
 * never covered by what comes later. */
static bool is_whole(const aq_plan *plan)
{
    bool whole = plan->rootfs || (plan->cwd && among_rest(plan->cwd));

    for (size_t i = 0; i < plan->share_count; i++)
        whole = whole || among_rest(plan->shares[i].to);
    return whole;
}

int aq_root_list(aq_arena *a, const aq_plan *plan, aq_root *ret, aq_err *err)
{
    int r;

    ret->count = 0;
    r = plan->rootfs ? list_rootfs(a, plan, ret, err) : list_base(a, plan, ret, err);
    ret->whole = is_whole(plan);
    return r < 0 ? r : list_shares(a, plan, ret, err);
}

void aq_root_settle(aq_world *w)
{
    for (size_t i = 0; i < w->root.count; i++)
        if (w->root.entry[i].home)
            w->root.entry[i].path = aq_root_home(w->plan);
}

/* ---- taking ---- */

bool aq_root_is_rest(const aq_root *root, const aq_entry *e)
{
    return e->rest && !root->whole;
}

int aq_root_take_one(aq_entry *e, aq_err *err)
{
    if (e->kind != TREE && e->kind != SHARE && e->kind != DEVICE)
        return 0;
    if (e->copied)
        e->mount = open(e->text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    else
        e->mount = aq_mount_copy(AT_FDCWD, e->text, e->kind == SHARE && e->folder,
                                 e->kind == DEVICE ? DEVICE_SEALED : SEALED, err);
    if (e->mount < 0)
        return e->copied ? aq_fail_errno(err, "cannot open %s", e->text) : e->mount;
    return 0;
}

int aq_root_take(aq_root *root, aq_err *err)
{
    int r = 0;

    for (size_t i = 0; i < root->count && r == 0; i++)
        if (!aq_root_is_rest(root, &root->entry[i]))
            r = aq_root_take_one(&root->entry[i], err);
    return r;
}

/* ---- building ---- */

/* Inside the new root no path is absolute. */
static const char *below(const char *path)
{
    return path + 1;
}

/* Files of the plan in /etc that the base has not. */
static int make_planned(aq_world *w, int root, aq_err *err)
{
    int r = 0;

    for (size_t i = 0; i < w->plan->file_count && r == 0 && !w->plan->rootfs; i++) {
        const aq_plan_file *f = &w->plan->files[i];
        bool there = !aq_files_in_root(f) || aq_root_is_point(f->path);

        for (size_t k = 0; k < w->root.count && !there; k++)
            there = strcmp(w->root.entry[k].path, f->path) == 0;
        if (!there)
            r = aq_cover_file(w, root, f->path, NULL, f, err);
    }
    return r;
}

/* The folders above a share; those in a writable place belong to the user. */
static int make_parents(const aq_world *w, int root, const char *path, aq_err *err)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path - 1), path + 1);
        if (mkdirat(root, part, 0755) == 0) {
            if (w->own_ids &&
                fchownat(root, part, AQ_INSIDE_UID, AQ_INSIDE_UID, AT_SYMLINK_NOFOLLOW) < 0)
                return aq_fail_errno(err, "cannot give /%s to the user", part);
        } else if (errno != EEXIST) {
            return aq_fail_errno(err, "cannot make /%s inside", part);
        }
    }
    return 0;
}

static int make_point(int root, const aq_entry *e, aq_err *err)
{
    if (e->folder ? mkdirat(root, below(e->path), 0755) == 0 || errno == EEXIST
                  : mknodat(root, below(e->path), S_IFREG | 0644, 0) == 0 || errno == EEXIST)
        return 0;
    return aq_fail_errno(err, "cannot make %s inside", e->path);
}

static int place_tree(const aq_world *w, int root, aq_entry *e, aq_err *err)
{
    int r = e->kind == SHARE ? make_parents(w, root, e->path, err) : 0;

    if (r == 0)
        r = make_point(root, e, err);
    return r < 0 ? r : aq_mount_attach(e->mount, root, below(e->path), err);
}

const char *aq_root_folder(const aq_root *root, const aq_entry *e, char name[static 64])
{
    if (e->copied) {
        snprintf(name, 64, "share-%zu", (size_t)(e - root->entry));
        return name;
    }
    snprintf(name, 64, "%s", e->home ? "home" : below(e->path));
    for (char *p = name; *p; p++)
        *p = *p == '/' ? '-' : *p;
    return name;
}

/* A writable place is a folder of the one file system that has the quota. */
static int make_space(const aq_world *w, int disk, aq_entry *e, aq_err *err)
{
    mode_t mode = e->copied ? 0755 : (mode_t)strtoul(e->text, NULL, 8);
    char buf[64];
    const char *name = aq_root_folder(&w->root, e, buf);

    if (mkdirat(disk, name, 0700) < 0 || fchmodat(disk, name, mode, 0) < 0 ||
        (w->own_ids && fchownat(disk, name, AQ_INSIDE_UID, AQ_INSIDE_UID, 0) < 0))
        return aq_fail_errno(err, "cannot make the writable place %s", e->path);
    e->space = aq_mount_copy(disk, name, false, 0, err);
    return e->space < 0 ? e->space : 0;
}

static int make_spaces(aq_world *w, int disk, aq_err *err)
{
    int r = 0;

    for (size_t i = 0; i < w->root.count && r == 0; i++)
        if (w->root.entry[i].kind == SPACE || w->root.entry[i].copied)
            r = make_space(w, disk, &w->root.entry[i], err);
    return r;
}

static int place_space(int root, aq_entry *e, aq_err *err)
{
    int r;

    if (mkdirat(root, below(e->path), 0755) < 0 && errno != EEXIST)
        return aq_fail_errno(err, "cannot make %s inside", e->path);
    r = aq_mount_attach(e->space, root, below(e->path), err);
    close(e->space);
    e->space = -1;
    return r;
}

static int place_copy(aq_world *w, int root, int disk, aq_entry *e, aq_err *err)
{
    char buf[64];
    int r = make_parents(w, root, e->path, err);
    aq_auto_fd int to = -1;

    if (r == 0)
        r = place_space(root, e, err);
    if (r < 0)
        return r;
    to = openat(disk, aq_root_folder(&w->root, e, buf), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return aq_fail_errno(err, "cannot open the copy of %s", e->path);
    return aq_copy_folder(w, e->mount, to, err);
}

static int place_text(aq_world *w, int root, const aq_entry *e, aq_err *err)
{
    const aq_plan_file *f = w->plan->rootfs ? NULL : planned(w->plan, e->path);

    return e->kind == POINT && !f ? 0 : aq_cover_file(w, root, e->path, e->text, f, err);
}

/* Filled later, by another way than the one that the payload sees (hardware.c). */
static int place_hardware(aq_world *w, int root, const aq_entry *e, aq_err *err)
{
    const char *name = below(e->path);

    if ((mkdirat(root, name, 0755) < 0 && errno != EEXIST) ||
        mkdirat(w->root.hidden, name, 0755) < 0)
        return aq_fail_errno(err, "cannot make %s inside", e->path);
    aq_auto_fd int shown = aq_mount_copy(w->root.hidden, name, false, SEALED, err);
    w->hardware = aq_mount_copy(w->root.hidden, name, false, OPEN_SPACE, err);
    if (shown < 0 || w->hardware < 0)
        return err->code;
    return aq_mount_attach(shown, root, name, err);
}

/* A folder that is closed to users opens when something of the host is shown below it: whoever
 * works in /root means that. */
static mode_t folder_mode(const aq_world *w, const aq_entry *e)
{
    size_t n = strlen(e->path);

    for (size_t i = 0; i < w->plan->share_count; i++)
        if (strncmp(w->plan->shares[i].to, e->path, n) == 0 && w->plan->shares[i].to[n] == '/')
            return 0755;
    return *e->text == '0' ? (mode_t)strtoul(e->text, NULL, 8) : 0755;
}

static int place(aq_world *w, int root, int disk, aq_entry *e, aq_err *err)
{
    switch (e->kind) {
    case TREE:
    case DEVICE:
        return place_tree(w, root, e, err);
    case SHARE:
        return e->copied ? place_copy(w, root, disk, e, err) : place_tree(w, root, e, err);
    case FOLDER:
    case OURS: /* which the plan has none of */
        if (mkdirat(root, below(e->path), folder_mode(w, e)) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "cannot make %s inside", e->path);
        return 0;
    case TEXT:
    case POINT:
        return place_text(w, root, e, err);
    case SOCKET:
        return aq_cover_socket(w, root, e->path, err);
    case LINK:
        if (symlinkat(e->text, root, below(e->path)) < 0 && errno != EEXIST)
            return aq_fail_errno(err, "cannot make the link %s inside", e->path);
        return 0;
    case HARDWARE:
        return place_hardware(w, root, e, err);
    case SPACE:
        return place_space(root, e, err);
    }
    return 0;
}

enum { SPACE_OPTIONS = 4, OWN_INODES = 10 };

/* What a space holds at most, as options of its file system. */
typedef struct space_size {
    char bytes[24], inodes[24];
    aq_mount_option options[SPACE_OPTIONS];
} space_size;

static const aq_mount_option *size_options(space_size *s, uint64_t bytes, uint64_t inodes,
                                           const char *mode)
{
    snprintf(s->bytes, sizeof s->bytes, "%llu", (unsigned long long)bytes);
    snprintf(s->inodes, sizeof s->inodes, "%llu", (unsigned long long)inodes);
    s->options[0] = (aq_mount_option){"size", s->bytes};
    s->options[1] = (aq_mount_option){"nr_inodes", s->inodes};
    s->options[2] = (aq_mount_option){mode ? "mode" : NULL, mode};
    s->options[3] = (aq_mount_option){0};
    return s->options;
}

/* What the plan allows, and room for its own folders and what the world has from the start. */
static const aq_mount_option *disk_options(const aq_world *w, space_size *s)
{
    return size_options(s,
                        w->limits.most[AQ_LIMIT_DISK] + aq_files_room(w->plan) +
                            aq_large_room(w->plan, w->limits.most[AQ_LIMIT_DISK]),
                        w->limits.most[AQ_LIMIT_INODES] + OWN_INODES + aq_files_count(w->plan),
                        NULL);
}

/* A /proc of our own pid namespace. The kernel refuses one where the host's is itself covered in
 * parts (a container in a container), or gone: then there is none, and that is recorded. */
static int make_proc(aq_world *w)
{
    int proc =
        aq_mount_new("proc", NULL, AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES | AQ_MOUNT_NO_EXEC, NULL);

    w->held.proc = proc >= 0;
    return proc;
}

/* The terminal that the machine's user works at: the payload's own are others. Init holds its other
 * end. Where the kernel has none to give, there is none. */
static void open_terminal(aq_world *w)
{
    const int unlocked = 0;

    w->terminal = openat(w->root.top, "dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (w->terminal < 0 || ioctl(w->terminal, TIOCSPTLCK, &unlocked) < 0 ||
        (w->own_ids &&
         fchownat(w->root.top, "dev/pts/0", AQ_INSIDE_UID, AQ_INSIDE_UID, AT_SYMLINK_NOFOLLOW) < 0))
        close_fd(&w->terminal);
}

/* Where the kernel has none to give, there is none. */
static int place_terminals(int root, aq_err *err)
{
    static const aq_mount_option options[] = {{"ptmxmode", "0666"}, {"mode", "0620"}, {0}};
    aq_auto_fd int pts = aq_mount_new("devpts", options, AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_EXEC, NULL);

    return pts < 0 ? 0 : aq_mount_attach(pts, root, "dev/pts", err);
}

/* Message queues are files of a file system; Landlock wants to know where it is. */
static int place_queues(int root, aq_err *err)
{
    aq_auto_fd int queues = aq_mount_new("mqueue", NULL, OPEN_SPACE | AQ_MOUNT_NO_EXEC, NULL);

    return queues < 0 ? 0 : aq_mount_attach(queues, root, "dev/mqueue", err);
}

/* The folder to start in may be one of those that are made later. */
static int place_cwd(const aq_world *w, int root, aq_err *err)
{
    int r = 0;

    if (w->plan->cwd && aq_files_hold(w->plan, w->plan->cwd)) {
        aq_files_as_user(w, true);
        r = aq_files_folders(w, root, err);
        aq_files_as_user(w, false);
    }
    return r;
}

/* When something has its place: at once; when what is said late was said; when the program first
 * looks around; when everything was said. */
typedef enum stage { START, LATE, REST, LATER } stage;

static stage stage_of(const aq_root *root, const aq_entry *e)
{
    if (e->home || e->kind == SHARE)
        return LATE;
    if (e->kind == TEXT || e->kind == POINT)
        return LATER;
    return aq_root_is_rest(root, e) ? REST : START;
}

static int place_all(aq_world *w, stage now, aq_err *err)
{
    int r = 0;

    for (size_t i = 0; i < w->root.count && r == 0; i++)
        if (stage_of(&w->root, &w->root.entry[i]) == now)
            r = place(w, w->root.top, w->root.disk, &w->root.entry[i], err);
    return r;
}

/* A mount that was left on the root would show here, and only here. */
static int check_top(aq_err *err)
{
    struct stat top, root;

    if (stat("/dev/..", &top) < 0 || stat("/", &root) < 0)
        return aq_fail_errno(err, "cannot look at the new root");
    return top.st_dev == root.st_dev && top.st_ino == root.st_ino
               ? 0
               : aq_fail(err, -EBUSY, "something of the host still lies on the new root");
}

/* What it holds comes as mounts that have no place yet, by descriptors. */
static int make_mounts(aq_world *w, aq_err *err)
{
    space_size size;
    int r;

    w->root.disk = w->root.hidden = w->root.etc = -1;
    w->root.proc = make_proc(w);
    /* The root holds names and what is ours of /etc and /sys. */
    w->root.top = aq_mount_new("tmpfs", size_options(&size, 16 << 20, 1 << 14, "0755"),
                               OPEN_SPACE | AQ_MOUNT_NO_EXEC, err);
    if (w->root.top < 0)
        return w->root.top;
    /* How much more the plan's own files need is said later. */
    w->root.disk = aq_mount_new("tmpfs",
                                size_options(&size, w->limits.most[AQ_LIMIT_DISK],
                                             w->limits.most[AQ_LIMIT_INODES] + OWN_INODES, "0755"),
                                OPEN_SPACE, err);
    if (w->root.disk < 0)
        return w->root.disk;
    /* The space gets a place too, in the old tree that is left behind: the kernel waits for the
     * whole machine when a mount is closed that never had one, and before 6.15 it copies nothing
     * from such a mount. */
    r = aq_mount_attach(w->root.disk, AT_FDCWD, "/proc", err);
    if (r == 0)
        r = aq_mount_attach(w->root.top, AT_FDCWD, "/", err);
    if (r < 0)
        return r;
    if (mkdirat(w->root.top, "tmp", 0755) < 0 ||
        (w->root.hidden = openat(w->root.top, "tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return aq_fail_errno(err, "cannot make a place for files");
    return make_spaces(w, w->root.disk, err);
}

static int place_start(aq_world *w, aq_err *err)
{
    int r = place_all(w, START, err), top = w->root.top;

    if (r == 0)
        r = place_terminals(top, err);
    if (r == 0)
        r = place_queues(top, err);
    if (r == 0 && w->root.proc >= 0)
        r = aq_mount_attach(w->root.proc, top, "proc", err);
    if (r == 0)
        r = aq_late_wait(w, err);
    if (r == 0)
        r = place_all(w, LATE, err);
    return r < 0 ? r : place_cwd(w, top, err);
}

static void close_mounts(aq_root *root)
{
    for (size_t i = 0; i < root->count; i++) {
        close_fd(&root->entry[i].mount);
        close_fd(&root->entry[i].space);
    }
    close_fd(&root->proc);
}

int aq_root_build(aq_world *w, aq_err *err)
{
    int r = make_mounts(w, err), space = -1;

    if (r == 0)
        r = place_start(w, err);
    /* Leaving waits for whatever the kernel is busy with, on any processor: late, when the network
     * is there. */
    if (r == 0)
        r = aq_mount_become_root(w->root.top, err);
    if (r == 0)
        r = aq_mount_leave_old(err);
    if (r == 0)
        r = check_top(err);
    /* A mount descriptor cannot be read; the keeper wants to list the space. */
    if (r == 0 && (space = openat(w->root.disk, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        r = aq_fail_errno(err, "cannot open the writable space");
    close_mounts(&w->root);
    return r < 0 ? r : space;
}

int aq_root_furnish(aq_world *w, aq_err *err)
{
    space_size size;
    int r = w->host[1] < 0 ? 0 : aq_hand_take(&w->root, w->host[1], err);

    if (r == 0)
        r = place_all(w, REST, err);
    if (r == 0 && aq_has_machine(w->plan))
        open_terminal(w);
    if (r == 0)
        r = aq_later_wait(w, err);
    if (r == 0)
        r = aq_mount_change(w->root.disk, disk_options(w, &size), err);
    if (r == 0)
        r = place_all(w, LATER, err);
    if (r == 0)
        r = make_planned(w, w->root.top, err);
    if (r == 0)
        r = aq_trust_place(w, err);
    if (r == 0)
        r = aq_mount_restrict(w->root.top, AQ_MOUNT_READ_ONLY, err);
    close_mounts(&w->root);
    close_fd(&w->root.top);
    close_fd(&w->root.disk);
    close_fd(&w->root.hidden);
    close_fd(&w->root.etc);
    return r;
}
