/* Registers of a tracee on x86-64: arguments, answers, restarts. The only file of the engine that
 * knows their names. */
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>

#include "observe/internal.h"

#ifndef __x86_64__
#error "the engine knows the registers of x86-64 only"
#endif

enum {
    SYSCALL_LEN = 2, /* of the instruction 0f 05 */
    INSTRUCTION_MOST = 15,
};

static unsigned long long *argument(struct user_regs_struct *r, int n)
{
    switch (n) {
    case 0:
        return &r->rdi;
    case 1:
        return &r->rsi;
    case 2:
        return &r->rdx;
    case 3:
        return &r->r10;
    case 4:
        return &r->r8;
    default:
        return &r->r9;
    }
}

uint64_t aq_regs_arg(const aq_task *k, int n)
{
    struct user_regs_struct *in = (struct user_regs_struct *)(uintptr_t)&k->in;

    return *argument(in, n);
}

uint64_t aq_regs_now(const aq_task *k, int n)
{
    struct user_regs_struct *given = (struct user_regs_struct *)(uintptr_t)&k->regs;

    return k->patched ? *argument(given, n) : aq_regs_arg(k, n);
}

/* From here on `regs` is what counts; it starts as the registers of the entry. */
static void touch(aq_task *k)
{
    if (!k->dirty)
        k->regs = k->in;
    k->dirty = true;
}

void aq_regs_set_arg(aq_task *k, int n, uint64_t value)
{
    touch(k);
    *argument(&k->regs, n) = value;
    k->patched = true;
}

void aq_regs_set_call(aq_task *k, long nr)
{
    touch(k);
    k->regs.orig_rax = (unsigned long long)nr;
    k->patched = true;
}

/* A call number of -1 at the entry makes the kernel skip the call. */
void aq_regs_answer(aq_task *k, long result)
{
    k->regs = k->in;
    k->regs.orig_rax = (unsigned long long)-1;
    k->regs.rax = (unsigned long long)result;
    k->dirty = true;
}

void aq_regs_finish(aq_task *k, long result)
{
    aq_regs_answer(k, result);
}

void aq_regs_rewind(aq_task *k)
{
    aq_regs_answer(k, k->nr);
    k->regs.rip -= SYSCALL_LEN;
}

/* With the call's number in orig_rax and one of its private codes in rax the kernel restarts the
 * call or ends it with EINTR, as the handler of the signal asks. */
void aq_regs_restart(aq_task *k, long result)
{
    k->regs = k->in;
    k->regs.orig_rax = (unsigned long long)k->nr;
    k->regs.rax = (unsigned long long)result;
    k->dirty = true;
}

int aq_regs_load(aq_task *k, struct user_regs_struct *ret)
{
    return ptrace(PTRACE_GETREGS, k->tid, 0, ret) == 0 ? 0 : -errno;
}

int aq_regs_store(aq_task *k)
{
    if (!k->dirty)
        return 0;
    k->dirty = false;
    return ptrace(PTRACE_SETREGS, k->tid, 0, &k->regs) == 0 ? 0 : -errno;
}

int aq_regs_begin(aq_task *k, const struct user_regs_struct *r)
{
    return ptrace(PTRACE_SETREGS, k->tid, 0, r) == 0 ? 0 : -errno;
}

/* Prefixes mean nothing to these instructions; so many of them as fit into one. */
static bool is_prefix(unsigned char c)
{
    switch (c) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return c >= 0x40 && c <= 0x4f;
    }
}

bool aq_regs_counter(aq_task *k, uint64_t value, uint32_t cpu)
{
    struct user_regs_struct r;
    unsigned char code[INSTRUCTION_MOST + 2] = {0};
    ssize_t n;
    int at = 0, len = 0;

    if (aq_regs_load(k, &r) != 0 || (n = aq_tracee_read(k, r.rip, code, INSTRUCTION_MOST)) < 2)
        return false;
    while (at < n && is_prefix(code[at]))
        at++;
    if (code[at] == 0x0f && code[at + 1] == 0x31) { /* rdtsc */
        len = 2;
    } else if (code[at] == 0x0f && code[at + 1] == 0x01 && code[at + 2] == 0xf9) { /* rdtscp */
        len = 3;
        r.rcx = cpu;
    }
    if (!len || at + len > n)
        return false;
    r.rax = (uint32_t)value;
    r.rdx = value >> 32;
    r.rip += (unsigned)(at + len);
    return ptrace(PTRACE_SETREGS, k->tid, 0, &r) == 0;
}
