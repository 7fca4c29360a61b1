/* Findings: the table is whole, floods are counted, hostile answers are refused. */
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/finding.h"

static void table_is_whole(void **state)
{
    (void)state;
    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++) {
        const aq_rule *r = aq_rule_get(i);
        aq_rule_id back;

        assert_non_null(r->name);
        assert_true(strlen(r->title) > 0 && strlen(r->why) > 0 && strlen(r->fix) > 0);
        assert_true(r->adversary <= 10);
        assert_int_equal(aq_rule_find(r->name, &back), 0);
        assert_int_equal(back, i); /* names are unique */
        assert_int_equal(strncmp(r->name, aq_layer_name(r->layer), strlen(aq_layer_name(r->layer))),
                         0);
    }
    for (unsigned i = 1; i <= 10; i++)
        assert_non_null(aq_adversary_title(i));
    assert_null(aq_adversary_title(0));
    assert_null(aq_adversary_title(11));
}

/* A million findings in the worst order: memory does not grow with them. */
static void floods_take_no_memory(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    size_t before = mallinfo2().uordblks;
    char long_name[2000];

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    for (int i = 200000; i > 0; i--) {
        snprintf(long_name, 8, "%06d", i);
        long_name[6] = 'x';
        long_name[sizeof long_name - 1] = '\0';
        aq_findings_add(f, AQ_RULE_INTAKE_LINK, i % 3 ? long_name : NULL, "number %d", i);
    }
    aq_findings_sort(f);
    assert_int_equal(f->count, AQ_FINDINGS_PER_RULE);
    assert_null(f->items[0].file);
    assert_true(mallinfo2().uordblks - before < 4 << 20);
}

static void early_ones_are_kept_by_rule(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *to = aq_findings_new(a), *from = aq_findings_new(a);

    (void)state;
    aq_findings_add(to, AQ_RULE_INTAKE_LINK, "a", "there");
    aq_findings_add(from, AQ_RULE_INTAKE_LINK, "b", "not kept: the rule is there");
    aq_findings_add(from, AQ_RULE_INTAKE_SETUID, "c", "not kept: too mild");
    aq_findings_add_incomplete(from, AQ_RULE_INTAKE_PATH_PARENT, "../d", "kept");
    aq_findings_keep(to, from, AQ_REJECT);
    assert_int_equal(to->count, 2);
    assert_int_equal(to->items[1].rule, AQ_RULE_INTAKE_PATH_PARENT);
    assert_string_equal(to->items[1].file, "../d");
    assert_true(to->incomplete);
}

static void floods_are_counted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);

    (void)state;
    for (int i = 0; i < AQ_FINDINGS_PER_RULE + 7; i++)
        aq_findings_add(f, AQ_RULE_INTAKE_UNSIGNED, "x", "number %d", i)->line = 3;
    assert_int_equal(f->count, AQ_FINDINGS_PER_RULE);
    assert_int_equal(aq_findings_extra(f, AQ_RULE_INTAKE_UNSIGNED), 7);
    assert_int_equal(aq_findings_worst(f), AQ_INFO);
    aq_findings_add(f, AQ_RULE_L0_README_MISSING, NULL, "none");
    assert_int_equal(aq_findings_worst(f), AQ_REVIEW);
    aq_findings_sort(f);
    assert_int_equal(f->items[0].rule, AQ_RULE_L0_README_MISSING);
}

/* The same findings in another order leave the same ones. */
static void what_is_kept_does_not_depend_on_the_order(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *up = aq_findings_new(a), *down = aq_findings_new(a);
    char name[16];

    (void)state;
    for (int i = 0; i < 3 * AQ_FINDINGS_PER_RULE; i++) {
        snprintf(name, sizeof name, "f%04d", i);
        aq_findings_add(up, AQ_RULE_INTAKE_UNSIGNED, name, "m")->line = (uint32_t)i;
        snprintf(name, sizeof name, "f%04d", 3 * AQ_FINDINGS_PER_RULE - 1 - i);
        aq_findings_add(down, AQ_RULE_INTAKE_UNSIGNED, name, "m")->line =
            (uint32_t)(3 * AQ_FINDINGS_PER_RULE - 1 - i);
    }
    aq_findings_sort(up);
    aq_findings_sort(down);
    assert_int_equal(up->count, AQ_FINDINGS_PER_RULE);
    assert_int_equal(down->count, AQ_FINDINGS_PER_RULE);
    for (size_t i = 0; i < AQ_FINDINGS_PER_RULE; i++) {
        assert_string_equal(up->items[i].file, down->items[i].file);
        assert_int_equal(up->items[i].line, i);
    }
}

/* By severity, and of one severity first what could not be finished: what forbids a pass is not
 * below what was merely noticed. */
static void the_graver_and_the_unfinished_come_first(void **state)
{
    static const char *const want[] = {"e", "d", "b", "a", "c"};
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);

    (void)state;
    aq_findings_add(f, AQ_RULE_INTAKE_GIT, "a", "info");
    aq_findings_add_incomplete(f, AQ_RULE_INTAKE_UNSIGNED, "b", "info, not finished");
    aq_findings_add(f, AQ_RULE_INTAKE_UNSIGNED, "c", "info");
    aq_findings_add(f, AQ_RULE_INTAKE_LINK, "d", "review");
    aq_findings_add(f, AQ_RULE_INTAKE_SPECIAL, "e", "reject");
    aq_findings_sort(f);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(f->items[i].file, want[i]);
}

/* A stage's own list, appended: nothing is lost, kept findings and counts are as if it had been one
 * list, and a finding of another layer is refused whole. */
static void a_list_is_taken(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *all = aq_findings_new(a), *own = aq_findings_new(a), *bad = aq_findings_new(a);
    aq_err err = {0};

    (void)state;
    aq_findings_add(all, AQ_RULE_INTAKE_UNSIGNED, NULL, "m");
    for (int i = 0; i < AQ_FINDINGS_PER_RULE + 7; i++)
        aq_findings_add(own, AQ_RULE_L0_README_MISSING, NULL, "m%d", i);
    aq_findings_add_incomplete(own, AQ_RULE_L0_UNREAD, "f", "u")->line = 3;
    assert_int_equal(aq_findings_take(all, own, AQ_LAYER_L0, &err), 0);
    assert_int_equal(all->count, AQ_FINDINGS_PER_RULE + 2);
    assert_int_equal(aq_findings_extra(all, AQ_RULE_L0_README_MISSING), 7);
    assert_true(all->incomplete && all->layer_incomplete[AQ_LAYER_L0]);
    assert_false(all->layer_incomplete[AQ_LAYER_INTAKE]);
    assert_int_equal(all->items[all->count - 1].line, 3);
    aq_findings_add(bad, AQ_RULE_L0_README_MISSING, NULL, "m");
    aq_findings_add(bad, AQ_RULE_INTAKE_UNSIGNED, NULL, "m");
    assert_int_equal(aq_findings_take(all, bad, AQ_LAYER_L0, &err), -EINVAL);
    assert_int_equal(all->count, AQ_FINDINGS_PER_RULE + 2);
    assert_int_equal(aq_findings_extra(all, AQ_RULE_L0_README_MISSING), 7);
}

static void text_is_quoted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_finding *one = aq_findings_add(f, AQ_RULE_INTAKE_UNSIGNED, "a\x1b[31m\xff", "esc \x1b]0;");

    (void)state;
    assert_string_equal(one->file, "a\\x1b[31m\\xff");
    assert_string_equal(one->message, "esc \\x1b]0;");
}

static int read_one(aq_findings *f, const char *text, aq_err *err)
{
    aq_auto_json json_t *j = NULL;

    assert_int_equal(aq_json_parse(text, strlen(text), "test", &j, err), 0);
    return aq_finding_read(f, AQ_LAYER_INTAKE, j, err);
}

static void hostile_answers(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *f = aq_findings_new(a);
    aq_err err = {0};

    (void)state;
    assert_int_equal(
        read_one(f, "{\"rule\":\"intake.unsigned\",\"message\":\"m\",\"line\":4}", &err), 0);
    assert_int_equal(f->items[0].line, 4);
    assert_true(read_one(f, "{\"rule\":\"no.such\",\"message\":\"m\"}", &err) < 0);
    assert_true(read_one(f, "{\"rule\":\"l0.readme.missing\",\"message\":\"m\"}", &err) < 0);
    assert_true(read_one(f, "{\"rule\":\"intake.unsigned\"}", &err) < 0);
    assert_true(read_one(f, "{\"rule\":\"intake.unsigned\",\"message\":\"m\",\"line\":-1}", &err) <
                0);
    assert_int_equal(read_one(f, "{\"rule\":\"intake.unsigned\",\"message\":\"a\\u001bb\"}", &err),
                     0);
    assert_string_equal(f->items[1].message, "a\xef\xbf\xbd"
                                             "b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_whole),
        cmocka_unit_test(floods_are_counted),
        cmocka_unit_test(floods_take_no_memory),
        cmocka_unit_test(early_ones_are_kept_by_rule),
        cmocka_unit_test(what_is_kept_does_not_depend_on_the_order),
        cmocka_unit_test(the_graver_and_the_unfinished_come_first),
        cmocka_unit_test(a_list_is_taken),
        cmocka_unit_test(text_is_quoted),
        cmocka_unit_test(hostile_answers),
    };

    return cmocka_run_group_tests_name("finding", tests, NULL, NULL);
}
