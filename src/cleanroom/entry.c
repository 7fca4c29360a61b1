/* What the walk writes into the ledger, and how evidence is compared with it; see entry.h. */
#include "cleanroom/entry.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static void set(json_t *o, const char *key, const char *value)
{
    json_object_set_new(o, key, json_string(value));
}

static void set_digest(json_t *o, const char *key, const aq_digest *d)
{
    char hex[AQ_SHA256_HEX];

    set(o, key, aq_digest_hex(d, hex));
}

json_t *aq_entry_decision(const char *submission, const aq_stage_result *stage,
                          const aq_digest *package, const aq_digest *findings)
{
    json_t *o = json_object();

    set(o, "kind", "decision");
    set(o, "submission", submission);
    set(o, "stage", aq_layer_name(stage->layer));
    set(o, "decision", aq_decision_name(stage->decision));
    set_digest(o, "package", package);
    set_digest(o, "findings", findings);
    return o;
}

json_t *aq_entry_verdict(const char *submission, aq_verdict verdict,
                         const aq_digest *verdict_digest, const aq_digest *package,
                         const aq_digest *report)
{
    json_t *o = json_object();

    set(o, "kind", "verdict");
    set(o, "submission", submission);
    set(o, "verdict", aq_verdict_name(verdict));
    set_digest(o, "verdict_digest", verdict_digest);
    set_digest(o, "package", package);
    set_digest(o, "report", report);
    return o;
}

static bool says(const json_t *entry, const char *key, const char *value)
{
    const char *said = aq_json_str(entry, key);

    return said && value && strcmp(said, value) == 0;
}

static bool says_digest(const json_t *entry, const char *key, const aq_digest *d)
{
    char hex[AQ_SHA256_HEX];

    return says(entry, key, aq_digest_hex(d, hex));
}

int aq_entry_matches(const char *entry, const aq_evidence *e, aq_err *err)
{
    aq_auto_json json_t *o = NULL;
    const char *wrong = NULL;
    int r = aq_json_parse(entry, strlen(entry), "ledger entry", &o, err);

    if (r < 0)
        return -EBADMSG;
    if (!says(o, "kind", "verdict"))
        wrong = "kind";
    else if (aq_json_int(o, "index", -1) != (int64_t)e->ledger_index)
        wrong = "index";
    else if (!says(o, "submission", e->submission))
        wrong = "submission";
    else if (!says(o, "verdict", e->verdict))
        wrong = "verdict";
    else if (!says_digest(o, "verdict_digest", &e->verdict_digest))
        wrong = "verdict digest";
    else if (!says_digest(o, "package", &e->package))
        wrong = "package";
    else if (!says_digest(o, "report", &e->report))
        wrong = "report";
    if (wrong)
        return aq_fail(err, -EBADMSG, "the ledger's entry %llu is of another %s",
                       (unsigned long long)e->ledger_index, wrong);
    return 0;
}
