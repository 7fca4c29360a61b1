/* What the readers of all dialects share: text out of nodes, entry points, capabilities, findings
 * with their lines; see manifest_internal.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/manifest_internal.h"

const char *aq_reading_text(const aq_reading *r, const aq_file *file, size_t *len)
{
    *len = (size_t)file->size;
    return file->size ? (const char *)r->image + file->offset : "";
}

void aq_reading_note(aq_reading *r, aq_rule_id rule, uint32_t line, const char *fmt, ...)
{
    aq_auto_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    aq_buf_addv(&b, fmt, ap);
    va_end(ap);
    aq_findings_add(r->findings, rule, r->file->path, "%s", aq_buf_str(&b))->line = line;
}

/* Takes ":12" from the front of a message; 0 when it does not begin so. */
static uint32_t take_place(const char **at)
{
    uint64_t n = 0;
    const char *s = *at;

    if (s[0] != ':' || s[1] < '0' || s[1] > '9')
        return 0;
    for (s++; *s >= '0' && *s <= '9' && n < UINT32_MAX / 10; s++)
        n = 10 * n + (uint64_t)(*s - '0');
    *at = s;
    return (uint32_t)n;
}

void aq_reading_unreadable(aq_reading *r, const char *name, const char *why)
{
    size_t len = strlen(name);
    uint32_t line = 0, column = 0;
    aq_finding *f;

    if (strncmp(why, name, len) == 0 && why[len] == ':') {
        why += len;
        line = take_place(&why);
        if (line)
            column = take_place(&why);
        why += strspn(why, ": ");
    }
    f = aq_findings_add_incomplete(r->findings, AQ_RULE_MANIFEST_UNREADABLE, r->file->path, "%s",
                                   why);
    f->line = line;
    f->column = column;
}

int aq_reading_doc(aq_reading *r, aq_doc_reader *read, const aq_node **ret)
{
    const char *name = aq_text_quoted(r->a, r->file->path, strlen(r->file->path), 200);
    aq_err err = {0};
    size_t len;
    const char *text = aq_reading_text(r, r->file, &len);

    if (read(r->a, text, len, name, ret, &err) < 0) {
        aq_reading_unreadable(r, name, err.text);
        return -EBADMSG;
    }
    if ((*ret)->kind != AQ_NODE_MAP) {
        aq_auto_buf why = {0};
        aq_buf_addf(&why, "is %s; a table of fields was expected", aq_node_kind_name((*ret)->kind));
        aq_reading_unreadable(r, name, aq_buf_str(&why));
        return -EBADMSG;
    }
    return 0;
}

const aq_file *aq_reading_file(aq_reading *r, const char *path, uint32_t line)
{
    aq_auto_buf full = {0};
    const aq_file *file;

    while (path[0] == '.' && path[1] == '/')
        path += 2 + strspn(path + 2, "/");
    aq_buf_adds(&full, r->root);
    aq_buf_adds(&full, path);
    while (full.len && full.data[full.len - 1] == '/')
        full.data[--full.len] = '\0';
    if (path[0] == '/' || !aq_path_canonical(aq_buf_str(&full), full.len, AQ_MANIFEST_PATH)) {
        aq_reading_note(r, AQ_RULE_MANIFEST_OUTSIDE, line, "points at %.200s", path);
        return NULL;
    }
    file = aq_package_find(r->package, full.data);
    if (!file)
        aq_reading_note(r, AQ_RULE_MANIFEST_ABSENT_FILE, line, "names %.200s, which is not there",
                        path);
    return file;
}

const char *aq_reading_scalar(aq_reading *r, const aq_node *node, size_t max)
{
    aq_auto_buf b = {0};

    if (!node || node->kind == AQ_NODE_NULL || node->kind >= AQ_NODE_LIST)
        return NULL;
    for (const char *p = node->text; *p; p++) {
        bool blank = *p == ' ' || *p == '\n' || *p == '\r' || *p == '\t';
        if (!blank)
            aq_buf_addc(&b, *p);
        else if (b.len && b.data[b.len - 1] != ' ')
            aq_buf_addc(&b, ' ');
    }
    while (b.len && b.data[b.len - 1] == ' ')
        b.len--;
    return b.len ? aq_text_quoted(r->a, b.data, b.len, max) : NULL;
}

const char *aq_reading_field(aq_reading *r, const aq_node *map, const char *key, size_t max)
{
    const aq_node *node = aq_node_get(map, key);

    if (node && node->kind >= AQ_NODE_LIST)
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, node->line, "%s is %s; text was expected", key,
                        aq_node_kind_name(node->kind));
    return aq_reading_scalar(r, node, max);
}

const char *aq_reading_person(aq_reading *r, const aq_node *node)
{
    if (node && node->kind == AQ_NODE_LIST)
        node = node->first;
    if (node && node->kind == AQ_NODE_MAP)
        node = aq_node_get(node, "name") ? aq_node_get(node, "name") : aq_node_get(node, "github");
    return aq_reading_scalar(r, node, AQ_MANIFEST_NAME);
}

static void too_much(aq_reading *r, const char *what)
{
    aq_findings_add_incomplete(r->findings, AQ_RULE_MANIFEST_LIMIT, r->file->path,
                               "has more than %d %s", AQ_MANIFEST_ITEMS, what);
}

/* Both lists grow at powers of two, so the count tells the room that is left. */
static void *room_for(aq_reading *r, void *items, size_t count, size_t size)
{
    void *more;

    if (count && (count < 8 || (count & (count - 1)) != 0))
        return items;
    more = aq_arena_alloc(r->a, (count ? 2 * count : 8) * size);
    if (count)
        memcpy(more, items, count * size);
    return more;
}

void aq_reading_entry(aq_reading *r, const char *role, const char *command, uint32_t line)
{
    aq_manifest *m = r->m;

    if (!command || !*command)
        return;
    if (m->entry_point_count == AQ_MANIFEST_ITEMS) {
        too_much(r, "entry points");
        return;
    }
    m->entry_points = room_for(r, m->entry_points, m->entry_point_count, sizeof *m->entry_points);
    m->entry_points[m->entry_point_count++] = (aq_entry_point){
        .role = aq_text_quoted(r->a, role, strlen(role), AQ_MANIFEST_NAME),
        .command = command,
        .matcher = r->matcher,
        .file = aq_text_quoted(r->a, r->file->path, strlen(r->file->path), AQ_MANIFEST_PATH),
        .line = line,
    };
}

const char *aq_reading_matcher(aq_reading *r, const aq_node *hook)
{
    const char *s = aq_reading_field(r, hook, "matcher", AQ_MANIFEST_NAME);

    return s && (strcmp(s, "*") == 0 || strcmp(s, ".*") == 0) ? NULL : s;
}

void aq_reading_event(aq_reading *r, const char *event)
{
    aq_auto_buf pattern = {0}, matcher = {0};
    aq_capabilities narrow = {0};
    aq_err ignored;

    aq_buf_adds(&pattern, *event ? event : "*");
    /* A matcher that was cut, or has no place in a pattern, narrows nothing. */
    if (*event && r->matcher && !strstr(r->matcher, "\xe2\x80\xa6") &&
        aq_text_unquote(&matcher, r->matcher, strlen(r->matcher)) == 0)
        aq_buf_addf(&pattern, "(%s)", aq_buf_str(&matcher));
    if (aq_capabilities_add(&narrow, r->a, AQ_CAP_HOOKS, aq_buf_str(&pattern), &ignored) == 0)
        aq_capabilities_merge(&r->m->implied, r->a, &narrow);
    else
        aq_capabilities_add_or_any(&r->m->implied, r->a, AQ_CAP_HOOKS, *event ? event : "*");
}

static void imply(aq_reading *r, const char *role, aq_capability group, const char *quoted)
{
    aq_auto_buf raw = {0};

    if (!quoted || !*quoted)
        return;
    if (aq_text_unquote(&raw, quoted, strlen(quoted)) < 0) {
        aq_buf_clear(&raw);
        aq_buf_addc(&raw, '*');
    }
    aq_capabilities_add_or_any(&r->m->implied, r->a, group, aq_buf_str(&raw));
    if (strncmp(role, "hook:", 5) == 0)
        aq_reading_event(r, role + 5);
}

void aq_reading_command(aq_reading *r, const char *role, const char *command, uint32_t line)
{
    imply(r, role, AQ_CAP_SHELL, command);
    aq_reading_entry(r, role, command, line);
}

void aq_reading_remote(aq_reading *r, const char *role, const char *url, uint32_t line)
{
    /* A template ("https://${HOST}/") names its host at run time: any. */
    imply(r, role, AQ_CAP_NETWORK, url && strpbrk(url, "${") ? "*" : url);
    aq_reading_entry(r, role, url, line);
}

void aq_reading_reference(aq_reading *r, aq_reference ref)
{
    aq_manifest *m = r->m;

    if (!ref.name && !ref.locator)
        return;
    if (m->reference_count == AQ_MANIFEST_ITEMS) {
        too_much(r, "references");
        return;
    }
    m->references = room_for(r, m->references, m->reference_count, sizeof *m->references);
    ref.file = aq_text_quoted(r->a, r->file->path, strlen(r->file->path), AQ_MANIFEST_PATH);
    m->references[m->reference_count++] = ref;
}

void aq_reading_capability(aq_reading *r, aq_capability group, const char *pattern, uint32_t line)
{
    aq_err why = {0};

    if (aq_capabilities_add(&r->m->declared, r->a, group, pattern, &why) < 0)
        aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, line, "%s: \"%.120s\" %s",
                        aq_capability_name(group), pattern, why.text);
}

static const char *pattern_text(const aq_node *node, const char *const *keys)
{
    if (node->kind == AQ_NODE_MAP) {
        const aq_node *inner = NULL;
        for (; !inner && *keys; keys++)
            inner = aq_node_get(node, *keys);
        node = inner;
    }
    return node && node->kind > AQ_NODE_BOOL && node->kind < AQ_NODE_LIST ? node->text : NULL;
}

void aq_reading_patterns(aq_reading *r, aq_capability group, const aq_node *node,
                         const char *const *keys)
{
    const char *text;

    if (!node)
        return;
    aq_capabilities_none(&r->m->declared, group);
    if (node->kind == AQ_NODE_BOOL) {
        if (node->number)
            aq_reading_capability(r, group, group <= AQ_CAP_FS_WRITE ? "/**" : "*", node->line);
        return;
    }
    if (node->kind == AQ_NODE_NULL)
        return;
    if (node->kind == AQ_NODE_LIST) {
        for (const aq_node *n = node->first; n; n = n->next) {
            text = pattern_text(n, keys);
            if (text)
                aq_reading_capability(r, group, text, n->line);
            else
                aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, n->line, "%s: %s is no pattern",
                                aq_capability_name(group), aq_node_kind_name(n->kind));
        }
        return;
    }
    text = pattern_text(node, keys);
    if (text)
        aq_reading_capability(r, group, text, node->line);
    else
        aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, node->line, "%s: %s is no list of patterns",
                        aq_capability_name(group), aq_node_kind_name(node->kind));
}

void aq_reading_identity(aq_reading *r, const char *name, const char *namespace_)
{
    const char *slash = name && name[0] == '@' ? strchr(name, '/') : NULL;

    if (slash) {
        r->m->namespace_ = aq_arena_strndup(r->a, name + 1, (size_t)(slash - name - 1));
        name = slash + 1;
    }
    if (namespace_)
        r->m->namespace_ = namespace_ + (namespace_[0] == '@');
    r->m->name = name && *name ? name : NULL;
}
