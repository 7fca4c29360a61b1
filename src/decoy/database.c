/* Databases as browsers keep them: a text of tables and rows becomes a file of SQLite, written by
 * ourselves since whatever makes a world must be small. Only what is needed: trees of at most two
 * levels, rows that fit into a page, indexes of one page. Every byte is decided by the text, the
 * moment when the world's clock starts, and a stream.
 *
 * docs/formats/decoys.md has the grammar of the text. */
#include "decoy/database.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/pack.h"

enum {
    PAGE = 4096,
    HEAD = 100, /* of the file, on its first page */
    LEAF = 8,   /* head of a page */
    BRANCH = 12,
    FIELDS = 96,
    OBJECTS = 64,
    ROWS = 512,
    ROW_MOST = PAGE - 35, /* a longer one would go on elsewhere */
    KEY_MOST = (PAGE - 12) * 64 / 255 - 23,
    GUID = 12
};

typedef enum field_kind {
    NOTHING,
    NUMBER,
    TEXT,
    BYTES,
    OWN /* the number of the row */
} field_kind;

typedef struct field {
    field_kind kind;
    int64_t number;
    const char *bytes;
    size_t len;
    size_t from; /* where the text has it, from 1; 0: it is made */
    bool hex;    /* there it is spelled in hex */
} field;

typedef struct row {
    int64_t number;
    field *field;
    size_t count;
} row;

typedef enum object_kind { TABLE, KEYED, INDEX } object_kind;

typedef struct object {
    object_kind kind;
    const char *name, *sql; /* without a text: one that a table brings */
    size_t of;              /* the table */
    row **rows;
    size_t count;
    uint32_t root;
} object;

/* One entry of a page. */
typedef struct cell {
    aq_buf bytes;
    int64_t number;
    aq_copied *copied;
    size_t copied_count;
} cell;

typedef struct writer {
    aq_arena *arena;
    const char *text, *line;
    int64_t start;
    aq_stream *chance;
    object object[OBJECTS];
    size_t count, table;
    uint32_t version;
    aq_buf *out, *copied;
    aq_err *err;
} writer;

/* ---- the text ---- */

static int wrong(const writer *w, const char *what)
{
    return aq_fail(w->err, -EINVAL, "a database: %s: %.60s", what, w->line);
}

/* So many hours before the start and some of the next one, in millionths of a second. */
static int64_t moment(const writer *w, const char *hours)
{
    enum { HOUR = 3600, SPREAD = 2749, SECOND = 1000000, MORE = 486187 };
    int64_t h = strtoll(hours, NULL, 10);

    h = h > AQ_PACK_HOURS ? AQ_PACK_HOURS : h < -AQ_PACK_HOURS ? -AQ_PACK_HOURS : h;
    return (w->start - 1 - h * HOUR - h * SPREAD % HOUR) * SECOND - llabs(h) * MORE % SECOND;
}

/* Of an address, as Firefox has it: sixteen bits of the scheme and 32 of all. */
static uint32_t mixed(const char *s, size_t len)
{
    uint32_t h = 0;

    for (size_t i = 0; i < len; i++)
        h = 0x9e3779b9U * ((h << 5 | h >> 27) ^ (uint8_t)s[i]);
    return h;
}

static int64_t address_hash(const char *s, size_t len)
{
    const char *colon = memchr(s, ':', len);
    uint64_t scheme = colon ? mixed(s, (size_t)(colon - s)) & 0xffff : 0;

    return (int64_t)((scheme << 32) + mixed(s, len));
}

static void reversed(const writer *w, const char *s, size_t len, field *f)
{
    char *out = aq_arena_alloc(w->arena, len + 2);

    for (size_t i = 0; i < len; i++)
        out[i] = s[len - 1 - i];
    out[len] = '.';
    *f = (field){.kind = TEXT, .bytes = out, .len = len + 1};
}

static void drawn_uuid(const writer *w, field *f)
{
    static const char shape[] = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
    char *out = aq_arena_strdup(w->arena, shape);

    for (char *c = out; *c; c++)
        if (*c == 'x' || *c == 'y')
            *c = "0123456789abcdef"[*c == 'x' ? aq_stream_below(w->chance, 16)
                                              : 8 + aq_stream_below(w->chance, 4)];
    *f = (field){.kind = TEXT, .bytes = out, .len = sizeof shape - 1};
}

static void drawn_guid(const writer *w, field *f)
{
    static const char symbols[] =
        "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    char *out = aq_arena_alloc(w->arena, GUID + 1);

    for (int i = 0; i < GUID; i++)
        out[i] = symbols[aq_stream_below(w->chance, 64)];
    *f = (field){.kind = TEXT, .bytes = out, .len = GUID};
}

static int take_hex(const writer *w, const char *s, size_t len, field *f)
{
    aq_auto_buf raw = {0};

    if (aq_unhex(s, len, &raw) < 0)
        return wrong(w, "no hex");
    *f = (field){.kind = BYTES,
                 .bytes = aq_arena_strndup(w->arena, aq_buf_str(&raw), raw.len),
                 .len = raw.len,
                 .from = (size_t)(s - w->text) + 1,
                 .hex = true};
    return 0;
}

/* A time is so many hours before the world's clock starts. */
static bool take_time(const writer *w, const char *s, field *f)
{
    static const struct {
        const char *word;
        int64_t part, since; /* millionths of a second; seconds from then to 1970 */
    } kinds[] = {{"unix:", 1000000, 0},
                 {"ms:", 1000, 0},
                 {"us:", 1, 0},
                 {"webkit:", 1, INT64_C(11644473600)}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(s, kinds[i].word, strlen(kinds[i].word)) == 0) {
            int64_t at = moment(w, s + strlen(kinds[i].word)) + kinds[i].since * 1000000;

            *f = (field){.kind = NUMBER, .number = at / kinds[i].part};
            return true;
        }
    return false;
}

static int take_field(const writer *w, const char *s, size_t len, field *f)
{
    *f = (field){0};
    if (len == 1 && *s == '-')
        return 0;
    if (len && *s == '=') {
        *f = (field){
            .kind = TEXT, .bytes = s + 1, .len = len - 1, .from = (size_t)(s + 1 - w->text) + 1};
    } else if (len == 2 && memcmp(s, "id", 2) == 0) {
        f->kind = OWN;
    } else if (len == 4 && memcmp(s, "guid", 4) == 0) {
        drawn_guid(w, f);
    } else if (len == 4 && memcmp(s, "uuid", 4) == 0) {
        drawn_uuid(w, f);
    } else if (len > 4 && memcmp(s, "hex:", 4) == 0) {
        return take_hex(w, s + 4, len - 4, f);
    } else if (len > 5 && memcmp(s, "hash:", 5) == 0) {
        *f = (field){.kind = NUMBER, .number = address_hash(s + 5, len - 5)};
    } else if (len > 5 && memcmp(s, "host:", 5) == 0) {
        reversed(w, s + 5, len - 5, f);
    } else if (len && (isdigit((unsigned char)*s) || (len > 1 && *s == '-'))) {
        *f = (field){.kind = NUMBER, .number = strtoll(s, NULL, 10)};
    } else if (!take_time(w, s, f)) {
        return wrong(w, "no field");
    }
    return 0;
}

static row *new_row(const writer *w, size_t fields)
{
    row *r = aq_arena_alloc(w->arena, sizeof *r);

    r->field = aq_arena_alloc(w->arena, fields * sizeof *r->field);
    return r;
}

static size_t count_fields(const char *s, const char *end)
{
    size_t n = 1;

    for (; (s = memmem(s, (size_t)(end - s), " | ", 3)); s += 3)
        n++;
    return n;
}

static int take_row(writer *w, const char *s, const char *end)
{
    object *o = &w->object[w->table];
    size_t fields = count_fields(s, end);
    row *r;

    if (w->count == 0 || o->count == ROWS || fields > FIELDS)
        return wrong(w, "no table for it, or too many rows or fields");
    r = new_row(w, fields);
    while (s <= end) {
        const char *bar = memmem(s, (size_t)(end - s), " | ", 3);
        size_t len = (size_t)((bar ? bar : end) - s);
        int e = take_field(w, s, len, &r->field[r->count++]);

        if (e < 0)
            return e;
        s = bar ? bar + 3 : end + 1;
    }
    if (!o->rows)
        o->rows = aq_arena_alloc(w->arena, ROWS * sizeof *o->rows);
    r->number = (int64_t)o->count + 1;
    o->rows[o->count++] = r;
    return 0;
}

/* ---- indexes ---- */

static int order(const field *x, const field *y)
{
    size_t n = x->len < y->len ? x->len : y->len;
    int c;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind == NUMBER)
        return (x->number > y->number) - (x->number < y->number);
    c = n ? memcmp(x->bytes, y->bytes, n) : 0;
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

static int by_fields(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;

    for (size_t i = 0; i < x->count && i < y->count; i++) {
        int c = order(&x->field[i], &y->field[i]);

        if (c)
            return c;
    }
    return 0;
}

/* The columns by their numbers, and last the number of the row. */
static int make_index(writer *w, object *o, const char *columns)
{
    const object *t = &w->object[o->of];
    size_t column[FIELDS], count = 0;
    char *end;

    for (unsigned long n; (n = strtoul(columns, &end, 10)) && count + 1 < FIELDS; columns = end)
        column[count++] = n - 1;
    o->rows = aq_arena_alloc(w->arena, (t->count + 1) * sizeof *o->rows);
    for (; o->count < t->count; o->count++) {
        const row *from = t->rows[o->count];
        row *to = o->rows[o->count] = new_row(w, count + 1);

        for (size_t i = 0; i < count; i++) {
            if (column[i] >= from->count)
                return wrong(w, "no such column");
            to->field[to->count] = from->field[column[i]];
            if (to->field[to->count].kind == OWN)
                to->field[to->count] = (field){.kind = NUMBER, .number = from->number};
            to->count++;
        }
        to->field[to->count++] = (field){.kind = NUMBER, .number = from->number};
    }
    if (o->count)
        qsort(o->rows, o->count, sizeof *o->rows, by_fields);
    return 0;
}

/* `table NAME SQL`, `keyed NAME SQL`, `index NAME 1 2 SQL`, `auto 1 2`. */
static int take_object(writer *w, object_kind kind, const char *s, const char *end)
{
    object *o = &w->object[w->count];
    const char *sql = memmem(s, (size_t)(end - s), "CREATE ", 7);
    size_t name = strcspn(s, " \n"), autos = 1;

    if (w->count == OBJECTS || (kind != INDEX && !sql) || (kind == INDEX && w->count == 0))
        return wrong(w, "no such object, or too many");
    *o = (object){.kind = kind, .of = kind == INDEX ? w->table : w->count};
    o->sql = sql ? aq_arena_strndup(w->arena, sql, (size_t)(end - sql)) : NULL;
    if (sql) {
        o->name = aq_arena_strndup(w->arena, s, name);
    } else {
        for (size_t i = w->table; i < w->count; i++)
            autos += w->object[i].kind == INDEX && !w->object[i].sql;
        o->name =
            aq_arena_printf(w->arena, "sqlite_autoindex_%s_%zu", w->object[o->of].name, autos);
    }
    if (kind != INDEX)
        w->table = w->count;
    w->count++;
    return kind == INDEX ? make_index(w, o, sql ? s + name : s) : 0;
}

static int take_line(writer *w, const char *s, const char *end)
{
    static const struct {
        const char *word;
        object_kind kind;
    } objects[] = {{"table ", TABLE}, {"keyed ", KEYED}, {"index ", INDEX}, {"auto ", INDEX}};

    w->line = s;
    if (strncmp(s, "row ", 4) == 0)
        return take_row(w, s + 4, end);
    if (strncmp(s, "version ", 8) == 0) {
        w->version = (uint32_t)strtoul(s + 8, NULL, 10);
        return 0;
    }
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (strncmp(s, objects[i].word, strlen(objects[i].word)) == 0)
            return take_object(w, objects[i].kind, s + strlen(objects[i].word), end);
    return wrong(w, "no line of one");
}

/* ---- cells ---- */

static void put_be(char *to, uint64_t n, unsigned bytes)
{
    for (unsigned i = bytes; i-- > 0; n >>= 8)
        to[i] = (char)(n & 255);
}

static void add_varint(aq_buf *b, uint64_t n)
{
    char all[10];
    size_t at = sizeof all - 1;

    all[at] = (char)(n & 127);
    while (n >>= 7)
        all[--at] = (char)((n & 127) | 128);
    aq_buf_add(b, all + at, sizeof all - at);
}

/* How many bytes a number takes, and the name of its type. */
static unsigned number_type(int64_t n, unsigned *bytes)
{
    static const unsigned widths[] = {1, 2, 3, 4, 6, 8};
    unsigned type = 0;

    *bytes = 0;
    if (n == 0 || n == 1)
        return 8 + (unsigned)n;
    while (widths[type] < 8 && (n < -(INT64_C(1) << (8 * widths[type] - 1)) ||
                                n >= INT64_C(1) << (8 * widths[type] - 1)))
        type++;
    *bytes = widths[type];
    return type + 1;
}

static void add_record(const writer *w, const row *r, cell *c)
{
    aq_auto_buf types = {0}, body = {0};

    c->copied = aq_arena_alloc(w->arena, r->count * sizeof *c->copied);
    for (size_t i = 0; i < r->count; i++) {
        const field *f = &r->field[i];
        unsigned bytes = 0;
        char number[8];

        if (f->kind == NUMBER) {
            add_varint(&types, number_type(f->number, &bytes));
            put_be(number, (uint64_t)f->number, bytes);
            aq_buf_add(&body, number, bytes);
        } else if (f->kind == TEXT || f->kind == BYTES) {
            add_varint(&types, 2 * f->len + (f->kind == TEXT ? 13 : 12));
            if (f->from)
                c->copied[c->copied_count++] = (aq_copied){.from = (uint32_t)f->from - 1,
                                                           .len = (uint32_t)f->len,
                                                           .to = (uint32_t)body.len,
                                                           .hex = f->hex};
            aq_buf_add(&body, f->bytes, f->len);
        } else {
            aq_buf_addc(&types, 0);
        }
    }
    add_varint(&c->bytes, types.len + (types.len < 127 ? 1 : 2));
    aq_buf_add(&c->bytes, types.data, types.len);
    for (size_t i = 0; i < c->copied_count; i++)
        c->copied[i].to += (uint32_t)c->bytes.len;
    aq_buf_add(&c->bytes, body.data, body.len);
}

static int make_cell(const writer *w, object_kind kind, const row *r, cell *c)
{
    aq_auto_buf head = {0};
    aq_buf whole = {0};
    size_t most = kind == TABLE ? ROW_MOST : KEY_MOST;

    *c = (cell){.number = r->number};
    add_record(w, r, c);
    add_varint(&head, c->bytes.len);
    if (kind == TABLE)
        add_varint(&head, (uint64_t)r->number);
    if (c->bytes.len > most)
        return aq_fail(w->err, -EFBIG, "a database: a row of more than %zu bytes", most);
    aq_buf_add(&whole, head.data, head.len);
    aq_buf_add(&whole, c->bytes.data, c->bytes.len);
    for (size_t i = 0; i < c->copied_count; i++)
        c->copied[i].to += (uint32_t)head.len;
    aq_buf_free(&c->bytes);
    c->bytes = whole;
    return 0;
}

/* ---- pages ---- */

static uint32_t add_page(writer *w)
{
    static const char empty[PAGE];

    aq_buf_add(w->out, empty, PAGE);
    return (uint32_t)(w->out->len / PAGE);
}

static size_t page_head(uint32_t page)
{
    return page == 1 ? HEAD : 0;
}

/* Entries from the end of the page on, their places behind its head. */
static void fill_page(writer *w, uint32_t page, uint8_t type, const cell *cells, size_t count)
{
    size_t begin = (size_t)(page - 1) * PAGE, end = PAGE, head = page_head(page);
    size_t at = head + (type == 5 ? BRANCH : LEAF);
    char *p = w->out->data + begin;

    p[head] = (char)type;
    put_be(p + head + 3, count, 2);
    for (size_t i = 0; i < count; i++, at += 2) {
        end -= cells[i].bytes.len;
        memcpy(p + end, cells[i].bytes.data, cells[i].bytes.len);
        put_be(p + at, end, 2);
        for (size_t k = 0; k < cells[i].copied_count; k++) {
            aq_copied c = cells[i].copied[k];

            c.to += (uint32_t)(begin + end);
            aq_buf_add(w->copied, &c, sizeof c);
        }
    }
    put_be(p + head + 5, end, 2);
}

/* How many of the entries fit into one page. */
static size_t fitting(const cell *cells, size_t count, size_t room)
{
    size_t n = 0;

    for (; n < count && cells[n].bytes.len + 2 <= room; n++)
        room -= cells[n].bytes.len + 2;
    return n;
}

/* Several pages below a root that names the last row of each. */
static int fill_branch(writer *w, uint32_t root, const cell *cells, size_t count)
{
    cell *branch = aq_arena_alloc(w->arena, (count + 1) * sizeof *branch);
    size_t pages = 0, n;
    int r = 0;

    for (; count; cells += n, count -= n) {
        uint32_t page = add_page(w);
        char child[4];

        n = fitting(cells, count, PAGE - LEAF);
        fill_page(w, page, 13, cells, n);
        put_be(child, page, 4);
        if (n == count) {
            put_be(w->out->data + (size_t)(root - 1) * PAGE + page_head(root) + 8, page, 4);
            break;
        }
        aq_buf_add(&branch[pages].bytes, child, 4);
        add_varint(&branch[pages++].bytes, (uint64_t)cells[n - 1].number);
    }
    if (fitting(branch, pages, PAGE - page_head(root) - BRANCH) < pages)
        r = aq_fail(w->err, -EFBIG, "a database: a table of too many rows");
    else
        fill_page(w, root, 5, branch, pages);
    for (size_t i = 0; i < pages; i++)
        aq_buf_free(&branch[i].bytes);
    return r;
}

static int fill_tree(writer *w, uint32_t root, object_kind kind, row *const *rows, size_t count)
{
    cell *cells = aq_arena_alloc(w->arena, (count + 1) * sizeof *cells);
    size_t room = PAGE - page_head(root) - LEAF, made = 0;
    int r = 0;

    for (; made < count && r == 0; made++)
        r = make_cell(w, kind, rows[made], &cells[made]);
    if (r == 0 && fitting(cells, count, room) == count)
        fill_page(w, root, kind == TABLE ? 13 : 10, cells, count);
    else if (r == 0)
        r = kind == TABLE ? fill_branch(w, root, cells, count)
                          : aq_fail(w->err, -EFBIG, "a database: an index of more than a page");
    for (size_t i = 0; i < made; i++)
        aq_buf_free(&cells[i].bytes);
    return r;
}

/* ---- all of it ---- */

/* The table of tables, on the first page. */
static int fill_schema(writer *w)
{
    row **rows = aq_arena_alloc(w->arena, (w->count + 1) * sizeof *rows);

    for (size_t i = 0; i < w->count; i++) {
        const object *o = &w->object[i];
        const char *const texts[] = {o->kind == INDEX ? "index" : "table", o->name,
                                     w->object[o->of].name};

        rows[i] = new_row(w, 5);
        rows[i]->number = (int64_t)i + 1;
        rows[i]->count = 5;
        for (size_t k = 0; k < 3; k++)
            rows[i]->field[k] = (field){.kind = TEXT, .bytes = texts[k], .len = strlen(texts[k])};
        rows[i]->field[3] = (field){.kind = NUMBER, .number = o->root};
        if (o->sql)
            rows[i]->field[4] = (field){.kind = TEXT, .bytes = o->sql, .len = strlen(o->sql)};
    }
    return fill_tree(w, 1, TABLE, rows, w->count);
}

static void fill_head(writer *w)
{
    enum { SQLITE = 3045001 };
    uint32_t changes = 40 + aq_stream_below(w->chance, 400);
    char *p = w->out->data;

    memcpy(p, "SQLite format 3", 16);
    put_be(p + 16, PAGE, 2);
    memcpy(p + 18, "\1\1\0\x40\x20\x20", 6);
    put_be(p + 24, changes, 4);
    put_be(p + 28, w->out->len / PAGE, 4);
    put_be(p + 40, w->count + 2, 4); /* how often the schema changed */
    put_be(p + 44, 4, 4);
    put_be(p + 56, 1, 4); /* UTF-8 */
    put_be(p + 60, w->version, 4);
    put_be(p + 92, changes, 4);
    put_be(p + 96, SQLITE, 4);
}

int aq_database_make(const aq_database *d, aq_buf *out, aq_buf *copied, aq_err *err)
{
    aq_auto_arena arena = aq_arena_new();
    writer *w = aq_arena_alloc(arena, sizeof *w);
    int r = 0;

    *w = (writer){.arena = arena,
                  .text = d->text,
                  .start = d->start,
                  .chance = d->chance,
                  .out = out,
                  .copied = copied,
                  .err = err};
    for (const char *s = d->text, *end; r == 0 && *s; s = end + 1) {
        end = strchrnul(s, '\n');
        r = take_line(w, s, end);
        if (!*end)
            break;
    }
    add_page(w);
    for (size_t i = 0; i < w->count && r == 0; i++) {
        object *o = &w->object[i];

        if (o->kind == KEYED && o->count)
            qsort(o->rows, o->count, sizeof *o->rows, by_fields);
        o->root = add_page(w);
        r = out->len > AQ_DECOY_FILE
                ? aq_fail(err, -EFBIG, "a database of more than %d bytes", AQ_DECOY_FILE)
                : fill_tree(w, o->root, o->kind, o->rows, o->count);
    }
    if (r == 0 && (r = fill_schema(w)) == 0)
        fill_head(w);
    return r;
}
