/* Recognises the text of a licence by its own words. Reads hostile bytes: runs in the jailed job
 * "gate". Bounded by the length it is given; looks for fixed phrases, so it cannot be slowed down.
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "cleanroom/gate.h"

static const struct {
    const char *name, *ids;
} families[AQ_LICENSE_FAMILIES] = {
#define AQ_LICENSE_FAMILY(id, name, ids) [AQ_LICENSE_##id] = {name, ids},
#define AQ_LICENSE_PHRASES(id, all, none)
#include "cleanroom/l0_licenses.def"
#undef AQ_LICENSE_FAMILY
#undef AQ_LICENSE_PHRASES
};

static const struct {
    aq_license_family family;
    const char *all, *none;
} phrases[] = {
#define AQ_LICENSE_FAMILY(id, name, ids)
#define AQ_LICENSE_PHRASES(id, all, none) {AQ_LICENSE_##id, all, none},
#include "cleanroom/l0_licenses.def"
#undef AQ_LICENSE_FAMILY
#undef AQ_LICENSE_PHRASES
};

_Static_assert(AQ_LICENSE_FAMILIES <= 32, "families are bits of one mask");

const char *aq_license_family_name(aq_license_family family)
{
    return families[family].name;
}

uint32_t aq_license_families(const char *id)
{
    aq_auto_buf word = {0};
    uint32_t mask = 0;

    aq_buf_addf(&word, " %s ", id);
    for (unsigned i = 0; i < AQ_LICENSE_FAMILIES; i++)
        if (strcasestr(families[i].ids, aq_buf_str(&word)))
            mask |= 1u << i;
    return mask;
}

/* Lower case, every run of other bytes than letters and digits as one space. */
static void normalise(const char *text, size_t len, aq_buf *out)
{
    bool gap = true;

    aq_buf_reserve(out, len + 2);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (isalnum(c)) {
            aq_buf_addc(out, (char)tolower(c));
            gap = false;
        } else if (!gap) {
            aq_buf_addc(out, ' ');
            gap = true;
        }
    }
    aq_buf_str(out);
}

/* How many of the phrases stand in the text; `*total` is how many there are. */
static size_t count_phrases(const char *text, const char *list, size_t *total)
{
    size_t found = 0;

    *total = 0;
    while (*list) {
        size_t len = strcspn(list, "|");
        aq_auto_buf phrase = {0};

        aq_buf_add(&phrase, list, len);
        *total += 1;
        found += strstr(text, aq_buf_str(&phrase)) != NULL;
        list += len + (list[len] == '|');
    }
    return found;
}

uint32_t aq_license_recognise(const char *text, size_t len)
{
    aq_auto_buf plain = {0};
    uint32_t mask = 0;

    normalise(text, len, &plain);
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        size_t total, none;

        if (count_phrases(aq_buf_str(&plain), phrases[i].all, &total) == total &&
            count_phrases(aq_buf_str(&plain), phrases[i].none, &none) == 0)
            mask |= 1u << phrases[i].family;
    }
    return mask;
}
