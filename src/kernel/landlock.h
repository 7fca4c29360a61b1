/* Landlock: takes away a process's own rights to files, network and signals.
 *
 * The definitions are ours because the system's headers are older than the kernels we meet; every
 * right of ABI 1 to 7 is known here. Thin: what to deny is the caller's business. */
#pragma once

#include "base/err.h"

enum { AQ_LANDLOCK_ABI_KNOWN = 7 };

/* The kernel's ABI, 0 when it has no Landlock or has it turned off. */
int aq_landlock_abi(void);

/* Denies this thread every right that the kernel's ABI can name, with no exception: no file can be
 * opened, no TCP port bound or reached, no process outside signalled. Open descriptors stay usable.
 * Needs no_new_privs. Returns the ABI that was applied, 0 where there is none, negative on
 * failure. */
int aq_landlock_deny_all(aq_err *err);
