/* A folder on the command line, read by the front itself: names and bytes are copied and hashed,
 * never interpreted, so no parser and no jail is needed.
 *
 * Entries are visited in the order of their full paths, so that a budget ends at the same file on
 * every machine. Nothing is followed and nothing but regular files is opened; what is swapped
 * between the look and the open is noticed by looking again at what was opened. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cleanroom/paths.h"
#include "cleanroom/unpack.h"

typedef struct walk {
    aq_front *front;
    aq_buf path;
    bool stopped;
    uint64_t folders;
} walk;

typedef struct name {
    char *text; /* with a '/' at the end for a folder: that is the order of full paths */
    unsigned char type;
} name;

typedef struct listing {
    name *items;
    size_t count, cap;
} listing;

static void free_listing(listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i].text);
    free(l->items);
}

static uint64_t limit(const walk *w, aq_budget_kind kind)
{
    return w->front->budget->limit[kind];
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const name *)a)->text, ((const name *)b)->text);
}

static unsigned char type_of(int dir, const struct dirent *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN)
        return d->d_type;
    return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? IFTODT(st.st_mode) : DT_UNKNOWN;
}

static void keep(listing *l, const char *text, unsigned char type)
{
    size_t n = strlen(text);
    char *copy = aq_alloc(n + 2);

    memcpy(copy, text, n);
    if (type == DT_DIR)
        copy[n] = '/';
    if (l->count == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 64;
        l->items = aq_realloc(l->items, l->cap, sizeof *l->items);
    }
    l->items[l->count++] = (name){copy, type};
}

/* Reads the names of a folder; takes the descriptor. More than both budgets together are cut: the
 * walk will end within them anyway. */
static int list(walk *w, int fd, listing *ret)
{
    uint64_t most = 2 * limit(w, AQ_BUDGET_FILES) + 2;
    DIR *dir = fdopendir(fd);
    struct dirent *d;
    int r;

    if (!dir) {
        r = -errno;
        close(fd);
        return r;
    }
    for (errno = 0; (d = readdir(dir)); errno = 0) {
        if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
            continue;
        keep(ret, d->d_name, type_of(fd, d));
        if (ret->count > most)
            break;
    }
    r = -errno;
    closedir(dir);
    if (r == 0 && ret->count > 0)
        qsort(ret->items, ret->count, sizeof *ret->items, by_text);
    return r;
}

static void unreadable(walk *w, const char *what, int error)
{
    aq_findings_add_incomplete(w->front->findings, AQ_RULE_INTAKE_UNREADABLE, aq_buf_str(&w->path),
                               "The %s could not be read: %s.", what, strerror(error));
    aq_front_unread(w->front, aq_buf_str(&w->path), "not readable", 0);
}

static void over_budget(walk *w, aq_budget_kind kind, uint64_t bytes, bool stop)
{
    aq_findings_add_incomplete(
        w->front->findings, AQ_RULE_INTAKE_BUDGET, aq_buf_str(&w->path),
        stop ? "The budget %s (%llu %s) ends here; this file and those after it were not read."
             : "Beyond the budget %s (%llu %s): not read.",
        aq_budget_name(kind), (unsigned long long)limit(w, kind), aq_budget_what(kind));
    aq_front_unread(w->front, aq_buf_str(&w->path),
                    aq_arena_printf(w->front->arena, "budget %s", aq_budget_name(kind)), bytes);
    if (stop) {
        w->stopped = true;
        aq_front_unread(w->front, "(everything after it)", "budget", 0);
    }
}

static void changed(walk *w)
{
    aq_findings_add_incomplete(w->front->findings, AQ_RULE_INTAKE_CHANGED, aq_buf_str(&w->path),
                               "The file changed while it was being read.");
    aq_front_unread(w->front, aq_buf_str(&w->path), "changed while being read", 0);
}

/* Copies up to the size that fstat told, then sees whether the file ends there. A read error is the
 * file's, a write error ours. */
static int copy(walk *w, int fd, uint64_t size, uint64_t *got, int *read_error, aq_err *err)
{
    aq_image *m = w->front->image;

    *got = 0;
    *read_error = 0;
    for (;;) {
        uint64_t left = size + 1 - *got; /* one more: a file that grew shows */
        void *room;
        ssize_t n;
        int r = aq_image_room(m, &room, err);
        if (r < 0)
            return r;
        n = read(fd, room, left < AQ_IMAGE_ROOM ? (size_t)left : AQ_IMAGE_ROOM);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *read_error = n < 0 ? errno : 0;
            return 0;
        }
        aq_image_filled(m, (size_t)n);
        *got += (uint64_t)n;
        if (*got > size)
            return 0;
        /* A short count means the end, for a regular file: no second call for small ones. */
        if (*got == size && (size_t)n < left && (size_t)n < AQ_IMAGE_ROOM)
            return 0;
    }
}

static int take(walk *w, int fd, const struct stat *st, aq_err *err)
{
    aq_front *f = w->front;
    uint64_t size = (uint64_t)st->st_size, got;
    struct stat after;
    int r, read_error;

    if (st->st_mode & (S_ISUID | S_ISGID))
        aq_findings_add(f->findings, AQ_RULE_INTAKE_SETUID, aq_buf_str(&w->path),
                        "The file has mode %04o.", st->st_mode & 07777);
    r = aq_image_begin(f->image, w->path.data, w->path.len, (st->st_mode & 0111) != 0, err);
    if (r < 0 || (r = copy(w, fd, size, &got, &read_error, err)) < 0)
        return r;
    if (read_error || got > size) {
        if (read_error)
            unreadable(w, "file", read_error);
        else
            changed(w);
        return aq_image_drop(f->image, err);
    }
    if (got < size || fstat(fd, &after) < 0 || !aq_unchanged(st, &after))
        changed(w);
    if ((r = aq_image_end(f->image, err)) < 0)
        return r;
    aq_front_progress(f);
    return 0;
}

static int file(walk *w, int dir, const char *leaf, aq_err *err)
{
    /* Without O_NONBLOCK a FIFO that was put there a moment ago would hold us. */
    aq_auto_fd int fd =
        openat(dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    uint64_t size;
    struct stat st;

    if (!aq_budget_spend(w->front->budget, AQ_BUDGET_FILES, 1)) {
        over_budget(w, AQ_BUDGET_FILES, 0, true);
        return 0;
    }
    if (fd < 0 || fstat(fd, &st) < 0) {
        unreadable(w, "file", errno);
        return 0;
    }
    if (!S_ISREG(st.st_mode)) {
        changed(w);
        return 0;
    }
    size = (uint64_t)st.st_size;
    if (size > limit(w, AQ_BUDGET_FILE_BYTES)) {
        over_budget(w, AQ_BUDGET_FILE_BYTES, size, false);
        return 0;
    }
    if (!aq_budget_spend(w->front->budget, AQ_BUDGET_BYTES, size)) {
        over_budget(w, AQ_BUDGET_BYTES, size, true);
        return 0;
    }
    return take(w, fd, &st, err);
}

/* No file of the package, and part of its digest all the same. */
static void left_out(walk *w, const char *kind, const char *what, size_t len)
{
    if (!aq_front_left_out(w->front, kind, w->path.data, w->path.len, what, len))
        over_budget(w, AQ_BUDGET_FILES, 0, true);
}

static void link_at(walk *w, int dir, const char *leaf)
{
    char target[4097];
    ssize_t n = readlinkat(dir, leaf, target, sizeof target - 1);

    if (n < 0) {
        unreadable(w, "link", errno);
        return;
    }
    target[n] = '\0';
    if (!aq_link_stays(aq_buf_str(&w->path), target, (size_t)n))
        aq_findings_add(w->front->findings, AQ_RULE_INTAKE_LINK_ESCAPE, aq_buf_str(&w->path),
                        "Symbolic link to %.200s.", target);
    left_out(w, "link", target, (size_t)n);
}

static const char *special_name(unsigned char type)
{
    switch (type) {
    case DT_FIFO:
        return "a FIFO";
    case DT_SOCK:
        return "a socket";
    case DT_CHR:
        return "a character device";
    case DT_BLK:
        return "a block device";
    default:
        return "of no known type";
    }
}

static void special(walk *w, unsigned char type)
{
    const char *what = special_name(type);

    aq_findings_add(w->front->findings, AQ_RULE_INTAKE_SPECIAL, aq_buf_str(&w->path),
                    "The entry is %s.", what);
    left_out(w, "special", what, strlen(what));
}

static int folder(walk *w, int fd, unsigned depth, aq_err *err);

static int subfolder(walk *w, int dir, const char *leaf, unsigned depth, aq_err *err)
{
    int fd;

    if (depth >= limit(w, AQ_BUDGET_DEPTH)) {
        over_budget(w, AQ_BUDGET_DEPTH, 0, false);
        return 0;
    }
    if (++w->folders > limit(w, AQ_BUDGET_FILES)) {
        over_budget(w, AQ_BUDGET_FILES, 0, true);
        return 0;
    }
    fd = openat(dir, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        unreadable(w, "folder", errno);
        return 0;
    }
    aq_front_add_folder(w->front, w->path.data, w->path.len);
    return folder(w, fd, depth + 1, err);
}

static int one(walk *w, int dir, name *n, unsigned depth, aq_err *err)
{
    size_t before = w->path.len, len = strlen(n->text);
    int r = 0;

    if (n->type == DT_DIR)
        n->text[--len] = '\0';
    if (before > 0)
        aq_buf_addc(&w->path, '/');
    aq_buf_add(&w->path, n->text, len);
    if (w->path.len > limit(w, AQ_BUDGET_PATH))
        over_budget(w, AQ_BUDGET_PATH, 0, false);
    else if (n->type == DT_DIR)
        r = subfolder(w, dir, n->text, depth, err);
    else if (n->type == DT_REG)
        r = file(w, dir, n->text, err);
    else if (n->type == DT_LNK)
        link_at(w, dir, n->text);
    else
        special(w, n->type);
    w->path.len = before;
    w->path.data[before] = '\0';
    return r;
}

/* Takes the descriptor. */
static int folder(walk *w, int fd, unsigned depth, aq_err *err)
{
    __attribute__((cleanup(free_listing))) listing l = {0};
    aq_auto_fd int dir = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    int r = list(w, fd, &l);

    if (dir < 0 || r < 0) {
        if (w->path.len == 0)
            return aq_fail(err, r < 0 ? r : -EMFILE, "cannot read the folder: %s",
                           strerror(r < 0 ? -r : EMFILE));
        unreadable(w, "folder", r < 0 ? -r : EMFILE);
        return 0;
    }
    for (size_t i = 0; i < l.count && !w->stopped; i++)
        if ((r = one(w, dir, &l.items[i], depth, err)) < 0)
            return r;
    return 0;
}

int aq_front_folder(aq_front *f, int fd, aq_err *err)
{
    walk w = {.front = f};
    int r = folder(&w, fd, 0, err);

    aq_buf_free(&w.path);
    return r;
}
