/* Errors that a user can act on.
 *
 * A function that can fail returns 0 or a negative errno and takes an aq_err as its last
 * parameter; the text in it says what failed, where, and if possible what to do. The storage is
 * the caller's, so failing never allocates. A bad package is never an error: it is a finding. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct aq_err {
    int code; /* negative errno, 0 while nothing failed */
    char text[480];
} aq_err;

/* Control characters and malformed bytes in what is put into the text become question marks: it may
 * go to a terminal as it is. */

/* Sets the text and returns `code`, so that `return aq_fail(err, -EINVAL, …)` reads as one act.
 * `err` may be NULL where the caller only needs the number. */
int aq_fail(aq_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As aq_fail with -errno, and appends the system's words for it. */
int aq_fail_errno(aq_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the text that is already there, and returns err->code. */
int aq_err_within(aq_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* For programming errors and exhausted memory after sizes were bounded: says what and aborts
 * with status 70. Library code never calls it for anything that input can cause. */
_Noreturn void aq_panic(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
