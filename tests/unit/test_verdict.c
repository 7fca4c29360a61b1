/* The verdict: who beats whom, what can never pass, and a digest that nothing but facts moves. */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/verdict.h"

/* Rows with the severity that a test needs, whatever the table holds. */
static aq_rule_id a_rule(aq_severity severity)
{
    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++)
        if (aq_rule_get(i)->severity == severity)
            return i;
    return AQ_RULE_COUNT;
}

static void all(aq_stage_result *stages, aq_decision decision)
{
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++)
        stages[i] = (aq_stage_result){.layer = (aq_layer)i, .decision = decision};
}

static void names_and_exit_codes(void **state)
{
    (void)state;
    assert_string_equal(aq_verdict_name(AQ_PASS), "pass");
    assert_string_equal(aq_verdict_name(AQ_NEEDS_REVIEW), "review");
    assert_string_equal(aq_verdict_name(AQ_REJECTED), "reject");
    assert_string_equal(aq_verdict_name(AQ_INCONCLUSIVE), "inconclusive");
    assert_int_equal(aq_verdict_exit(AQ_PASS), 0);
    assert_int_equal(aq_verdict_exit(AQ_NEEDS_REVIEW), 1);
    assert_int_equal(aq_verdict_exit(AQ_REJECTED), 2);
    assert_int_equal(aq_verdict_exit(AQ_INCONCLUSIVE), 3);
    assert_string_equal(aq_decision_name(AQ_STAGE_NOT_RUN), "not-run");
    assert_string_equal(aq_decision_name(AQ_STAGE_SKIPPED), "skipped");
}

static void only_a_whole_clean_walk_passes(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_stage_result stages[AQ_LAYER_COUNT];
    aq_package p = {0};

    (void)state;
    all(stages, AQ_STAGE_PASS);
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_PASS);
    stages[AQ_LAYER_L15].decision = AQ_STAGE_SKIPPED;
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_PASS);
    aq_findings_add(f, a_rule(AQ_INFO), "x", "info never counts");
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_PASS);
    assert_int_equal(aq_verdict_judge(stages, f, NULL), AQ_INCONCLUSIVE);
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++) {
        all(stages, AQ_STAGE_PASS);
        stages[i].decision = AQ_STAGE_NOT_RUN;
        assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_INCONCLUSIVE);
        stages[i].decision = AQ_STAGE_INCONCLUSIVE;
        assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_INCONCLUSIVE);
        stages[i].decision = AQ_STAGE_REVIEW;
        assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_NEEDS_REVIEW);
        stages[i].decision = AQ_STAGE_REJECT;
        assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_REJECTED);
    }
}

static void the_worse_wins(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_stage_result stages[AQ_LAYER_COUNT];
    const aq_unread unread = {.place = "x", .reason = "encrypted", .bytes = 1};
    aq_package p = {0};

    (void)state;
    all(stages, AQ_STAGE_PASS);
    aq_findings_add(f, a_rule(AQ_REVIEW), NULL, "look");
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_NEEDS_REVIEW);
    p.unread = &unread;
    p.unread_count = 1;
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_INCONCLUSIVE);
    p.unread_count = 0;
    aq_findings_add_incomplete(f, a_rule(AQ_INFO), "x", "not read to the end");
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_INCONCLUSIVE);
    stages[AQ_LAYER_L0].decision = AQ_STAGE_REJECT;
    stages[AQ_LAYER_L1].decision = AQ_STAGE_NOT_RUN;
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_REJECTED);
}

/* An incomplete finding that fell to the per-rule bound must still count. */
static void floods_hide_nothing(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_stage_result stages[AQ_LAYER_COUNT];
    aq_package p = {0};

    (void)state;
    all(stages, AQ_STAGE_PASS);
    for (int i = 0; i < AQ_FINDINGS_PER_RULE; i++)
        aq_findings_add(f, a_rule(AQ_INFO), "x", "%d", i);
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_PASS);
    aq_findings_add_incomplete(f, a_rule(AQ_INFO), "x", "one more");
    assert_int_equal(aq_verdict_judge(stages, f, &p), AQ_INCONCLUSIVE);
}

static void hex_of(const aq_stage_result *stages, const aq_findings *f, const aq_digest *package,
                   char out[static AQ_SHA256_HEX])
{
    aq_digest d = aq_verdict_digest(AQ_INCONCLUSIVE, stages, f, package, NULL, NULL);

    aq_digest_hex(&d, out);
}

static void digest_is_of_facts_alone(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a), *g = aq_findings_new(a);
    aq_stage_result stages[AQ_LAYER_COUNT];
    char one[AQ_SHA256_HEX], two[AQ_SHA256_HEX];
    aq_digest package = aq_sha256("p", 1);

    (void)state;
    all(stages, AQ_STAGE_NOT_RUN);
    aq_findings_add(f, a_rule(AQ_REVIEW), "b", "second")->match_hash = "00ff";
    aq_findings_add(f, a_rule(AQ_INFO), "a", "first");
    aq_findings_add(g, a_rule(AQ_INFO), "a", "first");
    aq_findings_add(g, a_rule(AQ_REVIEW), "b", "second")->match_hash = "1234";
    hex_of(stages, f, &package, one);
    stages[2].reason = "the host was slow today";
    hex_of(stages, g, &package, two);
    assert_string_equal(one, two); /* neither order, keyed hash nor prose */

    aq_findings_add(g, a_rule(AQ_INFO), "a", "third");
    hex_of(stages, g, &package, two);
    assert_string_not_equal(one, two);
    stages[AQ_LAYER_L0].decision = AQ_STAGE_PASS;
    hex_of(stages, f, &package, two);
    assert_string_not_equal(one, two);
    stages[AQ_LAYER_L0].decision = AQ_STAGE_NOT_RUN;
    package.b[0] ^= 1;
    hex_of(stages, f, &package, two);
    assert_string_not_equal(one, two);
}

static void digest_counts_what_was_not_kept(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_stage_result stages[AQ_LAYER_COUNT];
    char one[AQ_SHA256_HEX], two[AQ_SHA256_HEX];
    aq_digest package = aq_sha256("p", 1);

    (void)state;
    all(stages, AQ_STAGE_PASS);
    for (int i = 0; i < AQ_FINDINGS_PER_RULE; i++)
        aq_findings_add(f, a_rule(AQ_INFO), "x", "%d", i);
    hex_of(stages, f, &package, one);
    aq_findings_add(f, a_rule(AQ_INFO), "x", "over");
    hex_of(stages, f, &package, two);
    assert_string_not_equal(one, two);
}

/* The bytes that are hashed, written out by hand: what any JCS library would have to make. */
static void digest_is_the_documented_one(void **state)
{
    static const char text[] =
        "{\"divergences\":[],\"findings\":[],\"more\":{},\"observations\":[\"aa\"],"
        "\"package\":\"148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940\","
        "\"schema\":\"aquarium/verdict/v1\",\"stages\":{\"intake\":\"pass\",\"l0\":\"pass\","
        "\"l1\":\"pass\",\"l1.5\":\"pass\",\"l2\":\"pass\",\"l3\":\"pass\"},\"verdict\":\"pass\"}";
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *seen = json_pack("[s]", "aa");
    aq_stage_result stages[AQ_LAYER_COUNT];
    aq_digest package = aq_sha256("p", 1), got, want = aq_sha256(text, strlen(text));

    (void)state;
    all(stages, AQ_STAGE_PASS);
    got = aq_verdict_digest(AQ_PASS, stages, aq_findings_new(a), &package, seen, NULL);
    assert_true(aq_digest_equal(&got, &want));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_exit_codes),
        cmocka_unit_test(only_a_whole_clean_walk_passes),
        cmocka_unit_test(the_worse_wins),
        cmocka_unit_test(floods_hide_nothing),
        cmocka_unit_test(digest_is_of_facts_alone),
        cmocka_unit_test(digest_counts_what_was_not_kept),
        cmocka_unit_test(digest_is_the_documented_one),
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
