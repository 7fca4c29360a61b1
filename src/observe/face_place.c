/* Where files lie, and their numbers; see disk.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/siphash.h"
#include "base/stream.h"
#include "kernel/process.h"
#include "observe/disk.h"
#include "veil/devices.h"

enum {
    NUMBERS = 1 << 19,     /* most that are kept */
    ROOT_FIRST = 131073,   /* inodes of the root in memory */
    HOST_FIRST = 393217,   /* of the host's files */
    SPACE_FIRST = 4194305, /* of the writable places */
    REST_FIRST = 8388609,  /* of what did not fit any more */
    OTHER_FIRST = 31842,   /* of pipes and sockets */
    SMALL_FIRST = 4200,    /* of the host's files where numbers are small */
    BLOCK = 4096,          /* numbers that are shuffled among themselves */
    SECOND = 1000000000,
};
static const uint64_t anonymous = UINT64_MAX;
static const uint64_t proc_first = 4026531840; /* of what is in /proc for good */
static const char hours[] = "disk.made_hours";

void aq_disk_new(aq_tracer *t)
{
    const aq_machine *m = t->plan.machine;
    aq_disk *f = aq_alloc(sizeof *f);
    aq_stream s = aq_stream_of(m->entropy, "files");

    aq_stream_bytes(&s, f->key, sizeof f->key);
    f->start = m->start_ns;
    f->boot = m->start_ns - (int64_t)m->uptime_ns;
    f->made = m->start_ns - (int64_t)aq_machine_number(m, hours, 9106) * 3600 * SECOND;
    t->disk = f;
}

void aq_disk_free(aq_tracer *t)
{
    if (!t->disk)
        return;
    free(t->disk->number);
    free(t->disk->stamp);
    aq_buf_free(&t->disk->mounts);
    aq_listing_free(t->disk->listing);
    free(t->disk);
    t->disk = NULL;
}

uint64_t aq_disk_hash(const aq_disk *f, const void *data, size_t len)
{
    aq_siphash h;

    aq_siphash_begin(&h, f->key);
    aq_siphash_add(&h, data, len);
    return aq_siphash_end(&h).low;
}

void aq_disk_full(aq_tracer *t, aq_task *k, const char *what)
{
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "face");

    if (t->disk->full)
        return;
    t->disk->full = true;
    aq_event_object(&e, k->proc->exe);
    aq_event_text(&e, "what", what);
    aq_note(t, k, &e);
}

/* ---- places ---- */

const aq_place *aq_disk_place(const char *name)
{
    if (name[0] != '/' || strncmp(name, "/memfd:", 7) == 0 || strncmp(name, "/SYSV", 5) == 0 ||
        strcmp(name, "/dev/zero (deleted)") == 0)
        return NULL;
    return aq_place_of(name);
}

static uint64_t device_at(int root, const char *path, uint32_t *owner)
{
    struct stat s;

    if (fstatat(root, path, &s, AT_SYMLINK_NOFOLLOW) != 0)
        return UINT64_MAX;
    if (owner)
        *owner = s.st_uid;
    return (uint64_t)s.st_dev;
}

/* "\040" stands for a blank. */
static void add_mount(aq_disk *f, const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = at[i];

        if (c == '\\' && len - i > 3) {
            c = (char)((at[i + 1] - '0') << 6 | (at[i + 2] - '0') << 3 | (at[i + 3] - '0'));
            i += 3;
        }
        aq_buf_addc(&f->mounts, c);
    }
    aq_buf_addc(&f->mounts, '\0');
}

/* "80 57 0:40 / /tmp rw,… - tmpfs none rw": the fifth word. Mounts are made before a world begins,
 * and none later. Read when somebody first asks: the kernel takes its time to write them. */
static void read_mounts(aq_disk *f, const aq_task *k)
{
    char path[64], *line = NULL;
    size_t cap = 0;
    FILE *mounts;

    snprintf(path, sizeof path, "%s/%d/mountinfo", aq_process_proc(), k->tid);
    mounts = fopen(path, "re");
    while (mounts && getline(&line, &cap, mounts) > 0) {
        const char *at = line;

        for (int i = 0; i < 4; i++) {
            at += strcspn(at, " ");
            at += *at == ' ';
        }
        if (*at == '/' && at[1] != ' ')
            add_mount(f, at, strcspn(at, " "));
    }
    free(line);
    if (mounts)
        fclose(mounts);
}

bool aq_disk_mounted(aq_tracer *t, const char *folder, const char *name)
{
    aq_buf *all = &t->disk->mounts;
    size_t len = strcmp(folder, "/") == 0 ? 0 : strlen(folder), n;

    if (all->len == 0 && t->tasks) /* all of them have the same */
        read_mounts(t->disk, t->tasks);
    for (size_t at = 0; at < all->len; at += n + 1) {
        const char *mount = all->data + at;

        n = strlen(mount);
        if (n > len + 1 && memcmp(mount, folder, len) == 0 && mount[len] == '/' &&
            !strchr(mount + len + 1, '/') && (!name || strcmp(mount + len + 1, name) == 0))
            return true;
    }
    return false;
}

static void look(aq_tracer *t, aq_task *k)
{
    aq_disk *f = t->disk;
    int root = aq_resolve_root(t, k);

    if (f->looked)
        return;
    f->looked = true;
    f->root = device_at(root, ".", NULL);
    f->space = device_at(root, "tmp", &f->user);
}

bool aq_disk_in_space(aq_tracer *t, aq_task *k, uint64_t dev)
{
    look(t, k);
    return dev == t->disk->space;
}

bool aq_disk_in_root(aq_tracer *t, aq_task *k, uint64_t dev)
{
    look(t, k);
    return dev == t->disk->root;
}

/* ---- numbers in order of sight ---- */

static aq_number *slot_of(aq_number *table, uint32_t cap, uint64_t dev, uint64_t ino)
{
    uint64_t h = (ino ^ dev << 40) * 0x9e3779b97f4a7c15;

    for (uint32_t i = (uint32_t)(h >> 32) & (cap - 1);; i = (i + 1) & (cap - 1))
        if (table[i].dev == 0 || (table[i].dev == dev && table[i].ino == ino))
            return &table[i];
}

static void grow(aq_disk *f)
{
    uint32_t cap = f->number_cap ? 2 * f->number_cap : 1024;
    aq_number *more = aq_alloc(cap * sizeof *more);

    for (uint32_t i = 0; i < f->number_cap; i++)
        if (f->number[i].dev)
            *slot_of(more, cap, f->number[i].dev, f->number[i].ino) = f->number[i];
    free(f->number);
    f->number = more;
    f->number_cap = cap;
}

/* NULL: no more fit. */
static const aq_number *number_of(aq_tracer *t, uint64_t dev, uint64_t ino)
{
    aq_disk *f = t->disk;
    aq_number *n;

    if (f->numbers * 2 >= f->number_cap && f->number_cap < 2 * NUMBERS)
        grow(f);
    n = slot_of(f->number, f->number_cap, dev, ino);
    if (n->dev)
        return n;
    if (f->numbers == NUMBERS)
        return NULL;
    f->numbers++;
    if (dev == anonymous)
        f->others++;
    *n = (aq_number){.dev = dev,
                     .ino = ino,
                     .since = aq_times_now(t),
                     .order = dev == anonymous ? f->others : f->numbers - f->others};
    return n;
}

/* A folder's files were not made in the order in which it lists them. */
static uint64_t shuffled(const aq_disk *f, uint32_t order)
{
    uint32_t block = order / BLOCK, odd = (uint32_t)f->key[0] | 1, at = order * odd;

    return (uint64_t)block * BLOCK + (at + (uint32_t)f->key[1] + block * 977) % BLOCK;
}

uint64_t aq_disk_anonymous(aq_tracer *t, uint64_t ino, int64_t *since)
{
    const aq_number *n = number_of(t, anonymous, ino);

    if (since)
        *since = n ? n->since : t->disk->start;
    return OTHER_FIRST + (n ? n->order : (uint32_t)ino);
}

static uint64_t host_number(aq_tracer *t, uint64_t dev, uint64_t ino)
{
    const aq_number *n = number_of(t, dev ? dev : anonymous - 1, ino);
    uint64_t both[2] = {dev, ino};

    if (n)
        return HOST_FIRST + shuffled(t->disk, n->order);
    if (t->last)
        aq_disk_full(t, t->last, "numbers of files");
    return REST_FIRST + (aq_disk_hash(t->disk, both, sizeof both) & 0xffffff);
}

/* ---- numbers by name ---- */

/* The kernel gives some of these anew each time that it looks, so the name counts. */
static uint64_t proc_number(const aq_disk *f, const char *name)
{
    const char *rest = name + strlen("/proc");
    uint64_t h = aq_disk_hash(f, name, strlen(name));

    if (!*rest)
        return 1;
    if (rest[1] < '0' || rest[1] > '9')
        return proc_first + 2 + h % 700;
    return 20000 + h % 16000000;
}

static uint64_t device_number(aq_tracer *t, const char *name)
{
    static const struct {
        const char *name;
        uint64_t number;
    } known[] = {{"/dev", 1},        {"/dev/null", 4},    {"/dev/zero", 6}, {"/dev/full", 7},
                 {"/dev/random", 8}, {"/dev/urandom", 9}, {"/dev/tty", 12}};
    enum { FIRST_DEVICE = 20, DEVICES = 400 };
    aq_device device;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return known[i].number;
    if (aq_veil_device(t->plan.machine, name, &device))
        return FIRST_DEVICE + device.order;
    return FIRST_DEVICE + DEVICES + aq_disk_hash(t->disk, name, strlen(name)) % DEVICES;
}

uint64_t aq_disk_namespace(const char *text)
{
    static const struct {
        const char *name;
        uint64_t number;
    } first[] = {{"time", 4026531834}, {"cgroup", 4026531835}, {"pid", 4026531836},
                 {"user", 4026531837}, {"uts", 4026531838},    {"ipc", 4026531839},
                 {"net", 4026531840},  {"mnt", 4026531841}};
    size_t len = strcspn(text, ":");

    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (strncmp(text, first[i].name, len) == 0 && !first[i].name[len])
            return first[i].number;
    return 0;
}

static uint64_t disk_number(aq_tracer *t, const char *name, uint64_t dev, uint64_t ino)
{
    if (strcmp(name, "/") == 0)
        return 2;
    if (dev == t->disk->root)
        return ROOT_FIRST + ino;
    return dev == t->disk->space ? SPACE_FIRST + ino : host_number(t, dev, ino);
}

uint64_t aq_disk_inode(aq_tracer *t, const char *name, uint64_t dev, uint64_t ino)
{
    const aq_place *p = aq_disk_place(name);
    uint64_t number;

    if (!p) {
        number = aq_disk_namespace(name);
        return number ? number : aq_disk_anonymous(t, ino, NULL);
    }
    switch (p->kind) {
    case AQ_PLACE_PROC:
        return proc_number(t->disk, name);
    case AQ_PLACE_DEVICES:
        return device_number(t, name);
    case AQ_PLACE_MEMORY:
    case AQ_PLACE_SYS:
    case AQ_PLACE_OTHER_DISK:
        if (strcmp(name, p->path) == 0)
            return 1;
        if (dev == t->disk->root || dev == t->disk->space)
            return ino;
        return host_number(t, dev, ino) - HOST_FIRST + SMALL_FIRST;
    case AQ_PLACE_TERMINALS:
        return ino;
    default:
        return disk_number(t, name, dev, ino);
    }
}
