/* What this host's kernel offers: asked by doing, not by version numbers, wherever a harmless try
 * exists. Thin: no policy, no opinion on what is enough. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

/* What one mechanism of this host offers. */
typedef struct aq_probe_point {
    const char *name; /* "landlock", "cgroup.memory", "user-namespaces", "kvm" … */
    bool usable;
    const char *level;  /* "ABI 7", "v2", "6.1.0"; NULL when it has none */
    const char *remedy; /* what an operator can do when it is not usable; NULL when usable */
} aq_probe_point;

typedef struct aq_probe_list {
    aq_probe_point *points;
    size_t count, cap;
} aq_probe_list;

void aq_probe_add(aq_arena *a, aq_probe_list *l, const char *name, bool usable, const char *level,
                  const char *remedy);
/* Appends one point for each mechanism that tiers and jails build on. */
void aq_probe_host(aq_arena *a, aq_probe_list *l);
