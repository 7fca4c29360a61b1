/* The walk of a submission: intake, then each stage, then verdict, report, evidence; see walk.h.
 *
 * Order is the point of this file. A stage's decision is durable in the ledger before the next
 * stage starts; the verdict is in the ledger before anyone hears of it; evidence is made last,
 * because it names its ledger entry. If the ledger cannot be written the walk fails: an answer
 * that was not recorded is not given. */
#include "cleanroom/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "cleanroom/entry.h"
#include "cleanroom/report.h"
#include "trust/evidence.h"

const aq_stage aq_stages[AQ_LAYER_COUNT] = {
    [AQ_LAYER_INTAKE] = {.layer =
                             AQ_LAYER_INTAKE}, /* done before the stages: it makes the package */
    [AQ_LAYER_L0] = {.layer = AQ_LAYER_L0, .run = aq_stage_l0},
    [AQ_LAYER_L1] = {.layer = AQ_LAYER_L1},
    [AQ_LAYER_L15] = {.layer = AQ_LAYER_L15},
    [AQ_LAYER_L2] = {.layer = AQ_LAYER_L2},
    [AQ_LAYER_L3] = {.layer = AQ_LAYER_L3},
};

/* What one walk holds; dies with it. */
typedef struct walk {
    aq_home *home;
    const aq_walk_options *options;
    aq_arena *arena;
    aq_budget budget;
    aq_policy policy;
    aq_findings *findings;
    aq_intake intake;
    aq_survey survey;
    bool unread; /* intake could not read all of it */
    aq_stage_result stages[AQ_LAYER_COUNT];
    aq_digest verdict_digest;
    aq_admission admission;
    aq_digest store_snapshot; /* of the view that the stages see */
    uint64_t known_names;
    int64_t now;
} walk;

static void walk_close(walk *w)
{
    aq_store_view_end(w->home->store);
    aq_intake_close(&w->intake);
    aq_arena_free(w->arena);
}

/* Runs the stage over a list of its own: it can neither read nor change what others found. */
static int run_alone(walk *w, const aq_stage_input *in, const aq_stage *stage, aq_err *err)
{
    aq_findings *own = aq_findings_new(w->arena);
    int r = stage->run(in, &w->budget, own, err);
    int taken = aq_findings_take(w->findings, own, stage->layer, r < 0 ? &(aq_err){0} : err);

    return r < 0 ? r : taken;
}

/* The digest of one layer's findings: what its ledger entry commits to. */
static aq_digest layer_digest(const aq_findings *f, aq_layer layer)
{
    aq_auto_json json_t *list = json_array();
    aq_digest d;

    for (size_t i = 0; i < f->count; i++)
        if (aq_rule_get(f->items[i].rule)->layer == layer)
            json_array_append_new(list, aq_finding_canonical(&f->items[i]));
    if (aq_json_digest(list, &d) < 0)
        aq_panic("a finding has no canonical form");
    return d;
}

static aq_decision decide(const aq_findings *f, aq_layer layer)
{
    aq_severity worst = AQ_INFO;

    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++)
        if (f->per_rule[i] && aq_rule_get(i)->layer == layer && aq_rule_get(i)->severity > worst)
            worst = aq_rule_get(i)->severity;
    if (worst == AQ_REJECT)
        return AQ_STAGE_REJECT;
    if (f->layer_incomplete[layer])
        return AQ_STAGE_INCONCLUSIVE;
    return worst == AQ_REVIEW ? AQ_STAGE_REVIEW : AQ_STAGE_PASS;
}

static int record_decision(walk *w, aq_layer layer, aq_err *err)
{
    aq_digest findings = layer_digest(w->findings, layer);
    aq_auto_json json_t *body = aq_entry_decision(w->intake.submission.id, &w->stages[layer],
                                                  &w->intake.package.digest, &findings);
    uint64_t index;
    aq_digest leaf;

    if (aq_ledger_append(w->home->ledger, body, &index, &leaf, err) == 0)
        return 0;
    aq_home_ledger_failed(w->home, err);
    return aq_err_within(err, "%s's decision could not be recorded", aq_layer_title(layer));
}

static const char *reason_of(const walk *w, aq_layer layer)
{
    aq_decision d = w->stages[layer].decision;

    for (size_t i = 0; i < w->findings->count; i++) {
        const aq_finding *f = &w->findings->items[i];
        bool tells = d == AQ_STAGE_INCONCLUSIVE
                         ? f->incomplete
                         : aq_finding_severity(f) == aq_findings_worst(w->findings);
        if (aq_rule_get(f->rule)->layer == layer && tells)
            return aq_arena_strdup(w->arena, f->message);
    }
    return NULL;
}

static int close_stage(walk *w, aq_layer layer, aq_err *err)
{
    aq_stage_result *s = &w->stages[layer];

    aq_findings_sort(w->findings); /* so that the entry does not depend on the order of discovery */
    if (s->decision == AQ_STAGE_NOT_RUN)
        s->decision = decide(w->findings, layer);
    if (!s->reason && s->decision != AQ_STAGE_PASS)
        s->reason = reason_of(w, layer);
    return record_decision(w, layer, err);
}

static int run_stage(walk *w, const aq_stage_input *in, aq_layer layer, aq_err *err)
{
    const aq_stage *stage = &aq_stages[layer];
    aq_stage_result *s = &w->stages[layer];
    aq_err ours = {0};

    if (stage->applies && !stage->applies(in, &s->reason)) {
        s->decision = AQ_STAGE_SKIPPED;
    } else if (!stage->run) {
        s->reason = "not built into this version";
        return 0;
    } else if (run_alone(w, in, stage, &ours) < 0) {
        s->decision = AQ_STAGE_INCONCLUSIVE;
        s->reason = aq_arena_printf(w->arena, "our own failure: %s", ours.text);
    }
    return close_stage(w, layer, err);
}

static bool manifest_unread(const walk *w)
{
    const char *file = w->intake.manifest.file;

    for (size_t i = 0; file && i < w->findings->count; i++) {
        const aq_finding *f = &w->findings->items[i];
        if (f->rule == AQ_RULE_MANIFEST_UNREADABLE && f->file && strcmp(f->file, file) == 0)
            return true;
    }
    return false;
}

static int run_stages(walk *w, aq_err *err)
{
    const aq_stage_input in = {.submission = &w->intake.submission,
                               .package = &w->intake.package,
                               .manifest = &w->intake.manifest,
                               .policy = &w->policy,
                               .store = w->home->store,
                               .admission = w->admission,
                               .unread = w->unread,
                               .manifest_unread = manifest_unread(w)};
    aq_layer ended = AQ_LAYER_COUNT;
    int r = aq_store_view(w->home->store, &w->store_snapshot, &w->known_names, err);

    if (r < 0)
        return r;
    if (w->stages[AQ_LAYER_INTAKE].decision == AQ_STAGE_REJECT)
        ended = AQ_LAYER_INTAKE;
    for (aq_layer layer = AQ_LAYER_L0; layer < AQ_LAYER_COUNT; layer++) {
        if (ended != AQ_LAYER_COUNT) {
            w->stages[layer].reason =
                aq_arena_printf(w->arena, "the walk ended at %s", aq_layer_title(ended));
            continue;
        }
        if (run_stage(w, &in, layer, err) < 0)
            return err->code;
        if (w->stages[layer].decision == AQ_STAGE_REJECT)
            ended = layer;
    }
    aq_store_view_end(w->home->store);
    return 0;
}

/* Part of intake, so that a survey that could not finish is in intake's decision. */
static void survey(walk *w)
{
    aq_err err = {0};

    if (aq_survey_run(w->arena, &w->intake.package, &w->budget, &w->survey, &err) < 0)
        w->survey = (aq_survey){
            .reason = aq_arena_printf(w->arena, "Its reader could not be started: %s", err.text)};
    if (!w->survey.complete)
        aq_findings_add_incomplete(w->findings, AQ_RULE_INTAKE_SURVEY, NULL, "%s",
                                   w->survey.reason);
}

static int take_in(walk *w, bool *no_input, aq_err *err)
{
    const aq_walk_options *o = w->options;
    aq_stage_result *s = &w->stages[AQ_LAYER_INTAKE];
    int r;

    r = aq_intake_open(w->arena, o->path, o->artifact, w->home->path, &w->budget, w->findings,
                       o->progress, o->progress_arg, &w->intake, err);
    *no_input = r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -EINVAL || r == -ELOOP;
    if (r < 0)
        return r;
    r = aq_store_begin(w->home->store, &w->intake.submission, err);
    if (r == -EEXIST) {
        w->admission.replayed = true;
        /* No id here: the message is part of the verdict digest. */
        aq_findings_add(w->findings, AQ_RULE_INTAKE_REPLAYED, NULL,
                        "A submission with its id or nonce was seen before");
        r = 0;
    }
    if (r < 0 || (r = aq_admit(&w->intake.submission, &w->policy, w->home->store, w->now,
                               &w->admission, err)) < 0)
        return r;
    w->unread =
        w->findings->layer_incomplete[AQ_LAYER_INTAKE] || w->intake.package.unread_count > 0;
    survey(w);
    if (w->intake.broken && decide(w->findings, AQ_LAYER_INTAKE) != AQ_STAGE_REJECT) {
        s->decision = AQ_STAGE_INCONCLUSIVE;
        s->reason = "a parser in the jail gave no answer";
    }
    return close_stage(w, AQ_LAYER_INTAKE, err);
}

static void make_report(walk *w, aq_walk_result *out)
{
    aq_report_in in = {.submission = &w->intake.submission,
                       .package = &w->intake.package,
                       .manifest = &w->intake.manifest,
                       .findings = w->findings,
                       .stages = w->stages,
                       .survey = &w->survey,
                       .policy = &w->policy,
                       .budget = &w->budget,
                       .admission = w->admission,
                       .store_snapshot = w->store_snapshot,
                       .known_names = w->known_names,
                       .jail = w->intake.jail,
                       .time = w->now};

    aq_findings_sort(w->findings);
    in.verdict = aq_verdict_judge(w->stages, w->findings, &w->intake.package);
    in.verdict_digest = aq_verdict_digest(in.verdict, w->stages, w->findings,
                                          &w->intake.package.digest, NULL, NULL);
    w->verdict_digest = in.verdict_digest;
    out->verdict = in.verdict;
    out->report = aq_report_json(&in);
}

/* What the store remembers. A name that came in an envelope is taken from now on, provisionally:
 * only an operator or a verified signature confirms it. */
static int remember(walk *w, const aq_walk_result *out, uint64_t index, aq_err *err)
{
    const aq_submission *sub = &w->intake.submission;
    aq_known known = {
        .namespace_ = sub->namespace_, .name = sub->name, .publisher = sub->publisher};
    int r;

    if (w->admission.replayed)
        return 0;
    r = aq_store_finish(w->home->store, sub->id, &w->intake.package, &w->intake.manifest,
                        out->verdict, &w->verdict_digest, out->report, index, err);
    if (r == 0 && !sub->local && out->verdict != AQ_REJECTED)
        r = aq_store_know(w->home->store, &known, err);
    return r;
}

static int keep_evidence(walk *w, uint64_t index, aq_walk_result *out, aq_err *err)
{
    aq_auto_buf name = {0}, text = {0};
    int r = aq_make_dirs_at(w->home->dirfd, "evidence", err);

    if (r < 0)
        return r;
    /* Named by its ledger entry: a replayed submission cannot overwrite older evidence. */
    aq_buf_addf(&name, "evidence/%08llu.json", (unsigned long long)index);
    aq_json_pretty(out->evidence, &text);
    r = aq_write_file(w->home->dirfd, name.data, text.data, text.len, 0644, err);
    if (r < 0)
        return r;
    aq_buf_clear(&text);
    aq_buf_addf(&text, "%s/%s", w->home->path, name.data);
    out->evidence_path = aq_buf_take(&text);
    return 0;
}

/* The verdict's entry, then evidence that names it. */
static int seal(walk *w, aq_walk_result *out, aq_err *err)
{
    const aq_submission *sub = &w->intake.submission;
    aq_auto_json json_t *body = NULL;
    aq_auto_json json_t *proof = NULL;
    aq_evidence_in in = {.report = out->report,
                         .package = w->intake.package.digest,
                         .package_name = w->intake.manifest.name ? w->intake.manifest.name
                                                                 : w->intake.package.name,
                         .submission = sub->id,
                         .nonce = sub->nonce};
    aq_digest report;
    int r;

    if (aq_json_digest(out->report, &report) < 0)
        return aq_fail(err, -EDOM, "the report has no canonical form");
    body = aq_entry_verdict(sub->id, out->verdict, &w->verdict_digest, &w->intake.package.digest,
                            &report);
    if ((r = aq_ledger_append(w->home->ledger, body, &in.ledger_index, &in.ledger_leaf, err)) < 0 ||
        (r = aq_ledger_publish(w->home->ledger, err)) < 0 ||
        (r = aq_ledger_prove(w->home->ledger, in.ledger_index, &proof, err)) < 0) {
        aq_home_ledger_failed(w->home, err);
        return aq_err_within(err, "the verdict could not be recorded");
    }
    in.ledger_proof = proof;
    if ((r = aq_evidence_make(w->home->keys, &in, &out->evidence, err)) < 0)
        return r;
    if ((r = keep_evidence(w, in.ledger_index, out, err)) < 0)
        return r;
    return remember(w, out, in.ledger_index, err);
}

int aq_walk(aq_home *home, const aq_walk_options *o, aq_walk_result *ret, aq_err *err)
{
    __attribute__((cleanup(walk_close)))
    walk w = {.home = home, .options = o, .arena = aq_arena_new(), .now = aq_now()};
    __attribute__((cleanup(aq_walk_result_free))) aq_walk_result out = {0};
    int r;

    w.intake.package.image = -1;
    w.findings = aq_findings_new(w.arena);
    aq_budget_init(&w.budget);
    for (aq_layer i = 0; i < AQ_LAYER_COUNT; i++)
        w.stages[i].layer = i;
    if ((r = aq_home_check_ledger(home, err)) < 0)
        return r;
    if (o->policy)
        w.policy = *o->policy;
    else if ((r = aq_policy_load(home->dirfd, home->path, &w.policy, err)) < 0)
        return r;
    aq_policy_apply(&w.policy, &w.budget);
    if ((r = take_in(&w, &ret->no_input, err)) < 0 || (r = run_stages(&w, err)) < 0)
        return r;
    make_report(&w, &out);
    if ((r = seal(&w, &out, err)) < 0)
        return r;
    *ret = out;
    out = (aq_walk_result){0};
    return 0;
}

void aq_walk_result_free(aq_walk_result *r)
{
    json_decref(r->report);
    json_decref(r->evidence);
    free(r->evidence_path);
    *r = (aq_walk_result){0};
}
