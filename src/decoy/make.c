/* One world's decoys: values first, then environment, facts and files, and where each value stands
 * in them. Nothing is drawn twice, and every place is known from the making, not by searching. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/database.h"
#include "decoy/internal.h"

/* A decoy that stands in another one. */
typedef struct span {
    uint32_t decoy, offset;
    struct span *next;
} span;

typedef struct spot {
    aq_place place;
    struct spot *next;
} spot;

typedef struct value {
    const char *text;
    size_t len;
    span *inside;
    spot *spots, **last;
    size_t count;
} value;

/* A decoy that no row says: it comes out of the making. */
typedef struct extra {
    aq_decoy decoy;
    struct extra *next;
} extra;

typedef struct maker {
    aq_arena *arena;
    const aq_pack *pack;
    aq_draws draws;
    aq_key_cache cache;
    aq_decoys *out;
    value *values;
    aq_decoy_file *files;
    size_t *lengths; /* of the files' paths */
    size_t file_cap;
    size_t bytes; /* of all files */
    unsigned larges;
    size_t places;  /* of all decoys */
    int64_t uptime; /* seconds */
    aq_buf scratch;
    extra *extras, **last_extra;
    size_t extra_count;
    const aq_processor *cpu; /* NULL: the pack's */
    bool outline; /* no files, no places, and only the decoys that environment and machine take */
    aq_err *err;
} maker;

static const char *pooled(const maker *k, uint32_t at)
{
    return k->pack->pool + at;
}

/* A fact that no decoy stands in. */
static int64_t plain_number(const aq_pack *p, const char *name, int64_t otherwise)
{
    for (uint32_t i = 0; i < p->fact_count; i++) {
        const aq_piece *piece = &p->pieces[p->facts[i].text.first];

        if (strcmp(p->pool + p->facts[i].name, name) == 0 && p->facts[i].text.count == 1 &&
            piece->kind == AQ_PIECE_TEXT)
            return strtoll(p->pool + piece->at, NULL, 10);
    }
    return otherwise;
}

/* ---- values ---- */

static int make_value(maker *k, uint32_t i);

static int make_text(maker *k, const aq_pack_decoy *d, aq_lot *lot, value *v, aq_buf *out)
{
    for (uint32_t i = 0; i < d->text.count; i++) {
        const aq_piece *p = &k->pack->pieces[d->text.first + i];
        span *s;
        int r;

        if (p->kind != AQ_PIECE_DECOY) {
            aq_lot_piece(lot, k->pack, p, out);
        } else {
            if ((r = make_value(k, p->at)) < 0)
                return r;
            s = aq_arena_alloc(k->arena, sizeof *s);
            *s = (span){p->at, (uint32_t)out->len, v->inside};
            v->inside = s;
            aq_buf_add(out, k->values[p->at].text, k->values[p->at].len);
        }
        if (out->len > AQ_DECOY_VALUE)
            return aq_fail(k->err, -EFBIG, "decoy %s has more than %d bytes", pooled(k, d->name),
                           AQ_DECOY_VALUE);
    }
    return 0;
}

static int make_value(maker *k, uint32_t i)
{
    const aq_pack_decoy *d = &k->pack->decoys[i];
    value *v = &k->values[i];
    aq_lot lot = aq_lot_of(&k->draws, pooled(k, d->name));
    aq_auto_buf text = {0}, out = {0};
    aq_making m = {.pack = k->pack,
                   .draws = &k->draws,
                   .cache = &k->cache,
                   .lot = &lot,
                   .start = k->out->start,
                   .boot = k->out->start - k->uptime,
                   .key = pooled(k, d->key)};
    int r;

    if (v->text)
        return 0;
    v->last = &v->spots;
    if ((r = make_text(k, d, &lot, v, &text)) < 0)
        return r;
    m.text = aq_buf_str(&text);
    m.len = text.len;
    if (d->function == AQ_FUNCTION_TEXT) {
        v->text = aq_arena_strndup(k->arena, m.text, m.len);
        v->len = m.len;
        return 0;
    }
    v->inside = NULL; /* nothing can be found in what a function made of it */
    if ((r = aq_function_apply((aq_function)d->function, &m, &out, k->err)) < 0)
        return aq_err_within(k->err, "decoy %s", pooled(k, d->name));
    if (out.len > 2 * AQ_DECOY_VALUE)
        return aq_fail(k->err, -EFBIG, "decoy %s has more than %d bytes", pooled(k, d->name),
                       2 * AQ_DECOY_VALUE);
    v->text = aq_arena_strndup(k->arena, aq_buf_str(&out), out.len);
    v->len = out.len;
    return 0;
}

/* ---- what the values stand in ---- */

static void add_spot(maker *k, uint32_t decoy, aq_place place)
{
    value *v = &k->values[decoy];
    uint32_t from = place.offset;
    spot *s;

    if (++k->places > AQ_DECOY_PLACES)
        return; /* expand says so */
    s = aq_arena_alloc(k->arena, sizeof *s);

    s->place = place;
    *v->last = s;
    v->last = &s->next;
    v->count++;
    for (const span *in = v->inside; in; in = in->next) {
        place.offset = from + in->offset;
        add_spot(k, in->decoy, place);
    }
}

static uint32_t count_lines(const char *text, size_t len)
{
    uint32_t n = 0;

    for (const char *end = text + len; (text = memchr(text, '\n', (size_t)(end - text))); text++)
        n++;
    return n;
}

/* Writes a template that draws nothing to the scratch buffer. A place without a kind is not kept.
 */
static int expand(maker *k, aq_template t, aq_place place, size_t most)
{
    aq_buf *out = &k->scratch;
    uint32_t line = 1;

    aq_buf_clear(out);
    for (uint32_t i = 0; i < t.count; i++) {
        const aq_piece *p = &k->pack->pieces[t.first + i];
        int r = p->kind == AQ_PIECE_DECOY ? make_value(k, p->at) : 0;

        if (r < 0)
            return r;
        const char *text = p->kind == AQ_PIECE_DECOY ? k->values[p->at].text : pooled(k, p->at);
        size_t len = p->kind == AQ_PIECE_DECOY ? k->values[p->at].len : p->len;

        if (out->len + len > most)
            return aq_fail(k->err, -EFBIG, "%s has more than %zu bytes", place.where, most);
        if (p->kind == AQ_PIECE_DECOY && place.kind != AQ_PLACE_NONE && !k->outline) {
            place.line = place.kind == AQ_PLACE_FILE ? line : 0;
            place.offset = (uint32_t)out->len;
            add_spot(k, p->at, place);
            if (k->places > AQ_DECOY_PLACES)
                return aq_fail(k->err, -E2BIG, "decoys stand in more than %d places",
                               AQ_DECOY_PLACES);
        }
        line += count_lines(text, len);
        aq_buf_add(out, text, len);
    }
    return 0;
}

static int make_env(maker *k)
{
    const aq_pack *p = k->pack;
    const char **rows = aq_arena_alloc(k->arena, (p->env_count + 1) * sizeof *rows);

    for (uint32_t i = 0; i < p->env_count; i++) {
        aq_place at = {.kind = AQ_PLACE_ENV, .where = pooled(k, p->env[i].name)};
        int r = expand(k, p->env[i].text, at, AQ_DECOY_VALUE);

        if (r < 0)
            return r;
        rows[i] = aq_arena_printf(k->arena, "%s=%s", at.where, aq_buf_str(&k->scratch));
    }
    k->out->env = rows;
    k->out->env_count = p->env_count;
    return 0;
}

/* Rows of one fact stand together, the one without a variant first: which of them holds here, or
 * NULL, and where the next fact begins. */
static const aq_pack_named *fact_here(const maker *k, uint32_t i, const char *variant, size_t *len,
                                      uint32_t *next)
{
    const aq_pack *p = k->pack;
    const char *name = pooled(k, p->facts[i].name);
    const aq_pack_named *found = NULL;

    *len = strcspn(name, "@");
    for (; i < p->fact_count; i++) {
        const char *row = pooled(k, p->facts[i].name);

        if (strncmp(row, name, *len) != 0 || (row[*len] && row[*len] != '@'))
            break;
        if (!row[*len] || (variant && strcmp(row + *len + 1, variant) == 0))
            found = &p->facts[i];
    }
    *next = i;
    return found;
}

/* Facts that a processor which is there says itself. */
static bool of_processor(const char *name)
{
    return strncmp(name, "cpu.", 4) == 0 || strncmp(name, "cache.", 6) == 0;
}

static int make_facts(maker *k)
{
    const aq_pack *p = k->pack;
    const char *variant = aq_processor_variant(k->cpu);
    const aq_fact *own;
    size_t own_count = aq_processor_facts(k->arena, k->cpu, &own), n = 0, len;
    aq_fact *rows = aq_arena_alloc(k->arena, (p->fact_count + own_count + 2) * sizeof *rows);

    for (uint32_t i = 0, next; i < p->fact_count; i = next) {
        aq_place at = {.kind = AQ_PLACE_FACT, .where = pooled(k, p->facts[i].name)};
        const aq_pack_named *row = fact_here(k, i, variant, &len, &next);
        int r;

        if (!row || (own_count && of_processor(at.where)))
            continue;
        if (at.where[len])
            at.where = aq_arena_strndup(k->arena, at.where, len);
        if ((r = expand(k, row->text, at, AQ_DECOY_VALUE)) < 0)
            return r;
        if (k->scratch.len) /* a variant without a text takes the fact away */
            rows[n++] = (aq_fact){at.where, aq_arena_strdup(k->arena, aq_buf_str(&k->scratch))};
    }
    if (variant)
        rows[n++] = (aq_fact){"machine.hypervisor", variant};
    for (size_t i = 0; i < own_count; i++)
        rows[n++] = own[i];
    k->out->machine.facts = rows;
    k->out->machine.fact_count = n;
    return 0;
}

/* Its clock does not start on a full second. */
static void make_machine(maker *k)
{
    enum { SECOND = 1000000000 };
    aq_machine *m = &k->out->machine;
    aq_stream s = aq_stream_of(m->entropy, "clock");

    aq_seed_entropy(&k->out->seed, m->entropy);
    m->start_ns = k->out->start * SECOND + aq_stream_below(&s, SECOND);
    m->uptime_ns = aq_machine_number(m, "uptime.seconds", 86400) * SECOND;
    m->uptime_ns += aq_stream_below(&s, SECOND);
}

/* ---- files ---- */

enum { PART = 255 }; /* bytes of a name, as file systems have it */

/* What the values of decoys made of a path that was good. */
static bool path_good(const char *path)
{
    for (const char *part = path; *part; part += strcspn(part, "/")) {
        size_t len = *part == '/' ? strcspn(++part, "/") : 0;

        if (len == 0 || len > PART || (len <= 2 && strspn(part, ".") >= len))
            return false;
    }
    return *path && !strchr(path, '\n');
}

/* What could not be made: nobody enters a folder that its owner may not use. */
static int check_file(maker *k, const aq_pack_file *row, const char *path)
{
    if (!path_good(path))
        return aq_fail(k->err, -EINVAL, "%.200s is no good path", path);
    if (row->kind == AQ_ROW_FOLDER && (row->mode & 0700) != 0700)
        return aq_fail(k->err, -EINVAL, "the folder %.200s is closed to its owner: mode %04o", path,
                       row->mode);
    if (row->kind == AQ_ROW_LARGE && k->larges++ == AQ_DECOY_LARGES)
        return aq_fail(k->err, -EFBIG, "more than %d large files", AQ_DECOY_LARGES);
    return 0;
}

/* Hours become a moment within the hour, the same in A and B, so that their order stays. */
static void set_time(const maker *k, uint32_t hours, aq_decoy_file *f)
{
    char name[32] = "mtime/";
    aq_stream s;
    size_t n = strlen(name);

    for (uint32_t h = hours; h && n < sizeof name - 1; h /= 10)
        name[n++] = (char)('0' + h % 10);
    s = aq_stream_of(k->draws.pair, name);
    f->mtime = k->out->start - 1 - (int64_t)hours * 3600 - aq_stream_below(&s, 3600);
    f->mtime_ns = aq_stream_below(&s, 1000000000);
}

static aq_decoy_file *add_file(maker *k, aq_decoy_file f)
{
    aq_decoys *o = k->out;

    if (o->file_count == k->file_cap) {
        size_t cap = k->file_cap ? 2 * k->file_cap : 256;
        aq_decoy_file *more = aq_arena_alloc(k->arena, cap * sizeof *more);
        size_t *lengths = aq_arena_alloc(k->arena, cap * sizeof *lengths);

        if (o->file_count) {
            memcpy(more, k->files, o->file_count * sizeof *more);
            memcpy(lengths, k->lengths, o->file_count * sizeof *lengths);
        }
        k->files = more;
        k->lengths = lengths;
        k->file_cap = cap;
    }
    k->files[o->file_count] = f;
    k->lengths[o->file_count] = strlen(f.path);
    return &k->files[o->file_count++];
}

static aq_decoy_file *find_file(maker *k, const char *path, size_t len)
{
    for (size_t i = k->out->file_count; i-- > 0;)
        if (k->lengths[i] == len && memcmp(k->files[i].path, path, len) == 0)
            return &k->files[i];
    return NULL;
}

/* Folders above a path: those that every machine has (/home, /tmp, all of /etc, /run and /var) are
 * not ours. A folder is as old as the youngest thing in it. */
static int add_parents(maker *k, const char *path, const aq_decoy_file *child)
{
    const char *first = strchr(path + 1, '/');
    bool system = strncmp(path, "/etc/", 5) == 0 || strncmp(path, "/run/", 5) == 0 ||
                  strncmp(path, "/var/", 5) == 0;

    for (const char *slash = first ? strchr(first + 1, '/') : NULL; slash;
         slash = strchr(slash + 1, '/')) {
        aq_decoy_file *f = find_file(k, path, (size_t)(slash - path));

        if (!f && system)
            continue;
        if (!f)
            f = add_file(
                k, (aq_decoy_file){.path = aq_arena_strndup(k->arena, path, (size_t)(slash - path)),
                                   .mode = 0755,
                                   .mtime = child->mtime,
                                   .mtime_ns = child->mtime_ns,
                                   .folder = true});
        if (!f->folder)
            return aq_fail(k->err, -EEXIST, "%s is a file and a folder", f->path);
        if (f->mtime < child->mtime) {
            f->mtime = child->mtime;
            f->mtime_ns = child->mtime_ns;
        }
    }
    return 0;
}

/* Another content in each world, of one length. */
static void make_large(maker *k, const aq_pack_file *row, aq_decoy_file *f)
{
    uint8_t *key = aq_arena_alloc(k->arena, 32);
    aq_stream s = aq_stream_of(k->draws.own, pooled(k, row->source));

    aq_stream_bytes(&s, key, 32);
    f->large = key;
    f->len = row->size;
}

/* ---- databases ---- */

/* What is made of bytes stands in the text of a database in hex. */
static bool makes_bytes(const maker *k, uint32_t decoy)
{
    switch (k->pack->decoys[decoy].function) {
    case AQ_FUNCTION_CHROME_SEAL:
    case AQ_FUNCTION_NSS_STORE:
    case AQ_FUNCTION_PGP_KEYBOX:
    case AQ_FUNCTION_PGP_TRUST:
    case AQ_FUNCTION_LOGIN:
        return true;
    default:
        return false;
    }
}

/* Where a decoy of the text stands in the file: wherever the writer copied all of it. */
static void place_copies(maker *k, uint32_t decoy, uint32_t at, const aq_buf *copied,
                         aq_place place)
{
    const aq_copied *all = (const void *)copied->data;
    uint32_t scale = makes_bytes(k, decoy) ? 2 : 1, len = (uint32_t)k->values[decoy].len;

    for (size_t i = 0; i < copied->len / sizeof *all; i++)
        if (all[i].hex == (scale == 2) && at >= all[i].from &&
            (at - all[i].from) / scale + len <= all[i].len) {
            place.offset = all[i].to + (at - all[i].from) / scale;
            add_spot(k, decoy, place);
        }
}

/* Decoys as they are or in hex, and what stands between them. */
static int spell(maker *k, aq_template t, aq_buf *out)
{
    for (uint32_t i = 0; i < t.count; i++) {
        const aq_piece *p = &k->pack->pieces[t.first + i];
        int r = p->kind == AQ_PIECE_DECOY ? make_value(k, p->at) : 0;

        if (r < 0)
            return r;
        if (p->kind != AQ_PIECE_DECOY)
            aq_buf_add(out, pooled(k, p->at), p->len);
        else if (makes_bytes(k, p->at))
            aq_hex(k->values[p->at].text, k->values[p->at].len, out);
        else
            aq_buf_add(out, k->values[p->at].text, k->values[p->at].len);
        if (out->len > 2 * AQ_DECOY_FILE)
            return aq_fail(k->err, -EFBIG, "the text of a database has more than %d bytes",
                           2 * AQ_DECOY_FILE);
    }
    return 0;
}

static int make_database(maker *k, const aq_pack_file *row, aq_decoy_file *f)
{
    aq_auto_buf text = {0}, copied = {0};
    aq_stream chance = aq_stream_of(k->draws.pair, pooled(k, row->source));
    int r = spell(k, row->body, &text);
    aq_database d = {.text = aq_buf_str(&text), .start = k->out->start, .chance = &chance};
    uint32_t at = 0;

    aq_buf_clear(&k->scratch);
    if (r == 0 && (r = aq_database_make(&d, &k->scratch, &copied, k->err)) < 0)
        return aq_err_within(k->err, "%s", f->path);
    for (uint32_t i = 0; i < row->body.count && r == 0; i++) {
        const aq_piece *p = &k->pack->pieces[row->body.first + i];

        if (p->kind == AQ_PIECE_DECOY)
            place_copies(k, p->at, at, &copied,
                         (aq_place){.kind = AQ_PLACE_FILE, .where = f->path});
        at += p->kind != AQ_PIECE_DECOY
                  ? p->len
                  : (uint32_t)k->values[p->at].len * (makes_bytes(k, p->at) ? 2 : 1);
    }
    if (r == 0 && k->places > AQ_DECOY_PLACES)
        r = aq_fail(k->err, -E2BIG, "decoys stand in more than %d places", AQ_DECOY_PLACES);
    return r;
}

/* What stands in it is in the scratch buffer. */
static int keep_content(maker *k, aq_decoy_file *f)
{
    if (k->scratch.len > AQ_DECOY_FILE)
        return aq_fail(k->err, -EFBIG, "%s has more than %d bytes", f->path, AQ_DECOY_FILE);
    f->data = aq_arena_strndup(k->arena, aq_buf_str(&k->scratch), k->scratch.len);
    f->len = k->scratch.len;
    k->bytes += f->len;
    if (k->bytes > AQ_DECOY_WORLD)
        return aq_fail(k->err, -EFBIG, "the files of the world have more than %d bytes",
                       AQ_DECOY_WORLD);
    return 0;
}

static int make_file(maker *k, const aq_pack_file *row)
{
    aq_decoy_file f = {.mode = row->mode, .folder = row->kind == AQ_ROW_FOLDER};
    aq_place at = {.where = pooled(k, row->source)};
    int r = expand(k, row->path, at, AQ_DECOY_PATH);

    if (r < 0)
        return r;
    f.path = aq_arena_strdup(k->arena, aq_buf_str(&k->scratch));
    at = (aq_place){.kind = AQ_PLACE_PATH, .where = f.path};
    if ((r = expand(k, row->path, at, AQ_DECOY_PATH)) < 0)
        return r;
    set_time(k, row->hours, &f);
    if ((r = check_file(k, row, f.path)) < 0)
        return r;
    if (find_file(k, f.path, strlen(f.path)))
        return aq_fail(k->err, -EEXIST, "two files have the path %s", f.path);
    if ((r = add_parents(k, f.path, &f)) < 0)
        return r;
    if (row->kind == AQ_ROW_LARGE)
        make_large(k, row, &f);
    at = (aq_place){.kind = AQ_PLACE_FILE, .where = f.path};
    if (row->kind == AQ_ROW_FILE)
        r = expand(k, row->body, at, AQ_DECOY_FILE);
    else if (row->kind == AQ_ROW_DATABASE)
        r = make_database(k, row, &f);
    if (r == 0 && (row->kind == AQ_ROW_FILE || row->kind == AQ_ROW_DATABASE))
        r = keep_content(k, &f);
    if (r == 0)
        add_file(k, f);
    return r;
}

/* ---- histories ---- */

typedef struct past {
    maker *k;
    const char *root, *name;
    unsigned hours; /* how old the last commit is */
} past;

static int64_t past_when(void *arg, uint32_t hours)
{
    enum { HOUR = 3600, SPREAD = 2749 };
    past *p = arg;

    /* It is written into files, which say the same for every seed. */
    p->hours = hours;
    return p->k->out->start - 1 - (int64_t)hours * HOUR - (int64_t)hours * SPREAD % HOUR;
}

static void add_extra(maker *k, const char *name, const char *text, aq_place place)
{
    extra *x = aq_arena_alloc(k->arena, sizeof *x);
    aq_place *at = aq_arena_alloc(k->arena, sizeof *at);

    *at = place;
    x->decoy = (aq_decoy){.name = name,
                          .grade = AQ_GRADE_IDENTITY,
                          .value = text,
                          .len = strlen(text),
                          .places = at,
                          .place_count = 1};
    *k->last_extra = x;
    k->last_extra = &x->next;
    k->extra_count++;
}

/* The names of commits and of their pack are values of this world alone. */
static void name_commits(const past *p, const aq_decoy_file *log)
{
    enum { HEX = 40, NEW = HEX + 1 };
    uint32_t line = 1;

    for (const char *at = log->data, *end = at + log->len; at < end; line++) {
        add_extra(p->k, aq_arena_printf(p->k->arena, "git.%s.commit_%u", p->name, line),
                  aq_arena_strndup(p->k->arena, at + NEW, HEX),
                  (aq_place){.kind = AQ_PLACE_FILE,
                             .where = log->path,
                             .line = line,
                             .offset = (uint32_t)(at + NEW - log->data)});
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : end;
    }
}

static void name_pack(const past *p, const aq_decoy_file *f)
{
    const char *from = strrchr(f->path, '-') + 1;

    add_extra(
        p->k, aq_arena_printf(p->k->arena, "git.%s.pack", p->name),
        aq_arena_strndup(p->k->arena, from, strcspn(from, ".")),
        (aq_place){.kind = AQ_PLACE_PATH, .where = f->path, .offset = (uint32_t)(from - f->path)});
}

static int past_add(void *arg, const char *name, unsigned mode, const aq_buf *data)
{
    past *p = arg;
    maker *k = p->k;
    size_t len = strlen(name);
    aq_decoy_file f = {.path = aq_arena_printf(k->arena, "%s/.git/%s", p->root, name),
                       .data = aq_arena_strndup(k->arena, data->data, data->len),
                       .len = data->len,
                       .mode = mode};
    int r;

    set_time(k, p->hours, &f);
    if (find_file(k, f.path, strlen(f.path)))
        return aq_fail(k->err, -EEXIST, "two files have the path %s", f.path);
    if ((r = add_parents(k, f.path, &f)) < 0)
        return r;
    k->bytes += f.len;
    add_file(k, f);
    if (len > 5 && strcmp(name + len - 5, ".pack") == 0)
        name_pack(p, &f);
    if (strcmp(name, "logs/HEAD") == 0)
        name_commits(p, &f);
    return k->bytes > AQ_DECOY_WORLD
               ? aq_fail(k->err, -EFBIG, "the files of the world have more than %d bytes",
                         AQ_DECOY_WORLD)
               : 0;
}

/* Its first line is what the project is called among the decoys. */
static int make_history(maker *k, const aq_pack_file *row)
{
    past p = {.k = k};
    aq_history h = {.when = past_when, .add = past_add, .arg = &p};
    const char *text, *end;
    int r = expand(k, row->path, (aq_place){.where = pooled(k, row->source)}, AQ_DECOY_PATH);

    if (r < 0)
        return r;
    h.root = p.root = aq_arena_strdup(k->arena, aq_buf_str(&k->scratch));
    if ((r = expand(k, row->body, (aq_place){.where = p.root}, AQ_DECOY_FILE)) < 0)
        return r;
    text = aq_arena_strndup(k->arena, aq_buf_str(&k->scratch), k->scratch.len);
    end = strchr(text, '\n');
    if (!end || !path_good(p.root))
        return aq_fail(k->err, -EINVAL, "the history of %s has no name", p.root);
    p.name = aq_arena_strndup(k->arena, text, (size_t)(end - text));
    h.text = end + 1;
    h.len = k->scratch.len - (size_t)(h.text - text);
    h.files = k->files;
    h.file_count = k->out->file_count;
    return aq_history_make(&h, k->err);
}

/* Folders with a row of their own first: a mode must be known before what is inside. */
static int make_files(maker *k)
{
    const aq_pack *p = k->pack;
    int r = 0;

    for (int folder = 1; folder >= 0; folder--)
        for (uint32_t i = 0; i < p->file_count && r == 0; i++)
            if (p->files[i].kind != AQ_ROW_HISTORY && folder == (p->files[i].kind == AQ_ROW_FOLDER))
                r = make_file(k, &p->files[i]);
    for (uint32_t i = 0; i < p->file_count && r == 0; i++)
        if (p->files[i].kind == AQ_ROW_HISTORY)
            r = make_history(k, &p->files[i]);
    k->out->files = k->files;
    return r;
}

/* ---- all of it ---- */

static const aq_place *list_places(maker *k, const value *v)
{
    aq_place *all = aq_arena_alloc(k->arena, (v->count + 1) * sizeof *all);
    size_t n = 0;

    for (const spot *s = v->spots; s; s = s->next)
        all[n++] = s->place;
    return all;
}

static int longer(const void *a, const void *b)
{
    const aq_decoy *x = *(const aq_decoy *const *)a, *y = *(const aq_decoy *const *)b;

    if (x->len != y->len)
        return x->len < y->len ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void list_decoys(maker *k)
{
    const aq_pack *p = k->pack;
    aq_decoy *all = aq_arena_alloc(k->arena, (p->decoy_count + k->extra_count + 1) * sizeof *all);
    const aq_decoy **longest;
    size_t n = 0;

    for (uint32_t i = 0; i < p->decoy_count; i++)
        if (p->decoys[i].grade != AQ_GRADE_PART && k->values[i].text)
            all[n++] = (aq_decoy){.name = pooled(k, p->decoys[i].name),
                                  .grade = (aq_grade)p->decoys[i].grade,
                                  .value = k->values[i].text,
                                  .len = k->values[i].len,
                                  .places = list_places(k, &k->values[i]),
                                  .place_count = k->values[i].count};
    for (const extra *x = k->extras; x; x = x->next)
        all[n++] = x->decoy;
    longest = aq_arena_alloc(k->arena, (n + 1) * sizeof *longest);
    for (size_t i = 0; i < n; i++)
        longest[i] = &all[i];
    qsort(longest, n, sizeof *longest, longer);
    k->out->decoys = all;
    k->out->longest = longest;
    k->out->count = n;
}

static int make_all(maker *k, const aq_seed *seed, aq_side side, int64_t start,
                    const aq_decoys **ret)
{
    int r = 0;

    k->last_extra = &k->extras;
    k->out = aq_arena_alloc(k->arena, sizeof *k->out);
    *k->out = (aq_decoys){.seed = *seed, .side = side, .start = start};
    k->values = aq_arena_alloc(k->arena, (k->pack->decoy_count + 1) * sizeof *k->values);
    aq_draws_begin(&k->draws, seed, side);
    k->uptime = plain_number(k->pack, "uptime.seconds", 86400);
    for (uint32_t i = 0; i < k->pack->decoy_count && r == 0 && !k->outline; i++)
        r = make_value(k, i);
    if (r == 0)
        r = make_env(k);
    if (r == 0)
        r = make_facts(k);
    if (r == 0 && !k->outline)
        r = make_files(k);
    if (r == 0) {
        make_machine(k);
        list_decoys(k);
        *ret = k->out;
    }
    aq_buf_free(&k->scratch);
    return r;
}

int aq_decoys_make(aq_arena *a, const aq_pack *pack, const aq_seed *seed, aq_side side,
                   int64_t start, const aq_processor *cpu, const aq_decoys **ret, aq_err *err)
{
    maker k = {.arena = a, .pack = pack, .cpu = cpu, .err = err};

    return make_all(&k, seed, side, start, ret);
}

int aq_decoys_outline(aq_arena *a, const aq_pack *pack, const aq_seed *seed, aq_side side,
                      int64_t start, const aq_processor *cpu, const aq_decoys **ret, aq_err *err)
{
    maker k = {.arena = a, .pack = pack, .cpu = cpu, .outline = true, .err = err};

    return make_all(&k, seed, side, start, ret);
}
