/* What tar and zip share, and telling formats apart by content; see archive.h. */
#include "cleanroom/archive.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cleanroom/zip_entry.h"

void aq_archive_finding(aq_archive *a, aq_rule_id rule, bool incomplete, const char *name,
                        size_t name_len, const char *fmt, ...)
{
    aq_auto_buf file = {0}, message = {0};
    aq_findings *f = a->findings;
    va_list ap;

    for (size_t i = 0; i < name_len; i++) /* a NUL would end the text unseen */
        aq_buf_add(&file, name[i] ? name + i : "\xe2\x90\x80", name[i] ? 1 : 3);
    va_start(ap, fmt);
    aq_buf_addv(&message, fmt, ap);
    va_end(ap);
    if (incomplete)
        aq_findings_add_incomplete(f, rule, name ? aq_buf_str(&file) : NULL, "%s",
                                   aq_buf_str(&message));
    else
        aq_findings_add(f, rule, name ? aq_buf_str(&file) : NULL, "%s", aq_buf_str(&message));
}

int aq_archive_unread(aq_archive *a, const char *place, const char *reason, uint64_t packed,
                      aq_err *err)
{
    a->unread += packed;
    return a->sink->unread(a->sink->arg, place, reason, packed, err);
}

static const struct {
    const char *name;
    const char *magic;
    uint8_t len;
} others[] = {
    {"bzip2", "BZh", 3},
    {"xz",
     "\xfd"
     "7zXZ",
     5},
    {"7z", "7z\xbc\xaf", 4},
    {"rar", "Rar!\x1a\x07", 6},
    {"lz4", "\x04\x22\x4d\x18", 4},
    {"lzip", "LZIP", 4},
    {"cab", "MSCF", 4},
    {"cpio", "070701", 6},
    {"cpio", "070702", 6},
    {"cpio", "070707", 6},
    {"compress", "\x1f\x9d", 2},
    {"ar", "!<arch>\n", 8},
};

static bool starts(const uint8_t *head, size_t len, const char *magic, size_t n)
{
    return len >= n && memcmp(head, magic, n) == 0;
}

static bool zip_head(const uint8_t *head, size_t len)
{
    return starts(head, len, "PK\3\4", 4) || starts(head, len, "PK\5\6", 4);
}

static bool tail_is_zip(const uint8_t *tail, size_t len)
{
    /* An end record without comment, the usual one of an archive that hides behind other data. */
    return len >= 22 && memcmp(tail + len - 22, "PK\5\6", 4) == 0 && tail[len - 1] == 0 &&
           tail[len - 2] == 0;
}

static bool zstd_head(const uint8_t *head, size_t len)
{
    return starts(head, len, "\x28\xb5\x2f\xfd", 4) ||
           (len >= 4 && (head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0);
}

/* The old form of lzma has no mark: a byte of settings, the size of the dictionary (a power of two,
 * or half as much again), that of the contents or all ones, and a zero. */
static bool lzma_head(const uint8_t *head, size_t len)
{
    uint32_t dictionary;
    uint64_t size;

    if (len < 18 || head[0] >= 225 || head[13] != 0)
        return false;
    dictionary = u32(head + 1);
    size = u64(head + 5);
    if (dictionary < 4096 || (size != UINT64_MAX && size >> 40))
        return false;
    while (dictionary % 2 == 0)
        dictionary /= 2;
    return dictionary == 1 || dictionary == 3;
}

/* The old binary form of cpio: a mark, and a name of the length that is told. */
static bool old_cpio_head(const uint8_t *head, size_t len)
{
    size_t name;

    if (len < 28 || head[0] != 0xc7 || head[1] != 0x71)
        return false;
    name = u16(head + 20);
    return name > 1 && 26 + name <= len && head[26 + name - 1] == 0 && head[26 + name - 2] != 0;
}

static const char *other_format(const uint8_t *head, size_t len)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (starts(head, len, others[i].magic, others[i].len))
            return others[i].name;
    return NULL;
}

bool aq_format_magic(const uint8_t *head, size_t len)
{
    return zip_head(head, len) || starts(head, len, "\x1f\x8b\x08", 3) || zstd_head(head, len) ||
           other_format(head, len) || lzma_head(head, len) || old_cpio_head(head, len) ||
           (len >= 263 && memcmp(head + 257, "ustar", 5) == 0) ||
           (len >= 512 && head[0] != '\0' && aq_tar_start(head));
}

typedef enum zip_end { END_NONE, END_PLACED, END_LOOSE } zip_end;

/* One end mark. Its directory may lie where it says, or right before it when something was put in
 * front of the archive, as readers tolerate. In a tar archive the second is what every zip file
 * packed near its end looks like, unless the record was made to reach to the last byte. */
static zip_end end_fits(const aq_source *s, const uint8_t *p, uint64_t at)
{
    uint64_t size = u32(p + 12), start = u32(p + 16);
    bool exact = at + 22 + u16(p + 20) == s->size;
    uint8_t mark[4], locator[20];

    if (at >= 20 && aq_source_read(s, at - 20, locator, 20) == 20 && is(locator, 6, 7))
        return exact || (aq_source_read(s, u64(locator + 8), mark, 4) == 4 && is(mark, 6, 6))
                   ? END_PLACED
                   : END_LOOSE;
    if (size < CENTRAL_LEN || size > at || start > at - size)
        return END_NONE;
    if (aq_source_read(s, start, mark, 4) == 4 && is(mark, 1, 2))
        return END_PLACED;
    if (aq_source_read(s, at - size, mark, 4) != 4 || !is(mark, 1, 2))
        return END_NONE;
    return exact ? END_PLACED : END_LOOSE;
}

int aq_zip_at_end(const aq_source *source, const aq_format *format, aq_zip_ends *ret, aq_err *err)
{
    bool tar = format->tar && format->filter == AQ_FILTER_NONE;
    size_t len = source->size < AQ_ZIP_TAIL ? (size_t)source->size : AQ_ZIP_TAIL;
    aq_auto_free uint8_t *tail = aq_realloc(NULL, len + 1, 1);
    uint64_t from = source->size - len;
    ssize_t n = aq_source_read(source, from, tail, len);

    if (n < 0)
        return aq_fail(err, (int)n, "cannot read the input");
    for (ssize_t i = 0; i + 22 <= n && !ret->found; i++) {
        zip_end end =
            is(tail + i, 5, 6) ? end_fits(source, tail + i, from + (uint64_t)i) : END_NONE;
        ret->found = end == END_PLACED || (end == END_LOOSE && !tar);
        if (end != END_LOOSE || !tar)
            continue;
        if (ret->count == ret->cap) {
            ret->cap = ret->cap ? 2 * ret->cap : 16;
            ret->at = aq_realloc(ret->at, ret->cap, sizeof *ret->at);
        }
        ret->at[ret->count++] = from + (uint64_t)i + 22 + u16(tail + i + 20);
    }
    return 0;
}

static bool any_within(const aq_zip_ends *ends, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < ends->count; i++)
        if (ends->at[i] > from && ends->at[i] <= to)
            return true;
    return false;
}

/* Without anything behind it, which would be a second archive to who looks for the last mark. */
static bool ends_in_zip(const aq_source *file)
{
    uint8_t tail[22];

    return file->size >= sizeof tail &&
           aq_source_read(file, file->size - sizeof tail, tail, sizeof tail) == sizeof tail &&
           tail_is_zip(tail, sizeof tail);
}

void aq_zip_ends_listed(aq_zip_ends *ends, const aq_source *source, uint64_t from, uint64_t to)
{
    aq_source file = {source->fd, source->base + from, to - from};
    bool whole = false;
    uint8_t head[512];
    ssize_t n;
    size_t kept = 0;

    if (!any_within(ends, from, to))
        return;
    n = aq_source_read(&file, 0, head, sizeof head);
    whole = aq_tar_inside(&file);
    for (size_t i = 0; i < ends->count; i++)
        whole = whole || ends->at[i] == to;
    /* Only what inspection takes for an archive is listed. */
    if (!whole || n < 0 || !(aq_format_magic(head, (size_t)n) || ends_in_zip(&file)))
        return;
    for (size_t i = 0; i < ends->count; i++)
        if (ends->at[i] <= from || ends->at[i] > to)
            ends->at[kept++] = ends->at[i];
    ends->count = kept;
}

static int compressed(const aq_source *source, aq_filter filter, aq_format *ret, aq_err *err)
{
    aq_stream *s = aq_stream_new(source, filter);
    uint8_t block[512];
    ssize_t n = aq_stream_read(s, block, sizeof block, err);
    aq_stream_state state = aq_stream_state_of(s);

    aq_stream_free(s);
    if (n < 0)
        return (int)n;
    ret->filter = filter;
    /* Cut off or damaged in its first block: the tar reader will say so and where. */
    if (n < (ssize_t)sizeof block)
        ret->tar = state == AQ_STREAM_TRUNCATED || state == AQ_STREAM_DAMAGED;
    else
        ret->tar = aq_tar_start(block);
    ret->accepted = ret->tar;
    if (filter == AQ_FILTER_GZIP)
        ret->name = ret->tar ? "tar.gz" : "gz";
    else
        ret->name = ret->tar ? "tar.zst" : "zst";
    return 0;
}

int aq_format_detect(const aq_source *source, aq_format *ret, aq_err *err)
{
    uint8_t head[512], tail[22];
    ssize_t n = aq_source_read(source, 0, head, sizeof head);
    ssize_t m = source->size < 22 ? 0 : aq_source_read(source, source->size - 22, tail, 22);

    *ret = (aq_format){0};
    if (n < 0 || m < 0)
        return aq_fail(err, n < 0 ? (int)n : (int)m, "cannot read the input");
    if (starts(head, (size_t)n, "\x1f\x8b", 2))
        return compressed(source, AQ_FILTER_GZIP, ret, err);
    if (zstd_head(head, (size_t)n))
        return compressed(source, AQ_FILTER_ZSTD, ret, err);
    if (starts(head, (size_t)n, "\0asm", 4))
        *ret = (aq_format){.name = "wasm", .accepted = true, .wasm = true};
    else if (n == sizeof head && aq_tar_start(head))
        *ret = (aq_format){.name = "tar", .accepted = true, .tar = true};
    else if (zip_head(head, (size_t)n) || tail_is_zip(tail, (size_t)m))
        *ret = (aq_format){.name = "zip", .accepted = true, .zip = true};
    else
        ret->name = other_format(head, (size_t)n);
    return 0;
}

int aq_format_nested(const aq_source *source, aq_format *ret, aq_err *err)
{
    aq_zip_ends ends = {0};
    uint8_t head[512];
    ssize_t n = aq_source_read(source, 0, head, sizeof head);
    int r = aq_format_detect(source, ret, err);

    if (r < 0 || ret->name)
        return r;
    if (n >= 0 && lzma_head(head, (size_t)n))
        ret->name = "lzma";
    else if (n >= 0 && old_cpio_head(head, (size_t)n))
        ret->name = "cpio";
    else if ((r = aq_zip_at_end(source, ret, &ends, err)) == 0 && ends.found)
        *ret = (aq_format){.name = "zip", .zip = true};
    free(ends.at);
    return r;
}
