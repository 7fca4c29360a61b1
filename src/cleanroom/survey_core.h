/* The survey's pure core: bytes in, counts and places to look out. No file, no clock, no order.
 *
 * Theory of operation. Two passes over the same files. The first classifies each file and counts
 * the *shape* of every piece of text (a line, or a part of a very long one): identifiers, numbers,
 * strings and runs of words collapsed, the attention words of rules/attention.tsv kept. The second
 * scores each piece: rarity of its shape times the weight of what is in it.
 *
 * Bounds: the counters are a count-min sketch of fixed size (2 rows of 2^20), which can only
 * overestimate, that is, take a rare line for a commoner one; the weight still counts then, since
 * rarity has a floor. Candidates: AQ_LOOKS in all, and of one file two before any other file is
 * left out; free places go to the rest of a file. Time is linear in the bytes.
 *
 * The result does not depend on the order of files: a file's candidates are its best pieces of
 * different shapes, and of candidates with one shape the best is kept; ties go by path, then line.
 */
#pragma once

#include "cleanroom/survey.h"

typedef struct aq_survey_scan aq_survey_scan;

aq_survey_scan *aq_survey_scan_new(void);
void aq_survey_scan_free(aq_survey_scan *s); /* takes NULL */

/* First pass, every file once. */
void aq_survey_count(aq_survey_scan *s, const char *path, const unsigned char *data, size_t len);
/* Second pass, the same files, after all of the first. */
void aq_survey_score(aq_survey_scan *s, const char *path, const unsigned char *data, size_t len);
/* Everything in `ret` lives in the arena. */
void aq_survey_finish(aq_survey_scan *s, aq_arena *a, aq_survey *ret);

/* The classes of a file; each file has one, the first that applies in this order. */
typedef enum aq_content {
    AQ_CONTENT_BINARY,    /* nobody can read it as text */
    AQ_CONTENT_VENDORED,  /* somebody else's, by its folder */
    AQ_CONTENT_MINIFIED,  /* text that is not for people */
    AQ_CONTENT_GENERATED, /* made by a program, by its name or its own words */
    AQ_CONTENT_PLAIN,
} aq_content;

aq_content aq_survey_classify(const char *path, const unsigned char *data, size_t len);

/* Appends `s` with everything that could be a secret masked: a token of a known sort or one that
 * looks random keeps its first four characters. Addresses, paths, options, names, digests stay. */
void aq_survey_mask(aq_buf *out, const char *s, size_t len);

/* Reads what aq_survey_json made, from the hostile side; the counts may not exceed the package. */
int aq_survey_read(aq_arena *a, const json_t *from, uint64_t files, uint64_t bytes, aq_survey *ret,
                   aq_err *err);
