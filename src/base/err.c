/* Errors that a user can act on; see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Names of files and words of a command line are a stranger's bytes, and the text may go to a
 * terminal: what would command it, or hide or reorder words, becomes a question mark. */
static void make_printable(char *text)
{
    unsigned char *p = (unsigned char *)text, *end = p + strlen(text);

    while (p < end) {
        const unsigned char *next = p;
        int32_t c = aq_utf8_next(&next, end);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c > 0xa0 && aq_text_hidden(c)))
            memset(p, '?', (size_t)(next - p));
        p += next - p;
    }
}

int aq_fail(aq_err *err, int code, const char *fmt, ...)
{
    if (err) {
        va_list ap;
        err->code = code;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        make_printable(err->text);
    }
    return code;
}

int aq_fail_errno(aq_err *err, const char *fmt, ...)
{
    int saved = errno ? errno : EIO;

    if (err) {
        va_list ap;
        size_t n;

        err->code = -saved;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(saved));
        make_printable(err->text);
    }
    return -saved;
}

int aq_err_within(aq_err *err, const char *fmt, ...)
{
    char inner[sizeof err->text];
    va_list ap;
    size_t n;

    if (!err)
        return -EIO;
    memcpy(inner, err->text, sizeof inner);
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n, ": %s", inner);
    make_printable(err->text);
    return err->code ? err->code : -EIO;
}

void aq_panic(const char *fmt, ...)
{
    va_list ap;

    fputs("aquarium: internal error: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(70);
}
