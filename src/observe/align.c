/* Lining up two sequences by the greedy algorithm of Myers (1986): all places that d insertions and
 * deletions reach, for d = 0, 1, 2 …, on the diagonals of the edit graph. The way back is found in
 * the furthest places that were kept of each round; that memory bounds d. */
#include "observe/align.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/mem.h"

enum { EDITS = 1200 }; /* insertions and deletions; the memory is their square, in words */

typedef struct graph {
    const uint64_t *a, *b;
    ssize_t n, m;
    int32_t *reach; /* round d begins at d² and has the diagonals -d … d */
} graph;

/* One insertion (of b) or deletion (of a), where it begins. */
typedef struct edit {
    ssize_t x, y;
    bool inserts;
} edit;

static int32_t *cell(const graph *g, int d, int k)
{
    return &g->reach[(size_t)d * (size_t)d + (size_t)(k + d)];
}

/* Does the best way to diagonal k in round d end with an insertion? */
static bool inserts(const graph *g, int d, int k)
{
    return k == -d || (k != d && *cell(g, d - 1, k - 1) < *cell(g, d - 1, k + 1));
}

/* The round in which the end is reached, or -1. */
static int search(const graph *g)
{
    for (int d = 0; d <= EDITS; d++)
        for (int k = -d; k <= d; k += 2) {
            ssize_t x = 0, y;

            if (d > 0)
                x = inserts(g, d, k) ? *cell(g, d - 1, k + 1) : *cell(g, d - 1, k - 1) + 1;
            y = x - k;
            while (x < g->n && y < g->m && g->a[x] == g->b[y])
                x++, y++;
            *cell(g, d, k) = (int32_t)x;
            if (x >= g->n && y >= g->m)
                return d;
        }
    return -1;
}

/* The edits of the way that was found, from its end to its beginning. */
static void go_back(const graph *g, int rounds, edit *edits)
{
    ssize_t x = g->n, y = g->m;

    for (int d = rounds; d > 0; d--) {
        bool in = inserts(g, d, (int)(x - y));
        int k = (int)(x - y) + (in ? 1 : -1);

        x = *cell(g, d - 1, k);
        y = x - k;
        edits[d - 1] = (edit){x, y, in};
    }
}

/* What was deleted and inserted at one place stands in each other's place. */
static void tell(const edit *edits, int count, void (*step)(size_t i, size_t k, void *arg),
                 void *arg)
{
    for (int from = 0, to; from < count; from = to) {
        size_t deleted = 0, inserted = 0, i = (size_t)edits[from].x, k = (size_t)edits[from].y;

        for (to = from; to < count && (size_t)edits[to].x == i + deleted &&
                        (size_t)edits[to].y == k + inserted;
             to++)
            edits[to].inserts ? inserted++ : deleted++;
        for (size_t n = 0; n < deleted || n < inserted; n++)
            step(n < deleted ? i + n : SIZE_MAX, n < inserted ? k + n : SIZE_MAX, arg);
    }
}

int aq_align(const uint64_t *a, size_t a_count, const uint64_t *b, size_t b_count,
             void (*step)(size_t i, size_t k, void *arg), void *arg)
{
    size_t equal = 0, least = a_count < b_count ? a_count : b_count;
    aq_auto_free edit *edits = aq_alloc((EDITS + 1) * sizeof *edits);
    graph g = {.a = a, .b = b, .n = (ssize_t)a_count, .m = (ssize_t)b_count};
    aq_auto_free int32_t *reach = NULL;
    int rounds = -1;

    while (equal < least && a[equal] == b[equal])
        equal++;
    if (a_count < INT32_MAX - EDITS && b_count < INT32_MAX - EDITS) {
        reach = g.reach = aq_alloc((size_t)(EDITS + 1) * (EDITS + 1) * sizeof *reach);
        rounds = search(&g);
    }
    if (rounds < 0) {
        step(equal < a_count ? equal : SIZE_MAX, equal < b_count ? equal : SIZE_MAX, arg);
        return -E2BIG;
    }
    go_back(&g, rounds, edits);
    tell(edits, rounds, step, arg);
    return 0;
}
