/* Every kind of futex, and what its calls answer: the same lines natively, where the kernel
 * answers, and in a world, where the observer does. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t word, other;
static int order[8], woken;

static long futex(uint32_t *at, int op, uint32_t value, const void *fourth, uint32_t *second,
                  uint32_t sixth)
{
    long r = syscall(SYS_futex, at, op, value, fourth, second, sixth);

    return r < 0 ? -errno : r;
}

/* ---- who waits, and in which order they are woken ---- */

static void *waits(void *me)
{
    long r = futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 1U << (long)me);

    order[__atomic_fetch_add(&woken, 1, __ATOMIC_SEQ_CST)] = (int)(r == 0 ? (long)me : r);
    return NULL;
}

/* Natively this is a guess, and long enough on a machine that is not too busy; in a world it is
 * exact. */
static void settle(void)
{
    usleep(60000);
}

static void start(pthread_t *all, int count)
{
    woken = 0;
    for (long i = 0; i < count; i++) {
        pthread_create(&all[i], NULL, waits, (void *)i);
        settle();
    }
}

static void finish(pthread_t *all, int count, const char *title)
{
    for (int i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    printf("%s:", title);
    for (int i = 0; i < count; i++)
        printf(" %d", order[i]);
    printf("\n");
}

static void wakes(void)
{
    pthread_t all[4];

    start(all, 4);
    for (int i = 0; i < 4; i++) {
        printf("woke %ld\n", futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
        settle();
    }
    finish(all, 4, "in order");
    start(all, 4);
    printf("woke %ld\n", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, 1 << 2));
    settle();
    printf("woke %ld\n", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, 1 << 2));
    printf("no bits %ld\n", futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0));
    printf("moved %ld\n",
           futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)(uintptr_t)1, &other, 0));
    printf("other value %ld\n", futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, NULL, &other, 7));
    settle();
    printf("there %ld\n", futex(&other, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0));
    settle();
    printf("here %ld\n", futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0));
    finish(all, 4, "by bits and places");
}

/* FUTEX_WAKE_OP: every operation and comparison, with one waiter at the second word. */
static void *waits_there(void *me)
{
    *(long *)me = futex(&other, FUTEX_WAIT_PRIVATE, 5, NULL, NULL, 0);
    return NULL;
}

static void operations(void)
{
    for (int op = FUTEX_OP_SET; op <= FUTEX_OP_XOR; op++)
        for (int cmp = FUTEX_OP_CMP_EQ; cmp <= FUTEX_OP_CMP_GE; cmp++)
            for (int than = 4; than <= 6; than++) {
                other = 5;
                printf("%ld", futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)(uintptr_t)1, &other,
                                    (uint32_t)FUTEX_OP(op, 3, cmp, than)));
                printf(":%u ", other);
            }
    printf("\n");
    for (int cmp = FUTEX_OP_CMP_EQ; cmp <= FUTEX_OP_CMP_GE; cmp++) {
        pthread_t t;
        long r;

        other = 5;
        pthread_create(&t, NULL, waits_there, &r);
        settle();
        printf("%ld ", futex(&word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)(uintptr_t)1, &other,
                             (uint32_t)FUTEX_OP(FUTEX_OP_ADD, 1, cmp, 4)));
        futex(&other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        pthread_join(t, NULL);
    }
    printf("\n");
}

static void times(void)
{
    struct timespec past = {1, 0}, brief = {0, 1000000}, wrong = {0, 1000000000};

    word = 0;
    printf("%ld", futex(&word, FUTEX_WAIT_PRIVATE, 0, &brief, NULL, 0));
    printf(" %ld", futex(&word, FUTEX_WAIT_BITSET_PRIVATE, 0, &past, NULL, ~0U));
    printf(" %ld",
           futex(&word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &past, NULL, ~0U));
    printf(" %ld", futex(&word, FUTEX_WAIT_PRIVATE, 0, &wrong, NULL, 0));
    printf(" %ld", futex(&word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
    printf(" %ld\n",
           futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT_PRIVATE, 0, &brief, NULL, 0));
}

/* ---- between processes ---- */

static void shared(void)
{
    uint32_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint32_t *again;
    int status;
    pid_t child;

    child = fork();
    if (child == 0)
        _exit(futex(page, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ? 7 : 1);
    again = mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED,
                   mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    settle();
    printf("private %ld\n", futex(again, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    printf("shared %ld\n", futex(again, FUTEX_WAKE, 1, NULL, NULL, 0));
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
}

/* ---- words that have an owner ---- */

static pthread_mutex_t mutex;

static void *dies_with_it(void *me)
{
    pthread_mutex_lock(&mutex);
    usleep(200000);
    return me;
}

static void *inherits(void *me)
{
    int r = pthread_mutex_lock(&mutex);

    order[__atomic_fetch_add(&woken, 1, __ATOMIC_SEQ_CST)] = r;
    if (r == EOWNERDEAD)
        pthread_mutex_consistent(&mutex);
    pthread_mutex_unlock(&mutex);
    return me;
}

static void orphans(int protocol)
{
    pthread_mutexattr_t a;
    pthread_t owner, heirs[3];

    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setprotocol(&a, protocol);
    pthread_mutex_init(&mutex, &a);
    woken = 0;
    pthread_create(&owner, NULL, dies_with_it, NULL);
    settle();
    for (int i = 0; i < 3; i++)
        pthread_create(&heirs[i], NULL, inherits, NULL);
    pthread_join(owner, NULL);
    finish(heirs, 3, protocol == PTHREAD_PRIO_INHERIT ? "heirs" : "robust");
    printf("then %d\n", pthread_mutex_trylock(&mutex));
}

static uint32_t owned;

static void *owns(void *me)
{
    futex(&owned, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    usleep(200000);
    return me;
}

/* Not robust: the kernel hands it on all the same, to one who waits. */
static void *wants(void *me)
{
    long r = futex(&owned, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);

    order[__atomic_fetch_add(&woken, 1, __ATOMIC_SEQ_CST)] = (int)r;
    printf("mine %d died %d\n", (owned & FUTEX_TID_MASK) == (uint32_t)gettid(),
           (owned & FUTEX_OWNER_DIED) != 0);
    printf("unlock %ld\n", futex(&owned, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    return me;
}

static void inheritance(void)
{
    pthread_t owner, heir;
    struct timespec past = {1, 0};

    woken = 0;
    owned = 0;
    pthread_create(&owner, NULL, owns, NULL);
    settle();
    printf("try %ld", futex(&owned, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    printf(" timed %ld", futex(&owned, FUTEX_LOCK_PI_PRIVATE, 0, &past, NULL, 0));
    printf(" not mine %ld\n", futex(&owned, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    pthread_create(&heir, NULL, wants, NULL);
    settle();
    pthread_join(owner, NULL);
    finish(&heir, 1, "handed on");
    owned = 0;
    printf("%ld", futex(&owned, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    printf(" twice %ld", futex(&owned, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    printf(" %ld\n", futex(&owned, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    wakes();
    operations();
    times();
    shared();
    orphans(PTHREAD_PRIO_NONE);
    orphans(PTHREAD_PRIO_INHERIT);
    inheritance();
    return 0;
}
