/* Evidence: made of a report, checked, and every byte of it flipped. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "trust/evidence.h"
#include "trust/statement.h"

static aq_keys *keys, *stranger;
static uint8_t public_key[AQ_KEY_LEN];

static aq_keys *keys_in_new_folder(void)
{
    char path[] = "/tmp/aq-evidence-XXXXXX";
    aq_auto_fd int fd = -1;
    aq_keys *k = NULL;
    aq_err err;

    assert_non_null(mkdtemp(path));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(aq_keys_open(fd, &k, &err), 0);
    assert_int_equal(
        unlinkat(fd, "keys/instance.key", 0) + unlinkat(fd, "keys", AT_REMOVEDIR) + rmdir(path), 0);
    return k;
}

static int setup(void **state)
{
    (void)state;
    keys = keys_in_new_folder();
    stranger = keys_in_new_folder();
    aq_key_public(keys, AQ_KEY_EVIDENCE, public_key);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    aq_keys_free(keys);
    aq_keys_free(stranger);
    return 0;
}

static json_t *parse(const char *text)
{
    json_t *j = NULL;
    aq_err err;

    assert_int_equal(aq_json_parse(text, strlen(text), "test", &j, &err), 0);
    return j;
}

#define HEX64(c) c c c c c c c c c c c c c c c c
#define STAGE(layer, decision)                                                                     \
    "{\"layer\":\"" layer "\",\"decision\":\"" decision "\",\"title\":\"t\",\"reason\":null}"
#define STAGES(a, b)                                                                               \
    STAGE("intake", a)                                                                             \
    "," STAGE("l0", b) "," STAGE("l1", "pass") "," STAGE("l1.5", "skipped") "," STAGE(             \
        "l2", "pass") "," STAGE("l3", "pass")
#define REPORT(verdict, stages)                                                                    \
    "{\"schema\":\"aquarium/report/v1\",\"verdict\":\"" verdict                                    \
    "\",\"verdict_digest\":\"" HEX64("ab01") "\",\"package\":{\"digest\":\"" HEX64(                \
        "0a0b") "\",\"name\":\"n\"},"                                                              \
                "\"submission\":{\"id\":\"s-1\",\"nonce\":\"n-1\"},"                               \
                "\"time\":\"2026-02-03T04:05:06Z\",\"rules\":{\"digest\":\"" HEX64(                \
                    "1111") "\",\"count\":3},\"policy\":{\"digest\":\"" HEX64("2222") "\"},"       \
                                                                                      "\"stages\"" \
                                                                                      ":[" stages  \
                                                                                      "],"         \
                                                                                      "\"findings" \
                                                                                      "\":[]}"

static const char good[] = REPORT("pass", STAGES("pass", "pass"));

static json_t *make(const char *report, const json_t *proof)
{
    aq_auto_json json_t *r = parse(report);
    aq_evidence_in in = {.report = r,
                         .package_name = "päckchen/1.0",
                         .submission = "s-1",
                         .nonce = "n-1",
                         .ledger_index = 41,
                         .ledger_proof = proof};
    json_t *doc = NULL;
    aq_err err = {0};

    memset(&in.ledger_leaf, 7, sizeof in.ledger_leaf);
    for (size_t i = 0; i < sizeof in.package.b; i++)
        in.package.b[i] = i % 2 ? 0x0b : 0x0a;
    if (aq_evidence_make(keys, &in, &doc, &err) < 0)
        assert_null(doc);
    return doc;
}

static void round_trip(void **state)
{
    aq_auto_json json_t *doc = make(good, NULL);
    aq_auto_json json_t *report = parse(good);
    aq_evidence e = {0};
    aq_digest d;
    aq_err err;

    (void)state;
    assert_non_null(doc);
    assert_int_equal(aq_evidence_verify(doc, public_key, keys, &e, &err), 0);
    assert_true(e.hmac_checked);
    assert_string_equal(e.verdict, "pass");
    assert_string_equal(e.submission, "s-1");
    assert_string_equal(e.nonce, "n-1");
    assert_int_equal(e.ledger_index, 41);
    assert_int_equal(e.ledger_leaf.b[31], 7);
    assert_int_equal(e.time, 1770091506);
    assert_int_equal(aq_json_digest(report, &d), 0);
    assert_true(aq_digest_equal(&d, &e.report));
    assert_int_equal(aq_evidence_verify(doc, public_key, NULL, &e, &err), 0);
    assert_false(e.hmac_checked);
}

static json_t *statement_of(const json_t *doc, size_t i)
{
    const json_t *envelope = json_array_get(json_object_get(doc, "statements"), i);
    aq_auto_buf payload = {0};
    aq_err err;

    assert_int_equal(
        aq_dsse_verify(envelope, public_key, "application/vnd.in-toto+json", &payload, &err), 0);
    return parse(aq_buf_str(&payload));
}

static void statements_say_the_verdict(void **state)
{
    static const struct {
        const char *report, *result;
        size_t passed, warned, failed;
    } cases[] = {
        {good, "PASSED", 5, 0, 0},
        {REPORT("review", STAGES("pass", "review")), "WARNED", 4, 1, 0},
        {REPORT("reject", STAGES("reject", "not-run")), "FAILED", 3, 0, 1},
        {REPORT("inconclusive", STAGES("pass", "inconclusive")), "FAILED", 4, 0, 1},
        {REPORT("inconclusive", STAGES("pass", "not-run")), "FAILED", 4, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_auto_json json_t *doc = make(cases[i].report, NULL);
        aq_auto_json json_t *s = NULL;
        aq_auto_json json_t *index = NULL;
        const json_t *p;
        assert_non_null(doc);
        s = statement_of(doc, 0);
        index = statement_of(doc, 1);
        p = json_object_get(s, "predicate");
        assert_string_equal(aq_json_str(p, "result"), cases[i].result);
        assert_int_equal(json_array_size(json_object_get(p, "passedTests")), cases[i].passed);
        assert_int_equal(json_array_size(json_object_get(p, "warnedTests")), cases[i].warned);
        assert_int_equal(json_array_size(json_object_get(p, "failedTests")), cases[i].failed);
        assert_int_equal(json_array_size(json_object_get(p, "configuration")), 2);
        assert_string_equal(aq_json_str(index, "predicateType"),
                            "https://in-toto.io/attestation/scai/v0.3");
    }
}

static void refuses_to_make_a_lie(void **state)
{
    static const char *const bad[] = {
        REPORT("pass", STAGES("pass", "not-run")), /* a stage that did not run is no pass */
        REPORT("pass", STAGES("pass", "review")),
        REPORT("maybe", STAGES("pass", "pass")),
        REPORT("review", STAGES("pass", "fine")),
        REPORT("review", STAGE("intake", "pass")),
        /* every stage, and two of them in each other's place */
        REPORT("review",
               STAGE("l0", "pass") "," STAGE("intake", "pass") "," STAGE("l1", "pass") "," STAGE(
                   "l1.5", "skipped") "," STAGE("l2", "pass") "," STAGE("l3", "pass")),
        "{}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(make(bad[i], NULL));
}

static int try_to_make(const aq_evidence_in *given)
{
    aq_auto_json json_t *report = parse(good);
    aq_auto_json json_t *doc = NULL;
    aq_evidence_in in = *given;
    aq_err err = {0};
    int r;

    in.report = report;
    for (size_t i = 0; i < sizeof in.package.b; i++)
        in.package.b[i] = i % 2 ? 0x0b : 0x0a;
    r = aq_evidence_make(keys, &in, &doc, &err);
    assert_int_equal(r == 0, doc != NULL);
    return r;
}

/* What the report says already must be what the evidence is made for, and everything has an end:
 * the last that is taken, and the first that is not. */
static void refuses_what_the_report_does_not_say(void **state)
{
    static const aq_evidence_in fits = {.package_name = "n", .submission = "s-1", .nonce = "n-1"};
    char name[1026] = "";
    aq_evidence_in in = fits;

    (void)state;
    assert_int_equal(try_to_make(&in), 0);
    in.nonce = "n-2";
    assert_int_equal(try_to_make(&in), -EINVAL);
    in = fits;
    in.submission = "s-2";
    assert_int_equal(try_to_make(&in), -EINVAL);
    in = fits;
    in.ledger_index = UINT64_C(1) << 53;
    assert_int_equal(try_to_make(&in), 0);
    in.ledger_index++;
    assert_int_equal(try_to_make(&in), -EBADMSG);
    in = fits;
    in.package_name = memset(name, 'x', 1024);
    assert_int_equal(try_to_make(&in), 0);
    name[1024] = 'x';
    assert_int_equal(try_to_make(&in), -EBADMSG);
}

static void lists_have_an_end(void **state)
{
    static const size_t most[] = {AQ_EVIDENCE_FURTHER, AQ_EVIDENCE_SEEDS};

    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        for (size_t more = 0; more < 2; more++) {
            aq_auto_json json_t *list = json_array();
            aq_evidence_in in = {.package_name = "n", .submission = "s-1", .nonce = "n-1"};
            for (size_t i = 0; i < most[kind] + more; i++)
                json_array_append_new(
                    list, kind ? json_pack("{s:s, s:s}", "run", "a", "commitment", HEX64("5eed"))
                               : json_pack("{s:s, s:{}}", "type", "x", "predicate"));
            *(kind ? &in.seeds : &in.further) = list;
            assert_int_equal(try_to_make(&in), more ? -EBADMSG : 0);
        }
    }
}

/* Flips one bit of every byte of the canonical document, another one in each sweep. `from`, `to`: a
 * span that may survive. Returns how many flips survived outside of it. */
static size_t flips_that_survive(const aq_buf *text, size_t from, size_t to, size_t sweep,
                                 const aq_keys *k)
{
    size_t alive = 0;

    for (size_t i = 0; i < text->len; i++) {
        aq_auto_json json_t *doc = NULL;
        char was = text->data[i];
        aq_evidence e;
        aq_err err;

        text->data[i] = (char)(was ^ 1 << (i + sweep) % 8);
        if (aq_json_parse(text->data, text->len, "flipped", &doc, &err) == 0 &&
            aq_evidence_verify(doc, public_key, k, &e, &err) == 0 && (i < from || i >= to))
            alive++;
        text->data[i] = was;
    }
    return alive;
}

static void no_flipped_byte_survives(void **state)
{
    aq_auto_json json_t *doc = make(good, NULL);
    aq_auto_buf text = {0};

    (void)state;
    assert_int_equal(aq_json_canonical(doc, &text), 0);
    assert_int_equal(flips_that_survive(&text, 0, 0, 0, NULL), 0);
    assert_int_equal(flips_that_survive(&text, 0, 0, 3, keys), 0);
}

/* The one exception: the ledger's proof has its own signature, by the ledger's key, and is checked
 * by the ledger room (test_ledger flips every byte of it). */
static void only_the_proof_is_signed_elsewhere(void **state)
{
    aq_auto_json json_t *proof = parse("{\"index\":41,\"hashes\":[]}");
    aq_auto_json json_t *doc = make(good, proof);
    aq_auto_buf text = {0}, inner = {0};
    const char *at;
    size_t from, to;

    (void)state;
    assert_int_equal(aq_json_canonical(doc, &text), 0);
    aq_buf_adds(&inner, "\"proof\":");
    assert_int_equal(aq_json_canonical(proof, &inner), 0);
    at = strstr(text.data, inner.data);
    assert_non_null(at);
    from = (size_t)(at - text.data) + strlen("\"proof\":");
    to = (size_t)(at - text.data) + inner.len;
    assert_int_equal(flips_that_survive(&text, from, to, 5, NULL), 0);
}

static void refuses_what_does_not_belong(void **state)
{
    aq_auto_json json_t *doc = make(good, NULL);
    aq_auto_json json_t *other = make(REPORT("review", STAGES("pass", "review")), NULL);
    uint8_t wrong[AQ_KEY_LEN];
    aq_evidence e;
    aq_err err;
    json_t *list;

    (void)state;
    aq_key_public(stranger, AQ_KEY_EVIDENCE, wrong);
    assert_int_equal(aq_evidence_verify(doc, wrong, NULL, &e, &err), -ENOKEY);
    assert_int_equal(aq_evidence_verify(doc, public_key, stranger, &e, &err), -ENOKEY);
    assert_non_null(strstr(err.text, "report.hmac"));
    json_object_set_new(doc, "extra", json_true());
    assert_int_equal(aq_evidence_verify(doc, public_key, NULL, &e, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "extra"));
    json_object_del(doc, "extra");
    /* Statements of another verdict, each well signed. */
    for (size_t i = 0; i < 2; i++) {
        aq_auto_json json_t *mixed = json_deep_copy(doc);
        list = json_object_get(mixed, "statements");
        json_array_set(list, i, json_array_get(json_object_get(other, "statements"), i));
        assert_int_equal(aq_evidence_verify(mixed, public_key, NULL, &e, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "first difference: predicate"));
    }
    list = json_object_get(doc, "statements");
    json_array_append(list, json_array_get(list, 0));
    assert_int_equal(aq_evidence_verify(doc, public_key, NULL, &e, &err), -EBADMSG);
    assert_int_equal(aq_evidence_verify(list, public_key, NULL, &e, &err), -EBADMSG);
}

/* Signed by who has the evidence key, with an HMAC that only the instance could have made: who
 * holds the instance key sees that it is none. */
static void the_hmac_is_made_again(void **state)
{
    aq_auto_json json_t *doc = make(good, NULL);
    json_t *hmac = json_object_get(json_object_get(doc, "report"), "hmac"), *list = json_array();
    aq_buf payload[AQ_STATEMENT_COUNT] = {{0}};
    aq_evidence e;
    aq_err err;

    (void)state;
    json_object_set_new(hmac, "sha256", json_string(HEX64("0bad")));
    json_object_del(doc, "statements");
    aq_statements(doc, payload);
    for (size_t i = 0; i < AQ_STATEMENT_COUNT; i++) {
        json_array_append_new(list, aq_dsse_sign(keys, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE,
                                                 payload[i].data, payload[i].len));
        aq_buf_free(&payload[i]);
    }
    json_object_set_new(doc, "statements", list);
    assert_int_equal(aq_evidence_verify(doc, public_key, NULL, &e, &err), 0);
    assert_int_equal(aq_evidence_verify(doc, public_key, keys, &e, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "report.hmac does not belong"));
}

#define TRACE "https://in-toto.io/attestation/runtime-trace/v0.1"

static json_t *make_further(const char *further, const char *seeds)
{
    aq_auto_json json_t *r = parse(good);
    aq_auto_json json_t *more = parse(further);
    aq_auto_json json_t *worlds = parse(seeds);
    aq_evidence_in in = {.report = r,
                         .package_name = "n",
                         .submission = "s-1",
                         .nonce = "n-1",
                         .further = more,
                         .seeds = worlds};
    json_t *doc = NULL;
    aq_err err = {0};

    for (size_t i = 0; i < sizeof in.package.b; i++)
        in.package.b[i] = i % 2 ? 0x0b : 0x0a;
    if (aq_evidence_make(keys, &in, &doc, &err) < 0)
        assert_null(doc);
    return doc;
}

#define SEEDS "[{\"run\":\"a\",\"commitment\":\"" HEX64("5eed") "\"}]"

/* What L3 will add is bound as firmly as the rest, and a type that nobody knows is said. */
static void further_statements_are_bound(void **state)
{
    aq_auto_json json_t *doc = make_further("[{\"type\":\"" TRACE "\",\"predicate\":{\"n\":1}},"
                                            "{\"type\":\"" TRACE "\",\"predicate\":{\"n\":2}}]",
                                            SEEDS);
    aq_auto_json json_t *odd =
        make_further("[{\"type\":\"x:new\",\"predicate\":{\"n\":1}}]", SEEDS);
    json_t *list, *named;
    aq_evidence e = {0};
    aq_err err = {0};

    (void)state;
    assert_non_null(doc);
    assert_non_null(odd);
    assert_int_equal(aq_evidence_verify(doc, public_key, keys, &e, &err), 0);
    assert_null(e.unknown_type);
    assert_int_equal(aq_evidence_verify(odd, public_key, keys, &e, &err), 0);
    assert_string_equal(e.unknown_type, "x:new");

    list = json_object_get(doc, "statements");
    named = json_object_get(doc, "further");
    for (int change = 0; change < 6; change++) {
        aq_auto_json json_t *bad = json_deep_copy(doc);
        json_t *all = json_object_get(bad, "statements");
        if (change == 0)
            json_array_remove(all, 3); /* dropped */
        if (change == 1)
            json_array_append(all, json_array_get(list, 3)); /* added */
        if (change == 2)
            json_array_set(all, 3, json_array_get(list, 2)); /* exchanged */
        if (change == 3)
            json_object_del(bad, "further"); /* not named */
        if (change == 4)
            json_object_set_new(json_array_get(json_object_get(bad, "seeds"), 0), "commitment",
                                json_string(HEX64("0000")));
        if (change == 5) { /* both exchanged: the index signs their order */
            json_array_set(all, 2, json_array_get(list, 3));
            json_array_set(all, 3, json_array_get(list, 2));
            json_array_set(json_object_get(bad, "further"), 0, json_array_get(named, 1));
            json_array_set(json_object_get(bad, "further"), 1, json_array_get(named, 0));
        }
        if (aq_evidence_verify(bad, public_key, keys, &e, &err) != -EBADMSG)
            fail_msg("change %d was not seen", change);
    }
    assert_null(make_further("[{\"type\":\"x\",\"predicate\":1}]", SEEDS));
    assert_null(make_further("[{\"type\":\"x\",\"predicate\":{\"n\":1.5}}]", SEEDS));
    assert_null(make_further("[]", "[{\"run\":\"a\",\"commitment\":\"short\"}]"));
    assert_null(make_further("[]", "[{\"run\":\"a\"}]"));
    assert_null(make_further("[]", "{}"));
}

/* A statement that is signed and named, but speaks of another package or as another type. */
static void further_statements_speak_of_this_package(void **state)
{
    aq_auto_json json_t *doc =
        make_further("[{\"type\":\"" TRACE "\",\"predicate\":{\"n\":1}}]", SEEDS);
    const char *const payloads[] = {
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{},\"predicateType\":\"" TRACE
        "\",\"subject\":[{\"digest\":{\"sha256\":\"" HEX64("ffff") "\"},\"name\":\"n\"}]}",
        "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{},\"predicateType\":\"x"
        "\",\"subject\":[{\"digest\":{\"sha256\":\"" HEX64("0a0b") "\"},\"name\":\"n\"}]}",
        "{}", "[]"};

    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        aq_auto_json json_t *facts = json_deep_copy(doc);
        aq_digest d = aq_sha256(payloads[i], strlen(payloads[i]));
        aq_buf two[AQ_STATEMENT_COUNT] = {{0}};
        json_t *list = json_array();
        char hex[AQ_SHA256_HEX];
        aq_evidence e = {0};
        aq_err err = {0};

        json_object_del(facts, "statements");
        json_object_set_new(json_array_get(json_object_get(facts, "further"), 0), "sha256",
                            json_string(aq_digest_hex(&d, hex)));
        aq_statements(facts, two);
        for (size_t n = 0; n < AQ_STATEMENT_COUNT; n++) {
            json_array_append_new(
                list, aq_dsse_sign(keys, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE, two[n].data, two[n].len));
            aq_buf_free(&two[n]);
        }
        json_array_append_new(list, aq_dsse_sign(keys, AQ_KEY_EVIDENCE, AQ_INTOTO_TYPE, payloads[i],
                                                 strlen(payloads[i])));
        json_object_set_new(facts, "statements", list);
        assert_int_equal(aq_evidence_verify(facts, public_key, keys, &e, &err), -EBADMSG);
        assert_non_null(strstr(err.text, "statements[2]"));
    }
}

static void pae_is_the_published_one(void **state)
{
    aq_auto_buf pae = {0};

    (void)state;
    aq_dsse_pae(&pae, "http://example.com/HelloWorld", "hello world", 11);
    assert_string_equal(pae.data, "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

static void payloads_have_an_end(void **state)
{
    aq_auto_free char *bytes = calloc(1, AQ_DSSE_PAYLOAD + 4);

    (void)state;
    for (size_t more = 0; more < 4; more++) {
        aq_auto_json json_t *signed_ =
            aq_dsse_sign(keys, AQ_KEY_EVIDENCE, "x", bytes, AQ_DSSE_PAYLOAD + more);
        aq_auto_buf payload = {0};
        aq_err err;
        assert_int_equal(aq_dsse_verify(signed_, public_key, "x", &payload, &err),
                         more ? -EBADMSG : 0);
        assert_int_equal(payload.len, more ? 0 : AQ_DSSE_PAYLOAD);
    }
}

static void two_signatures_are_refused(void **state)
{
    aq_auto_json json_t *env = aq_dsse_sign(keys, AQ_KEY_EVIDENCE, "t", "body", 4);
    json_t *list = json_object_get(env, "signatures");
    aq_auto_buf out = {0};
    aq_err err;

    (void)state;
    assert_int_equal(aq_dsse_verify(env, public_key, "t", &out, &err), 0);
    assert_string_equal(aq_buf_str(&out), "body");
    assert_int_equal(aq_dsse_verify(env, public_key, "u", &out, &err), -EBADMSG);
    json_array_append(list, json_array_get(list, 0));
    assert_int_equal(aq_dsse_verify(env, public_key, "t", &out, &err), -EBADMSG);
    json_array_clear(list);
    assert_int_equal(aq_dsse_verify(env, public_key, "t", &out, &err), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(statements_say_the_verdict),
        cmocka_unit_test(refuses_to_make_a_lie),
        cmocka_unit_test(refuses_what_the_report_does_not_say),
        cmocka_unit_test(lists_have_an_end),
        cmocka_unit_test(no_flipped_byte_survives),
        cmocka_unit_test(only_the_proof_is_signed_elsewhere),
        cmocka_unit_test(refuses_what_does_not_belong),
        cmocka_unit_test(the_hmac_is_made_again),
        cmocka_unit_test(further_statements_are_bound),
        cmocka_unit_test(further_statements_speak_of_this_package),
        cmocka_unit_test(pae_is_the_published_one),
        cmocka_unit_test(payloads_have_an_end),
        cmocka_unit_test(two_signatures_are_refused),
    };

    return cmocka_run_group_tests_name("evidence", tests, setup, teardown);
}
