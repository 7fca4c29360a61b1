/* /sys: the table (sys.def) as a tree, and the texts of its files. A row for each processor is made
 * as often as there are processors. */
#include "veil/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "veil/internal.h"

static const struct row {
    aq_veil_kind kind;
    const char *path, *text; /* of a link: its target */
} rows[] = {
#define AQ_SYS_FOLDER(path)        {AQ_VEIL_FOLDER, path, ""},
#define AQ_SYS_CLOSED_FOLDER(path) {AQ_VEIL_CLOSED_FOLDER, path, ""},
#define AQ_SYS_FILE(path, text)    {AQ_VEIL_FILE, path, text},
#define AQ_SYS_CLOSED(path)        {AQ_VEIL_CLOSED, path, ""},
#define AQ_SYS_LINK(path, target)  {AQ_VEIL_LINK, path, target},
#include "veil/sys.def"
#undef AQ_SYS_FOLDER
#undef AQ_SYS_CLOSED_FOLDER
#undef AQ_SYS_FILE
#undef AQ_SYS_CLOSED
#undef AQ_SYS_LINK
};
enum { ROWS = sizeof rows / sizeof *rows, PATH = 256 };

static const char sys[] = "/sys/", processor = '#';

/* ---- the tree ---- */

static void put_number(const char *from, unsigned n, char ret[static PATH])
{
    size_t len = 0;

    for (; *from && len < PATH - 12; from++)
        if (*from == processor)
            len += (size_t)snprintf(ret + len, PATH - len, "%u", n);
        else
            ret[len++] = *from;
    ret[len] = '\0';
}

/* Rows of processors stand in groups: a group is made for one after the other. */
static size_t group_end(size_t from)
{
    while (from < ROWS && strchr(rows[from].path, processor))
        from++;
    return from;
}

static int one(const struct row *r, unsigned cpu, int (*each)(void *, const aq_veil_node *),
               void *arg)
{
    char path[PATH], target[PATH];

    put_number(r->path, cpu, path);
    put_number(r->kind == AQ_VEIL_LINK ? r->text : "", cpu, target);
    return each(arg, &(aq_veil_node){.kind = r->kind, .path = path, .target = target});
}

int aq_veil_tree(const aq_machine *m, int (*each)(void *arg, const aq_veil_node *n), void *arg)
{
    int r = 0;

    for (size_t i = 0; i < ROWS && r == 0;) {
        size_t end = group_end(i);

        for (unsigned cpu = 0; end > i && cpu < aq_veil_cpus(m) && r == 0; cpu++)
            for (size_t k = i; k < end && r == 0; k++)
                r = one(&rows[k], cpu, each, arg);
        if (end == i && r == 0)
            r = one(&rows[end++], 0, each, arg);
        i = end;
    }
    return r;
}

size_t aq_veil_tree_size(const aq_machine *m)
{
    size_t size = 0;

    for (size_t i = 0; i < ROWS; i++)
        size += strchr(rows[i].path, processor) ? aq_veil_cpus(m) : 1;
    return size;
}

/* ---- texts ---- */

/* Is `path` the row's, for some processor? */
static bool matches(const char *row, const char *path, unsigned *cpu)
{
    *cpu = 0;
    for (; *row; row++) {
        size_t digits = strspn(path, "0123456789");

        if (*row != processor) {
            if (*row != *path++)
                return false;
            continue;
        }
        if (digits == 0 || digits > 4)
            return false;
        *cpu = (unsigned)aq_word_number(path, digits, 10);
        path += digits;
    }
    return *path == '\0';
}

const char *aq_sys_text(const char *path, unsigned *cpu)
{
    if (strncmp(path, sys, sizeof sys - 1) != 0)
        return NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind == AQ_VEIL_FILE && matches(rows[i].path, path + sizeof sys - 1, cpu))
            return rows[i].text;
    return NULL;
}

static void add_mask(aq_buf *ret, unsigned cpus, unsigned cpu)
{
    aq_buf_addf(ret, "%0*" PRIx64, (int)(cpus + 3) / 4, cpu < 64 ? (uint64_t)1 << cpu : 0);
}

void aq_add_hardware(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name)
{
    const aq_veil_scene all = {.machine = m};
    uint64_t start, sectors;

    if (strcmp(name, "#") == 0)
        aq_buf_addf(ret, "%u", cpu);
    else if (strcmp(name, "#.core") == 0)
        aq_buf_addf(ret, "%u", cpu * 4);
    else if (strcmp(name, "#.cluster") == 0)
        aq_buf_addf(ret, "%u", cpu * 8);
    else if (strcmp(name, "#.mask") == 0)
        add_mask(ret, aq_veil_cpus(m), cpu);
    else if (strcmp(name, "cpus.list") == 0)
        aq_add_cpu_list(ret, &all);
    else if (strcmp(name, "cpus.mask") == 0)
        aq_add_cpu_mask(ret, &all);
    else if (strcmp(name, "user.shell") == 0)
        aq_buf_addf(ret, "%d", AQ_VEIL_SHELL);
    else if (strncmp(name, "disk.size", 9) == 0 || strncmp(name, "disk.start.", 11) == 0) {
        unsigned nr = name[strlen(name) - 1] >= '1' && name[strlen(name) - 1] <= '3'
                          ? (unsigned)(name[strlen(name) - 1] - '0')
                          : 0;

        aq_disk_part(m, nr, &start, &sectors);
        aq_buf_addf(ret, "%" PRIu64, name[6] == 'i' ? sectors : start);
    } else if (strcmp(name, "disk.wwn.hex") == 0) {
        const char *wwn = aq_machine_fact(m, "disk.wwn");

        aq_buf_adds(ret, wwn && strlen(wwn) > 2 ? wwn + 2 : "");
    }
}
