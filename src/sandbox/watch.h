/* How a payload is watched: the place where the observer meets the container. Without one the
 * payload runs unobserved (tests, measurements). */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "model/observation.h"
#include "sandbox/backend.h"

/* Whom a watch calls. */
typedef struct aq_watch_hooks {
    /* Serves the world's outside: waits at most that many milliseconds; 1 something happened, 0
     * nothing yet, -1 nothing ever will. */
    int (*pump)(void *arg, int timeout_ms);
    void (*full)(void *arg, long call, int error); /* a call found no space */
    uint64_t (*room)(void *arg); /* bytes that may still be written; 0: the run is ended */
    bool (*over)(void *arg);     /* did a limit end the run? */
    /* Once, before the first call that could see or change something in the writable places. */
    void (*touch)(void *arg);
    /* Once, after that, before the first look at `home`, or at what the world trusts. NULL: both
     * were there with the rest. */
    void (*lay)(void *arg);
    const char *home;
    void (*hardware)(void *arg);         /* once, before the first look into /sys */
    const aq_marks *(*marks)(void *arg); /* of the plan as it is known by now */
    /* A file was opened, or it or a folder (`below`: all in it) is about to change: if something
     * large there has no content yet, gives it to the first such file and says which one it is,
     * when it was written and how long it is. */
    bool (*large)(void *arg, const char *name, bool below, const char **path, int64_t *written,
                  uint64_t *len);
    /* Asks for the machine's network, or for the internet behind it, which says hello on `line`. */
    int (*reach)(void *arg, bool internet, aq_err *err);
    int (*alone)(void *arg); /* asks for its end */
    void *arg;
    int line;      /* -1: the world has no internet */
    int output[2]; /* other ends of the payload's standard output and error */
} aq_watch_hooks;

typedef struct aq_watch {
    /* In the keeper, while the world is made; before the payload's go. */
    void *(*begin)(const aq_plan *plan, const aq_limits *limits, aq_recorder *rec,
                   const aq_watch_hooks *hooks);
    int (*attach)(void *watch, pid_t payload, aq_err *err);
    /* In the payload, after its go and right before exec. */
    int (*enter)(aq_err *err);
    /* In the keeper, until the world is empty. Sets exit_kind and exit_value when it ended the run.
     */
    int (*run)(void *watch, aq_observation *o, bool *ended, aq_err *err);
    void (*end)(void *watch); /* takes NULL */
} aq_watch;

/* NULL: nobody watches. */
extern const aq_watch *aq_container_watch;
