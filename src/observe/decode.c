/* Calls become events: shapes, paths, and the little builders that all decoders use.
 *
 * A shape says what the arguments of a call are, one word each (decode.h has the words). Paths are
 * read and resolved in `look`, when everything stands still and the call has not run; descriptors
 * are named in `note`, numbers come from the registers of the entry, which the task cannot change.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "observe/decode.h"

enum { ARGS = 6, NAME = 16 };

const aq_op aq_ops[] = {
#define AQ_OP(kind, op, limit, what) {AQ_EVENT_##kind, op, limit, what},
#include "observe/ops.def"
#undef AQ_OP
};
const size_t aq_op_count = sizeof aq_ops / sizeof *aq_ops;

aq_look *aq_look_of(aq_task *k)
{
    if (!k->look)
        k->look = aq_alloc(sizeof *k->look);
    return k->look;
}

/* ---- building events ---- */

aq_event aq_event_of(aq_event_kind kind, const char *op)
{
    return (aq_event){.kind = kind, .op = op};
}

void aq_event_number(aq_event *e, const char *name, int64_t value)
{
    if (e->arg_count < AQ_EVENT_ARGS)
        e->args[e->arg_count++] = (aq_event_arg){.name = name, .number = value};
}

void aq_event_bytes(aq_event *e, const char *name, const char *bytes, size_t len, bool cut)
{
    if (e->arg_count == AQ_EVENT_ARGS)
        return;
    if (len > AQ_EVENT_TEXT) {
        len = AQ_EVENT_TEXT;
        cut = true;
    }
    e->args[e->arg_count++] = (aq_event_arg){.name = name, .bytes = bytes, .len = len, .cut = cut};
}

void aq_event_text(aq_event *e, const char *name, const char *text)
{
    aq_event_bytes(e, name, text, strlen(text), false);
}

void aq_event_object(aq_event *e, const char *object)
{
    size_t len = object ? strlen(object) : 0;

    e->object = object;
    e->object_cut = len > AQ_EVENT_TEXT;
    e->object_len = e->object_cut ? AQ_EVENT_TEXT : len;
}

void aq_note_proc(aq_tracer *t, aq_proc *p, uint32_t thread, aq_event *e)
{
    e->time = t->clock;
    e->process = p->ordinal;
    e->thread = thread;
    if (aq_flood_passes(t, p, e))
        aq_recorder_event(t->rec, e);
}

void aq_note(aq_tracer *t, aq_task *k, aq_event *e)
{
    if (!e->rule)
        e->rule = k->rule;
    aq_note_proc(t, k->proc, k->ordinal, e);
}

void aq_unseen(aq_tracer *t, aq_task *k, const char *what)
{
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "unseen");

    t->end.unseen++;
    aq_event_object(&e, k->proc->exe);
    aq_event_text(&e, "what", what);
    aq_note(t, k, &e);
}

void aq_preempted(aq_tracer *t, aq_task *k, const char *why)
{
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "preempted");

    t->end.preempted = true;
    aq_event_object(&e, k->proc->exe);
    aq_event_text(&e, "why", why);
    aq_note_proc(t, k->proc, k->ordinal, &e);
}

void aq_switched(aq_tracer *t, aq_task *k, const aq_switch *at, bool planned)
{
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, planned ? "switched" : "preempted");

    t->end.preempted |= !planned;
    aq_event_object(&e, k->proc->exe);
    if (!planned)
        aq_event_text(&e, "why", "computing");
    if (at) {
        aq_event_number(&e, "call", (int64_t)at->call);
        aq_event_number(&e, "at", (int64_t)at->at);
        aq_event_number(&e, "hits", at->hits);
        aq_event_number(&e, "jump", at->jump);
    }
    aq_note_proc(t, k->proc, k->ordinal, &e);
}

/* ---- paths ---- */

/* A bad pointer is the task's own fault. Memory that we may not read at all (it made itself
 * undumpable, and we have no right over its user namespace) would leave us blind without anybody
 * noticing. */
static void say_unseen(aq_tracer *t, aq_task *k)
{
    char c;

    if (aq_tracee_read(k, k->in.rsp, &c, 1) == -EPERM)
        aq_unseen(t, k, "memory");
}

static bool read_text(aq_tracer *t, aq_task *k, uint64_t at, char *ret, size_t cap, size_t *len,
                      bool *cut)
{
    ssize_t n = at ? aq_tracee_string(k, at, ret, cap, cut) : -1;

    if (n < 0)
        *ret = '\0';
    if (n < 0 && at)
        say_unseen(t, k);
    *len = n < 0 ? 0 : (size_t)n;
    *cut = n < 0 ? false : *cut;
    return n >= 0;
}

void aq_look_read_path(aq_tracer *t, aq_task *k, int dir, uint64_t at)
{
    aq_look *l = aq_look_of(k);

    l->dir = dir;
    l->path_read = read_text(t, k, at, l->path, sizeof l->path, &l->path_len, &l->path_cut);
    l->name[0] = '\0';
    l->seen = l->gone = false;
}

void aq_look_path(aq_tracer *t, aq_task *k, int dir, uint64_t at, bool follow)
{
    aq_look *l = aq_look_of(k);

    aq_look_read_path(t, k, dir, at);
    /* Without a path some calls mean the descriptor itself; a bad pointer means nothing. */
    if (l->path_read || (!at && dir != AT_FDCWD))
        aq_look_found(l, aq_resolve(t, k, dir, l->path, follow, l->name, sizeof l->name));
}

void aq_look_found(aq_look *l, aq_found found)
{
    l->seen = found == AQ_FOUND_WHAT;
    l->gone = found == AQ_FOUND_NOTHING && l->path_read && !l->path_cut;
}

/* The kernel would find no more than we did. */
bool aq_look_gone(const aq_task *k)
{
    return k->look && k->look->gone && !k->alias;
}

void aq_look_other(aq_tracer *t, aq_task *k, int dir, uint64_t at, bool follow)
{
    aq_look *l = aq_look_of(k);

    l->other_dir = dir;
    l->other_name[0] = '\0';
    if (read_text(t, k, at, l->other, sizeof l->other, &l->other_len, &l->other_cut))
        aq_resolve(t, k, dir, l->other, follow, l->other_name, sizeof l->other_name);
}

void aq_event_path(const aq_look *l, aq_event *e)
{
    aq_event_object(e, l->name);
    if (strcmp(l->name, l->path) != 0)
        aq_event_bytes(e, "given", l->path, l->path_len, l->path_cut);
}

/* ---- shapes ---- */

typedef struct word {
    char type;
    char name[NAME];
} word;

/* Reads the shape once more for each call: a dozen bytes, cheaper than remembering it. */
static int words_of(const char *shape, word words[ARGS])
{
    int n = 0;

    for (const char *p = shape; p && *p && n < ARGS; n++) {
        size_t len = 0;

        words[n] = (word){.type = *p++};
        if (*p == ':')
            for (p++; *p && *p != ' '; p++)
                if (len < NAME - 1)
                    words[n].name[len++] = *p;
        while (*p == ' ')
            p++;
    }
    return n;
}

static bool follows(const aq_task *k, const word *words, int n, int path)
{
    bool follow = words[path].type == 'p';

    for (int i = path + 1; i < n; i++) {
        if (words[i].type != 'F')
            continue;
        if (aq_arg_int(k, i) & AT_SYMLINK_NOFOLLOW)
            follow = false;
        if (aq_arg_int(k, i) & AT_SYMLINK_FOLLOW)
            follow = true;
    }
    return follow;
}

void aq_shape_look(aq_tracer *t, aq_task *k)
{
    word words[ARGS];
    int n = words_of(k->row->decoder->shape, words), dir = AT_FDCWD, paths = 0;
    aq_look *l = aq_look_of(k);

    l->quiet = false;
    l->bytes_len = l->other_len = 0;
    for (int i = 0; i < n; i++) {
        uint64_t at = aq_regs_arg(k, i);
        struct timespec ts;
        size_t len;
        bool cut;

        switch (words[i].type) {
        case 'd':
            dir = (int32_t)at;
            continue;
        case 'p':
        case 'l':
            /* Where two paths stand, flags are about the first. */
            if (paths++ == 0)
                aq_look_path(t, k, dir, at, follows(k, words, n, i));
            else
                aq_look_other(t, k, dir, at, words[i].type == 'p');
            dir = AT_FDCWD;
            continue;
        case 's': /* texts, one behind the other, each with its NUL */
            if (l->bytes_len + 1 < sizeof l->bytes) {
                read_text(t, k, at, l->bytes + l->bytes_len, sizeof l->bytes - l->bytes_len, &len,
                          &cut);
                l->bytes_len += len + 1;
            }
            continue;
        case 't':
            l->number[0] = at && aq_tracee_get(k, at, &ts, sizeof ts)
                               ? (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec
                               : 0;
            continue;
        default:
            continue;
        }
    }
    if (t->disk)
        aq_large_moves(t, k);
}

/* The texts that look kept, in order. */
static void put_text(const aq_look *l, size_t *at, aq_event *e, const char *name)
{
    size_t len;

    if (*at >= l->bytes_len)
        return;
    len = strnlen(l->bytes + *at, l->bytes_len - *at);
    aq_event_bytes(e, name, l->bytes + *at, len, false);
    *at += len + 1;
}

/* Names of arguments must outlive the event until it is written: they live in the shape itself, but
 * are not terminated there. So each known name is one constant. */
static const char *constant(const char *name)
{
    static const char *const names[] = {
#define AQ_ARG_NAME(name) name,
#include "observe/arg_names.def"
#undef AQ_ARG_NAME
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return names[i];
    aq_panic("no argument name \"%s\" in arg_names.def", name);
}

static void put_descriptor(aq_tracer *t, aq_task *k, aq_event *e, const word *w, int fd)
{
    const aq_fd *f = aq_fd_of(t, k, fd);
    const char *text = f->name ? f->name : "closed";

    if (*w->name)
        aq_event_text(e, constant(w->name), text);
    else
        aq_event_object(e, text);
}

void aq_shape_fill(aq_tracer *t, aq_task *k, aq_event *e)
{
    word words[ARGS];
    int n = words_of(k->row->decoder->shape, words), paths = 0;
    const aq_look *l = aq_look_of(k);
    size_t text = 0;

    for (int i = 0; i < n; i++) {
        const char *name = *words[i].name ? constant(words[i].name) : NULL;

        switch (words[i].type) {
        case 'p':
        case 'l':
            if (paths++ == 0)
                aq_event_path(l, e);
            else
                aq_event_text(e, name ? name : "to", l->other_name);
            break;
        case 'f':
            put_descriptor(t, k, e, &words[i], aq_arg_int(k, i));
            break;
        case 'i':
        case 'F':
            aq_event_number(e, name ? name : "flags", aq_arg_int(k, i));
            break;
        case 'u':
            aq_event_number(e, name, (uint32_t)aq_regs_arg(k, i));
            break;
        case 'n':
            aq_event_number(e, name, aq_arg_long(k, i));
            break;
        case 's':
            put_text(l, &text, e, name);
            break;
        case 't':
            aq_event_number(e, name, (int64_t)l->number[0]);
            break;
        default:
            break;
        }
    }
}

void aq_shape_note(aq_tracer *t, aq_task *k, long result)
{
    const aq_decoder *d = k->row->decoder;
    aq_event e = aq_event_of(d->kind, d->op);

    if (aq_look_of(k)->quiet)
        return;
    aq_shape_fill(t, k, &e);
    e.result = result;
    aq_note(t, k, &e);
}
