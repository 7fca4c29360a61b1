/* The tree of /sys that a world's machine has: folders, empty files and links, made by init
 * together with the other files of the world. What the files say is the observer's answer to a read
 * (the room veil). The payload can change nothing in it: Landlock gives it no right there, and
 * where there is a root inside the tree is his. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox/world.h"
#include "veil/tree.h"

static int make_node(void *arg, const aq_veil_node *n)
{
    const aq_world *w = arg;
    int r = 0;

    switch (n->kind) {
    case AQ_VEIL_FOLDER:
        r = mkdirat(w->hardware, n->path, 0755);
        break;
    case AQ_VEIL_CLOSED_FOLDER:
        r = mkdirat(w->hardware, n->path, w->own_ids ? 0700 : 0);
        break;
    case AQ_VEIL_FILE:
        r = mknodat(w->hardware, n->path, S_IFREG | 0444, 0);
        break;
    case AQ_VEIL_CLOSED:
        r = mknodat(w->hardware, n->path, S_IFREG | (w->own_ids ? 0400 : 0), 0);
        break;
    case AQ_VEIL_LINK:
        r = symlinkat(n->target, w->hardware, n->path);
        break;
    }
    return r < 0 ? -errno : 0;
}

int aq_hardware_write(const aq_world *w)
{
    mode_t mask = umask(0);
    int r = aq_veil_tree(w->plan->machine, make_node, (void *)(uintptr_t)w);

    umask(mask);
    return r;
}
