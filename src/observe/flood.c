/* Floods: the same act over and over is counted instead of written down.
 *
 * A process keeps one small table of (kind, op, object) → how often. Up to the op's limit every act
 * is an event; further ones are counted, and at the end of the process one event of the same kind
 * with the op "repeat" says of each how many there were in all. Two more bounds keep a flood of
 * ever new objects from pushing out the rest: events of one op in one process, and in the whole
 * world; what failed and what succeeded have bounds of their own, since nothing is as cheap as
 * failing. Acts beyond these have no event that shows them: "unnamed" says how many, and the record
 * is not whole. The recorder's own limit is behind all that. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "observe/decode.h"

enum {
    FIRST_SLOTS = 64,
    MOST_SLOTS = 4096,     /* of one process */
    WORLD_SLOTS = 1 << 17, /* of all together */
    OP_LIMIT = 10000,      /* events of one op in one process, and again as many failures */
    WORLD_LIMIT = 100000,  /* and in the world */
    DEFAULT_LIMIT = 32,
    OBJECT = 256, /* bytes of an object that a summary shows */
};

/* Acts that are no events. */
typedef struct lost {
    uint64_t count;
    uint64_t ns;       /* of those that slept, how long */
    aq_digest content; /* of those that gave something away, what it was: of all digests in a row */
    bool contains;
} lost;

typedef struct slot {
    uint64_t key; /* 0: free */
    uint32_t kept;
    uint32_t op;      /* index into aq_ops */
    uint32_t order;   /* of first sight: the key is random, what we say is not */
    const char *rule; /* that refused it, or NULL */
    lost left_out;
    char *object; /* owned; kept from the first one on that was left out */
    size_t object_len;
    bool object_cut;
} slot;

typedef struct aq_flood_table {
    slot *slots;
    uint32_t size, used;
    uint32_t kept[2][AQ_FLOOD_OPS]; /* events of an op: successes, failures */
    lost left_out[AQ_FLOOD_OPS];    /* that no slot counts */
} aq_flood_table;

typedef struct aq_flood {
    uint64_t secret;
    uint32_t slots;
    uint64_t kept[2][AQ_FLOOD_OPS];
    lost left_out[AQ_FLOOD_OPS]; /* summaries that were too many themselves */
} aq_flood;

static uint32_t op_index(const aq_event *e)
{
    for (uint32_t i = 0; i < aq_op_count; i++)
        if (aq_ops[i].kind == e->kind && strcmp(aq_ops[i].op, e->op) == 0)
            return i;
    aq_panic("an event with the op \"%s\", which ops.def does not know", e->op);
}

static uint64_t mixed(uint64_t h)
{
    h ^= h >> 30;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 27;
    h *= UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

static uint64_t hashed(uint64_t h, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return mixed(h);
}

/* A digest of what was given away (content.c). */
static bool is_content(const aq_event_arg *a)
{
    return a->bytes && (strcmp(a->name, "content") == 0 || strcmp(a->name, "environment") == 0);
}

/* An act is the same when op, object and arguments are, and the error if there was one: an open for
 * writing must not hide behind a thousand for reading, nor one success behind a thousand failures.
 * What was written does not make it another act; it is not lost, though, when the act is left out.
 * 64 bits of a keyed hash stand for it; the key is random, so that nobody can make two acts meet.
 */
static uint64_t key_of(uint64_t secret, uint32_t op, const aq_event *e)
{
    uint64_t h = mixed(secret ^ op) + (e->result < 0 ? (uint64_t)e->result : 0);

    h = hashed(h, e->object, e->object_len);
    for (uint8_t i = 0; i < e->arg_count; i++) {
        const aq_event_arg *a = &e->args[i];

        if (is_content(a))
            continue;
        h = mixed(h + (uint64_t)i + 1);
        h = a->bytes ? hashed(h, a->bytes, a->len) : mixed(h ^ (uint64_t)a->number);
    }
    return h ? h : 1;
}

/* The slot of this key, or the free one where it belongs; a quarter of the slots stays free. */
static slot *find(const aq_flood_table *f, uint64_t key)
{
    uint64_t i = key;

    while (f->slots[i & (f->size - 1)].key != key && f->slots[i & (f->size - 1)].key != 0)
        i++;
    return &f->slots[i & (f->size - 1)];
}

static bool full(const aq_flood_table *f)
{
    return f->used * 4 >= f->size * 3;
}

static bool grow(aq_flood *w, aq_flood_table *f)
{
    aq_flood_table bigger = *f;

    if (f->size * 2 > MOST_SLOTS || w->slots + f->size > WORLD_SLOTS)
        return false;
    bigger.size = f->size * 2;
    bigger.slots = aq_alloc(bigger.size * sizeof *bigger.slots);
    for (uint32_t i = 0; i < f->size; i++)
        if (f->slots[i].key)
            *find(&bigger, f->slots[i].key) = f->slots[i];
    w->slots += f->size;
    free(f->slots);
    *f = bigger;
    return true;
}

static slot *slot_for(aq_flood *w, aq_flood_table *f, uint64_t key, uint32_t op)
{
    slot *s = find(f, key);

    if (s->key != 0)
        return s;
    if (full(f) && !grow(w, f))
        return NULL;
    s = find(f, key);
    s->key = key;
    s->op = op;
    s->order = f->used++;
    return s;
}

static aq_flood_table *table_of(aq_tracer *t, aq_proc *p)
{
    if (!t->flood) {
        t->flood = aq_alloc(sizeof *t->flood);
        if (getrandom(&t->flood->secret, sizeof t->flood->secret, 0) < 0)
            aq_panic("no random number for the flood tables");
    }
    if (!p->flood) {
        p->flood = aq_alloc(sizeof *p->flood);
        p->flood->size = FIRST_SLOTS;
        p->flood->slots = aq_alloc(FIRST_SLOTS * sizeof *p->flood->slots);
        t->flood->slots += FIRST_SLOTS;
    }
    return p->flood;
}

/* How long it slept, where it did. */
static uint64_t slept(const aq_event *e)
{
    for (uint8_t i = 0; e->kind == AQ_EVENT_CLOCK && i < e->arg_count; i++)
        if (!e->args[i].bytes && strcmp(e->args[i].name, "ns") == 0)
            return (uint64_t)e->args[i].number;
    return 0;
}

static void leave_content(lost *l, const aq_event *e)
{
    for (uint8_t i = 0; i < e->arg_count; i++) {
        aq_auto_buf row = {0};

        if (!is_content(&e->args[i]))
            continue;
        aq_buf_add(&row, l->content.b, sizeof l->content.b);
        aq_buf_add(&row, e->args[i].bytes, e->args[i].len);
        l->content = aq_sha256(row.data, row.len);
        l->contains = true;
    }
}

static void leave_out(aq_flood_table *f, slot *s, uint32_t op, const aq_event *e)
{
    lost *l = s ? &s->left_out : &f->left_out[op];

    l->count++;
    l->ns += slept(e);
    leave_content(l, e);
    if (!s)
        return;
    s->rule = e->rule;
    if (!s->object && e->object) {
        s->object_len = e->object_len < OBJECT ? e->object_len : OBJECT;
        s->object_cut = e->object_cut || s->object_len < e->object_len;
        s->object = aq_alloc(s->object_len + 1);
        memcpy(s->object, e->object, s->object_len);
    }
}

bool aq_flood_passes(aq_tracer *t, aq_proc *p, const aq_event *e)
{
    aq_flood_table *f = table_of(t, p);
    uint32_t op = op_index(e), limit = aq_ops[op].limit ? aq_ops[op].limit : DEFAULT_LIMIT;
    slot *s = slot_for(t->flood, f, key_of(t->flood->secret, op, e), op);
    bool failed = e->result < 0;

    if ((s && s->kept >= limit) || f->kept[failed][op] >= OP_LIMIT ||
        t->flood->kept[failed][op] >= WORLD_LIMIT) {
        /* An object that is new when its op is full is not worth a name of its own. */
        leave_out(f, s && s->kept > 0 ? s : NULL, op, e);
        return false;
    }
    if (s)
        s->kept++;
    f->kept[failed][op]++;
    t->flood->kept[failed][op]++;
    return true;
}

/* ---- what was left out ---- */

static void say(aq_tracer *t, const aq_proc *p, uint32_t op, const slot *s, uint64_t kept, lost l)
{
    aq_event e = aq_event_of(aq_ops[op].kind, "repeat");
    uint32_t index = op_index(&e);
    char content[AQ_CONTENT];

    if (t->flood->kept[0][index] >= WORLD_LIMIT) {
        t->flood->left_out[op].count += l.count;
        t->flood->left_out[op].ns += l.ns;
        return;
    }
    t->flood->kept[0][index]++;
    e.time = t->clock;
    e.process = p ? p->ordinal : 0;
    if (s && s->object) {
        e.object = s->object;
        e.object_len = s->object_len;
        e.object_cut = s->object_cut;
    }
    e.rule = s ? s->rule : NULL;
    aq_event_text(&e, "op", aq_ops[op].op);
    aq_event_number(&e, "count", (int64_t)(kept + l.count));
    aq_event_number(&e, "left-out", (int64_t)l.count);
    if (l.ns)
        aq_event_number(&e, "ns", (int64_t)l.ns);
    if (!s)
        aq_event_number(&e, "unnamed", (int64_t)l.count);
    if (l.contains)
        aq_content_digest(&e, "content", &l.content, content);
    aq_recorder_event(t->rec, &e);
}

static int by_order(const void *a, const void *b)
{
    const slot *x = a, *y = b;

    if (!x->key || !y->key)
        return !x->key - !y->key;
    return x->order < y->order ? -1 : x->order > y->order;
}

void aq_flood_end(aq_tracer *t, aq_proc *p)
{
    aq_flood_table *f = p->flood;

    if (!f)
        return;
    qsort(f->slots, f->size, sizeof *f->slots, by_order);
    for (uint32_t i = 0; i < f->size; i++)
        if (f->slots[i].left_out.count)
            say(t, p, f->slots[i].op, &f->slots[i], f->slots[i].kept, f->slots[i].left_out);
    for (uint32_t op = 0; op < aq_op_count; op++)
        if (f->left_out[op].count)
            say(t, p, op, NULL, f->kept[0][op] + f->kept[1][op], f->left_out[op]);
    for (uint32_t i = 0; i < f->size; i++)
        free(f->slots[i].object);
    t->flood->slots -= f->size;
    free(f->slots);
    free(f);
    p->flood = NULL;
}

void aq_flood_close(aq_tracer *t)
{
    aq_flood *w = t->flood;

    if (!w)
        return;
    for (uint32_t op = 0; op < aq_op_count; op++) {
        lost left_out = w->left_out[op];

        if (left_out.count) {
            aq_event e = aq_event_of(aq_ops[op].kind, "repeat");

            w->kept[0][op_index(&e)] = 0; /* at most one for each op: always room */
            w->left_out[op] = (lost){0};
            say(t, NULL, op, NULL, w->kept[0][op] + w->kept[1][op], left_out);
        }
    }
    free(w);
    t->flood = NULL;
}
