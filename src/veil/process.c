/* Files that tell of one process or thread. What identifies it (numbers, name, where its memory
 * lies) is the kernel's; what would show that somebody stops it at every call, holds its privileges
 * or measures by another clock is ours. */
#include "veil/internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- limits ---- */

static const uint64_t UNLIMITED = UINT64_MAX, PROCESSES = UINT64_MAX - 1, LOCKED = UINT64_MAX - 2;
enum { LIMITS = 16 };

static const struct limit {
    const char *title, *units;
    uint64_t of[2];
} session[LIMITS] = {
#define AQ_VEIL_LIMIT(title, units, soft, hard) {title, units, {soft, hard}},
#define UNLIMITED                               UINT64_MAX
#define PROCESSES                               (UINT64_MAX - 1)
#define LOCKED                                  (UINT64_MAX - 2)
#include "veil/limits.def"
#undef AQ_VEIL_LIMIT
#undef UNLIMITED
#undef PROCESSES
#undef LOCKED
};

/* As the kernel counts them: an eighth of the memory may be stacks of threads, half of that one
 * user's. */
static uint64_t processes(const aq_machine *m)
{
    return aq_veil_memory_of(m).total_kb / 16 / 8 / 2;
}

void aq_veil_limit(const aq_machine *m, unsigned resource, uint64_t ret[2])
{
    for (int i = 0; i < 2; i++) {
        uint64_t v = resource < LIMITS ? session[resource].of[i] : UNLIMITED;

        ret[i] = v == PROCESSES ? processes(m)
                 : v == LOCKED  ? aq_veil_memory_of(m).total_kb / 8 / 4 * 4 * 1024
                                : v;
    }
}

static void add_limit(aq_buf *ret, uint64_t v)
{
    if (v == UNLIMITED)
        aq_buf_addf(ret, "%-20s ", "unlimited");
    else
        aq_buf_addf(ret, "%-20" PRIu64 " ", v);
}

void aq_make_limits(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)truth, (void)len;
    aq_buf_addf(ret, "%-25s %-20s %-20s %-10s\n", "Limit", "Soft Limit", "Hard Limit", "Units");
    for (unsigned i = 0; i < LIMITS; i++) {
        uint64_t v[2];

        aq_veil_limit(s->machine, i, v);
        if (s->of.limits)
            memcpy(v, s->of.limits[i], sizeof v);
        aq_buf_addf(ret, "%-25s ", session[i].title);
        add_limit(ret, v[0]);
        add_limit(ret, v[1]);
        if (*session[i].units)
            aq_buf_addf(ret, "%-10s\n", session[i].units);
        else
            aq_buf_addc(ret, '\n');
    }
}

/* ---- what several files of a process say ---- */

/* All who are stopped by us sleep, as far as anybody can tell; who ended, ended. */
static char state_of(const aq_veil_scene *s, char truth)
{
    if (truth == 'Z' || truth == 'X')
        return truth;
    return s->of.running ? 'R' : s->of.halted ? 'T' : 'S';
}

static const char *state_name(char state)
{
    return state == 'R'   ? "running"
           : state == 'S' ? "sleeping"
           : state == 'T' ? "stopped"
           : state == 'Z' ? "zombie"
                          : "dead";
}

static uint64_t voluntary(const aq_veil_scene *s)
{
    return 1 + s->of.calls / 97;
}

static uint64_t involuntary(const aq_veil_scene *s)
{
    return s->of.cpu_ns / 3000000;
}

/* ---- status ---- */

typedef enum treatment {
    KEEP,
    STATE,
    PARENT,
    ZERO,
    ONE,
    GROUPS,
    SIZE,
    RESIDENT,
    ANONYMOUS,
    FILED,
    NO_MEMORY,
    TABLES,
    QUEUE,
    BOUND,
    NO_NEW,
    FILTERED,
    FILTERS,
    SPECULATION,
    INDIRECT,
    CPU_MASK,
    CPU_LIST,
    VOLUNTARY,
    INVOLUNTARY,
} treatment;

static const struct row {
    const char *key;
    treatment how;
} rows[] = {
#define AQ_STATUS(key, how) {key, how},
#include "veil/status.def"
#undef AQ_STATUS
};

static const struct row *row_of(const char *key, size_t len)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (aq_word_is(key, len, rows[i].key))
            return &rows[i];
    return NULL;
}

static uint64_t first_number(const char *value, size_t len)
{
    aq_lines l = {value, value + len};
    const char *word;
    size_t n;

    return aq_word_next(&l, &word, &n) ? aq_word_number(word, n, 10) : 0;
}

static void add_kb(aq_buf *ret, uint64_t kb)
{
    aq_buf_addf(ret, "\t%8" PRIu64 " kB", kb);
}

void aq_add_groups(const aq_veil_scene *s, aq_buf *ret)
{
    uint32_t groups[64];
    size_t count = aq_veil_groups(s->machine, groups, 64);

    for (size_t i = 0; i < count && i < 64; i++)
        aq_buf_addf(ret, "%u ", groups[i]);
    if (count == 0)
        aq_buf_addc(ret, ' ');
}

/* What concerns memory; `size` is the whole of it. */
static void add_memory_value(treatment how, uint64_t size, aq_buf *ret)
{
    uint64_t resident = aq_veil_resident_kb(size);

    switch (how) {
    case RESIDENT:
        add_kb(ret, resident);
        break;
    case ANONYMOUS:
        add_kb(ret, resident / 16 * 4);
        break;
    case FILED:
        add_kb(ret, resident - resident / 16 * 4);
        break;
    case TABLES:
        add_kb(ret, 36 + (size < 1 << 20 ? size : 1 << 20) / 2048 * 4);
        break;
    default:
        add_kb(ret, 0);
    }
}

static void add_value(const aq_veil_scene *s, treatment how, const char *value, size_t len,
                      aq_buf *ret)
{
    switch (how) {
    case STATE: {
        const char *word = value + (len > 0 && *value == '\t');
        char state = state_of(s, len > 1 ? *word : 'S');

        aq_buf_addf(ret, "\t%c (%s)", state, state_name(state));
        break;
    }
    case PARENT:
        aq_buf_addf(ret, "\t%" PRIu64,
                    s->of.parent > 0 ? (uint64_t)s->of.parent : first_number(value, len));
        break;
    case ZERO:
    case ONE:
        aq_buf_addf(ret, "\t%d", how == ONE);
        break;
    case GROUPS:
        aq_buf_addc(ret, '\t');
        aq_add_groups(s, ret);
        break;
    case QUEUE:
        aq_buf_addf(ret, "\t0/%" PRIu64, processes(s->machine));
        break;
    case BOUND:
        aq_buf_adds(ret, "\t000001ffffffffff");
        break;
    case NO_NEW:
        aq_buf_addf(ret, "\t%d", s->of.no_new_privileges);
        break;
    case FILTERED:
        aq_buf_addf(ret, "\t%d", s->of.filters > 0 ? 2 : 0);
        break;
    case FILTERS:
        aq_buf_addf(ret, "\t%d", s->of.filters);
        break;
    case SPECULATION:
        aq_buf_adds(ret, "\tthread vulnerable");
        break;
    case INDIRECT:
        aq_buf_adds(ret, "\tconditional enabled");
        break;
    case CPU_MASK:
        aq_buf_addc(ret, '\t');
        aq_add_cpu_mask(ret, s);
        break;
    case CPU_LIST:
        aq_buf_addc(ret, '\t');
        aq_add_cpu_list(ret, s);
        break;
    case VOLUNTARY:
        aq_buf_addf(ret, "\t%" PRIu64, voluntary(s));
        break;
    case INVOLUNTARY:
        aq_buf_addf(ret, "\t%" PRIu64, involuntary(s));
        break;
    default:
        aq_buf_add(ret, value, len);
    }
}

void aq_make_status(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    uint64_t size = 0;
    const char *line;
    size_t n;

    while (aq_line_next(&l, &line, &n)) {
        const char *colon = memchr(line, ':', n);
        size_t key = colon ? (size_t)(colon - line) : 0;
        const struct row *r = key ? row_of(line, key) : NULL;

        if (!r)
            continue;
        aq_buf_add(ret, line, key + 1);
        if (r->how == SIZE)
            size = first_number(colon + 1, n - key - 1);
        if (r->how >= RESIDENT && r->how <= TABLES)
            add_memory_value(r->how, size, ret);
        else
            add_value(s, r->how, colon + 1, n - key - 1, ret);
        aq_buf_addc(ret, '\n');
    }
}

/* ---- stat, statm ---- */

/* Fields of stat, counted as in proc(5). */
enum {
    F_STATE = 3,
    F_PARENT = 4,
    F_FLAGS = 9,
    F_MINOR = 10,
    F_MAJOR_CHILDREN = 13,
    F_USER = 14,
    F_SYSTEM,
    F_CHILDREN_USER,
    F_CHILDREN_SYSTEM,
    F_PRIORITY = 18,
    F_NICE = 19,
    F_START = 22,
    F_SIZE = 23,
    F_RESIDENT = 24,
    F_RESIDENT_LIMIT = 25,
    F_WAITS_AT = 35,
    F_PROCESSOR = 39,
    F_URGENT = 40,
    F_POLICY = 41,
    F_DELAY = 42,
    F_GUEST_CHILDREN = 44,
    FORKED = 0x40, /* flags: it has not executed a program since it was made */
    RANDOM_LAYOUT = 0x400000,
};

static uint64_t field(const aq_veil_scene *s, int nr, uint64_t value, uint64_t size_kb)
{
    uint64_t of = nr >= F_CHILDREN_USER ? s->of.children_ns : s->of.cpu_ns;

    switch (nr) {
    case F_PARENT:
        return s->of.parent > 0 ? (uint64_t)s->of.parent : value;
    case F_FLAGS:
        return (value & FORKED) | RANDOM_LAYOUT;
    case F_MINOR:
        return 90 + s->of.calls / 7;
    case F_USER:
    case F_CHILDREN_USER:
        return aq_ticks(s, of - of / 4);
    case F_SYSTEM:
    case F_CHILDREN_SYSTEM:
        return aq_ticks(s, of / 4);
    case F_PRIORITY:
        return (uint64_t)(20 + s->of.nice);
    case F_NICE:
        return (uint64_t)s->of.nice;
    case F_POLICY:
        return (uint64_t)s->of.policy;
    case F_START:
        return aq_ticks(s, s->machine->uptime_ns + s->of.born_ns);
    case F_RESIDENT:
        return aq_veil_resident_kb(size_kb) / 4;
    case F_RESIDENT_LIMIT:
        return UNLIMITED;
    case F_PROCESSOR:
        return aq_veil_cpu(s->machine, s->of.cpus, s->clock_ns, s->of.calls);
    default:
        if ((nr > F_MINOR && nr <= F_MAJOR_CHILDREN) || nr == F_WAITS_AT || nr == F_URGENT ||
            (nr >= F_DELAY && nr <= F_GUEST_CHILDREN))
            return 0;
        return value;
    }
}

static bool is_ours(int nr)
{
    return nr == F_PARENT || (nr >= F_FLAGS && nr <= F_CHILDREN_SYSTEM) || nr == F_START ||
           nr == F_PRIORITY || nr == F_NICE || nr == F_URGENT || nr == F_POLICY ||
           nr == F_RESIDENT || nr == F_RESIDENT_LIMIT || nr == F_WAITS_AT || nr == F_PROCESSOR ||
           (nr >= F_DELAY && nr <= F_GUEST_CHILDREN);
}

/* The name may hold anything, closing brackets too: what follows the last one is numbers. */
static const char *after_name(const char *line, size_t len)
{
    while (len > 0 && line[len - 1] != ')')
        len--;
    return len > 0 ? line + len : NULL;
}

void aq_make_process_stat(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    const char *rest = after_name(truth, len), *word;
    aq_lines l = {rest, truth + len};
    uint64_t size_kb = 0;
    size_t n;

    if (!rest)
        return;
    aq_buf_add(ret, truth, (size_t)(rest - truth));
    for (int nr = F_STATE; aq_word_next(&l, &word, &n); nr++) {
        if (word[n - 1] == '\n' && --n == 0)
            break;
        aq_buf_addc(ret, ' ');
        if (nr == F_SIZE)
            size_kb = aq_word_number(word, n, 10) / 1024;
        if (nr == F_STATE)
            aq_buf_addc(ret, state_of(s, *word));
        else if (is_ours(nr))
            aq_buf_addf(ret, "%" PRIu64, field(s, nr, aq_word_number(word, n, 10), size_kb));
        else
            aq_buf_add(ret, word, n);
    }
    aq_buf_addc(ret, '\n');
}

void aq_make_statm(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    uint64_t resident = 0;
    size_t n, size;

    (void)s;
    if (!aq_line_next(&l, &line, &size))
        return;
    l = (aq_lines){line, line + size};
    for (int i = 0; aq_word_next(&l, &word, &n); i++) {
        uint64_t v = aq_word_number(word, n, 10);

        if (i == 0 && v < UINT64_MAX / 4)
            resident = aq_veil_resident_kb(v * 4) / 4;
        v = i == 1 ? resident : i == 2 ? resident - resident / 4 : v;
        aq_buf_addf(ret, "%s%" PRIu64, i ? " " : "", v);
    }
    aq_buf_addc(ret, '\n');
}

/* ---- the rest ---- */

/* What came from a disk depends on what the host had in memory. */
void aq_make_io(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;

    (void)s;
    while (aq_line_next(&l, &line, &n)) {
        const char *colon = memchr(line, ':', n);
        size_t key = colon ? (size_t)(colon - line) : n;
        bool disk = key > 5 && memcmp(line + key - 5, "bytes", 5) == 0;

        aq_buf_add(ret, line, disk ? key : n);
        aq_buf_adds(ret, disk ? ": 0\n" : "\n");
    }
}

void aq_make_schedstat(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    (void)truth, (void)len;
    aq_buf_addf(ret, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->of.cpu_ns, s->of.cpu_ns / 23,
                voluntary(s) + involuntary(s));
}

static void add_time(aq_buf *ret, const char *name, uint64_t ns)
{
    aq_buf_addf(ret, "%-45s:%14" PRIu64 ".%06" PRIu64 "\n", name, ns / 1000000, ns % 1000000);
}

static void add_count(aq_buf *ret, const char *name, uint64_t n)
{
    aq_buf_addf(ret, "%-45s:%21" PRIu64 "\n", name, n);
}

/* What a task counts beside others: a quarter more or less for each step of nice. */
static uint64_t weight(const aq_veil_scene *s)
{
    enum { IDLE = 5, IDLE_WEIGHT = 3 };
    static const uint16_t of[] = {1024, 820, 655, 526, 423, 335, 272, 215, 172, 137,
                                  110,  87,  70,  56,  45,  36,  29,  23,  18,  15};
    unsigned nice = s->of.nice > 0 && s->of.nice < 20 ? (unsigned)s->of.nice : 0;

    return (s->of.policy == IDLE ? IDLE_WEIGHT : of[nice]) * 1024ULL;
}

static void add_sched(const aq_veil_scene *s, aq_buf *ret)
{
    aq_buf_adds(ret, "-------------------------------------------------------------------\n");
    add_time(ret, "se.exec_start", aq_uptime_ns(s));
    add_time(ret, "se.vruntime", s->of.cpu_ns + 184123456789);
    add_time(ret, "se.sum_exec_runtime", s->of.cpu_ns);
    add_count(ret, "se.nr_migrations", s->of.calls / 4096);
    add_count(ret, "nr_switches", voluntary(s) + involuntary(s));
    add_count(ret, "nr_voluntary_switches", voluntary(s));
    add_count(ret, "nr_involuntary_switches", involuntary(s));
    add_count(ret, "se.load.weight", weight(s));
    add_count(ret, "se.avg.load_sum", 4021);
    add_count(ret, "se.avg.runnable_sum", 4118271);
    add_count(ret, "se.avg.util_sum", 1022387);
    add_count(ret, "se.avg.load_avg", 88);
    add_count(ret, "se.avg.runnable_avg", 88);
    add_count(ret, "se.avg.util_avg", 21);
    add_count(ret, "se.avg.last_update_time", aq_uptime_ns(s) / 1024 * 1024);
    add_count(ret, "se.avg.util_est.ewma", 23);
    add_count(ret, "se.avg.util_est.enqueued", 21);
    add_count(ret, "policy", (uint64_t)s->of.policy);
    add_count(ret, "prio", (uint64_t)(120 + s->of.nice));
    add_count(ret, "clock-delta", 26);
    add_count(ret, "mm->numa_scan_seq", 0);
    add_count(ret, "numa_pages_migrated", 0);
    aq_buf_addf(ret, "%-45s:%21d\n", "numa_preferred_nid", -1);
    add_count(ret, "total_numa_faults", 0);
    aq_buf_adds(ret, "current_node=0, numa_group_id=0\n"
                     "numa_faults node=0 task_private=0 task_shared=0 group_private=0 "
                     "group_shared=0\n");
}

void aq_make_sched_of(const aq_veil_scene *s, const char *comm, int pid, unsigned threads,
                      aq_buf *ret)
{
    aq_buf_addf(ret, "%s (%d, #threads: %u)\n", comm, pid, threads);
    add_sched(s, ret);
}

void aq_make_sched(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;

    if (!aq_line_next(&l, &line, &n))
        return;
    aq_buf_add(ret, line, n); /* its name and number */
    aq_buf_addc(ret, '\n');
    add_sched(s, ret);
}

/* Two thirds of a thousand, and a little for the memory in use: the host's, here. */
void aq_make_oom(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    uint64_t score = first_number(truth, len > 0 && truth[len - 1] == '\n' ? len - 1 : len);

    (void)s;
    if (score > 640 && score < 720)
        score = 666;
    aq_buf_addf(ret, "%" PRIu64 "\n", score);
}
