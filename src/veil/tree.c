/* /sys: the table (sys.def) as a tree, and the texts of its files. A row for each processor is made
 * as often as there are processors. */
#include "veil/tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "veil/internal.h"

#define PCI "devices/pci0000:00/"

/* Rows of one table belong to the machines that AQ_ON tells of (aq_machine_is). */
static const struct row {
    aq_veil_kind kind;
    const char *on, *path, *text; /* text of a link: its target */
} rows[] = {
#define AQ_SYS_FOLDER(path)        {AQ_VEIL_FOLDER, AQ_ON, path, ""},
#define AQ_SYS_CLOSED_FOLDER(path) {AQ_VEIL_CLOSED_FOLDER, AQ_ON, path, ""},
#define AQ_SYS_FILE(path, text)    {AQ_VEIL_FILE, AQ_ON, path, text},
#define AQ_SYS_CLOSED(path)        {AQ_VEIL_CLOSED, AQ_ON, path, ""},
#define AQ_SYS_LINK(path, target)  {AQ_VEIL_LINK, AQ_ON, path, target},
#define AQ_SYS_PCI(slot, class, vendor, device)                                                    \
    AQ_SYS_FOLDER(PCI slot)                                                                        \
    AQ_SYS_FILE(PCI slot "/class", class "\n")                                                     \
    AQ_SYS_FILE(PCI slot "/vendor", vendor "\n")                                                   \
    AQ_SYS_FILE(PCI slot "/device", device "\n")                                                   \
    AQ_SYS_LINK("bus/pci/devices/" slot, "../../../" PCI slot)                                     \
    AQ_SYS_LINK(PCI slot "/subsystem", "../../../bus/pci")
#define AQ_SYS_DRIVER(slot, driver)                                                                \
    AQ_SYS_FOLDER("bus/pci/drivers/" driver)                                                       \
    AQ_SYS_LINK(PCI slot "/driver", "../../../bus/pci/drivers/" driver)
#define AQ_ON ""
#include "veil/sys.def"
#undef AQ_ON
#define AQ_MODULE(on, name, size, uses, by) {AQ_VEIL_FOLDER, on, "module/" name, ""},
#include "veil/modules.def"
#undef AQ_MODULE

#define AQ_ON    "cache.0.size"
#define AQ_CACHE "0"
#include "veil/sys_cache.def"
#undef AQ_ON
#undef AQ_CACHE
#define AQ_ON    "cache.1.size"
#define AQ_CACHE "1"
#include "veil/sys_cache.def"
#undef AQ_ON
#undef AQ_CACHE
#define AQ_ON    "cache.2.size"
#define AQ_CACHE "2"
#include "veil/sys_cache.def"
#undef AQ_ON
#undef AQ_CACHE
#define AQ_ON    "cache.3.size"
#define AQ_CACHE "3"
#include "veil/sys_cache.def"
#undef AQ_ON
#undef AQ_CACHE

#define AQ_ON        "!machine.hypervisor"
#define AQ_DISK      PCI "0000:00:06.0/0000:01:00.0"
#define AQ_DISK_SLOT "0000:01:00.0"
#define AQ_DISK_UP   "../../../../"
#define AQ_CARD      PCI "0000:00:1f.6"
#define AQ_CARD_SLOT "0000:00:1f.6"
#define AQ_CARD_UP   "../../../"
#include "veil/sys_workstation.def"

#include "veil/sys_disk.def"

#include "veil/sys_card.def"
#undef AQ_ON
#undef AQ_DISK
#undef AQ_DISK_SLOT
#undef AQ_DISK_UP
#undef AQ_CARD
#undef AQ_CARD_SLOT
#undef AQ_CARD_UP

#define AQ_ON        "machine.hypervisor"
#define AQ_DISK      PCI "0000:00:05.0"
#define AQ_DISK_SLOT "0000:00:05.0"
#define AQ_DISK_UP   "../../../"
#include "veil/sys_guest.def"

#include "veil/sys_disk.def"
#undef AQ_ON

#define AQ_ON        "net.virtio"
#define AQ_CARD      PCI "0000:00:03.0/virtio0"
#define AQ_CARD_SLOT "virtio0"
#define AQ_CARD_UP   "../../../../"
#include "veil/sys_virtio.def"

#include "veil/sys_card.def"
#undef AQ_ON
#undef AQ_CARD
#undef AQ_CARD_SLOT
#undef AQ_CARD_UP

#define AQ_ON        "pci.card"
#define AQ_CARD      PCI "0000:00:03.0"
#define AQ_CARD_SLOT "0000:00:03.0"
#define AQ_CARD_UP   "../../../"
#include "veil/sys_plain_card.def"

#include "veil/sys_card.def"
#undef AQ_ON

#define AQ_ON "hypervisor.type"
#include "veil/sys_xen.def"
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
    const char *on = rows[from].on;

    while (from < ROWS && strcmp(rows[from].on, on) == 0 && strchr(rows[from].path, processor))
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

        if (!aq_machine_is(m, rows[i].on)) {
            i = end > i ? end : i + 1;
            continue;
        }
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
    const size_t cpus = aq_veil_cpus(m);
    const char *on = NULL; /* rows of one kind of machine stand together */
    bool here = false;
    size_t size = 0;

    for (size_t i = 0; i < ROWS; i++) {
        if (i == 0 || rows[i].on != on)
            here = aq_machine_is(m, on = rows[i].on);
        if (here)
            size += strchr(rows[i].path, processor) ? cpus : 1;
    }
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

const char *aq_sys_text(const aq_machine *m, const char *path, unsigned *cpu)
{
    if (strncmp(path, sys, sizeof sys - 1) != 0)
        return NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].kind == AQ_VEIL_FILE && matches(rows[i].path, path + sizeof sys - 1, cpu) &&
            (!m || aq_machine_is(m, rows[i].on)))
            return rows[i].text;
    return NULL;
}

static void add_padded(aq_buf *ret, const aq_machine *m, const char *name, int width)
{
    const char *text = aq_machine_fact(m, name);

    aq_buf_addf(ret, "%-*s", width, text ? text : "");
}

void aq_add_hardware(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name)
{
    const aq_veil_scene all = {.machine = m};
    uint64_t start, sectors;

    if (strcmp(name, "#") == 0)
        aq_buf_addf(ret, "%u", cpu);
    else if (strncmp(name, "#.", 2) == 0)
        aq_add_core(ret, m, cpu, name + 2);
    else if (strcmp(name, "disk.model.padded") == 0)
        add_padded(ret, m, "disk.model", 40);
    else if (strcmp(name, "disk.serial.padded") == 0)
        add_padded(ret, m, "disk.serial", 20);
    else if (strncmp(name, "misc.", 5) == 0) /* devices that hardware has */
        aq_buf_adds(ret, aq_machine_is(m, "machine.hypervisor") ? ""
                         : strcmp(name, "misc.kvm") == 0        ? "232 kvm\n"
                                                                : "122 mei0\n");
    else if (aq_add_processor(ret, m, name))
        return;
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
