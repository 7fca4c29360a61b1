/* Capability patterns: one spelling for one meaning, and a reason for what has none. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/capability.h"

typedef struct row {
    aq_capability group;
    const char *in, *out; /* out: canonical form, or "!part of the reason" */
} row;

static void check(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_capabilities c = {0};
        aq_err err = {0};
        int r = aq_capabilities_add(&c, a, rows[i].group, rows[i].in, &err);
        if (rows[i].out[0] == '!') {
            if (r != -EINVAL || !strstr(err.text, rows[i].out + 1) || c.present)
                fail_msg("\"%s\": %d \"%s\", want %s", rows[i].in, r, err.text, rows[i].out);
            continue;
        }
        if (r < 0)
            fail_msg("\"%s\" was refused: %s", rows[i].in, err.text);
        assert_string_equal(c.group[rows[i].group].patterns[0], rows[i].out);
        /* The canonical form is a fixed point. */
        assert_int_equal(
            aq_capabilities_add(&c, a, rows[i].group, c.group[rows[i].group].patterns[0], &err), 0);
        assert_string_equal(c.group[rows[i].group].patterns[1], rows[i].out);
    }
}

static void paths(void **state)
{
    static const row rows[] = {
        {AQ_CAP_FS_READ, "~/.claude/**", "~/.claude/**"},
        {AQ_CAP_FS_READ, "~/.claude/", "~/.claude/**"},
        {AQ_CAP_FS_READ, "~/.claude/skills", "~/.claude/skills"},
        {AQ_CAP_FS_READ, "$HOME/.x//y/./z", "~/.x/y/z"},
        {AQ_CAP_FS_READ, "${HOME}/a", "~/a"},
        {AQ_CAP_FS_READ, "$PAI_DIR/hooks/", "${PAI_DIR}/hooks/**"},
        {AQ_CAP_FS_READ, "${CLAUDE_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}/**"},
        {AQ_CAP_FS_READ, "~", "~/**"},
        {AQ_CAP_FS_READ, "~/", "~/**"},
        {AQ_CAP_FS_READ, "/", "/**"},
        {AQ_CAP_FS_READ, "//etc///hosts", "/etc/hosts"},
        {AQ_CAP_FS_READ, ".", "**"},
        {AQ_CAP_FS_READ, "./", "**"},
        {AQ_CAP_FS_READ, "./**", "**"},
        {AQ_CAP_FS_READ, "./src/./*.c", "src/*.c"},
        {AQ_CAP_FS_WRITE, "a/**/**/b", "a/**/b"},
        {AQ_CAP_FS_WRITE, "a/**/", "a/**"},
        {AQ_CAP_FS_WRITE, "  src/x ", "src/x"},
        {AQ_CAP_FS_WRITE, "...", "..."},
        {AQ_CAP_FS_READ, "./ a", "!blank at its start"},
        {AQ_CAP_FS_READ, "a /.", "!blank at its start or end"},
        {AQ_CAP_FS_READ, "a/ b", "a/ b"},
        {AQ_CAP_FS_READ, "a/../b", "!.. part"},
        {AQ_CAP_FS_READ, "..", "!.. part"},
        {AQ_CAP_FS_READ, "~/..", "!.. part"},
        {AQ_CAP_FS_READ, "~root/x", "!another user"},
        {AQ_CAP_FS_READ, "./~/x", "!not at its start"},
        {AQ_CAP_FS_READ, "./$HOME/x", "!not at its start"},
        {AQ_CAP_FS_READ, "a/~/$x", "a/~/$x"},
        {AQ_CAP_FS_READ, "$(id)/x", "!variable"},
        {AQ_CAP_FS_READ, "$HOMEx", "${HOMEx}/**"},
        {AQ_CAP_FS_READ, "C:\\Users", "!backslash"},
        {AQ_CAP_FS_READ, "file:///etc", "!URL"},
        {AQ_CAP_FS_READ, "a\x01", "!control"},
        {AQ_CAP_FS_READ,
         "a\xe2\x80\xae"
         "b",
         "!hidden"},
        {AQ_CAP_FS_READ, "a\xff", "!UTF-8"},
        {AQ_CAP_FS_READ, "", "!empty"},
        {AQ_CAP_FS_READ, " \n", "!empty"},
    };

    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

static void hosts(void **state)
{
    static const row rows[] = {
        {AQ_CAP_NETWORK, "API.GitHub.com", "api.github.com"},
        {AQ_CAP_NETWORK, "api.github.com.", "api.github.com"},
        {AQ_CAP_NETWORK, "*.example.org:8080", "*.example.org:8080"},
        {AQ_CAP_NETWORK, "example.org:*", "example.org"},
        {AQ_CAP_NETWORK, "*", "*"},
        {AQ_CAP_NETWORK, "https://Example.org/v1?x", "example.org:443"},
        {AQ_CAP_NETWORK, "http://example.org:81/", "example.org:81"},
        {AQ_CAP_NETWORK, "wss://*.example.org", "*.example.org:443"},
        {AQ_CAP_NETWORK, "localhost:3000", "localhost:3000"},
        {AQ_CAP_NETWORK, "127.0.0.1", "127.0.0.1"},
        {AQ_CAP_NETWORK, "::1", "[::1]"},
        {AQ_CAP_NETWORK, "[0:0:0:0:0:0:0:1]:443", "[::1]:443"},
        {AQ_CAP_NETWORK,
         "b\xc3\xbc"
         "cher.example",
         "xn--bcher-kva.example"},
        {AQ_CAP_NETWORK,
         "B\xc3\x9c"
         "CHER.example",
         "xn--bcher-kva.example"},
        {AQ_CAP_NETWORK,
         "*.b\xc3\xbc"
         "cher.example",
         "*.xn--bcher-kva.example"},
        {AQ_CAP_NETWORK, "my_host.example", "my_host.example"},
        {AQ_CAP_NETWORK, "example.org:080", "example.org:80"},
        {AQ_CAP_NETWORK, "010.0.0.1", "!number"},
        {AQ_CAP_NETWORK, "2130706433", "!number"},
        {AQ_CAP_NETWORK, "0x7f.0.0.0x1", "!number"},
        {AQ_CAP_NETWORK, "256.1.1.1", "!number"},
        {AQ_CAP_NETWORK, "example.org:0", "!port"},
        {AQ_CAP_NETWORK, "example.org:99999", "!port"},
        {AQ_CAP_NETWORK, "example.org:x", "!port"},
        {AQ_CAP_NETWORK, "example.org/path", "!path"},
        {AQ_CAP_NETWORK, "https://u:p@example.org", "!user name"},
        {AQ_CAP_NETWORK, "ftp://example.org", "!scheme"},
        {AQ_CAP_NETWORK, "a.*.example", "!* that"},
        {AQ_CAP_NETWORK, "*example.org", "!* that"},
        {AQ_CAP_NETWORK, "-a.example", "!no host name"},
        {AQ_CAP_NETWORK, "a..example", "!no host name"},
        {AQ_CAP_NETWORK, "any host", "!no host name"},
        {AQ_CAP_NETWORK, "https://", "!host name"},
        {AQ_CAP_NETWORK, "[::1", "!no host name"},
        {AQ_CAP_NETWORK, "[example.org]", "!no host name"},
        {AQ_CAP_NETWORK, "[zz]", "!no host name"},
    };

    (void)state;
    check(rows, sizeof rows / sizeof *rows);
}

static void commands_and_names(void **state)
{
    static const row rows[] = {
        {AQ_CAP_SHELL, "git:*", "git *"},
        {AQ_CAP_SHELL, "git diff:*", "git diff *"},
        {AQ_CAP_SHELL, "git:*:*", "git *"},
        {AQ_CAP_SHELL, "gh  pr\t*", "gh pr *"},
        {AQ_CAP_SHELL, "*", "*"},
        {AQ_CAP_SHELL, "echo 'a  b'", "echo 'a  b'"},
        {AQ_CAP_SHELL, "npm run test", "npm run test"},
        {AQ_CAP_SHELL, "a\nb", "!control"},
        {AQ_CAP_SECRETS, " GITHUB_TOKEN ", "GITHUB_TOKEN"},
        {AQ_CAP_SECRETS, "", "!empty"},
        {AQ_CAP_HOOKS, "PreToolUse", "PreToolUse"},
        {AQ_CAP_HOOKS, "PreToolUse(Write|Edit)", "PreToolUse(Edit|Write)"},
        {AQ_CAP_HOOKS, "PreToolUse(|)", "PreToolUse"},
        {AQ_CAP_HOOKS, "PreToolUse(Edit|)", "PreToolUse"},
        {AQ_CAP_CLOCK, "*", "*"},
    };
    char longest[AQ_CAP_PATTERN + 2];
    row too_long = {AQ_CAP_SHELL, longest, "!longer"};

    (void)state;
    check(rows, sizeof rows / sizeof *rows);
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check(&too_long, 1);
}

static void absent_is_not_empty(void **state)
{
    aq_capabilities absent = {0}, block = {.present = true}, none = {0};
    aq_auto_json json_t *a = aq_capabilities_json(&absent), *b = aq_capabilities_json(&block);
    aq_digest x = aq_capabilities_digest(&absent), y = aq_capabilities_digest(&block), z;

    (void)state;
    aq_capabilities_none(&none, AQ_CAP_NETWORK);
    z = aq_capabilities_digest(&none);
    assert_true(json_is_null(a));
    assert_true(json_is_object(b));
    assert_false(aq_digest_equal(&x, &y));
    assert_false(aq_digest_equal(&y, &z));
}

static void order_and_repeats_do_not_matter(void **state)
{
    static const char *const orders[][3] = {{"b.example", "A.example", "b.example."},
                                            {"a.example", "b.example", "a.example"}};
    aq_auto_arena a = aq_arena_new();
    aq_digest digest[2];
    aq_err err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        aq_capabilities c = {0};
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_NETWORK, orders[i][j], &err), 0);
        aq_capabilities_seal(&c);
        assert_int_equal(c.group[AQ_CAP_NETWORK].count, 2);
        digest[i] = aq_capabilities_digest(&c);
    }
    assert_true(aq_digest_equal(&digest[0], &digest[1]));
}

static void any_swallows_the_rest(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_capabilities c = {0};
    aq_err err;

    (void)state;
    assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_SHELL, "$x", &err), 0);
    assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_SHELL, "*", &err), 0);
    assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_SHELL, "!y", &err), 0);
    aq_capabilities_seal(&c);
    assert_int_equal(c.group[AQ_CAP_SHELL].count, 1);
    assert_string_equal(c.group[AQ_CAP_SHELL].patterns[0], "*");
}

static void bounded(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_capabilities c = {0};
    aq_err err;
    char name[32];

    (void)state;
    for (int i = 0; i < AQ_CAP_PATTERNS; i++) {
        snprintf(name, sizeof name, "S%d", i);
        assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_SECRETS, name, &err), 0);
    }
    assert_int_equal(aq_capabilities_add(&c, a, AQ_CAP_SECRETS, "X", &err), -EINVAL);
    assert_non_null(strstr(err.text, "512"));
    assert_string_equal(c.group[AQ_CAP_SECRETS].patterns[511], "S511");
    assert_string_equal(c.group[AQ_CAP_SECRETS].patterns[0], "S0");
}

static void round_trip_and_hostile_forms(void **state)
{
    static const char *const bad[] = {
        "[]",
        "true",
        "{\"magic\":[]}",
        "{\"network\":null}",
        "{\"network\":[1]}",
        "{\"network\":[\"A.example\"]}",
        "{\"network\":[\"b\",\"a\"]}",
        "{\"network\":[\"a\",\"a\"]}",
        "{\"filesystem.read\":[\"a/../b\"]}",
        "{\"filesystem.read\":[\"a/\"]}",
        "{\"shell\":[\"a\\nb\"]}",
    };
    static const char good[] = "{\"clock\":[\"*\"],\"filesystem.read\":[\"~/"
                               "**\"],\"network\":[],\"shell\":[\"git *\",\"ls\"]}";
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *from = NULL, *back = NULL;
    aq_auto_buf b = {0};
    aq_capabilities c = {0};
    aq_err err;

    (void)state;
    assert_int_equal(aq_json_parse(good, strlen(good), "good", &from, &err), 0);
    assert_int_equal(aq_capabilities_read(a, from, &c, &err), 0);
    back = aq_capabilities_json(&c);
    assert_int_equal(aq_json_canonical(back, &b), 0);
    assert_string_equal(aq_buf_str(&b), good);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        aq_auto_json json_t *j = NULL;
        assert_int_equal(aq_json_parse(bad[i], strlen(bad[i]), "bad", &j, &err), 0);
        if (aq_capabilities_read(a, j, &c, &err) != -EBADMSG)
            fail_msg("accepted %s", bad[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(hosts),
        cmocka_unit_test(commands_and_names),
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(order_and_repeats_do_not_matter),
        cmocka_unit_test(any_swallows_the_rest),
        cmocka_unit_test(bounded),
        cmocka_unit_test(round_trip_and_hostile_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
