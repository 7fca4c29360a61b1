/* What a program reads about the machine it believes to be on, as text: the files of /proc and
 * /sys.
 *
 * Pure functions: facts of a machine, virtual time and the kernel's own text go in, the text that
 * the program sees comes out. No file is opened here and no call made; whoever asks (observe) knows
 * which file it is, and what the process it tells of did. The kernel's text is bounded by the
 * caller and trusted in nothing: names in it are the program's own. files.def has one row a file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/machine.h"

enum {
    AQ_VEIL_SHELL = 2419,         /* process that started the program */
    AQ_VEIL_KEYRING = 0x1b6d8e42, /* of the session */
    AQ_VEIL_FIRST = AQ_MACHINE_FIRST,
    AQ_VEIL_CPUS = 1024,     /* more of them a machine has not */
    AQ_VEIL_TEXT = 64 << 20, /* longer ones of the kernel are cut */
};

/* One process or thread, as its files in /proc tell. All of it is virtual. */
typedef struct aq_veil_process {
    uint64_t cpu_ns, children_ns; /* used by it, by children that it waited for */
    uint64_t born_ns;             /* since the start of the world */
    uint64_t calls;               /* that it made */
    uint64_t vdso;                /* where that lies; right below are the pages of the clock */
    int parent;                   /* what to say instead of the kernel's number; 0: nothing */
    bool running, halted;         /* the one whose turn it is; stopped by job control */
    bool no_new_privileges;       /* asked for by itself */
    int filters;                  /* of its own */
    int nice, policy;             /* how urgent it is */
    const uint8_t *cpus;          /* which it asked to run on, one bit each; NULL: all */
    const uint64_t (*limits)[2];  /* sixteen: soft, hard */
} aq_veil_process;

typedef struct aq_veil_scene {
    const aq_machine *machine;
    const char *path;   /* of the file */
    uint64_t clock_ns;  /* since the start of the world */
    uint32_t tasks;     /* of the world, alive */
    int last_pid;       /* the newest process */
    uint64_t draw;      /* a number that was never used before: what is random is drawn by it */
    aq_veil_process of; /* whom a file of a process tells of */
    /* The open file that a file of a descriptor tells of; a mount of 0: it is not known. */
    struct aq_veil_file {
        uint64_t inode;
        uint32_t mount, major, minor;
    } file;
    /* The number that the world knows a file by; `name` is NULL for a socket. May be NULL. */
    uint64_t (*inode)(void *arg, const char *name, uint64_t device, uint64_t inode);
    void *arg;
} aq_veil_scene;

/* A file whose text is ours. */
typedef struct aq_veil aq_veil;

/* `path`: absolute, as the kernel names an open file. `actors`: numbers of actors (actors.h) mean
 * them. NULL: what is there may be read as it is. */
const aq_veil *aq_veil_of(const char *path, bool actors);
/* Does it tell of the host's disks, buses or kernel, and of nothing that a machine must have? Such
 * a file is not there; whoever holds one all the same reads nothing. */
bool aq_veil_of_host(const char *path);
/* "/tmp/#262 (deleted)": a file of that inode that never had a name. Where the number begins; 0: it
 * is none. */
size_t aq_veil_unnamed(const char *name, size_t len, uint64_t ino);
/* Is its text made of the kernel's? Otherwise that need not be read. */
bool aq_veil_needs_truth(const aq_veil *v);
/* Puts what the program sees into `ret`, which is emptied first. */
void aq_veil_text(const aq_veil *v, const aq_veil_scene *s, const char *truth, size_t len,
                  aq_buf *ret);

/* Numbers of the process that a path in /proc tells of, 0 where it names none: "/proc/12/stat" is
 * 12 and 0, "/proc/12/task/13/stat" is 12 and 13. */
void aq_veil_pids(const char *path, int *pid, int *tid);

/* For answers of calls, which must say what the files say. */
unsigned aq_veil_cpus(const aq_machine *m);
uint64_t aq_veil_resident_kb(uint64_t size_kb); /* of a process so large */
/* The processor that a task is on, as far as anybody can tell; one of `allowed`, NULL: of all. */
unsigned aq_veil_cpu(const aq_machine *m, const uint8_t *allowed, uint64_t clock_ns,
                     uint64_t calls);
/* Groups of the user; how many there are. */
size_t aq_veil_groups(const aq_machine *m, uint32_t *ret, size_t cap);
/* What a login session may use: resource as in getrlimit. */
void aq_veil_limit(const aq_machine *m, unsigned resource, uint64_t ret[2]);
void aq_veil_loads(uint64_t ret[3]); /* in hundredths */
typedef struct aq_veil_memory {
    uint64_t total_kb, free_kb, available_kb, buffers_kb, cached_kb, shared_kb;
    uint64_t swap_kb;
} aq_veil_memory;
aq_veil_memory aq_veil_memory_of(const aq_machine *m);
unsigned aq_veil_threads(const aq_veil_scene *s); /* of the whole machine */

/* An answer of the kernel's network (NETLINK_ROUTE), rewritten to `out`, which has room for twice
 * its length; returns the length there. What is no whole message is left out. */
size_t aq_veil_netlink(const uint8_t *in, size_t len, uint8_t *out);
