/* Counting processes, on a /proc of our own making: whose numbers are added up, and whose not. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "sandbox/census.h"

enum { TICK_NS = 10000000, PAGE = 4096, MEGABYTE = 1 << 20 };

typedef struct place {
    char path[64];
    int proc;
} place;

static void put(const place *p, const char *pid, const char *name, const char *text)
{
    char path[64];
    int fd;

    mkdirat(p->proc, pid, 0700);
    snprintf(path, sizeof path, "%s/%s", pid, name);
    fd = openat(p->proc, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* The fields of proc(5) that count, and neighbours that do not. */
static void stat_of(const place *p, const char *pid, const char *name, int cpu[4], int threads,
                    int pages)
{
    char text[512];

    snprintf(text, sizeof text,
             "%s (%s) S 1 2 3 4 5 6 7 8 9 10 %d %d %d %d 18 19 %d 21 22 23000 %d 25 26\n", pid,
             name, cpu[0], cpu[1], cpu[2], cpu[3], threads, pages);
    put(p, pid, "stat", text);
}

static int begin(void **state)
{
    place *p = calloc(1, sizeof *p);

    make_folder(p->path);
    p->proc = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = p;
    return p->proc < 0;
}

static int end(void **state)
{
    char command[128];
    place *p = *state;

    close(p->proc);
    snprintf(command, sizeof command, "rm -r '%s'", p->path);
    (void)!system(command);
    free(p);
    return 0;
}

static void everybody_counts_and_init_has_no_task(void **state)
{
    const place *p = *state;
    aq_census c;

    stat_of(p, "1", "init", (int[]){1, 2, 3, 4}, 7, 10);
    stat_of(p, "12", "a) S 9 9 (b", (int[]){10, 20, 30, 40}, 3, 100); /* a name that says more */
    stat_of(p, "345", "worker", (int[]){100, 200, 300, 400}, 1, 1000);
    put(p, "self", "stat", "no process");
    put(p, "77", "status", "one that left in the meantime");
    for (int i = 0; i < 2; i++) { /* and again, from the beginning */
        aq_census_take(p->proc, &c);
        assert_int_equal(c.tasks, 3 + 1);
        assert_int_equal(c.cpu_ns, UINT64_C(1110) * TICK_NS);
        assert_int_equal(c.memory, 1110 * PAGE);
    }
}

static void shares_are_counted_once(void **state)
{
    const place *p = *state;

    put(p, "12", "smaps_rollup", "1000-2000 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss:    40 kB\n");
    put(p, "13", "smaps_rollup", "1000-2000 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss:     2 kB\n");
    assert_int_equal(aq_census_memory(p->proc), 42 * 1024);
}

static void nothing_without_proc(void **state)
{
    aq_census c = {1, 1, 1};

    (void)state;
    aq_census_take(-1, &c);
    assert_true(c.tasks == 0 && c.memory == 0 && c.cpu_ns == 0);
    assert_int_equal(aq_census_files(-1, 0), 0);
}

/* A memory file, held by whoever has a link to it here. */
static int file_of(size_t size)
{
    int fd = memfd_create("census", MFD_CLOEXEC);

    assert_int_equal(posix_fallocate(fd, 0, (off_t)size), 0);
    return fd;
}

static void hold(const place *p, const char *pid, const char *as, int fd)
{
    char path[64], to[64];

    mkdirat(p->proc, pid, 0700);
    snprintf(path, sizeof path, "%s/fd", pid);
    mkdirat(p->proc, path, 0700);
    snprintf(path, sizeof path, "%s/fd/%s", pid, as);
    snprintf(to, sizeof to, "/proc/self/fd/%d", fd);
    assert_int_equal(symlinkat(to, p->proc, path), 0);
}

static void files_without_a_name_count_once(void **state)
{
    const place *p = *state;
    int one = file_of(MEGABYTE), two = file_of(2 * MEGABYTE), named, pipes[2];
    struct stat st;

    put(p, "9", "named", "a file with a name");
    named = openat(p->proc, "9/named", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    hold(p, "9", "0", pipes[0]);
    hold(p, "9", "3", named);
    hold(p, "9", "4", one);
    hold(p, "9", "5", one);
    hold(p, "10", "4", one);
    hold(p, "10", "17", two);
    hold(p, "10", "no-number", two);
    assert_int_equal(aq_census_files(p->proc, 0), 3 * MEGABYTE);
    assert_int_equal(aq_census_files(p->proc, 0), 3 * MEGABYTE);
    assert_int_equal(fstat(one, &st), 0);
    assert_int_equal(aq_census_files(p->proc, st.st_dev), 0); /* what has a quota of its own */
    close(one), close(two), close(named), close(pipes[0]), close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everybody_counts_and_init_has_no_task, begin, end),
        cmocka_unit_test_setup_teardown(shares_are_counted_once, begin, end),
        cmocka_unit_test(nothing_without_proc),
        cmocka_unit_test_setup_teardown(files_without_a_name_count_once, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
