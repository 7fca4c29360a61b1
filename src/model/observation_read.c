/* Reading an observation stream, which comes from the hostile side; see observation.h.
 *
 * Records must come in the order of the table below. Nothing of a stream is given to the caller's
 * `each` that was not checked, but the whole is only good when the end has been reached: a caller
 * that acts on events before that acts on rumours. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/observation_form.h"

typedef struct reader {
    aq_arena *arena;
    const uint8_t *data;
    size_t len, at;
    void (*each)(const aq_event *e, void *arg);
    void *arg;
    aq_canonical canonical;
    uint64_t kept[AQ_EVENT_KINDS];
    aq_observation o;
    aq_output *outputs;
    aq_file_change *changes;
    size_t output_cap, change_cap, reached_cap;
    bool ended;
} reader;

static void read_header(reader *r, aq_wire *w)
{
    size_t len;
    const char *world;

    r->o.backend = aq_arena_strdup(r->arena, aq_wire_name(w));
    world = aq_wire_text(w, 16, &len);
    if (!w->bad && !aq_world_label(world, len))
        aq_wire_refuse(w, "the world's label holds other signs than letters, digits and ' + -");
    r->o.world = aq_arena_strndup(r->arena, world, len);
}

static void read_exit(reader *r, aq_wire *w)
{
    int64_t value;

    r->o.exit_kind = (aq_exit_kind)aq_wire_byte(w, AQ_EXIT_FAILURE);
    value = aq_wire_signed(w);
    if (value < 0 || value > aq_exit_max(r->o.exit_kind))
        aq_wire_refuse(w, "the exit value is out of range");
    else
        r->o.exit_value = (int32_t)value;
}

/* Room for one more of `count` items; the list moves to twice the size in the arena. */
static void *room_for(aq_arena *a, void *items, size_t size, size_t count, size_t *cap)
{
    void *more;

    if (count < *cap)
        return items;
    *cap = *cap ? 2 * *cap : 8;
    more = aq_arena_alloc(a, *cap * size);
    return count ? memcpy(more, items, count * size) : more;
}

static void read_output(reader *r, aq_wire *w)
{
    aq_output p = {0};
    const char *head;
    aq_digest digest;

    p.stream = aq_arena_strdup(r->arena, aq_wire_name(w));
    p.bytes = aq_wire_number(w, AQ_WIRE_COUNT);
    aq_wire_digest(w, &p.digest);
    aq_wire_digest(w, &p.content);
    head = aq_wire_bytes(w, AQ_EVENT_TEXT, &p.head_len);
    if (w->bad)
        return;
    if (r->o.output_count && strcmp(r->outputs[r->o.output_count - 1].stream, p.stream) >= 0)
        aq_wire_refuse(w, "outputs are not in order");
    if (p.head_len > p.bytes)
        aq_wire_refuse(w, "the head of an output is longer than the output");
    digest = aq_sha256(head, p.head_len);
    if (p.head_len == p.bytes && !aq_digest_equal(&digest, &p.digest))
        aq_wire_refuse(w, "an output has another digest than its bytes");
    p.head = aq_arena_strndup(r->arena, head, p.head_len);
    r->outputs = room_for(r->arena, r->outputs, sizeof p, r->o.output_count, &r->output_cap);
    r->outputs[r->o.output_count++] = p;
    r->o.outputs = r->outputs;
}

static void read_change(reader *r, aq_wire *w)
{
    static const aq_digest zero;
    aq_file_change f = {0};
    size_t len;

    f.path = aq_wire_text(w, AQ_WIRE_PATH, &len);
    f.path = aq_arena_strndup(r->arena, f.path, len);
    f.change = (char)aq_wire_byte(w, 'U');
    f.size = aq_wire_number(w, AQ_WIRE_COUNT);
    aq_wire_digest(w, &f.digest);
    aq_wire_digest(w, &f.content);
    if (w->bad)
        return;
    if (!f.change || !strchr("AMDU", f.change))
        aq_wire_refuse(w, "a file change is none of A, M, D and U");
    if ((f.change == 'D' || f.change == 'U') &&
        (!aq_digest_equal(&f.digest, &zero) || !aq_digest_equal(&f.content, &zero)))
        aq_wire_refuse(w, "a file that is deleted or was not read has a digest");
    if (r->o.change_count && strcmp(r->changes[r->o.change_count - 1].path, f.path) >= 0)
        aq_wire_refuse(w, "file changes are not in order");
    r->changes = room_for(r->arena, r->changes, sizeof f, r->o.change_count, &r->change_cap);
    r->changes[r->o.change_count++] = f;
    r->o.changes = r->changes;
}

static void read_reached(reader *r, aq_wire *w)
{
    size_t len, count = r->o.reached_count;
    const char *path = aq_wire_text(w, AQ_WIRE_PATH, &len);

    if (w->bad)
        return;
    if (!aq_reached_valid(path, len))
        aq_wire_refuse(w, "a covered path is not quoted as it should be");
    if (count && strcmp(r->o.reached[count - 1], path) >= 0)
        aq_wire_refuse(w, "covered paths are not in order");
    r->o.reached = room_for(r->arena, r->o.reached, sizeof path, count, &r->reached_cap);
    r->o.reached[r->o.reached_count++] = aq_arena_strndup(r->arena, path, len);
}

static void read_resources(reader *r, aq_wire *w)
{
    r->o.cpu_ns = aq_wire_number(w, AQ_WIRE_COUNT);
    r->o.peak_memory = aq_wire_number(w, AQ_WIRE_COUNT);
    r->o.written_bytes = aq_wire_number(w, AQ_WIRE_COUNT);
    if (w->bad || w->at == w->end)
        return;
    r->o.landlock = (uint32_t)aq_wire_number(w, AQ_LANDLOCK_MOST);
    if (!w->bad && r->o.landlock == 0)
        aq_wire_refuse(w, "a level of Landlock is 0"); /* none is not written */
}

static void check_counts(const reader *r, uint64_t events, aq_wire *w)
{
    uint64_t all = 0;

    for (size_t k = 0; k < AQ_EVENT_KINDS; k++) {
        all += r->o.by_kind[k]; /* six numbers below 2^53 */
        if (r->o.by_kind[k] < r->kept[k])
            aq_wire_refuse(w, "a kind has more events than were counted");
    }
    if (events != r->o.events || all != r->o.events + r->o.dropped)
        aq_wire_refuse(w, "the counts do not add up");
}

static void read_end(reader *r, aq_wire *w)
{
    aq_digest canonical, whole, mine;
    uint64_t events = aq_wire_number(w, AQ_WIRE_COUNT);
    const uint8_t *until;

    r->o.dropped = aq_wire_number(w, AQ_WIRE_COUNT);
    for (size_t k = 0; k < AQ_EVENT_KINDS; k++)
        r->o.by_kind[k] = aq_wire_number(w, AQ_WIRE_COUNT);
    aq_wire_digest(w, &canonical);
    until = w->at;
    aq_wire_digest(w, &whole);
    if (w->bad)
        return;
    check_counts(r, events, w);
    mine = aq_sha256(r->data, (size_t)(until - r->data));
    if (!aq_digest_equal(&mine, &whole))
        aq_wire_refuse(w, "the stream's digest does not match its bytes");
    r->o.digest = aq_canonical_end(&r->canonical, &r->o);
    if (!aq_digest_equal(&r->o.digest, &canonical))
        aq_wire_refuse(w, "the record's digest does not match what was read");
    r->ended = true;
}

/* In this order; `many` may come any number of times, the others exactly once. */
static const struct {
    char type;
    bool many;
    void (*read)(reader *r, aq_wire *w);
} records[] = {
    {'H', false, read_header},    {'E', true, NULL},        {'X', false, read_exit},
    {'O', true, read_output},     {'F', true, read_change}, {'C', true, read_reached},
    {'R', false, read_resources}, {'Z', false, read_end},
};

static int read_event(reader *r, aq_err *err)
{
    aq_event e;
    ssize_t n = aq_event_read(r->arena, r->data + r->at, r->len - r->at, &e, err);

    if (n < 0)
        return (int)n;
    if (e.seq != r->o.events)
        return aq_fail(err, -EBADMSG, "event number %llu where %llu was due",
                       (unsigned long long)e.seq, (unsigned long long)r->o.events);
    r->o.events++;
    r->kept[e.kind]++;
    aq_canonical_event(&r->canonical, &e);
    if (r->each)
        r->each(&e, r->arg);
    return 0;
}

/* Reads the record at r->at, which must be that of `*step` or a later step. */
static int read_record(reader *r, size_t *step, aq_err *err)
{
    const size_t last = sizeof records / sizeof *records - 1;
    const char *bad = NULL;
    size_t size;
    aq_wire w;
    char type;
    int n = aq_wire_record(r->data + r->at, r->len - r->at, &type, &w, &size, &bad);

    if (n == 0)
        return aq_fail(err, -EPIPE, "the end record is missing");
    if (n < 0)
        return aq_fail(err, -EBADMSG, "%s", bad);
    while (*step < last && records[*step].type != type && records[*step].many)
        (*step)++;
    if (records[*step].type != type)
        return aq_fail(err, -EBADMSG, "a record out of order");
    if (records[*step].read) {
        records[*step].read(r, &w);
        aq_wire_done(&w);
        n = w.bad ? aq_fail(err, -EBADMSG, "record %c: %s", type, w.bad) : 0;
    } else {
        n = read_event(r, err);
    }
    if (n < 0)
        return n;
    if (!records[*step].many)
        (*step)++;
    r->at += size;
    return 0;
}

static int read_stream(reader *r, aq_err *err)
{
    size_t head = r->len < AQ_OBSERVATION_MAGIC_LEN ? r->len : AQ_OBSERVATION_MAGIC_LEN, step = 0;
    int n = 0;

    if (memcmp(r->data, AQ_OBSERVATION_MAGIC, head) != 0)
        return aq_fail(err, -EBADMSG, "this is no " AQ_OBSERVATION_SCHEMA " stream");
    if (head < AQ_OBSERVATION_MAGIC_LEN)
        return aq_fail(err, -EPIPE, "the end record is missing");
    r->at = head;
    while (n == 0 && !r->ended)
        n = read_record(r, &step, err);
    if (n == 0 && r->at != r->len)
        n = aq_fail(err, -EBADMSG, "bytes after the end");
    return n;
}

int aq_observation_read(aq_arena *a, const void *data, size_t len,
                        void (*each)(const aq_event *e, void *arg), void *arg, aq_observation *ret,
                        aq_err *err)
{
    reader r = {.arena = a, .data = data, .len = len, .each = each, .arg = arg};
    aq_err why = {0};
    int n;

    if (len == 0)
        return aq_fail(err, -EPIPE, "observation at byte 0: the end record is missing");
    aq_canonical_begin(&r.canonical);
    n = read_stream(&r, &why);
    aq_canonical_abort(&r.canonical);
    if (n < 0)
        return aq_fail(err, n, "observation at byte %zu: %s", r.at, why.text);
    *ret = r.o;
    return 0;
}

static void add_line(const aq_event *e, void *out)
{
    aq_event_jsonl(e, out);
}

int aq_observation_jsonl(const void *data, size_t len, aq_buf *out, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf events = {0};
    aq_auto_json json_t *head = NULL, *summary = NULL;
    aq_observation o;
    int r = aq_observation_read(a, data, len, add_line, &events, &o, err);

    if (r < 0)
        return r;
    head = json_pack("{ss,ss,ss}", "schema", AQ_OBSERVATION_SCHEMA, "backend", o.backend, "world",
                     o.world);
    summary = aq_observation_json(&o);
    if (aq_json_canonical(head, out) < 0)
        return aq_fail(err, -EBADMSG, "observation: header");
    aq_buf_addc(out, '\n');
    aq_buf_add(out, events.data, events.len);
    if (aq_json_canonical(summary, out) < 0)
        return aq_fail(err, -EBADMSG, "observation: summary");
    aq_buf_addc(out, '\n');
    return 0;
}
