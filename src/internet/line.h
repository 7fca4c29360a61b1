/* The line between the keeper of a world and its internet; docs/formats/internet.md is the
 * contract.
 *
 * One SOCK_SEQPACKET, one message a packet. The keeper asks for steps, the internet answers each
 * with records of what was said and a last DONE. Whoever reads a packet treats it as hostile: one
 * reader serves both sides, bounded, and what it accepts prints back to the same bytes. Strings of
 * a message that was read point into the packet. Nothing here needs TLS: the keeper links it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/event.h"
#include "model/wire.h"

enum {
    AQ_LINE_FD = 3,                                 /* of aquarium-internet */
    AQ_LINE_WORLD = 4,                              /* its world, a sealed memory file */
    AQ_LINE_SOCKETS = 5,                            /* listening sockets from here on */
    AQ_LINE_PACKET = AQ_WIRE_HEAD + AQ_WIRE_RECORD, /* bytes of one message */
    AQ_LINE_VERSION = 1,
};

typedef enum aq_line_type {
    AQ_LINE_HELLO = 'H',  /* internet: it is locked in and waits for the first step */
    AQ_LINE_STEP = 'S',   /* keeper: do all that can be done now */
    AQ_LINE_RECORD = 'R', /* internet: something was said */
    AQ_LINE_DONE = 'D',   /* internet: nothing moves any more */
    AQ_LINE_FAILED = 'F', /* internet: it gives up; a text */
} aq_line_type;

/* How the process is contained; what is 0 did not hold on this host. */
typedef struct aq_line_hello {
    uint8_t landlock;   /* ABI */
    uint8_t seccomp;    /* 1: only the calls of its list */
    uint8_t namespaces; /* 1: an empty network of its own, besides the sockets that it was given */
    uint8_t memory;     /* 1: its memory is bounded */
    uint32_t sockets;   /* that it listens on */
} aq_line_hello;

typedef struct aq_line_step {
    uint64_t number; /* one more than that of the step before; from 1 */
    int64_t now_ns;  /* virtual CLOCK_REALTIME */
} aq_line_step;

typedef struct aq_line_done {
    uint64_t number;  /* of the step that ends here */
    uint64_t moved;   /* connections taken, pieces read and written, closes: 0 means quiet */
    int64_t wake_ns;  /* when it wants to be stepped again, though nobody calls; 0: never */
    uint64_t open;    /* connections that are open now */
    uint64_t dropped; /* records left out so far, because of a bound */
} aq_line_done;

typedef struct aq_line_end {
    uint8_t address[16]; /* IPv6; an IPv4 address in its mapped form */
    uint16_t port;
} aq_line_end;

/* An act as the internet saw it; it has the shape of an event (model/event.h) of the kind network.
 * `client` is the end in the world: by its port the keeper finds the task whose socket it is. */
typedef struct aq_line_record {
    uint64_t flow;    /* ordinal of the connection or datagram, from 1 */
    uint8_t protocol; /* IPPROTO_TCP or IPPROTO_UDP */
    aq_line_end client, server;
    const char *op;     /* of records.def */
    const char *object; /* host, name or address that was meant; NULL when there is none */
    size_t object_len;
    bool object_cut;
    aq_event_arg args[AQ_EVENT_ARGS]; /* sorted by name */
    uint8_t arg_count;
    int64_t result;
} aq_line_record;

typedef struct aq_line_message {
    aq_line_type type;
    union {
        aq_line_hello hello;
        aq_line_step step;
        aq_line_record record;
        aq_line_done done;
        struct {
            const char *text;
        } failed;
    };
} aq_line_message;

/* Appends one packet. Texts beyond AQ_EVENT_TEXT are cut and marked; arguments may come in any
 * order. A name that is none, or two arguments of one name, is a programming error. */
void aq_line_write(const aq_line_message *m, aq_buf *out);
/* -EBADMSG with the reason for anything that aq_line_write would not have written. */
int aq_line_read(const void *packet, size_t len, aq_line_message *ret, aq_err *err);

/* One packet over the socket. Receiving: 1 with a message, 0 at the end of the line. The message
 * points into `packet`, which holds at least AQ_LINE_PACKET + 1 bytes. */
int aq_line_send(int fd, const aq_line_message *m, aq_err *err);
int aq_line_receive(int fd, void *packet, aq_line_message *ret, aq_err *err);

/* "192.0.2.1:443", "[2001:db8::1]:53". */
enum { AQ_LINE_END_TEXT = 56 };
const char *aq_line_end_text(const aq_line_end *e, char out[static AQ_LINE_END_TEXT]);

/* The acts that records name, for tables and pages. */
size_t aq_line_op_count(void);
const char *aq_line_op(size_t index);
