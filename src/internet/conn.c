/* Connections: bytes between a socket, TLS where there is some, and a talk; see internal.h.
 *
 * Nothing blocks. A client that does not read is no longer listened to; one that sends and never
 * finishes a thought meets a bound; one that is silent is closed when virtual time says so. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internet/internal.h"
#include "internet/ports.h"
#include "internet/rules.h"

enum { ROUNDS = 16, GRACE = 10 /* virtual seconds for the last words of the other side */ };

static void alive(aq_conn *c)
{
    c->net->moved++;
    c->deadline_ns = c->net->now_ns + (c->closing ? GRACE : AQ_NET_IDLE) * AQ_NET_NS;
}

static void greet(aq_conn *c)
{
    c->greeted = true;
    if (!c->talk && aq_rules_greets(c->net->rules, c->service))
        aq_conn_talk(c, &aq_talk_dialogue);
}

static bool speaks_tls(const char *service)
{
    static const char *const all[] = {"https", "dot", "smtps", "imaps", "pop3s", "ircs", "mqtts"};

    for (size_t i = 0; service && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i], service) == 0)
            return true;
    return false;
}

aq_conn *aq_conn_new(aq_net *net, int fd, const aq_line_end *client, const aq_line_end *server)
{
    aq_conn *c = aq_alloc(sizeof *c);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    aq_note n;

    *c = (aq_conn){.net = net, .fd = fd, .client = *client, .server = *server};
    c->events = EPOLLIN;
    c->flow = ++net->flows;
    c->service = aq_port_service(IPPROTO_TCP, server->port);
    c->digest = aq_hash_begin();
    if (net->last)
        net->last->next = c;
    else
        net->first = c;
    net->last = c;
    net->open++;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (epoll_ctl(net->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        aq_conn_drop(c, "watch");
    n = aq_note_of(c, "peer-connection");
    aq_note_text(&n, "service", c->service);
    aq_note_send(net, &n);
    alive(c);
    if (!speaks_tls(c->service))
        greet(c);
    return c;
}

void aq_conn_free(aq_conn *c)
{
    aq_digest d = aq_hash_end(c->digest);
    char hex[AQ_SHA256_HEX];
    aq_note n = aq_note_of(c, "peer-closed");

    aq_block_end(c, &c->said, "peer-stream");
    aq_note_text(&n, "by", c->why ? c->why : "client");
    aq_note_number(&n, "read", (int64_t)c->read);
    aq_note_number(&n, "written", (int64_t)c->written);
    if (c->read > 0)
        aq_note_text(&n, "digest", aq_digest_hex(&d, hex));
    aq_note_send(c->net, &n);
    if (c->talk && c->talk->free)
        c->talk->free(c);
    c->net->held -= c->held;
    aq_tls_free(c->tls);
    aq_buf_free(&c->in);
    aq_buf_free(&c->out);
    aq_buf_free(&c->said.held);
    close(c->fd);
    free(c);
}

void aq_conn_drop(aq_conn *c, const char *why)
{
    if (!c->why)
        c->why = why;
    c->dead = true;
}

void aq_conn_close(aq_conn *c, const char *why)
{
    if (c->closing)
        return;
    if (!c->why)
        c->why = why;
    if (c->tls)
        aq_tls_bye(c);
    c->closing = true;
}

void aq_conn_say(aq_conn *c, const void *data, size_t len)
{
    if (c->closing || c->dead || len == 0)
        return;
    if (c->out.len - c->sent + len > AQ_NET_OUTPUT) {
        aq_conn_drop(c, "client does not read");
        return;
    }
    c->written += len;
    c->net->moved++;
    if (!c->tls)
        aq_buf_add(&c->out, data, len);
    else if (aq_tls_output(c, data, len) < 0)
        aq_conn_drop(c, "tls");
}

void aq_conn_talk(aq_conn *c, const aq_talk *talk)
{
    if (c->talk && c->talk->free)
        c->talk->free(c);
    c->state = NULL;
    c->talk = talk;
    if (talk->begin)
        talk->begin(c);
}

/* What comes out of TLS is what was said. */
static void decrypt(aq_conn *c, const void *data, size_t len)
{
    size_t before = c->in.len;

    if (aq_tls_input(c, data, len) < 0)
        aq_conn_close(c, "tls");
    c->read += c->in.len - before;
    if (c->in.len > before)
        aq_hash_add(c->digest, c->in.data + before, c->in.len - before);
}

/* What the first bytes of an open conversation ask for; false: too few of them. */
static bool choose(aq_conn *c)
{
    aq_sniff s = aq_sniff_of((const uint8_t *)c->in.data, c->in.len);

    if (c->tls && aq_tls_is_http2(c->tls)) {
        aq_conn_talk(c, &aq_talk_http2);
        return true;
    }
    if (c->service && (strcmp(c->service, "dns") == 0 || strcmp(c->service, "dot") == 0) &&
        (s == AQ_SNIFF_OTHER || s == AQ_SNIFF_MORE)) {
        aq_conn_talk(c, &aq_talk_dns);
        return true;
    }
    if (s == AQ_SNIFF_MORE && !c->ended)
        return false;
    if (s == AQ_SNIFF_TLS && !c->tls && c->net->tls) {
        aq_auto_buf raw = c->in;

        c->in = (aq_buf){0};
        c->read = 0;
        aq_hash_reset(c->digest);
        c->tls = aq_tls_new(c);
        decrypt(c, raw.data, raw.len);
        return true;
    }
    if (s == AQ_SNIFF_HTTP)
        aq_conn_talk(c, &aq_talk_http);
    else if (s == AQ_SNIFF_HTTP2)
        aq_conn_talk(c, &aq_talk_http2);
    else if (aq_rules_answers(c->net->rules, c->service))
        aq_conn_talk(c, &aq_talk_dialogue);
    else
        aq_conn_talk(c, &aq_talk_sink);
    return true;
}

static void use_up(aq_conn *c, size_t n)
{
    if (n > 0) {
        memmove(c->in.data, c->in.data + n, c->in.len - n);
        c->in.len -= n;
    }
}

/* The talk goes on in TLS. What a client said behind its wish, and is no greeting of TLS, somebody
 * may have put there: it must not count as said in TLS, and nothing further does. */
static void turn_to_tls(aq_conn *c)
{
    aq_auto_buf raw = c->in;

    c->in = (aq_buf){0};
    c->starttls = false;
    c->tls = aq_tls_new(c);
    c->read -= raw.len;
    if (raw.len > 0)
        decrypt(c, raw.data, raw.len);
}

/* Lets the talk have what is in the clear. */
static void talk(aq_conn *c)
{
    if (c->tls && !aq_tls_ready(c->tls)) {
        if (c->ended)
            aq_conn_close(c, "client");
        return;
    }
    if (c->tls && !c->greeted)
        greet(c);
    while (!c->dead && !c->closing && c->in.len > 0) {
        size_t used;

        if (!c->talk) {
            if (!choose(c) || (c->tls && !aq_tls_ready(c->tls)))
                return;
            continue;
        }
        const aq_talk *before = c->talk;

        used = c->talk->input(c, (const uint8_t *)c->in.data, c->in.len);
        use_up(c, used);
        if (c->starttls && !c->dead && !c->closing) {
            turn_to_tls(c);
            return;
        }
        if (used == 0 && c->talk == before) {
            if (c->in.len >= AQ_NET_INPUT)
                aq_conn_drop(c, "too much without an end");
            break;
        }
        if (c->out.len - c->sent > AQ_NET_OUTPUT_PAUSE)
            break;
    }
    if (c->ended && !c->told && !c->closing && !c->dead) {
        c->told = true;
        if (c->talk && c->talk->ended)
            c->talk->ended(c);
        aq_conn_close(c, "client");
    }
}

static void heard(aq_conn *c, const void *data, size_t len)
{
    if (c->closing) /* only waiting for the end of the other side */
        return;
    if (c->tls) {
        decrypt(c, data, len);
    } else {
        aq_buf_add(&c->in, data, len);
        c->read += len;
        aq_hash_add(c->digest, data, len);
    }
    if (c->net->latency_ns > 0 && c->due_ns <= c->net->now_ns)
        c->due_ns = c->net->now_ns + c->net->latency_ns;
}

void aq_conn_hear(aq_conn *c, const void *data, size_t len)
{
    heard(c, data, len);
    talk(c);
}

/* 1: there was something, 0: nothing now. */
static int take(aq_conn *c)
{
    static char data[AQ_NET_READ];
    ssize_t n = recv(c->fd, data, sizeof data, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0) {
        aq_conn_drop(c, "reset");
        return 0;
    }
    if (n == 0) {
        c->net->moved += !c->ended;
        c->ended = true;
        return 0;
    }
    alive(c);
    /* The other side may wait for our word that its bytes came, and the clock stands still. */
    setsockopt(c->fd, IPPROTO_TCP, TCP_QUICKACK, &(int){1}, sizeof(int));
    aq_conn_hear(c, data, (size_t)n);
    return 1;
}

static bool give(aq_conn *c)
{
    size_t left = c->out.len - c->sent;
    ssize_t n;

    if (left == 0 || c->due_ns > c->net->now_ns)
        return false;
    n = send(c->fd, c->out.data + c->sent, left, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        aq_conn_drop(c, "reset");
    if (n <= 0)
        return false;
    alive(c);
    c->sent += (size_t)n;
    if (c->sent == c->out.len) {
        c->sent = c->out.len = 0;
        if (c->out.cap > AQ_NET_READ)
            aq_buf_free(&c->out);
    }
    return true;
}

bool aq_conn_waits(const aq_conn *c)
{
    return c->out.len > c->sent;
}

/* Says goodbye, and hears the other side out: closing on unread bytes would reset the connection,
 * and the client could lose our last words. */
static void finish(aq_conn *c)
{
    if (!c->closing || aq_conn_waits(c))
        return;
    if (c->ended)
        c->dead = true;
    else
        shutdown(c->fd, SHUT_WR);
}

static void watch(aq_conn *c)
{
    uint32_t want = 0;
    struct epoll_event e = {.data.ptr = c};

    if (!c->ended && c->out.len - c->sent <= AQ_NET_OUTPUT_PAUSE)
        want |= EPOLLIN;
    if (aq_conn_waits(c) && c->due_ns <= c->net->now_ns)
        want |= EPOLLOUT;
    if (want == c->events || c->dead)
        return;
    e.events = c->events = want;
    epoll_ctl(c->net->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

/* All that waits in all connections has a bound, too. */
static void account(aq_conn *c)
{
    size_t now = c->in.cap + c->out.cap + c->said.held.cap;

    c->net->held += now - c->held;
    c->held = now;
    if (c->net->held > AQ_NET_HELD && now > AQ_NET_READ)
        aq_conn_drop(c, "memory");
}

void aq_conn_move(aq_conn *c, bool readable)
{
    for (int i = 0; i < ROUNDS && !c->dead; i++) {
        bool heard_some = false, said_some;

        if (readable && !c->ended && c->out.len - c->sent <= AQ_NET_OUTPUT_PAUSE)
            heard_some = take(c) > 0;
        if (!c->dead)
            talk(c);
        if (c->talk && c->talk->more && !c->dead && !c->closing &&
            c->out.len - c->sent <= AQ_NET_OUTPUT_PAUSE)
            c->talk->more(c);
        said_some = !c->dead && give(c);
        if (!heard_some && !said_some)
            break;
    }
    account(c);
    if (!c->dead)
        finish(c);
    if (!c->dead)
        watch(c);
}
