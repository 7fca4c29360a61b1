/* The steps; see internal.h. Between two steps the process sleeps on its line. */
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internet/internal.h"
#include "internet/rules.h"

enum { BATCH = 256, TIDES = 100000, STEP_ROUNDS = 100000 };

static void end_of(const struct sockaddr_storage *from, aq_line_end *ret)
{
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;

    *ret = (aq_line_end){0};
    if (from->ss_family == AF_INET6) {
        memcpy(ret->address, &six->sin6_addr, 16);
        ret->port = ntohs(six->sin6_port);
    } else if (from->ss_family == AF_INET) {
        ret->address[10] = ret->address[11] = 0xff;
        memcpy(ret->address + 12, &four->sin_addr, 4);
        ret->port = ntohs(four->sin_port);
    }
}

static int option(int fd, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

/* What one of the descriptors is that we were given. */
static int add_socket(aq_net *net, int fd, aq_err *err)
{
    struct epoll_event e = {.events = EPOLLIN};
    struct sockaddr_storage at, peer;
    socklen_t len = sizeof at, peer_len = sizeof peer;
    int type = option(fd, SO_TYPE);
    aq_line_end end;

    if (type < 0)
        return 0; /* nothing of ours */
    if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        return aq_fail_errno(err, "cannot tell what socket %d is", fd);
    end_of(&at, &end);
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0) {
        if (type == SOCK_DGRAM)
            net->tide = fd;
        return 0; /* a stream: somebody's session, which only has to be there */
    }
    if (net->socket_count == AQ_NET_SOCKETS)
        return aq_fail(err, -E2BIG, "more than %d sockets were given", AQ_NET_SOCKETS);
    e.data.u64 = net->socket_count;
    net->sockets[net->socket_count++] = (struct aq_socket){
        .fd = fd,
        .protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP,
        .port = end.port,
    };
    if (epoll_ctl(net->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        return aq_fail_errno(err, "cannot watch socket %d", fd);
    return 0;
}

int aq_net_open(aq_net *net, const aq_internet_world *world, aq_err *err)
{
    const char *latency = aq_internet_fact(world, "net.latency_us");
    int r = 0;

    *net = (aq_net){.world = world, .line = AQ_LINE_FD, .tide = -1};
    net->latency_ns = latency ? strtol(latency, NULL, 10) % 1000000 * 1000 : 0;
    if ((r = aq_rules_builtin(&net->rules, err)) < 0)
        return r;
    if (world->ca_certificate && !(net->tls = aq_tls_maker_new(world, err)))
        return err->code;
    net->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (net->epoll < 0)
        return aq_fail_errno(err, "cannot make an epoll descriptor");
    for (int fd = AQ_LINE_SOCKETS; fd < AQ_LINE_SOCKETS + AQ_NET_SOCKETS && r == 0; fd++)
        if (fd != net->epoll)
            r = add_socket(net, fd, err);
    return r;
}

static void take_connections(aq_net *net, const struct aq_socket *s)
{
    for (;;) {
        struct sockaddr_storage from, at;
        socklen_t from_len = sizeof from, at_len = sizeof at;
        int fd = accept4(s->fd, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        aq_line_end client, server;

        if (fd < 0)
            return;
        net->moved++;
        if (net->open >= AQ_NET_CONNECTIONS ||
            getsockname(fd, (struct sockaddr *)&at, &at_len) < 0) {
            close(fd);
            net->flows++;
            net->dropped++;
            continue;
        }
        end_of(&from, &client);
        end_of(&at, &server);
        aq_conn_move(aq_conn_new(net, fd, &client, &server), true);
    }
}

static int by_order(const void *a, const void *b)
{
    const struct epoll_event *x = a, *y = b;
    bool sx = x->data.u64 < AQ_NET_SOCKETS, sy = y->data.u64 < AQ_NET_SOCKETS;
    uint64_t fx, fy;

    if (sx != sy)
        return sx ? -1 : 1;
    fx = sx ? x->data.u64 : ((const aq_conn *)x->data.ptr)->flow;
    fy = sy ? y->data.u64 : ((const aq_conn *)y->data.ptr)->flow;
    return fx < fy ? -1 : fx > fy;
}

/* Removes what died, in order. */
static void sweep(aq_net *net)
{
    aq_conn **at = &net->first, *last = NULL;

    while (*at) {
        aq_conn *c = *at;

        if (!c->dead) {
            last = c;
            at = &c->next;
            continue;
        }
        *at = c->next;
        net->open--;
        net->moved++;
        aq_conn_free(c);
    }
    net->last = last;
}

/* What is ready, in an order that does not depend on when it became so. */
static int round_of(aq_net *net)
{
    struct epoll_event ready[BATCH];
    int n = epoll_wait(net->epoll, ready, BATCH, 0);

    if (n <= 0)
        return 0;
    qsort(ready, (size_t)n, sizeof *ready, by_order);
    for (int i = 0; i < n; i++) {
        const struct aq_socket *s;

        if (ready[i].data.u64 >= AQ_NET_SOCKETS) {
            aq_conn *c = ready[i].data.ptr;

            aq_conn_move(c, ready[i].events & ~(uint32_t)EPOLLOUT);
            /* Closed on both sides, and still something to say: nobody will hear it. */
            if (c->ended && ready[i].events & (EPOLLERR | EPOLLHUP))
                aq_conn_drop(c, "reset");
            continue;
        }
        s = &net->sockets[ready[i].data.u64];
        if (s->protocol == IPPROTO_TCP)
            take_connections(net, s);
        else
            aq_net_datagrams(net, s);
    }
    sweep(net);
    return n;
}

/* Waits until all packets that are under way have arrived: they queue behind one another on this
 * CPU, so ours comes last. */
static void tide(aq_net *net)
{
    char mark = 0;

    if (net->tide < 0 || send(net->tide, &mark, 1, 0) != 1)
        return;
    for (int i = 0; i < TIDES && recv(net->tide, &mark, 1, 0) < 0 && errno == EAGAIN; i++)
        sched_yield();
}

/* What is due because of the time alone. */
static void by_time(aq_net *net)
{
    for (aq_conn *c = net->first; c; c = c->next) {
        if (c->deadline_ns <= net->now_ns) {
            if (c->closing)
                aq_conn_drop(c, "silence");
            else
                aq_conn_close(c, "silence");
            c->deadline_ns = net->now_ns + AQ_NET_IDLE * AQ_NET_NS;
            net->moved++;
            aq_conn_move(c, false);
        } else if (c->due_ns && aq_conn_waits(c)) {
            aq_conn_move(c, false);
        }
    }
    sweep(net);
}

static int64_t wake(const aq_net *net)
{
    int64_t first = 0;

    for (const aq_conn *c = net->first; c; c = c->next) {
        int64_t at = aq_conn_waits(c) && c->due_ns > net->now_ns ? c->due_ns : c->deadline_ns;

        if (first == 0 || at < first)
            first = at;
    }
    return first;
}

static int step(aq_net *net, const aq_line_step *s, aq_err *err)
{
    aq_line_message done = {.type = AQ_LINE_DONE};
    uint64_t still = 0; /* what had moved when the tide came last */

    net->now_ns = s->now_ns;
    net->moved = 0;
    tide(net);
    by_time(net);
    for (int i = 0; i < STEP_ROUNDS; i++) {
        uint64_t before = net->moved;

        if (round_of(net) > 0)
            continue;
        if (before == still)
            break; /* nothing of ours is under way since the last tide */
        tide(net);
        still = before;
    }
    done.done = (aq_line_done){.number = s->number,
                               .moved = net->moved,
                               .wake_ns = wake(net),
                               .open = net->open,
                               .dropped = net->dropped};
    return aq_line_send(net->line, &done, err);
}

int aq_net_serve(aq_net *net, aq_err *err)
{
    static char packet[AQ_LINE_PACKET + 1];
    aq_line_message m;
    uint64_t number = 0;
    int r;

    while ((r = aq_line_receive(net->line, packet, &m, err)) > 0) {
        if (m.type != AQ_LINE_STEP || m.step.number != ++number)
            return aq_fail(err, -EBADMSG, "the keeper asked for something else than step %llu",
                           (unsigned long long)number);
        if ((r = step(net, &m.step, err)) < 0)
            return r;
        if (net->failed)
            return aq_fail(err, -EPIPE, "the line to the keeper is gone");
    }
    return r;
}
