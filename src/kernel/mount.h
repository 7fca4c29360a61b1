/* Mounts by descriptors: a file system or a piece of the host's tree is made detached, gets its
 * flags while nobody can see it, and only then a place. Thin: what goes where is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What a mount refuses; the kernel's MOUNT_ATTR_ bits. */
enum {
    AQ_MOUNT_READ_ONLY = 0x01,
    AQ_MOUNT_NO_SUID = 0x02,
    AQ_MOUNT_NO_DEVICES = 0x04,
    AQ_MOUNT_NO_EXEC = 0x08,
};

typedef struct aq_mount_option {
    const char *key, *value; /* value NULL: a flag */
} aq_mount_option;

/* A new file system of that type, detached. Options end with an empty row; NULL for none. */
int aq_mount_new(const char *type, const aq_mount_option *options, uint64_t attributes,
                 aq_err *err);
/* What is at `path` now, detached, with these attributes; `deep` takes what is mounted below too,
 * and so does a kernel that refuses to part them. */
int aq_mount_copy(int dirfd, const char *path, bool deep, uint64_t attributes, aq_err *err);
/* Adds attributes to a mount. */
int aq_mount_restrict(int mount, uint64_t attributes, aq_err *err);
/* Sets options of the file system of a mount anew. */
int aq_mount_change(int mount, const aq_mount_option *options, aq_err *err);
/* Gives a detached mount its place. The descriptor stays valid and the caller's. */
int aq_mount_attach(int mount, int dirfd, const char *path, aq_err *err);
/* Makes a mount that has its place the root of this mount namespace and of every process in it that
 * had the old one. The old tree stays, covering the new one, until aq_mount_leave_old() takes it
 * away: that waits for the whole machine, and others can go on meanwhile. */
int aq_mount_become_root(int mount, aq_err *err);
int aq_mount_leave_old(aq_err *err);
