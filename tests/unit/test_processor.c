/* The machine around a processor that is there: its facts, and which rows of the packs tell of it.
 */
#include <stdio.h>
#include <string.h>

#include "decoy/decoy.h"
#include "unit.h"

enum { START = 1750000000 };

/* Two cores of two threads, numbered one thread of each first, as hardware is; and a guest. */
static const char hardware[] =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
    "model name\t: A Processor @ 3.00GHz\nstepping\t: 9\ncpu MHz\t\t: 800.123\n"
    "cache size\t: 6144 KB\nphysical id\t: 0\nsiblings\t: 4\ncore id\t\t: 0\ncpu cores\t: 2\n"
    "apicid\t\t: 0\ncpuid level\t: 22\nflags\t\t: fpu vmx\nvmx flags\t: vnmi ept\n"
    "bugs\t\t: spectre_v1\nbogomips\t: 6000.00\n"
    "address sizes\t: 39 bits physical, 48 bits virtual\npower management:\n\n"
    "processor\t: 1\ncore id\t\t: 4\napicid\t\t: 8\n\n";
static const char guest[] =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n"
    "siblings\t: 4\ncore id\t\t: 0\ncpu cores\t: 2\napicid\t\t: 0\nflags\t\t: fpu hypervisor\n"
    "bogomips\t: 5192.26\nTLB size\t: 3584 4K pages\npower management: ts\n\n"
    "processor\t: 1\ncore id\t\t: 0\napicid\t\t: 1\n\n";

static aq_processor processor(const char *text, const char *hypervisor)
{
    aq_processor p = {.len = strlen(text),
                      .caches = {{1, 1, 64, 8, 64, 2}, {2, 3, 64, 4, 1024, 2}},
                      .cache_count = 2};

    memcpy(p.text, text, p.len + 1);
    snprintf(p.hypervisor, sizeof p.hypervisor, "%s", hypervisor);
    return p;
}

static const aq_decoys *make(aq_arena *a, const aq_processor *p, aq_side side)
{
    aq_seed seed = aq_seed_of_text("1");
    const aq_decoys *d = NULL;
    aq_err err = {0};

    if (aq_decoys_make(a, aq_pack_builtin(), &seed, side, START, p, &d, &err) < 0)
        fail_msg("%s", err.text);
    return d;
}

static void says(const aq_decoys *d, const char *fact, const char *value)
{
    const char *text = aq_decoys_fact(d, fact);

    if (!value)
        assert_null(text);
    else if (!text || strcmp(text, value) != 0)
        fail_msg("%s is %s, not %s", fact, text ? text : "not there", value);
}

typedef struct fact {
    const char *name, *value; /* NULL: it is not told */
} fact;

/* What a world tells of this processor. */
static void tells(const char *text, const char *hypervisor, const fact *facts, size_t count)
{
    aq_arena *a = aq_arena_new();
    const aq_processor p = processor(text, hypervisor);
    const aq_decoys *d = make(a, &p, AQ_SIDE_A);

    for (size_t i = 0; i < count; i++)
        says(d, facts[i].name, facts[i].value);
    if (*hypervisor)
        says(d, "net.mac", aq_decoys_find(d, "machine.mac_kvm")->value);
    aq_arena_free(a);
}

static void on_hardware(void **state)
{
    static const fact facts[] = {
        {"cpu.vendor", "GenuineIntel"},
        {"cpu.model", "A Processor @ 3.00GHz"},
        {"cpu.model_number", "158"},
        {"cpu.mhz", "3000.000"}, /* not what some core runs at just now */
        {"cpu.count", "4"},
        {"cpu.cores", "2"},
        {"cpu.threads", "2"},
        {"cpu.beside", "0"},
        {"cpu.core_step", "4"},
        {"cpu.apic_step", "8"},
        {"cpu.vmx_flags", "vnmi ept"},
        {"cpu.cache_kb", "6144"},
        {"cpu.microcode", NULL}, /* the pack's own is no part of this one */
        {"cpu.power", NULL},
        {"cache.1.size", "256"},
        {"cache.1.kind", "Unified"},
        {"cache.2.size", NULL},
        {"machine.hypervisor", NULL},
        {"machine.vendor", "Dell Inc."},
        {"net.driver", "e1000e"},
        {"net.virtio", NULL},
    };

    (void)state;
    tells(hardware, "", facts, sizeof facts / sizeof *facts);
}

static void in_a_guest(void **state)
{
    static const fact facts[] = {
        {"cpu.model", "AMD EPYC"},    {"cpu.mhz", "2596.130"},
        {"cpu.beside", "1"},          {"cpu.apic_step", "2"},
        {"cpu.tlb", "3584 4K pages"}, {"cpu.power", "ts"},
        {"cpu.vmx_flags", NULL},      {"machine.hypervisor", "kvm"},
        {"machine.vendor", "QEMU"},   {"machine.board", NULL}, /* a row without a text takes away */
        {"machine.sku", NULL},        {"net.driver", "virtio_net"},
        {"net.virtio", "yes"}, /* only a row of this variant */
        {"pci.card", NULL},
    };

    (void)state;
    tells(guest, "KVMKVMKVM", facts, sizeof facts / sizeof *facts);
}

/* Each hypervisor has its machine, one that nobody knows the first. */
static void each_hypervisor(void **state)
{
    static const struct {
        const char *signature, *variant, *vendor;
    } rows[] = {{"KVMKVMKVM", "kvm", "QEMU"},
                {"TCGTCGTCGTCG", "kvm", "QEMU"},
                {"VMwareVMware", "vmware", "VMware, Inc."},
                {"Microsoft Hv", "microsoft", "Microsoft Corporation"},
                {"XenVMMXenVMM", "xen", "Xen"},
                {"NobodyKnows", "kvm", "QEMU"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        aq_arena *a = aq_arena_new();
        const aq_processor p = processor(guest, rows[i].signature);
        const aq_decoys *d = make(a, &p, AQ_SIDE_A), *e = make(a, &p, AQ_SIDE_B);
        aq_err err = {0};

        says(d, "machine.hypervisor", rows[i].variant);
        says(d, "machine.vendor", rows[i].vendor);
        /* A and B are twins, on the same processor. */
        if (aq_decoys_twins(d, e, &err) < 0)
            fail_msg("%s: %s", rows[i].signature, err.text);
        for (size_t k = 0; k < d->machine.fact_count; k++) {
            assert_null(strchr(d->machine.facts[k].name, '@'));
            if (strncmp(d->machine.facts[k].name, "cpu.", 4) == 0)
                assert_string_equal(d->machine.facts[k].value, e->machine.facts[k].value);
        }
        aq_arena_free(a);
    }
}

/* What the kernel says may be anything: it is only read. */
static void odd_texts(void **state)
{
    static const char *const texts[] = {"",
                                        "\n\n\n",
                                        "siblings",
                                        "siblings\t:",
                                        "siblings\t: x\ncpu cores\t: 0\n",
                                        "siblings\t: 3\ncpu cores\t: 2\nbogomips\t: -1\n",
                                        "model name\t: \nmodel\t: 1",
                                        "bogomips\t: 1e300\napicid : 99999999999\n\napicid : 0\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        aq_arena *a = aq_arena_new();
        const aq_processor p = processor(texts[i], "");
        const aq_decoys *d = make(a, &p, AQ_SIDE_A);

        assert_non_null(aq_decoys_fact(d, "cpu.count"));
        aq_arena_free(a);
    }
}

/* The one of this machine: the same twice. */
static void own(void **state)
{
    static aq_processor p, q;

    (void)state;
    aq_processor_read(&p);
    aq_processor_read(&q);
    assert_true(p.len > 0 && p.len < AQ_PROCESSOR_TEXT);
    assert_string_equal(p.hypervisor, q.hypervisor);
    assert_int_equal(p.cache_count, q.cache_count);
    assert_int_equal(!*p.hypervisor, !strstr(p.text, " hypervisor"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_hardware), cmocka_unit_test(in_a_guest),
                                       cmocka_unit_test(each_hypervisor),
                                       cmocka_unit_test(odd_texts), cmocka_unit_test(own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
