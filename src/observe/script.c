/* The code of a script, and the stops of the task that runs it. */
#include "observe/script.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_AT = 0x32 }; /* in the code: the instruction after the call that says that it is over */

/* The next row is at rbx. */
static const uint8_t code[] = {
    0x48, 0x83,       0x3b, 0xff,    /*  0 next: cmpq $-1, (%rbx) */
    0x74, 0x25,                      /*  4       je   over */
    0x48, 0x8b,       0x03,          /*  6       mov  (%rbx), %rax */
    0x48, 0x8b,       0x7b, 0x08,    /*  9       mov  8(%rbx), %rdi */
    0x48, 0x8b,       0x73, 0x10,    /*  d       mov  16(%rbx), %rsi */
    0x48, 0x8b,       0x53, 0x18,    /* 11       mov  24(%rbx), %rdx */
    0x4c, 0x8b,       0x53, 0x20,    /* 15       mov  32(%rbx), %r10 */
    0x4c, 0x8b,       0x43, 0x28,    /* 19       mov  40(%rbx), %r8 */
    0x4c, 0x8b,       0x4b, 0x30,    /* 1d       mov  48(%rbx), %r9 */
    0x0f, 0x05,                      /* 21       syscall */
    0x48, 0x3b,       0x43, 0x38,    /* 23       cmp  56(%rbx), %rax */
    0x75, 0x02,                      /* 27       jne  over */
    0xeb, 0x09,                      /* 29       jmp  on */
    0xb8, SYS_getpid, 0,    0,    0, /* 2b over: mov  $SYS_getpid, %eax */
    0x0f, 0x05,                      /* 30       syscall */
    0xeb, 0xfe,                      /* 32       jmp  . */
    0x48, 0x83,       0xc3, 0x40,    /* 34 on:   add  $64, %rbx */
    0xeb, 0xc6,                      /* 38       jmp  next */
};

uint64_t aq_script_data(aq_script *s, const void *data, size_t len)
{
    uint64_t at = s->home + AQ_SCRIPT_DATA + s->data_bytes;

    if (len > sizeof s->data - s->data_bytes)
        return 0;
    memcpy(s->data + s->data_bytes, data, len);
    s->data_bytes = (s->data_bytes + len + 15) & ~15ULL;
    if (s->data_bytes > sizeof s->data)
        s->data_bytes = sizeof s->data;
    return at;
}

bool aq_script_add(aq_script *s, long nr, const uint64_t args[6], uint64_t expect)
{
    aq_order *o = &s->order[s->count];

    if (s->count == AQ_SCRIPT_ORDERS)
        return false;
    *o = (aq_order){.nr = (uint64_t)nr, .expect = expect};
    memcpy(o->args, args, sizeof o->args);
    s->count++;
    return true;
}

void aq_script_write(const aq_script *s, uint8_t *page)
{
    const uint64_t end = UINT64_MAX;

    memcpy(page + AQ_SCRIPT_AT, code, sizeof code);
    memcpy(page + AQ_SCRIPT_ROWS, s->order, s->count * sizeof *s->order);
    memcpy(page + AQ_SCRIPT_ROWS + s->count * sizeof *s->order, &end, sizeof end);
    memcpy(page + AQ_SCRIPT_DATA, s->data, s->data_bytes);
}

/* Nobody else will find it there. */
static bool wipe(int mem, const aq_script *s)
{
    static const uint8_t nothing[AQ_VDSO_BYTES - AQ_SCRIPT_AT];
    const ssize_t all = sizeof nothing;

    return pwrite(mem, nothing, sizeof nothing, (off_t)(s->home + AQ_SCRIPT_AT)) == all;
}

/* The page is away when this call returns, so that we wait for just that. */
static bool leave(aq_task *k, const aq_order *o, bool *moved, int *status)
{
    struct user_regs_struct r;

    *moved = false;
    ptrace(PTRACE_SYSCALL, k->tid, 0, 0);
    if (!aq_engine_wait(k, status) || !WIFSTOPPED(*status))
        return false;
    *moved =
        WSTOPSIG(*status) == (SIGTRAP | 0x80) && aq_regs_load(k, &r) == 0 && r.rax == o->expect;
    return true;
}

/* From stop to stop. A stop that is none of the script's ends it; the caller sees that not all was
 * done. */
static bool follow(aq_task *k, int mem, const aq_script *s, size_t *done, int *status)
{
    struct user_regs_struct r;

    for (*done = 0;;) {
        bool over, moved;

        ptrace(PTRACE_CONT, k->tid, 0, 0);
        if (!aq_engine_wait(k, status) || !WIFSTOPPED(*status))
            return false;
        if (*status >> 16 != PTRACE_EVENT_SECCOMP || aq_regs_load(k, &r) != 0)
            return true;
        *done = (r.rbx - (s->home + AQ_SCRIPT_ROWS)) / sizeof *s->order;
        over = r.rip == s->home + AQ_SCRIPT_AT + END_AT;
        if (!over && !(s->leaves && *done + 1 == s->count))
            continue;
        if (!wipe(mem, s))
            *done = 0;
        if (over || *done == 0)
            return true;
        if (!leave(k, &s->order[*done], &moved, status))
            return false;
        *done += moved;
        return true;
    }
}

/* Signals wait meanwhile. */
bool aq_script_run(aq_task *k, int mem, const aq_script *s, const struct user_regs_struct *begin,
                   size_t *done, int *status)
{
    struct user_regs_struct r = *begin;
    uint64_t all = ~0ULL, mask = 0;

    *done = 0;
    r.rip = s->home + AQ_SCRIPT_AT;
    r.rbx = s->home + AQ_SCRIPT_ROWS;
    r.orig_rax = UINT64_MAX;
    if (ptrace(PTRACE_GETSIGMASK, k->tid, sizeof mask, &mask) != 0 ||
        ptrace(PTRACE_SETSIGMASK, k->tid, sizeof all, &all) != 0 || aq_regs_begin(k, &r) != 0)
        return true;
    if (!follow(k, mem, s, done, status))
        return false;
    ptrace(PTRACE_SETSIGMASK, k->tid, sizeof mask, &mask);
    return true;
}
