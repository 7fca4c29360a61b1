/* The audit: reads everything again and believes nothing.
 *
 * One pass over the entries in order: bundle and journal (where both have it they must agree),
 * canonical form, index, chain, leaf hash against the tile; tiles of all levels against a tree that
 * is built beside them; at the published size the root against the signed checkpoint. The edge of
 * the published tree is copied before the pass, because a publisher may replace partial tiles while
 * it runs; full tiles never change. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ledger/internal.h"

typedef struct audit {
    aq_ledger *l;
    aq_ledger_audit facts;
    aq_checkpoint c;
    bool journal; /* this pass is over the journal's copy of published entries */
    aq_digest prev;
    struct {
        aq_digest partial[AQ_TILE]; /* the published edge */
        aq_digest hash[AQ_TILE];    /* what the tile should be */
        uint64_t count;
    } level[AQ_TILE_LEVELS];
    aq_digest leaves[AQ_TILE]; /* of the current bundle */
} audit;

/* ---- tiles ---- */

static int check_tile(audit *a, unsigned level, aq_err *err)
{
    uint64_t n = (a->level[level].count - 1) / AQ_TILE;
    unsigned width = (unsigned)((a->level[level].count - 1) % AQ_TILE) + 1;
    aq_digest tile[AQ_TILE];
    char path[AQ_TILE_PATH];
    int r = 0;

    if (width == AQ_TILE)
        r = aq_tile_read(a->l->root, level, n, width, tile, err);
    else
        memcpy(tile, a->level[level].partial, width * sizeof *tile);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < width; i++)
        if (!aq_digest_equal(&tile[i], &a->level[level].hash[i])) {
            a->facts.bad_index = (n * AQ_TILE + i) << (8 * level);
            return aq_fail(err, -EBADMSG, "%s: hash %u is not that of the entries from %llu on",
                           aq_tile_path(level, n, width, path), i,
                           (unsigned long long)a->facts.bad_index);
        }
    return 0;
}

static int add_leaf(audit *a, aq_digest hash, aq_err *err)
{
    for (unsigned level = 0; level < AQ_TILE_LEVELS; level++) {
        aq_digest *tile = a->level[level].hash, part[AQ_TILE];
        int r;

        tile[a->level[level].count++ % AQ_TILE] = hash;
        if (a->level[level].count % AQ_TILE)
            return 0;
        r = check_tile(a, level, err);
        if (r < 0)
            return r;
        memcpy(part, tile, sizeof part);
        hash = aq_tree_fold(part, AQ_TILE);
    }
    return 0;
}

static int edge_node(void *arg, unsigned level, uint64_t index, aq_digest *ret, aq_err *err)
{
    audit *a = arg;
    unsigned count = 1U << level % 8;
    uint64_t first = index << level % 8;
    aq_digest part[AQ_TILE];

    (void)err;
    memcpy(part, &a->level[level / 8].hash[first % AQ_TILE], count * sizeof *part);
    *ret = aq_tree_fold(part, count);
    return 0;
}

static int check_root(audit *a, aq_err *err)
{
    aq_tree_source source = {edge_node, a};
    int r = 0;

    for (unsigned level = 0; r == 0 && level < AQ_TILE_LEVELS; level++)
        if (a->level[level].count % AQ_TILE)
            r = check_tile(a, level, err);
    if (r == 0)
        r = aq_tree_root(&source, a->c.size, &a->facts.root, err);
    if (r == 0 && !aq_digest_equal(&a->facts.root, &a->c.root)) {
        a->facts.bad_index = 0;
        r = aq_fail(err, -EBADMSG, "checkpoint: its root is not that of the %llu entries before it",
                    (unsigned long long)a->c.size);
    }
    return r;
}

/* ---- entries ---- */

static int check_entry(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    audit *a = arg;
    aq_digest leaf = aq_tree_leaf(entry, len);
    int r;

    a->facts.bad_index = index;
    if (a->journal) {
        if (!aq_digest_equal(&leaf, &a->leaves[index % AQ_TILE]))
            return aq_fail(err, -EBADMSG, "journal: entry %llu is not the published one",
                           (unsigned long long)index);
        return 0;
    }
    r = aq_entry_check(entry, len, index, &a->prev, err);
    if (r < 0) {
        char path[AQ_TILE_PATH];
        if (index < a->c.size)
            aq_tile_path(AQ_TILE_ENTRIES, index / AQ_TILE,
                         aq_tile_width(AQ_TILE_ENTRIES, index / AQ_TILE, a->c.size), path);
        return aq_err_within(err, "%s: entry %llu", index < a->c.size ? path : "journal",
                             (unsigned long long)index);
    }
    a->prev = leaf;
    a->leaves[index % AQ_TILE] = leaf;
    a->facts.entries = index + 1;
    return index < a->c.size ? add_leaf(a, leaf, err) : 0;
}

/* The bundle's bytes of the published edge, read before the pass. */
typedef struct kept {
    aq_buf bytes;
    unsigned width;
    uint64_t n;
} kept;

static int keep_entry(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    kept *k = arg;
    uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};

    (void)index;
    (void)err;
    aq_buf_add(&k->bytes, head, sizeof head);
    aq_buf_add(&k->bytes, entry, len);
    return 0;
}

static int keep_edge(audit *a, kept *k, aq_err *err)
{
    int r = 0;

    k->n = a->c.size / AQ_TILE;
    k->width = (unsigned)(a->c.size % AQ_TILE);
    if (k->width)
        r = aq_bundle_read(a->l->root, k->n, k->width, keep_entry, k, err);
    for (unsigned level = 0; r == 0 && level < AQ_TILE_LEVELS; level++) {
        uint64_t count = a->c.size >> (8 * level);
        if (count % AQ_TILE)
            r = aq_tile_read(a->l->root, level, count / AQ_TILE, (unsigned)(count % AQ_TILE),
                             a->level[level].partial, err);
    }
    return r;
}

/* What the journal still has of bundle n, as far as it is published, against the bundle that was
 * just read. */
static int check_segment(audit *a, uint64_t n, unsigned width, aq_err *err)
{
    uint64_t from = n * AQ_TILE, to = from + width, oldest;
    aq_sequence *s = a->l->sequence;
    int r = s ? s->ops->oldest(s, &oldest, err) : 0;

    if (!s || r < 0 || oldest >= to)
        return r;
    a->journal = true;
    r = s->ops->read(s, oldest > from ? oldest : from, to, check_entry, a, err);
    a->journal = false;
    return r == -ENOENT ? 0 : r; /* dropped: that is what publishing does */
}

static int check_published(audit *a, const kept *k, aq_err *err)
{
    int r = 0;

    for (uint64_t n = 0; r == 0 && n * AQ_TILE < a->c.size; n++) {
        unsigned width = aq_tile_width(AQ_TILE_ENTRIES, n, a->c.size);
        a->facts.bad_index = a->facts.entries;
        if (width == AQ_TILE)
            r = aq_bundle_read(a->l->root, n, width, check_entry, a, err);
        else
            r = aq_bundle_parse(k->bytes.data, k->bytes.len, n, width, true, check_entry, a, err);
        if (r == 0)
            r = check_segment(a, n, width, err);
    }
    return r == 0 ? check_root(a, err) : r;
}

static int check_rest(audit *a, aq_err *err)
{
    aq_sequence *s = a->l->sequence;
    uint64_t size = a->c.size;
    int r = s ? s->ops->size(s, &size, err) : 0;

    if (r < 0)
        return r;
    a->facts.bad_index = size;
    if (size < a->c.size)
        return aq_fail(err, -EBADMSG, "the journal has %llu entries, but %llu are published",
                       (unsigned long long)size, (unsigned long long)a->c.size);
    return size == a->c.size ? 0
                             : aq_ledger_walk(a->l, &a->c, a->c.size, size, check_entry, a, err);
}

static int audit_once(audit *a, aq_err *err)
{
    kept k = {0};
    int r = aq_ledger_published(a->l, NULL, &a->c, err);

    a->facts.root = a->c.root;
    if (r == 0)
        r = keep_edge(a, &k, err);
    if (r == 0)
        r = check_published(a, &k, err);
    if (r == 0)
        r = check_rest(a, err);
    a->facts.published = r == 0 ? a->c.size : 0;
    aq_buf_free(&k.bytes);
    return r;
}

/* Did the ledger move on while it was read? */
static bool moved(const audit *a)
{
    aq_checkpoint now;

    return aq_ledger_published(a->l, NULL, &now, NULL) == 0 && now.size != a->c.size;
}

int aq_ledger_verify(aq_ledger *l, aq_ledger_audit *ret, aq_err *err)
{
    audit *a = NULL;
    int r;

    /* A publisher may have removed the old edge after its checkpoint was read here, and a writer on
     * a full disk may have cut back what was being read: look again before complaining. */
    for (int i = 0;; i++) {
        a = aq_alloc(sizeof *a);
        a->l = l;
        r = audit_once(a, err);
        if (r == 0 || (i > 0 && !moved(a)) || i == 15)
            break;
        free(a);
    }
    if (r == 0)
        a->facts.bad_index = 0;
    *ret = a->facts;
    free(a);
    return r;
}
