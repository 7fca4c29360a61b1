/* The file systems of a machine that does not exist, and where they are mounted (places.def). */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum aq_place_kind {
    AQ_PLACE_DISK,       /* ext4 */
    AQ_PLACE_OTHER_DISK, /* another, which is of no use to a user */
    AQ_PLACE_MEMORY,     /* tmpfs */
    AQ_PLACE_DEVICES,
    AQ_PLACE_TERMINALS,
    AQ_PLACE_PROC,
    AQ_PLACE_SYS,
} aq_place_kind;

typedef struct aq_place {
    const char *path;
    uint32_t id, parent; /* of the mount */
    uint32_t major, minor;
    aq_place_kind kind;
    const char *type, *source, *options, *own;
} aq_place;

extern const aq_place aq_places[];
extern const size_t aq_place_count;

/* The one that an absolute path lies in, links not followed. Never NULL: the first has the rest. */
const aq_place *aq_place_of(const char *path);
