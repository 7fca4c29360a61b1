/* Links of /proc that have a number in them, questions about the disk below a file, and errors that
 * only a read-only piece of the host would give; disk.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/syscalls.h"
#include "observe/disk.h"
#include "veil/kernel.h"
#include "veil/veil.h"

enum {
    LINK = 64,              /* a text with a number is shorter */
    EXTENTS_FLAG = 0x80000, /* every file of an ext4 has it */
    SECTOR = 512,
    BLOCK = 4096,
};

/* ---- links ---- */

/* "pipe:[31843]" for "pipe:[21549317]". */
static bool translate(aq_tracer *t, const char *text, char ret[static LINK])
{
    const char *bracket = strstr(text, ":[");
    uint64_t number;
    char *end;

    if (!bracket || *text == '/' || bracket[2] < '0' || bracket[2] > '9')
        return false;
    number = strtoull(bracket + 2, &end, 10);
    if (strcmp(end, "]") != 0)
        return false;
    snprintf(ret, LINK, "%.*s:[%llu]", (int)(bracket - text), text,
             (unsigned long long)(aq_disk_namespace(text) ? aq_disk_namespace(text)
                                                          : aq_disk_anonymous(t, number, NULL)));
    return true;
}

/* Where a link goes; returns how much may be put there. */
static uint64_t link_room(const aq_task *k, uint64_t *into)
{
    bool at = k->nr == AQ_NR_readlinkat;

    *into = aq_regs_arg(k, at ? 2 : 1);
    return (uint32_t)aq_regs_arg(k, at ? 3 : 2);
}

/* What is no link is known before the kernel is asked. Of a descriptor it says another thing. The
 * kernel's text of a link may be longer than ours: behind that stays what was there before. */
aq_step aq_try_readlink(aq_tracer *t, aq_task *k)
{
    const aq_look *l = aq_look_of(k);
    uint64_t into, room = link_room(k, &into);

    if (!t->disk || (int32_t)room <= 0)
        return AQ_STEP_RUN;
    if (aq_look_gone(k))
        return aq_answer(k, -ENOENT);
    if (l->seen && l->path_len > 0 && !l->path_cut && !S_ISLNK(l->what.stx_mode))
        return aq_answer(k, -EINVAL);
    if (strncmp(l->name, "/proc/", 6) == 0)
        aq_tracee_save_answer(k, into, room < LINK ? room : LINK);
    return AQ_STEP_RUN;
}

/* A name that the kernel gave: what it is called here is shorter. Where it had been cut nobody can
 * tell how much is missing, and it stays. */
static bool show_elsewhere(aq_task *k, uint64_t at, long *result)
{
    char text[AQ_PATH];
    size_t n = (size_t)*result, len;

    if (*result <= 0 || n >= sizeof text || !aq_tracee_get(k, at, text, n))
        return false;
    text[n] = '\0';
    if (!aq_kernel_shown(text))
        return false;
    len = strlen(text);
    memset(text + len, 0, n - len);
    if (!aq_tracee_put(k, at, text, n))
        return false;
    *result = (long)(k->nr == AQ_NR_getcwd ? len + 1 : len);
    return true;
}

aq_step aq_try_cwd(aq_tracer *t, aq_task *k)
{
    (void)k;
    return t->strayed ? AQ_STEP_RUN : AQ_STEP_GO;
}

aq_step aq_after_cwd(aq_tracer *t, aq_task *k, long *result)
{
    (void)t;
    show_elsewhere(k, aq_regs_arg(k, 0), result);
    return AQ_STEP_RUN;
}

/* "/home/ada/#4194567 (deleted)": a file without a name is called by its number. */
static bool name_unnamed(aq_tracer *t, aq_task *k, const aq_look *l, const char *text,
                         char ret[static AQ_PATH])
{
    size_t len = strlen(text), at;
    struct stat s;

    if (*text != '/' || !strstr(text, "/#") ||
        fstatat(aq_resolve_root(t, k), l->name + 1, &s, 0) != 0)
        return false;
    at = aq_veil_unnamed(text, len, (uint64_t)s.st_ino);
    return at && snprintf(ret, AQ_PATH, "%.*s%llu (deleted)", (int)at, text,
                          (unsigned long long)aq_disk_inode(t, text, (uint64_t)s.st_dev,
                                                            (uint64_t)s.st_ino)) < AQ_PATH;
}

/* What is too long for the program's room is cut, so the whole is asked for once more. */
aq_step aq_after_readlink(aq_tracer *t, aq_task *k, long *result)
{
    static const char nothing[LINK];
    uint64_t into, room = link_room(k, &into);
    char text[AQ_PATH], shown[AQ_PATH];
    const aq_look *l;
    ssize_t n;
    size_t len;

    if (!t->disk || *result <= 0)
        return AQ_STEP_RUN;
    l = aq_look_of(k);
    if (strncmp(l->name, "/proc/", 6) != 0)
        return AQ_STEP_RUN;
    if (t->strayed && show_elsewhere(k, into, result))
        return AQ_STEP_RUN;
    n = readlinkat(aq_resolve_root(t, k), l->name + 1, text, sizeof text - 1);
    if (n < 0) {
        n = *result < LINK ? *result : LINK;
        n = aq_tracee_read(k, into, text, (size_t)n);
    }
    if (n <= 0)
        return AQ_STEP_RUN;
    text[n] = '\0';
    if (!(n < LINK && translate(t, text, shown)) && !name_unnamed(t, k, l, text, shown))
        return AQ_STEP_RUN;
    len = strlen(shown) < room ? strlen(shown) : (size_t)room;
    if (k->saved_count > 0)
        aq_tracee_restore(k);
    else
        aq_tracee_put(k, into, nothing, *result < LINK ? (size_t)*result : LINK);
    if (aq_tracee_put(k, into, shown, len))
        *result = (long)len;
    return AQ_STEP_RUN;
}

/* ---- errors ---- */

static bool wants_owner(long nr)
{
    switch (nr) {
    case AQ_NR_chmod:
    case AQ_NR_fchmod:
    case AQ_NR_fchmodat:
    case AQ_NR_fchmodat2:
    case AQ_NR_chown:
    case AQ_NR_fchown:
    case AQ_NR_lchown:
    case AQ_NR_fchownat:
    case AQ_NR_utime:
    case AQ_NR_utimes:
    case AQ_NR_futimesat:
    case AQ_NR_utimensat:
        return true;
    default:
        return false;
    }
}

/* A disk that can be written refuses by rights: what is not the user's is root's. */
long aq_disk_result(const aq_task *k, long result)
{
    if (result != -EROFS)
        return result;
    return wants_owner(k->nr) ? -EPERM : -EACCES;
}

/* ---- below the file ---- */

/* Of a file or folder on the disk; false: it lies elsewhere. */
static bool on_disk(aq_tracer *t, aq_task *k, const aq_fd *f, struct statx *s)
{
    const aq_place *p = f->name ? aq_disk_place(f->name) : NULL;

    if (!p || p->kind != AQ_PLACE_DISK || (f->kind != AQ_FD_FILE && f->kind != AQ_FD_DIR) ||
        !aq_fd_stat(k, f->fd, s))
        return false;
    aq_disk_show(t, k, f->name, s, true);
    return true;
}

/* One extent, where a file of that number could be. */
static aq_step fiemap(aq_task *k, const struct statx *s)
{
    uint64_t at = aq_regs_arg(k, 2), len = s->stx_blocks * SECTOR;
    struct fiemap m;
    struct fiemap_extent e = {.fe_logical = 0,
                              .fe_physical = (s->stx_ino * 37 + 34816) * BLOCK,
                              .fe_length = len,
                              .fe_flags = FIEMAP_EXTENT_LAST};

    if (!aq_tracee_get(k, at, &m, sizeof m))
        return aq_answer(k, -EFAULT);
    if (m.fm_flags & ~(uint32_t)(FIEMAP_FLAG_SYNC | FIEMAP_FLAG_XATTR | FIEMAP_FLAG_CACHE))
        return aq_answer(k, -EBADR);
    if (m.fm_length == 0)
        return aq_answer(k, -EINVAL);
    m.fm_mapped_extents = len > m.fm_start && !(m.fm_flags & FIEMAP_FLAG_XATTR);
    if (m.fm_extent_count && m.fm_mapped_extents && !aq_tracee_put(k, at + sizeof m, &e, sizeof e))
        return aq_answer(k, -EFAULT);
    return aq_answer(k, aq_tracee_put(k, at, &m, sizeof m) ? 0 : -EFAULT);
}

static aq_step give(aq_task *k, const void *data, size_t len)
{
    return aq_answer(k, aq_tracee_put(k, aq_regs_arg(k, 2), data, len) ? 0 : -EFAULT);
}

/* Who sets flags keeps those that were there; one of them memory does not know. */
static aq_step set_flags(aq_task *k)
{
    uint64_t at = aq_regs_arg(k, 2);
    uint32_t flags;

    if (!aq_tracee_get(k, at, &flags, sizeof flags) || !(flags & EXTENTS_FLAG))
        return AQ_STEP_RUN;
    flags &= ~(uint32_t)EXTENTS_FLAG;
    return aq_tracee_save(k, at, sizeof flags) && aq_tracee_put(k, at, &flags, sizeof flags)
               ? AQ_STEP_RUN
               : aq_answer(k, -EFAULT);
}

/* Questions that are younger than the machine's kernel: about processes and namespaces by their
 * descriptors, about the host's file systems. */
static bool is_young(uint32_t request)
{
    enum { OF_PROCESS = 0xff, OF_NAMESPACE = 0xb7, NAMESPACE_LAST = 4, OF_SYSTEM = 0x15 };

    switch (_IOC_TYPE(request)) {
    case OF_PROCESS:
    case OF_SYSTEM:
        return true;
    case OF_NAMESPACE:
        return _IOC_NR(request) > NAMESPACE_LAST;
    default:
        return false;
    }
}

/* What each kind of file system answers by itself: its identity, its size, its state. Those that
 * all have are left. */
static bool is_of_one_system(uint32_t request)
{
    enum { OF_EXT = 'f', OF_XFS = 'X', OF_BTRFS = 0x94 };
    const unsigned type = _IOC_TYPE(request);

    switch (request) {
    case FS_IOC_GETFLAGS:
    case FS_IOC_SETFLAGS:
    case FS_IOC_FIEMAP:
    case FS_IOC_FSGETXATTR:
    case FS_IOC_FSSETXATTR:
    case FS_IOC_GETFSLABEL:
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
        return false;
    default:
        return type == OF_EXT || type == OF_XFS || type == OF_BTRFS;
    }
}

static bool is_of_disk(uint32_t request)
{
    switch (request) {
    case FS_IOC_GETFLAGS:
    case FS_IOC_SETFLAGS:
    case FS_IOC_FIEMAP:
    case FS_IOC_GETVERSION:
    case FS_IOC_FSGETXATTR:
    case FS_IOC_GETFSLABEL:
        return true;
    default:
        return false;
    }
}

/* What a file system in memory does not know, or answers otherwise. */
aq_step aq_try_file_ioctl(aq_tracer *t, aq_task *k)
{
    static const char no_label[FSLABEL_MAX];
    uint32_t request = (uint32_t)aq_regs_arg(k, 1), version;
    struct fsxattr x = {0};
    struct statx s;

    k->part = 0;
    if (t->disk && (is_young(request) || is_of_one_system(request)))
        return aq_answer(k,
                         aq_fd_of(t, k, aq_arg_int(k, 0))->kind == AQ_FD_NONE ? -EBADF : -ENOTTY);
    if (!t->disk || !is_of_disk(request) || !on_disk(t, k, aq_fd_of(t, k, aq_arg_int(k, 0)), &s))
        return aq_try_ioctl(t, k);
    switch (request) {
    case FS_IOC_GETFLAGS:
        k->part = EXTENTS_FLAG; /* aq_after_file_ioctl */
        return AQ_STEP_RUN;
    case FS_IOC_SETFLAGS:
        return set_flags(k);
    case FS_IOC_GETVERSION:
        version = (uint32_t)aq_disk_hash(t->disk, &s.stx_ino, sizeof s.stx_ino);
        return give(k, &version, sizeof version);
    case FS_IOC_FSGETXATTR:
        return give(k, &x, sizeof x);
    case FS_IOC_GETFSLABEL:
        return give(k, no_label, sizeof no_label);
    default:
        return S_ISREG(s.stx_mode) || S_ISDIR(s.stx_mode) ? fiemap(k, &s) : aq_answer(k, -ENOTTY);
    }
}

aq_step aq_after_file_ioctl(aq_tracer *t, aq_task *k, long *result)
{
    const uint32_t root = 0;
    uint32_t flags = 0;

    if (t->disk && (uint32_t)aq_regs_arg(k, 1) == NS_GET_OWNER_UID && *result == 0)
        aq_tracee_put(k, aq_regs_arg(k, 2), &root, sizeof root); /* it has but the first ones */
    if (k->part != EXTENTS_FLAG)
        return aq_after_ioctl(t, k, result);
    if (*result == 0 && !aq_tracee_get(k, aq_regs_arg(k, 2), &flags, sizeof flags))
        return AQ_STEP_RUN;
    flags |= EXTENTS_FLAG;
    if (*result == 0 || *result == -ENOTTY || *result == -EOPNOTSUPP)
        *result = aq_tracee_put(k, aq_regs_arg(k, 2), &flags, sizeof flags) ? 0 : -EFAULT;
    return AQ_STEP_RUN;
}

/* ---- handles ---- */

enum {
    HANDLE_FLAGS = AT_SYMLINK_FOLLOW | AT_EMPTY_PATH,
    HANDLE_TYPE = 1,    /* inode and generation */
    HANDLE_DISK = 8,    /* bytes of one on the disk */
    HANDLE_MEMORY = 12, /* in memory the number is longer, and comes last */
    HANDLE_MOST = 128,  /* bytes that a caller may offer */
};

void aq_look_handle(aq_tracer *t, aq_task *k)
{
    bool follow = aq_regs_arg(k, 4) & AT_SYMLINK_FOLLOW;
    aq_look *l = aq_look_of(k);

    aq_look_read_path(t, k, aq_arg_int(k, 0), aq_regs_arg(k, 1));
    l->quiet = false;
    if (l->path_read)
        aq_look_found(l, aq_resolve_stat(t, k, l->dir, l->path, follow, l->name, sizeof l->name,
                                         t->disk ? &l->what : NULL));
    if (l->path_read && !l->path_len && (aq_regs_arg(k, 4) & AT_EMPTY_PATH))
        l->seen = *l->name == '/' && aq_fd_stat(k, l->dir, &l->what);
}

/* What is wrong with a path the kernel says; of what we could not look at ourselves only that it
 * has no handle, as nothing in /proc has. */
static aq_step ask_instead(aq_task *k)
{
    uint32_t flags = (uint32_t)aq_regs_arg(k, 4);
    const struct stat room = {0};
    uint64_t scratch = aq_tracee_scratch(k, &room, sizeof room);

    if (!scratch)
        return aq_answer(k, -EFAULT);
    aq_regs_set_call(k, AQ_NR_newfstatat);
    aq_regs_set_arg(k, 2, scratch);
    aq_regs_set_arg(
        k, 3, (flags & AT_EMPTY_PATH) | (flags & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW));
    return AQ_STEP_RUN;
}

/* The host's handles are nobody's business, and the call itself never runs; those of the machine's
 * disk are made of what stat says. Nothing can be opened by one. */
aq_step aq_try_handle(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);
    uint64_t at = aq_regs_arg(k, 2);
    struct {
        uint32_t bytes;
        int32_t type;
        uint32_t word[3];
    } h = {0};
    const aq_place *p;
    uint32_t generation, need;
    int32_t mount;

    if (!t->disk)
        return aq_refuse(k, EPERM, "handle.refused");
    if ((uint32_t)aq_regs_arg(k, 4) & ~(uint32_t)HANDLE_FLAGS)
        return aq_answer(k, -EINVAL);
    if (!l->seen)
        return ask_instead(k);
    aq_disk_show(t, k, l->name, &l->what, true);
    p = aq_disk_place(l->name);
    if (p->kind != AQ_PLACE_DISK && p->kind != AQ_PLACE_MEMORY)
        return aq_answer(k, -EOPNOTSUPP);
    need = p->kind == AQ_PLACE_DISK ? HANDLE_DISK : HANDLE_MEMORY;
    if (!aq_tracee_get(k, at, &h.bytes, sizeof h.bytes))
        return aq_answer(k, -EFAULT);
    if (h.bytes > HANDLE_MOST)
        return aq_answer(k, -EINVAL);
    generation = (uint32_t)aq_disk_hash(t->disk, &l->what.stx_ino, sizeof l->what.stx_ino);
    mount = (int32_t)p->id;
    h.type = HANDLE_TYPE;
    h.word[need == HANDLE_DISK ? 1 : 0] = generation;
    h.word[need == HANDLE_DISK ? 0 : 1] = (uint32_t)l->what.stx_ino;
    if (!aq_tracee_put(k, aq_regs_arg(k, 3), &mount, sizeof mount))
        return aq_answer(k, -EFAULT);
    if (h.bytes < need) {
        h.bytes = need;
        h.type = 255;
        return aq_answer(k, aq_tracee_put(k, at, &h, 8) ? -EOVERFLOW : -EFAULT);
    }
    h.bytes = need;
    return aq_answer(k, aq_tracee_put(k, at, &h, 8 + need) ? 0 : -EFAULT);
}

aq_step aq_after_handle(aq_tracer *t, aq_task *k, long *result)
{
    (void)t, (void)k;
    if (*result == 0)
        *result = -EOPNOTSUPP;
    return AQ_STEP_RUN;
}
