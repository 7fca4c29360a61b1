/* Waits that a signal meets: what each of them answers when a handler ran, when a handler ran that
 * asks for a restart, and when nobody handled it (a stop and its end). One line each: result, error
 * and tenths of a second. The same lines natively, where the kernel decides, and in a world, where
 * the observer has a hand in it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST_MS = 430 };

/* What both processes have: a pipe, a pair of sockets, a word, a lock, a queue and a semaphore. */
typedef struct shared {
    int word;
    pthread_mutex_t owned; /* by the one who ends the wait; its futex is PI */
} shared;

static int pipes[2], sockets[2], listener, queue, semaphore;
static shared *both;
static const char *lock_path;

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)(t.tv_sec * 1000 + t.tv_nsec / 1000000);
}

static struct timespec moment(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += LAST_MS * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

/* ---- waits ---- */

static long do_read(void)
{
    char c;

    return read(pipes[0], &c, 1);
}

static long do_receive(void)
{
    char c;

    return recv(sockets[0], &c, 1, 0);
}

static long do_receive_timed(void)
{
    struct timeval last = {0, LAST_MS * 1000};
    char c;

    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &last, sizeof last);
    return recv(sockets[0], &c, 1, 0);
}

static long do_futex(void)
{
    return syscall(SYS_futex, &both->word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long do_futex_timed(void)
{
    struct timespec last = {0, LAST_MS * 1000000};

    return syscall(SYS_futex, &both->word, FUTEX_WAIT, 0, &last, NULL, 0);
}

static long do_futex_until(void)
{
    struct timespec at = moment();

    return syscall(SYS_futex, &both->word, FUTEX_WAIT_BITSET, 0, &at, NULL, ~0);
}

static long do_owned(void)
{
    return pthread_mutex_lock(&both->owned);
}

/* These say how much was left: tenths, and one, below zero when they failed. */
static long left(long r, long tenths)
{
    return r < 0 ? -(tenths + 1) : 10 * r + tenths;
}

static long do_sleep(void)
{
    struct timespec last = {0, LAST_MS * 1000000}, rest = {0};
    long r = nanosleep(&last, &rest);

    return left(r, rest.tv_nsec / 100000000);
}

static long do_sleep_until(void)
{
    struct timespec at = moment();

    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    return errno ? -1 : 0;
}

static long do_poll(void)
{
    struct pollfd p = {.fd = pipes[0], .events = POLLIN};

    return poll(&p, 1, -1);
}

static long do_poll_timed(void)
{
    struct pollfd p = {.fd = sockets[0], .events = POLLPRI};

    return poll(&p, 1, LAST_MS);
}

static long do_select(void)
{
    struct timeval last = {0, LAST_MS * 1000};
    long r = syscall(SYS_select, 0, NULL, NULL, NULL, &last);

    return left(r, last.tv_usec / 100000);
}

static long do_select_masked(void)
{
    struct timespec last = {0, LAST_MS * 1000000};
    uint64_t none = 0;
    const struct {
        uint64_t *set;
        size_t size;
    } mask = {&none, sizeof none};
    long r = syscall(SYS_pselect6, 0, NULL, NULL, NULL, &last, &mask);

    return left(r, last.tv_nsec / 100000000);
}

static long do_poll_masked(void)
{
    struct timespec last = {0, LAST_MS * 1000000};
    uint64_t none = 0;
    long r = syscall(SYS_ppoll, NULL, 0, &last, &none, sizeof none);

    return left(r, last.tv_nsec / 100000000);
}

/* What is blocked outside of the call comes through inside of it. */
static long blocked(long (*wait)(void))
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    sigprocmask(SIG_BLOCK, &one, NULL);
    return wait ? wait() : 0;
}

static long do_select_blocked(void)
{
    return blocked(do_select_masked);
}

static long do_poll_blocked(void)
{
    return blocked(do_poll_masked);
}

static long do_epoll_blocked(void)
{
    struct epoll_event e = {.events = EPOLLIN};
    int fd = epoll_create1(0);
    sigset_t none;

    sigemptyset(&none);
    epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e);
    return blocked(NULL) + epoll_pwait(fd, &e, 1, -1, &none);
}

static long do_epoll(void)
{
    struct epoll_event e = {.events = EPOLLIN};
    int fd = epoll_create1(0);

    epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &e);
    return epoll_wait(fd, &e, 1, -1);
}

static long do_pause(void)
{
    return pause();
}

static long do_suspend(void)
{
    sigset_t none;

    sigemptyset(&none);
    return sigsuspend(&none);
}

static long do_wait(void)
{
    pid_t p = fork();

    if (p == 0) {
        nap(LAST_MS);
        _exit(7);
    }
    return wait4(p, NULL, 0, NULL) == p ? 1 : -1;
}

static long do_flock(void)
{
    return flock(open(lock_path, O_RDWR | O_CLOEXEC), LOCK_EX);
}

static long do_record_lock(void)
{
    struct flock l = {.l_type = F_WRLCK};

    return fcntl(open(lock_path, O_RDWR | O_CLOEXEC), F_SETLKW, &l);
}

static long do_message(void)
{
    struct {
        long type;
        char text[8];
    } m;

    return msgrcv(queue, &m, sizeof m.text, 0, 0);
}

static long do_semaphore(void)
{
    struct sembuf take = {.sem_op = -1};

    return semop(semaphore, &take, 1);
}

static long do_accept(void)
{
    return accept(listener, NULL, NULL) < 0 ? -1 : 1;
}

static long do_signal_wait(void)
{
    struct timespec last = {0, LAST_MS * 1000000};
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    return sigtimedwait(&one, NULL, &last);
}

static const struct {
    const char *name;
    long (*wait)(void);
    bool by_signal; /* what ends it in the end */
} waits[] = {
    {"read", do_read, false},
    {"receive", do_receive, false},
    {"receive-timed", do_receive_timed, false},
    {"futex", do_futex, false},
    {"futex-timed", do_futex_timed, false},
    {"futex-until", do_futex_until, false},
    {"owned", do_owned, false},
    {"sleep", do_sleep, false},
    {"sleep-until", do_sleep_until, false},
    {"poll", do_poll, false},
    {"poll-timed", do_poll_timed, false},
    {"select", do_select, false},
    {"select-masked", do_select_masked, false},
    {"poll-masked", do_poll_masked, false},
    {"select-blocked", do_select_blocked, false},
    {"poll-blocked", do_poll_blocked, false},
    {"epoll-blocked", do_epoll_blocked, false},
    {"epoll", do_epoll, false},
    {"pause", do_pause, true},
    {"suspend", do_suspend, true},
    {"wait", do_wait, false},
    {"flock", do_flock, false},
    {"record-lock", do_record_lock, false},
    {"message", do_message, false},
    {"semaphore", do_semaphore, false},
    {"signal-wait", do_signal_wait, false},
    {"accept", do_accept, false},
};

/* ---- who waits, and who disturbs ---- */

typedef enum disturbance { HANDLED, RESTARTED, STOPPED, WAYS } disturbance;

static void on(int sig)
{
    (void)sig;
}

static void waiter(size_t which, disturbance way)
{
    static const char *const ways[] = {"handled", "restarted", "stopped"};
    struct sigaction a = {.sa_handler = on, .sa_flags = way == RESTARTED ? SA_RESTART : 0};
    long from, r;

    sigaction(SIGALRM, &a, NULL);
    sigaction(SIGUSR1, &a, NULL);
    from = now_ms();
    r = waits[which].wait();
    printf("%s %s: %ld %s %ld\n", waits[which].name, ways[way], r,
           r < 0 ? strerrorname_np(errno) : "-", (now_ms() - from) / 100);
    fflush(stdout);
    _exit(0);
}

static void prepare(int *lock)
{
    pthread_mutexattr_t how;
    struct flock l = {.l_type = F_WRLCK};

    (void)!pipe(pipes);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, (const struct sockaddr *)&(sa_family_t){AF_UNIX}, sizeof(sa_family_t));
    listen(listener, 1);
    queue = msgget(IPC_PRIVATE, 0600);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    *lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    flock(*lock, LOCK_EX);
    fcntl(*lock, F_SETLK, &l);
    both->word = 0;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&both->owned, &how);
    pthread_mutex_lock(&both->owned);
}

static void let_go(int lock, pid_t p, bool by_signal)
{
    struct {
        long type;
        char text[8];
    } m = {1, "message"};
    struct sembuf give = {.sem_op = 1};
    int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_un at = {0};
    socklen_t size = sizeof at;

    (void)!write(pipes[1], "x", 1);
    send(sockets[1], "x", 1, 0);
    getsockname(listener, (struct sockaddr *)&at, &size);
    connect(caller, (struct sockaddr *)&at, size);
    syscall(SYS_futex, &both->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    pthread_mutex_unlock(&both->owned);
    close(lock);
    msgsnd(queue, &m, sizeof m.text, 0);
    semop(semaphore, &give, 1);
    close(caller);
    close(listener);
    if (by_signal)
        kill(p, SIGUSR1);
}

static void disturb(size_t which, disturbance way)
{
    int lock;
    pid_t p;

    prepare(&lock);
    p = fork();
    if (p == 0) {
        close(lock);
        waiter(which, way);
    }
    nap(150);
    kill(p, way == STOPPED ? SIGSTOP : SIGALRM);
    nap(100);
    if (way == STOPPED)
        kill(p, SIGCONT);
    nap(100);
    let_go(lock, p, waits[which].by_signal);
    waitpid(p, NULL, 0);
    close(pipes[0]), close(pipes[1]), close(sockets[0]), close(sockets[1]);
    msgctl(queue, IPC_RMID, NULL);
    semctl(semaphore, 0, IPC_RMID);
}

/* A filter of its own that allows everything: whoever has one is not made to do what it did not
 * ask for, so the kernel itself waits. */
static void take_filter(void)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog program = {1, &allow};

    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    lock_path = argv[1];
    if (argc > 2)
        take_filter();
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        for (disturbance way = HANDLED; way < WAYS; way++)
            disturb(i, way);
    return 0;
}
