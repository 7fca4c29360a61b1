/* The backend interface: one table of functions for every isolation technology.
 *
 * A backend runs one plan in one sealed world and returns an observation stream. It never judges,
 * never touches a report, and never assumes who made the namespaces it runs in. `probe` says what
 * holds on this host, and evidence records that: a weaker host gives a stated weaker guarantee. */
#pragma once

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "kernel/probe.h"
#include "model/limit.h"
#include "model/machine.h"
#include "model/marks.h"
#include "model/package.h"
#include "model/schedule.h"

typedef enum aq_sandbox_tier { AQ_T0, AQ_T1, AQ_T2 } aq_sandbox_tier;
const char *aq_sandbox_tier_name(aq_sandbox_tier t); /* "t0", "t1", "t2" */

typedef struct aq_probe {
    bool usable;           /* this backend can run here at all */
    const char *guarantee; /* one sentence: what holds on this host */
    aq_probe_point *points;
    size_t count;
} aq_probe;

/* A folder or file of the host that is shown inside. */
typedef struct aq_share {
    const char *from, *to; /* absolute; `to` must not lie in another share */
    bool writable;         /* writes go to the run's own space, never to the host */
} aq_share;
/* Is there room for a copy of it? A folder without one is read-only inside. Looks at the host. */
bool aq_share_fits(const aq_share *s, const aq_limits *limits);

/* Takes a part of a file; 0, or what is wrong. */
typedef int (*aq_plan_take)(void *arg, const void *data, size_t len);

/* A file or folder that the world has from the start: below a writable place, or a file in /etc. */
typedef struct aq_plan_file {
    const char *path; /* absolute */
    const char *data;
    size_t len;
    /* Of a large file, which is written when somebody opens it: says what it holds, part by part,
     * from its begin on; `data` is a matter of its own. NULL: `data` is the content. */
    int (*say)(const struct aq_plan_file *f, aq_plan_take take, void *arg);
    unsigned mode;
    int64_t mtime; /* seconds since 1970 */
    uint32_t mtime_ns;
    bool folder; /* stands before what is in it */
} aq_plan_file;

enum { AQ_PLAN_FILES = 4096 };

enum { AQ_LEFT_OUT_NAME = 256 };

/* How a run was really contained: what held, not what was hoped for. */
typedef struct aq_containment {
    int landlock;       /* ABI that was applied, 0 = none */
    bool own_ids;       /* identities that nothing else on the host has */
    bool clocks;        /* a time namespace */
    bool proc;          /* a /proc of its own; else none at all */
    const char *memory; /* "cgroup v2", "cgroup v1", "rlimit" */
    const char *processes;
    const char *cpu;
    const char *rate; /* "cgroup v2", "cgroup v1", "one processor" (the observer's), "none" */
    const char *io, *disk, *output;
    /* Files of shared folders that cannot be read without rights, and so are not inside. */
    uint32_t left_out;
    char left_out_first[AQ_LEFT_OUT_NAME];
} aq_containment;

json_t *aq_containment_json(const aq_containment *c);

/* What is to be run: filled by the exercise plan (L3), a session profile or `aquarium run`. */
typedef struct aq_plan {
    /* What takes long to say may be said while the world is made already: called once, by prepare,
     * to put env, world, home, host, a machine with its internet and files into that plan, all of
     * it from the arena. NULL: everything is here. */
    int (*late)(void *arg, aq_arena *a, struct aq_plan *plan, aq_err *err);
    /* What takes longer still, when the program first looks around: called at most once, by wait,
     * to put files and authority into that plan. What `late` said is here their room (whole pages)
     * and number. Not for a plan whose cwd may lie in one of them. */
    int (*later)(void *arg, aq_arena *a, struct aq_plan *plan, aq_err *err);
    void *late_arg;
    /* A secret from which all of the world follows, its authority's key too. The backend takes it
     * from the memory of whoever watches the program. */
    char *secret;
    size_t secret_len;
    uint64_t later_room, later_large; /* of the large ones, apart */
    size_t later_count;
    const aq_package *package;
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH inside */
    const char *const *env;  /* "NAME=value" rows beside those that every run gets; may be NULL */
    const char *cwd;         /* inside; NULL: the home */
    const char *world;       /* label in the observation; NULL: "A" */
    const char *home;        /* below /home; NULL: /home/user */
    const char *host;        /* the host's name; NULL: debian */
    /* The machine that the program is to see; NULL: this one, with its clock and its randomness. */
    const aq_machine *machine;
    /* A sealed memory file with what the internet of this machine knows, made when the program
     * first reaches out; NULL: there is none. */
    int (*internet)(const struct aq_plan *plan, aq_err *err);
    const void *internet_of; /* whatever that needs */
    const char
        *authority; /* a certificate in PEM that the world trusts beside the host's; or NULL */
    const char *keystore; /* the same for Java, where the host has one; or NULL */
    size_t keystore_len;
    const aq_schedule *schedule; /* where threads give way while they compute; or NULL */
    const char *tree;            /* folder of the host with files that every machine has, or NULL */
    const aq_plan_file *files;
    size_t file_count;
    const aq_mark *marks; /* values that differ between worlds by design */
    size_t mark_count;
    const char *rootfs; /* folder of the host that is the root instead of the base; or NULL */
    const aq_share *shares;
    size_t share_count;
    bool has_input;  /* `input` is copied to standard input; else that is empty */
    bool has_output; /* standard output and error are also written to `output` and `error` */
    int input, output, error;
    aq_limits limits;            /* zeros: the defaults */
    aq_containment *containment; /* filled by launch; may be NULL */
    /* NULL: a signal that asks us to end does so, and the world dies with us. Else the first one
     * while the world runs only ends the run, as wall-ms would, and its number is put here. */
    int *interrupted;
    int *lost; /* why output could not be passed on, an errno, or 0; filled by wait; may be NULL */
} aq_plan;

/* What a backend returns, negative, when the plan asks for what cannot be: the caller's mistake,
 * told in words for the caller, and no failure of ours. */
enum { AQ_EPLAN = EDOM };

/* In a child that must not know its secret. */
void aq_plan_forget(const aq_plan *plan);
/* Is it something that may be asked for? Looks at the plan alone; -AQ_EPLAN. */
int aq_plan_check(const aq_plan *plan, aq_err *err);

typedef struct aq_aquarium aq_aquarium; /* one run; each backend has its own */

typedef struct aq_backend {
    const char *name; /* "container", "wasm", "microvm", … */
    aq_sandbox_tier tier;
    int (*probe)(aq_arena *a, aq_probe *ret, aq_err *err);
    /* The same sentence about one run, from what really held. */
    const char *(*guarantee)(aq_arena *a, const aq_containment *c);
    /* Begins to make a world. It may still be in the making when this returns: what fails later is
     * told by launch. */
    int (*prepare)(const aq_plan *plan, aq_aquarium **ret, aq_err *err);
    int (*launch)(aq_aquarium *aq, aq_err *err);
    /* Appends the observation stream (model/observation.h) to `stream`. */
    int (*wait)(aq_aquarium *aq, aq_buf *stream, aq_err *err);
    /* Takes NULL, any state, and is safe after a failed call: nothing survives it. */
    void (*teardown)(aq_aquarium *aq);
} aq_backend;

/* The rows of backends.def, NULL-terminated. */
const aq_backend *const *aq_backends(void);
const aq_backend *aq_backend_find(const char *name); /* NULL when unknown */

/* Runs a plan through prepare, launch, wait and teardown, tearing down on every path. */
int aq_backend_run(const aq_backend *b, const aq_plan *plan, aq_buf *stream, aq_err *err);
/* The same up to the teardown, which is the caller's, also after a failure: what is left of the
 * world ends while the caller uses the stream. */
int aq_backend_observe(const aq_backend *b, const aq_plan *plan, aq_aquarium **ret, aq_buf *stream,
                       aq_err *err);
