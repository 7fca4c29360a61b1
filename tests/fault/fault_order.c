/* The order of the ledger's writes, call by call: what must be durable before a name appears,
 * before the checkpoint does, before anything is removed and before anyone is told (I1 and I3).
 * Killing cannot show this, because the kernel keeps what it was given; see order.h. */
#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kill_at.h"
#include "ledger_folder.h"
#include "order.h"

typedef struct seen {
    char complaint[600];
    unsigned renames, checkpoints, unlinks, tells;
} seen;

static void complain(seen *s, const char *when, const char *path, const char *what, const char *one)
{
    if (one && !*s->complaint)
        snprintf(s->complaint, sizeof s->complaint, "%s%s: %s %.200s is not durable", when, path,
                 what, one);
}

static void watch(void *arg, const order *o, order_moment moment, const char *path)
{
    seen *s = arg;

    switch (moment) {
    case ORDER_RENAME:
        s->renames++;
        complain(s, "renamed to ", path, "file", order_file(o));
        if (strcmp(path, "checkpoint") == 0) {
            s->checkpoints++;
            complain(s, "renamed to ", path, "name", order_name(o));
        }
        break;
    case ORDER_UNLINK:
        s->unlinks++;
        complain(s, "removed ", path, "file", order_file(o));
        complain(s, "removed ", path, "name", order_name(o));
        break;
    case ORDER_TELL:
        s->tells++;
        complain(s, "acknowledged", path, "file", order_file(o));
        complain(s, "acknowledged", path, "name", order_name(o));
        break;
    }
}

/* From an empty ledger over segments, full bundles, a tile of the second level, and partial tiles
 * that are replaced and removed. */
_Noreturn static void writer(const char *path, const aq_keys *keys, int out)
{
    static const size_t batches[] = {1, 3, 250, 5, 300, 1, 700, 2};
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    aq_ledger *l = NULL;
    uint64_t first, n = 0;
    aq_err err;

    kill_at_ready();
    if (aq_ledger_open(dir, keys, &l, &err) < 0)
        _exit(1);
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++, n++) {
        if (folder_append(l, n, batches[i], &first, &err) < 0 || write(out, "a", 1) != 1 ||
            aq_ledger_publish(l, &err) < 0 || write(out, "p", 1) != 1)
            _exit(2);
    }
    _exit(0);
}

/* The lock files hold nothing, so they need not outlive a power cut: they are there before. */
static void make_locks(int dir)
{
    static const char *const locks[] = {"ledger/journal/lock", "ledger/journal/publish"};

    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
        aq_auto_fd int fd = openat(dir, locks[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
    }
}

/* What a publisher that was killed leaves: folders that the next one need not make. */
static void make_leftovers(int dir)
{
    static const char *const folders[] = {
        "ledger/tile",
        "ledger/tile/0",
        "ledger/tile/0/001.p",
        "ledger/tile/0/002.p",
        "ledger/tile/entries",
        "ledger/tile/entries/001.p",
        "ledger/tile/entries/002.p",
    };

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(mkdirat(dir, folders[i], 0755), 0);
}

static void watch_a_writer(bool leftovers)
{
    ledger_folder f = {0};
    aq_ledger_audit a;
    int pipe_[2];
    seen s = {0};
    aq_err err = {0};
    pid_t pid;

    assert_int_equal(folder_make(&f, NULL), 0);
    make_locks(f.fd);
    if (leftovers)
        make_leftovers(f.fd);
    assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        writer(f.path, f.keys, pipe_[1]);
    assert_int_equal(order_watch(pid, watch, &s), 0);
    close(pipe_[0]);
    close(pipe_[1]);
    if (*s.complaint)
        fail_msg("%s", s.complaint);
    assert_int_equal(s.checkpoints, 8);
    assert_int_equal(s.tells, 16);
    assert_true(s.renames > 30 && s.unlinks > 10);
    assert_int_equal(aq_ledger_verify(f.ledger, &a, &err), 0);
    assert_int_equal(a.published, 1262);
    folder_free(&f);
}

static void durable_before_named_signed_removed_and_told(void **state)
{
    (void)state;
    watch_a_writer(false);
}

static void also_in_folders_that_a_killed_publisher_left(void **state)
{
    (void)state;
    watch_a_writer(true);
}

/* A writer that was killed behind its write and before its sync leaves an entry that is whole and
 * not durable. The next one must not sign it before it is. */
_Noreturn static void next_writer(const char *path, const aq_keys *keys, const aq_buf *left,
                                  off_t from)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(dir, "ledger/journal/0", O_WRONLY | O_CLOEXEC);
    size_t len = left->len - (size_t)from;
    aq_ledger *l = NULL;
    aq_err err;

    kill_at_ready();
    if (pwrite(fd, left->data + from, len, from) != (ssize_t)len)
        _exit(1);
    if (aq_ledger_open(dir, keys, &l, &err) < 0 || aq_ledger_publish(l, &err) < 0)
        _exit(2);
    _exit(0);
}

static void what_a_killed_writer_left_is_durable_before_it_is_signed(void **state)
{
    ledger_folder f = {0};
    aq_auto_buf left = {0};
    aq_ledger_audit a;
    struct stat st;
    uint64_t first;
    seen s = {0};
    aq_err err = {0};
    pid_t pid;

    (void)state;
    assert_int_equal(folder_make(&f, NULL), 0);
    make_locks(f.fd);
    assert_int_equal(folder_append(f.ledger, 0, 1, &first, &err), 0);
    assert_int_equal(aq_ledger_publish(f.ledger, &err), 0);
    assert_int_equal(fstatat(f.fd, "ledger/journal/0", &st, 0), 0);
    assert_int_equal(folder_append(f.ledger, 1, 1, &first, &err), 0);
    assert_int_equal(aq_read_file(f.fd, "ledger/journal/0", 1 << 20, &left, &err), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        next_writer(f.path, f.keys, &left, st.st_size);
    assert_int_equal(order_watch(pid, watch, &s), 0);
    if (*s.complaint)
        fail_msg("%s", s.complaint);
    assert_int_equal(s.checkpoints, 1);
    assert_int_equal(aq_ledger_verify(f.ledger, &a, &err), 0);
    assert_int_equal(a.published, 2);
    folder_free(&f);
}

/* The account itself: each of these forgets one sync, and must be found out. */
typedef struct slip {
    const char *what;
    bool sync_file, sync_folder, sync_last;
    bool found;
} slip;

_Noreturn static void sloppy(const char *path, const slip *s, int out)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

    kill_at_ready();
    fd = openat(dir, "temp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (write(fd, "tile", 4) != 4 || (s->sync_file && fdatasync(fd) < 0))
        _exit(1);
    if (mkdirat(dir, "tiles", 0700) < 0 || renameat(dir, "temp", dir, "tiles/0") < 0)
        _exit(2);
    if (s->sync_folder) {
        int sub = openat(dir, "tiles", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fsync(sub) < 0 || fsync(dir) < 0)
            _exit(3);
    }
    fd = openat(dir, "temp", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (write(fd, "note", 4) != 4 || fdatasync(fd) < 0 ||
        renameat(dir, "temp", dir, "checkpoint") < 0)
        _exit(4);
    if (s->sync_last && fsync(dir) < 0)
        _exit(5);
    _exit(write(out, "a", 1) == 1 ? 0 : 6);
}

static void a_forgotten_sync_is_found(void **state)
{
    static const slip slips[] = {
        {"nothing", true, true, true, false},
        {"the file's", false, true, true, true},
        {"the folder's", true, false, true, true},
        {"the last", true, true, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        ledger_folder f = {0};
        seen s = {0};
        int pipe_[2];
        pid_t pid;
        assert_int_equal(folder_make(&f, NULL), 0);
        assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            sloppy(f.path, &slips[i], pipe_[1]);
        assert_int_equal(order_watch(pid, watch, &s), 0);
        close(pipe_[0]);
        close(pipe_[1]);
        if ((*s.complaint != '\0') != slips[i].found)
            fail_msg("forgot %s sync: %s", slips[i].what, *s.complaint ? s.complaint : "unseen");
        folder_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durable_before_named_signed_removed_and_told),
        cmocka_unit_test(also_in_folders_that_a_killed_publisher_left),
        cmocka_unit_test(what_a_killed_writer_left_is_durable_before_it_is_signed),
        cmocka_unit_test(a_forgotten_sync_is_found),
    };

    return cmocka_run_group_tests_name("fault-order", tests, NULL, NULL);
}
