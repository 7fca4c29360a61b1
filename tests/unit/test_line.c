/* The line to the private internet and the document of its world: what was written is read back,
 * and nothing else is. */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "internet/line.h"
#include "internet/ports.h"
#include "internet/world.h"

static aq_line_message sample(void)
{
    aq_line_message m = {.type = AQ_LINE_RECORD};
    aq_line_record *r = &m.record;

    *r = (aq_line_record){.flow = 7,
                          .protocol = IPPROTO_TCP,
                          .client = {{[10] = 0xff, 0xff, 10, 0, 2, 15}, 40000},
                          .server = {{0x20, 1, 0xd, 0xb8, [15] = 1}, 443},
                          .op = "peer-http",
                          .object = "example.org",
                          .object_len = 11,
                          .arg_count = 3,
                          .result = 404};
    r->args[0] = (aq_event_arg){.name = "target", .bytes = "/a\0b", .len = 4};
    r->args[1] = (aq_event_arg){.name = "method", .bytes = "GET", .len = 3, .cut = true};
    r->args[2] = (aq_event_arg){.name = "size", .number = -3};
    return m;
}

static void test_record_there_and_back(void **state)
{
    aq_line_message m = sample(), back;
    aq_auto_buf one = {0}, two = {0};
    aq_err err = {0};

    (void)state;
    aq_line_write(&m, &one);
    assert_int_equal(aq_line_read(one.data, one.len, &back, &err), 0);
    assert_int_equal(back.record.flow, 7);
    assert_string_equal(back.record.args[0].name, "method");
    assert_true(back.record.args[0].cut);
    assert_int_equal(back.record.args[1].number, -3);
    assert_memory_equal(back.record.args[2].bytes, "/a\0b", 4);
    assert_int_equal(back.record.result, 404);
    aq_line_write(&back, &two);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
}

static void test_others_there_and_back(void **state)
{
    const aq_line_message all[] = {
        {.type = AQ_LINE_HELLO, .hello = {7, 1, 1, 1, 70}},
        {.type = AQ_LINE_STEP, .step = {1, 1700000000000000000}},
        {.type = AQ_LINE_DONE, .done = {1, 12, 1700000000000000001, 3, 0}},
        {.type = AQ_LINE_FAILED, .failed = {"no memory"}},
    };
    char packet[AQ_LINE_PACKET + 1];
    aq_line_message m;
    aq_err err = {0};
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(aq_line_send(pair[0], &all[i], &err), 0);
        assert_int_equal(aq_line_receive(pair[1], packet, &m, &err), 1);
        assert_int_equal(m.type, all[i].type);
        if (m.type == AQ_LINE_FAILED)
            assert_string_equal(m.failed.text, "no memory");
        if (m.type == AQ_LINE_DONE)
            assert_memory_equal(&m.done, &all[i].done, sizeof m.done);
    }
    close(pair[0]);
    assert_int_equal(aq_line_receive(pair[1], packet, &m, &err), 0);
    close(pair[1]);
}

static void refused(const void *packet, size_t len, const char *why)
{
    aq_line_message m;
    aq_err err = {0};

    assert_int_equal(aq_line_read(packet, len, &m, &err), -EBADMSG);
    if (why && !strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void test_nothing_else_is_read(void **state)
{
    aq_line_message m = sample();
    aq_auto_buf b = {0};
    char *at;

    (void)state;
    aq_line_write(&m, &b);
    for (size_t i = 0; i < b.len; i++) /* cut anywhere */
        refused(b.data, i, NULL);
    aq_buf_addc(&b, 0);
    refused(b.data, b.len, "not one whole message");
    refused("X\0", 2, "no known type");
    refused("S\1\1", 3, "number");
    refused("H\6\2\0\0\0\0\0", 8, "another version");
    b.len--;
    at = memmem(b.data, b.len, "peer-http", 9);
    memcpy(at, "peer-wolf", 9);
    refused(b.data, b.len, "no known act");
    memcpy(at, "peer-http", 9);
    at = memmem(b.data, b.len, "method", 6);
    memcpy(at, "zethod", 6);
    refused(b.data, b.len, "out of order");
}

static void test_long_texts_are_cut(void **state)
{
    aq_line_message m = sample(), back;
    aq_auto_free char *many = aq_alloc(3 * AQ_EVENT_TEXT);
    aq_auto_buf b = {0};
    aq_err err = {0};

    (void)state;
    memset(many, 'x', 3 * AQ_EVENT_TEXT);
    m.record.object = many;
    m.record.object_len = 3 * AQ_EVENT_TEXT;
    for (size_t i = 0; i < AQ_EVENT_ARGS; i++) {
        static char names[AQ_EVENT_ARGS][2];

        names[i][0] = (char)('a' + i);
        m.record.args[i] =
            (aq_event_arg){.name = names[i], .bytes = many, .len = 3 * AQ_EVENT_TEXT};
    }
    m.record.arg_count = AQ_EVENT_ARGS;
    aq_line_write(&m, &b);
    assert_true(b.len <= AQ_LINE_PACKET);
    assert_int_equal(aq_line_read(b.data, b.len, &back, &err), 0);
    assert_true(back.record.object_cut);
    assert_int_equal(back.record.object_len, AQ_EVENT_TEXT);
    assert_true(back.record.args[7].cut);
}

static void test_ends_as_text(void **state)
{
    aq_line_message m = sample();
    char text[AQ_LINE_END_TEXT];

    (void)state;
    assert_string_equal(aq_line_end_text(&m.record.client, text), "10.0.2.15:40000");
    assert_string_equal(aq_line_end_text(&m.record.server, text), "[2001:db8::1]:443");
}

static void test_world_there_and_back(void **state)
{
    static const aq_fact facts[] = {{"host.name", "pine"}, {"net.resolver", "10.0.2.3"}};
    static const aq_fact decoys[] = {{"aws.secret_access_key", "a/b+\"c"}};
    static const char *const names[] = {"api.example.org", "*.example.net"};
    aq_internet_world w = {.facts = facts,
                           .fact_count = 2,
                           .decoys = decoys,
                           .decoy_count = 1,
                           .names = names,
                           .name_count = 2,
                           .ca_certificate = "-----BEGIN\n",
                           .ca_key = "key\n"},
                      back;
    aq_auto_arena a = aq_arena_new();
    aq_auto_buf text = {0};
    aq_err err = {0};
    aq_auto_fd int fd = -1;

    (void)state;
    memset(w.pair, 0xaa, sizeof w.pair);
    memset(w.own, 0x55, sizeof w.own);
    fd = aq_internet_world_file(&w, &err);
    assert_true(fd >= 0);
    assert_true(pwrite(fd, "x", 1, 0) < 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(aq_read_fd(fd, "world", AQ_INTERNET_WORLD, &text, &err), 0);
    assert_int_equal(aq_internet_world_read(a, text.data, text.len, &back, &err), 0);
    assert_memory_equal(back.own, w.own, 32);
    assert_string_equal(aq_internet_fact(&back, "net.resolver"), "10.0.2.3");
    assert_string_equal(aq_internet_decoy(&back, "aws.secret_access_key"), "a/b+\"c");
    assert_null(aq_internet_decoy(&back, "host.name"));
    assert_int_equal(back.name_count, 2);
    assert_string_equal(back.ca_key, "key\n");
}

static void test_world_that_is_none(void **state)
{
    static const char *const wrong[] = {
        "[]",
        "{\"schema\":\"aquarium/internet/v2\"}",
        "{\"schema\":\"aquarium/internet/v1\",\"pair\":\"12\"}",
        "{\"schema\":\"aquarium/internet/v1\",\"more\":1}",
    };
    aq_auto_arena a = aq_arena_new();
    aq_internet_world w;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        aq_err err = {0};

        assert_true(aq_internet_world_read(a, wrong[i], strlen(wrong[i]), &w, &err) < 0);
        assert_true(err.text[0]);
    }
}

/* Every row has its number once, so that no socket is bound twice. */
static void test_ports(void **state)
{
    size_t count;
    const aq_port *p = aq_ports(&count);

    (void)state;
    assert_int_equal(aq_port_sockets(), count + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_false(p[i].number == p[j].number && p[i].protocol == p[j].protocol);
    assert_string_equal(aq_port_service(IPPROTO_UDP, 53), "dns");
    assert_null(aq_port_service(IPPROTO_TCP, 1));
}

/* The page of the format has every act. */
static void test_page(void **state)
{
    aq_auto_buf path = {0}, page = {0};
    aq_err err = {0};

    (void)state;
    aq_buf_addf(&path, "%s/docs/formats/internet.md", getenv("AQUARIUM_SOURCE"));
    assert_int_equal(aq_read_file(-1, aq_buf_str(&path), 1 << 20, &page, &err), 0);
    for (size_t i = 0; i < aq_line_op_count(); i++) {
        aq_auto_buf row = {0};

        aq_buf_addf(&row, "| `%s` |", aq_line_op(i));
        if (!strstr(aq_buf_str(&page), aq_buf_str(&row)))
            fail_msg("docs/formats/internet.md has no row for %s", aq_line_op(i));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record_there_and_back),
        cmocka_unit_test(test_others_there_and_back),
        cmocka_unit_test(test_nothing_else_is_read),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_ends_as_text),
        cmocka_unit_test(test_world_there_and_back),
        cmocka_unit_test(test_world_that_is_none),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
