/* What the decoders share: reading arguments, naming objects, building events. For this room. */
#pragma once

#include "observe/internal.h"

/* Argument n of the current call in its usual widths. */
static inline int32_t aq_arg_int(const aq_task *k, int n)
{
    return (int32_t)aq_regs_arg(k, n);
}
static inline int64_t aq_arg_long(const aq_task *k, int n)
{
    return (int64_t)aq_regs_arg(k, n);
}

/* Events: an op and its kind from ops.def, then arguments, then aq_note. */
aq_event aq_event_of(aq_event_kind kind, const char *op);
void aq_event_number(aq_event *e, const char *name, int64_t value);
void aq_event_bytes(aq_event *e, const char *name, const char *bytes, size_t len, bool cut);
void aq_event_text(aq_event *e, const char *name, const char *text);
void aq_event_object(aq_event *e, const char *object);

/* As aq_note, for a process none of whose tasks is there any more. */
void aq_note_proc(aq_tracer *t, aq_proc *p, uint32_t thread, aq_event *e);

/* decode.c: shapes. "d l flags:i": one word an argument of the call.
 *   -       not looked at
 *   d       directory descriptor of the path that follows
 *   p, l    a path; with l its last part is not followed. The first is the object, a second has a
 * name f       a descriptor; its name is the object, or an argument where it has a name i, u, n a
 * number: int, unsigned int, long F       an int of AT_ flags, which may change how the path before
 * it is followed s       a text t       a struct timespec, in nanoseconds A word and its name are
 * written word:name. */
void aq_shape_look(aq_tracer *t, aq_task *k);
void aq_shape_note(aq_tracer *t, aq_task *k, long result);
void aq_shape_fill(aq_tracer *t, aq_task *k,
                   aq_event *e); /* object and arguments, without noting */

/* Reads the path at `at` and resolves it. `follow`: also its last part. */
void aq_look_path(aq_tracer *t, aq_task *k, int dir, uint64_t at, bool follow);
void aq_look_other(aq_tracer *t, aq_task *k, int dir, uint64_t at, bool follow);
void aq_look_read_path(aq_tracer *t, aq_task *k, int dir, uint64_t at); /* only reads */
/* What a path led to. */
typedef enum aq_found {
    AQ_FOUND_NAME,    /* no more than that */
    AQ_FOUND_WHAT,    /* also what statx says of it: it was wanted, and does not lie below /proc */
    AQ_FOUND_NOTHING, /* nothing is there: what the task would be told, too */
} aq_found;

void aq_look_found(aq_look *l, aq_found found);
bool aq_look_gone(const aq_task *k); /* what it names is not there, for sure */
/* Puts object and, where it differs, "given". */
void aq_event_path(const aq_look *l, aq_event *e);

/* resolve.c: what a path means to a task now. Always gives a name, at worst the path as given
 * behind the directory that it is relative to. */
aq_found aq_resolve(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow, char *ret,
                    size_t cap);
/* Somebody looks at this name: true when the tree of /sys was made because of it. */
bool aq_resolve_hardware(aq_tracer *t, const char *name);
aq_found aq_resolve_stat(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow,
                         char *ret, size_t cap, struct statx *what);
/* recall.c: what a path meant before. `found`: what was kept, WHAT where that is wanted. */
bool aq_recall(aq_tracer *t, const char *path, bool follow, char *ret, size_t cap,
               struct statx *what, aq_found *found);
void aq_recall_keep(aq_tracer *t, const char *path, bool follow, const char *name,
                    const struct statx *what, aq_found found);
/* A folder that a path (its first `len` bytes) names without a link on the way; ours, or -1. */
int aq_recall_folder(const aq_tracer *t, const char *path, size_t len);
void aq_recall_keep_folder(aq_tracer *t, const char *path, int fd);
void aq_recall_begin(aq_tracer *t, long nr); /* a call that may change what paths mean forgets */
void aq_recall_forget(aq_tracer *t);
void aq_recall_free(aq_tracer *t);
int aq_resolve_root(aq_tracer *t, const aq_task *k); /* our descriptor of the world's root, or -1 */
/* A bare handle (O_PATH) of ours for what the path means, or -1. */
int aq_resolve_handle(aq_tracer *t, aq_task *k, int dir, const char *path, bool follow);
bool aq_resolve_base(aq_tracer *t, const aq_task *k, int fd); /* is it of the host's part? */
void aq_resolve_plain(const aq_tracer *t,
                      char *name); /* takes the host's number out of a pipe's name and the like */
pid_t aq_inner_pid(aq_task *k); /* of its process, in its own namespace; 0 when it cannot be told */
pid_t aq_inner_number(const aq_task *k); /* of the task itself */
/* The process with this number in the namespace of `k`, or NULL. */
aq_proc *aq_proc_inner(aq_tracer *t, aq_task *k, pid_t inner);
/* What a link below /proc/TID says, or an empty string. */
void aq_proc_link(pid_t tid, const char *link, char *ret, size_t cap);

/* descriptor.c */
aq_fd *aq_fd_slot(aq_tracer *t, aq_task *k,
                  int fd); /* as aq_fd_of, to be changed; NULL when not open */
/* What statx says of an open descriptor. */
bool aq_fd_stat(aq_task *k, int fd, struct statx *ret);
void aq_fd_renew(aq_tracer *t, aq_task *k, int fd); /* it was connected or bound: name it again */
uint16_t aq_fd_own_port(const aq_task *k, int fd);  /* of a socket; 0: it has none */
void aq_fd_forget_range(aq_tracer *t, aq_task *k, unsigned first, unsigned last);
void aq_fd_end(aq_tracer *t, aq_proc *p); /* totals of all that are open at its end */
/* "198.51.100.7:443", "[::1]:53", "unix:/run/x", "netlink:0"; returns the port, 0 where none. */
uint16_t aq_address_text(const void *address, size_t len, char *ret, size_t cap);

/* content.c */
enum { AQ_CONTENT = 33 }; /* half of a digest, in hex */
/* This call wrote a part, if it writes, and waits to write the rest. */
void aq_content_part(aq_tracer *t, aq_task *k);
/* This call is done, and the first `bytes` of what it was given have gone out. */
void aq_content_take(aq_tracer *t, aq_task *k, uint64_t bytes);
void aq_content_free(aq_task *k);
/* Is the write of this number an event? Its content is all since the event before. */
bool aq_content_counts(uint64_t writes);
void aq_content_digest(aq_event *e, const char *name, const aq_digest *d,
                       char text[static AQ_CONTENT]);
void aq_content_put(aq_fd *f, aq_event *e, char text[static AQ_CONTENT]);
/* What the program that it has just become was given: "environ" or "cmdline" of /proc. */
void aq_content_given(aq_tracer *t, aq_task *k, const char *what, aq_event *e, const char *name,
                      char text[static AQ_CONTENT]);

/* flood.c */
enum { AQ_FLOOD_OPS = 128 };                                       /* ops.def has fewer */
bool aq_flood_passes(aq_tracer *t, aq_proc *p, const aq_event *e); /* false: counted only */
void aq_flood_end(aq_tracer *t, aq_proc *p);                       /* says what was counted only */
void aq_flood_close(aq_tracer *t);

/* ops.def */
typedef struct aq_op {
    aq_event_kind kind;
    const char *op;
    uint32_t limit; /* events of one process with one object; further ones are counted */
    const char *what;
} aq_op;
extern const aq_op aq_ops[];
extern const size_t aq_op_count;

/* The looks and notes that calls.def names. */
/* face_large.c, of files whose content comes late: `name` was opened, or changes; with `below` all
 * that lies in it. The current call may change a path. */
void aq_large_needed(aq_tracer *t, aq_task *k, const char *name, bool below);
void aq_large_moves(aq_tracer *t, aq_task *k);

typedef void aq_looker(aq_tracer *t, aq_task *k);
typedef void aq_noter(aq_tracer *t, aq_task *k, long result);
/* decode_file.c */
aq_looker aq_look_open, aq_look_close, aq_look_close_range, aq_look_dup2, aq_look_memory,
    aq_look_ioctl, aq_look_stat, aq_look_fcntl, aq_look_readlink;
aq_noter aq_note_opened, aq_note_dup, aq_note_fcntl, aq_note_ioctl, aq_note_list, aq_note_memory,
    aq_note_copy, aq_note_new_fd, aq_note_mknod;
/* face_link.c */
aq_looker aq_look_handle;
/* decode_io.c */
aq_noter aq_note_read, aq_note_write, aq_note_receive;
/* decode_net.c */
aq_looker aq_look_address;
aq_noter aq_note_socket, aq_note_bind, aq_note_connect, aq_note_accept, aq_note_sockopt;

/* What a pipe gives to a socket, before and after. */
void aq_keep_piped(aq_task *k, int from);
void aq_note_copied(aq_tracer *t, aq_task *k, int into, long result);
/* A descriptor was used: an event when it is the first time in this direction. */
void aq_note_use(aq_tracer *t, aq_task *k, int fd, bool write, long result);

/* A message on its way out, as look kept it in aq_look.sent; `len` bytes follow. */
typedef struct aq_message {
    char address[144]; /* where it is addressed to; empty: to the socket's peer */
    uint16_t port, len;
    bool control;
} aq_message;
/* talk.c: what a message means: questions, requests, greetings. `sent`: bytes of it that went out,
 * of which m->len at most are in `data`. */
void aq_note_payload(aq_tracer *t, aq_task *k, const aq_fd *f, const aq_message *m,
                     const char *data, uint64_t sent, long result);
void aq_talk_end(aq_tracer *t, aq_proc *p, uint32_t thread, const aq_fd *f); /* it is closed */
void aq_talk_free(aq_tracer *t);
/* Descriptors that came with a message. */
void aq_note_rights(aq_tracer *t, aq_task *k, uint64_t header);
/* The address at `at`, as text; a unix path resolved. Returns the port. */
uint16_t aq_read_address(aq_tracer *t, aq_task *k, uint64_t at, size_t len, char *ret, size_t cap);
/* The same for a message that is sent through `f`: what an address without a family means there. */
uint16_t aq_read_target(aq_tracer *t, aq_task *k, const aq_fd *f, uint64_t at, size_t len,
                        char *ret, size_t cap);
/* decode_process.c */
aq_looker aq_look_clone, aq_look_exec, aq_look_prctl, aq_look_limit, aq_look_pidfd;
aq_noter aq_note_clone, aq_note_exec, aq_note_kill, aq_note_pidfd_kill, aq_note_prctl,
    aq_note_refused;
/* decode_time.c */
aq_looker aq_look_sleep, aq_look_wait, aq_look_timer;
aq_noter aq_note_sleep, aq_note_wait, aq_note_now, aq_note_timer, aq_note_random;
