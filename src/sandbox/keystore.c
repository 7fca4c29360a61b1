/* The seal of a keystore; see keystore.h. */
#include "sandbox/keystore.h"

#include <nettle/sha1.h>

static const char password[] = "changeit", salt[] = "Mighty Aphrodite";

void aq_keystore_seal(aq_buf *store)
{
    uint8_t digest[AQ_KEYSTORE_SEAL];
    struct sha1_ctx hash;

    sha1_init(&hash);
    for (const char *p = password; *p; p++)
        sha1_update(&hash, 2, (const uint8_t[]){0, (uint8_t)*p});
    sha1_update(&hash, sizeof salt - 1, (const uint8_t *)salt);
    sha1_update(&hash, store->len, (const uint8_t *)store->data);
    sha1_digest(&hash, sizeof digest, digest);
    aq_buf_add(store, digest, sizeof digest);
}
