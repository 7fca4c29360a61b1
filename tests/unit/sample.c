/* Reports made without a walk, for tests of their faces; see sample.h. */
#include "sample.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cleanroom/survey_core.h"

const char *const sample_names[] = {"plain", "pass", "reject", "flood", "hostile", "planted", NULL};

/* What a package may write wherever it may write. */
static const char markup[] = "<script>document.title='owned'</script><img src=x "
                             "onerror=\"document.title='owned'\">'\"&amp;";
static const char tricks[] = "\x1b[31m\xe2\x80\xae"
                             "fdp.exe\xe2\x80\x8b\xff\n{{7*7}} \xd7\xa9\xd7\x9c";

aq_rule_id sample_rule(aq_severity severity, size_t nth)
{
    aq_rule_id last = AQ_RULE_COUNT;

    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++) {
        if (aq_rule_get(i)->severity != severity)
            continue;
        last = i;
        if (nth-- == 0)
            break;
    }
    return last < AQ_RULE_COUNT ? last : 0;
}

void sample_plain(aq_arena *a, sample *s)
{
    static const char *const patterns[] = {"~/notes/**"};

    *s = (sample){.findings = aq_findings_new(a)};
    s->submission = (aq_submission){.id = "0123456789abcdef0123456789abcdef",
                                    .local = true,
                                    .publisher = "local",
                                    .nonce = "00112233445566778899aabbccddeeff"};
    s->package = (aq_package){.form = "folder",
                              .name = "sort-notes",
                              .image = -1,
                              .count = 4,
                              .bytes = 8123,
                              .digest = aq_sha256("package", 7)};
    s->manifest = (aq_manifest){.kind = AQ_KIND_SKILL,
                                .dialect = "agent-skill",
                                .file = "SKILL.md",
                                .type = AQ_TYPE_SKILL,
                                .name = "sort-notes",
                                .version = "1.2.0",
                                .description = "Sorts the notes in a folder by date and subject."};
    s->manifest.declared.present = true;
    s->manifest.declared.group[AQ_CAP_FS_READ] =
        (aq_cap_group){.present = true, .patterns = (const char **)(uintptr_t)patterns, .count = 1};
    s->manifest.declared.group[AQ_CAP_NETWORK].present = true;
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++)
        s->stages[i] = (aq_stage_result){.layer = (aq_layer)i,
                                         .decision = i < 2 ? AQ_STAGE_PASS : AQ_STAGE_NOT_RUN,
                                         .reason = i < 2 ? NULL : "this stage is not built in"};
    s->survey = (aq_survey){.complete = true,
                            .files = 4,
                            .bytes = 8123,
                            .lines = 240,
                            .generated_files = 1,
                            .generated_bytes = 900};
    aq_policy_default(&s->policy);
    aq_budget_init(&s->budget);
    aq_budget_spend(&s->budget, AQ_BUDGET_FILES, 4);
    aq_findings_add(s->findings, AQ_RULE_INTAKE_UNSIGNED, NULL, "the folder carries no signature");
}

json_t *sample_finish(sample *s)
{
    aq_findings_sort(s->findings);
    s->in = (aq_report_in){
        .submission = &s->submission,
        .package = &s->package,
        .manifest = &s->manifest,
        .findings = s->findings,
        .stages = s->stages,
        .survey = &s->survey,
        .policy = &s->policy,
        .budget = &s->budget,
        .verdict = aq_verdict_judge(s->stages, s->findings, &s->package),
        .store_snapshot = aq_sha256("store", 5),
        .known_names = 12,
        .time = 1780000000,
    };
    s->in.verdict_digest =
        aq_verdict_digest(s->in.verdict, s->stages, s->findings, &s->package.digest, NULL, NULL);
    return aq_report_json(&s->in);
}

static void whole_walk(sample *s)
{
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++)
        s->stages[i].decision = i == AQ_LAYER_L15 ? AQ_STAGE_SKIPPED : AQ_STAGE_PASS;
    s->stages[AQ_LAYER_L15].reason = "a single package composes nothing";
}

static void rejected(sample *s)
{
    aq_findings_add(s->findings, sample_rule(AQ_REJECT, 0), "scripts/install.sh",
                    "this is why the package is refused")
        ->line = 12;
    aq_findings_add(s->findings, sample_rule(AQ_REVIEW, 0), "README.md", "a person must look here")
        ->line = 3;
    s->stages[AQ_LAYER_L0] = (aq_stage_result){
        .layer = AQ_LAYER_L0, .decision = AQ_STAGE_REJECT, .reason = "one finding rejects"};
}

/* Hundreds of findings of many rules: the checklist must stay whole. */
static void flood(sample *s, aq_severity worst)
{
    for (size_t rule = 0; rule < AQ_RULE_COUNT; rule++)
        for (int i = 0;
             aq_rule_get((aq_rule_id)rule)->severity <= worst && i < AQ_FINDINGS_PER_RULE + 37;
             i++) {
            char file[64];
            snprintf(file, sizeof file, "some/rather/deep/folder/of/files/number-%03d.py", i);
            aq_findings_add(s->findings, (aq_rule_id)rule, file, "finding number %d of its rule", i)
                ->line = (uint32_t)i;
        }
}

static void hostile(aq_arena *a, sample *s)
{
    char *raw = aq_arena_printf(a, "%s%s", markup, tricks), *name = raw;
    aq_unread *unread = aq_arena_alloc(a, sizeof *unread);
    aq_nested *nested = aq_arena_alloc(a, sizeof *nested);
    aq_entry_point *entry = aq_arena_alloc(a, sizeof *entry);
    aq_reference *reference = aq_arena_alloc(a, sizeof *reference);

    s->submission.publisher = s->submission.id = name;
    s->package.name = s->manifest.name = s->manifest.version = s->manifest.description = name;
    s->manifest.file = s->manifest.license = s->manifest.author = s->manifest.homepage = name;
    *entry = (aq_entry_point){.role = name, .command = name, .line = 1};
    *reference = (aq_reference){.name = name, .version = name, .locator = name};
    *unread = (aq_unread){.place = name, .reason = name, .bytes = 77};
    *nested = (aq_nested){.path = name, .format = "zip", .entries = 1, .bytes = 2};
    s->manifest.entry_points = entry;
    s->manifest.entry_point_count = s->manifest.reference_count = 1;
    s->manifest.references = reference;
    s->package.unread = unread;
    s->package.nested = nested;
    s->package.unread_count = s->package.nested_count = 1;
    s->stages[AQ_LAYER_L1].reason = name;
    name = (char *)(uintptr_t)aq_text_quoted(a, name, strlen(name), 1000);
    s->survey.looks[0] = (aq_look){.file = name, .line = 9, .score = 5, .why = name, .text = name};
    s->survey.look_count = 1;
    for (int severity = AQ_INFO; severity <= AQ_REVIEW; severity++)
        aq_findings_add(s->findings, sample_rule((aq_severity)severity, 0), raw, "message: %s", raw)
            ->line = 4;
    aq_findings_add(s->findings, sample_rule(AQ_REVIEW, 0), "dir name/100%/a:b?#ü.md", "odd name");
}

/* The real survey over 5,000 boring files, one of them with a planted line. */
static void planted(aq_arena *a, sample *s)
{
    aq_survey_scan *scan = aq_survey_scan_new();

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < 5000; i++) {
            aq_auto_buf text = {0};
            char path[64];
            snprintf(path, sizeof path, "modules/group-%02d/module-%04d/Makefile", i / 100, i);
            aq_buf_addf(&text, "NAME = m%d\n\nall: $(NAME).o\n\t$(CC) -o $(NAME) $(NAME).o\n", i);
            if (i == 3141)
                aq_buf_adds(&text, "\t@" SAMPLE_PLANT "\n");
            aq_buf_adds(&text, "\nclean:\n\trm -f *.o\n");
            if (pass == 0)
                aq_survey_count(scan, path, (const unsigned char *)text.data, text.len);
            else
                aq_survey_score(scan, path, (const unsigned char *)text.data, text.len);
        }
    aq_survey_finish(scan, a, &s->survey);
    aq_survey_scan_free(scan);
    s->package.count = s->survey.files;
    s->package.bytes = s->survey.bytes;
    s->package.name = s->manifest.name = "many-modules";
    flood(s, AQ_REVIEW);
}

json_t *sample_report(const char *name)
{
    aq_auto_arena a = aq_arena_new();
    sample s;

    sample_plain(a, &s);
    if (strcmp(name, "pass") == 0)
        whole_walk(&s);
    else if (strcmp(name, "reject") == 0)
        rejected(&s);
    else if (strcmp(name, "flood") == 0)
        flood(&s, AQ_REJECT);
    else if (strcmp(name, "hostile") == 0)
        hostile(a, &s);
    else if (strcmp(name, "planted") == 0)
        planted(a, &s);
    else if (strcmp(name, "plain") != 0)
        return NULL;
    return sample_finish(&s);
}
