/* One world of the container backend: what the front, the keeper, init and the payload know of it.
 * Private to the container's files.
 *
 * Theory of operation. Whoever is killed first, everything dies:
 *
 * - The front asks, prints, makes and removes the cgroups. It never touches what the payload says
 *   but through bounded messages. When the keeper asks it lays the cable of the world's network,
 *   by a child that has rights in the world only, and starts its internet (net.h).
 * - Two wardens sleep until front and keeper are gone and then remove the cgroups: the keeper has
 *   no right to by then. They read nothing, and are there before the first cgroup is. A user who
 *   may make no cgroup has none.
 * - The keeper makes the world and watches the payload, from outside of its pid namespace. Before
 *   the world it becomes somebody whom nothing else on the host is: as root by taking an unused
 *   identity, else by a user namespace of its own. While init builds it gives up every right, sees
 *   no file but those of the host's /proc, can trace and signal only who was born after that, and
 *   makes only the calls of calls.def; then it joins the world's network.
 * - Init is pid 1 inside: it joins the cgroups, starts the payload, builds of the root what a
 *   program needs to begin, and waits. Its end is the end of all processes inside. When the keeper
 *   says so, which is before the first call of the payload that could tell, init makes the rest of
 *   the root, and writes the files that the world has from the start, as the user whose they are.
 *   Many programs never make such a call. Then init gives up every right, locks itself in and
 *   reaps: nobody inside can have reached it before.
 * - The payload makes the network while init builds the root, becomes uid 1000 without any right,
 *   waits for its go, and executes the command.
 *
 *   front dead  → the keeper's control socket is at its end: it kills init and leaves
 *   warden dead → the front ends the world; whoever is killed next, front or warden, the third of
 *                 them removes the cgroups
 *   keeper dead → init gets the death signal it asked for; what the keeper traced dies with it
 *   internet dead → everybody out there refuses; the record says that it is not whole. It dies with
 *                 the front, and when the keeper's end of its line is closed
 *   init dead   → the kernel kills everything in the pid namespace; the keeper reports what it has
 *
 * No file, folder or mount is made where the host could see it: the root is a memory file system in
 * the world's own mount namespace, and vanishes with the last process. */
#pragma once

#include <sched.h>

#include <linux/capability.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "kernel/cgroup.h"
#include "kernel/namespace.h"
#include "model/observation.h"
#include "sandbox/backend.h"
#include "sandbox/watch.h"

enum {
    AQ_INSIDE_UID = 1000,
    /* Identities that no host hands out: far above subordinate ranges, below the sign bit. */
    AQ_OUTSIDE_IDS = 0x70000000,
    AQ_ENTRIES = 512,
    AQ_TEXT = 400,
};

typedef enum aq_base_kind {
    TREE,
    FOLDER,
    OURS,
    POINT,
    SOCKET,
    TEXT,
    LINK,
    DEVICE,
    SPACE,
    HARDWARE,
    SHARE
} aq_base_kind;

/* One thing that is made in the new root, in order. */
typedef struct aq_entry {
    aq_base_kind kind;
    const char *path; /* inside */
    const char *text; /* of a file, target of a link, mode of a space, host path of a tree */
    bool folder;      /* a tree: its root is a folder */
    bool copied;      /* a share that the run may change: its own copy is */
    bool home;        /* the user's: its path is said late */
    bool rest;        /* of those that are made when the program first looks around */
    int mount;        /* detached, or the folder to copy; -1 until it was taken from the host */
    int space; /* of a writable place: detached, -1 before it is made and when it has its place */
} aq_entry;

typedef struct aq_root {
    aq_entry entry[AQ_ENTRIES];
    size_t count;
    bool whole;          /* nothing waits until the program looks around */
    int top, disk, proc; /* mounts: the root, the writable space, /proc or -1 */
    int hidden; /* a folder of the root that a mount will cover: files that are shown elsewhere */
    int etc; /* what is shown as /etc, where the plan has files there that no machine has; or -1 */
} aq_root;

/* keeper, init, payload; of what is said later: keeper, init */
enum { AQ_LATE_READERS = 3, AQ_LATER_READERS = 2 };

/* The plan as it is when everything is said; late.c. */
typedef struct aq_late {
    int file, ready[2]; /* -1: closed */
    void *at;
    aq_arena *arena;
    aq_plan *plan;  /* NULL: all was said at once */
    aq_plan *whole; /* NULL: nothing is said later still */
} aq_late;

typedef struct aq_world {
    const aq_plan *plan; /* until aq_late_wait only what was said at once */
    aq_late late;
    aq_limits limits;
    aq_containment held;
    aq_cgroup cgroup;
    aq_root root;
    cpu_set_t processors; /* that may be used */
    bool privileged;      /* made by root */
    bool grouped;         /* who made it can make cgroups, and then has wardens for them */
    bool own_ids;         /* identities of our own were taken */
    aq_id_map ids[2];     /* the last one is the payload's */
    size_t id_count;
    int control;           /* the keeper's end */
    int life;              /* open in keeper and init as long as they live */
    int stream;            /* a memory file for the observation */
    int warden[2];         /* a pipe: the wardens tell the keeper that they are locked */
    int line;              /* the keeper's end of the internet's line; net.h */
    int host[2];           /* a line: the front hands init what is shown of the host; hand.c */
    int inner, outer;      /* between init or payload (inner) and keeper (outer) */
    int orders, order;     /* a line: init's end and the keeper's; see AQ_ORDER_FILL */
    int stdio[3], pump[3]; /* the payload's ends, and ours */
    pid_t init, payload;
    bool sealed;          /* init waits for orders */
    bool filled;          /* it has made the rest, and written the files, */
    bool laid;            /* and those of the home */
    uint64_t large_bytes; /* that large files took */
    bool large[256];      /* of these, which of the large ones have content; large.c */
    int hardware;         /* what is shown as /sys, in init */
    int terminal;         /* the other end of /dev/pts/0, in init */
    bool early;           /* the files must be there before the payload begins */
    int init_pidfd;
    int disk;                /* root of the writable space */
    int proc;                /* the world's, -1 where it has none */
    int users, network;      /* its namespaces */
    struct timespec started; /* before that the payload changed nothing */
    struct timespec lived;   /* before that nothing in its home */
} aq_world;

/* ---- messages ---- */

typedef enum aq_word {
    AQ_WORD_GO = 'G',       /* keeper → payload */
    AQ_WORD_ORIGINAL = 'O', /* init → keeper, with what was copied: the entry's number */
    AQ_WORD_READY = 'R',    /* init → keeper, with what the keeper needs of it */
    AQ_WORD_SEALED = 'S',   /* init → keeper: it waits for orders */
    AQ_WORD_WAITING = 'W',  /* payload → keeper, with its Landlock level; is it to be early? */
    AQ_WORD_FILLED = 'D',   /* init → keeper: the files are there, and init is locked */
    AQ_WORD_EXIT = 'X',     /* init → keeper: wait status of the payload */
    AQ_WORD_EMPTY = 'Y',    /* init → keeper: nobody else is left inside */
    AQ_WORD_FAILED = 'F',   /* anyone: text and errno */
    AQ_WORD_PREPARED = 'P', /* keeper → front, with init's pidfd */
    AQ_WORD_NETWORK = 'N',  /* payload → init and keeper, with the world's network namespace */
    AQ_WORD_BUILT = 'B',    /* init → payload: the root is there; is /proc? */
    AQ_WORD_GROUPS = 'C',   /* front → keeper, twice: the cgroups that init is born into, and all;
                             * keeper → init: here they are, and your identities exist */
    AQ_WORD_LAUNCH = 'L',   /* front → keeper */
    AQ_WORD_STOP = 'Q',     /* front → keeper: somebody wants it to end */
    AQ_WORD_REST = 'K', /* keeper → front: hand over the rest of the host, say that of the plan */
    AQ_WORD_TREES = 'T',    /* front → init, with what is shown of the host */
    AQ_WORD_CABLE = 'V',    /* keeper → front: lay the cable; its answer comes on the line */
    AQ_WORD_INTERNET = 'I', /* keeper → front: start the internet, which gets the line */
    AQ_WORD_ALONE = 'A',    /* keeper → front: end the internet */
    AQ_WORD_END = 'E',      /* keeper → front: length of the stream, why output was lost */
} aq_word;

typedef struct aq_message {
    uint32_t word;
    int32_t number; /* errno, wait status, Landlock level */
    uint64_t length;
    char text[AQ_TEXT];
} aq_message;

/* Warden → keeper, a byte: nothing can be asked of it any more. */
enum { AQ_WARDEN_LOCKED = 'L', AQ_WARDENS = 2 };

/* Keeper → init, a byte: make the rest, and write the files, all of them or all but those of the
 * home. The line's end: reap, nobody wants them any more. While it reaps init knows three more
 * orders, signals: write the home; make the tree of /sys; fill a large file, the one of the number
 * that comes with it. It answers with a byte. */
enum {
    AQ_ORDER_FILL = 'F',
    AQ_ORDER_PART = 'P',
    AQ_ORDER_LAY = 'Y',
    AQ_ORDER_HARDWARE = 'H',
    AQ_ORDER_LARGE = 'L',
    AQ_SIGNAL_LAY = SIGHUP,
    AQ_SIGNAL_HARDWARE = SIGUSR1,
    AQ_SIGNAL_LARGE = SIGUSR2
};

enum { AQ_MESSAGE_FDS = 12 };

int aq_message_send(int fd, const aq_message *m, const int *fds, size_t count, aq_err *err);
/* Whole messages with terminated text only; -EPIPE at the end. `fds` gets AQ_MESSAGE_FDS numbers,
 * -1 where there was none; `sender` the pid as seen here; both may be NULL. */
int aq_message_recv(int fd, aq_message *ret, int *fds, pid_t *sender, aq_err *err);
/* The cgroups of a world. */
int aq_message_send_groups(int fd, const aq_cgroup *g, aq_err *err);
int aq_message_recv_groups(int fd, aq_cgroup *ret, aq_err *err);
void aq_message_failed(int fd, const aq_err *err);
/* The failure that a message carries, its words made plain. */
int aq_message_error(const aq_message *m, aq_err *err);

/* ---- the plan ---- */

/* Will the plan bring a machine? What is said late has one. */
static inline bool aq_has_machine(const aq_plan *plan)
{
    return plan->machine || plan->late;
}

/* In the front: makes the place, before the keeper is there; has the plan made, while it works. */
int aq_late_begin(aq_world *w, aq_err *err);
int aq_late_make(aq_world *w, aq_err *err);
/* In the keeper, at its start. */
int aq_late_join(aq_world *w, aq_err *err);
/* In keeper, init and payload, each once at least: from then on `plan` says all that a start needs.
 */
int aq_late_wait(aq_world *w, aq_err *err);
/* In the front: the rest, when the program looks around. In keeper and init, each once at most. */
int aq_later_make(aq_world *w, aq_err *err);
int aq_later_wait(aq_world *w, aq_err *err);
void aq_late_end(aq_world *w);

/* ---- the root ---- */

/* Lists what is to be made; looks at the host, changes nothing, and needs nothing that is said
 * late: what is of that comes with aq_root_settle. */
int aq_root_list(aq_arena *a, const aq_plan *plan, aq_root *ret, aq_err *err);
void aq_root_settle(aq_world *w);
/* Is it made when the program first looks around? */
bool aq_root_is_rest(const aq_root *root, const aq_entry *e);
/* Takes one thing from the host, as a mount that has no place yet. */
int aq_root_take_one(aq_entry *e, aq_err *err);
/* Takes what a start needs. With privilege the keeper does it, and reaches what only root may; else
 * init does it in its own mount namespace, and takes everything. */
int aq_root_take(aq_root *root, aq_err *err);
/* With privilege the rest is the front's to take, and init's to receive, once it is wanted: the
 * kernel waits for every processor when a mount is closed that never had a place. */
int aq_hand_over(aq_root *root, int line, aq_err *err);
int aq_hand_take(aq_root *root, int line, aq_err *err);
/* Builds what a program needs to begin, enters it with everybody who shares our mounts, leaves the
 * host's, and returns a descriptor of the writable space. */
int aq_root_build(aq_world *w, aq_err *err);
/* The rest, when the program first looks around, and with it all that the plan says later. */
int aq_root_furnish(aq_world *w, aq_err *err);

/* The folder of an entry in the writable space: of a space, or of a copied share. */
const char *aq_root_folder(const aq_root *root, const aq_entry *e, char name[static 64]);

/* Would a folder's content fit? Looks at most at so much. */
bool aq_copy_fits(const char *folder, uint64_t bytes, uint64_t entries);
/* Copies what is in the folder `from`; sockets and devices, and what cannot be read, stay outside.
 */
int aq_copy_folder(aq_world *w, int from, int to, aq_err *err);

/* ---- our own processes ---- */

/* What the keeper needs as root, to be somebody else and to make a world. */
#define AQ_KEEPER_CAPABILITIES                                                                     \
    (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETGID |        \
     UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_SETPCAP | UINT64_C(1) << CAP_SYS_CHROOT)

typedef enum aq_own {
    AQ_OWN_KEEPER = 1,
    AQ_OWN_INIT = 2,
    AQ_OWN_WARDEN = 4,
    AQ_OWN_FILLER = 8 /* init, while the home is not written */
} aq_own;

/* From here on this process makes the calls of its list only (calls.def); any other one kills it.
 * Needs no_new_privs. */
int aq_lock(aq_own who, aq_err *err);

/* ---- the files of the plan ---- */

/* The writable home of the plan. */
const char *aq_root_home(const aq_plan *plan);
struct timespec aq_files_time(const aq_plan_file *f);
/* Is it one of those that the read-only root gets? */
bool aq_files_in_root(const aq_plan_file *f);
/* Bytes that they take of the writable space, and how many they are. */
uint64_t aq_files_room(const aq_plan *plan);
size_t aq_files_count(const aq_plan *plan);
/* Makes a file of the world: where it belongs, or, in a folder that is not the world's own, hidden
 * and shown over the one of that name. A text without a plan gives way to what is there. */
int aq_cover_file(aq_world *w, int root, const char *path, const char *text, const aq_plan_file *f,
                  aq_err *err);
int aq_cover_socket(const aq_world *w, int root, const char *path, aq_err *err);

/* Is it a file that the plan alone brings, in a folder of files that every machine has? */
bool aq_root_is_point(const char *path);
/* Does the path lie in a writable place? */
bool aq_root_is_space(const aq_plan *plan, const char *path);
/* Is it one of those files or folders, or in one? */
bool aq_files_hold(const aq_plan *plan, const char *path);
/* Files are made by the user whose they are, which saves a call for each. */
void aq_files_as_user(const aq_world *w, bool user);
/* Both as the user. Folders that are there already stay as they are. */
int aq_files_folders(const aq_world *w, int root, aq_err *err);
int aq_files_write(const aq_world *w, bool home, aq_err *err); /* of the home, or all others */
/* Is it one of those of the home, which can be written last? */
bool aq_files_at_home(const aq_plan *plan, const aq_plan_file *f);
const char *aq_start_folder(const aq_plan *plan); /* where the payload begins */
/* hardware.c: fills /sys with the tree of the plan's machine; 0, or what is wrong. */
int aq_hardware_write(const aq_world *w);

/* large.c: files whose content comes when somebody opens them. Room for them beside `most`: */
uint64_t aq_large_room(const aq_plan *plan, uint64_t most);
uint64_t aq_large_left(const aq_world *w); /* of it, for those that nobody opened yet */
/* In init: one of them was made; all
 * were; one gets its content. */
int aq_large_make(int fd, const aq_plan_file *f);
int aq_large_ready(void);
void aq_large_write(const aq_plan *plan, int number);
/* In the keeper: has the file of that name filled, or one below. False: there is none left. */
bool aq_large_fill(aq_world *w, const char *name, bool below, const char **path, int64_t *written,
                   uint64_t *len);
/* Is it one that nobody opened? */
bool aq_large_empty(const aq_plan_file *f, const struct stat *st);
/* Does an open one hold what it began with? */
bool aq_large_same(int fd, const aq_plan_file *f, char *buffer, size_t size);

typedef struct aq_file_index {
    const aq_plan_file **row; /* by path */
    char *seen;
    size_t count;
} aq_file_index;

void aq_files_index(const aq_plan *plan, aq_file_index *ret);
void aq_files_index_free(aq_file_index *x);
/* Marks it as seen; NULL when the plan has none of that path. */
const aq_plan_file *aq_files_find(aq_file_index *x, const char *path);
bool aq_files_same(int fd, const aq_plan_file *f, char *buffer, size_t size);

/* ---- authorities ---- */

/* Shows what the plan adds to them, while the root is furnished. */
int aq_trust_place(const aq_world *w, aq_err *err);

/* ---- inside ---- */

_Noreturn void aq_init_main(aq_world *w);
_Noreturn void aq_keeper_main(aq_world *w);

/* ---- what the run leaves ---- */

/* All files of the writable space, which nobody changes any more. */
int aq_changes_read(aq_arena *a, const aq_world *w, const aq_marks *marks, aq_observation *o,
                    aq_err *err);
