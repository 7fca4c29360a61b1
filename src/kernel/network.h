/* The loopback device of a network namespace, by netlink. Thin: addresses are the caller's. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* Turns the loopback device of this network namespace on, gives it one more IPv4 address (host
 * order) and prefix, and routes every IPv4 destination to this host itself: a connection to any
 * address is really tried, and ends at a socket of the same namespace or is refused there. Nothing
 * leaves: the namespace must have no other device. Needs CAP_NET_ADMIN over it. Returns a
 * descriptor of the namespace, closed by exec. */
int aq_network_local(uint32_t address, uint8_t prefix, aq_err *err);
