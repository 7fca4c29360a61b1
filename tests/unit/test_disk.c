/* What files look like: places, numbers when there are too many, times that cannot be. */
#include "unit.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "observe/disk.h"

enum { ROOT = 1, SPACE = 2, HOST = 3, NUMBERS = 1 << 19, STAMPS = 1 << 17 };
static const int64_t start = 1777626000000000000, second = 1000000000;

typedef struct world {
    aq_buf out;
    aq_machine machine;
    aq_tracer t;
    aq_proc p;
    aq_task k;
} world;

static int set_up(void **state)
{
    world *w = aq_alloc(sizeof *w);

    w->machine = (aq_machine){
        .entropy = {1, 2, 3}, .start_ns = start, .uptime_ns = (uint64_t)(200000 * second)};
    w->t.plan.machine = &w->machine;
    w->t.rec = aq_recorder_new("container", "A", &w->out);
    w->t.procs = w->k.proc = &w->p;
    w->t.last = &w->k;
    w->p.world = &w->t;
    w->p.pidfd = -1;
    for (int i = 0; i < AQ_FD_SLOTS; i++)
        w->p.fds[i].fd = -1;
    aq_disk_new(&w->t);
    w->t.disk->looked = true;
    w->t.disk->root = ROOT;
    w->t.disk->space = SPACE;
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    aq_disk_free(&w->t);
    aq_decode_close(&w->t);
    aq_recorder_free(w->t.rec);
    aq_buf_free(&w->out);
    free(w);
    return 0;
}

static void count_face(const aq_event *e, void *arg)
{
    *(int *)arg += strcmp(e->op, "face") == 0;
}

/* Events that say that something did not fit. */
static int said(world *w)
{
    aq_auto_arena a = aq_arena_new();
    aq_observation o = {.backend = "container", .world = "A"}, read;
    aq_err err = {0};
    int n = 0;

    aq_decode_end(&w->t, &w->p, 0);
    aq_decode_close(&w->t);
    aq_recorder_end(w->t.rec, &o);
    if (aq_observation_read(a, w->out.data, w->out.len, count_face, &n, &read, &err) < 0)
        fail_msg("%s", err.text);
    return n;
}

static void test_places(void **state)
{
    static const struct {
        const char *name, *place;
    } row[] = {{"/", "/"},
               {"/home/x", "/"},
               {"/tmp", "/tmp"},
               {"/tmp/x (deleted)", "/tmp"},
               {"/tmpfile", "/"},
               {"/dev/shm/x", "/dev/shm"},
               {"/dev/shmx", "/dev"},
               {"/run/user/1000/bus", "/run/user/1000"},
               {"/run/user/10001", "/run"},
               {"/proc/12/fd/3", "/proc"},
               {"pipe", NULL},
               {"socket:1/1", NULL},
               {"/memfd:x (deleted)", NULL},
               {"anon_inode:[eventpoll]", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const aq_place *p = aq_disk_place(row[i].name);

        if (!row[i].place)
            assert_null(p);
        else
            assert_string_equal(p->path, row[i].place);
    }
    for (size_t i = 1; i < aq_place_count; i++) { /* parents come first, ids are one's own */
        bool parent = false;

        for (size_t j = 0; j < i; j++) {
            parent |= aq_places[j].id == aq_places[i].parent;
            assert_int_not_equal(aq_places[j].id, aq_places[i].id);
        }
        assert_true(parent);
    }
}

static void test_numbers(void **state)
{
    world *w = *state;
    aq_tracer *t = &w->t;
    uint64_t a = aq_disk_inode(t, "/usr/a", HOST, 77), b = aq_disk_inode(t, "/usr/b", HOST, 78);

    assert_int_not_equal(a, b);
    assert_int_equal(aq_disk_inode(t, "/usr/link", HOST, 77), a); /* the object counts */
    assert_int_not_equal(aq_disk_inode(t, "/usr/c", HOST + 1, 77), a);
    assert_int_equal(aq_disk_inode(t, "/", ROOT, 1), 2);
    assert_int_not_equal(aq_disk_inode(t, "/home/u/f", SPACE, 9),
                         aq_disk_inode(t, "/etc/f", ROOT, 9));
    assert_int_equal(aq_disk_inode(t, "/tmp", SPACE, 9), 1);
    assert_int_equal(aq_disk_inode(t, "/tmp/f", SPACE, 9), 9);
    assert_int_equal(aq_disk_inode(t, "net", HOST, 5), 4026531840);
    assert_int_equal(aq_disk_inode(t, "/proc/1/stat", HOST, 5),
                     aq_disk_inode(t, "/proc/1/stat", HOST, 6)); /* the name counts */
    assert_int_equal(aq_disk_inode(t, "pipe", HOST, 5), aq_disk_anonymous(t, 5, NULL));
    assert_int_not_equal(aq_disk_anonymous(t, 5, NULL), aq_disk_anonymous(t, 6, NULL));
}

/* All different while they fit; then said once, and the same again for the same file. */
static void test_too_many_numbers(void **state)
{
    world *w = *state;
    unsigned char *taken = aq_alloc(1 << 24);
    uint64_t late;

    for (uint64_t i = 0; i < NUMBERS; i++) {
        uint64_t n = aq_disk_inode(&w->t, "/usr/f", HOST, i * 7919);

        assert_in_range(n, 1, (1 << 24) - 1);
        assert_false(taken[n]);
        taken[n] = 1;
    }
    assert_false(w->t.disk->full);
    late = aq_disk_inode(&w->t, "/usr/g", HOST, 5);
    assert_true(late >= 1 << 23);
    assert_int_equal(aq_disk_inode(&w->t, "/usr/g", HOST, 5), late);
    assert_int_not_equal(aq_disk_inode(&w->t, "/usr/g", HOST, 6), late);
    aq_disk_inode(&w->t, "/usr/f", HOST, 0);
    aq_disk_anonymous(&w->t, 1, NULL);
    free(taken);
    assert_int_equal(said(w), 1);
}

static struct statx of(uint64_t dev, uint64_t ino, int64_t written)
{
    return (struct statx){
        .stx_dev_major = major(dev),
        .stx_dev_minor = minor(dev),
        .stx_ino = ino,
        .stx_mask = STATX_BASIC_STATS | STATX_BTIME,
        .stx_mtime = {.tv_sec = written / second, .tv_nsec = (uint32_t)(written % second)},
        .stx_btime = {.tv_sec = 4 * start / second}};
}

static int64_t shown(world *w, const char *name, struct statx s)
{
    aq_times_show(&w->t, &w->k, name, 1234, &s);
    return s.stx_mtime.tv_sec * second + s.stx_mtime.tv_nsec;
}

/* Whatever the host's clock says: before the start, and in order. */
static void test_no_time_after_the_start(void **state)
{
    static const int64_t steps[] = {
        -400 * 86400, -3600, -61,  -59,   -1,        0,          1,           2,
        60,           600,   3600, 86400, 7 * 86400, 30 * 86400, 365 * 86400, 3650 * 86400LL};
    world *w = *state;
    int64_t before[2] = {INT64_MIN, INT64_MIN};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int64_t at = start + steps[i] * second;
        int64_t now[2] = {shown(w, "/usr/f", of(HOST, 5, at)),
                          shown(w, "/home/u/f", of(SPACE, 5, at))};

        for (int j = 0; j < 2; j++) {
            assert_true(now[j] <= start && now[j] > before[j]);
            assert_true(steps[i] > -60 || now[j] == at);
            before[j] = now[j];
        }
    }
}

/* Made with the world and given no time: as old as its place. */
static void test_never_given_a_time(void **state)
{
    world *w = *state;
    struct statx s = of(ROOT, 5, 2 * start);

    s.stx_btime = s.stx_mtime;
    assert_true(shown(w, "/etc", s) < start - 300 * 86400 * second);
    assert_true(shown(w, "/run", s) > start - 300000 * second);
    assert_int_equal(shown(w, "/etc", s), shown(w, "/etc", s));
}

static void test_too_many_times(void **state)
{
    world *w = *state;

    for (uint64_t i = 1; i <= STAMPS; i++)
        aq_times_read(&w->t, &w->k, i);
    assert_false(w->t.disk->full);
    aq_times_read(&w->t, &w->k, STAMPS + 1);
    aq_times_read(&w->t, &w->k, STAMPS + 2);
    aq_times_read(&w->t, &w->k, 1);
    assert_int_equal(said(w), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_time_after_the_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_never_given_a_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_times, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
