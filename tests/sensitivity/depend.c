/* A program one of whose acts hangs on one bit of one decoy: depend ACT SOURCE WHEN
 *
 * ACT is what it does more, SOURCE where it reads the decoy (a variable, or a path in its home),
 * and WHEN: `odd` acts when the last byte is odd, `always` and `never` act without regard to it, so
 * that they are the same program in both worlds. Before and after it does the same things in every
 * case. Two more do the same acts in every case, and only their threads go another way: `waker`
 * (who wakes whom) and `order` (who comes first). */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
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

static void act_connect(void)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(s, (struct sockaddr *)&to, sizeof to) == 0)
        puts("somebody is there");
    close(s);
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
            {"status", act_status}};

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

static const struct {
    const char *name;
    void (*go)(void);
} ways[] = {{"waker", way_waker}, {"order", way_order}};

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
