/* The unpacking itself, apart from the jail around it: for the job, and for the fuzzer. */
#pragma once

#include "base/budget.h"
#include "cleanroom/answers.h"
#include "cleanroom/archive.h"
#include "jail/jail.h"

/* Reads a whole artifact and tells all that is in it. `name`: what a single file is called. */
int aq_unpack_core(const aq_source *source, const char *name, const aq_budget *limits,
                   const aq_teller *teller, aq_err *err);

int aq_job_unpack(aq_jail_io *io, aq_err *err);
int aq_job_inspect(aq_jail_io *io, aq_err *err);
int aq_job_manifest(aq_jail_io *io, aq_err *err);
void aq_job_manifest_warm(void);
