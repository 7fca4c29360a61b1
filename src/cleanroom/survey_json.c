/* The survey as JSON: part of the report, and what the jailed child answers. Reading treats the
 * answer as hostile: counts must add up, text is cleaned and cut. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cleanroom/survey.h"
#include "cleanroom/survey_core.h"

static const struct {
    const char *key;
    size_t offset;
} counts[] = {
    {"files", offsetof(aq_survey, files)},
    {"bytes", offsetof(aq_survey, bytes)},
    {"lines", offsetof(aq_survey, lines)},
    {"generated_files", offsetof(aq_survey, generated_files)},
    {"generated_bytes", offsetof(aq_survey, generated_bytes)},
    {"vendored_files", offsetof(aq_survey, vendored_files)},
    {"vendored_bytes", offsetof(aq_survey, vendored_bytes)},
    {"minified_files", offsetof(aq_survey, minified_files)},
    {"minified_bytes", offsetof(aq_survey, minified_bytes)},
    {"binary_files", offsetof(aq_survey, binary_files)},
    {"binary_bytes", offsetof(aq_survey, binary_bytes)},
    {"look_lines", offsetof(aq_survey, look_lines)},
    {"look_files", offsetof(aq_survey, look_files)},
    {"grave_lines", offsetof(aq_survey, grave_lines)},
    {"grave_files", offsetof(aq_survey, grave_files)},
};

static const char *const largest_keys[AQ_SHARES] = {
    [AQ_CONTENT_BINARY] = "binary_largest",
    [AQ_CONTENT_VENDORED] = "vendored_largest",
    [AQ_CONTENT_MINIFIED] = "minified_largest",
    [AQ_CONTENT_GENERATED] = "generated_largest",
};

static json_t *look_json(const aq_look *look)
{
    json_t *o = json_object();

    json_object_set_new(o, "file", json_string(look->file));
    json_object_set_new(o, "line", json_integer(look->line));
    json_object_set_new(o, "score", json_integer(look->score));
    json_object_set_new(o, "weight", json_integer(look->weight));
    json_object_set_new(o, "in_file", json_integer(look->in_file));
    json_object_set_new(o, "why", json_string(look->why));
    json_object_set_new(o, "text", json_string(look->text));
    return o;
}

json_t *aq_survey_json(const aq_survey *s)
{
    json_t *o = json_object(), *looks = json_array();

    json_object_set_new(o, "complete", json_boolean(s->complete));
    json_object_set_new(o, "reason", s->reason ? json_string(s->reason) : json_null());
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const uint64_t *n = (const uint64_t *)(const void *)((const char *)s + counts[i].offset);
        json_object_set_new(o, counts[i].key, json_integer((json_int_t)*n));
    }
    for (size_t i = 0; i < AQ_SHARES; i++) {
        json_t *names = json_array();
        for (size_t n = 0; n < AQ_SHARE_NAMES && s->largest[i][n]; n++)
            json_array_append_new(names, json_string(s->largest[i][n]));
        json_object_set_new(o, largest_keys[i], names);
    }
    for (size_t i = 0; i < s->look_count; i++)
        json_array_append_new(looks, look_json(&s->looks[i]));
    json_object_set_new(o, "looks", looks);
    return o;
}

static int read_look(aq_arena *a, const json_t *from, aq_look *ret, aq_err *err)
{
    const char *file = aq_json_str(from, "file"), *why = aq_json_str(from, "why"),
               *text = aq_json_str(from, "text");
    int64_t line = aq_json_int(from, "line", -1), score = aq_json_int(from, "score", -1);
    int64_t weight = aq_json_int(from, "weight", -1), in_file = aq_json_int(from, "in_file", -1);

    if (!file || !why || !text || line < 0 || line > UINT32_MAX || score < 0 ||
        score > UINT32_MAX || weight < 0 || weight > 100 || in_file < 0 || in_file > UINT32_MAX)
        return aq_fail(err, -EBADMSG, "survey: a place to look is malformed");
    ret->file = aq_text_printable(a, file, 4100);
    ret->why = aq_text_printable(a, why, 2 * AQ_LOOK_TEXT);
    ret->text = aq_text_printable(a, text, AQ_LOOK_TEXT + 8);
    ret->line = (uint32_t)line;
    ret->score = (uint32_t)score;
    ret->weight = (uint32_t)weight;
    ret->in_file = (uint32_t)in_file;
    return 0;
}

/* Each file has one class, so the classes together cannot exceed the whole. */
static bool adds_up(const aq_survey *s, uint64_t files, uint64_t bytes)
{
    return s->files <= files && s->bytes <= bytes && s->lines <= s->bytes &&
           s->look_lines <= s->lines && s->look_files <= s->files &&
           s->grave_lines <= s->look_lines && s->grave_files <= s->look_files &&
           s->generated_files + s->vendored_files + s->minified_files + s->binary_files <=
               s->files &&
           s->generated_bytes + s->vendored_bytes + s->minified_bytes + s->binary_bytes <= s->bytes;
}

static int read_largest(aq_arena *a, const json_t *from, aq_survey *s, aq_err *err)
{
    for (size_t i = 0; i < AQ_SHARES; i++) {
        const json_t *names = json_object_get(from, largest_keys[i]), *name;
        size_t n;
        if (!json_is_array(names) || json_array_size(names) > AQ_SHARE_NAMES)
            return aq_fail(err, -EBADMSG, "survey: %s is no list of at most %d", largest_keys[i],
                           AQ_SHARE_NAMES);
        json_array_foreach (names, n, name) {
            if (!json_is_string(name))
                return aq_fail(err, -EBADMSG, "survey: %s: a path was expected", largest_keys[i]);
            s->largest[i][n] = aq_text_printable(a, json_string_value(name), 4100);
        }
    }
    return 0;
}

int aq_survey_read(aq_arena *a, const json_t *from, uint64_t files, uint64_t bytes, aq_survey *ret,
                   aq_err *err)
{
    const json_t *looks = json_object_get(from, "looks"), *row;
    aq_survey s = {.complete = json_is_true(json_object_get(from, "complete"))};
    size_t i;
    int r;

    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t *n = (uint64_t *)(void *)((char *)&s + counts[i].offset);
        int64_t value = aq_json_int(from, counts[i].key, -1);
        if (value < 0 || value > INT64_MAX / 8)
            return aq_fail(err, -EBADMSG, "survey: %s is missing or out of range", counts[i].key);
        *n = (uint64_t)value;
    }
    if (!adds_up(&s, files, bytes))
        return aq_fail(err, -EBADMSG, "survey: the counts do not add up");
    if ((r = read_largest(a, from, &s, err)) < 0)
        return r;
    if (!json_is_array(looks) || json_array_size(looks) > AQ_LOOKS)
        return aq_fail(err, -EBADMSG, "survey: looks is no list of at most %d", AQ_LOOKS);
    json_array_foreach (looks, i, row) {
        if ((r = read_look(a, row, &s.looks[i], err)) < 0)
            return r;
    }
    s.look_count = json_array_size(looks);
    *ret = s;
    return 0;
}
