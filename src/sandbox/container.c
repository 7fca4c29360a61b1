/* The container backend, seen from the front: namespaces, Landlock, seccomp, cgroups around a
 * payload that the observer watches. world.h tells how it works; this file makes cgroups and
 * keeper, hears the keeper with suspicion, and leaves nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/process.h"
#include "kernel/rest.h"
#include "sandbox/container.h"
#include "sandbox/net.h"
#include "sandbox/world.h"

enum { REMOVE_MS = 2000, GONE_MS = 5000, SWEEP_MS = 200, SWEEP_LAST_MS = 20000 };

struct aq_aquarium {
    aq_world world;
    pid_t keeper, wardens[AQ_WARDENS];
    aq_arena *arena;
    int control;           /* our end */
    int life;              /* at its end when keeper and init are gone */
    int init;              /* a pidfd, -1 until the keeper gave it */
    int guard[AQ_WARDENS]; /* pidfds of the wardens, -1 where there is none */
    aq_net net;
    enum { MADE, LAUNCHED, ENDED } state;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void wait_gone(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    while (fd >= 0 && poll(&p, 1, GONE_MS) < 0 && errno == EINTR)
        ;
}

/* ---- the wardens ---- */

/* The kernel shows the tops of the trees as read-only folders even to root; a user has groups of
 * his own or none. */
static int lock_warden(const aq_aquarium *aq, aq_err *err)
{
    uint64_t needed = UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_DAC_OVERRIDE;
    int r = aq_process_keep_capabilities(aq->world.privileged ? needed : 0, err);

    if (r == 0)
        r = aq_process_no_new_privileges(err);
    return r < 0 ? r : aq_lock(AQ_OWN_WARDEN, err);
}

/* Waits for the end of front and keeper, who may both be killed, and removes what is left of their
 * cgroups: the keeper has no right to. It reads nothing, and before the payload begins it can do
 * nothing else. There are two, so that whoever is killed together with the front one is left. */
_Noreturn static void warden(aq_aquarium *aq, pid_t front)
{
    const char locked = AQ_WARDEN_LOCKED;
    aq_err err = {0};
    int owner;
    char byte;

    setsid();
    aq_plan_forget(aq->world.plan);
    prctl(PR_SET_NAME, "aquarium-warden", 0, 0, 0);
    if (aq_process_close_but((int[]){aq->life, aq->world.warden[1]}, 2, &err) < 0)
        _exit(70);
    close(0);
    close(1);
    close(2);
    owner = (int)syscall(SYS_pidfd_open, front, 0);
    if (getppid() != front)
        close_fd(&owner); /* it is gone already */
    if (lock_warden(aq, &err) < 0)
        _exit(70);
    /* A keeper that is dead already does not hear it, and has left us work. */
    if (write(aq->world.warden[1], &locked, 1) == 1)
        close_fd(&aq->world.warden[1]);
    if (poll(&(struct pollfd){.fd = aq->life, .events = POLLIN}, 1, AQ_REST_MS) == 0)
        aq_process_rest();
    while (read(aq->life, &byte, 1) < 0 && errno == EINTR)
        ;
    /* A dying process closes its pipes first; its groups are stale once it is dead. */
    wait_gone(owner, POLLIN);
    aq_cgroup_sweep(SWEEP_LAST_MS);
    _exit(0);
}

/* No signal ever reaches them but those that nobody can hold back: what a terminal sends to us all
 * must not end them. */
static int start_wardens(aq_aquarium *aq, aq_err *err)
{
    pid_t front = getpid();
    sigset_t all, before;
    int r = 0;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    for (size_t i = 0; i < AQ_WARDENS && r == 0; i++) {
        aq->wardens[i] = fork();
        if (aq->wardens[i] == 0)
            warden(aq, front);
        if (aq->wardens[i] > 0)
            aq->guard[i] = (int)syscall(SYS_pidfd_open, aq->wardens[i], 0);
        if (aq->guard[i] < 0)
            r = aq_fail_errno(err, "cannot start a warden");
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* ---- heirs ---- */

/* Init ends while its keeper does, and who is left comes to us: then both need not wait for each
 * other. For as long as there are worlds. */
static unsigned worlds;
static int inherited_before;

static void inherit(bool on)
{
    if (on && __atomic_fetch_add(&worlds, 1, __ATOMIC_ACQ_REL) == 0) {
        prctl(PR_GET_CHILD_SUBREAPER, &inherited_before, 0, 0, 0);
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    } else if (!on && __atomic_sub_fetch(&worlds, 1, __ATOMIC_ACQ_REL) == 0) {
        prctl(PR_SET_CHILD_SUBREAPER, inherited_before, 0, 0, 0);
    }
}

/* Whoever it has become a child of by now: where it is not us there is nothing to reap. */
static void reap_init(int init)
{
    siginfo_t how;

    while (init >= 0 && waitid(P_PIDFD, (id_t)init, &how, WEXITED | __WALL) < 0 && errno == EINTR)
        ;
}

/* ---- prepare ---- */

static int check_plan(const aq_plan *plan, aq_err *err)
{
    if (!plan->argv || !plan->argv[0])
        return aq_fail(err, -AQ_EPLAN, "there is no command to run");
    if (plan->cwd && plan->cwd[0] != '/')
        return aq_fail(err, -AQ_EPLAN, "the folder to start in must be absolute, and %s is not",
                       plan->cwd);
    return 0;
}

static int make_lines(aq_aquarium *aq, int life[2], int control[2], aq_err *err)
{
    int line[2] = {-1, -1};

    if (pipe2(life, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "cannot make a pipe");
    aq->life = life[0];
    aq->world.life = life[1];
    if (pipe2(aq->world.warden, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "cannot make a line from the warden");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
        return aq_fail_errno(err, "cannot make a line to the keeper");
    aq->control = control[0];
    aq->world.control = control[1];
    if (aq_has_machine(aq->world.plan) &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
        return aq_fail_errno(err, "cannot make a line for the internet");
    aq->net.line = line[0];
    aq->world.line = line[1];
    if (aq->world.privileged && !aq->world.root.whole &&
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, aq->world.host) < 0)
        return aq_fail_errno(err, "cannot make a line to init");
    aq->world.stream = memfd_create("observation", MFD_CLOEXEC);
    if (aq->world.stream < 0)
        return aq_fail_errno(err, "cannot make a place for the observation");
    return 0;
}

static int start_keeper(aq_aquarium *aq, aq_err *err)
{
    aq->keeper = fork();
    if (aq->keeper == 0) {
        close(aq->control);
        close(aq->life);
        close_fd(&aq->net.line);
        close_fd(&aq->world.host[0]);
        aq_keeper_main(&aq->world);
    }
    if (aq->keeper < 0)
        return aq_fail_errno(err, "cannot start a keeper");
    aq_process_spread(aq->keeper, &aq->world.processors);
    close_fd(&aq->world.control);
    close_fd(&aq->world.line);
    close_fd(&aq->world.host[1]);
    close_fd(&aq->world.warden[0]);
    return 0;
}

/* The signal that killed it, or 0. It stays to be reaped. */
static int killed_by(pid_t pid)
{
    siginfo_t how = {0};

    while (waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    return how.si_code == CLD_KILLED || how.si_code == CLD_DUMPED ? how.si_status : 0;
}

/* It left without a word: its own filter killed it, somebody, or a limit. */
static int say_killed(int sig, aq_err *err)
{
    struct rlimit most;

    if (sig == SIGSYS)
        return aq_fail(err, -EPIPE,
                       "the keeper made a system call that it may not make, and was killed: "
                       "the program may have attacked it");
    if (getrlimit(RLIMIT_CPU, &most) == 0 && most.rlim_cur != RLIM_INFINITY)
        return aq_fail(err, -EPIPE,
                       "the keeper was killed (%s); a process may use a processor for %llu s here "
                       "(ulimit -t)",
                       strsignal(sig), (unsigned long long)most.rlim_cur);
    return aq_fail(err, -EPIPE, "the keeper was killed (%s)", strsignal(sig));
}

/* Hears one message of the keeper, and only the one that may come now. */
static int hear(aq_aquarium *aq, aq_word expected, aq_message *m, int *fds, aq_err *err)
{
    int r = aq_message_recv(aq->control, m, fds, NULL, err), sig;

    if (r == -EPIPE && (sig = killed_by(aq->keeper)) != 0)
        return say_killed(sig, err);
    if (r < 0)
        return aq_err_within(err, "the keeper");
    if (m->word == AQ_WORD_FAILED)
        return aq_message_error(m, err);
    if (m->word != (uint32_t)expected)
        return aq_fail(err, -EBADMSG, "the keeper said something else than expected");
    return 0;
}

static void note_containment(aq_aquarium *aq, const aq_message *m)
{
    const aq_cgroup *g = &aq->world.cgroup;
    const char *memory = aq_cgroup_level_name(g->memory), *pids = aq_cgroup_level_name(g->pids);
    const char *cpu = aq_cgroup_level_name(g->cpu), *rate = aq_cgroup_level_name(g->rate);
    uint64_t slow = aq->world.limits.most[AQ_LIMIT_CPU_RATE];

    if (!aq->world.plan->containment)
        return;
    *aq->world.plan->containment = (aq_containment){
        .landlock = m->number >= 0 && m->number < 100 ? m->number : 0,
        .own_ids = m->length & 1,
        .clocks = m->length & 2,
        .proc = m->length & 4,
        .memory = memory ? memory : "rlimit",
        .processes = pids ? pids : "rlimit",
        .cpu = cpu ? cpu : "rlimit",
        .rate = rate                                ? rate
                : aq_container_watch && slow >= 100 ? "one processor"
                                                    : "none",
        .io = aq_container_watch ? "counted" : "none",
        .disk = "tmpfs",
        .output = "counted",
        .left_out = (uint32_t)(m->length >> 8),
    };
    memcpy(aq->world.plan->containment->left_out_first, m->text, AQ_LEFT_OUT_NAME - 1);
}

/* The groups, while the keeper makes the world: first what init is born into, which the keeper
 * waits for, then the rest. Files in the writable places are memory too, and have a limit of their
 * own. One process more: init. */
static int make_groups(aq_aquarium *aq, aq_err *err)
{
    const uint64_t *most = aq->world.limits.most;
    uint64_t memory = most[AQ_LIMIT_MEMORY] + most[AQ_LIMIT_DISK];
    uint64_t pids = most[AQ_LIMIT_PROCESSES] + 1;
    bool may = aq->world.grouped;
    aq_cgroup *g = &aq->world.cgroup;
    aq_auto_buf self = {0};
    int r;

    if (may)
        aq_cgroup_begin(memory, pids, &self, g);
    if ((r = aq_message_send_groups(aq->control, g, err)) < 0)
        return r;
    if (may)
        aq_cgroup_finish(memory, pids, &self, g);
    /* One processor is what the observer gives a world anyway. */
    if (may && most[AQ_LIMIT_CPU_RATE] != 100)
        aq_cgroup_slow(g, most[AQ_LIMIT_CPU_RATE]);
    return aq_message_send_groups(aq->control, g, err);
}

static int prepare(const aq_plan *plan, aq_aquarium **ret, aq_err *err)
{
    int life[2] = {-1, -1}, control[2] = {-1, -1}, r = check_plan(plan, err);
    aq_aquarium *aq;
    aq_world *w;

    if (r < 0)
        return r;
    aq = aq_alloc(sizeof *aq);
    aq->arena = aq_arena_new();
    aq->control = aq->life = aq->init = -1;
    for (size_t i = 0; i < AQ_WARDENS; i++)
        aq->guard[i] = -1;
    aq_net_begin(&aq->net);
    w = &aq->world; /* it came zeroed, and is large */
    w->plan = plan;
    w->control = w->life = w->stream = w->line = w->inner = w->outer = -1;
    w->warden[0] = w->warden[1] = -1;
    w->orders = w->order = w->host[0] = w->host[1] = w->hardware = w->terminal = -1;
    w->disk = w->users = w->proc = w->network = w->init_pidfd = -1;
    w->late.file = w->late.ready[0] = w->late.ready[1] = -1;
    aq_cgroup_none(&aq->world.cgroup);
    /* A root without rights, as in many containers, makes worlds as anybody does. */
    aq->world.privileged = geteuid() == 0 && aq_process_has_capabilities(AQ_KEEPER_CAPABILITIES);
    /* A root who becomes nobody has no way into groups, and few users may make any. */
    w->grouped = w->privileged || (geteuid() != 0 && aq_cgroup_allowed());
    aq->world.limits = aq_limits_filled(&plan->limits);
    *ret = aq; /* from here on teardown has something to tear down */
    inherit(true);
    sched_getaffinity(0, sizeof w->processors, &w->processors);
    if ((r = aq_root_list(aq->arena, plan, &w->root, err)) < 0 ||
        (r = make_lines(aq, life, control, err)) < 0 || (r = aq_late_begin(w, err)) < 0 ||
        (r = start_keeper(aq, err)) < 0 || (w->grouped && (r = start_wardens(aq, err)) < 0))
        return r;
    close_fd(&w->warden[1]); /* their own are the last ones */
    r = make_groups(aq, err);
    if (r == -EPIPE) { /* a keeper that failed has said why */
        aq_message m;

        r = hear(aq, AQ_WORD_PREPARED, &m, NULL, err);
        r = r < 0 ? r : aq_fail(err, -EPROTO, "the keeper died at once");
    }
    return r < 0 ? r : aq_late_make(w, err);
}

int aq_container_await(aq_aquarium *aq, aq_err *err)
{
    int fds[AQ_MESSAGE_FDS], r;
    aq_message m;

    if ((r = hear(aq, AQ_WORD_PREPARED, &m, fds, err)) < 0)
        return r;
    aq->init = fds[0];
    aq->net.users = fds[1];
    aq->net.network = fds[2];
    if (aq->init < 0 || aq->net.users < 0 || aq->net.network < 0)
        return aq_fail(err, -EBADMSG, "the keeper gave no hold on its world");
    note_containment(aq, &m);
    return 0;
}

/* ---- launch, wait ---- */

static int launch(aq_aquarium *aq, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_LAUNCH};
    int r;

    if (aq->state != MADE)
        return aq_fail(err, -EINVAL, "this world cannot be launched now");
    /* The keeper finds it when the world is made, and need not wait for us. */
    r = aq_message_send(aq->control, &m, NULL, 0, err);
    if (r == 0 || r == -EPIPE) /* a keeper that failed has said why */
        r = aq_container_await(aq, err);
    if (r == 0)
        aq->state = LAUNCHED;
    return r;
}

/* Reads no more than what was announced, and no more than any observation may have. */
static int read_stream(aq_aquarium *aq, uint64_t length, aq_buf *stream, aq_err *err)
{
    ssize_t n;

    if (length > (uint64_t)AQ_OBSERVATION_BYTES + (64u << 20))
        return aq_fail(err, -EFBIG, "the observation is larger than any may be");
    aq_buf_reserve(stream, (size_t)length);
    n = aq_pread_full(aq->world.stream, stream->data + stream->len, (size_t)length, 0);
    if (n < 0 || (uint64_t)n != length)
        return aq_fail(err, -EPIPE, "the observation was cut");
    stream->len += (size_t)n;
    return 0;
}

/* A signal handler has no other way to the line; a front has one world that people wait for. */
static volatile sig_atomic_t interrupted_by, interrupt_line = -1;
static const int interrupts[] = {SIGINT, SIGTERM, SIGHUP};

static void on_interrupt(int sig)
{
    aq_message m = {.word = AQ_WORD_STOP};
    int saved = errno;

    interrupted_by = sig;
    (void)send(interrupt_line, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT);
    errno = saved;
}

/* The second signal of a kind does what it always does, should we be stuck. */
static void take_interrupts(aq_aquarium *aq, struct sigaction *before)
{
    struct sigaction ours = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};

    interrupted_by = 0;
    interrupt_line = aq->control;
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        if (sigaction(interrupts[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(interrupts[i], &ours, NULL);
}

static void leave_interrupts(const aq_aquarium *aq, const struct sigaction *before)
{
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        sigaction(interrupts[i], &before[i], NULL);
    interrupt_line = -1;
    *aq->world.plan->interrupted = interrupted_by;
}

/* Once. Who has privilege takes what the keeper cannot reach any more. */
static int give_rest(aq_aquarium *aq, aq_err *err)
{
    aq_world *w = &aq->world;
    int r = w->host[0] < 0 ? 0 : aq_hand_over(&w->root, w->host[0], err);

    close_fd(&w->host[0]);
    return r == 0 && w->late.whole ? aq_later_make(w, err) : r;
}

/* Until the keeper says something. A world that lost a warden is ended at once: were we killed
 * next, and the other one, its groups would stay. */
static int await_word(aq_aquarium *aq, aq_err *err)
{
    struct pollfd p[1 + AQ_WARDENS] = {{.fd = aq->control, .events = POLLIN}};
    int timeout = AQ_REST_MS, n;

    for (size_t i = 0; i < AQ_WARDENS; i++)
        p[1 + i] = (struct pollfd){.fd = aq->guard[i], .events = POLLIN};
    while ((n = poll(p, 1 + AQ_WARDENS, timeout)) == 0 || (n < 0 && errno == EINTR))
        if (n == 0) {
            aq_process_rest();
            timeout = -1;
        }
    if (n < 0)
        return aq_fail_errno(err, "cannot wait for the keeper");
    return p[0].revents ? 0
                        : aq_fail(err, -EOWNERDEAD,
                                  "a warden of the world was killed, and so the world was ended");
}

/* Until the end: what the keeper of a running world may ask for is the rest of the plan, and its
 * network. */
static int serve(aq_aquarium *aq, aq_message *m, aq_err *err)
{
    int r;

    for (;;) {
        if ((r = await_word(aq, err)) < 0)
            break;
        if ((r = hear(aq, AQ_WORD_END, m, NULL, err)) != -EBADMSG)
            break;
        if (m->word == AQ_WORD_REST)
            r = give_rest(aq, err);
        else if (m->word == AQ_WORD_CABLE || m->word == AQ_WORD_INTERNET ||
                 m->word == AQ_WORD_ALONE)
            r = aq_net_serve(&aq->net, aq->world.plan, aq->keeper, m->word, err);
        if (r < 0)
            break;
    }
    return r;
}

static int hear_end(aq_aquarium *aq, aq_message *m, aq_err *err)
{
    struct sigaction before[sizeof interrupts / sizeof *interrupts];
    int r;

    if (!aq->world.plan->interrupted)
        return serve(aq, m, err);
    take_interrupts(aq, before);
    r = serve(aq, m, err);
    leave_interrupts(aq, before);
    return r;
}

static int wait_end(aq_aquarium *aq, aq_buf *stream, aq_err *err)
{
    aq_message m;
    int r;

    if (aq->state != LAUNCHED)
        return aq_fail(err, -EINVAL, "this world was not launched");
    aq_cgroup_sweep(SWEEP_MS); /* what others left, now that we have time */
    if ((r = hear_end(aq, &m, err)) < 0)
        return r;
    aq->state = ENDED;
    if (aq->world.plan->lost)
        *aq->world.plan->lost = m.number > 0 && m.number < 4096 ? m.number : 0;
    return read_stream(aq, m.length, stream, err);
}

/* ---- teardown ---- */

static void reap(pid_t *pid, bool kill_it)
{
    if (*pid <= 0)
        return;
    if (kill_it)
        kill(*pid, SIGKILL);
    while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *pid = 0;
}

static void teardown(aq_aquarium *aq)
{
    if (!aq)
        return;
    /* A keeper that said END leaves by itself, and after init. Any other is killed, and init dies
     * with it. The groups need not wait for the keeper, who was never in them. */
    if (aq->init < 0) /* nobody of whom we could not know would be reaped */
        inherit(false);
    if (aq->state != ENDED) {
        reap(&aq->keeper, true);
        if (aq->init >= 0)
            syscall(SYS_pidfd_send_signal, aq->init, SIGKILL, NULL, 0);
    }
    /* What is ours goes while init takes the world down. */
    aq_net_end(&aq->net);
    aq_late_end(&aq->world);
    close_fd(&aq->world.stream);
    wait_gone(aq->init, POLLIN);
    aq_cgroup_remove(&aq->world.cgroup, REMOVE_MS);
    for (size_t i = 0; i < AQ_WARDENS; i++)
        if (aq->wardens[i] > 0)
            kill(aq->wardens[i], SIGKILL);
    aq_cgroup_close(&aq->world.cgroup);
    reap(&aq->keeper, false);
    reap_init(aq->init);
    if (aq->init >= 0)
        inherit(false);
    for (size_t i = 0; i < AQ_WARDENS; i++) {
        reap(&aq->wardens[i], false);
        close_fd(&aq->guard[i]);
    }
    close_fd(&aq->world.life);
    wait_gone(aq->life, 0); /* hang-up: neither keeper nor init is there */
    close_fd(&aq->control);
    close_fd(&aq->world.warden[0]);
    close_fd(&aq->world.warden[1]);
    close_fd(&aq->world.control);
    close_fd(&aq->world.line);
    close_fd(&aq->world.host[0]);
    close_fd(&aq->world.host[1]);
    close_fd(&aq->life);
    close_fd(&aq->init);
    aq_arena_free(aq->arena);
    free(aq);
}

const aq_backend aq_backend_container = {
    .name = "container",
    .tier = AQ_T1,
    .probe = aq_container_probe,
    .guarantee = aq_container_guarantee,
    .prepare = prepare,
    .launch = launch,
    .wait = wait_end,
    .teardown = teardown,
};
