/* Agent Skills and the pages of plugins (commands, agents): Markdown with YAML front matter, and
 * the list of tools in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "model/manifest_internal.h"

typedef struct front {
    const char *text; /* starts at the end of the first line, so that lines count as in the file */
    size_t len;
    bool present, open; /* open: it starts and never ends */
    bool dots;          /* it ends with "...", which many readers do not take for an end */
} front;

/* Is the line at `p` "---" (or "..."), perhaps with blanks after it? */
static bool is_fence(const char *p, const char *end, const char *mark)
{
    if (end - p < 3 || memcmp(p, mark, 3) != 0)
        return false;
    for (p += 3; p < end && *p != '\n'; p++)
        if (*p != ' ' && *p != '\t' && *p != '\r')
            return false;
    return true;
}

static front find_front_matter(const char *text, size_t len)
{
    const char *end = text + len, *p;
    front f = {0};

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    if (!is_fence(text, end, "---"))
        return f;
    f.present = f.open = true;
    p = memchr(text, '\n', (size_t)(end - text));
    f.text = p ? p : end;
    while (p && ++p < end) {
        if (is_fence(p, end, "---") || is_fence(p, end, "...")) {
            f.open = false;
            f.dots = *p == '.';
            break;
        }
        p = memchr(p, '\n', (size_t)(end - p));
    }
    f.len = (size_t)((p && p < end ? p : end) - f.text);
    return f;
}

/* "description: Use when: asked" is refused by YAML and written all the time. Quotes such values
 * of top-level keys; everything else stays, so a second reading is as strict as the first. */
static void quote_loose_values(aq_buf *out, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *stop = eol ? eol : end, *value, *tail;
        size_t key = 0;
        while (text + key < stop &&
               (text[key] == '-' || text[key] == '_' || (text[key] >= '0' && text[key] <= '9') ||
                ((text[key] | 32) >= 'a' && (text[key] | 32) <= 'z')))
            key++;
        value = text + key + 2;
        tail = stop;
        while (tail > text && (tail[-1] == '\r' || tail[-1] == ' '))
            tail--;
        if (key && value < tail && text[key] == ':' && text[key + 1] == ' ' &&
            !strchr("'\"[{|>&*!#%@` ", *value) && memmem(value, (size_t)(tail - value), ":", 1)) {
            aq_buf_add(out, text, key + 2);
            aq_buf_addc(out, '\'');
            for (; value < tail; value++) {
                if (*value == '\'')
                    aq_buf_addc(out, '\'');
                aq_buf_addc(out, *value);
            }
            aq_buf_addc(out, '\'');
            text = tail;
        }
        aq_buf_add(out, text, (size_t)(stop - text));
        if (eol)
            aq_buf_addc(out, '\n');
        text = eol ? eol + 1 : end;
    }
}

/* The line on which `at` stands; the front matter's text begins on line 1. */
static uint32_t line_of(const front *f, const char *at)
{
    uint32_t line = 1;

    for (const char *p = f->text; p < at; p++)
        line += *p == '\n';
    return line;
}

/* Characters that one YAML reader takes for the end of a line and another for text: behind them a
 * whole field can hide. NULL when there is none. */
static const char *odd_line_end(const front *f)
{
    for (const char *p = f->text; p < f->text + f->len; p++) {
        size_t left = (size_t)(f->text + f->len - p);
        if ((*p == '\r' && (left < 2 || p[1] != '\n')) ||
            (left >= 2 && memcmp(p, "\xc2\x85", 2) == 0) ||
            (left >= 3 && (memcmp(p, "\xe2\x80\xa8", 3) == 0 || memcmp(p, "\xe2\x80\xa9", 3) == 0)))
            return p;
    }
    return NULL;
}

/* What an agent that reads more loosely than we do would see here. */
static void check_other_readers(aq_reading *r, const front *f, const aq_node *root)
{
    static const char *const known[] = {"name", "description", "license", "allowed-tools", "hooks"};
    const char *odd = odd_line_end(f);

    if (odd)
        aq_reading_note(r, AQ_RULE_MANIFEST_READINGS, line_of(f, odd),
                        "a character here ends the line for some readers and not for others");
    if (f->dots)
        aq_reading_note(r, AQ_RULE_MANIFEST_READINGS, line_of(f, f->text + f->len),
                        "the front matter ends with \"...\", which many readers read on over");
    for (const aq_node *n = root->kind == AQ_NODE_MAP ? root->first : NULL; n; n = n->next)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcasecmp(n->key, known[i]) == 0 && strcmp(n->key, known[i]) != 0)
                aq_reading_note(r, AQ_RULE_MANIFEST_READINGS, n->line,
                                "\"%.40s\" counts as %s for readers that do not mind case", n->key,
                                known[i]);
}

/* 0 with *ret NULL when the page has no front matter. */
static int read_front_matter(aq_reading *r, const aq_node **ret)
{
    const char *name = aq_text_quoted(r->a, r->file->path, strlen(r->file->path), 200);
    aq_err err = {0}, again = {0};
    aq_auto_buf quoted = {0};
    size_t len;
    const char *text = aq_reading_text(r, r->file, &len);
    front f = find_front_matter(text, len);

    *ret = NULL;
    if (!f.present)
        return 0;
    if (f.open) {
        aq_reading_unreadable(r, name, "front matter starts and does not end");
        return -EBADMSG;
    }
    if (aq_doc_yaml(r->a, f.text, f.len, name, ret, &err) < 0) {
        if (f.len > AQ_DOC_BYTES) {
            aq_reading_unreadable(r, name, err.text);
            return -EBADMSG;
        }
        quote_loose_values(&quoted, f.text, f.len);
        if (aq_doc_yaml(r->a, aq_buf_str(&quoted), quoted.len, name, ret, &again) < 0) {
            aq_reading_unreadable(r, name, err.text);
            return -EBADMSG;
        }
        aq_reading_note(r, AQ_RULE_MANIFEST_LOOSE, 0, "read after quoting its values: %s",
                        err.text);
    }
    if ((*ret)->kind != AQ_NODE_MAP && (*ret)->kind != AQ_NODE_NULL) {
        aq_reading_unreadable(r, name, "front matter is no table of fields");
        return -EBADMSG;
    }
    check_other_readers(r, &f, *ret);
    return 0;
}

typedef struct tool {
    const char *name;
    aq_capability group; /* AQ_CAP_COUNT: nothing that is declared */
    const char *any;     /* the pattern when the tool has no argument */
} tool;

static const tool tools[] = {
    {"Read", AQ_CAP_FS_READ, "/**"},
    {"Glob", AQ_CAP_FS_READ, "/**"},
    {"Grep", AQ_CAP_FS_READ, "/**"},
    {"LS", AQ_CAP_FS_READ, "/**"},
    {"NotebookRead", AQ_CAP_FS_READ, "/**"},
    {"Write", AQ_CAP_FS_WRITE, "/**"},
    {"Edit", AQ_CAP_FS_WRITE, "/**"},
    {"MultiEdit", AQ_CAP_FS_WRITE, "/**"},
    {"NotebookEdit", AQ_CAP_FS_WRITE, "/**"},
    {"Bash", AQ_CAP_SHELL, "*"},
    {"Shell", AQ_CAP_SHELL, "*"},
    {"PowerShell", AQ_CAP_SHELL, "*"},
    {"Monitor", AQ_CAP_SHELL, "*"},
    {"Python", AQ_CAP_SHELL, "python *"},
    {"WebFetch", AQ_CAP_NETWORK, "*"},
    {"WebSearch", AQ_CAP_NETWORK, "*"},
    {"Task", AQ_CAP_SUBAGENTS, "*"},
    {"Agent", AQ_CAP_SUBAGENTS, "*"},
    {"BashOutput", AQ_CAP_COUNT, NULL},
    {"KillShell", AQ_CAP_COUNT, NULL},
    {"Skill", AQ_CAP_COUNT, NULL},
    {"SlashCommand", AQ_CAP_COUNT, NULL},
    {"TodoWrite", AQ_CAP_COUNT, NULL},
    {"TodoRead", AQ_CAP_COUNT, NULL},
    {"AskUserQuestion", AQ_CAP_COUNT, NULL},
    {"ExitPlanMode", AQ_CAP_COUNT, NULL},
    {"ToolSearch", AQ_CAP_COUNT, NULL},
    {"TaskOutput", AQ_CAP_COUNT, NULL},
};

/* "mcp__server__tool" and "mcp__server" use a server. */
static void mcp_tool(aq_reading *r, const char *name, uint32_t line)
{
    const char *server = name + 5, *end = strstr(server, "__");
    const char *copy = end ? aq_arena_strndup(r->a, server, (size_t)(end - server)) : server;

    aq_reading_capability(r, AQ_CAP_MCP, copy, line);
}

/* One "Name" or "Name(argument)". */
static void read_tool(aq_reading *r, char *text, uint32_t line)
{
    char *argument = strchr(text, '('), *close = argument ? strrchr(argument, ')') : NULL;

    if (strcmp(text, "*") == 0) {
        for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
            if (tools[i].group != AQ_CAP_COUNT && strcmp(tools[i].any, "python *") != 0)
                aq_reading_capability(r, tools[i].group, tools[i].any, line);
        aq_reading_capability(r, AQ_CAP_MCP, "*", line);
        return;
    }
    if (argument && close) {
        *argument++ = '\0';
        *close = '\0';
    }
    if (strncmp(text, "mcp__", 5) == 0) {
        mcp_tool(r, text, line);
        return;
    }
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++) {
        const char *pattern = tools[i].any;
        if (strcmp(text, tools[i].name) != 0)
            continue;
        if (tools[i].group == AQ_CAP_COUNT)
            return;
        if (argument && *argument && strcmp(argument, "*") != 0)
            pattern = argument;
        if (tools[i].group == AQ_CAP_NETWORK && strncmp(pattern, "domain:", 7) == 0)
            pattern += 7;
        aq_reading_capability(r, tools[i].group, pattern, line);
        return;
    }
    aq_reading_note(r, AQ_RULE_CAPABILITY_UNKNOWN, line, "tool \"%.60s\"", text);
}

/* Commas and blanks part the tools, except inside parentheses. */
static void read_tool_list(aq_reading *r, const char *text, uint32_t line)
{
    while (*text) {
        size_t len = 0, depth = 0;
        text += strspn(text, ", \t\r\n");
        for (; text[len] && (depth || !strchr(", \t\r\n", text[len])); len++) {
            depth += text[len] == '(';
            depth -= text[len] == ')' && depth > 0;
        }
        if (len)
            read_tool(r, aq_arena_strndup(r->a, text, len), line);
        text += len;
    }
}

void aq_reading_tools(aq_reading *r, const aq_node *node)
{
    static const aq_capability told[] = {AQ_CAP_FS_READ, AQ_CAP_FS_WRITE,  AQ_CAP_NETWORK,
                                         AQ_CAP_SHELL,   AQ_CAP_SUBAGENTS, AQ_CAP_MCP};

    if (!node)
        return;
    if (node->kind == AQ_NODE_MAP || node->kind == AQ_NODE_BOOL) {
        aq_reading_note(r, AQ_RULE_MANIFEST_FIELD, node->line, "%s is %s; a list was expected",
                        node->key, aq_node_kind_name(node->kind));
        return;
    }
    /* The list is closed: a group that none of its tools is of is declared empty. */
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        aq_capabilities_none(&r->m->declared, told[i]);
    if (node->kind == AQ_NODE_STR)
        read_tool_list(r, node->text, node->line);
    for (const aq_node *n = node->kind == AQ_NODE_LIST ? node->first : NULL; n; n = n->next)
        if (aq_node_str(n))
            read_tool_list(r, n->text, n->line);
}

static const aq_node *tools_of(const aq_node *root)
{
    static const char *const keys[] = {"allowed-tools", "allowed_tools", "allowedTools", "tools"};
    const aq_node *n = NULL;

    for (size_t i = 0; !n && i < sizeof keys / sizeof *keys; i++)
        n = aq_node_get(root, keys[i]);
    return n;
}

/* A field at the top, or in the free table "metadata". */
static const aq_node *either(const aq_node *root, const char *key)
{
    const aq_node *n = aq_node_get(root, key);

    return n ? n : aq_node_get(aq_node_get(root, "metadata"), key);
}

int aq_read_component(aq_reading *r)
{
    const aq_node *root;
    int e = read_front_matter(r, &root);

    if (e < 0 || !root)
        return e;
    aq_reading_hooks(r, aq_node_get(root, "hooks"));
    aq_reading_servers(r, aq_node_get(root, "mcpServers"));
    aq_reading_tools(r, tools_of(root));
    return 0;
}

int aq_read_skill(aq_reading *r)
{
    aq_manifest *m = r->m;
    const aq_node *root;

    m->kind = AQ_KIND_SKILL;
    m->dialect = "agent-skill";
    m->type = AQ_TYPE_SKILL;
    if (read_front_matter(r, &root) < 0)
        return -EBADMSG;
    if (!root) {
        aq_reading_note(r, AQ_RULE_MANIFEST_BARE, 1, "the file does not start with front matter");
        return 0;
    }
    aq_reading_identity(r, aq_reading_field(r, root, "name", AQ_MANIFEST_NAME), NULL);
    m->description = aq_reading_field(r, root, "description", AQ_MANIFEST_TEXT);
    m->license = aq_reading_field(r, root, "license", AQ_MANIFEST_NAME);
    m->version = aq_reading_scalar(r, either(root, "version"), AQ_MANIFEST_NAME);
    m->author = aq_reading_person(r, either(root, "author"));
    m->homepage = aq_reading_scalar(r, either(root, "homepage"), AQ_MANIFEST_TEXT);
    aq_reading_hooks(r, aq_node_get(root, "hooks"));
    aq_reading_tools(r, tools_of(root));
    return 0;
}
