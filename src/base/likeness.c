/* Likeness of names: folding, skeletons, edit distance; see text.h.
 *
 * The fold answers "are these one name to a computer" (case, compatibility forms, characters that
 * are not seen). The skeleton answers "are these one name to a reader": it also drops accents,
 * replaces characters of other scripts by the ASCII letters that they look like, and brings the few
 * ASCII look-alikes together. Equal folds have equal skeletons.
 *
 * Left out on purpose: i and l, cl and d, 5 and s. They would make ordinary names collide (mail and
 * mall, clean and dean), and as typing slips they are within the edit distance anyway. */
#include "base/text.h"

#include <errno.h>
#include <string.h>
#include <utf8proc.h>

#include "base/cleanup.h"

enum {
    FOLD_MAX = 1 << 16, /* bytes: a path or a name, never a document */
    DISTANCE_MAX = 256, /* bytes of a name */
    MARKS_FIRST = 0x300,
    MARKS_LAST = 0x36f, /* accents that combine with Latin letters */
};

static const struct confusable {
    uint32_t code;
    char looks[8];
} confusables[] = {
#include "confusables.inc"
};

static int map(const char *s, size_t len, unsigned options, char **ret, size_t *ret_len)
{
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)len, &mapped,
                     (utf8proc_option_t)(UTF8PROC_STABLE | (utf8proc_option_t)options));

    if (n < 0)
        return n == UTF8PROC_ERROR_NOMEM ? -ENOMEM : -EILSEQ;
    *ret = (char *)mapped;
    *ret_len = (size_t)n;
    return 0;
}

int aq_text_fold(aq_buf *out, const char *s, size_t len)
{
    aq_auto_free char *marks = NULL, *fold = NULL;
    size_t marks_len = 0, fold_len = 0;
    int r;

    if (len > FOLD_MAX)
        return -E2BIG;
    if (!aq_utf8_valid(s, len))
        return -EILSEQ;
    /* Marks are put in order first: the iota below a Greek letter becomes a letter when it is
     * folded, and no mark passes a letter after that. */
    if ((r = map(s, len, UTF8PROC_DECOMPOSE, &marks, &marks_len)) < 0 ||
        (r = map(marks, marks_len,
                 UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE, &fold,
                 &fold_len)) < 0)
        return r;
    aq_buf_add(out, fold, fold_len);
    aq_buf_str(out);
    return 0;
}

void aq_text_windows(aq_buf *out, const char *path, size_t len)
{
    for (size_t at = 0; at <= len;) {
        size_t n = 0, kept;
        while (at + n < len && path[at + n] != '\\' && path[at + n] != '/')
            n++;
        for (kept = 0; kept < n && path[at + kept] != ':'; kept++)
            ;
        while (kept > 0 && (path[at + kept - 1] == '.' || path[at + kept - 1] == ' '))
            kept--;
        aq_buf_add(out, path + at, kept ? kept : n);
        at += n + 1;
        if (at <= len)
            aq_buf_addc(out, '/');
    }
}

static const char *looks_like(int32_t code)
{
    size_t low = 0, high = sizeof confusables / sizeof *confusables;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (confusables[middle].code == (uint32_t)code)
            return confusables[middle].looks;
        if (confusables[middle].code < (uint32_t)code)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Characters of other scripts become what they look like; accents go. */
static int to_ascii(aq_buf *out, const char *s, size_t len)
{
    aq_auto_free char *apart = NULL;
    const unsigned char *p, *end;
    size_t n = 0;
    int r = map(s, len, UTF8PROC_DECOMPOSE, &apart, &n);

    if (r < 0)
        return r;
    p = (const unsigned char *)apart;
    for (end = p + n; p < end;) {
        int32_t code = aq_utf8_next(&p, end);
        const char *looks = code > 0x7f ? looks_like(code) : NULL;

        if (looks)
            aq_buf_adds(out, looks);
        else if (code >= 0 && (code < MARKS_FIRST || code > MARKS_LAST))
            aq_utf8_add(out, (uint32_t)code);
    }
    return 0;
}

/* What ASCII itself confuses. */
static void ascii_twins(aq_buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char next = i + 1 < len ? s[i + 1] : 0;

        if (s[i] == 'r' && next == 'n') {
            aq_buf_addc(out, 'm');
            i++;
        } else if (s[i] == 'v' && next == 'v') {
            aq_buf_addc(out, 'w');
            i++;
        } else if (s[i] == '0') {
            aq_buf_addc(out, 'o');
        } else if (s[i] == '1' || s[i] == '|') {
            aq_buf_addc(out, 'l');
        } else {
            aq_buf_addc(out, s[i]);
        }
    }
}

int aq_text_skeleton(aq_buf *out, const char *s, size_t len)
{
    aq_auto_buf folded = {0}, ascii = {0};
    int r;

    if ((r = aq_text_fold(&folded, s, len)) < 0 ||
        (r = to_ascii(&ascii, aq_buf_str(&folded), folded.len)) < 0)
        return r;
    ascii_twins(out, aq_buf_str(&ascii), ascii.len);
    aq_buf_str(out);
    return 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The restricted form (no letter is edited twice), which is what typing slips are. Three rows are
 * enough; a row whose least value exceeds `max` ends it. */
size_t aq_text_distance(const char *a, const char *b, size_t max)
{
    size_t rows[3][DISTANCE_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    size_t na = strlen(a), nb = strlen(b);

    if (na > DISTANCE_MAX || nb > DISTANCE_MAX)
        return strcmp(a, b) == 0 ? 0 : max + 1;
    if ((na > nb ? na - nb : nb - na) > max)
        return max + 1;
    for (size_t j = 0; j <= nb; j++)
        last[j] = j;
    memset(before, 0, (nb + 1) * sizeof *before);
    for (size_t i = 1; i <= na; i++) {
        size_t smallest = row[0] = i, *swap;

        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
            smallest = least(smallest, row[j]);
        }
        if (smallest > max)
            return max + 1;
        swap = before;
        before = last;
        last = row;
        row = swap;
    }
    return least(last[nb], max + 1);
}
