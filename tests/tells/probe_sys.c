/* Tells in /sys: the hardware. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "probe.h"

TELL(sys, mounted, "/sys is the kernel's, with its ten folders")
{
    static const char *const wanted[] = {"block",    "bus", "class",  "dev",    "devices",
                                         "firmware", "fs",  "kernel", "module", "power"};
    struct statfs fs;

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char path[64];

        snprintf(path, sizeof path, "/sys/%s", wanted[i]);
        if (!there(path))
            return odd("no %s", path);
    }
    return (statfs("/sys", &fs) == 0 && fs.f_type == 0x62656572) ||
           odd("type %lx", (long)fs.f_type);
}

TELL(sys, maker,
     "a maker and a product of hardware, or of the hypervisor that the processor tells of")
{
    static const char *const virtual[] = {"QEMU",   "VirtualBox", "innotek",   "VMware",
                                          "Xen",    "KVM",        "Bochs",     "Amazon EC2",
                                          "Google", "OpenStack",  "Microsoft", "Parallels"};
    const char *vendor = text_of("/sys/class/dmi/id/sys_vendor"),
               *product = text_of("/sys/class/dmi/id/product_name");

    if (!*vendor || !*product)
        return odd("none");
    if (hypervisor())
        return has_one_of(hypervisor()->makers, vendor) || odd("%s", vendor);
    for (size_t i = 0; i < sizeof virtual / sizeof *virtual; i++)
        if (strstr(vendor, virtual[i]) || strstr(product, virtual[i]))
            return odd("%s", virtual[i]);
    return true;
}

TELL(sys, serial, "serial numbers of the hardware are root's to read")
{
    int fd = open("/sys/class/dmi/id/product_uuid", O_RDONLY);

    return (fd >= 0 && getuid() == 0) || (fd < 0 && errno == EACCES) ||
           odd("%s", fd < 0 ? strerror(errno) : "readable");
}

TELL(sys, cgroups, "the tree of control groups is there, with slices")
{
    if (!there("/sys/fs/cgroup/cgroup.controllers"))
        return odd("no controllers");
    return (there("/sys/fs/cgroup/system.slice") && there("/sys/fs/cgroup/user.slice")) ||
           odd("no slices");
}

TELL(sys, own_cgroup, "our control group exists in the tree")
{
    const char *own = strstr(text_of("/proc/self/cgroup"), "::/");
    char path[4096];

    if (!own)
        return odd("none");
    snprintf(path, sizeof path, "/sys/fs/cgroup/%.*s/cgroup.procs", (int)strcspn(own + 3, "\n"),
             own + 3);
    return there(path) || odd("no %s", path);
}

TELL(sys, processors, "the processors of /sys are those of cpuinfo")
{
    char wanted[32];
    const char *online = text_of("/sys/devices/system/cpu/online");

    snprintf(wanted, sizeof wanted, "0-%d\n", cpus_in_cpuinfo() - 1);
    return strcmp(online, wanted) == 0 || odd("%s", online);
}

TELL(sys, topology, "processors have caches and cores, and speeds where no hypervisor hides them")
{
    return (there("/sys/devices/system/cpu/cpu0/topology/core_id") &&
            there("/sys/devices/system/cpu/cpu0/cache/index0") &&
            there("/sys/devices/system/cpu/cpufreq") &&
            there("/sys/devices/system/cpu/cpu0/cpufreq") != (hypervisor() != NULL)) ||
           odd("not all of topology, cache, cpufreq");
}

TELL(sys, disk, "a disk has a model, of hardware or of the hypervisor")
{
    DIR *dir = opendir("/sys/block");
    bool found = false;

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[600];

        if (strncmp(e->d_name, "sd", 2) != 0 && strncmp(e->d_name, "nvme", 4) != 0)
            continue;
        snprintf(path, sizeof path, "/sys/block/%s/device/model", e->d_name);
        if (hypervisor())
            found |= has_one_of(hypervisor()->disks, text_of(path));
        else
            found |=
                *text_of(path) && !strstr(text_of(path), "QEMU") && !strstr(text_of(path), "VBOX");
    }
    return found || odd("none");
}

TELL(sys, disk_size, "the size of the disk is that of /proc/partitions")
{
    DIR *dir = opendir("/sys/block");
    const char *partitions = text_of("/proc/partitions");

    for (struct dirent *e; dir && (e = readdir(dir));) {
        char path[600], row[600];

        if (strncmp(e->d_name, "sd", 2) != 0 && strncmp(e->d_name, "nvme", 4) != 0 &&
            strncmp(e->d_name, "vd", 2) != 0)
            continue;
        snprintf(path, sizeof path, "/sys/block/%s/size", e->d_name);
        snprintf(row, sizeof row, "%llu %s\n", strtoull(text_of(path), NULL, 10) / 2, e->d_name);
        return strstr(partitions, row) || odd("no %s", row);
    }
    return odd("no disk");
}

static const char *interface(void)
{
    static char name[256];
    DIR *dir = opendir("/sys/class/net");

    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] == 'e' || e->d_name[0] == 'w')
            snprintf(name, sizeof name, "%s", e->d_name);
    if (dir)
        closedir(dir);
    return name;
}

static const char *of_interface(const char *what)
{
    static char path[600];

    snprintf(path, sizeof path, "/sys/class/net/%s/%s", interface(), what);
    return path;
}

TELL(sys, interface, "an interface is a device with a driver, not one end of a pair")
{
    const char *driver;

    if (!*interface())
        return odd("none");
    driver = link_of(of_interface("device/driver"));
    if (!*driver)
        return odd("no driver");
    return atoi(text_of(of_interface("iflink"))) == atoi(text_of(of_interface("ifindex"))) ||
           odd("a pair");
}

TELL(sys, address, "the interface's address is one of a maker of hardware")
{
    static const char *const virtual[] = {"02:42",    "52:54:00", "08:00:27",
                                          "00:0c:29", "00:50:56", "00:16:3e",
                                          "00:15:5d", "02:",      "0a:"};
    const char *mac = text_of(of_interface("address"));

    if (strlen(mac) != 18)
        return odd("none");
    for (size_t i = 0; i < sizeof virtual / sizeof *virtual; i++)
        if (strncmp(mac, virtual[i], strlen(virtual[i])) == 0)
            return odd("%s", mac);
    return !(strtoul((char[]){mac[0], mac[1], 0}, NULL, 16) & 2) || odd("%s is made up", mac);
}

TELL(sys, hypervisor, "no hypervisor has a folder")
{
    return entries_in("/sys/hypervisor") == 0 || odd("%zu entries", entries_in("/sys/hypervisor"));
}

TELL(sys, modules, "/sys/module lists what is loaded and built in")
{
    size_t n = entries_in("/sys/module");

    say("%zu", n);
    return n > 60;
}

TELL(sys, firmware, "firmware has tables: ACPI and EFI or DMI")
{
    return (there("/sys/firmware/acpi") &&
            (there("/sys/firmware/efi") || there("/sys/firmware/dmi"))) ||
           odd("none");
}

TELL(sys, clock_source, "the clock is the processor's")
{
    const char *c = text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");

    return strcmp(c, "tsc\n") == 0 || strcmp(c, "hpet\n") == 0 || odd("%s", c);
}

TELL(sys, weaknesses, "the kernel says what the processor is open to")
{
    size_t n = entries_in("/sys/devices/system/cpu/vulnerabilities");

    say("%zu", n);
    return n >= 8;
}

TELL(sys, hardware, "there are buses and classes of devices: PCI, USB, sensors or graphics")
{
    if (entries_in("/sys/bus/pci/devices") < 5)
        return odd("%zu on the PCI bus", entries_in("/sys/bus/pci/devices"));
    return (entries_in("/sys/bus/usb/devices") && entries_in("/sys/class/tty") > 10 &&
            (entries_in("/sys/class/hwmon") || entries_in("/sys/class/thermal"))) ||
           odd("no USB, terminals or sensors");
}

TELL(sys, memory, "the kernel's settings of memory are there")
{
    return there("/sys/kernel/mm/transparent_hugepage/enabled") || odd("none");
}
