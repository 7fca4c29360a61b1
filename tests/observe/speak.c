/* Says the same things over streams in every way there is; test_speak.py compares with what was
 * recorded. Each conversation has a socket of its own. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int pair[2];

static void open_pair(void)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        _exit(1);
}

static void close_pair(void)
{
    close(pair[0]);
    close(pair[1]);
}

static void put(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len)
        _exit(1);
}

static size_t request(char *out, const char *host)
{
    return (size_t)sprintf(out, "GET /%s HTTP/1.1\r\nAccept: */*\r\nHost: %s.example\r\n\r\n", host,
                           host);
}

static void by_bytes(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        put(pair[0], data + i, 1);
}

/* A TLS greeting for this name, in records of at most `piece` bytes. */
static size_t greeting(unsigned char *out, const char *name, size_t piece)
{
    unsigned char h[256] = {1, 0, 0, 0, 3, 3};
    size_t n = 6 + 32, len = strlen(name), at = 0, done = 0;

    h[n++] = 0;
    memcpy(h + n, "\0\2\x13\1\1\0", 6), n += 6;
    h[n++] = 0, h[n++] = (unsigned char)(len + 9);
    h[n++] = 0, h[n++] = 0;
    h[n++] = 0, h[n++] = (unsigned char)(len + 5);
    h[n++] = 0, h[n++] = (unsigned char)(len + 3);
    h[n++] = 0, h[n++] = 0, h[n++] = (unsigned char)len;
    memcpy(h + n, name, len), n += len;
    h[3] = (unsigned char)(n - 4);
    while (done < n) {
        size_t now = n - done < piece ? n - done : piece;

        memcpy(out + at, "\x16\3\1\0", 4);
        out[at + 4] = (unsigned char)now;
        memcpy(out + at + 5, h + done, now);
        at += 5 + now, done += now;
    }
    return at;
}

static void pieces(void)
{
    char text[256];
    size_t n = request(text, "bytes");
    struct iovec v[3] = {{text, 1}, {text + 1, 5}, {text + 6, 3}};
    struct iovec w[2] = {{text + 9, 4}, {text + 13, 2}};
    struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = w, .msg_iovlen = 2}}};

    open_pair();
    by_bytes(text, n);
    close_pair();
    n = request(text, "mixed");
    open_pair();
    if (writev(pair[0], v, 3) != 9 || sendmsg(pair[0], &m[0].msg_hdr, 0) != 6)
        _exit(1);
    w[0] = (struct iovec){text + 15, 10};
    w[1] = (struct iovec){text + 25, n - 25};
    m[0].msg_hdr = (struct msghdr){.msg_iov = &w[0], .msg_iovlen = 1};
    m[1].msg_hdr = (struct msghdr){.msg_iov = &w[1], .msg_iovlen = 1};
    if (sendmmsg(pair[0], m, 2, 0) != 2)
        _exit(1);
    close_pair();
}

static void several(void)
{
    char text[1024];
    size_t n = request(text, "first");

    n += request(text + n, "second");
    open_pair();
    put(pair[0], text, n);
    close_pair();
    n = (size_t)sprintf(text,
                        "POST /form HTTP/1.1\r\nHost: form.example\r\nContent-Length: 200\r\n\r\n");
    open_pair();
    put(pair[0], text, n);
    memset(text, ' ', 200);
    request(text, "body");
    put(pair[0], text, 100); /* no request: it is the body of one */
    put(pair[0], text, 100);
    n = request(text, "after");
    by_bytes(text, n);
    close_pair();
}

static void greetings(void)
{
    unsigned char text[1024];
    char head[256];
    size_t n = greeting(text, "bytes.tls.example", 250);

    open_pair();
    by_bytes((char *)text, n);
    close_pair();
    n = greeting(text, "records.tls.example", 7);
    open_pair();
    put(pair[0], text, n);
    close_pair();
    n = (size_t)sprintf(head,
                        "CONNECT tunnel.example:443 HTTP/1.1\r\nHost: tunnel.example\r\n\r\n");
    open_pair();
    put(pair[0], head, n);
    n = greeting(text, "inner.tls.example", 250);
    put(pair[0], text, n);
    n = request(head, "never-in-clear");
    put(pair[0], head, n);
    close_pair();
}

static void past_memory(void)
{
    char text[256];
    size_t n = request(text, "file");
    int fd = memfd_create("x", 0), p[2], second;
    off_t at = 0;

    put(fd, text, n);
    open_pair();
    if (sendfile(pair[0], fd, &at, 20) != 20 || sendfile(pair[0], fd, &at, 1000) != (ssize_t)n - 20)
        _exit(1);
    close_pair();
    n = request(text, "pipe");
    open_pair();
    if (pipe(p) != 0)
        _exit(1);
    put(p[1], text, n);
    if (splice(p[0], NULL, pair[0], NULL, 1000, 0) != (ssize_t)n)
        _exit(1);
    close_pair();
    n = request(text, "family");
    open_pair();
    second = dup(pair[0]);
    put(pair[0], text, 10);
    put(second, text + 10, 10);
    if (fork() == 0) {
        put(second, text + 20, n - 20);
        _exit(0);
    }
    wait(NULL);
    close(second);
    close_pair();
}

static void ends(void)
{
    static const char cut[] = "GET /cut HTTP/1.1\r\nHost: cut.example\r\n";
    static const char plain[] = "GETTING STARTED\nHost: nobody.example\n\nSET x\r\nGET x\r\n";
    static char large[20000];

    open_pair();
    by_bytes(cut, sizeof cut - 1);
    close_pair();
    open_pair();
    by_bytes(plain, sizeof plain - 1);
    put(pair[0], "\x16\3\1\0\2\2\0", 7); /* a greeting of a server */
    close_pair();
    open_pair();
    memset(large, 'x', sizeof large);
    memcpy(large, "GET /large HTTP/1.1\r\nX: ", 24);
    put(pair[0], large, sizeof large);
    close_pair();
}

static size_t question(unsigned char *out, int number)
{
    char name[16];
    int len = snprintf(name, sizeof name, "q%d", number);

    memcpy(out, "\0\1\1\0\0\1\0\0\0\0\0\0", 12);
    out[12] = (unsigned char)len;
    memcpy(out + 13, name, (size_t)len);
    memcpy(out + 13 + len, "\7example\0\0\1\0\1", 13);
    return (size_t)len + 26;
}

static void questions(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(53)};
    static unsigned char text[100][64];
    struct iovec v[100];
    struct mmsghdr m[100] = {0};
    int server = socket(AF_INET, SOCK_DGRAM, 0), s = socket(AF_INET, SOCK_DGRAM, 0);

    inet_pton(AF_INET, "127.77.0.53", &a.sin_addr);
    if (bind(server, (void *)&a, sizeof a) != 0)
        return;
    for (int i = 0; i < 100; i++) {
        v[i] = (struct iovec){text[i], question(text[i], i)};
        m[i].msg_hdr = (struct msghdr){
            .msg_iov = &v[i], .msg_iovlen = 1, .msg_name = &a, .msg_namelen = sizeof a};
    }
    printf("%d ", sendmmsg(s, m, 100, 0));
    close(s), close(server);
    server = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(server, (void *)&a, sizeof a) != 0 || listen(server, 1) != 0 ||
        connect(s, (void *)&a, sizeof a) != 0)
        return;
    text[0][1] = (unsigned char)question(text[0] + 2, 1000);
    text[0][0] = 0;
    for (size_t i = 0; i < (size_t)text[0][1] + 2; i++)
        put(s, text[0] + i, 1);
    printf("asked\n");
}

int main(void)
{
    pieces();
    several();
    greetings();
    past_memory();
    ends();
    questions();
    return 0;
}
