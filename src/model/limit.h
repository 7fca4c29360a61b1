/* Limits of one run: what a world may use before it is ended. Unlike the work budgets of
 * base/budget.h they bound a program that runs, not our reading of a package. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum aq_limit {
#define AQ_LIMIT(id, name, fallback, what) AQ_LIMIT_##id,
#include "model/limits.def"
#undef AQ_LIMIT
    AQ_LIMITS
} aq_limit;

typedef struct aq_limits {
    uint64_t most[AQ_LIMITS]; /* 0: the default of the table */
} aq_limits;

const char *aq_limit_name(aq_limit l); /* "memory" */
/* Does the host decide, by its clock or by how it gives out pages, where a run is when it ends by
 * this limit? */
bool aq_limit_by_clock(aq_limit l);
int aq_limit_find(const char *name, size_t len); /* -1 when unknown */
const char *aq_limit_what(aq_limit l);           /* "bytes of memory" */
/* "512", and for bytes "64M" too; 0 when it is no such number. */
uint64_t aq_limit_parse(aq_limit l, const char *text);
/* The given limits with defaults where they say nothing; `given` may be NULL. */
aq_limits aq_limits_filled(const aq_limits *given);
