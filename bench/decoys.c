/* What does a world of decoys cost? Making it from a seed, and a run with it against the
 * same run in an empty home, taking turns. One JSON object; judges nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "session/quarantine.h"

enum { ROUNDS = 400 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;

    return (a > b) - (a < b);
}

static void report(const char *name, double *all, int count, const char *end)
{
    qsort(all, (size_t)count, sizeof *all, ascending);
    printf("\"%s\": {\"median\": %.4f, \"best\": %.4f}%s", name, all[count / 2], all[0], end);
}

static const aq_decoys *make(aq_arena *a, int i)
{
    char text[16];
    const aq_decoys *d = NULL;
    aq_err err = {0};

    snprintf(text, sizeof text, "%d", i);
    aq_seed seed = aq_seed_of_text(text);
    if (aq_decoys_make(a, aq_pack_builtin(), &seed, AQ_SIDE_A, time(NULL), NULL, &d, &err) < 0)
        aq_panic("%s", err.text);
    return d;
}

static double run(aq_arena *a, const aq_decoys *d)
{
    /* A program that looks into its home: before that nothing is written there. */
    static const char *const command[] = {"/bin/sh", "-c", "test -d ~/.ssh", NULL};
    aq_plan plan = {.argv = command};
    aq_auto_buf stream = {0};
    aq_err err = {0};
    double begun = now();

    if (d)
        aq_quarantine_plan(a, d, &plan);
    if (aq_backend_run(aq_backend_find("container"), &plan, &stream, &err) < 0)
        aq_panic("%s", err.text);
    return now() - begun;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    double *made = aq_alloc((size_t)(rounds + 1) * sizeof *made);
    double *plain = aq_alloc((size_t)(rounds + 1) * sizeof *plain);
    double *world = aq_alloc((size_t)(rounds + 1) * sizeof *world);

    for (int i = 0; i < rounds; i++) {
        aq_auto_arena a = aq_arena_new();
        double begun = now();
        const aq_decoys *d = make(a, i);

        made[i] = now() - begun;
        plain[i] = run(a, NULL);
        world[i] = run(a, d);
    }
    printf("{");
    report("made", made, rounds, ", ");
    report("plain", plain, rounds, ", ");
    report("world", world, rounds, "}\n");
    free(made);
    free(plain);
    free(world);
    return 0;
}
