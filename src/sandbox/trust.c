/* The authorities that a world trusts: the host's bundle and one more, a company's own, which signs
 * what the world's internet shows. What they hold together is a file of the root out of sight,
 * shown over the host's. */
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

/* ---- Java ---- */

static uint32_t number_at(const aq_buf *b, size_t at)
{
    const uint8_t *p = (const uint8_t *)b->data + at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What the host's Java trusts, and the plan's one more. A host that has it in another form trusts
 * nobody else inside. */
static void add_host(const aq_plan *plan, int host, aq_buf *all)
{
    uint32_t count;
    struct stat st;
    ssize_t n;

    if (plan->keystore_len <= AQ_KEYSTORE_HEAD + AQ_KEYSTORE_SEAL || fstat(host, &st) < 0 ||
        st.st_size > BUNDLE || st.st_size < AQ_KEYSTORE_HEAD + AQ_KEYSTORE_SEAL)
        return;
    aq_buf_reserve(all, (size_t)st.st_size + plan->keystore_len);
    n = aq_pread_full(host, all->data, (size_t)st.st_size, 0);
    if (n != st.st_size || number_at(all, 0) != AQ_KEYSTORE_MAGIC ||
        number_at(all, 4) != AQ_KEYSTORE_VERSION)
        return;
    all->len = (size_t)st.st_size - AQ_KEYSTORE_SEAL;
    count = number_at(all, 8) + 1;
    for (int i = 0; i < 4; i++)
        all->data[8 + i] = (char)(count >> (24 - 8 * i));
    aq_buf_add(all, plan->keystore + AQ_KEYSTORE_HEAD,
               plan->keystore_len - AQ_KEYSTORE_HEAD - AQ_KEYSTORE_SEAL);
    aq_keystore_seal(all);
}

static int write_keystore(const aq_plan *plan, int host, int own)
{
    aq_auto_buf all = {0};

    add_host(plan, host, &all);
    return all.len > 0 ? aq_write_full(own, all.data, all.len)
                       : aq_write_full(own, plan->keystore, plan->keystore_len);
}

/* ---- everybody else ---- */

static int write_bundle(const aq_plan *plan, int host, int own)
{
    struct stat st;
    off_t at = 0;

    if (fstat(host, &st) < 0 || st.st_size > BUNDLE)
        return -EFBIG;
    while (at < st.st_size)
        if (sendfile(own, host, &at, (size_t)(st.st_size - at)) <= 0)
            return errno ? -errno : -EIO;
    return aq_write_full(own, plan->authority, strlen(plan->authority));
}

/* Over the host's file of that path; where it has none it trusts nobody. */
static int place(const aq_world *w, const char *path, const char *name,
                 int (*fill)(const aq_plan *plan, int host, int own), aq_err *err)
{
    aq_auto_fd int host = openat(w->root.top, path, O_RDONLY | O_CLOEXEC);
    int own, r;

    if (host < 0)
        return 0;
    own = openat(w->root.hidden, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    r = own < 0 ? -errno : fill(w->plan, host, own);
    if (own >= 0)
        close(own); /* before the root is sealed */
    if (r < 0)
        return aq_fail(err, r, "cannot write /%s inside: %s", path, strerror(-r));
    aq_auto_fd int mount = aq_mount_copy(w->root.hidden, name, false, SEALED, err);
    return mount < 0 ? mount : aq_mount_attach(mount, w->root.top, path, err);
}

int aq_trust_place(const aq_world *w, aq_err *err)
{
    int r = 0;

    if (w->plan->rootfs)
        return 0;
    if (w->plan->authority)
        r = place(w, "etc/ssl/certs/ca-certificates.crt", "bundle", write_bundle, err);
    if (r == 0 && w->plan->keystore)
        r = place(w, "etc/ssl/certs/java/cacerts", "keystore", write_keystore, err);
    return r;
}
