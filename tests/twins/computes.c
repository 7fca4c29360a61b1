/* Threads that compute without a call while others wait for them, or they for others, in ways that
 * no proof of spinning covers: they count meanwhile. Run as "twins_computes NAME". */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "choose.h"

static volatile int go, turn;
static int trapped;
static volatile long n, sum[2];
static sigjmp_buf back;

static pthread_t start(void *(*f)(void *), void *arg)
{
    pthread_t t;

    if (pthread_create(&t, NULL, f, arg) != 0)
        exit(1);
    return t;
}

static void *release(void *arg)
{
    go = 1;
    return arg;
}

static void waits(void)
{
    while (!go)
        n++;
}

static int waits_for_a_flag(void)
{
    pthread_t t = start(release, NULL);

    waits();
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

/* The other one needs many turns of its own. */
static void *works_long(void *arg)
{
    for (int i = 0; i < 1500; i++)
        getppid();
    go = 1;
    return arg;
}

static int waits_for_many_turns(void)
{
    pthread_t t = start(works_long, NULL);

    waits();
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

static void *sleeps(void *arg)
{
    for (int i = 0; i < 5; i++)
        nanosleep(&(struct timespec){0, 3000000}, NULL);
    go = 1;
    return arg;
}

static int waits_for_a_sleeper(void)
{
    pthread_t t = start(sleeps, NULL);

    waits();
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

static void rings(int sig)
{
    (void)sig;
    go = go + (turn = turn + 1) / 3;
}

static int waits_for_alarms(void)
{
    struct itimerval every = {{0, 2000}, {0, 2000}};

    signal(SIGALRM, rings);
    setitimer(ITIMER_REAL, &every, NULL);
    waits();
    printf("%ld %d\n", n, turn);
    return 0;
}

/* Two that hand a ball to each other, and count how long it takes. */
static void *plays(void *arg)
{
    int me = arg != NULL;

    for (int i = 0; i < 8; i++) {
        while (turn != me)
            sum[me]++;
        turn = !me;
    }
    return NULL;
}

static int two_play(void)
{
    pthread_t t = start(plays, &trapped);

    plays(NULL);
    pthread_join(t, NULL);
    printf("%ld %ld\n", sum[0], sum[1]);
    return 0;
}

/* Work that looks at what the other has done by then, and does not end before that has begun. */
static void *adds(void *arg)
{
    int me = arg != NULL;
    long seen = 0;

    for (long i = 0; i < 20000000 || !sum[!me]; i++) {
        sum[me] += i + 1;
        if (i % 1000 == 0)
            seen = seen * 31 + sum[!me];
    }
    printf("%d %ld %ld\n", me, sum[me], seen);
    return NULL;
}

static int two_add(void)
{
    pthread_t t = start(adds, &trapped);

    adds(NULL);
    pthread_join(t, NULL);
    return 0;
}

/* Nearly all of the time is in one instruction, which the processor leaves and takes up again. */
static int copies(void)
{
    enum { BYTES = 1 << 16 };
    static char from[BYTES], to[BYTES];
    pthread_t t = start(release, NULL);

    while (!go) {
        const char *s = from;
        char *d = to;
        size_t len = BYTES;

        __asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(len) : : "memory");
        n++;
    }
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

/* ---- against the breakpoint ---- */

static void traps(int sig)
{
    trapped += sig == SIGTRAP;
}

static void show_trap(void)
{
    struct sigaction sa;
    sigset_t set;

    sigaction(SIGTRAP, NULL, &sa);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    printf("%ld blocked %d ignored %d default %d trapped %d\n", n, sigismember(&set, SIGTRAP),
           sa.sa_handler == SIG_IGN, sa.sa_handler == SIG_DFL, trapped);
}

static int blocks_the_trap(void)
{
    pthread_t t;
    sigset_t set;

    signal(SIGTRAP, traps);
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    t = start(release, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    waits();
    pthread_join(t, NULL);
    show_trap();
    return 0;
}

static int ignores_the_trap(void)
{
    pthread_t t = start(release, NULL);

    signal(SIGTRAP, SIG_IGN);
    waits();
    pthread_join(t, NULL);
    show_trap();
    return 0;
}

static int has_traps_of_its_own(void)
{
    pthread_t t = start(release, NULL);

    signal(SIGTRAP, traps);
    __asm__ volatile("int3");
    waits();
    __asm__ volatile("int3");
    pthread_join(t, NULL);
    show_trap();
    return 0;
}

/* No proven spin either, but for the same trap: what it knows of the signal stays. */
static int spins_and_blocks_the_trap(void)
{
    pthread_t t;
    sigset_t set;

    signal(SIGTRAP, traps);
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    t = start(release, NULL);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    while (!go)
        ;
    pthread_join(t, NULL);
    show_trap();
    return 0;
}

static unsigned char *code_of(size_t bytes)
{
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Code that writes over itself wherever it goes: no breakpoint in memory would last. */
static int changes_its_code(void)
{
    pthread_t t = start(release, NULL);
    unsigned char *code = code_of(4096);

    while (code && !go) {
        memset(code, 0x90, 64);
        code[n % 63] = 0xc3; /* ret */
        ((void (*)(void))(void *)code)();
        memset(code, 0xc3, 64);
        n++;
    }
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

/* So much code that it comes to no place often. */
static int comes_nowhere_twice(void)
{
    enum { BYTES = 256 << 20 };
    unsigned char *code = code_of(BYTES);
    pthread_t t;

    if (!code)
        return 1;
    for (size_t i = 0; i < BYTES; i += 8)
        memcpy(code + i, "\x0f\x1f\x84\x00\x00\x00\x00\x00", 8); /* a long nop */
    code[BYTES - 1] = 0xc3;
    memset(code + BYTES - 8, 0x90, 7);
    t = start(release, NULL);
    while (!go) {
        ((void (*)(void))(void *)code)();
        n++;
    }
    pthread_join(t, NULL);
    printf("over %d\n", n > 0);
    return 0;
}

static void jumps_back(int sig)
{
    (void)sig;
    siglongjmp(back, 1);
}

/* The registers of a breakpoint are not for programs to read. */
static int reads_the_registers(void)
{
    volatile unsigned long at = 0, told = 0;
    pthread_t t = start(release, NULL);

    signal(SIGSEGV, jumps_back);
    waits();
    if (sigsetjmp(back, 1) == 0) {
        unsigned long value;

        __asm__ volatile("mov %%dr0, %0" : "=r"(value));
        at = value;
        told = 1;
    }
    pthread_join(t, NULL);
    printf("%ld %lu %lu\n", n, at, told);
    return 0;
}

static int reads_the_counter(void)
{
    pthread_t t = start(release, NULL);

    while (!go)
        sum[0] += (long)(__rdtsc() & 1), n++;
    pthread_join(t, NULL);
    printf("%ld\n", n);
    return 0;
}

static const act acts[] = {
    {"flag", waits_for_a_flag},
    {"turns", waits_for_many_turns},
    {"sleeper", waits_for_a_sleeper},
    {"alarms", waits_for_alarms},
    {"ball", two_play},
    {"adds", two_add},
    {"copies", copies},
    {"blocks", blocks_the_trap},
    {"ignores", ignores_the_trap},
    {"traps", has_traps_of_its_own},
    {"spins", spins_and_blocks_the_trap},
    {"changes", changes_its_code},
    {"nowhere", comes_nowhere_twice},
    {"registers", reads_the_registers},
    {"counter", reads_the_counter},
};

int main(int argc, char **argv)
{
    return choose(acts, sizeof acts / sizeof *acts, argc, argv);
}
