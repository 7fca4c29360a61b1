/* Manual pages, made from the commands' own descriptions: `aquarium --man [COMMAND]` prints roff.
 * The build installs one page a command, so that help, completion and manual say the same. */
#include <string.h>

#include "cli/cli.h"

/* Text as roff: no line may start with a dot or quote, backslashes and hyphens are literal. */
static void roff(aq_buf *out, const char *text)
{
    bool line_start = true;

    for (const char *s = text; *s; s++) {
        if (line_start && (*s == '.' || *s == '\''))
            aq_buf_adds(out, "\\&");
        if (*s == '\\')
            aq_buf_adds(out, "\\e");
        else if (*s == '-')
            aq_buf_adds(out, "\\-");
        else
            aq_buf_addc(out, *s);
        line_start = *s == '\n';
    }
}

static void heading(aq_buf *out, const char *title)
{
    aq_buf_addf(out, ".SH %s\n", title);
}

/* Text whose line breaks and indents carry meaning. */
static void verbatim(aq_buf *out, const char *text)
{
    aq_buf_adds(out, ".nf\n");
    roff(out, text);
    if (out->len && out->data[out->len - 1] != '\n')
        aq_buf_addc(out, '\n');
    aq_buf_adds(out, ".fi\n");
}

static void top(aq_buf *out, const char *page, const char *summary)
{
    aq_buf_addf(out, ".TH %s 1 \"\" \"aquarium %s\" \"Aquarium manual\"\n", page, AQ_VERSION);
    heading(out, "NAME");
    roff(out, page);
    aq_buf_adds(out, " \\- ");
    roff(out, summary);
    aq_buf_addc(out, '\n');
}

static void common_end(aq_buf *out)
{
    heading(out, "FILES");
    verbatim(out, "~/.local/state/aquarium   state folder: keys, store.db, ledger/, evidence/\n"
                  "policy.yaml in it         the operator's policy (optional)\n");
    heading(out, "ENVIRONMENT");
    verbatim(out, "AQUARIUM_HOME    state folder, unless --state is given\n"
                  "XDG_STATE_HOME   its parent, unless AQUARIUM_HOME is set\n"
                  "NO_COLOR         no colour, whatever the terminal\n"
                  "TMPDIR           where unpacked packages lie while they are read (verify)\n");
}

void aq_command_man(const aq_command *c, aq_buf *out)
{
    aq_auto_buf page = {0}, usage = {0};

    aq_buf_addf(&page, "aquarium-%s", c->name);
    top(out, aq_buf_str(&page), c->summary);
    heading(out, "SYNOPSIS");
    aq_buf_addf(&usage, "aquarium %s %s\n", c->name, c->usage);
    verbatim(out, aq_buf_str(&usage));
    heading(out, "DESCRIPTION");
    verbatim(out, c->description);
    heading(out, "OPTIONS");
    for (const aq_option *o = c->options; o->name; o++) {
        aq_buf_adds(out, ".TP\n\\fB\\-\\-");
        roff(out, o->name);
        aq_buf_adds(out, "\\fR");
        if (o->argument)
            aq_buf_addf(out, " \\fI%s\\fR", o->argument);
        aq_buf_addc(out, '\n');
        roff(out, o->help);
        aq_buf_addc(out, '\n');
    }
    aq_buf_adds(out, ".TP\n\\fB\\-\\-help\\fR\nprint help\n");
    heading(out, "EXIT STATUS");
    verbatim(out, c->exits ? c->exits : aq_verdict_exits);
    heading(out, "EXAMPLES");
    verbatim(out, c->examples);
    common_end(out);
    heading(out, "SEE ALSO");
    aq_buf_adds(out, ".BR aquarium (1)\n");
}

void aq_overview_man(aq_buf *out)
{
    top(out, "aquarium", "clean room for packages from strangers");
    heading(out, "SYNOPSIS");
    verbatim(out, "aquarium COMMAND [ARGUMENT…]\n");
    heading(out, "DESCRIPTION");
    roff(out,
         "Aquarium is a clean room for code that agents install: skills, plugins, MCP servers,\n"
         "tools. A package walks through intake and the layers L0 to L3; out come a verdict, a\n"
         "report, a reviewer's checklist, signed evidence and a line in an append-only ledger.\n");
    heading(out, "COMMANDS");
    for (const aq_command *const *c = aq_commands; *c; c++) {
        aq_buf_addf(out, ".TP\n.BR aquarium\\-%s (1)\n", (*c)->name);
        roff(out, (*c)->summary);
        aq_buf_addc(out, '\n');
    }
    heading(out, "EXIT STATUS");
    verbatim(out, aq_verdict_exits);
    common_end(out);
}
