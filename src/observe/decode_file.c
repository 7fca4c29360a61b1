/* Files as events: opening, descriptors that come and go, listings, mappings, control calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

/* ---- open ---- */

enum { FLAGS, MODE, HOW = AQ_LOOK_HOW }; /* what aq_look.number holds */

static void look_how(aq_task *k, aq_look *l)
{
    struct open_how how = {0};
    uint64_t size = aq_regs_arg(k, 3);

    if (size > sizeof how)
        size = sizeof how;
    aq_tracee_get(k, aq_regs_arg(k, 2), &how, size);
    l->number[FLAGS] = how.flags;
    l->number[MODE] = how.mode;
    l->number[HOW] = how.resolve;
}

void aq_look_open(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    int path = k->nr == AQ_NR_open || k->nr == AQ_NR_creat ? 0 : 1;

    l->quiet = false;
    aq_look_read_path(t, k, path ? aq_arg_int(k, 0) : AT_FDCWD, aq_regs_arg(k, path));
    l->number[HOW] = 0;
    if (k->nr == AQ_NR_openat2) {
        look_how(k, l);
    } else if (k->nr == AQ_NR_creat) {
        l->number[FLAGS] = O_CREAT | O_WRONLY | O_TRUNC;
        l->number[MODE] = (uint32_t)aq_regs_arg(k, 1);
    } else {
        l->number[FLAGS] = (uint32_t)aq_regs_arg(k, path + 1);
        l->number[MODE] = (uint32_t)aq_regs_arg(k, path + 2);
    }
}

/* What was opened is what the descriptor says; what could not be opened is what the path meant. */
void aq_note_opened(aq_tracer *t, aq_task *k, long result)
{
    aq_look *l = aq_look_of(k);
    uint64_t flags = l->number[FLAGS];
    aq_event e = aq_event_of(AQ_EVENT_FILE, "open");
    const aq_fd *f;

    if (result >= 0) {
        if (k->interrupted) /* else aq_after_open has */
            aq_fd_forget(t, k, (int)result);
        if (k->alias)
            aq_actors_opened(t, k, (int)result);
        f = aq_fd_of(t, k, (int)result);
        snprintf(l->name, sizeof l->name, "%s", f->name ? f->name : l->path);
    } else if (l->path_read) {
        aq_resolve(t, k, l->dir, l->path, !(flags & O_NOFOLLOW), l->name, sizeof l->name);
    }
    aq_event_path(l, &e);
    aq_event_number(&e, "flags", (int64_t)flags);
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)
        aq_event_number(&e, "mode", (int64_t)l->number[MODE]);
    if (l->number[HOW])
        aq_event_number(&e, "resolve", (int64_t)l->number[HOW]);
    e.result = result;
    aq_note(t, k, &e);
}

/* A pipe with a name: opening it may wait from now on. */
void aq_note_mknod(aq_tracer *t, aq_task *k, long result)
{
    t->named_pipes |= result == 0 && S_ISFIFO(aq_regs_arg(k, k->nr == AQ_NR_mknod ? 1 : 2));
    aq_shape_note(t, k, result);
}

/* ---- descriptors that come and go ---- */

/* Closing must not wait for the other side (SO_LINGER): that would be the host's time. What is left
 * is sent all the same. */
static void no_linger(const aq_tracer *t, const aq_task *k, int fd)
{
    struct linger off = {0};
    aq_auto_fd int mine = t->lingers ? aq_fd_borrow(k, fd) : -1;

    if (mine >= 0 && getsockopt(mine, SOL_SOCKET, SO_LINGER, &off, &(socklen_t){sizeof off}) == 0 &&
        off.l_onoff && off.l_linger > 0) {
        off.l_onoff = 0;
        setsockopt(mine, SOL_SOCKET, SO_LINGER, &off, sizeof off);
    }
}

/* At the entry: whatever close answers, the number is free afterwards. */
void aq_look_close(aq_tracer *t, aq_task *k)
{
    no_linger(t, k, aq_arg_int(k, 0));
    aq_fd_forget(t, k, aq_arg_int(k, 0));
}

enum { CLOSE_RANGE_CLOEXEC_ONLY = 4, CLOSE_RANGE_OWN = 2 };

void aq_look_close_range(aq_tracer *t, aq_task *k)
{
    unsigned flags = (unsigned)aq_regs_arg(k, 2);

    if (flags & CLOSE_RANGE_OWN) {
        k->proc->split |= k->proc->tasks > 1;
        aq_fd_forget_all(t, k);
    } else if (!(flags & CLOSE_RANGE_CLOEXEC_ONLY))
        aq_fd_forget_range(t, k, (unsigned)aq_regs_arg(k, 0), (unsigned)aq_regs_arg(k, 1));
}

void aq_look_dup2(aq_tracer *t, aq_task *k)
{
    if (aq_arg_int(k, 0) == aq_arg_int(k, 1))
        return;
    no_linger(t, k, aq_arg_int(k, 1));
    aq_fd_forget(t, k, aq_arg_int(k, 1));
}

/* Any call that answers with a new descriptor. */
void aq_note_dup(aq_tracer *t, aq_task *k, long result)
{
    if (result >= 0)
        aq_fd_forget(t, k, (int)result);
}

/* Also an event: memfd_create, inotify_init, signalfd, pidfd_open, … */
void aq_note_new_fd(aq_tracer *t, aq_task *k, long result)
{
    aq_note_dup(t, k, result);
    aq_shape_note(t, k, result);
}

/* ---- control ---- */

/* A new number needs no care: it was closed before, and forgotten then. */
void aq_look_fcntl(aq_tracer *t, aq_task *k)
{
    int command = aq_arg_int(k, 1);

    (void)t;
    aq_look_of(k)->quiet = command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_GETFD ||
                           command == F_SETFD || command == F_GETFL || command == F_SETFL ||
                           command == F_GETLK || command == F_OFD_GETLK;
}

/* Its argument is a number; elsewhere it is a pointer, or nothing. */
static bool has_value(int command)
{
    static const int with[] = {F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ, F_ADD_SEALS};

    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (with[i] == command)
            return true;
    return false;
}

void aq_note_fcntl(aq_tracer *t, aq_task *k, long result)
{
    int command = aq_arg_int(k, 1);
    aq_event e = aq_event_of(AQ_EVENT_FILE, "control");

    if (aq_look_of(k)->quiet)
        return;
    switch (command) {
    case F_SETLK:
    case F_SETLKW:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        e.op = "lock";
        break;
    default:
        break;
    }
    aq_event_object(&e, aq_fd_of(t, k, aq_arg_int(k, 0))->name);
    aq_event_number(&e, "command", command);
    aq_event_number(&e, "value", has_value(command) ? aq_arg_long(k, 2) & INT32_MAX : 0);
    e.result = result;
    aq_note(t, k, &e);
}

/* What every program asks of its terminal says nothing. */
static bool is_dull(unsigned request)
{
    static const unsigned dull[] = {TCGETS,  TIOCGWINSZ, FIONREAD, FIONBIO,
                                    FIOCLEX, FIONCLEX,   TIOCGPGRP};

    for (size_t i = 0; i < sizeof dull / sizeof *dull; i++)
        if (dull[i] == request)
            return true;
    return false;
}

void aq_look_ioctl(aq_tracer *t, aq_task *k)
{
    (void)t;
    aq_look_of(k)->quiet = is_dull((unsigned)aq_regs_arg(k, 1));
}

void aq_note_ioctl(aq_tracer *t, aq_task *k, long result)
{
    unsigned request = (unsigned)aq_regs_arg(k, 1);
    aq_event e = aq_event_of(AQ_EVENT_FILE, "ioctl");

    if (aq_look_of(k)->quiet)
        return;
    aq_event_object(&e, aq_fd_of(t, k, aq_arg_int(k, 0))->name);
    aq_event_number(&e, "request", request);
    e.result = result;
    aq_note(t, k, &e);
}

/* ---- listings, questions, copies ---- */

void aq_note_list(aq_tracer *t, aq_task *k, long result)
{
    aq_fd *f = aq_fd_slot(t, k, aq_arg_int(k, 0));
    aq_event e = aq_event_of(AQ_EVENT_FILE, "list");

    if (f && f->lists && result >= 0)
        return;
    if (f)
        f->lists = true;
    aq_event_object(&e, f ? f->name : NULL);
    e.result = result;
    aq_note(t, k, &e);
}

/* A question about a descriptor that is open says nothing that its opening did not. */
void aq_look_stat(aq_tracer *t, aq_task *k)
{
    bool old = k->nr == AQ_NR_stat || k->nr == AQ_NR_lstat;
    int flags = old ? 0 : aq_arg_int(k, k->nr == AQ_NR_statx ? 2 : 3);
    bool follow = !(flags & AT_SYMLINK_NOFOLLOW) && k->nr != AQ_NR_lstat;
    aq_look *l = aq_look_of(k);

    aq_look_read_path(t, k, old ? AT_FDCWD : aq_arg_int(k, 0), aq_regs_arg(k, old ? 0 : 1));
    l->quiet = !old && l->path_read && l->path_len == 0;
    if (l->path_read && !l->quiet)
        aq_look_found(l, aq_resolve_stat(t, k, l->dir, l->path, follow, l->name, sizeof l->name,
                                         t->disk ? &l->what : NULL));
}

/* Programs ask each folder of a path whether it is a link: most are none. */
void aq_look_readlink(aq_tracer *t, aq_task *k)
{
    bool at = k->nr == AQ_NR_readlinkat;
    aq_look *l = aq_look_of(k);

    l->quiet = false;
    l->bytes_len = l->other_len = 0;
    aq_look_read_path(t, k, at ? aq_arg_int(k, 0) : AT_FDCWD, aq_regs_arg(k, at ? 1 : 0));
    if (l->path_read)
        aq_look_found(l, aq_resolve_stat(t, k, l->dir, l->path, false, l->name, sizeof l->name,
                                         t->disk ? &l->what : NULL));
}

/* sendfile, splice, tee, copy_file_range: one descriptor reads, one writes. */
void aq_note_copy(aq_tracer *t, aq_task *k, long result)
{
    bool sendfile = k->nr == AQ_NR_sendfile;
    int into = k->nr == AQ_NR_tee ? 1 : sendfile ? 0 : 2, from = sendfile ? 1 : 0;

    aq_shape_note(t, k, result);
    if (result > 0) {
        aq_note_use(t, k, aq_arg_int(k, from), false, result);
        aq_note_use(t, k, aq_arg_int(k, into), true, result);
        aq_note_copied(t, k, aq_arg_int(k, into), result);
    }
}

/* ---- memory ---- */

static bool writes_file(uint64_t prot, uint64_t flags)
{
    return (flags & (MAP_SHARED | MAP_PRIVATE)) != MAP_PRIVATE && (prot & PROT_WRITE);
}

/* Is this mapping or change of rights worth an event? Shared with the attempt, which then lets the
 * dull ones go without a stop at their exit. */
void aq_look_memory(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    uint64_t prot = aq_regs_arg(k, 2), flags = aq_regs_arg(k, 3);
    aq_fd *f;

    l->quiet = !(prot & PROT_EXEC);
    if (k->nr != AQ_NR_mmap || (flags & MAP_ANONYMOUS))
        return;
    f = aq_fd_slot(t, k, aq_arg_int(k, 4));
    l->quiet = f && f->maps && !(prot & PROT_EXEC) && !writes_file(prot, flags);
    if (f)
        f->maps = true;
}

void aq_note_memory(aq_tracer *t, aq_task *k, long result)
{
    uint64_t prot = aq_regs_arg(k, 2), flags = aq_regs_arg(k, 3);
    bool file = k->nr == AQ_NR_mmap && !(flags & MAP_ANONYMOUS);
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "executable-memory");
    aq_fd *f;

    if (aq_look_of(k)->quiet)
        return;
    if (file) {
        e = aq_event_of(AQ_EVENT_FILE, "map");
        f = aq_fd_slot(t, k, aq_arg_int(k, 4));
        aq_event_object(&e, f ? f->name : NULL);
        aq_event_number(&e, "flags", (int64_t)(flags & INT32_MAX));
    }
    if ((prot & (PROT_EXEC | PROT_WRITE)) == (PROT_EXEC | PROT_WRITE))
        e = (aq_event){.kind = AQ_EVENT_SYSCALL,
                       .op = "writable-code",
                       .object = e.object,
                       .object_len = e.object_len,
                       .object_cut = e.object_cut};
    aq_event_number(&e, "prot", (int64_t)(prot & INT32_MAX));
    aq_event_number(&e, "size", aq_arg_long(k, 1));
    aq_event_text(&e, "call", k->row->name);
    /* Addresses are nobody's business: only whether it worked. */
    e.result = result < 0 && result >= -4095 ? result : 0;
    aq_note(t, k, &e);
}
