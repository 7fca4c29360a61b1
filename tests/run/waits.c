/* Everything that waits: signals, stops, timers, pipes, locks, children. Prints one line each; the
 * lines are the same with and without an aquarium around it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int got;

static void handler(int sig)
{
    got = sig;
}

static void handle(int sig, int flags)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

    sigaction(sig, &sa, NULL);
    got = 0;
}

/* A child that does `act` after a second. */
static pid_t later(void (*act)(int), int arg)
{
    pid_t p = fork();

    if (p == 0) {
        sleep(1);
        act(arg);
        _exit(0);
    }
    return p;
}

static void signal_parent(int sig)
{
    kill(getppid(), sig);
}

static void write_x(int fd)
{
    if (write(fd, "x", 1) != 1)
        _exit(1);
}

static void job_control(void)
{
    pid_t p = fork();
    int status = 0;

    if (p == 0)
        for (;;)
            pause();
    sleep(1);
    kill(p, SIGSTOP);
    printf("stopped %d", waitpid(p, &status, WUNTRACED) == p && WIFSTOPPED(status));
    kill(p, SIGCONT);
    printf(" continued %d", waitpid(p, &status, WCONTINUED) == p && WIFCONTINUED(status));
    kill(p, SIGTERM);
    printf(" ended %d\n", waitpid(p, &status, 0) == p ? WTERMSIG(status) : -1);
}

static void interrupted(void)
{
    struct timespec ts = {10, 0}, left = {0};
    int p[2], r;
    char c;

    if (pipe(p) != 0)
        return;
    handle(SIGALRM, 0);
    alarm(1);
    r = (int)read(p[0], &c, 1);
    printf("read %d %d signal %d\n", r, r < 0 && errno == EINTR, got);
    handle(SIGALRM, SA_RESTART);
    alarm(1);
    fork() == 0 ? (sleep(3), write_x(p[1]), _exit(0)) : (void)0;
    r = (int)read(p[0], &c, 1);
    printf("restarted %d signal %d\n", r, got);
    wait(NULL);
    handle(SIGALRM, 0);
    alarm(2);
    r = nanosleep(&ts, &left);
    printf("sleep %d %d left %d\n", r, errno == EINTR, left.tv_sec == 8 || left.tv_sec == 7);
}

static void waited_signals(void)
{
    struct timespec two = {2, 0};
    struct signalfd_siginfo info;
    sigset_t set;
    int fd, r;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    r = sigtimedwait(&set, NULL, &two);
    printf("sigtimedwait %d %d", r, errno == EAGAIN);
    later(signal_parent, SIGUSR1);
    printf(" then %d\n", sigtimedwait(&set, NULL, &two));
    wait(NULL);
    fd = signalfd(-1, &set, 0);
    later(signal_parent, SIGUSR1);
    r = (int)read(fd, &info, sizeof info);
    printf("signalfd %d %u\n", r == sizeof info, info.ssi_signo);
    wait(NULL);
}

static void timers(void)
{
    struct itimerspec every = {{1, 0}, {2, 0}}, once = {{0, 0}, {1, 0}};
    struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct pollfd p = {.events = POLLIN};
    unsigned long n = 0;
    timer_t t;

    p.fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(p.fd, 0, &every, NULL);
    printf("timerfd %d", poll(&p, 1, 10000));
    printf(" %zd %lu\n", read(p.fd, &n, sizeof n), n);
    handle(SIGALRM, 0);
    timer_create(CLOCK_REALTIME, &e, &t);
    timer_settime(t, 0, &once, NULL);
    pause();
    printf("timer %d\n", got);
}

static void streams(void)
{
    struct timeval second = {1, 0};
    char *big = calloc(1, 300000), c;
    size_t n = 0;
    int p[2], s[2], status = 0;
    ssize_t r;

    if (!big || pipe(p) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
        return;
    setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    r = recv(s[0], &c, 1, 0);
    printf("timeout %d\n", r < 0 && errno == EAGAIN);
    if (fork() == 0) {
        close(p[0]);
        _exit(write(p[1], big, 300000) == 300000 ? 7 : 1);
    }
    close(p[1]);
    while ((r = read(p[0], big, 65536)) > 0)
        n += (size_t)r;
    wait(&status);
    printf("pipe %zu %d\n", n, WEXITSTATUS(status));
    free(big);
}

static void fifo(const char *folder)
{
    char path[256], text[8] = {0};
    int fd;

    snprintf(path, sizeof path, "%s/fifo", folder);
    mkfifo(path, 0600);
    if (fork() == 0) {
        sleep(1);
        fd = open(path, O_WRONLY);
        _exit(write(fd, "hey", 3) == 3 ? 0 : 1);
    }
    fd = open(path, O_RDONLY);
    printf("fifo %zd", read(fd, text, sizeof text - 1));
    printf(" %s\n", text);
    wait(NULL);
    unlink(path);
}

static void unlock(int fd)
{
    flock(fd, LOCK_UN);
}

static void locks(const char *folder)
{
    char path[256];
    int mine, theirs;

    snprintf(path, sizeof path, "%s/lock", folder);
    mine = open(path, O_RDWR | O_CREAT, 0600);
    theirs = open(path, O_RDWR);
    flock(mine, LOCK_EX);
    later(unlock, mine);
    printf("flock %d\n", flock(theirs, LOCK_EX));
    wait(NULL);
    unlink(path);
}

static void semaphores(void)
{
    struct sembuf down = {0, -1, 0}, up = {0, 1, 0};
    struct {
        long type;
        char text[4];
    } m = {1, "abc"};
    int id = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);

    if (fork() == 0) {
        sleep(1);
        semop(id, &up, 1);
        msgsnd(queue, &m, 4, 0);
        _exit(0);
    }
    printf("semop %d", semop(id, &down, 1));
    memset(m.text, 0, sizeof m.text);
    printf(" msgrcv %zd %s\n", msgrcv(queue, &m, 4, 0, 0), m.text);
    wait(NULL);
    semctl(id, 0, IPC_RMID);
    msgctl(queue, IPC_RMID, NULL);
}

static void *exec_echo(void *arg)
{
    execl("/bin/echo", "echo", "a thread became a program", NULL);
    return arg;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : ".";
    pthread_t t;
    int status = 0;
    pid_t p;

    job_control();
    interrupted();
    waited_signals();
    timers();
    streams();
    fifo(folder);
    locks(folder);
    semaphores();
    p = fork();
    if (p == 0)
        abort();
    waitpid(p, &status, 0);
    printf("abort %d\n", WTERMSIG(status));
    fflush(stdout);
    pthread_create(&t, NULL, exec_echo, NULL);
    pthread_join(t, NULL);
    printf("never here\n");
    return 1;
}
