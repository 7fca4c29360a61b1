/* The verdict and its digest; see verdict.h.
 *
 * Everything here is a pure function of what the walk recorded. Nothing may enter the digest that
 * differs between two honest runs over the same bytes: no id, time, host fact, keyed hash or prose
 * that a stage wrote about itself. docs/formats/verdict.md is the contract. */
#include "model/verdict.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static const char *const verdict_names[] = {
    [AQ_PASS] = "pass",
    [AQ_NEEDS_REVIEW] = "review",
    [AQ_REJECTED] = "reject",
    [AQ_INCONCLUSIVE] = "inconclusive",
};

static const char *const decision_names[] = {
    [AQ_STAGE_NOT_RUN] = "not-run",
    [AQ_STAGE_PASS] = "pass",
    [AQ_STAGE_REVIEW] = "review",
    [AQ_STAGE_REJECT] = "reject",
    [AQ_STAGE_INCONCLUSIVE] = "inconclusive",
    [AQ_STAGE_SKIPPED] = "skipped",
};

const char *aq_verdict_name(aq_verdict v)
{
    return verdict_names[v];
}

/* The numbers of the enum are the contract with scripts; the table says so once more, so that
 * reordering the enum cannot change an exit status. */
int aq_verdict_exit(aq_verdict v)
{
    static const int status[] = {
        [AQ_PASS] = 0, [AQ_NEEDS_REVIEW] = 1, [AQ_REJECTED] = 2, [AQ_INCONCLUSIVE] = 3};

    return status[v];
}

const char *aq_decision_name(aq_decision d)
{
    return decision_names[d];
}

static bool any_stage(const aq_stage_result *stages, aq_decision decision)
{
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++)
        if (stages[i].decision == decision)
            return true;
    return false;
}

aq_verdict aq_verdict_judge(const aq_stage_result stages[static AQ_LAYER_COUNT],
                            const aq_findings *findings, const aq_package *package)
{
    aq_severity worst = aq_findings_worst(findings);

    if (worst == AQ_REJECT || any_stage(stages, AQ_STAGE_REJECT))
        return AQ_REJECTED;
    if (any_stage(stages, AQ_STAGE_NOT_RUN) || any_stage(stages, AQ_STAGE_INCONCLUSIVE) ||
        findings->incomplete || !package || package->unread_count > 0)
        return AQ_INCONCLUSIVE;
    if (worst == AQ_REVIEW || any_stage(stages, AQ_STAGE_REVIEW))
        return AQ_NEEDS_REVIEW;
    return AQ_PASS;
}

/* Sorts a copy: the caller's list is const, and its order must not matter. */
static json_t *canonical_findings(const aq_findings *findings)
{
    aq_auto_free aq_finding *items = NULL;
    aq_findings sorted = *findings;
    json_t *list = json_array();

    if (findings->count == 0)
        return list;
    items = aq_realloc(NULL, findings->count, sizeof *items);
    memcpy(items, findings->items, findings->count * sizeof *items);
    sorted.items = items;
    aq_findings_sort(&sorted);
    for (size_t i = 0; i < sorted.count; i++)
        json_array_append_new(list, aq_finding_canonical(&items[i]));
    return list;
}

/* How many more of each rule there were than are listed, by rule name. An object, because its
 * canonical form is sorted by key whatever the order of the rule table is. */
static json_t *overflow(const aq_findings *findings)
{
    json_t *more = json_object();

    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++) {
        uint32_t extra = aq_findings_extra(findings, i);
        if (extra)
            json_object_set_new(more, aq_rule_get(i)->name, json_integer(extra));
    }
    return more;
}

static json_t *decisions(const aq_stage_result *stages)
{
    json_t *list = json_object();

    for (size_t i = 0; i < AQ_LAYER_COUNT; i++)
        json_object_set_new(list, aq_layer_name(stages[i].layer),
                            json_string(aq_decision_name(stages[i].decision)));
    return list;
}

static void set_list(json_t *object, const char *key, const json_t *list)
{
    json_object_set_new(object, key, list ? json_deep_copy(list) : json_array());
}

aq_digest aq_verdict_digest(aq_verdict v, const aq_stage_result stages[static AQ_LAYER_COUNT],
                            const aq_findings *findings, const aq_digest *package,
                            const json_t *observations, const json_t *divergences)
{
    aq_auto_json json_t *o = json_object();
    char hex[AQ_SHA256_HEX];
    aq_digest digest;

    json_object_set_new(o, "schema", json_string("aquarium/verdict/v1"));
    json_object_set_new(o, "verdict", json_string(aq_verdict_name(v)));
    json_object_set_new(o, "package", json_string(aq_digest_hex(package, hex)));
    json_object_set_new(o, "stages", decisions(stages));
    json_object_set_new(o, "findings", canonical_findings(findings));
    json_object_set_new(o, "more", overflow(findings));
    set_list(o, "observations", observations);
    set_list(o, "divergences", divergences);
    /* The text in findings was quoted when it entered, and integers are all the numbers we have:
     * a failure here is a mistake of ours, and no digest is better than a wrong one. */
    if (aq_json_digest(o, &digest) < 0)
        aq_panic("verdict digest: the canonical form could not be made");
    return digest;
}
