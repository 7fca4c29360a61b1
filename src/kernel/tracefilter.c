/* The seccomp filter of a traced world; see tracefilter.h. */
#include "kernel/tracefilter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBERS = 512, FAR = 255 };

/* Neighbours with one verdict: from `first` to the next run's first, the last one without end. */
typedef struct run {
    uint32_t first;
    bool shown;
} run;

typedef struct runs {
    run at[NUMBERS + 1];
    size_t count;
} runs;

static void add(aq_tracefilter *f, struct sock_filter i)
{
    f->code[f->len++] = i;
}

static void give(aq_tracefilter *f, uint32_t action)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void load(aq_tracefilter *f, size_t offset)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void compress(const bool *shown, size_t count, runs *r)
{
    for (size_t n = 0; n < count; n++)
        if (r->count == 0 || r->at[r->count - 1].shown != shown[n])
            r->at[r->count++] = (run){.first = (uint32_t)n, .shown = shown[n]};
    /* Whatever is not in the table, x32 numbers included. */
    if (r->count == 0 || r->at[r->count - 1].shown)
        r->at[r->count++] = (run){.first = (uint32_t)count, .shown = false};
}

/* Instructions that `count` runs take: a leaf each, and a test between two; a test whose left side
 * is too long for an 8-bit jump takes one more. */
static size_t size_of(size_t count)
{
    size_t left = count / 2, size;

    if (count == 1)
        return 1;
    size = size_of(left);
    return size + size_of(count - left) + (size > FAR ? 2 : 1);
}

static void halve(aq_tracefilter *f, const run *r, size_t count)
{
    size_t left = count / 2, size;

    if (count == 1) {
        give(f, r->shown ? SECCOMP_RET_TRACE : SECCOMP_RET_TRAP);
        return;
    }
    size = size_of(left);
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

int aq_tracefilter_make(const bool *shown, size_t count, aq_tracefilter *ret, aq_err *err)
{
    runs r = {0};

    if (count > NUMBERS)
        return aq_fail(err, -E2BIG, "a filter for more than %d system calls", NUMBERS);
    compress(shown, count, &r);
    ret->len = 0;
    load(ret, offsetof(struct seccomp_data, arch));
    add(ret, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
    give(ret, SECCOMP_RET_TRAP);
    load(ret, offsetof(struct seccomp_data, nr));
    halve(ret, r.at, r.count);
    return 0;
}

int aq_tracefilter_install(const aq_tracefilter *f, aq_err *err)
{
    struct sock_fprog prog = {.len = f->len, .filter = (struct sock_filter *)f->code};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
        return aq_fail_errno(err, "cannot install the system call filter");
    return 0;
}
