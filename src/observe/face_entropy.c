/* Randomness of the world: getrandom, the random devices, and the bytes that the kernel gives to
 * every new program. Where the world has a machine of its own, each task draws from a stream that
 * only its key and the task's place in the world decide: another run of the same seed gets the same
 * bytes, a fork or a thread gets others.
 *
 * The kernel makes the call, so that all of its errors, lengths and interruptions are its own; then
 * what it wrote is written over, before any task of the world runs again. Bytes that would move
 * inside the kernel (sendfile, splice) are written by the task itself instead. */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/stream.h"
#include "observe/decode.h"

enum {
    RANDOM_MAJOR = 1,
    RANDOM_MINOR = 8,
    URANDOM_MINOR = 9,
    POOL_BITS = 256, /* that a kernel says to have once it is ready */
    VECTORS = 1024,
    CHUNK = 65536,      /* that is written over at once */
    COPIED = 32768,     /* by one attempt of sendfile or splice: room for it is below the stack */
    COPIED_LEAST = 512, /* where there is not so much room */
    SPLICE_FLAGS = 15,
};

typedef struct aq_entropy {
    char name[32];
    aq_stream stream;
} aq_entropy;

void aq_entropy_bytes(aq_tracer *t, aq_task *k, void *out, size_t len)
{
    aq_entropy *e = k->entropy;

    if (!e) {
        k->entropy = e = aq_alloc(sizeof *e);
        snprintf(e->name, sizeof e->name, "task.%u.%u", k->proc->ordinal, k->ordinal);
        e->stream = aq_stream_of(t->plan.machine->entropy, e->name);
    }
    aq_stream_bytes(&e->stream, out, len);
}

bool aq_fd_is_random(const aq_fd *f)
{
    return f->kind == AQ_FD_DEVICE && major(f->device) == RANDOM_MAJOR &&
           (minor(f->device) == RANDOM_MINOR || minor(f->device) == URANDOM_MINOR);
}

/* What the kernel could write a debugger can: the one memory that it cannot reach is that of
 * devices, which no program of the world can map. */
static void write_over(aq_tracer *t, aq_task *k, uint64_t at, uint64_t len)
{
    char bytes[CHUNK];

    while (len > 0) {
        size_t n = len < sizeof bytes ? (size_t)len : sizeof bytes;

        aq_entropy_bytes(t, k, bytes, n);
        if (!aq_tracee_put(k, at, bytes, n)) {
            aq_unseen(t, k, "entropy");
            return;
        }
        at += n;
        len -= n;
    }
}

void aq_entropy_given(aq_tracer *t, aq_task *k, long result)
{
    if (t->plan.machine && result > 0)
        write_over(t, k, aq_regs_arg(k, 0), (uint64_t)result);
}

/* ---- the devices ---- */

static bool by_vectors(long nr)
{
    return nr == SYS_readv || nr == SYS_preadv || nr == SYS_preadv2;
}

/* A list of buffers may lie in one of them, so it is kept before the call. */
void aq_entropy_before(aq_task *k)
{
    aq_buf *list = &aq_look_of(k)->sent;
    uint64_t count = aq_regs_arg(k, 2);
    size_t bytes = (size_t)(count < VECTORS ? count : VECTORS) * sizeof(struct iovec);

    aq_buf_clear(list);
    if (!by_vectors(k->nr) || bytes == 0)
        return;
    aq_buf_reserve(list, bytes);
    if (aq_tracee_get(k, aq_regs_arg(k, 1), list->data, bytes))
        list->len = bytes;
}

void aq_entropy_read(aq_tracer *t, aq_task *k, long result)
{
    aq_buf *list = &aq_look_of(k)->sent;
    uint64_t left = result > 0 ? (uint64_t)result : 0;

    if (!by_vectors(k->nr)) {
        write_over(t, k, aq_regs_arg(k, 1), left);
        return;
    }
    for (size_t at = 0; at + sizeof(struct iovec) <= list->len && left > 0;
         at += sizeof(struct iovec)) {
        struct iovec v;
        uint64_t n;

        memcpy(&v, list->data + at, sizeof v);
        n = v.iov_len < left ? v.iov_len : left;
        write_over(t, k, (uint64_t)(uintptr_t)v.iov_base, n);
        left -= n;
    }
    if (left > 0) /* a wait for something else became this read: its list was not kept */
        aq_unseen(t, k, "entropy");
    aq_buf_clear(list);
}

/* What the devices say of themselves. Landlock would have its own opinion on such questions. */
bool aq_entropy_control(aq_tracer *t, aq_task *k, uint32_t request, long *answer)
{
    const int bits = POOL_BITS;

    if (!t->plan.machine || !aq_fd_is_random(aq_fd_of(t, k, aq_arg_int(k, 0))))
        return false;
    switch (request) {
    case RNDGETENTCNT:
        *answer = aq_tracee_put(k, aq_regs_arg(k, 2), &bits, sizeof bits) ? 0 : -EFAULT;
        return true;
    case RNDADDTOENTCNT:
    case RNDADDENTROPY:
    case RNDZAPENTCNT:
    case RNDCLEARPOOL:
    case RNDRESEEDCRNG:
        *answer = -EPERM;
        return true;
    default:
        *answer = -EINVAL;
        return _IOC_TYPE(request) == 'R';
    }
}

/* ---- sendfile and splice ---- */

static bool can_read(aq_task *k, int fd)
{
    aq_auto_fd int mine = aq_fd_borrow(k, fd);
    int flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);

    return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY;
}

static bool can_append(aq_task *k, int fd)
{
    aq_auto_fd int mine = aq_fd_borrow(k, fd);

    return mine >= 0 && (fcntl(mine, F_GETFL) & O_APPEND);
}

/* Would the kernel move bytes at all? What it refuses it shall refuse itself. */
static bool would_copy(aq_tracer *t, aq_task *k, int from, int into)
{
    uint64_t at = aq_regs_arg(k, k->nr == SYS_sendfile ? 2 : 1);
    int64_t offset = 0;

    if (k->nr == SYS_splice && (aq_fd_of(t, k, into)->kind != AQ_FD_PIPE || aq_regs_arg(k, 3) ||
                                ((uint32_t)aq_regs_arg(k, 5) & ~(uint32_t)SPLICE_FLAGS)))
        return false;
    if (k->nr == SYS_sendfile && can_append(k, into))
        return false;
    if (at && (!aq_tracee_get(k, at, &offset, sizeof offset) || offset < 0))
        return false; /* where to begin; a device does not care, and does not move it */
    return can_read(k, from) && aq_regs_arg(k, k->nr == SYS_sendfile ? 3 : 4) > 0;
}

bool aq_entropy_copy(aq_tracer *t, aq_task *k, int from, int into)
{
    uint64_t want = aq_regs_arg(k, k->nr == SYS_sendfile ? 3 : 4) - k->done, at;
    size_t n = want < COPIED ? (size_t)want : COPIED;
    char bytes[COPIED];

    if (!t->plan.machine || !aq_fd_is_random(aq_fd_of(t, k, from)) || k->nr == SYS_tee ||
        (k->done == 0 && !would_copy(t, k, from, into)))
        return false;
    aq_entropy_bytes(t, k, bytes, n);
    at = aq_tracee_scratch(k, bytes, n);
    if (!at && n > COPIED_LEAST)
        at = aq_tracee_scratch(k, bytes, n = COPIED_LEAST);
    aq_regs_set_call(k, SYS_write); /* without room: to nowhere, which is an error */
    aq_regs_set_arg(k, 0, (uint64_t)(uint32_t)into);
    aq_regs_set_arg(k, 1, at);
    aq_regs_set_arg(k, 2, n);
    k->part = 1;
    return true;
}
