/* Edges between threads: that one went on after, and because of, what another one did.
 *
 * An edge is an event of the thread that goes on: "after" names the one that let it. A futex names
 * whoever woke it, or the thread whose end it was joined to. Bytes name whoever wrote them: for
 * each pipe and each pair of sockets of one machine we keep who wrote what still lies in it, in
 * order, and whoever reads takes it out. Whether it had to wait for the bytes does not matter, so
 * another order of turns in which everybody hears from the same threads has the same edges. Births,
 * ends of processes and signals have acts of their own that name both sides.
 *
 * The same edge again, with no other between, is no news. What is kept is bounded, and the bounds
 * depend on nothing but what the programs did. */
#include <stdlib.h>
#include <string.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum {
    WAYS = 128,      /* pipes and directions of sockets, those used last */
    PIECES = 8,      /* of one of them; further ones count as the last writer's */
    PAIRS = 128,     /* of sockets that were made together */
    TOLD = 4096,     /* edges of one process */
    ALL_TOLD = 65536 /* of all together */
};

typedef struct writer {
    uint32_t process, thread;
} writer;

typedef struct piece {
    writer by;
    uint64_t bytes;
} piece;

/* One direction in which bytes go. */
typedef struct way {
    aq_way of;
    uint64_t used; /* when */
    uint64_t owed; /* bytes that were read before their write had ended */
    piece pieces[PIECES];
    int count;
} way;

struct aq_edges {
    uint64_t uses;
    uint32_t told, next_pair;
    way ways[WAYS];
    uint64_t pairs[PAIRS][2];
};

static struct aq_edges *edges_of(aq_tracer *t)
{
    if (!t->edges)
        t->edges = aq_alloc(sizeof *t->edges);
    return t->edges;
}

void aq_edge(aq_tracer *t, aq_task *k, uint32_t process, uint32_t thread, const char *how)
{
    struct aq_edges *w = edges_of(t);
    aq_event e = aq_event_of(AQ_EVENT_PROCESS, "after");

    if ((process == k->proc->ordinal && thread == k->ordinal) || t->end.stop != AQ_STOP_NONE)
        return;
    if (k->after_how == how && k->after[0] == process && k->after[1] == thread)
        return;
    k->after_how = how;
    k->after[0] = process;
    k->after[1] = thread;
    if (k->proc->edges >= TOLD || w->told >= ALL_TOLD)
        return;
    k->proc->edges++;
    w->told++;
    aq_event_text(&e, "how", how);
    aq_event_number(&e, "process", process);
    aq_event_number(&e, "thread", thread);
    aq_note_proc(t, k->proc, k->ordinal, &e);
}

/* ---- bytes ---- */

static way *find(struct aq_edges *w, aq_way of)
{
    for (way *x = w->ways; x < w->ways + WAYS; x++)
        if (x->used && x->of.from == of.from && x->of.to == of.to) {
            x->used = ++w->uses;
            return x;
        }
    return NULL;
}

/* In place of the one that was not used for longest. */
static way *make(struct aq_edges *w, aq_way of)
{
    way *oldest = w->ways;

    for (way *x = w->ways; x < w->ways + WAYS; x++)
        if (x->used < oldest->used)
            oldest = x;
    *oldest = (way){.of = of, .used = ++w->uses};
    return oldest;
}

static bool same(writer a, writer b)
{
    return a.process == b.process && a.thread == b.thread;
}

static void give(way *x, writer by, uint64_t bytes)
{
    uint64_t paid = bytes < x->owed ? bytes : x->owed;

    x->owed -= paid;
    bytes -= paid;
    if (!bytes)
        return;
    if (x->count < PIECES && (x->count == 0 || !same(x->pieces[x->count - 1].by, by)))
        x->pieces[x->count++] = (piece){.by = by};
    x->pieces[x->count - 1].bytes += bytes;
}

static void take(aq_tracer *t, aq_task *k, way *x, uint64_t bytes, const char *how)
{
    while (bytes && x->count) {
        piece *p = x->pieces;
        uint64_t some = bytes < p->bytes ? bytes : p->bytes;

        aq_edge(t, k, p->by.process, p->by.thread, how);
        bytes -= some;
        p->bytes -= some;
        if (!p->bytes)
            memmove(p, p + 1, sizeof *p * (size_t)--x->count);
    }
    x->owed += bytes;
}

/* The other one of two sockets that were made together; 0: it has none that we know. */
static uint64_t partner(const struct aq_edges *w, uint64_t ino)
{
    for (int i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++)
            if (ino && w->pairs[i][side] == ino)
                return w->pairs[i][!side];
    return 0;
}

static bool is_loopback(const aq_fd *f)
{
    return strncmp(f->name, "127.", 4) == 0 || strncmp(f->name, "[::1]", 5) == 0;
}

/* Which way these bytes go; false: to or from outside, or not known. */
static bool way_of(const struct aq_edges *w, const aq_fd *f, bool write, aq_way *ret)
{
    uint64_t mine, other;

    if (f->kind == AQ_FD_PIPE) {
        *ret = (aq_way){f->dev, f->ino};
        return true;
    }
    if (f->kind != AQ_FD_SOCKET || !f->name)
        return false;
    if (f->port && f->own_port && is_loopback(f)) {
        mine = UINT64_MAX - f->own_port;
        other = UINT64_MAX - f->port;
    } else {
        mine = f->ino;
        other = partner(w, f->ino);
    }
    *ret = write ? (aq_way){mine, other} : (aq_way){other, mine};
    return other != 0;
}

void aq_edge_bytes(aq_tracer *t, aq_task *k, const aq_fd *f, bool write, uint64_t bytes)
{
    struct aq_edges *w = edges_of(t);
    aq_way of;
    way *x;

    if (!way_of(w, f, write, &of) || (k->nr == AQ_NR_tee && !write)) /* which leaves them there */
        return;
    x = find(w, of);
    if (!x)
        x = make(w, of);
    if (write)
        give(x, (writer){k->proc->ordinal, k->ordinal}, bytes);
    else
        take(t, k, x, bytes, f->kind == AQ_FD_PIPE ? "pipe" : "socket");
}

void aq_edge_pair(aq_tracer *t, uint64_t one, uint64_t other)
{
    struct aq_edges *w = edges_of(t);
    uint64_t *row = w->pairs[w->next_pair++ % PAIRS];

    row[0] = one;
    row[1] = other;
}

void aq_edge_free(aq_tracer *t)
{
    free(t->edges);
    t->edges = NULL;
}
