/* Reads rules/internet/wares.pack, and judges names; see shelf.h. */
#include "internet/shelf.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wares.inc"

typedef struct reader {
    aq_arena *arena;
    const char *name;
    unsigned line;
    aq_shelf *shelf;
    aq_buf text; /* of the last entry */
    aq_err *err;
} reader;

static int wrong(reader *r, const char *what)
{
    return aq_fail(r->err, -EINVAL, "%s:%u: %s", r->name, r->line, what);
}

static void close_text(reader *r)
{
    aq_shelf *s = r->shelf;

    if (s->text_count > 0)
        s->texts[s->text_count - 1].text =
            aq_arena_strdup(r->arena, r->text.len > 0 ? aq_buf_str(&r->text) : "");
    r->text.len = 0;
}

static int begin_text(reader *r, const char *name, const char *path)
{
    if (r->shelf->text_count == AQ_SHELF_TEXTS || !name || !*name)
        return wrong(r, "too many texts, or one without a name");
    r->shelf->texts[r->shelf->text_count++] = (aq_shelf_text){name, path, ""};
    return 0;
}

/* "3" or "0-30" */
static bool read_span(const char *text, unsigned *from, unsigned *to)
{
    char *end;

    *from = *to = (unsigned)strtoul(text, &end, 10);
    if (end == text)
        return false;
    if (*end == '-')
        *to = (unsigned)strtoul(end + 1, &end, 10);
    return *end == '\0' && *to < 10000 && *from <= *to;
}

static int add_grid(reader *r, char *at)
{
    aq_shelf *s = r->shelf;
    aq_grid *g = &s->grids[s->grid_count];
    size_t count = 1;

    if (s->grid_count == AQ_SHELF_GRIDS)
        return wrong(r, "too many rows of versions");
    for (size_t i = 0; i < 3; i++) {
        const char *part = strsep(&at, " ");

        if (!part || !read_span(part, &g->from[i], &g->to[i]))
            return wrong(r, "versions are MAJOR MINOR PATCH, each a number or A-B");
        count *= g->to[i] - g->from[i] + 1;
    }
    s->grid_count++;
    s->version_count += count;
    return s->version_count <= AQ_SHELF_VERSIONS ? 0 : wrong(r, "too many versions");
}

static int add_known(reader *r, char *at, bool module)
{
    aq_shelf *s = r->shelf;
    char *word;

    while ((word = strsep(&at, " "))) {
        if (s->known_count == AQ_SHELF_KNOWN)
            return wrong(r, "too many names");
        s->known[s->known_count].name = word;
        s->known[s->known_count++].module = module ? strsep(&at, " ") : NULL;
        if (module && !s->known[s->known_count - 1].module)
            return wrong(r, "modules come in pairs");
    }
    return 0;
}

static int add_follow(reader *r, const char *at)
{
    const char *letter = at;

    if (*letter < 'a' || *letter > 'z' || letter[1] != ' ')
        return wrong(r, "a row of followers is LETTER LETTERS");
    for (at += 2; *at; at++) {
        if (*at < 'a' || *at > 'z')
            return wrong(r, "only letters follow");
        r->shelf->follow[*letter - 'a'] |= 1u << (*at - 'a');
    }
    return 0;
}

static int row(reader *r, char *line)
{
    char *at = line;
    const char *key;

    if (line[0] == '\0' || line[0] == '#')
        return 0;
    if (line[0] == '|' || line[0] == '>') {
        if (r->shelf->text_count == 0)
            return wrong(r, "text of nothing");
        aq_buf_adds(&r->text, line + 1);
        aq_buf_adds(&r->text, line[0] == '|' ? "\n" : "");
        return 0;
    }
    key = strsep(&at, " ");
    if (!at)
        return wrong(r, "a row of nothing");
    if (strcmp(key, "text") == 0 || strcmp(key, "file") == 0) {
        close_text(r);
        key = key[0] == 'f' ? strsep(&at, " ") : NULL;
        return key && !at ? wrong(r, "a file is KIND PATH")
                          : begin_text(r, key ? key : at, key ? at : NULL);
    }
    if (strcmp(key, "versions") == 0)
        return add_grid(r, at);
    if (strcmp(key, "known") == 0 || strcmp(key, "module") == 0)
        return add_known(r, at, key[0] == 'm');
    return strcmp(key, "follow") == 0 ? add_follow(r, at) : wrong(r, "no such row");
}

int aq_shelf_parse(aq_arena *a, const char *name, const char *text, size_t len, aq_shelf **ret,
                   aq_err *err)
{
    reader r = {.arena = a, .name = name, .shelf = aq_arena_alloc(a, sizeof(aq_shelf)), .err = err};
    const char *end = text + len;
    int result = 0;

    while (text < end && result == 0) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);

        r.line++;
        result = row(&r, aq_arena_strndup(a, text, n));
        text += n + 1;
    }
    close_text(&r);
    aq_buf_free(&r.text);
    if (result == 0 && r.shelf->version_count == 0)
        result = aq_fail(err, -EINVAL, "%s: no versions", name);
    if (result == 0)
        *ret = r.shelf;
    return result;
}

const aq_shelf *aq_shelf_builtin(void)
{
    static aq_shelf *built_in;
    static aq_arena *arena;
    aq_err err = {0};

    if (!arena)
        arena = aq_arena_new();
    if (!built_in &&
        aq_shelf_parse(arena, "wares.pack", wares_pack, sizeof wares_pack - 1, &built_in, &err) < 0)
        aq_panic("%s", err.text);
    return built_in;
}

const char *aq_shelf_text_of(const aq_shelf *s, const char *name)
{
    for (size_t i = 0; i < s->text_count; i++)
        if (!s->texts[i].path && strcmp(s->texts[i].name, name) == 0)
            return s->texts[i].text;
    aq_panic("wares.pack has no text %s", name);
}

const char *aq_shelf_module(const aq_shelf *s, const char *name)
{
    for (size_t i = 0; i < s->known_count; i++)
        if (s->known[i].module && strcmp(s->known[i].name, name) == 0)
            return s->known[i].module;
    return NULL;
}

void aq_shelf_version(const aq_shelf *s, size_t i, unsigned ret[static 3])
{
    for (size_t n = 0; n < s->grid_count; n++) {
        const aq_grid *g = &s->grids[n];
        size_t patches = g->to[2] - g->from[2] + 1, minors = g->to[1] - g->from[1] + 1,
               all = patches * minors * (g->to[0] - g->from[0] + 1);

        if (i < all) {
            ret[0] = g->from[0] + (unsigned)(i / (patches * minors));
            ret[1] = g->from[1] + (unsigned)(i / patches % minors);
            ret[2] = g->from[2] + (unsigned)(i % patches);
            return;
        }
        i -= all;
    }
    aq_panic("no version %zu", i);
}

/* ---- names ---- */

static bool is_known(const aq_shelf *s, const char *name)
{
    for (size_t i = 0; i < s->known_count; i++)
        if (strcasecmp(s->known[i].name, name) == 0)
            return true;
    return false;
}

/* How the signs of a name follow each other. */
typedef struct look {
    size_t letters, digits, pairs, odd; /* pairs of letters, and those that are rare */
    size_t turns;                       /* from letters to digits and back */
    size_t same;                        /* the longest run of one sign */
} look;

static look look_at(const aq_shelf *s, const char *name, size_t len)
{
    look l = {0};
    size_t run = 1;

    for (size_t i = 0; i < len; i++) {
        int now = tolower((unsigned char)name[i]),
            before = i > 0 ? tolower((unsigned char)name[i - 1]) : 0;

        l.letters += isalpha(now) != 0;
        l.digits += isdigit(now) != 0;
        l.turns += (isalpha(now) && isdigit(before)) || (isdigit(now) && isalpha(before));
        run = now == before ? run + 1 : 1;
        l.same = run > l.same ? run : l.same;
        if (!isalpha(now) || !isalpha(before))
            continue;
        l.pairs++;
        l.odd += !(s->follow[before - 'a'] >> (now - 'a') & 1);
    }
    return l;
}

bool aq_shelf_plausible(const aq_shelf *s, const char *name)
{
    enum { SHORT = 6, DIGITS = 5, TURNS = 3, RUN = 3 };
    size_t len = strlen(name);
    look l;

    if (len == 0 || len > AQ_WARE_NAME)
        return false;
    if (is_known(s, name))
        return true;
    if (len > SHORT && strcasecmp(name + len - 2, "js") == 0) /* a word and what it is for */
        len -= 2;
    l = look_at(s, name, len);
    if (l.letters == 0 || l.digits > DIGITS || l.turns > TURNS || l.same > RUN)
        return false;
    return l.letters <= SHORT || l.odd < 2 || l.odd * 5 <= l.pairs;
}
