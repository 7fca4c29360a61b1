/* The keeper: makes one world, watches it, and tells the front what happened; see world.h.
 *
 * It takes requests in one order only, each once: it prepares, then waits for the launch, then runs
 * to the end. While a world runs the front has nothing to ask; its end is the one thing that it can
 * still say, and that ends the world. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sanitize.h"
#include "kernel/process.h"
#include "sandbox/attend.h"
#include "sandbox/net.h"

enum {
    STREAM_SLACK = 64 << 20,
    /* Time and cgroup namespaces are init's to make: one needs its offsets first, the other that
     * init is in its groups. The network is the payload's, which has time for it. */
    NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS,
};

/* ---- making ---- */

/* Standard input and output are the front's, but for those that the plan hands on. */
static int forget_stdio(const aq_plan *plan, aq_err *err)
{
    const int kept[] = {plan->has_input ? plan->input : -1, plan->has_output ? plan->output : -1,
                        plan->has_output ? plan->error : -1};
    aq_auto_fd int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (nothing < 0)
        return aq_fail_errno(err, "cannot open /dev/null");
    for (int fd = 0; fd < 3; fd++)
        if (fd != kept[0] && fd != kept[1] && fd != kept[2] && fd != nothing &&
            dup2(nothing, fd) < 0)
            return aq_fail_errno(err, "cannot leave the front's input and output");
    if (nothing < 3) /* it was closed, and is taken now */
        nothing = -1;
    return 0;
}

/* What is not the keeper's business stays with the front: its descriptors, its terminal, its
 * signals, its mask for new files. */
static int leave_front(aq_world *w, aq_err *err)
{
    int keep[14], r;
    size_t n = 0;
    sigset_t none;

    for (int sig = 1; sig < NSIG; sig++)
        signal(sig, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    setsid();
    prctl(PR_SET_NAME, "aquarium-keeper", 0, 0, 0);
    if ((r = forget_stdio(w->plan, err)) < 0)
        return r;
    keep[n++] = w->control;
    keep[n++] = w->life;
    keep[n++] = w->stream;
    keep[n++] = w->warden[0];
    if (w->line >= 0)
        keep[n++] = w->line;
    if (w->late.plan)
        keep[n++] = w->late.ready[0];
    if (w->host[1] >= 0)
        keep[n++] = w->host[1];
    if (w->plan->has_input)
        keep[n++] = w->plan->input;
    if (w->plan->has_output) {
        keep[n++] = w->plan->output;
        keep[n++] = w->plan->error;
    }
    if ((r = aq_process_close_but(keep, n, err)) < 0)
        return r;
    if ((r = aq_process_no_core(err)) < 0)
        return r;
    return aq_process_limit(RLIMIT_FSIZE, AQ_OBSERVATION_BYTES + STREAM_SLACK,
                            AQ_OBSERVATION_BYTES + STREAM_SLACK, err);
}

static int make_pipes(aq_world *w, aq_err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
        setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0)
        return aq_fail_errno(err, "cannot make a line to init");
    w->outer = pair[0];
    w->inner = pair[1];
    for (int i = 0; i < 3; i++) {
        if (pipe2(pair, O_CLOEXEC) < 0)
            return aq_fail_errno(err, "cannot make the pipes of a world");
        w->stdio[i] = pair[i == 0 ? 0 : 1];
        w->pump[i] = pair[i == 0 ? 1 : 0];
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return aq_fail_errno(err, "cannot make a line for orders to init");
    w->orders = pair[0];
    w->order = pair[1];
    return 0;
}

/* As root: two identities that nothing else has, one for the keeper and root inside, one for the
 * user inside. Where the namespace around us knows no such numbers its last ones are taken; where
 * it knows one number only, or we are not root, the world is made of our own. */
static void choose_ids(aq_world *w)
{
    uint32_t first = AQ_OUTSIDE_IDS + 2 * ((uint32_t)getpid() & 0x7fffff);

    if (w->privileged && aq_namespace_ids(first, 2) != 2)
        first = aq_namespace_last_ids(1000);
    w->own_ids = w->privileged && first != 0;
    w->held.own_ids = w->own_ids;
    w->root.whole = w->root.whole || !w->own_ids;
    if (w->own_ids) {
        w->ids[0] = (aq_id_map){0, first, first};
        w->ids[1] = (aq_id_map){AQ_INSIDE_UID, first + 1, first + 1};
        w->id_count = 2;
    } else {
        w->ids[0] = (aq_id_map){AQ_INSIDE_UID, geteuid(), getegid()};
        w->id_count = 1;
    }
}

/* Root without the rights to make a world, as in many containers. The kernel does not let it be
 * mapped into a world either, so it becomes somebody whom nothing else is. */
static int leave_root(aq_world *w, aq_err *err)
{
    uint32_t id = AQ_OUTSIDE_IDS + ((uint32_t)getpid() & 0x7fffff);
    int r;

    if (geteuid() != 0 || w->privileged)
        return 0;
    if (!aq_process_has_capabilities(UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID) ||
        (aq_namespace_ids(id, 1) != 1 && (id = aq_namespace_last_ids(1000)) == 0))
        return aq_fail(err, -EPERM,
                       "root without CAP_SYS_ADMIN and without CAP_SETUID and "
                       "CAP_SETGID cannot make a world; start us as a plain user");
    if ((r = aq_process_become(id, err)) < 0)
        return r;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else our own maps are root's to write */
    w->held.own_ids = true;
    return 0;
}

/* From here on the keeper is nobody of this host, and keeps what making a world needs. It has the
 * payload's identity outside, which the world's /proc asks of whoever looks into a process. */
static int change_identity(aq_world *w, aq_err *err)
{
    if (!w->own_ids)
        return leave_root(w, err);
    return aq_process_become_keeping(w->ids[1].user, AQ_KEEPER_CAPABILITIES, err);
}

/* Without privilege init takes the trees; the keeper compares with what was copied. */
static bool take_original(aq_world *w, const aq_message *m, int fd)
{
    aq_entry *e = (uint32_t)m->number < w->root.count ? &w->root.entry[m->number] : NULL;

    if (!e || !e->copied || e->mount >= 0 || fd < 0)
        return false;
    e->mount = fd;
    return true;
}

/* Init says that the world is built, then that it is sealed; the payload shows its network, then
 * says that it waits: each once, and theirs in any order. */
static int hear_inside(aq_world *w, aq_err *err)
{
    aq_message m;
    int r, fds[AQ_MESSAGE_FDS];
    pid_t sender;

    if ((r = aq_message_recv(w->outer, &m, fds, &sender, err)) < 0)
        return aq_err_within(err, "init");
    if (m.word == AQ_WORD_NETWORK && w->network < 0 && fds[0] >= 0) {
        w->network = fds[0];
    } else if (m.word == AQ_WORD_READY && w->disk < 0 && fds[1] >= 0) {
        w->disk = fds[0];
        w->users = fds[1];
        w->proc = fds[2];
        w->held.clocks = m.number & 1;
        w->held.proc = m.number & 2;
        w->held.left_out = (uint32_t)m.length;
        snprintf(w->held.left_out_first, sizeof w->held.left_out_first, "%.255s", m.text);
    } else if (m.word == AQ_WORD_WAITING && !w->payload && sender > 0) {
        w->held.landlock = m.number;
        w->early = m.length;
        w->payload = sender;
    } else if (m.word == AQ_WORD_SEALED && w->disk >= 0 && !w->sealed) {
        w->sealed = true;
    } else if (m.word == AQ_WORD_FAILED) {
        return aq_message_error(&m, err);
    } else if (m.word != AQ_WORD_ORIGINAL || !take_original(w, &m, fds[0])) {
        return aq_fail(err, -EPROTO, "init said something else than expected");
    }
    return 0;
}

/* Where no identity of its own can be had, a user namespace stands between the keeper and the
 * caller's processes: it cannot trace them, nor look into them. Landlock could keep it from
 * signalling them too, but its layer would be the payload's as well, and a layer that knows no
 * files forbids to move one from folder to folder. */
static int step_aside(aq_world *w, aq_err *err)
{
    int r;

    if (w->own_ids)
        return 0;
    if ((r = aq_namespace_enter_own(0, err)) < 0)
        return r;
    w->ids[0].user = geteuid();
    w->ids[0].group = getegid();
    return 0;
}

static int make_world(aq_world *w, aq_err *err)
{
    int r = step_aside(w, err);

    if (r < 0)
        return r;
    w->init = aq_namespace_clone(NAMESPACES, w->cgroup.into, &w->init_pidfd, err);
    if (w->init < 0)
        return w->init;
    if (w->init == 0) {
        close(w->outer); /* else it would never see the keeper's end */
        close(w->order);
        aq_init_main(w);
    }
    /* Not before: init inherits it, and the maps of a process that nobody may look at are root's to
     * write. Init gives it up itself. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    close(w->inner);
    close(w->orders);
    if (w->host[1] >= 0)
        close(w->host[1]);
    w->inner = w->orders = w->host[1] = -1;
    for (int i = 0; i < 3; i++) {
        close(w->stdio[i]);
        w->stdio[i] = -1;
    }
    if ((r = aq_namespace_map(w->init, w->ids, w->id_count, w->own_ids, err)) < 0)
        return r;
    if (w->cgroup.into >= 0) /* it comes again, with the others */
        close(w->cgroup.into);
    aq_cgroup_close(&w->cgroup);
    if ((r = aq_message_recv_groups(w->control, &w->cgroup, err)) < 0)
        return r;
    return aq_message_send_groups(w->outer, &w->cgroup, err);
}

/* Requests come in one order, each once; a front that says anything else is not ours. */
static int hear_front(aq_world *w, aq_word expected, aq_err *err)
{
    aq_message m;
    int r = aq_message_recv(w->control, &m, NULL, NULL, err);

    if (r < 0)
        return aq_err_within(err, "the front");
    return m.word == (uint32_t)expected
               ? 0
               : aq_fail(err, -EPROTO, "the front asked for something else");
}

/* What can go before there is a network to go to, while init begins. */
static int give_up_most(aq_err *err)
{
    int r = aq_process_only_proc(err);

    if (r < 0 || (r = aq_process_keep_capabilities(UINT64_C(1) << CAP_SYS_ADMIN, err)) < 0)
        return r;
    /* The payload may not read the processor's counter. Where the keeper may not either the kernel
     * need not allow and forbid it at every change between the two, which would double the price of
     * a call. What looks at a clock by itself has done so before. */
    json_object_seed(0);
    return aq_container_watch && !AQ_SANITIZED ? aq_process_trap_counter(err) : 0;
}

/* What remains is the ownership of the world's user namespace: enough to trace and kill what is in
 * it, and nothing outside. */
static int give_up_all(aq_world *w, aq_err *err)
{
    int r;

    /* The world's empty network is enough for a keeper too. */
    if (setns(w->network, CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "cannot leave the host's network");
    if ((r = aq_process_no_capabilities(err)) < 0 || (r = aq_process_no_new_privileges(err)) < 0)
        return r;
    return aq_lock(AQ_OWN_KEEPER, err);
}

static int prepare(aq_world *w, aq_err *err)
{
    int r;

    if ((r = aq_late_join(w, err)) < 0 || (r = leave_front(w, err)) < 0)
        return r;
    choose_ids(w);
    if ((w->own_ids && (r = aq_root_take(&w->root, err)) < 0) || (r = make_pipes(w, err)) < 0 ||
        (r = change_identity(w, err)) < 0 ||
        (r = aq_message_recv_groups(w->control, &w->cgroup, err)) < 0 ||
        (r = make_world(w, err)) < 0)
        return r;
    for (size_t i = 0; i < w->root.count; i++)
        if (w->root.entry[i].mount >= 0 && !w->root.entry[i].copied) /* a copy is compared */
            close(w->root.entry[i].mount);
    if ((r = give_up_most(err)) < 0)
        return r;
    return aq_late_wait(w, err);
}

/* While init builds. */
static int close_in(aq_world *w, aq_err *err)
{
    int r = 0;

    while (r == 0 && w->network < 0)
        r = hear_inside(w, err);
    if (r < 0 || (r = give_up_all(w, err)) < 0)
        return r;
    while (r == 0 && (w->disk < 0 || !w->payload))
        r = hear_inside(w, err);
    return r;
}

/* ---- running ---- */

static int report_prepared(aq_world *w, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_PREPARED, .number = w->held.landlock};
    int r;

    m.length = (w->held.own_ids ? 1u : 0u) | (w->held.clocks ? 2u : 0u) | (w->held.proc ? 4u : 0u) |
               (uint64_t)w->held.left_out << 8;
    snprintf(m.text, sizeof m.text, "%s", w->held.left_out_first);
    r = aq_message_send(w->control, &m, (int[]){w->init_pidfd, w->users, w->network}, 3, err);
    close(w->network);
    return r;
}

/* Until init is alone or dead, which is the end of everybody inside. Takes what the observer left
 * to reap. */
static void wait_for_end(aq_attendant *a)
{
    struct pollfd p = {.fd = a->world->init_pidfd, .events = POLLIN};

    while (!a->empty && poll(&p, 1, 0) == 0) {
        if (aq_attend(a, 50) < 0)
            poll(&p, 1, 50);
        while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
            ;
    }
}

/* Its flags are the seventh word behind its name in /proc. */
static bool init_dies(const aq_world *w)
{
    enum { EXITING = 4, WORD = 7 }; /* PF_EXITING */
    char path[64], text[512];
    const char *at;
    ssize_t n;

    snprintf(path, sizeof path, "%s/%d/stat", aq_process_proc(), w->init);
    aq_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    for (int i = 0; at && i < WORD; i++)
        at = strchr(at + 1, ' ');
    return !at || (strtoul(at, NULL, 10) & EXITING);
}

/* Init that ends by itself says first how its child did. One that was killed from outside says
 * nothing, and all inside die of that. */
static bool init_was_killed(aq_attendant *a)
{
    if (!init_dies(a->world))
        return false;
    for (int i = 0; i < 100 && !a->has_status && !a->init_gone; i++)
        aq_attend(a, 10);
    return !a->has_status;
}

/* The observer saw the last process end: init has nothing more to tell, and dies while we write. */
static void end_world(aq_attendant *a, const aq_observation *o)
{
    a->init_killed =
        o->exit_kind == AQ_EXIT_SIGNAL && o->exit_value == SIGKILL && init_was_killed(a);
    syscall(SYS_pidfd_send_signal, a->world->init_pidfd, SIGKILL, NULL, 0);
    a->has_status = o->exit_kind == AQ_EXIT_STATUS || o->exit_kind == AQ_EXIT_SIGNAL;
    a->status = o->exit_kind == AQ_EXIT_SIGNAL ? o->exit_value : W_EXITCODE(o->exit_value, 0);
}

static void set_exit(const aq_attendant *a, bool ended, aq_observation *o)
{
    if (a->limit >= 0) {
        o->exit_kind = AQ_EXIT_BUDGET;
        o->exit_value = a->limit;
    } else if (ended && !a->init_killed) {
        return; /* the observer said why */
    } else if (!a->init_killed && a->has_status && WIFEXITED(a->status)) {
        o->exit_kind = AQ_EXIT_STATUS;
        o->exit_value = WEXITSTATUS(a->status);
    } else if (!a->init_killed && a->has_status && WIFSIGNALED(a->status)) {
        o->exit_kind = AQ_EXIT_SIGNAL;
        o->exit_value = WTERMSIG(a->status);
    } else { /* init was killed from outside: nobody knows how the payload would have ended */
        o->exit_kind = AQ_EXIT_FAILURE;
        o->exit_value = EOWNERDEAD;
    }
}

/* After the last look at the groups. */
static void set_remains(aq_attendant *a, aq_output outputs[static 2], aq_observation *o)
{
    static const char *const names[] = {"stdout", "stderr"};

    for (int i = 0; i < 2; i++) {
        aq_stream *s = &a->out[i];
        outputs[i] = (aq_output){.stream = names[i],
                                 .bytes = s->bytes,
                                 .digest = aq_hash_peek(s->hash),
                                 .content = aq_attend_content(a, s),
                                 .head = s->head,
                                 .head_len = s->head_len};
    }
    o->outputs = outputs;
    o->output_count = 2;
    o->landlock = a->world->held.landlock > 0 && a->world->held.landlock <= AQ_LANDLOCK_MOST
                      ? (uint32_t)a->world->held.landlock
                      : 0;
    o->cpu_ns = a->world->cgroup.cpu ? a->used.cpu_ns : a->cpu_ns;
    o->peak_memory = a->world->cgroup.memory ? a->used.peak_memory : a->peak_memory;
}

static void close_order(aq_world *w)
{
    if (w->order >= 0)
        close(w->order);
    w->order = -1;
}

/* Can the home be written last? Until then a payload may take so little of the space that it still
 * fits (observe/home.c). */
static bool lays_late(const aq_world *w)
{
    const uint64_t bytes = 256 << 20, inodes = 32768;
    const char *home = aq_root_home(w->plan), *start = aq_start_folder(w->plan);

    return aq_container_watch && w->plan->machine && !w->early &&
           strncmp(start, home, strlen(home)) != 0 && w->limits.most[AQ_LIMIT_DISK] >= bytes &&
           w->limits.most[AQ_LIMIT_INODES] >= inodes;
}

/* The rest of the root and the files of the plan, before anybody can tell that they were not there.
 * Nothing was changed inside before this. */
static int fill(aq_world *w, aq_err *err)
{
    const char order = lays_late(w) ? AQ_ORDER_PART : AQ_ORDER_FILL;
    aq_message m = {.word = AQ_WORD_REST};
    int r;

    /* Init makes what needs no plan while the front says the rest of it. */
    if ((w->late.whole || !w->root.whole) &&
        (r = aq_message_send(w->control, &m, NULL, 0, err)) < 0)
        return r;
    if (write(w->order, &order, 1) != 1)
        return aq_fail_errno(err, "cannot ask for the rest of the world");
    if ((r = aq_later_wait(w, err)) < 0)
        return r;
    if ((r = aq_message_recv(w->outer, &m, NULL, NULL, err)) < 0)
        return aq_err_within(err, "init");
    if (m.word != AQ_WORD_FILLED)
        return m.word == AQ_WORD_FAILED
                   ? aq_message_error(&m, err)
                   : aq_fail(err, -EPROTO, "init said something else than expected");
    if (!aq_has_machine(w->plan))
        close_order(w);
    w->filled = true;
    w->laid = order == AQ_ORDER_FILL;
    aq_process_clock(CLOCK_REALTIME_COARSE, &w->started);
    w->lived = w->started;
    return 0;
}

/* Init waits for signals by now, and answers on the line for orders. False: it could not; without
 * an answer it is dead, and told as that. */
static bool obeyed(aq_attendant *at, int number, char done)
{
    aq_world *w = at->world;
    char answer = done;

    if (w->order < 0 || at->failed < 0 || kill(w->init, number) < 0)
        return true;
    while (recv(w->order, &answer, 1, 0) < 0 && errno == EINTR)
        continue;
    return answer == done;
}

/* The files of the home. */
static void on_lay(void *arg)
{
    aq_attendant *at = arg;
    aq_world *w = at->world;
    aq_message m = {0};
    int r = 0;

    if (!w->filled || w->laid)
        return;
    if (!obeyed(at, AQ_SIGNAL_LAY, AQ_ORDER_LAY)) {
        while (r == 0 && m.word != AQ_WORD_FAILED)
            r = aq_message_recv(w->outer, &m, NULL, NULL, &at->error);
        at->failed = r < 0 ? r : aq_message_error(&m, &at->error);
        kill(w->init, SIGKILL); /* a world without its files runs no further */
    }
    w->laid = true;
    aq_process_clock(CLOCK_REALTIME_COARSE, &w->lived);
}

/* The tree of /sys, which is root's: init must be done with what is the user's. */
static void on_hardware(void *arg)
{
    aq_attendant *at = arg;

    on_lay(at);
    if (!obeyed(at, AQ_SIGNAL_HARDWARE, AQ_ORDER_HARDWARE)) {
        at->failed = aq_fail(&at->error, -EIO, "init cannot make the machine's /sys");
        kill(at->world->init, SIGKILL);
    }
}

static const aq_marks *on_marks(void *arg)
{
    return aq_attend_marks(arg);
}

static bool on_large(void *arg, const char *name, bool below, const char **path, int64_t *written,
                     uint64_t *len)
{
    aq_attendant *at = arg;

    return at->failed >= 0 && aq_large_fill(at->world, name, below, path, written, len);
}

/* The payload is about to look around, or to change something. */
static void on_touch(void *arg)
{
    aq_attendant *at = arg;
    aq_world *w = at->world;

    at->touched = true;
    if (!w->filled && w->order >= 0 && (at->failed = fill(w, &at->error)) < 0)
        kill(w->init, SIGKILL); /* a world without its files runs no further */
    if (at->failed == -EPIPE)
        at->failed = 0; /* somebody killed it, or a limit did: told as that */
}

/* They began before init did, so that nobody waits long. */
static int wait_for_wardens(aq_world *w, aq_err *err)
{
    int missing = w->grouped ? AQ_WARDENS : 0;
    ssize_t n = 1;
    char byte;

    while (missing && n != 0) {
        n = read(w->warden[0], &byte, 1);
        if (n < 0 && errno != EINTR)
            break;
        missing -= n == 1 && byte == AQ_WARDEN_LOCKED;
    }
    close(w->warden[0]);
    return missing ? aq_fail(err, -EPIPE, "a warden did not lock itself in") : 0;
}

/* It runs in nothing less than a finished world. */
static int finish_world(aq_world *w, aq_err *err)
{
    int r = 0;

    while (r == 0 && !w->sealed)
        r = hear_inside(w, err);
    if (r == 0)
        r = wait_for_wardens(w, err);
    aq_process_clock(CLOCK_REALTIME_COARSE, &w->started);
    if (r == 0 && (w->early || !aq_container_watch))
        r = fill(w, err);
    return r;
}

/* Runs the world from its go to its last process. */
static int run(aq_world *w, aq_attendant *at, void *watching, aq_observation *o, aq_err *err)
{
    aq_message go = {.word = AQ_WORD_GO};
    const aq_watch *watch = aq_container_watch;
    bool ended = false;
    int r = 0;

    at->touched = !watch;
    if (watch)
        r = watch->attach(watching, w->payload, err);
    if (r == 0)
        r = aq_attend_begin(at, w, err);
    if (r == 0)
        r = finish_world(w, err);
    if (r == 0)
        r = aq_message_send(w->outer, &go, NULL, 0, err);
    if (r == 0 && watch)
        r = watch->run(watching, o, &ended, err);
    if (r == 0 && ended) {
        aq_attend(at, 0); /* a payload that never began has said why */
        end_world(at, o);
    }
    close_order(w);
    if (r == 0 && !ended)
        wait_for_end(at);
    if (r == 0 && at->failed < 0) {
        *err = at->error;
        r = at->failed;
    }
    if (r < 0)
        return r;
    aq_attend_end(at);
    aq_attend_check(at);
    set_exit(at, ended, o);
    return 0;
}

static int hand_over(aq_world *w, const aq_attendant *at, const aq_buf *stream, aq_err *err)
{
    aq_message m = {.word = AQ_WORD_END,
                    .number = at->out[0].lost ? at->out[0].lost : at->out[1].lost,
                    .length = stream->len};
    int r = aq_write_full(w->stream, stream->data, stream->len);

    if (r < 0)
        return aq_fail(err, r, "cannot hand over the observation: %s", strerror(-r));
    return aq_message_send(w->control, &m, NULL, 0, err);
}

static void *begin_watch(aq_world *w, aq_attendant *at, aq_recorder *rec)
{
    const aq_watch_hooks hooks = {.pump = aq_attend_pump,
                                  .full = aq_attend_full,
                                  .room = aq_attend_room,
                                  .over = aq_attend_over,
                                  .touch = on_touch,
                                  .lay = on_lay,
                                  .home = aq_root_home(w->plan),
                                  .hardware = on_hardware,
                                  .marks = on_marks,
                                  .large = on_large,
                                  .reach = aq_net_reach,
                                  .alone = aq_net_alone,
                                  .arg = at,
                                  .line = w->line,
                                  .output = {w->pump[1], w->pump[2]}};

    return aq_container_watch->begin(w->plan, &w->limits, rec, &hooks);
}

static int keep(aq_world *w, aq_arena *a, aq_err *err)
{
    static aq_attendant at; /* large, and a signal handler looks at it */
    const aq_watch *watch = aq_container_watch;
    aq_auto_buf stream = {0};
    aq_output outputs[2];
    aq_observation o = {0};
    aq_recorder *rec;
    void *watching;
    int r;

    if ((r = prepare(w, err)) < 0)
        return r;
    at.arena = a;
    rec = aq_recorder_new("container", w->plan->world ? w->plan->world : "A", &stream);
    aq_recorder_limit(rec, w->limits.most[AQ_LIMIT_EVENTS]);
    watching = watch ? begin_watch(w, &at, rec) : NULL;
    if ((r = close_in(w, err)) == 0 && (r = report_prepared(w, err)) == 0 &&
        (r = hear_front(w, AQ_WORD_LAUNCH, err)) == 0)
        r = run(w, &at, watching, &o, err);
    if (r == 0 && !at.orphaned &&
        (!at.touched || (r = aq_changes_read(a, w, aq_attend_marks(&at), &o, err)) == 0)) {
        set_remains(&at, outputs, &o);
        aq_recorder_end(rec, &o);
        r = hand_over(w, &at, &stream, err);
    }
    if (watch)
        watch->end(watching);
    aq_attend_free(&at);
    aq_recorder_free(rec);
    return r;
}

_Noreturn void aq_keeper_main(aq_world *w)
{
    aq_arena *a = aq_arena_new();
    aq_err err = {0};
    int r;

    aq_plan_forget(w->plan);
    r = keep(w, a, &err);

    if (r < 0)
        aq_message_failed(w->control, &err);
    if (w->init > 0) /* nothing lives on without us; the front waits for it, and reaps it */
        kill(w->init, SIGKILL);
    _exit(r < 0 ? 70 : 0);
}
