/* The state folder: keys, store and ledger, opened together; see walk.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Who owns the folder, or can write to it, can replace the keys. */
static int check_owner(const aq_home *h, aq_err *err)
{
    struct stat st;

    if (fstat(h->dirfd, &st) < 0)
        return aq_fail_errno(err, "cannot look at the state folder %s", h->path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return aq_fail(err, -EPERM,
                       "state folder %s belongs to another user; name your own with "
                       "--state DIR",
                       h->path);
    if (st.st_mode & 022)
        return aq_fail(err, -EPERM, "state folder %s can be written by others: chmod go-w it",
                       h->path);
    return 0;
}

int aq_home_ledger_failed(const aq_home *h, aq_err *err)
{
    size_t n;

    aq_err_within(err, "%s/ledger", h->path);
    n = strlen(err->text);
    if (err->code == -EBADMSG || err->code == -ENOENT)
        snprintf(err->text + n, sizeof err->text - n,
                 "; put it back from a copy: 'aquarium ledger verify' then says whether all of it "
                 "holds");
    return err->code;
}

/* A ledger is made only for a store that knows of none: else it was removed, and an empty one in
 * its place would have forgotten what was revoked. */
static int open_ledger(aq_home *h, bool make, aq_err *err)
{
    uint64_t known = 0;
    int r = 0;

    if (faccessat(h->dirfd, "ledger", F_OK, 0) < 0 &&
        ((r = aq_store_entries(h->store, &known, err)) < 0 || (!make && known == 0)))
        return r;
    if (known > 0)
        r = aq_fail(err, -EBADMSG, "the ledger is gone, but the store knows of %llu entries",
                    (unsigned long long)known);
    else
        r = aq_ledger_open(h->dirfd, h->keys, &h->ledger, err);
    return r < 0 ? aq_home_ledger_failed(h, err) : 0;
}

static int open_home(const char *path, bool make, bool lost, aq_home *ret, aq_err *err)
{
    __attribute__((cleanup(aq_home_close))) aq_home h = {.dirfd = -1};
    int r;

    h.path = aq_home_path(path, err);
    if (!h.path)
        return err->code;
    if (make && (r = aq_make_dirs(h.path, err)) < 0)
        return aq_err_within(err, "state folder");
    h.dirfd = open(h.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (h.dirfd < 0)
        return aq_fail_errno(err, "cannot open the state folder %s", h.path);
    if ((r = check_owner(&h, err)) < 0)
        return r;
    /* Keys name their files from the state folder on. */
    if ((r = aq_keys_open(h.dirfd, &h.keys, err)) < 0)
        return aq_err_within(err, "state folder %s", h.path);
    if ((r = aq_store_open(h.path, &h.store, err)) < 0)
        return r;
    r = open_ledger(&h, make, err);
    if (r == -EBADMSG && lost && !h.ledger)
        r = 0;
    if (r < 0)
        return r;
    *ret = h;
    h = (aq_home){.dirfd = -1};
    return 0;
}

int aq_home_open(const char *path, aq_home *ret, aq_err *err)
{
    return open_home(path, true, false, ret, err);
}

static int must_exist(const char *path, aq_err *err)
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
    return 0;
}

int aq_home_open_existing(const char *path, aq_home *ret, aq_err *err)
{
    int r = must_exist(path, err);

    return r < 0 ? r : open_home(path, true, false, ret, err);
}

int aq_home_open_to_check(const char *path, aq_home *ret, aq_err *err)
{
    int r = must_exist(path, err);

    return r < 0 ? r : open_home(path, false, true, ret, err);
}

static int check_marked(aq_home *h, aq_err *err)
{
    aq_auto_buf entry = {0};
    aq_digest marked, leaf;
    uint64_t entries = 0;
    int r = aq_store_marked(h->store, &entries, &marked, err);

    if (r < 0 || entries == 0)
        return r;
    r = aq_ledger_entry(h->ledger, entries - 1, &entry, err);
    leaf = aq_ledger_leaf(aq_buf_str(&entry), entry.len);
    if (r == 0 && !aq_digest_equal(&leaf, &marked))
        r = aq_fail(err, -EBADMSG,
                    "entry %llu is another one than the store knows: it was replaced",
                    (unsigned long long)(entries - 1));
    return r < 0 ? aq_home_ledger_failed(h, err) : 0;
}

int aq_home_check_ledger(aq_home *h, aq_err *err)
{
    uint64_t known = 0, size = 0;
    int r = aq_store_entries(h->store, &known, err);

    if (r < 0)
        return r;
    if (h->ledger && (r = aq_ledger_size(h->ledger, &size, err)) < 0)
        return aq_home_ledger_failed(h, err);
    if (known <= size)
        return check_marked(h, err);
    aq_fail(err, -EBADMSG,
            "it has %llu entries, but the store knows of %llu: it was cut or replaced",
            (unsigned long long)size, (unsigned long long)known);
    return aq_home_ledger_failed(h, err);
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
