/* The canonical package: which paths are canonical, and the digest that names a tree. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "model/package.h"

static bool canonical(const char *path)
{
    return aq_path_canonical(path, strlen(path), 1024);
}

static void canonical_paths(void **state)
{
    static const char *const good[] = {"a",   "a/b",  ".git/x", "...", "a/..b",
                                       "a b", "\xff", "a.",     "-"};
    static const char *const bad[] = {"",    "/",  "/a",     "a/",   "a//b", ".",    "./a",
                                      "a/.", "..", "a/../b", "../a", "a/..", "a/./b"};
    char longest[1025];

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(canonical(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(canonical(bad[i]));
    assert_false(aq_path_canonical("a\0b", 3, 1024));
    memset(longest, 'a', sizeof longest);
    assert_true(aq_path_canonical(longest, 1024, 1024));
    assert_false(aq_path_canonical(longest, 1025, 1024));
}

/* Derived with coreutils: printf 'a\0%s\nb/c\0%s\n' "$(printf 1 | sha256sum)" … | sha256sum */
static void digest_is_the_documented_one(void **state)
{
    aq_file files[2] = {{.path = "a", .digest = aq_sha256("1", 1)},
                        {.path = "b/c", .digest = aq_sha256("", 0)}};
    aq_digest d = aq_package_digest(files, 2, NULL, 0), none = aq_package_digest(NULL, 0, NULL, 0);
    aq_digest empty = aq_sha256("", 0);
    char hex[AQ_SHA256_HEX];

    (void)state;
    assert_string_equal(aq_digest_hex(&d, hex),
                        "60d330852cfe92982a1220dbd2d0bef6921721cf0744fd02063263ad27ec7411");
    assert_true(aq_digest_equal(&none, &empty));
    files[1].executable = true; /* the mode is no part of it */
    assert_true(aq_digest_equal(&d, &(aq_digest[]){aq_package_digest(files, 2, NULL, 0)}[0]));
    files[1].path = "b/d";
    assert_false(aq_digest_equal(&d, &(aq_digest[]){aq_package_digest(files, 2, NULL, 0)}[0]));
}

/* Derived with coreutils: printf 'a\0%s\n\0link\0b\0%s\n\0unread\0c\0%s\n' … | sha256sum, with the
 * digests of "1", "a" and "budget". */
static void what_is_left_out_counts(void **state)
{
    aq_file file = {.path = "a", .digest = aq_sha256("1", 1)};
    aq_left_out left[] = {{"unread", "c", aq_sha256("budget", 6), NULL},
                          {"link", "b", aq_sha256("a", 1), "a"}};
    aq_digest d = aq_package_digest(&file, 1, left, 2), plain, again;
    char hex[AQ_SHA256_HEX];

    (void)state;
    assert_string_equal(aq_digest_hex(&d, hex),
                        "23381ead5afc2d096b6414c5cd631c548ee0381337b312135a9849bfc9e5cc31");
    assert_string_equal(left[0].kind, "link");
    again = aq_package_digest(&file, 1, left, 2);
    assert_true(aq_digest_equal(&d, &again));
    plain = aq_package_digest(&file, 1, NULL, 0);
    assert_false(aq_digest_equal(&d, &plain));
    left[0].content = aq_sha256("b", 1);
    again = aq_package_digest(&file, 1, left, 2);
    assert_false(aq_digest_equal(&d, &again));
}

static void files_are_found(void **state)
{
    aq_file files[] = {{.path = "a"}, {.path = "a-b"}, {.path = "a/b"}, {.path = "z"}};
    aq_package p = {.files = files, .count = 4, .image = -1};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(aq_package_find(&p, files[i].path), &files[i]);
    assert_null(aq_package_find(&p, "a/"));
    assert_null(aq_package_find(&p, ""));
    aq_package_close(&p);
    aq_package_close(NULL);
}

static void image_is_mapped(void **state)
{
    const unsigned char *image;
    aq_err err = {0};
    aq_package p = {.bytes = 5, .image = aq_temp_fd(NULL, &err)}, empty = {.image = -1};

    (void)state;
    assert_int_equal(aq_write_full(p.image, "hello", 5), 0);
    assert_int_equal(aq_package_map(&p, &image, &err), 0);
    assert_memory_equal(image, "hello", 5);
    aq_package_unmap(&p, image);
    aq_package_close(&p);
    assert_int_equal(aq_package_map(&empty, &image, &err), 0);
    assert_null(image);
    aq_package_unmap(&empty, image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(canonical_paths),         cmocka_unit_test(digest_is_the_documented_one),
        cmocka_unit_test(what_is_left_out_counts), cmocka_unit_test(files_are_found),
        cmocka_unit_test(image_is_mapped),
    };

    return cmocka_run_group_tests_name("package", tests, NULL, NULL);
}
