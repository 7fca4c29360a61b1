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
