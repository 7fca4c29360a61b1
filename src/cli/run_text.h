/* What `aquarium run` says about a run to people. */
#pragma once

#include <stdio.h>

#include "model/observation.h"
#include "model/summary.h"
#include "sandbox/backend.h"
#include "session/secrets.h"

typedef struct aq_run_result {
    const aq_backend *backend;
    const char *guarantee; /* what held */
    const aq_containment *held;
    const char *seed; /* of the world */
    int64_t start;    /* of its clock */
    const aq_observation *observation;
    const aq_summary *summary;
    const aq_secrets *secrets; /* NULL: the world has none */
    const char *command;       /* as it was given */
    const char *outside;       /* where a command that did not start lies on the host; or NULL */
    bool outside_shared;       /* that place is inside too */
    const char *record;        /* a record that was written where a next run sees it; or NULL */
    const char *read_only; /* a shared folder that is too large for a copy, and was written to */
    bool input_unread;     /* there was input, it was not asked for, and the command read */
    aq_digest canonical;   /* the same for equal runs in equal worlds */
    int status;            /* that the command line ends with */
    const aq_limits *limits;
    const char *home; /* inside */
    const aq_share *shares;
    size_t share_count;
    bool folder_kept_out; /* nothing was named, and the current folder is too wide to be shown */
    int interrupted;      /* by this signal to us; 0: by none */
    bool scheduled;       /* there was a schedule */
    uint64_t elapsed_ms;  /* of real time: no fact about the program */
} aq_run_result;

/* Is something of the record only counted? */
bool aq_run_truncated(const aq_run_result *r);
/* Does the record show all that the command did? If not the result is inconclusive. */
bool aq_run_complete(const aq_run_result *r);
/* Did nothing but the programs decide who ran when? If not another run may differ. */
/* Did a limit end it that counts the host's time? */
bool aq_run_cut(const aq_run_result *r);
bool aq_run_repeatable(const aq_run_result *r);
/* A minute's reading: at most some rows of each list, the most telling first. */
void aq_run_text(const aq_run_result *r, bool colour, FILE *to);
/* The schedule that the record in a file gives; AQ_PARSE_RUN, or the exit status. */
int aq_run_schedule(aq_arena *a, const char *path, aq_schedule *ret);
/* The object of --json. */
json_t *aq_run_json(const aq_run_result *r);
/* When we failed: nothing is known of the command. */
json_t *aq_run_failed_json(const aq_err *err);
