/* The times of files, as the virtual clock has them; see disk.h for why they are kept and not
 * translated. Only inodes of the writable places can change, and those numbers are never given
 * twice. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "kernel/process.h"
#include "kernel/syscalls.h"
#include "observe/disk.h"
#include "veil/dates.h"

enum {
    STAMPS = 1 << 17, /* more than a world may have files; the rest is for files that are gone */
    MANY = 1 << 12,   /* slots, from which on it is worth the while to look what is gone */
};
static const int64_t second = 1000000000, minute = 60 * second, day = 86400 * second;

int64_t aq_times_now(const aq_tracer *t)
{
    return (int64_t)aq_clock_now(t, CLOCK_REALTIME);
}

/* ---- the table ---- */

static aq_stamp *slot_of(aq_stamp *table, uint32_t cap, uint64_t ino)
{
    uint64_t h = ino * 0x9e3779b97f4a7c15;

    for (uint32_t i = (uint32_t)(h >> 32) & (cap - 1);; i = (i + 1) & (cap - 1))
        if (!table[i].used || table[i].ino == ino)
            return &table[i];
}

/* Copies what is still of use; with `drop` nothing that is gone for good. */
static void rebuild(aq_disk *f, uint32_t cap, bool drop)
{
    aq_stamp *more = aq_alloc(cap * sizeof *more);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < f->stamp_cap; i++)
        if (f->stamp[i].used && !(drop && f->stamp[i].gone && !f->stamp[i].held)) {
            f->stamp[i].held = false;
            *slot_of(more, cap, f->stamp[i].ino) = f->stamp[i];
            kept++;
        }
    free(f->stamp);
    f->stamp = more;
    f->stamp_cap = cap;
    f->stamps = kept;
}

static aq_stamp *find(const aq_disk *f, uint64_t ino)
{
    aq_stamp *s = f->stamp_cap ? slot_of(f->stamp, f->stamp_cap, ino) : NULL;

    return s && s->used ? s : NULL;
}

/* Marks what this task has open. */
static void hold_open(aq_tracer *t, aq_task *k)
{
    char path[64];
    struct dirent *e;
    struct stat s;
    DIR *d;

    snprintf(path, sizeof path, "%s/%d/fd", aq_process_proc(), k->tid);
    d = opendir(path);
    while (d && (e = readdir(d)) != NULL)
        if (fstatat(dirfd(d), e->d_name, &s, 0) == 0 &&
            aq_disk_in_space(t, k, (uint64_t)s.st_dev)) {
            aq_stamp *one = find(t->disk, (uint64_t)s.st_ino);

            if (one)
                one->held = true;
        }
    if (d)
        closedir(d);
}

/* For one more. A program that makes and removes files for ever must not cost us more and more:
 * what has no name, and is open nowhere, nobody can ask about. */
static void make_room(aq_tracer *t)
{
    aq_disk *f = t->disk;

    if (f->stamps * 2 < f->stamp_cap)
        return;
    if (f->stamp_cap >= MANY) {
        for (aq_task *k = t->tasks; k; k = k->next)
            if (k->tid == k->proc->pid || k->proc->split)
                hold_open(t, k);
        rebuild(f, f->stamp_cap, true);
    }
    if (f->stamps * 4 >= f->stamp_cap && f->stamp_cap < 2 * STAMPS)
        rebuild(f, f->stamp_cap ? 2 * f->stamp_cap : 256, false);
}

/* NULL: no more fit. */
static aq_stamp *stamp_of(aq_tracer *t, aq_task *k, uint64_t ino)
{
    aq_disk *f = t->disk;
    aq_stamp *s = find(f, ino);

    if (s)
        return s;
    make_room(t);
    if (f->stamps >= STAMPS) {
        aq_disk_full(t, k, "times of files");
        return NULL;
    }
    s = slot_of(f->stamp, f->stamp_cap, ino);
    *s = (aq_stamp){.ino = ino,
                    .used = true,
                    .read = AQ_TIME_OWN,
                    .written = AQ_TIME_OWN,
                    .changed = AQ_TIME_OWN,
                    .born = AQ_TIME_OWN};
    f->stamps++;
    return s;
}

typedef enum act { MADE, WRITTEN, CHANGED } act;

static void touch(aq_tracer *t, aq_task *k, uint64_t ino, act what)
{
    aq_stamp *s = stamp_of(t, k, ino);
    int64_t now = aq_times_now(t);

    if (!s)
        return;
    s->gone = false;
    s->changed = now;
    if (what != CHANGED)
        s->written = now;
    if (what == MADE)
        s->read = s->born = now;
}

/* As with the option relatime: the first time after a change, and once a day. */
void aq_times_read(aq_tracer *t, aq_task *k, uint64_t ino)
{
    aq_stamp *s = stamp_of(t, k, ino);
    int64_t now = aq_times_now(t);

    if (s && (s->read <= s->written || s->read <= s->changed || s->read + day <= now))
        s->read = now;
}

/* ---- what is shown ---- */

/* Times after the start of the world cannot be: they come into the minute before it, in their
 * order, however late they are. */
static int64_t no_later(const aq_disk *f, int64_t at)
{
    int64_t from = f->start - minute, over;

    if (at <= from)
        return at;
    over = at - from;
    return from + (int64_t)((__int128)minute * over / ((__int128)over + day));
}

static int64_t ns_of(const struct statx_timestamp *s)
{
    return s->tv_sec > INT64_MAX / second - 1 || s->tv_sec < INT64_MIN / second + 1
               ? 0
               : s->tv_sec * second + s->tv_nsec;
}

static void put(struct statx_timestamp *s, int64_t ns)
{
    s->tv_sec = ns / second;
    s->tv_nsec = (uint32_t)(ns % second);
    if (ns % second < 0) {
        s->tv_sec--;
        s->tv_nsec = (uint32_t)(ns % second + second);
    }
}

static void put_all(struct statx *s, int64_t ns)
{
    put(&s->stx_atime, ns);
    put(&s->stx_mtime, ns);
    put(&s->stx_ctime, ns);
    put(&s->stx_btime, ns);
}

/* Days of files that every machine has are this machine's (veil/dates.h). */
static int64_t moved(const aq_machine *m, int64_t ns)
{
    return ns < 0 ? ns : aq_veil_moved(m, ns / second) * second + ns % second;
}

/* A file of the host: unpacked when the disk was made, or later when it is newer; read since the
 * machine is up. */
static void show_host(const aq_disk *f, const aq_machine *m, const aq_place *p, uint64_t shown,
                      struct statx *s)
{
    uint64_t h = aq_disk_hash(f, &shown, sizeof shown);
    int64_t written = no_later(f, moved(m, ns_of(&s->stx_mtime)));
    int64_t unpacked = f->made + (int64_t)(h % (uint64_t)(20 * minute));

    if (p->kind != AQ_PLACE_DISK) { /* made anew by every start of the machine */
        put_all(s, f->boot + (int64_t)(h % (uint64_t)(12 * second)));
        return;
    }
    put_all(s, written > unpacked ? written : unpacked);
    put(&s->stx_mtime, written);
    put(&s->stx_atime, f->boot + (int64_t)((h >> 20) % (uint64_t)(f->start - f->boot - minute)));
}

/* Made with the world: files of the plan have their time, the rest is as old as its place. What was
 * never given a time is not older than its inode. */
static void show_made(const aq_disk *f, const aq_place *p, uint64_t shown, struct statx *s)
{
    uint64_t h = aq_disk_hash(f, &shown, sizeof shown);
    int64_t written = ns_of(&s->stx_mtime);
    int64_t born = s->stx_mask & STATX_BTIME ? ns_of(&s->stx_btime) : ns_of(&s->stx_ctime) - second;

    if (written > f->start && written >= born)
        put_all(s, p->kind == AQ_PLACE_DISK ? f->made + (int64_t)(h % (uint64_t)(20 * minute))
                                            : f->boot + (int64_t)(h % (uint64_t)(4 * second)));
    else
        put_all(s, no_later(f, written));
}

static void show_touched(const aq_stamp *t, struct statx *s)
{
    if (t->read != AQ_TIME_OWN)
        put(&s->stx_atime, t->read);
    if (t->written != AQ_TIME_OWN)
        put(&s->stx_mtime, t->written);
    if (t->changed != AQ_TIME_OWN)
        put(&s->stx_ctime, t->changed);
    if (t->born != AQ_TIME_OWN)
        put(&s->stx_btime, t->born);
}

void aq_times_show(aq_tracer *t, aq_task *k, const char *name, uint64_t shown, struct statx *s)
{
    uint64_t dev = makedev(s->stx_dev_major, s->stx_dev_minor);
    const aq_place *p = aq_disk_place(name);
    const aq_stamp *touched;
    int64_t since;

    if (!p) {
        aq_disk_anonymous(t, s->stx_ino, &since);
        put_all(s, since);
        return;
    }
    if (p->kind == AQ_PLACE_PROC && name[5] && name[6] >= '0' && name[6] <= '9') {
        put_all(s, t->disk->start);
        return;
    }
    if (p->kind == AQ_PLACE_TERMINALS && name[8]) {
        put_all(s, aq_times_now(t));
        return;
    }
    if (p->kind != AQ_PLACE_DISK && p->kind != AQ_PLACE_MEMORY) {
        put_all(s, t->disk->boot);
        return;
    }
    if (!aq_disk_in_space(t, k, dev) && !aq_disk_in_root(t, k, dev)) {
        show_host(t->disk, t->plan.machine, p, shown, s);
        return;
    }
    touched = aq_disk_in_space(t, k, dev) ? find(t->disk, s->stx_ino) : NULL;
    show_made(t->disk, p, shown, s);
    if (touched)
        show_touched(touched, s);
}

/* ---- what calls do ---- */

/* The inode that a resolved name has in a writable place; false: none. */
static bool inode_of(aq_tracer *t, aq_task *k, const char *name, struct stat *s)
{
    return name[0] == '/' && name[1] &&
           fstatat(aq_resolve_root(t, k), name + 1, s, AT_SYMLINK_NOFOLLOW) == 0 &&
           aq_disk_in_space(t, k, (uint64_t)s->st_dev);
}

bool aq_times_keep(aq_tracer *t, aq_task *k, const char *name, int64_t written)
{
    struct stat at;
    aq_stamp *s = inode_of(t, k, name, &at) ? stamp_of(t, k, (uint64_t)at.st_ino) : NULL;

    if (!s || at.st_size == 0)
        return false;
    for (int64_t **each = (int64_t *[]){&s->read, &s->written, &s->changed, &s->born, NULL}; *each;
         each++)
        if (**each == AQ_TIME_OWN)
            **each = written;
    return true;
}

static void touch_name(aq_tracer *t, aq_task *k, const char *name, act what)
{
    struct stat s;

    if (inode_of(t, k, name, &s))
        touch(t, k, (uint64_t)s.st_ino, what);
}

/* The folder of a name lost it or got it. */
static void touch_folder(aq_tracer *t, aq_task *k, const char *name)
{
    char folder[2 * AQ_PATH];
    const char *slash = strrchr(name, '/');

    t->disk->names++;
    if (!slash || slash == name)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - name), name);
    touch_name(t, k, folder, WRITTEN);
}

static void touch_fd(aq_tracer *t, aq_task *k, int fd, act what)
{
    const aq_fd *f = aq_fd_of(t, k, fd);

    if ((f->kind == AQ_FD_FILE || f->kind == AQ_FD_DIR) && aq_disk_in_space(t, k, f->dev))
        touch(t, k, f->ino, what);
}

static void read_fd(aq_tracer *t, aq_task *k, int fd)
{
    const aq_fd *f = aq_fd_of(t, k, fd);

    if (f->kind == AQ_FD_FILE && aq_disk_in_space(t, k, f->dev))
        aq_times_read(t, k, f->ino);
}

void aq_times_opening(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    uint64_t flags = l->number[0]; /* aq_look_open */
    aq_auto_fd int fd = -1;

    l->existed = !(flags & O_CREAT);
    if (l->existed || (flags & O_EXCL) || !l->path_read)
        return;
    fd = aq_resolve_handle(t, k, l->dir, l->path, !(flags & O_NOFOLLOW));
    l->existed = fd >= 0;
}

static void opened(aq_tracer *t, aq_task *k, int fd)
{
    aq_look *l = aq_look_of(k);
    uint64_t flags = l->number[0];

    if ((flags & O_TMPFILE) == O_TMPFILE) {
        touch_fd(t, k, fd, MADE);
    } else if (!l->existed) {
        const aq_fd *f = aq_fd_of(t, k, fd);

        touch_fd(t, k, fd, MADE);
        if (f->name)
            touch_folder(t, k, f->name);
    } else if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY) {
        touch_fd(t, k, fd, WRITTEN);
    }
}

/* A name goes; when it is the last one of its inode nobody will ask for it by name again. */
aq_step aq_try_remove(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    const char *name = l->other_len ? l->other_name : l->name;
    struct stat s;

    if (t->disk) {
        l->number[0] = inode_of(t, k, name, &s) ? (uint64_t)s.st_ino : 0;
        l->number[1] = l->number[0] && (S_ISDIR(s.st_mode) || s.st_nlink == 1);
    }
    return AQ_STEP_RUN;
}

static void removed(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    aq_stamp *s;

    if (!l->number[0])
        return;
    touch(t, k, l->number[0], CHANGED);
    s = find(t->disk, l->number[0]);
    if (s && l->number[1])
        s->gone = true;
}

static void renamed(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    bool exchange = k->nr == AQ_NR_renameat2 && (aq_regs_arg(k, 4) & RENAME_EXCHANGE);

    removed(t, k);
    touch_folder(t, k, l->name);
    touch_folder(t, k, l->other_name);
    touch_name(t, k, l->other_name, CHANGED); /* also where it was no removal after all */
    if (exchange)
        touch_name(t, k, l->name, CHANGED);
}

/* ---- times that a program sets ---- */

/* Reads the two times that it gives: before the call, when they are still what it will use. */
aq_step aq_try_times(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    uint64_t at = aq_regs_arg(k, k->nr == AQ_NR_utimensat || k->nr == AQ_NR_futimesat ? 2 : 1);
    int64_t v[4] = {0};
    size_t size = k->nr == AQ_NR_utime ? 2 * sizeof *v : sizeof v;

    if (!t->disk)
        return AQ_STEP_RUN;
    l->bytes_len = at && aq_tracee_get(k, at, v, size) ? size : 0;
    if (k->nr == AQ_NR_utime) {
        v[2] = v[1];
        v[1] = v[3] = 0;
    } else if (k->nr != AQ_NR_utimensat) {
        v[1] *= 1000;
        v[3] *= 1000;
    }
    memcpy(l->bytes, v, sizeof v);
    return AQ_STEP_RUN;
}

static int64_t chosen(const aq_tracer *t, const aq_look *l, int which, int64_t before, bool plain)
{
    int64_t v[4];

    if (!l->bytes_len)
        return aq_times_now(t);
    memcpy(v, l->bytes, sizeof v);
    if (!plain && v[2 * which + 1] == UTIME_NOW)
        return aq_times_now(t);
    if (!plain && v[2 * which + 1] == UTIME_OMIT)
        return before;
    if (v[2 * which] > INT64_MAX / second - 1 || v[2 * which] < INT64_MIN / second + 1)
        return t->disk->start;
    return v[2 * which] * second + v[2 * which + 1];
}

static void set_times(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    bool plain = k->nr != AQ_NR_utimensat;
    struct stat st;
    aq_stamp *s = inode_of(t, k, l->name, &st) ? stamp_of(t, k, (uint64_t)st.st_ino) : NULL;

    if (!s)
        return;
    s->read = chosen(t, l, 0, s->read, plain);
    s->written = chosen(t, l, 1, s->written, plain);
    s->changed = aq_times_now(t);
}

/* ---- what is no file and has times all the same ---- */

enum { IPC_BYTES = 48, IPC_COMMAND = 0xff, IPC_FIELDS = 4 };

static bool asks(long nr, int command)
{
    switch (nr) { /* other commands of one have the numbers of another's */
    case AQ_NR_shmctl:
        return command == IPC_STAT || command == SHM_STAT || command == SHM_STAT_ANY;
    case AQ_NR_semctl:
        return command == IPC_STAT || command == SEM_STAT || command == SEM_STAT_ANY;
    default:
        return command == IPC_STAT || command == MSG_STAT || command == MSG_STAT_ANY;
    }
}

/* Memory, semaphores and messages of System V: when something was last done with them. The host's
 * clock was asked for that; what happened at all happened just now. */
aq_step aq_after_ipc_times(aq_tracer *t, aq_task *k, long *result)
{
    int command = aq_arg_int(k, k->nr == AQ_NR_semctl ? 2 : 1) & IPC_COMMAND;
    uint64_t at = aq_regs_arg(k, k->nr == AQ_NR_semctl ? 3 : 2) + IPC_BYTES;
    int64_t field[IPC_FIELDS], now = aq_times_now(t) / second;

    if (!t->disk || *result < 0 || !asks(k->nr, command) ||
        !aq_tracee_get(k, at, field, sizeof field))
        return AQ_STEP_RUN;
    for (int i = 0; i < IPC_FIELDS; i++) {
        bool time = k->nr == AQ_NR_shmctl ? i > 0 : k->nr == AQ_NR_semctl ? i % 2 == 0 : i < 3;

        if (time && field[i])
            field[i] = now;
    }
    aq_tracee_put(k, at, field, sizeof field);
    return AQ_STEP_RUN;
}

/* ---- all of them ---- */

static bool maps_for_writing(const aq_task *k)
{
    return !(aq_regs_arg(k, 3) & MAP_ANONYMOUS) && (aq_regs_arg(k, 2) & PROT_WRITE) &&
           (aq_regs_arg(k, 3) & (MAP_SHARED | MAP_PRIVATE)) != MAP_PRIVATE;
}

static void names_done(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);

    switch (k->nr) {
    case AQ_NR_mkdir:
    case AQ_NR_mkdirat:
    case AQ_NR_mknod:
    case AQ_NR_mknodat:
    case AQ_NR_symlink:
    case AQ_NR_symlinkat:
        touch_name(t, k, l->name, MADE);
        touch_folder(t, k, l->name);
        break;
    case AQ_NR_bind: /* a socket in a folder */
        if (strncmp(l->name, "unix:/", 6) == 0) {
            touch_name(t, k, l->name + 5, MADE);
            touch_folder(t, k, l->name + 5);
        }
        break;
    case AQ_NR_link:
    case AQ_NR_linkat:
        touch_name(t, k, l->other_name, CHANGED);
        touch_folder(t, k, l->other_name);
        break;
    case AQ_NR_unlink:
    case AQ_NR_unlinkat:
    case AQ_NR_rmdir:
        removed(t, k);
        touch_folder(t, k, l->name);
        break;
    case AQ_NR_rename:
    case AQ_NR_renameat:
    case AQ_NR_renameat2:
        renamed(t, k);
        break;
    default:
        break;
    }
}

static void contents_done(aq_tracer *t, aq_task *k, long result)
{
    switch (k->nr) {
    case AQ_NR_truncate:
        touch_name(t, k, aq_look_of(k)->name, WRITTEN);
        break;
    case AQ_NR_ftruncate:
    case AQ_NR_fallocate:
        touch_fd(t, k, aq_arg_int(k, 0), WRITTEN);
        break;
    case AQ_NR_sendfile:
    case AQ_NR_write:
    case AQ_NR_pwrite64:
    case AQ_NR_writev:
    case AQ_NR_pwritev:
    case AQ_NR_pwritev2:
        if (result > 0)
            touch_fd(t, k, aq_arg_int(k, 0), WRITTEN);
        if (result > 0 && k->nr == AQ_NR_sendfile)
            read_fd(t, k, aq_arg_int(k, 1));
        break;
    case AQ_NR_splice:
    case AQ_NR_copy_file_range:
        if (result > 0) {
            read_fd(t, k, aq_arg_int(k, 0));
            touch_fd(t, k, aq_arg_int(k, 2), WRITTEN);
        }
        break;
    case AQ_NR_mmap:
        if (maps_for_writing(k))
            touch_fd(t, k, aq_arg_int(k, 4), WRITTEN);
        break;
    default:
        break;
    }
}

static void marks_done(aq_tracer *t, aq_task *k)
{
    switch (k->nr) {
    case AQ_NR_chmod:
    case AQ_NR_fchmodat:
    case AQ_NR_fchmodat2:
    case AQ_NR_chown:
    case AQ_NR_lchown:
    case AQ_NR_fchownat:
    case AQ_NR_setxattr:
    case AQ_NR_lsetxattr:
    case AQ_NR_setxattrat:
    case AQ_NR_removexattr:
    case AQ_NR_lremovexattr:
    case AQ_NR_removexattrat:
        touch_name(t, k, aq_look_of(k)->name, CHANGED);
        break;
    case AQ_NR_fchmod:
    case AQ_NR_fchown:
    case AQ_NR_fsetxattr:
    case AQ_NR_fremovexattr:
        touch_fd(t, k, aq_arg_int(k, 0), CHANGED);
        break;
    case AQ_NR_utime:
    case AQ_NR_utimes:
    case AQ_NR_futimesat:
    case AQ_NR_utimensat:
        set_times(t, k);
        break;
    default:
        break;
    }
}

void aq_times_done(aq_tracer *t, aq_task *k, long result)
{
    switch (k->nr) {
    case AQ_NR_read:
    case AQ_NR_pread64:
    case AQ_NR_readv:
    case AQ_NR_preadv:
    case AQ_NR_preadv2:
        if (result > 0)
            read_fd(t, k, aq_arg_int(k, 0));
        return;
    case AQ_NR_open:
    case AQ_NR_creat:
    case AQ_NR_openat:
    case AQ_NR_openat2:
        opened(t, k, (int)result);
        return;
    default:
        contents_done(t, k, result);
        names_done(t, k);
        marks_done(t, k);
    }
}
