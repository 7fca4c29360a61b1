/* Namespaces: a child in fresh ones, who it is in there, and its clocks. Thin: which namespaces and
 * which identities is the caller's policy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* As fork, into the given namespaces and, when `cgroup` is a descriptor of a v2 folder, into that
 * group. Returns 0 in the child, its pid in the caller with `*pidfd` set, or a negative errno.
 * The C library is not told: in the child only one thread exists and none may be made. */
pid_t aq_namespace_clone(uint64_t namespaces, int cgroup, int *pidfd, aq_err *err);

/* One row of an identity map: user and group `inside` are `user` and `group` for the host. */
typedef struct aq_id_map {
    uint32_t inside, user, group;
} aq_id_map;

/* Writes the maps of a process that lives in a new user namespace. `groups` says whether its root
 * may still call setgroups; without privilege it may not. */
int aq_namespace_map(pid_t pid, const aq_id_map *rows, size_t count, bool groups, aq_err *err);

/* This process alone moves into a user namespace of its own, in which it is root, and into the
 * other new namespaces that `more` says. Outside it has its user's rights to files and to nothing
 * else: whoever is in another user namespace cannot be traced from there. */
int aq_namespace_enter_own(int more, aq_err *err);
/* How many ids of [first, first + count) this process's own user namespace knows. */
uint32_t aq_namespace_ids(uint32_t first, uint32_t count);
/* The last `count` ids of the longest range that it knows; 0 when no range is that long. */
uint32_t aq_namespace_last_ids(uint32_t count);

/* The groups that this process is in are the roots that it and its children see from now on. */
int aq_namespace_cgroups(aq_err *err);

/* Children made from now on live in a time namespace whose clocks (since boot, monotonic) start at
 * `seconds`. Their offsets are frozen with the first child. */
int aq_namespace_clocks(uint64_t seconds, aq_err *err);
