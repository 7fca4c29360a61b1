/* Processes as events: births, programs, signals, ends with totals; and what was refused. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { ARGUMENTS = 256, FLAGS = 0, ANNOUNCED = 1 };

/* ---- births ---- */

void aq_look_clone(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    uint64_t flags = 0;

    (void)t;
    switch (k->nr) {
    case AQ_NR_clone:
        flags = (uint32_t)aq_regs_arg(k, 0);
        break;
    case AQ_NR_clone3:
        aq_tracee_get(k, aq_regs_arg(k, 0), &flags, sizeof flags);
        break;
    case AQ_NR_vfork:
        flags = CLONE_VFORK | CLONE_VM | SIGCHLD;
        break;
    default:
        flags = SIGCHLD;
    }
    l->number[FLAGS] = flags;
    l->number[ANNOUNCED] = 0;
}

static void share_descriptors(aq_proc *parent, aq_proc *child)
{
    if (parent->fd_space == 0)
        parent->fd_space = (int)(child->ordinal & INT32_MAX) + 1;
    child->fd_space = parent->fd_space;
}

/* At the birth, before either of the two runs: so that it stands before all that the child does. */
void aq_decode_child(aq_tracer *t, aq_task *k, aq_task *child)
{
    aq_look *l = aq_look_of(k);
    bool thread = child->proc == k->proc;
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, thread ? "thread" : "fork");

    if (!thread && (l->number[FLAGS] & CLONE_FILES))
        share_descriptors(k->proc, child->proc);
    if (thread && !(l->number[FLAGS] & CLONE_FILES))
        k->proc->split = true;
    l->number[ANNOUNCED] = 1;
    aq_event_number(&e, "flags", (int64_t)l->number[FLAGS]);
    aq_event_number(&e, "child", thread ? child->ordinal : child->proc->ordinal);
    aq_event_object(&e, k->proc->exe);
    e.result = aq_inner_number(child);
    if (!thread)
        child->proc->inner = (pid_t)e.result;
    aq_note(t, k, &e);
}

void aq_note_clone(aq_tracer *t, aq_task *k, long result)
{
    aq_look *l = aq_look_of(k);
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, l->number[FLAGS] & CLONE_THREAD ? "thread" : "fork");

    if (result >= 0 && l->number[ANNOUNCED])
        return;
    aq_event_number(&e, "flags", (int64_t)l->number[FLAGS]);
    aq_event_object(&e, k->proc->exe);
    e.result = result;
    aq_note(t, k, &e);
}

/* ---- programs ---- */

void aq_look_exec(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    int path = k->nr == AQ_NR_execveat ? 1 : 0;
    uint64_t at[ARGUMENTS] = {0};
    size_t n = 0;

    aq_look_read_path(t, k, path ? aq_arg_int(k, 0) : AT_FDCWD, aq_regs_arg(k, path));
    l->bytes_len = 0;
    while (n < ARGUMENTS && aq_tracee_get(k, aq_regs_arg(k, path + 1) + n * 8, &at[n], 8) && at[n])
        n++;
    for (size_t i = 0; i < n && l->bytes_len + 1 < sizeof l->bytes; i++) {
        bool cut;
        ssize_t len = aq_tracee_string(k, at[i], l->bytes + l->bytes_len,
                                       sizeof l->bytes - l->bytes_len, &cut);

        if (len < 0)
            break;
        l->bytes_len += (size_t)len + 1;
    }
}

static void put_arguments(aq_event *e, const char *bytes, size_t len)
{
    bool cut = len >= AQ_EVENT_TEXT;

    if (len > 0 && !cut && bytes[len - 1] == '\0')
        len--;
    aq_event_bytes(e, "argv", bytes, len, cut);
}

/* Only failures: a success is told by aq_decode_exec, on the new image. */
void aq_note_exec(aq_tracer *t, aq_task *k, long result)
{
    aq_look *l = aq_look_of(k);
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "exec");

    if (result >= 0 || !t->started)
        return;
    if (l->path_read)
        aq_resolve(t, k, l->dir, l->path, true, l->name, sizeof l->name);
    aq_event_path(l, &e);
    put_arguments(&e, l->bytes, l->bytes_len);
    e.result = result;
    aq_note(t, k, &e);
}

void aq_decode_exec(aq_tracer *t, aq_task *k)
{
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "exec");
    char exe[AQ_PATH + 32], path[64], argv[AQ_EVENT_TEXT], environment[AQ_CONTENT], all[AQ_CONTENT];
    aq_look *l = aq_look_of(k);
    bool ours = !k->proc->exe; /* what it was given we know */
    ssize_t n;

    aq_proc_link(k->tid, "exe", exe, sizeof exe);
    free(k->proc->exe);
    k->proc->exe = aq_strdup(exe);
    k->proc->split = false;
    snprintf(path, sizeof path, "%s/%d/cmdline", aq_process_proc(), k->tid);
    aq_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, argv, sizeof argv);
    aq_event_object(&e, exe);
    put_arguments(&e, argv, n > 0 ? (size_t)n : 0);
    if (l->path_len > 0 && k->row && strcmp(l->path, exe) != 0)
        aq_event_bytes(&e, "given", l->path, l->path_len, l->path_cut);
    if (k->caller)
        aq_event_number(&e, "caller", k->caller);
    k->caller = 0;
    if (n == sizeof argv)
        aq_content_given(t, k, "cmdline", &e, "content", all);
    if (!ours)
        aq_content_given(t, k, "environ", &e, "environment", environment);
    aq_note(t, k, &e);
}

/* ---- signals and control ---- */

/* Who sent it, while we still know; a child that ended counts. */
static void put_sender(aq_tracer *t, aq_task *k, const siginfo_t *s, aq_event *e)
{
    bool sent = s->si_code == SI_USER || s->si_code == SI_TKILL || s->si_code == SI_QUEUE ||
                s->si_code == SI_MESGQ || (s->si_signo == SIGCHLD && s->si_code > 0);
    const aq_proc *p = sent ? aq_proc_inner(t, k, s->si_pid) : NULL;
    const aq_ended *ended = sent && !p ? aq_usage_ended(t, s->si_pid) : NULL;

    if (p || ended)
        aq_event_number(e, "from", p ? p->ordinal : ended->ordinal);
}

void aq_decode_signal(aq_tracer *t, aq_task *k, const siginfo_t *s)
{
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "signal");

    aq_event_number(&e, "signal", s->si_signo);
    aq_event_number(&e, "code", s->si_code);
    put_sender(t, k, s, &e);
    aq_note(t, k, &e);
}

static void put_status(aq_event *e, int status)
{
    if (WIFSIGNALED(status))
        aq_event_number(e, "signal", WTERMSIG(status));
    else
        aq_event_number(e, "status", WEXITSTATUS(status));
}

/* What orders parent and child: from here on it knows how the child ended. */
void aq_decode_waited(aq_tracer *t, aq_task *k, const aq_ended *child)
{
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "wait");

    aq_event_number(&e, "child", child->ordinal);
    put_status(&e, child->status);
    aq_note(t, k, &e);
}

/* Whom a descriptor of a process means: our own copy of it tells the number that we know. `init`:
 * it means process 1 of the world, by a descriptor of its own or by its folder in /proc. */
static const aq_proc *proc_of_pidfd(const aq_tracer *t, const aq_task *k, int pidfd, bool *init)
{
    char path[64], text[512];
    const aq_proc *p = t->procs;
    const char *line, *end;
    long pid;
    ssize_t n;

    aq_auto_fd int mine = aq_fd_borrow(k, pidfd);
    snprintf(path, sizeof path, "%s/self/fd/%d", aq_process_proc(), mine);
    n = mine < 0 ? 0 : readlink(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    *init = strcmp(text, "/proc/1") == 0;
    snprintf(path, sizeof path, "%s/self/fdinfo/%d", aq_process_proc(), mine);
    aq_auto_fd int info = mine < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    n = info < 0 ? 0 : read(info, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    line = strstr(text, "\nNSpid:\t");
    end = line ? strchr(line + 1, '\n') : NULL;
    *init |= end && end - line > 2 && strncmp(end - 2, "\t1", 2) == 0;
    line = strstr(text, "\nPid:\t");
    if (!line)
        return NULL;
    pid = strtol(line + 6, NULL, 10);
    while (p && p->pid != pid)
        p = p->next;
    return p;
}

void aq_look_pidfd(aq_tracer *t, aq_task *k)
{
    bool init = false;
    const aq_proc *p = proc_of_pidfd(t, k, aq_arg_int(k, 0), &init);

    aq_look_of(k)->number[0] = p ? (uint64_t)p->ordinal + 1 : 0;
    aq_look_of(k)->number[1] = init;
}

/* See aq_try_kill. */
aq_step aq_try_pidfd_kill(aq_tracer *t, aq_task *k)
{
    (void)t;
    return aq_look_of(k)->number[1] ? aq_answer(k, -EPERM) : AQ_STEP_RUN;
}

void aq_note_pidfd_kill(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "kill");
    uint64_t ordinal = aq_look_of(k)->number[0];

    aq_event_number(&e, "signal", aq_arg_int(k, 1));
    if (ordinal > 0)
        aq_event_number(&e, "process", (int64_t)ordinal - 1);
    e.result = result;
    aq_note(t, k, &e);
    if (ordinal > 0 && result == 0)
        aq_edge_sent(t, k, (uint32_t)ordinal - 1, aq_arg_int(k, 1));
}

void aq_note_kill(aq_tracer *t, aq_task *k, long result)
{
    bool group = k->nr == AQ_NR_tgkill || k->nr == AQ_NR_rt_tgsigqueueinfo;
    int32_t target = aq_arg_int(k, 0), signal = aq_arg_int(k, group ? 2 : 1);
    const aq_proc *p = target > 0 ? aq_proc_inner(t, k, target) : NULL;
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "kill");

    aq_event_number(&e, "signal", signal);
    aq_event_number(&e, "target", target);
    if (group)
        aq_event_number(&e, "task", aq_arg_int(k, 1));
    if (p)
        aq_event_number(&e, "process", p->ordinal);
    for (aq_task *q = t->tasks; p && group && q; q = q->next)
        if (q->proc == p && aq_task_inner(q) == aq_arg_int(k, 1))
            aq_event_number(&e, "thread", q->ordinal);
    e.result = result;
    aq_note(t, k, &e);
    if (p && result == 0)
        aq_edge_sent(t, k, p->ordinal, signal);
}

enum { SET_VMA = 0x53564d41 };

void aq_look_prctl(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    bool cut;

    (void)t;
    l->path[0] = '\0';
    if (aq_arg_int(k, 0) == PR_SET_NAME)
        aq_tracee_string(k, aq_regs_arg(k, 1), l->path, 17, &cut);
}

void aq_note_prctl(aq_tracer *t, aq_task *k, long result)
{
    int option = aq_arg_int(k, 0);
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "control");

    if (option == SET_VMA || option == PR_GET_NAME || option == PR_CAPBSET_READ)
        return;
    if (option == PR_SET_NAME) {
        e.op = "name";
        aq_event_object(&e, aq_look_of(k)->path);
    } else {
        aq_event_number(&e, "option", option);
        aq_event_number(&e, "value", aq_arg_int(k, 1));
    }
    e.result = result;
    aq_note(t, k, &e);
}

/* prlimit asks more often than it sets. */
void aq_look_limit(aq_tracer *t, aq_task *k)
{
    (void)t;
    aq_look_of(k)->quiet = k->nr == AQ_NR_prlimit64 && !aq_regs_arg(k, 2);
}

/* ---- refusals ---- */

void aq_note_refused(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "refused");

    if (k->row->decoder && k->row->decoder->shape)
        aq_shape_fill(t, k, &e);
    aq_event_object(&e, k->nr < 0 ? "other-architecture" : k->row->name ? k->row->name : "unknown");
    if (!k->row->name)
        aq_event_number(&e, "number", (int64_t)k->in.orig_rax);
    e.result = result;
    aq_note(t, k, &e);
}

const aq_decoder aq_decode_refusal = {
    .kind = AQ_EVENT_SYSCALL, .op = "refused", .note = aq_note_refused};

void aq_decode_counter(aq_tracer *t, aq_task *k)
{
    aq_event e = aq_event_of(AQ_EVENT_CLOCK, "counter");

    aq_note(t, k, &e);
}

/* ---- ends ---- */

/* "read=12 write=3 …" in the order of numbers, in as many arguments as it takes. */
static void note_counts(aq_tracer *t, aq_proc *p)
{
    static const char *const names[] = {"calls", "calls.2", "calls.3", "calls.4"};
    aq_auto_buf text = {0};
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "counts");
    uint64_t total = p->unknown;
    size_t at = 0;

    for (long i = 0; i < AQ_CALL_NUMBERS; i++) {
        total += p->counts[i];
        if (p->counts[i])
            aq_buf_addf(&text, "%s%s=%u", text.len ? " " : "", aq_syscall_name(i), p->counts[i]);
    }
    aq_event_object(&e, p->exe);
    aq_event_number(&e, "total", (int64_t)total);
    if (p->unknown)
        aq_event_number(&e, "unknown", p->unknown);
    for (size_t i = 0; i < 4 && at < text.len; i++) {
        size_t len = text.len - at;

        if (len > AQ_EVENT_TEXT)
            for (len = AQ_EVENT_TEXT; text.data[at + len] != ' ';)
                len--;
        aq_event_bytes(&e, names[i], text.data + at, len, false);
        at += len + 1;
    }
    aq_note_proc(t, p, 0, &e);
}

void aq_decode_end(aq_tracer *t, aq_proc *p, int status)
{
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "exit");

    aq_fd_end(t, p);
    aq_event_object(&e, p->exe);
    put_status(&e, status);
    aq_note_proc(t, p, 0, &e);
    note_counts(t, p);
    aq_flood_end(t, p);
}

void aq_decode_close(aq_tracer *t)
{
    for (aq_proc *p = t->procs; p; p = p->next)
        aq_flood_end(t, p);
    aq_talk_free(t);
    aq_flood_close(t);
    if (t->root > 0)
        close(t->root - 1);
    if (t->own > 0)
        close(t->own - 1);
    t->root = t->own = 0;
}
