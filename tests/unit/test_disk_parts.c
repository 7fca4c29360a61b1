/* What lies on the disk of a machine that does not exist: devices, its kernel's package, days. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "veil/dates.h"
#include "veil/devices.h"
#include "veil/kernel.h"
#include "veil/veil.h"

enum { DAY = 86400, START = 1793616618 }; /* 2026-11-02 10:50:18 */

static const aq_fact nvme[] = {{"disk.name", "nvme0n1"},
                               {"kernel.release", "6.6.13+bpo-amd64"},
                               {"kernel.version", "#1 SMP Debian 6.6.13-1~bpo12+1 (2024-02-15)"}};
static const aq_fact virtual[] = {{"disk.name", "vda"}};
static const aq_machine metal = {.entropy = {7},
                                 .start_ns = START * INT64_C(1000000000),
                                 .facts = nvme,
                                 .fact_count = sizeof nvme / sizeof *nvme};
static const aq_machine cloud = {.facts = virtual, .fact_count = 1};

static void devices(void **state)
{
    aq_device d;

    (void)state;
    assert_true(aq_veil_device(&metal, "/dev/tty12", &d));
    assert_true(!d.block && d.major == 4 && d.minor == 12 && d.mode == 0620 && d.group == 5);
    assert_true(aq_veil_device(&metal, "/dev/vcsa3", &d));
    assert_true(d.major == 7 && d.minor == 131);
    assert_true(aq_veil_device(&metal, "/dev/nvme0n1p2", &d));
    assert_true(d.block && d.major == 259 && d.minor == 2 && d.refusal == 0);
    assert_true(aq_veil_device(&metal, "/dev/kmsg", &d) && d.refusal == EPERM);
    assert_false(aq_veil_device(&metal, "/dev/tty64", &d));
    assert_false(aq_veil_device(&metal, "/dev/tty", &d));
    assert_false(aq_veil_device(&metal, "/dev/tty012", &d));
    assert_false(aq_veil_device(&metal, "/dev/null", &d));
    assert_false(aq_veil_device(&metal, "/dev", &d));
    assert_false(aq_veil_device(&metal, "/tmp/dev/tty1", &d));
}

/* The one disk has the name that the facts say. */
static void disks(void **state)
{
    aq_device d;

    (void)state;
    assert_true(aq_veil_no_device(&metal, "/dev/vda1") && aq_veil_no_device(&metal, "/dev/sda"));
    assert_false(aq_veil_device(&metal, "/dev/vda1", &d));
    assert_true(aq_veil_device(&cloud, "/dev/vda1", &d));
    assert_true(d.major == 254 && d.minor == 1);
    assert_true(aq_veil_no_device(&cloud, "/dev/nvme0n1"));
    assert_true(aq_veil_no_device(&cloud, "/dev/ng0n1"));
    assert_false(aq_veil_no_device(&cloud, "/dev/tty1"));
    assert_false(aq_veil_no_device(&cloud, "/etc/vda"));
}

static char *tree;

static void is_in_tree(void *arg, const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t len = strlen(last);
    int *count = arg;
    bool found = false;

    for (const char *at = tree; (at = strstr(at, last)) && !found; at += len)
        found = (at[-1] == ' ' || at[-1] == ':') && (at[len] == ' ' || at[len] == '\n');
    if (!found)
        fail_msg("rules/machine/dev.tree has no %s", name);
    ++*count;
}

/* A row without a file would be a device that nobody sees. */
static void every_device_has_its_file(void **state)
{
    const char *source = getenv("AQUARIUM_SOURCE");
    char path[512];
    int count = 0;
    FILE *f;

    (void)state;
    snprintf(path, sizeof path, "%s/rules/machine/dev.tree", source ? source : ".");
    f = fopen(path, "r");
    assert_non_null(f);
    tree = calloc(1, 1 << 16);
    assert_true(fread(tree, 1, (1 << 16) - 1, f) > 1000);
    fclose(f);
    aq_veil_devices(is_in_tree, &count);
    assert_true(count > 130);
    free(tree);
}

static const char *elsewhere(const char *path)
{
    static char to[256];

    return aq_kernel_elsewhere(path, to, sizeof to) ? to : "as it says";
}

static void modules(void **state)
{
    (void)state;
    assert_string_equal(elsewhere("/lib/modules"), "/var/backups/lib/modules");
    assert_string_equal(elsewhere("/lib/modules/"), "/var/backups/lib/modules");
    assert_string_equal(elsewhere("/usr/lib/modules/6/x.ko"), "/var/backups/lib/modules/6/x.ko");
    assert_string_equal(elsewhere("/lib/modules/6/./a/../b"), "/var/backups/lib/modules/6/b");
    assert_string_equal(elsewhere("/lib/modules/.."), "/lib");
    assert_string_equal(elsewhere("/usr/lib/modules/../x"), "/usr/lib/x");
    assert_string_equal(elsewhere("/lib/modules/../../../../etc"), "/etc");
    assert_string_equal(elsewhere("/lib/modules-load.d"), "as it says");
    assert_string_equal(elsewhere("/lib"), "as it says");
    assert_string_equal(elsewhere("/"), "as it says");
    assert_string_equal(elsewhere("/var/lib/dpkg/info/bash.list"), "as it says");
    assert_string_equal(elsewhere("/var/lib/dpkg/info/linux-image-6.list"),
                        "/var/backups/lib/info/linux-image-6.list");
    assert_string_equal(elsewhere("/var/lib/dpkg/info/linux-image-/../../x"), "as it says");
}

static const char *shown(const char *path)
{
    static char name[256];

    snprintf(name, sizeof name, "%s", path);
    return aq_kernel_shown(name) ? name : "as it is";
}

static bool hidden(const char *path)
{
    char to[256];

    return aq_kernel_hidden(path, to, sizeof to) && strncmp(to, "/var/backups/lib-", 17) == 0;
}

/* Where they really lie nobody finds them. */
static void modules_hidden(void **state)
{
    (void)state;
    assert_string_equal(shown("/var/backups/lib/modules/6/x.ko"), "/usr/lib/modules/6/x.ko");
    assert_string_equal(shown("/var/backups/lib"), "/usr/lib");
    assert_string_equal(shown("/var/backups/lib/info/linux-image-6.list"),
                        "/var/lib/dpkg/info/linux-image-6.list");
    assert_string_equal(shown("/var/backups/libx"), "as it is");
    assert_string_equal(shown("/var/backups"), "as it is");
    assert_true(hidden("/var/backups/lib") && hidden("//var/./backups/x/../lib/modules/"));
    assert_false(hidden("/var/backups/lib2") || hidden("/var/backups") || hidden("/lib/modules"));
    assert_string_equal(aq_kernel_lacks("/var/backups"), "lib");
    assert_null(aq_kernel_lacks("/var/backups/lib"));
    assert_null(aq_kernel_lacks("/var"));
}

static void package(void **state)
{
    const char *truth = "Package: bash\nVersion: 5\n\n";
    const aq_veil *v = aq_veil_of("/var/lib/dpkg/status", true);
    aq_auto_buf text = {0};
    char room[160];
    bool folder;

    (void)state;
    assert_non_null(v);
    assert_true(aq_veil_needs_truth(v));
    aq_veil_text(v, &(aq_veil_scene){.machine = &metal}, truth, strlen(truth), &text);
    assert_memory_equal(text.data, truth, strlen(truth));
    assert_non_null(strstr(aq_buf_str(&text), "\nPackage: linux-image-6.6.13+bpo-amd64\n"));
    assert_non_null(strstr(aq_buf_str(&text), "\nVersion: 6.6.13-1~bpo12+1\n"));
    assert_int_equal(text.len, strlen(truth) + aq_kernel_adds(&metal, "/var/lib/dpkg/status"));
    assert_int_equal(aq_kernel_adds(&metal, "/var/lib/dpkg/available"), 0);
    assert_string_equal(aq_kernel_added(&metal, "/usr/lib", 0, &folder, room, sizeof room),
                        "modules");
    assert_true(folder);
    assert_null(aq_kernel_added(&metal, "/usr/lib", 1, &folder, room, sizeof room));
    assert_null(aq_kernel_added(&metal, "/usr", 0, &folder, room, sizeof room));
    assert_string_equal(
        aq_kernel_added(&metal, "/var/lib/dpkg/info", 1, &folder, room, sizeof room),
        "linux-image-6.6.13+bpo-amd64.md5sums");
}

static void days(void **state)
{
    const int64_t upgrade = 20339 * INT64_C(86400), made = START - INT64_C(9106) * 3600;
    const char *log = "2025-09-08 06:41 a\n2024-01-16 b\n2025-09-09 c\n2";
    aq_auto_buf text = {0};
    int64_t moved = aq_veil_moved(&metal, upgrade + 5);

    (void)state;
    assert_true(moved < START - 7 * DAY && moved > START - 28 * DAY && moved % DAY == 5);
    moved = aq_veil_moved(&metal, 19738 * INT64_C(86400));
    assert_int_equal(moved / DAY, made / DAY);
    assert_int_equal(aq_veil_moved(&metal, upgrade + DAY), upgrade + DAY);
    assert_int_equal(aq_veil_moved(&metal, 0), 0);
    aq_veil_text(aq_veil_of("/var/log/dpkg.log", true), &(aq_veil_scene){.machine = &metal}, log,
                 strlen(log), &text);
    assert_int_equal(text.len, strlen(log));
    assert_null(strstr(aq_buf_str(&text), "2025-09-08"));
    assert_non_null(strstr(aq_buf_str(&text), "\n2025-10-19 b\n2025-09-09 c\n2"));
    assert_memory_equal(text.data, "2026-10-", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices),
        cmocka_unit_test(disks),
        cmocka_unit_test(every_device_has_its_file),
        cmocka_unit_test(modules),
        cmocka_unit_test(modules_hidden),
        cmocka_unit_test(package),
        cmocka_unit_test(days),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
