/* What the kernel counts of its network. Much of it is counted for the host as a whole, and a world
 * would see what others do out there; the machine counts its own. */
#include "veil/internal.h"

#include <inttypes.h>
#include <string.h>

enum {
    HELD = 2,    /* sockets that are there and not in use */
    MEMORY = 3,  /* the column of `protocols` */
    IN_SLOW = 2, /* columns of ways that were looked up */
    OUT_SLOW = 9,
    ENTRIES = 14, /* of the table of ways */
};

/* Events since boot of one processor; others have a little less. */
static uint64_t counted(const aq_veil_scene *s, uint64_t in_minute, unsigned cpu)
{
    const uint64_t minute = 60000000000;

    return aq_uptime_ns(s) / minute * in_minute * (16 - cpu % 8) / 16;
}

/* One row a processor: packets, and how often there were too many. As many as its NET_RX, or more.
 */
void aq_make_softnet(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    unsigned cpus = aq_veil_cpus(s->machine);

    (void)truth, (void)len;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        aq_buf_addf(ret, "%08" PRIx64 " 00000000 %08" PRIx64, counted(s, 97, cpu),
                    counted(s, 1, cpu) / 4000);
        for (int i = 3; i < 12; i++)
            aq_buf_adds(ret, " 00000000");
        aq_buf_addf(ret, " %08x 00000000 00000000\n", cpu);
    }
}

/* "TCP: inuse 2 orphan 0 tw 0 alloc 4 mem 1": orphans, sockets and pages are those of all networks.
 */
void aq_make_sockstat(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word, *name = "";
    size_t n, size, name_len = 0;

    (void)s;
    while (aq_line_next(&l, &line, &n)) {
        aq_lines words = {line, line + n};
        const char *from = line;
        uint64_t used = 0;

        while (aq_word_next(&words, &word, &size)) {
            aq_buf_add(ret, from, (size_t)(word - from));
            from = word + size;
            if (aq_word_is(name, name_len, "inuse"))
                used = aq_word_number(word, size, 10);
            if (aq_word_is(name, name_len, "orphan"))
                aq_buf_addc(ret, '0');
            else if (aq_word_is(name, name_len, "alloc"))
                aq_buf_addf(ret, "%" PRIu64, used + HELD);
            else if (aq_word_is(name, name_len, "mem"))
                aq_buf_addf(ret, "%d", used > 0);
            else
                aq_buf_add(ret, word, size);
            name = word, name_len = size;
        }
        aq_buf_addc(ret, '\n');
    }
}

/* Their memory is that of all networks; what has no such count says -1. */
void aq_make_protocols(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    size_t n, size;

    (void)s;
    for (bool head = true; aq_line_next(&l, &line, &n); head = false) {
        aq_lines words = {line, line + n};
        const char *from = line;

        for (int i = 0; !head && i <= MEMORY && aq_word_next(&words, &word, &size); i++) {
            if (i < MEMORY || word[0] == '-')
                continue;
            aq_buf_add(ret, from, (size_t)(word - from));
            from = word + size;
            aq_buf_addf(ret, "%*d", (int)size, 1);
        }
        aq_buf_add(ret, from, (size_t)(line + n - from));
        aq_buf_addc(ret, '\n');
    }
}

/* A head and one row a processor, all of one form; there are as many as the machine has. */
void aq_make_net_rows(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    unsigned cpus = aq_veil_cpus(s->machine);
    const char *head = truth, *row = truth, *word;
    size_t head_len = 0, n = 0, size;
    bool ways;

    aq_line_next(&l, &head, &head_len);
    aq_buf_add(ret, head, head_len);
    aq_buf_addc(ret, '\n');
    ways = head_len && memmem(head, head_len, "in_slow_tot", 11);
    if (!aq_line_next(&l, &row, &n))
        return;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        aq_lines words = {row, row + n};
        const char *from = row;

        for (int i = 0; aq_word_next(&words, &word, &size); i++) {
            aq_buf_add(ret, from, (size_t)(word - from));
            from = word + size;
            aq_buf_addf(ret, "%08" PRIx64,
                        !ways           ? 0
                        : i == 0        ? ENTRIES
                        : i == IN_SLOW  ? counted(s, 2, cpu)
                        : i == OUT_SLOW ? counted(s, 5, cpu)
                                        : 0);
        }
        aq_buf_add(ret, from, (size_t)(row + n - from));
        aq_buf_addc(ret, '\n');
    }
}
