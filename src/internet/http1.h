/* The grammar of HTTP/1: heads and chunks, read strictly and without a copy of what is not whole
 * yet. Private to the room and its tests. */
#pragma once

#include "internet/internal.h"

typedef struct aq_http1_head {
    size_t len;    /* of the head, with its empty line */
    int minor;     /* HTTP/1.minor */
    uint64_t body; /* length that was told */
    bool chunked, close, expects, upgrade;
} aq_http1_head;

/* Reads a request's head into `q`. 1: whole; 0: more is needed; else the negative of the status
 * that the fault deserves. */
int aq_http1_head_read(aq_ask *q, const char *data, size_t len, aq_http1_head *ret);

/* The body in chunks, piece by piece. */
typedef struct aq_http1_chunks {
    enum { AQ_CHUNK_SIZE, AQ_CHUNK_DATA, AQ_CHUNK_END, AQ_CHUNK_TRAILER, AQ_CHUNK_DONE } at;
    uint64_t left;
    size_t trailers;
} aq_http1_chunks;
/* Takes what it can: the bytes used, with the data among them in `*piece`, or -400. */
ssize_t aq_http1_chunk(aq_http1_chunks *c, const char *data, size_t len, const char **piece,
                       size_t *piece_len);
