/* The embedded store: one SQLite file in write-ahead mode, safe for several processes at once.
 *
 * Every change is one transaction that takes the write lock first (BEGIN IMMEDIATE) and is on the
 * disk when the function returns (synchronous=FULL). A kill at any point leaves the last committed
 * state. The file is ours alone: mode 0600, and its schema may not call back into us
 * (trusted_schema off, defensive mode). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "store/internal.h"

enum { BUSY_MS = 30000, WAL_TRIES = 100 };

static const char *const statements[AQ_SQL_COUNT] = {
#define AQ_STATEMENT(id, sql) [AQ_SQL_##id] = sql,
#include "store/statements.def"
#undef AQ_STATEMENT
};

int aq_store_fail(aq_store *s, const char *doing, aq_err *err)
{
    int code = sqlite3_extended_errcode(s->db), system = sqlite3_system_errno(s->db);
    const char *words = sqlite3_errmsg(s->db);

    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return aq_fail(
            err, -EBADMSG,
            "%s: %s: the file is damaged (%s). Move it away (with its -wal and -shm) and "
            "restore a backup, or let an empty one be made; the ledger is not affected",
            s->path, doing, words);
    case SQLITE_FULL:
        return aq_fail(err, -ENOSPC, "%s: %s: the disk is full. Nothing was changed", s->path,
                       doing);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return aq_fail(err, -EROFS,
                       "%s: %s: the file or its folder cannot be written; check owner and mode, or "
                       "choose another state folder",
                       s->path, doing);
    case SQLITE_CANTOPEN:
        return aq_fail(err, system ? -system : -EACCES,
                       "%s: %s: cannot be opened%s%s; check that its folder can be written",
                       s->path, doing, system ? ": " : "", system ? strerror(system) : "");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return aq_fail(err, -EBUSY,
                       "%s: %s: another process has held the store for %d seconds; try again",
                       s->path, doing, BUSY_MS / 1000);
    case SQLITE_IOERR:
        if (code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_FSYNC ||
            code == SQLITE_IOERR_TRUNCATE || code == SQLITE_IOERR_SHMSIZE)
            return aq_fail(err, -EIO,
                           "%s: %s: cannot be written (%s): is the disk full, or a size limit "
                           "reached? Nothing was changed",
                           s->path, doing, words);
        return aq_fail(err, -EIO, "%s: %s: cannot be read or written (%s)", s->path, doing, words);
    default:
        return aq_fail(err, -EIO, "%s: %s: %s", s->path, doing, words);
    }
}

int aq_store_statement(aq_store *s, aq_statement id, sqlite3_stmt **ret, aq_err *err)
{
    sqlite3_stmt **q = &s->prepared[id];

    if (!*q && sqlite3_prepare_v3(s->db, statements[id], -1, SQLITE_PREPARE_PERSISTENT, q, NULL) !=
                   SQLITE_OK)
        return aq_store_fail(s, "preparing a statement", err);
    sqlite3_reset(*q);
    sqlite3_clear_bindings(*q);
    *ret = *q;
    return 0;
}

int aq_store_row(aq_store *s, sqlite3_stmt *q, const char *doing, aq_err *err)
{
    int r = sqlite3_step(q);

    if (r == SQLITE_ROW)
        return 1;
    if (r != SQLITE_DONE) {
        int code = aq_store_fail(s, doing, err);
        sqlite3_reset(q);
        return code;
    }
    sqlite3_reset(q); /* an open reader would keep the write-ahead log from being folded in */
    return 0;
}

int aq_store_run(aq_store *s, sqlite3_stmt *q, const char *doing, aq_err *err)
{
    int r;

    while ((r = aq_store_row(s, q, doing, err)) > 0)
        ;
    return r;
}

int aq_store_exec(aq_store *s, const char *sql, const char *doing, aq_err *err)
{
    if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return aq_store_fail(s, doing, err);
    return 0;
}

int aq_store_lock(aq_store *s, aq_err *err)
{
    sqlite3_stmt *q;
    int r;

    if (s->viewing)
        return aq_fail(err, -EBUSY, "the store is not written while a view of it is held");
    r = aq_store_statement(s, AQ_SQL_BEGIN, &q, err);
    return r < 0 ? r : aq_store_run(s, q, "taking the write lock", err);
}

int aq_store_look(aq_store *s, aq_err *err)
{
    sqlite3_stmt *q;
    int r;

    if (s->viewing)
        return 0;
    r = aq_store_statement(s, AQ_SQL_BEGIN_READING, &q, err);
    return r < 0 ? r : aq_store_run(s, q, "starting to read", err);
}

int aq_store_unlock(aq_store *s, int result, aq_err *err)
{
    sqlite3_stmt *q;
    int r = result;

    if (s->viewing)
        return result;
    if (r == 0 && (r = aq_store_statement(s, AQ_SQL_COMMIT, &q, err)) == 0)
        r = aq_store_run(s, q, "committing", err);
    if (r < 0 && !sqlite3_get_autocommit(s->db)) {
        aq_err ignored;
        if (aq_store_statement(s, AQ_SQL_ROLLBACK, &q, &ignored) == 0)
            aq_store_run(s, q, "rolling back", &ignored);
    }
    return r;
}

const char *aq_column(sqlite3_stmt *q, int at)
{
    const char *text = (const char *)sqlite3_column_text(q, at);

    return text ? text : "";
}

void aq_bind_text(sqlite3_stmt *q, int at, const char *text)
{
    if (text)
        sqlite3_bind_text(q, at, text, -1, SQLITE_TRANSIENT);
}

void aq_bind_digest(sqlite3_stmt *q, int at, const aq_digest *digest)
{
    sqlite3_bind_blob(q, at, digest->b, AQ_SHA256_LEN, SQLITE_TRANSIENT);
}

/* Made by us before SQLite sees it, so that it never has another mode than 0600; the files that
 * SQLite makes beside it take over its mode. */
static int make_file(const char *path, aq_err *err)
{
    aq_auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;

    if (fd < 0)
        return aq_fail_errno(err, "the store %s cannot be opened for writing", path);
    if (fstat(fd, &st) < 0)
        return aq_fail_errno(err, "the store %s", path);
    if (!S_ISREG(st.st_mode))
        return aq_fail(err, -EINVAL, "the store %s is no regular file", path);
    if ((st.st_mode & 077) && fchmod(fd, 0600) < 0)
        return aq_fail_errno(err, "the store %s is open to others and its mode cannot be changed",
                             path);
    return 0;
}

/* Two first starts at once can collide while the journal mode changes, and SQLite does not wait
 * there by itself. */
static int use_wal(aq_store *s, aq_err *err)
{
    for (int i = 0; i < WAL_TRIES; i++) {
        if (sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) == SQLITE_OK)
            return 0;
        if ((sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY)
            break;
        sqlite3_sleep(20);
    }
    return aq_store_fail(s, "opening", err);
}

static int set_up(aq_store *s, aq_err *err)
{
    int r;

    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    if ((r = use_wal(s, err)) < 0)
        return r;
    return aq_store_exec(s,
                         "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                         "PRAGMA cell_size_check=ON; PRAGMA cache_size=-16384",
                         "opening", err);
}

int aq_store_open(const char *dir, aq_store **ret, aq_err *err)
{
    aq_auto_buf path = {0};
    aq_store *s;
    int r;

    aq_buf_addf(&path, "%s/store.db", dir);
    if ((r = make_file(aq_buf_str(&path), err)) < 0)
        return r;
    s = aq_alloc(sizeof *s);
    s->path = aq_buf_take(&path);
    if (sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) !=
        SQLITE_OK)
        r = s->db ? aq_store_fail(s, "opening", err) : aq_fail(err, -ENOMEM, "opening the store");
    if (r < 0 || (r = set_up(s, err)) < 0 || (r = aq_store_migrate(s, err)) < 0) {
        aq_store_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

void aq_store_close(aq_store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < AQ_SQL_COUNT; i++)
        sqlite3_finalize(s->prepared[i]);
    sqlite3_close(s->db);
    free(s->path);
    free(s);
}
