/* Mounts; see mount.h. */
#include "kernel/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The kernel's words on why a file system was refused are in its context, if anywhere. */
static int refused(int context, const char *type, const char *key, aq_err *err)
{
    char why[160];
    int code = errno;
    ssize_t n = read(context, why, sizeof why - 1);

    errno = code;
    if (n <= 0)
        return aq_fail_errno(err, "cannot make a %s file system%s%s", type, key ? " with " : "",
                             key ? key : "");
    why[n] = '\0';
    return aq_fail(err, -code, "cannot make a %s file system: %s", type, why);
}

int aq_mount_new(const char *type, const aq_mount_option *options, uint64_t attributes, aq_err *err)
{
    aq_auto_fd int context = fsopen(type, FSOPEN_CLOEXEC);
    int mount;

    if (context < 0)
        return aq_fail_errno(err, "cannot make a %s file system", type);
    for (const aq_mount_option *o = options; o && o->key; o++)
        if (fsconfig(context, o->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, o->key, o->value,
                     0) < 0)
            return refused(context, type, o->key, err);
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return refused(context, type, NULL, err);
    mount = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes);
    return mount < 0 ? refused(context, type, NULL, err) : mount;
}

/* In a user namespace the kernel does not let one look behind what others have mounted: a tree with
 * such places in it comes whole or not at all. */
int aq_mount_copy(int dirfd, const char *path, bool deep, uint64_t attributes, aq_err *err)
{
    unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_NO_AUTOMOUNT |
                     (*path ? 0u : AT_EMPTY_PATH) | (deep ? AT_RECURSIVE : 0u);
    aq_auto_fd int mount = open_tree(dirfd, path, flags);
    struct mount_attr attr = {.attr_set = attributes};

    if (mount < 0 && errno == EINVAL && !deep)
        return aq_mount_copy(dirfd, path, true, attributes, err);
    if (mount < 0)
        return aq_fail_errno(err, "cannot show %s inside", *path ? path : "a folder");
    if (attributes && mount_setattr(mount, "", AT_EMPTY_PATH | (deep ? AT_RECURSIVE : 0u), &attr,
                                    sizeof attr) < 0)
        return aq_fail_errno(err, "cannot restrict the copy of %s", path);
    return aq_take_fd(mount);
}

int aq_mount_change(int mount, const aq_mount_option *options, aq_err *err)
{
    aq_auto_fd int context = fspick(mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);

    if (context < 0)
        return aq_fail_errno(err, "cannot change a file system");
    for (const aq_mount_option *o = options; o->key; o++)
        if (fsconfig(context, FSCONFIG_SET_STRING, o->key, o->value, 0) < 0)
            return refused(context, "changed", o->key, err);
    return fsconfig(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0
               ? refused(context, "changed", NULL, err)
               : 0;
}

int aq_mount_restrict(int mount, uint64_t attributes, aq_err *err)
{
    struct mount_attr attr = {.attr_set = attributes};

    if (mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return aq_fail_errno(err, "cannot restrict a mount");
    return 0;
}

int aq_mount_attach(int mount, int dirfd, const char *path, aq_err *err)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*path ? 0u : MOVE_MOUNT_T_EMPTY_PATH);

    if (move_mount(mount, "", dirfd, path, flags) < 0)
        return aq_fail_errno(err, "cannot mount on %s", *path ? path : "a folder");
    return 0;
}

int aq_mount_become_root(int mount, aq_err *err)
{
    /* The old root is stacked on the new one for a moment, so it needs no folder of its own. */
    if (fchdir(mount) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return aq_fail_errno(err, "cannot enter the new root");
    return 0;
}

int aq_mount_leave_old(aq_err *err)
{
    if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return aq_fail_errno(err, "cannot leave the old root");
    return 0;
}
