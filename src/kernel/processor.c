/* The processor of this machine; see processor.h. */
#include "kernel/processor.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifdef __x86_64__
#include <cpuid.h>

enum {
    HYPERVISOR_BIT = 31,
    TOPOLOGY_BIT = 22, /* of AMD: leaf 0x8000001d is there */
    SIGNATURE = 0x40000000,
    CACHES_INTEL = 4,
};

#define CACHES_AMD 0x8000001du
#define HYGON      0x6f677948u /* a licensee of AMD */

static void read_signature(aq_processor *p)
{
    unsigned a, b, c, d, name[3];

    __cpuid(1, a, b, c, d);
    if (!(c >> HYPERVISOR_BIT & 1))
        return;
    __cpuid(SIGNATURE, a, b, c, d);
    name[0] = b, name[1] = c, name[2] = d;
    memcpy(p->hypervisor, name, sizeof name);
    if (!*p->hypervisor)
        memcpy(p->hypervisor, "unknown", sizeof "unknown");
}

/* The leaf that says it all is Intel's, or AMD's copy of it. */
static unsigned cache_leaf(void)
{
    unsigned most, a, b, c, d;

    __cpuid(0, most, b, c, d);
    if (b != signature_AMD_ebx && b != HYGON)
        return most >= CACHES_INTEL ? CACHES_INTEL : 0;
    __cpuid(0x80000001, a, b, c, d);
    return c >> TOPOLOGY_BIT & 1 ? CACHES_AMD : 0;
}

static void read_caches(aq_processor *p)
{
    unsigned leaf = cache_leaf(), a, b, c, d;

    while (leaf && p->cache_count < AQ_PROCESSOR_CACHES) {
        __cpuid_count(leaf, (unsigned)p->cache_count, a, b, c, d);
        if ((a & 31) == 0)
            return;
        p->caches[p->cache_count++] = (aq_processor_cache){.level = a >> 5 & 7,
                                                           .kind = a & 31,
                                                           .line = (b & 0xfff) + 1,
                                                           .ways = (b >> 22) + 1,
                                                           .sets = c + 1,
                                                           .sharing = (a >> 14 & 0xfff) + 1};
    }
}

#else
static void read_signature(aq_processor *p)
{
    (void)p;
}

static void read_caches(aq_processor *p)
{
    (void)p;
}
#endif

void aq_processor_read(aq_processor *ret)
{
    aq_auto_fd int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret->text, sizeof ret->text - 1);

    ret->len = n > 0 ? (size_t)n : 0;
    ret->text[ret->len] = '\0';
    memset(ret->hypervisor, 0, sizeof ret->hypervisor);
    ret->cache_count = 0;
    read_signature(ret);
    read_caches(ret);
}
