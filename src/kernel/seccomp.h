/* Seccomp: a list of system calls that a process may still make; any other one kills it. Thin: the
 * list is the caller's, the filter is callfilter.h's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum aq_call_rule {
    AQ_CALL_ALLOW,
    AQ_CALL_ALLOW_MASKED, /* allowed while (argument & mask) == 0, else it kills */
    AQ_CALL_REFUSE,       /* returns `mask` as errno; for harmless calls that libraries try */
} aq_call_rule;

typedef struct aq_call {
    int nr;
    aq_call_rule rule;
    uint8_t argument; /* 0…5; its low 32 bits are looked at */
    uint32_t mask;
} aq_call;

/* Installs the list for this thread and what it becomes; needs no_new_privs. Calls of another
 * architecture (i386, x32) kill. */
int aq_seccomp_apply(const aq_call *calls, size_t count, aq_err *err);
