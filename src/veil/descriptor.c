/* What /proc/PID/fdinfo says of a descriptor: mounts and numbers as stat shows them. */
#include "veil/internal.h"

#include <inttypes.h>
#include <string.h>

/* "…ino:1785b8c sdev:f…" of what an epoll or an inotify looks at: numbers in hex. */
static void add_watched(const aq_veil_scene *s, const char *line, size_t len, aq_buf *ret)
{
    static const char key[] = "ino:";
    const char *at = memmem(line, len, key, sizeof key - 1);
    size_t head, digits;
    uint64_t number;

    if (!at) {
        aq_buf_add(ret, line, len);
        return;
    }
    head = (size_t)(at - line) + sizeof key - 1;
    digits = aq_word_hex(line + head, len - head);
    number = aq_word_number(line + head, digits, 16);
    if (s->inode)
        number = s->inode(s->arg, NULL, 0, number);
    aq_buf_add(ret, line, head);
    aq_buf_addf(ret, "%" PRIx64, number);
    aq_buf_add(ret, line + head + digits, len - head - digits);
}

/* "lock:\t1: FLOCK  ADVISORY  WRITE 10023 fe:00:9979849 0 EOF" */
static void add_lock(const aq_veil_scene *s, const char *line, size_t len, aq_buf *ret)
{
    aq_lines words = {line, line + len};
    const char *from = line, *word;
    size_t n;

    while (aq_word_next(&words, &word, &n)) {
        const char *colon = memchr(word, ':', n);

        if (!colon || colon + 1 == word + n ||
            !memchr(colon + 1, ':', (size_t)(word + n - colon) - 1))
            continue;
        aq_buf_add(ret, from, (size_t)(word - from));
        aq_buf_addf(ret, "%02x:%02x:%" PRIu64, s->file.major, s->file.minor, s->file.inode);
        from = word + n;
    }
    aq_buf_add(ret, from, (size_t)(line + len - from));
}

static bool starts(const char *line, size_t len, const char *key)
{
    return len > strlen(key) && memcmp(line, key, strlen(key)) == 0;
}

void aq_make_fdinfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;

    while (aq_line_next(&l, &line, &n)) {
        if (s->file.mount && starts(line, n, "mnt_id:"))
            aq_buf_addf(ret, "mnt_id:\t%" PRIu32, s->file.mount);
        else if (s->file.mount && starts(line, n, "ino:"))
            aq_buf_addf(ret, "ino:\t%" PRIu64, s->file.inode);
        else if (starts(line, n, "lock:"))
            add_lock(s, line, n, ret);
        else
            add_watched(s, line, n, ret);
        aq_buf_addc(ret, '\n');
    }
}
