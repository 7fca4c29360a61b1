/* How an answer is handed over: only its head when the client has it already, a part when it asks
 * for one, packed when it takes that. Packing stores and does not deflate: then answers of both
 * worlds of a seed, which differ, stay equally long. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "internet/internal.h"

enum { WORTH_PACKING = 256 };

/* ---- conditions ---- */

static const char *without_weak(const char *tag)
{
    return strncmp(tag, "W/", 2) == 0 ? tag + 2 : tag;
}

/* Is it in a list of tags? */
static bool is_listed(const char *list, const char *tag)
{
    size_t len = strlen(tag);

    while (*list) {
        list += strspn(list, " \t,");
        if (*list == '*')
            return true;
        list = without_weak(list);
        if (strncmp(list, tag, len) == 0 && (!list[len] || strchr(" \t,", list[len])))
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

/* ---- parts ---- */

/* "bytes=0-99", "bytes=100-", "bytes=-5": one part only. False: no such thing, all is meant. */
static bool read_range(const char *text, uint64_t size, uint64_t *from, uint64_t *to)
{
    uint64_t a, b = UINT64_MAX;
    char *end;

    if (strncasecmp(text, "bytes=", 6) != 0 || strchr(text, ','))
        return false;
    text += 6;
    if (*text == '-') {
        if (text[1] < '0' || text[1] > '9')
            return false;
        a = strtoull(text + 1, &end, 10);
        *from = a < size ? size - a : 0;
        *to = a == 0 ? 0 : size;
        return *end == '\0';
    }
    if (*text < '0' || *text > '9')
        return false;
    a = strtoull(text, &end, 10);
    if (*end++ != '-')
        return false;
    if (*end >= '0' && *end <= '9')
        b = strtoull(end, &end, 10);
    *from = a;
    *to = b < size ? b + 1 : size;
    return *end == '\0' && a <= b;
}

static void cut(aq_reply *r, uint64_t from, uint64_t to)
{
    char text[96];

    if (from >= to) {
        snprintf(text, sizeof text, "bytes */%zu", r->body.len);
        aq_reply_header(r, "Content-Range", text);
        r->status = 416;
        r->body.len = 0;
        return;
    }
    snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%zu", from, to - 1, r->body.len);
    aq_reply_header(r, "Content-Range", text);
    r->status = 206;
    memmove(r->body.data, r->body.data + from, (size_t)(to - from));
    r->body.len = (size_t)(to - from);
}

/* ---- packing ---- */

static bool takes_gzip(const aq_ask *q)
{
    const char *accept = aq_ask_header(q, "accept-encoding"),
               *at = accept ? strcasestr(accept, "gzip") : NULL;
    size_t n = at ? strcspn(at, ",") : 0;

    if (!at || (at > accept && !strchr(", \t", at[-1])))
        return false;
    for (const char *p = at + 4; p < at + n; p++) /* ";q=0" refuses it */
        if (strncasecmp(p, "q=", 2) == 0)
            return strtod(p + 2, NULL) > 0;
    return true;
}

static bool is_text(const char *type)
{
    static const char *const all[] = {"text/", "application/json", "application/javascript",
                                      "application/xml", "application/vnd."};

    for (size_t i = 0; type && i < sizeof all / sizeof *all; i++)
        if (strncasecmp(type, all[i], strlen(all[i])) == 0)
            return true;
    return false;
}

static bool pack(aq_buf *body)
{
    z_stream z = {.next_in = (Bytef *)body->data, .avail_in = (uInt)body->len};
    aq_buf out = {0};
    bool good;

    if (deflateInit2(&z, Z_NO_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    aq_buf_reserve(&out, deflateBound(&z, (uLong)body->len) + 64);
    z.next_out = (Bytef *)out.data;
    z.avail_out = (uInt)out.cap;
    good = deflate(&z, Z_FINISH) == Z_STREAM_END;
    out.len = z.total_out;
    deflateEnd(&z);
    if (good) {
        aq_buf_free(body);
        *body = out;
    } else {
        aq_buf_free(&out);
    }
    return good;
}

/* ---- all of it ---- */

static const char *header(const aq_reply *r, const char *name)
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

static bool has_part(const aq_ask *q, aq_reply *r, const char *tag)
{
    const char *range = aq_ask_header(q, "range"), *only = aq_ask_header(q, "if-range");
    uint64_t from, to;

    if (!range || strcmp(q->method, "GET") != 0 || (only && (!tag || strcmp(only, tag) != 0)) ||
        !read_range(range, r->body.len, &from, &to))
        return false;
    cut(r, from, to);
    return true;
}

void aq_deliver(const aq_ask *q, aq_reply *r, const char *tag)
{
    const char *known = aq_ask_header(q, "if-none-match");
    bool whole = r->status == 200 && !r->stream;

    if (whole && tag && known && is_listed(known, tag)) {
        r->status = 304;
        r->body.len = 0;
        return;
    }
    if (whole && tag)
        aq_reply_header(r, "Accept-Ranges", "bytes");
    if (whole && tag && has_part(q, r, tag))
        return;
    if (r->stream || r->body.len < WORTH_PACKING || !is_text(header(r, "content-type")) ||
        header(r, "content-encoding"))
        return;
    aq_reply_header(r, "Vary", "Accept-Encoding");
    if (takes_gzip(q) && pack(&r->body))
        aq_reply_header(r, "Content-Encoding", "gzip");
}
