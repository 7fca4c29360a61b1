/* The authorities that a world trusts: the host's bundle and one more, a company's own, which signs
 * what the world's internet shows. The bundle has its place before anybody is inside, as a file of
 * the space that nobody can write; what it holds is written with the other files of the plan. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/mount.h"
#include "sandbox/keystore.h"
#include "sandbox/world.h"

enum {
    SEALED = AQ_MOUNT_READ_ONLY | AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES | AQ_MOUNT_NO_EXEC,
    BUNDLE = 4 << 20, /* no host's is larger */
};

static const char bundle[] = "etc/ssl/certs/ca-certificates.crt", name[] = "trust",
                  keystore[] = "etc/ssl/certs/java/cacerts", store[] = "keystore";

uint64_t aq_trust_room(const aq_plan *plan)
{
    struct stat st, java;

    if (!plan->authority || plan->rootfs || stat("/etc/ssl/certs/ca-certificates.crt", &st) < 0)
        return 0;
    return ((uint64_t)st.st_size + strlen(plan->authority)) / 4096 * 4096 + 8192 +
           (stat("/etc/ssl/certs/java/cacerts", &java) < 0 ? 0 : (uint64_t)java.st_size) / 4096 *
               4096 +
           plan->keystore_len / 4096 * 4096 + 8192;
}

/* An empty file of the space, and a mount of it. */
static int make(const aq_world *w, const char *what, int *file, int *mount, aq_err *err)
{
    *file = openat(w->root.disk, what, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (*file < 0)
        return aq_fail_errno(err, "cannot make the bundle of authorities");
    *mount = aq_mount_copy(w->root.disk, what, false, SEALED, err);
    return *mount < 0 ? *mount : 0;
}

int aq_trust_make(aq_world *w, aq_err *err)
{
    int r;

    if (!aq_has_machine(w->plan) || w->plan->rootfs)
        return 0;
    r = make(w, name, &w->trust[1], &w->trust[2], err);
    if (r == 0 && access("/etc/ssl/certs/java/cacerts", F_OK) == 0)
        r = make(w, store, &w->trust[3], &w->trust[4], err);
    return r;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int aq_trust_place(aq_world *w, aq_err *err)
{
    int r = 0;

    if (w->trust[2] >= 0 && w->plan->authority)
        w->trust[0] = openat(w->root.top, bundle, O_RDONLY | O_CLOEXEC);
    if (w->trust[0] >= 0) /* else the host trusts nobody */
        r = aq_mount_attach(w->trust[2], w->root.top, bundle, err);
    if (w->trust[4] >= 0 && w->plan->keystore)
        w->trust[5] = openat(w->root.top, keystore, O_RDONLY | O_CLOEXEC);
    if (w->trust[4] >= 0 && r == 0 && w->plan->keystore)
        r = aq_mount_attach(w->trust[4], w->root.top, keystore, err);
    close_fd(&w->trust[2]);
    close_fd(&w->trust[4]);
    return r;
}

/* ---- Java ---- */

static uint32_t number_at(const aq_buf *b, size_t at)
{
    const uint8_t *p = (const uint8_t *)b->data + at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What the host's Java trusts, and the plan's one more. A host that has it in another form trusts
 * nobody else inside. */
static void add_host(const aq_world *w, aq_buf *all)
{
    uint32_t count;
    struct stat st;
    ssize_t n;

    if (w->trust[5] < 0 || fstat(w->trust[5], &st) < 0 || st.st_size > BUNDLE ||
        st.st_size < AQ_KEYSTORE_HEAD + AQ_KEYSTORE_SEAL)
        return;
    aq_buf_reserve(all, (size_t)st.st_size + w->plan->keystore_len);
    n = aq_pread_full(w->trust[5], all->data, (size_t)st.st_size, 0);
    if (n != st.st_size || number_at(all, 0) != AQ_KEYSTORE_MAGIC ||
        number_at(all, 4) != AQ_KEYSTORE_VERSION)
        return;
    all->len = (size_t)st.st_size - AQ_KEYSTORE_SEAL;
    count = number_at(all, 8) + 1;
    for (int i = 0; i < 4; i++)
        all->data[8 + i] = (char)(count >> (24 - 8 * i));
    aq_buf_add(all, w->plan->keystore + AQ_KEYSTORE_HEAD,
               w->plan->keystore_len - AQ_KEYSTORE_HEAD - AQ_KEYSTORE_SEAL);
    aq_keystore_seal(all);
}

static int write_keystore(const aq_world *w)
{
    aq_auto_buf all = {0};
    int r;

    if (w->plan->keystore_len > AQ_KEYSTORE_HEAD + AQ_KEYSTORE_SEAL)
        add_host(w, &all);
    r = all.len > 0 ? aq_write_full(w->trust[3], all.data, all.len)
                    : aq_write_full(w->trust[3], w->plan->keystore, w->plan->keystore_len);
    if (w->trust[5] >= 0)
        close(w->trust[5]);
    return r;
}

int aq_trust_write(const aq_world *w, aq_err *err)
{
    const char *own = w->plan->authority;
    struct stat st;
    off_t at = 0;
    int r = 0;

    if (w->trust[3] >= 0 && w->plan->keystore)
        r = write_keystore(w);
    if (w->trust[0] < 0)
        return 0;
    if (fstat(w->trust[0], &st) < 0 || st.st_size > BUNDLE)
        return aq_fail(err, -EFBIG, "the host's bundle of authorities is too large");
    while (r == 0 && at < st.st_size)
        if (sendfile(w->trust[1], w->trust[0], &at, (size_t)(st.st_size - at)) <= 0)
            r = errno ? -errno : -EIO;
    if (r == 0)
        r = aq_write_full(w->trust[1], own, strlen(own));
    close(w->trust[0]);
    close(w->trust[1]);
    return r < 0 ? aq_fail(err, r, "cannot write the bundle of authorities: %s", strerror(-r)) : 0;
}
