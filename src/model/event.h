/* An event: one observed act, in one vocabulary for every backend.
 *
 * Two forms on disk and wire: binary (compact, what recorders write) and JSONL (what people read).
 * The canonical form is the JSON line without what differs between identical twins: seq, time and
 * masked fields. docs/formats/event.md is the contract. A reader treats both forms as hostile. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"

typedef enum aq_event_kind {
#define AQ_EVENT_KIND(id, name, what) AQ_EVENT_##id,
#include "model/event_kinds.def"
#undef AQ_EVENT_KIND
    AQ_EVENT_KINDS
} aq_event_kind;

const char *aq_event_kind_name(aq_event_kind k);

typedef enum aq_declared {
    AQ_DECLARED_UNKNOWN, /* nobody compared it with the declaration yet */
    AQ_DECLARED_YES,
    AQ_DECLARED_NO,
} aq_declared;

enum {
    AQ_EVENT_ARGS = 8,
    AQ_EVENT_DECOYS = 8,
    AQ_EVENT_TEXT = 4096, /* bytes of one string; a longer one is cut and marked */
};

/* An argument: a number, or bytes (paths, payload heads). */
typedef struct aq_event_arg {
    const char *name;
    const char *bytes; /* NULL: `number` counts */
    size_t len;
    int64_t number;
    bool cut; /* `bytes` is the head of something longer */
} aq_event_arg;

typedef struct aq_event {
    uint64_t seq;     /* from 0, without gaps */
    uint64_t time;    /* virtual nanoseconds since the start of the run */
    uint32_t process; /* ordinal in order of creation, 0 = the first */
    uint32_t thread;  /* ordinal inside the process */
    aq_event_kind kind;
    const char *op; /* "open", "connect", "dns-query", "exec", "sleep", … [a-z0-9-] */
    const char
        *object; /* the thing really acted on: path, host:port, program; bytes; may be NULL */
    size_t object_len;
    bool object_cut; /* `object` is the head of something longer */
    aq_event_arg args[AQ_EVENT_ARGS];
    uint8_t arg_count;
    int64_t result;                      /* return value, or negative errno */
    const char *decoys[AQ_EVENT_DECOYS]; /* names of decoys touched */
    uint8_t decoy_count;
    aq_declared declared;
    const char *rule; /* of the policy that refused the act, NULL when it was allowed */
} aq_event;

/* Binary form. Writing never fails on an event within the bounds; reading returns the bytes used,
 * 0 when `len` holds no whole record, or -EBADMSG with the reason. Strings point into `data` or,
 * where they need a terminator, into the arena. */
void aq_event_write(const aq_event *e, aq_buf *out);
ssize_t aq_event_read(aq_arena *a, const void *data, size_t len, aq_event *ret, aq_err *err);

/* One JSON line with its newline; keys sorted. */
void aq_event_jsonl(const aq_event *e, aq_buf *out);
int aq_event_from_json(aq_arena *a, const json_t *line, aq_event *ret, aq_err *err);
/* The JSON line without seq and time. */
void aq_event_canonical(const aq_event *e, aq_buf *out);
