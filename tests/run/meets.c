/* Two who need each other, over everything that can wait in the kernel: one waits, the other comes
 * a little later. Prints a line for each kind; the lines are the same with and without an aquarium
 * around it. meets2.c has those between sockets. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meets.h"

static char place[256];
static char block[1 << 20];

static const char *in_place(const char *name)
{
    static char path[2][300];
    static int next;

    next = !next;
    snprintf(path[next], sizeof path[next], "%s/%s", place, name);
    return path[next];
}

/* ---- bytes inside the kernel ---- */

static int tube[2], other[2];

static void write_abc(void)
{
    write_all(tube[1], "abc", 3);
}

static void drain_other(void)
{
    static char all[1 << 20];

    if (read(other[0], all, sizeof all) < 0)
        _exit(1);
}

static void fill(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, block, 4096) > 0)
        continue;
    fcntl(fd, F_SETFL, 0);
}

static void splices(void)
{
    char text[8] = "";

    pipes(tube), pipes(other);
    later(write_abc);
    say("splice", splice(tube[0], NULL, other[1], NULL, 100, 0));
    together();
    say(" read", read(other[0], text, sizeof text));
    later(write_abc);
    say(" tee", tee(tube[0], other[1], 100, 0));
    together();
    fill(other[1]);
    later(drain_other);
    say(" into a full one", splice(tube[0], NULL, other[1], NULL, 100, 0));
    together();
    say(" nothing", splice(tube[0], NULL, other[1], NULL, 100, SPLICE_F_NONBLOCK));
    close(tube[1]);
    say(" end", splice(tube[0], NULL, other[1], NULL, 100, 0));
    say(" flags", fcntl(other[1], F_GETFL) & O_NONBLOCK);
    line();
    close_all(tube), close_all(other);
}

static void pages(void)
{
    static char text[4096];
    struct iovec v = {text, sizeof text}, small = {text, 3};

    pipes(tube), pipes(other);
    fill(other[1]);
    later(drain_other);
    say("vmsplice", vmsplice(other[1], &v, 1, 0));
    together();
    later(write_abc);
    say(" back", vmsplice(tube[0], &small, 1, 0));
    together();
    say(" nothing", vmsplice(tube[0], &small, 1, SPLICE_F_NONBLOCK));
    line();
    close_all(tube), close_all(other);
}

static void files(void)
{
    int fd = open(in_place("file"), O_RDWR | O_CREAT | O_TRUNC, 0600), s[2];
    off_t at = 1000;

    write_all(fd, block, 700000);
    pipes(other);
    fill(other[1]);
    later(drain_other);
    say("sendfile", sendfile_all(other[1], fd, &at, 100));
    together();
    close_all(other);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
        return;
    if (fork() == 0) {
        size_t n = 0;
        ssize_t r;

        close(s[0]);
        nap();
        while ((r = read(s[1], block, 50000)) > 0)
            n += (size_t)r;
        _exit(n == 699900 ? 0 : 1);
    }
    close(s[1]);
    at = 100;
    say(" to a socket", sendfile_all(s[0], fd, &at, 1000000));
    say(" at", at);
    close(s[0]);
    together();
    line();
    close(fd);
    unlink(in_place("file"));
}

/* ---- queues ---- */

static mqd_t queue;

static void send_one(void)
{
    mq_send(queue, "one", 3, 0);
}

static void receive_one(void)
{
    char text[16];

    mq_receive(queue, text, sizeof text, NULL);
}

static void message_queues(void)
{
    struct mq_attr a = {.mq_maxmsg = 2, .mq_msgsize = 16};
    struct timespec soon;
    char text[16];

    queue = mq_open("/meets", O_RDWR | O_CREAT | O_EXCL, 0600, &a);
    if (queue < 0) {
        printf("mq %d\n", errno);
        return;
    }
    later(send_one);
    say("mq", mq_receive(queue, text, sizeof text, NULL));
    together();
    say(" full", mq_send(queue, "1", 1, 0) + mq_send(queue, "2", 1, 0));
    later(receive_one);
    say(" sent", mq_send(queue, "3", 1, 0));
    together();
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec++;
    say(" too late", mq_timedsend(queue, "4", 1, 0, &soon));
    soon.tv_nsec = -1;
    say(" wrong", mq_timedsend(queue, "4", 1, 0, &soon));
    line();
    mq_close(queue);
    mq_unlink("/meets");
}

/* ---- named pipes ---- */

static int mode, opened;

static void open_other_end(void)
{
    int fd = open(in_place("pipe"), mode);

    if (mode == O_WRONLY && write(fd, "hello", 5) != 5)
        _exit(1);
    close(fd); /* before the other may have had its turn */
}

static void *open_in_thread(void *arg)
{
    (void)arg;
    opened = open(in_place("pipe"), O_RDONLY);
    return NULL;
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void named_pipes(void)
{
    struct sigaction sa = {.sa_handler = on_alarm};
    char text[16];
    pthread_t t;
    int fd;

    mkfifo(in_place("pipe"), 0600);
    mode = O_WRONLY;
    later(open_other_end);
    fd = open(in_place("pipe"), O_RDONLY);
    say("pipe by name", read(fd, text, sizeof text));
    say(" flags", fcntl(fd, F_GETFL) & O_NONBLOCK);
    together();
    close(fd);
    mode = O_RDONLY;
    later(open_other_end);
    fd = creat(in_place("pipe"), 0600);
    say(" write", fd >= 0);
    say(" flags", fcntl(fd, F_GETFL) & (O_NONBLOCK | O_ACCMODE));
    together();
    close(fd);
    pthread_create(&t, NULL, open_in_thread, NULL);
    nap();
    fd = open(in_place("pipe"), O_RDWR);
    pthread_join(t, NULL);
    say(" both", opened >= 0);
    close(fd), close(opened);
    sigaction(SIGALRM, &sa, NULL);
    alarm(1);
    say(" nobody", open(in_place("pipe"), O_RDONLY));
    say(" now", open(in_place("pipe"), O_WRONLY | O_NONBLOCK));
    line();
    unlink(in_place("pipe"));
}

/* ---- System V ---- */

static int id;

static void raise_all(void)
{
    struct sembuf up[30];

    for (int i = 0; i < 30; i++)
        up[i] = (struct sembuf){(unsigned short)i, 1, 0};
    semop(id, up, 30);
}

static void remove_set(void)
{
    semctl(id, 0, IPC_RMID);
}

static struct message {
    long type;
    char text[8000];
} message = {1, ""};

static void take_message(void)
{
    if (msgrcv(id, &message, sizeof message.text, 0, 0) < 0)
        _exit(1);
}

static void remove_queue(void)
{
    msgctl(id, IPC_RMID, NULL);
}

static void system_five(void)
{
    struct timespec second = {0, 200000000};
    struct sembuf down[30];

    for (int i = 0; i < 30; i++)
        down[i] = (struct sembuf){(unsigned short)i, -1, 0};
    id = semget(IPC_PRIVATE, 30, 0600);
    later(raise_all);
    say("semop", semop(id, down, 30));
    together();
    say(" timeout", semtimedop(id, down, 1, &second));
    later(remove_set);
    say(" gone", semop(id, down, 1));
    together();
    id = msgget(IPC_PRIVATE, 0600);
    while (msgsnd(id, &message, sizeof message.text, IPC_NOWAIT) == 0)
        continue;
    later(take_message);
    say(" msgsnd", msgsnd(id, &message, sizeof message.text, 0));
    together();
    while (msgrcv(id, &message, sizeof message.text, 0, IPC_NOWAIT) > 0)
        continue;
    later(remove_queue);
    say(" gone", msgrcv(id, &message, sizeof message.text, 0, 0));
    together();
    line();
}

/* ---- locks ---- */

static void hold_lock(int command, int fd)
{
    struct flock l = {.l_type = F_WRLCK};

    if (fcntl(fd, command, &l) != 0)
        _exit(1);
    nap(), nap();
}

static void locks(void)
{
    struct flock l = {.l_type = F_WRLCK};
    int fd = open(in_place("lock"), O_RDWR | O_CREAT, 0600), again;

    if (fork() == 0) {
        hold_lock(F_SETLK, fd);
        _exit(0);
    }
    nap();
    say("record lock", fcntl(fd, F_SETLKW, &l));
    together();
    l.l_type = F_UNLCK;
    fcntl(fd, F_SETLK, &l);
    if (fork() == 0) {
        again = open(in_place("lock"), O_RDWR);
        hold_lock(F_OFD_SETLK, again);
        _exit(0);
    }
    nap();
    l.l_type = F_WRLCK;
    say(" description lock", fcntl(fd, F_OFD_SETLKW, &l));
    together();
    say(" lease", fcntl(fd, F_GETLEASE));
    line();
    close(fd);
    unlink(in_place("lock"));
}

/* ---- children and signals ---- */

static void nothing(void)
{
}

static void *signal_main(void *arg)
{
    nap();
    syscall(SYS_tgkill, getpid(), getpid(), (int)(long)arg);
    return NULL;
}

static void children(void)
{
    sigset_t set, empty;
    pthread_t t;
    int fd, pid;
    struct signalfd_siginfo info;
    struct sigaction sa = {.sa_handler = on_alarm};

    later(nothing);
    say("waitid", waitid(P_ALL, 0, NULL, WEXITED));
    pid = later(nothing);
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    say(" by descriptor", waitid((idtype_t)3 /* P_PIDFD */, (id_t)fd, NULL, WEXITED));
    close(fd);
    say(" nobody", waitid(P_ALL, 0, NULL, WEXITED));
    sigemptyset(&set), sigemptyset(&empty);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGUSR2, &sa, NULL);
    pthread_create(&t, NULL, signal_main, (void *)(long)SIGUSR1);
    say(" sigwaitinfo", sigwaitinfo(&set, NULL));
    pthread_join(t, NULL);
    fd = signalfd(-1, &set, 0);
    pthread_create(&t, NULL, signal_main, (void *)(long)SIGUSR1);
    say(" signalfd", read(fd, &info, sizeof info));
    pthread_join(t, NULL);
    close(fd);
    pthread_create(&t, NULL, signal_main, (void *)(long)SIGUSR2);
    say(" sigsuspend", sigsuspend(&empty));
    pthread_join(t, NULL);
    line();
}

/* ---- event descriptors, sets ---- */

static int event;

static void read_event(void)
{
    uint64_t n;

    if (read(event, &n, sizeof n) < 0)
        _exit(1);
}

static void make_file(void)
{
    close(open(in_place("new"), O_CREAT | O_WRONLY, 0600));
}

static void events(void)
{
    uint64_t most = UINT64_MAX - 1, one = 1;
    char text[512];
    int fd;

    event = eventfd(0, 0);
    say("eventfd", write(event, &most, sizeof most));
    later(read_event);
    say(" full", write(event, &one, sizeof one));
    together();
    close(event);
    fd = inotify_init();
    inotify_add_watch(fd, place, IN_CREATE);
    later(make_file);
    say(" inotify", read(fd, text, sizeof text) > 0);
    together();
    close(fd);
    unlink(in_place("new"));
    line();
}

static void sets(void)
{
    static fd_set three[8]; /* room for 8,192 */
    struct timeval tv = {10, 0};
    int high = 8000;

    pipes(tube), pipes(other);
    FD_SET(tube[0], &three[0]);
    FD_SET(other[0], &three[0]);
    later(write_abc);
    say("select", select(other[1] + 1, &three[0], NULL, NULL, &tv));
    together();
    say(" first", FD_ISSET(tube[0], &three[0]) != 0);
    say(" second", FD_ISSET(other[0], &three[0]) != 0);
    say(" left", tv.tv_sec == 9);
    memset(three, 0, sizeof three);
    FD_SET(other[0], &three[0]);
    tv = (struct timeval){0, 100000};
    say(" wide", select(high, three, NULL, NULL, &tv));
    say(" empty", !FD_ISSET(other[0], &three[0]));
    line();
    close_all(tube), close_all(other);
}

/* ---- writes that take several goes ---- */

static void drain_slowly(void)
{
    static char all[65536];

    close(tube[1]);
    while (read(tube[0], all, sizeof all) > 0)
        continue;
}

static void *drain_after_alarm(void *arg)
{
    (void)arg;
    nap();
    syscall(SYS_tgkill, getpid(), getpid(), SIGALRM);
    return NULL;
}

static void large(void)
{
    struct iovec v[3] = {{block, 70000}, {block, 1}, {block, 80000}};
    struct sigaction sa = {.sa_handler = on_alarm};
    pthread_t t;

    pipes(tube);
    later(drain_slowly);
    close(tube[0]);
    say("writev", writev(tube[1], v, 3));
    say(" pwritev2", pwritev2(tube[1], v, 3, -1, 0));
    close(tube[1]);
    together();
    pipes(tube);
    say(" at once", preadv2(tube[0], v, 1, -1, RWF_NOWAIT));
    sigaction(SIGALRM, &sa, NULL);
    pthread_create(&t, NULL, drain_after_alarm, NULL);
    say(" interrupted", write(tube[1], block, 100000));
    pthread_join(t, NULL);
    say(" flags", fcntl(tube[1], F_GETFL) & O_NONBLOCK);
    line();
    close_all(tube);
}

/* ---- memory that is shared ---- */

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
};

static void shared_memory(void)
{
    struct shared *s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t m;
    pthread_condattr_t c;

    pthread_mutexattr_init(&m);
    pthread_mutexattr_setpshared(&m, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&c);
    pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&s->lock, &m);
    pthread_cond_init(&s->changed, &c);
    pid_t child = fork();
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&s->lock);
        while (s->turn % 2 != (child == 0))
            pthread_cond_wait(&s->changed, &s->lock);
        s->turn++;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    if (child == 0)
        _exit(0);
    together();
    say("shared memory", s->turn);
    line();
    munmap(s, sizeof *s);
}

int main(int argc, char **argv)
{
    snprintf(place, sizeof place, "%s/meets", argc > 1 ? argv[1] : ".");
    if (mkdir(place, 0700) != 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    splices();
    pages();
    files();
    message_queues();
    named_pipes();
    system_five();
    locks();
    children();
    events();
    sets();
    large();
    shared_memory();
    sockets(place);
    rmdir(place);
    return 0;
}
