/* Signals that nobody sends by a call: by descriptors, terminals and the ends of others. Whoever
 * waits for one is woken by it, and by nothing else. Run as "twins_unsent NAME"; each prints what
 * came, and whether it came at once or only when its time was over. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t got;
static time_t begin;

static void take(int sig)
{
    got = sig;
}

static void expect(int sig)
{
    struct sigaction a = {.sa_handler = take};

    sigaction(sig, &a, NULL);
}

static void say(const char *who)
{
    printf("%s: signal %d, %s\n", who, got, time(NULL) - begin < 3 ? "in time" : "too late");
    fflush(stdout);
    got = 0;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
}

/* A child does `act`, and lives on; we wait for a signal, and not for long. */
static int wait_for(int sig, void (*act)(int), int fd)
{
    pid_t child;

    expect(sig);
    child = fork();
    if (child == 0) {
        nap();
        act(fd);
        sleep(8);
        _exit(0);
    }
    sleep(5);
    say("woken");
    kill(child, SIGKILL);
    wait(NULL);
    return 0;
}

static void write_one(int fd)
{
    if (write(fd, "x", 1) != 1)
        _exit(1);
}

static int by_pipe(void)
{
    int p[2];

    if (pipe(p) != 0)
        return 1;
    fcntl(p[0], F_SETOWN, getpid());
    fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    return wait_for(SIGIO, write_one, p[1]);
}

static int by_socket(void)
{
    int s[2], on = 1;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
        return 1;
    fcntl(s[0], F_SETOWN, getpid());
    fcntl(s[0], F_SETSIG, SIGUSR1);
    ioctl(s[0], FIOASYNC, &on);
    return wait_for(SIGUSR1, write_one, s[1]);
}

static void make_file(int fd)
{
    close(openat(fd, "made", O_CREAT | O_WRONLY, 0600));
}

static int by_folder(void)
{
    int d = open("/tmp", O_RDONLY | O_DIRECTORY);

    unlinkat(d, "made", 0);
    if (fcntl(d, F_NOTIFY, DN_CREATE) != 0)
        return 1;
    wait_for(SIGIO, make_file, d);
    return unlinkat(d, "made", 0);
}

static void send_urgent(int fd)
{
    send(fd, "u", 1, MSG_OOB);
}

static int connected(int *far)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int l = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0);

    if (bind(l, (struct sockaddr *)&a, len) != 0 || listen(l, 1) != 0 ||
        getsockname(l, (struct sockaddr *)&a, &len) != 0 ||
        connect(near, (struct sockaddr *)&a, len) != 0)
        exit(1);
    *far = accept(l, NULL, NULL);
    return near;
}

static int by_urgent(void)
{
    int far, near = connected(&far);

    fcntl(near, F_SETOWN, getpid());
    return wait_for(SIGURG, send_urgent, far);
}

/* ---- terminals ---- */

static int terminal(int *slave)
{
    int m = posix_openpt(O_RDWR | O_NOCTTY);

    if (m < 0 || grantpt(m) != 0 || unlockpt(m) != 0 ||
        (*slave = open(ptsname(m), O_RDWR | O_NOCTTY)) < 0)
        exit(1);
    return m;
}

/* A session of its own at the terminal that waits for two signals. */
static pid_t at_terminal(int slave, int one, int other)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    expect(one);
    expect(other);
    for (int i = 0; i < 2; i++) {
        sleep(2);
        say("at the terminal");
        begin = time(NULL);
    }
    exit(0);
}

static int by_key(void)
{
    struct winsize size = {.ws_row = 30, .ws_col = 90};
    int slave, master = terminal(&slave);

    at_terminal(slave, SIGINT, SIGWINCH);
    nap();
    write_one(master); /* a letter is none */
    if (write(master, "\003", 1) != 1)
        return 1;
    nap();
    nap();
    ioctl(master, TIOCSWINSZ, &size);
    wait(NULL);
    return 0;
}

static int by_hanging_up(void)
{
    int slave, master = terminal(&slave);
    pid_t child = fork();

    if (child == 0) {
        close(master);
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        expect(SIGHUP);
        sleep(4);
        say("left alone");
        exit(0);
    }
    close(slave);
    nap();
    close(master);
    wait(NULL);
    return 0;
}

/* Whoever reads in the background is stopped, and its parent told. */
static int in_background(void)
{
    int slave, status = 0;
    pid_t reader;
    char c;

    terminal(&slave);
    if (fork() != 0) {
        wait(NULL);
        return 0;
    }
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    expect(SIGCHLD);
    reader = fork();
    if (reader == 0) {
        setpgid(0, 0);
        exit(read(slave, &c, 1) < 0);
    }
    sleep(4);
    say("the parent");
    waitpid(reader, &status, WUNTRACED);
    printf("stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
    kill(reader, SIGKILL);
    waitpid(reader, &status, 0);
    exit(0);
}

/* Somebody computes for a while beside one that is stopped; then it goes on, and is killed while it
 * is stopped again. */
static int beside_halted(void)
{
    pid_t child = fork();
    int status = 0;

    while (child == 0)
        pause();
    nap();
    for (int i = 0; i < 2; i++) {
        kill(child, SIGSTOP);
        waitpid(child, &status, WUNTRACED);
        printf("stopped %d\n", WIFSTOPPED(status));
        for (volatile long n = 0; n < 100000000; n++)
            continue;
        kill(child, i == 0 ? SIGCONT : SIGKILL);
        waitpid(child, &status, i == 0 ? WCONTINUED : 0);
        printf("goes on %d, killed %d\n", WIFCONTINUED(status), WIFSIGNALED(status));
    }
    return 0;
}

/* ---- limits of its own, and bytes that are held back ---- */

static int by_file_limit(void)
{
    struct rlimit ten = {10, 10};
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    long first, second;

    expect(SIGXFSZ);
    setrlimit(RLIMIT_FSIZE, &ten);
    first = write(fd, "0123456789abcdef", 16);
    second = write(fd, "x", 1);
    printf("%ld %ld %d\n", first, second, errno == EFBIG);
    say("the writer");
    return 0;
}

static int held_back(void)
{
    int far, near = connected(&far), on = 1, off = 0;
    socklen_t len = sizeof on;
    char text[64];
    long n;

    send(near, "more", 4, MSG_MORE);
    n = recv(far, text, sizeof text, 0);
    printf("%ld\n", n);
    setsockopt(near, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    send(near, "cork", 4, 0);
    n = recv(far, text, sizeof text, 0);
    getsockopt(near, IPPROTO_TCP, TCP_CORK, &on, &len);
    setsockopt(near, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    getsockopt(near, IPPROTO_TCP, TCP_CORK, &off, &len);
    printf("%ld %d %d\n", n, on, off);
    say("the reader");
    return 0;
}

/* More than one call moves: it answers with what it did, and waits for no more. */
static int too_much(void)
{
    const size_t most = 1UL << 30;
    void *all = mmap(NULL, most, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int to = open("/dev/null", O_WRONLY);
    struct iovec parts[3];

    for (int i = 0; i < 3; i++)
        parts[i] = (struct iovec){all, most};
    printf("%zd %zd\n", writev(to, parts, 3), write(to, all, 3 * most));
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} acts[] = {{"pipe", by_pipe},
            {"socket", by_socket},
            {"folder", by_folder},
            {"urgent", by_urgent},
            {"key", by_key},
            {"hang-up", by_hanging_up},
            {"background", in_background},
            {"file-limit", by_file_limit},
            {"held-back", held_back},
            {"halted", beside_halted},
            {"too-much", too_much}};

int main(int argc, char **argv)
{
    begin = time(NULL);
    for (size_t i = 0; argc == 2 && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(argv[1], acts[i].name) == 0)
            return acts[i].run();
    fprintf(stderr, "no such act\n");
    return 64;
}
