/* The report's faces lose nothing: no share is rounded away, no result merged, nothing that does
 * not fit goes uncounted, and no sort of line pushes out another. */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/report_parts.h"
#include "report_text.h"
#include "sample.h"

static const json_t *run_of(const json_t *sarif)
{
    return json_array_get(json_object_get(sarif, "runs"), 0);
}

/* Bytes that were not read are as bad as a stage that did not run. */
static void sarif_is_not_whole_with_unread_places(void **state)
{
    aq_auto_json json_t *report = sample_report("pass");
    aq_auto_json json_t *sarif = NULL;
    const json_t *run;

    (void)state;
    json_array_append_new(
        json_object_get(json_object_get(report, "coverage"), "unread"),
        json_pack("{s:s, s:s, s:i}", "place", "a.zip", "reason", "cut off", "bytes", 4));
    sarif = aq_report_sarif(report);
    run = json_array_get(json_object_get(run_of(sarif), "invocations"), 0);
    assert_true(json_is_false(json_object_get(run, "executionSuccessful")));
    assert_int_equal(json_array_size(json_object_get(run, "toolExecutionNotifications")), 1);
}

/* The same words twice in one file are two results: code hosts merge those of one fingerprint. */
static void twins_have_fingerprints_of_their_own(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    aq_auto_json json_t *sarif = NULL;
    aq_auto_json json_t *seen = json_object();
    const json_t *result;
    size_t i;
    sample s;

    (void)state;
    sample_plain(a, &s);
    for (uint32_t line = 1; line <= 3; line++)
        aq_findings_add(s.findings, sample_rule(AQ_REVIEW, 0), "twin.py", "the same")->line = line;
    report = sample_finish(&s);
    sarif = aq_report_sarif(report);
    json_array_foreach (json_object_get(run_of(sarif), "results"), i, result)
        json_object_set_new(
            seen, aq_json_str(json_object_get(result, "partialFingerprints"), "aquariumFinding/v1"),
            json_true());
    assert_int_equal(json_object_size(seen), i);
}

/* Something is never nothing, and not all is never all. */
static void shares_are_never_rounded_away(void **state)
{
    (void)state;
    assert_int_equal(aq_part_percent(1, 1000000), 1);
    assert_int_equal(aq_part_percent(999999, 1000000), 99);
    assert_int_equal(aq_part_percent(0, 1000000), 0);
    assert_int_equal(aq_part_percent(7, 7), 100);
    assert_int_equal(aq_part_percent(0, 0), 0);
    assert_int_equal(aq_part_percent(UINT64_MAX / 2, UINT64_MAX), 50);
}

/* However many rules have findings, three places of the survey stay; of one severity, what could
 * not be read comes first. */
static void findings_leave_room_for_looks(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    const json_t *list, *row;
    size_t i, looks = 0, reviews = 0;
    sample s;

    (void)state;
    sample_plain(a, &s);
    for (size_t n = 0; n < 12; n++) {
        aq_rule_id rule = sample_rule(AQ_REVIEW, n);
        if (n == 11)
            aq_findings_add_incomplete(s.findings, rule, "half.bin", "read in part");
        else
            aq_findings_add(s.findings, rule, "x.py", "found");
    }
    for (uint32_t n = 0; n < AQ_LOOKS; n++)
        s.survey.looks[n] = (aq_look){.file = aq_arena_printf(a, "l%u.py", n),
                                      .line = 1,
                                      .score = 90 - n,
                                      .weight = 30,
                                      .why = "odd",
                                      .text = "odd"};
    s.survey.look_count = AQ_LOOKS;
    report = sample_finish(&s);
    list = json_object_get(report, "checklist");
    assert_int_equal(json_array_size(list), AQ_CHECKLIST);
    json_array_foreach (list, i, row) {
        looks += strcmp(aq_json_str(row, "risk"), "look") == 0;
        if (strcmp(aq_json_str(row, "risk"), "review") == 0 && reviews++ == 0)
            assert_string_equal(aq_json_str(row, "file"), "half.bin");
    }
    assert_true(looks >= 3);
    assert_true(reviews >= 2);
    assert_non_null(
        strstr(json_string_value(json_object_get(json_array_get(list, reviews - 1), "text")),
               "other rules"));
}

/* What does not fit is counted. */
static void unread_places_are_counted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *report = NULL;
    aq_unread places[140];
    sample s;

    (void)state;
    sample_plain(a, &s);
    for (unsigned i = 0; i < 140; i++)
        places[i] =
            (aq_unread){.place = aq_arena_printf(a, "p%03u", i), .reason = "too large", .bytes = 1};
    s.package.unread = places;
    s.package.unread_count = 140;
    report = sample_finish(&s);
    in_text(report, 80, false, "not read      p000: too large");
    in_text(report, 80, false, "not read      40 more places");
    json_decref(report);
    s.package.unread_count = 1;
    report = sample_finish(&s);
    not_in_text(report, "more place");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sarif_is_not_whole_with_unread_places),
        cmocka_unit_test(twins_have_fingerprints_of_their_own),
        cmocka_unit_test(shares_are_never_rounded_away),
        cmocka_unit_test(findings_leave_room_for_looks),
        cmocka_unit_test(unread_places_are_counted),
    };

    return cmocka_run_group_tests_name("report_whole", tests, NULL, NULL);
}
