/* The jail, seen from inside: lock, run one job, say END. See jail.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "jail/internal.h"
#include "jail/jail.h"
#include "jail/lock.h"

enum {
    READ_AT_ONCE = 64 << 10,
    WRITE_AT_ONCE = 128 << 10, /* answers are gathered up to this size */
    DIRECT = 16 << 10,         /* a payload from this size on is sent without a copy */
    FD_QUEUE = 4 * AQ_JAIL_FRAME_FDS,
};

struct aq_jail_io {
    size_t fd_count;
    aq_buf in, out;
    size_t in_at; /* start of the next frame in `in` */
    int queue[FD_QUEUE];
    size_t queued;
    uint64_t sent; /* answer frames */
    bool finished; /* the parent's END has come */
    bool exact;    /* not a byte beyond the frame is taken, nor a descriptor of the next one */
};

int aq_jail_fd(const aq_jail_io *io, size_t index)
{
    return index < io->fd_count ? AQ_JAIL_FIRST_FD + (int)index : -EBADF;
}

/* Descriptors arrive with the first byte of their frame's head at the latest, never after it. */
static int take_control(aq_jail_io *io, struct msghdr *m, aq_err *err)
{
    if (m->msg_flags & MSG_CTRUNC)
        return aq_fail(err, -EPROTO, "jail: descriptors were lost");
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        if (n > FD_QUEUE - io->queued)
            return aq_fail(err, -EPROTO, "jail: too many descriptors");
        memcpy(io->queue + io->queued, CMSG_DATA(c), n * sizeof(int));
        io->queued += n;
    }
    return 0;
}

static int receive_more(aq_jail_io *io, size_t most, aq_err *err)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(AQ_JAIL_FRAME_FDS * sizeof(int))];
    } control;
    struct iovec iov;
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (io->in_at > 0) {
        memmove(io->in.data, io->in.data + io->in_at, io->in.len - io->in_at);
        io->in.len -= io->in_at;
        io->in_at = 0;
    }
    aq_buf_reserve(&io->in, most);
    iov = (struct iovec){io->in.data + io->in.len, most};
    m.msg_control = control.space;
    m.msg_controllen = sizeof control.space;
    do
        n = recvmsg(AQ_JAIL_SOCKET, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return aq_fail_errno(err, "jail: cannot read a request");
    if (n == 0)
        return aq_fail(err, -EPIPE, "jail: the parent is gone");
    io->in.len += (size_t)n;
    return take_control(io, &m, err);
}

int aq_jail_recv(aq_jail_io *io, uint16_t *type, const void **payload, size_t *len,
                 int fds[static AQ_JAIL_FRAME_FDS], size_t *fd_count, aq_err *err)
{
    aq_jail_head head;
    int r;

    *fd_count = 0;
    while (!io->finished) {
        size_t have = io->in.len - io->in_at, need = sizeof head;
        if (have >= sizeof head) {
            memcpy(&head, io->in.data + io->in_at, sizeof head);
            if (head.len > AQ_JAIL_FRAME || head.fds > AQ_JAIL_FRAME_FDS || head.fds > io->queued)
                return aq_fail(err, -EPROTO, "jail: malformed request");
            if (have - sizeof head >= head.len)
                break;
            need += head.len;
        }
        if ((r = receive_more(io, io->exact ? need - have : READ_AT_ONCE, err)) < 0)
            return r;
    }
    if (io->finished || head.type == AQ_JAIL_END) {
        io->finished = true;
        return -ENODATA;
    }
    *type = head.type;
    *payload = io->in.data + io->in_at + sizeof head;
    *len = head.len;
    *fd_count = head.fds;
    memcpy(fds, io->queue, head.fds * sizeof(int));
    io->queued -= head.fds;
    memmove(io->queue, io->queue + head.fds, io->queued * sizeof(int));
    io->in_at += sizeof head + head.len;
    return 0;
}

static int send_all(struct iovec *iov, size_t count, aq_err *err)
{
    while (count > 0) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = count};
        ssize_t n = sendmsg(AQ_JAIL_SOCKET, &m, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return aq_fail_errno(err, "jail: cannot send an answer");
        for (; count > 0 && (size_t)n >= iov->iov_len; iov++, count--)
            n -= (ssize_t)iov->iov_len;
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int aq_jail_flush(aq_jail_io *io, aq_err *err)
{
    struct iovec iov = {io->out.data, io->out.len};
    int r = io->out.len ? send_all(&iov, 1, err) : 0;

    io->out.len = 0;
    return r;
}

static int send_frame(aq_jail_io *io, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    aq_jail_head head = {.len = (uint32_t)len, .type = type};

    io->sent++;
    aq_buf_add(&io->out, &head, sizeof head);
    if (len >= DIRECT) {
        struct iovec iov[2] = {{io->out.data, io->out.len}, {(void *)(uintptr_t)payload, len}};
        int r = send_all(iov, 2, err);
        io->out.len = 0;
        return r;
    }
    aq_buf_add(&io->out, payload, len);
    return io->out.len >= WRITE_AT_ONCE ? aq_jail_flush(io, err) : 0;
}

int aq_jail_send(aq_jail_io *io, uint16_t type, const void *payload, size_t len, aq_err *err)
{
    if (len > AQ_JAIL_FRAME || type >= AQ_JAIL_OWN)
        return aq_fail(err, -EMSGSIZE, "jail: an answer of %zu bytes, type %u", len, type);
    return send_frame(io, type, payload, len, err);
}

int aq_jail_is_child(int argc, char **argv)
{
    return argc == 3 && strcmp(argv[0], "aquarium-jail") == 0;
}

static int run_nothing(aq_jail_io *io, aq_err *err)
{
    (void)io;
    (void)err;
    return 0;
}

static const aq_jail_job *find_job(const aq_jail_job *jobs, const char *name)
{
    static const aq_jail_job guarantee = {"guarantee", run_nothing, 256 << 20, 5, NULL};

    if (strcmp(name, guarantee.name) == 0)
        return &guarantee;
    for (; jobs && jobs->name; jobs++)
        if (strcmp(jobs->name, name) == 0)
            return jobs;
    return NULL;
}

/* A child that was started ahead waits for its job. Nothing hostile has reached it: the frame is
 * the parent's own, and the descriptors get the numbers that the others get at their start. What
 * follows the frame stays in the socket: the lock closes every descriptor that does not belong to
 * the job. */
static int wait_for_job(aq_jail_io *io, const aq_jail_job *jobs, const aq_jail_job **ret,
                        aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    uint16_t type;
    char name[32] = "";
    size_t len;
    int r;

    io->exact = true;
    r = aq_jail_recv(io, &type, &payload, &len, fds, &io->fd_count, err);
    io->exact = false;
    if (r < 0)
        return r;
    if (type != AQ_JAIL_JOB || len >= sizeof name)
        return aq_fail(err, -EPROTO, "jail: another frame than a job's name");
    for (size_t i = 0; i < io->fd_count; i++)
        if (fds[i] != AQ_JAIL_FIRST_FD + (int)i)
            return aq_fail(err, -EPROTO, "jail: a descriptor has another number than agreed");
    memcpy(name, payload, len);
    *ret = find_job(jobs, name);
    return 0;
}

static int live(aq_jail_io *io, const aq_jail_job *job, aq_err *err)
{
    aq_jail_hello hello;
    uint64_t count;
    int r = aq_jail_lock(job, io->fd_count, &hello, err);

    if (r == 0)
        r = send_frame(io, AQ_JAIL_HELLO, &hello, sizeof hello, err);
    if (r == 0)
        r = job->run(io, err);
    if (r != 0)
        return r;
    count = io->sent;
    r = send_frame(io, AQ_JAIL_END, &count, sizeof count, err);
    return r < 0 ? r : aq_jail_flush(io, err);
}

void aq_jail_child(const aq_jail_job *jobs, int argc, char **argv)
{
    aq_jail_io *io = aq_alloc(sizeof *io);
    const aq_jail_job *job = argc == 3 ? find_job(jobs, argv[1]) : NULL;
    aq_err err = {0};
    int r;

    io->fd_count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (argc == 3 && strcmp(argv[1], AQ_JAIL_LATER) == 0 && wait_for_job(io, jobs, &job, &err) < 0)
        _exit(1); /* the parent does not need it after all */
    if (!job || io->fd_count > AQ_JAIL_FDS)
        r = aq_fail(&err, -EINVAL, "jail: no job of this name");
    else
        r = live(io, job, &err);
    if (r != 0) {
        if (err.text[0] == '\0')
            aq_fail(&err, -EIO, "the job gave up");
        send_frame(io, AQ_JAIL_FAILED, err.text, strlen(err.text), &err);
        aq_jail_flush(io, &err);
    }
    _exit(r == 0 ? 0 : 1);
}
