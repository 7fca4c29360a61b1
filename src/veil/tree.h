/* The tree of /sys of a machine that does not exist (sys.def): its folders, empty files and links.
 * What is in the files veil.h says when they are read. */
#pragma once

#include "model/machine.h"

typedef enum aq_veil_kind {
    AQ_VEIL_FOLDER,
    AQ_VEIL_CLOSED_FOLDER, /* only root may look into it */
    AQ_VEIL_FILE,
    AQ_VEIL_CLOSED, /* only root may read it */
    AQ_VEIL_LINK,
} aq_veil_kind;

typedef struct aq_veil_node {
    aq_veil_kind kind;
    const char *path;   /* below /sys; lives until the next one */
    const char *target; /* of a link */
} aq_veil_node;

/* Calls `each` for every node, folders before what is in them, until it says something else than 0,
 * which is returned. */
int aq_veil_tree(const aq_machine *m, int (*each)(void *arg, const aq_veil_node *n), void *arg);
size_t aq_veil_tree_size(const aq_machine *m); /* nodes */
