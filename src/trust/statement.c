/* The in-toto statements of evidence; see statement.h.
 *
 * test-result/v0.1 knows three results. Review is WARNED. Inconclusive is FAILED, because WARNED
 * means "passed, with remarks" to other tools, and what was not read has not passed. */
#include "trust/statement.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/json.h"

static const char statement_type[] = "https://in-toto.io/Statement/v1";
static const char tests_type[] = "https://in-toto.io/attestation/test-result/v0.1";
static const char index_type[] = "https://in-toto.io/attestation/scai/v0.3";

const char *aq_statement_result(const char *verdict)
{
    static const char *const results[][2] = {
        {"pass", "PASSED"}, {"review", "WARNED"}, {"reject", "FAILED"}, {"inconclusive", "FAILED"}};

    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (strcmp(verdict, results[i][0]) == 0)
            return results[i][1];
    return NULL;
}

static json_t *resource(const char *name, const char *sha256)
{
    return json_pack("{s:s, s:{s:s}}", "name", name, "digest", "sha256", sha256);
}

static const char *digest_in(const json_t *facts, const char *part)
{
    return aq_json_str(json_object_get(facts, part), "digest");
}

/* Takes the predicate; NULL in, NULL out. */
static json_t *statement(const json_t *facts, const char *type, json_t *predicate)
{
    const char *name = aq_json_str(json_object_get(facts, "package"), "name");

    return json_pack("{s:s, s:[o], s:s, s:o}", "_type", statement_type, "subject",
                     resource(name, digest_in(facts, "package")), "predicateType", type,
                     "predicate", predicate);
}

/* Stages that were not run or do not apply are in no list; the index names every one. */
static json_t *tests(const json_t *facts)
{
    json_t *passed = json_array(), *warned = json_array(), *failed = json_array();
    const json_t *stage;
    size_t i;

    json_array_foreach (json_object_get(facts, "stages"), i, stage) {
        const char *decision = aq_json_str(stage, "decision");
        json_t *layer = json_object_get(stage, "layer");
        if (strcmp(decision, "pass") == 0)
            json_array_append(passed, layer);
        else if (strcmp(decision, "review") == 0)
            json_array_append(warned, layer);
        else if (strcmp(decision, "reject") == 0 || strcmp(decision, "inconclusive") == 0)
            json_array_append(failed, layer);
    }
    return statement(facts, tests_type,
                     json_pack("{s:s, s:[o, o], s:o, s:o, s:o}", "result",
                               aq_statement_result(aq_json_str(facts, "verdict")), "configuration",
                               resource("rules", digest_in(facts, "rules")),
                               resource("policy", digest_in(facts, "policy")), "passedTests",
                               passed, "warnedTests", warned, "failedTests", failed));
}

/* The index: the facts as the conditions of one attribute, the report as its evidence, and a second
 * attribute that names the other statement by the digest of its payload. */
static json_t *attributes(const json_t *facts, const aq_buf *tests_payload)
{
    aq_digest d = aq_sha256(tests_payload->data, tests_payload->len);
    char hex[AQ_SHA256_HEX];

    return statement(facts, index_type,
                     json_pack("{s:[{s:s, s:O, s:o}, {s:s, s:o}]}", "attributes", "attribute",
                               "aquarium/verdict/v1", "conditions", facts, "evidence",
                               resource("report", digest_in(facts, "report")), "attribute",
                               "aquarium/tests/v1", "evidence",
                               resource("test-result", aq_digest_hex(&d, hex))));
}

void aq_statements(const json_t *facts, aq_buf out[static AQ_STATEMENT_COUNT])
{
    aq_auto_json json_t *first = tests(facts);
    aq_auto_json json_t *second = NULL;

    if (!first || aq_json_canonical(first, &out[AQ_STATEMENT_TESTS]) < 0)
        aq_panic("cannot build the test-result statement");
    second = attributes(facts, &out[AQ_STATEMENT_TESTS]);
    if (!second || aq_json_canonical(second, &out[AQ_STATEMENT_INDEX]) < 0)
        aq_panic("cannot build the attribute report");
}

int aq_statement_further(const json_t *facts, const char *type, const json_t *predicate,
                         aq_buf *out)
{
    aq_auto_json json_t *whole = statement(facts, type, json_deep_copy(predicate));

    return whole ? aq_json_canonical(whole, out) : -EDOM;
}

bool aq_statement_speaks_of(const json_t *payload, const json_t *facts, const char *type)
{
    json_t *predicate = json_object_get(payload, "predicate");
    aq_auto_json json_t *expected =
        json_is_object(predicate) ? statement(facts, type, json_incref(predicate)) : NULL;

    return expected && json_equal(payload, expected);
}

/* runtime-trace: one a run. The two that are always there may come again, for a part of the walk.
 */
bool aq_statement_known(const char *type)
{
    return strcmp(type, "https://in-toto.io/attestation/runtime-trace/v0.1") == 0 ||
           strcmp(type, tests_type) == 0 || strcmp(type, index_type) == 0;
}

static void difference_in_object(const json_t *a, const json_t *b, aq_buf *path)
{
    const char *key;
    json_t *value;
    size_t start = path->len;

    json_object_foreach ((json_t *)a, key, value) {
        const json_t *other = json_object_get(b, key);
        if (other && json_equal(value, other))
            continue;
        aq_buf_addf(path, "%s%.80s", start ? "." : "", key);
        if (other)
            aq_json_difference(value, other, path);
        return;
    }
    json_object_foreach ((json_t *)b, key, value)
        if (!json_object_get(a, key)) {
            aq_buf_addf(path, "%s%.80s", start ? "." : "", key);
            return;
        }
}

void aq_json_difference(const json_t *a, const json_t *b, aq_buf *path)
{
    if (json_is_object(a) && json_is_object(b)) {
        difference_in_object(a, b, path);
    } else if (json_is_array(a) && json_is_array(b)) {
        size_t i = 0, n = json_array_size(a), m = json_array_size(b);
        while (i < n && i < m && json_equal(json_array_get(a, i), json_array_get(b, i)))
            i++;
        if (i == n && i == m)
            return;
        aq_buf_addf(path, "[%zu]", i);
        if (i < n && i < m)
            aq_json_difference(json_array_get(a, i), json_array_get(b, i), path);
    }
}
