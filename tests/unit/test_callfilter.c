/* The filters of calls: every number gets its verdict, whatever the table looks like, and
 * the kernel takes it. */
#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/callfilter.h"
#include "kernel/syscalls.h"

enum { I386 = AUDIT_ARCH_I386, X64 = AUDIT_ARCH_X86_64, X32 = 0x40000000, COUNT = 512 };

/* The few instructions that the filter uses, as the kernel runs them. */
static uint32_t run_with(const aq_callfilter *f, const struct seccomp_data *d, int *steps)
{
    uint32_t a = 0;
    size_t pc = 0;

    for (*steps = 1;; (*steps)++) {
        const struct sock_filter *i;

        assert_true(pc < f->len);
        i = &f->code[pc++];
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)d + i->k, sizeof a);
            break;
        case BPF_JMP | BPF_JA:
            pc += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            pc += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            pc += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            pc += a & i->k ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            fail_msg("instruction %x", i->code);
        }
    }
}

static uint32_t run(const aq_callfilter *f, uint32_t arch, uint32_t nr, int *steps)
{
    return run_with(f, &(struct seccomp_data){.nr = (int)nr, .arch = arch}, steps);
}

static int make(const bool *shown, size_t count, aq_callfilter *ret)
{
    aq_call_verdict of[COUNT + 1];
    aq_err err;

    for (size_t i = 0; i < count; i++)
        of[i] = (aq_call_verdict){.action = shown[i] ? SECCOMP_RET_TRACE : SECCOMP_RET_TRAP};
    return aq_callfilter_make(of, count, SECCOMP_RET_TRAP, ret, &err);
}

static int check(const bool *shown, size_t count)
{
    static aq_callfilter f;
    int most = 0, steps;

    assert_int_equal(make(shown, count, &f), 0);
    for (uint32_t n = 0; n < 1024; n++) {
        bool want = n < count && shown[n];

        assert_int_equal(run(&f, (uint32_t)X64, n, &steps),
                         want ? SECCOMP_RET_TRACE : SECCOMP_RET_TRAP);
        most = steps > most ? steps : most;
        assert_int_equal(run(&f, (uint32_t)X64, n | X32, &steps), SECCOMP_RET_TRAP);
        assert_int_equal(run(&f, I386, n, &steps), SECCOMP_RET_TRAP);
    }
    assert_int_equal(run(&f, (uint32_t)X64, UINT32_MAX, &steps), SECCOMP_RET_TRAP);
    return most;
}

static void every_number_gets_its_verdict(void **state)
{
    bool shown[COUNT] = {0};
    unsigned seed = 1;

    (void)state;
    check(shown, 0);
    check(shown, COUNT);
    memset(shown, 1, sizeof shown);
    check(shown, COUNT);
    for (int i = 0; i < COUNT; i++)
        shown[i] = i % 2; /* as many runs as there can be: jumps beyond a byte */
    assert_true(check(shown, COUNT) <= 18);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++)
            shown[i] = (seed = seed * 1103515245 + 12345) >> 16 & 1;
        check(shown, (size_t)(seed >> 8) % (COUNT + 1));
    }
}

/* Every third number looks at an argument, which makes the leaves long. */
static void arguments_are_looked_at(void **state)
{
    static aq_call_verdict of[COUNT];
    static aq_callfilter f;
    aq_err err;
    int steps;

    (void)state;
    for (uint32_t n = 0; n < COUNT; n++)
        of[n] = (aq_call_verdict){
            .action = SECCOMP_RET_ALLOW, .mask = n % 3 ? 0 : 4 + (n & 1), .argument = n % 6};
    assert_int_equal(aq_callfilter_make(of, COUNT, SECCOMP_RET_KILL_PROCESS, &f, &err), 0);
    for (uint32_t n = 0; n < COUNT; n++) {
        struct seccomp_data d = {.nr = (int)n, .arch = (uint32_t)X64};

        assert_int_equal(run_with(&f, &d, &steps), SECCOMP_RET_ALLOW);
        d.args[n % 6] = 8;
        assert_int_equal(run_with(&f, &d, &steps), SECCOMP_RET_ALLOW);
        d.args[n % 6] = 4;
        assert_int_equal(run_with(&f, &d, &steps),
                         n % 3 ? SECCOMP_RET_ALLOW : SECCOMP_RET_KILL_PROCESS);
    }
    assert_int_equal(run(&f, (uint32_t)X64, COUNT, &steps), SECCOMP_RET_KILL_PROCESS);
    assert_int_equal(run(&f, I386, 0, &steps), SECCOMP_RET_KILL_PROCESS);
}

static void too_many_are_refused(void **state)
{
    static bool shown[COUNT + 1];
    static aq_callfilter f;

    (void)state;
    assert_int_equal(make(shown, COUNT + 1, &f), -E2BIG);
}

/* In a child: getppid is trapped (SIGSYS), getpid is shown to a tracer that is not there (ENOSYS).
 */
static int in_child(bool trapped)
{
    bool shown[COUNT];
    static aq_callfilter f;
    aq_err err;

    memset(shown, 1, sizeof shown);
    shown[AQ_NR_getppid] = false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || make(shown, COUNT, &f) < 0 ||
        aq_callfilter_install(&f, &err) < 0)
        return 1;
    if (trapped)
        return syscall(SYS_getppid) ? 2 : 3; /* not reached: the signal kills */
    return syscall(SYS_getpid) == -1 && errno == ENOSYS ? 0 : 4;
}

static void the_kernel_takes_it(void **state)
{
    (void)state;
    for (int trapped = 0; trapped < 2; trapped++) {
        int status = 0;
        pid_t pid = fork();

        if (pid == 0) {
            signal(SIGILL, SIG_DFL); /* the test library catches both */
            signal(SIGSYS, SIG_DFL);
            /* exit, too, is shown to nobody, so a child ends by a fault: this one when all was
             * right, by a breakpoint when it was not. */
            if (in_child(trapped) == 0)
                __asm__ volatile("ud2");
            __asm__ volatile("int3");
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), trapped ? SIGSYS : SIGILL);
    }
}

static void names_and_numbers(void **state)
{
    (void)state;
    assert_string_equal(aq_syscall_name(0), "read");
    assert_string_equal(aq_syscall_name(451), "cachestat");
    assert_string_equal(aq_syscall_name(469), "file_setattr");
    assert_null(aq_syscall_name(-1));
    assert_null(aq_syscall_name(400)); /* a hole */
    assert_null(aq_syscall_name(512));
    assert_int_equal(aq_syscall_number("openat2"), 437);
    assert_int_equal(aq_syscall_number("openat3"), -1);
    for (long i = 0; i < AQ_SYSCALL_NUMBERS; i++)
        if (aq_syscall_name(i))
            assert_int_equal(aq_syscall_number(aq_syscall_name(i)), i);
    assert_int_equal(AQ_NR_clone3, SYS_clone3); /* the system's header agrees */
    assert_int_equal(AQ_NR_futex_waitv, 449);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_gets_its_verdict),
        cmocka_unit_test(arguments_are_looked_at),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(the_kernel_takes_it),
        cmocka_unit_test(names_and_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
