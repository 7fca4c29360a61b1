/* JSON at our own borders: strict in, canonical out; see json.h. */
#include "base/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

size_t aq_json_string_end(const char *text, size_t len, size_t at)
{
    for (at++; at < len && text[at] != '"'; at++)
        if (text[at] == '\\')
            at++;
    return at < len ? at : len;
}

/* jansson has a recursion limit of 2,048; ours is lower and checked before it starts, so that
 * depth costs neither stack nor time. Strings are skipped by their own rule. */
static int check_depth(const char *text, size_t len, const char *name, aq_err *err)
{
    size_t depth = 0, line = 1;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\n') {
            line++;
        } else if (c == '"') {
            i = aq_json_string_end(text, len, i);
        } else if (c == '[' || c == '{') {
            if (++depth > AQ_JSON_DEPTH)
                return aq_fail(err, -E2BIG, "%s:%zu: nested deeper than %d levels", name, line,
                               AQ_JSON_DEPTH);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return 0;
}

int aq_json_parse(const char *text, size_t len, const char *name, json_t **ret, aq_err *err)
{
    json_error_t bad;
    json_t *value;
    int r = check_depth(text, len, name, err);

    if (r < 0)
        return r;
    value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &bad);
    if (!value)
        return aq_fail(err, -EBADMSG, "%s:%d:%d: %s", name, bad.line < 1 ? 1 : bad.line,
                       bad.column < 0 ? 0 : bad.column, bad.text);
    *ret = value;
    return 0;
}

void aq_json_string(aq_buf *out, const char *s)
{
    static const char *const hex = "0123456789abcdef";

    aq_buf_addc(out, '"');
    for (const char *from = s;; s++) {
        unsigned char c = (unsigned char)*s;
        const char *escape = NULL;
        char unicode[7] = "\\u00";

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        aq_buf_add(out, from, (size_t)(s - from));
        if (c == '\0')
            break;
        switch (c) {
        case '"':
            escape = "\\\"";
            break;
        case '\\':
            escape = "\\\\";
            break;
        case '\b':
            escape = "\\b";
            break;
        case '\f':
            escape = "\\f";
            break;
        case '\n':
            escape = "\\n";
            break;
        case '\r':
            escape = "\\r";
            break;
        case '\t':
            escape = "\\t";
            break;
        default:
            unicode[4] = hex[c >> 4];
            unicode[5] = hex[c & 15];
            escape = unicode;
        }
        aq_buf_adds(out, escape);
        from = s + 1;
    }
    aq_buf_addc(out, '"');
}

/* RFC 8785 sorts keys by UTF-16 code units. That is byte order of UTF-8 except that U+E000…U+FFFF
 * come after the supplementary planes. */
static int compare_keys(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a,
                        *y = *(const unsigned char *const *)b;

    while (*x && *x == *y)
        x++, y++;
    if (*x >= 0xee && *y >= 0xee && (*x >= 0xf0) != (*y >= 0xf0))
        return *x >= 0xf0 ? -1 : 1;
    return (int)*x - (int)*y;
}

static int canonical_object(const json_t *object, aq_buf *out)
{
    size_t count = json_object_size(object), i = 0;
    aq_auto_free const char **keys = aq_realloc(NULL, count, sizeof *keys);
    const char *key;
    json_t *member;

    json_object_foreach ((json_t *)object, key, member)
        keys[i++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    aq_buf_addc(out, '{');
    for (i = 0; i < count; i++) {
        int r;
        if (i)
            aq_buf_addc(out, ',');
        aq_json_string(out, keys[i]);
        aq_buf_addc(out, ':');
        r = aq_json_canonical(json_object_get(object, keys[i]), out);
        if (r < 0)
            return r;
    }
    aq_buf_addc(out, '}');
    return 0;
}

int aq_json_canonical(const json_t *value, aq_buf *out)
{
    size_t i;
    json_t *item;
    int r;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return canonical_object(value, out);
    case JSON_ARRAY:
        aq_buf_addc(out, '[');
        json_array_foreach ((json_t *)value, i, item) {
            if (i)
                aq_buf_addc(out, ',');
            r = aq_json_canonical(item, out);
            if (r < 0)
                return r;
        }
        aq_buf_addc(out, ']');
        return 0;
    case JSON_STRING:
        aq_json_string(out, json_string_value(value));
        return 0;
    case JSON_INTEGER:
        aq_buf_addf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return 0;
    case JSON_REAL:
        return -EDOM;
    case JSON_TRUE:
        aq_buf_adds(out, "true");
        return 0;
    case JSON_FALSE:
        aq_buf_adds(out, "false");
        return 0;
    case JSON_NULL:
        aq_buf_adds(out, "null");
        return 0;
    }
    return -EINVAL;
}

int aq_json_digest(const json_t *value, aq_digest *ret)
{
    aq_auto_buf b = {0};
    int r = aq_json_canonical(value, &b);

    if (r < 0)
        return r;
    *ret = aq_sha256(b.data, b.len);
    return 0;
}

static int dump_to_buf(const char *data, size_t len, void *out)
{
    aq_buf_add(out, data, len);
    return 0;
}

void aq_json_pretty(const json_t *value, aq_buf *out)
{
    if (json_dump_callback(value, dump_to_buf, out, JSON_INDENT(2) | JSON_ENCODE_ANY) < 0)
        aq_panic("cannot print JSON");
    aq_buf_addc(out, '\n');
}

int aq_json_only_keys(const json_t *value, const char *name, const char *const *keys, aq_err *err)
{
    const char *key;
    json_t *member;

    if (!json_is_object(value))
        return aq_fail(err, -EBADMSG, "%s: an object was expected", name);
    json_object_foreach ((json_t *)value, key, member) {
        const char *const *k = keys;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k)
            return aq_fail(err, -EBADMSG, "%s: unknown field \"%.80s\"", name, key);
    }
    return 0;
}

const char *aq_json_str(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int64_t aq_json_int(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *v = json_object_get(object, key);

    return json_is_integer(v) ? (int64_t)json_integer_value(v) : fallback;
}
