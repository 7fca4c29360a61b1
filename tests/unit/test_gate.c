/* L0, the attribute gate: each finding, and beside it an honest package that must not have it. The
 * README and licence of a package are read by the real jailed job: this program is its own jail. */
#include "scene.h"

/* ---- attributes ---- */

static void whole_packages_are_clean(void **state)
{
    scene *s = *state;

    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", README, "LICENSE", MIT_TEXT);
    clean(s);
    judge(s, "SKILL.md",
          "---\nname: log-reader\ndescription: Counts errors.\n---\n# Log\n\n" PROSE);
    clean(s);
    found(s, ATTRIBUTE_WANTED); /* no version, no licence: told, since the format has no need */
    assert_non_null(strstr(find(s, AQ_RULE_L0_ATTRIBUTE_WANTED)->message,
                           "Not given, and not required here: "));
    assert_int_equal(s->findings->per_rule[AQ_RULE_L0_ATTRIBUTE_WANTED], 1); /* one line for all */
    judge(s, ".claude-plugin/plugin.json",
          "{\"name\": \"log-reader\", \"description\": \"Counts errors.\"}", "README.md", README);
    clean(s);
    judge(s, "package.json",
          "{\"name\": \"log-reader\", \"version\": \"1.0.0\", \"description\": \"MCP server that "
          "counts.\", \"license\": \"ISC\", \"dependencies\": {\"@modelcontextprotocol/sdk\": "
          "\"1.0.0\"}, \"bin\": \"x.js\"}",
          "README.md", README, "x.js", "1");
    clean(s);
}

static void missing_attributes_are_told(void **state)
{
    scene *s = *state;

    judge(s, "notes.txt", "nothing here");
    found(s, MANIFEST_NONE);
    judge(s, "arc-manifest.yaml", "schema: arc/v1\ntype: skill\nversion: 1.0.0\n");
    found(s, ATTRIBUTE_MUST); /* the name */
    found(s, ATTRIBUTE_MISSING);
    found(s, README_MISSING);
    found(s, LICENSE_MISSING);
    found(s, CAPABILITIES_UNSAID);
    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", README);
    clean(s);
    judge(s, "arc-bundle.yaml",
          "schema: arc/v1\nname: pair\nversion: 1.0.0\ntype: bundle\ndescription: d\nlicense: MIT\n"
          "author: Ada\nreferences: []\n");
    found(s, ATTRIBUTE_MUST); /* a bundle of nothing */
    s->unread = true; /* what is missing may be in what intake could not read: nothing is refused */
    judge(s, "arc-manifest.yaml", "schema: arc/v1\ntype: skill\nversion: 1.0.0\n");
    not_found(s, ATTRIBUTE_MUST);
    found(s, ATTRIBUTE_MISSING);
    judge(s, "notes.txt", "nothing here");
    not_found(s, MANIFEST_NONE);
    found(s, UNREAD);
    s->manifest_unread = true; /* what it leaves out is not known, so nothing is said of it */
    judge(s, "arc-manifest.yaml", "schema: arc/v1\ntype: skill\nversion: 1.0.0\n");
    not_found(s, ATTRIBUTE_MISSING);
    not_found(s, ATTRIBUTE_WANTED);
    not_found(s, CAPABILITIES_UNSAID);
    found(s, README_MISSING);
}

static void every_type_and_kind_has_its_row(void **state)
{
    (void)state;
    for (aq_type t = AQ_TYPE_NONE; t < AQ_TYPE_COUNT; t++) {
        aq_manifest m = {.kind = AQ_KIND_ARC, .type = t};
        assert_int_equal(aq_gate_need(&m, AQ_ATTRIBUTE_NAME), AQ_MUST);
        assert_int_equal(aq_gate_need(&m, AQ_ATTRIBUTE_LICENSE), AQ_REQUIRED);
    }
    for (aq_kind k = AQ_KIND_UNKNOWN; k < AQ_KIND_COUNT; k++) {
        aq_manifest m = {.kind = k, .type = AQ_TYPE_SKILL};
        assert_true(aq_gate_need(&m, AQ_ATTRIBUTE_NAME) >= AQ_WANTED);
    }
}

/* ---- README ---- */

static void empty_readmes_are_told(void **state)
{
    static const char *const thin[] = {
        "",
        "\n\n",
        "# Log reader\n",
        "Log reader\n==========\n",
        "# Project Title\n\nOne Paragraph of project description goes here\n\n## Installing\n",
        "```\nnpm install log-reader; this is code and not a word about its purpose\n```\n",
    };
    static const char *const honest[] = {
        README,
        "Log reader\n==========\n\n" PROSE,
        "# log-reader\n\nlog-reader counts errors in logs.\n",
        "# \xe3\x83\xad\xe3\x82\xb0\n\n"
        "\xe3\x83\xad\xe3\x82\xb0\xe3\x83\x95\xe3\x82\xa1\xe3\x82\xa4\xe3\x83\xab\xe3\x81\xae"
        "\xe3\x82\xa8\xe3\x83\xa9\xe3\x83\xbc\xe3\x82\x92\xe6\x95\xb0\xe3\x81\x88\xe3\x81\xa6"
        "\xe8\xa6\x81\xe7\xb4\x84\xe3\x81\x97\xe3\x81\xbe\xe3\x81\x99\xe3\x80\x82\n", /* Japanese */
        "# Log reader\n\n" PROSE "\n## Roadmap\n\nColours: coming soon.\n",
    };
    scene *s = *state;

    for (size_t i = 0; i < sizeof thin / sizeof *thin; i++) {
        judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", thin[i]);
        found(s, README_THIN);
    }
    for (size_t i = 0; i < sizeof honest / sizeof *honest; i++) {
        judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", honest[i]);
        clean(s);
    }
}

/* Sixty letters are a sentence, twenty are one that names the package; a line of a template counts
 * for nothing, and is told only where nothing else is said. */
static void a_sentence_is_enough(void **state)
{
    static const struct {
        const char *head;
        int letters;
        bool thin;
    } cases[] = {
        {"# Notes\n\n", 59, true},      {"# Notes\n\n", 60, false},
        {"# log-reader\n\n", 19, true}, {"# log-reader\n\n", 20, false},
        {"Coming soon\n\n", 59, true},  {"Coming soon\n\n", 60, false},
    };
    scene *s = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_auto_buf text = {0};
        aq_buf_adds(&text, cases[i].head);
        for (int n = 0; n < cases[i].letters; n++)
            aq_buf_adds(&text, n % 5 ? "a" : " b");
        judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", aq_buf_str(&text));
        if (cases[i].thin)
            found(s, README_THIN);
        else
            clean(s);
    }
}

static void odd_readmes_are_told(void **state)
{
    scene *s = *state;
    aq_auto_buf big = {0};

    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md",
          "\x7f"
          "ELF\x02\x01\x01");
    found(s, README_NOT_TEXT);
    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", README "\xff\xfe");
    found(s, README_NOT_TEXT);
    while (big.len < 1 << 20)
        aq_buf_addc(&big, big.len % 8 ? 'a' : ' ');
    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", aq_buf_str(&big));
    clean(s);
    aq_buf_addc(&big, 'a');
    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", aq_buf_str(&big));
    found(s, README_LARGE);
    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md",
          "\xef\xbb\xbf" README "\r\n\tcaf\xc3\xa9\n");
    clean(s);
    judge(s, "SKILL.md", "---\nname: x-y\ndescription: d\n---\n");
    found(s, README_THIN); /* a skill without instructions; told of the file that is meant */
    assert_non_null(strstr(find(s, AQ_RULE_L0_README_THIN)->message, "SKILL.md says hardly"));
}

/* ---- licences ---- */

static void declared_and_text_are_compared(void **state)
{
    scene *s = *state;

    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", README, "LICENSE", APACHE);
    found(s, LICENSE_MISMATCH);
    assert_string_equal(find(s, AQ_RULE_L0_LICENSE_MISMATCH)->file, "LICENSE");
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: MIT OR Apache-2.0\ncapabilities: {}\n"),
          "README.md", README, "LICENSE", APACHE);
    clean(s);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: Apache 2.0\ncapabilities: {}\n"),
          "README.md", README, "LICENSE", APACHE);
    clean(s);
    found(s, LICENSE_SPELLING);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: Apache 2.0\ncapabilities: {}\n"),
          "README.md", README, "LICENSE", MIT_TEXT);
    found(s, LICENSE_MISMATCH);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: Zend-2.0\ncapabilities: {}\n"),
          "README.md", README, "LICENSE", "Our own terms.");
    clean(s);
    found(s, LICENSE_TEXT);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: Nobody knows\ncapabilities: {}\n"),
          "README.md", README);
    found(s, LICENSE_UNKNOWN);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: GPL-3.0\ncapabilities: {}\n"),
          "README.md", README);
    clean(s);
    found(s, LICENSE_DEPRECATED);
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: See LICENSE\ncapabilities: {}\n"),
          "README.md", README);
    found(s, LICENSE_UNKNOWN); /* and there is no such file */
    judge(s, "arc-manifest.yaml", ARC("x-reader", "license: UNLICENSED\ncapabilities: {}\n"),
          "README.md", README);
    clean(s);
    found(s, LICENSE_CLOSED);
}

/* ---- names ---- */

static void names_in_themselves(void **state)
{
    static const char *const illegal[] = {"",
                                          "../evil",
                                          "a/b/c",
                                          "-rf",
                                          ".hidden",
                                          "a b`id`",
                                          "x$(y)",
                                          "a;b",
                                          "tool\xe2\x80\x8b",
                                          "a\\b",
                                          "\xe2\x80\xaetxt",
                                          "---",
                                          "a|b",
                                          "a\x1b[2J",
                                          "\xff",
                                          "dir/"};
    static const char *const legal[] = {"log-reader",
                                        "log_reader",
                                        "a",
                                        "@acme/tool",
                                        "io.acme/tool",
                                        "PDF Guide (beta)",
                                        "\xe6\x97\xa5\xe8\xa8\x98",
                                        "7zip"};
    static const char *const mixed[] = {"p\xd0\xb0yment",
                                        "l\xce\xbf"
                                        "der",
                                        "\xef\xbd\x81"
                                        "bc",
                                        "\xf0\x9d\x90\xac"
                                        "kill"};
    static const char *const single[] = {"payment", "caf\xc3\xa9", "\xd0\xbf\xd0\xbe\xd0\xb3-2",
                                         "\xe6\x97\xa5\xe8\xa8\x98-app", "na\xc3\xafve-tool"};
    scene *s = *state;

    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++)
        if (!aq_name_illegal(illegal[i]))
            fail_msg("%s", illegal[i]);
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
        assert_null(aq_name_illegal(legal[i]));
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        assert_non_null(aq_name_mixed(mixed[i]));
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        assert_null(aq_name_mixed(single[i]));
    judge(s, "SKILL.md", "---\nname: 'log;reader'\ndescription: d\n---\n" PROSE);
    found(s, NAME_ILLEGAL);
    judge(s, "SKILL.md", "---\nname: \"log\\u200breader\"\ndescription: d\n---\n" PROSE);
    found(s, NAME_ILLEGAL);
    judge(s, "SKILL.md", "---\nname: \"p\xd0\xb0yment\"\ndescription: d\n---\n" PROSE);
    found(s, NAME_MIXED);
    judge(s, "SKILL.md", "---\nname: Log Reader\ndescription: d\n---\n" PROSE);
    clean(s);
    found(s, NAME_ODD);
}

static void lookalikes_are_told(void **state)
{
    static const char *const alike[] = {"calender-sync", "calendar_sync", "calendarsync",
                                        "claendar-sync", "calendar-synk", "ca1endar-sync",
                                        "calendar.sync", "calendarr-sync"};
    static const char *const apart[] = {"weather", "calendar", "calendar-share", "mail-sync",
                                        "log-reader"};
    scene *s = *state;

    know(s, "", "calendar-sync", "acme", true);
    know(s, "", "pdf", "acme", true);
    know(s, "", "gpt-4-tools", "acme", true);
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        judge_name(s, alike[i]);
        found(s, NAME_LOOKALIKE);
    }
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++) {
        judge_name(s, apart[i]);
        clean(s);
        not_found(s, NAME_NEAR);
    }
    judge_name(s, "pdx"); /* short names: only what looks the same */
    clean(s);
    judge_name(s, "PDF");
    not_found(s, NAME_LOOKALIKE);
    judge_name(s, "gpt-5-tools");
    clean(s);
    found(s, NAME_NEAR);
    judge_name(s, "calendar-sync-official");
    clean(s);
    found(s, NAME_NEAR);
    judge_name(s, "py-calendar-sync");
    clean(s);
    found(s, NAME_NEAR);
    s->policy.name_distance = 0;
    judge_name(s, "calender-sync");
    clean(s);
    judge_name(s, "calendar_sync");
    found(s, NAME_LOOKALIKE);
}

static void taken_names_are_told(void **state)
{
    scene *s = *state;

    know(s, "acme", "log-reader", "acme", true);
    know(s, "", "tool-box", "first", false);
    judge_name(s, "log-reader");
    clean(s);
    found(s, NAME_NEAR); /* in another namespace */
    s->submission.local = false;
    s->submission.name = "log-reader";
    s->submission.namespace_ = "acme";
    s->submission.publisher = "mallory";
    judge_name(s, "log-reader");
    found(s, NAME_TAKEN);
    s->submission.publisher = "acme"; /* who says to be the owner */
    judge_name(s, "log-reader");
    found(s, NAME_UNPROVEN);
    not_found(s, NAME_TAKEN);
    s->submission.name = "log-reoder"; /* nor may it imitate what is not proven to be its own */
    judge_name(s, "log-reoder");
    found(s, NAME_LOOKALIKE);
    s->submission.name = "log-reader";
    s->submission.signature = AQ_SIGNATURE_GOOD; /* the owner */
    judge_name(s, "log-reader");
    not_found(s, NAME_UNPROVEN);
    not_found(s, NAME_TAKEN);
    not_found(s, NAME_NEAR);
    s->submission.signature = AQ_SIGNATURE_NONE;
    s->submission.name = "Log-Reader"; /* the same name to a computer */
    s->submission.publisher = "mallory";
    judge_name(s, "Log-Reader");
    found(s, NAME_TAKEN);
    s->submission.name = "log-reader";
    s->submission.namespace_ = "ACME"; /* so is the namespace in other letters */
    judge_name(s, "log-reader");
    found(s, NAME_TAKEN);
    s->submission.name = "tool-box";
    s->submission.namespace_ = NULL;
    judge_name(s, "tool-box");
    found(s, NAME_CLAIMED);
    s->submission = (aq_submission){.id = "1", .local = true, .publisher = "local"};
    judge_name(s, "tool-box");
    clean(s);
    found(s, NAME_KNOWN);
}

/* Likeness that the operator confirmed is not told again. */
static void confirmed_names_are_left_alone(void **state)
{
    scene *s = *state;

    know(s, "", "calendar-sync", "acme", true);
    s->submission.local = true;
    s->submission.publisher = "zed";
    judge_name(s, "calendar-syng");
    found(s, NAME_LOOKALIKE);
    know(s, "", "calendar-syng", "zed", false);
    judge_name(s, "calendar-syng");
    found(s, NAME_LOOKALIKE);
    know(s, "", "calendar-syng", "zed", true);
    judge_name(s, "calendar-syng");
    clean(s);
    s->submission.namespace_ = "elsewhere"; /* this one nobody has looked at */
    judge_name(s, "calendar-syng");
    found(s, NAME_LOOKALIKE);
}

/* ---- envelopes ---- */

static void make_envelope(scene *s)
{
    pack(s, (const char *const[]){"arc-manifest.yaml", GOOD_ARC, "README.md", README, NULL, NULL});
    s->package.packed = aq_sha256("artifact", 8);
    s->package.packed_bytes = 8;
    s->submission = (aq_submission){.id = "e1",
                                    .nonce = "n1",
                                    .publisher = "acme",
                                    .name = "log-reader",
                                    .version = "1.0.0",
                                    .type = AQ_TYPE_SKILL,
                                    .tier = AQ_TIER_NEW,
                                    .artifact = s->package.packed,
                                    .artifact_size = 8,
                                    .signature = AQ_SIGNATURE_GOOD,
                                    .time = 1800000000};
}

/* Another package in the envelope of make_envelope, which stays true of its bytes. */
static void pack_enveloped(scene *s, const char *const *parts)
{
    pack(s, parts);
    s->package.packed = s->submission.artifact;
    s->package.packed_bytes = s->submission.artifact_size;
}

static void true_envelopes_pass(void **state)
{
    scene *s = *state;
    aq_auto_json json_t *copy =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{}}", "schema", "arc/v1", "name",
                  "log-reader", "version", "1.0.0", "type", "skill", "description",
                  "Counts errors.", "author", "Ada", "license", "MIT", "capabilities");

    make_envelope(s);
    gate(s);
    clean(s);
    s->submission.manifest = copy;
    gate(s);
    clean(s);
    s->submission.time += 3600; /* clocks differ */
    gate(s);
    clean(s);
}

static void lying_envelopes_are_rejected(void **state)
{
    scene *s = *state;
    aq_auto_json json_t *copy = json_pack("{s:s, s:s}", "schema", "arc/v1", "name", "log-reader");

    make_envelope(s);
    s->submission.artifact = aq_sha256("other", 5);
    gate(s);
    found(s, ENVELOPE_ARTIFACT);
    make_envelope(s);
    s->submission.artifact_size = 9;
    gate(s);
    found(s, ENVELOPE_ARTIFACT);
    make_envelope(s);
    s->submission.name = "log-writer";
    gate(s);
    found(s, ENVELOPE_IDENTITY);
    make_envelope(s);
    s->submission.version = "2.0.0";
    gate(s);
    found(s, ENVELOPE_IDENTITY);
    make_envelope(s);
    s->submission.type = AQ_TYPE_TOOL;
    gate(s);
    found(s, ENVELOPE_IDENTITY);
    make_envelope(s);
    s->submission.manifest = copy;
    gate(s);
    found(s, ENVELOPE_MANIFEST);
    make_envelope(s);
    s->submission.time += 3 * 24 * 3600;
    gate(s);
    found(s, ENVELOPE_FUTURE);
    make_envelope(s);
    s->submission.signature = AQ_SIGNATURE_BAD;
    gate(s);
    found(s, SIGNATURE_BAD);
    make_envelope(s);
    s->submission.signature = AQ_SIGNATURE_UNCHECKED;
    gate(s);
    found(s, SIGNATURE_UNCHECKED);
    assert_true(s->findings->incomplete); /* cannot pass */
}

/* The namespace is as much of an identity as the name: the same letters in the same case. */
static void namespaces_of_envelopes(void **state)
{
    static const char *const other[] = {"acme2", "Acme", "ACME", "acm", "acme.", "globex"};
    scene *s = *state;
    const char *parts[] = {"arc-manifest.yaml",
                           ARC("log-reader", "namespace: acme\nlicense: MIT\ncapabilities: {}\n"),
                           "README.md",
                           README,
                           NULL,
                           NULL};

    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        make_envelope(s);
        pack_enveloped(s, parts);
        s->submission.namespace_ = other[i];
        gate(s);
        if (!find(s, AQ_RULE_L0_ENVELOPE_IDENTITY))
            fail_msg("namespace %s was taken for acme", other[i]);
        assert_non_null(strstr(find(s, AQ_RULE_L0_ENVELOPE_IDENTITY)->message, other[i]));
    }
    make_envelope(s);
    pack_enveloped(s, parts);
    s->submission.namespace_ = "acme";
    gate(s);
    clean(s);
    /* Where one of the two is silent there is nothing to contradict. */
    s->submission.namespace_ = NULL;
    gate(s);
    not_found(s, ENVELOPE_IDENTITY);
    make_envelope(s);
    s->submission.namespace_ = "acme";
    gate(s);
    clean(s);
}

/* What a package says of its own namespace is judged like its name. */
static void namespaces_of_packages(void **state)
{
    static const struct {
        const char *space;
        bool illegal, mixed;
    } rows[] = {
        {"acme", false, false},     {"acme-tools", false, false}, {"Acme", false, false},
        {"ac;me", true, false},     {"-acme", true, false},       {"ac\\ame", true, false},
        {"\u0430cme", false, true}, /* a Cyrillic first letter */
        {"acm\u0435", false, true}, {"\u202eacme", true, false},
    };
    scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        snprintf(text, sizeof text, ARC("log-reader", "namespace: \"%s\"\nlicense: MIT\n"),
                 rows[i].space);
        judge(s, "arc-manifest.yaml", text, "README.md", README);
        if ((find(s, AQ_RULE_L0_NAME_ILLEGAL) != NULL) != rows[i].illegal ||
            (find(s, AQ_RULE_L0_NAME_MIXED) != NULL) != rows[i].mixed)
            fail_msg("namespace %s", rows[i].space);
    }
}

/* ---- rate ---- */

/* What the gate says of the rate when it is `now`. */
static void judge_rate(scene *s, int64_t now)
{
    aq_stage_input in = {.submission = &s->submission, .policy = &s->policy};
    aq_err err = {0};

    assert_int_equal(aq_admit(&s->submission, &s->policy, s->store, now, &in.admission, &err), 0);
    s->findings = aq_findings_new(s->a);
    aq_gate_rate(&in, s->findings);
}

static void floods_are_stopped(void **state)
{
    scene *s = *state;
    int64_t now = aq_now();
    aq_err err = {0};

    make_envelope(s);
    s->policy.rate_limit = 3;
    for (int i = 0; i < 4; i++) {
        aq_submission one = s->submission;
        char id[8];

        snprintf(id, sizeof id, "%d", i);
        one.id = one.nonce = id;
        assert_int_equal(aq_store_begin(s->store, &one, &err), 0);
        judge_rate(s, now);
        if (i < 3)
            not_found(s, RATE);
        else
            found(s, RATE);
    }
    s->submission.publisher = "another";
    judge_rate(s, now);
    not_found(s, RATE);
    s->submission.publisher = "acme";
    assert_int_equal(s->submission.signature, AQ_SIGNATURE_GOOD);
    s->submission.signature = AQ_SIGNATURE_UNCHECKED; /* who only says so has a share of its own */
    judge_rate(s, now);
    not_found(s, RATE);
    s->submission.signature = AQ_SIGNATURE_GOOD;
    judge_rate(s, now);
    found(s, RATE);
    s->submission.publisher = "acme";
    s->submission.local = true; /* the command line is not limited */
    judge_rate(s, now);
    not_found(s, RATE);
    s->submission.local = false;
    s->policy.rate_limit = 0;
    judge_rate(s, now);
    not_found(s, RATE);
    s->policy.rate_limit = 3;
    judge_rate(s, now + s->policy.rate_window - 2); /* still within the window */
    found(s, RATE);
    judge_rate(s, now + s->policy.rate_window + 3); /* it has passed */
    not_found(s, RATE);
}

/* What a stage sees of the moment are three answers, and a day is the line. */
static void the_moment_is_admission(void **state)
{
    scene *s = *state;
    aq_admission a = {.replayed = true};
    aq_err err = {0};

    make_envelope(s);
    s->submission.time = 1800000000 + 86400;
    assert_int_equal(aq_admit(&s->submission, &s->policy, s->store, 1800000000, &a, &err), 0);
    assert_true(a.replayed && !a.dated_ahead && !a.over_rate);
    s->submission.time++;
    assert_int_equal(aq_admit(&s->submission, &s->policy, s->store, 1800000000, &a, &err), 0);
    assert_true(a.replayed && a.dated_ahead);
    a = (aq_admission){0};
    s->submission.local = true;
    assert_int_equal(aq_admit(&s->submission, &s->policy, s->store, 1800000000, &a, &err), 0);
    assert_false(a.replayed || a.dated_ahead || a.over_rate);
}

/* ---- the jail ---- */

/* A reader that dies must not look like one that found nothing. */
static void silence_is_not_consent(void **state)
{
    scene *s = *state;

    judge(s, "arc-manifest.yaml", GOOD_ARC, "README.md", README);
    clean(s);
    close(s->package.image);
    s->package.image = open("/dev/null", O_WRONLY | O_CLOEXEC); /* cannot be read */
    gate(s);
    found(s, UNREAD);
    assert_true(s->findings->incomplete);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCENE(whole_packages_are_clean),
        SCENE(missing_attributes_are_told),
        cmocka_unit_test(every_type_and_kind_has_its_row),
        SCENE(empty_readmes_are_told),
        SCENE(odd_readmes_are_told),
        SCENE(a_sentence_is_enough),
        SCENE(declared_and_text_are_compared),
        SCENE(names_in_themselves),
        SCENE(lookalikes_are_told),
        SCENE(taken_names_are_told),
        SCENE(confirmed_names_are_left_alone),
        SCENE(true_envelopes_pass),
        SCENE(lying_envelopes_are_rejected),
        SCENE(namespaces_of_envelopes),
        SCENE(namespaces_of_packages),
        SCENE(floods_are_stopped),
        SCENE(the_moment_is_admission),
        SCENE(silence_is_not_consent),
    };

    be_the_jail(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
