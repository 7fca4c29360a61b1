/* aquarium completion: a completion script for bash, zsh or fish, made from the commands' own
 * descriptions, so that it cannot fall behind them. */
#include <string.h>

#include "cli/cli.h"

static void bash_words(aq_buf *out, const aq_command *c)
{
    for (const aq_act *act = c->acts; act && act->name; act++)
        aq_buf_addf(out, "%s ", act->name);
    for (const aq_option *o = c->options; o->name; o++)
        aq_buf_addf(out, "--%s ", o->name);
    aq_buf_adds(out, "--help");
}

static void bash(aq_buf *out)
{
    aq_buf_adds(out, "# bash completion for aquarium\n_aquarium() {\n"
                     "    local word=${COMP_WORDS[COMP_CWORD]} words=\n"
                     "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    for (const aq_command *const *c = aq_commands; *c; c++)
        aq_buf_addf(out, "%s ", (*c)->name);
    aq_buf_adds(out, "--help --version\"\n    else\n        case ${COMP_WORDS[1]} in\n");
    for (const aq_command *const *c = aq_commands; *c; c++) {
        aq_buf_addf(out, "        %s) words=\"", (*c)->name);
        bash_words(out, *c);
        aq_buf_adds(out, "\" ;;\n");
    }
    aq_buf_adds(out, "        esac\n    fi\n"
                     "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                     "}\ncomplete -o default -F _aquarium aquarium\n");
}

static void zsh(aq_buf *out)
{
    aq_buf_adds(out, "#compdef aquarium\n_aquarium() {\n    local -a words\n"
                     "    if (( CURRENT == 2 )); then\n        words=(\n");
    for (const aq_command *const *c = aq_commands; *c; c++)
        aq_buf_addf(out, "            '%s:%s'\n", (*c)->name, (*c)->summary);
    aq_buf_adds(out, "        )\n        _describe command words\n        return\n    fi\n"
                     "    case ${(Q)${(z)BUFFER}[2]} in\n");
    for (const aq_command *const *c = aq_commands; *c; c++) {
        aq_buf_addf(out, "    %s) words=(", (*c)->name);
        bash_words(out, *c);
        aq_buf_adds(out, ") ;;\n");
    }
    aq_buf_adds(out, "    esac\n    compadd -a words\n    _files\n}\n_aquarium \"$@\"\n");
}

static void fish(aq_buf *out)
{
    aq_buf_adds(out, "# fish completion for aquarium\n");
    for (const aq_command *const *c = aq_commands; *c; c++) {
        aq_buf_addf(out, "complete -c aquarium -n __fish_use_subcommand -a %s -d '%s'\n",
                    (*c)->name, (*c)->summary);
        for (const aq_act *act = (*c)->acts; act && act->name; act++)
            aq_buf_addf(out, "complete -c aquarium -n '__fish_seen_subcommand_from %s' -a %s\n",
                        (*c)->name, act->name);
        for (const aq_option *o = (*c)->options; o->name; o++)
            aq_buf_addf(out, "complete -c aquarium -n '__fish_seen_subcommand_from %s' -l %s%s\n",
                        (*c)->name, o->name, o->argument ? " -r" : "");
    }
}

static int run(const aq_args *args)
{
    const char *shell = args->operand[0];
    aq_auto_buf out = {0};
    aq_err err = {0};

    if (strcmp(shell, "bash") == 0)
        bash(&out);
    else if (strcmp(shell, "zsh") == 0)
        zsh(&out);
    else if (strcmp(shell, "fish") == 0)
        fish(&out);
    else
        return aq_say_usage(&aq_command_completion, "bash, zsh or fish, not '%.40s'", shell);
    return aq_put("-", out.data, out.len, &err) < 0 ? aq_say_failed(&err) : 0;
}

static const aq_option options[] = {{0}};
static const aq_act shells[] = {{.name = "bash"}, {.name = "zsh"}, {.name = "fish"}, {0}};

const aq_command aq_command_completion = {
    .name = "completion",
    .summary = "print the completion script of a shell",
    .usage = "bash|zsh|fish",
    .description = "Prints a script that completes commands and options.",
    .options = options,
    .acts = shells,
    .examples = "  aquarium completion bash > /etc/bash_completion.d/aquarium\n"
                "  aquarium completion fish > ~/.config/fish/completions/aquarium.fish\n",
    .exits = "  0   printed\n  64  the command line was wrong\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
