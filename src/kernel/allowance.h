/* What whoever started us allows us to use: the resource limits that we inherit.
 *
 * A soft limit is a habit, made for other programs, and is raised as far as it may be; a hard one
 * is a border, and what fails at it can say so. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Takes the open files, the memory and the stack that we need, and fails where the stack is too
 * small to go on. The size of files stays as it is: it holds for those that we write for the
 * caller. */
int aq_allowance_take(aq_err *err);

/* The limit that may have stood in the way of what failed with `code` (a negative errno): "; at
 * most 20 open files here (ulimit -n)". Empty where there is none. */
const char *aq_allowance_hint(int code, char *text, size_t size);
