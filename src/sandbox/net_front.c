/* The front's part of a world's network: a child that lays the cable, and the internet; see net.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "internet/line.h"
#include "internet/ports.h"
#include "kernel/process.h"
#include "sandbox/net.h"

enum { HIGH = 256 }; /* descriptors from here on are in nobody's way */

void aq_net_begin(aq_net *n)
{
    *n = (aq_net){.line = -1, .users = -1, .network = -1};
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void reap(pid_t *pid)
{
    while (*pid > 0 && waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

/* ---- the cable ---- */

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(AQ_NET_SOCKETS * sizeof(int))];
} control;

static int send_sockets(int line, const int *fds, size_t count, aq_err *err)
{
    char byte = 0;
    struct iovec iov = {&byte, 1};
    control c = {0};
    struct msghdr h = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = c.space,
                       .msg_controllen = CMSG_SPACE(count * sizeof(int))};

    c.align.cmsg_level = SOL_SOCKET;
    c.align.cmsg_type = SCM_RIGHTS;
    c.align.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&c.align), fds, count * sizeof(int));
    return sendmsg(line, &h, MSG_NOSIGNAL) < 0 ? aq_fail_errno(err, "cannot hand sockets over") : 0;
}

/* In the child. It has every right over the world's namespaces, and none over ours. */
_Noreturn static void lay_cable(const aq_net *n, const aq_machine *m, int line, pid_t front)
{
    int sockets[AQ_NET_SOCKETS], keep[] = {n->users, n->network, line};
    aq_err err = {0};
    int r = aq_process_die_with_parent(&err);

    if (getppid() != front)
        _exit(70);
    if (r == 0)
        r = aq_process_close_but(keep, sizeof keep / sizeof *keep, &err);
    if (r == 0 && setns(n->users, CLONE_NEWUSER) < 0)
        r = aq_fail_errno(&err, "cannot enter the world's user namespace");
    if (r == 0)
        r = aq_net_lay(m, n->network, sockets, &err);
    if (r > 0)
        r = send_sockets(line, sockets, (size_t)r, &err);
    if (r < 0)
        aq_message_failed(line, &err);
    _exit(r < 0 ? 70 : 0);
}

/* One packet: the sockets, or a failure in words. */
static int take_sockets(aq_net *n, int line, aq_err *err)
{
    aq_message m = {0};
    struct iovec iov = {&m, sizeof m};
    control c = {0};
    struct msghdr h = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.space, .msg_controllen = sizeof c.space};
    ssize_t got;

    do
        got = recvmsg(line, &h, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return aq_fail_errno(err, "cannot hear who lays the cable");
    if (got == sizeof m && m.word == AQ_WORD_FAILED) {
        m.text[sizeof m.text - 1] = '\0';
        return aq_message_error(&m, err);
    }
    if (got == 1 && c.align.cmsg_level == SOL_SOCKET && c.align.cmsg_type == SCM_RIGHTS)
        n->count = (c.align.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(n->socket, CMSG_DATA(&c.align), n->count * sizeof(int));
    return n->count >= aq_port_sockets() + aq_listener_sockets()
               ? 0
               : aq_fail(err, -EPROTO, "who lays the cable died, or is not ours");
}

static int make_cable(aq_net *n, const aq_machine *m, aq_err *err)
{
    pid_t child, front = getpid();
    int pair[2], r;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return aq_fail_errno(err, "cannot make a line");
    child = fork();
    if (child == 0) {
        close(pair[0]);
        lay_cable(n, m, pair[1], front);
    }
    close(pair[1]);
    r = child < 0 ? aq_fail_errno(err, "cannot start a child that lays the cable")
                  : take_sockets(n, pair[0], err);
    close(pair[0]);
    reap(&child);
    return r;
}

/* ---- the internet ---- */

/* Beside the program that runs now, or in libexec. Returns only if it could not be started. */
static int become_internet(void)
{
    static const char *const places[] = {"", "/" AQ_LIBEXEC};
    char self[PATH_MAX] = "", path[PATH_MAX + 256];
    char *const argv[] = {(char *)(uintptr_t) "aquarium-internet", NULL};
    char *const env[] = {NULL};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = n > 0 ? strrchr(self, '/') : NULL;

    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/aquarium-internet", self, places[i]);
        execve(path, argv, env);
        if (errno != ENOENT)
            break;
    }
    return -errno;
}

/* 3 the line, 4 the world, then the sockets; all others are closed by exec. */
static int arrange(const aq_net *n, int world)
{
    int high[2 + AQ_NET_SOCKETS], count = 0, nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    high[count++] = fcntl(n->line, F_DUPFD_CLOEXEC, HIGH);
    high[count++] = fcntl(world, F_DUPFD_CLOEXEC, HIGH);
    for (size_t i = 0; i < n->count; i++)
        high[count++] = fcntl(n->socket[i], F_DUPFD_CLOEXEC, HIGH);
    for (int i = 0; i < 3; i++)
        if (nothing < 0 || dup2(nothing, i) < 0)
            return -errno;
    for (int i = 0; i < count; i++)
        if (high[i] < 0 || dup2(high[i], AQ_LINE_FD + i) < 0)
            return -errno;
    return 0;
}

/* It works on the processor of keeper and world only: then packets are where they belong as soon as
 * whoever sent them waits. */
_Noreturn static void internet(const aq_net *n, int world, pid_t keeper, pid_t front)
{
    aq_line_message m = {.type = AQ_LINE_FAILED,
                         .failed.text = "aquarium-internet cannot be started"};
    cpu_set_t set;
    char text[160];
    int r;

    for (int sig = 1; sig < 32; sig++)
        signal(sig, SIG_DFL);
    if (aq_process_die_with_parent(NULL) < 0 || getppid() != front)
        _exit(70);
    if (sched_getaffinity(keeper, sizeof set, &set) == 0)
        sched_setaffinity(0, sizeof set, &set);
    r = arrange(n, world);
    if (r == 0)
        r = become_internet();
    snprintf(text, sizeof text, "aquarium-internet cannot be started: %s", strerror(-r));
    m.failed.text = text;
    close_range(AQ_LINE_WORLD, ~0U, 0); /* whoever hears of it finds everybody refusing */
    aq_line_send(AQ_LINE_FD, &m, NULL);
    _exit(70);
}

static int start_internet(aq_net *n, const aq_plan *plan, pid_t keeper, aq_err *err)
{
    pid_t front = getpid();
    aq_auto_fd int world = plan->internet ? plan->internet(plan, err) : -1;

    if (world < 0)
        return plan->internet ? world : aq_fail(err, -ENOENT, "this world has no internet");
    if (lseek(world, 0, SEEK_SET) < 0)
        return aq_fail_errno(err, "cannot rewind the internet's world");
    n->internet = fork();
    if (n->internet == 0)
        internet(n, world, keeper, front);
    return n->internet < 0 ? aq_fail_errno(err, "cannot start the internet") : 0;
}

/* From here on the line, and the sockets, are the internet's alone. */
static void hand_over(aq_net *n)
{
    for (size_t i = 0; i < n->count; i++)
        close_fd(&n->socket[i]);
    n->count = 0;
    close_fd(&n->line);
}

static void kill_internet(aq_net *n)
{
    if (n->internet > 0)
        kill(n->internet, SIGKILL);
    reap(&n->internet);
}

/* ---- what the keeper asks ---- */

int aq_net_serve(aq_net *n, const aq_plan *plan, pid_t keeper, uint32_t word, aq_err *err)
{
    aq_message done = {.word = AQ_WORD_CABLE};
    aq_err own = {0};

    if (word == AQ_WORD_ALONE) {
        kill_internet(n);
        return 0;
    }
    if (!plan->machine || n->line < 0 || (word == AQ_WORD_CABLE) == n->laid)
        return aq_fail(err, -EPROTO, "the keeper asks for a network that it cannot have");
    if (word == AQ_WORD_CABLE) {
        n->laid = true;
        if (make_cable(n, plan->machine, &own) < 0)
            aq_message_failed(n->line, &own);
        else
            (void)aq_message_send(n->line, &done, NULL, 0, NULL);
        return 0;
    }
    if (start_internet(n, plan, keeper, &own) < 0) {
        aq_line_message m = {.type = AQ_LINE_FAILED, .failed.text = own.text};
        aq_line_send(n->line, &m, NULL);
    }
    hand_over(n);
    return 0;
}

void aq_net_end(aq_net *n)
{
    hand_over(n);
    close_fd(&n->users);
    close_fd(&n->network);
    kill_internet(n);
}
