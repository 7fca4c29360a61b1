/* DER and PEM, as far as keys and certificates need them. */
#include "decoy/internal.h"

void aq_der_put(aq_buf *out, uint8_t tag, const void *data, size_t len)
{
    aq_buf_addc(out, (char)tag);
    if (len < 128) {
        aq_buf_addc(out, (char)len);
    } else if (len < 256) {
        aq_buf_addc(out, (char)0x81);
        aq_buf_addc(out, (char)len);
    } else {
        aq_buf_addc(out, (char)0x82);
        aq_buf_addc(out, (char)(len >> 8));
        aq_buf_addc(out, (char)(len & 255));
    }
    aq_buf_add(out, data, len);
}

void aq_der_wrap(aq_buf *out, uint8_t tag, size_t from)
{
    aq_auto_buf inner = {0};

    aq_buf_add(&inner, out->data + from, out->len - from);
    out->len = from;
    aq_der_put(out, tag, inner.data, inner.len);
}

void aq_der_pem(aq_buf *out, const char *what, const aq_buf *der)
{
    aq_buf_addf(out, "-----BEGIN %s-----\n", what);
    aq_base64_lines(der->data, der->len, 64, out);
    aq_buf_addf(out, "-----END %s-----\n", what);
}
