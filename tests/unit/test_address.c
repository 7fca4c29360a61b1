/* Addresses, ranges of them, and those that nobody reaches. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/address.h"
#include "model/reserved.h"

static aq_net_range range(const char *text)
{
    aq_net_range r;

    if (aq_net_range_parse(text, &r) < 0)
        fail_msg("%s is no range", text);
    return r;
}

static void test_parse(void **state)
{
    static const char *const bad[] = {"",           "1.2.3",       "1.2.3.4.5",  "1.2.3.4/",
                                      "1.2.3.4/33", "1.2.3.4/-1",  "1.2.3.4/ 8", "::1/129",
                                      "1.2.3.4/8x", "host",        ":::",        "fe80::1%lo",
                                      "1.2.3.4/+8", "01.02.03.4x", NULL};
    aq_net_range r = range("10.1.2.3/8"), untouched = r;

    (void)state;
    assert_int_equal(r.prefix, 8);
    assert_false(r.six);
    assert_memory_equal(r.address, "\x0a\x01\x02\x03", 4);
    assert_int_equal(range("fe80::1").prefix, 128);
    for (const char *const *b = bad; *b; b++)
        if (aq_net_range_parse(*b, &r) != -EINVAL || memcmp(&r, &untouched, sizeof r) != 0)
            fail_msg("%s was taken", *b);
}

static void test_holds(void **state)
{
    static const struct {
        const char *in, *one;
        bool holds;
    } rows[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.1", false},
        {"172.16.0.0/12", "172.31.9.9", true},
        {"172.16.0.0/12", "172.32.0.1", false},
        {"0.0.0.0/0", "8.8.8.8", true},
        {"0.0.0.0/0", "::1", false},
        {"fc00::/7", "fdff::1", true},
        {"fc00::/7", "fe00::1", false},
        {"10.0.0.0/8", "::ffff:10.2.3.4", true},
        {"::/0", "::ffff:10.2.3.4", false},
        {"1.2.3.4/32", "1.2.3.4", true},
        {"1.2.3.4/32", "1.2.3.5", false},
        {"2001:db8::/32", "2001:db8:1::1", true},
        {"2001:db8::/32", "2001:db9::1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_net_range in = range(rows[i].in), one = range(rows[i].one);

        if (aq_net_range_holds(&in, &one) != rows[i].holds)
            fail_msg("%s in %s", rows[i].one, rows[i].in);
    }
}

static void test_mac(void **state)
{
    static const char *const bad[] = {"",
                                      "3c:fd:fe:01:02",
                                      "3c:fd:fe:01:02:0",
                                      "3c-fd-fe-01-02-03",
                                      "3c:fd:fe:01:02:0g",
                                      "3c:fd:fe:01:02:03:",
                                      NULL};
    uint8_t mac[6] = {0};

    (void)state;
    assert_int_equal(aq_mac_parse("3C:fd:fe:01:02:0a", mac), 0);
    assert_memory_equal(mac, "\x3c\xfd\xfe\x01\x02\x0a", 6);
    for (const char *const *b = bad; *b; b++)
        assert_int_equal(aq_mac_parse(*b, mac), -EINVAL);
}

/* Every row is one: what cannot be read would be a range that holds everything, or nothing. */
static void test_reserved(void **state)
{
    static const char *const texts[] = {
#define AQ_RESERVED(range, why) range,
#include "model/reserved.def"
#undef AQ_RESERVED
    };
    static const aq_fact facts[] = {{"net.address", "192.168.7.5/24"},
                                    {"net.gateway", "192.168.7.1"},
                                    {"net.resolver", "192.168.7.1"}};
    aq_machine m = {.facts = facts, .fact_count = 3};
    static const char *const never[] = {"10.0.0.1", "192.168.7.6",      "169.254.1.1", "fd00::1",
                                        "4000::1",  "64:ff9b::808:808", NULL};
    static const char *const there[] = {
        "192.168.7.5", "192.168.7.1", "169.254.169.254", "8.8.8.8", "2606:4700::1111", "fe80::1",
        "::1",         NULL};
    size_t count;
    const aq_net_range *all = aq_reserved(&count);

    (void)state;
    assert_int_equal(count, sizeof texts / sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        aq_net_range r = range(texts[i]);

        assert_true(r.prefix >= 3 && r.prefix < (r.six ? 128 : 32));
        assert_memory_equal(&r, &all[i], sizeof r);
    }
    for (const char *const *n = never; *n; n++)
        assert_true(aq_reserved_from(&m, &(aq_net_range[]){range(*n)}[0]));
    for (const char *const *n = there; *n; n++)
        assert_false(aq_reserved_from(&m, &(aq_net_range[]){range(*n)}[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_mac),
        cmocka_unit_test(test_reserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
