/* How fast are observations written and read? A million events through the recorder and back,
 * against the same events as JSON lines through jansson. Prints; judges nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "model/observation.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void make_event(uint64_t i, char *path, size_t size, aq_event *e)
{
    int len =
        snprintf(path, size, "/home/ada/project/src/file-%llu.py", (unsigned long long)i % 977);

    *e = (aq_event){.kind = AQ_EVENT_FILE,
                    .op = "open",
                    .object = path,
                    .object_len = (size_t)len,
                    .time = i * 1000,
                    .process = (uint32_t)(i % 7),
                    .result = (int64_t)(i % 300),
                    .declared = AQ_DECLARED_YES};
    e->args[0] = (aq_event_arg){.name = "flags", .number = 524288};
    e->args[1] = (aq_event_arg){.name = "mode", .number = 438};
    e->arg_count = 2;
}

static json_t *event_json(const aq_event *e, uint64_t seq)
{
    return json_pack("{s{sI,sI},sb,s[],ss,ss,ss,si,sI,sn,sI,si,sI}", "args", "flags",
                     (json_int_t)e->args[0].number, "mode", (json_int_t)e->args[1].number,
                     "declared", 1, "decoys", "kind", aq_event_kind_name(e->kind), "object",
                     e->object, "op", e->op, "process", (int)e->process, "result",
                     (json_int_t)e->result, "rule", "seq", (json_int_t)seq, "thread",
                     (int)e->thread, "time", (json_int_t)e->time);
}

static void report(const char *what, uint64_t events, size_t bytes, double seconds)
{
    printf("%-34s %8.2f M events/s  %8.1f MB/s  %7.1f MB\n", what, (double)events / seconds / 1e6,
           (double)bytes / seconds / 1e6, (double)bytes / 1e6);
}

static void bench_jansson(uint64_t events)
{
    double start = now();
    size_t bytes = 0;
    char path[80];
    aq_event e;

    for (uint64_t i = 0; i < events; i++) {
        aq_auto_json json_t *j = NULL;
        aq_auto_free char *text = NULL;

        make_event(i, path, sizeof path, &e);
        j = event_json(&e, i);
        text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
        bytes += strlen(text) + 1;
    }
    report("jansson: JSON lines, no digest", events, bytes, now() - start);
}

int main(int argc, char **argv)
{
    uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0}, lines = {0};
    aq_recorder *r = aq_recorder_new("container", "A", &stream);
    aq_observation o = {0};
    aq_err err = {0};
    double start = now();
    char path[80];
    aq_event e;

    aq_recorder_limit(r, UINT64_MAX);
    for (uint64_t i = 0; i < events; i++) {
        make_event(i, path, sizeof path, &e);
        aq_recorder_event(r, &e);
    }
    aq_recorder_end(r, &o);
    aq_recorder_free(r);
    report("write binary, both digests", events, stream.len, now() - start);
    start = now();
    if (aq_observation_read(a, stream.data, stream.len, NULL, NULL, &o, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 70;
    }
    report("read binary, both digests checked", o.events, stream.len, now() - start);
    start = now();
    if (aq_observation_jsonl(stream.data, stream.len, &lines, &err) < 0)
        return 70;
    report("binary to JSON lines, checked", o.events, lines.len, now() - start);
    bench_jansson(events);
    return 0;
}
