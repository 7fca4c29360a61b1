/* Asks not to be looked at, then acts; its child does, too. Prints what it was told. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int before = prctl(PR_GET_DUMPABLE), set = prctl(PR_SET_DUMPABLE, 0);

    close(open("/etc/passwd", O_RDONLY));
    if (fork() == 0) {
        close(open("/etc/hostname", O_RDONLY));
        _exit(prctl(PR_GET_DUMPABLE));
    }
    int status = 1;
    wait(&status);
    printf("%d %d %d %d %d\n", before, set, prctl(PR_GET_DUMPABLE), status,
           prctl(PR_SET_DUMPABLE, 2));
    return 0;
}
