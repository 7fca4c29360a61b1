/* Runs a command in a world of the container backend, watched as ever but without a machine made up
 * around it, and writes what came of it as JSON. What the escape tests, the kill tests and the
 * measurements drive. run_world [--json FILE] [--limit NAME=N] [--share FROM:TO] [--rootfs DIR]
 * [--cwd DIR] [--env N=V] [--full] -- CMD…; --full: the payload's last lock finds no room. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "model/observation.h"
#include "sandbox/backend.h"
#include "sandbox/watch.h"

enum { MOST = 16 };

typedef struct order {
    aq_plan plan;
    aq_share shares[MOST];
    const char *env[MOST + 1];
    const char *json;
    bool probe;
} order;

static int set_limit(aq_limits *l, const char *text)
{
    for (size_t i = 0; i < AQ_LIMITS; i++) {
        const char *name = aq_limit_name((aq_limit)i);
        if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == '=') {
            l->most[i] = strtoull(text + strlen(name) + 1, NULL, 10);
            return 0;
        }
    }
    return -1;
}

static int set_share(order *o, char *text)
{
    char *colon = strchr(text, ':');

    if (!colon || o->plan.share_count == MOST)
        return -1;
    *colon = '\0';
    o->shares[o->plan.share_count++] = (aq_share){.from = text, .to = colon + 1};
    return 0;
}

static int take(order *o, const char *name, char *value)
{
    size_t n = 0;

    if (strcmp(name, "--json") == 0)
        o->json = value;
    else if (strcmp(name, "--rootfs") == 0)
        o->plan.rootfs = value;
    else if (strcmp(name, "--cwd") == 0)
        o->plan.cwd = value;
    else if (strcmp(name, "--limit") == 0)
        return set_limit(&o->plan.limits, value);
    else if (strcmp(name, "--share") == 0)
        return set_share(o, value);
    else if (strcmp(name, "--env") == 0) {
        while (o->env[n])
            n++;
        if (n == MOST)
            return -1;
        o->env[n] = value;
    } else
        return -1;
    return 0;
}

/* ---- a payload that cannot be locked ---- */

static const aq_watch *real;

/* Fills the room that the kernel has for the filters of one process, and then asks for the last. */
static int enter_full(aq_err *err)
{
    static struct sock_filter code[4000];
    struct sock_fprog f = {.filter = code};

    for (size_t i = 0; i < sizeof code / sizeof *code; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (f.len = sizeof code / sizeof *code; f.len > 0; f.len /= 2)
        while (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f, 0, 0) == 0)
            ;
    return real->enter(err);
}

static void leave_no_room(void)
{
    static aq_watch full;

    real = aq_container_watch;
    full = *real;
    full.enter = enter_full;
    aq_container_watch = &full;
}

static int parse(int argc, char **argv, order *o)
{
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
        if (strcmp(argv[i], "--probe") == 0)
            o->probe = true, i--;
        else if (strcmp(argv[i], "--full") == 0)
            leave_no_room(), i--;
        else if (i + 1 >= argc || take(o, argv[i], argv[i + 1]) < 0)
            return -1;
    }
    if (i + 1 >= argc)
        return o->probe ? 0 : -1;
    o->plan.argv = (const char *const *)argv + i + 1;
    o->plan.env = o->env;
    o->plan.shares = o->shares;
    o->plan.has_input = o->plan.has_output = true;
    o->plan.input = 0;
    o->plan.output = 1;
    o->plan.error = 2;
    return 0;
}

static json_t *containment_json(const aq_containment *c)
{
    return json_pack("{si,sb,sb,sb,ss,ss,ss,ss,ss}", "landlock", c->landlock, "own_ids", c->own_ids,
                     "clocks", c->clocks, "proc", c->proc, "memory", c->memory, "processes",
                     c->processes, "cpu", c->cpu, "rate", c->rate, "disk", c->disk);
}

static int write_json(const char *path, const aq_observation *o, const aq_containment *c)
{
    aq_auto_json json_t *j = aq_observation_json(o);

    json_object_set_new(j, "containment", containment_json(c));
    if (o->exit_kind == AQ_EXIT_BUDGET)
        json_object_set_new(j, "limit", json_string(aq_limit_name((aq_limit)o->exit_value)));
    return path ? json_dump_file(j, path, 0) : 0;
}

static int probe(void)
{
    aq_auto_arena a = aq_arena_new();
    aq_err err = {0};
    aq_probe p;

    if (aq_backend_find("container")->probe(a, &p, &err) < 0)
        return 70;
    printf("%s\n%s\n", p.usable ? "usable" : "not usable", p.guarantee);
    for (size_t i = 0; i < p.count; i++)
        printf("%s %s %s %s\n", p.points[i].usable ? "yes" : "no ", p.points[i].name,
               p.points[i].level ? p.points[i].level : "-",
               p.points[i].remedy ? p.points[i].remedy : "");
    return p.usable ? 0 : 1;
}

int main(int argc, char **argv)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf stream = {0};
    aq_containment held = {0};
    aq_observation o;
    order what = {.plan.containment = &held};
    aq_err err = {0};

    if (parse(argc, argv, &what) < 0)
        return 64;
    if (what.probe)
        return probe();
    if (aq_backend_run(aq_backend_find("container"), &what.plan, &stream, &err) < 0 ||
        aq_observation_read(a, stream.data, stream.len, NULL, NULL, &o, &err) < 0) {
        fprintf(stderr, "run_world: %s\n", err.text);
        return 70;
    }
    if (write_json(what.json, &o, &held) < 0) {
        fprintf(stderr, "run_world: cannot write %s\n", what.json);
        return 70;
    }
    return o.exit_kind == AQ_EXIT_STATUS ? o.exit_value : 71 + (int)o.exit_kind;
}
