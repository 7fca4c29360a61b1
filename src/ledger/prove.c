/* Proofs: made from tiles, checked from the document alone.
 *
 * A publisher may replace partial tiles while a proof is made; then the read fails with -ENOENT and
 * the whole is tried again with the newer checkpoint. Every proof is checked before it is given
 * out, so damaged tiles give an error and never a proof that does not hold. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "ledger/internal.h"

enum { ATTEMPTS = 64 };

json_t *aq_proof_json(const aq_proof *p)
{
    json_t *list = json_array();
    char hex[AQ_SHA256_HEX];

    for (size_t i = 0; i < p->count; i++)
        json_array_append_new(list, json_string(aq_digest_hex(&p->hash[i], hex)));
    return list;
}

int aq_proof_read(const json_t *list, aq_proof *ret, aq_err *err)
{
    aq_proof p = {.count = 0};

    if (!json_is_array(list) || json_array_size(list) > AQ_PROOF_MAX)
        return aq_fail(err, -EBADMSG, "hashes is not a list of at most %d hashes", AQ_PROOF_MAX);
    for (; p.count < json_array_size(list); p.count++) {
        const char *hex = json_string_value(json_array_get(list, p.count));
        if (!hex || aq_digest_parse(hex, &p.hash[p.count]) < 0)
            return aq_fail(err, -EBADMSG, "hashes[%zu] is not a SHA-256 hash in lower-case hex",
                           p.count);
    }
    *ret = p;
    return 0;
}

static int prove_once(aq_ledger *l, uint64_t index, json_t **ret, aq_err *err)
{
    aq_tile_source tiles = {.root = l->root};
    aq_tree_source source = {aq_tile_node, &tiles};
    aq_auto_buf note = {0}, entry = {0};
    char hex[AQ_SHA256_HEX];
    aq_digest leaf, own;
    aq_checkpoint c;
    aq_proof p;
    int r = aq_ledger_published(l, &note, &c, err);

    if (r < 0)
        return r;
    if (index >= c.size)
        return aq_fail(err, -ERANGE, "entry %llu is not published yet (%llu are)",
                       (unsigned long long)index, (unsigned long long)c.size);
    tiles.size = c.size;
    r = aq_tile_node(&tiles, 0, index, &leaf, err);
    if (r == 0)
        r = aq_tree_inclusion(&source, index, c.size, &p, err);
    if (r == 0)
        r = aq_ledger_entry(l, index, &entry, err);
    if (r < 0)
        return r;
    own = aq_tree_leaf(aq_buf_str(&entry), entry.len);
    if (!aq_digest_equal(&own, &leaf) ||
        aq_tree_check_inclusion(index, c.size, &leaf, &p, &c.root) < 0)
        return aq_fail(err, -EBADMSG,
                       "the tiles on the way to entry %llu do not lead to the signed root",
                       (unsigned long long)index);
    *ret = json_pack("{s:I, s:s, s:s%, s:o, s:s}", "index", (json_int_t)index, "leaf",
                     aq_digest_hex(&leaf, hex), "entry", entry.data, entry.len, "hashes",
                     aq_proof_json(&p), "checkpoint", note.data);
    return *ret ? 0 : aq_fail(err, -EBADMSG, "entry %llu is no text", (unsigned long long)index);
}

int aq_ledger_prove(aq_ledger *l, uint64_t index, json_t **ret, aq_err *err)
{
    int r = -ENOENT;

    for (int i = 0; r == -ENOENT && i < ATTEMPTS; i++)
        r = prove_once(l, index, ret, err);
    return r;
}

static int prove_consistency_once(aq_ledger *l, uint64_t from, uint64_t to, json_t **ret,
                                  aq_err *err)
{
    aq_tile_source tiles = {.root = l->root};
    aq_tree_source source = {aq_tile_node, &tiles};
    char from_hex[AQ_SHA256_HEX], to_hex[AQ_SHA256_HEX];
    aq_digest from_root, to_root, root;
    aq_auto_buf note = {0};
    aq_checkpoint c;
    aq_proof p;
    int r = aq_ledger_published(l, &note, &c, err);

    if (r < 0)
        return r;
    if (from == 0 || from > to || to > c.size)
        return aq_fail(err, -ERANGE, "sizes start at 1, rise, and are published (%llu entries are)",
                       (unsigned long long)c.size);
    tiles.size = c.size;
    if ((r = aq_tree_root(&source, c.size, &root, err)) < 0 ||
        (r = aq_tree_root(&source, from, &from_root, err)) < 0 ||
        (r = aq_tree_root(&source, to, &to_root, err)) < 0 ||
        (r = aq_tree_consistency(&source, from, to, &p, err)) < 0)
        return r;
    if (!aq_digest_equal(&root, &c.root) ||
        aq_tree_check_consistency(from, to, &from_root, &to_root, &p) < 0)
        return aq_fail(err, -EBADMSG, "the tiles do not lead to the signed root");
    *ret = json_pack("{s:I, s:I, s:s, s:s, s:o, s:s}", "from", (json_int_t)from, "to",
                     (json_int_t)to, "from_root", aq_digest_hex(&from_root, from_hex), "to_root",
                     aq_digest_hex(&to_root, to_hex), "hashes", aq_proof_json(&p), "checkpoint",
                     aq_buf_str(&note));
    return 0;
}

int aq_ledger_prove_consistency(aq_ledger *l, uint64_t from, uint64_t to, json_t **ret, aq_err *err)
{
    int r = -ENOENT;

    for (int i = 0; r == -ENOENT && i < ATTEMPTS; i++)
        r = prove_consistency_once(l, from, to, ret, err);
    return r;
}

/* Opens the proof's own checkpoint with the verifier key. */
static int signed_checkpoint(const json_t *proof, const char *vkey, aq_checkpoint *ret, aq_err *err)
{
    const char *note = aq_json_str(proof, "checkpoint");
    aq_vkey v;
    int r = aq_vkey_parse(vkey, &v, err);

    if (r < 0)
        return r;
    if (!note)
        return aq_fail(err, -EBADMSG, "the proof has no checkpoint");
    return aq_note_open(note, strlen(note), &v, ret, err);
}

/* What both kinds of proof have: no other fields, hashes, and a checkpoint that is signed. */
static int read_proof(const json_t *proof, const char *const *keys, const char *vkey, aq_proof *ret,
                      aq_checkpoint *checkpoint, aq_err *err)
{
    int r = aq_json_only_keys(proof, "proof", keys, err);

    if (r == 0)
        r = aq_proof_read(json_object_get(proof, "hashes"), ret, err);
    return r < 0 ? r : signed_checkpoint(proof, vkey, checkpoint, err);
}

int aq_ledger_check_consistency(const json_t *proof, const char *vkey, aq_err *err)
{
    static const char *const keys[] = {"from",   "to",         "from_root", "to_root",
                                       "hashes", "checkpoint", NULL};
    const char *from_hex = aq_json_str(proof, "from_root"), *to_hex = aq_json_str(proof, "to_root");
    int64_t from = aq_json_int(proof, "from", -1), to = aq_json_int(proof, "to", -1);
    aq_digest from_root, to_root;
    aq_checkpoint c;
    aq_proof p;
    int r = read_proof(proof, keys, vkey, &p, &c, err);

    if (r < 0)
        return r;
    if (from < 0 || to < 0 || !from_hex || !to_hex || aq_digest_parse(from_hex, &from_root) < 0 ||
        aq_digest_parse(to_hex, &to_root) < 0)
        return aq_fail(err, -EBADMSG, "the proof's sizes or roots are malformed");
    if ((uint64_t)to != c.size || !aq_digest_equal(&to_root, &c.root))
        return aq_fail(err, -EBADMSG, "the proof does not end at the signed checkpoint");
    if (aq_tree_check_consistency((uint64_t)from, (uint64_t)to, &from_root, &to_root, &p) < 0)
        return aq_fail(err, -EBADMSG, "the hashes do not lead from one root to the other");
    return 0;
}

int aq_ledger_check_proof(const json_t *proof, const char *vkey, const aq_digest *leaf,
                          uint64_t index, aq_err *err)
{
    static const char *const keys[] = {"index", "leaf", "entry", "hashes", "checkpoint", NULL};
    const char *hex = aq_json_str(proof, "leaf"), *entry = aq_json_str(proof, "entry");
    aq_checkpoint c;
    aq_digest said, own;
    aq_proof p;
    int r = read_proof(proof, keys, vkey, &p, &c, err);

    if (r < 0)
        return r;
    if (aq_json_int(proof, "index", -1) != (int64_t)index)
        return aq_fail(err, -EBADMSG, "the proof is of another entry than %llu",
                       (unsigned long long)index);
    if (!hex || aq_digest_parse(hex, &said) < 0 || !aq_digest_equal(&said, leaf))
        return aq_fail(err, -EBADMSG, "the proof is of another leaf hash");
    own = aq_tree_leaf(entry ? entry : "", entry ? strlen(entry) : 0);
    if (!aq_digest_equal(&own, leaf))
        return aq_fail(err, -EBADMSG, "the entry in the proof is not the one of its leaf hash");
    if (aq_tree_check_inclusion(index, c.size, leaf, &p, &c.root) < 0)
        return aq_fail(err, -EBADMSG, "the hashes do not lead from the leaf to the signed root");
    return 0;
}

int aq_ledger_check(const json_t *proof, const char *vkey, aq_err *err)
{
    int64_t index = aq_json_int(proof, "index", -1);
    const char *hex = aq_json_str(proof, "leaf");
    aq_digest leaf;

    if (json_object_get(proof, "from"))
        return aq_ledger_check_consistency(proof, vkey, err);
    if (index < 0 || !hex || aq_digest_parse(hex, &leaf) < 0)
        return aq_fail(err, -EBADMSG, "this is neither an inclusion nor a consistency proof");
    return aq_ledger_check_proof(proof, vkey, &leaf, (uint64_t)index, err);
}
