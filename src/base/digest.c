/* SHA-256, hex and base64; see digest.h. The hash is Nettle's: OpenSSL asks the processor many
 * questions before main, and a virtual machine answers so slowly that a process that lives for a
 * few milliseconds feels it. */
#include "base/digest.h"

#include <errno.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

struct aq_hash {
    struct sha256_ctx state;
};

static aq_digest finish(struct sha256_ctx *state)
{
    aq_digest d;

    sha256_digest(state, sizeof d.b, d.b);
    return d;
}

aq_digest aq_sha256(const void *data, size_t len)
{
    struct sha256_ctx state;

    sha256_init(&state);
    sha256_update(&state, len, data);
    return finish(&state);
}

aq_hash *aq_hash_begin(void)
{
    aq_hash *h = aq_alloc(sizeof *h);

    aq_hash_reset(h);
    return h;
}

void aq_hash_reset(aq_hash *h)
{
    sha256_init(&h->state);
}

void aq_hash_add(aq_hash *h, const void *data, size_t len)
{
    sha256_update(&h->state, len, data);
}

aq_digest aq_hash_peek(const aq_hash *h)
{
    struct sha256_ctx copy = h->state;

    return finish(&copy);
}

aq_digest aq_hash_end(aq_hash *h)
{
    aq_digest d = finish(&h->state);

    aq_hash_abort(h);
    return d;
}

void aq_hash_abort(aq_hash *h)
{
    free(h);
}

bool aq_digest_equal(const aq_digest *a, const aq_digest *b)
{
    return memeql_sec(a->b, b->b, sizeof a->b) == 1;
}

static const char hex_digits[] = "0123456789abcdef";

const char *aq_digest_hex(const aq_digest *d, char out[static AQ_SHA256_HEX])
{
    for (size_t i = 0; i < AQ_SHA256_LEN; i++) {
        out[2 * i] = hex_digits[d->b[i] >> 4];
        out[2 * i + 1] = hex_digits[d->b[i] & 15];
    }
    out[2 * AQ_SHA256_LEN] = '\0';
    return out;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static int unhex_into(const char *hex, size_t len, uint8_t *out)
{
    for (size_t i = 0; i < len; i += 2) {
        int hi = hex_value(hex[i]), lo = hex_value(hex[i + 1]);
        if (hi < 0 || lo < 0)
            return -EINVAL;
        out[i / 2] = (uint8_t)(hi << 4 | lo);
    }
    return 0;
}

int aq_digest_parse(const char *hex, aq_digest *ret)
{
    aq_digest d;

    if (strnlen(hex, 2 * AQ_SHA256_LEN + 1) != 2 * AQ_SHA256_LEN ||
        unhex_into(hex, 2 * AQ_SHA256_LEN, d.b) < 0)
        return -EINVAL;
    *ret = d;
    return 0;
}

void aq_hex(const void *data, size_t len, aq_buf *out)
{
    const uint8_t *p = data;

    aq_buf_reserve(out, 2 * len);
    for (size_t i = 0; i < len; i++) {
        aq_buf_addc(out, hex_digits[p[i] >> 4]);
        aq_buf_addc(out, hex_digits[p[i] & 15]);
    }
}

int aq_unhex(const char *hex, size_t len, aq_buf *out)
{
    if (len % 2)
        return -EINVAL;
    aq_buf_reserve(out, len / 2);
    if (unhex_into(hex, len, (uint8_t *)out->data + out->len) < 0)
        return -EINVAL;
    out->len += len / 2;
    out->data[out->len] = '\0';
    return 0;
}

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void aq_base64(const void *data, size_t len, aq_buf *out)
{
    const uint8_t *p = data;

    aq_buf_reserve(out, (len + 2) / 3 * 4);
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t v = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        aq_buf_addc(out, base64_digits[v >> 18]);
        aq_buf_addc(out, base64_digits[v >> 12 & 63]);
        aq_buf_addc(out, left > 1 ? base64_digits[v >> 6 & 63] : '=');
        aq_buf_addc(out, left > 2 ? base64_digits[v & 63] : '=');
    }
    aq_buf_str(out);
}

int aq_unbase64(const char *text, size_t len, aq_buf *out)
{
    size_t start = out->len;

    if (len % 4)
        return -EINVAL;
    aq_buf_reserve(out, len / 4 * 3);
    for (size_t i = 0; i < len; i += 4) {
        uint32_t v = 0;
        size_t pad = 0;
        for (size_t j = 0; j < 4; j++) {
            char c = text[i + j];
            const char *at = c ? strchr(base64_digits, c) : NULL;
            if (c == '=' && i + 4 == len && j >= 2)
                pad++;
            else if (!at || pad)
                goto bad;
            v = v << 6 | (at ? (uint32_t)(at - base64_digits) : 0);
        }
        /* Bits that no byte uses must be zero, or two texts would mean the same bytes. */
        if ((pad == 1 && v & 0xff) || (pad == 2 && v & 0xffff))
            goto bad;
        for (size_t j = 0; j + pad < 3; j++)
            aq_buf_addc(out, (char)(v >> (16 - 8 * j) & 0xff));
    }
    return 0;
bad:
    out->len = start;
    return -EINVAL;
}
