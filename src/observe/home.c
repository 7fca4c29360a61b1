/* The home of a world's person, and whom the world trusts: hundreds of files, which most programs
 * never look at. They are made when the first one does, and nobody can tell.
 *
 * A name leads there only by way of the resolver, which has them made before it answers, or by an
 * open that only reads, which finds nothing, or the folder itself, and is looked at afterwards.
 * Whatever else could tell has them made as well: questions about the whole disk, programs that
 * name another one inside, and acts that might take the space that they need. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum {
    ACTS = 4096,     /* that may take a page or an inode each */
    BYTES = 32 << 20 /* moved, of files or not */
};

static const char trust[] = "/etc/ssl/certs/";

static bool holds(const aq_tracer *t, const char *name)
{
    size_t n = strlen(t->plan.home);

    if (strncmp(name, trust, sizeof trust - 1) == 0)
        return true;
    return strncmp(name, t->plan.home, n) == 0 && (name[n] == '/' || name[n] == '\0');
}

void aq_home_make(aq_tracer *t)
{
    if (!t->plan.lay || t->laid)
        return;
    t->laid = true;
    t->plan.lay(t->plan.arg);
}

bool aq_home_needed(aq_tracer *t, const char *name)
{
    if (!t->plan.lay || t->laid || !name || !holds(t, name))
        return false;
    aq_home_make(t);
    return true;
}

/* In the system's own folders no name leads there. */
bool aq_home_apart(const char *path)
{
    static const char *const apart[] = {"/usr/", "/lib", "/etc/", "/bin/", "/sbin/"};

    if (strstr(path, "..") == NULL)
        for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
            if (strncmp(path, apart[i], strlen(apart[i])) == 0)
                return true;
    return false;
}

void aq_home_opening(aq_tracer *t, aq_task *k, uint64_t flags)
{
    aq_look *l = aq_look_of(k);

    if (!t->plan.lay || t->laid || !l->path_read || aq_home_needed(t, l->path))
        return;
    if (l->number[AQ_LOOK_HOW] & RESOLVE_IN_ROOT) { /* a path that begins elsewhere */
        aq_home_make(t);
        return;
    }
    if (!aq_home_apart(l->path) &&
        (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE)) != O_RDONLY)
        aq_resolve(t, k, l->dir, l->path, !(flags & O_NOFOLLOW), l->name, sizeof l->name);
}

/* A mapping of a file that can be written takes space without a call. */
static bool maps_space(aq_tracer *t, aq_task *k)
{
    uint64_t flags = aq_regs_arg(k, 3);
    const char *name;

    if ((flags & MAP_ANONYMOUS) || (flags & (MAP_SHARED | MAP_PRIVATE)) == MAP_PRIVATE)
        return false;
    name = aq_fd_of(t, k, aq_arg_int(k, 4))->name;
    return !name || !aq_home_apart(name);
}

static bool takes_space(aq_tracer *t, aq_task *k)
{
    switch (k->nr) {
    case AQ_NR_statfs:
    case AQ_NR_fstatfs:
    case AQ_NR_fallocate:
    case AQ_NR_truncate:
    case AQ_NR_ftruncate:
        return true;
    case AQ_NR_mmap:
        return maps_space(t, k);
    case AQ_NR_open:
    case AQ_NR_openat:
    case AQ_NR_openat2:
    case AQ_NR_creat:
    case AQ_NR_mkdir:
    case AQ_NR_mkdirat:
    case AQ_NR_mknod:
    case AQ_NR_mknodat:
    case AQ_NR_link:
    case AQ_NR_linkat:
    case AQ_NR_symlink:
    case AQ_NR_symlinkat:
    case AQ_NR_bind:
    case AQ_NR_write:
    case AQ_NR_pwrite64:
    case AQ_NR_writev:
    case AQ_NR_pwritev:
    case AQ_NR_pwritev2:
    case AQ_NR_sendfile:
    case AQ_NR_splice:
    case AQ_NR_copy_file_range:
    case AQ_NR_setxattr:
    case AQ_NR_lsetxattr:
    case AQ_NR_fsetxattr:
        return ++t->acts > ACTS || t->end.moved > BYTES;
    default:
        return false;
    }
}

void aq_home_begin(aq_tracer *t, aq_task *k)
{
    if (t->plan.lay && !t->laid && takes_space(t, k))
        aq_home_make(t);
}
