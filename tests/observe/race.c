/* One thread opens a path while another changes it under its hands, and a third makes descriptors
 * mean other things. Prints what was really opened each time, as the kernel says; test_race.py
 * compares. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 2000 };
static char path[64] = "/etc/hostname";
static atomic_bool done;

/* A call between two changes, so that turns change at each of them. */
static void put(const char *text)
{
    memcpy(path, text, strlen(text) + 1);
    getppid();
}

static void *swap(void *arg)
{
    (void)arg;
    while (!done) {
        put("/etc/passwd");
        put("/etc/no-such");
        put("/etc/hostname");
    }
    return NULL;
}

int main(void)
{
    pthread_t t;

    if (pthread_create(&t, NULL, swap, NULL) != 0)
        return 1;
    for (int i = 0; i < ROUNDS; i++) {
        char link[64], name[128] = "";
        int fd = open(path, O_RDONLY);

        if (fd < 0)
            continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, name, sizeof name - 1) < 0)
            return 1;
        puts(name);
        close(fd);
    }
    done = true;
    pthread_join(t, NULL);
    return 0;
}
