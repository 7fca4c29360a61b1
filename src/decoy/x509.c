/* P-256 keys in PKCS #8 and certificates signed with them: what clusters and cloud tools load.
 *
 * Every form has one length: the halves of a signature are taken so that none needs a padding byte,
 * by signing again with another nonce where it would. */
#include <errno.h>
#include <nettle/ecc-curve.h>
#include <nettle/ecdsa.h>
#include <nettle/sha1.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

#define EC_KEY   "\x2a\x86\x48\xce\x3d\x02\x01"
#define P256     "\x2a\x86\x48\xce\x3d\x03\x01\x07"
#define ECDSA    "\x2a\x86\x48\xce\x3d\x04\x03\x02" /* with SHA-256 */
#define CN       "\x55\x04\x03"
#define O        "\x55\x04\x0a"
#define USAGE    "\x55\x1d\x0f"
#define EXTENDED "\x55\x1d\x25"
#define BASIC    "\x55\x1d\x13"
#define SUBJECT  "\x55\x1d\x0e"
#define ISSUER   "\x55\x1d\x23"

typedef struct pair {
    struct ecc_scalar secret;
    uint8_t raw[32], point[65];
} pair;

/* ---- DER ---- */

static void put_oid(aq_buf *out, const char *oid)
{
    aq_der_put(out, AQ_DER_OID, oid, strlen(oid));
}

static void put_curve(aq_buf *out)
{
    size_t from = out->len;

    put_oid(out, EC_KEY);
    put_oid(out, P256);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

static void put_bits(aq_buf *out, const void *data, size_t len)
{
    size_t from = out->len;

    aq_buf_addc(out, 0);
    aq_buf_add(out, data, len);
    aq_der_wrap(out, AQ_DER_BITS, from);
}

/* ---- keys ---- */

static void put_number(uint8_t out[static 32], const mpz_t n)
{
    size_t count = (mpz_sizeinbase(n, 2) + 7) / 8;

    memset(out, 0, 32);
    mpz_export(out + 32 - count, NULL, 1, 1, 1, 0, n);
}

static void compute_point(pair *k)
{
    struct ecc_point point;
    mpz_t x, y;

    mpz_init(x);
    mpz_init(y);
    ecc_point_init(&point, nettle_get_secp_256r1());
    ecc_point_mul_g(&point, &k->secret);
    ecc_point_get(&point, x, y);
    k->point[0] = 4;
    put_number(k->point + 1, x);
    put_number(k->point + 33, y);
    mpz_clear(x);
    mpz_clear(y);
    ecc_point_clear(&point);
}

/* `lasting`: the name is one of the pack. */
static void open_pair(const aq_making *m, const char *name, bool lasting, pair *k)
{
    const uint8_t *known = aq_key_cached(m, AQ_KEY_P256, name);
    mpz_t n;

    aq_key_seed(m->draws, name, k->raw);
    k->raw[0] &= 0x7f; /* below the order */
    k->raw[31] |= 1;   /* not zero */
    mpz_init(n);
    mpz_import(n, 32, 1, 1, 1, 0, k->raw);
    ecc_scalar_init(&k->secret, nettle_get_secp_256r1());
    if (!ecc_scalar_set(&k->secret, n))
        aq_panic("a scalar of P-256 is out of range");
    mpz_clear(n);
    if (known) {
        memcpy(k->point, known, sizeof k->point);
        return;
    }
    compute_point(k);
    if (lasting)
        aq_key_keep(m, AQ_KEY_P256, name, k->point, sizeof k->point);
}

static void close_pair(pair *k)
{
    ecc_scalar_clear(&k->secret);
}

int aq_key_ec_private(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_auto_buf der = {0}, inner = {0};
    pair k;
    size_t from;

    (void)err;
    open_pair(m, m->key, true, &k);
    aq_der_put(&inner, AQ_DER_INTEGER, "\x01", 1);
    aq_der_put(&inner, AQ_DER_OCTETS, k.raw, sizeof k.raw);
    from = inner.len;
    put_bits(&inner, k.point, sizeof k.point);
    aq_der_wrap(&inner, 0xa1, from);
    aq_der_wrap(&inner, AQ_DER_SEQUENCE, 0);
    aq_der_put(&der, AQ_DER_INTEGER, "\0", 1);
    put_curve(&der);
    aq_der_put(&der, AQ_DER_OCTETS, inner.data, inner.len);
    aq_der_wrap(&der, AQ_DER_SEQUENCE, 0);
    aq_der_pem(out, "PRIVATE KEY", &der);
    close_pair(&k);
    return 0;
}

/* ---- certificates ---- */

static void put_attribute(aq_buf *out, const char *oid, const char *value)
{
    size_t from = out->len;

    put_oid(out, oid);
    aq_der_put(out, AQ_DER_UTF8, value, strlen(value));
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    aq_der_wrap(out, AQ_DER_SET, from);
}

static void put_name(aq_buf *out, const char *organisation, const char *common)
{
    size_t from = out->len;

    if (*organisation)
        put_attribute(out, O, organisation);
    put_attribute(out, CN, common);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

static void put_extension(aq_buf *out, const char *oid, bool critical, const void *data, size_t len)
{
    size_t from = out->len;

    put_oid(out, oid);
    if (critical)
        aq_der_put(out, 0x01, "\xff", 1);
    aq_der_put(out, AQ_DER_OCTETS, data, len);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

/* SHA-1 over the point, as everybody names keys in certificates. */
static void put_key_id(aq_buf *out, const char *oid, uint8_t tag, const pair *k)
{
    aq_auto_buf inner = {0};
    struct sha1_ctx hash;
    uint8_t id[20];

    sha1_init(&hash);
    sha1_update(&hash, sizeof k->point, k->point);
    sha1_digest(&hash, sizeof id, id);
    aq_der_put(&inner, tag, id, sizeof id);
    if (tag != AQ_DER_OCTETS)
        aq_der_wrap(&inner, AQ_DER_SEQUENCE, 0);
    put_extension(out, oid, false, inner.data, inner.len);
}

static void put_extensions(aq_buf *out, bool ca, const pair *own, const pair *issuer)
{
    size_t from = out->len;

    if (ca) {
        put_extension(out, USAGE, true, "\x03\x02\x02\xa4", 4);
        put_extension(out, BASIC, true, "\x30\x03\x01\x01\xff", 5);
    } else {
        put_extension(out, USAGE, true, "\x03\x02\x05\xa0", 4);
        put_extension(out, EXTENDED, false, "\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x02", 12);
        put_extension(out, BASIC, true, "\x30\0", 2);
    }
    put_key_id(out, SUBJECT, AQ_DER_OCTETS, own);
    put_key_id(out, ISSUER, 0x80, issuer);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    aq_der_wrap(out, 0xa3, from);
}

static void put_algorithm(aq_buf *out)
{
    size_t from = out->len;

    put_oid(out, ECDSA);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

static void give_random(void *stream, size_t len, uint8_t *out)
{
    aq_stream_bytes(stream, out, len);
}

static bool plain(const mpz_t n)
{
    size_t bits = mpz_sizeinbase(n, 2);

    return bits > 248 && bits < 256;
}

static void put_integer(aq_buf *out, const mpz_t n)
{
    uint8_t raw[32];

    put_number(raw, n);
    aq_der_put(out, AQ_DER_INTEGER, raw, sizeof raw);
}

/* Both s and order − s sign: one of them has no top bit. */
static void sign(aq_lot *lot, const pair *k, const aq_buf *what, aq_buf *out)
{
    aq_digest d = aq_sha256(what->data, what->len);
    struct dsa_signature s;
    mpz_t order;
    size_t from = out->len;

    dsa_signature_init(&s);
    mpz_init_set_str(order, "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", 16);
    do {
        ecdsa_sign(&k->secret, &lot->own, give_random, sizeof d.b, d.b, &s);
        if (mpz_sizeinbase(s.s, 2) == 256)
            mpz_sub(s.s, order, s.s);
    } while (!plain(s.r) || !plain(s.s));
    put_integer(out, s.r);
    put_integer(out, s.s);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    mpz_clear(order);
    dsa_signature_clear(&s);
}

typedef struct request {
    char text[512];
    const char *issuer_key, *issuer, *common, *organisation;
} request;

/* ISSUER-KEY|ISSUER-CN|CN|O */
static int split(const aq_making *m, request *q, aq_err *err)
{
    const char **const part[] = {&q->issuer_key, &q->issuer, &q->common, &q->organisation};
    char *at = q->text;

    if (m->len < sizeof q->text) {
        memcpy(q->text, m->text, m->len + 1);
        for (int i = 0; i < 4; i++) {
            *part[i] = strsep(&at, "|");
            if (!*part[i])
                break;
        }
    }
    if (!q->organisation || at || !*q->common || !*q->issuer)
        return aq_fail(err, -EINVAL, "a certificate needs ISSUER-KEY|ISSUER-CN|CN|O");
    return 0;
}

/* Valid for ten years from a fixed day: nothing in a file depends on a clock. */
static void put_validity(aq_buf *out)
{
    size_t from = out->len;

    aq_der_put(out, 0x17, "240301000000Z", 13);
    aq_der_put(out, 0x17, "340301000000Z", 13);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

static void put_body(const aq_making *m, const request *q, const pair *k, const pair *issuer,
                     aq_buf *out)
{
    bool ca = strcmp(q->issuer_key, m->key) == 0;
    uint8_t serial[16];
    size_t from;

    aq_stream_bytes(&m->lot->own, serial, sizeof serial);
    serial[0] = (uint8_t)(serial[0] & 0x3f) | 0x40;
    aq_der_put(out, AQ_DER_INTEGER, "\x02", 1);
    aq_der_wrap(out, 0xa0, 0);
    aq_der_put(out, AQ_DER_INTEGER, serial, sizeof serial);
    put_algorithm(out);
    put_name(out, "", q->issuer);
    put_validity(out);
    put_name(out, q->organisation, q->common);
    from = out->len;
    put_curve(out);
    put_bits(out, k->point, sizeof k->point);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    put_extensions(out, ca, k, issuer);
    aq_der_wrap(out, AQ_DER_SEQUENCE, 0);
}

int aq_key_certificate(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_auto_buf body = {0}, der = {0}, signature = {0};
    request q = {0};
    pair own, issuer;
    int r = split(m, &q, err);

    if (r < 0)
        return r;
    open_pair(m, m->key, true, &own);
    open_pair(m, q.issuer_key, false, &issuer);
    put_body(m, &q, &own, &issuer, &body);
    sign(m->lot, &issuer, &body, &signature);
    aq_buf_add(&der, body.data, body.len);
    put_algorithm(&der);
    put_bits(&der, signature.data, signature.len);
    aq_der_wrap(&der, AQ_DER_SEQUENCE, 0);
    aq_der_pem(out, "CERTIFICATE", &der);
    close_pair(&own);
    close_pair(&issuer);
    return 0;
}
