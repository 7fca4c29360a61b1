/* aquarium doctor: what holds on this host and in this state folder, and what to do about the rest.
 *
 * Our own parts are tried for real (a jail is started, the store opened, the ledger read again);
 * the kernel's are probed by doing. Backends add their own points when they land. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cleanroom/walk.h"
#include "cli/cli.h"
#include "jail/jail.h"
#include "kernel/probe.h"
#include "sandbox/backend.h"

static const aq_option options[] = {{"json", NULL, "print the result as JSON"},
                                    {"color", "WHEN", "auto, always or never"},
                                    {"state", "DIR", "state folder"},
                                    {0}};

enum { WELL = 0, WEAKER = 1, CANNOT_WORK = 3, FREE_MB = 1024 };

typedef struct section {
    const char *name, *title;
    aq_probe_list list;
    size_t used; /* the first ones: what this version works with */
} section;

/* The free space where the state lies, or will lie: a folder that is not there yet is of the file
 * system of the nearest one above it. */
static void examine_space(aq_arena *a, const char *path, aq_probe_list *l)
{
    char *folder = aq_arena_strdup(a, path);
    struct statvfs fs;
    uint64_t free_mb;

    while (statvfs(folder, &fs) < 0) {
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            return;
        *slash = '\0';
    }
    free_mb = fs.f_bavail * fs.f_frsize >> 20;
    aq_probe_add(a, l, "disk-space", free_mb >= FREE_MB,
                 aq_arena_printf(a, "%llu MB free", (unsigned long long)free_mb),
                 "free at least 1 GB: a package may unpack to that size");
}

static void examine_policy(aq_arena *a, const aq_home *home, aq_probe_list *l)
{
    aq_policy policy;
    aq_err err = {0};
    int r = aq_policy_load(home->dirfd, home->path, &policy, &err);

    aq_probe_add(a, l, "policy", r >= 0,
                 r > 0   ? aq_arena_printf(a, "%s/policy.yaml is read", home->path)
                 : r < 0 ? aq_arena_strdup(a, err.text)
                         : "no policy.yaml: the defaults hold",
                 "correct the place that is named (docs/formats/policy.md)");
}

static void examine_state(aq_arena *a, const char *given, aq_probe_list *l)
{
    __attribute__((cleanup(aq_home_close))) aq_home home = {.dirfd = -1};
    aq_auto_free char *path = NULL;
    aq_ledger_audit audit;
    uint64_t known = 0;
    aq_err err = {0};
    int r = aq_home_open_existing(given, &home, &err);

    path = aq_home_path(given, &err);
    if (r == -ENOENT && path) { /* looking makes nothing */
        aq_probe_add(a, l, "state-folder", true,
                     aq_arena_printf(a, "%s is not there yet; the first validate makes it", path),
                     NULL);
        examine_space(a, path, l);
        return;
    }
    if (r < 0) {
        aq_probe_add(a, l, "state-folder", false, aq_arena_strdup(a, err.text),
                     "mend it, or name another with --state DIR or AQUARIUM_HOME");
        return;
    }
    aq_probe_add(a, l, "state-folder", true, aq_arena_strdup(a, home.path), NULL);
    examine_space(a, home.path, l);
    examine_policy(a, &home, l);
    if (aq_store_known_count(home.store, &known, &err) < 0)
        aq_probe_add(a, l, "store", false, NULL, aq_arena_strdup(a, err.text));
    else
        aq_probe_add(a, l, "store", true,
                     aq_arena_printf(a, "%llu known names", (unsigned long long)known), NULL);
    r = aq_ledger_verify(home.ledger, &audit, &err);
    if (r < 0)
        aq_home_ledger_failed(&home, &err);
    if (r < 0 || aq_home_check_ledger(&home, &err) < 0)
        aq_probe_add(a, l, "ledger", false, NULL, aq_arena_strdup(a, err.text));
    else
        aq_probe_add(a, l, "ledger", true,
                     aq_arena_printf(a, "%llu entries verify", (unsigned long long)audit.entries),
                     NULL);
}

/* Hosts that forbid jails do so by a setting, containers by a filter. */
static const char jail_remedy[] =
    "let this user make namespaces: sysctl user.max_user_namespaces and, where the host has them, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; in a "
    "container, give it more rights; the kernel needs CONFIG_USER_NS and CONFIG_SECCOMP_FILTER";

/* {"landlock": 7, "seccomp": true, …} as "landlock 7, seccomp, …". What is missing is named as
 * such, and only a jail without seccomp is none. */
static void examine_jail(aq_arena *a, aq_probe_list *l)
{
    aq_auto_json json_t *facts = NULL;
    aq_auto_buf text = {0}, words = {0};
    aq_err err = {0};
    const char *name;
    json_t *value;

    if (aq_jail_guarantee(&text, &err) < 0 ||
        aq_json_parse(aq_buf_str(&text), text.len, "jail", &facts, &err) < 0) {
        aq_probe_add(a, l, "jail", false, aq_arena_strdup(a, err.text), jail_remedy);
        return;
    }
    json_object_foreach (facts, name, value) {
        aq_buf_adds(&words, words.len ? ", " : "");
        if (json_is_false(value) || (json_is_integer(value) && !json_integer_value(value)))
            aq_buf_addf(&words, "NO %s", name);
        else if (json_is_integer(value))
            aq_buf_addf(&words, "%s %lld", name, (long long)json_integer_value(value));
        else if (json_is_string(value))
            aq_buf_addf(&words, "%s: %s", name, json_string_value(value));
        else
            aq_buf_adds(&words, name);
    }
    for (char *p = words.data; p && *p; p++)
        *p = *p == '_' ? ' ' : *p;
    aq_probe_add(a, l, "jail", json_is_true(json_object_get(facts, "seccomp")),
                 aq_arena_strdup(a, aq_buf_str(&words)), "run a kernel with CONFIG_SECCOMP_FILTER");
}

/* What the clean room uses of the kernel. The rest is for running code: told, so that an operator
 * can prepare, and no defect of the clean room. */
static bool used_now(const char *name)
{
    static const char *const used[] = {"kernel",          "landlock", "seccomp",  "namespaces",
                                       "user-namespaces", "ptrace",   "tsc-trap", "time-namespace"};

    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (strcmp(name, used[i]) == 0)
            return true;
    return false;
}

/* Moves what this version uses before the rest; returns how many. */
static size_t split_host(aq_arena *a, aq_probe_list *l)
{
    aq_probe_point *points = aq_arena_alloc(a, (l->count + 1) * sizeof *points);
    size_t used = 0, n = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < l->count; i++)
            if (used_now(l->points[i].name) == (pass == 0))
                points[n++] = l->points[i];
        used = pass == 0 ? n : used;
    }
    l->points = points;
    return used;
}

/* Makes a world of each backend and takes it down again. */
static void examine_backends(aq_arena *a, aq_probe_list *l)
{
    for (const aq_backend *const *b = aq_backends(); *b; b++) {
        aq_probe p;
        aq_err err = {0};

        if ((*b)->probe(a, &p, &err) < 0) {
            aq_probe_add(a, l, (*b)->name, false, NULL, aq_arena_strdup(a, err.text));
            continue;
        }
        for (size_t i = 0; i < p.count; i++)
            aq_probe_add(a, l, aq_arena_printf(a, "%s.%s", (*b)->name, p.points[i].name),
                         p.points[i].usable, p.points[i].level,
                         p.points[i].usable ? NULL : p.points[i].remedy);
    }
}

static json_t *section_json(const section *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->list.count; i++) {
        const aq_probe_point *p = &s->list.points[i];
        json_t *o = json_object();
        json_object_set_new(o, "name", json_string(p->name));
        json_object_set_new(o, "usable", json_boolean(p->usable));
        json_object_set_new(o, "used", json_boolean(i < s->used));
        json_object_set_new(o, "level", p->level ? json_string(p->level) : json_null());
        json_object_set_new(o, "remedy", p->remedy ? json_string(p->remedy) : json_null());
        json_array_append_new(list, o);
    }
    return list;
}

static void section_text(const section *s, size_t from, size_t to, bool colour, aq_buf *out)
{
    int width = 0;

    for (size_t i = from; i < to; i++) {
        int n = (int)strlen(s->list.points[i].name);

        width = n > width ? n : width;
    }
    for (size_t i = from; i < to; i++) {
        const aq_probe_point *p = &s->list.points[i];
        bool later = i >= s->used;
        const char *mark = p->usable ? "yes" : later ? "–  " : "no ";
        const char *on = !colour ? "" : p->usable ? "\033[32m" : later ? "\033[2m" : "\033[33m";
        const char *level = p->level ? p->level : "";

        aq_buf_addf(out, "  %s%s%s  %-*s%s\n", on, mark, colour ? "\033[0m" : "",
                    *level ? width + 2 : 0, p->name, level);
        if (p->remedy)
            aq_buf_addf(out, "       → %s\n", p->remedy);
    }
}

static bool all_usable(const section *s)
{
    for (size_t i = 0; i < s->used; i++)
        if (!s->list.points[i].usable)
            return false;
    return true;
}

static void write_text(const section *ours, const section *worlds, const section *host, int status,
                       bool colour, aq_buf *text)
{
    static const char *const words[] = {
        [WELL] = "\nThe clean room works, with all that it uses.\n",
        [WEAKER] = "\nThe clean room works. What is missing weakens it; reports say so.\n",
        [CANNOT_WORK] = "\nThe clean room cannot work here until the points above are mended.\n",
    };

    aq_buf_addf(text, "%s\n", ours->title);
    section_text(ours, 0, ours->list.count, colour, text);
    aq_buf_addf(text, "\n%s\n", worlds->title);
    section_text(worlds, 0, worlds->list.count, colour, text);
    aq_buf_addf(text, "\n%s\n", host->title);
    section_text(host, 0, host->used, colour, text);
    aq_buf_adds(text, "\nFor aquariums: limits, and backends that can be added\n");
    section_text(host, host->used, host->list.count, colour, text);
    aq_buf_adds(text, words[status]);
}

static int run(const aq_args *args)
{
    const aq_command *c = &aq_command_doctor;
    aq_auto_arena a = aq_arena_new();
    section ours = {.name = "clean_room", .title = "The clean room on this machine"};
    section worlds = {.name = "aquariums", .title = "What holds around a program that it runs"};
    section host = {.name = "host", .title = "What it uses of the kernel"};
    aq_auto_json json_t *json = json_object();
    aq_auto_buf text = {0};
    const char *colour = aq_arg(c, args, "color");
    aq_err err = {0};
    int status;

    if (colour && strcmp(colour, "auto") != 0 && strcmp(colour, "always") != 0 &&
        strcmp(colour, "never") != 0)
        return aq_say_usage(c, "--color is auto, always or never, not '%.40s'", colour);
    examine_jail(a, &ours.list);
    examine_state(a, aq_arg(c, args, "state"), &ours.list);
    examine_backends(a, &worlds.list);
    worlds.used = worlds.list.count;
    aq_probe_host(a, &host.list);
    ours.used = ours.list.count;
    host.used = split_host(a, &host.list);
    status = !all_usable(&ours)                         ? CANNOT_WORK
             : all_usable(&host) && all_usable(&worlds) ? WELL
                                                        : WEAKER;
    json_object_set_new(json, "schema", json_string("aquarium/doctor/v1"));
    json_object_set_new(json, "status", json_integer(status));
    json_object_set_new(json, ours.name, section_json(&ours));
    json_object_set_new(json, worlds.name, section_json(&worlds));
    json_object_set_new(json, host.name, section_json(&host));
    write_text(&ours, &worlds, &host, status, aq_colour(colour, STDOUT_FILENO), &text);
    if (aq_flag(c, args, "json") ? aq_put_json("-", json, &err) < 0
                                 : aq_put("-", text.data, text.len, &err) < 0)
        return aq_say_failed(&err);
    return status;
}

const aq_command aq_command_doctor = {
    .name = "doctor",
    .summary = "say what holds on this host, and what to do about the rest",
    .usage = "[OPTION…]",
    .description = "Starts a jail, opens the store, verifies the ledger, reads policy.yaml, and\n"
                   "tries which mechanisms of the kernel work here. Changes nothing. What only\n"
                   "running code needs is listed apart and does not count.",
    .options = options,
    .examples = "  aquarium doctor\n  aquarium doctor --json | jq '.host[] | select(.used and "
                "(.usable|not))'\n",
    .exits = "  0   everything that the clean room uses is there\n"
             "  1   the clean room works; something that strengthens it is missing\n"
             "  3   the clean room cannot work here\n"
             "  64  the command line was wrong\n"
             "  70  our own failure\n",
    .min_operands = 0,
    .max_operands = 0,
    .run = run,
};
