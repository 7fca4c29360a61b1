/* The snapshot digest: which names were known when a report was made.
 *
 * It must not depend on the order in which names came, and must not read a million names for each
 * report. So names fall into 256 buckets by the hash of namespace and name; a bucket's digest
 * covers its rows in order and is computed again only after one of them changed. The snapshot is
 * the SHA-256 over (bucket number, digest) of all buckets that hold a name. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

enum { BUCKETS = 256 };

typedef struct bucket {
    bool present, clean;
    aq_digest digest;
} bucket;

static int load(aq_store *s, bucket all[static BUCKETS], aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_BUCKETS, &q, err);

    memset(all, 0, BUCKETS * sizeof *all);
    if (r < 0)
        return r;
    while ((r = aq_store_row(s, q, "reading the snapshot", err)) > 0) {
        int id = sqlite3_column_int(q, 0);

        if (id < 0 || id >= BUCKETS)
            continue;
        all[id].present = true;
        all[id].clean = sqlite3_column_bytes(q, 1) == AQ_SHA256_LEN;
        if (all[id].clean)
            memcpy(all[id].digest.b, sqlite3_column_blob(q, 1), AQ_SHA256_LEN);
    }
    return r;
}

/* Fields end with a NUL, which no name can hold; so two lists of rows never have one spelling. */
static int digest_rows(aq_store *s, int id, aq_digest *ret, aq_err *err)
{
    aq_hash *h = aq_hash_begin();
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_BUCKET_ROWS, &q, err);

    if (r == 0) {
        sqlite3_bind_int(q, 1, id);
        while ((r = aq_store_row(s, q, "reading names", err)) > 0) {
            for (int i = 0; i < 3; i++)
                aq_hash_add(h, aq_column(q, i), strlen(aq_column(q, i)) + 1);
            aq_hash_add(h, sqlite3_column_int(q, 3) ? "1" : "0", 1);
        }
    }
    *ret = aq_hash_end(h);
    return r;
}

static int refresh(aq_store *s, bucket all[static BUCKETS], aq_err *err)
{
    int r = load(s, all, err);

    for (int i = 0; r == 0 && i < BUCKETS; i++) {
        sqlite3_stmt *q;

        if (!all[i].present || all[i].clean)
            continue;
        if ((r = digest_rows(s, i, &all[i].digest, err)) < 0 ||
            (r = aq_store_statement(s, AQ_SQL_BUCKET_SET, &q, err)) < 0)
            return r;
        sqlite3_bind_int(q, 1, i);
        aq_bind_digest(q, 2, &all[i].digest);
        r = aq_store_run(s, q, "keeping the snapshot", err);
    }
    return r;
}

static bool is_dirty(const bucket all[static BUCKETS])
{
    for (int i = 0; i < BUCKETS; i++)
        if (all[i].present && !all[i].clean)
            return true;
    return false;
}

static aq_digest over_buckets(const bucket all[static BUCKETS])
{
    aq_hash *h = aq_hash_begin();

    for (int i = 0; i < BUCKETS; i++) {
        uint8_t number = (uint8_t)i;

        if (!all[i].present)
            continue;
        aq_hash_add(h, &number, 1);
        aq_hash_add(h, all[i].digest.b, AQ_SHA256_LEN);
    }
    return aq_hash_end(h);
}

int aq_store_snapshot(aq_store *s, aq_digest *ret, aq_err *err)
{
    bucket all[BUCKETS];
    int r = load(s, all, err);

    if (r < 0)
        return r;
    if (is_dirty(all)) {
        if ((r = aq_store_lock(s, err)) < 0)
            return r;
        if ((r = aq_store_unlock(s, refresh(s, all, err), err)) < 0)
            return r;
    }
    *ret = over_buckets(all);
    return 0;
}

/* 1 when this view is held, 0 when another process entered a name just before it. */
static int try_view(aq_store *s, aq_digest *snapshot, uint64_t *known, aq_err *err)
{
    bucket all[BUCKETS];
    aq_err ignored;
    int r;

    /* Refreshes what has to be written; a view cannot write. */
    if ((r = aq_store_snapshot(s, snapshot, err)) < 0 || (r = aq_store_look(s, err)) < 0)
        return r;
    if ((r = load(s, all, err)) == 0 && !is_dirty(all) &&
        (r = aq_store_known_count(s, known, err)) == 0) {
        *snapshot = over_buckets(all);
        s->viewing = true;
        return 1;
    }
    aq_store_unlock(s, -ECANCELED, &ignored);
    return r;
}

int aq_store_view(aq_store *s, aq_digest *snapshot, uint64_t *known, aq_err *err)
{
    enum { TRIES = 100 };
    int r = 0;

    for (int i = 0; i < TRIES && r == 0; i++)
        r = try_view(s, snapshot, known, err);
    if (r == 0)
        return aq_fail(err, -EBUSY, "%s: names are entered faster than they can be read", s->path);
    return r < 0 ? r : 0;
}

void aq_store_view_end(aq_store *s)
{
    aq_err ignored;

    if (!s || !s->viewing)
        return;
    s->viewing = false;
    aq_store_unlock(s, -ECANCELED, &ignored); /* nothing was written */
}
