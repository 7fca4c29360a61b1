/* Every rule of L0, each raised by one change to a package of which nothing at all is told, so the
 * twin of each row is the same package without the change. Sets are exact, info included. */
#include "scene.h"

typedef struct row {
    aq_rule_id rule;
    const char *manifest, *readme, *license; /* NULL: those of the honest package */
    void (*change)(scene *s);
} row;

static void other_artifact(scene *s)
{
    s->submission.artifact_size++;
}

static void other_name(scene *s)
{
    s->submission.version = "2.0.0";
}

static void other_manifest(scene *s)
{
    s->submission.manifest = json_pack("{s:s}", "name", "log-reader");
}

static void odd_type(scene *s)
{
    s->submission.media_type = "application/x-something";
}

static void wrong_type(scene *s)
{
    s->submission.media_type = "application/zip";
}

static void tomorrow(scene *s)
{
    s->submission.time += 2 * 24 * 3600;
}

static void unchecked(scene *s)
{
    s->submission.signature = AQ_SIGNATURE_UNCHECKED;
}

static void bad_signature(scene *s)
{
    s->submission.signature = AQ_SIGNATURE_BAD;
}

static void unreadable(scene *s)
{
    close(s->package.image);
    s->package.image = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static void taken(scene *s)
{
    know(s, "", "log-reader", "zeta", true);
}

static void claimed(scene *s)
{
    know(s, "", "log-reader", "zeta", false);
}

static void unproven(scene *s)
{
    know(s, "", "log-reader", s->submission.publisher, true);
    s->submission.signature = AQ_SIGNATURE_NONE;
}

static void known(scene *s)
{
    taken(s);
    s->submission = (aq_submission){.id = "1", .local = true, .publisher = "local"};
}

static void alike(scene *s)
{
    know(s, "", "log-raeder", "zeta", true);
}

static void near(scene *s)
{
    know(s, "", "log-reader-cli", "zeta", true);
}

/* The third within the window, where two are allowed. */
static void flood(scene *s)
{
    aq_err err = {0};

    s->policy.rate_limit = 2;
    s->policy.rate_window = UINT32_MAX; /* whatever this machine's clock says */
    for (int i = 0; i < 3; i++) {
        aq_submission one = s->submission;
        one.id = one.nonce = aq_arena_printf(s->a, "flood-%d", i);
        assert_int_equal(aq_store_begin(s->store, &one, &err), 0);
    }
}

#define FIELDS(name, version, license)                                                             \
    "schema: arc/v1\nname: " name "\n" version "type: skill\ndescription: Counts errors.\n"        \
    "author: Ada\n" license "capabilities: {}\n"
#define V      "version: 1.0.0\n"
#define MIT    "license: MIT\n"
#define ABSENT ""

static const row rows[] = {
    {AQ_RULE_L0_ATTRIBUTE_MISSING, FIELDS("log-reader", "", MIT), NULL, NULL, NULL},
    {AQ_RULE_L0_ATTRIBUTE_MUST,
     "schema: arc/v1\nversion: 1.0.0\ntype: skill\ndescription: Counts errors.\nauthor: Ada\n"
     "license: MIT\ncapabilities: {}\n",
     NULL, NULL, NULL},
    {AQ_RULE_L0_ATTRIBUTE_WANTED,
     "schema: arc/v1\nname: log-reader\nversion: 1.0.0\ntype: prompt\ndescription: Counts errors.\n"
     "license: MIT\ncapabilities: {}\n",
     NULL, NULL, NULL},
    {AQ_RULE_L0_CAPABILITIES_UNSAID, ARC("log-reader", "license: MIT\n"), NULL, NULL, NULL},
    {AQ_RULE_L0_README_MISSING, NULL, ABSENT, NULL, NULL},
    {AQ_RULE_L0_README_THIN, NULL, "# Log reader\n", NULL, NULL},
    {AQ_RULE_L0_README_NOT_TEXT, NULL, README "\x01", NULL, NULL},
    {AQ_RULE_L0_LICENSE_MISSING, FIELDS("log-reader", V, ""), NULL, ABSENT, NULL},
    {AQ_RULE_L0_LICENSE_UNKNOWN, FIELDS("log-reader", V, "license: Mine-1.0\n"), NULL, ABSENT,
     NULL},
    {AQ_RULE_L0_LICENSE_SPELLING, FIELDS("log-reader", V, "license: mit\n"), NULL, NULL, NULL},
    {AQ_RULE_L0_LICENSE_DEPRECATED, FIELDS("log-reader", V, "license: GPL-3.0\n"), NULL, ABSENT,
     NULL},
    {AQ_RULE_L0_LICENSE_CLOSED, FIELDS("log-reader", V, "license: UNLICENSED\n"), NULL, ABSENT,
     NULL},
    {AQ_RULE_L0_LICENSE_TEXT, NULL, NULL, "Do as you like.\n", NULL},
    {AQ_RULE_L0_LICENSE_MISMATCH, NULL, NULL, APACHE, NULL},
    {AQ_RULE_L0_NAME_ILLEGAL, FIELDS("'log;reader'", V, MIT), NULL, NULL, NULL},
    {AQ_RULE_L0_NAME_ODD, FIELDS("Log-Reader", V, MIT), NULL, NULL, NULL},
    {AQ_RULE_L0_NAME_MIXED,
     FIELDS("log-re\xd0\xb0"
            "der",
            V, MIT),
     NULL, NULL, NULL},
    {AQ_RULE_L0_NAME_TAKEN, NULL, NULL, NULL, taken},
    {AQ_RULE_L0_NAME_CLAIMED, NULL, NULL, NULL, claimed},
    {AQ_RULE_L0_NAME_UNPROVEN, NULL, NULL, NULL, unproven},
    {AQ_RULE_L0_NAME_KNOWN, NULL, NULL, NULL, known},
    {AQ_RULE_L0_NAME_LOOKALIKE, NULL, NULL, NULL, alike},
    {AQ_RULE_L0_NAME_NEAR, NULL, NULL, NULL, near},
    {AQ_RULE_L0_RATE, NULL, NULL, NULL, flood},
    {AQ_RULE_L0_ENVELOPE_ARTIFACT, NULL, NULL, NULL, other_artifact},
    {AQ_RULE_L0_ENVELOPE_IDENTITY, NULL, NULL, NULL, other_name},
    {AQ_RULE_L0_ENVELOPE_MANIFEST, NULL, NULL, NULL, other_manifest},
    {AQ_RULE_L0_ENVELOPE_FUTURE, NULL, NULL, NULL, tomorrow},
    {AQ_RULE_L0_ENVELOPE_TYPE, NULL, NULL, NULL, odd_type},
    {AQ_RULE_L0_ENVELOPE_ARTIFACT, NULL, NULL, NULL, wrong_type},
    {AQ_RULE_L0_SIGNATURE_UNCHECKED, NULL, NULL, NULL, unchecked},
    {AQ_RULE_L0_SIGNATURE_BAD, NULL, NULL, NULL, bad_signature},
    {AQ_RULE_L0_UNREAD, NULL, NULL, NULL, unreadable},
};

/* An enveloped package in which only what the row says is different. */
static void build(scene *s, const row *r)
{
    const char *parts[8] = {"arc-manifest.yaml", r && r->manifest ? r->manifest : GOOD_ARC};
    const char *readme = r && r->readme ? r->readme : README;
    const char *license = r && r->license ? r->license : MIT_TEXT;
    size_t n = 2;

    if (*readme) {
        parts[n++] = "README.md";
        parts[n++] = readme;
    }
    if (*license) {
        parts[n++] = "LICENSE";
        parts[n++] = license;
    }
    pack(s, parts);
    s->package.packed = aq_sha256("artifact", 8);
    s->package.packed_bytes = 8;
    s->package.form = "tar.gz";
    s->submission = (aq_submission){.id = "e1",
                                    .nonce = "n1",
                                    .publisher = "acme",
                                    .tier = AQ_TIER_NEW,
                                    .version = "1.0.0",
                                    .artifact = s->package.packed,
                                    .artifact_size = 8,
                                    .media_type = "application/gzip",
                                    .signature = AQ_SIGNATURE_GOOD,
                                    .time = 1800000000};
    if (r && r->change)
        r->change(s);
}

static void told_exactly(const scene *s, const row *r)
{
    for (size_t i = 0; i < s->findings->count; i++)
        if (!r || s->findings->items[i].rule != r->rule)
            fail_msg("%s: also %s: %s", r ? aq_rule_get(r->rule)->name : "the honest package",
                     aq_rule_get(s->findings->items[i].rule)->name, s->findings->items[i].message);
    if (r && !find(s, r->rule))
        fail_msg("%s was not told", aq_rule_get(r->rule)->name);
}

static void each_rule_and_its_twin(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *own = NULL;
        set_up(&own);
        build(own, NULL);
        gate(own);
        told_exactly(own, NULL);
        build(own, &rows[i]);
        gate(own);
        told_exactly(own, &rows[i]);
        json_decref((json_t *)((scene *)own)->submission.manifest);
        tear_down(&own);
    }
    (void)state;
}

/* These two need another package. */
static void the_rest(void **state)
{
    static const row none = {AQ_RULE_L0_MANIFEST_NONE, NULL, NULL, NULL, NULL};
    static const row large = {AQ_RULE_L0_README_LARGE, NULL, NULL, NULL, NULL};
    scene *s = *state;
    aq_auto_buf readme = {0};
    row big;

    judge(s, "notes.txt", "x");
    told_exactly(s, &none);
    while (readme.len <= 1 << 20)
        aq_buf_adds(&readme, README);
    big = large;
    big.readme = aq_buf_str(&readme);
    build(s, &big);
    gate(s);
    told_exactly(s, &big);
}

/* A rule that is added must get its row. */
static void no_rule_is_left_out(void **state)
{
    (void)state;
    for (aq_rule_id id = 0; id < AQ_RULE_COUNT; id++) {
        bool seen = id == AQ_RULE_L0_MANIFEST_NONE || id == AQ_RULE_L0_README_LARGE;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            seen = seen || rows[i].rule == id;
        if (!seen && strncmp(aq_rule_get(id)->name, "l0.", 3) == 0)
            fail_msg("%s has no row", aq_rule_get(id)->name);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_and_its_twin),
        SCENE(the_rest),
        cmocka_unit_test(no_rule_is_left_out),
    };

    be_the_jail(argc, argv);
    return cmocka_run_group_tests_name("gate_rules", tests, NULL, NULL);
}
