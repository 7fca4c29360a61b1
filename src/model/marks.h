/* Marks: values that differ between two worlds by design, and the names that stand for them.
 *
 * Text and bytes of a run are compared after each mark's value was replaced by {decoy:NAME}, the
 * longest value first. The replacement cannot be forged: where a text says "{decoy:" itself that
 * becomes {decoy:{}, and no name has a brace or a slash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/mem.h"

typedef struct aq_mark {
    const char *name;
    const char *value;
    size_t len;
} aq_mark;

/* Values are borrowed; all else lives in the arena. Empty values are no marks. */
typedef struct aq_marks aq_marks;
const aq_marks *aq_marks_new(aq_arena *a, const aq_mark *rows, size_t count);

/* Appends `text` with every value replaced. `m` may be NULL: the text as it is. `cut`: there was
 * more of it, and a value of which at least 4 bytes are left at its end counts as
 * {decoy:NAME/LEN}. */
void aq_marks_replace(const aq_marks *m, const char *text, size_t len, bool cut, aq_buf *out);

/* How the bytes so far end; all zero at the begin. */
typedef struct aq_mark_at {
    uint32_t row; /* within this mark, from 1; 0: within none */
    uint32_t len; /* of its value that was there, or of the tail */
    char tail[3]; /* in which a value may have begun */
} aq_mark_at;

/* Hashes bytes that come in pieces, with every value replaced. A value that is cut by the end of a
 * piece counts as {decoy:NAME/LEN}, and its rest as {decoy:NAME/}: so what was hashed up to the end
 * of a piece is final. Of a value that is cut behind its first three bytes or before, these count
 * as they are: as little as that begins a value by chance. */
void aq_marks_hash(const aq_marks *m, aq_mark_at *at, const void *data, size_t len, aq_hash *into);
