/* Marks in any bytes, in any pieces. A replaced text gives the old one back, so that no two texts
 * become one; and bytes that end in no value hash like their replaced text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/marks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 4 };
static const aq_mark rows[ROWS] = {
    {"home", "/ada", 4}, {"key", "/ada/Zq", 7}, {"pin", "7", 1}, {"twice", "aab", 3}};
static const char head[] = "{decoy:";

/* What {decoy:NAME} was made from. */
static void add_value(aq_buf *out, const char *name, size_t len)
{
    if (len == 1 && *name == '{')
        aq_buf_adds(out, head);
    for (int k = 0; k < ROWS; k++)
        if (strlen(rows[k].name) == len && memcmp(rows[k].name, name, len) == 0)
            aq_buf_add(out, rows[k].value, rows[k].len);
}

static void back(const char *p, const char *end, aq_buf *out)
{
    const size_t n = sizeof head - 1;

    while (p < end) {
        const char *close = (size_t)(end - p) > n && memcmp(p, head, n) == 0
                                ? memchr(p, '}', (size_t)(end - p))
                                : NULL;

        if (close)
            add_value(out, p + n, (size_t)(close - p) - n);
        else
            aq_buf_addc(out, *p);
        p = close ? close + 1 : p + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf plain = {0}, again = {0};
    const aq_marks *m = aq_marks_new(a, rows, ROWS);
    aq_hash *whole = aq_hash_begin(), *parts = aq_hash_begin();
    aq_mark_at at = {0}, cut = {0};
    size_t piece = size ? 1u + data[0] % 16u : 1;

    aq_marks_replace(m, (const char *)data, size, false, &plain);
    aq_buf_str(&plain);
    back(plain.data, plain.data + plain.len, &again);
    if (again.len != size || (size && memcmp(again.data, data, size) != 0))
        abort();
    aq_marks_hash(m, &at, data, size, whole);
    aq_digest one = aq_hash_end(whole), other = aq_sha256(plain.data, plain.len);
    if (!at.row && !aq_digest_equal(&one, &other))
        abort();
    for (size_t i = 0; i < size; i += piece)
        aq_marks_hash(m, &cut, data + i, size - i < piece ? size - i : piece, parts);
    if (cut.row > ROWS + 1)
        abort();
    aq_hash_abort(parts);
    return 0;
}
