/* Evidence: made from a report, checked by anyone; see evidence.h.
 *
 * The document is its facts, the statements that sign them, and optionally the ledger's proof.
 * Checking never reads a fact from one place only: the facts are read strictly, the statements that
 * they imply are built again, and the signed bytes must be exactly those. So there is nothing in
 * the document that is not signed, except the proof, which has its own signature. */
#include "trust/evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "model/finding.h"
#include "trust/statement.h"

static const char schema[] = "aquarium/evidence/v1";

enum { TEXT_MAX = 1024 };                   /* names, ids, nonces */
static const int64_t index_max = 1LL << 53; /* what every JSON reader can hold */
static const char *const decisions[] = {"not-run",      "pass",    "review", "reject",
                                        "inconclusive", "skipped", NULL};

/* ---- reading facts ---- */

static int want_digest(const json_t *object, const char *part, const char *key, aq_digest *ret,
                       aq_err *err)
{
    const char *text = aq_json_str(object, key);

    if (!text || aq_digest_parse(text, ret) < 0)
        return aq_fail(err, -EBADMSG, "%s%s%s is not a SHA-256 digest in lower-case hex", part,
                       *part ? "." : "", key);
    return 0;
}

static int want_text(const json_t *object, const char *part, const char *key, const char **ret,
                     aq_err *err)
{
    const char *text = aq_json_str(object, key);

    if (!text || strlen(text) > TEXT_MAX)
        return aq_fail(err, -EBADMSG, "%s.%s is not a text of at most %d bytes", part, key,
                       TEXT_MAX);
    *ret = text;
    return 0;
}

/* Every stage once, in the order of the walk, with a decision that exists. `clean`: none of them
 * stands against a pass. */
static int read_stages(const json_t *stages, bool *clean, aq_err *err)
{
    static const char *const keys[] = {"layer", "decision", NULL};

    *clean = true;
    if (json_array_size(stages) != AQ_LAYER_COUNT)
        return aq_fail(err, -EBADMSG, "stages does not list the %d stages of a walk",
                       AQ_LAYER_COUNT);
    for (size_t i = 0; i < AQ_LAYER_COUNT; i++) {
        const json_t *stage = json_array_get(stages, i);
        const char *layer = aq_json_str(stage, "layer");
        const char *decision = aq_json_str(stage, "decision");
        const char *const *d = decisions;
        int r = aq_json_only_keys(stage, "stages[]", keys, err);

        if (r < 0)
            return r;
        if (!layer || strcmp(layer, aq_layer_name((aq_layer)i)) != 0)
            return aq_fail(err, -EBADMSG, "stages[%zu].layer is not %s", i,
                           aq_layer_name((aq_layer)i));
        while (*d && decision && strcmp(*d, decision) != 0)
            d++;
        if (!decision || !*d)
            return aq_fail(err, -EBADMSG, "stages[%zu].decision is not one that exists", i);
        if (strcmp(decision, "pass") != 0 && strcmp(decision, "skipped") != 0)
            *clean = false;
    }
    return 0;
}

static int read_verdict(const json_t *facts, aq_evidence *e, aq_err *err)
{
    const char *time = aq_json_str(facts, "time");
    bool clean;
    int r = read_stages(json_object_get(facts, "stages"), &clean, err);

    if (r < 0)
        return r;
    e->verdict = aq_json_str(facts, "verdict");
    if (!e->verdict || !aq_statement_result(e->verdict))
        return aq_fail(err, -EBADMSG, "verdict is not pass, review, reject or inconclusive");
    if (strcmp(e->verdict, "pass") == 0 && !clean)
        return aq_fail(err, -EBADMSG, "verdict is pass, but not every stage passed");
    if (!time || aq_time_parse(time, &e->time) < 0)
        return aq_fail(err, -EBADMSG, "time is not of the form 2026-01-31T23:59:59Z");
    return want_digest(facts, "", "verdict_digest", &e->verdict_digest, err);
}

static int read_ledger(const json_t *facts, aq_evidence *e, aq_err *err)
{
    static const char *const keys[] = {"index", "leaf", NULL};
    const json_t *ledger = json_object_get(facts, "ledger");
    int64_t index = aq_json_int(ledger, "index", -1);
    int r = aq_json_only_keys(ledger, "ledger", keys, err);

    if (r < 0)
        return r;
    if (index < 0 || index > index_max)
        return aq_fail(err, -EBADMSG, "ledger.index is not an index");
    e->ledger_index = (uint64_t)index;
    return want_digest(ledger, "ledger", "leaf", &e->ledger_leaf, err);
}

/* One part that is {digest} alone. */
static int read_part(const json_t *facts, const char *part, aq_err *err)
{
    static const char *const keys[] = {"digest", NULL};
    const json_t *object = json_object_get(facts, part);
    aq_digest d;
    int r = aq_json_only_keys(object, part, keys, err);

    return r < 0 ? r : want_digest(object, part, "digest", &d, err);
}

static int read_report(const json_t *facts, aq_evidence *e, aq_digest *mac, aq_err *err)
{
    static const char *const keys[] = {"digest", "hmac", NULL};
    static const char *const hmac_keys[] = {"keyid", "sha256", NULL};
    const json_t *report = json_object_get(facts, "report");
    const json_t *hmac = json_object_get(report, "hmac");
    const char *id;
    int r = aq_json_only_keys(report, "report", keys, err);

    if (r == 0)
        r = aq_json_only_keys(hmac, "report.hmac", hmac_keys, err);
    if (r == 0)
        r = want_text(hmac, "report.hmac", "keyid", &id, err);
    if (r == 0)
        r = want_digest(hmac, "report.hmac", "sha256", mac, err);
    return r < 0 ? r : want_digest(report, "report", "digest", &e->report, err);
}

/* A list of at most `max` objects, or nothing at all. */
static int optional_list(const json_t *facts, const char *part, size_t max, const json_t **ret,
                         aq_err *err)
{
    *ret = json_object_get(facts, part);
    if (*ret && (!json_is_array(*ret) || json_array_size(*ret) == 0 || json_array_size(*ret) > max))
        return aq_fail(err, -EBADMSG, "%s is not a list of 1 to %zu", part, max);
    return 0;
}

/* What L3 adds: further statements by type and digest, and commitments to seeds. */
static int read_optional(const json_t *facts, aq_err *err)
{
    static const char *const further_keys[] = {"type", "sha256", NULL};
    static const char *const seed_keys[] = {"run", "commitment", NULL};
    const json_t *further, *seeds, *row;
    const char *text;
    aq_digest d;
    size_t i;
    int r;

    if ((r = optional_list(facts, "further", AQ_EVIDENCE_FURTHER, &further, err)) < 0 ||
        (r = optional_list(facts, "seeds", AQ_EVIDENCE_SEEDS, &seeds, err)) < 0)
        return r;
    json_array_foreach (further, i, row) {
        if ((r = aq_json_only_keys(row, "further[]", further_keys, err)) < 0 ||
            (r = want_text(row, "further[]", "type", &text, err)) < 0 ||
            (r = want_digest(row, "further[]", "sha256", &d, err)) < 0)
            return r;
    }
    json_array_foreach (seeds, i, row) {
        if ((r = aq_json_only_keys(row, "seeds[]", seed_keys, err)) < 0 ||
            (r = want_text(row, "seeds[]", "run", &text, err)) < 0 ||
            (r = want_digest(row, "seeds[]", "commitment", &d, err)) < 0)
            return r;
    }
    return 0;
}

/* Fills everything of `e` but hmac_checked. */
static int read_facts(const json_t *facts, aq_evidence *e, aq_digest *mac, aq_err *err)
{
    static const char *const keys[] = {"schema", "package", "submission",     "report", "rules",
                                       "policy", "verdict", "verdict_digest", "stages", "time",
                                       "ledger", "further", "seeds",          NULL};
    static const char *const package_keys[] = {"name", "digest", NULL};
    static const char *const submission_keys[] = {"id", "nonce", NULL};
    const json_t *package = json_object_get(facts, "package");
    const json_t *submission = json_object_get(facts, "submission");
    const char *s = aq_json_str(facts, "schema"), *name;
    int r;

    if (!s || strcmp(s, schema) != 0)
        return aq_fail(err, -EBADMSG, "schema is not %s", schema);
    if ((r = aq_json_only_keys(facts, "evidence", keys, err)) < 0 ||
        (r = aq_json_only_keys(package, "package", package_keys, err)) < 0 ||
        (r = want_text(package, "package", "name", &name, err)) < 0 ||
        (r = want_digest(package, "package", "digest", &e->package, err)) < 0 ||
        (r = aq_json_only_keys(submission, "submission", submission_keys, err)) < 0 ||
        (r = want_text(submission, "submission", "id", &e->submission, err)) < 0 ||
        (r = want_text(submission, "submission", "nonce", &e->nonce, err)) < 0 ||
        (r = read_report(facts, e, mac, err)) < 0 || (r = read_part(facts, "rules", err)) < 0 ||
        (r = read_part(facts, "policy", err)) < 0 || (r = read_verdict(facts, e, err)) < 0 ||
        (r = read_ledger(facts, e, err)) < 0 || (r = read_optional(facts, err)) < 0)
        return r;
    return 0;
}

/* ---- making ---- */

static json_t *stages_of(const json_t *report)
{
    json_t *list = json_array();
    const json_t *stage;
    size_t i;

    json_array_foreach (json_object_get(report, "stages"), i, stage) {
        json_t *row = json_object();
        json_object_set(row, "layer", json_object_get(stage, "layer"));
        json_object_set(row, "decision", json_object_get(stage, "decision"));
        json_array_append_new(list, row);
    }
    return list;
}

/* A fact that the report has and the caller says again must be the same. */
static int same(const json_t *report, const char *part, const char *key, const char *said,
                aq_err *err)
{
    const char *text = aq_json_str(json_object_get(report, part), key);

    if (text && strcmp(text, said) != 0)
        return aq_fail(err, -EINVAL, "the report's %s.%s is not the one of this evidence", part,
                       key);
    return 0;
}

static void set(json_t *object, const char *key, const json_t *value)
{
    if (value)
        json_object_set(object, key, (json_t *)value);
}

static json_t *facts_of(const aq_keys *k, const aq_evidence_in *in, const aq_digest *report)
{
    const json_t *r = in->report;
    aq_digest mac = aq_key_hmac(k, AQ_KEY_EVIDENCE_MAC, report->b, sizeof report->b);
    char package[AQ_SHA256_HEX], digest[AQ_SHA256_HEX], hmac[AQ_SHA256_HEX], leaf[AQ_SHA256_HEX];
    char id[AQ_KEY_ID];
    json_t *facts = json_pack(
        "{s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:{s:s, s:{s:s, s:s}}, s:{}, s:{}, s:{s:I, s:s}}",
        "schema", schema, "package", "name", in->package_name, "digest",
        aq_digest_hex(&in->package, package), "submission", "id", in->submission, "nonce",
        in->nonce ? in->nonce : "", "report", "digest", aq_digest_hex(report, digest), "hmac",
        "keyid", aq_key_id(k, AQ_KEY_EVIDENCE_MAC, id), "sha256", aq_digest_hex(&mac, hmac),
        "rules", "policy", "ledger", "index", (json_int_t)in->ledger_index, "leaf",
        aq_digest_hex(&in->ledger_leaf, leaf));

    if (!facts)
        return NULL; /* a text that is not UTF-8 */
    for (int i = 0; i < 2; i++) {
        const char *part = i ? "policy" : "rules";
        set(json_object_get(facts, part), "digest",
            json_object_get(json_object_get(r, part), "digest"));
    }
    set(facts, "verdict", json_object_get(r, "verdict"));
    set(facts, "verdict_digest", json_object_get(r, "verdict_digest"));
    set(facts, "time", json_object_get(r, "time"));
    json_object_set_new(facts, "stages", stages_of(r));
    return facts;
}

/* Signs the further statements into `list`, and names each in the facts. */
static int add_further(const aq_keys *k, const aq_evidence_in *in, json_t *facts, json_t *list,
                       aq_err *err)
{
    json_t *named = json_array();
    const json_t *row;
    size_t i;
    int r = 0;

    json_array_foreach (in->further, i, row) {
        aq_auto_buf payload = {0};
        const char *type = aq_json_str(row, "type");
        const json_t *predicate = json_object_get(row, "predicate");
        char hex[AQ_SHA256_HEX];
        aq_digest d;

        if (!type || !json_is_object(predicate) ||
            aq_statement_further(facts, type, predicate, &payload) < 0) {
            r = aq_fail(err, -EINVAL, "further statement %zu is malformed", i);
            break;
        }
        d = aq_sha256(payload.data, payload.len);
        json_array_append_new(
            named, json_pack("{s:s, s:s}", "type", type, "sha256", aq_digest_hex(&d, hex)));
        json_array_append_new(
            list, aq_dsse_sign(k, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE, payload.data, payload.len));
    }
    if (json_array_size(named))
        json_object_set(facts, "further", named);
    json_decref(named);
    return r;
}

int aq_evidence_make(const aq_keys *k, const aq_evidence_in *in, json_t **ret, aq_err *err)
{
    aq_auto_json json_t *facts = NULL;
    aq_auto_json json_t *further = json_array();
    aq_auto_buf tests = {0}, index = {0};
    aq_buf payload[AQ_STATEMENT_COUNT] = {{0}};
    char hex[AQ_SHA256_HEX];
    aq_digest report, mac;
    aq_evidence e = {0};
    json_t *list;
    int r;

    if (!in->package_name || !in->submission)
        return aq_fail(err, -EINVAL, "evidence needs a package name and a submission");
    if (aq_json_digest(in->report, &report) < 0)
        return aq_fail(err, -EINVAL, "the report has no canonical form");
    if ((r = same(in->report, "package", "digest", aq_digest_hex(&in->package, hex), err)) < 0 ||
        (r = same(in->report, "submission", "id", in->submission, err)) < 0 ||
        (r = same(in->report, "submission", "nonce", in->nonce ? in->nonce : "", err)) < 0)
        return r;
    facts = facts_of(k, in, &report);
    if (!facts)
        return aq_fail(err, -EINVAL, "package name, submission or nonce is not UTF-8");
    set(facts, "seeds", in->seeds);
    r = add_further(k, in, facts, further, err);
    if (r == 0)
        r = read_facts(facts, &e, &mac, err);
    if (r < 0)
        return aq_err_within(err, "no evidence can be made of this report");
    aq_statements(facts, payload);
    tests = payload[AQ_STATEMENT_TESTS];
    index = payload[AQ_STATEMENT_INDEX];
    list =
        json_pack("[o, o]", aq_dsse_sign(k, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE, tests.data, tests.len),
                  aq_dsse_sign(k, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE, index.data, index.len));
    json_array_extend(list, further);
    json_object_set_new(facts, "statements", list);
    if (in->ledger_proof)
        json_object_set(json_object_get(facts, "ledger"), "proof", (json_t *)in->ledger_proof);
    *ret = aq_take(facts);
    return 0;
}

/* ---- checking ---- */

static int check_statement(const json_t *envelope, const uint8_t public_key[static AQ_KEY_LEN],
                           aq_buf *expected, aq_err *err)
{
    aq_auto_buf payload = {0}, path = {0};
    aq_auto_json json_t *said = NULL;
    aq_auto_json json_t *implied = NULL;
    int r = aq_dsse_verify(envelope, public_key, AQ_INTOTO_TYPE, &payload, err);

    if (r < 0)
        return r;
    if (payload.len == expected->len && memcmp(payload.data, expected->data, payload.len) == 0)
        return 0;
    r = aq_json_parse(aq_buf_str(&payload), payload.len, "statement", &said, err);
    if (r == 0)
        r = aq_json_parse(aq_buf_str(expected), expected->len, "statement", &implied, err);
    if (r < 0)
        return r;
    aq_json_difference(said, implied, &path);
    return aq_fail(err, -EBADMSG,
                   "what was signed is not what the document says (first difference: %s)",
                   path.len ? path.data : "the spelling");
}

/* A further statement has content of its own: signed, the very bytes that the facts name, and about
 * this package. What it means is for those who know its type. */
static int check_further(const json_t *envelope, const json_t *row, const json_t *facts,
                         const uint8_t public_key[static AQ_KEY_LEN], aq_err *err)
{
    aq_auto_buf payload = {0};
    aq_auto_json json_t *said = NULL;
    aq_digest named = {0}, real;
    int r = aq_dsse_verify(envelope, public_key, AQ_INTOTO_TYPE, &payload, err);

    if (r < 0)
        return r;
    real = aq_sha256(payload.data, payload.len);
    aq_digest_parse(aq_json_str(row, "sha256"), &named);
    if (!aq_digest_equal(&real, &named))
        return aq_fail(err, -EBADMSG, "it is not the statement that the facts name");
    if ((r = aq_json_parse(aq_buf_str(&payload), payload.len, "statement", &said, err)) < 0)
        return r;
    if (!aq_statement_speaks_of(said, facts, aq_json_str(row, "type")))
        return aq_fail(err, -EBADMSG, "it is of another type or about another package");
    return 0;
}

static int check_statements(const json_t *list, const json_t *facts,
                            const uint8_t public_key[static AQ_KEY_LEN], aq_err *err)
{
    const json_t *further = json_object_get(facts, "further");
    aq_buf payload[AQ_STATEMENT_COUNT] = {{0}};
    size_t count = AQ_STATEMENT_COUNT + json_array_size(further);
    int r = 0;

    if (json_array_size(list) != count)
        return aq_fail(err, -EBADMSG, "statements does not hold %zu envelopes", count);
    aq_statements(facts, payload);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const json_t *envelope = json_array_get(list, i);
        r = i < AQ_STATEMENT_COUNT
                ? check_statement(envelope, public_key, &payload[i], err)
                : check_further(envelope, json_array_get(further, i - AQ_STATEMENT_COUNT), facts,
                                public_key, err);
        if (r < 0)
            aq_err_within(err, "statements[%zu]", i);
    }
    for (size_t i = 0; i < AQ_STATEMENT_COUNT; i++)
        aq_buf_free(&payload[i]);
    return r;
}

static int check_hmac(const json_t *facts, const aq_keys *keys, const aq_evidence *e,
                      const aq_digest *mac, aq_err *err)
{
    aq_digest own = aq_key_hmac(keys, AQ_KEY_EVIDENCE_MAC, e->report.b, sizeof e->report.b);
    const json_t *hmac = json_object_get(json_object_get(facts, "report"), "hmac");
    char id[AQ_KEY_ID];

    if (strcmp(aq_json_str(hmac, "keyid"), aq_key_id(keys, AQ_KEY_EVIDENCE_MAC, id)) != 0)
        return aq_fail(err, -ENOKEY, "report.hmac was made with another key than ours (%s)", id);
    if (!aq_digest_equal(&own, mac))
        return aq_fail(err, -EBADMSG, "report.hmac does not belong to this report");
    return 0;
}

static const char *unknown_type(const json_t *document)
{
    const json_t *row;
    size_t i;

    json_array_foreach (json_object_get(document, "further"), i, row)
        if (!aq_statement_known(aq_json_str(row, "type")))
            return aq_json_str(row, "type");
    return NULL;
}

int aq_evidence_verify(const json_t *document, const uint8_t public_key[static AQ_KEY_LEN],
                       const aq_keys *keys, aq_evidence *ret, aq_err *err)
{
    aq_auto_json json_t *facts = json_deep_copy(document);
    const json_t *list = json_object_get(document, "statements");
    aq_evidence e = {0}, borrowed;
    aq_digest mac;
    int r;

    if (!json_is_object(facts))
        return aq_fail(err, -EBADMSG, "evidence is one JSON object");
    json_object_del(facts, "statements");
    json_object_del(json_object_get(facts, "ledger"), "proof");
    r = read_facts(facts, &e, &mac, err);
    if (r < 0)
        return r;
    if ((keys && (r = check_hmac(facts, keys, &e, &mac, err)) < 0) ||
        (r = check_statements(list, facts, public_key, err)) < 0)
        return r;
    /* The texts must outlive `facts`: take them from the caller's document. */
    borrowed = e;
    borrowed.hmac_checked = keys != NULL;
    borrowed.verdict = aq_json_str(document, "verdict");
    borrowed.unknown_type = unknown_type(document);
    borrowed.submission = aq_json_str(json_object_get(document, "submission"), "id");
    borrowed.nonce = aq_json_str(json_object_get(document, "submission"), "nonce");
    *ret = borrowed;
    return 0;
}
