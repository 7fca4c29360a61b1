/* The canonical package; see package.h. */
#include "model/package.h"

#include <errno.h>
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

aq_digest aq_package_digest(const aq_file *files, size_t count)
{
    aq_hash *h = aq_hash_begin();
    char hex[AQ_SHA256_HEX];

    for (size_t i = 0; i < count; i++) {
        aq_hash_add(h, files[i].path, strlen(files[i].path) + 1);
        aq_digest_hex(&files[i].digest, hex);
        hex[AQ_SHA256_HEX - 1] = '\n';
        aq_hash_add(h, hex, AQ_SHA256_HEX);
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
