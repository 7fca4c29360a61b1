/* The ledger: entries, publishing, proofs, audit, and every byte of its files flipped. Where
 * AQUARIUM_DATA names a folder with outside checkpoints, those are read too. */
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "ledger_folder.h"

static void append(ledger_folder *f, uint64_t from, size_t count)
{
    uint64_t first = UINT64_MAX;
    aq_err err = {0};

    if (folder_append(f->ledger, from, count, &first, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(first, from);
}

static void publish(ledger_folder *f)
{
    aq_err err = {0};

    if (aq_ledger_publish(f->ledger, &err) < 0)
        fail_msg("%s", err.text);
}

static void verify(ledger_folder *f, uint64_t entries, uint64_t published)
{
    aq_ledger_audit a = {0};
    aq_err err = {0};

    if (aq_ledger_verify(f->ledger, &a, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(a.entries, entries);
    assert_int_equal(a.published, published);
}

static bool there(ledger_folder *f, const char *path)
{
    return faccessat(f->fd, path, F_OK, 0) == 0;
}

static void entries_chain(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf e = {0};
    aq_auto_json json_t *j = NULL;
    aq_auto_json json_t *body = json_pack("{s:s, s:s}", "kind", "stage", "digest", "ab");
    char hex[AQ_SHA256_HEX];
    aq_digest leaf, again;
    uint64_t index;
    aq_err err;

    verify(f, 0, 0);
    assert_int_equal(aq_ledger_append(f->ledger, body, &index, &leaf, &err), 0);
    assert_int_equal(index, 0);
    assert_int_equal(aq_ledger_entry(f->ledger, 0, &e, &err), 0);
    again = aq_tree_leaf(e.data, e.len);
    assert_true(aq_digest_equal(&leaf, &again));
    assert_int_equal(aq_json_parse(e.data, e.len, "entry", &j, &err), 0);
    assert_int_equal(json_object_size(j), 6);
    assert_string_equal(aq_json_str(j, "prev"),
                        "0000000000000000000000000000000000000000000000000000000000000000");
    assert_string_equal(aq_json_str(j, "schema"), "aquarium/ledger/v1");
    assert_int_equal(aq_ledger_append(f->ledger, body, &index, NULL, &err), 0);
    aq_buf_clear(&e);
    assert_int_equal(aq_ledger_entry(f->ledger, 1, &e, &err), 0);
    assert_non_null(strstr(e.data, aq_digest_hex(&leaf, hex)));
    assert_int_equal(aq_ledger_entry(f->ledger, 2, &e, &err), -ENOENT);
    verify(f, 2, 0);
}

static void bad_bodies_are_refused(void **state)
{
    ledger_folder *f = *state;
    char *long_text = aq_alloc(70000);
    json_t *bad[] = {
        json_object(),
        json_pack("{s:i}", "kind", 1),
        json_pack("{s:s}", "kind", ""),
        json_pack("{s:s, s:i}", "kind", "k", "index", 1),
        json_pack("{s:s, s:s}", "kind", "k", "prev", "x"),
        json_pack("{s:s, s:s}", "kind", "k", "schema", "x"),
        json_pack("{s:s, s:s}", "kind", "k", "time", "x"),
        json_pack("{s:s, s:f}", "kind", "k", "real", 0.5),
        json_pack("{s:s, s:s}", "kind", "k", "long", memset(long_text, 'a', 69999)),
        json_array(),
    };
    aq_err err;
    uint64_t index;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(aq_ledger_append(f->ledger, bad[i], &index, NULL, &err) < 0);
        json_decref(bad[i]);
    }
    free(long_text);
    verify(f, 0, 0);
    append(f, 0, 1); /* none of them left anything behind */
    verify(f, 1, 0);
}

static void publishing_drops_and_tidies(void **state)
{
    ledger_folder *f = *state;
    struct stat st;

    append(f, 0, 5);
    publish(f);
    verify(f, 5, 5);
    assert_true(there(f, "ledger/tile/0/000.p/5"));
    assert_true(there(f, "ledger/tile/entries/000.p/5"));
    append(f, 5, 251);
    publish(f);
    verify(f, 256, 256);
    assert_true(there(f, "ledger/tile/0/000") && there(f, "ledger/tile/1/000.p/1"));
    assert_false(there(f, "ledger/tile/0/000.p"));
    assert_false(there(f, "ledger/tile/entries/000.p"));
    assert_true(there(f, "ledger/journal/0")); /* the newest stays */
    append(f, 256, 1);
    publish(f);
    verify(f, 257, 257);
    assert_false(there(f, "ledger/journal/0"));
    append(f, 257, 1000); /* never split: all of them behind entry 256 */
    publish(f);
    verify(f, 1257, 1257);
    append(f, 1257, 10);
    publish(f);
    verify(f, 1267, 1267);
    assert_true(there(f, "ledger/journal/256")); /* its end is not in a full bundle yet */
    append(f, 1267, 190);
    publish(f);
    verify(f, 1457, 1457);
    assert_false(there(f, "ledger/journal/256"));
    assert_true(there(f, "ledger/journal/1257"));
    assert_int_equal(fstatat(f->fd, "ledger/tile/0/000", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(fstatat(f->fd, "ledger/checkpoint", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(fstatat(f->fd, "ledger/journal/1257", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fstatat(f->fd, "ledger/journal", &st, 0), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    publish(f); /* nothing new: nothing happens */
    verify(f, 1457, 1457);
}

/* A writer that was killed right after it made its segment: what was there before is still the
 * newest that has an entry, and stays although all of it is published. */
static void an_empty_segment_is_not_the_newest(void **state)
{
    ledger_folder *f = *state;
    aq_err err = {0};

    append(f, 0, 256);
    assert_int_equal(aq_write_file(f->fd, "ledger/journal/256", "", 0, 0600, &err), 0);
    publish(f);
    assert_true(there(f, "ledger/journal/0"));
    verify(f, 256, 256);
    append(f, 256, 1);
    publish(f);
    verify(f, 257, 257);
    assert_false(there(f, "ledger/journal/0"));
}

/* A length has two bytes: the longest entry that they can hold, and one byte more. */
static void the_longest_entry(void **state)
{
    ledger_folder *f = *state;
    aq_auto_free char *text = calloc(1, AQ_LEDGER_ENTRY + 2);
    aq_auto_buf entry = {0};
    size_t around;
    aq_err err = {0};
    uint64_t index;
    aq_digest leaf;

    append(f, 0, 1);
    for (int i = 0; i < 3; i++) {
        aq_auto_json json_t *body = json_pack("{s:s, s:s}", "kind", "test", "text", text);
        int r = aq_ledger_append(f->ledger, body, &index, &leaf, &err);
        assert_int_equal(r, i < 2 ? 0 : -E2BIG);
        if (i == 0) {
            assert_int_equal(aq_ledger_entry(f->ledger, index, &entry, &err), 0);
            around = entry.len;
            memset(text, 'x', AQ_LEDGER_ENTRY - around);
        } else if (i == 1) {
            aq_buf_clear(&entry);
            assert_int_equal(aq_ledger_entry(f->ledger, index, &entry, &err), 0);
            assert_int_equal(entry.len, AQ_LEDGER_ENTRY);
            text[strlen(text)] = 'x';
        }
    }
    publish(f);
    verify(f, 3, 3);
}

static void names_of_tiles(void **state)
{
    char out[AQ_TILE_PATH];

    (void)state;
    assert_string_equal(aq_tile_path(0, 0, AQ_TILE, out), "tile/0/000");
    assert_string_equal(aq_tile_path(2, 1234067, AQ_TILE, out), "tile/2/x001/x234/067");
    assert_string_equal(aq_tile_path(1, 1000, 7, out), "tile/1/x001/000.p/7");
    assert_string_equal(aq_tile_path(AQ_TILE_ENTRIES, 999, 255, out), "tile/entries/999.p/255");
}

static void proofs_hold(void **state)
{
    static const size_t batches[] = {1, 1, 1, 4, 100, 148, 1, 1, 255, 90};
    ledger_folder *f = *state;
    aq_auto_buf vkey = {0};
    uint64_t size = 0, index;
    aq_err err = {0};
    json_t *proof;

    aq_ledger_vkey(f->ledger, &vkey);
    assert_int_equal(aq_ledger_prove(f->ledger, 0, &proof, &err), -ERANGE);
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        append(f, size, batches[b]);
        size += batches[b];
        publish(f);
        for (index = 0; index < size; index += 1 + size / 9) {
            aq_auto_buf e = {0};
            aq_digest leaf;
            assert_int_equal(aq_ledger_entry(f->ledger, index, &e, &err), 0);
            leaf = aq_tree_leaf(e.data, e.len);
            assert_int_equal(aq_ledger_prove(f->ledger, index, &proof, &err), 0);
            assert_int_equal(aq_ledger_check_proof(proof, vkey.data, &leaf, index, &err), 0);
            assert_int_equal(aq_ledger_check_proof(proof, vkey.data, &leaf, index + 1, &err),
                             -EBADMSG);
            leaf.b[0] ^= 1;
            assert_int_equal(aq_ledger_check_proof(proof, vkey.data, &leaf, index, &err), -EBADMSG);
            json_decref(proof);
            assert_int_equal(aq_ledger_prove_consistency(f->ledger, index + 1, size, &proof, &err),
                             0);
            assert_int_equal(aq_ledger_check_consistency(proof, vkey.data, &err), 0);
            json_decref(proof);
        }
    }
    assert_int_equal(aq_ledger_prove_consistency(f->ledger, 5, size + 1, &proof, &err), -ERANGE);
    verify(f, size, size);
}

static void no_flipped_byte_of_a_proof_survives(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf vkey = {0}, text = {0};
    aq_auto_json json_t *proof = NULL;
    aq_auto_buf e = {0};
    aq_digest leaf;
    aq_err err;

    append(f, 0, 21);
    publish(f);
    aq_ledger_vkey(f->ledger, &vkey);
    assert_int_equal(aq_ledger_entry(f->ledger, 11, &e, &err), 0);
    leaf = aq_tree_leaf(e.data, e.len);
    assert_int_equal(aq_ledger_prove(f->ledger, 11, &proof, &err), 0);
    assert_int_equal(aq_json_canonical(proof, &text), 0);
    for (size_t i = 0; i < text.len; i++) {
        aq_auto_json json_t *bad = NULL;
        char was = text.data[i];
        text.data[i] = (char)(was ^ 1 << i % 8);
        if (aq_json_parse(text.data, text.len, "proof", &bad, &err) == 0 &&
            aq_ledger_check_proof(bad, vkey.data, &leaf, 11, &err) == 0)
            fail_msg("byte %zu", i);
        text.data[i] = was;
    }
    for (size_t i = 0; i < vkey.len; i++) {
        vkey.data[i] ^= 1;
        assert_true(aq_ledger_check_proof(proof, vkey.data, &leaf, 11, &err) < 0);
        vkey.data[i] ^= 1;
    }
}

/* Flips one bit of every byte of a file; the audit must find each and name the file. */
static void flip_all(ledger_folder *f, const char *path, const char *named, size_t stride)
{
    aq_auto_fd int fd = openat(f->fd, path, O_RDWR | O_CLOEXEC);
    aq_auto_buf b = {0};
    aq_err err;

    assert_true(fd >= 0);
    assert_int_equal(aq_read_fd(fd, path, 1 << 24, &b, &err), 0);
    for (size_t i = 0; i < b.len; i += stride) {
        char c = (char)(b.data[i] ^ 1 << i % 8);
        aq_ledger_audit a;
        aq_ledger *reader = NULL;
        int r;
        assert_int_equal(pwrite(fd, &c, 1, (off_t)i), 1);
        r = aq_ledger_open(f->fd, NULL, &reader, &err);
        if (r == 0)
            r = aq_ledger_verify(reader, &a, &err);
        if (r == 0)
            fail_msg("%s: byte %zu of %zu", path, i, b.len);
        if (!strstr(err.text, named))
            fail_msg("%s: byte %zu: %s", path, i, err.text);
        aq_ledger_close(reader);
        assert_int_equal(pwrite(fd, &b.data[i], 1, (off_t)i), 1);
    }
}

static void no_flipped_byte_of_a_file_survives(void **state)
{
    ledger_folder *f = *state;

    append(f, 0, 3);
    publish(f);
    append(f, 3, 1); /* not published */
    verify(f, 4, 3);
    flip_all(f, "ledger/tile/0/000.p/3", "tile/0/000.p/3", 1);
    flip_all(f, "ledger/tile/entries/000.p/3", "", 1);
    flip_all(f, "ledger/journal/0", "journal", 1);
    flip_all(f, "ledger/checkpoint", "checkpoint", 1);
    flip_all(f, "ledger/vkey", "vkey", 1);
    verify(f, 4, 3);
}

/* The same for full tiles, in larger steps: every look reads 259 entries. */
static void no_flipped_byte_of_a_full_tile_survives(void **state)
{
    ledger_folder *f = *state;

    append(f, 0, 256);
    append(f, 256, 2);
    publish(f);
    append(f, 258, 1);
    verify(f, 259, 258);
    flip_all(f, "ledger/tile/0/000", "tile/0/000", 331);
    flip_all(f, "ledger/tile/0/001.p/2", "tile/0/001.p/2", 7);
    flip_all(f, "ledger/tile/1/000.p/1", "tile/1/000.p/1", 3);
    flip_all(f, "ledger/tile/entries/000", "tile/entries/000", 1409);
    flip_all(f, "ledger/journal/256", "journal", 41);
    verify(f, 259, 258);
}

/* Signs a checkpoint with the ledger's own key, whatever it says. */
static void sign_root(ledger_folder *f, uint64_t size, const aq_digest *root)
{
    aq_checkpoint c = {size, *root};
    aq_auto_buf note = {0};
    aq_err err = {0};

    aq_note_sign(f->keys, &f->ledger->vkey, &c, &note);
    if (aq_tile_put(f->ledger->root, "checkpoint", note.data, note.len, &err) < 0)
        fail_msg("%s", err.text);
}

/* A good signature over a root that the entries do not have: the audit compares, it does not
 * believe the key. At sizes with one tile, with full tiles, and with both. */
static void a_signed_root_must_be_that_of_the_tree(void **state)
{
    static const size_t batches[] = {1, 2, 253, 1, 255, 40};
    ledger_folder *f = *state;
    aq_auto_buf note = {0};
    uint64_t size = 0, said;
    aq_digest root, older = aq_tree_empty();
    aq_ledger_audit a;
    aq_err err = {0};

    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        append(f, size, batches[i]);
        size += batches[i];
        publish(f);
        assert_int_equal(aq_ledger_checkpoint(f->ledger, &note, &said, &root, &err), 0);
        assert_int_equal(said, size);
        for (unsigned bend = 0; bend < 3; bend++) {
            aq_digest bad = root;
            if (bend == 2)
                bad = older; /* the root of the tree before the last entries */
            else
                bad.b[bend ? AQ_SHA256_LEN - 1 : 0] ^= 1;
            sign_root(f, size, &bad);
            assert_int_equal(aq_ledger_verify(f->ledger, &a, &err), -EBADMSG);
            assert_non_null(strstr(err.text, "checkpoint: its root is not that of"));
            assert_int_equal(a.published, 0);
        }
        sign_root(f, size, &root);
        verify(f, size, size);
        older = root;
    }
}

static void lost_files_are_found(void **state)
{
    static const char *const files[] = {"ledger/tile/0/000", "ledger/tile/0/001.p/4",
                                        "ledger/tile/1/000.p/1", "ledger/tile/entries/000",
                                        "ledger/journal/256"};
    ledger_folder *f = *state;
    aq_ledger_audit a;
    aq_err err;

    append(f, 0, 256);
    append(f, 256, 4);
    publish(f);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        aq_ledger *reader;
        assert_int_equal(renameat(f->fd, files[i], f->fd, "away"), 0);
        assert_int_equal(aq_ledger_open(f->fd, NULL, &reader, &err), 0);
        if (aq_ledger_verify(reader, &a, &err) == 0)
            fail_msg("%s", files[i]);
        aq_ledger_close(reader);
        assert_int_equal(renameat(f->fd, "away", f->fd, files[i]), 0);
    }
    verify(f, 260, 260);
}

/* An old copy of the journal beside newer tiles must neither be appended to nor published. */
static void an_old_journal_is_refused(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf old = {0};
    aq_ledger *again = NULL;
    uint64_t first;
    aq_err err;

    append(f, 0, 3);
    assert_int_equal(aq_read_file(f->fd, "ledger/journal/0", 1 << 20, &old, &err), 0);
    append(f, 3, 3);
    publish(f);
    assert_int_equal(aq_write_file(f->fd, "ledger/journal/0", old.data, old.len, 0600, &err), 0);
    assert_int_equal(aq_ledger_open(f->fd, f->keys, &again, &err), -EBADMSG);
    assert_int_equal(aq_ledger_publish(f->ledger, &err), -EBADMSG);
    /* Brought to the right length with other entries: the publisher sees that they are others. */
    assert_int_equal(folder_append(f->ledger, 100, 9, &first, &err), 0);
    assert_int_equal(first, 3);
    assert_int_equal(aq_ledger_publish(f->ledger, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "not the one that was published"));
}

static void damage(ledger_folder *f, const char *path, off_t at)
{
    aq_auto_fd int fd = openat(f->fd, path, O_RDWR | O_CLOEXEC);
    char byte;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static void damaged_tiles_are_never_signed_over(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf before = {0}, after = {0};
    aq_err err;

    append(f, 0, 3);
    publish(f);
    assert_int_equal(aq_read_file(f->fd, "ledger/checkpoint", 4096, &before, &err), 0);
    damage(f, "ledger/tile/0/000.p/3", 40);
    append(f, 3, 1);
    assert_int_equal(aq_ledger_publish(f->ledger, &err), -EBADMSG);
    assert_int_equal(aq_read_file(f->fd, "ledger/checkpoint", 4096, &after, &err), 0);
    assert_string_equal(before.data, after.data);
}

/* Nor where the entries below it are in a full tile that nobody reads again. */
static void a_damaged_tile_above_is_never_signed_over(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf before = {0}, after = {0};
    aq_err err;

    append(f, 0, 257);
    publish(f);
    assert_int_equal(aq_read_file(f->fd, "ledger/checkpoint", 4096, &before, &err), 0);
    damage(f, "ledger/tile/1/000.p/1", 7);
    append(f, 257, 1);
    assert_int_equal(aq_ledger_publish(f->ledger, &err), -EBADMSG);
    assert_int_equal(aq_read_file(f->fd, "ledger/checkpoint", 4096, &after, &err), 0);
    assert_string_equal(before.data, after.data);
}

/* What is shown of an entry is what its leaf hash was made of. */
static void a_changed_entry_is_not_shown(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf e = {0};
    aq_err err;

    append(f, 0, 256);
    append(f, 256, 1);
    publish(f);
    assert_false(there(f, "ledger/journal/0"));
    assert_int_equal(aq_ledger_entry(f->ledger, 0, &e, &err), 0);
    damage(f, "ledger/tile/entries/000", 2 + (off_t)(strstr(e.data, "\"n\":0") - e.data) + 4);
    aq_buf_clear(&e);
    assert_int_equal(aq_ledger_entry(f->ledger, 0, &e, &err), -EBADMSG);
    assert_int_equal(e.len, 0);
    assert_int_equal(aq_ledger_entry(f->ledger, 1, &e, &err), 0);
}

/* A record that proves itself and is not the one that was published. */
static void the_journal_has_the_published_entries(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf b = {0};
    aq_ledger_audit a;
    size_t at = 0, len = 0;
    aq_digest leaf;
    aq_err err;

    append(f, 0, 3);
    publish(f);
    assert_int_equal(aq_read_file(f->fd, "ledger/journal/0", 1 << 20, &b, &err), 0);
    for (int i = 0; i < 3; i++) {
        at += i ? 2 + len + AQ_SHA256_LEN : 0;
        len = (size_t)((uint8_t)b.data[at] << 8 | (uint8_t)b.data[at + 1]);
    }
    *(strstr(b.data + at + 2, "\"n\":2") + 4) = '7';
    leaf = aq_tree_leaf(b.data + at + 2, len);
    memcpy(b.data + at + 2 + len, leaf.b, sizeof leaf.b);
    assert_int_equal(aq_write_file(f->fd, "ledger/journal/0", b.data, b.len, 0600, &err), 0);
    assert_int_equal(aq_ledger_verify(f->ledger, &a, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "not the published one"));
    assert_int_equal(a.bad_index, 2);
}

/* Every prefix of the last record is torn, not damaged: it goes, and nothing else does. */
static void torn_tails_are_cut_off(void **state)
{
    ledger_folder *f = *state;
    aq_auto_buf b = {0};
    aq_auto_fd int fd = -1;
    struct stat st;
    aq_err err;
    size_t start;

    append(f, 0, 2);
    assert_int_equal(fstatat(f->fd, "ledger/journal/0", &st, 0), 0);
    start = (size_t)st.st_size;
    append(f, 2, 1);
    assert_int_equal(aq_read_file(f->fd, "ledger/journal/0", 1 << 20, &b, &err), 0);
    fd = openat(f->fd, "ledger/journal/0", O_RDWR | O_CLOEXEC);
    for (size_t cut = start; cut < b.len; cut++)
        for (int zeros = 0; zeros < 2; zeros++) {
            assert_int_equal(ftruncate(fd, 0), 0);
            assert_int_equal(pwrite(fd, b.data, cut, 0), (ssize_t)cut);
            if (zeros) /* what a power cut may leave in place of bytes */
                assert_int_equal(ftruncate(fd, (off_t)b.len + 100), 0);
            append(f, 2, 1);
            verify(f, 3, 0);
            assert_int_equal(fstat(fd, &st), 0);
            assert_int_equal(st.st_size, b.len); /* the clock's digits have a fixed length */
        }
}

static void damage_is_not_cut_off(void **state)
{
    ledger_folder *f = *state;
    struct stat before, after;
    aq_auto_fd int fd = -1;
    aq_ledger *other;
    uint64_t first;
    aq_err err;

    append(f, 0, 5);
    fd = openat(f->fd, "ledger/journal/0", O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(fd, &before), 0);
    assert_int_equal(pwrite(fd, "#", 1, before.st_size - 60), 1); /* in the last entry */
    assert_int_equal(aq_ledger_open(f->fd, f->keys, &other, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "entry 4"));
    append(f, 5, 1); /* this handle knows its own tail, and loses nothing either */
    aq_ledger_close(f->ledger);
    assert_int_equal(aq_ledger_open(f->fd, NULL, &f->ledger, &err), 0);
    assert_int_equal(folder_append(f->ledger, 6, 1, &first, &err), -EROFS);
    assert_int_equal(fstat(fd, &after), 0);
    assert_true(after.st_size > before.st_size);
}

static void revocations(void **state)
{
    ledger_folder *f = *state;
    aq_auto_json json_t *v = json_pack("{s:s, s:i, s:s}", "kind", "revocation", "revokes", 2,
                                       "reason", "the rules were wrong");
    aq_auto_buf reason = {0};
    uint64_t index;
    aq_err err;

    append(f, 0, 300);
    assert_int_equal(aq_ledger_revoked(f->ledger, 2, &reason, &err), 0);
    assert_int_equal(aq_ledger_append(f->ledger, v, &index, NULL, &err), 0);
    assert_int_equal(aq_ledger_revoked(f->ledger, 2, &reason, &err), 1);
    assert_string_equal(reason.data, "the rules were wrong");
    assert_int_equal(aq_ledger_revoked(f->ledger, 3, &reason, &err), 0);
    publish(f);
    assert_int_equal(aq_ledger_revoked(f->ledger, 2, &reason, &err), 1);
    append(f, 301, 300);
    publish(f);
    assert_int_equal(aq_ledger_revoked(f->ledger, 2, &reason, &err), 1);
    assert_int_equal(aq_ledger_revoked(f->ledger, 301, &reason, &err), 0);
    /* One that stands before what it names was not about that; of two the first reason counts. */
    json_object_set_new(v, "revokes", json_integer(602));
    assert_int_equal(aq_ledger_append(f->ledger, v, &index, NULL, &err), 0);
    assert_int_equal(index, 601);
    append(f, 602, 1);
    assert_int_equal(aq_ledger_revoked(f->ledger, 602, &reason, &err), 0);
    json_object_set_new(v, "revokes", json_integer(2));
    json_object_set_new(v, "reason", json_string("another reason"));
    assert_int_equal(aq_ledger_append(f->ledger, v, &index, NULL, &err), 0);
    aq_buf_clear(&reason);
    assert_int_equal(aq_ledger_revoked(f->ledger, 2, &reason, &err), 1);
    assert_string_equal(reason.data, "the rules were wrong");
}

static void another_key_is_refused(void **state)
{
    ledger_folder *f = *state, stranger = {0};
    aq_ledger *l = NULL;
    aq_err err;

    assert_int_equal(folder_make(&stranger, NULL), 0);
    assert_int_equal(aq_ledger_open(f->fd, stranger.keys, &l, &err), -EKEYREJECTED);
    folder_free(&stranger);
}

/* Somebody who has the tiles only: no journal, no keys. */
static void tiles_alone_can_be_read(void **state)
{
    ledger_folder *f = *state;
    aq_ledger *reader = NULL;
    aq_ledger_audit a;
    aq_auto_buf e = {0};
    uint64_t first;
    aq_err err;

    append(f, 0, 300);
    publish(f);
    assert_int_equal(renameat(f->fd, "ledger/journal", f->fd, "away"), 0);
    assert_int_equal(aq_ledger_open(f->fd, NULL, &reader, &err), 0);
    assert_int_equal(aq_ledger_verify(reader, &a, &err), 0);
    assert_int_equal(a.entries, 300);
    assert_int_equal(aq_ledger_entry(reader, 299, &e, &err), 0);
    assert_int_equal(aq_ledger_entry(reader, 300, &e, &err), -ENOENT);
    assert_int_equal(folder_append(reader, 0, 1, &first, &err), -EROFS);
    assert_int_equal(aq_ledger_publish(reader, &err), -EROFS);
    aq_ledger_close(reader);
    assert_int_equal(renameat(f->fd, "away", f->fd, "ledger/journal"), 0);
}

static void a_reader_makes_nothing(void **state)
{
    ledger_folder *f = *state;
    aq_ledger *l = NULL;
    aq_err err;

    assert_int_equal(mkdirat(f->fd, "empty", 0700), 0);
    aq_auto_fd int fd = openat(f->fd, "empty", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(aq_ledger_open(fd, NULL, &l, &err), -ENOENT);
    assert_int_equal(unlinkat(f->fd, "empty", AT_REMOVEDIR), 0);
}

/* ---- threads and handles ---- */

enum { THREADS = 4, EACH = 40 };

typedef struct worker {
    ledger_folder *f;
    aq_ledger *l;
    int failed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    aq_err err;
    uint64_t first;

    for (unsigned i = 0; i < EACH && !w->failed; i++) {
        w->failed = folder_append(w->l, i, 1 + i % 3, &first, &err) < 0;
        if (!w->failed && i % 8 == 0)
            w->failed = aq_ledger_publish(w->l, &err) < 0;
        if (w->failed)
            fprintf(stderr, "%s\n", err.text);
    }
    return NULL;
}

static void threads_and_handles(void **state)
{
    ledger_folder *f = *state;
    worker w[THREADS];
    pthread_t t[THREADS];
    uint64_t all = 0;
    aq_err err;

    for (unsigned i = 0; i < EACH; i++)
        all += THREADS * (1 + i % 3);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.f = f, .l = f->ledger};
        if (i % 2) /* half of them share one handle */
            assert_int_equal(aq_ledger_open(f->fd, f->keys, &w[i].l, &err), 0);
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        assert_false(w[i].failed);
        if (w[i].l != f->ledger)
            aq_ledger_close(w[i].l);
    }
    publish(f);
    verify(f, all, all);
}

/* NULL where the outside data is not at hand. */
static const char *outside_folder(void)
{
    static char path[4096];
    const char *data = getenv("AQUARIUM_DATA");

    snprintf(path, sizeof path, "%s/sigstore/tlog-vectors", data ? data : "");
    return data && access(path, R_OK) == 0 ? path : NULL;
}

static void outside_checkpoints(void **state)
{
    static const char *const names[] = {"log/checkpoint", "log/checkpoint.1"};
    aq_auto_buf key = {0};
    aq_vkey v;
    aq_err err;

    (void)state;
    aq_auto_fd int fd = open(outside_folder(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(aq_read_file(fd, "log.vkey", 512, &key, &err), 0);
    while (key.len && key.data[key.len - 1] == '\n')
        key.data[--key.len] = '\0';
    assert_int_equal(aq_vkey_parse(key.data, &v, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        aq_auto_buf note = {0};
        aq_checkpoint c;
        assert_int_equal(aq_read_file(fd, names[i], AQ_NOTE_MAX, &note, &err), 0);
        assert_int_equal(aq_note_open(note.data, note.len, &v, &c, &err), 0);
        note.data[3] ^= 1;
        assert_int_equal(aq_note_open(note.data, note.len, &v, &c, &err), -EBADMSG);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(entries_chain),
        T(bad_bodies_are_refused),
        T(publishing_drops_and_tidies),
        T(an_empty_segment_is_not_the_newest),
        T(the_longest_entry),
        cmocka_unit_test(names_of_tiles),
        T(proofs_hold),
        T(no_flipped_byte_of_a_proof_survives),
        T(no_flipped_byte_of_a_file_survives),
        T(no_flipped_byte_of_a_full_tile_survives),
        T(a_signed_root_must_be_that_of_the_tree),
        T(lost_files_are_found),
        T(an_old_journal_is_refused),
        T(damaged_tiles_are_never_signed_over),
        T(a_damaged_tile_above_is_never_signed_over),
        T(a_changed_entry_is_not_shown),
        T(the_journal_has_the_published_entries),
        T(torn_tails_are_cut_off),
        T(damage_is_not_cut_off),
        T(revocations),
        T(another_key_is_refused),
        T(tiles_alone_can_be_read),
        T(a_reader_makes_nothing),
        T(threads_and_handles),
        cmocka_unit_test(outside_checkpoints), /* last */
    };
    size_t count = sizeof tests / sizeof *tests;

    return _cmocka_run_group_tests("ledger", tests, outside_folder() ? count : count - 1, NULL,
                                   NULL);
}
