/* Floods: bounded, counted, never silent; a new act is never hidden by an old one. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/decode.h"

typedef struct world {
    aq_buf out;
    aq_tracer t;
    aq_proc p, q;
} world;

/* A process that has opened nothing yet. */
static void enter(world *w, aq_proc *p, uint32_t ordinal)
{
    *p = (aq_proc){.ordinal = ordinal, .world = &w->t, .pidfd = -1};
    for (int i = 0; i < AQ_FD_SLOTS; i++)
        p->fds[i].fd = -1;
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->t.rec = aq_recorder_new("container", "A", &w->out);
    w->t.procs = &w->p;
    enter(w, &w->p, 0);
    enter(w, &w->q, 1);
    w->p.next = &w->q;
}

static void act(world *w, aq_proc *p, aq_event_kind kind, const char *op, const char *object,
                int64_t flags, int64_t result)
{
    aq_event e = aq_event_of(kind, op);

    aq_event_object(&e, object);
    aq_event_number(&e, "flags", flags);
    e.result = result;
    aq_note_proc(&w->t, p, 0, &e);
}

typedef struct seen {
    uint64_t events, repeats, said, counted, unnamed, ns;
    char last[64];
} seen;

static void look(const aq_event *e, void *arg)
{
    seen *s = arg;

    s->events++;
    if (strcmp(e->op, "repeat") != 0)
        return;
    s->repeats++;
    if (e->object)
        snprintf(s->last, sizeof s->last, "%.*s", (int)e->object_len, e->object);
    for (int i = 0; i < e->arg_count; i++) {
        if (strcmp(e->args[i].name, "left-out") == 0)
            s->said += (uint64_t)e->args[i].number;
        if (strcmp(e->args[i].name, "unnamed") == 0)
            s->unnamed += (uint64_t)e->args[i].number;
        if (strcmp(e->args[i].name, "ns") == 0)
            s->ns += (uint64_t)e->args[i].number;
        if (strcmp(e->args[i].name, "count") == 0)
            s->counted += (uint64_t)e->args[i].number;
    }
}

static seen end(world *w)
{
    aq_auto_arena a = aq_arena_new();
    aq_observation o = {.backend = "container", .world = "A"}, read;
    seen s = {0};
    aq_err err = {0};

    aq_decode_end(&w->t, &w->p, 0);
    aq_decode_end(&w->t, &w->q, 0);
    aq_decode_close(&w->t);
    aq_recorder_end(w->t.rec, &o);
    if (aq_observation_read(a, w->out.data, w->out.len, look, &s, &read, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(read.dropped, 0);
    aq_recorder_free(w->t.rec);
    aq_buf_free(&w->out);
    return s;
}

enum { ENDS = 4 }; /* exit and counts of two processes */

static void the_same_act_again(void **state)
{
    world w;
    seen s;

    (void)state;
    begin(&w);
    for (int i = 0; i < 100000; i++)
        act(&w, &w.p, AQ_EVENT_FILE, "open", "/etc/passwd", 0, 3);
    act(&w, &w.p, AQ_EVENT_FILE, "open", "/etc/passwd", 1, 3);   /* for writing: another act */
    act(&w, &w.p, AQ_EVENT_FILE, "open", "/etc/passwd", 0, -13); /* that failed: another one */
    act(&w, &w.q, AQ_EVENT_FILE, "open", "/etc/passwd", 0, 3);   /* of another process */
    s = end(&w);
    assert_int_equal(s.events, 32 + 3 + 1 + ENDS);
    assert_int_equal(s.repeats, 1);
    assert_int_equal(s.said, 100000 - 32);
    assert_int_equal(s.counted, 100000);
    assert_string_equal(s.last, "/etc/passwd");
}

static void one_look_at_the_clock(void **state)
{
    world w;
    seen s;

    (void)state;
    begin(&w);
    for (int i = 0; i < 7; i++)
        act(&w, &w.p, AQ_EVENT_CLOCK, "now", NULL, 0, 0);
    s = end(&w);
    assert_int_equal(s.events, 1 + 1 + ENDS);
    assert_int_equal(s.counted, 7);
}

static void ever_new_objects(void **state)
{
    world w;
    seen s;
    char name[64];

    (void)state;
    begin(&w);
    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "/tmp/%d", i);
        act(&w, &w.p, AQ_EVENT_FILE, "mkdir", name, 0, 0);
    }
    act(&w, &w.p, AQ_EVENT_NETWORK, "connect", "203.0.113.9:443", 0, 0); /* not pushed out */
    s = end(&w);
    assert_int_equal(s.events - s.repeats, 10000 + 1 + ENDS);
    assert_int_equal(s.said, 40000);
}

/* Many processes, each below its own limits: the world's limit holds, and all is said. */
static void many_processes(void **state)
{
    enum { PROCESSES = 30, EACH = 9000 };
    world w;
    seen s;
    char name[64];

    (void)state;
    begin(&w);
    for (uint32_t n = 0; n < PROCESSES; n++) {
        aq_proc p;

        enter(&w, &p, n + 2);
        for (int i = 0; i < EACH; i++) {
            snprintf(name, sizeof name, "/tmp/%d", i);
            act(&w, &p, AQ_EVENT_FILE, "unlink", name, 0, -2);
        }
        aq_decode_end(&w.t, &p, 9);
    }
    s = end(&w);
    assert_int_equal(s.events - s.repeats, 100000 + 2 * PROCESSES + ENDS);
    assert_int_equal(s.said, PROCESSES * EACH - 100000);
}

/* More summaries than there may be of one kind: what they would have said is in those of the world.
 * Two ops share the bound, and the time that was slept is not lost either. */
static void too_many_summaries(void **state)
{
    enum { PROCESSES = 80, EACH = 1500, LIMIT = 100000 };
    world w;
    seen s;

    (void)state;
    begin(&w);
    for (uint32_t n = 0; n < PROCESSES; n++) {
        aq_proc p;

        enter(&w, &p, n + 2);
        for (int i = 0; i < EACH; i++)
            for (int again = 0; again < 3; again++) /* one is shown of each */
                act(&w, &p, AQ_EVENT_CLOCK, n < PROCESSES / 2 ? "now" : "counter", NULL, i, 0);
        aq_decode_end(&w.t, &p, 9);
    }
    s = end(&w);
    assert_int_equal(s.repeats, LIMIT + 1);
    assert_int_equal(s.said, 2 * PROCESSES * EACH);
    assert_int_equal(s.events, PROCESSES * EACH + s.repeats + 2 * PROCESSES + ENDS);
    assert_int_equal(s.unnamed, 2 * (PROCESSES * EACH - LIMIT));
}

static void slept_is_summed(void **state)
{
    world w;
    seen s;

    (void)state;
    begin(&w);
    for (int i = 0; i < 100; i++) {
        aq_event e = aq_event_of(AQ_EVENT_CLOCK, "sleep");

        aq_event_number(&e, "ns", 7);
        aq_note_proc(&w.t, &w.p, 0, &e);
    }
    s = end(&w);
    assert_int_equal(s.said, 100 - 32);
    assert_int_equal(s.ns, 7 * (100 - 32));
    assert_int_equal(s.unnamed, 0);
}

static void counts_of_all_calls(void **state)
{
    world w;
    seen s;

    (void)state;
    begin(&w);
    for (int i = 0; i < AQ_CALL_NUMBERS; i++)
        w.p.counts[i] = aq_call_row_of(i)->name ? UINT32_MAX : 0;
    w.p.unknown = 7;
    s = end(&w); /* longer than one argument can be: read back without complaint */
    assert_int_equal(s.events, ENDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_act_again),  cmocka_unit_test(one_look_at_the_clock),
        cmocka_unit_test(ever_new_objects),    cmocka_unit_test(many_processes),
        cmocka_unit_test(counts_of_all_calls), cmocka_unit_test(too_many_summaries),
        cmocka_unit_test(slept_is_summed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
