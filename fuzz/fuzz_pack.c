/* Packs: whatever a private pack says, it is refused with a line or makes worlds within bounds, and
 * the same bytes twice. */
#include <stdlib.h>
#include <string.h>

#include "decoy/decoy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const aq_decoys *make(aq_arena *a, const aq_pack *p, aq_side side)
{
    aq_seed seed = aq_seed_of_text("fuzz");
    const aq_decoys *d = NULL;
    aq_err err = {0};

    if (aq_decoys_make(a, p, &seed, side, 1800000000, NULL, &d, &err) < 0) {
        if (err.code >= 0 || !err.text[0])
            abort();
        return NULL;
    }
    for (size_t i = 0; i < d->count; i++)
        if (d->decoys[i].value[d->decoys[i].len]) /* it may have a NUL inside, but has one behind */
            abort();
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_arena a = aq_arena_new();
    aq_pack_maker *m = aq_pack_begin(NULL);
    const aq_pack *p = NULL;
    const aq_decoys *x, *y;
    aq_err err = {0};
    int r = aq_pack_add(m, "fuzz.pack", (const char *)data, size, &err);

    if (r == 0)
        r = aq_pack_end(m, a, &p, &err);
    aq_pack_abort(m);
    if (r < 0) {
        if (err.code != r || !err.text[0])
            abort();
        return 0;
    }
    x = make(a, p, AQ_SIDE_A);
    y = make(a, p, AQ_SIDE_A);
    if (!x != !y)
        abort();
    for (size_t i = 0; x && i < x->count; i++)
        if (x->decoys[i].len != y->decoys[i].len ||
            memcmp(x->decoys[i].value, y->decoys[i].value, x->decoys[i].len) != 0)
            abort();
    for (size_t i = 0; x && i < x->file_count; i++)
        if (x->files[i].len != y->files[i].len ||
            (x->files[i].data && memcmp(x->files[i].data, y->files[i].data, x->files[i].len) != 0))
            abort();
    y = make(a, p, AQ_SIDE_B);
    if (x && y)
        (void)aq_decoys_twins(x, y, NULL);
    return 0;
}
