/* Likeness of names: each way of imitating one, and honest names that must stay apart. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static bool same(int (*form)(aq_buf *, const char *, size_t), const char *a, const char *b)
{
    aq_auto_buf x = {0}, y = {0};

    assert_int_equal(form(&x, a, strlen(a)), 0);
    assert_int_equal(form(&y, b, strlen(b)), 0);
    return strcmp(aq_buf_str(&x), aq_buf_str(&y)) == 0;
}

static void fold_joins_what_file_systems_join(void **state)
{
    (void)state;
    assert_true(same(aq_text_fold, "ReadMe.MD", "readme.md"));
    assert_true(same(aq_text_fold, "caf\xc3\xa9", "cafe\xcc\x81"));    /* NFC, NFD */
    assert_true(same(aq_text_fold, "\xef\xbd\x81\xef\xbd\x82", "ab")); /* full width */
    assert_true(same(aq_text_fold,
                     "stra\xc3\x9f"
                     "e",
                     "STRASSE")); /* full case folding */
    assert_true(same(aq_text_fold,
                     "a\xe2\x80\x8b"
                     "b\xc2\xad"
                     "c",
                     "abc"));                                  /* not seen */
    assert_true(same(aq_text_fold, "\xef\xac\x81le", "file")); /* ligature */
    /* One letter with two marks, in both orders and as one character. */
    assert_true(same(aq_text_fold, "\xce\xb1\xcd\x85\xcc\x81", "\xce\xb1\xcc\x81\xcd\x85"));
    assert_true(same(aq_text_fold, "\xce\x91\xcd\x85\xcc\x81", "\xe1\xbe\xb4"));
    assert_false(same(aq_text_fold, "caf\xc3\xa9", "cafe"));
    assert_false(same(aq_text_fold, "p\xd0\xb0y", "pay")); /* Cyrillic a: another file */
    assert_false(same(aq_text_fold, "a-b", "a_b"));
}

static void fold_refuses_what_is_not_text(void **state)
{
    aq_auto_buf out = {0}, big = {0};

    (void)state;
    assert_int_equal(aq_text_fold(&out, "a\xff", 2), -EILSEQ);
    assert_int_equal(aq_text_fold(&out, "\xed\xa0\x80", 3), -EILSEQ); /* surrogate */
    assert_int_equal(aq_text_skeleton(&out, "\xc0\xaf", 2), -EILSEQ);
    for (int i = 0; i < 70000; i++)
        aq_buf_addc(&big, 'a');
    assert_int_equal(aq_text_fold(&out, big.data, big.len), -E2BIG);
    assert_int_equal(out.len, 0);
    assert_int_equal(aq_text_fold(&out, "", 0), 0);
    assert_string_equal(aq_buf_str(&out), "");
}

/* Every assigned character: folding twice is folding once, and equal folds keep equal skeletons. */
static void fold_is_stable(void **state)
{
    (void)state;
    for (uint32_t code = 1; code <= 0x10ffff; code += code < 0x3000 ? 1 : 7) {
        aq_auto_buf raw = {0}, once = {0}, twice = {0}, bones = {0}, bones2 = {0};

        if (code >= 0xd800 && code <= 0xdfff)
            continue;
        aq_utf8_add(&raw, code);
        aq_buf_adds(&raw, "\xcd\x85\xcc\x81"); /* marks that change places when folded */
        assert_int_equal(aq_text_fold(&once, raw.data, raw.len), 0);
        assert_int_equal(aq_text_fold(&twice, aq_buf_str(&once), once.len), 0);
        assert_string_equal(aq_buf_str(&once), aq_buf_str(&twice));
        assert_int_equal(aq_text_skeleton(&bones, raw.data, raw.len), 0);
        assert_int_equal(aq_text_skeleton(&bones2, aq_buf_str(&once), once.len), 0);
        assert_string_equal(aq_buf_str(&bones), aq_buf_str(&bones2));
    }
}

static void skeleton_sees_through_disguise(void **state)
{
    static const char *const pairs[][2] = {
        {"p\xd0\xb0yment", "payment"}, /* Cyrillic a */
        {"l\xce\xbf\xce\xb1"
         "der",
         "loader"},                                       /* Greek omicron, alpha */
        {"\xd0\x9d\xd0\xa2tp-kit", "http-kit"},           /* Cyrillic capitals */
        {"g00g1e-drive", "google-drive"},                 /* digits */
        {"cornmand", "command"},                          /* rn */
        {"vvebhook", "webhook"},                          /* vv */
        {"tool\xe2\x80\x93kit", "tool-kit"},              /* en dash */
        {"pr\xc3\xa9view", "preview"},                    /* accent */
        {"\xf0\x9d\x90\xac\xf0\x9d\x90\xa4ill", "skill"}, /* mathematical bold */
        {"sk\xe2\x80\x8dill", "skill"},                   /* zero-width joiner */
    };
    static const char *const apart[][2] = {
        {"mail-tools", "mall-tools"},
        {"clean-code", "dean-code"},
        {"kit-a", "kit-b"},
        {"git-helper", "gist-helper"},
        {"tool-2", "tool-3"},
        {"pdf-reader", "pdf-render"},
        {"\xe6\x96\x87\xe6\x9b\xb8", "\xe6\x96\x87\xe7\xab\xa0"}, /* two Japanese words */
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        assert_true(same(aq_text_skeleton, pairs[i][0], pairs[i][1]));
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        assert_false(same(aq_text_skeleton, apart[i][0], apart[i][1]));
}

static void distance_counts_slips(void **state)
{
    char longer[300];

    (void)state;
    assert_int_equal(aq_text_distance("", "", 2), 0);
    assert_int_equal(aq_text_distance("kitten", "kitten", 0), 0);
    assert_int_equal(aq_text_distance("kitten", "sitten", 2), 1);
    assert_int_equal(aq_text_distance("requests", "reqeusts", 2), 1); /* transposition */
    assert_int_equal(aq_text_distance("requests", "request", 2), 1);
    assert_int_equal(aq_text_distance("requests", "rrequests", 2), 1);
    assert_int_equal(aq_text_distance("kitten", "sitting", 3), 3);
    assert_int_equal(aq_text_distance("kitten", "sitting", 2), 3); /* max + 1 */
    assert_int_equal(aq_text_distance("abc", "", 2), 3);
    assert_int_equal(aq_text_distance("", "ab", 2), 2);
    assert_int_equal(aq_text_distance("abcd", "badc", 2), 2);
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(aq_text_distance(longer, longer, 2), 0);
    assert_int_equal(aq_text_distance(longer, longer + 1, 2), 3);
}

/* The plain recursion of the definition, for short words. */
static size_t slow(const char *a, size_t na, const char *b, size_t nb)
{
    size_t best, d;

    if (na == 0 || nb == 0)
        return na + nb;
    best = slow(a, na - 1, b, nb - 1) + (a[na - 1] != b[nb - 1]);
    if ((d = slow(a, na - 1, b, nb) + 1) < best)
        best = d;
    if ((d = slow(a, na, b, nb - 1) + 1) < best)
        best = d;
    if (na > 1 && nb > 1 && a[na - 1] == b[nb - 2] && a[na - 2] == b[nb - 1] &&
        (d = slow(a, na - 2, b, nb - 2) + 1) < best)
        best = d;
    return best;
}

static void distance_agrees_with_its_definition(void **state)
{
    unsigned seed = 7;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        char a[7] = "", b[7] = "";
        size_t na = (size_t)rand_r(&seed) % 6, nb = (size_t)rand_r(&seed) % 6, want;

        for (size_t j = 0; j < na; j++)
            a[j] = (char)('a' + rand_r(&seed) % 3);
        for (size_t j = 0; j < nb; j++)
            b[j] = (char)('a' + rand_r(&seed) % 3);
        want = slow(a, na, b, nb);
        for (size_t max = 0; max < 4; max++)
            assert_int_equal(aq_text_distance(a, b, max), want > max ? max + 1 : want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_joins_what_file_systems_join),
        cmocka_unit_test(fold_refuses_what_is_not_text),
        cmocka_unit_test(fold_is_stable),
        cmocka_unit_test(skeleton_sees_through_disguise),
        cmocka_unit_test(distance_counts_slips),
        cmocka_unit_test(distance_agrees_with_its_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
