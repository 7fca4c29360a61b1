/* What a run left in its writable places: every file with its size and digest. Read when everybody
 * inside is dead, so nothing changes under our hands; names and contents are hostile all the same.
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

enum { DEPTH = 128 };

typedef struct walk {
    aq_arena *arena;
    aq_file_change *changes;
    size_t count, cap;
    aq_hash *hash;
    uint64_t bytes;
    char *buffer;
} walk;

static void add(walk *k, const char *path, uint64_t size, aq_digest digest)
{
    if (k->count == k->cap) {
        size_t cap = k->cap ? 2 * k->cap : 64;
        k->changes = aq_realloc(k->changes, cap, sizeof *k->changes);
        k->cap = cap;
    }
    k->changes[k->count++] = (aq_file_change){
        .path = aq_arena_strdup(k->arena, path), .change = 'A', .size = size, .digest = digest};
    k->bytes += size;
}

enum { READ_AT_ONCE = 128 << 10 };

static int digest_file(walk *k, int fd, aq_digest *ret)
{
    ssize_t n;

    aq_hash_reset(k->hash);
    while ((n = read(fd, k->buffer, READ_AT_ONCE)) > 0)
        aq_hash_add(k->hash, k->buffer, (size_t)n);
    if (n < 0)
        return -errno;
    *ret = aq_hash_peek(k->hash);
    return 0;
}

/* A regular file counts with its content, a link with its target, the rest with its name; the name
 * of a folder ends with a slash. */
static int visit(walk *k, int dirfd, const char *name, const char *path, const struct stat *st)
{
    char target[4096];
    aq_digest digest = aq_sha256("", 0);
    uint64_t size = 0;

    if (S_ISREG(st->st_mode)) {
        aq_auto_fd int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        int r = fd < 0 ? -errno : digest_file(k, fd, &digest);
        if (r < 0)
            return r;
        size = (uint64_t)st->st_size;
    } else if (S_ISLNK(st->st_mode)) {
        ssize_t n = readlinkat(dirfd, name, target, sizeof target);
        if (n < 0)
            return -errno;
        digest = aq_sha256(target, (size_t)n);
        size = (uint64_t)n;
    }
    add(k, path, size, digest);
    return 0;
}

static int walk_folder(walk *k, int dirfd, const char *name, const char *path, unsigned depth);

static int enter(walk *k, int dirfd, const char *name, const char *path, unsigned depth)
{
    struct stat st;

    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return visit(k, dirfd, name, path, &st);
    add(k, aq_arena_printf(k->arena, "%s/", path), 0, aq_sha256("", 0));
    /* What cannot be told makes the run fail: unread is not safe. */
    return depth == DEPTH ? -ELOOP : walk_folder(k, dirfd, name, path, depth + 1);
}

static int walk_folder(walk *k, int dirfd, const char *name, const char *path, unsigned depth)
{
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    if (!dir) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        aq_auto_buf full = {0};
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        aq_buf_addf(&full, "%s/%s", path, e->d_name);
        r = full.len < AQ_WIRE_PATH ? enter(k, fd, e->d_name, aq_buf_str(&full), depth)
                                    : -ENAMETOOLONG;
    }
    closedir(dir);
    return r;
}

int aq_changes_read(aq_arena *a, const aq_world *w, aq_observation *o, aq_err *err)
{
    walk k = {.arena = a, .hash = aq_hash_begin(), .buffer = aq_alloc(READ_AT_ONCE)};
    int r = 0;

    /* Inside the user namespace, which is ours, every file can be read, whatever its mode. */
    if (setns(w->users, CLONE_NEWUSER) < 0)
        r = aq_fail_errno(err, "cannot enter the world's user namespace");
    for (size_t i = 0; i < w->root.count && r == 0; i++) {
        const aq_entry *e = &w->root.entry[i];
        char name[64];
        if (e->kind != SPACE)
            continue;
        snprintf(name, sizeof name, "%s", e->path + 1);
        for (char *p = name; *p; p++)
            *p = *p == '/' ? '-' : *p;
        r = walk_folder(&k, w->disk, name, e->path, 0);
        if (r < 0)
            aq_fail(err, r, "cannot read what the run left in %s: %s", e->path, strerror(-r));
    }
    if (k.count) {
        aq_file_change *all = aq_arena_alloc(a, k.count * sizeof *all);
        memcpy(all, k.changes, k.count * sizeof *all);
        o->changes = all;
    }
    o->change_count = k.count;
    o->written_bytes = k.bytes;
    aq_hash_abort(k.hash);
    free(k.buffer);
    free(k.changes);
    return r;
}
