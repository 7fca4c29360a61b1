/* Job "inspect": looks at the names of the package and lists the archives inside it. Runs in the
 * jail with the sealed image, read-only. Names come first and are told at once, so that a nested
 * archive that breaks its reader costs the listing only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/paths.h"
#include "cleanroom/unpack_job.h"

enum { HEAD = 512, TAIL = 22, WINDOW = 64 << 10, OVERHEAD = 64 << 20 };

typedef struct job {
    aq_teller teller;
    aq_arena *arena;
    aq_findings *findings;
    aq_budget limits;
    int image;
    const aq_file *items;
    size_t count;
    uint64_t listed, decoded;
    uint8_t window[WINDOW];
    uint64_t window_at;
    size_t window_len;
} job;

/* ---- names one by one ---- */

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

static bool reserved(const char *path)
{
    for (;;) {
        size_t n = strcspn(path, "/");
        if (n > 0 && (path[n - 1] == '.' || path[n - 1] == ' ' || reserved_word(path, n) ||
                      memchr(path, ':', n)))
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

static void check_characters(job *j, const char *path)
{
    const unsigned char *p = (const unsigned char *)path, *end = p + strlen(path);
    bool hidden = false;

    while (p < end) {
        int32_t c = *p < 0x80 ? *p++ : aq_utf8_next(&p, end);
        if (c < 0) {
            aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_ENCODING, path,
                            "The name is not valid UTF-8.");
            return;
        }
        hidden = hidden || c < 0x20 || (c >= 0x7f && c < 0xa0) || (c > 0xa0 && aq_text_hidden(c));
    }
    if (hidden)
        aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_HIDDEN, path,
                        "The name has control or invisible characters.");
}

static void check_name(job *j, const char *path)
{
    check_characters(j, path);
    if (aq_name_leads_out(path, strlen(path)))
        aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_PARENT, path,
                        "Where a backslash parts it the path leads out of the package.");
    if (drive_or_backslash(path))
        aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_BACKSLASH, path,
                        "The name has a backslash or a drive letter.");
    else if (reserved(path))
        aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_RESERVED, path,
                        "Windows cannot store a file of this name.");
}

/* ---- names against each other ---- */

typedef struct folded {
    const char *fold, *path;
} folded;

/* How Windows stores a path: a backslash parts it, dots and blanks at the end of a part go, and
 * what follows a colon is a stream of the file before it. */
static void add_windows(aq_buf *out, const char *path, size_t len)
{
    for (size_t at = 0; at <= len;) {
        size_t n = 0, kept;
        while (at + n < len && path[at + n] != '/' && path[at + n] != '\\')
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

typedef struct folds {
    folded *items;
    size_t count, cap;
} folds;

static bool fold_case(aq_buf *out, const char *path, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)path[i] >= 0x80)
            return aq_text_fold(out, path, len) == 0;
    aq_buf_reserve(out, len);
    for (size_t i = 0; i < len; i++)
        out->data[out->len++] =
            (char)(path[i] >= 'A' && path[i] <= 'Z' ? path[i] + ('a' - 'A') : path[i]);
    out->data[out->len] = '\0';
    return true;
}

/* Two paths that fold alike are one file on some file system. */
static bool fold(aq_buf *out, const char *path, size_t len)
{
    aq_auto_buf stored = {0};

    if (!reserved(path) && !memchr(path, '\\', len))
        return fold_case(out, path, len);
    add_windows(&stored, path, len);
    return fold_case(out, aq_buf_str(&stored), stored.len);
}

/* Are they one without the rules of Windows? */
static bool same_but_case(const char *a, const char *b)
{
    aq_auto_buf x = {0}, y = {0};

    return fold_case(&x, a, strlen(a)) && fold_case(&y, b, strlen(b)) && x.len == y.len &&
           memcmp(x.data, y.data, x.len) == 0;
}

/* Cheap answer to "is there any pair?": folding must neither join files nor folders. */
static bool any_alike(const job *j)
{
    aq_auto_arena a = aq_arena_new();
    aq_path_set *plain = aq_path_set_new(a), *blind = aq_path_set_new(a);
    aq_auto_buf b = {0};
    bool alike = false;

    for (size_t i = 0; i < j->count && !alike; i++) {
        const char *path = j->items[i].path;
        aq_buf_clear(&b);
        if (!fold(&b, path, strlen(path)) || b.len == 0)
            continue;
        aq_path_set_add(plain, path, strlen(path), false);
        alike = aq_path_set_add(blind, b.data, b.len, false) != AQ_SEEN_NEW;
    }
    alike = alike || aq_path_set_folders(plain) != aq_path_set_folders(blind);
    aq_path_set_free(plain);
    aq_path_set_free(blind);
    return alike;
}

static void add_fold(job *j, folds *f, const char *path, size_t len)
{
    aq_auto_buf b = {0};

    if (!fold(&b, path, len))
        return;
    if (f->count == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 1024;
        f->items = aq_realloc(f->items, f->cap, sizeof *f->items);
    }
    f->items[f->count++] = (folded){aq_arena_strndup(j->arena, aq_buf_str(&b), b.len),
                                    aq_arena_strndup(j->arena, path, len)};
}

static int by_fold(const void *a, const void *b)
{
    const folded *x = a, *y = b;
    int r = strcmp(x->fold, y->fold);

    return r ? r : strcmp(x->path, y->path);
}

static void check_alike(job *j)
{
    aq_path_set *known;
    folds f = {0};

    if (!any_alike(j))
        return;
    known = aq_path_set_new(j->arena);
    for (size_t i = 0; i < j->count; i++) {
        const char *path = j->items[i].path;
        for (const char *s = strchr(path, '/'); s; s = strchr(s + 1, '/'))
            if (aq_path_set_add(known, path, (size_t)(s - path), true) == AQ_SEEN_NEW)
                add_fold(j, &f, path, (size_t)(s - path));
        add_fold(j, &f, path, strlen(path));
    }
    if (f.count > 0)
        qsort(f.items, f.count, sizeof *f.items, by_fold);
    for (size_t i = 1; i < f.count; i++)
        if (strcmp(f.items[i - 1].fold, f.items[i].fold) == 0)
            aq_findings_add(j->findings, AQ_RULE_INTAKE_PATH_ALIKE, f.items[i].path,
                            same_but_case(f.items[i - 1].path, f.items[i].path)
                                ? "Where case and Unicode form do not count this is %s."
                                : "Windows stores this as %s, or as a part of it.",
                            f.items[i - 1].path);
    aq_path_set_free(known);
    free(f.items);
}

/* ---- nested archives ---- */

/* Up to `len` bytes at `at` of the image, from a window. */
static const uint8_t *peek(job *j, uint64_t at, size_t len, size_t *have)
{
    if (at < j->window_at || at + len > j->window_at + j->window_len) {
        aq_source all = {j->image, 0, UINT64_MAX / 2};
        ssize_t n = aq_source_read(&all, at, j->window, WINDOW);
        j->window_at = at;
        j->window_len = n < 0 ? 0 : (size_t)n;
    }
    *have = (size_t)(j->window_at + j->window_len - at);
    if (*have > len)
        *have = len;
    return j->window + (at - j->window_at);
}

static bool looks_nested(job *j, const aq_file *f)
{
    uint8_t head[HEAD];
    const uint8_t *p;
    size_t have, tail = 0;

    if (f->size < TAIL)
        return false;
    p = peek(j, f->offset, f->size < HEAD ? (size_t)f->size : HEAD, &have);
    memcpy(head, p, have);
    p = peek(j, f->offset + f->size - TAIL, TAIL, &tail);
    return aq_format_magic(head, have, p, tail);
}

typedef struct count {
    job *job;
    uint64_t entries, bytes;
} count;

static int count_entry(void *arg, const aq_entry *e, aq_err *err)
{
    count *c = arg;

    (void)err;
    if (__builtin_add_overflow(c->job->decoded, e->size, &c->job->decoded) ||
        c->job->decoded > c->job->limits.limit[AQ_BUDGET_BYTES] ||
        c->entries >= c->job->limits.limit[AQ_BUDGET_FILES])
        return AQ_SINK_STOP;
    c->entries++;
    c->bytes += e->size;
    return AQ_SINK_SKIP;
}

static int count_nothing(void *arg, const void *data, size_t len, aq_err *err)
{
    (void)arg;
    (void)data;
    (void)len;
    (void)err;
    return 0;
}

static int count_end(void *arg, bool whole, aq_err *err)
{
    (void)arg;
    (void)whole;
    (void)err;
    return 0;
}

static int count_unread(void *arg, const char *place, const char *reason, uint64_t bytes,
                        aq_err *err)
{
    (void)arg;
    (void)place;
    (void)reason;
    (void)bytes;
    (void)err;
    return 0;
}

/* One compressed file that is no archive: only its size can be told. */
static int count_stream(count *c, const aq_source *s, aq_filter filter, bool *whole, aq_err *err)
{
    aq_stream *stream = aq_stream_new(s, filter);
    const uint8_t *p;
    size_t n;
    int r;

    c->entries = 1;
    while ((r = aq_stream_next(stream, SIZE_MAX, &p, &n, err)) == 0 && n > 0) {
        c->bytes += n;
        c->job->decoded += n;
        if (c->job->decoded > c->job->limits.limit[AQ_BUDGET_BYTES])
            break;
    }
    *whole = aq_stream_state_of(stream) == AQ_STREAM_ENDED;
    aq_stream_free(stream);
    return r;
}

static int list_one(job *j, const aq_file *f, const aq_format *format, count *c, bool *whole,
                    aq_err *err)
{
    aq_auto_arena scratch = aq_arena_new();
    const aq_sink sink = {c, count_entry, count_nothing, count_end, count_unread};
    aq_archive a = {.source = {j->image, f->offset, f->size},
                    .sink = &sink,
                    .findings = aq_findings_new(scratch),
                    .decode_max = 1 << 20,
                    .overhead_max = OVERHEAD};
    int r;

    if (!format->zip && !format->tar && format->filter != AQ_FILTER_NONE)
        return count_stream(c, &a.source, format->filter, whole, err);
    if (!format->zip && !format->tar) {
        *whole = false;
        return 0;
    }
    r = format->zip ? aq_zip_read(&a, err) : aq_tar_read(&a, format->filter, err);
    *whole = !a.findings->incomplete && !a.stopped;
    return r;
}

static int tell_nested(job *j, const aq_file *f, const char *format, const count *c, aq_err *err)
{
    aq_nested_record n = {
        .entries = c->entries, .bytes = c->bytes, .format_len = (uint32_t)strlen(format)};
    aq_auto_buf b = {0};

    aq_buf_add(&b, &n, sizeof n);
    aq_buf_adds(&b, format);
    aq_buf_adds(&b, f->path);
    return aq_tell(&j->teller, AQ_TELL_NESTED, b.data, b.len, err);
}

static int nested(job *j, const aq_file *f, aq_findings *findings, aq_err *err)
{
    aq_source source = {j->image, f->offset, f->size};
    count c = {.job = j};
    aq_format format;
    bool whole = true;
    int r = aq_format_detect(&source, &format, err);

    if (r < 0 || !format.name || format.wasm)
        return r;
    if (++j->listed > j->limits.limit[AQ_BUDGET_NESTED]) {
        aq_findings_add_incomplete(findings, AQ_RULE_INTAKE_NESTED_UNREAD, f->path,
                                   "Beyond the budget nested-archives: not listed.");
        return aq_tell_unread(&j->teller, f->path, strlen(f->path), "budget nested-archives",
                              f->size, err);
    }
    if ((r = list_one(j, f, &format, &c, &whole, err)) < 0 ||
        (r = tell_nested(j, f, format.name, &c, err)) < 0)
        return r;
    if (whole) {
        aq_findings_add(findings, AQ_RULE_INTAKE_NESTED, f->path,
                        "A %s archive with %llu entries, %llu bytes.", format.name,
                        (unsigned long long)c.entries, (unsigned long long)c.bytes);
        return 0;
    }
    aq_findings_add_incomplete(findings, AQ_RULE_INTAKE_NESTED_UNREAD, f->path,
                               "A %s archive that could not be listed whole.", format.name);
    return aq_tell_unread(&j->teller, f->path, strlen(f->path), "nested archive not listed",
                          f->size, err);
}

static int by_offset(const void *a, const void *b)
{
    const aq_file *x = *(const aq_file *const *)a, *y = *(const aq_file *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Looks at all heads and tails in the order of the image, so that the window moves one way; lists
 * in the order of paths, so that a budget ends at the same archive whatever the image's order. */
static int list_nested(job *j, aq_findings *findings, aq_err *err)
{
    aq_auto_free const aq_file **order = aq_alloc(j->count * sizeof *order);
    aq_auto_free bool *archive = aq_alloc(j->count);
    int r = 0;

    for (size_t i = 0; i < j->count; i++)
        order[i] = &j->items[i];
    if (j->count > 0)
        qsort(order, j->count, sizeof *order, by_offset);
    for (size_t i = 0; i < j->count; i++)
        archive[order[i] - j->items] = looks_nested(j, order[i]);
    for (size_t i = 0; i < j->count && r == 0; i++)
        if (archive[i])
            r = nested(j, &j->items[i], findings, err);
    return r;
}

static int run(job *j, aq_jail_io *io, aq_err *err)
{
    aq_findings *second = aq_findings_new(j->arena);
    aq_auto_buf wrapper = {0};
    uint64_t image;
    int r;

    if ((r = aq_answers_size(j->image, &image, err)) < 0 ||
        (r = aq_answers_limits(io, &j->limits, &wrapper, err)) < 0 ||
        (r = aq_answers_files(io, j->arena, image, &j->items, &j->count, err)) < 0)
        return r;
    if (wrapper.len > 0) /* left out of the paths, and still unpacked by whoever installs */
        check_name(j, aq_buf_str(&wrapper));
    for (size_t i = 0; i < j->count; i++)
        check_name(j, j->items[i].path);
    check_alike(j);
    if ((r = aq_tell_findings(&j->teller, j->findings, err)) < 0 ||
        (r = aq_jail_flush(io, err)) < 0)
        return r;
    r = list_nested(j, second, err);
    return r < 0 ? r : aq_tell_findings(&j->teller, second, err);
}

int aq_job_inspect(aq_jail_io *io, aq_err *err)
{
    aq_auto_arena arena = aq_arena_new();
    aq_auto_free job *j = aq_alloc(sizeof *j);

    j->teller = aq_teller_jail(io);
    j->arena = arena;
    j->findings = aq_findings_new(arena);
    j->image = aq_jail_fd(io, 0);
    return run(j, io, err);
}
