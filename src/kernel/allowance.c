/* The limits that we inherit; see allowance.h. */
#include "kernel/allowance.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

enum { STACK_LEAST = 192 << 10 };

/* `wanted` is what we take; a limit of that or more is not what failed. */
static const struct {
    int error;
    __rlimit_resource_t resource;
    bool raised;
    uint64_t wanted;
    unsigned unit;
    const char *what, *option;
} limits[] = {
    {EMFILE, RLIMIT_NOFILE, true, 1024, 1, "open files", "-n"},
    {0, RLIMIT_STACK, true, 8 << 20, 1024, "KB of stack", "-s"},
    {ENOMEM, RLIMIT_AS, true, RLIM_INFINITY, 1024, "KB of memory", "-v"},
    {ENOMEM, RLIMIT_DATA, true, RLIM_INFINITY, 1024, "KB of data", "-d"},
    {EFBIG, RLIMIT_FSIZE, false, RLIM_INFINITY, 1024, "KB in a file", "-f"},
    {EAGAIN, RLIMIT_NPROC, false, RLIM_INFINITY, 1, "processes of yours",
     "-u, or a pids cgroup has less"},
};

int aq_allowance_take(aq_err *err)
{
    struct rlimit l;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t wanted = limits[i].wanted;

        if (!limits[i].raised || getrlimit(limits[i].resource, &l) < 0 || l.rlim_cur >= wanted)
            continue;
        l.rlim_cur = wanted < l.rlim_max ? wanted : l.rlim_max;
        (void)setrlimit(limits[i].resource, &l); /* what it is too little for will say so */
        if (limits[i].resource == RLIMIT_STACK && l.rlim_cur < STACK_LEAST)
            return aq_fail(err, -ENOMEM,
                           "at most %llu KB of stack here, and %d are needed: ulimit -s",
                           (unsigned long long)l.rlim_cur >> 10, STACK_LEAST >> 10);
    }
    return 0;
}

const char *aq_allowance_hint(int code, char *text, size_t size)
{
    struct rlimit l;

    *text = '\0';
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (code && limits[i].error == -code && getrlimit(limits[i].resource, &l) == 0 &&
            l.rlim_cur < limits[i].wanted) {
            snprintf(text, size, "; at most %llu %s here (ulimit %s)",
                     (unsigned long long)l.rlim_cur / limits[i].unit, limits[i].what,
                     limits[i].option);
            break;
        }
    return text;
}
