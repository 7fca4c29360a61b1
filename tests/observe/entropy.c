/* Everything random that a program can ask for, and every way to ask wrongly: says what it got, one
 * line each. Run natively and in a world: what is not random must be the same. */
#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 300000 };

/* "name result error" and, where bytes came, what they are. */
static void say(const char *name, long result, const void *bytes, size_t len)
{
    const unsigned char *b = bytes;

    printf("%s %ld %s", name, result, result < 0 ? strerrorname_np(errno) : "-");
    if (bytes)
        printf(" ");
    for (size_t i = 0; bytes && i < len; i++)
        printf("%02x", b[i]);
    printf("\n");
    fflush(stdout);
}

static long ask(void *to, size_t len, unsigned flags)
{
    return syscall(SYS_getrandom, to, len, flags);
}

/* A digest that shows each byte's change. */
static unsigned long mix(const unsigned char *b, size_t len)
{
    unsigned long h = 14695981039346656037UL;

    for (size_t i = 0; i < len; i++)
        h = (h ^ b[i]) * 1099511628211UL;
    return h;
}

static unsigned char large[LARGE];

static void calls(void)
{
    unsigned char b[64] = {0};
    unsigned char *edge =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long h;
    long n;

    mprotect(edge + PAGE, PAGE, PROT_NONE);
    say("plain", ask(b, 16, 0), b, 16);
    say("nonblock", ask(b, 16, GRND_NONBLOCK), b, 16);
    say("random", ask(b, 16, GRND_RANDOM), b, 16);
    say("insecure", ask(b, 16, 4), b, 16);
    say("!flags", ask(b, 16, 8), NULL, 0);
    say("!both", ask(b, 16, GRND_RANDOM | 4), NULL, 0);
    say("!nowhere", ask(NULL, 16, 0), NULL, 0);
    say("!kernel", ask((void *)(1UL << 63), 16, 0), NULL, 0);
    say("!closed", ask(edge + PAGE, 16, 0), NULL, 0);
    say("!nothing", ask(NULL, 0, 0), NULL, 0);
    memset(edge, 0, PAGE);
    n = ask(edge + PAGE - 10, 32, 0);
    say("edge", n, edge + PAGE - 10, 10);
    n = ask(large, LARGE, 0);
    h = mix(large, LARGE);
    say("large", n, &h, sizeof h);
}

static void devices(const char *path)
{
    unsigned char b[64] = {0}, c[3], d[5];
    struct iovec v[2] = {{c, sizeof c}, {d, sizeof d}};
    struct {
        struct iovec own[2];
        unsigned char more[32];
    } inside = {.own = {{&inside, sizeof inside}, {b, 8}}};
    int fd = open(path, O_RDONLY), writer = open(path, O_WRONLY), bare = open(path, O_PATH);
    int bits = 0;
    off_t at;
    unsigned long h;
    long n;

    printf("!device %s\n", path);
    say("read", read(fd, b, 16), b, 16);
    say("pread", pread(fd, b, 16, 99), b, 16);
    n = readv(fd, v, 2);
    memcpy(b, c, 3), memcpy(b + 3, d, 5);
    say("readv", n, b, 8);
    n = preadv2(fd, v, 2, 0, RWF_NOWAIT);
    memcpy(b, c, 3), memcpy(b + 3, d, 5);
    say(n < 0 ? "!preadv2" : "preadv2", n, n < 0 ? NULL : b, 8);
    n = readv(fd, inside.own, 2);
    say("inside", n, &inside, sizeof inside);
    say("dup", read(dup(fd), b, 16), b, 16);
    say("!writer", read(writer, b, 16), NULL, 0);
    say("!bare", read(bare, b, 16), NULL, 0);
    say("!nowhere", syscall(SYS_read, fd, 0, 16), NULL, 0);
    say("!nothing", read(fd, b, 0), NULL, 0);
    say("!negative", pread(fd, b, 16, -1), NULL, 0);
    n = read(fd, large, LARGE);
    h = mix(large, LARGE);
    say("large", n, &h, sizeof h);
    at = lseek(fd, 0, SEEK_CUR);
    say("!seek", at, NULL, 0);
    say("!count", ioctl(fd, RNDGETENTCNT, &bits), NULL, 0);
    say("!bits", bits, NULL, 0);
    say("!count-nowhere", ioctl(fd, RNDGETENTCNT, NULL), NULL, 0);
    say("!odd", ioctl(fd, _IO(0x52, 99)), NULL, 0);
    say("!map", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0, NULL, 0);
    close(fd);
    close(writer);
    close(bare);
}

static void copies(void)
{
    unsigned char b[64];
    int fd = open("/dev/urandom", O_RDONLY), writer = open("/dev/urandom", O_WRONLY);
    int file = open("/tmp", O_TMPFILE | O_RDWR, 0600), p[2], s[2];
    off_t at = 7;
    loff_t from = 3, into = 0;
    unsigned long h;
    long n;

    if (pipe(p) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) < 0)
        exit(2);
    n = splice(fd, NULL, p[1], NULL, 16, 0);
    say("splice", n, b, (size_t)read(p[0], b, 16));
    n = splice(fd, &from, p[1], NULL, 16, SPLICE_F_NONBLOCK);
    say("splice-at", n, b, (size_t)read(p[0], b, 16));
    say("!moved", from, NULL, 0);
    say("!no-pipe", splice(fd, NULL, file, NULL, 16, 0), NULL, 0);
    say("!pipe-offset", splice(fd, NULL, p[1], &into, 16, 0), NULL, 0);
    say("!splice-flags", splice(fd, NULL, p[1], NULL, 16, 64), NULL, 0);
    say("!splice-writer", splice(writer, NULL, p[1], NULL, 16, 0), NULL, 0);
    say("!splice-nothing", splice(fd, NULL, p[1], NULL, 0, 0), NULL, 0);
    n = sendfile(s[0], fd, NULL, 16);
    say("sendfile", n, b, (size_t)read(s[1], b, 16));
    n = sendfile(file, fd, &at, LARGE);
    say("!all", n, NULL, 0);
    say("!offset", at, NULL, 0);
    n = pread(file, large, LARGE, 0);
    h = mix(large, LARGE);
    say("sendfile-large", n, &h, sizeof h);
    say("!place", lseek(file, 0, SEEK_CUR), NULL, 0);
    fcntl(file, F_SETFL, O_APPEND);
    say("!append", sendfile(file, fd, NULL, 16), NULL, 0);
    say("!sendfile-nowhere", sendfile(s[0], fd, (off_t *)8, 16), NULL, 0);
    at = -5;
    say("!sendfile-negative", sendfile(s[0], fd, &at, 16), NULL, 0);
    say("!range", copy_file_range(fd, NULL, file, NULL, 16, 0), NULL, 0);
}

static void *thread(void *arg)
{
    unsigned char b[16];

    say(arg, ask(b, 16, 0), b, 16);
    return NULL;
}

static void births(void)
{
    unsigned char b[16];
    char first[] = "thread-1", second[] = "thread-2";
    pthread_t t;

    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            say(i ? "child-2" : "child-1", ask(b, 16, 0), b, 16);
            _exit(0);
        }
        wait(NULL);
    }
    pthread_create(&t, NULL, thread, first);
    pthread_join(t, NULL);
    pthread_create(&t, NULL, thread, second);
    pthread_join(t, NULL);
    say("parent", ask(b, 16, 0), b, 16);
}

int main(int argc, char **argv)
{
    const void *given = (const void *)getauxval(AT_RANDOM);
    unsigned long canary;

    __asm__("mov %%fs:0x28, %0" : "=r"(canary));
    say(argc > 1 ? "auxv-again" : "auxv", 16, given, 16);
    say(argc > 1 ? "canary-again" : "canary", 8, &canary, 8);
    if (argc > 1)
        return 0;
    calls();
    devices("/dev/urandom");
    devices("/dev/random");
    copies();
    births();
    execl("/proc/self/exe", argv[0], "again", NULL);
    return 1;
}
