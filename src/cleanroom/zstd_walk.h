/* Walks through the frames and blocks of zstd data beside the decoder, which does not tell what it
 * passed over. Private to the stream. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct zstd_walk {
    enum { ZSTD_WALK_HEAD, ZSTD_WALK_BLOCK, ZSTD_WALK_BODY, ZSTD_WALK_SUM, ZSTD_WALK_DONE } state;
    uint8_t field[18]; /* a header that is not whole yet */
    size_t have;
    uint64_t skip; /* bytes of contents to pass */
    int last, checksum;
    uint8_t shape[2]; /* descriptors of the frame before */
    uint64_t frames;
    uint64_t spare; /* bytes that could be anything without a change in what comes out */
} zstd_walk;

/* A new frame begins with the next byte. */
void zstd_walk_frame(zstd_walk *w);
/* Bytes that the decoder took, in order. */
void zstd_walk_bytes(zstd_walk *w, const uint8_t *p, size_t len);
