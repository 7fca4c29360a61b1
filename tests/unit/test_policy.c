/* The operator's policy: keys, budgets, what is refused, and that its digest tells of a change. */
#include "scene.h"

static int read_policy(const char *text, aq_policy *p, aq_err *err)
{
    return aq_policy_read(text, strlen(text), "policy.yaml", p, err);
}

static void policies_are_read(void **state)
{
    scene *s = *state;
    aq_policy p = {0};
    aq_err err = {0};
    aq_auto_fd int dir = open(s->dir, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    aq_auto_json json_t *json = NULL;

    assert_int_equal(aq_policy_load(dir, NULL, &p, &err), 0);
    assert_int_equal(p.rate_limit, 60);
    assert_int_equal(p.name_distance, 2);
    assert_int_equal(aq_write_file(dir, "policy.yaml", "rate_limit: 7\n", 14, 0600, &err), 0);
    assert_int_equal(aq_policy_load(dir, NULL, &p, &err), 1);
    assert_int_equal(p.rate_limit, 7);
    assert_int_equal(p.rate_window, 3600);
    json = aq_policy_json(&p);
    assert_int_equal(json_integer_value(json_object_get(json, "rate_limit")), 7);
    assert_int_equal(read_policy("", &p, &err), 0);
    assert_true(read_policy("rate_limits: 7\n", &p, &err) < 0);
    assert_non_null(strstr(err.text, "policy.yaml:1: unknown key rate_limits"));
    assert_true(read_policy("a: 1\n", &p, &err) < 0);
    assert_true(read_policy("name_distance: 3\n", &p, &err) < 0);
    assert_non_null(strstr(err.text, "from 0 to 2"));
    assert_true(read_policy("rate_limit: -1\n", &p, &err) < 0);
    assert_true(read_policy("rate_limit: many\n", &p, &err) < 0);
    assert_true(read_policy("- rate_limit\n", &p, &err) < 0);
    assert_true(read_policy("rate_limit: 1\nrate_limit: 2\n", &p, &err) < 0);
}

static void budgets_are_set(void **state)
{
    aq_policy usual, p = {0};
    aq_err err = {0};
    aq_budget b;
    aq_auto_json json_t *one = NULL, *two = NULL;
    aq_digest d1, d2;

    (void)state;
    aq_policy_default(&usual);
    aq_budget_init(&b);
    assert_memory_equal(usual.budget, b.limit, sizeof b.limit);
    assert_int_equal(read_policy("budgets:\n  files: 5\n  unpacked-bytes: 4294967296\n", &p, &err),
                     0);
    b.spent[AQ_BUDGET_FILES] = 3;
    aq_policy_apply(&p, &b);
    assert_int_equal(b.limit[AQ_BUDGET_FILES], 5);
    assert_int_equal(b.limit[AQ_BUDGET_BYTES], 1ull << 32);
    assert_int_equal(b.limit[AQ_BUDGET_DEPTH], usual.budget[AQ_BUDGET_DEPTH]);
    assert_int_equal(b.spent[AQ_BUDGET_FILES], 3);
    one = aq_policy_json(&usual);
    two = aq_policy_json(&p);
    assert_int_equal(aq_json_digest(one, &d1), 0);
    assert_int_equal(aq_json_digest(two, &d2), 0);
    assert_false(aq_digest_equal(&d1, &d2));
    assert_int_equal(read_policy("budgets:\n", &p, &err), 0); /* nothing is changed */
    assert_memory_equal(usual.budget, p.budget, sizeof p.budget);
}

static void bad_budgets_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"budgets: 7\n", "policy.yaml:1: budgets must be a map"},
        {"budgets: [files]\n", "must be a map"},
        {"budgets:\n  fiels: 7\n", "policy.yaml:2: no budget fiels"},
        {"budgets:\n  findings: 7\n", "no budget findings"},
        {"budgets:\n  files: 0\n", "from 1 to 1000000"},
        {"budgets:\n  files: -1\n", "from 1 to"},
        {"budgets:\n  files: 1000001\n", "from 1 to 1000000"},
        {"budgets:\n  files: 1.5\n", "whole number"},
        {"budgets:\n  files: all\n", "whole number"},
        {"budgets:\n  path-bytes: 1025\n", "from 1 to 1024"},
        {"budgets:\n  unpacked-bytes: 17179869185\n", "from 1 to 17179869184"},
        {"budgets:\n  files: 1\n  files: 2\n", "files"},
    };
    aq_policy p;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_err err = {0};
        if (read_policy(rows[i].text, &p, &err) == 0)
            fail_msg("accepted %s", rows[i].text);
        if (!strstr(err.text, rows[i].why))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE(policies_are_read),
        cmocka_unit_test(budgets_are_set),
        cmocka_unit_test(bad_budgets_are_refused),
    };

    return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
