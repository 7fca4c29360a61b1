/* The terminal at which the machine's user sits, /dev/pts/0. Nobody reads its other end, so what a
 * program writes there would soon wait for ever. It is recorded like any write, and gone: the
 * kernel never gets it, and the terminal always has room. Terminals that programs make for
 * themselves are the kernel's. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "observe/decode.h"

enum { SLAVES = 136, OWN = 5, TTY_FIELD = 7, STATE_FIELD = 3, MOST = 0x7ffff000 };

/* The first one is the user's, unless the kernel had none to give: then a program makes it. */
void aq_terminal_opening(aq_tracer *t, aq_task *k, const char *path)
{
    if (t->terminal == 0 && t->plan.machine && strstr(path, "ptmx"))
        t->terminal = faccessat(aq_resolve_root(t, k), "dev/pts/0", F_OK, 0) == 0 ? 1 : -1;
}

/* Which terminal controls the process. */
static unsigned long controlling(const aq_task *k)
{
    char text[AQ_STAT];
    const char *at = aq_task_stat(k->tid, text);

    for (int field = STATE_FIELD - 1; at && field < TTY_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoul(at, NULL, 10) : 0;
}

static bool is_users(const aq_tracer *t, const aq_task *k, const aq_fd *f)
{
    const dev_t first = makedev(SLAVES, 0);

    if (!t->plan.machine || t->terminal < 0 || f->kind != AQ_FD_DEVICE)
        return false;
    return f->device == first || (f->device == makedev(OWN, 0) && controlling(k) == first);
}

/* Copying inside the kernel would fill it all the same. It says that this is no file to copy to, as
 * terminals of other kernels do, and whoever copies then writes. */
bool aq_terminal_takes_no_copy(const aq_tracer *t, const aq_task *k, const aq_fd *f)
{
    return is_users(t, k, f);
}

/* Where the bytes lie, and how many there are. */
static uint64_t bytes_of(const aq_task *k, uint64_t *at)
{
    uint64_t v[2] = {0};

    *at = aq_regs_arg(k, 1);
    if (k->nr == SYS_write)
        return aq_regs_arg(k, 2);
    if (aq_regs_arg(k, 2) > 0 && aq_tracee_get(k, *at, v, sizeof v))
        *at = v[0];
    return aq_vectors_bytes(k, aq_regs_arg(k, 1), aq_regs_arg(k, 2));
}

aq_step aq_terminal_write(aq_tracer *t, aq_task *k, const aq_fd *f)
{
    aq_auto_fd int mine = -1;
    uint64_t at, len;
    char byte;
    int flags;

    if ((k->nr != SYS_write && k->nr != SYS_writev) || !is_users(t, k, f))
        return AQ_STEP_RUN;
    mine = aq_fd_borrow(k, f->fd);
    flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
    len = bytes_of(k, &at);
    /* What is wrong with it the kernel says. */
    if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY || len > INT64_MAX)
        return AQ_STEP_RUN;
    if (len > 0 && !aq_tracee_get(k, at, &byte, 1))
        return aq_answer(k, -EFAULT);
    len = len < MOST ? len : MOST;
    aq_moved(t, (long)len);
    return aq_answer(k, (long)len);
}
