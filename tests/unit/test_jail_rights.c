/* What the jail takes away apart from system calls. Under the filter a forbidden call kills, so
 * nobody sees whether Landlock, the namespaces and the rest hold as well; they are the second wall
 * for the day on which a call slips through the first. Here a child runs the lock without its
 * filter and tries; a twin that ran no lock must succeed at each of the same attempts. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "jail/internal.h"
#include "jail/lock.h"
#include "kernel/landlock.h"
#include "kernel/process.h"

enum { REFUSED = 42, ANSWER = AQ_JAIL_FIRST_FD, SECONDS = 5, SOMEONE = 12345 };
static const uint64_t memory = UINT64_C(256) << 20;

/* The child: free, or locked in as root or as an ordinary user, or when its parent is gone. */
typedef enum way { FREE, LOCKED, LOCKED_USER, ORPHANED } way;

typedef struct scene {
    char folder[64]; /* open to all, so that only Landlock can be in the way */
    pid_t neighbour; /* a process of the same user */
} scene;

/* ---- what is tried ---- */

static int try_open(const scene *s)
{
    (void)s;
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}

static int try_list(const scene *s)
{
    return open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int try_create(const scene *s)
{
    char path[96];

    snprintf(path, sizeof path, "%s/made", s->folder);
    return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_make_folder(const scene *s)
{
    char path[96];

    snprintf(path, sizeof path, "%s/folder", s->folder);
    return mkdir(path, 0700);
}

static int try_remove(const scene *s)
{
    char path[96];

    snprintf(path, sizeof path, "%s/there", s->folder);
    return unlink(path);
}

static int try_truncate(const scene *s)
{
    char path[96];

    snprintf(path, sizeof path, "%s/long", s->folder);
    return truncate(path, 0);
}

static int try_bind(const scene *s)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)s;
    return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&any, sizeof any);
}

static int try_signal(const scene *s)
{
    return kill(s->neighbour, 0);
}

static const struct {
    const char *what;
    int (*try)(const scene *s);
    int abi; /* the first Landlock that refuses it */
    int refusal;
} attempts[] = {
    {"open a file", try_open, 1, EACCES},     {"list a folder", try_list, 1, EACCES},
    {"create a file", try_create, 1, EACCES}, {"make a folder", try_make_folder, 1, EACCES},
    {"remove a file", try_remove, 1, EACCES}, {"truncate a file", try_truncate, 3, EACCES},
    {"bind a port", try_bind, 4, EACCES},     {"signal a neighbour", try_signal, 6, EPERM},
};
enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

typedef struct answer {
    int lock; /* what the lock returned */
    aq_jail_hello hello;
    int outcome[ATTEMPTS]; /* 0 or errno */
    int no_new_privileges, dumpable, death_signal;
    uint32_t user, capabilities;
    char network[64]; /* the namespace's name */
    uint64_t limits[RLIM_NLIMITS];
    unsigned descriptors; /* open ones beyond those that it was given */
} answer;

/* ---- the child ---- */

static void look_at_oneself(answer *a)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    a->no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    a->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_GET_PDEATHSIG, &a->death_signal, 0, 0, 0);
    syscall(SYS_capget, &head, data);
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        a->capabilities |= data[i].effective | data[i].permitted | data[i].inheritable;
    a->user = geteuid();
    for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
        struct rlimit l = {0};
        a->limits[i] = getrlimit((__rlimit_resource_t)i, &l) == 0 ? l.rlim_max : 0;
    }
    for (int fd = ANSWER + 1; fd < 256; fd++)
        a->descriptors += fcntl(fd, F_GETFD) >= 0;
    if (readlink("/proc/self/ns/net", a->network, sizeof a->network - 1) < 0)
        a->network[0] = '\0';
}

/* Ends with status 0 if it may still execute a program, with REFUSED if Landlock forbids it. */
_Noreturn static void child(const scene *s, way how)
{
    const aq_jail_job job = {"rights", NULL, memory, SECONDS, NULL};
    char *const argv[] = {(char[]){"true"}, NULL}, *const envp[] = {NULL};
    answer a = {0};
    aq_err err = {0};

    if (how == LOCKED_USER && geteuid() == 0)
        a.lock = setresgid(SOMEONE, SOMEONE, SOMEONE) | setresuid(SOMEONE, SOMEONE, SOMEONE);
    if (a.lock == 0 && how != FREE)
        a.lock = aq_jail_lock_rights(&job, 1, &a.hello, &err);
    else if (a.lock == 0)
        a.lock = aq_process_become(AQ_JAIL_NOBODY, &err);
    look_at_oneself(&a); /* before the attempts leave descriptors */
    for (size_t i = 0; i < ATTEMPTS; i++)
        a.outcome[i] = attempts[i].try(s) < 0 ? errno : 0;
    if (write(ANSWER, &a, sizeof a) != sizeof a)
        _exit(1);
    execve("/bin/true", argv, envp);
    _exit(errno == EACCES ? REFUSED : 2);
}

static int run(const scene *s, way how, answer *ret)
{
    int sockets[2], pipes[2], status;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    if (how == ORPHANED) { /* the other end goes, and its number with it */
        close(sockets[0]);
        sockets[0] = -1;
    }
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int socket = fcntl(sockets[1], F_DUPFD, 64), out = fcntl(pipes[1], F_DUPFD, 64);
        if (dup2(socket, AQ_JAIL_SOCKET) < 0 || dup2(out, ANSWER) < 0)
            _exit(1);
        child(s, how);
    }
    close(pipes[1]);
    assert_int_equal(aq_read_full(pipes[0], ret, sizeof *ret), sizeof *ret);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    close(pipes[0]);
    if (sockets[0] >= 0)
        close(sockets[0]);
    close(sockets[1]);
    return WEXITSTATUS(status);
}

/* ---- the scene ---- */

static void put(const scene *s, const char *name)
{
    char path[96];

    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    aq_auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0666), 0);
}

static pid_t start_neighbour(void)
{
    int pipes[2];
    char ready;
    pid_t pid;

    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        aq_err err;
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (aq_process_become(AQ_JAIL_NOBODY, &err) < 0 || write(pipes[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    close(pipes[0]);
    return pid;
}

static int set_up(void **state)
{
    scene *s = calloc(1, sizeof *s);

    snprintf(s->folder, sizeof s->folder, "/tmp/aquarium-rights.XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(chmod(s->folder, 0777), 0);
    put(s, "there");
    put(s, "long");
    s->neighbour = start_neighbour();
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"made", "there", "long"};
    scene *s = *state;
    char path[96];

    kill(s->neighbour, SIGKILL);
    waitpid(s->neighbour, NULL, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/folder", s->folder);
    rmdir(path);
    rmdir(s->folder);
    free(s);
    return 0;
}

/* ---- what must hold ---- */

static void without_the_lock_all_succeed(void **state)
{
    answer a;

    assert_int_equal(run(*state, FREE, &a), 0);
    assert_int_equal(a.lock, 0);
    assert_true(a.descriptors > 0 && a.limits[RLIMIT_NPROC] > 0 && a.limits[RLIMIT_FSIZE] > 0);
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (a.outcome[i] != 0)
            fail_msg("the twin cannot %s: %s", attempts[i].what, strerror(a.outcome[i]));
}

static void landlock_is_applied(void **state)
{
    int abi = aq_landlock_abi();
    answer a;
    int status;

    if (abi == 0) {
        print_message("# hardware: this kernel has no Landlock\n");
        skip();
    }
    if (abi > AQ_LANDLOCK_ABI_KNOWN)
        abi = AQ_LANDLOCK_ABI_KNOWN;
    status = run(*state, LOCKED, &a);
    assert_int_equal(a.lock, 0);
    assert_int_equal(a.hello.landlock, abi);
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (attempts[i].abi <= abi && a.outcome[i] != attempts[i].refusal)
            fail_msg("locked in, it could %s (%s)", attempts[i].what, strerror(a.outcome[i]));
    assert_int_equal(status, REFUSED);
}

static void the_other_rights_are_gone(void **state)
{
    char outside[64] = {0};
    answer a;

    for (way how = LOCKED; how <= LOCKED_USER; how++) {
        run(*state, how, &a);
        assert_int_equal(a.lock, 0);
        assert_int_equal(a.no_new_privileges, 1);
        assert_int_equal(a.dumpable, 0);
        assert_int_equal(a.death_signal, SIGKILL);
        assert_int_equal(a.capabilities, 0);
        assert_int_not_equal(a.user, 0);
        assert_true(readlink("/proc/self/ns/net", outside, sizeof outside - 1) > 0);
        if (a.hello.namespaces && *a.network)
            assert_string_not_equal(a.network, outside);
        assert_int_equal(a.hello.seccomp, 0); /* this part says nothing of the filter */
    }
}

/* As docs/formats/jail.md says them. */
static void limits_hold(void **state)
{
    answer a;

    run(*state, LOCKED, &a);
    assert_int_equal(a.lock, 0);
    assert_int_equal(a.limits[RLIMIT_CPU], SECONDS + 1);
    assert_int_equal(a.limits[RLIMIT_NOFILE], 256);
    assert_int_equal(a.limits[RLIMIT_CORE], 1); /* less than any core; at 0 a collector gets one */
    assert_int_equal(a.limits[RLIMIT_FSIZE], 0);
    assert_int_equal(a.limits[RLIMIT_MEMLOCK], 0);
    assert_int_equal(a.limits[RLIMIT_NPROC], 0);
    if (AQ_SANITIZED)
        return; /* its own memory, and a helper that reads its reports */
    assert_int_equal(a.limits[RLIMIT_AS], memory);
    assert_int_equal(a.descriptors, 0);
}

static void an_orphan_does_not_begin(void **state)
{
    answer a;

    run(*state, ORPHANED, &a);
    assert_int_equal(a.lock, -EPIPE);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(without_the_lock_all_succeed), T(landlock_is_applied),
        T(the_other_rights_are_gone),    T(limits_hold),
        T(an_orphan_does_not_begin),
    };

    return cmocka_run_group_tests_name("jail_rights", tests, NULL, NULL);
}
