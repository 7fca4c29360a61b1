/* Observation streams and JSON event lines from the hostile side. What is taken must print back to
 * itself: an event has one binary form and one JSON line. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/observation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const aq_event *e, void *arg)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *line = NULL;
    aq_auto_buf text = {0}, first = {0}, second = {0};
    aq_event back;

    (void)arg;
    aq_event_write(e, &first);
    aq_event_jsonl(e, &text);
    if (aq_json_parse(text.data, text.len, "line", &line, NULL) < 0 ||
        aq_event_from_json(a, line, &back, NULL) < 0)
        abort();
    aq_event_write(&back, &second);
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
        abort();
}

/* An event alone, and the bytes as a line of JSON. */
static void one_event(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *line = NULL;
    aq_auto_buf back = {0};
    aq_err err = {0};
    aq_event e;
    ssize_t n = aq_event_read(a, data, size, &e, &err);

    if (n > 0) {
        aq_event_write(&e, &back);
        if (back.len != (size_t)n || memcmp(back.data, data, back.len) != 0)
            abort();
        same_again(&e, NULL);
    }
    if (aq_json_parse((const char *)data, size, "line", &line, &err) == 0 &&
        aq_event_from_json(a, line, &e, &err) == 0)
        same_again(&e, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf lines = {0};
    aq_err err = {0};
    aq_observation o;

    one_event(data, size);
    if (aq_observation_read(a, data, size, same_again, NULL, &o, &err) == 0) {
        aq_auto_json json_t *summary = aq_observation_json(&o);
        if (!summary || aq_observation_jsonl(data, size, &lines, &err) < 0)
            abort();
    }
    return 0;
}
