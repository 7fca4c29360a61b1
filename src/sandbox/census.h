/* Counting the processes of a world through its own /proc, where no cgroup counts them. Private to
 * the container's files. Usable in a signal handler: no memory is taken. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

typedef struct aq_census {
    uint64_t tasks;  /* processes and threads, init not counted */
    uint64_t memory; /* bytes resident, shared pages counted for each process */
    uint64_t cpu_ns; /* of all that live and all that were waited for */
} aq_census;

/* `proc` is a descriptor of the world's /proc, -1 where it has none: then all is 0. */
void aq_census_take(int proc, aq_census *ret);
/* Bytes resident, shared pages counted once. Slower. */
uint64_t aq_census_memory(int proc);
/* Bytes of memory files that processes hold open, mapped or not: files without a name that are not
 * on the device `disk`, which has a quota. Looks at so many descriptors at most. */
uint64_t aq_census_files(int proc, dev_t disk);
