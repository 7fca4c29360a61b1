/* Timers of every kind, and what they answer: the same lines natively, where the kernel keeps them,
 * and in a world, where the observer does. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t rang, code, overrun;
static volatile pid_t by;

static void on(int sig, siginfo_t *s, void *context)
{
    (void)context;
    rang = sig;
    code = s->si_code;
    overrun = s->si_overrun;
    by = gettid();
}

static void catch (int sig)
{
    struct sigaction a = {.sa_sigaction = on, .sa_flags = SA_SIGINFO};

    sigaction(sig, &a, NULL);
    rang = 0;
}

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* ---- alarms ---- */

static void alarms(void)
{
    struct itimerval v = {.it_value = {100, 0}}, old = {0};

    catch (SIGALRM);
    printf("alarm %u", alarm(10));
    printf(" %u", alarm(3));
    printf(" %u\n", alarm(0));
    setitimer(ITIMER_REAL, &v, NULL);
    v.it_value.tv_sec = 0;
    setitimer(ITIMER_REAL, &v, &old);
    printf("interval %d\n", old.it_value.tv_sec == 99 && old.it_value.tv_usec > 900000);
    alarm(1);
    printf("slept %d", sleep(5) > 2);
    printf(" rang %d\n", rang);
    v.it_value.tv_sec = 50;
    setitimer(ITIMER_REAL, &v, NULL);
    if (fork() == 0) { /* a child has none */
        getitimer(ITIMER_REAL, &old);
        _exit(old.it_value.tv_sec == 0 && old.it_value.tv_usec == 0 ? 0 : 1);
    }
    wait(&(int){0});
    printf("kept %u\n", alarm(0) > 40);
}

static void work(__itimer_which_t which, int sig)
{
    struct itimerval v = {.it_value = {0, 20000}};

    catch (sig);
    setitimer(which, &v, NULL);
    for (int i = 0; i < 100000000 && !rang; i++)
        getppid();
    printf("work %d\n", rang);
}

/* ---- POSIX timers ---- */

static timer_t make(int notify, int sig, pid_t tid)
{
    struct sigevent e = {.sigev_notify = notify, .sigev_signo = sig};
    timer_t t;

    if (notify == SIGEV_THREAD_ID)
        e._sigev_un._tid = tid;
    return timer_create(CLOCK_MONOTONIC, &e, &t) == 0 ? t : NULL;
}

static void set(timer_t t, long first_ms, long every_ms)
{
    struct itimerspec v = {{every_ms / 1000, every_ms % 1000 * 1000000},
                           {first_ms / 1000, first_ms % 1000 * 1000000}};

    timer_settime(t, 0, &v, NULL);
}

static void *waits(void *tid)
{
    catch (SIGUSR2);
    *(volatile pid_t *)tid = gettid();
    while (!rang)
        nap(10);
    return NULL;
}

static void posix(void)
{
    volatile pid_t tid = 0;
    sigset_t one, before;
    pthread_t thread;
    timer_t t;

    catch (SIGUSR1);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, &before);
    t = make(SIGEV_SIGNAL, SIGUSR1, 0);
    set(t, 100, 100);
    nap(1050);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("rang %d timer %d missed %d %d\n", rang == SIGUSR1, code == SI_TIMER, overrun,
           timer_getoverrun(t));
    timer_delete(t);
    pthread_create(&thread, NULL, waits, (void *)&tid);
    while (!tid)
        nap(10);
    t = make(SIGEV_THREAD_ID, SIGUSR2, tid);
    set(t, 100, 0);
    pthread_join(thread, NULL);
    printf("to the thread %d\n", by == tid);
    timer_delete(t);
    t = make(SIGEV_NONE, 0, 0);
    printf("none %d\n", t != NULL || errno == EINVAL);
}

/* Of work: a moment of the process's own clock, from now and since its start. */
static void of_work(bool absolute)
{
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec v = {.it_value = {0, 20000000}};
    struct timespec now, last;
    timer_t t;

    catch (SIGUSR1);
    printf("made %d", timer_create(CLOCK_PROCESS_CPUTIME_ID, &e, &t));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    if (absolute) {
        v.it_value.tv_sec += now.tv_sec;
        v.it_value.tv_nsec += now.tv_nsec;
        v.it_value.tv_sec += v.it_value.tv_nsec / 1000000000;
        v.it_value.tv_nsec %= 1000000000;
    }
    timer_settime(t, absolute ? TIMER_ABSTIME : 0, &v, NULL);
    for (int i = 0; i < 100000000 && !rang; i++)
        getppid();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &last);
    printf(" rang %d after %d\n", rang == SIGUSR1,
           (last.tv_sec - now.tv_sec) * 1000 + (last.tv_nsec - now.tv_nsec) / 1000000 >= 20);
    timer_delete(t);
}

/* ---- descriptors ---- */

static void descriptor(void)
{
    struct itimerspec v = {{0, 100000000}, {0, 100000000}}, left;
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    uint64_t count = 0;

    timerfd_settime(fd, 0, &v, NULL);
    nap(1050);
    printf("read %zd", read(fd, &count, sizeof count));
    printf(" count %d\n", (int)count);
    nap(250);
    v = (struct itimerspec){{0, 0}, {1000, 0}};
    timerfd_settime(fd, 0, &v, &left);
    printf("every %ld", left.it_interval.tv_nsec);
    printf(" set anew %zd", read(fd, &count, sizeof count));
    printf(" %d", errno == EAGAIN);
    timerfd_gettime(fd, &left);
    printf(" left %d\n", left.it_value.tv_sec >= 999);
    clock_gettime(CLOCK_MONOTONIC, &v.it_value);
    v.it_value.tv_sec -= 1;
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL);
    nap(10);
    printf("past %zd\n", read(fd, &count, sizeof count));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarms();
    work(ITIMER_VIRTUAL, SIGVTALRM);
    work(ITIMER_PROF, SIGPROF);
    posix();
    of_work(false);
    of_work(true);
    descriptor();
    return 0;
}
