/* Streams to the internet. How much the kernel gives or takes at once depends on how bytes were cut
 * into packets and on its memory, and so on time. Here it depends on neither: before a program
 * writes, everything that is under way has arrived, and it writes no more at once than always fits.
 * What it reads is gathered in its name: the internet gets turns until there is as much as the
 * program wants, or nothing more to come. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "observe/decode.h"
#include "observe/reach.h"

enum {
    VECTORS = 1024,
    NS_A_BYTE = 40, /* what a byte takes on the way: 200 Mbit/s */
    PLAIN = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_WAITALL | MSG_CMSG_CLOEXEC,
};

/* ---- what the call asks for ---- */

static int flags_of(const aq_task *k)
{
    switch (k->nr) {
    case SYS_recvfrom:
        return aq_arg_int(k, 3);
    case SYS_recvmsg:
        return aq_arg_int(k, 2);
    default:
        return 0;
    }
}

/* Where its buffers lie: a list in the task, or one. */
static bool buffers(const aq_task *k, uint64_t *at, uint64_t *count)
{
    uint64_t v[2];

    switch (k->nr) {
    case SYS_readv:
        *at = aq_regs_arg(k, 1);
        *count = aq_regs_arg(k, 2);
        return true;
    case SYS_recvmsg:
        if (!aq_tracee_get(k, aq_regs_arg(k, 1) + offsetof(struct msghdr, msg_iov), v, sizeof v))
            return false;
        *at = v[0];
        *count = v[1];
        return true;
    default:
        *at = 0;
        *count = 1;
        return true;
    }
}

static uint64_t wanted(const aq_task *k)
{
    uint64_t at, count;

    if (!buffers(k, &at, &count))
        return 0;
    return at ? aq_vectors_bytes(k, at, count) : aq_regs_arg(k, 2);
}

/* Puts bytes behind those that earlier attempts have put. */
static bool put(const aq_task *k, const char *data, size_t len)
{
    uint64_t at, count, skip = k->done;
    struct iovec v;

    if (!buffers(k, &at, &count))
        return false;
    if (!at)
        return aq_tracee_put(k, aq_regs_arg(k, 1) + skip, data, len);
    for (uint64_t i = 0; i < count && i < VECTORS && len > 0; i++) {
        size_t n;

        if (!aq_tracee_get(k, at + i * sizeof v, &v, sizeof v))
            return false;
        if (skip >= v.iov_len) {
            skip -= v.iov_len;
            continue;
        }
        n = v.iov_len - skip < len ? v.iov_len - (size_t)skip : len;
        if (!aq_tracee_put(k, (uint64_t)(uintptr_t)v.iov_base + skip, data, n))
            return false;
        data += n;
        len -= n;
        skip = 0;
    }
    return len == 0;
}

/* What the kernel writes beside the bytes: no address, nothing else. */
static void put_rest(const aq_task *k)
{
    static const uint64_t none;
    uint64_t header = aq_regs_arg(k, 1), name = 0;

    if (k->nr == SYS_recvfrom && aq_regs_arg(k, 4) && aq_regs_arg(k, 5))
        aq_tracee_put(k, aq_regs_arg(k, 5), &none, sizeof(socklen_t));
    if (k->nr != SYS_recvmsg)
        return;
    aq_tracee_put(k, header + offsetof(struct msghdr, msg_controllen), &none, sizeof(size_t));
    aq_tracee_put(k, header + offsetof(struct msghdr, msg_flags), &none, sizeof(int));
    if (aq_tracee_get(k, header, &name, sizeof name) && name)
        aq_tracee_put(k, header + offsetof(struct msghdr, msg_namelen), &none, sizeof(socklen_t));
}

/* ---- reading ---- */

/* As much as is wanted and can come; 0 at the end, or a negative errno. */
static ssize_t gather(aq_tracer *t, int mine, char *data, size_t want)
{
    size_t got = 0;

    for (;;) {
        ssize_t n = recv(mine, data + got, want - got, MSG_DONTWAIT);

        if (n > 0)
            got += (size_t)n;
        if (got == want || n == 0)
            return (ssize_t)got;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return got ? (ssize_t)got : -errno;
        if (n > 0) {
            aq_reach_got_on(t);
            t->activity++; /* there is room for more, which may be here already */
            continue;
        }
        if (!aq_reach_turn(t))
            return got ? (ssize_t)got : -EAGAIN;
    }
}

static aq_step done(aq_tracer *t, aq_task *k, long result)
{
    if (k->done > 0)
        result = (long)k->done;
    if (result >= 0)
        put_rest(k);
    aq_moved(t, result);
    return aq_answer(k, result);
}

static aq_step wait_more(aq_tracer *t, aq_task *k, int mine)
{
    int flags = fcntl(mine, F_GETFL);

    if (flags < 0 || (flags & O_NONBLOCK) || (flags_of(k) & MSG_DONTWAIT) ||
        aq_io_over(t, k, mine, false))
        return done(t, k, -EAGAIN);
    aq_park(t, k, AQ_PARK_RETRY);
    return AQ_STEP_PARKED;
}

aq_step aq_reach_read(aq_tracer *t, aq_task *k)
{
    aq_auto_fd int mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    char data[AQ_FLOW_BYTES];
    uint64_t all = wanted(k), want;
    ssize_t n;

    if (mine < 0 || all == 0)
        return AQ_STEP_RUN;
    do {
        want = all - k->done < sizeof data ? all - k->done : sizeof data;
        n = gather(t, mine, data, (size_t)want);
        if (n == -EAGAIN)
            return wait_more(t, k, mine);
        if (n > 0 && !put(k, data, (size_t)n))
            return done(t, k, -EFAULT);
        if (n > 0) {
            aq_reach_arrived(t, 0);
            k->done += (uint64_t)n;
            t->clock += (uint64_t)n * NS_A_BYTE;
        }
    } while (n > 0 && k->done < all && (flags_of(k) & MSG_WAITALL));
    return done(t, k, n);
}

bool aq_reach_reads(const aq_task *k)
{
    switch (k->nr) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
        return !(flags_of(k) & ~PLAIN);
    default:
        return false;
    }
}
