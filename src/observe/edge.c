/* Edges between threads: that one went on after, and because of, what another one did.
 *
 * An edge is an event of the thread that goes on: "after" names the one that let it. A futex names
 * whoever woke it, or the thread whose end it was joined to. What is given and taken names whoever
 * gave it: for each pipe, pair of sockets of one machine, queue, semaphore and eventfd we keep who
 * put in what still lies there, in order, and whoever takes it goes on after them. Whether it had
 * to wait does not matter, so another order of turns in which everybody hears from the same threads
 * has the same edges; and whoever waits for room hears from nobody. What a call gives and takes is
 * read in edge_ipc.c, locks are in edge_lock.c. Births, ends of processes and signals that are
 * handled have acts of their own that name both sides.
 *
 * The same edge again, with no other between, is no news. What is kept is bounded, and the bounds
 * depend on nothing but what the programs did. */
#include <stdlib.h>
#include <string.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum {
    WAYS = 128,      /* of all kinds, those used last */
    PIECES = 16,     /* of one of them; further ones count as the last giver's */
    PAIRS = 128,     /* of sockets that were made together */
    TOLD = 4096,     /* edges of one process */
    ALL_TOLD = 65536 /* of all together */
};

typedef struct piece {
    aq_actor by;
    uint64_t rank; /* which of several in one way; 0 where all are alike */
    uint64_t units;
} piece;

typedef struct way {
    aq_way of;
    uint64_t used; /* when */
    uint64_t owed; /* bytes that were read before their write had ended */
    piece pieces[PIECES];
    int count;
} way;

static const char *const names[] = {
    [AQ_WAY_PIPE] = "pipe",       [AQ_WAY_SOCKET] = "socket",       [AQ_WAY_EVENT] = "eventfd",
    [AQ_WAY_MESSAGE] = "message", [AQ_WAY_SEMAPHORE] = "semaphore", [AQ_WAY_ZERO] = "semaphore",
    [AQ_WAY_SIGNAL] = "signal",   [AQ_WAY_GONE] = "removed",
};

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

aq_actor aq_actor_of(const aq_task *k)
{
    return (aq_actor){k->proc->ordinal, k->ordinal};
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

/* ---- what is given and taken ---- */

static way *find(struct aq_edges *w, aq_way of)
{
    for (way *x = w->ways; x < w->ways + WAYS; x++)
        if (x->used && x->of.kind == of.kind && x->of.from == of.from && x->of.to == of.to) {
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

static way *found_or_made(struct aq_edges *w, aq_way of)
{
    way *x = find(w, of);

    return x ? x : make(w, of);
}

static bool same(aq_actor a, aq_actor b)
{
    return a.process == b.process && a.thread == b.thread;
}

void aq_edge_give(aq_tracer *t, aq_actor by, aq_way of, uint64_t rank, uint64_t units)
{
    way *x = found_or_made(edges_of(t), of);
    uint64_t paid = units < x->owed ? units : x->owed;
    const piece *last = x->count ? &x->pieces[x->count - 1] : NULL;

    x->owed -= paid;
    units -= paid;
    if (!units)
        return;
    if (!last || (x->count < PIECES && (!same(last->by, by) || last->rank != rank)))
        x->pieces[x->count++] = (piece){.by = by, .rank = rank};
    x->pieces[x->count - 1].units += units;
}

/* The first of that rank, or of the highest; NULL: there is none. */
static piece *next_of(way *x, uint64_t rank)
{
    piece *best = NULL;

    for (piece *p = x->pieces; p < x->pieces + x->count; p++)
        if (rank == AQ_RANK_HIGHEST ? !best || p->rank > best->rank : !best && p->rank == rank)
            best = p;
    return best;
}

uint64_t aq_edge_take(aq_tracer *t, aq_task *k, aq_way of, uint64_t rank, uint64_t units)
{
    way *x = found_or_made(edges_of(t), of);
    piece *p;

    while (units && (p = next_of(x, rank)) != NULL) {
        uint64_t some = units < p->units ? units : p->units;

        if (k)
            aq_edge(t, k, p->by.process, p->by.thread, names[of.kind]);
        units -= some;
        p->units -= some;
        if (!p->units) {
            x->count--;
            memmove(p, p + 1, sizeof *p * (size_t)(x->pieces + x->count - p));
        }
    }
    return units;
}

void aq_edge_mark(aq_tracer *t, aq_actor by, aq_way of)
{
    way *x = found_or_made(edges_of(t), of);

    x->count = 1;
    x->pieces[0] = (piece){.by = by, .units = 1};
}

bool aq_edge_marked(aq_tracer *t, aq_way of, aq_actor *ret)
{
    const way *x = find(edges_of(t), of);

    if (!x || !x->count)
        return false;
    *ret = x->pieces[0].by;
    return true;
}

void aq_edge_follow(aq_tracer *t, aq_task *k, aq_way of)
{
    aq_actor by;

    if (aq_edge_marked(t, of, &by))
        aq_edge(t, k, by.process, by.thread, names[of.kind]);
}

void aq_edge_forget(aq_tracer *t, aq_way_kind kind, uint64_t from)
{
    struct aq_edges *w = edges_of(t);

    for (way *x = w->ways; x < w->ways + WAYS; x++)
        if (x->used && x->of.kind == kind && x->of.from == from)
            *x = (way){0};
}

/* ---- bytes ---- */

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
        *ret = (aq_way){AQ_WAY_PIPE, f->dev, f->ino};
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
    *ret = write ? (aq_way){AQ_WAY_SOCKET, mine, other} : (aq_way){AQ_WAY_SOCKET, other, mine};
    return other != 0;
}

void aq_edge_bytes(aq_tracer *t, aq_task *k, const aq_fd *f, bool write, uint64_t bytes)
{
    struct aq_edges *w = edges_of(t);
    aq_way of;

    if (!way_of(w, f, write, &of) || (k->nr == AQ_NR_tee && !write)) /* which leaves them there */
        return;
    if (write)
        aq_edge_give(t, aq_actor_of(k), of, 0, bytes);
    else
        found_or_made(w, of)->owed += aq_edge_take(t, k, of, 0, bytes);
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
    aq_edge_ipc_free(t);
    aq_edge_lock_free(t);
}
