/* Landlock; see landlock.h. */
#include "kernel/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    NR_CREATE_RULESET = 444,
    NR_ADD_RULE = 445,
    NR_RESTRICT_SELF = 446,
    CREATE_RULESET_VERSION = 1,
    RULE_PATH_BENEATH = 1,
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

/* The rights to files, one bit each, in the order in which the ABIs brought them. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14,
    IOCTL_DEV = 1 << 15,
};

static uint64_t rule_rights(unsigned may)
{
    uint64_t r = 0;

    if (may & AQ_LANDLOCK_READ)
        r |= READ_FILE | READ_DIR;
    if (may & AQ_LANDLOCK_RUN)
        r |= EXECUTE;
    if (may & AQ_LANDLOCK_FILL)
        r |= WRITE_FILE | TRUNCATE;
    if (may & AQ_LANDLOCK_CHANGE)
        r |= REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO | MAKE_SYM |
             REFER;
    if (may & AQ_LANDLOCK_DEVICES)
        r |= IOCTL_DEV;
    return r;
}

static int add_rule(int ruleset, const aq_landlock_rule *rule, uint64_t handled, aq_err *err)
{
    struct {
        uint64_t allowed;
        int32_t folder;
    } __attribute__((packed)) attr = {.allowed = rule_rights(rule->may) & handled};
    aq_auto_fd int folder = open(rule->path, O_PATH | O_CLOEXEC);

    if (folder < 0 && errno == ENOENT)
        return 0;
    attr.folder = folder;
    if (folder < 0 || syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
        return aq_fail_errno(err, "cannot add %s to a Landlock ruleset", rule->path);
    return 0;
}

int aq_landlock_allow(const aq_landlock_rule *rules, size_t count, bool tcp, aq_err *err)
{
    int abi = aq_landlock_abi();
    int known = abi > AQ_LANDLOCK_ABI_KNOWN ? AQ_LANDLOCK_ABI_KNOWN : abi;
    ruleset_attr attr = {0};
    size_t size;
    int r;

    if (known == 0)
        return 0;
    attr.handled_access_fs = bits(rights[known].fs);
    attr.handled_access_net = tcp ? 0 : bits(rights[known].net);
    attr.scoped = bits(rights[known].scope);
    size = known >= 6 ? sizeof attr : known >= 4 ? 16 : 8;
    aq_auto_fd int fd = (int)syscall(NR_CREATE_RULESET, &attr, size, 0);
    if (fd < 0)
        return aq_fail_errno(err, "cannot make a Landlock ruleset");
    for (size_t i = 0; i < count; i++)
        if ((r = add_rule(fd, &rules[i], attr.handled_access_fs, err)) < 0)
            return r;
    if (syscall(NR_RESTRICT_SELF, fd, 0) < 0)
        return aq_fail_errno(err, "cannot apply Landlock");
    return known;
}

int aq_landlock_deny_all(aq_err *err)
{
    return aq_landlock_allow(NULL, 0, false, err);
}
