/* What a call gave to other threads or took from them: units of semaphores, messages of both kinds
 * of queue, numbers in eventfds, signals that are read instead of handled. Who gave them is kept in
 * edge.c.
 *
 * The kernel says what was taken: the type of a message lies in the answer, a queue of POSIX gives
 * the oldest of the highest priority, units of a semaphore are alike and go in the order in which
 * they came. Who waits for zero goes on after the one who took last. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

#ifndef MSG_COPY
#define MSG_COPY 040000
#endif

enum {
    OPS = 1024, /* of one call; see park_wait.c */
    UNDOS = 64, /* semaphores and processes whose end gives them back */
    NEWS = 64,  /* signals that one read of a signalfd brings */
    IPC_WORD = 0xff,
    SEMAPHORES = 0,
    MESSAGES = 1, /* their numbers are apart */
};

static const uint64_t whole = UINT64_MAX; /* in place of an index: all of a set */

/* ---- semaphores ---- */

/* What a process takes back, or gives back, when it ends (SEM_UNDO). */
typedef struct undo {
    uint32_t process;
    uint64_t set, index;
    int64_t units;
} undo;

struct aq_undos {
    undo all[UNDOS];
    uint32_t next;
};

static aq_way way_of(aq_way_kind kind, uint64_t set, uint64_t index)
{
    return (aq_way){kind, set, index};
}

static void take(aq_tracer *t, aq_task *k, uint64_t set, uint64_t index, uint64_t units)
{
    if (aq_edge_take(t, k, way_of(AQ_WAY_SEMAPHORE, set, index), 0, units) > 0 && k)
        aq_edge_follow(t, k, way_of(AQ_WAY_SEMAPHORE, set, whole));
    if (k)
        aq_edge_mark(t, aq_actor_of(k), way_of(AQ_WAY_ZERO, set, index));
}

static void follow_zero(aq_tracer *t, aq_task *k, uint64_t set, uint64_t index)
{
    aq_way one = way_of(AQ_WAY_ZERO, set, index);
    aq_actor by;

    aq_edge_follow(t, k, aq_edge_marked(t, one, &by) ? one : way_of(AQ_WAY_ZERO, set, whole));
}

static void keep_undo(aq_tracer *t, const aq_task *k, uint64_t set, uint64_t index, int units)
{
    undo *u;

    if (!t->undos)
        t->undos = aq_alloc(sizeof *t->undos);
    for (u = t->undos->all; u < t->undos->all + UNDOS; u++)
        if (u->units && u->process == k->proc->ordinal && u->set == set && u->index == index)
            break;
    if (u == t->undos->all + UNDOS) {
        u = &t->undos->all[t->undos->next++ % UNDOS];
        *u = (undo){k->proc->ordinal, set, index, 0};
    }
    u->units -= units;
}

static void change(aq_tracer *t, aq_task *k)
{
    uint64_t set = (uint32_t)aq_regs_arg(k, 0), count = (uint32_t)aq_regs_arg(k, 2);
    static struct sembuf ops[OPS];

    if (count > OPS || !aq_tracee_get(k, aq_regs_arg(k, 1), ops, sizeof *ops * count))
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t index = ops[i].sem_num;
        int units = ops[i].sem_op;

        if (units > 0)
            aq_edge_give(t, aq_actor_of(k), way_of(AQ_WAY_SEMAPHORE, set, index), 0,
                         (uint64_t)units);
        else if (units < 0)
            take(t, k, set, index, (uint64_t)-units);
        else
            follow_zero(t, k, set, index);
        if (units && (ops[i].sem_flg & SEM_UNDO))
            keep_undo(t, k, set, index, units);
    }
}

void aq_edge_ended(aq_tracer *t, const aq_proc *p)
{
    for (undo *u = t->undos ? t->undos->all : NULL; u && u < t->undos->all + UNDOS; u++) {
        if (!u->units || u->process != p->ordinal)
            continue;
        if (u->units > 0)
            aq_edge_give(t, (aq_actor){p->ordinal, 0}, way_of(AQ_WAY_SEMAPHORE, u->set, u->index),
                         0, (uint64_t)u->units);
        else
            take(t, NULL, u->set, u->index, (uint64_t)-u->units);
        u->units = 0;
    }
}

/* What was there before counts no more: who sets it is the one who gave it. */
static void set_one(aq_tracer *t, const aq_task *k, uint64_t set, uint64_t index, int units)
{
    aq_way of = way_of(AQ_WAY_SEMAPHORE, set, index);

    aq_edge_take(t, NULL, of, 0, UINT64_MAX);
    if (units > 0)
        aq_edge_give(t, aq_actor_of(k), of, 0, (uint64_t)units);
    else
        aq_edge_mark(t, aq_actor_of(k), way_of(AQ_WAY_ZERO, set, index));
}

static void set_all(aq_tracer *t, const aq_task *k, uint64_t set)
{
    aq_edge_forget(t, AQ_WAY_SEMAPHORE, set);
    aq_edge_forget(t, AQ_WAY_ZERO, set);
    aq_edge_mark(t, aq_actor_of(k), way_of(AQ_WAY_SEMAPHORE, set, whole));
    aq_edge_mark(t, aq_actor_of(k), way_of(AQ_WAY_ZERO, set, whole));
}

static void control(aq_tracer *t, aq_task *k)
{
    uint64_t id = (uint32_t)aq_regs_arg(k, 0);
    bool semaphores = k->nr == AQ_NR_semctl;
    int command = aq_arg_int(k, semaphores ? 2 : 1) & IPC_WORD;

    if (command == IPC_RMID)
        aq_edge_mark(t, aq_actor_of(k),
                     way_of(AQ_WAY_GONE, id, semaphores ? SEMAPHORES : MESSAGES));
    else if (semaphores && command == SETVAL)
        set_one(t, k, id, (uint32_t)aq_regs_arg(k, 1), aq_arg_int(k, 3));
    else if (semaphores && command == SETALL)
        set_all(t, k, id);
}

static void removed(aq_tracer *t, aq_task *k)
{
    bool messages = k->nr == AQ_NR_msgsnd || k->nr == AQ_NR_msgrcv;

    aq_edge_follow(
        t, k, way_of(AQ_WAY_GONE, (uint32_t)aq_regs_arg(k, 0), messages ? MESSAGES : SEMAPHORES));
}

/* ---- messages ---- */

static void message(aq_tracer *t, aq_task *k)
{
    aq_way of = {AQ_WAY_MESSAGE, 0, (uint32_t)aq_regs_arg(k, 0)};
    uint64_t type;

    if (!aq_tracee_get(k, aq_regs_arg(k, 1), &type, sizeof type))
        return;
    if (k->nr == AQ_NR_msgsnd)
        aq_edge_give(t, aq_actor_of(k), of, type, 1);
    else if (!(aq_regs_arg(k, 4) & MSG_COPY)) /* which leaves it there */
        aq_edge_take(t, k, of, type, 1);
}

static void queue(aq_tracer *t, aq_task *k)
{
    const aq_fd *f = aq_fd_of(t, k, aq_arg_int(k, 0));
    aq_way of = {AQ_WAY_MESSAGE, f->dev, f->ino};

    if (k->nr == AQ_NR_mq_timedsend)
        aq_edge_give(t, aq_actor_of(k), of, (uint32_t)aq_regs_arg(k, 3), 1);
    else
        aq_edge_take(t, k, of, AQ_RANK_HIGHEST, 1);
}

/* ---- signals ---- */

void aq_edge_sent(aq_tracer *t, const aq_task *k, uint32_t process, int signal)
{
    if (signal > 0)
        aq_edge_mark(t, aq_actor_of(k), (aq_way){AQ_WAY_SIGNAL, process, (uint64_t)signal});
}

/* The kernel names the process; which of its threads it was we know of the last one only. */
static void signal_from(aq_tracer *t, aq_task *k, int signal, int code, pid_t pid)
{
    bool sent = code == SI_USER || code == SI_TKILL || code == SI_QUEUE || code == SI_MESGQ ||
                (signal == SIGCHLD && code > 0);
    const aq_proc *p = sent && pid > 0 ? aq_proc_inner(t, k, pid) : NULL;
    const aq_ended *ended = sent && pid > 0 && !p ? aq_usage_ended(t, pid) : NULL;
    aq_actor by = {0};
    bool known =
        aq_edge_marked(t, (aq_way){AQ_WAY_SIGNAL, k->proc->ordinal, (uint64_t)signal}, &by);

    if (!p && !ended)
        return;
    if (!known || by.process != (p ? p->ordinal : ended->ordinal))
        by = (aq_actor){p ? p->ordinal : ended->ordinal, 0};
    aq_edge(t, k, by.process, by.thread, "signal");
}

static void waited(aq_tracer *t, aq_task *k)
{
    siginfo_t s;

    if (aq_regs_arg(k, 1) && aq_tracee_get(k, aq_regs_arg(k, 1), &s, sizeof s))
        signal_from(t, k, s.si_signo, s.si_code, s.si_pid);
}

static void read_signals(aq_tracer *t, aq_task *k, uint64_t at, long result)
{
    struct signalfd_siginfo s;

    for (long i = 0; i < NEWS && (i + 1) * (long)sizeof s <= result; i++)
        if (aq_tracee_get(k, at + (uint64_t)i * sizeof s, &s, sizeof s))
            signal_from(t, k, (int)s.ssi_signo, s.ssi_code, (pid_t)s.ssi_pid);
}

/* ---- numbers ---- */

/* All eventfds have one inode; the kernel counts them, and tells that of our own copy. */
static uint64_t event_of(const aq_task *k, aq_fd *f)
{
    aq_auto_fd int mine = -1, info = -1;
    char path[64], text[1024];
    const char *line;
    ssize_t n;

    if (f->event)
        return f->event;
    mine = aq_fd_borrow(k, f->fd);
    snprintf(path, sizeof path, "%s/self/fdinfo/%d", aq_process_proc(), mine);
    info = mine < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    n = info < 0 ? 0 : read(info, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    line = strstr(text, "\neventfd-id:");
    f->event = line ? strtoull(line + strlen("\neventfd-id:"), NULL, 10) + 1 : 0;
    return f->event;
}

/* Where the bytes of a read or write lie; 0: in many places. */
static uint64_t bytes_at(const aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 1);
    struct iovec v;

    switch (k->nr) {
    case AQ_NR_read:
    case AQ_NR_write:
        return at;
    case AQ_NR_readv:
    case AQ_NR_writev:
        return aq_tracee_get(k, at, &v, sizeof v) ? (uint64_t)(uintptr_t)v.iov_base : 0;
    default:
        return 0;
    }
}

void aq_edge_other(aq_tracer *t, aq_task *k, aq_fd *f, bool write, long result)
{
    uint64_t at = f->name && strncmp(f->name, "anon_inode:", 11) == 0 ? bytes_at(k) : 0;
    uint64_t event, units;

    if (!at)
        return;
    if (!write && strstr(f->name, "[signalfd]")) {
        read_signals(t, k, at, result);
        return;
    }
    if (!strstr(f->name, "[eventfd]") || !aq_tracee_get(k, at, &units, sizeof units) ||
        !(event = event_of(k, f)))
        return;
    if (write)
        aq_edge_give(t, aq_actor_of(k), (aq_way){AQ_WAY_EVENT, 0, event}, 0, units);
    else
        aq_edge_take(t, k, (aq_way){AQ_WAY_EVENT, 0, event}, 0, units);
}

/* ---- all of them ---- */

void aq_edge_call(aq_tracer *t, aq_task *k, long result)
{
    switch (k->nr) {
    case AQ_NR_semop:
    case AQ_NR_semtimedop:
        if (result == -EIDRM)
            removed(t, k);
        else if (result == 0)
            change(t, k);
        break;
    case AQ_NR_msgsnd:
    case AQ_NR_msgrcv:
        if (result == -EIDRM)
            removed(t, k);
        else if (result >= 0)
            message(t, k);
        break;
    case AQ_NR_semctl:
    case AQ_NR_msgctl:
        if (result >= 0)
            control(t, k);
        break;
    case AQ_NR_mq_timedsend:
    case AQ_NR_mq_timedreceive:
        if (result >= 0)
            queue(t, k);
        break;
    case AQ_NR_rt_sigtimedwait:
        if (result > 0)
            waited(t, k);
        break;
    case AQ_NR_flock:
    case AQ_NR_fcntl:
        if (result == 0)
            aq_edge_lock(t, k);
        break;
    default:
        break;
    }
}

void aq_edge_ipc_free(aq_tracer *t)
{
    free(t->undos);
    t->undos = NULL;
}
