/* What the parts of the container backend show each other. Private to the container's files. */
#pragma once

#include "sandbox/backend.h"

const char *aq_container_guarantee(aq_arena *a, const aq_containment *c);
int aq_container_probe(aq_arena *a, aq_probe *ret, aq_err *err);
/* The network of a world, in a namespace that this process was put into. */
int aq_container_network(aq_err *err);
