/* The verdict and its digest.
 *
 * The digest covers what was found, not who asked, when, where or with which keys: verdict,
 * decisions of the stages, canonical findings with their counts, divergences and canonical
 * observations. Package, claims, admission, rules, engine, policy and store snapshot, all listed in
 * the report, fix it on every machine. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "model/finding.h"
#include "model/package.h"

typedef enum aq_verdict {
    AQ_PASS,         /* exit status 0 */
    AQ_NEEDS_REVIEW, /* 1 */
    AQ_REJECTED,     /* 2 */
    AQ_INCONCLUSIVE, /* 3 */
} aq_verdict;

const char *aq_verdict_name(aq_verdict v); /* "pass", "review", "reject", "inconclusive" */
int aq_verdict_exit(aq_verdict v);

typedef enum aq_decision {
    AQ_STAGE_NOT_RUN, /* not built, not asked for, or the walk ended before it */
    AQ_STAGE_PASS,
    AQ_STAGE_REVIEW,
    AQ_STAGE_REJECT,
    AQ_STAGE_INCONCLUSIVE, /* it could not finish */
    AQ_STAGE_SKIPPED,      /* does not apply to this package (L1.5 for a single one) */
} aq_decision;

const char *aq_decision_name(aq_decision d); /* "not-run", "pass", … */

typedef struct aq_stage_result {
    aq_layer layer;
    aq_decision decision;
    const char *reason; /* one sentence; always set when not run, skipped or inconclusive */
} aq_stage_result;

/* Reject beats inconclusive beats review beats pass; a stage that did not run, or anything left
 * unread, is inconclusive. */
aq_verdict aq_verdict_judge(const aq_stage_result stages[static AQ_LAYER_COUNT],
                            const aq_findings *findings, const aq_package *package);

/* `observations` and `divergences` are arrays of canonical digests, or NULL before L3 ran. */
aq_digest aq_verdict_digest(aq_verdict v, const aq_stage_result stages[static AQ_LAYER_COUNT],
                            const aq_findings *findings, const aq_digest *package,
                            const json_t *observations, const json_t *divergences);
