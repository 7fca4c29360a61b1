/* Answers: the first rule that fits a request makes the reply; see rules.h and fill.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internet/fill.h"
#include "internet/internal.h"
#include "internet/rules.h"

static bool holds(const aq_when *w, const aq_ask *q)
{
    const char *value;

    if (!w->header)
        return q->body.len > 0 && memmem(q->body.data, q->body.len, w->pattern, strlen(w->pattern));
    value = aq_ask_header(q, w->header);
    return w->pattern[0] ? value && aq_rule_match(w->pattern, value) : !value;
}

static bool fits(const aq_answer_rule *rule, const aq_ask *q)
{
    if (!aq_rule_match(rule->methods, q->method) || !aq_rule_match(rule->hosts, q->host) ||
        !aq_rule_match(rule->path, q->path))
        return false;
    for (size_t i = 0; i < rule->when_count; i++)
        if (!holds(&rule->when[i], q))
            return false;
    return true;
}

/* A host's name, with values of the world replaced by what they are called: the two worlds of a
 * seed have other values, and the same names for them. */
static void host_name(const aq_ask *q, aq_buf *out)
{
    const aq_internet_world *w = q->conn->net->world;
    const char *at = q->host;

    while (*at) {
        const aq_fact *found = NULL;
        size_t len = 0;

        for (size_t i = 0; i < w->decoy_count; i++) {
            size_t n = strlen(w->decoys[i].value);

            if (n >= 4 && n > len && strncasecmp(at, w->decoys[i].value, n) == 0)
                found = &w->decoys[i], len = n;
        }
        if (found)
            aq_buf_addf(out, "{%s}", found->name);
        else
            aq_buf_addc(out, *at);
        at += found ? len : 1;
    }
}

/* What sort of server a host runs: always the same, and in both worlds. */
static const char *server_of(const aq_ask *q)
{
    static const char *const all[] = {"nginx",
                                      "cloudflare",
                                      "nginx/1.22.1",
                                      "Apache",
                                      "nginx/1.24.0",
                                      "envoy",
                                      "AmazonS3",
                                      "gws",
                                      "Apache/2.4.62 (Debian)",
                                      "Microsoft-IIS/10.0",
                                      "openresty",
                                      "Caddy",
                                      "GitHub.com",
                                      "nginx/1.18.0 (Ubuntu)",
                                      "Varnish",
                                      "LiteSpeed"};
    aq_auto_buf host = {0};
    char name[AQ_SHA256_HEX + 32], hex[AQ_SHA256_HEX];
    aq_digest d;
    aq_stream s;

    host_name(q, &host);
    d = aq_sha256(aq_buf_str(&host), host.len);
    snprintf(name, sizeof name, "internet:server:%.32s", aq_digest_hex(&d, hex));
    s = aq_stream_of(q->conn->net->world->pair, name);
    return all[aq_stream_below(&s, sizeof all / sizeof *all)];
}

static const char *header_of(const aq_reply *r, const char *name) /* NULL: none */
{
    for (size_t i = 0; i < r->header_count; i++)
        if (strcasecmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

static bool has_header(const aq_reply *r, const char *name)
{
    return header_of(r, name) != NULL;
}

/* Another one for another body; drawn like everything else that differs by world. */
static void etag_of(const aq_ask *q, const aq_reply *r, aq_buf *out)
{
    aq_digest d = aq_sha256(aq_buf_str((aq_buf *)&r->body), r->body.len);
    aq_ask same = *q;
    aq_scene s;

    same.body = (aq_buf){.data = (char *)d.b, .len = sizeof d.b, .cap = sizeof d.b};
    aq_scene_begin(&s, q->conn, &same, "etag");
    aq_fill(&s, "\"%{own.hex:24}\"", out);
}

/* What every server says besides. */
static void add_usual(aq_ask *q, aq_reply *r, const char *type)
{
    aq_auto_buf etag = {0};
    char date[AQ_HTTP_DATE];

    if (!has_header(r, "server"))
        aq_reply_header(r, "Server", server_of(q));
    aq_reply_header(r, "Date", aq_http_date(q->conn->net->now_ns / AQ_NET_NS, date));
    if (type && !has_header(r, "content-type"))
        aq_reply_header(r, "Content-Type", type);
    if (r->status == 200 && !r->stream && strcmp(q->method, "POST") != 0) {
        if (has_header(r, "etag")) {
            aq_buf_adds(&etag, header_of(r, "etag"));
        } else {
            etag_of(q, r, &etag);
            aq_reply_header(r, "ETag", aq_buf_str(&etag));
        }
    }
    aq_deliver(q, r, etag.len > 0 ? aq_buf_str(&etag) : NULL);
}

static bool special(const char *name, aq_ask *q, aq_reply *r)
{
    for (const aq_special *s = aq_specials; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s->answer(q, r);
    return false;
}

static bool make(const aq_answer_rule *rule, aq_ask *q, aq_reply *r)
{
    aq_scene s;

    if (rule->special && !special(rule->special, q, r))
        return false;
    aq_scene_begin(&s, q->conn, q, rule->name);
    if (!rule->special)
        r->status = rule->status;
    r->stream = r->stream || rule->stream;
    aq_fill(&s, rule->body, &r->body);
    for (size_t i = 0; i < rule->header_count; i++) {
        aq_auto_buf value = {0};

        aq_fill(&s, rule->headers[i].value, &value);
        aq_reply_header(r, rule->headers[i].name, aq_buf_str(&value));
    }
    add_usual(q, r, rule->type);
    return true;
}

/* What is too long for the request's own record, whole: secrets leave in addresses and cookies. */
static void note_head(aq_ask *q)
{
    aq_auto_buf line = {0};
    aq_block all = {0};

    if (strlen(q->target) <= AQ_EVENT_TEXT && q->head_len <= AQ_EVENT_TEXT)
        return;
    aq_buf_addf(&line, "%s %s\r\n", q->method, q->target);
    aq_block_add(q->conn, &all, "peer-head", line.data, line.len);
    aq_block_add(q->conn, &all, "peer-head", q->head, q->head_len);
    aq_block_end(q->conn, &all, "peer-head");
    aq_buf_free(&all.held);
}

/* The answer itself is not in it: it follows from the rule and the world, and differs by world. */
static void note(aq_ask *q, const aq_reply *r, const char *rule)
{
    aq_note n = aq_note_of(q->conn, "peer-http");
    aq_digest d = aq_hash_peek(q->digest);
    char hex[AQ_SHA256_HEX];

    aq_block_end(q->conn, &q->rest, "peer-body");
    note_head(q);
    aq_note_object(&n, q->host, strlen(q->host));
    aq_note_text(&n, "method", q->method);
    aq_note_text(&n, "target", q->target);
    aq_note_bytes(&n, "headers", q->head, q->head_len);
    aq_note_text(&n, "over", q->over);
    aq_note_text(&n, "answer", rule);
    if (q->body_len > 0) {
        aq_note_bytes(&n, "body", q->body.data, q->body.len);
        aq_note_number(&n, "size", (int64_t)q->body_len);
        aq_note_text(&n, "digest", aq_digest_hex(&d, hex));
    } else if (r->served[0]) {
        aq_note_text(&n, "served", r->served);
    }
    n.m.record.result = r->status;
    aq_note_send(q->conn->net, &n);
}

void aq_answer(aq_ask *q, aq_reply *r)
{
    const aq_rules *all = q->conn->net->rules;
    const char *rule = NULL;

    for (size_t i = 0; i < all->answer_count && !rule; i++)
        if (fits(&all->answers[i], q) && make(&all->answers[i], q, r))
            rule = all->answers[i].name;
    if (!rule) {
        r->status = 404;
        add_usual(q, r, "text/plain");
    }
    note(q, r, rule);
}
