/* Private to decoy/: seeded draws, and the functions that make values of texts. */
#pragma once

#include "base/stream.h"
#include "decoy/decoy.h"

/* ---- draw.c ---- */

/* What one world draws from. Both worlds of a seed share the pair's key. */
typedef struct aq_draws {
    uint8_t pair[32], own[32];
    aq_side side;
} aq_draws;

void aq_seed_entropy(const aq_seed *seed, uint8_t out[static 32]);
void aq_draws_begin(aq_draws *d, const aq_seed *seed, aq_side side);

/* The draws of one decoy. */
typedef struct aq_lot {
    aq_stream pair, own;
    aq_side side;
} aq_lot;

aq_lot aq_lot_of(const aq_draws *d, const char *name);
/* Of `limit` ≥ 2 things: never the same in A and B. */
uint32_t aq_lot_apart(aq_lot *l, uint32_t limit);
void aq_lot_piece(aq_lot *l, const aq_pack *pack, const aq_piece *p, aq_buf *out);

/* ---- functions ---- */

/* Key pairs that were computed before: half of the time that a world takes. */
typedef enum aq_key_kind { AQ_KEY_ED25519, AQ_KEY_P256, AQ_KEY_PGP } aq_key_kind;

typedef struct aq_key_cache {
    struct {
        aq_key_kind kind;
        const char *name;
        uint8_t result[65]; /* public point, or fingerprint */
    } row[16];
    size_t count;
} aq_key_cache;

/* What a function may use beside its text. */
typedef struct aq_making {
    const aq_pack *pack;
    const aq_draws *draws;
    aq_key_cache *cache;
    aq_lot *lot;         /* of this decoy */
    int64_t start, boot; /* seconds: when the clock begins, when the machine was started */
    const char *key;     /* name of the key pair, or NULL */
    const char *text;
    size_t len;
} aq_making;

/* Appends the value. -EINVAL when the text is not what the function takes. */
int aq_function_apply(aq_function f, const aq_making *m, aq_buf *out, aq_err *err);

/* values.c */
int aq_value_crc62(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_aws_key(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_macaroon(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_luhn(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_wif(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_bip39(const aq_making *m, aq_buf *out, aq_err *err);
const aq_pack_list *aq_find_list(const aq_pack *pack, const char *name); /* NULL: there is none */
void aq_url64(const void *data, size_t len, aq_buf *out);
/* base64 in lines of `width`, each with its end. */
void aq_base64_lines(const void *data, size_t len, size_t width, aq_buf *out);
void aq_put_u32(aq_buf *out, uint32_t n); /* big-endian */

/* Goes on from `crc`, which is 0 at first. */
uint32_t aq_crc32(uint32_t crc, const void *data, size_t len);

/* history.c */
typedef struct aq_history {
    const char *root; /* folder of the project */
    const char *text; /* the rows */
    size_t len;
    const aq_decoy_file *files; /* of the world */
    size_t file_count;
    int64_t (*when)(void *arg, uint32_t hours);
    int (*add)(void *arg, const char *name, unsigned mode, const aq_buf *data); /* below .git */
    void *arg;
} aq_history;
/* Adds what .git holds beside its settings; logs/HEAD comes last, a line for each commit. */
int aq_history_make(const aq_history *h, aq_err *err);

/* processor.c: what a processor says, as facts; how many. And which rows of the packs tell of a
 * machine around it: NULL for those without a variant. */
size_t aq_processor_facts(aq_arena *a, const aq_processor *p, const aq_fact **ret);
const char *aq_processor_variant(const aq_processor *p);

/* login.c */
int aq_value_login(const aq_making *m, aq_buf *out, aq_err *err);

/* browser.c */
int aq_value_chrome_seal(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_nss_store(const aq_making *m, aq_buf *out, aq_err *err);
int aq_value_nss_login(const aq_making *m, aq_buf *out, aq_err *err);

/* keys.c */
void aq_key_seed(const aq_draws *d, const char *key, uint8_t out[static 32]);
/* `name` must live as long as the cache, so only names of the pack are kept. */
const uint8_t *aq_key_cached(const aq_making *m, aq_key_kind kind, const char *name);
void aq_key_keep(const aq_making *m, aq_key_kind kind, const char *name, const uint8_t *result,
                 size_t len);
int aq_key_ssh_private(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_ssh_public(const aq_making *m, aq_buf *out, aq_err *err);

/* der.c */
enum {
    AQ_DER_SEQUENCE = 0x30,
    AQ_DER_SET = 0x31,
    AQ_DER_INTEGER = 0x02,
    AQ_DER_BITS = 0x03,
    AQ_DER_OCTETS = 0x04,
    AQ_DER_NULL = 0x05,
    AQ_DER_OID = 0x06,
    AQ_DER_UTF8 = 0x0c
};
void aq_der_put(aq_buf *out, uint8_t tag, const void *data, size_t len);
/* Wraps what was written since `from`. */
void aq_der_wrap(aq_buf *out, uint8_t tag, size_t from);
void aq_der_pem(aq_buf *out, const char *what, const aq_buf *der);

/* rsa.c */
int aq_key_rsa_private(const aq_making *m, aq_buf *out, aq_err *err);

/* x509.c */
int aq_key_ec_private(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_certificate(const aq_making *m, aq_buf *out, aq_err *err);

/* pgp.c */
int aq_key_pgp_private(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_fingerprint(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_point(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_secret(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_keygrip(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_keybox(const aq_making *m, aq_buf *out, aq_err *err);
int aq_key_pgp_trust(const aq_making *m, aq_buf *out, aq_err *err);
