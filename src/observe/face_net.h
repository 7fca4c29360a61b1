/* Answers over netlink, one message at a time: face_net.c, face_peers.c, face_stamp.c. For this
 * room. `m` is a whole message of `len` bytes, its head included, and the kernel's own. */
#pragma once

#include <linux/tcp.h>

#include "observe/decode.h"

/* Returns its new length, which is never more. */
size_t aq_face_socket(aq_tracer *t, uint8_t *m, size_t len);
/* Sorts the messages of this type that the data begins with. */
void aq_face_order(uint8_t *data, size_t len, uint16_t type);
/* What a connection measured, with a way there and back of so many nanoseconds. */
void aq_face_measured(uint64_t way, struct tcp_info *i);
