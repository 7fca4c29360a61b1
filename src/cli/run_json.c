/* The JSON face of a run; docs/formats/run.md is the contract. */
#include "base/io.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/run_text.h"

static json_t *world_json(const aq_run_result *r)
{
    char start[AQ_TIME_LEN] = "";

    return r->seed ? json_pack("{s:s,s:s,s:s}", "seed", r->seed, "side", r->observation->world,
                               "start", aq_time_str(r->start, start))
                   : json_null();
}

/* Why another run may differ: in the words of aq_preempted, and the limit that ended it. */
static json_t *reasons_json(const aq_run_result *r)
{
    json_t *array = json_array();

    for (size_t i = 0; i < r->summary->preempted.count; i++)
        json_array_append_new(array, json_string(r->summary->preempted.rows[i].text));
    if (aq_run_cut(r))
        json_array_append_new(array,
                              json_string(aq_limit_name((aq_limit)r->observation->exit_value)));
    return array;
}

json_t *aq_run_json(const aq_run_result *r)
{
    char hex[AQ_SHA256_HEX], canonical[AQ_SHA256_HEX];

    return json_pack("{s:s,s:i,s:o,s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:b,s:b,s:b,s:o,s:I,s:o}",
                     "schema", "aquarium/run/v1", "exit_status", r->status, "world", world_json(r),
                     "observation_digest", aq_digest_hex(&r->observation->digest, hex),
                     "canonical_digest", aq_digest_hex(&r->canonical, canonical), "backend",
                     r->backend->name, "tier", aq_sandbox_tier_name(r->backend->tier), "guarantee",
                     r->guarantee, "containment", aq_containment_json(r->held), "secrets",
                     r->secrets ? aq_secrets_json(r->secrets) : json_null(), "summary",
                     aq_summary_json(r->summary), "truncated", aq_run_truncated(r), "complete",
                     aq_run_complete(r), "repeatable", aq_run_repeatable(r), "not_repeatable",
                     reasons_json(r), "elapsed_ms", (json_int_t)r->elapsed_ms, "observation",
                     aq_observation_json(r->observation));
}

json_t *aq_run_failed_json(const aq_err *err)
{
    aq_auto_buf text = {0};

    aq_text_printable_max(&text, err->text[0] ? err->text : "failed", sizeof err->text);
    return json_pack("{s:s,s:i,s:s,s:b}", "schema", "aquarium/run/v1", "exit_status", AQ_EXIT_OURS,
                     "error", aq_buf_str(&text), "complete", 0);
}
