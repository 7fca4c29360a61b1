/* Intake: from bytes to one immutable package, read once, in a jailed child.
 *
 * The front opens the input and passes descriptors; the child unpacks and tells files in frames;
 * the front checks every answer, and writes and hashes the contents itself: no child ever holds a
 * writable descriptor of the image. What is wrong with the package becomes a finding of
 * layer intake; an error is only ever ours (or: the input does not exist). */
#pragma once

#include "base/budget.h"
#include "base/err.h"
#include "jail/jail.h"
#include "model/finding.h"
#include "model/manifest.h"
#include "model/package.h"
#include "model/submission.h"

typedef struct aq_intake {
    aq_submission submission;
    aq_package package;
    aq_manifest manifest;
    bool broken;      /* a jailed parser gave no answer: the verdict is INCONCLUSIVE */
    const char *jail; /* how the manifest's parser was contained, as JSON; NULL when none ran */
} aq_intake;

/* Called now and then with what was done so far; NULL for silence. */
typedef void (*aq_progress)(void *arg, const char *doing, uint64_t files, uint64_t bytes);

/* `path`: folder, .tar, .tar.gz, .tar.zst, .zip, .wasm, or an Intake v1 envelope (.json) whose
 * artifact is `artifact` (NULL: the file named like the envelope without .json, or beside it).
 * Everything lives in the arena; call aq_intake_close at the end. */
int aq_intake_open(aq_arena *a, const char *path, const char *artifact, const char *temp_dir,
                   aq_budget *budget, aq_findings *findings, aq_progress progress, void *arg,
                   aq_intake *ret, aq_err *err);
void aq_intake_close(aq_intake *in);

/* Everything that runs in a jail; main() hands it to aq_jail_child. */
extern const aq_jail_job aq_jobs[];

/* The steps, for tests and `verify EVIDENCE PACKAGE`, which needs only the digest. */
int aq_unpack(aq_arena *a, const char *path, const char *temp_dir, aq_budget *budget,
              aq_findings *findings, aq_progress progress, void *arg, aq_package *ret, aq_err *err);
