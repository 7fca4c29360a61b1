/* What an observation says in a minute's reading: files, hosts, processes, sleeps, refusals.
 *
 * Made from the events alone, so everybody who holds the stream gets the same one. Lists are sets
 * in the order of first appearance, bounded; what a bound left out is counted.
 * docs/formats/observation.md describes the JSON form. */
#pragma once

#include <jansson.h>

#include "base/mem.h"
#include "model/event.h"

enum { AQ_SUMMARY_ROWS = 1000 }; /* of one list */

typedef struct aq_summary_row {
    const char *text; /* quoted: a path, a host, a command line, a refusal */
    uint64_t count;   /* how often */
} aq_summary_row;

typedef struct aq_summary_list {
    aq_summary_row *rows;
    size_t count;
    uint64_t more;        /* rows that did not fit */
    uint64_t more_system; /* of them, paths of the system's own programs */
    size_t room;          /* for rows */
    uint32_t *slots;
} aq_summary_list;

typedef struct aq_summary_sleep {
    uint32_t process;
    uint64_t ns, count;
} aq_summary_sleep;

typedef struct aq_summary {
    aq_arena *arena; /* the caller's; everything lives in it */
    aq_summary_list files_read, files_written, files_removed, files_absent, files_denied;
    aq_summary_list hosts, listens, processes, refused;
    aq_summary_list names_absent; /* host names that were asked for and do not exist there */
    aq_summary_list named;        /* "ADDRESS NAME": spoken to under that name */
    aq_summary_list
        clear; /* requests that were sent in the clear and not yet told by the other side */
    aq_summary_sleep *sleeps; /* each length of each process once */
    size_t sleep_count;
    uint64_t more_sleeps;
    uint64_t slept, slept_ns;
    uint64_t virtual_ns;       /* when the last event was, on the world's own clock */
    uint64_t unseen;           /* things that could not be looked at */
    uint64_t unnamed;          /* acts of a flood, of which no event shows any */
    aq_summary_list preempted; /* why the host's clock had to decide who runs: not repeatable */
    bool resolved;             /* a name that was asked for exists */
} aq_summary;

void aq_summary_begin(aq_summary *s, aq_arena *a);
/* Fits aq_observation_read's `each`. */
void aq_summary_event(const aq_event *e, void *summary);
json_t *aq_summary_json(const aq_summary *s);
