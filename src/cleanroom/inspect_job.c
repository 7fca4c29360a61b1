/* Job "inspect": looks at the names of the package and lists the archives inside it. Runs in the
 * jail with the sealed image, read-only. Names come first and are told at once, so that a nested
 * archive that breaks its reader costs the listing only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cleanroom/inspect_names.h"
#include "cleanroom/unpack_job.h"

enum { HEAD = 512, TAIL = 22, WINDOW = 128 << 10, HEADER = 512 };

typedef struct job {
    aq_teller teller;
    aq_arena *arena;
    aq_findings *findings;
    aq_budget limits;
    int image;
    const aq_file *items;
    size_t count;
    const char *const *names; /* of links, devices and folders */
    size_t name_count;
    uint64_t listed;
    uint64_t work; /* decoded bytes of nested archives, headers included, and entries */
    bool told[AQ_RULE_COUNT];
    uint8_t window[WINDOW];
    uint64_t window_at;
    size_t window_len;
} job;

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

/* By its first bytes, or by the end of a zip archive in its last ones. */
static bool looks_nested(job *j, const aq_file *f)
{
    size_t have, n = f->size < AQ_ZIP_TAIL ? (size_t)f->size : AQ_ZIP_TAIL;
    const uint8_t *p;

    if (f->size < TAIL)
        return false;
    p = peek(j, f->offset, f->size < HEAD ? (size_t)f->size : HEAD, &have);
    if (aq_format_magic(p, have))
        return true;
    p = peek(j, f->offset + f->size - n, n, &have);
    return memmem(p, have, "PK\5\6", 4) != NULL;
}

typedef struct count {
    uint64_t entries, bytes;
    uint64_t left; /* of the work that all nested archives may cost */
} count;

static int count_entry(void *arg, const aq_entry *e, aq_err *err)
{
    count *c = arg;

    uint64_t cost;

    (void)err;
    if (__builtin_add_overflow(e->size, HEADER, &cost) || cost > c->left)
        return AQ_SINK_STOP;
    c->left -= cost;
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
        if (c->bytes > c->left)
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
                    .overhead_max = c->left};
    int r;

    if (!format->zip && !format->tar && format->filter != AQ_FILTER_NONE) {
        r = count_stream(c, &a.source, format->filter, whole, err);
        j->work += c->bytes;
        return r;
    }
    if (!format->zip && !format->tar) {
        *whole = false;
        return 0;
    }
    r = format->zip ? aq_zip_read(&a, err) : aq_tar_read(&a, format->filter, err);
    *whole = !a.findings->incomplete && !a.stopped;
    j->work += a.decoded + c->entries * HEADER;
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

static int not_listed(job *j, const aq_file *f, aq_findings *findings, const char *budget,
                      aq_err *err)
{
    aq_auto_buf reason = {0};

    aq_buf_addf(&reason, "budget %s", budget);
    aq_findings_add_incomplete(findings, AQ_RULE_INTAKE_NESTED_UNREAD, f->path,
                               "Beyond the %s: not listed.", aq_buf_str(&reason));
    return aq_tell_unread(&j->teller, f->path, strlen(f->path), aq_buf_str(&reason), f->size, err);
}

static int nested(job *j, const aq_file *f, aq_findings *findings, aq_err *err)
{
    uint64_t most = j->limits.limit[AQ_BUDGET_BYTES];
    aq_source source = {j->image, f->offset, f->size};
    count c = {.left = j->work < most ? most - j->work : 0};
    aq_format format;
    bool whole = true;
    int r = aq_format_nested(&source, &format, err);

    if (r < 0 || !format.name || format.wasm)
        return r;
    if (++j->listed > j->limits.limit[AQ_BUDGET_NESTED])
        return not_listed(j, f, findings, aq_budget_name(AQ_BUDGET_NESTED), err);
    if (c.left == 0)
        return not_listed(j, f, findings, aq_budget_name(AQ_BUDGET_BYTES), err);
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
        if (archive[i] && (r = nested(j, &j->items[i], findings, err)) == 0)
            r = aq_tell_early(&j->teller, findings, j->told, err);
    return r;
}

/* What is known is told before more is read: whatever breaks the reader later, it counts. */
static int tell(job *j, aq_findings *f, aq_jail_io *io, aq_err *err)
{
    int r = aq_tell_findings(&j->teller, f, err);

    return r < 0 ? r : aq_jail_flush(io, err);
}

static int check_names(job *j, const char *wrapper, aq_jail_io *io, aq_err *err)
{
    aq_auto_free const char **all = aq_alloc((j->count + j->name_count + 1) * sizeof *all);
    aq_findings *alike = aq_findings_new(j->arena);
    size_t n = 0;
    int r;

    for (size_t i = 0; i < j->count; i++)
        all[n++] = j->items[i].path;
    for (size_t i = 0; i < j->name_count; i++)
        all[n++] = j->names[i];
    if (*wrapper) /* left out of the paths, and still unpacked by whoever installs */
        aq_inspect_name(j->findings, wrapper);
    for (size_t i = 0; i < n; i++)
        aq_inspect_name(j->findings, all[i]);
    if ((r = tell(j, j->findings, io, err)) < 0)
        return r;
    aq_inspect_alike(alike, all, n);
    return tell(j, alike, io, err);
}

static int run(job *j, aq_jail_io *io, aq_err *err)
{
    aq_findings *second = aq_findings_new(j->arena);
    aq_auto_buf wrapper = {0};
    uint64_t image;
    int r;

    if ((r = aq_answers_size(j->image, &image, err)) < 0 ||
        (r = aq_answers_limits(io, &j->limits, &wrapper, err)) < 0 ||
        (r = aq_answers_all(io, j->arena, image, &j->items, &j->count, &j->names, &j->name_count,
                            err)) < 0 ||
        (r = check_names(j, aq_buf_str(&wrapper), io, err)) < 0)
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
