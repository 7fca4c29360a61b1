/* Where things lie in the memory of a program. The kernel's own randomness is switched off in a
 * world, since no run would come out the same; a program that looks would see the same addresses
 * each time. So they are moved by the seed, at every exec by another distance:
 *
 *   libraries   lie below the room that the kernel leaves for the stack, which is as large as the
 *               limit of the stack: it is raised for the time of the exec (the task makes that call
 *               itself, in place of its exec, which it then makes again)
 *   the stack   is moved down, and every pointer into it that the kernel wrote
 *   the vDSO    goes right above it, as most kernels have it
 *   the program is moved up, when it can be (a program that has a fixed place keeps it, and where
 *               that is one that the stack might get the stack keeps its own)
 *   the heap    begins behind the program, and a little further
 *
 * The kernel is told of the new places (PR_SET_MM_MAP), so that /proc says the same. Where it does
 * not listen nothing but the libraries is moved. A program with a filter of its own, which might
 * forbid these calls, is left where it is. */
#include <elf.h>
#include <errno.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "observe/decode.h"
#include "observe/image.h"

enum {
    PAGE = 4096,
    WORDS = 1 << 20,       /* of pointers on a new stack, at most */
    SEGMENTS = 64,         /* of a program */
    LIBRARY_BITS = 28,     /* of chance, in pages: as the kernel's */
    STACK_BITS = 22,       /* likewise */
    LOW_BITS = 9,          /* likewise, in steps of sixteen bytes */
    HEAP_PAGES = 0x2000,   /* that the heap may begin later */
    STACK_LEAST = 1 << 21, /* it is moved by so much at least: places must not overlap */
    BLOCK = 1 << 21,       /* that one table of pages maps */
    ALIGN_MOST = 1 << 30,
    AT_RSEQ_FEATURES = 27, /* AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN */
    AT_RSEQ_ALIGNMENT = 28,
};

/* Where the kernel puts a program that has no place of its own, and where nothing else is. */
static const uint64_t program_low = 0x550000000000, program_high = 0x600000000000;
/* Room for the stack at its lowest, and where it ends. */
static const uint64_t stack_room = 0x408000000, stack_end = 0x7ffffffff000;

/* Steps of an exec, in aq_task.part. */
enum { BEGIN, RAISING, RAISED, GIVING_BACK, PLAIN };

static uint64_t chance(aq_tracer *t, aq_task *k, unsigned bits)
{
    uint64_t n = 0;

    aq_entropy_bytes(t, k, &n, sizeof n);
    return n & ((1ULL << bits) - 1);
}

/* ---- the limit of the stack ---- */

/* In place of its call the task sets its limit. `limit[2]`, if there: where the old one goes. */
static aq_step set_limit(aq_task *k, const uint64_t *limit, size_t words)
{
    uint64_t at = aq_tracee_scratch(k, limit, words * sizeof *limit);

    if (!at) {
        k->part = PLAIN;
        return AQ_STEP_RUN;
    }
    aq_regs_set_call(k, SYS_prlimit64);
    aq_regs_set_arg(k, 0, 0);
    aq_regs_set_arg(k, 1, RLIMIT_STACK);
    aq_regs_set_arg(k, 2, at);
    aq_regs_set_arg(k, 3, words > 2 ? at + 2 * sizeof *limit : 0);
    return AQ_STEP_RUN;
}

aq_step aq_slide_exec(aq_tracer *t, aq_task *k)
{
    uint64_t limit[4] = {stack_room, RLIM_INFINITY};

    if (!t->plan.machine || k->proc->filtered)
        return AQ_STEP_RUN;
    if (k->part == GIVING_BACK)
        return set_limit(k, k->proc->stack_limit, 2);
    if (k->part != BEGIN)
        return AQ_STEP_RUN;
    limit[0] += chance(t, k, LIBRARY_BITS) * PAGE;
    k->part = RAISING;
    return set_limit(k, limit, 4);
}

/* The exec itself comes here only when it failed: a new program begins elsewhere. */
aq_step aq_after_exec(aq_tracer *t, aq_task *k, long *result)
{
    uint64_t old[2];

    (void)t;
    switch (k->part) {
    case RAISING:
        k->part = PLAIN;
        if (*result == 0 && aq_tracee_get(k, aq_regs_now(k, 3), old, sizeof old)) {
            k->part = RAISED;
            if (old[0] < stack_room) /* else a signal came between: it is our own */
                memcpy(k->proc->stack_limit, old, sizeof old);
        }
        return AQ_STEP_AGAIN;
    case RAISED:
        k->part = GIVING_BACK;
        k->done = (uint64_t) - *result;
        return AQ_STEP_AGAIN;
    case GIVING_BACK:
        *result = -(long)k->done;
        return AQ_STEP_RUN;
    default:
        return AQ_STEP_RUN;
    }
}

/* ---- what there is ---- */

void aq_slide_part(const aq_mapping *m, aq_image *image)
{
    if (*m->name != '[' && m->to > stack_end - stack_room && m->from < stack_end &&
        (image->sp < m->from || image->sp >= m->to))
        image->crowded = true;
    if (m->from < program_low || m->to > program_high)
        return;
    if (image->count == AQ_IMAGE_PARTS)
        image->strange = true;
    else
        image->parts[image->count++] = (aq_span){m->from, m->to};
}

static bool read_map(const aq_task *k, struct prctl_mm_map *m)
{
    /* Numbers of fields in /proc/PID/stat, counted from the one after the name. */
    enum { START_CODE = 24, END_CODE, START_STACK, START_DATA = 43 };
    uint64_t field[64] = {0};
    char text[AQ_STAT], *at = aq_task_stat(k->tid, text);
    size_t n;

    for (n = 0; at && (at = strchr(at, ' ')) && n < 63; at++)
        field[++n] = strtoull(at + 1, NULL, 10);
    *m = (struct prctl_mm_map){.start_code = field[START_CODE],
                               .end_code = field[END_CODE],
                               .start_data = field[START_DATA],
                               .end_data = field[START_DATA + 1],
                               .start_brk = field[START_DATA + 2],
                               .brk = field[START_DATA + 2],
                               .start_stack = field[START_STACK],
                               .arg_start = field[START_DATA + 3],
                               .arg_end = field[START_DATA + 4],
                               .env_start = field[START_DATA + 5],
                               .env_end = field[START_DATA + 6],
                               .exe_fd = (uint32_t)-1};
    return n >= START_DATA + 6 && m->start_code && m->start_stack && m->arg_start;
}

/* Count, arguments, 0, environment, 0, the vector. */
static bool read_words(const aq_task *k, aq_slide *l)
{
    size_t cap = (size_t)(l->map.arg_start - l->image->sp) / sizeof *l->words, i, n;

    if (l->map.arg_start <= l->image->sp || cap > WORDS)
        return false;
    l->words = aq_alloc(cap * sizeof *l->words);
    l->all = cap;
    l->words_before = aq_alloc(cap * sizeof *l->words);
    if (!aq_tracee_get(k, l->image->sp, l->words, cap * sizeof *l->words))
        return false;
    memcpy(l->words_before, l->words, cap * sizeof *l->words);
    for (i = 1, n = 0; i < cap && n < 2; i++)
        n += l->words[i] == 0;
    l->vector = i;
    while (i + 1 < cap && l->words[i] != AT_NULL)
        i += 2;
    l->word_count = i + 2;
    return n == 2 && i + 1 < cap;
}

static uint64_t *entry(const aq_slide *l, uint64_t type)
{
    for (size_t i = l->vector; i + 1 < l->word_count; i += 2)
        if (l->words[i] == type)
            return &l->words[i + 1];
    return NULL;
}

/* What its segments want to be aligned to; 0: they cannot be read. */
static uint64_t alignment(const aq_task *k, const aq_slide *l)
{
    const uint64_t *at = entry(l, AT_PHDR), *count = entry(l, AT_PHNUM);
    Elf64_Phdr p[SEGMENTS];
    uint64_t most = PAGE;

    if (!at || !count || *count > SEGMENTS || !aq_tracee_get(k, *at, p, *count * sizeof *p))
        return 0;
    for (uint64_t i = 0; i < *count; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_align > most)
            most = p[i].p_align;
    return most > ALIGN_MOST || (most & (most - 1)) ? 0 : most;
}

/* Kernels of the machine's age do not offer restartable sequences by the vector, and the call is
 * refused. What follows moves up. */
static void drop(aq_slide *l, uint64_t type)
{
    uint64_t *value = entry(l, type), *end = l->words + l->word_count;

    if (!value)
        return;
    memmove(value - 1, value + 1, (size_t)(end - (value + 1)) * sizeof *end);
    end[-2] = end[-1] = 0;
}

static bool look_around(const aq_task *k, aq_slide *l)
{
    const aq_image *i = l->image;

    if (i->count > 0 && !i->strange)
        l->program = (aq_span){i->parts[0].from, i->parts[i->count - 1].to};
    return i->stack.from && read_map(k, &l->map) && read_words(k, l);
}

/* ---- where it goes ---- */

/* What will be left of the pages below the library. */
static uint64_t clock_bytes(const aq_image *i)
{
    return i->clock_bytes < AQ_CLOCK_BYTES ? i->clock_bytes : AQ_CLOCK_BYTES;
}

/* Somewhere in what is left of the two megabytes in which the stack ends. */
static uint64_t above(aq_tracer *t, aq_task *k, const aq_image *i, uint64_t down)
{
    uint64_t from = i->stack.to - down, end = (from + BLOCK - 1) / BLOCK * BLOCK;
    uint64_t need = clock_bytes(i) + (i->vdso.to - i->vdso.from), room = end - from;

    if (room > need)
        from += chance(t, k, 32) % ((room - need) / PAGE + 1) * PAGE;
    return from + clock_bytes(i);
}

static void draw(aq_tracer *t, aq_task *k, aq_slide *l)
{
    uint64_t size = l->program.to - l->program.from, align = size ? alignment(k, l) : 0;

    if (k->part == RAISED && !l->image->crowded) {
        l->by_stack = STACK_LEAST + chance(t, k, STACK_BITS) * PAGE;
        l->by_low = chance(t, k, LOW_BITS) * 16;
        l->vdso = above(t, k, l->image, l->by_stack);
    }
    l->by_program = (chance(t, k, LIBRARY_BITS) + 1) * PAGE;
    l->by_heap = chance(t, k, 32) % HEAP_PAGES * PAGE;
    if (size > 0) {
        if (l->by_program < size)
            l->by_program += size;
        l->by_program = align ? (l->by_program + align - 1) / align * align : 0;
    }
    if (l->map.start_brk >= program_low && l->map.start_brk < program_high)
        l->by_heap += l->by_program;
    if (size == 0)
        l->by_program = 0;
}

static bool inside(const aq_span *p, uint64_t at)
{
    return at >= p->from && at < p->to;
}

static void move_words(aq_slide *l)
{
    for (size_t i = 1; i < l->vector; i++)
        if (inside(&l->image->stack, l->words[i]))
            l->words[i] -= l->by_stack;
    for (size_t i = l->vector; i + 1 < l->word_count; i += 2) {
        uint64_t *value = &l->words[i + 1];

        switch (l->words[i]) {
        case AT_PHDR:
        case AT_ENTRY:
            *value += inside(&l->program, *value) ? l->by_program : 0;
            break;
        case AT_SYSINFO_EHDR:
            *value = l->vdso ? l->vdso : *value;
            break;
        case AT_RANDOM:
        case AT_EXECFN:
        case AT_PLATFORM:
        case AT_BASE_PLATFORM:
            if (inside(&l->image->stack, *value))
                *value -= l->by_stack + (*value < l->map.arg_start ? l->by_low : 0);
            break;
        default:
            break;
        }
    }
}

static void move_map(aq_slide *l)
{
    struct prctl_mm_map *m = &l->map;
    const uint64_t code = inside(&l->program, m->start_code) ? l->by_program : 0;

    m->start_code += code, m->end_code += code;
    m->start_data += code, m->end_data += code;
    m->start_brk += l->by_heap, m->brk += l->by_heap;
    m->start_stack -= l->by_stack + l->by_low;
    m->arg_start -= l->by_stack, m->arg_end -= l->by_stack;
    m->env_start -= l->by_stack, m->env_end -= l->by_stack;
}

/* ---- moving ---- */

/* Back to the stack, before it is moved: a little lower, as the kernel would have it. */
static bool put_words(const aq_task *k, const aq_slide *l)
{
    static const char nothing[16 << LOW_BITS];
    size_t bytes = l->all * sizeof *l->words;
    uint64_t to = l->image->sp - l->by_low;

    return aq_tracee_put(k, to, l->words, bytes) &&
           (!l->by_low || aq_tracee_put(k, to + bytes, nothing, l->by_low));
}

/* As if nothing had been. */
static bool put_words_back(const aq_task *k, const aq_slide *l)
{
    static const char nothing[16 << LOW_BITS];
    uint64_t sp = l->image->sp;

    return aq_tracee_put(k, sp - l->by_low, nothing, l->by_low) &&
           aq_tracee_put(k, sp, l->words_before, l->all * sizeof *l->words);
}

static void give_limit_back(const aq_task *k, aq_script *s)
{
    const uint64_t *limit = k->proc->stack_limit;
    const uint64_t args[6] = {0, RLIMIT_STACK,
                              aq_script_data(s, limit, sizeof k->proc->stack_limit)};

    aq_script_add(s, SYS_prlimit64, args, 0);
}

static bool tell_kernel(aq_slide *l, aq_script *s)
{
    size_t bytes = (l->word_count - l->vector) * sizeof *l->words;
    uint64_t args[6] = {PR_SET_MM, PR_SET_MM_MAP, 0, sizeof l->map};

    l->map.auxv = (void *)(uintptr_t)aq_script_data(s, l->words + l->vector, bytes);
    l->map.auxv_size = (uint32_t)bytes;
    args[2] = aq_script_data(s, &l->map, sizeof l->map);
    l->told = s->count;
    return l->map.auxv && args[2] && aq_script_add(s, SYS_prctl, args, 0);
}

static void move_one(aq_script *s, const aq_span *p, uint64_t bytes, uint64_t to)
{
    const uint64_t args[6] = {p->from, p->to - p->from, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to};

    aq_script_add(s, SYS_mremap, args, to);
}

static void move_whole(aq_script *s, const aq_span *p, uint64_t to)
{
    move_one(s, p, p->to - p->from, to);
}

/* With the empty pages below it, of which those that are too many are left. It is the last: the
 * script lies in it. */
static void move_library(aq_script *s, const aq_slide *l)
{
    const aq_image *i = l->image;

    if (!l->vdso)
        return;
    move_one(s, &i->clock, clock_bytes(i), l->vdso - clock_bytes(i));
    move_whole(s, &i->vdso, l->vdso);
    s->leaves = true;
}

static void move_parts(aq_script *s, const aq_slide *l)
{
    for (int i = l->image->count; i-- > 0;)
        move_whole(s, &l->image->parts[i], l->image->parts[i].from + l->by_program);
}

/* Whether all that may have to be moved finds room in one script: limit, kernel, stack, two of the
 * library, and what was there. */
static bool fits(const aq_slide *l, const aq_script *s)
{
    return s->count + 5 + (size_t)l->image->count <= AQ_SCRIPT_ORDERS;
}

void aq_slide_plan(aq_tracer *t, aq_task *k, aq_slide *l, aq_script *s)
{
    l->told = l->moved = SIZE_MAX;
    if (!t->plan.machine)
        return;
    if (k->part == RAISED)
        give_limit_back(k, s);
    if (!fits(l, s) || !look_around(k, l))
        return;
    draw(t, k, l);
    drop(l, AT_RSEQ_FEATURES);
    drop(l, AT_RSEQ_ALIGNMENT);
    move_words(l);
    move_map(l);
    if (!put_words(k, l) || !tell_kernel(l, s)) {
        put_words_back(k, l);
        l->told = SIZE_MAX;
        return;
    }
    if (l->by_stack)
        move_whole(s, &l->image->stack, l->image->stack.from - l->by_stack);
    l->moved = s->count;
    if (l->by_program && t->moves_each)
        move_parts(s, l);
    else if (l->by_program)
        move_whole(s, &l->program, l->program.from + l->by_program);
    move_library(s, l);
}

/* A kernel that does not listen: nothing but the libraries has moved. One that does not move all of
 * a program's mappings at once, as newer ones do, says so before it has moved any. */
int aq_slide_check(aq_tracer *t, aq_task *k, aq_slide *l, const aq_script *s, size_t done,
                   aq_script *next)
{
    if (done == s->count)
        return 0;
    if (done == l->told) {
        l->told = SIZE_MAX;
        return put_words_back(k, l) ? 1 : -EFAULT;
    }
    if (done != l->moved || t->moves_each || !l->by_program)
        return -EFAULT;
    t->moves_each = true;
    next->count = 0;
    move_parts(next, l);
    move_library(next, l);
    return 1;
}

void aq_slide_begin(aq_task *k, const aq_slide *l, struct user_regs_struct *begin)
{
    if (l->told == SIZE_MAX)
        return;
    begin->rsp -= l->by_stack + l->by_low;
    begin->rip += inside(&l->program, begin->rip) ? l->by_program : 0;
    if (l->vdso)
        k->proc->vdso = l->vdso;
}

void aq_slide_free(aq_slide *l)
{
    free(l->words);
    free(l->words_before);
}
