/* One tree for YAML, JSON and TOML: the bounded builder and the questions one asks of a node. */
#include "base/doc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc_build.h"
#include "base/text.h"

int aq_build_fail(aq_build *b, uint32_t line, uint32_t column, const char *fmt, ...)
{
    char reason[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(reason, sizeof reason, fmt, ap);
    va_end(ap);
    if (column)
        return aq_fail(b->err, -EBADMSG, "%s:%u:%u: %s", b->name, line, column, reason);
    return aq_fail(b->err, -EBADMSG, "%s:%u: %s", b->name, line, reason);
}

int aq_build_begin(aq_build *b, const char **text, size_t *len)
{
    const unsigned char *p, *end;
    uint32_t line = 1;

    if (*len > AQ_DOC_BYTES)
        return aq_fail(b->err, -E2BIG, "%s: larger than %d bytes", b->name, AQ_DOC_BYTES);
    if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
        *text += 3;
        *len -= 3;
    }
    p = (const unsigned char *)*text;
    end = p + *len;
    while (p < end) {
        int32_t c = aq_utf8_next(&p, end);
        if (c < 0)
            return aq_build_fail(b, line, 0, "not valid UTF-8");
        if (c == 0)
            return aq_build_fail(b, line, 0, "holds a NUL byte");
        if (c == '\n')
            line++;
    }
    return 0;
}

/* FNV-1a over the key, mixed with the map it belongs to. */
static size_t hash_key(const aq_node *map, const char *key)
{
    uint64_t h = 0xcbf29ce484222325u ^ (uintptr_t)map >> 4;

    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 0x100000001b3u;
    return (size_t)(h ^ h >> 29);
}

static void grow_keys(aq_build *b)
{
    __auto_type old = b->keys;
    size_t old_cap = b->key_cap;

    b->key_cap = old_cap ? 2 * old_cap : 64;
    b->keys = aq_alloc(b->key_cap * sizeof *b->keys);
    for (size_t i = 0; i < old_cap; i++) {
        size_t at;
        if (!old[i].map)
            continue;
        at = hash_key(old[i].map, old[i].member->key) & (b->key_cap - 1);
        while (b->keys[at].map)
            at = (at + 1) & (b->key_cap - 1);
        b->keys[at] = old[i];
    }
    free(old);
}

/* NULL when the key is new, else the member that has it already. */
static const aq_node *remember_key(aq_build *b, const aq_node *map, const aq_node *member)
{
    size_t at;

    if (2 * (b->key_count + 1) > b->key_cap)
        grow_keys(b);
    at = hash_key(map, member->key) & (b->key_cap - 1);
    for (; b->keys[at].map; at = (at + 1) & (b->key_cap - 1))
        if (b->keys[at].map == map && strcmp(b->keys[at].member->key, member->key) == 0)
            return b->keys[at].member;
    b->keys[at].map = map;
    b->keys[at].member = member;
    b->key_count++;
    return NULL;
}

static int append(aq_build *b, const char *key, uint32_t line, aq_node_kind kind, aq_node **ret)
{
    aq_node *node, *parent = b->depth ? b->level[b->depth - 1].node : NULL;
    const aq_node *twin;

    if (++b->nodes > AQ_DOC_NODES)
        return aq_build_fail(b, line, 0, "holds more than %d values", AQ_DOC_NODES);
    node = aq_arena_alloc(b->arena, sizeof *node);
    *node = (aq_node){.kind = kind, .line = line, .key = key};
    if (!parent) {
        b->root = node;
    } else {
        if (parent->kind == AQ_NODE_MAP && (twin = remember_key(b, parent, node)))
            return aq_build_fail(b, line, 0, "the key \"%.60s\" is here and on line %u", key,
                                 twin->line);
        if (b->level[b->depth - 1].last)
            b->level[b->depth - 1].last->next = node;
        else
            parent->first = node;
        b->level[b->depth - 1].last = node;
        parent->count++;
    }
    *ret = node;
    return 0;
}

int aq_build_scalar(aq_build *b, const char *key, uint32_t line, aq_build_value value)
{
    aq_node *node = NULL;
    int r;

    if (memchr(value.text, '\0', value.len))
        return aq_build_fail(b, line, 0, "a text holds a NUL character");
    if (!aq_utf8_valid(value.text, value.len))
        return aq_build_fail(b, line, 0, "a text is not valid Unicode");
    r = append(b, key, line, value.kind, &node);
    if (r < 0)
        return r;
    node->text = aq_arena_strndup(b->arena, value.text, value.len);
    node->number = value.number;
    return 0;
}

int aq_build_open(aq_build *b, const char *key, uint32_t line, aq_node_kind kind)
{
    aq_node *node = NULL;
    int r;

    if (b->depth == AQ_DOC_DEPTH)
        return aq_build_fail(b, line, 0, "nested deeper than %d levels", AQ_DOC_DEPTH);
    r = append(b, key, line, kind, &node);
    if (r < 0)
        return r;
    b->level[b->depth].node = node;
    b->level[b->depth].last = NULL;
    b->depth++;
    return 0;
}

void aq_build_close(aq_build *b)
{
    b->depth--;
}

void aq_build_end(aq_build *b)
{
    free(b->keys);
    b->keys = NULL;
}

const aq_node *aq_node_get(const aq_node *map, const char *key)
{
    if (!map || map->kind != AQ_NODE_MAP)
        return NULL;
    for (const aq_node *n = map->first; n; n = n->next)
        if (strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

const aq_node *aq_node_path(const aq_node *map, const char *dotted)
{
    const aq_node *at = map;

    while (at && *dotted) {
        size_t len = strcspn(dotted, ".");
        const aq_node *n = at->kind == AQ_NODE_MAP ? at->first : NULL;
        while (n && !(strncmp(n->key, dotted, len) == 0 && n->key[len] == '\0'))
            n = n->next;
        at = n;
        dotted += len + (dotted[len] == '.');
    }
    return at;
}

const char *aq_node_str(const aq_node *node)
{
    return node && node->kind == AQ_NODE_STR ? node->text : NULL;
}

const char *aq_node_get_str(const aq_node *map, const char *key)
{
    return aq_node_str(aq_node_get(map, key));
}

bool aq_node_truth(const aq_node *node, bool fallback)
{
    return node && node->kind == AQ_NODE_BOOL ? node->number != 0 : fallback;
}

const char *aq_node_kind_name(aq_node_kind kind)
{
    static const char *const names[] = {
        [AQ_NODE_NULL] = "nothing", [AQ_NODE_BOOL] = "true or false",
        [AQ_NODE_INT] = "a number", [AQ_NODE_REAL] = "a number with a fraction",
        [AQ_NODE_STR] = "text",     [AQ_NODE_LIST] = "a list",
        [AQ_NODE_MAP] = "a table",
    };

    return names[kind];
}
