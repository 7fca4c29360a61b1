/* The journal: the sequence of entries as files of records.
 *
 * journal/<I>      a segment: the entries from index I on, mode 0600. A segment
 * that holds 256 entries or more is closed: the next append starts a new one. A
 * batch is never split, so that it costs one write and one fdatasync.
 * journal/lock     flock for writers. Every handle has its own open file, so
 * that handles of one process exclude each other as well; a mutex does it for
 * the threads of one handle.
 *
 * Nobody is told of an append before its fdatasync. When it fails, the file is
 * cut back to where it was. After a failed fdatasync the kernel may have
 * dropped the pages and forgotten the error, so this handle never writes again.
 * Readers take no lock: records prove themselves by their hash. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "ledger/internal.h"

enum {
    BATCH_BYTES = 64 << 20,                                /* of one append */
    SEGMENT_BYTES = AQ_TILE * AQ_RECORD_MAX + BATCH_BYTES, /* what a reader must be ready for */
};

/* The newest segment, as far as it is known. */
typedef struct tail {
    bool known;
    bool durable; /* everything in it was synced by this handle */
    int fd;
    uint64_t segment; /* index of its first entry, which is its name */
    uint64_t count;   /* records in it */
    off_t end;        /* of the last whole record */
    aq_digest last;   /* leaf of the last entry of the sequence */
} tail;

typedef struct journal {
    aq_sequence base;
    int dir, lock;
    bool writable, poisoned;
    pthread_mutex_t mutex;
    tail tail;
} journal;

static const char *segment_name(uint64_t n, char out[static 24])
{
    snprintf(out, 24, "%llu", (unsigned long long)n);
    return out;
}

/* ---- reading segments ---- */

/* Decimal without leading zeros; anything else in the folder is not a segment.
 */
static bool segment_number(const char *name, uint64_t *ret)
{
    uint64_t n = 0;

    if (!*name || strlen(name) > 15 || (name[0] == '0' && name[1]))
        return false;
    for (; *name; name++) {
        if (*name < '0' || *name > '9')
            return false;
        n = n * 10 + (uint64_t)(*name - '0');
    }
    *ret = n;
    return true;
}

typedef struct segments {
    uint64_t *first; /* rising */
    size_t count, cap;
} segments;

static void free_segments(segments *s)
{
    free(s->first);
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int list_segments(const journal *j, segments *ret, aq_err *err)
{
    int fd = openat(j->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    uint64_t n;

    if (!d) {
        if (fd >= 0)
            close(fd);
        return aq_fail_errno(err, "cannot list the journal");
    }
    while ((e = readdir(d))) {
        if (!segment_number(e->d_name, &n))
            continue;
        if (ret->count == ret->cap) {
            ret->cap = ret->cap ? 2 * ret->cap : 16;
            ret->first = aq_realloc(ret->first, ret->cap, sizeof *ret->first);
        }
        ret->first[ret->count++] = n;
    }
    closedir(d);
    if (ret->count)
        qsort(ret->first, ret->count, sizeof *ret->first, by_number);
    return 0;
}

#define auto_segments __attribute__((cleanup(free_segments))) segments

static int open_segment(const journal *j, uint64_t n, int flags)
{
    char name[24];

    return openat(j->dir, segment_name(n, name), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

/* Walks the records of a segment's bytes; `t` gets count, end and last. */
static int scan(const char *data, size_t len, uint64_t segment, aq_entry_each each, void *arg,
                tail *t, aq_err *err)
{
    aq_record_state state;
    size_t at = 0, size = 0;
    const char *entry = NULL;
    aq_digest leaf;
    int r;

    t->count = 0;
    while ((state = aq_record_read(data, len, at, &entry, &size, &leaf)) == AQ_RECORD_WHOLE) {
        r = each ? each(arg, segment + t->count, entry, size, err) : 0;
        if (r < 0)
            return r;
        at += 2 + size + AQ_SHA256_LEN;
        t->count++;
        t->last = leaf;
    }
    t->end = (off_t)at;
    if (state == AQ_RECORD_DAMAGED)
        return aq_fail(err, -EBADMSG,
                       "journal/%llu is damaged at byte %zu, where entry %llu belongs; nothing was "
                       "changed",
                       (unsigned long long)segment, at, (unsigned long long)(segment + t->count));
    return 0;
}

static int load_segment(const journal *j, uint64_t n, int fd, aq_entry_each each, void *arg,
                        tail *t, aq_err *err)
{
    char name[32];
    aq_auto_buf b = {0};
    int r;

    (void)j;
    snprintf(name, sizeof name, "journal/%llu", (unsigned long long)n);
    r = aq_read_fd(fd, name, SEGMENT_BYTES, &b, err);
    return r < 0 ? r : scan(aq_buf_str(&b), b.len, n, each, arg, t, err);
}

/* Opens and scans segment n. A reader without the lock can see a writer that
 * cuts back and writes again in the middle of its own read; then the second
 * look is right. */
static int look(const journal *j, uint64_t n, int flags, aq_entry_each each, void *arg, tail *t,
                aq_err *err)
{
    for (int attempt = 0;; attempt++) {
        aq_auto_fd int fd = open_segment(j, n, flags);
        int r;
        if (fd < 0)
            return aq_fail_errno(err, "cannot open journal/%llu", (unsigned long long)n);
        r = load_segment(j, n, fd, each, arg, t, err);
        if (r == -EBADMSG && attempt == 0 && !each)
            continue;
        if (r < 0)
            return r;
        t->fd = aq_take_fd(fd);
        t->segment = n;
        return 0;
    }
}

/* Finds the newest segment that has a record, or the only one. `t->fd` is -1
 * when the journal is empty. A writer that was killed may have left a segment
 * that is empty or holds the torn beginning of a record. */
static int find_tail(const journal *j, int flags, tail *t, aq_err *err)
{
    auto_segments all = {0};
    int r = list_segments(j, &all, err);

    *t = (tail){.fd = -1};
    for (size_t i = all.count; r == 0 && i-- > 0;) {
        r = look(j, all.first[i], flags, NULL, NULL, t, err);
        if (r < 0 || t->count > 0 || i == 0)
            break;
        close(t->fd);
        *t = (tail){.fd = -1};
    }
    if (r == 0 && t->fd >= 0 && t->count == 0 && t->segment > 0) {
        r = aq_fail(err, -EBADMSG, "the journal begins with the empty segment %llu",
                    (unsigned long long)t->segment);
        close(t->fd);
        t->fd = -1;
    }
    return r;
}

/* ---- the writer's view ---- */

static int take_lock(journal *j, aq_err *err)
{
    pthread_mutex_lock(&j->mutex);
    while (flock(j->lock, LOCK_EX) < 0)
        if (errno != EINTR) {
            pthread_mutex_unlock(&j->mutex);
            return aq_fail_errno(err, "cannot lock the journal");
        }
    return 0;
}

static void drop_lock(journal *j)
{
    flock(j->lock, LOCK_UN);
    pthread_mutex_unlock(&j->mutex);
}

static void forget_tail(journal *j)
{
    if (j->tail.fd >= 0)
        close(j->tail.fd);
    j->tail = (tail){.fd = -1};
}

static uint64_t tail_size(const tail *t)
{
    return t->fd < 0 ? 0 : t->segment + t->count;
}

/* Under the lock: is what this handle remembers still so? Others only ever add.
 */
static bool still_so(const journal *j)
{
    const tail *t = &j->tail;
    struct stat st;
    char name[24];

    if (!t->known || t->fd < 0 || fstat(t->fd, &st) < 0 || st.st_nlink == 0 || st.st_size != t->end)
        return false;
    return t->count < AQ_TILE || faccessat(j->dir, segment_name(tail_size(t), name), F_OK, 0) < 0;
}

/* Under the lock: brings the tail up to date and cuts off what was never
 * acknowledged. */
static int refresh(journal *j, aq_err *err)
{
    struct stat st;
    int r;

    if (j->poisoned)
        return aq_fail(err, -EIO,
                       "an earlier write of this ledger handle did not reach the disk: open the "
                       "ledger again, and look at the disk");
    if (still_so(j))
        return 0;
    forget_tail(j);
    r = find_tail(j, O_RDWR, &j->tail, err);
    if (r == 0 && j->tail.fd >= 0 &&
        (fstat(j->tail.fd, &st) < 0 ||
         (st.st_size != j->tail.end && ftruncate(j->tail.fd, j->tail.end) < 0)))
        r = aq_fail_errno(err, "cannot cut journal/%llu back to its last whole record",
                          (unsigned long long)j->tail.segment);
    if (r < 0) {
        forget_tail(j);
        return r;
    }
    j->tail.known = true;
    return 0;
}

/* ---- appending ---- */

static int poison(journal *j, aq_err *err, const char *what, uint64_t segment)
{
    int r = aq_fail_errno(err, "cannot make %s%llu durable", what, (unsigned long long)segment);

    j->poisoned = true;
    return r;
}

/* Starts the segment of entry `first`, durable in its folder before a record of
 * it can be acknowledged. What a killed writer left in it was never
 * acknowledged. */
static int start_segment(journal *j, uint64_t first, tail *t, aq_err *err)
{
    aq_auto_fd int fd = open_segment(j, first, O_RDWR | O_CREAT);

    if (fd < 0 || ftruncate(fd, 0) < 0)
        return aq_fail_errno(err, "cannot create journal/%llu", (unsigned long long)first);
    if (fsync(j->dir) < 0)
        return poison(j, err, "the name journal/", first);
    *t = (tail){.fd = aq_take_fd(fd), .segment = first};
    return 0;
}

static int pwrite_all(int fd, const char *data, size_t len, off_t at)
{
    while (len) {
        ssize_t n = pwrite(fd, data, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        data += n;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int write_records(journal *j, const tail *t, const char *data, size_t len, aq_err *err)
{
    int r = pwrite_all(t->fd, data, len, t->end);

    if (r < 0)
        return aq_fail(err, r, "cannot write journal/%llu: %s", (unsigned long long)t->segment,
                       strerror(-r));
    if (fdatasync(t->fd) < 0)
        return poison(j, err, "journal/", t->segment);
    return 0;
}

/* Undoes a batch that failed: its own segment goes, or the old one is cut back.
 */
static void undo(journal *j, const tail *old, bool started)
{
    char name[24];

    if (started && unlinkat(j->dir, segment_name(tail_size(old), name), 0) < 0 && errno != ENOENT)
        j->poisoned = true;
    if (!started && old->fd >= 0 && ftruncate(old->fd, old->end) < 0)
        j->poisoned = true;
    forget_tail(j);
}

static int write_batch(journal *j, const aq_buf *bytes, size_t count, const aq_digest *last,
                       aq_err *err)
{
    tail old = j->tail, now = old;
    bool start = old.fd < 0 || old.count >= AQ_TILE;
    int r = start ? start_segment(j, tail_size(&old), &now, err) : 0;

    if (r == 0)
        r = write_records(j, &now, bytes->data, bytes->len, err);
    if (now.fd != old.fd && (r < 0 || old.fd >= 0))
        close(r < 0 ? now.fd : old.fd);
    if (r < 0) {
        undo(j, &old, start);
        return r;
    }
    now.end += (off_t)bytes->len;
    now.count += count;
    now.last = *last;
    now.known = now.durable = true;
    j->tail = now;
    return 0;
}

static int journal_append(aq_sequence *s, size_t count,
                          int (*make)(void *arg, size_t i, uint64_t index, const aq_digest *prev,
                                      aq_buf *entry, aq_err *err),
                          void *arg, uint64_t *first, aq_digest *leaves, aq_err *err)
{
    journal *j = (journal *)s;
    aq_auto_free aq_digest *own = NULL;
    aq_auto_buf entry = {0}, bytes = {0};
    aq_digest prev;
    uint64_t size;
    int r;

    if (!j->writable)
        return aq_fail(err, -EROFS, "this ledger was opened for reading");
    if (count == 0)
        return aq_fail(err, -EINVAL, "nothing to append");
    own = aq_realloc(NULL, count, sizeof *own);
    r = take_lock(j, err);
    if (r < 0)
        return r;
    r = refresh(j, err);
    size = r < 0 ? 0 : tail_size(&j->tail);
    prev = size ? j->tail.last : (aq_digest){{0}};
    for (size_t i = 0; r == 0 && i < count; i++) {
        aq_buf_clear(&entry);
        r = make(arg, i, size + i, &prev, &entry, err);
        if (r == 0 && (entry.len == 0 || entry.len > AQ_LEDGER_ENTRY))
            r = aq_fail(err, -E2BIG, "an entry has %zu bytes; at most %d are allowed", entry.len,
                        AQ_LEDGER_ENTRY);
        if (r < 0)
            break;
        prev = own[i] = aq_tree_leaf(entry.data, entry.len);
        aq_record_add(&bytes, entry.data, entry.len, &prev);
        if (bytes.len > BATCH_BYTES)
            r = aq_fail(err, -E2BIG, "a batch has more than %d bytes", BATCH_BYTES);
    }
    if (r == 0)
        r = write_batch(j, &bytes, count, &own[count - 1], err);
    drop_lock(j);
    if (r < 0)
        return r;
    *first = size;
    if (leaves)
        memcpy(leaves, own, count * sizeof *own);
    return 0;
}

/* ---- size, reading, forgetting ---- */

/* A writer's answer is durable: what a killed writer left whole but unsynced is
 * synced first, so that a checkpoint never covers an entry that a power cut
 * could take back (I3). */
static int writer_size(journal *j, uint64_t *ret, aq_err *err)
{
    int r = take_lock(j, err);

    if (r < 0)
        return r;
    r = refresh(j, err);
    if (r == 0 && j->tail.fd >= 0 && !j->tail.durable) {
        if (fdatasync(j->tail.fd) < 0 || fsync(j->dir) < 0)
            r = poison(j, err, "journal/", j->tail.segment);
        j->tail.durable = r == 0;
    }
    if (r == 0)
        *ret = tail_size(&j->tail);
    drop_lock(j);
    return r;
}

static int journal_size(aq_sequence *s, uint64_t *ret, aq_err *err)
{
    journal *j = (journal *)s;
    tail t;
    int r;

    if (j->writable)
        return writer_size(j, ret, err);
    r = find_tail(j, O_RDONLY, &t, err);
    /* Dropped between listing and opening: a newer one is there now. */
    for (int i = 0; r == -ENOENT && i < 16; i++)
        r = find_tail(j, O_RDONLY, &t, err);
    if (r == 0)
        *ret = tail_size(&t);
    if (t.fd >= 0)
        close(t.fd);
    return r;
}

/* The segment that holds entry `at`: the last one that begins at or before it.
 */
static int segment_of(const journal *j, uint64_t at, uint64_t *ret, aq_err *err)
{
    auto_segments all = {0};
    int r = list_segments(j, &all, err);
    size_t i = 0;

    while (i < all.count && all.first[i] <= at)
        i++;
    if (r == 0 && i == 0)
        return aq_fail(err, -ENOENT, "the journal has dropped entry %llu", (unsigned long long)at);
    if (r == 0)
        *ret = all.first[i - 1];
    return r;
}

static int journal_read(aq_sequence *s, uint64_t from, uint64_t to, aq_entry_each each, void *arg,
                        aq_err *err)
{
    journal *j = (journal *)s;

    for (uint64_t at = from; at < to;) {
        aq_window w = {at, to, each, arg};
        tail t = {.fd = -1};
        uint64_t segment = 0;
        int r = segment_of(j, at, &segment, err);
        if (r == 0)
            r = look(j, segment, O_RDONLY, aq_in_window, &w, &t, err);
        if (t.fd >= 0)
            close(t.fd);
        if (r < 0)
            return r;
        if (segment + t.count <= at)
            return aq_fail(err, -EBADMSG, "journal/%llu ends before entry %llu",
                           (unsigned long long)segment, (unsigned long long)at);
        at = segment + t.count;
    }
    return 0;
}

static int journal_oldest(aq_sequence *s, uint64_t *ret, aq_err *err)
{
    auto_segments all = {0};
    int r = list_segments((journal *)s, &all, err);

    if (r == 0)
        *ret = all.count ? all.first[0] : 0;
    return r;
}

/* From the oldest on, so that what remains is always one piece; never the
 * newest with a record, so that the journal alone knows its size and its last
 * leaf. */
static int journal_forget(aq_sequence *s, uint64_t upto, aq_err *err)
{
    journal *j = (journal *)s;
    auto_segments all = {0};
    char name[24];
    int r = take_lock(j, err);

    if (r < 0)
        return r;
    r = refresh(j, err);
    if (r == 0)
        r = list_segments(j, &all, err);
    for (size_t i = 0; r == 0 && i + 1 < all.count; i++) {
        if (all.first[i + 1] > upto || all.first[i + 1] > j->tail.segment)
            break;
        if (unlinkat(j->dir, segment_name(all.first[i], name), 0) < 0 && errno != ENOENT)
            r = aq_fail_errno(err, "cannot drop journal/%s", name);
    }
    drop_lock(j);
    return r;
}

static void journal_close(aq_sequence *s)
{
    journal *j = (journal *)s;

    forget_tail(j);
    if (j->lock >= 0)
        close(j->lock);
    close(j->dir);
    pthread_mutex_destroy(&j->mutex);
    free(j);
}

static const aq_sequence_ops ops = {
    .name = "journal",
    .append = journal_append,
    .size = journal_size,
    .read = journal_read,
    .oldest = journal_oldest,
    .forget = journal_forget,
    .close = journal_close,
};

int aq_sequence_open_journal(int dirfd, bool writable, aq_sequence **ret, aq_err *err)
{
    aq_auto_fd int dir = -1;
    aq_auto_fd int lock = -1;
    journal *j;

    if (writable && mkdirat(dirfd, "journal", 0700) == 0)
        fsync(dirfd);
    dir = openat(dirfd, "journal", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return aq_fail_errno(err, "cannot open the folder journal/");
    if (writable)
        lock = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (writable && lock < 0)
        return aq_fail_errno(err, "cannot open journal/lock");
    j = aq_alloc(sizeof *j);
    j->base.ops = &ops;
    j->dir = aq_take_fd(dir);
    j->lock = aq_take_fd(lock);
    j->writable = writable;
    j->tail.fd = -1;
    pthread_mutex_init(&j->mutex, NULL);
    *ret = &j->base;
    return 0;
}
