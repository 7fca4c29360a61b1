/* Zip and tar in gzip; see archive.h. */
#include "internet/archive.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    TAR_BLOCK = 512,
    TAR_PATH = 100,
    GZIP_STORED = 65535, /* bytes of one stored block */
    ZIP_DAY = 0x21,      /* 1980-01-01, where its calendar begins */
};

static void put16(aq_buf *b, uint32_t n)
{
    aq_buf_addc(b, (char)n);
    aq_buf_addc(b, (char)(n >> 8));
}

static void put32(aq_buf *b, uint32_t n)
{
    put16(b, n & 0xffff);
    put16(b, n >> 16);
}

static uint32_t sum_of(const void *data, size_t len)
{
    return (uint32_t)crc32(0, data, (uInt)len);
}

/* ---- zip ---- */

/* What a file's own header and the one in the directory share. */
static void put_entry(aq_buf *b, uint32_t sum, size_t len, size_t path_len)
{
    put16(b, 20); /* version that is needed */
    put16(b, 0);
    put16(b, 0); /* stored */
    put16(b, 0);
    put16(b, ZIP_DAY);
    put32(b, sum);
    put32(b, (uint32_t)len);
    put32(b, (uint32_t)len);
    put16(b, (uint32_t)path_len);
    put16(b, 0);
}

void aq_zip_add(aq_zip *z, const char *path, const void *data, size_t len)
{
    uint32_t sum = sum_of(data, len), at = (uint32_t)z->out.len;
    size_t path_len = strlen(path);

    aq_buf_add(&z->out, "PK\3\4", 4);
    put_entry(&z->out, sum, len, path_len);
    aq_buf_add(&z->out, path, path_len);
    aq_buf_add(&z->out, data, len);
    aq_buf_add(&z->central, "PK\1\2", 4);
    put16(&z->central, 3 << 8 | 20); /* made on Unix */
    put_entry(&z->central, sum, len, path_len);
    put16(&z->central, 0);
    put16(&z->central, 0);
    put16(&z->central, 0);
    put32(&z->central, 0100644u << 16);
    put32(&z->central, at);
    aq_buf_add(&z->central, path, path_len);
    z->count++;
}

void aq_zip_end(aq_zip *z, aq_buf *ret)
{
    uint32_t at = (uint32_t)z->out.len, len = (uint32_t)z->central.len;

    aq_buf_add(&z->out, aq_buf_str(&z->central), len);
    aq_buf_add(&z->out, "PK\5\6\0\0\0\0", 8);
    put16(&z->out, z->count);
    put16(&z->out, z->count);
    put32(&z->out, len);
    put32(&z->out, at);
    put16(&z->out, 0);
    aq_buf_free(&z->central);
    *ret = z->out;
    *z = (aq_zip){0};
}

/* ---- tar ---- */

static void pad(aq_buf *tar, size_t len)
{
    static const char zeros[TAR_BLOCK];

    aq_buf_add(tar, zeros, len);
}

void aq_tar_add(aq_buf *tar, const char *path, uint32_t seconds, const void *data, size_t len)
{
    struct {
        char path[TAR_PATH], mode[8], uid[8], gid[8], size[12], time[12], sum[8], type, link[100],
            magic[6], version[2], user[32], group[32], device[16], prefix[155], rest[12];
    } h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
    unsigned sum = 0;

    _Static_assert(sizeof h == TAR_BLOCK, "a header is a block");
    memcpy(h.path, path, strnlen(path, TAR_PATH));
    memcpy(h.mode, "0000644", 8);
    memcpy(h.uid, "0000000", 8);
    memcpy(h.gid, "0000000", 8);
    memset(h.sum, ' ', sizeof h.sum);
    snprintf(h.size, sizeof h.size, "%011o", (unsigned)len);
    snprintf(h.time, sizeof h.time, "%011o", seconds);
    for (size_t i = 0; i < sizeof h; i++)
        sum += ((unsigned char *)&h)[i];
    snprintf(h.sum, sizeof h.sum, "%06o", sum % 01000000);
    aq_buf_add(tar, &h, sizeof h);
    aq_buf_add(tar, data, len);
    pad(tar, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

/* Blocks that are stored, written here: libraries cut them in different ways. */
void aq_tar_end(aq_buf *tar, aq_buf *ret)
{
    aq_buf out = {0};

    pad(tar, TAR_BLOCK);
    pad(tar, TAR_BLOCK);
    aq_buf_add(&out, "\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
    for (size_t at = 0; at < tar->len; at += GZIP_STORED) {
        size_t n = tar->len - at < GZIP_STORED ? tar->len - at : GZIP_STORED;

        aq_buf_addc(&out, at + n == tar->len);
        put16(&out, (uint32_t)n);
        put16(&out, (uint32_t)~n & 0xffff);
        aq_buf_add(&out, tar->data + at, n);
    }
    put32(&out, sum_of(tar->data, tar->len));
    put32(&out, (uint32_t)tar->len);
    aq_buf_free(tar);
    *ret = out;
}
