/* Archives that the private internet hands out, written into memory: zip, and tar in gzip. Contents
 * are stored and not deflated, times are given, so the same files are the same bytes on every host.
 */
#pragma once

#include <stdint.h>

#include "base/mem.h"

typedef struct aq_zip {
    aq_buf out, central;
    uint16_t count;
} aq_zip;

void aq_zip_add(aq_zip *z, const char *path, const void *data, size_t len);
/* Hands the archive over and empties `z`. */
void aq_zip_end(aq_zip *z, aq_buf *ret);

/* A path has at most 100 bytes. */
void aq_tar_add(aq_buf *tar, const char *path, uint32_t seconds, const void *data, size_t len);
/* Ends the tar and hands it over in gzip; `tar` is freed. */
void aq_tar_end(aq_buf *tar, aq_buf *ret);
