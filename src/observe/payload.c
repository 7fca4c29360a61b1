/* What the first bytes of a message say; see payload.h. */
#include "observe/payload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A reader that goes sour instead of beyond its end. */
typedef struct reader {
    const uint8_t *at;
    size_t left;
    bool sour;
} reader;

static const uint8_t *take(reader *r, size_t n)
{
    const uint8_t *at = r->at;

    if (n > r->left) {
        r->sour = true;
        r->left = 0;
        return NULL;
    }
    r->at += n;
    r->left -= n;
    return at;
}

static uint32_t number(reader *r, size_t bytes)
{
    const uint8_t *at = take(r, bytes);
    uint32_t v = 0;

    for (size_t i = 0; at && i < bytes; i++)
        v = v << 8 | at[i];
    return v;
}

/* One label in the notation of zone files, so that a dot inside of a label cannot pass as a border.
 */
static size_t put_label(char *out, size_t cap, const uint8_t *label, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        uint8_t c = label[i];

        if (n + 5 > cap)
            return 0;
        if (c == '.' || c == '\\') {
            out[n++] = '\\';
            out[n++] = (char)c;
        } else if (c > 0x20 && c < 0x7f) {
            out[n++] = (char)c;
        } else {
            n += (size_t)snprintf(out + n, 5, "\\%03u", c);
        }
    }
    return n;
}

/* Queries have no reason to point back into themselves, so compression is refused. */
static int dns_name(reader *r, char out[static AQ_DNS_TEXT])
{
    size_t n = 0, total = 1;

    for (;;) {
        uint32_t len = number(r, 1);
        const uint8_t *label;
        size_t put;

        if (r->sour || len > 63)
            return -EBADMSG;
        if (len == 0)
            break;
        total += len + 1;
        label = take(r, len);
        if (!label || total > 255)
            return -EBADMSG;
        if (n > 0 && n + 1 < AQ_DNS_TEXT)
            out[n++] = '.';
        put = put_label(out + n, AQ_DNS_TEXT - n - 1, label, len);
        if (put == 0)
            return -EBADMSG;
        n += put;
    }
    if (n == 0)
        out[n++] = '.';
    out[n] = '\0';
    return 0;
}

int aq_payload_dns(const void *data, size_t len, unsigned index, aq_dns_question *ret)
{
    reader r = {.at = data, .left = len};
    uint32_t flags, questions;
    aq_dns_question q;

    number(&r, 2);
    flags = number(&r, 2);
    questions = number(&r, 2);
    take(&r, 6); /* answers, authorities, additional ones */
    /* QR and the operation must be 0; the count of answers of a query is free (known answers). */
    if (r.sour || (flags & 0xf800) || questions == 0 || questions > AQ_DNS_QUESTIONS)
        return -EBADMSG;
    for (unsigned i = 0; i < questions; i++) {
        if (dns_name(&r, q.name) < 0)
            return -EBADMSG;
        q.type = (uint16_t)number(&r, 2);
        q.class = (uint16_t)number(&r, 2);
        if (r.sour)
            return -EBADMSG;
        if (i == index) {
            *ret = q;
            return 0;
        }
    }
    return -ENOENT;
}

static aq_slice trimmed(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return (aq_slice){at, (size_t)(end - at)};
}

static bool http_line(const char *line, const char *end, aq_http_head *h)
{
    const char *sp1 = memchr(line, ' ', (size_t)(end - line)), *sp2;

    if (!sp1 || sp1 == line || sp1 - line > 20)
        return false;
    for (const char *p = line; p < sp1; p++)
        if (!((*p >= 'A' && *p <= 'Z') || *p == '-' || *p == '_'))
            return false;
    sp2 = memchr(sp1 + 1, ' ', (size_t)(end - sp1 - 1));
    if (!sp2 || sp2 == sp1 + 1 || end - sp2 < 7 || strncmp(sp2 + 1, "HTTP/", 5) != 0)
        return false;
    h->method = (aq_slice){line, (size_t)(sp1 - line)};
    h->target = (aq_slice){sp1 + 1, (size_t)(sp2 - sp1 - 1)};
    return true;
}

bool aq_payload_http(const void *data, size_t len, aq_http_head *ret)
{
    const char *line = data, *end = line + len, *nl;
    aq_http_head h = {0};

    if (len == 0 || !(nl = memchr(line, '\n', len)) || !http_line(line, nl, &h))
        return false;
    for (line = nl + 1; line < end; line = nl + 1) {
        nl = memchr(line, '\n', (size_t)(end - line));
        if (!nl)
            nl = end - 1;
        if (*line == '\r' || *line == '\n')
            break;
        /* The first Host line counts; a second one is the business of whoever reads the evidence.
         */
        if (nl - line > 5 && strncasecmp(line, "host:", 5) == 0) {
            h.host = trimmed(line + 5, *nl == '\n' ? nl : nl + 1);
            break;
        }
    }
    *ret = h;
    return true;
}

/* A part with a length before it. When less is there than it says, the rest is taken and `cut` set.
 */
static reader part(reader *r, size_t bytes, bool *cut)
{
    size_t len = number(r, bytes);
    reader p;

    if (len > r->left) {
        *cut = true;
        len = r->left;
    }
    p = (reader){.at = take(r, len), .left = len, .sour = r->sour};
    return p;
}

static void server_name(reader ext, aq_tls_hello *h)
{
    bool cut = false;
    reader list = part(&ext, 2, &cut);

    while (!list.sour && list.left > 0) {
        uint32_t type = number(&list, 1);
        reader name = part(&list, 2, &cut);

        if (!name.sour && !cut && type == 0) {
            h->name = (aq_slice){(const char *)name.at, name.left};
            return;
        }
    }
}

static void first_protocol(reader ext, aq_tls_hello *h)
{
    bool cut = false;
    reader list = part(&ext, 2, &cut);
    reader name = part(&list, 1, &cut);

    if (!name.sour && !cut)
        h->alpn = (aq_slice){(const char *)name.at, name.left};
}

static void extensions(reader *r, aq_tls_hello *h)
{
    reader all = part(r, 2, &h->cut);

    while (!all.sour && all.left > 0) {
        uint32_t type = number(&all, 2);
        bool cut = false;
        reader ext = part(&all, 2, &cut);

        if (ext.sour || cut)
            break;
        if (type == 0 && h->name.len == 0)
            server_name(ext, h);
        else if (type == 16 && h->alpn.len == 0)
            first_protocol(ext, h);
        else if (type == 0xfe0d)
            h->hidden = true;
    }
}

bool aq_payload_tls(const void *data, size_t len, aq_tls_hello *ret)
{
    reader r = {.at = data, .left = len};
    aq_tls_hello h = {0};
    reader record, hello;
    uint32_t version;

    if (number(&r, 1) != 22)
        return false;
    version = number(&r, 2);
    if (r.sour || version < 0x0300 || version > 0x0304)
        return false;
    record = part(&r, 2, &h.cut);
    if (number(&record, 1) != 1)
        return false;
    hello = part(&record, 3, &h.cut);
    version = number(&hello, 2);
    if (record.sour || hello.sour || version < 0x0300 || version > 0x0304)
        return false;
    take(&hello, 32);
    part(&hello, 1, &h.cut);
    part(&hello, 2, &h.cut);
    part(&hello, 1, &h.cut);
    if (!hello.sour && hello.left > 0)
        extensions(&hello, &h);
    *ret = h;
    return true;
}

/* ---- streams ---- */

static bool method_sign(char c)
{
    return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* A line that has no end yet: could it become a request? */
static aq_part http_line_part(const char *line, size_t len)
{
    static const char version[] = "HTTP/";
    const char *sp;
    size_t n = 0;

    while (n < len && n <= 20 && method_sign(line[n]))
        n++;
    if (n == len)
        return AQ_PART_MORE;
    if (n == 0 || n > 20 || line[n] != ' ')
        return AQ_PART_NO;
    sp = memchr(line + n + 1, ' ', len - n - 1);
    if (!sp)
        return AQ_PART_MORE;
    n = len - (size_t)(sp - line) - 1;
    if (n > sizeof version - 1)
        n = sizeof version - 1;
    return memcmp(sp + 1, version, n) == 0 ? AQ_PART_MORE : AQ_PART_NO;
}

static uint64_t decimal(aq_slice s)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < '0' || s.at[i] > '9' || v > UINT64_MAX / 100)
            return UINT64_MAX;
        else
            v = v * 10 + (uint64_t)(s.at[i] - '0');
    return s.len ? v : UINT64_MAX;
}

static void http_body(const char *line, const char *end, uint64_t *body)
{
    static const char length[] = "content-length:", coding[] = "transfer-encoding:";
    size_t len = (size_t)(end - line);

    if (len >= sizeof length - 1 && strncasecmp(line, length, sizeof length - 1) == 0 &&
        *body != UINT64_MAX)
        *body = decimal(trimmed(line + sizeof length - 1, end));
    else if (len >= sizeof coding - 1 && strncasecmp(line, coding, sizeof coding - 1) == 0)
        *body = UINT64_MAX;
}

aq_part aq_payload_http_part(const void *data, size_t len, size_t *end, uint64_t *body)
{
    const char *start = data, *line = start, *stop = start + len, *nl;
    aq_http_head h;

    nl = len ? memchr(line, '\n', len) : NULL;
    if (!nl)
        return len ? http_line_part(line, len) : AQ_PART_MORE;
    if (!http_line(line, nl, &h))
        return AQ_PART_NO;
    *body = 0;
    for (line = nl + 1; line < stop && (nl = memchr(line, '\n', (size_t)(stop - line))) != NULL;
         line = nl + 1) {
        if (nl == line || (nl == line + 1 && *line == '\r')) {
            *end = (size_t)(nl + 1 - start);
            return AQ_PART_WHOLE;
        }
        http_body(line, nl, body);
    }
    return AQ_PART_MORE;
}

enum { RECORD_HEAD = 5, HELLO_HEAD = 4, HANDSHAKE = 22, CLIENT_HELLO = 1 };

aq_part aq_payload_tls_part(const void *data, size_t len, uint8_t *joined, size_t cap,
                            size_t *joined_len, size_t *end)
{
    const uint8_t *b = data;
    size_t at = 0, n = RECORD_HEAD, want = SIZE_MAX;

    while (at < len && n < want) {
        size_t left = len - at, size, take_now;

        if (b[at] != HANDSHAKE || (left > 1 && b[at + 1] != 3) || (left > 2 && b[at + 2] > 4))
            return AQ_PART_NO;
        if (left < RECORD_HEAD)
            break;
        size = (size_t)b[at + 3] << 8 | b[at + 4];
        if (size == 0)
            return AQ_PART_NO;
        left -= RECORD_HEAD;
        take_now = size < left ? size : left;
        if (take_now > cap - n)
            take_now = cap - n;
        memcpy(joined + n, b + at + RECORD_HEAD, take_now);
        n += take_now;
        if (n > RECORD_HEAD && joined[RECORD_HEAD] != CLIENT_HELLO)
            return AQ_PART_NO;
        if (n >= RECORD_HEAD + HELLO_HEAD)
            want = RECORD_HEAD + HELLO_HEAD +
                   ((size_t)joined[6] << 16 | (size_t)joined[7] << 8 | joined[8]);
        if (n == cap || left < size)
            break;
        at += RECORD_HEAD + size;
    }
    if (n > want)
        n = want;
    joined[0] = HANDSHAKE, joined[1] = 3, joined[2] = 1;
    joined[3] = (uint8_t)((n - RECORD_HEAD) >> 8), joined[4] = (uint8_t)(n - RECORD_HEAD);
    *joined_len = n;
    *end = at;
    return n == want ? AQ_PART_WHOLE : AQ_PART_MORE;
}
