/* The store under stress: several writers, kills at any moment, a full disk, a folder that cannot
 * be written, a damaged file. Nothing that was acknowledged is lost, nothing is half there. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "folder.h"
#include "store/store.h"

enum { WRITERS = 4, EACH = 120 };

static int write_one(aq_store *s, int writer, int number, aq_err *err)
{
    char id[40], nonce[40], name[40];
    aq_submission sub = {.id = id, .nonce = nonce, .publisher = "p", .time = 1};
    aq_known known = {"space", name, "p", true};
    int r;

    snprintf(id, sizeof id, "id-%d-%d", writer, number);
    snprintf(nonce, sizeof nonce, "nonce-%d-%d", writer, number);
    snprintf(name, sizeof name, "tool-%c-%d", 'a' + writer, number);
    if ((r = aq_store_begin(s, &sub, err)) < 0)
        return r;
    return aq_store_know(s, &known, err);
}

static uint64_t submissions(aq_store *s)
{
    uint64_t count = 0;
    aq_err err = {0};

    assert_int_equal(aq_store_rate(s, "p", false, 0, &count, &err), 0);
    return count;
}

static uint64_t names(aq_store *s)
{
    uint64_t count = 0;
    aq_err err = {0};

    assert_int_equal(aq_store_known_count(s, &count, &err), 0);
    return count;
}

static void check_file(const char *dir)
{
    char path[128];
    sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;

    snprintf(path, sizeof path, "%s/store.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    sqlite3_finalize(q);
    sqlite3_close(db);
}

/* All start on an empty folder at once: making the schema is part of the race. */
static void writers_lose_nothing(void **state)
{
    char dir[64];
    pid_t pids[WRITERS];
    aq_store *s = NULL;
    aq_err err = {0};

    (void)state;
    make_folder(dir);
    for (int w = 0; w < WRITERS; w++) {
        if ((pids[w] = fork()) == 0) {
            int r = aq_store_open(dir, &s, &err);
            for (int i = 0; r == 0 && i < EACH; i++)
                r = write_one(s, w, i, &err);
            if (r < 0)
                fprintf(stderr, "writer %d: %s\n", w, err.text);
            aq_store_close(s);
            _exit(r == 0 ? 0 : 1);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        assert_int_equal(waitpid(pids[w], &status, 0), pids[w]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(aq_store_open(dir, &s, &err), 0);
    assert_int_equal(submissions(s), WRITERS * EACH);
    assert_int_equal(names(s), WRITERS * EACH);
    aq_store_close(s);
    check_file(dir);
    remove_folder(dir);
}

/* The child says "done" only after the store said so; the kill comes at a random moment. */
static void kills_lose_nothing(void **state)
{
    char dir[64];
    unsigned seed = 3;
    uint64_t acknowledged = 0;
    aq_store *s = NULL;
    aq_err err = {0};

    (void)state;
    make_folder(dir);
    for (int round = 0; round < 12; round++) {
        int pipe_fds[2], status;
        uint64_t here = 0;
        pid_t pid;
        char c;

        assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
        if ((pid = fork()) == 0) {
            if (aq_store_open(dir, &s, &err) < 0)
                _exit(1);
            for (int i = 0;; i++)
                if (write_one(s, round, i, &err) < 0 || write(pipe_fds[1], "d", 1) != 1)
                    _exit(1);
        }
        close(pipe_fds[1]);
        assert_int_equal(read(pipe_fds[0], &c, 1), 1);
        here++;
        usleep((useconds_t)(rand_r(&seed) % 30000));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        while (read(pipe_fds[0], &c, 1) == 1)
            here++;
        close(pipe_fds[0]);
        acknowledged += here;
        assert_int_equal(aq_store_open(dir, &s, &err), 0);
        assert_true(names(s) >= acknowledged);
        assert_true(submissions(s) >= names(s)); /* at most the unacknowledged one of a round */
        assert_true(submissions(s) <= acknowledged + 1 + (uint64_t)round);
        acknowledged = names(s);
        aq_store_close(s);
        check_file(dir);
    }
    remove_folder(dir);
}

/* Writes until it fails: 42 when the failure was said in the right words. */
static int fill(const char *dir, int acknowledge, int want)
{
    aq_store *s = NULL;
    aq_err err = {0};

    if (aq_store_open(dir, &s, &err) < 0)
        return 1;
    for (int i = 0; i < 100000; i++) {
        int r = write_one(s, 0, i, &err);

        if (r < 0) {
            if (r == want && strstr(err.text, "store.db") && strstr(err.text, "disk") &&
                strstr(err.text, "Nothing was changed"))
                return 42;
            fprintf(stderr, "%d %s\n", r, err.text);
            return 2;
        }
        if (write(acknowledge, "d", 1) != 1)
            return 3;
    }
    return 4;
}

static uint64_t count_acknowledged(int fd)
{
    uint64_t done = 0;
    char c;

    while (read(fd, &c, 1) == 1)
        done++;
    return done;
}

static void check_after(const char *dir, uint64_t done)
{
    aq_store *s = NULL;
    aq_err err = {0};

    check_file(dir);
    assert_int_equal(aq_store_open(dir, &s, &err), 0);
    assert_int_equal(names(s), done);
    assert_true(submissions(s) - done <= 1);
    aq_store_close(s);
}

/* Works until the files may grow no further; what was said to be in is in, the rest is refused. */
static void size_limit_is_said(void **state)
{
    char dir[64];
    int status, fds[2];
    uint64_t done;
    aq_store *s = NULL;
    aq_err err = {0};
    pid_t pid;

    (void)state;
    make_folder(dir);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    if ((pid = fork()) == 0) {
        struct rlimit limit = {3 << 20, 3 << 20};

        signal(SIGXFSZ, SIG_IGN);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) < 0 ? 1 : fill(dir, fds[1], -EIO));
    }
    close(fds[1]);
    done = count_acknowledged(fds[0]);
    close(fds[0]);
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_true(done > 10);
    check_after(dir, done);
    assert_int_equal(aq_store_open(dir, &s, &err), 0); /* with room again it goes on */
    assert_int_equal(write_one(s, 1, 0, &err), 0);
    aq_store_close(s);
    remove_folder(dir);
}

/* The same on a file system that is really full: a small one in memory, in its own mount
 * namespace, which vanishes with the child. */
static void full_disk_is_said(void **state)
{
    char dir[64];
    int status;
    pid_t pid;

    (void)state;
    make_folder(dir);
    if ((pid = fork()) == 0) {
        int fds[2], result;

        if (unshare(getuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", dir, "tmpfs", 0, "size=3m") < 0 || pipe2(fds, O_CLOEXEC) < 0)
            _exit(77);
        result = fill(dir, fds[1], -ENOSPC);
        close(fds[1]);
        if (result == 42 && mount("tmpfs", dir, "tmpfs", MS_REMOUNT, "size=9m") == 0)
            check_after(dir, count_acknowledged(fds[0]));
        _exit(result);
    }
    waitpid(pid, &status, 0);
    remove_folder(dir);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("# skipped: this host allows no mount namespace\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void read_only_folder_is_said(void **state)
{
    char dir[64];
    pid_t pid;
    int status;

    (void)state;
    make_folder(dir);
    assert_int_equal(chmod(dir, 0555), 0);
    if ((pid = fork()) == 0) {
        aq_store *s = NULL;
        aq_err err = {0};
        /* modes do not bind root */
        if (getuid() == 0 && (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0))
            _exit(1);
        _exit(aq_store_open(dir, &s, &err) == -EACCES && strstr(err.text, "store.db") ? 42 : 2);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    chmod(dir, 0755);
    remove_folder(dir);
}

static void damage_is_said(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        char dir[64], path[128];
        aq_store *s = NULL;
        aq_err err = {0};
        struct stat st;
        uint64_t count;
        int fd, r;

        make_folder(dir);
        snprintf(path, sizeof path, "%s/store.db", dir);
        assert_int_equal(aq_store_open(dir, &s, &err), 0);
        for (int i = 0; i < 50; i++)
            assert_int_equal(write_one(s, 0, i, &err), 0);
        aq_store_close(s);
        s = NULL;
        assert_true((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        if (way == 0) { /* no database at all */
            assert_int_equal(ftruncate(fd, 0), 0);
            for (int i = 0; i < 400; i++)
                assert_int_equal(write(fd, "not a database ", 15), 15);
        } else if (way == 1) { /* cut in the middle */
            assert_int_equal(ftruncate(fd, st.st_size / 2 / 4096 * 4096), 0);
        } else { /* pages overwritten */
            for (off_t at = 4096; at < st.st_size; at += 512)
                assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, at), 8);
        }
        close(fd);
        if ((r = aq_store_open(dir, &s, &err)) == 0 &&
            (r = aq_store_known_count(s, &count, &err)) == 0 &&
            (r = aq_store_rate(s, "p", false, 0, &count, &err)) == 0)
            r = write_one(s, 1, 0, &err);
        assert_int_equal(r, -EBADMSG);
        assert_non_null(strstr(err.text, "damaged"));
        assert_non_null(strstr(err.text, path));
        assert_non_null(strstr(err.text, "backup"));
        aq_store_close(s);
        remove_folder(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_lose_nothing),     cmocka_unit_test(kills_lose_nothing),
        cmocka_unit_test(size_limit_is_said),       cmocka_unit_test(full_disk_is_said),
        cmocka_unit_test(read_only_folder_is_said), cmocka_unit_test(damage_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
