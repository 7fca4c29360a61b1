/* Lists of sockets: their numbers and addresses in the kernel differ from run to run. */
#include "veil/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    LOCAL = 1, /* columns */
    STATE = 3,
    OWNER = 2, /* before the inode's */
    LOW_PORTS = 1024,
    PLACES = 2048, /* of the table of datagrams */
};

static uint64_t number_of(const aq_veil_scene *s, uint64_t inode)
{
    return inode && s->inode ? s->inode(s->arg, NULL, 0, inode) : inode;
}

/* A pointer as the kernel prints it, hashed. */
static bool is_pointer(const char *word, size_t len)
{
    return aq_word_hex(word, len) == 16 && (len == 16 || word[16] == ':');
}

/* "00000000:0016", with large letters */
static unsigned port_of(const char *word, size_t len)
{
    const char *colon = memchr(word, ':', len);
    size_t left = colon ? len - (size_t)(colon - word) - 1 : 0;
    unsigned port = 0;

    for (size_t i = 1; i <= 4 && i <= left; i++) {
        unsigned char c = (unsigned char)colon[i];

        port = port << 4 | (c >= 'A' ? (c - 'A' + 10u) & 15 : (c - '0') & 15u);
    }
    return port;
}

/* "sl local_address … uid timeout inode ref pointer …", and "Num RefCount … Inode Path". The column
 * is found by its head; heads of pairs of columns ("tx_queue rx_queue") stand over one word. */
static int inode_column(const char *line, size_t len)
{
    aq_lines l = {line, line + len};
    const char *word;
    size_t n;
    int column = 0;

    while (aq_word_next(&l, &word, &n)) {
        if (aq_word_is(word, n, "inode") || aq_word_is(word, n, "Inode"))
            return column;
        column += !aq_word_is(word, n, "rx_queue") && !aq_word_is(word, n, "tm->when");
    }
    return -1;
}

static void one_row(const aq_veil_scene *s, const char *line, size_t len, int column, aq_buf *ret)
{
    aq_lines words = {line, line + len};
    const char *from = line, *word;
    bool low = false;
    size_t size;

    for (int i = 0; column >= 0 && i <= column + 2 && aq_word_next(&words, &word, &size); i++) {
        aq_buf_add(ret, from, (size_t)(word - from));
        from = word + size;
        if (i == LOCAL)
            low = memchr(word, ':', size) && port_of(word, size) < LOW_PORTS;
        if (i == column)
            aq_buf_addf(ret, "%" PRIu64, number_of(s, aq_word_number(word, size, 10)));
        else if (i == column - OWNER && low) /* nobody but root may have such a port */
            aq_buf_addf(ret, "%*s", (int)size, "0");
        else if (is_pointer(word, size))
            aq_buf_addf(ret, "0000000000000000%.*s", (int)(size - 16), word + 16);
        else
            aq_buf_add(ret, word, size);
    }
    aq_buf_add(ret, from, (size_t)(line + len - from));
    aq_buf_addc(ret, '\n');
}

void aq_make_net_inodes(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    int column = -1;
    size_t n;

    for (bool head = true; aq_line_next(&l, &line, &n); head = false) {
        if (head)
            column = inode_column(line, n);
        one_row(s, line, n, head ? -1 : column, ret);
    }
}

/* ---- rows of sockets with ports ---- */

typedef struct row {
    const char *line, *key; /* the key: addresses and state */
    size_t len, key_len;
    bool waits; /* for connections */
} row;

static int by_place(const void *x, const void *y)
{
    const row *a = x, *b = y;
    size_t n = a->key_len < b->key_len ? a->key_len : b->key_len;
    int r;

    if (a->waits != b->waits)
        return a->waits ? -1 : 1;
    r = memcmp(a->key, b->key, n);
    return r ? r : a->line < b->line ? -1 : a->line > b->line;
}

/* Rows come in the order of a table whose hash differs from boot to boot and from network to
 * network; so does the number of a datagram's place in it. */
static row *collect(const char *truth, size_t len, size_t *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    size_t count = 0, all = 1, n, size;
    row *rows;

    for (const char *at = truth; (at = memchr(at, '\n', (size_t)(truth + len - at))); at++)
        all++;
    rows = aq_alloc(all * sizeof *rows);
    aq_line_next(&l, &line, &n);
    while (count < all && aq_line_next(&l, &line, &n)) {
        aq_lines words = {line, line + n};
        row *r = &rows[count];

        *r = (row){.line = line, .len = n, .key = line};
        for (int i = 0; i <= STATE && aq_word_next(&words, &word, &size); i++) {
            if (i == LOCAL)
                r->key = word;
            if (i == STATE) {
                r->key_len = (size_t)(word - r->key);
                r->waits = aq_word_is(word, size, "0A");
            }
        }
        count++;
    }
    *ret = count;
    return rows;
}

static size_t place_of(const row *r)
{
    return (port_of(r->key, r->key_len) * 37 + 422) % PLACES;
}

static void make_sorted(const aq_veil_scene *s, const char *truth, size_t len, bool places,
                        aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    size_t count = 0, n = 0;
    aq_auto_free row *rows = collect(truth, len, &count);
    const char *head = truth;
    int column;

    aq_line_next(&l, &head, &n);
    column = inode_column(head, n);
    one_row(s, head, n, -1, ret);
    qsort(rows, count, sizeof *rows, by_place);
    for (size_t i = 0; i < count; i++) {
        const char *colon = memchr(rows[i].line, ':', rows[i].len);
        size_t skip = colon ? (size_t)(colon - rows[i].line) : 0;
        aq_auto_buf one = {0};

        aq_buf_addf(&one, "%*zu", (int)skip, places ? place_of(&rows[i]) : i);
        aq_buf_add(&one, rows[i].line + skip, rows[i].len - skip);
        one_row(s, one.data, one.len, column, ret);
    }
}

void aq_make_net_streams(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    make_sorted(s, truth, len, false, ret);
}

void aq_make_net_datagrams(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    make_sorted(s, truth, len, true, ret);
}

/* ---- neighbours ---- */

/* Those that we made known for good look as if they had been heard of ("0x6" is "0x2" and for
 * good). */
void aq_make_net_arp(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    aq_auto_buf rows = {0};
    const char *line = truth;
    size_t n = 0;

    aq_line_next(&l, &line, &n);
    aq_buf_add(ret, line, n);
    aq_buf_addc(ret, '\n');
    aq_make_net_ordered(s, l.at, (size_t)(l.end - l.at), &rows);
    l = (aq_lines){aq_buf_str(&rows), aq_buf_str(&rows) + rows.len};
    while (aq_line_next(&l, &line, &n)) {
        const char *flags = memmem(line, n, " 0x6 ", 5);
        size_t at = ret->len;

        aq_buf_add(ret, line, n);
        aq_buf_addc(ret, '\n');
        if (flags)
            ret->data[at + (size_t)(flags - line) + 3] = '2';
    }
}
