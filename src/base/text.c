/* Text from strangers: decoding and quoting; see text.h. Folding and likeness are in likeness.c. */
#include "base/text.h"

#include <errno.h>
#include <string.h>

int32_t aq_utf8_next(const unsigned char **p, const unsigned char *end)
{
    const unsigned char *s = *p;
    static const int32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    int32_t code;
    int len;

    *p = s + 1;
    if (s[0] < 0x80)
        return s[0];
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        len = 2, code = s[0] & 0x1f;
    else if (s[0] >= 0xe0 && s[0] <= 0xef)
        len = 3, code = s[0] & 0x0f;
    else if (s[0] >= 0xf0 && s[0] <= 0xf4)
        len = 4, code = s[0] & 0x07;
    else
        return -1;
    if (end - s < len)
        return -1;
    for (int i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code < lowest[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return -1;
    *p = s + len;
    return code;
}

void aq_utf8_add(aq_buf *out, uint32_t code)
{
    char b[4];
    size_t n = 0;

    if (code < 0x80) {
        b[n++] = (char)code;
    } else if (code < 0x800) {
        b[n++] = (char)(0xc0 | code >> 6);
        b[n++] = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        b[n++] = (char)(0xe0 | code >> 12);
        b[n++] = (char)(0x80 | (code >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (code & 0x3f));
    } else {
        b[n++] = (char)(0xf0 | code >> 18);
        b[n++] = (char)(0x80 | (code >> 12 & 0x3f));
        b[n++] = (char)(0x80 | (code >> 6 & 0x3f));
        b[n++] = (char)(0x80 | (code & 0x3f));
    }
    aq_buf_add(out, b, n);
}

bool aq_utf8_valid(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;

    while (p < end)
        if (aq_utf8_next(&p, end) < 0)
            return false;
    return true;
}

bool aq_text_hidden(int32_t c)
{
    return c == 0xad || c == 0x34f || c == 0x61c || c == 0x115f || c == 0x1160 ||
           (c >= 0x17b4 && c <= 0x17b5) || (c >= 0x180b && c <= 0x180f) ||
           (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x3164 || (c >= 0xfe00 && c <= 0xfe0e) ||
           c == 0xfeff || c == 0xffa0 || (c >= 0xfff0 && c <= 0xfffb) ||
           (c >= 0x1bca0 && c <= 0x1bca3) || (c >= 0x1d173 && c <= 0x1d17a) ||
           (c >= 0xe0000 && c <= 0xe0fff);
}

static bool plain(int32_t c)
{
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0) && c != '\\' && !aq_text_hidden(c);
}

/* Quotes one character at *p; the unit that is never cut in two. */
static void quote_one(aq_buf *out, const unsigned char **p, const unsigned char *end)
{
    const unsigned char *from = *p;
    int32_t c = aq_utf8_next(p, end);

    if (c == '\\')
        aq_buf_adds(out, "\\\\");
    else if (c >= 0 && plain(c))
        aq_buf_add(out, from, (size_t)(*p - from));
    else
        for (; from < *p; from++)
            aq_buf_addf(out, "\\x%02x", *from);
}

void aq_text_quote(aq_buf *out, const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;

    while (p < end)
        quote_one(out, &p, end);
    aq_buf_str(out);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int aq_text_unquote(aq_buf *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (s[i] != '\\') {
            aq_buf_addc(out, s[i]);
        } else if (i + 1 < len && s[i + 1] == '\\') {
            aq_buf_addc(out, '\\');
            i++;
        } else if (i + 3 < len && s[i + 1] == 'x' && hex_digit(s[i + 2]) >= 0 &&
                   hex_digit(s[i + 3]) >= 0) {
            aq_buf_addc(out, (char)(hex_digit(s[i + 2]) << 4 | hex_digit(s[i + 3])));
            i += 3;
        } else {
            return -EINVAL;
        }
    }
    aq_buf_str(out);
    return 0;
}

void aq_text_quote_max(aq_buf *out, const char *s, size_t len, size_t max)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;
    size_t start = out->len;

    while (p < end) {
        size_t before = out->len;
        quote_one(out, &p, end);
        if (out->len - start > max) {
            out->len = before;
            aq_buf_adds(out, "…");
            break;
        }
    }
    aq_buf_str(out);
}

const char *aq_text_quoted(aq_arena *a, const char *s, size_t len, size_t max)
{
    aq_auto_buf b = {0};

    aq_text_quote_max(&b, s, len, max);
    return aq_arena_strndup(a, aq_buf_str(&b), b.len);
}

void aq_text_printable_max(aq_buf *out, const char *s, size_t max)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + strlen(s);
    size_t start = out->len;

    while (p < end) {
        const unsigned char *from = p;
        int32_t c = aq_utf8_next(&p, end);
        if (out->len - start + 4 > max) {
            aq_buf_adds(out, "…");
            break;
        }
        if (c == '\\' || (c >= 0 && plain(c)))
            aq_buf_add(out, from, (size_t)(p - from));
        else
            aq_utf8_add(out, 0xfffd);
    }
    aq_buf_str(out);
}

const char *aq_text_printable(aq_arena *a, const char *s, size_t max)
{
    aq_auto_buf b = {0};

    aq_text_printable_max(&b, s, max);
    return aq_arena_strndup(a, aq_buf_str(&b), b.len);
}
