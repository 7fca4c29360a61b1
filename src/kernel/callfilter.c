/* A seccomp filter as a search tree; see callfilter.h. */
#include "kernel/callfilter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the numbers of the calls are those of x86-64"
#endif

enum { FAR = 255, MASKED = 4 };

/* Neighbours with one verdict: from `first` to the next run's first, the last one without end. */
typedef struct run {
    uint32_t first;
    aq_call_verdict verdict;
} run;

typedef struct runs {
    run at[AQ_CALLFILTER_NUMBERS + 1];
    size_t count;
} runs;

static void add(aq_callfilter *f, struct sock_filter i)
{
    f->code[f->len++] = i;
}

static void give(aq_callfilter *f, uint32_t action)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void load(aq_callfilter *f, size_t offset)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static bool same(const aq_call_verdict *a, const aq_call_verdict *b)
{
    return a->action == b->action && a->mask == b->mask && a->argument == b->argument;
}

static void add_run(runs *r, uint32_t first, const aq_call_verdict *v)
{
    if (r->count == 0 || !same(&r->at[r->count - 1].verdict, v))
        r->at[r->count++] = (run){first, *v};
}

/* Instructions that `count` runs take: those of their leaves, and a test between two; a test whose
 * left side is too long for an 8-bit jump takes one more. */
static size_t size_of(const run *r, size_t count)
{
    size_t left = count / 2, size;

    if (count == 1)
        return r->verdict.mask ? MASKED : 1;
    size = size_of(r, left);
    return size + size_of(r + left, count - left) + (size > FAR ? 2 : 1);
}

static void leaf(aq_callfilter *f, const aq_call_verdict *v)
{
    if (v->mask) {
        load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)v->argument);
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, v->mask, 0, 1));
        give(f, SECCOMP_RET_KILL_PROCESS);
    }
    give(f, v->action);
}

static void halve(aq_callfilter *f, const run *r, size_t count)
{
    size_t left = count / 2, size;

    if (count == 1) {
        leaf(f, &r->verdict);
        return;
    }
    size = size_of(r, left);
    if (size > FAR) {
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, r[left].first, 0, 1));
        add(f, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)size));
        /* The jump above is skipped when the number is smaller: the left side follows. */
    } else {
        add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, r[left].first, (uint8_t)size,
                                            0));
    }
    halve(f, r, left);
    halve(f, r + left, count - left);
}

int aq_callfilter_make(const aq_call_verdict *of, size_t count, uint32_t other, aq_callfilter *ret,
                       aq_err *err)
{
    runs r = {.count = 0};

    if (count > AQ_CALLFILTER_NUMBERS)
        return aq_fail(err, -E2BIG, "a filter for more than %d system calls",
                       AQ_CALLFILTER_NUMBERS);
    for (size_t n = 0; n < count; n++)
        add_run(&r, (uint32_t)n, &of[n]);
    add_run(&r, (uint32_t)count, &(aq_call_verdict){.action = other}); /* x32 numbers included */
    ret->len = 0;
    load(ret, offsetof(struct seccomp_data, arch));
    add(ret, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    give(ret, other);
    load(ret, offsetof(struct seccomp_data, nr));
    halve(ret, r.at, r.count);
    return 0;
}

int aq_callfilter_install(const aq_callfilter *f, aq_err *err)
{
    struct sock_fprog prog = {.len = f->len, .filter = (struct sock_filter *)f->code};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return aq_fail_errno(err, "cannot install the system call filter");
    return 0;
}
