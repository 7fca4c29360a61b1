/* OpenPGP keys of version 4 (Ed25519 for signing and certifying), as `gpg --armor
 * --export-secret-keys` writes them: key, user id and the signature that binds them. And the files
 * in which GnuPG keeps them: its box of public keys, the name of a secret one, and whom it trusts.
 */
#include <errno.h>
#include <nettle/eddsa.h>
#include <nettle/ripemd160.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

enum { CREATED = 1690000000, TRIES = 64, USER = 191 };

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

static void open_secret(const aq_making *m, unsigned number, key *k)
{
    char name[AQ_PACK_NAME + 8];

    snprintf(name, sizeof name, "%s%c", m->key, '0' + (int)(number % TRIES));
    aq_key_seed(m->draws, name, k->secret);
}

/* What follows from secret and point. */
static void complete(key *k)
{
    static const uint8_t curve[] = {9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01};
    struct sha1_ctx hash;
    const uint8_t *t = k->secret;

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

/* The first key of its name whose numbers all have their full length; its point and its number are
 * kept. */
static int find_key(const aq_making *m, key *k, aq_err *err)
{
    const uint8_t *known = aq_key_cached(m, AQ_KEY_PGP, m->key);
    aq_auto_buf signed_ = {0};
    uint8_t kept[33];

    if (m->len > USER)
        return aq_fail(err, -EINVAL, "an OpenPGP user id of more than %d bytes", USER);
    if (known) {
        open_secret(m, known[32], k);
        memcpy(k->point, known, sizeof k->point);
        complete(k);
        return 0;
    }
    for (uint8_t i = 0; i < TRIES; i++) {
        open_secret(m, i, k);
        ed25519_sha512_public_key(k->point, k->secret);
        complete(k);
        aq_buf_clear(&signed_);
        if (k->secret[0] == 0 || !signature(k, m->text, &signed_))
            continue;
        memcpy(kept, k->point, 32);
        kept[32] = i;
        aq_key_keep(m, AQ_KEY_PGP, m->key, kept, sizeof kept);
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
    int r = find_key(m, &k, err);

    if (r == 0) {
        (void)signature(&k, m->text, &signed_);
        put_secret(&k, &secret);
        put_packet(&packets, 5, &secret);
        put_packet(&packets, 13, &user);
        put_packet(&packets, 2, &signed_);
        put_armour(out, &packets);
    }
    aq_buf_free(&k.body);
    return r;
}

static void put_hex(aq_buf *out, const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        aq_buf_addf(out, "%02X", data[i]);
}

/* ---- GnuPG's own names ---- */

/* Curve and point in one hash: how the agent calls the key. */
static void keygrip(const key *k, uint8_t out[static SHA1_DIGEST_SIZE])
{
    static const struct {
        const char *name, *hex;
    } curve[] = {
        {"p", "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffed"},
        {"a", "01"},
        {"b", "2dfc9311d490018c7338bf8688861767ff8ff5b2bebe27548a14b235eca6874a"},
        {"g", "04216936d3cd6e53fec0a4e231fdd6dc5c692cc7609525a7b2c9562d608f25d51a"
              "6666666666666666666666666666666666666666666666666666666666666658"},
        {"n", "1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed"},
    };
    aq_auto_buf all = {0};
    struct sha1_ctx hash;

    for (size_t i = 0; i < sizeof curve / sizeof *curve; i++) {
        aq_buf_addf(&all, "(1:%s%zu:", curve[i].name, strlen(curve[i].hex) / 2);
        (void)aq_unhex(curve[i].hex, strlen(curve[i].hex), &all);
        aq_buf_addc(&all, ')');
    }
    aq_buf_adds(&all, "(1:q32:");
    aq_buf_add(&all, k->point, sizeof k->point);
    aq_buf_addc(&all, ')');
    sha1_init(&hash);
    sha1_update(&hash, all.len, (const uint8_t *)all.data);
    sha1_digest(&hash, SHA1_DIGEST_SIZE, out);
}

static int put_part(const aq_making *m, aq_function f, aq_buf *out, aq_err *err)
{
    uint8_t grip[SHA1_DIGEST_SIZE];
    key k = {0};
    int r = find_key(m, &k, err);

    if (r == 0 && f == AQ_FUNCTION_PGP_FINGERPRINT) {
        put_hex(out, k.fingerprint, sizeof k.fingerprint);
    } else if (r == 0 && f == AQ_FUNCTION_PGP_SECRET) {
        put_hex(out, k.secret, sizeof k.secret);
    } else if (r == 0 && f == AQ_FUNCTION_PGP_POINT) {
        put_hex(out, k.point, sizeof k.point);
    } else if (r == 0) {
        keygrip(&k, grip);
        put_hex(out, grip, sizeof grip);
    }
    aq_buf_free(&k.body);
    return r;
}

int aq_key_pgp_fingerprint(const aq_making *m, aq_buf *out, aq_err *err)
{
    return put_part(m, AQ_FUNCTION_PGP_FINGERPRINT, out, err);
}

int aq_key_pgp_secret(const aq_making *m, aq_buf *out, aq_err *err)
{
    return put_part(m, AQ_FUNCTION_PGP_SECRET, out, err);
}

int aq_key_pgp_point(const aq_making *m, aq_buf *out, aq_err *err)
{
    return put_part(m, AQ_FUNCTION_PGP_POINT, out, err);
}

int aq_key_pgp_keygrip(const aq_making *m, aq_buf *out, aq_err *err)
{
    return put_part(m, AQ_FUNCTION_PGP_KEYGRIP, out, err);
}

/* ---- GnuPG's own files ---- */

/* As it writes packets itself: a tag of the old form and one byte of length. */
static void put_old(aq_buf *out, unsigned tag, const void *data, size_t len)
{
    aq_buf_addc(out, (char)(0x80 | tag << 2));
    aq_buf_addc(out, (char)len);
    aq_buf_add(out, data, len);
}

static void put_u32s(aq_buf *out, const uint32_t *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        aq_put_u32(out, all[i]);
}

/* pubring.kbx: a head, and one entry with the places of its parts and a sum. */
int aq_key_pgp_keybox(const aq_making *m, aq_buf *out, aq_err *err)
{
    enum { HEAD = 32, ENTRY = 94, UID = 2 + 51 + 2, SUM = 20, KEYID = 32 };
    aq_auto_buf keys = {0}, entry = {0}, signed_ = {0};
    struct sha1_ctx hash;
    uint8_t sum[SUM];
    key k = {0};
    int r = find_key(m, &k, err);

    if (r == 0) {
        (void)signature(&k, m->text, &signed_);
        put_old(&keys, 6, k.body.data, k.body.len);
        put_old(&keys, 13, m->text, m->len);
        put_old(&keys, 2, signed_.data, signed_.len);
        put_u32s(out, (uint32_t[]){HEAD, 0x01010002, 0x4b425866, 0, k.created, k.created, 0, 0}, 8);
        put_u32s(&entry,
                 (uint32_t[]){(uint32_t)(ENTRY + keys.len + SUM), 0x02010000, ENTRY,
                              (uint32_t)keys.len, 0x0001001c},
                 5);
        aq_buf_add(&entry, k.fingerprint, sizeof k.fingerprint);
        put_u32s(&entry, (uint32_t[]){KEYID, 0, 1}, 3); /* no serial number, one user */
        put_u16(&entry, 12);
        put_u32s(
            &entry,
            (uint32_t[]){ENTRY + UID, (uint32_t)m->len, 0, 0x00010004, 0, 0, 0, 0, k.created, 0},
            10);
        aq_buf_add(&entry, keys.data, keys.len);
        sha1_init(&hash);
        sha1_update(&hash, entry.len, (const uint8_t *)entry.data);
        sha1_digest(&hash, SUM, sum);
        aq_buf_add(out, entry.data, entry.len);
        aq_buf_add(out, sum, SUM);
    }
    aq_buf_free(&k.body);
    return r;
}

/* trustdb.gpg: records of 40 bytes. A head, a table by the first byte of fingerprints, and of the
 * one key that it is its owner's. */
int aq_key_pgp_trust(const aq_making *m, aq_buf *out, aq_err *err)
{
    enum { RECORD = 40, TABLE = 29, EACH = 9, KEY = 1 + TABLE, ALL = KEY + 2, ULTIMATE = 6 };
    uint8_t all[ALL * RECORD] = {1, 'g', 'p', 'g', 3, 3, 1, 5, 1, 2};
    uint8_t *trust = all + KEY * RECORD, *valid = trust + RECORD;
    struct ripemd160_ctx hash;
    key k = {0};
    int r = find_key(m, &k, err);

    if (r == 0) {
        for (size_t i = 0; i < 4; i++)
            all[12 + i] = (uint8_t)(k.created >> (24 - 8 * i));
        all[RECORD - 1] = 1;
        for (size_t i = 1; i <= TABLE; i++)
            all[i * RECORD] = 10;
        all[(1U + k.fingerprint[0] / EACH) * RECORD + 2 + 4U * (k.fingerprint[0] % EACH) + 3] = KEY;
        trust[0] = 12;
        memcpy(trust + 2, k.fingerprint, sizeof k.fingerprint);
        trust[22] = ULTIMATE;
        trust[29] = KEY + 1;
        valid[0] = 13;
        ripemd160_init(&hash);
        ripemd160_update(&hash, m->len, (const uint8_t *)m->text);
        ripemd160_digest(&hash, RIPEMD160_DIGEST_SIZE, valid + 2);
        valid[22] = ULTIMATE;
        aq_buf_add(out, all, sizeof all);
    }
    aq_buf_free(&k.body);
    return r;
}
