/* A program one of whose acts hangs on one bit of one decoy: depend ACT SOURCE WHEN
 *
 * ACT is what it does more, SOURCE where it reads the decoy (a variable, or a path in its home),
 * and WHEN: `odd` acts when the last byte is odd, `always` and `never` act without regard to it, so
 * that they are the same program in both worlds. Before and after it does the same things in every
 * case. Further ones do the same acts in every case: in two only the threads go another way,
 * `waker` (who wakes whom) and `order` (who comes first), in the others one byte is another one. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void act_open(void)
{
    close(open("/etc/hostname", O_RDONLY));
}

static void act_stat(void)
{
    struct stat st;

    stat("/usr/bin/env", &st);
}

static void act_write(void)
{
    int fd = open("/tmp/left", O_WRONLY | O_APPEND);

    if (write(fd, "x", 1) < 0)
        perror("write");
    close(fd);
}

static void act_mkdir(void)
{
    mkdir("/tmp/folder", 0700);
}

static void act_unlink(void)
{
    unlink("/tmp/left");
}

static void act_put(void)
{
    if (write(3, "x", 1) < 0)
        perror("write");
}

static void act_connect(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(s, (struct sockaddr *)&to, sizeof to) == 0)
        puts("somebody is there");
    close(s);
}

/* Somebody of the world's internet, on port 80. */
static int reach(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0x5db8d822)};
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(s, (struct sockaddr *)&to, sizeof to) < 0)
        perror("connect");
    return s;
}

static void act_reach(void)
{
    close(reach());
}

static void act_name(void)
{
    struct addrinfo *found = NULL;

    if (getaddrinfo("odd.example.org", "80", NULL, &found) == 0)
        freeaddrinfo(found);
}

static void act_exec(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
}

static void *nothing(void *arg)
{
    return arg;
}

static void act_thread(void)
{
    pthread_t t;

    pthread_create(&t, NULL, nothing, NULL);
    pthread_join(t, NULL);
}

static void act_sleep(void)
{
    nanosleep(&(struct timespec){5, 0}, NULL);
}

static void act_output(void)
{
    if (write(1, "x", 1) < 0)
        perror("write");
}

static void act_signal(void)
{
    kill(getpid(), 0);
}

static void act_code(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void act_status(void)
{
    exit(7);
}

static const struct {
    const char *name;
    void (*act)(void);
} acts[] = {{"open", act_open},       {"stat", act_stat},     {"write", act_write},
            {"mkdir", act_mkdir},     {"unlink", act_unlink}, {"exec", act_exec},
            {"connect", act_connect}, {"thread", act_thread}, {"sleep", act_sleep},
            {"output", act_output},   {"signal", act_signal}, {"code", act_code},
            {"status", act_status},   {"put", act_put},       {"reach", act_reach},
            {"name", act_name}};

/* ---- the same acts another way ---- */

static int odd_way, words[3];

static void futex(int *word, int op, int value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void *waits(void *mine)
{
    futex(mine, FUTEX_WAIT, 0);
    if (mine == &words[0])
        futex(odd_way ? &words[1] : &words[2], FUTEX_WAKE, 1);
    return NULL;
}

/* The second is woken by the first thread or by the main one; the third word is nobody's. */
static void way_waker(void)
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, waits, &words[i]);
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    futex(odd_way ? &words[2] : &words[1], FUTEX_WAKE, 1);
    futex(&words[0], FUTEX_WAKE, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

static void *opens(void *name)
{
    int first = strcmp(name, "/etc/hostname") == 0, wait = odd_way == first;

    if (wait)
        sched_yield();
    close(open(name, O_RDONLY));
    if (!wait)
        sched_yield();
    for (int i = 0; first && i < 4; i++)
        sched_yield();
    return NULL;
}

/* Two that have nothing to do with each other. */
static void way_order(void)
{
    pthread_t t[2];

    pthread_create(&t[0], NULL, opens, (char *)"/etc/hostname");
    pthread_create(&t[1], NULL, opens, (char *)"/etc/hosts");
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}

/* ---- another byte ---- */

static void put(int fd, int letter)
{
    char byte = (char)letter;

    if (write(fd, &byte, 1) != 1)
        perror("write");
}

static int letter(void)
{
    return odd_way ? 'y' : 'x';
}

static void way_removed(void)
{
    int fd = open("/tmp/gone", O_WRONLY | O_CREAT, 0600);

    put(fd, letter());
    close(fd);
    unlink("/tmp/gone");
}

static void way_overwritten(void)
{
    int fd = open("/tmp/twice", O_WRONLY | O_CREAT, 0600);

    put(fd, letter());
    lseek(fd, 0, SEEK_SET);
    put(fd, 'z');
    close(fd);
}

static void way_kept(void)
{
    int fd = open("/tmp/kept", O_WRONLY | O_CREAT, 0600);

    put(fd, letter());
    close(fd);
}

static void way_output(void)
{
    put(1, letter());
}

static void way_vector(void)
{
    char byte = (char)letter();
    struct iovec v[2] = {{.iov_base = (char *)"same", .iov_len = 4}, {&byte, 1}};
    int fd = open("/dev/full", O_WRONLY), p[2];

    if (writev(fd, v, 2) >= 0 || pipe(p) < 0 || writev(p[1], v, 2) != 5)
        perror("writev");
    close(p[0]);
    close(p[1]);
    close(fd);
}

static void way_pipe(void)
{
    char byte;
    int p[2];

    if (pipe(p) < 0)
        return;
    put(p[1], letter());
    if (read(p[0], &byte, 1) != 1)
        perror("read");
    close(p[0]);
    close(p[1]);
}

/* More than the pipe takes at once; a thread reads. */
static void *reads(void *fd)
{
    static char bytes[1 << 16];

    while (read(*(int *)fd, bytes, sizeof bytes) > 0)
        continue;
    return NULL;
}

static void way_waiting(void)
{
    static char bytes[300000];
    pthread_t t;
    int p[2];

    bytes[250000] = (char)letter();
    if (pipe(p) < 0)
        return;
    pthread_create(&t, NULL, reads, &p[0]);
    if (write(p[1], bytes, sizeof bytes) != sizeof bytes)
        perror("write");
    close(p[1]);
    pthread_join(t, NULL);
    close(p[0]);
}

static void way_datagram(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int hears = socket(AF_INET, SOCK_DGRAM, 0), says = socket(AF_INET, SOCK_DGRAM, 0);
    socklen_t len = sizeof to;
    char byte = (char)letter();

    if (bind(hears, (struct sockaddr *)&to, len) < 0 ||
        getsockname(hears, (struct sockaddr *)&to, &len) < 0 ||
        sendto(says, &byte, 1, 0, (struct sockaddr *)&to, len) != 1 ||
        recv(hears, &byte, 1, 0) != 1)
        perror("datagram");
    close(hears);
    close(says);
}

static void way_message(void)
{
    char byte = (char)letter();
    struct iovec v = {&byte, 1};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    int s[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0 || sendmsg(s[0], &h, 0) != 1)
        perror("message");
    close(s[0]);
    close(s[1]);
}

/* A letter in a request, and one in what no reader understands. */
static void say(const char *text)
{
    char answer[4096];
    int s = reach();

    if (write(s, text, strlen(text)) < 0)
        perror("write");
    while (read(s, answer, sizeof answer) > 0)
        continue;
    close(s);
}

static void way_request(void)
{
    char text[] = "GET /a HTTP/1.0\r\nHost: odd.example.org\r\n\r\n";

    text[5] = (char)letter();
    say(text);
}

static void way_body(void)
{
    char text[] = "PUT /a HTTP/1.0\r\nHost: odd.example.org\r\nContent-Length: 3\r\n\r\n...";

    text[sizeof text - 2] = (char)letter();
    say(text);
}

static void way_child(void)
{
    char variable[] = "WAY=.";
    char *const env[] = {variable, NULL}, *const argv[] = {(char *)"true", NULL};
    pid_t pid;

    variable[4] = (char)letter();
    pid = fork();
    if (pid == 0) {
        execve("/bin/true", argv, env);
        _exit(1);
    }
    waitpid(pid, NULL, 0);
}

/* The thirty-eighth of forty, through one descriptor and through one each. */
static void way_many(void)
{
    int fd = open("/tmp/gone", O_WRONLY | O_CREAT, 0600);

    for (int i = 0; i < 40; i++)
        put(fd, i == 37 ? letter() : '.');
    close(fd);
    unlink("/tmp/gone");
}

static void way_again(void)
{
    for (int i = 0; i < 40; i++) {
        int fd = open("/tmp/gone", O_WRONLY | O_CREAT | O_TRUNC, 0600);

        put(fd, i == 37 ? letter() : '.');
        close(fd);
    }
    unlink("/tmp/gone");
}

static const struct {
    const char *name;
    void (*go)(void);
} ways[] = {{"waker", way_waker},     {"order", way_order},
            {"removed", way_removed}, {"overwritten", way_overwritten},
            {"kept", way_kept},       {"pipe", way_pipe},
            {"vector", way_vector},   {"waiting", way_waiting},
            {"letter", way_output},   {"datagram", way_datagram},
            {"message", way_message}, {"child", way_child},
            {"request", way_request}, {"body", way_body},
            {"many", way_many},       {"again", way_again}};

/* The last byte of the first line. */
static int read_decoy(const char *source)
{
    static char text[8192];
    char path[4096];
    ssize_t n;
    int fd;

    if (!strchr(source, '/')) {
        const char *value = getenv(source);

        return value && *value ? value[strlen(value) - 1] : 0;
    }
    snprintf(path, sizeof path, "%s/%s", getenv("HOME"), source);
    fd = open(path, O_RDONLY);
    n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return *text ? text[strlen(text) - 1] : 0;
}

static void same_for_all(const char *name)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (write(fd, "same\n", 5) < 0)
        perror("write");
    close(fd);
    printf("%s\n", name);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int byte;

    if (argc != 4 || (byte = read_decoy(argv[2])) == 0)
        return 64;
    same_for_all("/tmp/left");
    if (open("/tmp/open", O_WRONLY | O_CREAT, 0600) != 3)
        return 65;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, argv[1]) == 0 &&
            (strcmp(argv[3], "odd") == 0 ? byte & 1 : strcmp(argv[3], "always") == 0))
            acts[i].act();
    odd_way = strcmp(argv[3], "odd") == 0 && byte & 1;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(ways[i].name, argv[1]) == 0)
            ways[i].go();
    same_for_all("/tmp/right");
    return 0;
}
