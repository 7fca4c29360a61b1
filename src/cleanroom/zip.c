/* Zip, strictly; see archive.h.
 *
 * A zip archive says everything twice, once before each entry and once in the directory at the
 * end, and readers differ in which they believe. Here both must agree, entries must lie one after
 * the other without overlap, and what lies between, before or after them is named. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "cleanroom/paths.h"
#include "cleanroom/zip_entry.h"

enum {
    END_LEN = 22,
    END64_LEN = 56,
    LOCATOR_LEN = 20,
    LOCAL_LEN = 30,
    COMMENT_MAX = 65535,
    WINDOW = 256 << 10,
    OUT = 256 << 10,
    ENTRIES_MAX = 1 << 20,
    PIPE_BLOCK = 10240,
};
#define DIRECTORY_MAX (UINT64_C(128) << 20)

typedef struct zip {
    aq_archive *a;
    uint8_t *directory;
    uint64_t start; /* of the directory */
    uint64_t cd_size;
    uint64_t end;     /* of the last record that belongs to the archive's structure */
    uint64_t cd_end;  /* where the end records begin */
    uint64_t delta;   /* bytes before the archive */
    uint64_t claimed; /* entries, as the end record says */
    zip_entry *entries;
    size_t count;
    uint8_t *window, *out;
    z_stream inflater;
    uint64_t window_at;
    size_t window_len;
    uint64_t spare;         /* bytes of comments and unknown extra data */
    size_t marked, guessed; /* names beyond ASCII whose encoding is clear, and not */
    bool broken, has_end64;
    bool dos_names; /* backslashes part all names, as old programs for Windows wrote them */
    uint64_t end64; /* where the locator says that the 64-bit record is */
} zip;

static void broken(zip *z, aq_rule_id rule, uint64_t at, const char *what)
{
    z->broken = true;
    aq_archive_finding(z->a, rule, true, NULL, 0, "The zip archive %s (at byte %llu of %llu).",
                       what, (unsigned long long)at, (unsigned long long)z->a->source.size);
}

/* ---- the end records ---- */

/* Where the end record is: it must reach to the last byte, and be the only one that does. A second
 * mark behind it, in its comment, is the end for readers that look for the last mark. */
static int find_end(zip *z, uint8_t *record, uint64_t *ret, aq_err *err)
{
    uint64_t size = z->a->source.size;
    size_t len = size < END_LEN + COMMENT_MAX ? (size_t)size : END_LEN + COMMENT_MAX;
    aq_auto_free uint8_t *tail = aq_realloc(NULL, len, 1);
    ssize_t n = aq_source_read(&z->a->source, size - len, tail, len), found = -1, loose = -1;
    size_t exact = 0;

    if (n < 0)
        return aq_fail(err, (int)n, "cannot read the archive");
    for (ssize_t i = n - END_LEN; i >= 0; i--) {
        if (!is(tail + i, 5, 6))
            continue;
        if (loose < 0)
            loose = i;
        if (i + END_LEN + u16(tail + i + 20) == n) {
            exact++;
            if (found < 0)
                found = i;
        }
    }
    if (exact > 1 || (found >= 0 && loose != found))
        broken(z, AQ_RULE_INTAKE_AMBIGUOUS, size - len + (uint64_t)loose,
               "has more than one end record");
    else if (loose < 0)
        broken(z, AQ_RULE_INTAKE_TRUNCATED, size, "has no directory: its end is missing");
    if (z->broken)
        return 0;
    if (found < 0)
        found = loose;
    memcpy(record, tail + found, END_LEN);
    *ret = size - len + (uint64_t)found;
    return 0;
}

static bool marks(zip *z, uint64_t at, char third, char fourth)
{
    uint8_t p[4];

    return aq_source_read(&z->a->source, at, p, 4) == 4 && is(p, third, fourth);
}

/* Some readers take the 64-bit record whenever it is there, others only for fields that say so. */
static bool end64_agrees(const zip *z, const uint8_t *record)
{
    uint64_t count = u64(record + 32), size = u64(record + 40), start = u64(record + 48);

    return u64(record + 24) == count && u32(record + 16) == 0 && u32(record + 20) == 0 &&
           (z->claimed == UINT16_MAX || z->claimed == count) &&
           (z->cd_size == UINT32_MAX || z->cd_size == size) &&
           (z->start == UINT32_MAX || z->start == start);
}

/* The 64-bit end record lies before its locator, which lies before the end record. */
static int read_end64(zip *z, uint64_t end, aq_err *err)
{
    uint8_t locator[LOCATOR_LEN], record[END64_LEN];
    uint64_t at;

    if (end < LOCATOR_LEN + END64_LEN || !marks(z, end - LOCATOR_LEN, 6, 7))
        return 0;
    if (aq_source_read(&z->a->source, end - LOCATOR_LEN, locator, LOCATOR_LEN) != LOCATOR_LEN)
        return aq_fail(err, -EIO, "cannot read the archive");
    at = end - LOCATOR_LEN - END64_LEN;
    if (aq_source_read(&z->a->source, at, record, END64_LEN) != END64_LEN || !is(record, 6, 6) ||
        u64(record + 4) != END64_LEN - 12 || u64(locator + 8) > at) {
        broken(z, AQ_RULE_INTAKE_DAMAGED, at, "has a 64-bit end record that makes no sense");
        return 0;
    }
    if (!end64_agrees(z, record) || u32(locator + 4) != 0 || u32(locator + 16) != 1) {
        broken(z, AQ_RULE_INTAKE_AMBIGUOUS, at, "has two end records that contradict each other");
        return 0;
    }
    z->end64 = u64(locator + 8);
    z->has_end64 = true;
    z->claimed = u64(record + 32);
    z->cd_size = u64(record + 40);
    z->start = u64(record + 48);
    z->cd_end = at;
    return 0;
}

/* Readers look for the directory at its offset or right before the end record; when both places
 * hold one they see two archives. */
static void place_directory(zip *z)
{
    uint64_t before_end;
    bool here, there;

    if (z->cd_size > z->cd_end) {
        broken(z, AQ_RULE_INTAKE_DAMAGED, z->cd_end, "has a directory larger than itself");
        return;
    }
    before_end = z->cd_end - z->cd_size;
    if (z->cd_size == 0 || before_end == z->start) {
        z->start = before_end;
        return;
    }
    here = z->start < z->cd_end && z->cd_end - z->start >= z->cd_size && marks(z, z->start, 1, 2);
    there = marks(z, before_end, 1, 2);
    if (here && there) {
        broken(z, AQ_RULE_INTAKE_AMBIGUOUS, before_end, "has two directories");
    } else if (there && before_end > z->start) {
        z->delta = before_end - z->start;
        z->start = before_end;
    } else if (!here) {
        broken(z, AQ_RULE_INTAKE_DAMAGED, z->start, "has no directory where its end record says");
    }
}

static int read_end(zip *z, aq_err *err)
{
    uint8_t e[END_LEN] = {0};
    uint64_t at = 0;
    int r = find_end(z, e, &at, err);

    if (r < 0 || z->broken)
        return r;
    if (u16(e + 4) != 0 || u16(e + 6) != 0 || u16(e + 8) != u16(e + 10)) {
        broken(z, AQ_RULE_INTAKE_UNSUPPORTED, at, "is one part of several");
        return 0;
    }
    z->claimed = u16(e + 10);
    z->cd_size = u32(e + 12);
    z->start = u32(e + 16);
    z->cd_end = at;
    z->end = at + END_LEN + u16(e + 20);
    if (z->end > z->a->source.size)
        z->end = at + END_LEN;
    if ((r = read_end64(z, at, err)) < 0 || z->broken)
        return r;
    place_directory(z);
    if (!z->broken && z->has_end64 && z->end64 + z->delta != z->cd_end)
        broken(z, AQ_RULE_INTAKE_AMBIGUOUS, z->cd_end, "has two places for its 64-bit end record");
    return 0;
}

/* ---- the directory ---- */

static bool parse_central(const zip *z, const uint8_t *p, size_t left, zip_entry *e, size_t *used)
{
    uint8_t host = p[5];
    size_t extra = u16(p + 30);

    *used = CENTRAL_LEN + (size_t)u16(p + 28) + extra + u16(p + 32);
    if (*used > left)
        return false;
    *e = (zip_entry){.central = p,
                     .name = (const char *)p + CENTRAL_LEN,
                     .name_len = u16(p + 28),
                     .flags = u16(p + 8),
                     .method = u16(p + 10),
                     .crc = u32(p + 16),
                     .packed = u32(p + 20),
                     .size = u32(p + 24),
                     .local = u32(p + 42),
                     .unix_mode = host == 3 || host == 19,
                     .mode = u32(p + 38) >> 16};
    if (!zip_extras_good(p + CENTRAL_LEN + e->name_len, extra) || (u16(p + 34) != 0) ||
        !zip_wide_fields(p + CENTRAL_LEN + e->name_len, extra, &e->size, &e->packed, &e->local))
        return false;
    if (__builtin_add_overflow(e->local, z->delta, &e->local) || e->local > z->start ||
        e->packed > z->start || e->size > INT64_MAX)
        return false;
    return true;
}

static bool has(const zip_entry *e, char c)
{
    return memchr(e->name, c, e->name_len) != NULL;
}

/* Some programs take a backslash for what parts a path, most of them only where the entry is from
 * DOS and has no other one. An archive that is so throughout is one tree to them, and is read as
 * that; in any other one a name with a backslash is refused. */
static void look_at_backslashes(zip *z)
{
    size_t with = 0, other = 0;

    for (size_t i = 0; i < z->count; i++) {
        const zip_entry *e = &z->entries[i];
        with += has(e, '\\');
        other += has(e, '/') || (has(e, '\\') && e->central[5] != 0);
    }
    z->dos_names = with > 0 && other == 0;
    if (!z->dos_names)
        return;
    for (size_t i = 0; i < z->count; i++)
        zip_slashes(z->directory + (z->entries[i].name - (const char *)z->directory),
                    z->entries[i].name_len);
    aq_archive_finding(z->a, AQ_RULE_INTAKE_PATH_BACKSLASH, false, NULL, 0,
                       "Backslashes stand for / in %zu of its names; some programs take them for "
                       "plain characters.",
                       with);
}

static int read_directory(zip *z, aq_err *err)
{
    size_t at = 0, len = (size_t)z->cd_size, used;
    ssize_t n;

    if (z->cd_size > DIRECTORY_MAX || z->claimed > ENTRIES_MAX) {
        broken(z, AQ_RULE_INTAKE_BUDGET, z->start, "has more entries than the budget files allows");
        return 0;
    }
    z->directory = aq_realloc(NULL, len + 1, 1);
    n = aq_source_read(&z->a->source, z->start, z->directory, len);
    if (n < 0 || (size_t)n != len)
        return aq_fail(err, -EIO, "cannot read the archive's directory");
    z->entries = aq_alloc((size_t)z->claimed * sizeof *z->entries);
    for (; len - at >= CENTRAL_LEN && is(z->directory + at, 1, 2); at += used) {
        if (z->count == z->claimed)
            break;
        if (!parse_central(z, z->directory + at, len - at, &z->entries[z->count++], &used)) {
            broken(z, AQ_RULE_INTAKE_AMBIGUOUS, z->start + at,
                   "has a directory that programs read differently");
            return 0;
        }
        z->spare += u16(z->directory + at + 32) +
                    zip_extras_spare(z->directory + at + CENTRAL_LEN + u16(z->directory + at + 28),
                                     u16(z->directory + at + 30));
    }
    if (at != len || z->count != z->claimed)
        broken(z, AQ_RULE_INTAKE_AMBIGUOUS, z->start + at,
               "has another number of entries than it says");
    else
        look_at_backslashes(z);
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const zip_entry *x = a, *y = b;

    if (x->local != y->local)
        return x->local < y->local ? -1 : 1;
    return x->central < y->central ? -1 : x->central > y->central;
}

/* ---- entries ---- */

/* `len` bytes at `at`, or as many as there are, from a window that moves forward. */
static int window(zip *z, uint64_t at, size_t len, const uint8_t **ret, size_t *have, aq_err *err)
{
    if (at < z->window_at || at + len > z->window_at + z->window_len) {
        ssize_t n = aq_source_read(&z->a->source, at, z->window, WINDOW);
        if (n < 0)
            return aq_fail(err, (int)n, "cannot read the archive: %s", strerror((int)-n));
        z->window_at = at;
        z->window_len = (size_t)n;
    }
    *ret = z->window + (at - z->window_at);
    *have = (size_t)(z->window_at + z->window_len - at);
    return 0;
}

/* Where a descriptor follows the entry, its header may leave open what was not known yet. */
static bool local_sizes_agree(const zip_entry *e, const uint8_t *p, const uint8_t *extra,
                              size_t extra_len)
{
    uint64_t packed = u32(p + 18), size = u32(p + 22);
    uint32_t crc = u32(p + 14);
    /* Stored data has no end of its own: who reads from the front takes whatever looks like a
     * descriptor for it, and so may end elsewhere. */
    bool open = (e->flags & FLAG_DESCRIPTOR) && (e->method != METHOD_STORED || e->size == 0);

    if (!zip_wide_fields(extra, extra_len, &size, &packed, NULL))
        return false;
    return (crc == e->crc || (open && crc == 0)) &&
           (packed == e->packed || (open && packed == 0)) &&
           (size == e->size || (open && size == 0));
}

/* Compares the local header with the directory; the place of the data, or 0 if they disagree. */
static int check_local(zip *z, zip_entry *e, uint64_t *data, aq_err *err)
{
    const uint8_t *p = NULL;
    size_t have = 0, need = LOCAL_LEN + (size_t)e->name_len;
    uint16_t both = (uint16_t) ~(2 | 4); /* how hard the packer tried */
    int r = window(z, e->local, need, &p, &have, err);
    size_t extra;

    *data = 0;
    if (r < 0)
        return r;
    if (have < need || !is(p, 3, 4) || u16(p + 26) != e->name_len ||
        !zip_same_name(p + LOCAL_LEN, e, z->dos_names) || u16(p + 8) != e->method ||
        (u16(p + 6) & both) != (e->flags & both))
        return 0;
    extra = u16(p + 28);
    if ((r = window(z, e->local, need + extra, &p, &have, err)) < 0)
        return r;
    if (have < need + extra || !local_sizes_agree(e, p, p + need, extra) ||
        !zip_extras_good(p + need, extra) || !zip_same_extra_name(e, p + need, extra))
        return 0;
    z->spare += zip_extras_spare(p + need, extra);
    e->local_extra = extra > 0;
    *data = e->local + need + extra;
    return 0;
}

/* Bytes of a data descriptor at `at`, 0 when there is none. It comes with and without a mark, with
 * 32- and 64-bit sizes. */
static int descriptor(zip *z, const zip_entry *e, uint64_t at, uint64_t gap, size_t *ret,
                      aq_err *err)
{
    const uint8_t *p = NULL;
    size_t have = 0;
    int r = window(z, at, 24, &p, &have, err);

    *ret = 0;
    if (r < 0 || !(e->flags & FLAG_DESCRIPTOR))
        return r;
    if (have > gap)
        have = (size_t)gap;
    for (int mark = 4; mark >= 0; mark -= 4) {
        const uint8_t *q = p + mark;
        if (mark && (have < 4 || !is(p, 7, 8)))
            continue;
        if (have >= (size_t)mark + 20 && u32(q) == e->crc && u64(q + 4) == e->packed &&
            u64(q + 12) == e->size)
            *ret = (size_t)mark + 20;
        else if (have >= (size_t)mark + 12 && u32(q) == e->crc && u32(q + 4) == e->packed &&
                 u32(q + 8) == e->size)
            *ret = (size_t)mark + 12;
        if (*ret)
            return 0;
    }
    return 0;
}

typedef int (*consumer)(void *arg, const void *data, size_t len, aq_err *err);

static int stored(zip *z, const zip_entry *e, uint64_t at, consumer to, void *arg, bool *whole,
                  aq_err *err)
{
    uint64_t left = e->size;
    uLong crc = crc32(0, NULL, 0);

    while (left > 0) {
        const uint8_t *p = NULL;
        size_t have = 0;
        int r = window(z, at, 1, &p, &have, err);
        if (r < 0)
            return r;
        if (have > left)
            have = (size_t)left;
        if (have == 0)
            break;
        crc = crc32(crc, p, (uInt)have);
        if ((r = to(arg, p, have, err)) < 0)
            return r;
        at += have;
        left -= have;
    }
    *whole = left == 0 && crc == e->crc && e->packed == e->size;
    return 0;
}

static int deflated(zip *z, const zip_entry *e, uint64_t at, consumer to, void *arg, bool *whole,
                    aq_err *err)
{
    z_stream *s = &z->inflater;
    uint64_t left = e->packed, made = 0;
    uLong crc = crc32(0, NULL, 0);
    int state = inflateReset(s), r;

    while (state == Z_OK) {
        const uint8_t *p = NULL;
        size_t have = 0, n;
        if (left > 0 && (r = window(z, at, 1, &p, &have, err)) < 0)
            return r;
        if (have > left)
            have = (size_t)left;
        s->next_in = have ? (Bytef *)(uintptr_t)p : z->out;
        s->avail_in = (uInt)have;
        s->next_out = z->out;
        s->avail_out = OUT;
        state = inflate(s, Z_NO_FLUSH);
        at += have - s->avail_in;
        left -= have - s->avail_in;
        n = OUT - s->avail_out;
        if (n > e->size - made) /* more than it says: not the file that was promised */
            return 0;
        crc = crc32(crc, z->out, (uInt)n);
        made += n;
        if (n > 0 && (r = to(arg, z->out, n, err)) < 0)
            return r;
    }
    *whole = state == Z_STREAM_END && left == 0 && made == e->size && crc == e->crc;
    return 0;
}

static int contents(zip *z, const zip_entry *e, uint64_t at, consumer to, void *arg, bool *whole,
                    aq_err *err)
{
    *whole = false;
    if (e->method == METHOD_STORED)
        return e->packed == e->size ? stored(z, e, at, to, arg, whole, err) : 0;
    return deflated(z, e, at, to, arg, whole, err);
}

static int gather(void *arg, const void *data, size_t len, aq_err *err)
{
    (void)err;
    aq_buf_add(arg, data, len);
    return 0;
}

static int mismatch(zip *z, const zip_entry *e, aq_rule_id rule, const char *what, aq_err *err)
{
    uint64_t bytes = e->packed < z->a->read ? e->packed : z->a->read;

    aq_archive_finding(z->a, rule, true, e->name, e->name_len, "%s", what);
    z->a->unseen = true;
    z->a->read -= bytes;
    return aq_archive_unread(z->a, "(an entry that contradicts the directory)",
                             "readers would see different files", bytes, err);
}

/* Packed bytes of an entry that nobody looked at. The sink has told those of files by itself. */
static int unread_contents(zip *z, const zip_entry *e, aq_entry_kind kind, int verdict, bool whole,
                           aq_err *err)
{
    bool skipped = verdict == AQ_SINK_SKIP && kind != AQ_ENTRY_SYMLINK && kind != AQ_ENTRY_FOLDER;

    if (e->packed == 0 || (whole && !skipped))
        return 0;
    z->a->read -= e->packed;
    if (kind == AQ_ENTRY_SYMLINK || kind == AQ_ENTRY_SPECIAL)
        return aq_archive_unread(z->a, "(contents of a link or device)", "not whole or not read",
                                 e->packed, err);
    z->a->unread += e->packed;
    return 0;
}

/* Gives one entry to the sink. Its packed bytes count as read unless nobody looked at them. */
static int give(zip *z, const zip_entry *e, uint64_t at, aq_err *err)
{
    const aq_sink *sink = z->a->sink;
    aq_auto_buf target = {0};
    bool whole = true;
    aq_entry out;
    int r, verdict;

    zip_classify(e, &out);
    if (!zip_unicode_name(e, &out))
        return mismatch(z, e, AQ_RULE_INTAKE_ZIP_MISMATCH, "The entry has two names.", err);
    if (!zip_kind_clear(e) || (e->name_len > 0 && e->name[e->name_len - 1] == '/' && e->size > 0))
        return mismatch(z, e, AQ_RULE_INTAKE_AMBIGUOUS,
                        "A folder to one program is a file or a link to another one.", err);
    if (has(e, '\\'))
        return mismatch(z, e,
                        aq_name_leads_out(e->name, e->name_len) ? AQ_RULE_INTAKE_PATH_PARENT
                                                                : AQ_RULE_INTAKE_AMBIGUOUS,
                        "A backslash parts the path to some programs and not to others.", err);
    if (e->flags & ~FLAGS_KNOWN)
        return mismatch(z, e, AQ_RULE_INTAKE_AMBIGUOUS,
                        "The entry has marks that only some programs know.", err);
    z->marked += !zip_plain_ascii(e) && zip_encoding_clear(e);
    z->guessed += !zip_encoding_clear(e);
    if (!zip_encoding_clear(e))
        aq_archive_finding(z->a, AQ_RULE_INTAKE_PATH_CODEPAGE, false, e->name, e->name_len,
                           "Programs guess the encoding of this name, each in its own way.");
    if ((out.kind == AQ_ENTRY_SYMLINK || (out.kind == AQ_ENTRY_FOLDER && e->packed > 0)) &&
        (r = contents(z, e, at, gather, &target, &whole, err)) < 0)
        return r;
    if (out.kind == AQ_ENTRY_FOLDER && !whole)
        return mismatch(z, e, AQ_RULE_INTAKE_AMBIGUOUS,
                        "A folder with contents, which some programs take for a file.", err);
    if (out.kind == AQ_ENTRY_SYMLINK) {
        out.link = aq_buf_str(&target);
        out.link_len = target.len;
        out.size = 0;
    }
    z->a->packed = e->packed;
    verdict = sink->entry(sink->arg, &out, err);
    if (verdict < 0)
        return verdict;
    if (verdict == AQ_SINK_STOP) {
        z->a->stopped = true;
        return 0;
    }
    if (verdict == AQ_SINK_TAKE) {
        if ((r = contents(z, e, at, sink->data, sink->arg, &whole, err)) < 0 ||
            (r = sink->end(sink->arg, whole, err)) < 0)
            return r;
    }
    if (!whole)
        aq_archive_finding(z->a, AQ_RULE_INTAKE_DAMAGED, true, out.name, out.name_len,
                           "Contents do not have the size or checksum that the archive says.");
    return unread_contents(z, e, out.kind, verdict, whole, err);
}

static int hidden(zip *z, uint64_t bytes, const char *where, aq_err *err)
{
    if (bytes == 0)
        return 0;
    aq_archive_finding(z->a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                       "%llu bytes lie %s of the zip archive.", (unsigned long long)bytes, where);
    return aq_archive_unread(z->a, "(between or around the entries)",
                             "no reader of this format shows them", bytes, err);
}

/* One entry in the order of places; `*at` is where the one before ended. */
static int one_entry(zip *z, size_t i, uint64_t *at, aq_err *err)
{
    zip_entry *e = &z->entries[i];
    uint64_t next = i + 1 < z->count ? z->entries[i + 1].local : z->start;
    uint64_t data = 0, end;
    size_t tail = 0;
    int r;

    if (e->local < *at) {
        broken(z, AQ_RULE_INTAKE_ZIP_OVERLAP, e->local, "has entries that share bytes");
        return 0;
    }
    if ((r = hidden(z, e->local - *at, i ? "between entries" : "before the first entry", err)) <
            0 ||
        (r = check_local(z, e, &data, err)) < 0)
        return r;
    *at = e->local;
    if (data == 0) {
        /* Nothing tells where it ends: its bytes up to the next one are unread. */
        aq_archive_finding(z->a, AQ_RULE_INTAKE_ZIP_MISMATCH, true, e->name, e->name_len,
                           "The entry's own header and the archive's directory disagree.");
        *at = next;
        z->a->unseen = true;
        return aq_archive_unread(z->a, "(an entry that contradicts the directory)",
                                 "readers would see different files", next - e->local, err);
    }
    end = data + e->packed;
    if (end > next) {
        broken(z, AQ_RULE_INTAKE_ZIP_OVERLAP, e->local, "has entries that share bytes");
        return 0;
    }
    if ((r = descriptor(z, e, end, next - end, &tail, err)) < 0)
        return r;
    if ((e->flags & FLAG_DESCRIPTOR) && tail == 0) {
        /* Who reads from the front takes other bytes for it. */
        *at = end;
        z->a->read += end - e->local;
        return mismatch(z, e, AQ_RULE_INTAKE_ZIP_MISMATCH,
                        "The sizes that should follow the entry do not.", err);
    }
    *at = end + tail;
    z->a->read += *at - e->local;
    return give(z, e, data, err);
}

/* A packer that writes to a pipe fills its last block with zeros. */
static bool padded(const zip *z)
{
    uint64_t len = z->a->source.size - z->end;
    uint8_t tail[PIPE_BLOCK];

    if (len == 0 || len >= sizeof tail || z->a->source.size % sizeof tail != 0 ||
        aq_source_read(&z->a->source, z->end, tail, (size_t)len) != (ssize_t)len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (tail[i] != 0)
            return false;
    return true;
}

static int walk(zip *z, aq_err *err)
{
    uint64_t at = 0;
    int r = 0;

    for (size_t i = 0; i < z->count && r == 0 && !z->broken && !z->a->stopped; i++)
        r = one_entry(z, i, &at, err);
    if (z->marked > 0 && z->guessed > 0)
        aq_archive_finding(z->a, AQ_RULE_INTAKE_PATH_MIXED, false, NULL, 0,
                           "%zu of its names are marked as UTF-8 and %zu are not.", z->marked,
                           z->guessed);
    if (r == 0 && z->spare > AQ_SPARE_MAX) {
        aq_archive_finding(z->a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                           "%llu bytes are in comments and unknown extra data of entries.",
                           (unsigned long long)z->spare);
        r = z->a->sink->unread(z->a->sink->arg, "(beside the entries)",
                               "no reader of this format shows them", z->spare, err);
    }
    if (r < 0)
        return r;
    if (z->broken || z->a->stopped) {
        z->a->read += z->a->source.size - z->start;
        return aq_archive_unread(z->a, "(rest of the archive)",
                                 z->broken ? "damaged or ambiguous" : "budget", z->start - at, err);
    }
    if ((r = hidden(z, z->start - at, "between the entries and the directory", err)) < 0 ||
        (r = hidden(z, z->cd_end - z->start - z->cd_size, "between directory and end", err)) < 0)
        return r;
    z->a->read += z->cd_size + (z->end - z->cd_end);
    if (padded(z)) {
        z->a->read += z->a->source.size - z->end;
        return 0;
    }
    return hidden(z, z->a->source.size - z->end, "after the end", err);
}

/* Forty characters of a commit id are usual in the comment; anything else is worth a word. */
static int look_at_comment(zip *z, aq_err *err)
{
    uint8_t text[256];
    uint64_t at = z->cd_end;
    uint64_t len;
    ssize_t n;

    while (at + END_LEN <= z->end && !marks(z, at, 5, 6))
        at += at == z->cd_end ? END64_LEN : LOCATOR_LEN;
    len = z->end > at + END_LEN ? z->end - at - END_LEN : 0;
    n = aq_source_read(&z->a->source, at + END_LEN, text, len < sizeof text ? len : sizeof text);
    if (n < 0)
        return aq_fail(err, (int)n, "cannot read the archive");
    for (ssize_t i = 0; i < n; i++)
        if (text[i] != '\n' && text[i] != '\r' && (text[i] < ' ' || text[i] > '~'))
            len = UINT64_MAX;
    if (len > sizeof text)
        aq_archive_finding(z->a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                           "The zip archive's comment is long or no plain text.");
    return 0;
}

int aq_zip_read(aq_archive *a, aq_err *err)
{
    zip z = {.a = a};
    int r = read_end(&z, err);

    if (r == 0 && !z.broken)
        r = read_directory(&z, err);
    if (r == 0 && z.broken) {
        r = aq_archive_unread(a, "(the whole archive)", "damaged or ambiguous", a->source.size,
                              err);
    } else if (r == 0) {
        z.window = aq_realloc(NULL, WINDOW, 1);
        z.out = aq_realloc(NULL, OUT, 1);
        if (inflateInit2(&z.inflater, -MAX_WBITS) != Z_OK)
            aq_panic("zlib cannot start");
        if (z.count > 0)
            qsort(z.entries, z.count, sizeof *z.entries, by_place);
        r = look_at_comment(&z, err);
        if (r == 0)
            r = walk(&z, err);
        inflateEnd(&z.inflater);
    }
    free(z.window);
    free(z.out);
    free(z.directory);
    free(z.entries);
    return r;
}
