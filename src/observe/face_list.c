/* Listings of folders: numbers as stat shows them, and on the disk the order of a disk; disk.h.
 *
 * A folder in memory lists the newest first. On the machine's disk names stand in the order of a
 * hash; here it is one of the inode's number, which says when it was made: names may be decoys,
 * which differ between two worlds of a seed while the order must not. The host's folders hold no
 * decoys; there it is one of the name, so that the order is not the host's either.
 *
 * The whole folder is read through the task's own descriptor, sorted, and a part of it answered.
 * Where the task goes on is kept by the kernel, as the position of that descriptor: duplicates,
 * children, seekdir and rewinddir need nothing of us, and names that are made or removed meanwhile
 * move no others. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/syscalls.h"
#include "observe/disk.h"
#include "veil/actors.h"
#include "veil/devices.h"
#include "veil/kernel.h"
#include "veil/veil.h"

enum {
    CHUNK = 64 << 10,
    MOST = 64 << 20,  /* bytes of one folder; a larger one keeps its order */
    ANSWER = 1 << 20, /* bytes of one answer, ours or the kernel's */
    PROCESSES = 256,  /* where they begin in /proc */
    DEVICE_PATH = 320,
    ADDED_NAME = 160,
    ADDED = 1 << 20, /* numbers of what the host has not */
    NAME_64 = offsetof(struct dirent64, d_name),
    NAME_OLD = NAME_64 - 1, /* getdents has the type behind the name */
};
static const uint64_t end_at = UINT64_C(1) << 43; /* positions that every file system takes */

typedef struct entry {
    uint64_t at;    /* its position */
    uint64_t shown; /* its number */
    const char *name;
    uint16_t len;
    uint8_t type;
} entry;

struct aq_listing {
    uint64_t dev, ino, names; /* of the folder; disk->names when it was read */
    char *text;
    size_t text_len;
    entry *entries;
    size_t count;
    char added[4][ADDED_NAME]; /* names that the host has not */
    size_t added_count;
};

void aq_listing_free(aq_listing *l)
{
    if (!l)
        return;
    free(l->text);
    free(l->entries);
    free(l);
}

/* ---- numbers ---- */

static void full_name(char *ret, size_t cap, const char *folder, const char *name)
{
    const char *slash = strrchr(folder, '/');

    if (strcmp(name, ".") == 0)
        snprintf(ret, cap, "%s", folder);
    else if (strcmp(name, "..") == 0)
        snprintf(ret, cap, "%.*s", slash > folder ? (int)(slash - folder) : 1, folder);
    else
        snprintf(ret, cap, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
}

/* What is mounted on a name has another number than its folder says; an overlay says what it likes.
 */
static bool ask(aq_tracer *t, const char *path, const char *name, bool plain)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
           (!plain && aq_disk_mounted(t, path, name));
}

static uint64_t shown(aq_tracer *t, int fd, const struct stat *folder, const char *path,
                      const char *name, uint64_t ino, bool plain, bool overlay)
{
    char whole[2 * AQ_PATH];
    struct stat s;

    full_name(whole, sizeof whole, path, name);
    /* Its own folder shows what another file system covers. */
    if (strcmp(aq_place_of(whole)->path, whole) == 0 && strcmp(name, ".") != 0 &&
        strcmp(name, "..") != 0) {
        full_name(whole, sizeof whole, path, "covered");
        return aq_disk_inode(t, whole, (uint64_t)folder->st_dev, ino);
    }
    if ((!overlay && !ask(t, path, name, plain)) ||
        fstatat(fd, name, &s, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        return aq_disk_inode(t, whole, (uint64_t)folder->st_dev, ino);
    return aq_disk_inode(t, whole, (uint64_t)s.st_dev, (uint64_t)s.st_ino);
}

static bool is_overlay(int fd)
{
    struct statfs s;

    return fstatfs(fd, &s) == 0 && s.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* ---- reading a folder ---- */

static bool is_proc(const char *path)
{
    return strcmp(path, "/proc") == 0;
}

static int read_all(int fd, aq_listing *l)
{
    size_t cap = 0;
    long n;

    if (lseek(fd, 0, SEEK_SET) != 0)
        return -errno;
    for (;;) {
        if (cap - l->text_len < CHUNK) {
            cap = cap ? 2 * cap : 2 * CHUNK;
            if (cap > MOST)
                return -EFBIG;
            l->text = aq_realloc(l->text, cap, 1);
        }
        n = syscall(SYS_getdents64, fd, l->text + l->text_len, CHUNK);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        l->text_len += (size_t)n;
    }
}

static uint64_t position(const aq_disk *f, const struct stat *folder, const struct dirent64 *d,
                         uint32_t nth)
{
    bool own = (uint64_t)folder->st_dev == f->root || (uint64_t)folder->st_dev == f->space;
    uint64_t both[2] = {d->d_ino, nth}, h;

    if (strcmp(d->d_name, ".") == 0)
        return 0;
    if (strcmp(d->d_name, "..") == 0)
        return 1;
    h = own ? aq_disk_hash(f, both, sizeof both) : aq_disk_hash(f, d->d_name, strlen(d->d_name));
    return 2 + h % (end_at - (UINT64_C(1) << 32));
}

static int by_position(const void *x, const void *y)
{
    const entry *a = x, *b = y;

    return a->at < b->at ? -1 : a->at > b->at;
}

/* How many before it are the same inode: links of one file in one folder are rare, and mostly
 * neighbours. */
static uint32_t links_before(const uint64_t *inodes, size_t count, uint64_t ino)
{
    uint32_t nth = 0;

    for (size_t i = count; i > 0 && count - i < 64; i--)
        nth += inodes[i - 1] == ino;
    return nth;
}

/* /proc: first what tells of the machine, as the kernel has it, then processes by their numbers. */
static uint64_t proc_position(const char *name, size_t nth)
{
    size_t digits = strspn(name, "0123456789");

    return digits && !name[digits] ? PROCESSES + strtoull(name, NULL, 10) : nth;
}

/* The one of the carried files (face_actors.c) that stands here. */
static void add_modules(aq_tracer *t, aq_listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->entries[i].name, "modules") == 0)
            return;
    l->entries[l->count++] = (entry){.at = PROCESSES - 1,
                                     .shown = aq_disk_inode(t, "/proc/modules", 0, 0),
                                     .name = "modules",
                                     .len = 7,
                                     .type = DT_REG};
}

static void add_actors(aq_tracer *t, aq_listing *l)
{
    char path[32];

    l->entries = aq_realloc(l->entries, l->count + aq_veil_actor_count + 1, sizeof *l->entries);
    add_modules(t, l);
    for (size_t i = 0; i < aq_veil_actor_count; i++) {
        const aq_veil_actor *a = &aq_veil_actors[i];
        bool there = !aq_veil_actor_on(t->plan.machine, a);

        for (size_t k = 0; k < l->count && !there; k++)
            there = strcmp(l->entries[k].name, a->number) == 0;
        if (there)
            continue;
        snprintf(path, sizeof path, "/proc/%s", a->number);
        l->entries[l->count++] = (entry){.at = proc_position(a->number, 0),
                                         .shown = aq_disk_inode(t, path, 0, 0),
                                         .name = a->number,
                                         .len = (uint16_t)strlen(a->number),
                                         .type = DT_DIR};
    }
}

static const char *keep_name(aq_listing *l, const char *name)
{
    char *to = l->added[l->added_count++ % 4];

    snprintf(to, sizeof l->added[0], "%s", name);
    return to;
}

/* What the package of the machine's kernel left in folders of the host. */
static void add_kernel(aq_tracer *t, const char *folder, aq_listing *l)
{
    char path[DEVICE_PATH], room[ADDED_NAME];
    bool is_folder;
    const char *name;

    for (size_t n = 0;
         (name = aq_kernel_added(t->plan.machine, folder, n, &is_folder, room, sizeof room)); n++) {
        bool there = false;

        for (size_t i = 0; i < l->count && !there; i++)
            there = strcmp(l->entries[i].name, name) == 0;
        if (there || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
            continue;
        l->entries = aq_realloc(l->entries, l->count + 1, sizeof *l->entries);
        l->entries[l->count++] = (entry){
            .at = 2 + aq_disk_hash(t->disk, name, strlen(name)) % (end_at - (UINT64_C(1) << 32)),
            .shown = ADDED + aq_disk_hash(t->disk, path, strlen(path)) % ADDED,
            .name = room == name ? keep_name(l, name) : name,
            .len = (uint16_t)strlen(name),
            .type = is_folder ? DT_DIR : DT_REG};
    }
}

/* Devices are empty files; those of other machines are none at all. */
static bool below_dev(const char *folder, const char *name, char path[static DEVICE_PATH])
{
    return strncmp(folder, "/dev", 4) == 0 && (folder[4] == '/' || !folder[4]) &&
           snprintf(path, DEVICE_PATH, "%s/%s", folder, name) < DEVICE_PATH;
}

static bool is_proc_folder(const char *folder)
{
    return strncmp(folder, "/proc", 5) == 0 && (folder[5] == '/' || !folder[5]);
}

static bool is_hidden(const aq_tracer *t, const char *folder, const char *name)
{
    const char *lacks = aq_kernel_lacks(folder);
    char path[DEVICE_PATH];

    if (lacks && strcmp(name, lacks) == 0)
        return true;
    if (is_proc_folder(folder))
        return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
               aq_veil_of_host(path);
    return below_dev(folder, name, path) && aq_veil_no_device(t->plan.machine, path);
}

static unsigned char type_of(aq_tracer *t, const char *folder, const struct dirent64 *d)
{
    char path[DEVICE_PATH];
    aq_device device;

    if (!below_dev(folder, d->d_name, path))
        return d->d_type;
    if (d->d_type == DT_REG && aq_disk_mounted(t, folder, d->d_name))
        return DT_CHR; /* one of those that the host has, too */
    if (!aq_veil_device(t->plan.machine, path, &device))
        return d->d_type;
    return device.block ? DT_BLK : DT_CHR;
}

static void sort(aq_tracer *t, int fd, const struct stat *folder, const char *path, aq_listing *l)
{
    bool proc = is_proc(path);
    bool overlay = is_overlay(fd), plain = !aq_disk_mounted(t, path, NULL);
    size_t cap = 0;
    uint64_t *inodes = NULL;

    for (size_t at = 0; at + NAME_64 < l->text_len;) {
        const struct dirent64 *d = (const struct dirent64 *)(l->text + at);

        if (is_hidden(t, path, d->d_name)) {
            at += d->d_reclen;
            continue;
        }
        if (l->count == cap) {
            cap = cap ? 2 * cap : 64;
            l->entries = aq_realloc(l->entries, cap, sizeof *l->entries);
            inodes = aq_realloc(inodes, cap, sizeof *inodes);
        }
        inodes[l->count] = d->d_ino;
        l->entries[l->count] = (entry){
            .at = proc ? proc_position(d->d_name, l->count)
                       : position(t->disk, folder, d, links_before(inodes, l->count, d->d_ino)),
            .shown = shown(t, fd, folder, path, d->d_name, d->d_ino, plain, overlay),
            .name = d->d_name,
            .len = (uint16_t)strlen(d->d_name),
            .type = type_of(t, path, d)};
        l->count++;
        at += d->d_reclen;
    }
    free(inodes);
    if (proc && t->actors > 0)
        add_actors(t, l);
    add_kernel(t, path, l);
    if (l->count)
        qsort(l->entries, l->count, sizeof *l->entries, by_position);
    for (size_t i = 1; i < l->count; i++) /* a position is one entry's */
        if (l->entries[i].at <= l->entries[i - 1].at)
            l->entries[i].at = l->entries[i - 1].at + 1;
}

/* The folder's entries, now. NULL: the kernel is to answer. */
static const aq_listing *listing_of(aq_tracer *t, int fd, const char *path, bool anew)
{
    aq_disk *f = t->disk;
    aq_listing *l = f->listing;
    struct stat s;

    if (fstat(fd, &s) != 0)
        return NULL;
    if (l && l->dev == (uint64_t)s.st_dev && l->ino == (uint64_t)s.st_ino && l->names == f->names &&
        !anew)
        return l;
    aq_listing_free(l);
    f->listing = NULL;
    l = aq_alloc(sizeof *l);
    *l = (aq_listing){.dev = (uint64_t)s.st_dev, .ino = (uint64_t)s.st_ino, .names = f->names};
    if (read_all(fd, l) != 0) {
        aq_listing_free(l);
        return NULL;
    }
    sort(t, fd, &s, path, l);
    f->listing = l;
    return l;
}

/* ---- answering ---- */

static size_t record_len(const entry *e, bool old)
{
    size_t n = old ? NAME_OLD + e->len + 2u : NAME_64 + e->len + 1u;

    return (n + 7) & ~(size_t)7;
}

static void put_record(char *at, const entry *e, uint64_t next, bool old)
{
    size_t len = record_len(e, old);
    uint16_t reclen = (uint16_t)len;

    memset(at, 0, len);
    memcpy(at, &e->shown, 8);
    memcpy(at + 8, &next, 8);
    memcpy(at + 16, &reclen, 2);
    memcpy(at + (old ? NAME_OLD : NAME_64), e->name, e->len);
    at[old ? len - 1 : 18] = (char)e->type;
}

/* From position `from`; says where it goes on. Bytes, or a negative errno. */
static long fill(aq_task *k, const aq_listing *l, uint64_t from, uint64_t *next)
{
    bool old = k->nr == AQ_NR_getdents;
    size_t room = (uint32_t)aq_regs_arg(k, 2), len = 0, i = 0;
    char *buffer;
    long result;

    while (i < l->count && l->entries[i].at < from)
        i++;
    *next = from;
    if (i == l->count)
        return 0;
    if (record_len(&l->entries[i], old) > room)
        return -EINVAL;
    if (room > ANSWER)
        room = ANSWER;
    buffer = aq_alloc(room);
    for (; i < l->count && len + record_len(&l->entries[i], old) <= room; i++) {
        *next = i + 1 < l->count ? l->entries[i + 1].at : end_at;
        put_record(buffer + len, &l->entries[i], *next, old);
        len += record_len(&l->entries[i], old);
    }
    result = aq_tracee_put(k, aq_regs_arg(k, 1), buffer, len) ? (long)len : -EFAULT;
    free(buffer);
    return result;
}

/* The kernel answers, and no more at once than is looked at afterwards. */
static aq_step by_kernel(const aq_tracer *t, aq_task *k)
{
    if (t->disk && (uint32_t)aq_regs_arg(k, 2) > ANSWER)
        aq_regs_set_arg(k, 2, ANSWER);
    return AQ_STEP_RUN;
}

aq_step aq_try_list(aq_tracer *t, aq_task *k)
{
    const aq_fd *f = t->disk ? aq_fd_of(t, k, aq_arg_int(k, 0)) : NULL;
    const aq_place *p = f && f->kind == AQ_FD_DIR && f->name ? aq_disk_place(f->name) : NULL;
    aq_auto_fd int mine = -1;
    const aq_listing *l;
    uint64_t next;
    off_t from;
    long result;

    if (p && p->kind == AQ_PLACE_SYS)
        aq_resolve_hardware(t, f->name);
    if (!p || (p->kind != AQ_PLACE_DISK && p->kind != AQ_PLACE_DEVICES && !is_proc(f->name)))
        return by_kernel(t, k);
    aq_disk_in_space(t, k, f->dev); /* knows the devices from now on */
    mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    from = mine < 0 ? -1 : lseek(mine, 0, SEEK_CUR);
    if (from < 0)
        return by_kernel(t, k);
    /* Processes come and go without a name being made. */
    l = listing_of(t, mine, f->name, is_proc(f->name) && from == 0);
    result = l ? fill(k, l, (uint64_t)from, &next) : 0;
    if (!l || result < 0)
        lseek(mine, from, SEEK_SET);
    else
        lseek(mine, (off_t)next, SEEK_SET);
    if (!l)
        return by_kernel(t, k);
    if (result >= 0 && aq_disk_in_space(t, k, f->dev))
        aq_times_read(t, k, f->ino);
    return aq_answer(k, result);
}

/* ---- the kernel's answer ---- */

/* How much of it is left: what is not there goes. */
static size_t rewrite(aq_tracer *t, aq_task *k, const aq_fd *f, int fd, char *text, size_t len)
{
    size_t skip = k->nr == AQ_NR_getdents ? NAME_OLD : NAME_64, kept = 0;
    bool plain = !aq_disk_mounted(t, f->name, NULL);
    struct stat folder;

    if (fstat(fd, &folder) != 0)
        return len;
    for (size_t at = 0; at + skip < len;) {
        const char *number;
        uint64_t ino;
        uint16_t reclen;
        char *d = text + at;

        memcpy(&ino, d, 8);
        memcpy(&reclen, d + 16, 2);
        if (reclen <= skip || reclen > len - at || !memchr(d + skip, '\0', reclen - skip))
            return len;
        at += reclen;
        if (is_hidden(t, f->name, d + skip))
            continue;
        number = aq_actors_thread(f->name, d + skip);
        if (number && strlen(number) + (k->nr == AQ_NR_getdents ? 2 : 1) <= reclen - skip)
            memcpy(d + skip, number, strlen(number) + 1);
        ino = shown(t, fd, &folder, f->name, d + skip, ino, plain, false);
        memcpy(d, &ino, 8);
        memmove(text + kept, d, reclen);
        kept += reclen;
    }
    return kept;
}

aq_step aq_after_list(aq_tracer *t, aq_task *k, long *result)
{
    const aq_fd *f = t->disk && *result > 0 ? aq_fd_of(t, k, aq_arg_int(k, 0)) : NULL;
    aq_auto_fd int mine = -1;
    char *text;
    size_t len;

    if (!f || !f->name)
        return AQ_STEP_RUN;
    aq_disk_in_space(t, k, f->dev);
    mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    len = (size_t)*result;
    text = aq_alloc(len);
    if (mine >= 0 && aq_tracee_get(k, aq_regs_arg(k, 1), text, len))
        *result = (long)rewrite(t, k, f, mine, text, len);
    else /* it is not shown as it is */
        *result = -ENOMEM;
    aq_tracee_put(k, aq_regs_arg(k, 1), text, len);
    free(text);
    if (aq_disk_in_space(t, k, f->dev))
        aq_times_read(t, k, f->ino);
    return AQ_STEP_RUN;
}
