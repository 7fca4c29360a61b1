/* Sample runs that tests and golden vectors share. Each writes one stream; changing one means a new
 * golden vector, and that means a new version of the format. */
#pragma once

#include <string.h>

#include "model/observation.h"

static inline aq_event sample_event(aq_event_kind kind, const char *op, const char *object,
                                    int64_t result)
{
    return (aq_event){.kind = kind,
                      .op = op,
                      .object = object,
                      .object_len = object ? strlen(object) : 0,
                      .result = result};
}

static inline aq_output sample_output(const char *stream, const char *text)
{
    return (aq_output){.stream = stream,
                       .bytes = strlen(text),
                       .digest = aq_sha256(text, strlen(text)),
                       .head = text,
                       .head_len = strlen(text)};
}

static inline void sample_empty(aq_buf *out, aq_observation *o)
{
    aq_recorder *r = aq_recorder_new("container", "A", out);

    *o = (aq_observation){.exit_kind = AQ_EXIT_STATUS};
    aq_recorder_end(r, o);
    aq_recorder_free(r);
}

static inline void sample_six_kinds(aq_buf *out, aq_observation *o)
{
    aq_recorder *r = aq_recorder_new("container", "A", out);
    aq_event e[AQ_EVENT_KINDS] = {
        sample_event(AQ_EVENT_PROCESS, "exec", "/usr/bin/python3", 0),
        sample_event(AQ_EVENT_FILE, "open", "/home/ada/.aws/credentials", 3),
        sample_event(AQ_EVENT_CLOCK, "sleep", NULL, 0),
        sample_event(AQ_EVENT_ENTROPY, "getrandom", NULL, 32),
        sample_event(AQ_EVENT_NETWORK, "dns-query", "collector.example", -2),
        sample_event(AQ_EVENT_SYSCALL, "ptrace", NULL, -1),
    };
    const aq_output outputs[] = {sample_output("stdout", "done\n"), sample_output("stderr", "")};
    const aq_file_change changes[] = {
        {"/home/ada/b", 'M', 3, aq_sha256("new", 3), {{0}}},
        {"/home/ada/a", 'A', 1, aq_sha256("x", 1), {{0}}},
        {"/home/ada/c", 'D', 0, {{0}}, {{0}}},
    };
    const char *reached[] = {"scripts/run.py", "SKILL.md", "scripts/run.py"};

    e[0].args[0] = (aq_event_arg){.name = "argv", .bytes = "python3\0run.py", .len = 14};
    e[0].arg_count = 1;
    e[1].args[0] = (aq_event_arg){.name = "mode", .number = 438};
    e[1].args[1] = (aq_event_arg){.name = "flags", .number = 0};
    e[1].arg_count = 2;
    e[1].decoys[0] = "file:aws.credentials";
    e[1].decoys[1] = "aws.secret-key";
    e[1].decoy_count = 2;
    e[1].declared = AQ_DECLARED_NO;
    e[2].args[0] = (aq_event_arg){.name = "ns", .number = 31536000000000000};
    e[2].arg_count = 1;
    e[4].declared = AQ_DECLARED_NO;
    e[4].rule = "network.undeclared";
    e[5].declared = AQ_DECLARED_YES;
    for (uint32_t i = 0; i < AQ_EVENT_KINDS; i++) {
        e[i].time = i * UINT64_C(7000000000000000);
        e[i].process = i / 2;
        e[i].thread = i % 2;
        aq_recorder_event(r, &e[i]);
    }
    *o = (aq_observation){.exit_kind = AQ_EXIT_STATUS,
                          .exit_value = 1,
                          .outputs = outputs,
                          .output_count = 2,
                          .changes = changes,
                          .change_count = 3,
                          .reached = reached,
                          .reached_count = 3,
                          .cpu_ns = 123456789,
                          .peak_memory = 9 << 20,
                          .written_bytes = 4};
    aq_recorder_end(r, o);
    aq_recorder_free(r);
    o->outputs = NULL, o->changes = NULL, o->reached = NULL;
}

static inline void sample_edges(aq_buf *out, aq_observation *o)
{
    static const char hostile[] =
        "/tmp/\xff\x1b[31m \"quoted\" back\\slash \xe2\x80\xae line\n\0end";
    aq_recorder *r = aq_recorder_new("microvm", "A'", out);
    const aq_file_change change = {"/tmp/\xc3\xa9\xc3", 'A', 0, aq_sha256("", 0), {{0}}};
    char text[AQ_EVENT_TEXT + 1];
    aq_event e = {.kind = AQ_EVENT_FILE, .op = "rename", .object = hostile};

    memset(text, 'z', sizeof text);
    e.object_len = sizeof hostile - 1;
    e.time = INT64_MAX;
    e.process = e.thread = UINT32_MAX;
    e.result = INT64_MIN;
    e.args[0] = (aq_event_arg){.name = "max", .number = INT64_MAX};
    e.args[1] = (aq_event_arg){.name = "min", .number = INT64_MIN};
    e.args[2] = (aq_event_arg){.name = "edge", .number = INT64_C(9007199254740991)};
    e.args[3] = (aq_event_arg){.name = "past", .number = INT64_C(9007199254740992)};
    e.args[4] = (aq_event_arg){.name = "minus", .number = INT64_C(-9007199254740991)};
    e.args[5] = (aq_event_arg){.name = "long", .bytes = text, .len = sizeof text};
    e.args[6] = (aq_event_arg){.name = "head", .bytes = "GET /", .len = 5, .cut = true};
    e.args[7] = (aq_event_arg){.name = "none", .bytes = "", .len = 0};
    e.arg_count = 8;
    aq_recorder_event(r, &e);
    e = (aq_event){.kind = AQ_EVENT_NETWORK, .op = "send", .object = text};
    e.object_len = sizeof text;
    aq_recorder_event(r, &e);
    *o = (aq_observation){.exit_kind = AQ_EXIT_SIGNAL,
                          .exit_value = 9,
                          .changes = &change,
                          .change_count = 1,
                          .cpu_ns = UINT64_MAX};
    aq_recorder_end(r, o);
    aq_recorder_free(r);
    o->changes = NULL;
}

static inline void sample_flood(aq_buf *out, aq_observation *o)
{
    aq_recorder *r = aq_recorder_new("container", "B", out);

    aq_recorder_limit(r, 3);
    for (int i = 0; i < 10; i++) {
        aq_event e = sample_event(i % 2 ? AQ_EVENT_CLOCK : AQ_EVENT_FILE, "read", "/x", i);
        aq_recorder_event(r, &e);
    }
    *o = (aq_observation){.exit_kind = AQ_EXIT_BUDGET, .exit_value = 2};
    aq_recorder_end(r, o);
    aq_recorder_free(r);
}

static inline void sample_number(aq_event *e, const char *name, int64_t number)
{
    e->args[e->arg_count++] = (aq_event_arg){.name = name, .number = number};
}

/* Births in two orders, everything that names somebody, and spans of time. */
static inline void sample_births(aq_buf *out, aq_observation *o)
{
    static const struct {
        uint32_t process, thread;
        aq_event_kind kind;
        const char *op, *name, *more;
        int64_t number, second, result;
    } rows[] = {
        {0, 0, AQ_EVENT_PROCESS, "fork", "child", "flags", 1, 17, 5},
        {0, 0, AQ_EVENT_PROCESS, "thread", "child", "flags", 1, 99, 6},
        {0, 1, AQ_EVENT_PROCESS, "fork", "child", "flags", 2, 17, 7},
        {1, 0, AQ_EVENT_PROCESS, "thread", "child", "flags", 1, 99, 8},
        {1, 1, AQ_EVENT_PROCESS, "kill", "process", "target", 0, 2, 0},
        {0, 0, AQ_EVENT_PROCESS, "signal", "from", "signal", 1, 10, 0},
        {0, 0, AQ_EVENT_PROCESS, "kill", "process", "thread", 1, 1, 0},
        {1, 1, AQ_EVENT_PROCESS, "signal", "from", "signal", 9, 10, 0},
        {1, 0, AQ_EVENT_PROCESS, "exec", "caller", "x", 1, 0, 0},
        {0, 0, AQ_EVENT_PROCESS, "wait", "child", "status", 1, 3, 0},
        {2, 0, AQ_EVENT_FILE, "open", "flags", "mode", 0, 0, 7},
        {2, 0, AQ_EVENT_FILE, "open", "flags", "mode", 0, 0, -2},
        {2, 0, AQ_EVENT_CLOCK, "sleep", "absolute", "ns", 1, 999999700, 0},
        {2, 0, AQ_EVENT_CLOCK, "sleep", "clock", "ns", 1, 999999700, 0},
        {2, 0, AQ_EVENT_CLOCK, "wait", "call", "ns", 1, 3162, 0},
        {2, 0, AQ_EVENT_CLOCK, "wait", "call", "ns", 1, 3161, 0},
        {2, 0, AQ_EVENT_CLOCK, "wait", "call", "ns", 1, INT64_MAX, 0},
        {2, 0, AQ_EVENT_SYSCALL, "preempted", "a", "b", 1, 1, 0},
        {0, 1, AQ_EVENT_PROCESS, "after", "process", "thread", 1, 1, 0},
        {2, 0, AQ_EVENT_PROCESS, "after", "process", "thread", 3, 0, 0},
        {7, 7, AQ_EVENT_PROCESS, "exit", "status", "x", 0, 0, 0},
    };
    aq_recorder *r = aq_recorder_new("container", "A", out);
    static const char plain[] = "hello {decoy:person} at {decoy:host}\n";
    aq_output output = sample_output("stdout", "hello Ada at 10.0.0.7\n");
    const aq_file_change change = {
        .path = "/home/Ada/x", .change = 'A', .size = 1, .digest = aq_sha256("x", 1)};

    output.content = aq_sha256(plain, sizeof plain - 1);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_event e =
            sample_event(rows[i].kind, rows[i].op, i % 3 ? "/home/Ada/bin" : NULL, rows[i].result);

        e.process = rows[i].process, e.thread = rows[i].thread;
        sample_number(&e, rows[i].name, rows[i].number);
        sample_number(&e, rows[i].more, rows[i].second);
        if (i == 10)
            e.args[e.arg_count++] =
                (aq_event_arg){.name = "given", .bytes = "10.0.0.7Ada", .len = 11};
        aq_recorder_event(r, &e);
    }
    *o = (aq_observation){.exit_kind = AQ_EXIT_STATUS,
                          .outputs = &output,
                          .output_count = 1,
                          .changes = &change,
                          .change_count = 1};
    aq_recorder_end(r, o);
    aq_recorder_free(r);
    o->outputs = NULL, o->changes = NULL;
}

static const struct {
    const char *name;
    void (*write)(aq_buf *out, aq_observation *o);
} samples[] = {
    {"empty", sample_empty}, {"six-kinds", sample_six_kinds}, {"edges", sample_edges},
    {"flood", sample_flood}, {"births", sample_births},
};
enum { SAMPLES = sizeof samples / sizeof *samples };
