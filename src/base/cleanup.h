/* Scope-bound release: `aq_auto_fd int fd = open(…)`. One attribute a resource, so that an early
 * return never needs a label. */
#pragma once

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void aq_cleanup_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
static inline void aq_cleanup_free(void *p)
{
    free(*(void **)p);
}
static inline void aq_cleanup_json(json_t **j)
{
    json_decref(*j);
}

#define aq_auto_fd   __attribute__((cleanup(aq_cleanup_fd)))
#define aq_auto_free __attribute__((cleanup(aq_cleanup_free)))
#define aq_auto_json __attribute__((cleanup(aq_cleanup_json)))

/* Hands a scope-bound descriptor or pointer on: the scope forgets it. */
#define aq_take_fd(fd)                                                                             \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })
#define aq_take(p)                                                                                 \
    ({                                                                                             \
        __auto_type taken_ = (p);                                                                  \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
