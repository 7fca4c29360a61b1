/* Twins: runs that repeat. */
#pragma once

#include "sandbox/backend.h"

/* Runs a plan until its run repeats: as it is, and while the host's clock had a hand in who ran
 * when, again with the schedule that the record of the last run gives; at most `rounds` times.
 * Appends the record of the last one to `stream`, and says which schedule that one had: whatever is
 * to be compared with it gets the same. In the arena. */
int aq_twins_run(aq_arena *a, const aq_backend *b, const aq_plan *plan, unsigned rounds,
                 aq_schedule *schedule, aq_buf *stream, aq_err *err);
