/* Passwords as browsers keep them, so that whoever takes a profile can open it and finds decoys.
 *
 * Chrome without a key ring seals with a key that everybody knows. Firefox seals with a key of its
 * own that lies sealed in key4.db, and without a main password nothing is needed to open that. */
#include <errno.h>
#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <nettle/des.h>
#include <nettle/pbkdf2.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

/* Fills the last block, or adds one: as many bytes as each of them says. */
static void pad(aq_buf *b, size_t block)
{
    size_t n = block - b->len % block;

    for (size_t i = 0; i < n; i++)
        aq_buf_addc(b, (char)n);
}

int aq_value_chrome_seal(const aq_making *m, aq_buf *out, aq_err *err)
{
    uint8_t key[AES128_KEY_SIZE], iv[AES_BLOCK_SIZE];
    struct aes128_ctx aes;
    aq_auto_buf plain = {0};

    (void)err;
    pbkdf2_hmac_sha1(7, (const uint8_t *)"peanuts", 1, 9, (const uint8_t *)"saltysalt", sizeof key,
                     key);
    memset(iv, ' ', sizeof iv);
    aq_buf_add(&plain, m->text, m->len);
    pad(&plain, AES_BLOCK_SIZE);
    aes128_set_encrypt_key(&aes, key);
    cbc_encrypt(&aes, (nettle_cipher_func *)aes128_encrypt, AES_BLOCK_SIZE, iv, plain.len,
                (uint8_t *)plain.data, (const uint8_t *)plain.data);
    aq_buf_adds(out, "v10");
    aq_buf_add(out, plain.data, plain.len);
    return 0;
}

/* ---- Firefox ---- */

#define PBES2       "\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d"
#define PBKDF2_ID   "\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0c"
#define HMAC_SHA256 "\x2a\x86\x48\x86\xf7\x0d\x02\x09"
#define AES256_CBC  "\x60\x86\x48\x01\x65\x03\x04\x01\x2a"
#define DES3_CBC    "\x2a\x86\x48\x86\xf7\x0d\x03\x07"

enum { SALT = 20, ENTRY = 32, IV = 14 };

/* Thirty-two bytes of the store for one purpose. */
static void of_store(const aq_making *m, const char *what, uint8_t out[static 32])
{
    char name[AQ_PACK_NAME + 8];

    snprintf(name, sizeof name, "%.40s/%s", m->key, what);
    aq_key_seed(m->draws, name, out);
}

static void des_key(const aq_making *m, uint8_t out[static 32])
{
    of_store(m, "des", out);
    for (size_t i = 0; i < DES3_KEY_SIZE; i++) /* an odd number of bits in each byte */
        out[i] = (uint8_t)((out[i] & 0xfe) | !(__builtin_popcount(out[i] & 0xfe) & 1));
}

static void put_algorithm(aq_buf *out, const char *oid, size_t from)
{
    aq_auto_buf rest = {0};

    aq_buf_add(&rest, out->data + from, out->len - from);
    out->len = from;
    aq_der_put(out, AQ_DER_OID, oid, strlen(oid));
    aq_buf_add(out, rest.data, rest.len);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
}

/* The key is made of the store's salt alone, as there is no main password: one round, then. */
static void store_key(const aq_making *m, const uint8_t entry[static ENTRY],
                      uint8_t out[static AES256_KEY_SIZE])
{
    uint8_t salt[32], password[SHA1_DIGEST_SIZE];
    struct sha1_ctx hash;

    of_store(m, "salt", salt);
    sha1_init(&hash);
    sha1_update(&hash, SALT, salt);
    sha1_digest(&hash, sizeof password, password);
    pbkdf2_hmac_sha256(sizeof password, password, 1, ENTRY, entry, AES256_KEY_SIZE, out);
}

static void put_sealed(const aq_making *m, const char *what, aq_buf *plain, aq_buf *out)
{
    uint8_t entry[ENTRY], key[AES256_KEY_SIZE], iv[AES_BLOCK_SIZE] = {4, IV}, drawn[32];
    char name[16];
    struct aes256_ctx aes;
    size_t from;

    of_store(m, what, entry);
    snprintf(name, sizeof name, "%s-iv", what);
    of_store(m, name, drawn);
    memcpy(iv + 2, drawn, IV);
    store_key(m, entry, key);
    aq_der_put(out, AQ_DER_OCTETS, entry, sizeof entry);
    aq_der_put(out, AQ_DER_INTEGER, "\1", 1);
    aq_der_put(out, AQ_DER_INTEGER, "\x20", 1);
    from = out->len;
    put_algorithm(out, HMAC_SHA256, from);
    aq_der_wrap(out, AQ_DER_SEQUENCE, 0);
    put_algorithm(out, PBKDF2_ID, 0);
    from = out->len;
    aq_der_put(out, AQ_DER_OCTETS, iv + 2, IV); /* the two before it are its own head */
    put_algorithm(out, AES256_CBC, from);
    aq_der_wrap(out, AQ_DER_SEQUENCE, 0);
    put_algorithm(out, PBES2, 0);
    pad(plain, AES_BLOCK_SIZE);
    aes256_set_encrypt_key(&aes, key);
    cbc_encrypt(&aes, (nettle_cipher_func *)aes256_encrypt, AES_BLOCK_SIZE, iv, plain->len,
                (uint8_t *)plain->data, (const uint8_t *)plain->data);
    aq_der_put(out, AQ_DER_OCTETS, plain->data, plain->len);
    aq_der_wrap(out, AQ_DER_SEQUENCE, 0);
}

/* What key4.db holds: `salt`, `check` (that there is no password) or `key`. */
int aq_value_nss_store(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_auto_buf plain = {0};
    uint8_t raw[32];

    if (strcmp(m->text, "salt") == 0) {
        of_store(m, "salt", raw);
        aq_buf_add(out, raw, SALT);
    } else if (strcmp(m->text, "check") == 0) {
        aq_buf_adds(&plain, "password-check");
        put_sealed(m, "check", &plain, out);
    } else if (strcmp(m->text, "key") == 0) {
        des_key(m, raw);
        aq_buf_add(&plain, raw, DES3_KEY_SIZE);
        put_sealed(m, "key", &plain, out);
    } else {
        return aq_fail(err, -EINVAL, "nss-store makes a salt, a check or a key");
    }
    return 0;
}

/* One of logins.json. */
int aq_value_nss_login(const aq_making *m, aq_buf *out, aq_err *err)
{
    static const uint8_t id[16] = {0xf8, [15] = 1};
    uint8_t key[32], iv[DES3_BLOCK_SIZE];
    aq_auto_buf plain = {0}, der = {0};
    struct des3_ctx des;
    size_t from;

    (void)err;
    des_key(m, key);
    des3_set_key(&des, key);
    aq_stream_bytes(&m->lot->own, iv, sizeof iv);
    aq_der_put(&der, AQ_DER_OCTETS, id, sizeof id);
    from = der.len;
    aq_der_put(&der, AQ_DER_OCTETS, iv, sizeof iv);
    put_algorithm(&der, DES3_CBC, from);
    aq_buf_add(&plain, m->text, m->len);
    pad(&plain, DES3_BLOCK_SIZE);
    cbc_encrypt(&des, (nettle_cipher_func *)des3_encrypt, DES3_BLOCK_SIZE, iv, plain.len,
                (uint8_t *)plain.data, (const uint8_t *)plain.data);
    aq_der_put(&der, AQ_DER_OCTETS, plain.data, plain.len);
    aq_der_wrap(&der, AQ_DER_SEQUENCE, 0);
    aq_base64(der.data, der.len, out);
    return 0;
}
