/* Publishing: tiles and entry bundles up to the sequence, then a signed checkpoint over them.
 *
 * Order is everything (I3): the old tree is loaded from its tiles and must have the root that was
 * signed; new hashes are only ever added behind it; tiles and their folders are durable before the
 * checkpoint is; what the new checkpoint makes superfluous (old partial tiles, journal segments
 * whose bundle is full) goes last. A kill between any two steps leaves the old checkpoint with all
 * that it needs, or the new one with all that it needs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ledger/internal.h"

/* The right edge of the growing tree: the unfinished tile of each level. */
typedef struct edge {
    aq_ledger *l;
    aq_tile_writer files;
    aq_checkpoint old;
    uint64_t size; /* entries so far */
    struct {
        aq_digest hash[AQ_TILE];
        uint64_t count; /* hashes of this level in all */
    } level[AQ_TILE_LEVELS];
    aq_buf bundle; /* of the unfinished bundle */
} edge;

static int edge_node(void *arg, unsigned level, uint64_t index, aq_digest *ret, aq_err *err)
{
    edge *e = arg;
    unsigned at = level / 8, height = level % 8, count = 1U << height;
    uint64_t first = index << height;
    aq_digest part[AQ_TILE / 2];

    /* The root needs only nodes of unfinished tiles: everything else is inside a node above. */
    if (at >= AQ_TILE_LEVELS || first / AQ_TILE != e->level[at].count / AQ_TILE)
        return aq_fail(err, -EINVAL, "the tree's edge does not hold this hash");
    memcpy(part, &e->level[at].hash[first % AQ_TILE], count * sizeof *part);
    *ret = aq_tree_fold(part, count);
    return 0;
}

/* Loads the unfinished tiles of the published tree and checks them against its root. */
static int load_edge(edge *e, aq_err *err)
{
    aq_tree_source source = {edge_node, e};
    aq_digest root;
    int r = 0;

    for (unsigned level = 0; r == 0 && level < AQ_TILE_LEVELS; level++) {
        uint64_t count = e->old.size >> (8 * level);
        unsigned width = (unsigned)(count % AQ_TILE);
        e->level[level].count = count;
        if (width)
            r = aq_tile_read(e->l->root, level, count / AQ_TILE, width, e->level[level].hash, err);
    }
    if (r == 0)
        r = aq_tree_root(&source, e->old.size, &root, err);
    if (r == 0 && !aq_digest_equal(&root, &e->old.root))
        r = aq_fail(err, -EBADMSG,
                    "the tiles do not have the root of the published checkpoint: nothing was "
                    "signed");
    e->size = e->old.size / AQ_TILE * AQ_TILE; /* the unfinished bundle is built again */
    return r;
}

/* Adds a hash to a level; a tile that gets full is written and its root goes one level up. */
static int add_hash(edge *e, unsigned level, aq_digest hash, aq_err *err)
{
    for (; level < AQ_TILE_LEVELS; level++) {
        aq_digest *tile = e->level[level].hash, part[AQ_TILE];
        uint64_t n = e->level[level].count / AQ_TILE;
        int r;

        tile[e->level[level].count++ % AQ_TILE] = hash;
        if (e->level[level].count % AQ_TILE)
            return 0;
        r = aq_tile_write(&e->files, level, n, AQ_TILE, tile, AQ_TILE * sizeof *tile, err);
        if (r < 0)
            return r;
        memcpy(part, tile, sizeof part);
        hash = aq_tree_fold(part, AQ_TILE);
    }
    return aq_fail(err, -EFBIG, "the ledger is full");
}

/* One entry of the sequence, in order. Those of the unfinished bundle were published before: they
 * must still be the same. */
static int add_entry(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    edge *e = arg;
    uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};
    aq_digest leaf = aq_tree_leaf(entry, len);
    int r = 0;

    if (index != e->size)
        return aq_fail(err, -EBADMSG, "the sequence skips entry %llu", (unsigned long long)e->size);
    if (index < e->old.size && !aq_digest_equal(&leaf, &e->level[0].hash[index % AQ_TILE]))
        return aq_fail(err, -EBADMSG,
                       "entry %llu of the journal is not the one that was published: nothing was "
                       "signed",
                       (unsigned long long)index);
    if (index >= e->old.size)
        r = add_hash(e, 0, leaf, err);
    if (r < 0)
        return r;
    aq_buf_add(&e->bundle, head, sizeof head);
    aq_buf_add(&e->bundle, entry, len);
    if (++e->size % AQ_TILE == 0) {
        r = aq_tile_write(&e->files, AQ_TILE_ENTRIES, index / AQ_TILE, AQ_TILE, e->bundle.data,
                          e->bundle.len, err);
        aq_buf_clear(&e->bundle);
    }
    return r;
}

static int write_partial(edge *e, aq_err *err)
{
    unsigned width = (unsigned)(e->size % AQ_TILE);
    int r = 0;

    if (width)
        r = aq_tile_write(&e->files, AQ_TILE_ENTRIES, e->size / AQ_TILE, width, e->bundle.data,
                          e->bundle.len, err);
    for (unsigned level = 0; r == 0 && level < AQ_TILE_LEVELS; level++) {
        width = (unsigned)(e->level[level].count % AQ_TILE);
        if (width)
            r = aq_tile_write(&e->files, level, e->level[level].count / AQ_TILE, width,
                              e->level[level].hash, width * sizeof *e->level[level].hash, err);
    }
    return r == 0 ? aq_tile_sync(&e->files, err) : r;
}

static int sign(edge *e, aq_err *err)
{
    aq_tree_source source = {edge_node, e};
    aq_checkpoint c = {.size = e->size};
    aq_auto_buf note = {0};
    int r = aq_tree_root(&source, c.size, &c.root, err);

    if (r < 0)
        return r;
    aq_note_sign(e->l->keys, &e->l->vkey, &c, &note);
    return aq_tile_put(e->l->root, "checkpoint", note.data, note.len, err);
}

/* Removes the partial tiles of tile n that are not of `keep` hashes. Best effort: a leftover is
 * garbage, not a fault, so nothing is reported. */
static void sweep_partials(int root, unsigned level, uint64_t n, unsigned keep)
{
    char path[AQ_TILE_PATH], kept[16];
    struct dirent *d;
    DIR *dir;
    int fd;

    aq_tile_path(level, n, 1, path);
    *strrchr(path, '/') = '\0';
    fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return;
    snprintf(kept, sizeof kept, "%u", keep);
    while ((d = readdir(dir)))
        if (d->d_name[0] != '.' && (keep % AQ_TILE == 0 || strcmp(d->d_name, kept) != 0))
            unlinkat(dirfd(dir), d->d_name, 0);
    closedir(dir);
    if (keep % AQ_TILE == 0)
        unlinkat(root, path, AT_REMOVEDIR);
}

static int tidy(edge *e, aq_err *err)
{
    for (unsigned level = 0; level <= AQ_TILE_LEVELS; level++) {
        unsigned shift = level == AQ_TILE_ENTRIES ? 0 : 8 * level;
        uint64_t was = (e->old.size >> shift) / AQ_TILE, is = (e->size >> shift) / AQ_TILE;
        /* The tile before the edge too: a publisher that was killed here left its partials. */
        if (is > 0)
            sweep_partials(e->l->root, level, is - 1, AQ_TILE);
        if (was + 1 < is)
            sweep_partials(e->l->root, level, was, AQ_TILE);
        sweep_partials(e->l->root, level, is, (unsigned)((e->size >> shift) % AQ_TILE));
    }
    return e->l->sequence->ops->forget(e->l->sequence, e->size / AQ_TILE * AQ_TILE, err);
}

static int publish_locked(edge *e, aq_err *err)
{
    aq_auto_buf note = {0};
    aq_sequence *s = e->l->sequence;
    uint64_t size;
    int r = aq_ledger_published(e->l, &note, &e->old, err);

    if (r == 0)
        r = s->ops->size(s, &size, err);
    if (r < 0)
        return r;
    if (size < e->old.size)
        return aq_fail(err, -EBADMSG,
                       "the journal has %llu entries, but %llu are published: it is an old copy "
                       "or was cut; nothing was signed",
                       (unsigned long long)size, (unsigned long long)e->old.size);
    if (note.len && size == e->old.size)
        return 0;
    r = load_edge(e, err);
    if (r == 0)
        r = s->ops->read(s, e->size, size, add_entry, e, err);
    if (r == 0)
        r = write_partial(e, err);
    if (r == 0)
        r = sign(e, err);
    return r == 0 ? tidy(e, err) : r;
}

int aq_ledger_publish(aq_ledger *l, aq_err *err)
{
    aq_auto_fd int lock = -1;
    edge *e;
    int r;

    if (!l->keys || !l->sequence)
        return aq_fail(err, -EROFS, "this ledger was opened for reading");
    lock = openat(l->root, "journal/publish", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return aq_fail_errno(err, "cannot open journal/publish");
    pthread_mutex_lock(&l->publishing);
    while ((r = flock(lock, LOCK_EX)) < 0 && errno == EINTR)
        ;
    if (r < 0) {
        r = aq_fail_errno(err, "cannot lock the ledger for publishing");
    } else {
        e = aq_alloc(sizeof *e);
        e->l = l;
        e->files.root = l->root;
        r = publish_locked(e, err);
        aq_buf_free(&e->bundle);
        free(e);
    }
    pthread_mutex_unlock(&l->publishing);
    return r;
}
