/* The bricks of our binary forms; see wire.h. */
#include "model/wire.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

bool aq_wire_is_name(const char *s, size_t len)
{
    if (len == 0 || len > AQ_WIRE_NAME)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '.' && c != '_' && c != ':' && c != '/' && c != '-')
            return false;
    }
    return true;
}

static size_t encode(uint64_t v, char out[static 10])
{
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        out[n++] = (char)(v | 0x80);
    out[n++] = (char)v;
    return n;
}

void aq_wire_put_number(aq_buf *out, uint64_t v)
{
    char b[10];

    aq_buf_add(out, b, encode(v, b));
}

void aq_wire_put_signed(aq_buf *out, int64_t v)
{
    aq_wire_put_number(out, v < 0 ? ~((uint64_t)v << 1) : (uint64_t)v << 1);
}

void aq_wire_put_bytes(aq_buf *out, const void *data, size_t len)
{
    aq_wire_put_number(out, len);
    aq_buf_add(out, data, len);
}

void aq_wire_put_text(aq_buf *out, const char *s, size_t len)
{
    aq_wire_put_bytes(out, s, len);
    aq_buf_addc(out, '\0');
}

void aq_wire_put_digest(aq_buf *out, const aq_digest *d)
{
    aq_buf_add(out, d->b, sizeof d->b);
}

void aq_wire_put_record(aq_buf *out, char type, const aq_buf *payload)
{
    if (payload->len > AQ_WIRE_RECORD)
        aq_panic("a record of %zu bytes", payload->len);
    aq_buf_addc(out, type);
    aq_wire_put_bytes(out, payload->data, payload->len);
}

size_t aq_wire_open_record(aq_buf *out, char type)
{
    char head[AQ_WIRE_HEAD] = {type};

    aq_buf_add(out, head, sizeof head); /* room for the longest length */
    return out->len;
}

void aq_wire_close_record(aq_buf *out, size_t mark)
{
    size_t len = out->len - mark, at = mark - (AQ_WIRE_HEAD - 1), n;
    char head[10];

    if (len > AQ_WIRE_RECORD)
        aq_panic("a record of %zu bytes", len);
    n = encode(len, head);
    memcpy(out->data + at, head, n);
    memmove(out->data + at + n, out->data + mark, len);
    out->len = at + n + len;
    aq_buf_str(out);
}

void aq_wire_refuse(aq_wire *w, const char *why)
{
    if (!w->bad)
        w->bad = why;
    w->at = w->end;
}

/* 1 with the number, 0 when the input ends inside it, negative when it is malformed. */
static int take_number(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;

    for (unsigned shift = 0; *at < end; shift += 7) {
        uint8_t b = *(*at)++;
        if (shift == 63 && b > 1)
            return -EBADMSG;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) {
            if (b == 0 && shift > 0)
                return -EBADMSG; /* longer than needed */
            *ret = v;
            return 1;
        }
    }
    return 0;
}

int aq_wire_record(const void *data, size_t len, char *type, aq_wire *payload, size_t *size,
                   const char **bad)
{
    const uint8_t *from = data, *at = from + 1, *end = from + len;
    uint64_t n;
    int r;

    if (len < 1)
        return 0;
    r = take_number(&at, end, &n);
    if (r < 0 || (r > 0 && n > AQ_WIRE_RECORD) || (r == 0 && at - from >= AQ_WIRE_HEAD)) {
        *bad = "a record's length is malformed or too large";
        return -EBADMSG;
    }
    if (r == 0 || n > (size_t)(end - at))
        return 0;
    *type = (char)from[0];
    *payload = (aq_wire){.at = at, .end = at + n};
    *size = (size_t)(at - from) + (size_t)n;
    return 1;
}

uint64_t aq_wire_number(aq_wire *w, uint64_t max)
{
    uint64_t v = 0;

    if (take_number(&w->at, w->end, &v) <= 0 || v > max) {
        aq_wire_refuse(w, "a number is malformed or too large");
        return 0;
    }
    return v;
}

int64_t aq_wire_signed(aq_wire *w)
{
    uint64_t v = aq_wire_number(w, UINT64_MAX);

    return (int64_t)(v >> 1 ^ (~(v & 1) + 1));
}

uint8_t aq_wire_byte(aq_wire *w, uint8_t max)
{
    if (w->at == w->end || *w->at > max) {
        aq_wire_refuse(w, "a byte is missing or out of range");
        return 0;
    }
    return *w->at++;
}

const char *aq_wire_bytes(aq_wire *w, size_t max, size_t *len)
{
    size_t n = (size_t)aq_wire_number(w, max);
    const char *s = (const char *)w->at;

    *len = 0;
    if (w->bad || n > (size_t)(w->end - w->at)) {
        aq_wire_refuse(w, "bytes are cut off");
        return "";
    }
    w->at += n;
    *len = n;
    return s;
}

const char *aq_wire_text(aq_wire *w, size_t max, size_t *len)
{
    const char *s = aq_wire_bytes(w, max, len);

    if (w->bad)
        return "";
    if (*len == 0 || w->at == w->end || *w->at != '\0' || memchr(s, '\0', *len)) {
        aq_wire_refuse(w, "a text is empty, holds a NUL or has no end");
        *len = 0;
        return "";
    }
    w->at++;
    return s;
}

const char *aq_wire_name(aq_wire *w)
{
    size_t len;
    const char *s = aq_wire_text(w, AQ_WIRE_NAME, &len);

    if (!w->bad && !aq_wire_is_name(s, len)) {
        aq_wire_refuse(w, "a name holds other signs than letters, digits and . _ : / -");
        return "";
    }
    return s;
}

void aq_wire_digest(aq_wire *w, aq_digest *ret)
{
    if (w->end - w->at < AQ_SHA256_LEN) {
        aq_wire_refuse(w, "a digest is cut off");
        *ret = (aq_digest){0};
        return;
    }
    memcpy(ret->b, w->at, AQ_SHA256_LEN);
    w->at += AQ_SHA256_LEN;
}

void aq_wire_done(aq_wire *w)
{
    if (!w->bad && w->at != w->end)
        aq_wire_refuse(w, "bytes are left over in a record");
}
