/* What a kernel tells of IPv6 and of groups of addresses. It finds its addresses one after the
 * other by a clock of its own, while the world already runs, and keeps them in tables whose order
 * differs from network to network. The machine has found them long ago. */
#include "veil/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
    REFERENCES = 6, /* columns of ways */
    USES = 7,
    FLAGS = 4, /* of groups */
    TIMER = 5,
    STEADY = 0xc, /* flags that depend on no timer */
};

typedef struct piece {
    const char *text;
    size_t len;
} piece;

static int by_text(const void *x, const void *y)
{
    const piece *a = x, *b = y;
    size_t n = a->len < b->len ? a->len : b->len;
    int r = memcmp(a->text, b->text, n);

    return r ? r : a->len < b->len ? -1 : a->len > b->len;
}

/* Rows without a head, in an order of their own. */
void aq_make_net_ordered(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    aq_auto_free piece *rows = NULL;
    size_t count = 0;
    piece one;

    (void)s;
    while (aq_line_next(&l, &one.text, &one.len)) {
        rows = aq_realloc(rows, count + 1, sizeof *rows);
        rows[count++] = one;
    }
    if (count)
        qsort(rows, count, sizeof *rows, by_text);
    for (size_t i = 0; i < count; i++) {
        aq_buf_add(ret, rows[i].text, rows[i].len);
        aq_buf_addc(ret, '\n');
    }
}

/* A row with numbers of its columns replaced. */
static void add_row(const char *line, size_t len, const char *(*other)(int, const char *, size_t),
                    aq_buf *ret)
{
    aq_lines words = {line, line + len};
    const char *from = line, *word;
    size_t size;

    for (int i = 0; aq_word_next(&words, &word, &size); i++) {
        const char *text = other(i, word, size);

        if (!text)
            continue;
        aq_buf_add(ret, from, (size_t)(word - from));
        aq_buf_adds(ret, text);
        from = word + size;
    }
    aq_buf_add(ret, from, (size_t)(line + len - from));
    aq_buf_addc(ret, '\n');
}

static const char *of_way(int column, const char *word, size_t len)
{
    (void)word, (void)len;
    return column == REFERENCES ? "00000001" : column == USES ? "00000000" : NULL;
}

/* Who holds a way just now, and how often it was used. */
void aq_make_net_ways(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;

    (void)s;
    while (aq_line_next(&l, &line, &n))
        add_row(line, n, of_way, ret);
}

static const char *of_group(int column, const char *word, size_t len)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *last = strchr(digits, word[len - 1]);

    if (column == TIMER)
        return "0";
    if (column != FLAGS || !last)
        return NULL;
    switch ((last - digits) & STEADY) {
    case 0xc:
        return "0000000C";
    case 8:
        return "00000008";
    case 4:
        return "00000004";
    default:
        return "00000000";
    }
}

void aq_make_net_groups(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_auto_buf rows = {0};
    aq_lines l;
    const char *line;
    size_t n;

    aq_make_net_ordered(s, truth, len, &rows);
    if (rows.len == 0)
        return;
    l = (aq_lines){rows.data, rows.data + rows.len};
    while (aq_line_next(&l, &line, &n))
        add_row(line, n, of_group, ret);
}

/* "Ip6InReceives 17": packets that the kernel itself sent and heard. What streams and datagrams of
 * programs were counted as (Udp6…) stays. */
void aq_make_snmp6(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    static const struct {
        const char *name;
        unsigned in_hour;
    } rows[] = {{"Ip6InReceives", 41},     {"Ip6InDelivers", 37},  {"Ip6OutRequests", 22},
                {"Ip6InMcastPkts", 11},    {"Ip6OutMcastPkts", 2}, {"Ip6InOctets", 9114},
                {"Ip6OutOctets", 2860},    {"Ip6InNoECTPkts", 44}, {"Ip6OutTransmits", 22},
                {"Icmp6InMsgs", 7},        {"Icmp6OutMsgs", 3},    {"Ip6InMcastOctets", 1207},
                {"Ip6OutMcastOctets", 140}};
    const uint64_t hour = 3600000000000;
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    size_t n, size;

    while (aq_line_next(&l, &line, &n)) {
        aq_lines words = {line, line + n};
        uint64_t value = 0;

        if (!aq_word_next(&words, &word, &size) || memmem(word, size, "Type", 4))
            continue; /* the kinds of messages that there were */
        if (strncmp(line, "Ip6", 3) != 0 && strncmp(line, "Icmp6", 5) != 0) {
            aq_buf_add(ret, line, n);
            aq_buf_addc(ret, '\n');
            continue;
        }
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (aq_word_is(word, size, rows[i].name))
                value = aq_uptime_ns(s) / (hour / 60) * rows[i].in_hour / 60;
        aq_buf_addf(ret, "%-32.*s\t%" PRIu64 "\n", (int)size, word, value);
    }
}
