/* What programs say over their sockets: DNS questions, HTTP requests, TLS greetings.
 *
 * A datagram stands for itself. A stream has no borders: a request may come byte by byte, from
 * several processes that share the socket, or two in one go. So what a stream has sent is put
 * together until it is a whole head or is none: bounded for each socket, and for all. What is cut
 * by a bound, or by the end of the socket, is told with `cut`. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internet/ports.h"
#include "model/reserved.h"
#include "observe/decode.h"
#include "observe/payload.h"

enum { DNS_PORT = 53, TALKS = 256, TALK_BYTES = 16384, LENGTH = 2 };

typedef struct talk {
    uint64_t ino;   /* of the socket; 0: free */
    uint64_t used;  /* when, in the order of all uses */
    uint64_t skip;  /* bytes of a body that still come */
    uint32_t proc;  /* who sent last */
    bool encrypted; /* a greeting was seen: nothing further can be read */
    aq_buf bytes;   /* of a head that is not whole */
} talk;

typedef struct aq_talks {
    talk row[TALKS];
    uint64_t uses;
} aq_talks;

/* Who says it, and to whom. */
typedef struct voice {
    aq_tracer *t;
    aq_proc *proc;
    uint32_t thread;
    const char *peer;
    long result;
    bool cut;
} voice;

/* ---- events ---- */

static void say(const voice *v, aq_event *e)
{
    e->result = v->result;
    aq_note_proc(v->t, v->proc, v->thread, e);
}

static void note_questions(const voice *v, const char *data, size_t len)
{
    aq_dns_question q;

    for (unsigned i = 0; i < AQ_DNS_QUESTIONS && aq_payload_dns(data, len, i, &q) == 0; i++) {
        aq_event e = aq_event_of(AQ_EVENT_NETWORK, "dns-query");

        aq_event_object(&e, q.name);
        aq_event_number(&e, "type", q.type);
        aq_event_number(&e, "class", q.class);
        aq_event_text(&e, "server", v->peer);
        say(v, &e);
    }
}

static void object_slice(aq_event *e, aq_slice s)
{
    e->object = s.at;
    e->object_cut = s.len > AQ_EVENT_TEXT;
    e->object_len = e->object_cut ? AQ_EVENT_TEXT : s.len;
}

static bool note_request(const voice *v, const char *data, size_t len)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "http-request");
    aq_http_head h;

    if (!aq_payload_http(data, len, &h))
        return false;
    if (h.host.len > 0)
        object_slice(&e, h.host);
    else
        aq_event_object(&e, v->peer);
    aq_event_bytes(&e, "method", h.method.at, h.method.len, false);
    aq_event_bytes(&e, "target", h.target.at, h.target.len, false);
    aq_event_text(&e, "peer", v->peer);
    if (v->cut)
        aq_event_number(&e, "cut", 1);
    say(v, &e);
    return true;
}

static bool note_greeting(const voice *v, const uint8_t *data, size_t len)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "tls-hello");
    aq_tls_hello h;

    if (!aq_payload_tls(data, len, &h))
        return false;
    if (h.name.len > 0)
        object_slice(&e, h.name);
    if (h.alpn.len > 0)
        aq_event_bytes(&e, "alpn", h.alpn.at, h.alpn.len, false);
    if (h.hidden)
        aq_event_number(&e, "hidden", 1);
    if (h.cut)
        aq_event_number(&e, "cut", 1);
    aq_event_text(&e, "peer", v->peer);
    say(v, &e);
    return true;
}

/* ---- datagrams ---- */

/* Does a datagram go to where nobody writes it down: to a port that nobody listens at, as a ping,
 * or to an address that there is not? The internet records what it hears, and what stays on the
 * machine does not leave. */
static bool unheard(const aq_tracer *t, const aq_fd *f, const char *peer, uint16_t port)
{
    char address[INET6_ADDRSTRLEN + 8];
    aq_net_range a;
    size_t n;

    if (f->stream || (f->family != AF_INET && f->family != AF_INET6) || port == DNS_PORT)
        return false;
    snprintf(address, sizeof address, "%.*s", (int)sizeof address - 1,
             *peer == '[' ? peer + 1 : peer);
    n = *peer == '[' ? strcspn(address, "]") : strcspn(address, ":");
    address[n] = '\0';
    if (aq_net_range_parse(address, &a) < 0 || strncmp(address, "127.", 4) == 0 ||
        strcmp(address, "::1") == 0)
        return false;
    return !t->plan.machine || !aq_port_service(IPPROTO_UDP, port) ||
           aq_reserved_from(t->plan.machine, &a);
}

static void note_datagram(voice v, const char *data, size_t len, uint64_t sent)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "datagram");

    v.result = (long)sent;
    aq_event_object(&e, v.peer);
    aq_event_bytes(&e, "bytes", data, len, len < sent);
    say(&v, &e);
}

/* ---- one stream ---- */

static void drop(talk *w, size_t n)
{
    if (n == 0)
        return;
    memmove(w->bytes.data, w->bytes.data + n, w->bytes.len - n);
    w->bytes.len -= n;
}

/* A request at the start of what is there. */
static aq_part take_request(voice *v, talk *w)
{
    size_t end = 0, blank = 0, n;
    uint64_t body = 0;
    aq_part part;

    while (blank < w->bytes.len && strchr("\r\n", w->bytes.data[blank]) && w->bytes.data[blank])
        blank++; /* servers pass over empty lines */
    drop(w, blank);
    part = aq_payload_http_part(w->bytes.data, w->bytes.len, &end, &body);
    if (part != AQ_PART_WHOLE)
        return part;
    note_request(v, w->bytes.data, end);
    drop(w, end);
    if (body == UINT64_MAX) /* chunks: what comes next is known when it comes */
        body = w->bytes.len;
    n = body < w->bytes.len ? (size_t)body : w->bytes.len;
    drop(w, n);
    w->skip = body - n;
    return part;
}

static aq_part take_greeting(voice *v, talk *w)
{
    uint8_t joined[TALK_BYTES];
    size_t len = 0, end = 0;
    aq_part part =
        aq_payload_tls_part(w->bytes.data, w->bytes.len, joined, sizeof joined, &len, &end);

    if (part == AQ_PART_WHOLE || (part == AQ_PART_MORE && v->cut))
        w->encrypted = note_greeting(v, joined, len);
    return part;
}

/* Everything that is whole. What is left may become something. */
static void take_all(voice *v, talk *w)
{
    while (w->bytes.len > 0 && !w->encrypted) {
        aq_part request = take_request(v, w);
        aq_part greeting = AQ_PART_NO;

        if (w->bytes.len == 0 || request == AQ_PART_WHOLE)
            continue;
        if (request == AQ_PART_NO)
            greeting = take_greeting(v, w);
        if (request == AQ_PART_MORE || greeting == AQ_PART_MORE)
            return;
        aq_buf_clear(&w->bytes); /* nothing that we know; the next send may begin something */
    }
    aq_buf_clear(&w->bytes);
}

/* Over TCP each message has its length before it. */
static void take_questions(voice *v, talk *w)
{
    while (w->bytes.len >= LENGTH) {
        size_t len = (size_t)(uint8_t)w->bytes.data[0] << 8 | (uint8_t)w->bytes.data[1];

        if (w->bytes.len - LENGTH < len)
            return;
        note_questions(v, w->bytes.data + LENGTH, len);
        drop(w, LENGTH + len);
    }
}

/* No more comes, or no more fits: what is there is told as far as it goes. */
static void close_talk(voice *v, talk *w)
{
    v->cut = true;
    if (w->bytes.len > 0 && !w->encrypted && !note_request(v, w->bytes.data, w->bytes.len))
        take_greeting(v, w);
    aq_buf_free(&w->bytes);
    v->cut = false;
}

static talk *find(const aq_tracer *t, uint64_t ino)
{
    for (int i = 0; t->talks && i < TALKS; i++)
        if (t->talks->row[i].ino == ino)
            return &t->talks->row[i];
    return NULL;
}

/* The one that was quiet longest makes room; if it was in the middle of something that is said. */
static talk *talk_of(aq_tracer *t, aq_task *k, uint64_t ino)
{
    talk *w = find(t, ino);

    if (!t->talks)
        t->talks = aq_alloc(sizeof *t->talks);
    if (!w) {
        w = &t->talks->row[0];
        for (int i = 1; i < TALKS; i++)
            if (t->talks->row[i].used < w->used)
                w = &t->talks->row[i];
        if (w->bytes.len > 0)
            aq_unseen(t, k, "stream");
        aq_buf_free(&w->bytes);
        *w = (talk){.ino = ino};
    }
    w->used = ++t->talks->uses;
    w->proc = k->proc->ordinal;
    return w;
}

static void stream_sent(voice *v, aq_task *k, const aq_fd *f, const char *data, size_t len,
                        uint64_t sent)
{
    talk *w = talk_of(v->t, k, f->ino);
    uint64_t gone = w->skip < sent ? w->skip : sent;

    w->skip -= gone;
    sent -= gone;
    data += gone < len ? gone : len;
    len -= gone < len ? (size_t)gone : len;
    if (w->encrypted || sent == 0)
        return;
    while (len > 0) {
        size_t room = TALK_BYTES - w->bytes.len, n = len < room ? len : room;

        aq_buf_add(&w->bytes, data, n);
        data += n, len -= n, sent -= n;
        if (f->port == DNS_PORT)
            take_questions(v, w);
        else
            take_all(v, w);
        if (w->bytes.len == TALK_BYTES)
            close_talk(v, w);
        if (w->skip) { /* of the rest, too */
            gone = w->skip < len ? w->skip : len;
            w->skip -= gone;
            data += gone, len -= (size_t)gone, sent -= gone;
        }
    }
    gone = w->skip < sent ? w->skip : sent;
    w->skip -= gone;
    if (sent > gone && w->bytes.len > 0) /* a hole: more was sent than was kept */
        close_talk(v, w);
}

void aq_note_payload(aq_tracer *t, aq_task *k, const aq_fd *f, const aq_message *m,
                     const char *data, uint64_t sent, long result)
{
    const char *peer = *m->address ? m->address : f->name ? f->name : "";
    voice v = {t, k->proc, k->ordinal, peer, result, false};
    uint16_t port = *m->address ? m->port : f->port;
    size_t head = f->stream && port == DNS_PORT ? LENGTH : 0;

    if (m->len == 0)
        return;
    if (result >= 0 && f->stream)
        stream_sent(&v, k, f, data, m->len < sent ? m->len : (size_t)sent, sent);
    else if (port == DNS_PORT && m->len > head)
        note_questions(&v, data + head, m->len - head);
    else if (f->stream)
        note_request(&v, data, m->len);
    else if (result >= 0 && unheard(t, f, peer, port))
        note_datagram(v, data, m->len, sent);
}

void aq_talk_end(aq_tracer *t, aq_proc *p, uint32_t thread, const aq_fd *f)
{
    talk *w = f->kind == AQ_FD_SOCKET && f->ino ? find(t, f->ino) : NULL;
    voice v = {t, p, thread, f->name ? f->name : "", 0, false};

    if (w && w->proc == p->ordinal && w->bytes.len > 0)
        close_talk(&v, w);
}

void aq_talk_free(aq_tracer *t)
{
    for (int i = 0; t->talks && i < TALKS; i++)
        aq_buf_free(&t->talks->row[i].bytes);
    free(t->talks);
    t->talks = NULL;
}
