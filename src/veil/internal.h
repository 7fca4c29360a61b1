/* What the files of this room share. */
#pragma once

#include "veil/veil.h"

typedef void aq_veil_maker(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret);

struct aq_veil {
    const char *path;     /* below /proc; "PID" for a process or thread */
    aq_veil_maker *maker; /* NULL: `text`, with facts in it */
    bool truth;
    const char *text;
};

/* The makers that files.def names. system.c, mounts.c, process.c, maps.c,
 * descriptor.c */
aq_veil_maker aq_make_meminfo, aq_make_cpuinfo, aq_make_stat, aq_make_uptime, aq_make_loadavg,
    aq_make_partitions, aq_make_diskstats, aq_make_interrupts, aq_make_softirqs, aq_make_uuid,
    aq_make_vmstat, aq_make_swaps, aq_make_pressure, aq_make_mounts, aq_make_mountinfo,
    aq_make_mountstats, aq_make_net_inodes, aq_make_net_streams, aq_make_net_datagrams,
    aq_make_net_arp, aq_make_fdinfo, aq_make_status, aq_make_process_stat, aq_make_statm,
    aq_make_io, aq_make_sched, aq_make_schedstat, aq_make_limits, aq_make_oom, aq_make_maps,
    aq_make_smaps, aq_make_rollup, aq_make_numa, aq_make_filenr, aq_make_zoneinfo,
    aq_make_buddyinfo, aq_make_modules;
aq_veil_maker aq_make_softnet, aq_make_sockstat, aq_make_protocols,
    aq_make_net_rows; /* net_counts.c */
aq_veil_maker aq_make_net_ordered, aq_make_net_ways, aq_make_net_groups,
    aq_make_snmp6;              /* net_six.c */
aq_veil_maker aq_make_packages; /* kernel.c */
aq_veil_maker aq_make_log;      /* dates.c */

/* actors.c: a file of one of them, by what follows its number ("/stat"). */
struct aq_veil_actor;
void aq_make_actor(const aq_veil_scene *s, const struct aq_veil_actor *a, const char *file,
                   aq_buf *ret);
bool aq_actor_has(const char *file);
/* process.c */
void aq_make_sched_of(const aq_veil_scene *s, const char *comm, int pid, unsigned threads,
                      aq_buf *ret);
void aq_add_groups(const aq_veil_scene *s, aq_buf *ret);

/* A piece of text that is read from front to end. */
typedef struct aq_lines {
    const char *at, *end;
} aq_lines;

/* The next line without its end; false when there is none. */
bool aq_line_next(aq_lines *l, const char **line, size_t *len);
/* A word of a line, parted by blanks; false when there is none. Advances. */
bool aq_word_next(aq_lines *l, const char **word, size_t *len);
bool aq_word_is(const char *word, size_t len, const char *text);
uint64_t aq_word_number(const char *word, size_t len, unsigned base); /* what is none is 0 */

size_t aq_word_hex(const char *word, size_t len); /* digits that it starts with */

/* Ticks of 1/100 s since boot. */
uint64_t aq_ticks(const aq_veil_scene *s, uint64_t ns);
uint64_t aq_uptime_ns(const aq_veil_scene *s);
/* Adds text with %{fact} replaced; `cpu`: the processor that it tells of. */
void aq_add_facts(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *text);
/* tree.c: what follows from facts, by name; and the text of a file of /sys, NULL when it is none.
 */
void aq_add_hardware(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name);
/* `m` NULL: of any machine. */
const char *aq_sys_text(const aq_machine *m, const char *path, unsigned *cpu);
/* processor.c: the same of the whole processor, false when it is none of that; and of one of many:
 * its core, who shares a cache with it. */
bool aq_add_processor(aq_buf *ret, const aq_machine *m, const char *name);
void aq_add_core(aq_buf *ret, const aq_machine *m, unsigned cpu, const char *name);
/* system.c: where a part of the disk lies, in sectors; 0 is all of it. */
void aq_disk_part(const aq_machine *m, unsigned nr, uint64_t *start, uint64_t *sectors);
/* "0-3", and the mask "f", of the CPUs of a process. */
void aq_add_cpu_list(aq_buf *ret, const aq_veil_scene *s);
void aq_add_cpu_mask(aq_buf *ret, const aq_veil_scene *s);
