/* Edges by locks of files: whoever has a lock goes on after those who had one before that would
 * have kept it out.
 *
 * A lock is given back in many ways (by a call, by a close of the last or of any descriptor, by an
 * end), so what is kept is who had it; who gives it back by a call takes that place. A lock for
 * oneself (exclusive) goes after all that had any part of it, one that is shared after those who
 * had it for themselves. The kernel knows two sorts that do not meet: of whole files (flock), and
 * of ranges (fcntl, by process or by open file). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { LOCKS = 256 }; /* of all files, those taken last */

typedef struct lock {
    uint64_t dev, ino, from, to; /* bytes, both included */
    uint64_t taken;              /* when; 0: empty */
    aq_actor by;
    bool ranges, alone;
} lock;

struct aq_locks {
    uint64_t uses;
    lock all[LOCKS];
};

static bool meet(const lock *a, const lock *b)
{
    return a->taken && a->dev == b->dev && a->ino == b->ino && a->ranges == b->ranges &&
           a->from <= b->to && b->from <= a->to;
}

/* The one after `last` in the order in which they were taken, of those that meet. */
static lock *next_of(struct aq_locks *w, const lock *mine, uint64_t last)
{
    lock *best = NULL;

    for (lock *l = w->all; l < w->all + LOCKS; l++)
        if (meet(l, mine) && l->taken > last && (!best || l->taken < best->taken))
            best = l;
    return best;
}

static void keep(struct aq_locks *w, const lock *mine)
{
    lock *oldest = w->all;

    for (lock *l = w->all; l < w->all + LOCKS; l++)
        if (l->taken < oldest->taken)
            oldest = l;
    *oldest = *mine;
    oldest->taken = ++w->uses;
}

static bool same(aq_actor a, aq_actor b)
{
    return a.process == b.process && a.thread == b.thread;
}

/* It has gone on after that one before, by another lock. */
static bool follows_already(const struct aq_locks *w, const lock *mine, const lock *l)
{
    for (const lock *own = w->all; own < w->all + LOCKS; own++)
        if (meet(own, l) && same(own->by, mine->by) && own->taken > l->taken &&
            own->from <= l->from && own->to >= l->to && (own->alone || l->alone))
            return true;
    return false;
}

static void take(aq_tracer *t, aq_task *k, struct aq_locks *w, const lock *mine)
{
    uint64_t last = 0;
    lock *l;

    while ((l = next_of(w, mine, last)) != NULL) {
        bool within = l->from >= mine->from && l->to <= mine->to;
        bool own = same(l->by, mine->by);

        last = l->taken;
        if ((mine->alone || l->alone) && !follows_already(w, mine, l))
            aq_edge(t, k, l->by.process, l->by.thread, "lock");
        if (within && (mine->alone || (own && !l->alone)))
            l->taken = 0; /* whoever comes after this one comes after that one */
    }
    keep(w, mine);
}

/* Of its process: who gave it back is the one that others go on after. */
static void give_back(struct aq_locks *w, const lock *mine)
{
    for (lock *l = w->all; l < w->all + LOCKS; l++)
        if (meet(l, mine) && (l->by.process == mine->by.process || (!mine->ranges && l->alone)))
            l->by = mine->by;
}

/* The first and last byte that a request means. */
static bool range_of(const aq_task *k, const struct flock *f, lock *ret)
{
    aq_auto_fd int mine = -1;
    int64_t start = f->l_start, at = 0;

    if (f->l_whence != SEEK_SET) {
        mine = aq_fd_borrow(k, aq_arg_int(k, 0));
        at = lseek(mine, 0, SEEK_CUR);
        if (f->l_whence == SEEK_END) {
            int64_t end = lseek(mine, 0, SEEK_END); /* the position is shared: put it back */

            lseek(mine, at, SEEK_SET);
            at = end;
        }
    }
    if (at < 0 || __builtin_add_overflow(start, at, &start))
        return false;
    ret->from = (uint64_t)start;
    ret->to = f->l_len == 0 ? UINT64_MAX : (uint64_t)start + (uint64_t)f->l_len - 1;
    if (f->l_len < 0) { /* what lies before */
        ret->from = (uint64_t)(start + f->l_len);
        ret->to = (uint64_t)start - 1;
    }
    return true;
}

static bool is_range_lock(const aq_task *k)
{
    switch (aq_arg_int(k, 1)) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return true;
    default:
        return false;
    }
}

void aq_edge_lock(aq_tracer *t, aq_task *k)
{
    lock mine = {.to = UINT64_MAX, .by = aq_actor_of(k), .ranges = k->nr == AQ_NR_fcntl};
    int op = aq_arg_int(k, 1) & ~LOCK_NB;
    const aq_fd *f;
    struct flock r;

    if (mine.ranges) {
        if (!is_range_lock(k) || !aq_tracee_get(k, aq_regs_arg(k, 2), &r, sizeof r) ||
            !range_of(k, &r, &mine))
            return;
        op = r.l_type == F_WRLCK ? LOCK_EX : r.l_type == F_RDLCK ? LOCK_SH : LOCK_UN;
    }
    if (op != LOCK_EX && op != LOCK_SH && op != LOCK_UN)
        return;
    f = aq_fd_of(t, k, aq_arg_int(k, 0));
    mine.dev = f->dev;
    mine.ino = f->ino;
    mine.alone = op == LOCK_EX;
    if (!t->locks)
        t->locks = aq_alloc(sizeof *t->locks);
    if (op == LOCK_UN)
        give_back(t->locks, &mine);
    else
        take(t, k, t->locks, &mine);
}

void aq_edge_lock_free(aq_tracer *t)
{
    free(t->locks);
    t->locks = NULL;
}
