/* Floods of several kinds, with one act of note in the middle. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct stat s;
    char name[256];

    if (argc != 2)
        return 64;
    for (int i = 0; i < 3000; i++)
        syscall(SYS_stat, "/etc/passwd", &s);
    for (int i = 0; i < 12000; i++) {
        snprintf(name, sizeof name, "%s/%d", argv[1], i);
        syscall(SYS_access, name, F_OK);
        if (i == 11000)
            close(open("/etc/hostname", O_RDONLY));
    }
    for (int i = 0; i < 5000; i++)
        syscall(SYS_getppid);
    return 0;
}
