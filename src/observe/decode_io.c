/* Bytes that move: the first use of a descriptor in each direction is an event, the rest is counted
 * and said when it is closed (descriptor.c). What leaves through a socket is looked into. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { MESSAGES = 8, MESSAGES_IN = 1024, VECTORS = 64, PIECE = 384 };

static bool is_entropy(const aq_fd *f)
{
    return f->kind == AQ_FD_DEVICE && f->name &&
           (strcmp(f->name, "/dev/urandom") == 0 || strcmp(f->name, "/dev/random") == 0);
}

void aq_note_use(aq_tracer *t, aq_task *k, int fd, bool write, long result)
{
    aq_fd *f = aq_fd_slot(t, k, fd);
    bool *seen = !f ? NULL : write ? &f->writes : &f->reads;
    aq_event e;

    if (result == -EAGAIN)
        return;
    if (f && result > 0)
        *(write ? &f->written : &f->read) += (uint64_t)result;
    if (f && *seen && result >= 0)
        return;
    if (f && f->kind == AQ_FD_SOCKET)
        e = aq_event_of(AQ_EVENT_NETWORK, write ? "send" : "receive");
    else if (f && !write && is_entropy(f))
        e = aq_event_of(AQ_EVENT_ENTROPY, "read");
    else
        e = aq_event_of(AQ_EVENT_FILE, write ? "write" : "read");
    if (f && result >= 0)
        *seen = true;
    aq_event_object(&e, f ? f->name : NULL);
    e.result = result;
    aq_note(t, k, &e);
}

void aq_note_read(aq_tracer *t, aq_task *k, long result)
{
    aq_note_use(t, k, aq_arg_int(k, 0), false, result);
}

/* ---- what leaves ---- */

/* The head of what a list of buffers holds. */
static size_t gather(aq_task *k, uint64_t at, uint64_t count, char *ret, size_t cap)
{
    struct iovec v[VECTORS];
    size_t n = count < VECTORS ? (size_t)count : VECTORS, len = 0;

    if (n == 0 || !aq_tracee_get(k, at, v, n * sizeof *v))
        return 0;
    for (size_t i = 0; i < n && len < cap; i++) {
        size_t want = v[i].iov_len < cap - len ? v[i].iov_len : cap - len;
        ssize_t got =
            want ? aq_tracee_read(k, (uint64_t)(uintptr_t)v[i].iov_base, ret + len, want) : 0;

        if (got < 0)
            break;
        len += (size_t)got;
        if ((size_t)got < want)
            break;
    }
    return len;
}

static void keep_message(aq_look *l, const aq_message *m, const char *data)
{
    if (l->bytes_len + sizeof *m + m->len > sizeof l->bytes)
        return;
    memcpy(l->bytes + l->bytes_len, m, sizeof *m);
    memcpy(l->bytes + l->bytes_len + sizeof *m, data, m->len);
    l->bytes_len += sizeof *m + m->len;
}

static void keep_header(aq_tracer *t, aq_task *k, const struct msghdr *h, size_t cap)
{
    aq_look *l = aq_look_of(k);
    aq_message m = {.control = h->msg_control && h->msg_controllen > 0};
    char data[AQ_EVENT_TEXT];

    if (h->msg_name && h->msg_namelen > 0)
        m.port = aq_read_address(t, k, (uint64_t)(uintptr_t)h->msg_name, h->msg_namelen, m.address,
                                 sizeof m.address);
    m.len = (uint16_t)gather(k, (uint64_t)(uintptr_t)h->msg_iov, h->msg_iovlen, data, cap);
    keep_message(l, &m, data);
}

static void keep_plain(aq_tracer *t, aq_task *k, uint64_t at, uint64_t len)
{
    size_t room = AQ_EVENT_TEXT - sizeof(aq_message);
    aq_message m = {0};
    char data[AQ_EVENT_TEXT];
    ssize_t n = aq_tracee_read(k, at, data, len < room ? (size_t)len : room);

    if (k->nr == AQ_NR_sendto && aq_regs_arg(k, 4))
        m.port = aq_read_address(t, k, aq_regs_arg(k, 4), (uint32_t)aq_regs_arg(k, 5), m.address,
                                 sizeof m.address);
    m.len = (uint16_t)(n > 0 ? n : 0);
    keep_message(aq_look_of(k), &m, data);
}

/* Many messages in one call: each keeps its head, for a resolver asks for two kinds of address so.
 */
static void keep_many(aq_tracer *t, aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1), count = (uint32_t)aq_regs_arg(k, 2);

    for (uint64_t i = 0; i < count && i < MESSAGES; i++) {
        struct mmsghdr h;

        if (!aq_tracee_get(k, at + i * sizeof h, &h, sizeof h))
            return;
        keep_header(t, k, &h.msg_hdr, PIECE);
    }
}

static void keep(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    size_t room = AQ_EVENT_TEXT - sizeof(aq_message);
    struct msghdr h;

    l->bytes_len = 0;
    if (aq_fd_of(t, k, aq_arg_int(k, 0))->kind != AQ_FD_SOCKET)
        return;
    switch (k->nr) {
    case AQ_NR_sendmmsg:
        keep_many(t, k);
        break;
    case AQ_NR_sendmsg:
        if (aq_tracee_get(k, aq_regs_arg(k, 1), &h, sizeof h))
            keep_header(t, k, &h, room);
        break;
    case AQ_NR_writev:
    case AQ_NR_pwritev:
    case AQ_NR_pwritev2:
        h = (struct msghdr){.msg_iov = (struct iovec *)(uintptr_t)aq_regs_arg(k, 1),
                            .msg_iovlen = aq_regs_arg(k, 2)};
        keep_header(t, k, &h, room);
        break;
    default:
        keep_plain(t, k, aq_regs_arg(k, 1), aq_regs_arg(k, 2));
    }
}

/* Looks at each attempt, not once at the entry: while a send waits for room another thread may
 * change what it will send. What counts is the attempt that sent the head. */
aq_step aq_try_send(aq_tracer *t, aq_task *k)
{
    bool message = k->nr == AQ_NR_sendto || k->nr == AQ_NR_sendmsg || k->nr == AQ_NR_sendmmsg;

    if (k->done == 0 && k->part == 0)
        keep(t, k);
    return message ? aq_try_message(t, k) : aq_try_io(t, k);
}

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

static void note_messages(aq_tracer *t, aq_task *k, bool first, long result)
{
    aq_look *l = aq_look_of(k);
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));

    if (k->nr == AQ_NR_vmsplice) /* keeps nothing; what lies there is of another call */
        return;
    for (size_t at = 0; at + sizeof(aq_message) <= l->bytes_len;) {
        aq_message m;

        memcpy(&m, l->bytes + at, sizeof m);
        at += sizeof m;
        if (m.len > l->bytes_len - at)
            return;
        note_addressed(t, k, &m, result);
        aq_note_payload(t, k, f, &m, l->bytes + at, first, result);
        at += m.len;
    }
}

/* How many bytes went out, where the call answers with a number of messages. */
static long bytes_of_many(aq_task *k, long sent)
{
    uint64_t at = aq_regs_arg(k, 1);
    long bytes = 0;

    for (long i = 0; i < sent && i < MESSAGES_IN; i++) {
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
    bool first = !f->writes, socket = f->kind == AQ_FD_SOCKET;
    bool many = k->nr == AQ_NR_sendmmsg && result > 0;

    if (result == -EAGAIN)
        return;
    aq_note_use(t, k, aq_arg_int(k, 0), true, many ? bytes_of_many(k, result) : result);
    if (socket)
        note_messages(t, k, first, result);
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
    for (long i = 0; many && i < result && i < MESSAGES_IN; i++)
        aq_note_rights(t, k, aq_regs_arg(k, 1) + (uint64_t)i * sizeof(struct mmsghdr));
}
