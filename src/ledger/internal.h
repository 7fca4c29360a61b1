/* Private to ledger/: the tree, notes, tiles and the journal behind ledger.h.
 *
 * Every reader here treats files as hostile: sizes are bounded before anything is read, and what
 * was read is believed only after a hash or a signature held. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "ledger/ledger.h"

enum {
    AQ_TILE = 256,      /* hashes in a tile, entries in a bundle and in a journal segment */
    AQ_PROOF_MAX = 64,  /* hashes in a proof */
    AQ_NOTE_MAX = 16384 /* bytes of a signed note */
};
#define AQ_LEDGER_MAX (UINT64_C(1) << 53) /* entries: what every JSON reader can count */

/* ---- tree.c: RFC 6962 ---- */

aq_digest aq_tree_leaf(const void *entry, size_t len);
aq_digest aq_tree_node(const aq_digest *left, const aq_digest *right);
/* The node over `count` (a power of two) neighbours; works in place. */
aq_digest aq_tree_fold(aq_digest *hashes, unsigned count);
aq_digest aq_tree_empty(void);

/* Gives the hash of the complete subtree over [index << level, (index + 1) << level). */
typedef struct aq_tree_source {
    int (*node)(void *arg, unsigned level, uint64_t index, aq_digest *ret, aq_err *err);
    void *arg;
} aq_tree_source;

typedef struct aq_proof {
    aq_digest hash[AQ_PROOF_MAX];
    size_t count;
} aq_proof;

int aq_tree_root(const aq_tree_source *s, uint64_t size, aq_digest *ret, aq_err *err);
/* index < size. */
int aq_tree_inclusion(const aq_tree_source *s, uint64_t index, uint64_t size, aq_proof *ret,
                      aq_err *err);
/* from <= to. */
int aq_tree_consistency(const aq_tree_source *s, uint64_t from, uint64_t to, aq_proof *ret,
                        aq_err *err);
/* 0 or -EBADMSG. The proof's length must be exact. */
int aq_tree_check_inclusion(uint64_t index, uint64_t size, const aq_digest *leaf,
                            const aq_proof *proof, const aq_digest *root);
int aq_tree_check_consistency(uint64_t from, uint64_t to, const aq_digest *from_root,
                              const aq_digest *to_root, const aq_proof *proof);

/* ---- note.c: signed notes ---- */

typedef struct aq_vkey {
    char name[256];
    uint8_t id[4];
    uint8_t key[AQ_KEY_LEN];
} aq_vkey;

typedef struct aq_checkpoint {
    uint64_t size;
    aq_digest root;
} aq_checkpoint;

aq_vkey aq_vkey_make(const char *name, const uint8_t public_key[static AQ_KEY_LEN]);
int aq_vkey_parse(const char *text, aq_vkey *ret, aq_err *err);
void aq_vkey_print(const aq_vkey *v, aq_buf *out);
void aq_note_sign(const aq_keys *keys, const aq_vkey *v, const aq_checkpoint *c, aq_buf *out);
int aq_note_open(const char *text, size_t len, const aq_vkey *v, aq_checkpoint *ret, aq_err *err);

/* ---- tile.c: files of the tile log ---- */

enum { AQ_TILE_PATH = 128, AQ_TILE_LEVELS = 8, AQ_TILE_ENTRIES = AQ_TILE_LEVELS };

/* `level` AQ_TILE_ENTRIES names an entry bundle; width AQ_TILE a full tile. */
const char *aq_tile_path(unsigned level, uint64_t n, unsigned width, char out[static AQ_TILE_PATH]);
/* How many of tile n's hashes exist in a tree of `size`; 0 … AQ_TILE. */
unsigned aq_tile_width(unsigned level, uint64_t n, uint64_t size);
/* Reads `width` hashes; where the partial tile is gone, from the full one. */
int aq_tile_read(int root, unsigned level, uint64_t n, unsigned width, aq_digest *out, aq_err *err);
/* The same for a bundle: calls `each` for its first `width` entries. */
typedef int (*aq_entry_each)(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err);
/* Passes only the entries of [from, to) on; itself an aq_entry_each. */
typedef struct aq_window {
    uint64_t from, to;
    aq_entry_each each;
    void *arg;
} aq_window;
int aq_in_window(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err);
int aq_bundle_read(int root, uint64_t n, unsigned width, aq_entry_each each, void *arg,
                   aq_err *err);
/* The reader of a bundle's bytes; `exact`: nothing may follow the entries. */
int aq_bundle_parse(const char *data, size_t len, uint64_t n, unsigned width, bool exact,
                    aq_entry_each each, void *arg, aq_err *err);

/* A tree source that reads tiles; keeps the last tile of every level. */
typedef struct aq_tile_source {
    int root;
    uint64_t size;
    struct {
        bool known;
        uint64_t n;
        aq_digest hash[AQ_TILE];
    } level[AQ_TILE_LEVELS];
} aq_tile_source;

int aq_tile_node(void *tile_source, unsigned level, uint64_t index, aq_digest *ret, aq_err *err);

/* Writes files whole and remembers which folders must be synced; see aq_tile_sync. */
typedef struct aq_tile_writer {
    int root;
    char folder[AQ_TILE_LEVELS + 1][AQ_TILE_PATH]; /* written to, not yet synced */
} aq_tile_writer;

int aq_tile_write(aq_tile_writer *w, unsigned level, uint64_t n, unsigned width, const void *data,
                  size_t len, aq_err *err);
int aq_tile_sync(aq_tile_writer *w, aq_err *err);
/* Replaces a file in the ledger's own folder, world-readable, durable on return. */
int aq_tile_put(int root, const char *name, const void *data, size_t len, aq_err *err);

/* ---- journal.c, record.c ---- */

/* What stands at one place of a segment. */
typedef enum aq_record_state {
    AQ_RECORD_WHOLE,
    AQ_RECORD_END,    /* nothing more */
    AQ_RECORD_TORN,   /* the beginning of a record that was never acknowledged */
    AQ_RECORD_DAMAGED /* not what any writer left */
} aq_record_state;

enum { AQ_RECORD_MAX = 2 + AQ_LEDGER_ENTRY + AQ_SHA256_LEN };

aq_record_state aq_record_read(const char *data, size_t len, size_t at, const char **entry,
                               size_t *entry_len, aq_digest *leaf);
void aq_record_add(aq_buf *out, const void *entry, size_t len, const aq_digest *leaf);

/* ---- entry.c ---- */

/* The text of an entry with a hole for the index and one for the previous hash. */
typedef struct aq_draft {
    aq_buf text;
    size_t index, prev; /* where they go */
} aq_draft;

int aq_draft_make(const json_t *body, const char *time, aq_draft *ret, aq_err *err);
void aq_draft_fill(const aq_draft *d, uint64_t index, const aq_digest *prev, aq_buf *entry);
/* Checks one entry: canonical, schema, index, chain. */
int aq_entry_check(const void *entry, size_t len, uint64_t index, const aq_digest *prev,
                   aq_err *err);

/* ---- ledger.c ---- */

struct aq_ledger {
    int root; /* the folder ledger/ */
    const aq_keys *keys;
    aq_sequence *sequence; /* NULL for a reader who may not read the journal */
    aq_vkey vkey;
    pthread_mutex_t publishing; /* flock does not keep threads of one handle apart */
};

/* The published checkpoint, its signature checked; size 0 with the empty root when there is none,
 * and then `note` stays empty. */
int aq_ledger_published(aq_ledger *l, aq_buf *note, aq_checkpoint *ret, aq_err *err);
/* Calls `each` for entries [from, to), from bundles where they are published, else from the
 * sequence. */
int aq_ledger_walk(aq_ledger *l, const aq_checkpoint *c, uint64_t from, uint64_t to,
                   aq_entry_each each, void *arg, aq_err *err);
/* A proof as a list of hex texts, and back. */
json_t *aq_proof_json(const aq_proof *p);
int aq_proof_read(const json_t *list, aq_proof *ret, aq_err *err);
/* Checks a consistency document: the facts in it against one another. */
