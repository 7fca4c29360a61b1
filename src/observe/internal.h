/* What the files of this room share: tasks, processes, the table of calls, and the steps of one
 * call.
 *
 * One call goes: entry stop → `look` of its decoder (once, at the first attempt; reads the
 * arguments) → `attempt` of its row (may be many times: run it, answer it, or park it) → exit stop
 * where needed → `note` of its decoder with the result (writes the event). */
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <time.h>

#include "base/digest.h"
#include "base/mem.h"
#include "observe/tracer.h"

typedef struct aq_task aq_task;
typedef struct aq_proc aq_proc;
typedef struct aq_call_row aq_call_row;
typedef struct aq_disk aq_disk;

enum {
    AQ_CALL_NUMBERS = 512, /* numbers of our table are below */
    AQ_STAT = 1024,        /* bytes of the kernel's line about a task */
    AQ_QUANTUM = 64,       /* calls after which another task gets its turn, at least */
    AQ_FD_SLOTS = 64,      /* remembered descriptors of one process */
    AQ_PATH = 4096,
    AQ_ENDED = 1024,     /* processes that nobody waited for yet */
    AQ_MEASURED = 65536, /* bytes that may be written before the room is asked for again */
    AQ_SAVED = 4,        /* places that an attempt overwrites */
    AQ_SAVED_BYTES =
        65536, /* of one of them: a descriptor set of 524,288, semaphores by thousands */
};

/* 146 years: nothing ends later. Far from where the time of an event, or a sum with the wall clock,
 * would not fit. */
static const uint64_t AQ_CLOCK_END = INT64_MAX / 2;

/* What is to happen with a call. */
typedef enum aq_step {
    AQ_STEP_RUN,    /* let it run and stop at its exit */
    AQ_STEP_GO,     /* let it run, nobody wants its result */
    AQ_STEP_DONE,   /* it has its answer (task->answer) and does not run */
    AQ_STEP_PARKED, /* it would block; aq_park was called */
    AQ_STEP_AGAIN,  /* after an attempt: another one follows at once */
} aq_step;

typedef aq_step aq_attempt(aq_tracer *t, aq_task *k);

/* How a call becomes an event. A decoder without `look` and `note` of its own is drawn by its shape
 * (decode.c). */
typedef struct aq_decoder {
    aq_event_kind kind;
    const char *op;
    const char *shape;
    void (*look)(aq_tracer *t, aq_task *k);
    void (*note)(aq_tracer *t, aq_task *k, long result);
} aq_decoder;

typedef enum aq_treat {
    AQ_TREAT_UNKNOWN, /* not in the table: refused by the kernel with ENOSYS */
    AQ_TREAT_COUNT,   /* runs, counted */
    AQ_TREAT_SEE,     /* runs, becomes an event */
    AQ_TREAT_REFUSE,  /* never runs: the kernel traps it, we answer with `code` and record it */
} aq_treat;

struct aq_call_row {
    const char *name;
    aq_treat treat;
    int code;            /* REFUSE: the errno that it answers */
    aq_attempt *attempt; /* NULL: never blocks */
    /* After an attempt that ran; may change the result, or park (then it is tried again). */
    aq_step (*after)(aq_tracer *t, aq_task *k, long *result);
    const aq_decoder *decoder; /* NULL: counted only */
};

const aq_call_row *aq_call_row_of(long nr); /* never NULL */

typedef enum aq_task_state {
    AQ_TASK_READY,   /* stopped, could run */
    AQ_TASK_RUNNING, /* the one */
    AQ_TASK_PARKED,  /* stopped at the entry of a call that would block */
    AQ_TASK_KERNEL,  /* in a call that nobody knew would block, or in vfork */
    AQ_TASK_HALTED,  /* stopped by a job control signal */
    AQ_TASK_ENDING,  /* a leader that ended before its threads: reported when they are gone */
} aq_task_state;

typedef enum aq_park_kind {
    AQ_PARK_RETRY, /* tried again after any activity */
    AQ_PARK_FUTEX,
    AQ_PARK_SLEEP,
    AQ_PARK_SIGNAL, /* only a signal ends it */
    AQ_PARK_SPIN,   /* waits without a call; spin.c */
} aq_park_kind;

typedef struct aq_futex_key {
    uint64_t space; /* address space, or device and inode of a shared mapping */
    uint64_t at;
} aq_futex_key;

/* What the decoder of the current call remembers between look and note. */
typedef struct aq_look {
    char path[AQ_PATH], other[AQ_PATH]; /* as given, NUL-terminated; `other`: the second path */
    size_t path_len, other_len;
    bool path_cut, other_cut, path_read;
    int dir, other_dir;
    char bytes[AQ_EVENT_TEXT]; /* a structure, an address, the head of a payload */
    size_t bytes_len;
    uint64_t number[4];
    /* The paths as they were resolved while everything stood still; empty: not resolved. */
    char name[2 * AQ_PATH], other_name[2 * AQ_PATH];
    bool quiet;        /* not worth an event */
    bool seen;         /* `what` has what the path means */
    bool gone;         /* nothing is there, for sure */
    bool existed;      /* what is opened was there before */
    struct statx what; /* as we see it */
    aq_buf sent;       /* messages: each an aq_message and its head */
} aq_look;

typedef enum aq_saved_for {
    AQ_SAVED_ARGUMENT, /* given back as soon as the attempt has run */
    AQ_SAVED_ANSWER,   /* the call writes its answer there: only given back for another attempt */
    AQ_SAVED_SCRATCH,  /* given back when the answer was looked at */
} aq_saved_for;

/* Memory that an attempt overwrites. */
typedef struct aq_saved {
    uint64_t at;
    uint32_t len;
    aq_saved_for why;
    unsigned char few[128], *many;
} aq_saved;

/* How often a task comes to a place; switch.c. */
typedef struct aq_count {
    uint64_t at;
    uint32_t hits, most; /* most 0: nothing is counted */
    bool laid;           /* the breakpoint is */
    bool planned;        /* by the schedule */
    bool jump;           /* at the end of it */
} aq_count;

struct aq_task {
    pid_t tid;
    aq_proc *proc;
    uint32_t serial;  /* in order of creation, over the whole world: the order of turns */
    uint32_t ordinal; /* inside its process */
    int end;          /* its wait status, once all were killed */
    aq_task_state state;

    struct user_regs_struct in;   /* at the entry of the current call */
    struct user_regs_struct regs; /* what the next resume sets, when `dirty` */
    bool dirty;
    const aq_call_row *row; /* of the current call, NULL outside of one */
    long nr;
    bool patched;     /* arguments were changed for the kernel: give the old ones back at exit */
    bool retry;       /* not the first attempt of this call */
    bool again;       /* nobody ran since the last one */
    bool at_exit;     /* parked after an attempt that ran: stopped at its exit, not its entry */
    bool no_counter;  /* it asked for a signal where it reads the time stamp counter */
    bool interrupted; /* a signal ends the wait: the kernel runs the call and says how */
    bool signalled;   /* at its exit it is to end by a signal */
    int restart; /* the code that it ends with then, where the kernel runs another call instead */
    bool wants_exit; /* resume with a stop at the exit of the call */
    bool masked;     /* the call has a signal mask of its own, `mask` */
    uint64_t mask;
    uint64_t flags;  /* of a clone */
    uint32_t caller; /* of an exec: the thread that asked for it, when it was not the first */
    uint64_t cpu;    /* virtual time that it used */
    uint32_t reads;  /* of the clock, in a row */
    bool looked;     /* at a clock, by its last call */
    long before;     /* number of its last call */
    uint32_t ticks;  /* of the wall clock since its last stop */
    uint32_t asleep; /* of them, the last ones at which it slept inside a call */
    bool trying;     /* a parked call is made again, perhaps in vain */
    bool looking;    /* we stop it to see whether it spins */
    uint64_t spin_from,
        spin_next;        /* processor time: since when, and after how much to look again */
    struct aq_spin *spin; /* made on first use */
    uint64_t begun;       /* calls */
    bool entered;         /* it stands at the entry of one */
    aq_count count;
    size_t scheduled; /* rows of the schedule that are behind it */
    uint64_t seeks;   /* calls begun, plus one, when it was stopped for a place to count at; or 0 */
    bool seeks_jump;
    uint32_t tries;   /* of such places */
    uint64_t tried;   /* processor time at the last one */
    bool trap_masked; /* it blocks SIGTRAP, which is let through for now */
    long answer;
    const char *rule; /* that refused the current call, NULL while none did */
    int signal;       /* delivered when it goes on */

    aq_park_kind park;
    bool timed;
    uint64_t deadline; /* virtual, of the current call; kept over retries */
    uint64_t seen;     /* t->activity at its last attempt */
    bool expired;      /* its deadline passed: the next attempt is the last */
    aq_futex_key futex;
    uint64_t futex_at; /* address in the tracee */
    uint32_t futex_value, futex_bits;
    uint64_t futex_order;
    bool futex_owned;         /* waits to own the word (priority inheritance) */
    pid_t inner;              /* its number inside its pid namespace; 0: not asked yet */
    uint64_t done;            /* bytes or messages that earlier attempts moved */
    uint64_t taken;           /* bytes of this call that were looked at; content.c */
    struct aq_giving *giving; /* what they were; NULL while nothing was written */
    uint64_t part;            /* of the message after them, bytes */
    bool waits;               /* the call may wait; false: its caller forbade that */
    int flip;                 /* descriptor whose O_NONBLOCK we set for this attempt, or -1 */
    int hold;         /* ours, of the pipe that it wants to open for reading, or -1; park_open.c */
    bool met;         /* somebody opened that pipe for writing meanwhile */
    uint64_t pipe[2]; /* its device and inode */
    uint64_t until;   /* virtual: recvmmsg takes no further message after it */

    uint32_t after[2];     /* process and thread of its last edge; edge.c */
    const char *after_how; /* NULL: it had none */
    struct aq_urgency {
        int8_t nice;
        uint8_t policy;
        bool reset; /* its children begin anew */
        uint16_t io;
    } urgency;                  /* as it believes; face_priority.c */
    uint8_t *cpus;              /* that it asked to run on, a bit each; NULL: did not ask */
    bool alias;                 /* the kernel gets another path, face_actors.c */
    aq_look *look;              /* made on first use */
    struct aq_entropy *entropy; /* likewise; face_entropy.c */
    aq_saved saved[AQ_SAVED];
    int saved_count;
    aq_task *next; /* in the order of serials */
};

/* A thread, also when it has ended. */
typedef struct aq_actor {
    uint32_t process, thread; /* ordinals */
} aq_actor;

/* What tasks of this world give each other; edge.c. */
typedef enum aq_way_kind {
    AQ_WAY_PIPE,
    AQ_WAY_SOCKET,
    AQ_WAY_EVENT,
    AQ_WAY_MESSAGE,
    AQ_WAY_SEMAPHORE,
    AQ_WAY_ZERO,   /* who took the last of a semaphore */
    AQ_WAY_SIGNAL, /* who sent it last */
    AQ_WAY_GONE,   /* who removed a queue or semaphores */
} aq_way_kind;

/* One direction in which it goes. */
typedef struct aq_way {
    aq_way_kind kind;
    uint64_t from, to;
} aq_way;

/* What a descriptor is. */
typedef enum aq_fd_kind {
    AQ_FD_NONE, /* not open */
    AQ_FD_FILE,
    AQ_FD_DIR,
    AQ_FD_PIPE,
    AQ_FD_SOCKET,
    AQ_FD_DEVICE,
    AQ_FD_OTHER, /* eventfd, epoll, inotify, … */
} aq_fd_kind;

typedef struct aq_fd {
    int fd; /* -1: empty slot */
    aq_fd_kind kind;
    uint64_t ino; /* of st_ino */
    uint64_t dev;
    uint64_t device;            /* which device it is; 0: none */
    char *name;                 /* what /proc says it is; owned */
    uint64_t read, written;     /* bytes, since it was first seen here */
    uint64_t writes;            /* how often */
    bool reads, maps, lists;    /* that it was used so has become an event */
    bool contains;              /* `content` has bytes that no event tells; content.c */
    aq_hash *content;           /* owned; NULL while nothing was written */
    aq_mark_at mark_at;         /* likewise */
    bool stream;                /* a socket without message borders */
    bool corked;                /* it believes to hold back what it sends */
    int family;                 /* of a socket */
    uint64_t event;             /* of an eventfd: which it is, plus one; 0: not asked */
    uint16_t port, own_port;    /* of a socket's peer, and its own */
    const struct aq_veil *veil; /* its text is ours; face_proc.c */
} aq_fd;

struct aq_proc {
    aq_tracer *world;
    pid_t pid;
    int pidfd; /* made on first use, or -1 */
    uint32_t ordinal;
    uint32_t parent;           /* ordinal */
    uint64_t space;            /* address space: shared after CLONE_VM, new after exec */
    uint32_t tasks, threads;   /* alive; ever made */
    uint64_t cpu, children;    /* virtual time used: by its tasks, by children that it waited for */
    uint64_t born;             /* virtual time at which it was made */
    int fd_space;              /* descriptor tables: 0 = its own, else shared (CLONE_FILES) */
    pid_t inner;               /* its number in its own pid namespace, 0 while not asked for */
    int fd_folder;             /* descriptor of its /proc/PID/fd plus one, 0 while not asked for */
    bool filtered;             /* it has a seccomp filter of its own, or a parent had */
    uint64_t stack_limit[2];   /* soft, hard: while it is another for an exec; slide.c */
    uint64_t vdso, vdso_bytes; /* our library in its memory; 0: there is none */
    bool undumpable;           /* asked to be: PR_SET_DUMPABLE, which the kernel is not told */
    bool short_files;          /* a limit of its own on files is less than the sandbox's */
    bool short_work;           /* and one on processor time, which the host's clock measures */
    bool split;                /* some of its threads have descriptor tables of their own */
    struct aq_flood_table *flood;
    aq_fd fds[AQ_FD_SLOTS];
    uint32_t counts[AQ_CALL_NUMBERS];
    uint32_t edges;           /* that were told */
    uint32_t unknown;         /* calls of other numbers or architectures */
    char *exe;                /* what it runs; owned */
    struct aq_belief *belief; /* what it believes of itself, face_calls.c; NULL: nothing yet */
    aq_task *vforked;         /* parent's task that waits for us, or NULL */
    aq_proc *next;
};

/* A process that ended, until its parent asks. */
typedef struct aq_ended {
    pid_t inner;
    uint32_t ordinal;
    int status;
    uint64_t cpu, children;
} aq_ended;

struct aq_tracer {
    aq_tracer_plan plan;
    aq_recorder *rec;
    aq_tracer_end end;
    aq_proc *procs; /* alive, newest first */
    aq_task *tasks; /* alive, in order of serials */
    aq_task *running;
    aq_task *last; /* that had the turn, while it lives */
    uint32_t alive, next_serial, next_proc, next_space, turn, quantum, limit;
    uint32_t seed;      /* of the lengths of turns */
    uint32_t kept[4];   /* turn, quantum, limit and seed before an attempt that may be in vain */
    bool vain;          /* the last one was: it leaves no trace */
    uint64_t next_wait; /* order of those who wait for a futex */
    pid_t first;
    bool started;
    int actors;            /* are there some? 1 yes, -1 no, 0 not asked yet; face_actors.c */
    int terminal;          /* is /dev/pts/0 the user's? -1 no, 0 yes, as long as nobody made one */
    bool strayed;          /* somebody may be in a folder that lies elsewhere; veil/kernel.h */
    bool has_hardware;     /* somebody looked into /sys; resolve.c */
    uint64_t measured;     /* bytes and calls when the room was last asked for */
    uint64_t said;         /* bytes that went to standard output and error */
    bool touched;          /* somebody may have looked at the writable places; touch.c */
    bool laid;             /* the home is there; home.c */
    const aq_marks *marks; /* content.c */
    bool marks_known;
    uint32_t acts;     /* that may have taken its space */
    uint64_t clock;    /* virtual nanoseconds since the start */
    uint64_t noise;    /* of the clock */
    uint64_t activity; /* grows with everything that could let a parked call go on */
    uint64_t runs;     /* times that a task was let go: it may write what others look at */
    bool signals;      /* somebody may have a signal to take */
    bool unsent;       /* signals may come that no call sends: by a descriptor or a terminal */
    bool killing;      /* what dies now a call has killed */
    int typed;         /* looks left after somebody typed, which a terminal hears a little later */
    bool named_pipes;  /* there may be some; park_open.c */
    bool moves_each;   /* the kernel moves one mapping at a time only */
    bool lingers;      /* some socket may want to wait in close */
    bool stamps;       /* some socket may want to know when a message came */
    int patience;      /* looks at tasks that wait in the kernel */
    int waking;        /* looks left for those whom SIGCONT sets going */
    uint64_t wall_start;
    timer_t ticker;
    bool ticking;
    struct aq_flood *flood;
    struct aq_recall *recall; /* what paths meant; recall.c */
    struct aq_disk *disk;     /* what files look like; NULL: as they are */
    uint32_t held, held_most; /* descriptors that processes cost us; descriptor.c */
    int root, own;            /* descriptors plus one: the world's root folder, our /proc/self/fd */
    int base;                 /* is there one? 1 yes, -1 no, 0 not asked yet; resolve.c */
    uint64_t base_mount;      /* the host's part of the world */
    struct aq_timers *timers;
    struct aq_talks *talks;
    struct aq_edges *edges;   /* edge.c */
    struct aq_undos *undos;   /* edge_ipc.c */
    struct aq_locks *locks;   /* edge_lock.c */
    uint8_t *vdso;            /* the library that programs get */
    struct aq_texts *texts;   /* of the machine that does not exist; face_proc.c */
    struct aq_reach *reach;   /* reach.h */
    struct aq_dumps *dumps;   /* face_dump.c */
    aq_ended ended[AQ_ENDED]; /* the newest */
    uint32_t next_ended;
};

/* The attempts that calls.def names, and what follows them. park_io.c, park_poll.c, park_wait.c,
 * futex.c, clock.c, timer.c, signals.c, exec.c, guard.c. */
aq_attempt aq_try_io, aq_try_connect, aq_try_accept, aq_try_poll, aq_try_select, aq_try_wait,
    aq_try_lock, aq_try_file_lock, aq_try_watch, aq_try_limit, aq_try_ipc, aq_try_open,
    aq_try_futex, aq_try_sleep, aq_try_time, aq_try_timer, aq_try_signal_wait, aq_try_yield,
    aq_try_clone, aq_try_exec, aq_try_exit, aq_try_prctl, aq_try_seccomp, aq_try_ptrace,
    aq_try_message, aq_try_copy, aq_try_queue, aq_try_usage, aq_try_advice, aq_try_remap,
    aq_try_arch;
aq_step aq_after_io(aq_tracer *t, aq_task *k, long *result);
aq_attempt aq_try_bind, aq_try_listen, aq_try_chdir;
aq_step aq_after_ioctl(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_copy(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_usage(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_bytes(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_message(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_connect(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_poll(aq_tracer *t, aq_task *k, long *result);
void aq_poll_left(aq_tracer *t, aq_task *k); /* to the task, of one that is interrupted */
aq_step aq_after_wait(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_lock(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_ipc(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_open(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_signal_wait(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_kill(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_exec(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_remap(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_timer(aq_tracer *t, aq_task *k, long *result);

/* face_stat.c, face_list.c, face_link.c, face_times.c: what files look like. */
aq_attempt aq_try_access, aq_try_stat, aq_try_fstat, aq_try_list, aq_try_remove, aq_try_times,
    aq_try_shown, aq_try_file_ioctl, aq_try_handle;
aq_step aq_after_stat(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_statfs(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_list(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_readlink(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_ipc_times(aq_tracer *t, aq_task *k, long *result);
aq_attempt aq_try_readlink, aq_try_cwd;
aq_step aq_after_cwd(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_file_ioctl(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_handle(aq_tracer *t, aq_task *k, long *result);
/* face_stamp.c: times that the kernel's network tells. */
void aq_stamps_wanted(aq_tracer *t, int option); /* of SOL_SOCKET */
void aq_face_stamps(aq_tracer *t, aq_task *k, long result);
void aq_face_stamp_control(aq_tracer *t, aq_task *k, uint32_t request);
void aq_face_connection(aq_tracer *t, aq_task *k, uint64_t at, size_t len); /* TCP_INFO */

/* face_net.c: what a netlink socket gave the task, without what tells of our cable. */
void aq_face_netlink(aq_tracer *t, aq_task *k, long *result);
/* face_dump.c: a list of sockets is read that takes many messages. RUN: the kernel may answer. */
aq_step aq_dump_read(aq_tracer *t, aq_task *k, const aq_fd *f);
void aq_dumps_free(aq_tracer *t);

void aq_moved(aq_tracer *t, long result); /* bytes, by a call that returned so many */
/* Bytes that may still go to a descriptor: without end where it is not the world's own output. */
uint64_t aq_said_left(const aq_tracer *t, const aq_fd *what);
/* So many went there, of so many that were wanted. True: it may take no more, and the run ends. */
bool aq_said_all(aq_tracer *t, aq_task *k, int fd, long result, uint64_t wanted);

/* park_io.c: is the time of a socket over (SO_RCVTIMEO, SO_SNDTIMEO)? `mine`: borrowed. */
bool aq_io_over(aq_tracer *t, aq_task *k, int mine, bool writes);
/* poll() that does not wait, and is not interrupted by our own ticks. */
struct pollfd;
int aq_io_poll(struct pollfd *p);
/* Sets O_NONBLOCK for one attempt, and takes it away again; true when it had been set. */
bool aq_io_flip(aq_task *k, int fd, int mine, int flags);
bool aq_io_unflip(aq_task *k);
/* No call moves more, whatever it asks for: whoever waited for the rest would wait for ever. */
enum { AQ_MOST_AT_ONCE = 0x7ffff000 };
uint64_t aq_at_once(uint64_t bytes);
/* Bytes of a list of buffers in the tracee that one call moves. */
uint64_t aq_vectors_bytes(const aq_task *k, uint64_t at, uint64_t count);
/* Leaves out the first `left` bytes for one attempt. False: nothing would be left. */
bool aq_vectors_skip(aq_task *k, uint64_t left, uint64_t *at, uint64_t *count);
/* Leaves out what comes after the first `most` bytes, for one attempt. */
void aq_vectors_limit(aq_task *k, uint64_t most, uint64_t at, uint64_t *count);
/* park_message.c: what a call has moved so far, when it ends now. */
long aq_message_done(aq_task *k);
/* park_open.c: it will not open what it waits for. */
void aq_open_end(aq_task *k);

/* registers.c: x86-64. Argument n of the current call, as the task gave it. */
uint64_t aq_regs_arg(const aq_task *k, int n);
uint64_t aq_regs_now(const aq_task *k, int n); /* as the kernel was given it */
/* For this attempt only: what the kernel is to see instead. */
void aq_regs_set_arg(aq_task *k, int n, uint64_t value);
void aq_regs_set_call(aq_task *k, long nr);
void aq_regs_answer(aq_task *k, long result);  /* the call does not run */
void aq_regs_finish(aq_task *k, long result);  /* at the exit of a patched call */
void aq_regs_rewind(aq_task *k);               /* at the exit: the call is made again */
void aq_regs_restart(aq_task *k, long result); /* at the exit: the kernel decides, -ERESTART… */
int aq_regs_load(aq_task *k, struct user_regs_struct *ret);
int aq_regs_store(aq_task *k);                                   /* when dirty */
int aq_regs_begin(aq_task *k, const struct user_regs_struct *r); /* those of a new program */
/* The task reads the time stamp counter, which traps: answers it. False when it does not. */
bool aq_regs_counter(aq_task *k, uint64_t value, uint32_t cpu);

/* memory.c: a tracee's memory; all are bounded and fail on anything unmapped. */
ssize_t aq_tracee_read(const aq_task *k, uint64_t at, void *data, size_t len);
bool aq_tracee_get(const aq_task *k, uint64_t at, void *data, size_t len); /* all or nothing */
bool aq_tracee_put(const aq_task *k, uint64_t at, const void *data, size_t len);
/* Shows the control messages of the socket level in a message's header, as far as they are looked
 * at: each with its data, and where that lies. */
typedef void (*aq_control_look)(int type, const void *data, size_t len, uint64_t at, void *arg);
void aq_tracee_control(const aq_task *k, uint64_t header, aq_control_look look, void *arg);
/* A string of at most cap-1 bytes; `cut` when it was longer. -EFAULT when nothing is there. */
ssize_t aq_tracee_string(const aq_task *k, uint64_t at, char *data, size_t cap, bool *cut);
/* Keeps what lies there until the attempt has run; with _answer, for another attempt. */
bool aq_tracee_save(aq_task *k, uint64_t at, size_t len);
bool aq_tracee_save_answer(aq_task *k, uint64_t at, size_t len);
void aq_tracee_ran(aq_task *k);     /* the attempt ran, and its answer is looked at now */
void aq_tracee_restore(aq_task *k); /* the attempt did not run, or will be made again */
void aq_tracee_settle(aq_task *k);  /* it was the last */
/* Bytes below the stack that a call may use as an argument during one attempt; 0 when none. */
uint64_t aq_tracee_scratch(aq_task *k, const void *data, size_t len);

/* One row of /proc/TID/maps. */
typedef struct aq_mapping {
    uint64_t from, to, offset, device, inode;
    bool shared, writable, closed; /* closed: nobody may read, write or run what is there */
    const char *name;              /* "" when it has none */
} aq_mapping;

/* Calls `each` for every mapping of a task until it says so; true when it did. */
bool aq_tracee_maps(const aq_task *k, bool (*each)(const aq_mapping *m, void *arg), void *arg);

/* task.c */
aq_task *aq_task_find(aq_tracer *t, pid_t tid);
pid_t aq_task_inner(aq_task *k);
aq_task *aq_task_add(aq_tracer *t, pid_t tid, aq_proc *proc);
aq_proc *aq_proc_add(aq_tracer *t, pid_t pid, const aq_proc *parent);
void aq_task_exchange(aq_tracer *t, aq_task *k, pid_t former); /* exec by a thread: it became k */
void aq_task_kill_all(aq_tracer *t);
void aq_task_bury(aq_tracer *t, aq_task *k,
                  int status); /* frees it; the last one ends its process */
/* The kernel's line about it, from the end of its name on; NULL: it is not there any more. */
char *aq_task_stat(pid_t tid, char text[static AQ_STAT]);
char aq_task_letter(const aq_task *k); /* as /proc says: S, t, Z …; 0: it is gone */
void aq_task_reap_dying(aq_tracer *t); /* waits for those that SIGKILL has reached */

/* engine.c */
void aq_engine_step(aq_tracer *t, aq_task *k, aq_step step); /* carries out what an attempt said */
void aq_engine_attempt(aq_tracer *t, aq_task *k);
void aq_engine_stopped(aq_tracer *t, aq_task *k, int status);
/* Waits for this task's next stop, whatever interrupts us; false when there is none. */
bool aq_engine_wait(const aq_task *k, int *status);
void aq_engine_drain(aq_tracer *t); /* stops that arrived meanwhile */
/* The task makes a call for us; `at`: an instruction that does so, 0: its own next one is lent.
 * False when the task has ended; `status` says how. */
bool aq_engine_inject(aq_task *k, uint64_t at, long nr, const uint64_t args[6], long *result,
                      int *status);

/* sched.c */
void aq_park(aq_tracer *t, aq_task *k, aq_park_kind kind);
/* The deadline of this call, set at its first attempt and kept over retries. */
void aq_park_until(aq_task *k, uint64_t deadline);
void aq_wake(aq_tracer *t, aq_task *k, long answer); /* ends its wait with this answer */
aq_step aq_answer(aq_task *k, long answer);
aq_step aq_refuse(aq_task *k, int code, const char *rule);
aq_task *aq_sched_next(aq_tracer *t); /* NULL: nobody can run now */
void aq_sched_turn(aq_tracer *t);     /* the turn ends with this call */
/* The one who runs has worked so long without a call: is the next moment not further? */
bool aq_sched_due(const aq_tracer *t, uint64_t ns);
void aq_sched_jump(aq_tracer *t);             /* to the next moment, if there is one */
void aq_sched_vain(aq_tracer *t, aq_task *k); /* it waits on, as if not tried */
bool aq_sched_idle(aq_tracer *t);             /* false: nothing will ever happen */
bool aq_sched_others(const aq_tracer *t, const aq_task *k); /* could anybody else run? */

/* The next moment at which something happens by itself; UINT64_MAX: none. */
uint64_t aq_sched_moment(const aq_tracer *t);

/* spin.c */
void aq_spin_tick(aq_tracer *t, aq_task *k); /* it runs without a call, and the wall clock ticks */
void aq_spin_look(aq_tracer *t, aq_task *k);
void aq_spin_again(aq_tracer *t, aq_task *k);

/* switch.c */
/* It is about to be stopped by traps. False: that would change what it knows of signals. */
bool aq_trap_open(aq_task *k);
void aq_trap_close(aq_task *k);
void aq_switch_begin(aq_task *k);                /* it makes another call */
void aq_switch_resume(aq_tracer *t, aq_task *k); /* it goes on */
bool aq_switch_hit(aq_tracer *t, aq_task *k);    /* it stands in a trap; false: not by our doing */
void aq_switch_lift(aq_task *k);                 /* no breakpoint while it stands elsewhere */
void aq_switch_seek(aq_task *k, uint64_t now, bool jump); /* it shall give way */
void aq_switch_found(aq_tracer *t, aq_task *k);           /* it was stopped for that */

/* clock.c */
uint64_t aq_clock_now(const aq_tracer *t, int id); /* in nanoseconds of that clock */
uint64_t aq_clock_counter(const aq_tracer *t);     /* the time stamp counter */
/* For one call, or a read of the processor's counter; `reads`: it looks at a clock. */
enum { AQ_TICK_COUNTER = -2 };
void aq_clock_tick(aq_tracer *t, aq_task *k, long nr, bool reads);
/* No wait ends in the nanosecond that it was to end in. */
uint64_t aq_clock_late(aq_tracer *t, uint64_t deadline);
void aq_clock_moved(aq_tracer *t, uint64_t bytes); /* by the one whose turn it is */
void aq_clock_left(aq_tracer *t, aq_task *k);      /* to the task, of a sleep that is interrupted */
/* The call ends at the time that lies at `at` in the task; 0 there: it has none. -EFAULT, -EINVAL.
 */
int aq_clock_until(aq_tracer *t, aq_task *k, uint64_t at, int id, bool absolute);
int aq_clock_waits(aq_tracer *t, aq_task *k,
                   int id); /* can one wait for it? 0, or what to answer */
uint64_t aq_clock_deadline(const aq_tracer *t, int id, bool absolute, int64_t s, int64_t ns);

/* usage.c */
void aq_usage_end(aq_tracer *t, const aq_proc *p, int status);
/* A process that ended and was not waited for, by its number inside; NULL when there is none. */
const aq_ended *aq_usage_ended(const aq_tracer *t, pid_t inner);
/* `usage`: where a struct rusage goes, or 0. */
void aq_usage_waited(aq_tracer *t, aq_task *k, pid_t child, uint64_t usage, bool reaped);
/* What a clock of processor time says; false when it is none that we know. */
bool aq_usage_clock(aq_tracer *t, aq_task *k, int id, uint64_t *ret);

/* timer.c */
uint64_t aq_timer_next(const aq_tracer *t); /* UINT64_MAX: none */
void aq_timer_fire(aq_tracer *t);
void aq_timer_delivers(aq_tracer *t, const aq_task *k, siginfo_t *s);
void aq_timer_forget(aq_tracer *t, const aq_proc *p); /* it ended, or runs another program */
void aq_timer_free(aq_tracer *t);

/* futex.c */
/* After a death: words that the kernel cleared. `joined`: the dead thread ended by itself. */
void aq_futex_changed(aq_tracer *t, uint32_t process, uint32_t thread, bool joined);

/* edge.c: k goes on after what that thread did. `how` is a constant. */
void aq_edge(aq_tracer *t, aq_task *k, uint32_t process, uint32_t thread, const char *how);
/* Bytes that k moved through a descriptor. */
void aq_edge_bytes(aq_tracer *t, aq_task *k, const aq_fd *f, bool write, uint64_t bytes);
void aq_edge_pair(aq_tracer *t, uint64_t one, uint64_t other); /* inodes of a pair of sockets */
void aq_edge_free(aq_tracer *t);
aq_actor aq_actor_of(const aq_task *k);
/* Somebody puts in, or k takes out (nobody: NULL), units of this rank. What take did not find. */
#define AQ_RANK_HIGHEST UINT64_MAX
void aq_edge_give(aq_tracer *t, aq_actor by, aq_way of, uint64_t rank, uint64_t units);
uint64_t aq_edge_take(aq_tracer *t, aq_task *k, aq_way of, uint64_t rank, uint64_t units);
/* Who was the last; k goes on after that one, if there was one. */
void aq_edge_mark(aq_tracer *t, aq_actor by, aq_way of);
bool aq_edge_marked(aq_tracer *t, aq_way of, aq_actor *ret);
void aq_edge_follow(aq_tracer *t, aq_task *k, aq_way of);
void aq_edge_forget(aq_tracer *t, aq_way_kind kind, uint64_t from);

/* edge_ipc.c: a call has run. */
void aq_edge_call(aq_tracer *t, aq_task *k, long result);
void aq_edge_ended(aq_tracer *t, const aq_proc *p);
void aq_edge_other(aq_tracer *t, aq_task *k, aq_fd *f, bool write, long result); /* eventfd … */
void aq_edge_sent(aq_tracer *t, const aq_task *k, uint32_t process, int signal);
void aq_edge_ipc_free(aq_tracer *t);

/* edge_lock.c: a lock of a file was taken or given back. */
void aq_edge_lock(aq_tracer *t, aq_task *k);
void aq_edge_lock_free(aq_tracer *t);

/* guard_host.c: does a call send to, or connect with, a socket of the host's? */
bool aq_guard_peer(aq_tracer *t, aq_task *k);

/* signals.c */
void aq_signals_check(aq_tracer *t); /* wakes parked tasks that have a signal to take */
/* How a wait that the kernel never sees ends when a signal comes; 0: it runs the call itself. */
int aq_signals_restart(const aq_task *k);
void aq_signals_put_off(aq_task *k);
bool aq_signals_pending(const aq_task *k, uint64_t blocked, uint64_t *ret);
uint64_t aq_signals_ignored(const aq_task *k);
void aq_signals_stop(aq_tracer *t, aq_task *k, int sig);
/* It goes on to take a signal. False: another took it meanwhile, and it waits on. */
bool aq_signals_still(aq_tracer *t, aq_task *k);

/* home.c: the home and what is trusted, made when somebody looks. True: they are there since now.
 */
bool aq_home_needed(aq_tracer *t, const char *name);
void aq_home_make(aq_tracer *t);
void aq_home_begin(aq_tracer *t, aq_task *k); /* a call that could tell, or take their space */
enum { AQ_LOOK_HOW = 2 };                     /* where aq_look_open keeps how paths are followed */
void aq_home_opening(aq_tracer *t, aq_task *k, uint64_t flags); /* not only to read */
bool aq_home_apart(const char *path);                           /* leads nowhere near */

/* touch.c: can this call neither see nor change anything in the world's writable places? */
bool aq_touches_nothing(const aq_task *k);

/* face_proc.c: files of /proc that tell of the machine, answered with its facts. */
aq_step aq_texts_read(aq_tracer *t, aq_task *k, const aq_fd *f); /* RUN: the kernel may answer */
void aq_texts_free(aq_tracer *t);

/* face_actors.c: processes that are not there. */
aq_attempt aq_try_kill, aq_try_tgkill, aq_try_pidfd_kill, aq_try_parent;
bool aq_actors_on(aq_tracer *t, aq_task *k);
aq_step aq_actors_attempt(aq_tracer *t, aq_task *k); /* before an attempt; RUN: make it */
void aq_actors_opened(aq_tracer *t, aq_task *k, int fd);
bool aq_actors_owner(const char *name, uint32_t *uid, uint32_t *gid);
const char *aq_actors_thread(const char *folder, const char *name); /* NULL: as it is */
int aq_actors_parent(const aq_proc *p); /* whom it is told as its parent; 0: the truth */

/* face_calls.c: calls that ask what the machine is, and what a process may do there. */
aq_attempt aq_try_machine, aq_try_affinity, aq_try_rlimit, aq_try_landlock, aq_try_young;
aq_step aq_after_rlimit(aq_tracer *t, aq_task *k, long *result);
aq_step aq_after_filter(aq_tracer *t, aq_task *k, long *result);
aq_step aq_face_prctl(aq_tracer *t, aq_task *k);
aq_step aq_face_filter(aq_tracer *t, aq_task *k);
long aq_face_refusal(const aq_tracer *t, aq_task *k);
bool aq_face_traced(aq_tracer *t, aq_task *k); /* its request to be traced is granted */
void aq_face_born(aq_task *parent, aq_task *child);
struct sysinfo;
void aq_face_sysinfo(const aq_tracer *t, struct sysinfo *s);
struct aq_veil_process;
void aq_face_tell(aq_task *k, aq_proc *p, struct aq_veil_process *of);

/* face_terminal.c: the one that the machine's user has. RUN: it is another one. */
aq_step aq_terminal_write(aq_tracer *t, aq_task *k, const aq_fd *f);
bool aq_terminal_takes_no_copy(const aq_tracer *t, const aq_task *k, const aq_fd *f);
void aq_terminal_opening(aq_tracer *t, aq_task *k, const char *path);

/* face_priority.c: nice, chrt, ionice. */
aq_attempt aq_try_priority;
void aq_priority_born(const aq_task *parent, aq_task *child);

/* exec.c */
void aq_exec_done(aq_tracer *t, aq_task *k);

/* face_entropy.c: what is random, where the world has a machine of its own. */
void aq_entropy_bytes(aq_tracer *t, aq_task *k, void *out, size_t len); /* the next of this task */
bool aq_fd_is_random(const aq_fd *f);
void aq_entropy_given(aq_tracer *t, aq_task *k, long result); /* by getrandom */
void aq_entropy_before(aq_task *k);                           /* a device is about to be read */
void aq_entropy_read(aq_tracer *t, aq_task *k, long result);  /* from a device */
/* sendfile or splice from a device: true when the task writes the bytes itself instead. */
bool aq_entropy_copy(aq_tracer *t, aq_task *k, int from, int into);
/* A control of a device that has this answer. */
bool aq_entropy_control(aq_tracer *t, aq_task *k, uint32_t request, long *answer);

/* guard_calls.c: attempts that only look at arguments. */
aq_attempt aq_try_absent, aq_try_done, aq_try_unshare, aq_try_personality, aq_try_process_vm,
    aq_try_dull, aq_try_fcntl, aq_try_ioctl, aq_try_send;

/* guard_socket.c */
aq_attempt aq_try_socket, aq_try_option, aq_try_sockopt;

aq_step aq_after_sockopt(aq_tracer *t, aq_task *k, long *result);

/* descriptor.c */
const aq_fd *aq_fd_of(aq_tracer *t, aq_task *k, int fd); /* never NULL; kind NONE when not open */
void aq_fd_forget(aq_tracer *t, aq_task *k, int fd);
void aq_fd_forget_all(aq_tracer *t, aq_task *k);
/* A descriptor of ours for the same open file; close it at once: a held pipe end hides its end. */
int aq_fd_borrow(const aq_task *k, int fd);
/* As many descriptors as we may have, shared out. */
void aq_fd_limit(aq_tracer *t);
void aq_fd_let_go(aq_proc *p); /* ours of this process */

/* decode.c: what the engine tells of. */
aq_look *aq_look_of(aq_task *k);
void aq_note(aq_tracer *t, aq_task *k, aq_event *e);
/* Something could not be looked at, by no fault of the program: the record is not whole. */
void aq_unseen(aq_tracer *t, aq_task *k, const char *what);
/* The host's clock decided who runs next: the run may not repeat. Never silent. */
void aq_preempted(aq_tracer *t, aq_task *k, const char *why);
/* It gave way while it computed: as the schedule says, or by the clock, at that place if any. */
void aq_switched(aq_tracer *t, aq_task *k, const aq_switch *at, bool planned);
extern const aq_decoder aq_decode_refusal;     /* for refused calls that have no decoder */
void aq_decode_exec(aq_tracer *t, aq_task *k); /* on the new image */
void aq_decode_signal(aq_tracer *t, aq_task *k, const siginfo_t *s); /* about to be delivered */
void aq_decode_waited(aq_tracer *t, aq_task *k, const aq_ended *child);
void aq_decode_counter(aq_tracer *t, aq_task *k);               /* the time stamp counter */
void aq_decode_end(aq_tracer *t, aq_proc *p, int status);       /* totals of a process */
void aq_decode_child(aq_tracer *t, aq_task *k, aq_task *child); /* k made it; nobody ran since */
void aq_decode_close(aq_tracer *t); /* the run is over: says what was left out, frees */
