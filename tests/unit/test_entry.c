/* Ledger entries: evidence matches its own verdict's entry and no other. */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/entry.h"

static const aq_digest one = {{1}}, two = {{2}}, three = {{3}}, four = {{4}};

/* The entry as the ledger writes it: with schema, index, prev and time. */
static char *written(json_t *body, int index)
{
    aq_auto_buf b = {0};

    json_object_set_new(body, "index", json_integer(index));
    assert_int_equal(aq_json_canonical(body, &b), 0);
    json_decref(body);
    return aq_buf_take(&b);
}

static void only_its_own_entry(void **state)
{
    aq_evidence e = {.package = one,
                     .report = two,
                     .verdict_digest = three,
                     .verdict = "review",
                     .submission = "s",
                     .ledger_index = 7};
    const struct {
        json_t *body;
        int index;
        const char *wrong;
    } rows[] = {
        {aq_entry_verdict("s", AQ_NEEDS_REVIEW, &three, &one, &two), 7, NULL},
        {aq_entry_verdict("s", AQ_NEEDS_REVIEW, &three, &one, &two), 8, "index"},
        {aq_entry_verdict("t", AQ_NEEDS_REVIEW, &three, &one, &two), 7, "submission"},
        {aq_entry_verdict("s", AQ_PASS, &three, &one, &two), 7, "verdict"},
        {aq_entry_verdict("s", AQ_NEEDS_REVIEW, &four, &one, &two), 7, "verdict digest"},
        {aq_entry_verdict("s", AQ_NEEDS_REVIEW, &three, &four, &two), 7, "package"},
        {aq_entry_verdict("s", AQ_NEEDS_REVIEW, &three, &one, &four), 7, "report"},
        {aq_entry_decision("s", &(aq_stage_result){.layer = AQ_LAYER_L0}, &one, &two), 7, "kind"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_free char *entry = written(rows[i].body, rows[i].index);
        aq_err err = {0};
        int r = aq_entry_matches(entry, &e, &err);

        assert_int_equal(r == 0, rows[i].wrong == NULL);
        if (rows[i].wrong)
            assert_non_null(strstr(err.text, rows[i].wrong));
    }
}

static void not_an_entry(void **state)
{
    static const char *const bad[] = {"", "{", "[]", "null", "{\"kind\":1}"};
    aq_evidence e = {.verdict = "pass", .submission = "s"};
    aq_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(aq_entry_matches(bad[i], &e, &err) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_its_own_entry),
        cmocka_unit_test(not_an_entry),
    };

    return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
