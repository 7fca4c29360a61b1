/* One tree for what people write: YAML, JSON and TOML read into the same nodes, each with its line.
 *
 * All three readers refuse duplicate keys, aliases and anchors, custom tags, NULs, and more depth
 * or nodes than the limits below; the error names file, line and column. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    AQ_DOC_BYTES = 1 << 20, /* one manifest */
    AQ_DOC_DEPTH = 32,
    AQ_DOC_NODES = 20000,
};

typedef enum aq_node_kind {
    AQ_NODE_NULL,
    AQ_NODE_BOOL,
    AQ_NODE_INT,
    AQ_NODE_REAL,
    AQ_NODE_STR,
    AQ_NODE_LIST,
    AQ_NODE_MAP,
} aq_node_kind;

typedef struct aq_node {
    aq_node_kind kind;
    uint32_t line;    /* 1-based; of the key for a member of a map */
    const char *key;  /* NULL unless a member of a map */
    const char *text; /* STR: the value (UTF-8, no NUL). Other scalars: as written */
    int64_t number;   /* INT and BOOL */
    const struct aq_node *first, *next; /* children of LIST and MAP, in order */
    size_t count;                       /* of children */
} aq_node;

/* `name` is what messages call the input; `ret` lives in the arena. The JSON reader wants a
 * document that aq_json_parse accepts. The YAML reader resolves plain scalars by the 1.2 core
 * schema; an empty document gives a NULL node. */
int aq_doc_yaml(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err);
int aq_doc_json(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err);
int aq_doc_toml(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err);

/* All take NULL and give NULL or the fallback when the shape is another. */
const aq_node *aq_node_get(const aq_node *map, const char *key);
const aq_node *aq_node_path(const aq_node *map, const char *dotted); /* "tool.uv.name" */
const char *aq_node_str(const aq_node *node);                        /* STR only */
const char *aq_node_get_str(const aq_node *map, const char *key);
bool aq_node_truth(const aq_node *node, bool fallback);
const char *aq_node_kind_name(aq_node_kind kind); /* "a list", "text", … for messages */
