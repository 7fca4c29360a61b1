/* The processor: /proc/cpuinfo, its cores and threads, caches and weaknesses in /sys. What it is
 * the facts say, which are the host's: a program can ask it by an instruction. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "veil/internal.h"

static const struct weakness {
    const char *file, *bug, *flag, *text;
} weaknesses[] = {
#define AQ_WEAKNESS(file, bug, flag, text) {file, bug, flag, text},
#include "veil/weaknesses.def"
#undef AQ_WEAKNESS
};

static const char *fact(const aq_machine *m, const char *name)
{
    const char *text = aq_machine_fact(m, name);

    return text ? text : "";
}

static bool has_word(const char *text, const char *wanted)
{
    const char *word;
    size_t len;

    for (aq_lines l = {text, text + strlen(text)}; aq_word_next(&l, &word, &len);)
        if (aq_word_is(word, len, wanted))
            return true;
    return false;
}

/* ---- cores and threads ---- */

typedef struct place {
    unsigned core, thread, apic;
} place;

static unsigned step(const aq_machine *m, const char *name, unsigned otherwise)
{
    uint64_t n = aq_machine_number(m, name, otherwise);

    return n >= 1 && n <= 1024 ? (unsigned)n : otherwise;
}

static unsigned threads_of(const aq_machine *m)
{
    unsigned threads = step(m, "cpu.threads", 1);

    return aq_veil_cpus(m) % threads ? 1 : threads;
}

static place place_of(const aq_machine *m, unsigned cpu)
{
    unsigned threads = threads_of(m), cores = aq_veil_cpus(m) / threads;
    place p;

    if (aq_machine_number(m, "cpu.beside", 0))
        p = (place){.core = cpu / threads, .thread = cpu % threads};
    else
        p = (place){.core = cpu % cores, .thread = cpu / cores};
    p.apic = p.core * step(m, "cpu.apic_step", threads) + p.thread;
    return p;
}

/* Adds who is with `cpu`: of one core, or of all whose number is the same above so many bits. */
static void add_group(aq_buf *ret, const aq_machine *m, unsigned cpu, int bits, bool list)
{
    uint8_t with[AQ_VEIL_CPUS / 8] = {0};
    aq_veil_scene s = {.machine = m, .of.cpus = with};
    place own = place_of(m, cpu);

    for (unsigned i = 0; i < aq_veil_cpus(m); i++) {
        place p = place_of(m, i);

        if (bits < 0 ? p.core == own.core : p.apic >> bits == own.apic >> bits)
            with[i / 8] |= (uint8_t)(1 << i % 8);
    }
    if (list)
        aq_add_cpu_list(ret, &s);
    else
        aq_add_cpu_mask(ret, &s);
}

/* "cache.2.mask", "cache.2.list", "cache.2.id" */
static void add_cache(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name)
{
    char sharing[] = "cache.0.sharing";
    const char *what = name + strlen("cache.0.");
    int bits = 0;

    sharing[6] = name[6];
    while (bits < 16 && 1u << bits < step(m, sharing, 1))
        bits++;
    if (strcmp(what, "id") == 0)
        aq_buf_addf(ret, "%u", place_of(m, cpu).apic >> bits);
    else
        add_group(ret, m, cpu, bits, strcmp(what, "list") == 0);
}

void aq_add_core(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name)
{
    unsigned core = place_of(m, cpu).core;

    if (strcmp(name, "core") == 0)
        aq_buf_addf(ret, "%u", core * step(m, "cpu.core_step", 1));
    else if (strcmp(name, "cluster") == 0)
        aq_buf_addf(ret, "%u", fact(m, "machine.hypervisor")[0] ? 65535 : place_of(m, cpu).apic);
    else if (strcmp(name, "core.mask") == 0 || strcmp(name, "core.list") == 0)
        add_group(ret, m, cpu, -1, name[5] == 'l');
    else if (strncmp(name, "cache.", 6) == 0 && strlen(name) > 8)
        add_cache(ret, m, cpu, name);
}

/* ---- what follows from facts ---- */

static void add_weakness(aq_buf *ret, const aq_machine *m, const char *file)
{
    for (size_t i = 0; i < sizeof weaknesses / sizeof *weaknesses; i++) {
        const struct weakness *w = &weaknesses[i];

        if (strcmp(w->file, file) == 0 && has_word(fact(m, "cpu.bugs"), w->bug) &&
            (!*w->flag || has_word(fact(m, "cpu.flags"), w->flag))) {
            aq_buf_adds(ret, w->text);
            return;
        }
    }
    aq_buf_adds(ret, "Not affected");
}

static unsigned vendor_number(const aq_machine *m)
{
    static const struct {
        const char *name;
        unsigned number;
    } vendors[] = {{"GenuineIntel", 0},
                   {"AuthenticAMD", 2},
                   {"CentaurHauls", 5},
                   {"HygonGenuine", 9},
                   {"  Shanghai  ", 10}};

    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++)
        if (strcmp(vendors[i].name, fact(m, "cpu.vendor")) == 0)
            return vendors[i].number;
    return 0;
}

bool aq_add_processor(aq_buf *ret, const aq_machine *m, const char *name)
{
    bool smt = threads_of(m) > 1;

    if (strncmp(name, "weakness.", 9) == 0)
        add_weakness(ret, m, name + 9);
    else if (strcmp(name, "cpu.alias") == 0)
        aq_buf_addf(ret, "cpu:type:x86,ven%04Xfam%04Xmod%04X", vendor_number(m),
                    (unsigned)aq_machine_number(m, "cpu.family", 6),
                    (unsigned)aq_machine_number(m, "cpu.model_number", 0));
    else if (strcmp(name, "cpu.smt.active") == 0)
        aq_buf_adds(ret, smt ? "1" : "0");
    else if (strcmp(name, "cpu.smt.control") == 0)
        aq_buf_adds(ret, smt ? "on" : "notsupported");
    else if (strcmp(name, "cpu.khz") == 0)
        aq_buf_addf(ret, "%" PRIu64, aq_machine_khz(m));
    else
        return false;
    return true;
}

/* ---- /proc/cpuinfo ---- */

static bool known(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof weaknesses / sizeof *weaknesses; i++)
        if (aq_word_is(word, len, weaknesses[i].bug))
            return true;
    return false;
}

/* Those of the host's list that the persona's kernel has heard of. */
static void add_bugs(aq_buf *ret, const char *bugs)
{
    const char *word, *between = "bugs\t\t: ";
    size_t len;

    for (aq_lines l = {bugs, bugs + strlen(bugs)}; aq_word_next(&l, &word, &len); between = " ")
        if (known(word, len))
            aq_buf_addf(ret, "%s%.*s", between, (int)len, word);
    aq_buf_adds(ret, *between == ' ' ? "\n" : "bugs\t\t:\n");
}

/* A line that not every processor has. */
static void add_line(aq_buf *ret, const aq_machine *m, const char *name, const char *of)
{
    if (aq_machine_fact(m, of))
        aq_buf_addf(ret, "%s: %s\n", name, fact(m, of));
}

static void add_text(const aq_machine *m, unsigned cpu, aq_buf *ret)
{
    unsigned cpus = aq_veil_cpus(m);
    place p = place_of(m, cpu);

    aq_buf_addf(ret, "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %s\nmodel\t\t: %s\n", cpu,
                fact(m, "cpu.vendor"), fact(m, "cpu.family"), fact(m, "cpu.model_number"));
    aq_buf_addf(ret, "model name\t: %s\nstepping\t: %s\n", fact(m, "cpu.model"),
                fact(m, "cpu.stepping"));
    add_line(ret, m, "microcode\t", "cpu.microcode");
    aq_buf_addf(ret, "cpu MHz\t\t: %s\ncache size\t: %s KB\nphysical id\t: 0\nsiblings\t: %u\n",
                fact(m, "cpu.mhz"), fact(m, "cpu.cache_kb"), cpus);
    aq_buf_addf(ret, "core id\t\t: %u\ncpu cores\t: %u\napicid\t\t: %u\ninitial apicid\t: %u\n",
                p.core * step(m, "cpu.core_step", 1), cpus / threads_of(m), p.apic, p.apic);
    aq_buf_addf(ret, "fpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: %s\nwp\t\t: yes\n",
                fact(m, "cpu.level"));
    aq_buf_addf(ret, "flags\t\t: %s\n", fact(m, "cpu.flags"));
    add_line(ret, m, "vmx flags\t", "cpu.vmx_flags");
    add_bugs(ret, fact(m, "cpu.bugs"));
    aq_buf_addf(ret, "bogomips\t: %s\n", fact(m, "cpu.bogomips"));
    add_line(ret, m, "TLB size\t", "cpu.tlb");
    aq_buf_addf(ret, "clflush size\t: %s\ncache_alignment\t: %s\naddress sizes\t: %s\n",
                fact(m, "cpu.clflush"), fact(m, "cpu.alignment"), fact(m, "cpu.address_sizes"));
    aq_buf_addf(ret, "power management:%s%s\n\n", *fact(m, "cpu.power") ? " " : "",
                fact(m, "cpu.power"));
}

void aq_make_cpuinfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)truth, (void)len;
    for (unsigned cpu = 0; cpu < aq_veil_cpus(s->machine); cpu++)
        add_text(s->machine, cpu, ret);
}
