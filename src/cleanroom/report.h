/* The report: everything that the walk learned, as one JSON document (docs/formats/report.md), and
 * its three faces, all drawn from that document: text, HTML, SARIF. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/mem.h"
#include "cleanroom/stage.h"
#include "cleanroom/survey.h"
#include "model/verdict.h"

typedef struct aq_report_in {
    const aq_submission *submission;
    const aq_package *package;
    const aq_manifest *manifest;
    const aq_findings *findings;   /* sorted */
    const aq_stage_result *stages; /* AQ_LAYER_COUNT rows */
    const aq_survey *survey;
    const aq_policy *policy;
    const aq_budget *budget;
    aq_verdict verdict;
    aq_digest verdict_digest;
    aq_digest store_snapshot;
    aq_admission admission;
    uint64_t known_names; /* how many names the look-alike check had to compare with */
    const char *jail;     /* JSON: how parsers were contained on this host; NULL when none ran */
    int64_t time;
} aq_report_in;

/* New reference; schema aquarium/report/v1. */
json_t *aq_report_json(const aq_report_in *in);

typedef struct aq_text_options {
    bool colour;
    bool verbose;         /* every finding with why and fix, not only the first screen */
    bool whole;           /* nothing is cut: for files and pipes */
    bool next_steps;      /* a last line on what to do next */
    unsigned width;       /* columns */
    const char *evidence; /* its path, or NULL */
    const char *package;  /* as the user named it, for the next steps; or NULL */
} aq_text_options;

/* The words of seriousness, once for help, manual and HTML: word, blanks behind it, meaning. */
#define AQ_LEGEND_ROWS(ROW)                                                                        \
    ROW("reject", "  ", "a rule refuses the package; the walk ends")                               \
    ROW("grave", "   ", "a line that could do harm: look at it before anything else")              \
    ROW("starts", "  ", "runs without being asked: at installation, at an event, as a server")     \
    ROW("review", "  ", "a person must look")                                                      \
    ROW("unread", "  ", "was not read or not checked, so nothing is known about it")               \
    ROW("look", "    ", "a line unlike the others, or with a word worth a look")                   \
    ROW("share", "   ", "how much is generated, vendored, minified or binary")                     \
    ROW("info", "    ", "worth knowing; never changes a verdict")

void aq_report_text(const json_t *report, const aq_text_options *o, aq_buf *out);
void aq_report_html(const json_t *report, aq_buf *out);
json_t *aq_report_sarif(const json_t *report); /* SARIF 2.1.0, new reference */

/* The reviewer's checklist: at most 10 lines, worst risk first. Part of the report. */
enum { AQ_CHECKLIST = 10 };
json_t *aq_checklist(const aq_report_in *in);

/* "0.1.0+5f0c…": the version, and the first digits of a digest of all sources. The same on every
 * machine for the same sources. */
const char *aq_engine(void);
/* Digest of the rule table and of every data table that can change a finding. */
aq_digest aq_rules_digest(void);
size_t aq_rules_count(void); /* beside it, so that tests can hold the rule set still */
/* The sandbox tier that publisher and declared capabilities ask for ("t0", "t1", "t2"), and why. */
const char *aq_tier_wanted(const aq_submission *s, const aq_manifest *m, const char **why);
