/* RFC 6962 trees: hashes, proofs and their checks. Pure functions; where the hashes of complete
 * subtrees come from is the caller's business (tiles, a test's array). */
#include <errno.h>
#include <string.h>

#include "ledger/internal.h"

aq_digest aq_tree_leaf(const void *entry, size_t len)
{
    aq_hash *h = aq_hash_begin();

    aq_hash_add(h, "\0", 1);
    aq_hash_add(h, entry, len);
    return aq_hash_end(h);
}

aq_digest aq_tree_node(const aq_digest *left, const aq_digest *right)
{
    uint8_t b[1 + 2 * AQ_SHA256_LEN];

    b[0] = 1;
    memcpy(b + 1, left->b, AQ_SHA256_LEN);
    memcpy(b + 1 + AQ_SHA256_LEN, right->b, AQ_SHA256_LEN);
    return aq_sha256(b, sizeof b);
}

aq_digest aq_tree_fold(aq_digest *hashes, unsigned count)
{
    for (; count > 1; count /= 2)
        for (unsigned i = 0; i < count / 2; i++)
            hashes[i] = aq_tree_node(&hashes[2 * i], &hashes[2 * i + 1]);
    return hashes[0];
}

aq_digest aq_tree_empty(void)
{
    return aq_sha256("", 0);
}

/* The largest power of two below n, as an exponent; n >= 2. */
static unsigned split(uint64_t n)
{
    return 63 - (unsigned)__builtin_clzll(n - 1);
}

/* The hash over [from, from + count), count >= 1. `from` is a multiple of the power of two that
 * holds the range, so its left parts are complete subtrees: the loop collects them from the left
 * and folds from the right. */
static int range(const aq_tree_source *s, uint64_t from, uint64_t count, aq_digest *ret,
                 aq_err *err)
{
    aq_digest parts[64], all;
    size_t n = 0;

    while (count) {
        unsigned level = 63 - (unsigned)__builtin_clzll(count);
        int r = s->node(s->arg, level, from >> level, &parts[n++], err);
        if (r < 0)
            return r;
        from += UINT64_C(1) << level;
        count -= UINT64_C(1) << level;
    }
    all = parts[n - 1];
    for (size_t i = n - 1; i > 0; i--)
        all = aq_tree_node(&parts[i - 1], &all);
    *ret = all;
    return 0;
}

int aq_tree_root(const aq_tree_source *s, uint64_t size, aq_digest *ret, aq_err *err)
{
    if (size == 0) {
        *ret = aq_tree_empty();
        return 0;
    }
    return range(s, 0, size, ret, err);
}

/* Proofs are collected from the root down and turned round at the end. */
static void reverse(aq_proof *p)
{
    for (size_t i = 0; i < p->count / 2; i++) {
        aq_digest d = p->hash[i];
        p->hash[i] = p->hash[p->count - 1 - i];
        p->hash[p->count - 1 - i] = d;
    }
}

int aq_tree_inclusion(const aq_tree_source *s, uint64_t index, uint64_t size, aq_proof *ret,
                      aq_err *err)
{
    uint64_t from = 0;
    aq_proof p = {.count = 0};

    while (size > 1) {
        uint64_t left = UINT64_C(1) << split(size);
        bool right = index >= left;
        int r = range(s, right ? from : from + left, right ? left : size - left, &p.hash[p.count++],
                      err);
        if (r < 0)
            return r;
        from += right ? left : 0;
        index -= right ? left : 0;
        size = right ? size - left : left;
    }
    reverse(&p);
    *ret = p;
    return 0;
}

int aq_tree_consistency(const aq_tree_source *s, uint64_t from, uint64_t to, aq_proof *ret,
                        aq_err *err)
{
    uint64_t start = 0;
    bool whole = true; /* the old tree is a complete subtree on the left edge so far */
    aq_proof p = {.count = 0};
    int r = 0;

    if (from == 0 || from == to)
        to = from;
    while (from != to) {
        uint64_t left = UINT64_C(1) << split(to);
        bool right = from > left;
        r = range(s, right ? start : start + left, right ? left : to - left, &p.hash[p.count++],
                  err);
        if (r < 0)
            return r;
        start += right ? left : 0;
        whole = whole && !right;
        from -= right ? left : 0;
        to = right ? to - left : left;
    }
    if (!whole && from > 0)
        r = range(s, start, to, &p.hash[p.count++], err);
    if (r < 0)
        return r;
    reverse(&p);
    *ret = p;
    return 0;
}

int aq_tree_check_inclusion(uint64_t index, uint64_t size, const aq_digest *leaf,
                            const aq_proof *proof, const aq_digest *root)
{
    uint64_t at = index, last = size - 1;
    aq_digest h = *leaf;

    if (index >= size)
        return -EBADMSG;
    for (size_t i = 0; i < proof->count; i++) {
        if (last == 0)
            return -EBADMSG; /* longer than the path */
        if (at % 2 == 1 || at == last) {
            h = aq_tree_node(&proof->hash[i], &h);
            while (at % 2 == 0 && at != 0) {
                at /= 2;
                last /= 2;
            }
        } else {
            h = aq_tree_node(&h, &proof->hash[i]);
        }
        at /= 2;
        last /= 2;
    }
    return last == 0 && aq_digest_equal(&h, root) ? 0 : -EBADMSG;
}

int aq_tree_check_consistency(uint64_t from, uint64_t to, const aq_digest *from_root,
                              const aq_digest *to_root, const aq_proof *proof)
{
    uint64_t at = from - 1, last = to - 1;
    aq_digest old, new;
    size_t i = 0;

    if (from > to)
        return -EBADMSG;
    /* Every tree continues the empty one: there is nothing to prove, so nothing is accepted. */
    if (from == 0) {
        aq_digest empty = aq_tree_empty();
        return to == 0 && proof->count == 0 && aq_digest_equal(from_root, &empty) &&
                       aq_digest_equal(to_root, &empty)
                   ? 0
                   : -EBADMSG;
    }
    if (from == to)
        return proof->count == 0 && aq_digest_equal(from_root, to_root) ? 0 : -EBADMSG;
    for (; at % 2 == 1; at /= 2)
        last /= 2;
    /* An old tree that is a complete subtree is its own first hash. */
    if (at == 0)
        old = *from_root;
    else if (proof->count > 0)
        old = proof->hash[i++];
    else
        return -EBADMSG;
    new = old;
    for (; i < proof->count; i++) {
        if (last == 0)
            return -EBADMSG;
        if (at % 2 == 1 || at == last) {
            old = aq_tree_node(&proof->hash[i], &old);
            new = aq_tree_node(&proof->hash[i], &new);
            while (at % 2 == 0 && at != 0) {
                at /= 2;
                last /= 2;
            }
        } else {
            new = aq_tree_node(&new, &proof->hash[i]);
        }
        at /= 2;
        last /= 2;
    }
    return last == 0 && aq_digest_equal(&old, from_root) && aq_digest_equal(&new, to_root)
               ? 0
               : -EBADMSG;
}
