/* TOML: measures the text before doc_toml.cc hands it to the library. Brackets and dotted keys are
 * the two ways to nest; both cost the library stack, so both are bounded here first. */
#include <errno.h>
#include <string.h>

#include "base/doc_build.h"

int aq_doc_toml_parse(aq_build *b, const char *text, size_t len);

typedef struct measure {
    aq_build *b;
    const char *p, *end;
    uint32_t line;
    size_t depth, dots, nodes;
} measure;

static int skip_line_string(measure *m, char quote)
{
    for (m->p++; m->p < m->end && *m->p != quote; m->p++) {
        if (*m->p == '\n')
            break;
        if (*m->p == '\\' && quote == '"' && m->p + 1 < m->end && m->p[1] != '\n')
            m->p++;
    }
    if (m->p >= m->end || *m->p == '\n')
        return aq_build_fail(m->b, m->line, 0, "a text that does not end on its line");
    m->p++;
    return 0;
}

/* """…""" or '''…'''; up to two more quotes belong to the text before the closing three. */
static int skip_long_string(measure *m, char quote)
{
    const char close[3] = {quote, quote, quote};
    uint32_t from = m->line;

    for (m->p += 3; m->end - m->p >= 3; m->p++) {
        if (memcmp(m->p, close, 3) == 0) {
            m->p += 3;
            for (int more = 0; more < 2 && m->p < m->end && *m->p == quote; more++)
                m->p++;
            return 0;
        }
        if (*m->p == '\\' && quote == '"')
            m->p++;
        if (*m->p == '\n')
            m->line++;
    }
    return aq_build_fail(m->b, from, 0, "a text that does not end");
}

static int skip_string(measure *m)
{
    char quote = *m->p;

    if (m->end - m->p >= 3 && m->p[1] == quote && m->p[2] == quote)
        return skip_long_string(m, quote);
    return skip_line_string(m, quote);
}

/* One character outside texts and comments. */
static int weigh(measure *m, char c)
{
    switch (c) {
    case '\n':
        m->line++;
        m->dots = 0;
        break;
    case '.':
        m->nodes++;
        if (++m->dots >= AQ_DOC_DEPTH)
            return aq_build_fail(m->b, m->line, 0, "a key of more than %d parts", AQ_DOC_DEPTH);
        break;
    case '[':
    case '{':
        if (++m->depth > AQ_DOC_DEPTH)
            return aq_build_fail(m->b, m->line, 0, "nested deeper than %d levels", AQ_DOC_DEPTH);
        m->nodes++;
        m->dots = 0;
        break;
    case ']':
    case '}':
        m->depth -= m->depth > 0;
        m->dots = 0;
        break;
    case ',':
    case '=':
        m->nodes++;
        m->dots = 0;
        break;
    default:
        break;
    }
    if (m->nodes > 2 * AQ_DOC_NODES)
        return aq_build_fail(m->b, m->line, 0, "holds more than %d values", AQ_DOC_NODES);
    return 0;
}

static int check_size(aq_build *b, const char *text, size_t len)
{
    measure m = {.b = b, .p = text, .end = text + len, .line = 1};
    int r = 0;

    while (r == 0 && m.p < m.end) {
        if (*m.p == '"' || *m.p == '\'') {
            r = skip_string(&m);
        } else if (*m.p == '#') {
            while (m.p < m.end && *m.p != '\n')
                m.p++;
        } else {
            r = weigh(&m, *m.p);
            m.p++;
        }
    }
    return r;
}

int aq_doc_toml(aq_arena *a, const char *text, size_t len, const char *name, const aq_node **ret,
                aq_err *err)
{
    aq_build b = {.arena = a, .name = name, .err = err};
    int r = aq_build_begin(&b, &text, &len);

    if (r == 0)
        r = check_size(&b, text, len);
    if (r == 0)
        r = aq_doc_toml_parse(&b, text, len);
    aq_build_end(&b);
    if (r == 0)
        *ret = b.root;
    return r;
}
