/* aquarium ledger: reading, proving and revoking; the walk alone appends decisions. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"

static const aq_option options[] = {
    {"json", NULL, "print the result as JSON"},
    {"reason", "TEXT", "revoke: why"},
    {"from", "SIZE", "prove: show that the tree of SIZE entries is a prefix of today's"},
    {"vkey", "LINE", "check: verifier key of the ledger that made the proof"},
    {"package", "NAME", "list: this NAME, NAMESPACE/NAME or package digest only"},
    {"verdict", "WORD", "list: this verdict only (pass, review, reject, inconclusive)"},
    {"since", "TIME", "list: not older than this (30d, 12h, or 2026-01-31T00:00:00Z)"},
    {"pem", NULL, "keys: only the public key of evidence, as PEM"},
    {"verifier", NULL, "keys: only the verifier key of the ledger"},
    {"state", "DIR", "state folder"},
    {0}};

static int parse_index(const char *text, uint64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno || end == text || *end || text[0] < '0' || text[0] > '9' ? -EINVAL : 0;
}

/* An answer as JSON, which names its own form. */
static json_t *answer(const char *name)
{
    return json_pack("{s:o}", "schema", json_sprintf("aquarium/ledger-%s/v1", name));
}

static int put(const aq_args *args, const json_t *json, const char *text)
{
    aq_err err = {0};
    int r = aq_flag(&aq_command_ledger, args, "json") ? aq_put_json("-", json, &err)
                                                      : aq_put("-", text, strlen(text), &err);

    return r < 0 ? aq_say_failed(&err) : 0;
}

static int say_broken(const aq_home *home, aq_err *err)
{
    aq_home_ledger_failed(home, err);
    return aq_say_failed(err);
}

static int say_verified(const aq_args *args, const aq_ledger_audit *audit, const aq_err *bad)
{
    aq_auto_json json_t *json = answer("verification");
    aq_auto_buf text = {0};
    char root[AQ_SHA256_HEX];
    int status;

    json_object_set_new(json, "holds", json_boolean(!bad));
    json_object_set_new(json, "entries", json_integer((json_int_t)audit->entries));
    json_object_set_new(json, "published", json_integer((json_int_t)audit->published));
    json_object_set_new(json, "root", json_string(aq_digest_hex(&audit->root, root)));
    json_object_set_new(json, "problem", bad ? json_string(bad->text) : json_null());
    if (!bad)
        aq_buf_addf(&text, "The ledger holds: %llu entr%s, %llu published, root %s\n",
                    (unsigned long long)audit->entries, audit->entries == 1 ? "y" : "ies",
                    (unsigned long long)audit->published, root);
    else
        aq_buf_addf(&text, "THE LEDGER DOES NOT HOLD: %s\n", bad->text);
    status = put(args, json, aq_buf_str(&text));
    return status ? status : bad ? 2 : 0;
}

static int verify(aq_home *home, const aq_args *args)
{
    aq_ledger_audit audit = {0};
    aq_err err = {0};
    int r = aq_ledger_verify(home->ledger, &audit, &err);

    if (r < 0)
        aq_err_within(&err, "%s/ledger", home->path);
    else
        r = aq_home_check_ledger(home, &err);
    return say_verified(args, &audit, r < 0 ? &err : NULL);
}

static int prove(aq_home *home, const aq_args *args)
{
    const char *from = aq_arg(&aq_command_ledger, args, "from");
    aq_auto_json json_t *proof = NULL;
    uint64_t index = 0, size = 0;
    aq_auto_buf note = {0};
    aq_digest root;
    aq_err err = {0};
    int r;

    if (from && args->operands > 1)
        return aq_say_usage(&aq_command_ledger, "prove takes an INDEX or --from SIZE, not both");
    if (parse_index(from ? from : args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index",
                            from ? from : args->operand[1]);
    if ((r = aq_ledger_publish(home->ledger, &err)) < 0 ||
        (r = aq_ledger_checkpoint(home->ledger, &note, &size, &root, &err)) < 0)
        return say_broken(home, &err);
    if (index >= size + (from ? 1 : 0))
        return aq_say_usage(&aq_command_ledger, "the ledger has %llu entries",
                            (unsigned long long)size);
    r = from ? aq_ledger_prove_consistency(home->ledger, index, size, &proof, &err)
             : aq_ledger_prove(home->ledger, index, &proof, &err);
    if (r < 0)
        return say_broken(home, &err);
    return aq_put_json("-", proof, &err) < 0 ? aq_say_failed(&err) : 0;
}

/* In words, from a proof that was checked: so its fields are of the right form. */
static void what_it_proves(const json_t *proof, aq_buf *out)
{
    aq_auto_json json_t *entry = NULL;
    const char *text = aq_json_str(proof, "entry"), *kind = NULL;
    aq_err ignored;

    if (!text) {
        aq_buf_addf(out,
                    "the tree of %lld entries is a prefix of the signed tree of %lld. It does not "
                    "say that you hold the same first tree: compare from_root with yours.",
                    (long long)aq_json_int(proof, "from", 0),
                    (long long)aq_json_int(proof, "to", 0));
        return;
    }
    if (aq_json_parse(text, strlen(text), "entry", &entry, &ignored) == 0)
        kind = aq_json_str(entry, "kind");
    aq_buf_addf(out, "entry %lld", (long long)aq_json_int(proof, "index", 0));
    if (kind && strcmp(kind, "verdict") == 0)
        aq_buf_addf(out, " (verdict %.20s of package %.64s)", aq_json_str(entry, "verdict"),
                    aq_json_str(entry, "package"));
    else if (kind)
        aq_buf_addf(out, " (%.20s)", kind);
    aq_buf_adds(out, " is in the ledger that this key signed. It does not say that the entry was "
                     "not revoked later.");
}

static int check(aq_home *home, const aq_args *args)
{
    const char *vkey = aq_arg(&aq_command_ledger, args, "vkey");
    aq_auto_json json_t *proof = NULL;
    aq_auto_json json_t *json = answer("check");
    aq_auto_buf text = {0}, own = {0}, proves = {0};
    aq_err err = {0};
    int r, status;

    if (vkey && aq_ledger_vkey_check(vkey, &err) < 0)
        return aq_say_usage(&aq_command_ledger, "--vkey: %s", err.text);
    if (!vkey) {
        aq_ledger_vkey(home->ledger, &own);
        vkey = aq_buf_str(&own);
    }
    if (aq_read_file(AT_FDCWD, args->operand[1], 1 << 20, &text, &err) < 0) {
        fprintf(stderr, "aquarium: %s\n", err.text);
        return AQ_EXIT_USAGE;
    }
    r = aq_json_parse(aq_buf_str(&text), text.len, args->operand[1], &proof, &err);
    if (r == 0)
        r = aq_ledger_check(proof, vkey, &err);
    json_object_set_new(json, "holds", json_boolean(r == 0));
    json_object_set_new(json, "problem", r == 0 ? json_null() : json_string(err.text));
    if (r == 0)
        what_it_proves(proof, &proves);
    json_object_set_new(json, "proves", r == 0 ? json_string(aq_buf_str(&proves)) : json_null());
    aq_buf_clear(&text);
    if (r == 0)
        aq_buf_addf(&text, "The proof holds: %s\n", aq_buf_str(&proves));
    else
        aq_buf_addf(&text, "THE PROOF DOES NOT HOLD: %s\n", err.text);
    status = put(args, json, aq_buf_str(&text));
    return status ? status : r == 0 ? 0 : 2;
}

static int checkpoint(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = answer("checkpoint");
    aq_auto_buf note = {0}, vkey = {0};
    char hex[AQ_SHA256_HEX];
    uint64_t size = 0;
    aq_digest root;
    aq_err err = {0};

    if (aq_ledger_publish(home->ledger, &err) < 0 ||
        aq_ledger_checkpoint(home->ledger, &note, &size, &root, &err) < 0)
        return say_broken(home, &err);
    aq_ledger_vkey(home->ledger, &vkey);
    json_object_set_new(json, "size", json_integer((json_int_t)size));
    json_object_set_new(json, "root", json_string(aq_digest_hex(&root, hex)));
    json_object_set_new(json, "note", json_string(aq_buf_str(&note)));
    json_object_set_new(json, "vkey", json_string(aq_buf_str(&vkey)));
    return put(args, json, aq_buf_str(&note));
}

static int keys(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = answer("keys");
    aq_auto_buf text = {0}, vkey = {0}, pem = {0};

    bool only_pem = aq_flag(&aq_command_ledger, args, "pem");
    bool only_vkey = aq_flag(&aq_command_ledger, args, "verifier");

    aq_ledger_vkey(home->ledger, &vkey);
    aq_key_pem(home->keys, AQ_KEY_EVIDENCE, &pem);
    json_object_set_new(json, "vkey", json_string(aq_buf_str(&vkey)));
    json_object_set_new(json, "evidence_key", json_string(aq_buf_str(&pem)));
    if (!only_pem)
        aq_buf_addf(&text, "%s\n", vkey.data);
    if (!only_vkey)
        aq_buf_adds(&text, pem.data);
    return put(args, json, aq_buf_str(&text));
}

/* One entry: 0, or the status to leave with after saying what is wrong. */
static int read_entry(aq_home *home, uint64_t index, json_t **ret, aq_err *err)
{
    aq_auto_buf entry = {0};
    int r = aq_ledger_entry(home->ledger, index, &entry, err);

    if (r == -ENOENT || r == -ERANGE)
        return aq_say_usage(&aq_command_ledger, "%s", err->text);
    if (r < 0 || aq_json_parse(aq_buf_str(&entry), entry.len, "entry", ret, err) < 0)
        return say_broken(home, err);
    return 0;
}

/* As above, of a verdict. */
static int read_verdict(aq_home *home, uint64_t index, json_t **ret, aq_err *err)
{
    int status = read_entry(home, index, ret, err);
    const char *kind = status ? NULL : aq_json_str(*ret, "kind");

    if (status || (kind && strcmp(kind, "verdict") == 0))
        return status;
    return aq_say_usage(&aq_command_ledger,
                        "entry %llu is no verdict; 'aquarium ledger list' shows which are",
                        (unsigned long long)index);
}

static int show(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = NULL;
    aq_auto_buf text = {0};
    uint64_t index = 0;
    aq_err err = {0};
    int status;

    if (parse_index(args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index", args->operand[1]);
    if ((status = read_entry(home, index, &json, &err)) != 0)
        return status;
    aq_json_pretty(json, &text);
    return put(args, json, aq_buf_str(&text));
}

/* The report that a verdict's entry commits to, from the store. If both disagree the ledger is
 * right, so what the store has is compared before it is shown. */
static int report(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *entry = NULL;
    aq_auto_json json_t *kept = NULL;
    const char *committed;
    char hex[AQ_SHA256_HEX];
    uint64_t index = 0;
    aq_digest digest;
    aq_err err = {0};
    int r;

    if (parse_index(args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index", args->operand[1]);
    if ((r = read_verdict(home, index, &entry, &err)) != 0)
        return r;
    committed = aq_json_str(entry, "report");
    r = aq_store_report(home->store, aq_json_str(entry, "submission"), &kept, &err);
    if (r == -ENOENT)
        return aq_say_usage(&aq_command_ledger, "%s", err.text);
    if (r < 0 || aq_json_digest(kept, &digest) < 0)
        return aq_say_failed(&err);
    if (!committed || strcmp(committed, aq_digest_hex(&digest, hex)) != 0) {
        fprintf(stderr,
                "aquarium: the report that the store keeps of this submission is not the one that "
                "entry %llu commits to: it was changed, or the submission was sent twice\n",
                (unsigned long long)index);
        return 2;
    }
    return aq_put_json("-", kept, &err) < 0 ? aq_say_failed(&err) : 0;
}

/* Reads the entry that is to be revoked: 0, or the status to leave with. */
static int check_revocable(aq_home *home, uint64_t index, bool *again, aq_err *err)
{
    aq_auto_json json_t *old = NULL;
    aq_auto_buf reason = {0};
    int r = read_verdict(home, index, &old, err);

    if (r)
        return r;
    r = aq_ledger_revoked(home->ledger, index, &reason, err);
    *again = r > 0;
    return r < 0 ? say_broken(home, err) : AQ_PARSE_RUN;
}

static int withdraw(aq_home *home, const aq_args *args)
{
    const char *reason = aq_arg(&aq_command_ledger, args, "reason");
    aq_auto_json json_t *body = json_object();
    aq_auto_json json_t *json = answer("revocation");
    aq_auto_buf text = {0};
    uint64_t index = 0, at = 0;
    bool again = false;
    aq_digest leaf;
    aq_err err = {0};
    int r;

    if (parse_index(args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index", args->operand[1]);
    if (!reason || !*reason || strlen(reason) > 400)
        return aq_say_usage(&aq_command_ledger, "revoke needs --reason TEXT (at most 400 bytes)");
    if ((r = check_revocable(home, index, &again, &err)) != AQ_PARSE_RUN)
        return r;
    json_object_set_new(body, "kind", json_string("revocation"));
    json_object_set_new(body, "revokes", json_integer((json_int_t)index));
    if (json_object_set_new(body, "reason", json_string(reason)) < 0)
        return aq_say_usage(&aq_command_ledger, "--reason must be UTF-8 text");
    /* Marked before it is published: an older copy of the ledger must not undo it. */
    if (aq_ledger_append(home->ledger, body, &at, &leaf, &err) < 0)
        return say_broken(home, &err);
    if (aq_store_mark(home->store, at + 1, &leaf, &err) < 0)
        return aq_say_failed(&err);
    if (aq_ledger_publish(home->ledger, &err) < 0)
        return say_broken(home, &err);
    json_object_update(json, body);
    json_object_set_new(json, "entry", json_integer((json_int_t)at));
    json_object_set_new(json, "again", json_boolean(again));
    aq_buf_addf(&text, "Entry %llu is revoked by entry %llu%s.\n", (unsigned long long)index,
                (unsigned long long)at,
                again ? "; it was revoked before, and the first reason is the one that verify "
                        "shows"
                      : "");
    return put(args, json, aq_buf_str(&text));
}

/* ---- the list ---- */

typedef struct indexes {
    uint64_t *items;
    size_t count, cap;
} indexes;

static void free_indexes(indexes *l)
{
    free(l->items);
}

static void add_index(void *arg, uint64_t index)
{
    indexes *l = arg;

    if (l->count == l->cap)
        l->items = aq_realloc(l->items, l->cap = l->cap ? 2 * l->cap : 64, sizeof *l->items);
    l->items[l->count++] = index;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int put_row(const aq_args *args, const aq_concluded *row, bool revoked, aq_err *err)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *json = NULL;
    aq_auto_buf text = {0};
    char hex[AQ_SHA256_HEX], time[AQ_TIME_LEN];

    aq_time_str(row->time, time);
    aq_digest_hex(&row->package, hex);
    if (!aq_flag(&aq_command_ledger, args, "json")) {
        aq_buf_addf(&text, "%8llu  %s  %-12s  %.12s  %s%s%s%s%s%s\n",
                    (unsigned long long)row->entry, time, row->verdict, hex,
                    aq_text_printable(a, row->namespace_, 100), *row->namespace_ ? "/" : "",
                    *row->name ? aq_text_printable(a, row->name, 200) : "(no name)",
                    *row->version ? " " : "", aq_text_printable(a, row->version, 60),
                    revoked ? "  REVOKED" : "");
        return aq_put("-", text.data, text.len, err);
    }
    json = answer("row");
    json_object_set_new(json, "entry", json_integer((json_int_t)row->entry));
    json_object_set_new(json, "time", json_string(time));
    json_object_set_new(json, "verdict", json_string(row->verdict));
    json_object_set_new(json, "package", json_string(hex));
    json_object_set_new(json, "namespace",
                        *row->namespace_ ? json_string(row->namespace_) : json_null());
    json_object_set_new(json, "name", *row->name ? json_string(row->name) : json_null());
    json_object_set_new(json, "version", *row->version ? json_string(row->version) : json_null());
    json_object_set_new(json, "submission", json_string(row->submission));
    json_object_set_new(json, "revoked", json_boolean(revoked));
    return aq_put_json_line(json, err);
}

static int put_rows(aq_home *home, const aq_args *args, const aq_concluded_query *query,
                    uint64_t *shown, aq_err *err)
{
    enum { PAGE = 500 };
    __attribute__((cleanup(free_indexes))) indexes revoked = {0};
    uint64_t from = 0;
    size_t count = 0;
    int r = aq_ledger_each_revoked(home->ledger, add_index, &revoked, err);

    if (r < 0)
        return aq_home_ledger_failed(home, err);
    if (revoked.count)
        qsort(revoked.items, revoked.count, sizeof *revoked.items, by_number);
    do {
        aq_auto_arena a = aq_arena_new();
        aq_concluded *rows = NULL;
        count = 0;
        if (r == 0)
            r = aq_store_concluded(home->store, a, query, from, PAGE, &rows, &count, err);
        for (size_t i = 0; r == 0 && i < count; i++, ++*shown) {
            bool gone = revoked.count && bsearch(&rows[i].entry, revoked.items, revoked.count,
                                                 sizeof *revoked.items, by_number);
            r = put_row(args, &rows[i], gone, err);
            from = rows[i].entry + 1;
        }
    } while (r == 0 && count == PAGE);
    return r;
}

static int list(aq_home *home, const aq_args *args)
{
    const aq_command *c = &aq_command_ledger;
    const char *package = aq_arg(c, args, "package"), *since = aq_arg(c, args, "since");
    aq_concluded_query query = {.verdict = aq_arg(c, args, "verdict")};
    aq_digest digest;
    uint64_t shown = 0;
    int64_t span;
    bool known = !query.verdict;
    aq_err err = {0};

    for (aq_verdict v = AQ_PASS; v <= AQ_INCONCLUSIVE; v++)
        known = known || strcmp(query.verdict, aq_verdict_name(v)) == 0;
    if (!known)
        return aq_say_usage(c, "--verdict is pass, review, reject or inconclusive, not '%.40s'",
                            query.verdict);
    if (since && aq_parse_span(since, &span) == 0)
        query.since = aq_now() - span;
    else if (since && aq_time_parse(since, &query.since) < 0)
        return aq_say_usage(c, "--since is a span (30d, 12h) or a time in UTC, not '%.40s'", since);
    if (package && aq_digest_parse(package, &digest) == 0)
        query.package = &digest;
    else
        query.name = package;
    if (put_rows(home, args, &query, &shown, &err) < 0)
        return aq_say_failed(&err);
    if (!shown && !aq_flag(c, args, "json"))
        fputs("aquarium: no verdict matches\n", stderr);
    return 0;
}

static const aq_act acts[] = {
    {"verify", verify, NULL, 0, 0},
    {"list", list, NULL, 0, 0},
    {"prove", prove, "the INDEX of an entry, or --from SIZE", 0, 1},
    {"check", check, "the FILE of a proof", 1, 1},
    {"checkpoint", checkpoint, NULL, 0, 0},
    {"show", show, "the INDEX of an entry", 1, 1},
    {"report", report, "the INDEX of a verdict's entry", 1, 1},
    {"keys", keys, NULL, 0, 0},
    {"revoke", withdraw, "the INDEX of a verdict's entry", 1, 1},
    {0},
};

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_ledger;
    const aq_act *act = aq_act_find(c, args);
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_err err = {0};
    int r;

    if (!act)
        return AQ_EXIT_USAGE;
    if (act->run == prove && args->operands < 2 && !aq_arg(c, args, "from"))
        return aq_say_usage(c, "%s needs %s", act->name, act->needs);
    if (act->run == check && aq_arg(c, args, "vkey"))
        return check(NULL, args); /* a proof stands alone */
    r = aq_home_open_existing(aq_arg(c, args, "state"), &home, &err);
    if (r == 0)
        return act->run(&home, args);
    /* Damage that stops the ledger from opening is an answer to "does it hold?". */
    if (r == -EBADMSG && act->run == verify)
        return say_verified(args, &(aq_ledger_audit){0}, &err);
    aq_say_failed(&err);
    return r == -ENOENT ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
}

const aq_command aq_command_ledger = {
    .name = "ledger",
    .summary = "verify, prove and show the append-only ledger",
    .usage = "[OPTION…] ACT [INDEX|FILE]",
    .description =
        "  verify       read everything again: entries, chain, tiles, checkpoint\n"
        "  list         the verdicts: entry, time, verdict, package digest, name\n"
        "  prove INDEX  print an inclusion proof; with --from SIZE a consistency proof\n"
        "  check FILE   check a proof that was printed by prove, and say what it proves\n"
        "  checkpoint   publish and print the signed checkpoint\n"
        "  show INDEX   print an entry\n"
        "  report INDEX print the report of a verdict's entry, as JSON\n"
        "  keys         print the public keys that others need for checking\n"
        "  revoke INDEX withdraw the evidence of a verdict's entry\n\n"
        "Entries are numbered from 0. A walk leaves one entry for each stage that ran and\n"
        "one for its verdict; the evidence is named after the verdict's entry.",
    .options = options,
    .acts = acts,
    .examples = "  aquarium ledger verify\n"
                "  aquarium ledger list --verdict reject --since 30d\n"
                "  aquarium ledger report 17 > report.json\n"
                "  aquarium ledger prove 17 > proof.json\n"
                "  aquarium ledger check proof.json\n"
                "  aquarium ledger prove --from 100\n"
                "  aquarium ledger keys --pem > evidence.pem\n"
                "  aquarium ledger keys --verifier > ledger.vkey\n"
                "  aquarium ledger revoke 17 --reason 'rule was wrong'\n",
    .exits = "  0   it holds, or it was done\n"
             "  2   it does not hold\n"
             "  64  the command line was wrong, or there is no such entry or state folder\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
