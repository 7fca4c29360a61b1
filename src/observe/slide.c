/* Where things lie in the memory of a program. The kernel's own randomness is switched off in a
 * world, since no run would come out the same; a program that looks would see the same addresses
 * each time. So they are moved by the seed, at every exec by another distance:
 *
 *   libraries   lie below the room that the kernel leaves for the stack, which is as large as the
 *               limit of the stack: it is raised for the time of the exec (the task makes that call
 *               itself, in place of its exec, which it then makes again)
 *   the stack   is moved down, and every pointer into it that the kernel wrote
 *   the vDSO    goes right above it, as most kernels have it
 *   the program is moved up, when it can be (a program that has a fixed place keeps it)
 *   the heap    begins behind the program, and a little further
 *
 * The kernel is told of the new places (PR_SET_MM_MAP), so that /proc says the same. Where it does
 * not listen nothing but the libraries is moved. A program with a filter of its own, which might
 * forbid these calls, is left where it is. */
#include <elf.h>
#include <errno.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "kernel/process.h"
#include "observe/decode.h"
#include "observe/vdso.h"

enum {
    PAGE = 4096,
    WORDS = 1 << 20,       /* of pointers on a new stack, at most */
    SEGMENTS = 64,         /* of a program */
    LIBRARY_BITS = 28,     /* of chance, in pages: as the kernel's */
    STACK_BITS = 22,       /* likewise */
    LOW_BITS = 9,          /* likewise, in steps of sixteen bytes */
    HEAP_PAGES = 0x2000,   /* that the heap may begin later */
    STACK_LEAST = 1 << 21, /* it is moved by so much at least: places must not overlap */
    SCRATCH = 8192,        /* below the stack pointer: what a call is given */
    BLOCK = 1 << 21,       /* that one table of pages maps */
    ALIGN_MOST = 1 << 30,
    AT_RSEQ_FEATURES = 27, /* AT_RSEQ_FEATURE_SIZE, AT_RSEQ_ALIGN */
    AT_RSEQ_ALIGNMENT = 28,
};

/* Where the kernel puts a program that has no place of its own, and where nothing else is. */
static const uint64_t program_low = 0x550000000000, program_high = 0x600000000000;
/* Room for the stack at its lowest. */
static const uint64_t stack_room = 0x408000000;

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

typedef struct layout {
    const aq_image *image;
    struct prctl_mm_map map;   /* as the kernel knows it */
    aq_span program;           /* empty when it is not moved */
    uint64_t *words;           /* from the stack pointer to the arguments' text; owned */
    size_t vector, word_count; /* where the vector begins among them, where it ends */
    size_t all;                /* of them */
} layout;

void aq_slide_part(const aq_mapping *m, aq_image *image)
{
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
    char path[64], text[1024], *at;
    size_t n;
    FILE *f;

    snprintf(path, sizeof path, "%s/%d/stat", aq_process_proc(), k->tid);
    f = fopen(path, "re");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    at = strrchr(text, ')');
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
static bool read_words(const aq_task *k, layout *l)
{
    size_t cap = (size_t)(l->map.arg_start - l->image->sp) / sizeof *l->words, i, n;

    if (l->map.arg_start <= l->image->sp || cap > WORDS)
        return false;
    l->words = aq_alloc(cap * sizeof *l->words);
    l->all = cap;
    if (!aq_tracee_get(k, l->image->sp, l->words, cap * sizeof *l->words))
        return false;
    for (i = 1, n = 0; i < cap && n < 2; i++)
        n += l->words[i] == 0;
    l->vector = i;
    while (i + 1 < cap && l->words[i] != AT_NULL)
        i += 2;
    l->word_count = i + 2;
    return n == 2 && i + 1 < cap;
}

static uint64_t *entry(const layout *l, uint64_t type)
{
    for (size_t i = l->vector; i + 1 < l->word_count; i += 2)
        if (l->words[i] == type)
            return &l->words[i + 1];
    return NULL;
}

/* What its segments want to be aligned to; 0: they cannot be read. */
static uint64_t alignment(const aq_task *k, const layout *l)
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
static void drop(layout *l, uint64_t type)
{
    uint64_t *value = entry(l, type), *end = l->words + l->word_count;

    if (!value)
        return;
    memmove(value - 1, value + 1, (size_t)(end - (value + 1)) * sizeof *end);
    end[-2] = end[-1] = 0;
}

static bool look_around(const aq_task *k, layout *l)
{
    const aq_image *i = l->image;

    if (i->count > 0 && !i->strange)
        l->program = (aq_span){i->parts[0].from, i->parts[i->count - 1].to};
    return i->stack.from && read_map(k, &l->map) && read_words(k, l);
}

/* ---- where it goes ---- */

typedef struct distance {
    uint64_t stack, program, heap; /* down; up; up */
    uint64_t low;                  /* down, of what lies below the arguments' text, besides */
    uint64_t vdso;                 /* no distance but its new place; 0: where it is */
} distance;

/* What image.c left of the pages below the library. */
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

static distance draw(aq_tracer *t, aq_task *k, const layout *l)
{
    uint64_t size = l->program.to - l->program.from, align = size ? alignment(k, l) : 0;
    distance d = {0};

    if (k->part == RAISED) {
        d.stack = STACK_LEAST + chance(t, k, STACK_BITS) * PAGE;
        d.low = chance(t, k, LOW_BITS) * 16;
        d.vdso = above(t, k, l->image, d.stack);
    }
    d.program = (chance(t, k, LIBRARY_BITS) + 1) * PAGE;
    d.heap = chance(t, k, 32) % HEAP_PAGES * PAGE;
    if (size > 0) {
        if (d.program < size)
            d.program += size;
        d.program = align ? (d.program + align - 1) / align * align : 0;
    }
    if (l->map.start_brk >= program_low && l->map.start_brk < program_high)
        d.heap += d.program;
    if (size == 0)
        d.program = 0;
    return d;
}

static bool inside(const aq_span *p, uint64_t at)
{
    return at >= p->from && at < p->to;
}

static void move_words(layout *l, const distance *d)
{
    for (size_t i = 1; i < l->vector; i++)
        if (inside(&l->image->stack, l->words[i]))
            l->words[i] -= d->stack;
    for (size_t i = l->vector; i + 1 < l->word_count; i += 2) {
        uint64_t *value = &l->words[i + 1];

        switch (l->words[i]) {
        case AT_PHDR:
        case AT_ENTRY:
            *value += inside(&l->program, *value) ? d->program : 0;
            break;
        case AT_SYSINFO_EHDR:
            *value = d->vdso ? d->vdso : *value;
            break;
        case AT_RANDOM:
        case AT_EXECFN:
        case AT_PLATFORM:
        case AT_BASE_PLATFORM:
            if (inside(&l->image->stack, *value))
                *value -= d->stack + (*value < l->map.arg_start ? d->low : 0);
            break;
        default:
            break;
        }
    }
}

static void move_map(layout *l, const distance *d)
{
    struct prctl_mm_map *m = &l->map;
    const uint64_t code = inside(&l->program, m->start_code) ? d->program : 0;

    m->start_code += code, m->end_code += code;
    m->start_data += code, m->end_data += code;
    m->start_brk += d->heap, m->brk += d->heap;
    m->start_stack -= d->stack + d->low;
    m->arg_start -= d->stack, m->arg_end -= d->stack;
    m->env_start -= d->stack, m->env_end -= d->stack;
}

/* ---- moving ---- */

/* Back to the stack, before it is moved: a little lower, as the kernel would have it. */
static bool put_words(const aq_task *k, const layout *l, const distance *d)
{
    static const char nothing[16 << LOW_BITS];
    size_t bytes = l->all * sizeof *l->words;
    uint64_t to = l->image->sp - d->low;

    return aq_tracee_put(k, to, l->words, bytes) &&
           (!d->low || aq_tracee_put(k, to + bytes, nothing, d->low));
}

/* A call of the task, at its library's instruction. */
typedef struct hand {
    aq_task *k;
    int *status;
    bool alive;
} hand;

static long call(hand *h, long nr, const uint64_t args[6])
{
    long result = -ESRCH;

    if (h->alive)
        h->alive =
            aq_engine_inject(h->k, h->k->proc->vdso + AQ_VDSO_CALL, nr, args, &result, h->status);
    return result;
}

/* False: the kernel has another opinion, and nothing was changed. */
static bool tell_kernel(hand *h, const layout *l)
{
    struct prctl_mm_map m = l->map;
    uint64_t at = (l->image->sp - SCRATCH) & ~15ULL, vector = at + sizeof m;
    size_t bytes = (l->word_count - l->vector) * sizeof *l->words;
    const uint64_t args[6] = {PR_SET_MM, PR_SET_MM_MAP, at, sizeof m};

    if (bytes > SCRATCH / 2)
        return false;
    m.auxv = (void *)(uintptr_t)vector;
    m.auxv_size = (uint32_t)bytes;
    return aq_tracee_put(h->k, vector, l->words + l->vector, bytes) &&
           aq_tracee_put(h->k, at, &m, sizeof m) && call(h, SYS_prctl, args) == 0;
}

static bool move_one(hand *h, const aq_span *p, uint64_t to)
{
    const uint64_t args[6] = {p->from, p->to - p->from, p->to - p->from,
                              MREMAP_MAYMOVE | MREMAP_FIXED, to};

    return call(h, SYS_mremap, args) == (long)to;
}

/* Newer kernels move all of its mappings at once; older ones say at once that they do not. */
static bool move_program(aq_tracer *t, hand *h, const layout *l, uint64_t by)
{
    if (!t->moves_each && move_one(h, &l->program, l->program.from + by))
        return true;
    t->moves_each = true;
    for (int i = l->image->count; i-- > 0;)
        if (!move_one(h, &l->image->parts[i], l->image->parts[i].from + by))
            return false;
    return true;
}

/* With the empty pages below it. From then on it is there that calls are made. */
static bool move_library(hand *h, const aq_image *i, uint64_t to)
{
    const aq_span clock = {i->vdso.from - clock_bytes(i), i->vdso.from};

    if (!move_one(h, &clock, to - clock_bytes(i)) || !move_one(h, &i->vdso, to))
        return false;
    h->k->proc->vdso = to;
    return true;
}

static bool give_limit_back(hand *h, uint64_t sp)
{
    uint64_t at = (sp - SCRATCH) & ~15ULL;
    const uint64_t args[6] = {0, RLIMIT_STACK, at};

    return aq_tracee_put(h->k, at, h->k->proc->stack_limit, sizeof h->k->proc->stack_limit) &&
           call(h, SYS_prlimit64, args) == 0;
}

/* What the scratch held is the kernel's nothing again. */
static void clean(const aq_task *k, uint64_t sp)
{
    static const char nothing[SCRATCH];

    aq_tracee_put(k, (sp - SCRATCH) & ~15ULL, nothing, SCRATCH / 2 + sizeof(struct prctl_mm_map));
}

static bool move(aq_tracer *t, hand *h, layout *l)
{
    distance d = draw(t, h->k, l);
    struct user_regs_struct r;

    drop(l, AT_RSEQ_FEATURES);
    drop(l, AT_RSEQ_ALIGNMENT);
    move_words(l, &d);
    move_map(l, &d);
    if (!tell_kernel(h, l))
        return true;
    clean(h->k, l->image->sp);
    if (!put_words(h->k, l, &d) ||
        (d.stack && !move_one(h, &l->image->stack, l->image->stack.from - d.stack)) ||
        (d.vdso && !move_library(h, l->image, d.vdso)) ||
        (d.program && !move_program(t, h, l, d.program)))
        return false;
    if (aq_regs_load(h->k, &r) != 0)
        return false;
    r.rsp -= d.stack + d.low;
    r.rip += inside(&l->program, r.rip) ? d.program : 0;
    return aq_regs_begin(h->k, &r) == 0;
}

bool aq_slide_image(aq_tracer *t, aq_task *k, const aq_image *image, int *status)
{
    hand h = {k, status, true};
    layout l = {.image = image};
    bool whole;

    if (!t->plan.machine || !k->proc->vdso || k->proc->filtered)
        return true;
    whole = (k->part != RAISED || give_limit_back(&h, image->sp)) &&
            (!look_around(k, &l) || move(t, &h, &l));
    free(l.words);
    if (h.alive && !whole) {
        aq_unseen(t, k, "memory");
        kill(k->proc->pid, SIGKILL);
    }
    return h.alive;
}
