/* What sort of content a file is: binary, vendored, minified, generated or plain, in this order of
 * precedence, by its path and its bytes. A claim ("generated") costs a package nothing and gains it
 * nothing: every file that can be read as text is searched for places to look, whatever its class.
 */
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cleanroom/paths.h"
#include "cleanroom/survey_core.h"
#include "cleanroom/survey_parts.h"

enum {
    HEAD = 8192,        /* bytes in which a NUL means binary */
    MARKERS = 4096,     /* bytes in which a generator says so */
    MINIFIED = 2000,    /* a smaller file is not called minified by its measures */
    AVERAGE_LINE = 300, /* bytes of a line, on average, that nobody writes by hand */
};

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcasecmp(s + n - m, end) == 0;
}

static bool any_end(const char *s, const char *const *ends)
{
    for (; *ends; ends++)
        if (ends_with(s, *ends))
            return true;
    return false;
}

/* Is one of the folders above the file in the list? */
static bool in_folder(const char *path, const char *const *names)
{
    const char *slash;

    for (; (slash = strchr(path, '/')); path = slash + 1)
        for (size_t i = 0; names[i]; i++)
            if (strlen(names[i]) == (size_t)(slash - path) &&
                strncasecmp(path, names[i], (size_t)(slash - path)) == 0)
                return true;
    return false;
}

bool aq_survey_prose(const char *path)
{
    static const char *const ends[] = {".md",  ".markdown", ".mdx",  ".mdc", ".txt",
                                       ".rst", ".adoc",     ".text", ".org", NULL};
    const char *name = aq_path_last(path);

    return any_end(name, ends) || strncasecmp(name, "README", 6) == 0 ||
           strncasecmp(name, "LICENSE", 7) == 0 || strncasecmp(name, "CHANGELOG", 9) == 0;
}

bool aq_survey_manifest(const char *path)
{
    static const char *const names[] = {"package.json",      "plugin.json",
                                        "marketplace.json",  "server.json",
                                        "mcp.json",          ".mcp.json",
                                        "pyproject.toml",    "manifest.json",
                                        "Cargo.toml",        "arc-bundle.yaml",
                                        "arc-manifest.yaml", "arc-manifest.yml",
                                        "pai-manifest.yaml", NULL};

    for (size_t i = 0; names[i]; i++)
        if (strcasecmp(aq_path_last(path), names[i]) == 0)
            return true;
    return false;
}

aq_comment_style aq_survey_comments(const char *path)
{
    static const char *const slashes[] = {
        ".c",    ".h",  ".cc",    ".cpp",    ".hpp",   ".js",    ".mjs", ".cjs",  ".ts", ".tsx",
        ".jsx",  ".go", ".rs",    ".java",   ".kt",    ".swift", ".css", ".scss", ".cs", ".php",
        ".dart", ".m",  ".scala", ".groovy", ".proto", ".zig",   ".sol", ".vue",  NULL};
    static const char *const dashes[] = {".sql", ".lua", ".hs", ".elm", ".adb", NULL};
    static const char *const semicolons[] = {".ini", ".asm", ".s",    ".lisp", ".el",
                                             ".clj", ".scm", ".cljs", NULL};
    static const char *const markup[] = {".html", ".htm", ".xml", ".svg", NULL};

    if (any_end(path, slashes))
        return AQ_COMMENT_SLASHES;
    if (any_end(path, dashes))
        return AQ_COMMENT_DASHES;
    if (any_end(path, semicolons))
        return AQ_COMMENT_SEMICOLON;
    if (any_end(path, markup) || aq_survey_prose(path))
        return AQ_COMMENT_MARKUP;
    return AQ_COMMENT_HASH;
}

/* Bytes that text does not have: control characters other than white space, escape and form feed.
 */
static size_t control_bytes(const unsigned char *data, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++)
        count += data[i] < 0x20 && !(data[i] >= '\t' && data[i] <= '\r') && data[i] != 0x1b;
    return count;
}

static bool mostly_malformed(const unsigned char *data, size_t len)
{
    const unsigned char *p = data, *end = data + (len < HEAD ? len : HEAD);
    size_t bad = 0, all = 0;

    while (p < end) {
        bad += aq_utf8_next(&p, end) < 0;
        all++;
    }
    return bad * 10 > 3 * all;
}

bool aq_survey_readable(const unsigned char *data, size_t len)
{
    return control_bytes(data, len) * 20 <= len;
}

static bool binary(const unsigned char *data, size_t len)
{
    return memchr(data, 0, len < HEAD ? len : HEAD) || !aq_survey_readable(data, len) ||
           mostly_malformed(data, len);
}

static bool vendored(const char *path)
{
    static const char *const folders[] = {
        "vendor",        "vendors",      "vendored",     "_vendor",          "third_party",
        "third-party",   "thirdparty",   "node_modules", "bower_components", "site-packages",
        "dist-packages", "jspm_modules", "Pods",         "Carthage",         "external_deps",
        "_vendored",     ".venv",        "venv",         "extern",           NULL};

    return in_folder(path, folders);
}

static bool minified(const char *path, const unsigned char *data, size_t len)
{
    static const char *const names[] = {".min.js", ".min.css",  ".min.mjs",   ".min.cjs",
                                        "-min.js", ".min.html", ".bundle.js", NULL};
    static const char *const data_files[] = {".csv", ".tsv", ".svg", ".jsonl", ".ipynb", NULL};
    const unsigned char *p = data, *end = data + len;
    size_t lines = 1;

    if (any_end(path, names))
        return true;
    if (len < MINIFIED || aq_survey_prose(path) || any_end(path, data_files))
        return false;
    while ((p = memchr(p, '\n', (size_t)(end - p))) && ++p < end)
        lines++;
    return len / lines > AVERAGE_LINE;
}

static bool says(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

/* Looks at the head of the file, in lower case, for the words of generators. */
static bool says_generated(const unsigned char *data, size_t len)
{
    char head[MARKERS + 1];
    size_t n = len < MARKERS ? len : MARKERS;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = data[i] ? data[i] : ' ';
        head[i] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    head[n] = 0;
    return says(head, "@generated") || says(head, "automatically generated") ||
           says(head, "auto-generated") || says(head, "autogenerated") ||
           (says(head, "generated by") && says(head, "do not edit")) ||
           (says(head, "code generated") && says(head, "do not edit")) ||
           (says(head, "this file is generated") || says(head, "this file was generated"));
}

static bool generated(const char *path, const unsigned char *data, size_t len)
{
    static const char *const folders[] = {"dist",  "__generated__", "generated", ".next",
                                          ".nuxt", "__snapshots__", NULL};
    static const char *const names[] = {"package-lock.json",
                                        "npm-shrinkwrap.json",
                                        "yarn.lock",
                                        "pnpm-lock.yaml",
                                        "bun.lock",
                                        "deno.lock",
                                        "Cargo.lock",
                                        "poetry.lock",
                                        "Pipfile.lock",
                                        "uv.lock",
                                        "pdm.lock",
                                        "composer.lock",
                                        "Gemfile.lock",
                                        "go.sum",
                                        "mix.lock",
                                        "flake.lock",
                                        NULL};
    static const char *const ends[] = {".map",          ".pb.go",       "_pb2.py", "_pb2_grpc.py",
                                       ".pb.h",         ".pb.cc",       ".g.dart", ".generated.ts",
                                       ".generated.js", ".tsbuildinfo", NULL};

    for (size_t i = 0; names[i]; i++)
        if (strcasecmp(aq_path_last(path), names[i]) == 0)
            return true;
    return any_end(path, ends) || in_folder(path, folders) || says_generated(data, len);
}

aq_content aq_survey_classify(const char *path, const unsigned char *data, size_t len)
{
    if (len > 0 && binary(data, len))
        return AQ_CONTENT_BINARY;
    if (vendored(path))
        return AQ_CONTENT_VENDORED;
    if (len > 0 && minified(path, data, len))
        return AQ_CONTENT_MINIFIED;
    if (generated(path, data, len))
        return AQ_CONTENT_GENERATED;
    return AQ_CONTENT_PLAIN;
}
