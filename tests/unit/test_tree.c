/* The tree against a naive recursive reading of RFC 6962, section 2.1, against known answers, and
 * against outside vectors where they are at hand (AQUARIUM_DATA). */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "ledger/internal.h"

enum { MOST = 600 };

static aq_digest leaves[MOST];
static aq_digest *memo;      /* [from][to] */
static unsigned char *known; /* is it computed? */

static int setup(void **state)
{
    (void)state;
    memo = aq_alloc((MOST + 1) * (MOST + 1) * sizeof *memo);
    known = aq_alloc((MOST + 1) * (MOST + 1));
    for (unsigned i = 0; i < MOST; i++) {
        uint8_t b[3] = {0, (uint8_t)(i >> 8), (uint8_t)i};
        leaves[i] = aq_sha256(b, sizeof b); /* 0x00 and a two-byte entry */
        aq_digest ours = aq_tree_leaf(b + 1, 2);
        assert_true(aq_digest_equal(&ours, &leaves[i]));
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(memo);
    free(known);
    return 0;
}

/* MTH(D[from:to]), word for word. */
static aq_digest mth(unsigned from, unsigned to)
{
    size_t at = (size_t)from * (MOST + 1) + to;
    unsigned n = to - from, k = 1;
    uint8_t b[65];
    aq_digest left, right;

    if (n == 0)
        return aq_sha256("", 0);
    if (n == 1)
        return leaves[from];
    if (known[at])
        return memo[at];
    while (2 * k < n)
        k *= 2;
    left = mth(from, from + k);
    right = mth(from + k, to);
    b[0] = 1;
    memcpy(b + 1, left.b, 32);
    memcpy(b + 33, right.b, 32);
    known[at] = 1;
    return memo[at] = aq_sha256(b, sizeof b);
}

/* PATH(m, D[from:to]). */
static void naive_path(unsigned m, unsigned from, unsigned to, aq_proof *p)
{
    unsigned n = to - from, k = 1;

    if (n <= 1)
        return;
    while (2 * k < n)
        k *= 2;
    if (m < k) {
        naive_path(m, from, from + k, p);
        p->hash[p->count++] = mth(from + k, to);
    } else {
        naive_path(m - k, from + k, to, p);
        p->hash[p->count++] = mth(from, from + k);
    }
}

/* SUBPROOF(m, D[from:to], whole). */
static void naive_subproof(unsigned m, unsigned from, unsigned to, bool whole, aq_proof *p)
{
    unsigned n = to - from, k = 1;

    if (m == n) {
        if (!whole)
            p->hash[p->count++] = mth(from, to);
        return;
    }
    while (2 * k < n)
        k *= 2;
    if (m <= k) {
        naive_subproof(m, from, from + k, whole, p);
        p->hash[p->count++] = mth(from + k, to);
    } else {
        naive_subproof(m - k, from + k, to, false, p);
        p->hash[p->count++] = mth(from, from + k);
    }
}

static int array_node(void *arg, unsigned level, uint64_t index, aq_digest *ret, aq_err *err)
{
    uint64_t from = index << level, to = (index + 1) << level;

    (void)arg;
    if (to > MOST)
        return aq_fail(err, -EINVAL, "outside");
    *ret = mth((unsigned)from, (unsigned)to);
    return 0;
}

static const aq_tree_source source = {array_node, NULL};

static void assert_same(const aq_proof *a, const aq_proof *b)
{
    assert_int_equal(a->count, b->count);
    assert_memory_equal(a->hash, b->hash, a->count * sizeof *a->hash);
}

/* Every small pair; of larger trees a spread of them. */
static unsigned step(unsigned size)
{
    return size <= 80 ? 1 : 13;
}

static void inclusion(void **state)
{
    (void)state;
    for (unsigned size = 0; size <= MOST; size++) {
        aq_digest root, naive = mth(0, size);
        assert_int_equal(aq_tree_root(&source, size, &root, NULL), 0);
        assert_true(aq_digest_equal(&root, &naive));
        for (unsigned i = 0; i < size; i += step(size)) {
            aq_proof ours, theirs = {.count = 0};
            naive_path(i, 0, size, &theirs);
            assert_int_equal(aq_tree_inclusion(&source, i, size, &ours, NULL), 0);
            assert_same(&ours, &theirs);
            assert_int_equal(aq_tree_check_inclusion(i, size, &leaves[i], &ours, &root), 0);
            ours.count--;
            if (size > 1)
                assert_int_equal(aq_tree_check_inclusion(i, size, &leaves[i], &ours, &root),
                                 -EBADMSG);
            ours.count += 2;
            assert_int_equal(aq_tree_check_inclusion(i, size, &leaves[i], &ours, &root), -EBADMSG);
        }
    }
}

static void inclusion_refuses(void **state)
{
    aq_digest root = mth(0, 7);
    aq_proof p;

    (void)state;
    assert_int_equal(aq_tree_inclusion(&source, 5, 7, &p, NULL), 0);
    for (unsigned i = 0; i <= 8; i++)
        if (i != 5)
            assert_int_equal(aq_tree_check_inclusion(i, 7, &leaves[5], &p, &root), -EBADMSG);
    assert_int_equal(aq_tree_check_inclusion(5, 0, &leaves[5], &p, &root), -EBADMSG);
    assert_int_equal(aq_tree_check_inclusion(5, 7, &leaves[4], &p, &root), -EBADMSG);
    for (size_t i = 0; i < p.count * sizeof *p.hash; i++) {
        aq_proof bad = p;
        ((uint8_t *)bad.hash)[i] ^= 1;
        assert_int_equal(aq_tree_check_inclusion(5, 7, &leaves[5], &bad, &root), -EBADMSG);
    }
}

static void consistency(void **state)
{
    (void)state;
    for (unsigned to = 0; to <= MOST; to++)
        for (unsigned from = 0; from <= to; from += step(to)) {
            aq_digest a = mth(0, from), b = mth(0, to), other = leaves[0];
            aq_proof ours, theirs = {.count = 0};
            if (from > 0)
                naive_subproof(from, 0, to, true, &theirs);
            assert_int_equal(aq_tree_consistency(&source, from, to, &ours, NULL), 0);
            assert_same(&ours, &theirs);
            assert_int_equal(aq_tree_check_consistency(from, to, &a, &b, &ours),
                             from > 0 || to == 0 ? 0 : -EBADMSG);
            if (from != to)
                assert_int_equal(aq_tree_check_consistency(to, from, &b, &a, &ours), -EBADMSG);
            other.b[0] ^= 1;
            assert_int_equal(aq_tree_check_consistency(from, to, &other, &b, &ours), -EBADMSG);
            if (from > 0)
                assert_int_equal(aq_tree_check_consistency(from, to, &a, &other, &ours), -EBADMSG);
            ours.count++;
            assert_int_equal(aq_tree_check_consistency(from, to, &a, &b, &ours), -EBADMSG);
        }
}

/* The roots of the eight inputs that Certificate Transparency's own tests use. */
static void known_answers(void **state)
{
    static const char *const inputs[] = {"",         "\x00",     "\x10",
                                         "\x20\x21", "\x30\x31", "\x40\x41\x42\x43"};
    static const size_t lens[] = {0, 1, 1, 2, 2, 4};
    aq_digest leaf[6], root, node;
    char hex[AQ_SHA256_HEX];

    (void)state;
    for (size_t i = 0; i < 6; i++)
        leaf[i] = aq_tree_leaf(inputs[i], lens[i]);
    root = aq_tree_empty();
    assert_string_equal(aq_digest_hex(&root, hex),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(aq_digest_hex(&leaf[0], hex),
                        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    root = aq_tree_node(&leaf[0], &leaf[1]);
    assert_string_equal(aq_digest_hex(&root, hex),
                        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
    root = aq_tree_node(&root, &leaf[2]);
    assert_string_equal(aq_digest_hex(&root, hex),
                        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77");
    node = aq_tree_node(&leaf[2], &leaf[3]);
    root = aq_tree_node(&leaf[0], &leaf[1]);
    root = aq_tree_node(&root, &node);
    root = aq_tree_node(&root, &leaf[4]);
    assert_string_equal(aq_digest_hex(&root, hex),
                        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4");
}

/* ---- outside vectors: base64 in JSON, "wantErr" says what is expected ---- */

/* Some vectors have roots that are not hashes at all; zeros fill them up to our type. */
static int unbase(const json_t *text, bool exact, aq_digest *ret)
{
    const char *s = json_string_value(text);
    aq_auto_buf b = {0};

    *ret = (aq_digest){{0}};
    if (!s || aq_unbase64(s, strlen(s), &b) < 0 || b.len > sizeof ret->b ||
        (exact && b.len != sizeof ret->b))
        return -EBADMSG;
    memcpy(ret->b, aq_buf_str(&b), b.len);
    return 0;
}

static int check_vector(const json_t *v)
{
    const json_t *list = json_object_get(v, "proof");
    aq_proof p = {.count = json_array_size(list)};
    aq_digest a, b;

    for (size_t i = 0; i < p.count; i++)
        if (i >= AQ_PROOF_MAX || unbase(json_array_get(list, i), true, &p.hash[i]) < 0)
            return -EBADMSG;
    if (json_object_get(v, "size1")) {
        if (unbase(json_object_get(v, "root1"), false, &a) < 0 ||
            unbase(json_object_get(v, "root2"), false, &b) < 0)
            return -EBADMSG;
        return aq_tree_check_consistency((uint64_t)aq_json_int(v, "size1", 0),
                                         (uint64_t)aq_json_int(v, "size2", 0), &a, &b, &p);
    }
    if (unbase(json_object_get(v, "leafHash"), true, &a) < 0 ||
        unbase(json_object_get(v, "root"), true, &b) < 0)
        return -EBADMSG;
    return aq_tree_check_inclusion((uint64_t)aq_json_int(v, "leafIdx", 0),
                                   (uint64_t)aq_json_int(v, "treeSize", 0), &a, &p, &b);
}

static size_t check_folder(int dirfd, const char *path)
{
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    size_t done = 0;

    assert_non_null(d);
    while ((e = readdir(d))) {
        aq_auto_buf text = {0};
        aq_auto_json json_t *v = NULL;
        aq_err err;
        if (e->d_name[0] == '.')
            continue;
        if (e->d_type == DT_DIR) {
            done += check_folder(fd, e->d_name);
            continue;
        }
        assert_int_equal(aq_read_file(fd, e->d_name, 1 << 20, &text, &err), 0);
        if (aq_json_parse(text.data, text.len, e->d_name, &v, &err) < 0) {
            /* A number that no tree of ours can have. */
            assert_non_null(strstr(text.data, "\"wantErr\": true"));
            done++;
            continue;
        }
        if (json_is_true(json_object_get(v, "wantErr")) != (check_vector(v) < 0))
            fail_msg("%s/%s: %s", path, e->d_name, aq_json_str(v, "desc"));
        done++;
    }
    closedir(d);
    return done;
}

/* NULL where the outside data is not at hand. */
static const char *outside_folder(void)
{
    static char path[4096];
    const char *data = getenv("AQUARIUM_DATA");

    snprintf(path, sizeof path, "%s/sigstore/merkle-vectors", data ? data : "");
    return data && access(path, R_OK) == 0 ? path : NULL;
}

static void outside_vectors(void **state)
{
    size_t done = check_folder(AT_FDCWD, outside_folder());

    (void)state;
    print_message("# %zu outside vectors\n", done);
    assert_true(done > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inclusion),       cmocka_unit_test(inclusion_refuses),
        cmocka_unit_test(consistency),     cmocka_unit_test(known_answers),
        cmocka_unit_test(outside_vectors), /* last */
    };
    size_t count = sizeof tests / sizeof *tests;

    return _cmocka_run_group_tests("tree", tests, outside_folder() ? count : count - 1, setup,
                                   teardown);
}
