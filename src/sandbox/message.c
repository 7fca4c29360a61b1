/* Messages between front, keeper, init and payload: one fixed size, a word, numbers, a text, and a
 * few descriptors. Whoever receives one checks it as if a stranger had sent it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/world.h"

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(AQ_MESSAGE_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
} control;

int aq_message_send(int fd, const aq_message *m, const int *fds, size_t count, aq_err *err)
{
    struct iovec iov = {(void *)(uintptr_t)m, sizeof *m};
    control c = {0};
    struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (count > 0) {
        c.align.cmsg_level = SOL_SOCKET;
        c.align.cmsg_type = SCM_RIGHTS;
        c.align.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&c.align), fds, count * sizeof(int));
        h.msg_control = c.space;
        h.msg_controllen = CMSG_SPACE(count * sizeof(int));
    }
    do
        n = sendmsg(fd, &h, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == ECONNRESET)
        errno = EPIPE; /* it died before it had read all; what it said is still to be read */
    return n < 0 ? aq_fail_errno(err, "cannot send to the other side") : 0;
}

static void take_control(struct msghdr *h, int *fds, pid_t *sender)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS && sender) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            *sender = who.pid;
        } else if (c->cmsg_type == SCM_RIGHTS) {
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < n; i++) {
                int got;
                memcpy(&got, CMSG_DATA(c) + i * sizeof got, sizeof got);
                if (fds && i < AQ_MESSAGE_FDS)
                    fds[i] = got;
                else
                    close(got);
            }
        }
    }
}

int aq_message_recv(int fd, aq_message *ret, int *fds, pid_t *sender, aq_err *err)
{
    struct iovec iov = {ret, sizeof *ret};
    control c = {0};
    struct msghdr h = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.space, .msg_controllen = sizeof c.space};
    unsigned reset = 0;
    ssize_t n;

    for (size_t i = 0; fds && i < AQ_MESSAGE_FDS; i++)
        fds[i] = -1;
    if (sender)
        *sender = 0;
    /* A peer that left without hearing us resets the line; what it said before is still there. */
    do
        n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset++)));
    if (n < 0 && errno != ECONNRESET)
        return aq_fail_errno(err, "cannot hear the other side");
    if (n <= 0)
        return aq_fail(err, -EPIPE, "the other side is gone");
    take_control(&h, fds, sender);
    if (n != sizeof *ret || h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return aq_fail(err, -EBADMSG, "the other side sent no whole message");
    ret->text[sizeof ret->text - 1] = '\0';
    return 0;
}

/* Where each descriptor of a group is; -1 travels as a bit that is not set. */
static size_t group_fds(aq_cgroup *g, int *at[static AQ_MESSAGE_FDS])
{
    size_t n = 0;

    at[n++] = &g->into;
    for (size_t i = 0; i < AQ_CGROUP_PLACES; i++)
        at[n++] = &g->place[i].join;
    at[n++] = &g->memory_events;
    at[n++] = &g->memory_peak;
    at[n++] = &g->memory_stat;
    at[n++] = &g->pids_events;
    at[n++] = &g->cpu_usage;
    return n;
}

int aq_message_send_groups(int fd, const aq_cgroup *g, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_GROUPS,
                    .number = (int32_t)(g->memory | g->pids << 4 | g->cpu << 8)};
    int *at[AQ_MESSAGE_FDS], fds[AQ_MESSAGE_FDS];
    aq_cgroup copy = *g;
    size_t n = group_fds(&copy, at), count = 0;

    for (size_t i = 0; i < n; i++)
        if (*at[i] >= 0) {
            m.length |= UINT64_C(1) << i;
            fds[count++] = *at[i];
        }
    return aq_message_send(fd, &m, fds, count, err);
}

int aq_message_recv_groups(int fd, aq_cgroup *ret, aq_err *err)
{
    int *at[AQ_MESSAGE_FDS], fds[AQ_MESSAGE_FDS];
    size_t n = group_fds(ret, at), next = 0;
    aq_message m;
    int r = aq_message_recv(fd, &m, fds, NULL, err);

    if (r < 0)
        return r;
    if (m.word != AQ_WORD_GROUPS)
        return aq_fail(err, -EPROTO, "the front said something else than expected");
    ret->memory = (aq_cgroup_level)(m.number & 3);
    ret->pids = (aq_cgroup_level)(m.number >> 4 & 3);
    ret->cpu = (aq_cgroup_level)(m.number >> 8 & 3);
    for (size_t i = 0; i < n; i++)
        if (m.length >> i & 1 && next < AQ_MESSAGE_FDS)
            *at[i] = fds[next++];
    return 0;
}

void aq_message_failed(int fd, const aq_err *err)
{
    aq_message m = {.word = AQ_WORD_FAILED, .number = err->code};

    snprintf(m.text, sizeof m.text, "%.*s", (int)sizeof m.text - 1, err->text);
    (void)aq_message_send(fd, &m, NULL, 0, NULL);
}

int aq_message_error(const aq_message *m, aq_err *err)
{
    char plain[AQ_TEXT];
    size_t n = 0;

    for (; m->text[n] && n < sizeof plain - 1; n++)
        plain[n] = m->text[n] >= ' ' && m->text[n] != 0x7f ? m->text[n] : '?';
    plain[n] = '\0';
    return aq_fail(err, m->number < 0 && m->number > -4096 ? m->number : -EPROTO, "%s",
                   n ? plain : "it failed without words");
}
