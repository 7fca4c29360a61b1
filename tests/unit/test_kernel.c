/* The kernel room's mechanisms, each tried for real in a child that then tells what it saw. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/cgroup.h"
#include "kernel/landlock.h"
#include "kernel/mount.h"
#include "kernel/namespace.h"
#include "kernel/network.h"
#include "kernel/process.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return __LINE__;                                                                       \
    } while (0)

/* The line at which `act` found something wrong, 0 when nothing was. */
static int in_child(int (*act)(void))
{
    int line = -1, status, ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        line = act();
        _exit(write(ends[1], &line, sizeof line) == sizeof line ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &line, sizeof line) != sizeof line)
        line = -1;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return line;
}

/* Makes this process root of fresh namespaces. */
static int isolate(int namespaces)
{
    static const aq_id_map one = {0, 0, 0};
    aq_id_map me = one;

    me.user = geteuid();
    me.group = getegid();
    if (unshare(CLONE_NEWUSER | namespaces) < 0)
        return -1;
    return aq_namespace_map(getpid(), &me, 1, false, NULL);
}

static int landlocked(void)
{
    const aq_landlock_rule rules[] = {{"/", AQ_LANDLOCK_READ | AQ_LANDLOCK_RUN},
                                      {"/tmp", AQ_LANDLOCK_FILL | AQ_LANDLOCK_CHANGE},
                                      {"/no-such-folder", AQ_LANDLOCK_CHANGE}};
    char inside[] = "/tmp/aq-kernel-XXXXXX";
    aq_err err = {0};

    CHECK(aq_process_no_new_privileges(&err) == 0);
    CHECK(aq_landlock_allow(rules, 3, true, &err) > 0);
    CHECK(open("/etc/passwd", O_RDONLY) >= 0);
    CHECK(open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
    CHECK(open("/var/aq-kernel-test", O_WRONLY | O_CREAT, 0600) < 0 && errno == EACCES);
    CHECK(mkdtemp(inside) != NULL);
    CHECK(rmdir(inside) == 0);
    CHECK(mknod("/tmp/aq-kernel-node", S_IFCHR | 0600, 0x103) < 0);
    CHECK(socket(AF_INET, SOCK_STREAM, 0) >= 0);
    if (aq_landlock_abi() >= 6)
        CHECK(kill(getppid(), 0) < 0 && errno == EPERM);
    return 0;
}

static void landlock_rules(void **state)
{
    (void)state;
    assert_true(aq_landlock_abi() > 0);
    assert_int_equal(in_child(landlocked), 0);
}

static int reach(uint32_t address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

    a.sin_addr.s_addr = htonl(address);
    r = connect(fd, (struct sockaddr *)&a, sizeof a) < 0 ? errno : 0;
    close(fd);
    return r;
}

static int local_network(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(4711)};
    int fd;

    CHECK(isolate(CLONE_NEWNET) == 0);
    CHECK(reach(0xc6336407, 80) == ENETUNREACH); /* 198.51.100.7 */
    CHECK(aq_network_local(0x0a00020f, 24, NULL) >= 0);
    CHECK(reach(0xc6336407, 80) == ECONNREFUSED);
    CHECK(reach(0x7f000001, 4711) == ECONNREFUSED);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 1) == 0);
    CHECK(reach(0xc6336407, 4711) == 0);
    CHECK(aq_network_local(0x0a00020f, 24, NULL) == -EEXIST); /* told, not passed over */
    return 0;
}

static void network(void **state)
{
    (void)state;
    assert_int_equal(in_child(local_network), 0);
}

static int new_root(void)
{
    static const aq_mount_option options[] = {{"size", "1m"}, {"nr_inodes", "64"}, {0}};
    static const aq_mount_option wrong[] = {{"no-such-option", "1"}, {0}};
    aq_err err = {0};
    int root, usr;

    /* A mount of somebody else's below the tree, which this namespace may not take away. */
    if (geteuid() == 0) {
        CHECK(unshare(CLONE_NEWNS) == 0 &&
              mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        CHECK(mount("/usr/bin/env", "/usr/bin/env", NULL, MS_BIND, NULL) == 0);
    }
    CHECK(isolate(CLONE_NEWNS) == 0);
    CHECK(aq_mount_new("tmpfs", wrong, 0, &err) < 0 && strstr(err.text, "tmpfs"));
    CHECK(aq_mount_new("no-such-fs", NULL, 0, &err) < 0);
    CHECK(aq_mount_copy(AT_FDCWD, "/no-such-folder", false, 0, &err) == -ENOENT);
    root = aq_mount_new("tmpfs", options, AQ_MOUNT_NO_SUID | AQ_MOUNT_NO_DEVICES, &err);
    usr = aq_mount_copy(AT_FDCWD, "/usr", false, AQ_MOUNT_READ_ONLY | AQ_MOUNT_NO_SUID, &err);
    CHECK(root >= 0 && usr >= 0);
    CHECK(mkdirat(root, "usr", 0755) == 0);
    CHECK(aq_mount_attach(root, AT_FDCWD, "/", &err) == 0);
    CHECK(aq_mount_attach(usr, root, "usr", &err) == 0);
    CHECK(aq_mount_restrict(root, AQ_MOUNT_READ_ONLY, &err) == 0);
    CHECK(aq_mount_become_root(root, &err) == 0);
    CHECK(aq_mount_leave_old(&err) == 0);
    CHECK(access("/usr/bin", F_OK) == 0 && access("/etc", F_OK) < 0);
    CHECK(mkdir("/x", 0700) < 0 && errno == EROFS);
    CHECK(mkdir("/usr/x", 0700) < 0 && errno == EROFS);
    CHECK(access("/..", F_OK) == 0 && access("/../etc", F_OK) < 0);
    return 0;
}

static void mounts(void **state)
{
    (void)state;
    assert_int_equal(in_child(new_root), 0);
}

static void namespaces(void **state)
{
    aq_id_map me = {1000, geteuid(), getegid()};
    int pidfd = -1, ends[2], status;
    char seen[64] = "";
    aq_err err = {0};
    char byte;
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    pid = aq_namespace_clone(CLONE_NEWUSER | CLONE_NEWPID, -1, &pidfd, &err);
    assert_true(pid >= 0);
    if (pid == 0) {
        if (read(ends[1], &byte, 1) != 1)
            _exit(1);
        snprintf(seen, sizeof seen, "%d %u %u", (int)syscall(SYS_getpid), getuid(), getgid());
        _exit(write(ends[1], seen, sizeof seen) > 0 ? 0 : 1);
    }
    assert_true(pidfd >= 0);
    assert_int_equal(aq_namespace_map(pid, &me, 1, false, &err), 0);
    assert_int_equal(write(ends[0], "m", 1), 1);
    assert_true(read(ends[0], seen, sizeof seen) > 0);
    assert_string_equal(seen, "1 1000 1000");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(pidfd);
    close(ends[0]);
    close(ends[1]);
    /* The root of the host knows all ids; a namespace with one knows one. */
    assert_int_equal(aq_namespace_ids(geteuid(), 1), 1);
}

static int one_id(void)
{
    CHECK(isolate(0) == 0);
    CHECK(aq_namespace_ids(0, 1) == 1);
    CHECK(aq_namespace_ids(1, 5) == 0);
    CHECK(aq_namespace_ids(0, 100) == 1);
    CHECK(aq_namespace_last_ids(1) == 0);
    return 0;
}

static void ids(void **state)
{
    (void)state;
    assert_int_equal(in_child(one_id), 0);
}

enum {
    ROOTLESS = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
               SECBIT_NO_SETUID_FIXUP_LOCKED,
};

static int without_way_up(void)
{
    aq_err err = {0};

    CHECK(isolate(0) == 0);
    CHECK(prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1);
    CHECK(aq_process_no_way_up(&err) == 0);
    CHECK(aq_process_no_capabilities(&err) == 0);
    CHECK(prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 0);
    CHECK(unshare(CLONE_NEWNS) < 0 && errno == EPERM);
    CHECK(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) < 0);
    /* Root is nobody special, and no capability comes back as an ambient one; for good. */
    CHECK((prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) & ROOTLESS) == ROOTLESS);
    return 0;
}

static int only_these_descriptors(void)
{
    int a = fcntl(0, F_DUPFD, 10), b = fcntl(0, F_DUPFD, 20), c = fcntl(0, F_DUPFD, 30);
    int keep[] = {c, -1, a, 1};

    CHECK(a >= 10 && b > a && c > b);
    CHECK(aq_process_close_but(keep, 4, NULL) == 0);
    CHECK(fcntl(0, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0);
    CHECK(fcntl(a, F_GETFD) >= 0 && fcntl(c, F_GETFD) >= 0);
    CHECK(fcntl(b, F_GETFD) < 0 && fcntl(3, F_GETFD) < 0);
    return 0;
}

static int forgetful(void)
{
    char line[256] = "";
    int fd;

    aq_process_forget_start("nobody");
    fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, line, sizeof line - 1) > 0);
    CHECK(strcmp(line, "nobody") == 0);
    return 0;
}

static void process(void **state)
{
    (void)state;
    assert_int_equal(in_child(without_way_up), 0);
    assert_int_equal(in_child(forgetful), 0);
}

/* Closing all the rest would close the test's own pipe: the answer is the exit status. */
static void descriptors(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0)
        _exit(only_these_descriptors() ? 1 : 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static bool exists(const char *name)
{
    static const char *const trees[] = {"memory", "pids", "cpuacct", "unified", "."};
    bool found = false;

    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        char path[256];
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", trees[i], name);
        found |= access(path, F_OK) == 0;
    }
    return found;
}

/* As far as the host lets us: a member is counted, cannot have more children than allowed, and is
 * killed with its group. */
static void cgroup(void **state)
{
    aq_cgroup_usage u;
    aq_cgroup g;
    int status;
    pid_t pid;

    (void)state;
    aq_cgroup_make(64 << 20, 2, &g);
    if (!g.pids) { /* not root: there is nothing, and that is fine */
        assert_true(aq_cgroup_remove(&g, 10));
        aq_cgroup_close(&g);
        return;
    }
    assert_non_null(aq_cgroup_level_name(g.pids));
    pid = fork();
    if (pid == 0) {
        if (aq_cgroup_join(&g, NULL) < 0)
            _exit(1);
        for (int i = 0; i < 4; i++)
            if (fork() == 0)
                pause();
        for (;;)
            pause();
    }
    for (int i = 0; i < 500; i++) {
        aq_cgroup_read(&g, &u);
        if (u.refused >= 3)
            break;
        usleep(2000);
    }
    if (g.place[2].join >= 0 || g.pids == AQ_CGROUP_V1)
        assert_true(u.refused >= 3);
    assert_true(aq_cgroup_remove(&g, 2000));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_false(exists(g.name));
    aq_cgroup_close(&g);
}

/* A group of a dead process of another pid namespace, beside `mine`. */
static bool foreign_group(const aq_cgroup *mine, char name[static AQ_CGROUP_NAME])
{
    snprintf(name, AQ_CGROUP_NAME, "aquarium-1234-%d-1-0", 4000000);
    return mine->place[2].parent >= 0 && mkdirat(mine->place[2].parent, name, 0755) == 0;
}

/* An owner that is gone leaves its group; whoever comes next removes it, and no other. */
static void sweep(void **state)
{
    char foreign[AQ_CGROUP_NAME];
    aq_cgroup mine, theirs;
    bool other;
    int status;
    pid_t pid;

    (void)state;
    aq_cgroup_make(64 << 20, 8, &mine);
    pid = fork();
    if (pid == 0) {
        aq_cgroup_make(64 << 20, 8, &theirs);
        _exit(0);
    }
    /* Dead is dead, whether or not somebody has waited for it. */
    assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    other = foreign_group(&mine, foreign);
    aq_cgroup_sweep(200);
    assert_true(!mine.pids || aq_cgroup_allowed());
    if (mine.pids) {
        char pattern[128];
        assert_true(exists(mine.name));
        snprintf(pattern, sizeof pattern, "ls /sys/fs/cgroup/*/ | grep -q -- -%d-", (int)pid);
        assert_int_not_equal(system(pattern), 0);
    }
    /* Whose pids mean something elsewhere is not ours to judge. */
    assert_true(!other || unlinkat(mine.place[2].parent, foreign, AT_REMOVEDIR) == 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(aq_cgroup_remove(&mine, 100));
    aq_cgroup_close(&mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(landlock_rules), cmocka_unit_test(network), cmocka_unit_test(mounts),
        cmocka_unit_test(namespaces),     cmocka_unit_test(ids),     cmocka_unit_test(process),
        cmocka_unit_test(descriptors),    cmocka_unit_test(cgroup),  cmocka_unit_test(sweep),
    };

    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
