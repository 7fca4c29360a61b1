/* What the container backend can promise on this host: found out by preparing a world and taking it
 * down again before anything runs in it. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "kernel/landlock.h"
#include "sandbox/container.h"

extern const aq_backend aq_backend_container;

#define DELEGATED "systemd-run --user --scope -p Delegate=yes aquarium …"

static const char trial[] = "/bin/true";

static void add_limits(aq_arena *a, aq_probe_list *l, const aq_containment *c)
{
    const struct {
        const char *name, *level, *remedy;
    } limits[] = {
        {"limit.memory", c->memory,
         "run as root, or in a cgroup that is yours and has the memory controller (" DELEGATED
         "); until then we count every 20 ms"},
        {"limit.processes", c->processes,
         "likewise, with the pids controller; until then the kernel counts the world's user"},
        {"limit.cpu", c->cpu, "likewise; until then we count every 20 ms"},
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        aq_probe_add(a, l, limits[i].name, limits[i].level[0] == 'c', limits[i].level,
                     limits[i].remedy);
    aq_probe_add(a, l, "limit.disk", true, c->disk, NULL);
    aq_probe_add(a, l, "limit.output", true, c->output, NULL);
}

/* A world sees the host's /usr: whoever looks for us there finds us. */
static void add_own_files(aq_arena *a, aq_probe_list *l)
{
    char self[PATH_MAX] = "";
    bool shown = readlink("/proc/self/exe", self, sizeof self - 1) > 0 &&
                 strncmp(self, "/usr/", strlen("/usr/")) == 0;

    aq_probe_add(a, l, "own-files", !shown, shown ? "in /usr, which programs inside see" : "unseen",
                 "install elsewhere, as below /opt; until then a program can know where it is");
}

static void add_points(aq_arena *a, aq_probe_list *l, const aq_containment *c)
{
    aq_probe_add(a, l, "namespaces", true, "user mount pid net ipc uts cgroup", NULL);
    aq_probe_add(
        a, l, "time-namespace", c->clocks, NULL,
        "run a kernel of 5.6 or later with CONFIG_TIME_NS; until then the host's uptime shows "
        "to a program that the observer does not answer");
    aq_probe_add(
        a, l, "landlock", c->landlock > 0,
        c->landlock > 0 ? aq_arena_printf(a, "ABI %d", c->landlock) : NULL,
        "boot with lsm=landlock,… on a kernel of 5.13 or later; until then mounts alone keep "
        "the base read-only");
    aq_probe_add(
        a, l, "identities", c->own_ids, c->own_ids ? "its own" : "the caller's",
        "run as root; until then the payload has the caller's user id outside, and only the "
        "namespaces keep it from the caller's processes and files");
    aq_probe_add(
        a, l, "proc", c->proc, c->proc ? "its own" : "none",
        "the container around us covers parts of /proc: run with unmasked /proc; until then "
        "programs inside see none");
    add_limits(a, l, c);
    add_own_files(a, l);
}

const char *aq_container_guarantee(aq_arena *a, const aq_containment *c)
{
    return aq_arena_printf(
        a,
        "Own user, mount, pid, network, ipc, uts%s cgroup namespaces on the host's kernel; a "
        "network that leads nowhere outside; a read-only base; no capabilities, no new privileges; "
        "only the "
        "system calls of a list; %s; the "
        "payload "
        "runs as %s%s; memory, processes and processor time are limited by %s, %s and %s.",
        c->clocks ? ", time and" : " and",
        c->landlock ? aq_arena_printf(a, "Landlock ABI %d%s", c->landlock,
                                      c->landlock >= 4 ? " with all of its rights but those to "
                                                         "TCP, which the network namespace holds"
                                                       : "")
                    : "no Landlock",
        c->own_ids ? "a user id that nothing else has" : "the caller's user id",
        c->proc ? "" : "; there is no /proc inside", c->memory, c->processes, c->cpu);
}

int aq_container_probe(aq_arena *a, aq_probe *ret, aq_err *err)
{
    const aq_backend *b = &aq_backend_container;
    aq_containment c = {0};
    aq_plan plan = {.argv = (const char *const[]){trial, NULL}, .containment = &c};
    aq_aquarium *aq = NULL;
    aq_probe_list l = {0};
    aq_err why = {0};
    int r = b->prepare(&plan, &aq, &why);

    (void)err;
    if (r == 0)
        r = aq_container_await(aq, &why);
    b->teardown(aq);
    *ret = (aq_probe){.usable = r == 0};
    if (r == 0) {
        add_points(a, &l, &c);
        ret->guarantee = aq_container_guarantee(a, &c);
    } else {
        aq_probe_add(a, &l, "world", false, aq_arena_strdup(a, why.text),
                     "allow user namespaces (sysctl user.max_user_namespaces, "
                     "kernel.unprivileged_userns_clone), or run as root");
        ret->guarantee = "None: no world can be made on this host, so nothing is run.";
    }
    ret->points = l.points;
    ret->count = l.count;
    return 0;
}
