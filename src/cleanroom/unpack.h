/* What the parts of the front's side of unpacking share. Private to this room. */
#pragma once

#include <sys/stat.h>

#include "base/budget.h"
#include "cleanroom/image.h"
#include "cleanroom/intake.h"
#include "jail/jail.h"

typedef struct aq_front {
    aq_arena *arena;
    aq_budget *budget;
    aq_findings *findings;
    aq_image *image;
    aq_progress progress;
    void *progress_arg;
    uint64_t next_progress;
    const char *form;
    const char *wrapper; /* raw, NULL when there is none */
    aq_unread *unread;
    size_t unread_count, unread_cap;
    aq_left_out *left; /* paths with the folder around everything */
    size_t left_count, left_cap;
    const char **folders; /* that have an entry of their own; paths as in `left` */
    size_t folder_count, folder_cap;
    aq_findings *early; /* told by a child that may die before its end */
    aq_nested *nested;
    size_t nested_count, nested_cap;
} aq_front;

/* Is an open file still what it was? Its owner can put the times of contents back, but not the
 * time of the last change to anything (ctime). */
static inline bool aq_unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* `place` is quoted here; `reason` must live in the arena or for ever. */
void aq_front_unread(aq_front *f, const char *place, const char *reason, uint64_t bytes);
/* Makes something that is no file of the package count in its digest; `kind` must live for ever.
 * False when there are more of them than files are allowed. */
bool aq_front_left_out(aq_front *f, const char *kind, const char *path, size_t path_len,
                       const char *what, size_t what_len);
/* A folder that may hold nothing: its name is looked at with the others. */
bool aq_front_add_folder(aq_front *f, const char *path, size_t len);
void aq_front_progress(aq_front *f);

/* Reads a folder; takes the descriptor. */
int aq_front_folder(aq_front *f, int fd, aq_err *err);
/* Reads an artifact through the jail. */
int aq_front_artifact(aq_front *f, int fd, uint64_t size, const char *name, aq_digest *packed,
                      aq_err *err);
/* Looks at names and nested archives through the jail. */
int aq_front_inspect(aq_front *f, const aq_package *p, aq_err *err);
