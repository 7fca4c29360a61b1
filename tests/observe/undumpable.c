/* Makes its memory unreadable to those without rights over it, then acts. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    prctl(PR_SET_DUMPABLE, 0);
    close(open("/etc/passwd", O_RDONLY));
    return 0;
}
