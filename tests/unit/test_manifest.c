/* Manifests: every kind read into one model, who speaks, and each finding with its harmless twin.
 */
#include "seen.h"

static void arc_package(void **state)
{
    seen s =
        look("arc-manifest.yaml",
             "# comment\nschema: arc/v1\nname: weather\nnamespace: \"@acme\"\nversion: 1.10\n"
             "type: tool\ntier: community\ndescription: >-\n  Tells the\n  weather.\n"
             "license: MIT\nauthor:\n  name: A. Person\n  github: ap\n"
             "repository: acme/weather\n"
             "provides:\n  cli:\n    - command: \"bun src/cli.ts\"\n      name: w\n"
             "  hooks:\n    - event: PreToolUse\n      matcher: Bash\n      command: h.ts\n"
             "scripts:\n  postinstall: ./post.sh\nlifecycle:\n  preinstall:\n    - a.sh\n"
             "    - b.sh\n"
             "capabilities:\n  filesystem:\n    read: [\"~/.config/w/\"]\n    write: []\n"
             "  network:\n    - domain: API.example.org\n      reason: data\n    - other.example\n"
             "    - {host: third.example, reason: x}\n  bash:\n    allowed: true\n"
             "    restricted_to: [\"git *\"]\n  secrets:\n    - TOKEN\n    - name: KEY\n"
             "depends_on:\n  packages:\n    - {name: base, repo: acme/base, version: '>=1'}\n",
             "README.md", "# Weather", "LICENSE", "MIT");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_ARC);
    assert_int_equal(s.m.type, AQ_TYPE_TOOL);
    assert_string_equal(s.m.dialect, "arc/v1");
    assert_string_equal(s.m.file, "arc-manifest.yaml");
    assert_string_equal(s.m.name, "weather");
    assert_string_equal(s.m.namespace_, "acme");
    assert_string_equal(s.m.version, "1.10");
    assert_string_equal(s.m.description, "Tells the weather.");
    assert_string_equal(s.m.author, "A. Person");
    assert_string_equal(s.m.homepage, "acme/weather");
    assert_string_equal(s.m.tier, "community");
    assert_string_equal(s.m.readme, "README.md");
    assert_string_equal(s.m.license_file, "LICENSE");
    must_declare(&s, "{\"filesystem.read\":[\"~/.config/w/**\"],\"filesystem.write\":[],"
                     "\"network\":[\"api.example.org\","
                     "\"other.example\",\"third.example\"],"
                     "\"secrets\":[\"KEY\",\"TOKEN\"],\"shell\":[\"git *\"]}");
    must_imply(&s, "{\"hooks\":[\"PreToolUse(Bash)\"],\"shell\":[\"./post.sh\",\"a.sh\",\"b.sh\","
                   "\"bun src/cli.ts\",\"h.ts\"]}");
    must_start(&s, 0, "cli", "bun src/cli.ts", "arc-manifest.yaml", 18);
    must_start(&s, 1, "hook:PreToolUse", "h.ts", "arc-manifest.yaml", 21);
    must_start(&s, 2, "postinstall", "./post.sh", "arc-manifest.yaml", 25);
    must_start(&s, 4, "preinstall", "b.sh", "arc-manifest.yaml", 29);
    assert_int_equal(s.m.reference_count, 1);
    assert_string_equal(s.m.references[0].locator, "acme/base");
    done(&s);
}

static void arc_dialects(void **state)
{
    seen s = look("pai-manifest.yaml", "name: x\nversion: 1.0.0\ntype: skill\n"
                                       "capabilities:\n  bash: {allowed: false}\n");

    (void)state;
    assert_string_equal(s.m.dialect, "pai/v1");
    must_declare(&s, "{\"shell\":[]}");
    done(&s);
    s = look("arc-manifest.yaml",
             "{\"schema\":\"metafactory/v1\",\"name\":\"@acme/x\",\"version\":\"1.0.0\","
             "\"type\":\"skill\",\"author\":{\"name\":\"p\"},\"license\":\"MIT\",\"capabilities\":{"
             "\"filesystem\":[{\"path\":\"~/a\",\"access\":\"read\"},"
             "{\"path\":\"~/b\",\"access\":\"write\"}],"
             "\"network\":[{\"domain\":\"a.example\"}],\"subprocess\":[{\"command\":\"*\"}],"
             "\"environment\":[{\"variable\":\"T\"}]}}");
    assert_string_equal(s.m.dialect, "metafactory/v1");
    assert_string_equal(s.m.name, "x");
    assert_string_equal(s.m.namespace_, "acme");
    must_declare(&s, "{\"filesystem.read\":[\"~/a\"],\"filesystem.write\":[\"~/b\"],"
                     "\"network\":[\"a.example\"],\"secrets\":[\"T\"],\"shell\":[\"*\"]}");
    must_be_clean(&s);
    done(&s);
}

static void absent_and_empty_blocks(void **state)
{
    seen s = look("arc-manifest.yaml", "name: x\n");

    (void)state;
    must_declare(&s, "null");
    done(&s);
    s = look("arc-manifest.yaml", "name: x\ncapabilities: {}\n");
    must_declare(&s, "{}");
    done(&s);
    s = look("arc-manifest.yaml", "name: x\ncapabilities:\n  network: []\n  bash: true\n");
    must_declare(&s, "{\"network\":[],\"shell\":[\"*\"]}");
    done(&s);
}

static void skill(void **state)
{
    seen s = look("SKILL.md",
                  "\xef\xbb\xbf---\r\nname: pdf-tools\r\ndescription: |\r\n  Reads\r\n  PDFs.\r\n"
                  "license: Apache-2.0\r\nmetadata:\r\n  version: 2.0\r\n  author: me\r\n"
                  "allowed-tools: Read, Bash(git add:*), Bash(ls), WebFetch(domain:Example.org) "
                  "mcp__docs__search\r\n---\r\n# PDF\r\n",
                  "readme.txt", "x", "license.md", "x");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_SKILL);
    assert_int_equal(s.m.type, AQ_TYPE_SKILL);
    assert_string_equal(s.m.name, "pdf-tools");
    assert_string_equal(s.m.description, "Reads PDFs.");
    assert_string_equal(s.m.version, "2.0");
    assert_string_equal(s.m.author, "me");
    assert_string_equal(s.m.readme, "readme.txt");
    assert_string_equal(s.m.license_file, "license.md");
    must_declare(&s, "{\"filesystem.read\":[\"/**\"],\"filesystem.write\":[],\"mcp\":[\"docs\"],"
                     "\"network\":[\"example.org\"],\"shell\":[\"git add *\",\"ls\"],"
                     "\"subagents\":[]}");
    done(&s);
    s = look("SKILL.md",
             "---\nname: a\ndescription: b\nallowed-tools:\n  - Bash\n  - Write\n---\n");
    must_declare(&s, "{\"filesystem.read\":[],\"filesystem.write\":[\"/**\"],\"mcp\":[],"
                     "\"network\":[],\"shell\":[\"*\"],\"subagents\":[]}");
    done(&s);
    s = look("SKILL.md", "---\nname: a\ndescription: b\n---\n");
    must_declare(&s, "null");
    done(&s);
}

static void front_matter_edges(void **state)
{
    seen s = look("SKILL.md", "---\nname: a\ndescription: Use when: asked, or if it's late\n---\n");

    (void)state;
    assert_string_equal(s.m.description, "Use when: asked, or if it's late");
    must_find(&s, AQ_RULE_MANIFEST_LOOSE, "SKILL.md", 0);
    assert_false(s.findings->incomplete);
    done(&s);
    s = look("SKILL.md", "---\nname: a\ndescription: \"Use when: asked\"\n---\n");
    must_be_clean(&s);
    done(&s);
    s = look("SKILL.md", "---\nname: a\ndescription: b\n");
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "SKILL.md", 0);
    assert_true(s.findings->incomplete);
    assert_int_equal(s.m.kind, AQ_KIND_SKILL);
    done(&s);
    s = look("SKILL.md", "# A page\n");
    must_find(&s, AQ_RULE_MANIFEST_BARE, "SKILL.md", 1);
    assert_false(s.findings->incomplete);
    done(&s);
    s = look("SKILL.md", "---\nname: a\nname: b\n---\n");
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "SKILL.md", 3);
    assert_true(s.findings->incomplete);
    assert_null(s.m.name);
    done(&s);
    s = look("SKILL.md", "---\nname: &a x\ndescription: *a\n---\n");
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "SKILL.md", 2);
    done(&s);
    {
        static const char nul[] = "---\nname: a\ndescription: b: \0c\n---\n";
        const char *const parts[] = {"SKILL.md", nul, NULL, NULL};
        s = look_sized(parts, sizeof nul - 1);
        must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "SKILL.md", 3);
        done(&s);
    }
    s = look("SKILL.md", "---\n---\n");
    must_be_clean(&s);
    done(&s);
}

static void skill_in_a_folder(void **state)
{
    seen s =
        look("pdf-1.0/SKILL.md", "---\nname: pdf\ndescription: x\n---\n", "pdf-1.0/README.md", "x");

    (void)state;
    must_be_clean(&s);
    assert_string_equal(s.m.file, "pdf-1.0/SKILL.md");
    assert_string_equal(s.m.readme, "pdf-1.0/README.md");
    done(&s);
    s = look("skill/SKILL.md", "---\nname: pdf\ndescription: x\n---\n", "skill/README", "x",
             "src/a.py", "x");
    must_be_clean(&s);
    assert_string_equal(s.m.file, "skill/SKILL.md");
    assert_string_equal(s.m.readme, "skill/README");
    done(&s);
}

static void collection(void **state)
{
    seen s =
        look("skills/b/SKILL.md", "---\nname: b\ndescription: x\nallowed-tools: Bash(ls)\n---\n",
             "skills/a/SKILL.md", "---\nname: a\ndescription: x\nallowed-tools: Read(src/)\n---\n",
             "README.md", "x", "node_modules/z/SKILL.md", "---\nname: z\n---\n");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_COLLECTION, "skills/a/SKILL.md", 0);
    assert_int_equal(s.findings->count, 1);
    assert_string_equal(s.m.name, "a");
    assert_int_equal(s.m.also_count, 1);
    assert_string_equal(s.m.also[0], "skills/b/SKILL.md");
    must_declare(&s, "{\"filesystem.read\":[\"src/**\"],\"filesystem.write\":[],\"mcp\":[],"
                     "\"network\":[],\"shell\":[\"ls\"],\"subagents\":[]}");
    done(&s);
}

static void plugin(void **state)
{
    seen s = look(
        ".claude-plugin/plugin.json",
        "{\"name\":\"deploy\",\"version\":\"2.1.0\",\"description\":\"d\",\n"
        "\"author\":{\"name\":\"T\"},\"license\":\"MIT\",\n\"hooks\":\"./extra/h.json\",\n"
        "\"mcpServers\":{\"db\":{\"command\":\"${CLAUDE_PLUGIN_ROOT}/db\",\"args\":[\"-p\",1]}}}",
        "extra/h.json",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"late.sh\"}]}]}}",
        "hooks/hooks.json",
        "{\"description\":\"x\",\"hooks\":{\"PostToolUse\":[\n{\"matcher\":\"Write\",\"hooks\":[\n"
        "{\"type\":\"command\",\"command\":\"fmt.sh\"}]}]}}",
        ".mcp.json",
        "{\"mcpServers\":{\"web\":{\"type\":\"http\",\"url\":\"https://x.example/m\"}}}",
        "commands/go.md", "---\nallowed-tools: Bash(git push:*)\n---\ngo", "agents/r.md",
        "---\nname: r\ndescription: x\ntools: Read, Grep\n---\n", "skills/s/SKILL.md",
        "---\nname: s\ndescription: x\n---\n");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_PLUGIN);
    assert_string_equal(s.m.name, "deploy");
    assert_string_equal(s.m.author, "T");
    must_start(&s, 0, "hook:PostToolUse", "fmt.sh", "hooks/hooks.json", 3);
    must_start(&s, 1, "mcp:http", "https://x.example/m", ".mcp.json", 1);
    must_start(&s, 2, "hook:Stop", "late.sh", "extra/h.json", 1);
    must_start(&s, 3, "mcp:stdio", "${CLAUDE_PLUGIN_ROOT}/db -p 1", ".claude-plugin/plugin.json",
               4);
    assert_int_equal(s.m.entry_point_count, 4);
    assert_int_equal(s.m.also_count, 4);
    must_declare(&s, "{\"filesystem.read\":[\"/**\"],\"shell\":[\"git push *\"]}");
    must_imply(&s, "{\"hooks\":[\"PostToolUse(Write)\",\"Stop\"],\"mcp\":[\"db\",\"web\"],"
                   "\"network\":[\"x.example:443\"],"
                   "\"shell\":[\"${CLAUDE_PLUGIN_ROOT}/db -p 1\",\"fmt.sh\",\"late.sh\"]}");
    done(&s);
}

static void plugin_paths(void **state)
{
    seen s = look(".claude-plugin/plugin.json",
                  "{\"name\":\"p\",\n\"hooks\":\"../../.bashrc\",\n\"commands\":[\"/etc/x.md\"],\n"
                  "\"mcpServers\":\"./gone.json\"}");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_OUTSIDE, ".claude-plugin/plugin.json", 2);
    must_find(&s, AQ_RULE_MANIFEST_OUTSIDE, ".claude-plugin/plugin.json", 3);
    must_find(&s, AQ_RULE_MANIFEST_ABSENT_FILE, ".claude-plugin/plugin.json", 4);
    done(&s);
    s = look(".claude-plugin/plugin.json",
             "{\"name\":\"p\",\"hooks\":\"./h.json\",\"commands\":[\"./c/x..y.md\"]}", "h.json",
             "{}");
    must_be_clean(&s);
    done(&s);
}

static void mcp_servers(void **state)
{
    seen s =
        look("server.json",
             "{\"$schema\":\"https://static.modelcontextprotocol.io/s.json\",\n"
             "\"name\":\"io.github.acme/weather\",\"version\":\"1.0.2\",\"description\":\"d\",\n"
             "\"packages\":[{\"registryType\":\"npm\",\"identifier\":\"@acme/weather\","
             "\"version\":\"1.0.2\",\"transport\":{\"type\":\"stdio\"},\n"
             "\"environmentVariables\":[{\"name\":\"KEY\",\"isSecret\":true},"
             "{\"name\":\"LANG\"}]}],\n"
             "\"remotes\":[{\"type\":\"sse\",\"url\":\"https://mcp.example.org/x\"}]}");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_MCP);
    assert_string_equal(s.m.name, "weather");
    assert_string_equal(s.m.namespace_, "io.github.acme");
    must_start(&s, 0, "mcp:stdio", "npm:@acme/weather", "server.json", 3);
    must_start(&s, 1, "mcp:http", "https://mcp.example.org/x", "server.json", 5);
    must_declare(&s, "{\"network\":[\"mcp.example.org:443\"],\"secrets\":[\"KEY\"]}");
    done(&s);
    s = look("package.json",
             "{\"name\":\"@acme/files\",\"version\":\"1.0.0\",\"license\":{\"type\":\"ISC\"},\n"
             "\"author\":\"A <a@x>\",\"bin\":{\"files\":\"dist/i.js\"},\n"
             "\"scripts\":{\"test\":\"jest\",\"postinstall\":\"node x.js\"},\n"
             "\"dependencies\":{\"@modelcontextprotocol/sdk\":\"^1\"}}");
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_MCP);
    assert_int_equal(s.m.type, AQ_TYPE_TOOL);
    assert_string_equal(s.m.namespace_, "acme");
    assert_string_equal(s.m.license, "ISC");
    must_start(&s, 0, "postinstall", "node x.js", "package.json", 3);
    must_start(&s, 1, "mcp:stdio", "dist/i.js", "package.json", 2);
    assert_int_equal(s.m.entry_point_count, 2);
    assert_string_equal(s.m.references[0].locator, "npm:@modelcontextprotocol/sdk");
    done(&s);
    s = look(".mcp.json", "{\"mcpServers\":{\"a\":{\"command\":\"npx\",\"args\":[\"-y\",\"p\"]}}}");
    assert_int_equal(s.m.kind, AQ_KIND_MCP);
    must_start(&s, 0, "mcp:stdio", "npx -y p", ".mcp.json", 1);
    must_declare(&s, "null");
    must_imply(&s, "{\"mcp\":[\"a\"],\"shell\":[\"npx -y p\"]}");
    done(&s);
}

static void python_servers(void **state)
{
    seen s =
        look("pyproject.toml",
             "[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n"
             "[project]\nname = \"weather\"\nversion = \"0.1.0\"\ndescription = \"d\"\n"
             "license = {text = \"MIT\"}\nauthors = [{name = \"P\", email = \"p@x\"}]\n"
             "dependencies = [\"mcp[cli]>=1.2; python_version > '3'\", \"x @ "
             "https://e.example/x.zip\"]\n"
             "[project.scripts]\nweather = \"weather:main\"\n",
             "setup.py", "import os");

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_MCP);
    assert_string_equal(s.m.dialect, "pyproject");
    assert_string_equal(s.m.license, "MIT");
    assert_string_equal(s.m.author, "P");
    must_start(&s, 0, "mcp:stdio", "weather:main", "pyproject.toml", 12);
    must_start(&s, 1, "build", "hatchling.build", "pyproject.toml", 3);
    must_start(&s, 2, "build", "setup.py", "setup.py", 0);
    assert_string_equal(s.m.references[0].name, "mcp");
    assert_string_equal(s.m.references[0].version, ">=1.2");
    assert_string_equal(s.m.references[1].locator, "https://e.example/x.zip");
    done(&s);
}

static void plain_projects_are_not_servers(void **state)
{
    seen s = look("package.json", "{\"name\":\"mcpherson\",\"scripts\":{\"install\":\"x\"}}");

    (void)state;
    assert_int_equal(s.m.kind, AQ_KIND_UNKNOWN);
    assert_string_equal(s.m.name, "mcpherson");
    must_find(&s, AQ_RULE_MANIFEST_PLAIN, "package.json", 0);
    must_start(&s, 0, "install", "x", "package.json", 1);
    done(&s);
    s = look("server.json", "{\"port\":80}");
    assert_int_equal(s.m.kind, AQ_KIND_UNKNOWN);
    assert_null(s.m.file);
    done(&s);
    s = look("notes.txt", "x");
    assert_null(s.m.file); /* L0 tells it */
    done(&s);
}

static void wasm(void **state)
{
    static const char module[] = "\0asm\1\0\0\0"
                                 "\1\4\1\x60\0\0"    /* type: func() */
                                 "\3\2\1\0"          /* function 0: type 0 */
                                 "\7\7\1\3run\0\0"   /* export "run" func 0 */
                                 "\x0a\4\1\2\0\x0b"; /* code */
    static const char component[] = "\0asm\x0d\0\1\0";
    const char *const parts[] = {"tool.wasm", module, NULL, NULL};
    const char *const whole[] = {"tool.wasm", component, NULL, NULL};
    seen s = look_sized(parts, sizeof module - 1);

    (void)state;
    must_be_clean(&s);
    assert_int_equal(s.m.kind, AQ_KIND_WASM);
    assert_int_equal(s.m.entry_point_count, 1);
    must_start(&s, 0, "wasm", "run", "tool.wasm", 0);
    done(&s);
    s = look_sized(whole, sizeof component - 1);
    must_start(&s, 0, "wasm", "component", "tool.wasm", 0);
    done(&s);
    s = look_sized(parts, sizeof module - 4);
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "tool.wasm", 0);
    done(&s);
    s = look("tool.wasm", "not wasm");
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "tool.wasm", 0);
    assert_true(s.findings->incomplete);
    done(&s);
}

static void bundle(void **state)
{
    seen s = look("arc-bundle.yaml",
                  "schema: arc/v1\nname: stack\nversion: 1.0.0\ntype: bundle\nreferences:\n"
                  "  - name: a\n    version: 1.0.0\n    path: ./a\n    sha256: "
                  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
                  "  - {name: b, version: 2.0.0, locator: '@x/b', sha256: BAD}\n"
                  "run_order: [b, a, c]\n");

    (void)state;
    assert_int_equal(s.m.kind, AQ_KIND_BUNDLE);
    assert_int_equal(s.m.type, AQ_TYPE_BUNDLE);
    assert_int_equal(s.m.reference_count, 2);
    assert_non_null(s.m.references[0].sha256);
    assert_null(s.m.references[1].sha256);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, "arc-bundle.yaml", 10);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, "arc-bundle.yaml", 11);
    assert_int_equal(s.findings->count, 2);
    must_start(&s, 0, "bundle", "b", "arc-bundle.yaml", 11);
    done(&s);
    s = look("arc-manifest.yaml",
             "name: x\ntype: bundle\nreferences: [{name: a, version: 1.0.0}]\n");
    assert_int_equal(s.m.kind, AQ_KIND_BUNDLE);
    assert_string_equal(s.m.dialect, "arc/v1");
    done(&s);
}

static void precedence(void **state)
{
    static const char *const order[] = {"arc-bundle.yaml",
                                        "name: x\n",
                                        "arc-manifest.yaml",
                                        "name: x\n",
                                        ".claude-plugin/plugin.json",
                                        "{\"name\":\"x\"}",
                                        "server.json",
                                        "{\"name\":\"x\",\"packages\":[]}",
                                        "SKILL.md",
                                        "---\nname: x\n---\n",
                                        "package.json",
                                        "{\"name\":\"x\",\"mcpName\":\"x\"}",
                                        "pyproject.toml",
                                        "[project]\nname = \"x\"\nkeywords = [\"mcp\"]\n",
                                        ".mcp.json",
                                        "{}",
                                        "agent/arc-manifest.yaml",
                                        "name: x\n",
                                        "sub/.claude-plugin/plugin.json",
                                        "{\"name\":\"x\"}",
                                        "skill/SKILL.md",
                                        "---\nname: x\n---\n",
                                        "skills/a/SKILL.md",
                                        "---\nname: x\n---\n",
                                        NULL,
                                        NULL};

    (void)state;
    for (size_t i = 0; order[i]; i += 2) {
        seen s = look_sized(order + i, 0);
        if (!s.m.file || strcmp(s.m.file, order[i]) != 0)
            fail_msg("%s should speak, not %s", order[i], s.m.file);
        must_be_clean(&s);
        done(&s);
    }
}

static void broken_one_elects_no_other(void **state)
{
    seen s = look("arc-manifest.yaml", "name: [\n", "SKILL.md", "---\nname: nice\n---\n");

    (void)state;
    assert_int_equal(s.m.kind, AQ_KIND_ARC);
    assert_null(s.m.name);
    must_find(&s, AQ_RULE_MANIFEST_UNREADABLE, "arc-manifest.yaml", 2);
    done(&s);
}

static void ambiguous(void **state)
{
    seen s = look("arc-manifest.yaml", "name: x\n", "pai-manifest.yaml", "name: x\n");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_AMBIGUOUS, "pai-manifest.yaml", 0);
    done(&s);
    s = look("SKILL.md", "---\nname: x\n---\n", "skill.md", "---\nname: x\n---\n");
    must_find(&s, AQ_RULE_MANIFEST_AMBIGUOUS, "skill.md", 0);
    done(&s);
    s = look("s/a/SKILL.md", "---\nname: x\n---\n", "s/a/Skill.md", "---\nname: y\n---\n", "r", "");
    must_find(&s, AQ_RULE_MANIFEST_AMBIGUOUS, "s/a/Skill.md", 0);
    done(&s);
    s = look("s/a/SKILL.md", "---\nname: x\n---\n", "s/b/skill.md", "---\nname: y\n---\n", "r", "");
    assert_int_equal(s.findings->per_rule[AQ_RULE_MANIFEST_AMBIGUOUS], 0);
    done(&s);
}

static void front_matter_that_reads_in_two_ways(void **state)
{
    static const struct {
        const char *text;
        uint32_t line; /* 0: nothing to tell */
    } rows[] = {
        {"---\nname: x\ndescription: d\n---\n", 0},
        {"---\r\nname: x\r\ndescription: d\r\n---\r\n", 0},
        {"---\nname: x\ndescription: caf\xc3\xa9 \xe2\x80\xa6 \xf0\x9f\x98\x80\n---\n", 0},
        {"---\nname: x\ndescription: d\xc2\x85"
         "allowed-tools: Bash\n---\n",
         3},
        {"---\nname: x\ndescription: d\xe2\x80\xa8"
         "allowed-tools: Bash\n---\n",
         3},
        {"---\nname: x\ndescription: d\xe2\x80\xa9"
         "hooks: y\n---\n",
         3},
        {"---\nname: x\nAllowed-Tools: Bash\n---\n", 3},
        {"---\nname: x\n...\nallowed-tools: Bash\n---\n", 3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        seen s = look("SKILL.md", rows[i].text);
        if (rows[i].line)
            must_find(&s, AQ_RULE_MANIFEST_READINGS, "SKILL.md", rows[i].line);
        else
            assert_int_equal(s.findings->per_rule[AQ_RULE_MANIFEST_READINGS], 0);
        done(&s);
    }
}

static void names_between_manifests(void **state)
{
    seen s = look("arc-manifest.yaml", "name: weather\n", "package.json", "{\"name\":\"wallet\"}");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_NAMES, "package.json", 0);
    done(&s);
    s = look("arc-manifest.yaml", "name: release-manager\n", "package.json",
             "{\"name\":\"@acme/release_manager\"}", "SKILL.md", "---\nname: ReleaseManager\n---\n",
             "skill/SKILL.md", "---\nname: other\n---\n");
    must_be_clean(&s);
    done(&s);
}

static void hidden_names(void **state)
{
    seen s = look("SKILL.md", "---\nname: pay\xe2\x80\x8bpal\ndescription: x\n---\n");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_HIDDEN, "SKILL.md", 0);
    assert_string_equal(s.m.name, "pay\\xe2\\x80\\x8bpal");
    done(&s);
    s = look("SKILL.md", "---\nname: caf\xc3\xa9\ndescription: x\n---\n");
    must_be_clean(&s);
    done(&s);
    s = look("SKILL.md", "---\nname: 'a\\\\x b'\ndescription: x\n---\n");
    must_be_clean(&s);
    done(&s);
}

static void patterns_without_meaning(void **state)
{
    seen s =
        look("arc-manifest.yaml", "name: x\ncapabilities:\n  filesystem:\n    read:\n"
                                  "      - ../../etc\n      - ~/ok\n  network:\n"
                                  "    - 0x7f000001\n  teleport: true\n  bash: {allowed: maybe}\n");

    (void)state;
    must_find(&s, AQ_RULE_CAPABILITY_PATTERN, "arc-manifest.yaml", 5);
    must_find(&s, AQ_RULE_CAPABILITY_PATTERN, "arc-manifest.yaml", 8);
    must_find(&s, AQ_RULE_CAPABILITY_UNKNOWN, "arc-manifest.yaml", 9);
    must_find(&s, AQ_RULE_CAPABILITY_PATTERN, "arc-manifest.yaml", 10);
    must_declare(&s, "{\"filesystem.read\":[\"~/ok\"],\"network\":[],\"shell\":[]}");
    done(&s);
    s = look("SKILL.md", "---\nname: x\ndescription: y\nallowed-tools: Fly, Read\n---\n");
    must_find(&s, AQ_RULE_CAPABILITY_UNKNOWN, "SKILL.md", 4);
    done(&s);
}

static void odd_fields_are_only_noted(void **state)
{
    seen s = look("arc-manifest.yaml", "name: x\nversion: [1]\ntype: spaceship\nschema: arc/v9\n");

    (void)state;
    must_find(&s, AQ_RULE_MANIFEST_FIELD, "arc-manifest.yaml", 2);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, "arc-manifest.yaml", 3);
    must_find(&s, AQ_RULE_MANIFEST_FIELD, "arc-manifest.yaml", 4);
    assert_int_equal(aq_findings_worst(s.findings), AQ_INFO);
    assert_int_equal(s.m.type, AQ_TYPE_NONE);
    done(&s);
}

static void lists_are_bounded(void **state)
{
    aq_auto_buf b = {0};
    seen s;

    (void)state;
    aq_buf_adds(&b, "name: x\nlifecycle:\n  postinstall:\n");
    for (int i = 0; i < 1024; i++)
        aq_buf_addf(&b, "    - s%d.sh\n", i);
    s = look("arc-manifest.yaml", aq_buf_str(&b));
    must_be_clean(&s);
    assert_int_equal(s.m.entry_point_count, 1024);
    done(&s);
    aq_buf_adds(&b, "    - one-more.sh\n");
    s = look("arc-manifest.yaml", aq_buf_str(&b));
    must_find(&s, AQ_RULE_MANIFEST_LIMIT, "arc-manifest.yaml", 0);
    assert_true(s.findings->incomplete);
    assert_int_equal(s.m.entry_point_count, 1024);
    done(&s);
}

static void round_trip(void **state)
{
    seen s = look("arc-manifest.yaml",
                  "name: x\ntype: skill\nversion: 1\ndescription: \"a\\tb\\u202e\"\n"
                  "scripts: {postinstall: a}\ncapabilities: {network: [b.example]}\n"
                  "references: [{name: c, version: 1.0.0}]\n",
                  "SKILL.md", "---\nname: x\n---\n");
    aq_auto_json json_t *j = aq_manifest_json(&s.m), *k = NULL;
    aq_manifest back;
    aq_err err = {0};

    (void)state;
    if (aq_manifest_read(s.a, j, &back, &err) < 0)
        fail_msg("%s", err.text);
    k = aq_manifest_json(&back);
    assert_true(json_equal(j, k));
    done(&s);
}

static void hostile_answers(void **state)
{
    static const char *const patches[] = {
        "{\"kind\":\"god\"}",
        "{\"kind\":1}",
        "{\"type\":\"god\"}",
        "{\"dialect\":\"x\"}",
        "{\"name\":1}",
        "{\"extra\":1}",
        "{\"declared\":1}",
        "{\"declared\":{\"network\":[\"A\"]}}",
        "{\"implied\":1}",
        "{\"implied\":{\"shell\":[\"b\",\"a\"]}}",
        "{\"entry_points\":null}",
        "{\"entry_points\":[{\"role\":\"a\"}]}",
        "{\"entry_points\":[{\"role\":\"a\",\"command\":\"b\",\"file\":\"c\",\"line\":-1}]}",
        "{\"entry_points\":[{\"role\":\"a\",\"command\":\"b\",\"file\":\"c\",\"line\":1,\"x\":1}]}",
        "{\"references\":[{\"name\":\"a\",\"sha256\":\"zz\",\"file\":\"c\",\"line\":1}]}",
        "{\"references\":[1]}",
        "{\"also\":[1]}",
        "{\"also\":{}}",
    };
    aq_auto_arena a = aq_arena_new();
    aq_manifest m = {0}, back;
    aq_auto_buf longest = {0};
    aq_err err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
        aq_auto_json json_t *j = aq_manifest_json(&m), *patch = NULL;
        assert_int_equal(aq_json_parse(patches[i], strlen(patches[i]), "p", &patch, &err), 0);
        assert_int_equal(aq_manifest_read(a, j, &back, &err), 0);
        json_object_update(j, patch);
        if (aq_manifest_read(a, j, &back, &err) != -EBADMSG)
            fail_msg("accepted %s", patches[i]);
    }
    for (int i = 0; i < 400; i++)
        aq_buf_addc(&longest, 'a');
    m.name = aq_buf_str(&longest);
    {
        aq_auto_json json_t *j = aq_manifest_json(&m);
        assert_int_equal(aq_manifest_read(a, j, &back, &err), -EBADMSG);
    }
    m.name = "a\x1b[31m";
    {
        aq_auto_json json_t *j = aq_manifest_json(&m);
        assert_int_equal(aq_manifest_read(a, j, &back, &err), 0);
        assert_string_equal(back.name, "a\xef\xbf\xbd[31m");
    }
}

static void names_of_things(void **state)
{
    aq_type type;

    (void)state;
    assert_string_equal(aq_kind_name(AQ_KIND_MCP), "mcp");
    assert_string_equal(aq_kind_title(AQ_KIND_UNKNOWN), "Package of no known kind");
    assert_string_equal(aq_type_name(AQ_TYPE_NONE), "none");
    assert_int_equal(aq_type_find("playbook", &type), 0);
    assert_int_equal(type, AQ_TYPE_PLAYBOOK);
    assert_int_equal(aq_type_find("none", &type), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arc_package),
        cmocka_unit_test(arc_dialects),
        cmocka_unit_test(absent_and_empty_blocks),
        cmocka_unit_test(skill),
        cmocka_unit_test(front_matter_edges),
        cmocka_unit_test(skill_in_a_folder),
        cmocka_unit_test(collection),
        cmocka_unit_test(plugin),
        cmocka_unit_test(plugin_paths),
        cmocka_unit_test(mcp_servers),
        cmocka_unit_test(python_servers),
        cmocka_unit_test(plain_projects_are_not_servers),
        cmocka_unit_test(wasm),
        cmocka_unit_test(bundle),
        cmocka_unit_test(precedence),
        cmocka_unit_test(broken_one_elects_no_other),
        cmocka_unit_test(ambiguous),
        cmocka_unit_test(front_matter_that_reads_in_two_ways),
        cmocka_unit_test(names_between_manifests),
        cmocka_unit_test(hidden_names),
        cmocka_unit_test(patterns_without_meaning),
        cmocka_unit_test(odd_fields_are_only_noted),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(hostile_answers),
        cmocka_unit_test(names_of_things),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
