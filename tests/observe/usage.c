/* Prints processor time and uptime by every call that tells them; test_usage.py looks whether they
 * agree with one another and between runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long ns(struct timeval a, struct timeval b)
{
    return (a.tv_sec + b.tv_sec) * 1000000000LL + (a.tv_usec + b.tv_usec) * 1000LL;
}

static long long now(clockid_t id)
{
    struct timespec ts = {0};

    clock_gettime(id, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void work(int n)
{
    for (int i = 0; i < n; i++)
        getppid();
}

static pid_t worker(void)
{
    pid_t p = fork();

    if (p == 0) {
        work(20000);
        _exit(0);
    }
    return p;
}

static long long of(int who)
{
    struct rusage u = {0};

    getrusage(who, &u);
    return ns(u.ru_utime, u.ru_stime);
}

static void *busy(void *ret)
{
    work(5000);
    *(long long *)ret = of(RUSAGE_THREAD);
    return NULL;
}

static void threads(void)
{
    long long worker = 0, first = of(RUSAGE_THREAD);
    pthread_t t;

    pthread_create(&t, NULL, busy, &worker);
    pthread_join(t, NULL);
    printf("\"worker\":%lld,\"leader\":%lld,\"before\":%lld,\"both\":%lld}\n", worker,
           of(RUSAGE_THREAD), first, of(RUSAGE_SELF));
}

int main(void)
{
    struct rusage self, children, child, second = {0};
    struct sysinfo before, after;
    struct tms tms;
    siginfo_t info;
    long long clocks[3];
    clockid_t own;
    long ticks;
    pid_t p;

    sysinfo(&before);
    ticks = (long)times(&tms);
    p = worker();
    wait4(p, NULL, 0, &child);
    p = worker();
    waitid(P_PID, (id_t)p, &info, WEXITED | WNOWAIT);
    wait4(p, NULL, 0, &second);
    work(10000);
    sleep(1000);
    sysinfo(&after);
    ticks = (long)times(&tms) - ticks;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    clock_getcpuclockid(getpid(), &own);
    printf("{\"uptime\":%ld,\"ticks\":%ld,\"load\":%lu,", after.uptime - before.uptime, ticks,
           after.loads[0]);
    printf("\"child\":%lld,\"second\":%lld,\"children\":%lld,", ns(child.ru_utime, child.ru_stime),
           ns(second.ru_utime, second.ru_stime), ns(children.ru_utime, children.ru_stime));
    printf("\"self\":%lld,\"switches\":%ld,", ns(self.ru_utime, self.ru_stime),
           self.ru_nvcsw + self.ru_nivcsw + self.ru_majflt);
    clocks[0] = now(CLOCK_PROCESS_CPUTIME_ID);
    clocks[1] = now(own);
    clocks[2] = now(CLOCK_THREAD_CPUTIME_ID);
    printf("\"clock\":%lld,\"own\":%lld,\"thread\":%lld,", clocks[0], clocks[1], clocks[2]);
    printf("\"cutime\":%ld,\"bad\":%d,", (long)(tms.tms_cutime + tms.tms_cstime),
           clock_gettime(-800002, &(struct timespec){0})); /* of process 100,000 */
    threads();
    return 0;
}
