/* A new program in memory, as the kernel made it, and what becomes of it before it runs. */
#pragma once

#include <linux/prctl.h>
#include <sys/user.h>

#include "observe/internal.h"
#include "observe/script.h"

enum {
    AQ_IMAGE_PARTS = 32,
    AQ_CLOCK_BYTES = 4 * 4096, /* of empty pages below the library, as most kernels have clocks */
};

typedef struct aq_span {
    uint64_t from, to;
} aq_span;

typedef struct aq_image {
    uint64_t sp;
    aq_span stack, vdso, clock;
    uint64_t clock_bytes;
    aq_span parts[AQ_IMAGE_PARTS]; /* of the program, when it lies where the kernel decided */
    int count;
    bool strange; /* it has more */
    bool crowded; /* something has a fixed place where the stack may go */
} aq_image;

/* slide.c: how places in memory are moved, by the seed. */
typedef struct aq_slide {
    const aq_image *image;
    struct prctl_mm_map map;        /* as the kernel will know it */
    aq_span program;                /* empty when it is not moved */
    uint64_t *words;                /* from the stack pointer to the arguments' text; owned */
    uint64_t *words_before;         /* owned */
    size_t vector, word_count, all; /* where the vector begins and ends among them; of them */
    uint64_t by_stack, by_program, by_heap; /* down; up; up */
    uint64_t by_low;    /* down, of what lies below the arguments' text, besides */
    uint64_t vdso;      /* no distance but its new place; 0: where it is */
    size_t told, moved; /* numbers of the orders that tell the kernel, move the program */
} aq_slide;

aq_step aq_slide_exec(aq_tracer *t, aq_task *k); /* an exec is about to be made */
void aq_slide_part(const aq_mapping *m, aq_image *image);
/* Draws the distances, adds the orders, and writes the words of the stack as they will be. */
void aq_slide_plan(aq_tracer *t, aq_task *k, aq_slide *s, aq_script *script);
/* The script ended after `done` orders: 0, all is well; 1, `next` has to be run, too; negative, the
 * program lies half here and half there. */
int aq_slide_check(aq_tracer *t, aq_task *k, aq_slide *s, const aq_script *script, size_t done,
                   aq_script *next);
/* Where it begins now. */
void aq_slide_begin(aq_task *k, const aq_slide *s, struct user_regs_struct *begin);
void aq_slide_free(aq_slide *s);

/* image.c: a new program, at its stack pointer. */
void aq_image_prepare(aq_tracer *t);
void aq_image_seed(aq_tracer *t, aq_task *k, uint64_t sp);
/* False when the task has ended; `status` says how. */
bool aq_image_settle(aq_tracer *t, aq_task *k, uint64_t sp, int *status);
