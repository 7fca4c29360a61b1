/* Which sandbox tier a package asks for: the whole matrix of publishers and capabilities. */
#include "unit.h"

#include <string.h>

#include "cleanroom/report.h"

static const unsigned by_publisher[] = {
    [AQ_TIER_LOCAL] = 0,  [AQ_TIER_NEW] = 2,     [AQ_TIER_IDENTIFIED] = 2,
    [AQ_TIER_PROVEN] = 1, [AQ_TIER_TRUSTED] = 1, [AQ_TIER_STEWARD] = 0,
};

enum { PUBLISHERS = sizeof by_publisher / sizeof *by_publisher };

/* group, pattern, and the tier that its declaration asks for */
static const struct row {
    aq_capability group;
    const char *pattern;
    unsigned declared;
} rows[] = {
    {AQ_CAP_FS_READ, "~/a", 1},
    {AQ_CAP_FS_READ, "/**", 1},
    {AQ_CAP_FS_WRITE, "out/**", 1},
    {AQ_CAP_NETWORK, "api.example.com", 1},
    {AQ_CAP_NETWORK, "api.example.com:443", 1},
    {AQ_CAP_NETWORK, "*.example.com", 1},
    {AQ_CAP_NETWORK, "*.com", 2},
    {AQ_CAP_NETWORK, "*:443", 2},
    {AQ_CAP_NETWORK, "*", 2},
    {AQ_CAP_SHELL, "git *", 2},
    {AQ_CAP_SHELL, "*", 2},
    {AQ_CAP_SECRETS, "TOKEN", 1},
    {AQ_CAP_SUBAGENTS, "*", 2},
    {AQ_CAP_SUBAGENTS, "reviewer", 2},
    {AQ_CAP_MCP, "db", 1},
    {AQ_CAP_HOOKS, "Stop", 1},
    {AQ_CAP_CLOCK, "*", 0},
    {AQ_CAP_CRYPTO, "*", 0},
};

static unsigned wanted(unsigned publisher, const aq_manifest *m)
{
    aq_submission s = {.tier = (aq_publisher_tier)publisher,
                       .local = publisher == AQ_TIER_LOCAL,
                       .signature = AQ_SIGNATURE_GOOD};
    const char *why = NULL, *tier = aq_tier_wanted(&s, m, &why);

    assert_true(why && *why);
    assert_int_equal(strlen(tier), 2);
    assert_int_equal(tier[0], 't');
    return (unsigned)(tier[1] - '0');
}

static unsigned stricter(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static void the_matrix_of_one(void **state)
{
    bool seen[AQ_CAP_COUNT] = {false};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_manifest m = {.kind = AQ_KIND_ARC, .declared = {.present = true}};
        const char *pattern = rows[i].pattern;
        m.declared.group[rows[i].group] = (aq_cap_group){true, &pattern, 1};
        seen[rows[i].group] = true;
        for (unsigned p = 0; p < PUBLISHERS; p++)
            assert_int_equal(wanted(p, &m), stricter(by_publisher[p], rows[i].declared));
    }
    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        assert_true(seen[g]);
}

/* Two capabilities ask for the stricter of the two, in either order. */
static void the_matrix_of_two(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
            aq_manifest m = {.kind = AQ_KIND_ARC, .declared = {.present = true}};
            const char *one = rows[i].pattern, *two = rows[j].pattern;
            if (rows[i].group == rows[j].group)
                continue;
            m.declared.group[rows[i].group] = (aq_cap_group){true, &one, 1};
            m.declared.group[rows[j].group] = (aq_cap_group){true, &two, 1};
            assert_int_equal(wanted(AQ_TIER_LOCAL, &m),
                             stricter(rows[i].declared, rows[j].declared));
        }
    }
}

static void one_broad_host_among_many(void **state)
{
    const char *hosts[] = {"a.example.com", "b.example.com", "*.org"};
    aq_manifest m = {.kind = AQ_KIND_ARC, .declared = {.present = true}};

    (void)state;
    m.declared.group[AQ_CAP_NETWORK] = (aq_cap_group){true, hosts, 2};
    assert_int_equal(wanted(AQ_TIER_LOCAL, &m), 1);
    m.declared.group[AQ_CAP_NETWORK].count = 3;
    assert_int_equal(wanted(AQ_TIER_LOCAL, &m), 2);
}

static void nothing_or_none_is_said(void **state)
{
    aq_manifest none = {.kind = AQ_KIND_ARC, .declared = {.present = true}};
    aq_manifest unsaid = {.kind = AQ_KIND_SKILL}, module = {.kind = AQ_KIND_WASM};

    (void)state;
    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        none.declared.group[g].present = true; /* it was said: none */
    for (unsigned p = 0; p < PUBLISHERS; p++) {
        assert_int_equal(wanted(p, &none), by_publisher[p]);
        assert_int_equal(wanted(p, &unsaid), stricter(by_publisher[p], 1));
        assert_int_equal(wanted(p, &module), by_publisher[p]);
    }
}

/* What manifests start counts beside what is declared, even where that says none. */
static void what_is_implied(void **state)
{
    static const struct {
        aq_capability group;
        const char *pattern;
        unsigned tier;
    } implied[] = {
        {AQ_CAP_SHELL, "note.sh", 2},         {AQ_CAP_MCP, "db", 1},    {AQ_CAP_HOOKS, "Stop", 1},
        {AQ_CAP_NETWORK, "x.example:443", 1}, {AQ_CAP_NETWORK, "*", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof implied / sizeof *implied; i++) {
        aq_manifest m = {
            .kind = AQ_KIND_PLUGIN, .declared = {.present = true}, .implied = {.present = true}};
        const char *pattern = implied[i].pattern;
        m.declared.group[AQ_CAP_SHELL].present = true;
        m.implied.group[implied[i].group] = (aq_cap_group){true, &pattern, 1};
        for (unsigned p = 0; p < PUBLISHERS; p++)
            assert_int_equal(wanted(p, &m), stricter(by_publisher[p], implied[i].tier));
    }
}

/* Own code in its own runtime is T1; a shell, or a program of the host, is T2. */
static void own_code_is_not_shell(void **state)
{
    static const struct {
        const char *command;
        unsigned tier;
    } commands[] = {
        {"python3 src/count.py", 1},
        {"node dist/server.js --stdio", 1},
        {"src/server.js", 1},
        {"./bin/tool", 1},
        {"python3 -c 'import os'", 2},
        {"python3 /tmp/x.py", 2},
        {"python3 ../x.py", 2},
        {"bash run.sh", 2},
        {"hooks/note.sh", 2},
        {"node a.js; curl x", 2},
        {"node a.js | sh", 2},
        {"node $HOME/a.js", 2},
        {"npx -y tool", 2},
        {"tool", 2},
        {"/usr/bin/tool", 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        aq_manifest m = {
            .kind = AQ_KIND_ARC, .declared = {.present = true}, .implied = {.present = true}};
        const char *two[] = {"src/own.py", commands[i].command};
        m.declared.group[AQ_CAP_SHELL].present = true;
        m.implied.group[AQ_CAP_SHELL] = (aq_cap_group){true, two, 2};
        if (wanted(AQ_TIER_LOCAL, &m) != commands[i].tier)
            fail_msg("%s", commands[i].command);
    }
}

static void a_claim_opens_no_weaker_sandbox(void **state)
{
    aq_manifest m = {.kind = AQ_KIND_WASM, .declared = {.present = true}};
    aq_submission s = {.tier = AQ_TIER_STEWARD, .signature = AQ_SIGNATURE_GOOD};
    const char *why;

    (void)state;
    assert_string_equal(aq_tier_wanted(&s, &m, &why), "t0");
    for (aq_signature_state bad = AQ_SIGNATURE_NONE; bad <= AQ_SIGNATURE_BAD; bad++) {
        s.signature = bad;
        if (bad != AQ_SIGNATURE_GOOD)
            assert_string_equal(aq_tier_wanted(&s, &m, &why), "t2");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matrix_of_one),
        cmocka_unit_test(the_matrix_of_two),
        cmocka_unit_test(one_broad_host_among_many),
        cmocka_unit_test(nothing_or_none_is_said),
        cmocka_unit_test(what_is_implied),
        cmocka_unit_test(own_code_is_not_shell),
        cmocka_unit_test(a_claim_opens_no_weaker_sandbox),
    };

    return cmocka_run_group_tests_name("tier", tests, NULL, NULL);
}
