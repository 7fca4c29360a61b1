/* Tells secrets from everything else that looks technical, so that an excerpt shows the evidence
 * and not the key: addresses, paths, options, names and digests are evidence.
 *
 * A secret is a token of a known sort (by its first letters), one that looks random (small letters,
 * capitals and digits in turn), or a long hexadecimal value that its own line calls a key. */
#include <string.h>
#include <strings.h>

#include "cleanroom/survey_core.h"

enum {
    SORT_REST = 16, /* characters behind the first letters of a known sort */
    RANDOM = 20,    /* characters from which a mixture of three classes could be a secret */
    RANDOM_TWO = 24,
    HEX = 32,
    KEPT = 4, /* characters that stay */
};

typedef enum char_class { OTHER, LOWER, UPPER, DIGIT, JOINER } char_class;

static char_class class_of(char c)
{
    if (c >= 'a' && c <= 'z')
        return LOWER;
    if (c >= 'A' && c <= 'Z')
        return UPPER;
    if (c >= '0' && c <= '9')
        return DIGIT;
    return c == '_' || c == '-' || c == '+' || c == '/' ? JOINER : OTHER;
}

static bool alnum(char c)
{
    char_class k = class_of(c);

    return k == LOWER || k == UPPER || k == DIGIT;
}

/* What a token is made of. */
typedef struct makeup {
    size_t len, lower, upper, digits, joiners, turns, hex;
} makeup;

/* A turn is a change of class that no name has: the small letters behind a capital are none. */
static makeup look_at(const char *s, size_t len)
{
    makeup m = {.len = len};

    for (size_t i = 0; i < len; i++) {
        char_class k = class_of(s[i]), before = i ? class_of(s[i - 1]) : JOINER;
        m.lower += k == LOWER;
        m.upper += k == UPPER;
        m.digits += k == DIGIT;
        m.joiners += k == JOINER;
        m.hex += k == DIGIT || (s[i] >= 'a' && s[i] <= 'f') || (s[i] >= 'A' && s[i] <= 'F');
        m.turns +=
            k != before && before != JOINER && k != JOINER && !(before == UPPER && k == LOWER);
    }
    return m;
}

/* A token of a known sort at `s`: its length, or 0. */
static size_t known_sort(const char *s, size_t len)
{
    static const char *const sorts[] = {
        "AKIA",     "ASIA",     "ghp_",     "gho_",
        "ghu_",     "ghs_",     "ghr_",     "github_pat_",
        "sk-",      "sk_live_", "sk_test_", "rk_live_",
        "pk_live_", "xoxa-",    "xoxb-",    "xoxe-",
        "xoxp-",    "xoxr-",    "xoxs-",    "xapp-",
        "eyJ",      "AIza",     "glpat-",   "npm_",
        "hf_",      "SG.",      "ya29.",    "dop_v1_",
        "pypi-",    "shpat_",   "whsec_",   "AGE-SECRET-KEY-",
    };

    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        size_t n = strlen(sorts[i]), end = n, digits = 0;
        if (len < n || memcmp(s, sorts[i], n) != 0)
            continue;
        while (end < len && (alnum(s[end]) || s[end] == '_' || s[end] == '-' || s[end] == '+' ||
                             ((s[end] == '.' || s[end] == '/' || s[end] == '=') && end + 1 < len &&
                              alnum(s[end + 1])))) {
            digits += class_of(s[end]) == DIGIT;
            end++;
        }
        if (end - n >= SORT_REST && digits >= 3)
            return end;
    }
    return 0;
}

/* Does the text just before a value call it a key? */
static bool called_secret(const char *s, size_t at)
{
    static const char *const words[] = {"key", "token", "secret", "passw", "auth", "bearer"};
    size_t from = at > 24 ? at - 24 : 0;

    for (size_t i = from; i < at; i++)
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            if (strlen(words[w]) <= at - i && strncasecmp(s + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

/* sha256-…: a digest in base64, as lock files have it. */
static bool digest_named(const char *s, size_t len)
{
    static const char *const names[] = {"sha1-", "sha256-", "sha384-", "sha512-"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (len > strlen(names[i]) && strncasecmp(s, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool looks_random(const char *s, size_t from, size_t to)
{
    makeup m = look_at(s + from, to - from);

    if (m.len >= HEX && m.hex == m.len) /* a digest, unless it is called a key */
        return m.digits > 0 && m.digits < m.len && called_secret(s, from);
    if (m.len < RANDOM || m.turns * 10 < m.len * 3 || m.digits == 0)
        return false;
    if (m.lower > 0 && m.upper > 0)
        return m.joiners * 8 <= m.len;
    return m.len >= RANDOM_TWO && m.joiners == 0;
}

/* One token from s[from]: masked when it is a secret. In an address only what is surely one counts:
 * a token of a known sort, or the password before a host. Returns where the token ends. */
static size_t mask_token(aq_buf *out, const char *s, size_t from, size_t len, bool address)
{
    size_t to = from, sort = known_sort(s + from, len - from);
    bool secret = sort > 0;

    while (to < len && class_of(s[to]) != OTHER)
        to++;
    if (!secret && digest_named(s + from, to - from)) {
        aq_buf_add(out, s + from, to - from);
        return to;
    }
    if (!address || (to < len && s[to] == '@'))
        secret = secret || looks_random(s, from, to);
    if (!secret) { /* one may begin inside: path/ghp_… */
        while (from < to && class_of(s[from]) != JOINER)
            aq_buf_addc(out, s[from++]);
        while (from < to && class_of(s[from]) == JOINER)
            aq_buf_addc(out, s[from++]);
        return from;
    }
    if (sort > to - from)
        to = from + sort;
    aq_buf_add(out, s + from, KEPT);
    aq_buf_adds(out, "…");
    while (to < len && s[to] == '=')
        to++;
    return to;
}

void aq_survey_mask(aq_buf *out, const char *s, size_t len)
{
    bool address = false;
    size_t i = 0;

    while (i < len) {
        if (len - i >= 3 && memcmp(s + i, "://", 3) == 0) {
            address = true;
            aq_buf_add(out, s + i, 3);
            i += 3;
        } else if (class_of(s[i]) == OTHER) {
            address = address && !strchr(" \t\"'`<>)=", s[i]);
            aq_buf_addc(out, s[i++]);
        } else {
            i = mask_token(out, s, i, len, address);
        }
    }
}
