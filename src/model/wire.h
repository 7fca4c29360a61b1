/* The bricks of our binary forms: varints, names, bytes; docs/formats/event.md defines them.
 *
 * Each value has exactly one encoding, so that what was read prints back to the same bytes. The
 * reader is for hostile input: after the first fault every call gives nothing and `bad` says why.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

enum {
    AQ_WIRE_NAME = 64,      /* bytes of a name */
    AQ_WIRE_PATH = 32768,   /* bytes of a path */
    AQ_WIRE_RECORD = 65536, /* bytes of a record's payload */
    AQ_WIRE_HEAD = 1 + 3,   /* longest type and length */
};
#define AQ_WIRE_COUNT ((UINT64_C(1) << 53) - 1) /* what every JSON reader can hold */

bool aq_wire_is_name(const char *s, size_t len);

void aq_wire_put_number(aq_buf *out, uint64_t v);
void aq_wire_put_signed(aq_buf *out, int64_t v);
void aq_wire_put_bytes(aq_buf *out, const void *data, size_t len);
/* Length, bytes, NUL: for names and paths, which a reader can then use in place. */
void aq_wire_put_text(aq_buf *out, const char *s, size_t len);
void aq_wire_put_digest(aq_buf *out, const aq_digest *d);
/* A whole record: type, length, payload. */
void aq_wire_put_record(aq_buf *out, char type, const aq_buf *payload);
/* The same in place, for the busiest writer: what is added between the two calls is the payload. */
size_t aq_wire_open_record(aq_buf *out, char type);
void aq_wire_close_record(aq_buf *out, size_t mark);

typedef struct aq_wire {
    const uint8_t *at, *end;
    const char *bad; /* the first fault, NULL while there is none */
} aq_wire;

/* Looks at the record at `data`: 1 with its type, payload and whole size; 0 when `len` holds no
 * whole record; -EBADMSG when its length is malformed (`*bad` says how). */
int aq_wire_record(const void *data, size_t len, char *type, aq_wire *payload, size_t *size,
                   const char **bad);

uint64_t aq_wire_number(aq_wire *w, uint64_t max);
int64_t aq_wire_signed(aq_wire *w);
uint8_t aq_wire_byte(aq_wire *w, uint8_t max);
const char *aq_wire_bytes(aq_wire *w, size_t max, size_t *len); /* not terminated */
const char *aq_wire_text(aq_wire *w, size_t max, size_t *len);  /* terminated, no NUL, not empty */
const char *aq_wire_name(aq_wire *w);
void aq_wire_digest(aq_wire *w, aq_digest *ret);
/* Everything was used. */
void aq_wire_done(aq_wire *w);
void aq_wire_refuse(aq_wire *w, const char *why);
