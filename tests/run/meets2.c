/* The second half of meets.c: sockets, and what both halves share. */
#include "meets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 27183 };

static char block[1 << 20];
static int pair[2];
static struct sockaddr_un where = {.sun_family = AF_UNIX};

void nap(void)
{
    struct timespec ts = {0, 30000000};

    nanosleep(&ts, NULL);
}

pid_t later(void (*act)(void))
{
    pid_t p = fork();

    if (p == 0) {
        nap();
        act();
        _exit(0);
    }
    return p;
}

void together(void)
{
    int status = 0;

    wait(&status);
    if (status != 0)
        printf("(%x)", (unsigned)status);
}

void say(const char *what, long result)
{
    if (result == -1)
        printf("%s -%d", what, errno);
    else
        printf("%s %ld", what, result);
}

void line(void)
{
    printf("\n");
    fflush(stdout);
}

void write_all(int fd, const void *data, size_t len)
{
    if (write(fd, data, len) != (ssize_t)len)
        _exit(1);
}

void pipes(int p[2])
{
    if (pipe(p) != 0)
        exit(1);
}

void close_all(int p[2])
{
    close(p[0]);
    close(p[1]);
}

long sendfile_all(int out, int in, off_t *at, size_t count)
{
    return sendfile(out, in, at, count);
}

/* ---- messages ---- */

static void send_pieces(void)
{
    for (int i = 0; i < 10; i++) {
        nap();
        if (send(pair[1], "0123456789", 10, 0) != 10)
            _exit(1);
    }
}

static void read_everything(void)
{
    size_t n = 0;
    ssize_t r;

    close(pair[0]);
    while ((r = recv(pair[1], block, 30000, 0)) > 0)
        n += (size_t)r;
    if (n != 1800100)
        _exit(1);
}

static void whole(void)
{
    struct iovec v[2] = {{block, 40}, {block, 60}};
    struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    later(send_pieces);
    say("all of it", recv(pair[0], block, 100, MSG_WAITALL));
    together();
    later(send_pieces);
    say(" in parts", recvmsg(pair[0], &h, MSG_WAITALL));
    together();
    later(send_pieces);
    say(" some", recv(pair[0], block, 100, 0));
    say(" the rest", recv(pair[0], block, 90, MSG_WAITALL));
    together();
    later(read_everything);
    close(pair[1]);
    v[0].iov_len = 500000, v[1].iov_len = 500000;
    say(" sendmsg", sendmsg(pair[0], &h, 0));
    say(" send", send(pair[0], block, 800000, 0));
    say(" write", write(pair[0], block, 100));
    say(" flags", fcntl(pair[0], F_GETFL) & O_NONBLOCK);
    close(pair[0]);
    together();
    line();
}

static void send_five(void)
{
    for (int i = 0; i < 5; i++) {
        nap();
        if (send(pair[1], "datagram", 3 + (size_t)i, 0) < 0)
            _exit(1);
    }
}

static void many(void)
{
    char text[5][16];
    struct iovec v[5];
    struct mmsghdr m[5] = {0};
    long n;

    for (int i = 0; i < 5; i++) {
        v[i] = (struct iovec){text[i], sizeof text[i]};
        m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
    }
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0)
        return;
    later(send_five);
    say("many", recvmmsg(pair[0], m, 5, 0, NULL));
    say(" last", m[4].msg_len);
    together();
    later(send_five);
    n = recvmmsg(pair[0], m, 5, MSG_WAITFORONE, NULL);
    say(" one", n >= 1 && n < 5);
    for (; n < 5; n++)
        recv(pair[0], text, sizeof text, 0);
    together();
    close_all(pair);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    for (int i = 0; i < 5; i++)
        v[i] = (struct iovec){block, 200000};
    v[4].iov_len = 1;
    if (fork() == 0) {
        size_t all = 0;
        ssize_t r;

        close(pair[0]);
        while ((r = recv(pair[1], block, 100000, 0)) > 0)
            all += (size_t)r;
        _exit(all == 800001 ? 0 : 1);
    }
    close(pair[1]);
    say(" sendmmsg", sendmmsg(pair[0], m, 5, 0));
    say(" third", m[2].msg_len);
    close(pair[0]);
    together();
    line();
}

/* ---- addresses ---- */

static int listener, client;

static void accept_all(void)
{
    for (int i = 0; i < 3; i++)
        close(accept(listener, NULL, NULL));
}

static void empty_queue(void)
{
    nap();
    while (recv(listener, block, sizeof block, 0) > 1)
        continue;
}

static int unix_socket(int type)
{
    return socket(AF_UNIX, type, 0);
}

static void full_backlog(void)
{
    struct timeval tv = {0, 200000};
    int s[3];

    listener = unix_socket(SOCK_STREAM);
    unlink(where.sun_path);
    if (bind(listener, (void *)&where, sizeof where) != 0 || listen(listener, 0) != 0)
        return;
    for (int i = 0; i < 3; i++)
        s[i] = unix_socket(SOCK_STREAM);
    say("connect", connect(s[0], (void *)&where, sizeof where));
    setsockopt(s[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    say(" too late", connect(s[1], (void *)&where, sizeof where));
    later(accept_all);
    say(" in the end", connect(s[2], (void *)&where, sizeof where));
    tv = (struct timeval){0};
    setsockopt(s[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    say(" and this", connect(s[1], (void *)&where, sizeof where));
    together();
    tv = (struct timeval){0, 200000};
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    say(" nobody", accept(listener, NULL, NULL));
    line();
    for (int i = 0; i < 3; i++)
        close(s[i]);
    close(listener);
    unlink(where.sun_path);
}

/* A datagram to an address: the socket is always writable, and still waits for its receiver. */
static void full_receiver(void)
{
    int s = unix_socket(SOCK_DGRAM), n = 0;

    listener = unix_socket(SOCK_DGRAM);
    if (bind(listener, (void *)&where, sizeof where) != 0)
        return;
    while (sendto(s, "xx", 2, MSG_DONTWAIT, (void *)&where, sizeof where) == 2)
        n++;
    say("datagrams", n > 0);
    later(empty_queue);
    say(" one more", sendto(s, "xx", 2, 0, (void *)&where, sizeof where));
    say(" last", sendto(s, "x", 1, 0, (void *)&where, sizeof where));
    together();
    line();
    close(s), close(listener);
    unlink(where.sun_path);
}

static void serve(void)
{
    int s = accept(listener, NULL, NULL);

    close(client);
    nap();
    /* How TCP cuts a stream depends on the kernel's own timers: whole pieces are read. */
    while (recv(s, block, 30000, MSG_WAITALL) > 0)
        continue;
    close(s);
}

static void over_tcp(void)
{
    /* Chosen by us: those that the kernel chooses differ from run to run. */
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in own = a;
    struct linger l = {1, 1};

    client = socket(AF_INET, SOCK_STREAM, 0);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    setsockopt(client, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    own.sin_port = htons(PORT + 1);
    if (bind(listener, (void *)&a, sizeof a) != 0 || listen(listener, 4) != 0 ||
        bind(client, (void *)&own, sizeof own) != 0) {
        printf("no port\n");
        return;
    }
    later(serve);
    say("tcp", connect(client, (void *)&a, sizeof a));
    say(" refused",
        connect(socket(AF_INET, SOCK_STREAM, 0),
                (void *)&(struct sockaddr_in){
                    .sin_family = AF_INET, .sin_port = htons(1), .sin_addr = a.sin_addr},
                sizeof a));
    setsockopt(client, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    say(" sent", send(client, block, sizeof block, 0));
    say(" closed", close(client));
    together();
    line();
    close(listener);
}

static void feed(void)
{
    write_all(pair[1], "four", 4);
}

static void spliced(void)
{
    int p[2];

    pipes(p);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    later(feed);
    say("socket to pipe", splice(pair[0], NULL, p[1], NULL, 100, 0));
    together();
    say(" and back", splice(p[0], NULL, pair[0], NULL, 100, 0));
    say(" arrived", recv(pair[1], block, 100, 0));
    line();
    close_all(p), close_all(pair);
}

void sockets(const char *place)
{
    snprintf(where.sun_path, sizeof where.sun_path, "%s/s", place);
    whole();
    many();
    full_backlog();
    full_receiver();
    over_tcp();
    spliced();
}
