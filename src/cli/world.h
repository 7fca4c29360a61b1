/* The world that --seed and --pack choose; for the commands that take them. */
#pragma once

#include "cli/cli.h"
#include "decoy/decoy.h"

typedef struct aq_world_choice {
    const char *seed;  /* of the command line; a random one is drawn when it is NULL */
    const char *packs; /* "FILE,FILE", or NULL */
    aq_side side;
    int64_t start; /* of its clock; 0: as the seed says */
    bool check;    /* make the other world too, and see that they are twins */
    bool later;    /* only choose: aq_world_make is called when it is wanted */
    char *secret;  /* the seed, where it lies in memory and nowhere else */
    const aq_pack *pack;
    const aq_decoys *decoys;
} aq_world_choice;

/* AQ_PARSE_RUN with seed and decoys set, or the status after saying what is wrong. */
int aq_world_choose(const aq_command *c, aq_arena *a, aq_world_choice *w);
/* The decoys of a choice; only a private pack can make it fail. */
int aq_world_make(aq_arena *a, aq_world_choice *w, aq_err *err);
/* What can be had of them soon: no files. */
int aq_world_outline(aq_arena *a, aq_world_choice *w, aq_err *err);

/* The folder of files that every machine of a world has: beside the program in a build, with its
 * data where it is installed. NULL when there is none. */
const char *aq_world_tree(aq_arena *a);
