/* YAML by libfyaml's event interface: the tree is made here, event by event, so that a bomb is
 * refused while it is still small. No document is ever loaded or resolved by the library, and
 * anchors, aliases, merge keys and tags end the reading at the place where they stand. */
#include <errno.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc_build.h"
#include "base/text.h"

typedef struct yaml {
    aq_build build;
    const char *key[AQ_DOC_DEPTH + 1]; /* pending key of the map at that depth, NULL: key is next */
    uint32_t key_line[AQ_DOC_DEPTH + 1];
    bool done; /* one document was read */
} yaml;

static bool all_of(const char *s, size_t len, const char *set)
{
    return len > 0 && strspn(s, set) >= len;
}

static bool one_of(const char *s, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(s, *words) == 0)
            return true;
    return false;
}

/* [-+]? (\.[0-9]+ | [0-9]+(\.[0-9]*)?) ([eE][-+]?[0-9]+)? */
static bool is_real(const char *s)
{
    static const char *const special[] = {".inf",  ".Inf",  ".INF",  "-.inf", "-.Inf",
                                          "-.INF", "+.inf", "+.Inf", "+.INF", ".nan",
                                          ".NaN",  ".NAN",  NULL};
    size_t whole, part = 0;

    if (one_of(s, special))
        return true;
    s += *s == '-' || *s == '+';
    whole = strspn(s, "0123456789");
    s += whole;
    if (*s == '.') {
        part = strspn(s + 1, "0123456789");
        s += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        if (!all_of(s, strlen(s), "0123456789"))
            return false;
        s += strlen(s);
    }
    return *s == '\0';
}

static bool is_int(const char *s, int64_t *ret)
{
    const char *digits = s + (*s == '-' || *s == '+');
    int base = 10;
    char *end;

    if (s[0] == '0' && s[1] == 'o' && all_of(s + 2, strlen(s + 2), "01234567"))
        digits = s + 2, base = 8;
    else if (s[0] == '0' && s[1] == 'x' && all_of(s + 2, strlen(s + 2), "0123456789abcdefABCDEF"))
        digits = s + 2, base = 16;
    else if (!all_of(digits, strlen(digits), "0123456789"))
        return false;
    errno = 0;
    *ret = strtoll(base == 10 ? s : digits, &end, base);
    return errno == 0 && *end == '\0';
}

/* The 1.2 core schema; "no", "on" and "1.2.3" are text in it. */
static aq_build_value resolve(const char *text, size_t len)
{
    static const char *const null[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    aq_build_value v = {.kind = AQ_NODE_STR, .text = text, .len = len};
    char word[64];

    if (len >= sizeof word || memchr(text, '\0', len))
        return v;
    memcpy(word, text, len);
    word[len] = '\0';
    if (one_of(word, null)) {
        v.kind = AQ_NODE_NULL;
    } else if (one_of(word, yes) || one_of(word, no)) {
        v.kind = AQ_NODE_BOOL;
        v.number = one_of(word, yes);
    } else if (is_int(word, &v.number)) {
        v.kind = AQ_NODE_INT;
    } else if (is_real(word)) {
        v.kind = AQ_NODE_REAL; /* or an integer that no int64 holds */
        v.number = 0;
    }
    return v;
}

static uint32_t line_of(struct fy_event *e, uint32_t *column)
{
    const struct fy_mark *m = fy_event_start_mark(e);

    *column = m && m->column >= 0 ? (uint32_t)m->column + 1 : 0;
    return m && m->line >= 0 ? (uint32_t)m->line + 1 : 1;
}

/* Where a node belongs: the key that waits for it, if its parent is a map. */
static const char *take_key(yaml *y, uint32_t *line)
{
    aq_build *b = &y->build;
    const char *key;

    if (!b->depth || b->level[b->depth - 1].node->kind != AQ_NODE_MAP)
        return NULL;
    key = y->key[b->depth];
    y->key[b->depth] = NULL;
    *line = y->key_line[b->depth];
    return key;
}

static bool wants_key(const yaml *y)
{
    const aq_build *b = &y->build;

    return b->depth && b->level[b->depth - 1].node->kind == AQ_NODE_MAP && !y->key[b->depth];
}

static int check_properties(yaml *y, struct fy_event *e, uint32_t line, uint32_t column)
{
    struct fy_token *tag = fy_event_get_tag_token(e);
    const char *suffix;

    if (fy_event_get_anchor_token(e))
        return aq_build_fail(&y->build, line, column, "anchors are not allowed");
    if (!tag || e->type == FYET_ALIAS)
        return 0;
    suffix = fy_tag_token_suffix0(tag);
    if (e->type == FYET_SCALAR && suffix && strcmp(suffix, "str") == 0 &&
        strcmp(fy_tag_token_handle0(tag) ? fy_tag_token_handle0(tag) : "", "!!") == 0)
        return 0;
    return aq_build_fail(&y->build, line, column, "tags are not allowed");
}

static int take_scalar(yaml *y, struct fy_event *e, uint32_t line, uint32_t column)
{
    struct fy_token *token = fy_event_get_token(e);
    size_t len = 0;
    const char *text = token ? fy_token_get_text(token, &len) : "";
    bool plain =
        !fy_event_get_tag_token(e) && (!token || fy_token_scalar_style(token) == FYSS_PLAIN);
    aq_build *b = &y->build;
    aq_build_value value = {.kind = AQ_NODE_STR, .text = text, .len = len};
    const char *key;

    if (!text)
        return aq_build_fail(b, line, column, "a text that cannot be read");
    if (wants_key(y)) {
        if (plain && len == 2 && memcmp(text, "<<", 2) == 0)
            return aq_build_fail(b, line, column, "merge keys are not allowed");
        if (memchr(text, '\0', len) || !aq_utf8_valid(text, len))
            return aq_build_fail(b, line, column, "a key that is not plain text");
        y->key[b->depth] = aq_arena_strndup(b->arena, text, len);
        y->key_line[b->depth] = line;
        return 0;
    }
    if (plain)
        value = resolve(text, len);
    key = take_key(y, &line);
    return aq_build_scalar(b, key, line, value);
}

static int take_event(yaml *y, struct fy_event *e)
{
    aq_build *b = &y->build;
    uint32_t column, line = line_of(e, &column);
    const char *key;
    int r;

    if (e->type == FYET_ALIAS)
        return aq_build_fail(b, line, column, "aliases are not allowed");
    if (e->type == FYET_DOCUMENT_START && y->done)
        return aq_build_fail(b, line, column, "more than one document");
    if (e->type == FYET_DOCUMENT_END)
        y->done = true;
    if (e->type == FYET_MAPPING_END || e->type == FYET_SEQUENCE_END)
        aq_build_close(b);
    if (e->type != FYET_SCALAR && e->type != FYET_MAPPING_START && e->type != FYET_SEQUENCE_START)
        return 0;
    r = check_properties(y, e, line, column);
    if (r < 0)
        return r;
    if (e->type == FYET_SCALAR)
        return take_scalar(y, e, line, column);
    if (wants_key(y))
        return aq_build_fail(b, line, column, "a key must be text");
    key = take_key(y, &line);
    r = aq_build_open(b, key, line, e->type == FYET_MAPPING_START ? AQ_NODE_MAP : AQ_NODE_LIST);
    if (r == 0)
        y->key[b->depth] = NULL;
    return r;
}

static int syntax_error(yaml *y, struct fy_diag *diag)
{
    void *iterator = NULL;
    struct fy_diag_error *e = fy_diag_errors_iterate(diag, &iterator);

    if (!e || !e->msg)
        return aq_build_fail(&y->build, 1, 0, "not YAML");
    return aq_build_fail(&y->build, e->line > 0 ? (uint32_t)e->line : 1,
                         e->column > 0 ? (uint32_t)e->column : 0, "%.200s", e->msg);
}

static int read_events(yaml *y, struct fy_parser *parser, struct fy_diag *diag)
{
    struct fy_event *e;
    int r = 0;

    while (r == 0 && (e = fy_parser_parse(parser))) {
        bool end = e->type == FYET_STREAM_END;
        r = take_event(y, e);
        fy_parser_event_free(parser, e);
        if (end)
            return r;
    }
    return r < 0 ? r : syntax_error(y, diag);
}

static int read_text(yaml *y, const char *text, size_t len)
{
    struct fy_diag_cfg diag_cfg = {.level = FYET_ERROR, .module_mask = ~0u};
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    struct fy_parse_cfg cfg = {.search_path = "",
                               .flags = FYPCF_QUIET | FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE,
                               .diag = diag};
    struct fy_parser *parser;
    int r = -ENOMEM;

    if (!diag)
        aq_panic("out of memory");
    fy_diag_set_collect_errors(diag, true);
    parser = fy_parser_create(&cfg);
    if (!parser || fy_parser_set_string(parser, text, len) < 0)
        aq_fail(y->build.err, r, "%s: the YAML reader cannot start", y->build.name);
    else
        r = read_events(y, parser, diag);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return r;
}

int aq_doc_yaml(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err)
{
    yaml y = {.build = {.arena = a, .name = name, .err = err}};
    int r = aq_build_begin(&y.build, &text, &len);

    if (r == 0 && len > 0)
        r = read_text(&y, text, len);
    aq_build_end(&y.build);
    if (r < 0)
        return r;
    if (!y.build.root && (r = aq_build_scalar(&y.build, NULL, 1,
                                              (aq_build_value){.kind = AQ_NODE_NULL, .text = ""})))
        return r;
    *ret = y.build.root;
    return 0;
}
