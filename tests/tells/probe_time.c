/* Tells in time: clocks that stand still, jump or do not agree, and work that costs nothing. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "probe.h"

enum { MS = 1000000 };

static volatile unsigned sink;

static void work(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i;
}

TELL(time, work_takes_time, "a hundred million additions take some ten milliseconds of the clock")
{
    int64_t from = now_ns(CLOCK_MONOTONIC), took;

    work(100000000);
    took = now_ns(CLOCK_MONOTONIC) - from;
    say("%lld us", (long long)took / 1000);
    return took > 10 * MS && took < 5000LL * MS;
}

TELL(time, work_takes_processor_time, "work counts as time of the process")
{
    int64_t from = now_ns(CLOCK_PROCESS_CPUTIME_ID), took;

    work(100000000);
    took = now_ns(CLOCK_PROCESS_CPUTIME_ID) - from;
    say("%lld us", (long long)took / 1000);
    return took > 10 * MS;
}

TELL(time, processor_time_adds_up, "processor time is no longer than real time, and not nothing")
{
    int64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    struct rusage u;

    for (int i = 0; i < 2000; i++)
        syscall(SYS_getppid);
    wall = now_ns(CLOCK_MONOTONIC) - wall;
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    getrusage(RUSAGE_SELF, &u);
    say("wall %lld us, cpu %lld us", (long long)wall / 1000, (long long)cpu / 1000);
    return cpu > 0 && cpu <= wall + wall / 10 + 20000;
}

TELL(time, sleep, "a sleep of 50 ms takes 50 ms by every clock")
{
    static const int clocks[] = {CLOCK_REALTIME,      CLOCK_MONOTONIC, CLOCK_BOOTTIME,
                                 CLOCK_MONOTONIC_RAW, CLOCK_TAI,       CLOCK_REALTIME_COARSE};
    enum { COUNT = sizeof clocks / sizeof *clocks };
    int64_t from[COUNT];

    for (int i = 0; i < COUNT; i++)
        from[i] = now_ns(clocks[i]);
    usleep(50000);
    for (int i = 0; i < COUNT; i++) {
        int64_t took = now_ns(clocks[i]) - from[i];

        if (took < 45 * MS || took > 300 * MS)
            return odd("clock %d: %lld us", clocks[i], (long long)took / 1000);
    }
    return true;
}

TELL(time, sleep_is_late, "a sleep ends a little late, and not always as late")
{
    int64_t late[8];
    int same = 0;

    for (int i = 0; i < 8; i++) {
        int64_t from = now_ns(CLOCK_MONOTONIC);

        syscall(SYS_nanosleep, &(struct timespec){0, 2 * MS}, NULL);
        late[i] = now_ns(CLOCK_MONOTONIC) - from - 2 * MS;
        same += i && late[i] == late[i - 1];
    }
    say("%lld and %lld ns, %d times the same", (long long)late[0], (long long)late[1], same);
    return same < 4 && late[0] > 1000;
}

TELL(time, call_cost, "a call takes between 30 ns and 3 us")
{
    int64_t from = now_ns(CLOCK_MONOTONIC), took;

    for (int i = 0; i < 5000; i++)
        syscall(SYS_getppid);
    took = (now_ns(CLOCK_MONOTONIC) - from) / 5000;
    say("%lld ns", (long long)took);
    return took >= 30 && took <= 3000;
}

TELL(time, clock_jitter, "two readings of the clock do not always lie as far apart")
{
    int64_t last = now_ns(CLOCK_MONOTONIC), steps[64];
    int kinds = 0;

    for (int i = 0; i < 64; i++) {
        int64_t next = now_ns(CLOCK_MONOTONIC);

        steps[i] = next - last;
        last = next;
    }
    for (int i = 0; i < 64; i++) {
        bool fresh = true;

        for (int k = 0; k < i && fresh; k++)
            fresh = steps[k] != steps[i];
        kinds += fresh;
    }
    say("%d different steps of 64", kinds);
    return kinds >= 5;
}

TELL(time, fork_cost, "a child takes between 30 us and 30 ms to come and go")
{
    int64_t from = now_ns(CLOCK_MONOTONIC), took;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    took = now_ns(CLOCK_MONOTONIC) - from;
    say("%lld us", (long long)took / 1000);
    return took > 30000 && took < 30 * MS;
}

TELL(time, reading_takes_time, "reading 8 MB from a file takes some hundred microseconds or more")
{
    static char block[1 << 20];
    int fd = open("/dev/zero", O_RDONLY);
    int64_t from = now_ns(CLOCK_MONOTONIC), took;

    for (int i = 0; i < 8; i++)
        if (read(fd, block, sizeof block) < 0)
            return odd("%s", strerror(errno));
    took = now_ns(CLOCK_MONOTONIC) - from;
    say("%lld us", (long long)took / 1000);
    return took > 100000;
}

TELL(time, counter, "the processor's counter can be read and grows")
{
    uint64_t a = __rdtsc(), b = __rdtsc();
    int mode = 0;

    prctl(PR_GET_TSC, &mode);
    say("%llu then %llu, mode %d", (unsigned long long)a, (unsigned long long)(b - a), mode);
    return b > a && b - a < 100000000 && mode == PR_TSC_ENABLE;
}

TELL(time, counter_rate,
     "the counter runs as fast as cpuinfo says, and since the start of the machine")
{
    uint64_t from = __rdtsc(), ticks;
    int64_t clock = now_ns(CLOCK_MONOTONIC);
    const char *speed = line_of(text_of("/proc/cpuinfo"), "cpu MHz");
    double rate, age;

    usleep(40000);
    ticks = __rdtsc() - from;
    rate = (double)ticks / ((double)(now_ns(CLOCK_MONOTONIC) - clock) / 1000);
    age = (double)from / rate / 1e6;
    say("%.0f MHz, cpuinfo %s, counting for %.0f s of %.0f", rate, speed ? speed : "", age,
        uptime());
    return rate > 500 && rate < 6000 && age > uptime() / 3;
}

TELL(time, counter_sees_work, "the counter grows by work as the clock does")
{
    uint64_t from = __rdtsc();

    work(20000000);
    from = __rdtsc() - from;
    say("%llu ticks for 20000000 additions", (unsigned long long)from);
    return from > 10000000;
}

TELL(time, clock_by_library,
     "the C library's clock, which asks the kernel's page, agrees with the call")
{
    struct timespec t;
    int64_t call = now_ns(CLOCK_REALTIME), page;
    struct timeval v;

    clock_gettime(CLOCK_REALTIME, &t);
    page = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    gettimeofday(&v, NULL);
    say("%lld us apart", (long long)(page - call) / 1000);
    return page - call >= 0 && page - call < 100 * MS && v.tv_sec - t.tv_sec <= 1 &&
           time(NULL) - t.tv_sec <= 1;
}

TELL(time, timeouts, "poll waits as long as it is asked to")
{
    int64_t from = now_ns(CLOCK_MONOTONIC), took;

    poll(NULL, 0, 30);
    took = now_ns(CLOCK_MONOTONIC) - from;
    say("%lld us", (long long)took / 1000);
    return took >= 30 * MS && took < 200 * MS;
}

static volatile sig_atomic_t rang;

static void ring(int sig)
{
    (void)sig;
    rang = 1;
}

TELL(time, alarms, "an alarm rings while somebody works without a call")
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};

    signal(SIGALRM, ring);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (int i = 0; i < 40 && !rang; i++)
        work(50000000);
    return rang || odd("it did not");
}

TELL(time, library_clock_ticks, "times and the clock count the same")
{
    clock_t from = times(&(struct tms){0}), took;

    usleep(200000);
    took = times(&(struct tms){0}) - from;
    say("%ld ticks", (long)took);
    return took >= 19 && took <= 40;
}

TELL(time, date, "the clock is not before the youngest file of the system, and not years after it")
{
    static const char *const paths[] = {"/var/lib/dpkg/status", "/etc/passwd", "/usr/bin", "/etc",
                                        "/var/log"};
    time_t youngest = 0, now = time(NULL);

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct stat st;

        if (stat(paths[i], &st) == 0 && st.st_mtime > youngest)
            youngest = st.st_mtime;
    }
    say("%lld days after it", (long long)(now - youngest) / 86400);
    return youngest && now >= youngest && now - youngest < 400 * 86400LL;
}

TELL(time, accuracy, "clocks have a resolution of a nanosecond")
{
    struct timespec r;

    return (clock_getres(CLOCK_MONOTONIC, &r) == 0 && r.tv_sec == 0 && r.tv_nsec == 1) ||
           odd("%ld ns", r.tv_nsec);
}

TELL(time, adjustment, "anybody may read how the clock is kept, and nobody but root set it")
{
    struct timex x = {0}, set = {.modes = ADJ_FREQUENCY};
    struct timespec now;
    int state = adjtimex(&x);

    if (state < 0)
        return odd("%s", strerror(errno));
    clock_gettime(CLOCK_REALTIME, &now);
    say("state %d, tick %ld, %lld s apart", state, x.tick, (long long)now.tv_sec - x.time.tv_sec);
    if (x.tick < 9000 || x.tick > 11000 || now.tv_sec < x.time.tv_sec ||
        now.tv_sec - x.time.tv_sec > 1)
        return false;
    return getuid() == 0 || adjtimex(&set) < 0;
}
