/* Short names beside long ones, and pax records; see tar_names.h. */
#include "cleanroom/tar_names.h"

#include <string.h>

enum {
    NAME_FIELD = 100, /* a longer name needs more than the header's name field */
    MARK_MAX = 24,    /* "PaxHeaders.4194304" */
};

/* Can packers have written `c` for this byte of the whole name? Beyond ASCII they replace a byte by
 * a mark, cut off its highest bit, or use another encoding. */
static bool stands_for(char c, char whole)
{
    unsigned char w = (unsigned char)whole;

    if (w < 0x80)
        return c == whole;
    return c == '?' || c == '_' || (unsigned char)c >= 0x80 || c == (char)(w & 0x7f);
}

/* Bytes of `small` that are not in `whole`, taken in order. */
static size_t foreign(const char *small, size_t len, const char *whole, size_t whole_len)
{
    size_t at = 0, count = 0;

    for (size_t i = 0; i < len; i++) {
        size_t next = at;
        while (next < whole_len && !stands_for(small[i], whole[next]))
            next++;
        if (next < whole_len)
            at = next + 1;
        else
            count++;
    }
    return count;
}

static bool plain(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] >= 0x80)
            return false;
    return true;
}

static size_t trimmed(const char **name, size_t len)
{
    while (len > 1 && (*name)[0] == '.' && (*name)[1] == '/') {
        *name += 2;
        len -= 2;
    }
    while (len > 0 && (*name)[len - 1] == '/')
        len--;
    return len;
}

bool tar_name_shortened(const char *small, size_t len, const char *whole, size_t whole_len)
{
    bool needed = whole_len >= NAME_FIELD || !plain(whole, whole_len);

    len = trimmed(&small, len);
    whole_len = trimmed(&whole, whole_len);
    if (len == 0 || (len == whole_len && memcmp(small, whole, len) == 0))
        return true;
    return needed && foreign(small, len, whole, whole_len) == 0;
}

/* "dir/PaxHeaders.17/file", "PaxHeader/file" and "././@PaxHeader" are what programs write. */
static size_t mark_length(const char *part, size_t len)
{
    static const char *const marks[] = {"PaxHeaders", "PaxHeader", "@PaxHeader"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks && len <= MARK_MAX; i++)
        if (len >= strlen(marks[i]) && memcmp(part, marks[i], strlen(marks[i])) == 0)
            return len;
    return 0;
}

size_t tar_pax_name_foreign(const char *small, size_t len, const char *whole, size_t whole_len)
{
    char rest[NAME_FIELD + 156];
    size_t kept = 0;
    bool marked = false;

    len = trimmed(&small, len);
    whole_len = trimmed(&whole, whole_len);
    for (size_t at = 0; at < len;) {
        const char *slash = memchr(small + at, '/', len - at);
        size_t n = slash ? (size_t)(slash - small) - at : len - at;
        size_t mark = marked ? 0 : mark_length(small + at, n);
        marked = marked || mark > 0;
        if (mark == 0 && kept + n + 1 <= sizeof rest) {
            memcpy(rest + kept, small + at, n);
            kept += n;
            if (slash)
                rest[kept++] = '/';
        }
        at += n + 1;
    }
    return foreign(rest, kept, whole, whole_len);
}

/* One program parts the header at its newlines first, and takes each line for a record that begins
 * with a number and has a '='. Binary values have newlines too, and mostly no such line. */
bool tar_record_clear(const char *key, size_t key_len, const char *value, size_t len)
{
    if (memchr(key, '\n', key_len))
        return false;
    for (const char *end = value + len, *line = memchr(value, '\n', len); line;) {
        const char *next = memchr(line + 1, '\n', (size_t)(end - line - 1));
        bool digit = false;
        for (const char *p = line + 1; p < (next ? next : end); p++) {
            if (*p == '=' && digit)
                return false;
            digit = digit || (*p >= '0' && *p <= '9');
        }
        line = next;
    }
    return true;
}

bool tar_only_digits(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (value[i] < '0' || value[i] > '9')
            return false;
    return true;
}
