/* Streams; see stream.h. */
#include "base/stream.h"

#include <string.h>

#include "base/digest.h"

aq_stream aq_stream_of(const uint8_t key[static 32], const char *name)
{
    return (aq_stream){.key = key, .name = name, .used = sizeof(aq_digest)};
}

/* A block is SHA-256 of the key, the block's number and the name. */
static void next_block(aq_stream *s)
{
    uint8_t all[32 + 4 + AQ_STREAM_NAME];
    size_t len = strnlen(s->name, AQ_STREAM_NAME);
    aq_digest d;

    memcpy(all, s->key, 32);
    for (int i = 0; i < 4; i++)
        all[32 + i] = (uint8_t)(s->counter >> 8 * i);
    memcpy(all + 36, s->name, len);
    d = aq_sha256(all, 36 + len);
    memcpy(s->block, d.b, sizeof s->block);
    s->counter++;
    s->used = 0;
}

void aq_stream_bytes(aq_stream *s, void *out, size_t len)
{
    uint8_t *to = out;

    while (len > 0) {
        size_t n = sizeof s->block - s->used;

        if (n == 0) {
            next_block(s);
            continue;
        }
        n = n < len ? n : len;
        memcpy(to, s->block + s->used, n);
        s->used += (unsigned)n;
        to += n;
        len -= n;
    }
}

uint32_t aq_stream_below(aq_stream *s, uint32_t limit)
{
    uint8_t b[4];
    uint64_t n;

    aq_stream_bytes(s, b, sizeof b);
    n = (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
    return (uint32_t)(n * limit >> 32);
}
