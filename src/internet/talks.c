/* The small talks: a sink that records, dialogues of services that greet, frames of WebSocket, and
 * DNS over a stream. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "internet/fill.h"
#include "internet/internal.h"
#include "internet/rules.h"

enum { LINE = 16 << 10 }; /* of a dialogue */

/* ---- sink ---- */

static size_t sink_input(aq_conn *c, const uint8_t *data, size_t len)
{
    aq_block_add(c, &c->said, "peer-stream", data, len);
    return len;
}

static void state_free(aq_conn *c)
{
    free(c->state);
}

const aq_talk aq_talk_sink = {.name = "sink", .input = sink_input};

/* ---- dialogue ---- */

typedef struct dialogue {
    const aq_dialogue *rules;
    bool collecting; /* lines are content until a lone dot */
} dialogue;

static void say_text(aq_conn *c, const char *rule, const char *text, const char *line, size_t len)
{
    aq_auto_buf out = {0};
    aq_scene s;

    aq_scene_begin(&s, c, NULL, rule);
    s.line = line;
    s.line_len = len;
    aq_fill(&s, text, &out);
    aq_conn_say(c, out.data, out.len);
}

static void dialogue_begin(aq_conn *c)
{
    dialogue *d = aq_alloc(sizeof *d);
    aq_auto_buf line = {0};

    d->rules = aq_rules_dialogue(c->net->rules, c->service);
    c->state = d;
    if (!d->rules->greeting)
        return;
    if (d->rules->greeting_raw) {
        aq_conn_say(c, d->rules->greeting, d->rules->greeting_len);
        return;
    }
    aq_buf_adds(&line, d->rules->greeting);
    aq_buf_adds(&line, "\r\n");
    say_text(c, d->rules->services, aq_buf_str(&line), NULL, 0);
}

/* Bytes may be zero, so that no function for texts will do. */
static bool begins(const char *data, size_t len, const char *with, size_t n)
{
    if (len < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)data[i]) != tolower((unsigned char)with[i]))
            return false;
    return true;
}

static const aq_turn *turn_for(const aq_conn *c, const aq_dialogue *d, const char *data, size_t len)
{
    for (size_t i = 0; i < d->turn_count; i++) {
        const aq_turn *t = &d->turns[i];

        if (t->starttls && (c->tls || !c->net->tls))
            continue;
        if (t->anywhere ? memmem(data, len, t->pattern, t->pattern_len) != NULL
                        : begins(data, len, t->pattern, t->pattern_len))
            return t;
    }
    return NULL;
}

static void reply(aq_conn *c, const char *data, size_t len)
{
    dialogue *d = c->state;
    const aq_turn *t = turn_for(c, d->rules, data, len);

    if (!t)
        return;
    if (t->raw)
        aq_conn_say(c, t->reply, t->reply_len);
    else
        say_text(c, t->pattern, t->reply, data, len);
    d->collecting = t->collect;
    c->starttls = t->starttls;
    if (t->bye)
        aq_conn_close(c, "goodbye");
}

static size_t line_end(const uint8_t *data, size_t len)
{
    const uint8_t *stop = memchr(data, '\n', len);

    if (!stop)
        return len < LINE ? 0 : len;
    return (size_t)(stop - data) + 1;
}

/* "*2", and so many times "$5", each on a line, and five bytes on another. */
static size_t command_end(const uint8_t *data, size_t len)
{
    size_t at = line_end(data, len);
    unsigned long parts = data[0] == '*' && at > 0 ? strtoul((const char *)data + 1, NULL, 10) : 0;

    for (unsigned long i = 0; i < parts && i < 1024 && at > 0; i++) {
        size_t line = at < len ? line_end(data + at, len - at) : 0;
        unsigned long size = line > 1 ? strtoul((const char *)data + at + 1, NULL, 10) : 0;

        if (line == 0 || size > AQ_NET_INPUT)
            return line == 0 ? 0 : len;
        at += line + size + 2;
        if (at > len)
            return 0;
    }
    return at;
}

/* How much of it is one thing that wants a reply; 0: it has no end yet. */
static size_t turn_end(const aq_dialogue *d, const uint8_t *data, size_t len)
{
    if (d->commands)
        return command_end(data, len);
    return d->lines ? line_end(data, len) : len;
}

static size_t dialogue_input(aq_conn *c, const uint8_t *data, size_t len)
{
    dialogue *d = c->state;
    size_t used = turn_end(d->rules, data, len);

    if (used == 0)
        return 0;
    aq_block_add(c, &c->said, "peer-stream", data, used);
    if (d->collecting) {
        if (used <= 3 && data[0] == '.') {
            static const char taken[] = "250 2.0.0 Ok: queued as 4bT2Xk5Dz9z1Nc\r\n";

            d->collecting = false;
            aq_conn_say(c, taken, sizeof taken - 1);
        }
        return used;
    }
    aq_block_end(c, &c->said, "peer-stream");
    reply(c, (const char *)data, used);
    return used;
}

static void dialogue_ended(aq_conn *c)
{
    aq_block_add(c, &c->said, "peer-stream", c->in.data, c->in.len);
}

const aq_talk aq_talk_dialogue = {.name = "dialogue",
                                  .begin = dialogue_begin,
                                  .input = dialogue_input,
                                  .ended = dialogue_ended,
                                  .free = state_free};

/* ---- WebSocket: what the client says is recorded in the clear, pings and goodbyes answered ----
 */

enum { WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

static void ws_control(aq_conn *c, uint8_t op, const uint8_t *data, size_t len)
{
    uint8_t head[2] = {(uint8_t)(0x80 | op), (uint8_t)len};

    if (len > 125)
        return;
    aq_conn_say(c, head, sizeof head);
    aq_conn_say(c, data, len);
}

static uint64_t ws_length(const uint8_t *data, size_t *head)
{
    uint64_t n = data[1] & 127;
    size_t more = n == 126 ? 2 : n == 127 ? 8 : 0;

    *head = 2 + more;
    if (more == 0)
        return n;
    n = 0;
    for (size_t i = 0; i < more; i++)
        n = n << 8 | data[2 + i];
    return n;
}

static size_t ws_input(aq_conn *c, const uint8_t *data, size_t len)
{
    size_t head = len > 1 && (data[1] & 127) > 125 ? ((data[1] & 127) == 126 ? 4 : 10) : 2;
    uint64_t size;
    uint8_t op = data[0] & 15;

    if (len < head + 4)
        return 0;
    size = ws_length(data, &head);
    if (!(data[1] & 0x80) || size > AQ_NET_INPUT / 2) { /* unmasked, or larger than we take */
        ws_control(c, WS_CLOSE, (const uint8_t *)"\x03\xf1", 2);
        aq_conn_close(c, "websocket");
        return len;
    }
    if (len < head + 4 + size)
        return 0;
    aq_auto_buf clear = {0};

    for (size_t i = 0; i < size; i++)
        aq_buf_addc(&clear, (char)(data[head + 4 + i] ^ data[head + i % 4]));
    aq_block_add(c, &c->said, "peer-stream", clear.data, clear.len);
    aq_block_end(c, &c->said, "peer-stream");
    if (op == WS_PING)
        ws_control(c, WS_PONG, (const uint8_t *)aq_buf_str(&clear), clear.len);
    if (op == WS_CLOSE) {
        ws_control(c, WS_CLOSE, (const uint8_t *)aq_buf_str(&clear), clear.len);
        aq_conn_close(c, "goodbye");
    }
    return head + 4 + (size_t)size;
}

const aq_talk aq_talk_websocket = {.name = "websocket", .input = ws_input};

/* ---- DNS over a stream: each message behind its length ---- */

static size_t dns_input(aq_conn *c, const uint8_t *data, size_t len)
{
    size_t size = len >= 2 ? (size_t)data[0] << 8 | data[1] : 0;
    aq_auto_buf out = {0}, whole = {0};
    aq_dns_asked asked;
    aq_note n;

    if (len < 2 || len < 2 + size)
        return 0;
    if (aq_dns_answer(c->net->world, c->net->now_ns, data + 2, size, AQ_DNS_TCP, &asked, &out) <
        0) {
        aq_block_add(c, &c->said, "peer-stream", data, 2 + size);
        aq_conn_close(c, "no question");
        return 2 + size;
    }
    n = aq_note_of(c, "peer-dns");
    aq_dns_note(&n, &asked, c->tls ? "tls" : "tcp");
    aq_note_send(c->net, &n);
    /* In one piece: some clients read no further than that. */
    aq_buf_addc(&whole, (char)(out.len >> 8));
    aq_buf_addc(&whole, (char)out.len);
    aq_buf_add(&whole, out.data, out.len);
    aq_conn_say(c, whole.data, whole.len);
    return 2 + size;
}

const aq_talk aq_talk_dns = {.name = "dns", .input = dns_input};
