/* Names and numbers of the system calls of this architecture, from our own table: the system's
 * headers are older than the kernels that we meet. */
#pragma once

#include <stddef.h>

enum {
#define AQ_SYSCALL(number, name) AQ_NR_##name = (number),
#include "kernel/syscalls_x86_64.def"
#undef AQ_SYSCALL
    AQ_SYSCALL_NUMBERS = 512, /* every number of the table is below */
};

const char *aq_syscall_name(long number); /* NULL: not in the table */
long aq_syscall_number(const char *name); /* -1: not in the table */
