/* Signed notes (C2SP signed-note, tlog-checkpoint) and verifier keys: writing ours, reading
 * anyone's. A note is believed only when the one key that the caller names has signed it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ledger/internal.h"

static const char dash[] = "\xe2\x80\x94 "; /* an em dash and a space begin a signature line */
enum { ED25519 = 1, SIGNATURES = 64 };

static bool good_name(const char *s, size_t len)
{
    if (len == 0 || len >= sizeof((aq_vkey *)0)->name)
        return false;
    for (size_t i = 0; i < len; i++)
        if (s[i] <= ' ' || s[i] == '+' || s[i] == 0x7f)
            return false; /* plain ASCII only: what else is a blank is a long list */
    return true;
}

aq_vkey aq_vkey_make(const char *name, const uint8_t public_key[static AQ_KEY_LEN])
{
    aq_auto_buf b = {0};
    aq_vkey v = {0};
    aq_digest d;

    if (!good_name(name, strlen(name)))
        aq_panic("the name of a ledger key has a blank or a plus in it");
    aq_buf_addf(&b, "%s\n%c", name, ED25519);
    aq_buf_add(&b, public_key, AQ_KEY_LEN);
    d = aq_sha256(b.data, b.len);
    memcpy(v.id, d.b, sizeof v.id);
    memcpy(v.key, public_key, AQ_KEY_LEN);
    snprintf(v.name, sizeof v.name, "%s", name);
    return v;
}

void aq_vkey_print(const aq_vkey *v, aq_buf *out)
{
    uint8_t key[1 + AQ_KEY_LEN];

    key[0] = ED25519;
    memcpy(key + 1, v->key, AQ_KEY_LEN);
    aq_buf_addf(out, "%s+", v->name);
    aq_hex(v->id, sizeof v->id, out);
    aq_buf_addc(out, '+');
    aq_base64(key, sizeof key, out);
}

int aq_vkey_parse(const char *text, aq_vkey *ret, aq_err *err)
{
    const char *first = strchr(text, '+'), *second = first ? strchr(first + 1, '+') : NULL;
    aq_auto_buf id = {0}, key = {0};
    char name[sizeof ret->name];
    aq_vkey v;

    if (!second || strlen(second) > 128 || !good_name(text, (size_t)(first - text)) ||
        second - first != 9 || aq_unhex(first + 1, 8, &id) < 0 ||
        aq_unbase64(second + 1, strlen(second + 1), &key) < 0 || key.len != 1 + AQ_KEY_LEN ||
        key.data[0] != ED25519)
        return aq_fail(err, -EBADMSG,
                       "not a verifier key of the form name+hash+key with an Ed25519 key");
    memcpy(name, text, (size_t)(first - text));
    name[first - text] = '\0';
    v = aq_vkey_make(name, (const uint8_t *)key.data + 1);
    if (memcmp(v.id, id.data, sizeof v.id) != 0)
        return aq_fail(err, -EBADMSG,
                       "the verifier key's hash does not belong to its name and key");
    *ret = v;
    return 0;
}

void aq_note_sign(const aq_keys *keys, const aq_vkey *v, const aq_checkpoint *c, aq_buf *out)
{
    uint8_t sig[sizeof v->id + AQ_ED25519_SIG];
    size_t start = out->len;

    aq_buf_addf(out, "%s\n%llu\n", v->name, (unsigned long long)c->size);
    aq_base64(c->root.b, sizeof c->root.b, out);
    aq_buf_addc(out, '\n');
    memcpy(sig, v->id, sizeof v->id);
    aq_key_sign(keys, AQ_KEY_LEDGER, out->data + start, out->len - start, sig + sizeof v->id);
    aq_buf_addf(out, "\n%s%s ", dash, v->name);
    aq_base64(sig, sizeof sig, out);
    aq_buf_addc(out, '\n');
}

/* A decimal number without leading zeros, ending at `end`. */
static int read_size(const char *s, const char *end, uint64_t *ret)
{
    uint64_t n = 0;

    if (s == end || (*s == '0' && end - s > 1) || end - s > 19)
        return -EBADMSG;
    for (; s < end; s++) {
        if (*s < '0' || *s > '9')
            return -EBADMSG;
        n = n * 10 + (uint64_t)(*s - '0');
    }
    if (n > AQ_LEDGER_MAX)
        return -EBADMSG;
    *ret = n;
    return 0;
}

/* The three lines origin, size, root. */
static int read_body(const char *text, const char *end, const aq_vkey *v, aq_checkpoint *ret,
                     aq_err *err)
{
    size_t name = strlen(v->name);
    const char *size = text + name + 1, *root;
    aq_auto_buf hash = {0};
    aq_checkpoint c;

    if ((size_t)(end - text) <= name || memcmp(text, v->name, name) != 0 || text[name] != '\n')
        return aq_fail(err, -EBADMSG, "the checkpoint is of another origin than %s", v->name);
    root = memchr(size, '\n', (size_t)(end - size));
    if (!root || read_size(size, root, &c.size) < 0)
        return aq_fail(err, -EBADMSG, "line 2 of the checkpoint is not a size");
    root++;
    if (root >= end || memchr(root, '\n', (size_t)(end - root)) != end - 1 ||
        aq_unbase64(root, (size_t)(end - 1 - root), &hash) < 0 || hash.len != sizeof c.root.b)
        return aq_fail(err, -EBADMSG, "line 3 of the checkpoint is not its last one with a root");
    memcpy(c.root.b, hash.data, sizeof c.root.b);
    *ret = c;
    return 0;
}

/* One signature line without its newline: 1 when it is by `v` and holds, 0 when by another. */
static int read_signature(const char *line, const char *end, const char *text, const char *text_end,
                          const aq_vkey *v, aq_err *err)
{
    const char *name = line + strlen(dash), *blank;
    aq_auto_buf sig = {0};

    if ((size_t)(end - line) < strlen(dash) || memcmp(line, dash, strlen(dash)) != 0 ||
        !(blank = memchr(name, ' ', (size_t)(end - name))) ||
        !good_name(name, (size_t)(blank - name)) ||
        aq_unbase64(blank + 1, (size_t)(end - blank - 1), &sig) < 0 || sig.len <= sizeof v->id)
        return aq_fail(err, -EBADMSG, "the checkpoint has a malformed signature line");
    if ((size_t)(blank - name) != strlen(v->name) ||
        memcmp(name, v->name, (size_t)(blank - name)) != 0 ||
        memcmp(sig.data, v->id, sizeof v->id) != 0)
        return 0;
    if (sig.len != sizeof v->id + AQ_ED25519_SIG ||
        aq_ed25519_verify(v->key, text, (size_t)(text_end - text),
                          (const uint8_t *)sig.data + sizeof v->id) < 0)
        return aq_fail(err, -EBADMSG, "the checkpoint's signature by %s does not hold", v->name);
    return 1;
}

int aq_note_open(const char *text, size_t len, const aq_vkey *v, aq_checkpoint *ret, aq_err *err)
{
    const char *end = text + len, *text_end, *line, *stop;
    aq_checkpoint c;
    int signatures = 0, ours = 0, r;

    if (len > AQ_NOTE_MAX)
        return aq_fail(err, -EFBIG, "the checkpoint is larger than %d bytes", AQ_NOTE_MAX);
    if (len < 4 || end[-1] != '\n' || memchr(text, '\0', len) || !aq_utf8_valid(text, len))
        return aq_fail(err, -EBADMSG, "the checkpoint is not a signed note");
    /* The signatures begin after the last empty line. */
    for (text_end = end - 1; text_end > text && !(text_end[-1] == '\n' && text_end[0] == '\n');)
        text_end--;
    if (text_end == text)
        return aq_fail(err, -EBADMSG, "the checkpoint has no signature");
    r = read_body(text, text_end, v, &c, err);
    for (line = text_end + 1; r == 0 && line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        r = ++signatures > SIGNATURES
                ? aq_fail(err, -EBADMSG, "the checkpoint has too many signatures")
                : read_signature(line, stop, text, text_end, v, err);
        ours += r > 0;
        r = r > 0 ? 0 : r;
    }
    if (r < 0)
        return r;
    if (ours != 1)
        return aq_fail(err, -EBADMSG, "the checkpoint has %s signature by %s",
                       ours ? "more than one" : "no", v->name);
    *ret = c;
    return 0;
}
