/* What the first bytes of a message say: DNS questions, HTTP requests, names in TLS greetings.
 *
 * Pure functions over hostile bytes: bounded, without state, never reading beyond `len`. They
 * recognise; they do not judge. Slices point into the input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AQ_DNS_TEXT = 1024,   /* a name of 255 bytes, each written as \DDD at worst */
    AQ_DNS_QUESTIONS = 8, /* of one message; more is no query that any server answers */
};

typedef struct aq_dns_question {
    char name[AQ_DNS_TEXT]; /* as in a zone file, without the last dot; "." for the root */
    uint16_t type, class;
} aq_dns_question;

/* Question `index` of a query. 0, -ENOENT when there are fewer, -EBADMSG when it is no query. */
int aq_payload_dns(const void *data, size_t len, unsigned index, aq_dns_question *ret);

typedef struct aq_slice {
    const char *at;
    size_t len;
} aq_slice;

typedef struct aq_http_head {
    aq_slice method, target, host; /* host: empty when no Host line was seen */
} aq_http_head;

/* The head of an HTTP/1 request, or of a part of one whose first line is whole. */
bool aq_payload_http(const void *data, size_t len, aq_http_head *ret);

typedef struct aq_tls_hello {
    aq_slice name; /* server_name; empty when there is none */
    aq_slice alpn; /* the first protocol that it offers */
    bool cut;      /* the greeting is longer than what was given */
    bool hidden;   /* it has an encrypted inner greeting: the name may be a cover */
} aq_tls_hello;

/* A TLS ClientHello, or the head of one. */
bool aq_payload_tls(const void *data, size_t len, aq_tls_hello *ret);

/* ---- streams: what came so far may be a part only ---- */

typedef enum aq_part {
    AQ_PART_NO,   /* it is something else */
    AQ_PART_MORE, /* it could be, or is and goes on */
    AQ_PART_WHOLE
} aq_part;

/* The head of an HTTP/1 request. WHOLE: it ends at `*end`, and a body of `*body` bytes follows
 * (UINT64_MAX: nobody can say before it is there). */
aq_part aq_payload_http_part(const void *data, size_t len, size_t *end, uint64_t *body);

/* A TLS ClientHello in one or many records. `joined` gets it as one record, or what is there of it;
 * WHOLE: it ends at `*end`. */
aq_part aq_payload_tls_part(const void *data, size_t len, uint8_t *joined, size_t cap,
                            size_t *joined_len, size_t *end);
