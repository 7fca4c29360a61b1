/* The ledger: opening, appending, and reading single entries; see ledger.h for the invariants.
 * Publishing is in publish.c, proofs in prove.c, the audit in audit.c. */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "ledger/internal.h"

/* ---- opening ---- */

/* The ledger's name and key are written once and never change: a checkpoint of another name would
 * be another log. */
static int make_vkey(aq_ledger *l, aq_err *err)
{
    uint8_t key[AQ_KEY_LEN];
    char id[AQ_KEY_ID];
    aq_auto_buf name = {0}, text = {0};
    int r;

    if (faccessat(l->root, "vkey", F_OK, 0) == 0)
        return 0;
    aq_key_public(l->keys, AQ_KEY_LEDGER, key);
    aq_buf_addf(&name, "aquarium.invalid/%s", aq_key_id(l->keys, AQ_KEY_LEDGER, id));
    l->vkey = aq_vkey_make(name.data, key);
    aq_vkey_print(&l->vkey, &text);
    aq_buf_addc(&text, '\n');
    r = aq_write_file(l->root, "vkey", text.data, text.len, 0644, err);
    if (r == 0 && fchmodat(l->root, "vkey", 0644, 0) < 0)
        r = aq_fail_errno(err, "cannot open vkey to readers");
    return r;
}

static int read_vkey(aq_ledger *l, aq_err *err)
{
    aq_auto_buf text = {0};
    uint8_t key[AQ_KEY_LEN];
    int r = aq_read_file(l->root, "vkey", 512, &text, err);

    if (r < 0)
        return r;
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.data[text.len - 1] = '\0';
    r = strlen(aq_buf_str(&text)) + 1 == text.len ? aq_vkey_parse(text.data, &l->vkey, err)
                                                  : aq_fail(err, -EBADMSG, "one line was expected");
    if (r < 0)
        return aq_err_within(err, "vkey");
    if (!l->keys)
        return 0;
    aq_key_public(l->keys, AQ_KEY_LEDGER, key);
    if (memcmp(key, l->vkey.key, sizeof key) != 0)
        return aq_fail(err, -EKEYREJECTED,
                       "this ledger was made with another instance key; put that key back");
    return 0;
}

static int open_folder(int dirfd, bool make, int *ret, aq_err *err)
{
    int fd;

    if (make && mkdirat(dirfd, "ledger", 0755) == 0 &&
        (fchmodat(dirfd, "ledger", 0755, 0) < 0 || fsync(dirfd) < 0))
        return aq_fail_errno(err, "cannot make the folder ledger/");
    fd = openat(dirfd, "ledger", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return aq_fail_errno(err, "cannot open the folder ledger/");
    *ret = fd;
    return 0;
}

/* A journal that is shorter than what was published is an old copy; appending to it would make a
 * second history under the same numbers. */
static int check_not_behind(aq_ledger *l, aq_err *err)
{
    aq_checkpoint c;
    uint64_t size;
    int r = aq_ledger_published(l, NULL, &c, err);

    if (r == 0)
        r = l->sequence->ops->size(l->sequence, &size, err);
    if (r == 0 && size < c.size)
        r = aq_fail(err, -EBADMSG,
                    "the journal has %llu entries, but %llu are published: it is an old copy or "
                    "was cut",
                    (unsigned long long)size, (unsigned long long)c.size);
    return r;
}

/* Takes the open folder over, also when it fails. */
static int open_at(int root, const aq_keys *keys, aq_ledger **ret, aq_err *err)
{
    aq_ledger *l = aq_alloc(sizeof *l);
    int r = 0;

    l->root = root;
    l->keys = keys;
    pthread_mutex_init(&l->publishing, NULL);
    if (keys)
        r = make_vkey(l, err);
    if (r == 0)
        r = read_vkey(l, err);
    if (r == 0) {
        r = aq_sequence_open_journal(l->root, keys != NULL, &l->sequence, err);
        /* The journal is private; readers of the tiles need it not. */
        if (!keys && (r == -EACCES || r == -ENOENT))
            r = 0;
    }
    if (r == 0 && keys)
        r = check_not_behind(l, err);
    if (r < 0) {
        aq_ledger_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

int aq_ledger_open(int dirfd, const aq_keys *keys, aq_ledger **ret, aq_err *err)
{
    int root = -1;
    int r = open_folder(dirfd, keys != NULL, &root, err);

    return r < 0 ? r : open_at(root, keys, ret, err);
}

int aq_ledger_open_copy(const char *path, aq_ledger **ret, aq_err *err)
{
    int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return aq_fail_errno(err, "cannot open the ledger folder %s", path);
    return open_at(root, NULL, ret, err);
}

void aq_ledger_close(aq_ledger *l)
{
    if (!l)
        return;
    if (l->sequence)
        l->sequence->ops->close(l->sequence);
    if (l->root >= 0)
        close(l->root);
    pthread_mutex_destroy(&l->publishing);
    free(l);
}

void aq_ledger_vkey(const aq_ledger *l, aq_buf *out)
{
    aq_vkey_print(&l->vkey, out);
}

/* ---- appending ---- */

static int make_entry(void *arg, size_t i, uint64_t index, const aq_digest *prev, aq_buf *entry,
                      aq_err *err)
{
    const aq_draft *drafts = arg;

    if (index >= AQ_LEDGER_MAX)
        return aq_fail(err, -EFBIG, "the ledger is full");
    aq_draft_fill(&drafts[i], index, prev, entry);
    return 0;
}

int aq_ledger_append_all(aq_ledger *l, json_t *const *bodies, size_t count, uint64_t *first,
                         aq_digest *leaves, aq_err *err)
{
    aq_auto_free aq_draft *drafts = NULL;
    char time[AQ_TIME_LEN];
    int r = 0;

    if (!l->keys || !l->sequence)
        return aq_fail(err, -EROFS, "this ledger was opened for reading");
    aq_time_str(aq_now(), time);
    drafts = aq_realloc(NULL, count, sizeof *drafts);
    memset(drafts, 0, count * sizeof *drafts);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = aq_draft_make(bodies[i], time, &drafts[i], err);
    if (r == 0)
        r = l->sequence->ops->append(l->sequence, count, make_entry, drafts, first, leaves, err);
    for (size_t i = 0; i < count; i++)
        aq_buf_free(&drafts[i].text);
    return r;
}

int aq_ledger_append(aq_ledger *l, const json_t *body, uint64_t *index, aq_digest *leaf,
                     aq_err *err)
{
    json_t *one = (json_t *)body;

    return aq_ledger_append_all(l, &one, 1, index, leaf, err);
}

/* ---- reading ---- */

int aq_ledger_published(aq_ledger *l, aq_buf *note, aq_checkpoint *ret, aq_err *err)
{
    aq_auto_buf text = {0};
    int r = aq_read_file(l->root, "checkpoint", AQ_NOTE_MAX, &text, err);

    if (r == -ENOENT) {
        *ret = (aq_checkpoint){0, aq_tree_empty()};
        return 0;
    }
    if (r == 0)
        r = aq_note_open(aq_buf_str(&text), text.len, &l->vkey, ret, err);
    if (r < 0)
        return aq_err_within(err, "checkpoint");
    if (note)
        aq_buf_add(note, text.data, text.len);
    return 0;
}

int aq_ledger_checkpoint(aq_ledger *l, aq_buf *note, uint64_t *size, aq_digest *root, aq_err *err)
{
    aq_auto_buf text = {0};
    aq_checkpoint c;
    int r = aq_ledger_published(l, &text, &c, err);

    if (r < 0)
        return r;
    if (text.len == 0)
        return aq_fail(err, -ENOENT, "the ledger has not been published yet");
    aq_buf_add(note, text.data, text.len);
    *size = c.size;
    *root = c.root;
    return 0;
}

int aq_ledger_walk(aq_ledger *l, const aq_checkpoint *c, uint64_t from, uint64_t to,
                   aq_entry_each each, void *arg, aq_err *err)
{
    aq_window w = {from, to, each, arg};

    for (uint64_t n = from / AQ_TILE; n * AQ_TILE < to; n++) {
        uint64_t low = n * AQ_TILE < from ? from : n * AQ_TILE;
        uint64_t high = (n + 1) * AQ_TILE > to ? to : (n + 1) * AQ_TILE;
        bool published = c->size / AQ_TILE > n || (!l->sequence && high <= c->size);
        int r = -ENOENT;
        if (!published && l->sequence)
            r = l->sequence->ops->read(l->sequence, low, high, each, arg, err);
        /* Published and dropped since the checkpoint was read: then the bundle is full. */
        if (published || r == -ENOENT)
            r = aq_bundle_read(l->root, n,
                               published ? aq_tile_width(AQ_TILE_ENTRIES, n, c->size) : AQ_TILE,
                               aq_in_window, &w, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int total(aq_ledger *l, const aq_checkpoint *c, uint64_t *ret, aq_err *err)
{
    *ret = c->size;
    return l->sequence ? l->sequence->ops->size(l->sequence, ret, err) : 0;
}

int aq_ledger_size(aq_ledger *l, uint64_t *ret, aq_err *err)
{
    aq_checkpoint c;
    int r = aq_ledger_published(l, NULL, &c, err);

    return r < 0 ? r : total(l, &c, ret, err);
}

static int copy_entry(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    (void)index;
    (void)err;
    aq_buf_add(arg, entry, len);
    return 0;
}

int aq_ledger_entry(aq_ledger *l, uint64_t index, aq_buf *entry, aq_err *err)
{
    aq_auto_buf text = {0};
    aq_digest leaf, said;
    aq_checkpoint c;
    uint64_t size;
    int r = aq_ledger_published(l, NULL, &c, err);

    if (r == 0)
        r = total(l, &c, &size, err);
    if (r < 0)
        return r;
    if (index >= size)
        return aq_fail(err, -ENOENT, "the ledger has %llu entries; there is no entry %llu",
                       (unsigned long long)size, (unsigned long long)index);
    r = aq_ledger_walk(l, &c, index, index + 1, copy_entry, &text, err);
    if (r == 0 && index < c.size / AQ_TILE * AQ_TILE) {
        aq_tile_source s = {.root = l->root, .size = c.size};
        leaf = aq_tree_leaf(aq_buf_str(&text), text.len);
        r = aq_tile_node(&s, 0, index, &said, err);
        if (r == 0 && !aq_digest_equal(&leaf, &said))
            r = aq_fail(err, -EBADMSG, "entry %llu does not belong to its leaf hash",
                        (unsigned long long)index);
    }
    if (r == 0)
        aq_buf_add(entry, text.data, text.len);
    return r;
}

typedef struct revocation {
    uint64_t index;
    bool found;
    aq_buf *reason;
    void (*each)(void *arg, uint64_t index); /* NULL: `index` alone is looked for */
    void *arg;
} revocation;

/* Entries are canonical, so one that revokes holds exactly these bytes; only those are parsed. */
static int look_for_revocation(void *arg, uint64_t index, const void *entry, size_t len,
                               aq_err *err)
{
    static const char mark[] = "\"kind\":\"revocation\"";
    revocation *v = arg;
    aq_auto_json json_t *e = NULL;
    const char *kind, *reason;
    int64_t revokes;
    int r;

    if (!memmem(entry, len, mark, sizeof mark - 1))
        return 0;
    r = aq_json_parse(entry, len, "entry", &e, err);
    if (r < 0)
        return aq_err_within(err, "entry %llu", (unsigned long long)index);
    kind = aq_json_str(e, "kind");
    revokes = aq_json_int(e, "revokes", -1);
    if (!kind || strcmp(kind, "revocation") != 0 || revokes < 0)
        return 0;
    if (v->each)
        v->each(v->arg, (uint64_t)revokes);
    if (v->each || revokes != (int64_t)v->index || v->found)
        return 0;
    v->found = true;
    reason = aq_json_str(e, "reason");
    aq_buf_adds(v->reason, reason ? reason : "no reason given");
    return 0;
}

static int walk_revocations(aq_ledger *l, uint64_t from, revocation *v, aq_err *err)
{
    aq_checkpoint c;
    uint64_t size;
    int r = aq_ledger_published(l, NULL, &c, err);

    if (r == 0)
        r = total(l, &c, &size, err);
    if (r == 0 && from < size)
        r = aq_ledger_walk(l, &c, from, size, look_for_revocation, v, err);
    return r;
}

int aq_ledger_revoked(aq_ledger *l, uint64_t index, aq_buf *reason, aq_err *err)
{
    revocation v = {.index = index, .reason = reason};
    int r = walk_revocations(l, index + 1, &v, err);

    return r < 0 ? r : v.found;
}

int aq_ledger_each_revoked(aq_ledger *l, void (*each)(void *arg, uint64_t index), void *arg,
                           aq_err *err)
{
    revocation v = {.each = each, .arg = arg};

    return walk_revocations(l, 0, &v, err);
}

int aq_ledger_vkey_check(const char *vkey, aq_err *err)
{
    aq_vkey v;

    return aq_vkey_parse(vkey, &v, err);
}

aq_digest aq_ledger_leaf(const void *entry, size_t len)
{
    return aq_tree_leaf(entry, len);
}
