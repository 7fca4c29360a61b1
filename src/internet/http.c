/* Requests: what both HTTPs have in common; see internal.h. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internet/internal.h"

aq_ask *aq_ask_new(aq_conn *c, const char *over)
{
    aq_arena *a = aq_arena_new();
    aq_ask *q = aq_arena_alloc(a, sizeof *q);

    q->arena = a;
    q->conn = c;
    q->over = over;
    q->method = q->target = q->path = q->query = q->host = q->head = "";
    q->digest = aq_hash_begin();
    return q;
}

void aq_ask_free(aq_ask *q)
{
    if (!q)
        return;
    q->conn->net->held -= q->body.len;
    aq_buf_free(&q->body);
    aq_buf_free(&q->rest.held);
    aq_hash_abort(q->digest);
    aq_arena_free(q->arena);
}

const char *aq_ask_header(const aq_ask *q, const char *name)
{
    for (size_t i = 0; i < q->header_count; i++)
        if (strcmp(q->headers[i].name, name) == 0)
            return q->headers[i].value;
    return NULL;
}

void aq_ask_body(aq_ask *q, const void *data, size_t len)
{
    size_t room = AQ_NET_BODY - q->body.len, kept = len < room ? len : room;

    aq_hash_add(q->digest, data, len);
    if (q->conn->net->held + kept > AQ_NET_HELD) /* answers look at less of it */
        kept = 0;
    aq_buf_add(&q->body, data, kept);
    q->conn->net->held += kept;
    /* What the record of the request cannot hold follows in records of its own. */
    if (q->body_len + len > AQ_EVENT_TEXT) {
        size_t skip = q->body_len < AQ_EVENT_TEXT ? AQ_EVENT_TEXT - (size_t)q->body_len : 0;

        if (skip > 0 || q->rest.at == 0)
            q->rest.at = AQ_EVENT_TEXT;
        aq_block_add(q->conn, &q->rest, "peer-body", (const char *)data + skip, len - skip);
    }
    q->body_len += len;
}

static int digit(char ch)
{
    const char *all = "0123456789abcdef", *at = ch ? strchr(all, ch | 0x20) : NULL;

    return at ? (int)(at - all) : -1;
}

/* %XX decoded, as far as it makes sense; `plus`: a plus is a blank. Never longer than the input. */
static const char *decoded(aq_arena *a, const char *from, size_t len, bool plus)
{
    char *out = aq_arena_alloc(a, len + 1);
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (from[i] == '%' && i + 2 < len + 0 && digit(from[i + 1]) >= 0 &&
            digit(from[i + 2]) >= 0) {
            char ch = (char)(digit(from[i + 1]) << 4 | digit(from[i + 2]));

            out[n++] = ch ? ch : '?';
            i += 2;
        } else {
            out[n++] = plus && from[i] == '+' ? ' ' : from[i];
        }
    }
    return out;
}

static const char *host_of(aq_ask *q, const char *given, size_t len)
{
    char text[AQ_LINE_END_TEXT];
    char *out;

    if (len > 0 && given[0] == '[') { /* an IPv6 address */
        const char *end = memchr(given, ']', len);

        len = end ? (size_t)(end - given) + 1 : len;
    } else {
        const char *colon = memchr(given, ':', len);

        len = colon ? (size_t)(colon - given) : len;
    }
    if (len == 0 || len > 253) {
        aq_line_end_text(&q->conn->server, text);
        *strrchr(text, ':') = '\0';
        return aq_arena_strdup(q->arena, text);
    }
    out = aq_arena_strndup(q->arena, given, len);
    for (char *p = out; *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p | 0x20);
    if (len > 1 && out[len - 1] == '.')
        out[len - 1] = '\0';
    return out;
}

void aq_ask_parse(aq_ask *q)
{
    const char *host = aq_ask_header(q, "host"), *at = q->target;
    size_t path, host_len = host ? strlen(host) : 0;

    /* A proxy's form: http://host/path. The host in it is what counts. */
    if (strncasecmp(at, "http://", 7) == 0 || strncasecmp(at, "https://", 8) == 0) {
        at = strchr(at, '/') + 2;
        host = at;
        host_len = strcspn(at, "/?#");
        at += host_len;
    }
    q->host = host_of(q, host ? host : "", host_len);
    path = strcspn(at, "?#");
    q->path = path > 0 ? decoded(q->arena, at, path, false) : "/";
    q->query = at[path] == '?' ? at + path + 1 : "";
}

const char *aq_ask_query(const aq_ask *q, const char *name)
{
    size_t want = strlen(name);

    for (const char *at = q->query; *at;) {
        size_t n = strcspn(at, "&");

        if (n > want && strncmp(at, name, want) == 0 && at[want] == '=')
            return decoded(q->arena, at + want + 1, n - want - 1, true);
        at += n + (at[n] == '&');
    }
    return NULL;
}

void aq_reply_header(aq_reply *r, const char *name, const char *value)
{
    if (r->header_count < sizeof r->headers / sizeof *r->headers)
        r->headers[r->header_count++] = (aq_header){aq_strdup(name), aq_strdup(value)};
}

void aq_reply_free(aq_reply *r)
{
    for (size_t i = 0; i < r->header_count; i++) {
        free((char *)r->headers[i].name);
        free((char *)r->headers[i].value);
    }
    aq_buf_free(&r->body);
}

const char *aq_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } all[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {416, "Range Not Satisfiable"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].status == status)
            return all[i].text;
    return "Unknown";
}
