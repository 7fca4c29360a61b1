/* The ledger: an append-only log that anyone can check.
 *
 * Sequencing (which entry has which number; must be durable before an append is acknowledged) is
 * apart from publishing (tiles and a signed checkpoint for readers), so that a database can own
 * the first one day. Invariants:
 *   I1  An acknowledged entry is never lost, whatever is killed.
 *   I2  Entry n names the leaf hash of entry n−1: chain and tree share one hash,
 *       SHA-256(0x00 ‖ entry), RFC 6962.
 *   I3  A checkpoint is written only after every tile that it covers is durable.
 *   I4  Entries hold digests and short words, never content; one is at most 65,535 bytes.
 * Layout: C2SP tlog-tiles and signed notes below `ledger/`; docs/formats/ledger.md. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"
#include "trust/keys.h"

enum { AQ_LEDGER_ENTRY = 65535 };

/* ---- sequencing ---- */

/* Where the sequence of entries lives. The file journal is the only one now. */
typedef struct aq_sequence aq_sequence;
typedef struct aq_sequence_ops {
    const char *name;
    /* Appends `count` entries in one durable step. `make` is called under the sequence's lock with
     * the index and the previous leaf hash and builds the entry. */
    int (*append)(aq_sequence *s, size_t count,
                  int (*make)(void *arg, size_t i, uint64_t index, const aq_digest *prev,
                              aq_buf *entry, aq_err *err),
                  void *arg, uint64_t *first, aq_digest *leaves, aq_err *err);
    int (*size)(aq_sequence *s, uint64_t *ret, aq_err *err);
    /* Calls `each` for entries [from, to); a writer's `size` counts durable entries only. */
    int (*read)(aq_sequence *s, uint64_t from, uint64_t to,
                int (*each)(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err),
                void *arg, aq_err *err);
    /* The oldest entry that `read` still has; 0 when there is none. */
    int (*oldest)(aq_sequence *s, uint64_t *ret, aq_err *err);
    /* Entries below `upto` are published and durable as tiles: the sequence may drop its copy.
     * After that `read` gives -ENOENT for them. */
    int (*forget)(aq_sequence *s, uint64_t upto, aq_err *err);
    void (*close)(aq_sequence *s);
} aq_sequence_ops;
struct aq_sequence {
    const aq_sequence_ops *ops;
};

/* `journal/` below `dirfd`; made when missing if it is opened for writing. Open it after fork, not
 * before: parent and child would share one lock. */
int aq_sequence_open_journal(int dirfd, bool writable, aq_sequence **ret, aq_err *err);

/* ---- the ledger ---- */

typedef struct aq_ledger aq_ledger;

/* Opens or makes `ledger/` below `dirfd`. `keys` may be NULL for a reader. */
int aq_ledger_open(int dirfd, const aq_keys *keys, aq_ledger **ret, aq_err *err);
/* Opens somebody's published ledger for reading: the folder that holds `checkpoint`. */
int aq_ledger_open_copy(const char *path, aq_ledger **ret, aq_err *err);
void aq_ledger_close(aq_ledger *l); /* takes NULL */

/* Appends one entry: `body` is an object with at least "kind"; schema, index, prev and time are
 * added and the whole is written in canonical form. Durable on return. */
int aq_ledger_append(aq_ledger *l, const json_t *body, uint64_t *index, aq_digest *leaf,
                     aq_err *err);
/* Several in one durable step. */
int aq_ledger_append_all(aq_ledger *l, json_t *const *bodies, size_t count, uint64_t *first,
                         aq_digest *leaves, aq_err *err);
/* Brings tiles up to the sequence and signs a checkpoint over it. */
int aq_ledger_publish(aq_ledger *l, aq_err *err);

/* The newest published checkpoint: text of the signed note. */
int aq_ledger_checkpoint(aq_ledger *l, aq_buf *note, uint64_t *size, aq_digest *root, aq_err *err);
/* The verifier key line of this ledger ("name+hash+key"). */
void aq_ledger_vkey(const aq_ledger *l, aq_buf *out);

/* Is this line a verifier key? 0 or -EBADMSG. */
int aq_ledger_vkey_check(const char *vkey, aq_err *err);
/* The RFC 6962 leaf hash of an entry's bytes. */
aq_digest aq_ledger_leaf(const void *entry, size_t len);

/* Inclusion proof of `index` in the published tree, as a document that stands alone:
 * {index, leaf, entry, hashes:[hex…], checkpoint: note}. New reference. */
int aq_ledger_prove(aq_ledger *l, uint64_t index, json_t **ret, aq_err *err);
/* Consistency proof between two published sizes. */
int aq_ledger_prove_consistency(aq_ledger *l, uint64_t from, uint64_t to, json_t **ret,
                                aq_err *err);
/* Checks that an inclusion proof is of this leaf at this index, that its entry has that leaf hash,
 * and that its checkpoint is signed under the verifier key. */
int aq_ledger_check_proof(const json_t *proof, const char *vkey, const aq_digest *leaf,
                          uint64_t index, aq_err *err);

/* Checks that a consistency proof ends at a checkpoint signed under the verifier key. Whether it
 * begins at one that the reader holds is the reader's to compare (from, from_root). */
int aq_ledger_check_consistency(const json_t *proof, const char *vkey, aq_err *err);
/* Either kind of proof, taken at its word for what it proves. */
int aq_ledger_check(const json_t *proof, const char *vkey, aq_err *err);

typedef struct aq_ledger_audit {
    uint64_t entries, published;
    aq_digest root;
    uint64_t bad_index; /* when it failed: where */
} aq_ledger_audit;

/* Reads everything again: entries, chain, tiles, checkpoint, signature. */
int aq_ledger_verify(aq_ledger *l, aq_ledger_audit *ret, aq_err *err);
/* Entries that there are, published or not. */
int aq_ledger_size(aq_ledger *l, uint64_t *ret, aq_err *err);
int aq_ledger_entry(aq_ledger *l, uint64_t index, aq_buf *entry, aq_err *err);
/* Is evidence of this verdict entry revoked? 1 with the reason, 0 not, negative on failure. */
int aq_ledger_revoked(aq_ledger *l, uint64_t index, aq_buf *reason, aq_err *err);
/* Calls `each` with the index of every entry that was revoked, in the order of the revocations. */
int aq_ledger_each_revoked(aq_ledger *l, void (*each)(void *arg, uint64_t index), void *arg,
                           aq_err *err);
