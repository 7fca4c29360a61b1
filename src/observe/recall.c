/* What paths meant before. Programs ask for the same places again and again (each folder on the way
 * to a library, each place where a header may lie), and in the host's part of the world nothing
 * changes: resolve.c keeps here what it found there.
 *
 * A path may get there by a link that lies elsewhere. Whatever could change such a link is a call
 * that stops here, and everything is forgotten then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { PLACES = 256, FOLDERS = 4, LONGEST = 1024 };

typedef struct place {
    uint64_t hash;
    aq_found found;
    bool asked; /* for what statx says */
    uint16_t name_at;
    struct statx what;
    char text[]; /* the path, its NUL, the name */
} place;

struct aq_recall {
    place *places[PLACES];
    bool any;
    struct {
        char *path;
        int fd;
    } folders[FOLDERS]; /* the next one to go is at `next` */
    unsigned next;
};

static struct aq_recall *recall_of(aq_tracer *t)
{
    if (!t->recall)
        t->recall = aq_alloc(sizeof *t->recall);
    return t->recall;
}

static uint64_t hash_of(const char *path, bool follow)
{
    uint64_t h = follow ? 0xcbf29ce484222325u : 0x84222325cbf29ce4u;

    for (; *path; path++)
        h = (h ^ (unsigned char)*path) * 0x100000001b3u;
    return h;
}

bool aq_recall(aq_tracer *t, const char *path, bool follow, char *ret, size_t cap,
               struct statx *what, aq_found *found)
{
    uint64_t hash = hash_of(path, follow);
    const place *p = t->recall ? t->recall->places[hash % PLACES] : NULL;

    if (!p || p->hash != hash || (what && !p->asked) || strcmp(p->text, path) != 0)
        return false;
    snprintf(ret, cap, "%s", p->text + p->name_at);
    *found = p->found == AQ_FOUND_WHAT && !what ? AQ_FOUND_NAME : p->found;
    if (*found == AQ_FOUND_WHAT)
        *what = p->what;
    return true;
}

void aq_recall_keep(aq_tracer *t, const char *path, bool follow, const char *name,
                    const struct statx *what, aq_found found)
{
    size_t path_len = strlen(path), name_len = strlen(name);
    uint64_t hash = hash_of(path, follow);
    place *p;

    if (path_len > LONGEST || name_len > LONGEST)
        return;
    p = aq_alloc(sizeof *p + path_len + name_len + 2);
    p->hash = hash;
    p->found = found;
    p->asked = what || found == AQ_FOUND_NOTHING;
    p->name_at = (uint16_t)(path_len + 1);
    if (found == AQ_FOUND_WHAT)
        p->what = *what;
    memcpy(p->text, path, path_len + 1);
    memcpy(p->text + p->name_at, name, name_len + 1);
    free(recall_of(t)->places[hash % PLACES]);
    t->recall->places[hash % PLACES] = p;
    t->recall->any = true;
}

int aq_recall_folder(const aq_tracer *t, const char *path, size_t len)
{
    for (size_t i = 0; t->recall && i < FOLDERS; i++) {
        const char *at = t->recall->folders[i].path;

        if (at && strncmp(at, path, len) == 0 && at[len] == '\0')
            return t->recall->folders[i].fd;
    }
    return -1;
}

void aq_recall_keep_folder(aq_tracer *t, const char *path, int fd)
{
    struct aq_recall *r = recall_of(t);
    unsigned i = r->next++ % FOLDERS;

    if (r->folders[i].path)
        close(r->folders[i].fd);
    free(r->folders[i].path);
    r->folders[i].path = aq_strdup(path);
    r->folders[i].fd = fd;
}

void aq_recall_free(aq_tracer *t)
{
    aq_recall_forget(t);
    for (size_t i = 0; t->recall && i < FOLDERS; i++) {
        if (t->recall->folders[i].path)
            close(t->recall->folders[i].fd);
        free(t->recall->folders[i].path);
    }
    free(t->recall);
}

void aq_recall_forget(aq_tracer *t)
{
    for (size_t i = 0; t->recall && t->recall->any && i < PLACES; i++) {
        free(t->recall->places[i]);
        t->recall->places[i] = NULL;
    }
    if (t->recall)
        t->recall->any = false;
}

void aq_recall_begin(aq_tracer *t, long nr)
{
    switch (nr) {
    case AQ_NR_rename:
    case AQ_NR_renameat:
    case AQ_NR_renameat2:
    case AQ_NR_mkdir:
    case AQ_NR_mkdirat:
    case AQ_NR_rmdir:
    case AQ_NR_link:
    case AQ_NR_linkat:
    case AQ_NR_unlink:
    case AQ_NR_unlinkat:
    case AQ_NR_symlink:
    case AQ_NR_symlinkat:
    case AQ_NR_chmod:
    case AQ_NR_fchmod:
    case AQ_NR_fchmodat:
    case AQ_NR_fchmodat2:
        aq_recall_forget(t);
        break;
    default:
        break;
    }
}
