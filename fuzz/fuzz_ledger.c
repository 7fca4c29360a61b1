/* Everything that reads a ledger's files: journal records, signed notes and verifier keys, proofs,
 * entry bundles, entries. The first byte chooses the reader; of a bundle, the second is its
 * width. */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "ledger/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int touch(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    aq_digest *d = arg;

    aq_entry_check(entry, len, index, d, err); /* its answer may be anything; it must come back */
    *d = aq_tree_leaf(entry, len);
    return 0;
}

static void records(const char *data, size_t size)
{
    const char *entry;
    size_t at = 0, len;
    aq_digest leaf;

    while (aq_record_read(data, size, at, &entry, &len, &leaf) == AQ_RECORD_WHOLE)
        at += 2 + len + AQ_SHA256_LEN;
}

/* First line: a verifier key. The rest: a note. */
static void notes(const char *data, size_t size)
{
    const char *end = memchr(data, '\n', size);
    aq_auto_buf key = {0};
    aq_checkpoint c;
    aq_vkey v;
    aq_err err;

    if (!end)
        return;
    aq_buf_add(&key, data, (size_t)(end - data));
    if (aq_vkey_parse(aq_buf_str(&key), &v, &err) == 0)
        aq_note_open(end + 1, size - (size_t)(end + 1 - data), &v, &c, &err);
}

static void proofs(const char *data, size_t size)
{
    static const char vkey[] =
        "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx";
    aq_auto_json json_t *proof = NULL;
    aq_err err;

    if (aq_json_parse(data, size, "proof", &proof, &err) < 0)
        return;
    aq_ledger_check(proof, vkey, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    aq_digest prev = {{0}};
    aq_err err;

    if (size == 0)
        return 0;
    switch (data[0] % 5) {
    case 0:
        records(text, size - 1);
        break;
    case 1:
        notes(text, size - 1);
        break;
    case 2:
        proofs(text, size - 1);
        break;
    case 3:
        if (size > 1)
            aq_bundle_parse(text + 1, size - 2, 7, data[1], true, touch, &prev, &err);
        break;
    default:
        aq_entry_check(text, size - 1, 0, &prev, &err);
    }
    return 0;
}
