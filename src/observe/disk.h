/* The face of files: what a program is shown of them where it sees a machine that does not exist.
 *
 * Theory of operation. A world is made of pieces: a root in memory, writable places in memory, and
 * folders of the host, read-only. A program sees one disk instead (model/place.h), with the owners,
 * numbers and times that files have there. The kernel's answers are rewritten, or given in its
 * stead; what an object is called decides what it looks like, so every answer needs its name.
 *
 * Numbers. Inode numbers of the world's own file systems are counters of the kernel that nobody
 * else moves: they are the same again in each run, and only shifted. All others (the host's files,
 * pipes, sockets) get theirs when they are first seen.
 *
 * Times. The kernel stamps files with the host's clock, in steps of some milliseconds: which acts
 * fall into one step is chance, so no rule can translate its stamps. Every act that changes a file
 * is a call that stops here, so its virtual time is kept for each inode that was touched, as the
 * kernel would have stamped it. What nobody touched keeps the time that it was made with.
 *
 * For this room. All of it only where the plan has a machine: t->disk is NULL otherwise. */
#pragma once

#include <sys/stat.h>

#include "model/place.h"
#include "observe/decode.h"

typedef struct aq_number {
    uint64_t dev, ino; /* dev 0: the slot is free */
    int64_t since;     /* virtual time at which it was first seen */
    uint32_t order;
} aq_number;

/* Virtual times of one inode, in nanoseconds; AQ_TIME_OWN: as the file has it. */
typedef struct aq_stamp {
    uint64_t ino;
    int64_t read, written, changed, born;
    bool used, gone; /* gone: its last name was removed */
    bool held;       /* but somebody has it open still */
} aq_stamp;

static const int64_t AQ_TIME_OWN = INT64_MIN;

typedef struct aq_listing aq_listing;

struct aq_disk {
    uint64_t key[2];           /* of what looks random */
    uint64_t root, space;      /* devices: of the root in memory, of the writable places */
    uint32_t user;             /* whom these belong to, as we see it */
    bool looked;               /* these three are known */
    int64_t start, boot, made; /* of the program, the machine, its disk; real time in ns */
    aq_buf mounts;             /* where something is mounted, each with its NUL */
    uint64_t names;            /* grows when a name is made or removed */
    aq_number *number;         /* a table by dev and ino */
    uint32_t numbers, number_cap, others; /* others: of them, what is no file of the host */
    aq_stamp *stamp;                      /* a table by ino */
    uint32_t stamps, stamp_cap, hand;
    uint64_t late;       /* bytes that large files took since; face_large.c */
    bool full;           /* said so */
    aq_listing *listing; /* the last folder that was listed */
};

/* face_place.c */
void aq_disk_new(aq_tracer *t);
void aq_disk_free(aq_tracer *t);
/* Where an object lies, by its name. NULL: nowhere, it is a pipe, a socket, a memory file. */
const aq_place *aq_disk_place(const char *name);
/* The number to show for it. */
uint64_t aq_disk_inode(aq_tracer *t, const char *name, uint64_t dev, uint64_t ino);
/* The same for pipes, sockets and others that have no place. */
uint64_t aq_disk_anonymous(aq_tracer *t, uint64_t ino, int64_t *since);
/* Number of a namespace by its name, "net" or "net:[4026532185]", as the first ones of a machine
 * have it; 0: it is none. */
uint64_t aq_disk_namespace(const char *text);
uint64_t aq_disk_hash(const aq_disk *f, const void *data, size_t len);
bool aq_disk_in_space(aq_tracer *t, aq_task *k, uint64_t dev); /* a writable place of the world */
/* Is something mounted on this name in the folder, or on any where it is NULL? */
bool aq_disk_mounted(aq_tracer *t, const char *folder, const char *name);
bool aq_disk_in_root(aq_tracer *t, aq_task *k, uint64_t dev);
/* Something did not fit: says so once. */
void aq_disk_full(aq_tracer *t, aq_task *k, const char *what);

/* face_times.c */
int64_t aq_times_now(const aq_tracer *t);
/* Puts the times to show into `s`, which has the kernel's; `shown`: the number that it shows. */
void aq_times_show(aq_tracer *t, aq_task *k, const char *name, uint64_t shown, struct statx *s);
void aq_times_read(aq_tracer *t, aq_task *k, uint64_t ino); /* of a writable place */
/* We wrote to the file ourselves: it keeps the times that it had, which are all the same one.
 * False: it is empty. */
bool aq_times_keep(aq_tracer *t, aq_task *k, const char *name, int64_t written);
/* A call has ended well: keeps what it did to times and names. */
void aq_times_done(aq_tracer *t, aq_task *k, long result);
/* Before an open that may make a file: was it there? */
void aq_times_opening(aq_tracer *t, aq_task *k);

/* face_stat.c */
/* Makes the kernel's answer what the program is to see. `outside`: owners are as we see them. */
void aq_disk_show(aq_tracer *t, aq_task *k, const char *name, struct statx *s, bool outside);

/* What a link of /proc leads to, as it is shown. False: nobody may know. */
bool aq_disk_look(aq_tracer *t, aq_task *k, const char *link, struct statx *ret);

/* face_large.c */
/* Is it one that has no content yet? Then it takes as much of the disk as if. */
bool aq_large_hollow(const aq_tracer *t, const struct statx *s);

/* face_list.c */
void aq_listing_free(aq_listing *l);

/* face_link.c */
/* What a natural disk would have said instead. */
long aq_disk_result(const aq_task *k, long result);
