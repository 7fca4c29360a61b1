/* Attention words: finds the literals of rules/attention.tsv in a stream of bytes, all at once and
 * in linear time (Aho-Corasick), and the four checks that no literal can express. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum aq_scope {
    AQ_SCOPE_CODE,
    AQ_SCOPE_AGENT,
    AQ_SCOPE_ANY,
    AQ_SCOPE_NONE,   /* means nothing, and neither do the shorter literals that end with it */
    AQ_SCOPE_SIGNAL, /* gives weak words company */
} aq_scope;

/* What must stand around a literal for it to count. */
typedef enum aq_word_need {
    AQ_NEED_NOTHING,
    AQ_NEED_COMPANY,  /* a weak word: another reason, or a signal, in the same piece */
    AQ_NEED_ARGUMENT, /* these very letters, and an argument behind them */
    AQ_NEED_INPUT,    /* the program reads its input: no script is named behind it */
    AQ_NEED_NAME,     /* these very letters at the end of a longer name; weak, too */
    AQ_NEED_UNPINNED, /* a package without a version behind it */
    AQ_NEED_COMMAND,  /* neither a dot nor a dash before it: no method, no file name */
} aq_word_need;

typedef struct aq_word {
    const char *literal; /* lower case, single spaces; "@name" for a check in code */
    const char *shown;   /* as the table has it */
    uint8_t weight;
    aq_scope scope;
    aq_word_need need;
    const char *why;
} aq_word;

/* Where the text stands that is being read: code counts full, the others less for code words. */
typedef enum aq_place { AQ_PLACE_CODE, AQ_PLACE_PROSE, AQ_PLACE_COMMENT } aq_place;

enum { AQ_HITS = 8 }; /* different reasons kept for one piece; the heaviest stay */

typedef struct aq_hits {
    uint16_t word[AQ_HITS]; /* heaviest first */
    size_t at[AQ_HITS];     /* offset of each hit's end */
    uint16_t count;
    bool signal;
    bool moves;       /* a signal that says where data goes */
    uint64_t mixture; /* of the words seen: part of the shape */
} aq_hits;

typedef struct aq_words aq_words;

aq_words *aq_words_new(void);
void aq_words_free(aq_words *w); /* takes NULL */
const aq_word *aq_words_get(size_t index);

/* What goes on from one piece of a line to the next. Zero at the start of each line. */
typedef struct aq_words_state {
    uint16_t node;
    bool space;          /* the last character was white space */
    bool table;          /* set by the caller: bars of this line are those of a table */
    uint8_t run_classes; /* of the encoded run */
    uint32_t run;        /* its length so far */
} aq_words_state;

/* Reads data[from…to) of `len` bytes in all; `hits` is set. */
void aq_words_scan(const aq_words *w, aq_words_state *s, const unsigned char *data, size_t from,
                   size_t to, size_t len, aq_hits *hits);
/* The weight of a piece: different reasons add up, to 100 at most. */
unsigned aq_words_weight(const aq_hits *hits, aq_place place);
