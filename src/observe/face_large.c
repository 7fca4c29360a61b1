/* Large files of the world's home: they have their size from the start, and their content when it
 * is needed (sandbox/large.c). Nobody can tell: whatever reads begins with an open, and what would
 * make us lose sight of such a file (another name, size or time) is seen before it happens. */
#include <string.h>

#include "kernel/syscalls.h"
#include "observe/disk.h"

void aq_large_needed(aq_tracer *t, aq_task *k, const char *name, bool below)
{
    const char *path;
    int64_t written;
    uint64_t len;

    if (!t->plan.large || !name || strncmp(name, "/home/", 6) != 0)
        return;
    while (t->plan.large(t->plan.arg, name, below, &path, &written, &len)) {
        t->disk->late += aq_times_keep(t, k, path, written) ? len : 0;
    }
}

void aq_large_moves(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);

    switch (k->nr) {
    case AQ_NR_rename:
    case AQ_NR_renameat:
    case AQ_NR_renameat2: /* which may exchange the two */
        aq_large_needed(t, k, l->other_name, true);
        __attribute__((fallthrough));
    case AQ_NR_link:
    case AQ_NR_linkat:
    case AQ_NR_truncate:
    case AQ_NR_utime:
    case AQ_NR_utimes:
    case AQ_NR_futimesat:
    case AQ_NR_utimensat:
        aq_large_needed(t, k, l->name,
                        k->nr == AQ_NR_rename || k->nr == AQ_NR_renameat ||
                            k->nr == AQ_NR_renameat2);
    }
}

bool aq_large_hollow(const aq_tracer *t, const struct statx *s)
{
    return S_ISREG(s->stx_mode) && s->stx_blocks == 0 && s->stx_size > 0 &&
           s->stx_mtime.tv_sec < t->disk->start / 1000000000;
}
