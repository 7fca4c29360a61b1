/* Devices, addresses and routes; see network.h. */
#include "kernel/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    LOOPBACK = 1,
    DEVICE = 2,
    FAR = 3, /* another number: then the kernel tells at once that a cable is plugged in */
    REQUEST = 320,
    REQUESTS = 96,
    WINDOW = 64,
    SEGMENT = 1460, /* bytes, of the session's other end */
    PLUG_US = 50,
    PLUG_LOOKS = 20000,
};
#define FAR_NAME "eth0"

/* All requests go in one datagram: the kernel answers each, and few reads collect the answers. */
typedef struct batch {
    _Alignas(struct nlmsghdr) unsigned char data[REQUESTS * REQUEST];
    const char *what[REQUESTS];
    size_t len;
    uint32_t count;
    bool full; /* one more than fits was asked for */
} batch;

static struct nlmsghdr *begin(batch *b, const char *what, uint16_t type, uint16_t flags,
                              const void *body, size_t len)
{
    struct nlmsghdr *h;

    if (b->count == REQUESTS || b->len + REQUEST > sizeof b->data) {
        b->full = true; /* all is written over, and nothing sent */
        b->count = 0;
        b->len = 0;
    }
    h = (struct nlmsghdr *)(void *)(b->data + b->len);
    *h = (struct nlmsghdr){.nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
                           .nlmsg_type = type,
                           .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags),
                           .nlmsg_seq = b->count};
    b->what[b->count++] = what;
    memcpy(NLMSG_DATA(h), body, len);
    return h;
}

static struct rtattr *attribute(struct nlmsghdr *h, uint16_t type, const void *value, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((unsigned char *)h + NLMSG_ALIGN(h->nlmsg_len));

    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(len);
    if (len > 0)
        memcpy(RTA_DATA(a), value, len);
    h->nlmsg_len = (uint32_t)(NLMSG_ALIGN(h->nlmsg_len) + RTA_ALIGN(a->rta_len));
    return a;
}

/* An attribute of attributes: begun, then closed when all are in it. */
static struct rtattr *nest(struct nlmsghdr *h, uint16_t type)
{
    return attribute(h, (uint16_t)(type | NLA_F_NESTED), NULL, 0);
}

static void close_nest(const struct nlmsghdr *h, struct rtattr *a)
{
    a->rta_len = (uint16_t)((const unsigned char *)h + h->nlmsg_len - (unsigned char *)a);
}

static void end(batch *b, const struct nlmsghdr *h)
{
    b->len += NLMSG_ALIGN(h->nlmsg_len);
}

static void number(struct nlmsghdr *h, uint16_t type, uint32_t value)
{
    attribute(h, type, &value, sizeof value);
}

/* ---- requests ---- */

static void link_up(batch *b, int device)
{
    struct ifinfomsg m = {.ifi_index = device, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

    end(b, begin(b, "turn on a network device", RTM_NEWLINK, 0, &m, sizeof m));
}

/* The kernel gives every device an address of its own, when it likes; we give one ourselves. */
static void no_own_address(batch *b, int device)
{
    static const uint8_t none = IN6_ADDR_GEN_MODE_NONE;
    struct ifinfomsg m = {.ifi_index = device};
    struct nlmsghdr *h =
        begin(b, "keep a network device from naming itself", RTM_NEWLINK, 0, &m, sizeof m);
    struct rtattr *spec = nest(h, IFLA_AF_SPEC), *six = nest(h, AF_INET6);

    attribute(h, IFLA_INET6_ADDR_GEN_MODE, &none, sizeof none);
    close_nest(h, six);
    close_nest(h, spec);
    end(b, h);
}

static void add_address(batch *b, int device, const aq_net_range *r)
{
    struct ifaddrmsg m = {.ifa_family = r->six ? AF_INET6 : AF_INET,
                          .ifa_prefixlen = r->prefix,
                          .ifa_flags = r->six ? IFA_F_NODAD : 0,
                          .ifa_index = (uint32_t)device};
    struct nlmsghdr *h = begin(b, "give a network device an address", RTM_NEWADDR,
                               NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);

    attribute(h, IFA_LOCAL, r->address, r->six ? 16 : 4);
    attribute(h, IFA_ADDRESS, r->address, r->six ? 16 : 4);
    if (!r->six && device != LOOPBACK && r->prefix < 31) {
        uint32_t host = UINT32_MAX >> r->prefix, all;
        memcpy(&all, r->address, sizeof all);
        all |= htonl(host);
        attribute(h, IFA_BROADCAST, &all, sizeof all);
    }
    end(b, h);
}

/* Nobody waits for an acknowledgement, and the first bytes of a connection go in one piece: what a
 * program sees must not depend on how long our own parts took. */
static void at_once(struct nlmsghdr *h)
{
    struct rtattr *metrics = nest(h, RTA_METRICS);

    number(h, RTAX_QUICKACK, 1);
    number(h, RTAX_INITCWND, WINDOW);
    close_nest(h, metrics);
}

/* `to` NULL: everything. */
static struct nlmsghdr *begin_route(batch *b, const aq_net_range *to, bool six, uint8_t table,
                                    uint8_t type)
{
    struct rtmsg m = {.rtm_family = six ? AF_INET6 : AF_INET,
                      .rtm_dst_len = to ? to->prefix : 0,
                      .rtm_table = table,
                      .rtm_protocol = RTPROT_BOOT,
                      .rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
                      .rtm_type = type};
    struct nlmsghdr *h =
        begin(b, "add a route", RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &m, sizeof m);

    if (to)
        attribute(h, RTA_DST, to->address, six ? 16 : 4);
    return h;
}

static void route_out(batch *b, const aq_net_range *gateway)
{
    struct nlmsghdr *h = begin_route(b, NULL, gateway->six, RT_TABLE_MAIN, RTN_UNICAST);

    attribute(h, RTA_GATEWAY, gateway->address, gateway->six ? 16 : 4);
    number(h, RTA_OIF, DEVICE);
    at_once(h);
    end(b, h);
}

/* Every destination is this host. With `source` a socket does not show the destination as its own
 * address. */
static void route_here(batch *b, bool six, const uint32_t *source)
{
    struct nlmsghdr *h = begin_route(b, NULL, six, RT_TABLE_LOCAL, RTN_LOCAL);

    number(h, RTA_OIF, LOOPBACK);
    if (source)
        attribute(h, RTA_PREFSRC, source, sizeof *source);
    end(b, h);
}

/* In the first table that is asked, where the rest is the host itself. */
static void route_near(batch *b, const aq_net_range *near)
{
    aq_net_range one = *near;
    struct nlmsghdr *h;

    one.prefix = near->six ? 128 : 32;
    h = begin_route(b, &one, near->six, RT_TABLE_LOCAL, RTN_UNICAST);
    number(h, RTA_OIF, FAR);
    at_once(h);
    end(b, h);
}

static void route_nowhere(batch *b, const aq_net_range *to)
{
    struct nlmsghdr *h = begin_route(b, to, to->six, RT_TABLE_LOCAL, RTN_UNREACHABLE);

    if (to->six)
        number(h, RTA_OIF, LOOPBACK);
    end(b, h);
}

static void route_though(batch *b, const aq_net_range *to)
{
    struct nlmsghdr *h = begin_route(b, to, to->six, RT_TABLE_LOCAL, RTN_LOCAL);

    number(h, RTA_OIF, LOOPBACK);
    end(b, h);
}

/* Where it would have to ask, the kernel depends on groups that its own threads join some time
 * after a device is up, and asks again only after a second of its own. */
static void know(batch *b, int device, const aq_neighbour *n)
{
    struct ndmsg m = {.ndm_family = n->address.six ? AF_INET6 : AF_INET,
                      .ndm_ifindex = device,
                      .ndm_state = NUD_PERMANENT,
                      .ndm_flags = n->router && n->address.six ? NTF_ROUTER : 0};
    struct nlmsghdr *h = begin(b, "make a neighbour known", RTM_NEWNEIGH,
                               NLM_F_CREATE | NLM_F_REPLACE, &m, sizeof m);

    attribute(h, NDA_DST, n->address.address, n->address.six ? 16 : 4);
    attribute(h, NDA_LLADDR, n->mac, sizeof n->mac);
    end(b, h);
}

/* ---- asking ---- */

/* Every request has its answer; the first refusal is told. */
static int read_answers(int fd, const batch *b, aq_err *err)
{
    _Alignas(struct nlmsghdr) unsigned char answer[8192];

    for (uint32_t seen = 0; seen < b->count;) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);
        unsigned left = n > 0 ? (unsigned)n : 0;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return aq_fail_errno(err, "cannot read netlink's answer");
        for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            const struct nlmsgerr *e = NLMSG_DATA(h);
            if (h->nlmsg_type != NLMSG_ERROR)
                continue;
            seen++;
            if (e->error)
                return aq_fail(err, e->error, "cannot %s: %s",
                               h->nlmsg_seq < b->count ? b->what[h->nlmsg_seq] : "do so",
                               strerror(-e->error));
        }
    }
    return 0;
}

static int open_netlink(aq_err *err)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    return fd < 0 ? aq_fail_errno(err, "cannot make a netlink socket") : fd;
}

static int ask(int fd, const batch *b, aq_err *err)
{
    if (b->full)
        return aq_fail(err, -E2BIG, "more than %d requests for a network", REQUESTS);
    if (send(fd, b->data, b->len, 0) < 0)
        return aq_fail_errno(err, "cannot send to netlink");
    return read_answers(fd, b, err);
}

/* Without a /proc, which may be another's at this moment. */
static int namespace_of(int fd, aq_err *err)
{
    int r = ioctl(fd, SIOCGSKNS);

    return r < 0 ? aq_fail_errno(err, "cannot take hold of the network") : r;
}

int aq_network_local(uint32_t address, uint8_t prefix, aq_err *err)
{
    aq_auto_fd int fd = open_netlink(err);
    uint32_t source = htonl(address);
    aq_net_range own = {.prefix = prefix};
    batch b;
    int r;

    if (fd < 0)
        return fd;
    b.len = b.count = 0, b.full = false;
    memcpy(own.address, &source, sizeof source);
    link_up(&b, LOOPBACK);
    add_address(&b, LOOPBACK, &own);
    route_here(&b, false, &source);
    r = ask(fd, &b, err);
    return r < 0 ? r : namespace_of(fd, err);
}

int aq_network_loopback(aq_err *err)
{
    aq_auto_fd int fd = open_netlink(err);
    batch b;
    int r;

    if (fd < 0)
        return fd;
    b.len = b.count = 0, b.full = false;
    link_up(&b, LOOPBACK);
    r = ask(fd, &b, err);
    return r < 0 ? r : namespace_of(fd, err);
}

/* ---- a cable ---- */

/* Made from the far end; the near one is a device of the other namespace from the start. */
static void make_pair(batch *b, int near, const aq_cable *w)
{
    struct ifinfomsg far = {.ifi_index = FAR}, other = {.ifi_index = DEVICE};
    struct nlmsghdr *h = begin(b, "lay a cable between two networks", RTM_NEWLINK,
                               NLM_F_CREATE | NLM_F_EXCL, &far, sizeof far);
    struct rtattr *info, *data, *peer;

    attribute(h, IFLA_IFNAME, FAR_NAME, sizeof FAR_NAME);
    attribute(h, IFLA_ADDRESS, w->far_mac, sizeof w->far_mac);
    number(h, IFLA_MTU, w->mtu);
    info = nest(h, IFLA_LINKINFO);
    attribute(h, IFLA_INFO_KIND, "veth", sizeof "veth" - 1);
    data = nest(h, IFLA_INFO_DATA);
    peer = nest(h, VETH_INFO_PEER);
    memcpy((unsigned char *)h + h->nlmsg_len, &other, sizeof other);
    h->nlmsg_len += (uint32_t)NLMSG_ALIGN(sizeof other);
    attribute(h, IFLA_IFNAME, w->name, strlen(w->name) + 1);
    attribute(h, IFLA_ADDRESS, w->mac, sizeof w->mac);
    number(h, IFLA_MTU, w->mtu);
    number(h, IFLA_NET_NS_FD, (uint32_t)near);
    close_nest(h, peer);
    close_nest(h, data);
    close_nest(h, info);
    end(b, h);
}

static int set_far(int fd, int near, const aq_cable *w, aq_err *err)
{
    batch b;

    b.len = b.count = 0, b.full = false;
    make_pair(&b, near, w);
    no_own_address(&b, FAR);
    link_up(&b, LOOPBACK);
    for (size_t i = 0; i < w->count; i++)
        add_address(&b, FAR, &w->gateway[i]);
    link_up(&b, FAR);
    for (size_t i = 0; i < w->count; i++) {
        aq_neighbour n = {.address = w->near[i]};

        memcpy(n.mac, w->mac, sizeof n.mac);
        route_near(&b, &w->near[i]);
        know(&b, FAR, &n);
    }
    for (size_t i = 0; i < w->nowhere_count; i++)
        route_nowhere(&b, &w->nowhere[i]);
    for (size_t i = 0; i < w->though_count; i++)
        route_though(&b, &w->though[i]);
    route_here(&b, false, NULL);
    route_here(&b, true, NULL);
    return ask(fd, &b, err);
}

static bool is_link_local(const aq_net_range *r)
{
    return r->six && r->address[0] == 0xfe && (r->address[1] & 0xc0) == 0x80;
}

static int set_near(int fd, const aq_cable *w, aq_err *err)
{
    batch b;

    b.len = b.count = 0, b.full = false;
    no_own_address(&b, DEVICE);
    for (size_t i = 0; i < w->count; i++)
        add_address(&b, DEVICE, &w->near[i]);
    link_up(&b, DEVICE);
    for (size_t i = 0; i < w->count; i++)
        if (!w->gateway[i].six || is_link_local(&w->gateway[i]))
            route_out(&b, &w->gateway[i]);
    for (size_t i = 0; i < w->neighbour_count; i++)
        know(&b, DEVICE, &w->neighbours[i]);
    return ask(fd, &b, err);
}

/* The kernel lets a device send and says that it runs a moment after both ends are up, in a thread
 * of its own; what is sent before that is lost. Whoever asks for the state of its link has that
 * done at once. A program must not see which came first, nor lose the first answer to it. */
static int plug(int fd, const char *name, aq_err *err)
{
    struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
    struct ifreq q = {0};

    snprintf(q.ifr_name, sizeof q.ifr_name, "%s", name);
    for (int i = 0; i < PLUG_LOOKS; i++) {
        q.ifr_data = (void *)&link;
        ioctl(fd, SIOCETHTOOL, &q);
        if (ioctl(fd, SIOCGIFFLAGS, &q) < 0)
            return aq_fail_errno(err, "cannot look at the device %s", name);
        if (q.ifr_flags & IFF_RUNNING)
            return 0;
        usleep(PLUG_US);
    }
    return aq_fail(err, -ETIMEDOUT, "the device %s does not run", name);
}

int aq_network_cable(int near, const aq_cable *w, aq_err *err)
{
    aq_auto_fd int far_fd = -1, near_fd = -1;
    int r;

    if (setns(near, CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "cannot enter a network");
    near_fd = open_netlink(err);
    if (near_fd < 0)
        return near_fd;
    if (unshare(CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "cannot make a network namespace");
    far_fd = open_netlink(err);
    if (far_fd < 0)
        return far_fd;
    r = set_far(far_fd, near, w, err);
    if (r == 0)
        r = set_near(near_fd, w, err);
    if (r == 0)
        r = plug(far_fd, FAR_NAME, err);
    return r < 0 ? r : plug(near_fd, w->name, err);
}

/* The kernel lets a connection be put back where it was, without a word on the wire: made for
 * programs that are moved from host to host. */
int aq_network_session(const aq_net_place *own, const aq_net_place *other, aq_err *err)
{
    struct tcp_repair_opt segment = {TCPOPT_MAXSEG, SEGMENT};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(own->port)};
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(other->port)};
    aq_auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(&here.sin_addr, own->address.address, sizeof here.sin_addr);
    memcpy(&there.sin_addr, other->address.address, sizeof there.sin_addr);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &(int){TCP_REPAIR_ON}, sizeof(int)) < 0 ||
        bind(fd, (struct sockaddr *)&here, sizeof here) < 0 ||
        connect(fd, (struct sockaddr *)&there, sizeof there) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, &segment, sizeof segment) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &(int){TCP_REPAIR_OFF_NO_WP}, sizeof(int)) < 0)
        return aq_fail_errno(err, "cannot make a session");
    return aq_take_fd(fd);
}

int aq_network_set(const char *knob, const char *value)
{
    char path[160];
    size_t len = strlen(value);

    snprintf(path, sizeof path, "/proc/sys/net/%s", knob);
    aq_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, value, len) != (ssize_t)len ? -errno : 0;
}
