/* Parts of the HTML report: the walk as a picture, the four short facts, coverage and provenance.
 */
#include "cleanroom/report_html_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/report_parts.h"

enum {
    PATTERNS = 6, /* of one capability that are shown */
    STARTS = 12,  /* entry points that are shown */
};

/* The sign in a stage's circle, so that colour is not the only difference. */
static const char *mark_of(const char *decision)
{
    static const struct {
        const char *decision, *path;
    } marks[] = {
        {"pass", "M7.5 12.5l3 3 6-6.5"},
        {"review", "M12 7v6M12 16.4v.2"},
        {"reject", "M8.5 8.5l7 7M15.5 8.5l-7 7"},
        {"inconclusive", "M9.6 9.6a2.4 2.4 0 1 1 2.4 "
                         "2.9v1M12 16.6v.2"},
        {"skipped", "M8.5 12h7"},
    };

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strcmp(marks[i].decision, decision) == 0)
            return marks[i].path;
    return "";
}

void aq_html_walk(aq_buf *out, const json_t *report)
{
    const json_t *stage;
    size_t i;

    aq_buf_adds(out,
                "<nav class=\"walk\" aria-label=\"The walk of the package\"><ol class=\"wrap\">\n");
    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        const char *decision = aq_part_str(stage, "decision", "not-run");
        const char *title = aq_part_str(stage, "title", "?"), *rest = strchr(title, ' ');
        aq_auto_buf name = {0}, left_open = {0};
        aq_buf_add(&name, title, rest ? (size_t)(rest - title) : strlen(title));
        aq_buf_addf(out,
                    "<li class=\"d-%s\"><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                    "<circle class=\"dot\" cx=\"12\" cy=\"12\" r=\"10\"/>"
                    "<path class=\"mark\" d=\"%s\"/></svg>",
                    aq_html_class(decision), mark_of(decision));
        aq_html_tag(out, "<b>", aq_buf_str(&name), "");
        aq_html_tag(out, "<span>", rest ? rest : "", "</span>");
        aq_html_tag(out, "</b><span class=\"said\">",
                    strcmp(decision, "not-run") == 0 ? "not run" : decision, "");
        aq_part_stage_note(report, stage, &left_open);
        if (left_open.len)
            aq_html_tag(out, ", ", aq_buf_str(&left_open), "");
        aq_buf_adds(out, "</span></li>\n");
    }
    aq_buf_adds(out, "</ol></nav>\n");
}

static bool is_digest(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

/* A digest in eight groups that wrap evenly; copied, it has no blanks. */
void aq_html_digest(aq_buf *out, const char *digest)
{
    if (!is_digest(digest)) {
        aq_html_tag(out, "<code>", digest, "</code>");
        return;
    }
    aq_buf_adds(out, "<code class=\"digest\">");
    for (int i = 0; i < 64; i += 8)
        aq_buf_addf(out, "<span>%.8s</span>", digest + i);
    aq_buf_adds(out, "</code>");
}

static void fact(aq_buf *out, const char *title)
{
    aq_buf_addf(out, "<div><h3>%s</h3>\n", title);
}

static void write_what(aq_buf *out, const json_t *report)
{
    const json_t *package = json_object_get(report, "package");
    const json_t *submission = json_object_get(report, "submission");
    const char *manifest = aq_part_str(package, "manifest", NULL);
    const char *type = aq_part_str(package, "type", NULL), *kind = aq_part_str(package, "kind", "");

    fact(out, "What it is");
    aq_html_tag(out, "<p>", aq_part_str(package, "kind_title", "Package"), "");
    if (type && strcmp(type, kind) != 0)
        aq_html_tag(out, " of type ", type, "");
    aq_html_tag(out, ", from <code>", aq_part_str(package, "input", "?"), "</code>");
    if (manifest)
        aq_html_tag(out, ", manifest <code>", manifest, "</code>");
    aq_html_tag(out, ". Publisher: <bdi>", aq_part_str(submission, "publisher", "?"), "</bdi>");
    aq_html_tag(out, "; signature: ", aq_part_str(submission, "signature", "?"), ".</p>\n");
    aq_buf_adds(out, "<p class=\"quiet\">Package digest (SHA-256)</p>");
    aq_html_digest(out, aq_part_str(package, "digest", "?"));
    aq_buf_adds(out, "</div>\n");
}

static void write_patterns(aq_buf *out, const json_t *patterns)
{
    const json_t *p;
    size_t i;

    if (json_array_size(patterns) == 0)
        aq_buf_adds(out, "none");
    json_array_foreach (patterns, i, p) {
        if (i < PATTERNS)
            aq_html_tag(out, i ? ", <code>" : "<code>",
                        json_string_value(p) ? json_string_value(p) : "?", "</code>");
    }
    if (json_array_size(patterns) > PATTERNS)
        aq_buf_addf(out, " and %zu more", json_array_size(patterns) - PATTERNS);
}

static void write_says(aq_buf *out, const json_t *report)
{
    const json_t *package = json_object_get(report, "package"), *patterns;
    json_t *declared = json_object_get(package, "capabilities");
    const char *key;

    fact(out, "What it says it does");
    aq_html_tag(out, "<p><bdi>", aq_part_str(package, "description", "It does not say."),
                "</bdi></p>\n");
    if (!json_is_object(declared)) {
        aq_buf_adds(out, "<p class=\"quiet\">It declares no capabilities.</p></div>\n");
        return;
    }
    aq_buf_adds(out, "<ul>\n");
    json_object_foreach (declared, key, patterns) {
        aq_html_tag(out, "<li><b>", key, "</b>: ");
        write_patterns(out, patterns);
        aq_buf_adds(out, "</li>\n");
    }
    if (json_object_size(declared) == 0)
        aq_buf_adds(out, "<li class=\"quiet\">It declares that it needs nothing.</li>\n");
    aq_buf_adds(out, "</ul></div>\n");
}

static void write_starts(aq_buf *out, const json_t *report)
{
    const json_t *list = json_object_get(json_object_get(report, "package"), "entry_points"), *row;
    size_t i;

    if (json_array_size(list) == 0)
        return;
    fact(out, "What it starts");
    aq_buf_adds(out, "<ul>\n");
    json_array_foreach (list, i, row) {
        const char *role = aq_part_str(row, "role", "?");
        aq_auto_buf b = {0};
        if (i >= STARTS)
            break;
        if (aq_part_automatic(role))
            aq_part_starts(&b, role, aq_part_str(row, "matcher", NULL));
        else
            aq_buf_addf(&b, "Entry point (%s)", role);
        aq_html_tag(out, "<li><bdi>", aq_buf_str(&b), "</bdi>: ");
        aq_html_tag(out, "<code>", aq_part_str(row, "command", "?"), "</code></li>\n");
    }
    if (json_array_size(list) > STARTS)
        aq_buf_addf(out, "<li class=\"quiet\">and %zu more</li>\n", json_array_size(list) - STARTS);
    aq_buf_adds(out, "</ul></div>\n");
}

static bool ran(const char *decision)
{
    return strcmp(decision, "not-run") != 0 && strcmp(decision, "skipped") != 0;
}

static void write_stage_list(aq_buf *out, const json_t *report, bool want_run)
{
    const json_t *stage;
    size_t i;

    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        const char *decision = aq_part_str(stage, "decision", "not-run");
        if (ran(decision) != want_run)
            continue;
        aq_html_tag(out, "<li>", aq_part_str(stage, "title", "?"), "");
        if (strcmp(decision, "inconclusive") == 0)
            aq_buf_adds(out, " (could not finish)");
        if (strcmp(decision, "skipped") == 0)
            aq_buf_adds(out, " (does not apply)");
        aq_buf_adds(out, "</li>\n");
    }
}

/* What nearly every package lacks: told here, once. */
static void write_basis(aq_buf *out, const json_t *report)
{
    aq_auto_buf signature = {0}, names = {0};
    const json_t *item;
    size_t i;

    aq_part_signature(report, &signature);
    aq_html_tag(out, "<li>Signature: ", aq_buf_str(&signature), "</li>\n");
    aq_part_names(report, &names);
    aq_html_tag(out, "<li>Names: ", aq_buf_str(&names), "</li>\n");
    json_array_foreach (json_object_get(report, "findings"), i, item)
        if (aq_part_basis(item) && strcmp(aq_part_str(item, "rule", ""), "intake.unsigned") != 0)
            aq_html_tag(out, "<li>", aq_part_str(item, "message", ""), "</li>\n");
}

static void write_checked(aq_buf *out, const json_t *report)
{
    const json_t *unread = json_object_get(json_object_get(report, "coverage"), "unread");

    fact(out, "What was checked");
    aq_buf_adds(out, "<ul>\n");
    write_stage_list(out, report, true);
    aq_buf_adds(out, "<li class=\"quiet\">");
    aq_part_plural(out, (uint64_t)aq_part_int(report, "coverage", "files"), "file", "files");
    aq_buf_adds(out, ", ");
    aq_part_bytes(out, (uint64_t)aq_part_int(report, "coverage", "bytes_read"));
    aq_buf_adds(out, " read</li>\n</ul></div>\n");
    fact(out, "What was not checked");
    aq_buf_adds(out, "<ul>\n");
    write_stage_list(out, report, false);
    if (json_array_size(unread)) {
        aq_buf_adds(out, "<li>");
        aq_part_plural(out, json_array_size(unread), "place", "places");
        aq_buf_adds(out, " of the package that could not be read</li>\n");
    } else {
        aq_buf_adds(out, "<li class=\"quiet\">No byte was left unread by intake.</li>\n");
    }
    aq_buf_adds(out, "</ul></div>\n");
    fact(out, "What this rests on");
    aq_buf_adds(out, "<ul>\n");
    write_basis(out, report);
    aq_buf_adds(out, "</ul></div>\n");
}

static const struct {
    const char *key, *name;
} shares[] = {
    {"generated_bytes", "generated"},
    {"vendored_bytes", "vendored"},
    {"minified_bytes", "minified"},
    {"binary_bytes", "binary"},
};

/* The bar is 1000 units wide; a part that is there at all is seen. */
static void write_bar(aq_buf *out, const json_t *report, uint64_t whole)
{
    uint64_t left = 1000;

    aq_buf_adds(out, "<svg class=\"bar\" viewBox=\"0 0 1000 14\" preserveAspectRatio=\"none\" "
                     "aria-hidden=\"true\"><rect class=\"c-plain\" width=\"1000\" height=\"14\"/>");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t bytes = (uint64_t)aq_part_int(report, "survey", shares[i].key);
        uint64_t width = whole ? (uint64_t)((double)bytes * 1000 / (double)whole) : 0;
        width = bytes && width < 8 ? 8 : width;
        width = width > left ? left : width;
        left -= width;
        aq_buf_addf(out, "<rect class=\"c-%s\" x=\"%llu\" width=\"%llu\" height=\"14\"/>",
                    shares[i].name, (unsigned long long)left, (unsigned long long)width);
    }
    aq_buf_adds(out, "</svg>\n");
}

static void write_made_of(aq_buf *out, const json_t *report)
{
    uint64_t whole = (uint64_t)aq_part_int(report, "survey", "bytes"), plain = whole;

    if (aq_part_int(report, "survey", "files") == 0)
        return; /* nothing was surveyed: there are no shares to tell */
    fact(out, json_is_true(json_object_get(json_object_get(report, "survey"), "complete"))
                  ? "What it is made of"
                  : "What the surveyed part is made of");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        uint64_t bytes = (uint64_t)aq_part_int(report, "survey", shares[i].key);
        plain -= bytes < plain ? bytes : plain;
    }
    if (plain == whole) {
        aq_buf_adds(out, "<p>Nothing generated, vendored, minified or binary.</p></div>\n");
        return;
    }
    write_bar(out, report, whole);
    aq_buf_adds(out, "<ul class=\"key\">\n");
    for (size_t i = 0; i <= sizeof shares / sizeof *shares; i++) {
        bool last = i == sizeof shares / sizeof *shares;
        uint64_t bytes = last ? plain : (uint64_t)aq_part_int(report, "survey", shares[i].key);
        const char *name = last ? "plain" : shares[i].name;
        aq_buf_addf(out,
                    "<li><svg viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"c-%s\" "
                    "width=\"1\" height=\"1\"/></svg>%u%% %s</li>\n",
                    name, aq_part_percent(bytes, whole), last ? "other" : name);
    }
    aq_buf_adds(out, "</ul></div>\n");
}

void aq_html_facts(aq_buf *out, const json_t *report)
{
    aq_buf_adds(out, "<section class=\"card facts\" id=\"short\" aria-label=\"In short\">\n");
    write_what(out, report);
    write_says(out, report);
    write_starts(out, report);
    write_checked(out, report);
    write_made_of(out, report);
    aq_buf_adds(out, "</section>\n");
}

static void row(aq_buf *out, const char *name, const char *value)
{
    aq_html_tag(out, "<tr><th scope=\"row\">", name, "</th><td>");
    aq_html_digest(out, value);
    aq_buf_adds(out, "</td></tr>\n");
}

static void open_table(aq_buf *out, const char *title, bool open)
{
    aq_buf_addf(out, "<details%s><summary>%s</summary><div class=\"inside\"><table>\n",
                open ? " open" : "", title);
}

static void close_table(aq_buf *out)
{
    aq_buf_adds(out, "</table></div></details>\n");
}

static void write_rows(aq_buf *out, const json_t *list, const char *name, const char *value,
                       const char *instead)
{
    const json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        row(out, aq_part_str(item, name, "?"),
            aq_part_str(item, value, aq_part_str(item, instead, "?")));
}

static void write_budgets(aq_buf *out, const json_t *report)
{
    const json_t *item;
    size_t i;

    json_array_foreach (json_object_get(json_object_get(report, "coverage"), "budgets"), i, item) {
        aq_html_tag(out, "<tr><th scope=\"row\">", aq_part_str(item, "what", "?"),
                    "</th><td class=\"n\">");
        aq_part_count(out, (uint64_t)aq_json_int(item, "spent", 0));
        aq_buf_adds(out, " of ");
        aq_part_count(out, (uint64_t)aq_json_int(item, "limit", 0));
        aq_buf_adds(out, "</td></tr>\n");
    }
}

static void write_provenance(aq_buf *out, const json_t *report)
{
    const json_t *submission = json_object_get(report, "submission");
    aq_auto_buf tier = {0};

    aq_part_tier(report, &tier);
    row(out, "Package digest", aq_part_at(report, "package", "digest", "?"));
    row(out, "Verdict digest", aq_part_str(report, "verdict_digest", "?"));
    row(out, "Rules", aq_part_at(report, "rules", "digest", "?"));
    row(out, "Engine", aq_part_at(report, "rules", "engine", "?"));
    row(out, "Policy", aq_part_at(report, "policy", "digest", "?"));
    row(out, "Store snapshot", aq_part_at(report, "store", "snapshot", "?"));
    row(out, "Submission", aq_part_str(submission, "id", "?"));
    row(out, "Publisher", aq_part_str(submission, "publisher", "?"));
    row(out, "Publisher tier", aq_part_str(submission, "publisher_tier", "?"));
    row(out, "Sandbox", aq_buf_str(&tier));
    row(out, "Time", aq_part_str(report, "time", "?"));
}

void aq_html_coverage(aq_buf *out, const json_t *report)
{
    const json_t *coverage = json_object_get(report, "coverage");
    const json_t *unread = json_object_get(coverage, "unread"),
                 *nested = json_object_get(coverage, "nested");

    aq_buf_adds(out, "<section id=\"coverage\"><h2>Coverage and provenance</h2>\n");
    if (json_array_size(unread)) {
        open_table(out, "Not read", true);
        write_rows(out, unread, "place", "reason", "place");
        close_table(out);
    }
    if (json_array_size(nested)) {
        open_table(out, "Archives inside, listed and not opened", false);
        write_rows(out, nested, "path", "format", "path");
        close_table(out);
    }
    open_table(out, "What each stage said", false);
    write_rows(out, json_object_get(report, "stages"), "title", "reason", "decision");
    close_table(out);
    open_table(out, "Work that was spent, and its limits", false);
    write_budgets(out, report);
    close_table(out);
    open_table(out, "What fixes this verdict", false);
    write_provenance(out, report);
    close_table(out);
    aq_buf_adds(out, "</section>\n");
}

void aq_html_proof(aq_buf *out, const json_t *report)
{
    const char *digest = aq_part_at(report, "package", "digest", "?");

    aq_buf_adds(out,
                "<section id=\"proof\"><h2>How to check this report</h2>\n"
                "<div class=\"card\"><p>A report can be edited; its evidence cannot. The "
                "evidence is signed, names this package and verdict by their digests, and has "
                "its entry in an append-only ledger. Where the report was made, find the entry "
                "and check the evidence against the package at hand:</p>\n"
                "<pre><code>aquarium ledger list --package ");
    aq_html_esc(out, digest);
    aq_buf_adds(out,
                "\naquarium verify EVIDENCE PACKAGE</code></pre>\n"
                "<p class=\"quiet\">EVIDENCE is evidence/ENTRY.json in the state folder, or the "
                "file that the publisher of the report hands out. Elsewhere, verify needs the two "
                "public keys of that instance (aquarium ledger keys), given by --key and "
                "--vkey.</p></div></section>\n");
}
