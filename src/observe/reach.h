/* The network of a machine and the internet behind it, as the engine uses them. For this room. All
 * of it does nothing in a world that has no machine. */
#pragma once

#include <sys/socket.h>

#include "observe/internal.h"

/* The program wants to have, or to look at, a network: there is one from here on. */
void aq_reach_network(aq_tracer *t, aq_task *k);
/* The same when it opens a path below /proc that tells of networks. */
void aq_reach_look(aq_tracer *t, aq_task *k, const char *path);
/* A call goes to this address. 0: to the machine itself; 1: to the internet, which runs from here
 * on; else the error that it must get, as it cannot be reached. */
int aq_reach_address(aq_tracer *t, aq_task *k, const struct sockaddr_storage *s, bool stream);
/* How long the way to an address and back takes; 0 for the machine itself. */
uint64_t aq_reach_way(aq_tracer *t, const struct sockaddr_storage *s);
/* Somebody was called who is that far away. His answer is here at once, and shows after the time
 * that it takes on the way: to whoever waits for it (aq_reach_arrived), or now. */
void aq_reach_called(aq_tracer *t, uint64_t way, bool waits);
/* Whoever looks sees that something came. Before `until` (0: whenever that is) it cannot have. */
void aq_reach_arrived(aq_tracer *t, uint64_t until);

/* A message was taken from a socket without streams, or an error from it: it had to come first. */
void aq_reach_heard(aq_tracer *t, aq_task *k, long result);

/* The internet's turn, when anything happened since it was quiet. True when it did something. Its
 * answers travel, but not beyond the moment `until`. */
bool aq_reach_step(aq_tracer *t, uint64_t until);
uint64_t aq_reach_next(const aq_tracer *t); /* when it wants one; UINT64_MAX: never */

/* Before bytes move through a stream: all that can be under way arrives first. True when it goes to
 * the internet; then no more than AQ_FLOW_BYTES are moved at once. */
enum { AQ_FLOW_BYTES = 32768 };
bool aq_reach_flow(aq_tracer *t, const aq_fd *f);
bool aq_reach_is_out(const aq_tracer *t, const aq_fd *f); /* a stream to the internet */
bool aq_reach_turn(aq_tracer *t);   /* one step, on no time; true when something moved */
void aq_reach_got_on(aq_tracer *t); /* bytes of the internet were taken: no turn was in vain */
/* A process ended: what it sent last is heard, while it is still known whose it was. */
void aq_reach_ended(aq_tracer *t);
/* park_stream.c: reads from such a stream, in the name of the task. */
bool aq_reach_reads(const aq_task *k);
aq_step aq_reach_read(aq_tracer *t, aq_task *k);

/* Ports follow from the seed. `mine` is borrowed; one that has a port keeps it. */
void aq_reach_port(aq_tracer *t, aq_task *k, int mine, bool connects);
int aq_reach_bind(aq_tracer *t, aq_task *k, int mine, struct sockaddr_storage *at, socklen_t len,
                  bool connects);
void aq_reach_owns(aq_tracer *t, const aq_task *k, uint16_t port);
/* park_connect.c: a message is about to be sent. 0, or its answer. */
int aq_reach_message(aq_tracer *t, aq_task *k);
void aq_reach_free(aq_tracer *t);
