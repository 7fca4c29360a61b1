/* What the walk writes into the ledger, and how evidence is compared with it.
 *
 * An entry holds digests and short words, never content. It is made and compared in one place, so
 * that what evidence claims and what the ledger says cannot drift apart. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"
#include "model/finding.h"
#include "model/verdict.h"
#include "trust/evidence.h"

/* {kind: decision, submission, stage, decision, package, findings}; new reference. */
json_t *aq_entry_decision(const char *submission, const aq_stage_result *stage,
                          const aq_digest *package, const aq_digest *findings);
/* {kind: verdict, submission, verdict, verdict_digest, package, report}; new reference. */
json_t *aq_entry_verdict(const char *submission, aq_verdict verdict,
                         const aq_digest *verdict_digest, const aq_digest *package,
                         const aq_digest *report);

/* Is `entry` (its bytes as text) the verdict that the evidence claims? -EBADMSG with what differs.
 */
int aq_entry_matches(const char *entry, const aq_evidence *e, aq_err *err);
