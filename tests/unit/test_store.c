/* The store: what goes in comes out, old files are brought up to date, foreign and broken ones are
 * refused in words, and the index of names misses nothing. */
#include "unit.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "folder.h"
#include "store/store.h"

typedef struct fixture {
    char dir[64];
    aq_store *store;
    aq_arena *arena;
} fixture;

static int set_up(void **state)
{
    fixture *f = aq_alloc(sizeof *f);
    aq_err err = {0};

    make_folder(f->dir);
    f->arena = aq_arena_new();
    assert_int_equal(aq_store_open(f->dir, &f->store, &err), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    aq_store_close(f->store);
    aq_arena_free(f->arena);
    remove_folder(f->dir);
    free(f);
    return 0;
}

static void run_sql(const char *dir, const char *sql)
{
    char path[128];
    sqlite3 *db = NULL;

    snprintf(path, sizeof path, "%s/store.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static aq_submission submission(const char *id, const char *nonce, const char *publisher)
{
    return (aq_submission){.id = id, .nonce = nonce, .publisher = publisher, .time = 1800000000};
}

static void submissions_come_back(void **state)
{
    fixture *f = *state;
    aq_submission a = submission("a1", "n1", "acme"), b = submission("a2", "n2", "acme");
    aq_package package = {.digest = aq_sha256("tree", 4)};
    aq_manifest manifest = {.name = "log-reader", .version = "1"};
    aq_digest digest = aq_sha256("v", 1);
    aq_auto_json json_t *report = json_pack("{s:s, s:i}", "verdict", "review", "n", 3);
    aq_auto_json json_t *second = json_pack("{s:s}", "verdict", "pass");
    aq_auto_json json_t *back = NULL, *by_package = NULL;
    char hex[AQ_SHA256_HEX];
    aq_err err = {0};

    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);
    assert_int_equal(aq_store_begin(f->store, &b, &err), 0);
    assert_int_equal(aq_store_finish(f->store, "a1", &package, &manifest, AQ_NEEDS_REVIEW, &digest,
                                     report, 5, &err),
                     0);
    assert_int_equal(aq_store_report(f->store, "a1", &back, &err), 0);
    assert_true(json_equal(back, report));
    assert_int_equal(
        aq_store_report(f->store, aq_digest_hex(&package.digest, hex), &by_package, &err), 0);
    assert_true(json_equal(by_package, report));
    assert_int_equal(aq_store_report(f->store, "a2", &back, &err), -ENOENT);
    assert_int_equal(
        aq_store_finish(f->store, "a1", &package, &manifest, AQ_PASS, &digest, second, 6, &err),
        -EEXIST);
    assert_int_equal(
        aq_store_finish(f->store, "zz", &package, &manifest, AQ_PASS, &digest, second, 6, &err),
        -ENOENT);
}

static void replays_are_refused(void **state)
{
    fixture *f = *state;
    aq_submission a = submission("a1", "n1", "acme"), same_nonce = submission("a2", "n1", "x");
    aq_submission fresh = submission("a3", "n3", "acme"), broken = {.id = "a4"};
    aq_submission other = submission("a1", "n1", "someone-else");
    aq_auto_json json_t *report = json_pack("{s:s}", "schema", "x");
    aq_package package = {.image = -1};
    aq_manifest manifest = {0};
    aq_digest digest = {{1}};
    aq_err err = {0};

    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);
    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);           /* its walk never ended */
    assert_int_equal(aq_store_begin(f->store, &other, &err), -EEXIST); /* not the same envelope */
    assert_int_equal(
        aq_store_finish(f->store, "a1", &package, &manifest, AQ_REJECTED, &digest, report, 0, &err),
        0);
    assert_int_equal(aq_store_begin(f->store, &a, &err), -EEXIST);
    assert_non_null(strstr(err.text, "same id"));
    assert_int_equal(aq_store_begin(f->store, &same_nonce, &err), -EEXIST);
    assert_non_null(strstr(err.text, "same nonce"));
    assert_int_equal(aq_store_begin(f->store, &fresh, &err), 0); /* the store goes on */
    assert_int_equal(aq_store_begin(f->store, &broken, &err), -EINVAL);
}

static void rate_counts_our_clock(void **state)
{
    fixture *f = *state;
    aq_submission a = submission("a1", "n1", "acme"), b = submission("a2", "n2", "acme");
    aq_submission c = submission("a3", "n3", "other");
    int64_t now = aq_now();
    uint64_t count = 99;
    aq_err err = {0};

    a.time = b.time = 5; /* a publisher cannot backdate itself out of the window */
    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);
    assert_int_equal(aq_store_begin(f->store, &b, &err), 0);
    assert_int_equal(aq_store_begin(f->store, &c, &err), 0);
    assert_int_equal(aq_store_rate(f->store, "acme", false, now - 60, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(aq_store_rate(f->store, "acme", false, now + 3600, &count, &err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(aq_store_rate(f->store, "nobody", false, 0, &count, &err), 0);
    assert_int_equal(count, 0);
}

static void the_window_has_an_edge(void **state)
{
    fixture *f = *state;
    aq_submission a = submission("a1", "n1", "acme");
    uint64_t count = 99;
    aq_err err = {0};

    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);
    run_sql(f->dir, "UPDATE submission SET entered = 1000");
    assert_int_equal(aq_store_rate(f->store, "acme", false, 1000, &count, &err), 0);
    assert_int_equal(count, 1);
    assert_int_equal(aq_store_rate(f->store, "acme", false, 1001, &count, &err), 0);
    assert_int_equal(count, 0);
}

/* The ledger has at least as many entries as a report's index or the mark imply, and no mark is
 * ever taken back. */
static void the_mark_only_rises(void **state)
{
    fixture *f = *state;
    aq_submission a = submission("a1", "n1", "acme");
    aq_auto_json json_t *report = json_pack("{s:s}", "schema", "x");
    aq_package package = {.image = -1};
    aq_manifest manifest = {0};
    aq_digest first = {{1}}, second = {{2}}, got = {{0}};
    uint64_t entries = 99;
    aq_err err = {0};

    assert_int_equal(aq_store_entries(f->store, &entries, &err), 0);
    assert_int_equal(entries, 0);
    assert_int_equal(aq_store_begin(f->store, &a, &err), 0);
    assert_int_equal(
        aq_store_finish(f->store, "a1", &package, &manifest, AQ_PASS, &first, report, 5, &err), 0);
    assert_int_equal(aq_store_entries(f->store, &entries, &err), 0);
    assert_int_equal(entries, 6);
    assert_int_equal(aq_store_mark(f->store, 9, &first, &err), 0);
    assert_int_equal(aq_store_mark(f->store, 7, &second, &err), 0);
    assert_int_equal(aq_store_marked(f->store, &entries, &got, &err), 0);
    assert_int_equal(entries, 9);
    assert_true(aq_digest_equal(&got, &first));
    assert_int_equal(aq_store_entries(f->store, &entries, &err), 0);
    assert_int_equal(entries, 9);
    assert_int_equal(aq_store_mark(f->store, 12, &second, &err), 0);
    assert_int_equal(aq_store_marked(f->store, &entries, &got, &err), 0);
    assert_int_equal(entries, 12);
    assert_true(aq_digest_equal(&got, &second));
}

static void the_newest_report_of_a_package(void **state)
{
    fixture *f = *state;
    aq_package package = {.image = -1, .digest = {{7}}};
    aq_manifest manifest = {0};
    aq_digest digest = {{1}};
    char hex[AQ_SHA256_HEX];
    aq_err err = {0};

    for (int i = 0; i < 3; i++) {
        static const char *const ids[] = {"b1", "a1", "c1"}, *const nonces[] = {"n1", "n2", "n3"};
        aq_submission s = submission(ids[i], nonces[i], "acme");
        aq_auto_json json_t *report = json_pack("{s:s}", "schema", ids[i]);
        assert_int_equal(aq_store_begin(f->store, &s, &err), 0);
        assert_int_equal(aq_store_finish(f->store, ids[i], &package, &manifest, AQ_PASS, &digest,
                                         report, (uint64_t)i, &err),
                         0);
    }
    run_sql(f->dir, "UPDATE report SET finished = CASE submission WHEN 'a1' THEN 3 ELSE 2 END");
    aq_auto_json json_t *got = NULL;
    assert_int_equal(aq_store_report(f->store, aq_digest_hex(&package.digest, hex), &got, &err), 0);
    assert_string_equal(json_string_value(json_object_get(got, "schema")), "a1");
}

/* Another spelling of one id is no other publisher; another id is. */
static void rate_folds_the_publisher(void **state)
{
    static const char *const one[] = {"Caf\xc3\xa9-Tools", "caf\xc3\xa9-tools",
                                      "CAFE\xcc\x81-TOOLS", "caf\xc3\xa9\xe2\x80\x8b-tools",
                                      "\xef\xbd\x83\141f\xc3\xa9-tools"};
    static const char *const others[] = {"cafe-tools", "caf\xc3\xa9tools"};
    enum { ONE = sizeof one / sizeof *one };
    fixture *f = *state;
    uint64_t count = 0;
    aq_err err = {0};
    char id[8];

    for (size_t i = 0; i < ONE; i++) {
        aq_submission s = submission(id, id, one[i]);
        snprintf(id, sizeof id, "r%zu", i);
        assert_int_equal(aq_store_begin(f->store, &s, &err), 0);
    }
    for (size_t i = 0; i < ONE; i++) {
        assert_int_equal(aq_store_rate(f->store, one[i], false, 0, &count, &err), 0);
        assert_int_equal(count, ONE);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(aq_store_rate(f->store, others[i], false, 0, &count, &err), 0);
        assert_int_equal(count, 0);
    }
}

static void know(fixture *f, const char *space, const char *name, const char *who, bool confirmed)
{
    aq_known k = {space, name, who, confirmed};
    aq_err err = {0};

    assert_int_equal(aq_store_know(f->store, &k, &err), 0);
}

static size_t alike(fixture *f, const char *name, size_t distance, aq_known **found)
{
    size_t count = 99;
    aq_err err = {0};

    assert_int_equal(aq_store_alike(f->store, f->arena, name, distance, found, &count, &err), 0);
    return count;
}

static void names_are_found_by_likeness(void **state)
{
    fixture *f = *state;
    aq_known *found;

    know(f, "acme", "calendar-sync", "acme", true);
    know(f, "beta", "weather", "beta", false);
    assert_int_equal(alike(f, "calendar-sync", 0, &found), 1);
    assert_string_equal(found[0].namespace_, "acme");
    assert_string_equal(found[0].publisher, "acme");
    assert_true(found[0].confirmed);
    assert_int_equal(alike(f, "Calendar_Sync", 0, &found), 1);
    assert_int_equal(alike(f, "calendarsync", 0, &found), 1);
    assert_int_equal(alike(f, "c\xd0\xb0lendar.sync", 0, &found), 1); /* Cyrillic a */
    assert_int_equal(alike(f, "calender-sync", 0, &found), 0);
    assert_int_equal(alike(f, "calender-sync", 1, &found), 1);
    assert_int_equal(alike(f, "claendar-sync", 1, &found), 1);
    assert_int_equal(alike(f, "claender-sync", 1, &found), 0);
    assert_int_equal(alike(f, "claender-sync", 2, &found), 1);
    assert_int_equal(alike(f, "whether", 2, &found), 1);
    assert_int_equal(alike(f, "feather-x", 2, &found), 1); /* w→f, +x */
    assert_int_equal(alike(f, "leather-xy", 2, &found), 0);
    assert_int_equal(alike(f, "\xe5\xa4\xa9\xe6\xb0\x97", 2, &found), 0);
}

static void names_only_grow_stronger(void **state)
{
    fixture *f = *state;
    aq_known *found, bad = {"", "", "x", false}, raw = {"", "a\xff", "x", false};
    char longer[400];
    aq_known too_long = {"", longer, "x", false};
    uint64_t count;
    aq_err err = {0};

    know(f, "acme", "tool", "acme", false);
    know(f, "acme", "tool", "acme", true);
    know(f, "acme", "tool", "acme", false);
    know(f, NULL, "tool", "mallory", false);
    assert_int_equal(alike(f, "tool", 0, &found), 2);
    assert_string_equal(found[0].publisher, "mallory"); /* no namespace comes first */
    assert_true(found[1].confirmed);
    assert_int_equal(aq_store_known_count(f->store, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_int_equal(aq_store_know(f->store, &bad, &err), -EINVAL);
    assert_int_equal(aq_store_know(f->store, &raw, &err), -EILSEQ);
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(aq_store_know(f->store, &too_long, &err), -EINVAL);
    assert_int_equal(aq_store_known_count(f->store, &count, &err), 0);
    assert_int_equal(count, 2);
}

static void many_are_all_or_none(void **state)
{
    fixture *f = *state;
    aq_known many[] = {{"", "one", "x", true}, {"", "two", "x", true}, {"", "", "x", true}};
    aq_known *list;
    size_t n;
    uint64_t count;
    aq_err err = {0};

    assert_int_equal(aq_store_know_many(f->store, many, 3, &err), -EINVAL);
    assert_int_equal(aq_store_known_count(f->store, &count, &err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(aq_store_know_many(f->store, many, 2, &err), 0);
    assert_int_equal(aq_store_known_list(f->store, f->arena, NULL, 1, &list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].name, "one");
    assert_int_equal(aq_store_known_list(f->store, f->arena, &list[0], 10, &list, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_string_equal(list[0].name, "two");
}

/* Random words over few letters, so that near ones abound: the index must answer exactly what
 * measuring every pair answers. */
static void index_is_exact(void **state)
{
    enum { NAMES = 1500, QUESTIONS = 300 };
    fixture *f = *state;
    static char names[NAMES][24];
    static aq_known known[NAMES];
    static bool again[NAMES]; /* the same row came before */
    aq_known *found;
    unsigned seed = 11;
    aq_err err = {0};

    for (size_t i = 0; i < NAMES + QUESTIONS; i++) {
        char word[24] = "";
        size_t len = 1 + (size_t)rand_r(&seed) % 9;

        for (size_t j = 0; j < len; j++)
            word[j] = (char)('a' + rand_r(&seed) % 3);
        if (i < NAMES) {
            memcpy(names[i], word, sizeof word);
            known[i] = (aq_known){"", names[i], i % 2 ? "odd" : "even", false};
            for (size_t k = i % 2; k < i && !again[i]; k += 2)
                again[i] = strcmp(names[i], names[k]) == 0;
            if (i == NAMES - 1)
                assert_int_equal(aq_store_know_many(f->store, known, NAMES, &err), 0);
            continue;
        }
        for (size_t distance = 0; distance <= AQ_STORE_DISTANCE; distance++) {
            size_t n = alike(f, word, distance, &found), want = 0;

            for (size_t j = 0; j < NAMES; j++)
                want += !again[j] && aq_text_distance(names[j], word, distance) <= distance;
            assert_int_equal(n, want);
        }
    }
}

static void snapshot_ignores_order(void **state)
{
    fixture *f = *state;
    char dir[64];
    aq_store *other = NULL;
    aq_known rows[] = {{"a", "one", "x", true}, {"a", "two", "x", false}, {"b", "one", "y", false}};
    aq_digest empty, one, all, same;
    aq_err err = {0};

    make_folder(dir);
    assert_int_equal(aq_store_open(dir, &other, &err), 0);
    assert_int_equal(aq_store_snapshot(f->store, &empty, &err), 0);
    assert_int_equal(aq_store_know(f->store, &rows[0], &err), 0);
    assert_int_equal(aq_store_snapshot(f->store, &one, &err), 0);
    assert_false(aq_digest_equal(&empty, &one));
    assert_int_equal(aq_store_know_many(f->store, rows + 1, 2, &err), 0);
    assert_int_equal(aq_store_snapshot(f->store, &all, &err), 0);
    for (int i = 2; i >= 0; i--)
        assert_int_equal(aq_store_know(other, &rows[i], &err), 0);
    assert_int_equal(aq_store_snapshot(other, &same, &err), 0);
    assert_true(aq_digest_equal(&all, &same));
    rows[1].confirmed = true;
    assert_int_equal(aq_store_know(other, &rows[1], &err), 0);
    assert_int_equal(aq_store_snapshot(other, &same, &err), 0);
    assert_false(aq_digest_equal(&all, &same));
    aq_store_close(other);
    remove_folder(dir);
}

/* As docs/formats/store.md says it, made here by hand. */
static void snapshot_is_the_documented_one(void **state)
{
    static const char row[] = "acme\0tool\0someone\0"
                              "1";
    fixture *f = *state;
    aq_digest place = aq_sha256("acme\0tool", 9), bucket = aq_sha256(row, sizeof row - 1), got;
    uint8_t whole[1 + AQ_SHA256_LEN] = {place.b[0]};
    aq_digest want;
    aq_err err = {0};

    memcpy(whole + 1, bucket.b, sizeof bucket.b);
    want = aq_sha256(whole, sizeof whole);
    know(f, "acme", "tool", "someone", true);
    assert_int_equal(aq_store_snapshot(f->store, &got, &err), 0);
    assert_true(aq_digest_equal(&got, &want));
}

static void nothing_is_written_while_a_view_is_held(void **state)
{
    fixture *f = *state;
    aq_known k = {"acme", "tool", "someone", false};
    aq_digest snapshot;
    uint64_t known;
    aq_err err = {0};

    assert_int_equal(aq_store_view(f->store, &snapshot, &known, &err), 0);
    assert_int_equal(aq_store_know(f->store, &k, &err), -EBUSY);
    aq_store_view_end(f->store);
    assert_int_equal(aq_store_know(f->store, &k, &err), 0);
}

/* What another process enters while a view is held is in neither the snapshot nor an answer. */
static void a_view_holds(void **state)
{
    fixture *f = *state;
    aq_known first = {"a", "reader", "x", true}, later = {"b", "reader", "y", true};
    aq_auto_arena a = aq_arena_new();
    aq_digest before, inside, after;
    aq_store *other = NULL;
    aq_known *found = NULL;
    uint64_t known = 0;
    size_t n = 0;
    aq_err err = {0};

    assert_int_equal(aq_store_open(f->dir, &other, &err), 0);
    assert_int_equal(aq_store_know(f->store, &first, &err), 0);
    assert_int_equal(aq_store_view(f->store, &before, &known, &err), 0);
    assert_int_equal(known, 1);
    assert_int_equal(aq_store_know(other, &later, &err), 0);
    assert_int_equal(aq_store_alike(f->store, a, "reader", 1, &found, &n, &err), 0);
    assert_int_equal(n, 1);
    assert_int_equal(aq_store_alike(f->store, a, "reader", 1, &found, &n, &err), 0);
    assert_int_equal(n, 1); /* a question does not end the view */
    assert_int_equal(aq_store_snapshot(f->store, &inside, &err), 0);
    assert_true(aq_digest_equal(&before, &inside));
    assert_int_equal(aq_store_know(f->store, &later, &err), -EBUSY);
    aq_store_view_end(f->store);
    aq_store_view_end(f->store);
    assert_int_equal(aq_store_alike(f->store, a, "reader", 1, &found, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(aq_store_view(f->store, &after, &known, &err), 0);
    assert_int_equal(known, 2);
    assert_false(aq_digest_equal(&before, &after));
    aq_store_view_end(f->store);
    aq_store_view_end(NULL);
    aq_store_close(other);
}

/* ---- files ---- */

static void version_1_is_brought_up_to_date(void **state)
{
    char dir[64];
    aq_auto_buf sql = {0};
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    aq_submission again = submission("5b2f00000000000000000000000000aa", "x", "acme");
    fixture f = {.arena = a};
    aq_known *found;
    uint64_t count = 0;
    int version = 0;
    aq_err err = {0};

    (void)state;
    make_folder(dir);
    assert_int_equal(aq_read_file(-100, TEST_DATA "/store-v1.sql", 1 << 20, &sql, &err), 0);
    run_sql(dir, aq_buf_str(&sql));
    assert_int_equal(aq_store_open(dir, &f.store, &err), 0);
    assert_int_equal(aq_store_version(f.store, &version, &err), 0);
    assert_int_equal(version, 4);
    assert_int_equal(aq_store_report(f.store, again.id, &report, &err), 0);
    assert_int_equal(aq_store_begin(f.store, &again, &err), -EEXIST);
    assert_int_equal(aq_store_rate(f.store, "Acme", false, 1790000000, &count, &err), 0);
    assert_int_equal(count, 1); /* the row of version 1 is found by the folded form */
    assert_int_equal(alike(&f, "calender-sync", 2, &found), 1); /* through the new keys */
    assert_string_equal(found[0].publisher, "otto");
    assert_int_equal(alike(&f, "logreeder", 2, &found), 1);
    {
        aq_digest migrated, fresh;
        aq_store *other = NULL;
        char second[64];
        aq_known rows[] = {{"acme", "log-reader", "acme", true},
                           {"", "calendar_sync", "otto", false}};

        make_folder(second);
        assert_int_equal(aq_store_open(second, &other, &err), 0);
        assert_int_equal(aq_store_know_many(other, rows, 2, &err), 0);
        assert_int_equal(aq_store_snapshot(other, &fresh, &err), 0);
        assert_int_equal(aq_store_snapshot(f.store, &migrated, &err), 0);
        assert_true(aq_digest_equal(&fresh, &migrated));
        aq_store_close(other);
        remove_folder(second);
    }
    aq_store_close(f.store);
    remove_folder(dir);
}

static void strange_files_are_refused(void **state)
{
    static const struct {
        const char *sql, *says;
        int code;
    } cases[] = {
        {"PRAGMA application_id=1097945972; PRAGMA user_version=5; CREATE TABLE x(y)",
         "schema version 5", -EPROTONOSUPPORT},
        {"CREATE TABLE recipes(name)", "another program", -EBADMSG},
        {"PRAGMA application_id=1097945972; CREATE TABLE recipes(name)", "another program",
         -EBADMSG},
        {"PRAGMA user_version=1; CREATE TABLE submission(name)", "another program", -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dir[64];
        aq_store *s = NULL;
        aq_err err = {0};

        make_folder(dir);
        run_sql(dir, cases[i].sql);
        assert_int_equal(aq_store_open(dir, &s, &err), cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_non_null(strstr(err.text, "store.db"));
        assert_null(s);
        remove_folder(dir);
    }
}

static void file_is_ours_alone(void **state)
{
    fixture *f = *state;
    char path[128];
    struct stat st;
    aq_err err = {0};
    aq_store *s = NULL;

    know(f, "", "a", "x", false);
    for (int i = 0; i < 3; i++) {
        static const char *const ends[] = {"", "-wal", "-shm"};
        snprintf(path, sizeof path, "%s/store.db%s", f->dir, ends[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    snprintf(path, sizeof path, "%s/store.db", f->dir);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(aq_store_open(f->dir, &s, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    aq_store_close(s);
    assert_int_equal(aq_store_open("/nonexistent/folder", &s, &err), -ENOENT);
    assert_non_null(strstr(err.text, "/nonexistent/folder/store.db"));
}

int main(void)
{
#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_STORE(submissions_come_back),
        WITH_STORE(replays_are_refused),
        WITH_STORE(rate_counts_our_clock),
        WITH_STORE(the_window_has_an_edge),
        WITH_STORE(the_mark_only_rises),
        WITH_STORE(the_newest_report_of_a_package),
        WITH_STORE(rate_folds_the_publisher),
        WITH_STORE(names_are_found_by_likeness),
        WITH_STORE(names_only_grow_stronger),
        WITH_STORE(many_are_all_or_none),
        WITH_STORE(index_is_exact),
        WITH_STORE(snapshot_ignores_order),
        WITH_STORE(snapshot_is_the_documented_one),
        WITH_STORE(nothing_is_written_while_a_view_is_held),
        WITH_STORE(a_view_holds),
        cmocka_unit_test(version_1_is_brought_up_to_date),
        cmocka_unit_test(strange_files_are_refused),
        WITH_STORE(file_is_ours_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
