/* L0: is there a licence, is it one that tools know, and does the licence file say the same? */
#include <string.h>

#include "cleanroom/gate.h"

static void name_families(uint32_t mask, aq_buf *out)
{
    for (unsigned i = 0; i < AQ_LICENSE_FAMILIES; i++)
        if (mask & 1u << i)
            aq_buf_addf(out, "%s%s", out->len ? ", " : "", aq_license_family_name(i));
}

/* A loose spelling names one licence or two ("BSD-3-Clause or BSD-2-Clause"). */
static uint32_t suggested(const char *suggestion)
{
    uint32_t mask = 0;

    while (suggestion && *suggestion) {
        size_t len = strcspn(suggestion, " ,");
        aq_auto_buf word = {0};

        aq_buf_add(&word, suggestion, len);
        mask |= aq_license_families(aq_buf_str(&word));
        suggestion += len;
        suggestion += strspn(suggestion, " ,");
    }
    return mask;
}

static uint32_t declared_families(const aq_license *l, bool *all_known)
{
    uint32_t mask = suggested(l->suggestion);

    *all_known = l->state == AQ_LICENSE_GOOD || l->state == AQ_LICENSE_SLOPPY;
    for (size_t i = 0; i < l->count; i++) {
        uint32_t one = aq_license_families(l->ids[i]);
        mask |= one;
        *all_known = *all_known && one;
    }
    return mask;
}

static void compare_text(const aq_stage_input *in, const aq_license *l, uint32_t found,
                         aq_findings *out)
{
    bool all_known;
    uint32_t declared = declared_families(l, &all_known);
    aq_auto_buf text = {0};

    /* A file may hold several licences, and an expression may offer several: one in common is
     * enough. Identifiers whose text we do not know cannot be compared. */
    if (!declared || !all_known || declared & found)
        return;
    name_families(found, &text);
    aq_findings_add(
        out, AQ_RULE_L0_LICENSE_MISMATCH, aq_gate_raw(out->arena, in->manifest->license_file),
        "The manifest says %s, the licence file is %s", in->manifest->license, aq_buf_str(&text));
}

static void judge_field(const aq_stage_input *in, const aq_license *l, uint32_t found,
                        aq_findings *out)
{
    const aq_manifest *m = in->manifest;

    switch (l->state) {
    case AQ_LICENSE_GOOD:
        if (l->deprecated)
            aq_findings_add(out, AQ_RULE_L0_LICENSE_DEPRECATED, NULL, "SPDX has deprecated %s%s%s",
                            l->deprecated, l->instead ? "; write " : "",
                            l->instead ? l->instead : "");
        else if (l->other_case)
            aq_findings_add(out, AQ_RULE_L0_LICENSE_SPELLING, NULL, "SPDX writes %s as %s",
                            m->license, l->count == 1 ? l->ids[0] : "its list spells it");
        break;
    case AQ_LICENSE_SLOPPY:
        aq_findings_add(out, AQ_RULE_L0_LICENSE_SPELLING, NULL,
                        "“%s” is no SPDX identifier; write %s", m->license, l->suggestion);
        break;
    case AQ_LICENSE_SEE_FILE:
        if (!m->license_file)
            aq_findings_add(out, AQ_RULE_L0_LICENSE_UNKNOWN, NULL,
                            "“%s” points to a licence file, and there is none", m->license);
        else
            aq_findings_add(out, AQ_RULE_L0_LICENSE_SPELLING, NULL,
                            "“%s” is no SPDX identifier; write the licence of %s", m->license,
                            m->license_file);
        break;
    case AQ_LICENSE_CLOSED:
        aq_findings_add(out, AQ_RULE_L0_LICENSE_CLOSED, NULL,
                        "The licence is “%s”; as SPDX expression: LicenseRef-Proprietary",
                        m->license);
        break;
    case AQ_LICENSE_UNKNOWN:
        aq_findings_add(out, found ? AQ_RULE_L0_LICENSE_SPELLING : AQ_RULE_L0_LICENSE_UNKNOWN, NULL,
                        "“%.120s” is no licence that is known here: %s", m->license, l->reason);
        break;
    }
}

void aq_gate_license(const aq_stage_input *in, const aq_gate_facts *facts, aq_findings *out)
{
    const aq_manifest *m = in->manifest;
    bool have_text = m->license_file && facts->have_license;
    uint32_t found = have_text ? facts->license_families : 0;
    aq_license l;

    if (have_text && !found)
        aq_findings_add(out, AQ_RULE_L0_LICENSE_TEXT, aq_gate_raw(out->arena, m->license_file),
                        "The licence file is none of the common licences");
    if (!m->license || !*m->license)
        return; /* whether one was needed is told by the table of attributes */
    aq_license_parse(m->license, &l);
    judge_field(in, &l, found, out);
    if (found)
        compare_text(in, &l, found, out);
}
