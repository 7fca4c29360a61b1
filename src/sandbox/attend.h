/* Attending a world from outside while it runs: outputs are passed on, counted and hashed, input is
 * fed, limits that the kernel only counts are looked at, and the front's end is noticed. Private to
 * the container's files.
 *
 * Two ways in. aq_attend() is called whenever the keeper has time. A timer and the control socket
 * interrupt it when it has none: their handlers only look, remember the reason, and kill init. */
#pragma once

#include "base/digest.h"
#include "sandbox/world.h"

enum { AQ_PENDING = 64 << 10 };

typedef struct aq_stream {
    int from, to; /* -1: closed */
    uint64_t bytes;
    aq_hash *hash;
    aq_hash *content; /* with marks replaced, in blocks of one size however it came; or NULL */
    aq_mark_at mark_at;
    aq_buf block;
    char head[AQ_EVENT_TEXT];
    size_t head_len;
    char pending[AQ_PENDING]; /* read and not yet passed on */
    size_t start, end;
    int lost; /* why some of it could not be passed on, 0 while all could */
} aq_stream;

typedef struct aq_attendant {
    aq_world *world;
    aq_arena *arena;
    const aq_marks *marks; /* what the world's values stand for, as `marked` says it; or NULL */
    const aq_plan *marked;
    aq_stream in, out[2];
    uint64_t deadline_ms;
    uint64_t peak_memory, cpu_ns; /* as counted by us, where no cgroup counts */
    aq_cgroup_usage used;         /* at the last look */
    unsigned looks;
    int idle;        /* milliseconds in which nothing happened; below 0: it rests */
    bool has_status; /* init told how the payload ended */
    int status;
    bool empty;       /* nobody but init is left */
    bool init_gone;   /* it says nothing more */
    bool init_killed; /* by somebody outside */
    bool touched;     /* the payload may have seen or changed what is in writable places */
    int failed;       /* then something of ours did: */
    aq_err error;
    volatile int limit;    /* the limit that ended the run, -1 while none did */
    volatile int orphaned; /* the front is gone */
} aq_attendant;

/* Starts: the world is there and the payload waits for its go. */
int aq_attend_begin(aq_attendant *a, aq_world *w, aq_err *err);
/* Serves for at most `timeout_ms`; 1 something happened, 0 nothing, -1 nothing ever will. */
int aq_attend(void *attendant, int timeout_ms);
/* The same for a watch: -1 also when nothing outside can make a world go on that stands still. */
int aq_attend_pump(void *attendant, int timeout_ms);
/* Something inside was told that there is no space left for it: the run ends if that is a limit of
 * ours, also when the program would make room again at once. */
void aq_attend_full(void *attendant, long call, int error);
uint64_t aq_attend_room(void *attendant); /* bytes that may still be written; 0 ends the run */
bool aq_attend_over(void *attendant);     /* did a limit end the run? */
const aq_marks *aq_attend_marks(aq_attendant *a); /* of the plan as it is known by now; or NULL */
/* Of all that went out there, with marks replaced; at the end. */
aq_digest aq_attend_content(aq_attendant *a, aq_stream *s);
/* What is still in the pipes once everybody inside is dead; stops timer and handlers. */
void aq_attend_end(aq_attendant *a);
/* Looks at the limits once more, when all is over. */
void aq_attend_check(aq_attendant *a);
void aq_attend_free(aq_attendant *a);
