/* A ware: a package that an index of the private internet has. It is code that a program runs, so
 * both worlds of a seed get the same one, byte for byte, whatever host is asked; another seed has
 * another. It depends on its name and the key that both worlds share, never on a clock. */
#pragma once

#include "internet/fill.h"
#include "internet/shelf.h"

enum { AQ_WARE_VERSION = 48, AQ_WARE_GIVEN = 24, AQ_WARE_PATH = 160 };

typedef struct aq_ware {
    const aq_shelf *shelf;
    const char *kind; /* of files in the pack: wheel, tarball, crate, module */
    aq_scene scene;
    aq_fact given[AQ_WARE_GIVEN]; /* what templates may name; below is what they point to */
    char version[AQ_WARE_VERSION + 1], time[32], file[AQ_WARE_PATH], size[16], place[72];
    char sha256[AQ_SHA256_HEX], sha1[41], sha512[96], serial[8], latest[AQ_WARE_VERSION + 1];
    aq_buf summary, author, origin;
} aq_ware;

/* `name` is legal for its kind. False: nobody has such a thing, and nothing was made. */
bool aq_ware_begin(aq_ware *w, aq_ask *q, const char *kind, const char *name);
/* Its version from now on, without what follows from the archive: digests and size. */
void aq_ware_name_version(aq_ware *w, const char *version);
/* The same with all that follows; the archive itself goes to `archive`, if that is not NULL. */
void aq_ware_version(aq_ware *w, const char *version, aq_buf *archive);
void aq_ware_number(aq_ware *w, size_t i, bool whole); /* the shelf's version `i` */
/* Adds a text of the pack. */
void aq_ware_put(aq_ware *w, const char *text, aq_buf *out);
/* Adds a text for every version, with `between` between them; `whole`: it names digests or size. */
void aq_ware_put_all(aq_ware *w, const char *text, bool whole, const char *between, aq_buf *out);
void aq_ware_free(aq_ware *w);
/* Digits and letters with dots, pluses and hyphens; begins with a digit. */
bool aq_ware_is_version(const char *text);
