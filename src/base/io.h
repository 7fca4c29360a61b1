/* Whole reads and writes, and files that appear whole or not at all. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* Reads exactly `len` bytes unless the input ends; returns the count or a negative errno. */
ssize_t aq_read_full(int fd, void *data, size_t len);
ssize_t aq_pread_full(int fd, void *data, size_t len, off_t at);
/* Writes all of it; 0 or a negative errno. */
int aq_write_full(int fd, const void *data, size_t len);

/* Appends the whole of `path` (relative to dirfd) to `out`; -EFBIG if it holds more than `max`. */
int aq_read_file(int dirfd, const char *path, size_t max, aq_buf *out, aq_err *err);
int aq_read_fd(int fd, const char *name, size_t max, aq_buf *out, aq_err *err);

/* Makes or replaces `name` in `dirfd`: unnamed file, fdatasync, link or rename, fsync of the
 * folder. After a kill at any point the old or the new content is there, never a mixture. */
int aq_write_file(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
                  aq_err *err);

/* Makes a folder and its parents, mode 0700; an existing folder is fine. */
int aq_make_dirs(const char *path, aq_err *err);
/* As above below `dirfd`, mode 0755: for files that others may read (ledger tiles). */
int aq_make_dirs_at(int dirfd, const char *path, aq_err *err);

/* An open file without a name in `dir` (or the temp folder if NULL): it vanishes with its last
 * descriptor, so a kill leaves nothing behind. */
int aq_temp_fd(const char *dir, aq_err *err);
/* A second, read-only descriptor for the same open file. */
int aq_reopen_read_only(int fd, aq_err *err);

/* Seconds since 1970 and its RFC 3339 form (UTC); `buf` holds at least AQ_TIME_LEN bytes. */
enum { AQ_TIME_LEN = 32 };
int64_t aq_now(void);
const char *aq_time_str(int64_t seconds, char buf[static AQ_TIME_LEN]);
/* Parses exactly that form; 0 or -EINVAL. */
int aq_time_parse(const char *s, int64_t *ret);
