/* What the writer and the reader of observations share; for this room alone. */
#pragma once

#include "model/observation.h"
#include "model/wire.h"

#define AQ_OBSERVATION_SCHEMA "aquarium/observation/v2"
#define AQ_OBSERVATION_MAGIC  "AQOBSV2\n"
enum { AQ_OBSERVATION_MAGIC_LEN = 8 };

/* The running digest of the record: domain line, events, and at the end what the run left. */
typedef struct aq_canonical {
    aq_hash *hash;
    aq_buf lines;
} aq_canonical;

void aq_canonical_begin(aq_canonical *c);
void aq_canonical_event(aq_canonical *c, const aq_event *e);
aq_digest aq_canonical_end(aq_canonical *c, const aq_observation *o);
void aq_canonical_abort(aq_canonical *c); /* also fine after the end */

bool aq_world_label(const char *s, size_t len);
/* Is it what aq_text_quote makes of some path? */
bool aq_reached_valid(const char *s, size_t len);
int32_t aq_exit_max(aq_exit_kind kind);
