/* Twins: what is equal by design between the worlds of a seed, for the canonical form of a run. */
#pragma once

#include "decoy/decoy.h"
#include "observe/canon.h"

/* Decoy values become {decoy:NAME}. NULL: nothing is replaced. `d` is borrowed. */
aq_canon_form aq_twins_form(const aq_decoys *d);
