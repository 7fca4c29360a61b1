/* Worlds: the same seed gives the same bytes, two worlds are alike and share nothing, and a pack
 * that is wrong is refused with its line. What other programs think of the keys and tokens is asked
 * in tests/outside/test_decoys.py. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/decoy.h"

#define GOLDEN "6c1bca05b14a578fcd995aeaae39385b6d700b0cf8240e4465364ffd4d8c9ee0"

enum { PAIRS = 1000, START = 1800000000, ABBREVIATED = 10 };

static aq_seed numbered(unsigned n)
{
    char text[16];

    snprintf(text, sizeof text, "%u", n);
    return aq_seed_of_text(text);
}

static const aq_decoys *world(aq_arena *a, unsigned seed, aq_side side)
{
    aq_seed s = numbered(seed);
    const aq_decoys *d = NULL;
    aq_err err = {0};

    if (aq_decoys_make(a, aq_pack_builtin(), &s, side, START, NULL, &d, &err) < 0)
        fail_msg("%s", err.text);
    return d;
}

static aq_digest all_of(const aq_decoys *d)
{
    aq_hash *h = aq_hash_begin();

    for (size_t i = 0; i < d->count; i++) {
        aq_hash_add(h, d->decoys[i].name, strlen(d->decoys[i].name) + 1);
        aq_hash_add(h, d->decoys[i].value, d->decoys[i].len + 1);
    }
    for (size_t i = 0; i < d->file_count; i++) {
        aq_hash_add(h, d->files[i].path, strlen(d->files[i].path) + 1);
        aq_hash_add(h, &d->files[i].mtime, sizeof d->files[i].mtime);
        if (d->files[i].len)
            aq_hash_add(h, d->files[i].large ? (const char *)d->files[i].large : d->files[i].data,
                        d->files[i].large ? 32 : d->files[i].len);
    }
    for (size_t i = 0; i < d->env_count; i++)
        aq_hash_add(h, d->env[i], strlen(d->env[i]) + 1);
    return aq_hash_end(h);
}

/* The golden digest changes with rules/decoys and with nothing else. */
static void test_same_seed_same_bytes(void **state)
{
    aq_auto_arena a = aq_arena_new();
    char hex[AQ_SHA256_HEX];
    aq_digest first = all_of(world(a, 1, AQ_SIDE_A)), again = all_of(world(a, 1, AQ_SIDE_A));
    aq_digest b = all_of(world(a, 1, AQ_SIDE_B));

    (void)state;
    assert_memory_equal(first.b, again.b, sizeof first.b);
    assert_memory_not_equal(first.b, b.b, sizeof first.b);
    assert_string_equal(aq_digest_hex(&first, hex), GOLDEN);
}

static void test_seed_of_text(void **state)
{
    static const uint8_t begins[] = {0x43, 0x87, 0xb9, 0xde, 0xc0, 0x24, 0xa1, 0x65};
    aq_seed s = aq_seed_of_text("42");

    (void)state;
    assert_memory_equal(s.b, begins, sizeof begins);
}

/* No value of one in the other, by sorting both. */
static int by_value(const void *x, const void *y)
{
    const aq_decoy *a = *(const aq_decoy *const *)x, *b = *(const aq_decoy *const *)y;
    int c = memcmp(a->value, b->value, a->len < b->len ? a->len : b->len);

    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static void sort(const aq_decoys *d, const aq_decoy **all)
{
    for (size_t i = 0; i < d->count; i++)
        all[i] = &d->decoys[i];
    qsort(all, d->count, sizeof *all, by_value);
}

/* What is made of names alone: worlds of two seeds may have one in common. */
static bool is_name(const aq_decoy *d)
{
    static const char *const made_of_names[] = {"person.",  "company.",  "colleague.",
                                                "product.", "customer.", "home."};

    for (size_t i = 0; i < sizeof made_of_names / sizeof *made_of_names; i++)
        if (strncmp(d->name, made_of_names[i], strlen(made_of_names[i])) == 0)
            return true;
    return false;
}

static void share_nothing(const aq_decoys *x, const aq_decoys *y, bool names)
{
    const aq_decoy *p[AQ_PACK_DECOYS], *q[AQ_PACK_DECOYS];

    sort(x, p);
    sort(y, q);
    for (size_t i = 0, k = 0; i < x->count && k < y->count;) {
        int c = by_value(&p[i], &q[k]);

        if (c == 0 && (names || !is_name(p[i])))
            fail_msg("%s and %s are both %s", p[i]->name, q[k]->name, p[i]->value);
        i += c <= 0;
        k += c > 0;
    }
}

/* How many digits of two names of objects are the same, at most, in any project: the index of a
 * pack has them in order, after a head, a table and their number. */
static unsigned same_digits(const aq_decoys *d)
{
    enum { HEAD = 8, TABLE = 1024, ID = 20 };
    unsigned most = 0;

    for (size_t i = 0; i < d->file_count; i++) {
        const aq_decoy_file *f = &d->files[i];
        size_t len = strlen(f->path), count;
        const uint8_t *at = (const uint8_t *)f->data;

        if (len < 4 || strcmp(f->path + len - 4, ".idx") != 0)
            continue;
        count = (size_t)at[HEAD + TABLE - 2] << 8 | at[HEAD + TABLE - 1];
        assert_true(count > 3 && f->len > HEAD + TABLE + count * ID);
        for (at += HEAD + TABLE; --count > 0; at += ID) {
            unsigned n = 0;

            while (n < 2 * ID && (at[n / 2] ^ at[n / 2 + ID]) >> (n % 2 ? 0 : 4) == 0)
                n++;
            most = n > most ? n : most;
        }
    }
    return most;
}

/* Both worlds of each seed against each other, and one of them against one of the next seed. */
static void test_thousand_pairs(void **state)
{
    aq_auto_arena before = aq_arena_new();
    const aq_decoys *other = world(before, PAIRS, AQ_SIDE_B);
    aq_err err = {0};

    (void)state;
    for (unsigned i = 0; i < PAIRS; i++) {
        aq_arena *arena = aq_arena_new();
        const aq_decoys *a = world(arena, i, AQ_SIDE_A), *b = world(arena, i, AQ_SIDE_B);

        if (aq_decoys_twins(a, b, &err) < 0 || aq_decoys_alike(a, other, &err) < 0)
            fail_msg("seed %u: %s", i, err.text);
        share_nothing(a, b, true);
        share_nothing(a, other, false);
        assert_true(same_digits(a) < ABBREVIATED && same_digits(b) < ABBREVIATED);
        aq_arena_free(before);
        before = arena;
        other = i % 2 ? a : b;
    }
}

/* A world with itself shares everything; that must be seen. */
static void test_twins_can_fail(void **state)
{
    aq_auto_arena arena = aq_arena_new();
    const aq_decoys *a = world(arena, 7, AQ_SIDE_A), *b = world(arena, 7, AQ_SIDE_B);
    aq_decoys bent = *b;
    aq_decoy *decoys = aq_arena_alloc(arena, b->count * sizeof *decoys);
    aq_decoy_file *files = aq_arena_alloc(arena, b->file_count * sizeof *files);

    (void)state;
    assert_int_equal(aq_decoys_twins(a, a, NULL), -EUCLEAN);
    assert_int_equal(aq_decoys_twins(a, b, NULL), 0);
    memcpy(decoys, b->decoys, b->count * sizeof *decoys);
    bent.decoys = decoys;
    decoys[3].value = a->decoys[3].value;
    assert_int_equal(aq_decoys_twins(a, &bent, NULL), -EUCLEAN);
    decoys[3] = b->decoys[3];
    decoys[3].len--;
    assert_int_equal(aq_decoys_alike(a, &bent, NULL), -EUCLEAN);
    decoys[3] = b->decoys[3];
    memcpy(files, b->files, b->file_count * sizeof *files);
    bent.files = files;
    assert_int_equal(aq_decoys_twins(a, &bent, NULL), 0);
    files[b->file_count - 1].mtime = b->start + 1;
    assert_int_equal(aq_decoys_alike(a, &bent, NULL), -EUCLEAN);
}

/* After replacing, every text of two worlds is the same. */
static void test_redacted_alike(void **state)
{
    aq_auto_arena arena = aq_arena_new();
    const aq_decoys *a = world(arena, 11, AQ_SIDE_A), *b = world(arena, 12, AQ_SIDE_B);
    const aq_marks *of_a = aq_decoys_marks(arena, a), *of_b = aq_decoys_marks(arena, b);

    (void)state;
    for (size_t i = 0; i < a->file_count; i++) {
        aq_auto_buf x = {0}, y = {0};

        if (!a->files[i].data)
            continue;
        aq_marks_replace(of_a, a->files[i].data, a->files[i].len, false, &x);
        aq_marks_replace(of_b, b->files[i].data, b->files[i].len, false, &y);
        assert_string_equal(aq_buf_str(&x), aq_buf_str(&y));
    }
    for (size_t i = 0; i < a->env_count; i++) {
        aq_auto_buf x = {0}, y = {0};

        aq_marks_replace(of_a, a->env[i], strlen(a->env[i]), false, &x);
        aq_marks_replace(of_b, b->env[i], strlen(b->env[i]), false, &y);
        assert_string_equal(aq_buf_str(&x), aq_buf_str(&y));
    }
}

static const char *place_text(const aq_decoys *d, const aq_place *p, size_t *len)
{
    if (p->kind == AQ_PLACE_ENV)
        for (size_t i = 0; i < d->env_count; i++)
            if (strncmp(d->env[i], p->where, strlen(p->where)) == 0 &&
                d->env[i][strlen(p->where)] == '=') {
                *len = strlen(d->env[i]) - strlen(p->where) - 1;
                return d->env[i] + strlen(p->where) + 1;
            }
    if (p->kind == AQ_PLACE_FILE)
        for (size_t i = 0; i < d->file_count; i++)
            if (strcmp(d->files[i].path, p->where) == 0) {
                *len = d->files[i].len;
                return d->files[i].data;
            }
    return NULL;
}

/* A decoy is really where its places say, and every decoy is somewhere. */
static void test_places(void **state)
{
    aq_auto_arena arena = aq_arena_new();
    const aq_decoys *d = world(arena, 3, AQ_SIDE_A);
    size_t checked = 0;

    (void)state;
    for (size_t i = 0; i < d->count; i++) {
        const aq_decoy *y = &d->decoys[i];

        for (size_t k = 0; k < y->place_count; k++) {
            const aq_place *p = &y->places[k];
            uint32_t line = 1;
            size_t len = 0;
            const char *text = place_text(d, p, &len);

            if (!text)
                continue;
            assert_true(p->offset + y->len <= len);
            assert_memory_equal(text + p->offset, y->value, y->len);
            for (uint32_t n = 0; n < p->offset; n++)
                line += text[n] == '\n';
            if (p->kind != AQ_PLACE_FILE || strncmp(text, "SQLite", 6) == 0)
                line = 0; /* no text */
            assert_int_equal(p->line, line);
            checked++;
        }
    }
    assert_true(checked > 300);
}

static void test_file_times(void **state)
{
    aq_auto_arena arena = aq_arena_new();
    const aq_decoys *d = world(arena, 5, AQ_SIDE_A);
    int64_t oldest = START;

    (void)state;
    for (size_t i = 0; i < d->file_count; i++) {
        assert_true(d->files[i].mtime < START);
        if (d->files[i].mtime < oldest)
            oldest = d->files[i].mtime;
    }
    assert_true(oldest < START - 300 * 86400 && oldest > START - 1000 * 86400);
}

/* ---- packs ---- */

static int added(const char *text, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_pack_maker *m = aq_pack_begin(aq_pack_builtin());
    const aq_pack *p = NULL;
    const aq_decoys *d = NULL;
    aq_seed seed = numbered(1);
    int r = aq_pack_add(m, "private.pack", text, strlen(text), err);

    if (r == 0)
        r = aq_pack_end(m, a, &p, err);
    aq_pack_abort(m);
    return r < 0 ? r : aq_decoys_make(a, p, &seed, AQ_SIDE_A, START, NULL, &d, err);
}

static void refused(const char *text, const char *says)
{
    aq_err err = {0};

    if (added(text, &err) >= 0)
        fail_msg("accepted: %s", text);
    if (!strstr(err.text, says))
        fail_msg("%s\nsaid: %s\nwanted: %s", text, err.text, says);
}

static void test_pack_errors(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "pack 1"},
        {"pack 2\n", "private.pack line 1"},
        {"pack 1\nsecret x\n", "line 2"},
        {"pack 1\ndecoy a\n", "line 2"},
        {"pack 1\ndecoy a grave text x\n", "identity, secret"},
        {"pack 1\ndecoy a secret magic x\n", "'magic' is no function"},
        {"pack 1\ndecoy a secret text\n", "no text"},
        {"pack 1\ndecoy a secret text %{hex:0}\n", "count from 1"},
        {"pack 1\ndecoy a secret text %{hex:9999}\n", "count from 1"},
        {"pack 1\ndecoy a secret text %{hex:4:z-z}\n", "bounds"},
        {"pack 1\ndecoy a secret text %{hex:4:b-3}\n", "bounds"},
        {"pack 1\ndecoy a secret text %{digits:4:0-3}\n", "bounds"},
        {"pack 1\ndecoy a secret text %{dice:4}\n", "drawn"},
        {"pack 1\ndecoy a secret text %{say:xyz}\n", "say"},
        {"pack 1\ndecoy a secret text %{say:c[a]}\n", "set"},
        {"pack 1\ndecoy a secret text %{say:c[ab}\n", "set"},
        {"pack 1\ndecoy a secret text %{word:none}\n", "no list 'none'"},
        {"pack 1\ndecoy a secret text %{hex:4\n", "without its }"},
        {"pack 1\n\ndecoy a secret text \x1b[2J\n", "line 3: a control character"},
        {"pack 1\ndecoy a secret text \xc3(\n", "line 2: not UTF-8"},
        {"pack 1\ndecoy a secret text %{b}\n", "line 2: no decoy b"},
        {"pack 1\ndecoy a secret text %{b}\ndecoy b secret text %{a}\n", "needs itself"},
        {"pack 1\ndecoy a secret text x\ndecoy a secret text y\n", "line 3: a second decoy a"},
        {"pack 1\nenv X %{hex:4}\n", "only a decoy can be drawn"},
        {"pack 1\nenv X=1 y\n", "needs a name"},
        {"pack 1\nenv X@kvm y\n", "needs a name"},
        {"pack 1\nfact x@ y\n", "needs a name"},
        {"pack 1\nfact @kvm y\n", "needs a name"},
        {"pack 1\nfact x@a@b y\n", "needs a name"},
        {"pack 1\nfact x.y\n", "no text"},
        {"pack 1\nfile 9999 1 /x\n", "mode"},
        {"pack 1\nfile 0644 x /x\n", "age"},
        {"pack 1\nfile 0644 1 x\n", "path"},
        {"pack 1\nfile 0644 1 /a/../b\n", "path"},
        {"pack 1\nfile 0644 1 /a//b\n", "path"},
        {"pack 1\nfile 0644 1 /a/.\n", "path"},
        {"pack 1\n|text\n", "content without a file"},
        {"pack 1\n words\n", "belongs to a list"},
        {"pack 1\nlist l\n abc\n ab\n", "line 4"},
        {"pack 1\nlist l\n abc\ndecoy a secret text x\n", "two words"},
        {"pack 1\ndecoy a secret certificate k x\n", "ISSUER-KEY"},
        {"pack 1\ndecoy a secret bip39 none\n", "numbered words"},
        {"pack 1\nfile 0644 1 /etc/hostname/x\n", "/etc/hostname"},
        {"pack 1\nfolder 0500 1 /home/%{person.user}/shut\n", "closed to its owner: mode 0500"},
        {"pack 1\ndecoy a secret text ..\nfile 0644 1 /home/%{a}\n", "no good path"},
        {"pack 1\ndecoy a secret text /../x\nfile 0644 1 /home%{a}\n", "no good path"},
        {"pack 1\ndecoy a secret text %{hex:256}\nfile 0644 1 /home/%{a}\n", "no good path"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i].text, bad[i].says);
}

static void test_value_errors(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"pack 1\ndecoy a secret aws-key AKIA12\n", "twelve digits"},
        {"pack 1\ndecoy a secret luhn 12x4\n", "luhn needs digits"},
        {"pack 1\ndecoy a secret nss-store k lock\n", "a salt, a check or a key"},
        {"pack 1\ndatabase 0600 1 /home/d\n|row 1\n", "no table for it"},
        {"pack 1\ndatabase 0600 1 /home/d\n|index i 1 CREATE\n", "no such object"},
        {"pack 1\ndatabase 0600 1 /home/d\n|table t\n", "no such object"},
        {"pack 1\ndatabase 0600 1 /home/d\n|table t CREATE \n|row x\n", "no field"},
        {"pack 1\ndatabase 0600 1 /home/d\n|table t CREATE \n|row hex:0\n", "no hex"},
        {"pack 1\ndatabase 0600 1 /home/d\n|table t CREATE \n|row 1\n|auto 2\n", "no such column"},
        {"pack 1\ndatabase 0600 1 /home/d\n|drop it\n", "no line of one"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i].text, bad[i].says);
}

static void test_so_many_large_files(void **state)
{
    aq_auto_buf text = {0};
    aq_err err = {0};

    (void)state;
    aq_buf_adds(&text, "pack 1\ndecoy a secret text %{hex:255}\nfile 0644 1 /home/%{a}\n");
    for (int i = 0; i <= AQ_DECOY_LARGES; i++)
        aq_buf_addf(&text, "large 0644 1 1 /home/%%{person.user}/many%d\n", i);
    assert_true(added(aq_buf_str(&text), &err) < 0);
    assert_non_null(strstr(err.text, "more than 256 large files"));
}

static void test_pack_adds_and_replaces(void **state)
{
    static const char text[] =
        "pack 1\n"
        "list pets\n  cat dog owl\n"
        "decoy pet.name identity text %{word:pets}-%{hex:8}\n"
        "decoy person.given identity text Private%{say:cvcvcv}\n"
        "env PET %{pet.name}\n"
        "file 0644 1 /etc/hostname\n>short-%{pet.name}\n"
        "file 0600 2 /home/%{person.user}/pet.txt\n|%%{x} %{pet.name} 100%\n";
    aq_auto_arena a = aq_arena_new();
    aq_pack_maker *m = aq_pack_begin(aq_pack_builtin());
    const aq_pack *p = NULL;
    const aq_decoys *d[2] = {0};
    const aq_decoy *pet;
    aq_seed seed = numbered(9);
    aq_err err = {0};

    (void)state;
    assert_int_equal(aq_pack_add(m, "t", text, strlen(text), &err), 0);
    assert_int_equal(aq_pack_end(m, a, &p, &err), 0);
    aq_pack_abort(m);
    for (int i = 0; i < 2; i++)
        assert_int_equal(aq_decoys_make(a, p, &seed, (aq_side)i, START, NULL, &d[i], &err), 0);
    if (aq_decoys_twins(d[0], d[1], &err) < 0)
        fail_msg("%s", err.text);
    pet = aq_decoys_find(d[0], "pet.name");
    assert_non_null(pet);
    assert_int_equal(pet->place_count, 3);
    assert_true(strncmp(aq_decoys_find(d[0], "person.given")->value, "Private", 7) == 0);
    assert_true(strncmp(aq_decoys_find(d[0], "person.name")->value, "Private", 7) == 0);
    for (size_t i = 0; i < d[0]->file_count; i++) {
        const aq_decoy_file *f = &d[0]->files[i];

        if (strstr(f->path, "pet.txt")) {
            assert_true(strncmp(f->data, "%{x} ", 5) == 0);
            assert_string_equal(f->data + f->len - 6, " 100%\n");
        }
        if (strcmp(f->path, "/etc/hostname") == 0)
            assert_int_equal(f->len, strlen("short-") + pet->len);
    }
}

/* What a private pack says about an unknown shape is found by twins, not hidden. */
static void test_order_is_checked(void **state)
{
    static const char text[] = "pack 1\n"
                               "decoy x.one identity text %{lower36:8}\n"
                               "file 0644 1 /home/%{person.user}/order/%{x.one}\n|1\n"
                               "file 0644 2 /home/%{person.user}/order/mmmm\n|2\n";
    unsigned wrong = 0;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_pack_maker *m = aq_pack_begin(aq_pack_builtin());
        const aq_pack *p = NULL;
        const aq_decoys *d[2] = {0};
        aq_seed seed = numbered(i);

        assert_int_equal(aq_pack_add(m, "t", text, strlen(text), NULL), 0);
        assert_int_equal(aq_pack_end(m, a, &p, NULL), 0);
        aq_pack_abort(m);
        for (int k = 0; k < 2; k++)
            assert_int_equal(aq_decoys_make(a, p, &seed, (aq_side)k, START, NULL, &d[k], NULL), 0);
        wrong += aq_decoys_twins(d[0], d[1], NULL) < 0;
    }
    assert_true(wrong > 2 && wrong < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_bytes), cmocka_unit_test(test_thousand_pairs),
        cmocka_unit_test(test_seed_of_text),         cmocka_unit_test(test_twins_can_fail),
        cmocka_unit_test(test_redacted_alike),       cmocka_unit_test(test_places),
        cmocka_unit_test(test_file_times),           cmocka_unit_test(test_pack_errors),
        cmocka_unit_test(test_value_errors),         cmocka_unit_test(test_pack_adds_and_replaces),
        cmocka_unit_test(test_so_many_large_files),  cmocka_unit_test(test_order_is_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
