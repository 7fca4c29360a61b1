/* Reading the JSON line of an event, as hostile as the binary form; see event.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "model/event.h"
#include "model/wire.h"

static int refuse(aq_err *err, const char *field, const char *why)
{
    return aq_fail(err, -EBADMSG, "event: %s %s", field, why);
}

/* A name must be one, and only one spelling of it exists. */
static int get_name(aq_arena *a, const json_t *v, const char *field, const char **ret, aq_err *err)
{
    const char *s = json_string_value(v);

    if (!s || !aq_wire_is_name(s, json_string_length(v)))
        return refuse(err, field, "is no name");
    *ret = aq_arena_strdup(a, s);
    return 0;
}

static int get_bytes(aq_arena *a, const json_t *v, const char *field, const char **ret, size_t *len,
                     bool *cut, aq_err *err)
{
    static const char *const keys[] = {"cut", "text", NULL};
    aq_auto_buf raw = {0}, back = {0};
    const json_t *text = v;
    const char *s;

    *cut = json_is_object(v);
    if (*cut) {
        if (aq_json_only_keys(v, "event", keys, NULL) < 0 ||
            !json_is_true(json_object_get(v, "cut")))
            return refuse(err, field, "has another shape than {cut: true, text}");
        text = json_object_get(v, "text");
    }
    s = json_string_value(text);
    if (!s || aq_text_unquote(&raw, s, strlen(s)) < 0 || raw.len > AQ_EVENT_TEXT)
        return refuse(err, field, "is no quoted text of at most 4,096 bytes");
    aq_text_quote(&back, aq_buf_str(&raw), raw.len);
    if (strcmp(aq_buf_str(&back), s) != 0)
        return refuse(err, field, "is quoted otherwise than it should be");
    *ret = aq_arena_strndup(a, raw.data, raw.len);
    *len = raw.len;
    return 0;
}

static bool is_number(const json_t *v)
{
    return json_is_integer(v) || (json_is_object(v) && json_object_get(v, "number"));
}

static int get_number(const json_t *v, const char *field, int64_t *ret, aq_err *err)
{
    const char *s = aq_json_str(v, "number");
    int64_t n = json_integer_value(v);
    bool big, text = json_is_object(v);
    aq_auto_buf back = {0};

    if (text) {
        if (!s || json_object_size(v) != 1)
            return refuse(err, field, "has another shape than {number}");
        errno = 0;
        n = strtoll(s, NULL, 10);
        aq_buf_addf(&back, "%" PRId64, n);
        if (errno || strcmp(aq_buf_str(&back), s) != 0)
            return refuse(err, field, "is no number of 64 bits");
    } else if (!json_is_integer(v)) {
        return refuse(err, field, "is no number");
    }
    big = n > (int64_t)AQ_WIRE_COUNT || n < -(int64_t)AQ_WIRE_COUNT;
    if (big != text)
        return refuse(err, field, "is written otherwise than its size asks for");
    *ret = n;
    return 0;
}

static int get_count(const json_t *line, const char *field, uint64_t max, uint64_t *ret,
                     aq_err *err)
{
    const json_t *v = json_object_get(line, field);
    int64_t n = -1;

    if (!v || get_number(v, field, &n, err) < 0 || n < 0 || (uint64_t)n > max)
        return refuse(err, field, "is missing or out of range");
    *ret = (uint64_t)n;
    return 0;
}

static int compare_args(const void *a, const void *b)
{
    return strcmp(((const aq_event_arg *)a)->name, ((const aq_event_arg *)b)->name);
}

static int get_args(aq_arena *a, const json_t *args, aq_event *e, aq_err *err)
{
    const char *key;
    json_t *v;
    int r;

    if (!json_is_object(args) || json_object_size(args) > AQ_EVENT_ARGS)
        return refuse(err, "args", "is no object of at most 8 members");
    json_object_foreach ((json_t *)args, key, v) {
        aq_event_arg *arg = &e->args[e->arg_count++];
        if (!aq_wire_is_name(key, strlen(key)))
            return refuse(err, "args", "has a member that is no name");
        arg->name = aq_arena_strdup(a, key);
        if (is_number(v))
            r = get_number(v, "args", &arg->number, err);
        else
            r = get_bytes(a, v, "args", &arg->bytes, &arg->len, &arg->cut, err);
        if (r < 0)
            return r;
    }
    if (e->arg_count)
        qsort(e->args, e->arg_count, sizeof *e->args, compare_args);
    return 0;
}

static int get_decoys(aq_arena *a, const json_t *list, aq_event *e, aq_err *err)
{
    size_t i;
    json_t *v;
    int r;

    if (!json_is_array(list) || json_array_size(list) > AQ_EVENT_DECOYS)
        return refuse(err, "decoys", "is no list of at most 8 names");
    json_array_foreach ((json_t *)list, i, v) {
        if ((r = get_name(a, v, "decoys", &e->decoys[i], err)) < 0)
            return r;
        if (i > 0 && strcmp(e->decoys[i - 1], e->decoys[i]) >= 0)
            return refuse(err, "decoys", "is not sorted");
        e->decoy_count++;
    }
    return 0;
}

static int get_kind(const json_t *line, aq_event *e, aq_err *err)
{
    const char *s = aq_json_str(line, "kind");

    for (size_t k = 0; s && k < AQ_EVENT_KINDS; k++) {
        if (strcmp(aq_event_kind_name((aq_event_kind)k), s) == 0) {
            e->kind = (aq_event_kind)k;
            return 0;
        }
    }
    return refuse(err, "kind", "is none of the six");
}

/* The fields that are words: op, object, rule, declared. */
static int get_words(aq_arena *a, const json_t *line, aq_event *e, aq_err *err)
{
    const json_t *object = json_object_get(line, "object"), *rule = json_object_get(line, "rule"),
                 *declared = json_object_get(line, "declared");
    int r = get_name(a, json_object_get(line, "op"), "op", &e->op, err);

    if (r == 0 && e->op[strspn(e->op, "abcdefghijklmnopqrstuvwxyz0123456789-")])
        r = refuse(err, "op", "holds other signs than a-z, 0-9 and -");
    if (r == 0 && !json_is_null(object))
        r = get_bytes(a, object, "object", &e->object, &e->object_len, &e->object_cut, err);
    if (r == 0 && !json_is_null(rule))
        r = get_name(a, rule, "rule", &e->rule, err);
    if (r == 0 && !json_is_boolean(declared) && !json_is_null(declared))
        r = refuse(err, "declared", "is not true, false or null");
    e->declared = json_is_true(declared)    ? AQ_DECLARED_YES
                  : json_is_false(declared) ? AQ_DECLARED_NO
                                            : AQ_DECLARED_UNKNOWN;
    return r;
}

int aq_event_from_json(aq_arena *a, const json_t *line, aq_event *ret, aq_err *err)
{
    static const char *const keys[] = {"args",   "declared", "decoys", "kind", "object",
                                       "op",     "process",  "result", "rule", "seq",
                                       "thread", "time",     NULL};
    uint64_t process = 0, thread = 0;
    aq_event e = {0};
    int r = aq_json_only_keys(line, "event", keys, err);

    if (r < 0)
        return r;
    if (json_object_size(line) != sizeof keys / sizeof *keys - 1)
        return refuse(err, "line", "lacks a field");
    if ((r = get_count(line, "seq", AQ_WIRE_COUNT, &e.seq, err)) < 0 ||
        (r = get_count(line, "time", INT64_MAX, &e.time, err)) < 0 ||
        (r = get_count(line, "process", UINT32_MAX, &process, err)) < 0 ||
        (r = get_count(line, "thread", UINT32_MAX, &thread, err)) < 0 ||
        (r = get_kind(line, &e, err)) < 0 || (r = get_words(a, line, &e, err)) < 0 ||
        (r = get_args(a, json_object_get(line, "args"), &e, err)) < 0 ||
        (r = get_number(json_object_get(line, "result"), "result", &e.result, err)) < 0 ||
        (r = get_decoys(a, json_object_get(line, "decoys"), &e, err)) < 0)
        return r;
    e.process = (uint32_t)process;
    e.thread = (uint32_t)thread;
    *ret = e;
    return 0;
}
