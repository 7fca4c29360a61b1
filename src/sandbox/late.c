/* What a plan says late: its maker runs in the front while the keeper already makes the world.
 *
 * The plan and all that it points to lie in a memory file that the front alone can write: it has
 * mapped the file before the seal forbade any further writer, and its mapping is not inherited. The
 * others map the same file at the same place, so that pointers hold, and only to read. Each of them
 * takes one byte of a pipe before it looks; without one the front is gone or gave up. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sandbox/world.h"

enum { ROOM = 32 << 20, SEALS = F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Who may make no file of that size says everything at once. */
static int make_at_once(aq_world *w, aq_err *err)
{
    aq_plan *plan;
    int r;

    w->late.arena = aq_arena_new();
    plan = aq_arena_alloc(w->late.arena, sizeof *plan);
    *plan = *w->plan;
    r = plan->late(plan->late_arg, w->late.arena, plan, err);
    if (r == 0 && plan->later)
        r = plan->later(plan->late_arg, w->late.arena, plan, err);
    plan->late = plan->later = NULL;
    w->plan = plan;
    return r < 0 ? r : aq_plan_check(plan, err);
}

int aq_late_begin(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;
    struct rlimit most;

    if (!w->plan->late)
        return 0;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < ROOM)
        return make_at_once(w, err);
    l->file = memfd_create("plan", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (l->file < 0 || ftruncate(l->file, ROOM) < 0)
        return aq_fail_errno(err, "cannot make a place for the plan");
    l->at = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, l->file, 0);
    if (l->at == MAP_FAILED) {
        l->at = NULL;
        return aq_fail_errno(err, "cannot make a place for the plan");
    }
    if (madvise(l->at, ROOM, MADV_DONTFORK) < 0 || fcntl(l->file, F_ADD_SEALS, SEALS) < 0 ||
        pipe2(l->ready, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "cannot keep the plan from others");
    l->arena = aq_arena_within(l->at, ROOM);
    l->plan = aq_arena_alloc(l->arena, sizeof *l->plan);
    *l->plan = *w->plan;
    if (w->plan->later)
        l->whole = aq_arena_alloc(l->arena, sizeof *l->whole);
    return 0;
}

/* Nobody writes any more, and the front's next children may look. */
static int close_plan(aq_late *l, aq_err *err)
{
    close_fd(&l->ready[1]);
    if (mprotect(l->at, ROOM, PROT_READ) < 0 || madvise(l->at, ROOM, MADV_DOFORK) < 0)
        return aq_fail_errno(err, "cannot keep the plan");
    return 0;
}

/* A keeper that failed has said why: whoever hears it will tell. */
static int tell_ready(aq_late *l, size_t readers, aq_err *err)
{
    static const char ready[AQ_LATE_READERS];

    if (write(l->ready[1], ready, readers) < 0 && errno != EPIPE)
        return aq_fail_errno(err, "cannot hand over the plan");
    return 0;
}

int aq_late_make(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;
    int r;

    close_fd(&l->file);
    close_fd(&l->ready[0]);
    if (!l->plan)
        return 0;
    if ((r = l->plan->late(l->plan->late_arg, l->arena, l->plan, err)) < 0 ||
        (r = aq_plan_check(l->plan, err)) < 0 || (r = tell_ready(l, AQ_LATE_READERS, err)) < 0)
        return r;
    w->plan = l->plan;
    return l->whole ? 0 : close_plan(l, err);
}

int aq_later_make(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;
    int r;

    if (!l->whole || w->plan == l->whole)
        return aq_fail(err, -EPROTO, "nothing more is to be said of the plan");
    *l->whole = *l->plan;
    l->whole->later = NULL;
    if ((r = l->plan->later(l->plan->late_arg, l->arena, l->whole, err)) < 0 ||
        (r = aq_plan_check(l->whole, err)) < 0)
        return r;
    if (aq_files_room(l->whole) != l->plan->later_room ||
        l->whole->file_count != l->plan->later_count)
        return aq_fail(err, -EPROTO, "the world's files take another room than was said");
    if ((r = tell_ready(l, AQ_LATER_READERS, err)) < 0)
        return r;
    w->plan = l->whole;
    return close_plan(l, err);
}

int aq_late_join(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;

    close_fd(&l->ready[1]);
    if (!l->plan)
        return 0;
    if (mmap(l->at, ROOM, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, l->file, 0) != l->at)
        return aq_fail_errno(err, "cannot see the plan");
    close_fd(&l->file);
    return 0;
}

static int take_byte(aq_late *l, aq_err *err)
{
    ssize_t n;
    char byte;

    while ((n = read(l->ready[0], &byte, 1)) < 0 && errno == EINTR)
        ;
    return n == 1 ? 0 : aq_fail(err, -EPIPE, "the front gave no plan");
}

int aq_late_wait(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;
    int r;

    if (!l->plan)
        aq_root_settle(w);
    if (!l->plan || w->plan == l->plan)
        return 0;
    if ((r = take_byte(l, err)) < 0)
        return r;
    if (!l->whole)
        close_fd(&l->ready[0]);
    w->plan = l->plan;
    aq_root_settle(w);
    return 0;
}

int aq_later_wait(aq_world *w, aq_err *err)
{
    aq_late *l = &w->late;
    int r;

    if (!l->whole || w->plan == l->whole)
        return 0;
    if ((r = take_byte(l, err)) < 0)
        return r;
    close_fd(&l->ready[0]);
    w->plan = l->whole;
    return 0;
}

void aq_late_end(aq_world *w)
{
    aq_late *l = &w->late;

    close_fd(&l->file);
    close_fd(&l->ready[0]);
    close_fd(&l->ready[1]);
    if (l->at)
        munmap(l->at, ROOM);
    else
        aq_arena_free(l->arena);
    l->at = NULL;
    l->arena = NULL;
}
