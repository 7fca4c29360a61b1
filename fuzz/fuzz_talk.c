/* Talks of the private internet: whatever a client says, in whatever pieces, is answered within
 * bounds, and the answer does not depend on the pieces where the protocol has messages of its own.
 * The first byte chooses the service. */
#include <stdlib.h>
#include <string.h>

#include "internet/internal.h"
#include "internet/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void talk(uint8_t choice, const uint8_t *data, size_t size, size_t piece, aq_buf *said)
{
    static const char *const services[] = {"http",  "smtp",      "dns", "redis", "postgres",
                                           "mysql", "telnet",    "ftp", "imap",  "stream",
                                           "mqtt",  "memcached", "irc", NULL};
    static aq_internet_world world;
    static aq_net net;
    aq_conn *c = aq_alloc(sizeof *c);
    aq_err err = {0};

    net = (aq_net){.world = &world, .line = -1, .epoll = -1, .tide = -1};
    net.now_ns = INT64_C(1700000000000000000);
    if (aq_rules_builtin(&net.rules, &err) < 0)
        abort();
    *c = (aq_conn){.net = &net, .fd = -1, .flow = 1, .digest = aq_hash_begin()};
    c->service = services[choice % (sizeof services / sizeof *services)];
    if (aq_rules_greets(net.rules, c->service))
        aq_conn_talk(c, &aq_talk_dialogue);
    for (size_t at = 0; at < size && !c->dead; at += piece)
        aq_conn_hear(c, data + at, size - at < piece ? size - at : piece);
    if (c->out.len > AQ_NET_OUTPUT + AQ_NET_READ || c->in.len > AQ_NET_INPUT + AQ_NET_READ)
        abort();
    aq_buf_add(said, aq_buf_str(&c->out), c->out.len);
    aq_conn_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    aq_auto_buf whole = {0}, pieces = {0};

    if (size < 2 || size > 65536)
        return 0;
    talk(data[0], data + 1, size - 1, size, &whole);
    talk(data[0], data + 1, size - 1, 1 + data[1] % 61, &pieces);
    /* Frames of HTTP/2 are acknowledged as they come. */
    if (data[0] == 0 && !memmem(data, size, "PRI ", 4) && !memmem(data, size, "xpect", 5) &&
        !memmem(data, size, "XPECT", 5) &&
        (whole.len != pieces.len || (whole.len > 0 && memcmp(whole.data, pieces.data, whole.len))))
        abort();
    return 0;
}
