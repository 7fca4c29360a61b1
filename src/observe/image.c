/* A new program in memory, before its first instruction. The kernel put some things there that tell
 * of the host or of chance: random bytes, and a library with pages of the host's clock beside it.
 * The bytes become the world's. The library becomes our own (vdso.h), whose functions make calls;
 * the clock's pages go, and an empty one that nobody asks is in their place. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "observe/image.h"

enum {
    AUXV_ENTRIES = 64,
    STACK_WORDS = 1 << 20,
    RANDOM_BYTES = 16,
    PAGE = 4096,
    DONTNEED_LOCKED = 24,    /* MADV_DONTNEED_LOCKED */
    MAP_VDSO_FIRST = 0x2001, /* ARCH_MAP_VDSO_X32, _32, _64 */
    MAP_VDSO_LAST = 0x2003,
};

/* ---- the auxiliary vector ---- */

/* It follows the environment on the new stack; the kernel made it, so it is there, but a bound
 * keeps a surprise short. */
static uint64_t find_auxv(const aq_task *k, uint64_t sp)
{
    uint64_t at, word = 0, words = 0;

    if (!aq_tracee_get(k, sp, &word, sizeof word) || word > STACK_WORDS)
        return 0;
    at = sp + 8 * (word + 2);
    do {
        uint64_t chunk[64];
        ssize_t n = aq_tracee_read(k, at, chunk, sizeof chunk);

        if (n < 8)
            return 0;
        for (ssize_t i = 0; i < n / 8; i++, at += 8)
            if (chunk[i] == 0)
                return at + 8;
        words += 64;
    } while (words < STACK_WORDS);
    return 0;
}

/* Where the value of this entry is; 0: there is none. */
static uint64_t find_entry(const aq_task *k, uint64_t sp, uint64_t type, uint64_t *value)
{
    uint64_t at = find_auxv(k, sp), v[2 * AUXV_ENTRIES];
    ssize_t n = at ? aq_tracee_read(k, at, v, sizeof v) : 0;

    for (ssize_t i = 0; i + 1 < n / 8 && v[i] != AT_NULL; i += 2)
        if (v[i] == type) {
            *value = v[i + 1];
            return at + 8 * (uint64_t)i;
        }
    return 0;
}

/* From these bytes a program makes the canaries of its stack and hides its pointers. */
void aq_image_seed(aq_tracer *t, aq_task *k, uint64_t sp)
{
    char bytes[RANDOM_BYTES];
    uint64_t at = 0;

    if (!t->plan.machine || !find_entry(k, sp, AT_RANDOM, &at))
        return;
    aq_entropy_bytes(t, k, bytes, sizeof bytes);
    if (!aq_tracee_put(k, at, bytes, sizeof bytes))
        aq_unseen(t, k, "entropy");
}

/* ---- the library ---- */

static bool find_places(const aq_mapping *m, void *arg)
{
    aq_image *p = arg;

    aq_slide_part(m, p);
    if (strcmp(m->name, "[vdso]") == 0)
        p->vdso = (aq_span){m->from, m->to};
    if (p->sp >= m->from && p->sp < m->to)
        p->stack = (aq_span){m->from, m->to};
    if (strncmp(m->name, "[vvar", 5) != 0)
        return false; /* there may be more */
    if (!p->clock.from || m->from < p->clock.from)
        p->clock.from = m->from;
    if (m->to > p->clock.to)
        p->clock.to = m->to;
    p->clock_bytes += m->to - m->from;
    return false;
}

void aq_image_prepare(aq_tracer *t)
{
    const char *text = t->plan.machine ? aq_machine_fact(t->plan.machine, "kernel.version") : NULL;

    t->vdso = aq_alloc(AQ_VDSO_BYTES);
    aq_vdso_make(text ? aq_vdso_version(text) : 0, t->vdso);
}

/* Only this file of /proc writes where the program itself may not. The pages are copies then, of
 * this process and of those that it forks. What is left of the kernel's library is overwritten with
 * nothing. */
static bool write_library(const aq_tracer *t, int mem, const aq_image *p, const aq_script *s)
{
    static const uint8_t nothing[PAGE];
    uint8_t page[AQ_VDSO_BYTES];

    memcpy(page, t->vdso, sizeof page);
    if (s)
        aq_script_write(s, page);
    if (pwrite(mem, page, sizeof page, (off_t)p->vdso.from) != AQ_VDSO_BYTES)
        return false;
    for (uint64_t at = p->vdso.from + AQ_VDSO_BYTES; at < p->vdso.to; at += PAGE)
        if (pwrite(mem, nothing, PAGE, (off_t)at) != PAGE)
            return false;
    return true;
}

/* The empty pages lie where the clock's did: all are covered, since the kernel gives its own back
 * only as a whole. */
static void cover_clock(aq_script *s, const aq_image *p)
{
    const uint64_t cover[6] = {p->clock.from, p->clock_bytes, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, ~0ULL};

    aq_script_add(s, SYS_mmap, cover, p->clock.from);
}

/* They are as many as most kernels have. */
static void drop_rest(aq_script *s, const aq_image *p)
{
    const uint64_t rest[6] = {p->clock.from, p->clock_bytes - AQ_CLOCK_BYTES};

    if (p->clock_bytes > AQ_CLOCK_BYTES)
        aq_script_add(s, SYS_munmap, rest, 0);
}

/* A program that kept the host's clock would read it unseen: it is not run. */
static void not_settled(aq_tracer *t, aq_task *k, const char *what)
{
    aq_unseen(t, k, what);
    kill(k->proc->pid, SIGKILL);
}

/* In one script, from the stop at exec on. A second one follows where the kernel did not do what
 * newer ones do. */
static bool settle_at_once(aq_tracer *t, aq_task *k, const aq_image *p, int mem, int *status)
{
    aq_script script = {.home = p->vdso.from}, next = {.home = p->vdso.from};
    aq_slide slide = {.image = p};
    struct user_regs_struct begin;
    size_t done = 0;
    int more = -EFAULT;
    bool alive = true;

    cover_clock(&script, p);
    aq_slide_plan(t, k, &slide, &script);
    if (!script.leaves)
        drop_rest(&script, p);
    drop_rest(&next, p);
    if (aq_regs_load(k, &begin) == 0 && write_library(t, mem, p, &script))
        alive = aq_script_run(k, mem, &script, &begin, &done, status);
    if (done > 0)
        more = aq_slide_check(t, k, &slide, &script, done, &next);
    if (alive && more > 0 && write_library(t, mem, p, &next)) {
        alive = aq_script_run(k, mem, &next, &begin, &done, status);
        more = done == next.count ? 0 : -EFAULT;
    }
    begin.rax = 0; /* as exec returns */
    begin.orig_rax = UINT64_MAX;
    aq_slide_begin(k, &slide, &begin);
    if (alive && (more != 0 || aq_regs_begin(k, &begin) != 0))
        not_settled(t, k, done == 0 ? "clock" : "memory");
    aq_slide_free(&slide);
    return alive;
}

/* ---- one by one, where a filter of the program's own may have another opinion ---- */

/* An exec has to return before the program can make a call for us. */
static bool leave_exec(const aq_task *k, int *status)
{
    ptrace(PTRACE_SYSCALL, k->tid, 0, 0);
    return aq_engine_wait(k, status) && WIFSTOPPED(*status) &&
           WSTOPSIG(*status) == (SIGTRAP | 0x80);
}

static bool make_calls(aq_tracer *t, aq_task *k, const aq_script *s, uint64_t at, int *status)
{
    bool alive = leave_exec(k, status);

    for (size_t i = 0; alive && i < s->count; i++) {
        const aq_order *o = &s->order[i];
        long result = 0;

        alive = aq_engine_inject(k, at, (long)o->nr, o->args, &result, status);
        if (alive && (uint64_t)result != o->expect) {
            not_settled(t, k, "clock");
            break;
        }
    }
    return alive;
}

static bool settle_filtered(aq_tracer *t, aq_task *k, const aq_image *p, int mem, int *status)
{
    aq_script script = {.home = p->vdso.from};

    cover_clock(&script, p); /* how many pages there are matters less than what it forbids */
    if (!write_library(t, mem, p, NULL)) {
        not_settled(t, k, "clock");
        return true;
    }
    return make_calls(t, k, &script, p->vdso.from + AQ_VDSO_CALL, status);
}

/* Takes it away altogether, where ours cannot be put there. */
static bool take_away(aq_tracer *t, aq_task *k, const aq_image *p, int *status)
{
    uint64_t from = p->clock.from && p->clock.from < p->vdso.from ? p->clock.from : p->vdso.from;
    uint64_t to = p->clock.to > p->vdso.to ? p->clock.to : p->vdso.to;
    const uint64_t args[6] = {from, to - from}, ignore = AT_IGNORE;
    uint64_t value, at = find_entry(k, p->sp, AT_SYSINFO_EHDR, &value);
    aq_script script = {0};

    if (at)
        aq_tracee_put(k, at, &ignore, sizeof ignore);
    aq_script_add(&script, SYS_munmap, args, 0);
    return make_calls(t, k, &script, 0, status);
}

bool aq_image_settle(aq_tracer *t, aq_task *k, uint64_t sp, int *status)
{
    aq_image p = {.sp = sp};
    aq_auto_fd int mem = -1;
    char path[64];

    aq_tracee_maps(k, find_places, &p);
    if (!p.vdso.from && !p.clock.from)
        return true;
    snprintf(path, sizeof path, "%s/%d/mem", aq_process_proc(), k->tid);
    mem = open(path, O_RDWR | O_CLOEXEC);
    if (mem < 0 || !p.clock.from || p.clock.to != p.vdso.from ||
        p.clock.to - p.clock.from != p.clock_bytes)
        return take_away(t, k, &p, status);
    k->proc->vdso = p.vdso.from;
    k->proc->vdso_bytes = p.vdso.to - p.vdso.from;
    return k->proc->filtered ? settle_filtered(t, k, &p, mem, status)
                             : settle_at_once(t, k, &p, mem, status);
}

/* ---- what a program does to the library ---- */

static bool on_library(const aq_task *k, uint64_t at, uint64_t len)
{
    const aq_proc *p = k->proc;
    uint64_t to;

    if (__builtin_add_overflow(at, len, &to))
        to = UINT64_MAX;
    return p->vdso && at < p->vdso + p->vdso_bytes && to > p->vdso;
}

/* To drop its pages, in a child too, would bring the kernel's own back. Nobody can see that they
 * were not dropped: they would come back with the same content. */
aq_step aq_try_advice(aq_tracer *t, aq_task *k)
{
    int advice = (int)aq_regs_arg(k, 2);

    (void)t;
    if ((advice == MADV_DONTNEED || advice == DONTNEED_LOCKED || advice == MADV_WIPEONFORK) &&
        on_library(k, aq_regs_arg(k, 0), aq_regs_arg(k, 1)))
        return aq_answer(k, 0);
    return AQ_STEP_GO;
}

aq_step aq_try_remap(aq_tracer *t, aq_task *k)
{
    (void)t;
    return on_library(k, aq_regs_arg(k, 0), aq_regs_arg(k, 1)) ? AQ_STEP_RUN : AQ_STEP_GO;
}

/* The kernel moves it as a whole or not at all. */
aq_step aq_after_remap(aq_tracer *t, aq_task *k, long *result)
{
    (void)t;
    if (*result > 0 && aq_regs_arg(k, 0) == k->proc->vdso)
        k->proc->vdso = (uint64_t)*result;
    return AQ_STEP_RUN;
}

/* The kernel would map its library once more, with the clock's pages, for whoever gave ours back.
 */
aq_step aq_try_arch(aq_tracer *t, aq_task *k)
{
    uint64_t option = aq_regs_arg(k, 0);

    (void)t;
    return option >= MAP_VDSO_FIRST && option <= MAP_VDSO_LAST ? aq_answer(k, -EEXIST) : AQ_STEP_GO;
}
