/* See devices.h. */
#include "veil/devices.h"
#include "veil/veil.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { C = 0, B = 1, NAME = 64 };

static const struct row {
    const char *name;
    uint32_t count;
    bool block;
    uint32_t major, minor, mode, group;
    int refusal;
} rows[] = {
#define AQ_DEVICE(name, count, kind, major, minor, mode, group, refusal)                           \
    {name, count, kind, major, minor, mode, group, refusal},
#include "veil/devices.def"
#undef AQ_DEVICE
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char folder[] = "/dev/";

/* "tty12" is the device 12 of "tty#". */
static bool matches(const struct row *r, const char *name, uint32_t *nth)
{
    const char *mark = strchr(r->name, '#');
    size_t len = mark ? (size_t)(mark - r->name) : strlen(r->name);
    uint32_t first = mark ? (uint32_t)strtoul(mark + 1, NULL, 10) : 0;
    char *end = NULL;
    unsigned long n;

    *nth = 0;
    if (strncmp(name, r->name, len) != 0)
        return false;
    if (!mark)
        return name[len] == '\0';
    if (name[len] < '0' || name[len] > '9' || (name[len] == '0' && name[len + 1]))
        return false;
    n = strtoul(name + len, &end, 10);
    *nth = (uint32_t)n - first;
    return !*end && n >= first && n - first < r->count;
}

/* The letters that names of this kind of disk begin with; 0: it is no disk. */
static size_t disk_kind(const char *name)
{
    static const char *const kinds[] = {"nvme", "ng", "vd", "sd", "xvd"};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return strlen(kinds[i]);
    return 0;
}

/* A guest has no such hardware; and its disk is at another place of the bus. */
static const char *const metal[] = {"kvm", "mei0", "ptp0", "tpm0", "tpmrm0", "disk/by-path"};

static bool has(const aq_machine *m, const char *name)
{
    const char *disk = aq_machine_fact(m, "disk.name");
    size_t kind = disk_kind(name);

    for (size_t i = 0; i < sizeof metal / sizeof *metal && aq_machine_is(m, "machine.hypervisor");
         i++)
        if (strcmp(name, metal[i]) == 0)
            return false;
    if (strncmp(name, "ng", 2) == 0) /* the other face of an nvme */
        return disk && strncmp(disk, "nvme", 4) == 0;
    return kind == 0 || !disk || strncmp(disk, name, kind) == 0;
}

bool aq_veil_device(const aq_machine *m, const char *path, aq_device *ret)
{
    const char *name = path + sizeof folder - 1;
    uint32_t nth, order = 0;

    if (strncmp(path, folder, sizeof folder - 1) != 0)
        return false;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];

        if (matches(r, name, &nth) && has(m, name)) {
            *ret = (aq_device){.block = r->block,
                               .major = r->major,
                               .minor = r->minor + nth,
                               .mode = r->mode,
                               .group = r->group,
                               .refusal = r->refusal,
                               .order = order + nth};
            return true;
        }
        order += r->count;
    }
    return false;
}

/* Links to disks are named for how they are reached, by numbers or by the bus. */
bool aq_veil_no_device(const aq_machine *m, const char *path)
{
    const char *disk = aq_machine_fact(m, "disk.name");
    bool nvme = !disk || strncmp(disk, "nvme", 4) == 0;

    if (strncmp(path, folder, sizeof folder - 1) != 0)
        return aq_veil_of_host(path);
    path += sizeof folder - 1;
    if (strncmp(path, "disk/by-path/", 13) == 0 || strncmp(path, "block/259:", 10) == 0 ||
        strncmp(path, "disk/by-diskseq/", 16) == 0)
        return !nvme ||
               (strncmp(path, "disk/by-path", 12) == 0 && aq_machine_is(m, "machine.hypervisor"));
    return !has(m, path);
}

void aq_veil_devices(void (*each)(void *arg, const char *name), void *arg)
{
    char name[NAME];

    for (size_t i = 0; i < ROWS; i++) {
        const char *mark = strchr(rows[i].name, '#');
        unsigned first = mark ? (unsigned)strtoul(mark + 1, NULL, 10) : 0;

        for (unsigned k = 0; k < rows[i].count; k++) {
            snprintf(name, sizeof name, mark ? "%.*s%u" : "%.*s",
                     mark ? (int)(mark - rows[i].name) : NAME, rows[i].name, first + k);
            each(arg, name);
        }
    }
}
