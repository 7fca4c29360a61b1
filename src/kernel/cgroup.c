/* Control groups; see cgroup.h. */
#include "kernel/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define ROOT   "/sys/fs/cgroup"
#define PREFIX "aquarium-"

enum { SMALL = 4096, PATH = 512 };

const char *aq_cgroup_level_name(aq_cgroup_level level)
{
    return level == AQ_CGROUP_V2 ? "cgroup v2" : level == AQ_CGROUP_V1 ? "cgroup v1" : NULL;
}

/* ---- who owns a group ---- */

/* The start time of a process in clock ticks, 0 when there is none or it is dead and not yet
 * reaped. */
static uint64_t started(pid_t pid)
{
    aq_auto_buf text = {0};
    char path[40];
    const char *p;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (aq_read_file(AT_FDCWD, path, SMALL, &text, NULL) < 0)
        return 0;
    p = strrchr(aq_buf_str(&text), ')'); /* the name before it may hold anything */
    if (p && (strncmp(p, ") Z", 3) == 0 || strncmp(p, ") X", 3) == 0))
        return 0;
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p, NULL, 10) : 0;
}

/* Pids mean something in one pid namespace only: another's groups are never ours to judge. */
static uint64_t pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

static void make_name(char name[static AQ_CGROUP_NAME])
{
    static unsigned count;

    snprintf(name, AQ_CGROUP_NAME, PREFIX "%" PRIx64 "-%d-%" PRIu64 "-%u", pid_namespace(),
             (int)getpid(), started(getpid()), __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED));
}

/* Is this the name of a group of ours whose owner is dead? */
static bool is_stale(const char *name, uint64_t namespace)
{
    char *end;
    uint64_t owner_namespace, start;
    pid_t owner;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    owner_namespace = strtoull(name + strlen(PREFIX), &end, 16);
    if (*end != '-' || owner_namespace != namespace)
        return false;
    owner = (pid_t)strtol(end + 1, &end, 10);
    if (*end != '-')
        return false;
    start = strtoull(end + 1, &end, 10);
    return *end == '-' && started(owner) != start;
}

/* ---- folders ---- */

/* Our own group in the hierarchy of `controller` ("" for v2), as /proc/self/cgroup tells it. */
static const char *own_path(const char *text, const char *controller, char path[static PATH])
{
    size_t want = strlen(controller);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *names = strchr(line, ':');
        const char *colon = names ? strchr(names + 1, ':') : NULL;
        size_t len = strcspn(line, "\n");
        if (!colon || colon > line + len)
            continue;
        for (const char *n = names + 1; n <= colon;) {
            size_t l = strcspn(n, ",:");
            if (l == want && memcmp(n, controller, l) == 0) {
                snprintf(path, PATH, "%.*s", (int)(line + len - colon - 1), colon + 1);
                return path;
            }
            n += l + 1;
        }
    }
    return NULL;
}

static int open_dir(int dirfd, const char *path)
{
    return openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool write_value(int folder, const char *file, const char *text)
{
    aq_auto_fd int fd = openat(folder, file, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) >= 0;
}

static bool write_number(int folder, const char *file, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return write_value(folder, file, text);
}

static int open_value(int folder, const char *file)
{
    return openat(folder, file, O_RDONLY | O_CLOEXEC);
}

/* Makes our folder in `parent` and remembers it at `place`; takes the descriptor. */
static bool make_folder(aq_cgroup *g, size_t place, int parent)
{
    if (parent >= 0 && mkdirat(parent, g->name, 0755) == 0) {
        g->place[place].parent = parent;
        g->place[place].folder = open_dir(parent, g->name);
        return g->place[place].folder >= 0;
    }
    if (parent >= 0)
        close(parent);
    return false;
}

static void drop_folder(aq_cgroup *g, size_t place)
{
    if (g->place[place].folder >= 0) {
        unlinkat(g->place[place].parent, g->name, AT_REMOVEDIR);
        close(g->place[place].folder);
        close(g->place[place].parent);
    }
    g->place[place].folder = g->place[place].parent = -1;
}

/* ---- making ---- */

/* The v2 tree: where we are allowed to make a folder that has the controllers. A group with
 * processes of its own cannot hand controllers on, so the group above ours is tried first, and the
 * root of the tree last. Without controllers a v2 folder still counts processor time, kills, and
 * takes a child in as it is made. */
static void make_v2(aq_cgroup *g, const char *self, uint64_t memory, uint64_t pids)
{
    aq_auto_fd int pure = openat(AT_FDCWD, ROOT "/cgroup.controllers", O_PATH | O_CLOEXEC);
    const char *tree = pure >= 0 ? ROOT : ROOT "/unified";
    char own[PATH], path[2 * PATH], *slash;

    if (!own_path(self, "", own))
        return;
    for (int attempt = 0; attempt < 3; attempt++) {
        if (attempt == 0 && (slash = strrchr(own, '/')) != NULL && own[1])
            snprintf(path, sizeof path, "%s%.*s", tree, (int)(slash - own), own);
        else
            snprintf(path, sizeof path, "%s%s", tree, attempt == 1 ? own : "/");
        if ((attempt == 0 && !own[1]) || !make_folder(g, 0, open_dir(AT_FDCWD, path)))
            continue;
        if (write_number(g->place[0].folder, "memory.max", memory)) {
            write_value(g->place[0].folder, "memory.swap.max", "0");
            g->memory = AQ_CGROUP_V2;
            g->memory_events = open_value(g->place[0].folder, "memory.events");
            g->memory_peak = open_value(g->place[0].folder, "memory.peak");
            g->memory_stat = open_value(g->place[0].folder, "memory.stat");
        }
        if (write_number(g->place[0].folder, "pids.max", pids)) {
            g->pids = AQ_CGROUP_V2;
            g->pids_events = open_value(g->place[0].folder, "pids.events");
        }
        if (g->memory || g->pids || attempt == 2 || pure < 0)
            break;
        drop_folder(g, 0);
    }
    if (g->place[0].folder < 0)
        return;
    g->into = g->place[0].folder;
    g->cpu_usage = open_value(g->place[0].folder, "cpu.stat");
    g->cpu = g->cpu_usage >= 0 ? AQ_CGROUP_V2 : AQ_CGROUP_NONE;
}

/* A v1 hierarchy, below our own group in it so that limits around us still hold. */
static bool make_v1(aq_cgroup *g, size_t place, const char *self, const char *controller)
{
    char own[PATH], path[2 * PATH];
    int parent;

    if (!own_path(self, controller, own))
        return false;
    snprintf(path, sizeof path, ROOT "/%s%s", controller, own);
    parent = open_dir(AT_FDCWD, path);
    if (parent < 0) { /* seen through a container: the path is the outer one */
        snprintf(path, sizeof path, ROOT "/%s", controller);
        parent = open_dir(AT_FDCWD, path);
    }
    if (!make_folder(g, place, parent))
        return false;
    g->place[place].join = openat(g->place[place].folder, "tasks", O_WRONLY | O_CLOEXEC);
    return g->place[place].join >= 0;
}

static void make_all_v1(aq_cgroup *g, const char *self, uint64_t memory, uint64_t pids)
{
    if (!g->memory && make_v1(g, 1, self, "memory") &&
        write_number(g->place[1].folder, "memory.limit_in_bytes", memory)) {
        write_number(g->place[1].folder, "memory.memsw.limit_in_bytes", memory);
        g->memory = AQ_CGROUP_V1;
        g->memory_events = open_value(g->place[1].folder, "memory.oom_control");
        g->memory_peak = open_value(g->place[1].folder, "memory.max_usage_in_bytes");
        g->memory_stat = open_value(g->place[1].folder, "memory.stat");
    }
    if (!g->pids && make_v1(g, 2, self, "pids") &&
        write_number(g->place[2].folder, "pids.max", pids)) {
        g->pids = AQ_CGROUP_V1;
        g->pids_events = open_value(g->place[2].folder, "pids.events");
    }
    if (!g->cpu && make_v1(g, 3, self, "cpuacct")) {
        g->cpu_usage = open_value(g->place[3].folder, "cpuacct.usage");
        g->cpu = g->cpu_usage >= 0 ? AQ_CGROUP_V1 : AQ_CGROUP_NONE;
    }
}

void aq_cgroup_none(aq_cgroup *ret)
{
    *ret = (aq_cgroup){.into = -1,
                       .memory_events = -1,
                       .memory_peak = -1,
                       .memory_stat = -1,
                       .pids_events = -1,
                       .cpu_usage = -1};
    for (size_t i = 0; i < AQ_CGROUP_PLACES; i++)
        ret->place[i].parent = ret->place[i].folder = ret->place[i].join = -1;
}

void aq_cgroup_begin(uint64_t memory, uint64_t pids, aq_buf *self, aq_cgroup *ret)
{
    aq_cgroup_none(ret);
    if (aq_read_file(AT_FDCWD, "/proc/self/cgroup", 1 << 16, self, NULL) < 0)
        return;
    make_name(ret->name);
    make_v2(ret, aq_buf_str(self), memory, pids);
}

void aq_cgroup_finish(uint64_t memory, uint64_t pids, const aq_buf *self, aq_cgroup *g)
{
    if (g->name[0])
        make_all_v1(g, self->data, memory, pids);
}

void aq_cgroup_make(uint64_t memory, uint64_t pids, aq_cgroup *ret)
{
    aq_auto_buf self = {0};

    aq_cgroup_begin(memory, pids, &self, ret);
    aq_cgroup_finish(memory, pids, &self, ret);
}

/* In periods of a tenth of a second; the kernel takes no less than a hundredth of one. */
void aq_cgroup_slow(aq_cgroup *g, uint64_t percent)
{
    aq_auto_buf self = {0};
    uint64_t quota = 1000 * (percent < 1 ? 1 : percent > 100000 ? 100000 : percent);
    char text[48];

    snprintf(text, sizeof text, "%" PRIu64 " 100000", quota);
    if (g->place[0].folder >= 0 && write_value(g->place[0].folder, "cpu.max", text)) {
        g->rate = AQ_CGROUP_V2;
        return;
    }
    if (!g->name[0] || aq_read_file(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &self, NULL) < 0 ||
        !make_v1(g, 4, aq_buf_str(&self), "cpu"))
        return;
    if (write_number(g->place[4].folder, "cpu.cfs_period_us", 100000) &&
        write_number(g->place[4].folder, "cpu.cfs_quota_us", quota))
        g->rate = AQ_CGROUP_V1;
}

int aq_cgroup_join(const aq_cgroup *g, aq_err *err)
{
    /* A thread that moves itself alone needs no lock over all processes of the host: "tasks" and
     * "0" cost microseconds where "cgroup.procs" with a pid can cost milliseconds. */
    for (size_t i = 0; i < AQ_CGROUP_PLACES; i++)
        if (g->place[i].join >= 0 && write(g->place[i].join, "0", 1) < 0)
            return aq_fail_errno(err, "cannot join a cgroup");
    return 0;
}

/* ---- reading ---- */

typedef char group_text[1024];

/* "" when it cannot be read. */
static const char *read_text(int fd, group_text text)
{
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof(group_text) - 1, 0) : -1;

    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The number after `key`; 0 when it is not there. */
static uint64_t find_number(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoull(line + n + 1, NULL, 10);
    return 0;
}

void aq_cgroup_read(const aq_cgroup *g, aq_cgroup_usage *ret)
{
    group_text text;

    read_text(g->cpu_usage, text);
    ret->cpu_ns =
        g->cpu == AQ_CGROUP_V2 ? 1000 * find_number(text, "usage_usec") : strtoull(text, NULL, 10);
    ret->peak_memory = strtoull(read_text(g->memory_peak, text), NULL, 10);
    read_text(g->memory_stat, text);
    ret->memory =
        find_number(text, g->memory == AQ_CGROUP_V2 ? "anon" : "rss") + find_number(text, "shmem");
    ret->killed = find_number(read_text(g->memory_events, text), "oom_kill");
    ret->refused = find_number(read_text(g->pids_events, text), "max");
}

/* ---- the end ---- */

/* Kills all members: at once in v2, else one by one until none is left to be seen. */
static void kill_members(int folder)
{
    aq_auto_buf text = {0};

    if (write_value(folder, "cgroup.kill", "1") ||
        aq_read_file(folder, "cgroup.procs", 1 << 20, &text, NULL) < 0)
        return;
    for (const char *p = aq_buf_str(&text); *p;) {
        char *end;
        long pid = strtol(p, &end, 10);
        if (end == p)
            break;
        if (pid > 1 && pid != getpid())
            kill((pid_t)pid, SIGKILL);
        p = end + (*end == '\n');
    }
}

/* A group is busy while a member is on its way out. */
static bool remove_folder(int parent, const char *name, int folder, unsigned ms)
{
    struct timespec nap = {.tv_nsec = 200000};

    for (unsigned tries = 0; unlinkat(parent, name, AT_REMOVEDIR) < 0; tries++) {
        if (errno == ENOENT)
            return true;
        if (errno != EBUSY || tries >= 5 * ms)
            return false;
        kill_members(folder);
        nanosleep(&nap, NULL);
    }
    return true;
}

bool aq_cgroup_remove(aq_cgroup *g, unsigned ms)
{
    bool gone = true;

    for (size_t i = 0; i < AQ_CGROUP_PLACES; i++) {
        if (g->place[i].parent < 0)
            continue;
        if (remove_folder(g->place[i].parent, g->name, g->place[i].folder, ms)) {
            close(g->place[i].parent);
            close(g->place[i].folder);
            g->place[i].parent = g->place[i].folder = -1;
        } else {
            gone = false;
        }
    }
    return gone;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void aq_cgroup_close(aq_cgroup *g)
{
    for (size_t i = 0; i < AQ_CGROUP_PLACES; i++) {
        close_fd(&g->place[i].parent);
        close_fd(&g->place[i].folder);
        close_fd(&g->place[i].join);
    }
    close_fd(&g->memory_events);
    close_fd(&g->memory_peak);
    close_fd(&g->memory_stat);
    close_fd(&g->pids_events);
    close_fd(&g->cpu_usage);
    g->into = -1;
}

/* ---- what killed owners left ---- */

/* Looks at the folders in which a group can have been made, until one look says yes. */
static bool any_place(bool (*look)(const char *path, const void *arg), const void *arg)
{
    static const char *const hierarchies[] = {"memory", "pids", "cpuacct", "cpu"};
    static const char *const trees[] = {ROOT, ROOT "/unified"};
    aq_auto_buf self = {0};
    char own[PATH], path[2 * PATH];
    bool found = false;

    if (aq_read_file(AT_FDCWD, "/proc/self/cgroup", 1 << 16, &self, NULL) < 0)
        return false;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies && !found; i++) {
        if (!own_path(aq_buf_str(&self), hierarchies[i], own))
            continue;
        snprintf(path, sizeof path, ROOT "/%s%s", hierarchies[i], own);
        aq_auto_fd int there = open_dir(AT_FDCWD, path);
        if (there < 0) /* seen through a container: the path is the outer one */
            snprintf(path, sizeof path, ROOT "/%s", hierarchies[i]);
        found = look(path, arg);
    }
    for (size_t i = 0; i < 2 && !found && own_path(aq_buf_str(&self), "", own); i++) {
        char *slash = strrchr(own, '/');
        snprintf(path, sizeof path, "%s%s", trees[i], own);
        found = look(path, arg);
        snprintf(path, sizeof path, "%s%.*s", trees[i], slash ? (int)(slash - own) : 0, own);
        found = found || (slash != own && look(path, arg)) || (own[1] && look(trees[i], arg));
    }
    return found;
}

typedef struct sweeping {
    uint64_t namespace;
    unsigned ms;
} sweeping;

static bool sweep_folder(const char *path, const void *arg)
{
    const sweeping *s = arg;
    DIR *dir = opendir(path);

    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (e->d_type != DT_DIR || !is_stale(e->d_name, s->namespace))
            continue;
        aq_auto_fd int folder = open_dir(dirfd(dir), e->d_name);
        remove_folder(dirfd(dir), e->d_name, folder, s->ms);
    }
    if (dir)
        closedir(dir);
    return false;
}

void aq_cgroup_sweep(unsigned ms)
{
    const sweeping s = {pid_namespace(), ms};

    any_place(sweep_folder, &s);
}

static bool is_writable(const char *path, const void *arg)
{
    (void)arg;
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

bool aq_cgroup_allowed(void)
{
    return any_place(is_writable, NULL);
}
