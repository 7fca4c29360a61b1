/* Claude-style plugins: .claude-plugin/plugin.json, and the tables of hooks and MCP servers that
 * stand in it, beside it, or in other manifests. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/manifest_internal.h"

/* One handler of an event: {type: command, command: …}; other types name a URL or a prompt. */
static void read_handler(aq_reading *r, const char *role, const aq_node *handler)
{
    const char *command = aq_reading_scalar(r, aq_node_get(handler, "command"), AQ_MANIFEST_TEXT);
    const char *url = aq_reading_scalar(r, aq_node_get(handler, "url"), AQ_MANIFEST_TEXT);
    const char *prompt = aq_reading_scalar(r, aq_node_get(handler, "prompt"), AQ_MANIFEST_TEXT);

    if (command)
        aq_reading_command(r, role, command, handler->line);
    if (url)
        aq_reading_remote(r, role, url, handler->line);
    if (prompt)
        aq_reading_entry(r, role, prompt, handler->line);
    if (!command && !url && !prompt)
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, handler->line, "%s: a handler that runs nothing",
                        role);
}

/* {Event: [{matcher, hooks: [handler…]}]}, perhaps inside {"hooks": …}. */
void aq_reading_hooks(aq_reading *r, const aq_node *root)
{
    const aq_node *inner = aq_node_get(root, "hooks");

    if (inner && inner->kind == AQ_NODE_MAP)
        root = inner;
    if (!root || root->kind != AQ_NODE_MAP)
        return;
    for (const aq_node *event = root->first; event; event = event->next) {
        aq_auto_buf role = {0};
        if (event->kind != AQ_NODE_LIST)
            continue; /* "description" and the like */
        aq_buf_addf(&role, "hook:%s", event->key);
        if (!event->first)
            aq_reading_event(r, event->key);
        for (const aq_node *n = event->first; n; n = n->next) {
            const aq_node *handlers = aq_node_get(n, "hooks");
            r->matcher = aq_reading_matcher(r, n);
            aq_reading_event(r, event->key);
            if (!handlers || handlers->kind != AQ_NODE_LIST) {
                read_handler(r, aq_buf_str(&role), n);
                continue;
            }
            for (const aq_node *h = handlers->first; h; h = h->next)
                read_handler(r, aq_buf_str(&role), h);
        }
        r->matcher = NULL;
    }
}

/* "command" with its "args", blanks between them: for people and for the exercise plan. */
static const char *command_line(aq_reading *r, const aq_node *server)
{
    const aq_node *args = aq_node_get(server, "args");
    const char *command = aq_node_get_str(server, "command");
    aq_auto_buf b = {0};

    if (!command)
        return NULL;
    aq_buf_adds(&b, command);
    for (const aq_node *n = args && args->kind == AQ_NODE_LIST ? args->first : NULL; n; n = n->next)
        if (n->kind < AQ_NODE_LIST)
            aq_buf_addf(&b, " %s", n->text);
    return aq_text_quoted(r->a, b.data, b.len, AQ_MANIFEST_TEXT);
}

static void read_mcp_server(aq_reading *r, const aq_node *server)
{
    const char *command = command_line(r, server), *type = aq_node_get_str(server, "type");
    const char *url = aq_reading_scalar(r, aq_node_get(server, "url"), AQ_MANIFEST_TEXT);
    const char *name = aq_text_quoted(r->a, server->key, strlen(server->key), AQ_MANIFEST_NAME);
    bool sse = type && strcmp(type, "sse") == 0;

    if (!command && !url) {
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, server->line,
                        "MCP server \"%.60s\" has neither command nor url", server->key);
        return;
    }
    aq_capabilities_add_or_any(&r->m->implied, r->a, AQ_CAP_MCP, server->key);
    if (command)
        aq_reading_command(r, "mcp:stdio", command, server->line);
    if (url)
        aq_reading_remote(r, sse ? "mcp:sse" : "mcp:http", url, server->line);
    aq_reading_reference(r, (aq_reference){.name = name,
                                           .version = NULL,
                                           .locator = url ? url : command,
                                           .line = server->line});
}

/* {"mcpServers": {…}}, {"servers": {…}} or the table of servers itself. */
void aq_reading_servers(aq_reading *r, const aq_node *root)
{
    const aq_node *table = aq_node_get(root, "mcpServers");

    if (!table)
        table = aq_node_get(root, "servers");
    if (!table)
        table = root;
    if (!table || table->kind != AQ_NODE_MAP)
        return;
    for (const aq_node *n = table->first; n; n = n->next)
        if (n->kind == AQ_NODE_MAP)
            read_mcp_server(r, n);
}

typedef void read_table(aq_reading *r, const aq_node *root);

/* A component that is a table, a path to a file with one, or a list of either. */
static void read_tables(aq_reading *r, const aq_node *node, read_table *read)
{
    const aq_file *file, *self = r->file;
    const aq_node *root;

    if (!node)
        return;
    if (node->kind == AQ_NODE_MAP) {
        read(r, node);
    } else if (node->kind == AQ_NODE_LIST) {
        for (const aq_node *n = node->first; n; n = n->next)
            if (n->kind != AQ_NODE_LIST)
                read_tables(r, n, read);
    } else if (aq_node_str(node) && (file = aq_reading_file(r, node->text, node->line))) {
        r->file = file;
        if (aq_reading_doc(r, aq_doc_json, &root) == 0)
            read(r, root);
        r->file = self;
    }
}

/* The file at its usual place, if it is there. */
static void read_default(aq_reading *r, const char *name, read_table *read)
{
    const char *path = aq_arena_printf(r->a, "%s%s", r->root, name);
    const aq_file *file = aq_package_find(r->package, path), *self = r->file;
    const aq_node *root;

    if (!file)
        return;
    r->file = file;
    if (aq_reading_doc(r, aq_doc_json, &root) == 0)
        read(r, root);
    r->file = self;
}

/* What a plugin reads whether or not its manifest names it. */
static void read_defaults(aq_reading *r)
{
    read_default(r, "hooks/hooks.json", aq_reading_hooks);
    read_default(r, ".mcp.json", aq_reading_servers);
}

/* Paths of commands, agents and skills: they only have to stay inside. */
static void check_paths(aq_reading *r, const aq_node *node)
{
    for (const aq_node *n = node && node->kind == AQ_NODE_LIST ? node->first : node; n;
         n = node->kind == AQ_NODE_LIST ? n->next : NULL) {
        const char *p = aq_node_str(n);
        if (!p)
            continue;
        if (*p == '/' || strcmp(p, "..") == 0 || strncmp(p, "../", 3) == 0 || strstr(p, "/../") ||
            (strlen(p) > 2 && strcmp(p + strlen(p) - 3, "/..") == 0))
            aq_reading_note(r, AQ_RULE_MANIFEST_OUTSIDE, n->line, "points at %.200s", p);
    }
}

/* Fields that plugin.json and an entry of a marketplace share. */
static void read_components(aq_reading *r, const aq_node *root)
{
    static const char *const folders[] = {"commands", "agents", "skills", "outputStyles", NULL};

    read_tables(r, aq_node_get(root, "hooks"), aq_reading_hooks);
    read_tables(r, aq_node_get(root, "mcpServers"), aq_reading_servers);
    read_tables(r, aq_node_get(root, "lspServers"), aq_reading_servers);
    for (size_t i = 0; folders[i]; i++)
        check_paths(r, aq_node_get(root, folders[i]));
}

int aq_read_plugin(aq_reading *r)
{
    aq_manifest *m = r->m;
    const aq_node *root;

    m->kind = AQ_KIND_PLUGIN;
    m->dialect = "claude-plugin";
    read_defaults(r);
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    aq_reading_identity(r, aq_reading_field(r, root, "name", AQ_MANIFEST_NAME), NULL);
    m->version = aq_reading_field(r, root, "version", AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    m->license = aq_reading_field(r, root, "license", AQ_MANIFEST_NAME);
    m->author = aq_reading_person(r, aq_node_get(root, "author"));
    m->homepage = aq_reading_scalar(r, aq_node_get(root, "homepage"), AQ_MANIFEST_TEXT);
    if (!m->homepage)
        m->homepage = aq_reading_scalar(r, aq_node_get(root, "repository"), AQ_MANIFEST_TEXT);
    read_components(r, root);
    return 0;
}

/* A text that is no JSON counts: whoever reads it less strictly may find hooks there. */
bool aq_is_hooks(aq_reading *r)
{
    aq_auto_arena scratch = aq_arena_new(); /* there may be many such files */
    size_t len;
    const char *text = aq_reading_text(r, r->file, &len);
    const aq_node *root, *inner;
    aq_err ignored;

    if (aq_doc_json(scratch, text, len, "", &root, &ignored) < 0)
        return true;
    inner = aq_node_get(root, "hooks");
    if (inner && inner->kind == AQ_NODE_MAP)
        root = inner;
    for (const aq_node *n = root->kind == AQ_NODE_MAP ? root->first : NULL; n; n = n->next)
        if (n->kind == AQ_NODE_LIST && n->first &&
            (root == inner || aq_node_get(n->first, "hooks") || aq_node_get(n->first, "command")))
            return true;
    return false;
}

/* The folder is a plugin to an agent that is told to load it, though nothing gives it a name. */
int aq_read_hooks(aq_reading *r)
{
    const aq_node *root;

    r->m->kind = AQ_KIND_PLUGIN;
    r->m->dialect = "claude-plugin";
    read_default(r, ".mcp.json", aq_reading_servers);
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    aq_reading_hooks(r, root);
    return 0;
}

/* Does a path, as written in the manifest, mean the folder that the manifest speaks for? */
static bool means_itself(const char *path)
{
    return strcmp(path, ".") == 0 || strcmp(path, "./") == 0;
}

/* Where a listed plugin comes from. A path is a folder of this package, and pinned by lying in it;
 * of the others only a commit is a pin, and it is written behind the place: "github:o/r@COMMIT". */
static const char *plugin_source(aq_reading *r, const aq_node *source, const char *below)
{
    const char *kind = aq_node_get_str(source, "source"), *place = NULL, *at;
    static const char *const places[] = {"repo", "url", "package", "path"};

    if (aq_node_str(source)) {
        check_paths(r, source);
        return aq_text_quoted(r->a, aq_arena_printf(r->a, "%s%s", below, source->text),
                              strlen(below) + strlen(source->text), AQ_MANIFEST_TEXT);
    }
    for (size_t i = 0; !place && i < sizeof places / sizeof *places; i++)
        place = aq_reading_scalar(r, aq_node_get(source, places[i]), AQ_MANIFEST_NAME);
    if (!place)
        return NULL;
    at = aq_reading_scalar(r, aq_node_get(source, "sha"), 64);
    if (!at)
        at = aq_reading_scalar(r, aq_node_get(source, "ref"), 64);
    if (kind && strcmp(kind, "url") != 0)
        kind = aq_text_quoted(r->a, kind, strlen(kind), 32);
    else
        kind = NULL;
    return aq_arena_printf(r->a, "%s%s%s%s%s", kind ? kind : "", kind ? ":" : "", place,
                           at ? "@" : "", at ? at : "");
}

/* One row of "plugins". It may describe the plugin whole, so that there is no plugin.json. */
static void read_listed_plugin(aq_reading *r, const aq_node *n, const char *below)
{
    const aq_node *source = aq_node_get(n, "source");
    const char *root = r->root, *path = aq_node_str(source);
    aq_reference ref = {.name = aq_reading_field(r, n, "name", AQ_MANIFEST_NAME),
                        .version = aq_reading_field(r, n, "version", AQ_MANIFEST_NAME),
                        .line = n->line};

    if (n->kind != AQ_NODE_MAP || !ref.name || !source) {
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, n->line,
                        "a listed plugin needs a name and a source");
        return;
    }
    ref.locator = plugin_source(r, source, below);
    if (!path || !means_itself(path))
        aq_reading_reference(r, ref);
    if (path && !means_itself(path)) {
        path += strncmp(path, "./", 2) == 0 ? 2 : 0;
        below += strncmp(below, "./", 2) == 0 ? 2 : 0;
        r->root = aq_arena_printf(r->a, "%s%s%s%s", root, below, path,
                                  *path && path[strlen(path) - 1] != '/' ? "/" : "");
    }
    read_components(r, n);
    if (path && !aq_package_find(r->package,
                                 aq_arena_printf(r->a, "%s.claude-plugin/plugin.json", r->root)))
        read_defaults(r);
    r->root = root;
}

/* A repository that lists plugins, some of them its own folders, some elsewhere. */
int aq_read_marketplace(aq_reading *r)
{
    aq_manifest *m = r->m;
    const aq_node *root, *list;
    const char *below;

    m->kind = AQ_KIND_PLUGIN;
    m->dialect = "claude-marketplace";
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    aq_reading_identity(r, aq_reading_field(r, root, "name", AQ_MANIFEST_NAME), NULL);
    m->version = aq_reading_scalar(r, aq_node_path(root, "metadata.version"), AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    if (!m->description)
        m->description =
            aq_reading_scalar(r, aq_node_path(root, "metadata.description"), AQ_MANIFEST_TEXT);
    m->author = aq_reading_person(r, aq_node_get(root, "owner"));
    below = aq_node_str(aq_node_path(root, "metadata.pluginRoot"));
    if (below && *below)
        below = aq_arena_printf(r->a, "%s%s", below, below[strlen(below) - 1] == '/' ? "" : "/");
    list = aq_node_get(root, "plugins");
    if (!list || list->kind != AQ_NODE_LIST)
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, list ? list->line : 0,
                        "a marketplace needs a list of plugins");
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n; n = n->next)
        read_listed_plugin(r, n, below ? below : "");
    return 0;
}
