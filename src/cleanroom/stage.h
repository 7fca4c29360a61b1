/* A stage of the walk: reads the package, appends findings, decides nothing else.
 *
 * Data goes one way: what a stage gets is const, what it makes is findings. The walk turns them
 * into the stage's decision, and that decision is in the ledger before the next stage starts. */
#pragma once

#include "base/budget.h"
#include "base/err.h"
#include "model/finding.h"
#include "model/manifest.h"
#include "model/package.h"
#include "model/submission.h"
#include "model/verdict.h"
#include "store/store.h"

/* What the operator decides; the defaults are in policy.c, docs/formats/policy.md describes it. */
typedef struct aq_policy {
    uint32_t rate_limit;    /* submissions of one publisher in rate_window; 0 = no limit */
    uint32_t rate_window;   /* seconds */
    uint32_t name_distance; /* edit distance at which a name is a look-alike */
    uint64_t budget[AQ_BUDGET_COUNT]; /* limits of work */
} aq_policy;

void aq_policy_default(aq_policy *p);
json_t *aq_policy_json(const aq_policy *p);
/* Sets the limits of a budget; what was spent stays. */
void aq_policy_apply(const aq_policy *p, aq_budget *budget);
/* Reads the text of a policy file; keys that it lacks keep their defaults, unknown ones are
 * refused. `file` is what messages call it. */
int aq_policy_read(const char *text, size_t len, const char *file, aq_policy *ret, aq_err *err);
/* policy.yaml of the state folder `dirfd`, or the defaults when there is none: 1 when there is one,
 * 0 when not. `folder` is what messages call that folder; NULL: they name the file alone. */
int aq_policy_load(int dirfd, const char *folder, aq_policy *ret, aq_err *err);

/* What holds for this submission at this moment; the report lists it. */
typedef struct aq_admission {
    bool replayed;    /* its id or nonce was seen before */
    bool over_rate;   /* its publisher sent more than the policy allows, this one included */
    bool dated_ahead; /* its time is more than a day ahead of our clock */
} aq_admission;

/* Fills all but `replayed`, which the store says when the submission enters. Nothing of it applies
 * to a local one. */
int aq_admit(const aq_submission *s, const aq_policy *policy, aq_store *store, int64_t now,
             aq_admission *ret, aq_err *err);

typedef struct aq_stage_input {
    const aq_submission *submission;
    const aq_package *package;
    const aq_manifest *manifest;
    const aq_policy *policy;
    aq_store *store; /* asked, never written, by a stage */
    aq_admission admission;
    bool unread;          /* intake could not read all of it: what seems missing may be in there */
    bool manifest_unread; /* the manifest itself: what it says or leaves out is not known */
} aq_stage_input;

typedef struct aq_stage {
    aq_layer layer;
    /* NULL = always. When it does not apply, says why (one sentence) and returns false. */
    bool (*applies)(const aq_stage_input *in, const char **why_not);
    /* NULL = not built yet: AQ_STAGE_NOT_RUN. `out` is the stage's own list and takes findings of
     * its layer only; the walk appends it. Negative only when *we* failed. */
    int (*run)(const aq_stage_input *in, aq_budget *budget, aq_findings *out, aq_err *err);
} aq_stage;

/* One row a layer after intake, in order. */
extern const aq_stage aq_stages[AQ_LAYER_COUNT];

int aq_stage_l0(const aq_stage_input *in, aq_budget *budget, aq_findings *out, aq_err *err);
