/* Keys: one instance secret, one derived key for each use.
 *
 * `keys/instance.key` (32 random bytes, mode 0600) is made on first start or put there by the
 * operator. Everything else is HKDF-SHA256 of it under the label in keys.def, so that no key is
 * ever used for two things and one file is the whole backup. Keys never travel in argv or env. */
#pragma once

#include <stdint.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/mem.h"

typedef enum aq_key_use {
#define AQ_KEY(id, name, label, form, what) AQ_KEY_##id,
#include "trust/keys.def"
#undef AQ_KEY
    AQ_KEY_COUNT
} aq_key_use;

enum { AQ_KEY_LEN = 32, AQ_KEY_ID = 17, AQ_ED25519_SIG = 64 };

typedef struct aq_keys aq_keys;

/* Opens or makes the keys below `dirfd` ("keys/"). Refuses a key file that others can read. */
int aq_keys_open(int dirfd, aq_keys **ret, aq_err *err);
void aq_keys_free(aq_keys *k); /* wipes; takes NULL */

/* 16 hex digits: of the public key for signing keys, of a keyed tag for secret ones. */
const char *aq_key_id(const aq_keys *k, aq_key_use use, char out[static AQ_KEY_ID]);

/* Secret keys (form HMAC). */
aq_digest aq_key_hmac(const aq_keys *k, aq_key_use use, const void *data, size_t len);
/* The seed of one run's worlds: HMAC under the seed key of "aquarium/v1/world", the submission's id
 * and the run's name, each with its NUL. Nobody without the instance key can compute decoys in
 * advance. */
aq_digest aq_key_world_seed(const aq_keys *k, const char *submission, const char *run);
/* Signing keys (form ED25519). */
void aq_key_sign(const aq_keys *k, aq_key_use use, const void *data, size_t len,
                 uint8_t sig[static AQ_ED25519_SIG]);
void aq_key_public(const aq_keys *k, aq_key_use use, uint8_t out[static AQ_KEY_LEN]);
/* PEM (SubjectPublicKeyInfo) of a signing key's public half, for other tools. */
void aq_key_pem(const aq_keys *k, aq_key_use use, aq_buf *out);

/* The id that a signing key has, from its public half alone. */
const char *aq_public_id(const uint8_t public_key[static AQ_KEY_LEN], char out[static AQ_KEY_ID]);
int aq_ed25519_verify(const uint8_t public_key[static AQ_KEY_LEN], const void *data, size_t len,
                      const uint8_t sig[static AQ_ED25519_SIG]); /* 0 or -EBADMSG */
int aq_public_from_pem(const char *pem, size_t len, uint8_t out[static AQ_KEY_LEN], aq_err *err);
