/* One thread opens a path while another one changes it all the time. Prints what each open really
 * got, one letter each: the record must say the same. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPENS = 400 };
static char path[64] = "/etc/passwd";
static atomic_int stop;

static void *change(void *arg)
{
    for (unsigned i = 0; !stop; i++) {
        memcpy(path, i % 2 ? "/etc/group\0" : "/etc/passwd", 12);
        if (i % 3 == 0)
            sched_yield();
    }
    return arg;
}

int main(void)
{
    struct stat group;
    pthread_t t;

    if (stat("/etc/group", &group) != 0 || pthread_create(&t, NULL, change, NULL) != 0)
        return 1;
    for (int i = 0; i < OPENS; i++) {
        struct stat s;
        int fd = open(path, O_RDONLY);

        if (fd < 0 || fstat(fd, &s) != 0) {
            putchar('-'); /* a half-written path */
        } else {
            putchar(s.st_ino == group.st_ino ? 'g' : 'p');
            close(fd);
        }
        if (i % 5 == 0)
            sched_yield();
    }
    stop = 1;
    pthread_join(t, NULL);
    putchar('\n');
    return 0;
}
