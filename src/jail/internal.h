/* The wire between parent and child; docs/formats/jail.md describes it. Only this room reads it. */
#pragma once

#include <stdint.h>

#include "base/sanitize.h"

/* A sanitised build is for tests, and meson.build refuses one for release: its jail is wider where
 * the sanitizer needs it (one call more, no limit on addresses), and its child's standard error is
 * the front's, so that a report is seen. A front whose child died of a report ends at once: in a
 * test a report must never pass for a package that could not be read. */
#define AQ_JAIL_SANITIZER_TEXT "99"

enum {
    AQ_JAIL_SOCKET = 3,   /* the child's end; 0, 1 and 2 are /dev/null */
    AQ_JAIL_FIRST_FD = 4, /* the first given descriptor */
    AQ_JAIL_NOBODY = 65534,
    AQ_JAIL_SANITIZER = 99, /* exit status of a sanitised child after a report */
};

/* Types from here on are the jail's own; jobs use those below. */
enum {
    AQ_JAIL_JOB = 0xfffc,    /* to a child that was started ahead: its job's name and descriptors */
    AQ_JAIL_HELLO = 0xfffd,  /* first answer: how the child is contained (aq_jail_hello) */
    AQ_JAIL_FAILED = 0xfffe, /* the job gave up: a text */
    AQ_JAIL_END = 0xffff,    /* last one in both directions; from the child: u64 frames before it */
    AQ_JAIL_OWN = AQ_JAIL_JOB,
};

/* In place of a job's name: it will come in the first frame. */
#define AQ_JAIL_LATER "(later)"

typedef struct aq_jail_head {
    uint32_t len; /* of the payload that follows */
    uint16_t type;
    uint16_t fds; /* descriptors that travel with it; 0 in answers */
} aq_jail_head;

typedef struct aq_jail_hello {
    uint8_t landlock; /* ABI applied, 0 = none */
    uint8_t seccomp;
    uint8_t namespaces;
    uint8_t capabilities; /* 1 = all given up */
    uint8_t unprivileged; /* 1 = not root */
    uint8_t memory_limit;
} aq_jail_hello;
