/* Files of /proc: a real descriptor, our bytes.
 *
 * The program opens the kernel's own file; when it reads, we read in its stead, let the room `veil`
 * make what the program is to see, put that into its memory and move the file's position. The
 * kernel keeps that position, so a descriptor that was duplicated, inherited, sent or opened again
 * works as any other. A text is made when a file is read from its start, and kept for who reads on:
 * in pieces it is still one text. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "observe/disk.h"
#include "veil/veil.h"

enum {
    PAGES = 8,      /* texts that are kept */
    VECTORS = 1024, /* the kernel takes no more */
    PIECE = 65536,  /* of the kernel's text, at once */
    MEMORY_PAGE = 4096,
};

typedef struct page {
    char *name; /* of the file; owned */
    aq_buf text;
} page;

struct aq_texts {
    page pages[PAGES];
    unsigned next;
    uint64_t draws;
    pid_t last_pid;
    aq_buf truth;
};

static struct aq_texts *texts_of(aq_tracer *t)
{
    if (!t->texts)
        t->texts = aq_alloc(sizeof *t->texts);
    return t->texts;
}

void aq_texts_free(aq_tracer *t)
{
    if (!t->texts)
        return;
    for (int i = 0; i < PAGES; i++) {
        free(t->texts->pages[i].name);
        aq_buf_free(&t->texts->pages[i].text);
    }
    aq_buf_free(&t->texts->truth);
    free(t->texts);
    t->texts = NULL;
}

/* ---- whom a file tells of ---- */

static aq_task *leader_of(const aq_tracer *t, const aq_proc *p)
{
    for (aq_task *q = t->tasks; q; q = q->next)
        if (q->tid == p->pid)
            return q;
    return NULL;
}

static aq_task *thread_of(const aq_tracer *t, const aq_proc *p, pid_t inner)
{
    for (aq_task *q = t->tasks; q; q = q->next)
        if (q->proc == p && aq_task_inner(q) == inner)
            return q;
    return NULL;
}

static uint64_t calls_of(const aq_proc *p)
{
    uint64_t sum = p->unknown;

    for (int i = 0; i < AQ_CALL_NUMBERS; i++)
        sum += p->counts[i];
    return sum;
}

static void tell_process(aq_tracer *t, aq_task *k, const char *name, aq_veil_process *of)
{
    aq_task *q;
    aq_proc *p;
    int pid, tid;

    aq_veil_pids(name, &pid, &tid);
    p = pid > 0 ? aq_proc_inner(t, k, pid) : NULL;
    if (!p)
        return;
    q = tid > 0 ? thread_of(t, p, tid) : leader_of(t, p);
    of->cpu_ns = tid > 0 && q ? q->cpu : p->cpu;
    of->children_ns = p->children;
    of->born_ns = p->born;
    of->calls = calls_of(p);
    of->vdso = p->vdso;
    of->running = q == k;
    of->halted = q && q->state == AQ_TASK_HALTED;
    of->parent = aq_actors_parent(p);
    aq_face_tell(q, p, of);
}

static pid_t last_pid(aq_tracer *t)
{
    struct aq_texts *f = texts_of(t);

    for (aq_task *q = t->tasks; q; q = q->next)
        if (aq_task_inner(q) > f->last_pid)
            f->last_pid = aq_task_inner(q);
    return f->last_pid;
}

/* The number that stat gives it, too. */
static uint64_t number_of(void *arg, const char *name, uint64_t device, uint64_t inode)
{
    aq_tracer *t = arg;

    if (!t->disk)
        return inode;
    return name ? aq_disk_inode(t, name, device, inode) : aq_disk_anonymous(t, inode, NULL);
}

/* ---- texts ---- */

/* All that the kernel would say, from the start. False: it says that something is wrong. */
static bool read_truth(int mine, aq_buf *ret)
{
    ssize_t n;

    aq_buf_clear(ret);
    do {
        aq_buf_reserve(ret, PIECE);
        n = pread(mine, ret->data + ret->len, PIECE, (off_t)ret->len);
        if (n > 0)
            ret->len += (size_t)n;
    } while (n > 0 && ret->len < AQ_VEIL_TEXT);
    return n >= 0;
}

static page *kept(struct aq_texts *f, const char *name)
{
    for (int i = 0; i < PAGES; i++)
        if (f->pages[i].name && strcmp(f->pages[i].name, name) == 0)
            return &f->pages[i];
    return NULL;
}

/* "/proc/12/fdinfo/3" tells of what /proc/12/fd/3 leads to. */
static void tell_file(aq_tracer *t, aq_task *k, const char *name, aq_veil_scene *s)
{
    const char *part = strstr(name, "/fdinfo/");
    char path[96];
    struct statx file;

    if (!part || !t->disk ||
        snprintf(path, sizeof path, "%.*s/fd/%s", (int)(part - name), name, part + 8) >=
            (int)sizeof path ||
        !aq_disk_look(t, k, path, &file))
        return;
    s->file = (struct aq_veil_file){file.stx_ino, (uint32_t)file.stx_mnt_id, file.stx_dev_major,
                                    file.stx_dev_minor};
}

static const aq_buf *text_of(aq_tracer *t, aq_task *k, const aq_fd *f, int mine, bool anew)
{
    struct aq_texts *texts = texts_of(t);
    page *p = kept(texts, f->name);
    aq_veil_scene s = {.machine = t->plan.machine,
                       .path = f->name,
                       .clock_ns = t->clock,
                       .tasks = t->alive,
                       .inode = number_of,
                       .arg = t};

    if (p && !anew)
        return &p->text;
    if (aq_veil_needs_truth(f->veil) && !read_truth(mine, &texts->truth))
        return NULL;
    s.last_pid = last_pid(t);
    s.draw = texts->draws++;
    tell_process(t, k, f->name, &s.of);
    tell_file(t, k, f->name, &s);
    if (!p) {
        p = &texts->pages[texts->next++ % PAGES];
        free(p->name);
        p->name = aq_strdup(f->name);
    }
    aq_veil_text(f->veil, &s, texts->truth.data, texts->truth.len, &p->text);
    return &p->text;
}

/* ---- into its memory ---- */

/* As much as can be put there, page by page where not all can. */
static size_t put(const aq_task *k, uint64_t at, const char *data, size_t len)
{
    size_t done = 0;

    if (aq_tracee_put(k, at, data, len))
        return len;
    while (done < len) {
        size_t n = MEMORY_PAGE - (size_t)((at + done) % MEMORY_PAGE);

        n = n < len - done ? n : len - done;
        if (!aq_tracee_put(k, at + done, data + done, n))
            break;
        done += n;
    }
    return done;
}

static long put_vectors(const aq_task *k, const char *data, size_t len)
{
    uint64_t at = aq_regs_arg(k, 1), count = aq_regs_arg(k, 2);
    size_t done = 0;

    if (count > VECTORS)
        return -EINVAL;
    for (uint64_t i = 0; i < count && done < len; i++) {
        struct iovec v;
        size_t n, got;

        if (!aq_tracee_get(k, at + i * sizeof v, &v, sizeof v))
            return -EFAULT;
        n = v.iov_len < len - done ? v.iov_len : len - done;
        got = n ? put(k, (uint64_t)(uintptr_t)v.iov_base, data + done, n) : 0;
        done += got;
        if (got < n)
            return done ? (long)done : -EFAULT;
    }
    return (long)done;
}

static long put_text(const aq_task *k, const char *data, size_t len)
{
    uint64_t count = aq_regs_arg(k, 2);
    size_t n = count < len ? (size_t)count : len, done;

    if (k->nr != SYS_read && k->nr != SYS_pread64)
        return put_vectors(k, data, len);
    done = n ? put(k, aq_regs_arg(k, 1), data, n) : 0;
    return n && !done ? -EFAULT : (long)done;
}

/* Reads at a place of its own choice? -1 means the file's position. */
static bool has_place(const aq_task *k, int64_t *ret)
{
    *ret = aq_arg_long(k, 3);
    return k->nr == SYS_pread64 || k->nr == SYS_preadv || (k->nr == SYS_preadv2 && *ret != -1);
}

aq_step aq_texts_read(aq_tracer *t, aq_task *k, const aq_fd *f)
{
    aq_auto_fd int mine = aq_fd_borrow(k, f->fd);
    int flags = mine < 0 ? -1 : fcntl(mine, F_GETFL);
    const aq_buf *text;
    int64_t at;
    bool placed;
    long n;

    if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY)
        return AQ_STEP_RUN;
    placed = has_place(k, &at);
    if (!placed)
        at = lseek(mine, 0, SEEK_CUR);
    if (at < 0 || !(text = text_of(t, k, f, mine, at == 0)))
        return AQ_STEP_RUN; /* the kernel says what is wrong */
    n = (uint64_t)at < text->len ? put_text(k, text->data + at, text->len - (size_t)at) : 0;
    if (n > 0 && !placed)
        lseek(mine, at + n, SEEK_SET);
    aq_moved(t, n);
    return aq_answer(k, n);
}
