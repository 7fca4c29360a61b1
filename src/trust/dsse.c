/* DSSE envelopes with exactly one signature. Only the bytes that were signed are ever parsed: the
 * payload is handed out after the signature held, never before. */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "trust/evidence.h"

void aq_dsse_pae(aq_buf *out, const char *payload_type, const void *payload, size_t len)
{
    aq_buf_addf(out, "DSSEv1 %zu %s %zu ", strlen(payload_type), payload_type, len);
    aq_buf_add(out, payload, len);
}

json_t *aq_dsse_sign(const aq_keys *k, aq_key_use use, const char *payload_type,
                     const void *payload, size_t len)
{
    aq_auto_buf pae = {0}, body = {0}, signature = {0};
    uint8_t sig[AQ_ED25519_SIG];
    char id[AQ_KEY_ID];
    json_t *envelope;

    aq_dsse_pae(&pae, payload_type, payload, len);
    aq_key_sign(k, use, pae.data, pae.len, sig);
    aq_base64(payload, len, &body);
    aq_base64(sig, sizeof sig, &signature);
    envelope = json_pack("{s:s, s:s, s:[{s:s, s:s}]}", "payload", aq_buf_str(&body), "payloadType",
                         payload_type, "signatures", "keyid", aq_key_id(k, use, id), "sig",
                         signature.data);
    if (!envelope)
        aq_panic("cannot build a DSSE envelope");
    return envelope;
}

/* Shape, and the decoded payload and signature. */
static int read_envelope(const json_t *envelope, const char *payload_type, const char *keyid,
                         aq_buf *payload, aq_buf *sig, aq_err *err)
{
    static const char *const keys[] = {"payload", "payloadType", "signatures", NULL};
    static const char *const signature_keys[] = {"keyid", "sig", NULL};
    const json_t *list = json_object_get(envelope, "signatures");
    const json_t *one = json_array_get(list, 0);
    const char *type = aq_json_str(envelope, "payloadType");
    const char *body = aq_json_str(envelope, "payload");
    const char *id, *text;
    int r = aq_json_only_keys(envelope, "envelope", keys, err);

    if (r < 0)
        return r;
    if (json_array_size(list) != 1)
        return aq_fail(err, -EBADMSG, "an envelope has exactly one signature");
    r = aq_json_only_keys(one, "envelope.signatures[0]", signature_keys, err);
    if (r < 0)
        return r;
    if (!type || strcmp(type, payload_type) != 0)
        return aq_fail(err, -EBADMSG, "envelope.payloadType is not %s", payload_type);
    id = aq_json_str(one, "keyid");
    if (!id || strcmp(id, keyid) != 0)
        return aq_fail(err, -ENOKEY, "signed with another key than %s", keyid);
    text = aq_json_str(one, "sig");
    if (!text || strlen(text) > 2 * AQ_ED25519_SIG || aq_unbase64(text, strlen(text), sig) < 0 ||
        sig->len != AQ_ED25519_SIG)
        return aq_fail(err, -EBADMSG, "envelope.signatures[0].sig is not a signature in base64");
    if (!body || strlen(body) > (AQ_DSSE_PAYLOAD + 2) / 3 * 4 ||
        aq_unbase64(body, strlen(body), payload) < 0 || payload->len > AQ_DSSE_PAYLOAD)
        return aq_fail(err, -EBADMSG, "envelope.payload is not base64 of at most %d bytes",
                       AQ_DSSE_PAYLOAD);
    return 0;
}

int aq_dsse_verify(const json_t *envelope, const uint8_t public_key[static AQ_KEY_LEN],
                   const char *payload_type, aq_buf *payload, aq_err *err)
{
    aq_auto_buf body = {0}, sig = {0}, pae = {0};
    char id[AQ_KEY_ID];
    int r = read_envelope(envelope, payload_type, aq_public_id(public_key, id), &body, &sig, err);

    if (r < 0)
        return r;
    aq_dsse_pae(&pae, payload_type, aq_buf_str(&body), body.len);
    r = aq_ed25519_verify(public_key, pae.data, pae.len, (const uint8_t *)sig.data);
    if (r < 0)
        return aq_fail(err, r, "the signature does not belong to this payload and key %s", id);
    aq_buf_add(payload, body.data, body.len);
    return 0;
}
