/* The library that programs get for the time: a loader finds its functions, and they make calls. */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "observe/vdso.h"
#include "unit.h"

static uint8_t image[AQ_VDSO_BYTES];

static const Elf64_Dyn *entry(int64_t tag)
{
    const Elf64_Ehdr *head = (const void *)image;
    const Elf64_Phdr *p = (const void *)(image + head->e_phoff);

    for (int i = 0; i < head->e_phnum; i++)
        if (p[i].p_type == PT_DYNAMIC)
            for (const Elf64_Dyn *d = (const void *)(image + p[i].p_offset); d->d_tag; d++)
                if (d->d_tag == tag)
                    return d;
    return NULL;
}

static const void *table(int64_t tag)
{
    assert_non_null(entry(tag));
    assert_true(entry(tag)->d_un.d_ptr < AQ_VDSO_TEXT);
    return image + entry(tag)->d_un.d_ptr;
}

/* As a loader does it: by the old table, from its only bucket on. */
static uint64_t find(const char *name)
{
    const uint32_t *hash = table(DT_HASH);
    const Elf64_Sym *symbols = table(DT_SYMTAB);
    const char *strings = table(DT_STRTAB);
    uint32_t steps = 0;

    for (uint32_t i = hash[2]; i; i = hash[3 + i]) {
        assert_true(++steps < hash[1] && i < hash[1]);
        if (strcmp(strings + symbols[i].st_name, name) == 0)
            return symbols[i].st_value;
    }
    return 0;
}

/* By the new one: the chain of the only bucket, to its last. */
static uint64_t find_new(const char *name)
{
    const uint32_t *hash = table(DT_GNU_HASH), *chain = hash + 4 + 2 * hash[2] + hash[0];
    const Elf64_Sym *symbols = table(DT_SYMTAB);
    const char *strings = table(DT_STRTAB);
    uint32_t h = 5381;

    for (const char *c = name; *c; c++)
        h = h * 33 + (unsigned char)*c;
    for (uint32_t i = 0;; i++) {
        if ((chain[i] | 1) == (h | 1) && strcmp(strings + symbols[hash[1] + i].st_name, name) == 0)
            return symbols[hash[1] + i].st_value;
        if (chain[i] & 1)
            return 0;
    }
}

static void loaders_find_them(void **state)
{
    const char *const names[] = {
        "__vdso_clock_gettime", "clock_gettime", "__vdso_gettimeofday", "gettimeofday",
        "__vdso_time",          "time",          "__vdso_clock_getres", "clock_getres",
        "__vdso_getcpu",        "getcpu"};

    (void)state;
    aq_vdso_make(0x06018c, image);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_true(find(names[i]) >= AQ_VDSO_TEXT);
        assert_int_equal(find(names[i]), find_new(names[i]));
    }
    assert_int_equal(find("__vdso_clock_gettime"), find("clock_gettime"));
    assert_int_equal(find("__vdso_getrandom"), 0);
    assert_string_equal((const char *)table(DT_STRTAB) + entry(DT_SONAME)->d_un.d_val,
                        "linux-vdso.so.1");
}

static void versions_are_whole(void **state)
{
    const Elf64_Verdef *first = table(DT_VERDEF);
    const Elf64_Verdef *second = (const void *)((const char *)first + first->vd_next);
    const Elf64_Verdaux *name = (const void *)((const char *)second + second->vd_aux);
    const uint16_t *of = table(DT_VERSYM);

    (void)state;
    assert_int_equal(first->vd_flags, VER_FLG_BASE);
    assert_int_equal(second->vd_next, 0);
    assert_string_equal((const char *)table(DT_STRTAB) + name->vda_name, "LINUX_2.6");
    assert_int_equal(second->vd_hash, 0x3ae75f6);
    assert_true(of[0] == 0 && of[1] == 2);
}

static void functions_make_calls(void **state)
{
    typedef int ask(clockid_t, struct timespec *);
    uint8_t *at =
        mmap(NULL, AQ_VDSO_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct timespec by = {0}, ts = {0};
    void *f;

    (void)state;
    memcpy(at, image, AQ_VDSO_BYTES);
    assert_int_equal(mprotect(at, AQ_VDSO_BYTES, PROT_READ | PROT_EXEC), 0);
    f = at + find("__vdso_clock_gettime");
    assert_int_equal(((ask *)f)(CLOCK_MONOTONIC, &by), 0);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    assert_true(by.tv_sec > 0 && by.tv_sec <= ts.tv_sec && ts.tv_sec - by.tv_sec < 60);
    assert_int_equal(((ask *)f)(CLOCK_MONOTONIC, (void *)8), -14);
    assert_memory_equal(image + AQ_VDSO_CALL, "\x0f\x05", 2);
}

static void versions_are_read(void **state)
{
    (void)state;
    assert_int_equal(aq_vdso_version("#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)"),
                     0x06018c);
    assert_int_equal(aq_vdso_version("6.18.44"), 0x06122c);
    assert_int_equal(aq_vdso_version("5.4.300"), 0x0504ff);
    assert_int_equal(aq_vdso_version("6.1 and 7."), 0);
    assert_int_equal(aq_vdso_version(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaders_find_them),
        cmocka_unit_test(versions_are_whole),
        cmocka_unit_test(functions_make_calls),
        cmocka_unit_test(versions_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
