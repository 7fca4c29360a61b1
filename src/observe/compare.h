/* Comparison: are two runs the same, and if not, where do they part?
 *
 * Both are brought to their canonical form (canon.h) and compared thread by thread, output by
 * output, file by file. Equal means that the canonical digests are equal; everything else here only
 * explains. Streams are hostile: work and memory are bounded, and what a bound left out is counted.
 */
#pragma once

#include "observe/canon.h"

enum { AQ_COMPARE_ROWS = 256 }; /* differences that are shown */

/* One of the two runs. */
typedef struct aq_compared {
    const void *data; /* an observation stream */
    size_t len;
    const aq_marks *marks;
} aq_compared;

typedef enum aq_difference_kind {
#define AQ_DIFFERENCE(id, name, what) AQ_DIFFERENCE_##id,
#include "observe/differences.def"
#undef AQ_DIFFERENCE
    AQ_DIFFERENCES
} aq_difference_kind;

const char *aq_difference_name(aq_difference_kind k);

typedef struct aq_difference {
    aq_difference_kind kind;
    const char *where;   /* thread, stream or path, quoted */
    const char *line[2]; /* canonical JSON of each side; NULL where it has none */
    uint64_t seq[2];     /* of acts */
    uint64_t count[2]; /* acts of a thread; for the first difference of one: equal acts before it */
    bool first;        /* here the two parted */
} aq_difference;

typedef struct aq_run_side {
    aq_observation observation;
    aq_digest digest; /* canonical */
    uint64_t threads;
    const char *incomplete; /* why the record does not show all; NULL when it does */
    bool repeatable;        /* nothing but the programs decided who ran when */
} aq_run_side;

typedef struct aq_comparison {
    bool equal;
    aq_run_side side[2];
    aq_difference *rows; /* threads first, by name; what belongs together stands together */
    size_t count;
    uint64_t more;   /* that were not shown */
    uint64_t coarse; /* threads that differ in too much to be told apart act by act */
} aq_comparison;

/* Everything lives in the arena. -EPIPE or -EBADMSG when a stream is not whole. */
int aq_compare(aq_arena *a, const aq_compared sides[2], aq_comparison *ret, aq_err *err);
