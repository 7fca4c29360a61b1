/* The canonical package; see package.h. */
#include "model/package.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool aq_path_canonical(const char *path, size_t len, size_t max)
{
    size_t part = 0; /* where the current part starts */

    if (len == 0 || len > max || memchr(path, '\0', len))
        return false;
    for (size_t i = 0; i <= len; i++) {
        size_t n = i - part;

        if (i < len && path[i] != '/')
            continue;
        if (n == 0 || (n == 1 && path[part] == '.') ||
            (n == 2 && path[part] == '.' && path[part + 1] == '.'))
            return false;
        part = i + 1;
    }
    return true;
}

const aq_file *aq_package_find(const aq_package *p, const char *path)
{
    size_t low = 0, high = p->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int r = strcmp(path, p->files[mid].path);
        if (r == 0)
            return &p->files[mid];
        if (r < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static int by_kind_and_path(const void *a, const void *b)
{
    const aq_left_out *x = a, *y = b;
    int r = strcmp(x->kind, y->kind);

    if (r == 0)
        r = strcmp(x->path, y->path);
    return r ? r : memcmp(x->content.b, y->content.b, sizeof x->content.b);
}

static void add_line(aq_hash *h, const char *path, const aq_digest *content)
{
    char hex[AQ_SHA256_HEX];

    aq_hash_add(h, path, strlen(path) + 1);
    aq_digest_hex(content, hex);
    hex[AQ_SHA256_HEX - 1] = '\n';
    aq_hash_add(h, hex, AQ_SHA256_HEX);
}

aq_digest aq_package_digest(const aq_file *files, size_t count, aq_left_out *left,
                            size_t left_count)
{
    aq_hash *h = aq_hash_begin();

    for (size_t i = 0; i < count; i++)
        add_line(h, files[i].path, &files[i].digest);
    if (left_count > 0)
        qsort(left, left_count, sizeof *left, by_kind_and_path);
    for (size_t i = 0; i < left_count; i++) {
        aq_hash_add(h, "", 1); /* no path begins with a NUL: this is no file */
        aq_hash_add(h, left[i].kind, strlen(left[i].kind) + 1);
        add_line(h, left[i].path, &left[i].content);
    }
    return aq_hash_end(h);
}

int aq_package_map(const aq_package *p, const unsigned char **ret, aq_err *err)
{
    void *at;

    if (p->bytes == 0) {
        *ret = NULL;
        return 0;
    }
    at = mmap(NULL, p->bytes, PROT_READ, MAP_PRIVATE, p->image, 0);
    if (at == MAP_FAILED)
        return aq_fail_errno(err, "cannot map the package");
    *ret = at;
    return 0;
}

void aq_package_unmap(const aq_package *p, const unsigned char *image)
{
    if (image)
        munmap((void *)(uintptr_t)image, p->bytes);
}

void aq_package_close(aq_package *p)
{
    if (!p)
        return;
    if (p->image > 0)
        close(p->image);
    p->image = -1;
}
