/* The ports that are open on every public address of the private internet (ports.def). Whoever sets
 * its network up makes one listening socket for each TCP row and one bound socket for each UDP row,
 * dual-stack, and hands them over in this order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct aq_port {
    uint8_t protocol; /* IPPROTO_TCP, IPPROTO_UDP */
    uint16_t number;
    const char *service; /* how it speaks: of rules/internet/greetings.pack, or a reader of ours */
} aq_port;

const aq_port *aq_ports(size_t *count);
const char *aq_port_service(uint8_t protocol, uint16_t number); /* NULL: no row */

/* Makes the sockets of all rows in the network namespace of this thread, which needs the right to
 * bind low ports there: non-blocking, closed by exec, and with the options that aquarium-internet
 * counts on (destination addresses of datagrams). One more, the last, is the tide mark: a datagram
 * socket on loopback that talks to itself. What it sends arrives after all that was under way on
 * this CPU, which is how the internet knows that nothing is. `fds` holds aq_port_sockets() of
 * them. */
#include "base/err.h"
size_t aq_port_sockets(void);
int aq_ports_open(int *fds, aq_err *err);

/* Services of the machine in the world itself (listeners.def): their sockets are made in its own
 * namespace, so that every list of sockets there has them, and handed over like the others. */
bool aq_listener_at(uint8_t protocol, uint16_t number);
size_t aq_listener_sockets(void);
int aq_listeners_open(int *fds, aq_err *err);
