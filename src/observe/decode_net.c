/* The network as events: sockets, addresses, and what messages say. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kernel/syscalls.h"
#include "observe/decode.h"

enum { RIGHTS = 253 /* the kernel's own limit */ };

/* ---- addresses ---- */

uint16_t aq_read_target(aq_tracer *t, aq_task *k, const aq_fd *f, uint64_t at, size_t len,
                        char *ret, size_t cap)
{
    struct sockaddr_storage s = {0};
    size_t head = offsetof(struct sockaddr_un, sun_path);
    char path[AQ_PATH], name[2 * AQ_PATH];

    *ret = '\0';
    if (len > sizeof s)
        len = sizeof s;
    if (!aq_tracee_get(k, at, &s, len))
        return 0;
    if (s.ss_family == AF_UNSPEC && f && f->family == AF_INET6)
        return 0; /* it goes to the peer */
    if (s.ss_family == AF_UNSPEC && f && f->family == AF_INET)
        s.ss_family = AF_INET; /* which the kernel takes it for */
    if (s.ss_family == AF_UNIX && len > head && ((char *)&s)[head] != '\0') {
        snprintf(path, sizeof path, "%.*s", (int)(len - head), (char *)&s + head);
        aq_resolve(t, k, -100 /* AT_FDCWD */, path, true, name, sizeof name);
        snprintf(ret, cap, "unix:%s", name);
        return 0;
    }
    return aq_address_text(&s, len, ret, cap);
}

uint16_t aq_read_address(aq_tracer *t, aq_task *k, uint64_t at, size_t len, char *ret, size_t cap)
{
    return aq_read_target(t, k, NULL, at, len, ret, cap);
}

void aq_look_address(aq_tracer *t, aq_task *k)
{
    aq_look *l = aq_look_of(k);

    l->number[0] = aq_read_address(t, k, aq_regs_arg(k, 1), (uint32_t)aq_regs_arg(k, 2), l->name,
                                   sizeof l->name);
}

/* ---- sockets ---- */

static const char *socket_text(int family, int type, char *ret, size_t cap)
{
    static const char *const families[] = {
        [AF_UNIX] = "unix",       [AF_INET] = "inet",     [AF_INET6] = "inet6",
        [AF_NETLINK] = "netlink", [AF_PACKET] = "packet", [AF_VSOCK] = "vsock"};
    static const char *const types[] = {[SOCK_STREAM] = "stream",
                                        [SOCK_DGRAM] = "datagram",
                                        [SOCK_RAW] = "raw",
                                        [SOCK_SEQPACKET] = "packets"};
    const char *f = family >= 0 && family <= AF_VSOCK ? families[family] : NULL;
    const char *y = type >= 0 && type <= SOCK_SEQPACKET ? types[type] : NULL;

    snprintf(ret, cap, "%s/%s", f ? f : "other", y ? y : "other");
    return ret;
}

static void keep_pair(aq_tracer *t, aq_task *k)
{
    uint64_t ino[2] = {0, 0};
    int fd[2];

    if (!aq_tracee_get(k, aq_regs_arg(k, 3), fd, sizeof fd))
        return;
    for (int i = 0; i < 2; i++) {
        aq_fd_forget(t, k, fd[i]);
        ino[i] = aq_fd_of(t, k, fd[i])->ino;
    }
    aq_edge_pair(t, ino[0], ino[1]);
}

void aq_note_socket(aq_tracer *t, aq_task *k, long result)
{
    int family = aq_arg_int(k, 0), type = aq_arg_int(k, 1);
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "socket");
    char text[32];

    if (k->nr == AQ_NR_socket && result >= 0)
        aq_fd_forget(t, k, (int)result);
    if (k->nr == AQ_NR_socketpair && result >= 0)
        keep_pair(t, k);
    aq_event_object(&e, socket_text(family, type & 0xf, text, sizeof text));
    aq_event_number(&e, "family", family);
    aq_event_number(&e, "type", type);
    aq_event_number(&e, "protocol", aq_arg_int(k, 2));
    e.result = result;
    aq_note(t, k, &e);
}

static void rename_socket(aq_tracer *t, aq_task *k, const aq_look *l)
{
    const aq_fd *f = aq_fd_slot(t, k, aq_arg_int(k, 0));
    uint64_t ino = f && f->kind == AQ_FD_SOCKET ? f->ino : 0;
    uint16_t own = ino && l->number[0] ? aq_fd_own_port(k, f->fd) : 0;

    /* Under whatever numbers, in whatever processes it is open. */
    for (aq_proc *p = t->procs; ino && p; p = p->next)
        for (aq_fd *q = p->fds; q < p->fds + AQ_FD_SLOTS; q++) {
            if (q->fd < 0 || q->kind != AQ_FD_SOCKET || q->ino != ino)
                continue;
            free(q->name);
            q->name = aq_strdup(l->name);
            q->port = (uint16_t)l->number[0];
            q->own_port = own;
        }
}

static void note_address(aq_tracer *t, aq_task *k, const char *op, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, op);

    aq_event_object(&e, aq_look_of(k)->name);
    aq_event_text(&e, "socket", aq_fd_of(t, k, aq_arg_int(k, 0))->stream ? "stream" : "datagram");
    e.result = result;
    aq_note(t, k, &e);
}

void aq_note_bind(aq_tracer *t, aq_task *k, long result)
{
    note_address(t, k, "bind", result);
    aq_look_of(k)->number[0] = 0; /* the port is ours, not the peer's */
    if (result == 0)
        rename_socket(t, k, aq_look_of(k));
}

/* While a connection is under way the kernel names no peer yet, so it is remembered from here. */
void aq_note_connect(aq_tracer *t, aq_task *k, long result)
{
    note_address(t, k, "connect", result);
    if (result == 0 || result == -EINPROGRESS)
        rename_socket(t, k, aq_look_of(k));
}

void aq_note_accept(aq_tracer *t, aq_task *k, long result)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "accept");
    char at[256];

    if (result == -EAGAIN)
        return;
    snprintf(at, sizeof at, "%s", aq_fd_of(t, k, aq_arg_int(k, 0))->name ?: "");
    if (result >= 0) {
        aq_fd_forget(t, k, (int)result);
        aq_event_object(&e, aq_fd_of(t, k, (int)result)->name);
    }
    aq_event_text(&e, "at", at);
    e.result = result;
    aq_note(t, k, &e);
}

/* ---- descriptors in messages ---- */

static void note_right(aq_tracer *t, aq_task *k, int fd)
{
    aq_event e = aq_event_of(AQ_EVENT_NETWORK, "descriptor");
    char from[256];

    snprintf(from, sizeof from, "%s", aq_fd_of(t, k, aq_arg_int(k, 0))->name ?: "");
    aq_fd_forget(t, k, fd);
    aq_event_object(&e, aq_fd_of(t, k, fd)->name);
    aq_event_text(&e, "from", from);
    e.result = fd;
    aq_note(t, k, &e);
}

typedef struct rights {
    aq_tracer *t;
    aq_task *k;
    int left;
} rights;

static void note_some(int type, const void *data, size_t len, uint64_t at, void *arg)
{
    rights *r = arg;
    int fd;

    (void)at;
    for (size_t i = 0; type == SCM_RIGHTS && i + sizeof fd <= len && r->left > 0; i += sizeof fd) {
        memcpy(&fd, (const char *)data + i, sizeof fd);
        note_right(r->t, r->k, fd);
        r->left--;
    }
}

void aq_note_rights(aq_tracer *t, aq_task *k, uint64_t header)
{
    aq_tracee_control(k, header, note_some, &(rights){t, k, RIGHTS});
}
