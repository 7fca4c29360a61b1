/* The jail: a child that can do nothing, for everything that reads hostile bytes.
 *
 * Theory of operation. The parent starts a fresh image of this program (fork + exec, so that none
 * of the parent's memory, keys included, is in it) with a socket and the given descriptors, and
 * nothing else. The child closes what it does not need, sets limits, gives up every privilege,
 * installs Landlock (nothing reachable) and seccomp (read, write, memory, exit; no open, no socket,
 * no exec), then runs one job. It answers in frames of bounded size; the parent checks each and
 * stops reading at the first that breaks a bound. A child that dies, hangs or lies costs its
 * parser's answer and nothing more.
 *
 *   parent                                   child "aquarium-jail JOB"
 *   ──────                                   ────────────────────────
 *   socketpair, exec, pass descriptors  →    lock in, run job
 *   aq_jail_request                     →    aq_jail_recv
 *   aq_jail_next                        ←    aq_jail_send
 *   wait: END frame + exit status 0     ←    END (count), exit
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    AQ_JAIL_FRAME = 1 << 20, /* bytes of one frame's payload */
    AQ_JAIL_FDS = 16,        /* descriptors given at the start */
    AQ_JAIL_FRAME_FDS = 64,  /* descriptors that one request frame may carry */
};

/* ---- child side ---- */

typedef struct aq_jail_io aq_jail_io;

/* One job: a pure function from descriptors and request frames to answer frames. Returning
 * non-zero, or dying, means that there is no answer. */
typedef struct aq_jail_job {
    const char *name;
    int (*run)(aq_jail_io *io, aq_err *err);
    uint64_t memory;  /* bytes of address space */
    uint32_t seconds; /* CPU seconds; a backstop, passing it is INCONCLUSIVE */
    /* Called before the lock: makes libraries load what they open on first use (aq_sha256 makes
     * OpenSSL read its configuration). NULL when the job needs none of that. */
    void (*warm)(void);
} aq_jail_job;

/* The descriptors given at the start, in the parent's order. */
int aq_jail_fd(const aq_jail_io *io, size_t index);
/* Next request frame; 0, or -ENODATA after the last. The payload lives until the next call; the
 * caller owns the descriptors (at most AQ_JAIL_FRAME_FDS, `*fd_count` is set). */
int aq_jail_recv(aq_jail_io *io, uint16_t *type, const void **payload, size_t *len,
                 int fds[static AQ_JAIL_FRAME_FDS], size_t *fd_count, aq_err *err);
/* Queues an answer frame; it may be buffered until aq_jail_flush or the end. */
int aq_jail_send(aq_jail_io *io, uint16_t type, const void *payload, size_t len, aq_err *err);
int aq_jail_flush(aq_jail_io *io, aq_err *err);

/* The child's whole life: called by main() when it was started as a jail. Never returns. */
_Noreturn void aq_jail_child(const aq_jail_job *jobs, int argc, char **argv);
/* Was this process started as a jail? */
int aq_jail_is_child(int argc, char **argv);

/* ---- parent side ---- */

typedef struct aq_jail aq_jail;

/* Says that `count` jobs will be started soon (at most AQ_JAIL_AHEAD count). Their children are
 * started now, each a fresh image as ever, and are loaded and linked by the time they are wanted;
 * until then they know nothing and hold nothing but their socket. Never fails: what could not be
 * started ahead is started when it is wanted. Those that nobody wanted end with the process, or by
 * aq_jail_expect(0). */
enum { AQ_JAIL_AHEAD = 8 };
void aq_jail_expect(size_t count);
/* Starts `job`; the descriptors are duplicated for the child and stay the caller's. */
int aq_jail_start(const char *job, const int *fds, size_t fd_count, aq_jail **ret, aq_err *err);
/* Sends a request frame, with descriptors if any. */
int aq_jail_request(aq_jail *j, uint16_t type, const void *payload, size_t len, const int *fds,
                    size_t fd_count, aq_err *err);
/* Says that no further request will come. */
int aq_jail_finish(aq_jail *j, aq_err *err);
/* Reads one answer frame. 1 with a frame, 0 at the END frame (whose count was checked), negative
 * on anything else: -EPIPE the child died, -EBADMSG it broke the protocol, -EOVERFLOW its answers
 * exceed `aq_jail_limit`, -ETIME its time ran out. The payload lives until the next call. */
int aq_jail_next(aq_jail *j, uint16_t *type, const void **payload, size_t *len, aq_err *err);
/* Is it one of these four? Then what was read is to blame, or its reader, and not this machine. */
bool aq_jail_blames(int result);
/* Is a whole answer frame here already, so that aq_jail_next would not wait? Reads what has
 * arrived, and never waits itself; also true when aq_jail_next would fail at once. */
bool aq_jail_ready(aq_jail *j);
/* The wall clock's backstop, in seconds from the start; default 300. */
void aq_jail_wall(aq_jail *j, uint32_t seconds);
/* Bounds on all answers together; defaults 1 << 20 frames and 256 MiB. */
void aq_jail_limit(aq_jail *j, uint64_t frames, uint64_t bytes);
/* How a child is contained on this host: {"landlock": 7, "seccomp": true, …}, found out by starting
 * one. For doctor. */
int aq_jail_guarantee(aq_buf *text, aq_err *err);
/* The same of a jail that has answered. */
void aq_jail_containment(const aq_jail *j, aq_buf *text);
/* Kills and reaps; takes NULL. */
void aq_jail_stop(aq_jail *j);
