/* The report as one JSON document, schema aquarium/report/v1; docs/formats/report.md describes it.
 *
 * Everything that the walk learned goes in here once; text, HTML and SARIF are drawn from this
 * document and add nothing. Text that a package wrote passes aq_text_printable on its way in. */
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/report.h"

enum { FIELD = 2000 }; /* bytes of one field that a manifest wrote */

static void set(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, value ? json_string(value) : json_null());
}

/* For text from the package, which may hold anything. */
static void set_text(json_t *o, const char *key, const char *value, aq_arena *a)
{
    set(o, key, value ? aq_text_printable(a, value, FIELD) : NULL);
}

static void set_int(json_t *o, const char *key, uint64_t value)
{
    json_object_set_new(o, key,
                        json_integer(value > (uint64_t)INT64_MAX ? INT64_MAX : (json_int_t)value));
}

static void set_digest(json_t *o, const char *key, const aq_digest *d)
{
    char hex[AQ_SHA256_HEX];

    set(o, key, aq_digest_hex(d, hex));
}

static json_t *submission_json(const aq_submission *s, aq_arena *a)
{
    json_t *o = json_object();
    aq_digest claims;

    set_text(o, "id", s->id, a);
    set_text(o, "publisher", s->publisher, a);
    set(o, "publisher_tier", aq_publisher_tier_name(s->tier));
    json_object_set_new(o, "local", json_boolean(s->local));
    set(o, "signature", aq_signature_state_name(s->signature));
    set_text(o, "nonce", s->nonce, a);
    if (aq_submission_claims(s, &claims))
        set_digest(o, "claims", &claims);
    else
        set(o, "claims", NULL);
    return o;
}

static json_t *entry_points_json(const aq_manifest *m, aq_arena *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->entry_point_count; i++) {
        json_t *o = json_object();
        set_text(o, "role", m->entry_points[i].role, a);
        set_text(o, "command", m->entry_points[i].command, a);
        set_text(o, "matcher", m->entry_points[i].matcher, a);
        set_text(o, "file", m->entry_points[i].file, a);
        set_int(o, "line", m->entry_points[i].line);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *references_json(const aq_manifest *m, aq_arena *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->reference_count; i++) {
        const aq_reference *r = &m->references[i];
        json_t *o = json_object();
        set_text(o, "name", r->name, a);
        set_text(o, "version", r->version, a);
        set_text(o, "locator", r->locator, a);
        set_text(o, "sha256", r->sha256, a);
        set_int(o, "line", r->line);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *artifact_json(const aq_package *p)
{
    json_t *o;

    if (p->packed_bytes == 0)
        return json_null();
    o = json_object();
    set_digest(o, "sha256", &p->packed);
    set_int(o, "bytes", p->packed_bytes);
    return o;
}

/* What the manifest says; every field is the package's own claim. */
static void add_claims(json_t *o, const aq_manifest *m, aq_arena *a)
{
    aq_digest capabilities;
    json_t *also = json_array();

    set_text(o, "name", m->name, a);
    set_text(o, "namespace", m->namespace_, a);
    set_text(o, "version", m->version, a);
    set(o, "type", m->type == AQ_TYPE_NONE ? NULL : aq_type_name(m->type));
    set(o, "kind", aq_kind_name(m->kind));
    set(o, "kind_title", aq_kind_title(m->kind));
    set_text(o, "dialect", m->dialect, a);
    set_text(o, "manifest", m->file, a);
    set_text(o, "description", m->description, a);
    set_text(o, "license", m->license, a);
    set_text(o, "author", m->author, a);
    set_text(o, "homepage", m->homepage, a);
    set_text(o, "readme", m->readme, a);
    set_text(o, "license_file", m->license_file, a);
    json_object_set_new(o, "capabilities", aq_capabilities_json(&m->declared));
    if (m->declared.present) {
        capabilities = aq_capabilities_digest(&m->declared);
        set_digest(o, "capabilities_digest", &capabilities);
    } else {
        set(o, "capabilities_digest", NULL);
    }
    json_object_set_new(o, "capabilities_implied", aq_capabilities_json(&m->implied));
    json_object_set_new(o, "entry_points", entry_points_json(m, a));
    json_object_set_new(o, "references", references_json(m, a));
    set_int(o, "members", m->members);
    for (size_t i = 0; i < m->also_count; i++)
        json_array_append_new(also, json_string(aq_text_printable(a, m->also[i], FIELD)));
    json_object_set_new(o, "also", also);
}

static json_t *package_json(const aq_package *p, const aq_manifest *m, aq_arena *a)
{
    json_t *o = json_object();

    set_digest(o, "digest", &p->digest);
    set_text(o, "input", p->name, a);
    set(o, "form", p->form);
    set_int(o, "files", p->count);
    set_int(o, "bytes", p->bytes);
    json_object_set_new(o, "artifact", artifact_json(p));
    add_claims(o, m, a);
    return o;
}

static json_t *stages_json(const aq_stage_result *stages, aq_arena *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < AQ_LAYER_COUNT; i++) {
        json_t *o = json_object();
        set(o, "layer", aq_layer_name(stages[i].layer));
        set(o, "title", aq_layer_title(stages[i].layer));
        set(o, "decision", aq_decision_name(stages[i].decision));
        set_text(o, "reason", stages[i].reason, a);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *findings_json(const aq_findings *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->count; i++)
        json_array_append_new(list, aq_finding_json(&f->items[i]));
    return list;
}

static json_t *more_json(const aq_findings *f)
{
    json_t *list = json_array();

    for (aq_rule_id i = 0; i < AQ_RULE_COUNT; i++) {
        uint32_t extra = aq_findings_extra(f, i);
        json_t *o;
        if (!extra)
            continue;
        o = json_object();
        set(o, "rule", aq_rule_get(i)->name);
        set(o, "severity", aq_severity_name(aq_rule_get(i)->severity));
        set_int(o, "count", extra);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *unread_json(const aq_package *p, aq_arena *a, uint64_t *known)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->unread_count; i++) {
        json_t *o = json_object();
        set_text(o, "place", p->unread[i].place, a);
        set_text(o, "reason", p->unread[i].reason, a);
        set_int(o, "bytes", p->unread[i].bytes);
        *known += p->unread[i].bytes;
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *nested_json(const aq_package *p, aq_arena *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->nested_count; i++) {
        json_t *o = json_object();
        set_text(o, "path", p->nested[i].path, a);
        set_text(o, "format", p->nested[i].format, a);
        set_int(o, "entries", p->nested[i].entries);
        set_int(o, "bytes", p->nested[i].bytes);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *layers_not_run(const aq_stage_result *stages, aq_arena *a)
{
    json_t *list = json_array();

    for (size_t i = 0; i < AQ_LAYER_COUNT; i++) {
        json_t *o;
        if (stages[i].decision != AQ_STAGE_NOT_RUN)
            continue;
        o = json_object();
        set(o, "layer", aq_layer_name(stages[i].layer));
        set_text(o, "reason", stages[i].reason, a);
        json_array_append_new(list, o);
    }
    return list;
}

/* The budgets that are spent. The others limit one file, path or document each and have no sum: a
 * use of 0 would be false. */
static json_t *budgets_json(const aq_budget *b)
{
    static const aq_budget_kind counted[] = {AQ_BUDGET_FILES, AQ_BUDGET_BYTES, AQ_BUDGET_NESTED,
                                             AQ_BUDGET_SURVEY};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        json_t *o = json_object();
        set(o, "name", aq_budget_name(counted[i]));
        set(o, "what", aq_budget_what(counted[i]));
        set_int(o, "limit", b->limit[counted[i]]);
        set_int(o, "spent", b->spent[counted[i]]);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *coverage_json(const aq_report_in *in, aq_arena *a)
{
    json_t *o = json_object();
    uint64_t unread = 0;

    set_int(o, "files", in->package->count);
    set_int(o, "bytes_read", in->package->bytes);
    json_object_set_new(o, "unread", unread_json(in->package, a, &unread));
    set_int(o, "unread_bytes_known", unread);
    json_object_set_new(o, "nested", nested_json(in->package, a));
    json_object_set_new(o, "layers_not_run", layers_not_run(in->stages, a));
    json_object_set_new(o, "budgets", budgets_json(in->budget));
    return o;
}

static json_t *rules_json(void)
{
    aq_digest digest = aq_rules_digest();
    json_t *o = json_object();

    set_digest(o, "digest", &digest);
    set(o, "engine", aq_engine());
    set_int(o, "count", aq_rules_count());
    return o;
}

static json_t *policy_json(const aq_policy *p)
{
    json_t *o = aq_policy_json(p);
    aq_digest digest;

    if (aq_json_digest(o, &digest) < 0)
        aq_panic("policy: the canonical form could not be made");
    set_digest(o, "digest", &digest);
    return o;
}

static json_t *store_json(const aq_report_in *in)
{
    json_t *o = json_object();

    set_digest(o, "snapshot", &in->store_snapshot);
    set_int(o, "known_names", in->known_names);
    return o;
}

static json_t *admission_json(const aq_admission *a)
{
    json_t *o = json_object();

    json_object_set_new(o, "replayed", json_boolean(a->replayed));
    json_object_set_new(o, "over_rate", json_boolean(a->over_rate));
    json_object_set_new(o, "dated_ahead", json_boolean(a->dated_ahead));
    return o;
}

/* Facts of this machine: in the report and under its signature, never in the verdict digest. */
static json_t *host_json(const aq_report_in *in)
{
    json_t *jail = NULL;
    aq_err ignored;

    if (!in->jail || aq_json_parse(in->jail, strlen(in->jail), "jail", &jail, &ignored) < 0)
        jail = json_null();
    return json_pack("{s:o}", "jail", jail);
}

json_t *aq_report_json(const aq_report_in *in)
{
    aq_auto_arena a = aq_arena_new();
    json_t *o = json_object();
    char time[AQ_TIME_LEN];
    const char *why = NULL;

    set(o, "schema", "aquarium/report/v1");
    set(o, "verdict", aq_verdict_name(in->verdict));
    set_digest(o, "verdict_digest", &in->verdict_digest);
    set(o, "tier", aq_tier_wanted(in->submission, in->manifest, &why));
    set(o, "tier_ran", NULL); /* nothing runs before L3 does */
    set(o, "tier_reason", why);
    set(o, "time", aq_time_str(in->time, time));
    json_object_set_new(o, "submission", submission_json(in->submission, a));
    json_object_set_new(o, "admission", admission_json(&in->admission));
    json_object_set_new(o, "package", package_json(in->package, in->manifest, a));
    json_object_set_new(o, "stages", stages_json(in->stages, a));
    json_object_set_new(o, "findings", findings_json(in->findings));
    json_object_set_new(o, "more", more_json(in->findings));
    json_object_set_new(o, "observations", json_array()); /* L3 makes them */
    json_object_set_new(o, "divergences", json_array());
    json_object_set_new(o, "coverage", coverage_json(in, a));
    json_object_set_new(o, "survey", aq_survey_json(in->survey));
    json_object_set_new(o, "checklist", aq_checklist(in));
    json_object_set_new(o, "rules", rules_json());
    json_object_set_new(o, "policy", policy_json(in->policy));
    json_object_set_new(o, "host", host_json(in));
    json_object_set_new(o, "store", store_json(in));
    return o;
}
