/* The grammar of HTTP/1; see http1.h. What two servers could read differently (two lengths, a
 * length and chunks, blanks before a colon) is refused as a careful server would. */
#include "internet/http1.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_token(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char ch = (unsigned char)s[i];

        if (ch <= ' ' || ch >= 127 || strchr("\"(),/:;<=>?@[\\]{}", ch))
            return false;
    }
    return len > 0;
}

/* Where the head ends: behind its first empty line, or 0. Bare line feeds are accepted, as most
 * servers do. */
static size_t head_end(const char *data, size_t len)
{
    const char *at = data, *end = data + len;

    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if (at < end && *at == '\n')
            return (size_t)(at - data) + 1;
        if (end - at >= 2 && at[0] == '\r' && at[1] == '\n')
            return (size_t)(at - data) + 2;
    }
    return 0;
}

static size_t line_len(const char *at, const char *end, const char **next)
{
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t n = (size_t)((stop ? stop : end) - at);

    *next = stop ? stop + 1 : end;
    return n > 0 && at[n - 1] == '\r' ? n - 1 : n;
}

static int request_line(aq_ask *q, const char *at, size_t len, aq_http1_head *h)
{
    const char *blank = memchr(at, ' ', len), *last = memrchr(at, ' ', len);
    const char *version;

    if (!blank || last == blank || !is_token(at, (size_t)(blank - at)))
        return -400;
    version = last + 1;
    if ((size_t)(at + len - version) != 8 || memcmp(version, "HTTP/1.", 7) != 0 ||
        version[7] < '0' || version[7] > '9')
        return -505;
    h->minor = version[7] - '0';
    for (const char *p = blank + 1; p < last; p++)
        if ((unsigned char)*p <= ' ' || *p == 127)
            return -400;
    q->method = aq_arena_strndup(q->arena, at, (size_t)(blank - at));
    q->target = aq_arena_strndup(q->arena, blank + 1, (size_t)(last - blank - 1));
    return 0;
}

static int header_line(aq_ask *q, const char *at, size_t len)
{
    const char *colon = memchr(at, ':', len), *value;
    char *name;

    if (!colon || !is_token(at, (size_t)(colon - at)) || memchr(at, '\0', len))
        return -400; /* a folded line among them */
    if (q->header_count == AQ_NET_HEADERS)
        return -431;
    name = aq_arena_strndup(q->arena, at, (size_t)(colon - at));
    for (char *p = name; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    value = colon + 1;
    len -= (size_t)(value - at);
    while (len > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        len--;
    }
    while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    q->headers[q->header_count++] = (aq_header){name, aq_arena_strndup(q->arena, value, len)};
    return 0;
}

static bool has_word(const char *list, const char *word)
{
    size_t want = strlen(word);

    while (list && *list) {
        size_t n;

        list += strspn(list, " \t,");
        n = strcspn(list, " \t,;");
        if (n == want && strncasecmp(list, word, n) == 0)
            return true;
        list += strcspn(list, ",");
    }
    return false;
}

static int length_of(const char *text, uint64_t *ret)
{
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > 18 || text[n])
        return -400;
    *ret = strtoull(text, NULL, 10);
    return 0;
}

/* How long the body is, and what becomes of the connection. */
static int framing(const aq_ask *q, aq_http1_head *h)
{
    const char *coding = aq_ask_header(q, "transfer-encoding");
    const char *connection = aq_ask_header(q, "connection");
    const char *expect = aq_ask_header(q, "expect");
    size_t lengths = 0, codings = 0, hosts = 0;
    int r = 0;

    for (size_t i = 0; i < q->header_count && r == 0; i++) {
        hosts += strcmp(q->headers[i].name, "host") == 0;
        codings += strcmp(q->headers[i].name, "transfer-encoding") == 0;
        if (strcmp(q->headers[i].name, "content-length") == 0) {
            lengths++;
            r = length_of(q->headers[i].value, &h->body);
        }
    }
    if (r < 0 || lengths > 1 || codings > 1 || hosts > 1 || (codings > 0 && lengths > 0))
        return -400;
    if (coding && strcasecmp(coding, "chunked") != 0)
        return -501;
    h->chunked = coding != NULL;
    h->close =
        has_word(connection, "close") || (h->minor == 0 && !has_word(connection, "keep-alive"));
    h->upgrade = has_word(connection, "upgrade");
    h->expects = h->minor > 0 && expect && strcasecmp(expect, "100-continue") == 0;
    return 0;
}

int aq_http1_head_read(aq_ask *q, const char *data, size_t len, aq_http1_head *ret)
{
    aq_http1_head h = {0};
    const char *at = data, *end, *next;
    size_t n;
    int r;

    h.len = head_end(data, len);
    if (h.len == 0 || h.len > AQ_NET_HEAD)
        return h.len > AQ_NET_HEAD || len > AQ_NET_HEAD
                   ? (memchr(data, '\n', len < AQ_NET_HEAD ? len : AQ_NET_HEAD) ? -431 : -414)
                   : 0;
    end = data + h.len;
    n = line_len(at, end, &next);
    if ((r = request_line(q, at, n, &h)) < 0)
        return r;
    q->head = aq_arena_strndup(q->arena, next, (size_t)(end - next));
    q->head_len = strlen(q->head);
    for (at = next; (n = line_len(at, end, &next)) > 0; at = next)
        if ((r = header_line(q, at, n)) < 0)
            return r;
    if ((r = framing(q, &h)) < 0)
        return r;
    *ret = h;
    return 1;
}

/* A line of hex digits, and what extensions may follow. 0: not whole. */
static ssize_t chunk_size(aq_http1_chunks *c, const char *data, size_t len)
{
    const char *stop = memchr(data, '\n', len < 1024 ? len : 1024);
    size_t digits = 0;
    uint64_t size = 0;

    if (!stop)
        return len < 1024 ? 0 : -400;
    while (digits < 15) {
        const char *all = "0123456789abcdef", *at;

        at = data[digits] ? strchr(all, data[digits] | 0x20) : NULL;
        if (!at || data[digits] < '0')
            break;
        size = size << 4 | (uint64_t)(at - all);
        digits++;
    }
    if (digits == 0 || digits == 15 || !strchr("\r\n; \t", data[digits]))
        return -400;
    c->left = size;
    c->at = size > 0 ? AQ_CHUNK_DATA : AQ_CHUNK_TRAILER;
    return stop - data + 1;
}

static ssize_t chunk_line(aq_http1_chunks *c, const char *data, size_t len)
{
    const char *stop = memchr(data, '\n', len);
    size_t n = stop ? (size_t)(stop - data) : 0;
    bool empty = n == 0 || (n == 1 && data[0] == '\r');

    if (!stop)
        return len < AQ_NET_HEAD ? 0 : -400;
    if (c->at == AQ_CHUNK_END) {
        c->at = AQ_CHUNK_SIZE;
        return empty ? (ssize_t)n + 1 : -400;
    }
    if (empty)
        c->at = AQ_CHUNK_DONE;
    else if (++c->trailers > AQ_NET_HEADERS)
        return -400;
    return (ssize_t)n + 1;
}

ssize_t aq_http1_chunk(aq_http1_chunks *c, const char *data, size_t len, const char **piece,
                       size_t *piece_len)
{
    *piece_len = 0;
    *piece = data;
    if (len == 0 || c->at == AQ_CHUNK_DONE)
        return 0;
    if (c->at == AQ_CHUNK_SIZE)
        return chunk_size(c, data, len);
    if (c->at != AQ_CHUNK_DATA)
        return chunk_line(c, data, len);
    *piece_len = c->left < len ? (size_t)c->left : len;
    c->left -= *piece_len;
    if (c->left == 0)
        c->at = AQ_CHUNK_END;
    return (ssize_t)*piece_len;
}
