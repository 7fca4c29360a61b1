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
#include "base/text.h"
#include "cleanroom/entry.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"
#include "trust/evidence.h"

/* NOT_MET: the evidence is genuine and says something else than was asked for. */
enum {
    EVIDENCE_BYTES = 16 << 20,
    REPORT_BYTES = 256 << 20,
    HOLDS = 0,
    NOT_MET = 1,
    DOES_NOT_HOLD = 2,
    CANNOT_TELL = 3
};

static const aq_option options[] = {
    {"json", NULL, "print the result as JSON"},
    {"key", "FILE", "public key (PEM) of the instance that made the evidence"},
    {"vkey", "LINE", "verifier key of its ledger (as 'aquarium ledger keys' prints)"},
    {"report", "FILE", "a report (JSON): is it the one that the evidence speaks of?"},
    {"require", "VERDICT", "fail unless the verdict is pass, or with 'review' at least review"},
    {"max-age", "TIME", "fail if the evidence is older: 30d, 12h, 90m"},
    {"ledger", "DIR", "a copy of that ledger, to see whether the evidence was revoked since"},
    {"no-revocation", NULL, "do not ask whether it was revoked since"},
    {"state", "DIR", "state folder; its own keys and ledger are used unless given above"},
    {0}};

/* What was learned, for both faces. Each point is one line: holds or not, and why. */
typedef struct outcome {
    aq_arena *arena;
    json_t *points; /* [{name, holds: true|false|null, text}] */
    int status;
} outcome;

static void note(outcome *o, const char *name, int status, const char *text)
{
    static const int weight[] = {
        [HOLDS] = 0, [NOT_MET] = 1, [CANNOT_TELL] = 2, [DOES_NOT_HOLD] = 3};
    json_t *p = json_object();

    json_object_set_new(p, "name", json_string(name));
    json_object_set_new(p, "holds",
                        status == CANNOT_TELL ? json_null() : json_boolean(status == 0));
    /* The text may repeat what a hostile document says. */
    json_object_set_new(p, "text", json_string(aq_text_printable(o->arena, text, 600)));
    json_array_append_new(o->points, p);
    /* A refuted point outweighs one that could not be checked, and that one a wish not met. */
    if (weight[status] > weight[o->status])
        o->status = status;
}

/* "41 days", "3 hours": the largest unit that fits. */
static void add_span(aq_buf *out, int64_t seconds)
{
    static const struct {
        int64_t length;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t i = 0;
    int64_t n;

    while (i < 3 && seconds < units[i].length)
        i++;
    n = seconds / units[i].length;
    aq_buf_addf(out, "%lld %s%s", (long long)n, units[i].name, n == 1 ? "" : "s");
}

static void check_age(outcome *o, const aq_evidence *e, int64_t limit)
{
    enum { CLOCKS_APART = 300 };
    int64_t age = aq_now() - e->time;
    aq_auto_buf text = {0};

    if (age < -CLOCKS_APART) {
        note(o, "age", DOES_NOT_HOLD, "it is dated in the future; is the clock right?");
        return;
    }
    add_span(&text, age < 0 ? 0 : age);
    aq_buf_adds(&text, " old, ");
    add_span(&text, limit);
    aq_buf_adds(&text, " allowed");
    note(o, "age", age <= limit ? HOLDS : NOT_MET, aq_buf_str(&text));
}

static void check_verdict(outcome *o, const aq_evidence *e, const char *require)
{
    bool good = strcmp(e->verdict, "pass") == 0 ||
                (strcmp(require, "review") == 0 && strcmp(e->verdict, "review") == 0);
    char text[120];

    snprintf(text, sizeof text, "the verdict was %.20s, %.20s is required", e->verdict, require);
    note(o, "verdict", good ? HOLDS : NOT_MET, text);
}

/* The evidence signs the digest of the canonical form, so the spelling of the file is free. */
static void check_report(outcome *o, const aq_evidence *e, const char *path)
{
    aq_auto_json json_t *report = NULL;
    aq_auto_buf text = {0};
    const char *schema;
    aq_digest digest;
    aq_err err = {0};

    if (aq_read_file(AT_FDCWD, path, REPORT_BYTES, &text, &err) < 0) {
        note(o, "report", CANNOT_TELL, err.text);
        return;
    }
    if (aq_json_parse(aq_buf_str(&text), text.len, path, &report, &err) < 0 ||
        aq_json_digest(report, &digest) < 0) {
        note(o, "report", DOES_NOT_HOLD, err.text[0] ? err.text : "it has no canonical form");
        return;
    }
    schema = aq_json_str(report, "schema");
    if (!schema || strcmp(schema, "aquarium/report/v1") != 0)
        note(o, "report", DOES_NOT_HOLD, "this file is no report: its schema is another one");
    else if (!aq_digest_equal(&digest, &e->report))
        note(o, "report", DOES_NOT_HOLD,
             "this is not the report that was signed: its digest is another");
    else
        note(o, "report", HOLDS, "it is the one that was signed, unchanged");
}

/* The budgets of the walk: with others the same package has another digest. */
static int budgets(const aq_home *home, aq_budget *ret, aq_err *err)
{
    aq_policy policy;
    int r = home->dirfd < 0 ? 0 : aq_policy_load(home->dirfd, home->path, &policy, err);

    aq_budget_init(ret);
    if (r >= 0 && home->dirfd >= 0)
        aq_policy_apply(&policy, ret);
    return r < 0 ? r : 0;
}

static void check_package(outcome *o, const aq_evidence *e, const aq_home *home, const char *path)
{
    aq_auto_arena a = aq_arena_new();
    aq_findings *findings = aq_findings_new(a);
    aq_package package = {.image = -1};
    char hex[AQ_SHA256_HEX], text[200];
    aq_budget budget;
    aq_err err = {0};

    if (budgets(home, &budget, &err) < 0 ||
        aq_unpack(a, path, NULL, &budget, findings, NULL, NULL, &package, &err) < 0) {
        note(o, "package", CANNOT_TELL, err.text);
        return;
    }
    snprintf(text, sizeof text, "its digest is %s", aq_digest_hex(&package.digest, hex));
    if (findings->per_rule[AQ_RULE_INTAKE_BUDGET] || findings->per_rule[AQ_RULE_INTAKE_RATIO])
        note(o, "package", CANNOT_TELL,
             "a budget ended before all of it was read; the policy at the review may be another");
    else if (!aq_digest_equal(&package.digest, &e->package))
        note(o, "package", DOES_NOT_HOLD,
             "this is not the package that was reviewed: its digest is another (A5)");
    else if (findings->incomplete || package.unread_count)
        note(o, "package", CANNOT_TELL, "the same files, but parts of it could not be read");
    else if (findings->per_rule[AQ_RULE_INTAKE_SETUID])
        /* Modes are not in the digest: they may have come after the review. */
        note(o, "package", CANNOT_TELL,
             "the same files, but one has a set-user-id bit, which no digest covers");
    else
        note(o, "package", HOLDS, text);
    aq_package_close(&package);
}

static void check_proof(outcome *o, const aq_evidence *e, const json_t *document, const char *vkey)
{
    const json_t *proof = json_object_get(json_object_get(document, "ledger"), "proof");
    aq_err err = {0};

    if (!json_is_object(proof))
        note(o, "ledger", CANNOT_TELL, "the evidence carries no inclusion proof");
    else if (!vkey)
        note(o, "ledger", CANNOT_TELL, "no verifier key of that ledger: pass --vkey");
    else if (aq_ledger_check_proof(proof, vkey, &e->ledger_leaf, e->ledger_index, &err) < 0 ||
             aq_entry_matches(aq_json_str(proof, "entry"), e, &err) < 0)
        note(o, "ledger", DOES_NOT_HOLD, err.text);
    else
        note(o, "ledger", HOLDS, "included in the signed ledger");
}

/* Does the ledger at hand still have the entry? One that was cut, replaced or rolled back would
 * have forgotten revocations as well. */
static bool same_history(outcome *o, const aq_evidence *e, const char *vkey, aq_ledger *l)
{
    aq_auto_buf entry = {0}, own = {0}, text = {0};
    aq_ledger_audit audit;
    aq_digest leaf;
    aq_err err = {0};

    aq_ledger_vkey(l, &own);
    if (vkey && strcmp(vkey, aq_buf_str(&own)) != 0) {
        note(o, "revocation", CANNOT_TELL, "the ledger at hand is another one");
        return false;
    }
    if (aq_ledger_verify(l, &audit, &err) < 0) {
        note(o, "revocation", DOES_NOT_HOLD, err.text);
        return false;
    }
    if (e->ledger_index >= audit.entries) {
        aq_buf_addf(&text,
                    "the ledger at hand has %llu entries, this evidence is entry %llu: it "
                    "was cut, or is an old copy",
                    (unsigned long long)audit.entries, (unsigned long long)e->ledger_index);
        note(o, "revocation", DOES_NOT_HOLD, aq_buf_str(&text));
        return false;
    }
    if (aq_ledger_entry(l, e->ledger_index, &entry, &err) < 0) {
        note(o, "revocation", CANNOT_TELL, err.text);
        return false;
    }
    leaf = aq_ledger_leaf(aq_buf_str(&entry), entry.len);
    if (aq_digest_equal(&leaf, &e->ledger_leaf))
        return true;
    note(o, "revocation", DOES_NOT_HOLD, "the ledger at hand has another entry in its place");
    return false;
}

static void check_revocation(outcome *o, const aq_evidence *e, const char *vkey, aq_ledger *l)
{
    aq_auto_buf reason = {0}, text = {0};
    aq_err err = {0};
    int r;

    if (!l) {
        note(o, "revocation", CANNOT_TELL,
             "not checked: pass --ledger with a copy of that ledger, or --no-revocation");
        return;
    }
    if (!same_history(o, e, vkey, l))
        return;
    r = aq_ledger_revoked(l, e->ledger_index, &reason, &err);
    if (r > 0)
        aq_buf_addf(&text, "revoked: %s", aq_buf_str(&reason));
    note(o, "revocation",
         r < 0 ? CANNOT_TELL
         : r   ? DOES_NOT_HOLD
               : HOLDS,
         r < 0 ? err.text
         : r   ? aq_buf_str(&text)
               : "not revoked");
}

/* -EINVAL for what is no evidence at all; -EBADMSG for what may be damaged evidence. */
static int read_evidence(const char *path, json_t **ret, aq_err *err)
{
    aq_auto_json json_t *document = NULL;
    aq_auto_buf text = {0};
    const char *schema;
    int r = aq_read_file(AT_FDCWD, path, EVIDENCE_BYTES, &text, err);

    if (r < 0)
        return r;
    if (aq_buf_str(&text)[strspn(aq_buf_str(&text), " \t\r\n")] != '{')
        return aq_fail(err, -EINVAL,
                       "%.300s is not evidence; validate prints where the evidence lies", path);
    if ((r = aq_json_parse(aq_buf_str(&text), text.len, path, &document, err)) < 0)
        return r;
    schema = aq_json_str(document, "schema");
    if (schema && strncmp(schema, "aquarium/report/", 16) == 0)
        return aq_fail(err, -EINVAL,
                       "%.300s is a report, not evidence; validate prints where the evidence "
                       "lies, or writes it with --evidence FILE",
                       path);
    if (!schema || strncmp(schema, "aquarium/evidence/", 18) != 0)
        return aq_fail(err, -EINVAL, "%.300s is not evidence: its schema is another one", path);
    *ret = aq_take(document);
    return 0;
}

static void show(const outcome *o, const aq_evidence *e)
{
    static const char *const words[] = {
        [HOLDS] = "The evidence holds.",
        [NOT_MET] = "The evidence is genuine, but DOES NOT MEET what was asked.",
        [DOES_NOT_HOLD] = "THE EVIDENCE DOES NOT HOLD.",
        [CANNOT_TELL] = "The evidence could not be checked in full.",
    };
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
    printf("\n%s", words[o->status]);
    if (e->verdict)
        printf(" It says: %s.", e->verdict);
    putchar('\n');
}

static int finish(const aq_command *c, const aq_args *args, outcome *o, const aq_evidence *e)
{
    static const char *const words[] = {[HOLDS] = "holds",
                                        [NOT_MET] = "does-not-meet",
                                        [DOES_NOT_HOLD] = "does-not-hold",
                                        [CANNOT_TELL] = "cannot-tell"};
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

/* What the checks work with. */
typedef struct means {
    aq_home home;
    aq_ledger *copy; /* of --ledger */
    uint8_t key[AQ_KEY_LEN];
    bool have_key, foreign_key;
    int64_t max_age;
} means;

static void free_means(means *m)
{
    aq_ledger_close(m->copy);
    aq_home_close(&m->home);
}

/* An old copy of our own ledger has forgotten what was revoked since. The store has not. */
static bool reaches_far_enough(outcome *o, const means *m)
{
    aq_home home = m->home;
    aq_err err = {0};
    int r = m->copy || !home.store ? 0 : aq_home_check_ledger(&home, &err);

    if (r < 0)
        note(o, "revocation", r == -EBADMSG ? DOES_NOT_HOLD : CANNOT_TELL, err.text);
    return r == 0;
}

/* Signed and bound to this evidence, but this version does not know what it means. */
static const char *unknown_statement(outcome *o, const aq_evidence *e)
{
    return aq_arena_printf(o->arena, "a statement is of a type that this version cannot judge: %s",
                           e->unknown_type);
}

static void check_all(const aq_command *c, const aq_args *args, const means *m,
                      const json_t *document, const aq_evidence *e, outcome *o)
{
    const char *vkey = aq_arg(c, args, "vkey"), *require = aq_arg(c, args, "require");
    aq_ledger *ledger = m->copy ? m->copy : m->home.ledger;
    aq_auto_buf own = {0};

    note(o, "signature", HOLDS,
         e->hmac_checked ? "the statements are signed, and the HMAC matches"
                         : "the statements are signed");
    if (e->unknown_type)
        note(o, "statements", CANNOT_TELL, unknown_statement(o, e));
    if (!vkey && m->home.ledger) {
        aq_ledger_vkey(m->home.ledger, &own);
        vkey = aq_buf_str(&own);
    }
    check_proof(o, e, document, vkey);
    if (!aq_flag(c, args, "no-revocation") && reaches_far_enough(o, m))
        check_revocation(o, e, vkey, ledger);
    if (m->max_age >= 0)
        check_age(o, e, m->max_age);
    if (require)
        check_verdict(o, e, require);
    if (aq_arg(c, args, "report"))
        check_report(o, e, aq_arg(c, args, "report"));
    if (args->operands > 1)
        check_package(o, e, &m->home, args->operand[1]);
}

/* Keys and ledgers, from the command line or the state folder. Nothing is made: checking must not
 * leave keys behind that nobody asked for. */
static int gather(const aq_command *c, const aq_args *args, means *m, aq_err *err)
{
    const char *key = aq_arg(c, args, "key"), *ledger = aq_arg(c, args, "ledger");
    aq_auto_buf pem = {0};
    int r;

    if (key) {
        r = aq_read_file(AT_FDCWD, key, 1 << 16, &pem, err);
        if (r == 0)
            r = aq_public_from_pem(aq_buf_str(&pem), pem.len, m->key, err);
        if (r < 0)
            return r;
        m->have_key = m->foreign_key = true;
    } else {
        r = aq_home_open_to_check(aq_arg(c, args, "state"), &m->home, err);
        if (r < 0 && r != -ENOENT)
            return r;
        m->have_key = r == 0;
        if (r == 0)
            aq_key_public(m->home.keys, AQ_KEY_EVIDENCE, m->key);
    }
    return ledger ? aq_ledger_open_copy(ledger, &m->copy, err) : 0;
}

static int parse_options(const aq_command *c, const aq_args *args, means *m)
{
    const char *age = aq_arg(c, args, "max-age"), *require = aq_arg(c, args, "require");
    const char *vkey = aq_arg(c, args, "vkey");
    aq_err err = {0};

    if (age && aq_parse_span(age, &m->max_age) < 0)
        return aq_say_usage(c, "--max-age is a number with d, h, m or s, not '%.40s'", age);
    if (require && strcmp(require, "pass") != 0 && strcmp(require, "review") != 0)
        return aq_say_usage(c, "--require is pass or review, not '%.40s'", require);
    if (vkey && aq_ledger_vkey_check(vkey, &err) < 0)
        return aq_say_usage(c, "--vkey: %s", err.text);
    return AQ_PARSE_RUN;
}

static bool can_read(const char *path)
{
    aq_err err = {0};

    if (access(path, R_OK) == 0)
        return true;
    aq_fail_errno(&err, "cannot open %s", path);
    aq_say_failed(&err);
    return false;
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_verify;
    __attribute__((cleanup(free_means))) means m = {.home = {.dirfd = -1}, .max_age = -1};
    aq_auto_json json_t *document = NULL;
    aq_auto_json json_t *points = json_array();
    aq_auto_arena arena = aq_arena_new();
    outcome o = {.arena = arena, .points = points};
    aq_evidence e = {0};
    aq_err err = {0};
    int r = parse_options(c, args, &m);

    if (r != AQ_PARSE_RUN)
        return r;
    if ((args->operands > 1 && !can_read(args->operand[1])) ||
        (aq_arg(c, args, "report") && !can_read(aq_arg(c, args, "report"))))
        return AQ_EXIT_USAGE;
    r = gather(c, args, &m, &err);
    if (r < 0)
        aq_say_failed(&err);
    if (r < 0)
        return r == -ENOENT || r == -EINVAL || r == -ENOTDIR ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
    r = read_evidence(args->operand[0], &document, &err);
    if (r == -ENOENT || r == -EINVAL || r == -EACCES) {
        fprintf(stderr, "aquarium: %s\n", err.text);
        return AQ_EXIT_USAGE;
    }
    if (r < 0) {
        note(&o, "document", DOES_NOT_HOLD, err.text);
    } else if (!m.have_key) {
        note(&o, "signature", CANNOT_TELL,
             "no key to check with: pass --key and --vkey of the instance that made it");
    } else if ((r = aq_evidence_verify(document, m.key, m.home.keys, &e, &err)) < 0) {
        bool other = r == -ENOKEY && !m.foreign_key;
        note(&o, "signature", other ? CANNOT_TELL : DOES_NOT_HOLD,
             other ? "made by another instance: pass its --key and --vkey" : err.text);
        e = (aq_evidence){0};
    } else {
        check_all(c, args, &m, document, &e, &o);
    }
    return finish(c, args, &o, &e);
}

const aq_command aq_command_verify = {
    .name = "verify",
    .summary = "check evidence, and that a package is the one it speaks of",
    .usage = "[OPTION…] EVIDENCE [PACKAGE]",
    .description =
        "Checks the signatures, the HMAC (with the instance's own keys), the ledger's\n"
        "inclusion proof, and that it was not revoked since. With PACKAGE it also says\n"
        "whether this is the very tree that was reviewed, with --report whether this is\n"
        "the report that was signed ('aquarium ledger report' prints stored ones).\n"
        "An installer wants --require pass: without it the command says whether the\n"
        "evidence is genuine, whatever its verdict.",
    .options = options,
    .examples = "  aquarium verify evidence.json ./my-skill\n"
                "  aquarium verify --require pass --max-age 30d evidence.json skill.tar.gz\n"
                "  aquarium verify --report report.json evidence.json\n"
                "  aquarium ledger keys --pem > evidence.pem     # at the instance that made it\n"
                "  aquarium ledger keys --verifier > ledger.vkey\n"
                "  aquarium verify --key evidence.pem --vkey \"$(cat ledger.vkey)\" \\\n"
                "      --ledger copy/ evidence.json\n",
    .exits = "  0   the evidence holds\n"
             "  1   it is genuine, but not what --require or --max-age asked for\n"
             "  2   it does not hold, was revoked, or speaks of another package\n"
             "  3   something could not be checked\n"
             "  64  the command line was wrong, or a file is not there or no evidence\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
