/* Bytes that depend on a key, a name and nothing else: SHA-256 of the key, a block's number and the
 * name. For everything in a world that must come out the same again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { AQ_STREAM_NAME = 128 }; /* more of a name does not count */

typedef struct aq_stream {
    const uint8_t *key; /* borrowed */
    const char *name;   /* borrowed */
    uint32_t counter;
    unsigned used; /* of the block; all of it in the beginning */
    uint8_t block[32];
} aq_stream;

aq_stream aq_stream_of(const uint8_t key[static 32], const char *name);
void aq_stream_bytes(aq_stream *s, void *out, size_t len);
uint32_t aq_stream_below(aq_stream *s, uint32_t limit); /* 0 … limit - 1 */
