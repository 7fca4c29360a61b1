/* Writes into memory by /proc: its own code, which no mprotect made writable, and its child's.
 * Reads a file of /proc that has a name alike. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int word = 1;

static void set(pid_t pid, int value)
{
    char path[64];
    int fd;

    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    fd = open(path, O_RDWR);
    if (pwrite(fd, &value, sizeof value, (off_t)(uintptr_t)&word) != sizeof value)
        printf("refused ");
    close(fd);
}

int main(void)
{
    char text[64];
    int fd = open("/proc/meminfo", O_RDONLY), status = 0;
    pid_t child;

    if (read(fd, text, sizeof text) <= 0)
        return 1;
    set(getpid(), 2);
    printf("%d ", word);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        while (word == 2)
            pause();
        _exit(word);
    }
    set(child, 7);
    kill(child, SIGCONT);
    kill(child, SIGUSR1);
    waitpid(child, &status, 0);
    printf("%d\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}
