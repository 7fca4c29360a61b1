/* Decoded bytes in order: plain, gzip or zstd; see archive.h.
 *
 * The decoders are driven here and not by an archive library, because only so it is known to the
 * byte what they used, what they skipped, and what follows their end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/io.h"
#include "cleanroom/archive.h"
#include "cleanroom/zstd_walk.h"

enum { BUFFER = 256 << 10, ZSTD_WINDOW_LOG = 27, GZIP_HEADER = 10, GZIP_FREE = 6 };

struct aq_stream {
    aq_source source;
    aq_filter filter;
    aq_stream_state state;
    uint64_t at; /* next packed byte to fetch */
    uint8_t *in, *out;
    size_t in_at, in_len; /* fetched and not used yet */
    size_t out_at, out_len;
    uint64_t given, skipped, spare;
    z_stream z;
    ZSTD_DCtx *zstd;
    bool in_member; /* inside a gzip member or zstd frame */
    bool in_header; /* of a gzip member */
    uint64_t members;
    uint64_t member_at, member_given; /* packed and decoded bytes before this one */
    uint64_t made;                    /* decoded bytes, given or not */
    gz_header head, head_before;
    zstd_walk walk;
    bool window_too_large;
};

ssize_t aq_source_read(const aq_source *s, uint64_t at, void *data, size_t len)
{
    if (at >= s->size)
        return 0;
    if (len > s->size - at)
        len = (size_t)(s->size - at);
    return aq_pread_full(s->fd, data, len, (off_t)(s->base + at));
}

aq_stream *aq_stream_new(const aq_source *source, aq_filter filter)
{
    aq_stream *s = aq_alloc(sizeof *s);

    s->source = *source;
    s->filter = filter;
    s->in = aq_realloc(NULL, BUFFER, 1);
    if (filter != AQ_FILTER_NONE)
        s->out = aq_realloc(NULL, BUFFER, 1);
    /* 16 + 15: a gzip wrapper and nothing else, with the largest window. */
    if (filter == AQ_FILTER_GZIP && inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
        aq_panic("zlib cannot start");
    if (filter == AQ_FILTER_ZSTD) {
        s->zstd = ZSTD_createDCtx();
        if (!s->zstd)
            aq_panic("zstd cannot start");
        ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG);
    }
    return s;
}

void aq_stream_free(aq_stream *s)
{
    if (!s)
        return;
    if (s->filter == AQ_FILTER_GZIP)
        inflateEnd(&s->z);
    ZSTD_freeDCtx(s->zstd);
    free(s->in);
    free(s->out);
    free(s);
}

aq_stream_state aq_stream_state_of(const aq_stream *s)
{
    return s->state;
}

uint64_t aq_stream_given(const aq_stream *s)
{
    return s->given;
}

uint64_t aq_stream_consumed(const aq_stream *s)
{
    if (s->filter == AQ_FILTER_NONE)
        return s->given;
    return s->at - (s->in_len - s->in_at);
}

uint64_t aq_stream_skipped(const aq_stream *s)
{
    return s->skipped;
}

uint64_t aq_stream_spare(const aq_stream *s)
{
    return s->spare + s->walk.spare;
}

bool aq_stream_window_too_large(const aq_stream *s)
{
    return s->window_too_large;
}

static int fetch(aq_stream *s, aq_err *err)
{
    ssize_t n;

    if (s->in_at > 0) {
        memmove(s->in, s->in + s->in_at, s->in_len - s->in_at);
        s->in_len -= s->in_at;
        s->in_at = 0;
    }
    n = aq_source_read(&s->source, s->at, s->in + s->in_len, BUFFER - s->in_len);
    if (n < 0)
        return aq_fail(err, (int)n, "cannot read the archive: %s", strerror((int)-n));
    s->at += (uint64_t)n;
    s->in_len += (size_t)n;
    if (n == 0) /* it became shorter while being read: this is its end */
        s->source.size = s->at;
    return 0;
}

/* Is there another member? Anything else behind the last one is left for the caller to name. */
static int start_member(aq_stream *s, aq_err *err)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    const uint8_t *magic = s->filter == AQ_FILTER_GZIP ? gzip : zstd;
    size_t len = s->filter == AQ_FILTER_GZIP ? sizeof gzip : sizeof zstd;
    const uint8_t *p;
    int r;

    for (;;) {
        if (s->in_len - s->in_at < 8 && (r = fetch(s, err)) < 0)
            return r;
        p = s->in + s->in_at;
        if (s->filter != AQ_FILTER_ZSTD || s->in_len - s->in_at < 8 || (p[0] & 0xf0) != 0x50 ||
            p[1] != 0x2a || p[2] != 0x4d || p[3] != 0x18)
            break;
        /* A skippable frame: bytes that no reader shows. */
        uint64_t frame =
            8 + (p[4] | (uint64_t)p[5] << 8 | (uint64_t)p[6] << 16 | (uint64_t)p[7] << 24);
        uint64_t left = s->source.size - aq_stream_consumed(s);
        if (frame > left)
            frame = left;
        s->skipped += frame;
        s->at = aq_stream_consumed(s) + frame;
        s->in_at = s->in_len = 0;
    }
    if (s->in_len - s->in_at < len || memcmp(p, magic, len) != 0) {
        s->state = AQ_STREAM_ENDED;
        return 0;
    }
    if (s->filter == AQ_FILTER_GZIP) {
        inflateReset(&s->z);
        inflateGetHeader(&s->z, &s->head);
    } else {
        zstd_walk_frame(&s->walk);
    }
    s->members++;
    s->member_at = aq_stream_consumed(s);
    s->member_given = s->made;
    s->in_header = s->filter == AQ_FILTER_GZIP;
    s->in_member = true;
    return 0;
}

/* Time, level and system are free to choose; other ones in each member could spell anything. */
static void end_gzip_header(aq_stream *s)
{
    bool same = s->head.time == s->head_before.time && s->head.os == s->head_before.os &&
                s->head.xflags == s->head_before.xflags;

    s->in_header = false;
    s->spare += s->z.total_in - GZIP_HEADER;
    if (s->members > 1 && !same)
        s->spare += GZIP_FREE;
    s->head_before = s->head;
}

/* A member or frame from which nothing came is all spare. */
static void end_member(aq_stream *s)
{
    s->in_member = false;
    if (s->made == s->member_given)
        s->spare += aq_stream_consumed(s) - s->member_at;
}

static void decode_gzip(aq_stream *s)
{
    int r;

    s->z.next_in = s->in + s->in_at;
    s->z.avail_in = (uInt)(s->in_len - s->in_at);
    s->z.next_out = s->out;
    s->z.avail_out = BUFFER;
    r = inflate(&s->z, s->in_header ? Z_BLOCK : Z_NO_FLUSH);
    s->in_at = s->in_len - s->z.avail_in;
    s->out_len = BUFFER - s->z.avail_out;
    s->made += s->out_len;
    if (s->in_header && r == Z_OK && (s->z.data_type & 128))
        end_gzip_header(s);
    if (r == Z_STREAM_END)
        end_member(s);
    else if (r != Z_OK && r != Z_BUF_ERROR)
        s->state = AQ_STREAM_DAMAGED;
}

static void decode_zstd(aq_stream *s)
{
    ZSTD_inBuffer in = {s->in, s->in_len, s->in_at};
    ZSTD_outBuffer out = {s->out, BUFFER, 0};
    size_t r = ZSTD_decompressStream(s->zstd, &out, &in);

    if (ZSTD_isError(r)) {
        s->state = AQ_STREAM_DAMAGED;
        s->window_too_large = ZSTD_getErrorCode(r) == ZSTD_error_frameParameter_windowTooLarge;
        return;
    }
    zstd_walk_bytes(&s->walk, s->in + s->in_at, in.pos - s->in_at);
    s->in_at = in.pos;
    s->out_len = out.pos;
    s->made += out.pos;
    if (r == 0)
        end_member(s);
}

static int decode(aq_stream *s, aq_err *err)
{
    int r = 0;

    s->out_at = s->out_len = 0;
    while (s->state == AQ_STREAM_GOES_ON && s->out_len == 0) {
        size_t before;
        if (!s->in_member) {
            if ((r = start_member(s, err)) < 0)
                return r;
            continue;
        }
        if (s->in_at == s->in_len && (r = fetch(s, err)) < 0)
            return r;
        before = s->in_at;
        if (s->filter == AQ_FILTER_GZIP)
            decode_gzip(s);
        else
            decode_zstd(s);
        /* No progress with all packed bytes handed over: the end is missing. */
        if (s->state == AQ_STREAM_GOES_ON && s->in_member && s->out_len == 0 &&
            s->in_at == before && s->at >= s->source.size)
            s->state = AQ_STREAM_TRUNCATED;
    }
    return 0;
}

static int refill(aq_stream *s, aq_err *err)
{
    int r;

    if (s->filter != AQ_FILTER_NONE)
        return decode(s, err);
    s->in_at = s->in_len = 0;
    if ((r = fetch(s, err)) < 0)
        return r;
    if (s->in_len == 0)
        s->state = AQ_STREAM_ENDED;
    return 0;
}

int aq_stream_next(aq_stream *s, size_t max, const uint8_t **data, size_t *len, aq_err *err)
{
    bool plain = s->filter == AQ_FILTER_NONE;
    size_t *at = plain ? &s->in_at : &s->out_at;
    const size_t *end = plain ? &s->in_len : &s->out_len;
    int r;

    if (*at == *end && s->state == AQ_STREAM_GOES_ON && (r = refill(s, err)) < 0)
        return r;
    *len = *end - *at < max ? *end - *at : max;
    *data = (plain ? s->in : s->out) + *at;
    *at += *len;
    s->given += *len;
    return 0;
}

ssize_t aq_stream_read(aq_stream *s, void *data, size_t len, aq_err *err)
{
    size_t done = 0;

    while (done < len) {
        const uint8_t *p;
        size_t n;
        int r = aq_stream_next(s, len - done, &p, &n, err);
        if (r < 0)
            return r;
        if (n == 0)
            break;
        memcpy((char *)data + done, p, n);
        done += n;
    }
    return (ssize_t)done;
}
