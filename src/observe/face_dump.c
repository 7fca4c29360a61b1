/* Lists of sockets that need more than one message. The kernel cuts them where a message is full,
 * in the order of its hashes, so what stands in which message differs from run to run. Here the
 * whole list is taken from the socket when a program begins to read it, put in order, rewritten
 * like any answer (face_peers.c), and given out in messages of our own.
 *
 * The last message of the kernel's, which ends the list, stays where it is until its turn: so the
 * socket always looks readable while there is something to read. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "observe/face_net.h"

enum {
    DUMPS = 8,       /* that are read at one time */
    MOST = 8 << 20,  /* bytes of one; of a longer one the rest follows, in an order of its own */
    KERNELS = 65536, /* of one message of the kernel's */
    PIECE = 3776,    /* of one of ours: what the kernel puts into a first one */
    VECTORS = 1024,
};

typedef struct dump {
    uint64_t ino;  /* of the socket; 0: none */
    uint32_t seq;  /* of the question */
    aq_buf text;   /* whole messages, ours */
    size_t at;     /* given out so far */
    uint64_t used; /* when, by the count below */
} dump;

struct aq_dumps {
    dump all[DUMPS];
    uint64_t uses;
    uint8_t message[KERNELS];
};

static struct aq_dumps *dumps_of(aq_tracer *t)
{
    if (!t->dumps)
        t->dumps = aq_alloc(sizeof *t->dumps);
    return t->dumps;
}

static void forget(dump *d)
{
    aq_buf_free(&d->text);
    *d = (dump){0};
}

void aq_dumps_free(aq_tracer *t)
{
    for (int i = 0; t->dumps && i < DUMPS; i++)
        forget(&t->dumps->all[i]);
    free(t->dumps);
    t->dumps = NULL;
}

/* ---- taking it ---- */

static bool head_at(const uint8_t *data, size_t len, size_t at, struct nlmsghdr *ret)
{
    if (at + sizeof *ret > len)
        return false;
    memcpy(ret, data + at, sizeof *ret);
    return ret->nlmsg_len >= sizeof *ret && ret->nlmsg_len <= len - at;
}

/* The message that the socket would give next; 0: none, or none of a list. */
static size_t peek(struct aq_dumps *all, int mine, struct nlmsghdr *first)
{
    ssize_t n = recv(mine, all->message, sizeof all->message, MSG_DONTWAIT | MSG_PEEK);

    return n > 0 && head_at(all->message, (size_t)n, 0, first) && (first->nlmsg_flags & NLM_F_MULTI)
               ? (size_t)n
               : 0;
}

/* Is there, after rows of a list, something else? */
static bool ends(const uint8_t *data, size_t len)
{
    struct nlmsghdr h;
    size_t at = 0;

    for (; head_at(data, len, at, &h); at += NLMSG_ALIGN(h.nlmsg_len))
        if (h.nlmsg_type != SOCK_DIAG_BY_FAMILY)
            return true;
    return false;
}

/* All rows that are to come. What ends them stays in the socket. */
static void gather(struct aq_dumps *all, int mine, aq_buf *ret)
{
    struct nlmsghdr first;
    size_t n;

    while (ret->len < MOST && (n = peek(all, mine, &first)) > 0 && !ends(all->message, n)) {
        if (recv(mine, all->message, sizeof all->message, MSG_DONTWAIT) != (ssize_t)n)
            return;
        aq_buf_add(ret, all->message, n);
    }
}

static void rewrite(aq_tracer *t, aq_buf *raw, aq_buf *ret)
{
    uint8_t *data = (uint8_t *)raw->data;
    struct nlmsghdr h;
    size_t at = 0;

    aq_face_order(data, raw->len, SOCK_DIAG_BY_FAMILY);
    for (; head_at(data, raw->len, at, &h); at += NLMSG_ALIGN(h.nlmsg_len)) {
        size_t len = aq_face_socket(t, data + at, h.nlmsg_len);

        aq_buf_add(ret, data + at, len);
        while (ret->len % NLMSG_ALIGNTO)
            aq_buf_addc(ret, '\0');
    }
}

static dump *oldest(struct aq_dumps *all)
{
    dump *best = &all->all[0];

    for (int i = 1; i < DUMPS; i++)
        if (all->all[i].used < best->used)
            best = &all->all[i];
    return best;
}

static bool lists_sockets(int fd)
{
    int protocol = -1;
    socklen_t len = sizeof protocol;

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
           protocol == NETLINK_SOCK_DIAG;
}

/* What this socket has to give; NULL: nothing of ours. */
static dump *dump_of(aq_tracer *t, aq_task *k, const aq_fd *f)
{
    struct aq_dumps *all = dumps_of(t);
    aq_auto_fd int mine = aq_fd_borrow(k, f->fd);
    aq_auto_buf raw = {0};
    struct nlmsghdr first;
    dump *d = NULL;
    size_t n;

    if (!lists_sockets(mine))
        return NULL;
    n = peek(all, mine, &first);
    for (int i = 0; i < DUMPS; i++)
        if (all->all[i].ino == f->ino)
            d = &all->all[i];
    if (d && (n == 0 || first.nlmsg_seq != d->seq || d->at == d->text.len))
        forget(d), d = NULL; /* it is read, or another socket's by now */
    if (d || n == 0 || first.nlmsg_type != SOCK_DIAG_BY_FAMILY || ends(all->message, n))
        return d;
    gather(all, mine, &raw);
    d = oldest(all);
    forget(d);
    *d = (dump){.ino = f->ino, .seq = first.nlmsg_seq};
    rewrite(t, &raw, &d->text);
    if (d->text.len == 0)
        forget(d), d = NULL;
    return d;
}

/* ---- giving it out ---- */

/* As many whole messages as one of ours holds. */
static size_t piece(const dump *d)
{
    const uint8_t *data = (const uint8_t *)d->text.data + d->at;
    size_t len = d->text.len - d->at, n = 0;
    struct nlmsghdr h;

    while (head_at(data, len, n, &h) && (n == 0 || n + NLMSG_ALIGN(h.nlmsg_len) <= PIECE))
        n += NLMSG_ALIGN(h.nlmsg_len);
    return n ? n : len;
}

static size_t put(const aq_task *k, const struct iovec *to, uint64_t count, const char *data,
                  size_t len)
{
    size_t done = 0;

    for (uint64_t i = 0; i < count && done < len; i++) {
        size_t n = to[i].iov_len < len - done ? to[i].iov_len : len - done;

        if (n > 0 && !aq_tracee_put(k, (uint64_t)(uintptr_t)to[i].iov_base, data + done, n))
            break;
        done += n;
    }
    return done;
}

/* What a header says beside its buffers: who sent it, and whether all of it had room. */
static void put_header(const aq_task *k, uint64_t at, bool cut)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct msghdr h;

    if (!aq_tracee_get(k, at, &h, sizeof h))
        return;
    if (h.msg_name) {
        size_t n = h.msg_namelen < sizeof kernel ? h.msg_namelen : sizeof kernel;

        aq_tracee_put(k, (uint64_t)(uintptr_t)h.msg_name, &kernel, n);
        h.msg_namelen = sizeof kernel;
    }
    h.msg_controllen = 0;
    h.msg_flags = cut ? MSG_TRUNC : 0;
    aq_tracee_put(k, at, &h, sizeof h);
}

static void put_sender(const aq_task *k)
{
    static const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    const socklen_t whole = sizeof kernel;
    socklen_t room = 0;

    if (!aq_regs_arg(k, 4) || !aq_tracee_get(k, aq_regs_arg(k, 5), &room, sizeof room))
        return;
    aq_tracee_put(k, aq_regs_arg(k, 4), &kernel, room < whole ? room : whole);
    aq_tracee_put(k, aq_regs_arg(k, 5), &whole, sizeof whole);
}

/* The buffers of the call; how many. */
static uint64_t buffers(const aq_task *k, struct iovec *to)
{
    uint64_t at = aq_regs_arg(k, 1), count = aq_regs_arg(k, 2);
    struct msghdr h;

    switch (k->nr) {
    case SYS_recvmsg:
    case SYS_recvmmsg:
        if (!aq_tracee_get(k, at, &h, sizeof h))
            return 0;
        at = (uint64_t)(uintptr_t)h.msg_iov;
        count = h.msg_iovlen;
        break;
    case SYS_readv:
        break;
    default:
        to[0] = (struct iovec){(void *)(uintptr_t)at, count};
        return 1;
    }
    count = count < VECTORS ? count : VECTORS;
    return aq_tracee_get(k, at, to, count * sizeof *to) ? count : 0;
}

static int flags_of(const aq_task *k)
{
    return k->nr == SYS_recvmsg                             ? aq_arg_int(k, 2)
           : k->nr == SYS_recvfrom || k->nr == SYS_recvmmsg ? aq_arg_int(k, 3)
                                                            : 0;
}

aq_step aq_dump_read(aq_tracer *t, aq_task *k, const aq_fd *f)
{
    struct iovec to[VECTORS];
    int flags = flags_of(k);
    dump *d;
    size_t len, done;

    if (!t->plan.machine || f->kind != AQ_FD_SOCKET || f->family != AF_NETLINK ||
        (flags & (MSG_OOB | MSG_ERRQUEUE)) || !(d = dump_of(t, k, f)))
        return AQ_STEP_RUN;
    len = piece(d);
    done = put(k, to, buffers(k, to), d->text.data + d->at, len);
    if (k->nr == SYS_recvmsg || k->nr == SYS_recvmmsg)
        put_header(k, aq_regs_arg(k, 1), done < len);
    else if (k->nr == SYS_recvfrom)
        put_sender(k);
    d->used = ++t->dumps->uses;
    if (!(flags & MSG_PEEK))
        d->at += len;
    if (flags & MSG_TRUNC)
        done = len;
    if (k->nr == SYS_recvmmsg) {
        const uint32_t n = (uint32_t)done;

        aq_tracee_put(k, aq_regs_arg(k, 1) + offsetof(struct mmsghdr, msg_len), &n, sizeof n);
        return aq_answer(k, 1);
    }
    aq_moved(t, (long)done);
    return aq_answer(k, (long)done);
}
