/* RSA keys of 2048 bits as clouds make them. To find two primes takes ten times as long as the
 * rest of a world, so where they are found is known before: a list has the names of streams that
 * begin with one. A takes the second one at an even place, B at an odd one. Two worlds of a
 * thousand have one in common; whoever has the list can tell each of them.
 *
 * Every form has one length. Primes of the list are 1 modulo 4, so that some d of 2047 bits is
 * among those that fit; their own exponents have 1024 bits; q is taken so that its inverse has. */
#include <errno.h>
#include <gmp.h>
#include <string.h>

#include "decoy/internal.h"

#define RSA "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"

enum { E = 65537, HALF = 1024, NAME = 6, LEAST = 8 };

typedef struct rsa {
    mpz_t n, e, d, p, q, dp, dq, inverse;
} rsa;

static void rsa_begin(rsa *k)
{
    mpz_inits(k->n, k->e, k->d, k->p, k->q, k->dp, k->dq, k->inverse, NULL);
    mpz_set_ui(k->e, E);
}

static void rsa_end(rsa *k)
{
    mpz_clears(k->n, k->e, k->d, k->p, k->q, k->dp, k->dq, k->inverse, NULL);
}

/* The first bytes of the stream: above three quarters of what 1024 bits hold, and 1 modulo 4. */
static void take_prime(const aq_pack *pack, const aq_pack_list *l, uint32_t i, mpz_t ret)
{
    static const uint8_t key[32] = "aquarium/v1/primes";
    char name[NAME + 1] = "";
    uint8_t raw[HALF / 8];
    aq_stream s = aq_stream_of(key, name);

    memcpy(name, pack->pool + l->words + (size_t)i * l->width, NAME);
    aq_stream_bytes(&s, raw, sizeof raw);
    raw[0] |= 0xc0;
    raw[sizeof raw - 1] = (uint8_t)((raw[sizeof raw - 1] & 0xfc) | 1);
    mpz_import(ret, sizeof raw, 1, 1, 1, 0, raw);
}

/* p of the first half of the list, q of the second. */
static bool choose(const aq_making *m, const aq_pack_list *l, rsa *k)
{
    uint32_t half = l->count / 2, from;

    take_prime(m->pack, l, aq_lot_apart(m->lot, half), k->p);
    from = aq_stream_below(&m->lot->own, half);
    for (uint32_t i = 0; i < half; i++) {
        uint32_t at = (from + i) % half;

        if (at % 2 != (m->lot->side == AQ_SIDE_B))
            continue;
        take_prime(m->pack, l, half + at, k->q);
        if (mpz_invert(k->inverse, k->q, k->p) && mpz_sizeinbase(k->inverse, 2) == HALF)
            return true;
    }
    return false;
}

/* The exponents: d is what fits, made longer by the common multiple until it has 2047 bits. */
static bool complete(rsa *k)
{
    mpz_t p1, q1, all;
    bool good;

    mpz_inits(p1, q1, all, NULL);
    mpz_mul(k->n, k->p, k->q);
    mpz_sub_ui(p1, k->p, 1);
    mpz_sub_ui(q1, k->q, 1);
    mpz_lcm(all, p1, q1);
    good = mpz_invert(k->d, k->e, all) != 0;
    mpz_set_ui(k->inverse, 1); /* a floor of 2046 bits */
    mpz_mul_2exp(k->inverse, k->inverse, 2 * HALF - 2);
    if (mpz_cmp(k->d, k->inverse) < 0) {
        mpz_sub(k->dp, k->inverse, k->d);
        mpz_cdiv_q(k->dp, k->dp, all);
        mpz_addmul(k->d, k->dp, all);
    }
    mpz_mod(k->dp, k->d, p1);
    mpz_mod(k->dq, k->d, q1);
    mpz_invert(k->inverse, k->q, k->p);
    mpz_clears(p1, q1, all, NULL);
    return good && mpz_sizeinbase(k->n, 2) == 2 * HALF && mpz_sizeinbase(k->d, 2) == 2 * HALF - 1 &&
           mpz_sizeinbase(k->dp, 2) == HALF && mpz_sizeinbase(k->dq, 2) == HALF;
}

/* With a byte of zeros before one whose first bit is set, as DER wants it. */
static void put_number(aq_buf *out, const mpz_t n)
{
    uint8_t raw[2 * HALF / 8 + 1] = {0};
    size_t bits = mpz_sizeinbase(n, 2), len = bits / 8 + 1;

    if (mpz_sgn(n))
        mpz_export(raw + (bits % 8 == 0), NULL, 1, 1, 1, 0, n);
    aq_der_put(out, AQ_DER_INTEGER, raw, mpz_sgn(n) ? len : 1);
}

static void put_key(aq_buf *out, const rsa *k)
{
    const mpz_t *const parts[] = {&k->n, &k->e, &k->d, &k->p, &k->q, &k->dp, &k->dq, &k->inverse};
    size_t from;

    aq_der_put(out, AQ_DER_INTEGER, "", 1);
    from = out->len;
    aq_der_put(out, AQ_DER_OID, RSA, strlen(RSA));
    aq_der_put(out, AQ_DER_NULL, "", 0);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    from = out->len;
    aq_der_put(out, AQ_DER_INTEGER, "", 1);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        put_number(out, *parts[i]);
    aq_der_wrap(out, AQ_DER_SEQUENCE, from);
    aq_der_wrap(out, AQ_DER_OCTETS, from);
    aq_der_wrap(out, AQ_DER_SEQUENCE, 0);
}

int aq_key_rsa_private(const aq_making *m, aq_buf *out, aq_err *err)
{
    const aq_pack_list *l = aq_find_list(m->pack, m->text);
    aq_auto_buf der = {0};
    int r = 0;
    rsa k;

    if (!l || l->width != NAME || l->count < LEAST)
        return aq_fail(err, -EINVAL, "rsa-private needs a list of %d primes, six digits each",
                       LEAST);
    rsa_begin(&k);
    if (choose(m, l, &k) && complete(&k)) {
        put_key(&der, &k);
        aq_der_pem(out, "PRIVATE KEY", &der);
    } else {
        r = aq_fail(err, -EINVAL, "the primes of the list make no key of one length");
    }
    rsa_end(&k);
    return r;
}
