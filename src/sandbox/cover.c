/* Files of a world in folders that are not its own: /etc and its like are read-only folders that
 * every machine has, made when we were built. A file of the world is made out of sight, in a folder
 * of the root that a mount covers later, and shown over the file of that name, which is empty.
 *
 * Where the plan has a file in /etc of a name that no machine has, /etc is made anew: a folder of
 * the world with each thing of the other one shown in it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/mount.h"
#include "sandbox/world.h"

enum {
    SEALED = AQ_MOUNT_READ_ONLY | AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES | AQ_MOUNT_NO_EXEC,
    NAME = 128
};

/* One name for a path. */
static const char *flat(const char *path, char name[static NAME])
{
    snprintf(name, NAME, "%s", path + 1);
    for (char *p = name; *p; p++)
        *p = *p == '/' ? '-' : *p;
    return name;
}

static int failed(aq_err *err, const char *path, int r)
{
    return aq_fail(err, r, "cannot make %s inside: %s", path, strerror(-r));
}

static int write_to(int folder, const char *name, const char *text, const aq_plan_file *f)
{
    aq_auto_fd int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                               f ? f->mode : 0644);
    int r = fd < 0 ? -errno : aq_write_full(fd, f ? f->data : text, f ? f->len : strlen(text));

    if (r == 0 && f && futimens(fd, (struct timespec[]){aq_files_time(f), aq_files_time(f)}) < 0)
        r = -errno;
    return r;
}

static int show(int folder, const char *name, int root, const char *path, aq_err *err)
{
    aq_auto_fd int mount = aq_mount_copy(folder, name, false, SEALED, err);

    return mount < 0 ? mount : aq_mount_attach(mount, root, path + 1, err);
}

/* ---- /etc anew ---- */

static int carry(int from, int to, const char *name, aq_err *err)
{
    char target[PATH_MAX] = "";
    struct stat st;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(err, name, -errno);
    if (S_ISLNK(st.st_mode)) {
        if (readlinkat(from, name, target, sizeof target - 1) < 0 ||
            symlinkat(target, to, name) < 0)
            return failed(err, name, -errno);
        return 0;
    }
    if (S_ISDIR(st.st_mode) ? mkdirat(to, name, 0755) < 0
                            : mknodat(to, name, S_IFREG | 0644, 0) < 0)
        return failed(err, name, -errno);
    aq_auto_fd int mount = aq_mount_copy(from, name, true, 0, err);
    return mount < 0 ? mount : aq_mount_attach(mount, to, name, err);
}

static int unfold(aq_world *w, int root, aq_err *err)
{
    DIR *all = fdopendir(openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int r = 0;

    if (!all || mkdirat(w->root.hidden, "etc", 0755) < 0)
        r = failed(err, "/etc", -errno);
    aq_auto_fd int mount = r < 0 ? -1 : aq_mount_copy(w->root.hidden, "etc", false, 0, err);
    if (r == 0)
        r = mount < 0 ? mount : aq_mount_attach(mount, root, "etc", err);
    for (struct dirent *e; r == 0 && (e = readdir(all));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = carry(dirfd(all), mount, e->d_name, err);
    if (r == 0)
        r = aq_mount_restrict(mount, SEALED, err);
    if (all)
        closedir(all);
    if (r == 0 &&
        (w->root.etc = openat(w->root.hidden, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        r = failed(err, "/etc", -errno);
    return r;
}

/* ---- files ---- */

static int add_to_etc(aq_world *w, int root, const aq_plan_file *f, aq_err *err)
{
    int r = w->root.etc < 0 ? unfold(w, root, err) : 0;

    if (r == 0 && (r = write_to(w->root.etc, f->path + strlen("/etc/"), NULL, f)) < 0)
        r = failed(err, f->path, r);
    return r;
}

int aq_cover_file(aq_world *w, int root, const char *path, const char *text, const aq_plan_file *f,
                  aq_err *err)
{
    char name[NAME];
    struct stat st;
    int r = write_to(root, path + 1, text, f);

    if (r == 0)
        return 0;
    if (r != -EEXIST && r != -EROFS)
        return failed(err, path, r);
    if (!f)
        return 0;
    if (fstatat(root, path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return add_to_etc(w, root, f, err);
    if ((r = write_to(w->root.hidden, flat(path, name), text, f)) < 0)
        return failed(err, path, r);
    return show(w->root.hidden, name, root, path, err);
}

int aq_cover_socket(const aq_world *w, int root, const char *path, aq_err *err)
{
    char name[NAME];

    if (mknodat(w->root.hidden, flat(path, name), S_IFSOCK | 0666, 0) < 0)
        return failed(err, path, -errno);
    return show(w->root.hidden, name, root, path, err);
}
