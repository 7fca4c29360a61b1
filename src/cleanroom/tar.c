/* Tar, strictly: ustar, pax and GNU long names; see archive.h.
 *
 * Installers differ in how they read unusual headers, and an attacker shows each of them another
 * tree. So a header must have its checksum, an extended name or size must not contradict another
 * one, and reading ends at the first thing that makes no sense; the rest is named as unread. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cleanroom/archive.h"
#include "cleanroom/tar_names.h"

enum {
    BLOCK = 512,
    EXTENDED_MAX = 1 << 20, /* bytes of one pax header or long name */
    USUAL_MAX = 1024,       /* bytes of times, owners and the like for one entry */
    VARIED_MAX = 32 << 10,  /* of those, in a whole archive: bytes that are no numbers */
    REPEATS = 64,           /* records that are remembered, so that repeating them is free */
};

typedef struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
    char type;
    char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
    char pad[12];
} header;
_Static_assert(sizeof(header) == BLOCK, "a tar header is one block");

/* What extension headers said about the next entry. */
typedef struct extended {
    aq_buf name, link;
    aq_buf own; /* the name of the pax header itself */
    bool has_name, has_link, has_size, sparse;
    bool waiting; /* for the entry that they are about */
    bool pax;     /* they are pax, not GNU's long names */
    uint64_t size;
} extended;

/* Owners, flags and the like, which most entries repeat. One that changes from entry to entry could
 * spell anything. */
typedef struct repeats {
    aq_buf seen[REPEATS];
    size_t count;
    uint64_t varied;
} repeats;

typedef struct tar {
    aq_archive *a;
    aq_stream *s;
    extended next;
    uint64_t entries;
    uint64_t overhead; /* decoded bytes that are no contents */
    uint64_t spare;    /* bytes of comments and unknown records */
    uint64_t slack;    /* bytes behind the end of fields and contents */
    repeats repeats;
    bool broken; /* said already why reading cannot go on */
} tar;

static uint64_t padding(uint64_t size)
{
    return (BLOCK - size % BLOCK) % BLOCK;
}

/* Octal with optional blanks around it, or GNU's base 256. */
static bool number(const char *field, size_t len, uint64_t *ret)
{
    const uint8_t *p = (const uint8_t *)field;
    uint64_t v = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        if (p[0] != 0x80) /* negative, or more than 64 bits */
            return false;
        for (i = 1; i < len; i++) {
            if (v >> 55)
                return false;
            v = v << 8 | p[i];
        }
        *ret = v;
        return true;
    }
    while (i < len && p[i] == ' ')
        i++;
    for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(p[i] - '0');
    for (; i < len; i++)
        if (p[i] != ' ' && p[i] != '\0')
            return false;
    *ret = v;
    return true;
}

static bool checksum_good(const uint8_t *block)
{
    uint64_t want, sum = 0;

    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : block[i];
    /* In base 256 it is no checksum to every reader; one of them goes on behind the header. */
    return block[148] < 0x80 && number((const char *)block + 148, 8, &want) && want == sum;
}

static bool zero_block(const uint8_t *b, size_t len)
{
    return len == 0 || (b[0] == 0 && memcmp(b, b + 1, len - 1) == 0);
}

static size_t nonzero(const char *p, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += p[i] != '\0';
    return count;
}

/* Bytes of a text field behind the NUL that ends it. */
static size_t behind(const char *field, size_t len)
{
    size_t end = strnlen(field, len);

    return nonzero(field + end, len - end);
}

/* Bytes of a header that no reader looks at. Some writers keep two times at the end of the prefix,
 * and a mark in the last four bytes. */
static size_t header_slack(const header *h)
{
    bool link = h->type == '1' || h->type == '2' || h->type == 'S';
    size_t prefix = sizeof h->prefix, pad = sizeof h->pad;
    uint64_t time;

    if (h->type == 'S') /* a sparse map is there; the entry is told as unread */
        prefix = pad = 0;
    else if (number(h->prefix + 131, 12, &time) && number(h->prefix + 143, 12, &time))
        prefix = 131;
    if (pad > 0 && memcmp(h->pad + 8, "tar", 4) == 0)
        pad = 8;
    return behind(h->name, sizeof h->name) + behind(h->user, sizeof h->user) +
           behind(h->group, sizeof h->group) + behind(h->prefix, prefix) + nonzero(h->pad, pad) +
           (link ? behind(h->link, sizeof h->link) : nonzero(h->link, sizeof h->link));
}

bool aq_tar_start(const uint8_t block[static 512])
{
    return zero_block(block, BLOCK) || (block[0] != '\0' && checksum_good(block));
}

bool aq_tar_inside(const aq_source *source)
{
    uint8_t block[BLOCK];

    return aq_source_read(source, 0, block, BLOCK) == BLOCK && checksum_good(block);
}

/* ---- extension headers ---- */

static bool set_size(extended *x, const char *value, size_t len)
{
    uint64_t v = 0;

    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (value[i] < '0' || value[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(value[i] - '0');
    }
    if (x->has_size && x->size != v)
        return false;
    x->has_size = true;
    x->size = v;
    return true;
}

/* A second, different value for the same thing is what attacks are made of. */
static bool set_text(aq_buf *b, bool *has, const char *value, size_t len)
{
    if (*has)
        return b->len == len && (len == 0 || memcmp(b->data, value, len) == 0);
    *has = true;
    aq_buf_clear(b);
    aq_buf_add(b, value, len);
    return true;
}

static bool is_key(const char *key, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(key, word, len) == 0;
}

static bool key_starts(const char *key, size_t len, const char *word)
{
    return len >= strlen(word) && memcmp(key, word, strlen(word)) == 0;
}

/* Names are UTF-8 for one reader and whatever this record says for another. */
static bool charset_good(const char *value, size_t len)
{
    return is_key(value, len, "BINARY") || is_key(value, len, "ISO-IR 10646 2000 UTF-8");
}

/* A name that every program takes as it stands. */
static bool name_clear(const char *value, size_t len)
{
    return len > 0 && !memchr(value, '\n', len) && !tar_only_digits(value, len);
}

/* An empty value takes a name back for one reader and is the name for another; a NUL ends a key in
 * one and not in another; and some programs know records that make another file of this one. */
static bool set_record(extended *x, const char *key, size_t key_len, const char *value, size_t len)
{
    static const char *const others[] = {"SCHILY.realsize", "SCHILY.filetype", "SUN.holesdata",
                                         "GNU.volume.",     "GNU.dumpdir",     "charset"};

    if (memchr(key, '\0', key_len) || key[0] == ' ' || key[key_len - 1] == ' ' ||
        !tar_record_clear(key, key_len, value, len))
        return false;
    if (is_key(key, key_len, "path"))
        return name_clear(value, len) && set_text(&x->name, &x->has_name, value, len);
    if (is_key(key, key_len, "linkpath"))
        return name_clear(value, len) && set_text(&x->link, &x->has_link, value, len);
    if (is_key(key, key_len, "size"))
        return set_size(x, value, len);
    if (is_key(key, key_len, "hdrcharset"))
        return charset_good(value, len);
    if (key_starts(key, key_len, "GNU.sparse."))
        x->sparse = true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (key_starts(key, key_len, others[i]))
            return false;
    return true;
}

static bool is_number(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!(value[i] >= '0' && value[i] <= '9') && value[i] != '.' && value[i] != '-')
            return false;
    return len <= 32;
}

static bool one_of(const char *key, size_t key_len, const char *const *words)
{
    for (; *words; words++)
        if (is_key(key, key_len, *words))
            return true;
    return false;
}

/* Is it new, and more than the archive may carry of such? A record is key, '=' and value. */
static bool too_varied(repeats *u, const char *record, size_t len)
{
    for (size_t i = 0; i < u->count; i++)
        if (u->seen[i].len == len && memcmp(u->seen[i].data, record, len) == 0)
            return false;
    if (u->count < REPEATS)
        aq_buf_add(&u->seen[u->count++], record, len);
    u->varied += len;
    return u->varied > VARIED_MAX;
}

/* Records that programs write into every header by themselves, and what macOS adds to files. */
static bool usual_record(repeats *u, const char *key, size_t key_len, size_t len)
{
    static const char *const numbers[] = {
        "mtime",      "atime",      "ctime",        "uid", "gid", "LIBARCHIVE.creationtime",
        "SCHILY.dev", "SCHILY.ino", "SCHILY.nlink", NULL};
    static const char *const words[] = {"uname", "gname", "hdrcharset", "SCHILY.fflags", NULL};
    bool apple = key_starts(key, key_len, "SCHILY.xattr.com.apple.") ||
                 key_starts(key, key_len, "LIBARCHIVE.xattr.com.apple.");

    if (one_of(key, key_len, numbers))
        return is_number(key + key_len + 1, len);
    if (!(apple && len <= 128) && !(one_of(key, key_len, words) && len <= 64))
        return false;
    return !too_varied(u, key, key_len + 1 + len);
}

/* A name or size is seen in the entry; anything else counts unless it is usual and little. `usual`
 * is what this header had of that. */
static void count_spare(tar *t, size_t *usual, const char *key, size_t key_len, size_t len)
{
    if (is_key(key, key_len, "path") || is_key(key, key_len, "linkpath") ||
        is_key(key, key_len, "size"))
        return;
    if (usual_record(&t->repeats, key, key_len, len) && (*usual += key_len + len) <= USUAL_MAX)
        return;
    t->spare += key_len + len;
}

/* Records "LEN KEY=VALUE\n"; LEN counts the whole record. False when malformed. */
static bool pax_records(tar *t, extended *x, const char *p, size_t len)
{
    size_t usual = 0;

    while (len > 0) {
        size_t record = 0, i = 0;
        const char *equal;
        for (; i < len && i < 8 && p[i] >= '0' && p[i] <= '9'; i++)
            record = record * 10 + (size_t)(p[i] - '0');
        /* A zero in front shifts the key for who counts the digits of the number. */
        if (i == 0 || p[0] == '0' || i >= len || p[i] != ' ' || record > len || record < i + 4 ||
            p[record - 1] != '\n')
            return false;
        i++;
        equal = memchr(p + i, '=', record - 1 - i);
        if (!equal || equal == p + i ||
            !set_record(x, p + i, (size_t)(equal - p) - i, equal + 1,
                        (size_t)(p + record - 1 - (equal + 1))))
            return false;
        count_spare(t, &usual, p + i, (size_t)(equal - p) - i, (size_t)(p + record - 2 - equal));
        p += record;
        len -= record;
    }
    return true;
}

static size_t without_nuls(const char *p, size_t len)
{
    while (len > 0 && p[len - 1] == '\0')
        len--;
    return len;
}

static void broken(tar *t, aq_rule_id rule, const char *what)
{
    t->broken = true;
    aq_archive_finding(t->a, rule, true, NULL, 0,
                       "The tar archive %s at byte %llu (as decompressed), after %llu %s.", what,
                       (unsigned long long)aq_stream_given(t->s), (unsigned long long)t->entries,
                       t->entries == 1 ? "entry" : "entries");
}

static void cut(tar *t)
{
    if (t->broken)
        return;
    if (aq_stream_window_too_large(t->s))
        broken(t, AQ_RULE_INTAKE_UNSUPPORTED,
               "needs a window of more than 128 MiB to unpack (zstd --long=27 is the most),");
    else if (aq_stream_state_of(t->s) == AQ_STREAM_DAMAGED)
        broken(t, AQ_RULE_INTAKE_DAMAGED, "has damaged compressed data");
    else
        broken(t, AQ_RULE_INTAKE_TRUNCATED, "ends too early");
}

static void plain_name(const header *h, aq_buf *out)
{
    bool ustar = memcmp(h->magic, "ustar", 6) == 0;

    if (ustar && h->prefix[0]) {
        aq_buf_add(out, h->prefix, strnlen(h->prefix, sizeof h->prefix));
        aq_buf_addc(out, '/');
    }
    aq_buf_add(out, h->name, strnlen(h->name, sizeof h->name));
    aq_buf_str(out);
}

static int read_extended(tar *t, const header *h, uint64_t size, aq_err *err)
{
    aq_auto_buf body = {0};
    extended *x = &t->next, scratch = {0};
    bool good = true;
    ssize_t n;

    /* Readers differ in whether a second header adds to the first one or replaces it. */
    if (h->type == 'x' || h->type == 'g' ? x->waiting : x->pax) {
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "has several extended headers for one entry");
        return 0;
    }
    x->waiting = h->type != 'g';
    x->pax = h->type == 'x';
    if (size > EXTENDED_MAX) {
        broken(t, AQ_RULE_INTAKE_DAMAGED, "has an oversized extended header");
        return 0;
    }
    t->overhead += size + padding(size);
    aq_buf_reserve(&body, size + padding(size));
    n = aq_stream_read(t->s, body.data, size + padding(size), err);
    if (n < 0)
        return (int)n;
    if ((uint64_t)n < size + padding(size)) {
        cut(t);
        return 0;
    }
    t->slack += nonzero(body.data + size, padding(size));
    if (h->type == 'x') {
        plain_name(h, &x->own);
        /* NULs behind the last record end it for one reader and break it for another. */
        good = pax_records(t, x, body.data, size);
    } else if (h->type == 'g') {
        /* Global values: times and comments are usual, a name or size for all entries is not. */
        t->spare += strnlen(h->name, sizeof h->name) + strnlen(h->prefix, sizeof h->prefix);
        good = pax_records(t, &scratch, body.data, size) && !scratch.has_name &&
               !scratch.has_link && !scratch.has_size && !scratch.sparse;
        aq_buf_free(&scratch.name);
        aq_buf_free(&scratch.link);
    } else {
        t->spare += strncmp(h->name, "././@LongLink", sizeof h->name) == 0
                        ? 0
                        : strnlen(h->name, sizeof h->name);
        /* One reader takes the name up to its size, another up to the first NUL. */
        size_t len = strnlen(body.data, size + padding(size));
        if (len > size || len != without_nuls(body.data, size + padding(size))) {
            broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "has a long name without a clear end");
            return 0;
        }
        good = h->type == 'L' ? set_text(&x->name, &x->has_name, body.data, len)
                              : set_text(&x->link, &x->has_link, body.data, len);
    }
    if (!good)
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "has extended headers that contradict each other");
    return 0;
}

/* ---- entries ---- */

static void classify(const header *h, const extended *x, aq_entry *e)
{
    switch (h->type) {
    case '0':
    case '\0':
    case '7':
        e->kind = e->name_len > 0 && e->name[e->name_len - 1] == '/' && h->type == '\0'
                      ? AQ_ENTRY_FOLDER
                      : AQ_ENTRY_FILE;
        break;
    case '1':
        e->kind = AQ_ENTRY_HARD_LINK;
        break;
    case '2':
        e->kind = AQ_ENTRY_SYMLINK;
        break;
    case '5':
        e->kind = AQ_ENTRY_FOLDER;
        break;
    case '3':
    case '4':
    case '6':
        e->kind = AQ_ENTRY_SPECIAL;
        e->reason = h->type == '6'   ? "a FIFO"
                    : h->type == '3' ? "a character device"
                                     : "a block device";
        break;
    default:
        e->kind = AQ_ENTRY_UNREAD;
        e->rule = AQ_RULE_INTAKE_UNSUPPORTED;
        e->reason = h->type == 'S' ? "sparse file" : "unknown type of tar entry";
        break;
    }
    if (x->sparse) {
        e->kind = AQ_ENTRY_UNREAD;
        e->rule = AQ_RULE_INTAKE_UNSUPPORTED;
        e->reason = "sparse file";
    }
}

/* Hands `size` bytes on (or drops them) and skips the padding. False: the archive ended. */
static int contents(tar *t, uint64_t size, bool take, bool *whole, aq_err *err)
{
    uint64_t left = size, pad = padding(size);

    while (left + pad > 0) {
        const uint8_t *p;
        size_t n;
        uint64_t want = left ? left : pad;
        int r = aq_stream_next(t->s, want > SIZE_MAX ? SIZE_MAX : (size_t)want, &p, &n, err);
        if (r < 0)
            return r;
        if (n == 0)
            break;
        if (left == 0)
            t->slack += nonzero((const char *)p, n);
        else if (take && (r = t->a->sink->data(t->a->sink->arg, p, n, err)) < 0)
            return r;
        *(left ? &left : &pad) -= n;
    }
    *whole = left == 0;
    if (left + pad > 0)
        cut(t);
    return 0;
}

/* Names that end so are folders to some readers, and to others the file without that end. */
static bool folder_name(const aq_entry *e)
{
    const char *end = e->name + e->name_len;

    return (e->name_len > 0 && end[-1] == '/') ||
           (e->name_len > 1 && end[-1] == '.' && end[-2] == '/');
}

/* What programs see that do not know extension headers: it must not be another tree. */
static void check_overridden(tar *t, const header *h, const aq_buf *plain, aq_entry *e)
{
    extended *x = &t->next;
    size_t link_len = strnlen(h->link, sizeof h->link);

    if (x->has_name && !tar_name_shortened(plain->data, plain->len, e->name, e->name_len))
        aq_archive_finding(t->a, AQ_RULE_INTAKE_AMBIGUOUS, true, e->name, e->name_len,
                           "Programs that do not know long names take this entry for another one.");
    if (x->has_link && !tar_name_shortened(h->link, link_len, e->link, e->link_len))
        aq_archive_finding(t->a, AQ_RULE_INTAKE_AMBIGUOUS, true, e->name, e->name_len,
                           "Programs that do not know long names take this link for another one.");
    if (x->has_link && link_len > 0) {
        e->short_link = h->link;
        e->short_link_len = link_len;
    }
    t->spare +=
        tar_pax_name_foreign(x->own.len ? x->own.data : "", x->own.len, e->name, e->name_len);
}

/* What makes two archives of one: why, or NULL. */
static const char *contradiction(const extended *x, const aq_entry *e)
{
    bool link = e->kind == AQ_ENTRY_SYMLINK || e->kind == AQ_ENTRY_HARD_LINK;

    if (e->kind == AQ_ENTRY_FILE && folder_name(e))
        return "has a file with the name of a folder";
    /* Links and folders have no data, whatever the field says; a reader that skips data there and
     * one that does not would see two archives. */
    if (e->size > 0 && e->kind != AQ_ENTRY_FILE && e->kind != AQ_ENTRY_UNREAD)
        return "has a link, folder or device with contents";
    /* One reader makes a link of an empty file that has a target. */
    if (!link && (x->has_link || (e->link_len > 0 && e->kind != AQ_ENTRY_UNREAD)))
        return "has a target for an entry that is no link";
    return NULL;
}

static int entry(tar *t, const header *h, uint64_t size, aq_err *err)
{
    aq_auto_buf name = {0};
    extended *x = &t->next;
    aq_entry e = {.name = name.data, .size = size};
    const char *wrong;
    bool whole = false;
    uint64_t mode = 0;
    int r, verdict;

    plain_name(h, &name);
    e.name = x->has_name ? aq_buf_str(&x->name) : name.data;
    e.name_len = x->has_name ? x->name.len : name.len;
    e.link = x->has_link ? aq_buf_str(&x->link) : h->link;
    e.link_len = x->has_link ? x->link.len : strnlen(h->link, sizeof h->link);
    number(h->mode, sizeof h->mode, &mode);
    e.mode = (uint32_t)mode & 07777;
    classify(h, x, &e);
    if ((wrong = contradiction(x, &e))) {
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, wrong);
        return 0;
    }
    check_overridden(t, h, &name, &e);
    t->entries++;
    verdict = t->a->sink->entry(t->a->sink->arg, &e, err);
    if (verdict < 0)
        return verdict;
    if (verdict == AQ_SINK_STOP) {
        t->a->stopped = true;
        return 0;
    }
    t->a->from = aq_stream_given(t->s);
    t->a->to = t->a->from + size;
    r = contents(t, size, verdict == AQ_SINK_TAKE, &whole, err);
    if (r == 0 && verdict == AQ_SINK_TAKE)
        r = t->a->sink->end(t->a->sink->arg, whole, err);
    return r;
}

static void forget_extended(extended *x)
{
    aq_buf_free(&x->name);
    aq_buf_free(&x->link);
    aq_buf_free(&x->own);
    *x = (extended){0};
}

/* Some readers stop at a field that is no number, others shrug: then they see two trees. */
static bool numbers_good(const header *h)
{
    uint64_t v;

    return number(h->mode, sizeof h->mode, &v) && number(h->uid, sizeof h->uid, &v) &&
           number(h->gid, sizeof h->gid, &v) && number(h->mtime, sizeof h->mtime, &v) &&
           number(h->major, sizeof h->major, &v) && number(h->minor, sizeof h->minor, &v);
}

/* POSIX, GNU or the old form without a mark. The prefix belongs to POSIX alone, but some readers
 * put it before the name whatever the mark says, and others find times and sparse maps there. */
static bool mark_good(const header *h)
{
    bool posix = memcmp(h->magic,
                        "ustar\0"
                        "00",
                        8) == 0;
    bool gnu = memcmp(h->magic, "ustar  ", 8) == 0;
    bool old = zero_block((const uint8_t *)h->magic, 8);

    bool empty = zero_block((const uint8_t *)h->prefix, sizeof h->prefix + sizeof h->pad);

    return posix || ((gnu || old) && (empty || h->type == 'S'));
}

static int one_block(tar *t, const uint8_t *block, aq_err *err)
{
    header h;
    uint64_t size;
    int r;

    memcpy(&h, block, sizeof h);
    if (!checksum_good(block)) {
        broken(t, AQ_RULE_INTAKE_DAMAGED, "has no valid header");
        return 0;
    }
    if (!number(h.size, sizeof h.size, &size) || size > INT64_MAX) {
        broken(t, AQ_RULE_INTAKE_DAMAGED, "has a size that is no number");
        return 0;
    }
    if (!numbers_good(&h) || !mark_good(&h)) {
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "has a header that programs read differently");
        return 0;
    }
    t->slack += header_slack(&h);
    if (too_varied(&t->repeats, h.user, sizeof h.user + sizeof h.group))
        t->spare += sizeof h.user + sizeof h.group;
    if (h.type == 'x' || h.type == 'g' || h.type == 'L' || h.type == 'K')
        return read_extended(t, &h, size, err);
    /* The old type tells folders by the slash at the end of a name: of which of the two? */
    if (h.type == '\0' && t->next.has_name) {
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "has a header that programs read differently");
        return 0;
    }
    if (t->next.has_size && t->next.size != size) {
        broken(t, AQ_RULE_INTAKE_AMBIGUOUS, "gives two sizes for one entry");
        return 0;
    }
    r = entry(t, &h, size, err);
    forget_extended(&t->next);
    return r;
}

/* After the end marker only zeros may follow. */
static int after_end(tar *t, aq_err *err)
{
    uint64_t start = aq_stream_given(t->s), extra = 0;

    for (;;) {
        const uint8_t *p;
        size_t n;
        int r = aq_stream_next(t->s, SIZE_MAX, &p, &n, err);
        if (r < 0)
            return r;
        if (n == 0)
            break;
        if (extra > 0 || !zero_block(p, n))
            extra += n;
        if (aq_stream_given(t->s) - start > t->a->decode_max) {
            aq_archive_finding(
                t->a, AQ_RULE_INTAKE_BUDGET, true, NULL, 0,
                "More than %llu bytes follow the end of the tar archive; the rest of "
                "them was not read.",
                (unsigned long long)t->a->decode_max);
            t->a->stopped = true;
            break;
        }
    }
    if (aq_stream_state_of(t->s) == AQ_STREAM_TRUNCATED ||
        aq_stream_state_of(t->s) == AQ_STREAM_DAMAGED)
        cut(t);
    if (extra == 0)
        return 0;
    aq_archive_finding(t->a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                       "%llu bytes follow the end of the tar archive.", (unsigned long long)extra);
    return t->a->sink->unread(t->a->sink->arg, "(after the end of the archive)",
                              "no reader of this format shows them", extra, err);
}

/* Headers and padding pack well, and no entry's size tells of them. */
static bool overhead_good(tar *t)
{
    t->overhead += BLOCK;
    if (t->a->overhead_max == 0 || t->overhead <= t->a->overhead_max)
        return true;
    t->a->stopped = true;
    aq_archive_finding(t->a, AQ_RULE_INTAKE_RATIO, true, NULL, 0,
                       "The headers of the tar archive have more than %llu bytes; what follows was "
                       "not read.",
                       (unsigned long long)t->a->overhead_max);
    return false;
}

static int entries(tar *t, aq_err *err)
{
    uint8_t block[BLOCK];

    while (!t->broken && !t->a->stopped && overhead_good(t)) {
        ssize_t n = aq_stream_read(t->s, block, sizeof block, err);
        int r;
        if (n < 0)
            return (int)n;
        if (n < BLOCK) {
            cut(t); /* also when the end marker alone is missing: one cannot tell */
            return 0;
        }
        if (zero_block(block, BLOCK) && !t->next.waiting)
            return after_end(t, err);
        if ((r = one_block(t, block, err)) < 0)
            return r;
    }
    return 0;
}

static int hidden_inside(tar *t, uint64_t bytes, const char *where, aq_err *err)
{
    aq_archive_finding(t->a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0, "%llu bytes are in %s.",
                       (unsigned long long)bytes, where);
    return t->a->sink->unread(t->a->sink->arg, "(beside the entries)",
                              "no reader of this format shows them", bytes, err);
}

/* What lies beside names and contents. */
static int account_spare(tar *t, aq_err *err)
{
    uint64_t packed = aq_stream_spare(t->s);
    int r = 0;

    if (t->slack > 0)
        r = hidden_inside(t, t->slack, "tar headers and padding that should be empty", err);
    if (r == 0 && t->spare > AQ_SPARE_MAX)
        r = hidden_inside(t, t->spare, "comments and unknown records of the tar archive", err);
    if (r == 0 && packed > AQ_SPARE_MAX)
        r = hidden_inside(t, packed, "headers and empty parts of the compressed data", err);
    return r;
}

/* Everything that the decoder did not use, and what its frames hid. */
static int account(tar *t, aq_err *err)
{
    aq_archive *a = t->a;
    uint64_t used = aq_stream_consumed(t->s), hidden = aq_stream_skipped(t->s);
    uint64_t rest = a->source.size - used;
    int r = 0;

    a->read = used - hidden;
    if (hidden > 0) {
        aq_archive_finding(a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                           "%llu bytes are in frames that decompressors skip.",
                           (unsigned long long)hidden);
        r = aq_archive_unread(a, "(skippable frames)", "decompressors skip them", hidden, err);
    }
    if (r < 0 || rest == 0)
        return r;
    if (t->broken || a->stopped)
        return aq_archive_unread(a, "(rest of the archive)",
                                 a->stopped ? "budget" : "damaged or truncated", rest, err);
    aq_archive_finding(a, AQ_RULE_INTAKE_HIDDEN_BYTES, true, NULL, 0,
                       "%llu bytes follow the end of the compressed data.",
                       (unsigned long long)rest);
    return aq_archive_unread(a, "(after the end of the archive)",
                             "no reader of this format shows them", rest, err);
}

int aq_tar_read(aq_archive *a, aq_filter filter, aq_err *err)
{
    tar t = {.a = a, .s = aq_stream_new(&a->source, filter)};
    int r = entries(&t, err);

    if (r == 0)
        r = account_spare(&t, err);
    if (r == 0)
        r = account(&t, err);
    a->decoded = aq_stream_given(t.s);
    forget_extended(&t.next);
    for (size_t i = 0; i < t.repeats.count; i++)
        aq_buf_free(&t.repeats.seen[i]);
    aq_stream_free(t.s);
    return r;
}
