/* The package's image while it is being filled; see image.h. */
#include "cleanroom/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

enum { GATHER = 512 << 10, DIRECT = 64 << 10 };

struct aq_image {
    aq_arena *arena;
    int fd;
    char *gathered; /* not written yet */
    size_t gathered_len;
    uint64_t at; /* end of what was given, written or not */
    aq_file *files;
    size_t count, cap;
    bool open;
    uint64_t start;  /* of the open file */
    uint64_t hashed; /* of the open file; what is beyond lies whole in `gathered` */
    aq_hash *hash;
};

int aq_image_new(aq_arena *a, const char *temp_dir, aq_image **ret, aq_err *err)
{
    int fd = aq_temp_fd(temp_dir, err);
    aq_image *m;

    if (fd < 0)
        return fd;
    m = aq_alloc(sizeof *m);
    m->arena = a;
    m->fd = fd;
    m->gathered = aq_realloc(NULL, GATHER, 1);
    m->hash = aq_hash_begin();
    *ret = m;
    return 0;
}

void aq_image_free(aq_image *m)
{
    if (!m)
        return;
    if (m->fd >= 0)
        close(m->fd);
    aq_hash_abort(m->hash);
    free(m->gathered);
    free(m->files);
    free(m);
}

static int put(aq_image *m, const void *data, size_t len, aq_err *err)
{
    int r = aq_write_full(m->fd, data, len);

    if (r < 0)
        return aq_fail(err, r, "cannot write the package image (is the temporary folder full?): %s",
                       strerror(-r));
    return 0;
}

/* Hashes the part of the open file that lies in the buffer. */
static void hash_gathered(aq_image *m)
{
    size_t fresh = (size_t)(m->at - m->start - m->hashed);

    if (!m->open || fresh == 0)
        return;
    if (m->hashed == 0)
        aq_hash_reset(m->hash);
    aq_hash_add(m->hash, m->gathered + m->gathered_len - fresh, fresh);
    m->hashed += fresh;
}

static int flush(aq_image *m, aq_err *err)
{
    int r;

    hash_gathered(m);
    r = m->gathered_len ? put(m, m->gathered, m->gathered_len, err) : 0;
    m->gathered_len = 0;
    return r;
}

int aq_image_begin(aq_image *m, const char *path, size_t len, bool executable, aq_err *err)
{
    if (m->open)
        return aq_fail(err, -EBADMSG, "a file begins inside another");
    if (m->count == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->files = aq_realloc(m->files, m->cap, sizeof *m->files);
    }
    m->files[m->count] = (aq_file){
        .path = aq_arena_strndup(m->arena, path, len), .offset = m->at, .executable = executable};
    m->open = true;
    m->start = m->at;
    m->hashed = 0;
    return 0;
}

int aq_image_data(aq_image *m, const void *data, size_t len, aq_err *err)
{
    int r;

    if (!m->open)
        return aq_fail(err, -EBADMSG, "contents without a file");
    if (len > GATHER - m->gathered_len || len >= DIRECT) {
        if ((r = flush(m, err)) < 0)
            return r;
    }
    if (len >= DIRECT) {
        if (m->hashed == 0)
            aq_hash_reset(m->hash);
        aq_hash_add(m->hash, data, len);
        m->hashed += len;
        m->at += len;
        return put(m, data, len, err);
    }
    if (len > 0)
        memcpy(m->gathered + m->gathered_len, data, len);
    aq_image_filled(m, len);
    return 0;
}

int aq_image_room(aq_image *m, void **ret, aq_err *err)
{
    int r = GATHER - m->gathered_len < AQ_IMAGE_ROOM ? flush(m, err) : 0;

    *ret = m->gathered + m->gathered_len;
    return r;
}

void aq_image_filled(aq_image *m, size_t len)
{
    m->gathered_len += len;
    m->at += len;
}

uint64_t aq_image_open_size(const aq_image *m)
{
    return m->at - m->start;
}

bool aq_image_is_open(const aq_image *m)
{
    return m->open;
}

int aq_image_end(aq_image *m, aq_err *err)
{
    aq_file *f = &m->files[m->count];

    if (!m->open)
        return aq_fail(err, -EBADMSG, "the end of no file");
    f->size = m->at - m->start;
    if (m->hashed == 0) {
        f->digest = aq_sha256(m->gathered + m->gathered_len - f->size, (size_t)f->size);
    } else {
        hash_gathered(m);
        f->digest = aq_hash_peek(m->hash);
    }
    m->open = false;
    m->count++;
    return 0;
}

/* What was gathered of it is forgotten; what was written is cut off. */
int aq_image_drop(aq_image *m, aq_err *err)
{
    uint64_t size = m->at - m->start;

    if (!m->open)
        return aq_fail(err, -EBADMSG, "the end of no file");
    m->open = false;
    m->at = m->start;
    if (size <= m->gathered_len) {
        m->gathered_len -= (size_t)size;
        return 0;
    }
    m->gathered_len = 0;
    if (ftruncate(m->fd, (off_t)m->start) < 0 || lseek(m->fd, (off_t)m->start, SEEK_SET) < 0)
        return aq_fail_errno(err, "cannot cut the package image");
    return 0;
}

size_t aq_image_count(const aq_image *m)
{
    return m->count;
}

uint64_t aq_image_bytes(const aq_image *m)
{
    return m->at;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const aq_file *)a)->path, ((const aq_file *)b)->path);
}

/* A slash before all else, so that what lies below a path follows it. */
static int by_parts(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;

    while (*x && *x == *y)
        x++, y++;
    if (*x == *y || !*x || !*y)
        return (*x != '\0') - (*y != '\0');
    if (*x == '/' || *y == '/')
        return *x == '/' ? -1 : 1;
    return (unsigned char)*x < (unsigned char)*y ? -1 : 1;
}

/* A file with another file below it is no tree; the reader refuses such, unless it lies. */
static bool file_below_file(const aq_image *m)
{
    aq_auto_free const char **paths = aq_alloc((m->count + 1) * sizeof *paths);

    for (size_t i = 0; i < m->count; i++)
        paths[i] = m->files[i].path;
    if (m->count > 0)
        qsort(paths, m->count, sizeof *paths, by_parts);
    for (size_t i = 1; i < m->count; i++) {
        size_t n = strlen(paths[i - 1]);
        if (strncmp(paths[i - 1], paths[i], n) == 0 && paths[i][n] == '/')
            return true;
    }
    return false;
}

static int strip(aq_image *m, const char *wrapper, aq_err *err)
{
    size_t n = strlen(wrapper);

    for (size_t i = 0; i < m->count; i++) {
        const char *path = m->files[i].path;
        if (strncmp(path, wrapper, n) != 0 || path[n] != '/')
            return aq_fail(err, -EBADMSG, "a file lies beside the folder around everything");
        m->files[i].path = path + n + 1;
    }
    return 0;
}

int aq_image_seal(aq_image *m, const char *wrapper, size_t path_max, aq_package *ret, aq_err *err)
{
    bool sorted = true;
    aq_file *files;
    int r = wrapper ? strip(m, wrapper, err) : 0;

    if (r < 0 || (r = flush(m, err)) < 0)
        return r;
    for (size_t i = 0; i < m->count; i++) {
        const char *path = m->files[i].path;
        if (!aq_path_canonical(path, strlen(path), path_max))
            return aq_fail(err, -EBADMSG, "a path is not canonical");
        sorted = sorted && (i == 0 || by_path(&m->files[i - 1], &m->files[i]) < 0);
    }
    if (!sorted)
        qsort(m->files, m->count, sizeof *m->files, by_path);
    for (size_t i = 1; i < m->count && !sorted; i++)
        if (by_path(&m->files[i - 1], &m->files[i]) == 0)
            return aq_fail(err, -EBADMSG, "a path comes twice");
    if (file_below_file(m))
        return aq_fail(err, -EBADMSG, "a path is a file and a folder");
    r = aq_reopen_read_only(m->fd, err);
    if (r < 0)
        return r;
    files = aq_arena_alloc(m->arena, m->count * sizeof *files);
    if (m->count > 0)
        memcpy(files, m->files, m->count * sizeof *files);
    ret->image = r;
    ret->files = files;
    ret->count = m->count;
    ret->bytes = m->at;
    close(m->fd);
    m->fd = -1;
    return 0;
}
