/* Calls that a new program makes for us before its first instruction, one after the other. The code
 * that makes them, and what it is given, lie in the page of our library (vdso.h), behind its own
 * functions, and are gone when the program begins. Each call is a single stop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "observe/internal.h"
#include "observe/vdso.h"

enum {
    AQ_SCRIPT_AT = 0x900, /* in the page; before it is the library's own */
    AQ_SCRIPT_ROWS = AQ_SCRIPT_AT + 0x40,
    AQ_SCRIPT_ORDERS = 16,
    AQ_SCRIPT_DATA = AQ_SCRIPT_ROWS + 64 * (AQ_SCRIPT_ORDERS + 1),
    AQ_SCRIPT_DATA_BYTES = AQ_VDSO_BYTES - AQ_SCRIPT_DATA,
};

/* As the code reads it. What comes out otherwise ends the script. */
typedef struct aq_order {
    uint64_t nr, args[6], expect;
} aq_order;

typedef struct aq_script {
    uint64_t home; /* of the page */
    aq_order order[AQ_SCRIPT_ORDERS + 1];
    size_t count;
    uint8_t data[AQ_SCRIPT_DATA_BYTES];
    size_t data_bytes;
    bool leaves; /* the last order moves the page itself */
} aq_script;

/* Where a call finds these bytes; 0: there is no room for them. */
uint64_t aq_script_data(aq_script *s, const void *data, size_t len);
/* False: there are too many already. */
bool aq_script_add(aq_script *s, long nr, const uint64_t args[6], uint64_t expect);
/* Into a page of AQ_VDSO_BYTES that holds the library. */
void aq_script_write(const aq_script *s, uint8_t *page);
/* Runs it, in a task that stopped at an exec or at the end of another script; `mem` is its memory,
 * where the script lies. Then it stands still, and `begin` must be given back to it, with no call
 * under way. `done`: how many came out as expected. False when the task has ended. */
bool aq_script_run(aq_task *k, int mem, const aq_script *s, const struct user_regs_struct *begin,
                   size_t *done, int *status);
