/* The trust store of Java: a keystore with one certificate, in the form that every JDK reads. */
#include "session/truststore.h"

#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "sandbox/keystore.h"

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

int aq_truststore(const char *pem, const char *alias, int64_t since, aq_buf *out)
{
    enum { CERTIFICATE = 2 };
    aq_auto_buf der = {0};
    int r = body_of(pem, &der);

    if (r < 0)
        return r;
    put(out, AQ_KEYSTORE_MAGIC, 4);
    put(out, AQ_KEYSTORE_VERSION, 4);
    put(out, 1, 4);
    put(out, CERTIFICATE, 4);
    put_text(out, alias);
    put(out, (uint64_t)since * 1000, 8);
    put_text(out, "X.509");
    put(out, der.len, 4);
    aq_buf_add(out, der.data, der.len);
    aq_keystore_seal(out);
    return 0;
}
