/* The capability declaration: one canonical form for every kind of package.
 *
 * Patterns are canonical when equal meanings have equal bytes: paths are normalised ("~/" kept, no
 * "." or ".." parts, no doubled or trailing slash), hosts are lower-case ASCII (IDNA) with an
 * optional leading "*." and ":port", secret names are as written. What cannot be brought to that
 * form is a finding of the reader and is kept out of the declaration. */
#pragma once

#include <jansson.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"

typedef enum aq_capability {
#define AQ_CAPABILITY(id, name, what) AQ_CAP_##id,
#include "model/capabilities.def"
#undef AQ_CAPABILITY
    AQ_CAP_COUNT
} aq_capability;

typedef struct aq_cap_group {
    bool present; /* absent ≠ empty */
    const char **patterns;
    size_t count;
} aq_cap_group;

typedef struct aq_capabilities {
    bool present; /* the manifest had a block at all */
    aq_cap_group group[AQ_CAP_COUNT];
} aq_capabilities;

const char *aq_capability_name(aq_capability c);

enum { AQ_CAP_PATTERNS = 512, AQ_CAP_PATTERN = 512 }; /* per group; bytes of one */

/* Adds one pattern as written. 0, or -EINVAL with the reason in `err` ("has a .. part"). */
int aq_capabilities_add(aq_capabilities *c, aq_arena *a, aq_capability group, const char *pattern,
                        aq_err *err);
/* Says "none" for a group that got no pattern. */
void aq_capabilities_none(aq_capabilities *c, aq_capability group);
/* Adds all patterns of `from`; a group that is empty there is not made empty here. */
void aq_capabilities_merge(aq_capabilities *c, aq_arena *a, const aq_capabilities *from);
/* Says "any" where a pattern has no canonical form or there are too many: never less than is so. */
void aq_capabilities_add_or_any(aq_capabilities *c, aq_arena *a, aq_capability group,
                                const char *pattern);
/* Sorts and drops duplicates; call once after the last add. */
void aq_capabilities_seal(aq_capabilities *c);

/* null when absent; else {"filesystem.read":[…], …} with only the groups that are present. */
json_t *aq_capabilities_json(const aq_capabilities *c);
int aq_capabilities_read(aq_arena *a, const json_t *from, aq_capabilities *ret, aq_err *err);
aq_digest aq_capabilities_digest(const aq_capabilities *c);
