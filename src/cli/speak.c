/* Speaking to people: colour, width, spans of time; see cli.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "kernel/allowance.h"

/* Where 0, 1 or 2 is closed the next file that is opened gets its number, and what is said to the
 * user would go into it. What takes its place ends at once, and cannot be written: an output that
 * is lost is told as one. */
void aq_begin(void)
{
    aq_err err = {0};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_RDWR : O_RDONLY) != fd)
            _exit(AQ_EXIT_OURS);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* else a child is gone before we hear of it */
    if (aq_allowance_take(&err) < 0)
        _exit(aq_say_failed(&err));
}

bool aq_colour(const char *choice, int fd)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    if (choice && strcmp(choice, "always") == 0)
        return true;
    if (choice && strcmp(choice, "never") == 0)
        return false;
    if (no && *no)
        return false;
    return isatty(fd) && term && strcmp(term, "dumb") != 0;
}

unsigned aq_terminal_width(int fd)
{
    struct winsize size;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        return size.ws_col > 120 ? 120 : size.ws_col;
    return 80;
}

int aq_parse_span(const char *text, int64_t *ret)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno || end == text || n < 0 || n > 100000000 || !*end || end[1])
        return -EINVAL;
    switch (*end) {
    case 'd':
        *ret = n * 86400;
        return 0;
    case 'h':
        *ret = n * 3600;
        return 0;
    case 'm':
        *ret = n * 60;
        return 0;
    case 's':
        *ret = n;
        return 0;
    default:
        return -EINVAL;
    }
}
