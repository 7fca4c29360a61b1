/* The state folder of a command, opened or explained; see cli.h. */
#include <errno.h>
#include <stdio.h>

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
