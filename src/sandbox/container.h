/* What the parts of the container backend show each other. Private to the container's files. */
#pragma once

#include "sandbox/backend.h"

const char *aq_container_guarantee(aq_arena *a, const aq_containment *c);
int aq_container_probe(aq_arena *a, aq_probe *ret, aq_err *err);
/* Until the world is made, or could not be; prepare() only begins it. */
int aq_container_await(aq_aquarium *aq, aq_err *err);
