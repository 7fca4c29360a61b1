/* The jail, seen from outside: start a child, talk to it without ever waiting on it for good, and
 * believe nothing that it says. See jail.h.
 *
 * The socket is non-blocking on this side. While a request is being written, answers that arrive
 * are read into a buffer, so two full directions cannot lock each other out. Reading never gives
 * the kernel a place for descriptors: those that a child tries to send are dropped. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "jail/internal.h"
#include "jail/jail.h"

enum {
    READ_AT_ONCE = 256 << 10,
    WALL_SECONDS = 300,
    SAFE_FD = 64, /* above every number that the child gets */
};

struct aq_jail {
    char job[32];
    pid_t pid; /* 0 once reaped */
    int socket;
    aq_buf in;
    size_t in_at;
    bool closed;   /* the child's end is closed */
    bool greeted;  /* HELLO has come */
    bool finished; /* our END was sent */
    bool deaf;     /* it takes no requests any more; what it said counts */
    bool ended;    /* theirs was good */
    int failed;    /* the first failure; sticky */
    aq_err why;
    uint64_t frames, bytes; /* answers so far */
    uint64_t max_frames, max_bytes;
    int64_t deadline; /* milliseconds of the monotonic clock */
    aq_jail_hello hello;
};

static int64_t milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int fail(aq_jail *j, int code, const char *what, aq_err *err)
{
    j->failed = code;
    aq_fail(&j->why, code, "jailed job %s: %s", j->job, what);
    if (err)
        *err = j->why;
    return code;
}

static int again(const aq_jail *j, aq_err *err)
{
    if (err)
        *err = j->why;
    return j->failed;
}

static int request(aq_jail *j, uint16_t type, const void *payload, size_t len, const int *fds,
                   size_t fd_count, aq_err *err);

/* ---- starting ---- */

/* Moves a descriptor out of the range of fixed numbers, so that no dup2 overwrites another. */
static int lift(int fd, int *ret, aq_err *err)
{
    *ret = fcntl(fd, F_DUPFD_CLOEXEC, SAFE_FD);
    return *ret < 0 ? aq_fail_errno(err, "cannot duplicate descriptor %d for the jail", fd) : 0;
}

static int spawn(const char *job, const int *lifted, size_t count, pid_t *ret, aq_err *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char given[8];
    char *argv[] = {(char[]){"aquarium-jail"}, (char *)(uintptr_t)job, given, NULL};
    char *envp[] = {NULL};
    int r = 0;

    snprintf(given, sizeof given, "%zu", count - 4);
    sigemptyset(&none);
    sigfillset(&all);
    if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attr))
        aq_panic("out of memory");
    for (size_t i = 0; i < count && r == 0; i++)
        r = posix_spawn_file_actions_adddup2(&actions, lifted[i], (int)i);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawn(ret, "/proc/self/exe", &actions, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    if (r != 0)
        return aq_fail(err, -r, "cannot start a jailed child (is /proc mounted?): %s", strerror(r));
    return 0;
}

/* Numbers in the child: 0…2 nothing, 3 the socket, 4… what was given. */
static int spawn_with(const char *job, int null, int socket, const int *fds, size_t fd_count,
                      pid_t *ret, aq_err *err)
{
    int lifted[4 + AQ_JAIL_FDS];
    size_t count = 0;
    int r = 0;

    for (; count < 4 + fd_count && r == 0; count++) {
        int fd = count < 3 ? null : count == 3 ? socket : fds[count - 4];
        if (AQ_SANITIZED && count == 2 && fcntl(STDERR_FILENO, F_GETFD) >= 0)
            fd = STDERR_FILENO;
        r = lift(fd, &lifted[count], err);
    }
    if (r == 0)
        r = spawn(job, lifted, count, ret, err);
    for (size_t i = 0; i < count; i++)
        if (lifted[i] >= 0)
            close(lifted[i]);
    return r;
}

/* One child with its socket: `job`, or one that waits for its job. */
static int start_child(const char *job, const int *fds, size_t fd_count, pid_t *pid, int *socket,
                       aq_err *err)
{
    aq_auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    aq_auto_fd int ours = -1;
    aq_auto_fd int theirs = -1;
    int pair[2];
    int r;

    if (null < 0)
        return aq_fail_errno(err, "cannot open /dev/null");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return aq_fail_errno(err, "cannot make a socket for the jail");
    ours = pair[0];
    theirs = pair[1];
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return aq_fail_errno(err, "cannot set up the jail's socket");
    if ((r = spawn_with(job, null, theirs, fds, fd_count, pid, err)) < 0)
        return r;
    *socket = aq_take_fd(ours);
    return 0;
}

/* ---- started ahead ---- */

static struct {
    pthread_mutex_t lock;
    struct {
        pid_t pid;
        int socket;
    } items[AQ_JAIL_AHEAD];
    size_t count;
    pid_t owner; /* after a fork they are still the parent's */
} ahead = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void end_child(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static bool take_ahead(pid_t *pid, int *socket)
{
    bool any;

    pthread_mutex_lock(&ahead.lock);
    any = ahead.count > 0 && ahead.owner == getpid();
    if (any) {
        *pid = ahead.items[0].pid;
        *socket = ahead.items[0].socket;
        ahead.count--;
        memmove(ahead.items, ahead.items + 1, ahead.count * sizeof *ahead.items);
    }
    pthread_mutex_unlock(&ahead.lock);
    return any;
}

__attribute__((destructor)) static void forget_ahead(void)
{
    pid_t pid;
    int socket;

    while (take_ahead(&pid, &socket)) {
        close(socket);
        end_child(pid);
    }
}

void aq_jail_expect(size_t count)
{
    aq_err ignored;

    if (count == 0)
        forget_ahead();
    pthread_mutex_lock(&ahead.lock);
    ahead.owner = getpid();
    while (ahead.count < count && ahead.count < AQ_JAIL_AHEAD &&
           start_child(AQ_JAIL_LATER, NULL, 0, &ahead.items[ahead.count].pid,
                       &ahead.items[ahead.count].socket, &ignored) == 0)
        ahead.count++;
    pthread_mutex_unlock(&ahead.lock);
}

static aq_jail *new_jail(const char *job, pid_t pid, int socket)
{
    aq_jail *j = aq_alloc(sizeof *j);

    snprintf(j->job, sizeof j->job, "%s", job);
    j->pid = pid;
    j->socket = socket;
    aq_jail_wall(j, WALL_SECONDS);
    aq_jail_limit(j, 1 << 20, 256 << 20);
    return j;
}

int aq_jail_start(const char *job, const int *fds, size_t fd_count, aq_jail **ret, aq_err *err)
{
    aq_jail *j;
    pid_t pid = -1;
    int socket = -1, r;

    if (fd_count > AQ_JAIL_FDS || strlen(job) >= sizeof j->job)
        return aq_fail(err, -E2BIG, "jail: too many descriptors or too long a name");
    while (take_ahead(&pid, &socket)) {
        j = new_jail(job, pid, socket);
        if (request(j, AQ_JAIL_JOB, job, strlen(job), fds, fd_count, NULL) == 0) {
            *ret = j;
            return 0;
        }
        aq_jail_stop(j); /* someone ended it; the next one, or a new one */
    }
    if ((r = start_child(job, fds, fd_count, &pid, &socket, err)) < 0)
        return r;
    *ret = new_jail(job, pid, socket);
    return 0;
}

void aq_jail_limit(aq_jail *j, uint64_t frames, uint64_t bytes)
{
    j->max_frames = frames;
    j->max_bytes = bytes;
}

void aq_jail_wall(aq_jail *j, uint32_t seconds)
{
    j->deadline = milliseconds() + (int64_t)seconds * 1000;
}

void aq_jail_stop(aq_jail *j)
{
    if (!j)
        return;
    if (j->pid > 0)
        end_child(j->pid);
    close(j->socket);
    aq_buf_free(&j->in);
    free(j);
}

/* ---- the end of a child ---- */

static int explain(aq_jail *j, int status, aq_err *err)
{
    char what[80];

    if (AQ_SANITIZED && WIFEXITED(status) && WEXITSTATUS(status) == AQ_JAIL_SANITIZER)
        aq_panic("a sanitizer stopped the jailed job %s; its report is above", j->job);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return fail(j, -ETIME, "ran out of processor time", err);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return fail(j, -EPIPE, "made a forbidden system call and was killed", err);
    if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "died of signal %d", WTERMSIG(status));
    else
        snprintf(what, sizeof what, "ended early with status %d", WEXITSTATUS(status));
    return fail(j, -EPIPE, what, err);
}

static int remaining(const aq_jail *j)
{
    int64_t left = j->deadline - milliseconds();

    return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

/* Waits for the exit of a child whose socket is closed; one that lingers is killed in time. */
static int reap(aq_jail *j, int *status, aq_err *err)
{
    aq_auto_fd int pidfd = j->pid > 0 ? (int)syscall(SYS_pidfd_open, j->pid, 0) : -1;
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    bool late = false;

    if (j->pid <= 0)
        return fail(j, -ECHILD, "was lost", err);
    while (pidfd >= 0 && poll(&p, 1, remaining(j)) <= 0 && !late)
        late = remaining(j) == 0;
    if (pidfd < 0 || late)
        kill(j->pid, SIGKILL);
    while (waitpid(j->pid, status, 0) < 0)
        if (errno != EINTR)
            return fail(j, -ECHILD, "was lost", err);
    j->pid = 0;
    return late ? fail(j, -ETIME, "ran out of time", err) : 0;
}

static int died(aq_jail *j, aq_err *err)
{
    int status;
    int r = reap(j, &status, err);

    return r < 0 ? r : explain(j, status, err);
}

/* ---- talking ---- */

/* Reads what has arrived, without waiting. */
static int fill(aq_jail *j, aq_err *err)
{
    ssize_t n;

    if (j->in_at == j->in.len) {
        j->in_at = j->in.len = 0;
    } else if (j->in_at > AQ_JAIL_FRAME) {
        memmove(j->in.data, j->in.data + j->in_at, j->in.len - j->in_at);
        j->in.len -= j->in_at;
        j->in_at = 0;
    }
    aq_buf_reserve(&j->in, READ_AT_ONCE);
    n = recv(j->socket, j->in.data + j->in.len, READ_AT_ONCE, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return fail(j, -errno, "cannot be read", err);
    if (n <= 0) {
        j->closed = true;
        return 0;
    }
    j->in.len += (size_t)n;
    j->bytes += (uint64_t)n;
    if (j->bytes > j->max_bytes)
        return fail(j, -EOVERFLOW, "answered with more bytes than allowed", err);
    return 0;
}

static int wait_for(aq_jail *j, short events, aq_err *err)
{
    struct pollfd p = {.fd = j->socket, .events = events};
    int left = remaining(j);

    if (left == 0)
        return fail(j, -ETIME, "ran out of time", err);
    if (poll(&p, 1, left) < 0 && errno != EINTR)
        return fail(j, -errno, "cannot be waited for", err);
    return p.revents & (POLLIN | POLLHUP | POLLERR) ? fill(j, err) : 0;
}

/* One sendmsg; the descriptors go with the first byte. */
static ssize_t send_some(int fd, struct iovec *iov, size_t count, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(AQ_JAIL_FRAME_FDS * sizeof(int))];
    } control = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = count};

    if (fd_count > 0) {
        struct cmsghdr *c = &control.align;
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
        m.msg_control = control.space;
        m.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* -EPIPE when nobody is there to take it; the jail has not failed by that. */
static int request(aq_jail *j, uint16_t type, const void *payload, size_t len, const int *fds,
                   size_t fd_count, aq_err *err)
{
    aq_jail_head head = {.len = (uint32_t)len, .type = type, .fds = (uint16_t)fd_count};
    size_t done = 0, total = sizeof head + len;
    int r;

    while (done < total) {
        struct iovec iov[2] = {{&head, sizeof head}, {(void *)(uintptr_t)payload, len}};
        bool body = done >= sizeof head;
        size_t skip = body ? done - sizeof head : done;
        ssize_t n;

        iov[body].iov_base = (char *)iov[body].iov_base + skip;
        iov[body].iov_len -= skip;
        n = send_some(j->socket, iov + body, body || len == 0 ? 1 : 2, fds, done ? 0 : fd_count);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EPIPE || errno == ECONNRESET)
            return -EPIPE;
        else if (errno != EAGAIN && errno != EINTR)
            return fail(j, -errno, "cannot be written to", err);
        else if ((r = wait_for(j, POLLIN | POLLOUT, err)) < 0)
            return r;
        else if (j->closed)
            return -EPIPE;
    }
    return 0;
}

/* Is its last word in what was read and not yet looked at? */
static bool said_last(const aq_jail *j)
{
    aq_jail_head head;

    for (size_t at = j->in_at; j->in.len - at >= sizeof head; at += sizeof head + head.len) {
        memcpy(&head, j->in.data + at, sizeof head);
        if (head.len > j->in.len - at - sizeof head)
            break;
        if (head.type == AQ_JAIL_END || head.type == AQ_JAIL_FAILED)
            return true;
    }
    return false;
}

/* A child may end before it has taken every request, having said all it has to say or why it gave
 * up: then what it said counts, and whoever reads it is told. */
static int request_or_deaf(aq_jail *j, uint16_t type, const void *payload, size_t len,
                           const int *fds, size_t fd_count, aq_err *err)
{
    int r = j->deaf ? 0 : request(j, type, payload, len, fds, fd_count, err);

    if (r == 0 || j->failed)
        return r;
    for (r = 0; r == 0 && !j->closed;)
        r = wait_for(j, POLLIN, err);
    if (r == 0 && !said_last(j))
        r = died(j, err);
    j->deaf = true;
    return r;
}

int aq_jail_request(aq_jail *j, uint16_t type, const void *payload, size_t len, const int *fds,
                    size_t fd_count, aq_err *err)
{
    if (j->failed)
        return again(j, err);
    if (len > AQ_JAIL_FRAME || fd_count > AQ_JAIL_FRAME_FDS || type >= AQ_JAIL_OWN || j->finished ||
        j->ended)
        return aq_fail(err, -EMSGSIZE, "jail: not a possible request");
    return request_or_deaf(j, type, payload, len, fds, fd_count, err);
}

int aq_jail_finish(aq_jail *j, aq_err *err)
{
    if (j->failed)
        return again(j, err);
    if (j->finished || j->ended)
        return 0;
    j->finished = true;
    return request_or_deaf(j, AQ_JAIL_END, NULL, 0, NULL, 0, err);
}

static int greeting(aq_jail *j, size_t len, aq_err *err)
{
    if (j->greeted || len != sizeof j->hello)
        return fail(j, -EBADMSG, "broke the protocol", err);
    memcpy(&j->hello, j->in.data + j->in_at + sizeof(aq_jail_head), sizeof j->hello);
    j->greeted = true;
    j->frames++;
    j->in_at += sizeof(aq_jail_head) + len;
    return 0;
}

/* 1 and the head when a whole frame is in the buffer, 0 when more bytes are needed. The greeting is
 * taken on the way. */
static int whole_frame(aq_jail *j, aq_jail_head *head, aq_err *err)
{
    size_t have = j->in.len - j->in_at;

    if (have < sizeof *head)
        return 0;
    memcpy(head, j->in.data + j->in_at, sizeof *head);
    if (head->len > AQ_JAIL_FRAME || head->fds != 0 || (!j->greeted && head->type < AQ_JAIL_OWN))
        return fail(j, -EBADMSG, "broke the protocol", err);
    if (have - sizeof *head < head->len)
        return 0;
    if (head->type != AQ_JAIL_HELLO)
        return 1;
    if (greeting(j, head->len, err) < 0)
        return j->failed;
    return whole_frame(j, head, err); /* a second greeting is refused: this ends */
}

bool aq_jail_ready(aq_jail *j)
{
    aq_jail_head head;

    if (j->failed || j->ended || whole_frame(j, &head, NULL) != 0)
        return true;
    return fill(j, NULL) < 0 || j->closed || whole_frame(j, &head, NULL) != 0;
}

/* After END nothing may follow, and the exit status must be 0. */
static int end(aq_jail *j, const char *payload, size_t len, aq_err *err)
{
    uint64_t count;
    int status, r;

    if (len != sizeof count)
        return fail(j, -EBADMSG, "broke the protocol", err);
    memcpy(&count, payload, sizeof count);
    if (count != j->frames - 1)
        return fail(j, -EBADMSG, "lost answers on the way", err);
    while (!j->closed) {
        if ((r = wait_for(j, POLLIN, err)) < 0)
            return r;
        if (j->in_at != j->in.len)
            return fail(j, -EBADMSG, "went on after its end", err);
    }
    if ((r = reap(j, &status, err)) < 0)
        return r;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return explain(j, status, err);
    j->ended = true;
    return 0;
}

/* The child's own words are hostile as well: only plain characters are repeated. */
static int gave_up(aq_jail *j, const char *payload, size_t len, aq_err *err)
{
    char what[300];
    size_t n = len < sizeof what - 1 ? len : sizeof what - 1;

    for (size_t i = 0; i < n; i++)
        what[i] = payload[i] >= ' ' && payload[i] < 0x7f ? payload[i] : '?';
    what[n] = '\0';
    return fail(j, -EPIPE, what, err);
}

int aq_jail_next(aq_jail *j, uint16_t *type, const void **payload, size_t *len, aq_err *err)
{
    aq_jail_head head;
    int r;

    if (j->failed)
        return again(j, err);
    while (!j->ended) {
        const char *body;
        while ((r = whole_frame(j, &head, err)) == 0) {
            if (j->closed)
                return died(j, err);
            if ((r = wait_for(j, POLLIN, err)) < 0)
                return r;
        }
        if (r < 0)
            return r;
        if (++j->frames > j->max_frames)
            return fail(j, -EOVERFLOW, "answered with more frames than allowed", err);
        body = j->in.data + j->in_at + sizeof head;
        j->in_at += sizeof head + head.len;
        if (head.type < AQ_JAIL_OWN) {
            *type = head.type;
            *payload = body;
            *len = head.len;
            return 1;
        }
        if (head.type == AQ_JAIL_FAILED)
            return gave_up(j, body, head.len, err);
        if ((r = end(j, body, head.len, err)) < 0)
            return r;
    }
    return 0;
}

bool aq_jail_blames(int result)
{
    return result == -EPIPE || result == -EBADMSG || result == -EOVERFLOW || result == -ETIME;
}

void aq_jail_containment(const aq_jail *j, aq_buf *text)
{
    const aq_jail_hello *h = &j->hello;

    aq_buf_addf(text,
                "{\"landlock\": %u, \"seccomp\": %s, \"namespaces\": %s, \"capabilities\": %s, "
                "\"unprivileged\": %s, \"memory_limit\": %s}",
                h->landlock, h->seccomp ? "true" : "false", h->namespaces ? "true" : "false",
                h->capabilities ? "\"none\"" : "\"some\"", h->unprivileged ? "true" : "false",
                h->memory_limit ? "true" : "false");
}

int aq_jail_guarantee(aq_buf *text, aq_err *err)
{
    const void *payload;
    uint16_t type;
    size_t len;
    aq_jail *j;
    int r = aq_jail_start("guarantee", NULL, 0, &j, err);

    if (r < 0)
        return r;
    r = aq_jail_next(j, &type, &payload, &len, err);
    if (r >= 0)
        aq_jail_containment(j, text);
    aq_jail_stop(j);
    return r < 0 ? r : 0;
}
