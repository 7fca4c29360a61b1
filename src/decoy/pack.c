/* The parser of packs; see pack.h. Hostile input is bounded in bytes, rows, pieces and depth; an
 * error names file and line. Nothing is drawn here, and no file is opened. */
#include "decoy/pack.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *const grade_names[] = {
#define AQ_GRADE(id, name, what) name,
#include "decoy/grades.def"
#undef AQ_GRADE
};

static const struct {
    const char *name;
    bool key;
} functions[] = {
#define AQ_FUNCTION(id, name, key, what) {name, key},
#include "decoy/functions.def"
#undef AQ_FUNCTION
};

static const struct {
    const char *name, *symbols;
    uint8_t first;
} alphabets[] = {
#define AQ_ALPHABET(id, name, symbols, first) {name, symbols, first},
#include "decoy/alphabets.def"
#undef AQ_ALPHABET
};

const char *aq_grade_name(aq_grade g)
{
    return grade_names[g];
}

/* Rows of one kind. Every row begins with the offset of its name. */
typedef struct table {
    const char *what;
    size_t row;
    uint32_t most, count;
    aq_buf rows, texts; /* texts: which text said the row */
} table;

/* A decoy that was named and must exist in the end. */
typedef struct wanted {
    uint32_t piece, name, line, text;
} wanted;

enum { DECOYS, ENV, FACTS, FILES, LISTS, TABLES };

struct aq_pack_maker {
    aq_buf pool, pieces, wanted, names; /* names: offsets of the texts' names */
    table tables[TABLES];
    uint32_t text; /* number of the text that is read */
};

/* A line of a text, and what has been read of it. */
typedef struct reader {
    aq_pack_maker *m;
    aq_err *err;
    const char *name, *at, *end; /* of the line */
    uint32_t line;
    int open;         /* the kind of row that further lines belong to, or TABLES */
    uint32_t current; /* the row they belong to */
} reader;

__attribute__((format(printf, 2, 3))) static int wrong(const reader *r, const char *fmt, ...)
{
    aq_auto_buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    aq_buf_addv(&text, fmt, ap);
    va_end(ap);
    return aq_fail(r->err, -EBADMSG, "%.200s line %u: %s", r->name, r->line, aq_buf_str(&text));
}

/* ---- the pool and the tables ---- */

static uint32_t pool_add(aq_pack_maker *m, const char *s, size_t len)
{
    uint32_t at = (uint32_t)m->pool.len;

    aq_buf_add(&m->pool, s, len);
    aq_buf_addc(&m->pool, '\0');
    return at;
}

static const char *pooled(const aq_pack_maker *m, uint32_t at)
{
    return m->pool.data + at;
}

static void *row_at(const table *t, uint32_t i)
{
    return t->rows.data + (size_t)i * t->row;
}

static int find(const aq_pack_maker *m, const table *t, const char *name)
{
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t at;

        memcpy(&at, row_at(t, i), sizeof at);
        if (strcmp(pooled(m, at), name) == 0)
            return (int)i;
    }
    return -1;
}

/* Adds the row, or replaces that of the same name of an earlier text. Gives its number. */
static int put_row(reader *r, int kind, const void *row, uint32_t *ret)
{
    table *t = &r->m->tables[kind];
    uint32_t at, said;
    int i;

    memcpy(&at, row, sizeof at);
    i = find(r->m, t, pooled(r->m, at));
    if (i < 0) {
        if (t->count == t->most)
            return wrong(r, "more than %u %ss", t->most, t->what);
        aq_buf_add(&t->rows, row, t->row);
        aq_buf_add(&t->texts, &r->m->text, sizeof r->m->text);
        *ret = t->count++;
        return 0;
    }
    memcpy(&said, t->texts.data + (size_t)i * sizeof said, sizeof said);
    if (said == r->m->text)
        return wrong(r, "a second %s %.100s", t->what, pooled(r->m, at));
    memcpy(t->texts.data + (size_t)i * sizeof said, &r->m->text, sizeof said);
    memcpy(row_at(t, (uint32_t)i), row, t->row);
    *ret = (uint32_t)i;
    return 0;
}

/* ---- words of a line ---- */

static bool take_word(reader *r, const char **word, size_t *len)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
    *word = r->at;
    while (r->at < r->end && *r->at != ' ')
        r->at++;
    *len = (size_t)(r->at - *word);
    if (r->at < r->end)
        r->at++; /* one blank; the rest belongs to what follows */
    return *len > 0;
}

static bool name_good(const char *s, size_t len)
{
    if (len == 0 || len >= AQ_PACK_NAME)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-')
            return false;
    return true;
}

static int take_name(reader *r, const char *what, uint32_t *ret)
{
    const char *word;
    size_t len;

    if (!take_word(r, &word, &len) || !name_good(word, len))
        return wrong(r, "%s needs a name of letters, digits, dot, dash and underscore", what);
    *ret = pool_add(r->m, word, len);
    return 0;
}

static int take_number(reader *r, const char *what, int base, uint32_t most, uint32_t *ret)
{
    const char *word;
    char digits[16] = "", *end;
    unsigned long n;
    size_t len;

    if (!take_word(r, &word, &len) || len >= sizeof digits || !isdigit((unsigned char)*word))
        return wrong(r, "%s must be a number", what);
    memcpy(digits, word, len);
    n = strtoul(digits, &end, base);
    if (*end || n > most)
        return wrong(r, "%s must be a number up to %u", what, most);
    *ret = (uint32_t)n;
    return 0;
}

/* ---- templates ---- */

static int put_piece(reader *r, aq_template *t, aq_piece p)
{
    uint32_t count = (uint32_t)(r->m->pieces.len / sizeof p);

    if (count == AQ_PACK_PIECES)
        return wrong(r, "more than %d pieces of text", AQ_PACK_PIECES);
    if (t->count == 0)
        t->first = count;
    aq_buf_add(&r->m->pieces, &p, sizeof p);
    t->count++;
    return 0;
}

static int put_text(reader *r, aq_template *t, const char *s, size_t len)
{
    aq_piece p = {.kind = AQ_PIECE_TEXT, .len = (uint32_t)len};

    if (len == 0)
        return 0;
    p.at = pool_add(r->m, s, len);
    return put_piece(r, t, p);
}

static int put_decoy(reader *r, aq_template *t, const char *s, size_t len)
{
    wanted w = {.line = r->line, .text = r->m->text};
    int e;

    if (!name_good(s, len))
        return wrong(r, "%%{%.*s}: not the name of a decoy", (int)(len < 80 ? len : 80), s);
    w.name = pool_add(r->m, s, len);
    e = put_piece(r, t, (aq_piece){.kind = AQ_PIECE_DECOY, .at = UINT32_MAX});
    w.piece = (uint32_t)(r->m->pieces.len / sizeof(aq_piece)) - 1;
    if (e == 0)
        aq_buf_add(&r->m->wanted, &w, sizeof w);
    return e;
}

/* The least and the greatest first symbol, "3-7"; without one the alphabet's own. */
static int take_bounds(const reader *r, unsigned alphabet, const char *s, size_t len, aq_piece *p)
{
    const char *symbols = alphabets[alphabet].symbols;
    const char *from, *to;

    p->from = alphabets[alphabet].first;
    p->to = (uint8_t)(strlen(symbols) - 1);
    if (len == 0)
        return 0;
    from = len == 3 && s[1] == '-' ? strchr(symbols, s[0]) : NULL;
    to = from ? strchr(symbols, s[2]) : NULL;
    if (!from || !to || from >= to || from - symbols < p->from)
        return wrong(r, "'%.*s': bounds of the first symbol are two of the alphabet, as 1-5",
                     (int)(len < 20 ? len : 20), s);
    p->from = (uint8_t)(from - symbols);
    p->to = (uint8_t)(to - symbols);
    return 0;
}

/* ALPHABET:COUNT or ALPHABET:COUNT:BOUNDS */
static int put_draw(reader *r, aq_template *t, unsigned alphabet, const char *s, size_t len)
{
    aq_piece p = {.kind = AQ_PIECE_DRAW, .at = alphabet};
    size_t i = 0;
    int e;

    for (; i < len && isdigit((unsigned char)s[i]) && p.len <= AQ_PACK_DRAW; i++)
        p.len = 10 * p.len + (uint32_t)(s[i] - '0');
    if (p.len == 0 || p.len > AQ_PACK_DRAW || (i < len && s[i] != ':'))
        return wrong(r, "%s needs a count from 1 to %d", alphabets[alphabet].name, AQ_PACK_DRAW);
    i += i < len;
    e = take_bounds(r, alphabet, s + i, len - i, &p);
    return e < 0 ? e : put_piece(r, t, p);
}

/* A pattern: c consonant, v vowel (capital: upper case), d digit, [abc] one of these, the rest is
 * itself after a dash or a dot. The first symbol must have two choices, so that A and B differ. */
static int put_say(reader *r, aq_template *t, const char *s, size_t len)
{
    bool set = false;

    if (len == 0 || len > AQ_PACK_NAME || !memchr("cvCVd[", s[0], 6))
        return wrong(r, "say needs a pattern that begins with c, v, C, V, d or a [set]");
    for (size_t i = 0, begun = 0; i < len; i++) {
        if (s[i] == '[' && !set) {
            set = true;
            begun = i;
        } else if (set && s[i] == ']') {
            if (i - begun < 3)
                return wrong(r, "a [set] needs two letters or more");
            set = false;
        } else if (!(set ? isalnum((unsigned char)s[i]) : memchr("cvCVd", s[i], 5) != NULL)) {
            return wrong(r, "say: '%c' is no part of a pattern",
                         isprint((unsigned char)s[i]) ? s[i] : '?');
        }
    }
    if (set)
        return wrong(r, "say: a [set] without its end");
    return put_piece(
        r, t, (aq_piece){.kind = AQ_PIECE_SAY, .at = pool_add(r->m, s, len), .len = (uint32_t)len});
}

static int put_word(reader *r, aq_template *t, const char *s, size_t len)
{
    char name[AQ_PACK_NAME] = "";
    int i;

    if (len < sizeof name)
        memcpy(name, s, len);
    i = find(r->m, &r->m->tables[LISTS], name);
    if (i < 0)
        return wrong(r, "no list '%.60s' above this line", name);
    return put_piece(r, t, (aq_piece){.kind = AQ_PIECE_WORD, .at = (uint32_t)i});
}

/* What stands between %{ and }. */
static int put_expression(reader *r, aq_template *t, const char *s, size_t len, bool draws)
{
    const char *colon = memchr(s, ':', len);
    size_t kind = colon ? (size_t)(colon - s) : len, rest = colon ? len - kind - 1 : 0;

    if (!colon)
        return put_decoy(r, t, s, len);
    if (!draws)
        return wrong(r, "only a decoy can be drawn: give '%.*s' a name in a decoy row",
                     (int)(len < 60 ? len : 60), s);
    if (kind == 3 && memcmp(s, "say", 3) == 0)
        return put_say(r, t, colon + 1, rest);
    if (kind == 4 && memcmp(s, "word", 4) == 0)
        return put_word(r, t, colon + 1, rest);
    for (unsigned i = 0; i < AQ_ALPHABET_COUNT; i++)
        if (strlen(alphabets[i].name) == kind && memcmp(alphabets[i].name, s, kind) == 0)
            return put_draw(r, t, i, colon + 1, rest);
    return wrong(r, "%%{%.*s}: nothing is drawn that way", (int)(len < 60 ? len : 60), s);
}

/* The rest of the line. "%%{" stands for a plain "%{". */
static int take_template(reader *r, bool draws, aq_template *t)
{
    const char *from = r->at;
    int e = 0;

    while (e == 0) {
        const char *mark = memmem(r->at, (size_t)(r->end - r->at), "%{", 2), *close;

        if (!mark)
            return put_text(r, t, from, (size_t)(r->end - from));
        if (mark > from && mark[-1] == '%') {
            e = put_text(r, t, from, (size_t)(mark - 1 - from));
            from = mark;
            r->at = mark + 2;
            continue;
        }
        close = memchr(mark, '}', (size_t)(r->end - mark));
        if (!close)
            return wrong(r, "%%{ without its }");
        e = put_text(r, t, from, (size_t)(mark - from));
        if (e == 0)
            e = put_expression(r, t, mark + 2, (size_t)(close - mark - 2), draws);
        from = r->at = close + 1;
    }
    return e;
}

/* ---- rows ---- */

static int find_word(const char *word, size_t len, size_t count, const char *(*name)(size_t))
{
    for (size_t i = 0; i < count; i++)
        if (strlen(name(i)) == len && memcmp(name(i), word, len) == 0)
            return (int)i;
    return -1;
}

static const char *grade_word(size_t i)
{
    return grade_names[i];
}

static const char *function_word(size_t i)
{
    return functions[i].name;
}

static int decoy_row(reader *r)
{
    aq_pack_decoy d = {0};
    uint32_t at;
    const char *word;
    size_t len;
    int e = take_name(r, "decoy", &d.name), i;

    if (e < 0)
        return e;
    take_word(r, &word, &len);
    if ((i = find_word(word, len, AQ_GRADE_COUNT, grade_word)) < 0)
        return wrong(r, "a decoy is identity, secret, machine or part");
    d.grade = (uint32_t)i;
    take_word(r, &word, &len);
    if ((i = find_word(word, len, AQ_FUNCTION_COUNT, function_word)) < 0)
        return wrong(r, "'%.*s' is no function; docs/formats/decoys.md lists them",
                     (int)(len < 40 ? len : 40), word);
    d.function = (uint32_t)i;
    if (functions[i].key && (e = take_name(r, functions[i].name, &d.key)) < 0)
        return e;
    if ((e = take_template(r, true, &d.text)) < 0)
        return e;
    if (d.text.count == 0)
        return wrong(r, "the decoy has no text");
    return put_row(r, DECOYS, &d, &at);
}

/* A fact may have a variant behind its name: NAME@VARIANT. */
static int take_fact(reader *r, bool *variant, uint32_t *ret)
{
    const char *word, *mark;
    size_t len;

    if (take_word(r, &word, &len) && (mark = memchr(word, '@', len)) && len < AQ_PACK_NAME &&
        name_good(word, (size_t)(mark - word)) &&
        name_good(mark + 1, len - (size_t)(mark + 1 - word))) {
        *ret = pool_add(r->m, word, len);
        *variant = true;
        return 0;
    }
    r->at = word;
    return take_name(r, "fact", ret);
}

static int named_row(reader *r, int kind)
{
    aq_pack_named n = {0};
    bool variant = false;
    uint32_t at;
    int e = kind == FACTS ? take_fact(r, &variant, &n.name) : take_name(r, "env", &n.name);

    e = e < 0 ? e : take_template(r, false, &n.text);
    if (e == 0 && n.text.count == 0 && !variant)
        return wrong(r, "%s has no text", pooled(r->m, n.name));
    return e < 0 ? e : put_row(r, kind, &n, &at);
}

/* Absolute, and each part is a name. */
static bool path_good(const char *path, size_t len)
{
    for (size_t i = 0; i < len;) {
        const char *slash;
        size_t part;

        if (path[i++] != '/')
            return false;
        slash = memchr(path + i, '/', len - i);
        part = slash ? (size_t)(slash - path) - i : len - i;
        if (part == 0 || (part == 1 && path[i] == '.') ||
            (part == 2 && path[i] == '.' && path[i + 1] == '.'))
            return false;
        i += part;
    }
    return true;
}

static int file_row(reader *r, aq_row_kind kind)
{
    aq_pack_file f = {.kind = kind};
    const char *path;
    uint32_t at;
    size_t len;
    int e = take_number(r, "the mode", 8, 07777, &f.mode);

    if (e == 0)
        e = take_number(r, "the age in hours", 10, AQ_PACK_HOURS, &f.hours);
    if (e == 0 && kind == AQ_ROW_LARGE)
        e = take_number(r, "the size in bytes", 10, AQ_DECOY_LARGE, &f.size);
    if (e < 0)
        return e;
    path = r->at;
    len = (size_t)(r->end - path);
    if (len == 0 || len >= AQ_DECOY_PATH)
        return wrong(r, "the path is missing or too long");
    if (!path_good(path, len))
        return wrong(r, "the path must be absolute, without empty parts, . and ..");
    f.source = pool_add(r->m, path, len);
    if ((e = take_template(r, false, &f.path)) < 0 || (e = put_row(r, FILES, &f, &at)) < 0)
        return e;
    if (kind != AQ_ROW_FOLDER && kind != AQ_ROW_LARGE)
        r->open = FILES;
    r->current = at;
    return 0;
}

static int list_row(reader *r)
{
    aq_pack_list l = {0};
    int e = take_name(r, "list", &l.name);

    if (e < 0 || (e = put_row(r, LISTS, &l, &r->current)) < 0)
        return e;
    r->open = LISTS;
    return 0;
}

/* All words of a list have one length: values of every world do. */
static int words_line(reader *r)
{
    aq_pack_list *l = row_at(&r->m->tables[LISTS], r->current);
    const char *word;
    size_t len;

    while (take_word(r, &word, &len)) {
        if (len > AQ_PACK_WORD || (l->count && len != l->width))
            return wrong(r, "the words of list %s must have one length; '%.*s' has another",
                         pooled(r->m, l->name), (int)(len < 40 ? len : 40), word);
        if (l->count == AQ_PACK_WORDS)
            return wrong(r, "more than %d words in a list", AQ_PACK_WORDS);
        if (l->count == 0)
            l->words = (uint32_t)r->m->pool.len;
        l->width = (uint32_t)len;
        aq_buf_add(&r->m->pool, word, len);
        l->count++;
    }
    return 0;
}

static int content_line(reader *r, bool newline)
{
    aq_pack_file *f = row_at(&r->m->tables[FILES], r->current);
    int e = take_template(r, false, &f->body);

    return e == 0 && newline ? put_text(r, &f->body, "\n", 1) : e;
}

static int close_open(reader *r)
{
    const aq_pack_list *l;

    if (r->open == LISTS) {
        l = row_at(&r->m->tables[LISTS], r->current);
        if (l->count < 2)
            return wrong(r, "list %s needs two words or more", pooled(r->m, l->name));
    }
    r->open = TABLES;
    return 0;
}

static int row(reader *r)
{
    static const char *const files[] = {"file", "folder", "large", "history", "database"};
    const char *word;
    size_t len;
    int e = close_open(r);

    if (e < 0)
        return e;
    take_word(r, &word, &len);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (len == strlen(files[i]) && memcmp(word, files[i], len) == 0)
            return file_row(r, (aq_row_kind)i);
    if (len == 5 && memcmp(word, "decoy", 5) == 0)
        return decoy_row(r);
    if (len == 3 && memcmp(word, "env", 3) == 0)
        return named_row(r, ENV);
    if (len == 4 && memcmp(word, "fact", 4) == 0)
        return named_row(r, FACTS);
    if (len == 4 && memcmp(word, "list", 4) == 0)
        return list_row(r);
    return wrong(
        r, "a row begins with decoy, env, fact, list, file, folder, large, history or database");
}

/* Names and values go to terminals and into JSON. */
static int check_text(const reader *r)
{
    for (const char *p = r->at; p < r->end; p++)
        if ((unsigned char)*p < 0x20 ? *p != '\t' : *p == 0x7f)
            return wrong(r, "a control character");
    return aq_utf8_valid(r->at, (size_t)(r->end - r->at)) ? 0 : wrong(r, "not UTF-8");
}

static int read_line(reader *r)
{
    char first = r->at < r->end ? *r->at : '\0';
    int e = check_text(r);

    if (e < 0)
        return e;
    if (first == '|' || first == '>') {
        if (r->open != FILES)
            return wrong(r, "a line of content without a file above it");
        r->at++;
        return content_line(r, first == '|');
    }
    if (first == ' ') {
        if (r->open != LISTS)
            return wrong(r, "a line that begins with a blank belongs to a list");
        return words_line(r);
    }
    return first == '\0' || first == '#' ? 0 : row(r);
}

/* ---- a whole text ---- */

int aq_pack_add(aq_pack_maker *m, const char *name, const char *text, size_t len, aq_err *err)
{
    reader r = {.m = m, .err = err, .name = name, .open = TABLES};
    const char *next = text, *end = text + len;
    uint32_t at = pool_add(m, name, strlen(name));
    int e = 0;

    if (len > AQ_PACK_BYTES)
        return aq_fail(err, -EFBIG, "%.200s is larger than %d bytes", name, AQ_PACK_BYTES);
    aq_buf_add(&m->names, &at, sizeof at);
    while (next < end && e == 0) {
        const char *stop = memchr(next, '\n', (size_t)(end - next));

        r.at = next;
        r.end = stop ? stop : end;
        next = r.end + 1;
        r.line++;
        if (r.line > 1)
            e = read_line(&r);
        else if (r.end - r.at != 6 || memcmp(r.at, "pack 1", 6) != 0)
            e = wrong(&r, "the first line of a pack is 'pack 1'");
    }
    if (e == 0 && r.line == 0)
        e = wrong(&r, "the first line of a pack is 'pack 1'");
    if (e == 0)
        e = close_open(&r);
    m->text++;
    return e;
}

static void copy_in(aq_buf *to, const void *rows, size_t count, size_t size)
{
    if (count)
        aq_buf_add(to, rows, count * size);
}

static void copy_table(table *t, const void *rows, uint32_t count)
{
    const uint32_t none = UINT32_MAX;

    copy_in(&t->rows, rows, count, t->row);
    for (uint32_t i = 0; i < count; i++)
        aq_buf_add(&t->texts, &none, sizeof none);
    t->count = count;
}

aq_pack_maker *aq_pack_begin(const aq_pack *base)
{
    static const table empty[TABLES] = {
        [DECOYS] = {"decoy", sizeof(aq_pack_decoy), AQ_PACK_DECOYS, 0, {0}, {0}},
        [ENV] = {"env", sizeof(aq_pack_named), AQ_PACK_ENV, 0, {0}, {0}},
        [FACTS] = {"fact", sizeof(aq_pack_named), AQ_PACK_FACTS, 0, {0}, {0}},
        [FILES] = {"file", sizeof(aq_pack_file), AQ_PACK_FILES, 0, {0}, {0}},
        [LISTS] = {"list", sizeof(aq_pack_list), AQ_PACK_LISTS, 0, {0}, {0}},
    };
    aq_pack_maker *m = aq_alloc(sizeof *m);

    memcpy(m->tables, empty, sizeof empty);
    if (!base) {
        aq_buf_addc(&m->pool, '\0'); /* offset 0 is no name */
        return m;
    }
    copy_in(&m->pool, base->pool, base->pool_len, 1);
    copy_in(&m->pieces, base->pieces, base->piece_count, sizeof *base->pieces);
    copy_table(&m->tables[DECOYS], base->decoys, base->decoy_count);
    copy_table(&m->tables[ENV], base->env, base->env_count);
    copy_table(&m->tables[FACTS], base->facts, base->fact_count);
    copy_table(&m->tables[FILES], base->files, base->file_count);
    copy_table(&m->tables[LISTS], base->lists, base->list_count);
    return m;
}

void aq_pack_abort(aq_pack_maker *m)
{
    if (!m)
        return;
    aq_buf_free(&m->pool);
    aq_buf_free(&m->pieces);
    aq_buf_free(&m->wanted);
    aq_buf_free(&m->names);
    for (int i = 0; i < TABLES; i++) {
        aq_buf_free(&m->tables[i].rows);
        aq_buf_free(&m->tables[i].texts);
    }
    free(m);
}

/* ---- the end ---- */

static const char *text_name(const aq_pack_maker *m, uint32_t text)
{
    uint32_t at;

    memcpy(&at, m->names.data + (size_t)text * sizeof at, sizeof at);
    return pooled(m, at);
}

static int resolve(aq_pack_maker *m, aq_err *err)
{
    for (size_t i = 0; i < m->wanted.len / sizeof(wanted); i++) {
        const wanted *w = (const wanted *)(const void *)m->wanted.data + i;
        aq_piece *p = (aq_piece *)(void *)m->pieces.data + w->piece;
        int at = find(m, &m->tables[DECOYS], pooled(m, w->name));

        if (at < 0)
            return aq_fail(err, -EBADMSG, "%.200s line %u: no decoy %.80s", text_name(m, w->text),
                           w->line, pooled(m, w->name));
        p->at = (uint32_t)at;
    }
    return 0;
}

/* How many decoys stand in one another below `at`; -1 when one needs itself. */
static int depth(const aq_pack_maker *m, uint32_t at, int *known)
{
    const aq_pack_decoy *d = (const aq_pack_decoy *)(const void *)m->tables[DECOYS].rows.data + at;
    const aq_piece *p = (const aq_piece *)(const void *)m->pieces.data + d->text.first;
    int most = 0;

    if (known[at])
        return known[at];
    known[at] = -1;
    for (uint32_t i = 0; i < d->text.count; i++) {
        int below = p[i].kind == AQ_PIECE_DECOY ? depth(m, p[i].at, known) : 0;

        if (below < 0 || below >= AQ_PACK_DEPTH)
            return -1;
        most = below > most ? below : most;
    }
    return known[at] = most + 1;
}

static int check_depth(const aq_pack_maker *m, aq_err *err)
{
    const table *t = &m->tables[DECOYS];
    int *known = aq_alloc((t->count + 1) * sizeof *known);
    int e = 0;

    for (uint32_t i = 0; i < t->count && e == 0; i++)
        if (depth(m, i, known) < 0) {
            uint32_t name;

            memcpy(&name, row_at(t, i), sizeof name);
            e = aq_fail(err, -ELOOP, "decoy %.80s needs itself, or more than %d others in a row",
                        pooled(m, name), AQ_PACK_DEPTH);
        }
    free(known);
    return e;
}

/* By name, and the one without a variant before the others. */
static int fact_order(const void *a, const void *b, void *pool)
{
    const char *x = (const char *)pool + ((const aq_pack_named *)a)->name,
               *y = (const char *)pool + ((const aq_pack_named *)b)->name;
    size_t m = strcspn(x, "@"), n = strcspn(y, "@");
    int r = memcmp(x, y, m < n ? m : n);

    return r ? r : m != n ? (m < n ? -1 : 1) : strcmp(x + m, y + n);
}

static void *copy_out(aq_arena *a, const aq_buf *from)
{
    void *to = aq_arena_alloc(a, from->len + 1);

    if (from->len)
        memcpy(to, from->data, from->len);
    return to;
}

int aq_pack_end(aq_pack_maker *m, aq_arena *a, const aq_pack **ret, aq_err *err)
{
    aq_pack *p;
    int e = resolve(m, err);

    if (e == 0)
        e = check_depth(m, err);
    if (e < 0)
        return e;
    if (m->tables[FACTS].count)
        qsort_r(m->tables[FACTS].rows.data, m->tables[FACTS].count, sizeof(aq_pack_named),
                fact_order, m->pool.data);
    p = aq_arena_alloc(a, sizeof *p);
    *p = (aq_pack){.pool = copy_out(a, &m->pool),
                   .pieces = copy_out(a, &m->pieces),
                   .decoys = copy_out(a, &m->tables[DECOYS].rows),
                   .env = copy_out(a, &m->tables[ENV].rows),
                   .facts = copy_out(a, &m->tables[FACTS].rows),
                   .files = copy_out(a, &m->tables[FILES].rows),
                   .lists = copy_out(a, &m->tables[LISTS].rows),
                   .pool_len = (uint32_t)m->pool.len,
                   .piece_count = (uint32_t)(m->pieces.len / sizeof(aq_piece)),
                   .decoy_count = m->tables[DECOYS].count,
                   .env_count = m->tables[ENV].count,
                   .fact_count = m->tables[FACTS].count,
                   .file_count = m->tables[FILES].count,
                   .list_count = m->tables[LISTS].count};
    *ret = p;
    return 0;
}
