/* OpenPGP keys of version 4 (Ed25519 for signing and certifying), as `gpg --armor
 * --export-secret-keys` writes them: key, user id and the signature that binds them. */
#include <errno.h>
#include <nettle/eddsa.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

enum { CREATED = 1690000000, TRIES = 64 };

typedef struct key {
    uint8_t secret[32], point[32];
    uint32_t created;
    aq_buf body; /* of the public key packet */
    uint8_t fingerprint[20];
} key;

static void put_u16(aq_buf *out, size_t n)
{
    aq_buf_addc(out, (char)(n >> 8));
    aq_buf_addc(out, (char)(n & 255));
}

static void put_packet(aq_buf *out, unsigned tag, const aq_buf *body)
{
    aq_buf_addc(out, (char)(0xc0 | tag));
    if (body->len < 192) {
        aq_buf_addc(out, (char)body->len);
    } else {
        aq_buf_addc(out, (char)(((body->len - 192) >> 8) + 192));
        aq_buf_addc(out, (char)((body->len - 192) & 255));
    }
    aq_buf_add(out, body->data, body->len);
}

/* Thirty-two bytes whose first is not zero: the length never differs. */
static void put_number(aq_buf *out, const uint8_t n[static 32])
{
    put_u16(out, 256U - (unsigned)(__builtin_clz(n[0]) - 24));
    aq_buf_add(out, n, 32);
}

static void open_key(const aq_making *m, unsigned number, key *k)
{
    static const uint8_t curve[] = {9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01};
    char name[AQ_PACK_NAME + 8];
    struct sha1_ctx hash;
    const uint8_t *t = k->secret;

    snprintf(name, sizeof name, "%s%c", m->key, '0' + (int)(number % TRIES));
    aq_key_seed(m->draws, name, k->secret);
    ed25519_sha512_public_key(k->point, k->secret);
    k->created = CREATED + (uint32_t)(t[30] << 16 | t[31] << 8 | t[29]);
    aq_buf_clear(&k->body);
    aq_buf_addc(&k->body, 4);
    aq_put_u32(&k->body, k->created);
    aq_buf_addc(&k->body, 22);
    aq_buf_add(&k->body, curve, sizeof curve);
    put_u16(&k->body, 263);
    aq_buf_addc(&k->body, 0x40);
    aq_buf_add(&k->body, k->point, 32);
    sha1_init(&hash);
    sha1_update(&hash, 3, (const uint8_t[]){0x99, 0, (uint8_t)k->body.len});
    sha1_update(&hash, k->body.len, (const uint8_t *)k->body.data);
    sha1_digest(&hash, sizeof k->fingerprint, k->fingerprint);
}

/* A positive certification of the user id, with the time of the key. */
static void put_hashed(const key *k, aq_buf *out)
{
    aq_auto_buf sub = {0};

    aq_buf_add(&sub, "\x16\x21\x04", 3); /* issuer's fingerprint */
    aq_buf_add(&sub, k->fingerprint, sizeof k->fingerprint);
    aq_buf_add(&sub, "\x05\x02", 2); /* time */
    aq_put_u32(&sub, k->created);
    aq_buf_add(&sub, "\x02\x1b\x03", 3);         /* certifies and signs */
    aq_buf_add(&sub, "\x04\x0b\x09\x08\x07", 5); /* ciphers */
    aq_buf_add(&sub, "\x04\x15\x0a\x09\x08", 5); /* hashes */
    aq_buf_add(out, "\x04\x13\x16\x08", 4);
    put_u16(out, sub.len);
    aq_buf_add(out, sub.data, sub.len);
}

static bool signature(const key *k, const char *user, aq_buf *out)
{
    aq_auto_buf all = {0}, hashed = {0};
    uint8_t raw[64];
    aq_digest d;

    put_hashed(k, &hashed);
    aq_buf_addc(&all, (char)0x99);
    put_u16(&all, k->body.len);
    aq_buf_add(&all, k->body.data, k->body.len);
    aq_buf_addc(&all, (char)0xb4);
    aq_put_u32(&all, (uint32_t)strlen(user));
    aq_buf_adds(&all, user);
    aq_buf_add(&all, hashed.data, hashed.len);
    aq_buf_add(&all, "\x04\xff", 2);
    aq_put_u32(&all, (uint32_t)hashed.len);
    d = aq_sha256(all.data, all.len);
    ed25519_sha512_sign(k->point, k->secret, sizeof d.b, d.b, raw);
    if (raw[0] == 0 || raw[32] == 0)
        return false;
    aq_buf_add(out, hashed.data, hashed.len);
    put_u16(out, 10);
    aq_buf_add(out, "\x09\x10", 2); /* issuer */
    aq_buf_add(out, k->fingerprint + 12, 8);
    aq_buf_add(out, d.b, 2);
    put_number(out, raw);
    put_number(out, raw + 32);
    return true;
}

/* The first key of its name whose numbers all have their full length. */
static int find_key(const aq_making *m, const char *user, key *k, aq_buf *signed_, aq_err *err)
{
    for (unsigned i = 0; i < TRIES; i++) {
        open_key(m, i, k);
        aq_buf_clear(signed_);
        if (k->secret[0] == 0 || !signature(k, user, signed_))
            continue;
        if (!aq_key_cached(m, AQ_KEY_PGP, m->key))
            aq_key_keep(m, AQ_KEY_PGP, m->key, k->fingerprint, sizeof k->fingerprint);
        return 0;
    }
    return aq_fail(err, -EINVAL, "no OpenPGP key of full length");
}

static void put_secret(const key *k, aq_buf *out)
{
    aq_auto_buf number = {0};
    unsigned sum = 0;

    aq_buf_add(out, k->body.data, k->body.len);
    aq_buf_addc(out, 0); /* not encrypted */
    put_number(&number, k->secret);
    for (size_t i = 0; i < number.len; i++)
        sum += (uint8_t)number.data[i];
    aq_buf_add(out, number.data, number.len);
    put_u16(out, sum & 0xffff);
}

static uint32_t crc24(const aq_buf *data)
{
    uint32_t crc = 0xb704ce;

    for (size_t i = 0; i < data->len; i++) {
        crc ^= (uint32_t)(uint8_t)data->data[i] << 16;
        for (int k = 0; k < 8; k++) {
            crc <<= 1;
            if (crc & 0x1000000)
                crc ^= 0x1864cfb;
        }
    }
    return crc & 0xffffff;
}

static void put_armour(aq_buf *out, const aq_buf *packets)
{
    uint32_t crc = crc24(packets);
    const uint8_t sum[3] = {(uint8_t)(crc >> 16), (uint8_t)(crc >> 8), (uint8_t)crc};

    aq_buf_adds(out, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n");
    aq_base64_lines(packets->data, packets->len, 64, out);
    aq_buf_addc(out, '=');
    aq_base64(sum, sizeof sum, out);
    aq_buf_adds(out, "\n-----END PGP PRIVATE KEY BLOCK-----");
}

int aq_key_pgp_private(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_auto_buf packets = {0}, secret = {0}, signed_ = {0};
    const aq_buf user = {(char *)(uintptr_t)m->text, m->len, m->len};
    key k = {0};
    int r = m->len < 192 ? find_key(m, m->text, &k, &signed_, err)
                         : aq_fail(err, -EINVAL, "an OpenPGP user id of more than 191 bytes");

    if (r == 0) {
        put_secret(&k, &secret);
        put_packet(&packets, 5, &secret);
        put_packet(&packets, 13, &user);
        put_packet(&packets, 2, &signed_);
        put_armour(out, &packets);
    }
    aq_buf_free(&k.body);
    return r;
}

int aq_key_pgp_fingerprint(const aq_making *m, aq_buf *out, aq_err *err)
{
    const uint8_t *print = aq_key_cached(m, AQ_KEY_PGP, m->key);
    aq_auto_buf signed_ = {0};
    key k = {0};
    int r = print ? 0 : find_key(m, m->text, &k, &signed_, err);

    if (!print)
        print = k.fingerprint;
    for (size_t i = 0; r == 0 && i < sizeof k.fingerprint; i++)
        aq_buf_addf(out, "%02X", print[i]);
    aq_buf_free(&k.body);
    return r;
}
