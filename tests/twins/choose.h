/* A program of many acts: its one argument says which. */
#pragma once

#include <stdio.h>
#include <string.h>

typedef struct act {
    const char *name;
    int (*run)(void);
} act;

static inline int choose(const act *acts, size_t count, int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < count; i++)
        if (strcmp(argv[1], acts[i].name) == 0)
            return acts[i].run();
    fprintf(stderr, "no such act\n");
    return 64;
}
