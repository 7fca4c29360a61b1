/* What the parts of the program aquarium-internet share.
 *
 * Theory of operation. One thread, no chance, no clock. The loop (loop.c) sleeps on the line; a
 * step lets it take connections and datagrams in the order of its sockets, and go through the
 * connections in the order in which they came, until nothing moves. A connection (conn.c) moves
 * bytes between its socket, TLS where there is some (tls.c), and the talk that its first bytes
 * asked for: HTTP/1 or 2, DNS, a greeting, or a sink. Requests of both HTTPs become an aq_ask,
 * which the answers (answer.c, rules/internet) turn into a reply. All that was said becomes records
 * (record.c).
 *
 * All input is hostile, and so is all that depends on it. Bounds are here, in one place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/stream.h"
#include "internet/line.h"
#include "internet/world.h"

enum {
    AQ_NET_CONNECTIONS = 1024,      /* open at once; one more is closed at once */
    AQ_NET_SOCKETS = 256,           /* given to us */
    AQ_NET_INPUT = 256 << 10,       /* bytes of a connection that wait for the end of a thought */
    AQ_NET_OUTPUT = 4 << 20,        /* bytes that wait for a client which does not read */
    AQ_NET_OUTPUT_PAUSE = 1 << 20,  /* from here on it is not listened to either */
    AQ_NET_HEAD = 64 << 10,         /* of a request */
    AQ_NET_HEADERS = 128,           /* of a request */
    AQ_NET_BODY = 1 << 20,          /* of a request that answers can look at */
    AQ_NET_RECORDED = 1 << 20,      /* bytes of one connection that are recorded */
    AQ_NET_RECORDED_ALL = 16 << 20, /* of a world */
    AQ_NET_RECORDS = 100000,        /* of a world */
    AQ_NET_HELD = 192 << 20,        /* bytes that wait in all connections; bodies among them */
    AQ_NET_MEMORY = 768 << 20,      /* addresses of the process */
    AQ_NET_READ = 64 << 10,         /* at once from one socket */
    AQ_NET_IDLE = 60,               /* virtual seconds until a silent connection is closed */
};
#define AQ_NET_NS INT64_C(1000000000)

typedef struct aq_net aq_net;
typedef struct aq_conn aq_conn;

typedef struct aq_block {
    aq_buf held; /* not yet in a record */
    uint64_t at; /* where that begins */
} aq_block;

/* ---- conn.c: connections ---- */

/* How a connection is spoken on. `input` takes what it can use of the bytes at hand and returns how
 * much that was (0: it needs more); `more` is asked when there is room for what it held back;
 * `ended` hears that the client will say no more. */
typedef struct aq_talk {
    const char *name;
    void (*begin)(aq_conn *c);
    size_t (*input)(aq_conn *c, const uint8_t *data, size_t len);
    void (*more)(aq_conn *c);
    void (*ended)(aq_conn *c);
    void (*free)(aq_conn *c);
} aq_talk;

struct aq_conn {
    aq_net *net;
    aq_conn *next; /* in the order in which they came */
    int fd;
    uint32_t events; /* that epoll watches for */
    uint64_t flow;
    aq_line_end client, server;
    const char *service; /* of its port; NULL: of no row */
    const aq_talk *talk; /* NULL until the first bytes were seen */
    void *state;         /* of the talk */
    struct aq_tls *tls;  /* NULL: in the clear */
    bool starttls;       /* what comes next is TLS */
    bool greeted;        /* we spoke first */
    bool ended;          /* the client will say no more */
    bool told;           /* and the talk knows */
    bool closing;        /* close once everything is out */
    bool dead;           /* close now */
    const char *why;     /* it was closed, for its record */
    aq_buf in;           /* in the clear, not yet used */
    aq_buf out;          /* for the socket, from `sent` on */
    size_t sent;
    size_t held;            /* of its buffers, as counted last */
    uint64_t read, written; /* in the clear */
    uint64_t recorded;      /* bytes of it that are in records */
    aq_hash *digest;        /* of all that was read, in the clear */
    aq_block said;          /* of a stream that has no reader */
    int64_t deadline_ns;    /* when its silence ends it */
    int64_t due_ns;         /* not before then does it say anything: the way is long */
};

aq_conn *aq_conn_new(aq_net *net, int fd, const aq_line_end *client, const aq_line_end *server);
/* These bytes came, in whatever pieces: they are used as far as they can be. */
void aq_conn_hear(aq_conn *c, const void *data, size_t len);
/* Something may be possible: reads, talks, writes until nothing moves. */
void aq_conn_move(aq_conn *c, bool readable);
void aq_conn_say(aq_conn *c, const void *data, size_t len);
/* Says goodbye once everything is out; the reason goes into the record. */
void aq_conn_close(aq_conn *c, const char *why);
/* Drops it at once. */
void aq_conn_drop(aq_conn *c, const char *why);
void aq_conn_talk(aq_conn *c, const aq_talk *talk);
/* Is there something to be said that only the client's reading, or time, holds up? */
bool aq_conn_waits(const aq_conn *c);
void aq_conn_free(aq_conn *c);

/* ---- loop.c: the steps ---- */

struct aq_net {
    const aq_internet_world *world;
    const struct aq_rules *rules;
    struct aq_tls_maker *tls; /* NULL: no TLS in this world */
    int line, epoll, tide;
    int64_t now_ns;
    uint64_t moved, flows;
    aq_conn *first, *last;
    size_t open;
    size_t held;        /* by connections and their requests */
    int64_t latency_ns; /* of the way to and from the internet; 0: none */
    uint64_t records, recorded, dropped;
    bool failed; /* the line is gone */
    struct aq_socket {
        int fd;
        uint8_t protocol;
        uint16_t port;
    } sockets[AQ_NET_SOCKETS];
    size_t socket_count;
};

/* Takes the descriptors from AQ_LINE_SOCKETS on for what they are. */
int aq_net_open(aq_net *net, const aq_internet_world *world, aq_err *err);
/* Serves until the line ends; 0 then. */
int aq_net_serve(aq_net *net, aq_err *err);
void aq_net_datagrams(aq_net *net, const struct aq_socket *s);

/* ---- lock.c ---- */

int aq_net_lock(aq_line_hello *ret, aq_err *err);

/* ---- record.c: what was said ---- */

typedef struct aq_note {
    aq_line_message m;
} aq_note;

aq_note aq_note_of(const aq_conn *c, const char *op);
void aq_note_object(aq_note *n, const char *text, size_t len);
void aq_note_bytes(aq_note *n, const char *name, const void *data, size_t len);
void aq_note_text(aq_note *n, const char *name, const char *text); /* NULL: nothing is added */
void aq_note_number(aq_note *n, const char *name, int64_t number);
void aq_note_send(aq_net *net, aq_note *n);
/* Bytes that are said piece by piece, in records of AQ_EVENT_TEXT each: where they are cut depends
 * on the bytes alone, not on how they came. What is beyond a connection's bound is not recorded. */
void aq_block_add(aq_conn *c, aq_block *b, const char *op, const void *data, size_t len);
void aq_block_end(aq_conn *c, aq_block *b, const char *op); /* the rest */

/* ---- sniff.c: what the first bytes are ---- */

typedef enum aq_sniff {
    AQ_SNIFF_MORE, /* too few bytes to say */
    AQ_SNIFF_TLS,
    AQ_SNIFF_HTTP,
    AQ_SNIFF_HTTP2,
    AQ_SNIFF_OTHER,
} aq_sniff;

aq_sniff aq_sniff_of(const uint8_t *data, size_t len);

/* ---- tls.c, mint.c ---- */

struct aq_tls_maker *aq_tls_maker_new(const aq_internet_world *world, aq_err *err);
struct aq_tls *aq_tls_new(aq_conn *c);
/* Gives it bytes from the socket and moves what comes out of them: clear text to `in`, bytes for
 * the socket to `out`. Negative when the connection cannot go on. */
int aq_tls_input(aq_conn *c, const void *data, size_t len);
int aq_tls_output(aq_conn *c, const void *data, size_t len);
void aq_tls_bye(aq_conn *c);
bool aq_tls_ready(const struct aq_tls *t); /* the handshake is over */
bool aq_tls_is_http2(const struct aq_tls *t);
void aq_tls_free(struct aq_tls *t);

/* ---- talks ---- */

extern const aq_talk aq_talk_http, aq_talk_http2, aq_talk_dns, aq_talk_dialogue, aq_talk_sink,
    aq_talk_websocket;

/* ---- http.c, answer.c: requests and replies ---- */

typedef struct aq_header {
    const char *name, *value; /* names in lower case */
} aq_header;

typedef struct aq_ask {
    aq_arena *arena; /* all of it lives there */
    aq_conn *conn;
    const char *over; /* "http/1.1", "h2" */
    const char *method, *target;
    const char *path, *query; /* of the target: decoded path; "" without a query */
    const char *host; /* lower case, without port; the server's address when none was said */
    aq_header headers[AQ_NET_HEADERS];
    size_t header_count;
    const char *head; /* the headers as they came, for the record */
    size_t head_len;
    aq_buf body;       /* the first AQ_NET_BODY bytes */
    uint64_t body_len; /* of all */
    aq_hash *digest;   /* of all */
    aq_block rest;     /* what the request's own record cannot hold */
} aq_ask;

typedef struct aq_reply {
    int status;
    aq_header headers[24];
    size_t header_count;
    aq_buf body;
    char served[AQ_SHA256_HEX]; /* digest of the ware that it hands out; "": none */
    bool stream;                /* a body whose length is not told ahead */
    bool close;
} aq_reply;

aq_ask *aq_ask_new(aq_conn *c, const char *over);
/* Splits the target; host and headers must be there. */
void aq_ask_parse(aq_ask *q);
const char *aq_ask_header(const aq_ask *q, const char *name); /* NULL: none */
void aq_ask_body(aq_ask *q, const void *data, size_t len);
/* The value of `name` in the query, decoded into the arena; NULL: none. */
const char *aq_ask_query(const aq_ask *q, const char *name);
void aq_ask_free(aq_ask *q);

void aq_reply_header(aq_reply *r, const char *name, const char *value);
void aq_reply_free(aq_reply *r);
const char *aq_status_text(int status);
/* The answer to a request, and its record. */
void aq_answer(aq_ask *q, aq_reply *r);

/* deliver.c: answers conditions, ranges and encodings that the client named. `tag`: of the body, or
 * NULL. */
void aq_deliver(const aq_ask *q, aq_reply *r, const char *tag);

/* Answers that are made by code; `do NAME` in a pack. False: it has none, the next rule is tried.
 */
typedef struct aq_special {
    const char *name;
    bool (*answer)(aq_ask *q, aq_reply *r);
} aq_special;
extern const aq_special aq_specials[]; /* ends with a NULL name */

/* ---- dns.c ---- */

typedef struct aq_dns_asked {
    char name[1024]; /* as text, dots between labels, odd bytes escaped; "." for the root */
    uint16_t type, class_;
    uint8_t code;     /* of the answer */
    uint16_t answers; /* in it */
} aq_dns_asked;

enum { AQ_DNS_UDP = 512, AQ_DNS_TCP = 65535 };
/* The answer to one message: 0, or negative when it deserves none. `max` is what the transport
 * carries; EDNS may raise that of UDP. */
int aq_dns_answer(const aq_internet_world *w, int64_t now_ns, const void *question, size_t len,
                  size_t max, aq_dns_asked *asked, aq_buf *out);
const char *aq_dns_type_name(uint16_t type, char buffer[static 16]);
uint16_t aq_dns_type_of(const char *name); /* 0: no type */
void aq_dns_note(aq_note *n, const aq_dns_asked *asked, const char *over);
/* The stable public address of a name. */
void aq_dns_address4(const aq_internet_world *w, const char *name, uint8_t ret[static 4]);
void aq_dns_address6(const aq_internet_world *w, const char *name, uint8_t ret[static 16]);
