/* What tests of the attribute gate share: a package, a submission and a store, and the jailed job
 * that reads README and licence. */
#pragma once

#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/gate.h"
#include "folder.h"

#define PROSE "Reads the log files of a project, counts errors by day and writes a short summary.\n"
#define APACHE                                                                                     \
    "\n  Apache License\n  Version 2.0, January 2004\n  http://www.apache.org/licenses/\n"
#define MIT_TEXT                                                                                   \
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this\n"       \
    "software. THE SOFTWARE IS PROVIDED \"AS IS\", without warranty.\n"

/* ---- a package, a submission and a store ---- */

typedef struct scene {
    char dir[64];
    aq_arena *a;
    aq_store *store;
    aq_package package;
    aq_manifest manifest;
    aq_submission submission;
    aq_policy policy;
    aq_findings *findings;
    bool unread; /* intake could not read all of it */
    bool manifest_unread;
} scene;

static inline int set_up(void **state)
{
    scene *s = aq_alloc(sizeof *s);
    aq_err err = {0};

    make_folder(s->dir);
    s->a = aq_arena_new();
    assert_int_equal(aq_store_open(s->dir, &s->store, &err), 0);
    s->package.image = -1;
    s->submission = (aq_submission){.id = "1", .local = true, .publisher = "local", .nonce = "1"};
    aq_policy_default(&s->policy);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    scene *s = *state;

    if (s->package.image >= 0)
        close(s->package.image);
    aq_store_close(s->store);
    aq_arena_free(s->a);
    remove_folder(s->dir);
    free(s);
    return 0;
}

static inline int by_path(const void *a, const void *b)
{
    return strcmp(((const aq_file *)a)->path, ((const aq_file *)b)->path);
}

/* Path, content, path, content, …, NULL. */
static inline void pack(scene *s, const char *const *parts)
{
    aq_auto_buf image = {0};
    aq_file *files = aq_arena_alloc(s->a, 32 * sizeof *files);
    aq_err err = {0};

    if (s->package.image >= 0)
        close(s->package.image);
    s->package = (aq_package){.form = "folder", .files = files};
    for (; parts[0]; parts += 2) {
        files[s->package.count++] =
            (aq_file){.path = parts[0], .offset = image.len, .size = strlen(parts[1])};
        aq_buf_adds(&image, parts[1]);
    }
    qsort(files, s->package.count, sizeof *files, by_path);
    s->package.bytes = image.len;
    s->package.image = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(aq_write_full(s->package.image, image.data, image.len), 0);
    s->findings = aq_findings_new(s->a);
    assert_int_equal(aq_manifest_detect(s->a, &s->package,
                                        (const unsigned char *)aq_buf_str(&image), s->findings,
                                        &s->manifest, &err),
                     0);
    s->findings = aq_findings_new(s->a); /* the reader's own findings are tested elsewhere */
}

static inline void gate(scene *s)
{
    aq_stage_input in = {.submission = &s->submission,
                         .package = &s->package,
                         .manifest = &s->manifest,
                         .policy = &s->policy,
                         .store = s->store};
    aq_budget budget;
    aq_err err = {0};

    aq_budget_init(&budget);
    in.manifest_unread = s->manifest_unread;
    in.unread = s->unread || s->package.unread_count > 0;
    assert_int_equal(
        aq_admit(&s->submission, &s->policy, s->store, 1800000000, &in.admission, &err), 0);
    s->findings = aq_findings_new(s->a);
    if (aq_stage_l0(&in, &budget, s->findings, &err) < 0)
        fail_msg("%s", err.text);
}

#define judge(s, ...)                                                                              \
    do {                                                                                           \
        pack(s, (const char *const[]){__VA_ARGS__, NULL, NULL});                                   \
        gate(s);                                                                                   \
    } while (0)

static inline const aq_finding *find(const scene *s, aq_rule_id rule)
{
    for (size_t i = 0; i < s->findings->count; i++)
        if (s->findings->items[i].rule == rule)
            return &s->findings->items[i];
    return NULL;
}

#define found(s, id)     assert_non_null(find(s, AQ_RULE_L0_##id))
#define not_found(s, id) assert_null(find(s, AQ_RULE_L0_##id))

/* Nothing that a person must look at. */
static inline void clean(const scene *s)
{
    for (size_t i = 0; i < s->findings->count; i++)
        if (aq_finding_severity(&s->findings->items[i]) > AQ_INFO ||
            s->findings->items[i].incomplete)
            fail_msg("%s: %s", aq_rule_get(s->findings->items[i].rule)->name,
                     s->findings->items[i].message);
}

#define ARC(name, rest)                                                                            \
    "schema: arc/v1\nname: " name "\nversion: 1.0.0\ntype: skill\ndescription: Counts errors.\n"   \
    "author: Ada\n" rest
#define GOOD_ARC ARC("log-reader", "license: MIT\ncapabilities: {}\n")
#define README   "# Log reader\n\n" PROSE

static inline void know(scene *s, const char *space, const char *name, const char *who,
                        bool confirmed)
{
    aq_known k = {space, name, who, confirmed};
    aq_err err = {0};

    assert_int_equal(aq_store_know(s->store, &k, &err), 0);
}

static inline void judge_name(scene *s, const char *name)
{
    char text[400];

    snprintf(text, sizeof text, "---\nname: \"%s\"\ndescription: d\n---\n" PROSE, name);
    judge(s, "SKILL.md", text);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* This program is its own jail: in the child it does not come back. */
static inline void be_the_jail(int argc, char **argv)
{
    static const aq_jail_job jobs[] = {{.name = "gate",
                                        .run = aq_gate_job,
                                        .memory = 256 << 20,
                                        .seconds = 10,
                                        .warm = aq_gate_warm},
                                       {.name = NULL}};

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(jobs, argc, argv);
}
