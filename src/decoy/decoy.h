/* Decoys: every fake value of one world, made from a seed and a pack.
 *
 * A seed makes two worlds, A and B. They are twins: the same names, counts, lengths, order and file
 * times, and no value in common (aq_decoys_twins proves it of a pair). Nothing here looks at a
 * clock, a locale or the host: the same pack, seed and side give the same bytes everywhere. Only
 * file times depend on when the world's clock starts, and facts of the machine on its processor,
 * which the caller says. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "decoy/pack.h"
#include "kernel/processor.h"
#include "model/machine.h"
#include "model/marks.h"

enum { AQ_SEED_LEN = 32 };

typedef struct aq_seed {
    uint8_t b[AQ_SEED_LEN];
} aq_seed;

typedef enum aq_side { AQ_SIDE_A, AQ_SIDE_B } aq_side;
const char *aq_side_name(aq_side side); /* "A", "B" */

typedef enum aq_place_kind {
    AQ_PLACE_NONE,
    AQ_PLACE_ENV,
    AQ_PLACE_FILE, /* in its content */
    AQ_PLACE_PATH, /* in its name */
    AQ_PLACE_FACT,
} aq_place_kind;

/* Where a decoy can be found: as it is, or as a part of a longer decoy. */
typedef struct aq_place {
    aq_place_kind kind;
    const char *where; /* variable, path or fact */
    uint32_t line;     /* of a text file, from 1; else 0 */
    uint32_t offset;   /* of the first byte in the value, file or path */
} aq_place;

typedef struct aq_decoy {
    const char *name; /* "aws.secret_access_key"; the same in every world */
    aq_grade grade;
    const char *value; /* terminated; only one that is no text has a NUL inside */
    size_t len;
    const aq_place *places;
    size_t place_count;
} aq_decoy;

typedef struct aq_decoy_file {
    const char *path; /* absolute */
    const char *data; /* NULL for a folder and a large file */
    size_t len;
    unsigned mode;
    int64_t mtime; /* seconds since 1970 */
    uint32_t mtime_ns;
    bool folder;
    const uint8_t *large; /* the key of what a large file holds, 32 bytes; else NULL */
} aq_decoy_file;

typedef struct aq_decoys {
    aq_seed seed;
    aq_side side;
    int64_t start; /* when the world's clock starts */
    const aq_decoy *decoys;
    const aq_decoy *const *longest; /* the same, the longest value first: for searching */
    size_t count;
    const aq_decoy_file *files; /* folders before what is in them; in the order of the pack */
    size_t file_count;
    const char *const *env; /* "NAME=value", NULL-terminated */
    size_t env_count;
    aq_machine machine; /* what it says of itself */
} aq_decoys;

/* What a large file holds, from its begin on: its name says of which kind it is (a picture, a
 * document, an archive, …), its key the rest. `left` is how much is still to come. */
typedef struct aq_large {
    uint64_t state[4];
    uint64_t at, len;
    int kind;
    uint32_t crc;
} aq_large;
void aq_large_begin(aq_large *l, const char *path, const uint8_t key[static 32], uint64_t len);
void aq_large_more(aq_large *l, void *to, size_t len); /* no more than is left */

/* All of it lives in the arena. `cpu`: the processor that the machine has, which also says whether
 * it is a virtual one; NULL: the pack's own. Fails only on what a private pack can do wrong: a
 * value or a world that is too long, two files of one path. */
int aq_decoys_make(aq_arena *a, const aq_pack *pack, const aq_seed *seed, aq_side side,
                   int64_t start, const aq_processor *cpu, const aq_decoys **ret, aq_err *err);

/* What can be had soon of the same world: environment and machine, as they will be in the whole,
 * the decoys that these take, and no places. Most of the time goes into key pairs, which stand in
 * files. */
int aq_decoys_outline(aq_arena *a, const aq_pack *pack, const aq_seed *seed, aq_side side,
                      int64_t start, const aq_processor *cpu, const aq_decoys **ret, aq_err *err);

/* Are these the two worlds of one seed: the same shape, and no value in both? The error names the
 * first decoy, file or fact that breaks it. */
int aq_decoys_twins(const aq_decoys *a, const aq_decoys *b, aq_err *err);
/* The first half of it alone, for worlds of two seeds; file times may differ, their order not. */
int aq_decoys_alike(const aq_decoys *a, const aq_decoys *b, aq_err *err);

const aq_decoy *aq_decoys_find(const aq_decoys *d, const char *name); /* NULL when there is none */
const char *aq_decoys_fact(const aq_decoys *d, const char *name);     /* NULL when there is none */

/* Its values, to be replaced by their names. */
const aq_marks *aq_decoys_marks(aq_arena *a, const aq_decoys *d);

/* The seed of `--seed TEXT`: SHA-256 of "aquarium/v1/seed" NUL TEXT. */
aq_seed aq_seed_of_text(const char *text);
/* When the clock of a seed's worlds starts, if nobody says: some working hour of the week before
 * `now`, the same one all week long. */
int64_t aq_seed_start(const aq_seed *seed, int64_t now);
