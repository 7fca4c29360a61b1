/* How the three readers of base/doc.h make their tree: one bounded builder, so that depth, count
 * and duplicate keys are judged the same way, before memory grows. Private to the doc files. */
#pragma once

#include "base/doc.h"

typedef struct aq_build {
    aq_arena *arena;
    const char *name; /* what messages call the input */
    aq_err *err;
    aq_node *root;
    size_t nodes, depth;
    struct {
        aq_node *node, *last;
    } level[AQ_DOC_DEPTH];
    struct {
        const aq_node *map, *member;
    } * keys; /* open addressing; every key of every map */
    size_t key_count, key_cap;
} aq_build;

/* What a scalar is; `text` need not be terminated and is copied. */
typedef struct aq_build_value {
    aq_node_kind kind;
    const char *text;
    size_t len;
    int64_t number;
} aq_build_value;

int aq_build_fail(aq_build *b, uint32_t line, uint32_t column, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* `key` is NULL for the root and for items of a list; it must live as long as the tree. */
int aq_build_scalar(aq_build *b, const char *key, uint32_t line, aq_build_value value);
int aq_build_open(aq_build *b, const char *key, uint32_t line, aq_node_kind kind);
void aq_build_close(aq_build *b);
void aq_build_end(aq_build *b); /* frees the helpers; the tree stays in the arena */

/* Checks size, UTF-8 and NULs and steps over a byte order mark. */
int aq_build_begin(aq_build *b, const char **text, size_t *len);
