/* aquarium run: runs a command in an aquarium, passes its output and exit status on, and says what
 * it did. With --quarantine the world is sealed: no network but its own, nothing of the host but
 * the programs of the base and the folders that were shared, and nothing that it writes stays. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/folder.h"
#include "cli/run_text.h"
#include "cli/world.h"
#include "model/observation.h"
#include "model/summary.h"
#include "observe/canon.h"
#include "sandbox/backend.h"
#include "session/quarantine.h"
#include "session/secrets.h"

enum { SHARES = 16, NAMES = 1024, PATIENCE = 3 /* seconds */, EXIT_SIGNAL = 128, EXIT_BUDGET = 3 };

/* Sums of two limits must not run over. */
static const uint64_t LIMIT_MOST = 1000000000000000;

static const aq_option options[] = {
    {"quarantine", NULL, "seal the world off: nothing real is in it, nothing leaves it"},
    {"seed", "TEXT", "the seed of the world; the same seed makes the same world again"},
    {"world", "A|B|none", "which of the seed's two worlds, or one without decoys; otherwise A"},
    {"pack", "FILE[,FILE…]", "add private packs of decoys (aquarium decoys)"},
    {"start", "TIME",
     "when the world's clock starts, as 2026-05-01T09:00:00Z; otherwise last week"},
    {"resolve", "NAME[,NAME…]",
     "host names that exist in the world's internet; *.example.org: all below. Others do not"},
    {"events", "FILE", "also write every event as JSON lines to FILE"},
    {"stream", "FILE", "also write the record in its binary form to FILE (aquarium compare)"},
    {"schedule", "FILE",
     "the record (--stream) of a run that may not repeat: this one takes its turns from it"},
    {"json", NULL, "print one JSON object; the command's output goes to standard error"},
    {"share", "PATH[,PATH…]", "show these folders or files of the host inside; writes stay inside"},
    {"cwd", "DIR", "start in DIR (inside); otherwise in the current folder, which is shared"},
    {"env", "NAME=VALUE[,…]", "set variables; nothing else of your environment is inside"},
    {"rootfs", "DIR", "use this folder as the root file system instead of the host's programs"},
    {"limit", "NAME=N[,…]",
     "memory=64M, processes, disk-bytes, virtual-ns, wall-ms … (docs/formats/backend.md)"},
    {"backend", "NAME", "container"},
    {"stdin", NULL, "hand standard input on; otherwise it is empty"},
    {"quiet", NULL, "do not say what the command did"},
    {"color", "WHEN", "auto, always or never"},
    {0}};

typedef struct request {
    const aq_command *command;
    const aq_args *args;
    aq_arena *arena;
    const aq_backend *backend;
    aq_share shares[SHARES];
    aq_plan plan;
    aq_schedule schedule;
    aq_containment held;
    aq_world_choice world;
    const char *const *names; /* that resolve */
    size_t name_count;
    char folder[PATH_MAX];
    bool kept_out; /* the current folder, which is too wide */
    uint64_t elapsed_ms;
    int interrupted, lost;
} request;

static const char *option(const request *q, const char *name)
{
    return aq_arg(q->command, q->args, name);
}

/* Splits "a,b,c"; NULL-terminated. */
static const char **split(aq_arena *a, const char *list, size_t *count)
{
    const char **rows = aq_arena_alloc(a, (strlen(list) / 2 + 2) * sizeof *rows);

    *count = 0;
    while (*list) {
        size_t n = strcspn(list, ",");

        if (n > 0)
            rows[(*count)++] = aq_arena_strndup(a, list, n);
        list += n + (list[n] == ',');
    }
    return rows;
}

/* ---- what is shared ---- */

static int share(request *q, const char *path, bool writable)
{
    aq_auto_free char *real = realpath(path, NULL);
    struct stat st;

    if (!real || stat(real, &st) < 0)
        return aq_say_usage(q->command, "--share %.300s: %s", path, strerror(errno));
    if (strcmp(real, "/") == 0)
        return aq_say_usage(q->command, "--share /: name a folder; --rootfs gives another root");
    if (aq_folder_of_world(real))
        return aq_say_usage(q->command, "--share %.300s: a world has its own /proc, /sys and /dev",
                            path);
    if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
        return aq_say_usage(q->command, "--share %.300s: only folders and files can be shared",
                            path);
    for (size_t i = 0; i < q->plan.share_count; i++) {
        if (aq_folder_below(real, q->shares[i].from))
            return AQ_PARSE_RUN; /* it is there already */
        if (aq_folder_below(q->shares[i].from, real))
            return aq_say_usage(q->command,
                                "--share %.300s: %.300s lies in it and is shared too (the current "
                                "folder is, unless --cwd is given); share one of them",
                                path, q->shares[i].from);
    }
    if (q->plan.share_count == SHARES)
        return aq_say_usage(q->command, "at most %d folders can be shared", SHARES);
    q->shares[q->plan.share_count++] = (aq_share){.from = aq_arena_strdup(q->arena, real),
                                                  .to = aq_arena_strdup(q->arena, real),
                                                  .writable = writable};
    return AQ_PARSE_RUN;
}

static int take_folders(request *q)
{
    const char *list = option(q, "share"), *cwd = option(q, "cwd");
    int r = AQ_PARSE_RUN;

    q->plan.shares = q->shares;
    q->plan.cwd = cwd;
    if (!cwd && !option(q, "rootfs") && getcwd(q->folder, sizeof q->folder)) {
        q->kept_out = aq_folder_too_wide(q->folder);
        if (!q->kept_out) {
            r = share(q, q->folder, true);
            q->plan.cwd = q->folder;
        }
    }
    if (list) {
        size_t count;
        const char **paths = split(q->arena, list, &count);

        for (size_t i = 0; i < count && r == AQ_PARSE_RUN; i++)
            r = share(q, paths[i], true);
    }
    return r;
}

/* ---- limits and environment ---- */

static int wrong_limit(const request *q, const char *row, int id)
{
    aq_auto_buf names = {0};

    if (id >= 0)
        return aq_say_usage(q->command,
                            "--limit %.100s: NAME=N, N from 1 to 1000000000000000, bytes also with "
                            "K, M, G or T (%s)",
                            row, aq_limit_what((aq_limit)id));
    for (int i = 0; i < AQ_LIMITS; i++)
        aq_buf_addf(&names, "%s%s", i ? ", " : "", aq_limit_name((aq_limit)i));
    return aq_say_usage(q->command, "--limit %.100s: NAME=N, with a name of %s", row,
                        aq_buf_str(&names));
}

static int take_limits(request *q)
{
    const char *list = option(q, "limit");
    size_t count;
    const char **rows;

    if (!list)
        return AQ_PARSE_RUN;
    rows = split(q->arena, list, &count);
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(rows[i], '=');
        int id = equals ? aq_limit_find(rows[i], (size_t)(equals - rows[i])) : -1;
        uint64_t n = id < 0 ? 0 : aq_limit_parse((aq_limit)id, equals + 1);

        if (n == 0 || n > LIMIT_MOST)
            return wrong_limit(q, rows[i], id);
        q->plan.limits.most[id] = n;
    }
    return AQ_PARSE_RUN;
}

static int take_environment(request *q)
{
    const char *list = option(q, "env");
    size_t count;

    if (!list)
        return AQ_PARSE_RUN;
    q->plan.env = split(q->arena, list, &count);
    for (size_t i = 0; i < count; i++)
        if (!strchr(q->plan.env[i] + 1, '=') || q->plan.env[i][0] == '=')
            return aq_say_usage(q->command, "--env %.100s: NAME=VALUE", q->plan.env[i]);
    return AQ_PARSE_RUN;
}

/* A host name as DNS has it, in lower case; a star may stand for its first part. */
static bool good_name(const char *name)
{
    size_t len = strlen(name), part = 0;

    if (strncmp(name, "*.", 2) == 0)
        name += 2, len -= 2;
    if (len == 0 || len > 253)
        return false;
    for (size_t i = 0; i <= len; i++) {
        char c = name[i];

        if (c == '.' || c == '\0') {
            if (part == 0 || part > 63 || name[i - 1] == '-')
                return false;
            part = 0;
            continue;
        }
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c == '-' && part)))
            return false;
        part++;
    }
    return true;
}

static int take_names(request *q)
{
    const char *list = option(q, "resolve"), *side = option(q, "world");
    char *lower;

    if (!list)
        return AQ_PARSE_RUN;
    if (side && strcmp(side, "none") == 0)
        return aq_say_usage(q->command, "--world none has no internet: no --resolve");
    lower = aq_arena_strdup(q->arena, list);
    for (char *p = lower; *p; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    q->names = split(q->arena, lower, &q->name_count);
    if (q->name_count > NAMES)
        return aq_say_usage(q->command, "--resolve: at most %d names", NAMES);
    for (size_t i = 0; i < q->name_count; i++)
        if (!good_name(q->names[i]))
            return aq_say_usage(q->command, "--resolve %.100s: that is no host name", q->names[i]);
    return AQ_PARSE_RUN;
}

/* While the backend makes the world around them. The decoys themselves stay with us: the arena is
 * read by others too. */
static int make_outline(void *arg, aq_arena *a, aq_plan *plan, aq_err *err)
{
    request *q = arg;
    int r = aq_world_outline(q->arena, &q->world, err);

    if (r < 0)
        return r;
    aq_quarantine_outline(a, q->world.decoys, plan);
    q->plan.home = aq_arena_strdup(q->arena, plan->home);
    return 0;
}

static int make_decoys(void *arg, aq_arena *a, aq_plan *plan, aq_err *err)
{
    request *q = arg;
    int r = aq_world_make(q->arena, &q->world, err);

    if (r < 0)
        return r;
    aq_quarantine_plan(a, q->world.decoys, plan);
    aq_quarantine_resolve(a, q->names, q->name_count, plan);
    q->plan.home = aq_arena_strdup(q->arena, plan->home);
    return 0;
}

/* What is wrong with a pack is told before anything begins. */
static int check_pack(request *q)
{
    aq_world_choice tried = q->world;
    aq_arena *a = aq_arena_new();
    aq_err err = {0};
    int r;

    mallopt(M_PERTURB, 1); /* nothing of it is left where a child could find it */
    r = aq_world_make(a, &tried, &err);
    aq_arena_free(a);
    mallopt(M_PERTURB, 0);
    if (r < 0)
        fprintf(stderr, "aquarium: %s\n", err.text);
    return r < 0 ? AQ_EXIT_USAGE : AQ_PARSE_RUN;
}

static int take_world(request *q)
{
    const char *side = option(q, "world"), *start = option(q, "start");
    bool whole;
    int r;

    if (side && strcmp(side, "none") == 0)
        return option(q, "seed") || option(q, "pack") || start
                   ? aq_say_usage(q->command,
                                  "--world none has no decoys: no --seed, no --pack, no --start")
                   : AQ_PARSE_RUN;
    if (side && strcmp(side, "A") != 0 && strcmp(side, "B") != 0)
        return aq_say_usage(q->command, "--world is A, B or none, not '%.40s'", side);
    q->world = (aq_world_choice){.seed = option(q, "seed"),
                                 .packs = option(q, "pack"),
                                 .later = true,
                                 .side = side && *side == 'B' ? AQ_SIDE_B : AQ_SIDE_A};
    if (start && aq_time_parse(start, &q->world.start) < 0)
        return aq_say_usage(q->command, "--start %.60s: a time is written 2026-05-01T09:00:00Z",
                            start);
    r = aq_world_choose(q->command, q->arena, &q->world);
    if (r != AQ_PARSE_RUN)
        return r;
    q->plan.tree = aq_world_tree(q->arena);
    if (option(q, "pack") && (r = check_pack(q)) != AQ_PARSE_RUN)
        return r;
    /* The folder to start in may be one of its folders: then they are made first. What a private
     * pack takes is not known ahead. */
    whole = option(q, "cwd") || option(q, "pack");
    q->plan.late = whole ? make_decoys : make_outline;
    q->plan.later = whole ? NULL : make_decoys;
    if (option(q, "seed")) /* others can read our command line */
        memset((char *)(uintptr_t)option(q, "seed"), '*', strlen(q->world.secret));
    q->plan.secret = q->world.secret;
    q->plan.secret_len = strlen(q->world.secret);
    q->plan.late_arg = q;
    return r;
}

static int take_backend(request *q)
{
    const char *name = option(q, "backend");

    q->backend = aq_backend_find(name ? name : "container");
    if (!q->backend)
        return aq_say_usage(q->command, "--backend %.60s: there is container", name);
    return AQ_PARSE_RUN;
}

/* What was named must be there before anything runs: a record that cannot be written is lost. */
static int check_place(const request *q, const char *name, const char *path)
{
    aq_auto_free char *folder = aq_strdup(path);
    char *slash = strrchr(folder, '/');
    struct stat st;
    bool there = stat(path, &st) == 0;

    if (there && S_ISDIR(st.st_mode))
        return aq_say_usage(q->command, "--%s %.300s: that is a folder; name a file", name, path);
    if (slash)
        slash[slash == folder] = '\0';
    if (access(there ? path : slash ? folder : ".", W_OK) < 0)
        return aq_say_usage(q->command, "--%s %.300s: cannot write there: %s", name, path,
                            strerror(errno));
    return AQ_PARSE_RUN;
}

static int check_records(const request *q)
{
    static const char *const names[] = {"events", "stream"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = option(q, names[i]);

        if (path && strcmp(path, "-") == 0 && option(q, "json"))
            return aq_say_usage(q->command, "--%s -: standard output has the object of --json",
                                names[i]);
        if (path && strcmp(path, "-") != 0 && check_place(q, names[i], path) != AQ_PARSE_RUN)
            return AQ_EXIT_USAGE;
    }
    return AQ_PARSE_RUN;
}

static int check_rootfs(const request *q, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return aq_say_usage(q->command, "--rootfs %.300s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return aq_say_usage(q->command, "--rootfs %.300s: that is no folder", path);
    if (access(path, R_OK | X_OK) < 0)
        return aq_say_usage(q->command, "--rootfs %.300s: %s", path, strerror(errno));
    return AQ_PARSE_RUN;
}

static int check_input(const request *q)
{
    struct stat st;

    if (q->plan.has_input && fstat(q->plan.input, &st) == 0 && S_ISDIR(st.st_mode))
        return aq_say_usage(q->command, "--stdin: standard input is a folder");
    return AQ_PARSE_RUN;
}

static int check_words(const request *q)
{
    const char *rootfs = option(q, "rootfs");
    const char *cwd = option(q, "cwd"), *colour = option(q, "color");

    if (cwd && cwd[0] != '/')
        return aq_say_usage(q->command, "--cwd %.300s: it must begin with / (a folder inside)",
                            cwd);
    if (colour && strcmp(colour, "auto") != 0 && strcmp(colour, "always") != 0 &&
        strcmp(colour, "never") != 0)
        return aq_say_usage(q->command, "--color %.60s: auto, always or never", colour);
    if (rootfs && check_rootfs(q, rootfs) != AQ_PARSE_RUN)
        return AQ_EXIT_USAGE;
    if (check_input(q) != AQ_PARSE_RUN)
        return AQ_EXIT_USAGE;
    return check_records(q);
}

static int take_request(request *q)
{
    int r;

    if (!aq_flag(q->command, q->args, "quarantine"))
        return aq_say_usage(q->command,
                            "say --quarantine: sessions with a real network are not built yet");
    if (!q->args->rest || !q->args->rest[0] || !*q->args->rest[0])
        return aq_say_usage(q->command, "name the command after --: aquarium run %s",
                            q->command->usage);
    q->plan.argv = (const char *const *)q->args->rest;
    q->plan.rootfs = option(q, "rootfs");
    q->plan.has_input = aq_flag(q->command, q->args, "stdin");
    q->plan.input = STDIN_FILENO;
    q->plan.has_output = true;
    q->plan.output = option(q, "json") ? STDERR_FILENO : STDOUT_FILENO;
    q->plan.error = STDERR_FILENO;
    q->plan.containment = &q->held;
    q->plan.interrupted = &q->interrupted;
    q->plan.lost = &q->lost;
    r = check_words(q);
    if (r == AQ_PARSE_RUN)
        r = take_backend(q);
    if (r == AQ_PARSE_RUN)
        r = take_folders(q);
    if (r == AQ_PARSE_RUN)
        r = take_limits(q);
    if (r == AQ_PARSE_RUN)
        r = take_environment(q);
    if (r == AQ_PARSE_RUN)
        r = take_names(q);
    if (r == AQ_PARSE_RUN && option(q, "schedule"))
        r = aq_run_schedule(q->arena, option(q, "schedule"), &q->schedule);
    q->plan.schedule = &q->schedule;
    if (r == AQ_PARSE_RUN)
        r = take_world(q);
    return r;
}

/* ---- the result ---- */

static int exit_status(const aq_observation *o)
{
    switch (o->exit_kind) {
    case AQ_EXIT_STATUS:
        return o->exit_value;
    case AQ_EXIT_SIGNAL:
        return EXIT_SIGNAL + o->exit_value;
    case AQ_EXIT_BUDGET:
        return EXIT_BUDGET;
    default:
        return AQ_EXIT_OURS;
    }
}

static int put_events(const char *path, const aq_buf *stream, aq_err *err)
{
    aq_auto_buf lines = {0};
    int r = aq_observation_jsonl(stream->data, stream->len, &lines, err);

    return r < 0 ? r : aq_put(path, lines.data, lines.len, err);
}

/* In one piece, whatever else writes to the terminal. */
static void tell_text(const aq_run_result *result, bool colour)
{
    aq_auto_free char *text = NULL;
    size_t len = 0;
    FILE *page = open_memstream(&text, &len);

    if (!page)
        return;
    aq_run_text(result, colour, page);
    fclose(page);
    fwrite(text, 1, len, stderr);
}

/* What one reading of the stream makes. */
typedef struct reading {
    aq_summary summary;
    aq_secrets secrets;
    aq_canon *canon;
    bool piped, empty; /* something was read from a pipe; at first nothing was in it */
} reading;

static void read_event(const aq_event *e, void *arg)
{
    reading *r = arg;

    aq_summary_event(e, &r->summary);
    aq_secrets_event(&r->secrets, e);
    aq_canon_event(r->canon, e);
    if (!r->piped && e->kind == AQ_EVENT_FILE && e->object_len == 4 &&
        memcmp(e->object, "pipe", 4) == 0 && strcmp(e->op, "read") == 0) {
        r->piped = true;
        r->empty = e->result == 0;
    }
}

static int read_stream(request *q, const aq_buf *stream, reading *r, aq_run_result *result,
                       aq_observation *o, aq_err *err)
{
    const aq_decoys *d = q->world.decoys;
    int n;

    /* Who wants to hear nothing need not wait for what would be said. */
    if (option(q, "quiet") && !option(q, "json"))
        return aq_observation_read(q->arena, stream->data, stream->len, NULL, NULL, o, err);
    aq_summary_begin(&r->summary, q->arena);
    aq_secrets_begin(&r->secrets, q->arena, q->world.decoys);
    r->canon = aq_canon_new(d ? aq_decoys_marks(q->arena, d) : NULL, NULL, NULL);
    n = aq_observation_read(q->arena, stream->data, stream->len, read_event, r, o, err);
    if (n == 0) {
        result->canonical = aq_canon_end(r->canon, o);
        aq_secrets_end(&r->secrets, o);
    }
    aq_canon_free(r->canon);
    return n;
}

/* ---- what to do next ---- */

/* Was there input that nobody asked us to hand on? */
static bool has_input(const request *q)
{
    struct stat st;
    int bytes = 0;

    if (q->plan.has_input || fstat(STDIN_FILENO, &st) < 0)
        return false;
    if (S_ISREG(st.st_mode))
        return st.st_size > 0;
    return isatty(STDIN_FILENO) ||
           (S_ISFIFO(st.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0);
}

static bool shared(const request *q, const char *real)
{
    for (size_t i = 0; i < q->plan.share_count; i++)
        if (aq_folder_below(real, q->shares[i].from))
            return true;
    return false;
}

/* The shared folder that something could not be written to, when its size is why. */
static const char *read_only(const request *q, const aq_summary *s)
{
    for (size_t i = 0; i < q->plan.share_count; i++)
        for (size_t k = 0; k < s->files_denied.count; k++)
            if (aq_folder_below(s->files_denied.rows[k].text, q->shares[i].to)) {
                if (!aq_share_fits(&q->shares[i], &q->plan.limits))
                    return q->shares[i].to;
                break;
            }
    return NULL;
}

/* A record in a folder that the next run sees. */
static const char *record_inside(const request *q)
{
    static const char *const names[] = {"events", "stream"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = option(q, names[i]);
        aq_auto_free char *real = path && strcmp(path, "-") != 0 ? realpath(path, NULL) : NULL;

        if (real && shared(q, real))
            return path;
    }
    return NULL;
}

/* Where a command that did not start lies here: people have programs in many places. */
static void find_outside(const request *q, aq_run_result *result)
{
    const char *name = q->plan.argv[0], *path = getenv("PATH");
    bool named = strchr(name, '/') != NULL;
    size_t n;

    for (path = named || !path ? "." : path; *path && !result->outside;
         path += n + (path[n] == ':')) {
        const char *full;
        aq_auto_free char *real = NULL;

        n = strcspn(path, ":");
        full = named ? name : aq_arena_printf(q->arena, "%.*s/%s", (int)n, path, name);
        if (access(full, X_OK) < 0 || !(real = realpath(full, NULL)))
            continue;
        result->outside = full;
        result->outside_shared = shared(q, real) || aq_folder_below(real, "/usr");
    }
}

static int tell(request *q, const aq_buf *stream, aq_err *err)
{
    aq_observation o;
    reading read = {0};
    aq_limits limits = aq_limits_filled(&q->plan.limits);
    aq_run_result result = {.backend = q->backend,
                            .guarantee = q->backend->guarantee(q->arena, &q->held),
                            .held = &q->held,
                            .seed = q->world.seed,
                            .start = q->world.start,
                            .limits = &limits,
                            .home = q->plan.home ? q->plan.home : "/home/user",
                            .shares = q->shares,
                            .share_count = q->plan.share_count,
                            .folder_kept_out = q->kept_out,
                            .interrupted = q->interrupted,
                            .scheduled = q->schedule.count > 0,
                            .elapsed_ms = q->elapsed_ms,
                            .observation = &o,
                            .command = q->plan.argv[0],
                            .secrets = q->world.decoys ? &read.secrets : NULL,
                            .summary = &read.summary};
    const char *events = option(q, "events");
    int r;

    r = read_stream(q, stream, &read, &result, &o, err);
    if (r == 0 && events)
        r = put_events(events, stream, err);
    if (r == 0 && option(q, "stream"))
        r = aq_put(option(q, "stream"), stream->data, stream->len, err);
    if (r < 0)
        return r;
    /* A command that ended by itself in the same moment was not interrupted. */
    if (o.exit_kind != AQ_EXIT_BUDGET || o.exit_value != AQ_LIMIT_WALL_MS)
        result.interrupted = q->interrupted = 0;
    result.status = q->interrupted ? EXIT_SIGNAL + q->interrupted : exit_status(&o);
    if (option(q, "json")) {
        aq_auto_json json_t *object = aq_run_json(&result);

        r = aq_put_json(NULL, object, err);
    } else if (!option(q, "quiet")) {
        if (read.summary.processes.count == 0)
            find_outside(q, &result);
        result.record = record_inside(q);
        result.read_only = read_only(q, &read.summary);
        result.input_unread = read.empty && has_input(q);
        tell_text(&result, aq_colour(option(q, "color"), STDERR_FILENO));
    }
    return r < 0 ? r : result.status;
}

static uint64_t milliseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* As the signal would have ended us: a shell that runs us in a loop has to know. */
static void end_by(int sig)
{
    fflush(NULL);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void say_still(int sig)
{
    static const char text[] =
        "aquarium: still running; Ctrl-C ends it and tells what it did so far\n";

    (void)sig;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return; /* nobody is there to read it */
}

/* On a terminal somebody waits, and a program that has nothing to say looks like one that hangs. */
static void mind_the_reader(const request *q, unsigned seconds)
{
    struct sigaction still = {.sa_handler = say_still, .sa_flags = SA_RESTART};

    if (!isatty(STDERR_FILENO) || aq_flag(q->command, q->args, "quiet"))
        return;
    sigaction(SIGALRM, &still, NULL);
    alarm(seconds);
}

/* Whoever reads objects gets one, which says why there is nothing to read. */
static int say_failed(const request *q, const aq_err *err)
{
    aq_auto_json json_t *object = option(q, "json") ? aq_run_failed_json(err) : NULL;

    if (object)
        (void)aq_put_json(NULL, object, NULL);
    return aq_say_failed(err);
}

static int run(const aq_args *args)
{
    aq_auto_arena a = aq_arena_new();
    request q = {.command = &aq_command_run, .args = args, .arena = a};
    aq_auto_buf stream = {0};
    aq_aquarium *world;
    aq_err err = {0};
    int r = take_request(&q), told;

    if (r != AQ_PARSE_RUN)
        return r;
    q.elapsed_ms = milliseconds();
    mind_the_reader(&q, PATIENCE);
    r = aq_backend_observe(q.backend, &q.plan, &world, &stream, &err);
    mind_the_reader(&q, 0);
    q.elapsed_ms = milliseconds() - q.elapsed_ms;
    told = r == 0 ? tell(&q, &stream, &err) : r;
    q.backend->teardown(world); /* its last processes ended meanwhile */
    if (r == -AQ_EPLAN)
        return aq_say_usage(q.command, "%s; --share shows a folder of the host inside", err.text);
    r = told;
    if (q.lost) {
        fprintf(stderr, "aquarium: not all of the command's output could be passed on: %s\n",
                strerror(q.lost));
        r = r == 0 ? AQ_EXIT_OURS : r;
    }
    if (r >= 0 && q.interrupted)
        end_by(q.interrupted);
    return r < 0 ? say_failed(&q, &err) : r;
}

const aq_command aq_command_run = {
    .name = "run",
    .summary = "run a command in a sealed world and see what it does",
    .usage = "--quarantine [OPTION…] -- COMMAND [ARGUMENT…]",
    .description =
        "Runs COMMAND in an aquarium: namespaces, Landlock and seccomp keep it apart from\n"
        "the host, and every act is recorded. Its output and exit status pass through;\n"
        "what it did is told on standard error. The current folder is visible inside,\n"
        "unless it is your home or one of the system's; what is written there and\n"
        "elsewhere stays inside and is gone afterwards.\n\n"
        "Time is virtual: sleeping costs nothing and is recorded. Ctrl-C ends COMMAND;\n"
        "what it did so far is told.",
    .options = options,
    .examples = "  aquarium run --quarantine -- python3 setup.py\n"
                "  aquarium run --quarantine --events /tmp/acts.jsonl -- npm install ./package\n"
                "  aquarium run --quarantine --json --limit wall-ms=10000 -- ./tool | jq .secrets\n"
                "  aquarium run --quarantine --resolve api.example.org -- ./tool\n",
    .exits = "  the status of COMMAND; 128 + N when signal N ended it, or us\n"
             "  3    a limit ended it: what it would have done is not known\n"
             "  126  COMMAND cannot be executed\n"
             "  127  COMMAND is not inside\n"
             "  64   the command line was wrong\n"
             "  70   our own failure, also when output of COMMAND could not be passed on\n",
    .takes_command = true,
    .run = run,
};
