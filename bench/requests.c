/* Requests a second, by one client that waits for each answer: the load of bench/internet.
 *
 *   bench_requests ADDRESS PORT COUNT kept|new|tls
 *
 * kept: all on one connection; new: each on its own; tls: each on its own, with a handshake. Prints
 * the requests a second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in to;

static void fail(const char *what)
{
    fprintf(stderr, "bench_requests: %s\n", what);
    exit(1);
}

static int reach(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        fail("cannot connect");
    return fd;
}

static ssize_t hear(SSL *ssl, int fd, char *data, size_t room)
{
    return ssl ? SSL_read(ssl, data, (int)room) : recv(fd, data, room, 0);
}

static void one(SSL *ssl, int fd)
{
    static const char text[] = "GET /v1/thing HTTP/1.1\r\nHost: example.org\r\n\r\n";
    static char data[65536];
    size_t have = 0, want = 0;

    if (ssl ? SSL_write(ssl, text, sizeof text - 1) <= 0
            : send(fd, text, sizeof text - 1, MSG_NOSIGNAL) < 0)
        fail("cannot send");
    while (want == 0 || have < want) {
        ssize_t n = hear(ssl, fd, data + have, sizeof data - 1 - have);
        char *end, *length;

        if (n <= 0)
            fail("no whole answer");
        have += (size_t)n;
        data[have] = '\0';
        end = strstr(data, "\r\n\r\n");
        if (want > 0 || !end)
            continue;
        length = strcasestr(data, "content-length: ");
        if (!length || strncmp(data, "HTTP/1.", 7) != 0)
            fail("no such answer");
        want = (size_t)(end - data) + 4 + strtoul(length + 16, NULL, 10);
    }
}

int main(int argc, char **argv)
{
    long count = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    struct timespec from, until;
    char how = argc == 5 ? argv[4][0] : '?';
    int fd = -1;

    if (count <= 0 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1)
        fail("usage: bench_requests ADDRESS PORT COUNT kept|new|tls");
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < count; i++) {
        SSL *ssl = NULL;

        if (fd < 0)
            fd = reach();
        if (how == 't') {
            ssl = SSL_new(ctx);
            SSL_set_fd(ssl, fd);
            if (SSL_connect(ssl) != 1)
                fail("no handshake");
        }
        one(ssl, fd);
        if (how != 'k') {
            SSL_free(ssl);
            close(fd);
            fd = -1;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    printf("%.0f\n", (double)count / ((double)(until.tv_sec - from.tv_sec) +
                                      (double)(until.tv_nsec - from.tv_nsec) / 1e9));
    return 0;
}
