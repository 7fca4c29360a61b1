/* What messages say: DNS, HTTP and TLS heads, whole, cut at every byte, and hostile. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "observe/payload.h"

static size_t dns(uint8_t *out, const char *labels, size_t labels_len, uint16_t type)
{
    static const uint8_t head[12] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};

    memcpy(out, head, 12);
    memcpy(out + 12, labels, labels_len);
    out[12 + labels_len] = (uint8_t)(type >> 8);
    out[13 + labels_len] = (uint8_t)type;
    out[14 + labels_len] = 0;
    out[15 + labels_len] = 1;
    return 16 + labels_len;
}

static void questions(void **state)
{
    uint8_t m[600];
    aq_dns_question q;
    size_t len = dns(m, "\3www\7example\3org", 17, 28);

    (void)state;
    assert_int_equal(aq_payload_dns(m, len, 0, &q), 0);
    assert_string_equal(q.name, "www.example.org");
    assert_int_equal(q.type, 28);
    assert_int_equal(q.class, 1);
    assert_int_equal(aq_payload_dns(m, len, 1, &q), -ENOENT);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(aq_payload_dns(m, cut, 0, &q), -EBADMSG);
    /* The root, and bytes that could pass for borders. */
    assert_int_equal(aq_payload_dns(m, dns(m, "", 1, 2), 0, &q), 0);
    assert_string_equal(q.name, ".");
    assert_int_equal(aq_payload_dns(m, dns(m, "\5a.b\\c\3\0 \x7f", 11, 1), 0, &q), 0);
    assert_string_equal(q.name, "a\\.b\\\\c.\\000\\032\\127");
    /* Two questions. */
    len = dns(m, "\1a", 3, 1);
    m[5] = 2;
    memcpy(m + len, "\1b\0\0\5\0\1", 7);
    assert_int_equal(aq_payload_dns(m, len + 7, 1, &q), 0);
    assert_string_equal(q.name, "b");
    assert_int_equal(q.type, 5);
}

static void no_questions(void **state)
{
    uint8_t m[600];
    char many[512];
    aq_dns_question q;
    size_t len = dns(m, "\1a", 3, 1);

    (void)state;
    m[2] = 0x81; /* an answer */
    assert_int_equal(aq_payload_dns(m, len, 0, &q), -EBADMSG);
    len = dns(m, "\1a", 3, 1);
    m[5] = 0;
    assert_int_equal(aq_payload_dns(m, len, 0, &q), -EBADMSG);
    m[4] = 255;
    assert_int_equal(aq_payload_dns(m, len, 0, &q), -EBADMSG);
    assert_int_equal(aq_payload_dns(m, dns(m, "\xc0\x0c", 2, 1), 0, &q), -EBADMSG);
    assert_int_equal(aq_payload_dns(m, dns(m, "\x40", 1, 1), 0, &q), -EBADMSG);
    /* 255 bytes is the longest name; 257 is none. All of it unprintable: four characters a byte. */
    memset(many, 1, sizeof many);
    for (int i = 0; i < 127; i++)
        many[2 * i] = 1;
    many[254] = 0;
    assert_int_equal(aq_payload_dns(m, dns(m, many, 255, 1), 0, &q), 0);
    assert_int_equal(strlen(q.name), 127 * 4 + 126);
    many[254] = 1;
    many[256] = 0;
    assert_int_equal(aq_payload_dns(m, dns(m, many, 257, 1), 0, &q), -EBADMSG);
}

static bool http(const char *text, aq_http_head *h)
{
    return aq_payload_http(text, strlen(text), h);
}

static bool is(aq_slice s, const char *text)
{
    return s.len == strlen(text) && (s.len == 0 || memcmp(s.at, text, s.len) == 0);
}

static void requests(void **state)
{
    const char *full =
        "POST /a?b=c HTTP/1.1\r\nAccept: x\r\nhOsT: \t example.org:8080 \r\n\r\nHost: no";
    aq_http_head h;

    (void)state;
    assert_true(http(full, &h));
    assert_true(is(h.method, "POST"));
    assert_true(is(h.target, "/a?b=c"));
    assert_true(is(h.host, "example.org:8080"));
    assert_true(http("GET / HTTP/1.0\n\nHost: body", &h));
    assert_true(is(h.host, ""));
    assert_true(http("GET / HTTP/1.1\r\nHost: cut.exa", &h));
    assert_true(is(h.host, "cut.exa"));
    assert_true(http("PRI * HTTP/2.0\r\n\r\n", &h));
    for (size_t cut = 0; cut <= strlen(full); cut++) {
        char *copy = malloc(cut + 1);

        memcpy(copy, full, cut);
        assert_int_equal(aq_payload_http(copy, cut, &h), cut >= 22);
        free(copy);
    }
    assert_false(http("get / HTTP/1.1\r\n", &h));
    assert_false(http("GET  HTTP/1.1\r\n", &h));
    assert_false(http("GET /\r\n", &h));
    assert_false(http(" / HTTP/1.1\r\n", &h));
    assert_false(http("VERYLONGMETHODTHATISNONE / HTTP/1.1\r\n", &h));
    assert_false(http("SSH-2.0-OpenSSH_9.2\r\n", &h));
    assert_false(http("", &h));
}

/* A greeting with the extensions given. */
static size_t hello(uint8_t *out, const void *extensions, size_t len)
{
    uint8_t *p = out;
    size_t body = 2 + 32 + 1 + 2 + 2 + 2 + 2 + len;

    *p++ = 22, *p++ = 3, *p++ = 1;
    *p++ = (uint8_t)((body + 4) >> 8), *p++ = (uint8_t)(body + 4);
    *p++ = 1, *p++ = 0, *p++ = (uint8_t)(body >> 8), *p++ = (uint8_t)body;
    *p++ = 3, *p++ = 3;
    memset(p, 7, 32), p += 32;
    *p++ = 0;
    *p++ = 0, *p++ = 2, *p++ = 0x13, *p++ = 1;
    *p++ = 1, *p++ = 0;
    *p++ = (uint8_t)(len >> 8), *p++ = (uint8_t)len;
    memcpy(p, extensions, len);
    return (size_t)(p - out) + len;
}

static void greetings(void **state)
{
    static const char ext[] = "\0\x2b\0\3\2\3\4" /* something else */
                              "\0\0\0\x10\0\xe\0\0\xb"
                              "example.org"
                              "\0\x10\0\5\0\3\2h2";
    uint8_t m[512];
    aq_tls_hello h;
    size_t len = hello(m, ext, sizeof ext - 1);

    (void)state;
    assert_true(aq_payload_tls(m, len, &h));
    assert_true(is(h.name, "example.org"));
    assert_true(is(h.alpn, "h2"));
    assert_false(h.cut);
    assert_false(h.hidden);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);

        memcpy(copy, m, cut);
        if (aq_payload_tls(copy, cut, &h)) {
            assert_true(h.cut);
            assert_true(h.name.len == 0 || is(h.name, "example.org"));
        }
        free(copy);
    }
    assert_true(aq_payload_tls(m, hello(m, "\xfe\x0d\0\0", 4), &h));
    assert_true(h.hidden);
    assert_int_equal(h.name.len, 0);
    m[0] = 23;
    assert_false(aq_payload_tls(m, len, &h));
    m[0] = 22;
    m[5] = 2; /* a server's */
    assert_false(aq_payload_tls(m, len, &h));
}

static void parts(void **state)
{
    static const char head[] =
        "POST /x HTTP/1.1\r\nHost: a.example\r\ncontent-length:  12 \r\n\r\nbody";
    static const char *const none[] = {"get / HTTP/1.1\n", "GETTING STARTED\n", "GET x\n", " GET /",
                                       "GET / HTCP/1"};
    size_t whole = strlen(head) - 4, end = 0, len = 0;
    uint8_t one[300], many[2000], joined[300];
    uint64_t body = 0;
    aq_tls_hello h;

    (void)state;
    for (size_t n = 0; n < whole; n++)
        assert_int_equal(aq_payload_http_part(head, n, &end, &body), AQ_PART_MORE);
    assert_int_equal(aq_payload_http_part(head, whole + 4, &end, &body), AQ_PART_WHOLE);
    assert_int_equal(end, whole);
    assert_int_equal(body, 12);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(aq_payload_http_part(none[i], strlen(none[i]), &end, &body), AQ_PART_NO);
    len = hello(one, "\0\0\0\6\0\4\0\0\1a", 10);
    for (size_t n = 1; n < len; n++)
        assert_int_equal(aq_payload_tls_part(one, n, joined, sizeof joined, &whole, &end),
                         AQ_PART_MORE);
    /* A byte a record. */
    for (size_t i = 5; i < len; i++)
        memcpy(many + (i - 5) * 6, (uint8_t[]){22, 3, 1, 0, 1, one[i]}, 6);
    len = (len - 5) * 6;
    assert_int_equal(aq_payload_tls_part(many, len - 1, joined, sizeof joined, &whole, &end),
                     AQ_PART_MORE);
    assert_int_equal(aq_payload_tls_part(many, len, joined, sizeof joined, &whole, &end),
                     AQ_PART_WHOLE);
    assert_true(aq_payload_tls(joined, whole, &h));
    assert_int_equal(h.name.len, 1);
    assert_false(h.cut);
    many[11] = 9; /* the type of the handshake was the first byte, this one is its length */
    many[5] = 2;
    assert_int_equal(aq_payload_tls_part(many, len, joined, sizeof joined, &whole, &end),
                     AQ_PART_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions), cmocka_unit_test(no_questions), cmocka_unit_test(requests),
        cmocka_unit_test(greetings), cmocka_unit_test(parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
