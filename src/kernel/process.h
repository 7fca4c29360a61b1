/* What a process can give up about itself: limits, descriptors, identity, namespaces. Thin wrappers
 * around the kernel's calls; which of them to use, and in which order, is the caller's policy. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"

/* Sets soft and hard limit of one resource; a hard limit that is lower already stays. */
int aq_process_limit(int resource, uint64_t soft, uint64_t hard, aq_err *err);
/* No core is dumped of this process and what comes of it, to a file or to the host's collector. */
int aq_process_no_core(aq_err *err);
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
/* Empties the bounding set and locks every way in which becoming root gives capabilities, for this
 * thread and all that comes of it. Needs CAP_SETPCAP. */
int aq_process_no_way_up(aq_err *err);
/* Keeps these capabilities (bits) over a change of user to `id`, and no others; as root only. */
int aq_process_become_keeping(uint32_t id, uint64_t capabilities, aq_err *err);
/* Has this thread all of these capabilities (bits) now? */
bool aq_process_has_capabilities(uint64_t capabilities);
/* Keeps these capabilities (bits) and gives up all others. */
int aq_process_keep_capabilities(uint64_t capabilities, aq_err *err);
/* The host's /proc becomes the root folder: of the host's files nothing else can be reached. Needs
 * CAP_SYS_CHROOT. */
int aq_process_only_proc(aq_err *err);
/* Reading the processor's counter is a SIGSEGV from here on, in children and new programs too. So
 * is libc's clock_gettime, which reads it without a call: use aq_process_clock. */
int aq_process_trap_counter(aq_err *err);
/* A clock, by a call in any case. */
void aq_process_clock(clockid_t clock, struct timespec *ret);
/* What stands before a path of the host's /proc in this process: "/proc", or nothing after
 * aq_process_only_proc. */
const char *aq_process_proc(void);
/* A session keyring of its own, empty. A kernel without keyrings is fine. */
int aq_process_new_keyring(aq_err *err);
/* Dies when the thread that made this process dies. A change of identity forgets it: call it
 * after. */
int aq_process_die_with_parent(aq_err *err);
/* Lets a child that was just made begin on another processor of `all` than ours, if there is one:
 * the kernel often leaves it waiting behind us. */
void aq_process_spread(pid_t child, const cpu_set_t *all);
/* Closes every descriptor from 3 on but those `count` in `keep`, which it sorts. */
int aq_process_close_but(int *keep, size_t count, aq_err *err);
/* Overwrites the command line and the environment that others could read of this process. What
 * still points into them is lost. */
void aq_process_forget_start(const char *name);
