/* Texts of the kernel, in which names are a program's own, become texts of another machine. The
 * first byte chooses the file; what comes out ends in a line, and is as long as what went in and
 * its rows allow. */
#include <stdlib.h>
#include <string.h>

#include "veil/veil.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
    "/proc/3005/status",
    "/proc/3005/stat",
    "/proc/3005/statm",
    "/proc/3005/io",
    "/proc/3005/sched",
    "/proc/3005/maps",
    "/proc/3005/smaps",
    "/proc/3005/smaps_rollup",
    "/proc/3005/numa_maps",
    "/proc/3005/oom_score",
    "/proc/vmstat",
    "/proc/3005/net/tcp",
    "/proc/3005/net/unix",
    "/proc/meminfo",
    "/proc/3005/mountinfo",
    "/proc/3005/net/sockstat",
    "/proc/3005/net/protocols",
    "/proc/3005/net/stat/rt_cache",
    "/proc/3005/net/if_inet6",
    "/proc/3005/net/igmp6",
    "/proc/3005/net/ipv6_route",
    "/proc/3005/net/snmp6",
};

static uint64_t same(void *arg, const char *name, uint64_t device, uint64_t inode)
{
    (void)arg;
    if (name && strlen(name) >= 4096)
        abort();
    return device ^ inode;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const aq_machine machine = {.start_ns = 1, .uptime_ns = 1};
    aq_veil_scene s = {.machine = &machine, .inode = same};
    aq_auto_buf text = {0};
    const aq_veil *v;
    char *copy;

    if (size < 1)
        return 0;
    v = aq_veil_of(paths[data[0] % (sizeof paths / sizeof *paths)], true);
    if (!v)
        abort();
    copy = malloc(size); /* exactly as long, so that reading past it is found */
    if (!copy)
        return 0;
    memcpy(copy, data + 1, size - 1);
    aq_veil_text(v, &s, copy, size - 1, &text);
    free(copy);
    if (text.len > 64 * size + 65536 || (text.len > 0 && text.data[text.len - 1] != '\n'))
        abort();
    return 0;
}
