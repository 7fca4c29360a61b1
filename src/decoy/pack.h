/* Packs: the names, shapes and files that decoys are made of. docs/formats/decoys.md has the
 * grammar.
 *
 * A pack is a flat image: rows that name each other by number and texts by offset, without a
 * pointer, so that the built-in one costs nothing at the start of a program. The same parser makes
 * it at build time (tools/gen-decoys.c) and adds private packs at run time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

/* What a decoy that leaves says about the program: PART is a piece of others and never searched. */
typedef enum aq_grade {
#define AQ_GRADE(id, name, what) AQ_GRADE_##id,
#include "decoy/grades.def"
#undef AQ_GRADE
    AQ_GRADE_COUNT
} aq_grade;
const char *aq_grade_name(aq_grade g);

typedef enum aq_function {
#define AQ_FUNCTION(id, name, key, what) AQ_FUNCTION_##id,
#include "decoy/functions.def"
#undef AQ_FUNCTION
    AQ_FUNCTION_COUNT
} aq_function;

typedef enum aq_alphabet {
#define AQ_ALPHABET(id, name, symbols, first) AQ_ALPHABET_##id,
#include "decoy/alphabets.def"
#undef AQ_ALPHABET
    AQ_ALPHABET_COUNT
} aq_alphabet;

enum {
    AQ_PACK_BYTES = 1 << 20, /* one file */
    AQ_PACK_NAME = 64,
    AQ_PACK_DECOYS = 1024,
    AQ_PACK_FILES = 1024,
    AQ_PACK_ENV = 256,
    AQ_PACK_FACTS = 256,
    AQ_PACK_LISTS = 64,
    AQ_PACK_WORDS = 4096, /* of one list */
    AQ_PACK_WORD = 511,   /* bytes of one */
    AQ_PACK_PIECES = 65536,
    AQ_PACK_DEPTH = 16,        /* decoys in decoys */
    AQ_PACK_DRAW = 512,        /* symbols drawn at once */
    AQ_PACK_HOURS = 24 * 3660, /* how old a file can be */
    AQ_DECOY_VALUE = 16 << 10, /* bytes of one value */
    AQ_DECOY_FILE = 256 << 10, /* of one file */
    AQ_DECOY_WORLD = 4 << 20,  /* of all files */
    AQ_DECOY_LARGE = 64 << 20, /* of a large one */
    AQ_DECOY_LARGES = 256,     /* of these; the sandbox keeps as many (large.c) */
    AQ_DECOY_PATH = 1024,
    AQ_DECOY_PLACES = 1 << 16, /* of all decoys */
};

typedef enum aq_piece_kind {
    AQ_PIECE_TEXT,  /* at, len: of the pool */
    AQ_PIECE_DECOY, /* at: number of the decoy */
    AQ_PIECE_DRAW,  /* at: alphabet, len: symbols; from, to: of the first one */
    AQ_PIECE_WORD,  /* at: number of the list */
    AQ_PIECE_SAY,   /* at, len: a pattern in the pool */
} aq_piece_kind;

typedef struct aq_piece {
    uint32_t kind, at, len;
    uint8_t from, to; /* AQ_PIECE_DRAW: bounds of the first symbol, as numbers of the alphabet */
} aq_piece;

typedef struct aq_template {
    uint32_t first, count; /* pieces */
} aq_template;

typedef struct aq_pack_decoy {
    uint32_t name; /* offset in the pool, as all names */
    uint32_t grade, function;
    uint32_t key; /* name of a key pair, of functions that take one; else 0 */
    aq_template text;
} aq_pack_decoy;

typedef struct aq_pack_named {
    uint32_t name;
    aq_template text;
} aq_pack_named;

typedef enum aq_row_kind { /* in the order of their words in pack.c */
                           AQ_ROW_FILE,
                           AQ_ROW_FOLDER,
                           AQ_ROW_LARGE,    /* a file of `size` bytes that its key says, and nobody
                                               writes before he must */
                           AQ_ROW_HISTORY,  /* of a project: what its .git holds */
                           AQ_ROW_DATABASE, /* a file of SQLite; the lines say its tables and rows
                                             */
} aq_row_kind;

typedef struct aq_pack_file {
    uint32_t source; /* the path as it was written, offset */
    aq_template path, body;
    uint32_t mode, hours, kind, size;
} aq_pack_file;

typedef struct aq_pack_list {
    uint32_t name, words; /* offset of the first word; each is width bytes */
    uint32_t width, count;
} aq_pack_list;

typedef struct aq_pack {
    const char *pool;
    const aq_piece *pieces;
    const aq_pack_decoy *decoys;
    const aq_pack_named *env, *facts; /* facts by name; NAME@VARIANT right behind NAME */
    const aq_pack_file *files;
    const aq_pack_list *lists;
    uint32_t pool_len, piece_count, decoy_count, env_count, fact_count, file_count, list_count;
} aq_pack;

/* The pack of rules/decoys, made at build time. */
const aq_pack *aq_pack_builtin(void);

/* Puts texts together: begins with a pack (or NULL), adds files, ends with a checked pack. */
typedef struct aq_pack_maker aq_pack_maker;
aq_pack_maker *aq_pack_begin(const aq_pack *base);
/* What `text` says is added; a row of the same name as one of an earlier text replaces it. The
 * error names `name` and the line. */
int aq_pack_add(aq_pack_maker *m, const char *name, const char *text, size_t len, aq_err *err);
/* Checks that every name is there and that no decoy needs itself. The pack lives in the arena. */
int aq_pack_end(aq_pack_maker *m, aq_arena *a, const aq_pack **ret, aq_err *err);
void aq_pack_abort(aq_pack_maker *m); /* takes NULL; also after aq_pack_end */

/* The built-in pack with these files on top; bounded reading. */
int aq_pack_read(aq_arena *a, const char *const *paths, size_t count, const aq_pack **ret,
                 aq_err *err);
