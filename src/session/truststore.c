/* The trust store of Java: a keystore with one certificate, in the form that every JDK reads. Its
 * seal is a SHA-1 with the password that everybody knows; it protects nothing and is checked. */
#include "session/truststore.h"

#include <errno.h>
#include <nettle/sha1.h>
#include <string.h>

#include "base/digest.h"

static const char password[] = "changeit", salt[] = "Mighty Aphrodite";

static void put(aq_buf *out, uint64_t number, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        aq_buf_addc(out, (char)(number >> 8 * i & 255));
}

static void put_text(aq_buf *out, const char *text)
{
    put(out, strlen(text), 2);
    aq_buf_adds(out, text);
}

/* What stands between the two lines of a PEM block. */
static int body_of(const char *pem, aq_buf *der)
{
    const char *from = strstr(pem, "-----\n"), *to = from ? strstr(from, "\n-----END") : NULL;
    aq_auto_buf text = {0};

    if (!to)
        return -EINVAL;
    for (from += 6; from < to; from++)
        if (*from != '\n')
            aq_buf_addc(&text, *from);
    return aq_unbase64(text.data, text.len, der);
}

static void seal(aq_buf *out)
{
    uint8_t digest[SHA1_DIGEST_SIZE];
    struct sha1_ctx hash;

    sha1_init(&hash);
    for (const char *p = password; *p; p++)
        sha1_update(&hash, 2, (const uint8_t[]){0, (uint8_t)*p});
    sha1_update(&hash, sizeof salt - 1, (const uint8_t *)salt);
    sha1_update(&hash, out->len, (const uint8_t *)out->data);
    sha1_digest(&hash, sizeof digest, digest);
    aq_buf_add(out, digest, sizeof digest);
}

int aq_truststore(const char *pem, const char *alias, int64_t since, aq_buf *out)
{
    enum { MAGIC = 0xfeedfeed, VERSION = 2, CERTIFICATE = 2 };
    aq_auto_buf der = {0};
    int r = body_of(pem, &der);

    if (r < 0)
        return r;
    put(out, MAGIC, 4);
    put(out, VERSION, 4);
    put(out, 1, 4);
    put(out, CERTIFICATE, 4);
    put_text(out, alias);
    put(out, (uint64_t)since * 1000, 8);
    put_text(out, "X.509");
    put(out, der.len, 4);
    aq_buf_add(out, der.data, der.len);
    seal(out);
    return 0;
}
