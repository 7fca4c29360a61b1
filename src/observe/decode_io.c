/* Bytes that move: the first read of a descriptor is an event, and so are its first writes, with a
 * digest of what was written (content.c); the rest is counted and said when it is closed
 * (descriptor.c). What leaves through a socket is looked into. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "observe/reach.h"

enum {
    MESSAGES = 1024,      /* of one call; the kernel takes no more */
    VECTORS = 1024,       /* likewise */
    HEAD = AQ_EVENT_TEXT, /* of a datagram that is looked into */
    STREAM_HEAD = 16384,  /* of what goes into a stream at once */
    KEPT = 1 << 20,       /* of all messages of one call */
};

/* "/proc/12/mem", "/proc/12/task/13/mem": whose memory a descriptor is; 0: it is no memory. */
static int64_t memory_of(const aq_fd *f)
{
    static const char proc[] = "/proc/";
    size_t len = f->name ? strlen(f->name) : 0;
    char *end;
    long pid;

    if (f->kind != AQ_FD_FILE || len < sizeof proc + 4 ||
        strncmp(f->name, proc, sizeof proc - 1) != 0 || strcmp(f->name + len - 4, "/mem") != 0)
        return 0;
    pid = strtol(f->name + sizeof proc - 1, &end, 10);
    return *end == '/' ? pid : 0;
}

/* It reaches into memory past mprotect and past everybody's calls. */
static void note_memory(aq_tracer *t, aq_task *k, const aq_fd *f, bool write, long result)
{
    int64_t target = memory_of(f);
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, write ? "poke" : "peek");

    if (target == 0)
        return;
    aq_event_object(&e, f->name);
    aq_event_number(&e, "target", target);
    e.result = result;
    aq_note(t, k, &e);
}

/* Counts a use that succeeded. */
static bool is_event(aq_fd *f, bool write)
{
    bool first = !f->reads;

    if (write)
        return aq_content_counts(++f->writes);
    f->reads = true;
    return first;
}

void aq_note_use(aq_tracer *t, aq_task *k, int fd, bool write, long result)
{
    aq_fd *f = aq_fd_slot(t, k, fd);
    char content[AQ_CONTENT];
    aq_event e;

    if (result == -EAGAIN)
        return;
    if (write && result > 0)
        t->end.written += (uint64_t)result;
    if (f && result > 0)
        *(write ? &f->written : &f->read) += (uint64_t)result;
    if (f && result > 0 && (f->kind == AQ_FD_PIPE || f->kind == AQ_FD_SOCKET))
        aq_edge_bytes(t, k, f, write, (uint64_t)result);
    if (f && result > 0 && f->kind == AQ_FD_OTHER)
        aq_edge_other(t, k, f, write, result);
    if (f && result >= 0 && !is_event(f, write))
        return;
    if (f && f->kind == AQ_FD_SOCKET)
        e = aq_event_of(AQ_EVENT_NETWORK, write ? "send" : "receive");
    else if (f && !write && aq_fd_is_random(f))
        e = aq_event_of(AQ_EVENT_ENTROPY, "read");
    else
        e = aq_event_of(AQ_EVENT_FILE, write ? "write" : "read");
    if (f && write)
        aq_content_put(f, &e, content);
    if (f)
        note_memory(t, k, f, write, result);
    aq_event_object(&e, f ? f->name : NULL);
    e.result = result;
    aq_note(t, k, &e);
}

void aq_note_read(aq_tracer *t, aq_task *k, long result)
{
    if (result > 0 && t->plan.machine && aq_fd_is_random(aq_fd_of(t, k, aq_arg_int(k, 0))))
        aq_entropy_read(t, k, result);
    aq_note_use(t, k, aq_arg_int(k, 0), false, result);
}

/* ---- what leaves ---- */

/* The head of what a list of buffers holds. */
static size_t gather(aq_task *k, uint64_t at, uint64_t count, char *ret, size_t cap)
{
    size_t n = count < VECTORS ? (size_t)count : VECTORS, len = 0;
    struct iovec v[16];

    for (size_t i = 0; i < n && len < cap; i++) {
        const struct iovec *one = &v[i % 16];
        size_t more = n - i < 16 ? n - i : 16, want;
        ssize_t got;

        if (i % 16 == 0 && !aq_tracee_get(k, at + i * sizeof *v, v, more * sizeof *v))
            break;
        want = one->iov_len < cap - len ? one->iov_len : cap - len;
        got = want ? aq_tracee_read(k, (uint64_t)(uintptr_t)one->iov_base, ret + len, want) : 0;

        if (got < 0)
            break;
        len += (size_t)got;
        if ((size_t)got < want)
            break;
    }
    return len;
}

static size_t head_of(const aq_fd *f)
{
    return f->stream ? STREAM_HEAD : HEAD;
}

/* Room for a message whose head has `cap` bytes at most; where its head goes. */
static char *room_for(aq_buf *sent, size_t cap)
{
    aq_buf_reserve(sent, sizeof(aq_message) + cap);
    return sent->data + sent->len + sizeof(aq_message);
}

static void keep_message(aq_buf *sent, const aq_message *m)
{
    memcpy(sent->data + sent->len, m, sizeof *m);
    sent->len += sizeof *m + m->len;
}

static void keep_header(aq_tracer *t, aq_task *k, const aq_fd *f, const struct msghdr *h)
{
    size_t cap = head_of(f);
    aq_buf *sent = &aq_look_of(k)->sent;
    aq_message m = {.control = h->msg_control && h->msg_controllen > 0};

    if (h->msg_name && h->msg_namelen > 0)
        m.port = aq_read_target(t, k, f, (uint64_t)(uintptr_t)h->msg_name, h->msg_namelen,
                                m.address, sizeof m.address);
    m.len = (uint16_t)gather(k, (uint64_t)(uintptr_t)h->msg_iov, h->msg_iovlen, room_for(sent, cap),
                             cap);
    keep_message(sent, &m);
}

static void keep_plain(aq_tracer *t, aq_task *k, const aq_fd *f, uint64_t at, uint64_t len)
{
    size_t cap = head_of(f);
    aq_buf *sent = &aq_look_of(k)->sent;
    aq_message m = {0};
    ssize_t n = aq_tracee_read(k, at, room_for(sent, cap), len < cap ? (size_t)len : cap);

    if (k->nr == AQ_NR_sendto && aq_regs_arg(k, 4))
        m.port = aq_read_target(t, k, f, aq_regs_arg(k, 4), (uint32_t)aq_regs_arg(k, 5), m.address,
                                sizeof m.address);
    m.len = (uint16_t)(n > 0 ? n : 0);
    keep_message(sent, &m);
}

/* Many messages in one call: each keeps its head, for a resolver asks for two kinds of address so.
 */
static void keep_many(aq_tracer *t, aq_task *k, const aq_fd *f)
{
    uint64_t at = aq_regs_arg(k, 1), count = (uint32_t)aq_regs_arg(k, 2);
    const aq_buf *sent = &aq_look_of(k)->sent;

    for (uint64_t i = 0; i < count && i < MESSAGES; i++) {
        struct mmsghdr h;

        if (!aq_tracee_get(k, at + i * sizeof h, &h, sizeof h))
            return;
        if (sent->len > KEPT) {
            aq_unseen(t, k, "messages");
            return;
        }
        keep_header(t, k, f, &h.msg_hdr);
    }
}

static void keep(aq_tracer *t, aq_task *k)
{
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));
    struct msghdr h;

    aq_buf_clear(&aq_look_of(k)->sent);
    if (f->kind != AQ_FD_SOCKET)
        return;
    switch (k->nr) {
    case AQ_NR_sendmmsg:
        keep_many(t, k, f);
        break;
    case AQ_NR_sendmsg:
        if (aq_tracee_get(k, aq_regs_arg(k, 1), &h, sizeof h))
            keep_header(t, k, f, &h);
        break;
    case AQ_NR_writev:
    case AQ_NR_pwritev:
    case AQ_NR_pwritev2:
        h = (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)aq_regs_arg(k, 1),
                            .msg_iovlen = aq_regs_arg(k, 2)};
        keep_header(t, k, f, &h);
        break;
    default:
        keep_plain(t, k, f, aq_regs_arg(k, 1), aq_regs_arg(k, 2));
    }
}

/* Looks at each attempt, not once at the entry: while a send waits for room another thread may
 * change what it will send. What counts is the attempt that sent the head. */
aq_step aq_try_send(aq_tracer *t, aq_task *k)
{
    bool message = k->nr == AQ_NR_sendto || k->nr == AQ_NR_sendmsg || k->nr == AQ_NR_sendmmsg;
    int r;

    if (k->done == 0 && k->part == 0)
        keep(t, k);
    if (message && aq_guard_peer(t, k))
        return aq_refuse(k, ECONNREFUSED, "socket.refused");
    if (message && !k->retry && (r = aq_reach_message(t, k)) < 0)
        return aq_answer(k, r);
    return message ? aq_try_message(t, k) : aq_try_io(t, k);
}

/* ---- what leaves without having been in memory ---- */

/* What a pipe will give to a socket: a copy of its first bytes, taken right before. */
void aq_keep_piped(aq_task *k, int from)
{
    aq_buf *sent = &aq_look_of(k)->sent;
    aq_auto_fd int mine = aq_fd_borrow(k, from);
    aq_message m = {0};
    ssize_t n = -1;
    int p[2];

    aq_buf_clear(sent);
    if (mine < 0 || pipe2(p, O_CLOEXEC | O_NONBLOCK) != 0)
        return;
    if (tee(mine, p[1], STREAM_HEAD, SPLICE_F_NONBLOCK) > 0)
        n = read(p[0], room_for(sent, STREAM_HEAD), STREAM_HEAD);
    close(p[0]);
    close(p[1]);
    m.len = (uint16_t)(n > 0 ? n : 0);
    room_for(sent, 0);
    keep_message(sent, &m);
}

/* What a file gave to a socket: it is still there. */
static void keep_filed(aq_task *k, long result)
{
    aq_buf *sent = &aq_look_of(k)->sent;
    aq_auto_fd int mine = aq_fd_borrow(k, aq_arg_int(k, 1));
    int64_t end = 0;
    aq_message m = {0};
    ssize_t n;

    aq_buf_clear(sent);
    if (!aq_regs_arg(k, 2))
        end = lseek(mine, 0, SEEK_CUR);
    else if (!aq_tracee_get(k, aq_regs_arg(k, 2), &end, sizeof end))
        return;
    n = pread(mine, room_for(sent, STREAM_HEAD),
              result < STREAM_HEAD ? (size_t)result : (size_t)STREAM_HEAD, end - result);
    m.len = (uint16_t)(n > 0 ? n : 0);
    keep_message(sent, &m);
}

/* sendfile and splice: what went into a socket is looked into like what was written. */
void aq_note_copied(aq_tracer *t, aq_task *k, int into, long result)
{
    const aq_fd *f = aq_fd_of(t, k, into);
    aq_buf *sent = &aq_look_of(k)->sent;
    aq_message m;

    if (f->kind != AQ_FD_SOCKET || !f->stream || result <= 0 || k->nr == AQ_NR_tee)
        return;
    if (k->nr == AQ_NR_sendfile && !aq_fd_is_random(aq_fd_of(t, k, aq_arg_int(k, 1))))
        keep_filed(k, result);
    if (sent->len < sizeof m)
        return;
    memcpy(&m, sent->data, sizeof m);
    aq_note_payload(t, k, f, &m, sent->data + sizeof m, (uint64_t)result, result);
    aq_buf_clear(sent);
}

/* ---- what was sent ---- */

/* A message with an address of its own is an event of its own: one socket reaches many hosts. */
static void note_addressed(aq_tracer *t, aq_task *k, const aq_message *m, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "send");

    if (!*m->address && !m->control)
        return;
    aq_event_object(&e, *m->address ? m->address : aq_fd_of(t, k, aq_arg_int(k, 0))->name);
    if (m->control)
        aq_event_number(&e, "control", 1);
    e.result = result;
    aq_note(t, k, &e);
}

/* Bytes of message `i` that went out. */
static uint64_t sent_of(const aq_task *k, long i, long result)
{
    struct mmsghdr h;

    if (k->nr != AQ_NR_sendmmsg)
        return result > 0 ? (uint64_t)result : 0;
    if (i >= result || !aq_tracee_get(k, aq_regs_arg(k, 1) + (uint64_t)i * sizeof h, &h, sizeof h))
        return 0;
    return h.msg_len;
}

static void note_messages(aq_tracer *t, aq_task *k, long result)
{
    aq_buf *sent = &aq_look_of(k)->sent;
    long i = 0;

    for (size_t at = 0; at + sizeof(aq_message) <= sent->len; i++) {
        aq_message m;

        memcpy(&m, sent->data + at, sizeof m);
        at += sizeof m;
        if (result < 0 || k->nr != AQ_NR_sendmmsg || i < result) {
            note_addressed(t, k, &m, result);
            aq_note_payload(t, k, aq_fd_of(t, k, aq_arg_int(k, 0)), &m, sent->data + at,
                            sent_of(k, i, result), result);
        }
        at += m.len;
    }
    if (sent->len > STREAM_HEAD)
        aq_buf_free(sent);
}

/* How many bytes went out, where the call answers with a number of messages. */
static long bytes_of_many(aq_task *k, long sent)
{
    uint64_t at = aq_regs_arg(k, 1);
    long bytes = 0;

    for (long i = 0; i < sent && i < MESSAGES; i++) {
        struct mmsghdr h;

        if (!aq_tracee_get(k, at + (uint64_t)i * sizeof h, &h, sizeof h))
            break;
        bytes += h.msg_len;
    }
    return bytes;
}

void aq_note_write(aq_tracer *t, aq_task *k, long result)
{
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));
    bool socket = f->kind == AQ_FD_SOCKET && k->nr != AQ_NR_vmsplice;
    long bytes = k->nr == AQ_NR_sendmmsg && result > 0 ? bytes_of_many(k, result) : result;

    if (result == -EAGAIN)
        return;
    if (bytes > 0)
        aq_content_take(t, k, (uint64_t)bytes);
    aq_note_use(t, k, aq_arg_int(k, 0), true, bytes);
    if (socket)
        note_messages(t, k, result);
    /* A stream that was opened by its first message (MSG_FASTOPEN) has a peer now. */
    if (socket && f->stream && f->port == 0 && result >= 0)
        aq_fd_renew(t, k, aq_arg_int(k, 0));
}

void aq_note_receive(aq_tracer *t, aq_task *k, long result)
{
    bool many = k->nr == AQ_NR_recvmmsg && result > 0;

    aq_note_use(t, k, aq_arg_int(k, 0), false, many ? bytes_of_many(k, result) : result);
    if (k->nr == AQ_NR_recvmsg && result >= 0)
        aq_note_rights(t, k, aq_regs_arg(k, 1));
    for (long i = 0; many && i < result && i < MESSAGES; i++)
        aq_note_rights(t, k, aq_regs_arg(k, 1) + (uint64_t)i * sizeof(struct mmsghdr));
}
