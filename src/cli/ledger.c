/* aquarium ledger: reading, proving and revoking; the walk alone appends decisions. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"

static const aq_option options[] = {
    {"json", NULL, "print the result as JSON"},
    {"reason", "TEXT", "revoke: why"},
    {"from", "SIZE", "prove: show that the tree of SIZE entries is a prefix of today's"},
    {"vkey", "LINE", "check: verifier key of the ledger that made the proof"},
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

static int put(const aq_args *args, const json_t *json, const char *text)
{
    aq_err err = {0};
    int r = aq_flag(&aq_command_ledger, args, "json") ? aq_put_json("-", json, &err)
                                                      : aq_put("-", text, strlen(text), &err);

    return r < 0 ? aq_say_failed(&err) : 0;
}

static int say_verified(const aq_args *args, const aq_ledger_audit *audit, const aq_err *bad)
{
    aq_auto_json json_t *json = json_object();
    aq_auto_buf text = {0};
    char root[AQ_SHA256_HEX];
    int status;

    json_object_set_new(json, "holds", json_boolean(!bad));
    json_object_set_new(json, "entries", json_integer((json_int_t)audit->entries));
    json_object_set_new(json, "published", json_integer((json_int_t)audit->published));
    json_object_set_new(json, "root", json_string(aq_digest_hex(&audit->root, root)));
    json_object_set_new(json, "problem", bad ? json_string(bad->text) : json_null());
    if (!bad)
        aq_buf_addf(&text, "The ledger holds: %llu entries, %llu published, root %s\n",
                    (unsigned long long)audit->entries, (unsigned long long)audit->published, root);
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

    if (r == 0)
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
        return aq_say_failed(&err);
    if (index >= size + (from ? 1 : 0))
        return aq_say_usage(&aq_command_ledger, "the ledger has %llu entries",
                            (unsigned long long)size);
    r = from ? aq_ledger_prove_consistency(home->ledger, index, size, &proof, &err)
             : aq_ledger_prove(home->ledger, index, &proof, &err);
    if (r < 0)
        return aq_say_failed(&err);
    return aq_put_json("-", proof, &err) < 0 ? aq_say_failed(&err) : 0;
}

static int check(aq_home *home, const aq_args *args)
{
    const char *vkey = aq_arg(&aq_command_ledger, args, "vkey");
    aq_auto_json json_t *proof = NULL;
    aq_auto_json json_t *json = json_object();
    aq_auto_buf text = {0}, own = {0};
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
    aq_buf_clear(&text);
    aq_buf_addf(&text, r == 0 ? "The proof holds.\n" : "THE PROOF DOES NOT HOLD: %s\n", err.text);
    status = put(args, json, aq_buf_str(&text));
    return status ? status : r == 0 ? 0 : 2;
}

static int checkpoint(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = json_object();
    aq_auto_buf note = {0}, vkey = {0};
    char hex[AQ_SHA256_HEX];
    uint64_t size = 0;
    aq_digest root;
    aq_err err = {0};

    if (aq_ledger_publish(home->ledger, &err) < 0 ||
        aq_ledger_checkpoint(home->ledger, &note, &size, &root, &err) < 0)
        return aq_say_failed(&err);
    aq_ledger_vkey(home->ledger, &vkey);
    json_object_set_new(json, "size", json_integer((json_int_t)size));
    json_object_set_new(json, "root", json_string(aq_digest_hex(&root, hex)));
    json_object_set_new(json, "note", json_string(aq_buf_str(&note)));
    json_object_set_new(json, "vkey", json_string(aq_buf_str(&vkey)));
    return put(args, json, aq_buf_str(&note));
}

static int keys(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = json_object();
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

static int show(aq_home *home, const aq_args *args)
{
    aq_auto_json json_t *json = NULL;
    aq_auto_buf entry = {0}, text = {0};
    uint64_t index = 0;
    aq_err err = {0};
    int r;

    if (parse_index(args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index", args->operand[1]);
    r = aq_ledger_entry(home->ledger, index, &entry, &err);
    if (r == -ENOENT || r == -ERANGE)
        return aq_say_usage(&aq_command_ledger, "%s", err.text);
    if (r < 0 || aq_json_parse(aq_buf_str(&entry), entry.len, "entry", &json, &err) < 0)
        return aq_say_failed(&err);
    aq_json_pretty(json, &text);
    return put(args, json, aq_buf_str(&text));
}

static int withdraw(aq_home *home, const aq_args *args)
{
    const char *reason = aq_arg(&aq_command_ledger, args, "reason");
    aq_auto_json json_t *body = json_object();
    aq_auto_json json_t *old = NULL;
    aq_auto_buf entry = {0}, text = {0};
    uint64_t index = 0, at = 0;
    aq_digest leaf;
    aq_err err = {0};

    if (parse_index(args->operand[1], &index) < 0)
        return aq_say_usage(&aq_command_ledger, "'%.40s' is no index", args->operand[1]);
    if (!reason || !*reason || strlen(reason) > 400)
        return aq_say_usage(&aq_command_ledger, "revoke needs --reason TEXT (at most 400 bytes)");
    if (aq_ledger_entry(home->ledger, index, &entry, &err) < 0 ||
        aq_json_parse(aq_buf_str(&entry), entry.len, "entry", &old, &err) < 0)
        return aq_say_failed(&err);
    if (!aq_json_str(old, "kind") || strcmp(aq_json_str(old, "kind"), "verdict") != 0)
        return aq_say_usage(&aq_command_ledger, "entry %llu is no verdict",
                            (unsigned long long)index);
    json_object_set_new(body, "kind", json_string("revocation"));
    json_object_set_new(body, "revokes", json_integer((json_int_t)index));
    if (json_object_set_new(body, "reason", json_string(reason)) < 0)
        return aq_say_usage(&aq_command_ledger, "--reason must be UTF-8 text");
    if (aq_ledger_append(home->ledger, body, &at, &leaf, &err) < 0 ||
        aq_ledger_publish(home->ledger, &err) < 0)
        return aq_say_failed(&err);
    json_object_set_new(body, "entry", json_integer((json_int_t)at));
    aq_buf_addf(&text, "Entry %llu is revoked by entry %llu.\n", (unsigned long long)index,
                (unsigned long long)at);
    return put(args, body, aq_buf_str(&text));
}

static const aq_act acts[] = {
    {"verify", verify, NULL},
    {"prove", prove, "the INDEX of an entry, or --from SIZE"},
    {"check", check, "the FILE of a proof"},
    {"checkpoint", checkpoint, NULL},
    {"show", show, "the INDEX of an entry"},
    {"keys", keys, NULL},
    {"revoke", withdraw, "the INDEX of a verdict's entry"},
    {0},
};

/* Damage that stops the ledger from opening is an answer to "does it hold?", not our failure. */
static int open_failed(const aq_args *args, int r, const aq_err *err)
{
    if (r == -EBADMSG && strcmp(args->operand[0], "verify") == 0)
        return say_verified(args, &(aq_ledger_audit){0}, err);
    aq_say_failed(err);
    return r == -ENOENT ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_ledger;
    const aq_act *act = aq_act_find(c, args);
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_err err = {0};
    int r;

    if (!act)
        return AQ_EXIT_USAGE;
    if (act->needs && args->operands < 2 && !(act->run == prove && aq_arg(c, args, "from")))
        return aq_say_usage(c, "%s needs %s", act->name, act->needs);
    if (act->run == check && aq_arg(c, args, "vkey"))
        return check(NULL, args); /* a proof stands alone */
    r = aq_home_open_existing(aq_arg(c, args, "state"), &home, &err);
    return r < 0 ? open_failed(args, r, &err) : act->run(&home, args);
}

const aq_command aq_command_ledger = {
    .name = "ledger",
    .summary = "verify, prove and show the append-only ledger",
    .usage = "[OPTION…] verify|prove|check|checkpoint|show|keys|revoke [INDEX|FILE]",
    .description =
        "  verify       read everything again: entries, chain, tiles, checkpoint, signature\n"
        "  prove INDEX  print an inclusion proof; with --from SIZE a consistency proof\n"
        "  check FILE   check a proof that was printed by prove\n"
        "  checkpoint   publish and print the signed checkpoint\n"
        "  show INDEX   print an entry\n"
        "  keys         print the public keys that others need for checking\n"
        "  revoke INDEX withdraw the evidence of a verdict's entry",
    .options = options,
    .acts = acts,
    .examples = "  aquarium ledger verify\n"
                "  aquarium ledger prove 17 > proof.json && aquarium ledger check proof.json\n"
                "  aquarium ledger prove --from 100\n"
                "  aquarium ledger keys --pem > evidence.pem\n"
                "  aquarium ledger keys --verifier > ledger.vkey\n"
                "  aquarium ledger revoke 17 --reason 'rule was wrong'\n",
    .exits = "  0   it holds, or it was done\n"
             "  2   it does not hold\n"
             "  64  the command line was wrong\n"
             "  70  our own failure\n",
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
