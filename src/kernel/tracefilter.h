/* The seccomp filter of a traced world: every number is either shown to the tracer or trapped.
 *
 * Trapped calls never run, whatever the tracer does: the refusal is the kernel's. Another
 * architecture (i386), the x32 numbers and numbers beyond the table are trapped. The numbers are
 * found by halving, over runs of neighbours with one verdict, so that a call costs about seven
 * instructions. Thin: which call gets which verdict is the caller's business. */
#pragma once

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { AQ_TRACEFILTER_CODE = 2048 };

typedef struct aq_tracefilter {
    struct sock_filter code[AQ_TRACEFILTER_CODE];
    uint16_t len;
} aq_tracefilter;

/* `shown[n]`: is call n shown to the tracer? At most 512 numbers. */
int aq_tracefilter_make(const bool *shown, size_t count, aq_tracefilter *ret, aq_err *err);
/* For this thread and what it becomes; needs no_new_privs. */
int aq_tracefilter_install(const aq_tracefilter *f, aq_err *err);
