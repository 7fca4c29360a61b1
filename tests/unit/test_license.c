/* What L0 reads from bytes: licence fields, licence texts, copies of manifests. Pure functions; in
 * the program they run in the jail. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cleanroom/gate.h"

#define APACHE                                                                                     \
    "\n  Apache License\n  Version 2.0, January 2004\n  http://www.apache.org/licenses/\n"
#define MIT_TEXT                                                                                   \
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this\n"       \
    "software. THE SOFTWARE IS PROVIDED \"AS IS\", without warranty.\n"

static void licenses_are_read(void **state)
{
    static const char *const good[] = {"MIT",
                                       "Apache-2.0",
                                       "MIT OR Apache-2.0",
                                       "(MIT AND BSD-3-Clause) OR ISC",
                                       "GPL-2.0-or-later WITH Classpath-exception-2.0",
                                       "LicenseRef-Acme",
                                       "DocumentRef-x:LicenseRef-y AND MIT",
                                       "mit",
                                       "Apache-2.0+",
                                       "((((MIT))))"};
    static const char *const bad[] = {"MIT OR",
                                      "(MIT OR",
                                      "MIT) AND",
                                      "MIT MIT",
                                      "WITH MIT",
                                      "MIT WITH Nothing-exception",
                                      "Beerware 9",
                                      "LicenseRef-",
                                      "OR",
                                      "()",
                                      "MIT; rm -rf",
                                      "GPL-99.0",
                                      ""};
    aq_license l;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        aq_license_parse(good[i], &l);
        assert_int_equal(l.state, AQ_LICENSE_GOOD);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        aq_license_parse(bad[i], &l);
        if (l.state != AQ_LICENSE_UNKNOWN)
            fail_msg("%s was understood as %d", bad[i], l.state);
        assert_true(l.reason[0]);
    }
    aq_license_parse("GPL-2.0", &l);
    assert_string_equal(l.deprecated, "GPL-2.0");
    assert_string_equal(l.instead, "GPL-2.0-only");
    aq_license_parse("apache-2.0", &l);
    assert_true(l.other_case);
    assert_string_equal(l.ids[0], "Apache-2.0");
}

static void loose_spellings_are_understood(void **state)
{
    static const struct {
        const char *text, *means;
        aq_license_state state;
    } cases[] = {
        {"Apache 2.0", "Apache-2.0", AQ_LICENSE_SLOPPY},
        {"Apache License, Version 2.0", "Apache-2.0", AQ_LICENSE_SLOPPY},
        {"MIT License", "MIT", AQ_LICENSE_SLOPPY},
        {"The MIT License", "MIT", AQ_LICENSE_SLOPPY},
        {"BSD", "BSD-3-Clause or BSD-2-Clause", AQ_LICENSE_SLOPPY},
        {"GPLv3", "GPL-3.0-only or GPL-3.0-or-later", AQ_LICENSE_SLOPPY},
        {"GNU General Public License v3.0", "GPL-3.0-only or GPL-3.0-or-later", AQ_LICENSE_SLOPPY},
        {"MIT/Apache-2.0", "the same with OR in place of the slash", AQ_LICENSE_SLOPPY},
        {"See LICENSE", NULL, AQ_LICENSE_SEE_FILE},
        {"SEE LICENSE IN LICENSE.md", NULL, AQ_LICENSE_SEE_FILE},
        {"Complete terms in LICENSE.txt", NULL, AQ_LICENSE_SEE_FILE},
        {"Proprietary", NULL, AQ_LICENSE_CLOSED},
        {"UNLICENSED", NULL, AQ_LICENSE_CLOSED},
        {"NONE", NULL, AQ_LICENSE_CLOSED},
        {"NOASSERTION", NULL, AQ_LICENSE_CLOSED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_license l;
        aq_license_parse(cases[i].text, &l);
        if (l.state != cases[i].state)
            fail_msg("%s was understood as %d", cases[i].text, l.state);
        if (cases[i].means)
            assert_string_equal(l.suggestion, cases[i].means);
    }
}

static void long_expressions_are_bounded(void **state)
{
    aq_auto_buf deep = {0}, many = {0};
    aq_license l;

    (void)state;
    for (int i = 0; i < 200; i++)
        aq_buf_addc(&deep, '(');
    aq_license_parse(aq_buf_str(&deep), &l);
    assert_int_equal(l.state, AQ_LICENSE_UNKNOWN);
    for (int i = 0; i < 60; i++)
        aq_buf_adds(&many, "MIT OR ");
    aq_buf_adds(&many, "MIT");
    aq_license_parse(aq_buf_str(&many), &l);
    assert_int_equal(l.state, AQ_LICENSE_GOOD);
    assert_int_equal(l.count, AQ_LICENSE_IDS);
    for (int i = 0; i < 60; i++)
        aq_buf_adds(&many, " OR MIT");
    aq_license_parse(aq_buf_str(&many), &l);
    assert_int_equal(l.state, AQ_LICENSE_UNKNOWN);
}

static void license_texts_are_recognised(void **state)
{
    static const struct {
        const char *text, *name;
    } cases[] = {
        {MIT_TEXT, "MIT"},
        {APACHE, "Apache-2.0"},
        {"GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007", "GPL-3.0"},
        {"GNU AFFERO GENERAL PUBLIC LICENSE\n  Version 3, 19 November 2007", "AGPL-3.0"},
        {"GNU LESSER GENERAL PUBLIC LICENSE\nVersion 2.1, February 1999", "LGPL-2.1"},
        {"Mozilla Public License Version 2.0\n====", "MPL-2.0"},
        {"This is free and unencumbered software released into the public domain.", "Unlicense"},
        {"Redistributions of source code must retain the above copyright notice. Redistributions "
         "in "
         "binary form must reproduce the above copyright notice.",
         "BSD-2-Clause"},
        {"Redistributions of source code must retain the above copyright notice. Redistributions "
         "in "
         "binary form must reproduce the above copyright notice. Neither the name of X may be used "
         "to endorse or promote products.",
         "BSD-3-Clause"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t mask = aq_license_recognise(cases[i].text, strlen(cases[i].text));
        assert_int_equal(mask, aq_license_families(cases[i].name));
        assert_int_equal(__builtin_popcount(mask), 1);
    }
    assert_int_equal(aq_license_recognise("Do what I say.", 14), 0);
    assert_int_equal(aq_license_families("GPL-3.0-or-later"), aq_license_families("GPL-3.0"));
    assert_int_equal(aq_license_families("Zend-2.0"), 0);
}

static void manifests_are_compared_by_meaning(void **state)
{
    static const struct {
        const char *file, *text, *copy, *where;
    } cases[] = {
        {"a.yaml", "a: 1\nb: [x, true]\n", "{\"b\": [\"x\", true], \"a\": 1}", NULL},
        {"a.yaml", "a: 1.50\n", "{\"a\": 1}", "a"},
        {"a.yaml", "a: {b: {c: x}}\n", "{\"a\": {\"b\": {\"c\": \"y\"}}}", "a.b.c"},
        {"a.yaml", "a: [1, 2]\n", "{\"a\": [2, 1]}", "a"},
        {"a.yaml", "a: '1'\n", "{\"a\": 1}", "a"},
        {"a.yaml", "a: x\n", "{\"a\": \"x\", \"b\": 1}", ""},
        {"SKILL.md", "---\nname: x\n---\nname: y\n", "{\"name\": \"x\"}", NULL},
        {"p.toml", "name = \"x\"\n", "{\"name\": \"x\"}", NULL},
        {"p.json", "{\"name\": \"x\"}", "{\"name\": \"z\"}", "name"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        aq_auto_buf where = {0};
        aq_err err = {0};
        int r = aq_manifest_same(cases[i].file, cases[i].text, strlen(cases[i].text), cases[i].copy,
                                 strlen(cases[i].copy), &where, &err);

        assert_int_equal(r, cases[i].where ? 0 : 1);
        if (cases[i].where)
            assert_string_equal(aq_buf_str(&where), cases[i].where);
    }
    {
        aq_auto_buf where = {0};
        aq_err err = {0};
        assert_true(aq_manifest_same("a.yaml", "a: [", 4, "{}", 2, &where, &err) < 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(licenses_are_read),
        cmocka_unit_test(loose_spellings_are_understood),
        cmocka_unit_test(long_expressions_are_bounded),
        cmocka_unit_test(license_texts_are_recognised),
        cmocka_unit_test(manifests_are_compared_by_meaning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
