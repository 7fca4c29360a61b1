/* What this machine's processor says of itself. An aquarium cannot hide it: CPUID is an instruction
 * that few processors let a kernel refuse, so a world's machine has the processor of its host. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { AQ_PROCESSOR_TEXT = 4 << 10, AQ_PROCESSOR_CACHES = 6 };

typedef struct aq_processor_cache {
    unsigned level, kind;               /* kind: 1 data, 2 instructions, 3 both */
    unsigned line, ways, sets, sharing; /* sharing: threads that share it, at most */
} aq_processor_cache;

typedef struct aq_processor {
    char hypervisor[13];          /* its signature; "" where there is none */
    char text[AQ_PROCESSOR_TEXT]; /* of /proc/cpuinfo: the first processors */
    size_t len;
    aq_processor_cache caches[AQ_PROCESSOR_CACHES];
    size_t cache_count;
} aq_processor;

/* Asks for some ten leaves of CPUID, each of which costs microseconds in a virtual machine, and
 * reads one page of /proc. What cannot be had is empty. */
void aq_processor_read(aq_processor *ret);
