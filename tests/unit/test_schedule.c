/* Schedules: what a record gives, and runs that are made again with it until they repeat. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/observation.h"
#include "session/twins.h"

typedef struct row {
    const char *op;
    int64_t process, thread, call, at, hits, jump; /* call -1: without a place */
} row;

static void record(const row *rows, size_t count, aq_buf *out)
{
    aq_recorder *rec = aq_recorder_new("container", "A", out);
    aq_observation o = {.backend = "container", .world = "A"};

    for (size_t i = 0; i < count; i++) {
        aq_event e = {.kind = AQ_EVENT_SYSCALL,
                      .op = rows[i].op,
                      .process = (uint32_t)rows[i].process,
                      .thread = (uint32_t)rows[i].thread};

        if (rows[i].call >= 0) {
            e.args[0] = (aq_event_arg){.name = "call", .number = rows[i].call};
            e.args[1] = (aq_event_arg){.name = "at", .number = rows[i].at};
            e.args[2] = (aq_event_arg){.name = "hits", .number = rows[i].hits};
            e.args[3] = (aq_event_arg){.name = "jump", .number = rows[i].jump};
            e.arg_count = 4;
        }
        aq_recorder_event(rec, &e);
    }
    aq_recorder_end(rec, &o);
    aq_recorder_free(rec);
}

static void test_rows(void **state)
{
    static const row rows[] = {{"switched", 1, 2, 30, 0x401000, 64, 0},
                               {"refused", 1, 2, 30, 0x401000, 64, 0},
                               {"preempted", 1, 2, 30, 0x402000, 64, 1},
                               {"preempted", 1, 2, -1, 0, 0, 0},
                               {"preempted", 0, 0, 7, 0, 64, 0},
                               {"preempted", 0, 0, 7, -5, 64, 0},
                               {"preempted", 0, 0, 7, INT64_C(1) << 47, 64, 0},
                               {"preempted", 0, 0, 7, 0x403000, 0, 0},
                               {"preempted", 0, 0, 7, 0x403000, AQ_SCHEDULE_HITS + 1, 0},
                               {"preempted", 0, 0, 7, 0x403000, AQ_SCHEDULE_HITS, 0}};
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_schedule s;

    (void)state;
    record(rows, sizeof rows / sizeof *rows, &stream);
    assert_int_equal(aq_schedule_read(a, stream.data, stream.len, &s, NULL), 0);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.by_clock, 2);
    assert_int_equal(s.rows[0].process, 1);
    assert_int_equal(s.rows[0].thread, 2);
    assert_int_equal(s.rows[0].call, 30);
    assert_int_equal(s.rows[0].at, 0x401000);
    assert_false(s.rows[0].jump);
    assert_true(s.rows[1].jump);
    assert_int_equal(s.rows[2].hits, AQ_SCHEDULE_HITS);
}

static void test_a_place_is_numbers(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_recorder *rec = aq_recorder_new("container", "A", &stream);
    aq_observation o = {.backend = "container", .world = "A"};
    aq_event e = {.kind = AQ_EVENT_SYSCALL, .op = "preempted", .arg_count = 3};
    aq_schedule s;

    (void)state;
    e.args[0] = (aq_event_arg){.name = "call", .bytes = "30", .len = 2};
    e.args[1] = (aq_event_arg){.name = "at", .number = 0x401000};
    e.args[2] = (aq_event_arg){.name = "hits", .number = 64};
    aq_recorder_event(rec, &e);
    aq_recorder_end(rec, &o);
    aq_recorder_free(rec);
    assert_int_equal(aq_schedule_read(a, stream.data, stream.len, &s, NULL), 0);
    assert_int_equal(s.count, 0);
}

static void test_more_than_fit(void **state)
{
    static row rows[AQ_SCHEDULE_ROWS + 10];
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_schedule s;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = (row){"preempted", 0, 0, (int64_t)i, 0x401000, 64, 0};
    record(rows, sizeof rows / sizeof *rows, &stream);
    assert_int_equal(aq_schedule_read(a, stream.data, stream.len, &s, NULL), 0);
    assert_int_equal(s.count, AQ_SCHEDULE_ROWS);
    assert_int_equal(aq_schedule_read(a, stream.data, stream.len - 1, &s, NULL), -EPIPE);
}

/* ---- runs ---- */

/* A backend whose runs are decided by the clock until they have had so many switches. */
static struct {
    unsigned runs;
    size_t needs, had;
    int fails;
} fake;

static int fake_prepare(const aq_plan *plan, aq_aquarium **ret, aq_err *err)
{
    (void)err;
    fake.had = plan->schedule->count;
    *ret = (aq_aquarium *)&fake;
    return 0;
}

static int fake_launch(aq_aquarium *aq, aq_err *err)
{
    (void)aq, (void)err;
    return 0;
}

static int fake_wait(aq_aquarium *aq, aq_buf *stream, aq_err *err)
{
    row rows[8];
    size_t n = 0;

    (void)aq;
    if (++fake.runs == (unsigned)fake.fails)
        return aq_fail(err, -EIO, "the fake fails");
    for (; n < fake.had; n++)
        rows[n] = (row){"switched", 0, 0, (int64_t)n, 0x401000, 64, 0};
    if (fake.had < fake.needs)
        rows[n] = (row){"preempted", 0, 0, (int64_t)n, 0x401000, 64, 0}, n++;
    record(rows, n, stream);
    return 0;
}

static void fake_teardown(aq_aquarium *aq)
{
    (void)aq;
}

static const aq_backend backend = {.name = "container",
                                   .prepare = fake_prepare,
                                   .launch = fake_launch,
                                   .wait = fake_wait,
                                   .teardown = fake_teardown};

static size_t run(unsigned rounds, size_t needs, size_t *given)
{
    static const char *const argv[] = {"true", NULL};
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_plan plan = {.argv = argv};
    aq_schedule schedule, last;

    memset(&fake, 0, sizeof fake);
    fake.needs = needs;
    assert_int_equal(aq_twins_run(a, &backend, &plan, rounds, &schedule, &stream, NULL), 0);
    assert_int_equal(aq_schedule_read(a, stream.data, stream.len, &last, NULL), 0);
    *given = schedule.count;
    return last.by_clock;
}

static void test_rounds(void **state)
{
    size_t given;

    (void)state;
    assert_int_equal(run(3, 0, &given), 0); /* it repeats by itself */
    assert_int_equal(fake.runs, 1);
    assert_int_equal(given, 0);
    assert_int_equal(run(3, 1, &given), 0);
    assert_int_equal(fake.runs, 2);
    assert_int_equal(given, 1);
    assert_int_equal(run(3, 2, &given), 0);
    assert_int_equal(fake.runs, 3);
    assert_int_equal(given, 2);
    assert_int_equal(run(3, 5, &given), 1); /* that is not enough, and the record says so */
    assert_int_equal(fake.runs, 3);
    assert_int_equal(given, 2);
    assert_int_equal(run(1, 1, &given), 1);
    assert_int_equal(fake.runs, 1);
}

static void test_a_run_that_fails(void **state)
{
    static const char *const argv[] = {"true", NULL};
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_plan plan = {.argv = argv};
    aq_schedule schedule;
    aq_err err = {0};

    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.needs = 1, fake.fails = 2;
    assert_int_equal(aq_twins_run(a, &backend, &plan, 3, &schedule, &stream, &err), -EIO);
    assert_int_equal(stream.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_place_is_numbers),
        cmocka_unit_test(test_more_than_fit),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_a_run_that_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
