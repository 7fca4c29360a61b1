/* What the files of actors say; actors.h. */
#include "veil/actors.h"

#include <inttypes.h>
#include <string.h>

#include "veil/internal.h"

const aq_veil_actor aq_veil_actors[] = {
#define AQ_ACTOR(pid, ppid, uid, comm, command, start, tty, size, ticks, threads)                  \
    {pid, ppid, uid, #pid, comm, command, sizeof command - 1, start, tty, size, ticks, threads},
#include "veil/actors.def"
#undef AQ_ACTOR
};
const size_t aq_veil_actor_count = sizeof aq_veil_actors / sizeof *aq_veil_actors;

enum { KERNEL_FLAGS = 0x208040, FLAGS = 0x400100 };

/* As /etc/passwd has them: only the message bus has another number. */
uint32_t aq_veil_actor_group(const aq_veil_actor *a)
{
    return a->uid == 100 ? 107 : a->uid;
}

const aq_veil_actor *aq_veil_actor_of(int pid)
{
    for (size_t i = 0; i < aq_veil_actor_count; i++)
        if (aq_veil_actors[i].pid == pid)
            return &aq_veil_actors[i];
    return NULL;
}

const aq_veil_actor *aq_veil_actor_at(const char *path)
{
    int pid, tid;

    aq_veil_pids(path, &pid, &tid);
    return pid > 0 ? aq_veil_actor_of(pid) : NULL;
}

static bool of_kernel(const aq_veil_actor *a)
{
    return a->command_len == 0;
}

/* "ksoftirqd/3", "kworker/3:1H-kblockd": of the fourth processor. */
static bool of_missing_cpu(const aq_machine *m, const char *comm)
{
    const char *slash = strchr(comm, '/');
    size_t digits = slash ? strspn(slash + 1, "0123456789") : 0;

    return digits && digits < 5 && (slash[1 + digits] == '\0' || slash[1 + digits] == ':') &&
           aq_word_number(slash + 1, digits, 10) >= aq_veil_cpus(m);
}

bool aq_veil_actor_on(const aq_machine *m, const aq_veil_actor *a)
{
    static const char *const of_hardware[] = {"i915/", "card0-", "irq/1"};

    if (!of_kernel(a))
        return true;
    for (size_t i = 0; i < sizeof of_hardware / sizeof *of_hardware; i++)
        if (strncmp(a->comm, of_hardware[i], strlen(of_hardware[i])) == 0 &&
            aq_machine_is(m, "machine.hypervisor"))
            return false;
    return !of_missing_cpu(m, a->comm);
}

/* Processes of a session share its number; all others lead their own. */
static int session(const aq_veil_actor *a)
{
    return of_kernel(a) ? 0 : a->pid == 1108 ? a->parent : a->pid;
}

static uint64_t start(const aq_veil_scene *s, const aq_veil_actor *a)
{
    uint64_t up = aq_ticks(s, s->machine->uptime_ns);

    return a->start < up ? a->start : up;
}

static void add_stat(const aq_veil_scene *s, const aq_veil_actor *a, aq_buf *ret)
{
    uint64_t rss = aq_veil_resident_kb(a->size_kb) / 4;

    aq_buf_addf(ret, "%d (%s) %s %d %d %d %" PRIu64 " %d %u ", a->pid, a->comm,
                of_kernel(a) && !a->ticks ? "I" : "S", a->parent, session(a), session(a), a->tty,
                a->tty ? a->pid : -1, of_kernel(a) ? KERNEL_FLAGS : FLAGS);
    aq_buf_addf(ret, "%" PRIu64 " 0 %" PRIu64 " 0 %" PRIu64 " %" PRIu64 " 0 0 %s %u 0 %" PRIu64,
                rss * 2, rss / 40, a->ticks / 3 * 2, a->ticks - a->ticks / 3 * 2,
                strchr(a->comm, 'H') && of_kernel(a) ? "0 -20" : "20 0", a->threads, start(s, a));
    aq_buf_addf(ret, " %" PRIu64 " %" PRIu64 " %s 0 0 0 0 0 0 0 ", a->size_kb * 1024, rss,
                of_kernel(a) ? "0" : "18446744073709551615");
    aq_buf_addf(ret, "0 0 0 0 0 17 %u 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                (unsigned)a->pid % aq_veil_cpus(s->machine));
}

static void add_memory(const aq_veil_actor *a, aq_buf *ret)
{
    uint64_t rss = aq_veil_resident_kb(a->size_kb), size = a->size_kb;

    aq_buf_addf(ret, "VmPeak:\t%8" PRIu64 " kB\nVmSize:\t%8" PRIu64 " kB\n", size, size);
    aq_buf_adds(ret, "VmLck:\t       0 kB\nVmPin:\t       0 kB\n");
    aq_buf_addf(ret, "VmHWM:\t%8" PRIu64 " kB\nVmRSS:\t%8" PRIu64 " kB\n", rss, rss);
    aq_buf_addf(ret, "RssAnon:\t%8" PRIu64 " kB\nRssFile:\t%8" PRIu64 " kB\n", rss / 16 * 4,
                rss - rss / 16 * 4);
    aq_buf_adds(ret, "RssShmem:\t       0 kB\n");
    aq_buf_addf(ret, "VmData:\t%8" PRIu64 " kB\nVmStk:\t     132 kB\nVmExe:\t%8" PRIu64 " kB\n",
                size / 8 / 4 * 4, size / 32 / 4 * 4);
    aq_buf_addf(ret, "VmLib:\t%8" PRIu64 " kB\nVmPTE:\t      64 kB\nVmSwap:\t       0 kB\n",
                size / 2 / 4 * 4);
    aq_buf_adds(ret, "HugetlbPages:\t       0 kB\n");
}

static void add_rights(const aq_veil_scene *s, const aq_veil_actor *a, aq_buf *ret)
{
    const char *none = "0000000000000000", *all = "000001ffffffffff";

    aq_buf_addf(ret, "CapInh:\t%s\nCapPrm:\t%s\nCapEff:\t%s\nCapBnd:\t%s\nCapAmb:\t%s\n", none,
                a->uid ? none : all, a->uid ? none : all, all, none);
    aq_buf_adds(ret, "NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
                     "Speculation_Store_Bypass:\tthread vulnerable\n"
                     "SpeculationIndirectBranch:\tconditional enabled\nCpus_allowed:\t");
    aq_add_cpu_mask(ret, s);
    aq_buf_adds(ret, "\nCpus_allowed_list:\t");
    aq_add_cpu_list(ret, s);
    aq_buf_adds(ret, "\nMems_allowed:\t");
    for (int i = 0; i < 31; i++)
        aq_buf_adds(ret, "00000000,");
    aq_buf_addf(ret,
                "00000001\nMems_allowed_list:\t0\nvoluntary_ctxt_switches:\t%" PRIu64
                "\nnonvoluntary_ctxt_switches:\t%" PRIu64 "\n",
                2 + a->ticks * 9, a->ticks / 7);
}

static void add_status(const aq_veil_scene *s, const aq_veil_actor *a, aq_buf *ret)
{
    bool idle = of_kernel(a) && !a->ticks;
    uint32_t gid = aq_veil_actor_group(a);
    uint64_t limit[2];

    aq_veil_limit(s->machine, 6 /* processes */, limit);
    aq_buf_addf(ret, "Name:\t%s\nUmask:\t%s\nState:\t%s\nTgid:\t%d\nNgid:\t0\nPid:\t%d\n", a->comm,
                of_kernel(a) || a->pid == 1 ? "0000" : "0022", idle ? "I (idle)" : "S (sleeping)",
                a->pid, a->pid);
    aq_buf_addf(ret, "PPid:\t%d\nTracerPid:\t0\nUid:\t%u\t%u\t%u\t%u\nGid:\t%u\t%u\t%u\t%u\n",
                a->parent, a->uid, a->uid, a->uid, a->uid, gid, gid, gid, gid);
    aq_buf_addf(ret, "FDSize:\t%d\nGroups:\t", of_kernel(a) ? 64 : 256);
    if (a->uid == 1000)
        aq_add_groups(s, ret);
    aq_buf_addf(ret, "%s\nNStgid:\t%d\nNSpid:\t%d\nNSpgid:\t%d\nNSsid:\t%d\n",
                a->uid == 1000 ? "" : " ", a->pid, a->pid, session(a), session(a));
    if (!of_kernel(a)) {
        add_memory(a, ret);
        aq_buf_adds(ret, "CoreDumping:\t0\nTHP_enabled:\t1\nuntag_mask:\t0xffffffffffffffff\n");
    }
    aq_buf_addf(ret, "Threads:\t%u\nSigQ:\t0/%" PRIu64 "\n", a->threads, limit[0]);
    aq_buf_addf(ret,
                "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t%s\nSigIgn:\t%s\n"
                "SigCgt:\t%s\n",
                a->pid == 1 ? "7be3c0fe28014a03" : "0000000000000000",
                of_kernel(a)  ? "ffffffffffffffff"
                : a->pid == 1 ? "0000000000001000"
                              : "0000000000000000",
                of_kernel(a)  ? "0000000000000000"
                : a->pid == 1 ? "00000001000004ec"
                              : "0000000180004a02");
    add_rights(s, a, ret);
}

static void add_cgroup(const aq_veil_actor *a, aq_buf *ret)
{
    if (of_kernel(a))
        aq_buf_adds(ret, "0::/\n");
    else if (a->pid == 1)
        aq_buf_adds(ret, "0::/init.scope\n");
    else if (a->pid >= 2388)
        aq_buf_adds(ret, "0::/user.slice/user-1000.slice/session-3.scope\n");
    else if (a->uid == 1000)
        aq_buf_adds(ret, "0::/user.slice/user-1000.slice/user@1000.service/init.scope\n");
    else
        aq_buf_addf(ret, "0::/system.slice/%s.service\n",
                    strcmp(a->comm, "dbus-daemon") == 0       ? "dbus"
                    : strcmp(a->comm, "systemd-journal") == 0 ? "systemd-journald"
                    : strcmp(a->comm, "systemd-timesyn") == 0 ? "systemd-timesyncd"
                    : strcmp(a->comm, "sshd") == 0            ? "ssh"
                    : strcmp(a->comm, "dhclient") == 0        ? "networking"
                    : strcmp(a->comm, "agetty") == 0          ? "system-getty.slice/getty@tty1"
                                                              : a->comm);
}

/* Facts stand in single arguments, so each is looked at for itself. */
static void add_command(const aq_veil_scene *s, const aq_veil_actor *a, aq_buf *ret)
{
    for (size_t at = 0; at < a->command_len; at += strlen(a->command + at) + 1) {
        aq_add_facts(ret, s->machine, 0, a->command + at);
        aq_buf_addc(ret, '\0');
    }
}

void aq_make_actor(const aq_veil_scene *s, const aq_veil_actor *a, const char *file, aq_buf *ret)
{
    uint64_t rss = aq_veil_resident_kb(a->size_kb) / 4;

    if (strcmp(file, "/stat") == 0)
        add_stat(s, a, ret);
    else if (strcmp(file, "/status") == 0)
        add_status(s, a, ret);
    else if (strcmp(file, "/statm") == 0)
        aq_buf_addf(ret, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " 0 %" PRIu64 " 0\n",
                    a->size_kb / 4, rss, rss - rss / 4, a->size_kb / 128, a->size_kb / 32);
    else if (strcmp(file, "/cmdline") == 0)
        add_command(s, a, ret);
    else if (strcmp(file, "/comm") == 0)
        aq_buf_addf(ret, "%s\n", a->comm);
    else if (strcmp(file, "/cgroup") == 0)
        add_cgroup(a, ret);
    else if (strcmp(file, "/loginuid") == 0)
        aq_buf_adds(ret, a->pid >= 2418 && a->uid == 1000 ? "1000" : "4294967295");
    else if (strcmp(file, "/sessionid") == 0)
        aq_buf_adds(ret, a->pid >= 2418 && a->uid == 1000 ? "3" : "4294967295");
    else if (strcmp(file, "/oom_score") == 0)
        aq_buf_adds(ret, of_kernel(a) || a->pid == 1 ? "0\n" : "666\n");
    else if (strcmp(file, "/sched") == 0)
        aq_make_sched_of(s, a->comm, a->pid, a->threads, ret);
    else if (strcmp(file, "/schedstat") == 0)
        aq_buf_addf(ret, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", a->ticks * 10000000 + 41322,
                    a->ticks * 18211 + 907, a->ticks * 10 + 2);
}

bool aq_actor_has(const char *file)
{
    static const char *const files[] = {"/stat",  "/status",    "/statm",    "/cmdline",
                                        "/comm",  "/cgroup",    "/loginuid", "/sessionid",
                                        "/sched", "/schedstat", "/oom_score"};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(file, files[i]) == 0)
            return true;
    return false;
}
