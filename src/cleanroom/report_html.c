/* The report as one HTML file: no script, no outside resource, readable in a minute.
 *
 * Everything that a package wrote passes esc(), which leaves no markup and no character that hides
 * or reorders text. The policy in the head forbids everything but the one style sheet, by its hash;
 * so even a mistake here could neither run nor fetch anything. Sizes in pictures are attributes of
 * SVG, since that policy forbids style attributes, too. */
#include <string.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/json.h"
#include "cleanroom/report.h"
#include "cleanroom/report_html_parts.h"
#include "cleanroom/report_parts.h"
#include "report_style.h"

void aq_html_esc(aq_buf *out, const char *text)
{
    aq_auto_buf one = {0};
    size_t used;

    while ((used = aq_part_show(&one, text))) {
        for (size_t i = 0; i < one.len; i++) {
            char c = one.data[i];
            if (c == '&')
                aq_buf_adds(out, "&amp;");
            else if (c == '<')
                aq_buf_adds(out, "&lt;");
            else if (c == '>')
                aq_buf_adds(out, "&gt;");
            else if (c == '"')
                aq_buf_adds(out, "&quot;");
            else if (c == '\'')
                aq_buf_adds(out, "&#39;");
            else
                aq_buf_addc(out, c);
        }
        aq_buf_clear(&one);
        text += used;
    }
    aq_buf_str(out);
}

void aq_html_tag(aq_buf *out, const char *open, const char *text, const char *close)
{
    aq_buf_adds(out, open);
    aq_html_esc(out, text);
    aq_buf_adds(out, close);
}

void aq_html_place(aq_buf *out, const char *file, int64_t line)
{
    aq_html_tag(out, "<code class=\"where\"><bdi>", file, "</bdi>");
    if (line > 0)
        aq_buf_addf(out, ":%lld", (long long)line);
    aq_buf_adds(out, "</code>");
}

/* The names that enter a class attribute; anything else would be markup from outside. */
const char *aq_html_class(const char *name)
{
    static const char *const known[] = {"pass",    "review",  "reject", "inconclusive",
                                        "not-run", "skipped", "unread", "look",
                                        "share",   "info",    "grave",  "starts"};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return known[i];
    return "other";
}

static void write_head(aq_buf *out, const json_t *report)
{
    aq_digest hash = aq_sha256(report_style, sizeof report_style - 1);

    aq_buf_adds(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'sha256-");
    aq_base64(hash.b, sizeof hash.b, out);
    aq_buf_adds(out, "'; base-uri 'none'; form-action 'none'\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    aq_html_esc(out, aq_part_str(report, "verdict", "inconclusive"));
    aq_buf_adds(out, ": ");
    aq_html_esc(out, aq_part_at(report, "package", "name",
                                aq_part_at(report, "package", "input", "package")));
    aq_buf_addf(out, " (Aquarium report)</title>\n<style>%s</style>\n</head>\n", report_style);
}

static void write_banner(aq_buf *out, const json_t *report)
{
    const char *verdict = aq_part_str(report, "verdict", "inconclusive");
    aq_auto_buf what = {0}, why = {0};

    aq_part_what(report, &what);
    aq_part_reason(report, &why);
    aq_buf_addf(out,
                "<body>\n<header class=\"banner %s\"><div class=\"wrap\">\n"
                "<p class=\"maker\"><svg viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                "<path fill=\"none\" stroke=\"#fff\" stroke-width=\"1.75\" d=\"M3 5v12a3 3 0 0 0 3 "
                "3h12a3 3 0 0 0 3-3V5M3 9.5c3-2 6 2 9 0s6-2 9 0\"/><path fill=\"#fff\" d=\"M8 "
                "15c2-2.4 5-2.4 7 0l2-1.6v3.2L15 15c-2 2.4-5 2.4-7 0z\"/></svg>"
                "<span>Aquarium clean room</span>",
                aq_html_class(verdict));
    aq_html_tag(out, "<span>", aq_part_str(report, "time", ""), "</span></p>\n");
    aq_html_tag(out, "<h1><b>", verdict, "</b>");
    aq_html_tag(out, "<bdi>", aq_buf_str(&what), "</bdi></h1>\n");
    aq_html_tag(out, "<p class=\"reason\">", aq_buf_str(&why), "</p>\n</div></header>\n");
}

static void write_row(aq_buf *out, const json_t *row)
{
    const char *risk = aq_part_str(row, "risk", "info"), *file = aq_part_str(row, "file", NULL),
               *excerpt = aq_part_str(row, "excerpt", NULL);

    aq_buf_addf(out, "<li><span class=\"pill %s\">", aq_html_class(risk));
    aq_html_tag(out, "", risk, "</span><div>");
    aq_html_tag(out, "<bdi>", aq_part_str(row, "text", ""), "</bdi>");
    if (file)
        aq_html_place(out, file, aq_json_int(row, "line", 0));
    if (excerpt)
        aq_html_tag(out, "<code class=\"line\">", excerpt, "</code>");
    aq_buf_adds(out, "</div></li>\n");
}

#define LEGEND_ROW(word, blanks, means)                                                            \
    "<div><dt><span class=\"pill " word "\">" word "</span></dt><dd>" means "</dd></div>\n"

static void write_checklist(aq_buf *out, const json_t *report)
{
    const json_t *row;
    size_t i;

    aq_buf_adds(out, "<section class=\"card\" id=\"first\"><h2>Look at this first</h2>\n"
                     "<ol class=\"list\">\n");
    json_array_foreach (json_object_get(report, "checklist"), i, row)
        write_row(out, row);
    aq_buf_adds(out, "</ol>\n<details class=\"legend\"><summary>What these words mean</summary>\n"
                     "<dl>" AQ_LEGEND_ROWS(LEGEND_ROW) "</dl></details></section>\n");
}

/* Findings of one rule: what and why once, then its places. Returns the index behind them. */
static size_t write_rule(aq_buf *out, const json_t *list, size_t from, const json_t *report)
{
    const json_t *first = json_array_get(list, from), *row;
    const char *rule = aq_part_str(first, "rule", ""),
               *severity = aq_part_str(first, "severity", "");
    const char *adversary = aq_part_str(first, "adversary", NULL);
    aq_auto_buf message = {0};
    uint64_t more = aq_part_more(report, rule);
    size_t end = from, i;

    while (end < json_array_size(list) &&
           strcmp(aq_part_str(json_array_get(list, end), "rule", ""), rule) == 0)
        end++;
    aq_buf_addf(out, "<details%s><summary><span class=\"pill %s\">",
                strcmp(severity, "info") == 0 ? "" : " open", aq_html_class(severity));
    aq_html_tag(out, "", severity, "</span>");
    aq_html_tag(out, "", aq_part_str(first, "title", "?"), " <span class=\"quiet\">");
    aq_part_plural(out, end - from + more, "place", "places");
    aq_buf_adds(out, "</span></summary>\n<div class=\"inside\">");
    aq_html_tag(out, "<p>", aq_part_str(first, "why", ""), "</p>");
    aq_html_tag(out, "<p><b>What to do:</b> ", aq_part_str(first, "fix", ""), "</p>");
    aq_html_tag(out, "<p class=\"quiet\"><code>", rule, "</code>");
    if (adversary)
        aq_html_tag(out, ", adversary ", adversary, "");
    aq_buf_adds(out, "</p>\n<ul class=\"places\">\n");
    for (i = from; i < end; i++) {
        row = json_array_get(list, i);
        aq_buf_adds(out, "<li>");
        if (aq_part_str(row, "file", NULL))
            aq_html_place(out, aq_part_str(row, "file", ""), aq_json_int(row, "line", 0));
        aq_part_sentence(&message, aq_part_str(row, "message", ""));
        aq_html_tag(out, "<bdi>", aq_buf_str(&message), "</bdi></li>\n");
        aq_buf_clear(&message);
    }
    if (more) {
        aq_buf_adds(out, "<li class=\"quiet\">and ");
        aq_part_count(out, more);
        aq_buf_adds(out, " more of this rule, counted and not listed</li>\n");
    }
    aq_buf_adds(out, "</ul></div></details>\n");
    return end;
}

/* The findings that are shown as such; the others stand among the facts. */
static json_t *listed(const json_t *report)
{
    json_t *list = json_array(), *row;
    size_t i;

    json_array_foreach (json_object_get(report, "findings"), i, row)
        if (!aq_part_basis(row))
            json_array_append(list, row);
    return list;
}

static void write_findings(aq_buf *out, const json_t *report)
{
    static const struct {
        const char *severity, *title;
    } groups[] = {{"reject", "Reject: these end the walk"},
                  {"review", "Review: a person must look"},
                  {"info", "Info: worth knowing"}};
    aq_auto_json json_t *list = listed(report);
    size_t i = 0, count = json_array_size(list);
    aq_auto_buf title = {0};

    aq_part_findings_title(report, &title);
    aq_html_tag(out, "<section id=\"findings\"><h2>", aq_buf_str(&title), "</h2>\n");
    if (aq_part_findings(report, NULL) == 0)
        aq_buf_adds(out, "<p class=\"card\">Nothing was found by the stages that ran.</p>\n");
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        bool begun = false;
        while (i < count && strcmp(aq_part_str(json_array_get(list, i), "severity", ""),
                                   groups[g].severity) == 0) {
            if (!begun)
                aq_buf_addf(out, "<div class=\"group\"><h3>%s</h3>\n", groups[g].title);
            begun = true;
            i = write_rule(out, list, i, report);
        }
        if (begun)
            aq_buf_adds(out, "</div>\n");
    }
    aq_buf_adds(out, "</section>\n");
}

void aq_report_html(const json_t *report, aq_buf *out)
{
    write_head(out, report);
    write_banner(out, report);
    aq_html_walk(out, report);
    aq_buf_adds(out, "<main class=\"wrap\">\n<div class=\"two\">\n");
    write_checklist(out, report);
    aq_html_facts(out, report);
    aq_buf_adds(out, "<div class=\"rest\">\n");
    write_findings(out, report);
    aq_html_coverage(out, report);
    aq_html_proof(out, report);
    aq_buf_adds(
        out,
        "</div>\n</div>\n</main>\n<footer class=\"wrap\">Text from the package is shown as text. "
        "In excerpts and file names, each byte of what cannot be seen is written as \\xHH, "
        "elsewhere such a character as \\u{…} or \xef\xbf\xbd.</footer>\n"
        "</body>\n</html>\n");
}
