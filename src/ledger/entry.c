/* Entries: how one is written, and how one is checked when read back.
 *
 * Index and previous hash are known only under the sequence's lock, so everything else is written
 * before it: a draft is the canonical text with two holes. Under the lock the holes are filled. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "ledger/internal.h"

static const char schema[] = "aquarium/ledger/v1";
enum { KIND_MAX = 64, KEYS_MAX = 64 };

typedef enum own { OWN_INDEX, OWN_PREV, OWN_SCHEMA, OWN_TIME, OWN_COUNT } own;
static const char *const own_keys[OWN_COUNT] = {"index", "prev", "schema", "time"};

/* Keys are plain words, so that byte order is the canonical order. */
static bool plain_key(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return n > 0 && n <= 64 && s[n] == '\0';
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of body and ledger together, sorted. */
static int collect_keys(const json_t *body, const char **keys, size_t *count, aq_err *err)
{
    const char *kind = aq_json_str(body, "kind"), *key;
    json_t *value;
    size_t n = 0;

    if (!kind || !*kind || strlen(kind) > KIND_MAX)
        return aq_fail(err, -EINVAL, "a ledger entry needs a kind of at most %d bytes", KIND_MAX);
    if (json_object_size(body) > KEYS_MAX)
        return aq_fail(err, -EINVAL, "a ledger entry has at most %d fields", KEYS_MAX);
    for (own i = 0; i < OWN_COUNT; i++) {
        if (json_object_get(body, own_keys[i]))
            return aq_fail(err, -EINVAL, "a ledger entry's \"%s\" is set by the ledger itself",
                           own_keys[i]);
        keys[n++] = own_keys[i];
    }
    json_object_foreach ((json_t *)body, key, value) {
        if (!plain_key(key))
            return aq_fail(err, -EINVAL, "\"%.80s\" is no name for a field of a ledger entry", key);
        keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, by_name);
    *count = n;
    return 0;
}

int aq_draft_make(const json_t *body, const char *time, aq_draft *ret, aq_err *err)
{
    const char *keys[KEYS_MAX + OWN_COUNT];
    size_t count = 0;
    int r = collect_keys(body, keys, &count, err);

    if (r < 0)
        return r;
    aq_buf_addc(&ret->text, '{');
    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *k = keys[i];
        aq_buf_adds(&ret->text, i ? ",\"" : "\"");
        aq_buf_adds(&ret->text, k);
        aq_buf_adds(&ret->text, "\":");
        if (k == own_keys[OWN_INDEX]) {
            ret->index = ret->text.len;
        } else if (k == own_keys[OWN_PREV]) {
            ret->prev = ret->text.len + 1;
            aq_buf_adds(&ret->text, "\"\"");
        } else if (k == own_keys[OWN_SCHEMA]) {
            aq_json_string(&ret->text, schema);
        } else if (k == own_keys[OWN_TIME]) {
            aq_json_string(&ret->text, time);
        } else {
            r = aq_json_canonical(json_object_get(body, k), &ret->text);
        }
    }
    aq_buf_addc(&ret->text, '}');
    if (r < 0)
        return aq_fail(err, -EINVAL, "a ledger entry holds a number that is not an integer");
    return 0;
}

void aq_draft_fill(const aq_draft *d, uint64_t index, const aq_digest *prev, aq_buf *entry)
{
    char number[24], hex[AQ_SHA256_HEX];
    int n = snprintf(number, sizeof number, "%llu", (unsigned long long)index);

    aq_buf_reserve(entry, d->text.len + AQ_SHA256_HEX + sizeof number);
    aq_buf_add(entry, d->text.data, d->index);
    aq_buf_add(entry, number, (size_t)n);
    aq_buf_add(entry, d->text.data + d->index, d->prev - d->index);
    aq_buf_add(entry, aq_digest_hex(prev, hex), AQ_SHA256_HEX - 1);
    aq_buf_add(entry, d->text.data + d->prev, d->text.len - d->prev);
}

int aq_entry_check(const void *entry, size_t len, uint64_t index, const aq_digest *prev,
                   aq_err *err)
{
    aq_auto_json json_t *e = NULL;
    aq_auto_buf again = {0};
    char hex[AQ_SHA256_HEX];
    const char *s, *kind;
    int64_t t;
    int r = aq_json_parse(entry, len, "entry", &e, err);

    if (r < 0)
        return r;
    if (aq_json_canonical(e, &again) < 0 || again.len != len || memcmp(again.data, entry, len) != 0)
        return aq_fail(err, -EBADMSG, "it is not in canonical form");
    s = aq_json_str(e, "schema");
    if (!s || strcmp(s, schema) != 0)
        return aq_fail(err, -EBADMSG, "its schema is not %s", schema);
    if (aq_json_int(e, "index", -1) != (int64_t)index)
        return aq_fail(err, -EBADMSG, "it carries another index");
    s = aq_json_str(e, "prev");
    if (!s || strcmp(s, aq_digest_hex(prev, hex)) != 0)
        return aq_fail(err, -EBADMSG, "it does not name the entry before it");
    s = aq_json_str(e, "time");
    kind = aq_json_str(e, "kind");
    if (!s || aq_time_parse(s, &t) < 0 || !kind || !*kind || strlen(kind) > KIND_MAX)
        return aq_fail(err, -EBADMSG, "its time or kind is missing or malformed");
    return 0;
}
