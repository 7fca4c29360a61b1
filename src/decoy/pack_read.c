/* The built-in pack, and private packs on top of it. */
#include <errno.h>
#include <fcntl.h>

#include "base/io.h"
#include "decoy/pack.h"

#include "decoys.inc" /* made from rules/decoys by tools/gen-decoys.c */

const aq_pack *aq_pack_builtin(void)
{
    return &builtin;
}

int aq_pack_read(aq_arena *a, const char *const *paths, size_t count, const aq_pack **ret,
                 aq_err *err)
{
    aq_pack_maker *m;
    int r = 0;

    if (count == 0) {
        *ret = &builtin;
        return 0;
    }
    m = aq_pack_begin(&builtin);
    for (size_t i = 0; i < count && r == 0; i++) {
        aq_auto_buf text = {0};

        r = aq_read_file(AT_FDCWD, paths[i], AQ_PACK_BYTES, &text, err);
        if (r == 0)
            r = aq_pack_add(m, paths[i], aq_buf_str(&text), text.len, err);
    }
    if (r == 0)
        r = aq_pack_end(m, a, ret, err);
    aq_pack_abort(m);
    return r;
}
