/* Speaking to people: colour, width, and a state folder that cannot be opened; see cli.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"

int aq_open_home(const aq_command *c, const aq_args *args, bool make, aq_home *ret)
{
    const char *given = aq_arg(c, args, "state");
    aq_err err = {0};
    aq_auto_free char *path = aq_home_path(given, &err);
    int r;

    if (!path) {
        fprintf(stderr, "aquarium: %s\n", err.text);
        return AQ_EXIT_USAGE;
    }
    r = make ? aq_home_open(given, ret, &err) : aq_home_open_existing(given, ret, &err);
    if (r == 0)
        return AQ_PARSE_RUN;
    aq_say_failed(&err);
    return r == -ENOENT && !make ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
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
