/* Ends that were open: pages of the kernel that are called without a call, timers that two
 * processes share, and how a process with threads ends. Run as "twins_ends NAME". */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- the old page ---- */

static sigjmp_buf out;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(out, 1);
}

/* What old programs called instead of the vDSO: the time, at the same address on every machine. */
static int vsyscall(void)
{
    int (*gettimeofday_at)(struct timeval *, void *) = (void *)0xffffffffff600000;
    time_t (*time_at)(time_t *) = (void *)0xffffffffff600400;
    long (*getcpu_at)(unsigned *, unsigned *, void *) = (void *)0xffffffffff600800;
    struct timeval before, now = {0}, after;
    unsigned cpu = 99, node = 99;
    time_t t;

    signal(SIGSEGV, on_fault);
    if (sigsetjmp(out, 1)) {
        puts("there is none");
        return 0;
    }
    gettimeofday(&before, NULL);
    pause_ms(1500);
    gettimeofday_at(&now, NULL);
    t = time_at(NULL);
    getcpu_at(&cpu, &node, NULL);
    pause_ms(1500);
    gettimeofday(&after, NULL);
    printf("%ld.%06ld %ld %u %u\n", (long)now.tv_sec, (long)now.tv_usec, (long)t, cpu, node);
    return !(timercmp(&before, &now, <) && timercmp(&now, &after, <) && t >= before.tv_sec &&
             t <= after.tv_sec);
}

/* ---- a timer of two ---- */

static long ms_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void arm(int fd, long ms, long again)
{
    struct itimerspec i = {{again / 1000, again % 1000 * 1000000},
                           {ms / 1000, ms % 1000 * 1000000}};

    timerfd_settime(fd, 0, &i, NULL);
}

static long waits(int fd)
{
    long from = ms_now();
    uint64_t n = 0;

    if (read(fd, &n, sizeof n) != sizeof n)
        return -1;
    return (ms_now() - from) / 10 * 10 + (long)n;
}

/* The child arms it sooner, and again and again; the parent stops it, and arms it once more. */
static int timer_shared(void)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, 0), status;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    long w[4];

    arm(fd, 100000, 0);
    if (fork() == 0) {
        pause_ms(50);
        arm(fd, 200, 0);
        pause_ms(1000);
        arm(fd, 30, 30);
        _exit(0);
    }
    w[0] = waits(fd);
    w[1] = waits(fd);
    wait(&status);
    w[2] = waits(fd);
    arm(fd, 0, 0);
    w[3] = poll(&p, 1, 500);
    arm(fd, 70, 0);
    printf("%ld %ld %ld %ld %ld\n", w[0], w[1], w[2], w[3], waits(fd));
    return w[0] != 251 || w[3] != 0;
}

/* ---- ends ---- */

static void *computes(void *arg)
{
    for (volatile unsigned i = 0; i < 100000; i++)
        continue;
    return arg;
}

static void *sleeps(void *arg)
{
    pause_ms(300);
    return arg;
}

static void *ends_all(void *arg)
{
    pause_ms(5);
    _exit((int)(long)arg);
}

static void *dies(void *arg)
{
    pause_ms(5);
    raise(SIGKILL);
    return arg;
}

static void *ends_late(void *arg)
{
    pause_ms(5);
    return arg;
}

/* How a child with three more threads ended. */
static int end_of(void *(*one)(void *), long arg, void (*leader)(void))
{
    int status;

    fflush(stdout);
    if (fork() == 0) {
        pthread_t t;

        pthread_create(&t, NULL, computes, NULL);
        pthread_create(&t, NULL, sleeps, NULL);
        pthread_create(&t, NULL, one, (void *)arg);
        leader();
        _exit(77);
    }
    wait(&status);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void leader_sleeps(void)
{
    pause_ms(100000);
}

static void leader_is_gone(void)
{
    pthread_exit(NULL);
}

static void leader_exits(void)
{
    pause_ms(2);
    exit(23);
}

static void leader_spins(void)
{
    for (;;)
        sched_yield();
}

static void leader_alone_is_gone(void)
{
    syscall(SYS_exit, 9);
}

/* By a thread, by the leader, by a signal; whoever is asleep, computes or gone already. The last is
 * one whose leader is gone and whose threads all end: what the leader said counts, or what the last
 * one said, as kernels differ. */
static int statuses(void)
{
    int said[] = {end_of(ends_all, 21, leader_sleeps),       end_of(ends_all, 22, leader_is_gone),
                  end_of(ends_late, 0, leader_exits),        end_of(dies, 0, leader_sleeps),
                  end_of(dies, 0, leader_is_gone),           end_of(ends_all, 24, leader_spins),
                  end_of(ends_late, 0, leader_alone_is_gone)};
    const int wanted[] = {21, 22, 23, 1009, 1009, 24, 9};
    int bad = 0;

    for (int i = 0; i < 7; i++) {
        printf("%d ", said[i]);
        bad |= said[i] != wanted[i] && !(i == 6 && said[i] == 0);
    }
    puts("");
    return bad;
}

/* And the whole run's own status. */
static int status_of_run(void)
{
    pthread_t t;

    pthread_create(&t, NULL, sleeps, NULL);
    pthread_create(&t, NULL, ends_all, (void *)0L);
    pthread_exit(NULL);
}

static const act acts[] = {
    {"vsyscall", vsyscall},
    {"timer-shared", timer_shared},
    {"statuses", statuses},
    {"status-of-run", status_of_run},
};

int main(int argc, char **argv)
{
    return choose(acts, sizeof acts / sizeof *acts, argc, argv);
}
