/* Key pairs of Ed25519 and the forms that OpenSSH gives them; and the table of functions. */
#include <ctype.h>
#include <errno.h>
#include <nettle/eddsa.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

void aq_key_seed(const aq_draws *d, const char *key, uint8_t out[static 32])
{
    char name[AQ_PACK_NAME + 8];
    aq_stream s;

    snprintf(name, sizeof name, "key/%s", key);
    s = aq_stream_of(d->own, name);
    aq_stream_bytes(&s, out, 32);
}

const uint8_t *aq_key_cached(const aq_making *m, aq_key_kind kind, const char *name)
{
    for (size_t i = 0; i < m->cache->count; i++)
        if (m->cache->row[i].kind == kind && strcmp(m->cache->row[i].name, name) == 0)
            return m->cache->row[i].result;
    return NULL;
}

void aq_key_keep(const aq_making *m, aq_key_kind kind, const char *name, const uint8_t *result,
                 size_t len)
{
    aq_key_cache *c = m->cache;

    if (c->count == sizeof c->row / sizeof *c->row)
        return;
    c->row[c->count].kind = kind;
    c->row[c->count].name = name;
    memcpy(c->row[c->count++].result, result, len);
}

static void open_pair(const aq_making *m, uint8_t pair[static 64])
{
    const uint8_t *known = aq_key_cached(m, AQ_KEY_ED25519, m->key);

    aq_key_seed(m->draws, m->key, pair);
    if (known) {
        memcpy(pair + 32, known, 32);
        return;
    }
    ed25519_sha512_public_key(pair + 32, pair);
    aq_key_keep(m, AQ_KEY_ED25519, m->key, pair + 32, 32);
}

static void put_string(aq_buf *out, const void *data, size_t len)
{
    aq_put_u32(out, (uint32_t)len);
    aq_buf_add(out, data, len);
}

static const char ssh_type[] = "ssh-ed25519";

static void public_blob(const uint8_t point[static 32], aq_buf *out)
{
    put_string(out, ssh_type, sizeof ssh_type - 1);
    put_string(out, point, 32);
}

/* The form of PROTOCOL.key: no cipher, one key, its private part padded to eight bytes. */
int aq_key_ssh_private(const aq_making *m, aq_buf *out, aq_err *err)
{
    static const char magic[] = "openssh-key-v1"; /* with its NUL */
    aq_auto_buf all = {0}, inner = {0}, blob = {0};
    uint8_t pair[64];
    uint32_t check = aq_stream_below(&m->lot->own, UINT32_MAX);

    (void)err;
    open_pair(m, pair);
    public_blob(pair + 32, &blob);
    aq_buf_add(&all, magic, sizeof magic);
    put_string(&all, "none", 4);
    put_string(&all, "none", 4);
    put_string(&all, "", 0);
    aq_put_u32(&all, 1);
    put_string(&all, blob.data, blob.len);
    aq_put_u32(&inner, check);
    aq_put_u32(&inner, check);
    put_string(&inner, ssh_type, sizeof ssh_type - 1);
    put_string(&inner, pair + 32, 32);
    put_string(&inner, pair, 64);
    put_string(&inner, m->text, m->len);
    for (char pad = 1; inner.len % 8; pad++)
        aq_buf_addc(&inner, pad);
    put_string(&all, inner.data, inner.len);
    aq_buf_adds(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n");
    aq_base64_lines(all.data, all.len, 70, out);
    aq_buf_adds(out, "-----END OPENSSH PRIVATE KEY-----");
    return 0;
}

int aq_key_ssh_public(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_auto_buf blob = {0};
    uint8_t pair[64];

    (void)err;
    open_pair(m, pair);
    public_blob(pair + 32, &blob);
    aq_buf_addf(out, "%s ", ssh_type);
    aq_base64(blob.data, blob.len, out);
    aq_buf_addf(out, " %s", m->text);
    return 0;
}

/* ---- plain functions ---- */

static int text(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    aq_buf_add(out, m->text, m->len);
    return 0;
}

static int initial(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    if (m->len)
        aq_buf_addc(out, (char)tolower((unsigned char)m->text[0]));
    return 0;
}

static int lower(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    for (size_t i = 0; i < m->len; i++)
        aq_buf_addc(out,
                    m->text[i] >= 'A' && m->text[i] <= 'Z' ? (char)(m->text[i] + 32) : m->text[i]);
    return 0;
}

static int base64(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    aq_base64(m->text, m->len, out);
    return 0;
}

static int url64(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    aq_url64(m->text, m->len, out);
    return 0;
}

static int json(const aq_making *m, aq_buf *out, aq_err *err)
{
    (void)err;
    for (size_t i = 0; i < m->len; i++) {
        unsigned char c = (unsigned char)m->text[i];

        if (c == '\n')
            aq_buf_adds(out, "\\n");
        else if (c < 0x20)
            aq_buf_addf(out, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            aq_buf_addf(out, "\\%c", c);
        else
            aq_buf_addc(out, (char)c);
    }
    return 0;
}

static int sha256(const aq_making *m, aq_buf *out, aq_err *err)
{
    aq_digest d = aq_sha256(m->text, m->len);

    (void)err;
    aq_hex(d.b, sizeof d.b, out);
    return 0;
}

int aq_function_apply(aq_function f, const aq_making *m, aq_buf *out, aq_err *err)
{
    static int (*const all[AQ_FUNCTION_COUNT])(const aq_making *, aq_buf *, aq_err *) = {
        [AQ_FUNCTION_TEXT] = text,
        [AQ_FUNCTION_LOWER] = lower,
        [AQ_FUNCTION_INITIAL] = initial,
        [AQ_FUNCTION_BASE64] = base64,
        [AQ_FUNCTION_URL64] = url64,
        [AQ_FUNCTION_JSON] = json,
        [AQ_FUNCTION_SHA256] = sha256,
        [AQ_FUNCTION_CRC62] = aq_value_crc62,
        [AQ_FUNCTION_AWS_KEY] = aq_value_aws_key,
        [AQ_FUNCTION_LOGIN] = aq_value_login,
        [AQ_FUNCTION_MACAROON] = aq_value_macaroon,
        [AQ_FUNCTION_WIF] = aq_value_wif,
        [AQ_FUNCTION_BIP39] = aq_value_bip39,
        [AQ_FUNCTION_LUHN] = aq_value_luhn,
        [AQ_FUNCTION_CHROME_SEAL] = aq_value_chrome_seal,
        [AQ_FUNCTION_NSS_STORE] = aq_value_nss_store,
        [AQ_FUNCTION_NSS_LOGIN] = aq_value_nss_login,
        [AQ_FUNCTION_SSH_PRIVATE] = aq_key_ssh_private,
        [AQ_FUNCTION_SSH_PUBLIC] = aq_key_ssh_public,
        [AQ_FUNCTION_EC_PRIVATE] = aq_key_ec_private,
        [AQ_FUNCTION_RSA_PRIVATE] = aq_key_rsa_private,
        [AQ_FUNCTION_CERTIFICATE] = aq_key_certificate,
        [AQ_FUNCTION_PGP_PRIVATE] = aq_key_pgp_private,
        [AQ_FUNCTION_PGP_FINGERPRINT] = aq_key_pgp_fingerprint,
        [AQ_FUNCTION_PGP_POINT] = aq_key_pgp_point,
        [AQ_FUNCTION_PGP_SECRET] = aq_key_pgp_secret,
        [AQ_FUNCTION_PGP_KEYGRIP] = aq_key_pgp_keygrip,
        [AQ_FUNCTION_PGP_KEYBOX] = aq_key_pgp_keybox,
        [AQ_FUNCTION_PGP_TRUST] = aq_key_pgp_trust,
    };

    return all[f](m, out, err);
}
