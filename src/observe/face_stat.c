/* stat and its relatives, statfs: the kernel's answer as the machine's disk would give it; disk.h.
 *
 * A path that the task may reach is looked at while it is named for the record (resolve.c), with
 * the same rights; then the call need not run at all. Whatever is not plain is left to the kernel,
 * and its answer is rewritten at the exit. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "kernel/syscalls.h"
#include "observe/disk.h"
#include "veil/devices.h"
#include "veil/kernel.h"
#include "veil/veil.h"

enum {
    USER = 1000,    /* inside */
    TTY_GROUP = 5,  /* of terminals */
    NOBODY = 65534, /* whoever has no number in the world's user namespace */
    BLOCK = 4096,   /* of the disk */
    SECTOR = 512,
    ENTRY = 20,         /* bytes that a folder in memory counts for a name */
    DEVICE_NAMES = 155, /* in /dev */
    PER_BLOCK = 110,    /* names in a block of a folder on a disk, about */
    FAST_LINK = 60,     /* a shorter link is in its inode */
    PROC_LINKS = 231,   /* of /proc: the kernel counts all processes of the host */
    DISK_MASK = STATX_ATTR_COMPRESSED | STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND |
                STATX_ATTR_NODUMP | STATX_ATTR_ENCRYPTED | STATX_ATTR_AUTOMOUNT |
                STATX_ATTR_MOUNT_ROOT | STATX_ATTR_VERITY | STATX_ATTR_DAX,
};

/* ---- one answer ---- */

static bool below(const char *name, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(name, folder, n) == 0 && (name[n] == '/' || name[n] == '\0');
}

/* Folders of the system; a file of the host elsewhere is one that the user shares. */
static bool of_system(const char *name)
{
    static const char *const roots[] = {"/usr",   "/etc",   "/bin",    "/sbin", "/lib",
                                        "/lib32", "/lib64", "/opt",    "/srv",  "/boot",
                                        "/root",  "/var",   "/libx32", "/run"};

    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
        if (below(name, roots[i]))
            return true;
    return strcmp(name, "/") == 0;
}

static bool is_public(const char *name)
{
    return strcmp(name, "/tmp") == 0 || strcmp(name, "/var/tmp") == 0 ||
           strcmp(name, "/dev/shm") == 0;
}

static void show_owner(aq_tracer *t, aq_task *k, const aq_place *p, const char *name,
                       struct statx *s, bool outside)
{
    uint64_t dev = makedev(s->stx_dev_major, s->stx_dev_minor);
    bool user = outside ? s->stx_uid == t->disk->user : s->stx_uid == USER;
    uint32_t uid, gid;

    if (!p)
        user = true;
    else if (p->kind == AQ_PLACE_SYS || p->kind == AQ_PLACE_DEVICES)
        user = false;
    else if (aq_disk_in_space(t, k, dev))
        user = !is_public(name) &&
               (!of_system(name) || below(name, "/var/tmp") || below(name, "/run/user"));
    else if (aq_disk_in_root(t, k, dev))
        user = false;
    else if (p->kind == AQ_PLACE_DISK || p->kind == AQ_PLACE_MEMORY)
        user = !of_system(name);
    if (p && p->kind == AQ_PLACE_TERMINALS && strcmp(name, "/dev/pts/ptmx") == 0)
        user = false;
    s->stx_uid = s->stx_gid = user ? USER : 0;
    if (p && p->kind == AQ_PLACE_PROC && t->actors > 0 && aq_actors_owner(name, &uid, &gid)) {
        s->stx_uid = uid;
        s->stx_gid = gid;
    }
    if (p && p->kind == AQ_PLACE_TERMINALS && user)
        s->stx_gid = TTY_GROUP;
    if (p && p->kind == AQ_PLACE_DEVICES && strcmp(name, "/dev/tty") == 0)
        s->stx_gid = TTY_GROUP;
}

/* What memory counts otherwise than a disk. */
static void show_size(aq_tracer *t, aq_task *k, const aq_place *p, struct statx *s)
{
    uint64_t dev = makedev(s->stx_dev_major, s->stx_dev_minor), names;
    bool memory = aq_disk_in_space(t, k, dev) || aq_disk_in_root(t, k, dev);

    if (p->kind == AQ_PLACE_MEMORY && !memory && S_ISDIR(s->stx_mode)) {
        s->stx_size = ENTRY * (uint64_t)s->stx_nlink; /* as many names as it has folders */
        s->stx_blocks = 0;
    }
    if (p->kind == AQ_PLACE_DISK && S_ISREG(s->stx_mode) && !memory &&
        s->stx_blocks < s->stx_size / SECTOR) /* it may have holes on the host's */
        s->stx_blocks = (s->stx_size + BLOCK - 1) / BLOCK * (BLOCK / SECTOR);
    if (p->kind != AQ_PLACE_DISK || !memory)
        return;
    if (S_ISDIR(s->stx_mode)) {
        names = s->stx_size / ENTRY;
        s->stx_size = BLOCK * (1 + names / PER_BLOCK);
        s->stx_blocks = s->stx_size / SECTOR;
    } else if (S_ISLNK(s->stx_mode)) {
        s->stx_blocks = s->stx_size < FAST_LINK ? 0 : BLOCK / SECTOR;
    } else if (aq_large_hollow(t, s)) {
        s->stx_blocks = (s->stx_size + BLOCK - 1) / BLOCK * (BLOCK / SECTOR);
    }
}

/* File systems that are mounted nowhere. */
static void show_nowhere(const char *name, struct statx *s)
{
    uint32_t minor = 14, id = 14;

    if (aq_disk_namespace(name))
        minor = 4, id = 4;
    else if (S_ISFIFO(s->stx_mode))
        minor = 13, id = 13;
    else if (S_ISSOCK(s->stx_mode))
        minor = 8, id = 9;
    else if (S_ISREG(s->stx_mode))
        minor = 1, id = 1;
    s->stx_dev_major = 0;
    s->stx_dev_minor = minor;
    s->stx_mnt_id = id;
}

/* Files there have no size of their own; what only root may read is so by its mode, also where a
 * world has no root to give it to. */
static void show_hardware(const aq_place *p, struct statx *s)
{
    bool file = S_ISREG(s->stx_mode);

    s->stx_size = file && strcmp(p->type, "sysfs") == 0 ? 4096 : 0;
    s->stx_blocks = 0;
    if ((s->stx_mode & 0777) == 0)
        s->stx_mode |= file ? 0400 : 0700;
}

/* An empty file that stands for a device. */
static void show_device(const aq_tracer *t, const char *name, struct statx *s)
{
    aq_device device;

    if (S_ISDIR(s->stx_mode)) { /* it is in memory */
        s->stx_size =
            ENTRY * (strcmp(name, "/dev") == 0 ? DEVICE_NAMES : 2 + (uint64_t)s->stx_nlink);
        s->stx_blocks = 0;
    }
    if (!S_ISREG(s->stx_mode) || !aq_veil_device(t->plan.machine, name, &device))
        return;
    s->stx_mode = (uint16_t)((device.block ? S_IFBLK : S_IFCHR) | device.mode);
    s->stx_gid = device.group;
    s->stx_rdev_major = device.major;
    s->stx_rdev_minor = device.minor;
}

void aq_disk_show(aq_tracer *t, aq_task *k, const char *name, struct statx *s, bool outside)
{
    const aq_place *p = aq_disk_place(name);
    uint64_t dev = makedev(s->stx_dev_major, s->stx_dev_minor);
    uint64_t shown;

    aq_disk_in_space(t, k, dev); /* knows the devices from now on */
    shown = aq_disk_inode(t, name, dev, s->stx_ino);
    aq_times_show(t, k, name, shown, s);
    show_owner(t, k, p, name, s, outside);
    if (p)
        show_size(t, k, p, s);
    if (strcmp(name, "/proc") == 0)
        s->stx_nlink = PROC_LINKS;
    else if (aq_kernel_lacks(name) && s->stx_nlink > 2)
        s->stx_nlink--;
    if (p && p->kind == AQ_PLACE_PROC && S_ISDIR(s->stx_mode))
        s->stx_size = 0; /* younger kernels count descriptors there */
    if (p && p->kind == AQ_PLACE_SYS)
        show_hardware(p, s);
    if (p && p->kind == AQ_PLACE_DEVICES)
        show_device(t, name, s);
    if (p && p->kind == AQ_PLACE_DISK && S_ISREG(s->stx_mode) && s->stx_size > 0)
        s->stx_size += aq_kernel_adds(t->plan.machine, name);
    s->stx_ino = shown;
    s->stx_attributes = 0;
    s->stx_attributes_mask = STATX_ATTR_AUTOMOUNT | STATX_ATTR_MOUNT_ROOT | STATX_ATTR_DAX;
    s->stx_mask = STATX_BASIC_STATS | STATX_MNT_ID;
    if (!p) {
        show_nowhere(name, s);
        return;
    }
    s->stx_dev_major = p->major;
    s->stx_dev_minor = p->minor;
    s->stx_mnt_id = p->id;
    if (strcmp(name, p->path) == 0)
        s->stx_attributes |= STATX_ATTR_MOUNT_ROOT;
    if (p->kind == AQ_PLACE_DISK)
        s->stx_attributes_mask = DISK_MASK;
    if (p->kind == AQ_PLACE_DISK || p->kind == AQ_PLACE_MEMORY || p->kind == AQ_PLACE_DEVICES)
        s->stx_mask |= STATX_BTIME;
}

bool aq_disk_look(aq_tracer *t, aq_task *k, const char *link, struct statx *ret)
{
    char name[AQ_PATH + 32];
    int root = aq_resolve_root(t, k);
    ssize_t n = readlinkat(root, link + 1, name, sizeof name - 1);

    if (n <= 0 || statx(root, link + 1, 0, STATX_BASIC_STATS | STATX_BTIME, ret) != 0)
        return false;
    name[n] = '\0';
    aq_resolve_plain(t, name);
    aq_disk_show(t, k, name, ret, true);
    return true;
}

/* ---- to and from the task ---- */

static uint64_t answer_at(const aq_task *k)
{
    switch (k->nr) {
    case AQ_NR_statx:
        return aq_regs_arg(k, 4);
    case AQ_NR_newfstatat:
        return aq_regs_arg(k, 2);
    default:
        return aq_regs_arg(k, 1);
    }
}

static struct timespec time_of(const struct statx_timestamp *s)
{
    return (struct timespec){.tv_sec = s->tv_sec, .tv_nsec = s->tv_nsec};
}

static struct statx_timestamp stamp_of(const struct timespec *s)
{
    return (struct statx_timestamp){.tv_sec = s->tv_sec, .tv_nsec = (uint32_t)s->tv_nsec};
}

static bool put_old(const aq_task *k, const struct statx *s)
{
    struct stat o = {
        .st_dev = makedev(s->stx_dev_major, s->stx_dev_minor),
        .st_ino = s->stx_ino,
        .st_nlink = s->stx_nlink,
        .st_mode = s->stx_mode,
        .st_uid = s->stx_uid,
        .st_gid = s->stx_gid,
        .st_rdev = makedev(s->stx_rdev_major, s->stx_rdev_minor),
        .st_size = (off_t)s->stx_size,
        .st_blksize = (blksize_t)s->stx_blksize,
        .st_blocks = (blkcnt_t)s->stx_blocks,
        .st_atim = time_of(&s->stx_atime),
        .st_mtim = time_of(&s->stx_mtime),
        .st_ctim = time_of(&s->stx_ctime),
    };

    return aq_tracee_put(k, answer_at(k), &o, sizeof o);
}

static bool put_new(const aq_task *k, const struct statx *s)
{
    struct statx n = *s;

    /* As the machine's kernel: birth only for those who ask, and nothing that is younger. */
    if (!(aq_regs_arg(k, 3) & STATX_BTIME)) {
        n.stx_mask &= ~(uint32_t)STATX_BTIME;
        n.stx_btime = (struct statx_timestamp){0};
    }
    if (!(n.stx_mask & STATX_BTIME))
        n.stx_btime = (struct statx_timestamp){0};
    memset((char *)&n + offsetof(struct statx, stx_mnt_id) + sizeof n.stx_mnt_id, 0,
           sizeof n - offsetof(struct statx, stx_mnt_id) - sizeof n.stx_mnt_id);
    return aq_tracee_put(k, answer_at(k), &n, sizeof n);
}

static bool put(const aq_task *k, const struct statx *s)
{
    return k->nr == AQ_NR_statx ? put_new(k, s) : put_old(k, s);
}

static bool get(const aq_task *k, struct statx *ret)
{
    struct stat o;

    if (k->nr == AQ_NR_statx)
        return aq_tracee_get(k, answer_at(k), ret, sizeof *ret);
    if (!aq_tracee_get(k, answer_at(k), &o, sizeof o))
        return false;
    *ret = (struct statx){
        .stx_dev_major = major(o.st_dev),
        .stx_dev_minor = minor(o.st_dev),
        .stx_ino = o.st_ino,
        .stx_nlink = (uint32_t)o.st_nlink,
        .stx_mode = (uint16_t)o.st_mode,
        .stx_uid = o.st_uid,
        .stx_gid = o.st_gid,
        .stx_rdev_major = major(o.st_rdev),
        .stx_rdev_minor = minor(o.st_rdev),
        .stx_size = (uint64_t)o.st_size,
        .stx_blksize = (uint32_t)o.st_blksize,
        .stx_blocks = (uint64_t)o.st_blocks,
        .stx_atime = stamp_of(&o.st_atim),
        .stx_mtime = stamp_of(&o.st_mtim),
        .stx_ctime = stamp_of(&o.st_ctim),
    };
    return true;
}

/* ---- the calls ---- */

static aq_step answer(aq_tracer *t, aq_task *k, const char *name, struct statx *s)
{
    aq_disk_show(t, k, name, s, true);
    return aq_answer(k, put(k, s) ? 0 : -EFAULT);
}

static aq_step answer_fd(aq_tracer *t, aq_task *k, int fd)
{
    const aq_fd *f = aq_fd_of(t, k, fd);
    struct statx s;

    if (!f->name || !aq_fd_stat(k, fd, &s))
        return AQ_STEP_RUN; /* the kernel says what is wrong with it */
    return answer(t, k, f->name, &s);
}

/* Flags that the kernel would refuse, or that mean more than we do. */
static bool is_plain(const aq_task *k)
{
    uint32_t flags, known = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;

    if (k->nr == AQ_NR_newfstatat)
        return !((uint32_t)aq_regs_arg(k, 3) & ~known);
    if (k->nr != AQ_NR_statx)
        return true;
    flags = (uint32_t)aq_regs_arg(k, 2);
    return !(flags & ~(known | AT_STATX_SYNC_TYPE)) &&
           (flags & AT_STATX_SYNC_TYPE) != AT_STATX_SYNC_TYPE &&
           !(aq_regs_arg(k, 3) & STATX__RESERVED);
}

static bool is_empty_path(const aq_task *k)
{
    return aq_regs_arg(k, k->nr == AQ_NR_statx ? 2 : 3) & AT_EMPTY_PATH;
}

aq_step aq_try_stat(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);

    if (!t->disk)
        return aq_try_dull(t, k);
    if (!is_plain(k))
        return AQ_STEP_RUN;
    if (aq_look_gone(k))
        return aq_answer(k, -ENOENT);
    if (l->quiet && is_empty_path(k) && aq_arg_int(k, 0) >= 0)
        return answer_fd(t, k, aq_arg_int(k, 0));
    if (l->seen ? aq_veil_no_device(t->plan.machine, l->name) : aq_veil_of_host(l->path))
        return aq_answer(k, -ENOENT);
    return l->seen ? answer(t, k, l->name, &l->what) : AQ_STEP_RUN;
}

/* Whether it may be used so; what is wrong with the question comes first. */
aq_step aq_try_access(aq_tracer *t, aq_task *k)
{
    uint64_t mode = aq_regs_arg(k, k->nr == AQ_NR_access ? 1 : 2);
    uint64_t flags = k->nr == AQ_NR_faccessat2 ? aq_regs_arg(k, 3) : 0;

    if (t->disk && aq_look_gone(k) && (uint32_t)mode <= 7 && (flags & ~(uint64_t)AT_EACCESS) == 0)
        return aq_answer(k, -ENOENT);
    return AQ_STEP_RUN;
}

aq_step aq_try_fstat(aq_tracer *t, aq_task *k)
{
    return t->disk ? answer_fd(t, k, aq_arg_int(k, 0)) : AQ_STEP_GO;
}

/* The name of what the current call was about. */
static const char *object(aq_tracer *t, aq_task *k, char *room, size_t cap)
{
    aq_look *l = k->nr == AQ_NR_fstat || k->nr == AQ_NR_fstatfs ? NULL : aq_look_of(k);
    const char *name;

    if (l && !l->quiet)
        return l->name;
    if (l && aq_arg_int(k, 0) == AT_FDCWD) {
        aq_proc_link(k->tid, "cwd", room, cap);
        aq_resolve_plain(t, room);
        return room;
    }
    name = aq_fd_of(t, k, aq_arg_int(k, 0))->name;
    return name ? name : "";
}

aq_step aq_after_stat(aq_tracer *t, aq_task *k, long *result)
{
    char room[AQ_PATH + 32];
    struct statx s;

    if (t->disk && *result == 0 && get(k, &s)) {
        aq_disk_show(t, k, object(t, k, room, sizeof room), &s, false);
        put(k, &s);
    }
    return AQ_STEP_RUN;
}

/* ---- file systems ---- */

enum {
    STATFS_VALID = 0x20,
    STATFS_RELATIME = 0x1000,
    STATFS_NOSUID = 2,
    STATFS_NODEV = 4,
    STATFS_NOEXEC = 8,
    EFI_SECTORS = 1050624, /* the first partition, with what stands before it */
    MQUEUE_MAGIC = 0x19800202,
};

static long flags_of(const aq_place *p)
{
    long flags = STATFS_VALID;

    flags |= strstr(p->options, "nosuid") ? STATFS_NOSUID : 0;
    flags |= strstr(p->options, "nodev") ? STATFS_NODEV : 0;
    flags |= strstr(p->options, "noexec") ? STATFS_NOEXEC : 0;
    flags |= strstr(p->options, "relatime") ? STATFS_RELATIME : 0;
    return flags;
}

/* Most of the disk is free; what the world wrote is not. */
static void show_disk(const aq_tracer *t, const struct statfs *real, struct statfs *s)
{
    const aq_machine *m = t->plan.machine;
    uint64_t sectors = aq_machine_number(m, "disk.sectors", 976773168);
    uint64_t swap = aq_machine_number(m, "swap.total_kb", 0) * 2;
    uint64_t blocks = (sectors - swap - EFI_SECTORS) / (BLOCK / SECTOR), whole;
    uint64_t used = real->f_type == TMPFS_MAGIC
                        ? (uint64_t)(real->f_blocks - real->f_bfree) - t->disk->late / BLOCK
                        : 0;
    uint64_t made = real->f_type == TMPFS_MAGIC ? (uint64_t)(real->f_files - real->f_ffree) : 0;

    whole = blocks - blocks / 60; /* inodes and journal */
    s->f_type = EXT4_SUPER_MAGIC;
    s->f_blocks = whole;
    s->f_bfree = whole - whole / 5 - used;
    s->f_bavail = s->f_bfree - blocks / 20;
    s->f_files = blocks / 4;
    s->f_ffree = s->f_files - 412907 - made;
}

/* The partition that a machine boots from: small, and nearly empty. */
static void show_loader(struct statfs *s)
{
    s->f_type = MSDOS_SUPER_MAGIC;
    s->f_blocks = EFI_SECTORS / (BLOCK / SECTOR) - 514; /* its table */
    s->f_bfree = s->f_bavail = s->f_blocks - 1489;
    s->f_namelen = 1530;
}

static void show_memory(const aq_tracer *t, const aq_place *p, const struct statfs *real,
                        struct statfs *s)
{
    uint64_t half = aq_machine_number(t->plan.machine, "memory.total_kb", 16142540) / 8;
    const char *size = strstr(p->own, "size=");
    bool space = real->f_type == TMPFS_MAGIC && real->f_blocks > 4096;

    if (size)
        half = strtoull(size + 5, NULL, 10) / 4;
    s->f_type = TMPFS_MAGIC;
    s->f_blocks = half;
    s->f_bfree = s->f_bavail = half - (space ? real->f_blocks - real->f_bfree : 2);
    s->f_files = half < 1048576 ? half : 1048576;
    s->f_ffree = s->f_files - (space ? real->f_files - real->f_ffree : 30);
}

static void show_file_system(const aq_tracer *t, const aq_place *p, struct statfs *s)
{
    struct statfs real = *s;
    uint64_t id = aq_disk_hash(t->disk, p->path, strlen(p->path));

    *s = (struct statfs){.f_type = real.f_type,
                         .f_bsize = BLOCK,
                         .f_frsize = BLOCK,
                         .f_namelen = 255,
                         .f_flags = flags_of(p)};
    memcpy(&s->f_fsid, &id, sizeof s->f_fsid);
    switch (p->kind) {
    case AQ_PLACE_DISK:
        show_disk(t, &real, s);
        break;
    case AQ_PLACE_OTHER_DISK:
        show_loader(s);
        break;
    case AQ_PLACE_MEMORY:
    case AQ_PLACE_DEVICES:
        if (strcmp(p->type, "mqueue") == 0)
            s->f_type = MQUEUE_MAGIC;
        else
            show_memory(t, p, &real, s);
        break;
    case AQ_PLACE_SYS:
        s->f_type = strcmp(p->type, "cgroup2") == 0 ? CGROUP2_SUPER_MAGIC : SYSFS_MAGIC;
        break;
    case AQ_PLACE_TERMINALS:
        s->f_type = DEVPTS_SUPER_MAGIC;
        break;
    case AQ_PLACE_PROC:
        s->f_type = PROC_SUPER_MAGIC;
        break;
    }
}

aq_step aq_after_statfs(aq_tracer *t, aq_task *k, long *result)
{
    char room[AQ_PATH + 32];
    const aq_place *p;
    struct statfs s;

    if (!t->disk || *result != 0 || !aq_tracee_get(k, aq_regs_arg(k, 1), &s, sizeof s))
        return AQ_STEP_RUN;
    p = aq_disk_place(object(t, k, room, sizeof room));
    if (p) {
        show_file_system(t, p, &s);
        aq_tracee_put(k, aq_regs_arg(k, 1), &s, sizeof s);
    }
    return AQ_STEP_RUN;
}

/* Counted calls whose answer we want to see. */
aq_step aq_try_shown(aq_tracer *t, aq_task *k)
{
    (void)k;
    return t->disk ? AQ_STEP_RUN : AQ_STEP_GO;
}
