/* Files that tell of the whole machine: processors, memory, disks, time. What the kernel counts
 * (interrupts, processor time, disk transfers) grows with virtual time alone, at the rates of a
 * machine that is mostly idle. */
#include "veil/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/stream.h"
#include "veil/actors.h"

static const char *text_of(const aq_veil_scene *s, const char *name)
{
    const char *fact = aq_machine_fact(s->machine, name);

    return fact ? fact : "";
}

static uint64_t seconds_up(const aq_veil_scene *s)
{
    return aq_uptime_ns(s) / 1000000000;
}

/* ---- time and load ---- */

void aq_make_uptime(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    uint64_t hundredths = aq_uptime_ns(s) / 10000000;
    uint64_t idle = hundredths * aq_veil_cpus(s->machine) / 100 * 97;

    (void)truth, (void)len;
    aq_buf_addf(ret, "%" PRIu64 ".%02" PRIu64 " %" PRIu64 ".%02" PRIu64 "\n", hundredths / 100,
                hundredths % 100, idle / 100, idle % 100);
}

void aq_veil_loads(uint64_t ret[3])
{
    ret[0] = 8, ret[1] = 3, ret[2] = 1;
}

unsigned aq_veil_threads(const aq_veil_scene *s)
{
    unsigned others = 0;

    for (size_t i = 0; i < aq_veil_actor_count; i++)
        if (aq_veil_actor_on(s->machine, &aq_veil_actors[i]))
            others += aq_veil_actors[i].threads;
    return others + s->tasks;
}

void aq_make_loadavg(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    uint64_t load[3];

    (void)truth, (void)len;
    aq_veil_loads(load);
    for (int i = 0; i < 3; i++)
        aq_buf_addf(ret, "%" PRIu64 ".%02" PRIu64 " ", load[i] / 100, load[i] % 100);
    aq_buf_addf(ret, "1/%u %d\n", aq_veil_threads(s), s->last_pid);
}

void aq_make_pressure(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)truth, (void)len;
    aq_buf_addf(ret, "some avg10=0.00 avg60=0.02 avg300=0.00 total=%" PRIu64 "\n",
                aq_uptime_ns(s) / 100000);
    aq_buf_addf(ret, "full avg10=0.00 avg60=0.00 avg300=0.00 total=%" PRIu64 "\n",
                aq_uptime_ns(s) / 400000);
}

/* ---- counters, all of which rise by a rate ---- */

static uint64_t per_second(const aq_veil_scene *s, uint64_t events, uint64_t of_seconds)
{
    return seconds_up(s) * events / of_seconds;
}

enum { ALL = 99, OWN = 100 };

static const struct interrupt {
    const char *on, *name, *what;
    unsigned cpu;                /* that takes it, ALL of them, or OWN + the one that it is for */
    unsigned events, of_seconds; /* its rate */
} interrupts[] = {
#define AQ_INTERRUPT(on, name, cpu, events, of_seconds, what)                                      \
    {on, name, what, cpu, events, of_seconds},
#include "veil/interrupts.def"
#undef AQ_INTERRUPT
};

static bool there(const aq_veil_scene *s, const struct interrupt *i)
{
    return aq_machine_is(s->machine, i->on) &&
           (i->cpu < OWN || i->cpu - OWN < aq_veil_cpus(s->machine));
}

static uint64_t interrupts_of(const aq_veil_scene *s, const struct interrupt *i, unsigned cpu)
{
    if (i->cpu == ALL)
        return per_second(s, i->events + i->events * cpu / 16, i->of_seconds);
    if ((i->cpu < OWN ? i->cpu : i->cpu - OWN) % aq_veil_cpus(s->machine) != cpu || !there(s, i))
        return 0;
    return per_second(s, i->events, i->of_seconds);
}

static uint64_t all_interrupts(const aq_veil_scene *s, const struct interrupt *i)
{
    uint64_t sum = 0;

    for (unsigned cpu = 0; cpu < aq_veil_cpus(s->machine); cpu++)
        sum += interrupts_of(s, i, cpu);
    return sum;
}

static uint64_t numbered_interrupts(const aq_veil_scene *s, unsigned nr)
{
    char name[16];

    snprintf(name, sizeof name, "%u", nr);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        if (strcmp(interrupts[i].name, name) == 0 && there(s, &interrupts[i]))
            return all_interrupts(s, &interrupts[i]);
    return 0;
}

static void add_processors(const aq_veil_scene *s, aq_buf *ret)
{
    for (unsigned cpu = 0, cpus = aq_veil_cpus(s->machine); cpu < cpus; cpu++)
        aq_buf_addf(ret, "CPU%-8u", cpu);
    aq_buf_addc(ret, '\n');
}

void aq_make_interrupts(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    unsigned cpus = aq_veil_cpus(s->machine);

    (void)truth, (void)len;
    aq_buf_adds(ret, "           ");
    add_processors(s, ret);
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++) {
        const struct interrupt *row = &interrupts[i];

        if (!there(s, row))
            continue;
        aq_buf_addf(ret, "%4s:", row->name);
        if (!*row->what) { /* one number for all */
            aq_buf_addf(ret, " %10u\n", 0);
            continue;
        }
        for (unsigned cpu = 0; cpu < cpus; cpu++)
            aq_buf_addf(ret, " %10" PRIu64, interrupts_of(s, row, cpu));
        aq_buf_adds(ret, "  ");
        aq_add_facts(ret, s->machine, 0, row->what);
        aq_buf_addc(ret, '\n');
    }
}

static const struct softirq {
    const char *name;
    unsigned events, of_seconds;
} softirqs[] = {
    {"HI", 1, 3000},     {"TIMER", 21, 1},   {"NET_TX", 1, 400}, {"NET_RX", 3, 2},
    {"BLOCK", 1, 1},     {"IRQ_POLL", 0, 1}, {"TASKLET", 1, 90}, {"SCHED", 47, 1},
    {"HRTIMER", 1, 700}, {"RCU", 39, 1},
};

static uint64_t softirqs_of(const aq_veil_scene *s, const struct softirq *i, unsigned cpu)
{
    return per_second(s, i->events, i->of_seconds) * (16 - cpu % 8) / 16;
}

void aq_make_softirqs(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    unsigned cpus = aq_veil_cpus(s->machine);

    (void)truth, (void)len;
    aq_buf_adds(ret, "                    ");
    add_processors(s, ret);
    for (size_t i = 0; i < sizeof softirqs / sizeof *softirqs; i++) {
        aq_buf_addf(ret, "%12s:", softirqs[i].name);
        for (unsigned cpu = 0; cpu < cpus; cpu++)
            aq_buf_addf(ret, " %10" PRIu64, softirqs_of(s, &softirqs[i], cpu));
        aq_buf_addc(ret, '\n');
    }
}

/* Ticks of one processor: user, nice, system, idle, waiting, interrupts, soft interrupts. */
static void processor_ticks(const aq_veil_scene *s, unsigned cpu, uint64_t v[7])
{
    uint64_t all = aq_ticks(s, aq_uptime_ns(s));

    v[0] = all / 1000 * (11 + cpu * 3 % 5);
    v[1] = all / 100000 * (2 + cpu % 2);
    v[2] = all / 1000 * (5 + cpu % 3);
    v[4] = all / 10000 * (6 + cpu % 4);
    v[5] = 0;
    v[6] = all / 100000 * (9 + cpu % 3);
    v[3] = all - v[0] - v[1] - v[2] - v[4] - v[6];
}

static void add_processor(aq_buf *ret, const uint64_t v[7])
{
    for (int i = 0; i < 7; i++)
        aq_buf_addf(ret, " %" PRIu64, v[i]);
    aq_buf_adds(ret, " 0 0 0\n");
}

void aq_make_stat(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    unsigned cpus = aq_veil_cpus(s->machine);
    uint64_t sum[7] = {0}, v[7], all = 0, soft = 0, of_soft[16] = {0};

    (void)truth, (void)len;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        processor_ticks(s, cpu, v);
        for (int i = 0; i < 7; i++)
            sum[i] += v[i];
        for (size_t i = 0; i < sizeof softirqs / sizeof *softirqs; i++)
            of_soft[i] += softirqs_of(s, &softirqs[i], cpu);
    }
    aq_buf_adds(ret, "cpu ");
    add_processor(ret, sum);
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        processor_ticks(s, cpu, v);
        aq_buf_addf(ret, "cpu%u", cpu);
        add_processor(ret, v);
    }
    for (size_t i = 0; i < sizeof interrupts / sizeof *interrupts; i++)
        all += there(s, &interrupts[i]) ? all_interrupts(s, &interrupts[i]) : 0;
    aq_buf_addf(ret, "intr %" PRIu64, all);
    for (unsigned nr = 0; nr < 160; nr++)
        aq_buf_addf(ret, " %" PRIu64, numbered_interrupts(s, nr));
    aq_buf_addf(ret, "\nctxt %" PRIu64 "\n", per_second(s, 421, 1));
    aq_buf_addf(ret, "btime %" PRId64 "\n",
                s->machine->start_ns / 1000000000 - (int64_t)(s->machine->uptime_ns / 1000000000));
    aq_buf_addf(ret, "processes %d\nprocs_running 1\nprocs_blocked 0\nsoftirq", s->last_pid);
    for (size_t i = 0; i < sizeof softirqs / sizeof *softirqs; i++)
        soft += of_soft[i];
    aq_buf_addf(ret, " %" PRIu64, soft);
    for (size_t i = 0; i < sizeof softirqs / sizeof *softirqs; i++)
        aq_buf_addf(ret, " %" PRIu64, of_soft[i]);
    aq_buf_addc(ret, '\n');
}

/* ---- modules ---- */

void aq_make_modules(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    static const struct {
        const char *on, *name, *by;
        unsigned size, uses;
    } modules[] = {
#define AQ_MODULE(on, name, size, uses, by) {on, name, by, size, uses},
#include "veil/modules.def"
#undef AQ_MODULE
    };

    (void)truth, (void)len;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (aq_machine_is(s->machine, modules[i].on))
            aq_buf_addf(ret, "%s %u %u %s Live 0x0000000000000000\n", modules[i].name,
                        modules[i].size, modules[i].uses, modules[i].by);
}

/* ---- memory ---- */

aq_veil_memory aq_veil_memory_of(const aq_machine *m)
{
    aq_veil_memory v = {.total_kb = aq_machine_number(m, "memory.total_kb", 16142540),
                        .swap_kb = aq_machine_number(m, "swap.total_kb", 0)};

    v.free_kb = aq_machine_number(m, "memory.free_kb", v.total_kb / 2);
    v.available_kb = aq_machine_number(m, "memory.available_kb", v.total_kb / 4 * 3);
    if (v.total_kb > UINT64_MAX / 1024 || v.swap_kb > UINT64_MAX / 1024)
        v.total_kb = v.swap_kb = UINT64_MAX / 1024;
    if (v.available_kb > v.total_kb)
        v.available_kb = v.total_kb;
    if (v.free_kb > v.available_kb)
        v.free_kb = v.available_kb;
    v.buffers_kb = v.total_kb / 64 / 4 * 4;
    v.cached_kb = (v.available_kb - v.free_kb) / 20 * 19 / 4 * 4;
    v.shared_kb = v.total_kb / 40 / 4 * 4;
    return v;
}

static void add_memory(aq_buf *ret, const char *name, uint64_t kb)
{
    aq_buf_addf(ret, "%s:%*s%8" PRIu64 " kB\n", name,
                (int)(strlen(name) < 15 ? 15 - strlen(name) : 0), "", kb);
}

static void add_large_pages(uint64_t total_kb, aq_buf *ret)
{
    aq_buf_adds(ret, "HugePages_Total:       0\nHugePages_Free:        0\n"
                     "HugePages_Rsvd:        0\nHugePages_Surp:        0\n"
                     "Hugepagesize:       2048 kB\nHugetlb:               0 kB\n");
    add_memory(ret, "DirectMap4k", 321644);
    add_memory(ret, "DirectMap2M", 6883328);
    add_memory(ret, "DirectMap1G", total_kb / (1 << 20) < 8 ? 0 : (total_kb / (1 << 20) - 6) << 20);
}

void aq_make_meminfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    const aq_veil_memory m = aq_veil_memory_of(s->machine);
    uint64_t anonymous = (m.total_kb - m.available_kb) / 3 * 2 / 4 * 4;
    uint64_t slab = m.total_kb / 52 / 4 * 4, file = m.cached_kb + m.buffers_kb - m.shared_kb;
    const struct {
        const char *name;
        uint64_t kb;
    } rows[] = {
        {"MemTotal", m.total_kb},
        {"MemFree", m.free_kb},
        {"MemAvailable", m.available_kb},
        {"Buffers", m.buffers_kb},
        {"Cached", m.cached_kb},
        {"SwapCached", 0},
        {"Active", file / 3 + m.shared_kb},
        {"Inactive", file - file / 3 + anonymous},
        {"Active(anon)", m.shared_kb},
        {"Inactive(anon)", anonymous},
        {"Active(file)", file / 3},
        {"Inactive(file)", file - file / 3},
        {"Unevictable", 16},
        {"Mlocked", 16},
        {"SwapTotal", m.swap_kb},
        {"SwapFree", m.swap_kb},
        {"Zswap", 0},
        {"Zswapped", 0},
        {"Dirty", 212},
        {"Writeback", 0},
        {"AnonPages", anonymous},
        {"Mapped", anonymous / 5 * 2},
        {"Shmem", m.shared_kb},
        {"KReclaimable", slab / 3 * 2},
        {"Slab", slab},
        {"SReclaimable", slab / 3 * 2},
        {"SUnreclaim", slab - slab / 3 * 2},
        {"KernelStack", 9184},
        {"PageTables", anonymous / 64},
        {"SecPageTables", 0},
        {"NFS_Unstable", 0},
        {"Bounce", 0},
        {"WritebackTmp", 0},
        {"CommitLimit", m.swap_kb + m.total_kb / 2},
        {"Committed_AS", anonymous * 2 + m.shared_kb},
        {"VmallocTotal", 34359738367},
        {"VmallocUsed", 54312},
        {"VmallocChunk", 0},
        {"Percpu", aq_veil_cpus(s->machine) * 1024},
        {"HardwareCorrupted", 0},
        {"AnonHugePages", anonymous / 4 / 2048 * 2048},
        {"ShmemHugePages", 0},
        {"ShmemPmdMapped", 0},
        {"FileHugePages", 0},
        {"FilePmdMapped", 0},
    };

    (void)truth, (void)len;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_memory(ret, rows[i].name, rows[i].kb);
    add_large_pages(m.total_kb, ret);
}

void aq_make_swaps(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    uint64_t kb = aq_veil_memory_of(s->machine).swap_kb;

    (void)truth, (void)len;
    aq_buf_adds(ret, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
    if (kb > 0)
        aq_buf_addf(
            ret, "/dev/%sp3%*s partition\t%" PRIu64 "\t\t0\t\t-2\n", text_of(s, "disk.name"),
            (int)(strlen(text_of(s, "disk.name")) < 32 ? 32 - strlen(text_of(s, "disk.name")) : 0),
            "", kb);
}

/* The names are the kernel's and hardly differ between versions; what is counted is left out. */
void aq_make_vmstat(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    const aq_veil_memory m = aq_veil_memory_of(s->machine);
    aq_lines l = {truth, truth + len};
    const char *line, *name;
    size_t n, size;

    while (aq_line_next(&l, &line, &n)) {
        aq_lines words = {line, line + n};
        uint64_t value = 0;

        if (!aq_word_next(&words, &name, &size))
            continue;
        if (aq_word_is(name, size, "nr_free_pages"))
            value = m.free_kb / 4;
        else if (aq_word_is(name, size, "nr_file_pages"))
            value = (m.cached_kb + m.buffers_kb) / 4;
        else if (aq_word_is(name, size, "nr_shmem"))
            value = m.shared_kb / 4;
        else if (size > 2 && memcmp(name, "pg", 2) == 0)
            value = per_second(s, 100 + (unsigned)size * 7, 3);
        aq_buf_addf(ret, "%.*s %" PRIu64 "\n", (int)size, name, value);
    }
}

void aq_make_buddyinfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    uint64_t blocks = aq_veil_memory_of(s->machine).free_kb / 4096;

    (void)truth, (void)len;
    aq_buf_adds(ret, "Node 0, zone      DMA      0      0      0      0      0      0      0      0"
                     "      1      2      2 \n");
    aq_buf_adds(ret, "Node 0, zone    DMA32      6      5      6      7      5      5      5      6"
                     "      6      3    440 \n");
    aq_buf_addf(ret,
                "Node 0, zone   Normal   1187    934    611    438    289    171     96     51"
                "     30     17 %6" PRIu64 " \n",
                blocks > 500 ? blocks - 500 : 0);
}

void aq_make_zoneinfo(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    const aq_veil_memory m = aq_veil_memory_of(s->machine);

    (void)truth, (void)len;
    aq_buf_addf(ret,
                "Node 0, zone   Normal\n  pages free     %" PRIu64 "\n        boost    0\n"
                "        min      16441\n        low      20551\n        high     24661\n"
                "        spanned  %" PRIu64 "\n        present  %" PRIu64 "\n"
                "        managed  %" PRIu64 "\n",
                m.free_kb / 4, m.total_kb / 4, m.total_kb / 4, m.total_kb / 4);
}

void aq_make_filenr(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)truth, (void)len;
    aq_buf_addf(ret, "%u\t0\t9223372036854775807\n", 4384 + s->tasks * 32);
}

/* ---- disks ---- */

typedef struct part {
    uint64_t start, sectors;
} part;

/* As an installer divides it: one for the firmware, the root, swap at the end. */
static void divide(const aq_machine *m, part of[4])
{
    uint64_t all = aq_machine_number(m, "disk.sectors", 976773168),
             swap = aq_machine_number(m, "swap.total_kb", 0) * 2 + 8;

    if (all < 4 << 20 || all > UINT64_MAX / 1024)
        all = 976773168;
    if (swap > all / 4)
        swap = all / 4;
    of[0] = (part){0, all};
    of[1] = (part){2048, 1 << 20};
    of[3].sectors = swap;
    of[2].start = of[1].start + of[1].sectors;
    of[2].sectors = (all - of[2].start - swap - 2048) / 2048 * 2048;
    of[3].start = of[2].start + of[2].sectors;
}

void aq_disk_part(const aq_machine *m, unsigned nr, uint64_t *start, uint64_t *sectors)
{
    part of[4];

    divide(m, of);
    *start = of[nr % 4].start;
    *sectors = of[nr % 4].sectors;
}

void aq_make_partitions(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    part of[4];

    (void)truth, (void)len;
    divide(s->machine, of);
    aq_buf_adds(ret, "major minor  #blocks  name\n\n");
    aq_buf_addf(ret, " 259        0 %10" PRIu64 " %s\n", of[0].sectors / 2,
                text_of(s, "disk.name"));
    for (int i = 1; i < 4; i++)
        aq_buf_addf(ret, " 259        %d %10" PRIu64 " %sp%d\n", i, of[i].sectors / 2,
                    text_of(s, "disk.name"), i);
}

void aq_make_diskstats(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    static const unsigned shares[] = {100, 1, 98, 1}; /* of all transfers, in percent */
    uint64_t reads = 41873 + per_second(s, 1, 4), writes = 2204 + per_second(s, 3, 1);

    (void)truth, (void)len;
    for (int i = 0; i < 4; i++) {
        uint64_t r = reads * shares[i] / 100, w = i == 1 ? 2 : writes * shares[i] / 100;
        char name[64];

        if (i == 0)
            snprintf(name, sizeof name, "%s", text_of(s, "disk.name"));
        else
            snprintf(name, sizeof name, "%sp%d", text_of(s, "disk.name"), i);
        aq_buf_addf(ret,
                    " 259       %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                    " %" PRIu64 " %" PRIu64 " %" PRIu64 " 0 %" PRIu64 " %" PRIu64
                    " 0 0 0 0 %" PRIu64 " %" PRIu64 "\n",
                    i, name, r, r / 5, r * 51, r / 3, w, w / 2 * 3, w * 19, w * 2, r / 2 + w / 3,
                    r / 3 + w * 2, w / 9, w / 20);
    }
}

/* ---- chance ---- */

void aq_make_uuid(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    char name[64];
    uint8_t b[16];
    aq_stream stream;

    (void)truth, (void)len;
    snprintf(name, sizeof name, "proc.uuid.%" PRIu64, s->draw);
    stream = aq_stream_of(s->machine->entropy, name);
    aq_stream_bytes(&stream, b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++)
        aq_buf_addf(ret, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
    aq_buf_addc(ret, '\n');
}
