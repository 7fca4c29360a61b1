/* A machine that does not exist: what a world says of itself when a program asks.
 *
 * One set of facts feeds every face of it (files of /proc and /sys, answers of calls, the network),
 * so that they agree. Facts are texts by name; rules/decoys/machine.pack has them. What identifies
 * the machine differs between the two worlds of a seed, and has the same length; everything else,
 * and everything random, is the same in both. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AQ_MACHINE_FIRST = 2431 }; /* process that a program is: a machine has had others before */

typedef struct aq_fact {
    const char *name, *value;
} aq_fact;

typedef struct aq_machine {
    uint8_t entropy[32]; /* key of all that is random inside; the same in both worlds of a seed */
    int64_t start_ns;    /* what CLOCK_REALTIME says when the program starts */
    uint64_t uptime_ns;  /* how long it has been up by then */
    const aq_fact *facts;
    size_t fact_count;
} aq_machine;

const char *aq_machine_fact(const aq_machine *m, const char *name); /* NULL when there is none */
/* A fact that is a decimal number; `otherwise` when there is none. */
uint64_t aq_machine_number(const aq_machine *m, const char *name, uint64_t otherwise);
/* Is it one that `on` tells of? A fact that it has, "!FACT" one that it has not; "" is every one.
 */
bool aq_machine_is(const aq_machine *m, const char *on);
/* The rate of its processor. */
uint64_t aq_machine_khz(const aq_machine *m);
