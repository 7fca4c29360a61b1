/* Answers of the kernel's network, as the machine's kernel would give them: eth0 is one end of a
 * virtual cable, and some answers say so, or say by the host's clock when and how often something
 * happened. The other end, its namespace and the kind of device are left out, how our routes differ
 * from usual ones too; times and counts are fixed. Whatever does not look like an answer of the
 * kernel is not shown at all. */
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "veil/veil.h"

enum {
    LOOPBACK = 1,
    OPER_UP = 6,
    CONFIGURED_CS =
        1412, /* when its addresses were given, in hundredths of a second since the start */
    REACHABLE_MS = 31148,
    HEAD = NLMSG_LENGTH(0),
};

/* Which attributes of a message are left out, and how its others are changed in their place. */
typedef struct answer {
    uint16_t type;
    size_t head; /* bytes before the attributes */
    uint16_t dropped[4];
    void (*mend)(uint16_t type, uint8_t *data, size_t len, bool device);
} answer;

/* Without its two flags. */
static uint16_t plain(uint16_t type)
{
    return type & (uint16_t)NLA_TYPE_MASK;
}

static void put_word(uint8_t *data, size_t len, size_t at, uint32_t value)
{
    if (at + sizeof value <= len)
        memcpy(data + at, &value, sizeof value);
}

/* ---- devices ---- */

/* What came and went: the same numbers as in /proc/net/dev (veil/files.def). When the kernel greets
 * its neighbours is its own affair. */
static void put_counts(uint8_t *out, size_t len, size_t width)
{
    static const uint64_t counts[] = {153877, 97415, 184290612, 14406358, 0, 0, 12, 0, 2119};

    memset(out, 0, len);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && (i + 1) * width <= len; i++)
        memcpy(out + i * width, &counts[i], width); /* the low bytes come first */
}

/* Calls `each` for every attribute in `data`. */
static void walk(uint8_t *data, size_t len, bool device,
                 void (*each)(uint16_t type, uint8_t *data, size_t len, bool device))
{
    struct rtattr a;

    for (size_t at = 0; at + sizeof a <= len;) {
        memcpy(&a, data + at, sizeof a);
        if (a.rta_len < sizeof a || a.rta_len > len - at)
            return;
        each(plain(a.rta_type), data + at + RTA_LENGTH(0), a.rta_len - RTA_LENGTH(0), device);
        at += RTA_ALIGN(a.rta_len);
    }
}

/* What IPv6 knows of a device: times of its settings, and counts. The first number of these is how
 * many there are. */
static void mend_six(uint16_t type, uint8_t *data, size_t len, bool device)
{
    const uint32_t announced = 0x30, ready = 1u << 31; /* it asked for a router, and heard of one */

    switch (type) {
    case IFLA_INET6_FLAGS: /* the kernel asks when it likes */
        if (device)
            put_word(data, len, 0, announced | ready);
        break;
    case IFLA_INET6_CACHEINFO:
        put_word(data, len, offsetof(struct ifla_cacheinfo, tstamp), CONFIGURED_CS);
        put_word(data, len, offsetof(struct ifla_cacheinfo, reachable_time), REACHABLE_MS);
        break;
    case IFLA_INET6_STATS:
    case IFLA_INET6_ICMP6STATS:
        if (len > sizeof(uint64_t))
            memset(data + sizeof(uint64_t), 0, len - sizeof(uint64_t));
        break;
    default:
        break;
    }
}

static void mend_family(uint16_t type, uint8_t *data, size_t len, bool device)
{
    if (type == AF_INET6)
        walk(data, len, device, mend_six);
}

static void mend_link(uint16_t type, uint8_t *data, size_t len, bool device)
{
    if (type == IFLA_AF_SPEC)
        walk(data, len, device, mend_family);
    if (type == IFLA_PROTINFO)
        walk(data, len, device, mend_six);
    if (!device)
        return;
    if (type == IFLA_OPERSTATE && len > 0)
        data[0] = OPER_UP;
    if (type == IFLA_STATS || type == IFLA_STATS64)
        put_counts(data, len, type == IFLA_STATS ? 4 : 8);
}

static void mend_stats(uint16_t type, uint8_t *data, size_t len, bool device)
{
    if (type == IFLA_STATS_LINK_64 && device)
        put_counts(data, len, 8);
}

/* ---- addresses and neighbours ---- */

static void mend_address(uint16_t type, uint8_t *data, size_t len, bool device)
{
    (void)device;
    if (type == IFA_FLAGS && len > 0)
        data[0] &= (uint8_t)~IFA_F_NODAD;
    if (type != IFA_CACHEINFO)
        return;
    put_word(data, len, offsetof(struct ifa_cacheinfo, cstamp), CONFIGURED_CS);
    put_word(data, len, offsetof(struct ifa_cacheinfo, tstamp), CONFIGURED_CS);
}

static void mend_neighbour(uint16_t type, uint8_t *data, size_t len, bool device)
{
    static const struct nda_cacheinfo heard = {
        .ndm_confirmed = 212, .ndm_used = 1044, .ndm_updated = 98, .ndm_refcnt = 1};

    (void)device;
    if (type == NDA_PROBES)
        memset(data, 0, len);
    if (type == NDA_CACHEINFO)
        memcpy(data, &heard, len < sizeof heard ? len : sizeof heard);
}

static void mend_table_part(uint16_t type, uint8_t *data, size_t len, bool device)
{
    (void)device;
    if (type == NDTPA_REACHABLE_TIME) /* drawn anew at each start, and then every few minutes */
        put_word(data, len, 0, REACHABLE_MS);
    if (type == NDTPA_REFCNT)
        put_word(data, len, 0, 1);
}

static void mend_table(uint16_t type, uint8_t *data, size_t len, bool device)
{
    if (type == NDTA_PARMS)
        walk(data, len, device, mend_table_part);
    if (type == NDTA_CONFIG || type == NDTA_STATS)
        memset(data, 0, len);
}

/* ---- messages ---- */

static const answer answers[] = {
    {RTM_NEWLINK,
     sizeof(struct ifinfomsg),
     {IFLA_LINK, IFLA_LINKINFO, IFLA_LINK_NETNSID, IFLA_XDP},
     mend_link},
    {RTM_NEWADDR, sizeof(struct ifaddrmsg), {0}, mend_address},
    {RTM_NEWROUTE, sizeof(struct rtmsg), {RTA_METRICS}, NULL},
    {RTM_NEWNEIGH, sizeof(struct ndmsg), {0}, mend_neighbour},
    {RTM_NEWNEIGHTBL, sizeof(struct ndtmsg), {0}, mend_table},
    {RTM_NEWSTATS, sizeof(struct if_stats_msg), {0}, mend_stats},
};

static const answer *answer_of(uint16_t type)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        if (answers[i].type == type)
            return &answers[i];
    return NULL;
}

static bool drops(const answer *w, uint16_t type)
{
    for (size_t i = 0; i < sizeof w->dropped / sizeof *w->dropped; i++)
        if (w->dropped[i] && w->dropped[i] == plain(type))
            return true;
    return false;
}

/* A text attribute of a device that says what no such device has. */
static size_t put_text(uint8_t *out, uint16_t type, const char *text)
{
    struct rtattr a = {.rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(strlen(text) + 1)};

    memset(out, 0, RTA_ALIGN(a.rta_len));
    memcpy(out, &a, sizeof a);
    memcpy(out + RTA_LENGTH(0), text, strlen(text));
    return RTA_ALIGN(a.rta_len);
}

/* Attributes without those that are dropped; returns the length. A text may be longer. */
static size_t copy_attributes(const answer *w, const uint8_t *in, size_t len, bool device,
                              uint8_t *out)
{
    size_t at = 0, n = 0;
    bool queue = false; /* it has one, and no device has two */

    while (at + sizeof(struct rtattr) <= len) {
        struct rtattr a;
        size_t whole;

        memcpy(&a, in + at, sizeof a);
        if (a.rta_len < sizeof a || a.rta_len > len - at)
            break;
        whole = RTA_ALIGN(a.rta_len) < len - at ? RTA_ALIGN(a.rta_len) : len - at;
        if (w->type == RTM_NEWLINK && device && a.rta_type == IFLA_QDISC) {
            n += queue ? 0 : put_text(out + n, IFLA_QDISC, "fq_codel");
            queue = true;
        } else if (!drops(w, a.rta_type)) {
            memcpy(out + n, in + at, whole);
            if (w->mend)
                w->mend(plain(a.rta_type), out + n + RTA_LENGTH(0), a.rta_len - RTA_LENGTH(0),
                        device);
            n += whole;
        }
        at += whole;
    }
    return n;
}

/* What stands before the attributes. Which device it is about? */
static bool mend_head(uint16_t type, uint8_t *head)
{
    struct ifinfomsg link;
    struct if_stats_msg stats;
    struct ndmsg near;
    const uint16_t known = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;

    switch (type) {
    case RTM_NEWLINK:
        memcpy(&link, head, sizeof link);
        if (link.ifi_index == LOOPBACK)
            return false;
        link.ifi_flags |= IFF_RUNNING | 1 << 16 /* IFF_LOWER_UP */;
        memcpy(head, &link, sizeof link);
        return true;
    case RTM_NEWSTATS:
        memcpy(&stats, head, sizeof stats);
        return stats.ifindex != LOOPBACK;
    case RTM_NEWADDR:
        head[offsetof(struct ifaddrmsg, ifa_flags)] &= (uint8_t)~IFA_F_NODAD;
        return false;
    case RTM_NEWNEIGH: /* made known for good, or heard of by the host's time: as if just heard */
        memcpy(&near, head, sizeof near);
        if (near.ndm_state & known)
            near.ndm_state = NUD_REACHABLE;
        memcpy(head, &near, sizeof near);
        return false;
    default:
        return false;
    }
}

/* Nobody asks for them: greetings that the kernel sends when it likes, namespaces. */
static bool is_hidden(const struct nlmsghdr *h, const uint8_t *in)
{
    struct ndmsg near;

    if (h->nlmsg_type == RTM_NEWNSID)
        return true;
    if (h->nlmsg_type != RTM_NEWNEIGH || h->nlmsg_len < NLMSG_LENGTH(sizeof near))
        return false;
    memcpy(&near, in + HEAD, sizeof near);
    return near.ndm_state == NUD_NOARP;
}

/* One whole message to `out`; returns its new length. */
static size_t rewrite(const uint8_t *in, uint8_t *out)
{
    struct nlmsghdr h;
    const answer *w;
    size_t head, len;
    bool device;

    memcpy(&h, in, sizeof h);
    len = h.nlmsg_len;
    w = answer_of(h.nlmsg_type);
    head = w ? NLMSG_ALIGN(NLMSG_LENGTH(w->head)) : len;
    if (is_hidden(&h, in))
        return 0;
    memcpy(out, in, head < len ? head : len);
    if (head > len || !w)
        return len;
    device = mend_head(h.nlmsg_type, out + HEAD);
    len = head + copy_attributes(w, in + head, len - head, device, out + head);
    h.nlmsg_len = (uint32_t)len;
    memcpy(out, &h, sizeof h);
    return len;
}

/* A reader takes no answer for the end of all. */
static size_t put_nothing(uint8_t *out)
{
    const struct nlmsghdr h = {.nlmsg_len = HEAD, .nlmsg_type = NLMSG_NOOP};

    memcpy(out, &h, sizeof h);
    return sizeof h;
}

size_t aq_veil_netlink(const uint8_t *in, size_t len, uint8_t *out)
{
    struct nlmsghdr h;
    size_t at = 0, n = 0;

    while (at + sizeof h <= len) {
        size_t whole;

        memcpy(&h, in + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > len - at)
            break; /* its reader had no room for the rest: it does not get a part */
        whole = rewrite(in + at, out + n);
        while (whole % NLMSG_ALIGNTO)
            out[n + whole++] = 0;
        n += whole;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    return n || len < sizeof h ? n : put_nothing(out);
}
