/* The parts of the private internet that need no network: what the first bytes are, heads of
 * requests, names, rules and templates. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "internet/fill.h"
#include "internet/http1.h"
#include "internet/internal.h"
#include "internet/rules.h"
#include "internet/shelf.h"

static aq_sniff sniff(const char *text, size_t len)
{
    return aq_sniff_of((const uint8_t *)text, len);
}

static void test_sniff(void **state)
{
    (void)state;
    assert_int_equal(sniff("", 0), AQ_SNIFF_MORE);
    assert_int_equal(sniff("\x16\x03\x01\x02\x00\x01", 6), AQ_SNIFF_TLS);
    assert_int_equal(sniff("\x16\x03", 2), AQ_SNIFF_MORE);
    assert_int_equal(sniff("\x16\x03\x01\x02\x00\x02", 6), AQ_SNIFF_OTHER);
    assert_int_equal(sniff("GET /", 5), AQ_SNIFF_HTTP);
    assert_int_equal(sniff("GE", 2), AQ_SNIFF_MORE);
    assert_int_equal(sniff("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), AQ_SNIFF_HTTP2);
    assert_int_equal(sniff("PRI * HTTP/2", 12), AQ_SNIFF_MORE);
    assert_int_equal(sniff("CONNECT a.org:443 HTTP/1.1\r\n", 28), AQ_SNIFF_HTTP);
    assert_int_equal(sniff("EHLO pine\r\n", 11), AQ_SNIFF_OTHER);
    assert_int_equal(sniff("\0\0\0\x08", 4), AQ_SNIFF_OTHER);
}

/* A connection that nobody is at the other end of. */
static aq_conn *quiet(aq_net *net, aq_internet_world *w)
{
    static const aq_fact decoys[] = {{"aws.account_id", "123456789012"}};
    aq_conn *c = aq_alloc(sizeof *c);
    aq_err err = {0};

    w->decoys = decoys;
    w->decoy_count = 1;
    *net = (aq_net){.world = w, .line = -1, .epoll = -1, .tide = -1};
    net->now_ns = INT64_C(1700000000) * AQ_NET_NS;
    assert_int_equal(aq_rules_builtin(&net->rules, &err), 0);
    *c = (aq_conn){.net = net, .fd = -1, .digest = aq_hash_begin()};
    return c;
}

static int head_of(const char *text, aq_http1_head *h)
{
    aq_net net;
    aq_internet_world w = {0};
    aq_conn *c = quiet(&net, &w);
    aq_ask *q = aq_ask_new(c, "http/1.1");
    int r = aq_http1_head_read(q, text, strlen(text), h);

    aq_ask_free(q);
    aq_conn_free(c);
    return r;
}

static void test_heads(void **state)
{
    aq_http1_head h;

    (void)state;
    assert_int_equal(head_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &h), 1);
    assert_int_equal(h.len, 27);
    assert_false(h.close);
    assert_int_equal(head_of("GET / HTTP/1.1\r\nHost: a\r\n", &h), 0);
    assert_int_equal(head_of("GET / HTTP/1.0\r\n\r\n", &h), 1);
    assert_true(h.close);
    assert_int_equal(head_of("POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n", &h), 1);
    assert_int_equal(h.body, 12);
    assert_int_equal(head_of("POST / HTTP/1.1\nTransfer-Encoding: Chunked\n\n", &h), 1);
    assert_true(h.chunked);
    assert_int_equal(head_of("GET / HTTP/1.1\r\nA\r\n\r\n", &h), -400);
    assert_int_equal(head_of("GET  HTTP/1.1\r\n\r\n", &h), 1); /* an empty target is one */
    assert_int_equal(head_of("GET /\r\n\r\n", &h), -400);
    assert_int_equal(head_of("POST / HTTP/1.1\r\nContent-Length: 1,1\r\n\r\n", &h), -400);
}

static void test_asks(void **state)
{
    static const char text[] = "GET http://Example.ORG:8080/a%20b/%41?q=x+y&z=%2F HTTP/1.1\r\n"
                               "Host: other\r\n\r\n";
    aq_net net;
    aq_internet_world w = {0};
    aq_conn *c = quiet(&net, &w);
    aq_ask *q = aq_ask_new(c, "http/1.1");
    aq_http1_head h;

    (void)state;
    assert_int_equal(aq_http1_head_read(q, text, sizeof text - 1, &h), 1);
    aq_ask_parse(q);
    assert_string_equal(q->host, "example.org");
    assert_string_equal(q->path, "/a b/A");
    assert_string_equal(aq_ask_query(q, "q"), "x y");
    assert_string_equal(aq_ask_query(q, "z"), "/");
    assert_null(aq_ask_query(q, "y"));
    aq_ask_free(q);
    aq_conn_free(c);
}

static void test_chunks(void **state)
{
    static const char body[] = "5;x=1\r\nhello\r\n1\r\n!\r\n0\r\nT: x\r\n\r\n";

    (void)state;
    for (size_t piece = 1; piece < sizeof body; piece++) {
        aq_http1_chunks c = {0};
        aq_auto_buf got = {0}, held = {0};

        for (size_t at = 0; at < sizeof body - 1; at += piece) {
            size_t n = sizeof body - 1 - at < piece ? sizeof body - 1 - at : piece;

            aq_buf_add(&held, body + at, n);
            for (ssize_t used = 1; used > 0 && c.at != AQ_CHUNK_DONE;) {
                const char *data;
                size_t len;

                used = aq_http1_chunk(&c, held.data, held.len, &data, &len);
                assert_true(used >= 0);
                if (len > 0)
                    aq_buf_add(&got, data, len);
                memmove(held.data, held.data + used, held.len - (size_t)used);
                held.len -= (size_t)used;
            }
        }
        assert_int_equal(c.at, AQ_CHUNK_DONE);
        assert_string_equal(aq_buf_str(&got), "hello!");
    }
}

static void test_matching(void **state)
{
    (void)state;
    assert_true(aq_rule_match("*", ""));
    assert_true(aq_rule_match("a.org,*.b.org", "x.B.org"));
    assert_false(aq_rule_match("a.org,*.b.org", "b.org"));
    assert_true(aq_rule_match("/v1/*/x*", "/v1/abc/xyz"));
    assert_false(aq_rule_match("/v1/*/x", "/v1/abc/xyz"));
    assert_true(aq_rule_match("*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaab"));
}

/* What is built in can be read, and names only what there is. */
static void test_built_in_rules(void **state)
{
    const aq_rules *r;
    aq_err err = {0};

    (void)state;
    if (aq_rules_builtin(&r, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(r->answer_count > 80);
    assert_true(r->dialogue_count > 10);
    for (size_t i = 0; i < r->answer_count; i++) {
        const aq_answer_rule *a = &r->answers[i];
        bool known = !a->special;

        for (size_t j = 0; j < i; j++)
            if (strcmp(a->name, r->answers[j].name) == 0)
                fail_msg("two answers are called %s", a->name);
        for (const aq_special *s = aq_specials; s->name && !known; s++)
            known = strcmp(s->name, a->special) == 0;
        if (!known)
            fail_msg("%s: there is no %s", a->name, a->special);
    }
    assert_true(aq_rules_greets(r, "smtp"));
    assert_false(aq_rules_greets(r, "redis"));
    assert_false(aq_rules_answers(r, NULL));
}

static void test_wrong_rules(void **state)
{
    static const char *const wrong[] = {"|text",
                                        "status 200",
                                        "answer a GET *",
                                        "service",
                                        "answer a * * *\nstatus 99",
                                        "answer a * * *\ncolour red",
                                        "service x\non =0g"};
    aq_auto_arena a = aq_arena_new();
    aq_rules r;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        aq_err err = {0};

        assert_true(aq_rules_parse(a, "x.pack", wrong[i], strlen(wrong[i]), &r, &err) < 0);
        assert_non_null(strstr(err.text, "x.pack:"));
    }
}

static void fill(const uint8_t own, const char *text, aq_buf *out)
{
    aq_net net;
    aq_internet_world w = {0};
    aq_conn *c = quiet(&net, &w);
    aq_ask *q = aq_ask_new(c, "http/1.1");
    aq_scene s;

    memset(w.own, own, sizeof w.own);
    q->host = "a<b\"c.org";
    q->path = "/x/y";
    aq_buf_adds(&q->body, "{\"n\": 1, \"model\" : \"m-1\"}");
    aq_scene_begin(&s, c, q, "test");
    aq_fill(&s, text, out);
    aq_ask_free(q);
    aq_conn_free(c);
}

static void test_templates(void **state)
{
    static const char fixed[] = "%{host} %{segment:2} %{member:model} %{unix} %{iso+1} %{date} "
                                "%{decoy:aws.account_id}%{decoy:none}%{fact:none}|%{";
    static const char drawn[] = "%{own.hex:9} %{own.word:6} %{uuid} %{prose:12} %{vector:4} "
                                "%{own.digits:5}";
    aq_auto_buf out = {0}, a = {0}, again = {0}, b = {0}, same = {0};

    (void)state;
    fill(1, fixed, &out);
    assert_string_equal(aq_buf_str(&out),
                        "abc.org y m-1 1700000000 2023-11-14T22:13:21Z Tue, 14 Nov 2023 22:13:20 "
                        "GMT 123456789012|");
    fill(1, drawn, &a);
    fill(1, drawn, &again);
    fill(2, drawn, &b);
    assert_string_equal(aq_buf_str(&a), aq_buf_str(&again));
    assert_string_not_equal(aq_buf_str(&a), aq_buf_str(&b));
    assert_int_equal(a.len, b.len);
    fill(1, "%{same.hex:8}", &same);
    fill(1, "%{same.hex:8}", &same);
    assert_memory_equal(same.data, same.data + 8, 8);
}

static void ask(const char *name, uint16_t type, aq_dns_asked *asked, aq_buf *out)
{
    static const char *const names[] = {"a.org", "*.b.org"};
    const aq_internet_world w = {.names = names, .name_count = 2};
    aq_auto_buf q = {0};

    aq_buf_add(&q, "\x12\x34\1\0\0\1\0\0\0\0\0\0", 12);
    for (const char *at = name; *at;) {
        size_t n = strcspn(at, ".");

        aq_buf_addc(&q, (char)n);
        aq_buf_add(&q, at, n);
        at += n + (at[n] == '.');
    }
    aq_buf_add(&q, "\0\0\0\0\1", 5);
    q.data[q.len - 3] = (char)type;
    out->len = 0;
    assert_int_equal(aq_dns_answer(&w, 0, q.data, q.len, AQ_DNS_UDP, asked, out), 0);
}

static void test_names(void **state)
{
    aq_auto_buf out = {0};
    aq_dns_asked asked;

    (void)state;
    ask("a.org", 1, &asked, &out);
    assert_int_equal(asked.code, 0);
    assert_int_equal(asked.answers, 1);
    ask("x.b.org", 28, &asked, &out);
    assert_int_equal(asked.answers, 1);
    ask("b.org", 1, &asked, &out);
    assert_int_equal(asked.code, 3);
    ask("a.org", 65, &asked, &out);
    assert_int_equal(asked.code, 0);
    assert_int_equal(asked.answers, 0);
    ask("a.o,*", 1, &asked, &out); /* no pattern of the client's */
    assert_int_equal(asked.code, 3);
}

static void test_names_of_wares(void **state)
{
    static const char *const given[] = {"express", "scikit-learn", "tqdm", "x",      "boto3",
                                        "h11",     "zxcvbn",       "i18n", "kafkajs"};
    static const char *const drawn[] = {
        "",           "qzxvkjwplmtr",
        "x7k2q9p1",   "3f9a1c77b2e84d05",
        "aaaaaaaaaa", "123456",
        "-",          "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeef"};
    const aq_shelf *s = aq_shelf_builtin();
    unsigned first[3], last[3];

    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (!aq_shelf_plausible(s, given[i]))
            fail_msg("nobody is called %s", given[i]);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        if (aq_shelf_plausible(s, drawn[i]))
            fail_msg("somebody is called %s", drawn[i]);
    assert_string_equal(aq_shelf_module(s, "pyyaml"), "yaml");
    assert_null(aq_shelf_module(s, "kafkajs"));
    aq_shelf_version(s, 0, first);
    aq_shelf_version(s, s->version_count - 1, last);
    assert_true(first[0] == 0 && last[0] > 9);
}

static void test_wrong_wares(void **state)
{
    static const char *const wrong[] = {"|text",
                                        "versions 1 2",
                                        "versions 1 2 x",
                                        "versions 3-1 0 0",
                                        "versions 0-99 0-99 0-99",
                                        "follow ab c",
                                        "follow a B",
                                        "module a",
                                        "file wheel",
                                        "text ",
                                        "other row",
                                        "known a"};

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        aq_auto_arena a = aq_arena_new();
        aq_shelf *s = NULL;
        aq_err err = {0};

        if (aq_shelf_parse(a, "test", wrong[i], strlen(wrong[i]), &s, &err) == 0)
            fail_msg("%s was taken", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sniff),       cmocka_unit_test(test_heads),
        cmocka_unit_test(test_asks),        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_matching),    cmocka_unit_test(test_built_in_rules),
        cmocka_unit_test(test_wrong_rules), cmocka_unit_test(test_templates),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_names_of_wares),
        cmocka_unit_test(test_wrong_wares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
