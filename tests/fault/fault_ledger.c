/* The ledger under stress: kills at random moments and at every single system call that writes,
 * errors injected into each of them, half-done writes, a full disk, several processes at once.
 * Afterwards the audit holds and every entry that was acknowledged is there. */
#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kill_at.h"
#include "ledger_folder.h"

/* What a writer tells its parent, after the append returned. */
typedef struct ack {
    uint64_t index, n;
} ack;

/* ---- what must hold ---- */

typedef struct wanted {
    size_t found;
    uint64_t *n; /* by index; what the acknowledged entry must hold */
} wanted;

static int check_ack(void *arg, uint64_t index, const void *entry, size_t len, aq_err *err)
{
    wanted *w = arg;
    char want[32];

    if (w->n[index] == UINT64_MAX)
        return 0;
    snprintf(want, sizeof want, "\"n\":%llu,", (unsigned long long)w->n[index]);
    if (!memmem(entry, len, want, strlen(want)))
        return aq_fail(err, -EBADMSG, "entry %llu is another one", (unsigned long long)index);
    w->found++;
    return 0;
}

static void check_acks(aq_ledger *l, uint64_t entries, const ack *acks, size_t count)
{
    wanted w = {.n = aq_realloc(NULL, entries + 1, sizeof *w.n)};
    aq_checkpoint c;
    aq_err err = {0};

    for (uint64_t i = 0; i < entries; i++)
        w.n[i] = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        if (acks[i].index >= entries)
            fail_msg("acknowledged entry %llu is lost", (unsigned long long)acks[i].index);
        w.n[acks[i].index] = acks[i].n;
    }
    if (aq_ledger_published(l, NULL, &c, &err) < 0 ||
        aq_ledger_walk(l, &c, 0, entries, check_ack, &w, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(w.found, count);
    free(w.n);
}

/* As a reader first (nothing is repaired), then as a writer who goes on. */
static void check_folder(int dir, const aq_keys *keys, const ack *acks, size_t count)
{
    aq_ledger *l = NULL;
    aq_ledger_audit a = {0};
    uint64_t first = 0, before;
    aq_err err = {0};

    if (aq_ledger_open(dir, NULL, &l, &err) < 0 || aq_ledger_verify(l, &a, &err) < 0)
        fail_msg("a reader finds: %s", err.text);
    check_acks(l, a.entries, acks, count);
    aq_ledger_close(l);
    before = a.entries;
    if (aq_ledger_open(dir, keys, &l, &err) < 0 || folder_append(l, 1, 1, &first, &err) < 0 ||
        aq_ledger_publish(l, &err) < 0 || aq_ledger_verify(l, &a, &err) < 0)
        fail_msg("the next writer finds: %s", err.text);
    assert_int_equal(first, before);
    assert_int_equal(a.entries, before + 1);
    assert_int_equal(a.published, before + 1);
    aq_ledger_close(l);
}

static size_t read_acks(int fd, ack *acks, size_t most)
{
    ssize_t n = aq_read_full(fd, acks, most * sizeof *acks);

    assert_true(n >= 0);
    return (size_t)n / sizeof *acks;
}

static int say(int fd, uint64_t first, uint64_t n, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ack a = {first + i, n + i};
        if (write(fd, &a, sizeof a) != sizeof a)
            return -1;
    }
    return 0;
}

/* ---- killed at random moments ---- */

enum { ROUNDS = 220, ROUNDS_PER_FOLDER = 20, ACKS = 20000 };

_Noreturn static void append_for_ever(const char *path, const aq_keys *keys, int out, uint64_t n)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    aq_ledger *l = NULL;
    uint64_t first;
    aq_err err;

    if (aq_ledger_open(dir, keys, &l, &err) < 0)
        _exit(1);
    for (unsigned i = 0;; i++) {
        size_t count = i % 11 == 10 ? 40 : 1 + i % 3;
        if (folder_append(l, n, count, &first, &err) < 0 || say(out, first, n, count) < 0)
            _exit(1);
        n += count;
        if (i % 7 == 6 && aq_ledger_publish(l, &err) < 0)
            _exit(1);
    }
}

static void one_kill(ledger_folder *f, ack *acks, uint64_t round)
{
    struct timespec nap = {0, (long)(round * 7919 % 12000) * 1000};
    int pipe_[2], status;
    size_t count;
    pid_t pid;

    assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        append_for_ever(f->path, f->keys, pipe_[1], round * 1000000);
    close(pipe_[1]);
    nanosleep(&nap, NULL);
    kill(pid, SIGKILL);
    count = read_acks(pipe_[0], acks, ACKS);
    close(pipe_[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status))
        fail_msg("the writer failed before it was killed");
    check_folder(f->fd, f->keys, acks, count);
}

static void killed_at_random_moments(void **state)
{
    aq_auto_free ack *acks = aq_alloc(ACKS * sizeof *acks);

    (void)state;
    for (uint64_t round = 0; round < ROUNDS;) {
        ledger_folder f = {0};
        assert_int_equal(folder_make(&f, NULL), 0);
        for (int i = 0; i < ROUNDS_PER_FOLDER; i++)
            one_kill(&f, acks, ++round);
        folder_free(&f);
    }
}

/* ---- killed at, or failed in, every system call that writes ---- */

/* Crosses segments, fills bundles, replaces partial tiles, drops segments. An error is survived by
 * opening the ledger again, as a service would. */
_Noreturn static void scenario(const char *path, const aq_keys *keys, int out)
{
    static const size_t batches[] = {3, 1, 300, 1};
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    aq_ledger *l = NULL;
    uint64_t first, n = 1000;
    aq_err err;

    kill_at_ready();
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        if (!l && aq_ledger_open(dir, keys, &l, &err) < 0)
            continue;
        if (folder_append(l, n, batches[i], &first, &err) == 0) {
            if (say(out, first, n, batches[i]) < 0)
                _exit(1);
        } else {
            aq_ledger_close(l);
            l = NULL;
            continue;
        }
        n += batches[i];
        if (aq_ledger_publish(l, &err) < 0) {
            aq_ledger_close(l);
            l = NULL;
        }
    }
    _exit(0);
}

static void copy_folder(int from, int to)
{
    int fd = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fdopendir(fd);
    struct dirent *e;

    assert_non_null(d);
    while ((e = readdir(d))) {
        struct stat st;
        aq_auto_buf b = {0};
        aq_err err;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        assert_int_equal(fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
        if (S_ISDIR(st.st_mode)) {
            aq_auto_fd int a = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            assert_int_equal(mkdirat(to, e->d_name, st.st_mode), 0);
            aq_auto_fd int z = openat(to, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            copy_folder(a, z);
            continue;
        }
        aq_auto_fd int out = openat(to, e->d_name, O_WRONLY | O_CREAT | O_CLOEXEC, st.st_mode);
        assert_int_equal(aq_read_file(fd, e->d_name, 1 << 24, &b, &err), 0);
        assert_int_equal(aq_write_full(out, aq_buf_str(&b), b.len), 0);
    }
    closedir(d);
}

/* 254 entries, 200 of them published: the next batch crosses a segment. */
static void make_template(ledger_folder *f)
{
    uint64_t first;
    aq_err err;

    assert_int_equal(folder_make(f, NULL), 0);
    assert_int_equal(folder_append(f->ledger, 0, 200, &first, &err), 0);
    assert_int_equal(aq_ledger_publish(f->ledger, &err), 0);
    assert_int_equal(folder_append(f->ledger, 200, 54, &first, &err), 0);
}

/* Runs the scenario with fault `mode` at call number `at`; false when it has fewer calls. */
static bool one_fault(const ledger_folder *template, kill_mode mode, unsigned at, ack *acks)
{
    char path[64];
    int pipe_[2];
    bool reached;
    size_t count;
    pid_t pid;

    snprintf(path, sizeof path, "%s/aq-ledger-XXXXXX", folder_parent());
    assert_non_null(mkdtemp(path));
    aq_auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    copy_folder(template->fd, dir);
    assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
    fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20); /* all acks fit: nobody reads while it runs */
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        scenario(path, template->keys, pipe_[1]);
    close(pipe_[1]);
    reached = kill_at(pid, mode, at);
    count = read_acks(pipe_[0], acks, ACKS);
    close(pipe_[0]);
    check_folder(dir, template->keys, acks, count);
    if (!reached)
        assert_int_equal(count, 305);
    folder_remove(AT_FDCWD, path);
    return reached;
}

static void every_fault(kill_mode mode)
{
    aq_auto_free ack *acks = aq_alloc(ACKS * sizeof *acks);
    ledger_folder template = {0};
    unsigned at = 0;

    make_template(&template);
    while (one_fault(&template, mode, at, acks))
        at++;
    print_message("# %u places\n", at);
    assert_true(at > 20);
    folder_free(&template);
}

static void killed_before_every_write(void **state)
{
    (void)state;
    every_fault(KILL_BEFORE);
}

static void killed_in_the_middle_of_every_write(void **state)
{
    (void)state;
    every_fault(KILL_HALF);
}

static void every_write_fails_once(void **state)
{
    (void)state;
    every_fault(FAIL_EIO);
}

/* ---- after a failed fdatasync ---- */

/* Exit status 0: the append failed, so did the next, and a new handle works. */
_Noreturn static void poisoned(const char *path, const aq_keys *keys)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    aq_ledger *l = NULL;
    uint64_t first;
    aq_err err;

    if (aq_ledger_open(dir, keys, &l, &err) < 0 || folder_append(l, 0, 1, &first, &err) < 0)
        _exit(1);
    kill_at_ready();
    if (folder_append(l, 1, 1, &first, &err) != -EIO)
        _exit(2);
    if (folder_append(l, 1, 1, &first, &err) != -EIO || !strstr(err.text, "open the ledger again"))
        _exit(3);
    aq_ledger_close(l);
    if (aq_ledger_open(dir, keys, &l, &err) < 0 || folder_append(l, 1, 1, &first, &err) < 0 ||
        first != 1)
        _exit(4);
    _exit(0);
}

static void a_failed_sync_poisons_the_handle(void **state)
{
    ledger_folder *f = *state;
    ack one = {1, 1};
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        poisoned(f->path, f->keys);
    assert_true(kill_at(pid, FAIL_SYNC, 0));
    assert_int_equal(kill_at_status(), 0);
    check_folder(f->fd, f->keys, &one, 1);
}

/* ---- full disks ---- */

/* Appends until it fails; gives the count of acknowledged entries. */
static uint64_t fill(aq_ledger *l, int expected)
{
    uint64_t n = 0, first;
    aq_err err;
    int r;

    while ((r = folder_append(l, n, 1 + n % 5, &first, &err)) == 0)
        n = first + 1 + n % 5;
    if (r != expected)
        fprintf(stderr, "%s\n", err.text);
    return r == expected ? n : 0;
}

static void a_file_size_limit(void **state)
{
    ledger_folder *f = *state;
    struct rlimit old, small;
    aq_ledger_audit a;
    uint64_t n, first;
    aq_err err;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){10000, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    n = fill(f->ledger, -EFBIG);
    assert_int_equal(folder_append(f->ledger, n, 300, &first, &err), -EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(n > 20);
    assert_int_equal(aq_ledger_verify(f->ledger, &a, &err), 0);
    assert_int_equal(a.entries, n);
    assert_int_equal(folder_append(f->ledger, n, 1, &first, &err), 0); /* the handle still works */
    assert_int_equal(first, n);
    check_folder(f->fd, f->keys, NULL, 0);
}

/* In a mount namespace of its own: exit status 0 when all held, 77 when it cannot be tried. */
static int on_small_disk(const char *path)
{
    ledger_folder f = {0};
    aq_ledger_audit a;
    uint64_t n, first;
    aq_err err;
    int filler;

    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("aquarium-test", path, "tmpfs", 0, "size=512k") < 0)
        return 77;
    if (folder_make(&f, path) < 0)
        return 1;
    filler = openat(f.fd, "filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    for (int i = 0; i < 25; i++) /* leaves about 400 KB */
        if (write(filler, (char[4096]){1}, 4096) != 4096)
            return 1;
    n = fill(f.ledger, -ENOSPC);
    if (n < 500 || aq_ledger_publish(f.ledger, &err) != -ENOSPC)
        return 2;
    if (aq_ledger_verify(f.ledger, &a, &err) < 0 || a.entries != n)
        return 3;
    if (folder_append(f.ledger, n, 600, &first, &err) == 0)
        return 4;
    if (close(filler) < 0 || unlinkat(f.fd, "filler", 0) < 0 ||
        folder_append(f.ledger, n, 1, &first, &err) < 0 || first != n)
        return 5;
    if (aq_ledger_verify(f.ledger, &a, &err) < 0 || a.entries != n + 1)
        return 6;
    return 0;
}

static void a_full_disk(void **state)
{
    char path[] = "/tmp/aq-full-XXXXXX";
    int status;
    pid_t pid;

    (void)state;
    assert_non_null(mkdtemp(path));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(on_small_disk(path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    rmdir(path);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("# hardware: this machine does not let the test mount a small disk\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- several processes ---- */

enum { WRITERS = 4, EACH = 60 };

static void writer(const char *path, const aq_keys *keys, int out, uint64_t n)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    aq_ledger *l = NULL;
    uint64_t first;
    aq_err err = {0};

    if (aq_ledger_open(dir, keys, &l, &err) < 0)
        goto failed;
    for (unsigned i = 0; i < EACH; i++) {
        size_t count = 1 + (i + n) % 7;
        if (folder_append(l, n, count, &first, &err) < 0 || say(out, first, n, count) < 0)
            goto failed;
        n += count;
        if (i % 6 == 0 && aq_ledger_publish(l, &err) < 0)
            goto failed;
    }
    _exit(0);
failed:
    fprintf(stderr, "writer: %s\n", err.text);
    _exit(1);
}

/* A reader who must never see anything wrong, however fast the writers are. */
static void read_along(int dir, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        aq_auto_json json_t *proof = NULL;
        aq_ledger *l = NULL;
        aq_ledger_audit a;
        aq_err err = {0};
        if (aq_ledger_open(dir, NULL, &l, &err) < 0 || aq_ledger_verify(l, &a, &err) < 0 ||
            (a.published && aq_ledger_prove(l, a.published - 1, &proof, &err) < 0))
            fail_msg("a reader among writers: %s", err.text);
        aq_ledger_close(l);
    }
}

static void several_processes(ledger_folder *f, unsigned writers)
{
    aq_auto_free ack *acks = aq_alloc(ACKS * sizeof *acks);
    aq_auto_free bool *seen = aq_alloc(ACKS);
    int pipe_[2], status;
    size_t count;

    assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
    fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20);
    for (unsigned i = 0; i < writers; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            writer(f->path, f->keys, pipe_[1], (i + 1) * 1000000);
    }
    close(pipe_[1]);
    read_along(f->fd, 15);
    count = read_acks(pipe_[0], acks, ACKS);
    close(pipe_[0]);
    for (unsigned i = 0; i < writers; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    for (size_t i = 0; i < count; i++) { /* every number was given once, none was left out */
        assert_true(acks[i].index < count && !seen[acks[i].index]);
        seen[acks[i].index] = true;
    }
    check_folder(f->fd, f->keys, acks, count);
}

static void two_processes(void **state)
{
    several_processes(*state, 2);
}

static void four_processes(void **state)
{
    several_processes(*state, WRITERS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_random_moments),
        cmocka_unit_test(killed_before_every_write),
        cmocka_unit_test(killed_in_the_middle_of_every_write),
        cmocka_unit_test(every_write_fails_once),
        T(a_failed_sync_poisons_the_handle),
        T(a_file_size_limit),
        cmocka_unit_test(a_full_disk),
        T(two_processes),
        T(four_processes),
    };

    return cmocka_run_group_tests_name("fault-ledger", tests, NULL, NULL);
}
