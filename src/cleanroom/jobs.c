/* The table of everything that this program does in a jail. */
#include "cleanroom/gate.h"
#include "cleanroom/intake.h"
#include "cleanroom/survey_job.h"
#include "cleanroom/unpack_job.h"

const aq_jail_job aq_jobs[] = {
    {"unpack", aq_job_unpack, UINT64_C(512) << 20, 120, NULL},
    {"inspect", aq_job_inspect, UINT64_C(512) << 20, 120, NULL},
    {"manifest", aq_job_manifest, UINT64_C(2048) << 20, 60, aq_job_manifest_warm},
    {"gate", aq_gate_job, UINT64_C(256) << 20, 10, aq_gate_warm},
    {"survey", aq_survey_job_run, (uint64_t)AQ_SURVEY_MEMORY_MB << 20, AQ_SURVEY_SECONDS,
     aq_survey_job_warm},
    {.name = NULL},
};
