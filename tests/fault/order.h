/* The order in which a program makes its files durable, seen from outside: runs a child under
 * ptrace and keeps account of the files and names whose change no fsync has covered yet. A kill
 * loses nothing that the kernel holds, so faults by killing cannot see a sync that is missing; only
 * a power cut could, and this account stands in for it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum order_moment {
    ORDER_RENAME, /* a file is about to get its name, or to replace another */
    ORDER_UNLINK, /* a name is about to go away */
    ORDER_TELL,   /* bytes are about to go into a pipe: somebody is told */
} order_moment;

typedef struct order order;

/* Called before the act is done. `path` is the name as the child wrote it, "" for ORDER_TELL. */
typedef void (*order_each)(void *arg, const order *o, order_moment moment, const char *path);

/* In the parent: watches a child that calls kill_at_ready (kill_at.h) until it ends; returns its
 * exit status, -1 when it was killed. */
int order_watch(pid_t child, order_each each, void *arg);

/* A file with bytes that are not durable, a name that has come and is not; NULL when there is none.
 * A name that went may come back after a power cut, which harms nobody: it is not counted. At
 * ORDER_RENAME the name that is about to go does not count either. */
const char *order_file(const order *o);
const char *order_name(const order *o);
