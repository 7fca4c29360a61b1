/* The backend interface: one table of functions for every isolation technology.
 *
 * A backend runs one plan in one sealed world and returns an observation stream. It never judges,
 * never touches a report, and never assumes who made the namespaces it runs in. `probe` says what
 * holds on this host, and evidence records that: a weaker host gives a stated weaker guarantee. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/err.h"
#include "base/mem.h"
#include "kernel/probe.h"
#include "model/package.h"

typedef enum aq_sandbox_tier { AQ_T0, AQ_T1, AQ_T2 } aq_sandbox_tier;
const char *aq_sandbox_tier_name(aq_sandbox_tier t); /* "t0", "t1", "t2" */

typedef struct aq_probe {
    bool usable;           /* this backend can run here at all */
    const char *guarantee; /* one sentence: what holds on this host */
    aq_probe_point *points;
    size_t count;
} aq_probe;

/* What is to be run: filled by the exercise plan (L3) or a session profile. */
typedef struct aq_plan {
    const aq_package *package;
    const char *const *argv, *const *env;
    const char *cwd;
    uint64_t events, memory, processes, disk_bytes, output_bytes, virtual_ns; /* work limits */
    uint64_t wall_ms; /* backstop: passing it makes the result INCONCLUSIVE */
} aq_plan;

typedef struct aq_aquarium aq_aquarium; /* one run; each backend has its own */

typedef struct aq_backend {
    const char *name; /* "container", "wasm", "microvm", … */
    aq_sandbox_tier tier;
    int (*probe)(aq_arena *a, aq_probe *ret, aq_err *err);
    int (*prepare)(const aq_plan *plan, aq_aquarium **ret, aq_err *err);
    int (*launch)(aq_aquarium *aq, aq_err *err);
    /* Appends the observation stream (model/observation.h) to `stream`. */
    int (*wait)(aq_aquarium *aq, aq_buf *stream, aq_err *err);
    /* Takes NULL, any state, and is safe after a failed call: nothing survives it. */
    void (*teardown)(aq_aquarium *aq);
} aq_backend;

/* The rows of backends.def, NULL-terminated. */
const aq_backend *const *aq_backends(void);
const aq_backend *aq_backend_find(const char *name); /* NULL when unknown */

/* Runs a plan through prepare, launch, wait and teardown, tearing down on every path. */
int aq_backend_run(const aq_backend *b, const aq_plan *plan, aq_buf *stream, aq_err *err);
