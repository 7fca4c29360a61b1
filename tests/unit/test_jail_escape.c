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

/* One attempt by number; returns the system call's result if it was let through. */
static long attempt(unsigned n)
{
    static char page[4096];

    switch (n) {
    case 0:
        return syscall(SYS_open, "/etc/passwd", O_RDONLY);
    case 1:
        return syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
    case 2:
        return syscall(SYS_openat, AT_FDCWD, "/tmp/aquarium-escape", O_WRONLY | O_CREAT, 0600);
    case 3:
        return syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
    case 4:
        return syscall(SYS_connect, 3, page, 16);
    case 5:
        return syscall(SYS_execve, "/bin/true", NULL, NULL);
    case 6:
        return syscall(SYS_fork);
    case 7:
        return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    case 8:
        return syscall(SYS_clone3, page, 64);
    case 9:
        return syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
    case 10:
        return syscall(SYS_kill, 1, SIGKILL);
    case 11:
        return syscall(SYS_tgkill, 1, 1, SIGKILL);
    case 12:
        return syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    case 13:
        return syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_EXEC);
    case 14:
        return syscall(SYS_process_vm_readv, 1, NULL, 0, NULL, 0, 0);
    case 15:
        return syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", page, 0);
    case 16:
        return syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
    case 17:
        return syscall(SYS_setrlimit, RLIMIT_AS, page);
    case 18:
        return syscall(SYS_unshare, 0);
    case 19:
        return syscall(SYS_mount, "none", "/", "tmpfs", 0, NULL);
    case 20:
        return syscall(SYS_getdents64, 4, page, sizeof page);
    case 21:
        return syscall(SYS_unlink, "/tmp/x");
    case 22:
        return syscall(SYS_memfd_create, "x", 0);
    case 23:
        return syscall(SYS_io_uring_setup, 1, page);
    case 24:
        return syscall(SYS_bpf, 0, page, 8);
    case 25:
        return syscall(SYS_dup2, 3, 100);
    case 26:
        return syscall(0x40000000 | SYS_getpid); /* an x32 number */
    case 27:
        return syscall(SYS_pidfd_open, 1, 0);
    case 28:
        return syscall(SYS_shmget, 1, 4096, 0600);
    case 29:
        return syscall(SYS_readlink, "/proc/self/exe", page, sizeof page);
    case 30:
        return syscall(SYS_sendto, 3, page, 1, 0, NULL, 0);
    case 31:
        return syscall(SYS_rt_sigaction, SIGSYS, NULL, NULL, 8);
    case 32: { /* a call of the other architecture, through its own gate */
        long r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
        return r;
    }
    default:
        return -1;
    }
}
enum { ATTEMPTS = 33 };

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
