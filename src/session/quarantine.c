/* Quarantine; see quarantine.h. Nothing is decided here: names of the one side are given to the
 * other. */
#include "session/quarantine.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "internet/world.h"
#include "session/room.inc"
#include "session/truststore.h"

#define AUTHORITY_KEY "authority.key"

typedef struct aq_internet_of {
    const aq_decoys *decoys;
    const char *const *names;
    size_t name_count;
} aq_internet_of;

static bool given(const char *const *env, const char *row)
{
    size_t name = strcspn(row, "=") + 1;

    for (; env && *env; env++)
        if (strncmp(*env, row, name) == 0)
            return true;
    return false;
}

/* Everything that a plan says is a copy: whoever reads the plan must not find the decoys beside it,
 * for one of them is the key of the world's authority. */
static const char *copy(aq_arena *a, const char *text)
{
    return text ? aq_arena_strdup(a, text) : NULL;
}

static void add_environment(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    const char **all;
    size_t n = 0, own = 0;

    while (plan->env && plan->env[own])
        own++;
    all = aq_arena_alloc(a, (d->env_count + own + 1) * sizeof *all);
    for (size_t i = 0; i < d->env_count; i++)
        if (!given(plan->env, d->env[i]))
            all[n++] = copy(a, d->env[i]);
    for (size_t i = 0; i < own; i++)
        all[n++] = plan->env[i];
    plan->env = all;
}

enum { KEY = 32 }; /* of a large file */

/* In init, when a large file is first opened, and in the keeper, when it may have changed. */
static int say_large(const aq_plan_file *f, aq_plan_take take, void *arg)
{
    static uint8_t part[256 << 10];
    aq_large large;
    int r = 0;

    aq_large_begin(&large, f->path, (const uint8_t *)f->data, f->len);
    while (r == 0 && large.at < f->len) {
        size_t n = f->len - large.at < sizeof part ? f->len - large.at : sizeof part;

        aq_large_more(&large, part, n);
        r = take(arg, part, n);
    }
    return r;
}

static void add_files(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    aq_plan_file *all = aq_arena_alloc(a, (d->file_count + 1) * sizeof *all);

    for (size_t i = 0; i < d->file_count; i++) {
        const aq_decoy_file *f = &d->files[i];

        const char *data = f->large ? (const char *)f->large : f->data;

        all[i] =
            (aq_plan_file){.path = copy(a, f->path),
                           .data = data ? aq_arena_strndup(a, data, f->large ? KEY : f->len) : NULL,
                           .say = f->large ? say_large : NULL,
                           .len = f->len,
                           .mode = f->mode,
                           .mtime = f->mtime,
                           .mtime_ns = f->mtime_ns,
                           .folder = f->folder};
    }
    plan->files = all;
    plan->file_count = d->file_count;
}

/* The authority's key is nobody's inside, and stays out. */
static void add_marks(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    aq_mark *all = aq_arena_alloc(a, (d->count + 1) * sizeof *all);

    plan->mark_count = 0;
    for (size_t i = 0; i < d->count; i++) {
        const aq_decoy *y = &d->decoys[i];

        if (strcmp(y->name, AUTHORITY_KEY) != 0)
            all[plan->mark_count++] =
                (aq_mark){copy(a, y->name), aq_arena_strndup(a, y->value, y->len), y->len};
    }
    plan->marks = all;
}

static const aq_machine *copy_machine(aq_arena *a, const aq_machine *of)
{
    aq_fact *facts = aq_arena_alloc(a, (of->fact_count + 1) * sizeof *facts);
    aq_machine *m = aq_arena_alloc(a, sizeof *m);

    for (size_t i = 0; i < of->fact_count; i++)
        facts[i] = (aq_fact){copy(a, of->facts[i].name), copy(a, of->facts[i].value)};
    *m = *of;
    m->facts = facts;
    return m;
}

/* ---- its internet ---- */

/* What the services of a cloud tell a machine of theirs. */
static bool is_told(const char *name)
{
    static const char *const clouds[] = {"aws.", "gcp.", "azure.", "person.", "company."};

    for (size_t i = 0; i < sizeof clouds / sizeof *clouds; i++)
        if (strncmp(name, clouds[i], strlen(clouds[i])) == 0)
            return true;
    return false;
}

/* The keys that answers depend on: one for both worlds of the seed, one for this world alone. */
static void make_keys(const aq_decoys *d, aq_internet_world *w)
{
    static const char pair[] = "aquarium/v1/internet/pair", own[] = "aquarium/v1/internet/own";
    aq_auto_buf text = {0};
    aq_digest digest;

    aq_buf_add(&text, pair, sizeof pair);
    aq_buf_add(&text, d->seed.b, sizeof d->seed.b);
    digest = aq_sha256(text.data, text.len);
    memcpy(w->pair, digest.b, sizeof w->pair);
    aq_buf_clear(&text);
    aq_buf_add(&text, own, sizeof own);
    aq_buf_add(&text, d->seed.b, sizeof d->seed.b);
    aq_buf_adds(&text, aq_side_name(d->side));
    digest = aq_sha256(text.data, text.len);
    memcpy(w->own, digest.b, sizeof w->own);
}

static const char *value_of(const aq_decoys *d, const char *name)
{
    const aq_decoy *found = aq_decoys_find(d, name);

    return found ? found->value : NULL;
}

/* In the front, when the program first reaches out. */
static int make_internet(const aq_plan *plan, aq_err *err)
{
    const aq_internet_of *of = plan->internet_of;
    const aq_decoys *d = of->decoys;
    aq_auto_free aq_fact *told = aq_alloc((d->count + 1) * sizeof *told);
    aq_internet_world w = {.facts = d->machine.facts,
                           .fact_count = d->machine.fact_count,
                           .decoys = told,
                           .names = of->names,
                           .name_count = of->name_count,
                           .ca_certificate = value_of(d, "authority.certificate"),
                           .ca_key = value_of(d, AUTHORITY_KEY)};

    if (!w.ca_certificate || !w.ca_key)
        w.ca_certificate = w.ca_key = NULL;
    for (size_t i = 0; i < d->count; i++)
        if (is_told(d->decoys[i].name))
            told[w.decoy_count++] = (aq_fact){d->decoys[i].name, d->decoys[i].value};
    make_keys(d, &w);
    return aq_internet_world_file(&w, err);
}

static void add_keystore(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    enum { AGE = 259 * 86400 }; /* seconds that it is known */
    aq_auto_buf store = {0};

    if (!plan->authority ||
        aq_truststore(plan->authority, "corporate-root-ca", d->start - AGE, &store) < 0)
        return;
    plan->keystore = memcpy(aq_arena_alloc(a, store.len), store.data, store.len);
    plan->keystore_len = store.len;
}

void aq_quarantine_resolve(aq_arena *a, const char *const *names, size_t count, aq_plan *plan)
{
    aq_internet_of *of = aq_arena_alloc(a, sizeof *of);

    *of = *(const aq_internet_of *)plan->internet_of;
    of->names = names;
    of->name_count = count;
    plan->internet_of = of;
}

void aq_quarantine_outline(aq_arena *a, const aq_decoys *outline, aq_plan *plan)
{
    aq_quarantine_plan(a, outline, plan);
    plan->later_room = DECOYS_ROOM;
    plan->later_large = DECOYS_LARGE;
    plan->later_count = DECOYS_FILES;
}

void aq_quarantine_plan(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    aq_internet_of *of = aq_arena_alloc(a, sizeof *of);

    add_environment(a, d, plan);
    add_files(a, d, plan);
    add_marks(a, d, plan);
    plan->world = aq_side_name(d->side);
    plan->home = copy(a, aq_decoys_fact(d, "person.home"));
    plan->machine = copy_machine(a, &d->machine);
    plan->host = copy(a, aq_decoys_fact(d, "host.name"));
    of->decoys = d;
    plan->internet = make_internet;
    plan->authority = copy(a, value_of(d, "authority.certificate"));
    add_keystore(a, d, plan);
    plan->internet_of = of;
}
