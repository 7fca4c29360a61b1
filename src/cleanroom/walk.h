/* The walk of a submission: intake, then each stage, then verdict, report, evidence, ledger. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "cleanroom/intake.h"
#include "cleanroom/stage.h"
#include "ledger/ledger.h"
#include "store/store.h"
#include "trust/keys.h"

/* The state folder, opened: keys, store and ledger. */
typedef struct aq_home {
    char *path;
    int dirfd;
    aq_keys *keys;
    aq_store *store;
    aq_ledger *ledger;
} aq_home;

/* `path` NULL: $AQUARIUM_HOME, else $XDG_STATE_HOME/aquarium, else ~/.local/state/aquarium. */
char *aq_home_path(const char *given, aq_err *err); /* NULL with `err` set; the caller frees */
int aq_home_open(const char *path, aq_home *ret, aq_err *err);
/* As above, but makes nothing: -ENOENT when there is no state folder yet. */
int aq_home_open_existing(const char *path, aq_home *ret, aq_err *err);
/* As above for who only checks: the ledger may be missing, and then it is NULL. */
int aq_home_open_to_check(const char *path, aq_home *ret, aq_err *err);
void aq_home_close(aq_home *h);
/* The store remembers which entry each report and revocation got: -EBADMSG when the ledger does not
 * reach so far, or has another entry there.
 * Appending to a ledger that was cut or wiped would make a second history. */
int aq_home_check_ledger(aq_home *h, aq_err *err);
/* For an error of the ledger, which names its files from its own folder on: says where that is, and
 * for damage what to do. Returns the error's code. */
int aq_home_ledger_failed(const aq_home *h, aq_err *err);

typedef struct aq_walk_options {
    const char *path, *artifact;
    const aq_policy *policy; /* NULL: that of the state folder */
    aq_progress progress;
    void *progress_arg;
} aq_walk_options;

typedef struct aq_walk_result {
    aq_verdict verdict;
    json_t *report, *evidence; /* owned */
    char *evidence_path;       /* where the state folder keeps it; owned */
    bool no_input;             /* the walk failed because the input cannot be opened */
} aq_walk_result;

/* Negative when we failed before a verdict could be recorded. */
int aq_walk(aq_home *home, const aq_walk_options *o, aq_walk_result *ret, aq_err *err);
void aq_walk_result_free(aq_walk_result *r);
