/* aquarium verify: does this evidence hold, and is this the package it speaks of? */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "cleanroom/entry.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"
#include "trust/evidence.h"

enum { EVIDENCE_BYTES = 16 << 20, HOLDS = 0, DOES_NOT_HOLD = 2, CANNOT_TELL = 3 };

static const aq_option options[] = {
    {"json", NULL, "print the result as JSON"},
    {"key", "FILE", "public key (PEM) of the instance that made the evidence"},
    {"vkey", "LINE", "verifier key of its ledger (as 'aquarium ledger keys' prints)"},
    {"require", "VERDICT", "fail unless the verdict is pass, or with 'review' at least review"},
    {"max-age", "TIME", "fail if the evidence is older: 30d, 12h, 90m"},
    {"state", "DIR", "state folder; its own keys and ledger are used unless given above"},
    {0}};

/* What was learned, for both faces. Each point is one line: holds or not, and why. */
typedef struct outcome {
    json_t *points; /* [{name, holds: true|false|null, text}] */
    int status;
} outcome;

static void note(outcome *o, const char *name, int status, const char *text)
{
    json_t *p = json_object();

    json_object_set_new(p, "name", json_string(name));
    json_object_set_new(p, "holds",
                        status == CANNOT_TELL ? json_null() : json_boolean(status == 0));
    json_object_set_new(p, "text", json_string(text));
    json_array_append_new(o->points, p);
    /* A refuted point outweighs one that could not be checked. */
    if (status == DOES_NOT_HOLD || (status == CANNOT_TELL && o->status == HOLDS))
        o->status = status;
}

static int parse_age(const char *text, int64_t *ret)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno || end == text || n < 0 || n > 100000000 || !*end || end[1])
        return -EINVAL;
    switch (*end) {
    case 'd':
        *ret = n * 86400;
        return 0;
    case 'h':
        *ret = n * 3600;
        return 0;
    case 'm':
        *ret = n * 60;
        return 0;
    case 's':
        *ret = n;
        return 0;
    default:
        return -EINVAL;
    }
}

static void check_age(outcome *o, const aq_evidence *e, int64_t limit)
{
    int64_t age = aq_now() - e->time;
    char text[120];

    snprintf(text, sizeof text, "%lld h old, %lld h allowed", (long long)(age / 3600),
             (long long)(limit / 3600));
    note(o, "age", age <= limit ? HOLDS : DOES_NOT_HOLD, text);
}

static void check_verdict(outcome *o, const aq_evidence *e, const char *require)
{
    bool good = strcmp(e->verdict, "pass") == 0 ||
                (strcmp(require, "review") == 0 && strcmp(e->verdict, "review") == 0);
    char text[120];

    snprintf(text, sizeof text, "the verdict was %.20s, %.20s is required", e->verdict, require);
    note(o, "verdict", good ? HOLDS : DOES_NOT_HOLD, text);
}

static void check_package(outcome *o, const aq_evidence *e, const char *path)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *findings = aq_findings_new(a);
    aq_package package = {.image = -1};
    char hex[AQ_SHA256_HEX], text[200];
    aq_budget budget;
    aq_err err = {0};

    aq_budget_init(&budget);
    if (aq_unpack(a, path, NULL, &budget, findings, NULL, NULL, &package, &err) < 0) {
        note(o, "package", CANNOT_TELL, err.text);
        return;
    }
    snprintf(text, sizeof text, "its digest is %s", aq_digest_hex(&package.digest, hex));
    if (!aq_digest_equal(&package.digest, &e->package))
        note(o, "package", DOES_NOT_HOLD,
             "this is not the package that was reviewed: its digest is another (A5)");
    else if (findings->incomplete || package.unread_count)
        note(o, "package", CANNOT_TELL, "the same digest, but parts of it could not be read");
    else
        note(o, "package", HOLDS, text);
    aq_package_close(&package);
}

static void check_ledger(outcome *o, const aq_evidence *e, const json_t *document, const char *vkey,
                         aq_ledger *own)
{
    const json_t *proof = json_object_get(json_object_get(document, "ledger"), "proof");
    aq_auto_buf reason = {0};
    aq_err err = {0};
    int r;

    if (!json_is_object(proof))
        note(o, "ledger", CANNOT_TELL, "the evidence carries no inclusion proof");
    else if (!vkey)
        note(o, "ledger", CANNOT_TELL, "no verifier key: pass --vkey or --state");
    else if (aq_ledger_check_proof(proof, vkey, &e->ledger_leaf, e->ledger_index, &err) < 0 ||
             aq_entry_matches(aq_json_str(proof, "entry"), e, &err) < 0)
        note(o, "ledger", DOES_NOT_HOLD, err.text);
    else
        note(o, "ledger", HOLDS, "included in the signed ledger");
    if (!own)
        return;
    r = aq_ledger_revoked(own, e->ledger_index, &reason, &err);
    if (r < 0)
        note(o, "revocation", CANNOT_TELL, err.text);
    else
        note(o, "revocation", r ? DOES_NOT_HOLD : HOLDS, r ? aq_buf_str(&reason) : "not revoked");
}

static int read_evidence(const char *path, json_t **ret, aq_err *err)
{
    aq_auto_buf text = {0};
    int r = aq_read_file(AT_FDCWD, path, EVIDENCE_BYTES, &text, err);

    return r < 0 ? r : aq_json_parse(aq_buf_str(&text), text.len, path, ret, err);
}

static void show(const outcome *o, const aq_evidence *e)
{
    size_t i;
    json_t *p;

    json_array_foreach (o->points, i, p) {
        const json_t *holds = json_object_get(p, "holds");
        printf("%-8s %-11s %s\n",
               json_is_null(holds)   ? "unknown"
               : json_is_true(holds) ? "holds"
                                     : "FAILS",
               json_string_value(json_object_get(p, "name")),
               json_string_value(json_object_get(p, "text")));
    }
    printf("\n%s", o->status == HOLDS           ? "The evidence holds."
                   : o->status == DOES_NOT_HOLD ? "THE EVIDENCE DOES NOT HOLD."
                                                : "The evidence could not be checked in full.");
    if (e->verdict)
        printf(" It says: %s.", e->verdict);
    putchar('\n');
}

static int finish(const aq_command *c, const aq_args *args, outcome *o, const aq_evidence *e)
{
    static const char *const words[] = {
        [HOLDS] = "holds", [DOES_NOT_HOLD] = "does-not-hold", [CANNOT_TELL] = "cannot-tell"};
    aq_auto_json json_t *out = NULL;
    char hex[AQ_SHA256_HEX];
    aq_err err = {0};

    if (!aq_flag(c, args, "json")) {
        show(o, e);
        return fflush(stdout) == 0 ? o->status : AQ_EXIT_OURS;
    }
    out = json_object();
    json_object_set_new(out, "schema", json_string("aquarium/verification/v1"));
    json_object_set_new(out, "result", json_string(words[o->status]));
    json_object_set_new(out, "verdict", e->verdict ? json_string(e->verdict) : json_null());
    json_object_set_new(out, "package", json_string(aq_digest_hex(&e->package, hex)));
    json_object_set_new(out, "ledger_index", json_integer((json_int_t)e->ledger_index));
    json_object_set(out, "points", o->points);
    return aq_put_json("-", out, &err) < 0 ? aq_say_failed(&err) : o->status;
}

/* Where trust comes from: a given key file, else the state folder's own keys. */
static int trusted_key(const aq_command *c, const aq_args *args, const aq_home *home,
                       uint8_t key[static AQ_KEY_LEN], aq_err *err)
{
    const char *path = aq_arg(c, args, "key");
    aq_auto_buf pem = {0};
    int r;

    if (!path) {
        aq_key_public(home->keys, AQ_KEY_EVIDENCE, key);
        return 0;
    }
    r = aq_read_file(AT_FDCWD, path, 1 << 16, &pem, err);
    return r < 0 ? r : aq_public_from_pem(aq_buf_str(&pem), pem.len, key, err);
}

static void check_all(const aq_command *c, const aq_args *args, const aq_home *home,
                      const json_t *document, const aq_evidence *e, int64_t max_age, outcome *o)
{
    const char *vkey = aq_arg(c, args, "vkey"), *require = aq_arg(c, args, "require");
    aq_auto_buf own = {0};

    note(o, "signature", HOLDS,
         e->hmac_checked ? "statements signed, HMAC right" : "statements signed");
    if (!vkey && home->ledger) {
        aq_ledger_vkey(home->ledger, &own);
        vkey = aq_buf_str(&own);
    }
    check_ledger(o, e, document, vkey, home->ledger);
    if (max_age >= 0)
        check_age(o, e, max_age);
    if (require)
        check_verdict(o, e, require);
    if (args->operands > 1)
        check_package(o, e, args->operand[1]);
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_verify;
    const char *age = aq_arg(c, args, "max-age"), *require = aq_arg(c, args, "require");
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_auto_json json_t *document = NULL;
    aq_auto_json json_t *points = json_array();
    outcome o = {.points = points};
    uint8_t key[AQ_KEY_LEN];
    int64_t max_age = -1;
    aq_evidence e = {0};
    aq_err err = {0};

    if (age && parse_age(age, &max_age) < 0)
        return aq_say_usage(c, "--max-age is a number with d, h, m or s, not '%.40s'", age);
    if (require && strcmp(require, "pass") != 0 && strcmp(require, "review") != 0)
        return aq_say_usage(c, "--require is pass or review, not '%.40s'", require);
    /* With a key from outside no state is needed, and none is made. */
    if (!aq_arg(c, args, "key") && aq_home_open(aq_arg(c, args, "state"), &home, &err) < 0)
        return aq_say_failed(&err);
    if (trusted_key(c, args, &home, key, &err) < 0)
        return aq_say_failed(&err);
    if (read_evidence(args->operand[0], &document, &err) < 0) {
        if (err.code == -ENOENT) {
            fprintf(stderr, "aquarium: %s\n", err.text);
            return AQ_EXIT_USAGE;
        }
        note(&o, "document", DOES_NOT_HOLD, err.text);
    } else if (aq_evidence_verify(document, key, home.keys, &e, &err) < 0) {
        note(&o, "signature", DOES_NOT_HOLD, err.text);
        e = (aq_evidence){0};
    } else {
        check_all(c, args, &home, document, &e, max_age, &o);
    }
    return finish(c, args, &o, &e);
}

const aq_command aq_command_verify = {
    .name = "verify",
    .summary = "check evidence, and that a package is the one it speaks of",
    .usage = "[OPTION…] EVIDENCE [PACKAGE]",
    .description =
        "Checks the signatures, the HMAC (with the instance's own keys), the ledger's inclusion\n"
        "proof and revocation. With PACKAGE it also says whether this is the very tree that was\n"
        "reviewed. An installer wants --require pass: without it the command says whether the\n"
        "evidence is genuine, whatever its verdict.",
    .options = options,
    .examples =
        "  aquarium verify evidence.json ./my-skill\n"
        "  aquarium verify --require pass --max-age 30d evidence.json skill.tar.gz\n"
        "  aquarium verify --key evidence.pem --vkey \"$(cat ledger.vkey)\" evidence.json\n",
    .exits = "  0   the evidence holds\n"
             "  2   it does not hold, or it speaks of another package\n"
             "  3   something could not be checked\n"
             "  64  the command line was wrong\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
