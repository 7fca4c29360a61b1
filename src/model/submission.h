/* A submission: who sends which package, in the frozen envelope *Intake v1*.
 *
 * docs/formats/intake-v1.md and its JSON Schema are the contract; unknown fields are refused. A
 * folder or archive from the command line gets an envelope made for it: publisher local, unsigned.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/manifest.h"

enum { AQ_ENVELOPE_BYTES = 4 << 20 };

/* Publisher tiers, weakest first. Local has no trust tier: capabilities alone select. */
typedef enum aq_publisher_tier {
    AQ_TIER_LOCAL,
    AQ_TIER_NEW,        /* ○ */
    AQ_TIER_IDENTIFIED, /* ◐ */
    AQ_TIER_PROVEN,     /* ● */
    AQ_TIER_TRUSTED,    /* ◆ */
    AQ_TIER_STEWARD,    /* ★ */
} aq_publisher_tier;

typedef enum aq_signature_state {
    AQ_SIGNATURE_NONE,      /* none was given */
    AQ_SIGNATURE_UNCHECKED, /* given, and nobody verified it: such a submission cannot pass */
    AQ_SIGNATURE_GOOD,
    AQ_SIGNATURE_BAD,
} aq_signature_state;

typedef struct aq_submission {
    const char *id; /* 32 hex digits for local ones, the envelope's otherwise */
    bool local;
    const char *name, *namespace_, *version; /* what the envelope claims; NULL for local */
    aq_type type;
    const char *publisher; /* "local" or the envelope's id */
    aq_publisher_tier tier;
    aq_digest artifact; /* claimed; zero for local */
    uint64_t artifact_size;
    const char *media_type;
    const json_t *manifest; /* the envelope's copy of the manifest, borrowed from `source` */
    aq_signature_state signature;
    int64_t time;      /* of submission, seconds since 1970 */
    const char *nonce; /* 16…64 hex digits */
    json_t *source;    /* the whole envelope, owned; NULL for local */
} aq_submission;

const char *aq_publisher_tier_name(aq_publisher_tier t);
const char *aq_signature_state_name(aq_signature_state s);

/* Reads an envelope; the error names the field and what was expected. */
int aq_submission_read(aq_arena *a, const char *text, size_t len, const char *name,
                       aq_submission *ret, aq_err *err);
/* Makes one for a folder or archive on the command line; id and nonce are random. */
int aq_submission_local(aq_arena *a, aq_submission *ret, aq_err *err);
/* The envelope as JSON: what was read, or what was made. New reference. */
json_t *aq_submission_json(const aq_submission *s);
/* A digest of what the envelope claims: all of it but id, time, nonce and the signature bundle.
 * false for a local one, and for one that could not be read. */
bool aq_submission_claims(const aq_submission *s, aq_digest *ret);
void aq_submission_close(aq_submission *s);
