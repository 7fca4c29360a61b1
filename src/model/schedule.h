/* A schedule: where the threads of one run gave way in the middle of work that makes no call.
 *
 * Such a switch is no act of a program and follows from none: somebody has to decide it. The first
 * time that is the host's clock, and the run does not repeat; but its record says where it was, in
 * words that hold for every run in the same world. A run that is given these places makes its
 * switches there, by counting, and then it does repeat. So the record of the one is the schedule of
 * the next, and there is no other form of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    AQ_SCHEDULE_ROWS = 4096,
    AQ_SCHEDULE_HITS = 4096, /* of one row */
};

/* One switch. Rows of a thread stand in the order in which they happened. */
typedef struct aq_switch {
    uint32_t process, thread; /* ordinals, as in an event */
    uint64_t call; /* how many calls it had begun: the switch is after the last of them */
    uint64_t at;   /* address of an instruction */
    uint32_t hits; /* it gives way when it comes there for the last of so many times */
    bool jump;     /* time goes on to the next moment at which something happens */
} aq_switch;

typedef struct aq_schedule {
    const aq_switch *rows;
    size_t count;
    size_t by_clock; /* of them, those that the clock decided in the run that this is read from */
} aq_schedule;

/* The schedule that a record gives: the switches that its run had planned, and those that the clock
 * decided. No rows: there were none, or none with a place. Takes the stream as hostile; more rows
 * than fit are left out. In the arena. */
int aq_schedule_read(aq_arena *a, const void *stream, size_t len, aq_schedule *ret, aq_err *err);
