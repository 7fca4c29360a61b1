/* Large files of a world: made without content, which costs nothing, and filled before somebody can
 * tell. Init keeps each of them in its memory from the making on; to fill one it needs no call, so
 * it stays locked. The kernel notes that as a change; the observer shows the time from before.
 *
 * The keeper names a file by its number in the plan and waits until it is filled: as far as there
 * is space, and as far as the payload has not cut it before. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/world.h"

enum { MOST = 256 }; /* large files of a world */

static uint64_t pages(uint64_t len)
{
    const uint64_t page = 4096;

    return (len + page - 1) / page * page;
}

/* They take it only when they are opened; until then it is kept for them (aq_large_left). Where
 * little may be written, large files stay as they are: zeros. */
uint64_t aq_large_room(const aq_plan *plan, uint64_t most)
{
    uint64_t room = plan->later ? plan->later_large : 0;

    for (size_t i = 0; i < plan->file_count && !plan->later; i++)
        if (plan->files[i].say)
            room += pages(plan->files[i].len);
    return room < most / 4 ? room : most / 4;
}

uint64_t aq_large_left(const aq_world *w)
{
    return aq_large_room(w->plan, w->limits.most[AQ_LIMIT_DISK]) - w->large_bytes;
}

/* ---- in init ---- */

static struct {
    const aq_plan_file *file;
    uint8_t *at;
} rows[MOST];
static size_t row_count;
static sigjmp_buf no_space;

int aq_large_make(int fd, const aq_plan_file *f)
{
    void *at;

    if (row_count == MOST)
        return -E2BIG;
    if (ftruncate(fd, (off_t)f->len) < 0)
        return errno == EFBIG ? 0 : -errno; /* whoever may make no large file has it empty */
    at = mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    rows[row_count].file = f;
    rows[row_count++].at = at;
    return 0;
}

/* Only what the kernel itself raises: a signal that somebody sent comes at any time. */
static void on_bus(int number, siginfo_t *what, void *context)
{
    (void)number;
    (void)context;
    if (what->si_code > 0)
        siglongjmp(no_space, 1);
}

/* The last that needs a call; then init may be locked. */
int aq_large_ready(void)
{
    struct sigaction on = {.sa_sigaction = on_bus, .sa_flags = SA_NODEFER | SA_SIGINFO};

    return row_count && sigaction(SIGBUS, &on, NULL) < 0 ? -errno : 0;
}

static int take(void *arg, const void *data, size_t len)
{
    uint8_t **to = arg;

    memcpy(*to, data, len);
    *to += len;
    return 0;
}

static void write_one(const aq_plan_file *f, uint8_t *at)
{
    if (sigsetjmp(no_space, 0) == 0)
        (void)f->say(f, take, &at);
}

void aq_large_write(const aq_plan *plan, int number)
{
    const aq_plan_file *f = &plan->files[number];

    for (size_t i = 0; i < row_count; i++)
        if (rows[i].file == f && rows[i].at) {
            write_one(f, rows[i].at);
            munmap(rows[i].at, f->len); /* nobody runs a file that somebody could still write */
            rows[i].at = NULL;
            return;
        }
}

/* ---- in the keeper ---- */

static bool is_meant(const aq_plan_file *f, const char *name, bool below)
{
    size_t n = strlen(name);

    return f->say && strncmp(f->path, name, n) == 0 &&
           (f->path[n] == '\0' || (below && f->path[n] == '/'));
}

/* What the program may write is not for us to take. */
static bool fits(const aq_world *w, const aq_plan_file *f)
{
    return pages(f->len) <= aq_large_left(w);
}

/* Tells init; false: it is gone. */
static bool ask(aq_world *w, size_t number)
{
    siginfo_t what = {.si_signo = AQ_SIGNAL_LARGE, .si_code = SI_QUEUE};
    char answer = 0;
    ssize_t n;

    what.si_value.sival_int = (int)number;
    if (w->order < 0 || syscall(SYS_rt_sigqueueinfo, w->init, AQ_SIGNAL_LARGE, &what) < 0)
        return false;
    while ((n = recv(w->order, &answer, 1, 0)) < 0 && errno == EINTR)
        continue;
    return n == 1;
}

bool aq_large_fill(aq_world *w, const char *name, bool below, const char **path, int64_t *written,
                   uint64_t *len)
{
    const int64_t second = 1000000000;
    size_t row = 0;

    for (size_t i = 0; w->laid && i < w->plan->file_count; i++) {
        const aq_plan_file *f = &w->plan->files[i];

        if (!f->say || row == MOST)
            continue;
        if (!w->large[row] && is_meant(f, name, below) && fits(w, f) && ask(w, i)) {
            w->large[row] = true;
            w->large_bytes += pages(f->len);
            *path = f->path;
            *written = f->mtime * second + f->mtime_ns;
            *len = f->len;
            return true;
        }
        row++;
    }
    return false;
}

/* ---- what became of one ---- */

typedef struct comparing {
    int fd;
    char *buffer;
    size_t size;
} comparing;

static int compare(void *arg, const void *data, size_t len)
{
    const comparing *c = arg;

    for (size_t done = 0; done < len;) {
        size_t n = len - done < c->size ? len - done : c->size;
        ssize_t got = read(c->fd, c->buffer, n);

        if (got <= 0 || memcmp(c->buffer, (const char *)data + done, (size_t)got) != 0)
            return -EUCLEAN;
        done += (size_t)got;
    }
    return 0;
}

bool aq_large_empty(const aq_plan_file *f, const struct stat *st)
{
    return f->say && st->st_blocks == 0 && (uint64_t)st->st_size == f->len;
}

bool aq_large_same(int fd, const aq_plan_file *f, char *buffer, size_t size)
{
    comparing c = {fd, buffer, size};
    char one;

    return f->say(f, compare, &c) == 0 && read(fd, &one, 1) == 0;
}
