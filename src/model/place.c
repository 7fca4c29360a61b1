/* Where a path lies; see place.h. */
#include "model/place.h"

#include <string.h>

const aq_place aq_places[] = {
#define AQ_PLACE(path, id, parent, major, minor, kind, type, source, options, own)                 \
    {path, id, parent, major, minor, AQ_PLACE_##kind, type, source, options, own},
#include "model/places.def"
#undef AQ_PLACE
};
const size_t aq_place_count = sizeof aq_places / sizeof *aq_places;

const aq_place *aq_place_of(const char *path)
{
    const aq_place *best = &aq_places[0];
    size_t best_len = 0;

    for (const aq_place *p = aq_places + 1; p < aq_places + aq_place_count; p++) {
        size_t n = strlen(p->path);

        if (n > best_len && strncmp(path, p->path, n) == 0 && (path[n] == '/' || path[n] == '\0')) {
            best = p;
            best_len = n;
        }
    }
    return best;
}
