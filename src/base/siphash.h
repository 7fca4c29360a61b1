/* A keyed 128-bit hash (SipHash-2-4) for tables of names that strangers choose: without the key
 * nobody can make two names collide. Not for digests that leave the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* May be copied: what is added to the copy does not change the original. */
typedef struct aq_siphash {
    uint64_t v[4];
    uint64_t part; /* bytes that do not fill a word yet */
    uint64_t len;
} aq_siphash;

typedef struct aq_siphash128 {
    uint64_t low, high;
} aq_siphash128;

void aq_siphash_begin(aq_siphash *h, const uint64_t key[static 2]);
void aq_siphash_add(aq_siphash *h, const void *data, size_t len);
aq_siphash128 aq_siphash_end(const aq_siphash *h);
/* A key from the system's random numbers. */
void aq_siphash_key(uint64_t key[static 2]);
