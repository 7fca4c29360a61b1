/* Comparison of two runs; see compare.h.
 *
 * Acts are compared by a hash of their lines: 64 bits of SHA-256 are enough to line sequences up,
 * and whether the runs are equal is said by the whole digests. Lines themselves are made only for
 * the differences that are shown, in a second reading. */
#include "observe/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "model/limit.h"
#include "model/summary.h"
#include "observe/align.h"

static const char *const names[] = {
#define AQ_DIFFERENCE(id, name, what) [AQ_DIFFERENCE_##id] = name,
#include "observe/differences.def"
#undef AQ_DIFFERENCE
};

const char *aq_difference_name(aq_difference_kind k)
{
    return names[k];
}

/* ---- one side, read once ---- */

typedef struct sequence {
    const char *name;
    uint64_t *hash, *seq;
    size_t count, cap;
} sequence;

/* Something that the run left. */
typedef struct remain {
    aq_difference_kind kind;
    const char *name, *line;
} remain;

typedef struct side {
    aq_arena *arena;
    const aq_compared *from;
    aq_canon *canon;
    aq_summary summary;
    sequence *threads; /* by index of the canonical form, later by name */
    size_t count, cap;
    remain *remains;
    size_t remain_count, remain_cap;
} side;

static void *room(void *items, size_t size, size_t count, size_t *cap)
{
    if (count < *cap)
        return items;
    *cap = *cap ? 2 * *cap : 64;
    return aq_realloc(items, *cap, size);
}

static void take_line(const aq_canon_line *l, void *arg)
{
    side *s = arg;
    aq_digest d = aq_sha256(l->text, l->len);
    sequence *t;

    while (s->count <= l->thread) {
        s->threads = room(s->threads, sizeof *s->threads, s->count, &s->cap);
        s->threads[s->count++] = (sequence){0};
    }
    t = &s->threads[l->thread];
    if (t->count == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 16;
        t->hash = aq_realloc(t->hash, t->cap, sizeof *t->hash);
        t->seq = aq_realloc(t->seq, t->cap, sizeof *t->seq);
    }
    memcpy(&t->hash[t->count], d.b, sizeof *t->hash);
    t->seq[t->count++] = l->seq;
}

static void take_event(const aq_event *e, void *arg)
{
    side *s = arg;

    aq_summary_event(e, &s->summary);
    aq_canon_event(s->canon, e);
}

static void take_remain(aq_canon_part part, const char *name, const char *line, size_t len,
                        void *arg)
{
    static const aq_difference_kind kinds[] = {[AQ_CANON_DROPPED] = AQ_DIFFERENCE_COUNTS,
                                               [AQ_CANON_EXIT] = AQ_DIFFERENCE_EXIT,
                                               [AQ_CANON_OUTPUT] = AQ_DIFFERENCE_OUTPUT,
                                               [AQ_CANON_CHANGE] = AQ_DIFFERENCE_CHANGE,
                                               [AQ_CANON_REACHED] = AQ_DIFFERENCE_REACHED};
    side *s = arg;

    s->remains = room(s->remains, sizeof *s->remains, s->remain_count, &s->remain_cap);
    s->remains[s->remain_count++] = (remain){kinds[part], aq_arena_strdup(s->arena, name),
                                             aq_arena_strndup(s->arena, line, len)};
}

/* Why not all that was done is shown; NULL when it is. */
static const char *incomplete(const side *s, const aq_observation *o)
{
    if (o->exit_kind == AQ_EXIT_FAILURE)
        return "a failure of ours ended it";
    if (o->exit_kind == AQ_EXIT_BUDGET)
        return "a limit ended it";
    if (o->dropped)
        return "a flood: events were only counted";
    if (!aq_observation_whole(o))
        return "a place was left unread";
    if (s->summary.unnamed)
        return "a flood: acts were only counted";
    if (s->summary.unseen)
        return "not all of it could be seen";
    return aq_canon_unborn(s->canon) ? "the birth of a thread is not shown" : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const sequence *)a)->name, ((const sequence *)b)->name);
}

static int by_remain(const void *a, const void *b)
{
    const remain *x = a, *y = b;

    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : strcmp(x->name, y->name);
}

static int read_side(side *s, aq_run_side *ret, aq_err *err)
{
    aq_observation *o = &ret->observation;
    int r;

    aq_summary_begin(&s->summary, s->arena);
    s->canon = aq_canon_new(s->from->marks, take_line, s);
    r = aq_observation_read(s->arena, s->from->data, s->from->len, take_event, s, o, err);
    if (r < 0)
        return r;
    ret->digest = aq_canon_end(s->canon, o);
    ret->incomplete = incomplete(s, o);
    ret->repeatable =
        s->summary.preempted.count == 0 &&
        !(o->exit_kind == AQ_EXIT_BUDGET && aq_limit_by_clock((aq_limit)o->exit_value));
    ret->threads = aq_canon_threads(s->canon);
    while (s->count < ret->threads) { /* born, and did nothing that is told */
        s->threads = room(s->threads, sizeof *s->threads, s->count, &s->cap);
        s->threads[s->count++] = (sequence){0};
    }
    for (size_t i = 0; i < s->count; i++)
        s->threads[i].name = aq_arena_strdup(s->arena, aq_canon_thread_name(s->canon, i));
    qsort(s->threads, s->count, sizeof *s->threads, by_name);
    aq_canon_remains(s->from->marks, o, take_remain, s);
    qsort(s->remains, s->remain_count, sizeof *s->remains, by_remain);
    return 0;
}

static void free_side(side *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->threads[i].hash);
        free(s->threads[i].seq);
    }
    free(s->threads);
    free(s->remains);
    aq_canon_free(s->canon);
}

/* ---- differences ---- */

static aq_difference *add(aq_comparison *c, aq_difference d)
{
    if (c->count == AQ_COMPARE_ROWS) {
        c->more++;
        return NULL;
    }
    c->rows[c->count] = d;
    return &c->rows[c->count++];
}

typedef struct pair {
    aq_comparison *out;
    const sequence *of[2];
    size_t equal; /* acts before the first difference */
    bool parted;
} pair;

/* An act of side 0 at i and one of side 1 at k, or one of them only (SIZE_MAX: none). */
static void take_step(size_t i, size_t k, void *arg)
{
    pair *p = arg;
    aq_difference d = {.kind = AQ_DIFFERENCE_ACT, .where = p->of[0]->name, .first = !p->parted};

    d.seq[0] = i == SIZE_MAX ? UINT64_MAX : p->of[0]->seq[i];
    d.seq[1] = k == SIZE_MAX ? UINT64_MAX : p->of[1]->seq[k];
    if (!p->parted)
        d.count[0] = d.count[1] = p->equal;
    p->parted = true;
    add(p->out, d);
}

static void compare_threads(aq_comparison *c, const sequence *x, const sequence *y)
{
    pair p = {.out = c, .of = {x, y}};
    size_t least = x->count < y->count ? x->count : y->count;

    while (p.equal < least && x->hash[p.equal] == y->hash[p.equal])
        p.equal++;
    if (p.equal == x->count && p.equal == y->count)
        return;
    if (aq_align(x->hash, x->count, y->hash, y->count, take_step, &p) < 0)
        c->coarse++;
}

static void only_one(aq_comparison *c, const sequence *t, int which)
{
    aq_difference d = {.kind = AQ_DIFFERENCE_THREAD, .where = t->name, .first = true};

    d.seq[0] = d.seq[1] = UINT64_MAX;
    if (t->count)
        d.seq[which] = t->seq[0];
    d.count[which] = t->count;
    add(c, d);
}

static void compare_all(aq_comparison *c, const side s[2])
{
    size_t i = 0, k = 0;

    while (i < s[0].count || k < s[1].count) {
        int order = i == s[0].count   ? 1
                    : k == s[1].count ? -1
                                      : strcmp(s[0].threads[i].name, s[1].threads[k].name);

        if (order < 0)
            only_one(c, &s[0].threads[i++], 0);
        else if (order > 0)
            only_one(c, &s[1].threads[k++], 1);
        else
            compare_threads(c, &s[0].threads[i++], &s[1].threads[k++]);
    }
}

static void compare_remains(aq_comparison *c, const side s[2])
{
    size_t i = 0, k = 0;

    while (i < s[0].remain_count || k < s[1].remain_count) {
        const remain *x = &s[0].remains[i], *y = &s[1].remains[k];
        int order = i == s[0].remain_count ? 1 : k == s[1].remain_count ? -1 : by_remain(x, y);
        aq_difference d = {.kind = order <= 0 ? x->kind : y->kind,
                           .where = order <= 0 ? x->name : y->name,
                           .seq = {UINT64_MAX, UINT64_MAX},
                           .first = true};

        if (order <= 0)
            d.line[0] = x->line, i++;
        if (order >= 0)
            d.line[1] = y->line, k++;
        if (order != 0 || strcmp(x->line, y->line) != 0)
            add(c, d);
    }
}

/* ---- the lines that are shown, in a second reading ---- */

typedef struct wanted {
    uint64_t seq;
    const char **into;
} wanted;

typedef struct second {
    aq_arena *arena;
    aq_canon *canon;
    wanted rows[AQ_COMPARE_ROWS];
    size_t count, next;
} second;

static int by_seq(const void *a, const void *b)
{
    const wanted *x = a, *y = b;

    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

/* Lines come in the order of their numbers. */
static void keep_line(const aq_canon_line *l, void *arg)
{
    second *s = arg;

    while (s->next < s->count && s->rows[s->next].seq == l->seq)
        *s->rows[s->next++].into = aq_arena_strndup(s->arena, l->text, l->len);
}

static void again(const aq_event *e, void *arg)
{
    second *s = arg;

    aq_canon_event(s->canon, e);
}

static int fetch_lines(aq_arena *a, const aq_compared *from, aq_comparison *c, int which,
                       aq_err *err)
{
    second s = {.arena = a};
    aq_auto_arena scratch = aq_arena_new();
    aq_observation o;
    int r;

    for (size_t i = 0; i < c->count; i++)
        if (c->rows[i].seq[which] != UINT64_MAX)
            s.rows[s.count++] = (wanted){c->rows[i].seq[which], &c->rows[i].line[which]};
    if (!s.count)
        return 0;
    qsort(s.rows, s.count, sizeof *s.rows, by_seq);
    s.canon = aq_canon_new(from->marks, keep_line, &s);
    r = aq_observation_read(scratch, from->data, from->len, again, &s, &o, err);
    aq_canon_free(s.canon);
    return r;
}

int aq_compare(aq_arena *a, const aq_compared sides[2], aq_comparison *ret, aq_err *err)
{
    side s[2] = {{.arena = a, .from = &sides[0]}, {.arena = a, .from = &sides[1]}};
    aq_comparison c = {.rows = aq_arena_alloc(a, AQ_COMPARE_ROWS * sizeof *c.rows)};
    int r = read_side(&s[0], &c.side[0], err);

    if (r == 0)
        r = read_side(&s[1], &c.side[1], err);
    if (r == 0) {
        c.equal = aq_digest_equal(&c.side[0].digest, &c.side[1].digest);
        if (!c.equal) {
            compare_all(&c, s);
            compare_remains(&c, s);
        }
    }
    free_side(&s[0]);
    free_side(&s[1]);
    for (int i = 0; r == 0 && i < 2; i++)
        r = fetch_lines(a, &sides[i], &c, i, err);
    if (r == 0)
        *ret = c;
    return r;
}
