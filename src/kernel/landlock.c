/* Landlock; see landlock.h. */
#include "kernel/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    NR_CREATE_RULESET = 444,
    NR_RESTRICT_SELF = 446,
    CREATE_RULESET_VERSION = 1,
};

/* The kernel takes a shorter struct from older users; fields it does not know must not be sent. */
typedef struct ruleset_attr {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* since ABI 4 */
    uint64_t scoped;             /* since ABI 6 */
} ruleset_attr;

/* How many rights the kernel knows at each ABI; rights are bits from 0 upwards. */
static const struct {
    uint8_t fs, net, scope;
} rights[AQ_LANDLOCK_ABI_KNOWN + 1] = {
    [1] = {13, 0, 0}, /* execute … make_sym */
    [2] = {14, 0, 0}, /* refer */
    [3] = {15, 0, 0}, /* truncate */
    [4] = {15, 2, 0}, /* bind_tcp, connect_tcp */
    [5] = {16, 2, 0}, /* ioctl_dev */
    [6] = {16, 2, 2}, /* abstract unix sockets, signals */
    [7] = {16, 2, 2}, /* audit flags only */
};

static uint64_t bits(unsigned count)
{
    return (UINT64_C(1) << count) - 1;
}

int aq_landlock_abi(void)
{
    long abi = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

int aq_landlock_deny_all(aq_err *err)
{
    int abi = aq_landlock_abi();
    int known = abi > AQ_LANDLOCK_ABI_KNOWN ? AQ_LANDLOCK_ABI_KNOWN : abi;
    ruleset_attr attr = {0};
    size_t size;

    if (known == 0)
        return 0;
    attr.handled_access_fs = bits(rights[known].fs);
    attr.handled_access_net = bits(rights[known].net);
    attr.scoped = bits(rights[known].scope);
    size = known >= 6 ? sizeof attr : known >= 4 ? 16 : 8;
    aq_auto_fd int fd = (int)syscall(NR_CREATE_RULESET, &attr, size, 0);
    if (fd < 0)
        return aq_fail_errno(err, "cannot make a Landlock ruleset");
    if (syscall(NR_RESTRICT_SELF, fd, 0) < 0)
        return aq_fail_errno(err, "cannot apply Landlock");
    return known;
}
