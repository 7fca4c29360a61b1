/* The world's network and its internet: made by the front when the keeper asks, which it does when
 * the program first wants a network, and first wants to reach somebody. Most programs never do, and
 * their start costs nothing more. Private to the container's files.
 *
 * The cable (eth0, addresses, routes) is laid by a child of the front that enters the world's user
 * namespace and has rights there and nowhere else. It makes the sockets of the internet in a
 * network namespace at the other end and hands them back. aquarium-internet gets them later. The
 * front lays one cable and starts one internet, on descriptors that it had before the program ran:
 * a keeper that was taken over can ask for nothing else but its end. */
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "sandbox/world.h"

enum { AQ_NET_SOCKETS = 128 };

/* What the front knows of it. */
typedef struct aq_net {
    int line;           /* our end of the internet's line, until the internet has it */
    int users, network; /* the world's namespaces */
    int socket[AQ_NET_SOCKETS];
    size_t count;
    bool laid;
    pid_t internet;
} aq_net;

void aq_net_begin(aq_net *n);
/* Does what the keeper asks for and answers it on the line. Failures are told there too; -EPROTO
 * for what it may not ask. */
int aq_net_serve(aq_net *n, const aq_plan *plan, pid_t keeper, uint32_t word, aq_err *err);
/* Nothing of it lives on. */
void aq_net_end(aq_net *n);

/* Made in the child: the cable, the sockets at its far end, and those of the machine's own services
 * at the near one. Returns how many sockets there are, at most AQ_NET_SOCKETS. */
int aq_net_lay(const aq_machine *m, int network, int *sockets, aq_err *err);

/* In the keeper: asks the front, and waits for the cable. `attendant` as for aq_attend. */
int aq_net_reach(void *attendant, bool internet, aq_err *err);
int aq_net_alone(void *attendant); /* asks for the internet's end; its line hangs up when it came */
