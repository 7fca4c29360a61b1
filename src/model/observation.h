/* An observation: the events of one run and what the run left: outputs, exit status, file changes,
 * resources, coverage. docs/formats/observation.md is the contract.
 *
 * A stream is: header, records (events and the rest), an end record with the count of events and
 * the digest of what precedes. A stream without its end is truncated: INCONCLUSIVE. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"
#include "model/event.h"

enum {
    AQ_OBSERVATION_EVENTS = 1 << 20,
    AQ_OBSERVATION_SUMS = 4096, /* beyond that, of events that sum up others */
    AQ_OBSERVATION_BYTES = 256 << 20,
};

typedef enum aq_exit_kind {
    AQ_EXIT_STATUS,
    AQ_EXIT_SIGNAL,
    AQ_EXIT_BUDGET,
    AQ_EXIT_FAILURE
} aq_exit_kind;

typedef struct aq_file_change {
    const char *path; /* bytes, NUL-terminated */
    char change; /* 'A' added, 'M' modified, 'D' deleted, 'U' unread: what is there is not told */
    uint64_t size;
    aq_digest digest;  /* of the new content; zero for 'D' and 'U' */
    aq_digest content; /* the same after marks were replaced (marks.h); zero: as `digest` */
} aq_file_change;

typedef struct aq_output {
    const char *stream; /* "stdout", "stderr", "mcp" */
    uint64_t bytes;     /* all that was written */
    aq_digest digest;   /* of all that was written */
    aq_digest content;  /* the same after marks were replaced; zero: as `digest` */
    const char *head;   /* its first bytes, at most AQ_EVENT_TEXT */
    size_t head_len;
} aq_output;

enum { AQ_LANDLOCK_MOST = 99 }; /* no level that a kernel will have soon */

typedef struct aq_observation {
    const char *backend; /* "container", "wasm", … */
    const char *world;   /* "A", "B", "A'", "C": a label, never a seed */
    aq_exit_kind exit_kind;
    int32_t exit_value;               /* status, signal number, budget kind or errno */
    uint64_t events;                  /* kept */
    uint64_t dropped;                 /* counted but not kept: a flood was summarised */
    uint64_t by_kind[AQ_EVENT_KINDS]; /* kept or not */
    const aq_file_change *changes;    /* sorted by path */
    size_t change_count;
    const aq_output *outputs;
    size_t output_count;
    uint64_t cpu_ns, peak_memory, written_bytes; /* host facts: not in the digest */
    uint32_t landlock;                           /* ABI that held the payload, 0: none; likewise */
    const char **reached; /* coverage: quoted paths of package files that were opened or run */
    size_t reached_count;
    aq_digest digest; /* of the record: set by the reader and by aq_recorder_end */
} aq_observation;

/* Writes a stream into `out` as the run goes; the digest of the record is computed on the way. */
typedef struct aq_recorder aq_recorder;
aq_recorder *aq_recorder_new(const char *backend, const char *world, aq_buf *out);
/* Sets e->seq. Beyond `limit` events (default AQ_OBSERVATION_EVENTS), or once the stream has
 * AQ_OBSERVATION_BYTES, only counts go on (aq_observation.dropped), and what sums up many acts:
 * the ends of processes, their calls by number, and what was repeated. */
void aq_recorder_limit(aq_recorder *r, uint64_t limit);
void aq_recorder_event(aq_recorder *r, aq_event *e);
/* Closes the stream with what the run left; fills events, dropped, by_kind and digest in `o`. */
void aq_recorder_end(aq_recorder *r, aq_observation *o);
void aq_recorder_free(aq_recorder *r);

/* Reads a whole stream, calling `each` (may be NULL) for every event; everything lives in the
 * arena. -EPIPE when the end record is missing, -EBADMSG when anything is malformed or does not
 * add up. */
int aq_observation_read(aq_arena *a, const void *data, size_t len,
                        void (*each)(const aq_event *e, void *arg), void *arg, aq_observation *ret,
                        aq_err *err);
/* The stream as JSON lines: header line, event lines, end line. */
int aq_observation_jsonl(const void *data, size_t len, aq_buf *out, aq_err *err);
json_t *aq_observation_json(const aq_observation *o); /* the summary in a report */
/* Is everything told: no event only counted, no place of the run unread? */
bool aq_observation_whole(const aq_observation *o);
