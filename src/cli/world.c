/* The world that --seed and --pack choose; see world.h. */
#include "cli/world.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"

enum { SEED_TEXT = 64, PACKS = 8 };

static bool seed_good(const char *seed)
{
    size_t n = strlen(seed);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)seed[i]) && !strchr("._:-", seed[i]))
            return false;
    return n > 0 && n <= SEED_TEXT;
}

static int choose_seed(const aq_command *c, aq_arena *a, aq_world_choice *w)
{
    uint64_t random;

    if (w->seed && !seed_good(w->seed))
        return aq_say_usage(c, "--seed: 1 to %d letters, digits, dots, dashes and colons",
                            SEED_TEXT);
    if (w->seed) {
        w->secret = aq_arena_strdup(a, w->seed);
    } else {
        if (getrandom(&random, sizeof random, 0) != sizeof random)
            aq_panic("no random numbers");
        w->secret = aq_arena_alloc(a, 2 * sizeof random + 1);
        for (size_t i = 0; i < 2 * sizeof random; i++, random = random << 4 | random >> 60)
            w->secret[i] = "0123456789abcdef"[random >> 60];
        explicit_bzero(&random, sizeof random);
    }
    w->seed = w->secret;
    return AQ_PARSE_RUN;
}

/* What is wrong with a pack is the caller's to mend. */
static int say_wrong(const aq_err *err)
{
    fprintf(stderr, "aquarium: %s\n", err->text);
    return AQ_EXIT_USAGE;
}

static int read_packs(const aq_command *c, aq_arena *a, const char *list, const aq_pack **ret)
{
    const char *paths[PACKS];
    size_t count = 0;
    aq_err err = {0};

    while (list && *list) {
        size_t n = strcspn(list, ",");

        if (n && count == PACKS)
            return aq_say_usage(c, "--pack: at most %d packs", PACKS);
        if (n)
            paths[count++] = aq_arena_strndup(a, list, n);
        list += n + (list[n] == ',');
    }
    return aq_pack_read(a, paths, count, ret, &err) < 0 ? say_wrong(&err) : AQ_PARSE_RUN;
}

/* Of this machine, asked once. */
static const aq_processor *processor(void)
{
    static aq_processor own;

    if (own.len == 0)
        aq_processor_read(&own);
    return &own;
}

int aq_world_make(aq_arena *a, aq_world_choice *w, aq_err *err)
{
    aq_seed seed = aq_seed_of_text(w->seed);

    return aq_decoys_make(a, w->pack, &seed, w->side, w->start, processor(), &w->decoys, err);
}

int aq_world_outline(aq_arena *a, aq_world_choice *w, aq_err *err)
{
    aq_seed seed = aq_seed_of_text(w->seed);

    return aq_decoys_outline(a, w->pack, &seed, w->side, w->start, processor(), &w->decoys, err);
}

int aq_world_choose(const aq_command *c, aq_arena *a, aq_world_choice *w)
{
    const aq_decoys *other;
    aq_err err = {0};
    aq_seed seed;
    int r = choose_seed(c, a, w);

    if (r == AQ_PARSE_RUN)
        r = read_packs(c, a, w->packs, &w->pack);
    if (r != AQ_PARSE_RUN)
        return r;
    seed = aq_seed_of_text(w->seed);
    if (w->start == 0)
        w->start = aq_seed_start(&seed, aq_now());
    if (!w->check)
        explicit_bzero(&seed, sizeof seed);
    if (!w->later && aq_world_make(a, w, &err) < 0)
        return say_wrong(&err);
    if (!w->check)
        return AQ_PARSE_RUN;
    if (aq_decoys_make(a, w->pack, &seed, w->side == AQ_SIDE_A ? AQ_SIDE_B : AQ_SIDE_A, w->start,
                       processor(), &other, &err) < 0 ||
        aq_decoys_twins(w->decoys, other, &err) < 0)
        return say_wrong(&err);
    return AQ_PARSE_RUN;
}

const char *aq_world_tree(aq_arena *a)
{
    static const char *const places[] = {"", "/" AQ_DATA};
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        const char *path =
            aq_arena_printf(a, "%.*s%s/machine", (int)(slash - self), self, places[i]);

        if (access(aq_arena_printf(a, "%s/etc/debian_version", path), R_OK) == 0)
            return path;
    }
    return NULL;
}
