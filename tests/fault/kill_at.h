/* Faults at an exact place: runs a child under ptrace and counts the system calls that change
 * files. The program under test is the real one; nothing is compiled into it or loaded before it.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

typedef enum kill_mode {
    KILL_BEFORE, /* killed when it is about to make the call */
    KILL_HALF,   /* a write of which only half is done, then killed */
    FAIL_EIO,    /* the call does nothing and gives EIO; the child goes on */
    FAIL_SYNC,   /* the same for fdatasync alone */
} kill_mode;

/* In the child: counting starts here. */
void kill_at_ready(void);
/* In the parent: lets the child run until call number `at` (from 0), applies the fault, and reaps
 * the child. False when the child ended before that call. */
bool kill_at(pid_t child, kill_mode mode, unsigned at);
/* How the last child ended: its exit status, or -1 when it was killed. */
int kill_at_status(void);
