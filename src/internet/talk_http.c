/* HTTP/1 on a connection: requests one after another, each answered when it is whole. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internet/http1.h"

typedef struct http {
    aq_ask *ask;
    aq_http1_head head;
    aq_http1_chunks chunks;
    bool in_body;
} http;

static void begin(aq_conn *c)
{
    c->state = aq_alloc(sizeof(http));
}

static void end(aq_conn *c)
{
    http *h = c->state;

    aq_ask_free(h->ask);
    free(h);
}

static void add_head(aq_buf *out, const aq_reply *r, bool close)
{
    aq_buf_addf(out, "HTTP/1.1 %d %s\r\n", r->status, aq_status_text(r->status));
    for (size_t i = 0; i < r->header_count; i++)
        aq_buf_addf(out, "%s: %s\r\n", r->headers[i].name, r->headers[i].value);
    if (r->status >= 200 && r->status != 204 && r->status != 304) {
        if (r->stream)
            aq_buf_adds(out, "Transfer-Encoding: chunked\r\n");
        else
            aq_buf_addf(out, "Content-Length: %zu\r\n", r->body.len);
    }
    if (r->status != 101)
        aq_buf_addf(out, "Connection: %s\r\n", close ? "close" : "keep-alive");
    aq_buf_adds(out, "\r\n");
}

static void say(aq_conn *c, const aq_ask *q, const aq_reply *r, bool close)
{
    aq_auto_buf out = {0};
    bool body =
        strcmp(q->method, "HEAD") != 0 && r->status >= 200 && r->status != 204 && r->status != 304;

    add_head(&out, r, close);
    if (body && r->stream) {
        if (r->body.len > 0)
            aq_buf_addf(&out, "%zx\r\n", r->body.len);
        aq_buf_add(&out, aq_buf_str((aq_buf *)&r->body), r->body.len);
        aq_buf_adds(&out, r->body.len > 0 ? "\r\n0\r\n\r\n" : "0\r\n\r\n");
    } else if (body) {
        aq_buf_add(&out, aq_buf_str((aq_buf *)&r->body), r->body.len);
    }
    aq_conn_say(c, out.data, out.len);
}

/* The request cannot be read: a short answer, and the end. */
static void refuse(aq_conn *c, int status)
{
    http *h = c->state;
    aq_auto_buf body = {0}, out = {0};
    aq_note n = aq_note_of(c, "peer-refused");

    aq_note_text(&n, "why", aq_status_text(status));
    aq_note_bytes(&n, "bytes", c->in.data, c->in.len);
    aq_note_send(c->net, &n);
    aq_buf_addf(&body,
                "<html>\r\n<head><title>%d %s</title></head>\r\n<body>\r\n<center><h1>%d "
                "%s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
                status, aq_status_text(status), status, aq_status_text(status));
    aq_buf_addf(&out,
                "HTTP/1.1 %d %s\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: "
                "%zu\r\nConnection: close\r\n\r\n",
                status, aq_status_text(status), body.len);
    aq_buf_add(&out, body.data, body.len);
    aq_conn_say(c, out.data, out.len);
    aq_conn_close(c, "request");
    aq_ask_free(h->ask);
    h->ask = NULL;
}

/* RFC 6455, 4.2.2: the hash of the client's key and a fixed text. */
static void accept_key(const char *key, aq_buf *out)
{
    aq_auto_buf all = {0};
    unsigned char sha[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    aq_buf_addf(&all, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    if (EVP_Digest(all.data, all.len, sha, &len, EVP_sha1(), NULL) == 1)
        aq_base64(sha, len, out);
}

static bool upgraded(aq_conn *c, aq_ask *q, bool asked)
{
    const char *to = aq_ask_header(q, "upgrade"), *key = aq_ask_header(q, "sec-websocket-key");
    aq_auto_buf accept = {0};
    aq_reply r = {.status = 101};
    aq_note n;

    if (!asked || !to || strcasecmp(to, "websocket") != 0 || !key || strlen(key) > 64)
        return false;
    accept_key(key, &accept);
    aq_reply_header(&r, "Upgrade", "websocket");
    aq_reply_header(&r, "Connection", "Upgrade");
    aq_reply_header(&r, "Sec-WebSocket-Accept", aq_buf_str(&accept));
    say(c, q, &r, false);
    n = aq_note_of(c, "peer-http");
    aq_note_object(&n, q->host, strlen(q->host));
    aq_note_text(&n, "method", q->method);
    aq_note_text(&n, "target", q->target);
    aq_note_bytes(&n, "headers", q->head, q->head_len);
    aq_note_text(&n, "over", "websocket");
    n.m.record.result = 101;
    aq_note_send(c->net, &n);
    aq_reply_free(&r);
    return true;
}

/* The request is whole. */
static void answer(aq_conn *c)
{
    http *h = c->state;
    aq_ask *q = h->ask;
    aq_reply r = {.status = 200};
    bool close = h->head.close;

    h->ask = NULL;
    h->in_body = false;
    if (upgraded(c, q, h->head.upgrade)) {
        aq_ask_free(q);
        aq_conn_talk(c, &aq_talk_websocket);
        return;
    }
    aq_answer(q, &r);
    say(c, q, &r, close || r.close);
    if (close || r.close)
        aq_conn_close(c, "answered");
    aq_reply_free(&r);
    aq_ask_free(q);
}

static size_t take_head(aq_conn *c, const char *data, size_t len)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    http *h = c->state;
    size_t blank = 0;
    int r;

    while (blank < len && (data[blank] == '\r' || data[blank] == '\n'))
        blank++; /* left over after the request before */
    if (blank > 0)
        return blank;
    h->ask = aq_ask_new(c, "http/1.1");
    r = aq_http1_head_read(h->ask, data, len, &h->head);
    if (r < 0) {
        refuse(c, -r);
        return len;
    }
    if (r == 0) {
        aq_ask_free(h->ask);
        h->ask = NULL;
        return 0;
    }
    aq_ask_parse(h->ask);
    h->chunks = (aq_http1_chunks){0};
    h->in_body = h->head.chunked || h->head.body > 0;
    if (h->in_body && h->head.expects && len == h->head.len)
        aq_conn_say(c, go_on, sizeof go_on - 1);
    r = (int)h->head.len;
    if (!h->in_body)
        answer(c);
    return (size_t)r;
}

static size_t take_body(aq_conn *c, const char *data, size_t len)
{
    http *h = c->state;
    const char *piece = data;
    size_t n = len;
    ssize_t used;

    if (h->head.chunked) {
        used = aq_http1_chunk(&h->chunks, data, len, &piece, &n);
        if (used < 0) {
            refuse(c, 400);
            return len;
        }
    } else {
        n = h->head.body < len ? (size_t)h->head.body : len;
        used = (ssize_t)n;
        h->head.body -= n;
    }
    if (n > 0)
        aq_ask_body(h->ask, piece, n);
    if (h->head.chunked ? h->chunks.at == AQ_CHUNK_DONE : h->head.body == 0)
        answer(c);
    return (size_t)used;
}

static size_t input(aq_conn *c, const uint8_t *data, size_t len)
{
    http *h = c->state;

    return h->in_body ? take_body(c, (const char *)data, len)
                      : take_head(c, (const char *)data, len);
}

/* A request that never became whole is still something that was said. */
static void ended(aq_conn *c)
{
    http *h = c->state;
    aq_note n = aq_note_of(c, "peer-refused");

    if (!h->ask && c->in.len == 0)
        return;
    aq_note_text(&n, "why", "the request has no end");
    if (h->ask) {
        aq_note_object(&n, h->ask->host, strlen(h->ask->host));
        aq_note_text(&n, "method", h->ask->method);
        aq_note_text(&n, "target", h->ask->target);
        aq_note_bytes(&n, "headers", h->ask->head, h->ask->head_len);
        aq_note_bytes(&n, "bytes", h->ask->body.data, h->ask->body.len);
    } else {
        aq_note_bytes(&n, "bytes", c->in.data, c->in.len);
    }
    aq_note_send(c->net, &n);
}

const aq_talk aq_talk_http = {
    .name = "http", .begin = begin, .input = input, .ended = ended, .free = end};
