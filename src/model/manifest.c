/* Which manifest speaks for a package: finds the files, ranks them, has each read by the reader of
 * its dialect, and merges what they say. The ranks are fixed; a file that cannot be read keeps its
 * rank, so that breaking one manifest never elects another. */
#include "model/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "model/manifest_internal.h"

static const struct {
    const char *name, *title;
} kinds[AQ_KIND_COUNT] = {
#define AQ_KIND(id, name, title) [AQ_KIND_##id] = {name, title},
#include "model/kinds.def"
#undef AQ_KIND
};

static const char *const types[AQ_TYPE_COUNT] = {
    [AQ_TYPE_NONE] = "none",
#define AQ_TYPE(id, name) [AQ_TYPE_##id] = name,
#include "model/types.def"
#undef AQ_TYPE
};

const char *aq_kind_name(aq_kind kind)
{
    return kinds[kind].name;
}

const char *aq_kind_title(aq_kind kind)
{
    return kinds[kind].title;
}

const char *aq_type_name(aq_type type)
{
    return types[type];
}

int aq_type_find(const char *name, aq_type *ret)
{
    for (size_t i = AQ_TYPE_NONE + 1; i < AQ_TYPE_COUNT; i++) {
        if (strcmp(types[i], name) == 0) {
            *ret = (aq_type)i;
            return 0;
        }
    }
    return -ENOENT;
}

/* Lower speaks first. Up to RANK_CONFIG the file stands at the top and its name is an identity. */
enum {
    RANK_BUNDLE = 10,
    RANK_ARC = 20,
    RANK_PLUGIN = 30,
    RANK_MARKETPLACE = 35, /* names plugins; its own name is no identity of a package */
    RANK_SERVER = 40,
    RANK_SKILL = 50,
    RANK_NPM = 60,
    RANK_PYTHON = 65,
    RANK_CONFIG = 70,
    RANK_AGENT_ARC = 80,     /* agent/arc-manifest.yaml */
    RANK_SUB_PLUGIN = 90,    /* from here on several of one rank are a collection */
    RANK_SKILL_FOLDER = 100, /* skill/SKILL.md */
    RANK_SUB_SKILL = 110,
    RANK_PLAIN_NPM = 120, /* nothing in it says MCP */
    RANK_PLAIN_PYTHON = 125,
    RANK_WASM = 130,
    RANK_SPELLING = 140,  /* a manifest only where letter case does not count, or on Windows */
    RANK_HOOKS = 150,     /* hooks/hooks.json without a plugin.json beside it */
    RANK_COMPONENT = 200, /* never speaks */
};

typedef struct candidate {
    const aq_file *file;
    bool windows; /* it has the name of a manifest there alone */
    int rank;
    int (*read)(aq_reading *);
    const char *root; /* folder that it speaks for */
} candidate;

typedef struct detection {
    aq_reading r;
    const char *top; /* folder that counts as the top of the package: "" or "name/" */
    candidate *items;
    size_t count, cap;
    bool plugin, too_many;
    bool windows; /* the file at hand has another name there, and goes by that */
    const aq_file *wasm;
    size_t wasm_count;
} detection;

/* Rows for files at a fixed place below the top. Names of pages are matched in any case. */
typedef struct place {
    const char *path;
    int rank;
    int (*read)(aq_reading *);
    bool (*is_mcp)(aq_reading *); /* NULL: always; otherwise must hold */
    int else_rank;                /* when it does not; 0: no manifest at all */
} place;

static const place places[] = {
    {"arc-bundle.yaml", RANK_BUNDLE, aq_read_bundle, NULL, 0},
    {"arc-bundle.yml", RANK_BUNDLE, aq_read_bundle, NULL, 0},
    {"arc-manifest.yaml", RANK_ARC, aq_read_arc, NULL, 0},
    {"arc-manifest.yml", RANK_ARC, aq_read_arc, NULL, 0},
    {"pai-manifest.yaml", RANK_ARC, aq_read_arc, NULL, 0},
    {".claude-plugin/plugin.json", RANK_PLUGIN, aq_read_plugin, NULL, 0},
    {".claude-plugin/marketplace.json", RANK_MARKETPLACE, aq_read_marketplace, NULL, 0},
    {"server.json", RANK_SERVER, aq_read_server, aq_is_mcp_server_json, 0},
    {"SKILL.md", RANK_SKILL, aq_read_skill, NULL, 0},
    {"package.json", RANK_NPM, aq_read_npm, aq_is_mcp_npm, RANK_PLAIN_NPM},
    {"pyproject.toml", RANK_PYTHON, aq_read_python, aq_is_mcp_python, RANK_PLAIN_PYTHON},
    {".mcp.json", RANK_CONFIG, aq_read_mcp_config, NULL, 0},
    {"mcp.json", RANK_CONFIG, aq_read_mcp_config, NULL, 0},
    {"agent/arc-manifest.yaml", RANK_AGENT_ARC, aq_read_arc, NULL, 0},
    {"skill/SKILL.md", RANK_SKILL_FOLDER, aq_read_skill, NULL, 0},
};

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcasecmp(s + n - m, tail) == 0;
}

/* Code of others and version control: what lies there is not this package's own manifest. */
static bool is_foreign(const char *path)
{
    static const char *const folders[] = {"node_modules/", ".git/", "vendor/", "site-packages/",
                                          ".venv/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *p = strstr(path, folders[i]);
        if (p && (p == path || p[-1] == '/'))
            return true;
    }
    return false;
}

static void add_candidate(detection *d, const aq_file *file, int rank, int (*read)(aq_reading *),
                          const char *root)
{
    if (d->count == AQ_MANIFEST_ITEMS) {
        d->too_many = true;
        return;
    }
    if (d->count == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 16;
        candidate *more = aq_arena_alloc(d->r.a, cap * sizeof *more);
        if (d->count)
            memcpy(more, d->items, d->count * sizeof *more);
        d->items = more;
        d->cap = cap;
    }
    d->items[d->count++] =
        (candidate){.file = file, .windows = d->windows, .rank = rank, .read = read, .root = root};
}

/* "a/b/" for "a/b/.claude-plugin/plugin.json" and `tail` ".claude-plugin/plugin.json". */
static const char *folder_above(detection *d, const char *path, size_t tail)
{
    return aq_arena_strndup(d->r.a, path, strlen(path) - tail);
}

static bool at_fixed_place(detection *d, const aq_file *file, const char *path)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const place *row = &places[i];
        bool page = ends_with(row->path, ".md");
        int rank = row->rank;
        if (strcasecmp(path, row->path) != 0)
            continue;
        d->r.file = file;
        if (row->is_mcp && !row->is_mcp(&d->r))
            rank = row->else_rank;
        if (rank == RANK_PLUGIN || rank == RANK_MARKETPLACE)
            d->plugin = true;
        if (rank && (d->windows || (!page && strcmp(path, row->path) != 0)))
            rank = RANK_SPELLING;
        if (rank)
            add_candidate(d, file, rank, row->read, d->top);
        return true;
    }
    return false;
}

/* Commands and agents of a plugin at the top. */
static bool is_component(const char *path)
{
    return (strncasecmp(path, "commands/", 9) == 0 || strncasecmp(path, "agents/", 7) == 0) &&
           ends_with(path, ".md");
}

static const char plugin[] = ".claude-plugin/plugin.json";
static const char hooks[] = "hooks/hooks.json";

static bool is_exact_end(const char *path, const char *tail)
{
    return strcmp(path + strlen(path) - strlen(tail), tail) == 0;
}

/* Hooks that the reader of a plugin does not come to by itself. */
static void classify_hooks(detection *d, const aq_file *file, const char *path)
{
    const char *root = folder_above(d, path, sizeof hooks - 1);
    bool exact = !d->windows && is_exact_end(path, hooks);

    if (exact && aq_package_find(d->r.package, aq_arena_printf(d->r.a, "%s%s", root, plugin)))
        return;
    d->r.file = file;
    if (aq_is_hooks(&d->r))
        add_candidate(d, file, RANK_HOOKS, aq_read_hooks, root);
}

/* The path that counts: where Windows stores a file under another name, that one, since an agent
 * there reads the manifest that it became. */
static const char *stored_path(detection *d, const char *path)
{
    const char *below = path + strlen(d->top);
    aq_auto_buf stored = {0};

    aq_text_windows(&stored, below, strlen(below));
    d->windows = strcmp(aq_buf_str(&stored), below) != 0;
    return d->windows ? aq_arena_printf(d->r.a, "%s%s", d->top, aq_buf_str(&stored)) : path;
}

static void classify(detection *d, const aq_file *file)
{
    const char *whole, *path, *base;

    if (strncmp(file->path, d->top, strlen(d->top)) != 0)
        return;
    whole = stored_path(d, file->path);
    path = whole + strlen(d->top);
    if (is_foreign(path))
        return;
    base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (ends_with(path, ".wasm")) {
        d->wasm = file;
        d->wasm_count++;
    }
    if (at_fixed_place(d, file, path))
        return;
    if (ends_with(path, "/.claude-plugin/plugin.json"))
        add_candidate(d, file,
                      is_exact_end(path, plugin) && !d->windows ? RANK_SUB_PLUGIN : RANK_SPELLING,
                      aq_read_plugin, folder_above(d, whole, sizeof plugin - 1));
    else if (strcasecmp(path, hooks) == 0 || ends_with(path, "/hooks/hooks.json"))
        classify_hooks(d, file, whole);
    else if (strcasecmp(base, "SKILL.md") == 0)
        add_candidate(d, file, d->windows ? RANK_SPELLING : RANK_SUB_SKILL, aq_read_skill,
                      folder_above(d, whole, sizeof "SKILL.md" - 1));
    else if (d->plugin && is_component(path))
        add_candidate(d, file, d->windows ? RANK_SPELLING : RANK_COMPONENT, aq_read_component,
                      d->top);
}

static int by_rank(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->file->path, y->file->path);
}

static void collect(detection *d)
{
    d->count = d->wasm_count = 0;
    d->too_many = false;
    d->plugin = aq_package_find(d->r.package, aq_arena_printf(d->r.a, "%s%s", d->top, hooks));
    /* ".claude-plugin/" sorts before "agents/" and "commands/", so `plugin` is known in time. */
    for (size_t i = 0; i < d->r.package->count; i++)
        classify(d, &d->r.package->files[i]);
    if (d->wasm_count == 1 && (d->count == 0 || strcmp(d->r.package->form, "wasm") == 0))
        add_candidate(d, d->wasm, RANK_WASM, aq_read_wasm, d->top);
    if (d->count)
        qsort(d->items, d->count, sizeof *d->items, by_rank);
}

/* Archives often put all in one folder: "weather-1.2/SKILL.md". */
static const char *only_folder(detection *d)
{
    const aq_package *p = d->r.package;
    const char *slash = p->count ? strchr(p->files[0].path, '/') : NULL;
    size_t len = slash ? (size_t)(slash - p->files[0].path) + 1 : 0;

    for (size_t i = 1; len && i < p->count; i++)
        if (strncmp(p->files[i].path, p->files[0].path, len) != 0)
            return NULL;
    return len ? aq_arena_strndup(d->r.a, p->files[0].path, len) : NULL;
}

static const char *quoted_path(aq_arena *a, const char *path)
{
    return aq_text_quoted(a, path, strlen(path), AQ_MANIFEST_PATH);
}

/* How well a base name serves as README or licence file; 0: not at all. */
static int readme_rank(const char *base)
{
    static const char *const names[] = {"README.md",  "README",          "README.txt",
                                        "README.rst", "README.markdown", "README.adoc"};
    enum { NAMES = sizeof names / sizeof *names };

    for (int i = 0; i < NAMES; i++)
        if (strcasecmp(base, names[i]) == 0)
            return 2 * (NAMES - i) + (strcmp(base, names[i]) == 0);
    return 0;
}

static int license_rank(const char *base)
{
    static const char *const stems[] = {"license", "licence", "copying", "unlicense"};
    static const char *const tails[] = {"", ".md", ".txt", ".rst"};

    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        size_t len = strlen(stems[i]);
        if (strncasecmp(base, stems[i], len) != 0)
            continue;
        for (size_t j = 0; j < sizeof tails / sizeof *tails; j++)
            if (strcasecmp(base + len, tails[j]) == 0)
                return 20 - (int)(4 * i + j);
        if (base[len] == '-' && !strchr(base + len, '/') &&
            (!strchr(base + len, '.') || ends_with(base, ".txt") || ends_with(base, ".md")))
            return 1; /* LICENSE-MIT */
    }
    return 0;
}

/* The best match directly in `folder`, or NULL. */
static const char *find_page(const aq_reading *r, const char *folder, int (*rank)(const char *))
{
    size_t len = strlen(folder);
    const char *found = NULL;
    int best = 0;

    for (size_t i = 0; i < r->package->count; i++) {
        const char *path = r->package->files[i].path;
        int score;
        if (strncmp(path, folder, len) != 0 || strchr(path + len, '/'))
            continue;
        score = rank(path + len);
        if (score > best) {
            best = score;
            found = path;
        }
    }
    return found ? quoted_path(r->a, found) : NULL;
}

static void find_pages(detection *d, const candidate *speaker)
{
    aq_manifest *m = d->r.m;
    const char *folder = speaker ? speaker->file->path : "", *slash = strrchr(folder, '/');

    m->readme = find_page(&d->r, d->top, readme_rank);
    m->license_file = find_page(&d->r, d->top, license_rank);
    if (!slash)
        return;
    folder = aq_arena_strndup(d->r.a, folder, (size_t)(slash - folder) + 1);
    if (!m->readme)
        m->readme = find_page(&d->r, folder, readme_rank);
    if (!m->license_file)
        m->license_file = find_page(&d->r, folder, license_rank);
}

/* Letters and digits of a name in lower case: "@x/Weather_MCP" and "weather-mcp" are one. */
static void plain_name(aq_buf *out, const char *name)
{
    for (; *name; name++)
        if (strchr("-_. ", *name) == NULL)
            aq_buf_addc(out, (char)(*name >= 'A' && *name <= 'Z' ? *name + 32 : *name));
    aq_buf_str(out);
}

static void compare_names(detection *d, const candidate *c, const char *name)
{
    aq_auto_buf mine = {0}, other = {0};

    if (!d->r.m->name || !name)
        return;
    plain_name(&mine, d->r.m->name);
    plain_name(&other, name);
    if (!mine.len || !other.len || strstr(mine.data, other.data) || strstr(other.data, mine.data))
        return;
    aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_NAMES, c->file->path,
                    "is named \"%.80s\" here and \"%.80s\" in %.200s", name, d->r.m->name,
                    d->r.m->file);
}

/* A block in which every group became unsaid says nothing. */
static void drop_empty_block(aq_capabilities *c)
{
    bool said = false;

    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        said = said || c->group[g].present;
    c->present = c->present && said;
}

/* Is it run by the host or the installer, without anyone asking for it? */
static bool runs_by_itself(const char *role)
{
    static const char *const asked[] = {"cli", "build", "bundle", "wasm", "component"};

    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        if (strcmp(role, asked[i]) == 0)
            return false;
    return strncmp(role, "plugin:", 7) != 0 && strncmp(role, "mcp:", 4) != 0;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A manifest that does not speak still starts things. `work` bounds the comparisons. */
static void merge(detection *d, const aq_manifest *from, size_t *work)
{
    aq_manifest *m = d->r.m;
    enum { MOST = 16 * AQ_MANIFEST_ITEMS };

    for (size_t i = 0; i < from->entry_point_count && *work < MOST; i++, ++*work) {
        const aq_entry_point *e = &from->entry_points[i];
        size_t j = 0;
        while (j < m->entry_point_count && !(same(m->entry_points[j].role, e->role) &&
                                             same(m->entry_points[j].matcher, e->matcher) &&
                                             same(m->entry_points[j].command, e->command)))
            j++;
        if (j < m->entry_point_count)
            continue;
        d->r.matcher = e->matcher;
        aq_reading_entry(&d->r, e->role, e->command, e->line);
        d->r.matcher = NULL;
        if (j < m->entry_point_count)
            m->entry_points[j].file = e->file; /* a plugin reads files beside its own */
    }
    for (size_t i = 0; i < from->reference_count && *work < MOST; i++, ++*work) {
        const aq_reference *e = &from->references[i];
        size_t j = 0;
        while (j < m->reference_count && !(same(m->references[j].name, e->name) &&
                                           same(m->references[j].locator, e->locator)))
            j++;
        if (j < m->reference_count)
            continue;
        aq_reading_reference(&d->r, *e);
        if (j < m->reference_count)
            m->references[j].file = e->file;
    }
    if (*work == MOST)
        d->too_many = true;
}

/* A plugin or a collection has no block of its own: it declares what its members declare. A member
 * speaks for itself only, so "none" is said of the whole when every member says it. */
static void merge_declared(detection *d, const aq_capabilities *from)
{
    aq_capabilities *to = &d->r.m->declared;

    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        if (to->group[g].count == 0 && !from->group[g].present)
            to->group[g].present = false;
    aq_capabilities_merge(to, d->r.a, from);
    drop_empty_block(to);
}

/* "None" cannot stand where the manifests themselves start something. A list of tools is closed by
 * our reading only, so the group is then unsaid; a block that says it in words is contradicted. */
static void compare_implied(detection *d)
{
    aq_manifest *m = d->r.m;
    bool block = m->kind == AQ_KIND_ARC || m->kind == AQ_KIND_BUNDLE;

    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        if (!block && m->declared.group[g].count == 0 && m->implied.group[g].count > 0)
            m->declared.group[g].present = false;
    if (!block)
        drop_empty_block(&m->declared);
    if (!block || !m->declared.group[AQ_CAP_SHELL].present ||
        m->declared.group[AQ_CAP_SHELL].count > 0)
        return;
    for (size_t i = 0; i < m->entry_point_count; i++) {
        const aq_entry_point *e = &m->entry_points[i];
        aq_auto_buf path = {0};
        if (!runs_by_itself(e->role) || aq_text_unquote(&path, e->file, strlen(e->file)) < 0)
            continue;
        aq_findings_add(d->r.findings, AQ_RULE_CAPABILITY_CONTRADICTED, aq_buf_str(&path),
                        "shell is declared as none, and %.60s runs %.120s", e->role, e->command)
            ->line = e->line;
    }
}

/* What the speaker's dialect has no place for (server.json knows no licence) stands in the next
 * manifest at the top. Identity is never borrowed: name, version and type are the speaker's. */
static void merge_about(aq_manifest *m, const aq_manifest *from)
{
    if (!m->license)
        m->license = from->license;
    if (!m->author)
        m->author = from->author;
    if (!m->homepage)
        m->homepage = from->homepage;
    if (!m->description)
        m->description = from->description;
}

static bool is_member(const candidate *c)
{
    return c->rank == RANK_COMPONENT || c->rank == RANK_SUB_SKILL || c->rank == RANK_SKILL_FOLDER ||
           c->rank == RANK_SUB_PLUGIN || c->rank == RANK_SKILL;
}

/* Did a manifest read before this one name the file, or stand where it is looked for? */
static bool announced(const aq_manifest *m, const char *quoted)
{
    for (size_t i = 0; i < m->entry_point_count; i++)
        if (strcmp(m->entry_points[i].file, quoted) == 0)
            return true;
    return false;
}

/* What agents read although it does not look like part of a manifest. */
static void tell_unusual(detection *d, const candidate *c, bool known)
{
    bool hooked = c->rank == RANK_HOOKS;

    if (c->windows && (c->rank == RANK_SPELLING || hooked))
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_SPELLING, c->file->path,
                        "is %s where Windows has stored it, and %s elsewhere",
                        hooked ? hooks : "a manifest", hooked ? "another file" : "none");
    else if (c->rank == RANK_SPELLING)
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_SPELLING, c->file->path,
                        "is a manifest where letter case does not count, and none elsewhere");
    else if (hooked && !is_exact_end(c->file->path, hooks))
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_SPELLING, c->file->path,
                        "is %s where letter case does not count", hooks);
    else if (c->rank == RANK_HOOKS && !known)
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_HOOKS, c->file->path,
                        "no plugin.json stands beside it and no manifest names it");
}

static void read_others(detection *d)
{
    const candidate *speaker = &d->items[0];
    bool union_of = speaker->rank == RANK_PLUGIN || speaker->rank == RANK_MARKETPLACE ||
                    speaker->rank == RANK_SUB_PLUGIN || speaker->rank == RANK_SKILL_FOLDER ||
                    speaker->rank == RANK_SUB_SKILL;
    aq_manifest *m = d->r.m;
    size_t work = 0;

    m->also = aq_arena_alloc(d->r.a, d->count * sizeof *m->also);
    for (size_t i = 1; i < d->count; i++) {
        const candidate *c = &d->items[i];
        aq_manifest other = {0};
        aq_reading r = d->r;
        r.file = c->file;
        r.root = c->root;
        r.m = &other;
        m->also[m->also_count++] = quoted_path(d->r.a, c->file->path);
        tell_unusual(d, c, announced(m, m->also[m->also_count - 1]));
        c->read(&r); /* what it could not read is a finding already */
        d->r.file = c->file;
        merge(d, &other, &work);
        aq_capabilities_merge(&m->implied, d->r.a, &other.implied);
        if (union_of && is_member(c))
            merge_declared(d, &other.declared);
        if (c->rank <= RANK_CONFIG || c->rank == RANK_PLAIN_NPM || c->rank == RANK_PLAIN_PYTHON) {
            merge_about(m, &other);
            if (c->rank != RANK_MARKETPLACE && speaker->rank != RANK_MARKETPLACE)
                compare_names(d, c, other.name);
        }
        if (c->rank == speaker->rank && c->rank < RANK_SUB_PLUGIN)
            aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_AMBIGUOUS, c->file->path,
                            "stands beside %.200s", m->file);
    }
}

/* Two pages of one folder whose names differ only by case: SKILL.md and skill.md. */
static void check_twins(detection *d)
{
    for (size_t i = 1; i < d->count; i++) {
        const candidate *a = &d->items[i - 1], *b = &d->items[i];
        if (a->rank == b->rank && b->rank >= RANK_SUB_PLUGIN &&
            strcasecmp(a->file->path, b->file->path) == 0)
            aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_AMBIGUOUS, b->file->path,
                            "stands beside %.200s", a->file->path);
    }
}

/* Quoted text: a backslash is doubled, so a single one starts a byte that is not seen. */
static bool hides(const char *quoted)
{
    for (const char *p = quoted; p && (p = strchr(p, '\\')); p += 2)
        if (p[1] == 'x')
            return true;
    return false;
}

static void check_identity(detection *d)
{
    const aq_manifest *m = d->r.m;
    const struct {
        const char *what, *text;
    } fields[] = {{"name", m->name}, {"namespace", m->namespace_}, {"version", m->version}};

    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (hides(fields[i].text))
            aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_HIDDEN, d->items[0].file->path,
                            "the %s holds a hidden or control character: %.200s", fields[i].what,
                            fields[i].text);
}

static void speak(detection *d)
{
    const candidate *c = &d->items[0];
    size_t rank_count = 1;

    d->r.file = c->file;
    d->r.root = c->root;
    d->r.m->file = quoted_path(d->r.a, c->file->path);
    tell_unusual(d, c, false);
    c->read(&d->r);
    check_identity(d);
    read_others(d);
    check_twins(d);
    while (rank_count < d->count && d->items[rank_count].rank == c->rank)
        rank_count++;
    if (rank_count > 1 && c->rank >= RANK_SUB_PLUGIN && c->rank < RANK_COMPONENT) {
        d->r.m->members = rank_count;
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_COLLECTION, c->file->path,
                        "%zu members; L0 gates this one alone", rank_count);
    }
    if (c->rank == RANK_PLAIN_NPM || c->rank == RANK_PLAIN_PYTHON)
        aq_findings_add(d->r.findings, AQ_RULE_MANIFEST_PLAIN, c->file->path,
                        "nothing in it says that this is an MCP server, and no manifest of "
                        "another kind is there");
}

/* setup.py runs when a source package is installed, whatever pyproject.toml says. */
static void find_setup_script(detection *d)
{
    const char *path = aq_arena_printf(d->r.a, "%ssetup.py", d->top);
    const aq_file *file = aq_package_find(d->r.package, path);

    if (!file)
        return;
    d->r.file = file;
    aq_reading_command(&d->r, "build", "setup.py", 0);
}

int aq_manifest_detect(aq_arena *a, const aq_package *package, const unsigned char *image,
                       aq_findings *findings, aq_manifest *ret, aq_err *err)
{
    aq_manifest m = {0};
    detection d = {
        .r = {.a = a, .package = package, .image = image, .findings = findings, .m = &m},
        .top = "",
    };
    const char *folder;

    if (package->bytes && !image)
        return aq_fail(err, -EINVAL, "the package image is not mapped");
    collect(&d);
    folder = only_folder(&d);
    if (folder && (d.count == 0 || d.items[0].rank > RANK_AGENT_ARC) &&
        strcasecmp(folder, ".claude-plugin/") != 0) {
        d.top = folder;
        collect(&d);
    }
    if (d.count && d.items[0].rank < RANK_COMPONENT)
        speak(&d); /* that there is none is for L0 to tell */
    find_pages(&d, d.count && m.file ? &d.items[0] : NULL);
    find_setup_script(&d);
    if (d.too_many)
        aq_findings_add_incomplete(findings, AQ_RULE_MANIFEST_LIMIT, NULL,
                                   "more than %d manifests, or too much in them",
                                   AQ_MANIFEST_ITEMS);
    compare_implied(&d);
    aq_capabilities_seal(&m.declared);
    aq_capabilities_seal(&m.implied);
    *ret = m;
    return 0;
}
