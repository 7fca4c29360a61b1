/* A ledger in a folder of its own, for tests. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ledger/internal.h"

typedef struct ledger_folder {
    char path[256];
    int fd;
    aq_keys *keys;
    aq_ledger *ledger;
} ledger_folder;

static inline void folder_remove(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0)
            folder_remove(fd, e->d_name);
    if (d)
        closedir(d);
    unlinkat(at, name, AT_REMOVEDIR);
}

/* In memory where that is possible: a kill is survived by the page cache on every file system, and
 * the tests need not wait for a busy disk. */
static inline const char *folder_parent(void)
{
    return access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

/* `parent` NULL: folder_parent. */
static inline int folder_make(ledger_folder *f, const char *parent)
{
    aq_err err = {0};

    snprintf(f->path, sizeof f->path, "%s/aq-ledger-XXXXXX", parent ? parent : folder_parent());
    if (!mkdtemp(f->path))
        return -1;
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0 || aq_keys_open(f->fd, &f->keys, &err) < 0 ||
        aq_ledger_open(f->fd, f->keys, &f->ledger, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    return 0;
}

static inline void folder_free(ledger_folder *f)
{
    aq_ledger_close(f->ledger);
    aq_keys_free(f->keys);
    close(f->fd);
    folder_remove(AT_FDCWD, f->path);
}

/* For cmocka: a test of its own folder. */
static inline int folder_setup(void **state)
{
    ledger_folder *f = calloc(1, sizeof *f);

    *state = f;
    return folder_make(f, NULL);
}

static inline int folder_teardown(void **state)
{
    folder_free(*state);
    free(*state);
    return 0;
}

/* Appends `count` small entries in one batch; their "n" counts from `n`. */
static inline int folder_append(aq_ledger *l, uint64_t n, size_t count, uint64_t *first,
                                aq_err *err)
{
    json_t **bodies = calloc(count, sizeof *bodies);
    int r;

    for (size_t i = 0; i < count; i++)
        bodies[i] = json_pack("{s:s, s:I}", "kind", "test", "n", (json_int_t)(n + i));
    r = aq_ledger_append_all(l, bodies, count, first, NULL, err);
    for (size_t i = 0; i < count; i++)
        json_decref(bodies[i]);
    free(bodies);
    return r;
}
