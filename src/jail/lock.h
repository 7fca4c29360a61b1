/* How a jail's child gives up what it has; only child.c and the test of its parts call it. */
#pragma once

#include "base/err.h"
#include "jail/internal.h"
#include "jail/jail.h"

/* Gives up everything for good. What is missing on this host is told in `ret`; a host without
 * seccomp is refused. */
int aq_jail_lock(const aq_jail_job *job, size_t fd_count, aq_jail_hello *ret, aq_err *err);
/* Its first part: everything but the system call filter. On its own only in tests: under the filter
 * nobody could see whether Landlock, namespaces and identity hold too. */
int aq_jail_lock_rights(const aq_jail_job *job, size_t fd_count, aq_jail_hello *ret, aq_err *err);
