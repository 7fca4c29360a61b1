/* Tells in the network: an interface without a wire, addresses of emulators, an internet where
 * everything answers. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

static const char *outside(struct in_addr *address)
{
    static char name[IF_NAMESIZE];
    struct ifaddrs *all = NULL;

    name[0] = '\0';
    getifaddrs(&all);
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK) &&
            !*name) {
            snprintf(name, sizeof name, "%s", i->ifa_name);
            *address = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
        }
    return name;
}

/* 0: connected; an error number; ETIMEDOUT after five seconds. */
static int try_to_reach(const char *address, int port, int64_t *took)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), problem = 0;
    int64_t from = now_ns(CLOCK_MONOTONIC);
    socklen_t n = sizeof problem;

    inet_pton(AF_INET, address, &to.sin_addr);
    if (connect(s, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        problem = errno;
    else if (poll(&(struct pollfd){.fd = s, .events = POLLOUT}, 1, 5000) == 0)
        problem = ETIMEDOUT;
    else
        getsockopt(s, SOL_SOCKET, SO_ERROR, &problem, &n);
    *took = now_ns(CLOCK_MONOTONIC) - from;
    close(s);
    return problem;
}

TELL(network, interface, "there is an interface besides the loop")
{
    struct in_addr a;

    return *outside(&a) || odd("none");
}

TELL(network, address, "our address is none of an emulator's or container's default network")
{
    struct in_addr a = {0};
    char text[INET_ADDRSTRLEN] = "none";

    if (!*outside(&a))
        return odd("none");
    inet_ntop(AF_INET, &a, text, sizeof text);
    say("%s", text);
    return strncmp(text, "10.0.2.", 7) != 0 && strncmp(text, "172.17.", 7) != 0 &&
           strncmp(text, "192.168.122.", 12) != 0 && strncmp(text, "10.88.", 6) != 0;
}

TELL(network, driver,
     "the interface has the driver of a card, or of the card that the hypervisor gives")
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq ask = {0};
    struct in_addr a;
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(ask.ifr_name, sizeof ask.ifr_name, "%s", outside(&a));
    ask.ifr_data = (char *)&info;
    if (!ask.ifr_name[0] || ioctl(s, SIOCETHTOOL, &ask) < 0)
        return odd("%s", strerror(errno));
    say("%s", info.driver);
    if (hypervisor())
        return has_one_of(hypervisor()->drivers, info.driver);
    return strcmp(info.driver, "veth") && strcmp(info.driver, "tun") &&
           strcmp(info.driver, "dummy") && strncmp(info.driver, "virtio", 6);
}

TELL(network, hardware_address, "the card's address is one of a maker")
{
    struct ifreq ask = {0};
    struct in_addr a;
    unsigned char *m = (unsigned char *)ask.ifr_hwaddr.sa_data;
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(ask.ifr_name, sizeof ask.ifr_name, "%s", outside(&a));
    if (!ask.ifr_name[0] || ioctl(s, SIOCGIFHWADDR, &ask) < 0)
        return odd("%s", strerror(errno));
    say("%02x:%02x:%02x", m[0], m[1], m[2]);
    return (m[0] | m[1] | m[2]) && !(m[0] & 2) && !(m[0] == 0x52 && m[1] == 0x54) &&
           !(m[0] == 8 && !m[1] && m[2] == 0x27);
}

TELL(network, size, "the interface takes packets of 1500 bytes")
{
    struct ifreq ask = {0};
    struct in_addr a;
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    snprintf(ask.ifr_name, sizeof ask.ifr_name, "%s", outside(&a));
    if (!ask.ifr_name[0] || ioctl(s, SIOCGIFMTU, &ask) < 0)
        return odd("%s", strerror(errno));
    say("%d", ask.ifr_mtu);
    return ask.ifr_mtu == 1500;
}

TELL(network, traffic, "a machine that has been up for a while has sent and received")
{
    struct in_addr a;
    const char *name = outside(&a), *dev = text_of("/proc/net/dev"),
               *at = *name ? strstr(dev, name) : NULL;
    unsigned long long received = 0, sent = 0;

    if (at && (at = strchr(at, ':')))
        sscanf(at + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent);
    say("%llu bytes in, %llu out", received, sent);
    return received > 1000000 && sent > 100000;
}

TELL(network, gateway, "a default route goes by a gateway")
{
    const char *route = text_of("/proc/net/route");
    struct in_addr a;
    char begin[64];

    snprintf(begin, sizeof begin, "%s\t00000000\t", outside(&a));
    return has_line(route, begin) || odd("none");
}

TELL(network, neighbours, "the gateway is known by its hardware address")
{
    size_t n = lines_in(text_of("/proc/net/arp"));

    return n >= 2 || odd("%zu neighbours", n ? n - 1 : 0);
}

TELL(network, listeners, "some service listens")
{
    const char *t = text_of("/proc/net/tcp");
    bool listens = strstr(t, " 0A ") != NULL;

    return listens || odd("none");
}

TELL(network, closed_here, "a port of our own where nobody listens refuses")
{
    int64_t took;
    int r = try_to_reach("127.0.0.1", 9, &took);

    return r == ECONNREFUSED || odd("%s", r ? strerror(r) : "connected");
}

TELL(network, odd_port, "hosts of the internet do not answer at every port")
{
    int64_t took;
    int r = try_to_reach("93.184.216.34", 4, &took);

    if (!r)
        return odd("connected");
    say("%s", strerror(r));
    return r == ECONNREFUSED || r == ETIMEDOUT || r == EHOSTUNREACH;
}

TELL(network, reserved, "addresses that nobody has do not answer")
{
    static const char *const nobody[] = {"240.0.0.1", "192.0.2.77", "198.51.100.9", "203.0.113.200",
                                         "100.64.3.2"};

    for (size_t i = 0; i < sizeof nobody / sizeof *nobody; i++) {
        int64_t took;

        if (try_to_reach(nobody[i], 80, &took) == 0)
            return odd("%s answers", nobody[i]);
    }
    return true;
}

TELL(network, web, "the internet is there: a well-known address answers at 443, not at once")
{
    int64_t took;
    int r = try_to_reach("1.1.1.1", 443, &took);

    if (r)
        return odd("%s", strerror(r));
    say("%lld us", (long long)took / 1000);
    return took > 500000 && took < 2000000000;
}

/* Asks the first server of resolv.conf for an address; the answer's code, -1 without an answer. */
static int ask_name(const char *name)
{
    const char *server = line_of(text_of("/etc/resolv.conf"), "nameserver");
    unsigned char q[300] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, a[600];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    size_t n = 12;

    if (!server || inet_pton(AF_INET, server, &to.sin_addr) != 1)
        return -1;
    while (*name) {
        size_t len = strcspn(name, ".");

        q[n++] = (unsigned char)len;
        memcpy(q + n, name, len);
        n += len;
        name += len + (name[len] == '.');
    }
    n++;
    q[n + 1] = q[n + 3] = 1;
    if (sendto(s, q, n + 4, 0, (struct sockaddr *)&to, sizeof to) < 0 ||
        poll(&(struct pollfd){.fd = s, .events = POLLIN}, 1, 5000) <= 0 ||
        recv(s, a, sizeof a, 0) < 12)
        return -1;
    return a[3] & 15;
}

TELL(network, no_wildcard, "a name that does not exist is not found, and a server says so")
{
    int r = ask_name("q7x2kv9w3jz8.com");

    say("%d", r);
    return r == 3;
}

TELL(network, raw, "raw sockets are root's")
{
    int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);

    return getuid() == 0 || (s < 0 && errno == EPERM) ||
           odd("%s", s < 0 ? strerror(errno) : "works");
}

TELL(network, ping, "users may ping, as systemd's setting says")
{
    int low = 1, high = 0, s = socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);

    sscanf(text_of("/proc/sys/net/ipv4/ping_group_range"), "%d %d", &low, &high);
    return (low == 0 && high == 2147483647 && s >= 0) ||
           odd("%d %d, %s", low, high, s < 0 ? strerror(errno) : "works");
}

TELL(network, netlink, "the kernel tells of its links and their makers")
{
    int s = socket(AF_NETLINK, SOCK_RAW, 0);

    return s >= 0 || odd("%s", strerror(errno));
}
