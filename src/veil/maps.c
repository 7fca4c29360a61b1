/* Files that tell of a process's memory: where things lie is the truth (the program can see that
 * anyway), on which device and how much of it is present is not. */
#include "veil/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "model/place.h"

enum { NAME = 4096, /* of a path */ NAME_AT = 73 }; /* column of the name in a row of maps */

/* "7f12-7f34 r-xp 00002000 fe:01 1234   /bin/cat" */
typedef struct row {
    const char *range, *access, *offset, *device, *name;
    size_t range_len, access_len, offset_len, device_len, name_len;
    uint64_t inode, size_kb, to;
} row;

static bool is_range(const char *word, size_t len, uint64_t *end, uint64_t *kb)
{
    const char *dash = memchr(word, '-', len);
    size_t first = dash ? (size_t)(dash - word) : 0;
    uint64_t from, to;

    if (first == 0 || first + 1 >= len)
        return false;
    from = aq_word_number(word, first, 16);
    to = aq_word_number(dash + 1, len - first - 1, 16);
    *end = to;
    *kb = to > from ? (to - from) / 1024 : 0;
    return aq_word_hex(word, len) == first &&
           aq_word_hex(dash + 1, len - first - 1) == len - first - 1;
}

static bool read_row(const char *line, size_t len, row *r)
{
    aq_lines l = {line, line + len};
    const char *inode;
    size_t n;

    if (!aq_word_next(&l, &r->range, &r->range_len) ||
        !is_range(r->range, r->range_len, &r->to, &r->size_kb) ||
        !aq_word_next(&l, &r->access, &r->access_len) || r->access_len != 4 ||
        !aq_word_next(&l, &r->offset, &r->offset_len) ||
        !aq_word_next(&l, &r->device, &r->device_len) || !memchr(r->device, ':', r->device_len) ||
        !aq_word_next(&l, &inode, &n))
        return false;
    r->inode = aq_word_number(inode, n, 10);
    while (l.at < l.end && *l.at == ' ')
        l.at++;
    r->name = l.at;
    r->name_len = (size_t)(l.end - l.at);
    return true;
}

static uint64_t device_number(const row *r)
{
    const char *colon = memchr(r->device, ':', r->device_len);
    size_t first = (size_t)(colon - r->device);

    return makedev((unsigned)aq_word_number(r->device, first, 16),
                   (unsigned)aq_word_number(colon + 1, r->device_len - first - 1, 16));
}

static bool starts(const row *r, const char *text)
{
    return r->name_len >= strlen(text) && memcmp(r->name, text, strlen(text)) == 0;
}

static void copy_name(const row *r, char ret[static NAME])
{
    snprintf(ret, NAME, "%.*s", (int)(r->name_len < NAME ? r->name_len : NAME - 1), r->name);
}

/* The device of the mount that its name lies in; what has no place in the tree keeps its own. */
static void add_device(const row *r, aq_buf *ret)
{
    const aq_place *m;
    char path[NAME];

    if (r->inode == 0 || !starts(r, "/") || starts(r, "/memfd:") || starts(r, "/SYSV") ||
        starts(r, "/dev/zero")) {
        aq_buf_add(ret, r->device, r->device_len);
        return;
    }
    copy_name(r, path);
    m = aq_place_of(path);
    aq_buf_addf(ret, "%02x:%02x", m->major, m->minor);
}

/* The pages of the kernel's clock, in whose place are others without a name. */
static bool is_clock(const aq_veil_scene *s, const row *r)
{
    return s->of.vdso && r->to == s->of.vdso && r->name_len == 0 && r->inode == 0 &&
           memcmp(r->access, "r--p", 4) == 0;
}

size_t aq_veil_unnamed(const char *name, size_t len, uint64_t ino)
{
    static const char gone[] = " (deleted)";
    char own[32];
    size_t n = (size_t)snprintf(own, sizeof own, "/#%" PRIu64 "%s", ino, gone);

    return len > n && *name == '/' && memcmp(name + len - n, own, n) == 0 ? len - n + 2 : 0;
}

static void add_row(const aq_veil_scene *s, const row *r, aq_buf *ret)
{
    const char *name = is_clock(s, r) ? "[vvar]" : r->name;
    size_t start = ret->len, name_len = is_clock(s, r) ? 6 : r->name_len, used;
    uint64_t inode = r->inode;
    char path[NAME];

    if (inode && s->inode) {
        copy_name(r, path);
        inode = s->inode(s->arg, path, device_number(r), inode);
    }
    aq_buf_add(ret, r->range, r->range_len);
    aq_buf_addc(ret, ' ');
    aq_buf_add(ret, r->access, r->access_len);
    aq_buf_addc(ret, ' ');
    aq_buf_add(ret, r->offset, r->offset_len);
    aq_buf_addc(ret, ' ');
    add_device(r, ret);
    aq_buf_addf(ret, " %" PRIu64 " ", inode);
    if (name_len > 0) {
        used = ret->len - start;
        aq_buf_addf(ret, "%*s", used < NAME_AT ? (int)(NAME_AT - used) : 1, "");
        used = aq_veil_unnamed(name, name_len, r->inode);
        if (used)
            aq_buf_addf(ret, "%.*s%" PRIu64 " (deleted)", (int)used, name, inode);
        else
            aq_buf_add(ret, name, name_len);
    }
    aq_buf_addc(ret, '\n');
}

void aq_make_maps(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;
    row r;

    while (aq_line_next(&l, &line, &n))
        if (read_row(line, n, &r))
            add_row(s, &r, ret);
}

/* ---- how much is present ---- */

typedef struct amounts {
    uint64_t size, rss, clean, dirty;
} amounts;

static amounts amounts_of(const row *r)
{
    amounts a = {.size = r->size_kb};
    bool writable = r->access[1] == 'w', open = r->access[0] != '-' || writable;

    a.rss = open ? (r->size_kb < 8 ? r->size_kb : aq_veil_resident_kb(r->size_kb)) : 0;
    a.dirty = writable ? a.rss : 0;
    a.clean = a.rss - a.dirty;
    return a;
}

static void add_amounts(const amounts *a, bool anonymous, aq_buf *ret)
{
    const struct {
        const char *name;
        uint64_t kb;
    } rows[] = {
        {"Rss", a->rss},
        {"Pss", a->dirty + a->clean / 4},
        {"Pss_Dirty", a->dirty},
        {"Shared_Clean", anonymous ? 0 : a->clean},
        {"Shared_Dirty", 0},
        {"Private_Clean", anonymous ? a->clean : 0},
        {"Private_Dirty", a->dirty},
        {"Referenced", a->rss},
        {"Anonymous", a->dirty},
        {"LazyFree", 0},
        {"AnonHugePages", 0},
        {"ShmemPmdMapped", 0},
        {"FilePmdMapped", 0},
        {"Shared_Hugetlb", 0},
        {"Private_Hugetlb", 0},
        {"Swap", 0},
        {"SwapPss", 0},
        {"Locked", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        aq_buf_addf(ret, "%s:%*s%8" PRIu64 " kB\n", rows[i].name, (int)(15 - strlen(rows[i].name)),
                    "", rows[i].kb);
}

void aq_make_smaps(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;
    row r;

    while (aq_line_next(&l, &line, &n)) {
        if (read_row(line, n, &r)) {
            amounts a = amounts_of(&r);

            add_row(s, &r, ret);
            aq_buf_addf(ret,
                        "Size:           %8" PRIu64 " kB\nKernelPageSize:        4 kB\n"
                        "MMUPageSize:           4 kB\n",
                        a.size);
            add_amounts(&a, r.inode == 0, ret);
            aq_buf_adds(ret, "THPeligible:    0\n");
        } else if (n > 8 && memcmp(line, "VmFlags:", 8) == 0) {
            aq_buf_add(ret, line, n);
            aq_buf_addc(ret, '\n');
        }
    }
}

/* Only its range tells how large the process is. */
void aq_make_rollup(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line;
    size_t n;
    row r;
    amounts a = {.rss = 6144, .clean = 4096, .dirty = 2048};

    if (!aq_line_next(&l, &line, &n) || !read_row(line, n, &r))
        return;
    add_row(s, &r, ret);
    add_amounts(&a, false, ret);
}

/* "7f12 default file=/bin/cat mapped=5 N0=5": without the numbers. */
void aq_make_numa(const aq_veil_scene *s, const char *truth, size_t len, aq_buf *ret)
{
    aq_lines l = {truth, truth + len};
    const char *line, *word;
    size_t n, size;

    (void)s;
    while (aq_line_next(&l, &line, &n)) {
        aq_lines words = {line, line + n};

        for (int i = 0; aq_word_next(&words, &word, &size); i++)
            if (i < 2 || memchr(word, '=', size) == NULL ||
                memcmp(word, "file=", size < 5 ? size : 5) == 0) {
                aq_buf_adds(ret, i ? " " : "");
                aq_buf_add(ret, word, size);
            }
        aq_buf_addc(ret, '\n');
    }
}
