/* L0, the attribute gate: does the package say who and what it is, and is that name free?
 *
 * It reads the manifest's bounded fields, asks the store about names and rates, and asks the jailed
 * job "gate" about the few files that it needs (README, licence, manifest copy); it never reads a
 * byte of a package itself. What each type needs is the table l0_attributes.def. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/text.h"
#include "cleanroom/gate.h"

enum {
    README_MAX = 1 << 20,
    PROSE = 60, /* letters: one honest sentence */
};

/* ---- what a type needs ---- */

#define N AQ_NOT_NEEDED
#define W AQ_WANTED
#define R AQ_REQUIRED
#define M AQ_MUST

static const uint8_t by_type[AQ_TYPE_COUNT][AQ_ATTRIBUTES] = {
#define AQ_NEED_TYPE(type, ...) [AQ_TYPE_##type] = {__VA_ARGS__},
#define AQ_NEED_KIND(kind, ...)
#include "cleanroom/l0_attributes.def"
#undef AQ_NEED_TYPE
#undef AQ_NEED_KIND
};

static const uint8_t by_kind[AQ_KIND_COUNT][AQ_ATTRIBUTES] = {
#define AQ_NEED_TYPE(type, ...)
#define AQ_NEED_KIND(kind, ...) [AQ_KIND_##kind] = {__VA_ARGS__},
#include "cleanroom/l0_attributes.def"
#undef AQ_NEED_TYPE
#undef AQ_NEED_KIND
};

#undef N
#undef W
#undef R
#undef M

aq_need aq_gate_need(const aq_manifest *m, aq_attribute attribute)
{
    uint8_t type = by_type[m->type][attribute], kind = by_kind[m->kind][attribute];

    return type < kind ? type : kind;
}

/* ---- which fields speak ---- */

const char *aq_gate_readme(const aq_manifest *m)
{
    if (m->readme)
        return m->readme;
    return m->kind == AQ_KIND_SKILL ? m->file : NULL;
}

static const char *filled(const char *s)
{
    return s && *s ? s : NULL;
}

const char *aq_gate_raw(aq_arena *a, const char *quoted)
{
    aq_auto_buf raw = {0};

    if (!quoted || aq_text_unquote(&raw, quoted, strlen(quoted)) < 0)
        return quoted;
    return aq_arena_strdup(a, aq_buf_str(&raw));
}

const char *aq_gate_name(const aq_stage_input *in, aq_arena *a)
{
    const char *name = filled(in->submission->name);

    return name ? name : aq_gate_raw(a, filled(in->manifest->name));
}

const char *aq_gate_namespace(const aq_stage_input *in, aq_arena *a)
{
    const char *space = filled(in->submission->namespace_);

    return space ? space : aq_gate_raw(a, filled(in->manifest->namespace_));
}

/* ---- attributes ---- */

static bool present(const aq_stage_input *in, aq_attribute attribute)
{
    const aq_manifest *m = in->manifest;

    switch (attribute) {
    case AQ_ATTRIBUTE_NAME:
        return filled(in->submission->name) || filled(m->name);
    case AQ_ATTRIBUTE_VERSION:
        return filled(m->version);
    case AQ_ATTRIBUTE_DESCRIPTION:
        return filled(m->description);
    case AQ_ATTRIBUTE_LICENSE:
        return filled(m->license) || m->license_file;
    case AQ_ATTRIBUTE_AUTHOR:
        return filled(m->author);
    case AQ_ATTRIBUTE_README:
        return aq_gate_readme(m);
    case AQ_ATTRIBUTE_CAPABILITIES:
        return m->declared.present;
    case AQ_ATTRIBUTE_ENTRY:
        return m->entry_point_count > 0;
    case AQ_ATTRIBUTE_REFERENCES:
        return m->reference_count > 0;
    case AQ_ATTRIBUTES:
        break;
    }
    return true;
}

/* What is missing may be in what intake could not read: then nothing is refused for it. */
static aq_rule_id rule_for(aq_attribute attribute, aq_need need, bool incomplete)
{
    if (need == AQ_MUST && !incomplete)
        return AQ_RULE_L0_ATTRIBUTE_MUST;
    if (need == AQ_WANTED)
        return AQ_RULE_L0_ATTRIBUTE_WANTED;
    if (attribute == AQ_ATTRIBUTE_README)
        return AQ_RULE_L0_README_MISSING;
    if (attribute == AQ_ATTRIBUTE_LICENSE)
        return AQ_RULE_L0_LICENSE_MISSING;
    if (attribute == AQ_ATTRIBUTE_CAPABILITIES)
        return AQ_RULE_L0_CAPABILITIES_UNSAID;
    return AQ_RULE_L0_ATTRIBUTE_MISSING;
}

/* One line for everything that its format lets a package leave out, and that it left out. */
static void not_given(const aq_stage_input *in, aq_findings *out)
{
    static const struct {
        aq_attribute attribute;
        const char *word;
    } by_word[] = {
        {AQ_ATTRIBUTE_AUTHOR, "author"},           {AQ_ATTRIBUTE_CAPABILITIES, "capabilities"},
        {AQ_ATTRIBUTE_DESCRIPTION, "description"}, {AQ_ATTRIBUTE_ENTRY, "entry point"},
        {AQ_ATTRIBUTE_LICENSE, "licence"},         {AQ_ATTRIBUTE_NAME, "name"},
        {AQ_ATTRIBUTE_README, "README"},           {AQ_ATTRIBUTE_REFERENCES, "references"},
        {AQ_ATTRIBUTE_VERSION, "version"},
    };
    aq_auto_buf b = {0};

    for (size_t i = 0; i < sizeof by_word / sizeof *by_word; i++)
        if (aq_gate_need(in->manifest, by_word[i].attribute) == AQ_WANTED &&
            !present(in, by_word[i].attribute))
            aq_buf_addf(&b, "%s%s", b.len ? ", " : "", by_word[i].word);
    if (b.len)
        aq_findings_add(out, AQ_RULE_L0_ATTRIBUTE_WANTED, NULL,
                        "Not given, and not required here: %s", aq_buf_str(&b));
}

void aq_gate_attributes(const aq_stage_input *in, aq_findings *out)
{
    static const char *const what[AQ_ATTRIBUTES] = {
        [AQ_ATTRIBUTE_NAME] = "name",
        [AQ_ATTRIBUTE_VERSION] = "version",
        [AQ_ATTRIBUTE_DESCRIPTION] = "description",
        [AQ_ATTRIBUTE_LICENSE] = "licence",
        [AQ_ATTRIBUTE_AUTHOR] = "author",
        [AQ_ATTRIBUTE_README] = "README",
        [AQ_ATTRIBUTE_CAPABILITIES] = "capability declaration",
        [AQ_ATTRIBUTE_ENTRY] = "entry point",
        [AQ_ATTRIBUTE_REFERENCES] = "references",
    };
    const aq_manifest *m = in->manifest;

    for (aq_attribute a = 0; a < AQ_ATTRIBUTES; a++) {
        aq_need need = aq_gate_need(m, a);

        /* Only a README can be looked for without the manifest. */
        if (in->manifest_unread && a != AQ_ATTRIBUTE_README)
            continue;
        if (need > AQ_WANTED && !present(in, a))
            aq_findings_add(out, rule_for(a, need, in->unread), NULL, "This %s has no %s",
                            aq_kind_title(m->kind), what[a]);
    }
    if (!in->manifest_unread)
        not_given(in, out);
}

/* ---- README ---- */

/* Where SKILL.md itself is the README, its instructions are the prose. */
void aq_gate_readme_check(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out)
{
    const char *file = aq_gate_raw(out->arena, aq_gate_readme(in->manifest));
    const aq_readme_facts *r = &facts->readme;
    const char *name; /* as people call it: README.md, SKILL.md */

    if (!file || !facts->have_readme ||
        aq_gate_need(in->manifest, AQ_ATTRIBUTE_README) < AQ_REQUIRED)
        return;
    name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    if (!r->text)
        aq_findings_add(out, AQ_RULE_L0_README_NOT_TEXT, file,
                        "%s is not UTF-8 text, or has control characters", name);
    else if (facts->readme_bytes > README_MAX)
        aq_findings_add(out, AQ_RULE_L0_README_LARGE, file, "%s has %llu bytes", name,
                        (unsigned long long)facts->readme_bytes);
    else if (r->prose < PROSE && r->left_over)
        aq_findings_add(out, AQ_RULE_L0_README_THIN, file, "%s is a template that nobody filled in",
                        name)
            ->line = r->left_over;
    else if (r->prose < PROSE && !(r->names_package && r->prose >= PROSE / 3))
        aq_findings_add(
            out, AQ_RULE_L0_README_THIN, file,
            "%s says hardly anything: it has %s and hardly a sentence about the package", name,
            r->titles ? "titles" : "no title");
}

/* ---- rate ---- */

void aq_gate_rate(const aq_stage_input *in, aq_findings *out)
{
    const aq_policy *p = in->policy;

    if (!in->admission.over_rate)
        return;
    /* No time of day here: the message is part of the verdict digest. */
    aq_findings_add(out, AQ_RULE_L0_RATE, NULL,
                    "%s %s has sent more than %u submissions in %u seconds; the next is "
                    "taken when fewer lie within that time",
                    in->submission->signature == AQ_SIGNATURE_GOOD ? "Publisher"
                                                                   : "Who says to be publisher",
                    in->submission->publisher, p->rate_limit, p->rate_window);
}

/* ---- the stage ---- */

int aq_stage_l0(const aq_stage_input *in, aq_budget *budget, aq_findings *out, aq_err *err)
{
    aq_gate_facts facts = {0};
    aq_err why = {0};

    (void)budget; /* its work is bounded by the sizes of manifest fields */
    aq_gate_rate(in, out);
    if (in->manifest->kind == AQ_KIND_UNKNOWN && !in->manifest->file) {
        if (in->unread)
            aq_findings_add_incomplete(out, AQ_RULE_L0_UNREAD, NULL,
                                       "No manifest was recognised in what could be read of it");
        else
            aq_findings_add(out, AQ_RULE_L0_MANIFEST_NONE, NULL,
                            "No manifest was recognised in it");
        aq_gate_envelope(in, &facts, out);
        return 0;
    }
    if (aq_gate_ask(in, out->arena, &facts, &why) < 0)
        aq_findings_add_incomplete(out, AQ_RULE_L0_UNREAD, NULL,
                                   "README and licence were not examined: %s", why.text);
    aq_gate_envelope(in, &facts, out);
    aq_gate_attributes(in, out);
    aq_gate_readme_check(in, &facts, out);
    aq_gate_license(in, &facts, out);
    return aq_gate_names(in, out, err);
}
