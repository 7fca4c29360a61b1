/* Command lines: parsing and help, both drawn from a command's own description; see cli.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/cli.h"
#include "kernel/allowance.h"

static size_t option_count(const aq_command *c)
{
    size_t n = 0;

    while (c->options[n].name)
        n++;
    return n;
}

static int find_option(const aq_command *c, const char *name, size_t len)
{
    for (size_t i = 0; c->options[i].name; i++)
        if (strlen(c->options[i].name) == len && memcmp(c->options[i].name, name, len) == 0)
            return (int)i;
    return -1;
}

const char *aq_arg(const aq_command *c, const aq_args *a, const char *name)
{
    int i = find_option(c, name, strlen(name));

    if (i < 0)
        aq_panic("%s has no option --%s", c->name, name);
    return a->value[i];
}

bool aq_flag(const aq_command *c, const aq_args *a, const char *name)
{
    return aq_arg(c, a, name) != NULL;
}

int aq_say_usage(const aq_command *c, const char *fmt, ...)
{
    aq_auto_buf text = {0};
    aq_err err;
    va_list ap;

    va_start(ap, fmt);
    aq_buf_addv(&text, fmt, ap);
    va_end(ap);
    aq_fail(&err, -EINVAL, "%s", aq_buf_str(&text)); /* words of the command line made printable */
    fprintf(stderr, "aquarium: %s%s%s\n", c ? c->name : "", c ? ": " : "", err.text);
    fprintf(stderr, "See 'aquarium %s%s--help'.\n", c ? c->name : "", c ? " " : "");
    return AQ_EXIT_USAGE;
}

int aq_say_failed(const aq_err *err)
{
    char hint[128];

    fprintf(stderr, "aquarium: %s%s\n", err->text[0] ? err->text : "failed",
            aq_allowance_hint(err->code, hint, sizeof hint));
    return AQ_EXIT_OURS;
}

/* The option that was probably meant, for the message. */
static const char *nearest_option(const aq_command *c, const char *name)
{
    const char *best = NULL;
    size_t least = 3;

    for (size_t i = 0; c->options[i].name; i++) {
        size_t d = aq_text_distance(name, c->options[i].name, 2);
        if (d < least) {
            least = d;
            best = c->options[i].name;
        }
    }
    return best;
}

static int parse_option(const aq_command *c, int argc, char **argv, int *at, aq_args *ret)
{
    const char *name = argv[*at] + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    int i = find_option(c, name, len);

    if (i < 0) {
        char shown[128];
        const char *meant;
        snprintf(shown, sizeof shown, "%.*s", (int)(len > 100 ? 100 : len), name);
        meant = nearest_option(c, shown);
        if (meant)
            return aq_say_usage(c, "unknown option --%s; did you mean --%s?", shown, meant);
        return aq_say_usage(c, "unknown option --%s", shown);
    }
    if (ret->value[i])
        return aq_say_usage(c, "--%s was given twice", c->options[i].name);
    if (!c->options[i].argument) {
        if (equals)
            return aq_say_usage(c, "--%s takes no value", c->options[i].name);
        ret->value[i] = "";
    } else {
        ret->value[i] = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : "";
        if (!*ret->value[i] || (!equals && strcmp(ret->value[i], "--") == 0))
            return aq_say_usage(c, "--%s needs a value (%s)", c->options[i].name,
                                c->options[i].argument);
    }
    return AQ_PARSE_RUN;
}

/* What went wrong, and what there is. */
static int say_acts(const aq_command *c, const char *what)
{
    aq_auto_buf names = {0};

    for (const aq_act *act = c->acts; act->name; act++)
        aq_buf_addf(&names, "%s%s", names.len ? ", " : "", act->name);
    return aq_say_usage(c, "%s: %s", what, aq_buf_str(&names));
}

int aq_args_parse(const aq_command *c, int argc, char **argv, aq_args *ret)
{
    bool only_operands = false;

    *ret = (aq_args){.operand = argv}; /* what was read makes room for what is kept */
    if (option_count(c) > AQ_OPTIONS)
        aq_panic("%s has too many options", c->name);
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!only_operands && strcmp(word, "--") == 0) {
            only_operands = true;
            if (c->takes_command) {
                ret->rest = argv + i + 1;
                break;
            }
        } else if (!only_operands && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            aq_auto_buf help = {0};
            aq_command_help(c, &help);
            fwrite(help.data, 1, help.len, stdout);
            return fflush(stdout) == 0 ? 0 : AQ_EXIT_OURS;
        } else if (!only_operands && strncmp(word, "--", 2) == 0) {
            int r = parse_option(c, argc, argv, &i, ret);
            if (r != AQ_PARSE_RUN)
                return r;
        } else if (!only_operands && word[0] == '-' && word[1]) {
            return aq_say_usage(c, "unknown option %.100s (options are long: --json)", word);
        } else if (c->takes_command && ret->operands == c->max_operands) {
            return aq_say_usage(c, "write -- before the command: -- %.200s …", word);
        } else if (ret->operands == c->max_operands) {
            return aq_say_usage(c, "one argument too many: %.200s", word);
        } else {
            argv[ret->operands++] = argv[i];
        }
    }
    if (ret->operands == 0 && c->acts && c->min_operands)
        return say_acts(c, "say what to do");
    if (ret->operands < c->min_operands)
        return aq_say_usage(c, "an argument is missing: aquarium %s %s", c->name, c->usage);
    return AQ_PARSE_RUN;
}

static bool act_fits(const aq_command *c, const aq_act *act, const aq_args *a)
{
    size_t given = a->operands - 1;

    if (given < act->least)
        aq_say_usage(c, "%s needs %s", act->name, act->needs ? act->needs : "more");
    else if (given > act->most)
        aq_say_usage(c, "one argument too many: %.200s", a->operand[1 + act->most]);
    return given >= act->least && given <= act->most;
}

const aq_act *aq_act_find(const aq_command *c, const aq_args *a)
{
    aq_auto_buf wrong = {0};

    for (const aq_act *act = c->acts; act->name; act++)
        if (strcmp(act->name, a->operand[0]) == 0)
            return act_fits(c, act, a) ? act : NULL;
    aq_buf_addf(&wrong, "there is no '%.40s', only", a->operand[0]);
    say_acts(c, aq_buf_str(&wrong));
    return NULL;
}

const char aq_verdict_exits[] = "  0   pass\n"
                                "  1   review: a person must look\n"
                                "  2   reject\n"
                                "  3   inconclusive: something was not read or did not finish\n"
                                "  64  the command line was wrong, or a file is not there\n"
                                "  70  our own failure; nothing is known about the package\n";

enum { HELP_WIDTH = 80, HELP_COLUMN = 25 };

/* A text from the column HELP_COLUMN on, wrapped between words. */
static void add_wrapped(aq_buf *out, const char *text)
{
    size_t column = HELP_COLUMN;

    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + n > HELP_WIDTH) {
            aq_buf_addf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            aq_buf_addc(out, ' ');
            column++;
        }
        aq_buf_add(out, text, n);
        column += n;
        text += n + (text[n] == ' ');
    }
    aq_buf_addc(out, '\n');
}

/* An ellipsis has three bytes and one column. */
static int columns(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

static void help_option(aq_buf *out, const char *name, const char *argument, const char *help)
{
    char left[64];
    int room;

    snprintf(left, sizeof left, "--%s%s%s", name, argument ? " " : "", argument ? argument : "");
    room = HELP_COLUMN - 3 - columns(left);
    aq_buf_addf(out, "  %s%*s ", left, room > 0 ? room : 0, "");
    add_wrapped(out, help);
}

void aq_command_help(const aq_command *c, aq_buf *out)
{
    aq_buf_addf(out, "aquarium %s: %s\n\nUsage: aquarium %s %s\n\n%s\n\nOptions:\n", c->name,
                c->summary, c->name, c->usage, c->description);
    for (const aq_option *o = c->options; o->name; o++)
        help_option(out, o->name, o->argument, o->help);
    help_option(out, "help", NULL, "this text");
    aq_buf_addf(out, "\nExit status:\n%s\nExamples:\n%s", c->exits ? c->exits : aq_verdict_exits,
                c->examples);
}
