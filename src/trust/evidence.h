/* Evidence: what a third party can check about one validation.
 *
 * One JSON file: the report's digest under the HMAC that the source asks for, DSSE-signed in-toto
 * statements (test-result for the stages, SCAI as the index), and the ledger's inclusion proof
 * with its checkpoint. docs/formats/evidence.md is the contract. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"
#include "trust/keys.h"

enum {
    AQ_DSSE_PAYLOAD = 1 << 20, /* bytes; a larger envelope is refused */
    AQ_EVIDENCE_FURTHER = 32,  /* statements beside the two that are always there */
    AQ_EVIDENCE_SEEDS = 64,
};

/* DSSE: {payload, payloadType, signatures:[{keyid, sig}]} over PAE. */
json_t *aq_dsse_sign(const aq_keys *k, aq_key_use use, const char *payload_type,
                     const void *payload, size_t len);
/* Verifies the single signature with `public_key` and gives the payload bytes. */
int aq_dsse_verify(const json_t *envelope, const uint8_t public_key[static AQ_KEY_LEN],
                   const char *payload_type, aq_buf *payload, aq_err *err);
/* The bytes that are signed: "DSSEv1 <len> <type> <len> <payload>". */
void aq_dsse_pae(aq_buf *out, const char *payload_type, const void *payload, size_t len);

/* What evidence binds together. */
typedef struct aq_evidence_in {
    const json_t *report;     /* schema aquarium/report/v1, complete */
    aq_digest package;        /* subject */
    const char *package_name; /* subject name */
    const char *submission, *nonce;
    uint64_t ledger_index; /* of the verdict's entry */
    aq_digest ledger_leaf;
    const json_t *ledger_proof; /* as aq_ledger_proof_json, NULL when not published */
    /* What L3 adds, each NULL or an array: further statements [{type, predicate}], and commitments
     * to the seeds of its worlds [{run, commitment}]. */
    const json_t *further, *seeds;
} aq_evidence_in;

/* New reference: the evidence document. */
int aq_evidence_make(const aq_keys *k, const aq_evidence_in *in, json_t **ret, aq_err *err);

typedef struct aq_evidence {
    aq_digest package, report, verdict_digest;
    const char *verdict; /* borrowed from the document */
    const char *submission, *nonce;
    int64_t time;
    uint64_t ledger_index;
    aq_digest ledger_leaf;
    bool hmac_checked;        /* only the holder of the instance key can */
    const char *unknown_type; /* of a further statement that nobody here can judge; or NULL */
} aq_evidence;

/* Checks shape, every signature, and that all parts name the same package, report and nonce.
 * -ENOKEY when it was made with another key than the given one, -EBADMSG when anything is wrong.
 * `keys` may be NULL: then the HMAC is not checked. The ledger proof is checked by the caller
 * (ledger/), which also knows the checkpoint key. */
int aq_evidence_verify(const json_t *document, const uint8_t public_key[static AQ_KEY_LEN],
                       const aq_keys *keys, aq_evidence *ret, aq_err *err);
