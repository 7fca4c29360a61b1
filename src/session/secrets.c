/* The secrets that a run touched; see secrets.h. */
#include "session/secrets.h"

#include <fcntl.h>
#include <string.h>

#include "base/text.h"

enum { SHORTEST = 8, TEXT_MAX = 512, WAYS = 4 /* base64 begins at three places of a group */ };

/* One way to write the value of a decoy. */
typedef struct aq_secret_form {
    const char *bytes;
    size_t len;
    const aq_decoy *decoy;
    uint32_t next; /* that begins with the same byte; 0: none */
} aq_secret_form;

static void add_form(aq_secrets *s, const aq_decoy *d, const char *bytes, size_t len)
{
    uint32_t *first = &s->first[(uint8_t)bytes[0]];

    s->forms[s->form_count] = (aq_secret_form){bytes, len, d, *first};
    *first = (uint32_t)++s->form_count;
}

/* The groups of base64 that the value alone decides when `before` bytes of a group precede it. */
static void add_base64(aq_secrets *s, const aq_decoy *d, size_t before)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t from = before ? 3 - before : 0, groups = (d->len - from) / 3;
    char *text = aq_arena_alloc(s->arena, 4 * groups + 1);

    for (size_t i = 0; i < groups; i++) {
        const uint8_t *b = (const uint8_t *)d->value + from + 3 * i;
        uint32_t n = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];

        for (size_t k = 0; k < 4; k++)
            text[4 * i + k] = letters[n >> (18 - 6 * k) & 63];
    }
    if (4 * groups >= SHORTEST)
        add_form(s, d, text, 4 * groups);
}

static void add_hex(aq_secrets *s, const aq_decoy *d)
{
    char *text = aq_arena_alloc(s->arena, 2 * d->len + 1);

    for (size_t i = 0; i < d->len; i++) {
        text[2 * i] = "0123456789abcdef"[(uint8_t)d->value[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[(uint8_t)d->value[i] & 15];
    }
    add_form(s, d, text, 2 * d->len);
}

/* Only for a run that says something to somebody. */
static void make_forms(aq_secrets *s)
{
    if (s->forms)
        return;
    s->forms = aq_arena_alloc(s->arena, (s->decoys->count + 1) * (WAYS + 1) * sizeof *s->forms);
    for (size_t i = 0; i < s->decoys->count; i++) {
        const aq_decoy *d = &s->decoys->decoys[i];

        if (d->grade != AQ_GRADE_SECRET || d->len < SHORTEST)
            continue;
        add_form(s, d, d->value, d->len);
        for (size_t before = 0; before < 3; before++)
            add_base64(s, d, before);
        add_hex(s, d);
    }
}

void aq_secrets_begin(aq_secrets *s, aq_arena *a, const aq_decoys *d)
{
    *s = (aq_secrets){.arena = a, .decoys = d};
}

static aq_secret_row *row_of(aq_secrets *s, aq_secret_act act, const char *where, size_t len)
{
    const char *text = aq_text_quoted(s->arena, where, len, TEXT_MAX);

    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].act == act && strcmp(s->rows[i].where, text) == 0)
            return &s->rows[i];
    if (s->count == AQ_SECRET_ROWS) {
        s->more++;
        return NULL;
    }
    if (!s->rows)
        s->rows = aq_arena_alloc(s->arena, AQ_SECRET_ROWS * sizeof *s->rows);
    s->rows[s->count] =
        (aq_secret_row){act, text, aq_arena_alloc(s->arena, s->decoys->count * sizeof(char *)), 0};
    return &s->rows[s->count++];
}

static void add_name(aq_secret_row *r, const char *name)
{
    for (size_t i = 0; i < r->name_count; i++)
        if (strcmp(r->names[i], name) == 0)
            return;
    r->names[r->name_count++] = name;
}

/* ---- what leaves ---- */

static const aq_secret_form *form_at(const aq_secrets *s, const char *text, size_t len)
{
    for (uint32_t i = s->first[(uint8_t)*text]; i; i = s->forms[i - 1].next) {
        const aq_secret_form *f = &s->forms[i - 1];

        if (f->len <= len && memcmp(f->bytes, text, f->len) == 0)
            return f;
    }
    return NULL;
}

static void search(aq_secrets *s, aq_secret_act act, const char *where, size_t where_len,
                   const char *text, size_t len)
{
    if (!text || len < SHORTEST)
        return;
    make_forms(s);
    for (size_t at = 0; at + SHORTEST <= len; at++) {
        const aq_secret_form *f = form_at(s, text + at, len - at);
        aq_secret_row *r = f ? row_of(s, act, where, where_len) : NULL;

        if (r)
            add_name(r, f->decoy->name);
    }
}

/* Messages that came are the world's own words. */
static bool speaks(const aq_event *e)
{
    static const char *const others[] = {"receive", "accept", "totals", "socket", "option"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(e->op, others[i]) == 0)
            return false;
    return e->object && e->object_len && strncmp(e->object, "unix", 4) != 0;
}

static void take_message(aq_secrets *s, const aq_event *e)
{
    if (!speaks(e))
        return;
    search(s, AQ_SECRET_SENT, e->object, e->object_len, e->object, e->object_len);
    for (int i = 0; i < e->arg_count; i++)
        search(s, AQ_SECRET_SENT, e->object, e->object_len, e->args[i].bytes, e->args[i].len);
}

void aq_secrets_end(aq_secrets *s, const aq_observation *o)
{
    for (size_t i = 0; s->decoys && i < o->output_count; i++)
        search(s, AQ_SECRET_PRINTED, o->outputs[i].stream, strlen(o->outputs[i].stream),
               o->outputs[i].head, o->outputs[i].head_len);
}

/* ---- what is read ---- */

static bool for_reading(const aq_event *e)
{
    int64_t flags = 0;

    for (int i = 0; i < e->arg_count; i++)
        if (strcmp(e->args[i].name, "flags") == 0)
            flags = e->args[i].number;
    return !(flags & (O_DIRECTORY | O_PATH)) && (flags & O_ACCMODE) != O_WRONLY;
}

static void take_file(aq_secrets *s, const aq_event *e)
{
    if (e->result < 0 || !e->object || strcmp(e->op, "open") != 0 || !for_reading(e))
        return;
    for (size_t i = 0; i < s->decoys->count; i++) {
        const aq_decoy *d = &s->decoys->decoys[i];

        for (size_t k = 0; d->grade == AQ_GRADE_SECRET && k < d->place_count; k++) {
            const aq_place *p = &d->places[k];
            aq_secret_row *r;

            if (p->kind != AQ_PLACE_FILE || strlen(p->where) != e->object_len ||
                memcmp(p->where, e->object, e->object_len) != 0)
                continue;
            r = row_of(s, AQ_SECRET_READ, e->object, e->object_len);
            if (r)
                add_name(r, d->name);
        }
    }
}

void aq_secrets_event(aq_secrets *s, const aq_event *e)
{
    if (!s->decoys)
        return;
    if (e->kind == AQ_EVENT_FILE)
        take_file(s, e);
    else if (e->kind == AQ_EVENT_NETWORK)
        take_message(s, e);
}

/* ---- the result ---- */

size_t aq_secrets_count(const aq_secrets *s, aq_secret_act act)
{
    size_t n = 0;

    for (size_t i = 0; i < s->count; i++)
        n += s->rows[i].act == act;
    return n;
}

json_t *aq_secrets_json(const aq_secrets *s)
{
    static const char *const acts[] = {
        [AQ_SECRET_SENT] = "sent", [AQ_SECRET_PRINTED] = "printed", [AQ_SECRET_READ] = "read"};
    json_t *array = json_array();

    for (size_t i = 0; i < s->count; i++) {
        json_t *names = json_array();

        for (size_t k = 0; k < s->rows[i].name_count; k++)
            json_array_append_new(names, json_string(s->rows[i].names[k]));
        json_array_append_new(array, json_pack("{s:s,s:s,s:o}", "act", acts[s->rows[i].act],
                                               "where", s->rows[i].where, "decoys", names));
    }
    return array;
}
