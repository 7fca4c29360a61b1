/* The frames that intake's jobs and the front exchange; docs/formats/jail.md lists them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "jail/jail.h"
#include "model/finding.h"
#include "model/package.h"

/* Front to child. */
enum {
    AQ_ASK_LIMITS = 1, /* aq_limits, then the input's name */
    AQ_ASK_FILES = 2,  /* records: aq_file_record and the path, one after the other */
    AQ_ASK_NAMES = 3,  /* paths of what is no file, each with its NUL */
};

/* Child to front. */
enum {
    AQ_TELL_FORM = 1, /* text: "tar.gz" */
    AQ_TELL_FILE,     /* u8 executable, then the path; opens a file */
    AQ_TELL_DATA,     /* bytes of the open file */
    AQ_TELL_DONE,     /* u64 size; closes it */
    AQ_TELL_DROP,     /* closes it, and its bytes are no part of the package */
    AQ_TELL_FINDING,  /* JSON, as aq_finding_canonical makes it */
    AQ_TELL_COUNT,    /* u32 findings beyond those sent, then the rule's name */
    AQ_TELL_UNREAD,   /* u64 bytes, u16 length of place, place, reason; text, quoted */
    AQ_TELL_WRAPPER,  /* text: the folder around everything */
    AQ_TELL_ACCOUNT,  /* aq_account */
    AQ_TELL_NESTED,   /* aq_nested_record, then format, then the path (raw) */
    AQ_TELL_MODEL,    /* JSON: the manifest */
    AQ_TELL_EARLY,    /* as AQ_TELL_FINDING: counts only if the child dies before the end */
    AQ_TELL_FOLDER,   /* path (raw) of a folder that has an entry of its own */
    AQ_TELL_LEFT_OUT, /* u8 AQ_LEFT_…, u32 length of path, path (raw), target or device */
};

enum { AQ_LEFT_LINK = 1, AQ_LEFT_SPECIAL = 2 };

typedef struct aq_limits {
    uint64_t limit[AQ_BUDGET_COUNT];
} aq_limits;

typedef struct aq_account {
    uint64_t read, unread; /* packed bytes */
} aq_account;

typedef struct aq_file_record {
    uint64_t offset, size;
    uint32_t path_len;
    uint32_t zero;
} aq_file_record;

typedef struct aq_nested_record {
    uint64_t entries, bytes;
    uint32_t format_len;
    uint32_t zero;
} aq_nested_record;

/* Where a job's answers go: to the jail's socket, or to a test that checks them. */
typedef struct aq_teller {
    int (*tell)(void *arg, uint16_t type, const void *payload, size_t len, aq_err *err);
    void *arg;
    int (*flush)(void *arg, aq_err *err); /* NULL: nothing waits */
} aq_teller;

aq_teller aq_teller_jail(aq_jail_io *io);
int aq_tell(const aq_teller *t, uint16_t type, const void *payload, size_t len, aq_err *err);
/* Child: sends all findings that were kept, and how many more there were of each rule. */
int aq_tell_findings(const aq_teller *t, aq_findings *f, aq_err *err);
/* Child: sends at once the first finding of each rule that is not in `told` yet. What is told so
 * counts if the child dies, so that a package cannot kill its reader to hide what was found. */
int aq_tell_early(const aq_teller *t, aq_findings *f, bool told[static AQ_RULE_COUNT], aq_err *err);
int aq_tell_unread(const aq_teller *t, const char *place, size_t place_len, const char *reason,
                   uint64_t bytes, aq_err *err);
/* Child: waits for AQ_ASK_LIMITS. */
int aq_answers_limits(aq_jail_io *io, aq_budget *budget, aq_buf *name, aq_err *err);
/* Child: the list of files, up to the end of the requests; offset, size and path are set. Records
 * that do not fit into `image` bytes are refused. */
int aq_answers_files(aq_jail_io *io, aq_arena *a, uint64_t image, const aq_file **ret,
                     size_t *count, aq_err *err);
/* Child: the same, with the names of what is no file. */
int aq_answers_all(aq_jail_io *io, aq_arena *a, uint64_t image, const aq_file **ret, size_t *count,
                   const char *const **names, size_t *name_count, aq_err *err);
/* Child: the size of a given descriptor; the C library's fstat() is not allowed there. */
int aq_answers_size(int fd, uint64_t *ret, aq_err *err);
/* Front: sends the list of files, as AQ_ASK_FILES. */
int aq_ask_files(aq_jail *j, const aq_package *p, aq_err *err);
/* Front: sends names, as AQ_ASK_NAMES. */
int aq_ask_names(aq_jail *j, const char *const *names, size_t count, aq_err *err);
/* Front: sends AQ_ASK_LIMITS. */
int aq_ask_limits(aq_jail *j, const aq_budget *budget, const char *name, aq_err *err);
/* Front: takes AQ_TELL_FINDING and AQ_TELL_COUNT; -EBADMSG for anything malformed. */
int aq_answers_take(aq_findings *to, uint16_t type, const void *payload, size_t len, aq_err *err);
