/* What a program reaches: its machine's network, laid when it first wants one, and the internet
 * behind it.
 *
 * The internet is one more task of the world, in another process. It works only when we say so: at
 * the end of turns and whenever everybody waits, before the clock jumps. So what a program gets to
 * read, and when on its own clock, follows from what it did. It shares our processor; packets that
 * the kernel put off are where they belong after a look at any socket of ours (`settle`).
 *
 * What the internet says is as hostile as the program: it is read by one bounded reader
 * (internet/line.h), and only becomes events. How much it says in one step, and how often it is
 * busy while nobody gets on by that, has a bound: one that was taken over cannot hold us up. If it
 * fails, or cannot be had, everybody out there refuses, and the record says that it is not whole.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/stream.h"
#include "internet/line.h"
#include "internet/ports.h"
#include "kernel/process.h"
#include "model/reserved.h"
#include "observe/decode.h"
#include "observe/reach.h"

enum {
    PORTS = 65536,
    FIRST_PORT = 32768, /* as the kernel gives them out */
    LAST_PORT = 60999,
    PORT_TRIES = 256,
    PATIENCE_MS = 20000, /* of the wall clock, for one answer */
    STUCK_MS = 60000,    /* for all of them, while nobody in the world gets on */
    VAIN = 1 << 14,      /* steps, likewise */
    RECORDS = 1 << 16,   /* of one step: more than the sockets of a world hold */
    GONE_MS = 2000,      /* until it is dead, */
    CLOSE_US = 50000,    /* and all of it closed */
    LOOK_MS = 20,
    SETTLE = 3,
    FLOW = 64,      /* steps until nothing moves, at most */
    NEAR_US = 4000, /* what the way to a host and back takes, at least and at most */
    FAR_US = 38000,
    LINK_US = 350, /* to one of the own network */
};

/* Whose socket has this port. */
typedef struct owner {
    uint32_t process, thread;
} owner;

struct aq_reach {
    bool laid, started, failed;
    uint64_t step;
    uint64_t seen; /* t->activity when it was quiet */
    uint64_t wake; /* on our clock, when it wants a step; 0: never */
    uint64_t dropped;
    uint64_t way;     /* to the host that answered last in this step */
    uint64_t arrival; /* on our clock, when what it said is here */
    uint64_t reached; /* how far the world was when it last got on */
    uint32_t vain;    /* steps since then, */
    uint64_t stuck;   /* and milliseconds of the wall clock that they took */
    uint64_t begun;   /* the step, by that clock */
    aq_stream ports, ways;
    char packet[AQ_LINE_PACKET + 1];
    owner owners[PORTS];
};

static uint64_t wall_ms(void)
{
    struct timespec ts;

    aq_process_clock(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static struct aq_reach *reach_of(aq_tracer *t)
{
    if (!t->reach) {
        t->reach = aq_alloc(sizeof *t->reach);
        t->reach->ports = aq_stream_of(t->plan.machine->entropy, "net/ports");
        t->reach->ways = aq_stream_of(t->plan.machine->entropy, "net/ways");
    }
    return t->reach;
}

static bool has_network(const aq_tracer *t)
{
    return t->plan.machine && t->plan.reach;
}

/* Its sockets close with it: who was connected hears that now. */
static void end_it(aq_tracer *t)
{
    struct pollfd p = {.fd = t->plan.line};

    if (t->plan.alone(t->plan.arg) == 0)
        for (uint64_t until = wall_ms() + GONE_MS; poll(&p, 1, LOOK_MS) <= 0 && wall_ms() < until;)
            ;
    usleep(CLOSE_US); /* its line closes first, then the sockets */
}

/* It is given up; there is no other. */
static void fail(aq_tracer *t, const char *why)
{
    aq_task *k = t->running ? t->running : t->tasks;
    aq_event e = aq_event_of(AQ_EVENT_SYSCALL, "unseen");

    if (!t->reach->failed && k) {
        t->end.unseen++;
        aq_event_object(&e, k->proc->exe);
        aq_event_text(&e, "what", "internet");
        aq_event_text(&e, "why", why);
        aq_note(t, k, &e);
    }
    if (!t->reach->failed && t->reach->started)
        end_it(t);
    t->reach->failed = true;
}

void aq_reach_network(aq_tracer *t, aq_task *k)
{
    aq_err err = {0};

    (void)k;
    if (!has_network(t) || reach_of(t)->laid)
        return;
    t->reach->laid = true;
    if (t->plan.reach(t->plan.arg, false, &err) < 0)
        fail(t, err.text);
}

void aq_reach_look(aq_tracer *t, aq_task *k, const char *path)
{
    if (strncmp(path, "/proc", 5) == 0 && strstr(path, "/net"))
        aq_reach_network(t, k);
}

/* What is opened there later has short names. */
aq_step aq_try_chdir(aq_tracer *t, aq_task *k)
{
    aq_reach_look(t, k, aq_look_of(k)->path);
    return AQ_STEP_RUN;
}

/* ---- the line ---- */

/* One message, within the time that anything of ours may take. */
static bool hear(aq_tracer *t, aq_line_message *m)
{
    struct pollfd p = {.fd = t->plan.line, .events = POLLIN};
    uint64_t until = wall_ms() + PATIENCE_MS; /* our own ticks end a wait: looks do not count it */
    int n;

    while ((n = poll(&p, 1, LOOK_MS)) <= 0 && wall_ms() < until)
        ;
    return n > 0 && aq_line_receive(t->plan.line, t->reach->packet, m, NULL) == 1;
}

static void start(aq_tracer *t, aq_task *k)
{
    aq_line_message m;
    aq_err err = {0};

    aq_reach_network(t, k);
    if (t->reach->started || t->reach->failed)
        return;
    t->reach->started = true;
    if (t->plan.reach(t->plan.arg, true, &err) < 0)
        fail(t, err.text);
    else if (!hear(t, &m))
        fail(t, "it did not start");
    else if (m.type != AQ_LINE_HELLO)
        fail(t, m.type == AQ_LINE_FAILED ? m.failed.text : "it said something else than hello");
}

/* ---- ways ---- */

/* Addresses that are this machine itself. */
static bool is_own(const aq_tracer *t, const aq_net_range *a)
{
    static const char *const facts[] = {"net.address", "net.address6"};
    static const char *const rows[] = {"127.0.0.0/8", "0.0.0.0/32", "::1/128", "::/128"};
    aq_net_range r;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (aq_net_range_parse(rows[i], &r) == 0 && aq_net_range_holds(&r, a))
            return true;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *text = aq_machine_fact(t->plan.machine, facts[i]);

        if (text && aq_net_range_parse(text, &r) == 0) {
            r.prefix = r.six ? 128 : 32;
            if (aq_net_range_holds(&r, a))
                return true;
        }
    }
    return false;
}

/* Everybody on the link: the kernel itself refuses a connection with them. */
static bool is_everybody(const aq_tracer *t, const aq_net_range *a)
{
    const char *own = aq_machine_fact(t->plan.machine, "net.address");
    static const uint8_t all[4] = {0xff, 0xff, 0xff, 0xff};
    aq_net_range r;

    if (a->six)
        return false;
    if (memcmp(a->address, all, sizeof all) == 0)
        return true;
    if (!own || aq_net_range_parse(own, &r) < 0 || r.six || r.prefix > 30 ||
        !aq_net_range_holds(&r, a))
        return false;
    for (unsigned i = r.prefix; i < 32; i++)
        if (!(a->address[i / 8] >> (7 - i % 8) & 1))
            return false;
    return true;
}

/* What lies on the link itself. */
static bool is_near(const aq_tracer *t, const aq_net_range *a)
{
    const char *own = aq_machine_fact(t->plan.machine, a->six ? "net.address6" : "net.address");
    aq_net_range r;

    return (own && aq_net_range_parse(own, &r) == 0 && aq_net_range_holds(&r, a)) ||
           (a->six && a->address[0] == 0xfe);
}

/* The same for all hosts of one network (a /24, a /48), in every run of a world and in both worlds
 * of a seed; and no two packets take the same time. */
static uint64_t way_to(aq_tracer *t, const aq_net_range *a)
{
    struct aq_reach *w = reach_of(t);
    char name[AQ_STREAM_NAME];
    const uint8_t *b = a->address;
    uint64_t us = LINK_US;
    aq_stream s;

    if (is_own(t, a))
        return 0;
    if (!is_near(t, a)) {
        snprintf(name, sizeof name, "net/way:%d:%02x%02x%02x%02x%02x%02x", a->six, b[0], b[1], b[2],
                 a->six ? b[3] : 0, a->six ? b[4] : 0, a->six ? b[5] : 0);
        s = aq_stream_of(t->plan.machine->entropy, name);
        us = NEAR_US + aq_stream_below(&s, FAR_US - NEAR_US);
    }
    return us * 1000 + us * aq_stream_below(&w->ways, 64);
}

/* As records have them. */
static uint64_t way_to_end(aq_tracer *t, const aq_line_end *e)
{
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    aq_net_range a = {.six = memcmp(e->address, mapped, sizeof mapped) != 0};

    a.prefix = a.six ? 128 : 32;
    memcpy(a.address, e->address + (a.six ? 0 : sizeof mapped), a.six ? 16 : 4);
    return way_to(t, &a);
}

/* Does somebody say something because of that? Those who greet do when a connection comes. */
static bool is_answered(const aq_line_record *r)
{
    static const char *const silent[] = {"http", "https", "dns", "dot"};
    const char *service = "";

    if (strcmp(r->op, "peer-closed") == 0)
        return false;
    if (strcmp(r->op, "peer-connection") != 0)
        return true;
    for (uint8_t i = 0; i < r->arg_count; i++)
        if (r->args[i].bytes && strcmp(r->args[i].name, "service") == 0)
            service = r->args[i].bytes;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strncmp(service, silent[i], strlen(silent[i])) == 0)
            return false;
    return *service != '\0';
}

/* ---- records ---- */

static aq_proc *process_of(const aq_tracer *t, const aq_line_record *r, uint32_t *thread)
{
    const owner *o = &t->reach->owners[r->client.port];
    aq_proc *last = t->procs;

    *thread = 0;
    for (aq_proc *p = t->procs; p; p = p->next) {
        if (o->process && p->ordinal + 1 == o->process) {
            *thread = o->thread;
            return p;
        }
        if (!p->next)
            last = p; /* the oldest stands for those that are gone */
    }
    return last;
}

static void note_record(aq_tracer *t, const aq_line_record *r)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, r->op);
    char server[AQ_LINE_END_TEXT];
    uint32_t thread;
    aq_proc *p = process_of(t, r, &thread);

    if (!p)
        return;
    e.object = r->object;
    e.object_len = r->object_len;
    e.object_cut = r->object_cut;
    if (!r->object)
        aq_event_object(&e, aq_line_end_text(&r->server, server));
    for (uint8_t i = 0; i < r->arg_count; i++) {
        const aq_event_arg *a = &r->args[i];

        if (a->bytes)
            aq_event_bytes(&e, a->name, a->bytes, a->len, a->cut);
        else
            aq_event_number(&e, a->name, a->number);
    }
    e.result = r->result;
    aq_note_proc(t, p, thread, &e);
}

/* ---- steps ---- */

/* Packets of this processor that the kernel put off arrive when somebody lets go of a socket. */
static void settle(const aq_tracer *t)
{
    for (int i = 0; i < SETTLE; i++)
        setsockopt(t->plan.line, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int));
}

static void take_wake(aq_tracer *t, int64_t wake_ns)
{
    int64_t start = t->plan.machine->start_ns;

    t->reach->wake = wake_ns > start ? (uint64_t)(wake_ns - start) : 0;
}

/* Calls that were made, and bytes that calls have moved which are not over yet. */
static uint64_t how_far(const aq_tracer *t)
{
    uint64_t sum = t->end.calls;

    for (const aq_task *k = t->tasks; k; k = k->next)
        sum += k->done;
    return sum;
}

void aq_reach_got_on(aq_tracer *t)
{
    t->reach->vain = 0;
    t->reach->stuck = 0;
    t->reach->begun = wall_ms();
}

/* May it have another step? Not without end, while nobody does anything but wait for it. */
static bool may_step(aq_tracer *t)
{
    struct aq_reach *w = t->reach;
    uint64_t far = how_far(t);

    if (far != w->reached)
        aq_reach_got_on(t);
    w->reached = far;
    w->begun = wall_ms();
    return w->vain++ < VAIN;
}

/* It has read the last one, so there is room for the next. */
static bool ask(aq_tracer *t, const aq_line_message *m)
{
    struct pollfd p = {.fd = t->plan.line, .events = POLLOUT};

    return aq_io_poll(&p) == 1 && p.revents == POLLOUT && aq_line_send(t->plan.line, m, NULL) == 0;
}

/* What it says until it is done. NULL, or what is wrong with that. */
static const char *hear_step(aq_tracer *t, aq_line_message *m)
{
    struct aq_reach *w = t->reach;

    for (uint32_t i = 0;; i++) {
        if (!hear(t, m) || (m->type != AQ_LINE_RECORD && m->type != AQ_LINE_DONE) ||
            (m->type == AQ_LINE_DONE && m->done.number != w->step))
            return "it did not do its step";
        if (wall_ms() - w->begun + w->stuck > STUCK_MS)
            return "it took too long for its steps";
        if (m->type == AQ_LINE_DONE)
            return NULL;
        if (i == RECORDS)
            return "it told more than can have been said in one step";
        note_record(t, &m->record);
        if (is_answered(&m->record))
            w->way = way_to_end(t, &m->record.server);
    }
}

/* Everything that can be done now; true when something moved, if only because it ended. */
static bool step(aq_tracer *t)
{
    struct aq_reach *w = t->reach;
    aq_line_message m = {
        .type = AQ_LINE_STEP,
        .step = {.number = ++w->step, .now_ns = (int64_t)aq_clock_now(t, CLOCK_REALTIME)}};
    const char *wrong = NULL;

    settle(t);
    if (!may_step(t))
        wrong = "it is never done";
    else if (!ask(t, &m))
        wrong = "it is gone";
    else
        wrong = hear_step(t, &m);
    if (wrong) {
        fail(t, wrong);
        return true;
    }
    w->stuck += wall_ms() - w->begun;
    if (w->way && w->arrival < t->clock + w->way)
        w->arrival = t->clock + w->way;
    w->way = 0;
    settle(t);
    if (m.done.dropped > w->dropped && t->tasks)
        aq_unseen(t, t->tasks, "internet-records");
    w->dropped = m.done.dropped;
    take_wake(t, m.done.wake_ns);
    return m.done.moved > 0;
}

uint64_t aq_reach_next(const aq_tracer *t)
{
    return t->reach && t->reach->wake && !t->reach->failed ? t->reach->wake : UINT64_MAX;
}

void aq_reach_arrived(aq_tracer *t, uint64_t until)
{
    struct aq_reach *w = t->reach;

    if (!w || w->arrival <= t->clock)
        return;
    if (until == 0 || until > w->arrival)
        t->clock = w->arrival;
    else if (until > t->clock + 1)
        t->clock = until - 1;
    w->arrival = 0;
}

bool aq_reach_step(aq_tracer *t, uint64_t until)
{
    struct aq_reach *w = t->reach;

    if (!w || !w->started || w->failed)
        return false;
    if (w->seen == t->activity && !(w->wake && w->wake <= t->clock))
        return false;
    if (w->wake && w->wake <= t->clock)
        w->wake = 0;
    w->seen = t->activity;
    if (!step(t))
        return false;
    aq_reach_arrived(t, until); /* nobody's time runs out meanwhile */
    t->activity++;
    return true;
}

/* ---- streams ---- */

bool aq_reach_turn(aq_tracer *t)
{
    struct aq_reach *w = t->reach;

    if (w->failed || w->seen == t->activity)
        return false;
    w->seen = t->activity;
    if (!step(t))
        return false;
    t->activity++;
    return true;
}

bool aq_reach_is_out(const aq_tracer *t, const aq_fd *f)
{
    const struct aq_reach *w = t->reach;

    return w && w->started && !w->failed && f->kind == AQ_FD_SOCKET && f->stream && f->port &&
           (f->family == AF_INET || f->family == AF_INET6) &&
           ((strncmp(f->name, "127.", 4) != 0 && strncmp(f->name, "[::1]", 5) != 0) ||
            aq_listener_at(IPPROTO_TCP, f->port));
}

void aq_reach_ended(aq_tracer *t)
{
    if (t->reach && t->reach->started)
        for (int i = 0; i < FLOW && aq_reach_turn(t); i++)
            ;
}

bool aq_reach_flow(aq_tracer *t, const aq_fd *f)
{
    if (!aq_reach_is_out(t, f))
        return false;
    for (int i = 0; i < FLOW && aq_reach_turn(t); i++)
        ;
    return true;
}

/* ---- where a call goes to ---- */

static bool take_address(const struct sockaddr_storage *s, aq_net_range *ret)
{
    const struct in6_addr *six = &((const struct sockaddr_in6 *)s)->sin6_addr;

    *ret = (aq_net_range){0};
    if (s->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) {
        memcpy(ret->address, six->s6_addr + 12, 4);
        ret->prefix = 32;
    } else if (s->ss_family == AF_INET) {
        memcpy(ret->address, &((const struct sockaddr_in *)s)->sin_addr, 4);
        ret->prefix = 32;
    } else if (s->ss_family == AF_INET6) {
        memcpy(ret->address, six, 16);
        ret->prefix = 128;
        ret->six = true;
    } else {
        return false;
    }
    return true;
}

static uint16_t port_of(const struct sockaddr_storage *s)
{
    return ntohs(s->ss_family == AF_INET ? ((const struct sockaddr_in *)s)->sin_port
                                         : ((const struct sockaddr_in6 *)s)->sin6_port);
}

int aq_reach_address(aq_tracer *t, aq_task *k, const struct sockaddr_storage *s, bool stream)
{
    aq_net_range a;

    if (!has_network(t) || !take_address(s, &a))
        return 0;
    if (is_own(t, &a)) {
        if (!stream || !aq_listener_at(IPPROTO_TCP, port_of(s)))
            return 0;
        start(t, k); /* its services are the internet's work, too */
        return 1;
    }
    if (is_everybody(t, &a))
        return 0;
    if (aq_reserved_from(t->plan.machine, &a)) /* datagrams get their answer from the kernel */
        return !stream ? 0 : a.six ? -ENETUNREACH : -EHOSTUNREACH;
    start(t, k);
    return stream && t->reach->failed ? -ECONNREFUSED : 1;
}

uint64_t aq_reach_way(aq_tracer *t, const struct sockaddr_storage *s)
{
    aq_net_range a;

    return has_network(t) && take_address(s, &a) ? way_to(t, &a) : 0;
}

void aq_reach_called(aq_tracer *t, uint64_t way, bool waits)
{
    struct aq_reach *w = t->reach;

    if (!w || !w->started || way == 0)
        return;
    if (w->arrival < t->clock + way)
        w->arrival = t->clock + way;
    if (waits)
        aq_reach_arrived(t, 0);
}

void aq_reach_heard(aq_tracer *t, aq_task *k, long result)
{
    const aq_fd *f;

    if (!t->reach || t->reach->arrival <= t->clock || result == -EAGAIN)
        return;
    f = aq_fd_of(t, k, aq_arg_int(k, 0));
    if (f->kind == AQ_FD_SOCKET && !f->stream && (f->family == AF_INET || f->family == AF_INET6))
        aq_reach_arrived(t, k->timed ? k->deadline : 0);
}

/* ---- ports ---- */

static uint16_t *port_at(struct sockaddr_storage *s)
{
    return s->ss_family == AF_INET ? &((struct sockaddr_in *)s)->sin_port
                                   : &((struct sockaddr_in6 *)s)->sin6_port;
}

/* Those that connect get even ones, others odd ones, as the kernel would have it. */
static uint16_t draw_port(struct aq_reach *w, bool connects)
{
    uint32_t half = (LAST_PORT - FIRST_PORT + 1) / 2;

    return (uint16_t)(FIRST_PORT + 2 * aq_stream_below(&w->ports, half) + (connects ? 0 : 1));
}

int aq_reach_bind(aq_tracer *t, aq_task *k, int mine, struct sockaddr_storage *at, socklen_t len,
                  bool connects)
{
    struct aq_reach *w = reach_of(t);

    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t port = draw_port(w, connects);

        *port_at(at) = htons(port);
        if (bind(mine, (struct sockaddr *)at, len) == 0) {
            w->owners[port] = (owner){k->proc->ordinal + 1, k->ordinal};
            return 0;
        }
        if (errno != EADDRINUSE)
            return -errno;
    }
    return -EADDRINUSE;
}

/* The kernel would draw a port of its own for a socket that has none. */
void aq_reach_port(aq_tracer *t, aq_task *k, int mine, bool connects)
{
    struct sockaddr_storage s = {0};
    socklen_t len = sizeof s;

    if (!has_network(t) || mine < 0 || getsockname(mine, (struct sockaddr *)&s, &len) != 0 ||
        (s.ss_family != AF_INET && s.ss_family != AF_INET6) || *port_at(&s) != 0)
        return;
    aq_reach_bind(t, k, mine, &s, len, connects);
}

/* A port that the program chose itself. */
void aq_reach_owns(aq_tracer *t, const aq_task *k, uint16_t port)
{
    if (has_network(t) && port)
        reach_of(t)->owners[port] = (owner){k->proc->ordinal + 1, k->ordinal};
}

void aq_reach_free(aq_tracer *t)
{
    free(t->reach);
    t->reach = NULL;
}
