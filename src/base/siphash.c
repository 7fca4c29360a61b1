/* SipHash-2-4 with 128 bits of output; see siphash.h. */
#include "base/siphash.h"

#include <sys/random.h>

#include "base/err.h"

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static void mix(uint64_t v[static 4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turn(v[1], 13) ^ v[0];
        v[3] = turn(v[3], 16) ^ v[2];
        v[0] = turn(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = turn(v[1], 17) ^ v[2];
        v[3] = turn(v[3], 21) ^ v[0];
        v[2] = turn(v[2], 32);
    }
}

static void take_word(aq_siphash *h, uint64_t word)
{
    h->v[3] ^= word;
    mix(h->v, 2);
    h->v[0] ^= word;
}

void aq_siphash_begin(aq_siphash *h, const uint64_t key[static 2])
{
    *h = (aq_siphash){
        .v = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
              key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)}};
}

void aq_siphash_add(aq_siphash *h, const void *data, size_t len)
{
    const uint8_t *p = data;

    for (; len > 0; p++, len--) {
        h->part |= (uint64_t)*p << 8 * (h->len & 7);
        if ((++h->len & 7) == 0) {
            take_word(h, h->part);
            h->part = 0;
        }
    }
}

aq_siphash128 aq_siphash_end(const aq_siphash *h)
{
    aq_siphash last = *h;
    aq_siphash128 out;

    take_word(&last, last.part | last.len << 56);
    last.v[2] ^= 0xee;
    mix(last.v, 4);
    out.low = last.v[0] ^ last.v[1] ^ last.v[2] ^ last.v[3];
    last.v[1] ^= 0xdd;
    mix(last.v, 4);
    out.high = last.v[0] ^ last.v[1] ^ last.v[2] ^ last.v[3];
    return out;
}

void aq_siphash_key(uint64_t key[static 2])
{
    if (getrandom(key, 2 * sizeof *key, 0) != 2 * sizeof *key)
        aq_panic("no random numbers");
}
