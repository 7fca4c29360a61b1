/* Names one by one and against each other; see inspect_names.h. */
#include "cleanroom/inspect_names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/siphash.h"
#include "base/text.h"
#include "cleanroom/paths.h"

/* ---- one by one ---- */

static bool reserved_word(const char *part, size_t len)
{
    static const char *const words[] = {"con", "prn", "aux", "nul"};
    const char *dot = memchr(part, '.', len);
    size_t n = dot ? (size_t)(dot - part) : len;

    while (n > 0 && part[n - 1] == ' ')
        n--;
    for (size_t i = 0; i < 4; i++)
        if (n == 3 && strncasecmp(part, words[i], 3) == 0)
            return true;
    return n == 4 && (strncasecmp(part, "com", 3) == 0 || strncasecmp(part, "lpt", 3) == 0) &&
           part[3] >= '1' && part[3] <= '9';
}

/* A part of a path that Windows stores under another name, or not at all. */
static bool odd_part(const char *part, size_t len)
{
    return len > 0 && (part[len - 1] == '.' || part[len - 1] == ' ' || reserved_word(part, len) ||
                       memchr(part, ':', len));
}

static bool reserved(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (odd_part(path, n))
            return true;
        if (path[n] == '\0')
            return false;
        path += n + 1;
    }
}

static bool drive_or_backslash(const char *path)
{
    bool letter = (path[0] >= 'a' && path[0] <= 'z') || (path[0] >= 'A' && path[0] <= 'Z');

    return strchr(path, '\\') || (letter && path[1] == ':');
}

/* Blanks other than the usual one: in names of screenshots and of East Asian files, and as good as
 * a plain blank for a name that looks like another. */
static bool odd_blank(int32_t c)
{
    return c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

/* What the mark for a coloured picture may follow: symbols and pictures, digits, # and *. */
static bool pictured(int32_t c)
{
    return (c >= '0' && c <= '9') || c == '#' || c == '*' || c == 0xa9 || c == 0xae ||
           c == 0x203c || c == 0x2049 || c == 0x2122 || c == 0x2139 ||
           (c >= 0x2190 && c < 0x2800) || (c >= 0x2900 && c < 0x2c00) || c == 0x3030 ||
           c == 0x303d || c == 0x3297 || c == 0x3299 || (c >= 0x1f000 && c < 0x20000);
}

/* Not seen at all, `before` being the character in front. That mark, and the joiner that makes one
 * picture of two, are usual behind a picture and nowhere else. */
static bool unseen(int32_t c, int32_t before)
{
    if (c == 0xfe0f)
        return !pictured(before);
    if (c == 0x200d && (before == 0xfe0f || (before > 0xff && pictured(before))))
        return false;
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2800 || c == 0x1d159 ||
           (c > 0xa0 && aq_text_hidden(c));
}

static void check_characters(aq_findings *to, const char *path)
{
    const unsigned char *p = (const unsigned char *)path, *end = p + strlen(path);
    bool hidden = false, blank = false;
    int32_t before = 0;

    while (p < end) {
        int32_t c = *p < 0x80 ? *p++ : aq_utf8_next(&p, end);
        if (c < 0) {
            aq_findings_add(to, AQ_RULE_INTAKE_PATH_ENCODING, path, "The name is not valid UTF-8.");
            return;
        }
        hidden = hidden || unseen(c, before);
        blank = blank || odd_blank(c);
        before = c;
    }
    if (hidden)
        aq_findings_add(to, AQ_RULE_INTAKE_PATH_HIDDEN, path,
                        "The name has control or invisible characters.");
    else if (blank)
        aq_findings_add(to, AQ_RULE_INTAKE_PATH_BLANK, path,
                        "The name has blanks that are not the usual one.");
}

void aq_inspect_name(aq_findings *to, const char *path)
{
    check_characters(to, path);
    if (aq_name_leads_out(path, strlen(path)))
        aq_findings_add(to, AQ_RULE_INTAKE_PATH_PARENT, path,
                        "Where a backslash parts it the path leads out of the package.");
    if (drive_or_backslash(path))
        aq_findings_add(to, AQ_RULE_INTAKE_PATH_BACKSLASH, path,
                        "The name has a backslash or a drive letter.");
    else if (reserved(path))
        aq_findings_add(to, AQ_RULE_INTAKE_PATH_RESERVED, path,
                        "Windows cannot store a file of this name.");
}

/* ---- names against each other ---- */

/* A file or a folder: the path of `of` up to `len`, and the hash of what it folds to. */
typedef struct folded {
    aq_siphash128 fold;
    const char *of;
    size_t len;
    bool windows; /* its form on Windows is another one */
} folded;

typedef struct folds {
    folded *items;
    size_t count, cap;
} folds;

/* Bytes that are no text fold as they are, but for the case of ASCII. */
static void fold_case(aq_buf *out, const char *part, size_t len)
{
    bool ascii = true;

    for (size_t i = 0; i < len && ascii; i++)
        ascii = (unsigned char)part[i] < 0x80;
    if (!ascii && aq_text_fold(out, part, len) == 0)
        return;
    aq_buf_clear(out);
    for (size_t i = 0; i < len; i++)
        aq_buf_addc(out,
                    (char)(part[i] >= 'A' && part[i] <= 'Z' ? part[i] + ('a' - 'A') : part[i]));
}

/* Adds the fold of one part to the hash; true when Windows stores it in another form. */
static bool add_part(aq_siphash *h, const char *part, size_t len)
{
    bool windows = odd_part(part, len) || memchr(part, '\\', len);
    aq_auto_buf stored = {0}, fold = {0};

    if (windows)
        aq_text_windows(&stored, part, len);
    fold_case(&fold, windows ? aq_buf_str(&stored) : part, windows ? stored.len : len);
    aq_siphash_add(h, fold.len ? fold.data : "", fold.len);
    return windows;
}

static void keep(folds *f, const folded *item)
{
    if (f->count == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 1024;
        f->items = aq_realloc(f->items, f->cap, sizeof *f->items);
    }
    f->items[f->count++] = *item;
}

/* The state after each part of the path at hand, so that one in the same folder goes on from it. */
typedef struct trail {
    aq_siphash *after;
    bool *windows;
    size_t cap;
} trail;

/* How many parts at the start of `path` are parts of `before`, and where they end. */
static size_t shared_parts(const char *before, const char *path, size_t *end)
{
    size_t parts = 0;

    *end = 0;
    for (size_t i = 0; before[i] || path[i]; i++) {
        bool here = path[i] == '/' || path[i] == '\0', there = before[i] == '/' || !before[i];
        if (here && there && path[i] == '/') {
            parts++;
            *end = i + 1;
        }
        if (path[i] != before[i])
            break;
    }
    return parts;
}

static void fold_path(folds *f, trail *t, const uint64_t *key, const char *before, const char *path)
{
    size_t at, n, part = shared_parts(before, path, &at);

    for (; path[at]; at += n + (path[at + n] == '/'), part++) {
        folded item = {.of = path};
        n = strcspn(path + at, "/");
        if (part + 1 >= t->cap) {
            t->cap = t->cap ? 2 * t->cap : 64;
            t->after = aq_realloc(t->after, t->cap, sizeof *t->after);
            t->windows = aq_realloc(t->windows, t->cap, sizeof *t->windows);
        }
        if (part == 0)
            aq_siphash_begin(&t->after[0], key);
        else
            t->after[part] = t->after[part - 1];
        if (part > 0)
            aq_siphash_add(&t->after[part], "/", 1);
        t->windows[part] =
            add_part(&t->after[part], path + at, n) || (part > 0 && t->windows[part - 1]);
        item.len = at + n;
        item.fold = aq_siphash_end(&t->after[part]);
        item.windows = t->windows[part];
        keep(f, &item);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_paths(const folded *x, const folded *y)
{
    int r = memcmp(x->of, y->of, x->len < y->len ? x->len : y->len);

    return r ? r : (x->len > y->len) - (x->len < y->len);
}

static int by_fold(const void *a, const void *b)
{
    const folded *x = a, *y = b;

    if (x->fold.low != y->fold.low)
        return x->fold.low < y->fold.low ? -1 : 1;
    if (x->fold.high != y->fold.high)
        return x->fold.high < y->fold.high ? -1 : 1;
    return compare_paths(x, y);
}

static void tell_alike(aq_findings *to, const folded *first, const folded *second)
{
    aq_auto_buf path = {0};

    aq_buf_add(&path, second->of, second->len);
    aq_findings_add(to, AQ_RULE_INTAKE_PATH_ALIKE, aq_buf_str(&path),
                    first->windows || second->windows
                        ? "Windows stores this as %.*s, or as a part of it."
                        : "Where case and Unicode form do not count this is %.*s.",
                    (int)first->len, first->of);
}

void aq_inspect_alike(aq_findings *to, const char **paths, size_t count)
{
    folds f = {0};
    trail t = {0};
    uint64_t key[2];

    aq_siphash_key(key);
    if (count > 0)
        qsort(paths, count, sizeof *paths, by_text);
    for (size_t i = 0; i < count; i++)
        fold_path(&f, &t, key, i ? paths[i - 1] : "", paths[i]);
    if (f.count > 0)
        qsort(f.items, f.count, sizeof *f.items, by_fold);
    for (size_t i = 1; i < f.count; i++) {
        const folded *x = &f.items[i - 1], *y = &f.items[i];
        if (x->fold.low == y->fold.low && x->fold.high == y->fold.high && compare_paths(x, y) != 0)
            tell_alike(to, x, y);
    }
    free(f.items);
    free(t.after);
    free(t.windows);
}
