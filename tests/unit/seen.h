/* What tests of manifests share: a package made in memory, what was read of it, and what must be.
 */
#pragma once

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/manifest.h"

/* A package in memory: name, content, name, content, …, NULL. */
typedef struct seen {
    aq_arena *a;
    aq_findings *findings;
    aq_manifest m;
} seen;

static inline int by_path(const void *a, const void *b)
{
    return strcmp(((const aq_file *)a)->path, ((const aq_file *)b)->path);
}

static inline seen look_sized(const char *const *parts, size_t last_len)
{
    seen s = {.a = aq_arena_new()};
    aq_auto_buf image = {0};
    aq_file files[64];
    aq_package p = {.form = "folder", .files = files};
    aq_err err = {0};

    s.findings = aq_findings_new(s.a);
    for (; parts[0]; parts += 2) {
        size_t len = last_len && !parts[2] ? last_len : strlen(parts[1]);
        files[p.count++] = (aq_file){.path = parts[0], .offset = image.len, .size = len};
        aq_buf_add(&image, parts[1], len);
    }
    p.bytes = image.len;
    qsort(files, p.count, sizeof *files, by_path);
    if (aq_manifest_detect(s.a, &p, (const unsigned char *)aq_buf_str(&image), s.findings, &s.m,
                           &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

#define look(...) look_sized((const char *const[]){__VA_ARGS__, NULL, NULL}, 0)

static inline void done(seen *s)
{
    aq_arena_free(s->a);
}

static inline void must_find(const seen *s, aq_rule_id rule, const char *file, unsigned line)
{
    for (size_t i = 0; i < s->findings->count; i++) {
        const aq_finding *f = &s->findings->items[i];
        if (f->rule == rule && (!file || (f->file && strcmp(f->file, file) == 0)) &&
            f->line == line)
            return;
    }
    for (size_t i = 0; i < s->findings->count; i++)
        print_error("  %s %s:%u %s\n", aq_rule_get(s->findings->items[i].rule)->name,
                    s->findings->items[i].file, s->findings->items[i].line,
                    s->findings->items[i].message);
    fail_msg("no finding %s %s:%u", aq_rule_get(rule)->name, file ? file : "", line);
}

static inline void must_be_clean(const seen *s)
{
    for (size_t i = 0; i < s->findings->count; i++)
        fail_msg("%s %s:%u %s", aq_rule_get(s->findings->items[i].rule)->name,
                 s->findings->items[i].file, s->findings->items[i].line,
                 s->findings->items[i].message);
}

/* A set of capabilities in canonical JSON. */
static inline void must_say(const aq_capabilities *c, const char *want)
{
    aq_auto_json json_t *j = aq_capabilities_json(c);
    aq_auto_buf b = {0};

    assert_int_equal(aq_json_canonical(j, &b), 0);
    assert_string_equal(aq_buf_str(&b), want);
}

static inline void must_declare(const seen *s, const char *want)
{
    must_say(&s->m.declared, want);
}

static inline void must_imply(const seen *s, const char *want)
{
    must_say(&s->m.implied, want);
}

static inline void must_start(const seen *s, size_t at, const char *role, const char *command,
                              const char *file, unsigned line)
{
    assert_true(at < s->m.entry_point_count);
    assert_string_equal(s->m.entry_points[at].role, role);
    assert_string_equal(s->m.entry_points[at].command, command);
    assert_string_equal(s->m.entry_points[at].file, file);
    assert_int_equal(s->m.entry_points[at].line, line);
}
