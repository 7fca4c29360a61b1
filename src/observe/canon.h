/* The canonical form of an observation: what two equal runs share, whatever their schedule.
 *
 * A run is a partial order. Each thread is a sequence of acts in its own order, and is named by its
 * place in the tree of births ("p1" is the first, "p1.t2" the thread that p1 made as its second
 * birth, "p1.t2.p1" a process which that thread made). What orders threads among each other stands
 * in the acts themselves, by those names: births, ends that were waited for, signals, and edges
 * (who woke it, whose bytes it read; edge.c). Numbers that only name something (descriptors,
 * processes) are left out or named; times are left out; values of decoys become their names
 * (model/marks.h), which the caller says.
 * docs/formats/observation.md is the contract; the input is as hostile as any stream. */
#pragma once

#include "model/marks.h"
#include "model/observation.h"

/* One act of one thread. */
typedef struct aq_canon_line {
    uint32_t thread;  /* index, in the order of first sight; aq_canon_thread_name */
    uint64_t seq;     /* of the event in the stream */
    const char *text; /* canonical JSON without its newline; lives during the call */
    size_t len;
} aq_canon_line;

typedef struct aq_canon aq_canon;
/* `marks` are borrowed and may be NULL; `each` (may be NULL) is given every line. */
aq_canon *aq_canon_new(const aq_marks *marks, void (*each)(const aq_canon_line *line, void *arg),
                       void *arg);
void aq_canon_event(aq_canon *c, const aq_event *e);
aq_digest aq_canon_end(aq_canon *c, const aq_observation *o);
void aq_canon_free(aq_canon *c); /* takes NULL */

size_t aq_canon_threads(const aq_canon *c);
const char *aq_canon_thread_name(const aq_canon *c, size_t index);
/* Threads whose birth the record does not show: their names say nothing. */
uint64_t aq_canon_unborn(const aq_canon *c);
/* What the run left, in the canonical form: a line of canonical JSON each. `name`: which stream,
 * path or file, quoted, after decoys were replaced; "" where there is only one. */
typedef enum aq_canon_part {
    AQ_CANON_DROPPED,
    AQ_CANON_EXIT,
    AQ_CANON_OUTPUT,
    AQ_CANON_CHANGE,
    AQ_CANON_REACHED,
} aq_canon_part;

typedef void aq_canon_take(aq_canon_part part, const char *name, const char *line, size_t len,
                           void *arg);
void aq_canon_remains(const aq_marks *marks, const aq_observation *o, aq_canon_take *each,
                      void *arg);
