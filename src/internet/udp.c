/* Datagrams: DNS and the time are answered, the rest is recorded. An answer leaves from the address
 * that was asked, whichever of all addresses that was. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "internet/internal.h"
#include "internet/ports.h"

enum { DATAGRAM = 65535, BURST = 4096 /* in one round */ };

typedef struct datagram {
    const struct aq_socket *socket;
    struct sockaddr_in6 from;
    uint8_t to[16];
    uint64_t flow;
    const uint8_t *data;
    size_t len;
} datagram;

static aq_note note_of(const datagram *d, const char *op)
{
    aq_note n = {.m = {.type = AQ_LINE_RECORD,
                       .record = {.flow = d->flow, .protocol = IPPROTO_UDP, .op = op}}};

    memcpy(n.m.record.client.address, &d->from.sin6_addr, 16);
    n.m.record.client.port = ntohs(d->from.sin6_port);
    memcpy(n.m.record.server.address, d->to, 16);
    n.m.record.server.port = d->socket->port;
    return n;
}

static void answer(aq_net *net, const datagram *d, const void *data, size_t len)
{
    union {
        char room[CMSG_SPACE(sizeof(struct in6_pktinfo))];
        struct cmsghdr align;
    } control = {0};
    struct iovec piece = {(void *)data, len};
    struct in6_pktinfo info = {0};
    struct sockaddr_in6 to = d->from;
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof to,
                       .msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    memcpy(&info.ipi6_addr, d->to, 16);
    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(c), &info, sizeof info);
    if (sendmsg(d->socket->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        net->moved++;
}

static bool dns(aq_net *net, const datagram *d)
{
    aq_auto_buf out = {0};
    aq_dns_asked asked;
    aq_note n;

    if (aq_dns_answer(net->world, net->now_ns, d->data, d->len, AQ_DNS_UDP, &asked, &out) < 0)
        return false;
    n = note_of(d, "peer-dns");
    aq_dns_note(&n, &asked, "udp");
    aq_note_send(net, &n);
    answer(net, d, out.data, out.len);
    return true;
}

static void put32(uint8_t *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_time(uint8_t *to, int64_t ns)
{
    const int64_t since_1900 = INT64_C(2208988800);

    put32(to, (uint32_t)(ns / AQ_NET_NS + since_1900));
    put32(to + 4, (uint32_t)(((uint64_t)(ns % AQ_NET_NS) << 32) / (uint64_t)AQ_NET_NS));
}

/* A server of stratum 2 whose clock is right. */
static bool ntp(aq_net *net, const datagram *d)
{
    uint8_t version, out[48] = {0};
    aq_note n;

    if (d->len < 48 || (d->data[0] & 7) != 3) /* only a client's question */
        return false;
    version = d->data[0] >> 3 & 7;
    out[0] = (uint8_t)(version << 3 | 4);
    out[1] = 2;
    out[2] = d->data[2];
    out[3] = 0xe9;
    put32(out + 4, 0x0000012c);
    put32(out + 8, 0x00000214);
    memcpy(out + 12, "\xc0\x35\x67\x6c", 4);
    put_time(out + 16, net->now_ns - 317 * AQ_NET_NS);
    memcpy(out + 24, d->data + 40, 8);
    put_time(out + 32, net->now_ns);
    put_time(out + 40, net->now_ns);
    n = note_of(d, "peer-time");
    aq_note_number(&n, "size", (int64_t)d->len);
    aq_note_number(&n, "version", version);
    aq_note_send(net, &n);
    answer(net, d, out, sizeof out);
    return true;
}

/* The first packet of a connection has a long header. No version of ours: the client is told one
 * that it does not know, and falls back to TCP. */
static bool quic(aq_net *net, const datagram *d)
{
    aq_auto_buf out = {0};
    aq_note n = note_of(d, "peer-quic");
    size_t to_len, from_len;

    if (d->len < 1200 || !(d->data[0] & 0x80))
        return false;
    to_len = d->data[5];
    if (to_len > 20 || 6 + to_len >= d->len)
        return false;
    from_len = d->data[6 + to_len];
    if (from_len > 20 || 7 + to_len + from_len > d->len)
        return false;
    aq_note_number(&n, "version",
                   (int64_t)d->data[1] << 24 | d->data[2] << 16 | d->data[3] << 8 | d->data[4]);
    aq_note_number(&n, "size", (int64_t)d->len);
    aq_note_bytes(&n, "bytes", d->data, d->len);
    aq_note_send(net, &n);
    aq_buf_add(&out, "\xc0\0\0\0\0", 5);
    aq_buf_addc(&out, (char)from_len);
    aq_buf_add(&out, d->data + 7 + to_len, from_len);
    aq_buf_addc(&out, (char)to_len);
    aq_buf_add(&out, d->data + 6, to_len);
    aq_buf_add(&out, "\xff\0\0\x1d", 4); /* a draft that nobody speaks any more */
    answer(net, d, out.data, out.len);
    return true;
}

static void note_other(aq_net *net, const datagram *d, const char *service)
{
    size_t at = 0;

    do {
        size_t left = d->len - at;
        aq_note n = note_of(d, "peer-datagram");

        aq_note_number(&n, "at", (int64_t)at);
        aq_note_bytes(&n, "bytes", d->data + at, left < AQ_EVENT_TEXT ? left : AQ_EVENT_TEXT);
        aq_note_text(&n, "service", service);
        aq_note_number(&n, "size", (int64_t)d->len);
        aq_note_send(net, &n);
        at += AQ_EVENT_TEXT;
    } while (at < d->len);
}

/* Sockets of the machine's own services have one family, those of the internet both in one. */
static void map_sender(struct sockaddr_in6 *from)
{
    struct sockaddr_in four;

    if (from->sin6_family != AF_INET)
        return;
    memcpy(&four, from, sizeof four);
    *from = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = four.sin_port};
    from->sin6_addr.s6_addr[10] = from->sin6_addr.s6_addr[11] = 0xff;
    memcpy(&from->sin6_addr.s6_addr[12], &four.sin_addr, sizeof four.sin_addr);
}

static bool receive(datagram *d, uint8_t *room)
{
    union {
        char room[256];
        struct cmsghdr align;
    } control;
    struct iovec piece = {room, DATAGRAM};
    struct msghdr m = {.msg_name = &d->from,
                       .msg_namelen = sizeof d->from,
                       .msg_iov = &piece,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(d->socket->fd, &m, MSG_DONTWAIT);

    if (n < 0)
        return false;
    map_sender(&d->from);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
            memcpy(d->to, CMSG_DATA(c), 16); /* the address comes first */
    d->data = room;
    d->len = (size_t)n;
    return true;
}

void aq_net_datagrams(aq_net *net, const struct aq_socket *s)
{
    static uint8_t room[DATAGRAM];
    const char *service = aq_port_service(IPPROTO_UDP, s->port);

    for (int i = 0; i < BURST; i++) {
        datagram d = {.socket = s};
        bool known = false;

        if (!receive(&d, room))
            return;
        net->moved++;
        d.flow = ++net->flows;
        if (service && strcmp(service, "dns") == 0)
            known = dns(net, &d);
        else if (service && strcmp(service, "ntp") == 0)
            known = ntp(net, &d);
        else if (service && strcmp(service, "quic") == 0)
            known = quic(net, &d);
        if (!known)
            note_other(net, &d, service);
    }
}
