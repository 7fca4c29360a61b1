/* Looks into /proc and /sys; see looks.h. */
#include "cli/looks.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/machine.h"

static const char *const ordinary[] = {
#define AQ_ORDINARY(pattern) pattern,
#include "cli/looks.def"
#undef AQ_ORDINARY
};

static bool below(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The number of a process in the path, with what follows it; 0 where there is none. */
static unsigned long process_of(const char *path, const char **rest)
{
    char *end;
    unsigned long pid;

    if (strncmp(path, "/proc/", 6) != 0 || path[6] < '1' || path[6] > '9')
        return 0;
    pid = strtoul(path + 6, &end, 10);
    if (*end && *end != '/')
        return 0;
    *rest = end;
    return pid;
}

/* The first process of a run without a machine is 2: 1 is not the program's. */
static bool is_own(unsigned long pid, bool machine)
{
    return machine ? pid >= AQ_MACHINE_FIRST : pid > 1;
}

/* As the program would write it; in the buffer where that is another text. */
static const char *as_told(const char *path, bool machine, char *buffer, size_t size)
{
    const char *rest;
    unsigned long pid = process_of(path, &rest);

    if (!pid || !is_own(pid, machine))
        return path;
    snprintf(buffer, size, "/proc/%s%s", strncmp(rest, "/net/", 5) == 0 ? "net" : "self",
             strncmp(rest, "/net/", 5) == 0 ? rest + 4 : rest);
    return buffer;
}

bool aq_look_ordinary(const char *path, bool machine)
{
    char buffer[1024];
    const char *told = as_told(path, machine, buffer, sizeof buffer);

    if (!below(path, "/proc") && !below(path, "/sys"))
        return false;
    for (size_t i = 0; i < sizeof ordinary / sizeof *ordinary; i++)
        if (fnmatch(ordinary[i], told, 0) == 0)
            return true;
    return strcmp(path, "/proc") == 0 || strcmp(path, "/sys") == 0;
}

/* The same file of another process, which is counted there. */
static aq_summary_row *same_file(const aq_summary *s, aq_summary_list *l, const char *told)
{
    const char *rest, *other;
    unsigned long pid = process_of(told, &rest);

    for (size_t i = 0; i < l->count; i++) {
        aq_summary_row *r = &l->rows[i];

        if (strcmp(r->text, told) == 0) {
            r->count--; /* it is there */
            return r;
        }
        if (!pid)
            continue;
        if (strncmp(r->text, "/proc/*", 7) == 0 && strcmp(r->text + 7, rest) == 0)
            return r;
        if (process_of(r->text, &other) && strcmp(other, rest) == 0) {
            r->text = aq_arena_printf(s->arena, "/proc/*%s", rest);
            return r;
        }
    }
    return NULL;
}

static void add(const aq_summary *s, const aq_summary_list *from, bool machine,
                aq_summary_list *ret)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *path = from->rows[i].text, *told;
        char buffer[1024];
        aq_summary_row *r;

        if ((!below(path, "/proc") && !below(path, "/sys")) || aq_look_ordinary(path, machine))
            continue;
        told = as_told(path, machine, buffer, sizeof buffer);
        r = same_file(s, ret, told);
        if (!r) {
            r = &ret->rows[ret->count++];
            r->text = aq_arena_strdup(s->arena, told);
        }
        r->count++;
    }
}

aq_summary_list aq_looks(const aq_summary *s, bool machine)
{
    aq_summary_list l = {0};

    l.rows = aq_arena_alloc(s->arena,
                            (s->files_read.count + s->files_denied.count + 1) * sizeof *l.rows);
    add(s, &s->files_read, machine, &l);
    add(s, &s->files_denied, machine, &l);
    return l;
}
