/* What few programs do, done on purpose: spinning, timers of every kind, locks that the kernel
 * knows of, programs started by a thread that is not the first. Each act prints what it saw, so
 * that a schedule that was not the same shows in the output as well. Run as "twins_acts NAME". */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"

enum { THREADS = 3 };

static void *signalled(void *me);

static atomic_int flag, turn, order[64], order_count;
static volatile int plain;
static atomic_flag held = ATOMIC_FLAG_INIT;
static long counter;

static void *together(void *(*f)(void *), int count)
{
    pthread_t t[THREADS];

    for (int i = 0; i < count; i++)
        pthread_create(&t[i], NULL, f, (void *)(long)i);
    for (int i = 0; i < count; i++)
        pthread_join(t[i], NULL);
    return NULL;
}

static void seen(int what)
{
    order[atomic_fetch_add(&order_count, 1) % 64] = what;
}

static void say(void)
{
    for (int i = 0; i < order_count && i < 64; i++)
        printf("%d ", order[i]);
    printf("counter %ld\n", counter);
}

/* ---- spinning ---- */

/* One waits without a call for what the other one writes. */
static void *spinner(void *me)
{
    if ((long)me == 0) {
        while (!plain)
            continue;
        seen(1);
    } else {
        getppid();
        seen(2);
        plain = 1;
    }
    return NULL;
}

static int spin(void)
{
    together(spinner, 2);
    say();
    return 0;
}

/* A lock that nobody waits for in the kernel; its holder makes calls. */
static void *spin_locker(void *me)
{
    for (int i = 0; i < 12; i++) {
        while (atomic_flag_test_and_set(&held))
            continue;
        for (int k = 0; k < 30; k++)
            counter += getppid() > 0;
        seen((int)(long)me);
        atomic_flag_clear(&held);
    }
    return NULL;
}

static int spin_lock(void)
{
    together(spin_locker, THREADS);
    say();
    return 0;
}

/* Handed round: each waits for its number. */
static void *rounder(void *me)
{
    for (int i = 0; i < 5; i++) {
        while (atomic_load(&turn) % THREADS != (long)me)
            __builtin_ia32_pause();
        seen((int)(long)me);
        atomic_fetch_add(&turn, 1);
    }
    return NULL;
}

static int spin_atomic(void)
{
    together(rounder, THREADS);
    say();
    return 0;
}

/* Spins in two processes on one page. */
static int shm_spin(void)
{
    atomic_int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();

    for (int i = 0; i < 5; i++) {
        while (atomic_load(p) % 2 != (child == 0))
            continue;
        atomic_fetch_add(p, 1);
    }
    if (child == 0)
        _exit(atomic_load(p) & 0x7f);
    wait(NULL);
    printf("%d\n", atomic_load(p));
    return 0;
}

/* The one that it waits for sleeps: time must go on. */
static void *sleeper(void *me)
{
    struct timespec s = {1, 0};

    nanosleep(&s, NULL);
    plain = 1;
    return me;
}

static int spin_for_sleeper(void)
{
    pthread_t t;

    pthread_create(&t, NULL, sleeper, NULL);
    while (!plain)
        continue;
    pthread_join(t, NULL);
    puts("saw it");
    return 0;
}

/* Comes to no state twice, and ends only with the world. */
static int leader_computes(void)
{
    static volatile long n;
    pthread_t t;
    int p[2];
    char c;

    if (pipe(p) != 0)
        return 1;
    if (fork() == 0) {
        pthread_create(&t, NULL, signalled, NULL);
        while (n >= 0)
            n++;
    }
    return read(p[0], &c, 1) == 1;
}

static void *pauser(void *me)
{
    pause();
    return me;
}

static int spins_for_nothing(void)
{
    pthread_t t;

    pthread_create(&t, NULL, pauser, NULL);
    while (plain >= 0)
        continue;
    return 0;
}

/* ---- timers ---- */

static volatile sig_atomic_t rang, who[64];

static void on_ring(int sig, siginfo_t *s, void *context)
{
    (void)context;
    if (rang < 64)
        who[rang] = sig * 100 + (s->si_code == SI_TIMER ? s->si_value.sival_int : 0);
    rang++;
}

static void listen_for(int sig)
{
    struct sigaction sa = {.sa_sigaction = on_ring, .sa_flags = SA_SIGINFO | SA_RESTART};

    sigaction(sig, &sa, NULL);
}

static void say_rings(void)
{
    for (int i = 0; i < rang && i < 64; i++)
        printf("%d ", (int)who[i]);
    printf("rang %d\n", (int)rang);
}

static int timers(void)
{
    struct itimerval v = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};

    listen_for(SIGALRM);
    setitimer(ITIMER_REAL, &v, NULL);
    while (rang < 5)
        getppid();
    while (rang < 10)
        pause();
    setitimer(ITIMER_REAL, &off, NULL);
    alarm(2);
    printf("slept, left %u\n", sleep(10));
    say_rings();
    return 0;
}

static int spin_for_alarm(void)
{
    listen_for(SIGALRM);
    alarm(3);
    while (!rang)
        continue;
    say_rings();
    return 0;
}

static int posix_timers(void)
{
    timer_t t[2];

    for (int i = 0; i < 2; i++) {
        struct sigevent e = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGRTMIN + i,
                             .sigev_value = {.sival_int = 7 + i}};
        struct itimerspec s = {{0, 3000000 + i * 1000000}, {0, 3000000}};

        listen_for(SIGRTMIN + i);
        timer_create(CLOCK_MONOTONIC, &e, &t[i]);
        timer_settime(t[i], 0, &s, NULL);
    }
    while (rang < 20)
        usleep(5000);
    say_rings();
    return 0;
}

static int timer_descriptor(void)
{
    struct itimerspec s = {{0, 2000000}, {0, 2000000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t n, all = 0;

    timerfd_settime(fd, 0, &s, NULL);
    while (all < 10) {
        for (int i = 0; i < 20; i++)
            getppid();
        if (read(fd, &n, sizeof n) == sizeof n) {
            all += n;
            printf("%d ", (int)n);
        }
    }
    printf("%d\n", (int)all);
    return 0;
}

/* ---- locks and messages ---- */

static int sysv(void)
{
    int shm = shmget(IPC_PRIVATE, 4096, 0600), sem = semget(IPC_PRIVATE, 1, 0600),
        q = msgget(IPC_PRIVATE, 0600);
    struct sembuf down = {0, -1, 0}, up = {0, 1, 0};
    struct {
        long type;
        int value;
    } m = {1, 0};
    int *page = shmat(shm, NULL, 0);

    semop(sem, &up, 1);
    for (int i = 0; i < THREADS; i++)
        if (fork() == 0) {
            for (int k = 0; k < 20; k++) {
                semop(sem, &down, 1);
                *page = *page * 3 + i;
                semop(sem, &up, 1);
            }
            m.value = i;
            msgsnd(q, &m, sizeof m.value, 0);
            _exit(0);
        }
    for (int i = 0; i < THREADS; i++) {
        msgrcv(q, &m, sizeof m.value, 0, 0);
        printf("%d ", m.value);
    }
    while (wait(NULL) > 0)
        continue;
    printf("%d\n", *page);
    shmctl(shm, IPC_RMID, NULL), semctl(sem, 0, IPC_RMID), msgctl(q, IPC_RMID, NULL);
    return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *mutexer(void *me)
{
    for (int i = 0; i < 20; i++) {
        int r = pthread_mutex_lock(&mutex);

        if (r == EOWNERDEAD)
            pthread_mutex_consistent(&mutex);
        for (int k = 0; k < 5; k++)
            counter += getppid() > 0;
        if (i % 5 == 0)
            seen((int)(long)me + (r ? 100 : 0));
        if (i == 7)
            sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static int inherit(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &a);
    together(mutexer, THREADS);
    say();
    return 0;
}

static void *dies_with_it(void *me)
{
    (void)me;
    pthread_mutex_lock(&mutex);
    seen(9);
    return NULL;
}

static int robust(void)
{
    pthread_mutexattr_t a;

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &a);
    together(dies_with_it, 1);
    together(mutexer, THREADS);
    say();
    return 0;
}

static void *conditioned(void *me)
{
    pthread_mutex_lock(&mutex);
    while (turn % THREADS != (long)me)
        pthread_cond_wait(&condition, &mutex);
    seen((int)(long)me);
    turn++;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int condvar(void)
{
    struct timespec t;

    together(conditioned, THREADS);
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 5;
    pthread_mutex_lock(&mutex);
    seen(pthread_cond_timedwait(&condition, &mutex, &t));
    say();
    return 0;
}

static void *barriered(void *me)
{
    for (int i = 0; i < 4; i++) {
        for (long k = 0; k < 10 * ((long)me + 1); k++)
            getppid();
        if (pthread_barrier_wait(&barrier))
            seen((int)(long)me);
    }
    return NULL;
}

static int barriers(void)
{
    pthread_barrier_init(&barrier, NULL, THREADS);
    together(barriered, THREADS);
    say();
    return 0;
}

static void *reader_writer(void *me)
{
    for (int i = 0; i < 10; i++) {
        if (i % 4 == (long)me) {
            pthread_rwlock_wrlock(&rwlock);
            seen((int)(long)me);
            getppid();
        } else {
            pthread_rwlock_rdlock(&rwlock);
            counter++;
        }
        sched_yield();
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

static int rwlocks(void)
{
    together(reader_writer, THREADS);
    say();
    return 0;
}

static int event_fd;

static void *eventful(void *me)
{
    uint64_t n = 1;

    for (int i = 0; i < 5; i++)
        if ((long)me == 0) {
            if (read(event_fd, &n, sizeof n) == sizeof n)
                seen((int)n);
        } else if (write(event_fd, &n, sizeof n) != sizeof n) {
            seen(-1);
        }
    return NULL;
}

static int eventfds(void)
{
    event_fd = eventfd(0, EFD_SEMAPHORE);
    together(eventful, 2);
    say();
    return 0;
}

/* ---- signals ---- */

static int signal_descriptor(void)
{
    struct signalfd_siginfo s;
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, 0);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            kill(getppid(), i ? SIGUSR1 : SIGUSR2);
            _exit(i);
        }
    for (int i = 0; i < 3; i++)
        if (read(fd, &s, sizeof s) == sizeof s)
            printf("%u from %u\n", s.ssi_signo, s.ssi_pid);
    while (wait(NULL) > 0)
        continue;
    return 0;
}

static void *signalled(void *me)
{
    (void)me;
    while (!atomic_load(&flag))
        usleep(1000);
    return NULL;
}

static int queue_signals(void)
{
    pthread_t t;

    listen_for(SIGRTMIN);
    listen_for(SIGUSR1);
    pthread_create(&t, NULL, signalled, NULL);
    for (int i = 0; i < 5; i++) {
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
        pthread_kill(t, SIGUSR1);
        usleep(3000);
    }
    atomic_store(&flag, 1);
    pthread_join(t, NULL);
    say_rings();
    return 0;
}

/* ---- programs and processes ---- */

static void *executes(void *me)
{
    (void)me;
    usleep(1000);
    execl("/bin/echo", "echo", "from a thread", NULL);
    return NULL;
}

static int exec_thread(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, signalled, NULL);
    pthread_create(&t[1], NULL, executes, NULL);
    pthread_join(t[1], NULL);
    return 1;
}

static int vforks(void)
{
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();

        if (child == 0) {
            execl("/bin/true", "true", NULL);
            _exit(1);
        }
        printf("%d\n", waitpid(child, NULL, 0) == child);
    }
    return 0;
}

static int vfork_stopped(void)
{
    if (vfork() == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    return 0;
}

/* Two processes want each other's lock: the second is told. */
static int lock_circle(void)
{
    int fd = open("circle", O_CREAT | O_RDWR, 0600), p[2];
    struct flock first = {.l_type = F_WRLCK, .l_start = 0, .l_len = 1}, second = first;
    char c = 'x';
    pid_t child;
    int r;

    if (pipe(p) != 0)
        return 1;
    second.l_start = 1;
    fcntl(fd, F_SETLKW, &first);
    child = fork();
    if (child == 0) {
        fcntl(fd, F_SETLKW, &second);
        if (write(p[1], &c, 1) != 1)
            _exit(1);
        r = fcntl(fd, F_SETLKW, &first);
        _exit(r == 0 ? 0 : errno);
    }
    if (read(p[0], &c, 1) != 1)
        return 1;
    usleep(1000);
    r = fcntl(fd, F_SETLKW, &second);
    printf("%d %d\n", r, r ? errno : 0);
    close(fd);
    waitpid(child, &r, 0);
    printf("%d\n", WEXITSTATUS(r));
    return 0;
}

static int bad_masks(void)
{
    unsigned long set = 1, pair[2] = {8, 8}, short_pair[2] = {(unsigned long)&set, 4};
    const struct {
        long nr, a[6];
    } calls[] = {{SYS_select, {1, 8}},
                 {SYS_select, {0, 0, 0, 0, 8}},
                 {SYS_pselect6, {0, 0, 0, 0, 0, 8}},
                 {SYS_pselect6, {0, 0, 0, 0, 0, (long)pair}},
                 {SYS_pselect6, {0, 0, 0, 0, 0, (long)short_pair}},
                 {SYS_ppoll, {0, 0, 0, 8, 8}},
                 {SYS_ppoll, {0, 0, 0, (long)&set, 4}},
                 {SYS_ppoll, {0, 0, 8}}};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const long *a = calls[i].a;

        errno = 0;
        printf("%ld ", syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]));
        printf("%d\n", errno);
    }
    return 0;
}

static int message_queue(void)
{
    struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 8};
    mqd_t q = mq_open("/twins", O_CREAT | O_RDWR, 0600, &a);
    char text[8] = {0};
    unsigned priority;

    if (q < 0)
        return 1;
    if (fork() == 0) {
        for (unsigned i = 0; i < 10; i++) {
            text[0] = (char)('a' + i);
            mq_send(q, text, 8, i % 3);
        }
        _exit(0);
    }
    for (int i = 0; i < 10; i++)
        if (mq_receive(q, text, 8, &priority) > 0)
            printf("%c%u ", text[0], priority);
    wait(NULL);
    puts("");
    mq_unlink("/twins");
    return 0;
}

static int socket_pair(void)
{
    int s[2];
    char c = 'x', text[64];
    ssize_t n, all = 0;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
        return 1;
    if (fork() == 0) {
        close(s[0]);
        for (int i = 0; i < 40; i++) {
            if (write(s[1], &c, 1) != 1)
                _exit(1);
            if (i % 10 == 0)
                usleep(100);
        }
        _exit(0);
    }
    close(s[1]);
    while ((n = read(s[0], text, sizeof text)) > 0) {
        printf("%d ", (int)n);
        all += n;
    }
    wait(NULL);
    printf("%d\n", (int)all);
    return 0;
}

static const act acts[] = {{"spin", spin},
                           {"spin-lock", spin_lock},
                           {"spin-atomic", spin_atomic},
                           {"shm-spin", shm_spin},
                           {"spin-for-sleeper", spin_for_sleeper},
                           {"spin-for-alarm", spin_for_alarm},
                           {"leader-computes", leader_computes},
                           {"spins-for-nothing", spins_for_nothing},
                           {"vfork-stopped", vfork_stopped},
                           {"bad-masks", bad_masks},
                           {"lock-circle", lock_circle},
                           {"timers", timers},
                           {"posix-timers", posix_timers},
                           {"timerfd", timer_descriptor},
                           {"sysv", sysv},
                           {"pi", inherit},
                           {"robust", robust},
                           {"condvar", condvar},
                           {"barrier", barriers},
                           {"rwlock", rwlocks},
                           {"eventfd", eventfds},
                           {"signalfd", signal_descriptor},
                           {"sigqueue", queue_signals},
                           {"exec-thread", exec_thread},
                           {"vfork", vforks},
                           {"mqueue", message_queue},
                           {"socketpair", socket_pair}};

int main(int argc, char **argv)
{
    return choose(acts, sizeof acts / sizeof *acts, argc, argv);
}
