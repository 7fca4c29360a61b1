/* The open ports and their sockets; see ports.h. */
#include "internet/ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <stdbool.h>

#include "base/cleanup.h"

enum { BACKLOG = 4096 };

static const aq_port ports[] = {
#define AQ_PORT(protocol, number, service) {IPPROTO_##protocol, number, service},
#include "internet/ports.def"
#undef AQ_PORT
};

const aq_port *aq_ports(size_t *count)
{
    *count = sizeof ports / sizeof *ports;
    return ports;
}

const char *aq_port_service(uint8_t protocol, uint16_t number)
{
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (ports[i].protocol == protocol && ports[i].number == number)
            return ports[i].service;
    return NULL;
}

size_t aq_port_sockets(void)
{
    return sizeof ports / sizeof *ports + 1;
}

static int set(int fd, int level, int option, int value, aq_err *err)
{
    if (setsockopt(fd, level, option, &value, sizeof value) < 0)
        return aq_fail_errno(err, "cannot set option %d of a socket", option);
    return 0;
}

static int options(int fd, uint8_t protocol, aq_err *err)
{
    int r = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, err);

    if (r == 0)
        r = set(fd, SOL_SOCKET, SO_REUSEADDR, 1, err);
    if (r < 0 || protocol == IPPROTO_TCP)
        return r;
    if ((r = set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, err)) == 0)
        r = set(fd, IPPROTO_IP, IP_PKTINFO, 1, err);
    return r;
}

static int open_port(const aq_port *p, aq_err *err)
{
    bool tcp = p->protocol == IPPROTO_TCP;
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(p->number)};
    aq_auto_fd int fd = socket(
        AF_INET6, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, p->protocol);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "cannot make a socket");
    if ((r = options(fd, p->protocol, err)) < 0)
        return r;
    if (bind(fd, (struct sockaddr *)&any, sizeof any) < 0)
        return aq_fail_errno(err, "cannot take port %u", p->number);
    if (tcp && listen(fd, BACKLOG) < 0)
        return aq_fail_errno(err, "cannot listen at port %u", p->number);
    return aq_take_fd(fd);
}

static int open_tide(aq_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    aq_auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);

    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0 ||
        connect(fd, (struct sockaddr *)&at, len) < 0)
        return aq_fail_errno(err, "cannot make the tide mark of the internet");
    return aq_take_fd(fd);
}

int aq_ports_open(int *fds, aq_err *err)
{
    size_t count = sizeof ports / sizeof *ports;

    for (size_t i = 0; i <= count; i++) {
        int fd = i < count ? open_port(&ports[i], err) : open_tide(err);

        if (fd < 0) {
            while (i > 0)
                close(fds[--i]);
            return fd;
        }
        fds[i] = fd;
    }
    return 0;
}
