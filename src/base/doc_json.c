/* JSON: jansson judges and decodes, and a pass over the same text tells the line of each value.
 * The text was accepted by jansson when that pass runs, so it only needs to step over tokens. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/doc_build.h"
#include "base/json.h"

typedef struct scan {
    const char *p, *end;
    uint32_t line;
} scan;

static void skip_space(scan *s)
{
    for (; s->p < s->end && strchr(" \t\r\n", *s->p); s->p++)
        if (*s->p == '\n')
            s->line++;
}

/* A string, number or word at s->p; returns its length as written. */
static size_t skip_token(scan *s)
{
    const char *from = s->p;

    if (*s->p == '"') {
        s->p += aq_json_string_end(s->p, (size_t)(s->end - s->p), 0) + 1;
    } else {
        while (s->p < s->end && !strchr(" \t\r\n,:[]{}", *s->p))
            s->p++;
    }
    return (size_t)(s->p - from);
}

/* Steps over one ',' ':' or bracket and the space around it. */
static void skip_mark(scan *s)
{
    skip_space(s);
    s->p++;
    skip_space(s);
}

/* jansson would have made every value before one could count: so count first. */
static int check_size(aq_build *b, const char *text, size_t len)
{
    size_t depth = 0, nodes = 1;
    uint32_t line = 1;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\n') {
            line++;
        } else if (c == '"') {
            i = aq_json_string_end(text, len, i);
        } else if (c == '[' || c == '{') {
            nodes++;
            if (++depth > AQ_DOC_DEPTH)
                return aq_build_fail(b, line, 0, "nested deeper than %d levels", AQ_DOC_DEPTH);
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',' && ++nodes > AQ_DOC_NODES) {
            return aq_build_fail(b, line, 0, "holds more than %d values", AQ_DOC_NODES);
        }
    }
    return nodes > 2 * AQ_DOC_NODES
               ? aq_build_fail(b, line, 0, "holds more than %d values", AQ_DOC_NODES)
               : 0;
}

static int walk(aq_build *b, scan *s, const char *key, uint32_t line, json_t *value);

static int walk_object(aq_build *b, scan *s, json_t *object)
{
    const char *key;
    json_t *member;
    bool first = true;
    int r;

    json_object_foreach (object, key, member) {
        uint32_t line;
        if (!first)
            skip_mark(s);
        first = false;
        line = s->line;
        skip_token(s);
        skip_mark(s);
        r = walk(b, s, aq_arena_strdup(b->arena, key), line, member);
        if (r < 0)
            return r;
    }
    return 0;
}

static int walk_array(aq_build *b, scan *s, json_t *array)
{
    json_t *item;
    size_t i;
    int r;

    json_array_foreach (array, i, item) {
        if (i)
            skip_mark(s);
        r = walk(b, s, NULL, s->line, item);
        if (r < 0)
            return r;
    }
    return 0;
}

static aq_build_value scalar(const json_t *value, const char *from, size_t len)
{
    aq_build_value v = {.kind = AQ_NODE_NULL, .text = from, .len = len};

    if (json_is_string(value)) {
        v.kind = AQ_NODE_STR;
        v.text = json_string_value(value);
        v.len = json_string_length(value);
    } else if (json_is_boolean(value)) {
        v.kind = AQ_NODE_BOOL;
        v.number = json_is_true(value);
    } else if (json_is_integer(value)) {
        v.kind = AQ_NODE_INT;
        v.number = json_integer_value(value);
    } else if (json_is_real(value)) {
        v.kind = AQ_NODE_REAL;
    }
    return v;
}

static int walk(aq_build *b, scan *s, const char *key, uint32_t line, json_t *value)
{
    const char *from = s->p;
    bool object = json_is_object(value);
    int r;

    if (!object && !json_is_array(value))
        return aq_build_scalar(b, key, line, scalar(value, from, skip_token(s)));
    r = aq_build_open(b, key, line, object ? AQ_NODE_MAP : AQ_NODE_LIST);
    if (r < 0)
        return r;
    skip_mark(s);
    r = object ? walk_object(b, s, value) : walk_array(b, s, value);
    skip_space(s);
    s->p++;
    aq_build_close(b);
    return r;
}

int aq_doc_json(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err)
{
    aq_build b = {.arena = a, .name = name, .err = err};
    aq_auto_json json_t *value = NULL;
    int r = aq_build_begin(&b, &text, &len);

    if (r == 0)
        r = check_size(&b, text, len);
    if (r == 0)
        r = aq_json_parse(text, len, name, &value, err);
    if (r == 0) {
        scan s = {.p = text, .end = text + len, .line = 1};
        skip_space(&s);
        r = walk(&b, &s, NULL, s.line, value);
    }
    aq_build_end(&b);
    if (r == 0)
        *ret = b.root;
    return r;
}
