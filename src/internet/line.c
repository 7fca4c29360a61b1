/* The line; see line.h. The forms are defined in docs/formats/internet.md. */
#include "internet/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { HAS_OBJECT = 1, OBJECT_CUT = 2 };
enum { FORM_NUMBER, FORM_BYTES, FORM_CUT };

static const char *const ops[] = {
#define AQ_RECORD(id, op, what) op,
#include "internet/records.def"
#undef AQ_RECORD
};

size_t aq_line_op_count(void)
{
    return sizeof ops / sizeof *ops;
}

const char *aq_line_op(size_t index)
{
    return ops[index];
}

static bool is_op(const char *s)
{
    for (size_t i = 0; i < aq_line_op_count(); i++)
        if (strcmp(ops[i], s) == 0)
            return true;
    return false;
}

static int compare_args(const void *a, const void *b)
{
    return strcmp(((const aq_event_arg *)a)->name, ((const aq_event_arg *)b)->name);
}

static void put_name(aq_buf *out, const char *s)
{
    aq_wire_put_text(out, s, strlen(s));
}

static void put_end(aq_buf *out, const aq_line_end *e)
{
    aq_buf_add(out, e->address, sizeof e->address);
    aq_wire_put_number(out, e->port);
}

static size_t bounded(size_t len)
{
    return len < AQ_EVENT_TEXT ? len : AQ_EVENT_TEXT;
}

static void put_arg(aq_buf *out, const aq_event_arg *a)
{
    put_name(out, a->name);
    if (!a->bytes) {
        aq_buf_addc(out, FORM_NUMBER);
        aq_wire_put_signed(out, a->number);
        return;
    }
    aq_buf_addc(out, a->cut || a->len > AQ_EVENT_TEXT ? FORM_CUT : FORM_BYTES);
    aq_wire_put_bytes(out, a->bytes, bounded(a->len));
}

static void put_record(aq_buf *out, const aq_line_record *r)
{
    aq_event_arg args[AQ_EVENT_ARGS];
    bool cut = r->object && (r->object_cut || r->object_len > AQ_EVENT_TEXT);

    if (r->arg_count > AQ_EVENT_ARGS || !is_op(r->op))
        aq_panic("a record out of bounds (%.80s)", r->op);
    memcpy(args, r->args, sizeof args);
    qsort(args, r->arg_count, sizeof *args, compare_args);
    aq_wire_put_number(out, r->flow);
    aq_buf_addc(out, (char)r->protocol);
    put_end(out, &r->client);
    put_end(out, &r->server);
    aq_buf_addc(out, (char)((r->object ? HAS_OBJECT : 0) | (cut ? OBJECT_CUT : 0)));
    put_name(out, r->op);
    if (r->object)
        aq_wire_put_bytes(out, r->object, bounded(r->object_len));
    aq_buf_addc(out, (char)r->arg_count);
    for (size_t i = 0; i < r->arg_count; i++) {
        if (i > 0 && compare_args(&args[i - 1], &args[i]) == 0)
            aq_panic("a record with two arguments %s", args[i].name);
        put_arg(out, &args[i]);
    }
    aq_wire_put_signed(out, r->result);
}

static void put_done(aq_buf *out, const aq_line_done *d)
{
    aq_wire_put_number(out, d->number);
    aq_wire_put_number(out, d->moved);
    aq_wire_put_signed(out, d->wake_ns);
    aq_wire_put_number(out, d->open);
    aq_wire_put_number(out, d->dropped);
}

static void put_hello(aq_buf *out, const aq_line_hello *h)
{
    aq_wire_put_number(out, AQ_LINE_VERSION);
    aq_buf_addc(out, (char)h->landlock);
    aq_buf_addc(out, (char)h->seccomp);
    aq_buf_addc(out, (char)h->namespaces);
    aq_buf_addc(out, (char)h->memory);
    aq_wire_put_number(out, h->sockets);
}

void aq_line_write(const aq_line_message *m, aq_buf *out)
{
    size_t mark = aq_wire_open_record(out, (char)m->type);

    switch (m->type) {
    case AQ_LINE_HELLO:
        put_hello(out, &m->hello);
        break;
    case AQ_LINE_STEP:
        aq_wire_put_number(out, m->step.number);
        aq_wire_put_signed(out, m->step.now_ns);
        break;
    case AQ_LINE_RECORD:
        put_record(out, &m->record);
        break;
    case AQ_LINE_DONE:
        put_done(out, &m->done);
        break;
    case AQ_LINE_FAILED:
        aq_wire_put_text(out, m->failed.text, strnlen(m->failed.text, AQ_EVENT_TEXT));
        break;
    }
    aq_wire_close_record(out, mark);
}

static void get_end(aq_wire *w, aq_line_end *e)
{
    for (size_t i = 0; i < sizeof e->address; i++)
        e->address[i] = aq_wire_byte(w, UINT8_MAX);
    e->port = (uint16_t)aq_wire_number(w, UINT16_MAX);
}

static void get_arg(aq_wire *w, aq_event_arg *a)
{
    uint8_t form;

    a->name = aq_wire_name(w);
    form = aq_wire_byte(w, FORM_CUT);
    if (form == FORM_NUMBER) {
        a->number = aq_wire_signed(w);
        return;
    }
    a->bytes = aq_wire_bytes(w, AQ_EVENT_TEXT, &a->len);
    a->cut = form == FORM_CUT;
}

static void get_record(aq_wire *w, aq_line_record *r)
{
    uint8_t flags;

    r->flow = aq_wire_number(w, AQ_WIRE_COUNT);
    r->protocol = aq_wire_byte(w, IPPROTO_UDP);
    if (r->protocol != IPPROTO_TCP && r->protocol != IPPROTO_UDP)
        aq_wire_refuse(w, "a record is of no known protocol");
    get_end(w, &r->client);
    get_end(w, &r->server);
    flags = aq_wire_byte(w, HAS_OBJECT | OBJECT_CUT);
    if (flags == OBJECT_CUT)
        aq_wire_refuse(w, "a record's flags contradict each other");
    r->op = aq_wire_name(w);
    if (!w->bad && !is_op(r->op))
        aq_wire_refuse(w, "a record names no known act");
    if (flags & HAS_OBJECT)
        r->object = aq_wire_bytes(w, AQ_EVENT_TEXT, &r->object_len);
    r->object_cut = flags & OBJECT_CUT;
    r->arg_count = aq_wire_byte(w, AQ_EVENT_ARGS);
    for (size_t i = 0; i < r->arg_count && !w->bad; i++) {
        get_arg(w, &r->args[i]);
        if (i > 0 && !w->bad && compare_args(&r->args[i - 1], &r->args[i]) >= 0)
            aq_wire_refuse(w, "arguments are out of order");
    }
    r->result = aq_wire_signed(w);
}

static void get_hello(aq_wire *w, aq_line_hello *h)
{
    if (aq_wire_number(w, UINT32_MAX) != AQ_LINE_VERSION)
        aq_wire_refuse(w, "the other side speaks another version");
    h->landlock = aq_wire_byte(w, UINT8_MAX);
    h->seccomp = aq_wire_byte(w, 1);
    h->namespaces = aq_wire_byte(w, 1);
    h->memory = aq_wire_byte(w, 1);
    h->sockets = (uint32_t)aq_wire_number(w, UINT16_MAX);
}

static void get_done(aq_wire *w, aq_line_done *d)
{
    d->number = aq_wire_number(w, AQ_WIRE_COUNT);
    d->moved = aq_wire_number(w, AQ_WIRE_COUNT);
    d->wake_ns = aq_wire_signed(w);
    d->open = aq_wire_number(w, AQ_WIRE_COUNT);
    d->dropped = aq_wire_number(w, AQ_WIRE_COUNT);
}

static void get_payload(aq_wire *w, aq_line_message *m)
{
    size_t len;

    switch (m->type) {
    case AQ_LINE_HELLO:
        get_hello(w, &m->hello);
        break;
    case AQ_LINE_STEP:
        m->step.number = aq_wire_number(w, AQ_WIRE_COUNT);
        m->step.now_ns = aq_wire_signed(w);
        break;
    case AQ_LINE_RECORD:
        get_record(w, &m->record);
        break;
    case AQ_LINE_DONE:
        get_done(w, &m->done);
        break;
    case AQ_LINE_FAILED:
        m->failed.text = aq_wire_text(w, AQ_EVENT_TEXT, &len);
        break;
    default:
        aq_wire_refuse(w, "a message is of no known type");
    }
    aq_wire_done(w);
}

int aq_line_read(const void *packet, size_t len, aq_line_message *ret, aq_err *err)
{
    aq_line_message m = {0};
    const char *bad = NULL;
    aq_wire payload;
    size_t size;
    char type;
    int r = aq_wire_record(packet, len, &type, &payload, &size, &bad);

    if (r < 0)
        return aq_fail(err, -EBADMSG, "a packet of the internet's line: %s", bad);
    if (r == 0 || size != len)
        return aq_fail(err, -EBADMSG, "a packet of the internet's line is not one whole message");
    m.type = (aq_line_type)type;
    get_payload(&payload, &m);
    if (payload.bad)
        return aq_fail(err, -EBADMSG, "a packet of the internet's line: %s", payload.bad);
    *ret = m;
    return 0;
}

int aq_line_send(int fd, const aq_line_message *m, aq_err *err)
{
    aq_auto_buf packet = {0};
    ssize_t n;

    aq_line_write(m, &packet);
    do
        n = send(fd, packet.data, packet.len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? aq_fail_errno(err, "cannot send on the internet's line") : 0;
}

int aq_line_receive(int fd, void *packet, aq_line_message *ret, aq_err *err)
{
    ssize_t n;
    int r;

    do /* one byte more than allowed, so that a longer packet shows */
        n = recv(fd, packet, AQ_LINE_PACKET + 1, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return aq_fail_errno(err, "cannot read from the internet's line");
    if (n == 0)
        return 0;
    r = aq_line_read(packet, (size_t)n, ret, err);
    return r < 0 ? r : 1;
}

const char *aq_line_end_text(const aq_line_end *e, char out[static AQ_LINE_END_TEXT])
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr six;

    memcpy(&six, e->address, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
        inet_ntop(AF_INET, e->address + 12, address, sizeof address);
        snprintf(out, AQ_LINE_END_TEXT, "%s:%u", address, e->port);
    } else {
        inet_ntop(AF_INET6, &six, address, sizeof address);
        snprintf(out, AQ_LINE_END_TEXT, "[%s]:%u", address, e->port);
    }
    return out;
}
