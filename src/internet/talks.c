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

static void say_text(aq_conn *c, const char *rule, const char *text, size_t len, bool raw)
{
    aq_auto_buf out = {0};
    aq_scene s;

    if (raw) {
        aq_conn_say(c, text, len);
        return;
    }
    aq_scene_begin(&s, c, NULL, rule);
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
    say_text(c, d->rules->services, aq_buf_str(&line), line.len, false);
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

static const aq_turn *turn_for(const aq_dialogue *d, const char *data, size_t len)
{
    for (size_t i = 0; i < d->turn_count; i++) {
        const aq_turn *t = &d->turns[i];

        if (t->anywhere ? memmem(data, len, t->pattern, t->pattern_len) != NULL
                        : begins(data, len, t->pattern, t->pattern_len))
            return t;
    }
    return NULL;
}

static void reply(aq_conn *c, const char *data, size_t len)
{
    dialogue *d = c->state;
    const aq_turn *t = turn_for(d->rules, data, len);

    if (!t)
        return;
    say_text(c, t->pattern, t->reply, t->reply_len, t->raw);
    d->collecting = t->collect;
    if (t->bye)
        aq_conn_close(c, "goodbye");
}

static size_t dialogue_input(aq_conn *c, const uint8_t *data, size_t len)
{
    dialogue *d = c->state;
    const uint8_t *stop = memchr(data, '\n', len);
    size_t used = len;

    if (d->rules->lines) {
        if (!stop && len < LINE)
            return 0;
        used = stop ? (size_t)(stop - data) + 1 : len;
    }
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
