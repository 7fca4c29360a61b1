/* Frames and blocks of zstd (RFC 8878); see zstd_walk.h. What is malformed the decoder refuses, so
 * that here nothing needs to be. */
#include "cleanroom/zstd_walk.h"

#include <stdbool.h>
#include <string.h>

enum {
    MAGIC = 4,
    BLOCK_HEAD = 3,
    BLOCK_RUN = 1, /* one byte, repeated */
    CHECKSUM = 4,
};

void zstd_walk_frame(zstd_walk *w)
{
    w->state = ZSTD_WALK_HEAD;
    w->have = 0;
    w->frames++;
}

/* Length of a frame's header by its descriptor, the magic number included. */
static size_t head_length(uint8_t descriptor)
{
    static const size_t dictionary[] = {0, 1, 2, 4}, contents[] = {0, 2, 4, 8};
    bool single = descriptor & 0x20;
    size_t size = contents[descriptor >> 6];

    if (single && size == 0)
        size = 1;
    return MAGIC + 1 + (size_t)!single + dictionary[descriptor & 3] + size;
}

/* The size of the window is anything that is large enough. One that changes from frame to frame
 * could spell. */
static void end_head(zstd_walk *w)
{
    bool single = w->field[MAGIC] & 0x20;
    uint8_t shape[2] = {w->field[MAGIC], single ? 0 : w->field[MAGIC + 1]};

    if (w->frames > 1 && memcmp(shape, w->shape, sizeof shape) != 0)
        w->spare += sizeof shape;
    memcpy(w->shape, shape, sizeof shape);
    w->checksum = w->field[MAGIC] & 4;
    w->state = ZSTD_WALK_BLOCK;
}

static void end_block_head(zstd_walk *w)
{
    uint32_t v = w->field[0] | (uint32_t)w->field[1] << 8 | (uint32_t)w->field[2] << 16;
    unsigned kind = v >> 1 & 3;

    w->last = v & 1;
    w->skip = kind == BLOCK_RUN ? 1 : v >> 3;
    if (kind == BLOCK_RUN && v >> 3 == 0) /* a byte, repeated not at all */
        w->spare += BLOCK_HEAD + 1;
    w->state = ZSTD_WALK_BODY;
}

static void end_body(zstd_walk *w)
{
    w->skip = CHECKSUM;
    w->state = !w->last ? ZSTD_WALK_BLOCK : w->checksum ? ZSTD_WALK_SUM : ZSTD_WALK_DONE;
}

static size_t wanted(const zstd_walk *w)
{
    if (w->state == ZSTD_WALK_BLOCK)
        return BLOCK_HEAD;
    return w->have <= MAGIC ? MAGIC + 1 : head_length(w->field[MAGIC]);
}

void zstd_walk_bytes(zstd_walk *w, const uint8_t *p, size_t len)
{
    while (len > 0 && w->state != ZSTD_WALK_DONE) {
        size_t n = 1;
        if (w->state == ZSTD_WALK_HEAD || w->state == ZSTD_WALK_BLOCK) {
            w->field[w->have++] = *p;
            if (w->have == wanted(w)) {
                if (w->state == ZSTD_WALK_HEAD)
                    end_head(w);
                else
                    end_block_head(w);
                w->have = 0;
            }
        } else {
            n = w->skip < len ? (size_t)w->skip : len;
            w->skip -= n;
        }
        p += n;
        len -= n;
        if (w->state == ZSTD_WALK_BODY && w->skip == 0)
            end_body(w);
        else if (w->state == ZSTD_WALK_SUM && w->skip == 0)
            w->state = ZSTD_WALK_DONE;
    }
}
