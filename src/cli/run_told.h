/* Which rows of a run's lists say something about this program and no other. Pure functions over
 * the summary and what the run left. */
#pragma once

#include "cli/run_text.h"

typedef enum aq_told {
    AQ_TOLD_ROW,     /* a row of its own */
    AQ_TOLD_SYSTEM,  /* what every program does: counted in one line */
    AQ_TOLD_PASSING, /* made and removed again: likewise */
    AQ_TOLD_DULL,    /* told elsewhere, or nothing at all */
    AQ_TOLD_CLASSES
} aq_told;

aq_told aq_told_all(const aq_run_result *r, const char *text);
aq_told aq_told_host(const aq_run_result *r, const char *text);
aq_told aq_told_written(const aq_run_result *r, const char *path);
aq_told aq_told_removed(const aq_run_result *r, const char *path);
aq_told aq_told_read(const aq_run_result *r, const char *path);
aq_told aq_told_absent(const aq_run_result *r, const char *path);
aq_told aq_told_denied(const aq_run_result *r, const char *path);

/* Among five hundred files of a project the one key is what matters, so the home comes first. */
bool aq_told_at_home(const aq_run_result *r, const char *path);
/* The rest of a path below a folder, "" for the folder itself; NULL when it is elsewhere. */
const char *aq_below(const char *path, const char *folder);
/* Was `text` of the list? */
bool aq_listed(const aq_summary_list *l, const char *text);
/* The host of a row of hosts: "https://HOST/…", or the row itself. How long it is. */
size_t aq_host_of(const char *text, const char **ret);
