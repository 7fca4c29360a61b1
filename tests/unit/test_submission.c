/* The Intake v1 reader against the golden vectors, and what a schema cannot say. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "model/submission.h"

static void with_vectors(const char *kind, void (*each)(const char *name, const aq_buf *text))
{
    const char *source = getenv("AQUARIUM_SOURCE");
    char path[512];
    struct dirent **names = NULL;
    int count, seen = 0;

    if (!source)
        fail_msg("AQUARIUM_SOURCE is not set; run through meson test");
    snprintf(path, sizeof path, "%s/tests/golden/intake-v1/%s", source, kind);
    count = scandir(path, &names, NULL, alphasort);
    aq_auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < count; i++) {
        aq_auto_buf b = {0};
        aq_err err;
        if (names[i]->d_name[0] != '.') {
            if (aq_read_file(dir, names[i]->d_name, 1 << 20, &b, &err) < 0)
                fail_msg("%s", err.text);
            each(names[i]->d_name, &b);
            seen++;
        }
        free(names[i]);
    }
    free(names);
    assert_true(seen >= 8);
}

static void accept(const char *name, const aq_buf *text)
{
    aq_auto_arena a = aq_arena_new();
    aq_submission s = {0};
    aq_err err = {0};

    if (aq_submission_read(a, text->data, text->len, name, &s, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(s.local);
    assert_non_null(s.manifest);
    assert_true(s.tier >= AQ_TIER_NEW);
    assert_true(s.type != AQ_TYPE_NONE);
    assert_int_equal(s.signature,
                     strcmp(name, "signed.json") == 0 ? AQ_SIGNATURE_UNCHECKED : AQ_SIGNATURE_NONE);
    {
        aq_auto_json json_t *j = aq_submission_json(&s);
        aq_digest d;
        assert_int_equal(aq_json_digest(j, &d), 0); /* always has a canonical form */
    }
    aq_submission_close(&s);
}

/* "version-range.json" must be refused because of the version: the message names the field. */
static void refuse(const char *name, const aq_buf *text)
{
    aq_auto_arena a = aq_arena_new();
    aq_submission s = {0};
    aq_err err = {0};
    char word[32];
    size_t len = strcspn(name, "-.");

    if (aq_submission_read(a, text->data, text->len, name, &s, &err) != -EBADMSG)
        fail_msg("%s was accepted", name);
    snprintf(word, sizeof word, "%.*s", (int)len, name);
    if (strcmp(word, "unknown") != 0 && strcmp(word, "not") != 0 && !strstr(err.text + len, word) &&
        !(strcmp(word, "media") == 0 && strstr(err.text, "media_type")))
        fail_msg("\"%s\" does not name %s", err.text, word);
    if (strchr(err.text, ';') && strcmp(name, "manifest-fraction.json") != 0)
        fail_msg("more than one complaint: %s", err.text);
    assert_null(s.source);
}

static void golden_valid(void **state)
{
    (void)state;
    with_vectors("valid", accept);
}

static void golden_invalid(void **state)
{
    (void)state;
    with_vectors("invalid", refuse);
}

#define ENVELOPE(package, time, rest)                                                              \
    "{\"schema\":\"intake/v1\",\"submission\":\"0f8fad5bd9cb469fa16570867728950e\","               \
    "\"package\":" package ",\"publisher\":{\"id\":\"github:acme\",\"tier\":\"proven\"},"          \
    "\"manifest\":{\"a\":1},\"artifact\":{\"sha256\":"                                             \
    "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\",\"size\":5,"             \
    "\"media_type\":\"application/zip\"},\"time\":\"" time                                         \
    "\",\"nonce\":\"0123456789abcdef\"" rest "}"
#define PACKAGE "{\"name\":\"x\",\"namespace\":\"n\",\"version\":\"1.2.3\",\"type\":\"agent\"}"

static void every_field_arrives(void **state)
{
    static const char text[] = ENVELOPE(PACKAGE, "2025-01-31T12:00:00Z", ",\"bundle\":{}");
    aq_auto_arena a = aq_arena_new();
    char hex[AQ_SHA256_HEX];
    aq_submission s;
    aq_err err;

    (void)state;
    assert_int_equal(aq_submission_read(a, text, strlen(text), "e", &s, &err), 0);
    assert_string_equal(s.id, "0f8fad5bd9cb469fa16570867728950e");
    assert_string_equal(s.name, "x");
    assert_string_equal(s.namespace_, "n");
    assert_string_equal(s.version, "1.2.3");
    assert_int_equal(s.type, AQ_TYPE_AGENT);
    assert_string_equal(s.publisher, "github:acme");
    assert_int_equal(s.tier, AQ_TIER_PROVEN);
    assert_string_equal(aq_digest_hex(&s.artifact, hex),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(s.artifact_size, 5);
    assert_string_equal(s.media_type, "application/zip");
    assert_int_equal(aq_json_int(s.manifest, "a", 0), 1);
    assert_int_equal(s.signature, AQ_SIGNATURE_UNCHECKED);
    assert_int_equal(s.time, 1738324800);
    assert_string_equal(s.nonce, "0123456789abcdef");
    aq_submission_close(&s);
    aq_submission_close(NULL);
}

static void what_a_schema_cannot_say(void **state)
{
    static const char *const bad[] = {
        ENVELOPE(PACKAGE, "2025-02-30T12:00:00Z", ""),
        ENVELOPE("{\"name\":\"x\\n\",\"namespace\":\"n\",\"version\":\"1.2.3\",\"type\":\"agent\"}",
                 "2025-01-31T12:00:00Z", ""),
        ENVELOPE(PACKAGE, "2025-01-31T12:00:00Z", ",\"nonce\":\"0123456789abcdef\""), /* twice */
        ENVELOPE(PACKAGE, "2025-01-31T12:00:00Z", "") " {}",
        "",
        "null",
        "{}",
    };
    static const char good[] = ENVELOPE(PACKAGE, "2024-02-29T23:59:59Z", "");
    aq_auto_arena a = aq_arena_new();
    aq_submission s = {0};
    aq_err err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (aq_submission_read(a, bad[i], strlen(bad[i]), "e", &s, &err) != -EBADMSG)
            fail_msg("accepted: %s", bad[i]);
    assert_int_equal(aq_submission_read(a, good, strlen(good), "e", &s, &err), 0);
    aq_submission_close(&s);
}

/* Id, time, nonce and bundle are of one sending; all the rest is what the publisher claims. */
static void claims_are_of_the_package(void **state)
{
    static const char *const texts[] = {
        ENVELOPE(PACKAGE, "2025-01-31T12:00:00Z", ""),
        ENVELOPE(PACKAGE, "2026-01-31T12:00:00Z", ",\"bundle\":{\"a\":1}"),
        ENVELOPE(PACKAGE, "2025-01-31T12:00:00Z", ",\"bundle\":{\"a\":2}"),
        ENVELOPE("{\"name\":\"y\",\"namespace\":\"n\",\"version\":\"1.2.3\",\"type\":\"agent\"}",
                 "2025-01-31T12:00:00Z", ""),
    };
    aq_auto_arena a = aq_arena_new();
    aq_digest claims[4];
    aq_err err;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        aq_submission s;
        assert_int_equal(aq_submission_read(a, texts[i], strlen(texts[i]), "e", &s, &err), 0);
        assert_true(aq_submission_claims(&s, &claims[i]));
        aq_submission_close(&s);
    }
    assert_true(aq_digest_equal(&claims[0], &claims[1]));
    assert_true(aq_digest_equal(&claims[0], &claims[2]));
    assert_false(aq_digest_equal(&claims[0], &claims[3]));
}

static void all_violations_in_one_message(void **state)
{
    static const char text[] = ENVELOPE("{\"name\":\"\",\"version\":1,\"type\":\"x\",\"q\":0}",
                                        "today", ",\"x\\u202ey\":1");
    static const char *const parts[] = {"e: ",
                                        "package.name must be",
                                        "package.namespace is",
                                        "package.version",
                                        "package.type",
                                        "time must be",
                                        "x\\xe2\\x80\\xaey is not a field",
                                        "and 1 more"};
    aq_auto_arena a = aq_arena_new();
    aq_submission s;
    aq_err err;

    (void)state;
    assert_int_equal(aq_submission_read(a, text, strlen(text), "e", &s, &err), -EBADMSG);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strstr(err.text, parts[i]))
            fail_msg("\"%s\" lacks \"%s\"", err.text, parts[i]);
}

static void too_large(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf b = {0};
    aq_submission s;
    aq_err err;

    (void)state;
    aq_buf_reserve(&b, AQ_ENVELOPE_BYTES + 1);
    memset(b.data, ' ', AQ_ENVELOPE_BYTES + 1);
    assert_int_equal(aq_submission_read(a, b.data, AQ_ENVELOPE_BYTES + 1, "e", &s, &err), -E2BIG);
}

static void local_ones(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *j = NULL;
    aq_submission s, t;
    aq_err err;

    (void)state;
    assert_int_equal(aq_submission_local(a, &s, &err), 0);
    assert_int_equal(aq_submission_local(a, &t, &err), 0);
    assert_true(s.local);
    assert_int_equal(strlen(s.id), 32);
    assert_string_not_equal(s.id, t.id);
    assert_string_not_equal(s.nonce, t.nonce);
    assert_int_equal(s.tier, AQ_TIER_LOCAL);
    assert_int_equal(s.signature, AQ_SIGNATURE_NONE);
    assert_true(s.time > 1700000000);
    j = aq_submission_json(&s);
    assert_string_equal(aq_json_str(j, "submission"), s.id);
    assert_string_equal(aq_json_str(json_object_get(j, "publisher"), "tier"), "local");
    assert_true(json_is_null(json_object_get(j, "artifact")));
    aq_submission_close(&s);
}

static void words(void **state)
{
    (void)state;
    assert_string_equal(aq_publisher_tier_name(AQ_TIER_STEWARD), "steward");
    assert_string_equal(aq_signature_state_name(AQ_SIGNATURE_UNCHECKED), "unchecked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_valid),
        cmocka_unit_test(golden_invalid),
        cmocka_unit_test(every_field_arrives),
        cmocka_unit_test(what_a_schema_cannot_say),
        cmocka_unit_test(claims_are_of_the_package),
        cmocka_unit_test(all_violations_in_one_message),
        cmocka_unit_test(too_large),
        cmocka_unit_test(local_ones),
        cmocka_unit_test(words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
