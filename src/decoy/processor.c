/* Facts of a processor that is there, in the words of the packs. Nothing is read here: the caller
 * has asked (kernel/processor.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoy/internal.h"

static const struct {
    const char *signature, *variant;
} hypervisors[] = {
#define AQ_HYPERVISOR(signature, variant) {signature, variant},
#include "decoy/hypervisors.def"
#undef AQ_HYPERVISOR
};

/* Lines of /proc/cpuinfo, and the facts that they are. */
static const struct {
    const char *line, *fact;
} lines[] = {
    {"vendor_id", "cpu.vendor"},
    {"cpu family", "cpu.family"},
    {"model", "cpu.model_number"},
    {"model name", "cpu.model"},
    {"stepping", "cpu.stepping"},
    {"microcode", "cpu.microcode"},
    {"siblings", "cpu.count"},
    {"cpu cores", "cpu.cores"},
    {"cpuid level", "cpu.level"},
    {"flags", "cpu.flags"},
    {"vmx flags", "cpu.vmx_flags"},
    {"bugs", "cpu.bugs"},
    {"bogomips", "cpu.bogomips"},
    {"TLB size", "cpu.tlb"},
    {"clflush size", "cpu.clflush"},
    {"cache_alignment", "cpu.alignment"},
    {"address sizes", "cpu.address_sizes"},
    {"power management", "cpu.power"},
};

typedef struct list {
    aq_arena *arena;
    aq_fact *rows;
    size_t count;
} list;

enum { MOST = sizeof lines / sizeof *lines + 8 + 6 * AQ_PROCESSOR_CACHES };

static void add(list *l, const char *name, const char *value, size_t len)
{
    l->rows[l->count++] = (aq_fact){name, aq_arena_strndup(l->arena, value, len)};
}

static void add_number(list *l, const char *name, uint64_t n)
{
    l->rows[l->count++] = (aq_fact){name, aq_arena_printf(l->arena, "%llu", (unsigned long long)n)};
}

const char *aq_processor_variant(const aq_processor *p)
{
    if (!p || !*p->hypervisor)
        return NULL;
    for (size_t i = 0; i < sizeof hypervisors / sizeof *hypervisors; i++)
        if (strcmp(hypervisors[i].signature, p->hypervisor) == 0)
            return hypervisors[i].variant;
    return hypervisors[0].variant;
}

/* The value of a line of the n-th processor; NULL where there is none. */
static const char *value_of(const char *text, unsigned n, const char *name, size_t *len)
{
    size_t width = strlen(name);

    for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *colon;

        if (*text == '\n' && n-- == 0)
            return NULL;
        if (n || strncmp(text, name, width) != 0)
            continue;
        colon = text + width + strspn(text + width, " \t");
        if (*colon != ':')
            continue;
        colon += 1 + (colon[1] == ' ');
        *len = strcspn(colon, "\n");
        return *len ? colon : NULL;
    }
    return NULL;
}

static unsigned number_of(const char *text, unsigned n, const char *name, unsigned otherwise)
{
    size_t len;
    const char *value = value_of(text, n, name, &len);

    return value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

/* The counter's rate: "cpu MHz" is what some core runs at just now, while the kernel took its
 * bogomips, twice the rate, from the counter once. */
static void add_rate(list *l, const char *text)
{
    size_t len;
    const char *value = value_of(text, 0, "bogomips", &len);
    double bogomips = value ? strtod(value, NULL) : 0;

    if (bogomips < 2 || bogomips > 100000)
        return;
    l->rows[l->count++] = (aq_fact){"cpu.mhz", aq_arena_printf(l->arena, "%.3f", bogomips / 2)};
}

/* How the kernel numbers cores and threads: one after the other, or first one thread of each. */
static void add_numbering(list *l, const char *text)
{
    unsigned siblings = number_of(text, 0, "siblings", 1);
    unsigned cores = number_of(text, 0, "cpu cores", siblings);
    unsigned threads = cores && siblings % cores == 0 ? siblings / cores : 1;
    unsigned core = number_of(text, 1, "core id", 0) - number_of(text, 0, "core id", 0);
    unsigned apic = number_of(text, 1, "apicid", 1) - number_of(text, 0, "apicid", 0);
    bool beside = threads > 1 && core == 0;
    size_t len;

    if (!value_of(text, 0, "siblings", &len))
        add_number(l, "cpu.count", 1);
    add_number(l, "cpu.threads", threads);
    add_number(l, "cpu.beside", beside);
    add_number(l, "cpu.core_step", core && core < 64 ? core : 1);
    add_number(l, "cpu.apic_step", beside ? threads : apic && apic < 256 ? apic : threads);
}

static void add_caches(list *l, const aq_processor *p)
{
    static const char *const kinds[] = {"", "Data", "Instruction", "Unified"};

    for (size_t i = 0; i < p->cache_count && i < AQ_PROCESSOR_CACHES; i++) {
        const aq_processor_cache *c = &p->caches[i];
        const char *kind = kinds[c->kind & 3];
        const uint64_t numbers[] = {c->level, (uint64_t)c->line * c->ways * c->sets / 1024,
                                    c->line,  c->ways,
                                    c->sets,  c->sharing};
        static const char *const names[] = {"level", "size", "line", "ways", "sets", "sharing"};

        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            add_number(l, aq_arena_printf(l->arena, "cache.%zu.%s", i, names[k]), numbers[k]);
        add(l, aq_arena_printf(l->arena, "cache.%zu.kind", i), kind, strlen(kind));
    }
}

size_t aq_processor_facts(aq_arena *a, const aq_processor *p, const aq_fact **ret)
{
    list l = {.arena = a};

    *ret = NULL;
    if (!p || p->len == 0)
        return 0;
    l.rows = aq_arena_alloc(a, (MOST + AQ_PROCESSOR_CACHES) * sizeof *l.rows);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        size_t len;
        const char *value = value_of(p->text, 0, lines[i].line, &len);

        if (value)
            add(&l, lines[i].fact, value, len);
    }
    add_number(&l, "cpu.cache_kb", number_of(p->text, 0, "cache size", 0));
    add_rate(&l, p->text);
    add_numbering(&l, p->text);
    add_caches(&l, p);
    *ret = l.rows;
    return l.count;
}
