/* What our own processes around a world may still ask of the kernel: what they need works, anything
 * else kills. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/world.h"
#include "unit.h"

typedef long act(void);

/* The wait status of a child that locks itself and acts. */
static int locked(aq_own who, act *what)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        aq_err err = {0};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || aq_lock(who, &err) < 0)
            _exit(9);
        _exit(what() < 0 ? 1 : 0);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static long nothing(void)
{
    return 0;
}

static long make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long make_file(void)
{
    return open("/dev/null", O_WRONLY | O_CREAT, 0600);
}

static long read_file(void)
{
    return open("/dev/null", O_RDONLY);
}

static long make_process(void)
{
    return syscall(SYS_fork);
}

static long make_program(void)
{
    return execve("/bin/true", (char *[]){NULL}, (char *[]){NULL});
}

static long make_code(void)
{
    return (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static long enter_mounts(void)
{
    return setns(0, CLONE_NEWNS);
}

static long enter_users(void) /* allowed; fails because of the descriptor */
{
    return setns(-1, CLONE_NEWUSER);
}

static long trace(void) /* allowed to the keeper; there is nobody to trace */
{
    return syscall(SYS_ptrace, 7, 0, 0, 0);
}

static long call_of_i386(void)
{
    long r;

    __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory"); /* getpid */
    return r;
}

static long remove_folder(void) /* allowed to the warden; there is no such folder */
{
    return unlinkat(AT_FDCWD, "/no/such", AT_REMOVEDIR);
}

static void all_may_end(void **state)
{
    (void)state;
    assert_int_equal(locked(AQ_OWN_KEEPER, nothing), 0);
    assert_int_equal(locked(AQ_OWN_INIT, nothing), 0);
    assert_int_equal(locked(AQ_OWN_WARDEN, nothing), 0);
}

static void forbidden_calls_kill(void **state)
{
    static act *const bad[] = {make_socket, make_file,    make_process, make_program,
                               make_code,   enter_mounts, call_of_i386};
    static const aq_own who[] = {AQ_OWN_KEEPER, AQ_OWN_INIT, AQ_OWN_WARDEN};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t w = 0; w < sizeof who / sizeof *who; w++) {
            int status = locked(who[w], bad[i]);

            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGSYS);
        }
}

static void each_has_its_own_list(void **state)
{
    (void)state;
    assert_int_equal(locked(AQ_OWN_KEEPER, read_file), 0);
    assert_int_equal(locked(AQ_OWN_KEEPER, enter_users), 1 << 8);
    assert_int_equal(locked(AQ_OWN_KEEPER, trace), 1 << 8);
    assert_int_equal(locked(AQ_OWN_WARDEN, remove_folder), 1 << 8);
    assert_int_equal(WTERMSIG(locked(AQ_OWN_KEEPER, remove_folder)), SIGSYS);
    assert_int_equal(WTERMSIG(locked(AQ_OWN_WARDEN, trace)), SIGSYS);
    assert_int_equal(WTERMSIG(locked(AQ_OWN_WARDEN, enter_users)), SIGSYS);
    assert_int_equal(WTERMSIG(locked(AQ_OWN_INIT, read_file)), SIGSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_may_end),
        cmocka_unit_test(forbidden_calls_kill),
        cmocka_unit_test(each_has_its_own_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
