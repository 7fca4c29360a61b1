/* The backend interface: a small backend in this process fails at each step in turn, and whatever
 * it does, teardown runs and a run gives a whole observation or nothing. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/observation.h"
#include "sandbox/backend.h"

/* What the fake does wrong, and what it counted. */
static struct {
    const char *fail_at; /* step that fails, or NULL */
    bool silent;         /* fails without words */
    int code;
    enum {
        STREAM_GOOD,
        STREAM_NONE,
        STREAM_CUT,
        STREAM_FLIPPED,
        STREAM_TWICE,
        STREAM_OTHER
    } stream;
    int alive, prepared, launched, waited, torn;
} fake;

struct aq_aquarium {
    char *memory; /* so that a missing teardown is a leak that the sanitizer reports */
};

static int step(const char *name, aq_err *err)
{
    if (!fake.fail_at || strcmp(fake.fail_at, name) != 0)
        return 0;
    return fake.silent ? fake.code : aq_fail(err, fake.code, "the fake fails at %s", name);
}

static int fake_probe(aq_arena *a, aq_probe *ret, aq_err *err)
{
    (void)err;
    *ret = (aq_probe){.usable = true, .guarantee = "none: this is a fake"};
    ret->points = aq_arena_alloc(a, sizeof *ret->points);
    ret->points[0] = (aq_probe_point){.name = "pretence", .usable = true};
    ret->count = 1;
    return 0;
}

static int fake_prepare(const aq_plan *plan, aq_aquarium **ret, aq_err *err)
{
    int r = step("prepare", err);

    assert_non_null(plan);
    if (r != 0)
        return r;
    fake.prepared++;
    if (fake.fail_at && strcmp(fake.fail_at, "nothing") == 0)
        return 0; /* success, and no aquarium */
    *ret = aq_alloc(sizeof **ret);
    (*ret)->memory = aq_alloc(16);
    fake.alive++;
    return 0;
}

static int fake_launch(aq_aquarium *aq, aq_err *err)
{
    assert_non_null(aq);
    fake.launched++;
    return step("launch", err);
}

static void record(const char *backend, aq_buf *stream)
{
    aq_recorder *r = aq_recorder_new(backend, "A", stream);
    aq_event e = {.kind = AQ_EVENT_PROCESS, .op = "exec", .object = "/bin/true", .object_len = 9};
    aq_observation o = {0};

    aq_recorder_event(r, &e);
    aq_recorder_end(r, &o);
    aq_recorder_free(r);
}

static int fake_wait(aq_aquarium *aq, aq_buf *stream, aq_err *err)
{
    int r = step("wait", err);

    assert_non_null(aq);
    fake.waited++;
    if (fake.stream != STREAM_NONE)
        record(fake.stream == STREAM_OTHER ? "other" : "fake", stream);
    if (fake.stream == STREAM_TWICE)
        record("fake", stream);
    if (fake.stream == STREAM_CUT)
        stream->len -= 70;
    if (fake.stream == STREAM_FLIPPED)
        stream->data[20] ^= 1;
    return r;
}

static void fake_teardown(aq_aquarium *aq)
{
    fake.torn++;
    if (!aq)
        return;
    fake.alive--;
    free(aq->memory);
    free(aq);
}

static const aq_backend backend = {.name = "fake",
                                   .tier = AQ_T0,
                                   .probe = fake_probe,
                                   .prepare = fake_prepare,
                                   .launch = fake_launch,
                                   .wait = fake_wait,
                                   .teardown = fake_teardown};

static int run(aq_buf *stream, aq_err *err)
{
    static const aq_plan plan;

    return aq_backend_run(&backend, &plan, stream, err);
}

static void good_run(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};
    aq_observation o;
    aq_err err = {0};

    (void)state;
    memset(&fake, 0, sizeof fake);
    assert_int_equal(run(&b, &err), 0);
    assert_int_equal(aq_observation_read(a, b.data, b.len, NULL, NULL, &o, &err), 0);
    assert_int_equal(o.events, 1);
    assert_int_equal(fake.prepared + fake.launched + fake.waited + fake.torn, 4);
    assert_int_equal(fake.alive, 0);
}

static void every_failure_tears_down(void **state)
{
    static const struct {
        const char *step;
        int launched, waited;
    } cases[] = {{"prepare", 0, 0}, {"nothing", 0, 0}, {"launch", 1, 0}, {"wait", 1, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int how = 0; how < 3; how++) {
            aq_auto_buf b = {0};
            aq_err err = {0};

            memset(&fake, 0, sizeof fake);
            fake.fail_at = cases[i].step;
            fake.silent = how > 0;
            fake.code = how == 2 ? 5 : -EIO; /* 5: not even a negative errno */
            assert_true(run(&b, &err) < 0);
            assert_int_equal(err.code,
                             strcmp(cases[i].step, "nothing") == 0 || how == 2 ? -EPROTO : -EIO);
            assert_non_null(strstr(err.text, "backend fake"));
            assert_int_equal(fake.launched, cases[i].launched);
            assert_int_equal(fake.waited, cases[i].waited);
            assert_int_equal(fake.torn, 1);
            assert_int_equal(fake.alive, 0);
            assert_int_equal(b.len, 0); /* nothing is handed on */
        }
    }
}

static void bad_streams_are_refused(void **state)
{
    static const int expected[] = {[STREAM_NONE] = -EPIPE,
                                   [STREAM_CUT] = -EPIPE,
                                   [STREAM_FLIPPED] = -EBADMSG,
                                   [STREAM_TWICE] = -EBADMSG,
                                   [STREAM_OTHER] = -EBADMSG};

    (void)state;
    for (unsigned i = STREAM_NONE; i <= STREAM_OTHER; i++) {
        aq_auto_buf b = {0};
        aq_err err = {0};

        memset(&fake, 0, sizeof fake);
        fake.stream = i;
        aq_buf_adds(&b, "before");
        assert_int_equal(run(&b, &err), expected[i]);
        assert_non_null(strstr(err.text, "observation"));
        assert_string_equal(b.data, "before");
        assert_int_equal(fake.torn, 1);
        assert_int_equal(fake.alive, 0);
    }
    /* The caller need not want the words. */
    fake.stream = STREAM_CUT;
    aq_auto_buf b = {0};
    assert_int_equal(run(&b, NULL), -EPIPE);
}

/* Every row of the table fills every place; holds for an empty table too. */
static void table_is_whole(void **state)
{
    (void)state;
    for (const aq_backend *const *b = aq_backends(); *b; b++) {
        assert_non_null((*b)->name);
        assert_true((*b)->probe && (*b)->guarantee && (*b)->prepare && (*b)->launch && (*b)->wait &&
                    (*b)->teardown);
        assert_ptr_equal(aq_backend_find((*b)->name), *b);
        (*b)->teardown(NULL);
    }
    assert_null(aq_backend_find("no-such-backend"));
    assert_string_equal(aq_sandbox_tier_name(AQ_T0), "t0");
    assert_string_equal(aq_sandbox_tier_name(AQ_T2), "t2");
}

static void probe_speaks(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_probe p;
    aq_err err = {0};

    (void)state;
    assert_int_equal(backend.probe(a, &p, &err), 0);
    assert_true(p.usable && p.guarantee && p.count == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_run),
        cmocka_unit_test(every_failure_tears_down),
        cmocka_unit_test(bad_streams_are_refused),
        cmocka_unit_test(table_is_whole),
        cmocka_unit_test(probe_speaks),
    };

    return cmocka_run_group_tests_name("backend", tests, NULL, NULL);
}
