/* arc packages: arc-manifest.yaml (arc/v1), its legacy name and schema (pai/v1), the form that the
 * registry's server keeps (metafactory/v1), and arc-bundle.yaml. */
#include <errno.h>
#include <string.h>

#include "model/manifest_internal.h"

static const char *const no_keys[] = {NULL};

/* {read: […], write: […]}, or the server's [{path, access}]. */
static void read_filesystem(aq_reading *r, const aq_node *fs)
{
    static const char *const keys[] = {"path", NULL};

    if (!fs)
        return;
    if (fs->kind != AQ_NODE_LIST) {
        if (fs->kind == AQ_NODE_MAP) {
            aq_reading_patterns(r, AQ_CAP_FS_READ, aq_node_get(fs, "read"), keys);
            aq_reading_patterns(r, AQ_CAP_FS_WRITE, aq_node_get(fs, "write"), keys);
        } else {
            aq_reading_patterns(r, AQ_CAP_FS_READ, fs, keys);
            aq_reading_patterns(r, AQ_CAP_FS_WRITE, fs, keys);
        }
        return;
    }
    aq_capabilities_none(&r->m->declared, AQ_CAP_FS_READ);
    aq_capabilities_none(&r->m->declared, AQ_CAP_FS_WRITE);
    for (const aq_node *n = fs->first; n; n = n->next) {
        const char *path = aq_node_get_str(n, "path"), *access = aq_node_get_str(n, "access");
        if (!path) {
            aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, n->line, "filesystem: no path in it");
            continue;
        }
        if (!access || !strstr(access, "write") || strstr(access, "read"))
            aq_reading_capability(r, AQ_CAP_FS_READ, path, n->line);
        if (!access || strstr(access, "write"))
            aq_reading_capability(r, AQ_CAP_FS_WRITE, path, n->line);
    }
}

/* {allowed: bool, restricted_to: […]}; a list or true/false alone is understood too. */
static void read_shell(aq_reading *r, const aq_node *bash)
{
    static const char *const keys[] = {"command", "pattern", NULL};
    const aq_node *allowed, *only;

    if (!bash)
        return;
    if (bash->kind != AQ_NODE_MAP) {
        aq_reading_patterns(r, AQ_CAP_SHELL, bash, keys);
        return;
    }
    allowed = aq_node_get(bash, "allowed");
    only = aq_node_get(bash, "restricted_to");
    aq_capabilities_none(&r->m->declared, AQ_CAP_SHELL);
    if (allowed && allowed->kind != AQ_NODE_BOOL)
        aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, allowed->line,
                        "shell: allowed must be true or false");
    if (!aq_node_truth(allowed, only != NULL))
        return;
    if (only && only->count)
        aq_reading_patterns(r, AQ_CAP_SHELL, only, keys);
    else
        aq_reading_capability(r, AQ_CAP_SHELL, "*", bash->line);
}

static void read_capability(aq_reading *r, const aq_node *n)
{
    static const char *const hosts[] = {"host", "domain", NULL};
    static const char *const names[] = {"name", "variable", NULL};
    static const char *const commands[] = {"command", NULL};
    static const struct {
        const char *key;
        aq_capability group;
        const char *const *inner;
    } plain[] = {
        {"network", AQ_CAP_NETWORK, hosts},
        {"secrets", AQ_CAP_SECRETS, names},
        {"subprocess", AQ_CAP_SHELL, commands},
        {"environment", AQ_CAP_SECRETS, names},
        {"subagents", AQ_CAP_SUBAGENTS, names},
        {"agents", AQ_CAP_SUBAGENTS, names},
        {"mcp", AQ_CAP_MCP, names},
        {"hooks", AQ_CAP_HOOKS, names},
        {"clock", AQ_CAP_CLOCK, no_keys},
        {"crypto", AQ_CAP_CRYPTO, no_keys},
    };

    if (strcmp(n->key, "filesystem") == 0) {
        read_filesystem(r, n);
        return;
    }
    if (strcmp(n->key, "bash") == 0 || strcmp(n->key, "shell") == 0) {
        read_shell(r, n);
        return;
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(n->key, plain[i].key) == 0) {
            aq_reading_patterns(r, plain[i].group, n, plain[i].inner);
            return;
        }
    }
    if (strcmp(n->key, "skills") != 0) /* a dependency, not something that is allowed */
        aq_reading_note(r, AQ_RULE_CAPABILITY_UNKNOWN, n->line, "capability \"%.60s\"", n->key);
}

static void read_capabilities(aq_reading *r, const aq_node *block)
{
    if (!block)
        return;
    r->m->declared.present = true;
    if (block->kind == AQ_NODE_MAP) {
        for (const aq_node *n = block->first; n; n = n->next)
            read_capability(r, n);
    } else if (block->kind != AQ_NODE_NULL) {
        r->m->declared.present = false;
        aq_reading_note(r, AQ_RULE_CAPABILITY_PATTERN, block->line,
                        "capabilities is %s; a table of groups was expected",
                        aq_node_kind_name(block->kind));
    }
}

/* {phase: command} and {phase: [commands]} both occur. */
static void read_phases(aq_reading *r, const aq_node *phases)
{
    if (!phases || phases->kind != AQ_NODE_MAP)
        return;
    for (const aq_node *n = phases->first; n; n = n->next) {
        if (n->kind == AQ_NODE_LIST)
            for (const aq_node *c = n->first; c; c = c->next)
                aq_reading_command(r, n->key, aq_reading_scalar(r, c, AQ_MANIFEST_TEXT), c->line);
        else
            aq_reading_command(r, n->key, aq_reading_scalar(r, n, AQ_MANIFEST_TEXT), n->line);
    }
}

static void read_arc_hooks(aq_reading *r, const aq_node *hooks)
{
    const char *config = aq_node_str(aq_node_path(hooks, "claude_code.config"));
    const aq_file *file, *self = r->file;
    const aq_node *root;

    if (hooks && hooks->kind == AQ_NODE_LIST) {
        for (const aq_node *n = hooks->first; n; n = n->next) {
            const char *event = aq_node_get_str(n, "event");
            aq_auto_buf role = {0};
            aq_buf_addf(&role, "hook:%s", event ? event : "");
            r->matcher = aq_reading_matcher(r, n);
            aq_reading_command(r, aq_buf_str(&role),
                               aq_reading_field(r, n, "command", AQ_MANIFEST_TEXT), n->line);
        }
        r->matcher = NULL;
    }
    if (config && (file = aq_reading_file(r, config, hooks->line))) {
        r->file = file;
        if (aq_reading_doc(r, aq_doc_json, &root) == 0)
            aq_reading_hooks(r, root);
        r->file = self;
    }
}

static void read_provides(aq_reading *r, const aq_node *provides)
{
    static const char *const services[] = {"plist", "systemdUnit", NULL};
    const aq_node *cli = aq_node_get(provides, "cli"), *binary = aq_node_get(provides, "binary");

    if (cli && cli->kind == AQ_NODE_LIST) {
        for (const aq_node *n = cli->first; n; n = n->next)
            aq_reading_command(
                r, "cli",
                aq_reading_scalar(r, n->kind == AQ_NODE_MAP ? aq_node_get(n, "command") : n,
                                  AQ_MANIFEST_TEXT),
                n->line);
    }
    aq_reading_entry(r, "cli", aq_reading_scalar(r, binary, AQ_MANIFEST_TEXT),
                     binary ? binary->line : 0);
    for (size_t i = 0; services[i]; i++) {
        const aq_node *n = aq_node_get(provides, services[i]);
        if (n)
            aq_reading_command(r, "service", aq_reading_scalar(r, n, AQ_MANIFEST_TEXT), n->line);
    }
    read_arc_hooks(r, aq_node_get(provides, "hooks"));
}

static const char *pinned(aq_reading *r, const aq_node *member)
{
    const aq_node *n = aq_node_get(member, "sha256");
    const char *hex = aq_reading_scalar(r, n, AQ_MANIFEST_NAME);
    aq_digest d;

    if (hex && aq_digest_parse(hex, &d) < 0) {
        aq_reading_note(
            r, AQ_RULE_MANIFEST_FIELD, n->line,
            "sha256 must be 64 lower-case hex digits; the reference counts as not pinned");
        return NULL;
    }
    return hex;
}

static void read_references(aq_reading *r, const aq_node *list)
{
    static const char *const places[] = {"path", "locator", "repo", "source", "url", NULL};

    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n;
         n = n->next) {
        aq_reference ref = {.line = n->line};
        if (n->kind == AQ_NODE_MAP) {
            ref.name = aq_reading_field(r, n, "name", AQ_MANIFEST_NAME);
            ref.version = aq_reading_field(r, n, "version", AQ_MANIFEST_NAME);
            for (size_t i = 0; !ref.locator && places[i]; i++)
                ref.locator = aq_reading_field(r, n, places[i], AQ_MANIFEST_TEXT);
            ref.sha256 = pinned(r, n);
        } else {
            ref.name = aq_reading_scalar(r, n, AQ_MANIFEST_NAME);
        }
        aq_reading_reference(r, ref);
    }
}

static void read_common(aq_reading *r, const aq_node *root)
{
    const aq_node *type = aq_node_get(root, "type");
    aq_manifest *m = r->m;

    aq_reading_identity(r, aq_reading_field(r, root, "name", AQ_MANIFEST_NAME),
                        aq_reading_field(r, root, "namespace", AQ_MANIFEST_NAME));
    m->version = aq_reading_field(r, root, "version", AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    m->license = aq_reading_field(r, root, "license", AQ_MANIFEST_NAME);
    m->tier = aq_reading_field(r, root, "tier", AQ_MANIFEST_NAME);
    m->homepage = aq_reading_field(r, root, "homepage", AQ_MANIFEST_TEXT);
    if (!m->homepage)
        m->homepage = aq_reading_scalar(r, aq_node_get(root, "repository"), AQ_MANIFEST_TEXT);
    m->author = aq_reading_person(r, aq_node_get(root, "author"));
    if (!m->author)
        m->author = aq_reading_person(r, aq_node_get(root, "authors"));
    if (type && (!aq_node_str(type) || aq_type_find(type->text, &m->type) < 0))
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, type->line, "unknown type \"%.60s\"",
                        type->text ? type->text : aq_node_kind_name(type->kind));
}

/* The order in which members run, as entry points. */
static void read_run_order(aq_reading *r, const aq_node *order)
{
    for (const aq_node *n = order && order->kind == AQ_NODE_LIST ? order->first : NULL; n;
         n = n->next) {
        const char *name = aq_reading_scalar(r, n, AQ_MANIFEST_NAME);
        bool known = false;
        for (size_t i = 0; name && !known && i < r->m->reference_count; i++)
            known = r->m->references[i].name && strcmp(r->m->references[i].name, name) == 0;
        if (!known)
            aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, n->line,
                            "run_order names \"%.60s\", which is no reference", name ? name : "");
        aq_reading_entry(r, "bundle", name, n->line);
    }
}

int aq_read_arc(aq_reading *r)
{
    static const char *const schemas[] = {"arc/v1", "pai/v1", "metafactory/v1"};
    const aq_node *root, *schema;

    r->m->kind = AQ_KIND_ARC;
    r->m->dialect = strstr(r->file->path, "pai-manifest") ? "pai/v1" : "arc/v1";
    if (aq_reading_doc(r, aq_doc_yaml, &root) < 0)
        return -EBADMSG;
    schema = aq_node_get(root, "schema");
    for (size_t i = 0; aq_node_str(schema) && i < 3; i++) {
        if (strcmp(schema->text, schemas[i]) == 0) {
            r->m->dialect = schemas[i];
            schema = NULL;
        }
    }
    if (schema)
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, schema->line, "unknown schema \"%.60s\"",
                        schema->text ? schema->text : aq_node_kind_name(schema->kind));
    read_common(r, root);
    read_capabilities(r, aq_node_get(root, "capabilities"));
    read_provides(r, aq_node_get(root, "provides"));
    read_phases(r, aq_node_get(root, "scripts"));
    read_phases(r, aq_node_get(root, "lifecycle"));
    read_references(r, aq_node_get(root, "references"));
    read_references(r, aq_node_get(root, "dependencies"));
    read_references(r, aq_node_path(root, "depends_on.packages"));
    read_references(r, aq_node_path(root, "depends_on.skills"));
    if (r->m->type == AQ_TYPE_BUNDLE) { /* a composition may use the common file name */
        r->m->kind = AQ_KIND_BUNDLE;
        read_run_order(r, aq_node_get(root, "run_order"));
    }
    return 0;
}

int aq_read_bundle(aq_reading *r)
{
    const aq_node *root;

    r->m->kind = AQ_KIND_BUNDLE;
    r->m->dialect = "arc-bundle";
    r->m->type = AQ_TYPE_BUNDLE;
    if (aq_reading_doc(r, aq_doc_yaml, &root) < 0)
        return -EBADMSG;
    read_common(r, root);
    if (r->m->type != AQ_TYPE_BUNDLE) {
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, aq_node_get(root, "type")->line,
                        "a bundle must have type bundle");
        r->m->type = AQ_TYPE_BUNDLE;
    }
    read_capabilities(r, aq_node_get(root, "capabilities"));
    read_references(r, aq_node_get(root, "references"));
    read_run_order(r, aq_node_get(root, "run_order"));
    return 0;
}
