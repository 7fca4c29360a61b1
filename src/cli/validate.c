/* aquarium validate: the walk of one submission, and its report in the form that was asked for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cleanroom/report.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"
#include "jail/jail.h"

enum { JAILS = 4 }; /* that the walk of an ordinary package starts, one after the other */

static const aq_option options[] = {
    {"json", NULL, "print the report as JSON"},
    {"report", "FILE", "also write the JSON report (- is standard output, for each FILE)"},
    {"html", "FILE", "also write the report as one HTML file"},
    {"sarif", "FILE", "also write SARIF 2.1.0, for code-scanning tools"},
    {"evidence", "FILE", "also write the signed evidence"},
    {"artifact", "FILE", "the archive that an Intake v1 envelope speaks of"},
    {"verbose", NULL, "show every finding with its reason and remedy"},
    {"quiet", NULL, "no text report and no progress; the exit status is the answer"},
    {"color", "WHEN", "auto, always or never"},
    {"state", "DIR", "state folder (keys, store, ledger)"},
    {0}};

/* One line on a terminal, rewritten at most ten times a second. */
typedef struct ticker {
    struct timespec begun, last;
    bool shown;
} ticker;

static int64_t milliseconds(const struct timespec *from, const struct timespec *to)
{
    return (int64_t)(to->tv_sec - from->tv_sec) * 1000 + (to->tv_nsec - from->tv_nsec) / 1000000;
}

static void tick(void *arg, const char *doing, uint64_t files, uint64_t bytes)
{
    ticker *t = arg;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    /* Nothing flashes by for a package that is done at once. */
    if (milliseconds(&t->begun, &now) < 300 || milliseconds(&t->last, &now) < 100)
        return;
    t->last = now;
    t->shown = true;
    fprintf(stderr, "\r\033[K%s: %llu file%s, %.1f MB", doing, (unsigned long long)files,
            files == 1 ? "" : "s", (double)bytes / 1e6);
    fflush(stderr);
}

/* The true path of `path`, or of its nearest folder that is there. */
static char *nearest(const char *path)
{
    aq_auto_buf b = {0};
    char *real;

    aq_buf_addf(&b, "%s%s", path[0] == '/' ? "" : "./", path);
    while (!(real = realpath(aq_buf_str(&b), NULL)) && errno == ENOENT && strchr(b.data, '/')) {
        *strrchr(b.data, '/') = '\0';
        b.len = strlen(b.data);
        if (b.len == 0)
            aq_buf_addc(&b, '/');
    }
    return real;
}

/* What is written inside a package changes what is judged the next time. */
static int check_outside(const aq_command *c, const aq_args *args, const char *what,
                         const char *shown, const char *real)
{
    for (size_t i = 0; real && i < args->operands; i++) {
        aq_auto_free char *root = realpath(args->operand[i], NULL);
        if (root && aq_path_within(real, root))
            return aq_say_usage(c, "%s %.300s lies inside the package; name another place", what,
                                shown);
    }
    return AQ_PARSE_RUN;
}

static const char *const outputs[] = {"report", "html", "sarif", "evidence"};
enum { OUTPUTS = sizeof outputs / sizeof *outputs };

/* All outputs must be writable before the walk. */
static int check_outputs(const aq_command *c, const aq_args *args, char *real[static OUTPUTS])
{
    int on_stdout = aq_flag(c, args, "json"), r;

    for (size_t i = 0; i < OUTPUTS; i++) {
        const char *path = aq_arg(c, args, outputs[i]);
        char option[32];
        if (path && args->operands > 1)
            return aq_say_usage(c, "--%s holds one package; name packages one by one", outputs[i]);
        if (path && aq_output_is_stdout(path))
            on_stdout++;
        if (!path || strcmp(path, "-") == 0)
            continue;
        snprintf(option, sizeof option, "--%s", outputs[i]);
        if ((r = aq_output_check(c, outputs[i], path, &real[i])) != AQ_PARSE_RUN ||
            (r = check_outside(c, args, option, path, real[i])) != AQ_PARSE_RUN)
            return r;
        for (size_t n = 0; n < i; n++)
            if (real[i] && real[n] && strcmp(real[i], real[n]) == 0)
                return aq_say_usage(c, "--%s and --%s name the same file", outputs[n], outputs[i]);
    }
    if (on_stdout > 1)
        return aq_say_usage(c, "only one document can go to standard output");
    return AQ_PARSE_RUN;
}

static int check_options(const aq_command *c, const aq_args *args)
{
    const char *colour = aq_arg(c, args, "color");
    char *real[OUTPUTS] = {0};
    aq_err err = {0};
    aq_auto_free char *state = NULL;
    aq_auto_free char *state_real = NULL;
    int r = check_outputs(c, args, real);

    for (size_t i = 0; i < OUTPUTS; i++)
        free(real[i]);
    if (r != AQ_PARSE_RUN)
        return r;
    for (size_t i = 0; i < args->operands; i++)
        if (!*args->operand[i])
            return aq_say_usage(c, "PACKAGE is empty");
    if (args->operands > 1 && aq_arg(c, args, "artifact"))
        return aq_say_usage(c, "--artifact belongs to one envelope; name envelopes one by one");
    if (colour && strcmp(colour, "auto") != 0 && strcmp(colour, "always") != 0 &&
        strcmp(colour, "never") != 0)
        return aq_say_usage(c, "--color is auto, always or never, not '%.40s'", colour);
    state = aq_home_path(aq_arg(c, args, "state"), &err);
    state_real = state ? nearest(state) : NULL;
    return check_outside(c, args, "the state folder", state ? state : "", state_real);
}

/* The faces that were asked for by name; `stdout_used` tells whether one went to stdout. */
static int write_faces(const aq_command *c, const aq_args *args, const aq_walk_result *result,
                       bool *stdout_used, aq_err *err)
{
    const char *path;
    int r = 0;

    if (aq_flag(c, args, "json"))
        r = args->operands > 1 ? aq_put_json_line(result->report, err)
                               : aq_put_json("-", result->report, err);
    if (r == 0 && (path = aq_arg(c, args, "report")))
        r = aq_put_json(path, result->report, err);
    if (r == 0 && (path = aq_arg(c, args, "html"))) {
        aq_auto_buf html = {0};
        aq_report_html(result->report, &html);
        r = aq_put(path, html.data, html.len, err);
    }
    if (r == 0 && (path = aq_arg(c, args, "sarif"))) {
        aq_auto_json json_t *sarif = aq_report_sarif(result->report);
        r = aq_put_json(path, sarif, err);
    }
    if (r == 0 && (path = aq_arg(c, args, "evidence")))
        r = aq_put_json(path, result->evidence, err);
    *stdout_used = aq_flag(c, args, "json");
    for (size_t i = 0; i < OUTPUTS; i++)
        *stdout_used |=
            aq_arg(c, args, outputs[i]) && aq_output_is_stdout(aq_arg(c, args, outputs[i]));
    return r;
}

static int show_text(const aq_command *c, const aq_args *args, const aq_walk_result *result,
                     const char *path, aq_err *err)
{
    bool terminal = isatty(STDOUT_FILENO);
    aq_text_options o = {.colour = aq_colour(aq_arg(c, args, "color"), STDOUT_FILENO),
                         .verbose = aq_flag(c, args, "verbose"),
                         .width = aq_terminal_width(STDOUT_FILENO),
                         .whole = !terminal,
                         .next_steps = terminal && args->operands == 1,
                         .evidence = result->evidence_path,
                         .package = path};
    aq_auto_buf text = {0};

    aq_report_text(result->report, &o, &text);
    return aq_put("-", text.data, text.len, err);
}

/* One package; returns its exit status. */
static int validate(const aq_args *args, aq_home *home, const aq_policy *policy, const char *path)
{
    const aq_command *c = &aq_command_validate;
    ticker t = {0};
    aq_walk_options o = {.path = path, .artifact = aq_arg(c, args, "artifact"), .policy = policy};
    __attribute__((cleanup(aq_walk_result_free))) aq_walk_result result = {0};
    bool stdout_used = false;
    aq_err err = {0};
    int r;

    if (aq_colour(aq_arg(c, args, "color"), STDERR_FILENO) && isatty(STDERR_FILENO) &&
        !aq_flag(c, args, "quiet")) {
        clock_gettime(CLOCK_MONOTONIC, &t.begun);
        o.progress = tick;
        o.progress_arg = &t;
    }
    aq_jail_expect(JAILS);
    r = aq_walk(home, &o, &result, &err);
    if (t.shown)
        fputs("\r\033[K", stderr);
    if (r < 0) {
        aq_say_failed(&err);
        return result.no_input ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
    }
    if (write_faces(c, args, &result, &stdout_used, &err) < 0)
        return aq_say_failed(&err);
    if (!stdout_used && !aq_flag(c, args, "quiet") && show_text(c, args, &result, path, &err) < 0)
        return aq_say_failed(&err);
    return aq_verdict_exit(result.verdict);
}

/* Of two statuses the one that a caller must hear of: what failed outweighs every verdict, and of
 * verdicts reject, inconclusive, review, pass in this order. */
static int worse(int a, int b)
{
    static const int order[] = {0, 1, 3, 2, AQ_EXIT_USAGE, AQ_EXIT_OURS};
    size_t at = 0, ranks[2] = {0};

    for (at = 0; at < sizeof order / sizeof *order; at++) {
        if (order[at] == a)
            ranks[0] = at;
        if (order[at] == b)
            ranks[1] = at;
    }
    return ranks[1] > ranks[0] ? b : a;
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_validate;
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_policy policy;
    aq_err err = {0};
    int status = 0, r = check_options(c, args);

    if (r != AQ_PARSE_RUN)
        return r;
    aq_jail_expect(JAILS); /* they load while the state folder is opened */
    if ((r = aq_open_home(c, args, true, &home)) != AQ_PARSE_RUN)
        return r;
    if (aq_policy_load(home.dirfd, home.path, &policy, &err) < 0) {
        fprintf(stderr, "aquarium: %s\n", err.text);
        return AQ_EXIT_USAGE;
    }
    for (size_t i = 0; i < args->operands; i++) {
        bool text = !aq_flag(c, args, "json") && !aq_flag(c, args, "quiet");
        if (i > 0 && text)
            aq_put("-", "\n", 1, &err);
        r = validate(args, &home, &policy, args->operand[i]);
        status = worse(status, r);
    }
    return status;
}

const aq_command aq_command_validate = {
    .name = "validate",
    .summary = "walk a package through the clean room and report",
    .usage = "[OPTION…] PACKAGE…",
    .description =
        "PACKAGE is a folder, a .tar, .tar.gz, .tar.zst or .zip archive, a .wasm module,\n"
        "or an Intake v1 envelope (.json). Nothing in it is executed by this command's\n"
        "parsers: they run in children that can do nothing. Every decision is in the\n"
        "ledger before the next stage starts. Layers that are not built yet are named in\n"
        "the report, and while one is missing the verdict cannot be pass.\n\n"
        "Of several packages each gets its report, one after another; with --json each is\n"
        "an object on a line of its own. The exit status is the worst of theirs, in this\n"
        "order: 70, 64, 2, 3, 1, 0.\n\n" AQ_LEGEND,
    .options = options,
    .examples = "  aquarium validate ./my-skill\n"
                "  aquarium validate --html report.html plugin-1.2.0.tar.gz\n"
                "  aquarium validate skills/*          # one report each\n"
                "  aquarium validate --json server.zip | jq .verdict\n"
                "  aquarium validate --sarif ../out.sarif --quiet . || echo \"status $?\"\n",
    .min_operands = 1,
    .max_operands = AQ_ANY_NUMBER,
    .exits = "  0   pass\n"
             "  1   review: a person must look\n"
             "  2   reject\n"
             "  3   inconclusive: something was not read or did not finish\n"
             "  64  the command line or policy.yaml was wrong, or PACKAGE cannot be opened\n"
             "  70  our own failure; nothing is known about the package\n",
    .run = run,
};
