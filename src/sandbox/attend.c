/* Attending a world; see attend.h. */
#include "sandbox/attend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "kernel/process.h"
#include "kernel/rest.h"
#include "kernel/syscalls.h"
#include "sandbox/census.h"

enum { LOOK_EVERY_US = 20000, FILES_EVERY = 4, READ_AT_ONCE = 64 << 10, BLOCK = 64 << 10 };

/* A signal handler has no other way to its object; a keeper has one world. */
static aq_attendant *attendant;

static uint64_t milliseconds(void)
{
    struct timespec t;

    aq_process_clock(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- limits ---- */

static void stop(aq_attendant *a, int limit)
{
    if (a->limit < 0)
        a->limit = limit;
    syscall(SYS_pidfd_send_signal, a->world->init_pidfd, SIGKILL, NULL, 0);
}

/* A limit that an act of the program met: whoever watches makes no further step, and so the run
 * ends at the same place however slow this host is. */
static void end_here(aq_attendant *a, int limit)
{
    if (!aq_container_watch)
        stop(a, limit);
    else if (a->limit < 0)
        a->limit = limit;
}

bool aq_attend_over(void *arg)
{
    const aq_attendant *a = arg;

    return a->limit >= 0;
}

static void look_at_groups(aq_attendant *a)
{
    const uint64_t *most = a->world->limits.most;
    struct statfs fs;
    aq_cgroup_usage *u = &a->used;
    uint64_t files = 0; /* of the writable space: memory too, with a limit of their own */

    if (fstatfs(a->world->disk, &fs) == 0)
        files = (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
    aq_cgroup_read(&a->world->cgroup, u);
    if (u->killed || u->memory > most[AQ_LIMIT_MEMORY] + files)
        stop(a, AQ_LIMIT_MEMORY);
    else if (u->refused)
        stop(a, AQ_LIMIT_PROCESSES);
    else if (u->cpu_ns > most[AQ_LIMIT_CPU_NS])
        stop(a, AQ_LIMIT_CPU_NS);
}

/* Where no cgroup counts, we do. */
static void look_at_processes(aq_attendant *a)
{
    const aq_cgroup *g = &a->world->cgroup;
    const uint64_t *most = a->world->limits.most;
    struct stat st;
    aq_census c;

    if (g->memory && g->pids && g->cpu)
        return;
    aq_census_take(a->world->proc, &c);
    if (!g->pids && c.tasks > most[AQ_LIMIT_PROCESSES])
        stop(a, AQ_LIMIT_PROCESSES);
    else if (!g->memory && c.memory > most[AQ_LIMIT_MEMORY] &&
             (c.memory = aq_census_memory(a->world->proc)) > most[AQ_LIMIT_MEMORY])
        stop(a, AQ_LIMIT_MEMORY);
    else if (!g->cpu && c.cpu_ns > most[AQ_LIMIT_CPU_NS])
        stop(a, AQ_LIMIT_CPU_NS);
    if (!g->memory && a->looks++ % FILES_EVERY == 0 && fstat(a->world->disk, &st) == 0 &&
        aq_census_files(a->world->proc, st.st_dev) > most[AQ_LIMIT_MEMORY])
        stop(a, AQ_LIMIT_MEMORY);
    if (c.memory > a->peak_memory)
        a->peak_memory = c.memory;
    if (c.cpu_ns > a->cpu_ns)
        a->cpu_ns = c.cpu_ns;
}

/* Returns how many bytes the program may still write. */
static uint64_t look_at_disk(aq_attendant *a)
{
    uint64_t kept = aq_large_left(a->world), left;
    struct statfs fs;

    if (fstatfs(a->world->disk, &fs) != 0)
        return UINT64_MAX;
    left = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
    left = left > kept ? left - kept : 0;
    if (left == 0)
        end_here(a, AQ_LIMIT_DISK);
    else if (fs.f_ffree == 0)
        end_here(a, AQ_LIMIT_INODES);
    return left;
}

static void look(aq_attendant *a, bool final)
{
    look_at_groups(a);
    if (!final)
        look_at_processes(a);
    if (final || !aq_container_watch) /* a watch asks at calls, whenever it is */
        look_at_disk(a);
    if (!final && milliseconds() >= a->deadline_ms)
        stop(a, AQ_LIMIT_WALL_MS);
}

/* Other things can be full too (/dev/full, watches), so the quota itself is asked. Reserving space
 * takes all or nothing and leaves no trace there, and one file may be as large as all together. */
void aq_attend_full(void *arg, long call, int error)
{
    look_at_disk(arg);
    if (call == AQ_NR_fallocate || error == EFBIG)
        end_here(arg, AQ_LIMIT_DISK);
}

uint64_t aq_attend_room(void *arg)
{
    return look_at_disk(arg);
}

void aq_attend_check(aq_attendant *a)
{
    look(a, true);
    /* Without a cgroup the kernel's own limit on one process is what counts. */
    if (a->has_status && WIFSIGNALED(a->status) && WTERMSIG(a->status) == SIGXCPU && a->limit < 0)
        a->limit = AQ_LIMIT_CPU_NS;
}

/* Is the front still there? While a world runs it says one word at most: that somebody wants it to
 * end. Then we do what we do when time is up, and tell what was seen so far. */
static void listen_to_front(aq_attendant *a)
{
    char byte;
    ssize_t n = recv(a->world->control, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        a->orphaned = 1;
        stop(a, a->limit);
    } else if (n > 0) {
        stop(a, AQ_LIMIT_WALL_MS);
    }
}

static void on_signal(int sig)
{
    int saved = errno;

    if (sig == SIGALRM)
        look(attendant, false);
    listen_to_front(attendant);
    errno = saved;
}

/* ---- pipes ---- */

static void close_stream(aq_stream *s)
{
    if (s->from >= 0)
        close(s->from);
    s->from = -1;
}

/* When the rest of the plan is known there are more. */
const aq_marks *aq_attend_marks(aq_attendant *a)
{
    const aq_plan *plan = a->world->plan;

    if (a->marked != plan && plan->mark_count)
        a->marks = aq_marks_new(a->arena, plan->marks, plan->mark_count);
    a->marked = plan;
    return a->marks;
}

static void hash_block(aq_attendant *a, aq_stream *s)
{
    if (!s->content)
        s->content = aq_hash_begin();
    aq_marks_hash(aq_attend_marks(a), &s->mark_at, s->block.data, s->block.len, s->content);
    aq_buf_clear(&s->block);
}

static void take_content(aq_attendant *a, aq_stream *s, const char *data, size_t n)
{
    while (n > 0 && a->world->plan->mark_count) {
        size_t part = n < BLOCK - s->block.len ? n : BLOCK - s->block.len;

        aq_buf_add(&s->block, data, part);
        if (s->block.len == BLOCK)
            hash_block(a, s);
        data += part;
        n -= part;
    }
}

aq_digest aq_attend_content(aq_attendant *a, aq_stream *s)
{
    if (s->block.len > 0)
        hash_block(a, s);
    return aq_hash_peek(s->content ? s->content : s->hash);
}

/* Takes what the limit leaves room for, and ends the run where it ends: what a program could still
 * write before it is dead depends on the machine. */
static size_t take_output(aq_attendant *a, aq_stream *s, const char *data, size_t n)
{
    uint64_t left = a->world->limits.most[AQ_LIMIT_OUTPUT] - a->out[0].bytes - a->out[1].bytes;
    size_t room = sizeof s->head - s->head_len;

    if (n > left) {
        n = (size_t)left;
        end_here(a, AQ_LIMIT_OUTPUT);
    }
    aq_hash_add(s->hash, data, n);
    take_content(a, s, data, n);
    memcpy(s->head + s->head_len, data, n < room ? n : room);
    s->head_len += n < room ? n : room;
    s->bytes += n;
    return n;
}

/* Reads what fits; what nobody wants to have passed on is only counted. */
static bool fill(aq_attendant *a, aq_stream *s)
{
    ssize_t n;

    if (s->start == s->end)
        s->start = s->end = 0;
    if (s->from < 0 || s->end == sizeof s->pending)
        return false;
    n = read(s->from, s->pending + s->end, sizeof s->pending - s->end);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false; /* later */
    if (n <= 0) {     /* an input that cannot be read has ended */
        close_stream(s);
        return true;
    }
    if (s->hash)
        n = (ssize_t)take_output(a, s, s->pending + s->end, (size_t)n);
    if (s->to >= 0 || !s->hash)
        s->end += (size_t)n;
    return true;
}

/* Passes on what is pending. A reader that went away does not stop the run, and knows it; any other
 * loss is told. */
static bool drain(aq_stream *s)
{
    ssize_t n;

    if (s->to < 0 || s->start == s->end)
        return false;
    n = write(s->to, s->pending + s->start, s->end - s->start < 4096 ? s->end - s->start : 4096);
    if (n > 0) {
        s->start += (size_t)n;
        return true;
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        s->lost = errno == EPIPE ? 0 : errno;
        s->to = -1;
        s->start = s->end = 0;
    }
    return false;
}

/* Standard input ends inside when it ended outside and all of it was handed over. */
static void finish_input(aq_attendant *a)
{
    if (a->in.from < 0 && a->in.start == a->in.end && a->world->pump[0] >= 0) {
        close(a->world->pump[0]);
        a->world->pump[0] = -1;
        a->in.to = -1;
    }
}

static void hear_init(aq_attendant *a)
{
    aq_message m;
    int r = aq_message_recv(a->world->outer, &m, NULL, NULL, NULL);

    if (r < 0) {
        a->init_gone = true;
    } else if (m.word == AQ_WORD_EXIT) {
        a->has_status = true;
        a->status = m.number;
    } else if (m.word == AQ_WORD_EMPTY) {
        a->empty = true;
    } else if (m.word == AQ_WORD_FAILED && !a->failed) {
        a->failed = aq_message_error(&m, &a->error);
    }
}

static size_t list_polls(aq_attendant *a, struct pollfd *p)
{
    size_t n = 0;

    p[n++] = (struct pollfd){.fd = a->init_gone ? -1 : a->world->outer, .events = POLLIN};
    for (int i = 0; i < 2; i++) {
        aq_stream *s = &a->out[i];
        p[n++] =
            (struct pollfd){.fd = s->end < sizeof s->pending || s->start == s->end ? s->from : -1,
                            .events = POLLIN};
        p[n++] = (struct pollfd){.fd = s->start < s->end ? s->to : -1, .events = POLLOUT};
    }
    p[n++] = (struct pollfd){.fd = a->in.start == a->in.end ? a->in.from : -1, .events = POLLIN};
    p[n++] = (struct pollfd){.fd = a->in.start < a->in.end ? a->in.to : -1, .events = POLLOUT};
    return n;
}

int aq_attend(void *arg, int timeout_ms)
{
    aq_attendant *a = arg;
    struct pollfd p[8];
    size_t n = list_polls(a, p);
    bool moved = false;
    int ready;

    if (a->init_gone && a->out[0].from < 0 && a->out[1].from < 0)
        return -1;
    do /* a tick of the observer is no answer, least of all when nobody wants to wait */
        ready = poll(p, n, timeout_ms);
    while (ready < 0 && errno == EINTR && timeout_ms == 0);
    if (ready <= 0)
        return 0;
    if (p[0].revents)
        hear_init(a), moved = true;
    for (size_t i = 0; i < 2; i++) {
        if (p[1 + 2 * i].revents)
            moved |= fill(a, &a->out[i]);
        moved |= drain(&a->out[i]);
    }
    if (p[5].revents)
        moved |= fill(a, &a->in);
    moved |= drain(&a->in);
    finish_input(a);
    return moved;
}

static bool pending(const aq_stream *s)
{
    return s->start < s->end;
}

/* For a watch that schedules the world itself: while the world stands still, only its input and a
 * reader of its output can still make something happen. */
int aq_attend_pump(void *arg, int timeout_ms)
{
    aq_attendant *a = arg;
    bool over = a->world->pump[0] < 0 && !pending(&a->out[0]) && !pending(&a->out[1]);
    int r = aq_attend(a, over ? 0 : timeout_ms);

    a->idle = r > 0 ? 0 : a->idle + timeout_ms;
    if (a->idle >= AQ_REST_MS) {
        aq_process_rest();
        a->idle = INT_MIN; /* until something happens */
    }
    return r == 0 && over ? -1 : r;
}

/* ---- begin and end ---- */

static int set_handlers(aq_attendant *a, aq_err *err)
{
    struct sigaction sa = {.sa_handler = on_signal};
    struct itimerval every = {{0, LOOK_EVERY_US}, {0, LOOK_EVERY_US}};

    attendant = a;
    sigaddset(&sa.sa_mask, SIGALRM);
    sigaddset(&sa.sa_mask, SIGIO);
    if (sigaction(SIGALRM, &sa, NULL) < 0 || sigaction(SIGIO, &sa, NULL) < 0 ||
        fcntl(a->world->control, F_SETOWN, getpid()) < 0 ||
        fcntl(a->world->control, F_SETFL, O_ASYNC) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0)
        return aq_fail_errno(err, "cannot watch the front");
    listen_to_front(a); /* it may have left before */
    return 0;
}

int aq_attend_begin(aq_attendant *a, aq_world *w, aq_err *err)
{
    const aq_plan *plan = w->plan;

    a->world = w; /* it came zeroed, and is large */
    a->limit = -1;
    a->deadline_ms = milliseconds() + w->limits.most[AQ_LIMIT_WALL_MS];
    a->in.from = plan->has_input ? plan->input : -1;
    a->in.to = w->pump[0];
    for (int i = 0; i < 2; i++) {
        a->out[i].from = w->pump[1 + i];
        a->out[i].to = !plan->has_output ? -1 : i == 0 ? plan->output : plan->error;
        a->out[i].hash = aq_hash_begin();
    }
    for (int i = 0; i < 3; i++)
        if (fcntl(w->pump[i], F_SETFL, O_NONBLOCK) < 0)
            return aq_fail_errno(err, "cannot set up the pipes");
    finish_input(a);
    return set_handlers(a, err);
}

void aq_attend_end(aq_attendant *a)
{
    struct itimerval never = {0};
    uint64_t until = milliseconds() + 2000;

    /* The writers are dead, so the pipes hold an end; a reader outside that does not take what is
     * left gets two seconds. */
    while (!a->orphaned && milliseconds() < until) {
        bool left = false;
        for (int i = 0; i < 2; i++)
            left |= a->out[i].from >= 0 || a->out[i].start < a->out[i].end;
        if (!left)
            break;
        a->init_gone = false; /* so that its last word is heard */
        aq_attend(a, 100);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    fcntl(a->world->control, F_SETFL, 0);
}

void aq_attend_free(aq_attendant *a)
{
    for (int i = 0; i < 2; i++) {
        aq_hash_abort(a->out[i].hash);
        aq_hash_abort(a->out[i].content);
        aq_buf_free(&a->out[i].block);
    }
}
