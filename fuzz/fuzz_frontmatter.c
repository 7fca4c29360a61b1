/* The front matter of a skill: fences, byte order marks, loose values, tools. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "model/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses a chunk on texts with several doubled quotes. The child that reads
 * manifests ends soon after; our own leaks are still found. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_file file = {.path = "SKILL.md", .size = size};
    aq_package package = {.form = "folder", .files = &file, .count = 1, .bytes = size};
    aq_findings *findings = aq_findings_new(a);
    aq_manifest m;
    aq_err err = {0};

    if (aq_manifest_detect(a, &package, data, findings, &m, &err) < 0)
        return size ? abort(), 0 : 0;
    if (m.kind != AQ_KIND_SKILL)
        abort();
    /* A front matter that was not read is never silent. */
    if (findings->per_rule[AQ_RULE_MANIFEST_UNREADABLE] && !findings->incomplete)
        abort();
    aq_capabilities_digest(&m.declared);
    return 0;
}
