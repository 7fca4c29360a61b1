/* The program that people start. It runs a world itself, so that `aquarium run` starts in half the
 * time and its image, of which the keeper of a world is a copy, has neither keys nor parsers of
 * packages in it. For every other command it becomes the clean room (main.c), which lies beside it
 * in a build and in libexec when installed. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/cli.h"

/* Returns only if it could not be started, and says why. */
static int become_cleanroom(char **argv)
{
    static const char *const places[] = {"", "/" AQ_LIBEXEC};
    char self[PATH_MAX] = "", path[PATH_MAX + 256] = "/proc/self/exe";
    ssize_t n = readlink(path, self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/aquarium-cleanroom", self, places[i]);
        execv(path, argv);
        if (errno != ENOENT)
            break;
    }
    fprintf(stderr, "aquarium: cannot start %s: %s\n", path, strerror(errno));
    return AQ_EXIT_OURS;
}

/* A number that nobody can guess for tables of JSON, whose library would read it from a file. */
static void seed_tables(void)
{
    size_t number = 0;

    if (getrandom(&number, sizeof number, 0) == sizeof number)
        json_object_seed(number);
}

int main(int argc, char **argv)
{
    const aq_command *run = &aq_command_run;
    aq_args args;
    int r;

    if (argc < 2 || strcmp(argv[1], run->name) != 0)
        return become_cleanroom(argv);
    aq_begin();
    seed_tables();
    r = aq_args_parse(run, argc - 2, argv + 2, &args);
    return r == AQ_PARSE_RUN ? run->run(&args) : r;
}
