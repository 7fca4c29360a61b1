/* Keys: one instance secret, one derived key for each use; see keys.h.
 *
 * The secret is in memory only while the keys are derived from it. What lives on is one key a use,
 * wiped when the handle is freed. Nothing here prints, logs or returns a secret. */
#include "trust/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

typedef enum form { HMAC, ED25519 } form;

static const struct {
    const char *label;
    form form;
} uses[AQ_KEY_COUNT] = {
#define AQ_KEY(id, name, label, form, what) [AQ_KEY_##id] = {label, form},
#include "trust/keys.def"
#undef AQ_KEY
};

struct aq_keys {
    uint8_t secret[AQ_KEY_COUNT][AQ_KEY_LEN];
    EVP_PKEY *pair[AQ_KEY_COUNT]; /* NULL for secret keys */
};

static const char key_name[] = "instance.key";
static const char temp_name[] = "instance.key.new";

/* ---- the file ---- */

static int read_secret(int fd, uint8_t secret[static AQ_KEY_LEN], aq_err *err)
{
    uint8_t all = 0, extra;
    struct stat st;

    if (fstat(fd, &st) < 0)
        return aq_fail_errno(err, "cannot look at keys/%s", key_name);
    if (!S_ISREG(st.st_mode))
        return aq_fail(err, -EINVAL, "keys/%s is not a plain file: put the key itself there",
                       key_name);
    if (st.st_mode & 077)
        return aq_fail(err, -EPERM,
                       "keys/%s can be read or written by others (mode %04o): run chmod 600 on it, "
                       "and replace it if somebody else may have read it",
                       key_name, (unsigned)(st.st_mode & 07777));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return aq_fail(
            err, -EPERM,
            "keys/%s belongs to another user: use a state folder of your own (--state DIR)",
            key_name);
    if (aq_read_full(fd, secret, AQ_KEY_LEN) != AQ_KEY_LEN || aq_read_full(fd, &extra, 1) != 0)
        return aq_fail(err, -EINVAL,
                       "keys/%s must hold exactly %d bytes, it has %lld: put the real key back; "
                       "without it start anew with another state folder (--state DIR)",
                       key_name, AQ_KEY_LEN, (long long)st.st_size);
    for (int i = 0; i < AQ_KEY_LEN; i++)
        all |= secret[i];
    /* What a file system may leave of a file whose bytes never reached the disk. */
    if (all == 0)
        return aq_fail(err, -EINVAL, "keys/%s holds only zeros: put the real key back", key_name);
    return 0;
}

/* The key appears whole under its name or not at all: it is written and made durable under another
 * name and then linked. link() never replaces, so a key that an operator put there meanwhile wins.
 */
static int make_secret_locked(int dir, aq_err *err)
{
    uint8_t secret[AQ_KEY_LEN];
    aq_auto_fd int fd = -1;
    int r = 0;

    if (faccessat(dir, key_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (unlinkat(dir, temp_name, 0) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "cannot remove the unfinished keys/%s", temp_name);
    fd = openat(dir, temp_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "cannot create keys/%s", temp_name);
    if (RAND_priv_bytes(secret, sizeof secret) != 1)
        r = aq_fail(err, -EIO, "no random bytes for a new instance key");
    else if (aq_write_full(fd, secret, sizeof secret) < 0 || fsync(fd) < 0)
        r = aq_fail_errno(err, "cannot write keys/%s", temp_name);
    else if (linkat(dir, temp_name, dir, key_name, 0) < 0 && errno != EEXIST)
        r = aq_fail_errno(err, "cannot create keys/%s", key_name);
    OPENSSL_cleanse(secret, sizeof secret);
    unlinkat(dir, temp_name, 0);
    if (r == 0 && fsync(dir) < 0)
        r = aq_fail_errno(err, "cannot make keys/%s durable", key_name);
    return r;
}

static int make_secret(int dir, aq_err *err)
{
    int r;

    /* Locks the folder itself, which needs no file of its own. */
    while (flock(dir, LOCK_EX) < 0)
        if (errno != EINTR)
            return aq_fail_errno(err, "cannot lock the folder keys/");
    r = make_secret_locked(dir, err);
    flock(dir, LOCK_UN);
    return r;
}

static int open_secret(int dir)
{
    return openat(dir, key_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
}

static int open_folder(int dirfd, int *ret, aq_err *err)
{
    aq_auto_fd int dir = -1;
    struct stat st;

    if (mkdirat(dirfd, "keys", 0700) == 0)
        fsync(dirfd); /* the key's own fsync of keys/ does not cover the name keys/ */
    else if (errno != EEXIST && errno != EROFS && errno != EACCES)
        return aq_fail_errno(err, "cannot make the folder keys/");
    dir = openat(dirfd, "keys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return aq_fail_errno(err, "cannot open the folder keys/");
    if (st.st_mode & 022)
        return aq_fail(err, -EPERM,
                       "the folder keys/ can be written by others (mode %04o): run chmod 700 on it",
                       (unsigned)(st.st_mode & 07777));
    *ret = aq_take_fd(dir);
    return 0;
}

static int load_secret(int dirfd, uint8_t secret[static AQ_KEY_LEN], aq_err *err)
{
    aq_auto_fd int dir = -1;
    aq_auto_fd int fd = -1;
    int r = open_folder(dirfd, &dir, err);

    if (r < 0)
        return r;
    fd = open_secret(dir);
    if (fd < 0 && errno == ENOENT) {
        r = make_secret(dir, err);
        if (r < 0)
            return r;
        fd = open_secret(dir);
    }
    if (fd < 0 && errno == ELOOP)
        return aq_fail(err, -ELOOP, "keys/%s is a symbolic link: put the key itself there",
                       key_name);
    if (fd < 0)
        return aq_fail_errno(err, "cannot open keys/%s", key_name);
    return read_secret(fd, secret, err);
}

/* ---- derivation ---- */

static void derive(const uint8_t secret[static AQ_KEY_LEN], const char *label,
                   uint8_t out[static AQ_KEY_LEN])
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)"SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, AQ_KEY_LEN),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)label, strlen(label)),
        OSSL_PARAM_construct_end(),
    };

    if (!ctx || EVP_KDF_derive(ctx, out, AQ_KEY_LEN, params) != 1)
        aq_panic("HKDF-SHA256 failed");
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
}

int aq_keys_open(int dirfd, aq_keys **ret, aq_err *err)
{
    uint8_t secret[AQ_KEY_LEN];
    aq_keys *k;
    int r = load_secret(dirfd, secret, err);

    if (r < 0) {
        OPENSSL_cleanse(secret, sizeof secret);
        return r;
    }
    k = aq_alloc(sizeof *k);
    for (int i = 0; i < AQ_KEY_COUNT; i++) {
        derive(secret, uses[i].label, k->secret[i]);
        if (uses[i].form != ED25519)
            continue;
        k->pair[i] = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, k->secret[i], AQ_KEY_LEN);
        if (!k->pair[i])
            aq_panic("Ed25519 failed");
    }
    OPENSSL_cleanse(secret, sizeof secret);
    *ret = k;
    return 0;
}

void aq_keys_free(aq_keys *k)
{
    if (!k)
        return;
    for (int i = 0; i < AQ_KEY_COUNT; i++)
        EVP_PKEY_free(k->pair[i]); /* wipes its copy */
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}

/* ---- use ---- */

static EVP_PKEY *pair(const aq_keys *k, aq_key_use use)
{
    if (use >= AQ_KEY_COUNT || uses[use].form != ED25519)
        aq_panic("key %d does not sign", (int)use);
    return k->pair[use];
}

aq_digest aq_key_hmac(const aq_keys *k, aq_key_use use, const void *data, size_t len)
{
    aq_digest d;
    size_t got = 0;

    if (use >= AQ_KEY_COUNT || uses[use].form != HMAC)
        aq_panic("key %d is not a secret one", (int)use);
    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, k->secret[use], AQ_KEY_LEN, data, len, d.b,
                   sizeof d.b, &got) ||
        got != sizeof d.b)
        aq_panic("HMAC-SHA256 failed");
    return d;
}

aq_digest aq_key_world_seed(const aq_keys *k, const char *submission, const char *run)
{
    static const char label[] = "aquarium/v1/world";
    aq_auto_buf all = {0};

    aq_buf_add(&all, label, sizeof label);
    aq_buf_add(&all, submission, strlen(submission) + 1);
    aq_buf_add(&all, run, strlen(run) + 1);
    return aq_key_hmac(k, AQ_KEY_SEED, all.data, all.len);
}

void aq_key_sign(const aq_keys *k, aq_key_use use, const void *data, size_t len,
                 uint8_t sig[static AQ_ED25519_SIG])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t got = AQ_ED25519_SIG;

    if (!ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, pair(k, use)) != 1 ||
        EVP_DigestSign(ctx, sig, &got, data, len) != 1 || got != AQ_ED25519_SIG)
        aq_panic("Ed25519 failed");
    EVP_MD_CTX_free(ctx);
}

void aq_key_public(const aq_keys *k, aq_key_use use, uint8_t out[static AQ_KEY_LEN])
{
    size_t got = AQ_KEY_LEN;

    if (EVP_PKEY_get_raw_public_key(pair(k, use), out, &got) != 1 || got != AQ_KEY_LEN)
        aq_panic("Ed25519 failed");
}

static const char *id_of(const void *data, size_t len, char out[static AQ_KEY_ID])
{
    aq_digest d = aq_sha256(data, len);
    char hex[AQ_SHA256_HEX];

    memcpy(out, aq_digest_hex(&d, hex), AQ_KEY_ID - 1);
    out[AQ_KEY_ID - 1] = '\0';
    return out;
}

/* Ed25519's SubjectPublicKeyInfo is this and the key: the id is what `openssl pkey -pubin -outform
 * DER | sha256sum` begins with. */
static const uint8_t spki[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0};

const char *aq_public_id(const uint8_t public_key[static AQ_KEY_LEN], char out[static AQ_KEY_ID])
{
    uint8_t der[sizeof spki + AQ_KEY_LEN];

    memcpy(der, spki, sizeof spki);
    memcpy(der + sizeof spki, public_key, AQ_KEY_LEN);
    return id_of(der, sizeof der, out);
}

const char *aq_key_id(const aq_keys *k, aq_key_use use, char out[static AQ_KEY_ID])
{
    static const char tag[] = "aquarium/v1/key-id";
    uint8_t public_key[AQ_KEY_LEN];
    char hex[AQ_SHA256_HEX];
    aq_digest d;

    if (use < AQ_KEY_COUNT && uses[use].form == ED25519) {
        aq_key_public(k, use, public_key);
        return aq_public_id(public_key, out);
    }
    d = aq_key_hmac(k, use, tag, sizeof tag - 1);
    memcpy(out, aq_digest_hex(&d, hex), AQ_KEY_ID - 1);
    out[AQ_KEY_ID - 1] = '\0';
    return out;
}

void aq_key_pem(const aq_keys *k, aq_key_use use, aq_buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = NULL;
    long len;

    if (!bio || PEM_write_bio_PUBKEY(bio, pair(k, use)) != 1 ||
        (len = BIO_get_mem_data(bio, &text)) <= 0)
        aq_panic("cannot write a public key as PEM");
    aq_buf_add(out, text, (size_t)len);
    BIO_free(bio);
}

int aq_ed25519_verify(const uint8_t public_key[static AQ_KEY_LEN], const void *data, size_t len,
                      const uint8_t sig[static AQ_ED25519_SIG])
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, AQ_KEY_LEN);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int r = -EBADMSG;

    if (!ctx)
        aq_panic("Ed25519 failed");
    if (key && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
        EVP_DigestVerify(ctx, sig, AQ_ED25519_SIG, data, len) == 1)
        r = 0;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return r;
}

int aq_public_from_pem(const char *pem, size_t len, uint8_t out[static AQ_KEY_LEN], aq_err *err)
{
    BIO *bio = len <= 4096 ? BIO_new_mem_buf(pem, (int)len) : NULL;
    EVP_PKEY *key = bio ? PEM_read_bio_PUBKEY(bio, NULL, NULL, (void *)"") : NULL;
    uint8_t raw[AQ_KEY_LEN];
    size_t got = sizeof raw;
    int r = 0;

    if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(key, raw, &got) != 1 || got != sizeof raw)
        r = aq_fail(err, -EBADMSG, "not an Ed25519 public key in PEM form (BEGIN PUBLIC KEY)");
    else
        memcpy(out, raw, sizeof raw);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return r;
}
