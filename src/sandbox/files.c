/* The files that a world has from the start: written into its writable places by init before the
 * payload can tell, with the owner, mode and time that the plan says; those in /etc are part of the
 * read-only root. What the run did not change of them is not told as a change. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sandbox/world.h"

static bool within(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

bool aq_files_in_root(const aq_plan_file *f)
{
    return !f->folder && ((strncmp(f->path, "/etc/", 5) == 0 && !strchr(f->path + 5, '/')) ||
                          aq_root_is_point(f->path));
}

static bool good_path(const char *path)
{
    size_t n = strlen(path);

    return n > 1 && n < PATH_MAX && path[0] == '/' && path[n - 1] != '/' && !strstr(path, "//") &&
           !strstr(path, "/./") && !strstr(path, "/../") &&
           !(n > 2 && strcmp(path + n - 2, "/.") == 0) &&
           !(n > 3 && strcmp(path + n - 3, "/..") == 0);
}

/* Whole pages, as the file system counts them. */
uint64_t aq_files_room(const aq_plan *plan)
{
    const uint64_t page = 4096;
    uint64_t room = 0;

    if (plan->later)
        return plan->later_room;
    for (size_t i = 0; i < plan->file_count; i++)
        if (!plan->files[i].say)
            room += (plan->files[i].len + page - 1) / page * page;
    return room;
}

static int check_file(const aq_plan *plan, const aq_plan_file *f, aq_err *err)
{
    /* The loader of every program looks for its own before there is any of ours. */
    if (!good_path(f->path) || strncmp(f->path, "/etc/ld.so.", 11) == 0 || f->mode > 07777 ||
        f->mtime_ns > 999999999)
        return aq_fail(err, -AQ_EPLAN, "%s is no file of a world", f->path);
    for (size_t i = 0; i < plan->share_count; i++)
        if (within(f->path, plan->shares[i].to))
            return aq_fail(err, -AQ_EPLAN, "the world's %s lies in the shared folder %s", f->path,
                           plan->shares[i].to);
    if (!aq_files_in_root(f) && !aq_root_is_space(plan, f->path))
        return aq_fail(err, -AQ_EPLAN, "%s lies in no writable place of a world", f->path);
    return 0;
}

/* Only what the run owns: nothing of ours may reach into a share, which is the host's. */
void aq_plan_forget(const aq_plan *plan)
{
    if (plan->secret)
        explicit_bzero(plan->secret, plan->secret_len);
}

int aq_plan_check(const aq_plan *plan, aq_err *err)
{
    uint64_t bytes = 0, most = aq_limits_filled(&plan->limits).most[AQ_LIMIT_DISK];
    int r = 0;

    if (plan->file_count > AQ_PLAN_FILES)
        return aq_fail(err, -AQ_EPLAN, "more than %d files in a plan", AQ_PLAN_FILES);
    if (plan->home && (strncmp(plan->home, "/home/", 6) != 0 || strchr(plan->home + 6, '/') ||
                       !good_path(plan->home)))
        return aq_fail(err, -AQ_EPLAN, "%s is no home: it is a name below /home", plan->home);
    if (plan->host && strlen(plan->host) > HOST_NAME_MAX)
        return aq_fail(err, -AQ_EPLAN, "the host's name has more than %d bytes", HOST_NAME_MAX);
    for (size_t i = 0; i < plan->file_count && r == 0; i++) {
        r = check_file(plan, &plan->files[i], err);
        bytes += plan->files[i].say ? 0 : plan->files[i].len;
    }
    if (r == 0 && bytes > most / 2)
        r = aq_fail(err, -AQ_EPLAN, "the world's files fill more than half of disk-bytes");
    return r;
}

/* ---- writing ---- */

/* The kernel takes the rights over files away with the identity, and gives them back with it. */
void aq_files_as_user(const aq_world *w, bool user)
{
    if (!w->own_ids)
        return;
    setfsgid(user ? AQ_INSIDE_UID : 0);
    setfsuid(user ? AQ_INSIDE_UID : 0);
}

size_t aq_files_count(const aq_plan *plan)
{
    return plan->later ? plan->later_count : plan->file_count;
}

static bool in_share(const aq_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->share_count; i++)
        if (within(path, plan->shares[i].to))
            return true;
    return false;
}

bool aq_files_hold(const aq_plan *plan, const char *path)
{
    if (plan->later) /* it might */
        return aq_root_is_space(plan, path) && !in_share(plan, path);
    for (size_t i = 0; i < plan->file_count; i++)
        if (within(path, plan->files[i].path))
            return true;
    return false;
}

struct timespec aq_files_time(const aq_plan_file *f)
{
    return (struct timespec){.tv_sec = f->mtime, .tv_nsec = (long)f->mtime_ns};
}

static int write_file(int root, const aq_plan_file *f)
{
    const struct timespec at = aq_files_time(f), times[2] = {at, at};
    aq_auto_fd int fd =
        openat(root, f->path + 1,
               (f->say ? O_RDWR : O_WRONLY) | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, f->mode);
    int r = fd < 0 ? -errno : 0;

    if (r == 0 && f->len)
        r = f->say ? aq_large_make(fd, f) : aq_write_full(fd, f->data, f->len);
    return r == 0 && futimens(fd, times) < 0 ? -errno : r;
}

/* One that is there already is a writable place: its mode stays. A link is nobody's but a
 * payload's, which should not have been able to make it. */
static int write_folder(int root, const aq_plan_file *f)
{
    struct stat st;

    if (mkdirat(root, f->path + 1, f->mode) == 0)
        return 0;
    if (errno != EEXIST || fstatat(root, f->path + 1, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int settle_folder(int root, const aq_plan_file *f)
{
    const struct timespec at = aq_files_time(f), times[2] = {at, at};

    return utimensat(root, f->path + 1, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

bool aq_files_at_home(const aq_plan *plan, const aq_plan_file *f)
{
    return within(f->path, aq_root_home(plan));
}

enum { OUTSIDE = 1, AT_HOME = 2 };

static int each(const aq_world *w, int root, bool folders, int which,
                int (*act)(int root, const aq_plan_file *f), aq_err *err)
{
    mode_t mask = umask(0);
    const aq_plan_file *f = NULL;
    int r = 0;

    for (size_t i = 0; i < w->plan->file_count && r == 0; i++) {
        f = &w->plan->files[i];
        if (f->folder == folders && !aq_files_in_root(f) &&
            which & (aq_files_at_home(w->plan, f) ? AT_HOME : OUTSIDE))
            r = act(root, f);
    }
    umask(mask);
    return r < 0 ? aq_fail(err, r, "cannot make %s inside: %s", f->path, strerror(-r)) : 0;
}

int aq_files_folders(const aq_world *w, int root, aq_err *err)
{
    return each(w, root, true, OUTSIDE | AT_HOME, write_folder, err);
}

/* Folders get their time when nothing more is written into them. */
int aq_files_write(const aq_world *w, bool home, aq_err *err)
{
    const int which = home ? AT_HOME : OUTSIDE;
    aq_auto_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = root < 0 ? aq_fail_errno(err, "cannot open the new root") : 0;

    if (r == 0)
        r = each(w, root, true, which, write_folder, err);
    if (r == 0)
        r = each(w, root, false, which, write_file, err);
    if (r == 0)
        r = each(w, root, true, which, settle_folder, err);
    if (r == 0 && home && (r = aq_large_ready()) < 0)
        r = aq_fail(err, r, "cannot keep the large files");
    return r;
}

/* ---- what became of them ---- */

static int by_path(const void *x, const void *y)
{
    return strcmp((*(const aq_plan_file *const *)x)->path, (*(const aq_plan_file *const *)y)->path);
}

void aq_files_index(const aq_plan *plan, aq_file_index *ret)
{
    *ret = (aq_file_index){.row = aq_alloc((plan->file_count + 1) * sizeof *ret->row),
                           .seen = aq_alloc(plan->file_count + 1)};
    for (size_t i = 0; i < plan->file_count; i++)
        if (!aq_files_in_root(&plan->files[i]))
            ret->row[ret->count++] = &plan->files[i];
    if (ret->count)
        qsort(ret->row, ret->count, sizeof *ret->row, by_path);
}

void aq_files_index_free(aq_file_index *x)
{
    free(x->row);
    free(x->seen);
}

const aq_plan_file *aq_files_find(aq_file_index *x, const char *path)
{
    const aq_plan_file key = {.path = path}, *k = &key;
    const aq_plan_file **hit =
        x->count ? bsearch(&k, x->row, x->count, sizeof *x->row, by_path) : NULL;

    if (!hit)
        return NULL;
    x->seen[hit - x->row] = 1;
    return *hit;
}

/* Does the open file still hold what it began with? */
bool aq_files_same(int fd, const aq_plan_file *f, char *buffer, size_t size)
{
    size_t at = 0;
    ssize_t n;

    if (f->say)
        return aq_large_same(fd, f, buffer, size);
    while ((n = read(fd, buffer, size)) > 0) {
        if ((size_t)n > f->len - at || memcmp(buffer, f->data + at, (size_t)n) != 0)
            return false;
        at += (size_t)n;
    }
    return n == 0 && at == f->len;
}
