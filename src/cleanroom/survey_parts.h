/* What the files of the survey share with one another and with nobody else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

/* How comments begin, by the file's name. */
typedef enum aq_comment_style {
    AQ_COMMENT_HASH,
    AQ_COMMENT_SLASHES,
    AQ_COMMENT_DASHES,
    AQ_COMMENT_SEMICOLON,
    AQ_COMMENT_MARKUP,
} aq_comment_style;

aq_comment_style aq_survey_comments(const char *path);
bool aq_survey_prose(const char *path);
/* Is it a manifest, by its name? */
bool aq_survey_manifest(const char *path);
/* Can it be searched line by line? Text with a few odd bytes still can. */
bool aq_survey_readable(const unsigned char *data, size_t len);

/* The shape of a piece: a hash of its punctuation with identifiers, numbers, strings and runs of
 * words collapsed. `solid` tells how many bytes of it are not white space. */
uint64_t aq_survey_shape(const unsigned char *data, size_t len, size_t *solid);

/* The excerpt of data[from…to) around `at`: masked, quoted, at most AQ_LOOK_TEXT bytes. */
const char *aq_survey_excerpt(aq_arena *a, const unsigned char *data, size_t len, size_t from,
                              size_t to, size_t at);
