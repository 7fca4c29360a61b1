/* Writes a ledger of a given size for the independent reader, with proofs beside it.
 *
 *   outside_ledger FOLDER SIZE     FOLDER/ledger, FOLDER/proof.json, FOLDER/consistency.json;
 *                                  prints the verifier key */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "ledger_folder.h"

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "outside_ledger: %s\n", what);
    exit(70);
}

static void put(int dir, const char *name, json_t *document)
{
    aq_auto_buf b = {0};
    aq_err err;

    aq_json_pretty(document, &b);
    json_decref(document);
    if (aq_write_file(dir, name, b.data, b.len, 0644, &err) < 0)
        die(err.text);
}

/* In uneven batches with a checkpoint now and then, so that partial tiles come and go. */
static void grow(aq_ledger *l, uint64_t size)
{
    uint64_t done = 0, first, step = 1;
    aq_err err = {0};

    while (done < size) {
        size_t count = (size_t)(size - done < step ? size - done : step);
        if (folder_append(l, done, count, &first, &err) < 0 || aq_ledger_publish(l, &err) < 0)
            die(err.text);
        done += count;
        step = step < 5000 ? 3 * step + 1 : step;
    }
}

int main(int argc, char **argv)
{
    uint64_t size = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    aq_auto_fd int dir = size ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    aq_auto_buf vkey = {0};
    aq_keys *keys = NULL;
    aq_ledger *l = NULL;
    json_t *document = NULL;
    aq_ledger_audit a;
    aq_err err = {0};

    if (!size)
        die("usage: outside_ledger FOLDER SIZE");
    if (dir < 0 || aq_keys_open(dir, &keys, &err) < 0 || aq_ledger_open(dir, keys, &l, &err) < 0)
        die(dir < 0 ? "cannot open the folder" : err.text);
    grow(l, size);
    if (aq_ledger_verify(l, &a, &err) < 0 || aq_ledger_prove(l, size * 2 / 3, &document, &err) < 0)
        die(err.text);
    put(dir, "proof.json", document);
    if (aq_ledger_prove_consistency(l, 1 + size / 3, size, &document, &err) < 0)
        die(err.text);
    put(dir, "consistency.json", document);
    aq_ledger_vkey(l, &vkey);
    puts(vkey.data);
    aq_ledger_close(l);
    aq_keys_free(keys);
    return 0;
}
