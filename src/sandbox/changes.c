/* What a run left in its writable places: every file with its size and digest. Read when everybody
 * inside is dead, so nothing changes under our hands; names and contents are hostile all the same:
 * what is too deep, too long, too much or cannot be read is told as unread ('U'), never left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/wire.h"
#include "sandbox/world.h"

enum {
    DEPTH = 128,      /* folders in one another */
    ROWS = 1 << 18,   /* changes told */
    PATHS = 32 << 20, /* bytes of their paths; with the rows they fit the stream's slack */
    UNREAD = 1,       /* of a folder: not all of it is told */
};

/* What a file holds, and what it holds after marks were replaced. */
typedef struct held {
    aq_digest digest, content;
} held;

typedef struct walk {
    aq_arena *arena;
    aq_file_change *changes;
    size_t count, cap;
    aq_hash *hash, *content;
    const aq_marks *marks; /* or NULL */
    size_t text;           /* of all paths */
    bool full;             /* no more changes fit */
    char *buffer;
    const aq_world *world;
    aq_file_index planned;
} walk;

static void add(walk *k, char change, const char *path, uint64_t size, held h)
{
    k->text += strlen(path);
    k->full |= k->count >= ROWS || k->text > PATHS;
    if (k->full && change != 'U')
        return;
    if (k->count == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 64;
        k->changes = aq_realloc(k->changes, cap, sizeof *k->changes);
        k->cap = cap;
    }
    k->changes[k->count++] = (aq_file_change){.path = aq_arena_strdup(k->arena, path),
                                              .change = change,
                                              .size = size,
                                              .digest = h.digest,
                                              .content = h.content};
}

static void unread(walk *k, const char *path)
{
    add(k, 'U', path, 0, (held){0});
}

enum { READ_AT_ONCE = 128 << 10 };

static int digest_file(walk *k, int fd, held *ret)
{
    aq_mark_at at = {0};
    ssize_t n;

    aq_hash_reset(k->hash);
    aq_hash_reset(k->content);
    while ((n = read(fd, k->buffer, READ_AT_ONCE)) > 0) {
        aq_hash_add(k->hash, k->buffer, (size_t)n);
        if (k->marks)
            aq_marks_hash(k->marks, &at, k->buffer, (size_t)n, k->content);
    }
    if (n < 0)
        return -errno;
    ret->digest = aq_hash_peek(k->hash);
    ret->content = k->marks ? aq_hash_peek(k->content) : ret->digest;
    return 0;
}

static held held_text(const walk *k, const char *text, size_t len)
{
    aq_auto_buf plain = {0};

    aq_marks_replace(k->marks, text, len, false, &plain);
    return (held){aq_sha256(text, len), aq_sha256(aq_buf_str(&plain), plain.len)};
}

/* A regular file counts with its content, a link with its target, the rest with its name. */
static int digest_of(walk *k, int dirfd, const char *name, const struct stat *st, uint64_t *size,
                     held *ret)
{
    char target[4096];

    *ret = held_text(k, "", 0);
    *size = 0;
    if (S_ISREG(st->st_mode)) {
        aq_auto_fd int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

        *size = (uint64_t)st->st_size;
        return fd < 0 ? -errno : digest_file(k, fd, ret);
    }
    if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof target);

        if (n < 0)
            return -errno;
        *ret = held_text(k, target, (size_t)n);
        *size = (uint64_t)n;
    }
    return 0;
}

/* A copy that nobody touched since the payload got its go. The time of the last change is the one
 * that a program cannot set, and `started` was read from the clock that the kernel stamps it with.
 */
static bool untouched(const struct timespec *go, const struct stat *st)
{
    return st->st_ctim.tv_sec < go->tv_sec ||
           (st->st_ctim.tv_sec == go->tv_sec && st->st_ctim.tv_nsec < go->tv_nsec);
}

/* Since when could it be changed? */
static const struct timespec *since(const walk *k, const aq_plan_file *f)
{
    return aq_files_at_home(k->world->plan, f) ? &k->world->lived : &k->world->started;
}

/* A file of the plan: as it was, or changed. */
static void visit_planned(walk *k, int dirfd, const char *name, const char *path,
                          const aq_plan_file *f, const struct stat *st)
{
    uint64_t size;
    held h;

    if (S_ISREG(st->st_mode) && !f->folder && (st->st_mode & 07777) == f->mode) {
        aq_auto_fd int fd = -1;

        if (untouched(since(k, f), st) || aq_large_empty(f, st))
            return;
        fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && aq_files_same(fd, f, k->buffer, READ_AT_ONCE))
            return;
    }
    if (digest_of(k, dirfd, name, st, &size, &h) < 0)
        unread(k, path);
    else
        add(k, 'M', path, size, h);
}

static void visit(walk *k, int dirfd, int original, const char *name, const char *path,
                  const struct stat *st)
{
    struct stat was;
    uint64_t size, old_size;
    held h, old;
    bool copied = original >= 0 && fstatat(original, name, &was, AT_SYMLINK_NOFOLLOW) == 0;

    if (copied && (was.st_mode & S_IFMT) == (st->st_mode & S_IFMT) &&
        untouched(&k->world->started, st))
        return;
    if (digest_of(k, dirfd, name, st, &size, &h) < 0) {
        unread(k, path);
        return;
    }
    if (copied && (was.st_mode & S_IFMT) == (st->st_mode & S_IFMT) &&
        digest_of(k, original, name, &was, &old_size, &old) == 0 && old_size == size &&
        aq_digest_equal(&old.digest, &h.digest))
        return;
    add(k, copied ? 'M' : 'A', path, size, h);
}

static int walk_folder(walk *k, int dirfd, int original, const char *name, const char *path,
                       unsigned depth);

/* The name of a folder ends with a slash. Those on the way to a share are ours. */
static bool on_the_way(const walk *k, const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < k->world->root.count; i++) {
        const aq_entry *e = &k->world->root.entry[i];

        if (e->kind == SHARE && strncmp(e->path, path, n) == 0 &&
            (e->path[n] == '/' || e->path[n] == '\0'))
            return true;
    }
    return false;
}

static void enter_folder(walk *k, int dirfd, int original, const char *name, const char *path,
                         const aq_plan_file *f, unsigned depth)
{
    const char *folder = aq_arena_printf(k->arena, "%s/", path);
    size_t row = k->count;
    struct stat was;
    bool known = (f && f->folder) ||
                 (original >= 0 && fstatat(original, name, &was, AT_SYMLINK_NOFOLLOW) == 0);

    if (!known && !on_the_way(k, path))
        add(k, f ? 'M' : 'A', folder, 0, held_text(k, "", 0));
    if (depth < DEPTH && walk_folder(k, dirfd, original, name, path, depth + 1) != UNREAD)
        return;
    if (row < k->count && strcmp(k->changes[row].path, folder) == 0) { /* new, and unread */
        k->changes[row].change = 'U';
        k->changes[row].digest = k->changes[row].content = (aq_digest){{0}};
    } else {
        unread(k, folder);
    }
}

static void enter(walk *k, int dirfd, int original, const char *name, const char *path,
                  unsigned depth)
{
    const aq_plan_file *f = aq_files_find(&k->planned, path);
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        unread(k, path);
    else if (S_ISDIR(st.st_mode))
        enter_folder(k, dirfd, original, name, path, f, depth);
    else if (f)
        visit_planned(k, dirfd, name, path, f, &st);
    else if (!on_the_way(k, path))
        visit(k, dirfd, original, name, path, &st);
}

/* What the original has and the copy has not any more. */
static void missing(walk *k, int fd, int original, const char *path)
{
    int copy = openat(original, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (!dir && copy >= 0)
        close(copy);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st, was;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            fstatat(copy, e->d_name, &was, AT_SYMLINK_NOFOLLOW) < 0 ||
            fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
            faccessat(copy, e->d_name, R_OK, AT_SYMLINK_NOFOLLOW) < 0 ||
            !(S_ISREG(was.st_mode) || S_ISDIR(was.st_mode) || S_ISLNK(was.st_mode)))
            continue;
        add(k, 'D',
            aq_arena_printf(k->arena, "%s/%s%s", path, e->d_name, S_ISDIR(was.st_mode) ? "/" : ""),
            0, (held){0});
    }
    if (dir)
        closedir(dir);
}

static int open_folder(int dirfd, const char *name)
{
    return openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* 0, or UNREAD when something in it has no row of its own. */
static int walk_folder(walk *k, int dirfd, int original, const char *name, const char *path,
                       unsigned depth)
{
    aq_auto_fd int old = original < 0 ? -1 : open_folder(original, depth ? name : ".");
    int fd = open_folder(dirfd, name);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return UNREAD;
    }
    errno = 0;
    for (struct dirent *e; !k->full && (e = readdir(dir)); errno = 0) {
        aq_auto_buf full = {0};
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        aq_buf_addf(&full, "%s/%s", path, e->d_name);
        if (full.len < AQ_WIRE_PATH - 1) /* a folder's name gets a slash */
            enter(k, fd, old, e->d_name, aq_buf_str(&full), depth);
        else
            r = UNREAD;
    }
    if (errno)
        r = UNREAD;
    if (old >= 0)
        missing(k, fd, old, path);
    closedir(dir);
    return r;
}

/* Does it lie where nobody could look, or is it a writable place itself? */
static bool out_of_sight(const walk *k, const aq_plan_file *f)
{
    for (size_t i = 0; i < k->count; i++)
        if (k->changes[i].change == 'U' &&
            strncmp(f->path, k->changes[i].path, strlen(k->changes[i].path)) == 0)
            return true;
    for (size_t i = 0; i < k->world->root.count; i++)
        if (k->world->root.entry[i].kind == SPACE &&
            strcmp(k->world->root.entry[i].path, f->path) == 0)
            return true;
    return k->full;
}

/* Files of the plan that nobody came across any more. */
static void planned_missing(walk *k)
{
    for (size_t i = 0; i < k->planned.count; i++) {
        const aq_plan_file *f = k->planned.row[i];

        if (!k->planned.seen[i] && !out_of_sight(k, f) &&
            (k->world->laid || !aq_files_at_home(k->world->plan, f)))
            add(k, 'D', aq_arena_printf(k->arena, "%s%s", f->path, f->folder ? "/" : ""), 0,
                (held){0});
    }
}

int aq_changes_read(aq_arena *a, const aq_world *w, const aq_marks *marks, aq_observation *o,
                    aq_err *err)
{
    walk k = {.arena = a,
              .world = w,
              .marks = marks,
              .hash = aq_hash_begin(),
              .content = aq_hash_begin(),
              .buffer = aq_alloc(READ_AT_ONCE)};
    int r = 0;

    aq_files_index(w->plan, &k.planned);
    /* Inside the user namespace, which is ours, every file can be read, whatever its mode. */
    if (setns(w->users, CLONE_NEWUSER) < 0)
        r = aq_fail_errno(err, "cannot enter the world's user namespace");
    for (size_t i = 0; i < w->root.count && r == 0; i++) {
        const aq_entry *e = &w->root.entry[i];
        char name[64];
        if (e->kind != SPACE && !e->copied)
            continue;
        if (walk_folder(&k, w->disk, e->copied ? e->mount : -1, aq_root_folder(&w->root, e, name),
                        e->path, 0) == UNREAD ||
            k.full)
            unread(&k, aq_arena_printf(a, "%s/", e->path));
    }
    if (r == 0)
        planned_missing(&k);
    aq_files_index_free(&k.planned);
    if (k.count) {
        aq_file_change *all = aq_arena_alloc(a, k.count * sizeof *all);
        memcpy(all, k.changes, k.count * sizeof *all);
        o->changes = all;
    }
    o->change_count = k.count;
    aq_hash_abort(k.hash);
    aq_hash_abort(k.content);
    free(k.buffer);
    free(k.changes);
    return r;
}
