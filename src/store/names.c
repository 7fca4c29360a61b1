/* Known names, and which of them look like a given one.
 *
 * Names are compared in their plain form: the skeleton without separators. To find all plain forms
 * within an edit distance without reading them all, each name is entered under keys that survive an
 * edit (hashes; what they find is then measured, so a collision costs time and nothing else).
 *
 * D1(w) is w and every word made by deleting one letter of w. Two words within distance 1 (one
 * letter replaced, added, missing, or two neighbours swapped) share a word of D1.
 *
 * A name is cut in thirds, x = T1 T2 T3, and entered under the hashes of
 *
 *   every word of D1(T1 T2),
 *   every word of D1(T2 T3), and
 *   T1 and T3 together, each without its letter next to T2.
 *
 * At most two edits: if at most one touches T1 T2, a key of the first kind is shared; if at most
 * one touches T2 T3, one of the second. Otherwise both edits touch T2 (or swap two letters across
 * one of its borders), so what the third kind holds is untouched. One edit alone always leaves a
 * key of the first kind. The question does not know the other name's length, n - 2 to n + 2, so it
 * asks for a few lengths of each part.
 *
 * Two thirds of a name say far more than half of it: families of names with one long prefix stay
 * apart. A name of n letters has about 4n/3 keys. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/internal.h"

enum {
    LARGE = 20000,        /* names that come at once */
    BATCH_KEYS = 1 << 21, /* keys that are sorted together before they are entered */
};

typedef struct entry {
    uint32_t key;
    uint32_t letters;
    int64_t known;
} entry;

typedef struct entries {
    entry *items;
    size_t count, cap;
    uint32_t letters; /* of the name that is being entered */
} entries;

static void free_entries(entries *e)
{
    free(e->items);
}

#define auto_entries __attribute__((cleanup(free_entries))) entries

static void add_entry(entries *e, uint32_t key, int64_t known)
{
    if (e->count == e->cap) {
        e->cap = e->cap ? 2 * e->cap : 256;
        e->items = aq_realloc(e->items, e->cap, sizeof *e->items);
    }
    e->items[e->count++] = (entry){key, e->letters, known};
}

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->known > y->known) - (x->known < y->known);
}

static void sort_unique(entries *e)
{
    size_t kept = 0;

    if (e->count == 0)
        return;
    qsort(e->items, e->count, sizeof *e->items, by_key);
    for (size_t i = 1; i < e->count; i++)
        if (by_key(&e->items[i], &e->items[kept]) != 0)
            e->items[++kept] = e->items[i];
    e->count = kept + 1;
}

/* ---- forms and keys ---- */

static bool separator(char c)
{
    return c == '-' || c == '_' || c == '.' || c == '/' || c == ' ';
}

int aq_name_plain(aq_buf *out, const char *name)
{
    aq_auto_buf bones = {0};
    int r = aq_text_skeleton(&bones, name, strlen(name));

    if (r < 0)
        return r;
    for (size_t i = 0; i < bones.len; i++)
        if (!separator(bones.data[i]))
            aq_buf_addc(out, bones.data[i]);
    aq_buf_str(out);
    return 0;
}

/* FNV-1a; mix at the end makes all bits count. */
static uint64_t add_bytes(uint64_t h, const char *part, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)part[i]) * 0x100000001b3u;
    return h;
}

static uint64_t start(char kind)
{
    return (0xcbf29ce484222325u ^ (uint8_t)kind) * 0x100000001b3u;
}

static uint32_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    return (uint32_t)h;
}

/* Which letters a name has: one bit each, a few shared by all other bytes. An edit flips two bits
 * at most, so most of what shares a key by chance is put aside without being read. */
static uint32_t letters_of(const char *plain)
{
    uint32_t letters = 0;

    for (const char *p = plain; *p; p++)
        letters |= 1u << (*p >= 'a' && *p <= 'z' ? *p - 'a' : 26 + (uint8_t)*p % 6);
    return letters;
}

static bool letters_differ(uint32_t a, uint32_t b, size_t distance)
{
    return (size_t)__builtin_popcount(a ^ b) > 2 * distance;
}

/* The keys of D1(part). */
static void part_keys(entries *e, char kind, const char *part, size_t len, int64_t known)
{
    add_entry(e, mix(add_bytes(start(kind), part, len)), known);
    for (size_t skip = 0; skip < len; skip++) {
        uint64_t h = add_bytes(start(kind), part, skip);
        add_entry(e, mix(add_bytes(h, part + skip + 1, len - skip - 1)), known);
    }
}

/* The key of the first `head` and the last `tail` letters. */
static void ends_key(entries *e, const char *plain, size_t n, size_t head, size_t tail,
                     int64_t known)
{
    uint64_t h = add_bytes(start('e'), plain, head);

    add_entry(e, mix(add_bytes((h ^ 0xff) * 0x100000001b3u, plain + n - tail, tail)), known);
}

/* How a name of n letters is cut. */
typedef struct cut {
    size_t front, back; /* letters of T1 T2, of T2 T3 */
    size_t head, tail;  /* of T1 and T3 without the letter next to T2 */
} cut;

static cut cut_of(size_t n)
{
    size_t first = n / 3, second = 2 * n / 3;

    return (cut){
        .front = second,
        .back = n - first,
        .head = first > 0 ? first - 1 : 0,
        .tail = n - second > 0 ? n - second - 1 : 0,
    };
}

static void name_keys(entries *e, const char *plain, int64_t known)
{
    size_t n = strlen(plain);
    cut c = cut_of(n);

    e->letters = letters_of(plain);
    part_keys(e, 'f', plain, c.front, known);
    part_keys(e, 'b', plain + n - c.back, c.back, known);
    ends_key(e, plain, n, c.head, c.tail, known);
}

/* Around the lengths that the other name's part can have, ours differs by one edit at most. */
static void question_keys(entries *e, const char *plain, size_t distance)
{
    size_t n = strlen(plain), least = n > distance ? n - distance : 0;
    cut low = cut_of(least), high = cut_of(n + distance);

    for (size_t len = low.front ? low.front - 1 : 0; len <= high.front + 1 && len <= n; len++)
        part_keys(e, 'f', plain, len, 0);
    if (distance < 2)
        return;
    for (size_t len = low.back ? low.back - 1 : 0; len <= high.back + 1 && len <= n; len++)
        part_keys(e, 'b', plain + n - len, len, 0);
    for (size_t other = least; other <= n + distance; other++) {
        cut c = cut_of(other);
        if (c.head + c.tail <= n)
            ends_key(e, plain, n, c.head, c.tail, 0);
    }
}

/* ---- entering names ---- */

static uint8_t bucket_of(const char *namespace_, const char *name)
{
    aq_auto_buf b = {0};

    aq_buf_add(&b, namespace_, strlen(namespace_) + 1);
    aq_buf_adds(&b, name);
    return aq_sha256(b.data, b.len).b[0];
}

static int mark_dirty(aq_store *s, uint8_t bucket, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_BUCKET_DIRTY, &q, err);

    if (r < 0)
        return r;
    sqlite3_bind_int(q, 1, bucket);
    return aq_store_run(s, q, "entering a name", err);
}

/* In the order of the index: neighbours land on one page. */
static int write_keys(aq_store *s, entries *e, aq_err *err)
{
    sqlite3_stmt *q;
    int r;

    sort_unique(e);
    for (size_t i = 0; i < e->count; i++) {
        if ((r = aq_store_statement(s, AQ_SQL_ALIKE_ADD, &q, err)) < 0)
            return r;
        sqlite3_bind_int64(q, 1, e->items[i].key);
        sqlite3_bind_int64(q, 2, e->items[i].known);
        sqlite3_bind_int64(q, 3, e->items[i].letters);
        if ((r = aq_store_run(s, q, "entering a name", err)) < 0)
            return r;
    }
    e->count = 0;
    return 0;
}

static int check_name(const aq_known *k, aq_err *err)
{
    const char *const parts[] = {k->namespace_ ? k->namespace_ : "", k->name, k->publisher};
    static const char *const what[] = {"namespace", "name", "publisher"};

    for (size_t i = 0; i < 3; i++) {
        if (!parts[i] || (i > 0 && !*parts[i]))
            return aq_fail(err, -EINVAL, "a known name needs a %s", what[i]);
        if (strlen(parts[i]) > AQ_NAME_MAX)
            return aq_fail(err, -EINVAL, "%s %.40s… is longer than %d bytes", what[i], parts[i],
                           AQ_NAME_MAX);
        if (!aq_utf8_valid(parts[i], strlen(parts[i])))
            return aq_fail(err, -EILSEQ, "a %s is not UTF-8", what[i]);
    }
    return 0;
}

static int insert_name(aq_store *s, const aq_known *k, entries *keys, aq_err *err)
{
    aq_auto_buf bones = {0}, plain = {0};
    const char *space = k->namespace_ ? k->namespace_ : "";
    uint8_t bucket = bucket_of(space, k->name);
    sqlite3_stmt *q;
    int r;

    if (aq_text_skeleton(&bones, k->name, strlen(k->name)) < 0 ||
        aq_name_plain(&plain, k->name) < 0)
        return aq_fail(err, -EILSEQ, "name %.80s is not UTF-8", k->name);
    if ((r = aq_store_statement(s, AQ_SQL_KNOWN_ADD, &q, err)) < 0)
        return r;
    aq_bind_text(q, 1, space);
    aq_bind_text(q, 2, k->name);
    aq_bind_text(q, 3, k->publisher);
    sqlite3_bind_int(q, 4, k->confirmed);
    aq_bind_text(q, 5, aq_buf_str(&bones));
    aq_bind_text(q, 6, aq_buf_str(&plain));
    sqlite3_bind_int(q, 7, bucket);
    if ((r = aq_store_run(s, q, "entering a name", err)) < 0)
        return r;
    name_keys(keys, aq_buf_str(&plain), sqlite3_last_insert_rowid(s->db));
    if (keys->count > BATCH_KEYS && (r = write_keys(s, keys, err)) < 0)
        return r;
    return mark_dirty(s, bucket, err);
}

/* 1 with the row in `q`, 0 when the name is not known. */
static int find_known(aq_store *s, const aq_known *k, sqlite3_stmt **q, aq_err *err)
{
    int r = aq_store_statement(s, AQ_SQL_KNOWN_FIND, q, err);

    if (r < 0)
        return r;
    aq_bind_text(*q, 1, k->namespace_ ? k->namespace_ : "");
    aq_bind_text(*q, 2, k->name);
    aq_bind_text(*q, 3, k->publisher);
    return aq_store_row(s, *q, "looking for a name", err);
}

static int enter_name(aq_store *s, const aq_known *k, entries *keys, aq_err *err)
{
    const char *space = k->namespace_ ? k->namespace_ : "";
    sqlite3_stmt *q;
    bool confirmed;
    int64_t id;
    int r;

    if ((r = check_name(k, err)) < 0 || (r = find_known(s, k, &q, err)) < 0)
        return r;
    if (r == 0)
        return insert_name(s, k, keys, err);
    id = sqlite3_column_int64(q, 0);
    confirmed = sqlite3_column_int(q, 1);
    sqlite3_reset(q);
    if (confirmed || !k->confirmed)
        return 0;
    if ((r = aq_store_statement(s, AQ_SQL_KNOWN_CONFIRM, &q, err)) < 0)
        return r;
    sqlite3_bind_int64(q, 1, id);
    if ((r = aq_store_run(s, q, "confirming a name", err)) < 0)
        return r;
    return mark_dirty(s, bucket_of(space, k->name), err);
}

static int enter_names(aq_store *s, const aq_known *known, size_t count, aq_err *err)
{
    auto_entries keys = {0};

    for (size_t i = 0; i < count; i++) {
        int r = enter_name(s, &known[i], &keys, err);
        if (r < 0)
            return r;
    }
    return write_keys(s, &keys, err);
}

/* A large list touches its indexes in no order: they should fit into memory meanwhile. */
static int set_cache(aq_store *s, bool large, aq_err *err)
{
    return aq_store_exec(s, large ? "PRAGMA cache_size=-524288" : "PRAGMA cache_size=-16384",
                         "sizing the cache", err);
}

int aq_store_know_many(aq_store *s, const aq_known *known, size_t count, aq_err *err)
{
    bool large = count > LARGE;
    aq_err ignored;
    int r;

    if (large && (r = set_cache(s, true, err)) < 0)
        return r;
    if ((r = aq_store_lock(s, err)) == 0)
        r = aq_store_unlock(s, enter_names(s, known, count, err), err);
    if (large)
        set_cache(s, false, &ignored);
    return r;
}

int aq_store_know(aq_store *s, const aq_known *known, aq_err *err)
{
    return aq_store_know_many(s, known, 1, err);
}

/* The keys of one name, taken out again. */
static int drop_keys(aq_store *s, const aq_known *k, int64_t id, aq_err *err)
{
    auto_entries keys = {0};
    aq_auto_buf plain = {0};
    sqlite3_stmt *q;
    int r = aq_name_plain(&plain, k->name);

    if (r < 0)
        return aq_fail(err, r, "the name is not UTF-8");
    name_keys(&keys, aq_buf_str(&plain), id);
    for (size_t i = 0; i < keys.count; i++) {
        if ((r = aq_store_statement(s, AQ_SQL_ALIKE_DROP, &q, err)) < 0)
            return r;
        sqlite3_bind_int64(q, 1, keys.items[i].key);
        sqlite3_bind_int64(q, 2, id);
        if ((r = aq_store_run(s, q, "removing a name", err)) < 0)
            return r;
    }
    return 0;
}

static int drop_name(aq_store *s, const aq_known *k, aq_err *err)
{
    const char *space = k->namespace_ ? k->namespace_ : "";
    sqlite3_stmt *q;
    int64_t id;
    int r = find_known(s, k, &q, err);

    if (r < 0)
        return r;
    if (r == 0)
        return aq_fail(err, -ENOENT, "%.200s/%.200s of publisher %.200s is not known", space,
                       k->name, k->publisher);
    id = sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    if ((r = drop_keys(s, k, id, err)) < 0 ||
        (r = aq_store_statement(s, AQ_SQL_KNOWN_DROP, &q, err)) < 0)
        return r;
    sqlite3_bind_int64(q, 1, id);
    if ((r = aq_store_run(s, q, "removing a name", err)) < 0)
        return r;
    return mark_dirty(s, bucket_of(space, k->name), err);
}

int aq_store_forget(aq_store *s, const aq_known *known, aq_err *err)
{
    int r = aq_store_lock(s, err);

    return r < 0 ? r : aq_store_unlock(s, drop_name(s, known, err), err);
}

static int index_one(aq_store *s, int64_t id, uint8_t bucket, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_INDEX_BUCKET, &q, err);

    if (r < 0)
        return r;
    sqlite3_bind_int64(q, 1, id);
    sqlite3_bind_int(q, 2, bucket);
    if ((r = aq_store_run(s, q, "indexing a name", err)) < 0)
        return r;
    return mark_dirty(s, bucket, err);
}

int aq_names_index_all(aq_store *s, aq_err *err)
{
    auto_entries keys = {0};
    entries page = {0};
    int64_t last = -1;
    sqlite3_stmt *q;
    int r;

    do {
        page.count = 0;
        if ((r = aq_store_statement(s, AQ_SQL_INDEX_OLD, &q, err)) < 0)
            break;
        sqlite3_bind_int64(q, 1, last);
        while ((r = aq_store_row(s, q, "reading names", err)) > 0) {
            last = sqlite3_column_int64(q, 0);
            name_keys(&keys, aq_column(q, 3), last);
            add_entry(&page, bucket_of(aq_column(q, 1), aq_column(q, 2)), last);
        }
        for (size_t i = 0; r == 0 && i < page.count; i++)
            r = index_one(s, page.items[i].known, (uint8_t)page.items[i].key, err);
        if (r == 0 && keys.count > BATCH_KEYS)
            r = write_keys(s, &keys, err);
    } while (r == 0 && page.count > 0);
    free_entries(&page);
    return r < 0 ? r : write_keys(s, &keys, err);
}

/* ---- asking ---- */

/* Ids of all names that might be near; the same letters are always among them. */
static int candidates(aq_store *s, const char *plain, size_t distance, entries *ids, aq_err *err)
{
    auto_entries keys = {0};
    uint32_t letters = letters_of(plain);
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_KNOWN_PLAIN, &q, err);

    if (r < 0)
        return r;
    aq_bind_text(q, 1, plain);
    while ((r = aq_store_row(s, q, "looking for names", err)) > 0)
        add_entry(ids, 0, sqlite3_column_int64(q, 0));
    if (r < 0)
        return r;
    if (distance > 0)
        question_keys(&keys, plain, distance);
    sort_unique(&keys);
    for (size_t i = 0; i < keys.count; i++) {
        if ((r = aq_store_statement(s, AQ_SQL_ALIKE_GET, &q, err)) < 0)
            return r;
        sqlite3_bind_int64(q, 1, keys.items[i].key);
        while ((r = aq_store_row(s, q, "looking for names", err)) > 0)
            if (!letters_differ(letters, (uint32_t)sqlite3_column_int64(q, 1), distance))
                add_entry(ids, 0, sqlite3_column_int64(q, 0));
        if (r < 0)
            return r;
    }
    sort_unique(ids);
    return 0;
}

static void read_known(aq_arena *a, sqlite3_stmt *q, aq_known *ret)
{
    *ret = (aq_known){
        .namespace_ = aq_arena_strdup(a, aq_column(q, 0)),
        .name = aq_arena_strdup(a, aq_column(q, 1)),
        .publisher = aq_arena_strdup(a, aq_column(q, 2)),
        .confirmed = sqlite3_column_int(q, 3),
    };
}

static int by_name(const void *a, const void *b)
{
    const aq_known *x = a, *y = b;
    int r = strcmp(x->namespace_, y->namespace_);

    if (r == 0)
        r = strcmp(x->name, y->name);
    return r ? r : strcmp(x->publisher, y->publisher);
}

static int find_alike(aq_store *s, aq_arena *a, const char *plain, size_t distance, aq_known **ret,
                      size_t *count, aq_err *err)
{
    auto_entries ids = {0};
    aq_known *found;
    size_t n = 0;
    sqlite3_stmt *q;
    int r = candidates(s, plain, distance, &ids, err);

    if (r < 0)
        return r;
    found = aq_arena_alloc(a, (ids.count + 1) * sizeof *found);
    for (size_t i = 0; i < ids.count; i++) {
        if ((r = aq_store_statement(s, AQ_SQL_KNOWN_GET, &q, err)) < 0)
            return r;
        sqlite3_bind_int64(q, 1, ids.items[i].known);
        if ((r = aq_store_row(s, q, "reading a name", err)) < 0)
            return r;
        if (r > 0 && aq_text_distance(plain, aq_column(q, 4), distance) <= distance)
            read_known(a, q, &found[n++]);
        sqlite3_reset(q);
    }
    qsort(found, n, sizeof *found, by_name);
    *ret = found;
    *count = n;
    return 0;
}

int aq_store_alike_plain(aq_store *s, aq_arena *a, const char *plain, size_t distance,
                         aq_known **ret, size_t *count, aq_err *err)
{
    int r;

    if (distance > AQ_STORE_DISTANCE)
        return aq_fail(err, -EINVAL, "names are compared up to distance %d", AQ_STORE_DISTANCE);
    if ((r = aq_store_look(s, err)) < 0)
        return r;
    r = find_alike(s, a, plain, distance, ret, count, err);
    return aq_store_unlock(s, r, err);
}

int aq_store_alike(aq_store *s, aq_arena *a, const char *name, size_t distance, aq_known **ret,
                   size_t *count, aq_err *err)
{
    aq_auto_buf plain = {0};

    if (distance > AQ_STORE_DISTANCE || strlen(name) > AQ_NAME_MAX)
        return aq_fail(err, -EINVAL, "names are compared up to %d bytes and distance %d",
                       AQ_NAME_MAX, AQ_STORE_DISTANCE);
    if (aq_name_plain(&plain, name) < 0)
        return aq_fail(err, -EILSEQ, "the name is not UTF-8");
    return aq_store_alike_plain(s, a, aq_buf_str(&plain), distance, ret, count, err);
}

int aq_store_known_count(aq_store *s, uint64_t *ret, aq_err *err)
{
    sqlite3_stmt *q;
    int r = aq_store_statement(s, AQ_SQL_KNOWN_COUNT, &q, err);

    if (r < 0 || (r = aq_store_row(s, q, "counting names", err)) < 0)
        return r;
    *ret = (uint64_t)sqlite3_column_int64(q, 0);
    sqlite3_reset(q);
    return 0;
}

int aq_store_known_list(aq_store *s, aq_arena *a, const aq_known *after, size_t max, aq_known **ret,
                        size_t *count, aq_err *err)
{
    aq_known *found = aq_arena_alloc(a, (max + 1) * sizeof *found);
    sqlite3_stmt *q;
    size_t n = 0;
    int r = aq_store_statement(s, AQ_SQL_KNOWN_ALL, &q, err);

    if (r < 0)
        return r;
    aq_bind_text(q, 1, after ? after->namespace_ : "");
    aq_bind_text(q, 2, after ? after->name : "");
    aq_bind_text(q, 3, after ? after->publisher : "");
    sqlite3_bind_int64(q, 4, (sqlite3_int64)max);
    while ((r = aq_store_row(s, q, "listing names", err)) > 0)
        read_known(a, q, &found[n++]);
    if (r < 0)
        return r;
    *ret = found;
    *count = n;
    return 0;
}
