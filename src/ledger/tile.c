/* The files of the tile log (C2SP tlog-tiles): names, bounded reading, durable writing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ledger/internal.h"

/* ---- names ---- */

const char *aq_tile_path(unsigned level, uint64_t n, unsigned width, char out[static AQ_TILE_PATH])
{
    char number[64];
    size_t used = 0;
    unsigned groups[8], count = 0;

    /* Groups of three digits, all but the last with an x before them. */
    do {
        groups[count++] = (unsigned)(n % 1000);
        n /= 1000;
    } while (n && count < sizeof groups / sizeof *groups);
    while (count--)
        used += (size_t)snprintf(number + used, sizeof number - used, "%s%03u%s", count ? "x" : "",
                                 groups[count], count ? "/" : "");
    if (level == AQ_TILE_ENTRIES)
        used = (size_t)snprintf(out, AQ_TILE_PATH, "tile/entries/%s", number);
    else
        used = (size_t)snprintf(out, AQ_TILE_PATH, "tile/%u/%s", level, number);
    if (width < AQ_TILE)
        snprintf(out + used, AQ_TILE_PATH - used, ".p/%u", width);
    return out;
}

unsigned aq_tile_width(unsigned level, uint64_t n, uint64_t size)
{
    uint64_t count = level == AQ_TILE_ENTRIES ? size : size >> (8 * level);

    if (count / AQ_TILE > n)
        return AQ_TILE;
    return count / AQ_TILE == n ? (unsigned)(count % AQ_TILE) : 0;
}

/* ---- reading ---- */

/* The partial file, or the full one when a publisher has removed the partial meanwhile. `exact`
 * tells which. */
static int read_part(int root, unsigned level, uint64_t n, unsigned width, size_t max, aq_buf *out,
                     bool *exact, aq_err *err)
{
    char path[AQ_TILE_PATH];
    int r = aq_read_file(root, aq_tile_path(level, n, width, path), max, out, err);

    *exact = true;
    if (r != -ENOENT || width == AQ_TILE)
        return r;
    *exact = false;
    if (aq_read_file(root, aq_tile_path(level, n, AQ_TILE, path), max, out, NULL) == 0)
        return 0;
    return r; /* the message names the partial file */
}

int aq_tile_read(int root, unsigned level, uint64_t n, unsigned width, aq_digest *out, aq_err *err)
{
    aq_auto_buf b = {0};
    char path[AQ_TILE_PATH];
    bool exact;
    int r = read_part(root, level, n, width, AQ_TILE * AQ_SHA256_LEN, &b, &exact, err);

    if (r < 0)
        return r;
    if (b.len != (size_t)(exact ? width : AQ_TILE) * AQ_SHA256_LEN)
        return aq_fail(err, -EBADMSG, "%s has %zu bytes, not %u hashes",
                       aq_tile_path(level, n, width, path), b.len, width);
    memcpy(out, b.data, (size_t)width * AQ_SHA256_LEN);
    return 0;
}

int aq_bundle_parse(const char *data, size_t len, uint64_t n, unsigned width, bool exact,
                    aq_entry_each each, void *arg, aq_err *err)
{
    char path[AQ_TILE_PATH];
    size_t at = 0;
    int r;

    aq_tile_path(AQ_TILE_ENTRIES, n, width, path);
    for (unsigned i = 0; i < width; i++) {
        uint64_t index = n * AQ_TILE + i;
        size_t size;
        if (len - at < 2)
            return aq_fail(err, -EBADMSG, "%s ends before entry %llu", path,
                           (unsigned long long)index);
        size = (size_t)((uint8_t)data[at] << 8 | (uint8_t)data[at + 1]);
        if (len - at - 2 < size)
            return aq_fail(err, -EBADMSG, "%s ends in the middle of entry %llu", path,
                           (unsigned long long)index);
        r = each(arg, index, data + at + 2, size, err);
        if (r < 0)
            return r;
        at += 2 + size;
    }
    if (exact && at != len)
        return aq_fail(err, -EBADMSG, "%s has more than its %u entries", path, width);
    return 0;
}

int aq_bundle_read(int root, uint64_t n, unsigned width, aq_entry_each each, void *arg, aq_err *err)
{
    aq_auto_buf b = {0};
    bool exact;
    int r = read_part(root, AQ_TILE_ENTRIES, n, width, AQ_TILE * (2 + AQ_LEDGER_ENTRY), &b, &exact,
                      err);

    if (r < 0)
        return r;
    return aq_bundle_parse(aq_buf_str(&b), b.len, n, width, exact, each, arg, err);
}

int aq_tile_node(void *tile_source, unsigned level, uint64_t index, aq_digest *ret, aq_err *err)
{
    aq_tile_source *s = tile_source;
    unsigned tile_level = level / 8, height = level % 8;
    uint64_t first = index << height, n = first / AQ_TILE;
    unsigned count = 1U << height;
    aq_digest part[AQ_TILE / 2];
    int r;

    if (tile_level >= AQ_TILE_LEVELS)
        return aq_fail(err, -EINVAL, "a tree of more than 2^63 entries");
    if (!s->level[tile_level].known || s->level[tile_level].n != n) {
        s->level[tile_level].known = false;
        r = aq_tile_read(s->root, tile_level, n, aq_tile_width(tile_level, n, s->size),
                         s->level[tile_level].hash, err);
        if (r < 0)
            return r;
        s->level[tile_level].known = true;
        s->level[tile_level].n = n;
    }
    memcpy(part, &s->level[tile_level].hash[first % AQ_TILE], count * sizeof *part);
    *ret = aq_tree_fold(part, count);
    return 0;
}

/* ---- writing ---- */

static int sync_folder(int root, const char *path, aq_err *err)
{
    aq_auto_fd int fd = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) < 0)
        return aq_fail_errno(err, "cannot make %s durable", path);
    return 0;
}

/* Makes the parents of `path`, world-readable whatever the umask, each durable in its own parent.
 */
static int make_parents(int root, const char *path, aq_err *err)
{
    char part[AQ_TILE_PATH];
    size_t parent = 0;
    int r;

    for (size_t i = 0; path[i]; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdirat(root, part, 0755) == 0) {
            if (fchmodat(root, part, 0755, 0) < 0)
                return aq_fail_errno(err, "cannot open %s to readers", part);
        } else if (errno != EEXIST) {
            return aq_fail_errno(err, "cannot make the folder %s", part);
        }
        part[parent] = '\0';
        r = sync_folder(root, parent ? part : ".", err);
        if (r < 0)
            return r;
        parent = i;
    }
    return 0;
}

/* Remembers the folder of `path` for aq_tile_sync; syncs the one before when it is another. */
static int note_folder(aq_tile_writer *w, unsigned level, const char *path, aq_err *err)
{
    char *last = w->folder[level];
    size_t len = (size_t)(strrchr(path, '/') - path);
    int r = 0;

    if (strncmp(last, path, len) == 0 && last[len] == '\0')
        return 0;
    if (*last)
        r = sync_folder(w->root, last, err);
    memcpy(last, path, len);
    last[len] = '\0';
    return r;
}

static int write_temp(int root, const char *name, const void *data, size_t len)
{
    aq_auto_fd int fd =
        openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r;

    if (fd < 0)
        return -errno;
    r = aq_write_full(fd, data, len);
    if (r == 0 && (fchmod(fd, 0644) < 0 || fdatasync(fd) < 0))
        r = -errno;
    return r;
}

static const char temp[] = "tile.tmp"; /* one publisher at a time; a leftover is overwritten */

int aq_tile_put(int root, const char *name, const void *data, size_t len, aq_err *err)
{
    int r = write_temp(root, temp, data, len);

    if (r == 0 && renameat(root, temp, root, name) < 0)
        r = -errno;
    if (r < 0) {
        unlinkat(root, temp, 0);
        return aq_fail(err, r, "cannot write %s: %s", name, strerror(-r));
    }
    return sync_folder(root, ".", err);
}

int aq_tile_write(aq_tile_writer *w, unsigned level, uint64_t n, unsigned width, const void *data,
                  size_t len, aq_err *err)
{
    char path[AQ_TILE_PATH];
    int r = write_temp(w->root, temp, data, len);

    aq_tile_path(level, n, width, path);
    if (r == 0 && renameat(w->root, temp, w->root, path) < 0)
        r = -errno;
    if (r == -ENOENT) {
        r = make_parents(w->root, path, err);
        if (r < 0)
            return r;
        r = renameat(w->root, temp, w->root, path) < 0 ? -errno : 0;
    }
    if (r < 0) {
        unlinkat(w->root, temp, 0);
        return aq_fail(err, r, "cannot write %s: %s", path, strerror(-r));
    }
    return note_folder(w, level, path, err);
}

int aq_tile_sync(aq_tile_writer *w, aq_err *err)
{
    for (unsigned i = 0; i <= AQ_TILE_LEVELS; i++) {
        int r = *w->folder[i] ? sync_folder(w->root, w->folder[i], err) : 0;
        if (r < 0)
            return r;
        *w->folder[i] = '\0';
    }
    return 0;
}
