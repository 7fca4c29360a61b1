/* The state folder: keys, store and ledger, opened together; see walk.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cleanroom/walk.h"

char *aq_home_path(const char *given, aq_err *err)
{
    const char *own = getenv("AQUARIUM_HOME"), *xdg = getenv("XDG_STATE_HOME");
    const char *user = getenv("HOME");
    aq_auto_buf b = {0};

    if (given && *given)
        aq_buf_adds(&b, given);
    else if (own && *own)
        aq_buf_adds(&b, own);
    else if (xdg && *xdg == '/')
        aq_buf_addf(&b, "%s/aquarium", xdg);
    else if (user && *user == '/')
        aq_buf_addf(&b, "%s/.local/state/aquarium", user);
    else {
        aq_fail(err, -ENOENT, "no state folder: set HOME or AQUARIUM_HOME, or pass --state DIR");
        return NULL;
    }
    return aq_buf_take(&b);
}

int aq_home_open(const char *path, aq_home *ret, aq_err *err)
{
    __attribute__((cleanup(aq_home_close))) aq_home h = {.dirfd = -1};
    struct stat st;
    int r;

    h.path = aq_home_path(path, err);
    if (!h.path)
        return err->code;
    r = aq_make_dirs(h.path, err);
    if (r < 0)
        return aq_err_within(err, "state folder");
    h.dirfd = open(h.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h.dirfd < 0 || fstat(h.dirfd, &st) < 0)
        return aq_fail_errno(err, "cannot open the state folder %s", h.path);
    /* Who can write here can replace the keys. */
    if (st.st_mode & 022)
        return aq_fail(err, -EPERM, "state folder %s can be written by others: chmod go-w it",
                       h.path);
    if ((r = aq_keys_open(h.dirfd, &h.keys, err)) < 0 ||
        (r = aq_store_open(h.path, &h.store, err)) < 0 ||
        (r = aq_ledger_open(h.dirfd, h.keys, &h.ledger, err)) < 0)
        return r;
    *ret = h;
    h = (aq_home){.dirfd = -1};
    return 0;
}

int aq_home_open_existing(const char *path, aq_home *ret, aq_err *err)
{
    aq_auto_free char *found = aq_home_path(path, err);
    aq_auto_buf key = {0};

    if (!found)
        return err->code;
    aq_buf_addf(&key, "%s/keys/instance.key", found);
    if (access(aq_buf_str(&key), F_OK) < 0)
        return aq_fail(err, -ENOENT,
                       "no state folder at %s: the first 'aquarium validate' makes one; name "
                       "another with --state DIR",
                       found);
    return aq_home_open(path, ret, err);
}

int aq_home_check_ledger(aq_home *h, aq_err *err)
{
    uint64_t known = 0, size = 0;
    aq_auto_buf note = {0};
    aq_digest root;
    int r = aq_store_entries(h->store, &known, err);

    if (r == 0)
        r = aq_ledger_checkpoint(h->ledger, &note, &size, &root, err);
    if (r == -ENOENT) /* never published */
        r = 0;
    if (r < 0 || known <= size)
        return r;
    return aq_fail(err, -EBADMSG,
                   "the ledger has %llu published entries, but the store knows of %llu: it was cut "
                   "or replaced; put the right one back",
                   (unsigned long long)size, (unsigned long long)known);
}

void aq_home_close(aq_home *h)
{
    if (!h)
        return;
    aq_ledger_close(h->ledger);
    aq_store_close(h->store);
    aq_keys_free(h->keys);
    if (h->dirfd >= 0)
        close(h->dirfd);
    free(h->path);
    *h = (aq_home){.dirfd = -1};
}
