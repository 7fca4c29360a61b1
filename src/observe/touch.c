/* Does a call leave the writable places of a world alone? Until the first one that may not, what
 * the world has in them need not be there yet, and nothing in them can have changed. A program that
 * only loads its libraries never gets further.
 *
 * The answer errs on one side: what is not listed here touches. Before that moment a task has no
 * descriptor but its standard input and output, which are pipes, and those of files below the
 * places named here: trees of the host that nothing inside can change, and that hold no way into a
 * writable place. So calls on descriptors are as harmless as what they were opened from. */
#include <fcntl.h>
#include <string.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

/* A folder above these may hold a link that leads elsewhere. */
static const char *const apart[] = {"/lib/",       "/lib64/",     "/usr/lib/",
                                    "/usr/lib64/", "/usr/share/", "/etc/ld.so."};

/* Links in there that lead to the world's trust stores (sandbox/trust.c), under whatever names
 * programs carry them. */
static const char *const leads[] = {"/..", "/ssl/", "/jvm/", "/pki/", "cert"};

static bool path_leads(const char *path)
{
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++)
        if (strstr(path, leads[i]))
            return true;
    return false;
}

static bool path_apart(const aq_task *k, int argument, bool by_descriptor)
{
    char path[256];
    bool cut = true;
    ssize_t n = aq_tracee_string(k, aq_regs_arg(k, argument), path, sizeof path, &cut);

    if (n < 0 || cut || path_leads(path))
        return false;
    if (n == 0) /* the descriptor itself; the current folder is none */
        return by_descriptor && aq_arg_int(k, 0) >= 0;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (strncmp(path, apart[i], strlen(apart[i])) == 0)
            return true;
    return false;
}

static bool only_reads(uint64_t flags)
{
    return (flags & (O_ACCMODE | O_CREAT | O_TRUNC | O_TMPFILE)) == O_RDONLY;
}

bool aq_touches_nothing(const aq_task *k)
{
    switch (k->nr) {
    case AQ_NR_read:
    case AQ_NR_pread64:
    case AQ_NR_readv:
    case AQ_NR_write:
    case AQ_NR_writev:
    case AQ_NR_lseek:
    case AQ_NR_close:
    case AQ_NR_fstat:
    case AQ_NR_brk:
    case AQ_NR_mmap:
    case AQ_NR_munmap:
    case AQ_NR_mprotect:
    case AQ_NR_mremap:
    case AQ_NR_madvise:
    case AQ_NR_rt_sigaction:
    case AQ_NR_rt_sigprocmask:
    case AQ_NR_rt_sigreturn:
    case AQ_NR_arch_prctl:
    case AQ_NR_set_tid_address:
    case AQ_NR_set_robust_list:
    case AQ_NR_rseq:
    case AQ_NR_prlimit64:
    case AQ_NR_getrandom:
    case AQ_NR_clock_gettime:
    case AQ_NR_gettimeofday:
    case AQ_NR_time:
    case AQ_NR_getpid:
    case AQ_NR_gettid:
    case AQ_NR_getppid:
    case AQ_NR_getuid:
    case AQ_NR_geteuid:
    case AQ_NR_getgid:
    case AQ_NR_getegid:
    case AQ_NR_uname:
    case AQ_NR_exit:
    case AQ_NR_exit_group:
        return true;
    case AQ_NR_open:
        return only_reads(aq_regs_arg(k, 1)) && path_apart(k, 0, false);
    case AQ_NR_openat:
        return only_reads(aq_regs_arg(k, 2)) && path_apart(k, 1, false);
    case AQ_NR_stat:
    case AQ_NR_lstat:
    case AQ_NR_access:
    case AQ_NR_readlink:
        return path_apart(k, 0, false);
    case AQ_NR_faccessat:
    case AQ_NR_readlinkat:
        return path_apart(k, 1, false);
    case AQ_NR_newfstatat:
        return path_apart(k, 1, aq_regs_arg(k, 3) & AT_EMPTY_PATH);
    case AQ_NR_statx:
        return path_apart(k, 1, aq_regs_arg(k, 2) & AT_EMPTY_PATH);
    default:
        return false;
    }
}
