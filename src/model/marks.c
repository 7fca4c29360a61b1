/* Values replaced by names; see marks.h. Where a value may begin is told by a table over its first
 * two bytes, so that bytes without any pass at nearly the speed of memory. */
#include "model/marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUT = 4, PAIRS = 1 << 16, NAME = 160 };

typedef struct row {
    aq_mark mark;
    uint32_t next; /* the next shorter one of the same first byte; from 1 */
} row;

struct aq_marks {
    row *rows; /* the longest first */
    size_t count, longest;
    uint32_t first[256];         /* row from 1 */
    uint64_t begins[PAIRS / 64]; /* one bit each for two bytes */
};

/* Where what has been passed goes. */
typedef struct sink {
    void (*put)(void *arg, const char *bytes, size_t len);
    void *arg;
} sink;

static int by_length(const void *a, const void *b)
{
    const row *x = a, *y = b;

    if (x->mark.len != y->mark.len)
        return x->mark.len < y->mark.len ? 1 : -1;
    return strcmp(x->mark.name, y->mark.name);
}

static size_t pair(const char *p)
{
    return (size_t)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static void set(aq_marks *m, size_t i)
{
    m->begins[i / 64] |= UINT64_C(1) << i % 64;
}

static void index_row(aq_marks *m, uint32_t i)
{
    const aq_mark *k = &m->rows[i].mark;
    unsigned char begin = (unsigned char)*k->value;

    m->rows[i].next = m->first[begin];
    m->first[begin] = i + 1;
    if (k->len > 1) {
        set(m, pair(k->value));
        return;
    }
    for (size_t second = 0; second < 256; second++)
        set(m, (size_t)begin << 8 | second);
}

const aq_marks *aq_marks_new(aq_arena *a, const aq_mark *rows, size_t count)
{
    static const aq_mark own = {"{", "{decoy:", 7};
    aq_marks *m = aq_arena_alloc(a, sizeof *m);

    m->rows = aq_arena_alloc(a, (count + 1) * sizeof *m->rows);
    m->rows[m->count++].mark = own;
    for (size_t i = 0; i < count; i++)
        if (rows[i].len > 0)
            m->rows[m->count++].mark = rows[i];
    qsort(m->rows, m->count, sizeof *m->rows, by_length);
    m->longest = m->rows[0].mark.len;
    for (size_t i = m->count; i-- > 0;)
        index_row(m, (uint32_t)i);
    return m;
}

/* The longest value that stands at `p`, or that begins there and is cut by the end. */
static const row *at_place(const aq_marks *m, const char *p, size_t left, bool cuts)
{
    for (uint32_t i = m->first[(unsigned char)*p]; i; i = m->rows[i - 1].next) {
        const row *r = &m->rows[i - 1];

        if (r->mark.len > left && (!cuts || left < CUT))
            continue;
        if (memcmp(r->mark.value, p, r->mark.len < left ? r->mark.len : left) == 0)
            return r;
    }
    return NULL;
}

/* The next place from `p` on where a value may begin; `end` when there is none. */
static const char *next_place(const aq_marks *m, const char *p, const char *end)
{
    while (p + 1 < end && !(m->begins[pair(p) / 64] >> pair(p) % 64 & 1))
        p++;
    return p + 1 < end || (p < end && m->first[(unsigned char)*p]) ? p : end;
}

static void say(const sink *to, const char *name, const char *rest)
{
    char text[NAME + 32];
    int n = snprintf(text, sizeof text, "{decoy:%.*s%s}", NAME, name, rest);

    to->put(to->arg, text, (size_t)n);
}

/* `at`: NULL when the text ends here, and nothing is cut by its end. What was passed since the last
 * value is returned. */
static size_t pass(const aq_marks *m, const char *p, size_t len, aq_mark_at *at, const sink *to)
{
    const char *from = p, *end = p + len;

    while ((p = next_place(m, p, end)) < end) {
        const row *r = at_place(m, p, (size_t)(end - p), at != NULL);
        char rest[16] = "";

        if (!r) {
            p++;
            continue;
        }
        if (p > from)
            to->put(to->arg, from, (size_t)(p - from));
        if (r->mark.len > (size_t)(end - p)) {
            *at = (aq_mark_at){.row = (uint32_t)(r - m->rows) + 1, .len = (uint32_t)(end - p)};
            snprintf(rest, sizeof rest, "/%u", at->len);
            p = end;
        } else {
            p += r->mark.len;
        }
        say(to, r->mark.name, rest);
        from = p;
    }
    if (end > from)
        to->put(to->arg, from, (size_t)(end - from));
    return (size_t)(end - from);
}

static void put_buf(void *buf, const char *bytes, size_t len)
{
    aq_buf_add(buf, bytes, len);
}

void aq_marks_replace(const aq_marks *m, const char *text, size_t len, bool cut, aq_buf *out)
{
    sink to = {put_buf, out};
    aq_mark_at at;

    if (m)
        pass(m, text, len, cut ? &at : NULL, &to);
    else
        aq_buf_add(out, text, len);
}

static void put_hash(void *hash, const char *bytes, size_t len)
{
    aq_hash_add(hash, bytes, len);
}

/* ---- in pieces ---- */

/* The longest value of which the tail is the begin, and these bytes are the rest or more of it. */
static const row *begun(const aq_marks *m, const char *tail, size_t k, const char *p, size_t len)
{
    for (uint32_t i = m->first[(unsigned char)*tail]; i; i = m->rows[i - 1].next) {
        const aq_mark *v = &m->rows[i - 1].mark;
        size_t rest = v->len > k ? v->len - k : 0;

        if (rest && (rest <= len || k + len >= CUT) && memcmp(v->value, tail, k) == 0 &&
            memcmp(v->value + k, p, rest < len ? rest : len) == 0)
            return &m->rows[i - 1];
    }
    return NULL;
}

/* Finds the value in which the piece before ended, if these bytes go on with it. */
static const row *unfinished(const aq_marks *m, aq_mark_at *at, const char *p, size_t len)
{
    const row *r = NULL;

    if (at->row)
        return begun(m, m->rows[at->row - 1].mark.value, at->len, p, len);
    for (uint32_t i = 0; i < at->len && !r; i++) {
        r = begun(m, at->tail + i, at->len - i, p, len);
        at->len -= r ? i : 0;
    }
    return r;
}

/* How many bytes of this piece belong to the value in which the one before ended. */
static size_t go_on(const aq_marks *m, aq_mark_at *at, const char *p, size_t len, const sink *to)
{
    const row *r = unfinished(m, at, p, len);
    size_t rest;

    if (!r) {
        at->len = at->row ? 0 : at->len;
        at->row = 0;
        return 0;
    }
    say(to, r->mark.name, "/");
    rest = r->mark.len - at->len;
    *at = len < rest
              ? (aq_mark_at){.row = (uint32_t)(r - m->rows) + 1, .len = at->len + (uint32_t)len}
              : (aq_mark_at){0};
    return len < rest ? len : rest;
}

/* The last bytes that were passed; `whole`: and nothing but them. */
static void keep_tail(aq_mark_at *at, const char *p, size_t len, bool whole)
{
    char all[2 * sizeof at->tail];
    size_t n = whole ? at->len : 0, more = len < sizeof at->tail ? len : sizeof at->tail;
    size_t drop;

    memcpy(all, at->tail, n);
    memcpy(all + n, p + len - more, more);
    n += more;
    drop = n > sizeof at->tail ? n - sizeof at->tail : 0;
    at->len = (uint32_t)(n - drop);
    memcpy(at->tail, all + drop, at->len);
}

void aq_marks_hash(const aq_marks *m, aq_mark_at *at, const void *data, size_t len, aq_hash *into)
{
    sink to = {put_hash, into};
    const char *p = data;
    size_t done, passed;

    if (!m || len == 0) {
        aq_hash_add(into, data, len);
        return;
    }
    done = go_on(m, at, p, len, &to);
    if (done == len)
        return;
    passed = pass(m, p + done, len - done, at, &to);
    if (!at->row)
        keep_tail(at, p + len - passed, passed, passed == len);
}
