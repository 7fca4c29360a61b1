/* Certificates; see mint.h. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "internet/mint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/stream.h"

enum { KEPT = 256, DAY = 86400, VALID = 90, SCALAR = 32 };

typedef struct coin {
    char name[256];
    X509 *certificate;
    EVP_PKEY *key;
} coin;

struct aq_mint {
    const aq_internet_world *world;
    X509 *authority;
    EVP_PKEY *authority_key;
    EC_KEY_METHOD *method;
    coin kept[KEPT]; /* the last ones, in a ring */
    size_t next;
    int64_t first_day; /* of the world; all validity counts from it */
};

static const uint8_t *nonce_key; /* of the world; there is one in a process */

/* ---- ECDSA of one length ---- */

/* k for the n-th attempt at this digest and key. */
static void nonce(const unsigned char *digest, int len, const BIGNUM *secret, unsigned attempt,
                  BIGNUM *k)
{
    uint8_t all[SCALAR + 64 + 4] = {0}, bytes[SCALAR];
    char name[AQ_SHA256_HEX + 8] = "ecdsa:";
    aq_digest d;
    aq_stream s;

    BN_bn2binpad(secret, all, SCALAR);
    memcpy(all + SCALAR, digest, (size_t)(len < 64 ? len : 64));
    memcpy(all + SCALAR + 64, &attempt, sizeof attempt);
    d = aq_sha256(all, sizeof all);
    aq_digest_hex(&d, name + 6);
    s = aq_stream_of(nonce_key, name);
    aq_stream_bytes(&s, bytes, sizeof bytes);
    bytes[0] &= 0x7f; /* below the order, which begins with ff */
    BN_bin2bn(bytes, sizeof bytes, k);
    OPENSSL_cleanse(all, sizeof all);
}

/* One attempt: r with its top bit set (33 bytes in DER), s with it clear (32). */
static bool attempt_signature(const unsigned char *digest, int len, const EC_KEY *key,
                              unsigned attempt, BIGNUM *r, BIGNUM *s)
{
    const EC_GROUP *group = EC_KEY_get0_group(key);
    const BIGNUM *order = EC_GROUP_get0_order(group), *secret = EC_KEY_get0_private_key(key);
    BN_CTX *ctx = BN_CTX_new();
    BIGNUM *k = BN_new(), *h = BN_new();
    EC_POINT *point = EC_POINT_new(group);
    bool good;

    nonce(digest, len, secret, attempt, k);
    BN_bin2bn(digest, len < SCALAR ? len : SCALAR, h);
    good = EC_POINT_mul(group, point, k, NULL, NULL, ctx) == 1 &&
           EC_POINT_get_affine_coordinates(group, point, r, NULL, ctx) == 1 &&
           BN_nnmod(r, r, order, ctx) == 1 && BN_num_bits(r) == 256 &&
           BN_mod_mul(s, r, secret, order, ctx) == 1 && BN_mod_add(s, s, h, order, ctx) == 1 &&
           BN_mod_inverse(k, k, order, ctx) != NULL && BN_mod_mul(s, s, k, order, ctx) == 1;
    if (good && BN_num_bits(s) == 256)
        good = BN_sub(s, order, s) == 1; /* as good a signature */
    good = good && BN_num_bits(s) <= 255 && BN_num_bits(s) > 247;
    EC_POINT_free(point);
    BN_clear_free(k);
    BN_free(h);
    BN_CTX_free(ctx);
    return good;
}

static ECDSA_SIG *sign_raw(const unsigned char *digest, int len, const BIGNUM *kinv,
                           const BIGNUM *rp, EC_KEY *key)
{
    ECDSA_SIG *sig = ECDSA_SIG_new();
    BIGNUM *r = BN_new(), *s = BN_new();

    (void)kinv;
    (void)rp;
    for (unsigned i = 0; i < 1000; i++)
        if (attempt_signature(digest, len, key, i, r, s)) {
            ECDSA_SIG_set0(sig, r, s);
            return sig;
        }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(sig);
    return NULL;
}

static int sign(int type, const unsigned char *digest, int len, unsigned char *out,
                unsigned *out_len, const BIGNUM *kinv, const BIGNUM *r, EC_KEY *key)
{
    ECDSA_SIG *sig = sign_raw(digest, len, kinv, r, key);
    int n;

    (void)type;
    if (!sig)
        return 0;
    n = i2d_ECDSA_SIG(sig, &out);
    ECDSA_SIG_free(sig);
    *out_len = n > 0 ? (unsigned)n : 0;
    return n > 0;
}

/* ---- keys ---- */

static EVP_PKEY *key_of(aq_mint *m, const BIGNUM *secret)
{
    EC_KEY *ec = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    const EC_GROUP *group = EC_KEY_get0_group(ec);
    EC_POINT *point = EC_POINT_new(group);
    EVP_PKEY *key = EVP_PKEY_new();

    if (EC_POINT_mul(group, point, secret, NULL, NULL, NULL) != 1 ||
        EC_KEY_set_private_key(ec, secret) != 1 || EC_KEY_set_public_key(ec, point) != 1 ||
        EC_KEY_set_method(ec, m->method) != 1 || EVP_PKEY_assign_EC_KEY(key, ec) != 1) {
        EVP_PKEY_free(key);
        EC_KEY_free(ec);
        key = NULL;
    }
    EC_POINT_free(point);
    return key;
}

static aq_stream stream_for(const aq_mint *m, const char *kind, const char *name,
                            char text[static AQ_STREAM_NAME])
{
    aq_digest d = aq_sha256(name, strlen(name));
    char hex[AQ_SHA256_HEX];

    snprintf(text, AQ_STREAM_NAME, "%s:%s", kind, aq_digest_hex(&d, hex));
    return aq_stream_of(m->world->own, text);
}

static EVP_PKEY *leaf_key(aq_mint *m, const char *name)
{
    char text[AQ_STREAM_NAME];
    aq_stream s = stream_for(m, "leaf", name, text);
    uint8_t bytes[SCALAR];
    BIGNUM *secret;
    EVP_PKEY *key;

    aq_stream_bytes(&s, bytes, sizeof bytes);
    bytes[0] &= 0x7f;
    secret = BN_bin2bn(bytes, sizeof bytes, NULL);
    key = key_of(m, secret);
    BN_clear_free(secret);
    return key;
}

/* ---- certificates ---- */

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509_EXTENSION *e;
    bool good;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    good = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return good;
}

/* "Domain validated", as nearly all certificates of the web are. */
static bool add_policy(X509 *cert)
{
    CERTIFICATEPOLICIES *all = sk_POLICYINFO_new_null();
    POLICYINFO *one = POLICYINFO_new();
    bool good;

    one->policyid = OBJ_txt2obj("2.23.140.1.2.1", 1);
    sk_POLICYINFO_push(all, one);
    good = X509_add1_ext_i2d(cert, NID_certificate_policies, all, 0, X509V3_ADD_DEFAULT) == 1;
    CERTIFICATEPOLICIES_free(all);
    return good;
}

static bool add_extensions(aq_mint *m, X509 *cert, const char *name)
{
    aq_auto_buf alternative = {0};
    uint8_t address[16];
    bool is_address =
        inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;

    aq_buf_addf(&alternative, "%s:%s", is_address ? "IP" : "DNS", name);
    return add_extension(cert, m->authority, NID_key_usage, "critical,digitalSignature") &&
           add_extension(cert, m->authority, NID_ext_key_usage, "serverAuth,clientAuth") &&
           add_extension(cert, m->authority, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, m->authority, NID_subject_key_identifier, "hash") &&
           (!X509_get0_subject_key_id(m->authority) ||
            add_extension(cert, m->authority, NID_authority_key_identifier, "keyid:always")) &&
           add_extension(cert, m->authority, NID_subject_alt_name, aq_buf_str(&alternative)) &&
           add_policy(cert);
}

static void set_serial(aq_mint *m, X509 *cert, const char *name)
{
    char text[AQ_STREAM_NAME];
    aq_stream s = stream_for(m, "serial", name, text);
    uint8_t bytes[18];
    BIGNUM *n;

    aq_stream_bytes(&s, bytes, sizeof bytes);
    bytes[0] = 3; /* the length is always the same */
    n = BN_bin2bn(bytes, sizeof bytes, NULL);
    BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
}

static bool set_validity(aq_mint *m, X509 *cert, const char *name)
{
    char text[32];
    aq_stream s;
    int64_t from;

    /* By the name's length: both worlds must show the same dates. */
    snprintf(text, sizeof text, "validity:%zu", strlen(name));
    s = aq_stream_of(m->world->pair, text);
    from = m->first_day - (int64_t)(5 + aq_stream_below(&s, 40)) * DAY +
           (int64_t)aq_stream_below(&s, DAY);
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)from) &&
           ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(from + VALID * DAY - 1));
}

static X509 *make(aq_mint *m, const char *name, EVP_PKEY *key)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    bool good;

    set_serial(m, cert, name);
    good = X509_set_version(cert, X509_VERSION_3) == 1 && set_validity(m, cert, name) &&
           X509_set_issuer_name(cert, X509_get_subject_name(m->authority)) == 1 &&
           (strlen(name) > 64 ||
            X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                       -1, 0) == 1) &&
           X509_set_pubkey(cert, key) == 1 && add_extensions(m, cert, name) &&
           X509_sign(cert, m->authority_key, EVP_sha256()) > 0;
    if (good)
        return cert;
    X509_free(cert);
    return NULL;
}

static coin *coin_for(aq_mint *m, const char *name, int64_t now)
{
    coin *c = NULL;

    if (m->first_day == 0)
        m->first_day = now / DAY * DAY;
    for (size_t i = 0; i < KEPT; i++)
        if (strcmp(m->kept[i].name, name) == 0 && m->kept[i].certificate)
            return &m->kept[i];
    c = &m->kept[m->next++ % KEPT];
    X509_free(c->certificate);
    EVP_PKEY_free(c->key);
    *c = (coin){0};
    snprintf(c->name, sizeof c->name, "%s", name);
    c->key = leaf_key(m, name);
    c->certificate = c->key ? make(m, name, c->key) : NULL;
    return c->certificate ? c : NULL;
}

int aq_mint_use(aq_mint *m, SSL *ssl, const char *name, int64_t now)
{
    coin *c = coin_for(m, name, now);

    if (!c || SSL_use_certificate(ssl, c->certificate) != 1 || SSL_use_PrivateKey(ssl, c->key) != 1)
        return -EIO;
    return 0;
}

static int read_authority(aq_mint *m, aq_err *err)
{
    BIO *text = BIO_new_mem_buf(m->world->ca_certificate, -1);
    BIO *key_text = BIO_new_mem_buf(m->world->ca_key, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_text, NULL, NULL, NULL);
    BIGNUM *secret = NULL;
    int r = 0;

    m->authority = PEM_read_bio_X509(text, NULL, NULL, NULL);
    if (!m->authority)
        r = aq_fail(err, -EBADMSG, "the authority's certificate cannot be read");
    else if (!key || EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_PRIV_KEY, &secret) != 1)
        r = aq_fail(err, -EBADMSG, "the authority's key is no EC key");
    else if (!(m->authority_key = key_of(m, secret)) ||
             X509_check_private_key(m->authority, m->authority_key) != 1)
        r = aq_fail(err, -EBADMSG, "the authority's key is not that of its certificate (P-256)");
    BN_clear_free(secret);
    EVP_PKEY_free(key);
    BIO_free(text);
    BIO_free(key_text);
    return r;
}

aq_mint *aq_mint_new(const aq_internet_world *world, aq_err *err)
{
    aq_mint *m = aq_alloc(sizeof *m);

    m->world = world;
    nonce_key = world->own;
    m->method = EC_KEY_METHOD_new(EC_KEY_OpenSSL());
    EC_KEY_METHOD_set_sign(m->method, sign, NULL, sign_raw);
    if (read_authority(m, err) == 0)
        return m;
    X509_free(m->authority);
    EVP_PKEY_free(m->authority_key);
    EC_KEY_METHOD_free(m->method);
    free(m);
    return NULL;
}
