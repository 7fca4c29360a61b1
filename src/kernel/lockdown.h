/* What all our processes that read hostile bytes give up alike: limits, namespaces, calls. What one
 * of them needs beyond that it says itself. The order is the caller's: namespaces need the rights
 * that becoming nobody takes away, and the filter comes last, because it forbids all the rest. */
#pragma once

#include <stdbool.h>

#include "kernel/seccomp.h"

/* What libraries do once, on their first use, and could not do later: the C library's sorter looks
 * at the size of memory, jansson reads a seed. */
void aq_lockdown_warm_up(void);

/* Leaves network, mounts, names and groups for empty ones, without root in a user namespace of its
 * own. False where the host does not let us. */
bool aq_lockdown_namespaces(void);

typedef struct aq_lockdown_limits {
    uint64_t memory, seconds, open_files;
} aq_lockdown_limits;

/* Sets them; writes no file and no core, starts nobody. `memory` is not set under a sanitizer,
 * which reserves terabytes of addresses; `*has_memory` says whether it was. */
int aq_lockdown_limit(const aq_lockdown_limits *l, bool *has_memory, aq_err *err);

/* Installs the filter: the calls that each of us needs, and `calls`. */
int aq_lockdown_filter(const aq_call *calls, size_t count, aq_err *err);
