/* Facts of a machine, by name and as numbers. */
#include "model/machine.h"
#include "unit.h"

static aq_machine with(const aq_fact *fact)
{
    return (aq_machine){.facts = fact, .fact_count = 1};
}

static void rates(void **state)
{
    static const struct {
        const char *text;
        uint64_t khz;
    } rows[] = {{"2995.200", 2995200}, {"3000", 3000000},     {"1.5", 1500},
                {"800.1234", 800123},  {"", 2000000},         {"fast", 2000000},
                {"2995.2x", 2995200},  {".5", 2000000},       {"1.2.3", 1200},
                {"0", 2000000},        {"2995.200 ", 2995200}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const aq_fact fact = {"cpu.mhz", rows[i].text};
        const aq_machine m = with(&fact);

        assert_int_equal(aq_machine_khz(&m), rows[i].khz);
    }
    assert_int_equal(aq_machine_khz(&(aq_machine){0}), 2000000);
}

static void numbers(void **state)
{
    const aq_fact fact = {"cpu.count", "4"}, odd = {"cpu.count", "4x"};
    const aq_machine m = with(&fact), other = with(&odd);

    (void)state;
    assert_int_equal(aq_machine_number(&m, "cpu.count", 1), 4);
    assert_int_equal(aq_machine_number(&m, "cpu.other", 1), 1);
    assert_int_equal(aq_machine_number(&other, "cpu.count", 1), 1);
    assert_string_equal(aq_machine_fact(&m, "cpu.count"), "4");
    assert_null(aq_machine_fact(&m, "cpu"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates), cmocka_unit_test(numbers)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
