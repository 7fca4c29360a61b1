/* What the package indexes of the private internet hand out, as data: rules/internet/wares.pack,
 * built in. A *ware* is a package that such an index has (a *package* is what the clean room
 * judges). The grammar is in rules/internet/README.md. Private to the room and its tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum {
    AQ_SHELF_TEXTS = 64,
    AQ_SHELF_GRIDS = 16,
    AQ_SHELF_KNOWN = 256,
    AQ_SHELF_VERSIONS = 2048, /* of one ware */
    AQ_WARE_NAME = 50,        /* signs of a name, or of each part of one */
};

typedef struct aq_shelf_text {
    const char *name; /* of a text; of the kind of ware that the file belongs to */
    const char *path; /* NULL: a text */
    const char *text;
} aq_shelf_text;

typedef struct aq_grid {
    unsigned from[3], to[3]; /* major, minor, patch */
} aq_grid;

typedef struct aq_shelf {
    aq_shelf_text texts[AQ_SHELF_TEXTS];
    size_t text_count;
    aq_grid grids[AQ_SHELF_GRIDS];
    size_t grid_count, version_count;
    struct {
        const char *name, *module; /* module NULL: as the name says */
    } known[AQ_SHELF_KNOWN];
    size_t known_count;
    uint32_t follow[26]; /* which letters follow one in names, as bits */
} aq_shelf;

int aq_shelf_parse(aq_arena *a, const char *name, const char *text, size_t len, aq_shelf **ret,
                   aq_err *err);
const aq_shelf *aq_shelf_builtin(void);
const char *aq_shelf_text_of(const aq_shelf *s, const char *name); /* never NULL */
const char *aq_shelf_module(const aq_shelf *s, const char *name);  /* NULL: as the name says */
/* Version number `i` of a ware, from the oldest on. */
void aq_shelf_version(const aq_shelf *s, size_t i, unsigned ret[static 3]);
/* Would somebody have called a package so? Names that look drawn are nobody's, as in life. */
bool aq_shelf_plausible(const aq_shelf *s, const char *name);
