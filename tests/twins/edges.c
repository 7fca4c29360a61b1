/* Who lets whom go on: one act for each way in which threads and processes wait for each other.
 * What matters is the record, in which the edges must name the right ones
 * (tests/observe/test_edges.py); children and threads are numbered in the order of their births.
 * Sleeps decide who comes when, and cost nothing. Run as "twins_edges NAME", or "twins_edges all".
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"

static int id; /* of what the act is about: a set, a queue, a descriptor */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static void child(void (*part)(void))
{
    if (fork() == 0) {
        part();
        _exit(0);
    }
}

static int all_ended(void)
{
    int status, bad = 0;

    while (wait(&status) > 0)
        bad |= status;
    return bad ? 1 : 0;
}

static pthread_t thread(void (*part)(void))
{
    pthread_t t;

    pthread_create(&t, NULL, (void *(*)(void *))(void *)part, NULL);
    return t;
}

/* ---- semaphores ---- */

static int change(short by, short flags)
{
    struct sembuf op = {0, by, flags};

    return semop(id, &op, 1);
}

static void takes(void)
{
    change(-1, 0);
}

static void gives_late(void)
{
    pause_ms(10);
    change(1, 0);
}

static int semaphore(void)
{
    id = semget(IPC_PRIVATE, 1, 0600);
    child(takes);
    child(gives_late);
    return all_ended() | semctl(id, 0, IPC_RMID);
}

static void waits_for_zero(void)
{
    change(0, 0);
}

static void takes_late(void)
{
    pause_ms(10);
    change(-1, 0);
}

static int semaphore_zero(void)
{
    id = semget(IPC_PRIVATE, 1, 0600);
    semctl(id, 0, SETVAL, 1);
    child(waits_for_zero);
    child(takes_late);
    return all_ended() | semctl(id, 0, IPC_RMID);
}

static void sets_all(void)
{
    unsigned short two[] = {3, 3};

    pause_ms(10);
    semctl(id, 0, SETALL, two);
}

static int semaphore_all(void)
{
    id = semget(IPC_PRIVATE, 2, 0600);
    child(takes);
    child(sets_all);
    return all_ended() | semctl(id, 0, IPC_RMID);
}

static void takes_and_ends(void)
{
    change(-1, SEM_UNDO);
    pause_ms(20);
}

/* The end of the first gives back what it took. */
static int semaphore_undo(void)
{
    id = semget(IPC_PRIVATE, 1, 0600);
    change(1, 0);
    child(takes_and_ends);
    child(takes_late);
    return all_ended() | semctl(id, 0, IPC_RMID);
}

static void removes_late(void)
{
    pause_ms(10);
    semctl(id, 0, IPC_RMID);
}

static int removed(void)
{
    id = semget(IPC_PRIVATE, 1, 0600);
    child(takes);
    child(removes_late);
    return all_ended();
}

/* ---- messages ---- */

static int send_type(long type)
{
    struct {
        long type;
        char text[4];
    } m = {type, "abc"};

    return msgsnd(id, &m, sizeof m.text, 0);
}

static void sends_one(void)
{
    send_type(1);
}

static void sends_two(void)
{
    pause_ms(5);
    send_type(2);
}

static void sends_three(void)
{
    pause_ms(10);
    send_type(1);
}

/* The second before the first, then in the order in which they came. */
static int message(void)
{
    const long order[] = {2, 1, 0};
    struct {
        long type;
        char text[4];
    } m;

    id = msgget(IPC_PRIVATE, 0600);
    child(sends_one);
    child(sends_two);
    child(sends_three);
    for (int i = 0; i < 3; i++)
        msgrcv(id, &m, sizeof m.text, order[i], 0);
    return all_ended() | msgctl(id, IPC_RMID, NULL);
}

static void posts_low(void)
{
    mq_send(id, "low", 4, 1);
}

static void posts_high(void)
{
    pause_ms(5);
    mq_send(id, "high", 5, 7);
}

static int queue(void)
{
    struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 16};
    char text[16];

    id = mq_open("/edges", O_RDWR | O_CREAT, 0600, &a);
    child(posts_low);
    child(posts_high);
    pause_ms(10);
    mq_receive(id, text, sizeof text, NULL);
    mq_receive(id, text, sizeof text, NULL);
    mq_unlink("/edges");
    return all_ended() | close(id);
}

/* ---- descriptors ---- */

static int other;

static void counts(void)
{
    eventfd_write(id, 1);
}

static void counts_late(void)
{
    pause_ms(5);
    eventfd_write(id, 1);
}

static void counts_elsewhere(void)
{
    eventfd_write(other, 1);
}

/* One by one; what another one holds is nobody's business here. */
static int numbers(void)
{
    pthread_t t[3];
    eventfd_t v;

    id = eventfd(0, EFD_SEMAPHORE);
    other = eventfd(0, 0);
    t[0] = thread(counts_elsewhere);
    t[1] = thread(counts);
    t[2] = thread(counts_late);
    eventfd_read(id, &v);
    eventfd_read(id, &v);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}

/* ---- signals ---- */

static void kills(void)
{
    pause_ms(10);
    kill(getppid(), SIGUSR1);
}

static void kills_by_thread(void)
{
    pthread_join(thread(kills), NULL);
}

static sigset_t block(void)
{
    sigset_t s;

    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    sigprocmask(SIG_BLOCK, &s, NULL);
    return s;
}

static int signal_read(void)
{
    sigset_t s = block();
    struct signalfd_siginfo info;

    id = signalfd(-1, &s, 0);
    child(kills_by_thread);
    if (read(id, &info, sizeof info) != sizeof info)
        return 1;
    return all_ended() | close(id);
}

static int signal_waited(void)
{
    sigset_t s = block();
    siginfo_t info;

    child(kills_by_thread);
    return sigwaitinfo(&s, &info) != SIGUSR1 || all_ended();
}

/* ---- locks ---- */

static char lock_name[64];

static const char *place(void)
{
    return lock_name;
}

static void holds_until_its_end(void)
{
    flock(open(place(), O_RDWR | O_CREAT, 0600), LOCK_EX);
    pause_ms(20);
}

static void shares(void)
{
    flock(open(place(), O_RDWR | O_CREAT, 0600), LOCK_SH);
    pause_ms(20);
}

static void wants_it_alone(void)
{
    pause_ms(10);
    flock(open(place(), O_RDWR | O_CREAT, 0600), LOCK_EX);
}

static int lock_end(void)
{
    child(holds_until_its_end);
    child(wants_it_alone);
    return all_ended() | unlink(place());
}

static int lock_shared(void)
{
    child(shares);
    child(shares);
    child(wants_it_alone);
    return all_ended() | unlink(place());
}

static void range(short type, short whence, long from, long len)
{
    struct flock f = {.l_type = type, .l_whence = whence, .l_start = from, .l_len = len};

    fcntl(id, F_SETLKW, &f);
}

static void has_first(void)
{
    range(F_WRLCK, SEEK_SET, 0, 10);
    pause_ms(20);
}

static void has_second(void)
{
    range(F_WRLCK, SEEK_CUR, 20, -10);
    pause_ms(20);
}

static void wants_first(void)
{
    pause_ms(10);
    range(F_WRLCK, SEEK_SET, 5, 2);
}

/* Behind its end first, where nobody was. */
static void wants_all(void)
{
    pause_ms(15);
    range(F_RDLCK, SEEK_END, 0, 0);
    range(F_RDLCK, SEEK_SET, 0, 0);
}

static int lock_range(void)
{
    id = open(place(), O_RDWR | O_CREAT, 0600);
    if (ftruncate(id, 100) != 0)
        return 1;
    child(has_first);
    child(has_second);
    child(wants_first);
    child(wants_all);
    return all_ended() | unlink(place()) | close(id);
}

static void gives_back(void)
{
    range(F_UNLCK, SEEK_SET, 0, 0);
}

/* Who gave it back is another one than who had it. */
static int lock_given_back(void)
{
    id = open(place(), O_RDWR | O_CREAT, 0600);
    range(F_WRLCK, SEEK_SET, 0, 0);
    child(wants_first);
    pause_ms(20);
    pthread_join(thread(gives_back), NULL);
    return all_ended() | unlink(place()) | close(id);
}

/* ---- conditions ---- */

static pthread_mutex_t mutex;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ready;

static void waits(void)
{
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void signals(void)
{
    pause_ms(10);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_mutex_unlock(&mutex);
    pthread_cond_signal(&changed);
}

static void tells_all(void)
{
    pause_ms(10);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_mutex_unlock(&mutex);
    pthread_cond_broadcast(&changed);
}

static int meet(int protocol, void (*tells)(void), int waiters)
{
    pthread_mutexattr_t a;
    pthread_t t[4];
    int n = 0;

    ready = 0;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutex_init(&mutex, &a);
    while (n < waiters)
        t[n++] = thread(waits);
    t[n++] = thread(tells);
    while (n > 0)
        pthread_join(t[--n], NULL);
    return 0;
}

static int condition(void)
{
    return meet(PTHREAD_PRIO_NONE, signals, 1);
}

static int condition_all(void)
{
    return meet(PTHREAD_PRIO_NONE, tells_all, 3);
}

static int condition_pi(void)
{
    return meet(PTHREAD_PRIO_INHERIT, signals, 1);
}

static void wants_mutex(void)
{
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void lets_mutex_go(void)
{
    pthread_mutex_lock(&mutex);
    pause_ms(10);
    pthread_mutex_unlock(&mutex);
}

static int mutex_pi(void)
{
    pthread_mutexattr_t a;
    pthread_t t[2];

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&mutex, &a);
    t[0] = thread(lets_mutex_go);
    pause_ms(5);
    t[1] = thread(wants_mutex);
    return pthread_join(t[0], NULL) | pthread_join(t[1], NULL);
}

/* ---- words that one is moved to ---- */

static atomic_int first, second, owned;

static long futex(atomic_int *word, int op, int value, long more, atomic_int *to, int expected)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, more, to, expected);
}

static void waits_on_first(void)
{
    futex(&first, FUTEX_WAIT, 0, 0, NULL, 0);
}

static void moves(void)
{
    pause_ms(10);
    futex(&first, FUTEX_CMP_REQUEUE, 0, INT_MAX, &second, 0);
}

static void wakes(void)
{
    pause_ms(20);
    futex(&second, FUTEX_WAKE, 1, 0, NULL, 0);
}

static int requeue(void)
{
    pthread_t t[3] = {thread(waits_on_first), thread(moves), thread(wakes)};

    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static atomic_int had;

static void waits_to_own(void)
{
    if (futex(&first, FUTEX_WAIT_REQUEUE_PI, 0, 0, &owned, 0) == 0)
        had += (owned & FUTEX_TID_MASK) == (int)gettid();
    futex(&owned, FUTEX_UNLOCK_PI, 0, 0, NULL, 0);
}

/* Nobody has the word: the first gets it, and hands it on. */
static void moves_to_own(void)
{
    pause_ms(10);
    futex(&first, FUTEX_CMP_REQUEUE_PI, 1, INT_MAX, &owned, 0);
}

static int requeue_pi(void)
{
    pthread_t t[3] = {thread(waits_to_own), thread(waits_to_own), thread(moves_to_own)};

    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("%d had it, %d\n", had, owned);
    return had != 2;
}

static int all(void);

static const act acts[] = {
    {"semaphore", semaphore},
    {"semaphore-zero", semaphore_zero},
    {"semaphore-all", semaphore_all},
    {"semaphore-undo", semaphore_undo},
    {"removed", removed},
    {"message", message},
    {"queue", queue},
    {"eventfd", numbers},
    {"signalfd", signal_read},
    {"sigwait", signal_waited},
    {"lock-end", lock_end},
    {"lock-shared", lock_shared},
    {"lock-range", lock_range},
    {"lock-given-back", lock_given_back},
    {"condition", condition},
    {"condition-all", condition_all},
    {"condition-pi", condition_pi},
    {"mutex-pi", mutex_pi},
    {"requeue", requeue},
    {"requeue-pi", requeue_pi},
    {"all", all},
};

enum { ACTS = sizeof acts / sizeof *acts };

/* Two at a time, so that there is something to be late for. */
static int all(void)
{
    int bad = 0;

    for (int i = 0; i + 1 < ACTS; i++) {
        fflush(stdout);
        snprintf(lock_name, sizeof lock_name, "edges.lock.%d", i);
        if (fork() == 0)
            exit(acts[i].run());
        if (i % 2)
            bad |= all_ended();
    }
    return bad | all_ended();
}

int main(int argc, char **argv)
{
    strcpy(lock_name, "edges.lock");
    return choose(acts, ACTS, argc, argv);
}
