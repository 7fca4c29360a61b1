/* MCP servers: server.json of the MCP registry, package.json, pyproject.toml and the tables that
 * clients keep (.mcp.json). Lifecycle scripts and build backends run at installation, so they are
 * entry points whatever else the package is. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/manifest_internal.h"

static const aq_node *silent(aq_reading *r, aq_doc_reader *read)
{
    const aq_node *root = NULL;
    size_t len;
    const char *text = aq_reading_text(r, r->file, &len);
    aq_err ignored;

    return read(r->a, text, len, "", &root, &ignored) == 0 ? root : NULL;
}

/* "mcp" as a word of a name: weather-mcp, @x/mcp_server; not "mcpherson". */
static bool names_mcp(const char *s)
{
    for (const char *p = s; p && (p = strstr(p, "mcp")); p += 3) {
        bool before = p == s || strchr("-_./@ ", p[-1]);
        if (before && (p[3] == '\0' || strchr("-_./@ [", p[3])))
            return true;
    }
    return false;
}

static bool list_has_mcp(const aq_node *list)
{
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n; n = n->next)
        if (aq_node_str(n) && (names_mcp(n->text) || strstr(n->text, "model-context-protocol") ||
                               strstr(n->text, "modelcontextprotocol")))
            return true;
    return false;
}

bool aq_is_mcp_server_json(aq_reading *r)
{
    const aq_node *root = silent(r, aq_doc_json);
    const char *schema = aq_node_get_str(root, "$schema");

    return (schema && strstr(schema, "modelcontextprotocol")) ||
           (aq_node_get(root, "name") &&
            (aq_node_get(root, "packages") || aq_node_get(root, "remotes")));
}

bool aq_is_mcp_npm(aq_reading *r)
{
    static const char *const tables[] = {"dependencies", "peerDependencies", "bin"};
    const aq_node *root = silent(r, aq_doc_json);

    if (aq_node_get(root, "mcpName") || list_has_mcp(aq_node_get(root, "keywords")) ||
        names_mcp(aq_node_get_str(root, "name")))
        return true;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const aq_node *t = aq_node_get(root, tables[i]);
        for (const aq_node *n = t && t->kind == AQ_NODE_MAP ? t->first : NULL; n; n = n->next)
            if (strncmp(n->key, "@modelcontextprotocol/", 22) == 0 ||
                strcmp(n->key, "fastmcp") == 0 || names_mcp(n->key))
                return true;
    }
    return false;
}

/* Does a PEP 508 requirement name one of the MCP libraries? */
static bool requires_mcp(const aq_node *list)
{
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n; n = n->next)
        if (aq_node_str(n) && (names_mcp(n->text) || strncmp(n->text, "fastmcp", 7) == 0 ||
                               (strncmp(n->text, "mcp", 3) == 0 && strchr("<>=~![; ", n->text[3]))))
            return true;
    return false;
}

bool aq_is_mcp_python(aq_reading *r)
{
    const aq_node *root = silent(r, aq_doc_toml), *project = aq_node_get(root, "project");
    const aq_node *poetry = aq_node_path(root, "tool.poetry");

    return requires_mcp(aq_node_get(project, "dependencies")) ||
           aq_node_path(poetry, "dependencies.mcp") ||
           aq_node_path(poetry, "dependencies.fastmcp") ||
           names_mcp(aq_node_get_str(project, "name")) ||
           names_mcp(aq_node_get_str(poetry, "name")) ||
           list_has_mcp(aq_node_get(project, "keywords"));
}

static void read_environment(aq_reading *r, const aq_node *list)
{
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n;
         n = n->next) {
        const char *name = aq_node_get_str(n, "name");
        bool secret = aq_node_truth(aq_node_get(n, "isSecret"), false) ||
                      aq_node_truth(aq_node_get(n, "is_secret"), false);
        if (name && secret)
            aq_reading_capability(r, AQ_CAP_SECRETS, name, n->line);
    }
}

/* The older spelling of the format has underscores. */
static const char *spelled(aq_reading *r, const aq_node *n, const char *one, const char *other)
{
    const char *s = aq_reading_scalar(r, aq_node_get(n, one), AQ_MANIFEST_NAME);

    return s ? s : aq_reading_scalar(r, aq_node_get(n, other), AQ_MANIFEST_NAME);
}

static void read_server_package(aq_reading *r, const aq_node *n)
{
    const char *type = spelled(r, n, "registryType", "registry_type");
    const char *name = spelled(r, n, "identifier", "name"), *hash;
    const char *version = aq_reading_scalar(r, aq_node_get(n, "version"), AQ_MANIFEST_NAME);
    const char *transport = aq_reading_scalar(r, aq_node_path(n, "transport.type"), 32);
    aq_reference ref = {.name = name, .version = version, .line = n->line};
    aq_digest d;

    if (name)
        ref.locator = aq_arena_printf(r->a, "%s:%s", type ? type : "package", name);
    hash = spelled(r, n, "fileSha256", "file_sha256");
    if (hash && aq_digest_parse(hash, &d) == 0)
        ref.sha256 = hash;
    aq_reading_reference(r, ref);
    aq_reading_entry(r, aq_arena_printf(r->a, "mcp:%s", transport ? transport : "stdio"),
                     ref.locator, n->line);
    read_environment(r, aq_node_get(n, "environmentVariables"));
    read_environment(r, aq_node_get(n, "environment_variables"));
}

int aq_read_server(aq_reading *r)
{
    const aq_node *root, *list;
    const char *name, *slash;
    aq_manifest *m = r->m;

    m->kind = AQ_KIND_MCP;
    m->dialect = "mcp-server.json";
    m->type = AQ_TYPE_TOOL;
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    name = aq_reading_field(r, root, "name", AQ_MANIFEST_NAME); /* reverse DNS, slash, name */
    slash = name ? strrchr(name, '/') : NULL;
    if (slash)
        aq_reading_identity(r, slash + 1, aq_arena_strndup(r->a, name, (size_t)(slash - name)));
    else
        aq_reading_identity(r, name, NULL);
    m->version = aq_reading_scalar(r, aq_node_get(root, "version"), AQ_MANIFEST_NAME);
    if (!m->version)
        m->version =
            aq_reading_scalar(r, aq_node_path(root, "version_detail.version"), AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    m->homepage = aq_reading_scalar(r, aq_node_get(root, "websiteUrl"), AQ_MANIFEST_TEXT);
    if (!m->homepage)
        m->homepage = aq_reading_scalar(r, aq_node_path(root, "repository.url"), AQ_MANIFEST_TEXT);
    list = aq_node_get(root, "packages");
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n; n = n->next)
        read_server_package(r, n);
    list = aq_node_get(root, "remotes");
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n;
         n = n->next) {
        const char *url = aq_node_get_str(n, "url");
        aq_reading_entry(r, "mcp:http", aq_reading_field(r, n, "url", AQ_MANIFEST_TEXT), n->line);
        if (url && !strchr(url, '{')) /* a template names its host at run time */
            aq_reading_capability(r, AQ_CAP_NETWORK, url, n->line);
        read_environment(r, aq_node_get(n, "headers"));
    }
    return 0;
}

int aq_read_mcp_config(aq_reading *r)
{
    const aq_node *root;

    r->m->kind = AQ_KIND_MCP;
    r->m->dialect = "mcp-config";
    r->m->type = AQ_TYPE_TOOL;
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    aq_reading_servers(r, root);
    return 0;
}

static void read_npm_scripts(aq_reading *r, const aq_node *scripts)
{
    static const char *const lifecycle[] = {"preinstall", "install",      "postinstall",
                                            "prepare",    "preprepare",   "postprepare",
                                            "prepublish", "dependencies", NULL};

    for (size_t i = 0; lifecycle[i]; i++) {
        const aq_node *n = aq_node_get(scripts, lifecycle[i]);
        if (n)
            aq_reading_command(r, n->key, aq_reading_scalar(r, n, AQ_MANIFEST_TEXT), n->line);
    }
}

/* {"name": "range"} as references, located by their ecosystem. */
static void read_dependencies(aq_reading *r, const aq_node *table, const char *ecosystem)
{
    for (const aq_node *n = table && table->kind == AQ_NODE_MAP ? table->first : NULL; n;
         n = n->next) {
        const char *name = aq_text_quoted(r->a, n->key, strlen(n->key), AQ_MANIFEST_NAME);
        const aq_node *version = n->kind == AQ_NODE_MAP ? aq_node_get(n, "version") : n;
        aq_reading_reference(
            r, (aq_reference){.name = name,
                              .version = aq_reading_scalar(r, version, AQ_MANIFEST_NAME),
                              .locator = aq_arena_printf(r->a, "%s:%s", ecosystem, name),
                              .line = n->line});
    }
}

static void read_programs(aq_reading *r, const char *role, const aq_node *bin)
{
    if (bin && bin->kind != AQ_NODE_MAP) {
        aq_reading_entry(r, role, aq_reading_scalar(r, bin, AQ_MANIFEST_TEXT), bin->line);
        return;
    }
    for (const aq_node *n = bin ? bin->first : NULL; n; n = n->next) {
        const aq_node *target = n->kind == AQ_NODE_MAP ? aq_node_get(n, "reference") : n;
        aq_reading_entry(r, role, aq_reading_scalar(r, target, AQ_MANIFEST_TEXT), n->line);
    }
}

int aq_read_npm(aq_reading *r)
{
    aq_manifest *m = r->m;
    const aq_node *root, *n;
    bool mcp = aq_is_mcp_npm(r);

    m->kind = mcp ? AQ_KIND_MCP : AQ_KIND_UNKNOWN;
    m->type = mcp ? AQ_TYPE_TOOL : AQ_TYPE_NONE;
    m->dialect = "package.json";
    if (aq_reading_doc(r, aq_doc_json, &root) < 0)
        return -EBADMSG;
    aq_reading_identity(r, aq_reading_field(r, root, "name", AQ_MANIFEST_NAME), NULL);
    m->version = aq_reading_field(r, root, "version", AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    n = aq_node_get(root, "license");
    m->license = aq_reading_scalar(r, n && n->kind == AQ_NODE_MAP ? aq_node_get(n, "type") : n,
                                   AQ_MANIFEST_NAME);
    m->author = aq_reading_person(r, aq_node_get(root, "author"));
    m->homepage = aq_reading_scalar(r, aq_node_get(root, "homepage"), AQ_MANIFEST_TEXT);
    read_npm_scripts(r, aq_node_get(root, "scripts"));
    read_programs(r, mcp ? "mcp:stdio" : "cli", aq_node_get(root, "bin"));
    read_dependencies(r, aq_node_get(root, "dependencies"), "npm");
    read_dependencies(r, aq_node_get(root, "optionalDependencies"), "npm");
    return 0;
}

/* "name[extra]>=1; marker" or "name @ URL". */
static void read_requirement(aq_reading *r, const aq_node *n)
{
    const char *s = aq_node_str(n);
    size_t len = s ? strcspn(s, "[<>=~!;@( \t") : 0, rest;
    aq_reference ref = {.line = n->line};

    if (!len)
        return;
    ref.name = aq_text_quoted(r->a, s, len, AQ_MANIFEST_NAME);
    ref.locator = aq_arena_printf(r->a, "pypi:%s", ref.name);
    rest = len + (s[len] == '[' ? strcspn(s + len, "]") + 1 : 0);
    if (rest < strlen(s)) {
        s += rest + strspn(s + rest, " \t");
        if (*s == '@') {
            s += 1 + strspn(s + 1, " \t");
            ref.locator = aq_text_quoted(r->a, s, strlen(s), AQ_MANIFEST_TEXT);
        } else if (*s && *s != ';')
            ref.version = aq_text_quoted(r->a, s, strcspn(s, ";"), AQ_MANIFEST_NAME);
    }
    aq_reading_reference(r, ref);
}

static void read_requirements(aq_reading *r, const aq_node *list)
{
    for (const aq_node *n = list && list->kind == AQ_NODE_LIST ? list->first : NULL; n; n = n->next)
        read_requirement(r, n);
}

static void read_project(aq_reading *r, const aq_node *project, bool mcp)
{
    const aq_node *n, *groups = aq_node_get(project, "entry-points");
    aq_manifest *m = r->m;

    aq_reading_identity(r, aq_reading_field(r, project, "name", AQ_MANIFEST_NAME), NULL);
    m->version = aq_reading_field(r, project, "version", AQ_MANIFEST_NAME);
    m->description = aq_reading_field(r, project, "description", AQ_MANIFEST_TEXT);
    n = aq_node_get(project, "license");
    if (n && n->kind == AQ_NODE_MAP)
        n = aq_node_get(n, "text");
    m->license = aq_reading_scalar(r, n, AQ_MANIFEST_NAME);
    m->author = aq_reading_person(r, aq_node_get(project, "authors"));
    m->homepage = aq_reading_scalar(r, aq_node_path(project, "urls.Homepage"), AQ_MANIFEST_TEXT);
    if (!m->homepage)
        m->homepage = aq_reading_scalar(r, aq_node_get(project, "homepage"), AQ_MANIFEST_TEXT);
    read_programs(r, mcp ? "mcp:stdio" : "cli", aq_node_get(project, "scripts"));
    read_programs(r, "cli", aq_node_get(project, "gui-scripts"));
    for (n = groups && groups->kind == AQ_NODE_MAP ? groups->first : NULL; n; n = n->next)
        read_programs(r, aq_arena_printf(r->a, "plugin:%s", n->key), n);
    read_requirements(r, aq_node_get(project, "dependencies"));
}

int aq_read_python(aq_reading *r)
{
    aq_manifest *m = r->m;
    const aq_node *root, *project, *backend;
    bool mcp = aq_is_mcp_python(r);

    m->kind = mcp ? AQ_KIND_MCP : AQ_KIND_UNKNOWN;
    m->type = mcp ? AQ_TYPE_TOOL : AQ_TYPE_NONE;
    m->dialect = "pyproject";
    if (aq_reading_doc(r, aq_doc_toml, &root) < 0)
        return -EBADMSG;
    project = aq_node_get(root, "project");
    if (project) {
        read_project(r, project, mcp);
    } else if ((project = aq_node_path(root, "tool.poetry"))) {
        read_project(r, project, mcp);
        read_dependencies(r, aq_node_get(project, "dependencies"), "pypi");
    }
    backend = aq_node_path(root, "build-system.build-backend");
    if (backend)
        aq_reading_entry(r, "build", aq_reading_scalar(r, backend, AQ_MANIFEST_TEXT),
                         backend->line);
    read_requirements(r, aq_node_path(root, "build-system.requires"));
    return 0;
}
