/* Seccomp; see seccomp.h. */
#include "kernel/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the system call numbers of the jail are those of x86-64"
#endif

enum { X32_BIT = 0x40000000, PER_CALL = 5 };

typedef struct program {
    struct sock_filter code[8 + AQ_CALLS * PER_CALL];
    size_t len;
} program;

static void add(program *p, struct sock_filter f)
{
    p->code[p->len++] = f;
}

static void load(program *p, size_t offset)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void jump(program *p, uint16_t test, uint32_t value, uint8_t yes, uint8_t no)
{
    add(p, (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | test | BPF_K), value, yes, no));
}

static void give(program *p, uint32_t action)
{
    add(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* A matching row always ends the program, so the number need not be loaded again after one. */
static void add_call(program *p, const aq_call *c)
{
    size_t argument = offsetof(struct seccomp_data, args) + 8 * (size_t)c->argument;

    switch (c->rule) {
    case AQ_CALL_ALLOW:
        jump(p, BPF_JEQ, (uint32_t)c->nr, 0, 1);
        give(p, SECCOMP_RET_ALLOW);
        break;
    case AQ_CALL_ALLOW_MASKED:
        jump(p, BPF_JEQ, (uint32_t)c->nr, 0, 4);
        load(p, argument);
        jump(p, BPF_JSET, c->mask, 0, 1);
        give(p, SECCOMP_RET_KILL_PROCESS);
        give(p, SECCOMP_RET_ALLOW);
        break;
    case AQ_CALL_REFUSE:
        jump(p, BPF_JEQ, (uint32_t)c->nr, 0, 1);
        give(p, SECCOMP_RET_ERRNO | (c->mask & SECCOMP_RET_DATA));
        break;
    }
}

int aq_seccomp_apply(const aq_call *calls, size_t count, aq_err *err)
{
    program p = {0};
    struct sock_fprog prog;

    if (count > AQ_CALLS)
        return aq_fail(err, -E2BIG, "more than %d system calls in a list", AQ_CALLS);
    load(&p, offsetof(struct seccomp_data, arch));
    jump(&p, BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
    give(&p, SECCOMP_RET_KILL_PROCESS);
    load(&p, offsetof(struct seccomp_data, nr));
    jump(&p, BPF_JGE, X32_BIT, 0, 1);
    give(&p, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < count; i++)
        add_call(&p, &calls[i]);
    give(&p, SECCOMP_RET_KILL_PROCESS);
    prog = (struct sock_fprog){.len = (unsigned short)p.len, .filter = p.code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return aq_fail_errno(err, "cannot install the system call filter");
    return 0;
}
