/* The history of a project: what a .git folder holds, made of the files that the world has anyway.
 *
 * A row says which commit brought which file, and how much of it: "HOURS | AUTHOR | SUBJECT | FILE
 * FILE:LINES …". So what a commit holds agrees with what lies in the folder, and what was written
 * after the last one shows as changed. All objects stand in one pack, stored and not deflated: both
 * worlds of a seed have packs of one length. */
#include <errno.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

enum {
    COMMIT = 1,
    TREE = 2,
    BLOB = 3,
    ID = SHA1_DIGEST_SIZE,
    OBJECTS = 1024,
    TRACKED = 256,
    COMMITS = 256,
    STORED = 65535, /* bytes of one stored block */
    USER = 1000,
    DEVICE = 259 << 8 | 2,
};

typedef struct object {
    uint8_t id[ID];
    uint32_t at, crc; /* in the pack */
} object;

/* A file at some commit. */
typedef struct tracked {
    const char *path; /* in the project */
    const aq_decoy_file *file;
    size_t len; /* so much of it */
    uint8_t id[ID];
} tracked;

typedef struct history {
    const aq_history *h;
    aq_buf pack, log;
    object *objects;
    size_t object_count;
    tracked *files; /* by path */
    size_t file_count;
    uint8_t head[ID], before[ID];
    size_t commits;
    const char *owner; /* who began it */
    size_t owner_len;
    aq_err *err;
} history;

static int bad(history *y, const char *what, const char *text, size_t len)
{
    return aq_fail(y->err, -EINVAL, "the history of %s: %s: %.*s", y->h->root, what,
                   (int)(len < 80 ? len : 80), text);
}

/* ---- objects ---- */

static void put_u32(aq_buf *out, uint32_t n)
{
    const uint8_t b[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

    aq_buf_add(out, b, sizeof b);
}

static uint32_t adler32(const char *data, size_t len)
{
    uint32_t a = 1, b = 0;

    for (size_t i = 0; i < len; i++) {
        a += (uint8_t)data[i];
        b += a;
        if (i % 5552 == 5551) /* before 32 bits are full */
            a %= 65521, b %= 65521;
    }
    a %= 65521, b %= 65521;
    return b << 16 | a;
}

static void put_stored(aq_buf *out, const char *data, size_t len)
{
    uint32_t sum = adler32(data, len);

    aq_buf_add(out, "\x78\x01", 2);
    do {
        size_t n = len < STORED ? len : STORED;
        const uint8_t head[5] = {n == len, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n,
                                 (uint8_t)(~n >> 8)};

        aq_buf_add(out, head, sizeof head);
        aq_buf_add(out, data, n);
        data += n;
        len -= n;
    } while (len);
    put_u32(out, sum);
}

static void put_header(aq_buf *out, int type, size_t len)
{
    uint8_t c = (uint8_t)((unsigned)type << 4 | (len & 15));

    for (len >>= 4; len; len >>= 7) {
        aq_buf_addc(out, (char)(c | 0x80));
        c = len & 0x7f;
    }
    aq_buf_addc(out, (char)c);
}

/* Adds it to the pack, unless it is there. */
static int add_object(history *y, int type, const char *data, size_t len, uint8_t id[static ID])
{
    static const char *const names[] = {[COMMIT] = "commit", [TREE] = "tree", [BLOB] = "blob"};
    char head[32];
    int n = snprintf(head, sizeof head, "%s %zu", names[type], len);
    struct sha1_ctx hash;
    object *o;

    sha1_init(&hash);
    sha1_update(&hash, (size_t)n + 1, (const uint8_t *)head);
    sha1_update(&hash, len, (const uint8_t *)data);
    sha1_digest(&hash, ID, id);
    for (size_t i = 0; i < y->object_count; i++)
        if (memcmp(y->objects[i].id, id, ID) == 0)
            return 0;
    if (y->object_count == OBJECTS)
        return aq_fail(y->err, -E2BIG, "the history of %s has more than %d objects", y->h->root,
                       OBJECTS);
    o = &y->objects[y->object_count++];
    memcpy(o->id, id, ID);
    o->at = (uint32_t)y->pack.len;
    put_header(&y->pack, type, len);
    put_stored(&y->pack, data, len);
    o->crc = aq_crc32(0, y->pack.data + o->at, y->pack.len - o->at);
    return 0;
}

static bool executable(const aq_decoy_file *f)
{
    return f->mode & 0100;
}

/* The tree of the files from `*at` on whose paths begin with the first `depth` bytes of the one
 * there; they stand in order, which is not quite git's: a folder counts as if it ended in a slash.
 * Names here are such that both are the same. */
static int add_tree(history *y, size_t *at, size_t depth, uint8_t id[static ID])
{
    const char *first = y->files[*at].path;
    aq_auto_buf tree = {0};
    int r = 0;

    while (r == 0 && *at < y->file_count && strncmp(y->files[*at].path, first, depth) == 0) {
        const tracked *f = &y->files[*at];
        const char *name = f->path + depth, *slash = strchr(name, '/');
        uint8_t part[ID];

        if (slash) {
            r = add_tree(y, at, (size_t)(slash + 1 - f->path), part);
            aq_buf_addf(&tree, "40000 %.*s", (int)(slash - name), name);
        } else {
            memcpy(part, f->id, ID);
            aq_buf_addf(&tree, "%s %s", executable(f->file) ? "100755" : "100644", name);
            ++*at;
        }
        aq_buf_addc(&tree, '\0');
        aq_buf_add(&tree, part, ID);
    }
    return r < 0 ? r : add_object(y, TREE, aq_buf_str(&tree), tree.len, id);
}

/* ---- what a row says ---- */

static size_t length_of_lines(const aq_decoy_file *f, unsigned long lines)
{
    size_t at = 0;

    while (lines-- && at < f->len) {
        const char *end = memchr(f->data + at, '\n', f->len - at);

        at = end ? (size_t)(end + 1 - f->data) : f->len;
    }
    return at;
}

static const aq_decoy_file *find_file(const history *y, const char *path, size_t len)
{
    size_t root = strlen(y->h->root);

    for (size_t i = 0; i < y->h->file_count; i++) {
        const aq_decoy_file *f = &y->h->files[i];

        if (f->data && strncmp(f->path, y->h->root, root) == 0 && f->path[root] == '/' &&
            strncmp(f->path + root + 1, path, len) == 0 && !f->path[root + 1 + len])
            return f;
    }
    return NULL;
}

/* "path" or "path:lines": where it stands in the list, which stays in order. */
static int track(history *y, const char *word, size_t len)
{
    const char *colon = memchr(word, ':', len);
    size_t name = colon ? (size_t)(colon - word) : len, at = 0;
    const aq_decoy_file *f = find_file(y, word, name);
    tracked *t;

    if (!f)
        return bad(y, "no such file", word, name);
    while (at < y->file_count &&
           strncmp(y->files[at].path, f->path + strlen(y->h->root) + 1, name + 1) < 0)
        at++;
    t = &y->files[at];
    if (at == y->file_count || t->file != f) {
        if (y->file_count == TRACKED)
            return aq_fail(y->err, -E2BIG, "the history of %s has more than %d files", y->h->root,
                           TRACKED);
        memmove(t + 1, t, (y->file_count - at) * sizeof *t);
        y->file_count++;
        *t = (tracked){.path = f->path + strlen(y->h->root) + 1, .file = f};
    }
    t->len = colon ? length_of_lines(f, strtoul(colon + 1, NULL, 10)) : f->len;
    return add_object(y, BLOB, f->data, t->len, t->id);
}

/* The part before the next " | ", or the rest; moves on. */
static const char *part(const char **at, const char *end, size_t *len)
{
    const char *from = *at, *bar = memmem(from, (size_t)(end - from), " | ", 3);

    *len = (size_t)((bar ? bar : end) - from);
    *at = bar ? bar + 3 : end;
    return from;
}

static void add_log(history *y, const char *who, size_t who_len, int64_t at, const char *subject,
                    size_t len)
{
    bool own = who_len == y->owner_len && memcmp(who, y->owner, who_len) == 0;

    aq_hex(y->before, ID, &y->log);
    aq_buf_addc(&y->log, ' ');
    aq_hex(y->head, ID, &y->log);
    aq_buf_addf(&y->log, " %.*s %lld +0000\t", (int)y->owner_len, y->owner, (long long)at);
    if (own)
        aq_buf_addf(&y->log, "commit%s: %.*s\n", y->commits ? "" : " (initial)", (int)len, subject);
    else
        aq_buf_adds(&y->log, "pull: Fast-forward\n");
}

static int add_commit(history *y, const char *who, size_t who_len, int64_t when,
                      const char *subject, size_t len)
{
    aq_auto_buf text = {0};
    uint8_t tree[ID];
    size_t at = 0;
    int r = add_tree(y, &at, 0, tree);

    if (r < 0)
        return r;
    aq_buf_adds(&text, "tree ");
    aq_hex(tree, ID, &text);
    if (y->commits) {
        aq_buf_adds(&text, "\nparent ");
        aq_hex(y->head, ID, &text);
    }
    for (int i = 0; i < 2; i++)
        aq_buf_addf(&text, "\n%s %.*s %lld +0000", i ? "committer" : "author", (int)who_len, who,
                    (long long)when);
    aq_buf_addf(&text, "\n\n%.*s\n", (int)len, subject);
    memcpy(y->before, y->head, ID);
    if ((r = add_object(y, COMMIT, aq_buf_str(&text), text.len, y->head)) < 0)
        return r;
    add_log(y, who, who_len, when, subject, len);
    y->commits++;
    return 0;
}

static int read_row(history *y, const char *row, size_t row_len)
{
    const char *at = row, *end = row + row_len, *who, *subject, *word;
    size_t len, who_len, subject_len;
    uint32_t hours = (uint32_t)strtoul(part(&at, end, &len), NULL, 10);
    int r = 0;

    who = part(&at, end, &who_len);
    subject = part(&at, end, &subject_len);
    if (at == end || hours > AQ_PACK_HOURS || y->commits == COMMITS)
        return bad(y, "no commit", row, row_len);
    if (!y->commits) {
        y->owner = who;
        y->owner_len = who_len;
    }
    for (; at < end && r == 0; at += at < end) {
        word = at;
        at = memchr(at, ' ', (size_t)(end - at));
        at = at ? at : end;
        r = track(y, word, (size_t)(at - word));
    }
    return r < 0 ? r
                 : add_commit(y, who, who_len, y->h->when(y->h->arg, hours), subject, subject_len);
}

static int read_rows(history *y)
{
    const char *at = y->h->text, *end = at + y->h->len;
    int r = 0;

    while (at < end && r == 0) {
        const char *line = memchr(at, '\n', (size_t)(end - at));

        line = line ? line : end;
        r = read_row(y, at, (size_t)(line - at));
        at = line + 1;
    }
    return r == 0 && !y->commits ? bad(y, "no commit", "", 0) : r;
}

/* ---- the files ---- */

static void add_sum(aq_buf *b, uint8_t sum[static ID])
{
    struct sha1_ctx hash;

    sha1_init(&hash);
    sha1_update(&hash, b->len, (const uint8_t *)b->data);
    sha1_digest(&hash, ID, sum);
    aq_buf_add(b, sum, ID);
}

static int by_id(const void *a, const void *b)
{
    return memcmp(((const object *)a)->id, ((const object *)b)->id, ID);
}

/* Where each object stands in the pack, version 2. */
static void make_index(history *y, const uint8_t pack[static ID], aq_buf *out)
{
    const object *o = y->objects;
    uint8_t sum[ID];
    size_t n = 0;

    qsort(y->objects, y->object_count, sizeof *y->objects, by_id);
    aq_buf_add(out, "\377tOc", 4);
    put_u32(out, 2);
    for (unsigned first = 0; first < 256; first++) {
        while (n < y->object_count && o[n].id[0] <= first)
            n++;
        put_u32(out, (uint32_t)n);
    }
    for (size_t i = 0; i < y->object_count; i++)
        aq_buf_add(out, o[i].id, ID);
    for (size_t i = 0; i < y->object_count; i++)
        put_u32(out, o[i].crc);
    for (size_t i = 0; i < y->object_count; i++)
        put_u32(out, o[i].at);
    aq_buf_add(out, pack, ID);
    add_sum(out, sum);
}

/* What is to be committed next: what the last commit has. */
static void make_stage(const history *y, aq_buf *out)
{
    uint8_t sum[ID];

    aq_buf_add(out, "DIRC", 4);
    put_u32(out, 2);
    put_u32(out, (uint32_t)y->file_count);
    for (size_t i = 0; i < y->file_count; i++) {
        const tracked *f = &y->files[i];
        size_t from = out->len, len = strlen(f->path);

        for (int k = 0; k < 2; k++) { /* its change, and when it was written */
            put_u32(out, (uint32_t)f->file->mtime);
            put_u32(out, f->file->mtime_ns);
        }
        put_u32(out, DEVICE);
        put_u32(out, 0);
        put_u32(out, executable(f->file) ? 0100755 : 0100644);
        put_u32(out, USER);
        put_u32(out, USER);
        put_u32(out, (uint32_t)f->len);
        aq_buf_add(out, f->id, ID);
        aq_buf_addc(out, (char)(len >> 8 & 15));
        aq_buf_addc(out, (char)len);
        aq_buf_add(out, f->path, len);
        do
            aq_buf_addc(out, '\0');
        while ((out->len - from) % 8);
    }
    add_sum(out, sum);
}

static int give_pack(history *y, aq_buf *other)
{
    aq_auto_buf name = {0};
    uint8_t count[4] = {0, 0, (uint8_t)(y->object_count >> 8), (uint8_t)y->object_count};
    uint8_t sum[ID];
    int r;

    memcpy(y->pack.data + 8, count, sizeof count);
    add_sum(&y->pack, sum);
    aq_buf_adds(&name, "objects/pack/pack-");
    aq_hex(sum, ID, &name);
    make_index(y, sum, other);
    aq_buf_adds(&name, ".pack");
    r = y->h->add(y->h->arg, aq_buf_str(&name), 0444, &y->pack);
    name.len -= strlen(".pack");
    aq_buf_adds(&name, ".idx");
    return r < 0 ? r : y->h->add(y->h->arg, aq_buf_str(&name), 0444, other);
}

static int give_all(history *y)
{
    aq_auto_buf text = {0};
    const char *subject = strrchr(aq_buf_str(&y->log), '\t');
    int r = give_pack(y, &text);

    aq_buf_clear(&text);
    make_stage(y, &text);
    if (r == 0)
        r = y->h->add(y->h->arg, "index", 0644, &text);
    aq_buf_clear(&text);
    aq_hex(y->head, ID, &text);
    aq_buf_addc(&text, '\n');
    if (r == 0)
        r = y->h->add(y->h->arg, "refs/heads/main", 0644, &text);
    aq_buf_clear(&text);
    aq_buf_adds(&text, "# pack-refs with: peeled fully-peeled sorted \n");
    aq_hex(y->before, ID, &text); /* one commit was not pushed yet */
    aq_buf_adds(&text, " refs/remotes/origin/main\n");
    if (r == 0 && y->commits > 1)
        r = y->h->add(y->h->arg, "packed-refs", 0644, &text);
    aq_buf_clear(&text);
    aq_buf_adds(&text, strchr(subject, ' ') + 1);
    if (r == 0)
        r = y->h->add(y->h->arg, "COMMIT_EDITMSG", 0644, &text);
    if (r == 0)
        r = y->h->add(y->h->arg, "logs/refs/heads/main", 0644, &y->log);
    return r < 0 ? r : y->h->add(y->h->arg, "logs/HEAD", 0644, &y->log);
}

int aq_history_make(const aq_history *h, aq_err *err)
{
    history y = {.h = h,
                 .objects = aq_alloc(OBJECTS * sizeof *y.objects),
                 .files = aq_alloc((TRACKED + 1) * sizeof *y.files),
                 .err = err};
    int r;

    aq_buf_add(&y.pack, "PACK\0\0\0\2\0\0\0", 12);
    r = read_rows(&y);
    if (r == 0)
        r = give_all(&y);
    free(y.objects);
    free(y.files);
    aq_buf_free(&y.pack);
    aq_buf_free(&y.log);
    return r;
}
