/* Small pieces that text and HTML share: sentences about the whole, numbers, and the one way in
 * which a character from a stranger is shown. */
#include "cleanroom/report_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { HEADLINE = 64 }; /* bytes of a package's name that the first line gives it */

const char *aq_part_str(const json_t *object, const char *key, const char *fallback)
{
    const char *s = aq_json_str(object, key);

    return s ? s : fallback;
}

const char *aq_part_at(const json_t *object, const char *outer, const char *key,
                       const char *fallback)
{
    return aq_part_str(json_object_get(object, outer), key, fallback);
}

int64_t aq_part_int(const json_t *object, const char *outer, const char *key)
{
    return aq_json_int(json_object_get(object, outer), key, 0);
}

void aq_part_count(aq_buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            aq_buf_addc(out, ',');
        aq_buf_addc(out, digits[i]);
    }
}

void aq_part_bytes(aq_buf *out, uint64_t n)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t scale = 1000;
    size_t unit = 0;

    if (n < 1000) {
        aq_buf_addf(out, "%llu %s", (unsigned long long)n, n == 1 ? "byte" : "bytes");
        return;
    }
    while (unit + 1 < sizeof units / sizeof *units && n / scale >= 1000) {
        scale *= 1000;
        unit++;
    }
    if (n / scale < 10)
        aq_buf_addf(out, "%llu.%llu %s", (unsigned long long)(n / scale),
                    (unsigned long long)(n % scale / (scale / 10)), units[unit]);
    else
        aq_buf_addf(out, "%llu %s", (unsigned long long)(n / scale), units[unit]);
}

void aq_part_plural(aq_buf *out, uint64_t n, const char *one, const char *many)
{
    aq_part_count(out, n);
    aq_buf_addf(out, " %s", n == 1 ? one : many);
}

unsigned aq_part_percent(uint64_t part, uint64_t whole)
{
    uint64_t percent;

    if (whole == 0 || part == 0)
        return 0;
    if (part >= whole)
        return 100;
    percent = part > UINT64_MAX / 100 ? part / (whole / 100) : part * 100 / whole;
    return percent < 1 ? 1 : percent > 99 ? 99 : (unsigned)percent;
}

size_t aq_part_show(aq_buf *out, const char *s)
{
    const unsigned char *from = (const unsigned char *)s, *p = from;
    const unsigned char *end = from + strnlen(s, 4);
    int32_t c;

    if (p == end)
        return 0;
    c = aq_utf8_next(&p, end);
    if (c < 0)
        aq_buf_addf(out, "\\x%02x", *from);
    else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || aq_text_hidden(c))
        aq_buf_addf(out, "\\u{%x}", (unsigned)c);
    else
        aq_buf_add(out, from, (size_t)(p - from));
    return (size_t)(p - from);
}

static size_t stages_with(const json_t *report, const char *decision, const json_t **first)
{
    const json_t *stage;
    size_t i, count = 0;

    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        if (strcmp(aq_part_str(stage, "decision", ""), decision) == 0 && count++ == 0)
            *first = stage;
    }
    return count;
}

static uint64_t findings_of(const json_t *report, const char *severity, const json_t **first)
{
    const json_t *row;
    uint64_t count = 0;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row) {
        if (strcmp(aq_part_str(row, "severity", ""), severity) == 0 && count++ == 0)
            *first = row;
    }
    json_array_foreach (json_object_get(report, "more"), i, row) {
        if (strcmp(aq_part_str(row, "severity", ""), severity) == 0)
            count += (uint64_t)aq_json_int(row, "count", 0);
    }
    return count;
}

/* Names the layers that did not run: "L1, L2 and L3 did not run". */
static void not_run(const json_t *report, aq_buf *out)
{
    const json_t *layers = json_object_get(json_object_get(report, "coverage"), "layers_not_run");
    const json_t *row;
    size_t i, n = json_array_size(layers);

    json_array_foreach (layers, i, row) {
        const char *name = aq_part_str(row, "layer", "?");
        aq_buf_adds(out, i == 0 ? "" : i + 1 < n ? ", " : " and ");
        for (const char *p = name; *p; p++)
            aq_buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p);
    }
    aq_buf_adds(out, " did not run");
}

static void inconclusive(const json_t *report, aq_buf *out)
{
    const json_t *coverage = json_object_get(report, "coverage"), *first = NULL;
    size_t unread = json_array_size(json_object_get(coverage, "unread")), begun;
    size_t left_out = json_array_size(json_object_get(coverage, "layers_not_run"));
    uint64_t review = findings_of(report, "review", &first);

    if (review) {
        aq_part_plural(out, review, "thing to look at: ", "things to look at, first: ");
        aq_buf_addf(out, "%s. Also, ", aq_part_str(first, "title", "?"));
    }
    begun = out->len;
    if (unread) {
        aq_part_plural(out, unread, "place", "places");
        aq_buf_adds(out, " of the package could not be read");
    }
    if (stages_with(report, "inconclusive", &first)) {
        aq_buf_adds(out, out->len == begun ? "" : left_out ? ", " : ", and ");
        aq_buf_addf(out, "%s could not finish", aq_part_str(first, "title", "a stage"));
    }
    if (left_out) {
        aq_buf_adds(out, out->len > begun ? ", and " : "");
        not_run(report, out);
    }
    if (out->len == begun)
        aq_buf_adds(out, "something in the package was not read to its end");
    aq_buf_adds(out, review ? "." : ": what was not checked is not known to be safe.");
}

/* A grave place to look is named before anything else is read. */
static void grave(const json_t *report, aq_buf *out)
{
    aq_auto_arena a = aq_arena_new();
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "checklist"), i, row) {
        if (strcmp(aq_part_str(row, "risk", ""), "grave") != 0)
            continue;
        aq_buf_addf(out, " Look at %s:%lld first.",
                    aq_text_printable(a, aq_part_str(row, "file", "?"), HEADLINE),
                    (long long)aq_json_int(row, "line", 0));
        return;
    }
}

static void why(const json_t *report, aq_buf *out)
{
    const char *verdict = aq_part_str(report, "verdict", "inconclusive");
    const json_t *first = NULL;
    uint64_t count;

    if (strcmp(verdict, "pass") == 0) {
        aq_buf_adds(out, "Every stage ran to its end and nothing was found that needs a person.");
    } else if (strcmp(verdict, "reject") == 0 && (count = findings_of(report, "reject", &first))) {
        aq_part_plural(out, count, "finding rejects", "findings reject");
        aq_buf_addf(out, " this package; first: %s.", aq_part_str(first, "title", "?"));
    } else if (strcmp(verdict, "reject") == 0 && stages_with(report, "reject", &first)) {
        aq_buf_addf(out, "%s rejects this package: %s", aq_part_str(first, "title", "A stage"),
                    aq_part_str(first, "reason", "no reason was given."));
    } else if (strcmp(verdict, "review") == 0) {
        count = findings_of(report, "review", &first);
        aq_part_plural(out, count, "finding needs", "findings need");
        aq_buf_addf(out, " a person's eye; first: %s.", aq_part_str(first, "title", "see below"));
    } else {
        size_t at = out->len;
        inconclusive(report, out);
        if (out->data[at] >= 'a' && out->data[at] <= 'z')
            out->data[at] = (char)(out->data[at] - 32);
    }
}

void aq_part_reason(const json_t *report, aq_buf *out)
{
    why(report, out);
    grave(report, out);
}

/* "; 1 of them (315 MB) was not read". A place in parentheses is no file. */
static void add_unread(aq_buf *out, uint64_t files, uint64_t places, uint64_t bytes)
{
    aq_buf_adds(out, "; ");
    if (files) {
        aq_part_count(out, files);
        aq_buf_adds(out, " of them");
    } else {
        aq_part_plural(out, places, "place", "places");
    }
    if (bytes) {
        aq_buf_adds(out, " (");
        aq_part_bytes(out, bytes);
        aq_buf_adds(out, ")");
    }
    aq_buf_adds(out, (files ? files : places) == 1 ? " was not read" : " were not read");
}

/* Agent Skill “acme/x” 1.0; a collection has no identity of its own: 10 Agent Skills in “skills”.
 */
static void add_identity(const json_t *package, aq_buf *out)
{
    const char *title = aq_part_str(package, "kind_title", "Package");
    const char *input = aq_part_str(package, "input", "without a name");
    const char *space = aq_part_str(package, "namespace", NULL);
    const char *version = aq_part_str(package, "version", NULL);
    uint64_t members = (uint64_t)aq_json_int(package, "members", 0);
    aq_auto_arena a = aq_arena_new();

    if (members > 1) {
        aq_part_count(out, members);
        aq_buf_addf(out, " %ss in “%s”", title, aq_text_printable(a, input, HEADLINE));
        return;
    }
    aq_buf_addf(out, "%s “", title);
    if (space)
        aq_buf_addf(out, "%s/", aq_text_printable(a, space, HEADLINE));
    aq_buf_addf(out, "%s”", aq_text_printable(a, aq_part_str(package, "name", input), HEADLINE));
    if (version)
        aq_buf_addf(out, " %s", aq_text_printable(a, version, HEADLINE / 2));
}

void aq_part_what(const json_t *report, aq_buf *out)
{
    const json_t *package = json_object_get(report, "package"), *row;
    const json_t *coverage = json_object_get(report, "coverage");
    uint64_t bytes = (uint64_t)aq_json_int(coverage, "unread_bytes_known", 0), files = 0,
             places = 0;
    size_t i;

    json_array_foreach (json_object_get(coverage, "unread"), i, row) {
        files += aq_part_str(row, "place", "(")[0] != '(';
        places++;
    }
    add_identity(package, out);
    aq_buf_adds(out, ", ");
    if (aq_json_int(package, "files", 0) == 0 && files == 0 && places) {
        /* Nothing could be taken apart: there is no count of files to give. */
        aq_part_bytes(out, bytes);
        aq_buf_adds(out, ", none of it read");
        return;
    }
    aq_part_plural(out, (uint64_t)aq_json_int(package, "files", 0) + files, "file", "files");
    aq_buf_adds(out, ", ");
    aq_part_bytes(out, (uint64_t)aq_json_int(package, "bytes", 0) + bytes);
    if (places)
        add_unread(out, files, places, bytes);
}

void aq_part_sentence(aq_buf *out, const char *message)
{
    size_t from = out->len, word = strspn(message, "abcdefghijklmnopqrstuvwxyz");

    aq_buf_adds(out, message);
    /* A file's name is no word. */
    if (word && (message[word] == ' ' || message[word] == ',' || message[word] == ':'))
        out->data[from] = (char)(out->data[from] - 32);
    if (out->len > from + 1 && out->data[out->len - 1] == '.' && out->data[out->len - 2] != '.')
        out->data[--out->len] = 0;
}

bool aq_part_automatic(const char *role)
{
    static const char *const names[] = {"postinstall", "preinstall",  "install",   "prepare",
                                        "preprepare",  "postprepare", "preremove", "postremove"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(role, names[i]) == 0)
            return true;
    return strncmp(role, "hook", 4) == 0 || strncmp(role, "mcp:", 4) == 0 ||
           strncmp(role, "lifecycle", 9) == 0;
}

void aq_part_starts(aq_buf *out, const char *role, const char *matcher)
{
    static const struct {
        const char *role, *when;
    } known[] = {
        {"hook:PreToolUse", "before a tool is used"},
        {"hook:PostToolUse", "after a tool is used"},
        {"hook:SessionStart", "when a session starts"},
        {"hook:SessionEnd", "when a session ends"},
        {"hook:UserPromptSubmit", "when the user writes"},
        {"hook:Stop", "when the agent stops"},
        {"hook:SubagentStop", "when a subagent stops"},
        {"postinstall", "after installation"},
        {"preinstall", "before installation"},
        {"install", "at installation"},
        {"prepare", "at installation"},
        {"mcp:stdio", "as an MCP server"},
    };

    if (strcmp(role, "mcp:http") == 0 || strcmp(role, "mcp:sse") == 0) {
        aq_buf_adds(out, "Connects by itself to an MCP server");
        return;
    }
    aq_buf_adds(out, "Runs by itself ");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].role, role) == 0) {
            aq_buf_adds(out, known[i].when);
            if (strncmp(role, "hook:", 5) == 0)
                aq_buf_addf(out, " (%s%s%s)", role + 5, matcher ? ": " : "",
                            matcher ? matcher : "");
            return;
        }
    aq_buf_addf(out, "at %s", strncmp(role, "hook:", 5) == 0 ? role + 5 : role);
    if (matcher)
        aq_buf_addf(out, " (%s)", matcher);
}

void aq_part_tier(const json_t *report, aq_buf *out)
{
    static const char *const names[][2] = {
        {"t0", "T0 (WebAssembly)"}, {"t1", "T1 (container)"}, {"t2", "T2 (microVM)"}};
    const char *tier = aq_part_str(report, "tier", "?");

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], tier) == 0)
            tier = names[i][1];
    aq_buf_addf(out, "%s would be needed: %s", tier, aq_part_str(report, "tier_reason", "?"));
}

uint64_t aq_part_more(const json_t *report, const char *rule)
{
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "more"), i, row)
        if (strcmp(aq_part_str(row, "rule", ""), rule) == 0)
            return (uint64_t)aq_json_int(row, "count", 0);
    return 0;
}

bool aq_part_basis(const json_t *finding)
{
    const char *rule = aq_part_str(finding, "rule", "");

    return (strcmp(rule, "intake.unsigned") == 0 || strcmp(rule, "l0.attribute.wanted") == 0) &&
           !json_is_true(json_object_get(finding, "incomplete"));
}

uint64_t aq_part_findings(const json_t *report, const char *severity)
{
    const json_t *row;
    uint64_t all = 0;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row)
        if (!aq_part_basis(row) &&
            (!severity || strcmp(aq_part_str(row, "severity", ""), severity) == 0))
            all++;
    json_array_foreach (json_object_get(report, "more"), i, row)
        if (!aq_part_basis(row) &&
            (!severity || strcmp(aq_part_str(row, "severity", ""), severity) == 0))
            all += (uint64_t)aq_json_int(row, "count", 0);
    return all;
}

void aq_part_findings_title(const json_t *report, aq_buf *out)
{
    static const char *const severities[] = {"reject", "review", "info"};
    uint64_t all = aq_part_findings(report, NULL), listed = 0;
    bool begun = false;
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row)
        listed += !aq_part_basis(row);
    if (all)
        aq_part_plural(out, all, "finding", "findings");
    else
        aq_buf_adds(out, "No findings");
    for (i = 0; i < sizeof severities / sizeof *severities; i++) {
        uint64_t n = aq_part_findings(report, severities[i]);
        if (!n)
            continue;
        aq_buf_adds(out, begun ? ", " : ": ");
        aq_part_count(out, n);
        aq_buf_addf(out, " %s", severities[i]);
        begun = true;
    }
    if (all > listed) {
        aq_buf_adds(out, " (");
        aq_part_count(out, listed);
        aq_buf_adds(out, " listed)");
    }
}

void aq_part_stage_note(const json_t *report, const json_t *stage, aq_buf *out)
{
    uint64_t members = (uint64_t)aq_part_int(report, "package", "members");
    const char *decision = aq_part_str(stage, "decision", "");

    if (strcmp(aq_part_str(stage, "layer", ""), "l0") != 0 || strcmp(decision, "not-run") == 0)
        return;
    if (members > 1) {
        aq_buf_adds(out, "first of ");
        aq_part_plural(out, members, "member", "members");
    }
    if (aq_part_int(report, "store", "known_names") == 0)
        aq_buf_addf(out, "%snames compared with nothing", out->len ? ", " : "");
}

void aq_part_names(const json_t *report, aq_buf *out)
{
    uint64_t known = (uint64_t)aq_part_int(report, "store", "known_names");

    if (known) {
        aq_buf_adds(out, "compared with ");
        aq_part_plural(out, known, "known name", "known names");
    } else {
        aq_buf_adds(out, "compared with nothing: no names are known here, so neither conflicts nor "
                         "look-alikes could be found. Load them: aquarium index import FILE");
    }
}

void aq_part_signature(const json_t *report, aq_buf *out)
{
    const char *state = aq_part_at(report, "submission", "signature", "?");

    aq_buf_adds(out, state);
    if (strcmp(state, "none") == 0)
        aq_buf_adds(out, ": nobody vouches for where these bytes came from");
}
