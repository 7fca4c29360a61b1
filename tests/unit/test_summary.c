/* The summary of an observation: what is counted as read, written, reached for and slept, and that
 * neither a flood nor hostile text breaks its bounds. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/summary.h"

static aq_event event(aq_event_kind kind, const char *op, const char *object, int64_t result)
{
    return (aq_event){.kind = kind,
                      .op = op,
                      .object = object,
                      .object_len = object ? strlen(object) : 0,
                      .result = result};
}

static void number(aq_event *e, const char *name, int64_t n)
{
    e->args[e->arg_count++] = (aq_event_arg){.name = name, .number = n};
}

static void text(aq_event *e, const char *name, const char *s, size_t len)
{
    e->args[e->arg_count++] = (aq_event_arg){.name = name, .bytes = s, .len = len};
}

static bool has(const aq_summary_list *l, const char *row)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->rows[i].text, row) == 0)
            return true;
    return false;
}

static void files_are_told_apart(void **state)
{
    static const struct {
        int64_t flags, result;
        bool read, written;
    } rows[] = {
        {O_RDONLY, 3, true, false},   {O_WRONLY, 3, false, true},
        {O_RDWR, 3, true, true},      {O_RDONLY | O_CREAT, 3, true, true},
        {O_RDONLY, -2, false, false}, {O_RDONLY | O_DIRECTORY, 3, false, false},
        {O_PATH, 3, false, false},    {O_WRONLY | O_CREAT | O_TRUNC, 3, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_event e = event(AQ_EVENT_FILE, "open", "/x", rows[i].result);
        aq_summary s;

        number(&e, "flags", rows[i].flags);
        aq_summary_begin(&s, a);
        aq_summary_event(&e, &s);
        assert_int_equal(has(&s.files_read, "/x"), rows[i].read);
        assert_int_equal(has(&s.files_written, "/x"), rows[i].written);
    }
}

static void names_that_move(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_event e = event(AQ_EVENT_FILE, "rename", "/old", 0);
    aq_event failed = event(AQ_EVENT_FILE, "unlink", "/kept", -13);
    aq_event pipe = event(AQ_EVENT_FILE, "write", "pipe", 5);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    text(&e, "to", "/new", 4);
    aq_summary_event(&e, &s);
    aq_summary_event(&failed, &s);
    aq_summary_event(&pipe, &s);
    assert_true(has(&s.files_removed, "/old") && has(&s.files_written, "/new"));
    assert_true(s.files_removed.count == 1 && s.files_written.count == 1);
}

static void hosts_are_outside(void **state)
{
    static const char *const inner[] = {"unix:/run/x", "netlink", "socket:1/2", "vsock:3", ""};
    aq_auto_arena a = aq_arena_new();
    aq_event ask = event(AQ_EVENT_NETWORK, "dns-query", "a.example", 0);
    aq_event refused = event(AQ_EVENT_NETWORK, "connect", "198.51.100.7:443", -111);
    aq_event listens = event(AQ_EVENT_NETWORK, "bind", "0.0.0.0:80", 0);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    aq_summary_event(&ask, &s);
    aq_summary_event(&refused, &s);
    aq_summary_event(&listens, &s);
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        aq_event e = event(AQ_EVENT_NETWORK, "connect", inner[i], 0);

        aq_summary_event(&e, &s);
    }
    assert_int_equal(s.hosts.count, 2);
    assert_true(has(&s.hosts, "a.example") && has(&s.hosts, "198.51.100.7:443"));
}

static void what_was_not_to_be_had(void **state)
{
    static const struct {
        const char *op;
        int64_t result;
        bool absent, denied;
    } rows[] = {
        {"open", -2, true, false},    {"stat", -2, true, false},    {"open", -20, true, false},
        {"open", -13, false, true},   {"unlink", -30, false, true}, {"chmod", -1, false, true},
        {"mkdir", -17, false, false}, {"open", 3, false, false},    {"readlink", -22, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_event e = event(AQ_EVENT_FILE, rows[i].op, "/x", rows[i].result);
        aq_summary s;

        aq_summary_begin(&s, a);
        aq_summary_event(&e, &s);
        assert_int_equal(has(&s.files_absent, "/x"), rows[i].absent);
        assert_int_equal(has(&s.files_denied, "/x"), rows[i].denied);
    }
}

static void who_waits_and_who_reaches(void **state)
{
    static const struct {
        const char *op, *object, *socket;
        bool host, listens;
    } rows[] = {
        {"listen", "0.0.0.0:80", NULL, false, true},
        {"listen", "unix:/run/x", NULL, false, false},
        {"bind", "0.0.0.0:53", "datagram", false, true},
        {"bind", "0.0.0.0:80", "stream", false, false}, /* nobody is waited for yet */
        {"send", "family-16", NULL, false, false},
        {"dns-query", "family-16.example", NULL, true, false},
        {"connect", "[::]:80", "datagram", false, false},
        {"connect", "0.0.0.0:80", "stream", true, false},
        {"connect", "10.0.0.1:80", "datagram", true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_event e = event(AQ_EVENT_NETWORK, rows[i].op, rows[i].object, 0);
        aq_summary s;

        if (rows[i].socket)
            text(&e, "socket", rows[i].socket, strlen(rows[i].socket));
        aq_summary_begin(&s, a);
        aq_summary_event(&e, &s);
        assert_int_equal(has(&s.hosts, rows[i].object), rows[i].host);
        assert_int_equal(has(&s.listens, rows[i].object), rows[i].listens);
    }
}

/* Nobody is reached for by putting the addresses of a name in order; and what does not exist. */
static void names_and_their_addresses(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_event absent = event(AQ_EVENT_NETWORK, "peer-dns", "no.example", 0);
    aq_event answer = event(AQ_EVENT_NETWORK, "peer-dns", "a.example", 0);
    aq_event order = event(AQ_EVENT_NETWORK, "connect", "192.0.2.1:80", 0);
    aq_event failed = event(AQ_EVENT_NETWORK, "connect", "192.0.2.2:80", -101);
    aq_event hello = event(AQ_EVENT_NETWORK, "tls-hello", "a.example", 0);
    aq_summary s;

    (void)state;
    number(&absent, "answers", 0);
    number(&absent, "code", 3);
    number(&answer, "answers", 1);
    number(&answer, "code", 0);
    text(&order, "socket", "datagram", 8);
    text(&failed, "socket", "datagram", 8);
    text(&hello, "peer", "192.0.2.1:443", 13);
    aq_summary_begin(&s, a);
    aq_summary_event(&absent, &s);
    aq_summary_event(&order, &s);
    assert_true(has(&s.hosts, "192.0.2.1:80")); /* no name of it was asked for */
    aq_summary_begin(&s, a);
    aq_summary_event(&absent, &s);
    aq_summary_event(&answer, &s);
    aq_summary_event(&order, &s);
    aq_summary_event(&failed, &s);
    aq_summary_event(&hello, &s);
    assert_true(s.names_absent.count == 1 && has(&s.names_absent, "no.example"));
    assert_true(!has(&s.hosts, "192.0.2.1:80") && has(&s.hosts, "192.0.2.2:80"));
    assert_true(s.named.count == 1 && has(&s.named, "192.0.2.1:443 a.example"));
}

static void requests_with_a_port(void **state)
{
    static const char *const hosts[] = {"a.example:8080", "a.example", "[::1]:80", ":80"};
    static const char *const told[] = {"http://a.example/x", "http://a.example/x", "http://[::1]/x",
                                       "http://:80/x"};

    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        aq_auto_arena a = aq_arena_new();
        size_t n = strlen(told[i]) - strlen("http://") - strlen("/x");
        aq_event leaves = event(AQ_EVENT_NETWORK, "http-request", hosts[i], 0);
        aq_event comes = event(AQ_EVENT_NETWORK, "peer-http", hosts[i], 200);
        aq_summary s;

        comes.object_len = n; /* the other side tells no port */
        text(&leaves, "target", "/x", 2);
        text(&comes, "target", "/x", 2);
        aq_summary_begin(&s, a);
        aq_summary_event(&leaves, &s);
        aq_summary_event(&comes, &s);
        assert_true(has(&s.hosts, told[i]));
    }
}

static void folders_with_a_slash(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_event with = event(AQ_EVENT_FILE, "mkdir", "/a/b/", 0);
    aq_event without = event(AQ_EVENT_FILE, "chmod", "/a/b", 0);
    aq_event root = event(AQ_EVENT_FILE, "chmod", "/", 0);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    aq_summary_event(&with, &s);
    aq_summary_event(&without, &s);
    aq_summary_event(&root, &s);
    assert_true(s.files_written.count == 2 && has(&s.files_written, "/a/b") &&
                has(&s.files_written, "/"));
}

static void programs_sleeps_refusals(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_event exec = event(AQ_EVENT_PROCESS, "exec", "/bin/sh", 0);
    aq_event failed = event(AQ_EVENT_PROCESS, "exec", "/bin/missing", -2);
    aq_event sleep = event(AQ_EVENT_CLOCK, "sleep", NULL, 0);
    aq_event mount = event(AQ_EVENT_SYSCALL, "refused", "mount", -1);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    text(&exec, "argv", "sh\0-c\0echo \033[31m\0", 16);
    aq_summary_event(&exec, &s);
    text(&failed, "argv", "missing", 7);
    aq_summary_event(&failed, &s); /* it never ran */
    number(&sleep, "ns", 5000000000);
    aq_summary_event(&sleep, &s);
    aq_summary_event(&sleep, &s);
    mount.rule = "syscall.refused";
    aq_summary_event(&mount, &s);
    assert_int_equal(s.processes.count, 1);
    assert_null(strchr(s.processes.rows[0].text, '\033'));
    assert_memory_equal(s.processes.rows[0].text, "sh -c echo ", 11);
    assert_int_equal(s.sleep_count, 1);
    assert_int_equal(s.sleeps[0].count, 2);
    assert_int_equal(s.slept_ns, 10000000000);
    assert_int_equal(s.unseen, 0);
    assert_true(has(&s.refused, "refused mount (syscall.refused)"));
}

/* As one asks a proxy: the target names the host and the way there. */
static void whole_addresses(void **state)
{
    static const char target[] = "http://far.example/x";
    aq_auto_arena a = aq_arena_new();
    aq_event goes = event(AQ_EVENT_NETWORK, "http-request", "93.184.216.34:80", 40);
    aq_event comes = event(AQ_EVENT_NETWORK, "peer-http", "far.example", 200);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    text(&goes, "target", target, sizeof target - 1);
    text(&comes, "target", target, sizeof target - 1);
    aq_summary_event(&goes, &s);
    aq_summary_event(&comes, &s);
    assert_true(has(&s.hosts, target));
    for (size_t i = 0; i < s.hosts.count; i++)
        assert_null(strstr(s.hosts.rows[i].text, "https"));
}

/* What a flood leaves out counts where the first ones are told, and nowhere else. */
static void repeats_count(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_event bpf = event(AQ_EVENT_SYSCALL, "refused", "bpf", -1);
    aq_event more = event(AQ_EVENT_SYSCALL, "repeat", "bpf", 0);
    aq_event look = event(AQ_EVENT_FILE, "open", "/proc/stat", 3);
    aq_event again = event(AQ_EVENT_FILE, "repeat", "/proc/stat", 0);
    aq_event other = event(AQ_EVENT_FILE, "repeat", "/proc/uptime", 0);
    aq_event reads = event(AQ_EVENT_FILE, "repeat", "/proc/stat", 0);
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    bpf.rule = more.rule = "syscall.refused";
    aq_summary_event(&bpf, &s);
    text(&more, "op", "refused", 7);
    number(&more, "count", 1000);
    number(&more, "left-out", 999);
    aq_summary_event(&more, &s);
    assert_int_equal(s.refused.count, 1);
    assert_int_equal(s.refused.rows[0].count, 1000);
    text(&again, "op", "open", 4);
    number(&again, "left-out", 468);
    aq_summary_event(&again, &s); /* of nothing that was told */
    number(&look, "flags", 0);
    aq_summary_event(&look, &s);
    aq_summary_event(&again, &s);
    text(&other, "op", "open", 4);
    number(&other, "left-out", 5);
    aq_summary_event(&other, &s);
    text(&reads, "op", "read", 4);
    number(&reads, "left-out", 5);
    aq_summary_event(&reads, &s);
    assert_int_equal(s.files_read.count, 1);
    assert_int_equal(s.files_read.rows[0].count, 469);
}

static void floods_are_counted(void **state)
{
    aq_auto_arena a = aq_arena_new();
    aq_auto_json json_t *json = NULL;
    aq_summary s;

    (void)state;
    aq_summary_begin(&s, a);
    for (int i = 0; i < AQ_SUMMARY_ROWS + 500; i++) {
        char path[32];
        aq_event e;

        snprintf(path, sizeof path, i % 2 ? "/tmp/%d" : "/usr/%d", i);
        e = event(AQ_EVENT_FILE, "mkdir", path, 0);
        aq_summary_event(&e, &s);
    }
    assert_int_equal(s.files_written.count, AQ_SUMMARY_ROWS);
    assert_int_equal(s.files_written.more, 500);
    assert_int_equal(s.files_written.more_system, 250);
    json = aq_summary_json(&s);
    assert_int_equal(json_integer_value(json_object_get(json, "left_out")), 500);
    assert_int_equal(json_array_size(json_object_get(json, "files_written")), AQ_SUMMARY_ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_told_apart),
        cmocka_unit_test(names_that_move),
        cmocka_unit_test(hosts_are_outside),
        cmocka_unit_test(programs_sleeps_refusals),
        cmocka_unit_test(repeats_count),
        cmocka_unit_test(whole_addresses),
        cmocka_unit_test(floods_are_counted),
        cmocka_unit_test(what_was_not_to_be_had),
        cmocka_unit_test(who_waits_and_who_reaches),
        cmocka_unit_test(names_and_their_addresses),
        cmocka_unit_test(requests_with_a_port),
        cmocka_unit_test(folders_with_a_slash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
