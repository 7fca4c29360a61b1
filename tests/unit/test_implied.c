/* What manifests start: implied beside what is declared, "none" only where nothing contradicts it,
 * and marketplaces that list plugins. */
#include "seen.h"

#define AGENT "---\nname: r\ndescription: x\ntools: Read, Grep, Glob\n---\n"
#define HOOK                                                                                       \
    "{\"hooks\":{\"PostToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"note.sh\"}]}]}}"

/* The tools of an agent are no declaration of the plugin: its hook runs a shell all the same. */
static void a_member_does_not_speak_for_the_plugin(void **state)
{
    seen s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "agents/r.md", AGENT,
                  "hooks/hooks.json", HOOK);

    (void)state;
    must_be_clean(&s);
    must_declare(&s, "{\"filesystem.read\":[\"/**\"]}");
    must_imply(&s, "{\"hooks\":[\"PostToolUse\"],\"shell\":[\"note.sh\"]}");
    done(&s);
    s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "agents/r.md", AGENT);
    must_declare(&s, "{\"filesystem.read\":[\"/**\"]}");
    must_imply(&s, "null");
    done(&s);
    s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "commands/c.md",
             "---\ndescription: x\n---\nLook at the change.");
    must_be_clean(&s);
    must_declare(&s, "null");
    must_imply(&s, "null");
    done(&s);
}

static void none_of_a_collection(void **state)
{
    seen s = look("a/SKILL.md", "---\nname: a\ndescription: x\nallowed-tools: Read\n---\n",
                  "b/SKILL.md", "---\nname: b\ndescription: x\nallowed-tools: Grep\n---\n");

    (void)state;
    must_declare(&s, "{\"filesystem.read\":[\"/**\"],\"filesystem.write\":[],\"mcp\":[],"
                     "\"network\":[],\"shell\":[],\"subagents\":[]}");
    done(&s);
    s = look("a/SKILL.md", "---\nname: a\ndescription: x\nallowed-tools: Read\n---\n", "b/SKILL.md",
             "---\nname: b\ndescription: x\n---\n");
    must_declare(&s, "{\"filesystem.read\":[\"/**\"]}"); /* b may do anything */
    done(&s);
}

static void a_skill_with_a_hook(void **state)
{
    seen s = look("SKILL.md", "---\nname: a\ndescription: x\nallowed-tools: Read\nhooks:\n"
                              "  Stop:\n    - hooks:\n        - type: command\n"
                              "          command: end.sh\n---\n");

    (void)state;
    must_declare(&s, "{\"filesystem.read\":[\"/**\"],\"filesystem.write\":[],\"mcp\":[],"
                     "\"network\":[],\"subagents\":[]}");
    must_imply(&s, "{\"hooks\":[\"Stop\"],\"shell\":[\"end.sh\"]}");
    done(&s);
}

static void a_block_can_be_contradicted(void **state)
{
    seen s =
        look("arc-manifest.yaml", "name: x\ntype: tool\ncapabilities:\n  bash: {allowed: false}\n"
                                  "scripts:\n  postinstall: ./up.sh\n");

    (void)state;
    must_find(&s, AQ_RULE_CAPABILITY_CONTRADICTED, "arc-manifest.yaml", 6);
    must_declare(&s, "{\"shell\":[]}"); /* its own word stays */
    must_imply(&s, "{\"shell\":[\"./up.sh\"]}");
    done(&s);
    s = look("arc-manifest.yaml",
             "name: x\ntype: tool\ncapabilities:\n  bash:\n    allowed: true\n"
             "    restricted_to: [./up.sh]\nscripts:\n  postinstall: ./up.sh\n");
    must_be_clean(&s);
    done(&s);
    /* A program that a person starts is what a tool is for. */
    s = look("arc-manifest.yaml", "name: x\ntype: tool\ncapabilities:\n  bash: {allowed: false}\n"
                                  "provides:\n  cli:\n    - command: python3 x.py\n");
    must_be_clean(&s);
    must_imply(&s, "{\"shell\":[\"python3 x.py\"]}");
    done(&s);
    s = look("arc-manifest.yaml", "name: x\ntype: skill\ncapabilities: {}\n");
    must_declare(&s, "{}");
    must_imply(&s, "null");
    done(&s);
}

static void scripts_of_packages(void **state)
{
    seen s = look("package.json", "{\"name\":\"x-mcp\",\"bin\":\"i.js\","
                                  "\"scripts\":{\"postinstall\":\"node  get.js\",\"test\":\"t\"}}");

    (void)state;
    must_imply(&s, "{\"shell\":[\"node get.js\"]}");
    done(&s);
    s = look("package.json", "{\"name\":\"x-mcp\",\"bin\":\"i.js\",\"scripts\":{\"test\":\"t\"}}");
    must_imply(&s, "null");
    done(&s);
    s = look("pyproject.toml", "[project]\nname = \"x-mcp\"\n", "setup.py", "x");
    must_imply(&s, "{\"shell\":[\"setup.py\"]}");
    done(&s);
    s = look("SKILL.md", "---\nname: a\ndescription: x\n---\n", "package.json",
             "{\"name\":\"a\",\"scripts\":{\"preinstall\":\"p\"}}");
    must_imply(&s, "{\"shell\":[\"p\"]}"); /* also of a manifest that does not speak */
    done(&s);
}

/* What has no canonical form is implied as "any", never left out. */
static void odd_commands(void **state)
{
    aq_auto_buf b = {0};
    seen s = look(".mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"x\\u202ey\"},"
                               "\"b\":{\"url\":\"https://${HOST}/m\"}}}");

    (void)state;
    must_imply(&s, "{\"mcp\":[\"a\",\"b\"],\"network\":[\"*\"],\"shell\":[\"*\"]}");
    done(&s);
    aq_buf_adds(&b, "name: x\ntype: tool\nscripts:\n  a:\n");
    for (int i = 0; i < AQ_CAP_PATTERNS + 1; i++)
        aq_buf_addf(&b, "    - run-%d\n", i);
    s = look("arc-manifest.yaml", aq_buf_str(&b));
    must_imply(&s, "{\"shell\":[\"*\"]}");
    done(&s);
}

static void marketplace(void **state)
{
    seen s = look(
        ".claude-plugin/marketplace.json",
        "{\"name\":\"acme-shelf\",\"owner\":{\"name\":\"Acme\"},\n"
        "\"metadata\":{\"description\":\"Our plugins.\",\"version\":\"1.0.0\"},\n\"plugins\":[\n"
        "{\"name\":\"one\",\"source\":\"./plugins/one\",\"version\":\"0.1.0\"},\n"
        "{\"name\":\"two\",\"source\":{\"source\":\"github\",\"repo\":\"acme/two\","
        "\"ref\":\"v2\",\"sha\":\"0123456789012345678901234567890123456789\"}},\n"
        "{\"name\":\"three\",\"source\":{\"source\":\"url\",\"url\":\"https://g.example/"
        "3.git\"}},\n"
        "{\"name\":\"four\",\"source\":\"./plugins/four\",\"strict\":false,"
        "\"mcpServers\":{\"db\":{\"command\":\"db-serve\"}}}]}",
        "plugins/one/.claude-plugin/plugin.json", "{\"name\":\"one\",\"version\":\"0.1.0\"}",
        "plugins/one/hooks/hooks.json", HOOK, "plugins/four/README.md", "x");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_PLUGIN);
    assert_string_equal(s.m.dialect, "claude-marketplace");
    assert_string_equal(s.m.name, "acme-shelf");
    assert_string_equal(s.m.version, "1.0.0");
    assert_string_equal(s.m.description, "Our plugins.");
    assert_string_equal(s.m.author, "Acme");
    assert_true(s.m.reference_count >= 4);
    assert_string_equal(s.m.references[0].name, "one");
    assert_string_equal(s.m.references[0].locator, "./plugins/one");
    assert_string_equal(s.m.references[0].version, "0.1.0");
    assert_int_equal(s.m.references[0].line, 4);
    assert_string_equal(s.m.references[1].locator,
                        "github:acme/two@0123456789012345678901234567890123456789");
    assert_string_equal(s.m.references[2].locator, "https://g.example/3.git");
    assert_null(s.m.references[2].sha256);
    must_imply(&s, "{\"hooks\":[\"PostToolUse\"],\"mcp\":[\"db\"],"
                   "\"shell\":[\"db-serve\",\"note.sh\"]}");
    done(&s);
}

static void marketplace_edges(void **state)
{
    seen s = look(".claude-plugin/marketplace.json",
                  "{\"name\":\"m\",\"plugins\":[\n{\"name\":\"out\",\"source\":\"../x\"},\n"
                  "{\"name\":\"no-source\"},\n7]}");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_OUTSIDE, ".claude-plugin/marketplace.json", 2);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, ".claude-plugin/marketplace.json", 3);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, ".claude-plugin/marketplace.json", 4);
    done(&s);
    s = look(".claude-plugin/marketplace.json", "{\"name\":\"m\"}");
    must_find(&s, AQ_RULE_MANIFEST_FIELD, ".claude-plugin/marketplace.json", 0);
    done(&s);
    /* A plugin that is its own marketplace: the plugin speaks, and does not refer to itself. */
    s = look(".claude-plugin/marketplace.json",
             "{\"name\":\"shelf\",\"plugins\":[{\"name\":\"p\",\"source\":\"./\"}]}",
             ".claude-plugin/plugin.json", "{\"name\":\"p\"}");
    must_be_clean(&s);
    assert_string_equal(s.m.dialect, "claude-plugin");
    assert_string_equal(s.m.name, "p");
    assert_int_equal(s.m.reference_count, 0);
    assert_int_equal(s.m.also_count, 1);
    done(&s);
}

static const char plain_skill[] = "---\nname: a\ndescription: x\n---\n";

/* An agent that loads the folder as a plugin runs these, whatever SKILL.md says. */
static void hooks_without_a_plugin(void **state)
{
    seen s = look("SKILL.md", plain_skill, "hooks/hooks.json", HOOK, "deep/x/hooks/hooks.json",
                  "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"end.sh\"}]}]}}");

    (void)state;
    assert_int_equal(s.m.kind, AQ_KIND_SKILL);
    must_find(&s, AQ_RULE_MANIFEST_HOOKS, "hooks/hooks.json", 0);
    must_find(&s, AQ_RULE_MANIFEST_HOOKS, "deep/x/hooks/hooks.json", 0);
    must_imply(&s, "{\"hooks\":[\"PostToolUse\",\"Stop\"],\"shell\":[\"end.sh\",\"note.sh\"]}");
    done(&s);
    s = look("hooks/hooks.json", HOOK, "commands/go.md", "---\nallowed-tools: Read(a)\n---\n");
    must_find(&s, AQ_RULE_MANIFEST_HOOKS, "hooks/hooks.json", 0);
    assert_int_equal(s.m.kind, AQ_KIND_PLUGIN);
    assert_null(s.m.name);
    must_start(&s, 0, "hook:PostToolUse", "note.sh", "hooks/hooks.json", 1);
    done(&s);
    s = look("SKILL.md", plain_skill, "hooks/hooks.json", "{\"hooks\": // no JSON\n{}}");
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "hooks/hooks.json", 1);
    done(&s);
    /* harmless: hooks of something else, none at all, and those that a manifest stands for */
    s = look("SKILL.md", plain_skill, "src/hooks/hooks.json", "{\"useState\":[\"a\",{\"b\":1}]}",
             "hooks/hooks.json", "{\"description\":\"none yet\",\"hooks\":{\"Stop\":[]}}");
    must_be_clean(&s);
    must_imply(&s, "null");
    done(&s);
    s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "hooks/hooks.json", HOOK);
    must_be_clean(&s);
    done(&s);
    s = look(".claude-plugin/marketplace.json",
             "{\"name\":\"m\",\"owner\":{\"name\":\"A\"},\"plugins\":[{\"name\":\"x\","
             "\"source\":\"./plugins/x\"}]}",
             "plugins/x/hooks/hooks.json", HOOK);
    must_be_clean(&s);
    must_imply(&s, "{\"hooks\":[\"PostToolUse\"],\"shell\":[\"note.sh\"]}");
    done(&s);
}

/* Where letter case does not count these are manifests. */
static void manifests_in_another_case(void **state)
{
    static const char *const paths[] = {".Claude-Plugin/plugin.json", ".claude-plugin/Plugin.JSON",
                                        "plugins/x/.CLAUDE-PLUGIN/plugin.json"};
    seen s;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        s = look("SKILL.md", plain_skill, paths[i],
                 "{\"name\":\"a\",\"hooks\":{\"Stop\":[{\"command\":\"end.sh\"}]}}");
        assert_int_equal(s.m.kind, AQ_KIND_SKILL); /* on most machines it is */
        must_find(&s, AQ_RULE_MANIFEST_SPELLING, paths[i], 0);
        must_imply(&s, "{\"hooks\":[\"Stop\"],\"shell\":[\"end.sh\"]}");
        done(&s);
    }
    s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "Hooks/hooks.json", HOOK,
             ".MCP.json", "{\"mcpServers\":{\"db\":{\"command\":\"db-serve\"}}}");
    assert_string_equal(s.m.file, ".claude-plugin/plugin.json");
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, "Hooks/hooks.json", 0);
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, ".MCP.json", 0);
    must_imply(&s, "{\"hooks\":[\"PostToolUse\"],\"mcp\":[\"db\"],"
                   "\"shell\":[\"db-serve\",\"note.sh\"]}");
    done(&s);
    /* harmless: pages are read in any case, and files that only sound like manifests */
    s = look("skill.md", plain_skill, "Server.json", "{\"port\":80}", ".claude-plugin-notes/x", "",
             "docs/Claude-Plugin/plugin.json", "{}");
    must_be_clean(&s);
    done(&s);
}

/* Where Windows has stored them these are manifests; elsewhere they are files of no meaning. */
static void manifests_that_windows_makes(void **state)
{
    static const char *const paths[] = {
        ".claude-plugin./plugin.json",   ".claude-plugin/plugin.json.",
        ".claude-plugin/plugin.json ",   ".claude-plugin/plugin.json::$DATA",
        ".Claude-Plugin . /plugin.json", "plugins/x/.claude-plugin./plugin.json",
    };
    static const char entry[] = "{\"name\":\"a\",\"hooks\":{\"Stop\":[{\"command\":\"end.sh\"}]}}";
    seen s;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        s = look("SKILL.md", plain_skill, paths[i], entry);
        assert_int_equal(s.m.kind, AQ_KIND_SKILL);
        must_find(&s, AQ_RULE_MANIFEST_SPELLING, paths[i], 0);
        must_imply(&s, "{\"hooks\":[\"Stop\"],\"shell\":[\"end.sh\"]}");
        done(&s);
    }
    s = look(".claude-plugin/plugin.json", "{\"name\":\"p\"}", "hooks./hooks.json", HOOK,
             ".mcp.json ", "{\"mcpServers\":{\"db\":{\"command\":\"db-serve\"}}}",
             "commands/go.md.", "---\nallowed-tools: Read(a)\n---\n", "skills/x/SKILL.md.",
             plain_skill);
    assert_string_equal(s.m.file, ".claude-plugin/plugin.json");
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, "hooks./hooks.json", 0);
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, ".mcp.json ", 0);
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, "commands/go.md.", 0);
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, "skills/x/SKILL.md.", 0);
    done(&s);
    s = look("SKILL.md", plain_skill, "SKILL.md.", "---\nname: other\n---\n");
    assert_string_equal(s.m.file, "SKILL.md");
    assert_string_equal(s.m.name, "a");
    must_find(&s, AQ_RULE_MANIFEST_SPELLING, "SKILL.md.", 0);
    done(&s);
    /* harmless: names that end so and become no manifest, and a folder around everything */
    s = look("a-1.0./SKILL.md", plain_skill, "a-1.0./SKILL.md.bak", "x", "a-1.0./notes./x.json",
             "{}", "a-1.0./plugin.json.", "{}");
    must_be_clean(&s);
    assert_string_equal(s.m.name, "a");
    done(&s);
}

static void matchers_of_hooks(void **state)
{
    static const struct {
        const char *matcher, *pattern, *kept;
    } rows[] = {
        {"Edit|Write", "PreToolUse(Edit|Write)", "Edit|Write"},
        {"Write|Edit|Write", "PreToolUse(Edit|Write)", "Write|Edit|Write"},
        {"mcp__.*\\\\.read", "PreToolUse(mcp__.*\\\\.read)", "mcp__.*\\\\.read"},
        {"*", "PreToolUse", NULL},
        {"", "PreToolUse", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_buf text = {0}, want = {0};
        aq_auto_json json_t *j = NULL;
        aq_manifest back;
        aq_err err = {0};
        seen s;
        aq_buf_addf(&text,
                    "{\"name\":\"p\",\"hooks\":{\"PreToolUse\":[{\"matcher\":\"%s\","
                    "\"hooks\":[{\"command\":\"a.sh\"}]}]}}",
                    rows[i].matcher);
        aq_buf_addf(&want, "{\"hooks\":[\"%s\"],\"shell\":[\"a.sh\"]}", rows[i].pattern);
        s = look(".claude-plugin/plugin.json", aq_buf_str(&text));
        must_be_clean(&s);
        must_imply(&s, aq_buf_str(&want));
        j = aq_manifest_json(&s.m);
        assert_int_equal(aq_manifest_read(s.a, j, &back, &err), 0);
        if (rows[i].kept)
            assert_string_equal(back.entry_points[0].matcher, rows[i].kept);
        else
            assert_null(back.entry_points[0].matcher);
        done(&s);
    }
}

/* A wider hook covers a narrower one; one handler for two sets of tools is two things. */
static void matchers_together(void **state)
{
    seen s = look(".claude-plugin/plugin.json",
                  "{\"name\":\"p\",\"hooks\":{\"PreToolUse\":["
                  "{\"matcher\":\"Bash\",\"hooks\":[{\"command\":\"a.sh\"}]},"
                  "{\"matcher\":\"Read\",\"hooks\":[{\"command\":\"a.sh\"}]}],"
                  "\"Stop\":[{\"matcher\":\"x\",\"hooks\":[{\"command\":\"b.sh\"}]},"
                  "{\"hooks\":[{\"command\":\"b.sh\"}]}]}}");

    (void)state;
    must_imply(&s, "{\"hooks\":[\"PreToolUse(Bash)\",\"PreToolUse(Read)\",\"Stop\"],"
                   "\"shell\":[\"a.sh\",\"b.sh\"]}");
    assert_int_equal(s.m.entry_point_count, 4);
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_does_not_speak_for_the_plugin),
        cmocka_unit_test(none_of_a_collection),
        cmocka_unit_test(a_skill_with_a_hook),
        cmocka_unit_test(hooks_without_a_plugin),
        cmocka_unit_test(manifests_in_another_case),
        cmocka_unit_test(manifests_that_windows_makes),
        cmocka_unit_test(matchers_of_hooks),
        cmocka_unit_test(matchers_together),
        cmocka_unit_test(a_block_can_be_contradicted),
        cmocka_unit_test(scripts_of_packages),
        cmocka_unit_test(odd_commands),
        cmocka_unit_test(marketplace),
        cmocka_unit_test(marketplace_edges),
    };

    return cmocka_run_group_tests_name("implied", tests, NULL, NULL);
}
