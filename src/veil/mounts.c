/* What is mounted: the machine's own table (model/places.def), whatever the world is built of. */
#include "model/place.h"
#include "veil/internal.h"

void aq_make_mounts(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)s, (void)truth, (void)len;
    for (size_t i = 0; i < aq_place_count; i++) {
        const aq_place *p = &aq_places[i];

        /* Options of the mount and of the file system in one list; "rw" of the latter is said. */
        aq_buf_addf(ret, "%s %s %s %s%s 0 0\n", p->source, p->path, p->type, p->options,
                    p->own + 2);
    }
}

void aq_make_mountinfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)s, (void)truth, (void)len;
    for (size_t i = 0; i < aq_place_count; i++) {
        const aq_place *p = &aq_places[i];

        aq_buf_addf(ret, "%u %u %u:%u / %s %s shared:%zu - %s %s %s\n", p->id, p->parent, p->major,
                    p->minor, p->path, p->options, i + 1, p->type, p->source, p->own);
    }
}

void aq_make_mountstats(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)s, (void)truth, (void)len;
    for (size_t i = 0; i < aq_place_count; i++)
        aq_buf_addf(ret, "device %s mounted on %s with fstype %s\n", aq_places[i].source,
                    aq_places[i].path, aq_places[i].type);
}
