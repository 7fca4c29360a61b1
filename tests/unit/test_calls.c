/* The table of calls: complete, well formed, and nothing dangerous runs by mistake. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/syscalls.h"
#include "observe/decode.h"

static const char *const in_table[] = {
#define AQ_COUNT(name, attempt, after)                            #name,
#define AQ_SEE(name, attempt, after, kind, op, shape, look, note) #name,
#define AQ_REFUSE(name, code, shape)                              #name,
#include "observe/calls.def"
#undef AQ_COUNT
#undef AQ_SEE
#undef AQ_REFUSE
};
enum { ROWS = sizeof in_table / sizeof *in_table };

static void every_call_has_one_row(void **state)
{
    int seen[AQ_SYSCALL_NUMBERS] = {0};

    (void)state;
    for (int i = 0; i < ROWS; i++) {
        long nr = aq_syscall_number(in_table[i]);

        if (nr < 0)
            fail_msg("%s is in calls.def and no call", in_table[i]);
        if (seen[nr]++)
            fail_msg("%s has two rows", in_table[i]);
    }
    for (long nr = 0; nr < AQ_SYSCALL_NUMBERS; nr++) {
        const aq_call_row *row = aq_call_row_of(nr);

        if (!aq_syscall_name(nr)) {
            assert_int_equal(row->treat, AQ_TREAT_UNKNOWN);
            continue;
        }
        if (!seen[nr])
            fail_msg("%s has no row in calls.def", aq_syscall_name(nr));
        assert_string_equal(row->name, aq_syscall_name(nr));
        assert_int_not_equal(row->treat, AQ_TREAT_UNKNOWN);
    }
    assert_int_equal(aq_call_row_of(-1)->treat, AQ_TREAT_UNKNOWN);
    assert_int_equal(aq_call_row_of(1 << 20)->treat, AQ_TREAT_UNKNOWN);
}

static void rows_are_well_formed(void **state)
{
    (void)state;
    for (long nr = 0; nr < AQ_SYSCALL_NUMBERS; nr++) {
        const aq_call_row *row = aq_call_row_of(nr);
        const aq_decoder *d = row->decoder;

        switch (row->treat) {
        case AQ_TREAT_REFUSE:
            assert_true(row->code == EPERM || row->code == ENOSYS || row->code == EACCES);
            assert_null(row->attempt);
            assert_non_null(d);
            assert_string_equal(d->op, "refused");
            break;
        case AQ_TREAT_SEE:
            assert_non_null(d);
            assert_true(d->look || d->note);
            break;
        case AQ_TREAT_COUNT:
            assert_null(d);
            break;
        default:
            break;
        }
        /* A shape is drawn by both halves or by none. */
        if (d && d->look == aq_shape_look && row->treat == AQ_TREAT_SEE)
            assert_non_null(d->shape);
    }
}

static bool known_name(const char *name, size_t len)
{
    static const char *const names[] = {
#define AQ_ARG_NAME(n) n,
#include "observe/arg_names.def"
#undef AQ_ARG_NAME
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            return true;
    return false;
}

static void check_shape(const char *call, const char *shape)
{
    int words = 0;

    for (const char *p = shape; *p; words++) {
        const char *before = p;
        char type = *p++;
        size_t len = 0;

        if (!strchr("-dplfiunFst", type))
            fail_msg("%s: no word %c", call, type);
        if (*p == ':') {
            len = strcspn(++p, " ");
            if (!known_name(p, len))
                fail_msg("%s: no name %.*s", call, (int)len, p);
            /* Two arguments of one name would be no event. */
            for (const char *q = shape; q + len + 1 < before; q++)
                if (*q == ':' && strncmp(q + 1, p, len) == 0 && strchr(" ", q[1 + len]))
                    fail_msg("%s: two of name %.*s", call, (int)len, p);
            p += len;
        }
        /* Numbers and texts need a name; what is skipped has none. */
        if (strchr("iunst", type) && len == 0)
            fail_msg("%s: a %c without a name", call, type);
        assert_true(*p == ' ' || *p == '\0');
        p += *p == ' ';
    }
    assert_in_range(words, 1, 6);
}

static void shapes_are_words(void **state)
{
    int shapes = 0;

    (void)state;
    for (long nr = 0; nr < AQ_SYSCALL_NUMBERS; nr++) {
        const aq_call_row *row = aq_call_row_of(nr);

        if (row->decoder && row->decoder->shape) {
            check_shape(row->name, row->decoder->shape);
            shapes++;
        }
    }
    assert_true(shapes > 100);
}

static bool known_op(aq_event_kind kind, const char *op)
{
    for (size_t i = 0; i < aq_op_count; i++)
        if (aq_ops[i].kind == kind && strcmp(aq_ops[i].op, op) == 0)
            return true;
    return false;
}

static void ops_are_known_and_documented(void **state)
{
    aq_auto_buf page = {0}, path = {0};
    aq_err err;

    (void)state;
    assert_true(aq_op_count < AQ_FLOOD_OPS);
    for (long nr = 0; nr < AQ_SYSCALL_NUMBERS; nr++) {
        const aq_decoder *d = aq_call_row_of(nr)->decoder;

        if (d && !known_op(d->kind, d->op))
            fail_msg("%s: ops.def has no %s", aq_syscall_name(nr), d->op);
    }
    aq_buf_addf(&path, "%s/docs/formats/event.md", getenv("AQUARIUM_SOURCE"));
    assert_int_equal(aq_read_file(AT_FDCWD, path.data, 1 << 20, &page, &err), 0);
    for (size_t i = 0; i < aq_op_count; i++) {
        aq_auto_buf row = {0};

        aq_buf_addf(&row, "| `%s` | `%s` | %s |\n", aq_event_kind_name(aq_ops[i].kind),
                    aq_ops[i].op, aq_ops[i].what);
        if (!strstr(page.data, row.data))
            fail_msg("docs/formats/event.md lacks: %s", row.data);
    }
}

/* What must never run, whoever edits the table. */
static const char never[] =
    "io_uring_setup io_uring_enter io_uring_register io_setup io_submit userfaultfd bpf "
    "perf_event_open init_module finit_module delete_module kexec_load kexec_file_load "
    "mount umount2 fsopen fsconfig fsmount fspick open_tree open_tree_attr move_mount "
    "mount_setattr pivot_root chroot swapon swapoff reboot setns process_madvise kcmp "
    "add_key request_key keyctl iopl ioperm modify_ldt quotactl quotactl_fd acct "
    "settimeofday clock_settime adjtimex clock_adjtime "
    "open_by_handle_at lookup_dcookie vhangup nfsservctl pidfd_getfd fanotify_init "
    "fanotify_mark memfd_secret syslog sethostname setdomainname futex_wait futex_waitv "
    "uselib _sysctl ";

static void dangerous_calls_are_refused(void **state)
{
    static const char *const decided[] = {
        "ptrace",     "seccomp", "unshare",          "personality",       "clone",
        "clone3",     "prctl",   "process_vm_readv", "process_vm_writev", "socket",
        "socketpair", "ioctl",   "name_to_handle_at"};

    (void)state;
    for (const char *at = never; *at; at += strcspn(at, " ") + 1) {
        char name[32];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
        if (aq_call_row_of(aq_syscall_number(name))->treat != AQ_TREAT_REFUSE)
            fail_msg("%s is not refused", name);
    }
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        if (!aq_call_row_of(aq_syscall_number(decided[i]))->attempt)
            fail_msg("%s runs whatever its arguments are", decided[i]);
    assert_int_equal(aq_call_row_of(AQ_NR_io_uring_setup)->code, ENOSYS);
    assert_int_equal(aq_call_row_of(AQ_NR_mount)->code, EPERM);
}

typedef enum wait_how { EMULATED = 1, ASKED, TRIED, BORN, REFUSED } wait_how;

static wait_how how_it_waits(const char *name)
{
    static const struct {
        const char *name;
        wait_how how;
    } waits[] = {
#define AQ_WAIT(call, how) {#call, how},
#include "observe/waits.def"
#undef AQ_WAIT
    };

    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        if (strcmp(waits[i].name, name) == 0)
            return waits[i].how;
    return 0;
}

/* Whoever may park a task says so in waits.def, and whoever is there does something about it. */
static void waits_are_known(void **state)
{
    static aq_attempt *const park[] = {
        aq_try_io,    aq_try_connect,   aq_try_accept, aq_try_poll,        aq_try_select,
        aq_try_wait,  aq_try_file_lock, aq_try_fcntl,  aq_try_ipc,         aq_try_open,
        aq_try_futex, aq_try_sleep,     aq_try_yield,  aq_try_signal_wait, aq_try_clone,
        aq_try_send,  aq_try_message,   aq_try_copy,   aq_try_queue};
    int rows = 0;

    (void)state;
    for (long nr = 0; nr < AQ_SYSCALL_NUMBERS; nr++) {
        const aq_call_row *row = aq_call_row_of(nr);
        wait_how how = row->name ? how_it_waits(row->name) : 0;
        bool parks = false;

        for (size_t i = 0; i < sizeof park / sizeof *park; i++)
            parks |= row->attempt == park[i];
        if (parks != (how != 0 && how != REFUSED))
            fail_msg("%s: calls.def and waits.def differ", row->name);
        if (how == REFUSED)
            assert_int_equal(row->treat, AQ_TREAT_REFUSE);
        rows += how != 0;
    }
#define AQ_WAIT(call, how) rows--;
#include "observe/waits.def"
#undef AQ_WAIT
    assert_int_equal(rows, 0); /* none twice, none that is no call */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_one_row),
        cmocka_unit_test(rows_are_well_formed),
        cmocka_unit_test(shapes_are_words),
        cmocka_unit_test(ops_are_known_and_documented),
        cmocka_unit_test(dangerous_calls_are_refused),
        cmocka_unit_test(waits_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
