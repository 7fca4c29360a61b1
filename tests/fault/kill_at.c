/* Faults at an exact place; see kill_at.h. */
#include "kill_at.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#if !defined(__x86_64__)
#error "the registers of this machine are not known here"
#endif

static int last_status;

void kill_at_ready(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
        abort();
}

int kill_at_status(void)
{
    return WIFEXITED(last_status) ? WEXITSTATUS(last_status) : -1;
}

/* The child's descriptor is the pipe to its parent, not a file. */
static bool is_pipe(pid_t child, long long fd)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/fd/%lld", (int)child, fd);
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

static bool counts(pid_t child, kill_mode mode, const struct user_regs_struct *r)
{
    switch (r->orig_rax) {
    case SYS_write:
    case SYS_pwrite64:
        return mode != FAIL_SYNC && !is_pipe(child, (long long)r->rdi);
    case SYS_fdatasync:
        return mode != KILL_HALF;
    case SYS_openat:
        return (mode == KILL_BEFORE || mode == FAIL_EIO) && (r->rdx & O_CREAT);
    case SYS_fsync:
    case SYS_ftruncate:
    case SYS_rename:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlink:
    case SYS_unlinkat:
    case SYS_link:
    case SYS_linkat:
    case SYS_mkdir:
    case SYS_mkdirat:
        return mode == KILL_BEFORE || mode == FAIL_EIO;
    default:
        return false;
    }
}

/* To the next stop at a system call; false when the child has ended. */
static bool next_stop(pid_t child, int *status)
{
    int signal = 0;

    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)signal) < 0)
            abort();
        if (waitpid(child, status, 0) != child)
            abort();
        if (!WIFSTOPPED(*status))
            return false;
        if (WSTOPSIG(*status) == (SIGTRAP | 0x80))
            return true;
        signal = WSTOPSIG(*status);
    }
}

static void apply(pid_t child, kill_mode mode, struct user_regs_struct *r, int *status)
{
    bool fails = mode == FAIL_EIO || mode == FAIL_SYNC;

    if (mode == KILL_HALF)
        r->rdx /= 2;
    if (fails)
        r->orig_rax = (unsigned long long)-1; /* no call: the kernel does nothing */
    if (mode != KILL_BEFORE) {
        if (ptrace(PTRACE_SETREGS, child, NULL, r) < 0 || !next_stop(child, status))
            abort();
        if (fails) {
            r->rax = (unsigned long long)-EIO;
            if (ptrace(PTRACE_SETREGS, child, NULL, r) < 0)
                abort();
            return;
        }
    }
    kill(child, SIGKILL);
}

bool kill_at(pid_t child, kill_mode mode, unsigned at)
{
    struct user_regs_struct r;
    bool entering = false, reached = false;
    unsigned seen = 0;
    int status;

    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, child, NULL,
               (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL)) < 0)
        abort();
    while (!reached && next_stop(child, &status)) {
        entering = !entering;
        if (!entering)
            continue;
        if (ptrace(PTRACE_GETREGS, child, NULL, &r) < 0)
            abort();
        if (counts(child, mode, &r) && seen++ == at) {
            reached = true;
            apply(child, mode, &r, &status);
        }
    }
    if (reached) {
        if (mode == FAIL_EIO || mode == FAIL_SYNC)
            ptrace(PTRACE_DETACH, child, NULL, NULL);
        if (waitpid(child, &status, 0) != child)
            abort();
    }
    last_status = status;
    return reached;
}
