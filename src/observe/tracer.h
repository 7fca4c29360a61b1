/* The tracer: runs a small world of processes one task at a time and records every act.
 *
 * Theory of operation. The keeper makes a process that waits, attaches to it here, and lets it go;
 * the process enters a seccomp filter that stops it at every system call, and executes the
 * workload. From then on exactly one task (thread) of the world runs at any moment, on one CPU. At
 * each call all others are stopped, so what is read of its arguments is what the kernel will use:
 * no thread can change a path between record and use. A call that would block is never left
 * blocking in the kernel: it is emulated (futexes, sleeps), or tried without blocking and parked
 * until something happened. Time is virtual: it advances with calls and jumps when everybody
 * sleeps, so that sleeping costs nothing and is recorded. A task that waits without a call,
 * spinning, is proven to do so and parked as well (spin.c). So who runs when follows from the
 * programs alone; where it cannot, the record says so, and where it was, so that another run can
 * take it from there (switch.c).
 *
 * The tracer observes and schedules; containment is the business of the sandbox room. It trusts
 * nothing that it reads from a tracee, and it never follows a tracee's pointer twice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "model/machine.h"
#include "model/marks.h"
#include "model/observation.h"
#include "model/schedule.h"

typedef struct aq_tracer aq_tracer;

/* Why a run was ended from outside of it; AQ_STOP_NONE while it was not. */
typedef enum aq_stop {
    AQ_STOP_NONE,
    AQ_STOP_ASLEEP, /* every task waits for something that can never happen */
    AQ_STOP_CALLS,  /* more system calls than the plan allows */
    AQ_STOP_TASKS,  /* more tasks at once */
    AQ_STOP_TIME,   /* virtual time ran out */
    AQ_STOP_WALL,   /* the wall clock, a backstop: the result is inconclusive */
    AQ_STOP_MOVED,  /* bytes read and written */
    AQ_STOP_FULL,   /* the writable places took all that they may */
    AQ_STOP_SAID,   /* bytes of standard output and error */
    AQ_STOP_OVER,   /* the outside says so, and knows which limit it was */
} aq_stop;

typedef struct aq_tracer_plan {
    uint64_t calls, virtual_ns, wall_ms, moved_bytes; /* limits; 0 = none */
    uint32_t tasks;
    int64_t start_ns; /* what CLOCK_REALTIME says at the start, where there is no machine */
    /* The machine that the program is to see; NULL: this one. Borrowed. */
    const aq_machine *machine;
    int cpu; /* the CPU that all share, or -1 for the one we are on */
    /* Processor time that a task computes without a call while others could run; then they do. */
    uint64_t turn_ns;
    const aq_schedule *schedule; /* where tasks give way before that; NULL: nowhere. Borrowed. */
    /* The world outside: called with how long it may wait for something to happen there (output to
     * be drained, input to arrive). 1 when something did, 0 when nothing did yet, -1 when nothing
     * ever will. May be NULL: there is no outside. */
    int (*pump)(void *arg, int timeout_ms);
    /* A call (its number) was told that there is no space left, or that a file may not be so large.
     * May be NULL. */
    void (*full)(void *arg, long call, int error);
    /* How many bytes may still be written into the writable places; where that is none the run is
     * ended. May be NULL: as many as there is space for. */
    uint64_t (*room)(void *arg);
    /* Did a limit that the outside counts end the run? Then nobody makes another step, so that it
     * ends at the same place whoever is slow. May be NULL. */
    bool (*over)(void *arg);
    /* The pipes that are standard output and error at the start, and how many bytes may be written
     * to both; 0: no limit. */
    struct {
        uint64_t dev, ino;
    } output[2];
    uint64_t said_bytes;
    /* Called once, before the first call that could see or change anything in the writable places
     * of the world. May be NULL. */
    void (*touch)(void *arg);
    /* Called once, after that, before the first call that could see or change anything in `home`,
     * or in the folder of what the world trusts. May be NULL. */
    void (*lay)(void *arg);
    const char *home; /* with `lay` only */
    /* Called once, before the first look into /sys, which may be empty until then. May be NULL. */
    void (*hardware)(void *arg);
    /* What differs between worlds by design, asked when the first byte is written and once more
     * after `touch`; lives as long as the tracer. NULL, or returns NULL: nothing does. */
    const aq_marks *(*marks)(void *arg);
    /* Called when a file was opened, and before a file or folder (`below`: with all in it) gets
     * another name, size or time: the first large file there that has no content yet gets it.
     * False: there is none. Else says which one it is, when it was written (ns since 1970), and how
     * long it is. May be NULL. */
    bool (*large)(void *arg, const char *name, bool below, const char **path, int64_t *written,
                  uint64_t *len);
    /* Asks the outside for the machine's network, or for the internet behind it, which then says
     * hello on `line` (internet/line.h). May be NULL: there is none. */
    int (*reach)(void *arg, bool internet, aq_err *err);
    int (*alone)(void *arg); /* the internet is to end now; set when `reach` is */
    int line;
    void *arg;
} aq_tracer_plan;

typedef struct aq_tracer_end {
    aq_stop stop;
    int status;          /* wait status of the first process; valid when it ended by itself */
    uint64_t calls;      /* system calls of the whole world */
    uint64_t virtual_ns; /* virtual time that passed */
    uint64_t moved;      /* bytes read from and written to files, pipes and sockets */
    uint64_t written;    /* those that were written */
    uint32_t processes, tasks;
    uint64_t unseen; /* times that something could not be looked at: the record is not whole */
    bool preempted;  /* the wall clock had to decide who runs: not repeatable */
} aq_tracer_end;

aq_tracer *aq_tracer_new(const aq_tracer_plan *plan, aq_recorder *rec);
/* Attaches to a process that waits for its go (it must not have entered yet). */
int aq_tracer_attach(aq_tracer *t, pid_t first, aq_err *err);
/* In the process itself, after its go and right before exec: stops it at every call from then on.
 * Needs no_new_privs. Without an attached tracer every call fails with ENOSYS. */
int aq_tracer_enter(aq_err *err);
/* Runs the world until its first process and all others are gone, or a limit ended it. Nothing of
 * it lives on return. */
int aq_tracer_run(aq_tracer *t, aq_tracer_end *ret, aq_err *err);
void aq_tracer_free(aq_tracer *t); /* takes NULL */
