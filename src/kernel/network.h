/* The devices, addresses and routes of network namespaces, by netlink. Thin: which they are is the
 * caller's policy. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/err.h"

/* Turns the loopback device of this network namespace on, gives it one more IPv4 address (host
 * order) and prefix, and routes every IPv4 destination to this host itself: a connection to any
 * address is really tried, and ends at a socket of the same namespace or is refused there. Nothing
 * leaves: the namespace must have no other device. Needs CAP_NET_ADMIN over it. Returns a
 * descriptor of the namespace, closed by exec. */
int aq_network_local(uint32_t address, uint8_t prefix, aq_err *err);
/* Only turns the loopback device on. */
int aq_network_loopback(aq_err *err);

/* A host at the near end's own network, whose hardware address is known from the start: asking for
 * it, and forgetting it, would take the kernel's time and not ours. */
typedef struct aq_neighbour {
    aq_net_range address;
    uint8_t mac[6];
    bool router;
} aq_neighbour;

/* A cable between two namespaces: the near end has addresses and a way out, at the far end every
 * address is that host itself. */
typedef struct aq_cable {
    uint8_t mac[6], far_mac[6];
    uint32_t mtu;
    const char *name;                     /* of the near device */
    const aq_net_range *near, *gateway;   /* by twos: the near end, and the far one for it */
    size_t count;                         /* of each */
    const aq_net_range *nowhere, *though; /* what the far end does not reach, but for these */
    size_t nowhere_count, though_count;
    const aq_neighbour *neighbours; /* of the near end */
    size_t neighbour_count;
} aq_cable;

/* Lays a cable from the namespace `near` to a new one, in which this process is then. Needs the
 * right to administer both. */
int aq_network_cable(int near, const aq_cable *w, aq_err *err);

/* A connection of this namespace that nobody made: established, silent, and closed with its
 * descriptor, which is closed by exec. Both are IPv4. Needs the right to administer the network. */
typedef struct aq_net_place {
    aq_net_range address;
    uint16_t port;
} aq_net_place;
int aq_network_session(const aq_net_place *own, const aq_net_place *other, aq_err *err);

/* A knob below /proc/sys/net of this process's namespace; 0 or a negative errno. */
int aq_network_set(const char *knob, const char *value);
