/* What a program reads of its machine: every file of the table agrees with the same facts. */
#include "veil/veil.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "unit.h"
#include "veil/actors.h"
#include "veil/tree.h"

static const aq_fact facts[] = {
    {"cpu.count", "4"},
    {"cpu.model", "A Processor"},
    {"memory.total_kb", "16142540"},
    {"memory.free_kb", "9274112"},
    {"memory.available_kb", "13120884"},
    {"swap.total_kb", "999420"},
    {"disk.name", "nvme0n1"},
    {"disk.sectors", "976773168"},
    {"disk.root_file_system", "ext4"},
    {"kernel.release", "6.1.0-37-amd64"},
    {"host.name", "some-ws1"},
    {"user.groups", "24 27 1000"},
};
static const aq_machine machine = {.entropy = {7},
                                   .start_ns = 1700000000000000000,
                                   .uptime_ns = 1000500000000,
                                   .facts = facts,
                                   .fact_count = sizeof facts / sizeof *facts};

static aq_buf text;

static const char *see(const char *path, aq_veil_scene s, const char *truth)
{
    const aq_veil *v = aq_veil_of(path, true);

    assert_non_null(v);
    s.machine = &machine;
    aq_veil_text(v, &s, truth, truth ? strlen(truth) : 0, &text);
    return aq_buf_str(&text);
}

static void find(void **state)
{
    int pid, tid;

    (void)state;
    assert_non_null(aq_veil_of("/proc/meminfo", true));
    assert_non_null(aq_veil_of("/proc/12/status", true));
    assert_ptr_equal(aq_veil_of("/proc/12/status", true),
                     aq_veil_of("/proc/12/task/13/status", true));
    assert_null(aq_veil_of("/proc/status", true));
    assert_null(aq_veil_of("/proc/12/meminfo", true));
    assert_null(aq_veil_of("/proc/12x/status", true));
    assert_null(aq_veil_of("/proc/9999999999/status", true));
    assert_null(aq_veil_of("/tmp/proc/meminfo", true));
    assert_null(aq_veil_of("/proc/meminfo (deleted)", true));
    aq_veil_pids("/proc/12/task/13/status", &pid, &tid);
    assert_true(pid == 12 && tid == 13);
    aq_veil_pids("/proc/12/task", &pid, &tid);
    assert_true(pid == 12 && tid == 0);
    aq_veil_pids("/proc/meminfo", &pid, &tid);
    assert_true(pid == 0 && tid == 0);
}

static void time_and_load(void **state)
{
    aq_veil_scene s = {.clock_ns = 500000000, .tasks = 3, .last_pid = 2440};

    (void)state;
    assert_string_equal(see("/proc/uptime", s, NULL), "1001.00 3883.88\n");
    assert_string_equal(see("/proc/loadavg", s, NULL), "0.08 0.03 0.01 1/127 2440\n");
    assert_non_null(strstr(see("/proc/stat", s, NULL), "\nbtime 1699999000\nprocesses 2440\n"));
}

static unsigned count_of(const char *where, const char *what)
{
    unsigned n = 0;

    for (const char *at = where; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void processors(void **state)
{
    static const uint8_t one[128] = {4}, two[128] = {9};
    aq_veil_scene s = {.of.cpus = two};
    unsigned seen = 0;
    const char *t;

    (void)state;
    t = see("/proc/cpuinfo", s, NULL);
    assert_int_equal(count_of(t, "processor\t: "), 4);
    assert_int_equal(count_of(t, "model name\t: A Processor\n"), 4);
    assert_int_equal(count_of(see("/proc/stat", s, NULL), "cpu"), 5);
    assert_non_null(strstr(see("/proc/interrupts", s, NULL), "CPU3"));
    t = see("/proc/3005/status", s, "Cpus_allowed:\t1\nCpus_allowed_list:\t0\n");
    assert_string_equal(t, "Cpus_allowed:\t9\nCpus_allowed_list:\t0,3\n");
    s.of.cpus = NULL;
    t = see("/proc/3005/status", s, "Cpus_allowed:\t1\nCpus_allowed_list:\t0\n");
    assert_string_equal(t, "Cpus_allowed:\tf\nCpus_allowed_list:\t0-3\n");
    assert_int_equal(aq_veil_cpu(&machine, one, 12345678901, 5), 2);
    assert_true(aq_veil_cpu(&machine, NULL, 99999999999, 5) < 4);
    for (uint64_t i = 0; i < 64; i++) /* it moves with time, and comes to all of them */
        seen |= 1u << aq_veil_cpu(&machine, NULL, i * 20000000, 5);
    assert_int_equal(seen, 15);
}

static void status(void **state)
{
    aq_veil_scene s = {.of = {.running = true, .parent = 77, .calls = 970}};
    const char *t =
        see("/proc/3005/status", s,
            "Name:\ta b\\n)\nState:\tt (tracing stop)\nPPid:\t1\nTracerPid:\t9\nKthread:\t0\n"
            "Groups:\t \nVmSize:\t    3028 kB\nVmRSS:\t     999 kB\nCapBnd:\t0000000000000000\n"
            "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\nvoluntary_ctxt_switches:\t175\n");

    (void)state;
    assert_string_equal(
        t, "Name:\ta b\\n)\nState:\tR (running)\nPPid:\t77\nTracerPid:\t0\n"
           "Groups:\t24 27 1000 \nVmSize:\t    3028 kB\nVmRSS:\t    1700 kB\n"
           "CapBnd:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"
           "voluntary_ctxt_switches:\t11\n");
    s.of = (aq_veil_process){.no_new_privileges = true, .filters = 2, .halted = true};
    t = see("/proc/3005/status", s,
            "State:\tt (tracing stop)\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n");
    assert_string_equal(t,
                        "State:\tT (stopped)\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n");
    assert_string_equal(see("/proc/3005/status", s, "State:\tZ (zombie)\n"),
                        "State:\tZ (zombie)\n");
}

/* A name can look like the end of itself. */
static void stat_line(void **state)
{
    aq_veil_scene s = {.of = {.cpu_ns = 80000000, .parent = 77, .born_ns = 1500000000}};
    const char *t = see("/proc/3005/stat", s,
                        "5 (a) R 9 (x) t 1 5 5 0 -1 1077952576 8 9 9 9 0 0 0 0 20 0 1 0 3399915 "
                        "3100672 394 100 1 2 3 0 0 "
                        "0 0 0 0 12 0 0 17 1 0 0 7 8 9 45 46 47 48 49 50 51 0\n");

    (void)state;
    assert_string_equal(
        t, "5 (a) R 9 (x) S 77 5 5 0 -1 4194368 90 0 0 0 6 2 0 0 20 0 1 0 100200 3100672 425 "
           "18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 45 46 47 48 49 50 51 "
           "0\n");
    assert_string_equal(see("/proc/3005/statm", s, "757 5 5 5 0 123 0\n"),
                        "757 425 319 5 0 123 0\n");
}

/* What differs from run to run is not told, and what grows on a machine grows. */
static void counters(void **state)
{
    aq_veil_scene s = {.clock_ns = 500000000};
    static const char zones[] = "nr_free_pages 7\nnr_writeback 3\npgfault 12345\npgalloc_dma 1\n";
    uint64_t before, after;

    (void)state;
    assert_string_equal(see("/proc/3005/numa_maps", s,
                            "7f12 default file=/bin/cat mapped=5 N0=5 kernelpagesize_kB=4\n"
                            "7f34 default heap anon=3 dirty=3\n"),
                        "7f12 default file=/bin/cat\n7f34 default heap\n");
    assert_string_equal(see("/proc/3005/oom_score", s, "667\n"), "666\n");
    assert_string_equal(see("/proc/3005/oom_score", s, "1000\n"), "1000\n");
    assert_non_null(
        strstr(see("/proc/vmstat", s, zones), "nr_free_pages 2318528\nnr_writeback 0\n"));
    before = strtoull(strstr(aq_buf_str(&text), "pgfault ") + 8, NULL, 10);
    s.clock_ns += 60000000000;
    after = strtoull(strstr(see("/proc/vmstat", s, zones), "pgfault ") + 8, NULL, 10);
    assert_true(before > 1000 && after > before && before != 12345);
}

static uint64_t twice(void *arg, const char *name, uint64_t device, uint64_t inode)
{
    assert_null(arg);
    if (name) {
        assert_string_equal(name, "/usr/bin/cat");
        assert_true(device == makedev(0xfe, 1));
    }
    return inode * 2;
}

static void memory_map(void **state)
{
    aq_veil_scene s = {.inode = twice};
    static const char row[] =
        "555555554000-555555556000 r--p 00000000 fe:01 100                        /usr/bin/cat\n"
        "7ffff7ff9000-7ffff7ffd000 r--p 00000000 00:00 0 \n"
        "not a row\n";

    (void)state;
    assert_string_equal(
        see("/proc/3005/maps", s, row),
        "555555554000-555555556000 r--p 00000000 103:02 200                       /usr/bin/cat\n"
        "7ffff7ff9000-7ffff7ffd000 r--p 00000000 00:00 0 \n");
    s.of.vdso = 0x7ffff7ffd000; /* the pages right below it were the clock's */
    assert_non_null(strstr(see("/proc/3005/maps", s, row),
                           "r--p 00000000 00:00 0                          [vvar]\n"));
    assert_non_null(
        strstr(see("/proc/3005/smaps", s, row),
               "200                       /usr/bin/cat\nSize:                  8 kB\n"));
}

static void sockets(void **state)
{
    aq_veil_scene s = {.inode = twice};

    (void)state;
    assert_string_equal(see("/proc/3005/net/tcp", s,
                            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                            "retrnsmt   uid  timeout inode\n"
                            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                            "00000000  1000        0 123 1 "
                            "00000000deadbeef 100 0 0 10 0\n"),
                        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                        "retrnsmt   uid  timeout inode\n"
                        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                        "00000000  1000        0 246 1 "
                        "0000000000000000 100 0 0 10 0\n");
    assert_string_equal(see("/proc/3005/net/unix", s,
                            "Num       RefCount Protocol Flags    Type St Inode Path\n"
                            "00000000deadbeef: 00000002 00000000 00010000 0001 01 21 /tmp/a b\n"),
                        "Num       RefCount Protocol Flags    Type St Inode Path\n"
                        "0000000000000000: 00000002 00000000 00010000 0001 01 42 /tmp/a b\n");
}

/* The kernel's order is its own affair; low ports are root's, whoever made their sockets. */
static void order_of_sockets(void **state)
{
    aq_veil_scene s = {.inode = twice};
    static const char head[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                               "retrnsmt   uid  timeout inode ref pointer drops\n";
    static const char rest[] = "00000000:00000000 00:00000000 00000000";
    aq_auto_buf in = {0}, out = {0};

    (void)state;
    aq_buf_addf(&in, "%s   0: 22B2A8C0:0016 14B2A8C0:C7B2 01 %s 65534        0 5 1\n", head, rest);
    aq_buf_addf(&in, "   1: 0100007F:1FBB 00000000:0000 0A %s  1000        0 7 1\n", rest);
    aq_buf_addf(&in, "   2: 00000000:0016 00000000:0000 0A %s     0        0 3 1\n", rest);
    aq_buf_addf(&out, "%s   0: 00000000:0016 00000000:0000 0A %s     0        0 6 1\n", head, rest);
    aq_buf_addf(&out, "   1: 0100007F:1FBB 00000000:0000 0A %s  1000        0 14 1\n", rest);
    aq_buf_addf(&out, "   2: 22B2A8C0:0016 14B2A8C0:C7B2 01 %s     0        0 10 1\n", rest);
    assert_string_equal(see("/proc/3005/net/tcp", s, aq_buf_str(&in)), aq_buf_str(&out));
    aq_buf_clear(&in);
    aq_buf_clear(&out);
    aq_buf_addf(&in, "%s 1550: 00000000:0044 00000000:0000 07 %s     0        0 4 2\n", head, rest);
    aq_buf_addf(&out, "%s  890: 00000000:0044 00000000:0000 07 %s     0        0 8 2\n", head,
                rest);
    assert_string_equal(see("/proc/3005/net/udp", s, aq_buf_str(&in)), aq_buf_str(&out));
    assert_string_equal(see("/proc/3005/net/tcp", s, "x\n:\n\n1"), "x\n0:\n1\n21\n");
}

/* What the kernel counts for all networks together is none of the machine's. */
static void counts_of_network(void **state)
{
    aq_veil_scene s = {0};

    (void)state;
    assert_string_equal(see("/proc/3005/net/sockstat", s,
                            "sockets: used 6\nTCP: inuse 2 orphan 71 tw 0 alloc 131 mem 152\n"
                            "UDP: inuse 0 mem 9\nFRAG: inuse 0 memory 0\nmem"),
                        "sockets: used 6\nTCP: inuse 2 orphan 0 tw 0 alloc 4 mem 1\n"
                        "UDP: inuse 0 mem 0\nFRAG: inuse 0 memory 0\nmem\n");
    assert_string_equal(
        see("/proc/3005/net/protocols", s,
            "protocol  size sockets  memory press\nTCP       2304      2     152   no\n"
            "UNIX      1152      0      -1   NI\nx\n"),
        "protocol  size sockets  memory press\nTCP       2304      2       1   no\n"
        "UNIX      1152      0      -1   NI\nx\n");
    assert_string_equal(
        see("/proc/3005/net/stat/nf_conntrack", s, "entries  found\n000000ff  00000001\n"),
        "entries  found\n00000000  00000000\n00000000  00000000\n"
        "00000000  00000000\n00000000  00000000\n");
    assert_non_null(
        strstr(see("/proc/3005/net/stat/rt_cache", s, "entries in_hit in_slow_tot\n1 2 3"),
               "\n0000000e 00000000 00000020\n"));
    assert_string_equal(see("/proc/3005/net/stat/rt_cache", s, ""), "\n");
    assert_int_equal(strlen(see("/proc/3005/net/softnet_stat", s, NULL)), 4 * 15 * 9);
}

/* Addresses come when the kernel finds them, in an order of its own. */
static void order_of_addresses(void **state)
{
    aq_veil_scene s = {0};

    (void)state;
    assert_string_equal(see("/proc/3005/net/if_inet6", s, "fe80 02\n0001 01\n2a02 02\n"),
                        "0001 01\n2a02 02\nfe80 02\n");
    assert_string_equal(see("/proc/3005/net/if_inet6", s, ""), "");
    assert_string_equal(see("/proc/3005/net/igmp6", s,
                            "2    eth0   ff02 1 00000005 12\n1    lo     ff01     1 0000000C 0\n"),
                        "1    lo     ff01     1 0000000C 0\n2    eth0   ff02 1 00000004 0\n");
    assert_string_equal(
        see("/proc/3005/net/ipv6_route", s, "a 40 b 00 c 00000100 00000007 00000009 1 eth0\n"),
        "a 40 b 00 c 00000100 00000001 00000000 1 eth0\n");
    assert_string_equal(
        see("/proc/3005/net/snmp6", s,
            "Ip6InReceives \t7\nIp6InHdrErrors \t3\nIcmp6OutType133 \t1\nUdp6NoPorts \t5\n\n"),
        "Ip6InReceives                   \t10\nIp6InHdrErrors                  \t0\n"
        "Udp6NoPorts \t5\n");
}

/* The host's own disks, buses and kernel. */
static void of_host(void **state)
{
    static const char *const hidden[] = {"/proc/fs/ext4/vda", "/proc/fs/ext4/vda/mb_groups",
                                         "/proc/config.gz", "/proc/irq/42",
                                         "/proc/bus/pci/devices"};
    static const char *const shown[] = {"/proc/fs/ext4",
                                        "/proc/irq",
                                        "/proc/irq/default_smp_affinity",
                                        "/proc/fs",
                                        "/proc/config",
                                        "/tmp/proc/fs/ext4/vda",
                                        "/proc/42/stat",
                                        ""};
    aq_veil_scene s = {0};

    (void)state;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        assert_true(aq_veil_of_host(hidden[i]));
        assert_string_equal(see(hidden[i], s, "secret"), "");
    }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        assert_false(aq_veil_of_host(shown[i]));
}

static void neighbours(void **state)
{
    aq_veil_scene s = {0};
    static const char head[] = "IP address       HW type     Flags       HW address\n";
    aq_auto_buf in = {0}, out = {0};

    (void)state;
    aq_buf_addf(&in, "%s192.168.178.20   0x1         0x6         f0:2f:74:00:00:01\n", head);
    aq_buf_adds(&in, "192.168.178.1    0x1         0x6         3c:a6:2f:00:00:02\n");
    aq_buf_adds(&in, "192.168.178.3    0x1         0x0         00:00:00:00:00:00\n");
    aq_buf_addf(&out, "%s192.168.178.1    0x1         0x2         3c:a6:2f:00:00:02\n", head);
    aq_buf_adds(&out, "192.168.178.20   0x1         0x2         f0:2f:74:00:00:01\n");
    aq_buf_adds(&out, "192.168.178.3    0x1         0x0         00:00:00:00:00:00\n");
    assert_string_equal(see("/proc/3005/net/arp", s, aq_buf_str(&in)), aq_buf_str(&out));
}

static void descriptors(void **state)
{
    aq_veil_scene s = {.inode = twice, .file = {77, 28, 259, 2}};
    static const char info[] = "pos:\t0\nmnt_id:\t181\nino:\t19\n"
                               "lock:\t1: FLOCK  ADVISORY  WRITE 2 00:29:155 0 EOF\n"
                               "tfd:        4 events:       1f data:  4  pos:0 ino:a sdev:f\n";

    (void)state;
    assert_string_equal(see("/proc/3005/fdinfo/3", s, info),
                        "pos:\t0\nmnt_id:\t28\nino:\t77\n"
                        "lock:\t1: FLOCK  ADVISORY  WRITE 2 103:02:77 0 EOF\n"
                        "tfd:        4 events:       1f data:  4  pos:0 ino:14 sdev:f\n");
    assert_null(aq_veil_of("/proc/3005/fdinfo/", true));
    assert_null(aq_veil_of("/proc/3005/fdinfo/3x", true));
    assert_null(aq_veil_of("/proc/3005/fdinfo", true));
}

static void mounts(void **state)
{
    aq_veil_scene s = {0};

    (void)state;
    assert_non_null(strstr(see("/proc/3005/mounts", s, NULL),
                           "/dev/nvme0n1p2 / ext4 rw,relatime,errors=remount-ro 0 0\n"));
    assert_non_null(strstr(see("/proc/3005/mountinfo", s, NULL),
                           " 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 "));
}

static void facts_in_texts(void **state)
{
    aq_veil_scene s = {.draw = 1};
    char first[64];

    (void)state;
    assert_string_equal(see("/proc/sys/kernel/osrelease", s, NULL), "6.1.0-37-amd64\n");
    assert_string_equal(see("/proc/sys/kernel/hostname", s, NULL), "some-ws1\n");
    assert_non_null(strstr(see("/proc/meminfo", s, NULL), "MemTotal:       16142540 kB\n"));
    assert_non_null(strstr(see("/proc/partitions", s, NULL), "  488386584 nvme0n1\n"));
    snprintf(first, sizeof first, "%s", see("/proc/sys/kernel/random/uuid", s, NULL));
    assert_int_equal(strlen(first), 37);
    assert_string_equal(see("/proc/sys/kernel/random/uuid", s, NULL), first);
    s.draw++;
    assert_string_not_equal(see("/proc/sys/kernel/random/uuid", s, NULL), first);
}

static void actors(void **state)
{
    aq_veil_scene s = {.path = "/proc/671/comm"};
    const char *t;

    (void)state;
    assert_string_equal(see("/proc/671/comm", s, NULL), "sshd\n");
    s.path = "/proc/1/cmdline";
    assert_string_equal(see("/proc/1/cmdline", s, NULL), "/sbin/init");
    s.path = "/proc/2419/task/2419/stat";
    t = see("/proc/2419/task/2419/stat", s, NULL);
    assert_int_equal(strncmp(t, "2419 (bash) S 2418 2419 2419 34816 ", 35), 0);
    assert_int_equal(count_of(t, " "), 51);
    assert_null(aq_veil_of("/proc/671/comm", false));
    for (size_t i = 1; i < aq_veil_actor_count; i++) {
        assert_true(aq_veil_actors[i].pid > aq_veil_actors[i - 1].pid);
        assert_true(aq_veil_actors[i].pid < AQ_VEIL_FIRST);
        assert_true(aq_veil_actors[i].parent == 0 || aq_veil_actor_of(aq_veil_actors[i].parent));
    }
}

static int count_node(void *arg, const aq_veil_node *n)
{
    assert_true(*n->path && n->path[0] != '/' && !strchr(n->path, '#'));
    ++*(size_t *)arg;
    return strcmp(n->path, "power/disk") == 0 ? 7 : 0;
}

static void hardware(void **state)
{
    aq_veil_scene s = {.path = "/sys/devices/system/cpu/cpu2/topology/thread_siblings"};
    size_t count = 0;

    (void)state;
    assert_string_equal(see(s.path, s, NULL), "4\n");
    s.path = "/sys/devices/system/cpu/online";
    assert_string_equal(see(s.path, s, NULL), "0-3\n");
    assert_null(aq_veil_of("/sys/devices/system/cpu/cpu/online", true));
    assert_null(aq_veil_of("/sys/class", true));
    assert_int_equal(aq_veil_tree(&machine, count_node, &count), 7);
    assert_true(count > 300 && count < aq_veil_tree_size(&machine));
}

/* ---- another machine: a virtual one, with two threads to a core ---- */

static const aq_fact guest_facts[] = {
    {"machine.hypervisor", "kvm"},
    {"net.virtio", "yes"},
    {"machine.vendor", "A Maker, Inc."},
    {"machine.version", "v 1"},
    {"cpu.count", "4"},
    {"cpu.cores", "2"},
    {"cpu.threads", "2"},
    {"cpu.beside", "1"},
    {"cpu.apic_step", "2"},
    {"cpu.vendor", "AuthenticAMD"},
    {"cpu.family", "25"},
    {"cpu.model_number", "17"},
    {"cpu.flags", "fpu hypervisor"},
    {"cpu.bugs", "spectre_v1 spectre_v2 something_new srso"},
    {"cpu.tlb", "3584 4K pages"},
    {"cache.0.level", "1"},
    {"cache.0.size", "32"},
    {"cache.0.sharing", "2"},
    {"cache.1.size", "32768"},
    {"cache.1.sharing", "4"},
    {"net.mac", "bc:24:11:00:00:01"},
};
static const aq_machine guest = {.facts = guest_facts,
                                 .fact_count = sizeof guest_facts / sizeof *guest_facts};

static const char *see_guest(const char *path)
{
    const aq_veil *v = aq_veil_of(path, true);
    aq_veil_scene s = {.machine = &guest, .path = path};

    assert_non_null(v);
    aq_veil_text(v, &s, NULL, 0, &text);
    return aq_buf_str(&text);
}

static void processor(void **state)
{
    const char *t = see_guest("/proc/cpuinfo");

    (void)state;
    assert_int_equal(count_of(t, "siblings\t: 4\n"), 4);
    assert_int_equal(count_of(t, "cpu cores\t: 2\n"), 4);
    assert_int_equal(count_of(t, "core id\t\t: 1\n"), 2);
    assert_int_equal(count_of(t, "\napicid\t\t: 3\n"), 1);
    assert_int_equal(count_of(t, "TLB size\t: 3584 4K pages\n"), 4);
    assert_int_equal(count_of(t, "vmx flags"), 0);
    /* What a younger kernel knows the persona's does not. */
    assert_int_equal(count_of(t, "bugs\t\t: spectre_v1 spectre_v2 srso\n"), 4);
#define CPU "/sys/devices/system/cpu/"
    assert_string_equal(see_guest(CPU "cpu2/topology/thread_siblings_list"), "2-3\n");
    assert_string_equal(see_guest(CPU "cpu2/topology/thread_siblings"), "c\n");
    assert_string_equal(see_guest(CPU "cpu3/topology/core_id"), "1\n");
    assert_string_equal(see_guest(CPU "cpu3/cache/index0/shared_cpu_list"), "2-3\n");
    assert_string_equal(see_guest(CPU "cpu3/cache/index0/id"), "1\n");
    assert_string_equal(see_guest(CPU "cpu3/cache/index1/shared_cpu_map"), "f\n");
    assert_string_equal(see_guest(CPU "cpu3/cache/index1/size"), "32768K\n");
    assert_string_equal(see_guest(CPU "smt/control"), "on\n");
    assert_string_equal(see_guest(CPU "modalias"), "cpu:type:x86,ven0002fam0019mod0011\n");
    assert_string_equal(see_guest(CPU "vulnerabilities/meltdown"), "Not affected\n");
    assert_string_equal(see_guest(CPU "vulnerabilities/spec_rstack_overflow"),
                        "Vulnerable: Safe RET, no microcode\n");
#undef CPU
}

/* Looks for nodes of one machine. */
struct look {
    const char *wanted;
    size_t found, all;
};

static int look_for(void *arg, const aq_veil_node *n)
{
    struct look *l = arg;

    l->all++;
    l->found += strcmp(n->path, l->wanted) == 0;
    return 0;
}

static size_t has(const aq_machine *m, const char *path)
{
    struct look l = {.wanted = path};

    assert_int_equal(aq_veil_tree(m, look_for, &l), 0);
    assert_int_equal(l.all, aq_veil_tree_size(m));
    return l.found;
}

/* Every node stands in a folder that was there before, and no two have one name. */
static int sound(void *arg, const aq_veil_node *n)
{
    aq_buf *all = arg;
    const char *slash = strrchr(n->path, '/');
    char line[600];

    if (slash) {
        snprintf(line, sizeof line, "\n%.*s/\n", (int)(slash - n->path), n->path);
        if (!strstr(aq_buf_str(all), line))
            fail_msg("nothing is there that %s could stand in", n->path);
    }
    for (int folder = 0; folder < 2; folder++) {
        snprintf(line, sizeof line, "\n%s%s\n", n->path, folder ? "/" : "");
        if (strstr(aq_buf_str(all), line))
            fail_msg("a second %s", n->path);
    }
    aq_buf_addf(all, "%s%s\n", n->path,
                n->kind == AQ_VEIL_FOLDER || n->kind == AQ_VEIL_CLOSED_FOLDER ? "/" : "");
    return 0;
}

static void sound_trees(void **state)
{
    static const aq_fact other_facts[] = {{"machine.hypervisor", "xen"},
                                          {"hypervisor.type", "xen"},
                                          {"pci.card", "0x10d3"},
                                          {"cache.0.size", "1"},
                                          {"cpu.count", "3"}};
    static const aq_machine other = {.facts = other_facts, .fact_count = 5};
    const aq_machine *const all[] = {&machine, &guest, &other};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        aq_auto_buf seen = {0};

        aq_buf_addc(&seen, '\n');
        aq_veil_tree(all[i], sound, &seen);
    }
}

static void machines(void **state)
{
    static const struct {
        const char *path;
        size_t real, virtual;
    } rows[] = {
        {"bus/pci/drivers/i915", 1, 0},
        {"bus/virtio/drivers/virtio_net", 0, 1},
        {"devices/pci0000:00/0000:00:03.0/virtio0/net/eth0/address", 0, 1},
        {"devices/pci0000:00/0000:00:1f.6/net/eth0/address", 1, 0},
        {"class/net/eth0", 1, 1},
        {"block/nvme0n1", 1, 1},
        {"devices/system/cpu/cpu0/cpufreq", 1, 0},
        {"devices/system/cpu/cpu0/cache/index1", 0, 1},
        {"devices/system/cpu/cpu0/cache/index3", 0, 0},
        {"devices/virtual/dmi/id/board_name", 1, 0},
        {"devices/virtual/dmi/id/modalias", 1, 1},
        {"module/kvm_intel", 1, 0},
        {"module/virtio_net", 0, 1},
        {"hypervisor", 1, 1},
        {"hypervisor/type", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(has(&machine, rows[i].path), rows[i].real);
        assert_int_equal(has(&guest, rows[i].path), rows[i].virtual);
    }
    assert_non_null(
        strstr(see_guest("/sys/devices/virtual/dmi/id/modalias"), ":svnAMaker,Inc.:pn:pvrv1:"));
    assert_non_null(strstr(see_guest("/proc/modules"), "virtio_net "));
    assert_null(strstr(see_guest("/proc/modules"), "i915"));
    assert_null(strstr(see_guest("/proc/misc"), "kvm"));
    assert_non_null(strstr(see("/proc/misc", (aq_veil_scene){0}, NULL), "232 kvm\n"));
    assert_non_null(strstr(see_guest("/proc/interrupts"), "virtio0-input.0\n"));
    assert_non_null(strstr(see_guest("/proc/interrupts"), "nvme0q4\n"));
}

/* A machine of two processors has no threads of a third. */
static void threads(void **state)
{
    static const aq_fact two[] = {{"cpu.count", "2"}};
    static const aq_machine small = {.facts = two, .fact_count = 1};
    size_t here = 0, there = 0, graphics = 0;

    (void)state;
    for (size_t i = 0; i < aq_veil_actor_count; i++) {
        const aq_veil_actor *a = &aq_veil_actors[i];

        here += aq_veil_actor_on(&small, a);
        there += aq_veil_actor_on(&machine, a);
        graphics += aq_veil_actor_on(&guest, a) && strncmp(a->comm, "i915", 4) == 0;
        if (strcmp(a->comm, "ksoftirqd/2") == 0)
            assert_false(aq_veil_actor_on(&small, a));
        if (strcmp(a->comm, "ksoftirqd/1") == 0)
            assert_true(aq_veil_actor_on(&small, a));
    }
    assert_int_equal(there, aq_veil_actor_count);
    assert_true(here < there - 8);
    assert_int_equal(graphics, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find),
        cmocka_unit_test(actors),
        cmocka_unit_test(counters),
        cmocka_unit_test(hardware),
        cmocka_unit_test(processor),
        cmocka_unit_test(machines),
        cmocka_unit_test(sound_trees),
        cmocka_unit_test(threads),
        cmocka_unit_test(time_and_load),
        cmocka_unit_test(processors),
        cmocka_unit_test(status),
        cmocka_unit_test(stat_line),
        cmocka_unit_test(memory_map),
        cmocka_unit_test(sockets),
        cmocka_unit_test(order_of_sockets),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(counts_of_network),
        cmocka_unit_test(order_of_addresses),
        cmocka_unit_test(of_host),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(mounts),
        cmocka_unit_test(facts_in_texts),
    };

    int r = cmocka_run_group_tests(tests, NULL, NULL);
    aq_buf_free(&text);
    return r;
}
