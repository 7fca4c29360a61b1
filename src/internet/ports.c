/* The open ports and their sockets; see ports.h. */
#include "internet/ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { BACKLOG = 4096, QUEUE = 128 };

static const aq_port ports[] = {
#define AQ_PORT(protocol, number, service) {IPPROTO_##protocol, number, service},
#include "internet/ports.def"
#undef AQ_PORT
};

typedef struct listener {
    uint8_t protocol;
    int family;
    uint16_t number;
} listener;

static const listener listeners[] = {
#define AQ_LISTENER(protocol, family, number) {IPPROTO_##protocol, AF_##family, number},
#include "internet/listeners.def"
#undef AQ_LISTENER
};

enum { LISTENERS = sizeof listeners / sizeof *listeners };

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

/* ---- the machine's own ---- */

bool aq_listener_at(uint8_t protocol, uint16_t number)
{
    for (size_t i = 0; i < LISTENERS; i++)
        if (listeners[i].protocol == protocol && listeners[i].number == number)
            return true;
    return false;
}

size_t aq_listener_sockets(void)
{
    return LISTENERS;
}

/* As such services make theirs: one for each family, and a queue of the usual length. */
static int open_listener(const listener *l, aq_err *err)
{
    bool tcp = l->protocol == IPPROTO_TCP, six = l->family == AF_INET6;
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at = {0};
    socklen_t len = six ? sizeof at.six : sizeof at.four;
    aq_auto_fd int fd = socket(
        l->family, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, l->protocol);
    int r;

    if (fd < 0)
        return aq_fail_errno(err, "cannot make a socket");
    if (six && (r = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1, err)) < 0)
        return r;
    if (tcp && (r = set(fd, SOL_SOCKET, SO_REUSEADDR, 1, err)) < 0)
        return r;
    at.any.sa_family = (sa_family_t)l->family;
    if (six)
        at.six.sin6_port = htons(l->number);
    else
        at.four.sin_port = htons(l->number);
    if (bind(fd, &at.any, len) < 0 || (tcp && listen(fd, QUEUE) < 0))
        return aq_fail_errno(err, "cannot listen at port %u of the machine", l->number);
    return aq_take_fd(fd);
}

int aq_listeners_open(int *fds, aq_err *err)
{
    for (size_t i = 0; i < LISTENERS; i++) {
        fds[i] = open_listener(&listeners[i], err);
        if (fds[i] < 0) {
            int r = fds[i];

            while (i > 0)
                close(fds[--i]);
            return r;
        }
    }
    return 0;
}
