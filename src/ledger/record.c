/* Records of a journal segment: u16 length (big endian), entry, leaf hash.
 *
 * A writer that is killed leaves a prefix of a record at the very end; on some file systems a power
 * cut leaves zeros there. Both were never acknowledged and may be cut off. Anything else that does
 * not check is damage, and cutting it off would lose what somebody was promised (I1): so the two
 * are told apart with care, and in doubt it is damage. */
#include <string.h>

#include "ledger/internal.h"

void aq_record_add(aq_buf *out, const void *entry, size_t len, const aq_digest *leaf)
{
    uint8_t head[2] = {(uint8_t)(len >> 8), (uint8_t)len};

    aq_buf_add(out, head, sizeof head);
    aq_buf_add(out, entry, len);
    aq_buf_add(out, leaf->b, sizeof leaf->b);
}

/* Entries are canonical JSON and have no control characters; lengths and hashes mostly have. So a
 * wrong length that swallows the next records is seen. */
static bool could_be_entry(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)p[i] < 0x20)
            return false;
    return true;
}

/* A whole record whose length alone was changed looks torn; its hash tells. Up to three last bytes
 * of the hash may be zeros that were taken for filling. */
static bool whole_under_another_length(const char *p, size_t avail)
{
    for (size_t zeros = 0; zeros < 4; zeros++) {
        aq_digest leaf, said = {{0}};
        size_t len = avail + zeros;
        if (len <= 2 + AQ_SHA256_LEN || avail < 2 + zeros)
            continue;
        len -= 2 + AQ_SHA256_LEN;
        leaf = aq_tree_leaf(p + 2, len);
        memcpy(said.b, p + 2 + len, AQ_SHA256_LEN - zeros);
        if (aq_digest_equal(&leaf, &said))
            return true;
    }
    return false;
}

/* p: the bytes from the record's start to the last one that is not zero. */
static bool torn(const char *p, size_t avail, size_t len)
{
    size_t have = avail - 2 < len ? avail - 2 : len;

    if (avail >= 2 + len + AQ_SHA256_LEN || !could_be_entry(p + 2, have) ||
        whole_under_another_length(p, avail))
        return false;
    if (avail > 2 + len) {
        aq_digest leaf = aq_tree_leaf(p + 2, len);
        return memcmp(p + 2 + len, leaf.b, avail - 2 - len) == 0;
    }
    return true;
}

aq_record_state aq_record_read(const char *data, size_t len, size_t at, const char **entry,
                               size_t *entry_len, aq_digest *leaf)
{
    size_t avail = len - at, n;
    const char *p = data + at;
    aq_digest said;

    if (avail == 0)
        return AQ_RECORD_END;
    n = avail < 2 ? 0 : (size_t)((uint8_t)p[0] << 8 | (uint8_t)p[1]);
    if (n > 0 && avail >= 2 + n + AQ_SHA256_LEN) {
        *leaf = aq_tree_leaf(p + 2, n);
        memcpy(said.b, p + 2 + n, sizeof said.b);
        if (aq_digest_equal(leaf, &said)) {
            *entry = p + 2;
            *entry_len = n;
            return AQ_RECORD_WHOLE;
        }
    }
    while (avail > 0 && p[avail - 1] == '\0')
        avail--;
    if (avail < 2)
        return AQ_RECORD_TORN;
    return n > 0 && torn(p, avail, n) ? AQ_RECORD_TORN : AQ_RECORD_DAMAGED;
}

int aq_in_window(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    const aq_window *w = arg;

    return index < w->from || index >= w->to ? 0 : w->each(w->arg, index, entry, len, err);
}
