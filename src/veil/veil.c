/* The table of files (files.def), reading lines and words, and what several makers share. */
#include <stdlib.h>
#include <string.h>

#include "veil/actors.h"
#include "veil/internal.h"

/* ---- lines and words ---- */

bool aq_line_next(aq_lines *l, const char **line, size_t *len)
{
    const char *end;

    if (l->at == l->end)
        return false;
    end = memchr(l->at, '\n', (size_t)(l->end - l->at));
    *line = l->at;
    *len = (size_t)((end ? end : l->end) - l->at);
    l->at = end ? end + 1 : l->end;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool aq_word_next(aq_lines *l, const char **word, size_t *len)
{
    while (l->at < l->end && is_blank(*l->at))
        l->at++;
    *word = l->at;
    while (l->at < l->end && !is_blank(*l->at))
        l->at++;
    *len = (size_t)(l->at - *word);
    return *len > 0;
}

bool aq_word_is(const char *word, size_t len, const char *text)
{
    return len == strlen(text) && memcmp(word, text, len) == 0;
}

uint64_t aq_word_number(const char *word, size_t len, unsigned base)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = word[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 99;

        if (digit >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
            __builtin_add_overflow(n, (uint64_t)digit, &n))
            return 0;
    }
    return n;
}

size_t aq_word_hex(const char *word, size_t len)
{
    size_t n = 0;

    while (n < len && ((word[n] >= '0' && word[n] <= '9') || (word[n] >= 'a' && word[n] <= 'f')))
        n++;
    return n;
}

/* ---- what several say ---- */

uint64_t aq_uptime_ns(const aq_veil_scene *s)
{
    return s->machine->uptime_ns + s->clock_ns;
}

uint64_t aq_ticks(const aq_veil_scene *s, uint64_t ns)
{
    (void)s;
    return ns / 10000000;
}

unsigned aq_veil_cpus(const aq_machine *m)
{
    uint64_t n = aq_machine_number(m, "cpu.count", 4);

    return n < 1 ? 1 : n > AQ_VEIL_CPUS ? AQ_VEIL_CPUS : (unsigned)n;
}

static bool may_use(const uint8_t *cpus, unsigned cpu)
{
    return !cpus || (cpus[cpu / 8] >> cpu % 8 & 1);
}

/* A task moves now and then: with the clock, never between two calls that ask at once. */
unsigned aq_veil_cpu(const aq_machine *m, const uint8_t *allowed, uint64_t clock_ns, uint64_t calls)
{
    unsigned count = aq_veil_cpus(m), usable = 0, nth;

    for (unsigned i = 0; i < count; i++)
        usable += may_use(allowed, i);
    if (usable == 0)
        return 0;
    nth = (unsigned)((clock_ns / 20000000 + calls / 4096) * 2654435761u % usable);
    for (unsigned i = 0; i < count; i++)
        if (may_use(allowed, i) && nth-- == 0)
            return i;
    return 0;
}

void aq_add_cpu_list(aq_buf *ret, const aq_veil_scene *s)
{
    unsigned count = aq_veil_cpus(s->machine);
    bool first = true;

    for (unsigned i = 0; i < count; i++) {
        unsigned from = i;

        if (!may_use(s->of.cpus, i))
            continue;
        while (i + 1 < count && may_use(s->of.cpus, i + 1))
            i++;
        aq_buf_addf(ret, from == i ? "%s%u" : "%s%u-%u", first ? "" : ",", from, i);
        first = false;
    }
}

/* As many digits as the machine has places for, in groups of 32 bits. */
void aq_add_cpu_mask(aq_buf *ret, const aq_veil_scene *s)
{
    unsigned count = aq_veil_cpus(s->machine), words = (count + 31) / 32;

    for (unsigned w = words; w-- > 0;) {
        unsigned bits = w == words - 1 && count % 32 ? count % 32 : 32;
        uint32_t mask = 0;

        for (unsigned b = 0; b < bits; b++)
            mask |= may_use(s->of.cpus, w * 32 + b) ? 1u << b : 0;
        aq_buf_addf(ret, "%s%0*x", w == words - 1 ? "" : ",", (int)((bits + 3) / 4), mask);
    }
}

size_t aq_veil_groups(const aq_machine *m, uint32_t *ret, size_t cap)
{
    const char *text = aq_machine_fact(m, "user.groups");
    size_t count = 0, len;
    const char *word;

    if (!text)
        return 0;
    for (aq_lines l = {text, text + strlen(text)}; aq_word_next(&l, &word, &len); count++)
        if (count < cap)
            ret[count] = (uint32_t)aq_word_number(word, len, 10);
    return count;
}

/* Nobody could tell how much of a program is in memory: what is depends on what else the host did.
 * A rule of thumb, by its size alone, so that all files of a process say the same. */
uint64_t aq_veil_resident_kb(uint64_t size_kb)
{
    const uint64_t small = 16 << 10, large = 1 << 20;
    uint64_t kb = (size_kb < small ? size_kb : small) * 9 / 16;

    if (size_kb > small)
        kb += ((size_kb < large ? size_kb : large) - small) / 16;
    if (size_kb > large)
        kb += (size_kb - large) / 512;
    return kb / 4 * 4;
}

/* ---- facts in texts ---- */

/* As the kernel writes them into names of its own. */
static void add_filtered(aq_buf *ret, const char *text)
{
    for (; *text; text++)
        if (*text > ' ' && *text < 127 && *text != ':')
            aq_buf_addc(ret, *text);
}

void aq_add_facts(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *text)
{
    char name[64];

    while (*text) {
        size_t plain = strcspn(text, "%"), len;
        const char *fact;

        aq_buf_add(ret, text, plain);
        text += plain;
        if (!*text)
            return;
        len = text[1] == '{' ? strcspn(text + 2, "}") : 0;
        if (len == 0 || len >= sizeof name || text[2 + len] != '}') {
            aq_buf_addc(ret, *text++);
            continue;
        }
        memcpy(name, text + 2, len);
        name[len] = '\0';
        fact = aq_machine_fact(m, name + (*name == '~'));
        if (fact && *name == '~')
            add_filtered(ret, fact);
        else if (fact)
            aq_buf_adds(ret, fact);
        else
            aq_add_hardware(ret, m, cpu, name);
        text += 3 + len;
    }
}

/* ---- the table ---- */

static const aq_veil files[] = {
#define AQ_VEIL_MADE(path, maker)    {path, maker, false, NULL},
#define AQ_VEIL_CHANGED(path, maker) {path, maker, true, NULL},
#define AQ_VEIL_FACTS(path, text)    {path, NULL, false, text},
#include "veil/files.def"
#undef AQ_VEIL_MADE
#undef AQ_VEIL_CHANGED
#undef AQ_VEIL_FACTS
};

static const char proc[] = "/proc/";

/* Passes over a number; false when there is none. */
static bool pass_number(const char **path, int *ret)
{
    size_t len = strspn(*path, "0123456789");
    uint64_t n = aq_word_number(*path, len, 10);

    if (len == 0 || len > 9 || ((*path)[len] != '/' && (*path)[len] != '\0'))
        return false;
    *ret = (int)n;
    *path += len;
    return true;
}

/* What follows the process, or all of it; `*pid` is 0 then. */
static const char *pass_process(const char *path, int *pid, int *tid)
{
    static const char task[] = "/task/";
    const char *at = path;

    *pid = *tid = 0;
    if (!pass_number(&at, pid))
        return path;
    if (strncmp(at, task, sizeof task - 1) == 0) {
        const char *thread = at + sizeof task - 1;

        if (pass_number(&thread, tid))
            at = thread;
    }
    return at;
}

void aq_veil_pids(const char *path, int *pid, int *tid)
{
    *pid = *tid = 0;
    if (strncmp(path, proc, sizeof proc - 1) == 0)
        pass_process(path + sizeof proc - 1, pid, tid);
}

/* Is `path` what a row says? "N" at the end of that is any number. */
static bool same(const char *row, const char *path)
{
    size_t len = strlen(row);

    if (len < 2 || strcmp(row + len - 2, "/N") != 0)
        return strcmp(row, path) == 0;
    return strncmp(row, path, len - 1) == 0 && path[len - 1] &&
           path[len - 1 + strspn(path + len - 1, "0123456789")] == '\0';
}

/* One for all files of /sys, one for those of actors: which it is the scene says. */
static const aq_veil sys_file = {.path = ""}, actor_file = {.path = ""};
static const aq_veil no_file = {.path = "", .text = ""};
/* Files of the disk. */
static const aq_veil kept[] = {
    {.path = "/var/lib/dpkg/status", .maker = aq_make_packages, .truth = true},
    {.path = "/var/log/dpkg.log", .maker = aq_make_log, .truth = true},
    {.path = "/var/log/dpkg.log.1", .maker = aq_make_log, .truth = true},
    {.path = "/var/log/alternatives.log", .maker = aq_make_log, .truth = true},
    {.path = "/var/log/apt/history.log", .maker = aq_make_log, .truth = true},
};

bool aq_veil_of_host(const char *path)
{
    static const char *const below[] = {"fs/ext4/",  "fs/jbd2/", "fs/xfs/", "fs/nfsd/",
                                        "fs/btrfs/", "bus/pci/", "scsi/",   "asound/"};

    if (strncmp(path, proc, sizeof proc - 1) != 0)
        return false;
    path += sizeof proc - 1;
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (strncmp(path, below[i], strlen(below[i])) == 0)
            return true;
    if (strncmp(path, "irq/", 4) == 0) /* one of them; their default is no secret */
        return path[4] >= '0' && path[4] <= '9';
    return strcmp(path, "config.gz") == 0;
}

const aq_veil *aq_veil_of(const char *path, bool actors)
{
    static const char of_process[] = "PID";
    const char *rest;
    unsigned cpu;
    int pid, tid;

    if (aq_veil_of_host(path))
        return &no_file;
    if (aq_sys_text(NULL, path, &cpu))
        return &sys_file;
    for (size_t i = 0; strncmp(path, "/var/l", 6) == 0 && i < sizeof kept / sizeof *kept; i++)
        if (strcmp(path, kept[i].path) == 0)
            return &kept[i];
    if (strncmp(path, proc, sizeof proc - 1) != 0)
        return NULL;
    rest = pass_process(path + sizeof proc - 1, &pid, &tid);
    if (actors && aq_veil_actor_of(pid) && aq_actor_has(rest))
        return &actor_file;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *name = files[i].path;
        bool process = strncmp(name, of_process, sizeof of_process - 1) == 0;

        if (process != (pid > 0))
            continue;
        if (same(process ? name + sizeof of_process - 1 : name, rest))
            return &files[i];
    }
    return NULL;
}

bool aq_veil_needs_truth(const aq_veil *v)
{
    return v->truth;
}

static void make_actor(const aq_veil_scene *s, aq_buf *ret)
{
    const aq_veil_actor *a = s->path ? aq_veil_actor_at(s->path) : NULL;
    int pid, tid;

    if (a)
        aq_make_actor(s, a, pass_process(s->path + sizeof proc - 1, &pid, &tid), ret);
}

void aq_veil_text(const aq_veil *v, const aq_veil_scene *s, const char *truth, size_t len,
                  aq_buf *ret)
{
    unsigned cpu = 0;
    const char *text =
        v == &sys_file ? aq_sys_text(s->machine, s->path ? s->path : "", &cpu) : v->text;

    aq_buf_clear(ret);
    if (v == &actor_file)
        make_actor(s, ret);
    else if (v->maker)
        v->maker(s, truth, len, ret);
    else if (text)
        aq_add_facts(ret, s->machine, cpu, text);
}
