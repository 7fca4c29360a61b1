/* Names among a thousand known ones: each way to imitate a name, with what must be told of it, and
 * honest names beside it of which nothing must be told. A row's set is exact: no rule more, none
 * less. */
#include "scene.h"

enum { INDEX = 1000 };

/* Letters of a row: I illegal, M mixed, O odd, L look-alike, N near, K known. */
static const struct {
    char letter;
    aq_rule_id rule;
} letters[] = {
    {'I', AQ_RULE_L0_NAME_ILLEGAL},   {'M', AQ_RULE_L0_NAME_MIXED},   {'O', AQ_RULE_L0_NAME_ODD},
    {'L', AQ_RULE_L0_NAME_LOOKALIKE}, {'N', AQ_RULE_L0_NAME_NEAR},    {'K', AQ_RULE_L0_NAME_KNOWN},
    {'T', AQ_RULE_L0_NAME_TAKEN},     {'C', AQ_RULE_L0_NAME_CLAIMED},
};

typedef struct row {
    const char *name, *told;
} row;

/* Words that are far from each other, so that only the rows below come near a name. */
static const char *const firsts[] = {
    "amber",  "bronze", "copper",  "desert", "ember",   "falcon",  "garnet", "harbor",
    "indigo", "jasper", "kelp",    "lagoon", "meadow",  "nimbus",  "orchid", "prairie",
    "quartz", "river",  "saffron", "tundra", "umbra",   "velvet",  "willow", "xenon",
    "yonder", "zephyr", "acorn",   "birch",  "cypress", "dolphin", "elk",    "fjord"};
static const char *const seconds[] = {
    "archive",  "browser", "catalog",  "digest",   "exporter", "formatter", "grapher",   "hasher",
    "importer", "journal", "keymaker", "linter",   "mapper",   "notebook",  "optimizer", "planner",
    "queue",    "runner",  "sampler",  "tracker",  "uploader", "validator", "watcher",   "xray",
    "yielder",  "zipper",  "auditor",  "balancer", "crawler",  "drafter",   "embedder",  "fetcher"};

static void make_index(scene *s)
{
    static const char *const more[] = {
        "github-mcp", "filesystem",    "web-search",  "claude-code",    "slack", "pdf",
        "docx",       "calendar-sync", "gpt-4-tools", "modern-kitchen", "turn"};
    enum { FIRSTS = sizeof firsts / sizeof *firsts, SECONDS = sizeof seconds / sizeof *seconds };
    aq_known *all = aq_arena_alloc(s->a, (INDEX + 1) * sizeof *all);
    size_t n = 0;
    aq_err err = {0};

    for (; n < sizeof more / sizeof *more; n++)
        all[n] = (aq_known){"", more[n], "acme", true};
    all[n++] = (aq_known){"acme", "log-reader", "acme", true};
    for (size_t i = 0; n < INDEX; i++, n++)
        all[n] = (aq_known){
            "", aq_arena_printf(s->a, "%s-%s", firsts[i % FIRSTS], seconds[i / FIRSTS % SECONDS]),
            "acme", true};
    assert_int_equal(aq_store_know_many(s->store, all, n, &err), 0);
}

/* The name's own findings as letters, in the order of the table. */
static void told(const scene *s, char *ret)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (find(s, letters[i].rule))
            *ret++ = letters[i].letter;
    *ret = '\0';
}

/* The gate's names alone, so that a row costs no jail. */
static void judge_row(scene *s, const char *space, const char *name, char *ret)
{
    aq_stage_input in = {.submission = &s->submission,
                         .package = &s->package,
                         .manifest = &s->manifest,
                         .policy = &s->policy,
                         .store = s->store};
    aq_auto_buf quoted = {0};
    aq_err err = {0};

    aq_text_quote(&quoted, name, strlen(name));
    s->manifest = (aq_manifest){.kind = AQ_KIND_SKILL,
                                .file = "SKILL.md",
                                .name = aq_arena_strdup(s->a, aq_buf_str(&quoted)),
                                .namespace_ = space};
    s->findings = aq_findings_new(s->a);
    if (aq_gate_names(&in, s->findings, &err) < 0)
        fail_msg("%s: %s", name, err.text);
    told(s, ret);
}

static void must_be_told(scene *s, const row *rows, size_t count)
{
    char got[16];
    size_t wrong = 0;

    for (size_t i = 0; i < count; i++) {
        judge_row(s, NULL, rows[i].name, got);
        if (strcmp(got, rows[i].told) == 0)
            continue;
        wrong++;
        print_error("  %s: told \"%s\", not \"%s\"\n", rows[i].name, got, rows[i].told);
        for (size_t j = 0; j < s->findings->count; j++)
            print_error("      %s\n", s->findings->items[j].message);
    }
    assert_int_equal(wrong, 0);
}

#define table(s, rows) must_be_told(s, rows, sizeof rows / sizeof *rows)

static void letters_that_look_alike(void **state)
{
    static const row rows[] = {
        {"c\xd0\xb0lendar-sync", "ML"},        /* Cyrillic a */
        {"\xd1\x81\xd0\xb0lendar-sync", "ML"}, /* Cyrillic es, a */
        {"\xcf\x81"
         "df",
         "ML"}, /* Greek rho */
        {"sl\xce\xb1"
         "ck",
         "ML"},                          /* Greek alpha */
        {"\xef\xbd\x86ilesystem", "MK"}, /* fullwidth f: one name to a computer */
        {"\xf0\x9d\x90\x9f"
         "ilesystem",
         "MK"},                                                    /* mathematical bold f */
        {"f\xc4\xb1lesystem", "OL"},                               /* dotless i is a Latin letter */
        {"filesyst\xc3\xa9m", "OL"},                               /* accent */
        {"filesystem\xcc\x81", "OL"},                              /* combining accent */
        {"ca1endar-sync", "L"},                                    /* one for l */
        {"filesystern", "L"},                                      /* rn for m */
        {"d0cx", "L"},                                             /* zero for o */
        {"s1ack", "L"},                                            /* one for l */
        {"w3b-search", "L"},                                       /* three for e */
        {"we\xd0\xb2-search", "ML"},                               /* Cyrillic ve for b */
        {"caf\xc3\xa9-finder", "O"},                               /* honest accent */
        {"\xd0\xbf\xd0\xbe\xd0\xb3\xd0\xbe\xd0\xb4\xd0\xb0", "O"}, /* an honest Russian name */
        {"\xe5\xa4\xa9\xe6\xb0\x97-tool", "O"},                    /* an honest Japanese one */
        {"weather-map", ""},
    };
    scene *s = *state;

    make_index(s);
    table(s, rows);
}

/* Names of services, and what is typed or thought up in their place; and other words beside them.
 */
static void two_slips_and_other_words(void **state)
{
    static const row rows[] = {
        {"antrophic", "L"},  {"anthorpci", "L"},  /* two slips between the same ends; two swaps */
        {"guthib", "L"},     {"gtihbu", "L"},     /* the same letters in another order */
        {"github-inc", "N"}, {"get-github", "N"}, /* common words */
        {"githbu", "L"},     {"gthub", "L"},      {"gitthub", "L"},
        {"motion", "N"},     {"preact", "N"},     {"entry", "N"}, /* another first letter */
        {"postgresql", "N"},                                      /* longer at its end */
        {"antibiotic", ""},  {"brightly", ""},
    };
    static const char *const services[] = {"anthropic", "github", "notion",
                                           "react",     "sentry", "postgres"};
    scene *s = *state;

    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        know(s, "", services[i], "acme", true);
    table(s, rows);
}

static void characters_that_act(void **state)
{
    static const row rows[] = {
        {"filesystem\xe2\x80\x8b", "I"},     /* zero width space */
        {"file\xe2\x80\x8dsystem", "I"},     /* zero width joiner */
        {"file\xc2\xadsystem", "I"},         /* soft hyphen */
        {"filesystem\xef\xb8\x8f", "MK"},    /* variation selector, which emoji need */
        {"filesystem\xe3\x85\xa4", "I"},     /* Hangul filler */
        {"\xe2\x80\xaemetsyselif", "I"},     /* right to left */
        {"filesystem\xf3\xa0\x81\x81", "I"}, /* tag letter */
        {"-filesystem", "I"},                /* an option to commands */
        {".filesystem", "I"},                /* a hidden file */
        {"filesystem/", "I"},
        {"file`system", "I"},
        {"a/b/filesystem", "I"},
        {"file..system", "I"},
        {"filesystem\n", "I"},
        {"File Manager (beta)", "O"}, /* unusual and harmless */
        {"file-manager", ""},
    };
    scene *s = *state;

    make_index(s);
    table(s, rows);
}

static void separators_and_case(void **state)
{
    static const row rows[] = {
        {"calendar_sync", "L"},  {"calendar.sync", "L"},
        {"calendarsync", "L"},   {"calendar--sync", "L"},
        {"calendar-sync-", "L"}, {"_calendar-sync", "L"},
        {"cal-endar-sync", "L"}, {"calendar sync", "OL"},
        {"Calendar-Sync", "OK"}, {"CALENDAR-SYNC", "OK"},
        {"Calendar_Sync", "OL"}, {"calendar\xe2\x80\x90sync", "OL"}, /* another hyphen */
        {"p-d-f", "L"},          {"calendar-sync", "K"},
        {"calendar-share", ""},  {"calendar", ""},
        {"synchronize", ""},
    };
    scene *s = *state;

    make_index(s);
    table(s, rows);
}

static void slips_of_fingers(void **state)
{
    static const row rows[] = {
        {"filesystemm", "L"},
        {"filesytem", "L"},
        {"fliesystem", "L"},
        {"filessystem", "L"},
        {"filesystems", "L"},
        {"filesystwm", "L"},
        {"calender-sync", "L"},
        {"claendar-sync", "L"},
        {"calendar-synk", "L"},
        {"slakc", "L"},
        {"sslack", "L"},
        {"slacks", "L"},
        {"slak", "N"},
        {"pfd", "L"},
        {"pdff", "L"},
        {"dcox", "L"},
        {"amber-archvie", "L"},
        {"xenon-optimiser", "L"},
        {"zephyr-balancr", "L"},
        {"quartz-plannre", "L"},
        {"saffrn-digest", "L"},
        {"moderan-kitchen", "L"},
        {"modenr-kitchen", "L"},
        {"moden-kitchen", "L"},
        {"modern-kitcen", "L"},
        {"tunr", "L"},
        {"turrn", "L"},
        {"tern", ""},
        {"pdx", ""},
        {"pdb", ""},
        {"doc", ""},
        {"docs", ""},
        {"slate", ""},
        {"file-server", ""},
        {"system-files-list", ""},
        {"amber-museum", ""},
        {"quilt-planner", ""},
    };
    scene *s = *state;

    make_index(s);
    table(s, rows);
}

static void words_around_a_name(void **state)
{
    static const row rows[] = {
        {"filesystem-official", "N"},
        {"filesystem-cli", "N"},
        {"mcp-filesystem", "N"},
        {"my-filesystem", "N"},
        {"filesystem-mcp-server", "N"},
        {"the-real-filesystem", "N"},
        {"github-mcp-server", "N"},
        {"github-official-mcp", "N"},
        {"githubmcp", "L"},
        {"mcpgithub", "N"},
        {"github-server", "N"},
        {"github", "N"},
        {"filesystemmcp", "N"},
        {"filesystemm-mcp", "L"},
        {"my-filesytem-cli", "L"},
        {"my-gpt-4-toolz", "L"},
        {"my-gpt-5-tools", ""}, /* a sibling and no slip: another number, another word */
        {"gpt-5-tools-mcp", ""},
        {"filesystem-secure", "N"},
        {"github-v2", "N"},
        {"filesystem-v3", "N"},
        {"filesystem2", "N"},
        {"github-github-mcp", "N"},
        {"gpt-5-tools", "N"},
        {"search-web", "N"},
        {"code-claude", "N"},
        {"archive-amber", "N"},
        {"pdf-tools", "N"},
        {"pdf-secure", "N"},
        {"file-search", ""},
        {"code-review", ""},
        {"web-fetch", ""},
        {"pdf-merge", ""},
        {"system-monitor", ""},
        {"mcp-inspector", ""},
        {"gitlab-notes", ""},
        {"server-tools", ""},
        {"amber-search", ""},
    };
    scene *s = *state;

    make_index(s);
    table(s, rows);
}

static void tricks_with_namespaces(void **state)
{
    static const struct {
        const char *space, *name, *told;
    } rows[] = {
        {"acme", "log-reader", "K"},
        {"Acme", "log-reader", "K"},
        {"acne", "log-reader", "N"},
        {"acmee", "log-reader", "L"},
        {"amce", "log-reader", "L"},
        {"\xd0\xb0\x63me", "log-reader", "ML"},
        {NULL, "log-reader", "N"},
        {"zeta", "log-reader", "N"},
        {NULL, "acme/log-reader", "L"},
        {NULL, "acme-log-reader", "L"},
        {NULL, "@acme/log-reader", "L"},
        {NULL, "acme_log-reader", "L"},
        {"acme", "log-raeder", "L"},
        {"acme", "../x", "I"},
        {"ac\xe2\x80\x8bme", "log-reader", "I"},
        {"acme", "mail-reader", ""},
        {"zeta", "weather", ""},
        {NULL, "zeta-weather", ""},
        {NULL, "acme-weather", ""},
    };
    scene *s = *state;
    char got[16];

    make_index(s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_buf quoted = {0};
        if (rows[i].space)
            aq_text_quote(&quoted, rows[i].space, strlen(rows[i].space));
        judge_row(s, rows[i].space ? aq_buf_str(&quoted) : NULL, rows[i].name, got);
        if (strcmp(got, rows[i].told) != 0)
            fail_msg("%s / %s: told \"%s\", not \"%s\"", rows[i].space ? rows[i].space : "",
                     rows[i].name, got, rows[i].told);
    }
}

/* Two edits, one at each end: a slip from ten letters on, and none below. */
static void how_many_slips_count(void **state)
{
    scene *s = *state;
    char got[16];

    know(s, "", "quizmaker", "acme", true);
    know(s, "", "plumbrushy", "acme", true);
    judge_row(s, NULL, "guizmakes", got);
    assert_string_equal(got, "");
    judge_row(s, NULL, "quizmakes", got);
    assert_string_equal(got, "L");
    judge_row(s, NULL, "glumbrusha", got);
    assert_string_equal(got, "L");
    /* With a common word around it: from six letters on. */
    know(s, "", "wombat", "acme", true);
    know(s, "", "tapir", "acme", true);
    judge_row(s, NULL, "my-wombet", got);
    assert_string_equal(got, "L");
    judge_row(s, NULL, "my-tapis", got);
    assert_string_equal(got, "");
}

/* One name near many known ones: five are named, so that they do not bury the rest. */
static void few_of_many_are_named(void **state)
{
    static const char *const known[] = {"amberpulls", "amberpullk", "amberpullz", "amberpulla",
                                        "amberpulle", "amberpullo", "amberpullu"};
    scene *s = *state;
    char got[16];

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        know(s, "", known[i], "acme", true);
    judge_row(s, NULL, "amberpully", got);
    assert_string_equal(got, "L");
    assert_int_equal(s->findings->per_rule[AQ_RULE_L0_NAME_LOOKALIKE], 5);
}

static void long_names(void **state)
{
    scene *s = *state;
    aq_auto_buf name = {0};
    char got[16];

    make_index(s);
    while (name.len < 214)
        aq_buf_addc(&name, "abcdefghij"[name.len * 7 % 10]);
    judge_row(s, NULL, aq_buf_str(&name), got);
    assert_string_equal(got, "");
    know(s, "", aq_buf_str(&name), "acme", true);
    name.data[100] = name.data[100] == 'a' ? 'b' : 'a';
    judge_row(s, NULL, aq_buf_str(&name), got);
    assert_string_equal(got, "L");
    aq_buf_addc(&name, 'x');
    judge_row(s, NULL, aq_buf_str(&name), got);
    assert_string_equal(got, "I");
    aq_buf_clear(&name); /* many words */
    for (int i = 0; i < 70; i++)
        aq_buf_adds(&name, i ? "-ab" : "ab");
    judge_row(s, NULL, aq_buf_str(&name), got);
    assert_string_equal(got, "");
}

/* Honest names made of the same words as the known ones: of none must a person look. */
static void honest_neighbours(void **state)
{
    static const char *const other[] = {"museum", "orchestra", "thermostat", "dictionary",
                                        "garden"};
    scene *s = *state;
    char got[16];

    make_index(s);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        for (size_t j = 0; j < sizeof other / sizeof *other; j++) {
            char name[64];
            snprintf(name, sizeof name, "%s-%s", firsts[i], other[j]);
            judge_row(s, NULL, name, got);
            if (*got)
                fail_msg("%s: told \"%s\": %s", name, got, s->findings->items[0].message);
        }
    }
}

/* Every known name, with each of its letters doubled, dropped or swapped. */
static void no_slip_escapes(void **state)
{
    scene *s = *state;
    char got[16];

    make_index(s);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i += 3) {
        char name[64], slip[160];
        size_t n = (size_t)snprintf(name, sizeof name, "%s-%s", firsts[i], seconds[3]);
        for (size_t at = 0; at + 1 < n; at++) {
            snprintf(slip, sizeof slip, "%.*s%c%s", (int)at, name, name[at], name + at);
            judge_row(s, NULL, slip, got);
            assert_non_null(strchr(got, 'L'));
            snprintf(slip, sizeof slip, "%.*s%s", (int)at, name, name + at + 1);
            if (*slip == '-')
                continue;
            judge_row(s, NULL, slip, got);
            if (!strchr(got, 'L'))
                fail_msg("%s: told \"%s\"", slip, got);
            snprintf(slip, sizeof slip, "%.*s%c%c%s", (int)at, name, name[at + 1], name[at],
                     name + at + 2);
            judge_row(s, NULL, slip, got);
            if (!strchr(got, 'L') && strcmp(slip, name) != 0)
                fail_msg("%s: told \"%s\"", slip, got);
        }
    }
}

static void policy_turns_slips_off(void **state)
{
    static const row rows[] = {{"filesystemm", ""},     {"pfd", ""},
                               {"filesystemm-mcp", ""}, {"calendar_sync", "L"},
                               {"filesystem-cli", "N"}, {"d0cx", "L"}};
    scene *s = *state;

    make_index(s);
    s->policy.name_distance = 0;
    table(s, rows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCENE(letters_that_look_alike),   SCENE(characters_that_act),
        SCENE(two_slips_and_other_words), SCENE(separators_and_case),
        SCENE(slips_of_fingers),          SCENE(words_around_a_name),
        SCENE(tricks_with_namespaces),    SCENE(long_names),
        SCENE(how_many_slips_count),      SCENE(few_of_many_are_named),
        SCENE(honest_neighbours),         SCENE(no_slip_escapes),
        SCENE(policy_turns_slips_off),
    };

    be_the_jail(argc, argv);
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
