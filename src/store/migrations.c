/* Brings an older schema up to date, whole or not at all. The steps are rows of migrations.def; the
 * number of the last one that was applied is the database's user_version. */
#include <errno.h>
#include <stdio.h>

#include "store/internal.h"

enum { APPLICATION_ID = 0x41715374 }; /* "AqSt": says that a database file is ours */

static const struct step {
    int version;
    const char *what;
    int (*fill)(aq_store *s, aq_err *err);
    const char *sql;
} steps[] = {
#define AQ_MIGRATION(version, what, fill, sql) {version, what, fill, sql},
#include "store/migrations.def"
#undef AQ_MIGRATION
};

enum { STEPS = sizeof steps / sizeof *steps };

static int read_number(aq_store *s, const char *sql, int *ret, aq_err *err)
{
    sqlite3_stmt *q = NULL;
    int r = 0;

    if (sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
        r = aq_store_fail(s, "reading the schema version", err);
    else
        *ret = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return r;
}

int aq_store_version(aq_store *s, int *ret, aq_err *err)
{
    return read_number(s, "PRAGMA user_version", ret, err);
}

static int apply(aq_store *s, const struct step *step, aq_err *err)
{
    char sql[64];
    int r;

    if ((r = aq_store_exec(s, step->sql, step->what, err)) < 0 ||
        (step->fill && (r = step->fill(s, err)) < 0))
        return aq_err_within(err, "bringing the store to version %d (%s)", step->version,
                             step->what);
    snprintf(sql, sizeof sql, "PRAGMA user_version = %d", step->version);
    return aq_store_exec(s, sql, step->what, err);
}

/* Someone else's database must not get our tables. */
static int check_owner(aq_store *s, int version, aq_err *err)
{
    int owner = 0, tables = 0, r;

    if ((r = read_number(s, "PRAGMA application_id", &owner, err)) < 0 ||
        (r = read_number(s, "SELECT count(*) FROM sqlite_master", &tables, err)) < 0)
        return r;
    if ((owner != APPLICATION_ID && (version || tables)) || (version == 0 && tables))
        return aq_fail(err, -EBADMSG,
                       "%s is a database of another program: choose another state folder, or move "
                       "the file away",
                       s->path);
    return 0;
}

static int migrate_locked(aq_store *s, aq_err *err)
{
    int version = 0, r;
    char sql[64];

    if ((r = aq_store_version(s, &version, err)) < 0) /* another process may have been quicker */
        return r;
    for (int i = 0; i < STEPS; i++)
        if (steps[i].version > version && (r = apply(s, &steps[i], err)) < 0)
            return r;
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", APPLICATION_ID);
    return aq_store_exec(s, sql, "marking the store", err);
}

/* Version and owner as they were at one moment: another process may be migrating right now. */
static int look(aq_store *s, int *version, aq_err *err)
{
    aq_err ignored;
    int r = aq_store_exec(s, "BEGIN", "looking at the store", err);

    if (r < 0)
        return r;
    r = aq_store_version(s, version, err);
    if (r == 0)
        r = check_owner(s, *version, err);
    aq_store_exec(s, "COMMIT", "looking at the store", &ignored);
    return r;
}

int aq_store_migrate(aq_store *s, aq_err *err)
{
    int version = 0, newest = steps[STEPS - 1].version, r;

    if ((r = look(s, &version, err)) < 0)
        return r;
    if (version > newest)
        return aq_fail(err, -EPROTONOSUPPORT,
                       "%s has schema version %d, this program knows up to %d: use the newer "
                       "program that made it",
                       s->path, version, newest);
    if (version == newest)
        return 0;
    if ((r = aq_store_lock(s, err)) < 0)
        return r;
    return aq_store_unlock(s, migrate_locked(s, err), err);
}
