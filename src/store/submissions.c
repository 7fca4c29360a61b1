/* Submissions and their reports: what came in, and what the walk concluded. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "store/internal.h"

/* 1 when the submission is new, 0 when it is this very one and its walk never ended (it was killed,
 * or failed): then it may be walked again. -EEXIST says which was seen before: a replayed envelope
 * repeats its id, a forged one may repeat only the nonce. */
static int check_new(aq_store *s, const aq_submission *sub, const char *envelope, aq_err *err)
{
    bool same_id = false, unfinished = false;
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_SEEN, &q, err);

    if (r < 0)
        return r;
    aq_bind_text(q, 1, sub->id);
    aq_bind_text(q, 2, sub->nonce);
    aq_bind_text(q, 3, envelope);
    r = aq_store_row(s, q, "looking for a replay", err);
    if (r > 0) {
        same_id = sqlite3_column_int(q, 0);
        unfinished = sqlite3_column_int(q, 1);
    }
    sqlite3_reset(q);
    if (r <= 0)
        return r < 0 ? r : 1;
    if (unfinished)
        return 0;
    return aq_fail(err, -EEXIST, "submission %.80s was seen before (same %s)", sub->id,
                   same_id ? "id" : "nonce");
}

/* A publisher is one whatever the case and composition of its id; bytes that are no text stay. One
 * that nobody verified is another, with a mark that no id has. */
static const char *sender(aq_buf *out, const char *publisher, bool verified)
{
    aq_auto_buf fold = {0};

    if (!verified)
        aq_buf_addc(out, '\x1f');
    if (aq_text_fold(&fold, publisher, strlen(publisher)) < 0)
        aq_buf_adds(out, publisher);
    else
        aq_buf_add(out, fold.data, fold.len);
    return aq_buf_str(out);
}

int aq_senders_fill(aq_store *s, aq_err *err)
{
    aq_auto_buf last = {0};
    sqlite3_stmt *q;
    int r;

    for (;;) {
        aq_auto_buf folded = {0};
        if ((r = aq_store_statement(s, AQ_SQL_SENDER_OLD, &q, err)) < 0)
            return r;
        aq_bind_text(q, 1, aq_buf_str(&last));
        if ((r = aq_store_row(s, q, "reading publishers", err)) <= 0)
            break;
        aq_buf_clear(&last);
        aq_buf_adds(&last, aq_column(q, 0));
        sqlite3_reset(q);
        if ((r = aq_store_statement(s, AQ_SQL_SENDER_SET, &q, err)) < 0)
            return r;
        aq_bind_text(q, 1, aq_buf_str(&last));
        aq_bind_text(q, 2, sender(&folded, aq_buf_str(&last), false));
        if ((r = aq_store_run(s, q, "folding publishers", err)) < 0)
            return r;
    }
    return r < 0 ? r
                 : aq_store_exec(s, "DROP INDEX submission_publisher", "folding publishers", err);
}

static int insert_submission(aq_store *s, const aq_submission *sub, aq_err *err)
{
    aq_auto_json json_t *whole = aq_submission_json(sub);
    aq_auto_free char *envelope = json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS);
    aq_auto_buf folded = {0};
    sqlite3_stmt *q;
    int r = envelope ? check_new(s, sub, envelope, err)
                     : aq_fail(err, -EINVAL, "the envelope cannot be stored");

    if (r <= 0 || (r = aq_store_statement(s, AQ_SQL_SUBMIT, &q, err)) < 0)
        return r;
    aq_bind_text(q, 1, sub->id);
    aq_bind_text(q, 2, sub->nonce);
    aq_bind_text(q, 3, sub->publisher);
    sqlite3_bind_int64(q, 4, sub->time);
    sqlite3_bind_int64(q, 5, aq_now());
    aq_bind_text(q, 6, sub->namespace_);
    aq_bind_text(q, 7, sub->name);
    aq_bind_text(q, 8, sub->version);
    aq_bind_text(q, 9, envelope);
    aq_bind_text(q, 10, sender(&folded, sub->publisher, sub->signature == AQ_SIGNATURE_GOOD));
    return aq_store_run(s, q, "entering a submission", err);
}

int aq_store_begin(aq_store *s, const aq_submission *sub, aq_err *err)
{
    int r;

    if (!sub->id || !sub->nonce || !sub->publisher)
        return aq_fail(err, -EINVAL, "a submission needs an id, a nonce and a publisher");
    if ((r = aq_store_lock(s, err)) < 0)
        return r;
    return aq_store_unlock(s, insert_submission(s, sub, err), err);
}

static int insert_report(aq_store *s, const char *submission, const aq_package *package,
                         const aq_manifest *manifest, aq_verdict verdict,
                         const aq_digest *verdict_digest, const char *report, uint64_t ledger_index,
                         aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_FINISH, &q, err);

    if (r < 0)
        return r;
    aq_bind_text(q, 1, submission);
    sqlite3_bind_int64(q, 2, aq_now());
    aq_bind_digest(q, 3, &package->digest);
    aq_bind_text(q, 4, manifest->namespace_);
    aq_bind_text(q, 5, manifest->name);
    aq_bind_text(q, 6, manifest->version);
    aq_bind_text(q, 7, aq_verdict_name(verdict));
    aq_bind_digest(q, 8, verdict_digest);
    sqlite3_bind_int64(q, 9, (sqlite3_int64)ledger_index);
    aq_bind_text(q, 10, report);
    r = aq_store_run(s, q, "entering a report", err);
    if (r < 0 && sqlite3_extended_errcode(s->db) == SQLITE_CONSTRAINT_PRIMARYKEY)
        return aq_fail(err, -EEXIST, "submission %.80s has a report already", submission);
    if (r < 0 && sqlite3_extended_errcode(s->db) == SQLITE_CONSTRAINT_FOREIGNKEY)
        return aq_fail(err, -ENOENT, "submission %.80s is not in the store", submission);
    return r;
}

int aq_store_finish(aq_store *s, const char *submission, const aq_package *package,
                    const aq_manifest *manifest, aq_verdict verdict,
                    const aq_digest *verdict_digest, const json_t *report, uint64_t ledger_index,
                    aq_err *err)
{
    aq_auto_free char *text = json_dumps(report, JSON_COMPACT | JSON_SORT_KEYS);
    int r;

    if (!text || ledger_index > INT64_MAX)
        return aq_fail(err, -EINVAL, "the report of submission %.80s cannot be stored", submission);
    if ((r = aq_store_lock(s, err)) < 0)
        return r;
    r = insert_report(s, submission, package, manifest, verdict, verdict_digest, text, ledger_index,
                      err);
    return aq_store_unlock(s, r, err);
}

int aq_store_entries(aq_store *s, uint64_t *ret, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_ENTRIES, &q, err);

    if (r < 0 || (r = aq_store_row(s, q, "reading ledger indexes", err)) < 0)
        return r;
    *ret = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return 0;
}

int aq_store_mark(aq_store *s, uint64_t entries, const aq_digest *leaf, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_lock(s, err);

    if (r < 0)
        return r;
    r = aq_store_statement(s, AQ_SQL_MARK, &q, err);
    if (r == 0) {
        sqlite3_bind_int64(q, 1, (sqlite3_int64)entries);
        aq_bind_digest(q, 2, leaf);
        r = aq_store_run(s, q, "marking the ledger's length", err);
    }
    return aq_store_unlock(s, r, err);
}

int aq_store_marked(aq_store *s, uint64_t *entries, aq_digest *leaf, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_MARK_GET, &q, err);
    const void *hash;

    *entries = 0;
    if (r < 0 || (r = aq_store_row(s, q, "reading the ledger's length", err)) < 0)
        return r;
    hash = r > 0 ? sqlite3_column_blob(q, 1) : NULL;
    if (hash && sqlite3_column_bytes(q, 1) == (int)sizeof leaf->b) {
        *entries = (uint64_t)sqlite3_column_int64(q, 0);
        memcpy(leaf->b, hash, sizeof leaf->b);
    }
    sqlite3_reset(q);
    return 0;
}

int aq_store_rate(aq_store *s, const char *publisher, bool verified, int64_t since, uint64_t *ret,
                  aq_err *err)
{
    aq_auto_buf folded = {0};
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_RATE, &q, err);

    if (r < 0)
        return r;
    aq_bind_text(q, 1, sender(&folded, publisher, verified));
    sqlite3_bind_int64(q, 2, since);
    if ((r = aq_store_row(s, q, "counting submissions", err)) < 0)
        return r;
    *ret = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return 0;
}

/* One report by the statement's key, or -ENOENT. */
static int read_report(aq_store *s, sqlite3_stmt *q, const char *key, json_t **ret, aq_err *err)
{
    const char *text;
    int r = aq_store_row(s, q, "reading a report", err);

    if (r < 0)
        return r;
    if (r == 0)
        return aq_fail(err, -ENOENT, "no report of %.80s in the store", key);
    text = (const char *)sqlite3_column_text(q, 0);
    r = text ? aq_json_parse(text, (size_t)sqlite3_column_bytes(q, 0), "stored report", ret, err)
             : aq_fail(err, -EBADMSG, "%s: the report of %.80s is damaged", s->path, key);
    sqlite3_reset(q);
    return r;
}

int aq_store_report(aq_store *s, const char *submission, json_t **ret, aq_err *err)
{
    aq_digest package;
    sqlite3_stmt *q;
    int r;

    if ((r = aq_store_statement(s, AQ_SQL_REPORT, &q, err)) < 0)
        return r;
    aq_bind_text(q, 1, submission);
    r = read_report(s, q, submission, ret, err);
    if (r != -ENOENT || aq_digest_parse(submission, &package) < 0)
        return r;
    if ((r = aq_store_statement(s, AQ_SQL_REPORT_OF_PACKAGE, &q, err)) < 0)
        return r;
    aq_bind_digest(q, 1, &package);
    return read_report(s, q, submission, ret, err);
}

static void take_concluded(aq_arena *a, sqlite3_stmt *q, aq_concluded *ret)
{
    const void *package = sqlite3_column_blob(q, 3);

    *ret = (aq_concluded){
        .entry = (uint64_t)sqlite3_column_int64(q, 0),
        .time = sqlite3_column_int64(q, 1),
        .verdict = aq_arena_strdup(a, aq_column(q, 2)),
        .namespace_ = aq_arena_strdup(a, aq_column(q, 4)),
        .name = aq_arena_strdup(a, aq_column(q, 5)),
        .version = aq_arena_strdup(a, aq_column(q, 6)),
        .submission = aq_arena_strdup(a, aq_column(q, 7)),
    };
    if (package && sqlite3_column_bytes(q, 3) == (int)sizeof ret->package.b)
        memcpy(ret->package.b, package, sizeof ret->package.b);
}

int aq_store_concluded(aq_store *s, aq_arena *a, const aq_concluded_query *query, uint64_t from,
                       size_t max, aq_concluded **ret, size_t *count, aq_err *err)
{
    aq_concluded *rows = aq_arena_alloc(a, (max ? max : 1) * sizeof *rows);
    size_t n = 0;
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_REPORTS, &q, err);

    if (r < 0)
        return r;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)from - 1);
    sqlite3_bind_int64(q, 2, query->since);
    aq_bind_text(q, 3, query->verdict);
    aq_bind_text(q, 4, query->name);
    if (query->package)
        aq_bind_digest(q, 5, query->package);
    sqlite3_bind_int64(q, 6, (sqlite3_int64)max);
    while (n < max && (r = aq_store_row(s, q, "listing reports", err)) > 0)
        take_concluded(a, q, &rows[n++]);
    sqlite3_reset(q);
    if (r < 0)
        return r;
    *ret = rows;
    *count = n;
    return 0;
}
