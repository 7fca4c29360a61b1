/* An event: one observed act; see event.h. The forms are defined in docs/formats/event.md.
 *
 * The JSON line is written by hand rather than through a tree: every event of every run passes
 * here, and the canonical line is hashed for each. */
#include "model/event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "model/wire.h"

enum { HAS_OBJECT = 1, OBJECT_CUT = 2, HAS_RULE = 4, IS_DECLARED = 8, NOT_DECLARED = 16, ALL = 31 };
enum { FORM_NUMBER, FORM_BYTES, FORM_CUT };

static const char *const kinds[AQ_EVENT_KINDS] = {
#define AQ_EVENT_KIND(id, name, what) [AQ_EVENT_##id] = name,
#include "model/event_kinds.def"
#undef AQ_EVENT_KIND
};

const char *aq_event_kind_name(aq_event_kind k)
{
    return kinds[k];
}

static bool is_op(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return n > 0 && n <= AQ_WIRE_NAME && s[n] == '\0';
}

static int compare_args(const void *a, const void *b)
{
    return strcmp((*(const aq_event_arg *const *)a)->name, (*(const aq_event_arg *const *)b)->name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Arguments and decoys in their one order, decoys without doubles. */
typedef struct sorted {
    const aq_event_arg *args[AQ_EVENT_ARGS];
    const char *decoys[AQ_EVENT_DECOYS];
    uint8_t arg_count, decoy_count;
} sorted;

static void need_name(const char *s)
{
    if (!aq_wire_is_name(s, strnlen(s, AQ_WIRE_NAME + 1)))
        aq_panic("an event with the name \"%.80s\"", s);
}

/* Names come from our own tables, so a wrong one is a programming error. */
static void sort_parts(const aq_event *e, sorted *s)
{
    if (e->arg_count > AQ_EVENT_ARGS || e->decoy_count > AQ_EVENT_DECOYS || !is_op(e->op) ||
        (unsigned)e->kind >= AQ_EVENT_KINDS || (unsigned)e->declared > AQ_DECLARED_NO ||
        e->seq > AQ_WIRE_COUNT || e->time > INT64_MAX)
        aq_panic("an event out of bounds (%.80s)", e->op);
    s->arg_count = e->arg_count;
    for (size_t i = 0; i < e->arg_count; i++) {
        s->args[i] = &e->args[i];
        need_name(e->args[i].name);
    }
    if (s->arg_count > 1)
        qsort(s->args, s->arg_count, sizeof *s->args, compare_args);
    for (size_t i = 1; i < s->arg_count; i++)
        if (compare_args(&s->args[i - 1], &s->args[i]) == 0)
            aq_panic("an event with two arguments %s", s->args[i]->name);
    for (size_t i = 0; i < e->decoy_count; i++) {
        s->decoys[i] = e->decoys[i];
        need_name(e->decoys[i]);
    }
    if (e->decoy_count > 1)
        qsort(s->decoys, e->decoy_count, sizeof *s->decoys, compare_names);
    s->decoy_count = 0;
    for (size_t i = 0; i < e->decoy_count; i++)
        if (i == 0 || strcmp(s->decoys[i], s->decoys[s->decoy_count - 1]) != 0)
            s->decoys[s->decoy_count++] = s->decoys[i];
    if (e->rule)
        need_name(e->rule);
}

static size_t bounded(size_t len)
{
    return len < AQ_EVENT_TEXT ? len : AQ_EVENT_TEXT;
}

static bool object_cut(const aq_event *e)
{
    return e->object && (e->object_cut || e->object_len > AQ_EVENT_TEXT);
}

static bool arg_cut(const aq_event_arg *a)
{
    return a->bytes && (a->cut || a->len > AQ_EVENT_TEXT);
}

static void put_name(aq_buf *out, const char *s)
{
    aq_wire_put_text(out, s, strlen(s));
}

static void put_payload(const aq_event *e, const sorted *s, aq_buf *out)
{
    aq_wire_put_number(out, e->seq);
    aq_wire_put_number(out, e->time);
    aq_wire_put_number(out, e->process);
    aq_wire_put_number(out, e->thread);
    aq_buf_addc(out, (char)e->kind);
    aq_buf_addc(out, (char)((e->object ? HAS_OBJECT : 0) | (object_cut(e) ? OBJECT_CUT : 0) |
                            (e->rule ? HAS_RULE : 0) |
                            (e->declared == AQ_DECLARED_YES ? IS_DECLARED : 0) |
                            (e->declared == AQ_DECLARED_NO ? NOT_DECLARED : 0)));
    put_name(out, e->op);
    if (e->object)
        aq_wire_put_bytes(out, e->object, bounded(e->object_len));
    aq_buf_addc(out, (char)s->arg_count);
    for (size_t i = 0; i < s->arg_count; i++) {
        const aq_event_arg *a = s->args[i];
        put_name(out, a->name);
        aq_buf_addc(out, !a->bytes ? FORM_NUMBER : arg_cut(a) ? FORM_CUT : FORM_BYTES);
        if (a->bytes)
            aq_wire_put_bytes(out, a->bytes, bounded(a->len));
        else
            aq_wire_put_signed(out, a->number);
    }
    aq_wire_put_signed(out, e->result);
    aq_buf_addc(out, (char)s->decoy_count);
    for (size_t i = 0; i < s->decoy_count; i++)
        put_name(out, s->decoys[i]);
    if (e->rule)
        put_name(out, e->rule);
}

void aq_event_write(const aq_event *e, aq_buf *out)
{
    size_t mark = aq_wire_open_record(out, 'E');
    sorted s;

    sort_parts(e, &s);
    put_payload(e, &s, out);
    aq_wire_close_record(out, mark);
}

static void read_args(aq_wire *w, aq_event *e)
{
    e->arg_count = aq_wire_byte(w, AQ_EVENT_ARGS);
    for (size_t i = 0; i < e->arg_count && !w->bad; i++) {
        aq_event_arg *a = &e->args[i];
        uint8_t form;

        a->name = aq_wire_name(w);
        form = aq_wire_byte(w, FORM_CUT);
        if (form == FORM_NUMBER)
            a->number = aq_wire_signed(w);
        else
            a->bytes = aq_wire_bytes(w, AQ_EVENT_TEXT, &a->len);
        a->cut = form == FORM_CUT;
        if (i > 0 && !w->bad && strcmp(e->args[i - 1].name, a->name) >= 0)
            aq_wire_refuse(w, "arguments are not in order");
    }
}

static void read_decoys(aq_wire *w, aq_event *e)
{
    e->decoy_count = aq_wire_byte(w, AQ_EVENT_DECOYS);
    for (size_t i = 0; i < e->decoy_count && !w->bad; i++) {
        e->decoys[i] = aq_wire_name(w);
        if (i > 0 && !w->bad && strcmp(e->decoys[i - 1], e->decoys[i]) >= 0)
            aq_wire_refuse(w, "decoys are not in order");
    }
}

static void read_payload(aq_wire *w, aq_event *e)
{
    uint8_t flags;

    e->seq = aq_wire_number(w, AQ_WIRE_COUNT);
    e->time = aq_wire_number(w, INT64_MAX);
    e->process = (uint32_t)aq_wire_number(w, UINT32_MAX);
    e->thread = (uint32_t)aq_wire_number(w, UINT32_MAX);
    e->kind = (aq_event_kind)aq_wire_byte(w, AQ_EVENT_KINDS - 1);
    flags = aq_wire_byte(w, ALL);
    if ((flags & OBJECT_CUT && !(flags & HAS_OBJECT)) ||
        (flags & IS_DECLARED && flags & NOT_DECLARED))
        aq_wire_refuse(w, "flags contradict each other");
    e->declared = flags & IS_DECLARED    ? AQ_DECLARED_YES
                  : flags & NOT_DECLARED ? AQ_DECLARED_NO
                                         : AQ_DECLARED_UNKNOWN;
    e->op = aq_wire_name(w);
    if (!w->bad && !is_op(e->op))
        aq_wire_refuse(w, "an op holds other signs than a-z, 0-9 and -");
    if (flags & HAS_OBJECT) {
        e->object = aq_wire_bytes(w, AQ_EVENT_TEXT, &e->object_len);
        e->object_cut = flags & OBJECT_CUT;
    }
    read_args(w, e);
    e->result = aq_wire_signed(w);
    read_decoys(w, e);
    if (flags & HAS_RULE)
        e->rule = aq_wire_name(w);
    aq_wire_done(w);
}

ssize_t aq_event_read(aq_arena *a, const void *data, size_t len, aq_event *ret, aq_err *err)
{
    const char *bad = NULL;
    aq_event e = {0};
    aq_wire w;
    size_t size;
    char type;
    int r = aq_wire_record(data, len, &type, &w, &size, &bad);

    (void)a; /* names carry their terminator, so nothing needs a copy */
    if (r == 0)
        return 0;
    if (r > 0 && type != 'E')
        bad = "no event record";
    else if (r > 0)
        read_payload(&w, &e), bad = w.bad;
    if (bad)
        return aq_fail(err, -EBADMSG, "event: %s", bad);
    *ret = e;
    return (ssize_t)size;
}

/* Text that needs no quoting is most of it; it is copied whole. */
static void json_bytes(aq_buf *out, const char *s, size_t len)
{
    aq_auto_buf quoted = {0};
    size_t i = 0;

    while (i < len && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
        i++;
    if (i == len) {
        aq_buf_reserve(out, len + 2);
        aq_buf_addc(out, '"');
        aq_buf_add(out, s, len);
        aq_buf_addc(out, '"');
        return;
    }
    aq_text_quote(&quoted, s, len);
    aq_json_string(out, aq_buf_str(&quoted));
}

static void json_text(aq_buf *out, const char *s, size_t len, bool cut)
{
    if (cut)
        aq_buf_adds(out, "{\"cut\":true,\"text\":");
    json_bytes(out, s, bounded(len));
    if (cut)
        aq_buf_addc(out, '}');
}

static void decimal(aq_buf *out, int64_t v)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t rest = v < 0 ? -(uint64_t)v : (uint64_t)v;

    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (v < 0)
        digits[--at] = '-';
    aq_buf_add(out, digits + at, sizeof digits - at);
}

/* Numbers that some JSON readers would round are written as text. */
static void json_number(aq_buf *out, int64_t v)
{
    if (v <= (int64_t)AQ_WIRE_COUNT && v >= -(int64_t)AQ_WIRE_COUNT) {
        decimal(out, v);
        return;
    }
    aq_buf_adds(out, "{\"number\":\"");
    decimal(out, v);
    aq_buf_adds(out, "\"}");
}

static void json_name(aq_buf *out, const char *key, const char *name)
{
    aq_buf_adds(out, key);
    if (!name) {
        aq_buf_adds(out, "null");
        return;
    }
    aq_buf_addc(out, '"');
    aq_buf_adds(out, name);
    aq_buf_addc(out, '"');
}

static void json_args(const sorted *s, aq_buf *out)
{
    aq_buf_adds(out, "{\"args\":{");
    for (size_t i = 0; i < s->arg_count; i++) {
        const aq_event_arg *a = s->args[i];
        json_name(out, i ? "," : "", a->name);
        aq_buf_addc(out, ':');
        if (a->bytes)
            json_text(out, a->bytes, a->len, arg_cut(a));
        else
            json_number(out, a->number);
    }
    aq_buf_addc(out, '}');
}

static void json_line(const aq_event *e, bool whole, aq_buf *out)
{
    static const char *const declared[] = {
        [AQ_DECLARED_UNKNOWN] = "null", [AQ_DECLARED_YES] = "true", [AQ_DECLARED_NO] = "false"};
    sorted s;

    sort_parts(e, &s);
    json_args(&s, out);
    aq_buf_adds(out, ",\"declared\":");
    aq_buf_adds(out, declared[e->declared]);
    aq_buf_adds(out, ",\"decoys\":[");
    for (size_t i = 0; i < s.decoy_count; i++)
        json_name(out, i ? "," : "", s.decoys[i]);
    json_name(out, "],\"kind\":", kinds[e->kind]);
    aq_buf_adds(out, ",\"object\":");
    if (e->object)
        json_text(out, e->object, e->object_len, object_cut(e));
    else
        aq_buf_adds(out, "null");
    json_name(out, ",\"op\":", e->op);
    aq_buf_adds(out, ",\"process\":");
    decimal(out, e->process);
    aq_buf_adds(out, ",\"result\":");
    json_number(out, e->result);
    json_name(out, ",\"rule\":", e->rule);
    if (whole) {
        aq_buf_adds(out, ",\"seq\":");
        decimal(out, (int64_t)e->seq);
    }
    aq_buf_adds(out, ",\"thread\":");
    decimal(out, e->thread);
    if (whole) {
        aq_buf_adds(out, ",\"time\":");
        json_number(out, (int64_t)e->time);
    }
    aq_buf_adds(out, "}\n");
}

void aq_event_jsonl(const aq_event *e, aq_buf *out)
{
    json_line(e, true, out);
}

void aq_event_canonical(const aq_event *e, aq_buf *out)
{
    json_line(e, false, out);
}
