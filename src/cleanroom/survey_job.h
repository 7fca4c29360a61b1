/* The job "survey" of the jail and the frames that it speaks. */
#pragma once

#include <stdint.h>

#include "jail/jail.h"

enum {
    AQ_SURVEY_FILES = 1,  /* request: records of aq_survey_record, each followed by its path */
    AQ_SURVEY_RESULT = 1, /* answer: the survey as JSON, one frame */
};

typedef struct aq_survey_record {
    uint64_t offset, size; /* place in the image */
    uint32_t path;         /* bytes of the path that follows */
    uint32_t reserved;
} aq_survey_record;

/* Descriptor 0 is the image. */
extern const aq_jail_job aq_survey_job;
/* Its parts, for the table of all jobs. */
enum { AQ_SURVEY_MEMORY_MB = 3072, AQ_SURVEY_SECONDS = 300 };
int aq_survey_job_run(aq_jail_io *io, aq_err *err);
void aq_survey_job_warm(void);
