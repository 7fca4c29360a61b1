/* Names of entries: from raw bytes to a canonical path, and the set of those seen so far. Runs in
 * the jail; private to this room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "model/finding.h"

typedef enum aq_name {
    AQ_NAME_GOOD,
    AQ_NAME_UNTIDY, /* canonical after dropping empty and "." parts in the middle */
    AQ_NAME_ROOT,   /* "", "." or "./": the package itself */
    AQ_NAME_BAD,    /* refused: `rule` says why */
} aq_name;

/* Appends the canonical form to `out`. A leading "./" and a trailing "/" are usual and tidy. */
aq_name aq_name_canonical(const char *raw, size_t len, aq_buf *out, aq_rule_id *rule);

/* The last part of a path that does not end with a slash. */
const char *aq_path_last(const char *path);

/* Has the name a part "..", whichever of / and \ parts it? */
bool aq_name_leads_out(const char *name, size_t len);

/* Does a link at `path` with this target stay inside the package? */
bool aq_link_stays(const char *path, const char *target, size_t target_len);

typedef struct aq_path_set aq_path_set;
typedef enum aq_seen {
    AQ_SEEN_NEW,
    AQ_SEEN_FOLDER,   /* a folder that is there already: fine */
    AQ_SEEN_FILE,     /* the same path a second time */
    AQ_SEEN_CONFLICT, /* a file where a folder is, or below a file */
} aq_seen;

aq_path_set *aq_path_set_new(aq_arena *a);
void aq_path_set_free(aq_path_set *s);
/* Remembers a file or folder and the folders above it. */
aq_seen aq_path_set_add(aq_path_set *s, const char *path, size_t len, bool folder);
size_t aq_path_set_folders(const aq_path_set *s);

/* Where such a link leads, as a path of the package; for one that stays inside. */
void aq_link_resolve(const char *path, const char *target, aq_buf *ret);

/* What a file of this name is usually one part of ("a skill"), or NULL. */
const char *aq_part_of_package(const char *name);
