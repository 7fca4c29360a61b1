/* Names and numbers of system calls; see syscalls.h. */
#include "kernel/syscalls.h"

#include <string.h>

#ifndef __x86_64__
#error "only the table of x86-64 is built; tools/gen-syscalls makes others"
#endif

static const char *const names[AQ_SYSCALL_NUMBERS] = {
#define AQ_SYSCALL(number, name) [number] = #name,
#include "kernel/syscalls_x86_64.def"
#undef AQ_SYSCALL
};

const char *aq_syscall_name(long number)
{
    return number >= 0 && number < AQ_SYSCALL_NUMBERS ? names[number] : NULL;
}

long aq_syscall_number(const char *name)
{
    for (long i = 0; i < AQ_SYSCALL_NUMBERS; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return i;
    return -1;
}
