/* A request waits for room in a full socket; meanwhile another thread changes it. Prints what
 * arrived; test_race.py compares with what was recorded. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char request[] = "GET /kind HTTP/1.1\r\nHost: kind.example\r\n\r\n";
static char other[] = "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n";
static int pair[2];

static void *receive(void *arg)
{
    struct timespec nap = {0, 10000000};
    static char all[1 << 22];
    size_t len = 0;
    ssize_t n;
    char *at;

    (void)arg;
    nanosleep(&nap, NULL); /* the sender waits now */
    memcpy(request, other, sizeof other);
    while ((n = read(pair[1], all + len, sizeof all - len - 1)) > 0) {
        len += (size_t)n;
        at = memmem(all, len, "GET /", 5);
        if (at && len - (size_t)(at - all) >= sizeof request - 1) {
            printf("%.5s\n", at + 4);
            break;
        }
    }
    return NULL;
}

int main(void)
{
    static char fill[65536];
    pthread_t t;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        return 1;
    while (send(pair[0], fill, sizeof fill, MSG_DONTWAIT) > 0)
        continue;
    while (send(pair[0], fill, 1, MSG_DONTWAIT) > 0)
        continue;
    if (pthread_create(&t, NULL, receive, NULL) != 0)
        return 1;
    if (send(pair[0], request, sizeof request - 1, 0) < 0)
        return 1;
    pthread_join(t, NULL);
    return 0;
}
