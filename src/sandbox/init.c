/* Inside a world: init builds it, makes the payload and reaps; the payload gives up everything and
 * executes the command. Nothing here reads a byte that the payload made. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitize.h"
#include "kernel/landlock.h"
#include "kernel/network.h"
#include "kernel/process.h"
#include "kernel/rest.h"
#include "sandbox/container.h"
#include "sandbox/world.h"
#include "veil/veil.h"

enum {
    ADDRESS = 0x0a00020f, /* 10.0.2.15/24 */
    PREFIX = 24,
    UPTIME = 2 * 86400 + 4217, /* seconds since boot that a world begins with */
    OPEN_FILES = 1024,
    OPEN_FILES_MOST = 65536,
    STACK = 8 << 20,
};

/* ---- the payload ---- */

static int limits(const aq_world *w, aq_err *err)
{
    const uint64_t *most = w->limits.most;
    uint64_t seconds = most[AQ_LIMIT_CPU_NS] / 1000000000 + 1;
    uint64_t data = w->cgroup.memory || AQ_SANITIZED ? RLIM_INFINITY : 2 * most[AQ_LIMIT_MEMORY];
    const struct {
        int resource;
        uint64_t soft, hard;
    } all[] = {
        {RLIMIT_CPU, seconds, seconds + 1},
        {RLIMIT_FSIZE, most[AQ_LIMIT_DISK], most[AQ_LIMIT_DISK]},
        {RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES_MOST},
        {RLIMIT_STACK, STACK, RLIM_INFINITY},
        {RLIMIT_MEMLOCK, 64 << 10, 64 << 10},
        {RLIMIT_RTPRIO, 0, 0},
        {RLIMIT_NICE, 0, 0},
        {RLIMIT_MSGQUEUE, 819200, 819200},
        /* They stand behind the cgroup, or behind the keeper's own count, and leave it room to see
         * that the limit was passed. */
        {RLIMIT_NPROC, most[AQ_LIMIT_PROCESSES] + (w->cgroup.pids ? 16 : 2),
         most[AQ_LIMIT_PROCESSES] + (w->cgroup.pids ? 16 : 2)},
        {RLIMIT_DATA, data, data},
    };
    int r = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all && r == 0; i++)
        r = aq_process_limit(all[i].resource, all[i].soft, all[i].hard, err);
    return r;
}

/* What the kernel itself must refuse, whatever the observer does. */
static int landlock(const aq_world *w, aq_err *err)
{
    static const unsigned write =
        AQ_LANDLOCK_READ | AQ_LANDLOCK_RUN | AQ_LANDLOCK_FILL | AQ_LANDLOCK_CHANGE;
    aq_landlock_rule rules[AQ_ENTRIES + 5] = {{"/", AQ_LANDLOCK_READ | AQ_LANDLOCK_RUN},
                                              {"/dev", AQ_LANDLOCK_FILL},
                                              {"/dev/pts", AQ_LANDLOCK_FILL | AQ_LANDLOCK_DEVICES},
                                              {"/dev/mqueue", write}};
    size_t count = 4;

    /* A process writes its own name and limits there; the rest of /proc belongs to nobody here. */
    if (w->held.proc)
        rules[count++] = (aq_landlock_rule){"/proc", AQ_LANDLOCK_FILL};
    for (size_t i = 0; i < w->root.count; i++) {
        const aq_entry *e = &w->root.entry[i];
        if (e->kind == SPACE || e->copied)
            rules[count++] = (aq_landlock_rule){e->path, write};
    }
    return aq_landlock_allow(rules, count, true, err);
}

static int become_user(const aq_world *w, aq_err *err)
{
    int r;

    if (w->own_ids && setgroups(0, NULL) < 0)
        return aq_fail_errno(err, "cannot leave the groups");
    if ((r = aq_process_no_way_up(err)) < 0)
        return r;
    if (setresgid(AQ_INSIDE_UID, AQ_INSIDE_UID, AQ_INSIDE_UID) < 0 ||
        setresuid(AQ_INSIDE_UID, AQ_INSIDE_UID, AQ_INSIDE_UID) < 0)
        return aq_fail_errno(err, "cannot become the user");
    if ((r = aq_process_no_capabilities(err)) < 0 || (r = aq_process_new_keyring(err)) < 0)
        return r;
    return aq_process_no_new_privileges(err);
}

/* Descriptors 0, 1 and 2 are our pipes, 3 is the line to the keeper, 4 that to init, 5 where the
 * front says that the plan is there; those are closed by exec at the latest. */
static int descriptors(aq_world *w, int *init, aq_err *err)
{
    int *kept[] = {&w->inner, init, &w->late.ready[0]}, high[3];

    for (int i = 0; i < 3; i++) {
        high[i] = *kept[i] < 0 ? -1 : fcntl(*kept[i], F_DUPFD_CLOEXEC, 16);
        if (*kept[i] >= 0 && high[i] < 0)
            return aq_fail_errno(err, "cannot keep the lines to the others");
    }
    for (int i = 0; i < 3; i++)
        if (dup2(w->stdio[i], i) < 0)
            return aq_fail_errno(err, "cannot set up standard input and output");
    for (int i = 0; i < 3; i++) {
        if (high[i] >= 0 && dup3(high[i], 3 + i, O_CLOEXEC) < 0)
            return aq_fail_errno(err, "cannot keep the lines to the others");
        *kept[i] = high[i] < 0 ? -1 : 3 + i;
    }
    return aq_process_close_from(w->late.ready[0] < 0 ? 5 : 6, err);
}

/* The environment is ours; rows of the plan replace rows of the same name. */
static char **environment(aq_arena *a, const aq_plan *plan, const char *cwd)
{
    const char *const ours[] = {aq_arena_printf(a, "HOME=%s", aq_root_home(plan)),
                                "USER=user",
                                "LOGNAME=user",
                                "SHELL=/bin/bash",
                                "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games",
                                "LANG=C.UTF-8",
                                "TMPDIR=/tmp",
                                aq_arena_printf(a, "PWD=%s", cwd),
                                NULL};
    size_t count = 0, given = 0;
    char **env;

    while (plan->env && plan->env[given])
        given++;
    env = aq_arena_alloc(a, (sizeof ours / sizeof *ours + given) * sizeof *env);
    for (size_t i = 0; ours[i]; i++) {
        size_t name = strcspn(ours[i], "=") + 1;
        bool replaced = false;
        for (size_t k = 0; k < given && !replaced; k++)
            replaced = strncmp(plan->env[k], ours[i], name) == 0;
        if (!replaced)
            env[count++] = aq_arena_strdup(a, ours[i]);
    }
    for (size_t k = 0; k < given; k++)
        env[count++] = aq_arena_strdup(a, plan->env[k]);
    return env;
}

/* Looked up before the observer is there, so that it sees one exec and no guesses. */
static const char *find_program(aq_arena *a, const char *name, char *const *env)
{
    const char *path = "";

    if (strchr(name, '/'))
        return name;
    for (; *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            path = *env + 5;
    while (*path) {
        size_t n = strcspn(path, ":");
        const char *full = aq_arena_printf(a, "%.*s/%s", (int)n, path, name);
        if (n && access(full, X_OK) == 0)
            return full;
        path += n + (path[n] == ':');
    }
    return name; /* exec will say that it is not there */
}

static void wait_for_go(const aq_world *w)
{
    aq_message m;

    if (aq_message_recv(w->inner, &m, NULL, NULL, NULL) < 0 || m.word != AQ_WORD_GO)
        _exit(70);
}

/* The world's network. Making one takes as long as building the root does, so it is made here, and
 * init comes into it. */
static int network(const aq_world *w, int init, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_NETWORK};

    if (unshare(CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "cannot make a network namespace");
    /* A machine's own is laid when somebody wants it. */
    aq_auto_fd int fd =
        aq_has_machine(w->plan) ? aq_network_loopback(err) : aq_network_local(ADDRESS, PREFIX, err);
    int r = fd < 0 ? fd : aq_message_send(init, &m, &fd, 1, err);
    return r < 0 ? r : aq_message_send(w->inner, &m, &fd, 1, err);
}

static int wait_for_root(aq_world *w, int init, aq_err *err)
{
    aq_message m;
    int r = aq_message_recv(init, &m, NULL, NULL, err);

    if (r < 0)
        return r;
    close(init);
    w->held.proc = m.number;
    return m.word == AQ_WORD_BUILT ? 0 : aq_fail(err, -EPROTO, "init said something else");
}

/* May what it executes be one of the files that are not there yet? A script names a second one. */
static bool starts_early(const aq_plan *plan, const char *program, const char *cwd)
{
    char first[2] = "";
    aq_auto_fd int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 || read(fd, first, 2) != 2 || memcmp(first, "#!", 2) == 0)
        return true;
    return strstr(program, "..") || aq_files_hold(plan, program[0] == '/' ? program : cwd);
}

const char *aq_start_folder(const aq_plan *plan)
{
    return plan->cwd ? plan->cwd : aq_root_home(plan);
}

static int settle(aq_world *w, int init, aq_arena *a, char ***env, const char **program,
                  aq_err *err)
{
    aq_message m = {.word = AQ_WORD_WAITING};
    const char *cwd;
    int r = network(w, init, err);

    if (r < 0 || (r = descriptors(w, &init, err)) < 0 || (r = limits(w, err)) < 0)
        return r;
    setsid();
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    personality(ADDR_NO_RANDOMIZE); /* else the number of calls for memory is a matter of chance */
    if ((r = aq_late_wait(w, err)) < 0)
        return r;
    cwd = aq_start_folder(w->plan);
    *env = environment(a, w->plan, cwd);
    if ((r = become_user(w, err)) < 0 || (r = wait_for_root(w, init, err)) < 0)
        return r;
    if (chdir(cwd) < 0)
        return aq_fail(err, -AQ_EPLAN, "the folder to start in, %s: inside %s", cwd,
                       errno == ENOENT    ? "there is none"
                       : errno == ENOTDIR ? "that is no folder"
                                          : strerror(errno));
    if ((r = landlock(w, err)) < 0)
        return r;
    m.number = r;
    *program = find_program(a, w->plan->argv[0], *env);
    m.length = starts_early(w->plan, *program, cwd);
    /* Changing identity made the process untouchable; its observer must reach it. */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    return aq_message_send(w->inner, &m, NULL, 0, err);
}

_Noreturn static void payload(aq_world *w, int init)
{
    const char *const *given = w->plan->argv;
    aq_arena *a = aq_arena_new();
    const char *program = NULL;
    char **env = NULL;
    aq_err err = {0};
    size_t argc = 0;

    if (settle(w, init, a, &env, &program, &err) < 0) {
        aq_message_failed(w->inner, &err);
        _exit(70);
    }
    while (given[argc])
        argc++;
    char **argv = aq_arena_alloc(a, (argc + 1) * sizeof *argv);
    for (size_t i = 0; i < argc; i++)
        argv[i] = aq_arena_strdup(a, given[i]);
    wait_for_go(w);
    if (aq_container_watch && aq_container_watch->enter(&err) < 0) {
        aq_message_failed(w->inner, &err);
        _exit(70);
    }
    execve(program, argv, env);
    argc = (size_t)errno; /* as a shell says it: there is none, or it cannot be run */
    dprintf(2, "%s: %s\n", given[0], strerror((int)argc));
    _exit(argc == ENOENT ? 127 : 126);
}

/* ---- init ---- */

/* Asked for after the last change of identity, which forgets it; a keeper that died before is seen
 * by its closed socket. */
static int tie_to_keeper(const aq_world *w, aq_err *err)
{
    struct pollfd p = {.fd = w->inner};
    int r = aq_process_die_with_parent(err);

    if (r < 0)
        return r;
    if (poll(&p, 1, 0) < 0 || p.revents & (POLLHUP | POLLERR | POLLNVAL))
        return aq_fail(err, -EPIPE, "the keeper is gone");
    return 0;
}

static int become_root(const aq_world *w, aq_err *err)
{
    if (w->own_ids && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
        return aq_fail_errno(err, "cannot become root inside");
    return 0;
}

/* A machine that has been up for days has had many processes: ours get numbers as if. Where the
 * kernel does not let us, they begin at 2. */
static void number_processes(void)
{
    aq_auto_fd int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    char text[16];
    int n = snprintf(text, sizeof text, "%d", AQ_VEIL_FIRST - 1);

    if (fd >= 0 && write(fd, text, (size_t)n) < 0)
        return;
}

static int enter_namespaces(aq_world *w, aq_err *err)
{
    int r;

    prctl(PR_SET_NAME, "init", 0, 0, 0);
    if ((r = aq_message_recv_groups(w->inner, &w->cgroup, err)) < 0 ||
        (r = aq_cgroup_join(&w->cgroup, err)) < 0 || (r = aq_namespace_cgroups(err)) < 0 ||
        (r = become_root(w, err)) < 0 || (r = tie_to_keeper(w, err)) < 0)
        return r;
    /* Files in /proc/self are ours to write only while we may be looked at; nobody is inside yet.
     */
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    if (aq_has_machine(w->plan))
        number_processes();
    w->held.clocks = aq_namespace_clocks(UPTIME, NULL) == 0;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return 0;
}

/* Nobody inside makes user namespaces of their own: a second lock behind the observer's filter. */
static void forbid_namespaces(void)
{
    aq_auto_fd int fd = open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && write(fd, "0", 1) < 0)
        return; /* the filter stands alone then */
}

/* Nobody inside has a network that is not the world's. */
static int join_network(int payload, aq_err *err)
{
    int fds[AQ_MESSAGE_FDS], r;
    aq_message m;

    if ((r = aq_message_recv(payload, &m, fds, NULL, err)) < 0)
        return aq_err_within(err, "the payload");
    aq_auto_fd int network = fds[0];
    if (m.word != AQ_WORD_NETWORK || network < 0)
        return aq_fail(err, -EPROTO, "the payload said something else than expected");
    return setns(network, CLONE_NEWNET) < 0 ? aq_fail_errno(err, "cannot enter the network") : 0;
}

/* The keeper took the trees itself where it could. */
static int take_root(aq_world *w, aq_err *err)
{
    int r = w->own_ids ? 0 : aq_root_take(&w->root, err);

    for (size_t i = 0; i < w->root.count && r == 0 && !w->own_ids; i++) {
        const aq_entry *e = &w->root.entry[i];
        aq_message m = {.word = AQ_WORD_ORIGINAL, .number = (int32_t)i};

        if (e->copied)
            r = aq_message_send(w->inner, &m, &e->mount, 1, err);
    }
    return r;
}

static int name_host(const aq_world *w, aq_err *err)
{
    const char *host = w->plan->host ? w->plan->host : "debian";

    if (sethostname(host, strlen(host)) < 0 || setdomainname("", 0) < 0)
        return aq_fail_errno(err, "cannot name the host inside");
    return 0;
}

static int build(aq_world *w, int payload, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_READY}, built = {.word = AQ_WORD_BUILT};
    int r;

    w->users = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    if (w->users < 0)
        return aq_fail_errno(err, "cannot open the new user namespace");
    if ((r = take_root(w, err)) < 0)
        return r;
    aq_auto_fd int disk = aq_root_build(w, err);
    r = disk < 0 ? disk : name_host(w, err);
    if (r < 0)
        return r;
    m.number = (w->held.clocks ? 1 : 0) | (w->held.proc ? 2 : 0);
    m.length = w->held.left_out;
    snprintf(m.text, sizeof m.text, "%s", w->held.left_out_first);
    aq_auto_fd int proc = w->held.proc ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    r = aq_message_send(w->inner, &m, (int[]){disk, w->users, proc}, proc < 0 ? 2 : 3, err);
    built.number = w->held.proc;
    if (r == 0)
        r = aq_message_send(payload, &built, NULL, 0, err);
    return r < 0 ? r : join_network(payload, err);
}

/* The last of the making, while keeper and payload do theirs. What is left to do needs our rights:
 * until then nobody else is inside but the payload, before its first call that means something
 * (observe/touch.c). */
static int seal(const aq_world *w, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_SEALED};
    int r;

    forbid_namespaces();
    aq_process_forget_start("/sbin/init");
    /* Those that are -1 are not there to be kept. */
    r = aq_process_close_but((int[]){w->inner, w->orders, w->life, w->late.ready[0], w->host[1],
                                     w->root.top, w->root.disk, w->root.hidden, w->hardware},
                             9, err);
    if (r < 0)
        return r;
    return aq_message_send(w->inner, &m, NULL, 0, err);
}

/* The rest of the root, which is root's, and the files, which are the user's. */
static int fill(aq_world *w, aq_err *err)
{
    int r = aq_root_furnish(w, err);

    if (r < 0)
        return r;
    aq_files_as_user(w, true); /* forgets the death signal, and so does the way back */
    return (r = tie_to_keeper(w, err)) < 0 ? r : aq_files_write(w, false, err);
}

static int give_up_all(const aq_world *w, aq_err *err)
{
    int r;

    if ((r = aq_process_no_capabilities(err)) < 0 || (r = aq_process_no_new_privileges(err)) < 0)
        return r;
    return aq_process_close_but((int[]){w->inner, aq_has_machine(w->plan) ? w->orders : -1, w->life,
                                        w->hardware, w->terminal},
                                5, err);
}

/* The home: the last that is written. */
static int lay(const aq_world *w, aq_err *err)
{
    int r = aq_files_write(w, true, err);

    aq_files_as_user(w, false);
    if (r < 0 || (r = tie_to_keeper(w, err)) < 0)
        return r;
    return aq_lock(AQ_OWN_INIT, err);
}

/* Until the first order, or until nobody can give one any more. */
static int obey(aq_world *w, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_FILLED};
    char order = 0;
    int r = 0;

    while (read(w->orders, &order, 1) < 0 && errno == EINTR)
        ;
    if (order == AQ_ORDER_FILL || order == AQ_ORDER_PART)
        r = fill(w, err);
    if (r < 0 || (r = give_up_all(w, err)) < 0)
        return r;
    if (order != AQ_ORDER_FILL && order != AQ_ORDER_PART)
        return aq_lock(AQ_OWN_INIT, err);
    r = order == AQ_ORDER_FILL ? lay(w, err) : aq_lock(AQ_OWN_FILLER, err);
    return r < 0 ? r : aq_message_send(w->inner, &m, NULL, 0, err);
}

/* All who ended. Tells how the payload did, and leaves when nobody else is there. */
static void bury(const aq_world *w, pid_t first)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
        if (pid == first) {
            aq_message m = {.word = AQ_WORD_EXIT, .number = status};
            (void)aq_message_send(w->inner, &m, NULL, 0, NULL);
        }
    if (pid < 0 && errno != EINTR) {
        (void)aq_message_send(w->inner, &(aq_message){.word = AQ_WORD_EMPTY}, NULL, 0, NULL);
        _exit(0);
    }
}

static void answer_order(const aq_world *w, char answer)
{
    struct iovec v = {&answer, 1};

    if (sendmsg(w->orders, &(struct msghdr){.msg_iov = &v, .msg_iovlen = 1}, MSG_NOSIGNAL) < 0)
        return; /* the keeper is gone, and we are about to be */
}

static void lay_and_answer(const aq_world *w)
{
    aq_err err = {0};
    int r = lay(w, &err);

    if (r < 0)
        aq_message_failed(w->inner, &err);
    answer_order(w, r == 0 ? AQ_ORDER_LAY : 0);
}

static sigset_t awaited(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, AQ_SIGNAL_LAY);
    sigaddset(&set, AQ_SIGNAL_HARDWARE);
    sigaddset(&set, AQ_SIGNAL_LARGE);
    return set;
}

_Noreturn static void reap(const aq_world *w, pid_t first)
{
    const struct timespec soon = {.tv_nsec = AQ_REST_MS * 1000000};
    const sigset_t set = awaited();
    siginfo_t what;
    int number;

    for (;;) {
        bury(w, first);
        number = sigtimedwait(&set, &what, &soon);
        if (number < 0 && errno == EAGAIN) {
            aq_process_rest();
            number = sigwaitinfo(&set, &what);
        }
        if (number == AQ_SIGNAL_LAY)
            lay_and_answer(w);
        if (number == AQ_SIGNAL_HARDWARE)
            answer_order(w, aq_hardware_write(w) == 0 ? AQ_ORDER_HARDWARE : 0);
        if (number == AQ_SIGNAL_LARGE) {
            aq_large_write(w->plan, what.si_value.sival_int);
            answer_order(w, AQ_ORDER_LARGE);
        }
    }
}

/* The payload begins before there is a root, and comes into it with us. */
static pid_t start_payload(aq_world *w, int *line, aq_err *err)
{
    int pair[2];
    sigset_t set;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return aq_fail_errno(err, "cannot make a line to the payload");
    pid = fork();
    if (pid == 0) {
        close(pair[0]);
        payload(w, pair[1]);
    }
    if (pid > 0)
        aq_process_spread(pid, &w->processors);
    close(pair[1]);
    set = awaited();
    sigprocmask(SIG_BLOCK, &set, NULL); /* reap hears of them */
    *line = pair[0];
    return pid < 0 ? aq_fail_errno(err, "cannot make the payload") : pid;
}

_Noreturn void aq_init_main(aq_world *w)
{
    aq_err err = {0};
    pid_t first;
    int line = -1;

    close(0);
    close(1);
    close(2);
    if (enter_namespaces(w, &err) < 0 || (first = start_payload(w, &line, &err)) < 0 ||
        build(w, line, &err) < 0 || seal(w, &err) < 0 || obey(w, &err) < 0) {
        aq_message_failed(w->inner, &err);
        _exit(70);
    }
    reap(w, first);
}
