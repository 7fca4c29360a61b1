/* The shape of a piece of text, and the excerpt of it that a reviewer may see. */
#include <string.h>

#include "base/text.h"
#include "cleanroom/survey_core.h"
#include "cleanroom/survey_parts.h"

enum { LETTER = 1, DIGIT = 2 };

static const uint8_t sorts[256] = {
    ['a' ... 'z'] = LETTER,   ['A' ... 'Z'] = LETTER, ['_'] = LETTER,
    [0x80 ... 0xff] = LETTER, ['0' ... '9'] = DIGIT,
};

static bool letter(unsigned char c)
{
    return sorts[c] == LETTER;
}

static bool digit(unsigned char c)
{
    return sorts[c] == DIGIT;
}

static uint64_t mix(uint64_t h, unsigned char c)
{
    return (h ^ c) * 0x100000001b3ull;
}

/* An apostrophe between letters belongs to a word, not to a string. */
static size_t skip_word(const unsigned char *data, size_t i, size_t len)
{
    while (i < len && (sorts[data[i]] || (data[i] == '\'' && i + 1 < len && letter(data[i + 1]))))
        i++;
    return i;
}

static size_t skip_string(const unsigned char *data, size_t i, size_t len)
{
    unsigned char quote = data[i++];

    while (i < len && data[i] != quote)
        i += data[i] == '\\' && i + 1 < len ? 2 : 1;
    return i < len ? i + 1 : len;
}

uint64_t aq_survey_shape(const unsigned char *data, size_t len, size_t *solid)
{
    uint64_t h = 0xcbf29ce484222325ull;
    unsigned char last = 0;
    size_t i = 0;

    *solid = 0;
    while (i < len) {
        unsigned char c = data[i], token = c;
        size_t from = i;
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            i++;
            continue; /* spacing is no shape */
        }
        if (letter(c) || digit(c)) {
            token = letter(c) ? 'a' : '0';
            i = skip_word(data, i, len);
        } else if (c == '"' || c == '\'' || c == '`') {
            token = '"';
            i = skip_string(data, i, len);
        } else {
            i++;
        }
        *solid += i - from;
        if (token == 'a' && last == 'a')
            continue; /* a run of words is one */
        h = mix(h, token);
        last = token;
    }
    return h ^ (h >> 29);
}

/* What ends up in the open must not let anybody in. survey_mask.c tells secrets from names. */
static bool token_char(unsigned char c)
{
    return (c < 0x80 && letter(c)) || digit(c) || c == '+' || c == '-' || c == '=';
}

static bool blank(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A token that crosses the border of the piece would lose the part by which it is known as a
 * secret; it is left out. */
static void shrink(const unsigned char *data, size_t len, size_t *from, size_t *to, size_t at)
{
    size_t start = *from, end = *to;

    if (start > 0 && token_char(data[start - 1]))
        while (start < end && start < at && token_char(data[start]))
            start++;
    if (end < len && token_char(data[end]))
        while (end > start && end > at && token_char(data[end - 1]))
            end--;
    while (start < end && blank(data[start]))
        start++;
    while (end > start && blank(data[end - 1]))
        end--;
    *from = start;
    *to = end;
}

/* The text as it is in the file; a character that is not seen, or is none, as \xHH a byte. */
static const char *shown(aq_arena *a, bool behind, const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;
    aq_auto_buf b = {0};

    aq_buf_adds(&b, behind ? "…" : "");
    while (p < end) {
        const unsigned char *from = p;
        size_t before = b.len;
        int32_t c = aq_utf8_next(&p, end);
        if (c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0) && !aq_text_hidden(c))
            aq_buf_add(&b, from, (size_t)(p - from));
        else
            for (; from < p; from++)
                aq_buf_addf(&b, "\\x%02x", *from);
        if (b.len > AQ_LOOK_TEXT - strlen("…")) {
            b.len = before;
            aq_buf_adds(&b, "…");
            break;
        }
    }
    return aq_arena_strdup(a, aq_buf_str(&b));
}

const char *aq_survey_excerpt(aq_arena *a, const unsigned char *data, size_t len, size_t from,
                              size_t to, size_t at)
{
    const char *text = (const char *)data;
    aq_auto_buf b = {0};
    size_t ahead;

    shrink(data, len, &from, &to, at);
    /* Where the reason stands far to the right, a third of the room goes to what precedes it. */
    if (to - from > AQ_LOOK_TEXT && at > from + AQ_LOOK_TEXT * 2 / 3) {
        size_t start = at - AQ_LOOK_TEXT / 3;
        while (start < at && token_char(data[start - 1]) && token_char(data[start]))
            start++;
        while (start < at && (data[start] & 0xc0) == 0x80)
            start++;
        from = start;
        aq_buf_adds(&b, "…");
    }
    ahead = b.len;
    aq_survey_mask(&b, text + from, to - from);
    return shown(a, ahead > 0, b.data ? b.data + ahead : "", b.len - ahead);
}
