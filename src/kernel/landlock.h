/* Landlock: takes away a process's own rights to files, network and signals.
 *
 * The definitions are ours because the system's headers are older than the kernels we meet; every
 * right of ABI 1 to 7 is known here. Thin: what to deny is the caller's business. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { AQ_LANDLOCK_ABI_KNOWN = 7 };

/* The kernel's ABI, 0 when it has no Landlock or has it turned off. */
int aq_landlock_abi(void);

/* Denies this thread every right that the kernel's ABI can name, with no exception: no file can be
 * opened, no TCP port bound or reached, no process outside signalled. Open descriptors stay usable.
 * Needs no_new_privs. Returns the ABI that was applied, 0 where there is none, negative on
 * failure. */
int aq_landlock_deny_all(aq_err *err);

/* What a rule allows below its folder. */
enum {
    AQ_LANDLOCK_READ = 1,     /* files and names of folders */
    AQ_LANDLOCK_RUN = 2,      /* programs */
    AQ_LANDLOCK_FILL = 4,     /* write to and cut files that exist */
    AQ_LANDLOCK_CHANGE = 8,   /* make, remove, move files, folders, links, pipes, sockets */
    AQ_LANDLOCK_DEVICES = 16, /* ioctl on device files */
};

typedef struct aq_landlock_rule {
    const char *path; /* a folder; one that does not exist is passed over */
    unsigned may;
} aq_landlock_rule;

/* As aq_landlock_deny_all, with exceptions. Making device files is never allowed. Signals and
 * abstract sockets end at this domain. With `tcp` the rights of TCP are left alone, for a network
 * namespace of which nothing leads out. */
int aq_landlock_allow(const aq_landlock_rule *rules, size_t count, bool tcp, aq_err *err);
