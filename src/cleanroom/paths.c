/* Names of entries; see paths.h. */
#include "cleanroom/paths.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/siphash.h"

aq_name aq_name_canonical(const char *raw, size_t len, aq_buf *out, aq_rule_id *rule)
{
    size_t start = out->len, at = 0;
    bool untidy = false;

    if (len > 0 && raw[0] == '/') {
        *rule = AQ_RULE_INTAKE_PATH_ABSOLUTE;
        return AQ_NAME_BAD;
    }
    if (memchr(raw, '\0', len)) {
        *rule = AQ_RULE_INTAKE_PATH_INVALID;
        return AQ_NAME_BAD;
    }
    while (at < len) {
        const char *slash = memchr(raw + at, '/', len - at);
        size_t n = slash ? (size_t)(slash - raw) - at : len - at;
        if (n == 2 && raw[at] == '.' && raw[at + 1] == '.') {
            *rule = AQ_RULE_INTAKE_PATH_PARENT;
            return AQ_NAME_BAD;
        }
        if (n == 0 || (n == 1 && raw[at] == '.')) {
            untidy = untidy || at > 0;
        } else {
            if (out->len > start)
                aq_buf_addc(out, '/');
            aq_buf_add(out, raw + at, n);
        }
        at += n + 1;
    }
    if (out->len == start)
        return AQ_NAME_ROOT;
    return untidy ? AQ_NAME_UNTIDY : AQ_NAME_GOOD;
}

const char *aq_path_last(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool aq_name_leads_out(const char *name, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t n = 0;
        while (at + n < len && name[at + n] != '/' && name[at + n] != '\\')
            n++;
        if (n == 2 && name[at] == '.' && name[at + 1] == '.')
            return true;
        at += n + 1;
    }
    return false;
}

bool aq_link_stays(const char *path, const char *target, size_t target_len)
{
    long depth = 0;

    if (target_len == 0 || target[0] == '/' || memchr(target, '\0', target_len) ||
        memchr(target, '\\', target_len))
        return false;
    for (; *path; path++)
        depth += *path == '/';
    for (size_t at = 0; at < target_len;) {
        const char *slash = memchr(target + at, '/', target_len - at);
        size_t n = slash ? (size_t)(slash - target) - at : target_len - at;
        if (n == 2 && target[at] == '.' && target[at + 1] == '.')
            depth--;
        else if (n > 0 && !(n == 1 && target[at] == '.'))
            depth++;
        if (depth < 0)
            return false;
        at += n + 1;
    }
    return true;
}

void aq_link_resolve(const char *path, const char *target, aq_buf *ret)
{
    const char *slash = strrchr(path, '/');

    aq_buf_clear(ret);
    aq_buf_add(ret, path, slash ? (size_t)(slash - path) : 0);
    while (*target) {
        size_t n = strcspn(target, "/");

        if (n == 2 && target[0] == '.' && target[1] == '.') {
            const char *last = ret->len ? memrchr(ret->data, '/', ret->len) : NULL;

            ret->len = last ? (size_t)(last - ret->data) : 0;
        } else if (n > 0 && !(n == 1 && target[0] == '.')) {
            if (ret->len)
                aq_buf_addc(ret, '/');
            aq_buf_add(ret, target, n);
        }
        target += n + (target[n] == '/');
    }
    aq_buf_reserve(ret, 1);
    ret->data[ret->len] = '\0';
}

const char *aq_part_of_package(const char *name)
{
    static const struct {
        const char *name, *of;
    } parts[] = {
        {"SKILL.md", "a skill"},          {"plugin.json", "a plugin"},
        {"marketplace.json", "a plugin"}, {".mcp.json", "a plugin"},
        {"server.json", "an MCP server"}, {"package.json", "a package"},
        {"manifest.json", "a package"},   {"pyproject.toml", "a package"},
        {"README.md", "a package"},       {"LICENSE", "a package"},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcasecmp(name, parts[i].name) == 0)
            return parts[i].of;
    return NULL;
}

/* ---- the set ---- */

typedef struct slot {
    const char *path;
    uint32_t len;
    bool folder;
} slot;

struct aq_path_set {
    aq_arena *arena;
    slot *slots;
    size_t count, cap, folders;
    uint64_t key[2]; /* names are chosen by strangers: collisions must not be */
};

aq_path_set *aq_path_set_new(aq_arena *a)
{
    aq_path_set *s = aq_alloc(sizeof *s);

    s->arena = a;
    s->cap = 1024;
    s->slots = aq_alloc(s->cap * sizeof *s->slots);
    aq_siphash_key(s->key);
    return s;
}

void aq_path_set_free(aq_path_set *s)
{
    if (!s)
        return;
    free(s->slots);
    free(s);
}

size_t aq_path_set_folders(const aq_path_set *s)
{
    return s->folders;
}

static uint64_t hash(const aq_path_set *s, const char *path, size_t len)
{
    aq_siphash h;

    aq_siphash_begin(&h, s->key);
    aq_siphash_add(&h, path, len);
    return aq_siphash_end(&h).low;
}

static slot *find(const aq_path_set *s, const char *path, size_t len)
{
    size_t i = hash(s, path, len) & (s->cap - 1);

    while (s->slots[i].path && (s->slots[i].len != len || memcmp(s->slots[i].path, path, len) != 0))
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

static void grow(aq_path_set *s)
{
    slot *old = s->slots;
    size_t cap = s->cap;

    s->cap *= 2;
    s->slots = aq_alloc(s->cap * sizeof *s->slots);
    for (size_t i = 0; i < cap; i++)
        if (old[i].path)
            *find(s, old[i].path, old[i].len) = old[i];
    free(old);
}

static void put(aq_path_set *s, const char *path, size_t len, bool folder)
{
    if (4 * (s->count + 1) > 3 * s->cap)
        grow(s);
    *find(s, path, len) = (slot){path, (uint32_t)len, folder};
    s->count++;
    s->folders += folder;
}

/* All folders above `path` that are not known yet; the known ones have theirs known as well. */
static bool put_parents(aq_path_set *s, const char *path, size_t len)
{
    while (len > 0) {
        const slot *known;
        while (len > 0 && path[len - 1] != '/')
            len--;
        if (len == 0)
            return true;
        len--; /* the slash */
        known = find(s, path, len);
        if (known->path)
            return known->folder;
        put(s, path, len, true);
    }
    return true;
}

aq_seen aq_path_set_add(aq_path_set *s, const char *path, size_t len, bool folder)
{
    const slot *known = find(s, path, len);
    const char *kept;

    if (known->path && folder && known->folder)
        return AQ_SEEN_FOLDER;
    if (known->path)
        return known->folder || folder ? AQ_SEEN_CONFLICT : AQ_SEEN_FILE;
    kept = aq_arena_strndup(s->arena, path, len);
    if (!put_parents(s, kept, len))
        return AQ_SEEN_CONFLICT;
    put(s, kept, len, folder);
    return AQ_SEEN_NEW;
}
