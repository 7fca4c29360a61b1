/* Laying the cable of a world; see net.h. */
#include "sandbox/net.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>

#include "internet/ports.h"
#include "kernel/network.h"
#include "model/reserved.h"
#include "sandbox/attend.h"

enum { MTU = 1500, ENDS = 3, SSH = 22 };

/* ---- what the machine's facts say ---- */

/* The address that a device gives itself: its MAC in the middle of a fixed pattern. */
static aq_net_range link_local(const uint8_t mac[static 6])
{
    aq_net_range r = {.address = {0xfe, 0x80, [8] = (uint8_t)(mac[0] ^ 2), mac[1], mac[2], 0xff,
                                  0xfe, mac[3], mac[4], mac[5]},
                      .prefix = 64,
                      .six = true};

    return r;
}

/* Both ends of one network: the machine's address, and its gateway with the same prefix. */
static bool add_end(const aq_machine *m, const char *own, const char *gateway, aq_net_range *near,
                    aq_net_range *far)
{
    const char *a = aq_machine_fact(m, own), *g = aq_machine_fact(m, gateway);

    if (!a || !g || aq_net_range_parse(a, near) < 0 || aq_net_range_parse(g, far) < 0 ||
        near->six != far->six)
        return false;
    far->prefix = near->prefix;
    return true;
}

static bool same(const aq_net_range *a, const aq_net_range *b)
{
    return a->six == b->six && memcmp(a->address, b->address, a->six ? 16 : 4) == 0;
}

/* ---- knobs ---- */

typedef struct knob {
    const char *name, *value;
} knob;

/* Buffers of one size, whole segments, no memory of earlier connections: then how a stream is cut
 * into reads follows from what both sides do, not from how fast they were. Nothing of this shows in
 * the near namespace but the sizes. */
static const knob both[] = {
    {"ipv4/tcp_moderate_rcvbuf", "0"},
    {"ipv4/tcp_rmem", "4096 131072 131072"},
    {"ipv4/tcp_wmem", "4096 65536 65536"},
    {"ipv4/tcp_min_tso_segs", "44"},
    {"ipv4/tcp_no_metrics_save", "1"},
    {"ipv4/tcp_congestion_control", "reno"},
    {"ipv4/tcp_congestion_control", "cubic"}, /* where the host lets its worlds have it */
    {NULL, NULL}};

/* The far end answers for every host: it says what cannot be reached as often as it is asked, and
 * looks as if some routers lay between. */
static const knob far_only[] = {{"ipv4/ip_forward", "1"},       {"ipv6/conf/all/forwarding", "1"},
                                {"ipv4/icmp_ratelimit", "0"},   {"ipv6/icmp/ratelimit", "0"},
                                {"ipv4/tcp_timestamps", "0"},   {"ipv4/tcp_ecn", "0"},
                                {"ipv4/ip_default_ttl", "53"},  {"ipv6/conf/all/hop_limit", "53"},
                                {"ipv6/ip_nonlocal_bind", "1"}, {NULL, NULL}};

/* Nobody announces routes here, and as on Debian everybody may ping. */
static const knob near_only[] = {
    {"ipv6/conf/eth0/accept_ra", "0"}, {"ipv6/conf/eth0/router_solicitations", "0"}, {NULL, NULL}};

/* Where /proc/sys is closed they cannot be set; the network works, and repeats itself less well. */
static void set_knobs(const knob *k)
{
    for (; k->name; k++)
        aq_network_set(k->name, k->value);
}

/* ---- neighbours ---- */

/* Who the machine has spoken with: its router, and the host from where its user logged in. */
static size_t add_neighbours(const aq_machine *m, const aq_cable *c, aq_neighbour *all)
{
    const char *client = aq_machine_fact(m, "net.client"),
               *mac = aq_machine_fact(m, "net.client_mac");
    size_t n = 0;

    for (size_t i = 0; i < c->count; i++) {
        if (c->gateway[i].six && c->gateway[i].address[0] != 0xfe)
            continue; /* routers of IPv6 are known by the address of their link */
        all[n] = (aq_neighbour){.address = c->gateway[i], .router = true};
        memcpy(all[n++].mac, c->far_mac, sizeof c->far_mac);
    }
    if (client && mac && aq_net_range_parse(client, &all[n].address) == 0 &&
        aq_mac_parse(mac, all[n].mac) == 0)
        all[n++].router = false;
    return n;
}

/* The session that the program was started from, as the environment has it. */
static int open_session(const aq_machine *m, aq_err *err)
{
    const char *own = aq_machine_fact(m, "net.address"), *other = aq_machine_fact(m, "net.client");
    aq_net_place here = {.port = SSH}, there;

    there.port = (uint16_t)aq_machine_number(m, "net.client_port", 0);
    if (!own || !other || there.port == 0 || aq_net_range_parse(own, &here.address) < 0 ||
        aq_net_range_parse(other, &there.address) < 0 || here.address.six || there.address.six)
        return aq_fail(err, -ENOENT, "the machine's facts describe no session");
    return aq_network_session(&here, &there, err);
}

/* ---- the cable ---- */

static int lay(const aq_machine *m, int network, aq_err *err)
{
    const char *mac = aq_machine_fact(m, "net.mac"), *other = aq_machine_fact(m, "net.gateway_mac");
    const char *name = aq_machine_fact(m, "net.interface");
    aq_net_range near[ENDS], far[ENDS], open[AQ_REACHABLE], though[AQ_REACHABLE];
    aq_cable c = {.mtu = MTU, .name = name ? name : "eth0", .near = near, .gateway = far};
    size_t reachable = aq_reserved_though(m, open);
    aq_neighbour neighbours[ENDS + 1];

    if (!mac || aq_mac_parse(mac, c.mac) < 0 ||
        !add_end(m, "net.address", "net.gateway", &near[0], &far[0]))
        return aq_fail(err, -EINVAL, "the machine's facts describe no network");
    if (!other || aq_mac_parse(other, c.far_mac) < 0)
        memcpy(c.far_mac, c.mac, sizeof c.far_mac), c.far_mac[5] ^= 1;
    c.count = 1;
    near[c.count] = link_local(c.mac);
    if (aq_net_range_parse("fe80::1/64", &far[c.count]) == 0)
        c.count++;
    if (add_end(m, "net.address6", "net.gateway6", &near[c.count], &far[c.count]))
        c.count++;
    c.nowhere = aq_reserved(&c.nowhere_count);
    c.though = though;
    for (size_t i = 0; i < reachable; i++)
        if (!same(&open[i], &near[0]) && !same(&open[i], &far[0]))
            though[c.though_count++] = open[i];
    c.neighbours = neighbours;
    c.neighbour_count = add_neighbours(m, &c, neighbours);
    return aq_network_cable(network, &c, err);
}

int aq_net_lay(const aq_machine *m, int network, int *sockets, aq_err *err)
{
    size_t count = aq_port_sockets();
    int r = lay(m, network, err), session;

    if (r < 0)
        return r;
    set_knobs(both); /* before the sockets, which take their sizes from there */
    set_knobs(far_only);
    if ((r = aq_ports_open(sockets, err)) < 0)
        return r;
    if (setns(network, CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "cannot enter the world's network");
    set_knobs(both);
    set_knobs(near_only);
    /* Groups that the world has: two, or where it is made of our own identity one. */
    if (aq_network_set("ipv4/ping_group_range", "0 1000") < 0)
        aq_network_set("ipv4/ping_group_range", "1000 1000");
    setfsuid(0); /* whose they are shows; where the world has no root the veil says so */
    if ((r = aq_listeners_open(sockets + count, err)) < 0)
        return r;
    count += aq_listener_sockets();
    session = open_session(m, NULL); /* a kernel that cannot do it shows one connection less */
    if (session >= 0)
        sockets[count++] = session;
    return (int)count;
}

/* ---- the keeper's side ---- */

int aq_net_reach(void *attendant, bool internet, aq_err *err)
{
    const aq_world *w = ((aq_attendant *)attendant)->world;
    aq_message m = {.word = internet ? AQ_WORD_INTERNET : AQ_WORD_CABLE};
    int r = aq_message_send(w->control, &m, NULL, 0, err);

    if (r < 0 || internet) /* who says hello on the line itself */
        return r;
    if ((r = aq_message_recv(w->line, &m, NULL, NULL, err)) < 0)
        return r;
    if (m.word == AQ_WORD_FAILED)
        return aq_message_error(&m, err);
    return m.word == AQ_WORD_CABLE ? 0 : aq_fail(err, -EPROTO, "the front said something else");
}

int aq_net_alone(void *attendant)
{
    const aq_message m = {.word = AQ_WORD_ALONE};

    return aq_message_send(((aq_attendant *)attendant)->world->control, &m, NULL, 0, NULL);
}
