/* A WebAssembly module or component: what its sections say about how it is entered. Only the
 * outline is read; the code is for L1 and for the run. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "model/manifest_internal.h"

typedef struct cursor {
    const unsigned char *start, *p, *end; /* start: of the section */
    bool bad;
} cursor;

static void unreadable_at(aq_reading *r, const unsigned char *at, const char *why)
{
    size_t offset = (size_t)(at - (r->image + r->file->offset));

    aq_reading_unreadable(r, "", aq_arena_printf(r->a, "at byte %zu: %s", offset, why));
}

static uint32_t leb(cursor *c)
{
    uint32_t value = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        unsigned char byte;
        if (c->p >= c->end || (shift == 28 && *c->p > 0x0f))
            break;
        byte = *c->p++;
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    c->bad = true;
    return 0;
}

static const unsigned char *bytes(cursor *c, size_t len)
{
    const unsigned char *from = c->p;

    if (c->bad || (size_t)(c->end - c->p) < len) {
        c->bad = true;
        return NULL;
    }
    c->p += len;
    return from;
}

/* Exports of a module: name, kind, index. Functions are entry points. */
static void read_exports(aq_reading *r, cursor section)
{
    uint32_t count = leb(&section);

    for (uint32_t i = 0; i < count && !section.bad; i++) {
        uint32_t len = leb(&section);
        const unsigned char *name = bytes(&section, len), *kind = bytes(&section, 1);
        leb(&section);
        if (section.bad)
            break;
        if (*kind == 0 && r->m->entry_point_count < AQ_MANIFEST_ITEMS)
            aq_reading_entry(r, "wasm",
                             aq_text_quoted(r->a, (const char *)name, len, AQ_MANIFEST_NAME), 0);
        else if (*kind == 0) {
            aq_findings_add_incomplete(r->findings, AQ_RULE_MANIFEST_LIMIT, r->file->path,
                                       "exports more than %d functions", AQ_MANIFEST_ITEMS);
            return;
        }
    }
    if (section.bad)
        unreadable_at(r, section.start, "the export section does not add up");
}

static int read_sections(aq_reading *r, cursor c, bool component)
{
    enum { EXPORTS = 7 };

    while (c.p < c.end) {
        const unsigned char *start = c.p, *id = bytes(&c, 1);
        uint32_t len = leb(&c);
        const unsigned char *body = bytes(&c, len);
        if (c.bad) {
            unreadable_at(r, start, "a section is longer than the file");
            return -EBADMSG;
        }
        if (*id == EXPORTS && !component)
            read_exports(r, (cursor){.start = start, .p = body, .end = body + len});
    }
    return 0;
}

int aq_read_wasm(aq_reading *r)
{
    static const unsigned char module[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    static const unsigned char component[] = {0, 'a', 's', 'm', 0x0d, 0, 1, 0};
    const unsigned char *at =
        r->file->size ? r->image + r->file->offset : (const unsigned char *)"";
    cursor c = {.p = at, .end = at + r->file->size};
    const unsigned char *head = bytes(&c, sizeof module);
    bool whole = head && memcmp(head, component, sizeof component) == 0;

    r->m->kind = AQ_KIND_WASM;
    r->m->dialect = "wasm";
    if (!head || (!whole && memcmp(head, module, sizeof module) != 0)) {
        aq_reading_unreadable(r, "", "is no WebAssembly module or component");
        return -EBADMSG;
    }
    if (whole)
        aq_reading_entry(r, "wasm", "component", 0);
    return read_sections(r, c, whole);
}
