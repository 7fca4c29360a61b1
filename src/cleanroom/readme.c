/* Is a README more than a file of that name? Counts what a person wrote for a reader. Reads hostile
 * bytes: runs in the jailed job "gate". Linear in its length. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "cleanroom/gate.h"

enum { LINE = 400 }; /* bytes of a line that are looked at for placeholders */

static const char *const placeholders[] = {
#define AQ_PLACEHOLDER(text) text,
#include "cleanroom/l0_placeholders.def"
#undef AQ_PLACEHOLDER
};

static bool is_text(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;

    while (p < end) {
        int32_t c = aq_utf8_next(&p, end);
        if (c < 0 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f'))
            return false;
    }
    return true;
}

static bool holds_placeholder(const char *line, size_t len)
{
    char copy[LINE + 1];

    len = len < LINE ? len : LINE;
    memcpy(copy, line, len);
    copy[len] = 0;
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
        if (strcasestr(copy, placeholders[i]))
            return true;
    return false;
}

/* Letters of a line; a character of a script without spaces says more than one Latin letter. */
static uint32_t letters(const char *line, size_t len)
{
    const unsigned char *p = (const unsigned char *)line, *end = p + len;
    uint32_t n = 0;

    while (p < end) {
        int32_t c = aq_utf8_next(&p, end);
        if (c >= 0x2e80)
            n += 3;
        else if (c >= 0xc0 || (c > 0 && c < 0x80 && isalpha(c)))
            n++;
    }
    return n;
}

static bool underline(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (line[i] != '=' && line[i] != '-')
            return false;
    return len >= 3;
}

/* State of the walk over the lines. */
typedef struct walk {
    bool fenced, front; /* inside a code block, inside front matter */
    uint32_t last;      /* letters of the line before: it may turn out to be a title */
} walk;

static void one_line(walk *w, const char *line, size_t len, uint32_t number, aq_readme_facts *ret)
{
    while (len && isspace((unsigned char)line[len - 1]))
        len--;
    if (number == 1 && len == 3 && memcmp(line, "---", 3) == 0) {
        w->front = true;
        return;
    }
    if (w->front) {
        w->front = !(len == 3 && memcmp(line, "---", 3) == 0);
        return;
    }
    while (len && isspace((unsigned char)*line))
        line++, len--;
    if (len >= 3 && (memcmp(line, "```", 3) == 0 || memcmp(line, "~~~", 3) == 0)) {
        w->fenced = !w->fenced;
        w->last = 0;
        return;
    }
    if (underline(line, len) && w->last) { /* the line before was a title */
        ret->prose -= w->last;
        ret->titles++;
        w->last = 0;
        return;
    }
    w->last = 0;
    if (w->fenced || len == 0)
        return;
    if (*line == '#') {
        ret->titles++;
    } else if (holds_placeholder(line, len)) {
        ret->left_over = ret->left_over ? ret->left_over : number;
    } else {
        w->last = letters(line, len);
        ret->prose += w->last;
    }
}

/* Letters and digits only, in lower case: names are compared without separators. */
static void squeeze(const char *text, size_t len, aq_buf *out)
{
    aq_buf_reserve(out, len + 1);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (isalnum(c) || c >= 0x80)
            aq_buf_addc(out, (char)tolower(c));
    }
    aq_buf_str(out);
}

static bool names(const char *text, size_t len, const char *name)
{
    aq_auto_buf all = {0}, wanted = {0};

    if (!name)
        return false;
    squeeze(name, strlen(name), &wanted);
    squeeze(text, len, &all);
    return wanted.len > 0 && strstr(aq_buf_str(&all), aq_buf_str(&wanted));
}

void aq_readme_look(const char *text, size_t len, const char *name, aq_readme_facts *ret)
{
    uint32_t number = 1;
    walk w = {0};

    *ret = (aq_readme_facts){.text = is_text(text, len)};
    if (!ret->text)
        return;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3, len -= 3;
    for (size_t at = 0; at < len; number++) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - (text + at)) : len - at;

        one_line(&w, text + at, n, number, ret);
        at += n + 1;
    }
    ret->names_package = names(text, len, name);
}
