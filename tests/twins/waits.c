/* Ways to wait that few programs use, one act each: what the kernel knows of waiting, and time that
 * is given as a moment. Each prints what it saw and in which order. Run as "twins_waits NAME". */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"

enum { SOME = 3 };

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void *shared_page(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Children that do their part; each ends with its number. */
static void children(int count, void (*part)(int i, void *arg), void *arg)
{
    fflush(stdout);
    for (int i = 0; i < count; i++)
        if (fork() == 0) {
            part(i, arg);
            _exit(i);
        }
}

static void all_ended(void)
{
    int status, sum = 0;

    while (wait(&status) > 0)
        sum += WEXITSTATUS(status);
    printf("ended %d\n", sum);
}

static struct timespec after(clockid_t clock, long ms)
{
    struct timespec t;

    clock_gettime(clock, &t);
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* ---- futexes ---- */

static atomic_int first, second, woken[16], woken_count;

static long futex(atomic_int *word, int op, int value, long more, atomic_int *other, int expected)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, more, other, expected);
}

static void *waits_on_first(void *me)
{
    futex(&first, FUTEX_WAIT, 0, 0, NULL, 0);
    woken[atomic_fetch_add(&woken_count, 1)] = (int)(long)me;
    return NULL;
}

/* One is woken, the others move to another word; then a wrong expectation. */
static int requeue(void)
{
    pthread_t t[SOME + 1];
    long r[4];

    for (long i = 0; i <= SOME; i++)
        pthread_create(&t[i], NULL, waits_on_first, (void *)i);
    pause_ms(1);
    r[0] = futex(&first, FUTEX_CMP_REQUEUE, 1, INT_MAX, &second, 7);
    r[1] = futex(&first, FUTEX_CMP_REQUEUE, 1, INT_MAX, &second, 0);
    r[2] = futex(&second, FUTEX_WAKE, 2, 0, NULL, 0);
    r[3] =
        futex(&second, FUTEX_WAKE_OP, 9, 0, &first, FUTEX_OP(FUTEX_OP_SET, 5, FUTEX_OP_CMP_EQ, 0));
    for (int i = 0; i <= SOME; i++)
        pthread_join(t[i], NULL);
    printf("%ld %ld %ld %ld, word %d, woken", r[0], r[1], r[2], r[3], first);
    for (int i = 0; i < woken_count; i++)
        printf(" %d", woken[i]);
    puts("");
    return 0;
}

static void *waits_for_bit(void *me)
{
    futex(&first, FUTEX_WAIT_BITSET, 0, 0, NULL, 1 << (long)me);
    woken[atomic_fetch_add(&woken_count, 1)] = (int)(long)me;
    return NULL;
}

static int bitset(void)
{
    pthread_t t[SOME];

    for (long i = 0; i < SOME; i++)
        pthread_create(&t[i], NULL, waits_for_bit, (void *)i);
    pause_ms(1);
    for (int i = SOME; i-- > 0;)
        printf("%ld ", futex(&first, FUTEX_WAKE_BITSET, 9, 0, NULL, 1 << i)), pause_ms(1);
    for (int i = 0; i < SOME; i++)
        pthread_join(t[i], NULL);
    printf("%d %d %d\n", woken[0], woken[1], woken[2]);
    return 0;
}

/* ---- between processes ---- */

typedef struct meeting {
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sem_t sem;
    int turn, order[64], count;
} meeting;

static void meets(int i, void *arg)
{
    meeting *m = arg;

    for (int k = 0; k < 4; k++) {
        if (k == i)
            pause_ms(3);
        if (pthread_barrier_wait(&m->barrier))
            m->order[m->count++] = i;
        pthread_barrier_wait(&m->barrier);
    }
}

static int shared_barrier(void)
{
    meeting *m = shared_page();
    pthread_barrierattr_t a;

    pthread_barrierattr_init(&a);
    pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&m->barrier, &a, SOME);
    children(SOME, meets, m);
    all_ended();
    for (int i = 0; i < m->count; i++)
        printf("%d ", m->order[i]);
    puts("");
    return 0;
}

static void takes_turns(int i, void *arg)
{
    meeting *m = arg;

    for (int k = 0; k < 5; k++) {
        if (pthread_mutex_lock(&m->lock) == EOWNERDEAD) {
            m->order[m->count++] = 100 + i;
            pthread_mutex_consistent(&m->lock);
        }
        while (m->turn % SOME != i)
            pthread_cond_wait(&m->changed, &m->lock);
        m->order[m->count++] = i;
        m->turn++;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
    }
}

static void dies_with_it(int i, void *arg)
{
    pthread_mutex_lock(&((meeting *)arg)->lock);
    _exit(i);
}

/* A lock whose owner died, and a condition, in memory that processes share. */
static int shared_condition(void)
{
    meeting *m = shared_page();
    pthread_mutexattr_t a;
    pthread_condattr_t c;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m->lock, &a);
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&m->changed, &c);
    children(1, dies_with_it, m);
    all_ended();
    children(SOME, takes_turns, m);
    all_ended();
    for (int i = 0; i < m->count; i++)
        printf("%d ", m->order[i]);
    puts("");
    return 0;
}

static void posts(int i, void *arg)
{
    pause_ms(10 * (i + 1));
    sem_post(&((meeting *)arg)->sem);
}

static int timed_semaphore(void)
{
    meeting *m = shared_page();

    sem_init(&m->sem, 1, 0);
    children(SOME, posts, m);
    for (int i = 0; i < 6; i++) {
        struct timespec until = after(CLOCK_REALTIME, 8);
        int r = sem_timedwait(&m->sem, &until);

        printf("%d ", r ? errno : 0);
    }
    all_ended();
    return 0;
}

/* ---- children and signals ---- */

static void ends_later(int i, void *arg)
{
    (void)arg;
    pause_ms(5 * (SOME - i));
    if (i == 1)
        raise(SIGTERM);
}

static int wait_ids(void)
{
    siginfo_t s = {0};

    children(SOME, ends_later, NULL);
    printf("%d %d\n", waitid(P_ALL, 0, &s, WEXITED | WNOHANG), s.si_pid);
    for (int i = 0; i < SOME; i++) {
        waitid(P_ALL, 0, &s, WEXITED | WNOWAIT);
        printf("%d %d ", s.si_code, s.si_status);
        waitid(P_PID, (id_t)s.si_pid, &s, WEXITED);
        printf("%d %d\n", s.si_code, s.si_status);
    }
    printf("%d\n", waitid(P_ALL, 0, &s, WEXITED) ? errno : 0);
    return 0;
}

static void sends(int i, void *arg)
{
    (void)arg;
    pause_ms(10 * (i + 1));
    sigqueue(getppid(), SIGRTMIN + i, (union sigval){.sival_int = 40 + i});
}

static int timed_signals(void)
{
    struct timespec limit = {0, 7000000};
    siginfo_t s;
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < SOME; i++)
        sigaddset(&set, SIGRTMIN + i);
    sigprocmask(SIG_BLOCK, &set, NULL);
    children(SOME, sends, NULL);
    for (int i = 0; i < 7; i++) {
        int r = sigtimedwait(&set, &s, &limit);

        printf("%d ", r < 0 ? -errno : s.si_value.sival_int);
    }
    all_ended();
    return 0;
}

/* ---- descriptors ---- */

static void *changes_files(void *folder)
{
    char path[64], other[64];

    snprintf(path, sizeof path, "%s/one", (char *)folder);
    snprintf(other, sizeof other, "%s/two", (char *)folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    pause_ms(5);
    rename(path, other);
    unlink(other);
    return NULL;
}

static int watch(void)
{
    char folder[] = "watched", text[4096];
    int fd = inotify_init1(0), seen = 0;
    pthread_t t;

    mkdir(folder, 0700);
    inotify_add_watch(fd, folder, IN_CREATE | IN_MOVE | IN_DELETE);
    pthread_create(&t, NULL, changes_files, folder);
    while (seen < 4) {
        ssize_t n = read(fd, text, sizeof text);

        for (ssize_t at = 0; at < n; seen++) {
            const struct inotify_event *e = (const void *)(text + at);

            printf("%x %s, ", e->mask, e->name);
            at += (ssize_t)sizeof *e + e->len;
        }
    }
    pthread_join(t, NULL);
    rmdir(folder);
    puts("");
    return 0;
}

typedef struct ends {
    int poll, pipe[2], event;
} ends;

static void *feeds(void *arg)
{
    const ends *e = arg;
    uint64_t one = 1;

    for (int i = 0; i < 4; i++) {
        pause_ms(5);
        if (write(e->pipe[1], "abc", 3) != 3 || write(e->event, &one, sizeof one) < 0)
            return NULL;
    }
    close(e->pipe[1]);
    return NULL;
}

/* Told once for each change, told once at all, and never in time. */
static int edges(void)
{
    ends e = {.poll = epoll_create1(0), .event = eventfd(0, EFD_NONBLOCK)};
    struct epoll_event v = {.events = EPOLLIN | EPOLLET, .data.u32 = 1}, got[4];
    char c;
    pthread_t t;

    if (pipe2(e.pipe, O_NONBLOCK) != 0)
        return 1;
    epoll_ctl(e.poll, EPOLL_CTL_ADD, e.pipe[0], &v);
    v = (struct epoll_event){.events = EPOLLIN | EPOLLONESHOT, .data.u32 = 2};
    epoll_ctl(e.poll, EPOLL_CTL_ADD, e.event, &v);
    pthread_create(&t, NULL, feeds, &e);
    for (int round = 0; round < 9; round++) {
        int n = epoll_wait(e.poll, got, 4, 4);

        printf("%d:", n);
        for (int i = 0; i < n; i++)
            printf(" %u/%x", got[i].data.u32, got[i].events);
        printf(" %zd, ", read(e.pipe[0], &c, 1));
        if (round == 5)
            epoll_ctl(e.poll, EPOLL_CTL_MOD, e.event, &v);
    }
    pthread_join(t, NULL);
    puts("");
    return 0;
}

/* ---- moments ---- */

static int moments(void)
{
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
    struct itimerspec s = {.it_interval = {0, 20000000}};
    int fd = timerfd_create(CLOCK_REALTIME, 0);
    uint64_t n;

    for (int i = 0; i < SOME; i++) {
        struct timespec t = after(clocks[i], 3600000 + i), now;
        int r = clock_nanosleep(clocks[i], TIMER_ABSTIME, &t, NULL);

        clock_gettime(clocks[i], &now);
        printf("%d %d, ", r, now.tv_sec >= t.tv_sec && now.tv_sec - t.tv_sec < 2);
        printf("%d, ", clock_nanosleep(clocks[i], TIMER_ABSTIME, &t, NULL));
    }
    s.it_value = after(CLOCK_REALTIME, 50);
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &s, NULL);
    pause_ms(100);
    printf("%zd ", read(fd, &n, sizeof n));
    printf("%d\n", (int)n);
    return 0;
}

/* ---- turns ---- */

static atomic_int given;

static void *giver(void *arg)
{
    getppid();
    given = 1;
    return arg;
}

/* Who yields lets the others go first: at once, and not after a turn of many calls. */
static int yields(void)
{
    pthread_t t;
    int n = 0;

    pthread_create(&t, NULL, giver, NULL);
    for (; !given; n++)
        sched_yield();
    pthread_join(t, NULL);
    printf("%d\n", n);
    return 0;
}

static void *polls(void *fd)
{
    struct pollfd p = {.fd = *(int *)fd, .events = POLLIN};

    poll(&p, 1, -1);
    return NULL;
}

static void *marks(void *me)
{
    char name[32];

    for (int i = 0; i < 400; i++) {
        getppid();
        if (i % 10)
            continue;
        snprintf(name, sizeof name, "/mark-%ld-%d", (long)me, i);
        access(name, F_OK);
    }
    return NULL;
}

/* Some wait for what does not come while output goes out, and are asked again each time it does.
 * The turns of others afterwards must not depend on how often that was. */
static int in_vain(void)
{
    static char
        out[16000]; /* that go out in many pieces, and into what is kept for a slow reader */
    pthread_t waiter[SOME], worker[SOME];
    int p[2];

    if (pipe(p) != 0)
        return 1;
    for (int i = 0; i < SOME; i++)
        pthread_create(&waiter[i], NULL, polls, p);
    memset(out, 'o', sizeof out);
    for (int i = 0; i < SOME; i++) {
        if (write(STDOUT_FILENO, out, sizeof out) != sizeof out)
            return 1;
        pause_ms(10);
    }
    for (long i = 0; i < SOME; i++)
        pthread_create(&worker[i], NULL, marks, (void *)i);
    for (int i = 0; i < SOME; i++)
        pthread_join(worker[i], NULL);
    close(p[1]);
    for (int i = 0; i < SOME; i++)
        pthread_join(waiter[i], NULL);
    return 0;
}

static const act acts[] = {{"requeue", requeue},
                           {"bitset", bitset},
                           {"shared-barrier", shared_barrier},
                           {"shared-condition", shared_condition},
                           {"timed-semaphore", timed_semaphore},
                           {"waitid", wait_ids},
                           {"sigtimedwait", timed_signals},
                           {"inotify", watch},
                           {"epoll", edges},
                           {"moments", moments},
                           {"yields", yields},
                           {"in-vain", in_vain}};

int main(int argc, char **argv)
{
    return choose(acts, sizeof acts / sizeof *acts, argc, argv);
}
