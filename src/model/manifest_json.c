/* The manifest model as JSON, and back from a jailed child that may be lying: every text is bounded
 * and made printable, every list counted, every unknown field refused. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "model/manifest_internal.h"

/* The plain text fields, in one table for both directions. */
static const struct {
    const char *key;
    size_t offset, max;
} texts[] = {
    {"file", offsetof(aq_manifest, file), AQ_MANIFEST_PATH},
    {"name", offsetof(aq_manifest, name), AQ_MANIFEST_NAME},
    {"namespace", offsetof(aq_manifest, namespace_), AQ_MANIFEST_NAME},
    {"version", offsetof(aq_manifest, version), AQ_MANIFEST_NAME},
    {"description", offsetof(aq_manifest, description), AQ_MANIFEST_TEXT},
    {"license", offsetof(aq_manifest, license), AQ_MANIFEST_NAME},
    {"author", offsetof(aq_manifest, author), AQ_MANIFEST_NAME},
    {"homepage", offsetof(aq_manifest, homepage), AQ_MANIFEST_TEXT},
    {"tier", offsetof(aq_manifest, tier), AQ_MANIFEST_NAME},
    {"readme", offsetof(aq_manifest, readme), AQ_MANIFEST_PATH},
    {"license_file", offsetof(aq_manifest, license_file), AQ_MANIFEST_PATH},
};

static const char *const dialects[] = {"arc/v1",      "pai/v1",        "metafactory/v1",
                                       "agent-skill", "claude-plugin", "mcp-server.json",
                                       "mcp-config",  "package.json",  "pyproject",
                                       "wasm",        "arc-bundle",    "claude-marketplace"};

static json_t *text(const char *s)
{
    return s ? json_string(s) : json_null();
}

static json_t *entry_points_json(const aq_manifest *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->entry_point_count; i++) {
        const aq_entry_point *e = &m->entry_points[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s, s:I}", "role", e->role,
                                              "command", e->command, "matcher", text(e->matcher),
                                              "file", e->file, "line", (json_int_t)e->line));
    }
    return list;
}

static json_t *references_json(const aq_manifest *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->reference_count; i++) {
        const aq_reference *e = &m->references[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:s, s:I}", "name",
                                              text(e->name), "version", text(e->version), "locator",
                                              text(e->locator), "sha256", text(e->sha256), "file",
                                              e->file, "line", (json_int_t)e->line));
    }
    return list;
}

json_t *aq_manifest_json(const aq_manifest *m)
{
    json_t *o = json_object(), *also = json_array();

    json_object_set_new(o, "kind", json_string(aq_kind_name(m->kind)));
    json_object_set_new(o, "dialect", text(m->dialect));
    json_object_set_new(o, "type", json_string(aq_type_name(m->type)));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        json_object_set_new(o, texts[i].key,
                            text(*(const char *const *)((const char *)m + texts[i].offset)));
    json_object_set_new(o, "declared", aq_capabilities_json(&m->declared));
    json_object_set_new(o, "implied", aq_capabilities_json(&m->implied));
    json_object_set_new(o, "entry_points", entry_points_json(m));
    json_object_set_new(o, "references", references_json(m));
    json_object_set_new(o, "members", json_integer((json_int_t)m->members));
    for (size_t i = 0; i < m->also_count; i++)
        json_array_append_new(also, json_string(m->also[i]));
    json_object_set_new(o, "also", also);
    return o;
}

/* Absent, null, or text of at most `max` bytes (an ellipsis may have been added). */
static int read_text(aq_arena *a, const json_t *from, const char *key, size_t max, const char **ret,
                     aq_err *err)
{
    const json_t *v = json_object_get(from, key);

    if (!v || json_is_null(v)) {
        *ret = NULL;
        return 0;
    }
    if (!json_is_string(v) || json_string_length(v) > max + 3 ||
        strlen(json_string_value(v)) != json_string_length(v))
        return aq_fail(err, -EBADMSG, "manifest: %s: text of at most %zu bytes was expected", key,
                       max);
    *ret = aq_text_printable(a, json_string_value(v), max + 8);
    return 0;
}

static int need_text(aq_arena *a, const json_t *from, const char *key, size_t max, const char **ret,
                     aq_err *err)
{
    int r = read_text(a, from, key, max, ret, err);

    return r == 0 && !*ret ? aq_fail(err, -EBADMSG, "manifest: %s is missing", key) : r;
}

static int read_line(const json_t *from, uint32_t *ret, aq_err *err)
{
    int64_t v = aq_json_int(from, "line", -1);

    if (v < 0 || v > UINT32_MAX)
        return aq_fail(err, -EBADMSG, "manifest: line out of range");
    *ret = (uint32_t)v;
    return 0;
}

static int read_list(const json_t *from, const char *key, const json_t **ret, aq_err *err)
{
    *ret = json_object_get(from, key);
    if (!json_is_array(*ret) || json_array_size(*ret) > AQ_MANIFEST_ITEMS)
        return aq_fail(err, -EBADMSG, "manifest: %s: a list of at most %d was expected", key,
                       AQ_MANIFEST_ITEMS);
    return 0;
}

static int read_entry_points(aq_arena *a, const json_t *from, aq_manifest *m, aq_err *err)
{
    static const char *const keys[] = {"role", "command", "matcher", "file", "line", NULL};
    const json_t *list;
    json_t *item;
    size_t i;
    int r = read_list(from, "entry_points", &list, err);

    if (r < 0)
        return r;
    m->entry_points = aq_arena_alloc(a, (json_array_size(list) + 1) * sizeof *m->entry_points);
    json_array_foreach ((json_t *)list, i, item) {
        aq_entry_point *e = &m->entry_points[m->entry_point_count++];
        if ((r = aq_json_only_keys(item, "manifest: entry point", keys, err)) < 0 ||
            (r = need_text(a, item, "role", AQ_MANIFEST_NAME, &e->role, err)) < 0 ||
            (r = need_text(a, item, "command", AQ_MANIFEST_TEXT, &e->command, err)) < 0 ||
            (r = read_text(a, item, "matcher", AQ_MANIFEST_NAME, &e->matcher, err)) < 0 ||
            (r = need_text(a, item, "file", AQ_MANIFEST_PATH, &e->file, err)) < 0 ||
            (r = read_line(item, &e->line, err)) < 0)
            return r;
    }
    return 0;
}

static int read_references(aq_arena *a, const json_t *from, aq_manifest *m, aq_err *err)
{
    static const char *const keys[] = {"name", "version", "locator", "sha256",
                                       "file", "line",    NULL};
    const json_t *list;
    json_t *item;
    aq_digest d;
    size_t i;
    int r = read_list(from, "references", &list, err);

    if (r < 0)
        return r;
    m->references = aq_arena_alloc(a, (json_array_size(list) + 1) * sizeof *m->references);
    json_array_foreach ((json_t *)list, i, item) {
        aq_reference *e = &m->references[m->reference_count++];
        if ((r = aq_json_only_keys(item, "manifest: reference", keys, err)) < 0 ||
            (r = read_text(a, item, "name", AQ_MANIFEST_NAME, &e->name, err)) < 0 ||
            (r = read_text(a, item, "version", AQ_MANIFEST_NAME, &e->version, err)) < 0 ||
            (r = read_text(a, item, "locator", AQ_MANIFEST_TEXT, &e->locator, err)) < 0 ||
            (r = read_text(a, item, "sha256", AQ_SHA256_HEX, &e->sha256, err)) < 0 ||
            (r = need_text(a, item, "file", AQ_MANIFEST_PATH, &e->file, err)) < 0 ||
            (r = read_line(item, &e->line, err)) < 0)
            return r;
        if (e->sha256 && aq_digest_parse(e->sha256, &d) < 0)
            return aq_fail(err, -EBADMSG, "manifest: sha256 is no digest");
    }
    return 0;
}

static int read_also(aq_arena *a, const json_t *from, aq_manifest *m, aq_err *err)
{
    const json_t *list;
    json_t *item;
    size_t i;
    int r = read_list(from, "also", &list, err);

    if (r < 0)
        return r;
    m->also = aq_arena_alloc(a, (json_array_size(list) + 1) * sizeof *m->also);
    json_array_foreach ((json_t *)list, i, item) {
        const char *s = json_string_value(item);
        if (!s || json_string_length(item) > AQ_MANIFEST_PATH + 3)
            return aq_fail(err, -EBADMSG, "manifest: also: a path was expected");
        m->also[m->also_count++] = aq_text_printable(a, s, AQ_MANIFEST_PATH + 8);
    }
    return 0;
}

static int read_words(const json_t *from, aq_manifest *m, aq_err *err)
{
    const char *kind = aq_json_str(from, "kind"), *type = aq_json_str(from, "type");
    const json_t *dialect = json_object_get(from, "dialect");
    size_t k = 0;

    while (kind && k < AQ_KIND_COUNT && strcmp(aq_kind_name((aq_kind)k), kind) != 0)
        k++;
    if (!kind || k == AQ_KIND_COUNT)
        return aq_fail(err, -EBADMSG, "manifest: unknown kind");
    m->kind = (aq_kind)k;
    if (!type || (strcmp(type, "none") != 0 && aq_type_find(type, &m->type) < 0))
        return aq_fail(err, -EBADMSG, "manifest: unknown type");
    for (k = 0; json_is_string(dialect) && k < sizeof dialects / sizeof *dialects; k++)
        if (strcmp(json_string_value(dialect), dialects[k]) == 0)
            m->dialect = dialects[k];
    if (!m->dialect && !json_is_null(dialect))
        return aq_fail(err, -EBADMSG, "manifest: unknown dialect");
    return 0;
}

int aq_manifest_read(aq_arena *a, const json_t *from, aq_manifest *ret, aq_err *err)
{
    static const char *const keys[] = {
        "kind",        "dialect", "type",         "file",       "name", "namespace", "version",
        "description", "license", "author",       "homepage",   "tier", "readme",    "license_file",
        "declared",    "implied", "entry_points", "references", "also", "members",   NULL};
    aq_manifest m = {0};
    const json_t *declared = json_object_get(from, "declared");
    const json_t *implied = json_object_get(from, "implied");
    int64_t members = aq_json_int(from, "members", 0);
    int r = aq_json_only_keys(from, "manifest", keys, err);

    if (r == 0)
        r = read_words(from, &m, err);
    for (size_t i = 0; r == 0 && i < sizeof texts / sizeof *texts; i++)
        r = read_text(a, from, texts[i].key, texts[i].max,
                      (const char **)((char *)&m + texts[i].offset), err);
    if (r == 0 && (!declared || !implied))
        r = aq_fail(err, -EBADMSG, "manifest: declared or implied is missing");
    if (r == 0)
        r = aq_capabilities_read(a, declared, &m.declared, err);
    if (r == 0)
        r = aq_capabilities_read(a, implied, &m.implied, err);
    if (r < 0 || (r = read_entry_points(a, from, &m, err)) < 0 ||
        (r = read_references(a, from, &m, err)) < 0 || (r = read_also(a, from, &m, err)) < 0)
        return r;
    if (members < 0 || members > AQ_MANIFEST_ITEMS)
        return aq_fail(err, -EBADMSG, "manifest: members is out of range");
    m.members = (uint64_t)members;
    *ret = m;
    return 0;
}
