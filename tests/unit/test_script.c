/* Calls that a new program makes for us: what fits into the page, and where it lies. */
#include <string.h>
#include <sys/syscall.h>

#include "observe/script.h"
#include "unit.h"

static const uint64_t none[6];

static void test_orders_have_a_bound(void **state)
{
    aq_script s = {.home = 0x10000};

    (void)state;
    for (int i = 0; i < AQ_SCRIPT_ORDERS; i++)
        assert_true(aq_script_add(&s, SYS_getpid, none, 0));
    assert_false(aq_script_add(&s, SYS_getpid, none, 0));
    assert_int_equal(s.count, AQ_SCRIPT_ORDERS);
}

static void test_data_has_a_bound(void **state)
{
    static const uint8_t bytes[AQ_SCRIPT_DATA_BYTES + 1];
    aq_script s = {.home = 0x10000};

    (void)state;
    assert_int_equal(aq_script_data(&s, bytes, sizeof bytes), 0);
    assert_int_equal(aq_script_data(&s, bytes, 5), 0x10000 + AQ_SCRIPT_DATA);
    assert_int_equal(aq_script_data(&s, bytes, 16), 0x10000 + AQ_SCRIPT_DATA + 16);
    assert_int_equal(aq_script_data(&s, bytes, AQ_SCRIPT_DATA_BYTES - 31), 0);
    assert_int_not_equal(aq_script_data(&s, bytes, AQ_SCRIPT_DATA_BYTES - 32), 0);
    assert_int_equal(aq_script_data(&s, bytes, 1), 0);
    assert_int_not_equal(aq_script_data(&s, bytes, 0), 0);
}

/* A full script leaves the library alone, ends with a row that ends it, and stays in the page. */
static void test_page(void **state)
{
    uint8_t page[AQ_VDSO_BYTES + 64];
    aq_script s = {.home = 0x10000};
    aq_order row;

    (void)state;
    memset(page, 0xee, sizeof page);
    aq_vdso_make(0, page);
    for (uint64_t i = 0; i < AQ_SCRIPT_ORDERS; i++)
        aq_script_add(&s, (long)i, (const uint64_t[6]){i, 2 * i, 3 * i, 4 * i, 5 * i, 6 * i},
                      7 * i);
    assert_int_equal(aq_script_data(&s, "ende", 4), 0x10000 + AQ_SCRIPT_DATA);
    for (size_t i = AQ_SCRIPT_AT; i < AQ_VDSO_BYTES; i++)
        assert_int_equal(page[i], 0); /* the library itself ends before */
    aq_script_write(&s, page);
    for (uint64_t i = 0; i < AQ_SCRIPT_ORDERS; i++) {
        memcpy(&row, page + AQ_SCRIPT_ROWS + i * sizeof row, sizeof row);
        assert_int_equal(row.nr, i);
        assert_int_equal(row.args[5], 6 * i);
        assert_int_equal(row.expect, 7 * i);
    }
    memcpy(&row.nr, page + AQ_SCRIPT_ROWS + AQ_SCRIPT_ORDERS * sizeof row, sizeof row.nr);
    assert_true(row.nr == UINT64_MAX);
    assert_memory_equal(page + AQ_SCRIPT_DATA, "ende", 4);
    for (size_t i = AQ_VDSO_BYTES; i < sizeof page; i++)
        assert_int_equal(page[i], 0xee);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_have_a_bound),
        cmocka_unit_test(test_data_has_a_bound),
        cmocka_unit_test(test_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
