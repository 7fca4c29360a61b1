/* What a hostile parser would try from inside the jail: each attempt must end in death by the
 * filter, and the parent must say so. A control job that only uses what is allowed must live. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/digest.h"
#include "base/io.h"
#include "jail/jail.h"

/* What a parser that was taken over would try: a system call and its arguments. */
enum { PAGE = 4096 };
static char page[PAGE];
static const struct {
    long number, args[6];
} tries[] = {
    {SYS_open, {(long)"/etc/passwd", O_RDONLY}},
    {SYS_openat, {AT_FDCWD, (long)"/etc/passwd", O_RDONLY}},
    {SYS_openat, {AT_FDCWD, (long)"/tmp/aquarium-escape", O_WRONLY | O_CREAT, 0600}},
    {SYS_socket, {AF_INET, SOCK_STREAM, 0}},
    {SYS_connect, {3, (long)page, 16}},
    {SYS_execve, {(long)"/bin/true", 0, 0}},
    {SYS_fork, {0}},
    {SYS_clone, {SIGCHLD, 0, 0, 0, 0}},
    {SYS_clone3, {(long)page, 64}},
    {SYS_ptrace, {PTRACE_TRACEME, 0, 0, 0}},
    {SYS_kill, {1, SIGKILL}},
    {SYS_tgkill, {1, 1, SIGKILL}},
    {SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0}},
    {SYS_mprotect, {(long)page, 4096, PROT_READ | PROT_EXEC}},
    {SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}},
    {SYS_newfstatat, {AT_FDCWD, (long)"/etc/passwd", (long)page, 0}},
    {SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0}},
    {SYS_setrlimit, {RLIMIT_AS, (long)page}},
    {SYS_unshare, {0}},
    {SYS_mount, {(long)"none", (long)"/", (long)"tmpfs", 0, 0}},
    {SYS_getdents64, {4, (long)page, PAGE}},
    {SYS_unlink, {(long)"/tmp/x"}},
    {SYS_memfd_create, {(long)"x", 0}},
    {SYS_io_uring_setup, {1, (long)page}},
    {SYS_bpf, {0, (long)page, 8}},
    {SYS_dup2, {3, 100}},
    {0x40000000 | SYS_getpid, {0}}, /* an x32 number */
    {SYS_pidfd_open, {1, 0}},
    {SYS_shmget, {1, 4096, 0600}},
    {SYS_readlink, {(long)"/proc/self/exe", (long)page, PAGE}},
    {SYS_sendto, {3, (long)page, 1, 0, 0, 0}},
    {SYS_rt_sigaction, {SIGSYS, 0, 0, 8}},
};
enum { TRIES = sizeof tries / sizeof *tries, ATTEMPTS = TRIES + 1 };

/* One attempt by number; returns the system call's result if it was let through. */
static long attempt(unsigned n)
{
    long r = -1;

    if (n < TRIES) {
        const long *a = tries[n].args;
        return syscall(tries[n].number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    if (n == TRIES) /* a call of the other architecture, through its own gate */
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return r;
}

static int job_attempt(aq_jail_io *io, aq_err *err)
{
    int fds[AQ_JAIL_FRAME_FDS];
    const void *payload;
    size_t len, count;
    uint16_t type;
    long result;

    if (aq_jail_recv(io, &type, &payload, &len, fds, &count, err) < 0)
        return -EIO;
    result = attempt(type);
    return aq_jail_send(io, 1, &result, sizeof result, err);
}

/* Which descriptors are there? Only the four fixed ones and what was given. */
static int job_descriptors(aq_jail_io *io, aq_err *err)
{
    struct stat st;

    for (int fd = 0; fd < 256; fd++) {
        uint16_t number = (uint16_t)fd;
        if (syscall(SYS_fstat, fd, &st) == 0 &&
            aq_jail_send(io, 1, &number, sizeof number, err) < 0)
            return -EIO;
    }
    return 0;
}

/* No environment and no argument but its own may reach it; a read-only file stays unwritten. */
static int job_control(aq_jail_io *io, aq_err *err)
{
    extern char **environ;
    aq_digest d = aq_sha256("x", 1);
    char *p = malloc(8 << 20);
    char text[4];

    if (environ && *environ)
        return aq_fail(err, -EINVAL, "has an environment");
    if (!p || pread(aq_jail_fd(io, 0), text, 4, 0) != 4)
        return aq_fail(err, -EINVAL, "cannot do what is allowed");
    if (write(aq_jail_fd(io, 0), "evil", 4) != -1)
        return aq_fail(err, -EINVAL, "could write");
    free(p);
    return aq_jail_send(io, 1, &d, sizeof d, err);
}

/* A writable descriptor is no way out either: the size limit is zero. */
static int job_writes(aq_jail_io *io, aq_err *err)
{
    char block[64] = {0};

    (void)err;
    return write(aq_jail_fd(io, 0), block, sizeof block) == sizeof block ? 0 : -EIO;
}

static void warm(void)
{
    aq_sha256("", 0);
}

static const aq_jail_job jobs[] = {
    {"attempt", job_attempt, 256 << 20, 2, NULL},
    {"descriptors", job_descriptors, 256 << 20, 2, NULL},
    {"control", job_control, 256 << 20, 2, warm},
    {"writes", job_writes, 256 << 20, 2, NULL},
    {.name = NULL},
};

static void attempts_are_fatal(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < ATTEMPTS; i++) {
        const void *payload;
        aq_err err = {0};
        uint16_t type;
        size_t len;
        aq_jail *j;
        int r;

        assert_int_equal(aq_jail_start("attempt", NULL, 0, &j, &err), 0);
        assert_int_equal(aq_jail_request(j, i, NULL, 0, NULL, 0, &err), 0);
        r = aq_jail_next(j, &type, &payload, &len, &err);
        if (r == 1)
            fail_msg("attempt %u was let through", i);
        assert_int_equal(r, -EPIPE);
        if (!strstr(err.text, "forbidden system call"))
            fail_msg("attempt %u: %s", i, err.text);
        aq_jail_stop(j);
    }
    assert_int_equal(access("/tmp/aquarium-escape", F_OK), -1);
}

static void only_given_descriptors(void **state)
{
    aq_err err = {0};
    aq_auto_fd int secret = open("/etc/hostname", O_RDONLY); /* on purpose without O_CLOEXEC */
    aq_auto_fd int given = aq_temp_fd(NULL, &err);
    const void *payload;
    uint16_t type, number;
    size_t len;
    aq_jail *j;

    (void)state;
    assert_true(secret >= 0);
    assert_int_equal(aq_jail_start("descriptors", &given, 1, &j, &err), 0);
    for (uint16_t want = 0; want <= 4; want++) {
        assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 1);
        memcpy(&number, payload, sizeof number);
        assert_int_equal(number, want);
    }
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
}

static void allowed_work_is_done(void **state)
{
    aq_err err = {0};
    aq_auto_fd int file = aq_temp_fd(NULL, &err);
    aq_auto_fd int given = -1;
    aq_digest want = aq_sha256("x", 1);
    const void *payload;
    uint16_t type;
    size_t len;
    aq_jail *j;

    (void)state;
    setenv("AQUARIUM_SECRET", "do not pass on", 1);
    assert_int_equal(aq_write_full(file, "good", 4), 0);
    given = aq_reopen_read_only(file, &err);
    assert_int_equal(aq_jail_start("control", &given, 1, &j, &err), 0);
    if (aq_jail_next(j, &type, &payload, &len, &err) != 1)
        fail_msg("%s", err.text);
    assert_memory_equal(payload, &want, sizeof want);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), 0);
    aq_jail_stop(j);
}

static void files_cannot_grow(void **state)
{
    aq_err err = {0};
    aq_auto_fd int file = aq_temp_fd(NULL, &err);
    const void *payload;
    struct stat st;
    uint16_t type;
    size_t len;
    aq_jail *j;

    (void)state;
    assert_int_equal(aq_jail_start("writes", &file, 1, &j, &err), 0);
    assert_int_equal(aq_jail_next(j, &type, &payload, &len, &err), -EPIPE);
    aq_jail_stop(j);
    assert_int_equal(fstat(file, &st), 0);
    assert_int_equal(st.st_size, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_are_fatal),
        cmocka_unit_test(only_given_descriptors),
        cmocka_unit_test(allowed_work_is_done),
        cmocka_unit_test(files_cannot_grow),
    };

    if (aq_jail_is_child(argc, argv))
        aq_jail_child(jobs, argc, argv);
    return cmocka_run_group_tests_name("jail_escape", tests, NULL, NULL);
}
