/* The canonical form; see canon.h. */
#include "observe/canon.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

#define SCHEMA "aquarium/canon/v2"

enum { NAME_MOST = 160, FIRST_SLOTS = 64 };

typedef enum noise_how { SPAN, DEADLINE } noise_how;

static const struct noise {
    aq_event_kind kind;
    const char *op, *field;
    noise_how how;
} noise[] = {
#define AQ_NOISE(kind, op, field, how, why) {AQ_EVENT_##kind, op, field, how},
#include "observe/noise.def"
#undef AQ_NOISE
};
_Static_assert(sizeof noise / sizeof *noise <= 10, "noise is at most ten single fields");

typedef struct thread {
    uint32_t process, number;
    const char *name;
    uint32_t births;
    uint64_t events;
    aq_digest digest; /* of what came so far: each line is hashed behind the digest before it */
} thread;

struct aq_canon {
    const aq_marks *marks;
    void (*each)(const aq_canon_line *line, void *arg);
    void *arg;
    aq_arena *arena; /* names */
    thread *threads;
    size_t count, cap;
    uint32_t *slots; /* index of a thread plus one; 0: free */
    size_t slot_count;
    uint64_t unborn;
    aq_hash *hash;
    aq_buf line, object, text[AQ_EVENT_ARGS];
};

/* ---- threads and their names ---- */

static size_t slot_of(const aq_canon *c, uint32_t process, uint32_t number)
{
    uint64_t h = ((uint64_t)process << 32 | number) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(h >> 20) & (c->slot_count - 1);

    while (c->slots[i]) {
        const thread *t = &c->threads[c->slots[i] - 1];

        if (t->process == process && t->number == number)
            break;
        i = (i + 1) & (c->slot_count - 1);
    }
    return i;
}

static thread *find(aq_canon *c, uint32_t process, uint32_t number)
{
    uint32_t at = c->slots[slot_of(c, process, number)];

    return at ? &c->threads[at - 1] : NULL;
}

static void grow(aq_canon *c)
{
    if (c->count == c->cap) {
        c->cap = c->cap ? 2 * c->cap : FIRST_SLOTS / 2;
        c->threads = aq_realloc(c->threads, c->cap, sizeof *c->threads);
    }
    if (c->count * 2 < c->slot_count)
        return;
    free(c->slots);
    c->slot_count = c->slot_count ? 2 * c->slot_count : FIRST_SLOTS;
    c->slots = aq_alloc(c->slot_count * sizeof *c->slots);
    for (size_t i = 0; i < c->count; i++)
        c->slots[slot_of(c, c->threads[i].process, c->threads[i].number)] = (uint32_t)i + 1;
}

static thread *add(aq_canon *c, uint32_t process, uint32_t number, const char *name)
{
    size_t at;

    grow(c);
    at = slot_of(c, process, number);
    c->threads[c->count] = (thread){.process = process, .number = number, .name = name};
    c->slots[at] = (uint32_t)++c->count;
    return &c->threads[c->count - 1];
}

/* A family tree can be as deep as a run is long; a long name is known by its digest. */
static const char *child_name(aq_canon *c, const char *parent, char what, uint32_t birth)
{
    aq_auto_buf name = {0};
    char hex[AQ_SHA256_HEX];
    aq_digest d;

    aq_buf_addf(&name, "%s.%c%u", parent, what, birth);
    if (name.len <= NAME_MOST)
        return aq_arena_strdup(c->arena, aq_buf_str(&name));
    d = aq_sha256(name.data, name.len);
    return aq_arena_printf(c->arena, "~%.32s", aq_digest_hex(&d, hex));
}

/* Whose act it is. Nobody acts before its birth, unless the record is not whole. */
static thread *thread_of(aq_canon *c, uint32_t process, uint32_t number)
{
    thread *t = find(c, process, number);

    if (t)
        return t;
    c->unborn++;
    return add(c, process, number, aq_arena_printf(c->arena, "unborn-%u-%u", process, number));
}

/* ---- one act ---- */

static aq_event_arg *arg_of(aq_event *e, const char *name)
{
    for (uint8_t i = 0; i < e->arg_count; i++)
        if (strcmp(e->args[i].name, name) == 0)
            return &e->args[i];
    return NULL;
}

static void drop(aq_event *e, const char *name)
{
    aq_event_arg *a = arg_of(e, name);

    if (a)
        memmove(a, a + 1, sizeof *a * (size_t)(&e->args[--e->arg_count] - a));
}

/* A number that names a process or a thread becomes its name. */
static void name_arg(aq_canon *c, aq_event_arg *a, uint32_t process, bool of_thread)
{
    const thread *t;

    if (!a || a->bytes || a->number < 0 || a->number > UINT32_MAX)
        return;
    t = of_thread ? find(c, process, (uint32_t)a->number) : find(c, (uint32_t)a->number, 0);
    a->bytes = t ? t->name : "unknown";
    a->len = strlen(a->bytes);
}

static bool is(const aq_event *e, aq_event_kind kind, const char *op)
{
    return e->kind == kind && strcmp(e->op, op) == 0;
}

static void take_birth(aq_canon *c, aq_event *e, size_t self, bool of_thread)
{
    aq_event_arg *a = arg_of(e, "child");
    uint32_t process, number;

    if (!a || a->bytes || a->number < 0 || a->number > UINT32_MAX || e->result < 0)
        return;
    process = of_thread ? e->process : (uint32_t)a->number;
    number = of_thread ? (uint32_t)a->number : 0;
    if (!find(c, process, number)) {
        thread *parent = &c->threads[self];

        parent->births++;
        add(c, process, number, child_name(c, parent->name, of_thread ? 't' : 'p', parent->births));
    }
    name_arg(c, a, e->process, of_thread);
    e->result = 0;
}

/* Who was meant, by name instead of by number. */
static void take_kill(aq_canon *c, aq_event *e)
{
    const aq_event_arg *p = arg_of(e, "process");

    if (!p || p->bytes || p->number < 0 || p->number > UINT32_MAX)
        return;
    name_arg(c, arg_of(e, "thread"), (uint32_t)p->number, true);
    name_arg(c, arg_of(e, "process"), 0, false);
    drop(e, "target");
    drop(e, "task");
}

/* The other end of an edge. */
static void take_after(aq_canon *c, aq_event *e)
{
    const aq_event_arg *p = arg_of(e, "process");

    if (!p || p->bytes || p->number < 0 || p->number > UINT32_MAX)
        return;
    name_arg(c, arg_of(e, "thread"), (uint32_t)p->number, true);
    drop(e, "process");
}

/* Is its result the number of a new descriptor? */
static bool makes_descriptor(const aq_event *e)
{
    static const struct {
        aq_event_kind kind;
        const char *op;
    } rows[] = {{AQ_EVENT_FILE, "open"},      {AQ_EVENT_FILE, "memfd"},
                {AQ_EVENT_FILE, "queue"},     {AQ_EVENT_NETWORK, "socket"},
                {AQ_EVENT_NETWORK, "accept"}, {AQ_EVENT_PROCESS, "pidfd"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is(e, rows[i].kind, rows[i].op))
            return true;
    return false;
}

static void name_numbers(aq_canon *c, aq_event *e, size_t self)
{
    if (e->kind == AQ_EVENT_PROCESS) {
        if (strcmp(e->op, "fork") == 0 || strcmp(e->op, "thread") == 0)
            take_birth(c, e, self, *e->op == 't');
        else if (strcmp(e->op, "kill") == 0)
            take_kill(c, e);
        else if (strcmp(e->op, "after") == 0)
            take_after(c, e);
        else if (strcmp(e->op, "wait") == 0)
            name_arg(c, arg_of(e, "child"), 0, false);
        else if (strcmp(e->op, "signal") == 0)
            name_arg(c, arg_of(e, "from"), 0, false);
        else if (strcmp(e->op, "exec") == 0)
            name_arg(c, arg_of(e, "caller"), e->process, true);
    }
    if (e->result > 0 && makes_descriptor(e))
        e->result = 0;
}

/* Is v at least 3.162 times the power of ten? */
static bool above(int64_t v, int64_t power)
{
    return power >= 1000 ? v >= power / 1000 * 3162 : v > 4000 || v * 1000 >= power * 3162;
}

/* The nearest power of ten, by the geometric middle: nobody chooses 3.162 seconds. */
static int64_t magnitude(int64_t v)
{
    int64_t power = 1;

    if (v <= 0)
        return v;
    while (power < INT64_C(1000000000000000000) && above(v, power))
        power *= 10;
    return power;
}

static void mask_noise(aq_event *e)
{
    for (size_t i = 0; i < sizeof noise / sizeof *noise; i++) {
        aq_event_arg *a;

        if (!is(e, noise[i].kind, noise[i].op) ||
            (noise[i].how == DEADLINE && !arg_of(e, "absolute")))
            continue;
        a = arg_of(e, noise[i].field);
        if (a && !a->bytes)
            a->number = magnitude(a->number);
    }
}

static void replace(const aq_marks *m, const char **text, size_t *len, bool cut, aq_buf *into)
{
    aq_buf_clear(into);
    if (!m || *len == 0)
        return;
    aq_marks_replace(m, *text, *len, cut, into);
    *text = aq_buf_str(into);
    *len = into->len;
}

static void replace_in(aq_canon *c, aq_event *e)
{
    if (e->object)
        replace(c->marks, &e->object, &e->object_len, e->object_cut, &c->object);
    for (uint8_t i = 0; i < e->arg_count; i++)
        if (e->args[i].bytes)
            replace(c->marks, &e->args[i].bytes, &e->args[i].len, e->args[i].cut, &c->text[i]);
}

/* Our own word about the run, no act of the program's. */
static bool ours(const aq_event *e)
{
    const aq_event_arg *op = NULL;

    for (uint8_t i = 0; i < e->arg_count; i++)
        if (strcmp(e->args[i].name, "op") == 0)
            op = &e->args[i];
    return is(e, AQ_EVENT_SYSCALL, "preempted") || is(e, AQ_EVENT_SYSCALL, "switched") ||
           (is(e, AQ_EVENT_SYSCALL, "repeat") && op && op->bytes &&
            ((op->len == 9 && memcmp(op->bytes, "preempted", 9) == 0) ||
             (op->len == 8 && memcmp(op->bytes, "switched", 8) == 0)));
}

void aq_canon_event(aq_canon *c, const aq_event *event)
{
    aq_event e = *event;
    size_t self;
    thread *t;

    if (ours(event))
        return;
    self = (size_t)(thread_of(c, e.process, e.thread) - c->threads);
    name_numbers(c, &e, self);
    mask_noise(&e);
    replace_in(c, &e);
    e.process = e.thread = 0;
    t = &c->threads[self];
    aq_buf_clear(&c->line);
    aq_event_canonical(&e, &c->line);
    aq_hash_reset(c->hash);
    aq_hash_add(c->hash, t->digest.b, sizeof t->digest.b);
    aq_hash_add(c->hash, c->line.data, c->line.len);
    t->digest = aq_hash_peek(c->hash);
    t->events++;
    if (c->each) {
        aq_canon_line l = {(uint32_t)self, event->seq, c->line.data, c->line.len - 1};

        c->each(&l, c->arg);
    }
}

/* ---- what the run left ---- */

static json_t *hex_json(const aq_digest *d)
{
    char hex[AQ_SHA256_HEX];

    return json_string(aq_digest_hex(d, hex));
}

static json_t *count_json(uint64_t v)
{
    return json_integer(
        (json_int_t)(v < INT64_C(9007199254740991) ? v : INT64_C(9007199254740991)));
}

static json_t *text_json(const aq_marks *m, const char *text, size_t len, bool cut)
{
    aq_auto_buf clean = {0}, quoted = {0};

    replace(m, &text, &len, cut, &clean);
    aq_text_quote(&quoted, text, len);
    return json_string(aq_buf_str(&quoted));
}

static json_t *output_json(const aq_marks *m, const aq_output *p)
{
    return json_pack(
        "{s:o,s:o,s:o,s:s}", "bytes", count_json(p->bytes), "digest", hex_json(&p->content), "head",
        text_json(m, p->head, p->head_len, p->head_len < p->bytes), "stream", p->stream);
}

static json_t *change_json(const aq_marks *marks, const aq_file_change *m)
{
    bool content = m->change == 'A' || m->change == 'M';

    return json_pack("{s:s%,s:o,s:o,s:o}", "change", &m->change, (size_t)1, "digest",
                     content ? hex_json(&m->content) : json_null(), "path",
                     text_json(marks, m->path, strlen(m->path), false), "size",
                     count_json(m->size));
}

/* A line {"key": value} in canonical JSON; takes the reference. */
static void spell(aq_buf *out, const char *key, json_t *value)
{
    aq_auto_json json_t *line = json_pack("{s:o}", key, value);

    aq_buf_clear(out);
    if (aq_json_canonical(line, out) < 0)
        aq_panic("an observation that JSON cannot hold");
}

typedef struct remains {
    aq_canon_take *each;
    void *arg;
    aq_buf line;
} remains;

/* `name`: the field of the value that says which it is, NULL when it is the value itself. Takes the
 * reference. */
static void tell(remains *r, aq_canon_part part, const char *key, json_t *value, const char *name)
{
    aq_auto_buf which = {0};
    const char *text = json_string_value(name ? json_object_get(value, name) : value);

    aq_buf_adds(&which, text ? text : "");
    spell(&r->line, key, value);
    r->each(part, aq_buf_str(&which), r->line.data, r->line.len, r->arg);
}

void aq_canon_remains(const aq_marks *m, const aq_observation *o, aq_canon_take *each, void *arg)
{
    static const char *const kinds[] = {[AQ_EXIT_STATUS] = "status",
                                        [AQ_EXIT_SIGNAL] = "signal",
                                        [AQ_EXIT_BUDGET] = "budget",
                                        [AQ_EXIT_FAILURE] = "failure"};
    remains r = {.each = each, .arg = arg};

    tell(&r, AQ_CANON_DROPPED, "dropped", count_json(o->dropped), NULL);
    tell(&r, AQ_CANON_EXIT, "exit",
         json_pack("{s:s,s:i}", "kind", kinds[o->exit_kind], "value", (int)o->exit_value), "");
    for (size_t i = 0; i < o->output_count; i++)
        tell(&r, AQ_CANON_OUTPUT, "output", output_json(m, &o->outputs[i]), "stream");
    for (size_t i = 0; i < o->change_count; i++)
        tell(&r, AQ_CANON_CHANGE, "change", change_json(m, &o->changes[i]), "path");
    for (size_t i = 0; i < o->reached_count; i++)
        tell(&r, AQ_CANON_REACHED, "reached",
             text_json(m, o->reached[i], strlen(o->reached[i]), false), NULL);
    aq_buf_free(&r.line);
}

/* ---- the whole ---- */

aq_canon *aq_canon_new(const aq_marks *marks, void (*each)(const aq_canon_line *line, void *arg),
                       void *arg)
{
    aq_canon *c = aq_alloc(sizeof *c);

    c->marks = marks;
    c->each = each;
    c->arg = arg;
    c->arena = aq_arena_new();
    c->hash = aq_hash_begin();
    grow(c);
    add(c, 0, 0, "p1");
    return c;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const thread *const *)a)->name, (*(const thread *const *)b)->name);
}

static void add_line(aq_canon_part part, const char *name, const char *line, size_t len, void *hash)
{
    (void)part;
    (void)name;
    aq_hash_add(hash, line, len);
    aq_hash_add(hash, "\n", 1);
}

aq_digest aq_canon_end(aq_canon *c, const aq_observation *o)
{
    aq_auto_free const thread **all = aq_alloc(c->count * sizeof *all);

    for (size_t i = 0; i < c->count; i++)
        all[i] = &c->threads[i];
    qsort(all, c->count, sizeof *all, by_name);
    aq_hash_reset(c->hash);
    aq_hash_add(c->hash, SCHEMA "\n", sizeof SCHEMA);
    for (size_t i = 0; i < c->count; i++) {
        spell(&c->line, "thread",
              json_pack("{s:o,s:o,s:s}", "digest", hex_json(&all[i]->digest), "events",
                        count_json(all[i]->events), "name", all[i]->name));
        aq_buf_addc(&c->line, '\n');
        aq_hash_add(c->hash, c->line.data, c->line.len);
    }
    aq_canon_remains(c->marks, o, add_line, c->hash);
    return aq_hash_peek(c->hash);
}

size_t aq_canon_threads(const aq_canon *c)
{
    return c->count;
}

const char *aq_canon_thread_name(const aq_canon *c, size_t index)
{
    return c->threads[index].name;
}

uint64_t aq_canon_unborn(const aq_canon *c)
{
    return c->unborn;
}

void aq_canon_free(aq_canon *c)
{
    if (!c)
        return;
    aq_arena_free(c->arena);
    aq_hash_abort(c->hash);
    free(c->threads);
    free(c->slots);
    aq_buf_free(&c->line);
    aq_buf_free(&c->object);
    for (int i = 0; i < AQ_EVENT_ARGS; i++)
        aq_buf_free(&c->text[i]);
    free(c);
}
