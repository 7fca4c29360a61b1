/* Private to decoy/: files of SQLite, as browsers keep what they know. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/stream.h"

typedef struct aq_database {
    const char *text; /* tables and rows, terminated */
    int64_t start;    /* when the world's clock starts */
    aq_stream *chance;
} aq_database;

/* Bytes of the file that stand in the text as they are, or there in hex. */
typedef struct aq_copied {
    uint32_t from, to, len; /* in the text, in the file, in the file */
    bool hex;
} aq_copied;

/* `copied` is filled with aq_copied. */
int aq_database_make(const aq_database *d, aq_buf *out, aq_buf *copied, aq_err *err);
