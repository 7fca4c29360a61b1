/* Records: what was said, as the keeper gets it, within bounds. */
#include <string.h>

#include <netinet/in.h>

#include "internet/internal.h"

aq_note aq_note_of(const aq_conn *c, const char *op)
{
    return (aq_note){.m = {.type = AQ_LINE_RECORD,
                           .record = {.flow = c->flow,
                                      .protocol = IPPROTO_TCP,
                                      .client = c->client,
                                      .server = c->server,
                                      .op = op}}};
}

void aq_note_object(aq_note *n, const char *text, size_t len)
{
    n->m.record.object = text;
    n->m.record.object_len = len;
}

static aq_event_arg *add(aq_note *n, const char *name)
{
    aq_line_record *r = &n->m.record;

    if (r->arg_count == AQ_EVENT_ARGS)
        aq_panic("a record with more than %d arguments", AQ_EVENT_ARGS);
    r->args[r->arg_count] = (aq_event_arg){.name = name};
    return &r->args[r->arg_count++];
}

void aq_note_bytes(aq_note *n, const char *name, const void *data, size_t len)
{
    aq_event_arg *a = add(n, name);

    a->bytes = len > 0 ? data : "";
    a->len = len;
}

void aq_note_text(aq_note *n, const char *name, const char *text)
{
    if (text)
        aq_note_bytes(n, name, text, strlen(text));
}

void aq_note_number(aq_note *n, const char *name, int64_t number)
{
    add(n, name)->number = number;
}

static size_t weight(const aq_line_record *r)
{
    size_t sum = 128 + r->object_len;

    for (size_t i = 0; i < r->arg_count; i++)
        sum += r->args[i].len;
    return sum;
}

void aq_note_send(aq_net *net, aq_note *n)
{
    size_t bytes = weight(&n->m.record);

    if (net->records >= AQ_NET_RECORDS || net->recorded + bytes > AQ_NET_RECORDED_ALL) {
        net->dropped++;
        return;
    }
    net->records++;
    net->recorded += bytes;
    if (aq_line_send(net->line, &n->m, NULL) < 0)
        net->failed = true;
}

static void put_block(aq_conn *c, aq_block *b, const char *op, size_t len)
{
    aq_note note = aq_note_of(c, op);

    if (c->recorded + len > AQ_NET_RECORDED) {
        c->net->dropped++;
    } else {
        aq_note_number(&note, "at", (int64_t)b->at);
        aq_note_bytes(&note, "bytes", b->held.data, len);
        aq_note_text(&note, "service", c->service);
        aq_note_send(c->net, &note);
        c->recorded += len;
    }
    memmove(b->held.data, b->held.data + len, b->held.len - len);
    b->held.len -= len;
    b->at += len;
}

void aq_block_add(aq_conn *c, aq_block *b, const char *op, const void *data, size_t len)
{
    const char *from = data;

    while (len > 0) {
        size_t room = AQ_EVENT_TEXT - b->held.len, n = len < room ? len : room;

        aq_buf_add(&b->held, from, n);
        if (b->held.len == AQ_EVENT_TEXT)
            put_block(c, b, op, AQ_EVENT_TEXT);
        from += n;
        len -= n;
    }
}

void aq_block_end(aq_conn *c, aq_block *b, const char *op)
{
    if (b->held.len > 0)
        put_block(c, b, op, b->held.len);
}
