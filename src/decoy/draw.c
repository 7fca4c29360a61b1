/* Seeded draws. Every value has streams of its own, named after its decoy, so that adding a decoy
 * to a pack changes no other. The first symbol of every draw is taken from the stream that A and B
 * share, in a way that makes them differ: two worlds of one seed cannot meet by chance. */
#include <string.h>

#include "base/digest.h"
#include "decoy/internal.h"

static const char *const symbols[] = {
#define AQ_ALPHABET(id, name, symbols, first) symbols,
#include "decoy/alphabets.def"
#undef AQ_ALPHABET
};

const char *aq_side_name(aq_side side)
{
    return side == AQ_SIDE_A ? "A" : "B";
}

aq_seed aq_seed_of_text(const char *text)
{
    static const char label[] = "aquarium/v1/seed"; /* with its NUL */
    aq_auto_buf all = {0};
    aq_digest d;
    aq_seed s;

    aq_buf_add(&all, label, sizeof label);
    aq_buf_adds(&all, text);
    d = aq_sha256(all.data, all.len);
    memcpy(s.b, d.b, sizeof s.b);
    explicit_bzero(all.data, all.len); /* children must not find it */
    return s;
}

static void derive(const char *label, const aq_seed *seed, const char *more, uint8_t out[static 32])
{
    uint8_t all[128];
    size_t n = strlen(label) + 1, m = strlen(more);
    aq_digest d;

    memcpy(all, label, n);
    memcpy(all + n, seed->b, sizeof seed->b);
    memcpy(all + n + sizeof seed->b, more, m);
    d = aq_sha256(all, n + sizeof seed->b + m);
    memcpy(out, d.b, sizeof d.b);
}

void aq_draws_begin(aq_draws *d, const aq_seed *seed, aq_side side)
{
    d->side = side;
    derive("aquarium/v1/decoy-pair", seed, "", d->pair);
    derive("aquarium/v1/decoy-own", seed, aq_side_name(side), d->own);
}

void aq_seed_entropy(const aq_seed *seed, uint8_t out[static 32])
{
    derive("aquarium/v1/entropy", seed, "", out);
}

int64_t aq_seed_start(const aq_seed *seed, int64_t now)
{
    enum { HOUR = 3600, DAY = 24 * HOUR, WEEK = 7 * DAY, MONDAY = 4 * DAY }; /* 5 January 1970 */
    uint8_t key[32] = {0};
    aq_stream s = aq_stream_of(key, "start");
    int64_t monday = now - ((now - MONDAY) % WEEK + WEEK) % WEEK;

    derive("aquarium/v1/clock", seed, "", key);
    monday += (int64_t)aq_stream_below(&s, 5) * DAY - WEEK;
    return monday + 8 * HOUR + aq_stream_below(&s, 9 * HOUR);
}

aq_lot aq_lot_of(const aq_draws *d, const char *name)
{
    return (aq_lot){aq_stream_of(d->pair, name), aq_stream_of(d->own, name), d->side};
}

/* A takes one, B another that is neither: both streams are read alike, so that what follows is the
 * same draw on both sides. */
uint32_t aq_lot_apart(aq_lot *l, uint32_t limit)
{
    uint32_t a = aq_stream_below(&l->pair, limit);
    uint32_t step = 1 + aq_stream_below(&l->pair, limit - 1);

    return l->side == AQ_SIDE_A ? a : (a + step) % limit;
}

static void draw(aq_lot *l, const aq_piece *p, aq_buf *out)
{
    const char *set = symbols[p->at];
    uint32_t size = (uint32_t)strlen(set);

    aq_buf_reserve(out, p->len);
    aq_buf_addc(out, set[p->from + aq_lot_apart(l, (uint32_t)(p->to - p->from) + 1)]);
    for (uint32_t i = 1; i < p->len; i++) {
        uint8_t two[2];

        aq_stream_bytes(&l->own, two, sizeof two);
        aq_buf_addc(out, set[((uint32_t)two[0] | (uint32_t)two[1] << 8) * size >> 16]);
    }
}

static void say(aq_lot *l, const char *pattern, size_t len, aq_buf *out)
{
    static const struct {
        char mark;
        const char *set;
    } kinds[] = {{'c', "bdfghjklmnprstvz"},
                 {'v', "aeiou"},
                 {'C', "BDFGHJKLMNPRSTVZ"},
                 {'V', "AEIOU"},
                 {'d', "0123456789"}};
    bool first = true;

    for (size_t i = 0; i < len; i++, first = false) {
        const char *set = "";
        uint32_t size = 0;

        if (pattern[i] == '[') {
            set = pattern + i + 1;
            size = (uint32_t)strcspn(set, "]");
            i += size + 1;
        }
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds && size == 0; k++)
            if (kinds[k].mark == pattern[i]) {
                set = kinds[k].set;
                size = (uint32_t)strlen(set);
            }
        aq_buf_addc(out, set[first ? aq_lot_apart(l, size) : aq_stream_below(&l->own, size)]);
    }
}

void aq_lot_piece(aq_lot *l, const aq_pack *pack, const aq_piece *p, aq_buf *out)
{
    const aq_pack_list *list;

    switch ((aq_piece_kind)p->kind) {
    case AQ_PIECE_TEXT:
        aq_buf_add(out, pack->pool + p->at, p->len);
        return;
    case AQ_PIECE_DRAW:
        draw(l, p, out);
        return;
    case AQ_PIECE_SAY:
        say(l, pack->pool + p->at, p->len, out);
        return;
    case AQ_PIECE_WORD:
        list = &pack->lists[p->at];
        aq_buf_add(out,
                   pack->pool + list->words + (size_t)aq_lot_apart(l, list->count) * list->width,
                   list->width);
        return;
    case AQ_PIECE_DECOY: /* its maker knows the value */
        return;
    }
}
