/* Speaking to people and pipes: output, colour, width; see cli.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "cli/cli.h"

int aq_put(const char *path, const void *data, size_t len, aq_err *err)
{
    int r;

    if (path && strcmp(path, "-") != 0)
        return aq_write_file(AT_FDCWD, path, data, len, 0644, err);
    r = aq_write_full(STDOUT_FILENO, data, len);
    if (r == -EPIPE)
        return 0; /* the reader had seen enough */
    if (r < 0)
        return aq_fail(err, r, "cannot write to standard output: %s", strerror(-r));
    return 0;
}

int aq_put_json(const char *path, const json_t *value, aq_err *err)
{
    aq_auto_buf b = {0};

    aq_json_pretty(value, &b);
    return aq_put(path, b.data, b.len, err);
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
