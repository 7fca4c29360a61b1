/* Lists of sockets: their numbers and addresses in the kernel differ from run to run. */
#include "veil/internal.h"

#include <inttypes.h>
#include <string.h>

static uint64_t number_of(const aq_veil_scene *s, uint64_t inode)
{
    return inode && s->inode ? s->inode(s->arg, NULL, 0, inode) : inode;
}

/* A pointer as the kernel prints it, hashed. */
static bool is_pointer(const char *word, size_t len)
{
    return aq_word_hex(word, len) == 16 && (len == 16 || word[16] == ':');
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

void aq_make_net_inodes(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    int column = -1;
    size_t n, size;

    for (bool head = true; aq_line_next(&l, &line, &n); head = false) {
        aq_lines words = {line, line + n};
        const char *from = line;

        if (head)
            column = inode_column(line, n);
        for (int i = 0;
             !head && column >= 0 && i <= column + 2 && aq_word_next(&words, &word, &size); i++) {
            aq_buf_add(ret, from, (size_t)(word - from));
            from = word + size;
            if (i == column)
                aq_buf_addf(ret, "%" PRIu64, number_of(s, aq_word_number(word, size, 10)));
            else if (is_pointer(word, size))
                aq_buf_addf(ret, "0000000000000000%.*s", (int)(size - 16), word + 16);
            else
                aq_buf_add(ret, word, size);
        }
        aq_buf_add(ret, from, (size_t)(line + n - from));
        aq_buf_addc(ret, '\n');
    }
}
