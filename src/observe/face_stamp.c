/* Times that the kernel's network tells by its own clock: when a message came, how long a way
 * takes. They are replaced by the world's. */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"
#include "observe/face_net.h"
#include "observe/reach.h"

enum {
    STAMP = SO_TIMESTAMP,
    STAMP_NS = SO_TIMESTAMPNS,
    STAMPING = SO_TIMESTAMPING,
    STAMP_NEW = 63, /* the same three, with wide seconds */
    STAMP_NS_NEW = 64,
    STAMPING_NEW = 65,
    STAMP_ASK = 0x8906, /* SIOCGSTAMP: of the last message; the next number: in nanoseconds */
    STAMP_ASK_NS = 0x8907,
    LEAST_US = 24, /* what a way takes at least */
    RETRY_US = 200000,
};

/* Younger numbers of the same questions. */
static const uint32_t stamp_ask_new = 0x80108906, stamp_ask_ns_new = 0x80108907;
static const int64_t second = 1000000000;

void aq_stamps_wanted(aq_tracer *t, int option)
{
    switch (option) {
    case STAMP:
    case STAMP_NS:
    case STAMPING:
    case STAMP_NEW:
    case STAMP_NS_NEW:
    case STAMPING_NEW:
        t->stamps = true;
    }
}

/* One control message at `at`, of which `len` bytes are data: less than it has, where there was no
 * room for more. */
static void put_stamp(const aq_tracer *t, const aq_task *k, int type, uint64_t at, size_t len)
{
    int64_t now = (int64_t)aq_clock_now(t, CLOCK_REALTIME);
    int64_t pair[2] = {now / second, now % second}, three[6] = {0};

    switch (type) {
    case STAMP:
    case STAMP_NEW:
        pair[1] /= 1000;
        __attribute__((fallthrough));
    case STAMP_NS:
    case STAMP_NS_NEW:
        aq_tracee_put(k, at, pair, len < sizeof pair ? len : sizeof pair);
        break;
    case STAMPING:
    case STAMPING_NEW:
        if (len > sizeof three)
            len = sizeof three;
        if (!aq_tracee_get(k, at, three, len))
            break;
        for (int i = 0; i < 6; i += 2)
            if (three[i] || three[i + 1])
                memcpy(three + i, pair, sizeof pair);
        aq_tracee_put(k, at, three, len);
    }
}

typedef struct stamping {
    const aq_tracer *t;
    const aq_task *k;
} stamping;

static void stamp_one(int type, const void *data, size_t len, uint64_t at, void *arg)
{
    const stamping *s = arg;

    (void)data;
    put_stamp(s->t, s->k, type, at, len);
}

static void stamp_message(const aq_tracer *t, const aq_task *k, uint64_t header)
{
    aq_tracee_control(k, header, stamp_one, &(stamping){t, k});
}

void aq_face_stamps(aq_tracer *t, aq_task *k, long result)
{
    uint64_t at = aq_regs_arg(k, 1);

    if (!t->stamps || result < 0)
        return;
    if (k->nr == SYS_recvmsg)
        stamp_message(t, k, at);
    for (long i = 0; k->nr == SYS_recvmmsg && i < result; i++)
        stamp_message(t, k, at + (uint64_t)i * sizeof(struct mmsghdr));
}

void aq_face_stamp_control(aq_tracer *t, aq_task *k, uint32_t request)
{
    int64_t now = (int64_t)aq_clock_now(t, CLOCK_REALTIME);
    int64_t pair[2] = {now / second, now % second};

    bool coarse = request == STAMP_ASK || request == stamp_ask_new;

    if (coarse)
        pair[1] /= 1000;
    if (coarse || request == STAMP_ASK_NS || request == stamp_ask_ns_new)
        aq_tracee_put(k, aq_regs_arg(k, 2), pair, sizeof pair);
}

/* ---- what a connection measured ---- */

void aq_face_measured(uint64_t way, struct tcp_info *i)
{
    uint32_t us = way / 1000 > LEAST_US ? (uint32_t)(way / 1000) : LEAST_US;

    i->tcpi_rto = (RETRY_US + us) / 4000 * 4000;
    i->tcpi_ato = 40000;
    i->tcpi_rtt = us;
    i->tcpi_rttvar = us / 5;
    i->tcpi_rcv_rtt = i->tcpi_rcv_rtt ? us : 0;
    i->tcpi_min_rtt = us - us / 16;
    i->tcpi_last_data_sent = i->tcpi_last_data_recv = i->tcpi_last_ack_recv = 0;
    i->tcpi_pacing_rate = UINT64_C(2) * 10 * 1448 * 1000000 / us;
    i->tcpi_delivery_rate = i->tcpi_pacing_rate / 2;
    i->tcpi_busy_time = i->tcpi_rwnd_limited = i->tcpi_sndbuf_limited = 0;
    i->tcpi_snd_cwnd = 10;
    i->tcpi_snd_ssthresh = 0x7fffffff;
    i->tcpi_segs_out = i->tcpi_data_segs_out = (uint32_t)(i->tcpi_bytes_acked / 1448 + 1);
    i->tcpi_segs_in = i->tcpi_data_segs_in = (uint32_t)(i->tcpi_bytes_received / 1448 + 1);
}

static uint64_t way_of(aq_tracer *t, const aq_task *k)
{
    aq_auto_fd int mine = aq_fd_borrow(k, aq_arg_int(k, 0));
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;

    return mine >= 0 && getpeername(mine, (struct sockaddr *)&peer, &len) == 0
               ? aq_reach_way(t, &peer)
               : 0;
}

void aq_face_connection(aq_tracer *t, aq_task *k, uint64_t at, size_t len)
{
    struct tcp_info i = {0};

    if (len > sizeof i)
        len = sizeof i;
    if (!aq_tracee_get(k, at, &i, len))
        return;
    aq_face_measured(way_of(t, k), &i);
    aq_tracee_put(k, at, &i, len);
}
