/* The capability declaration: patterns to their canonical form; see capability.h. Each group has
 * one function that turns what people write into the one spelling, or says why it cannot. */
#include "model/capability.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <idn2.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"

#define BLANKS " \t\r\n"

typedef int canonical(aq_buf *out, const char *s, aq_err *err);

static canonical path_pattern, host_pattern, shell_pattern, name_pattern, hook_pattern;

static const struct {
    const char *name;
} table[AQ_CAP_COUNT] = {
#define AQ_CAPABILITY(id, name, what) [AQ_CAP_##id] = {name},
#include "model/capabilities.def"
#undef AQ_CAPABILITY
};

static canonical *const forms[AQ_CAP_COUNT] = {
    [AQ_CAP_FS_READ] = path_pattern, [AQ_CAP_FS_WRITE] = path_pattern,
    [AQ_CAP_NETWORK] = host_pattern, [AQ_CAP_SHELL] = shell_pattern,
    [AQ_CAP_SECRETS] = name_pattern, [AQ_CAP_SUBAGENTS] = name_pattern,
    [AQ_CAP_MCP] = name_pattern,     [AQ_CAP_HOOKS] = hook_pattern,
    [AQ_CAP_CLOCK] = name_pattern,   [AQ_CAP_CRYPTO] = name_pattern,
};

const char *aq_capability_name(aq_capability c)
{
    return table[c].name;
}

/* "$HOME", "${HOME}" and "~" are one place; another variable keeps its name, in braces. */
static int path_root(aq_buf *out, const char **s, aq_err *err)
{
    const char *p = *s, *name = p + 1 + (p[1] == '{');
    size_t len;

    if (*p == '~') {
        if (p[1] && p[1] != '/')
            return aq_fail(err, -EINVAL, "names the home of another user");
        aq_buf_addc(out, '~');
        *s = p + 1;
    } else if (*p == '$') {
        len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        *s = name + len;
        if (len == 0 || (p[1] == '{' && *(*s)++ != '}') || (**s && **s != '/'))
            return aq_fail(err, -EINVAL, "has a $ that starts no plain variable");
        if (len == 4 && memcmp(name, "HOME", 4) == 0)
            aq_buf_addc(out, '~');
        else
            aq_buf_addf(out, "${%.*s}", (int)len, name);
    } else if (*p == '/') {
        aq_buf_addc(out, '/');
    }
    return 0;
}

/* Parts are joined by one slash; "." goes, ".." is refused, two stars after two stars go. A slash
 * at the end means the folder and all that is in it, which is spelled with two stars. */
static int path_pattern(aq_buf *out, const char *s, aq_err *err)
{
    size_t root, last = SIZE_MAX;
    bool tree = true; /* nothing but a root, or a slash at the end */
    int r;

    if (strchr(s, '\\'))
        return aq_fail(err, -EINVAL, "has a backslash");
    if (strstr(s, "://"))
        return aq_fail(err, -EINVAL, "is a URL, not a path");
    r = path_root(out, &s, err);
    if (r < 0)
        return r;
    root = out->len;
    while (*s) {
        size_t len = strcspn(s, "/");
        bool dot = len == 1 && *s == '.';
        if (len == 2 && s[0] == '.' && s[1] == '.')
            return aq_fail(err, -EINVAL, "has a .. part");
        if (len == 2 && last != SIZE_MAX && strcmp(out->data + last, "**") == 0 &&
            memcmp(s, "**", 2) == 0)
            dot = true; /* says nothing new */
        if (len > 0 && !dot) {
            if (out->len == 0 && (*s == '~' || *s == '$')) /* "./~" is not the home folder */
                return aq_fail(err, -EINVAL, "has a ~ or $ that is not at its start");
            if (out->len > root || (root > 0 && out->data[root - 1] != '/'))
                aq_buf_addc(out, '/');
            last = out->len;
            aq_buf_add(out, s, len);
        }
        s += len;
        tree = *s == '/' || (last == SIZE_MAX);
        s += *s == '/';
    }
    if (tree && (last == SIZE_MAX || strcmp(out->data + last, "**") != 0)) {
        if (out->len > 0 && out->data[out->len - 1] != '/')
            aq_buf_addc(out, '/');
        aq_buf_adds(out, "**");
    }
    return 0;
}

/* One DNS name in lower-case ASCII; "*." was taken off before. */
static int add_name(aq_buf *out, const char *name, aq_err *err)
{
    size_t len = strlen(name), at = 0;
    const char *last = strrchr(name, '.');
    struct in_addr address;

    last = last ? last + 1 : name;
    if (len == 0 || len > 253)
        return aq_fail(err, -EINVAL, "has a host name of %zu bytes", len);
    /* 0x7f.1, 2130706433 and 010.0.0.1 are addresses to some programs and names to others. */
    if (isdigit((unsigned char)*last) &&
        (last[strspn(last, "0123456789")] == '\0' || strncmp(last, "0x", 2) == 0) &&
        inet_pton(AF_INET, name, &address) != 1)
        return aq_fail(err, -EINVAL, "is a number that is no dotted address");
    while (at <= len) {
        size_t part = strcspn(name + at, ".");
        if (part == 0 || part > 63 || name[at] == '-' || name[at + part - 1] == '-' ||
            strspn(name + at, "abcdefghijklmnopqrstuvwxyz0123456789-_") < part)
            return aq_fail(err, -EINVAL, "is no host name");
        at += part + 1;
    }
    aq_buf_add(out, name, len);
    return 0;
}

static int add_host(aq_buf *out, const char *host, size_t len, aq_err *err)
{
    aq_auto_buf copy = {0};
    aq_auto_free char *ascii = NULL;
    struct in6_addr six;
    char text[INET6_ADDRSTRLEN];

    if (len && host[len - 1] == '.')
        len--;
    aq_buf_add(&copy, host, len);
    if (inet_pton(AF_INET6, copy.data, &six) == 1) {
        aq_buf_addf(out, "[%s]", inet_ntop(AF_INET6, &six, text, sizeof text));
        return 0;
    }
    if (copy.len >= 2 && memcmp(copy.data, "*.", 2) == 0) {
        aq_buf_adds(out, "*.");
        memmove(copy.data, copy.data + 2, copy.len - 1);
    }
    if (strchr(copy.data, '*'))
        return aq_fail(err, -EINVAL, "has a * that is not the first label");
    if (idn2_to_ascii_8z(copy.data, &ascii, IDN2_NONTRANSITIONAL | IDN2_NFC_INPUT) != IDN2_OK) {
        /* Names with an underscore or of plain ASCII that IDNA does not like still are names. */
        for (const char *p = copy.data; *p; p++)
            if ((unsigned char)*p >= 0x80)
                return aq_fail(err, -EINVAL, "is no international host name");
        ascii = strdup(copy.data);
        if (!ascii)
            aq_panic("out of memory");
    }
    for (char *p = ascii; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return add_name(out, ascii, err);
}

/* Reads ":443" at `s` up to its end; "" and ":*" mean any. */
static int read_port(const char *s, long *ret, aq_err *err)
{
    char *end;

    if (*s == '\0' || strcmp(s, ":*") == 0)
        return 0;
    if (*s != ':' || !isdigit((unsigned char)s[1]) || strlen(s) > 6)
        return aq_fail(err, -EINVAL, *s == '/' ? "has a path" : "has a port that is no number");
    *ret = strtol(s + 1, &end, 10);
    if (*end || *ret < 1 || *ret > 65535)
        return aq_fail(err, -EINVAL, "has a port that is no number");
    return 0;
}

/* "https://host/path" says host and port; the path is not part of the declaration. */
static int strip_scheme(aq_buf *copy, long *port, aq_err *err)
{
    static const struct {
        const char *scheme;
        long port;
    } schemes[] = {{"https://", 443}, {"http://", 80}, {"wss://", 443}, {"ws://", 80}};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i].scheme);
        if (strncasecmp(copy->data, schemes[i].scheme, len) != 0)
            continue;
        *port = schemes[i].port;
        copy->len -= len;
        memmove(copy->data, copy->data + len, copy->len + 1);
        copy->len = strcspn(copy->data, "/?#");
        copy->data[copy->len] = '\0';
        break;
    }
    if (strchr(copy->data, '@'))
        return aq_fail(err, -EINVAL, "has a user name");
    return strstr(copy->data, "://") ? aq_fail(err, -EINVAL, "has a scheme that is not HTTP") : 0;
}

static int host_pattern(aq_buf *out, const char *s, aq_err *err)
{
    aq_auto_buf copy = {0};
    const char *rest, *host;
    struct in6_addr six;
    long port = 0;
    size_t len;
    int r;

    aq_buf_adds(&copy, s);
    r = strip_scheme(&copy, &port, err);
    if (r < 0)
        return r;
    host = copy.data;
    len = strcspn(host, ":/");
    rest = host + len;
    if (*host == '[') {
        aq_auto_buf inner = {0};
        len = strcspn(++host, "]");
        rest = host + len + (host[len] == ']');
        aq_buf_add(&inner, host, len);
        if (host[len] != ']' || inet_pton(AF_INET6, aq_buf_str(&inner), &six) != 1)
            return aq_fail(err, -EINVAL, "is no host name");
    } else if (inet_pton(AF_INET6, host, &six) == 1) {
        len = strlen(host);
        rest = host + len;
    }
    r = read_port(rest, &port, err);
    if (r == 0 && len == 1 && *host == '*')
        aq_buf_addc(out, '*');
    else if (r == 0)
        r = add_host(out, host, len, err);
    if (r == 0 && port)
        aq_buf_addf(out, ":%ld", port);
    return r;
}

/* White space outside quotes is one blank; "git:*", the agents' way to say "git and any arguments",
 * is "git *". */
static int shell_pattern(aq_buf *out, const char *s, aq_err *err)
{
    char quote = '\0';
    size_t len = strlen(s);
    bool prefix = false;

    (void)err;
    for (; len > 2 && memcmp(s + len - 2, ":*", 2) == 0; len -= 2)
        prefix = true;
    for (size_t i = 0; i < len; i++) {
        bool blank = s[i] == ' ' || s[i] == '\t';
        if (quote == s[i])
            quote = '\0';
        else if (!quote && (s[i] == '"' || s[i] == '\''))
            quote = s[i];
        if (blank && !quote && out->len && out->data[out->len - 1] == ' ')
            continue;
        aq_buf_addc(out, blank && !quote ? ' ' : s[i]);
    }
    if (prefix && !(out->len && out->data[out->len - 1] == '*'))
        aq_buf_adds(out, out->len && out->data[out->len - 1] == ' ' ? "*" : " *");
    return 0;
}

static int name_pattern(aq_buf *out, const char *s, aq_err *err)
{
    (void)err;
    aq_buf_adds(out, s);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "Write|Edit" and "Edit|Write" match the same tools. What is more than names is a regular
 * expression, and stays as written. */
static void add_matcher(aq_buf *out, char *matcher)
{
    const char *words[AQ_CAP_PATTERN];
    size_t count = 0, len = strlen(matcher);

    if (len == 0 || strcmp(matcher, "*") == 0 || strcmp(matcher, ".*") == 0)
        return; /* anything: the event alone says that */
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)matcher[i]) && !strchr("_-|", matcher[i])) {
            aq_buf_addf(out, "(%s)", matcher);
            return;
        }
    for (char *rest = matcher, *word; (word = strsep(&rest, "|"));)
        words[count++] = word;
    qsort(words, count, sizeof *words, by_bytes);
    if (!*words[0])
        return; /* no name at all is a choice, so anything */
    aq_buf_addc(out, '(');
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(words[i - 1], words[i]) != 0)
            aq_buf_addf(out, "%s%s", i ? "|" : "", words[i]);
    aq_buf_addc(out, ')');
}

/* "EVENT" or "EVENT(MATCHER)". */
static int hook_pattern(aq_buf *out, const char *s, aq_err *err)
{
    size_t len = strlen(s), event = strcspn(s, "(");
    aq_auto_buf matcher = {0};

    if (event == len || event == 0 || s[len - 1] != ')')
        return name_pattern(out, s, err);
    aq_buf_add(out, s, event);
    aq_buf_add(&matcher, s + event + 1, len - event - 2);
    aq_buf_str(&matcher);
    add_matcher(out, matcher.data);
    return 0;
}

static int check_text(const char *s, aq_capability group, aq_err *err)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + strlen(s);

    if (p == end)
        return aq_fail(err, -EINVAL, "is empty");
    if (end - p > AQ_CAP_PATTERN)
        return aq_fail(err, -EINVAL, "is longer than %d bytes", AQ_CAP_PATTERN);
    while (p < end) {
        int32_t c = aq_utf8_next(&p, end);
        if (c < 0)
            return aq_fail(err, -EINVAL, "is not valid UTF-8");
        if (c == '\t' && group == AQ_CAP_SHELL)
            continue; /* becomes a blank */
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || aq_text_hidden(c))
            return aq_fail(err, -EINVAL, "has a control or hidden character");
    }
    return 0;
}

static void append(aq_cap_group *g, aq_arena *a, const char *pattern)
{
    /* Grown at powers of two from 8 on, so the count tells the room that is left. */
    if (g->count == 0 || (g->count >= 8 && (g->count & (g->count - 1)) == 0)) {
        size_t cap = g->count ? 2 * g->count : 8;
        const char **more = aq_arena_alloc(a, cap * sizeof *more);
        if (g->count)
            memcpy(more, g->patterns, g->count * sizeof *more);
        g->patterns = more;
    }
    g->patterns[g->count++] = pattern;
}

int aq_capabilities_add(aq_capabilities *c, aq_arena *a, aq_capability group, const char *pattern,
                        aq_err *err)
{
    aq_cap_group *g = &c->group[group];
    aq_auto_buf trimmed = {0}, out = {0};
    size_t len;
    int r;

    pattern += strspn(pattern, BLANKS);
    len = strlen(pattern);
    while (len && strchr(BLANKS, pattern[len - 1]))
        len--;
    aq_buf_add(&trimmed, pattern, len);
    r = check_text(aq_buf_str(&trimmed), group, err);
    if (r == 0)
        r = forms[group](&out, trimmed.data, err);
    if (r == 0 &&
        (out.len == 0 || strchr(BLANKS, *out.data) || strchr(BLANKS, out.data[out.len - 1])))
        r = aq_fail(err, -EINVAL,
                    "has a blank at its start or end, behind a part that says nothing");
    if (r == 0 && out.len > AQ_CAP_PATTERN)
        r = aq_fail(err, -EINVAL, "is longer than %d bytes", AQ_CAP_PATTERN);
    if (r == 0 && g->count == AQ_CAP_PATTERNS)
        r = aq_fail(err, -EINVAL, "is one of more than %d patterns", AQ_CAP_PATTERNS);
    if (r < 0)
        return r;
    c->present = g->present = true;
    append(g, a, aq_arena_strndup(a, aq_buf_str(&out), out.len));
    return 0;
}

void aq_capabilities_none(aq_capabilities *c, aq_capability group)
{
    c->present = c->group[group].present = true;
}

void aq_capabilities_add_or_any(aq_capabilities *c, aq_arena *a, aq_capability group,
                                const char *pattern)
{
    aq_cap_group *g = &c->group[group];
    aq_err ignored;

    for (size_t i = 0; i < g->count; i++)
        if (strcmp(g->patterns[i], "*") == 0 || strcmp(g->patterns[i], pattern) == 0)
            return;
    if (aq_capabilities_add(c, a, group, pattern, &ignored) == 0)
        return;
    g->count = 0;
    c->present = g->present = true;
    append(g, a, group <= AQ_CAP_FS_WRITE ? "/**" : "*");
}

void aq_capabilities_merge(aq_capabilities *c, aq_arena *a, const aq_capabilities *from)
{
    for (size_t g = 0; g < AQ_CAP_COUNT; g++)
        for (size_t i = 0; i < from->group[g].count; i++)
            aq_capabilities_add_or_any(c, a, (aq_capability)g, from->group[g].patterns[i]);
}

/* Is this a hook with a matcher, and the same event without one among the first `count`? */
static bool covered(const aq_cap_group *g, size_t count, const char *pattern)
{
    size_t event = strcspn(pattern, "(");

    for (size_t i = 0; pattern[event] && i < count; i++)
        if (strlen(g->patterns[i]) == event && memcmp(g->patterns[i], pattern, event) == 0)
            return true;
    return false;
}

void aq_capabilities_seal(aq_capabilities *c)
{
    for (size_t i = 0; i < AQ_CAP_COUNT; i++) {
        aq_cap_group *g = &c->group[i];
        size_t kept = 0;
        bool any = false;
        if (g->count)
            qsort(g->patterns, g->count, sizeof *g->patterns, by_bytes);
        for (size_t j = 0; j < g->count; j++) {
            any = any || strcmp(g->patterns[j], "*") == 0;
            if ((kept == 0 || strcmp(g->patterns[kept - 1], g->patterns[j]) != 0) &&
                !(i == AQ_CAP_HOOKS && covered(g, kept, g->patterns[j])))
                g->patterns[kept++] = g->patterns[j];
        }
        g->count = kept;
        if (any) { /* "*" says all that the others could */
            g->patterns[0] = "*";
            g->count = 1;
        }
    }
}

json_t *aq_capabilities_json(const aq_capabilities *c)
{
    json_t *o;

    if (!c->present)
        return json_null();
    o = json_object();
    for (size_t i = 0; i < AQ_CAP_COUNT; i++) {
        const aq_cap_group *g = &c->group[i];
        json_t *list;
        if (!g->present)
            continue;
        list = json_array();
        for (size_t j = 0; j < g->count; j++)
            json_array_append_new(list, json_string(g->patterns[j]));
        json_object_set_new(o, table[i].name, list);
    }
    return o;
}

static int read_group(aq_arena *a, const json_t *list, aq_capability group, aq_capabilities *to,
                      aq_err *err)
{
    aq_cap_group *g = &to->group[group];
    json_t *item;
    size_t i;

    aq_capabilities_none(to, group);
    json_array_foreach ((json_t *)list, i, item) {
        const char *s = json_string_value(item);
        aq_err why;
        if (!s || strlen(s) != json_string_length(item))
            return aq_fail(err, -EBADMSG, "capabilities: %s: text was expected", table[group].name);
        if (aq_capabilities_add(to, a, group, s, &why) < 0)
            return aq_fail(err, -EBADMSG, "capabilities: %s: %s", table[group].name, why.text);
        if (strcmp(g->patterns[i], s) != 0 || (i && strcmp(g->patterns[i - 1], s) >= 0))
            return aq_fail(err, -EBADMSG, "capabilities: %s: not in canonical form",
                           table[group].name);
    }
    return 0;
}

int aq_capabilities_read(aq_arena *a, const json_t *from, aq_capabilities *ret, aq_err *err)
{
    aq_capabilities c = {0};
    const char *key;
    json_t *list;

    if (json_is_null(from)) {
        *ret = c;
        return 0;
    }
    if (!json_is_object(from))
        return aq_fail(err, -EBADMSG, "capabilities: an object was expected");
    c.present = true;
    json_object_foreach ((json_t *)from, key, list) {
        size_t group = 0;
        int r;
        while (group < AQ_CAP_COUNT && strcmp(table[group].name, key) != 0)
            group++;
        if (group == AQ_CAP_COUNT || !json_is_array(list))
            return aq_fail(err, -EBADMSG, "capabilities: \"%.60s\" is no group", key);
        r = read_group(a, list, (aq_capability)group, &c, err);
        if (r < 0)
            return r;
    }
    *ret = c;
    return 0;
}

aq_digest aq_capabilities_digest(const aq_capabilities *c)
{
    aq_auto_json json_t *j = aq_capabilities_json(c);
    aq_digest d;

    if (aq_json_digest(j, &d) < 0)
        aq_panic("a declaration without a canonical form");
    return d;
}
