/* Marks: the longest value wins, nothing can be forged, and two worlds that say the same come to
 * the same digest however their bytes are cut. */
#include <string.h>

#include "base/cleanup.h"
#include "model/marks.h"
#include "unit.h"

static const aq_mark rows[2][4] = {
    {{"home", "/home/ada", 9}, {"key", "/home/ada/Zq81x", 15}, {"id", "41", 2}, {"none", "", 0}},
    {{"home", "/home/bob", 9}, {"key", "/home/bob/Yw93k", 15}, {"id", "75", 2}, {"none", "", 0}},
};

static const char *replaced(aq_arena *a, const char *text)
{
    aq_auto_buf out = {0};

    aq_marks_replace(aq_marks_new(a, rows[0], 4), text, strlen(text), false, &out);
    return aq_arena_strdup(a, aq_buf_str(&out));
}

static void test_longest_wins(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"nothing here", "nothing here"},
        {"/home/ada", "{decoy:home}"},
        {"x/home/ada/Zq81x.", "x{decoy:key}."},
        {"/home/ada/Zq81", "{decoy:home}/Zq81"},
        {"/home/home/ada/", "/home{decoy:home}/"},
        {"4141 4", "{decoy:id}{decoy:id} 4"},
    };
    aq_auto_arena a = aq_arena_new();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(replaced(a, cases[i][0]), cases[i][1]);
}

static void test_cut_text(void **state)
{
    static const char *const cases[][2] = {
        {"see /home/ad", "see {decoy:key/8}"},
        {"see /ho", "see /ho"},
        {"x/home/ada", "x{decoy:key/9}"},
        {"/home/ada/x", "{decoy:home}/x"},
    };
    aq_auto_arena a = aq_arena_new();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_auto_buf out = {0};

        aq_marks_replace(aq_marks_new(a, rows[0], 4), cases[i][0], strlen(cases[i][0]), true, &out);
        assert_string_equal(aq_buf_str(&out), cases[i][1]);
    }
}

static void test_not_forged(void **state)
{
    aq_auto_arena a = aq_arena_new();

    (void)state;
    assert_string_equal(replaced(a, "{decoy:home}"), "{decoy:{}home}");
    assert_string_equal(replaced(a, "{decoy:{}home}"), "{decoy:{}{}home}");
    assert_string_equal(replaced(a, "{decoy"), "{decoy");
}

static void test_none(void **state)
{
    aq_auto_buf out = {0};
    aq_hash *h = aq_hash_begin();
    aq_mark_at at = {0};
    aq_digest plain = aq_sha256("/home/ada", 9), d;

    (void)state;
    aq_marks_replace(NULL, "/home/ada", 9, false, &out);
    assert_string_equal(aq_buf_str(&out), "/home/ada");
    aq_marks_hash(NULL, &at, "/home/ada", 9, h);
    d = aq_hash_end(h);
    assert_true(aq_digest_equal(&d, &plain));
}

/* The digests after each of three pieces. */
static void in_pieces(aq_arena *a, int world, const char *text, size_t first, size_t second,
                      aq_digest ret[3])
{
    const aq_marks *m = aq_marks_new(a, rows[world], 4);
    size_t len = strlen(text), from[] = {0, first, second, len};
    aq_hash *h = aq_hash_begin();
    aq_mark_at at = {0};

    for (int i = 0; i < 3; i++) {
        aq_marks_hash(m, &at, text + from[i], from[i + 1] - from[i], h);
        ret[i] = aq_hash_peek(h);
    }
    aq_hash_abort(h);
}

/* The first three bytes of a value count as they are when it is cut there; here they are alike. */
static void test_any_cut(void **state)
{
    static const char *const text[2] = {"see /home/ada/Zq81x and /home/ada in /home/ada/x",
                                        "see /home/bob/Yw93k and /home/bob in /home/bob/x"};
    aq_auto_arena a = aq_arena_new();
    size_t len = strlen(text[0]);

    (void)state;
    for (size_t i = 0; i <= len; i++)
        for (size_t k = i; k <= len; k++) {
            aq_digest x[3], y[3];

            in_pieces(a, 0, text[0], i, k, x);
            in_pieces(a, 1, text[1], i, k, y);
            for (int n = 0; n < 3; n++)
                if (!aq_digest_equal(&x[n], &y[n]))
                    fail_msg("cut at %zu and %zu: piece %d differs", i, k, n);
        }
}

static void test_byte_by_byte(void **state)
{
    aq_auto_arena a = aq_arena_new();
    const char *text[2] = {"x /home/ada/Zq81x/home/ada", "x /home/bob/Yw93k/home/bob"};
    aq_digest d[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        const aq_marks *m = aq_marks_new(a, rows[i], 4);
        aq_hash *h = aq_hash_begin();
        aq_mark_at at = {0};

        for (const char *p = text[i]; *p; p++)
            aq_marks_hash(m, &at, p, 1, h);
        d[i] = aq_hash_end(h);
    }
    assert_true(aq_digest_equal(&d[0], &d[1]));
}

/* One byte more or another one shows, in the piece where it is. */
static void test_any_byte(void **state)
{
    static const char text[] = "see /home/ada/Zq81x and that";
    aq_auto_arena a = aq_arena_new();
    aq_digest was[3], is[3];
    char other[sizeof text];

    (void)state;
    in_pieces(a, 0, text, 4, 19, was);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(other, text, sizeof text);
        other[i] ^= 1;
        in_pieces(a, 0, other, 4, 19, is);
        assert_int_equal(aq_digest_equal(&was[0], &is[0]), i >= 4);
        assert_int_equal(aq_digest_equal(&was[1], &is[1]), i >= 19);
        assert_false(aq_digest_equal(&was[2], &is[2]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_wins), cmocka_unit_test(test_not_forged),
        cmocka_unit_test(test_cut_text),     cmocka_unit_test(test_none),
        cmocka_unit_test(test_any_cut),      cmocka_unit_test(test_byte_by_byte),
        cmocka_unit_test(test_any_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
