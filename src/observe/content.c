/* What a program gives away, as digests: the bytes that it writes through a descriptor, and the
 * environment of the programs that it starts. One byte that is another one must show at the act
 * that wrote it, wherever the byte went: to a file that is gone at the end, through a pipe, to a
 * neighbour. Values of decoys count as their names (model/marks.h), so that two worlds in which a
 * program did the same have the same digests.
 *
 * Bytes are read while everybody is stopped, right after the call moved them. A call that waits in
 * between is looked at after each part: later another thread may have changed what was sent. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"
#include "observe/reach.h"

enum {
    PIECE = 64 << 10,  /* hashed at once */
    KEPT = 4 << 10,    /* room that a task keeps for its next call */
    VECTORS = 1024,    /* of one call; the kernel takes no more */
    MESSAGES = 1024,   /* likewise */
    EACH = 16,         /* writes of a descriptor that are events; then every power of two is one */
    LONGEST = 8 << 20, /* of arguments and environment; the kernel takes no more */
    NULL_DEVICE = 3,   /* minor number among the memory devices, 1 */
};

static const aq_marks *marks(aq_tracer *t)
{
    if (!t->marks_known && t->plan.marks)
        t->marks = t->plan.marks(t->plan.arg);
    t->marks_known = true;
    return t->marks;
}

/* ---- taking ---- */

/* What one call gives away. A call that waits in between gives it in parts, and where they end is
 * the host's affair: it is put together and hashed in pieces of one size. */
typedef struct aq_giving {
    aq_hash *hash;
    aq_mark_at at;
    aq_buf piece; /* that is not full yet */
} aq_giving;

/* Bytes of one call that go out, from `skip` on and `left` at most. */
typedef struct taking {
    aq_tracer *t;
    aq_task *k;
    aq_giving *to;
    uint64_t skip, left;
} taking;

static void hash_piece(aq_tracer *t, aq_giving *to)
{
    aq_marks_hash(marks(t), &to->at, to->piece.data, to->piece.len, to->hash);
    aq_buf_clear(&to->piece);
}

/* False: no more of this call can be taken. */
static bool take(taking *g, uint64_t at, uint64_t len)
{
    aq_buf *piece = &g->to->piece;

    if (g->skip >= len) {
        g->skip -= len;
        return true;
    }
    at += g->skip;
    len -= g->skip;
    g->skip = 0;
    len = len < g->left ? len : g->left;
    g->left -= len;
    while (len > 0) {
        size_t want = len < PIECE - piece->len ? (size_t)len : PIECE - piece->len;
        ssize_t n;

        aq_buf_reserve(piece, want);
        n = aq_tracee_read(g->k, at, piece->data + piece->len, want);
        if (n <= 0) { /* gone, though the kernel has just read it */
            aq_unseen(g->t, g->k, "content");
            return false;
        }
        piece->len += (size_t)n;
        at += (uint64_t)n;
        len -= (uint64_t)n;
        if (piece->len == PIECE)
            hash_piece(g->t, g->to);
    }
    return g->left > 0;
}

static bool take_vectors(taking *g, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < VECTORS; i++) {
        struct iovec v;

        if (!aq_tracee_get(g->k, at + i * sizeof v, &v, sizeof v)) {
            aq_unseen(g->t, g->k, "content");
            return false;
        }
        if (!take(g, (uint64_t)(uintptr_t)v.iov_base, v.iov_len))
            return false;
    }
    return true;
}

static bool take_message(taking *g, uint64_t at)
{
    struct msghdr h;

    if (!aq_tracee_get(g->k, at, &h, sizeof h)) {
        aq_unseen(g->t, g->k, "content");
        return false;
    }
    return take_vectors(g, (uint64_t)(uintptr_t)h.msg_iov, h.msg_iovlen);
}

static void take_messages(taking *g, uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < MESSAGES; i++)
        if (!take_message(g, at + i * sizeof(struct mmsghdr)))
            return;
}

static void take_call(taking *g)
{
    uint64_t at = aq_regs_arg(g->k, 1), count = aq_regs_arg(g->k, 2);

    switch (g->k->nr) {
    case AQ_NR_writev:
    case AQ_NR_pwritev:
    case AQ_NR_pwritev2:
    case AQ_NR_vmsplice:
        take_vectors(g, at, count);
        break;
    case AQ_NR_sendmsg:
        take_message(g, at);
        break;
    case AQ_NR_sendmmsg:
        take_messages(g, at, (uint32_t)count);
        break;
    default:
        take(g, at, count);
    }
}

/* What nobody keeps needs no digest. What the internet reads it tells itself, in the clear: outside
 * it may be sealed with keys of the one world. */
static bool is_kept(const aq_tracer *t, const aq_fd *f)
{
    return (f->kind != AQ_FD_DEVICE || f->device != makedev(1, NULL_DEVICE)) &&
           !aq_reach_is_out(t, f);
}

static aq_giving *giving(aq_task *k, const aq_fd *f)
{
    aq_giving *to = k->giving;

    if (!to) {
        to = k->giving = aq_alloc(sizeof *to);
        to->hash = aq_hash_begin();
    }
    if (k->taken == 0) {
        aq_hash_reset(to->hash);
        aq_buf_clear(&to->piece);
        to->at = f->mark_at;
    }
    return to;
}

static void take_until(aq_tracer *t, aq_task *k, const aq_fd *f, uint64_t bytes)
{
    taking g = {t, k, giving(k, f), k->taken, bytes - k->taken};

    k->taken = bytes;
    take_call(&g);
}

/* Of many messages `done` is their number; they are taken at the end. */
void aq_content_part(aq_tracer *t, aq_task *k)
{
    const aq_decoder *d = k->row->decoder;
    const aq_fd *f;

    if (!d || d->note != aq_note_write || k->nr == AQ_NR_sendmmsg || k->done <= k->taken)
        return;
    f = aq_fd_of(t, k, aq_arg_int(k, 0));
    if (is_kept(t, f))
        take_until(t, k, f, k->done);
}

/* What a call gave of which nobody heard the end does not count. */
void aq_content_take(aq_tracer *t, aq_task *k, uint64_t bytes)
{
    aq_fd *f = aq_fd_slot(t, k, aq_arg_int(k, 0));
    aq_digest d;

    if (!f || !is_kept(t, f))
        return;
    if (bytes > k->taken)
        take_until(t, k, f, bytes);
    hash_piece(t, k->giving);
    d = aq_hash_peek(k->giving->hash);
    f->mark_at = k->giving->at;
    if (!f->content)
        f->content = aq_hash_begin();
    aq_hash_add(f->content, d.b, sizeof d.b);
    f->contains = true;
    if (k->giving->piece.cap > KEPT)
        aq_buf_free(&k->giving->piece);
}

void aq_content_free(aq_task *k)
{
    if (!k->giving)
        return;
    aq_hash_abort(k->giving->hash);
    aq_buf_free(&k->giving->piece);
    free(k->giving);
}

/* ---- saying ---- */

bool aq_content_counts(uint64_t writes)
{
    return writes <= EACH || (writes & (writes - 1)) == 0;
}

void aq_content_digest(aq_event *e, const char *name, const aq_digest *d,
                       char text[static AQ_CONTENT])
{
    char hex[AQ_SHA256_HEX];

    snprintf(text, AQ_CONTENT, "%.*s", AQ_CONTENT - 1, aq_digest_hex(d, hex));
    aq_event_bytes(e, name, text, AQ_CONTENT - 1, false);
}

void aq_content_put(aq_fd *f, aq_event *e, char text[static AQ_CONTENT])
{
    aq_digest d;

    if (!f->contains)
        return;
    d = aq_hash_peek(f->content);
    aq_content_digest(e, "content", &d, text);
    aq_hash_reset(f->content);
    f->contains = false;
}

/* ---- programs ---- */

void aq_content_given(aq_tracer *t, aq_task *k, const char *what, aq_event *e, const char *name,
                      char text[static AQ_CONTENT])
{
    char path[64], piece[4096];
    aq_hash *h = aq_hash_begin();
    aq_mark_at at = {0};
    size_t all = 0;
    aq_digest d;
    ssize_t n = -1;

    snprintf(path, sizeof path, "%s/%d/%s", aq_process_proc(), k->tid, what);
    aq_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && all < LONGEST && (n = read(fd, piece, sizeof piece)) > 0) {
        aq_marks_hash(marks(t), &at, piece, (size_t)n, h);
        all += (size_t)n;
    }
    d = aq_hash_end(h);
    if (n == 0)
        aq_content_digest(e, name, &d, text);
    else if (fd >= 0 || errno != EACCES) /* a program that may not be read is told as such */
        aq_unseen(t, k, name);
}
