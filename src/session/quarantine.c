/* Quarantine; see quarantine.h. Nothing is decided here: names of the one side are given to the
 * other. */
#include "session/quarantine.h"

#include <string.h>

static bool given(const char *const *env, const char *row)
{
    size_t name = strcspn(row, "=") + 1;

    for (; env && *env; env++)
        if (strncmp(*env, row, name) == 0)
            return true;
    return false;
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
            all[n++] = d->env[i];
    for (size_t i = 0; i < own; i++)
        all[n++] = plan->env[i];
    plan->env = all;
}

static void add_files(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    aq_plan_file *all = aq_arena_alloc(a, (d->file_count + 1) * sizeof *all);

    for (size_t i = 0; i < d->file_count; i++) {
        const aq_decoy_file *f = &d->files[i];

        all[i] = (aq_plan_file){.path = f->path,
                                .data = f->data,
                                .len = f->len,
                                .mode = f->mode,
                                .mtime = f->mtime,
                                .mtime_ns = f->mtime_ns,
                                .folder = f->folder};
    }
    plan->files = all;
    plan->file_count = d->file_count;
}

void aq_quarantine_plan(aq_arena *a, const aq_decoys *d, aq_plan *plan)
{
    add_environment(a, d, plan);
    add_files(a, d, plan);
    plan->world = aq_side_name(d->side);
    plan->home = aq_decoys_fact(d, "person.home");
    plan->machine = &d->machine;
    plan->host = aq_decoys_fact(d, "host.name");
}
