/* The survey: what a reviewer would want to know before reading, and where to look first (A10).
 *
 * Counts shares of generated, vendored, minified and binary content, and ranks the few lines that
 * are unlike all others or carry weight, so that one planted line in thousands of boring files
 * stands on the first screen. It informs the checklist and accuses nobody; only that it could not
 * finish is a finding, since unread is not safe. Runs in the jail.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/mem.h"
#include "model/package.h"

enum {
    AQ_LOOKS = 10,
    AQ_LOOK_TEXT = 160,
    AQ_LOOK_LEAST = 12, /* a line that weighs less is no place to look */
    AQ_LOOK_GRAVE = 60,
    AQ_SHARES = 4,      /* binary, vendored, minified, generated: the order of aq_content */
    AQ_SHARE_NAMES = 3, /* files of each that are named */
};

typedef struct aq_look {
    const char *file; /* quoted */
    uint32_t line;
    uint32_t score;
    uint32_t weight;  /* what is in the line, 0…100; AQ_LOOK_GRAVE and more is grave */
    uint32_t in_file; /* lines of weight in that file, this one among them */
    const char *why; /* mentions “curl” and “| sh”: could download, pipe text into a shell */
    const char *text; /* excerpt, what cannot be seen as \xHH; secrets masked */
} aq_look;

typedef struct aq_survey {
    bool complete;      /* false: the budget ended or the parser died */
    const char *reason; /* why it is not complete, one sentence; NULL when it is */
    uint64_t files, bytes, lines;
    uint64_t generated_files, generated_bytes;
    uint64_t vendored_files, vendored_bytes;
    uint64_t minified_files, minified_bytes;
    uint64_t binary_files, binary_bytes;
    const char *largest[AQ_SHARES][AQ_SHARE_NAMES]; /* quoted, the largest first; NULL behind */
    uint64_t look_lines, look_files;                /* all that weigh something, shown or not */
    uint64_t grave_lines, grave_files;              /* those that are grave */
    aq_look looks[AQ_LOOKS];                        /* by score, then file, then line */
    size_t look_count;
} aq_survey;

int aq_survey_run(aq_arena *a, const aq_package *package, aq_budget *budget, aq_survey *ret,
                  aq_err *err);
json_t *aq_survey_json(const aq_survey *s);
