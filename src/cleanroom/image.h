/* The package's image while it is being filled: the front's own side of unpacking.
 *
 * Only the front writes it, and it hashes each byte as it writes it; no jail ever holds a writable
 * descriptor. So what was hashed is what is there. Private to this room. */
#pragma once

#include "base/err.h"
#include "base/mem.h"
#include "model/package.h"

typedef struct aq_image aq_image;

int aq_image_new(aq_arena *a, const char *temp_dir, aq_image **ret, aq_err *err);
void aq_image_free(aq_image *m); /* takes NULL */

/* One file after the other: begin, data…, then end or drop. `path` need not live on. */
int aq_image_begin(aq_image *m, const char *path, size_t len, bool executable, aq_err *err);
int aq_image_data(aq_image *m, const void *data, size_t len, aq_err *err);
/* Room for `len` ≤ AQ_IMAGE_ROOM bytes that the caller fills itself before aq_image_filled. */
enum { AQ_IMAGE_ROOM = 128 << 10 };
int aq_image_room(aq_image *m, void **ret, aq_err *err);
void aq_image_filled(aq_image *m, size_t len);
uint64_t aq_image_open_size(const aq_image *m); /* bytes of the file that is open */
int aq_image_end(aq_image *m, aq_err *err);
int aq_image_drop(aq_image *m, aq_err *err);
bool aq_image_is_open(const aq_image *m);

size_t aq_image_count(const aq_image *m);
uint64_t aq_image_bytes(const aq_image *m);
/* Sorts, leaves out the folder `wrapper` (NULL: none), and fills files, digest, bytes and the
 * read-only descriptor. -EBADMSG if paths are not canonical, unique, or all in the wrapper. */
int aq_image_seal(aq_image *m, const char *wrapper, size_t path_max, aq_package *ret, aq_err *err);
