/* Writing an observation: the recorder, the digest of the record, the summary; see observation.h
 * and docs/formats/observation.md. Reading is in observation_read.c. */
#include "model/observation.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "model/observation_form.h"

struct aq_recorder {
    aq_buf *out;
    aq_hash *stream; /* every byte that was written */
    aq_canonical canonical;
    aq_buf scratch;
    const char *backend, *world;
    aq_arena *arena;
    uint64_t limit, written, events, dropped, sums, by_kind[AQ_EVENT_KINDS];
};

void aq_canonical_begin(aq_canonical *c)
{
    *c = (aq_canonical){.hash = aq_hash_begin()};
    aq_buf_adds(&c->lines, AQ_OBSERVATION_SCHEMA "\n");
}

/* Lines gather so that the hash is fed in large pieces. */
void aq_canonical_event(aq_canonical *c, const aq_event *e)
{
    aq_event_canonical(e, &c->lines);
    if (c->lines.len >= 32768) {
        aq_hash_add(c->hash, c->lines.data, c->lines.len);
        aq_buf_clear(&c->lines);
    }
}

/* One line {"key": value}; takes the reference. */
static void add_line(aq_canonical *c, const char *key, json_t *value)
{
    aq_auto_json json_t *line = key ? json_pack("{so}", key, value) : value;

    if (aq_json_canonical(line, &c->lines) < 0)
        aq_panic("an observation that JSON cannot hold");
    aq_buf_addc(&c->lines, '\n');
}

static json_t *count_json(uint64_t v)
{
    return json_integer((json_int_t)(v <= AQ_WIRE_COUNT ? v : AQ_WIRE_COUNT));
}

static json_t *bytes_json(const char *s, size_t len)
{
    aq_auto_buf quoted = {0};

    aq_text_quote(&quoted, s, len);
    return json_string(aq_buf_str(&quoted));
}

static json_t *digest_json(const aq_digest *d)
{
    char hex[AQ_SHA256_HEX];

    return json_string(aq_digest_hex(d, hex));
}

static json_t *kinds_json(const aq_observation *o)
{
    json_t *kinds = json_object();

    for (size_t k = 0; k < AQ_EVENT_KINDS; k++)
        json_object_set_new(kinds, aq_event_kind_name((aq_event_kind)k), count_json(o->by_kind[k]));
    return kinds;
}

static json_t *exit_json(const aq_observation *o)
{
    static const char *const names[] = {[AQ_EXIT_STATUS] = "status",
                                        [AQ_EXIT_SIGNAL] = "signal",
                                        [AQ_EXIT_BUDGET] = "budget",
                                        [AQ_EXIT_FAILURE] = "failure"};

    return json_pack("{ss,si}", "kind", names[o->exit_kind], "value", (int)o->exit_value);
}

static json_t *output_json(const aq_output *p)
{
    return json_pack("{ss,so,so,so,so}", "stream", p->stream, "bytes", count_json(p->bytes),
                     "digest", digest_json(&p->digest), "content", digest_json(&p->content), "head",
                     bytes_json(p->head, p->head_len));
}

static bool has_content(const aq_file_change *f)
{
    return f->change == 'A' || f->change == 'M';
}

bool aq_observation_whole(const aq_observation *o)
{
    bool whole = o->dropped == 0;

    for (size_t i = 0; i < o->change_count; i++)
        whole &= o->changes[i].change != 'U';
    return whole;
}

static json_t *change_json(const aq_file_change *f)
{
    return json_pack("{ss%,so,so,so,so}", "change", &f->change, (size_t)1, "path",
                     bytes_json(f->path, strlen(f->path)), "size", count_json(f->size), "digest",
                     !has_content(f) ? json_null() : digest_json(&f->digest), "content",
                     !has_content(f) ? json_null() : digest_json(&f->content));
}

aq_digest aq_canonical_end(aq_canonical *c, const aq_observation *o)
{
    aq_digest d;

    add_line(c, NULL,
             json_pack("{so,so,so}", "by_kind", kinds_json(o), "dropped", count_json(o->dropped),
                       "events", count_json(o->events)));
    add_line(c, "exit", exit_json(o));
    for (size_t i = 0; i < o->output_count; i++)
        add_line(c, "output", output_json(&o->outputs[i]));
    for (size_t i = 0; i < o->change_count; i++)
        add_line(c, "change", change_json(&o->changes[i]));
    for (size_t i = 0; i < o->reached_count; i++)
        add_line(c, "reached", json_string(o->reached[i]));
    aq_hash_add(c->hash, c->lines.data, c->lines.len);
    d = aq_hash_end(aq_take(c->hash));
    aq_buf_free(&c->lines);
    return d;
}

void aq_canonical_abort(aq_canonical *c)
{
    aq_hash_abort(c->hash);
    aq_buf_free(&c->lines);
    c->hash = NULL;
}

json_t *aq_observation_json(const aq_observation *o)
{
    json_t *outputs = json_array(), *changes = json_array(), *reached = json_array();

    for (size_t i = 0; i < o->output_count; i++)
        json_array_append_new(outputs, output_json(&o->outputs[i]));
    for (size_t i = 0; i < o->change_count; i++)
        json_array_append_new(changes, change_json(&o->changes[i]));
    for (size_t i = 0; i < o->reached_count; i++)
        json_array_append_new(reached, json_string(o->reached[i]));
    json_t *j = json_pack(
        "{ss,ss,ss,so,so,so,so,so,so,so,s{so,so,so},so}", "schema", AQ_OBSERVATION_SCHEMA,
        "backend", o->backend, "world", o->world, "exit", exit_json(o), "events",
        count_json(o->events), "dropped", count_json(o->dropped), "by_kind", kinds_json(o),
        "outputs", outputs, "changes", changes, "reached", reached, "resources", "cpu_ns",
        count_json(o->cpu_ns), "peak_memory", count_json(o->peak_memory), "written_bytes",
        count_json(o->written_bytes), "digest", digest_json(&o->digest));
    if (o->landlock)
        json_object_set_new(j, "landlock", count_json(o->landlock));
    return j;
}

/* ---- the recorder ---- */

/* `out` may be drained by its owner between calls, so what is written is hashed at once. */
static void written(aq_recorder *r, size_t from)
{
    aq_hash_add(r->stream, r->out->data + from, r->out->len - from);
    r->written += r->out->len - from;
}

static void put_record(aq_recorder *r, char type)
{
    size_t from = r->out->len;

    aq_wire_put_record(r->out, type, &r->scratch);
    aq_buf_clear(&r->scratch);
    written(r, from);
}

bool aq_world_label(const char *s, size_t len)
{
    return len >= 1 && len <= 16 &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'+-") == len;
}

aq_recorder *aq_recorder_new(const char *backend, const char *world, aq_buf *out)
{
    aq_recorder *r = aq_alloc(sizeof *r);
    size_t from = out->len;

    if (!aq_wire_is_name(backend, strnlen(backend, AQ_WIRE_NAME + 1)) ||
        !aq_world_label(world, strlen(world)))
        aq_panic("an observation of backend \"%.80s\", world \"%.80s\"", backend, world);
    r->out = out;
    r->limit = AQ_OBSERVATION_EVENTS;
    r->stream = aq_hash_begin();
    r->arena = aq_arena_new();
    r->backend = aq_arena_strdup(r->arena, backend);
    r->world = aq_arena_strdup(r->arena, world);
    aq_canonical_begin(&r->canonical);
    aq_buf_add(out, AQ_OBSERVATION_MAGIC, AQ_OBSERVATION_MAGIC_LEN);
    written(r, from);
    aq_wire_put_text(&r->scratch, backend, strlen(backend));
    aq_wire_put_text(&r->scratch, world, strlen(world));
    put_record(r, 'H');
    return r;
}

void aq_recorder_limit(aq_recorder *r, uint64_t limit)
{
    r->limit = limit;
}

/* One event that stands for many: it is small, and of most use where others are missing. */
static bool sums_up(aq_recorder *r, const aq_event *e)
{
    static const char *const ops[] = {"counts", "repeat", "exit"};

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(e->op, ops[i]) == 0)
            return r->sums++ < AQ_OBSERVATION_SUMS;
    return false;
}

void aq_recorder_event(aq_recorder *r, aq_event *e)
{
    size_t from = r->out->len;

    e->seq = r->events;
    r->by_kind[e->kind]++;
    /* Once one was dropped all are: what is kept is the beginning, and what sums up. */
    if ((r->dropped || r->events >= r->limit || r->written >= AQ_OBSERVATION_BYTES) &&
        !sums_up(r, e)) {
        r->dropped++;
        return;
    }
    r->events++;
    aq_event_write(e, r->out);
    written(r, from);
    aq_canonical_event(&r->canonical, e);
}

static int compare_outputs(const void *a, const void *b)
{
    return strcmp(((const aq_output *)a)->stream, ((const aq_output *)b)->stream);
}

static int compare_changes(const void *a, const void *b)
{
    return strcmp(((const aq_file_change *)a)->path, ((const aq_file_change *)b)->path);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void *copied(aq_arena *a, const void *items, size_t size, size_t count)
{
    void *copy = aq_arena_alloc(a, (count + 1) * size);

    return count ? memcpy(copy, items, count * size) : copy;
}

/* Sorts and drops doubles; the first of equals stays. */
static size_t sort_unique(void *items, size_t size, size_t count,
                          int (*compare)(const void *, const void *))
{
    char *at = items;
    size_t kept = 0;

    if (count > 1)
        qsort(items, count, size, compare);
    for (size_t i = 0; i < count; i++) {
        if (kept && compare(at + (kept - 1) * size, at + i * size) == 0)
            continue;
        memmove(at + kept * size, at + i * size, size);
        kept++;
    }
    return kept;
}

static void seal_content(aq_digest *content, const aq_digest *digest)
{
    if (aq_digest_equal(content, &(aq_digest){0}))
        *content = *digest;
}

static void seal_outputs(aq_recorder *r, aq_observation *s)
{
    aq_output *p = copied(r->arena, s->outputs, sizeof *p, s->output_count);

    for (size_t i = 0; i < s->output_count; i++) {
        if (!aq_wire_is_name(p[i].stream, strnlen(p[i].stream, AQ_WIRE_NAME + 1)))
            aq_panic("an output named \"%.80s\"", p[i].stream);
        if (!p[i].head)
            p[i].head = "", p[i].head_len = 0;
        if (p[i].bytes > AQ_WIRE_COUNT)
            p[i].bytes = AQ_WIRE_COUNT;
        seal_content(&p[i].content, &p[i].digest);
        if (p[i].head_len > AQ_EVENT_TEXT)
            p[i].head_len = AQ_EVENT_TEXT;
        if (p[i].head_len > p[i].bytes)
            p[i].head_len = (size_t)p[i].bytes;
    }
    s->output_count = sort_unique(p, sizeof *p, s->output_count, compare_outputs);
    s->outputs = p;
}

static void seal_changes(aq_recorder *r, aq_observation *s)
{
    aq_file_change *f = copied(r->arena, s->changes, sizeof *f, s->change_count);

    for (size_t i = 0; i < s->change_count; i++) {
        size_t len = strnlen(f[i].path, AQ_WIRE_PATH);

        if (len == 0 || !memchr("AMDU", f[i].change, 4))
            aq_panic("a file change '%c' of \"%.80s\"", f[i].change, f[i].path);
        f[i].path = aq_arena_strndup(r->arena, f[i].path, len);
        if (f[i].size > AQ_WIRE_COUNT)
            f[i].size = AQ_WIRE_COUNT;
        if (!has_content(&f[i]))
            f[i].digest = f[i].content = (aq_digest){0};
        seal_content(&f[i].content, &f[i].digest);
    }
    s->change_count = sort_unique(f, sizeof *f, s->change_count, compare_changes);
    s->changes = f;
}

bool aq_reached_valid(const char *s, size_t len)
{
    aq_auto_buf raw = {0}, back = {0};

    if (len == 0 || len > AQ_WIRE_PATH || aq_text_unquote(&raw, s, len) < 0)
        return false;
    aq_text_quote(&back, aq_buf_str(&raw), raw.len);
    return back.len == len && memcmp(back.data, s, len) == 0;
}

static void seal_reached(aq_recorder *r, aq_observation *s)
{
    const char **p = copied(r->arena, s->reached, sizeof *p, s->reached_count);

    for (size_t i = 0; i < s->reached_count; i++)
        if (!aq_reached_valid(p[i], strnlen(p[i], AQ_WIRE_PATH + 1)))
            aq_panic("a covered path that is not quoted: \"%.80s\"", p[i]);
    s->reached_count = sort_unique(p, sizeof *p, s->reached_count, compare_texts);
    s->reached = p;
}

int32_t aq_exit_max(aq_exit_kind kind)
{
    return kind == AQ_EXIT_STATUS ? 255 : kind == AQ_EXIT_SIGNAL ? 127 : 4095;
}

/* The observation as it will be read back: sorted, bounded, counted. */
static aq_observation seal(aq_recorder *r, const aq_observation *o)
{
    aq_observation s = *o;
    int32_t max = aq_exit_max(o->exit_kind);

    seal_outputs(r, &s);
    seal_changes(r, &s);
    seal_reached(r, &s);
    if (s.exit_value < 0) /* an errno by its negative */
        s.exit_value = s.exit_value < -max ? max : -s.exit_value;
    if (s.exit_value > max)
        s.exit_value = max;
    s.backend = r->backend;
    s.world = r->world;
    s.events = r->events;
    s.dropped = r->dropped;
    memcpy(s.by_kind, r->by_kind, sizeof s.by_kind);
    return s;
}

static void put_count(aq_recorder *r, uint64_t v)
{
    aq_wire_put_number(&r->scratch, v <= AQ_WIRE_COUNT ? v : AQ_WIRE_COUNT);
}

static void put_remains(aq_recorder *r, const aq_observation *o)
{
    aq_buf_addc(&r->scratch, (char)o->exit_kind);
    aq_wire_put_signed(&r->scratch, o->exit_value);
    put_record(r, 'X');
    for (size_t i = 0; i < o->output_count; i++) {
        const aq_output *p = &o->outputs[i];
        aq_wire_put_text(&r->scratch, p->stream, strlen(p->stream));
        put_count(r, p->bytes);
        aq_wire_put_digest(&r->scratch, &p->digest);
        aq_wire_put_digest(&r->scratch, &p->content);
        aq_wire_put_bytes(&r->scratch, p->head, p->head_len);
        put_record(r, 'O');
    }
    for (size_t i = 0; i < o->change_count; i++) {
        const aq_file_change *f = &o->changes[i];
        aq_wire_put_text(&r->scratch, f->path, strlen(f->path));
        aq_buf_addc(&r->scratch, f->change);
        put_count(r, f->size);
        aq_wire_put_digest(&r->scratch, &f->digest);
        aq_wire_put_digest(&r->scratch, &f->content);
        put_record(r, 'F');
    }
    for (size_t i = 0; i < o->reached_count; i++) {
        aq_wire_put_text(&r->scratch, o->reached[i], strlen(o->reached[i]));
        put_record(r, 'C');
    }
    put_count(r, o->cpu_ns);
    put_count(r, o->peak_memory);
    put_count(r, o->written_bytes);
    if (o->landlock)
        put_count(r, o->landlock);
    put_record(r, 'R');
}

void aq_recorder_end(aq_recorder *r, aq_observation *o)
{
    aq_observation s = seal(r, o);
    aq_digest whole = {0};
    size_t from;

    s.digest = aq_canonical_end(&r->canonical, &s);
    put_remains(r, &s);
    put_count(r, s.events);
    put_count(r, s.dropped);
    for (size_t k = 0; k < AQ_EVENT_KINDS; k++)
        put_count(r, s.by_kind[k]);
    aq_wire_put_digest(&r->scratch, &s.digest);
    /* The stream digest covers its own record up to itself, so that no byte stands outside. */
    aq_wire_put_digest(&r->scratch, &whole);
    from = r->out->len;
    aq_wire_put_record(r->out, 'Z', &r->scratch);
    r->out->len -= AQ_SHA256_LEN;
    written(r, from);
    whole = aq_hash_peek(r->stream);
    aq_wire_put_digest(r->out, &whole);
    o->events = s.events;
    o->dropped = s.dropped;
    memcpy(o->by_kind, s.by_kind, sizeof s.by_kind);
    o->digest = s.digest;
}

void aq_recorder_free(aq_recorder *r)
{
    if (!r)
        return;
    aq_canonical_abort(&r->canonical);
    aq_hash_abort(r->stream);
    aq_arena_free(r->arena);
    aq_buf_free(&r->scratch);
    free(r);
}
