/* The store: submissions, their reports, known names. SQLite (WAL) now, PostgreSQL later behind
 * the same functions. Several processes may use one store at once.
 *
 * The ledger is not in here: it has its own durability. If store and ledger disagree, the ledger
 * is right. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/submission.h"
#include "model/verdict.h"

typedef struct aq_store aq_store;

/* Opens or makes `store.db` in the folder `dir`, and brings an older schema up to date in one
 * transaction. A newer schema than ours is refused with the version in the message. */
int aq_store_open(const char *dir, aq_store **ret, aq_err *err);
void aq_store_close(aq_store *s); /* takes NULL */
int aq_store_version(aq_store *s, int *ret, aq_err *err);

/* A submission enters before its walk starts; -EEXIST when its id or nonce was seen before (a
 * replayed envelope). The same envelope may enter again while no report of it exists: a walk that
 * was killed does not cost the publisher the submission. */
int aq_store_begin(aq_store *s, const aq_submission *sub, aq_err *err);
/* What the walk concluded. `report` is kept whole. */
int aq_store_finish(aq_store *s, const char *submission, const aq_package *package,
                    const aq_manifest *manifest, aq_verdict verdict,
                    const aq_digest *verdict_digest, const json_t *report, uint64_t ledger_index,
                    aq_err *err);

/* How many ledger entries the reports and the mark kept here imply: one more than the greatest
 * index, or 0. */
int aq_store_entries(aq_store *s, uint64_t *ret, aq_err *err);
/* Remembers that the ledger has `entries` entries, the last of them with this leaf hash. For what
 * leaves no report, and must not be undone by putting an older ledger back. */
int aq_store_mark(aq_store *s, uint64_t entries, const aq_digest *leaf, aq_err *err);
/* The greatest of these; 0 entries when there was none. */
int aq_store_marked(aq_store *s, uint64_t *entries, aq_digest *leaf, aq_err *err);

/* Submissions of `publisher` since `since` (seconds since 1970), this one included. Its case and
 * Unicode form do not count. Those with a verified signature count apart from the others: nobody
 * uses up the share of a publisher by writing its id. */
int aq_store_rate(aq_store *s, const char *publisher, bool verified, int64_t since, uint64_t *ret,
                  aq_err *err);

/* A name that is taken. */
typedef struct aq_known {
    const char *namespace_, *name, *publisher;
    bool confirmed; /* imported by the operator or from a verified submission; else first come */
} aq_known;

/* Enters a name; an existing row is only ever made stronger. The folded and skeleton forms are
 * computed here and indexed. */
int aq_store_know(aq_store *s, const aq_known *known, aq_err *err);
/* As above for many, in one transaction: all of them or none. */
int aq_store_know_many(aq_store *s, const aq_known *known, size_t count, aq_err *err);
/* Takes a name out again; -ENOENT when this publisher has none of it. */
int aq_store_forget(aq_store *s, const aq_known *known, aq_err *err);
int aq_store_known_count(aq_store *s, uint64_t *ret, aq_err *err);
/* Up to `max` known names after `after` (NULL: from the start), by namespace, name, publisher. */
int aq_store_known_list(aq_store *s, aq_arena *a, const aq_known *after, size_t max, aq_known **ret,
                        size_t *count, aq_err *err);

enum {
    AQ_NAME_MAX = 256,     /* bytes of a namespace, a name or a publisher's id */
    AQ_STORE_DISTANCE = 2, /* the greatest edit distance that the index answers */
};

/* The form in which names are compared for likeness: skeleton without separators (- _ . /, space).
 * -EILSEQ if it is not UTF-8. */
int aq_name_plain(aq_buf *out, const char *name);

/* Candidates that could be the same as, or look like, `name`, in any namespace: same skeleton, same
 * letters without separators, or these within edit distance `distance`. Exact: every such name is
 * found. Ordered by namespace, name, publisher. */
int aq_store_alike(aq_store *s, aq_arena *a, const char *name, size_t distance, aq_known **ret,
                   size_t *count, aq_err *err);
/* As above for a form that the caller made: its distance to the plain forms counts. */
int aq_store_alike_plain(aq_store *s, aq_arena *a, const char *plain, size_t distance,
                         aq_known **ret, size_t *count, aq_err *err);
/* A digest over all known names, whatever the order they came in: the store snapshot that a report
 * lists. */
int aq_store_snapshot(aq_store *s, aq_digest *ret, aq_err *err);
/* Until aq_store_view_end every question sees the store as it is now, whatever other processes
 * enter meanwhile, and `snapshot` and `known` (the number of names) speak of just that. Nothing can
 * be written through this store in between. */
int aq_store_view(aq_store *s, aq_digest *snapshot, uint64_t *known, aq_err *err);
void aq_store_view_end(aq_store *s); /* also when no view is held */

/* The report of a submission, or of the newest one of a package digest; -ENOENT. New reference. */
int aq_store_report(aq_store *s, const char *submission, json_t **ret, aq_err *err);

/* One line of what was concluded, without the report. */
typedef struct aq_concluded {
    uint64_t entry; /* in the ledger */
    int64_t time;
    const char *verdict, *namespace_, *name, *version, *submission; /* "" when not given */
    aq_digest package;
} aq_concluded;

/* What to list; zero and NULL ask for all. */
typedef struct aq_concluded_query {
    int64_t since;
    const char *verdict;
    const char *name; /* NAME or NAMESPACE/NAME */
    const aq_digest *package;
} aq_concluded_query;

/* Up to `max` of them with entries from `from` on, in the ledger's order. */
int aq_store_concluded(aq_store *s, aq_arena *a, const aq_concluded_query *query, uint64_t from,
                       size_t max, aq_concluded **ret, size_t *count, aq_err *err);
