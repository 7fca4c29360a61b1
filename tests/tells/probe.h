/* What the parts of the probe share: one tell is one function that says whether what it sees is
 * natural on a Debian 12 machine that somebody works on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct tell {
    const char *group, *name, *reason; /* what a real machine says */
    bool (*natural)(void);
} tell;

/* Rows lie in a section of their own, in the order of the files. */
#define TELL(group_, name_, reason_)                                                               \
    static bool tell_##group_##_##name_(void);                                                     \
    static const tell row_##group_##_##name_ = {#group_, #name_, reason_,                          \
                                                tell_##group_##_##name_};                          \
    static const tell *const at_##group_##_##name_ __attribute__((used, section("tells"))) =       \
        &row_##group_##_##name_;                                                                   \
    static bool tell_##group_##_##name_(void)

/* What was seen, for the report; the last words count. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says it and returns false. */
bool odd(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The beginning of a file, "" where it cannot be read; lives until the third call after it. */
const char *text_of(const char *path);
/* The rest of the line that begins with this word, without blanks around it; NULL where none does.
 * Lives like a text. */
const char *line_of(const char *text, const char *word);
bool there(const char *path);
bool has_line(const char *text, const char *line_begin);
size_t lines_in(const char *text);
size_t entries_in(const char *folder); /* without . and .. */
const char *link_of(const char *path); /* "" where it is none */
const char *release(void);             /* of the kernel, by uname */
int64_t now_ns(int clock);             /* by the system call, not by the vDSO */
double uptime(void);                   /* by /proc/uptime */
/* Runs in a child and returns what it wrote to `fd`; "" when it failed. */
const char *by_child(void (*act)(int fd));
/* This program again, with one argument; what it printed. */
const char *again(const char *what);
/* The output of a program with its errors; "" where there is no such program. */
const char *output_of(const char *const *command);
int cpus_in_cpuinfo(void);
/* What is natural beside a hypervisor that the processor tells of (CPUID); NULL: it tells of none.
 */
typedef struct guest {
    const char *signature;
    const char *makers, *drivers, *disks; /* words of which one is there, between bars */
} guest;
const guest *hypervisor(void);
/* Is a word of "|ONE|OTHER|" in this text? */
bool has_one_of(const char *words, const char *text);
/* The row of passwd for our user id: a field by number, "" where there is none. */
const char *passwd_field(int number);
const char *home(void);
/* Every file below a folder, to a depth of eight. */
void walk(const char *folder, void (*seen)(const char *path, void *to), void *to);

/* probe_entropy.c: what this program says of itself when it runs once more. */
void answer(const char *what);
