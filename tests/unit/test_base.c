/* The base room: errors, buffers, digests, strict JSON, quoting, budgets. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/cleanup.h"
#include "base/digest.h"
#include "base/io.h"
#include "base/json.h"
#include "base/siphash.h"
#include "base/text.h"

static void errors_carry_text(void **state)
{
    aq_err err = {0};

    (void)state;
    assert_int_equal(aq_fail(&err, -EINVAL, "line %d", 3), -EINVAL);
    assert_int_equal(aq_err_within(&err, "file %s", "x"), -EINVAL);
    assert_string_equal(err.text, "file x: line 3");
    errno = ENOENT;
    assert_int_equal(aq_fail_errno(&err, "cannot open y"), -ENOENT);
    assert_string_equal(err.text, "cannot open y: No such file or directory");
}

static void digests(void **state)
{
    char hex[AQ_SHA256_HEX];
    aq_digest d = aq_sha256("abc", 3), e;
    aq_hash *h = aq_hash_begin();

    (void)state;
    assert_string_equal(aq_digest_hex(&d, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    aq_hash_add(h, "ab", 2);
    aq_hash_add(h, "c", 1);
    e = aq_hash_peek(h);
    assert_true(aq_digest_equal(&d, &e));
    e = aq_hash_end(h);
    assert_true(aq_digest_equal(&d, &e));
    assert_int_equal(aq_digest_parse(hex, &e), 0);
    hex[0] = 'B';
    assert_int_equal(aq_digest_parse(hex, &e), -EINVAL);
    assert_int_equal(aq_digest_parse("ba", &e), -EINVAL);
}

static void base64_is_strict(void **state)
{
    static const char *const bad[] = {"QQ", "QQ=", "QQ=Q", "Q===", "QR==", "QUJ=", "QU I=", "=QQQ"};
    aq_auto_buf b = {0}, c = {0};

    (void)state;
    for (size_t n = 0; n < 10; n++) {
        aq_buf_clear(&b);
        aq_buf_clear(&c);
        aq_base64("\x00\xff\x10zyxwvut", n, &b);
        assert_int_equal(aq_unbase64(b.data, b.len, &c), 0);
        assert_int_equal(c.len, n);
        assert_memory_equal(aq_buf_str(&c), "\x00\xff\x10zyxwvut", n);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(aq_unbase64(bad[i], strlen(bad[i]), &c), -EINVAL);
}

static void json_is_strict(void **state)
{
    static const char *const bad[] = {
        "",   "{",  "{\"a\":1,\"a\":2}", "{} x", "[1,]", "nul", "\"\xff\"", "[\"a\\u0000b\"]",
        "01", "+1", "{\"a\" 1}",         "'a'",
    };
    aq_auto_buf deep = {0};
    json_t *j = NULL;
    aq_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(aq_json_parse(bad[i], strlen(bad[i]), "in.json", &j, &err) < 0);
        assert_int_equal(strncmp(err.text, "in.json:1:", 10), 0);
        assert_null(j);
    }
    for (int i = 0; i < 100000; i++)
        aq_buf_addc(&deep, '[');
    assert_int_equal(aq_json_parse(deep.data, deep.len, "in.json", &j, &err), -E2BIG);
}

static void json_is_canonical(void **state)
{
    static const char text[] =
        "{\"b\":[1,true,null],\"a\":{\"\\u20ac\":\"\\u0007\\n\\\"\\\\/\",\"z\":-5},"
        "\"\\ud83d\\ude00\":1,\"\\uffe6\":2}";
    aq_auto_buf b = {0};
    aq_auto_json json_t *j = NULL;
    aq_auto_json json_t *real = json_real(0.5);
    aq_err err;

    (void)state;
    assert_int_equal(aq_json_parse(text, strlen(text), "t", &j, &err), 0);
    assert_int_equal(aq_json_canonical(j, &b), 0);
    assert_string_equal(b.data,
                        "{\"a\":{\"z\":-5,\"€\":\"\\u0007\\n\\\"\\\\/\"},\"b\":[1,true,null],"
                        "\"😀\":1,\"￦\":2}");
    assert_int_equal(aq_json_canonical(real, &b), -EDOM);
}

static void quoting_is_reversible(void **state)
{
    static const char nasty[] = "a\\b\n\x7f\xc3\xa9\xff\xe2\x80\xae\xf3\xa0\x81\x81\xc0\x80\x1b[0m";
    aq_auto_buf q = {0}, u = {0};
    aq_auto_arena a = aq_arena_new();

    (void)state;
    aq_text_quote(&q, nasty, sizeof nasty - 1);
    assert_string_equal(q.data,
                        "a\\\\b\\x0a\\x7fé\\xff\\xe2\\x80\\xae\\xf3\\xa0\\x81\\x81\\xc0\\x80"
                        "\\x1b[0m");
    assert_int_equal(aq_text_unquote(&u, q.data, q.len), 0);
    assert_int_equal(u.len, sizeof nasty - 1);
    assert_memory_equal(u.data, nasty, u.len);
    assert_int_equal(aq_text_unquote(&u, "\\x4", 3), -EINVAL);
    assert_string_equal(aq_text_quoted(a, "ab\xff", 3, 4), "ab…");
    assert_string_equal(aq_text_quoted(a, "ab\xff", 3, 6), "ab\\xff");
}

static void files_appear_whole(void **state)
{
    char dir[] = "/tmp/aq-base-XXXXXX";
    aq_auto_buf b = {0};
    aq_auto_fd int fd = -1;
    aq_err err;

    (void)state;
    assert_non_null(mkdtemp(dir));
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(aq_write_file(fd, "f", "one", 3, 0600, &err), 0);
    assert_int_equal(aq_write_file(fd, "f", "two", 3, 0600, &err), 0);
    assert_int_equal(aq_read_file(fd, "f", 3, &b, &err), 0);
    assert_string_equal(b.data, "two");
    assert_int_equal(aq_read_file(fd, "f", 2, &b, &err), -EFBIG);
    assert_int_equal(aq_read_file(fd, "absent", 2, &b, &err), -ENOENT);
    assert_int_equal(aq_make_dirs_at(fd, "x/y/z", &err), 0);
    assert_int_equal(aq_write_file(fd, "x/y/z/f", "deep", 4, 0600, &err), 0);
    assert_int_equal(unlinkat(fd, "x/y/z/f", 0) + unlinkat(fd, "x/y/z", AT_REMOVEDIR) +
                         unlinkat(fd, "x/y", AT_REMOVEDIR) + unlinkat(fd, "x", AT_REMOVEDIR) +
                         unlinkat(fd, "f", 0) + rmdir(dir),
                     0); /* nothing else was left in the folder */
}

static void budgets_count_work(void **state)
{
    aq_budget b;

    (void)state;
    aq_budget_init(&b);
    b.limit[AQ_BUDGET_FILES] = 2;
    assert_true(aq_budget_spend(&b, AQ_BUDGET_FILES, 2));
    assert_false(aq_budget_spend(&b, AQ_BUDGET_FILES, 1));
    assert_false(aq_budget_spend(&b, AQ_BUDGET_FILES, UINT64_MAX));
    assert_true(b.spent[AQ_BUDGET_FILES] == UINT64_MAX);
    for (int i = 0; i < AQ_BUDGET_COUNT; i++)
        assert_true(strlen(aq_budget_name((aq_budget_kind)i)) > 0 &&
                    strlen(aq_budget_what((aq_budget_kind)i)) > 0);
}

/* Values of another program; and a copy goes on by itself. */
static void keyed_hash_is_siphash(void **state)
{
    const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    aq_siphash h, copy;
    aq_siphash128 d;

    (void)state;
    aq_siphash_begin(&h, key);
    copy = h;
    d = aq_siphash_end(&h);
    assert_true(d.low == UINT64_C(0xe6a825ba047f81a3) && d.high == UINT64_C(0x930255c71472f66d));
    aq_siphash_add(&copy, "01234", 5);
    aq_siphash_add(&copy, "56789abc", 8);
    d = aq_siphash_end(&copy);
    assert_true(d.low == UINT64_C(0x587cc7d2ede7132f) && d.high == UINT64_C(0x94bcc6436476ce52));
    assert_true(aq_siphash_end(&h).low == UINT64_C(0xe6a825ba047f81a3));
}

/* What a stranger called a file may be in the text, and the text goes to a terminal. */
static void errors_are_printable(void **state)
{
    aq_err err = {0};

    (void)state;
    aq_fail(&err, -EINVAL, "no %s here", "\x1b[2J\xff\xc2\x9b\xe2\x80\xae\xc3\xa4");
    assert_string_equal(err.text, "no ?[2J??????\xc3\xa4 here");
    aq_err_within(&err, "in\n%s", "x");
    assert_string_equal(err.text, "in?x: no ?[2J??????\xc3\xa4 here");
}

static void times_round_trip(void **state)
{
    char s[AQ_TIME_LEN];
    int64_t t;

    (void)state;
    assert_string_equal(aq_time_str(0, s), "1970-01-01T00:00:00Z");
    assert_int_equal(aq_time_parse("2026-02-28T23:59:59Z", &t), 0);
    assert_string_equal(aq_time_str(t, s), "2026-02-28T23:59:59Z");
    for (t = 0; t < 253402300800; t += 86400 * 97 + 3599) { /* until the year 9999 */
        time_t at = (time_t)t;
        char expected[64];
        struct tm tm;

        assert_true(strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm)));
        assert_string_equal(aq_time_str(t, s), expected);
    }
    assert_string_equal(aq_time_str(951782399, s), "2000-02-28T23:59:59Z");
    assert_string_equal(aq_time_str(951782400, s), "2000-02-29T00:00:00Z");
    assert_string_equal(aq_time_str(253402300799, s), "9999-12-31T23:59:59Z");
    assert_string_equal(aq_time_str(-1, s), "1970-01-01T00:00:00Z");
    assert_int_equal(aq_time_parse("2026-02-31T00:00:00Z", &t), -EINVAL);
    assert_int_equal(aq_time_parse("2026-2-3T00:00:00Z", &t), -EINVAL);
    assert_int_equal(aq_time_parse("2026-02-28T23:59:59+01:00", &t), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_carry_text),    cmocka_unit_test(digests),
        cmocka_unit_test(base64_is_strict),     cmocka_unit_test(json_is_strict),
        cmocka_unit_test(json_is_canonical),    cmocka_unit_test(quoting_is_reversible),
        cmocka_unit_test(files_appear_whole),   cmocka_unit_test(budgets_count_work),
        cmocka_unit_test(times_round_trip),     cmocka_unit_test(keyed_hash_is_siphash),
        cmocka_unit_test(errors_are_printable),
    };

    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
