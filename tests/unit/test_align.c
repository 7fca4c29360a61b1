/* Lining up: every step is right, none is missing, and the way is the shortest; too much difference
 * is told as such. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "observe/align.h"
#include "unit.h"

enum { MOST = 64 };

typedef struct steps {
    bool a[MOST], b[MOST]; /* is it part of a difference? */
    size_t count, edits, first[2];
} steps;

static void take(size_t i, size_t k, void *arg)
{
    steps *s = arg;

    if (s->count++ == 0)
        s->first[0] = i, s->first[1] = k;
    if (i < MOST)
        s->a[i] = true, s->edits++;
    if (k < MOST)
        s->b[k] = true, s->edits++;
}

/* Length of the longest common subsequence, the slow and simple way. */
static size_t common(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    size_t best[MOST + 1][MOST + 1] = {{0}};

    for (size_t i = 1; i <= n; i++)
        for (size_t k = 1; k <= m; k++) {
            size_t up = best[i - 1][k], left = best[i][k - 1];

            best[i][k] = a[i - 1] == b[k - 1] ? best[i - 1][k - 1] + 1 : up > left ? up : left;
        }
    return best[n][m];
}

static void check(const uint64_t *a, size_t n, const uint64_t *b, size_t m)
{
    steps s = {0};
    size_t i = 0, k = 0;

    assert_int_equal(aq_align(a, n, b, m, take, &s), 0);
    assert_int_equal(s.edits, n + m - 2 * common(a, n, b, m));
    for (;; i++, k++) { /* what is no part of a difference is equal */
        while (i < n && s.a[i])
            i++;
        while (k < m && s.b[k])
            k++;
        if (i == n || k == m)
            break;
        assert_int_equal(a[i], b[k]);
    }
    assert_true(i == n && k == m);
}

static void shortest_way(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        uint64_t a[MOST] = {0}, b[MOST];
        size_t n = (size_t)round % MOST, m;

        for (size_t i = 0; i < n; i++)
            a[i] = (seed = seed * 1103515245 + 12345) >> 16 & 3;
        memcpy(b, a, sizeof a);
        m = (seed = seed * 1103515245 + 12345) >> 16 & 31;
        for (size_t i = 0; i < m; i++)
            b[i] = (seed = seed * 1103515245 + 12345) >> 16 & 3;
        check(a, n, b, m > n ? m : n ? n - 1 : 0);
    }
}

static void what_stands_in_each_others_place(void **state)
{
    const uint64_t a[] = {1, 2, 3, 9}, b[] = {1, 7, 8, 9}, longer[] = {1, 2, 3, 9, 5};
    steps s = {0};

    (void)state;
    assert_int_equal(aq_align(a, 4, b, 4, take, &s), 0);
    assert_int_equal(s.count, 2);
    assert_true(s.first[0] == 1 && s.first[1] == 1);
    s = (steps){0};
    assert_int_equal(aq_align(a, 4, longer, 5, take, &s), 0);
    assert_true(s.count == 1 && s.first[0] == SIZE_MAX && s.first[1] == 4);
    s = (steps){0};
    assert_int_equal(aq_align(a, 0, a, 0, take, &s), 0);
    assert_int_equal(s.count, 0);
}

static void too_much(void **state)
{
    enum { MANY = 5000 };
    aq_auto_free uint64_t *a = aq_alloc(MANY * sizeof *a);
    aq_auto_free uint64_t *b = aq_alloc(MANY * sizeof *b);
    steps s = {0};

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        a[i] = i, b[i] = i < 40 ? i : MANY + i;
    assert_int_equal(aq_align(a, MANY, b, MANY, take, &s), -E2BIG);
    assert_true(s.count == 1 && s.first[0] == 40 && s.first[1] == 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shortest_way),
        cmocka_unit_test(what_stands_in_each_others_place),
        cmocka_unit_test(too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
