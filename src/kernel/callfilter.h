/* A seccomp filter: every number of a call gets its verdict.
 *
 * What the verdict refuses never runs, whatever a tracer does: the refusal is the kernel's. Another
 * architecture (i386), the x32 numbers and numbers beyond the table get the verdict of all others.
 * The numbers are found by halving, over runs of neighbours with one verdict: a call costs about
 * seven instructions, and the kernel, which tries a new filter on every number, takes it quickly.
 * Built by hand: libraries for it know fewer calls than the kernels we meet. Thin: which call gets
 * which verdict is the caller's business. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { AQ_CALLFILTER_NUMBERS = 512, AQ_CALLFILTER_CODE = 4096 };

typedef struct aq_call_verdict {
    uint32_t action; /* SECCOMP_RET_… */
    uint32_t mask; /* where not 0: only while (argument & mask) == 0, else the process is killed */
    uint32_t argument; /* 0…5; its low 32 bits are looked at */
} aq_call_verdict;

typedef struct aq_callfilter {
    struct sock_filter code[AQ_CALLFILTER_CODE];
    uint16_t len;
} aq_callfilter;

/* `of[n]`: the verdict of call n; all others get `other`. */
int aq_callfilter_make(const aq_call_verdict *of, size_t count, uint32_t other, aq_callfilter *ret,
                       aq_err *err);
/* For this thread and what it becomes; needs no_new_privs. */
int aq_callfilter_install(const aq_callfilter *f, aq_err *err);
