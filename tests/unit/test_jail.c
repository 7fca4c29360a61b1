/* The jail: what a good child answers arrives; one that dies, hangs, floods or lies costs its own
 * answer, is named, and never holds the parent up. What a job attempts to reach outside is in
 * test_jail_escape.c. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "jail/internal.h"
#include "jail/jail.h"

/* ---- jobs ---- */

/* Answers every request with its bytes, and every descriptor with what it holds. */
static int job_echo(aq_jail_io *io, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    uint16_t type;
    size_t len, count;
    int r;

    while ((r = aq_jail_recv(io, &type, &payload, &len, fds, &count, err)) == 0) {
        if ((r = aq_jail_send(io, type, payload, len, err)) < 0)
            return r;
        for (size_t i = 0; i < count; i++) {
            char text[16];
            ssize_t n = pread(fds[i], text, sizeof text, 0);
            close(fds[i]);
            if (n < 0 || aq_jail_send(io, 77, text, (size_t)n, err) < 0)
                return -EIO;
        }
    }
    return r == -ENODATA ? 0 : r;
}

static int job_given(aq_jail_io *io, aq_err *err)
{
    char text[16];
    ssize_t n = aq_pread_full(aq_jail_fd(io, 1), text, sizeof text, 0);

    if (aq_jail_fd(io, 2) >= 0 || n < 0)
        return -EIO;
    return aq_jail_send(io, 1, text, (size_t)n, err);
}

static int job_gives_up(aq_jail_io *io, aq_err *err)
{
    (void)io;
    return aq_fail(err, -EINVAL, "cannot make sense of \x1b[31mthis");
}

static int job_dies(aq_jail_io *io, aq_err *err)
{
    aq_jail_send(io, 1, "half", 4, err);
    aq_jail_flush(io, err);
    __builtin_trap();
}

static int job_leaves(aq_jail_io *io, aq_err *err)
{
    aq_jail_send(io, 1, "half", 4, err);
    aq_jail_flush(io, err);
    _exit(0);
}

static int job_loops(aq_jail_io *io, aq_err *err)
{
    (void)io;
    (void)err;
    for (volatile unsigned i = 0;;)
        i = i + 1;
    return 0;
}

/* Waits for a request that never comes. */
static int job_waits(aq_jail_io *io, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    uint16_t type;
    size_t len, count;

    while (aq_jail_recv(io, &type, &payload, &len, fds, &count, err) == 0)
        ;
    return 0;
}

/* Closes its socket after a good END and does not go away. */
static int job_lingers(aq_jail_io *io, aq_err *err)
{
    uint64_t one = 1;
    aq_jail_head head = {.len = sizeof one, .type = AQ_JAIL_END};
    struct iovec iov[] = {{&head, sizeof head}, {&one, sizeof one}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

    aq_jail_flush(io, err);
    sendmsg(AQ_JAIL_SOCKET, &m, 0);
    close(AQ_JAIL_SOCKET);
    return job_loops(io, err);
}

static void raw(aq_jail_io *io, const void *data, size_t len, aq_err *err)
{
    aq_jail_flush(io, err);
    if (write(AQ_JAIL_SOCKET, data, len) < 0)
        _exit(9);
}

static int job_garbage(aq_jail_io *io, aq_err *err)
{
    raw(io, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, err);
    return 0;
}

static int job_goes_on(aq_jail_io *io, aq_err *err)
{
    uint64_t one = 1;
    aq_jail_head head = {.len = sizeof one, .type = AQ_JAIL_END};

    raw(io, &head, sizeof head, err);
    raw(io, &one, sizeof one, err);
    raw(io, &one, sizeof one, err);
    _exit(0);
}

static int job_miscounts(aq_jail_io *io, aq_err *err)
{
    uint64_t count = 5;
    aq_jail_head head = {.len = sizeof count, .type = AQ_JAIL_END};

    raw(io, &head, sizeof head, err);
    raw(io, &count, sizeof count, err);
    _exit(0);
}

static int job_greets_twice(aq_jail_io *io, aq_err *err)
{
    aq_jail_hello h = {0};
    aq_jail_head head = {.len = sizeof h, .type = AQ_JAIL_HELLO};

    raw(io, &head, sizeof head, err);
    raw(io, &h, sizeof h, err);
    return 0;
}

/* The greeting is still in its buffer when this goes out. */
static int job_speaks_first(aq_jail_io *io, aq_err *err)
{
    aq_jail_head head = {.type = 1};

    (void)io;
    (void)err;
    _exit(write(AQ_JAIL_SOCKET, &head, sizeof head) == sizeof head ? 0 : 9);
}

static int job_claims_fds(aq_jail_io *io, aq_err *err)
{
    aq_jail_head head = {.type = 1, .fds = 1};

    raw(io, &head, sizeof head, err);
    return 0;
}

static int job_ends_badly(aq_jail_io *io, aq_err *err)
{
    uint64_t one = 1;
    aq_jail_head head = {.len = sizeof one, .type = AQ_JAIL_END};

    raw(io, &head, sizeof head, err);
    raw(io, &one, sizeof one, err);
    _exit(7);
}

static int job_floods(aq_jail_io *io, aq_err *err)
{
    static char block[AQ_JAIL_FRAME];

    for (;;)
        if (aq_jail_send(io, 1, block, sizeof block, err) < 0)
            return -EIO;
}

static int job_oversize(aq_jail_io *io, aq_err *err)
{
    aq_jail_head head = {.len = AQ_JAIL_FRAME + 1, .type = 1};

    if (aq_jail_send(io, 1, &head, AQ_JAIL_FRAME + 1, err) != -EMSGSIZE ||
        aq_jail_send(io, AQ_JAIL_END, &head, 0, err) != -EMSGSIZE)
        return -EINVAL;
    raw(io, &head, sizeof head, err);
    return 0;
}

/* Tries to hand a descriptor to the parent. */
static int job_sends_fd(aq_jail_io *io, aq_err *err)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.align = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    aq_jail_head head = {.len = 0, .type = 5};
    struct iovec iov = {&head, sizeof head};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = sizeof control.space};

    *(int *)CMSG_DATA(&control.align) = AQ_JAIL_SOCKET;
    aq_jail_flush(io, err);
    sendmsg(AQ_JAIL_SOCKET, &m, 0);
    _exit(0);
}

/* Asks for more memory than its job has. */
static int job_hungry(aq_jail_io *io, aq_err *err)
{
    char *p = aq_alloc((size_t)512 << 20);

    memset(p, 1, (size_t)512 << 20);
    return aq_jail_send(io, 1, p, 1, err);
}

#if AQ_SANITIZED
/* Beyond what was allocated; the optimiser must not see it. */
static int job_overreads(aq_jail_io *io, aq_err *err)
{
    volatile size_t beyond = 12;
    char *p = malloc(12), c = p[beyond];

    free(p);
    return aq_jail_send(io, 1, &c, 1, err);
}

static int job_overflows(aq_jail_io *io, aq_err *err)
{
    volatile int most = INT_MAX;
    int more = most + 1;

    return aq_jail_send(io, 1, &more, sizeof more, err);
}
#endif

#define JOB(name)                                                                                  \
    {                                                                                              \
#name, job_##name, 256 << 20, 1, NULL                                                      \
    }
static const aq_jail_job jobs[] = {
#if AQ_SANITIZED
    JOB(overreads),  JOB(overflows),
#endif
    JOB(echo),       JOB(given),      JOB(gives_up),     JOB(dies),     JOB(leaves),
    JOB(loops),      JOB(waits),      JOB(lingers),      JOB(garbage),  JOB(goes_on),
    JOB(miscounts),  JOB(floods),     JOB(oversize),     JOB(hungry),   JOB(speaks_first),
    JOB(claims_fds), JOB(ends_badly), JOB(greets_twice), JOB(sends_fd), {.name = NULL}};

/* ---- tests ---- */

static aq_jail *start(const char *job)
{
    aq_err err = {0};
    aq_jail *j = NULL;

    assert_int_equal(aq_jail_start(job, NULL, 0, &j, &err), 0);
    return j;
}

/* Runs a job that wants no request to its end; the outcome and the text of it. */
static int outcome(const char *job, aq_err *err)
{
    aq_jail *j = start(job);
    const void *payload;
    uint16_t type;
    size_t len;
    int r;

    aq_jail_limit(j, 100, 8 << 20);
    /* Short only where the wall clock is what ends the job: a busy machine is slow. */
    aq_jail_wall(j, strcmp(job, "waits") == 0 || strcmp(job, "lingers") == 0 ? 3 : 120);
    while ((r = aq_jail_next(j, &type, &payload, &len, err)) == 1)
        ;
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, err), r); /* an end stays one */
    aq_jail_stop(j);
    return r;
}

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void answers_arrive(void **state)
{
    aq_jail *j = start("echo");
    const void *payload;
    aq_err err = {0};
    uint16_t type;
    size_t len;

    (void)state;
    for (uint16_t i = 1; i <= 100; i++)
        assert_int_equal(aq_jail_request(j, i, "hello", 5, NULL, 0, &err), 0);
    assert_int_equal(aq_jail_request(j, 7, NULL, 0, NULL, 0, &err), 0);
    assert_int_equal(aq_jail_finish(j, &err), 0);
    for (uint16_t i = 1; i <= 101; i++) {
        assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
        assert_int_equal(type, i == 101 ? 7 : i);
        assert_int_equal(len, i == 101 ? 0 : 5);
        assert_memory_equal(payload, "hello", len);
    }
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    assert_true(aq_jail_request(j, 1, "x", 1, NULL, 0, &err) < 0);
    aq_jail_stop(j);
    aq_jail_stop(NULL);
}

/* 64 MiB there and 64 MiB back, with nobody reading until all is written. */
static void full_directions_do_not_lock(void **state)
{
    aq_jail *j = start("echo");
    aq_auto_free char *block = aq_alloc(AQ_JAIL_FRAME);
    const void *payload;
    aq_err err = {0};
    uint16_t type;
    size_t len;

    (void)state;
    for (uint16_t i = 0; i < 64; i++) {
        memset(block, i, AQ_JAIL_FRAME);
        assert_int_equal(aq_jail_request(j, i, block, AQ_JAIL_FRAME, NULL, 0, &err), 0);
    }
    assert_int_equal(aq_jail_finish(j, &err), 0);
    for (uint16_t i = 0; i < 64; i++) {
        assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
        assert_int_equal(type, i);
        assert_int_equal(len, AQ_JAIL_FRAME);
        assert_int_equal(((const char *)payload)[AQ_JAIL_FRAME - 1], i);
    }
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
}

static void descriptors_travel(void **state)
{
    aq_err err = {0};
    aq_jail *j = start("echo");
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    uint16_t type;
    size_t len;

    (void)state;
    for (int i = 0; i < AQ_JAIL_FRAME_FDS; i++) {
        fds[i] = aq_temp_fd(NULL, &err);
        assert_int_equal(dprintf(fds[i], "file %02d", i), 7);
    }
    for (int round = 0; round < 5; round++) /* more than the child may have open at once */
        assert_int_equal(aq_jail_request(j, 3, "some", 4, fds, AQ_JAIL_FRAME_FDS, &err), 0);
    assert_int_equal(aq_jail_request(j, 3, "last", 4, fds, 1, &err), 0);
    assert_int_equal(aq_jail_finish(j, &err), 0);
    for (int round = 0; round < 6; round++) {
        assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
        assert_int_equal(type, 3);
        for (int i = 0; i < (round == 5 ? 1 : AQ_JAIL_FRAME_FDS); i++) {
            char want[16];
            snprintf(want, sizeof want, "file %02d", i);
            assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
            assert_int_equal(type, 77);
            assert_memory_equal(payload, want, 7);
        }
    }
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
    for (int i = 0; i < AQ_JAIL_FRAME_FDS; i++)
        close(fds[i]);
}

static void given_descriptors(void **state)
{
    aq_err err = {0};
    aq_auto_fd int a = aq_temp_fd(NULL, &err);
    aq_auto_fd int b = aq_temp_fd(NULL, &err);
    const void *payload;
    uint16_t type;
    size_t len;
    aq_jail *j;

    (void)state;
    assert_int_equal(aq_write_full(a, "first", 5), 0);
    assert_int_equal(aq_write_full(b, "second", 6), 0);
    assert_int_equal(aq_jail_start("given", (int[]){a, b}, 2, &j, &err), 0);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(len, 6);
    assert_memory_equal(payload, "second", 6);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
}

static void deaths_are_named(void **state)
{
    static const struct {
        const char *job;
        int code;
        const char *text;
    } cases[] = {
        {"no-such-job", -EPIPE, "no job of this name"},
        {"gives_up", -EPIPE, "cannot make sense of ?[31mthis"},
        {"dies", -EPIPE, "signal"},
        {"leaves", -EPIPE, "ended early with status 0"},
        {"loops", -ETIME, "processor time"},
        {"waits", -ETIME, "ran out of time"},
        {"lingers", -ETIME, "time"},
        {"garbage", -EBADMSG, "protocol"},
        {"goes_on", -EBADMSG, "after its end"},
        {"miscounts", -EBADMSG, "lost answers"},
        {"greets_twice", -EBADMSG, "protocol"},
        {"speaks_first", -EBADMSG, "protocol"},
        {"claims_fds", -EBADMSG, "protocol"},
        {"ends_badly", -EPIPE, "status 7"},
        {"oversize", -EBADMSG, "protocol"},
        {"floods", -EOVERFLOW, "more bytes than allowed"},
        {"sends_fd", -EPIPE, "ended early"},
    };
    int before = open_descriptors();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_err err = {0};
        int r = outcome(cases[i].job, &err);
        if (r != cases[i].code || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d, %s", cases[i].job, r, err.text);
        assert_true(aq_jail_blames(r));
    }
    assert_false(aq_jail_blames(0) || aq_jail_blames(1) || aq_jail_blames(-ENOSPC) ||
                 aq_jail_blames(-EMFILE));
    assert_int_equal(open_descriptors(), before); /* none came from a child, none leaked */
}

/* A parent that is still writing notices the death as well. */
static void death_while_writing(void **state)
{
    aq_auto_free char *block = aq_alloc(AQ_JAIL_FRAME);
    aq_jail *j = start("dies");
    aq_err err = {0};
    int r = 0;

    (void)state;
    for (int i = 0; i < 64 && r == 0; i++)
        r = aq_jail_request(j, 1, block, AQ_JAIL_FRAME, NULL, 0, &err);
    assert_int_equal(r, -EPIPE);
    assert_non_null(strstr(err.text, "signal"));
    aq_jail_stop(j);
}

#if !AQ_SANITIZED /* a sanitizer needs terabytes of addresses, so the limit is off there */
/* A child that has said everything, or why it gave up, is heard: the request that it did not wait
 * for is no failure. */
static void requests_after_the_end(void **state)
{
    siginfo_t gone;

    (void)state;
    for (int gave_up = 0; gave_up < 2; gave_up++) {
        aq_err err = {0};
        aq_auto_fd int fd = aq_temp_fd(NULL, &err);
        const void *payload;
        uint16_t type;
        size_t len;
        aq_jail *j;

        assert_int_equal(
            aq_jail_start(gave_up ? "gives_up" : "given", (int[]){fd, fd}, 2, &j, &err), 0);
        assert_int_equal(waitid(P_ALL, 0, &gone, WEXITED | WNOWAIT), 0);
        assert_int_equal(aq_jail_request(j, 1, "late", 4, NULL, 0, &err), 0);
        assert_int_equal(aq_jail_request(j, 1, "later", 5, NULL, 0, &err), 0);
        assert_int_equal(aq_jail_finish(j, &err), 0);
        if (gave_up) {
            assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), -EPIPE);
            assert_non_null(strstr(err.text, "cannot make sense"));
        } else {
            assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
            assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
        }
        aq_jail_stop(j);
    }
}

static void memory_is_bounded(void **state)
{
    aq_err err = {0};

    (void)state;
    assert_int_equal(outcome("hungry", &err), -EPIPE);
}
#endif

#if AQ_SANITIZED
/* No test may take a sanitizer's report in a jail for a package that could not be read: the front
 * stops, and the report is on its standard error. */
static void reports_of_sanitizers_are_not_swallowed(void **state)
{
    static const char *const cases[][2] = {{"overreads", "AddressSanitizer: heap-buffer-overflow"},
                                           {"overflows", "signed integer overflow"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_auto_buf text = {0};
        aq_err err = {0};
        int pipe_[2], status;
        pid_t pid;

        assert_int_equal(pipe2(pipe_, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            dup2(pipe_[1], STDERR_FILENO);
            outcome(cases[i][0], &err);
            _exit(0);
        }
        close(pipe_[1]);
        assert_int_equal(aq_read_fd(pipe_[0], "report", 1 << 20, &text, &err), 0);
        close(pipe_[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 70 ||
            !strstr(aq_buf_str(&text), cases[i][1]))
            fail_msg("%s: status %x: %s", cases[i][0], (unsigned)status, aq_buf_str(&text));
    }
}
#endif

static void frames_are_counted(void **state)
{
    aq_jail *j = start("echo");
    const void *payload;
    aq_err err = {0};
    uint16_t type;
    size_t len;

    (void)state;
    aq_jail_limit(j, 3, 1 << 20); /* the greeting and two more */
    for (int i = 0; i < 3; i++)
        assert_int_equal(aq_jail_request(j, 1, "x", 1, NULL, 0, &err), 0);
    assert_int_equal(aq_jail_finish(j, &err), 0);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0 - EOVERFLOW);
    assert_true(aq_jail_ready(j));
    aq_jail_stop(j);
}

static void ready_never_waits(void **state)
{
    aq_jail *j = start("echo");
    const void *payload;
    aq_err err = {0};
    uint16_t type;
    size_t len;

    (void)state;
    assert_false(aq_jail_ready(j)); /* nothing was asked yet, so nothing but a greeting comes */
    assert_int_equal(aq_jail_request(j, 1, "x", 1, NULL, 0, &err), 0);
    assert_int_equal(aq_jail_finish(j, &err), 0);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    assert_true(aq_jail_ready(j));
    aq_jail_stop(j);
}

static void guarantee_is_stated(void **state)
{
    aq_auto_json json_t *o = NULL;
    aq_auto_buf text = {0};
    aq_err err = {0};

    (void)state;
    assert_int_equal(aq_jail_guarantee(&text, &err), 0);
    assert_int_equal(aq_json_parse(aq_buf_str(&text), text.len, "guarantee", &o, &err), 0);
    assert_true(json_is_true(json_object_get(o, "seccomp")));
    assert_true(json_is_true(json_object_get(o, "unprivileged")));
    assert_string_equal(aq_json_str(o, "capabilities"), "none");
}

static void limits_of_the_caller(void **state)
{
    int fds[AQ_JAIL_FDS + 1] = {0};
    aq_err err = {0};
    aq_jail *j;

    (void)state;
    assert_int_equal(aq_jail_start("echo", fds, AQ_JAIL_FDS + 1, &j, &err), -E2BIG);
    assert_int_equal(aq_jail_start("echo", (int[]){-1}, 1, &j, &err), -EBADF);
}

/* Children that were started ahead do all that others do, and nothing of them stays. */
static void started_ahead(void **state)
{
    aq_jail *j;
    aq_err err = {0};

    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left from before */
    aq_jail_expect(3);
    answers_arrive(state);
    descriptors_travel(state);
    given_descriptors(state);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all three were used */
    aq_jail_expect(AQ_JAIL_AHEAD + 5);
    assert_int_equal(outcome("dies", &err), -EPIPE);
    assert_int_equal(outcome("no-such-job", &err), -EPIPE);
    assert_non_null(strstr(err.text, "no job of this name"));
    assert_int_equal(outcome("loops", &err), -ETIME);
    guarantee_is_stated(state);
    aq_jail_expect(2);
    assert_int_equal(aq_jail_start("echo", (int[]){-1}, 1, &j, &err), -EBADF);
    aq_jail_expect(2);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* they are there */
    aq_jail_expect(0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static pid_t only_child(void)
{
    FILE *f = fopen("/proc/thread-self/children", "re");
    int pid = 0;

    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid;
}

/* The job and all requests are there before the child looks: it must not take the descriptors of a
 * request with those of its job, which are all that its lock leaves open. */
static void requests_wait_for_the_lock(void **state)
{
    aq_err err = {0};
    int fd = aq_temp_fd(NULL, &err);
    const void *payload;
    uint16_t type;
    size_t len;
    pid_t pid;
    aq_jail *j;

    (void)state;
    assert_int_equal(dprintf(fd, "file 00"), 7);
    aq_jail_expect(1);
    pid = only_child();
    assert_true(pid > 0);
    kill(pid, SIGSTOP);
    j = start("echo");
    assert_int_equal(aq_jail_request(j, 3, "some", 4, &fd, 1, &err), 0);
    assert_int_equal(aq_jail_finish(j, &err), 0);
    kill(pid, SIGCONT);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
    assert_int_equal(type, 77);
    assert_memory_equal(payload, "file 00", 7);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
    close(fd);
}

/* One that was killed while it waited costs nothing but itself. */
static void one_ahead_was_killed(void **state)
{
    int pids[2] = {0};
    FILE *f;

    aq_jail_expect(2);
    f = fopen("/proc/thread-self/children", "re");
    if (f && fscanf(f, "%d %d", &pids[0], &pids[1]) == 2)
        kill(pids[0], SIGKILL);
    if (f)
        fclose(f);
    while (pids[0] > 0 && waitpid(pids[0], NULL, 0) < 0 && errno == EINTR)
        ;
    given_descriptors(state);
    answers_arrive(state);
    aq_jail_expect(0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_arrive),
        cmocka_unit_test(full_directions_do_not_lock),
        cmocka_unit_test(descriptors_travel),
        cmocka_unit_test(given_descriptors),
        cmocka_unit_test(deaths_are_named),
        cmocka_unit_test(death_while_writing),
#if AQ_SANITIZED
        cmocka_unit_test(reports_of_sanitizers_are_not_swallowed),
#else
        cmocka_unit_test(requests_after_the_end),
        cmocka_unit_test(memory_is_bounded),
#endif
        cmocka_unit_test(frames_are_counted),
        cmocka_unit_test(ready_never_waits),
        cmocka_unit_test(guarantee_is_stated),
        cmocka_unit_test(limits_of_the_caller),
        cmocka_unit_test(started_ahead),
        cmocka_unit_test(requests_wait_for_the_lock),
        cmocka_unit_test(one_ahead_was_killed),
    };

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(jobs, argc, argv);
    return cmocka_run_group_tests_name("jail", tests, NULL, NULL);
}
