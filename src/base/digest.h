/* SHA-256, hex and base64: the only spellings of bytes that our formats use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { AQ_SHA256_LEN = 32, AQ_SHA256_HEX = 65 };

typedef struct aq_digest {
    uint8_t b[AQ_SHA256_LEN];
} aq_digest;

aq_digest aq_sha256(const void *data, size_t len);

/* Incremental form. aq_hash_end frees the state; aq_hash_abort takes NULL. */
typedef struct aq_hash aq_hash;
aq_hash *aq_hash_begin(void);
void aq_hash_add(aq_hash *h, const void *data, size_t len);
aq_digest aq_hash_peek(const aq_hash *h); /* digest so far; the state goes on */
void aq_hash_reset(aq_hash *h);
aq_digest aq_hash_end(aq_hash *h);
void aq_hash_abort(aq_hash *h);

bool aq_digest_equal(const aq_digest *a, const aq_digest *b);
/* Lower-case hex; returns `out`. */
const char *aq_digest_hex(const aq_digest *d, char out[static AQ_SHA256_HEX]);
int aq_digest_parse(const char *hex, aq_digest *ret); /* exactly 64 lower-case digits */

void aq_hex(const void *data, size_t len, aq_buf *out);
int aq_unhex(const char *hex, size_t len, aq_buf *out);

/* Standard base64 with padding; decoding refuses anything else (white space included). */
void aq_base64(const void *data, size_t len, aq_buf *out);
int aq_unbase64(const char *text, size_t len, aq_buf *out);
