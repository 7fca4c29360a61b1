/* Quarantine: a world with decoys. The one place where decoys become a plan for a sandbox. */
#pragma once

#include "decoy/decoy.h"
#include "sandbox/backend.h"

/* Puts the decoys into the plan: home, host, files and environment; rows that the plan's
 * environment already has win. Everything lives in the arena or in the decoys. */
void aq_quarantine_plan(aq_arena *a, const aq_decoys *d, aq_plan *plan);
/* What a world needs at once, and what its files need: for decoys of the built-in pack, when
 * aq_quarantine_plan of the whole follows as `later`. */
void aq_quarantine_outline(aq_arena *a, const aq_decoys *outline, aq_plan *plan);
/* Names that resolve in its internet, after that; borrowed. */
void aq_quarantine_resolve(aq_arena *a, const char *const *names, size_t count, aq_plan *plan);
