/* Tells in chance: what must differ from one process, one program, one reading to the next. */
#include <arpa/inet.h>
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static void hex(int fd, const void *data, size_t len)
{
    char text[129];

    for (size_t i = 0; i < len && i < 64; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)data)[i]);
    write(fd, text, strlen(text));
}

/* What the program says of itself when it runs once more. */
void answer(const char *what)
{
    uintptr_t at = 0;

    if (strcmp(what, "random") == 0) {
        hex(1, (const void *)getauxval(AT_RANDOM), 16);
        return;
    }
    if (strcmp(what, "stack") == 0)
        at = (uintptr_t)&at;
    else if (strcmp(what, "code") == 0)
        at = (uintptr_t)answer;
    else if (strcmp(what, "heap") == 0)
        at = (uintptr_t)sbrk(0);
    else if (strcmp(what, "map") == 0)
        at = (uintptr_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else if (strcmp(what, "vdso") == 0)
        at = getauxval(AT_SYSINFO_EHDR);
    printf("%lx", (unsigned long)at);
}

static bool differs(const char *what)
{
    char first[200], second[200];

    snprintf(first, sizeof first, "%.190s", again(what));
    snprintf(second, sizeof second, "%.190s", again(what));
    say("%s %s", first, second);
    return *first && strcmp(first, second) != 0 && strcmp(first, "0") != 0;
}

static void draw(int fd)
{
    unsigned char b[16];

    if (getrandom(b, sizeof b, 0) == sizeof b)
        hex(fd, b, sizeof b);
}

TELL(entropy, calls_differ, "two draws differ")
{
    unsigned char a[16] = {0}, b[16] = {0};

    getrandom(a, sizeof a, 0);
    getrandom(b, sizeof b, 0);
    return memcmp(a, b, sizeof a) != 0;
}

TELL(entropy, children_differ, "two children draw other bytes")
{
    char first[64];

    snprintf(first, sizeof first, "%.60s", by_child(draw));
    say("%s", first);
    return *first && strcmp(first, by_child(draw)) != 0;
}

static const char *twice_of;

static void read_some(int fd)
{
    unsigned char b[16];
    int from = open(twice_of, O_RDONLY);

    if (read(from, b, sizeof b) == sizeof b)
        hex(fd, b, sizeof b);
}

TELL(entropy, devices, "/dev/urandom and /dev/random give each reader other bytes")
{
    static const char *const paths[] = {"/dev/urandom", "/dev/random"};

    for (size_t i = 0; i < 2; i++) {
        char first[64];

        twice_of = paths[i];
        snprintf(first, sizeof first, "%.60s", by_child(read_some));
        if (!*first || strcmp(first, by_child(read_some)) == 0)
            return odd("%s: %s", paths[i], first);
    }
    return true;
}

TELL(entropy, numbers, "/proc gives another uuid each time, of version 4")
{
    char first[64];

    snprintf(first, sizeof first, "%.60s", text_of("/proc/sys/kernel/random/uuid"));
    say("%s", first);
    return strlen(first) == 37 && first[14] == '4' &&
           strcmp(first, text_of("/proc/sys/kernel/random/uuid")) != 0;
}

TELL(entropy, program_bytes, "each start gets other random bytes")
{
    return differs("random");
}

TELL(entropy, stack, "each start has its stack elsewhere")
{
    return differs("stack");
}

TELL(entropy, code, "each start has its code elsewhere")
{
    return differs("code");
}

TELL(entropy, heap, "each start has its heap elsewhere")
{
    return differs("heap");
}

TELL(entropy, map, "each start has its mappings elsewhere")
{
    return differs("map");
}

TELL(entropy, vdso, "each start has the kernel's page elsewhere")
{
    return differs("vdso");
}

TELL(entropy, high_addresses, "addresses are not those of a start without chance")
{
    unsigned long at = strtoul(again("code"), NULL, 16), stack = strtoul(again("stack"), NULL, 16);

    say("%lx %lx", at, stack);
    return (at >> 24 != 0x555555 && at >> 24 != 0x7ffff7) || stack >> 24 != 0x7fffff;
}

TELL(entropy, pid, "we have no number of a machine that was just started")
{
    say("%d", (int)getpid());
    return getpid() > 500;
}

TELL(entropy, ports, "the kernel picks ports without an order")
{
    int last = 0, in_order = 0;

    for (int i = 0; i < 6; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof at;
        int s = socket(AF_INET, SOCK_STREAM, 0);

        if (bind(s, (struct sockaddr *)&at, n) < 0 ||
            getsockname(s, (struct sockaddr *)&at, &n) < 0)
            return odd("%s", strerror(errno));
        if (ntohs(at.sin_port) < 32768)
            return odd("%d is below the range", ntohs(at.sin_port));
        in_order += i && ntohs(at.sin_port) > last && ntohs(at.sin_port) - last <= 2;
        last = ntohs(at.sin_port);
    }
    return in_order < 4 || odd("one after another, to %d", last);
}

TELL(entropy, instruction, "the processor's own random numbers differ")
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    unsigned long long x = 0, y = 0;

    __get_cpuid(1, &a, &b, &c, &d);
    if (!(c >> 30 & 1))
        return true;
    __asm__ volatile("rdrand %0" : "=r"(x));
    __asm__ volatile("rdrand %0" : "=r"(y));
    return x != y;
}

TELL(entropy, names, "names of temporary files differ from one program to the next")
{
    char first[200];
    const char *const command[] = {"mktemp", "-u", NULL};

    snprintf(first, sizeof first, "%.190s", output_of(command));
    say("%s", first);
    return *first && strcmp(first, output_of(command)) != 0;
}

/* ---- the processor itself ---- */

TELL(processor, hypervisor,
     "what the processor says of a hypervisor, firmware, card, disk and clock say too")
{
    const guest *g = hypervisor();
    const char *vendor = text_of("/sys/class/dmi/id/sys_vendor"),
               *disk = text_of("/sys/block/nvme0n1/device/model"),
               *clocks =
                   text_of("/sys/devices/system/clocksource/clocksource0/available_clocksource");

    if (!g)
        return !strstr(clocks, "kvm-clock") || odd("%s", clocks);
    say("%s: %.*s", g->signature, (int)strcspn(vendor, "\n"), vendor);
    return has_one_of(g->makers, vendor) && has_one_of(g->disks, disk) &&
           has_one_of(g->drivers, link_of("/sys/class/net/eth0/device/driver")) &&
           (strcmp(g->signature, "KVMKVMKVM") != 0 || strstr(clocks, "kvm-clock"));
}

TELL(processor, cores, "as many threads in a package as the processor says (CPUID)")
{
    unsigned a = 0, b = 0, c = 0, d = 0, most = 0;
    const char *line = line_of(text_of("/proc/cpuinfo"), "siblings");

    for (unsigned level = 0; level < 4; level++) {
        if (!__get_cpuid_count(0xb, level, &a, &b, &c, &d) || (c >> 8 & 0xff) == 0)
            break;
        most = b & 0xffff;
    }
    say("%u, %s", most, line ? line : "none");
    return !most || (line && (unsigned)atoi(line) == most);
}

TELL(processor, address, "addresses are as wide as the processor says (CPUID)")
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    const char *line = line_of(text_of("/proc/cpuinfo"), "address sizes");
    char wanted[64];

    __get_cpuid(0x80000008, &a, &b, &c, &d);
    snprintf(wanted, sizeof wanted, "%u bits physical, %u bits virtual", a & 0xff, a >> 8 & 0xff);
    return (line && strcmp(line, wanted) == 0) || odd("%s", line ? line : "none");
}

/* Of the first level, for data. */
TELL(processor, cache, "caches are as large as the processor says (CPUID)")
{
    const char *size = text_of("/sys/devices/system/cpu/cpu0/cache/index0/size");
    unsigned a = 0, b = 0, c = 0, d = 0;

    if (!__get_cpuid_count(4, 0, &a, &b, &c, &d) || (a & 31) == 0)
        __get_cpuid_count(0x8000001d, 0, &a, &b, &c, &d);
    if ((a & 31) == 0)
        return true;
    say("%s", size);
    return (unsigned)atoi(size) ==
           ((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * (c + 1) / 1024;
}

TELL(processor, abilities, "cpuinfo has the flags that the processor has (CPUID)")
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    const char *line = line_of(text_of("/proc/cpuinfo"), "flags");

    if (!line)
        return odd("none");
    __get_cpuid(1, &a, &b, &c, &d);
    if ((c >> 30 & 1) != (strstr(line, " rdrand") != NULL) ||
        (c >> 25 & 1) != (strstr(line, " aes ") != NULL) ||
        (c >> 5 & 1) != (strstr(line, " vmx ") != NULL))
        return odd("rdrand, aes or vmx");
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    return ((b >> 5 & 1) == (strstr(line, " avx2 ") != NULL) &&
            (b >> 16 & 1) == (strstr(line, " avx512f ") != NULL) &&
            (b >> 29 & 1) == (strstr(line, " sha_ni") != NULL)) ||
           odd("avx2, avx512f or sha_ni");
}

TELL(processor, model, "the processor's own name is the one in cpuinfo (CPUID)")
{
    unsigned name[13] = {0};
    const char *own = (const char *)name, *line = line_of(text_of("/proc/cpuinfo"), "model name");

    for (unsigned i = 0; i < 3; i++)
        __get_cpuid(0x80000002 + i, name + 4 * i, name + 4 * i + 1, name + 4 * i + 2,
                    name + 4 * i + 3);
    own += strspn(own, " ");
    return (line && strncmp(own, line, strlen(line)) == 0) || odd("%s, %s", own, line ? line : "");
}
