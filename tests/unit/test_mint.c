/* Certificates and signatures of the private internet: all of one length, good, and the same again;
 * in another world others, of the same length. */
#include "unit.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>

#include "internet/mint.h"

enum {
    NAMES = 40,
    MESSAGES = 3000, /* one in 256 would be shorter */
    SIGNATURE = 71,  /* a sequence of two numbers of 33 and 32 bytes */
};
static const int64_t now = INT64_C(1777626000);

typedef struct side {
    char certificate[2048], key[512];
    aq_internet_world world;
    aq_mint *mint;
    SSL_CTX *context;
    SSL *ssl;
} side;

static void take_text(BIO *from, char *to, size_t size)
{
    int n = BIO_read(from, to, (int)size - 1);

    assert_true(n > 0);
    to[n] = '\0';
    BIO_free(from);
}

static void make_authority(side *s)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *c = X509_new();
    BIO *out;

    X509_set_version(c, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(c), 1);
    ASN1_TIME_set(X509_getm_notBefore(c), (time_t)now - 1000);
    ASN1_TIME_set(X509_getm_notAfter(c), (time_t)now + 1000000);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_ASC,
                               (const unsigned char *)"Larch Root", -1, -1, 0);
    X509_set_issuer_name(c, X509_get_subject_name(c));
    X509_set_pubkey(c, key);
    assert_true(X509_sign(c, key, EVP_sha256()) > 0);
    out = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(out, c);
    take_text(out, s->certificate, sizeof s->certificate);
    out = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    take_text(out, s->key, sizeof s->key);
    X509_free(c);
    EVP_PKEY_free(key);
}

static void begin(side *s, uint8_t own)
{
    aq_err err = {0};

    memset(s->world.pair, 1, sizeof s->world.pair);
    memset(s->world.own, own, sizeof s->world.own);
    s->world.ca_certificate = s->certificate;
    s->world.ca_key = s->key;
    s->mint = aq_mint_new(&s->world, &err);
    if (!s->mint)
        fail_msg("%s", err.text);
    s->context = SSL_CTX_new(TLS_server_method());
    s->ssl = SSL_new(s->context);
}

static void end(side *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->context);
}

static X509 *certificate_of(side *s, const char *name)
{
    assert_int_equal(aq_mint_use(s->mint, s->ssl, name, now), 0);
    return SSL_get_certificate(s->ssl);
}

static void certificates_have_one_length(void **state)
{
    static side s;
    const ASN1_BIT_STRING *signature;
    EVP_PKEY *key;
    BIO *in;
    int length = 0;

    (void)state;
    make_authority(&s);
    begin(&s, 2);
    in = BIO_new_mem_buf(s.key, -1);
    key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        X509 *c;

        snprintf(name, sizeof name, "host%02d.example.org", i);
        c = certificate_of(&s, name);
        X509_get0_signature(&signature, NULL, c);
        assert_int_equal(signature->length, SIGNATURE);
        assert_int_equal(X509_verify(c, key), 1);
        length = length ? length : i2d_X509(c, NULL);
        assert_int_equal(i2d_X509(c, NULL), length);
    }
    EVP_PKEY_free(key);
    BIO_free(in);
    end(&s);
}

static size_t sign(EVP_PKEY *key, int message, uint8_t out[static 128])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = 128;

    assert_int_equal(EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(ctx, out, &len, (const unsigned char *)&message, sizeof message), 1);
    EVP_MD_CTX_free(ctx);
    return len;
}

static bool holds(EVP_PKEY *key, int message, const uint8_t *signature, size_t len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good =
        EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestVerify(ctx, signature, len, (const unsigned char *)&message, sizeof message) == 1;

    EVP_MD_CTX_free(ctx);
    return good;
}

static void signatures_have_one_length(void **state)
{
    static side s;
    uint8_t first[128], again[128];
    EVP_PKEY *key;

    (void)state;
    make_authority(&s);
    begin(&s, 2);
    certificate_of(&s, "example.org");
    key = SSL_get_privatekey(s.ssl);
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(sign(key, i, first), SIGNATURE);
        if (i % 100)
            continue;
        assert_int_equal(sign(key, i, again), SIGNATURE);
        assert_memory_equal(first, again, SIGNATURE);
        assert_true(holds(key, i, first, SIGNATURE) && !holds(key, i + 1, first, SIGNATURE));
    }
    end(&s);
}

static void another_world_has_other_keys(void **state)
{
    static side a, b;
    unsigned char *one = NULL, *two = NULL;
    int n, m;

    (void)state;
    make_authority(&a);
    make_authority(&b);
    begin(&a, 2);
    n = i2d_PUBKEY(X509_get0_pubkey(certificate_of(&a, "example.org")), &one);
    begin(&b, 3);
    m = i2d_PUBKEY(X509_get0_pubkey(certificate_of(&b, "example.org")), &two);
    assert_int_equal(n, m);
    assert_memory_not_equal(one, two, (size_t)n);
    OPENSSL_free(one);
    OPENSSL_free(two);
    end(&a);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(certificates_have_one_length),
        cmocka_unit_test(signatures_have_one_length),
        cmocka_unit_test(another_world_has_other_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
