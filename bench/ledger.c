/* Ledger appends against plain SQLite inserts of the same row, in one run on one disk.
 *
 * Both are durable for every batch: the ledger with its one fdatasync, SQLite with WAL and
 * synchronous=FULL. The row is the ledger's own: index, time, kind, three digests. SQLite's row is
 * the text that the ledger writes, so it is spared writing JSON, hashing and chaining; the ledger
 * is charged for them. The two take turns, several rounds each, and the median counts.
 *
 *   bench_ledger FOLDER [ROWS]     prints one JSON object a line */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ledger/ledger.h"

enum { ROUNDS = 5, BATCH_MOST = 1000 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bench_ledger: %s\n", what);
    exit(70);
}

static json_t *body(void)
{
    static const char d[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "kind", "stage", "layer", "l0", "decision",
                     "pass", "package", d, "report", d, "submission",
                     "0f3b1a52-77aa-4d43-9f0e-0a7e5f6f2b11");
}

/* Rows a second; the sum of all appends, one durable step a batch. */
static double ledger_rate(int dir, const aq_keys *keys, size_t rows, size_t batch)
{
    aq_ledger *l = NULL;
    json_t *bodies[BATCH_MOST];
    aq_err err = {0};
    uint64_t first;
    double start;

    if (aq_ledger_open(dir, keys, &l, &err) < 0)
        die(err.text);
    for (size_t i = 0; i < batch; i++)
        bodies[i] = body();
    start = now();
    for (size_t done = 0; done < rows; done += batch)
        if (aq_ledger_append_all(l, bodies, batch, &first, NULL, &err) < 0)
            die(err.text);
    start = now() - start;
    for (size_t i = 0; i < batch; i++)
        json_decref(bodies[i]);
    aq_ledger_close(l);
    return (double)rows / start;
}

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        die(sqlite3_errmsg(db));
}

static double sqlite_rate(const char *path, const aq_buf *row, size_t rows, size_t batch)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    double start;

    if (sqlite3_open(path, &db) != SQLITE_OK)
        die("cannot open the database");
    run(db, "pragma journal_mode=wal; pragma synchronous=full;"
            "create table if not exists entry (id integer primary key, text blob not null)");
    if (sqlite3_prepare_v2(db, "insert into entry (text) values (?)", -1, &insert, NULL) !=
        SQLITE_OK)
        die(sqlite3_errmsg(db));
    start = now();
    for (size_t done = 0; done < rows; done += batch) {
        if (batch > 1)
            run(db, "begin immediate");
        for (size_t i = 0; i < batch; i++) {
            sqlite3_bind_blob(insert, 1, row->data, (int)row->len, SQLITE_STATIC);
            if (sqlite3_step(insert) != SQLITE_DONE)
                die(sqlite3_errmsg(db));
            sqlite3_reset(insert);
        }
        if (batch > 1)
            run(db, "commit");
    }
    start = now() - start;
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return (double)rows / start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *v)
{
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    static const size_t batches[] = {1, 10, 100, 1000};
    size_t rows = argc > 2 ? (size_t)atol(argv[2]) : 2000;
    aq_auto_buf row = {0}, path = {0};
    aq_auto_fd int dir = -1;
    aq_keys *keys = NULL;
    aq_ledger *l = NULL;
    json_t *one = body();
    aq_err err = {0};
    uint64_t index;

    if (argc < 2 || rows == 0)
        die("usage: bench_ledger FOLDER [ROWS]");
    dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || aq_keys_open(dir, &keys, &err) < 0 || aq_ledger_open(dir, keys, &l, &err) < 0 ||
        aq_ledger_append(l, one, &index, NULL, &err) < 0 ||
        aq_ledger_entry(l, index, &row, &err) < 0)
        die(dir < 0 ? strerror(errno) : err.text);
    json_decref(one);
    aq_ledger_close(l);
    aq_buf_addf(&path, "%s/bench.db", argv[1]);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        size_t batch = batches[b], count = (rows * (b ? 5 : 1) + batch - 1) / batch * batch;
        double ours[ROUNDS], theirs[ROUNDS], x, y;
        for (int r = 0; r < ROUNDS; r++) {
            ours[r] = ledger_rate(dir, keys, count, batch);
            theirs[r] = sqlite_rate(path.data, &row, count, batch);
        }
        x = median(ours);
        y = median(theirs);
        printf("{\"batch\": %zu, \"rows\": %zu, \"row_bytes\": %zu, \"ledger_per_s\": %.0f, "
               "\"sqlite_per_s\": %.0f, \"ratio\": %.2f}\n",
               batch, count, row.len, x, y, x / y);
        fflush(stdout);
    }
    aq_keys_free(keys);
    return 0;
}
