/* Control groups: one group of processes that is limited, counted, and killed as one.
 *
 * A group is a folder in the v2 tree where that has the controllers, else one in each v1 hierarchy
 * that is needed, else nothing; its levels say which. Thin: limits and what a breach means are the
 * caller's. A group's name tells its owner (pid namespace, pid, start time), so that one left by a
 * killed owner is found and removed by the next start. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

typedef enum aq_cgroup_level { AQ_CGROUP_NONE, AQ_CGROUP_V1, AQ_CGROUP_V2 } aq_cgroup_level;
const char *aq_cgroup_level_name(aq_cgroup_level level); /* NULL for NONE */

enum { AQ_CGROUP_PLACES = 5, AQ_CGROUP_NAME = 80 };

typedef struct aq_cgroup {
    char name[AQ_CGROUP_NAME];
    struct {
        int parent, folder; /* -1: not used */
        int join;           /* v1: where a process writes itself in */
    } place[AQ_CGROUP_PLACES];
    int into;                          /* the v2 folder for aq_namespace_clone, or -1 */
    aq_cgroup_level memory, pids, cpu; /* who limits (memory, pids) or counts (cpu) */
    aq_cgroup_level rate;              /* who slows down */
    /* Open files, read again and again. */
    int memory_events, memory_peak, memory_stat, pids_events, cpu_usage;
} aq_cgroup;

typedef struct aq_cgroup_usage {
    uint64_t cpu_ns, peak_memory;
    uint64_t memory;  /* now, without what could be read again from a disk */
    uint64_t killed;  /* processes that ran into the memory limit */
    uint64_t refused; /* processes that were not made because of the limit */
} aq_cgroup_usage;

/* No group: removing and closing it is fine. */
void aq_cgroup_none(aq_cgroup *ret);
/* Makes a group with these limits. What the host does not let us have is not there afterwards, and
 * the levels say so: that is no failure. */
void aq_cgroup_make(uint64_t memory, uint64_t pids, aq_cgroup *ret);
/* The same in two parts: what a child is born into, and what it joins. `self` is for the second. */
void aq_cgroup_begin(uint64_t memory, uint64_t pids, aq_buf *self, aq_cgroup *ret);
void aq_cgroup_finish(uint64_t memory, uint64_t pids, const aq_buf *self, aq_cgroup *g);
/* Gives the group at most so many percent of one processor. Not for a group that has a process. */
void aq_cgroup_slow(aq_cgroup *g, uint64_t percent);
/* In a child that aq_namespace_clone put into `into`: joins the hierarchies of v1. */
int aq_cgroup_join(const aq_cgroup *g, aq_err *err);
void aq_cgroup_read(const aq_cgroup *g, aq_cgroup_usage *ret);
/* Kills whoever is in it, waits for at most `ms` and removes it. True when nothing is left. */
bool aq_cgroup_remove(aq_cgroup *g, unsigned ms);
/* Closes the descriptors; the group stays. */
void aq_cgroup_close(aq_cgroup *g);
/* May we make one? */
bool aq_cgroup_allowed(void);
/* Removes the groups of owners that are dead; for each it waits at most `ms` for its last member.
 */
void aq_cgroup_sweep(unsigned ms);
