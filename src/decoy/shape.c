/* Are two worlds twins? Names, counts, lengths, places and every order must be the same, and no
 * value; and decoys in a text replaced by their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "decoy/decoy.h"

const aq_decoy *aq_decoys_find(const aq_decoys *d, const char *name)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->decoys[i].name, name) == 0)
            return &d->decoys[i];
    return NULL;
}

const char *aq_decoys_fact(const aq_decoys *d, const char *name)
{
    return aq_machine_fact(&d->machine, name);
}

/* ---- replacing ---- */

const aq_marks *aq_decoys_marks(aq_arena *a, const aq_decoys *d)
{
    aq_auto_free aq_mark *rows = aq_alloc((d->count + 1) * sizeof *rows);

    for (size_t i = 0; i < d->count; i++)
        rows[i] = (aq_mark){d->decoys[i].name, d->decoys[i].value, d->decoys[i].len};
    return aq_marks_new(a, rows, d->count);
}

/* ---- comparing ---- */

static int differ(aq_err *err, const char *what, const char *name)
{
    return aq_fail(err, -EUCLEAN, "the worlds differ in %s of %s", what, name);
}

static int same_place(const aq_place *x, const aq_place *y)
{
    return x->kind == y->kind && x->line == y->line && x->offset == y->offset &&
           strlen(x->where) == strlen(y->where);
}

static int same_decoys(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    for (size_t i = 0; i < a->count; i++) {
        const aq_decoy *x = &a->decoys[i], *y = &b->decoys[i];

        if (strcmp(x->name, y->name) != 0 || x->grade != y->grade)
            return differ(err, "the name or grade", x->name);
        if (x->len != y->len)
            return differ(err, "the length", x->name);
        if (x->place_count != y->place_count)
            return differ(err, "the places", x->name);
        for (size_t k = 0; k < x->place_count; k++)
            if (!same_place(&x->places[k], &y->places[k]))
                return differ(err, "the places", x->name);
    }
    return 0;
}

static int same_files(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    aq_auto_arena arena = aq_arena_new();
    const aq_marks *of_a = aq_decoys_marks(arena, a), *of_b = aq_decoys_marks(arena, b);

    for (size_t i = 0; i < a->file_count; i++) {
        const aq_decoy_file *x = &a->files[i], *y = &b->files[i];
        aq_auto_buf p = {0}, q = {0};

        if (strlen(x->path) != strlen(y->path) || x->len != y->len)
            return differ(err, "the length", x->path);
        if (x->mode != y->mode || x->folder != y->folder)
            return differ(err, "the kind or mode", x->path);
        aq_marks_replace(of_a, x->path, strlen(x->path), false, &p);
        aq_marks_replace(of_b, y->path, strlen(y->path), false, &q);
        if (strcmp(aq_buf_str(&p), aq_buf_str(&q)) != 0)
            return differ(err, "the path", x->path);
    }
    return 0;
}

static int same_rest(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    const aq_machine *m = &a->machine, *n = &b->machine;

    for (size_t i = 0; i < a->env_count; i++) {
        size_t name = strcspn(a->env[i], "=") + 1;

        if (strncmp(a->env[i], b->env[i], name) != 0 || strlen(a->env[i]) != strlen(b->env[i]))
            return aq_fail(err, -EUCLEAN, "the worlds differ in the length of the variable %.*s",
                           (int)name - 1, a->env[i]);
    }
    for (size_t i = 0; i < m->fact_count; i++)
        if (strcmp(m->facts[i].name, n->facts[i].name) != 0 ||
            strlen(m->facts[i].value) != strlen(n->facts[i].value))
            return differ(err, "the length", m->facts[i].name);
    return 0;
}

/* ---- order ---- */

/* Compares two things of one world; the order must be the same in the other. */
typedef int (*order)(const aq_decoys *d, size_t i, size_t k);

static int sign(int64_t n)
{
    return (n > 0) - (n < 0);
}

static int by_path(const aq_decoys *d, size_t i, size_t k)
{
    return sign(strcmp(d->files[i].path, d->files[k].path));
}

static int by_time(const aq_decoys *d, size_t i, size_t k)
{
    return sign(d->files[i].mtime - d->files[k].mtime);
}

static bool is_number(const aq_decoy *d)
{
    return d->len > 0 && strspn(d->value, "0123456789") == d->len;
}

static int by_number(const aq_decoys *d, size_t i, size_t k)
{
    const aq_decoy *x = &d->decoys[i], *y = &d->decoys[k];

    if (!is_number(x) || !is_number(y))
        return 0;
    return x->len != y->len ? (x->len < y->len ? -1 : 1) : sign(strcmp(x->value, y->value));
}

typedef struct sorting {
    const aq_decoys *d;
    order order;
} sorting;

static int compare(const void *x, const void *y, void *s)
{
    const sorting *k = s;
    size_t i = *(const size_t *)x, n = *(const size_t *)y;
    int c = k->order(k->d, i, n);

    return c ? c : (i > n) - (i < n);
}

/* Sorted by the one world, neighbours must stand the same way in the other. */
static bool same_order(const aq_decoys *a, const aq_decoys *b, size_t *all, size_t count, order o,
                       size_t *at)
{
    sorting s = {a, o};
    bool same = true;

    if (count)
        qsort_r(all, count, sizeof *all, compare, &s);
    for (size_t i = 1; i < count && same; i++) {
        same = o(a, all[i - 1], all[i]) == o(b, all[i - 1], all[i]);
        *at = all[i];
    }
    return same;
}

static int same_orders(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    size_t most = a->file_count > a->count ? a->file_count : a->count, at = 0, n = 0;
    size_t *all = aq_alloc((most + 1) * sizeof *all);
    int r = 0;

    for (size_t i = 0; i < a->count; i++)
        if (is_number(&a->decoys[i]) && is_number(&b->decoys[i]))
            all[n++] = i;
    if (!same_order(a, b, all, n, by_number, &at))
        r = differ(err, "the order", a->decoys[at].name);
    for (size_t i = 0; i < a->file_count; i++)
        all[i] = i;
    if (r == 0 && !same_order(a, b, all, a->file_count, by_path, &at))
        r = differ(err, "the order by name", a->files[at].path);
    if (r == 0 && !same_order(a, b, all, a->file_count, by_time, &at))
        r = differ(err, "the order by time", a->files[at].path);
    free(all);
    return r;
}

int aq_decoys_alike(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    int r;

    if (a->count != b->count || a->file_count != b->file_count || a->env_count != b->env_count ||
        a->machine.fact_count != b->machine.fact_count)
        return aq_fail(err, -EUCLEAN, "the worlds differ in their number of decoys or files");
    if ((r = same_decoys(a, b, err)) < 0 || (r = same_files(a, b, err)) < 0 ||
        (r = same_rest(a, b, err)) < 0)
        return r;
    return same_orders(a, b, err);
}

int aq_decoys_twins(const aq_decoys *a, const aq_decoys *b, aq_err *err)
{
    int r = aq_decoys_alike(a, b, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < a->file_count; i++)
        if (a->files[i].mtime - a->start != b->files[i].mtime - b->start)
            return differ(err, "the time", a->files[i].path);
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (a->decoys[i].len == b->decoys[k].len &&
                memcmp(a->decoys[i].value, b->decoys[k].value, a->decoys[i].len) == 0)
                return aq_fail(err, -EUCLEAN, "the worlds share the value of %s",
                               a->decoys[i].name);
    return 0;
}
