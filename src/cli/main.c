/* The clean room: every command (door.c says how people come here). Started as "aquarium-jail JOB"
 * it is a child that can do nothing (jail/jail.h); otherwise it runs one command of commands.def.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cleanroom/intake.h"
#include "cli/cli.h"
#include "jail/jail.h"

const aq_command *const aq_commands[] = {
#define AQ_COMMAND(id) &aq_command_##id,
#include "cli/commands.def"
#undef AQ_COMMAND
    NULL};

static void print_help(FILE *to)
{
    fputs("aquarium is a clean room for packages from strangers: it says what it found,\n"
          "with proof.\n\n"
          "Usage: aquarium COMMAND [ARGUMENT…]\n"
          "       aquarium help [COMMAND] | --man [COMMAND] | --version\n\nCommands:\n",
          to);
    for (const aq_command *const *c = aq_commands; *c; c++)
        fprintf(to, "  %-12s %s\n", (*c)->name, (*c)->summary);
    fputs("\n'aquarium COMMAND --help' shows options, exit statuses and examples.\n"
          "Start with:\n"
          "  aquarium validate ./some-skill      look at a package before installing it\n"
          "  aquarium run --quarantine -- ./x    see what a program does, sealed off\n"
          "  aquarium doctor                     what can this machine guarantee?\n",
          to);
}

static const aq_command *find_command(const char *name)
{
    for (const aq_command *const *c = aq_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int unknown_command(const char *name)
{
    for (const aq_command *const *c = aq_commands; *c; c++)
        if (strlen(name) < 64 && aq_text_distance(name, (*c)->name, 2) <= 2)
            return aq_say_usage(NULL, "no command '%s'; did you mean '%s'?", name, (*c)->name);
    return aq_say_usage(NULL, "no command '%.60s'", name);
}

static int print_page(const aq_command *c, bool man)
{
    aq_auto_buf page = {0};

    if (man && c)
        aq_command_man(c, &page);
    else if (man)
        aq_overview_man(&page);
    else if (c)
        aq_command_help(c, &page);
    else
        print_help(stdout);
    fwrite(aq_buf_str(&page), 1, page.len, stdout);
    return fflush(stdout) == 0 ? 0 : AQ_EXIT_OURS;
}

/* help, --help, -h and --man, each with an optional command. */
static int show_page(int argc, char **argv)
{
    bool more = argc > 2 && strcmp(argv[2], "--help") != 0 && strcmp(argv[2], "-h") != 0;
    const aq_command *c = more ? find_command(argv[2]) : NULL;

    if (argc > 3)
        return aq_say_usage(NULL, "one argument too many: %.200s", argv[3]);
    if (more && !c)
        return unknown_command(argv[2]);
    return print_page(c, strcmp(argv[1], "--man") == 0);
}

int main(int argc, char **argv)
{
    static const char *const pages[] = {"help", "--help", "-h", "--man"};
    const aq_command *command;
    aq_args args;
    int r;

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(aq_jobs, argc, argv);
    aq_begin();
    if (argc < 2) {
        print_help(stderr);
        return AQ_EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        if (strcmp(argv[1], pages[i]) == 0)
            return show_page(argc, argv);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        strcmp(argv[1], "version") == 0) {
        if (argc > 2)
            return aq_say_usage(NULL, "one argument too many: %.200s", argv[2]);
        printf("aquarium %s\n", AQ_VERSION);
        return fflush(stdout) == 0 ? 0 : AQ_EXIT_OURS;
    }
    command = find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    r = aq_args_parse(command, argc - 2, argv + 2, &args);
    return r == AQ_PARSE_RUN ? command->run(&args) : r;
}
