/* Values with checksums: tokens and wallets as their tools accept them. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

void aq_put_u32(aq_buf *out, uint32_t n)
{
    const uint8_t b[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

    aq_buf_add(out, b, sizeof b);
}

void aq_url64(const void *data, size_t len, aq_buf *out)
{
    size_t from = out->len;

    aq_base64(data, len, out);
    while (out->len > from && out->data[out->len - 1] == '=')
        out->data[--out->len] = '\0';
    for (size_t i = from; i < out->len; i++)
        out->data[i] = out->data[i] == '+' ? '-' : out->data[i] == '/' ? '_' : out->data[i];
}

void aq_base64_lines(const void *data, size_t len, size_t width, aq_buf *out)
{
    aq_auto_buf all = {0};

    aq_base64(data, len, &all);
    for (size_t i = 0; i < all.len; i += width) {
        aq_buf_add(out, all.data + i, all.len - i < width ? all.len - i : width);
        aq_buf_addc(out, '\n');
    }
}

/* ---- tokens of code hosts: six digits to the base 62 of a CRC-32 ---- */

uint32_t aq_crc32(uint32_t crc, const void *data, size_t len)
{
    static uint32_t table[256];
    const uint8_t *s = data;

    for (uint32_t i = 1; !table[255] && i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320U : 0);
        table[i] = c;
    }
    for (crc = ~crc; len--; s++)
        crc = crc >> 8 ^ table[(crc ^ *s) & 0xff];
    return ~crc;
}

int aq_value_crc62(const aq_making *m, aq_buf *out, aq_err *err)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const char *mark = memrchr(m->text, '_', m->len);
    const char *from = mark ? mark + 1 : m->text;
    uint32_t crc = aq_crc32(0, from, m->len - (size_t)(from - m->text));
    char sum[6];

    (void)err;
    for (int i = 5; i >= 0; i--, crc /= 62)
        sum[i] = digits[crc % 62];
    aq_buf_add(out, m->text, m->len);
    aq_buf_add(out, sum, sizeof sum);
    return 0;
}

/* ---- numbers of access keys: the account is in them ---- */

/* Sixteen letters of five bits: one that is set, forty of the account, the rest drawn. */
int aq_value_aws_key(const aq_making *m, aq_buf *out, aq_err *err)
{
    enum { PREFIX = 4, ACCOUNT = 12, DRAWN = 39, LETTERS = 16 };
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned __int128 number = 1;
    uint64_t account = 0, drawn;

    if (m->len != PREFIX + ACCOUNT || strspn(m->text + PREFIX, "0123456789") != ACCOUNT)
        return aq_fail(err, -EINVAL, "aws-key needs four letters and twelve digits");
    for (size_t i = PREFIX; i < m->len; i++)
        account = 10 * account + (uint64_t)(m->text[i] - '0');
    drawn = (uint64_t)aq_stream_below(&m->lot->own, UINT32_MAX) << 7;
    drawn |= aq_stream_below(&m->lot->own, 1 << 7);
    number = (number << 40 | account) << DRAWN | drawn;
    aq_buf_add(out, m->text, PREFIX);
    for (int i = LETTERS - 1; i >= 0; i--)
        aq_buf_addc(out, digits[(unsigned)(number >> (5 * i)) & 31]);
    return 0;
}

/* Every second digit counts twice, from the last but one on. */
int aq_value_luhn(const aq_making *m, aq_buf *out, aq_err *err)
{
    unsigned sum = 0;

    for (size_t i = 0; i < m->len; i++) {
        unsigned d = (unsigned)(m->text[i] - '0') << (m->len - i) % 2;

        if (!isdigit((unsigned char)m->text[i]))
            return aq_fail(err, -EINVAL, "luhn needs digits");
        sum += d > 9 ? d - 9 : d;
    }
    aq_buf_add(out, m->text, m->len);
    aq_buf_addc(out, (char)('0' + (10 - sum % 10) % 10));
    return 0;
}

/* ---- the macaroon of a package index ---- */

static void field(aq_buf *out, uint8_t type, const void *data, size_t len)
{
    aq_buf_addc(out, (char)type);
    aq_buf_addc(out, (char)len); /* below 128: a varint of one byte */
    aq_buf_add(out, data, len);
}

/* Version 2 in binary: location, identifier, one caveat, signature. The location is that of the
 * tokens which begin with AgEIcHlwaS5vcmc; it is part of the format. */
int aq_value_macaroon(const aq_making *m, aq_buf *out, aq_err *err)
{
    static const uint8_t location[] = {0x70, 0x79, 0x70, 0x69, 0x2e, 0x6f, 0x72, 0x67};
    static const char caveat[] = "{\"version\": 1, \"permissions\": \"user\"}";
    aq_auto_buf raw = {0};
    uint8_t signature[32];

    if (m->len > 100)
        return aq_fail(err, -EINVAL, "the identifier of a macaroon has at most 100 bytes");
    aq_stream_bytes(&m->lot->own, signature, sizeof signature);
    aq_buf_addc(&raw, 2);
    field(&raw, 1, location, sizeof location);
    field(&raw, 2, m->text, m->len);
    aq_buf_addc(&raw, 0);
    field(&raw, 2, caveat, sizeof caveat - 1);
    aq_buf_addc(&raw, 0);
    aq_buf_addc(&raw, 0);
    field(&raw, 6, signature, sizeof signature);
    aq_buf_adds(out, "pypi-");
    aq_url64(raw.data, raw.len, out);
    return 0;
}

/* ---- wallets ---- */

static void base58(const uint8_t *data, size_t len, char *out, size_t out_len)
{
    static const char digits[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    uint8_t number[64];

    memcpy(number, data, len);
    for (size_t i = out_len; i-- > 0;) {
        unsigned rest = 0;

        for (size_t k = 0; k < len; k++) {
            unsigned n = rest << 8 | number[k];

            number[k] = (uint8_t)(n / 58);
            rest = n % 58;
        }
        out[i] = digits[rest];
    }
}

/* Version, key, the mark of a compressed public key, and the beginning of a double hash. */
int aq_value_wif(const aq_making *m, aq_buf *out, aq_err *err)
{
    uint8_t raw[38] = {0x80};
    char text[52];
    aq_digest d;

    (void)err;
    aq_key_seed(m->draws, m->text, raw + 1);
    raw[1] &= 0x7f; /* below the order of the curve */
    raw[33] = 1;
    d = aq_sha256(raw, 34);
    d = aq_sha256(d.b, sizeof d.b);
    memcpy(raw + 34, d.b, 4);
    base58(raw, sizeof raw, text, sizeof text);
    aq_buf_add(out, text, sizeof text);
    return 0;
}

enum { MNEMONIC_WORDS = 12, BITS = 11, INDEX_DIGITS = 4 };

/* A word of the list is its number in the standard's list, four digits, and the word. */
static int word_number(const aq_pack *pack, const aq_pack_list *l, uint32_t i, unsigned *ret)
{
    const char *w = pack->pool + l->words + (size_t)i * l->width;

    *ret = 0;
    for (int k = 0; k < INDEX_DIGITS; k++) {
        if (!isdigit((unsigned char)w[k]))
            return -EINVAL;
        *ret = 10 * *ret + (unsigned)(w[k] - '0');
    }
    return *ret < 1 << BITS ? 0 : -EINVAL;
}

static void put_bits(uint8_t *to, unsigned at, unsigned value, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (value >> (count - 1 - i) & 1)
            to[(at + i) / 8] |= (uint8_t)(0x80 >> (at + i) % 8);
}

/* The last word has seven bits of its own and four of checksum: is `number` right for the rest? */
static bool last_fits(const uint8_t entropy[static 16], unsigned number)
{
    uint8_t all[16];
    aq_digest d;

    memcpy(all, entropy, sizeof all);
    put_bits(all, 121, number >> 4, 7);
    d = aq_sha256(all, sizeof all);
    return d.b[0] >> 4 == (number & 15);
}

const aq_pack_list *aq_find_list(const aq_pack *pack, const char *name)
{
    for (uint32_t i = 0; i < pack->list_count; i++)
        if (strcmp(pack->pool + pack->lists[i].name, name) == 0)
            return &pack->lists[i];
    return NULL;
}

static void add_word(const aq_pack *pack, const aq_pack_list *l, uint32_t i, aq_buf *out)
{
    aq_buf_add(out, pack->pool + l->words + (size_t)i * l->width + INDEX_DIGITS,
               l->width - INDEX_DIGITS);
}

int aq_value_bip39(const aq_making *m, aq_buf *out, aq_err *err)
{
    const aq_pack_list *l = aq_find_list(m->pack, m->text);
    uint8_t entropy[17] = {0};
    unsigned number;

    if (!l || l->width <= INDEX_DIGITS)
        return aq_fail(err, -EINVAL, "bip39 needs a list of numbered words");
    for (unsigned i = 0; i + 1 < MNEMONIC_WORDS; i++) {
        uint32_t w = i ? aq_stream_below(&m->lot->own, l->count) : aq_lot_apart(m->lot, l->count);

        if (word_number(m->pack, l, w, &number) < 0)
            return aq_fail(err, -EINVAL, "bip39 needs words that begin with four digits");
        put_bits(entropy, i * BITS, number, BITS);
        add_word(m->pack, l, w, out);
        aq_buf_addc(out, ' ');
    }
    /* From a drawn place on, the first word whose checksum is right. */
    for (uint32_t i = 0, from = aq_stream_below(&m->lot->own, l->count); i < l->count; i++) {
        uint32_t w = (from + i) % l->count;

        if (word_number(m->pack, l, w, &number) == 0 && last_fits(entropy, number)) {
            add_word(m->pack, l, w, out);
            return 0;
        }
    }
    return aq_fail(err, -EINVAL, "the list has no word with the checksum: it is too short");
}
