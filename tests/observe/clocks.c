/* Asks for the time in every way that needs no call, and tries to get at the host's clock. One line
 * each: a name and a number. */
#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef ARCH_MAP_VDSO_64
#define ARCH_MAP_VDSO_64 0x2003
#endif

enum { PAGE = 4096, LIBRARY = 2 * PAGE };
static const int64_t second = 1000000000;

typedef int ask_clock(clockid_t, struct timespec *);
typedef int ask_day(struct timeval *, void *);
typedef time_t ask_time(time_t *);
typedef long ask_cpu(unsigned *, unsigned *, void *);

static void say(const char *name, long value)
{
    printf("%s %ld\n", name, value);
    fflush(stdout);
}

static int64_t by_call(clockid_t id)
{
    struct timespec ts = {0};

    syscall(SYS_clock_gettime, id, &ts);
    return ts.tv_sec * second + ts.tv_nsec;
}

/* ---- the library ---- */

static int64_t by(ask_clock *ask, clockid_t id)
{
    struct timespec ts = {0};

    return ask(id, &ts) == 0 ? ts.tv_sec * second + ts.tv_nsec : -1;
}

/* Does the library's clock agree with the call's, which is asked afterwards? */
static void agree(const char *name, int64_t first, clockid_t id, bool coarse)
{
    int64_t then = by_call(id);

    say(name, first > 0 && first < then && then - first < (coarse ? 4100000 : 100000));
}

static uint64_t of[5]; /* the functions, relative to the library */

static bool find_functions(uint64_t base)
{
    void *lib = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    const char *const names[] = {"__vdso_clock_gettime", "__vdso_clock_getres",
                                 "__vdso_gettimeofday", "__vdso_time", "__vdso_getcpu"};

    for (int i = 0; i < 5; i++) {
        void *at = lib ? dlvsym(lib, names[i], "LINUX_2.6") : NULL;

        if (!at)
            return false;
        of[i] = (uint64_t)at - base;
    }
    return true;
}

static void functions(const unsigned char *base)
{
    struct timeval tv = {0};
    struct timespec ts = {0};
    unsigned cpu = 77, node = 77;
    uint64_t at[5];
    void *f[5];

    for (int i = 0; i < 5; i++)
        at[i] = of[i] + (uint64_t)base;
    memcpy(f, at, sizeof f);
    agree("monotonic", by((ask_clock *)f[0], CLOCK_MONOTONIC), CLOCK_MONOTONIC, false);
    agree("coarse", by((ask_clock *)f[0], CLOCK_REALTIME_COARSE), CLOCK_REALTIME, true);
    say("invalid", ((ask_clock *)f[0])(12345, &ts));
    say("resolution", ((ask_clock *)f[1])(CLOCK_MONOTONIC, &ts) == 0 && ts.tv_nsec == 1);
    say("day", ((ask_day *)f[2])(&tv, NULL) == 0 && tv.tv_sec == by_call(CLOCK_REALTIME) / second);
    say("time", ((ask_time *)f[3])(NULL) == by_call(CLOCK_REALTIME) / second);
    say("cpu", ((ask_cpu *)f[4])(&cpu, &node, NULL) == 0 && cpu < 77 && node == 0);
}

static unsigned long mix(const unsigned char *b, size_t len)
{
    unsigned long h = 14695981039346656037UL;

    for (size_t i = 0; i < len; i++)
        h = (h ^ b[i]) * 1099511628211UL;
    return h;
}

static void library(void)
{
    unsigned char *base = (unsigned char *)getauxval(AT_SYSINFO_EHDR), *place, *moved;
    unsigned long before;
    long sum = 0;

    say("there", base && memcmp(base, "\177ELF", 4) == 0);
    if (!base)
        return;
    for (int i = 1; i <= 4 * PAGE; i++)
        sum += base[-i];
    say("clock-page", sum);
    before = mix(base, LIBRARY);
    say("functions", find_functions((uint64_t)base));
    functions(base);
    say("dropped", madvise(base, LIBRARY, MADV_DONTNEED));
    say("dropped-locked", madvise(base, PAGE, 24));
    say("same", mix(base, LIBRARY) == before);
    functions(base);
    place = mmap(NULL, LIBRARY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    moved = mremap(base, LIBRARY, LIBRARY, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    say("moved", moved == place);
    madvise(moved, LIBRARY, MADV_DONTNEED);
    say("same", mix(moved, LIBRARY) == before);
    functions(moved);
    if (fork() == 0) {
        madvise(moved, LIBRARY, MADV_DONTNEED);
        say("same-in-child", mix(moved, LIBRARY) == before);
        _exit(0);
    }
    wait(NULL);
    say("unmapped", munmap(moved, LIBRARY));
    munmap(base - 4 * PAGE, 4 * PAGE);
    say("once-more", syscall(SYS_arch_prctl, ARCH_MAP_VDSO_64, 0x10000000) == -1 ? errno : 0);
}

/* ---- the counter ---- */

static sigjmp_buf back;

static void on_fault(int sig, siginfo_t *s, void *context)
{
    (void)context;
    siglongjmp(back, sig * 1000 + s->si_code);
}

static uint64_t counter(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static uint64_t counter_prefixed(void)
{
    uint32_t low, high;

    __asm__ volatile(".byte 0x66, 0x48, 0x0f, 0x31" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static uint64_t counter_aux(uint32_t *aux)
{
    uint32_t low, high;

    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(*aux));
    return (uint64_t)high << 32 | low;
}

static uint64_t monitor(void)
{
    uint32_t low, high;

    __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* What happens when it is read: 0, or the signal and its code. */
static long fault_of(uint64_t (*read)(void))
{
    int fault = sigsetjmp(back, 1);

    if (fault == 0)
        read();
    return fault;
}

static void *mode_in_thread(void *arg)
{
    int mode = 0;

    prctl(PR_GET_TSC, &mode);
    say(arg, mode);
    return NULL;
}

static void modes(void)
{
    int mode = 0;

    say("set-odd", prctl(PR_SET_TSC, 3) < 0 ? errno : 0);
    say("get-nowhere", prctl(PR_GET_TSC, 8) < 0 ? errno : 0);
    say("get", prctl(PR_GET_TSC, &mode) * 10 + mode);
    say("set", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    say("get", prctl(PR_GET_TSC, &mode) * 10 + mode);
    say("fault", fault_of(counter));
    if (fork() == 0) {
        say("fault-in-child", fault_of(counter));
        mode_in_thread((char[]){"mode-in-child"});
        _exit(0);
    }
    wait(NULL);
    say("set", prctl(PR_SET_TSC, PR_TSC_ENABLE));
    say("no-fault", fault_of(counter));
    say("monitor", fault_of(monitor));
}

static void counters(void)
{
    const struct timespec nap = {0, 100000000};
    uint32_t aux = ~0u;
    uint64_t a, b, c;
    int64_t from, to;

    from = by_call(CLOCK_MONOTONIC);
    a = counter();
    nanosleep(&nap, NULL);
    b = counter();
    to = by_call(CLOCK_MONOTONIC);
    c = counter_prefixed();
    say("khz", (long)((b - a) / (uint64_t)((to - from) / 1000000)));
    say("forward", a < b && b < c && c < counter_aux(&aux));
    say("aux", aux);
    say("since-start", (long)(c / (uint64_t)(by_call(CLOCK_MONOTONIC) / 1000000)));
}

/* ---- clocks by number ---- */

static long asked(long r)
{
    return r < 0 ? errno : 0;
}

/* What the calls say of every clock there is, and of some that are none. Those that ring while a
 * machine sleeps depend on its hardware. */
static void numbers(void)
{
    struct itimerspec never = {0};
    struct timespec ts = {0}, none = {0};

    for (clockid_t id = 0; id < 16; id++) {
        timer_t timer = 0;
        int fd;

        if (id == CLOCK_REALTIME_ALARM || id == CLOCK_BOOTTIME_ALARM)
            continue;
        printf("%d: get %ld", id, asked(syscall(SYS_clock_gettime, id, &ts)));
        printf(" resolution %ld", asked(syscall(SYS_clock_getres, id, &ts)));
        printf(" sleep %ld", asked(syscall(SYS_clock_nanosleep, id, 0, &none, NULL)));
        printf(" timer %ld", asked(timer_create(id, NULL, &timer)));
        fd = timerfd_create(id, 0);
        printf(" descriptor %ld", asked(fd));
        printf(" set %ld\n", fd < 0 ? 0 : asked(timerfd_settime(fd, 0, &never, NULL)));
    }
}

/* Atomic time: that of the day, where nobody told the kernel of leap seconds. */
static void atomic(void)
{
    int64_t from = by_call(CLOCK_REALTIME), to;
    struct timespec until = {from / second + 100, from % second};

    agree("tai", by_call(CLOCK_TAI), CLOCK_REALTIME, false);
    clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &until, NULL);
    to = by_call(CLOCK_TAI);
    say("tai-sleep", (to - from) / (second / 10));
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    if (argc > 1 && strcmp(argv[1], "numbers") == 0)
        return numbers(), 0;
    sigaction(SIGSEGV, &sa, NULL);
    counters();
    modes();
    if (argc == 1) {
        atomic();
        library();
    }
    return 0;
}
