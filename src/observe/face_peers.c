/* Lists of sockets, as the kernel tells of them over netlink.
 *
 * Sockets get the numbers that files of /proc show, owners as on a machine that has a root, and
 * times of the world's clock. Answers of one kind, of neighbours too, come in the kernel's order of
 * hashes, which differs from run to run: they are put into an order of their own. All of it in
 * place: no answer grows. */
#include <linux/inet_diag.h>
#include <linux/netlink_diag.h>
#include <linux/packet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "observe/disk.h"
#include "observe/face_net.h"
#include "observe/reach.h"

enum { LOW_PORTS = 1024, LISTENS = 10, COOKIE = 0x1000 };

/* Walks the attributes from `head` on; false at the end. */
static bool next_attribute(uint8_t *m, size_t len, size_t *at, struct rtattr *ret, uint8_t **value)
{
    if (*at + sizeof *ret > len)
        return false;
    memcpy(ret, m + *at, sizeof *ret);
    if (ret->rta_len < sizeof *ret || ret->rta_len > len - *at)
        return false;
    *value = m + *at + RTA_LENGTH(0);
    ret->rta_len = (uint16_t)(ret->rta_len - RTA_LENGTH(0));
    *at += RTA_LENGTH(0) + RTA_ALIGN(ret->rta_len);
    return true;
}

/* ---- sockets ---- */

static uint32_t shown(aq_tracer *t, uint32_t inode)
{
    return inode ? (uint32_t)aq_disk_anonymous(t, inode, NULL) : 0;
}

/* A number of the kernel's own for each socket that was ever asked for. */
static void set_cookie(uint32_t *cookie, uint32_t inode)
{
    cookie[0] = COOKIE + inode % COOKIE;
    cookie[1] = 0;
}

static uint64_t way_of(aq_tracer *t, const struct inet_diag_msg *d)
{
    struct sockaddr_storage s = {.ss_family = d->idiag_family};

    if (d->idiag_state == LISTENS)
        return 0;
    if (d->idiag_family == AF_INET)
        memcpy(&((struct sockaddr_in *)&s)->sin_addr, d->id.idiag_dst, 4);
    else
        memcpy(&((struct sockaddr_in6 *)&s)->sin6_addr, d->id.idiag_dst, 16);
    return aq_reach_way(t, &s);
}

/* Which group of ours it belongs to is nobody's business. */
static size_t without_group(uint8_t *m, size_t len)
{
    size_t at = NLMSG_LENGTH(sizeof(struct inet_diag_msg)), from = at;
    struct rtattr a;
    uint8_t *value;

    while (next_attribute(m, len, &at, &a, &value)) {
        if (a.rta_type == INET_DIAG_CGROUP_ID) {
            size_t rest = at < len ? len - at : 0;

            memmove(m + from, m + at, rest);
            return from + rest;
        }
        from = at;
    }
    return len;
}

static size_t stream(aq_tracer *t, uint8_t *m, size_t len)
{
    size_t at = NLMSG_LENGTH(sizeof(struct inet_diag_msg));
    struct inet_diag_msg d;
    struct rtattr a;
    uint8_t *value;

    if (len < at)
        return len;
    memcpy(&d, m + NLMSG_HDRLEN, sizeof d);
    d.idiag_inode = shown(t, d.idiag_inode);
    set_cookie(d.id.idiag_cookie, d.idiag_inode);
    if (ntohs(d.id.idiag_sport) < LOW_PORTS)
        d.idiag_uid = 0; /* nobody else may have them */
    memcpy(m + NLMSG_HDRLEN, &d, sizeof d);
    while (next_attribute(m, len, &at, &a, &value)) {
        struct tcp_info i = {0};
        size_t n = a.rta_len < sizeof i ? a.rta_len : sizeof i;

        if (a.rta_type == INET_DIAG_CONG && a.rta_len == sizeof "reno") { /* padded to eight */
            uint16_t whole = RTA_LENGTH(sizeof "cubic");

            memcpy(value - RTA_LENGTH(0), &whole, sizeof whole);
            memcpy(value, "cubic", sizeof "cubic");
        }
        if (a.rta_type != INET_DIAG_INFO)
            continue;
        memcpy(&i, value, n);
        aq_face_measured(way_of(t, &d), &i);
        memcpy(value, &i, n);
    }
    return without_group(m, len);
}

static void local(aq_tracer *t, uint8_t *m, size_t len)
{
    size_t at = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
    struct unix_diag_msg d;
    struct rtattr a;
    uint8_t *value;

    if (len < at)
        return;
    memcpy(&d, m + NLMSG_HDRLEN, sizeof d);
    d.udiag_ino = shown(t, d.udiag_ino);
    set_cookie(d.udiag_cookie, d.udiag_ino);
    memcpy(m + NLMSG_HDRLEN, &d, sizeof d);
    while (next_attribute(m, len, &at, &a, &value)) {
        if (a.rta_type == UNIX_DIAG_VFS) /* of the file that it is bound to */
            memset(value, 0, a.rta_len);
        for (size_t i = 0; (a.rta_type == UNIX_DIAG_PEER || a.rta_type == UNIX_DIAG_ICONS) &&
                           i + sizeof(uint32_t) <= a.rta_len;
             i += sizeof(uint32_t)) {
            uint32_t inode;

            memcpy(&inode, value + i, sizeof inode);
            inode = shown(t, inode);
            memcpy(value + i, &inode, sizeof inode);
        }
    }
}

/* Those that have no more than a number and a cookie, which stand at other places in each. */
static void plain(aq_tracer *t, uint8_t *m, size_t len, size_t inode_at, size_t cookie_at)
{
    uint32_t inode, cookie[2];

    if (len < NLMSG_HDRLEN + cookie_at + sizeof cookie)
        return;
    memcpy(&inode, m + NLMSG_HDRLEN + inode_at, sizeof inode);
    inode = shown(t, inode);
    set_cookie(cookie, inode);
    memcpy(m + NLMSG_HDRLEN + inode_at, &inode, sizeof inode);
    memcpy(m + NLMSG_HDRLEN + cookie_at, cookie, sizeof cookie);
}

size_t aq_face_socket(aq_tracer *t, uint8_t *m, size_t len)
{
    uint32_t left;

    switch (len > NLMSG_HDRLEN ? m[NLMSG_HDRLEN] : AF_UNSPEC) {
    case AF_INET:
    case AF_INET6:
        len = stream(t, m, len);
        break;
    case AF_UNIX:
        local(t, m, len);
        break;
    case AF_NETLINK:
        plain(t, m, len, offsetof(struct netlink_diag_msg, ndiag_ino),
              offsetof(struct netlink_diag_msg, ndiag_cookie));
        break;
    case AF_PACKET:
        plain(t, m, len, offsetof(struct packet_diag_msg, pdiag_ino),
              offsetof(struct packet_diag_msg, pdiag_cookie));
        break;
    default:
        break;
    }
    left = (uint32_t)len;
    memcpy(m, &left, sizeof left); /* its head begins with its length */
    return len;
}

/* ---- order ---- */

enum { KEY = 48 };

typedef struct answer {
    uint8_t key[KEY];
    size_t at, len;
} answer;

static int by_key(const void *x, const void *y)
{
    const answer *a = x, *b = y;
    int r = memcmp(a->key, b->key, KEY);

    return r ? r : a->at < b->at ? -1 : a->at > b->at;
}

static void key_of_socket(const uint8_t *m, size_t len, uint8_t *key)
{
    struct inet_diag_msg d;
    struct unix_diag_msg u;
    struct netlink_diag_msg n;

    key[0] = len > NLMSG_HDRLEN ? m[NLMSG_HDRLEN] : 0;
    if ((key[0] == AF_INET || key[0] == AF_INET6) && len >= NLMSG_LENGTH(sizeof d)) {
        memcpy(&d, m + NLMSG_HDRLEN, sizeof d);
        key[1] = d.idiag_state != LISTENS;
        memcpy(key + 2, &d.id, 36); /* ports and addresses of both ends */
    } else if (key[0] == AF_UNIX && len >= NLMSG_LENGTH(sizeof u)) {
        memcpy(&u, m + NLMSG_HDRLEN, sizeof u);
        for (int i = 0; i < 4; i++)
            key[1 + i] = (uint8_t)(u.udiag_ino >> (24 - 8 * i));
    } else if (key[0] == AF_NETLINK && len >= NLMSG_LENGTH(sizeof n)) {
        memcpy(&n, m + NLMSG_HDRLEN, sizeof n);
        key[1] = n.ndiag_protocol;
        memcpy(key + 2, &n.ndiag_portid, sizeof n.ndiag_portid);
    }
}

static void key_of_neighbour(uint8_t *m, size_t len, uint8_t *key)
{
    size_t at = NLMSG_LENGTH(sizeof(struct ndmsg));
    struct rtattr a;
    uint8_t *value;

    key[0] = len > NLMSG_HDRLEN ? m[NLMSG_HDRLEN] : 0;
    while (next_attribute(m, len, &at, &a, &value))
        if (a.rta_type == NDA_DST)
            memcpy(key + 1, value, a.rta_len < KEY - 1 ? a.rta_len : KEY - 1);
}

void aq_face_order(uint8_t *data, size_t len, uint16_t type)
{
    aq_auto_free answer *all = NULL;
    aq_auto_free uint8_t *copy = aq_alloc(len + 1);
    size_t count = 0, cap = 0, at = 0, end = 0;

    while (at + sizeof(struct nlmsghdr) <= len) {
        struct nlmsghdr h;
        answer *a;

        memcpy(&h, data + at, sizeof h);
        if (h.nlmsg_type != type || h.nlmsg_len < sizeof h || NLMSG_ALIGN(h.nlmsg_len) > len - at)
            break;
        if (count == cap)
            all = aq_realloc(all, cap = cap ? 2 * cap : 64, sizeof *all);
        a = &all[count];
        *a = (answer){.at = at, .len = NLMSG_ALIGN(h.nlmsg_len)};
        if (type == RTM_NEWNEIGH)
            key_of_neighbour(data + at, h.nlmsg_len, a->key);
        else
            key_of_socket(data + at, h.nlmsg_len, a->key);
        end = at += a->len;
        count++;
    }
    if (count)
        qsort(all, count, sizeof *all, by_key);
    memcpy(copy, data, end);
    for (size_t i = 0, to = 0; i < count; i++) {
        memcpy(data + to, copy + all[i].at, all[i].len);
        to += all[i].len;
    }
}
