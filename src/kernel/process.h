/* What a process can give up about itself: limits, descriptors, identity, namespaces. Thin wrappers
 * around the kernel's calls; which of them to use, and in which order, is the caller's policy. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Sets soft and hard limit of one resource; a hard limit that is lower already stays. */
int aq_process_limit(int resource, uint64_t soft, uint64_t hard, aq_err *err);
/* Closes every descriptor from `first` on. */
int aq_process_close_from(unsigned first, aq_err *err);
/* As root: becomes `id` as user and group, without supplementary groups. Otherwise nothing. */
int aq_process_become(uint32_t id, aq_err *err);
/* Gives up every capability of this thread, ambient ones included. */
int aq_process_no_capabilities(aq_err *err);
/* Moves into fresh, empty namespaces; the CLONE_NEW… bits that worked are returned. Tries all at
 * once first and then, if that fails, none: a half of them has no use to anyone. */
int aq_process_unshare(int namespaces);
/* no_new_privs: nothing that this process starts can gain rights. */
int aq_process_no_new_privileges(aq_err *err);
