/* The canonical form: golden vectors hold, another schedule is the same run, another act is not,
 * and nothing that a hostile stream says about births breaks it. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "golden.h"
#include "observation_samples.h"
#include "observe/canon.h"
#include "unit.h"

/* Decoys of this world. */
static const aq_mark decoys[] = {{"host", "10.0.0.7", 8}, {"person", "Ada", 3}};

static void each(const aq_event *e, void *canon)
{
    aq_canon_event(canon, e);
}

static aq_digest canon_of(const aq_buf *stream, uint64_t *unborn)
{
    aq_auto_arena a = aq_arena_new();
    aq_canon *c = aq_canon_new(aq_marks_new(a, decoys, 2), NULL, NULL);
    aq_observation o;
    aq_err err = {0};
    aq_digest d;

    if (aq_observation_read(a, stream->data, stream->len, each, c, &o, &err) < 0)
        fail_msg("%s", err.text);
    d = aq_canon_end(c, &o);
    if (unborn)
        *unborn = aq_canon_unborn(c);
    aq_canon_free(c);
    return d;
}

static void golden_vectors(void **state)
{
    aq_auto_fd int dir = golden_folder("observation");

    (void)state;
    for (size_t i = 0; i < SAMPLES; i++) {
        aq_auto_buf bin = {0}, line = {0};
        char hex[AQ_SHA256_HEX];
        aq_observation o;
        aq_digest d;

        samples[i].write(&bin, &o);
        d = canon_of(&bin, NULL);
        aq_buf_addf(&line, "%s\n", aq_digest_hex(&d, hex));
        golden_equal(dir, samples[i].name, "canon", &line);
    }
}

/* ---- schedules ---- */

typedef struct act {
    uint32_t process, thread;
    const char *op;
    int64_t child; /* its argument; -1: it has none */
    const char *object;
    const char *how; /* of an edge, from the thread `child` of its process */
} act;

static aq_digest run_of(const act *acts, size_t count, const char *world, uint64_t *unborn)
{
    aq_auto_buf out = {0};
    aq_recorder *r = aq_recorder_new("container", world, &out);
    aq_observation o = {.exit_kind = AQ_EXIT_STATUS};

    for (size_t i = 0; i < count; i++) {
        bool edge = acts[i].how, birth = !edge && acts[i].child >= 0;
        aq_event e = sample_event(birth || edge ? AQ_EVENT_PROCESS : AQ_EVENT_FILE, acts[i].op,
                                  acts[i].object, birth ? 100 + (int)i : 0);

        e.process = acts[i].process, e.thread = acts[i].thread;
        e.time = 1000 * i + (*world == 'B');
        if (birth)
            sample_number(&e, "child", acts[i].child);
        if (edge) {
            e.args[e.arg_count++] =
                (aq_event_arg){.name = "how", .bytes = acts[i].how, .len = strlen(acts[i].how)};
            sample_number(&e, "process", acts[i].process);
            sample_number(&e, "thread", acts[i].child);
        }
        aq_recorder_event(r, &e);
    }
    aq_recorder_end(r, &o);
    aq_recorder_free(r);
    return canon_of(&out, unborn);
}

#define RUN(acts, world) run_of(acts, sizeof(acts) / sizeof *(acts), world, NULL)

static void another_schedule_is_the_same_run(void **state)
{
    static const act one[] = {{0, 0, "thread", 1, NULL, NULL}, {0, 0, "thread", 2, NULL, NULL},
                              {0, 1, "open", -1, "/a", NULL},  {0, 1, "fork", 1, NULL, NULL},
                              {0, 2, "fork", 2, NULL, NULL},   {1, 0, "open", -1, "/b", NULL},
                              {2, 0, "open", -1, "/c", NULL}};
    /* The second thread is quicker: the processes have other numbers. */
    static const act other[] = {{0, 0, "thread", 1, NULL, NULL}, {0, 0, "thread", 2, NULL, NULL},
                                {0, 2, "fork", 1, NULL, NULL},   {1, 0, "open", -1, "/c", NULL},
                                {0, 1, "open", -1, "/a", NULL},  {0, 1, "fork", 2, NULL, NULL},
                                {2, 0, "open", -1, "/b", NULL}};
    /* The children have changed places. */
    static const act swapped[] = {{0, 0, "thread", 1, NULL, NULL}, {0, 0, "thread", 2, NULL, NULL},
                                  {0, 1, "open", -1, "/a", NULL},  {0, 1, "fork", 1, NULL, NULL},
                                  {0, 2, "fork", 2, NULL, NULL},   {1, 0, "open", -1, "/c", NULL},
                                  {2, 0, "open", -1, "/b", NULL}};
    aq_digest a = RUN(one, "A"), b = RUN(other, "B"), c = RUN(swapped, "A");

    (void)state;
    assert_true(aq_digest_equal(&a, &b));
    assert_false(aq_digest_equal(&a, &c));
}

static void another_waker_is_another_run(void **state)
{
    static const act one[] = {{0, 0, "thread", 1, NULL, NULL},
                              {0, 0, "thread", 2, NULL, NULL},
                              {0, 1, "open", -1, "/a", NULL},
                              {0, 2, "after", 1, NULL, "futex"}};
    static const act later[] = {{0, 0, "thread", 1, NULL, NULL},
                                {0, 0, "thread", 2, NULL, NULL},
                                {0, 2, "after", 1, NULL, "futex"},
                                {0, 1, "open", -1, "/a", NULL}};
    static const act waker[] = {{0, 0, "thread", 1, NULL, NULL},
                                {0, 0, "thread", 2, NULL, NULL},
                                {0, 1, "open", -1, "/a", NULL},
                                {0, 2, "after", 0, NULL, "futex"}};
    static const act how[] = {{0, 0, "thread", 1, NULL, NULL},
                              {0, 0, "thread", 2, NULL, NULL},
                              {0, 1, "open", -1, "/a", NULL},
                              {0, 2, "after", 1, NULL, "pipe"}};
    aq_digest d = RUN(one, "A"), same = RUN(later, "B"), by = RUN(waker, "A"),
              by_pipe = RUN(how, "A");

    (void)state;
    assert_true(aq_digest_equal(&d, &same));
    assert_false(aq_digest_equal(&d, &by));
    assert_false(aq_digest_equal(&d, &by_pipe));
}

static void another_act_is_another_run(void **state)
{
    static const act rows[][2] = {
        {{0, 0, "open", -1, "/a", NULL}, {0, 0, "open", -1, "/b", NULL}},
        {{0, 0, "open", -1, "/b", NULL}, {0, 0, "open", -1, "/a", NULL}},
        {{0, 0, "open", -1, "/a", NULL}, {0, 0, "stat", -1, "/b", NULL}},
        {{0, 0, "open", -1, "/a", NULL}, {0, 1, "open", -1, "/b", NULL}},
        {{0, 0, "open", -1, "/home/Ada", NULL}, {0, 0, "open", -1, "/b", NULL}}};
    enum { ROWS = sizeof rows / sizeof *rows };
    aq_digest d[ROWS];

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        d[i] = RUN(rows[i], "A");
        for (size_t k = 0; k < i; k++)
            assert_false(aq_digest_equal(&d[i], &d[k]));
    }
}

/* Born twice, by itself, before it acts, by nobody; and a family of ten thousand generations. */
static void hostile_births(void **state)
{
    static const act acts[] = {
        {5, 5, "open", -1, "/x", NULL},       {0, 0, "fork", 0, NULL, NULL},
        {0, 0, "thread", 0, NULL, NULL},      {0, 0, "fork", 5, NULL, NULL},
        {0, 0, "fork", 5, NULL, NULL},        {0, 0, "fork", UINT32_MAX, NULL, NULL},
        {0, 0, "fork", INT64_MAX, NULL, NULL}};
    enum { DEEP = 10000 };
    aq_auto_free act *deep = aq_alloc(DEEP * sizeof *deep);
    uint64_t unborn;

    (void)state;
    run_of(acts, sizeof acts / sizeof *acts, "A", &unborn);
    assert_int_equal(unborn, 1);
    for (uint32_t i = 0; i < DEEP; i++)
        deep[i] = (act){i, 0, "fork", i + 1, NULL, NULL};
    run_of(deep, DEEP, "A", &unborn);
    assert_int_equal(unborn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_vectors),
        cmocka_unit_test(another_schedule_is_the_same_run),
        cmocka_unit_test(another_waker_is_another_run),
        cmocka_unit_test(another_act_is_another_run),
        cmocka_unit_test(hostile_births),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
