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

static const aq_option options[] = {
    {"json", NULL, "print the report as JSON"},
    {"report", "FILE", "also write the JSON report to FILE"},
    {"html", "FILE", "also write the report as one HTML file (- is standard output)"},
    {"sarif", "FILE", "also write SARIF 2.1.0, for code-scanning tools"},
    {"evidence", "FILE", "also write the signed evidence to FILE"},
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

/* An output must be writable before the walk, and never lie inside the package: it would change
 * what is judged the next time. Says what is wrong and returns the status, or AQ_PARSE_RUN. */
static int check_output(const aq_command *c, const char *option, const char *path,
                        const char *package)
{
    const char *slash = strrchr(path, '/');
    aq_auto_buf parent = {0};
    aq_auto_free char *folder = NULL;
    aq_auto_free char *root = realpath(package, NULL);
    size_t n;

    aq_buf_add(&parent, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    folder = realpath(aq_buf_str(&parent), NULL);
    if (!folder || access(folder, W_OK) < 0)
        return aq_say_usage(c, "--%s %.300s: cannot write there: %s", option, path,
                            strerror(errno));
    n = root ? strlen(root) : 0;
    if (root && strncmp(folder, root, n) == 0 && (folder[n] == '/' || folder[n] == '\0'))
        return aq_say_usage(c, "--%s %.300s lies inside the package; write it elsewhere", option,
                            path);
    return AQ_PARSE_RUN;
}

static int check_options(const aq_command *c, const aq_args *args)
{
    const char *colour = aq_arg(c, args, "color");
    static const char *const outputs[] = {"report", "html", "sarif", "evidence"};
    int on_stdout = aq_flag(c, args, "json");

    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *path = aq_arg(c, args, outputs[i]);
        int r = AQ_PARSE_RUN;
        if (path && strcmp(path, "-") == 0)
            on_stdout++;
        else if (path)
            r = check_output(c, outputs[i], path, args->operand[0]);
        if (r != AQ_PARSE_RUN)
            return r;
    }
    if (!*args->operand[0])
        return aq_say_usage(c, "PACKAGE is empty");
    if (on_stdout > 1)
        return aq_say_usage(c, "only one document can go to standard output");
    if (colour && strcmp(colour, "auto") != 0 && strcmp(colour, "always") != 0 &&
        strcmp(colour, "never") != 0)
        return aq_say_usage(c, "--color is auto, always or never, not '%.40s'", colour);
    return AQ_PARSE_RUN;
}

/* The faces that were asked for by name; `stdout_used` tells whether one went to stdout. */
static int write_faces(const aq_command *c, const aq_args *args, const aq_walk_result *result,
                       bool *stdout_used, aq_err *err)
{
    const char *path;
    int r = 0;

    if (aq_flag(c, args, "json"))
        r = aq_put_json("-", result->report, err);
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
    for (size_t i = 0; i < AQ_OPTIONS; i++)
        *stdout_used |= args->value[i] && strcmp(args->value[i], "-") == 0;
    return r;
}

static int show_text(const aq_command *c, const aq_args *args, const aq_walk_result *result,
                     aq_err *err)
{
    aq_text_options o = {.colour = aq_colour(aq_arg(c, args, "color"), STDOUT_FILENO),
                         .verbose = aq_flag(c, args, "verbose"),
                         .width = aq_terminal_width(STDOUT_FILENO)};
    aq_auto_buf text = {0};

    aq_report_text(result->report, &o, &text);
    aq_buf_addf(&text, "\nEvidence: %s\n", result->evidence_path);
    return aq_put("-", text.data, text.len, err);
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_validate;
    ticker t = {0};
    aq_walk_options o = {.path = args->operand[0], .artifact = aq_arg(c, args, "artifact")};
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    __attribute__((cleanup(aq_walk_result_free))) aq_walk_result result = {0};
    bool stdout_used = false;
    aq_err err = {0};
    int r = check_options(c, args);

    if (r != AQ_PARSE_RUN)
        return r;
    if (aq_colour(aq_arg(c, args, "color"), STDERR_FILENO) && isatty(STDERR_FILENO) &&
        !aq_flag(c, args, "quiet")) {
        clock_gettime(CLOCK_MONOTONIC, &t.begun);
        o.progress = tick;
        o.progress_arg = &t;
    }
    if (aq_home_open(aq_arg(c, args, "state"), &home, &err) < 0)
        return aq_say_failed(&err);
    r = aq_walk(&home, &o, &result, &err);
    if (t.shown)
        fputs("\r\033[K", stderr);
    if (r < 0) {
        aq_say_failed(&err);
        return result.no_input ? AQ_EXIT_USAGE : AQ_EXIT_OURS;
    }
    if (write_faces(c, args, &result, &stdout_used, &err) < 0)
        return aq_say_failed(&err);
    if (!stdout_used && !aq_flag(c, args, "quiet") && show_text(c, args, &result, &err) < 0)
        return aq_say_failed(&err);
    return aq_verdict_exit(result.verdict);
}

const aq_command aq_command_validate = {
    .name = "validate",
    .summary = "walk a package through the clean room and report",
    .usage = "[OPTION…] PACKAGE",
    .description =
        "PACKAGE is a folder, a .tar, .tar.gz, .tar.zst or .zip archive, a .wasm module, or an\n"
        "Intake v1 envelope (.json). Nothing in it is executed by this command's parsers: they\n"
        "run in children that can do nothing. Every decision is in the ledger before the next\n"
        "stage starts. Layers that are not built yet are named in the report, and while one is\n"
        "missing the verdict cannot be pass.",
    .options = options,
    .examples = "  aquarium validate ./my-skill\n"
                "  aquarium validate --html report.html plugin-1.2.0.tar.gz\n"
                "  aquarium validate --json server.zip | jq .verdict\n"
                "  aquarium validate --sarif ../out.sarif --quiet . || echo \"status $?\"\n",
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
