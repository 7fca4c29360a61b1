/* What the files of the store share: the open database, its statements, its transactions. */
#pragma once

#include <sqlite3.h>

#include "store/store.h"

typedef enum aq_statement {
#define AQ_STATEMENT(id, sql) AQ_SQL_##id,
#include "store/statements.def"
#undef AQ_STATEMENT
    AQ_SQL_COUNT
} aq_statement;

struct aq_store {
    sqlite3 *db;
    char *path;   /* for messages */
    bool viewing; /* between aq_store_view and aq_store_view_end */
    sqlite3_stmt *prepared[AQ_SQL_COUNT];
};

/* Turns SQLite's last failure into words that an operator can act on. Returns a negative errno. */
int aq_store_fail(aq_store *s, const char *doing, aq_err *err);

/* A prepared statement, reset and with no values bound; it belongs to the store. */
int aq_store_statement(aq_store *s, aq_statement id, sqlite3_stmt **ret, aq_err *err);
/* Runs one that answers no rows. */
int aq_store_run(aq_store *s, sqlite3_stmt *q, const char *doing, aq_err *err);
/* Next row: 1, 0 after the last, or a negative errno. */
int aq_store_row(aq_store *s, sqlite3_stmt *q, const char *doing, aq_err *err);
int aq_store_exec(aq_store *s, const char *sql, const char *doing, aq_err *err);

/* Takes the write lock at once, so that what is read inside still holds when it is written. */
int aq_store_lock(aq_store *s, aq_err *err);
/* One view of the store for several questions; ended by aq_store_unlock as well. Inside of
 * aq_store_view both change nothing: that view holds. */
int aq_store_look(aq_store *s, aq_err *err);
/* Commits when `result` is 0, else rolls back; returns what the caller should return. */
int aq_store_unlock(aq_store *s, int result, aq_err *err);

/* Never NULL, whatever a damaged file holds. */
const char *aq_column(sqlite3_stmt *q, int at);
void aq_bind_text(sqlite3_stmt *q, int at, const char *text); /* NULL binds NULL */
void aq_bind_digest(sqlite3_stmt *q, int at, const aq_digest *digest);

/* Brings the schema up to date; see migrations.def. */
int aq_store_migrate(aq_store *s, aq_err *err);

/* Fills what version 2 added for names that are already there. */
int aq_names_index_all(aq_store *s, aq_err *err);
/* Fills what version 3 added for submissions that are already there. */
int aq_senders_fill(aq_store *s, aq_err *err);
