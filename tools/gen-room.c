/* How much room the files of the built-in decoys take: `gen-room OUT`. The same for every seed,
 * since values differ in what they say and never in length; so it can be said before they are made.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoy/decoy.h"

int main(int argc, char **argv)
{
    const uint64_t page = 4096;
    const int64_t start = 1800000000; /* any: numbers of today have one length */
    aq_seed seed = aq_seed_of_text("0");
    aq_arena *a = aq_arena_new();
    const aq_decoys *d = NULL;
    aq_err err = {0};
    uint64_t room = 0, large = 0;
    FILE *to = argc == 2 ? fopen(argv[1], "w") : NULL;

    if (!to || aq_decoys_make(a, aq_pack_builtin(), &seed, AQ_SIDE_A, start, NULL, &d, &err) < 0) {
        fprintf(stderr, "gen-room: %s\n", to ? err.text : "usage: gen-room OUT");
        return 1;
    }
    for (size_t i = 0; i < d->file_count; i++)
        *(d->files[i].large ? &large : &room) += (d->files[i].len + page - 1) / page * page;
    fprintf(to,
            "enum { DECOYS_ROOM = %" PRIu64 ", DECOYS_LARGE = %" PRIu64 ", DECOYS_FILES = %zu };\n",
            room, large, d->file_count);
    aq_arena_free(a);
    return fclose(to) == 0 ? 0 : 1;
}
